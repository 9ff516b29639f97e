/* A command runs while a subject is held, and ends when it no longer is. */
#include <baton/guardian.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <baton/fleet.h>

#include "scratch.h"
#include "support/child.h"
#include "support/harness.h"

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

static void who_yields_is_told_who_holds_it(void **state)
{
	struct world *w = *state;
	struct baton_fleet_options options = {.path = w->fleet, .owner = BATON_STR("holder")};
	struct baton_fleet *fleet;
	struct baton_claim claim;
	struct baton_claim_ask ask = {.subject = &w->subject};
	assert_int_equal(baton_fleet_join(&options, &fleet), BATON_OK);
	assert_int_equal(baton_claim_try(fleet, &ask, &claim, NULL), BATON_OK);
	assert_int_equal(run(w, "exit 3"), BATON_YIELD);
	assert_string_equal(w->end.holder.owner, "holder");
	assert_int_equal(w->end.holder.pid, getpid());
	w->ask.wait = baton_duration_ms(1);
	assert_int_equal(run(w, "exit 3"), BATON_TIMEOUT);
	assert_string_equal(w->end.holder.owner, "holder");
	assert_int_equal(baton_claim_release(&claim), BATON_OK);
	assert_int_equal(run(w, "exit 3"), BATON_OK);
	baton_fleet_leave(fleet);
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

static void force_ends_even_who_ignores_it(void **state)
{
	struct world *w = *state;
	struct child c;
	char message[64], expected[64];
	struct baton_fleet_options options = {.path = w->fleet, .owner = BATON_STR("operator")};
	struct baton_fleet *fleet;
	struct baton_claim_holder holder;
	start_and_wait(w, &c);
	assert_int_equal(baton_fleet_join(&options, &fleet), BATON_OK);
	assert_int_equal(baton_claim_force(fleet, &w->subject, &holder), BATON_OK);
	assert_string_equal(holder.owner, "test");
	assert_true(channel_receive(c.channel, message, sizeof message));
	snprintf(expected, sizeof expected, "BATON_OK %d 0", (int)BATON_GUARDIAN_LOST);
	assert_string_equal(message, expected);
	assert_int_equal(child_reap(&c), 0);
	/* Nothing of it lives: its latch can be had. */
	assert_int_equal(run(w, "exit 3"), BATON_OK);
	baton_fleet_leave(fleet);
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

int main(void)
{
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
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
