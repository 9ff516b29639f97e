/* Whether an owner is dead, where namespaces hide or shift what can be seen of it. */
#include <baton/owner.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/child.h"
#include "support/harness.h"
#include "support/skips.h"
#include "unit/base/owners.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

/* In a new pid namespace, under a /proc that counts in the old one. */
static int judge_under_a_foreign_proc(void)
{
	struct child c;
	char text[BATON_OWNER_TEXT];
	struct baton_owner judge, other;
	child_start(&c, report_and_wait, NULL);
	if (baton_owner_self(name, &judge) != BATON_OK ||
	    !channel_receive(c.channel, text, sizeof text) ||
	    baton_owner_parse(baton_str_z(text), &other) != BATON_OK)
		return 1;
	if (judge.pid != 1 || other.pid != c.pid)
		return 2;
	/* /proc/<other.pid> is another process, if there is one: its start time means nothing. */
	if (baton_owner_is_dead(&judge, &other, BATON_REACH_HOSTS))
		return 3;
	other.start++;
	if (!baton_owner_is_dead(&judge, &other, BATON_REACH_HOSTS))
		return 4;
	other.start--;
	child_hang_up(&c);
	child_await_end(&c);
	if (!baton_owner_is_dead(&judge, &other, BATON_REACH_HOSTS))
		return 5;
	child_reap(&c);
	return baton_owner_is_dead(&judge, &other, BATON_REACH_HOSTS) ? 0 : 6;
}

static int exit_code_of(pid_t pid)
{
	int status;
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 100;
	return WEXITSTATUS(status);
}

/* Runs body() as the first process of a new pid namespace. */
static int in_a_new_pid_namespace(int (*body)(void))
{
	if (!child_unshare(CLONE_NEWPID))
		return CHILD_SKIP;
	pid_t pid = fork();
	if (pid == 0)
		_exit(body());
	return exit_code_of(pid);
}

static int start_judge_under_a_foreign_proc(int channel, void *arg)
{
	(void)channel;
	(void)arg;
	return in_a_new_pid_namespace(judge_under_a_foreign_proc);
}

static void a_proc_of_another_namespace_is_read_under_the_right_pid(void **state)
{
	(void)state;
	struct child c;
	child_start(&c, start_judge_under_a_foreign_proc, NULL);
	assert_done_or_skip(&c);
}

/* In a new pid namespace: tells who it is, and judges its parent with what the parent knew. */
static int report_from_inside(int channel, void *arg)
{
	const struct baton_owner *outside = arg;
	if (!child_unshare(CLONE_NEWPID))
		return CHILD_SKIP;
	pid_t pid = fork();
	if (pid == 0) {
		struct baton_owner inside;
		if (!report(channel) || baton_owner_self(name, &inside) != BATON_OK)
			_exit(1);
		if (baton_owner_is_dead(&inside, outside, BATON_REACH_HOST))
			_exit(2);
		/* A description from before the fork, by which the parent's pid would be gone. */
		_exit(baton_owner_is_dead(outside, outside, BATON_REACH_HOST) ? 3 : 0);
	}
	return exit_code_of(pid);
}

static void owners_of_two_real_namespaces_prove_nothing_of_each_other(void **state)
{
	(void)state;
	struct child c;
	struct baton_owner me = self();
	child_start(&c, report_from_inside, &me);
	child_await_end(&c);
	char text[BATON_OWNER_TEXT];
	struct baton_owner inside;
	if (channel_receive(c.channel, text, sizeof text)) {
		assert_int_equal(baton_owner_parse(baton_str_z(text), &inside), BATON_OK);
		assert_int_equal(inside.pid, 1);
		assert_int_not_equal(inside.pid_ns, me.pid_ns);
		/* It is dead by now, but from here that cannot be proved. */
		assert_false(is_dead(&inside));
	}
	assert_done_or_skip(&c);
}

/* Starts a process under exactly this pid of this namespace. */
static pid_t fork_as(pid_t pid)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uintptr_t)&pid,
		.set_tid_size = 1,
	};
	return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

static uint64_t ticks_since_boot(void)
{
	struct timespec t;
	clock_gettime(CLOCK_BOOTTIME, &t);
	uint64_t per_second = (uint64_t)sysconf(_SC_CLK_TCK);
	return (uint64_t)t.tv_sec * per_second + (uint64_t)t.tv_nsec * per_second / 1000000000;
}

static int judge_a_recycled_pid(void)
{
	struct child c;
	char text[BATON_OWNER_TEXT];
	struct baton_owner judge, other;
	child_start(&c, report_and_wait, NULL);
	if (baton_owner_self(name, &judge) != BATON_OK ||
	    !channel_receive(c.channel, text, sizeof text) ||
	    baton_owner_parse(baton_str_z(text), &other) != BATON_OK)
		return 1;
	child_hang_up(&c);
	child_reap(&c);
	/* Within one tick the kernel's clock does not tell two processes apart. */
	while (ticks_since_boot() <= other.start + 1)
		continue;
	pid_t again = fork_as(other.pid);
	if (again == 0)
		for (;;)
			pause();
	if (again < 0)
		return errno == EPERM || errno == ENOSYS ? CHILD_SKIP : 2;
	if (again != other.pid)
		return 3;
	return baton_owner_is_dead(&judge, &other, BATON_REACH_HOSTS) ? 0 : 4;
}

static int start_judge_of_a_recycled_pid(int channel, void *arg)
{
	(void)channel;
	(void)arg;
	return in_a_new_pid_namespace(judge_a_recycled_pid);
}

