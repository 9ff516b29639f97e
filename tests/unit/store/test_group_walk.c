/* Callers who get into one commit, in many orders of their steps: nobody is left asleep.
 *
 * Each caller is a coroutine that stops before every step that others can see: a load or a store of
 * a word, a sleep, a wake-up, and taking the lock. Who goes on at each stop, on which processor a
 * call begins, how much time passes and who of several sleepers is woken is decided by a number that a failing run can be
 * given again. */
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "base/check.h"
#include "group_steps.h"
#include "store/group.h"
#include "support/harness.h"
#include "support/rng.h"
#include "support/soak.h"

#define STACK ((size_t)32 * 1024)
#define CALLERS 7
#define CALLS 3
#define PROCESSORS 3

enum phase {
	PHASE_READY = 1,
	PHASE_LOCKING,
	PHASE_ASLEEP,
	PHASE_DONE
};

struct caller {
	enum phase phase;
	const uint32_t *word; /* on which he sleeps */
	bool slow;            /* gets the processor now and then only */
	uint32_t wrong;       /* calls that returned before they were done, or failed */
	ucontext_t context;
	char stack[STACK];
};

/* The walk that is under way. The calls under test have no way to carry it. */
static struct {
	struct group group;
	struct rng rng;
	ucontext_t scheduler;
	struct caller callers[CALLERS];
	size_t current;
	bool locked;
	bool inside; /* of a commit */
	struct timespec time;
} now;

static void stop(enum phase phase)
{
	struct caller *c = &now.callers[now.current];
	c->phase = phase;
	swapcontext(&c->context, &now.scheduler);
}

uint32_t walk_load(const uint32_t *word)
{
	stop(PHASE_READY);
	return *word;
}

void walk_store(uint32_t *word, uint32_t value)
{
	stop(PHASE_READY);
	*word = value;
}

uint32_t walk_exchange(uint32_t *word, uint32_t value)
{
	stop(PHASE_READY);
	uint32_t old = *word;
	*word = value;
	return old;
}

bool walk_compare(uint32_t *word, uint32_t *expected, uint32_t value)
{
	stop(PHASE_READY);
	bool same = *word == *expected;
	if (same)
		*word = value;
	else
		*expected = *word;
	return same;
}

/* So much now and then that who waits awake gives up. */
int walk_clock(struct timespec *ret)
{
	now.time.tv_sec += rng_below(&now.rng, 16) == 0;
	*ret = now.time;
	return 0;
}

int walk_lock(pthread_mutex_t *mu)
{
	(void)mu;
	stop(PHASE_LOCKING);
	CHECK(!now.locked);
	now.locked = true;
	return 0;
}

int walk_unlock(pthread_mutex_t *mu)
{
	(void)mu;
	CHECK(now.locked);
	now.locked = false;
	return 0;
}

int walk_yield(void)
{
	stop(PHASE_READY);
	return 0;
}

int walk_processor(void)
{
	return (int)rng_below(&now.rng, PROCESSORS);
}

/* Of those who sleep on the word, one by chance; CALLERS: nobody does. */
static size_t sleeper(const uint32_t *word)
{
	size_t asleep[CALLERS], count = 0;
	for (size_t i = 0; i < CALLERS; i++)
		if (now.callers[i].phase == PHASE_ASLEEP && now.callers[i].word == word)
			asleep[count++] = i;
	return count == 0 ? CALLERS : asleep[rng_below(&now.rng, count)];
}

long walk_futex(uint32_t *word, int operation, uint32_t value)
{
	stop(PHASE_READY);
	if (operation == FUTEX_WAIT_PRIVATE) {
		if (*word != value)
			return -1;
		now.callers[now.current].word = word;
		stop(PHASE_ASLEEP);
		return 0;
	}
	CHECK(operation == FUTEX_WAKE_PRIVATE);
	long woken = 0;
	for (size_t i; (uint32_t)woken < value && (i = sleeper(word)) < CALLERS; woken++)
		now.callers[i].phase = PHASE_READY;
	return woken;
}

static void commit(void *store, struct request *list)
{
	(void)store;
	CHECK(!now.inside);
	now.inside = true;
	for (struct request *r = list; r; r = r->next) {
		stop(PHASE_READY);
		(*(uint32_t *)r->args)++;
		r->err = BATON_OK;
	}
	now.inside = false;
}

static void caller_main(void)
{
	struct caller *c = &now.callers[now.current];
	for (int i = 0; i < CALLS; i++) {
		uint32_t times = 0;
		struct request r = {.args = &times,
		                    .err = BATON_STORAGE,
		                    .first = rng_below(&now.rng, 4) == 0};
		enum baton_err e = group_do(&now.group, &r);
		c->wrong += e != BATON_OK || times != 1;
	}
	c->phase = PHASE_DONE;
}

static void caller_begin(struct caller *c)
{
	c->phase = PHASE_READY;
	c->slow = rng_below(&now.rng, 3) == 0;
	c->wrong = 0;
	getcontext(&c->context);
	c->context.uc_stack.ss_sp = c->stack;
	c->context.uc_stack.ss_size = STACK;
	c->context.uc_link = &now.scheduler;
	makecontext(&c->context, caller_main, 0);
}

static bool can_go_on(const struct caller *c)
{
	return c->phase == PHASE_READY || (c->phase == PHASE_LOCKING && !now.locked);
}

/* Lets one caller go on to his next stop. False: none can. */
static bool step(void)
{
	size_t able[CALLERS], count = 0;
	bool slow_too = rng_below(&now.rng, 16) == 0;
	for (int turn = 0; turn < 2 && count == 0; turn++)
		for (size_t i = 0; i < CALLERS; i++)
			if (can_go_on(&now.callers[i]) &&
			    (turn == 1 || slow_too || !now.callers[i].slow))
				able[count++] = i;
	if (count == 0)
		return false;
	now.current = able[rng_below(&now.rng, count)];
	swapcontext(&now.scheduler, &now.callers[now.current].context);
	return true;
}

/* How many are left asleep, or got a wrong answer. */
static uint32_t walk(uint64_t seed)
{
	now.rng = rng_seed(seed);
	now.locked = now.inside = false;
	now.time = (struct timespec){.tv_sec = 0};
	group_init(&now.group, commit, NULL);
	for (size_t i = 0; i < CALLERS; i++)
		caller_begin(&now.callers[i]);
	while (step())
		;
	uint32_t bad = 0;
	for (size_t i = 0; i < CALLERS; i++)
		bad += now.callers[i].phase != PHASE_DONE || now.callers[i].wrong > 0;
	group_done(&now.group);
	return bad;
}

static void nobody_is_left_asleep_whoever_goes_on(void **state)
{
	(void)state;
	struct rng seeds = rng_seed_from_env();
	for (unsigned i = soak_scale(20000, 2000000); i > 0; i--) {
		uint64_t seed = seeds.state;
		uint32_t bad = walk(seed);
		if (bad > 0)
			fail_msg("%u callers are asleep for good or were told too early: "
			         "BATON_SEED=%" PRIu64,
			         bad, seed);
		rng_next(&seeds);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_is_left_asleep_whoever_goes_on),
	};
	return cmocka_run_group_tests_name("group_walk", tests, NULL, NULL);
}
