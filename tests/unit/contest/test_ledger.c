/* Admission in a file, whatever happens to those who use it, and to the file. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <baton/admit.h>

#include "admit_world.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "support/child.h"
#include "support/harness.h"
#include "support/rng.h"
#include "support/skips.h"
#include "support/soak.h"
#include "support/strike.h"

#define HEADER_BYTES 48

struct shared {
	const struct world *w;
	_Atomic uint64_t *admitted;
};

static int run_a_crew(int channel, void *arg)
{
	struct shared *s = arg;
	struct baton_admit_options options = s->w->options;
	struct baton_admit *a;
	(void)channel;
	options.alloc = NULL;
	if (baton_admit_open(&options, &a) != BATON_OK)
		return 1;
	struct crew crew = {
		.admit = a,
		.admitted = s->admitted,
		.rounds = soak_scale(100, 1000),
		.seed = (uint64_t)getpid(),
	};
	crew_run(&crew);
	baton_admit_close(a);
	return crew.wrong || crew.ok == 0 ? 1 : 0;
}

static void processes_admit_nobody_too_late(void **state)
{
	struct world *w = *state;
	struct child children[4];
	struct shared s = {.w = w};
	s.admitted = mmap(NULL, sizeof *s.admitted, PROT_READ | PROT_WRITE,
	                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(s.admitted, MAP_FAILED);
	for (unsigned i = 0; i < 4; i++)
		child_start(&children[i], run_a_crew, &s);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(child_reap(&children[i]), 0);
	AUTO(admit_closep) struct baton_admit *a = opened(w);
	assert_true(mark_of(a, "s") >= *s.admitted);
	munmap(s.admitted, sizeof *s.admitted);
}

static void marks_are_there_when_it_is_opened_again(void **state)
{
	struct world *w = *state;
	struct stat st;
	struct baton_admit *a = opened(w);
	assert_int_equal(ask(a, "s", 5), BATON_OK);
	assert_int_equal(stat(w->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_true(st.st_blocks * 512 >= st.st_size);
	baton_admit_close(a);
	w->options.subjects = 1000; /* it keeps its own number */
	a = opened(w);
	AUTO(admit_closep) struct baton_admit *other = opened(w);
	assert_int_equal(mark_of(a, "s"), 5);
	assert_int_equal(ask(other, "s", 6), BATON_OK);
	assert_int_equal(mark_of(a, "s"), 6);
	baton_admit_close(a);
	char subject[16];
	for (unsigned i = 1; i < 16; i++) {
		snprintf(subject, sizeof subject, "s%u", i);
		assert_int_equal(ask(other, subject, 1), BATON_OK);
	}
	assert_int_equal(ask(other, "s16", 1), BATON_FULL);
	assert_int_equal(files_in(w->folder), 1);
}

/* Sets the file's time of change back, and tells later whether anybody has written to it. */
static void clock_back(const struct world *w)
{
	static const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	assert_int_equal(utimensat(AT_FDCWD, w->path, long_ago, 0), 0);
}

static bool was_written(const struct world *w)
{
	struct stat st;
	assert_int_equal(stat(w->path, &st), 0);
	return st.st_mtim.tv_sec != 1;
}

static void only_a_higher_fence_is_written(void **state)
{
	struct world *w = *state;
	AUTO(admit_closep) struct baton_admit *a = opened(w);
	assert_int_equal(ask(a, "s", 5), BATON_OK);
	clock_back(w);
	assert_int_equal(ask(a, "s", 5), BATON_OK);
	assert_int_equal(ask(a, "s", 4), BATON_STALE);
	assert_int_equal(ask(a, "s", 0), BATON_INVALID);
	assert_false(was_written(w));
	assert_int_equal(ask(a, "s", 6), BATON_OK);
	assert_true(was_written(w));
}

struct deed {
	const struct world *w;
	const char *subject; /* NULL: only open it */
	uint64_t fence;
};

static int do_it(void *arg)
{
	struct deed *d = arg;
	struct baton_admit_options options = d->w->options;
	struct baton_admit *a;
	options.alloc = NULL;
	if (baton_admit_open(&options, &a) != BATON_OK)
		return 1;
	return !d->subject || ask(a, d->subject, d->fence) == BATON_OK ? 0 : 1;
}

