/* The mark of the fences only ever rises, and is whole whatever happens to those who raise it. */
#include "contest/mark.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "support/child.h"
#include "support/harness.h"
#include "support/rng.h"
#include "support/skips.h"
#include "support/strike.h"

#define NOBODY 65534

struct world {
	char folder[64];
	char path[96];
	uint64_t at_least; /* what a child raises it to */
	mode_t mode;
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	if (!w)
		return -1;
	strcpy(w->folder, "/tmp/baton-mark-XXXXXX");
	if (!mkdtemp(w->folder))
		return -1;
	snprintf(w->path, sizeof w->path, "%s/fleet.mark", w->folder);
	w->mode = 0600;
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	unlink(w->path);
	rmdir(w->path);
	int left = rmdir(w->folder);
	free(w);
	return left;
}

static unsigned files_in(const char *folder)
{
	unsigned count = 0;
	DIR *dir = opendir(folder);
	assert_non_null(dir);
	for (struct dirent *d; (d = readdir(dir));)
		count += d->d_name[0] != '.';
	closedir(dir);
	return count;
}

/* Raises it and returns what it was before. */
static uint64_t raised(const struct world *w, uint64_t at_least)
{
	uint64_t before = 77;
	enum baton_err e = mark_raise(w->path, 0600, at_least, &before);
	if (e != BATON_OK)
		fail_msg("%s: %s", baton_err_name(e), baton_err_detail());
	return before;
}

static void put(const struct world *w, const char *text, size_t len)
{
	AUTO(fd_closep) int fd = open(w->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, text, len), (ssize_t)len);
}

static void assert_content(const struct world *w, const char *text)
{
	char content[64] = "";
	AUTO(fd_closep) int fd = open(w->path, O_RDONLY | O_CLOEXEC);
	assert_true(read(fd, content, sizeof content - 1) >= 0);
	assert_string_equal(content, text);
}

