/* A locked file that the processes of a command keep open. */
#include "guardian/latch.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "support/child.h"
#include "support/harness.h"
#include "support/skips.h"

struct world {
	char folder[64];
	char fleet[96];
	char locks[112];
	struct baton_subject subject;
	struct latch latch;
};

static void fleet_make(const struct world *w, mode_t mode)
{
	int fd = open(w->fleet, O_RDWR | O_CREAT | O_CLOEXEC, mode);
	assert_true(fd >= 0 && fchmod(fd, mode) == 0);
	close(fd);
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	if (!w)
		return -1;
	strcpy(w->folder, "/tmp/baton-latch-XXXXXX");
	if (!mkdtemp(w->folder))
		return -1;
	snprintf(w->fleet, sizeof w->fleet, "%s/fleet", w->folder);
	snprintf(w->locks, sizeof w->locks, "%s.locks", w->fleet);
	w->subject = (struct baton_subject)BATON_SUBJECT("lock", "x");
	w->latch = LATCH_NONE;
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	latch_drop(&w->latch);
	unlink(w->fleet);
	rmdir(w->locks);
	int left = rmdir(w->folder);
	free(w);
	return left;
}

static void latch_dropp(struct latch *l)
{
	latch_drop(l);
}

static unsigned mode_of(const char *path)
{
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 0777;
}

