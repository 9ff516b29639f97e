/* Bytes from base64. */
#include "base/base64.h"

#include <string.h>

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
	}
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
		cmocka_unit_test(anything_else_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
