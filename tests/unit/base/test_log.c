/* The log, through real descriptors. */
#include <baton/log.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "support/fake_clock.h"
#include "support/harness.h"

#define TS "ts=2026-01-01T00:00:00.000Z "

/* A log into a pipe, at a standing time. */
struct world {
	struct fake_clock clock;
	struct baton_log log;
	uint64_t dropped;
	int read_end;
	int write_end;
};

static int setup(void **state)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) != 0)
		return -1;
	struct world *w = calloc(1, sizeof *w);
	if (w == NULL)
		return -1;
	fake_clock_init(&w->clock, (struct baton_mono){0});
	w->read_end = fds[0];
	w->write_end = fds[1];
	w->log = (struct baton_log){
		.clock = &w->clock.clock,
		.fd = fds[1],
		.level = BATON_LOG_INFO,
		.format = BATON_LOG_LOGFMT,
		.dropped = &w->dropped,
	};
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	fd_closep(&w->read_end);
	fd_closep(&w->write_end);
	fake_clock_done(&w->clock);
	free(w);
	return 0;
}

/* What stands in the pipe, which is not empty, as a C string. */
static void read_pipe(struct world *w, char *text, size_t size)
{
	ssize_t n = read(w->read_end, text, size - 1);
	assert_true(n >= 0);
	text[n] = '\0';
}

static void assert_logged(struct world *w, const char *expected)
{
	char text[2 * BATON_LOG_RECORD_MAX];
	/* So that an empty pipe is an end and not a wait. */
	assert_int_equal(fcntl(w->read_end, F_SETFL, O_NONBLOCK), 0);
	ssize_t n = read(w->read_end, text, sizeof text - 1);
	text[n > 0 ? n : 0] = '\0';
	assert_string_equal(text, expected);
}

static void a_record_is_a_line(void **state)
{
	struct world *w = *state;
	BATON_LOG(&w->log, BATON_LOG_INFO, "lease lost",
	          baton_field_str("subject", BATON_STR("foo")));
	assert_logged(w, TS "level=info msg=\"lease lost\" subject=foo\n");

	w->log.format = BATON_LOG_JSON;
	BATON_LOG(&w->log, BATON_LOG_WARN, "lease lost",
	          baton_field_str("subject", BATON_STR("foo")), baton_field_uint("fence", 7));
	assert_logged(
		w, "{\"ts\":\"2026-01-01T00:00:00.000Z\",\"level\":\"warn\",\"msg\":\"lease lost\","
		   "\"subject\":\"foo\",\"fence\":7}\n");

	baton_log_write(&w->log, BATON_LOG_ERROR, "bare", NULL, 0);
	assert_logged(
		w, "{\"ts\":\"2026-01-01T00:00:00.000Z\",\"level\":\"error\",\"msg\":\"bare\"}\n");
}

static void records_below_the_level_are_not_written(void **state)
{
	struct world *w = *state;
	baton_log_write(&w->log, BATON_LOG_DEBUG, "no", NULL, 0);
	w->log.level = BATON_LOG_ERROR;
	baton_log_write(&w->log, BATON_LOG_WARN, "no", NULL, 0);
	baton_log_write(NULL, BATON_LOG_ERROR, "no", NULL, 0);
	assert_logged(w, "");
	baton_log_write(&w->log, BATON_LOG_ERROR, "yes", NULL, 0);
	assert_logged(w, TS "level=error msg=yes\n");
	assert_int_equal(w->dropped, 0);
}

static void without_a_clock_it_is_the_systems_time(void **state)
{
	struct world *w = *state;
	char before[BATON_STORE_TIME_TEXT], after[BATON_STORE_TIME_TEXT], text[200];
	const struct baton_clock *clock = baton_clock_awake();
	w->log.clock = NULL;
	baton_store_time_print(clock->wall(clock), before);
	baton_log_write(&w->log, BATON_LOG_INFO, "now", NULL, 0);
	baton_store_time_print(clock->wall(clock), after);
	read_pipe(w, text, sizeof text);
	/* Texts of this form are in the order of their times. */
	assert_true(strncmp(text + strlen("ts="), before, strlen(before)) >= 0);
	assert_true(strncmp(text + strlen("ts="), after, strlen(after)) <= 0);
}

