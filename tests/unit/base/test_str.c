/* Views of bytes, and the names among them. */
#include <baton/str.h>

#include "support/harness.h"

static void a_view_of_a_literal_or_a_c_string_has_its_length(void **state)
{
	(void)state;
	assert_int_equal(BATON_STR("a\0b").len, 3);
	assert_int_equal(BATON_STR("").len, 0);
	assert_int_equal(baton_str_z("abc").len, 3);
	assert_int_equal(baton_str_z(NULL).len, 0);
	assert_null(baton_str_z(NULL).ptr);
}

static void views_are_equal_when_their_bytes_are(void **state)
{
	(void)state;
	char copy[] = "abc";
	assert_true(baton_str_equal(BATON_STR("abc"), baton_str_z(copy)));
	assert_true(baton_str_equal(BATON_STR(""), (struct baton_str){NULL, 0}));
	assert_false(baton_str_equal(BATON_STR("abc"), BATON_STR("ab")));
	assert_false(baton_str_equal(BATON_STR("abc"), BATON_STR("abd")));
	assert_false(baton_str_equal(BATON_STR("a\0b"), BATON_STR("a\0c")));
}

static void a_view_of_one_to_max_bytes_is_made(void **state)
{
	(void)state;
	struct baton_str s;
	assert_int_equal(baton_str_make("key", "x", 1, 3, &s), BATON_OK);
	assert_true(baton_str_equal(s, BATON_STR("x")));
	assert_int_equal(baton_str_make("key", "\xff\0\n", 3, 3, &s), BATON_OK);
	assert_true(baton_str_equal(s, BATON_STR("\xff\0\n")));
}

static void a_view_outside_its_limits_is_refused_with_both_lengths(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		size_t len;
		const char *detail;
	} cases[] = {
		{"", 0, "the key is empty: 1 to 3 bytes are allowed"},
		{NULL, 0, "the key is empty: 1 to 3 bytes are allowed"},
		{NULL, 1, "the key is missing: 1 to 3 bytes are allowed"},
		{"abcd", 4, "the key has 4 bytes: 1 to 3 are allowed"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct baton_str s = BATON_STR("untouched");
		assert_int_equal(baton_str_make("key", cases[i].bytes, cases[i].len, 3, &s),
		                 BATON_INVALID);
		assert_string_equal(baton_err_detail(), cases[i].detail);
		assert_true(baton_str_equal(s, BATON_STR("untouched")));
		assert_int_equal(baton_str_name("key", cases[i].bytes, cases[i].len, 3, &s),
		                 BATON_INVALID);
		assert_string_equal(baton_err_detail(), cases[i].detail);
	}
}

static void a_name_is_utf8_without_control_characters(void **state)
{
	(void)state;
	struct baton_str s;
	static const struct baton_str good[] = {
		BATON_STR("a"), BATON_STR("two words"), BATON_STR("J\u00fcrgen \u20ac \U0001f600"),
		BATON_STR("~"), BATON_STR("\u00a0"), /* the first character after C1 */
	};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		assert_int_equal(baton_str_name("queue", good[i].ptr, good[i].len, 255, &s),
		                 BATON_OK);
		assert_true(baton_str_equal(s, good[i]));
	}
	static const struct {
		struct baton_str name;
		const char *detail;
	} bad[] = {
		{BATON_STR("\0"), "the queue has the control character U+0000 at byte 0"},
		{BATON_STR("ab\n"), "the queue has the control character U+000A at byte 2"},
		{BATON_STR("ab\x1f"), "the queue has the control character U+001F at byte 2"},
		{BATON_STR("\x7f"), "the queue has the control character U+007F at byte 0"},
		{BATON_STR("\u00e9\xc2\x80"),
	         "the queue has the control character U+0080 at byte 2"},
		{BATON_STR("\xc2\x9f"), "the queue has the control character U+009F at byte 0"},
		{BATON_STR("a\xff"), "the queue is not valid UTF-8 at byte 1"},
		{BATON_STR("abc\xe2\x82"), "the queue is not valid UTF-8 at byte 3"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		s = BATON_STR("untouched");
		assert_int_equal(baton_str_name("queue", bad[i].name.ptr, bad[i].name.len, 255, &s),
		                 BATON_INVALID);
		assert_string_equal(baton_err_detail(), bad[i].detail);
		assert_true(baton_str_equal(s, BATON_STR("untouched")));
	}
}

static void only_the_shortest_forms_of_characters_are_utf8(void **state)
{
	(void)state;
	static const struct {
		struct baton_str text;
		bool valid;
	} cases[] = {
		{BATON_STR(""), true},
		{BATON_STR("\0"), true},
		{BATON_STR("\x7f"), true},
		{BATON_STR("\x80"), false},
		{BATON_STR("\xbf"), false},
		{BATON_STR("\xc0\x80"), false},         /* U+0000 in two bytes   */
		{BATON_STR("\xc1\xbf"), false},         /* U+007F in two bytes   */
		{BATON_STR("\xc2\x80"), true},          /* U+0080                */
		{BATON_STR("\xdf\xbf"), true},          /* U+07FF                */
		{BATON_STR("\xe0\x9f\xbf"), false},     /* U+07FF in three bytes */
		{BATON_STR("\xe0\xa0\x80"), true},      /* U+0800                */
		{BATON_STR("\xed\x9f\xbf"), true},      /* U+D7FF                */
		{BATON_STR("\xed\xa0\x80"), false},     /* a surrogate           */
		{BATON_STR("\xed\xbf\xbf"), false},     /* a surrogate           */
		{BATON_STR("\xee\x80\x80"), true},      /* U+E000                */
		{BATON_STR("\xef\xbf\xbf"), true},      /* U+FFFF                */
		{BATON_STR("\xf0\x8f\xbf\xbf"), false}, /* U+FFFF in four bytes  */
		{BATON_STR("\xf0\x90\x80\x80"), true},  /* U+10000               */
		{BATON_STR("\xf4\x8f\xbf\xbf"), true},  /* U+10FFFF              */
		{BATON_STR("\xf4\x90\x80\x80"), false}, /* U+110000              */
		{BATON_STR("\xf5\x80\x80\x80"), false},
		{BATON_STR("\xff"), false},
		{BATON_STR("\xc2"), false},
		{BATON_STR("\xc2"
	                   "a"),
	         false},
		{BATON_STR("\xe2\x82"), false},
		{BATON_STR("\xe2\x82"
	                   "a"),
	         false},
		{BATON_STR("\xf0\x9f\x98"), false},
		{BATON_STR("\xf0\x9f\x98"
	                   "a"),
	         false},
		{BATON_STR("ok\xe2\x82\xac ok"), true},
		{{NULL, 0}, true},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(baton_str_is_utf8(cases[i].text), cases[i].valid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_view_of_a_literal_or_a_c_string_has_its_length),
		cmocka_unit_test(views_are_equal_when_their_bytes_are),
		cmocka_unit_test(a_view_of_one_to_max_bytes_is_made),
		cmocka_unit_test(a_view_outside_its_limits_is_refused_with_both_lengths),
		cmocka_unit_test(a_name_is_utf8_without_control_characters),
		cmocka_unit_test(only_the_shortest_forms_of_characters_are_utf8),
	};
	return cmocka_run_group_tests_name("str", tests, NULL, NULL);
}
