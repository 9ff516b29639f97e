/* Blocks from an allocator, and the allocator that fails on purpose. */
#include <string.h>

#include "base/mem.h"
#include "support/fault.h"
#include "support/harness.h"

static void a_new_block_is_zero(void **state)
{
	(void)state;
	struct fault fault;
	fault_init(&fault);
	static const unsigned char zeros[24];

	unsigned char *block = mem_new(&fault.alloc, 3, 8);
	assert_non_null(block);
	assert_memory_equal(block, zeros, sizeof zeros);
	assert_int_equal(fault_live_blocks(&fault), 1);
	assert_int_equal(fault_live_bytes(&fault), 24);

	mem_free(&fault.alloc, block, 3, 8);
	assert_int_equal(fault_live_bytes(&fault), 0);
	fault_done(&fault);
}

static void a_resize_keeps_what_fits_into_both_sizes(void **state)
{
	(void)state;
	struct fault fault;
	fault_init(&fault);

	char *block = mem_resize(&fault.alloc, NULL, 0, 4, 1);
	memcpy(block, "abcd", 4);
	block = mem_resize(&fault.alloc, block, 4, 1000, 1);
	assert_memory_equal(block, "abcd", 4);
	block = mem_resize(&fault.alloc, block, 1000, 2, 1);
	assert_memory_equal(block, "ab", 2);
	assert_int_equal(fault_live_bytes(&fault), 2);

	mem_free(&fault.alloc, block, 2, 1);
	fault_done(&fault);
}

static void a_size_that_overflows_or_is_zero_is_refused(void **state)
{
	(void)state;
	struct fault fault;
	fault_init(&fault);

	assert_null(mem_new(&fault.alloc, SIZE_MAX / 2 + 2, 2));
	assert_null(mem_new(&fault.alloc, 0, 8));
	assert_null(mem_new(&fault.alloc, 8, 0));
	char *block = mem_new(&fault.alloc, 4, 2);
	assert_null(mem_resize(&fault.alloc, block, 4, SIZE_MAX / 2 + 2, 2));
	assert_null(mem_resize(&fault.alloc, block, 4, 0, 2));
	assert_int_equal(fault_live_bytes(&fault), 8);
	assert_int_equal(fault_count(&fault), 1);

	mem_free(&fault.alloc, block, 4, 2);
	mem_free(&fault.alloc, NULL, SIZE_MAX, SIZE_MAX);
	fault_done(&fault);
}

static void a_failing_resize_leaves_the_block_as_it_was(void **state)
{
	(void)state;
	struct fault fault;
	fault_init(&fault);

	fault_arm(&fault, 1);
	assert_null(mem_new(&fault.alloc, 1, 8));
	assert_true(fault_fired(&fault));
	fault_arm(&fault, 2);
	char *block = mem_new(&fault.alloc, 1, 8);
	memcpy(block, "12345678", 8);
	assert_false(fault_fired(&fault));
	assert_null(mem_resize(&fault.alloc, block, 8, 16, 1));
	assert_true(fault_fired(&fault));
	assert_memory_equal(block, "12345678", 8);
	assert_int_equal(fault_live_bytes(&fault), 8);

	/* It fails once: the next one is served. */
	block = mem_resize(&fault.alloc, block, 8, 16, 1);
	assert_non_null(block);
	assert_int_equal(fault_count(&fault), 4);
	mem_free(&fault.alloc, block, 16, 1);
	fault_done(&fault);
}

static void the_c_librarys_allocator_resizes_and_frees(void **state)
{
	(void)state;
	const struct baton_alloc *libc = baton_alloc_libc();

	char *block = mem_new(libc, 3, 1);
	memcpy(block, "xyz", 3);
	block = mem_resize(libc, block, 3, 100000, 1);
	assert_memory_equal(block, "xyz", 3);
	assert_int_equal((uintptr_t)block % _Alignof(max_align_t), 0);
	mem_free(libc, block, 100000, 1);
	assert_null(libc->resize(libc, NULL, 0, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_block_is_zero),
		cmocka_unit_test(a_resize_keeps_what_fits_into_both_sizes),
		cmocka_unit_test(a_size_that_overflows_or_is_zero_is_refused),
		cmocka_unit_test(a_failing_resize_leaves_the_block_as_it_was),
		cmocka_unit_test(the_c_librarys_allocator_resizes_and_frees),
	};
	return cmocka_run_group_tests_name("alloc", tests, NULL, NULL);
}
