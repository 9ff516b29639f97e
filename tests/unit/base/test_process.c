/* What the kernel tells about processes, and how it is read. */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "support/child.h"
#include "support/harness.h"

#define STAT_TAIL                                                                 \
	" S 1 7 7 0 -1 4194560 100 0 0 0 1 2 3 4 20 0 1 0 987654321 1000000 200 " \
	"18446744073709551615\n"

static void the_start_time_stands_after_the_last_parenthesis(void **state)
{
	(void)state;
	static const char *const names[] = {
		"cat",      "",    ")",
		"(",        "a b", "a) S 1 7 7 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 5 (b",
		"))))))))", "\n",  "(sd-pam)",
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char text[300];
		uint64_t start = 0;
		snprintf(text, sizeof text, "7 (%s)" STAT_TAIL, names[i]);
		assert_true(process_parse_start(baton_str_z(text), &start));
		assert_int_equal(start, 987654321);
	}
}

static void a_line_without_a_start_time_tells_nothing(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"",
		"7",
		"7 (cat",
		"7 (cat)",
		"7 (cat) S 1 7 7 0 -1 4194560 100 0 0 0 1 2 3 4 20 0 1 0",
		"7 (cat) S 1 7 7 0 -1 4194560 100 0 0 0 1 2 3 4 20 0 1 0 ",
		"7 (cat) S 1 7 7 0 -1 4194560 100 0 0 0 1 2 3 4 20 0 1 0 -5 1",
		"7 (cat) S 1 7 7 0 -1 4194560 100 0 0 0 1 2 3 4 20 0 1 0 x 1",
		"7 (cat) S 1 7 7 0 -1 4194560 100 0 0 0 1 2 3 4 20 0 1 0 18446744073709551616 1",
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		uint64_t start = 99;
		errno = 0;
		assert_false(process_parse_start(baton_str_z(texts[i]), &start));
		assert_int_equal(start, 99);
		assert_int_equal(errno, EBADMSG);
	}
}

