/* A command and all that descends from it, as children of one process. */
#include "guardian/brood.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/child.h"
#include "support/harness.h"

/* What a process that has a brood does with it, as a child of the test: it is a property of the
 * whole process that it inherits orphans. The answer is 0, or the line at which it went wrong. */
#define EXPECT(condition)                          \
	do {                                       \
		if (!(condition))                  \
			return __LINE__ % 200 + 1; \
	} while (0)

static struct brood_spec spec_of(char *const *argv, const sigset_t *mask)
{
	return (struct brood_spec){
		.argv = argv,
		.envp = environ,
		.mask = mask,
	};
}

/* Waits for the next child that ends. */
static struct brood_news reap_one(struct brood *b)
{
	siginfo_t info;
	while (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR)
		;
	return brood_reap(b);
}

static int start(struct brood *b, char *const *argv)
{
	sigset_t mask;
	sigemptyset(&mask);
	struct brood_spec spec = spec_of(argv, &mask);
	EXPECT(brood_prepare() == BATON_OK);
	EXPECT(brood_fork(b, &spec) == BATON_OK);
	brood_start(b, -1, NULL);
	return 0;
}

static int start_shell(struct brood *b, const char *script)
{
	char shell[] = "sh", option[] = "-c";
	char *argv[] = {shell, option, (char *)script, NULL};
	return start(b, argv);
}

static int run_to_the_end(const char *script, struct brood *b)
{
	int wrong = start_shell(b, script);
	if (wrong)
		return wrong;
	for (struct brood_news news = {.empty = false}; !news.empty;)
		news = reap_one(b);
	return 0;
}

static int statuses(int channel, void *arg)
{
	(void)channel;
	(void)arg;
	struct brood b = BROOD_NONE;
	EXPECT(run_to_the_end("exit 7", &b) == 0);
	EXPECT(WIFEXITED(b.status) && WEXITSTATUS(b.status) == 7 && b.errnum == 0);
	EXPECT(b.command == 0);
	EXPECT(run_to_the_end("kill -9 $$", &b) == 0);
	EXPECT(WIFSIGNALED(b.status) && WTERMSIG(b.status) == 9);
	return 0;
}

static int missing(int channel, void *arg)
{
	(void)channel;
	(void)arg;
	struct brood b = BROOD_NONE;
	char command[] = "/no/such/command";
	char *argv[] = {command, NULL};
	EXPECT(start(&b, argv) == 0);
	EXPECT(reap_one(&b).ended);
	EXPECT(b.errnum == ENOENT);
	return 0;
}

/* A script without "#!" is for the shell, as a shell has it. */
static int plain_script(int channel, void *arg)
{
	(void)channel;
	(void)arg;
	char path[] = "/tmp/baton-brood-XXXXXX";
	int fd = mkstemp(path);
	EXPECT(fd >= 0 && write(fd, "exit 5\n", 7) == 7 && fchmod(fd, 0700) == 0);
	close(fd);
	struct brood b = BROOD_NONE;
	char *argv[] = {path, NULL};
	EXPECT(start(&b, argv) == 0);
	EXPECT(reap_one(&b).ended);
	unlink(path);
	EXPECT(b.errnum == 0 && WEXITSTATUS(b.status) == 5);
	return 0;
}

static int orphans(int channel, void *arg)
{
	(void)channel;
	(void)arg;
	struct brood b = BROOD_NONE;
	int hold[2];
	EXPECT(pipe2(hold, O_CLOEXEC) == 0 && fcntl(hold[0], F_SETFD, 0) == 0);
	char script[64];
	snprintf(script, sizeof script, "(setsid cat <&%d >/dev/null &); exit 0", hold[0]);
	EXPECT(start_shell(&b, script) == 0);
	struct brood_news news = {.empty = false};
	while (!news.ended)
		news = reap_one(&b);
	EXPECT(!news.empty);
	close(hold[1]);
	close(hold[0]);
	EXPECT(!brood_reap(&b).ended);
	while (!news.empty)
		news = reap_one(&b);
	return 0;
}

/* Where a script says that it runs. */
#define READY 9

static int kill_all(int channel, void *arg)
{
	(void)channel;
	struct brood b = BROOD_NONE;
	int ready[2];
	char byte;
	EXPECT(pipe(ready) == 0 && dup2(ready[1], READY) == READY);
	close(ready[1]);
	EXPECT(start_shell(&b, arg) == 0);
	close(READY);
	EXPECT(read(ready[0], &byte, 1) == 1);
	while (!brood_reap(&b).empty)
		brood_signal_all(&b, SIGKILL);
	/* Nobody has the other end any more. */
	while (read(ready[0], &byte, 1) > 0)
		;
	return 0;
}

