/* Keys between the threads of a process. */
#include <baton/gate.h>

#include <string.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/fail.h"
#include "base/mem.h"
#include "gate/crowd.h"
#include "gate/state.h"
#include "gate/want.h"

#define ALL_SHARDS UINT64_MAX

/* The block is larger than the gate, so that the shards can have cache lines of their own. */
#define GATE_BYTES (sizeof(struct baton_gate) + _Alignof(struct baton_gate))

void gate_lock(struct baton_gate *gate, uint64_t mask)
{
	for (; mask != 0; mask &= mask - 1)
		CHECK(pthread_mutex_lock(&gate->shards[__builtin_ctzll(mask)].mu) == 0);
}

void gate_unlock(struct baton_gate *gate, uint64_t mask)
{
	for (; mask != 0; mask &= mask - 1)
		CHECK(pthread_mutex_unlock(&gate->shards[__builtin_ctzll(mask)].mu) == 0);
}

static enum baton_err shards_init(struct baton_gate *gate)
{
	pthread_mutexattr_t attr;
	int err = pthread_mutexattr_init(&attr);
	if (err != 0)
		return fail_errno(err, "cannot make a lock");
	/* What happens under the lock is shorter than going to sleep and being woken. */
	CHECK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP) == 0);
	for (unsigned i = 0; i < SHARDS; i++) {
		CHECK(pthread_mutex_init(&gate->shards[i].mu, &attr) == 0);
		table_init(&gate->shards[i].table, gate->alloc);
	}
	CHECK(pthread_mutexattr_destroy(&attr) == 0);
	return BATON_OK;
}

enum baton_err baton_gate_new(const struct baton_gate_options *options,
                              struct baton_gate **ret_gate)
{
	const struct baton_alloc *alloc =
		options && options->alloc ? options->alloc : baton_alloc_libc();
	struct baton_id seed;
	enum baton_err e = baton_id_random(&seed);
	if (e != BATON_OK)
		return e;
	char *block = mem_new(alloc, GATE_BYTES, 1);
	if (!block)
		return fail_memory(GATE_BYTES, "a gate");
	uintptr_t pad = -(uintptr_t)block % _Alignof(struct baton_gate);
	struct baton_gate *gate = (struct baton_gate *)(void *)(block + pad);
	gate->block = block;
	gate->alloc = alloc;
	gate->clock = options && options->clock ? options->clock : baton_clock_awake();
	gate->seed = seed;
	gate->classes[0] = baton_key_policy_default();
	gate->classes[0].scope = BATON_KEY_SCOPE_PROCESS;
	atomic_init(&gate->class_count, 1);
	e = shards_init(gate);
	if (e != BATON_OK) {
		mem_free(alloc, block, GATE_BYTES, 1);
		return e;
	}
	*ret_gate = gate;
	return BATON_OK;
}

void baton_gate_free(struct baton_gate *gate)
{
	if (!gate)
		return;
	CHECK(atomic_load(&gate->tickets) == 0);
	for (unsigned i = 0; i < SHARDS; i++) {
		struct shard *s = &gate->shards[i];
		uint32_t cursor = 0;
		for (struct entry *e; (e = table_next(&s->table, &cursor));)
			crowd_free(gate->alloc, e);
		table_done(&s->table);
		CHECK(pthread_mutex_destroy(&s->mu) == 0);
	}
	mem_free(gate->alloc, gate->block, GATE_BYTES, 1);
}

/* A gate decides who may go on now, inside one process; what else a policy can say is for its
 * caller. */
static enum baton_err policy_fits(const struct baton_key_policy *policy)
{
	enum baton_err e = baton_key_policy_check(policy);
	if (e != BATON_OK)
		return e;
	if (policy->scope != BATON_KEY_SCOPE_PROCESS)
		return fail(BATON_INVALID,
		            "a gate counts inside one process; scope must be process");
	if (policy->on_conflict != BATON_KEY_WAIT)
		return fail(BATON_INVALID,
		            "a gate knows callers that wait; on_conflict must be wait");
	if (policy->fair)
		return fail(BATON_INVALID,
		            "a gate keeps one line per key, in order of arrival; fair must be off");
	return BATON_OK;
}

enum baton_err baton_gate_class_add(struct baton_gate *gate, const struct baton_key_policy *policy,
                                    baton_gate_class *ret_class)
{
	enum baton_err e = policy_fits(policy);
	if (e != BATON_OK)
		return e;
	gate_lock(gate, ALL_SHARDS);
	unsigned n = atomic_load_explicit(&gate->class_count, memory_order_relaxed);
	if (n < BATON_GATE_CLASSES_MAX) {
		gate->classes[n] = *policy;
		/* Pairs with the load in want_init(). */
		atomic_store_explicit(&gate->class_count, n + 1, memory_order_release);
	}
	gate_unlock(gate, ALL_SHARDS);
	if (n == BATON_GATE_CLASSES_MAX)
		return fail(BATON_FULL, "this gate has %d classes already, which is the limit",
		            BATON_GATE_CLASSES_MAX);
	ret_class->v = (uint16_t)n;
	return BATON_OK;
}

/* Moves every line of the class, in a walk during which nothing is forgotten because what has a
 * line is needed; then forgets what the new policy no longer needs. */
