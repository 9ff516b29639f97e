/* What goes wrong on the way between a runner and its store, step by step: each of these was a
 * mistake of the core once. */
#include "actor.h"

static struct baton_runner_info only_runner(struct world *w)
{
	struct baton_runner_info infos[2];
	size_t count;
	assert_int_equal(baton_runner_list(w->store, 0, infos, 2, &count), BATON_OK);
	assert_int_equal(count, 1);
	return infos[0];
}

static void wish(struct world *w, enum baton_runner_wish wish)
{
	assert_int_equal(baton_runner_wish(w->store, BATON_STR("a"), wish), BATON_OK);
}

/* Lets its time be over, and goes on until it is registered anew and has nothing to ask. */
static void lose_and_return(struct world *w, struct actor *a)
{
	uint64_t before = core_number(a->core);
	world_pass(w, TTL_S * 1000);
	core_time(a->core, world_now(w));
	assert_int_equal(baton_detach_state(&a->detach), BATON_DETACHED);
	for (int i = 0; i < 30 && core_number(a->core) <= before; i++) {
		actor_settle(w, a);
		world_pass(w, 100);
	}
	assert_true(core_number(a->core) > before);
	actor_settle(w, a);
}

/* Has the request done, but its answer lost. */
static void lose_answer(struct world *w, struct actor *a)
{
	struct core_answer lost;
	carry_out(&a->carrier, &a->request, &lost);
	assert_int_equal(lost.err, BATON_OK);
	actor_answer(w, a, BATON_STORAGE);
}

static void a_registration_whose_answer_was_lost_is_taken_over_by_who_made_it(void **state)
{
	struct world *w = *state;
	struct actor a;
	actor_init(w, &a, "a", 4);
	a.others = CORE_OWN;
	actor_until(w, &a, CORE_REGISTER);
	lose_answer(w, &a);
	assert_int_equal(core_number(a.core), 0);
	uint64_t lost = only_runner(w).number;
	for (int i = 0; i < 10 && core_number(a.core) == 0; i++) {
		world_pass(w, 100);
		actor_settle(w, &a);
	}
	assert_true(core_number(a.core) > lost);
	assert_int_equal(only_runner(w).number, core_number(a.core));
	actor_done(&a);
}

static void who_knows_of_no_lost_answer_yields_to_a_runner_of_this_process(void **state)
{
	struct world *w = *state;
	struct actor a, b;
	enum baton_err result;
	actor_init(w, &a, "a", 4);
	actor_init(w, &b, "a", 4);
	actor_settle(w, &a);
	b.others = CORE_OWN;
	actor_settle(w, &b);
	assert_true(core_is_done(b.core, &result));
	assert_int_equal(result, BATON_YIELD);
	assert_int_equal(only_runner(w).number, core_number(a.core));
	actor_done(&b);
	actor_done(&a);
}

/* Whoever took it over was killed, or had no time, before the registration was removed. */
static void a_registration_whose_beat_was_only_stopped_is_taken_over_by_who_lost_it(void **state)
{
	struct world *w = *state;
	struct actor a;
	actor_init(w, &a, "a", 4);
	actor_settle(w, &a);
	a.others = CORE_OWN;
	const struct baton_runner_info before = only_runner(w);
	assert_int_equal(baton_runner_stop(w->store, &before), BATON_OK);
	actor_beat(w, &a);
	assert_int_equal(core_number(a.core), 0);
	for (int i = 0; i < 20 && core_number(a.core) == 0; i++) {
		actor_settle(w, &a);
		world_pass(w, 100);
	}
	assert_true(core_number(a.core) > before.number);
	assert_int_equal(only_runner(w).number, core_number(a.core));
	actor_done(&a);
}

static void work_is_found_in_shards_whose_taking_was_not_answered(void **state)
{
	struct world *w = *state;
	struct actor a;
	actor_init(w, &a, "a", 4);
	world_put(w, "x", 1);
	actor_until(w, &a, CORE_TAKE);
	lose_answer(w, &a);
	assert_int_equal(core_counts(a.core).owned, 0);
	actor_settle(w, &a);
	assert_int_equal(core_counts(a.core).owned, SHARDS);
	assert_int_equal(a.starts, 1);
	actor_end(w, &a, 0, BATON_COMPLETE);
	actor_settle(w, &a);
	actor_done(&a);
}

static void what_was_asked_of_it_holds_under_its_next_registration(void **state)
{
	struct world *w = *state;
	struct actor a;
	actor_init(w, &a, "a", 4);
	actor_settle(w, &a);
	wish(w, BATON_WISH_DRAIN);
	core_look_around(a.core);
	actor_settle(w, &a);
	assert_int_equal(core_counts(a.core).owned, 0);
	lose_and_return(w, &a);
	assert_int_equal(core_counts(a.core).owned, 0);
	assert_int_equal(only_runner(w).wish, BATON_WISH_DRAIN);
	assert_string_equal(only_runner(w).state, "draining");
	actor_done(&a);
}