static void errno_and_the_error_detail_survive(void **state)
{
	struct world *w = *state;
	fail(BATON_INVALID, "the detail");
	errno = EXDEV;
	baton_log_write(&w->log, BATON_LOG_INFO, "written", NULL, 0);
	assert_int_equal(errno, EXDEV);
	w->log.fd = -1;
	baton_log_write(&w->log, BATON_LOG_INFO, "not written", NULL, 0);
	assert_int_equal(errno, EXDEV);
	assert_int_equal(w->dropped, 1);
	assert_string_equal(baton_err_detail(), "the detail");
}

/* Fills the pipe to the last byte, without blocking. */
static void fill_pipe(struct world *w)
{
	static const char junk[4096];
	assert_int_equal(fcntl(w->write_end, F_SETFL, O_NONBLOCK), 0);
	while (write(w->write_end, junk, sizeof junk) > 0 || write(w->write_end, junk, 1) > 0)
		continue;
}

static void drain_pipe(struct world *w)
{
	char junk[4096];
	assert_int_equal(fcntl(w->read_end, F_SETFL, O_NONBLOCK), 0);
	while (read(w->read_end, junk, sizeof junk) > 0)
		continue;
}

static void what_a_full_pipe_refuses_is_counted_and_told_once(void **state)
{
	struct world *w = *state;
	fill_pipe(w);
	baton_log_write(&w->log, BATON_LOG_INFO, "first", NULL, 0);
	baton_log_write(&w->log, BATON_LOG_INFO, "second", NULL, 0);
	assert_int_equal(w->dropped, 2);
	drain_pipe(w);
	baton_log_write(&w->log, BATON_LOG_INFO, "third", NULL, 0);
	assert_logged(w, TS "level=info msg=third dropped=2\n");
	assert_int_equal(w->dropped, 0);
	baton_log_write(&w->log, BATON_LOG_INFO, "fourth", NULL, 0);
	assert_logged(w, TS "level=info msg=fourth\n");
}

static void without_a_counter_nothing_is_counted(void **state)
{
	struct world *w = *state;
	w->log.dropped = NULL;
	fill_pipe(w);
	baton_log_write(&w->log, BATON_LOG_INFO, "first", NULL, 0);
	drain_pipe(w);
	baton_log_write(&w->log, BATON_LOG_INFO, "second", NULL, 0);
	assert_logged(w, TS "level=info msg=second\n");
}

static bool sigpipe_is_pending(void)
{
	sigset_t pending;
	sigpending(&pending);
	return sigismember(&pending, SIGPIPE) == 1;
}

static void a_reader_that_went_away_costs_a_record_and_no_signal(void **state)
{
	struct world *w = *state;
	fd_closep(&w->read_end);
	w->read_end = -1;
	/* With the default action this would end the test. */
	baton_log_write(&w->log, BATON_LOG_INFO, "to nobody", NULL, 0);
	assert_int_equal(w->dropped, 1);

	/* Blocked by the caller: neither left pending, nor one of his own taken away. */
	sigset_t sigpipe, old;
	sigemptyset(&sigpipe);
	sigaddset(&sigpipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &sigpipe, &old);
	baton_log_write(&w->log, BATON_LOG_INFO, "to nobody", NULL, 0);
	assert_false(sigpipe_is_pending());
	pthread_kill(pthread_self(), SIGPIPE);
	baton_log_write(&w->log, BATON_LOG_INFO, "to nobody", NULL, 0);
	assert_true(sigpipe_is_pending());
	assert_int_equal(sigwaitinfo(&sigpipe, NULL), SIGPIPE);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	assert_int_equal(w->dropped, 3);
}

