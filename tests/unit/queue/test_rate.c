/* How often a key may start. */
#include <string.h>

#include "queue/rate.h"
#include "support/harness.h"

#define MOST 4
#define AT(ms_) ((struct baton_store_time){ms_})

static const struct baton_key_rate rate = {3, {10000000}}; /* 3 in 10 ms */

struct starts {
	size_t count;
	struct baton_store_time list[MOST];
};

static void assert_starts(const struct starts *is, const struct starts *should)
{
	assert_int_equal(is->count, should->count);
	for (size_t i = 0; i < should->count; i++)
		assert_int_equal(is->list[i].ms, should->list[i].ms);
}

static void what_has_left_the_window_counts_no_more(void **state)
{
	(void)state;
	static const struct {
		struct starts were;
		int64_t now;
		struct starts are;
	} cases[] = {
		{{0, {{0}}}, 100, {0, {{0}}}},
		{{1, {{100}}}, 109, {1, {{100}}}},
		{{1, {{100}}}, 110, {0, {{0}}}}, /* at the edge it is out */
		{{3, {{100}, {101}, {105}}}, 111, {1, {{105}}}},
		{{4, {{100}, {101}, {102}, {103}}}, 103, {3, {{101}, {102}, {103}}}},
		/* The clock was set back. */
		{{3, {{100}, {101}, {105}}}, 103, {3, {{100}, {101}, {103}}}},
		{{2, {{100}, {101}}}, 3, {2, {{3}, {3}}}},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct starts s = cases[i].were;
		s.count = rate_look(&rate, s.list, s.count, AT(cases[i].now));
		assert_starts(&s, &cases[i].are);
	}
}

static void a_start_is_added_behind_those_that_count(void **state)
{
	(void)state;
	struct starts s = {2, {{100}, {105}}};
	s.count = rate_start(&rate, s.list, s.count, AT(110));
	assert_starts(&s, &(struct starts){2, {{105}, {110}}});
	s.count = rate_start(&rate, s.list, s.count, AT(110));
	assert_starts(&s, &(struct starts){3, {{105}, {110}, {110}}});
	s.count = rate_start(&rate, s.list, s.count, AT(110)); /* after a clock was set back */
	assert_starts(&s, &(struct starts){3, {{110}, {110}, {110}}});
}

static void a_full_window_ends_when_its_first_start_leaves(void **state)
{
	(void)state;
	const struct baton_store_time starts[] = {{100}, {104}, {105}};
	static const struct baton_key_rate off = {0, {0}}, finer = {1, {9000001}};
	assert_int_equal(rate_until(&rate, starts, 0).ms, 0);
	assert_int_equal(rate_until(&rate, starts, 2).ms, 0);
	assert_int_equal(rate_until(&rate, starts, 3).ms, 110);
	assert_int_equal(rate_until(&finer, starts, 1).ms, 110); /* never too early */
	assert_int_equal(rate_until(&off, starts, 3).ms, 0);
	assert_int_equal(rate_over(&rate, starts, 3).ms, 115);
	assert_false(rate_is_ahead(&rate, AT(110), AT(100)));
	assert_true(rate_is_ahead(&rate, AT(110), AT(99)));
}

static void only_the_lines_of_keys_are_rated(void **state)
{
	(void)state;
	struct baton_queue_policy p = {.key_rate = rate};
	assert_true(line_is_rated(BATON_STR("\1k"), &p));
	assert_false(line_is_rated(BATON_STR("lane"), &p));
	assert_false(line_is_rated((struct baton_str){NULL, 0}, &p));
	p.key_rate.starts = 0;
	assert_false(line_is_rated(BATON_STR("\1k"), &p));
}

static void starts_in_a_place_have_a_name_of_their_own(void **state)
{
	(void)state;
	char a[RATE_NAME_MAX], b[RATE_NAME_MAX], key[LINE_NAME_MAX], line[LINE_NAME_MAX];
	struct baton_queue_policy p = {.key_scope = BATON_KEY_SCOPE_HOST};
	struct baton_owner one = {.pid = 1, .incarnation.bytes = {1}, .boot.bytes = {9}};
	struct baton_owner two = {.pid = 2, .incarnation.bytes = {2}, .boot.bytes = {9}};
	memset(key, 'k', sizeof key);
	key[0] = LINE_KEYED;
	const struct baton_str longest = {key, 1 + BATON_NAME_MAX};
	const struct baton_str first = line_in_shard(longest, 4095, line);
	/* That of a key of the cluster is its own line. */
	assert_true(baton_str_equal(rate_name(longest, &p, &one, a), longest));
	struct baton_str name = rate_name(first, &p, &one, a);
	assert_true(name.len <= RATE_NAME_MAX);
	assert_false(line_is_keyed(name));
	assert_true(baton_str_equal(rate_line(name), longest));
	assert_true(baton_str_equal(rate_line(longest), longest));
	assert_true(baton_str_equal(name, rate_name(first, &p, &two, b)));
	/* Who is opaque is alone on his host. */
	two.pid = 0;
	assert_false(baton_str_equal(name, rate_name(first, &p, &two, b)));
	two.pid = 2;
	p.key_scope = BATON_KEY_SCOPE_PROCESS;
	name = rate_name(first, &p, &one, a);
	assert_false(baton_str_equal(name, rate_name(first, &p, &two, b)));
	const struct baton_str site = rate_site(BATON_KEY_SCOPE_PROCESS, &one, b);
	assert_memory_equal(name.ptr, site.ptr, site.len);
	assert_int_equal(name.ptr[site.len], LINE_KEYED);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_has_left_the_window_counts_no_more),
		cmocka_unit_test(a_start_is_added_behind_those_that_count),
		cmocka_unit_test(a_full_window_ends_when_its_first_start_leaves),
		cmocka_unit_test(only_the_lines_of_keys_are_rated),
		cmocka_unit_test(starts_in_a_place_have_a_name_of_their_own),
	};
	return cmocka_run_group_tests_name("rate", tests, NULL, NULL);
}
