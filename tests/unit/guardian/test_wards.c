/* Commands under a guardian: what they find, say and leave behind, and how they end. */
#include "guardian/wards.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <baton/clock.h>

#include "guardian/errand.h"
#include "scratch.h"
#include "support/child.h"
#include "support/fault.h"
#include "support/harness.h"
#include "support/skips.h"

#define HOUR 3600

/* How long something may take that happens. */
#define BOUND_MS 60000

struct world {
	char folder[64];
	char life[96], file[96], gate[96];
	struct wards *wards;
	char said[8192]; /* all lines so far, each with a newline */
	char text[8192]; /* the output of the last one that ended */
	size_t text_len;
	bool begun;
	bool lost;
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	if (!w)
		return -1;
	strcpy(w->folder, "/tmp/baton-wards-XXXXXX");
	if (!mkdtemp(w->folder))
		return -1;
	snprintf(w->life, sizeof w->life, "%s/life", w->folder);
	snprintf(w->file, sizeof w->file, "%s/witness", w->folder);
	snprintf(w->gate, sizeof w->gate, "%s/gate", w->folder);
	struct wards_ask ask = {.life = w->life};
	*state = w;
	return wards_open(&ask, &w->wards) == BATON_OK ? 0 : -1;
}

static int teardown(void **state)
{
	struct world *w = *state;
	wards_close(w->wards);
	int failed = access(w->life, F_OK) == 0; /* it is removed */
	failed |= scratch_remove(w->folder);
	free(w);
	return failed;
}

static struct ward_spec spec_of(uint64_t id, char *const *argv)
{
	return (struct ward_spec){
		.id = id,
		.argv = argv,
		.channel = -1,
		.grace = baton_duration_s(HOUR),
		.output_max = sizeof((struct world *)NULL)->text,
	};
}

static enum baton_err start(struct wards *w, uint64_t id, const char *script)
{
	char shell[] = "sh", option[] = "-c";
	char *argv[] = {shell, option, (char *)script, NULL};
	struct ward_spec spec = spec_of(id, argv);
	return wards_start(w, &spec);
}

/* Waits for the next news. */
static struct ward_news await_news(struct world *w)
{
	struct ward_news news = {.kind = 0};
	while (!wards_next(w->wards, &news)) {
		struct pollfd fd = {.fd = wards_fd(w->wards), .events = POLLIN};
		if (poll(&fd, 1, BOUND_MS) == 0)
			fail_msg("nothing happens");
	}
	return news;
}

static void note(struct world *w, const struct ward_news *news)
{
	size_t used = strlen(w->said);
	switch (news->kind) {
	case WARD_BEGUN:
		w->begun = true;
		break;
	case WARD_SAID:
		snprintf(w->said + used, sizeof w->said - used, "%.*s\n", (int)news->text.len,
		         news->text.ptr);
		break;
	case WARD_ENDED:
		assert_true(news->text.len < sizeof w->text);
		if (news->text.len > 0)
			memcpy(w->text, news->text.ptr, news->text.len);
		w->text[news->text.len] = '\0';
		w->text_len = news->text.len;
		break;
	case WARD_GUARDIAN_LOST:
		w->lost = true;
		break;
	}
}

/* Waits until `kind` is told, and notes all that comes before. */
static struct ward_news await_kind(struct world *w, enum ward_kind kind)
{
	for (;;) {
		struct ward_news news = await_news(w);
		note(w, &news);
		if (news.kind == kind)
			return news;
	}
}

static struct ward_news await_end(struct world *w)
{
	return await_kind(w, WARD_ENDED);
}

/* Waits until it has said this line. */
static void await_line(struct world *w, const char *line)
{
	for (;;) {
		struct ward_news news = await_kind(w, WARD_SAID);
		if (news.text.len == strlen(line) &&
		    memcmp(news.text.ptr, line, news.text.len) == 0)
			return;
	}
}

static struct ward_news run(struct world *w, const char *script)
{
	assert_int_equal(start(w->wards, 7, script), BATON_OK);
	return await_end(w);
}

