/* Many runs, each from a seed; and runs of wrong variants, each of which has to be caught. */
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim/shrink.h"
#include "sim/sim.h"
#include "support/harness.h"
#include "support/soak.h"

#define SEEDS_MIN 1000 /* in which everything is seen */
#define SEEDS_SOAK 100000
#define SEEDS_VARIANT 1000              /* within which a wrong variant is caught */
#define SECONDS 30                      /* of processor time */
#define SEEDS_PER_WHYS soak_scale(2, 1) /* of which one is judged by what is said of its work */

static uint64_t current; /* seed, for when the program itself is ended */

static void on_abort(int number)
{
	char text[64];
	int n = snprintf(text, sizeof text, "# aborted: BATON_SEED=%" PRIu64 "\n", current);
	(void)number;
	if (write(STDOUT_FILENO, text, (size_t)n) != n)
		_exit(1);
}

static double seconds(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

static unsigned long number_from(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);
	return text ? strtoul(text, NULL, 10) : otherwise;
}

static void print_plan(const struct plan *plan)
{
	printf("# %" PRIu32 " runners on %" PRIu32 " hosts%s, ttl %.1f s, %zu actions\n",
	       plan->seats, plan->hosts, plan->near ? ", near" : "",
	       (double)plan->ttl / (double)SIM_S, plan->count);
}

/* Says what went wrong, and shows the shortest run in which something does. */
static void explain(struct world *w, struct plan *plan)
{
	struct cover cover;
	memset(&cover, 0, sizeof cover);
	printf("# seed %" PRIu64 ": %s\n", plan->seed, w->text);
	printf("# to see it again: BATON_SEED=%" PRIu64 "\n", plan->seed);
	shrink(w, plan);
	print_plan(plan);
	world_run(w, plan, &cover, true);
	fflush(stdout);
}

static bool run(struct world *w, struct plan *plan, uint64_t seed, enum variant variant,
                struct cover *cover)
{
	current = seed;
	plan_make(plan, seed, variant);
	world_run(w, plan, cover, false);
	return !w->failed;
}

static void the_same_seed_gives_the_same_run(void **state)
{
	struct world *w = *state;
	static struct plan plan;
	struct cover cover;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		memset(&cover, 0, sizeof cover);
		run(w, &plan, seed, VARIANT_NONE, &cover);
		const uint64_t digest = w->digest, steps = w->steps;
		run(w, &plan, seed, VARIANT_NONE, &cover);
		assert_int_equal(w->digest, digest);
		assert_int_equal(w->steps, steps);
	}
}

/* Whoever counts tests shows it, also if all went well. */
static void print_cover(const struct cover *cover)
{
	for (int i = 0; i < COVER_END; i++)
		printf("# report: %10" PRIu64 "  %s\n", cover->counts[i],
		       cover_name((enum covered)i));
}

static void assert_covered(const struct cover *cover)
{
	int missing = 0;
	for (int i = 0; i < COVER_END; i++) {
		if (cover->counts[i] > 0)
			continue;
		printf("# never seen: %s\n", cover_name((enum covered)i));
		missing++;
	}
	assert_int_equal(missing, 0);
}

static void whatever_happens_no_rule_is_broken(void **state)
{
	struct world *w = *state;
	static struct plan plan;
	static struct cover cover;
	const bool one = getenv("BATON_SEED") != NULL;
	/* The same runs each time, but in long ones: those find what nobody has seen yet. */
	uint64_t seed =
		soak_scale(0, 1) == 0 ? 1 : rng_next(&(struct rng){rng_seed_from_env().state});
	uint64_t runs = 0, steps = 0;
	const double end = seconds() + (double)number_from("BATON_SIM_SECONDS", SECONDS);
	const unsigned some = (unsigned)number_from("BATON_SIM_SEEDS", SEEDS_MIN);
	const uint64_t least = one ? 1 : soak_scale(some, SEEDS_SOAK);
	if (one)
		seed = number_from("BATON_SEED", 0);
	for (; runs < least || (!one && seconds() < end); runs++) {
		current = seed + runs;
		plan_make(&plan, current, VARIANT_NONE);
		plan.whys = one || current % SEEDS_PER_WHYS == 0;
		world_run(w, &plan, &cover, false);
		steps += w->steps;
		if (!w->failed)
			continue;
		explain(w, &plan);
		fail_msg("seed %" PRIu64 " goes wrong", seed + runs);
	}
	printf("# report: %" PRIu64 " runs, %" PRIu64 " steps; what was seen in them:\n", runs,
	       steps);
	print_cover(&cover);
	if (runs >= SEEDS_MIN)
		assert_covered(&cover);
}

/* The first seed with which the variant goes wrong, and nothing else does. */
static uint64_t catch_first(struct world *w, struct plan *plan, enum variant variant)
{
	static struct cover cover;
	uint64_t seed = 0;
	bool caught = false;
	while (!caught && seed++ < SEEDS_VARIANT)
		caught = run(w, plan, seed, VARIANT_NONE, &cover) &&
		         !run(w, plan, seed, variant, &cover);
	if (caught)
		printf("# caught with seed %" PRIu64 ": %s\n", seed, w->text);
	return seed;
}