/* Kills whoever does it at the `n`th step; false: he was done before. */
static bool killed(unsigned n, struct deed *d)
{
	int code = strike_kill(n, do_it, d);
	if (code == CHILD_SKIP)
		skip();
	assert_true(code == 0 || code == 128 + SIGKILL);
	return code != 0;
}

static void who_is_killed_while_raising_leaves_the_old_or_the_new_mark(void **state)
{
	struct world *w = *state;
	struct deed d = {w, "s", 9};
	unsigned seen[2] = {0, 0};
	bool more = true;
	for (unsigned n = 1; more; n++) {
		unlink(w->path);
		struct baton_admit *a = opened(w);
		/* Both copies of the mark take their turn. */
		assert_int_equal(ask(a, "s", 6), BATON_OK);
		if (n % 2)
			assert_int_equal(ask(a, "s", 7), BATON_OK);
		uint64_t before = n % 2 ? 7 : 6;
		more = killed(n / 2 + 1, &d);
		uint64_t mark = mark_of(a, "s");
		assert_true(mark == before || mark == 9);
		assert_true(more || mark == 9);
		seen[mark == 9]++;
		/* Whoever comes next is admitted with the same mark, and it is settled then. */
		assert_int_equal(ask(a, "s", mark), BATON_OK);
		clock_back(w);
		assert_int_equal(ask(a, "s", mark), BATON_OK);
		assert_false(was_written(w));
		assert_int_equal(ask(a, "s", 10), BATON_OK);
		assert_int_equal(mark_of(a, "s"), 10);
		baton_admit_close(a);
	}
	assert_true(seen[0] > 5);
	assert_true(seen[1] > 5);
}

static void who_is_killed_while_adding_takes_no_room(void **state)
{
	struct world *w = *state;
	struct deed d = {w, "new", 9};
	unsigned seen[2] = {0, 0};
	bool more = true;
	w->options.subjects = 3;
	for (unsigned n = 1; more; n++) {
		baton_fence highest = {0};
		unlink(w->path);
		AUTO(admit_closep) struct baton_admit *a = opened(w);
		assert_int_equal(ask(a, "s", 5), BATON_OK);
		more = killed(n, &d);
		/* Twice, so that two steps of two who died add up if they do. */
		killed(n, &d);
		assert_int_equal(ask(a, "second", 5), BATON_OK);
		enum baton_err e = baton_admit(a, BATON_STR("new"), (baton_fence){1}, &highest);
		assert_true(e == BATON_OK || (e == BATON_STALE && highest.v == 9));
		seen[e == BATON_STALE]++;
		assert_int_equal(ask(a, "fourth", 5), BATON_FULL);
		assert_int_equal(mark_of(a, "s"), 5);
		assert_int_equal(mark_of(a, "second"), 5);
	}
	assert_true(seen[0] > 5);
	assert_true(seen[1] > 5);
}

static void who_is_killed_while_making_it_leaves_nothing_or_a_whole_file(void **state)
{
	struct world *w = *state;
	struct deed d = {.w = w};
	unsigned seen[2] = {0, 0};
	bool more = true;
	for (unsigned n = 1; more; n++) {
		unlink(w->path);
		more = killed(n, &d);
		unsigned files = files_in(w->folder);
		assert_true(files <= 1);
		seen[files]++;
		AUTO(admit_closep) struct baton_admit *a = opened(w);
		assert_int_equal(ask(a, "s", 5), BATON_OK);
	}
	assert_true(seen[0] > 5);
	assert_true(seen[1] > 1);
}

struct denial {
	struct deed deed;
	int number;
	int errnum;
	bool open_first;
};

static int do_it_denied(int channel, void *arg)
{
	struct denial *d = arg;
	struct baton_admit_options options = d->deed.w->options;
	struct baton_admit *a = NULL;
	(void)channel;
	options.alloc = NULL;
	if (d->open_first && baton_admit_open(&options, &a) != BATON_OK)
		return 1;
	if (!strike_deny(d->number, d->errnum))
		return CHILD_SKIP;
	enum baton_err e = d->open_first ? ask(a, d->deed.subject, d->deed.fence)
	                                 : baton_admit_open(&options, &a);
	return 10 + (int)e;
}

