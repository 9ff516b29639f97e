/* Fences. */
#include "queue/fence.h"
#include "support/harness.h"

#define GRANTER_MAX ((UINT64_C(1) << 33) - 1)

static void lanes_and_pulled_queues_grant(void **state)
{
	(void)state;
	assert_int_equal(fence_kind_of(BATON_STR("lane/q/x")), FENCE_GRANTER);
	assert_int_equal(fence_kind_of(BATON_STR("pull/q")), FENCE_GRANTER);
	assert_int_equal(fence_kind_of(BATON_STR("lane")), FENCE_PLAIN);
	assert_int_equal(fence_kind_of(BATON_STR("lanes/q")), FENCE_PLAIN);
	assert_int_equal(fence_kind_of(BATON_STR("a lock")), FENCE_PLAIN);
}

static void floors_are_seconds_or_milliseconds_times_1024(void **state)
{
	(void)state;
	static const struct {
		int64_t ms;
		uint64_t granter, plain;
	} cases[] = {
		{-5, 0, 0},
		{0, 0, 0},
		{1767225600999, 1767225600, UINT64_C(1809639015422976)},
		{INT64_MAX, GRANTER_MAX / 2, FENCE_MAX / 2},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct baton_store_time now = {cases[i].ms};
		assert_int_equal(fence_floor(FENCE_GRANTER, now), cases[i].granter);
		assert_int_equal(fence_floor(FENCE_PLAIN, now), cases[i].plain);
	}
}

static void the_next_fence_is_above_the_last_and_the_floor(void **state)
{
	(void)state;
	uint64_t next = 0;
	assert_true(fence_next(FENCE_PLAIN, 0, 0, &next));
	assert_int_equal(next, 1);
	assert_true(fence_next(FENCE_PLAIN, 10, 5, &next));
	assert_int_equal(next, 11);
	assert_true(fence_next(FENCE_GRANTER, 5, 10, &next));
	assert_int_equal(next, 11);
	assert_true(fence_next(FENCE_PLAIN, FENCE_MAX - 1, 0, &next));
	assert_int_equal(next, FENCE_MAX);
	assert_false(fence_next(FENCE_PLAIN, FENCE_MAX, 0, &next));
	assert_true(fence_next(FENCE_GRANTER, GRANTER_MAX - 1, 0, &next));
	assert_false(fence_next(FENCE_GRANTER, GRANTER_MAX, 0, &next));
	assert_false(fence_next(FENCE_GRANTER, 0, GRANTER_MAX, &next));
}

static void claims_are_counted_under_their_granter(void **state)
{
	(void)state;
	struct fence_base base = {.granter = 3};
	struct fence_reach reach = {0};
	uint64_t fence;
	assert_true(fence_of_claim(&base, &reach, 0, &fence));
	assert_int_equal(fence, (UINT64_C(3) << 20) + 1);
	assert_true(fence_of_claim(&base, &reach, 0, &fence));
	assert_int_equal(fence, (UINT64_C(3) << 20) + 2);
	assert_int_equal(base.counter, 2);
	assert_int_equal(fence_granter_last(&base), 3);
}

static void a_claim_is_above_all_that_its_batches_have_had_and_so_are_those_after_it(void **state)
{
	(void)state;
	struct fence_base base = {.granter = 3, .counter = 5};
	struct fence_reach reach = {0};
	uint64_t last = (UINT64_C(3) << 20) + 5, fence;
	assert_true(fence_of_claim(&base, &reach, last - 1, &fence));
	assert_int_equal(fence, last + 1);
	assert_true(fence_of_claim(&base, &reach, last + 100, &fence));
	assert_int_equal(fence, last + 101);
	assert_true(fence_of_claim(&base, &reach, 0, &fence));
	assert_int_equal(fence, last + 102);
}

static void a_granter_comes_after_claims_that_ran_over(void **state)
{
	(void)state;
	struct fence_base base = {.granter = 3, .counter = (1 << 20) - 1};
	struct fence_reach reach = {0};
	uint64_t fence, next;
	assert_int_equal(fence_granter_last(&base), 3);
	assert_true(fence_of_claim(&base, &reach, 0, &fence));
	assert_int_equal(fence, UINT64_C(4) << 20);
	assert_int_equal(fence_granter_last(&base), 4);
	assert_true(fence_next(FENCE_GRANTER, fence_granter_last(&base), 0, &next));
	struct fence_base after = {.granter = next};
	uint64_t first;
	assert_true(fence_of_claim(&after, &reach, 0, &first));
	assert_true(first > fence);
}

static void there_is_an_end_to_fences(void **state)
{
	(void)state;
	struct fence_base base = {.granter = GRANTER_MAX, .counter = (1 << 20) - 2};
	struct fence_reach reach = {0};
	uint64_t fence = 0;
	assert_true(fence_of_claim(&base, &reach, 0, &fence));
	assert_int_equal(fence, FENCE_MAX);
	assert_false(fence_of_claim(&base, &reach, 0, &fence));
	base = (struct fence_base){.granter = 1};
	assert_false(fence_of_claim(&base, &reach, FENCE_MAX, &fence));
	assert_int_equal(base.counter, 0);
	reach.floor = FENCE_MAX;
	assert_false(fence_of_claim(&base, &reach, 0, &fence));
	assert_int_equal(base.counter, 0);
}

static void in_another_mode_claims_are_above_all_that_there_were(void **state)
{
	(void)state;
	struct fence_base high = {.granter = 9}, low = {.granter = 3};
	struct fence_reach reach = {0};
	uint64_t before, fence;
	assert_true(fence_of_claim(&high, &reach, 0, &before));
	assert_true(fence_of_claim(&low, &reach, 0, &fence));
	assert_int_equal(fence, (UINT64_C(3) << 20) + 1);
	assert_int_equal(reach.top, before);
	fence_reach_mode(&reach, BATON_QUEUE_LANE, BATON_QUEUE_LANE);
	fence_reach_mode(&reach, BATON_QUEUE_OPEN, BATON_QUEUE_LANE);
	assert_int_equal(reach.floor, 0);
	fence_reach_mode(&reach, BATON_QUEUE_LANE, BATON_QUEUE_OPEN);
	assert_int_equal(reach.floor, before);
	assert_true(fence_of_claim(&low, &reach, 0, &fence));
	assert_int_equal(fence, before + 1);
	assert_int_equal(fence_granter_last(&low), 9);
	assert_true(fence_of_claim(&low, &reach, 0, &fence));
	assert_int_equal(fence, before + 2);
	assert_int_equal(reach.top, fence);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lanes_and_pulled_queues_grant),
		cmocka_unit_test(floors_are_seconds_or_milliseconds_times_1024),
		cmocka_unit_test(the_next_fence_is_above_the_last_and_the_floor),
		cmocka_unit_test(claims_are_counted_under_their_granter),
		cmocka_unit_test(
			a_claim_is_above_all_that_its_batches_have_had_and_so_are_those_after_it),
		cmocka_unit_test(a_granter_comes_after_claims_that_ran_over),
		cmocka_unit_test(there_is_an_end_to_fences),
		cmocka_unit_test(in_another_mode_claims_are_above_all_that_there_were),
	};
	return cmocka_run_group_tests_name("fence", tests, NULL, NULL);
}
