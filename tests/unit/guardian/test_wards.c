/* Commands under a guardian: what they find, say and leave behind, and how they are stopped. */
#include "guardian/wards.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/harness.h"
#include "support/skips.h"
#include "wards_world.h"

static void the_end_tells_status_and_output(void **state)
{
	struct world *w = *state;
	struct ward_news news = run(w, "echo to; echo keep; exit 5");
	exits_with(&news, 5);
	assert_int_equal(news.id, 7);
	assert_string_equal(w->text, "to\nkeep\n");
	assert_true(w->begun);
	assert_false(news.cut || news.timed_out);
	news = run(w, "kill -USR1 $$");
	killed_by(&news, SIGUSR1);
	assert_int_equal(w->text_len, 0);
}

static void a_command_that_cannot_be_executed_says_why(void **state)
{
	struct world *w = *state;
	char *missing[] = {(char *)"/no/such/command", NULL};
	struct ward_spec spec = spec_of(1, missing);
	assert_int_equal(wards_start(w->wards, &spec), BATON_OK);
	struct ward_news news = await_end(w);
	assert_int_equal(news.how, WARD_UNSTARTED);
	assert_int_equal(news.code, ENOENT);
	assert_false(w->begun);
	missing[0] = NULL;
	assert_int_equal(wards_start(w->wards, &spec), BATON_INVALID);
	spec.argv = NULL;
	assert_int_equal(wards_start(w->wards, &spec), BATON_INVALID);
}

static void lines_of_standard_error_are_told_one_by_one(void **state)
{
	struct world *w = *state;
	struct ward_news news = run(w, "echo one >&2; echo >&2; printf 'and the rest' >&2");
	exits_with(&news, 0);
	assert_string_equal(w->said, "one\n\nand the rest\n");
}

static void standard_output_is_told_by_line_too_if_asked_for(void **state)
{
	struct world *w = *state;
	char shell[] = "sh", option[] = "-c", script[] = "echo one; echo two >&2; printf three";
	char *argv[] = {shell, option, script, NULL};
	struct ward_spec spec = spec_of(7, argv);
	spec.output_said = true;
	assert_int_equal(wards_start(w->wards, &spec), BATON_OK);
	struct ward_news news = await_end(w);
	exits_with(&news, 0);
	assert_string_equal(w->said, "one\ntwo\nthree\n");
	assert_int_equal(w->text_len, 0);
	assert_false(news.cut);
}

static void a_long_line_comes_in_pieces(void **state)
{
	struct world *w = *state;
	assert_int_equal(start(w->wards, 7, "head -c 6000 /dev/zero | tr '\\0' x >&2"), BATON_OK);
	size_t total = 0;
	for (struct ward_news news = await_news(w); news.kind != WARD_ENDED; news = await_news(w)) {
		if (news.kind != WARD_SAID)
			continue;
		assert_true(news.text.len <= WARDS_LINE_MAX);
		total += news.text.len;
	}
	assert_int_equal(total, 6000);
}

static void a_flood_is_cut_and_flagged(void **state)
{
	struct world *w = *state;
	char *argv[] = {(char *)"head", (char *)"-c", (char *)"3000000", (char *)"/dev/zero", NULL};
	struct ward_spec spec = spec_of(1, argv);
	spec.output_max = 1000;
	assert_int_equal(wards_start(w->wards, &spec), BATON_OK);
	struct ward_news news = await_end(w);
	exits_with(&news, 0);
	assert_true(news.cut);
	assert_int_equal(news.text.len, 1000);
	spec.output_max = 0;
	assert_int_equal(wards_start(w->wards, &spec), BATON_OK);
	news = await_end(w);
	assert_true(news.cut);
	assert_int_equal(news.text.len, 0);
}

static void exactly_as_much_as_is_kept_is_not_cut(void **state)
{
	struct world *w = *state;
	char *argv[] = {(char *)"printf", (char *)"12345", NULL};
	struct ward_spec spec = spec_of(1, argv);
	spec.output_max = 5;
	assert_int_equal(wards_start(w->wards, &spec), BATON_OK);
	struct ward_news news = await_end(w);
	assert_false(news.cut);
	assert_memory_equal(news.text.ptr, "12345", 5);
}

static void an_endless_flood_does_not_keep_the_runner_from_others(void **state)
{
	struct world *w = *state;
	assert_int_equal(start(w->wards, 1, "exec yes"), BATON_OK);
	assert_int_equal(start(w->wards, 2, "exec yes >&2"), BATON_OK);
	await_kind(w, WARD_BEGUN);
	await_kind(w, WARD_BEGUN);
	/* One call looks at a part, and says so. */
	struct ward_news news;
	while (wards_next(w->wards, &news) && news.kind == WARD_SAID && news.id == 2)
		;
	w->said[0] = '\0';
	assert_int_equal(start(w->wards, 3, "exit 3"), BATON_OK);
	do
		news = await_news(w);
	while (news.kind != WARD_ENDED);
	assert_int_equal(news.id, 3);
	wards_stop_all(w->wards, true);
	for (int ends = 0; ends < 2; ends += news.kind == WARD_ENDED)
		news = await_news(w);
}