static void what_is_asked_of_it_while_it_is_detached_is_not_lost(void **state)
{
	struct world *w = *state;
	struct actor a;
	struct baton_detach_info info;
	actor_init(w, &a, "a", 4);
	world_put(w, "x", 1);
	actor_settle(w, &a);
	uint64_t number = core_number(a.core);
	world_pass(w, TTL_S * 1000);
	core_time(a.core, world_now(w));
	actor_orders(w, &a);
	wish(w, BATON_WISH_DETACH);
	actor_end(w, &a, 0, BATON_ABANDON);
	for (int i = 0; i < 30; i++) {
		actor_settle(w, &a);
		world_pass(w, 100);
	}
	baton_detach_look(&a.detach, &info);
	assert_int_equal(info.state, BATON_DETACHED);
	assert_true(info.manual);
	assert_int_equal(core_number(a.core), number);
	assert_int_equal(only_runner(w).wish, BATON_WISH_DETACH);
	assert_int_equal(a.starts, 1);
	actor_done(&a);
}

/* Detached through the store, and asked through it to go on; before it looks, it is detached by
 * hand once more: that came last. */
static void a_repeated_detachment_by_hand_goes_before_what_was_asked_earlier(void **state)
{
	struct world *w = *state;
	struct actor a;
	struct baton_detach_info info;
	actor_init(w, &a, "a", 4);
	actor_settle(w, &a);
	wish(w, BATON_WISH_DETACH);
	core_look_around(a.core);
	actor_settle(w, &a);
	for (int i = 0; i < 10; i++) {
		world_pass(w, 500);
		actor_beat(w, &a);
		actor_settle(w, &a);
	}
	wish(w, BATON_WISH_WORK);
	core_detach(a.core, world_now(w));
	for (int i = 0; i < 10; i++) {
		world_pass(w, 500);
		actor_beat(w, &a);
		actor_settle(w, &a);
	}
	baton_detach_look(&a.detach, &info);
	assert_int_equal(info.state, BATON_DETACHED);
	assert_true(info.manual);
	assert_int_equal(only_runner(w).wish, BATON_WISH_DETACH);
	actor_done(&a);
}

static void once_all_were_told_to_stop_it_waits_for_nothing_that_is_past(void **state)
{
	struct world *w = *state;
	struct actor a;
	actor_init(w, &a, "a", 4);
	world_put(w, "x", 1);
	actor_settle(w, &a);
	core_stop(a.core, baton_duration_s(1), world_now(w));
	assert_int_equal(baton_mono_sub(core_next(a.core), world_now(w)).ns, 1000000000);
	world_pass(w, 1000);
	actor_beat(w, &a);
	core_time(a.core, world_now(w));
	actor_orders(w, &a);
	actor_settle(w, &a);
	assert_int_equal(a.stops, 1);
	assert_true(core_next(a.core).ns > world_now(w).ns);
	actor_end(w, &a, 0, BATON_ABANDON);
	actor_settle(w, &a);
	actor_done(&a);
}

static void detach_by_hand(struct world *w, struct actor *a)
{
	actor_settle(w, a);
	core_detach(a->core, world_now(w));
	for (int i = 0; i < 10; i++) {
		world_pass(w, 500);
		actor_beat(w, a);
		actor_settle(w, a);
	}
}

static void who_is_stopped_while_detached_by_hand_leaves_once_it_is_answered(void **state)
{
	struct world *w = *state;
	struct actor a;
	struct core_answer answer;
	enum baton_err result;
	size_t count;
	actor_init(w, &a, "a", 4);
	detach_by_hand(w, &a);
	world_pass(w, 1000);
	actor_beat(w, &a);
	assert_true(core_ask(a.core, world_now(w), &a.request));
	core_stop(a.core, baton_duration_s(1), world_now(w));
	assert_false(core_is_done(a.core, &result));
	carry_out(&a.carrier, &a.request, &answer);
	core_answered(a.core, world_now(w), &answer);
	for (int i = 0; i < 10 && !core_is_done(a.core, &result); i++) {
		actor_settle(w, &a);
		world_pass(w, 100);
	}
	assert_true(core_is_done(a.core, &result));
	assert_int_equal(result, BATON_OK);
	struct baton_runner_info info;
	assert_int_equal(baton_runner_list(w->store, 0, &info, 1, &count), BATON_OK);
	assert_int_equal(count, 0);
	actor_done(&a);
}

