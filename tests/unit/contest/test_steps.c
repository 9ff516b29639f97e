/* A process is killed, or stopped, at every step of everything that it can do, and the others go
 * on. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "crew.h"
#include "support/harness.h"
#include "support/soak.h"
#include "table.h"

/* What the victim does, with what the others do before and meanwhile. */
struct scenario {
	const char *name, *script;
};

static const struct scenario scenarios[] = {
	{"a new subject is claimed, renewed and released",
         "v join; v try 0 1000000; v renew 0; v release 0; v try 1; v try 2; v leave"},
	{"a known subject is claimed",
         "a try 0; a release 0; v join; v try 0; v release 0; v try 0; v release 0; v leave"},
	{"free subjects are evicted",
         "a try 0; a try 1; a try 2; a try 3; a try 4; a try 5; a try 6; a try 7;"
         "a release 0; a release 1; a release 2; a release 3; a release 5;"
         /* Its fence shall be above what the other places have. */
         "a try 0; a release 0; a try 0; a release 0; a try 0; a release 0; a try 0; a release 0;"
         "v join; v try 8; v try 9; v try 10; v leave; a release 4; a release 6; a release 7"},
	{"a dead member's subjects are evicted",
         "p join; p try 0; p try 1; p try 2; p try 3; p try 4; p try 5; p try 6; p try 7;"
         "v join; p kill; v try 8; v try 9; v leave"},
	{"a dead member is swept out",
         "p join; p try 0; p try 1; p try 2; c join; c try 3; p wait 3 60000 &; p kill;"
         "v join; v leave"},
	{"a subject is forced from its holder", "c join; c try 0; v join; v force 0; v leave"},
	{"a subject is forced while others wait for it",
         "c join; d join; c try 0; d wait 0 60000 &; v join; v force 0; d .; v leave"},
	{"somebody waits and gets it",
         "c join; c try 0; v join; v wait 0 60000 &; c release 0; v .; v release 0; v leave"},
	{"somebody waits in vain", "c join; c try 0; v join; v wait 0 1 = TIMEOUT; v leave"},
	{"somebody waits between others",
         "c join; d join; p join; v join; c try 0; d wait 0 60000 &; v wait 0 60000 &;"
         "p wait 0 60000 &; c release 0; d .; d release 0; v .; v release 0; p .; v leave"},
	{"somebody comes after one who died in line",
         "c join; p join; v join; c try 0; p wait 0 60000 &; p kill; v wait 0 60000 &;"
         "c release 0; v .; v leave"},
	{"a claim has expired", "c join; c try 0 3600000; v join; v steal 0; v release 0; v leave"},
	{"a holder has died",
         "p join; p try 0; p try 1; v join; p kill; v try 0; v try 1; v leave"},
};
#define SCENARIOS (sizeof scenarios / sizeof *scenarios)
#define VISITS_MAX 3

/* How often each scenario comes to each step. */
static unsigned visits[SCENARIOS][STEP_COUNT];

static void visits_read(const char *text, unsigned counts[STEP_COUNT])
{
	int used = 0;
	for (unsigned i = 0; i < STEP_COUNT; i++, text += used)
		assert_int_equal(sscanf(text, "%u%n", &counts[i], &used), 1);
}

static void every_scenario_ends_well_and_every_step_is_reached(void **state)
{
	(void)state;
	unsigned reached[STEP_COUNT] = {0};
	for (size_t s = 0; s < SCENARIOS; s++) {
		struct crew c;
		crew_begin(&c);
		snprintf(c.about, sizeof c.about, "%s", scenarios[s].name);
		assert_null(crew_play(&c, scenarios[s].script));
		visits_read(crew_do(&c, 'v', "visits").text, visits[s]);
		crew_kill(&c, 'v');
		crew_check_dead(&c);
		crew_end(&c);
		for (unsigned i = 0; i < STEP_COUNT; i++)
			reached[i] += visits[s][i];
	}
	for (unsigned i = 0; i < STEP_COUNT; i++) {
		if (reached[i] == 0)
			fail_msg("no scenario comes to %s", step_name((enum step)i));
	}
}