static void exits_with(const struct ward_news *news, int code)
{
	assert_int_equal(news->how, WARD_EXITED);
	assert_int_equal(news->code, code);
}

static void killed_by(const struct ward_news *news, int sig)
{
	assert_int_equal(news->how, WARD_SIGNALED);
	assert_int_equal(news->code, sig);
}

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
	assert_int_equal(start(w->wards, 3, "trap 'exit 6' TERM; echo up >&2; kill -STOP $$"),
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
	argv[2] = (char *)"trap '' TERM; while :; do sleep 1000; done";
	spec.grace = baton_duration_ms(20);
	assert_int_equal(wards_start(w->wards, &spec), BATON_OK);
	news = await_end(w);
	killed_by(&news, SIGKILL);
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

static struct baton_mono now_boot(void)
{
	return baton_clock_boot()->now(baton_clock_boot());
}

static void at_the_deadline_all_are_killed(void **state)
{
	struct world *w = *state;
	wards_deadline(w->wards, baton_mono_add(now_boot(), baton_duration_s(HOUR)));
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(start(w->wards, i,
		                       "trap '' TERM; (setsid sh -c 'echo up >&2; sleep 1000; :' "
		                       "&); while :; do sleep 1000; done"),
		                 BATON_OK);
		await_line(w, "up");
	}
	/* Later ones do not count once an earlier one was said. */
	wards_deadline(w->wards, baton_mono_add(now_boot(), baton_duration_s(2 * HOUR)));
	wards_deadline(w->wards, baton_mono_add(now_boot(), baton_duration_ms(20)));
	for (int i = 0; i < 3; i++) {
		struct ward_news news = await_end(w);
		killed_by(&news, SIGKILL);
		assert_false(news.timed_out);
	}
	struct ward_news news = run(w, "exit 0");
	assert_int_equal(news.how, WARD_UNSTARTED);
	assert_int_equal(news.code, ECANCELED);
	/* The guardian serves on. */
	wards_deadline(w->wards, baton_mono_add(now_boot(), baton_duration_s(HOUR)));
	news = run(w, "exit 7");
	exits_with(&news, 7);
	wards_deadline(w->wards, (struct baton_mono){0});
	news = run(w, "exit 7");
	assert_int_equal(news.code, ECANCELED);
	wards_deadline(w->wards, BATON_MONO_NEVER);
	news = run(w, "exit 7");
	exits_with(&news, 7);
}

/* In a process of its own: freezes while a command runs, and says how it went on. */
static int freeze(int channel, void *arg)
{
	struct world *w = arg;
	struct wards_ask ask = {.life = w->file, .awake = true};
	struct wards *wards;
	struct ward_news news = {.kind = 0};
	if (wards_open(&ask, &wards) != BATON_OK)
		return 1;
	char *argv[] = {(char *)"sleep", (char *)"1000", NULL};
	struct ward_spec spec = spec_of(1, argv);
	spec.channel = channel; /* it ends when both do */
	if (wards_start(wards, &spec) != BATON_OK)
		return 2;
	struct pollfd fd = {.fd = wards_fd(wards), .events = POLLIN};
	while (!wards_next(wards, &news))
		poll(&fd, 1, BOUND_MS);
	if (news.kind != WARD_BEGUN)
		return 3;
	const struct baton_clock *clock = baton_clock_awake();
	wards_deadline(wards, baton_mono_add(clock->now(clock), baton_duration_ms(20)));
	channel_send(channel, "frozen");
	close(channel);
	raise(SIGSTOP);
	_exit(0);
}

static void a_frozen_runner_does_not_put_the_deadline_off(void **state)
{
	struct world *w = *state;
	struct child c;
	char message[16];
	child_start(&c, freeze, w);
	assert_true(channel_receive(c.channel, message, sizeof message));
	/* Only the command has it now, so this is its end. */
	assert_false(channel_receive(c.channel, message, sizeof message));
	assert_int_equal(wards_lives(w->file), BATON_YIELD);
	siginfo_t info;
	assert_int_equal(waitid(P_PID, (id_t)c.pid, &info, WSTOPPED | WEXITED | WNOWAIT), 0);
	assert_int_equal(info.si_code, CLD_STOPPED);
	kill(c.pid, SIGCONT);
	assert_int_equal(child_reap(&c), 0);
}

