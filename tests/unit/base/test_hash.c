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

static void another_seed_gives_another_hash(void **state)
{
	(void)state;
	struct baton_id a = {{1}};
	struct baton_id b = {{2}};
	assert_int_not_equal(hash_bytes(&a, "key", 3), hash_bytes(&b, "key", 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_hash_is_siphash_2_4),
		cmocka_unit_test(another_seed_gives_another_hash),
	};
	return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
