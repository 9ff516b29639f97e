/* Whether an owner is dead, with real processes. */
#include <baton/owner.h>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fail.h"
#include "support/child.h"
#include "support/harness.h"
#include "unit/base/owners.h"

static void a_process_is_not_dead_to_itself(void **state)
{
	(void)state;
	struct baton_owner me = self();
	assert_false(is_dead(&me));
}

static void who_runs_is_not_dead(void **state)
{
	(void)state;
	struct child c;
	child_start(&c, report_and_wait, NULL);
	struct baton_owner owner = reported(&c);
	assert_int_equal(owner.pid, c.pid);
	assert_false(is_dead(&owner));
	end(&c);
}

static void who_has_ended_is_dead_before_and_after_it_is_reaped(void **state)
{
	(void)state;
	struct child c;
	child_start(&c, report_and_wait, NULL);
	struct baton_owner owner = reported(&c);
	struct baton_owner without_start = owner;
	without_start.start = 0;
	child_hang_up(&c);
	child_await_end(&c);
	assert_true(is_dead(&owner));
	assert_true(is_dead(&without_start));
	assert_int_equal(child_reap(&c), 0);
	assert_true(is_dead(&owner));
	assert_true(is_dead(&without_start));
}

static void who_was_killed_is_dead(void **state)
{
	(void)state;
	struct child c;
	child_start(&c, report_and_wait, NULL);
	struct baton_owner owner = reported(&c);
	kill(c.pid, SIGKILL);
	child_await_end(&c);
	assert_true(is_dead(&owner));
	assert_int_equal(child_reap(&c), 128 + SIGKILL);
}

static void who_is_stopped_is_not_dead(void **state)
{
	(void)state;
	struct child c;
	child_start(&c, report_and_wait, NULL);
	struct baton_owner owner = reported(&c);
	kill(c.pid, SIGSTOP);
	siginfo_t info;
	assert_int_equal(waitid(P_PID, (id_t)c.pid, &info, WSTOPPED), 0);
	assert_false(is_dead(&owner));
	kill(c.pid, SIGCONT);
	end(&c);
}

static void another_start_time_under_the_same_pid_is_death(void **state)
{
	(void)state;
	struct child c;
	child_start(&c, report_and_wait, NULL);
	struct baton_owner owner = reported(&c);
	owner.start++;
	assert_true(is_dead(&owner));
	owner.start -= 2;
	assert_true(is_dead(&owner));
	end(&c);
}

static void an_unknown_start_time_on_either_side_proves_nothing(void **state)
{
	(void)state;
	struct child c;
	child_start(&c, report_and_wait, NULL);
	struct baton_owner judge = self();
	struct baton_owner owner = reported(&c);
	struct baton_owner unknown = owner;
	unknown.start = 0;
	assert_false(baton_owner_is_dead(&judge, &unknown, BATON_REACH_HOST));
	judge.start = 0;
	owner.start++;
	assert_false(baton_owner_is_dead(&judge, &owner, BATON_REACH_HOST));
	end(&c);
}

static void another_boot_is_death_only_where_all_are_on_one_host(void **state)
{
	(void)state;
	struct baton_owner judge = self();
	struct baton_owner owner = self();
	owner.boot.bytes[15] ^= 1;
	assert_false(baton_owner_is_dead(&judge, &owner, BATON_REACH_HOSTS));
	assert_true(baton_owner_is_dead(&judge, &owner, BATON_REACH_HOST));
	/* Also when its namespace is unknown here, and its pid free. */
	owner.pid_ns++;
	owner.pid = INT32_MAX;
	assert_false(baton_owner_is_dead(&judge, &owner, BATON_REACH_HOSTS));
	assert_true(baton_owner_is_dead(&judge, &owner, BATON_REACH_HOST));
}

static void a_pid_of_another_namespace_proves_nothing(void **state)
{
	(void)state;
	struct baton_owner judge = self();
	struct baton_owner owner = self();
	owner.pid = INT32_MAX;
	assert_true(baton_owner_is_dead(&judge, &owner, BATON_REACH_HOSTS));
	owner.pid_ns++;
	assert_false(baton_owner_is_dead(&judge, &owner, BATON_REACH_HOSTS));
	assert_false(baton_owner_is_dead(&judge, &owner, BATON_REACH_HOST));
	/* Judges whose descriptions are not those of this process. */
	judge.pid_ns++;
	assert_false(baton_owner_is_dead(&judge, &owner, BATON_REACH_HOST));
	owner.pid_ns--;
	assert_false(baton_owner_is_dead(&judge, &owner, BATON_REACH_HOST));
}

static void an_opaque_owner_neither_dies_nor_judges(void **state)
{
	(void)state;
	struct baton_owner judge = self();
	struct baton_owner owner = self();
	struct baton_owner opaque;
	assert_int_equal(baton_owner_opaque(name, &opaque), BATON_OK);
	assert_false(baton_owner_is_dead(&judge, &opaque, BATON_REACH_HOST));
	owner.pid = INT32_MAX;
	assert_true(baton_owner_is_dead(&judge, &owner, BATON_REACH_HOST));
	assert_false(baton_owner_is_dead(&opaque, &owner, BATON_REACH_HOST));
	owner.pid = -1;
	assert_false(baton_owner_is_dead(&judge, &owner, BATON_REACH_HOST));
}

