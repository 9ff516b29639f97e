/* The lines that batches stand in: their names, and what holds in each. */
#include <string.h>

#include "queue/line.h"
#include "queue/place.h"
#include "support/harness.h"

#define NONE ((struct baton_str){NULL, 0})
#define LANE ((struct baton_str){"x", 1})
#define KEY ((struct baton_str){"\1x", 2})

static const struct baton_queue_policy policy = {.shards = 16,
                                                 .key_scope = BATON_KEY_SCOPE_CLUSTER};

static void the_name_says_what_the_batch_has(void **state)
{
	(void)state;
	static const struct {
		struct baton_str lane, key, name;
	} cases[] = {
		{{NULL, 0}, {NULL, 0}, {"", 0}},
		{{"x", 1}, {NULL, 0}, {"x", 1}},
		{{NULL, 0}, {"x", 1}, {"\1x", 2}},
		{{NULL, 0}, {"a/b", 3}, {"\1a/b", 4}},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[LINE_NAME_MAX];
		const struct baton_batch b = {.lane = cases[i].lane, .key = cases[i].key};
		struct baton_str name = line_name(&b, 17, &policy, text);
		assert_true(baton_str_equal(name, cases[i].name));
		assert_true(baton_str_equal(line_lane(name), cases[i].lane));
		assert_true(baton_str_equal(line_key(name), cases[i].key));
		assert_int_equal(line_is_keyed(name), cases[i].key.len > 0);
	}
}

static void several_keys_without_a_lane_have_one_of_their_own(void **state)
{
	(void)state;
	char text[LINE_NAME_MAX];
	struct baton_batch b = {.key = {"a\1b", 3}};
	struct baton_str name = line_name(&b, 17, &policy, text);
	assert_true(baton_str_equal(name, (struct baton_str){"\2"
	                                                     "17",
	                                                     3}));
	assert_false(line_is_keyed(name));
	assert_int_equal(line_lane(name).len, 0);
	assert_int_equal(line_key(name).len, 0);
	assert_true(line_has_guest(&b));
	b.lane = LANE;
	assert_true(baton_str_equal(line_name(&b, 17, &policy, text), LANE));
	assert_true(line_has_guest(&b));
	b.key.len = 1;
	assert_true(line_has_guest(&b));
	b.lane.len = 0;
	assert_false(line_has_guest(&b));
}

static void a_key_that_counts_on_each_host_has_a_line_in_each_shard(void **state)
{
	(void)state;
	char text[LINE_NAME_MAX];
	uint32_t shard = 0;
	const struct baton_queue_policy host = {.shards = 4096, .key_scope = BATON_KEY_SCOPE_HOST};
	const struct baton_batch b = {.key = {"x", 1}};
	struct baton_str name = line_name(&b, 4096 * 3 + 4095, &host, text);
	assert_true(baton_str_equal(name, (struct baton_str){"\1x\3"
	                                                     "4095",
	                                                     7}));
	assert_true(line_is_keyed(name));
	assert_true(line_is_sited(name, &shard));
	assert_int_equal(shard, 4095);
	assert_int_equal(place_of_line(BATON_STR("q"), name, 4096), 4095);
	assert_true(baton_str_equal(line_in_shard(KEY, 7, text), (struct baton_str){"\1x\3"
	                                                                            "7",
	                                                                            4}));
	name = line_name(&b, 4096 * 3 + 4095, &host, text);
	assert_true(baton_str_equal(line_key(name), b.key));
	assert_true(baton_str_equal(line_counted(name), KEY));
	assert_int_equal(line_lane(name).len, 0);
	assert_true(key_has_room(&host, 1000000));
	assert_false(key_is_usual(&host));
	assert_false(line_is_sited(KEY, NULL));
	assert_false(line_is_sited(LANE, NULL));
	assert_true(baton_str_equal(line_counted(KEY), KEY));
	assert_int_equal(line_on_retry(name,
	                               &(struct baton_queue_policy){.hold_on_retry =
	                                                                    BATON_HOLD_GIVE_UP}),
	                 LINE_RETRY_BEHIND);
}

static void the_longest_key_has_room_for_that(void **state)
{
	(void)state;
	char text[LINE_NAME_MAX], key[BATON_NAME_MAX];
	const struct baton_queue_policy host = {.shards = 4096,
	                                        .key_scope = BATON_KEY_SCOPE_PROCESS};
	memset(key, 'k', sizeof key);
	const struct baton_batch b = {.key = {key, sizeof key}};
	struct baton_str name = line_name(&b, 4095, &host, text);
	assert_int_equal(name.len, LINE_NAME_MAX);
	assert_int_equal(line_key(name).len, BATON_NAME_MAX);
}

