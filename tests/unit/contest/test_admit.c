/* Nobody is admitted who comes after somebody newer, in memory and in a file. */
#include <baton/admit.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "admit_world.h"
#include "base/cleanup.h"
#include "support/child.h"
#include "support/fault.h"
#include "support/harness.h"
#include "support/rng.h"
#include "support/soak.h"

#define FENCE_MAX ((UINT64_C(1) << 53) - 1)

static void only_the_highest_fence_is_admitted(void **state)
{
	AUTO(admit_closep) struct baton_admit *a = opened(*state);
	baton_fence highest = {77};
	assert_int_equal(baton_admit(a, BATON_STR("order-42"), (baton_fence){7}, &highest),
	                 BATON_OK);
	assert_int_equal(ask(a, "order-42", 7), BATON_OK);
	assert_int_equal(ask(a, "order-42", 9), BATON_OK);
	assert_int_equal(highest.v, 77);
	assert_int_equal(baton_admit(a, BATON_STR("order-42"), (baton_fence){8}, &highest),
	                 BATON_STALE);
	assert_int_equal(highest.v, 9);
	assert_int_equal(ask(a, "order-42", 7), BATON_STALE);
	assert_int_equal(ask(a, "order-42", 9), BATON_OK);
}

static void subjects_have_nothing_to_do_with_each_other(void **state)
{
	AUTO(admit_closep) struct baton_admit *a = opened(*state);
	char longest[BATON_ADMIT_SUBJECT_MAX];
	memset(longest, 'x', sizeof longest);
	assert_int_equal(ask(a, "a", 100), BATON_OK);
	assert_int_equal(ask(a, "b", 2), BATON_OK);
	assert_int_equal(ask(a, "ab", 3), BATON_OK);
	struct baton_str with_nul = {"a\0", 2};
	assert_int_equal(baton_admit(a, with_nul, (baton_fence){4}, NULL), BATON_OK);
	struct baton_str all = {longest, sizeof longest};
	struct baton_str but_one = {longest, sizeof longest - 1};
	assert_int_equal(baton_admit(a, all, (baton_fence){6}, NULL), BATON_OK);
	assert_int_equal(baton_admit(a, but_one, (baton_fence){5}, NULL), BATON_OK);
	assert_int_equal(mark_of(a, "a"), 100);
	assert_int_equal(mark_of(a, "b"), 2);
	assert_int_equal(mark_of(a, "ab"), 3);
}

static void bad_fences_and_subjects_say_what_is_allowed(void **state)
{
	AUTO(admit_closep) struct baton_admit *a = opened(*state);
	char longer[BATON_ADMIT_SUBJECT_MAX + 1];
	memset(longer, 'x', sizeof longer);
	struct baton_str too_long = {longer, sizeof longer};
	assert_int_equal(baton_admit(a, too_long, (baton_fence){5}, NULL), BATON_INVALID);
	assert_non_null(strstr(baton_err_detail(), "512"));
	assert_non_null(strstr(baton_err_detail(), "511"));
	assert_int_equal(ask(a, "", 5), BATON_INVALID);
	assert_int_equal(ask(a, NULL, 5), BATON_INVALID);
	assert_int_equal(ask(a, "s", 0), BATON_INVALID);
	assert_int_equal(ask(a, "s", FENCE_MAX + 1), BATON_INVALID);
	assert_non_null(strstr(baton_err_detail(), "9007199254740991"));
	assert_int_equal(ask(a, "s", UINT64_MAX), BATON_INVALID);
	assert_int_equal(ask(a, "s", 1), BATON_OK);
	assert_int_equal(ask(a, "s", FENCE_MAX), BATON_OK);
	assert_int_equal(mark_of(a, "s"), FENCE_MAX);
}

static void too_many_subjects_are_refused_and_the_others_stay(void **state)
{
	struct world *w = *state;
	AUTO(admit_closep) struct baton_admit *a = opened(w);
	char subject[16];
	for (unsigned i = 0; i < w->options.subjects; i++) {
		snprintf(subject, sizeof subject, "s%u", i);
		assert_int_equal(ask(a, subject, 10 + i), BATON_OK);
	}
	assert_int_equal(ask(a, "one more", 1), BATON_FULL);
	assert_non_null(strstr(baton_err_detail(), "16 subjects"));
	assert_int_equal(ask(a, "one more", 1), BATON_FULL);
	for (unsigned i = 0; i < w->options.subjects; i++) {
		snprintf(subject, sizeof subject, "s%u", i);
		assert_int_equal(mark_of(a, subject), 10 + i);
		assert_int_equal(ask(a, subject, 100), BATON_OK);
	}
	struct baton_admit_options options = w->options;
	options.subjects = BATON_ADMIT_SUBJECTS_MAX + 1;
	struct baton_admit *none = NULL;
	assert_int_equal(baton_admit_open(&options, &none), BATON_INVALID);
	assert_non_null(strstr(baton_err_detail(), "1048576"));
	assert_null(none);
}

static void many_subjects_keep_their_marks(void **state)
{
	struct world *w = *state;
	struct rng rng = rng_seed_from_env();
	enum {
		SUBJECTS = 500
	};
	uint64_t marks[SUBJECTS] = {0};
	w->options.subjects = SUBJECTS;
	AUTO(admit_closep) struct baton_admit *a = opened(w);
	for (unsigned i = 0; i < soak_scale(1500, 20000); i++) {
		char subject[16];
		size_t s = rng_below(&rng, SUBJECTS);
		uint64_t fence = marks[s] + rng_below(&rng, 3);
		fence -= fence > 1 && rng_below(&rng, 2) ? 1 : 0;
		fence += fence == 0;
		snprintf(subject, sizeof subject, "subject %zu", s);
		baton_fence highest = {marks[s]};
		enum baton_err e =
			baton_admit(a, baton_str_z(subject), (baton_fence){fence}, &highest);
		assert_int_equal(e, fence < marks[s] ? BATON_STALE : BATON_OK);
		assert_int_equal(highest.v, marks[s]);
		marks[s] = fence > marks[s] ? fence : marks[s];
	}
}

