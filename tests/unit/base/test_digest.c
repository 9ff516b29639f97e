/* Digests. The literals are those of sha256sum. */
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "support/harness.h"

static void assert_hex(const uint8_t digest[DIGEST_SIZE], const char *hex)
{
	char text[2 * DIGEST_SIZE + 1];
	for (int i = 0; i < DIGEST_SIZE; i++)
		snprintf(text + 2 * i, 3, "%02x", digest[i]);
	assert_string_equal(text, hex);
}

static void bytes_are_hashed_as_they_are(void **state)
{
	(void)state;
	uint8_t out[DIGEST_SIZE];
	digest_bytes("abc", 3, out);
	assert_hex(out, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void texts_come_with_their_lengths_and_numbers_with_the_highest_byte_first(void **state)
{
	(void)state;
	uint8_t out[DIGEST_SIZE];
	struct digest d;
	digest_init(&d);
	digest_str(&d, BATON_STR("ab"));
	digest_str(&d, BATON_STR("c"));
	digest_number(&d, 258);
	digest_end(&d, out);
	assert_hex(out, "ce2b86772fb05d12392ef4422f6e1f8fe52c8244c78757964830758c6c74e83e");
}

static void borders_count(void **state)
{
	(void)state;
	static const char *const parts[][2] = {{"ab", "c"}, {"a", "bc"}, {"abc", ""}, {"", "abc"}};
	uint8_t out[4][DIGEST_SIZE];
	for (int i = 0; i < 4; i++) {
		struct digest d;
		digest_init(&d);
		digest_str(&d, baton_str_z(parts[i][0]));
		digest_str(&d, baton_str_z(parts[i][1]));
		digest_end(&d, out[i]);
		for (int j = 0; j < i; j++)
			assert_false(digest_equal(out[i], out[j], DIGEST_SIZE));
	}
}

static void digests_are_equal_when_every_byte_is(void **state)
{
	(void)state;
	char a[16] = "0123456789abcde", b[16] = "0123456789abcde";
	assert_true(digest_equal(a, b, 16));
	for (int i = 0; i < 16; i++) {
		b[i] ^= 1;
		assert_false(digest_equal(a, b, 16));
		b[i] ^= 1;
	}
	assert_true(digest_equal(a, b, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_hashed_as_they_are),
		cmocka_unit_test(
			texts_come_with_their_lengths_and_numbers_with_the_highest_byte_first),
		cmocka_unit_test(borders_count),
		cmocka_unit_test(digests_are_equal_when_every_byte_is),
	};
	return cmocka_run_group_tests_name("digest", tests, NULL, NULL);
}
