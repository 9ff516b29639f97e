/* A command runs while a subject is held, and ends when it no longer is. */
#include <baton/guardian.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <baton/clock.h>
#include <baton/fleet.h>
#include <baton/watch.h>

#include "scratch.h"
#include "support/child.h"
#include "support/harness.h"
#include "support/skips.h"

struct world {
	char folder[64];
	char fleet[96];
	struct baton_subject subject;
	char *argv[4];
	struct baton_guardian_ask ask;
	struct baton_guardian_end end;
};

static int setup(void **state)
{
	static char shell[] = "sh", option[] = "-c";
	struct world *w = calloc(1, sizeof *w);
	if (!w)
		return -1;
	strcpy(w->folder, "/tmp/baton-guardian-XXXXXX");
	if (!mkdtemp(w->folder))
		return -1;
	snprintf(w->fleet, sizeof w->fleet, "%s/fleet", w->folder);
	w->subject = (struct baton_subject)BATON_SUBJECT("lock", "x");
	w->argv[0] = shell;
	w->argv[1] = option;
	w->ask = (struct baton_guardian_ask){
		.fleet = w->fleet,
		.owner = BATON_STR("test"),
		.subject = &w->subject,
		.grace = baton_duration_ms(20),
		.argv = w->argv,
	};
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	int failed = scratch_remove(w->folder);
	free(w);
	return failed;
}

static enum baton_err run(struct world *w, const char *script)
{
	w->argv[2] = (char *)script;
	w->end = (struct baton_guardian_end){.code = -1};
	return baton_guardian_run(&w->ask, &w->end);
}

static void note_fence(baton_fence fence, void *arg)
{
	*(uint64_t *)arg = fence.v;
}

static void the_caller_is_told_fence_and_status(void **state)
{
	struct world *w = *state;
	uint64_t fence = 0;
	w->ask.held = note_fence;
	w->ask.arg = &fence;
	assert_int_equal(run(w, "exit $((BATON_FENCE % 100))"), BATON_OK);
	assert_int_equal(w->end.how, BATON_GUARDIAN_EXITED);
	assert_true(fence > 0);
	assert_int_equal(w->end.code, fence % 100);
	assert_int_equal(w->end.guardian, 0);
	assert_int_equal(run(w, "kill -USR1 $$"), BATON_OK);
	assert_int_equal(w->end.how, BATON_GUARDIAN_SIGNALED);
	assert_int_equal(w->end.code, SIGUSR1);
	w->argv[0] = w->fleet;
	assert_int_equal(run(w, ""), BATON_OK);
	assert_int_equal(w->end.how, BATON_GUARDIAN_UNSTARTED);
	assert_int_equal(w->end.code, EACCES);
}

static void nothing_of_it_is_left_in_the_caller(void **state)
{
	struct world *w = *state;
	sigset_t before, after;
	struct sigaction ignore = {.sa_handler = SIG_IGN}, chld, old;
	sigemptyset(&before);
	sigaddset(&before, SIGUSR2);
	sigprocmask(SIG_SETMASK, &before, NULL);
	sigaction(SIGCHLD, &ignore, &old);
	int fd = dup(0);
	close(fd);
	assert_int_equal(run(w, "exit 3"), BATON_OK);
	assert_int_equal(w->end.code, 3);
	sigprocmask(SIG_SETMASK, NULL, &after);
	assert_memory_equal(&before, &after, sizeof(long));
	sigaction(SIGCHLD, &old, &chld);
	assert_ptr_equal(chld.sa_handler, SIG_IGN);
	int again = dup(0);
	assert_int_equal(fd, again);
	close(again);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	sigemptyset(&before);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

static void what_cannot_be_asked_is_refused_before_anything_begins(void **state)
{
	struct world *w = *state;
	static const struct baton_subject bad[] = {
		BATON_SUBJECT("", "x"), BATON_SUBJECT("lock", ""), BATON_SUBJECT("lo\0k", "x"),
		BATON_SUBJECT("lock", "x\0"),
		BATON_SUBJECT("0123456789012345678901234567890X", "x")};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		w->subject = bad[i];
		assert_int_equal(run(w, "exit 3"), BATON_INVALID);
		assert_int_equal(w->end.code, -1);
		assert_true(strlen(baton_err_detail()) > 0);
	}
	w->subject = (struct baton_subject)BATON_SUBJECT("lock", "x");
	char *none[] = {NULL};
	w->ask.argv = none;
	assert_int_equal(run(w, ""), BATON_INVALID);
	w->ask.argv = NULL;
	assert_int_equal(run(w, ""), BATON_INVALID);
}