static void keys_are_put_in_order_each_once(void **state)
{
	(void)state;
	static const struct {
		struct baton_str keys[4];
		size_t count;
		struct baton_str text;
	} cases[] = {
		{{{"b", 1}, {"a", 1}}, 2, {"a\1b", 3}},
		{{{"b", 1}, {"b", 1}}, 2, {"b", 1}},
		{{{"ab", 2}, {"a", 1}, {"b", 1}, {"a", 1}}, 4, {"a\1ab\1b", 6}},
		{{{"\xc3\xa9", 2}, {"z", 1}}, 2, {"z\1\xc3\xa9", 4}},
		{{{"a", 1}}, 1, {"a", 1}},
	};
	char text[LINE_KEYS_MAX];
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct baton_batch b = {.keys = cases[i].keys, .key_count = cases[i].count};
		struct baton_str joined = keys_join(&b, text);
		assert_true(baton_str_equal(joined, cases[i].text));
		assert_int_equal(keys_are_several(joined), keys_count(joined) > 1);
	}
	const struct baton_batch one = {.key = {"k", 1}};
	assert_true(baton_str_equal(keys_join(&one, text), one.key));
}

static void several_keys_are_read_one_after_the_other(void **state)
{
	(void)state;
	char text[LINE_KEYS_MAX];
	struct baton_str keys = {"a\1bc\1d", 6}, key;
	struct baton_str lines = lines_of_keys(keys, text), line;
	static const char *const names[] = {"a", "bc", "d"};
	assert_int_equal(keys_count(keys), 3);
	for (int i = 0; i < 3; i++) {
		assert_true(keys_next(&keys, &key));
		assert_true(baton_str_equal(key, baton_str_z(names[i])));
		assert_true(lines_next(&lines, &line));
		assert_true(line_is_keyed(line));
		assert_true(baton_str_equal(line_key(line), key));
	}
	assert_false(keys_next(&keys, &key));
	assert_false(lines_next(&lines, &line));
}

static void the_longest_key_has_a_name(void **state)
{
	(void)state;
	char key[BATON_NAME_MAX], text[LINE_NAME_MAX];
	memset(key, 'k', sizeof key);
	const struct baton_batch b = {.key = {key, sizeof key}};
	struct baton_str name = line_name(&b, 17, &policy, text);
	assert_int_equal(name.len, BATON_NAME_MAX + 1);
	assert_true(baton_str_equal(line_key(name), b.key));
}

static void a_key_has_the_place_that_a_lane_of_its_name_has(void **state)
{
	(void)state;
	struct baton_str queue = {"q", 1};
	assert_int_equal(place_of_line(queue, LANE, 4096), 2052);
	assert_int_equal(place_of_line(queue, KEY, 4096), 2052);
}

static void a_key_has_room_below_its_limit(void **state)
{
	(void)state;
	static const struct {
		uint32_t limit;
		uint64_t holds;
		bool room;
	} cases[] = {
		{1, 0, true},
		{1, 1, false},
		{1, 2, false},
		{3, 2, true},
		{3, 3, false},
		{3, 9, false},
		{BATON_QUEUE_KEY_LIMIT_MAX, 999999, true},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct baton_queue_policy p = baton_queue_policy_default();
		p.key_limit = cases[i].limit;
		assert_int_equal(key_has_room(&p, cases[i].holds), cases[i].room);
	}
}

static void who_gives_way_is_what_the_policy_says(void **state)
{
	(void)state;
	static const struct {
		enum baton_on_conflict policy;
		uint32_t limit;
		uint64_t holds, waiting;
		enum key_conflict expected;
	} cases[] = {
		{BATON_CONFLICT_WAIT, 1, 5, 5, KEY_NO_CONFLICT},
		{BATON_CONFLICT_SKIP, 1, 0, 0, KEY_NO_CONFLICT},
		{BATON_CONFLICT_SKIP, 1, 1, 0, KEY_SKIPS_TO_HOLDER},
		{BATON_CONFLICT_SKIP, 1, 0, 1, KEY_SKIPS_TO_HOLDER},
		{BATON_CONFLICT_SKIP, 3, 1, 1, KEY_NO_CONFLICT},
		{BATON_CONFLICT_SKIP, 3, 2, 1, KEY_SKIPS_TO_HOLDER},
		{BATON_CONFLICT_LATEST, 1, 0, 0, KEY_NO_CONFLICT},
		{BATON_CONFLICT_LATEST, 1, 1, 0, KEY_NO_CONFLICT},
		{BATON_CONFLICT_LATEST, 1, 0, 1, KEY_NO_CONFLICT},
		{BATON_CONFLICT_LATEST, 1, 1, 1, KEY_SKIPS_WAITING},
		{BATON_CONFLICT_LATEST, 1, 0, 2, KEY_SKIPS_WAITING},
		{BATON_CONFLICT_LATEST, 1, 2, 0, KEY_NO_CONFLICT}, /* the limit was higher */
		{BATON_CONFLICT_LATEST, 3, 2, 1, KEY_NO_CONFLICT},
		{BATON_CONFLICT_LATEST, 3, 2, 2, KEY_SKIPS_WAITING},
		{BATON_CONFLICT_FIRST, 1, 1, 0, KEY_NO_CONFLICT},
		{BATON_CONFLICT_FIRST, 1, 1, 1, KEY_SKIPS_TO_WAITING},
		{BATON_CONFLICT_FIRST, 2, 1, 1, KEY_NO_CONFLICT},
		{BATON_CONFLICT_FIRST, 2, 1, 2, KEY_SKIPS_TO_WAITING},
		{BATON_CONFLICT_REPLACE, 1, 0, 0, KEY_NO_CONFLICT},
		{BATON_CONFLICT_REPLACE, 1, 1, 0, KEY_REPLACES},
		{BATON_CONFLICT_REPLACE, 1, 0, 1, KEY_REPLACES},
		{BATON_CONFLICT_REPLACE, 3, 1, 1, KEY_NO_CONFLICT},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct baton_queue_policy p = baton_queue_policy_default();
		p.on_conflict = cases[i].policy;
		p.key_limit = cases[i].limit;
		if (key_conflict(&p, cases[i].holds, cases[i].waiting) != cases[i].expected)
			fail_msg("case %zu", i);
	}
}