/* Plays the scenario up to the n-th visit of the step. False: it was not reached, as may happen to
 * visits that depend on who is faster. */
static bool crew_trap(struct crew *c, size_t s, enum step step, unsigned nth, const char **ret_rest)
{
	crew_begin(c);
	snprintf(c->about, sizeof c->about, "%s, %s %u", scenarios[s].name, step_name(step), nth);
	assert_int_equal(crew_do(c, 'v', "trap %u %u", (unsigned)step, nth).err, BATON_OK);
	*ret_rest = crew_play(c, scenarios[s].script);
	if (*ret_rest == NULL && nth == 1)
		fail_msg("%s: it was not reached", c->about);
	return *ret_rest != NULL;
}

static void kill_at(size_t s, enum step step, unsigned nth)
{
	struct crew c;
	const char *rest;
	crew_trap(&c, s, step, nth, &rest);
	crew_look(&c);
	crew_kill(&c, 'v');
	crew_check_dead(&c);
	crew_end(&c);
}

static void victim_signal(struct crew *c, int signal, int state)
{
	siginfo_t info;
	pid_t pid = crew_agent(c, 'v')->child.pid;
	assert_int_equal(kill(pid, signal), 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, state), 0);
}

static void stop_at(size_t s, enum step step, unsigned nth)
{
	struct crew c;
	const char *rest;
	if (crew_trap(&c, s, step, nth, &rest)) {
		victim_signal(&c, SIGSTOP, WSTOPPED);
		crew_check_stopped(&c);
		victim_signal(&c, SIGCONT, WCONTINUED);
		crew_resume(&c, rest);
	}
	crew_look(&c);
	crew_kill(&c, 'v');
	crew_check_dead(&c);
	crew_end(&c);
}

static void for_every_visit(void (*at)(size_t s, enum step step, unsigned nth))
{
	unsigned most = soak_scale(VISITS_MAX, 8), count = 0;
	for (size_t s = 0; s < SCENARIOS; s++) {
		for (unsigned step = 0; step < STEP_COUNT; step++) {
			for (unsigned n = 1; n <= most && n <= visits[s][step]; n++, count++)
				at(s, (enum step)step, n);
		}
	}
	assert_true(count > 0);
	print_message("# %u visits\n", count);
}

static void whoever_is_killed_at_any_step_leaves_nothing_behind(void **state)
{
	(void)state;
	for_every_visit(kill_at);
}

static void whoever_is_stopped_at_any_step_keeps_nobody_waiting(void **state)
{
	(void)state;
	for_every_visit(stop_at);
}

static void whoever_is_stopped_in_line_is_passed(void **state)
{
	(void)state;
	struct crew c;
	crew_begin(&c);
	assert_int_equal(crew_do(&c, 'v', "trap %u 1", (unsigned)STEP_LINE_WAITING).err, BATON_OK);
	assert_non_null(crew_play(&c, "c join; d join; c try 0; v join; v wait 0 60000 &"));
	victim_signal(&c, SIGSTOP, WSTOPPED);
	assert_null(crew_play(&c, "d wait 0 60000 &; c release 0; d .; d release 0"));
	victim_signal(&c, SIGCONT, WCONTINUED);
	crew_resume(&c, "v wait 0 60000");
	crew_kill(&c, 'v');
	crew_check_dead(&c);
	crew_end(&c);
}

/* Makes the agent do it until it stands at the step for the n-th time. */
static void trap_at(struct crew *c, char name, enum step step, unsigned nth, const char *command)
{
	struct answer answer;
	assert_int_equal(crew_do(c, name, "trap %u %u", (unsigned)step, nth).err, BATON_OK);
	agent_tell(crew_agent(c, name), 0, command);
	enum heard heard = agent_hear(crew_agent(c, name), 0, &answer);
	if (heard == HEARD_IN_LINE)
		heard = agent_hear(crew_agent(c, name), 0, &answer);
	if (heard != HEARD_STOPPED)
		fail_msg("%s: %c does not come to %s", c->about, name, step_name(step));
}