static void inputs_are_found_on_standard_input(void **state)
{
	struct world *w = *state;
	char *argv[] = {(char *)"cat", NULL};
	const struct baton_str input[] = {BATON_STR("one"), BATON_STR(""), BATON_STR("t\0o")};
	struct ward_spec spec = spec_of(1, argv);
	spec.input = input;
	spec.inputs = 3;
	assert_int_equal(wards_start(w->wards, &spec), BATON_OK);
	await_end(w);
	assert_int_equal(w->text_len, 6);
	assert_memory_equal(w->text, "onet\0o", 6);
	spec.separator = '\n';
	assert_int_equal(wards_start(w->wards, &spec), BATON_OK);
	await_end(w);
	assert_int_equal(w->text_len, 9);
	assert_memory_equal(w->text, "one\n\nt\0o\n", 9);
	spec.inputs = 0;
	assert_int_equal(wards_start(w->wards, &spec), BATON_OK);
	struct ward_news news = await_end(w);
	exits_with(&news, 0);
	assert_int_equal(w->text_len, 0);
}

static void an_input_larger_than_a_pipe_may_stay_unread(void **state)
{
	struct world *w = *state;
	size_t size = 3 << 20;
	char *bytes = calloc(size, 1);
	assert_non_null(bytes);
	char *argv[] = {(char *)"sh", (char *)"-c", (char *)"exec <&-; exit 4", NULL};
	struct baton_str input = {bytes, size};
	struct ward_spec spec = spec_of(1, argv);
	spec.input = &input;
	spec.inputs = 1;
	assert_int_equal(wards_start(w->wards, &spec), BATON_OK);
	struct ward_news news = await_end(w);
	exits_with(&news, 4);
	argv[2] = (char *)"wc -c";
	assert_int_equal(wards_start(w->wards, &spec), BATON_OK);
	await_end(w);
	assert_int_equal(atoi(w->text), size);
	/* Nobody can change what is there. */
	argv[2] = (char *)"echo x 1<>/dev/stdin";
	assert_int_equal(wards_start(w->wards, &spec), BATON_OK);
	news = await_end(w);
	assert_int_equal(news.how, WARD_EXITED);
	assert_int_not_equal(news.code, 0);
	free(bytes);
}

static void an_input_beyond_the_limit_is_refused(void **state)
{
	struct world *w = *state;
	char *argv[] = {(char *)"cat", NULL};
	struct baton_str input[] = {{"x", 1}, {"x", WARDS_INPUT_MAX - 2}};
	struct ward_spec spec = spec_of(1, argv);
	spec.input = input;
	spec.inputs = 2;
	assert_int_equal(wards_start(w->wards, &spec), BATON_INVALID);
	assert_non_null(strstr(baton_err_detail(), "1073741824"));
}

static void variables_are_added_and_win(void **state)
{
	struct world *w = *state;
	char *argv[] = {(char *)"sh", (char *)"-c", (char *)"echo \"$A,$HOME,$USER_OF_TEST\"",
	                NULL};
	char *env[] = {(char *)"A=1", (char *)"HOME=there", NULL};
	struct ward_spec spec = spec_of(1, argv);
	spec.env = env;
	setenv("USER_OF_TEST", "unknown to the guardian", 1);
	assert_int_equal(wards_start(w->wards, &spec), BATON_OK);
	await_end(w);
	assert_string_equal(w->text, "1,there,\n");
}

static void arguments_beyond_the_limit_are_refused(void **state)
{
	struct world *w = *state;
	char *big = malloc(WARDS_ARGS_MAX + 1);
	assert_non_null(big);
	memset(big, 'x', WARDS_ARGS_MAX);
	big[WARDS_ARGS_MAX] = '\0';
	char *argv[] = {(char *)"true", big, NULL};
	struct ward_spec spec = spec_of(1, argv);
	assert_int_equal(wards_start(w->wards, &spec), BATON_INVALID);
	assert_non_null(strstr(baton_err_detail(), "1048576"));
	/* What only the kernel refuses is told as the end. */
	big[WARDS_ARGS_MAX / 2] = '\0';
	assert_int_equal(wards_start(w->wards, &spec), BATON_OK);
	struct ward_news news = await_end(w);
	assert_int_equal(news.how, WARD_UNSTARTED);
	assert_int_equal(news.code, E2BIG);
	/* More than a packet would hold. */
	char *many[101];
	big[100000] = '\0';
	many[0] = (char *)"true";
	for (int i = 1; i < 10; i++)
		many[i] = big;
	many[10] = NULL;
	spec.argv = many;
	assert_int_equal(wards_start(w->wards, &spec), BATON_OK);
	news = await_end(w);
	exits_with(&news, 0);
	free(big);
}