static int code_when_denied(struct denial *d)
{
	struct child c;
	child_start(&c, do_it_denied, d);
	int code = child_reap(&c);
	if (code == CHILD_SKIP)
		skip();
	return code - 10;
}

static void every_system_call_that_fails_is_an_error_and_nothing_is_lost(void **state)
{
	struct world *w = *state;
	static const struct {
		int number;
		int errnum;
		int opening; /* the answers */
		int raising;
		int adding;
	} cases[] = {
		{SYS_fdatasync, EIO, BATON_OK, BATON_SYSTEM, BATON_SYSTEM},
		{SYS_fsync, EIO, BATON_SYSTEM, BATON_OK, BATON_OK},
		{SYS_pwrite64, EIO, BATON_SYSTEM, BATON_SYSTEM, BATON_SYSTEM},
		{SYS_pwrite64, ENOSPC, BATON_FULL, BATON_FULL, BATON_FULL},
		{SYS_pread64, EIO, BATON_SYSTEM, BATON_SYSTEM, BATON_SYSTEM},
		{SYS_flock, ENOLCK, BATON_OK, BATON_SYSTEM, BATON_SYSTEM},
		{SYS_openat, EMFILE, BATON_SYSTEM, BATON_OK, BATON_OK},
		{SYS_fallocate, ENOSPC, BATON_FULL, BATON_OK, BATON_OK},
		{SYS_fallocate, EIO, BATON_SYSTEM, BATON_OK, BATON_OK},
		{SYS_linkat, EIO, BATON_SYSTEM, BATON_OK, BATON_OK},
		{SYS_getrandom, ENOSYS, BATON_SYSTEM, BATON_OK, BATON_OK},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct denial d = {{w, NULL, 0}, cases[i].number, cases[i].errnum, false};
		unlink(w->path);
		assert_int_equal(code_when_denied(&d), cases[i].opening);
		AUTO(admit_closep) struct baton_admit *a = opened(w);
		assert_int_equal(ask(a, "s", 5), BATON_OK);
		d.open_first = true;
		d.deed = (struct deed){w, "s", 9};
		assert_int_equal(code_when_denied(&d), cases[i].raising);
		uint64_t mark = mark_of(a, "s");
		assert_true(mark == 9 || (mark == 5 && cases[i].raising != BATON_OK));
		d.deed = (struct deed){w, "new", 9};
		assert_int_equal(code_when_denied(&d), cases[i].adding);
		assert_int_equal(ask(a, "new", 9), BATON_OK);
	}
}

static void what_may_not_be_on_the_disk_is_brought_there_first(void **state)
{
	struct world *w = *state;
	struct denial d = {{w, "s", 9}, SYS_fdatasync, EIO, true};
	AUTO(admit_closep) struct baton_admit *a = opened(w);
	assert_int_equal(ask(a, "s", 5), BATON_OK);
	assert_int_equal(code_when_denied(&d), BATON_SYSTEM);
	assert_int_equal(mark_of(a, "s"), 9);
	/* Whoever wants to go on from there cannot either. */
	d.deed.fence = 12;
	assert_int_equal(code_when_denied(&d), BATON_SYSTEM);
	assert_int_equal(mark_of(a, "s"), 9);
	clock_back(w);
	assert_int_equal(ask(a, "s", 9), BATON_OK);
	assert_true(was_written(w));
	clock_back(w);
	assert_int_equal(ask(a, "s", 9), BATON_OK);
	assert_false(was_written(w));
}

static int stop_with_the_lock(int channel, void *arg)
{
	const struct world *w = arg;
	char go_on[8];
	int fd = open(w->path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX) != 0)
		return 1;
	raise(SIGSTOP);
	return channel_receive(channel, go_on, sizeof go_on) ? 0 : 1;
}

static void *ask_for_six(void *a)
{
	return ask(a, "s", 6) == BATON_BUSY ? a : NULL;
}

