/* A gate with a clock that stands still and memory that is counted. */
#include "world.h"

#include <stdlib.h>
#include <string.h>

/* ThreadSanitizer's search for deadlocks takes minutes where all 64 locks of a gate are held at
 * once, always in the same order. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "detect_deadlocks=0";
}

struct baton_mono at_ms(int64_t ms)
{
	return (struct baton_mono){ms * 1000000};
}

int world_setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	fault_init(&w->fault);
	fake_clock_init(&w->clock, at_ms(1000));
	struct baton_gate_options options = {&w->fault.alloc, &w->clock.clock};
	*state = w;
	return baton_gate_new(&options, &w->gate) == BATON_OK ? 0 : -1;
}

int world_teardown(void **state)
{
	struct world *w = *state;
	baton_gate_free(w->gate);
	fault_done(&w->fault);
	fake_clock_done(&w->clock);
	free(w);
	return 0;
}

static struct baton_mono world_now(struct world *w)
{
	return w->clock.clock.now(&w->clock.clock);
}

void world_time(struct world *w, int64_t ms)
{
	fake_clock_advance(&w->clock, baton_mono_sub(at_ms(ms), world_now(w)));
}

struct baton_id run_id(unsigned n)
{
	struct baton_id id = {{0}};
	memcpy(id.bytes, &n, sizeof n);
	return id;
}

struct baton_key_policy with_limit(uint32_t limit)
{
	struct baton_key_policy policy = baton_key_policy_default();
	policy.scope = BATON_KEY_SCOPE_PROCESS;
	policy.limit = limit;
	return policy;
}

baton_gate_class world_class(struct world *w, struct baton_key_policy policy)
{
	baton_gate_class cls = {0};
	assert_int_equal(baton_gate_class_add(w->gate, &policy, &cls), BATON_OK);
	return cls;
}

struct ask *ask_more(struct ask *a, const char *key, baton_gate_class cls)
{
	a->keys[a->ask.count++] = (struct baton_gate_key){baton_str_z(key), cls};
	return a;
}

static struct ask *ask_in(struct ask *a, struct world *w, unsigned run, const char *key,
                          baton_gate_class cls)
{
	a->ask = (struct baton_gate_ask){a->keys, 0, run_id(run), world_now(w)};
	return ask_more(a, key, cls);
}

struct ask *ask_key(struct ask *a, struct world *w, unsigned run, const char *key)
{
	return ask_in(a, w, run, key, BATON_GATE_CLASS_DEFAULT);
}

enum baton_err try_in(struct world *w, baton_gate_class cls, unsigned run, const char *key)
{
	struct ask a;
	return baton_gate_acquire(w->gate, &ask_in(&a, w, run, key, cls)->ask, NULL, NULL);
}

enum baton_err drop_in(struct world *w, baton_gate_class cls, unsigned run, const char *key)
{
	struct ask a;
	return baton_gate_release(w->gate, &ask_in(&a, w, run, key, cls)->ask);
}

enum baton_err try_key(struct world *w, unsigned run, const char *key)
{
	return try_in(w, BATON_GATE_CLASS_DEFAULT, run, key);
}

enum baton_err drop_key(struct world *w, unsigned run, const char *key)
{
	return drop_in(w, BATON_GATE_CLASS_DEFAULT, run, key);
}

struct baton_gate_ticket *enter_in(struct world *w, baton_gate_class cls, unsigned run,
                                   const char *key)
{
	struct ask a;
	struct baton_gate_ticket *t = NULL;
	assert_int_equal(baton_gate_enter(w->gate, &ask_in(&a, w, run, key, cls)->ask, NULL, &t),
	                 BATON_OK);
	return t;
}

struct baton_gate_ticket *enter_key(struct world *w, unsigned run, const char *key)
{
	return enter_in(w, BATON_GATE_CLASS_DEFAULT, run, key);
}

enum baton_err poll_ticket(struct world *w, struct baton_gate_ticket *t)
{
	return baton_gate_ticket_poll(t, world_now(w), NULL, NULL);
}

void assert_holder(struct world *w, const char *key, unsigned run)
{
	struct baton_gate_key k = {baton_str_z(key), BATON_GATE_CLASS_DEFAULT};
	struct baton_gate_holder holder;
	struct baton_id id = run_id(run);
	assert_int_equal(baton_gate_holder(w->gate, &k, world_now(w), &holder), BATON_OK);
	assert_memory_equal(&holder.run, &id, sizeof id);
}