static void a_command_gets_its_channel_and_no_other_descriptor(void **state)
{
	struct world *w = *state;
	int ends[2];
	char word[16] = "";
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	char *argv[] = {(char *)"sh", (char *)"-c", (char *)"echo hello >&3; ls /proc/self/fd",
	                NULL};
	struct ward_spec spec = spec_of(1, argv);
	spec.channel = ends[1];
	assert_int_equal(wards_start(w->wards, &spec), BATON_OK);
	close(ends[1]);
	await_end(w);
	assert_int_equal(read(ends[0], word, sizeof word), 6);
	assert_string_equal(word, "hello\n");
	/* Nobody else has it any more. */
	assert_int_equal(read(ends[0], word, sizeof word), 0);
	close(ends[0]);
	/* 4 is where ls reads them. */
	assert_string_equal(w->text, "0\n1\n100\n101\n2\n3\n4\n");
	spec.channel = -1;
	assert_int_equal(wards_start(w->wards, &spec), BATON_OK);
	await_end(w);
	assert_string_equal(w->text, "0\n1\n100\n101\n2\n3\n");
}

static void a_command_leads_a_group_and_finds_signals_as_usual(void **state)
{
	struct world *w = *state;
	sigset_t blocked, before;
	sigfillset(&blocked);
	wards_close(w->wards);
	w->wards = NULL;
	assert_int_equal(sigprocmask(SIG_SETMASK, &blocked, &before), 0);
	signal(SIGPIPE, SIG_IGN);
	struct wards_ask ask = {.life = w->life};
	enum baton_err e = wards_open(&ask, &w->wards);
	signal(SIGPIPE, SIG_DFL);
	assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
	assert_int_equal(e, BATON_OK);
	/* Whether the two above the first 31, which are the C library's own, are ignored is of no
	 * interest. */
	struct ward_news news = run(w, "read pid name state parent group rest < /proc/$$/stat; "
	                               "[ $group = $$ ] && "
	                               "grep -q 'SigBlk:.0*$' /proc/self/status && "
	                               "grep -q 'SigIgn:.*[08]0000000$' /proc/self/status");
	exits_with(&news, 0);
}

static void what_a_command_leaves_behind_is_dead_when_its_end_is_told(void **state)
{
	struct world *w = *state;
	int hold[2];
	char byte;
	/* The channel is open as long as one of them lives. */
	char *argv[] = {(char *)"sh", (char *)"-c",
	                (char *)"trap '' TERM; (setsid sh -c 'trap \"\" TERM; echo up >&2; "
	                        "sleep 1000; :' &) ; read x < \"$0\"; sleep 1000 & exit 9",
	                w->gate, NULL};
	assert_int_equal(mkfifo(w->gate, 0600), 0);
	assert_int_equal(pipe2(hold, O_CLOEXEC | O_NONBLOCK), 0);
	struct ward_spec spec = spec_of(1, argv);
	spec.channel = hold[1];
	assert_int_equal(wards_start(w->wards, &spec), BATON_OK);
	close(hold[1]);
	await_line(w, "up");
	int gate = open(w->gate, O_WRONLY | O_CLOEXEC);
	assert_true(gate >= 0);
	close(gate);
	struct ward_news news = await_end(w);
	exits_with(&news, 9);
	assert_int_equal(read(hold[0], &byte, 1), 0);
	close(hold[0]);
}

static void who_is_always_somebody_else_is_dead_too(void **state)
{
	struct world *w = *state;
	struct ward_news news = run(w, "echo up >&2; (\"$BATON_RUNAWAY\" sessions &); exit 8");
	exits_with(&news, 8);
}

static void stopping_asks_the_group_first(void **state)
{
	struct world *w = *state;
	assert_int_equal(start(w->wards, 3,
	                       "trap 'echo child >&2; exit 0' TERM; (trap 'echo grandchild >&2; "
	                       "exit' TERM; echo up >&2; while :; do sleep 1000 & wait; done) & "
	                       "while :; do wait; done"),
	                 BATON_OK);
	await_line(w, "up");
	wards_stop(w->wards, 4711, true); /* nobody's */
	wards_stop(w->wards, 3, false);
	struct ward_news news = await_end(w);
	exits_with(&news, 0);
	assert_non_null(strstr(w->said, "\nchild\n"));
	assert_false(news.timed_out);
}

