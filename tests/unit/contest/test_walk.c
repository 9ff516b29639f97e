/* All orders in which claimants, operators, sweepers and removers can meet on a word, each of them
 * stopped or killed between any two steps: the protocol keeps its promises, and every way known of
 * getting it wrong is found. docs/contest-model.md says how to read what is printed. */
#include "walk.h"

#include <stdio.h>

#include "support/harness.h"
#include "support/soak.h"
#include "walk_world.h"

#define STATES_MAX 40000000

/* Two processes of two threads, which share the claim of their process. */
static const struct cast siblings = {
	.processes = 2,
	.present = 2,
	.threads = 2,
	.codes = 2,
	.subjects = 1,
	.places = 1,
	.settled = true,
	.calls = 2,
	.rival_calls = 1,
	.ttl = 1,
	.renewal = 2,
	.time = 2,
};

/* As above, where the first process can be killed, and somebody forces. */
static const struct cast orphans = {
	.processes = 2,
	.present = 2,
	.mortal = 1,
	.threads = 2,
	.codes = 2,
	.subjects = 1,
	.places = 1,
	.settled = true,
	.operators = 1,
	.calls = 1,
	.rival_calls = 1,
	.helper_calls = 1,
	.ttl = 1,
	.renewal = 2,
	.time = 2,
};

/* Two processes, and an operator who forces. */
static const struct cast rivals = {
	.processes = 2,
	.present = 2,
	.mortal = 1,
	.threads = 1,
	.codes = 2,
	.subjects = 1,
	.places = 1,
	.settled = true,
	.operators = 1,
	.calls = 3,
	.rival_calls = 2,
	.helper_calls = 1,
	.ttl = 1,
	.renewal = 2,
	.time = 3,
};

/* Three processes with two codes, so that the third gets that of a dead one. */
static const struct cast heirs = {
	.processes = 3,
	.present = 2,
	.mortal = 2,
	.threads = 1,
	.codes = 2,
	.subjects = 2,
	.places = 2,
	.settled = true,
	.sweepers = 2,
	.calls = 3,
	.rival_calls = 3,
	.helper_calls = 1,
	.time = 1,
};

/* Two subjects that have no places yet, two places, and somebody who takes them away again. */
static const struct cast movers = {
	.processes = 2,
	.present = 2,
	.mortal = 1,
	.threads = 1,
	.codes = 2,
	.subjects = 2,
	.places = 2,
	.removers = 1,
	.calls = 3,
	.rival_calls = 2,
	.helper_calls = 2,
	.time = 1,
};

static struct walk *walk_through(const char *name, const struct play *play)
{
	struct walk_model model = walk_world(play);
	struct walk *walk = walk_run(&model, STATES_MAX);
	printf("# %s: %zu states, %zu actions\n", name, walk_states(walk), walk_moves(walk));
	walk_print(walk);
	return walk;
}

static void expect_right(const char *name, const struct cast *cast, size_t states_min)
{
	struct play play = {.cast = *cast};
	struct walk *walk = walk_through(name, &play);
	bool cut = walk_was_cut(walk);
	size_t states = walk_states(walk);
	const char *wrong = walk_wrong(walk);
	walk_free(walk);
	if (wrong)
		fail_msg("%s: %s", name, wrong);
	assert_false(cut);
	assert_true(states >= states_min);
}

static void threads_share_the_claim_of_their_process(void **state)
{
	(void)state;
	struct cast cast = siblings;
	cast.time = u8(soak_scale(2, 3));
	cast.mortal = u8(soak_scale(0, 1));
	expect_right("siblings", &cast, 300000);
}

static void threads_of_a_dying_process_do_no_harm(void **state)
{
	(void)state;
	struct cast cast = orphans;
	cast.time = u8(soak_scale(2, 3));
	cast.mortal = u8(soak_scale(1, 2));
	expect_right("orphans", &cast, 100000);
}

static void rivals_hold_one_at_a_time(void **state)
{
	(void)state;
	struct cast cast = rivals;
	cast.rival_calls = u8(soak_scale(2, 3));
	cast.time = u8(soak_scale(3, 4));
	cast.mortal = u8(soak_scale(1, 2));
	expect_right("rivals", &cast, 100000);
}

