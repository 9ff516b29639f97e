/* Runners whose cores act on a store in memory, with a clock of the test's. */
#ifndef RUNNER_ACTOR_H
#define RUNNER_ACTOR_H

#include "runner/carry.h"
#include "runner/core.h"
#include "support/fake_clock.h"
#include "support/harness.h"

#define TTL_S 10
#define MARGIN_S 2
#define DRAIN_S 15
#define SHARDS 16

/* One runner. */
struct actor {
	struct baton_detach detach;
	struct carrier carrier;
	struct core *core;
	struct core_request request;
	enum core_fate others;               /* how all others look to it */
	struct core_order last;              /* the last order */
	unsigned starts, stops;              /* orders so far */
	unsigned mores;                      /* answers to who asked for more */
	const struct baton_work_claim *more; /* the last one, or NULL */
	uint64_t runs[64];                   /* that were started */
};

struct world {
	struct fake_clock clock;
	struct baton_store *store;
	struct core_serve serves[2];
	size_t serve_count; /* 1, unless a test says otherwise */
	struct baton_str queue, queues[2];
};

struct baton_mono world_now(struct world *w);

int world_setup(void **state);

int world_teardown(void **state);

void actor_init(struct world *w, struct actor *a, const char *name, uint32_t slots);

/* Handlers and claims are let go first. */
void actor_done(struct actor *a);

void actor_orders(struct world *w, struct actor *a);

/* What it wants to ask, done, and the answer given. False: it asks nothing. */
bool actor_step(struct world *w, struct actor *a);

/* Until it asks nothing more at this moment. */
void actor_settle(struct world *w, struct actor *a);

/* Until it asks for that; the request is a->request, and is not done yet. */
void actor_until(struct world *w, struct actor *a, enum core_kind kind);

void actor_answer(struct world *w, struct actor *a, enum baton_err err);

void actor_beat(struct world *w, struct actor *a);

void world_pass(struct world *w, int64_t ms);

void world_put(struct world *w, const char *lane, int count);

struct baton_queue_counts world_counts(struct world *w);

void actor_end(struct world *w, struct actor *a, unsigned run, enum baton_work_how how);

#endif