static int killed_with_its_parent(int channel, void *arg)
{
	(void)arg;
	struct brood b = BROOD_NONE;
	/* Both the command and this process have the channel; the test sees when neither has. */
	EXPECT(fcntl(channel, F_SETFD, 0) == 0);
	EXPECT(start_shell(&b, "exec sleep 1000") == 0);
	channel_send(channel, "started");
	pause();
	return 0;
}

/* Where a command finds the descriptor that it inherits. */
#define INHERITED 77

/* Runs a command that finds SIGUSR1 blocked, SIGCHLD ignored and a copy of the descriptor. */
static int run_prepared(char *const *argv, int fd)
{
	struct brood b = BROOD_NONE;
	sigset_t mask;
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	struct brood_spec spec = spec_of(argv, &mask);
	spec.chld_ignored = true;
	EXPECT(brood_fork(&b, &spec) == BATON_OK);
	EXPECT(dup3(fd, INHERITED, O_CLOEXEC) == INHERITED);
	brood_start(&b, INHERITED, NULL);
	close(INHERITED);
	EXPECT(reap_one(&b).ended);
	EXPECT(WIFEXITED(b.status) && WEXITSTATUS(b.status) == 0);
	return 0;
}

static int descriptors_and_signals(int channel, void *arg)
{
	(void)arg;
	char grep[] = "grep", quiet[] = "-q", status[] = "/proc/self/status";
	char blocked[] = "SigBlk:.0*200$", ignored[] = "SigIgn:.*[1357]....$";
	char test[] = "test", not [] = "!", exists[] = "-e", open_one[] = "/proc/self/fd/77";
	char closed_one[32];
	snprintf(closed_one, sizeof closed_one, "/proc/self/fd/%d", channel);
	EXPECT(run_prepared((char *[]){grep, quiet, blocked, status, NULL}, channel) == 0);
	EXPECT(run_prepared((char *[]){grep, quiet, ignored, status, NULL}, channel) == 0);
	EXPECT(run_prepared((char *[]){test, exists, open_one, NULL}, channel) == 0);
	EXPECT(run_prepared((char *[]){test, not, exists, closed_one, NULL}, channel) == 0);
	return 0;
}

/* Forks a shell that is to run the script, with all signals blocked. */
static int fork_blocked(struct brood *b, const char *script, char *late)
{
	static char shell[] = "sh", option[] = "-c";
	char *argv[] = {shell, option, (char *)script, NULL}, *envp[] = {late, NULL};
	sigset_t all, none;
	sigfillset(&all);
	sigemptyset(&none);
	EXPECT(sigprocmask(SIG_SETMASK, &all, NULL) == 0);
	struct brood_spec spec = spec_of(argv, &none);
	if (late) {
		spec.envp = envp;
		spec.late = late;
	}
	EXPECT(brood_prepare() == BATON_OK && brood_fork(b, &spec) == BATON_OK);
	return 0;
}

static int told_late(int channel, void *arg)
{
	(void)channel;
	(void)arg;
	struct brood b = BROOD_NONE;
	char late[BROOD_LATE] = "WORD=early";
	EXPECT(fork_blocked(&b, "[ \"$WORD\" = late ]", late) == 0);
	brood_start(&b, -1, "WORD=late");
	EXPECT(reap_one(&b).ended);
	EXPECT(WIFEXITED(b.status) && WEXITSTATUS(b.status) == 0);
	return 0;
}

static int signalled_early(int channel, void *arg)
{
	(void)channel;
	(void)arg;
	struct brood b = BROOD_NONE;
	EXPECT(fork_blocked(&b, "exit 3", NULL) == 0);
	EXPECT(getpgid(b.command) == getpgrp());
	EXPECT(kill(b.command, SIGINT) == 0);
	brood_start(&b, -1, NULL);
	EXPECT(reap_one(&b).ended);
	EXPECT(WIFSIGNALED(b.status) && WTERMSIG(b.status) == SIGINT && b.errnum == 0);
	return 0;
}