static void a_renewal_never_shortens(void **state)
{
	(void)state;
	static const uint8_t spans[][2] = {{2, 1}, {1, 0}, {0, 1}};
	for (size_t i = 0; i < sizeof spans / sizeof *spans; i++) {
		struct cast cast = rivals;
		cast.operators = 0;
		cast.mortal = u8(soak_scale(0, 1));
		cast.ttl = spans[i][0];
		cast.renewal = spans[i][1];
		expect_right("short and long renewals", &cast, 1000);
	}
}

static void whoever_gets_the_code_of_a_dead_member_inherits_nothing(void **state)
{
	(void)state;
	struct cast cast = heirs;
	cast.ttl = u8(soak_scale(0, 1));
	cast.time = u8(soak_scale(1, 2));
	expect_right("heirs", &cast, 200000);
}

static void places_go_from_one_subject_to_another(void **state)
{
	(void)state;
	struct cast cast = movers;
	cast.rival_calls = u8(soak_scale(2, 3));
	cast.ttl = u8(soak_scale(0, 1));
	cast.time = u8(soak_scale(1, 2));
	expect_right("movers", &cast, 100000);
}

static void expect_wrong(const char *name, const struct cast *cast, struct rules rules,
                         const char *expected)
{
	struct play play = {.cast = *cast, .rules = rules};
	struct walk *walk = walk_through(name, &play);
	const char *wrong = walk_wrong(walk);
	walk_free(walk);
	if (!wrong)
		fail_msg("%s: nothing wrong was found", name);
	assert_string_equal(wrong, expected);
}

static void errors_of_members_are_found(void **state)
{
	(void)state;
	struct rules proof = {.reuse_without_proof = true};
	struct rules sweep = {.reuse_without_sweep = true};
	struct rules roster = {.sweep_without_lock = true};
	struct rules verdict = {.verdict_is_kept = true};
	expect_wrong("a code is reused without proof", &heirs, proof, WRONG_CODE);
	expect_wrong("a code is reused without a sweep", &heirs, sweep, WRONG_CODE);
	expect_wrong("two sweep at once", &heirs, roster, WRONG_TOUCH);
	expect_wrong("a death was seen before the word", &heirs, verdict, WRONG_TWO);
}

static void errors_of_claims_are_found(void **state)
{
	(void)state;
	struct rules who = {.take_compares_who = true};
	struct rules tenure = {.take_keeps_tenure = true};
	struct rules deadline = {.lives_at_deadline = true};
	struct rules once = {.release_tries_once = true};
	struct rules fence = {.release_skips_fence = true};
	expect_wrong("a take does not compare the deadline", &rivals, who, WRONG_TWO);
	expect_wrong("a take does not raise the tenure", &rivals, tenure, WRONG_FENCE);
	expect_wrong("a claim is live at its deadline", &rivals, deadline, WRONG_TWO);
	expect_wrong("a release tries once", &siblings, once, WRONG_LEFT);
	expect_wrong("a release does not compare the fence", &siblings, fence, WRONG_TOUCH);
}

static void errors_of_places_are_found(void **state)
{
	(void)state;
	struct cast safety = movers;
	safety.safety_only = true;
	struct rules read = {.key_read_first = true};
	struct rules written = {.key_written_last = true};
	struct rules removed = {.remove_keeps_word = true};
	struct rules floor = {.insert_skips_floor = true};
	struct rules late = {.floor_raised_last = true};
	struct rules torn = {.repair_is_skipped = true};
	expect_wrong("the key is read before the word", &movers, read, WRONG_KEY);
	expect_wrong("the key is written after the word", &movers, written, WRONG_FENCE);
	expect_wrong("a removal does not vacate", &safety, removed, WRONG_KEY);
	expect_wrong("an insertion ignores the floor", &movers, floor, WRONG_FENCE);
	expect_wrong("the floor is raised too late", &movers, late, WRONG_FENCE);
	expect_wrong("nobody repairs", &movers, torn, WRONG_FENCE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_share_the_claim_of_their_process),
		cmocka_unit_test(threads_of_a_dying_process_do_no_harm),
		cmocka_unit_test(rivals_hold_one_at_a_time),
		cmocka_unit_test(a_renewal_never_shortens),
		cmocka_unit_test(whoever_gets_the_code_of_a_dead_member_inherits_nothing),
		cmocka_unit_test(places_go_from_one_subject_to_another),
		cmocka_unit_test(errors_of_members_are_found),
		cmocka_unit_test(errors_of_claims_are_found),
		cmocka_unit_test(errors_of_places_are_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
