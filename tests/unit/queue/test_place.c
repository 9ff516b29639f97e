/* Which shard a lane belongs to. The literals come from sha256sum: the first 14 digits of
 * printf 'QUEUE\0LANE' | sha256sum, modulo the number of shards. */
#include "queue/place.h"
#include "support/harness.h"

static void a_lane_has_its_place_by_the_digest_of_its_names(void **state)
{
	(void)state;
	static const struct {
		struct baton_str queue, lane;
		uint32_t of_16, of_4096, of_7;
	} cases[] = {
		{{"orders", 6}, {"customer 7", 10}, 6, 4070, 6},
		{{"q", 1}, {"x", 1}, 4, 2052, 2},
		{{"q", 1}, {"y", 1}, 4, 996, 5},
		{{"\303\244", 2}, {"a/b", 3}, 8, 1048, 6},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(place_of_lane(cases[i].queue, cases[i].lane, 1), 0);
		assert_int_equal(place_of_lane(cases[i].queue, cases[i].lane, 16), cases[i].of_16);
		assert_int_equal(place_of_lane(cases[i].queue, cases[i].lane, 4096),
		                 cases[i].of_4096);
		assert_int_equal(place_of_lane(cases[i].queue, cases[i].lane, 7), cases[i].of_7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lane_has_its_place_by_the_digest_of_its_names),
	};
	return cmocka_run_group_tests_name("place", tests, NULL, NULL);
}
