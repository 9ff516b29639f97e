/* What several threads want to write gets into one commit. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "store/group.h"
#include "support/harness.h"
#include "support/soak.h"

#define THREADS 16
#define LATE 7

/* A store that only counts. */
struct counter {
	struct group group;
	uint32_t inside;   /* [atomic] threads in a commit: one at most */
	uint64_t done;     /* requests, by whoever leads */
	uint32_t wait_for; /* the first commit lasts until so many have gathered behind it */
	uint32_t vain;     /* and until this batch was waited for in vain; 0: it need not be */
	uint32_t commits;  /* by whoever leads */
	uint32_t sizes[4]; /* of the first commits */
	bool firsts[LATE]; /* of the requests of the second commit, in its order */
};

static uint32_t gathered(struct group *g)
{
	pthread_mutex_lock(&g->mu);
	uint32_t size = g->size;
	pthread_mutex_unlock(&g->mu);
	return size;
}

static void count(void *store, struct request *list)
{
	struct counter *c = store;
	uint32_t size = 0;
	assert_int_equal(__atomic_fetch_add(&c->inside, 1, __ATOMIC_ACQ_REL), 0);
	while (c->commits == 0 &&
	       (gathered(&c->group) < c->wait_for ||
	        (c->vain > 0 && __atomic_load_n(&c->group.vain, __ATOMIC_RELAXED) != c->vain)))
		sched_yield();
	for (struct request *r = list; r; r = r->next, size++) {
		if (c->commits == 1 && size < LATE)
			c->firsts[size] = r->first;
		r->err = r->run(c, r->args);
		if (r->err != BATON_OK)
			snprintf(r->detail, sizeof r->detail, "number %d", *(int *)r->args);
	}
	if (c->commits < 4)
		c->sizes[c->commits] = size;
	c->commits++;
	__atomic_fetch_sub(&c->inside, 1, __ATOMIC_ACQ_REL);
}

/* Odd numbers are refused. */
static enum baton_err take(void *store, void *args)
{
	struct counter *c = store;
	c->done++;
	return *(int *)args % 2 ? BATON_CONFLICT : BATON_OK;
}

struct caller {
	struct counter *counter;
	pthread_t thread;
	int from, count;
	bool first;
	uint64_t wrong;
};

static void *call(void *arg)
{
	struct caller *caller = arg;
	for (int i = caller->from; i < caller->from + caller->count; i++) {
		char expected[32];
		snprintf(expected, sizeof expected, "number %d", i);
		int number = i;
		struct request r = {.run = take, .args = &number, .first = caller->first};
		enum baton_err e = group_do(&caller->counter->group, &r);
		bool right =
			i % 2 ? e == BATON_CONFLICT && strcmp(baton_err_detail(), expected) == 0
			      : e == BATON_OK;
		caller->wrong += !right;
	}
	return NULL;
}

static void start(struct caller *caller)
{
	assert_int_equal(pthread_create(&caller->thread, NULL, call, caller), 0);
}

static void end(struct caller *caller)
{
	assert_int_equal(pthread_join(caller->thread, NULL), 0);
	assert_int_equal(caller->wrong, 0);
}

static void everybody_gets_his_own_answer_once(void **state)
{
	(void)state;
	int each = (int)soak_scale(1000, 100000);
	struct counter c = {.done = 0};
	struct caller callers[THREADS];
	group_init(&c.group, count, &c);
	for (int i = 0; i < THREADS; i++) {
		callers[i] = (struct caller){.counter = &c,
		                             .from = i * each,
		                             .count = each,
		                             .first = i % 4 == 0};
		start(&callers[i]);
	}
	for (int i = 0; i < THREADS; i++)
		end(&callers[i]);
	assert_int_equal(c.done, (uint64_t)THREADS * (uint64_t)each);
	assert_in_range(c.commits, 1, c.done);
	group_done(&c.group);
}

/* One who is at work, and those who come meanwhile, one of whom renews. */
static void one_and_the_late(struct counter *c)
{
	struct caller early = {.counter = c, .count = 1}, late[LATE];
	start(&early);
	while (__atomic_load_n(&c->inside, __ATOMIC_ACQUIRE) == 0)
		sched_yield();
	for (int i = 0; i < LATE; i++) {
		late[i] = (struct caller){.counter = c,
		                          .from = i,
		                          .count = 1,
		                          .first = i == LATE / 2};
		start(&late[i]);
	}
	for (int i = 0; i < LATE; i++)
		end(&late[i]);
	end(&early);
}

static void those_who_come_meanwhile_get_into_one_commit_and_renewals_go_first(void **state)
{
	(void)state;
	struct counter c = {.wait_for = LATE};
	group_init(&c.group, count, &c);
	one_and_the_late(&c);
	assert_int_equal(c.commits, 2);
	assert_int_equal(c.sizes[0], 1);
	assert_int_equal(c.sizes[1], LATE);
	for (int i = 0; i < LATE; i++)
		assert_int_equal(c.firsts[i], i == 0);
	group_done(&c.group);
}

static void what_comes_together_is_in_one_commit_in_its_order(void **state)
{
	(void)state;
	struct counter c = {.done = 0};
	int odd = 1, even = 2;
	group_init(&c.group, count, &c);
	struct request one = {.run = take, .args = &odd, .err = BATON_OK};
	struct request two = {.run = take, .args = &even, .err = BATON_BUSY, .after = &one};
	assert_int_equal(group_do(&c.group, &two), BATON_OK);
	assert_int_equal(one.err, BATON_CONFLICT);
	assert_ptr_equal(one.next, &two);
	assert_int_equal(c.commits, 1);
	assert_int_equal(c.sizes[0], 2);
	assert_int_equal(c.group.previous, 1); /* caller */
	group_done(&c.group);
}

static void who_waits_awake_in_vain_twice_sleeps_and_so_do_those_of_the_next_batches(void **state)
{
	static const struct {
		uint32_t vain, last, until, spell;
	} cases[] = {
		{1, 0, 1, 8},         /* the first time                          */
		{1, 8, 1, 16},        /* again, when that was just over          */
		{1, 512, 1, 1024},    /* and again                               */
		{1, 1024, 1, 1024},   /* no longer than that                     */
		{1, 1024, -20U, 8},   /* the last time is long ago               */
		{-2U, 0, 1, 8},       /* the batch in vain before was the fourth */
		{-3U, 1024, 1, 0},    /* the fifth: that was chance              */
		{-1000U, 1024, 1, 0}, /* long ago                                */
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		bool sleeps = cases[i].spell > 0;
		struct counter c = {.wait_for = LATE, .vain = 2};
		group_init(&c.group, count, &c);
		c.group.vain = cases[i].vain;
		c.group.crowded_for = cases[i].last;
		c.group.crowded_until = cases[i].until;
		one_and_the_late(&c);
		assert_int_equal(c.group.crowded_for, sleeps ? cases[i].spell : cases[i].last);
		assert_int_equal(c.group.crowded_until,
		                 sleeps ? 2 + cases[i].spell : cases[i].until);
		assert_int_equal(c.sizes[1], LATE);
		group_done(&c.group);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everybody_gets_his_own_answer_once),
		cmocka_unit_test(
			those_who_come_meanwhile_get_into_one_commit_and_renewals_go_first),
		cmocka_unit_test(what_comes_together_is_in_one_commit_in_its_order),
		cmocka_unit_test(
			who_waits_awake_in_vain_twice_sleeps_and_so_do_those_of_the_next_batches),
	};
	return cmocka_run_group_tests_name("group", tests, NULL, NULL);
}
