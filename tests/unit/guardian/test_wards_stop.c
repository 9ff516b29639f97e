/* Whoever of a runner, its guardian and a nanny is stopped, killed or held by a debugger, in
 * whatever order: of the command and of what it has started nothing lives beyond the deadline. */
#include "guardian/wards.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <baton/clock.h>

#include "base/cleanup.h"
#include "base/process.h"
#include "support/child.h"
#include "support/harness.h"
#include "support/skips.h"
#include "wards_world.h"

/* Until the deadline; longer when that was over before all had been done. */
#define FIRST_MS 100

/* More commands than can be ended in a moment. */
#define MANY 20

/* How the runner exits whose command had no time to begin. */
#define RUNNER_LATE 77

enum who {
	RUNNER = 0,
	GUARDIAN,
	NANNY,
	THREE
};

enum deed {
	STOPPED = 1,
	KILLED,
	TRACED,
	FREED /* that was traced */
};

struct step {
	enum deed deed; /* 0: there are no more */
	enum who who;
};

#define STEPS 6

struct play {
	struct step steps[STEPS];
	bool late; /* the deadline is what ends it; otherwise that is an hour away */
};

/* In the process that is the runner. */
struct part {
	const struct world *world;
	struct baton_mono deadline;
	int hold[2]; /* a pipe: one end is the test's, and only the command keeps the other */
};

static struct baton_mono now_awake(void)
{
	const struct baton_clock *clock = baton_clock_awake();
	return clock->now(clock);
}

/* Starts a command with a daemon, says who looks after it, and does nothing any more. */
static int be_runner(int channel, void *arg)
{
	const struct part *part = arg;
	struct wards_ask ask = {.life = part->world->file, .awake = true};
	char *argv[] = {(char *)"sh", (char *)"-c",
	                (char *)"trap '' TERM HUP; (setsid sh -c 'sleep 1000; :' &); "
	                        "echo $PPID >&2; sleep 1000; :",
	                NULL};
	struct ward_spec spec = spec_of(1, argv);
	struct ward_news news = {.kind = 0};
	struct wards *wards;
	char pids[64];
	spec.channel = part->hold[1];
	if (wards_open(&ask, &wards) != BATON_OK)
		return 1;
	/* As a runner does: nothing starts before there is one. */
	wards_deadline(wards, part->deadline);
	if (wards_start(wards, &spec) != BATON_OK)
		return 2;
	struct pollfd fd = {.fd = wards_fd(wards), .events = POLLIN};
	while (news.kind != WARD_SAID && news.kind != WARD_ENDED) {
		if (!wards_next(wards, &news))
			poll(&fd, 1, BOUND_MS);
	}
	if (news.kind == WARD_ENDED)
		return RUNNER_LATE;
	close(part->hold[1]);
	snprintf(pids, sizeof pids, "%d %d %.*s", (int)getpid(), (int)wards_pid(wards),
	         (int)news.text.len, news.text.ptr);
	channel_send(channel, pids);
	for (;;)
		pause();
}

/* False: this process may not trace others. */
static bool hold_by_trace(pid_t pid)
{
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0)
		return false;
	assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
	assert_int_equal(waitpid(pid, NULL, __WALL), pid);
	return true;
}

/* Waits for the death too: by then the kernel has told the children. */
static void slay(pid_t pid)
{
	AUTO(fd_closep) int pidfd = -1;
	if (!process_open(pid, &pidfd))
		return;
	struct pollfd fd = {.fd = pidfd, .events = POLLIN};
	kill(pid, SIGKILL);
	assert_int_equal(poll(&fd, 1, BOUND_MS), 1);
}

/* False: this process may not do it. */
static bool perform(const struct step *step, const pid_t *pids)
{
	switch (step->deed) {
	case STOPPED:
		kill(pids[step->who], SIGSTOP);
		return true;
	case KILLED:
		slay(pids[step->who]);
		return true;
	case TRACED:
		return hold_by_trace(pids[step->who]);
	case FREED:
		return ptrace(PTRACE_DETACH, pids[step->who], NULL, NULL) == 0;
	}
	return false;
}

/* Waits until nobody has the other end. */
static void await_nobody(int hold, const char *play)
{
	struct pollfd fd = {.fd = hold};
	if (poll(&fd, 1, BOUND_MS) != 1)
		fail_msg("%s: a process of the command lives on", play);
	assert_int_equal(fd.revents, POLLHUP);
}