static void an_error_of_the_guardian_is_the_callers(void **state)
{
	struct world *w = *state;
	char missing[128];
	snprintf(missing, sizeof missing, "%s/no/fleet", w->folder);
	w->ask.fleet = missing;
	assert_int_equal(run(w, "exit 3"), BATON_SYSTEM);
	assert_int_equal(errno, ENOENT);
	assert_non_null(strstr(baton_err_detail(), "/no"));
	assert_int_equal(w->end.code, -1);
}

/* The test itself joins no fleet: who runs a guardian has one thread. */
static int hold_until_told(int channel, void *arg)
{
	struct world *w = arg;
	char message[8];
	struct baton_fleet_options options = {.path = w->fleet, .owner = BATON_STR("holder")};
	struct baton_fleet *fleet;
	struct baton_claim claim;
	struct baton_claim_ask ask = {.subject = &w->subject};
	if (baton_fleet_join(&options, &fleet) != BATON_OK ||
	    baton_claim_try(fleet, &ask, &claim, NULL) != BATON_OK)
		return 1;
	channel_send(channel, "held");
	channel_receive(channel, message, sizeof message);
	baton_fleet_leave(fleet);
	return 0;
}

static void who_yields_is_told_who_holds_it(void **state)
{
	struct world *w = *state;
	struct child holder;
	char message[8];
	child_start(&holder, hold_until_told, w);
	assert_true(channel_receive(holder.channel, message, sizeof message));
	assert_int_equal(run(w, "exit 3"), BATON_YIELD);
	assert_string_equal(w->end.holder.owner, "holder");
	assert_int_equal(w->end.holder.pid, holder.pid);
	w->ask.wait = baton_duration_ms(1);
	assert_int_equal(run(w, "exit 3"), BATON_TIMEOUT);
	assert_string_equal(w->end.holder.owner, "holder");
	child_hang_up(&holder);
	assert_int_equal(child_reap(&holder), 0);
	assert_int_equal(run(w, "exit 3"), BATON_OK);
}

/* Says when the command runs, and how the run ended. */
static int run_and_report(int channel, void *arg)
{
	struct world *w = arg;
	char script[256], message[64];
	snprintf(script, sizeof script,
	         "trap '' TERM; (setsid sh -c 'sleep 1000; :' &) ; echo > %s/runs; sleep 1000; :",
	         w->folder);
	enum baton_err e = run(w, script);
	snprintf(message, sizeof message, "%s %d %d", baton_err_name(e), (int)w->end.how,
	         w->end.code);
	channel_send(channel, message);
	return 0;
}

/* Starts it in a child with a fifo by which the command says that it runs. */
static void start_and_wait(struct world *w, struct child *c)
{
	char fifo[96], byte;
	snprintf(fifo, sizeof fifo, "%s/runs", w->folder);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	child_start(c, run_and_report, w);
	int fd = open(fifo, O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, &byte, 1), 1);
	close(fd);
}

static int force(int channel, void *arg)
{
	struct world *w = arg;
	struct baton_fleet_options options = {.path = w->fleet, .owner = BATON_STR("operator")};
	struct baton_fleet *fleet;
	struct baton_claim_holder holder;
	(void)channel;
	if (baton_fleet_join(&options, &fleet) != BATON_OK ||
	    baton_claim_force(fleet, &w->subject, &holder) != BATON_OK)
		return 1;
	baton_fleet_leave(fleet);
	return strcmp(holder.owner, "test") == 0 ? 0 : 2;
}