static void whose_pid_was_given_to_another_process_is_dead(void **state)
{
	(void)state;
	struct child c;
	child_start(&c, start_judge_of_a_recycled_pid, NULL);
	assert_done_or_skip(&c);
}

/* Hides `path` from this process by an empty file system on top of it. */
static bool hide(const char *path)
{
	return child_unshare(CLONE_NEWNS) &&
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("none", path, "tmpfs", 0, NULL) == 0;
}

static int judge_what_proc_hides(int channel, void *arg)
{
	struct baton_owner judge;
	struct baton_owner other = *(const struct baton_owner *)arg;
	char path[64], message[8];
	snprintf(path, sizeof path, "/proc/%d", (int)other.pid);
	if (baton_owner_self(name, &judge) != BATON_OK)
		return 1;
	if (!hide(path))
		return CHILD_SKIP;
	snprintf(path, sizeof path, "/proc/%d/stat", (int)other.pid);
	if (access(path, F_OK) == 0)
		return 2;
	if (baton_owner_is_dead(&judge, &other, BATON_REACH_HOSTS))
		return 3;
	other.start++;
	if (baton_owner_is_dead(&judge, &other, BATON_REACH_HOSTS))
		return 4;
	channel_send(channel, "judged");
	channel_receive(channel, message, sizeof message);
	return baton_owner_is_dead(&judge, &other, BATON_REACH_HOSTS) ? 0 : 5;
}

static void a_hidden_entry_proves_nothing_until_the_process_has_ended(void **state)
{
	(void)state;
	struct child c, judge;
	char message[8];
	child_start(&c, report_and_wait, NULL);
	struct baton_owner owner = reported(&c);
	child_start(&judge, judge_what_proc_hides, &owner);
	bool judged = channel_receive(judge.channel, message, sizeof message);
	child_hang_up(&c);
	child_await_end(&c);
	if (judged)
		channel_send(judge.channel, "ended");
	assert_int_equal(child_reap(&c), 0);
	assert_done_or_skip(&judge);
}

static int judge_without_proc(int channel, void *arg)
{
	(void)channel;
	(void)arg;
	struct baton_owner judge;
	if (baton_owner_self(name, &judge) != BATON_OK)
		return 1;
	struct baton_owner gone = judge;
	gone.pid = INT32_MAX;
	if (!hide("/proc"))
		return CHILD_SKIP;
	return baton_owner_is_dead(&judge, &gone, BATON_REACH_HOSTS) ? 2 : 0;
}

static void without_proc_nobody_knows_in_which_namespace_a_pid_counts(void **state)
{
	(void)state;
	struct child c;
	child_start(&c, judge_without_proc, NULL);
	assert_done_or_skip(&c);
}

static bool shift_time_of_children(const char *offsets)
{
	if (unshare(CLONE_NEWTIME) != 0 && !child_unshare(CLONE_NEWTIME))
		return false;
	int fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	bool written = write(fd, offsets, strlen(offsets)) == (ssize_t)strlen(offsets);
	close(fd);
	return written;
}

/* Inside of a time namespace that shifts the times since boot. */
static int judge_under_shifted_time(struct baton_owner outside)
{
	struct baton_owner judge;
	if (baton_owner_self(name, &judge) != BATON_OK)
		return 1;
	if (judge.start != 0)
		return 2;
	if (baton_owner_is_dead(&judge, &outside, BATON_REACH_HOSTS))
		return 3;
	/* A description from before, with a start time. */
	judge.start = outside.start;
	if (baton_owner_is_dead(&judge, &outside, BATON_REACH_HOSTS))
		return 4;
	/* The offsets in /proc become those of the children, and 0; its own stays. */
	if (!shift_time_of_children("boottime 0 0\n"))
		return 5;
	if (baton_owner_is_dead(&judge, &outside, BATON_REACH_HOSTS))
		return 6;
	return baton_owner_self(name, &judge) == BATON_OK && judge.start == 0 ? 0 : 7;
}

static int start_judge_under_shifted_time(int channel, void *arg)
{
	(void)channel;
	struct baton_owner here;
	if (!shift_time_of_children("boottime 1000 0\n"))
		return CHILD_SKIP;
	/* Its own time is the host's, but /proc shows the offset of its children. */
	if (baton_owner_self(name, &here) != BATON_OK || here.start != 0)
		return 90;
	pid_t pid = fork();
	if (pid == 0)
		_exit(judge_under_shifted_time(*(const struct baton_owner *)arg));
	return exit_code_of(pid);
}

static void start_times_prove_nothing_where_time_is_shifted(void **state)
{
	(void)state;
	struct child c;
	struct baton_owner me = self();
	child_start(&c, start_judge_under_shifted_time, &me);
	assert_done_or_skip(&c);
}

int main(void)
{
	skips_repair();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_proc_of_another_namespace_is_read_under_the_right_pid),
		cmocka_unit_test(owners_of_two_real_namespaces_prove_nothing_of_each_other),
		cmocka_unit_test(whose_pid_was_given_to_another_process_is_dead),
		cmocka_unit_test(a_hidden_entry_proves_nothing_until_the_process_has_ended),
		cmocka_unit_test(without_proc_nobody_knows_in_which_namespace_a_pid_counts),
		cmocka_unit_test(start_times_prove_nothing_where_time_is_shifted),
	};
	return cmocka_run_group_tests_name("namespaces", tests, NULL, NULL);
}