static void give_up(int sig)
{
	(void)sig;
}

/* Waits until nobody has the life file. */
static void await_life(const struct world *w)
{
	const struct sigaction late = {.sa_handler = give_up};
	int fd = open(w->file, O_RDONLY | O_CLOEXEC);
	sigaction(SIGALRM, &late, NULL);
	alarm(BOUND_MS / 1000);
	int failed = flock(fd, LOCK_SH);
	alarm(0);
	close(fd);
	if (failed)
		fail_msg("guardian or nanny live on");
	unlink(w->file);
}

/* All that was left goes on and finds that the runner has gone. */
static void clear_away(const struct world *w, const struct play *play, struct child *c,
                       const pid_t *pids)
{
	kill(c->pid, SIGKILL);
	child_reap(c);
	for (size_t i = 0; i < STEPS && play->steps[i].deed; i++) {
		if (play->steps[i].deed == TRACED)
			ptrace(PTRACE_DETACH, pids[play->steps[i].who], NULL, NULL);
	}
	await_life(w);
	/* This process inherits them. */
	while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
		;
}

/* Who plays. False: there was no time to begin. */
static bool cast(const struct world *w, const struct play *play, int ms, struct part *part,
                 struct child *c, pid_t *pids)
{
	char said[64];
	*part = (struct part){.world = w};
	assert_int_equal(pipe2(part->hold, O_CLOEXEC), 0);
	part->deadline = baton_mono_add(now_awake(), play->late ? baton_duration_ms(ms)
	                                                        : baton_duration_s(HOUR));
	child_start(c, be_runner, part);
	close(part->hold[1]);
	if (!channel_receive(c->channel, said, sizeof said)) {
		close(part->hold[0]);
		assert_int_equal(child_reap(c), RUNNER_LATE);
		await_life(w);
		return false;
	}
	assert_int_equal(sscanf(said, "%d %d %d", &pids[RUNNER], &pids[GUARDIAN], &pids[NANNY]),
	                 THREE);
	return true;
}

/* True: it was played to its end, or this process may not. */
static bool try_play(const struct world *w, const struct play *play, const char *name, int ms)
{
	struct part part;
	struct child c;
	pid_t pids[THREE];
	bool may = true;
	if (!cast(w, play, ms, &part, &c, pids))
		return false;
	for (size_t i = 0; i < STEPS && play->steps[i].deed && may; i++)
		may = perform(&play->steps[i], pids);
	bool in_time = baton_mono_live(part.deadline, now_awake());
	if (may)
		await_nobody(part.hold[0], name);
	else
		print_message("%s: not played, this process may not trace others\n", name);
	close(part.hold[0]);
	clear_away(w, play, &c, pids);
	return in_time || !may;
}

static void act(void **state, const char *name, const struct play *play)
{
	int ms = FIRST_MS;
	while (!try_play(*state, play, name, ms))
		ms *= 2;
}

/* Whoever inherits them is of their session: the kernel wakes no group for having lost its last
 * relation to it. */
static int setup(void **state)
{
	return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0 ? wards_setup(state) : -1;
}

