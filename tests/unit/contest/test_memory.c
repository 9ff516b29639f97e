/* Each of the few allocations fails in turn: nothing is left behind. Linked with --wrap=realloc. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include <baton/wakeup.h>

#include "world.h"

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);

static unsigned armed; /* how many allocations from now the failing one is; 0: none */

void *__wrap_realloc(void *old, size_t size)
{
	if (armed > 0 && --armed == 0)
		return NULL;
	return __real_realloc(old, size);
}

static unsigned entries_of(const char *folder)
{
	unsigned count = 0;
	DIR *dir = opendir(folder);
	assert_non_null(dir);
	while (readdir(dir) != NULL)
		count++;
	closedir(dir);
	return count;
}

static enum baton_err make_a_fleet(struct world *w, struct baton_fleet **ret)
{
	return baton_fleet_join(&w->options, ret);
}

static enum baton_err make_a_twin(struct world *w, struct baton_fleet **ret)
{
	return baton_fleet_twin(&w->options, ret);
}

/* Returns how many allocations there are. */
static unsigned fail_each(struct world *w,
                          enum baton_err (*make)(struct world *w, struct baton_fleet **ret))
{
	for (unsigned n = 1;; n++) {
		struct baton_fleet *f = NULL;
		unsigned fds = entries_of("/proc/self/fd"), files = entries_of(w->folder);
		armed = n;
		enum baton_err e = make(w, &f);
		bool fired = armed == 0;
		armed = 0;
		if (!fired) {
			assert_int_equal(e, BATON_OK);
			baton_fleet_leave(f);
			return n - 1;
		}
		assert_int_equal(e, BATON_NO_MEMORY);
		assert_null(f);
		assert_int_equal(entries_of("/proc/self/fd"), fds);
		assert_int_equal(entries_of(w->folder), files);
	}
}

static void joining_without_memory_leaves_nothing(void **state)
{
	assert_true(fail_each(*state, make_a_fleet) >= 1);
}

static void a_twin_without_memory_leaves_nothing(void **state)
{
	assert_true(fail_each(*state, make_a_twin) >= 2);
}

static void joining_a_twin_without_memory_leaves_it_as_it_was(void **state)
{
	struct world *w = *state;
	struct baton_fleet *f = NULL;
	armed = 1;
	assert_int_equal(baton_fleet_twin_join(w->ada, BATON_STR("cy"), &f), BATON_NO_MEMORY);
	assert_null(f);
	assert_int_equal(usage_of(w->ada).members, 2);
	assert_int_equal(baton_fleet_twin_join(w->ada, BATON_STR("cy"), &f), BATON_OK);
	baton_fleet_leave(f);
}

static void watching_without_memory_leaves_nothing(void **state)
{
	struct world *w = *state;
	unsigned fired = 0;
	for (unsigned n = 1; n <= 3; n++) {
		struct baton_watch *watch = NULL;
		unsigned fds = entries_of("/proc/self/fd");
		armed = n;
		assert_int_equal(baton_watch_open(w->path, &watch), BATON_NO_MEMORY);
		fired += armed == 0;
		assert_null(watch);
		assert_int_equal(entries_of("/proc/self/fd"), fds);
		armed = n;
		assert_int_equal(baton_watch_fleet(w->ada, &watch), BATON_NO_MEMORY);
		assert_null(watch);
		armed = 0;
	}
	assert_int_equal(fired, 3);
}

static void listening_without_memory_is_an_error(void **state)
{
	struct world *w = *state;
	struct baton_listener *l = NULL;
	struct baton_wakeup_interest interest = {1, 0};
	armed = 1;
	assert_int_equal(baton_listener_open(w->ada, &interest, 1, &l), BATON_NO_MEMORY);
	assert_null(l);
}

/* Everything that is done with claims does without. */
static void claims_need_no_memory(void **state)
{
	struct world *w = *state;
	struct baton_subject x = subject_of("x");
	armed = 1;
	struct baton_claim claim = hold(w->ada, "x");
	assert_int_equal(try_label(w->ben, "x", NULL), BATON_YIELD);
	assert_int_equal(baton_claim_renew(&claim, baton_duration_s(1)), BATON_OK);
	assert_int_equal(baton_claim_force(w->ben, &x, NULL), BATON_OK);
	struct baton_claim_ask ask = {.subject = &x, .until = some_day()};
	assert_int_equal(baton_claim_wait(w->ben, &ask, &claim, NULL), BATON_OK);
	assert_int_equal(baton_claim_release(&claim), BATON_OK);
	assert_int_equal(armed, 1);
	armed = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EMPTY_TEST(joining_without_memory_leaves_nothing),
		EMPTY_TEST(a_twin_without_memory_leaves_nothing),
		cmocka_unit_test_setup_teardown(joining_a_twin_without_memory_leaves_it_as_it_was,
	                                        world_setup_twin, world_teardown),
		WORLD_TEST(watching_without_memory_leaves_nothing),
		WORLD_TEST(listening_without_memory_is_an_error),
		WORLD_TEST(claims_need_no_memory),
	};
	return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
