/* Memory that is given back all at once. */
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "support/fault.h"
#include "support/harness.h"

static bool is_zero(const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (bytes[i] != 0)
			return false;
	}
	return true;
}

static void what_is_taken_is_zero_aligned_and_its_own(void **state)
{
	(void)state;
	struct fault fault;
	struct arena a;
	char *taken[200];
	fault_init(&fault);
	arena_init(&a, &fault.alloc);
	for (size_t i = 0; i < 200; i++) {
		taken[i] = arena_take(&a, i, 7);
		assert_non_null(taken[i]);
		assert_int_equal((uintptr_t)taken[i] % _Alignof(max_align_t), 0);
		assert_true(is_zero(taken[i], i * 7));
		memset(taken[i], (int)i + 1, i * 7);
	}
	for (size_t i = 1; i < 200; i++) {
		assert_int_equal((unsigned char)taken[i][0], i + 1);
		assert_int_equal((unsigned char)taken[i][i * 7 - 1], i + 1);
	}
	arena_done(&a);
	arena_done(&a);
	assert_int_equal(fault_live_blocks(&fault), 0);
	fault_done(&fault);
}

static void nothing_is_allocated_until_something_is_taken(void **state)
{
	(void)state;
	struct fault fault;
	struct arena a;
	fault_init(&fault);
	arena_init(&a, &fault.alloc);
	assert_int_equal(fault_count(&fault), 0);
	assert_non_null(arena_take(&a, 0, 8));
	assert_int_equal(fault_count(&fault), 1);
	assert_non_null(arena_take(&a, 100, 8));
	assert_int_equal(fault_count(&fault), 1);
	arena_done(&a);
	fault_done(&fault);
}

static void what_was_taken_back_is_given_again_without_a_new_block(void **state)
{
	(void)state;
	struct fault fault;
	struct arena a;
	fault_init(&fault);
	arena_init(&a, &fault.alloc);
	arena_reset(&a);
	for (int i = 0; i < 100; i++)
		memset(arena_take(&a, 1, 1000), 'x', 1000);
	arena_reset(&a);
	assert_int_equal(fault_live_blocks(&fault), 1);
	size_t before = fault_count(&fault);
	char *again = arena_take(&a, 1, 1000);
	assert_non_null(again);
	assert_true(is_zero(again, 1000));
	assert_int_equal(fault_count(&fault), before);
	arena_done(&a);
	assert_int_equal(fault_live_blocks(&fault), 0);
	fault_done(&fault);
}

static void a_large_one_has_its_own_block(void **state)
{
	(void)state;
	struct fault fault;
	struct arena a;
	fault_init(&fault);
	arena_init(&a, &fault.alloc);
	char *big = arena_take(&a, 1, (size_t)5 << 20);
	assert_non_null(big);
	big[((size_t)5 << 20) - 1] = 1;
	arena_done(&a);
	fault_done(&fault);
}

static void what_cannot_be_counted_cannot_be_had(void **state)
{
	(void)state;
	struct fault fault;
	struct arena a;
	fault_init(&fault);
	arena_init(&a, &fault.alloc);
	assert_null(arena_take(&a, SIZE_MAX / 2, 3));
	assert_null(arena_take(&a, SIZE_MAX, 1));
	assert_int_equal(fault_count(&fault), 0);
	fault_arm(&fault, 1);
	assert_null(arena_take(&a, 1, 1));
	assert_non_null(arena_take(&a, 1, 1));
	arena_done(&a);
	fault_done(&fault);
}

static void a_copy_is_terminated(void **state)
{
	(void)state;
	struct fault fault;
	struct arena a;
	struct baton_str copy;
	char text[] = "abc";
	fault_init(&fault);
	arena_init(&a, &fault.alloc);
	assert_true(arena_copy(&a, (struct baton_str){text, 2}, &copy));
	text[0] = 'x';
	assert_int_equal(copy.len, 2);
	assert_string_equal(copy.ptr, "ab");
	assert_true(arena_copy(&a, (struct baton_str){NULL, 0}, &copy));
	assert_string_equal(copy.ptr, "");
	arena_done(&a);
	fault_arm(&fault, 1);
	assert_false(arena_copy(&a, (struct baton_str){text, 2}, &copy));
	fault_done(&fault);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_taken_is_zero_aligned_and_its_own),
		cmocka_unit_test(nothing_is_allocated_until_something_is_taken),
		cmocka_unit_test(what_was_taken_back_is_given_again_without_a_new_block),
		cmocka_unit_test(a_large_one_has_its_own_block),
		cmocka_unit_test(what_cannot_be_counted_cannot_be_had),
		cmocka_unit_test(a_copy_is_terminated),
	};
	return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