static void the_signal_mask_is_as_it_was(void **state)
{
	struct world *w = *state;
	sigset_t mask;
	baton_log_write(&w->log, BATON_LOG_INFO, "m", NULL, 0);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	assert_int_equal(sigismember(&mask, SIGPIPE), 0);
}

static int interrupted; /* [signal handler] */
static int reader_fd;   /* [signal handler] */

/* Lets the writer go on after a few interruptions. */
static void on_alarm(int number)
{
	(void)number;
	int saved = errno;
	char junk[4096];
	if (__atomic_add_fetch(&interrupted, 1, __ATOMIC_RELAXED) >= 3)
		for (int i = 0; i < 2; i++)
			if (read(reader_fd, junk, sizeof junk) < 0)
				break;
	errno = saved;
}

static void a_write_that_signals_interrupt_is_taken_up_again(void **state)
{
	struct world *w = *state;
	fill_pipe(w);
	assert_int_equal(fcntl(w->write_end, F_SETFL, 0), 0);
	reader_fd = w->read_end;
	interrupted = 0;
	/* Without SA_RESTART, so that the write returns EINTR. */
	struct sigaction action = {.sa_handler = on_alarm}, old;
	sigaction(SIGALRM, &action, &old);
	struct itimerval every = {{0, 1000}, {0, 1000}};
	setitimer(ITIMER_REAL, &every, NULL);
	baton_log_write(&w->log, BATON_LOG_INFO, "at last", NULL, 0);
	setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
	sigaction(SIGALRM, &old, NULL);
	assert_int_equal(w->dropped, 0);
	assert_true(interrupted >= 3);
}

