/* How long lanes stand still: counted from the blow to the first handler of another owner. */
#include "cli/failover.h"
#include "support/harness.h"

static void begin(struct judge *j, uint32_t lane, uint64_t fence, int64_t now_ns)
{
	const struct judge_record r = {.lane = lane, .fence = fence};
	judge_begin(j, &r, false, now_ns);
}

static void each_lane_counts_until_a_newer_owner_begins(void **state)
{
	struct judge j = {.accepted = 0};
	struct failover f = {.hit = {[1] = true, [2] = true}};
	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		begin(&j, i, 5, 10);
	failover_begin(&f, &j, 100);
	assert_false(failover_look(&f, &j));
	begin(&j, 1, 6, 130);
	assert_false(failover_look(&f, &j));
	begin(&j, 2, 5, 140); /* the same owner still */
	assert_false(failover_look(&f, &j));
	begin(&j, 2, 7, 150);
	begin(&j, 3, 7, 190); /* that one was not hit */
	assert_true(failover_look(&f, &j));
	struct failover_sum sum = failover_sum(&f);
	assert_int_equal(sum.lanes, 2);
	assert_int_equal(sum.least_ns, 30);
	assert_int_equal(sum.most_ns, 50);
}

static void what_moves_later_changes_nothing(void **state)
{
	struct judge j = {.accepted = 0};
	struct failover f = {.hit = {[1] = true}};
	(void)state;
	failover_begin(&f, &j, 100);
	begin(&j, 1, 6, 130);
	assert_true(failover_look(&f, &j));
	begin(&j, 1, 7, 170);
	assert_true(failover_look(&f, &j));
	assert_int_equal(failover_sum(&f).most_ns, 30);
}

static void a_lane_with_nothing_to_come_is_not_waited_for(void **state)
{
	struct judge j = {.accepted = 0};
	struct failover f = {.hit = {[1] = true}};
	(void)state;
	for (uint32_t i = 0; i < JUDGE_JOBS; i++)
		judge_effect(&j, &(struct judge_record){.effect = true, .lane = 1, .job = i});
	failover_begin(&f, &j, 100);
	assert_true(failover_look(&f, &j));
	assert_int_equal(failover_sum(&f).lanes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_lane_counts_until_a_newer_owner_begins),
		cmocka_unit_test(what_moves_later_changes_nothing),
		cmocka_unit_test(a_lane_with_nothing_to_come_is_not_waited_for),
	};
	return cmocka_run_group_tests_name("failover", tests, NULL, NULL);
}