static void who_is_stopped_while_detached_by_hand_waits_no_longer_than_its_time(void **state)
{
	struct world *w = *state;
	struct actor a;
	struct core_answer answer;
	enum baton_err result;
	actor_init(w, &a, "a", 4);
	detach_by_hand(w, &a);
	world_pass(w, 1000);
	assert_true(core_ask(a.core, world_now(w), &a.request));
	core_stop(a.core, baton_duration_s(1), world_now(w));
	struct baton_mono next = core_next(a.core);
	assert_true(next.ns > world_now(w).ns);
	world_pass(w, (next.ns - world_now(w).ns) / 1000000);
	core_time(a.core, world_now(w));
	assert_true(core_is_done(a.core, &result));
	assert_int_equal(result, BATON_TIMEOUT);
	carry_out(&a.carrier, &a.request, &answer);
	core_answered(a.core, world_now(w), &answer);
	actor_done(&a);
}

static void a_handler_that_outlasts_the_time_of_a_stopped_runner_is_waited_for(void **state)
{
	struct world *w = *state;
	struct actor a;
	struct core_answer answer;
	actor_init(w, &a, "a", 4);
	world_put(w, "x", 1);
	actor_settle(w, &a);
	core_detach(a.core, world_now(w));
	actor_orders(w, &a);
	assert_int_equal(a.stops, 1);
	world_pass(w, 100);
	assert_true(core_ask(a.core, world_now(w), &a.request));
	core_stop(a.core, baton_duration_s(1), world_now(w));
	world_pass(w, TTL_S * 1000);
	core_time(a.core, world_now(w));
	assert_true(core_next(a.core).ns > world_now(w).ns);
	carry_out(&a.carrier, &a.request, &answer);
	core_answered(a.core, world_now(w), &answer);
	actor_end(w, &a, 0, BATON_ABANDON);
	actor_settle(w, &a);
	actor_done(&a);
}

static void who_is_stopped_and_cannot_tell_the_store_says_so(void **state)
{
	struct world *w = *state;
	struct actor a;
	enum baton_err result;
	actor_init(w, &a, "a", 4);
	actor_settle(w, &a);
	core_stop(a.core, baton_duration_s(1), world_now(w));
	for (int i = 0; i < 1000 && !core_is_done(a.core, &result); i++) {
		if (core_ask(a.core, world_now(w), &a.request))
			actor_answer(w, &a, BATON_STORAGE);
		else
			world_pass(w, 100);
	}
	assert_true(core_is_done(a.core, &result));
	assert_int_equal(result, BATON_STORAGE);
	assert_string_equal(core_why(a.core),
	                    "the store cannot be told that the runner ends, and what it had is "
	                    "given to others when its time is over, at the latest: the disk is "
	                    "away");
	actor_done(&a);
}

static void what_waited_while_it_was_suspect_is_given_back_by_who_is_stopped(void **state)
{
	struct world *w = *state;
	struct actor a;
	struct core_answer claimed = {.err = BATON_OK};
	actor_init(w, &a, "a", 4);
	actor_settle(w, &a);
	world_put(w, "lane", 1);
	core_news(a.core);
	actor_until(w, &a, CORE_TICK);
	core_beaten(a.core, core_number(a.core), BATON_STORAGE, "away", world_now(w), world_now(w));
	assert_int_equal(baton_detach_state(&a.detach), BATON_SUSPECT);
	carry_out(&a.carrier, &a.request, &claimed);
	assert_non_null(claimed.claims);
	claimed.sent = world_now(w);
	core_answered(a.core, world_now(w), &claimed);
	actor_orders(w, &a);
	core_stop(a.core, baton_duration_s(60), world_now(w));
	for (int i = 0; i < 30 && world_counts(w).ready == 0; i++) {
		actor_settle(w, &a);
		world_pass(w, 100);
	}
	assert_int_equal(a.starts, 0);
	assert_int_equal(world_counts(w).ready, 1);
	actor_done(&a);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_registration_whose_answer_was_lost_is_taken_over_by_who_made_it),
		TEST(who_knows_of_no_lost_answer_yields_to_a_runner_of_this_process),
		TEST(a_registration_whose_beat_was_only_stopped_is_taken_over_by_who_lost_it),
		TEST(work_is_found_in_shards_whose_taking_was_not_answered),
		TEST(what_was_asked_of_it_holds_under_its_next_registration),
		TEST(what_is_asked_of_it_while_it_is_detached_is_not_lost),
		TEST(a_repeated_detachment_by_hand_goes_before_what_was_asked_earlier),
		TEST(who_is_stopped_while_detached_by_hand_leaves_once_it_is_answered),
		TEST(who_is_stopped_while_detached_by_hand_waits_no_longer_than_its_time),
		TEST(a_handler_that_outlasts_the_time_of_a_stopped_runner_is_waited_for),
		TEST(once_all_were_told_to_stop_it_waits_for_nothing_that_is_past),
		TEST(who_is_stopped_and_cannot_tell_the_store_says_so),
		TEST(what_waited_while_it_was_suspect_is_given_back_by_who_is_stopped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
