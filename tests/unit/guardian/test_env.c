/* The environment of a command. */
#include "guardian/env.h"

#include "base/cleanup.h"
#include "support/fault.h"
#include "support/harness.h"

static char path[] = "PATH=/bin", fence_old[] = "BATON_FENCE=1", fenced[] = "BATON_FENCED=2",
	    fence[] = "BATON_FENCE=9", odd[] = "BATON_FENCE";
static char *base[] = {path, fence_old, fenced, odd, NULL};
static char *extra[] = {fence, NULL};

static void what_is_set_anew_replaces_what_was_there(void **state)
{
	(void)state;
	AUTO(env_done) struct env env = {.all = NULL};
	assert_int_equal(env_make(baton_alloc_libc(), base, extra, &env), BATON_OK);
	char *expected[] = {path, fenced, odd, fence};
	for (size_t i = 0; i < 4; i++)
		assert_ptr_equal(env.all[i], expected[i]);
	assert_null(env.all[4]);
}

static void nothing_at_all_is_fine(void **state)
{
	(void)state;
	AUTO(env_done) struct env env = {.all = NULL};
	char *none[] = {NULL};
	assert_int_equal(env_make(baton_alloc_libc(), none, none, &env), BATON_OK);
	assert_null(env.all[0]);
}

static void each_allocation_may_fail(void **state)
{
	(void)state;
	struct fault fault;
	fault_init(&fault);
	for (unsigned n = 1;; n++) {
		AUTO(env_done) struct env env = {.all = NULL};
		fault_arm(&fault, n);
		enum baton_err e = env_make(&fault.alloc, base, extra, &env);
		if (!fault_fired(&fault)) {
			assert_int_equal(e, BATON_OK);
			break;
		}
		assert_int_equal(e, BATON_NO_MEMORY);
		assert_null(env.all);
	}
	fault_done(&fault);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_set_anew_replaces_what_was_there),
		cmocka_unit_test(nothing_at_all_is_fine),
		cmocka_unit_test(each_allocation_may_fail),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