#define PLAY(name, is_late, ...)                                                    \
	static void name(void **state)                                              \
	{                                                                           \
		const struct play play = {.steps = {__VA_ARGS__}, .late = is_late}; \
		act(state, #name, &play);                                           \
	}

PLAY(a_runner_that_hangs_beside_a_stopped_guardian, true, {STOPPED, GUARDIAN})
PLAY(a_stopped_runner_then_its_guardian, true, {STOPPED, RUNNER}, {STOPPED, GUARDIAN})
PLAY(a_stopped_guardian_then_its_runner, true, {STOPPED, GUARDIAN}, {STOPPED, RUNNER})
PLAY(all_three_stopped_from_above, true, {STOPPED, RUNNER}, {STOPPED, GUARDIAN}, {STOPPED, NANNY})
PLAY(all_three_stopped_from_below, true, {STOPPED, NANNY}, {STOPPED, GUARDIAN}, {STOPPED, RUNNER})
PLAY(a_stopped_runner_and_a_guardian_in_a_debugger, true, {STOPPED, RUNNER}, {TRACED, GUARDIAN})
PLAY(a_killed_nanny_under_two_that_are_stopped, true, {STOPPED, RUNNER}, {STOPPED, GUARDIAN},
     {KILLED, NANNY})
PLAY(a_killed_guardian_beside_a_stopped_runner, false, {STOPPED, RUNNER}, {KILLED, GUARDIAN})
PLAY(a_killed_guardian_between_two_that_are_stopped, false, {STOPPED, RUNNER}, {STOPPED, NANNY},
     {KILLED, GUARDIAN})
PLAY(a_killed_guardian_over_a_stopped_nanny, false, {STOPPED, NANNY}, {KILLED, GUARDIAN})
PLAY(a_killed_runner_beside_a_stopped_guardian, false, {STOPPED, GUARDIAN}, {KILLED, RUNNER})
PLAY(a_killed_runner_over_two_that_are_stopped, false, {STOPPED, GUARDIAN}, {STOPPED, NANNY},
     {KILLED, RUNNER})
/* Held so that it cannot do anything between the death of its guardian and the stop, which takes
 * back what the kernel has sent for that death. */
PLAY(a_nanny_that_is_stopped_before_it_hears_of_two_deaths, false, {TRACED, NANNY},
     {KILLED, GUARDIAN}, {STOPPED, NANNY}, {KILLED, RUNNER}, {FREED, NANNY})

/* A guardian does not see to it that its deadline becomes an earlier one while it is stopped. */
static void a_guardian_that_is_stopped_before_it_has_a_deadline(void **state)
{
	struct world *w = *state;
	assert_int_equal(start(w->wards, 1, "echo up >&2; sleep 1000"), BATON_OK);
	await_line(w, "up");
	assert_int_equal(kill(wards_pid(w->wards), SIGSTOP), 0);
	wards_deadline(w->wards, (struct baton_mono){0});
	struct ward_news news = await_end(w);
	killed_by(&news, SIGKILL);
	/* It goes on as if nothing had been. */
	wards_deadline(w->wards, BATON_MONO_NEVER);
	news = run(w, "exit 3");
	exits_with(&news, 3);
}

/* Their commands may be dead by then; a runner that waits for the nannies lets them go on. */
static void nannies_that_are_stopped_when_they_have_heard_of_their_guardians_end(void **state)
{
	struct world *w = *state;
	const pid_t guardian = wards_pid(w->wards);
	siginfo_t info;
	for (uint64_t i = 0; i < MANY; i++) {
		assert_int_equal(start(w->wards, i, "echo up >&2; sleep 1000"), BATON_OK);
		await_kind(w, WARD_SAID);
	}
	assert_int_equal(kill(guardian, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)guardian, &info, WEXITED | WNOWAIT), 0);
	/* They are of its group, and have been told to go on. */
	assert_int_equal(kill(-guardian, SIGSTOP), 0);
	await_kind(w, WARD_GUARDIAN_LOST);
	for (int i = 0; i < MANY; i++) {
		struct ward_news news = await_end(w);
		killed_by(&news, SIGKILL);
	}
}

#define ACT(name) cmocka_unit_test_setup_teardown(name, setup, wards_teardown)

int main(void)
{
	skips_repair();
	const struct CMUnitTest tests[] = {
		ACT(a_runner_that_hangs_beside_a_stopped_guardian),
		ACT(a_stopped_runner_then_its_guardian),
		ACT(a_stopped_guardian_then_its_runner),
		ACT(all_three_stopped_from_above),
		ACT(all_three_stopped_from_below),
		ACT(a_stopped_runner_and_a_guardian_in_a_debugger),
		ACT(a_killed_nanny_under_two_that_are_stopped),
		ACT(a_killed_guardian_beside_a_stopped_runner),
		ACT(a_killed_guardian_between_two_that_are_stopped),
		ACT(a_killed_guardian_over_a_stopped_nanny),
		ACT(a_killed_runner_beside_a_stopped_guardian),
		ACT(a_killed_runner_over_two_that_are_stopped),
		ACT(a_nanny_that_is_stopped_before_it_hears_of_two_deaths),
		ACT(a_guardian_that_is_stopped_before_it_has_a_deadline),
		ACT(nannies_that_are_stopped_when_they_have_heard_of_their_guardians_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