static void class_settle(struct baton_gate *gate, baton_gate_class cls, struct baton_mono now,
                         struct effects *fx)
{
	for (unsigned i = 0; i < SHARDS; i++) {
		struct shard *s = &gate->shards[i];
		uint32_t cursor = 0;
		for (struct entry *e; (e = table_next(&s->table, &cursor));)
			if (e->cls == cls.v && entry_waiting(e) > 0)
				entry_settle(gate, s, e, now, fx);
		shard_sweep(gate, s, now, s->table.used);
	}
}

enum baton_err baton_gate_class_set(struct baton_gate *gate, baton_gate_class cls,
                                    const struct baton_key_policy *policy, struct baton_mono now)
{
	enum baton_err e = policy_fits(policy);
	if (e != BATON_OK)
		return e;
	struct effects fx = {.due = NULL};
	gate_lock(gate, ALL_SHARDS);
	unsigned n = atomic_load_explicit(&gate->class_count, memory_order_relaxed);
	if (cls.v < n) {
		gate->classes[cls.v] = *policy;
		class_settle(gate, cls, now, &fx);
	}
	gate_unlock(gate, ALL_SHARDS);
	effects_run(&fx, now);
	if (cls.v >= n)
		return fail(BATON_INVALID, "class %u is not known; this gate has classes 0 to %u",
		            (unsigned)cls.v, n - 1);
	return BATON_OK;
}

enum baton_err baton_gate_acquire(struct baton_gate *gate, const struct baton_gate_ask *ask,
                                  baton_fence *ret_fences, struct baton_gate_yield *ret_yield)
{
	struct wants w;
	enum baton_err e = wants_init(&w, gate, ask);
	if (e != BATON_OK)
		return e;
	struct effects fx = {.due = NULL};
	gate_lock(gate, w.mask);
	wants_find(&w, gate, &fx);
	e = wants_admitted(&w, gate, ret_yield) ? wants_reserve(&w, gate, false) : BATON_YIELD;
	for (size_t i = 0; e == BATON_OK && i < ask->count; i++) {
		baton_fence fence =
			entry_take(gate, w.at[i].shard, w.at[i].entry, &ask->run, ask->now);
		if (ret_fences)
			ret_fences[i] = fence;
	}
	gate_unlock(gate, w.mask);
	effects_run(&fx, ask->now);
	return e;
}

enum baton_err baton_gate_release(struct baton_gate *gate, const struct baton_gate_ask *ask)
{
	struct wants w;
	enum baton_err e = wants_init(&w, gate, ask);
	if (e != BATON_OK)
		return e;
	struct effects fx = {.due = NULL};
	gate_lock(gate, w.mask);
	wants_find(&w, gate, &fx);
	for (size_t i = 0; i < ask->count; i++) {
		struct want *one = &w.at[i];
		if (one->same != i)
			continue;
		struct baton_gate_holder *held =
			one->entry ? crowd_find(&gate->seed, one->entry, &ask->run) : NULL;
		if (held) {
			crowd_remove(&gate->seed, one->entry, held);
			entry_settle(gate, one->shard, one->entry, ask->now, &fx);
		} else {
			e = BATON_NOT_HELD;
		}
	}
	gate_unlock(gate, w.mask);
	effects_run(&fx, ask->now);
	return e;
}

enum baton_err baton_gate_renew(struct baton_gate *gate, const struct baton_gate_ask *ask)
{
	struct wants w;
	enum baton_err e = wants_init(&w, gate, ask);
	if (e != BATON_OK)
		return e;
	struct effects fx = {.due = NULL};
	gate_lock(gate, w.mask);
	wants_find(&w, gate, &fx);
	for (size_t i = 0; i < ask->count; i++) {
		struct want *one = &w.at[i];
		if (one->entry && crowd_find(&gate->seed, one->entry, &ask->run))
			(void)entry_take(gate, one->shard, one->entry, &ask->run, ask->now);
		else
			e = BATON_NOT_HELD;
	}
	gate_unlock(gate, w.mask);
	effects_run(&fx, ask->now);
	return e;
}

enum baton_err baton_gate_holder(struct baton_gate *gate, const struct baton_gate_key *key,
                                 struct baton_mono now, struct baton_gate_holder *ret_holder)
{
	struct baton_gate_ask ask = {.keys = key, .count = 1, .now = now};
	struct wants w;
	enum baton_err e = wants_init(&w, gate, &ask);
	if (e != BATON_OK)
		return e;
	struct effects fx = {.due = NULL};
	gate_lock(gate, w.mask);
	wants_find(&w, gate, &fx);
	const struct entry *entry = w.at[0].entry;
	if (!entry || entry->holders == 0)
		e = BATON_NOT_HELD;
	else if (ret_holder)
		*ret_holder = entry->first;
	gate_unlock(gate, w.mask);
	effects_run(&fx, now);
	return e;
}

bool baton_gate_is_held(struct baton_gate *gate, const struct baton_gate_key *key,
                        struct baton_mono now)
{
	return baton_gate_holder(gate, key, now, NULL) == BATON_OK;
}

void baton_gate_guard_done(struct baton_gate_guard *guard)
{
	if (!guard->gate)
		return;
	struct baton_gate_ask ask = *guard->ask;
	ask.now = guard->gate->clock->now(guard->gate->clock);
	(void)baton_gate_release(guard->gate, &ask);
	guard->gate = NULL;
}