static void one_has_it_and_the_next_yields_until_it_is_dropped(void **state)
{
	struct world *w = *state;
	AUTO(latch_dropp) struct latch second = LATCH_NONE;
	fleet_make(w, 0600);
	assert_int_equal(latch_name(&w->latch, w->fleet, &w->subject), BATON_OK);
	assert_int_equal(latch_name(&second, w->fleet, &w->subject), BATON_OK);
	assert_int_equal(latch_take(&w->latch), BATON_OK);
	assert_true(w->latch.fd >= 100);
	assert_int_equal(fcntl(w->latch.fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(latch_take(&second), BATON_YIELD);
	latch_drop(&w->latch);
	assert_int_equal(latch_take(&second), BATON_OK);
}

static void a_dropped_latch_leaves_no_file(void **state)
{
	struct world *w = *state;
	fleet_make(w, 0600);
	assert_int_equal(latch_name(&w->latch, w->fleet, &w->subject), BATON_OK);
	assert_int_equal(latch_take(&w->latch), BATON_OK);
	assert_int_equal(access(w->latch.path, F_OK), 0);
	latch_drop(&w->latch);
	assert_int_not_equal(access(w->latch.path, F_OK), 0);
	latch_drop(&w->latch);
	assert_int_equal(latch_take(&w->latch), BATON_OK);
}

static void who_has_a_copy_keeps_it_and_the_file_stays(void **state)
{
	struct world *w = *state;
	AUTO(latch_dropp) struct latch second = LATCH_NONE;
	fleet_make(w, 0600);
	assert_int_equal(latch_name(&w->latch, w->fleet, &w->subject), BATON_OK);
	assert_int_equal(latch_name(&second, w->fleet, &w->subject), BATON_OK);
	assert_int_equal(latch_take(&w->latch), BATON_OK);
	int copy = dup(w->latch.fd);
	latch_drop(&w->latch);
	assert_int_equal(access(second.path, F_OK), 0);
	assert_int_equal(latch_take(&second), BATON_YIELD);
	close(copy);
	assert_int_equal(latch_take(&second), BATON_OK);
}

/* Somebody had opened the file when its holder removed it, and locks what no path leads to. */
static void a_file_that_was_removed_is_not_the_latch(void **state)
{
	struct world *w = *state;
	AUTO(latch_dropp) struct latch next = LATCH_NONE;
	fleet_make(w, 0600);
	assert_int_equal(latch_name(&w->latch, w->fleet, &w->subject), BATON_OK);
	assert_int_equal(latch_name(&next, w->fleet, &w->subject), BATON_OK);
	assert_int_equal(latch_take(&w->latch), BATON_OK);
	AUTO(fd_closep) int late = open(w->latch.path, O_RDWR | O_CLOEXEC);
	latch_drop(&w->latch);
	assert_int_equal(flock(late, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(latch_take(&next), BATON_OK);
	/* And who drops one whose path leads to another's file leaves that alone. */
	unlink(next.path);
	assert_int_equal(latch_take(&w->latch), BATON_OK);
	latch_drop(&next);
	assert_int_equal(access(w->latch.path, F_OK), 0);
}

/* Both in a child that stands still before it locks what it has opened. */
static int take_traced(int channel, void *arg)
{
	char message[8];
	struct world *w = arg;
	channel_receive(channel, message, sizeof message);
	return (int)latch_take(&w->latch);
}

static int drop_traced(int channel, void *arg)
{
	char message[8];
	struct world *w = arg;
	if (latch_take(&w->latch) != BATON_OK)
		return 1;
	channel_send(channel, "have it");
	channel_receive(channel, message, sizeof message);
	latch_drop(&w->latch);
	return 0;
}

static bool runs_to_flock(pid_t pid)
{
	struct __ptrace_syscall_info info = {.op = 0};
	int status;
	do {
		if (ptrace(PTRACE_SYSCALL, pid, NULL, NULL) != 0 ||
		    waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status) ||
		    ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) <= 0)
			return false;
	} while (info.op != PTRACE_SYSCALL_INFO_ENTRY || info.entry.nr != SYS_flock);
	return true;
}

/* Traces the child, which waits for a message. Skips the test where that is not allowed. */
static void trace(struct child *c)
{
	int status;
	if (ptrace(PTRACE_SEIZE, c->pid, NULL, PTRACE_O_TRACESYSGOOD) != 0) {
		kill(c->pid, SIGKILL);
		child_reap(c);
		skip();
	}
	assert_int_equal(ptrace(PTRACE_INTERRUPT, c->pid, NULL, NULL), 0);
	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	channel_send(c->channel, "go");
	assert_true(runs_to_flock(c->pid));
}

static void who_locks_a_file_that_was_removed_meanwhile_looks_again(void **state)
{
	struct world *w = *state;
	struct child c;
	AUTO(latch_dropp) struct latch next = LATCH_NONE;
	fleet_make(w, 0600);
	assert_int_equal(latch_name(&w->latch, w->fleet, &w->subject), BATON_OK);
	assert_int_equal(latch_name(&next, w->fleet, &w->subject), BATON_OK);
	child_start(&c, take_traced, w);
	assert_int_equal(latch_take(&w->latch), BATON_OK);
	trace(&c);
	latch_drop(&w->latch);
	assert_int_equal(latch_take(&next), BATON_OK);
	assert_int_equal(ptrace(PTRACE_DETACH, c.pid, NULL, NULL), 0);
	assert_int_equal(child_reap(&c), BATON_YIELD);
}

/* Somebody from outside has removed its file; so it opens that of the next one, and locks it when
 * that has been removed too and the one after has a file there. */
static void who_drops_a_latch_leaves_the_file_of_another(void **state)
{
	struct world *w = *state;
	struct child c;
	char message[16];
	AUTO(latch_dropp) struct latch next = LATCH_NONE;
	fleet_make(w, 0600);
	assert_int_equal(latch_name(&w->latch, w->fleet, &w->subject), BATON_OK);
	assert_int_equal(latch_name(&next, w->fleet, &w->subject), BATON_OK);
	child_start(&c, drop_traced, w);
	assert_true(channel_receive(c.channel, message, sizeof message));
	assert_int_equal(unlink(next.path), 0);
	assert_int_equal(latch_take(&next), BATON_OK);
	trace(&c);
	latch_drop(&next);
	assert_int_equal(latch_take(&next), BATON_OK);
	assert_int_equal(ptrace(PTRACE_DETACH, c.pid, NULL, NULL), 0);
	assert_int_equal(child_reap(&c), 0);
	assert_int_equal(access(next.path, F_OK), 0);
}

static void subjects_have_latches_of_their_own(void **state)
{
	struct world *w = *state;
	struct baton_subject others[] = {BATON_SUBJECT("lock", "y"), BATON_SUBJECT("loc", "kx"),
	                                 BATON_SUBJECT("lockx", "x")};
	fleet_make(w, 0600);
	assert_int_equal(latch_name(&w->latch, w->fleet, &w->subject), BATON_OK);
	assert_int_equal(strlen(strrchr(w->latch.path, '/') + 1), 32);
	for (size_t i = 0; i < 3; i++) {
		struct latch other = LATCH_NONE;
		assert_int_equal(latch_name(&other, w->fleet, &others[i]), BATON_OK);
		assert_string_not_equal(other.path, w->latch.path);
	}
}

static void folder_and_file_may_be_used_by_whoever_may_use_the_fleet(void **state)
{
	struct world *w = *state;
	static const unsigned modes[][3] = {{0600, 0700, 0600}, {0660, 0770, 0660}};
	mode_t before = umask(077);
	for (size_t i = 0; i < 2; i++) {
		fleet_make(w, modes[i][0]);
		assert_int_equal(latch_name(&w->latch, w->fleet, &w->subject), BATON_OK);
		assert_int_equal(mode_of(w->locks), modes[i][1]);
		assert_int_equal(latch_take(&w->latch), BATON_OK);
		assert_int_equal(mode_of(w->latch.path), modes[i][2]);
		latch_drop(&w->latch);
	}
	umask(before);
}

static void root_leaves_what_belongs_to_the_fleets_owner(void **state)
{
	struct world *w = *state;
	struct stat st;
	if (geteuid() != 0)
		skip();
	fleet_make(w, 0600);
	assert_int_equal(chown(w->fleet, 12345, 12345), 0);
	assert_int_equal(latch_name(&w->latch, w->fleet, &w->subject), BATON_OK);
	assert_int_equal(stat(w->locks, &st), 0);
	assert_int_equal(st.st_uid, 12345);
	assert_int_equal(latch_take(&w->latch), BATON_OK);
	assert_int_equal(fstat(w->latch.fd, &st), 0);
	assert_int_equal(st.st_uid, 12345);
}

static void a_folder_of_somebody_else_or_a_link_is_refused(void **state)
{
	struct world *w = *state;
	fleet_make(w, 0600);
	assert_int_equal(symlink("/tmp", w->locks), 0);
	assert_int_equal(latch_name(&w->latch, w->fleet, &w->subject), BATON_SYSTEM);
	unlink(w->locks);
	if (geteuid() != 0)
		return;
	assert_int_equal(mkdir(w->locks, 0700), 0);
	assert_int_equal(chown(w->locks, 12345, 12345), 0);
	assert_int_equal(latch_name(&w->latch, w->fleet, &w->subject), BATON_INVALID);
}

static void a_fleet_that_is_not_there_or_too_long_has_none(void **state)
{
	struct world *w = *state;
	char path[LATCH_PATH_MAX + 1];
	assert_int_equal(latch_name(&w->latch, w->fleet, &w->subject), BATON_SYSTEM);
	memset(path, 'x', sizeof path - 1);
	path[0] = '/';
	path[sizeof path - 1] = '\0';
	assert_int_equal(latch_name(&w->latch, path, &w->subject), BATON_INVALID);
}

static int keep_it(int channel, void *arg)
{
	char message[8];
	(void)arg;
	channel_send(channel, "have it");
	channel_receive(channel, message, sizeof message);
	return 0;
}

static void those_who_have_it_are_named(void **state)
{
	struct world *w = *state;
	struct child c;
	int32_t pids[4];
	char message[16];
	fleet_make(w, 0600);
	assert_int_equal(latch_name(&w->latch, w->fleet, &w->subject), BATON_OK);
	assert_int_equal(latch_keepers(&w->latch, pids, 4), 0);
	assert_int_equal(latch_take(&w->latch), BATON_OK);
	assert_int_equal(latch_keepers(&w->latch, pids, 4), 0);
	child_start(&c, keep_it, NULL);
	assert_true(channel_receive(c.channel, message, sizeof message));
	assert_int_equal(latch_keepers(&w->latch, pids, 4), 1);
	assert_int_equal(pids[0], c.pid);
	assert_int_equal(latch_keepers(&w->latch, pids, 0), 0);
	child_hang_up(&c);
	assert_int_equal(child_reap(&c), 0);
}

int main(void)
{
	skips_repair();
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(one_has_it_and_the_next_yields_until_it_is_dropped),
		TEST(a_dropped_latch_leaves_no_file),
		TEST(who_has_a_copy_keeps_it_and_the_file_stays),
		TEST(a_file_that_was_removed_is_not_the_latch),
		TEST(who_locks_a_file_that_was_removed_meanwhile_looks_again),
		TEST(who_drops_a_latch_leaves_the_file_of_another),
		TEST(subjects_have_latches_of_their_own),
		TEST(folder_and_file_may_be_used_by_whoever_may_use_the_fleet),
		TEST(root_leaves_what_belongs_to_the_fleets_owner),
		TEST(a_folder_of_somebody_else_or_a_link_is_refused),
		TEST(a_fleet_that_is_not_there_or_too_long_has_none),
		TEST(those_who_have_it_are_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