static void behind_a_stopped_process_it_is_busy(void **state)
{
	struct world *w = *state;
	struct child c;
	pthread_t threads[8];
	int status;
	AUTO(admit_closep) struct baton_admit *a = opened(w);
	assert_int_equal(ask(a, "s", 5), BATON_OK);
	child_start(&c, stop_with_the_lock, w);
	assert_int_equal(waitpid(c.pid, &status, WUNTRACED), c.pid);
	assert_true(WIFSTOPPED(status));
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_for_six, a), 0);
	for (unsigned i = 0; i < 8; i++) {
		void *busy;
		pthread_join(threads[i], &busy);
		assert_non_null(busy);
	}
	kill(c.pid, SIGCONT);
	channel_send(c.channel, "go");
	assert_int_equal(child_reap(&c), 0);
	assert_int_equal(mark_of(a, "s"), 5);
	assert_int_equal(ask(a, "s", 6), BATON_OK);
}

static void a_file_that_is_removed_or_replaced_is_gone(void **state)
{
	struct world *w = *state;
	char aside[128];
	snprintf(aside, sizeof aside, "%s/aside", w->folder);
	AUTO(admit_closep) struct baton_admit *a = opened(w);
	assert_int_equal(ask(a, "s", 5), BATON_OK);
	assert_int_equal(rename(w->path, aside), 0);
	assert_int_equal(ask(a, "s", 5), BATON_GONE);
	AUTO(admit_closep) struct baton_admit *other = opened(w);
	assert_int_equal(ask(a, "s", 6), BATON_GONE);
	assert_int_equal(ask(other, "s", 3), BATON_OK);
	assert_int_equal(rename(aside, w->path), 0);
	assert_int_equal(ask(a, "s", 5), BATON_OK);
	assert_int_equal(ask(other, "s", 6), BATON_GONE);
	assert_non_null(strstr(baton_err_detail(), w->path));
}

static void a_relative_path_is_that_of_the_moment_when_it_was_opened(void **state)
{
	struct world *w = *state;
	char *old = getcwd(NULL, 0);
	assert_int_equal(chdir(w->folder), 0);
	w->options.path = "admitted";
	AUTO(admit_closep) struct baton_admit *a = opened(w);
	assert_int_equal(chdir(old), 0);
	free(old);
	assert_int_equal(ask(a, "s", 5), BATON_OK);
	w->options.path = w->path;
	AUTO(admit_closep) struct baton_admit *other = opened(w);
	assert_int_equal(mark_of(other, "s"), 5);
}

static void scribble(const struct world *w, off_t at, const void *bytes, size_t len)
{
	AUTO(fd_closep) int fd = open(w->path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, bytes, len, at), (ssize_t)len);
}

