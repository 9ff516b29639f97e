/* How far a run is, as its handler says it and as others read it. */
#include "runner/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/harness.h"

static void said_as(const char *value, bool is_string, int32_t percent, const char *text)
{
	struct progress p = {.said = false};
	progress_said(&p, baton_str_z(value), is_string);
	assert_true(p.said);
	assert_int_equal(p.percent, percent);
	assert_string_equal(p.text, text);
}

static void what_a_worker_says_is_a_percentage_a_text_or_both(void **state)
{
	(void)state;
	said_as("50", false, 50, "");
	said_as("99.9", false, 99, "");
	said_as("100", false, 100, "");
	said_as("{\"percent\":7,\"text\":\"a b\"}", false, 7, "a b");
	said_as("{\"text\":\"only\"}", false, -1, "only");
	said_as("{\"percent\":0}", false, 0, "");
	said_as("50", true, -1, "50");
	said_as("nearly", true, -1, "nearly");
}

static void what_is_none_is_shown_as_it_is(void **state)
{
	(void)state;
	said_as("101", false, -1, "101");
	said_as("-1", false, -1, "-1");
	said_as("1e999", false, -1, "1e999");
	said_as("99999999999999999999", false, -1, "99999999999999999999");
	said_as("null", false, -1, "null");
	said_as("[1]", false, -1, "[1]");
	said_as("{\"percent\":\"50\"}", false, -1, "{\"percent\":\"50\"}");
	said_as("{\"percent\":200}", false, -1, "{\"percent\":200}");
	said_as("", true, -1, "");
}

static void a_text_is_cut_between_characters_and_commands_no_terminal(void **state)
{
	(void)state;
	char text[2 * BATON_PROGRESS_MAX + 1] = "";
	struct progress p = {.said = false};
	said_as("a\nb\x1b[1m\x7f\xc2\x85z", true, -1, "a b [1m  z");
	for (int i = 0; i < BATON_PROGRESS_MAX; i++)
		strcat(text, "\xc3\xa9");
	progress_said(&p, baton_str_z(text), true);
	assert_int_equal(strlen(p.text), BATON_PROGRESS_MAX - 1);
	assert_true(baton_str_is_utf8(baton_str_z(p.text)));
}

static void what_is_printed_is_found(void **state)
{
	(void)state;
	struct progress p = {.said = false};
	struct baton_progress read;
	struct buf report;
	buf_init(&report, baton_alloc_libc(), BATON_RUNNER_REPORT_MAX);
	buf_append_str(&report, BATON_STR("runner ticks=1\nqueue name=progress 1-1 5 no\n"));
	progress_print(&p, "1-1", &report); /* nothing was said */
	progress_set(&p, 50, BATON_STR("half way"));
	progress_print(&p, "17-3", &report);
	progress_set(&p, BATON_PROGRESS_UNSAID, BATON_STR(""));
	progress_print(&p, "18-4", &report);
	assert_int_equal(report.err, BATON_OK);
	assert_true(progress_find(buf_str(&report), BATON_STR("17-3"), &read));
	assert_int_equal(read.percent, 50);
	assert_string_equal(read.text, "half way");
	assert_true(progress_find(buf_str(&report), BATON_STR("18-4"), &read));
	assert_int_equal(read.percent, BATON_PROGRESS_UNSAID);
	assert_string_equal(read.text, "");
	assert_false(progress_find(buf_str(&report), BATON_STR("1-1"), &read));
	assert_false(progress_find(buf_str(&report), BATON_STR("7-3"), &read));
	buf_done(&report);
}

static void a_report_has_as_many_as_there_is_room_for(void **state)
{
	(void)state;
	struct progress p = {.said = false};
	struct baton_progress read;
	char claim[24], text[BATON_PROGRESS_MAX + 1];
	struct buf report;
	memset(text, 'x', BATON_PROGRESS_MAX);
	text[BATON_PROGRESS_MAX] = '\0';
	buf_init(&report, baton_alloc_libc(), BATON_RUNNER_REPORT_MAX);
	for (int i = 0; i < 1000; i++) {
		snprintf(claim, sizeof claim, "%d-1", i);
		progress_set(&p, 1, baton_str_z(text));
		progress_print(&p, claim, &report);
	}
	assert_int_equal(report.err, BATON_OK);
	assert_true(report.len <= BATON_RUNNER_REPORT_MAX);
	assert_true(progress_find(buf_str(&report), BATON_STR("399-1"), &read));
	assert_false(progress_find(buf_str(&report), BATON_STR("999-1"), &read));
	buf_done(&report);
}

static void what_no_runner_has_written_is_not_read(void **state)
{
	(void)state;
	static const char *const lines[] = {
		"progress 1-1",      "progress 1-1 ",     "progress 1-1 101 x",
		"progress 1-1 x y",  "progress 1-1 -1 x", "progress 1-1 5 \xff",
		"progress  1-1 5 x", "Progress 1-1 5 x",  "progress 1-1 05 x",
	};
	struct baton_progress read;
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
		assert_false(progress_find(baton_str_z(lines[i]), BATON_STR("1-1"), &read));
	assert_true(progress_find(BATON_STR("progress 1-1 5 x"), BATON_STR("1-1"), &read));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_worker_says_is_a_percentage_a_text_or_both),
		cmocka_unit_test(what_is_none_is_shown_as_it_is),
		cmocka_unit_test(a_text_is_cut_between_characters_and_commands_no_terminal),
		cmocka_unit_test(what_is_printed_is_found),
		cmocka_unit_test(a_report_has_as_many_as_there_is_room_for),
		cmocka_unit_test(what_no_runner_has_written_is_not_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