static void a_killed_guardian_is_told_and_takes_all_with_it(void **state)
{
	struct world *w = *state;
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(start(w->wards, i,
		                       "echo x; (setsid sh -c 'echo up >&2; sleep "
		                       "1000; :' &); sleep 1000; :"),
		                 BATON_OK);
		await_line(w, "up");
	}
	assert_int_equal(kill(wards_pid(w->wards), SIGKILL), 0);
	await_kind(w, WARD_GUARDIAN_LOST);
	for (int i = 0; i < 3; i++) {
		struct ward_news news = await_end(w);
		killed_by(&news, SIGKILL);
		assert_string_equal(w->text, "x\n");
	}
	assert_int_equal(start(w->wards, 9, "exit 0"), BATON_GONE);
	/* It can be begun anew. */
	wards_close(w->wards);
	w->wards = NULL;
	struct wards_ask ask = {.life = w->life};
	assert_int_equal(wards_open(&ask, &w->wards), BATON_OK);
	struct ward_news news = run(w, "exit 1");
	exits_with(&news, 1);
}

static void a_command_that_kills_its_nanny_is_ended(void **state)
{
	struct world *w = *state;
	assert_int_equal(start(w->wards, 2, "echo other >&2; sleep 1000"), BATON_OK);
	await_line(w, "other");
	struct ward_news news =
		run(w, "(setsid sleep 1000 &); echo out; kill -KILL $PPID; while :; do :; done");
	killed_by(&news, SIGKILL);
	assert_int_equal(news.id, 7);
	assert_string_equal(w->text, "out\n");
	/* Nobody else is. */
	wards_stop(w->wards, 2, false);
	news = await_end(w);
	killed_by(&news, SIGTERM);
}

static void a_stopped_nanny_does_not_put_the_deadline_off(void **state)
{
	struct world *w = *state;
	int hold[2];
	char byte;
	char *argv[] = {(char *)"sh", (char *)"-c",
	                (char *)"trap '' TERM; (setsid sleep 1000 &); echo $PPID >&2; sleep 1000",
	                NULL};
	assert_int_equal(pipe2(hold, O_CLOEXEC | O_NONBLOCK), 0);
	struct ward_spec spec = spec_of(1, argv);
	spec.channel = hold[1];
	assert_int_equal(wards_start(w->wards, &spec), BATON_OK);
	close(hold[1]);
	await_kind(w, WARD_SAID);
	assert_int_equal(kill(atoi(w->said), SIGSTOP), 0);
	wards_deadline(w->wards, now_boot());
	struct ward_news news = await_end(w);
	killed_by(&news, SIGKILL);
	assert_int_equal(read(hold[0], &byte, 1), 0);
	close(hold[0]);
}

static void an_end_that_nobody_knows_of_is_told_when_all_have_gone(void **state)
{
	struct world *w = *state;
	assert_int_equal(mkfifo(w->gate, 0600), 0);
	char *argv[] = {(char *)"sh", (char *)"-c",
	                (char *)"(setsid sh -c 'echo up >&2; read x < \"$0\"' \"$0\" &); echo "
	                        "$PPID >&2; exec sleep 1000",
	                w->gate, NULL};
	struct ward_spec spec = spec_of(1, argv);
	assert_int_equal(wards_start(w->wards, &spec), BATON_OK);
	await_kind(w, WARD_SAID);
	await_kind(w, WARD_SAID);
	const char *number = strncmp(w->said, "up\n", 3) == 0 ? w->said + 3 : w->said;
	/* Guardian and nanny are killed, without a moment for one of them to clean up. */
	assert_int_equal(kill(wards_pid(w->wards), SIGSTOP), 0);
	assert_int_equal(kill(atoi(number), SIGKILL), 0);
	assert_int_equal(kill(wards_pid(w->wards), SIGKILL), 0);
	await_kind(w, WARD_GUARDIAN_LOST);
	/* The daemon waits for us. */
	int gate = open(w->gate, O_WRONLY | O_CLOEXEC);
	struct ward_news news;
	assert_false(wards_next(w->wards, &news));
	assert_int_equal(write(gate, "b\n", 2), 2);
	news = await_end(w);
	killed_by(&news, SIGKILL);
	close(gate);
}

