/* Bytes from base64, and as base64. */
#include "base/base64.h"

#include <string.h>

#include "base/cleanup.h"
#include "support/harness.h"

static void text_with_its_padding_is_decoded(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		struct baton_str bytes;
	} cases[] = {
		{"", BATON_STR("")},           {"Zg==", BATON_STR("f")},
		{"Zm8=", BATON_STR("fo")},     {"Zm9v", BATON_STR("foo")},
		{"/wA=", BATON_STR("\xff\0")}, {"Zm9vYmE=", BATON_STR("fooba")},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char bytes[16];
		size_t len = 99;
		assert_true(base64_decode(baton_str_z(cases[i].text), bytes, &len));
		assert_int_equal(len, cases[i].bytes.len);
		assert_memory_equal(bytes, cases[i].bytes.ptr, len);
		AUTO(buf_done) struct buf text;
		buf_init(&text, baton_alloc_libc(), 16);
		assert_int_equal(base64_append(&text, cases[i].bytes), BATON_OK);
		assert_true(baton_str_equal(buf_str(&text), baton_str_z(cases[i].text)));
	}
}

static void what_is_long_is_encoded_in_pieces_that_fit_together(void **state)
{
	(void)state;
	static char bytes[10000], again[BASE64_ROOM(13336)];
	size_t len;
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (char)(i * 7 + i / 256);
	AUTO(buf_done) struct buf text;
	buf_init(&text, baton_alloc_libc(), 13336);
	assert_int_equal(base64_append(&text, (struct baton_str){bytes, sizeof bytes}), BATON_OK);
	assert_int_equal(text.len, 13336);
	assert_true(base64_decode(buf_str(&text), again, &len));
	assert_int_equal(len, sizeof bytes);
	assert_memory_equal(again, bytes, len);
}

static void anything_else_is_refused(void **state)
{
	(void)state;
	static const char *const cases[] = {
		"Z",     "Zg",   "Zg=",  "Zg===", "Zh==", "Zm9=",     "Zm9v\n",
		"Zm 9v", "Z=g=", "====", "Zm9v=", "Zm-v", "Zg==Zg==",
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char bytes[16];
		size_t len;
		if (base64_decode(baton_str_z(cases[i]), bytes, &len))
			fail_msg("'%s' was decoded", cases[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_with_its_padding_is_decoded),
		cmocka_unit_test(what_is_long_is_encoded_in_pieces_that_fit_together),
		cmocka_unit_test(anything_else_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
