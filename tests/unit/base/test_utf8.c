/* Characters in bytes. */
#include "base/utf8.h"

#include <string.h>

#include "support/harness.h"

/* Written from the definition's other end: encodes `ch`, whatever it is, and returns the length. */
static size_t encode(uint32_t ch, char out[4])
{
	if (ch < 0x80) {
		out[0] = (char)ch;
		return 1;
	}
	size_t n = ch < 0x800 ? 2 : ch < 0x10000 ? 3 : 4;
	for (size_t i = n; i-- > 1; ch >>= 6)
		out[i] = (char)(0x80 | (ch & 0x3f));
	static const uint32_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
	out[0] = (char)(lead[n] | ch);
	return n;
}

static void every_character_is_read_and_no_surrogate(void **state)
{
	(void)state;
	for (uint32_t ch = 0; ch < 0x120000; ch++) {
		char bytes[4];
		size_t len = encode(ch, bytes);
		bool valid = ch <= 0x10ffff && (ch < 0xd800 || ch > 0xdfff);
		uint32_t read = UINT32_MAX;
		if (utf8_next(bytes, len, &read) != (valid ? len : 0))
			fail_msg("U+%04X of %zu bytes", (unsigned)ch, len);
		if (read != (valid ? ch : UINT32_MAX))
			fail_msg("U+%04X was read as U+%04X", (unsigned)ch, (unsigned)read);
		for (size_t cut = 0; cut < len; cut++)
			if (utf8_next(bytes, cut, &read) != 0)
				fail_msg("U+%04X was read from %zu bytes", (unsigned)ch, cut);
	}
}

static void controls_are_c0_del_and_c1(void **state)
{
	(void)state;
	for (uint32_t ch = 0; ch < 0x200; ch++) {
		bool control = ch <= 0x1f || ch == 0x7f || (ch >= 0x80 && ch <= 0x9f);
		assert_int_equal(utf8_is_control(ch), control);
	}
}

static void a_cut_never_ends_inside_a_character(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		size_t len;
		size_t cut;
	} cases[] = {
		{"", 0, 0},
		{"a", 1, 1},
		{"\xc3\xa9", 1, 0},
		{"\xc3\xa9", 2, 2},
		{"a\xe2\x82\xac", 2, 1},
		{"a\xe2\x82\xac", 3, 1},
		{"a\xe2\x82\xac", 4, 4},
		{"a\xf0\x9f\x98\x80", 2, 1},
		{"a\xf0\x9f\x98\x80", 3, 1},
		{"a\xf0\x9f\x98\x80", 4, 1},
		{"a\xf0\x9f\x98\x80", 5, 5},
		/* No UTF-8 in the first place. */
		{"\x80\x80\x80\x80", 4, 4},
		{"a\xff", 2, 2},
		{"\xc3\xa9\x80", 3, 3},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(utf8_cut(cases[i].bytes, cases[i].len), cases[i].cut);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_character_is_read_and_no_surrogate),
		cmocka_unit_test(controls_are_c0_del_and_c1),
		cmocka_unit_test(a_cut_never_ends_inside_a_character),
	};
	return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
