/* The keyed hash. */
#include <string.h>

#include "base/hash.h"
#include "support/harness.h"

static void the_hash_is_siphash_2_4(void **state)
{
	(void)state;
	/* The vectors that its authors published: the key 00..0f, the messages 00..(len - 1). */
	static const struct {
		size_t len;
		uint64_t hash;
	} cases[] = {
		{0, UINT64_C(0x726fdb47dd0e0e31)},
		{1, UINT64_C(0x74f839c593dc67fd)},
		{8, UINT64_C(0x93f5f5799a932462)},
		{15, UINT64_C(0xa129ca6149be45e5)},
	};
	struct baton_id seed;
	unsigned char message[15];
	for (unsigned char i = 0; i < 16; i++)
		seed.bytes[i] = i;
	for (unsigned char i = 0; i < sizeof message; i++)
		message[i] = i;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(hash_bytes(&seed, message, cases[i].len), cases[i].hash);
}

static void the_long_hash_is_siphash_2_4_of_128_bits(void **state)
{
	(void)state;
	/* From the same authors, for the same key and messages. */
	static const struct {
		size_t len;
		const char *hash;
	} cases[] = {
		{0, "a3817f04ba25a8e66df67214c7550293"},
		{1, "da87c1d86b99af44347659119b22fc45"},
		{2, "8177228da4a45dc7fca38bdef60affe4"},
	};
	struct baton_id seed;
	for (unsigned char i = 0; i < 16; i++)
		seed.bytes[i] = i;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[BATON_ID_TEXT];
		struct baton_id hash = hash_id(&seed, "\0\1", cases[i].len);
		assert_string_equal(baton_id_print(&hash, text), cases[i].hash);
	}
}

static void another_seed_gives_another_hash(void **state)
{
	(void)state;
	struct baton_id a = {{1}};
	struct baton_id b = {{2}};
	assert_int_not_equal(hash_bytes(&a, "key", 3), hash_bytes(&b, "key", 3));
	struct baton_id of_a = hash_id(&a, "key", 3);
	struct baton_id of_b = hash_id(&b, "key", 3);
	assert_false(baton_id_equal(&of_a, &of_b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_hash_is_siphash_2_4),
		cmocka_unit_test(the_long_hash_is_siphash_2_4_of_128_bits),
		cmocka_unit_test(another_seed_gives_another_hash),
	};
	return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