static void times_are_those_of_the_host_only_without_an_offset_since_boot(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		bool unshifted;
	} cases[] = {
		{"monotonic           0         0\nboottime            0         0\n", true},
		{"monotonic          99         0\nboottime            0         0\n", true},
		{"monotonic           0         0\nboottime          100         0\n", false},
		{"monotonic           0         0\nboottime         -100         0\n", false},
		{"monotonic           0         0\nboottime            0         1\n", false},
		{"boottime 0 0", true},
		{"boottime 0", false},
		{"boottime", false},
		{"monotonic 0 0\n", false},
		{"xboottime 0 0\n", false},
		{"", false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(process_parse_unshifted(baton_str_z(cases[i].text)),
		                 cases[i].unshifted);
}

static void the_pid_of_a_descriptor_is_the_line_of_that_name(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int32_t pid; /* 0: none */
	} cases[] = {
		{"pos:\t0\nflags:\t02000002\nmnt_id:\t15\nino:\t7\nPid:\t1234\nNSpid:\t1234\t1\n",
	         1234},
		{"Pid:\t1", 1},
		{"Pid:\t2147483647\n", INT32_MAX},
		{"Pid:\t2147483648\n", 0},
		{"NSpid:\t5\nPid:\t7\n", 7},
		{"NSpid:\t5\n", 0},
		{"Pid:\t0\nNSpid:\t0\n", 0},
		{"Pid:\t-1\nNSpid:\t-1\n", 0},
		{"Pid:\t\n", 0},
		{"Pid: 5\n", 0},
		{"", 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int32_t pid = 99;
		bool found = process_parse_pid(baton_str_z(cases[i].text), &pid);
		assert_int_equal(found, cases[i].pid != 0);
		assert_int_equal(pid, found ? cases[i].pid : 99);
	}
}

static void the_boot_id_is_the_kernels(void **state)
{
	(void)state;
	struct baton_id boot, again;
	assert_true(process_boot(&boot));
	assert_true(process_boot(&again));
	assert_true(baton_id_equal(&boot, &again));

	char uuid[64], digits[BATON_ID_TEXT];
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	assert_non_null(file);
	assert_non_null(fgets(uuid, sizeof uuid, file));
	fclose(file);
	size_t n = 0;
	for (const char *c = uuid; *c != '\0'; c++)
		if (*c != '-' && *c != '\n')
			digits[n++] = *c;
	digits[n] = '\0';
	char text[BATON_ID_TEXT];
	assert_string_equal(baton_id_print(&boot, text), digits);
}

static void the_namespace_is_the_inode_that_ls_shows(void **state)
{
	(void)state;
	char link[64], expected[64];
	ssize_t n = readlink("/proc/self/ns/pid", link, sizeof link - 1);
	assert_true(n > 0);
	link[n] = '\0';
	uint64_t pid_ns = 0;
	assert_true(process_pid_ns(&pid_ns));
	snprintf(expected, sizeof expected, "pid:[%llu]", (unsigned long long)pid_ns);
	assert_string_equal(link, expected);
}

static void a_process_sees_its_own_start_as_others_see_it(void **state)
{
	(void)state;
	uint64_t start = 0;
	uint64_t seen = 1;
	AUTO(fd_closep) int pidfd = -1;
	assert_true(process_start(&start));
	assert_true(start > 0);
	assert_true(process_open(getpid(), &pidfd));
	assert_true(process_start_of(pidfd, &seen));
	assert_int_equal(start, seen);
	assert_false(process_has_ended(pidfd));
}

static int wait_for_hang_up(int channel, void *arg)
{
	(void)arg;
	char message[8];
	/* A name that would mislead whoever reads the line from the left. */
	prctl(PR_SET_NAME, ") S 1 2 3 (");
	channel_send(channel, "ready");
	channel_receive(channel, message, sizeof message);
	return 0;
}

static void a_descriptor_follows_its_process_to_the_end(void **state)
{
	(void)state;
	struct child c;
	char message[8];
	AUTO(fd_closep) int pidfd = -1;
	uint64_t mine = 0;
	uint64_t start = 0;
	child_start(&c, wait_for_hang_up, NULL);
	assert_true(channel_receive(c.channel, message, sizeof message));
	assert_true(process_open(c.pid, &pidfd));
	assert_false(process_has_ended(pidfd));
	assert_true(process_start(&mine));
	assert_true(process_start_of(pidfd, &start));
	assert_true(start >= mine);

	child_hang_up(&c);
	child_await_end(&c);
	assert_true(process_has_ended(pidfd));
	assert_int_equal(child_reap(&c), 0);
	assert_true(process_has_ended(pidfd));
	start = 99;
	assert_false(process_start_of(pidfd, &start));
	assert_int_equal(start, 99);
}

static int run_for_ever(int channel, void *arg)
{
	(void)arg;
	channel_send(channel, "running");
	for (volatile unsigned i = 0;; i++)
		;
	return 0;
}

static void a_stopped_process_is_not_runnable(void **state)
{
	(void)state;
	struct child c;
	char message[16];
	siginfo_t info;
	child_start(&c, run_for_ever, NULL);
	assert_true(channel_receive(c.channel, message, sizeof message));
	assert_true(process_is_runnable(c.pid));
	kill(c.pid, SIGSTOP);
	assert_int_equal(waitid(P_PID, (id_t)c.pid, &info, WSTOPPED | WNOWAIT), 0);
	assert_false(process_is_runnable(c.pid));
	kill(c.pid, SIGKILL);
	child_await_end(&c);
	assert_false(process_is_runnable(c.pid));
	child_reap(&c);
	assert_false(process_is_runnable(c.pid));
	assert_false(process_is_runnable(0));
	assert_false(process_is_runnable(-1));
}

static void a_pid_that_nobody_has_is_not_opened(void **state)
{
	(void)state;
	int pidfd = -1;
	errno = 0;
	/* Above the highest pid that Linux gives out. */
	assert_false(process_open(INT32_MAX, &pidfd));
	assert_int_equal(errno, ESRCH);
	assert_int_equal(pidfd, -1);
}

static void nothing_here_touches_the_error_detail(void **state)
{
	(void)state;
	fail(BATON_INVALID, "kept");
	uint64_t n;
	int pidfd;
	process_parse_start(BATON_STR(""), &n);
	process_open(INT32_MAX, &pidfd);
	process_start_of(-1, &n);
	assert_false(process_has_ended(-1));
	assert_string_equal(baton_err_detail(), "kept");
}

static void a_line_about_a_lock_tells_whose_it_is(void **state)
{
	static const struct process_lock lock = {0xfe05, 1234, 120};
	static const char *const others[] = {
		"1: -> POSIX  ADVISORY  WRITE 4711 fe:05:1234 120 120\n",
		"1: POSIX  ADVISORY  READ 4711 fe:05:1234 120 120\n",
		"1: FLOCK  ADVISORY  WRITE 4711 fe:05:1234 0 EOF\n",
		"1: POSIX  ADVISORY  WRITE 4711 fe:05:1235 120 120\n",
		"1: POSIX  ADVISORY  WRITE 4711 fe:06:1234 120 120\n",
		"1: POSIX  ADVISORY  WRITE 4711 fe:05:1234 121 121\n",
		"1: POSIX  ADVISORY  WRITE 4711 fe:05:1234 100 119\n",
		"1: POSIX  ADVISORY  WRITE 0 fe:05:1234 120 120\n",
		"",
	};
	int32_t pid = 0;
	(void)state;
	assert_true(process_parse_lock("1: POSIX  ADVISORY  WRITE 4711 fe:05:1234 120 120\n", &lock,
	                               &pid));
	assert_int_equal(pid, 4711);
	assert_true(process_parse_lock("12: POSIX  ADVISORY  WRITE 12 fe:05:1234 0 EOF\n", &lock,
	                               &pid));
	assert_int_equal(pid, 12);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		assert_false(process_parse_lock(others[i], &lock, &pid));
	assert_int_equal(pid, 12);
}

static void who_has_a_lock_is_told(void **state)
{
	char path[] = "/tmp/baton-process-XXXXXX";
	struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 7, .l_len = 1};
	int32_t pid = 0;
	int fd = mkstemp(path);
	(void)state;
	assert_true(fd >= 0);
	assert_false(process_of_lock(path, 7, &pid));
	assert_int_equal(fcntl(fd, F_SETLK, &byte), 0);
	assert_true(process_of_lock(path, 7, &pid));
	assert_int_equal(pid, getpid());
	assert_false(process_of_lock(path, 8, &pid));
	assert_false(process_is_stopped(pid));
	close(fd);
	unlink(path);
	assert_false(process_of_lock(path, 7, &pid));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_about_a_lock_tells_whose_it_is),
		cmocka_unit_test(who_has_a_lock_is_told),
		cmocka_unit_test(the_start_time_stands_after_the_last_parenthesis),
		cmocka_unit_test(a_line_without_a_start_time_tells_nothing),
		cmocka_unit_test(times_are_those_of_the_host_only_without_an_offset_since_boot),
		cmocka_unit_test(the_pid_of_a_descriptor_is_the_line_of_that_name),
		cmocka_unit_test(the_boot_id_is_the_kernels),
		cmocka_unit_test(the_namespace_is_the_inode_that_ls_shows),
		cmocka_unit_test(a_process_sees_its_own_start_as_others_see_it),
		cmocka_unit_test(a_descriptor_follows_its_process_to_the_end),
		cmocka_unit_test(a_stopped_process_is_not_runnable),
		cmocka_unit_test(a_pid_that_nobody_has_is_not_opened),
		cmocka_unit_test(nothing_here_touches_the_error_detail),
	};
	return cmocka_run_group_tests_name("process", tests, NULL, NULL);
}
