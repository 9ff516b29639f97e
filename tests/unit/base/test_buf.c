/* The growable string of bytes. */
#include <limits.h>
#include <string.h>
#include <wchar.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "support/fault.h"
#include "support/harness.h"

static void assert_holds(const struct buf *b, const char *text)
{
	struct baton_str s = buf_str(b);
	assert_int_equal(s.len, strlen(text));
	assert_string_equal(s.ptr, text);
}

static void an_empty_buffer_takes_no_memory(void **state)
{
	(void)state;
	struct fault fault;
	fault_init(&fault);
	AUTO(buf_done) struct buf b;
	buf_init(&b, &fault.alloc, 10);

	assert_int_equal(buf_append(&b, NULL, 0), BATON_OK);
	assert_int_equal(buf_append_str(&b, BATON_STR("")), BATON_OK);
	assert_int_equal(buf_str(&b).len, 0);
	assert_int_equal(fault_count(&fault), 0);
	fault_done(&fault);
}

static void what_is_appended_is_there_in_order_and_terminated(void **state)
{
	(void)state;
	struct fault fault;
	fault_init(&fault);
	struct buf b;
	buf_init(&b, &fault.alloc, 100);

	assert_int_equal(buf_append(&b, "ab\0c", 2), BATON_OK);
	assert_int_equal(buf_append_str(&b, BATON_STR("cd")), BATON_OK);
	assert_int_equal(buf_printf(&b, "%d-%s", 42, "x"), BATON_OK);
	assert_int_equal(buf_printf(&b, "%s", ""), BATON_OK);
	assert_holds(&b, "abcd42-x");

	buf_done(&b);
	buf_done(&b);
	fault_done(&fault);
}

static void bytes_with_nuls_are_kept(void **state)
{
	(void)state;
	struct fault fault;
	fault_init(&fault);
	struct buf b;
	buf_init(&b, &fault.alloc, 100);

	assert_int_equal(buf_append(&b, "a\0b", 3), BATON_OK);
	assert_int_equal(buf_str(&b).len, 3);
	assert_memory_equal(buf_str(&b).ptr, "a\0b", 4);

	buf_done(&b);
	fault_done(&fault);
}

static void the_bound_itself_fits_and_one_more_does_not(void **state)
{
	(void)state;
	struct fault fault;
	fault_init(&fault);
	struct buf b;
	buf_init(&b, &fault.alloc, 4);

	assert_int_equal(buf_append(&b, "abcd", 4), BATON_OK);
	assert_int_equal(buf_append(&b, "e", 1), BATON_FULL);
	assert_string_equal(baton_err_detail(), "4 bytes and 1 more do not fit into 4 bytes");
	assert_holds(&b, "abcd");

	buf_reset(&b);
	assert_int_equal(buf_append(&b, "abcde", 5), BATON_FULL);
	buf_reset(&b);
	assert_int_equal(buf_printf(&b, "%d", 1234), BATON_OK);
	assert_int_equal(buf_printf(&b, "%d", 5), BATON_FULL);
	assert_holds(&b, "1234");
	assert_true(fault_live_bytes(&fault) <= 5);

	buf_done(&b);
	fault_done(&fault);
}

static void the_first_failure_sticks_until_the_reset(void **state)
{
	(void)state;
	struct fault fault;
	fault_init(&fault);
	struct buf b;
	buf_init(&b, &fault.alloc, 4);

	assert_int_equal(buf_append(&b, "abc", 3), BATON_OK);
	assert_int_equal(buf_append(&b, "de", 2), BATON_FULL);
	assert_int_equal(buf_append(&b, "d", 1), BATON_FULL);
	assert_int_equal(buf_append(&b, "", 0), BATON_FULL);
	assert_int_equal(buf_printf(&b, "d"), BATON_FULL);
	assert_holds(&b, "abc");

	buf_reset(&b);
	assert_holds(&b, "");
	assert_int_equal(buf_append(&b, "de", 2), BATON_OK);
	assert_holds(&b, "de");
	assert_int_equal(fault_live_blocks(&fault), 1);

	buf_done(&b);
	fault_done(&fault);
}

static void a_text_that_printf_cannot_write_is_refused(void **state)
{
	(void)state;
	struct fault fault;
	fault_init(&fault);
	struct buf b;
	buf_init(&b, &fault.alloc, SIZE_MAX);

	wint_t foreign = 0x10ffff; /* this locale has no such character */
	assert_int_equal(buf_printf(&b, "%lc", foreign), BATON_FULL);
	assert_int_equal(buf_str(&b).len, 0);
	assert_int_equal(fault_count(&fault), 0);

	buf_done(&b);
	fault_done(&fault);
}