/* Changes the byte at `at`, whatever it is. */
static void invert(const struct world *w, off_t at)
{
	unsigned char byte;
	AUTO(fd_closep) int fd = open(w->path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte = (unsigned char)~byte;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
}

static void assert_refused(const struct world *w, const char *because)
{
	struct baton_admit *a = NULL;
	struct stat before;
	struct stat after;
	assert_int_equal(lstat(w->path, &before), 0);
	assert_int_equal(baton_admit_open(&w->options, &a), BATON_INVALID);
	assert_null(a);
	if (!strstr(baton_err_detail(), because))
		fail_msg("'%s' does not say '%s'", baton_err_detail(), because);
	assert_int_equal(lstat(w->path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(before.st_size, after.st_size);
	assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
}

static void a_damaged_or_foreign_header_is_refused_and_left_alone(void **state)
{
	struct world *w = *state;
	for (size_t at = 0; at < HEADER_BYTES; at++) {
		unlink(w->path);
		baton_admit_close(opened(w));
		invert(w, (off_t)at);
		assert_refused(w, at < 8    ? "is no file of admitted fences"
		                  : at < 12 ? "and this program speaks 1"
		                            : "is damaged: its header");
	}
}

static void where_the_count_is_damaged_nobody_new_is_added(void **state)
{
	struct world *w = *state;
	for (size_t at = 0; at < 24; at++) {
		unlink(w->path);
		AUTO(admit_closep) struct baton_admit *a = opened(w);
		assert_int_equal(ask(a, "s", 5), BATON_OK);
		invert(w, 512 + (off_t)at);
		assert_int_equal(ask(a, "new", 5), BATON_INVALID);
		assert_non_null(strstr(baton_err_detail(), "is damaged: its count"));
		assert_int_equal(mark_of(a, "s"), 5);
		assert_int_equal(ask(a, "s", 6), BATON_OK);
	}
}

static void a_file_of_another_size_is_refused(void **state)
{
	struct world *w = *state;
	baton_admit_close(opened(w));
	static const off_t sizes[] = {8193, 8191, 4096, 4095, 512, 48, 47, 1, 0};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		assert_int_equal(truncate(w->path, sizes[i]), 0);
		assert_refused(w, sizes[i] < 4096 ? "too short" : "is damaged: its size");
	}
}

static void a_file_that_is_cut_off_while_it_is_open_is_an_error(void **state)
{
	struct world *w = *state;
	AUTO(admit_closep) struct baton_admit *a = opened(w);
	assert_int_equal(ask(a, "s", 5), BATON_OK);
	assert_int_equal(truncate(w->path, 4096), 0);
	assert_int_equal(ask(a, "s", 6), BATON_INVALID);
	assert_non_null(strstr(baton_err_detail(), "too short"));
}

/* Puts a header there that somebody else has made, which fits itself, and the count of nothing. */
static void header_forge(const struct world *w, const struct baton_id *seed, uint32_t subjects,
                         uint32_t slots)
{
	unsigned char header[HEADER_BYTES] = "BATONADM";
	unsigned char count[24] = {0};
	const uint32_t numbers[] = {1, subjects, slots};
	memcpy(header + 8, numbers, sizeof numbers);
	memcpy(header + 24, seed, sizeof *seed);
	uint64_t check = hash_bytes(seed, header, 40);
	memcpy(header + 40, &check, 8);
	check = hash_bytes(seed, count, 16);
	memcpy(count + 16, &check, 8);
	scribble(w, 0, header, sizeof header);
	scribble(w, 512, count, sizeof count);
}

static void an_enemys_header_is_refused(void **state)
{
	struct world *w = *state;
	static const struct baton_id seed = {{1}};
	static const struct {
		uint32_t subjects;
		uint32_t slots;
	} cases[] = {
		{0, 64},          {16, 0},          {16, 63},
		{16, 128},        {33, 64},         {1048577, 4194304},
		{0x80000000, 64}, {0x80000001, 64}, {UINT32_MAX, UINT32_MAX},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		unlink(w->path);
		baton_admit_close(opened(w));
		header_forge(w, &seed, cases[i].subjects, cases[i].slots);
		assert_refused(w, "its header");
	}
}

static void subjects_that_want_the_last_slot_go_round_to_the_first(void **state)
{
	struct world *w = *state;
	static const struct baton_id seed = {{1}};
	baton_admit_close(opened(w));
	header_forge(w, &seed, 16, 64);
	AUTO(admit_closep) struct baton_admit *a = opened(w);
	/* Twice: to put them there, and to find them again. */
	for (unsigned round = 0; round < 2; round++) {
		unsigned found = 0;
		for (unsigned i = 0; found < 12; i++) {
			char subject[16];
			snprintf(subject, sizeof subject, "s%u", i);
			struct baton_id id = hash_id(&seed, subject, strlen(subject));
			if (id.bytes[0] % 64 != 63)
				continue;
			found++;
			if (round == 0)
				assert_int_equal(ask(a, subject, 10 + i), BATON_OK);
			assert_int_equal(mark_of(a, subject), 10 + i);
		}
	}
}

static void random_bytes_never_lower_a_mark_or_invent_one(void **state)
{
	struct world *w = *state;
	struct rng rng = rng_seed_from_env();
	for (unsigned round = 0; round < soak_scale(300, 5000); round++) {
		unlink(w->path);
		struct baton_admit *a = opened(w);
		assert_int_equal(ask(a, "s", 5), BATON_OK);
		assert_int_equal(ask(a, "t", 500), BATON_OK);
		baton_admit_close(a);
		a = NULL;
		uint64_t bytes[64];
		for (size_t i = 0; i < 64; i++)
			bytes[i] = rng_next(&rng);
		size_t len = 1 + rng_below(&rng, sizeof bytes);
		scribble(w, (off_t)rng_below(&rng, 8192 - len), bytes, len);
		enum baton_err e = baton_admit_open(&w->options, &a);
		assert_true(e == BATON_OK || e == BATON_INVALID);
		if (e == BATON_OK) {
			baton_fence highest = {5};
			e = baton_admit(a, BATON_STR("s"), (baton_fence){4}, &highest);
			assert_true(e == BATON_STALE || e == BATON_INVALID);
			assert_int_equal(highest.v, 5);
			e = ask(a, "new", 1);
			assert_true(e == BATON_OK || e == BATON_INVALID);
			baton_admit_close(a);
		}
	}
}

static void what_is_no_file_of_ones_own_is_refused(void **state)
{
	struct world *w = *state;
	assert_int_equal(symlink("/dev/null", w->path), 0);
	assert_refused(w, "is no regular file");
	unlink(w->path);
	assert_int_equal(mkdir(w->path, 0700), 0);
	assert_refused(w, "is no regular file");
	rmdir(w->path);
	assert_int_equal(mkfifo(w->path, 0600), 0);
	assert_refused(w, "is no regular file");
	unlink(w->path);
	baton_admit_close(opened(w));
	assert_int_equal(chmod(w->path, 0666), 0);
	assert_refused(w, "is writable by everybody");
	assert_int_equal(chmod(w->path, 0660), 0);
	baton_admit_close(opened(w));
}

static int open_on_a_small_file_system(int channel, void *arg)
{
	struct world *w = arg;
	struct baton_admit *a = NULL;
	(void)channel;
	if (!child_unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("none", w->folder, "tmpfs", 0, "size=8k,mode=0700") != 0)
		return CHILD_SKIP;
	w->options.subjects = 33;
	if (baton_admit_open(&w->options, &a) != BATON_FULL || files_in(w->folder) != 0)
		return 1;
	if (!strstr(baton_err_detail(), "fewer subjects than 33"))
		return 2;
	/* Just enough; and what there is has its room. */
	w->options.subjects = 32;
	if (baton_admit_open(&w->options, &a) != BATON_OK)
		return 3;
	for (unsigned i = 0; i < 32; i++) {
		char subject[16];
		snprintf(subject, sizeof subject, "s%u", i);
		if (ask(a, subject, 5) != BATON_OK)
			return 4;
	}
	return 0;
}

static void a_full_file_system_is_an_error_and_leaves_nothing(void **state)
{
	struct child c;
	child_start(&c, open_on_a_small_file_system, *state);
	int code = child_reap(&c);
	if (code == CHILD_SKIP)
		skip();
	assert_int_equal(code, 0);
}

#define LEDGER_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
	skips_repair();
	const struct CMUnitTest tests[] = {
		LEDGER_TEST(processes_admit_nobody_too_late),
		LEDGER_TEST(marks_are_there_when_it_is_opened_again),
		LEDGER_TEST(only_a_higher_fence_is_written),
		LEDGER_TEST(who_is_killed_while_raising_leaves_the_old_or_the_new_mark),
		LEDGER_TEST(who_is_killed_while_adding_takes_no_room),
		LEDGER_TEST(who_is_killed_while_making_it_leaves_nothing_or_a_whole_file),
		LEDGER_TEST(every_system_call_that_fails_is_an_error_and_nothing_is_lost),
		LEDGER_TEST(what_may_not_be_on_the_disk_is_brought_there_first),
		LEDGER_TEST(behind_a_stopped_process_it_is_busy),
		LEDGER_TEST(a_file_that_is_removed_or_replaced_is_gone),
		LEDGER_TEST(a_relative_path_is_that_of_the_moment_when_it_was_opened),
		LEDGER_TEST(a_damaged_or_foreign_header_is_refused_and_left_alone),
		LEDGER_TEST(where_the_count_is_damaged_nobody_new_is_added),
		LEDGER_TEST(a_file_of_another_size_is_refused),
		LEDGER_TEST(a_file_that_is_cut_off_while_it_is_open_is_an_error),
		LEDGER_TEST(an_enemys_header_is_refused),
		LEDGER_TEST(subjects_that_want_the_last_slot_go_round_to_the_first),
		LEDGER_TEST(random_bytes_never_lower_a_mark_or_invent_one),
		LEDGER_TEST(what_is_no_file_of_ones_own_is_refused),
		LEDGER_TEST(a_full_file_system_is_an_error_and_leaves_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