static int stopped_early(int channel, void *arg)
{
	(void)channel;
	(void)arg;
	struct brood b = BROOD_NONE;
	siginfo_t info;
	/* In a group whose parent is of its session: others are not stopped by a terminal. */
	EXPECT(setpgid(0, 0) == 0);
	EXPECT(fork_blocked(&b, "exit 3", NULL) == 0);
	EXPECT(kill(b.command, SIGTSTP) == 0);
	brood_start(&b, -1, NULL);
	EXPECT(waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOWAIT) == 0);
	EXPECT(info.si_code == CLD_EXITED && info.si_status == 3);
	return 0;
}

static int never_started(int channel, void *arg)
{
	(void)channel;
	(void)arg;
	struct brood b = BROOD_NONE;
	EXPECT(fork_blocked(&b, "exit 3", NULL) == 0);
	EXPECT(kill(b.command, SIGSTOP) == 0);
	brood_done(&b);
	EXPECT(b.command == 0 && brood_reap(&b).empty);
	return 0;
}

static void all_is_well(int (*body)(int, void *), const void *arg)
{
	struct child c;
	child_start(&c, body, (void *)arg);
	assert_int_equal(child_reap(&c), 0);
}

static void the_status_of_the_command_is_kept(void **state)
{
	(void)state;
	all_is_well(statuses, NULL);
}

static void a_command_that_cannot_be_executed_says_why(void **state)
{
	(void)state;
	all_is_well(missing, NULL);
}

static void a_script_without_an_interpreter_is_for_the_shell(void **state)
{
	(void)state;
	all_is_well(plain_script, NULL);
}

static void orphans_belong_to_it_until_they_end(void **state)
{
	(void)state;
	all_is_well(orphans, NULL);
}

static void daemons_that_ignore_everything_are_killed(void **state)
{
	(void)state;
	all_is_well(kill_all,
	            "trap '' TERM; (setsid sh -c 'echo 1 >&9; sleep 1000; :' &); sleep 1000");
}

static void what_has_forked_hundreds_is_killed(void **state)
{
	(void)state;
	all_is_well(kill_all, "trap '' TERM; f() { n=$((n + 1)); [ $n -gt 8 ] || { f & f & }; "
	                      "[ $n -lt 8 ] || echo 1 >&9; sleep 1000; }; n=0; f");
}

static void what_is_always_somebody_else_is_killed(void **state)
{
	(void)state;
	all_is_well(kill_all, "echo 1 >&9; exec \"$BATON_RUNAWAY\"");
	all_is_well(kill_all, "echo 1 >&9; exec \"$BATON_RUNAWAY\" sessions");
}

static void a_command_is_killed_with_its_parent(void **state)
{
	(void)state;
	struct child c;
	char message[16];
	child_start(&c, killed_with_its_parent, NULL);
	assert_true(channel_receive(c.channel, message, sizeof message));
	kill(c.pid, SIGKILL);
	assert_false(channel_receive(c.channel, message, sizeof message));
	assert_int_equal(child_reap(&c), 128 + SIGKILL);
}

static void a_command_finds_what_it_is_to_find(void **state)
{
	(void)state;
	all_is_well(descriptors_and_signals, NULL);
}

static void a_command_learns_at_its_start_what_was_not_known_before(void **state)
{
	(void)state;
	all_is_well(told_late, NULL);
}

static void a_signal_before_the_start_waits_for_the_command(void **state)
{
	(void)state;
	all_is_well(signalled_early, NULL);
}

static void what_stopped_before_the_start_does_not_stop_the_command(void **state)
{
	(void)state;
	all_is_well(stopped_early, NULL);
}

static void a_command_that_is_not_started_ends_with_its_brood(void **state)
{
	(void)state;
	all_is_well(never_started, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_status_of_the_command_is_kept),
		cmocka_unit_test(a_command_that_cannot_be_executed_says_why),
		cmocka_unit_test(a_script_without_an_interpreter_is_for_the_shell),
		cmocka_unit_test(orphans_belong_to_it_until_they_end),
		cmocka_unit_test(daemons_that_ignore_everything_are_killed),
		cmocka_unit_test(what_has_forked_hundreds_is_killed),
		cmocka_unit_test(what_is_always_somebody_else_is_killed),
		cmocka_unit_test(a_command_is_killed_with_its_parent),
		cmocka_unit_test(a_command_finds_what_it_is_to_find),
		cmocka_unit_test(a_command_learns_at_its_start_what_was_not_known_before),
		cmocka_unit_test(a_signal_before_the_start_waits_for_the_command),
		cmocka_unit_test(what_stopped_before_the_start_does_not_stop_the_command),
		cmocka_unit_test(a_command_that_is_not_started_ends_with_its_brood),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