static void a_new_mark_is_one_line_of_twenty_digits(void **state)
{
	struct world *w = *state;
	struct stat st;
	assert_int_equal(raised(w, 1234567), 0);
	assert_content(w, "00000000000001234567\n");
	assert_int_equal(stat(w->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(files_in(w->folder), 1);
}

static void the_mode_does_not_depend_on_the_umask(void **state)
{
	struct world *w = *state;
	struct stat st;
	uint64_t before;
	mode_t old = umask(077);
	assert_int_equal(mark_raise(w->path, 0660, 1, &before), BATON_OK);
	umask(old);
	assert_int_equal(stat(w->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
}

static void it_rises_and_says_what_it_was_before(void **state)
{
	struct world *w = *state;
	assert_int_equal(raised(w, 10), 0);
	assert_int_equal(raised(w, 20), 10);
	assert_int_equal(raised(w, 20), 20);
	assert_content(w, "00000000000000000020\n");
}

static void it_is_never_lowered(void **state)
{
	struct world *w = *state;
	assert_int_equal(raised(w, 20), 0);
	assert_int_equal(raised(w, 19), 20);
	assert_int_equal(raised(w, 1), 20);
	assert_content(w, "00000000000000000020\n");
}

static void reading_makes_and_changes_nothing(void **state)
{
	struct world *w = *state;
	static const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	struct stat st;
	assert_int_equal(raised(w, 0), 0);
	assert_int_equal(files_in(w->folder), 0);
	raised(w, 5);
	assert_int_equal(utimensat(AT_FDCWD, w->path, long_ago, 0), 0);
	assert_int_equal(raised(w, 0), 5);
	assert_int_equal(stat(w->path, &st), 0);
	assert_int_equal(st.st_mtim.tv_sec, 1);
}

static void the_highest_fence_fits_and_the_next_number_does_not(void **state)
{
	struct world *w = *state;
	uint64_t before = 77;
	assert_int_equal(mark_raise(w->path, 0600, MARK_MAX + 1, &before), BATON_INVALID);
	assert_non_null(strstr(baton_err_detail(), "281474976710655"));
	assert_int_equal(files_in(w->folder), 0);
	raised(w, MARK_MAX);
	assert_content(w, "00000281474976710655\n");
	assert_int_equal(raised(w, 1), MARK_MAX);
	assert_int_equal(mark_raise(w->path, 0600, UINT64_MAX, &before), BATON_INVALID);
	assert_int_equal(before, 77);
}

static void assert_refused(const struct world *w, const char *because)
{
	static const uint64_t tries[] = {0, 1000};
	struct stat before;
	struct stat after;
	assert_int_equal(lstat(w->path, &before), 0);
	for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
		uint64_t number = 77;
		assert_int_equal(mark_raise(w->path, w->mode, tries[i], &number), BATON_INVALID);
		assert_int_equal(number, 77);
		if (!strstr(baton_err_detail(), because))
			fail_msg("'%s' does not say '%s'", baton_err_detail(), because);
		assert_non_null(strstr(baton_err_detail(), w->path));
	}
	assert_int_equal(lstat(w->path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(before.st_size, after.st_size);
	assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
}

static void any_other_content_is_refused_and_left_alone(void **state)
{
	struct world *w = *state;
	static const struct {
		const char *text;
		const char *because;
	} cases[] = {
		{"", "21 bytes"},
		{"1\n", "21 bytes"},
		{"00000000000000000020", "21 bytes"},
		{"00000000000000000020\n\n", "21 bytes"},
		{"0000000000000000020\n\n", "20 digits"},
		{"00000000000000000020 ", "20 digits"},
		{"0000000000000000002x\n", "20 digits"},
		{"-0000000000000000002\n", "20 digits"},
		{"+0000000000000000002\n", "20 digits"},
		{" 0000000000000000002\n", "20 digits"},
		{"00000281474976710656\n", "00000281474976710655"},
		{"99999999999999999999\n", "20 digits"},
		{"18446744073709551621\n", "20 digits"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		put(w, cases[i].text, strlen(cases[i].text));
		assert_refused(w, cases[i].because);
		assert_content(w, cases[i].text);
	}
}

static void random_bytes_are_refused_unless_they_are_a_number(void **state)
{
	struct world *w = *state;
	struct rng rng = rng_seed_from_env();
	for (int round = 0; round < 2000; round++) {
		char line[22] = "00000000000000000020\n";
		line[rng_below(&rng, 21)] = (char)rng_next(&rng);
		put(w, line, 21);
		bool digits = strspn(line, "0123456789") == 20 && line[20] == '\n';
		bool is_number = digits && strtoull(line, NULL, 10) <= MARK_MAX;
		uint64_t number = 0;
		enum baton_err e = mark_raise(w->path, 0600, 0, &number);
		assert_int_equal(e, is_number ? BATON_OK : BATON_INVALID);
		assert_int_equal(number, is_number ? strtoull(line, NULL, 10) : 0);
	}
}

static void what_is_no_regular_file_is_refused(void **state)
{
	struct world *w = *state;
	char target[128];
	assert_int_equal(mkfifo(w->path, 0600), 0);
	assert_refused(w, "is no regular file");
	unlink(w->path);
	snprintf(target, sizeof target, "%s/elsewhere", w->folder);
	assert_int_equal(symlink(target, w->path), 0);
	assert_refused(w, "is no regular file");
	assert_int_equal(access(target, F_OK), -1);
	unlink(w->path);
	assert_int_equal(mkdir(w->path, 0700), 0);
	assert_refused(w, "is no regular file");
	rmdir(w->path);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	strcpy(address.sun_path, w->path);
	AUTO(fd_closep) int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s, (struct sockaddr *)&address, sizeof address), 0);
	assert_refused(w, "is no regular file");
}

static void what_everybody_can_write_to_is_refused(void **state)
{
	struct world *w = *state;
	uint64_t before;
	raised(w, 20);
	assert_int_equal(chmod(w->path, 0602), 0);
	assert_refused(w, "is writable by everybody");
	assert_int_equal(chmod(w->path, 0644), 0);
	assert_int_equal(raised(w, 21), 20);
	assert_int_equal(chmod(w->folder, 0777), 0);
	assert_int_equal(mark_raise(w->path, 0600, 22, &before), BATON_INVALID);
	assert_non_null(strstr(baton_err_detail(), "chmod o-w"));
	assert_int_equal(chmod(w->folder, 0700), 0);
	assert_int_equal(raised(w, 0), 21);
}

/* As nobody, whose group may write to what belongs to somebody else. */
static int raise_as_nobody(int channel, void *arg)
{
	struct world *w = arg;
	char text[2];
	uint64_t before;
	(void)channel;
	if (setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
	    setresuid(NOBODY, NOBODY, NOBODY) != 0)
		return CHILD_SKIP;
	enum baton_err e = mark_raise(w->path, w->mode, 30, &before);
	snprintf(text, sizeof text, "%d", (int)e);
	channel_send(channel, text);
	return 0;
}

static enum baton_err answer_to_nobody(struct world *w)
{
	struct child c;
	char text[4];
	child_start(&c, raise_as_nobody, w);
	bool answered = channel_receive(c.channel, text, sizeof text);
	int code = child_reap(&c);
	if (code == CHILD_SKIP)
		skip();
	assert_true(answered);
	return (enum baton_err)(text[0] - '0');
}

static void what_is_another_users_is_refused_unless_it_is_shared(void **state)
{
	struct world *w = *state;
	if (geteuid() != 0)
		skip();
	raised(w, 20);
	assert_int_equal(chmod(w->folder, 0755), 0);
	assert_int_equal(chown(w->path, NOBODY - 1, NOBODY), 0);
	assert_int_equal(chmod(w->path, 0660), 0);
	assert_int_equal(answer_to_nobody(w), BATON_INVALID);
	w->mode = 0660;
	assert_int_equal(answer_to_nobody(w), BATON_OK);
	assert_int_equal(raised(w, 0), 30);
	/* Shared, but not in the way in which Baton shares. */
	assert_int_equal(chmod(w->path, 0664), 0);
	assert_int_equal(answer_to_nobody(w), BATON_INVALID);
	/* Not even to be opened. */
	assert_int_equal(chmod(w->path, 0600), 0);
	assert_int_equal(answer_to_nobody(w), BATON_SYSTEM);
	/* Root's is as good as one's own. */
	assert_int_equal(chown(w->path, 0, NOBODY), 0);
	assert_int_equal(chmod(w->path, 0664), 0);
	w->mode = 0600;
	assert_int_equal(answer_to_nobody(w), BATON_OK);
}

static void bad_paths_say_what_is_needed(void **state)
{
	struct world *w = *state;
	uint64_t before;
	char long_name[400];
	char long_path[5000];
	memset(long_name, 'x', sizeof long_name - 1);
	long_name[sizeof long_name - 1] = '\0';
	memset(long_path, '/', sizeof long_path - 2);
	strcpy(long_path + sizeof long_path - 2, "x");
	const char *paths[] = {"", "/tmp/", long_name, long_path};
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		assert_int_equal(mark_raise(paths[i], 0600, 1, &before), BATON_INVALID);
		assert_non_null(strstr(baton_err_detail(), "is no path for a mark of fences"));
	}
	snprintf(long_name, sizeof long_name, "%s/none/mark", w->folder);
	assert_int_equal(mark_raise(long_name, 0600, 1, &before), BATON_SYSTEM);
	assert_int_equal(mark_raise(long_name, 0600, 0, &before), BATON_SYSTEM);
}

static int raise_it(void *arg)
{
	struct world *w = arg;
	uint64_t before;
	return mark_raise(w->path, w->mode, w->at_least, &before) == BATON_OK ? 0 : 1;
}

/* Kills whoever raises it to 200 at every step. `before`: what it is before; 0: there is none. */
static void kill_at_every_step(struct world *w, uint64_t before)
{
	unsigned seen_old = 0;
	unsigned seen_new = 0;
	int code = 128 + SIGKILL;
	w->at_least = 200;
	for (unsigned n = 1; code == 128 + SIGKILL; n++) {
		unlink(w->path);
		if (before > 0)
			raised(w, before);
		code = strike_kill(n, raise_it, w);
		if (code == CHILD_SKIP)
			skip();
		assert_true(code == 0 || code == 128 + SIGKILL);
		uint64_t number = raised(w, 0);
		assert_true(number == before || number == 200);
		assert_int_equal(files_in(w->folder), number == 0 ? 0 : 1);
		seen_old += number == before;
		seen_new += number == 200;
		assert_int_equal(raised(w, 300), number);
		assert_int_equal(raised(w, 0), 300);
	}
	assert_int_equal(code, 0);
	assert_true(seen_old > 5);
	assert_true(seen_new > 5);
}

static void who_is_killed_while_raising_leaves_the_old_or_the_new_number(void **state)
{
	kill_at_every_step(*state, 100);
}

static void who_is_killed_while_making_leaves_nothing_or_a_whole_file(void **state)
{
	kill_at_every_step(*state, 0);
}

/* Where the first of `number` at or after `from` is among the calls; `count`: nowhere. */
static size_t call_find(const long *calls, size_t count, size_t from, long number)
{
	while (from < count && calls[from] != number)
		from++;
	return from;
}

static void a_number_is_on_the_disk_before_it_counts(void **state)
{
	struct world *w = *state;
	long calls[200];
	w->at_least = 200;
	size_t count = strike_trace(raise_it, w, calls, 200);
	if (count == 0)
		skip();
	/* The content of a new file before its name, and then the name. */
	size_t synced = call_find(calls, count, 0, SYS_fsync);
	size_t named = call_find(calls, count, 0, SYS_linkat);
	assert_true(call_find(calls, count, 0, SYS_pwrite64) < synced);
	assert_true(synced < named);
	assert_true(call_find(calls, count, named, SYS_fsync) < count);
	/* Also if it is high enough already: nobody knows whether it is on the disk. */
	for (w->at_least = 300; w->at_least >= 200; w->at_least -= 100) {
		count = strike_trace(raise_it, w, calls, 200);
		size_t written = call_find(calls, count, 0, SYS_pwrite64);
		assert_true(call_find(calls, count, written, SYS_fdatasync) < count);
	}
}

struct denial {
	struct world *w;
	int number;
	int errnum;
};

static int raise_denied(int channel, void *arg)
{
	struct denial *d = arg;
	uint64_t before = 77;
	(void)channel;
	if (!strike_deny(d->number, d->errnum))
		return CHILD_SKIP;
	enum baton_err e = mark_raise(d->w->path, 0600, d->w->at_least, &before);
	if (e != BATON_OK && before != 77)
		return 1;
	return 10 + (int)e;
}

static void every_system_call_that_fails_is_an_error_and_nothing_is_lost(void **state)
{
	struct world *w = *state;
	static const struct {
		int number;
		int errnum;
		int of_new; /* the answer if it has to be made */
		int of_old; /* the answer if it is there       */
	} cases[] = {
		{SYS_fdatasync, EIO, BATON_SYSTEM, BATON_SYSTEM},
		{SYS_fsync, EIO, BATON_SYSTEM, BATON_SYSTEM},
		{SYS_pwrite64, EIO, BATON_SYSTEM, BATON_SYSTEM},
		{SYS_pwrite64, ENOSPC, BATON_FULL, BATON_FULL},
		{SYS_pwrite64, EDQUOT, BATON_FULL, BATON_FULL},
		{SYS_pread64, EIO, BATON_SYSTEM, BATON_SYSTEM},
		{SYS_flock, ENOLCK, BATON_SYSTEM, BATON_SYSTEM},
		{SYS_openat, EMFILE, BATON_SYSTEM, BATON_SYSTEM},
		{SYS_fchmod, EPERM, BATON_SYSTEM, BATON_OK},
		{SYS_linkat, EIO, BATON_SYSTEM, BATON_OK},
		{SYS_linkat, ENOSPC, BATON_FULL, BATON_OK},
	};
	w->at_least = 200;
	for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
		struct denial d = {w, cases[i / 2].number, cases[i / 2].errnum};
		struct child c;
		bool old = i % 2;
		unlink(w->path);
		if (old)
			raised(w, 100);
		child_start(&c, raise_denied, &d);
		int code = child_reap(&c);
		if (code == CHILD_SKIP)
			skip();
		int expected = old ? cases[i / 2].of_old : cases[i / 2].of_new;
		if (code != 10 + expected)
			fail_msg("call %d failing with %d: %d", d.number, d.errnum, code);
		uint64_t number = raised(w, 0);
		assert_true(number == 200 || number == (old ? 100 : 0));
	}
}

static int stop_with_the_lock(int channel, void *arg)
{
	struct world *w = arg;
	char go_on[8];
	int fd = open(w->path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX) != 0)
		return 1;
	raise(SIGSTOP);
	return channel_receive(channel, go_on, sizeof go_on) ? 0 : 1;
}

static void behind_a_stopped_process_it_is_busy(void **state)
{
	struct world *w = *state;
	struct child c;
	int status;
	uint64_t before = 77;
	raised(w, 10);
	child_start(&c, stop_with_the_lock, w);
	assert_int_equal(waitpid(c.pid, &status, WUNTRACED), c.pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(mark_raise(w->path, 0600, 20, &before), BATON_BUSY);
	assert_int_equal(mark_raise(w->path, 0600, 0, &before), BATON_BUSY);
	assert_int_equal(before, 77);
	assert_content(w, "00000000000000000010\n");
	long calls[1000];
	unsigned tries = 0;
	w->at_least = 20;
	size_t count = strike_trace(raise_it, w, calls, 1000);
	for (size_t i = 0; i < count; i++)
		tries += calls[i] == SYS_flock;
	assert_true(count == 0 || tries > 1);
	kill(c.pid, SIGCONT);
	channel_send(c.channel, "go");
	assert_int_equal(child_reap(&c), 0);
	assert_int_equal(raised(w, 20), 10);
}

static int raise_many_times(int channel, void *arg)
{
	struct world *w = arg;
	uint64_t last = 0;
	(void)channel;
	for (uint64_t i = 1; i <= 100; i++) {
		uint64_t before;
		enum baton_err e = mark_raise(w->path, 0600, i * w->at_least, &before);
		if (e == BATON_BUSY)
			continue; /* on a machine that is busy */
		if (e != BATON_OK || before < last)
			return 1;
		last = i * w->at_least;
	}
	return 0;
}

static void of_many_who_raise_it_at_once_nobody_ever_sees_it_fall(void **state)
{
	struct world *w = *state;
	struct child children[8];
	for (unsigned i = 0; i < 8; i++) {
		w->at_least = i + 1;
		child_start(&children[i], raise_many_times, w);
	}
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(child_reap(&children[i]), 0);
	assert_true(raised(w, 0) <= 800);
	assert_int_equal(files_in(w->folder), 1);
}

/* A lock that was waited for may be that of a file which is no more. */
static int replace_under_the_lock(int channel, void *arg)
{
	struct world *w = arg;
	char other[128];
	char go_on[8];
	uint64_t before;
	int fd = open(w->path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX) != 0)
		return 1;
	channel_send(channel, "locked");
	if (!channel_receive(channel, go_on, sizeof go_on))
		return 1;
	snprintf(other, sizeof other, "%s/other", w->folder);
	return mark_raise(other, 0600, 500, &before) == BATON_OK && rename(other, w->path) == 0 ? 0
	                                                                                        : 1;
}

static void one_that_was_replaced_while_it_was_waited_for_is_left_alone(void **state)
{
	struct world *w = *state;
	struct child c;
	char text[16];
	raised(w, 10);
	child_start(&c, replace_under_the_lock, w);
	assert_true(channel_receive(c.channel, text, sizeof text));
	channel_send(c.channel, "go");
	uint64_t before = 0;
	enum baton_err e = mark_raise(w->path, 0600, 20, &before);
	assert_int_equal(child_reap(&c), 0);
	assert_true(e == BATON_BUSY || (e == BATON_OK && before == 500));
	assert_int_equal(raised(w, 0), 500);
}

static int raise_on_a_full_file_system(int channel, void *arg)
{
	struct world *w = arg;
	char filler[128];
	char bytes[4096] = {0};
	uint64_t before = 77;
	(void)channel;
	if (!child_unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("none", w->folder, "tmpfs", 0, "size=8k,mode=0700") != 0)
		return CHILD_SKIP;
	if (mark_raise(w->path, 0600, 100, &before) != BATON_OK)
		return 1;
	snprintf(filler, sizeof filler, "%s/filler", w->folder);
	AUTO(fd_closep) int fd = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	while (write(fd, bytes, sizeof bytes) > 0)
		;
	/* What is there has its room. */
	if (mark_raise(w->path, 0600, 200, &before) != BATON_OK || before != 100)
		return 2;
	snprintf(filler, sizeof filler, "%s/new", w->folder);
	before = 77;
	if (mark_raise(filler, 0600, 100, &before) != BATON_FULL || before != 77)
		return 3;
	return files_in(w->folder) == 2 ? 0 : 4;
}

static void a_full_file_system_is_an_error_and_leaves_nothing(void **state)
{
	struct child c;
	child_start(&c, raise_on_a_full_file_system, *state);
	int code = child_reap(&c);
	if (code == CHILD_SKIP)
		skip();
	assert_int_equal(code, 0);
}

#define MARK_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	skips_repair();
	const struct CMUnitTest tests[] = {
		MARK_TEST(a_new_mark_is_one_line_of_twenty_digits),
		MARK_TEST(the_mode_does_not_depend_on_the_umask),
		MARK_TEST(it_rises_and_says_what_it_was_before),
		MARK_TEST(it_is_never_lowered),
		MARK_TEST(reading_makes_and_changes_nothing),
		MARK_TEST(the_highest_fence_fits_and_the_next_number_does_not),
		MARK_TEST(any_other_content_is_refused_and_left_alone),
		MARK_TEST(random_bytes_are_refused_unless_they_are_a_number),
		MARK_TEST(what_is_no_regular_file_is_refused),
		MARK_TEST(what_everybody_can_write_to_is_refused),
		MARK_TEST(what_is_another_users_is_refused_unless_it_is_shared),
		MARK_TEST(bad_paths_say_what_is_needed),
		MARK_TEST(who_is_killed_while_raising_leaves_the_old_or_the_new_number),
		MARK_TEST(who_is_killed_while_making_leaves_nothing_or_a_whole_file),
		MARK_TEST(a_number_is_on_the_disk_before_it_counts),
		MARK_TEST(every_system_call_that_fails_is_an_error_and_nothing_is_lost),
		MARK_TEST(behind_a_stopped_process_it_is_busy),
		MARK_TEST(of_many_who_raise_it_at_once_nobody_ever_sees_it_fall),
		MARK_TEST(one_that_was_replaced_while_it_was_waited_for_is_left_alone),
		MARK_TEST(a_full_file_system_is_an_error_and_leaves_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
