/* Bytes from outside in a message. */
#include <string.h>

#include "base/quote.h"
#include "support/harness.h"

#define X10 "xxxxxxxxxx"
#define X70 X10 X10 X10 X10 X10 X10 X10

static void text_is_shown_so_that_it_cannot_be_mistaken(void **state)
{
	(void)state;
	static const struct {
		struct baton_str text;
		const char *shown;
	} cases[] = {
		{BATON_STR(""), "\"\""},
		{BATON_STR("5 apples"), "\"5 apples\""},
		{BATON_STR("a\"b\\c"), "\"a\\\"b\\\\c\""},
		{BATON_STR("\x1b[31m\r\n\t\x7f"), "\"\\x1b[31m\\x0d\\x0a\\x09\\x7f\""},
		{BATON_STR("nul\0nul"), "\"nul\\x00nul\""},
		{BATON_STR("\u00e9\u20ac\U0001f600"), "\"\u00e9\u20ac\U0001f600\""},
		{BATON_STR("\xc2\x85"), "\"\\xc2\\x85\""},
		{BATON_STR("\xff\xc3"), "\"\\xff\\xc3\""},
		{BATON_STR("\xed\xa0\x80"), "\"\\xed\\xa0\\x80\""},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[QUOTE_TEXT];
		assert_ptr_equal(quote(cases[i].text, text), text);
		assert_string_equal(text, cases[i].shown);
	}
	char text[QUOTE_TEXT];
	assert_string_equal(quote((struct baton_str){NULL, 0}, text), "\"\"");
}

static void what_does_not_fit_gives_way_to_an_ellipsis(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		const char *shown;
	} cases[] = {
		/* 77 bytes fit between the marks, or 74 and the ellipsis. */
		{X70 "1234567", "\"" X70 "1234567\""},
		{X70 "12345678", "\"" X70 "1234...\""},
		{X70 "12345\"7", "\"" X70 "1234...\""},
		{X70 "123\U0001f600", "\"" X70 "123\U0001f600\""},
		{X70 "123\U0001f600x", "\"" X70 "123...\""},
		{X70 "12\n34", "\"" X70 "12...\""},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[QUOTE_TEXT];
		assert_string_equal(quote(baton_str_z(cases[i].text), text), cases[i].shown);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_shown_so_that_it_cannot_be_mistaken),
		cmocka_unit_test(what_does_not_fit_gives_way_to_an_ellipsis),
	};
	return cmocka_run_group_tests_name("quote", tests, NULL, NULL);
}
