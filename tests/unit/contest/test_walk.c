/* All orders in which claimants, operators, sweepers and removers can meet on a word, each of them
 * stopped or killed between any two steps: the protocol keeps its promises, and every way known to
 * us of getting it wrong is found out. */
#include <stdio.h>
#include <string.h>

#include "support/harness.h"
#include "support/soak.h"
#include "walk.h"
#include "walk_world.h"

#define STATES_MAX 8000000

/* Two processes of two threads, which share the claim of their process. */
static const struct cast siblings = {
	.processes = 2,
	.present = 2,
	.mortal = 1,
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

/* Two processes and an operator who forces. */
static const struct cast rivals = {
	.processes = 2,
	.present = 2,
	.mortal = 2,
	.threads = 1,
	.codes = 2,
	.subjects = 1,
	.places = 1,
	.settled = true,
	.operators = 1,
	.calls = 3,
	.rival_calls = 3,
	.helper_calls = 1,
	.ttl = 1,
	.renewal = 2,
	.time = 4,
};

/* Three processes with two codes, so that the third gets that of a dead one. */
static const struct cast heirs = {
	.processes = 3,
	.present = 2,
	.mortal = 2,
	.threads = 1,
	.codes = 2,
	.subjects = 1,
	.places = 1,
	.settled = true,
	.sweepers = 2,
	.calls = 2,
	.rival_calls = 2,
	.helper_calls = 1,
	.time = 1,
};

/* Two subjects, two places, and somebody who takes them away. */
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
	.rival_calls = 3,
	.helper_calls = 2,
	.time = 1,
};

static struct walk *walk_through(const char *name, const struct play *play)
{
	struct walk_model model = walk_world(play);
	struct walk *walk = walk_run(&model, STATES_MAX);
	printf("# %s: %zu states, %zu moves\n", name, walk_states(walk), walk_moves(walk));
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
	assert_null(wrong);
	assert_false(cut);
	assert_true(states >= states_min);
}

static void siblings_share_a_claim(void **state)
{
	(void)state;
	struct cast cast = siblings;
	cast.mortal = u8(soak_scale(1, 2));
	expect_right("siblings", &cast, 1000);
}

static void rivals_hold_one_at_a_time(void **state)
{
	(void)state;
	struct cast cast = rivals;
	cast.calls = u8(soak_scale(3, 4));
	expect_right("rivals", &cast, 1000);
}

static void heirs_of_a_code_inherit_nothing(void **state)
{
	(void)state;
	struct cast cast = heirs;
	cast.calls = u8(soak_scale(2, 3));
	expect_right("heirs", &cast, 1000);
}

static void places_move_between_subjects(void **state)
{
	(void)state;
	expect_right("movers", &movers, 1000);
}

struct error {
	const char *name;
	const struct cast *cast;
	struct rules rules;
	const char *wrong;
};

static const struct error errors[] = {
	{"reuse_without_proof", &heirs, {.reuse_without_proof = true}, WRONG_CODE},
	{"reuse_without_sweep", &heirs, {.reuse_without_sweep = true}, WRONG_CODE},
	{"sweep_without_lock", &heirs, {.sweep_without_lock = true}, WRONG_TOUCH},
	{"verdict_is_kept", &heirs, {.verdict_is_kept = true}, WRONG_TWO},
	{"take_compares_who", &rivals, {.take_compares_who = true}, WRONG_TWO},
	{"take_keeps_tenure", &rivals, {.take_keeps_tenure = true}, WRONG_FENCE},
	{"lives_at_deadline", &rivals, {.lives_at_deadline = true}, WRONG_TWO},
	{"release_tries_once", &siblings, {.release_tries_once = true}, WRONG_LEFT},
	{"release_skips_fence", &siblings, {.release_skips_fence = true}, WRONG_TOUCH},
	{"key_read_first", &movers, {.key_read_first = true}, WRONG_KEY},
	{"key_written_last", &movers, {.key_written_last = true}, WRONG_KEY},
	{"remove_keeps_word", &movers, {.remove_keeps_word = true}, WRONG_KEY},
	{"insert_skips_floor", &movers, {.insert_skips_floor = true}, WRONG_FENCE},
	{"floor_raised_last", &movers, {.floor_raised_last = true}, WRONG_FENCE},
	{"clock_read_first", &rivals, {.clock_read_first = true}, WRONG_FENCE},
	{"repair_is_skipped", &movers, {.repair_is_skipped = true}, WRONG_FENCE},
};

static void every_known_error_is_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
		const struct error *e = &errors[i];
		struct play play = {.cast = *e->cast, .rules = e->rules};
		struct walk *walk = walk_through(e->name, &play);
		const char *wrong = walk_wrong(walk);
		walk_free(walk);
		if (!wrong || strcmp(wrong, e->wrong) != 0)
			printf("# XX %s: %s instead of: %s\n", e->name, wrong ? wrong : "nothing",
			         e->wrong);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(siblings_share_a_claim),
		cmocka_unit_test(rivals_hold_one_at_a_time),
		cmocka_unit_test(heirs_of_a_code_inherit_nothing),
		cmocka_unit_test(places_move_between_subjects),
		cmocka_unit_test(every_known_error_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