/* Fills a stream socket but for one piece of a record, which then takes that piece and waits. */
static void fill_socket_but_for_one_piece(int near, int far)
{
	char byte = 'x';
	int room = 1; /* the least that the kernel allows */
	assert_int_equal(setsockopt(near, SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
	while (send(near, &byte, 1, MSG_DONTWAIT) == 1)
		continue;
	assert_int_equal(read(far, &byte, 1), 1);
	assert_int_equal(fcntl(far, F_SETFL, O_NONBLOCK), 0);
}

/* A signal ends a write that waits with what it took so far. */
static void what_a_write_took_in_part_is_finished(void **state)
{
	struct world *w = *state;
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	AUTO(fd_closep) int near = fds[0];
	AUTO(fd_closep) int far = fds[1];
	fill_socket_but_for_one_piece(near, far);
	w->log.fd = near;
	reader_fd = far;
	interrupted = 0;
	char value[2 * BATON_LOG_RECORD_MAX];
	memset(value, 'v', sizeof value);
	struct sigaction action = {.sa_handler = on_alarm}, old;
	sigaction(SIGALRM, &action, &old);
	setitimer(ITIMER_REAL, &(struct itimerval){{0, 1000}, {0, 1000}}, NULL);
	BATON_LOG(&w->log, BATON_LOG_INFO, "long",
	          baton_field_str("v", (struct baton_str){value, sizeof value}));
	setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
	sigaction(SIGALRM, &old, NULL);
	assert_true(interrupted >= 3);
	assert_int_equal(w->dropped, 0);
}

static void what_cannot_be_finished_counts_as_dropped_and_stays(void **state)
{
	struct world *w = *state;
	FILE *file = tmpfile();
	assert_non_null(file);
	w->log.fd = fileno(file);
	struct rlimit old;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, SIG_IGN);
	struct rlimit small = {.rlim_cur = 10, .rlim_max = old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	baton_log_write(&w->log, BATON_LOG_INFO, "first", NULL, 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(w->dropped, 1);
	baton_log_write(&w->log, BATON_LOG_INFO, "second", NULL, 0);
	char text[200];
	rewind(file);
	assert_non_null(fgets(text, sizeof text, file));
	assert_string_equal(text, "ts=2026-01" TS "level=info msg=second dropped=1\n");
	fclose(file);
}

static void a_record_can_be_the_only_statement_of_a_branch(void **state)
{
	struct world *w = *state;
	if (w->dropped > 0)
		BATON_LOG(&w->log, BATON_LOG_INFO, "no", baton_field_int("i", 1));
	else
		BATON_LOG(&w->log, BATON_LOG_INFO, "yes", baton_field_int("i", 2));
	assert_logged(w, TS "level=info msg=yes i=2\n");
}

#define WRITERS 4
#define LINES 500
#define VALUE_LEN 700

struct writer {
	const struct baton_log *log;
	char letter;
};

static void *write_lines(void *arg)
{
	const struct writer *writer = arg;
	char value[VALUE_LEN];
	memset(value, writer->letter, sizeof value);
	for (int i = 0; i < LINES; i++)
		BATON_LOG(writer->log, BATON_LOG_INFO, "m",
		          baton_field_str("v", (struct baton_str){value, sizeof value}));
	return NULL;
}

/* Checks a line and returns which writer wrote it. */
static int writer_of(const char *line)
{
	char expected[sizeof TS "level=info msg=m v=" + VALUE_LEN];
	static const char before[] = TS "level=info msg=m v=";
	size_t len = sizeof before - 1;
	memcpy(expected, before, len);
	memset(expected + len, line[len], VALUE_LEN);
	expected[len + VALUE_LEN] = '\0';
	assert_string_equal(line, expected);
	assert_in_range(line[len], 'a', 'a' + WRITERS - 1);
	return line[len] - 'a';
}

static void lines_of_several_threads_never_mix(void **state)
{
	struct world *w = *state;
	struct writer writers[WRITERS];
	pthread_t threads[WRITERS];
	int lines[WRITERS] = {0};
	for (int i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){&w->log, (char)('a' + i)};
		assert_int_equal(pthread_create(&threads[i], NULL, write_lines, &writers[i]), 0);
	}
	FILE *from = fdopen(dup(w->read_end), "r");
	assert_non_null(from);
	for (int i = 0; i < WRITERS * LINES; i++) {
		char line[BATON_LOG_RECORD_MAX + 1];
		assert_non_null(fgets(line, sizeof line, from));
		line[strcspn(line, "\n")] = '\0';
		lines[writer_of(line)]++;
	}
	fclose(from);
	for (int i = 0; i < WRITERS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(lines[i], LINES);
	}
	assert_int_equal(w->dropped, 0);
}

static void *write_to_nobody(void *arg)
{
	for (int i = 0; i < LINES; i++)
		baton_log_write(arg, BATON_LOG_INFO, "m", NULL, 0);
	return NULL;
}

static void several_threads_lose_no_count(void **state)
{
	struct world *w = *state;
	pthread_t threads[WRITERS];
	fill_pipe(w);
	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_to_nobody, &w->log), 0);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(w->dropped, WRITERS * LINES);
}

#define LOG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOG_TEST(a_record_is_a_line),
		LOG_TEST(records_below_the_level_are_not_written),
		LOG_TEST(without_a_clock_it_is_the_systems_time),
		LOG_TEST(errno_and_the_error_detail_survive),
		LOG_TEST(what_a_full_pipe_refuses_is_counted_and_told_once),
		LOG_TEST(without_a_counter_nothing_is_counted),
		LOG_TEST(a_reader_that_went_away_costs_a_record_and_no_signal),
		LOG_TEST(the_signal_mask_is_as_it_was),
		LOG_TEST(a_write_that_signals_interrupt_is_taken_up_again),
		LOG_TEST(what_a_write_took_in_part_is_finished),
		LOG_TEST(what_cannot_be_finished_counts_as_dropped_and_stays),
		LOG_TEST(a_record_can_be_the_only_statement_of_a_branch),
		LOG_TEST(lines_of_several_threads_never_mix),
		LOG_TEST(several_threads_lose_no_count),
	};
	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