static void assert_caught(struct world *w, enum variant variant)
{
	static struct plan plan;
	assert_true(catch_first(w, &plan, variant) <= SEEDS_VARIANT);
}

static void a_store_without_fences_is_caught(void **state)
{
	assert_caught(*state, VARIANT_UNFENCED);
}

static void a_deadline_from_the_time_of_receipt_is_caught(void **state)
{
	assert_caught(*state, VARIANT_RECEIVED);
}

static void a_detachment_that_is_lost_while_it_reattaches_is_caught(void **state)
{
	assert_caught(*state, VARIANT_UNDETACHED);
}

static void a_store_that_does_not_count_who_holds_a_key_is_caught(void **state)
{
	assert_caught(*state, VARIANT_KEYLESS);
}

static void a_store_that_does_not_count_lanes_that_hold_a_key_is_caught(void **state)
{
	assert_caught(*state, VARIANT_GUESTLESS);
}

static void a_store_that_does_not_count_who_waits_for_a_key_is_caught(void **state)
{
	assert_caught(*state, VARIANT_UNBOUNDED);
}

static void a_store_that_gives_one_of_several_keys_is_caught(void **state)
{
	assert_caught(*state, VARIANT_PARTIAL);
}

static void a_store_in_which_queues_of_a_class_count_by_themselves_is_caught(void **state)
{
	assert_caught(*state, VARIANT_CLASSLESS);
}

static void a_store_in_which_queues_of_a_class_count_starts_by_themselves_is_caught(void **state)
{
	assert_caught(*state, VARIANT_APART);
}

static void a_store_in_which_keys_do_not_take_turns_is_caught(void **state)
{
	assert_caught(*state, VARIANT_UNFAIR);
}

static void a_store_that_does_not_count_how_often_a_key_starts_is_caught(void **state)
{
	assert_caught(*state, VARIANT_UNRATED);
}

static void a_store_that_does_not_count_who_holds_a_key_on_a_host_is_caught(void **state)
{
	assert_caught(*state, VARIANT_SITELESS);
}

static void a_store_that_does_not_count_how_often_a_key_starts_on_a_host_is_caught(void **state)
{
	assert_caught(*state, VARIANT_SITE_UNRATED);
}

static void a_store_that_takes_runners_of_one_host_for_those_of_several_is_caught(void **state)
{
	assert_caught(*state, VARIANT_HOSTLESS);
}

static void a_dead_runner_whose_work_is_not_recovered_is_caught(void **state)
{
	assert_caught(*state, VARIANT_UNRECOVERED);
}

static void a_run_that_goes_wrong_is_made_smaller(void **state)
{
	struct world *w = *state;
	static struct plan plan;
	static struct cover cover;
	assert_true(catch_first(w, &plan, VARIANT_UNRECOVERED) <= SEEDS_VARIANT);
	size_t before = plan.count;
	shrink(w, &plan);
	printf("# from %zu actions to %zu\n", before, plan.count);
	world_run(w, &plan, &cover, false);
	assert_true(w->failed);
	assert_true(plan.count <= 8);
}

static int setup(void **state)
{
	*state = world_new();
	return 0;
}

static int teardown(void **state)
{
	world_free(*state);
	return 0;
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_same_seed_gives_the_same_run),
		TEST(a_store_without_fences_is_caught),
		TEST(a_deadline_from_the_time_of_receipt_is_caught),
		TEST(a_detachment_that_is_lost_while_it_reattaches_is_caught),
		TEST(a_dead_runner_whose_work_is_not_recovered_is_caught),
		TEST(a_store_that_does_not_count_who_holds_a_key_is_caught),
		TEST(a_store_that_does_not_count_lanes_that_hold_a_key_is_caught),
		TEST(a_store_that_gives_one_of_several_keys_is_caught),
		TEST(a_store_in_which_queues_of_a_class_count_by_themselves_is_caught),
		TEST(a_store_in_which_queues_of_a_class_count_starts_by_themselves_is_caught),
		TEST(a_store_that_does_not_count_who_waits_for_a_key_is_caught),
		TEST(a_store_in_which_keys_do_not_take_turns_is_caught),
		TEST(a_store_that_does_not_count_how_often_a_key_starts_is_caught),
		TEST(a_store_that_does_not_count_who_holds_a_key_on_a_host_is_caught),
		TEST(a_store_that_does_not_count_how_often_a_key_starts_on_a_host_is_caught),
		TEST(a_store_that_takes_runners_of_one_host_for_those_of_several_is_caught),
		TEST(a_run_that_goes_wrong_is_made_smaller),
		TEST(whatever_happens_no_rule_is_broken),
	};
	/* What a process has is large, and is used again at once. */
	mallopt(M_MMAP_THRESHOLD, 1 << 28);
	mallopt(M_TRIM_THRESHOLD, 1 << 29);
	signal(SIGABRT, on_abort);
	return cmocka_run_group_tests(tests, setup, teardown);
}
