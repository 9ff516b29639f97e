/* The judge of the demo: what is fine, and everything that must not be. */
#include "cli/judge.h"
#include "support/harness.h"

static bool begins(struct judge *j, const char *line, bool busy, int64_t now_ns)
{
	struct judge_record r;
	if (!judge_read(line, &r) || r.effect)
		return false;
	judge_begin(j, &r, busy, now_ns);
	return true;
}

static bool accepts(struct judge *j, const char *line)
{
	struct judge_record r;
	assert_true(judge_read(line, &r) && r.effect);
	return judge_effect(j, &r);
}

/* How much there is that must not be. */
static unsigned faults(const struct judge *j)
{
	return j->disordered + j->together + j->backward + j->strange;
}

static void a_line_has_lane_job_fence_and_pid(void **state)
{
	struct judge_record r;
	(void)state;
	assert_true(judge_read("effect 49 39 18446744073709551615 2147483647", &r));
	assert_true(r.effect && r.lane == 49 && r.job == 39 && r.fence == UINT64_MAX);
	assert_int_equal(r.pid, INT32_MAX);
	assert_true(judge_read("begin 0 0 0 0", &r));
	assert_false(r.effect);
}

static void no_other_line_is_read(void **state)
{
	static const char *const lines[] = {
		"",
		"effect",
		"effect 1 2 3",
		"effect 1 2 3 4 5",
		"effect 1 2 3 4 ",
		"effect  1 2 3 4",
		"effect 50 2 3 4",
		"effect 1 40 3 4",
		"effect 1 2 18446744073709551616 4",
		"effect 1 2 3 2147483648",
		"effect -1 2 3 4",
		"effect 1 +2 3 4",
		"effect1 2 3 4",
		"begins 1 2 3 4",
		"Begin 1 2 3 4",
		"effect x 2 3 4",
	};
	struct judge_record r;
	(void)state;
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
		if (judge_read(lines[i], &r))
			fail_msg("'%s' is read", lines[i]);
	}
}

static void what_goes_well_is_accepted(void **state)
{
	struct judge j = {.accepted = 0};
	(void)state;
	assert_true(begins(&j, "begin 3 0 7 100", false, 1));
	assert_true(accepts(&j, "effect 3 0 7 100"));
	assert_true(begins(&j, "begin 3 1 7 101", false, 2));
	assert_true(accepts(&j, "effect 3 1 7 101"));
	assert_int_equal(j.accepted, 2);
	assert_int_equal(faults(&j) + j.late + j.repeated, 0);
}

static void what_comes_under_an_old_fence_is_refused(void **state)
{
	struct judge j = {.accepted = 0};
	(void)state;
	begins(&j, "begin 3 0 7 100", false, 1);
	begins(&j, "begin 3 0 8 200", false, 2);
	assert_false(accepts(&j, "effect 3 0 7 100"));
	assert_int_equal(j.late, 1);
	assert_int_equal(j.accepted, 0);
	assert_true(accepts(&j, "effect 3 0 8 200"));
	assert_int_equal(faults(&j), 0);
}

static void what_was_done_already_is_set_aside(void **state)
{
	struct judge j = {.accepted = 0};
	(void)state;
	accepts(&j, "effect 3 0 7 100");
	assert_true(accepts(&j, "effect 3 0 8 200"));
	assert_int_equal(j.repeated, 1);
	assert_int_equal(j.accepted, 1);
	assert_int_equal(faults(&j), 0);
}

static void an_effect_before_its_turn_is_found(void **state)
{
	struct judge j = {.accepted = 0};
	(void)state;
	accepts(&j, "effect 3 1 7 100");
	assert_int_equal(j.disordered, 1);
	/* The one before is no repeat of it. */
	accepts(&j, "effect 3 0 7 101");
	assert_int_equal(j.accepted, 2);
	assert_int_equal(j.repeated, 0);
	assert_int_equal(faults(&j), 1);
}

static void a_handler_before_its_turn_is_found(void **state)
{
	struct judge j = {.accepted = 0};
	(void)state;
	begins(&j, "begin 3 0 7 100", false, 1);
	begins(&j, "begin 3 1 7 101", false, 2);
	assert_int_equal(j.disordered, 1);
	assert_int_equal(faults(&j), 1);
}

static void two_handlers_at_once_are_found(void **state)
{
	struct judge j = {.accepted = 0};
	(void)state;
	begins(&j, "begin 3 0 7 100", false, 1);
	begins(&j, "begin 3 0 8 200", true, 2);
	assert_int_equal(j.together, 1);
	assert_int_equal(faults(&j), 1);
}

static void an_owner_after_a_newer_one_is_found(void **state)
{
	struct judge j = {.accepted = 0};
	(void)state;
	begins(&j, "begin 3 0 8 200", false, 1);
	begins(&j, "begin 3 0 7 100", false, 2);
	assert_int_equal(j.backward, 1);
	assert_int_equal(faults(&j), 1);
	assert_int_equal(j.lanes[3].fence, 8);
}

static void lanes_have_nothing_to_do_with_each_other(void **state)
{
	struct judge j = {.accepted = 0};
	(void)state;
	begins(&j, "begin 3 0 8 200", false, 1);
	begins(&j, "begin 4 0 7 100", false, 2);
	accepts(&j, "effect 4 0 7 100");
	accepts(&j, "effect 3 0 8 200");
	assert_int_equal(faults(&j) + j.late, 0);
	assert_int_equal(j.accepted, 2);
}

static void a_lane_is_done_when_all_its_jobs_are(void **state)
{
	struct judge j = {.accepted = 0};
	(void)state;
	for (uint32_t i = 0; i < JUDGE_JOBS; i++) {
		assert_false(judge_lane_done(&j, 3));
		judge_effect(&j, &(struct judge_record){.effect = true, .lane = 3, .job = i});
	}
	assert_true(judge_lane_done(&j, 3));
	assert_false(judge_lane_done(&j, 4));
	assert_int_equal(faults(&j), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_has_lane_job_fence_and_pid),
		cmocka_unit_test(no_other_line_is_read),
		cmocka_unit_test(what_goes_well_is_accepted),
		cmocka_unit_test(what_comes_under_an_old_fence_is_refused),
		cmocka_unit_test(what_was_done_already_is_set_aside),
		cmocka_unit_test(an_effect_before_its_turn_is_found),
		cmocka_unit_test(a_handler_before_its_turn_is_found),
		cmocka_unit_test(two_handlers_at_once_are_found),
		cmocka_unit_test(an_owner_after_a_newer_one_is_found),
		cmocka_unit_test(lanes_have_nothing_to_do_with_each_other),
		cmocka_unit_test(a_lane_is_done_when_all_its_jobs_are),
	};
	return cmocka_run_group_tests_name("judge", tests, NULL, NULL);
}