static enum baton_err go_on(struct crew *c, char name)
{
	struct answer answer;
	agent_go_on(crew_agent(c, name), 0);
	enum heard heard = agent_hear(crew_agent(c, name), 0, &answer);
	if (heard == HEARD_IN_LINE)
		heard = agent_hear(crew_agent(c, name), 0, &answer);
	assert_int_equal(heard, HEARD_ANSWER);
	return answer.err;
}

/* Who could not lock the line when he left it stands there until somebody else takes him out, and
 * that one is killed while he does. The others keep their order. */
static void whoever_is_killed_while_he_takes_out_another_leaves_the_line_in_order(void **state)
{
	(void)state;
	struct crew c;
	crew_begin(&c);
	snprintf(c.about, sizeof c.about, "taking out one who has left");
	assert_null(crew_play(&c, "c join; d join; p join; v join; c try 0"));
	trap_at(&c, 'd', STEP_LINE_WAITING, 1, "wait 0 1");
	assert_null(crew_play(&c, "p wait 0 60000 &; a wait 0 60000 &"));
	trap_at(&c, 'c', STEP_SETTLE_LOCKED, 1, "try 1");
	assert_int_equal(go_on(&c, 'd'), BATON_TIMEOUT);
	assert_int_equal(go_on(&c, 'c'), BATON_OK);
	assert_int_equal(table_waiters(&c.view), 3);
	trap_at(&c, 'v', STEP_LINE_UNLINKED, 1, "wait 0 60000");
	crew_look(&c);
	crew_kill(&c, 'v');
	/* Whoever locks the line next repairs it. */
	assert_null(crew_play(&c, "d wait 0 1 = TIMEOUT"));
	assert_int_equal(table_waiters(&c.view), 3);
	crew_check_dead(&c);
	crew_end(&c);
}

/* The place of the victim's label 0 is given to another while it is looked at for the n-th time: at
 * first in the hope that nothing more is needed. */
static void steal_place(const char *ask, unsigned nth)
{
	struct crew c;
	crew_begin(&c);
	snprintf(c.about, sizeof c.about, "%s of what is elsewhere by now", ask);
	assert_null(crew_play(&c, "v join; v try 0; v release 0"));
	trap_at(&c, 'v', STEP_PLACE_SEEN, nth, ask);
	assert_null(crew_play(&c, "a try 1; a try 2; a try 3; a try 4; a try 5; a try 6; a try 7;"
	                          "a try 8; a release 1; a release 2; a release 3; a release 4;"
	                          "a release 5; a release 6; a release 7; a release 8"));
	assert_int_equal(go_on(&c, 'v'), BATON_OK);
	assert_null(crew_play(&c, "v check 0; a try 0 = YIELD; v release 0"));
	crew_kill(&c, 'v');
	crew_check_dead(&c);
	crew_end(&c);
}

static void whoever_saw_a_place_that_got_another_subject_looks_again(void **state)
{
	(void)state;
	steal_place("try 0", 1);
	steal_place("try 0 1000000", 2);
}

static void whoever_died_in_line_is_passed_at_once(void **state)
{
	(void)state;
	struct crew c;
	crew_begin(&c);
	assert_null(crew_play(&c, "c join; c try 0; v join; v wait 0 60000 &; v kill;"
	                          "c release 0; a try 0; a release 0"));
	crew_check_dead(&c);
	crew_end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_scenario_ends_well_and_every_step_is_reached),
		cmocka_unit_test(whoever_is_killed_at_any_step_leaves_nothing_behind),
		cmocka_unit_test(whoever_is_stopped_at_any_step_keeps_nobody_waiting),
		cmocka_unit_test(whoever_is_stopped_in_line_is_passed),
		cmocka_unit_test(whoever_died_in_line_is_passed_at_once),
		cmocka_unit_test(
			whoever_is_killed_while_he_takes_out_another_leaves_the_line_in_order),
		cmocka_unit_test(whoever_saw_a_place_that_got_another_subject_looks_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
