/* What a call answered, and the sentence about it. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <wchar.h>

#include "base/fail.h"
#include "support/harness.h"

#define DETAIL_LEN_MAX 511

static void every_answer_has_its_number_its_name_and_its_meaning(void **state)
{
	(void)state;
	static const struct {
		enum baton_err e;
		int number;
		const char *name;
		const char *text;
	} cases[] = {
		{BATON_OK, 0, "BATON_OK", "success"},
		{BATON_YIELD, 1, "BATON_YIELD", "someone else comes first"},
		{BATON_NOT_HELD, 2, "BATON_NOT_HELD", "not held by the one who asks"},
		{BATON_TIMEOUT, 3, "BATON_TIMEOUT", "timed out"},
		{BATON_CANCELLED, 4, "BATON_CANCELLED", "cancelled"},
		{BATON_INVALID, 5, "BATON_INVALID", "invalid argument"},
		{BATON_FULL, 6, "BATON_FULL", "a limit has been reached"},
		{BATON_NO_MEMORY, 7, "BATON_NO_MEMORY", "out of memory"},
		{BATON_SYSTEM, 8, "BATON_SYSTEM", "a system call failed"},
		{BATON_BUSY, 9, "BATON_BUSY", "a stopped process is in the way"},
		{BATON_GONE, 10, "BATON_GONE", "what was joined is gone"},
		{BATON_STALE, 11, "BATON_STALE", "a newer one was here"},
		{BATON_CONFLICT, 12, "BATON_CONFLICT", "it is there with other content"},
		{BATON_NOT_FOUND, 13, "BATON_NOT_FOUND", "there is no such thing"},
		{BATON_STORAGE, 14, "BATON_STORAGE", "the store failed"},
		{(enum baton_err)15, 15, "BATON_UNKNOWN", "unknown error"},
		{(enum baton_err) - 1, -1, "BATON_UNKNOWN", "unknown error"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal((int)cases[i].e, cases[i].number);
		assert_string_equal(baton_err_name(cases[i].e), cases[i].name);
		assert_string_equal(baton_strerror(cases[i].e), cases[i].text);
	}
}

static void *detail_of_a_new_thread(void *arg)
{
	*(bool *)arg = baton_err_detail()[0] == '\0';
	fail(BATON_INVALID, "of the other thread");
	return NULL;
}

static void the_detail_belongs_to_its_thread(void **state)
{
	(void)state;
	assert_int_equal(fail(BATON_FULL, "%s has %d", "it", 7), BATON_FULL);
	bool was_empty = false;
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, detail_of_a_new_thread, &was_empty), 0);
	pthread_join(thread, NULL);
	assert_true(was_empty);
	assert_string_equal(baton_err_detail(), "it has 7");
}

static void a_failure_keeps_errno(void **state)
{
	(void)state;
	errno = EXDEV;
	fail(BATON_INVALID, "x");
	assert_int_equal(errno, EXDEV);
	fail_errno(ENOENT, "x");
	assert_int_equal(errno, EXDEV);
	/* A text that printf() itself fails on, with EILSEQ: this locale has no such character. */
	wint_t foreign = 0x10ffff;
	assert_int_equal(fail(BATON_FULL, "%lc", foreign), BATON_FULL);
	assert_int_equal(errno, EXDEV);
	assert_string_equal(baton_err_detail(), "");
	assert_int_equal(fail_errno(ENOENT, "%lc", foreign), BATON_SYSTEM);
	assert_int_equal(errno, EXDEV);
}

static void a_system_error_ends_with_the_systems_text(void **state)
{
	(void)state;
	assert_int_equal(fail_errno(ENOENT, "no %s", "file"), BATON_SYSTEM);
	assert_string_equal(baton_err_detail(), "no file: No such file or directory");
}

static void missing_memory_is_stated_in_bytes(void **state)
{
	(void)state;
	assert_int_equal(fail_memory(4096, "a buffer"), BATON_NO_MEMORY);
	assert_string_equal(baton_err_detail(), "no memory: 4096 bytes for a buffer");
}

static void the_old_detail_may_be_part_of_the_new_one(void **state)
{
	(void)state;
	fail(BATON_INVALID, "inner");
	fail(BATON_INVALID, "outer: %s", baton_err_detail());
	assert_string_equal(baton_err_detail(), "outer: inner");
}

static void a_sentence_is_cut_at_a_character_boundary(void **state)
{
	(void)state;
	/* How many bytes of ASCII stand before a run of characters, of how many bytes each. */
	static const struct {
		size_t before;
		const char *character;
		size_t len;
	} cases[] = {
		{511, "x", 511},          {512, "x", 511},          {510, "\u00e9", 510},
		{509, "\u00e9", 511},     {509, "\u20ac", 509},     {510, "\u20ac", 510},
		{508, "\u20ac", 511},     {508, "\U0001f600", 508}, {509, "\U0001f600", 509},
		{510, "\U0001f600", 510}, {507, "\U0001f600", 511},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[1000] = "";
		memset(text, 'a', cases[i].before);
		while (strlen(text) < 600)
			strcat(text, cases[i].character);
		fail(BATON_INVALID, "%s", text);
		assert_int_equal(strlen(baton_err_detail()), cases[i].len);
		assert_memory_equal(baton_err_detail(), text, cases[i].len);
	}
}

static void what_is_no_utf8_is_cut_where_the_room_ends(void **state)
{
	(void)state;
	char text[1000];
	memset(text, 0x80, sizeof text - 1);
	text[sizeof text - 1] = '\0';
	fail(BATON_INVALID, "%s", text);
	assert_int_equal(strlen(baton_err_detail()), DETAIL_LEN_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_answer_has_its_number_its_name_and_its_meaning),
		cmocka_unit_test(the_detail_belongs_to_its_thread),
		cmocka_unit_test(a_failure_keeps_errno),
		cmocka_unit_test(a_system_error_ends_with_the_systems_text),
		cmocka_unit_test(missing_memory_is_stated_in_bytes),
		cmocka_unit_test(the_old_detail_may_be_part_of_the_new_one),
		cmocka_unit_test(a_sentence_is_cut_at_a_character_boundary),
		cmocka_unit_test(what_is_no_utf8_is_cut_where_the_room_ends),
	};
	return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
