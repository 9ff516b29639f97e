/* Whole numbers in their only form. */
#include "base/number.h"
#include "support/harness.h"

static void the_only_form_of_a_number_is_read(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t max;
		uint64_t value;
	} cases[] = {
		{"0", 0, 0},
		{"7", 7, 7},
		{"10", 10, 10},
		{"18446744073709551615", UINT64_MAX, UINT64_MAX},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint64_t n = 99;
		assert_true(number_parse(baton_str_z(cases[i].text), cases[i].max, &n));
		assert_int_equal(n, cases[i].value);
	}
}

static void any_other_form_is_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t max;
	} cases[] = {
		{"", 9},
		{"00", 9},
		{"01", 9},
		{"+1", 9},
		{"-1", 9},
		{" 1", 9},
		{"1 ", 9},
		{"1a", 99},
		{"0x1", 99},
		{"8", 7},
		{"18446744073709551616", UINT64_MAX},
		{"18446744073709551620", UINT64_MAX},
		{"99999999999999999999999", UINT64_MAX},
		{"\xd9\xa1", 9}, /* the Arabic digit one */
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint64_t n = 99;
		assert_false(number_parse(baton_str_z(cases[i].text), cases[i].max, &n));
		assert_int_equal(n, 99);
	}
	uint64_t n = 99;
	assert_false(number_parse((struct baton_str){"1\0", 2}, 9, &n));
	assert_int_equal(n, 99);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_only_form_of_a_number_is_read),
		cmocka_unit_test(any_other_form_is_refused),
	};
	return cmocka_run_group_tests_name("number", tests, NULL, NULL);
}