static int hold_life(int channel, void *arg)
{
	struct world *w = arg;
	struct wards_ask ask = {.life = w->file};
	struct wards *wards;
	if (wards_open(&ask, &wards) != BATON_OK ||
	    start(wards, 1, "trap '' TERM; (setsid sleep 1000 &); sleep 1000; :") != BATON_OK)
		return 1;
	channel_send(channel, "held");
	pause();
	return 0;
}

static void the_life_of_a_dead_runner_ends_with_the_last_of_its_commands(void **state)
{
	struct world *w = *state;
	struct wards_ask ask = {.life = w->file};
	struct wards *wards = NULL;
	struct child c;
	char message[16];
	assert_int_equal(wards_lives(w->file), BATON_OK);
	child_start(&c, hold_life, w);
	assert_true(channel_receive(c.channel, message, sizeof message));
	assert_int_equal(wards_lives(w->file), BATON_YIELD);
	assert_int_equal(wards_open(&ask, &wards), BATON_YIELD);
	assert_null(wards);
	int fd = open(w->file, O_RDONLY | O_CLOEXEC);
	kill(c.pid, SIGKILL);
	assert_int_equal(child_reap(&c), 128 + SIGKILL);
	assert_int_equal(flock(fd, LOCK_SH), 0);
	close(fd);
	assert_int_equal(wards_lives(w->file), BATON_OK);
	assert_int_equal(wards_open(&ask, &wards), BATON_OK);
	wards_close(wards);
	assert_int_equal(access(w->file, F_OK), -1);
	assert_int_equal(wards_lives("/no/such/folder/life"), BATON_OK);
	assert_int_equal(wards_lives(w->folder), BATON_OK);
}

