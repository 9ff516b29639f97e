/* A gate with a clock that stands still and memory that is counted. */
#ifndef GATE_WORLD_H
#define GATE_WORLD_H

#include <baton/gate.h>

#include "support/fake_clock.h"
#include "support/fault.h"
#include "support/harness.h"

struct world {
	struct fault fault;
	struct fake_clock clock;
	struct baton_gate *gate;
};

/* Fixtures: the gate shows a time of 1 s, and must have given back all memory at the end. */
int world_setup(void **state);
int world_teardown(void **state);

#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

/* The time in milliseconds, and moving it there. */
struct baton_mono at_ms(int64_t ms);
void world_time(struct world *w, int64_t ms);

/* The run number `n`. */
struct baton_id run_id(unsigned n);

/* Adds a class with that policy. */
baton_gate_class world_class(struct world *w, struct baton_key_policy policy);

/* A policy for a gate with that limit. */
struct baton_key_policy with_limit(uint32_t limit);

/* A request of run `n` for a key of the default class, at the clock's time. The key lives in the
 * ask. */
struct ask {
	struct baton_gate_key keys[BATON_GATE_KEYS_MAX];
	struct baton_gate_ask ask;
};
struct ask *ask_key(struct ask *a, struct world *w, unsigned run, const char *key);
struct ask *ask_more(struct ask *a, const char *key, baton_gate_class cls);

/* One call for one key of a class at the clock's time. */
enum baton_err try_in(struct world *w, baton_gate_class cls, unsigned run, const char *key);
enum baton_err drop_in(struct world *w, baton_gate_class cls, unsigned run, const char *key);
enum baton_err try_key(struct world *w, unsigned run, const char *key);
enum baton_err drop_key(struct world *w, unsigned run, const char *key);

/* Queues run `n` for one key. */
struct baton_gate_ticket *enter_in(struct world *w, baton_gate_class cls, unsigned run,
                                   const char *key);
struct baton_gate_ticket *enter_key(struct world *w, unsigned run, const char *key);
enum baton_err poll_ticket(struct world *w, struct baton_gate_ticket *t);

void assert_holder(struct world *w, const char *key, unsigned run);

#endif
