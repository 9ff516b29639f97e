/* Two threads of a process are at two steps when it is killed; and a thread goes on for a while
 * after the keeper of its process has died. */
#include <stdio.h>
#include <string.h>

#include "contest/roster.h"
#include "crew.h"
#include "support/harness.h"
#include "support/rng.h"
#include "support/soak.h"
#include "table.h"

/* Label 0 is the victim's, 1 and 2 are c's, 4 is a dead member's, 3 and 5 to 7 are free. */
static const char prelude[] =
	"v join; c join; p join; v try 0; c try 1; c try 2; a try 3; p try 4; a try 5; a try 6;"
	"a try 7; a release 3; a release 5; a release 6; a release 7; p kill";

static const char *const ops[] = {
	"try 8", "try 3", "try 4", "release 0", "renew 0", "force 2", "wait 1 60000", "join2",
};
#define OPS (sizeof ops / sizeof *ops)

/* A step of an op. */
struct stop {
	const char *op;
	enum step step;
};

static struct stop stops[OPS * STEP_COUNT];
static size_t stop_count;

static void crew_prepare(struct crew *c, const char *about)
{
	crew_begin(c);
	snprintf(c->about, sizeof c->about, "%s", about);
	assert_null(crew_play(c, prelude));
}

/* What the thread says next, apart from that it waits in line: then what it waits for is given
 * back. */
static enum heard hear(struct crew *c, char name, struct answer *ret)
{
	int thread = name == 'w' ? 1 : 0;
	enum heard heard = agent_hear(crew_agent(c, name), thread, ret);
	if (heard != HEARD_IN_LINE)
		return heard;
	crew_do(c, 'c', "release 1");
	return agent_hear(crew_agent(c, name), thread, ret);
}

/* Makes the thread do it until it is at the step. False: it is through, because the other one has
 * something that it needs. */
static bool trap(struct crew *c, char name, struct stop stop)
{
	struct answer answer;
	crew_do(c, name, "trap %u 1", (unsigned)stop.step);
	agent_tell(crew_agent(c, name), name == 'w' ? 1 : 0, stop.op);
	return hear(c, name, &answer) == HEARD_STOPPED;
}

static void stops_add(const char *op, const char *visits)
{
	for (unsigned step = 0; step < STEP_COUNT; step++) {
		unsigned count;
		int used;
		assert_int_equal(sscanf(visits, "%u%n", &count, &used), 1);
		visits += used;
		if (count > 0)
			stops[stop_count++] = (struct stop){op, (enum step)step};
	}
}

static void every_op_has_steps(void **state)
{
	(void)state;
	for (size_t i = 0; i < OPS; i++) {
		struct crew c;
		struct answer answer;
		size_t before = stop_count;
		crew_prepare(&c, ops[i]);
		crew_do(&c, 'v', "trap 0 0");
		agent_tell(crew_agent(&c, 'v'), 0, ops[i]);
		assert_int_equal(hear(&c, 'v', &answer), HEARD_ANSWER);
		assert_int_equal(answer.err, BATON_OK);
		stops_add(ops[i], crew_do(&c, 'v', "visits").text);
		assert_true(stop_count > before);
		crew_end(&c);
	}
}

static void kill_at_two(struct stop first, struct stop second)
{
	struct crew c;
	char about[sizeof c.about];
	snprintf(about, sizeof about, "%s at %s and %s at %s", first.op, step_name(first.step),
	         second.op, step_name(second.step));
	crew_prepare(&c, about);
	if (!trap(&c, 'v', first))
		fail_msg("%s: the first was not reached", about);
	(void)trap(&c, 'w', second);
	crew_look(&c);
	crew_kill(&c, 'v');
	crew_check_dead(&c);
	crew_end(&c);
}

static void whoever_is_killed_at_two_steps_leaves_nothing_behind(void **state)
{
	(void)state;
	struct rng rng = rng_seed_from_env();
	size_t pairs = stop_count * stop_count;
	if (pairs == 0) {
		fail_msg("there are no steps");
		return;
	}
	size_t count = soak_scale(60, (unsigned)pairs);
	for (size_t i = 0; i < count; i++) {
		size_t pair = count == pairs ? i : rng_below(&rng, pairs);
		kill_at_two(stops[pair / stop_count], stops[pair % stop_count]);
	}
}

/* The victim's place among the members. */
static struct member *place_of(struct crew *c)
{
	struct member_facts facts;
	for (uint32_t code = 1; code <= MEMBERS; code++) {
		if (roster_facts(&c->view, code, &facts) &&
		    facts.owner.pid == crew_agent(c, 'v')->child.pid)
			return view_member(&c->view, code);
	}
	fail_msg("%s: nobody has the victim's place", c->about);
	return NULL;
}

/* Whatever the victim got or kept, others can have it, and then it knows that it has not. */
static void all_can_be_had(struct crew *c)
{
	for (unsigned i = 0; i < LABELS; i++) {
		bool others = crew_do(c, 'c', "check %u", i).err == BATON_OK;
		struct answer answer = crew_do(c, 'a', "try %u", i);
		if (answer.err != (others ? BATON_YIELD : BATON_OK))
			fail_msg("%s: label %u: %s %s", c->about, i, baton_err_name(answer.err),
			         answer.text);
		if (others)
			continue;
		if (crew_do(c, 'v', "check %u", i).err != BATON_NOT_HELD)
			fail_msg("%s: label %u has two holders", c->about, i);
		assert_int_equal(crew_do(c, 'a', "release %u", i).err, BATON_OK);
	}
}

static void outlive_keeper_at(struct stop stop)
{
	struct crew c;
	struct answer answer;
	char about[sizeof c.about];
	snprintf(about, sizeof about, "%s at %s without a keeper", stop.op, step_name(stop.step));
	crew_prepare(&c, about);
	struct member *place = place_of(&c);
	if (!trap(&c, 'v', stop))
		fail_msg("%s: it was not reached", about);
	crew_look(&c);
	atomic_store(&place->life, 0);
	crew_check_stopped(&c);
	if (place_of(&c) != place)
		fail_msg("%s: its place was given away", about);
	agent_go_on(crew_agent(&c, 'v'), 0);
	assert_int_equal(hear(&c, 'v', &answer), HEARD_ANSWER);
	all_can_be_had(&c);
	table_check(&c.view);
	crew_kill(&c, 'v');
	crew_check_dead(&c);
	crew_end(&c);
}

static void whoever_outlives_its_keeper_does_no_harm(void **state)
{
	(void)state;
	assert_true(stop_count > 0);
	for (size_t i = 0; i < stop_count; i++)
		outlive_keeper_at(stops[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_op_has_steps),
		cmocka_unit_test(whoever_is_killed_at_two_steps_leaves_nothing_behind),
		cmocka_unit_test(whoever_outlives_its_keeper_does_no_harm),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