static enum baton_err scenario(const struct world *w, unsigned *ret_admitted)
{
	struct baton_admit *a = NULL;
	enum baton_err e = baton_admit_open(&w->options, &a);
	*ret_admitted = 0;
	for (unsigned i = 0; e == BATON_OK && i < w->options.subjects; i++) {
		char subject[16];
		snprintf(subject, sizeof subject, "s%u", i);
		e = ask(a, subject, 5);
		*ret_admitted += e == BATON_OK;
	}
	/* A failure takes nothing away. */
	for (unsigned i = 0; i < *ret_admitted; i++) {
		char subject[16];
		snprintf(subject, sizeof subject, "s%u", i);
		assert_int_equal(mark_of(a, subject), 5);
	}
	baton_admit_close(a);
	return e;
}

static void every_allocation_that_fails_is_an_error(void **state)
{
	struct world *w = *state;
	unsigned admitted;
	enum baton_err e;
	unsigned n = 1;
	for (;; n++) {
		unlink(w->path);
		fault_arm(&w->fault, n);
		e = scenario(w, &admitted);
		if (!fault_fired(&w->fault))
			break;
		assert_int_equal(e, BATON_NO_MEMORY);
		assert_non_null(strstr(baton_err_detail(), "no memory"));
		assert_int_equal(fault_live_blocks(&w->fault), 0);
	}
	assert_int_equal(e, BATON_OK);
	assert_int_equal(admitted, w->options.subjects);
	assert_true(n > (w->options.path ? 1 : 2));
}

static void closing_nothing_is_fine(void **state)
{
	(void)state;
	baton_admit_close(NULL);
}

static int use_the_parents(int channel, void *arg)
{
	(void)channel;
	if (ask(arg, "s", 6) != BATON_GONE)
		return 1;
	baton_admit_close(arg);
	return 0;
}

static void a_forked_child_has_to_open_for_itself(void **state)
{
	AUTO(admit_closep) struct baton_admit *a = opened(*state);
	struct child c;
	assert_int_equal(ask(a, "s", 5), BATON_OK);
	child_start(&c, use_the_parents, a);
	assert_int_equal(child_reap(&c), 0);
	assert_int_equal(mark_of(a, "s"), 5);
}

#define EACH 150

struct adder {
	struct baton_admit *admit;
	unsigned first;
	unsigned failed;
};

static void *add_subjects(void *arg)
{
	struct adder *adder = arg;
	for (unsigned i = adder->first; i < adder->first + EACH; i++) {
		char subject[16];
		enum baton_err e;
		snprintf(subject, sizeof subject, "s%u", i);
		do
			e = ask(adder->admit, subject, 10 + i);
		while (e == BATON_BUSY); /* as it may be where the machine is */
		adder->failed += e != BATON_OK;
	}
	return NULL;
}

static void threads_that_add_subjects_at_once_lose_none(void **state)
{
	struct world *w = *state;
	pthread_t threads[4];
	struct adder adders[4];
	w->options.subjects = 4 * EACH;
	AUTO(admit_closep) struct baton_admit *a = opened(w);
	for (unsigned i = 0; i < 4; i++) {
		adders[i] = (struct adder){.admit = a, .first = i * EACH};
		assert_int_equal(pthread_create(&threads[i], NULL, add_subjects, &adders[i]), 0);
	}
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(adders[i].failed, 0);
	}
	for (unsigned i = 0; i < 4 * EACH; i++) {
		char subject[16];
		snprintf(subject, sizeof subject, "s%u", i);
		assert_int_equal(mark_of(a, subject), 10 + i);
	}
	assert_int_equal(ask(a, "one more", 1), BATON_FULL);
}

static void threads_admit_nobody_too_late(void **state)
{
	AUTO(admit_closep) struct baton_admit *a = opened(*state);
	_Atomic uint64_t admitted = 0;
	struct crew crew = {.admit = a, .admitted = &admitted, .rounds = 300};
	crew_run(&crew);
	assert_false(crew.wrong);
	assert_true(crew.ok > 0);
	assert_true(mark_of(a, "s") >= admitted);
}

#define IN_BOTH(name)                                                                 \
	{#name " in a file", name, world_setup, world_teardown, NULL},                \
	{                                                                             \
#name " in memory", name, world_setup_in_memory, world_teardown, NULL \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_BOTH(only_the_highest_fence_is_admitted),
		IN_BOTH(subjects_have_nothing_to_do_with_each_other),
		IN_BOTH(bad_fences_and_subjects_say_what_is_allowed),
		IN_BOTH(too_many_subjects_are_refused_and_the_others_stay),
		IN_BOTH(many_subjects_keep_their_marks),
		IN_BOTH(every_allocation_that_fails_is_an_error),
		IN_BOTH(a_forked_child_has_to_open_for_itself),
		IN_BOTH(threads_that_add_subjects_at_once_lose_none),
		IN_BOTH(threads_admit_nobody_too_late),
		cmocka_unit_test(closing_nothing_is_fine),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