static void force_ends_even_who_ignores_it(void **state)
{
	struct world *w = *state;
	struct child c, operator;
	char message[64], expected[64];
	start_and_wait(w, &c);
	child_start(&operator, force, w);
	assert_int_equal(child_reap(&operator), 0);
	assert_true(channel_receive(c.channel, message, sizeof message));
	snprintf(expected, sizeof expected, "BATON_OK %d 0", (int)BATON_GUARDIAN_LOST);
	assert_string_equal(message, expected);
	assert_int_equal(child_reap(&c), 0);
	/* Nothing of it lives: its latch can be had. */
	assert_int_equal(run(w, "exit 3"), BATON_OK);
}

static void a_killed_caller_ends_even_who_ignores_it(void **state)
{
	struct world *w = *state;
	struct child c;
	start_and_wait(w, &c);
	kill(c.pid, SIGKILL);
	assert_int_equal(child_reap(&c), 128 + SIGKILL);
	w->ask.wait = baton_duration_s(60);
	assert_int_equal(run(w, "exit 3"), BATON_OK);
	assert_int_equal(w->end.code, 3);
}

static void what_keeps_the_subject_is_a_child_of_the_caller(void **state)
{
	struct world *w = *state;
	int status;
	w->ask.at_least = baton_duration_s(1000);
	assert_int_equal(run(w, "exit 3"), BATON_OK);
	assert_int_equal(w->end.code, 3);
	assert_true(w->end.guardian > 0);
	pid_t guardian = w->end.guardian;
	assert_int_equal(run(w, "exit 3"), BATON_YIELD);
	assert_int_equal(w->end.holder.pid, guardian);
	kill(guardian, SIGTERM);
	assert_int_equal(waitpid(guardian, &status, 0), guardian);
	assert_int_equal(status, 0);
	w->ask.at_least = baton_duration_ms(0);
	assert_int_equal(run(w, "exit 3"), BATON_OK);
	assert_int_equal(w->end.guardian, 0);
}

/* Returns once somebody waits in line, or the test has gone. */
static void await_waiter(const struct world *w, int channel)
{
	const struct baton_clock *clock = baton_clock_boot();
	struct baton_watch *watch;
	struct baton_fleet_usage usage = {.waiters = 0};
	struct pollfd gone = {.fd = channel, .events = POLLIN};
	if (baton_watch_open(w->fleet, &watch) != BATON_OK)
		return;
	while (usage.waiters == 0 && poll(&gone, 1, 1) == 0)
		baton_watch_usage(watch, clock->now(clock), &usage);
	baton_watch_close(watch);
}

/* Waits for the subject, says so, and holds it until somebody else waits. While it does, there is a
 * file. */
static int hold_until_wanted(int channel, void *arg)
{
	struct world *w = arg;
	char file[96];
	snprintf(file, sizeof file, "%s/others", w->folder);
	struct baton_fleet_options options = {.path = w->fleet, .owner = BATON_STR("other")};
	struct baton_fleet *fleet;
	struct baton_claim claim;
	const struct baton_clock *clock = baton_clock_boot();
	struct baton_claim_ask ask = {
		.subject = &w->subject,
		.until = baton_mono_add(clock->now(clock), baton_duration_s(60)),
	};
	if (baton_fleet_join(&options, &fleet) != BATON_OK ||
	    baton_claim_wait(fleet, &ask, &claim, NULL) != BATON_OK)
		return 1;
	close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	channel_send(channel, "held");
	await_waiter(w, channel);
	unlink(file);
	baton_fleet_leave(fleet);
	return 0;
}

/* Answers an offer only when somebody else holds the subject. */
struct late {
	struct world *world;
	struct child other;
	unsigned offers;
	uint64_t fences[2];
};

