/* Frames, as they arrive. */
#include "wire/frame.h"

#include <string.h>

#include "support/fault.h"
#include "support/harness.h"

/* Feeds at most `step` bytes at a time; returns how many the reader took in the end. */
static size_t feed(struct wire_reader *r, const void *bytes, size_t len, size_t step,
                   enum baton_err *ret)
{
	size_t fed = 0;
	*ret = BATON_OK;
	while (fed < len && *ret == BATON_OK) {
		void *place;
		size_t want;
		*ret = wire_reader_want(r, &place, &want);
		if (*ret != BATON_OK || want == 0)
			break;
		size_t n = want < step ? want : step;
		n = n < len - fed ? n : len - fed;
		memcpy(place, (const char *)bytes + fed, n);
		fed += n;
		*ret = wire_reader_took(r, n);
	}
	return fed;
}

static void a_head_is_a_version_and_a_length_with_its_lowest_byte_first(void **state)
{
	(void)state;
	uint8_t head[WIRE_FRAME_HEAD];
	wire_frame_head(0x01020304, head);
	assert_memory_equal(head, "\x01\x04\x03\x02\x01", 5);
}

static void a_frame_is_the_same_in_whatever_parts_it_comes(void **state)
{
	(void)state;
	struct fault fault;
	fault_init(&fault);
	for (size_t len = 1; len <= 1500; len += 499) {
		uint8_t bytes[1600];
		memset(bytes, 'x', sizeof bytes);
		wire_frame_head((uint32_t)len, bytes);
		for (size_t i = 0; i < len; i++)
			bytes[WIRE_FRAME_HEAD + i] = (uint8_t)(i * 7);
		for (size_t step = 1; step <= sizeof bytes; step = step * 3 + 1) {
			struct wire_reader r;
			enum baton_err e;
			wire_reader_init(&r, &fault.alloc, WIRE_HELLO_MAX);
			assert_false(wire_reader_begun(&r));
			/* There is more behind it, which it leaves alone. */
			assert_int_equal(feed(&r, bytes, sizeof bytes, step, &e), len + 5);
			assert_int_equal(e, BATON_OK);
			assert_true(wire_reader_whole(&r));
			assert_int_equal(wire_reader_body(&r).len, len);
			assert_memory_equal(wire_reader_body(&r).ptr, bytes + 5, len);
			wire_reader_done(&r);
			wire_reader_done(&r);
		}
	}
	fault_done(&fault);
}

static void what_is_no_frame_is_refused_by_its_head(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		size_t len;
		size_t taken;
		const char *detail;
	} cases[] = {
		{"\x00", 1, 1, "a frame of version 0; this is version 1"},
		{"\x02xxxxxxx", 8, 5, "a frame of version 2; this is version 1"},
		{"GET / HTTP/1.1", 14, 5, "a frame of version 71; this is version 1"},
		{"\x01\0\0\0\0x", 6, 5, "a frame without a body"},
		{"\x01\x65\0\0\0x", 6, 5, "a frame of 101 bytes; 100 are allowed here"},
		{"\x01\xff\xff\xff\xffx", 6, 5,
	         "a frame of 4294967295 bytes; 100 are allowed here"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct fault fault;
		struct wire_reader r;
		enum baton_err e;
		fault_init(&fault);
		wire_reader_init(&r, &fault.alloc, 100);
		assert_int_equal(feed(&r, cases[i].bytes, cases[i].len, 100, &e), cases[i].taken);
		assert_int_equal(e, BATON_INVALID);
		assert_string_equal(baton_err_detail(), cases[i].detail);
		assert_false(wire_reader_whole(&r));
		assert_int_equal(fault_count(&fault), 0);
		fault_done(&fault);
	}
}

static void the_longest_frame_is_taken(void **state)
{
	(void)state;
	struct fault fault;
	struct wire_reader r;
	enum baton_err e;
	fault_init(&fault);
	wire_reader_init(&r, &fault.alloc, 100);
	uint8_t bytes[105] = "";
	wire_frame_head(100, bytes);
	assert_int_equal(feed(&r, bytes, 105, 105, &e), 105);
	assert_true(wire_reader_whole(&r));
	wire_reader_done(&r);
	fault_done(&fault);
}

static void memory_is_taken_for_what_arrives_and_not_for_what_is_promised(void **state)
{
	(void)state;
	struct fault fault;
	struct wire_reader r;
	enum baton_err e;
	fault_init(&fault);
	wire_reader_init(&r, &fault.alloc, WIRE_FRAME_MAX);
	uint8_t bytes[5 + 2000] = "";
	wire_frame_head(WIRE_FRAME_MAX, bytes);
	feed(&r, bytes, 5, 5, &e);
	assert_int_equal(e, BATON_OK);
	assert_int_equal(fault_live_bytes(&fault), 0);
	feed(&r, bytes + 5, 2000, 100, &e);
	assert_true(fault_live_bytes(&fault) <= 4096);
	wire_reader_done(&r);
	fault_done(&fault);
}

static void a_frame_for_which_there_is_no_memory_can_be_read_on_later(void **state)
{
	(void)state;
	struct fault fault;
	struct wire_reader r;
	enum baton_err e;
	uint8_t bytes[5 + 3000];
	memset(bytes, 'y', sizeof bytes);
	wire_frame_head(3000, bytes);
	fault_init(&fault);
	for (unsigned n = 1;; n++) {
		wire_reader_init(&r, &fault.alloc, WIRE_HELLO_MAX);
		fault_arm(&fault, n);
		size_t fed = feed(&r, bytes, sizeof bytes, sizeof bytes, &e);
		if (fault_fired(&fault)) {
			assert_int_equal(e, BATON_NO_MEMORY);
			fed += feed(&r, bytes + fed, sizeof bytes - fed, sizeof bytes, &e);
		}
		assert_int_equal(fed, sizeof bytes);
		assert_true(wire_reader_whole(&r));
		assert_memory_equal(wire_reader_body(&r).ptr, bytes + 5, 3000);
		wire_reader_done(&r);
		if (!fault_fired(&fault))
			break;
	}
	fault_done(&fault);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_head_is_a_version_and_a_length_with_its_lowest_byte_first),
		cmocka_unit_test(a_frame_is_the_same_in_whatever_parts_it_comes),
		cmocka_unit_test(what_is_no_frame_is_refused_by_its_head),
		cmocka_unit_test(the_longest_frame_is_taken),
		cmocka_unit_test(memory_is_taken_for_what_arrives_and_not_for_what_is_promised),
		cmocka_unit_test(a_frame_for_which_there_is_no_memory_can_be_read_on_later),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
