/* How many clients there may be in a time. */
#include "handoff/quota.h"

#include "support/harness.h"

static struct baton_mono at_ms(int64_t ms)
{
	return (struct baton_mono){ms * 1000000};
}

static int64_t wait_ms(const struct baton_broker_rate *rate, const struct quota_use *use,
                       int64_t now_ms)
{
	return quota_wait(rate, use, at_ms(now_ms)).ns / 1000000;
}

static void so_many_come_at_once_and_then_one_by_one(void **state)
{
	const struct baton_broker_rate rate = {4, baton_duration_ms(1000)};
	struct quota_use use = {.full = {0}};
	(void)state;
	for (int i = 0; i < 4; i++) {
		assert_int_equal(wait_ms(&rate, &use, 5000), 0);
		quota_take(&rate, &use, at_ms(5000));
	}
	assert_int_equal(wait_ms(&rate, &use, 5000), 250);
	assert_int_equal(wait_ms(&rate, &use, 5249), 1);
	assert_int_equal(wait_ms(&rate, &use, 5250), 0);
	quota_take(&rate, &use, at_ms(5250));
	assert_int_equal(wait_ms(&rate, &use, 5250), 250);
}

static void what_was_not_used_is_there_again_and_not_more(void **state)
{
	const struct baton_broker_rate rate = {2, baton_duration_ms(1000)};
	struct quota_use use = {.full = {0}};
	(void)state;
	quota_take(&rate, &use, at_ms(1000));
	/* After a long time two are there, not more. */
	quota_take(&rate, &use, at_ms(900000));
	quota_take(&rate, &use, at_ms(900000));
	assert_int_equal(wait_ms(&rate, &use, 900000), 500);
}

static void a_window_that_is_no_multiple_loses_none(void **state)
{
	const struct baton_broker_rate rate = {3, baton_duration_ms(1)};
	struct quota_use use = {.full = {0}};
	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(quota_wait(&rate, &use, at_ms(1)).ns, 0);
		quota_take(&rate, &use, at_ms(1));
	}
	assert_true(quota_wait(&rate, &use, at_ms(1)).ns > 0);
}

static void without_a_count_there_is_no_limit(void **state)
{
	const struct baton_broker_rate rate = {0, {0}};
	struct quota_use use = {.full = {0}};
	(void)state;
	for (int i = 0; i < 100; i++)
		quota_take(&rate, &use, at_ms(1));
	assert_int_equal(quota_wait(&rate, &use, at_ms(1)).ns, 0);
	assert_int_equal(use.full.ns, 0);
}

static void users_are_counted_apart(void **state)
{
	const struct baton_broker_rate rate = {1, baton_duration_ms(1000)};
	struct quota_users users = {.count = 0};
	(void)state;
	quota_take(&rate, quota_user(&users, 7, at_ms(1)), at_ms(1));
	assert_int_equal(wait_ms(&rate, quota_user(&users, 7, at_ms(1)), 1), 1000);
	assert_int_equal(wait_ms(&rate, quota_user(&users, 8, at_ms(1)), 1), 0);
}

static void a_user_who_still_has_to_wait_keeps_his_place(void **state)
{
	const struct baton_broker_rate rate = {1, baton_duration_ms(1000)};
	struct quota_users users = {.count = 0};
	(void)state;
	for (uint32_t uid = 0; uid < QUOTA_USERS_MAX; uid++)
		quota_take(&rate, quota_user(&users, uid, at_ms(uid)), at_ms(uid));
	assert_null(quota_user(&users, 1000, at_ms(999)));
	/* The first is as good as new at exactly its end. */
	struct quota_use *use = quota_user(&users, 1000, at_ms(1000));
	assert_non_null(use);
	assert_int_equal(use->full.ns, 0);
	assert_int_equal(users.all[0].uid, 1000);
	assert_int_equal(wait_ms(&rate, quota_user(&users, 1, at_ms(1000)), 1000), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(so_many_come_at_once_and_then_one_by_one),
		cmocka_unit_test(what_was_not_used_is_there_again_and_not_more),
		cmocka_unit_test(a_window_that_is_no_multiple_loses_none),
		cmocka_unit_test(without_a_count_there_is_no_limit),
		cmocka_unit_test(users_are_counted_apart),
		cmocka_unit_test(a_user_who_still_has_to_wait_keeps_his_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