static void whoever_only_looks_is_not_in_the_way_for_long(void **state)
{
	struct world *w = *state;
	struct wards_ask ask = {.life = w->file};
	struct wards *wards = NULL;
	int fd = open(w->file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(flock(fd, LOCK_SH), 0);
	assert_int_equal(wards_open(&ask, &wards), BATON_BUSY);
	assert_null(wards);
	close(fd);
	assert_int_equal(wards_open(&ask, &wards), BATON_OK);
	wards_close(wards);
}

static void what_is_no_helper_is_refused(void **state)
{
	struct world *w = *state;
	struct wards *wards = NULL;
	struct wards_ask ask = {.life = w->file, .helper = "/no/such/helper"};
	assert_int_equal(wards_open(&ask, &wards), BATON_SYSTEM);
	assert_non_null(strstr(baton_err_detail(), "/no/such/helper"));
	ask.helper = "/bin/true";
	assert_int_equal(wards_open(&ask, &wards), BATON_SYSTEM);
	assert_non_null(strstr(baton_err_detail(), "/bin/true"));
	assert_int_equal(access(w->file, F_OK), -1);
	ask = (struct wards_ask){.life = "relative"};
	assert_int_equal(wards_open(&ask, &wards), BATON_INVALID);
	ask = (struct wards_ask){.life = NULL};
	assert_int_equal(wards_open(&ask, &wards), BATON_INVALID);
	assert_null(wards);
}

static void closing_kills_what_lives(void **state)
{
	struct world *w = *state;
	int hold[2];
	char byte;
	char *argv[] = {(char *)"sh", (char *)"-c",
	                (char *)"trap '' TERM; (setsid sh -c 'echo up >&2; sleep 1000; :' &); "
	                        "sleep 1000; :",
	                NULL};
	assert_int_equal(pipe2(hold, O_CLOEXEC | O_NONBLOCK), 0);
	struct ward_spec spec = spec_of(1, argv);
	spec.channel = hold[1];
	assert_int_equal(wards_start(w->wards, &spec), BATON_OK);
	close(hold[1]);
	await_line(w, "up");
	wards_close(w->wards);
	w->wards = NULL;
	assert_int_equal(read(hold[0], &byte, 1), 0);
	close(hold[0]);
	assert_int_equal(access(w->life, F_OK), -1);
}

static void a_runner_short_of_descriptors_is_told(void **state)
{
	struct world *w = *state;
	struct rlimit limit, few;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few = limit;
	int next = dup(0);
	close(next);
	for (int more = 0; more < 8; more++) {
		few.rlim_cur = (rlim_t)(next + more);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		enum baton_err e = start(w->wards, 1, "exit 0");
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		if (e == BATON_OK)
			await_end(w);
		else
			assert_int_equal(e, BATON_SYSTEM);
		int again = dup(0);
		close(again);
		assert_int_equal(again, next);
	}
}

static void each_failing_allocation_is_told_and_undone(void **state)
{
	struct world *w = *state;
	struct fault fault;
	fault_init(&fault);
	struct wards_ask ask = {.life = w->file, .alloc = &fault.alloc};
	struct wards *wards = NULL;
	for (unsigned n = 1;; n++) {
		fault_arm(&fault, n);
		enum baton_err e = wards_open(&ask, &wards);
		if (e == BATON_OK)
			e = start(wards, 1, "exit 0");
		bool fired = fault_fired(&fault);
		wards_close(wards);
		wards = NULL;
		assert_int_equal(fault_live_blocks(&fault), 0);
		assert_int_equal(e, fired ? BATON_NO_MEMORY : BATON_OK);
		if (!fired)
			break;
	}
	fault_done(&fault);
}

static void no_more_than_the_limit_can_be_started(void **state)
{
	struct world *w = *state;
	/* A guardian that does nothing lets all of them wait, with what they need. */
	struct rlimit limit;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_max < WARDS_MAX * 8)
		skip();
	rlim_t before = limit.rlim_cur;
	limit.rlim_cur = limit.rlim_max < 100000 ? limit.rlim_max : 100000;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(kill(wards_pid(w->wards), SIGSTOP), 0);
	for (uint64_t i = 0; i < WARDS_MAX; i++)
		assert_int_equal(start(w->wards, i, "sleep 1000"), BATON_OK);
	assert_int_equal(start(w->wards, WARDS_MAX, "exit 0"), BATON_FULL);
	assert_non_null(strstr(baton_err_detail(), "1024"));
	/* Those that were not sent never begin. */
	wards_stop_all(w->wards, true);
	struct ward_news news = await_end(w);
	assert_int_equal(news.how, WARD_UNSTARTED);
	assert_int_equal(news.code, ECANCELED);
	assert_int_equal(kill(wards_pid(w->wards), SIGCONT), 0);
	for (int i = 1; i < WARDS_MAX; i++)
		await_end(w);
	limit.rlim_cur = before;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	skips_repair();
	const struct CMUnitTest tests[] = {
		TEST(the_end_tells_status_and_output),
		TEST(a_command_that_cannot_be_executed_says_why),
		TEST(lines_of_standard_error_are_told_one_by_one),
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
		TEST(at_the_deadline_all_are_killed),
		TEST(a_frozen_runner_does_not_put_the_deadline_off),
		TEST(a_killed_guardian_is_told_and_takes_all_with_it),
		TEST(a_command_that_kills_its_nanny_is_ended),
		TEST(a_stopped_nanny_does_not_put_the_deadline_off),
		TEST(an_end_that_nobody_knows_of_is_told_when_all_have_gone),
		TEST(the_life_of_a_dead_runner_ends_with_the_last_of_its_commands),
		TEST(whoever_only_looks_is_not_in_the_way_for_long),
		TEST(what_is_no_helper_is_refused),
		TEST(closing_kills_what_lives),
		TEST(a_runner_short_of_descriptors_is_told),
		TEST(each_failing_allocation_is_told_and_undone),
		TEST(no_more_than_the_limit_can_be_started),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