static void a_retry_waits_where_its_queue_says(void **state)
{
	(void)state;
	static const struct {
		struct baton_str name;
		enum baton_on_retry lanes;
		enum baton_hold_on_retry keys;
		enum line_retry where;
	} cases[] = {
		{{NULL, 0}, BATON_ON_RETRY_BLOCK, BATON_HOLD_KEEP, LINE_RETRY_PASS},
		{{"x", 1}, BATON_ON_RETRY_BLOCK, BATON_HOLD_GIVE_UP, LINE_RETRY_KEEP},
		{{"x", 1}, BATON_ON_RETRY_PASS, BATON_HOLD_KEEP, LINE_RETRY_PASS},
		{{"\1x", 2}, BATON_ON_RETRY_PASS, BATON_HOLD_KEEP, LINE_RETRY_KEEP},
		{{"\1x", 2}, BATON_ON_RETRY_BLOCK, BATON_HOLD_GIVE_UP, LINE_RETRY_BEHIND},
		{{"\2"
	          "7",
	          2},
	         BATON_ON_RETRY_BLOCK,
	         BATON_HOLD_KEEP,
	         LINE_RETRY_PASS},
		{{"\2"
	          "7",
	          2},
	         BATON_ON_RETRY_BLOCK,
	         BATON_HOLD_GIVE_UP,
	         LINE_RETRY_BEHIND},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct baton_queue_policy p = baton_queue_policy_default();
		p.on_retry = cases[i].lanes;
		p.hold_on_retry = cases[i].keys;
		assert_int_equal(line_on_retry(cases[i].name, &p), cases[i].where);
	}
}

static void only_lanes_are_held_by_the_dead_and_have_a_retry_policy_of_their_own(void **state)
{
	(void)state;
	struct baton_queue_policy p = baton_queue_policy_default();
	assert_false(line_dead_holds(LANE, &p));
	p.on_dead = BATON_ON_DEAD_HOLD;
	assert_true(line_dead_holds(LANE, &p));
	assert_false(line_dead_holds(KEY, &p));
	assert_false(line_dead_holds(NONE, &p));
	assert_ptr_equal(line_retry_policy(LANE, &p), &p.retry_lane);
	assert_ptr_equal(line_retry_policy(KEY, &p), &p.retry);
	assert_ptr_equal(line_retry_policy(NONE, &p), &p.retry);
}

static void who_enters_a_line_takes_it_neither_forward_nor_back(void **state)
{
	(void)state;
	static const struct {
		struct line_before line;
		uint64_t seq, last, turn;
	} cases[] = {
		{{true, 0, 0}, 9, 9, 0},  /* put just now                             */
		{{true, 0, 0}, 3, 9, 9},  /* it begins behind all that wait           */
		{{false, 5, 0}, 9, 9, 0}, /* others were before it                    */
		{{false, 5, 0}, 8, 9, 0},
		{{false, 5, 0}, 3, 9, 5}, /* its line stays where it was              */
		{{false, 5, 7}, 3, 9, 7},
		{{false, 8, 7}, 3, 9, 8},
		{{false, 0, 7}, 3, 9, 7}, /* nobody waits, but somebody has the key   */
		{{false, 0, 0}, 3, 9, 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(line_turn(&cases[i].line, cases[i].seq, cases[i].last),
		                 cases[i].turn);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_name_says_what_the_batch_has),
		cmocka_unit_test(a_key_that_counts_on_each_host_has_a_line_in_each_shard),
		cmocka_unit_test(the_longest_key_has_room_for_that),
		cmocka_unit_test(several_keys_without_a_lane_have_one_of_their_own),
		cmocka_unit_test(keys_are_put_in_order_each_once),
		cmocka_unit_test(several_keys_are_read_one_after_the_other),
		cmocka_unit_test(the_longest_key_has_a_name),
		cmocka_unit_test(a_key_has_the_place_that_a_lane_of_its_name_has),
		cmocka_unit_test(a_key_has_room_below_its_limit),
		cmocka_unit_test(who_gives_way_is_what_the_policy_says),
		cmocka_unit_test(who_enters_a_line_takes_it_neither_forward_nor_back),
		cmocka_unit_test(a_retry_waits_where_its_queue_says),
		cmocka_unit_test(
			only_lanes_are_held_by_the_dead_and_have_a_retry_policy_of_their_own),
	};
	return cmocka_run_group_tests_name("line", tests, NULL, NULL);
}