static void a_judgement_leaves_the_error_detail_alone(void **state)
{
	(void)state;
	struct baton_owner judge = self();
	struct baton_owner owner = self();
	fail(BATON_INVALID, "kept");
	owner.pid = INT32_MAX;
	assert_true(baton_owner_is_dead(&judge, &owner, BATON_REACH_HOSTS));
	owner.pid = 1;
	baton_owner_is_dead(&judge, &owner, BATON_REACH_HOSTS);
	assert_string_equal(baton_err_detail(), "kept");
}

/* Replaces this process by the program of this test in the role `role`. */
static int become(int channel, void *role)
{
	char number[16];
	if (!report(channel))
		return 1;
	snprintf(number, sizeof number, "%d", channel);
	fcntl(channel, F_SETFD, 0);
	execl("/proc/self/exe", "test-death", (char *)role, number, (char *)NULL);
	return 1;
}

static char role_wait[] = "wait";
static char role_main_thread_ends[] = "main-thread-ends";

static void who_runs_another_program_is_still_not_dead(void **state)
{
	(void)state;
	struct child c;
	child_start(&c, become, role_wait);
	struct baton_owner before = reported(&c);
	struct baton_owner after = reported(&c);
	assert_int_equal(before.pid, after.pid);
	assert_int_equal(before.start, after.start);
	assert_false(is_dead(&before));
	end(&c);
	assert_true(is_dead(&before));
}

/* The letter by which /proc shows the state of this process's first thread. */
static char first_threads_state(void)
{
	char text[1024];
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	const char *name_end = strrchr(text, ')');
	return name_end != NULL ? name_end[2] : '?';
}

static void *outlive_the_first_thread(void *arg)
{
	int channel = *(int *)arg;
	free(arg);
	/* There is no event for this; it comes as soon as the other thread gets to run. */
	while (first_threads_state() != 'Z')
		sched_yield();
	_exit(report_and_wait(channel, NULL));
}

static void a_process_whose_first_thread_ended_is_not_dead(void **state)
{
	(void)state;
	struct child c;
	child_start(&c, become, role_main_thread_ends);
	struct baton_owner before = reported(&c);
	struct baton_owner after = reported(&c);
	assert_int_equal(after.pid, before.pid);
	assert_int_equal(after.pid_ns, before.pid_ns);
	assert_false(is_dead(&before));
	assert_false(is_dead(&after));
	end(&c);
	assert_true(is_dead(&before));
	assert_true(is_dead(&after));
}

/* Judges in a process in which no descriptor can be opened. */
static int judge_without_descriptors(int channel, void *arg)
{
	(void)channel;
	const struct baton_owner *ended = arg;
	struct baton_owner judge;
	if (baton_owner_self(name, &judge) != BATON_OK)
		return 1;
	struct rlimit none = {.rlim_cur = 3, .rlim_max = 3};
	setrlimit(RLIMIT_NOFILE, &none);
	struct baton_owner gone = *ended;
	gone.pid = INT32_MAX;
	if (baton_owner_is_dead(&judge, ended, BATON_REACH_HOSTS))
		return 2;
	return baton_owner_is_dead(&judge, &gone, BATON_REACH_HOSTS) ? 0 : 3;
}

static void without_a_descriptor_only_a_pid_that_is_gone_is_proof(void **state)
{
	(void)state;
	struct child c, judge;
	child_start(&c, report_and_wait, NULL);
	struct baton_owner owner = reported(&c);
	child_hang_up(&c);
	child_await_end(&c);
	child_start(&judge, judge_without_descriptors, &owner);
	assert_int_equal(child_reap(&judge), 0);
	assert_true(is_dead(&owner));
	assert_int_equal(child_reap(&c), 0);
}

/* The roles of this program after become(). */
static int play(const char *role, int channel)
{
	if (strcmp(role, role_wait) == 0)
		return report_and_wait(channel, NULL);
	/* Its own copy: this thread's stack is gone when the other one looks. */
	int *copy = malloc(sizeof *copy);
	if (copy == NULL)
		return 1;
	*copy = channel;
	pthread_t thread;
	if (pthread_create(&thread, NULL, outlive_the_first_thread, copy) != 0)
		return 1;
	pthread_exit(NULL);
}

int main(int argc, char **argv)
{
	if (argc == 3)
		return play(argv[1], atoi(argv[2]));
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_is_not_dead_to_itself),
		cmocka_unit_test(who_runs_is_not_dead),
		cmocka_unit_test(who_has_ended_is_dead_before_and_after_it_is_reaped),
		cmocka_unit_test(who_was_killed_is_dead),
		cmocka_unit_test(who_is_stopped_is_not_dead),
		cmocka_unit_test(another_start_time_under_the_same_pid_is_death),
		cmocka_unit_test(an_unknown_start_time_on_either_side_proves_nothing),
		cmocka_unit_test(another_boot_is_death_only_where_all_are_on_one_host),
		cmocka_unit_test(a_pid_of_another_namespace_proves_nothing),
		cmocka_unit_test(an_opaque_owner_neither_dies_nor_judges),
		cmocka_unit_test(a_judgement_leaves_the_error_detail_alone),
		cmocka_unit_test(who_runs_another_program_is_still_not_dead),
		cmocka_unit_test(a_process_whose_first_thread_ended_is_not_dead),
		cmocka_unit_test(without_a_descriptor_only_a_pid_that_is_gone_is_proof),
	};
	return cmocka_run_group_tests_name("death", tests, NULL, NULL);
}