static void whoever_ignores_that_is_killed_after_the_grace(void **state)
{
	struct world *w = *state;
	char *argv[] = {(char *)"sh", (char *)"-c",
	                (char *)"trap '' TERM; echo up >&2; while :; do sleep 1000; done", NULL};
	struct ward_spec spec = spec_of(1, argv);
	spec.grace = baton_duration_ms(20);
	assert_int_equal(wards_start(w->wards, &spec), BATON_OK);
	await_line(w, "up");
	wards_stop(w->wards, 1, false);
	struct ward_news news = await_end(w);
	killed_by(&news, SIGKILL);
}

static void stopping_now_does_not_ask(void **state)
{
	struct world *w = *state;
	assert_int_equal(start(w->wards, 3,
	                       "trap 'exit 1' TERM; echo up >&2; read x <\"$0\"; "
	                       "while :; do sleep 1000; done"),
	                 BATON_OK);
	await_line(w, "up");
	wards_stop(w->wards, 3, true);
	struct ward_news news = await_end(w);
	killed_by(&news, SIGKILL);
	/* Also after it was asked. */
	assert_int_equal(start(w->wards, 3,
	                       "trap '' TERM; echo up >&2; while :; do sleep 1000; done"),
	                 BATON_OK);
	await_line(w, "up");
	wards_stop(w->wards, 3, false);
	wards_stop_all(w->wards, true);
	news = await_end(w);
	killed_by(&news, SIGKILL);
}

static void who_is_stopped_by_a_signal_can_be_ended(void **state)
{
	struct world *w = *state;
	assert_int_equal(start(w->wards, 3, "trap 'exit 6' TERM; (kill -STOP $$; echo up >&2)"),
	                 BATON_OK);
	await_line(w, "up");
	wards_stop(w->wards, 3, false);
	struct ward_news news = await_end(w);
	exits_with(&news, 6);
}

static void a_timeout_stops_a_command(void **state)
{
	struct world *w = *state;
	char *argv[] = {(char *)"sh", (char *)"-c", (char *)"sleep 1000", NULL};
	struct ward_spec spec = spec_of(1, argv);
	spec.timeout = baton_duration_ms(20);
	assert_int_equal(wards_start(w->wards, &spec), BATON_OK);
	struct ward_news news = await_end(w);
	killed_by(&news, SIGTERM);
	assert_true(news.timed_out);
}

static void many_run_at_once_and_each_tells_its_own(void **state)
{
	struct world *w = *state;
	enum {
		MANY = 300
	};
	bool ended[MANY] = {false};
	for (uint64_t i = 0; i < MANY; i++) {
		char script[64];
		snprintf(script, sizeof script, "echo %d; exit %d", (int)i, (int)i % 100);
		assert_int_equal(start(w->wards, i, script), BATON_OK);
	}
	for (int i = 0; i < MANY; i++) {
		struct ward_news news = await_end(w);
		exits_with(&news, (int)news.id % 100);
		assert_int_equal(atoi(w->text), news.id);
		assert_false(ended[news.id]);
		ended[news.id] = true;
	}
}

int main(void)
{
	skips_repair();
	const struct CMUnitTest tests[] = {
		TEST(the_end_tells_status_and_output),
		TEST(a_command_that_cannot_be_executed_says_why),
		TEST(lines_of_standard_error_are_told_one_by_one),
		TEST(standard_output_is_told_by_line_too_if_asked_for),
		TEST(a_long_line_comes_in_pieces),
		TEST(a_flood_is_cut_and_flagged),
		TEST(exactly_as_much_as_is_kept_is_not_cut),
		TEST(an_endless_flood_does_not_keep_the_runner_from_others),
		TEST(inputs_are_found_on_standard_input),
		TEST(an_input_larger_than_a_pipe_may_stay_unread),
		TEST(an_input_beyond_the_limit_is_refused),
		TEST(variables_are_added_and_win),
		TEST(arguments_beyond_the_limit_are_refused),
		TEST(a_command_gets_its_channel_and_no_other_descriptor),
		TEST(a_command_leads_a_group_and_finds_signals_as_usual),
		TEST(what_a_command_leaves_behind_is_dead_when_its_end_is_told),
		TEST(who_is_always_somebody_else_is_dead_too),
		TEST(stopping_asks_the_group_first),
		TEST(whoever_ignores_that_is_killed_after_the_grace),
		TEST(stopping_now_does_not_ask),
		TEST(who_is_stopped_by_a_signal_can_be_ended),
		TEST(a_timeout_stops_a_command),
		TEST(many_run_at_once_and_each_tells_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