static void answer_late(baton_fence fence, void *arg)
{
	struct late *late = arg;
	char message[8];
	if (late->offers < 2)
		late->fences[late->offers] = fence.v;
	if (late->offers++ > 0)
		return;
	child_start(&late->other, hold_until_wanted, late->world);
	channel_receive(late->other.channel, message, sizeof message);
}

static void an_answer_that_comes_too_late_starts_nothing_and_the_wait_goes_on(void **state)
{
	struct world *w = *state;
	char script[160];
	struct late late = {.world = w};
	w->ask.held = answer_late;
	w->ask.arg = &late;
	w->ask.wait = baton_duration_s(60);
	snprintf(script, sizeof script, "[ ! -e %s/others ] && exit $((BATON_FENCE %% 100))",
	         w->folder);
	assert_int_equal(run(w, script), BATON_OK);
	child_hang_up(&late.other);
	assert_int_equal(child_reap(&late.other), 0);
	assert_int_equal(w->end.how, BATON_GUARDIAN_EXITED);
	assert_int_equal(late.offers, 2);
	assert_true(late.fences[0] < late.fences[1]);
	assert_int_equal(w->end.code, late.fences[1] % 100);
}

static void who_answers_too_late_and_does_not_wait_yields(void **state)
{
	struct world *w = *state;
	struct late late = {.world = w};
	w->ask.held = answer_late;
	w->ask.arg = &late;
	assert_int_equal(run(w, "exit 3"), BATON_YIELD);
	assert_string_equal(w->end.holder.owner, "other");
	assert_int_equal(late.offers, 1);
	child_hang_up(&late.other);
	assert_int_equal(child_reap(&late.other), 0);
}

/* Types an interrupt at the terminal, and returns when it has come to this process. */
static void type_interrupt(baton_fence fence, void *arg)
{
	sigset_t pending;
	(void)fence;
	if (write(*(int *)arg, "\003", 1) != 1)
		_exit(2);
	do
		sigpending(&pending);
	while (!sigismember(&pending, SIGINT));
}

/* Runs as the leader of a session on a terminal. */
static int run_at_a_terminal(int channel, void *arg)
{
	struct world *w = arg;
	int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	(void)channel;
	if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0 || setsid() < 0 ||
	    open(ptsname(terminal), O_RDWR | O_CLOEXEC) < 0)
		return CHILD_SKIP;
	signal(SIGINT, SIG_DFL);
	w->ask.held = type_interrupt;
	w->ask.arg = &terminal;
	if (run(w, "exit 3") != BATON_OK)
		return 1;
	return w->end.how == BATON_GUARDIAN_INTERRUPTED && w->end.code == SIGINT ? 0 : 3;
}

static void an_interrupt_that_is_typed_when_the_command_could_start_is_not_lost(void **state)
{
	struct world *w = *state;
	struct child c;
	child_start(&c, run_at_a_terminal, w);
	int status = child_reap(&c);
	if (status == CHILD_SKIP)
		skip();
	assert_int_equal(status, 0);
	w->ask.wait = baton_duration_s(60);
	assert_int_equal(run(w, "exit 3"), BATON_OK);
}

int main(void)
{
	skips_repair();
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(the_caller_is_told_fence_and_status),
		TEST(nothing_of_it_is_left_in_the_caller),
		TEST(what_cannot_be_asked_is_refused_before_anything_begins),
		TEST(an_error_of_the_guardian_is_the_callers),
		TEST(who_yields_is_told_who_holds_it),
		TEST(force_ends_even_who_ignores_it),
		TEST(a_killed_caller_ends_even_who_ignores_it),
		TEST(what_keeps_the_subject_is_a_child_of_the_caller),
		TEST(an_answer_that_comes_too_late_starts_nothing_and_the_wait_goes_on),
		TEST(who_answers_too_late_and_does_not_wait_yields),
		TEST(an_interrupt_that_is_typed_when_the_command_could_start_is_not_lost),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