static void what_is_extended_is_written_by_the_caller(void **state)
{
	(void)state;
	struct fault fault;
	struct buf b;
	fault_init(&fault);
	buf_init(&b, &fault.alloc, 4);
	assert_null(buf_extend(&b, 0));
	assert_int_equal(buf_append(&b, "a", 1), BATON_OK);
	char *place = buf_extend(&b, 3);
	assert_non_null(place);
	memcpy(place, "bcd", 3);
	assert_string_equal(b.data, "abcd");
	assert_null(buf_extend(&b, 1));
	assert_int_equal(b.err, BATON_FULL);
	assert_string_equal(b.data, "abcd");
	buf_done(&b);
	fault_done(&fault);
}

static void many_small_appends_need_few_allocations(void **state)
{
	(void)state;
	struct fault fault;
	fault_init(&fault);
	struct buf b;
	buf_init(&b, &fault.alloc, 1 << 20);

	for (int i = 0; i < 1 << 20; i++)
		assert_int_equal(buf_append(&b, "x", 1), BATON_OK);
	assert_true(fault_count(&fault) <= 16);
	assert_int_equal(buf_append(&b, "x", 1), BATON_FULL);

	buf_done(&b);
	fault_done(&fault);
}

/* Fills a buffer in steps of which several need memory. */
static enum baton_err fill(struct buf *b)
{
	for (int i = 0; i < 10; i++) {
		buf_append(b, "0123456789012345678901234567890123456789", 40);
		buf_printf(b, "%s", "0123456789012345678901234567890123456789");
	}
	return b->err;
}

static void without_memory_it_keeps_what_it_had(void **state)
{
	(void)state;
	struct fault fault;
	fault_init(&fault);
	for (unsigned n = 1;; n++) {
		struct buf b;
		buf_init(&b, &fault.alloc, 1000);
		fault_arm(&fault, n);
		enum baton_err e = fill(&b);
		bool fired = fault_fired(&fault);
		assert_int_equal(e, fired ? BATON_NO_MEMORY : BATON_OK);
		assert_int_equal(buf_str(&b).len % 40, 0);
		assert_int_equal(buf_str(&b).len == 800, !fired);
		buf_done(&b);
		assert_int_equal(fault_live_blocks(&fault), 0);
		if (!fired) {
			assert_true(n > 2);
			break;
		}
	}
	fault_done(&fault);
}

static void what_is_short_stays_in_room_of_the_callers_and_more_moves_out(void **state)
{
	(void)state;
	struct fault fault;
	char room[8];
	fault_init(&fault);
	struct buf b;
	buf_init_in(&b, &fault.alloc, 20, room, sizeof room);

	assert_holds(&b, "");
	assert_int_equal(buf_append(&b, "seven..", 7), BATON_OK);
	assert_holds(&b, "seven..");
	assert_ptr_equal(b.data, room);
	assert_int_equal(fault_count(&fault), 0);

	assert_int_equal(buf_append(&b, "+", 1), BATON_OK);
	assert_holds(&b, "seven..+");
	assert_true(b.data != room);
	assert_string_equal(room, "seven..");
	assert_int_equal(buf_append(&b, "and twelve more", 12), BATON_OK);
	assert_int_equal(buf_append(&b, "!", 1), BATON_FULL);

	buf_done(&b);
	buf_done(&b);
	fault_done(&fault);
}

static void without_memory_what_is_in_room_of_the_callers_stays(void **state)
{
	(void)state;
	struct fault fault;
	char room[8];
	fault_init(&fault);
	struct buf b;
	buf_init_in(&b, &fault.alloc, 20, room, sizeof room);

	assert_int_equal(buf_append(&b, "seven..", 7), BATON_OK);
	fault_arm(&fault, 1);
	assert_int_equal(buf_append(&b, "+", 1), BATON_NO_MEMORY);
	assert_true(fault_fired(&fault));
	assert_holds(&b, "seven..");

	buf_done(&b);
	fault_done(&fault);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_buffer_takes_no_memory),
		cmocka_unit_test(what_is_appended_is_there_in_order_and_terminated),
		cmocka_unit_test(bytes_with_nuls_are_kept),
		cmocka_unit_test(the_bound_itself_fits_and_one_more_does_not),
		cmocka_unit_test(the_first_failure_sticks_until_the_reset),
		cmocka_unit_test(a_text_that_printf_cannot_write_is_refused),
		cmocka_unit_test(what_is_extended_is_written_by_the_caller),
		cmocka_unit_test(many_small_appends_need_few_allocations),
		cmocka_unit_test(without_memory_it_keeps_what_it_had),
		cmocka_unit_test(what_is_short_stays_in_room_of_the_callers_and_more_moves_out),
		cmocka_unit_test(without_memory_what_is_in_room_of_the_callers_stays),
	};
	return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
