/* The core of a runner, on a real store in memory with a clock of the test's. */
#include <stdio.h>

#include "actor.h"

static void one_runner_takes_all_shards_and_starts_what_is_there(void **state)
{
	struct world *w = *state;
	struct actor a;
	actor_init(w, &a, "a", 4);
	world_put(w, "x", 2);
	world_put(w, "y", 1);
	actor_settle(w, &a);
	assert_int_equal(core_counts(a.core).owned, SHARDS);
	assert_int_equal(a.starts, 2);
	actor_end(w, &a, 0, BATON_COMPLETE);
	actor_end(w, &a, 1, BATON_COMPLETE);
	actor_settle(w, &a);
	assert_int_equal(a.starts, 3);
	actor_end(w, &a, 2, BATON_COMPLETE);
	actor_settle(w, &a);
	assert_int_equal(world_counts(w).done, 3);
	assert_true(core_is_idle(a.core));
	actor_done(&a);
}

static void no_more_is_claimed_than_there_are_slots(void **state)
{
	struct world *w = *state;
	struct actor a;
	actor_init(w, &a, "a", 2);
	world_put(w, "", 5);
	actor_settle(w, &a);
	assert_int_equal(a.starts, 2);
	assert_int_equal(world_counts(w).running, 2);
	actor_end(w, &a, 0, BATON_COMPLETE);
	actor_end(w, &a, 1, BATON_COMPLETE);
	actor_settle(w, &a);
	assert_int_equal(a.starts, 4);
	actor_end(w, &a, 2, BATON_COMPLETE);
	actor_end(w, &a, 3, BATON_COMPLETE);
	actor_settle(w, &a);
	actor_end(w, &a, 4, BATON_COMPLETE);
	actor_settle(w, &a);
	actor_done(&a);
}

static void put_into(struct world *w, struct baton_str queue, int count)
{
	w->queue = queue;
	world_put(w, "", count);
	w->queue = w->queues[0];
}

/* Which queues the next `count` runs are of, one after the other: "q" or "r". */
static void assert_served(struct world *w, struct actor *a, unsigned count, const char *queues)
{
	char were[64] = "";
	for (unsigned i = 0; i < count; i++) {
		const unsigned before = a->starts;
		actor_settle(w, a);
		assert_int_equal(a->starts, before + 1);
		were[i] = a->last.claim->queue.ptr[0];
		actor_end(w, a, a->starts - 1, BATON_COMPLETE);
	}
	assert_string_equal(were, queues);
}

/* Queue "r" has a weight of 2. */
static void serve_two(struct world *w)
{
	const struct baton_queue_policy policy = baton_queue_policy_default();
	w->queues[1] = BATON_STR("r");
	w->serves[1] = (struct core_serve){w->queues[1], 2, 1};
	w->serve_count = 2;
	assert_int_equal(baton_queue_set(w->store, w->queues[1], &policy), BATON_OK);
}

static void queues_get_their_share_by_weight(void **state)
{
	struct world *w = *state;
	struct actor a;
	serve_two(w);
	actor_init(w, &a, "a", 1);
	put_into(w, w->queues[0], 10);
	put_into(w, w->queues[1], 10);
	assert_served(w, &a, 12, "qrrqrrqrrqrr");
	actor_settle(w, &a);
	actor_end(w, &a, a.starts - 1, BATON_COMPLETE);
	actor_settle(w, &a);
	actor_done(&a);
}

/* Who had nothing to do for long is not served alone for as long. */
static void a_queue_that_was_idle_gets_no_more_than_its_share(void **state)
{
	struct world *w = *state;
	struct actor a;
	serve_two(w);
	actor_init(w, &a, "a", 1);
	put_into(w, w->queues[0], 23);
	assert_served(w, &a, 20, "qqqqqqqqqqqqqqqqqqqq");
	put_into(w, w->queues[1], 10);
	assert_served(w, &a, 6, "rrqrrq");
	actor_settle(w, &a);
	actor_end(w, &a, a.starts - 1, BATON_COMPLETE);
	actor_settle(w, &a);
	actor_done(&a);
}

static void a_second_runner_gets_half_of_the_shards(void **state)
{
	struct world *w = *state;
	struct actor a, b;
	actor_init(w, &a, "a", 4);
	actor_init(w, &b, "b", 4);
	actor_settle(w, &a);
	actor_settle(w, &b);
	for (int i = 0; i < 3; i++) {
		world_pass(w, 1000);
		actor_beat(w, &a);
		actor_beat(w, &b);
		actor_settle(w, &a);
		actor_settle(w, &b);
	}
	assert_int_equal(core_counts(a.core).owned, SHARDS / 2);
	assert_int_equal(core_counts(b.core).owned, SHARDS / 2);
	actor_done(&a);
	actor_done(&b);
}

/* Lets runners act at each moment for so long, and returns after how many ms each of them had so
 * many shards; -1: never. */
static int until_owned(struct world *w, struct actor *const *actors, size_t count,
                       const uint32_t *shards, int ms)
{
	enum {
		STEP_MS = 10,
		BEAT_MS = 1000
	};
	for (int at = 0; at <= ms; at += STEP_MS) {
		size_t right = 0;
		for (size_t i = 0; i < count; i++) {
			if (at % BEAT_MS == 0 && core_number(actors[i]->core) > 0)
				actor_beat(w, actors[i]);
			core_time(actors[i]->core, world_now(w));
			actor_orders(w, actors[i]);
			actor_settle(w, actors[i]);
		}
		for (size_t i = 0; i < count; i++)
			right += core_counts(actors[i]->core).owned == shards[i];
		if (right == count)
			return at;
		world_pass(w, STEP_MS);
	}
	return -1;
}

#define SETTLED_MS 2000

/* Whenever that is between the looks of the others. */
static void who_joins_or_leaves_has_the_shards_moved_within_two_seconds(void **state)
{
	struct world *w = *state;
	struct actor a, b, c;
	struct actor *const all[] = {&a, &b, &c};
	enum baton_err err;
	actor_init(w, &a, "a", 4);
	actor_init(w, &b, "b", 4);
	assert_int_not_equal(until_owned(w, all, 1, (uint32_t[]){16}, 0), -1);
	world_pass(w, 370);
	assert_int_not_equal(until_owned(w, all, 2, (uint32_t[]){8, 8}, SETTLED_MS), -1);
	for (int phase = 0; phase < 1000; phase += 70) {
		until_owned(w, all, 2, (uint32_t[]){0, 0}, phase);
		actor_init(w, &c, "c", 4);
		/* Shares of 16 by three are 6, 5 and 5; who was first is rounded up. */
		assert_int_not_equal(until_owned(w, all, 3, (uint32_t[]){6, 5, 5}, SETTLED_MS), -1);
		core_stop(c.core, (struct baton_duration){0}, world_now(w));
		actor_settle(w, &c);
		assert_true(core_is_done(c.core, &err));
		actor_done(&c);
		assert_int_not_equal(until_owned(w, all, 2, (uint32_t[]){8, 8}, SETTLED_MS), -1);
	}
	actor_done(&a);
	actor_done(&b);
}

/* What runs in a shard that is to go may end, but has no longer than that. */
static void a_shard_in_which_something_runs_moves_after_the_drain(void **state)
{
	struct world *w = *state;
	struct actor a, b;
	struct actor *const all[] = {&a, &b};
	char lane[3];
	actor_init(w, &a, "a", 64);
	actor_init(w, &b, "b", 64);
	for (int i = 0; i < 32; i++) {
		snprintf(lane, sizeof lane, "%d", i);
		world_put(w, lane, 1);
	}
	assert_int_not_equal(until_owned(w, all, 1, (uint32_t[]){16}, 0), -1);
	assert_int_equal(a.starts, 32);
	assert_int_equal(until_owned(w, all, 2, (uint32_t[]){8, 8}, DRAIN_S * 1000), -1);
	assert_int_equal(a.stops, 0);
	assert_int_equal(until_owned(w, all, 2, (uint32_t[]){8, 8}, SETTLED_MS), -1);
	assert_true(a.stops > 0);
	for (unsigned i = 0; i < a.starts; i++)
		actor_end(w, &a, i, BATON_COMPLETE);
	assert_int_not_equal(until_owned(w, all, 2, (uint32_t[]){8, 8}, SETTLED_MS), -1);
	assert_int_equal(world_counts(w).done, 32);
	actor_done(&a);
	actor_done(&b);
}

static void at_its_deadline_it_starts_nothing_and_stops_what_runs(void **state)
{
	struct world *w = *state;
	struct actor a;
	actor_init(w, &a, "a", 4);
	world_put(w, "x", 1);
	actor_settle(w, &a);
	assert_int_equal(a.starts, 1);
	world_put(w, "y", 1);
	core_news(a.core);
	actor_until(w, &a, CORE_TICK);
	struct core_answer answer;
	carry_out(&a.carrier, &a.request, &answer);
	assert_non_null(answer.claims);
	world_pass(w, (TTL_S - MARGIN_S) * 1000 - 1);
	core_time(a.core, world_now(w));
	assert_int_equal(baton_detach_state(&a.detach), BATON_ATTACHED);
	world_pass(w, 1);
	core_answered(a.core, world_now(w), &answer);
	actor_orders(w, &a);
	assert_int_equal(baton_detach_state(&a.detach), BATON_DETACHED);
	struct baton_detach_info info;
	baton_detach_look(&a.detach, &info);
	assert_string_equal(info.text, "lease expired");
	assert_int_equal(a.starts, 1);
	assert_int_equal(a.stops, 1);
	assert_int_equal(core_counts(a.core).owned, 0);
	actor_end(w, &a, 0, BATON_ABANDON);
	actor_settle(w, &a);
	actor_done(&a);
}

static void after_a_detachment_it_registers_anew_and_goes_on(void **state)
{
	struct world *w = *state;
	struct actor a;
	actor_init(w, &a, "a", 4);
	world_put(w, "x", 1);
	actor_settle(w, &a);
	uint64_t before = core_number(a.core);
	world_pass(w, TTL_S * 1000);
	core_time(a.core, world_now(w));
	actor_orders(w, &a);
	assert_int_equal(a.stops, 1);
	actor_end(w, &a, 0, BATON_ABANDON);
	for (int i = 0; i < 20 && baton_detach_state(&a.detach) != BATON_ATTACHED; i++) {
		actor_settle(w, &a);
		world_pass(w, 100);
	}
	actor_settle(w, &a);
	assert_int_equal(baton_detach_state(&a.detach), BATON_ATTACHED);
	assert_true(core_number(a.core) > before);
	assert_int_equal(a.starts, 2);
	assert_int_equal(a.last.claim->batches[0].attempt, 1);
	actor_end(w, &a, 1, BATON_COMPLETE);
	actor_settle(w, &a);
	assert_int_equal(world_counts(w).done, 1);
	actor_done(&a);
}

static void a_silent_runner_is_taken_over_after_its_ttl_and_not_before(void **state)
{
	struct world *w = *state;
	struct actor a, b;
	actor_init(w, &a, "a", 4);
	actor_init(w, &b, "b", 4);
	world_put(w, "x", 1);
	actor_settle(w, &a);
	actor_settle(w, &b);
	for (int i = 1; i < TTL_S; i++) {
		world_pass(w, 1000);
		actor_beat(w, &b);
		actor_settle(w, &b);
	}
	assert_int_equal(core_counts(b.core).takeovers, 0);
	world_pass(w, 999);
	core_look_around(b.core);
	actor_settle(w, &b);
	assert_int_equal(core_counts(b.core).takeovers, 0);
	world_pass(w, 1);
	core_look_around(b.core);
	actor_settle(w, &b);
	assert_int_equal(core_counts(b.core).takeovers, 1);
	assert_int_equal(core_counts(b.core).owned, SHARDS);
	core_news(b.core);
	world_pass(w, 1);
	actor_settle(w, &b);
	actor_end(w, &a, 0, BATON_COMPLETE);
	actor_orders(w, &a);
	actor_settle(w, &a);
	assert_int_equal(world_counts(w).done, 0);
	assert_int_equal(core_counts(a.core).refused, 1);
	for (unsigned i = 0; i < b.starts; i++)
		actor_end(w, &b, i, BATON_COMPLETE);
	actor_settle(w, &b);
	actor_done(&a);
	actor_done(&b);
}

static void a_dead_runner_is_taken_over_at_once_but_not_while_its_handlers_live(void **state)
{
	struct world *w = *state;
	struct actor a, b;
	actor_init(w, &a, "a", 4);
	actor_init(w, &b, "b", 4);
	actor_settle(w, &a);
	actor_settle(w, &b);
	b.others = CORE_DYING;
	core_look_around(b.core);
	actor_settle(w, &b);
	assert_int_equal(core_counts(b.core).takeovers, 0);
	/* Not even when it was silent for its ttl. */
	for (int s = 0; s <= 2 * TTL_S; s++) {
		world_pass(w, 1000);
		actor_beat(w, &b);
		actor_settle(w, &b);
	}
	assert_int_equal(core_counts(b.core).takeovers, 0);
	b.others = CORE_DEAD;
	world_pass(w, 1000);
	actor_settle(w, &b);
	assert_int_equal(core_counts(b.core).takeovers, 1);
	assert_int_equal(core_counts(b.core).owned, SHARDS);
	actor_done(&a);
	actor_done(&b);
}

static void what_a_tick_claimed_whose_answer_never_came_is_given_back_and_claimed_anew(void **state)
{
	struct world *w = *state;
	struct actor a;
	struct core_answer answer;
	actor_init(w, &a, "a", 4);
	actor_settle(w, &a);
	world_put(w, "x", 1);
	core_news(a.core);
	actor_until(w, &a, CORE_TICK);
	carry_out(&a.carrier, &a.request, &answer);
	assert_non_null(answer.claims);
	baton_work_claims_free(answer.claims);
	assert_int_equal(world_counts(w).running, 1);
	actor_answer(w, &a, BATON_STORAGE);
	assert_int_equal(baton_detach_state(&a.detach), BATON_SUSPECT);
	actor_until(w, &a, CORE_SETTLE);
	assert_int_equal(baton_detach_state(&a.detach), BATON_ATTACHED);
	carry_out(&a.carrier, &a.request, &answer);
	core_answered(a.core, world_now(w), &answer);
	actor_settle(w, &a);
	assert_int_equal(a.starts, 1);
	assert_int_equal(a.last.claim->batches[0].attempt, 1);
	actor_end(w, &a, 0, BATON_COMPLETE);
	actor_settle(w, &a);
	assert_int_equal(world_counts(w).done, 1);
	actor_done(&a);
}

static void what_was_claimed_under_a_lost_registration_is_never_started(void **state)
{
	struct world *w = *state;
	struct actor a;
	struct core_answer answer;
	struct baton_runner_info info;
	size_t count;
	actor_init(w, &a, "a", 4);
	actor_settle(w, &a);
	world_put(w, "x", 1);
	core_news(a.core);
	actor_until(w, &a, CORE_TICK);
	carry_out(&a.carrier, &a.request, &answer);
	assert_non_null(answer.claims);
	assert_int_equal(baton_runner_list(w->store, 0, &info, 1, &count), BATON_OK);
	assert_int_equal(baton_runner_take_over(w->store, &info), BATON_OK);
	actor_beat(w, &a);
	assert_int_equal(baton_detach_state(&a.detach), BATON_DETACHED);
	world_pass(w, 1000);
	core_answered(a.core, world_now(w), &answer);
	for (int i = 0; i < 20 && a.starts == 0; i++) {
		actor_settle(w, &a);
		actor_orders(w, &a);
		world_pass(w, 100);
	}
	assert_int_equal(a.starts, 1);
	assert_int_equal(a.last.claim->batches[0].attempt, 2);
	actor_end(w, &a, 0, BATON_COMPLETE);
	actor_settle(w, &a);
	assert_int_equal(core_counts(a.core).refused, 1);
	assert_int_equal(world_counts(w).done, 1);
	actor_done(&a);
}

static void an_end_whose_answer_never_came_is_sent_again_and_counted_once(void **state)
{
	struct world *w = *state;
	struct actor a;
	struct core_answer answer;
	actor_init(w, &a, "a", 4);
	world_put(w, "x", 1);
	actor_settle(w, &a);
	actor_end(w, &a, 0, BATON_COMPLETE);
	actor_until(w, &a, CORE_TICK);
	carry_out(&a.carrier, &a.request, &answer);
	baton_work_claims_free(answer.claims);
	actor_answer(w, &a, BATON_STORAGE);
	actor_settle(w, &a);
	assert_int_equal(core_counts(a.core).completed, 1);
	assert_int_equal(core_counts(a.core).refused, 0);
	assert_int_equal(world_counts(w).done, 1);
	actor_done(&a);
}

static void while_it_is_suspect_nothing_starts_and_three_failures_detach(void **state)
{
	struct world *w = *state;
	struct actor a;
	struct baton_detach_info info;
	actor_init(w, &a, "a", 4);
	actor_settle(w, &a);
	world_put(w, "x", 1);
	core_news(a.core);
	actor_until(w, &a, CORE_TICK);
	actor_answer(w, &a, BATON_STORAGE);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(baton_detach_state(&a.detach), BATON_SUSPECT);
		actor_until(w, &a, CORE_PROVE);
		actor_answer(w, &a, BATON_STORAGE);
		assert_false(i < 2 && core_ask(a.core, world_now(w), &a.request));
		world_pass(w, 1000);
		actor_beat(w, &a);
	}
	assert_int_equal(baton_detach_state(&a.detach), BATON_DETACHED);
	baton_detach_look(&a.detach, &info);
	assert_string_equal(info.text, "keep-alive failure streak: 3 consecutive failures");
	assert_int_equal(a.starts, 0);
	actor_settle(w, &a);
	actor_done(&a);
}

/* That a queue is not what it was cannot be the cause. */
static void a_renewal_that_the_store_cannot_understand_detaches_at_once(void **state)
{
	struct world *w = *state;
	struct actor a;
	struct baton_detach_info info;
	actor_init(w, &a, "a", 4);
	actor_settle(w, &a);
	world_put(w, "x", 1);
	core_news(a.core);
	actor_until(w, &a, CORE_TICK);
	actor_answer(w, &a, BATON_STORAGE);
	actor_until(w, &a, CORE_PROVE);
	actor_answer(w, &a, BATON_INVALID);
	assert_int_equal(baton_detach_state(&a.detach), BATON_DETACHED);
	baton_detach_look(&a.detach, &info);
	assert_int_equal(info.why, BATON_DETACH_STORAGE);
	actor_settle(w, &a);
	actor_done(&a);
}

static void what_fails_though_the_store_works_is_tried_less_and_less_often(void **state)
{
	struct world *w = *state;
	struct actor a;
	enum baton_err result;
	actor_init(w, &a, "a", 4);
	actor_settle(w, &a);
	core_stop(a.core, baton_duration_s(5), world_now(w));
	actor_until(w, &a, CORE_LEAVE);
	actor_answer(w, &a, BATON_STORAGE);
	actor_until(w, &a, CORE_PROVE);
	actor_answer(w, &a, BATON_OK);
	for (int64_t ms = 100;; ms *= 2) {
		assert_true(ms < 10000);
		actor_until(w, &a, CORE_LEAVE);
		actor_answer(w, &a, BATON_STORAGE);
		if (core_is_done(a.core, &result))
			break;
		actor_until(w, &a, CORE_PROVE);
		actor_answer(w, &a, BATON_OK);
		assert_false(core_ask(a.core, world_now(w), &a.request));
		world_pass(w, ms - 1);
		assert_false(core_ask(a.core, world_now(w), &a.request));
		assert_true(core_next(a.core).ns > world_now(w).ns);
		world_pass(w, 1);
		actor_beat(w, &a);
	}
	actor_done(&a);
}

static void a_stopped_runner_gives_everything_back_and_is_done(void **state)
{
	struct world *w = *state;
	struct actor a;
	enum baton_err result;
	actor_init(w, &a, "a", 1);
	world_put(w, "x", 1);
	world_put(w, "y", 1);
	actor_settle(w, &a);
	core_stop(a.core, baton_duration_s(5), world_now(w));
	actor_settle(w, &a);
	assert_false(core_is_done(a.core, &result));
	assert_int_equal(a.stops, 0);
	world_pass(w, 5000);
	core_time(a.core, world_now(w));
	actor_orders(w, &a);
	assert_int_equal(a.stops, 1);
	actor_end(w, &a, 0, BATON_ABANDON);
	actor_settle(w, &a);
	assert_true(core_is_done(a.core, &result));
	assert_int_equal(result, BATON_OK);
	assert_int_equal(world_counts(w).running, 0);
	assert_int_equal(world_counts(w).ready, 2);
	size_t count = 1;
	struct baton_runner_info info;
	assert_int_equal(baton_runner_list(w->store, 0, &info, 1, &count), BATON_OK);
	assert_int_equal(count, 0);
	actor_done(&a);
}

static void by_hand_it_stays_registered_without_shards_until_it_is_attached(void **state)
{
	struct world *w = *state;
	struct actor a;
	actor_init(w, &a, "a", 1);
	world_put(w, "x", 1);
	actor_settle(w, &a);
	assert_int_equal(baton_runner_wish(w->store, BATON_STR("a"), BATON_WISH_DETACH), BATON_OK);
	core_look_around(a.core);
	actor_settle(w, &a);
	assert_int_equal(baton_detach_state(&a.detach), BATON_DETACHED);
	assert_int_equal(a.stops, 1);
	actor_end(w, &a, 0, BATON_ABANDON);
	for (int i = 0; i < 30; i++) {
		world_pass(w, 500);
		actor_beat(w, &a);
		actor_settle(w, &a);
	}
	struct baton_runner_info info;
	struct baton_shard_answer owners[SHARDS];
	size_t count;
	assert_int_equal(baton_runner_list(w->store, 0, &info, 1, &count), BATON_OK);
	assert_int_equal(count, 1);
	assert_string_equal(info.state, "detached: manual detachment");
	assert_int_equal(baton_shard_list(w->store, w->queue, 0, owners, SHARDS), BATON_OK);
	for (int i = 0; i < SHARDS; i++)
		assert_int_equal(owners[i].runner, 0);
	assert_int_equal(baton_runner_wish(w->store, BATON_STR("a"), BATON_WISH_WORK), BATON_OK);
	for (int i = 0; i < 30 && a.starts < 2; i++) {
		world_pass(w, 500);
		if (a.carrier.runner)
			actor_beat(w, &a);
		actor_settle(w, &a);
	}
	assert_int_equal(a.starts, 2);
	actor_end(w, &a, 1, BATON_COMPLETE);
	actor_settle(w, &a);
	actor_done(&a);
}

static void an_end_that_is_not_accepted_fails_alone(void **state)
{
	struct world *w = *state;
	struct actor a;
	static char big[BATON_QUEUE_PAYLOAD_MAX + 1];
	const struct baton_str payload = {big, sizeof big};
	const struct baton_batch emit = {.queue = w->queue, .payloads = &payload, .count = 1};
	const struct core_end bad = {.how = BATON_COMPLETE, .emits = &emit, .emit_count = 1};
	actor_init(w, &a, "a", 4);
	world_put(w, "x", 1);
	world_put(w, "y", 1);
	actor_settle(w, &a);
	core_ended(a.core, a.runs[0], &bad, world_now(w));
	actor_end(w, &a, 1, BATON_COMPLETE);
	actor_settle(w, &a);
	assert_int_equal(world_counts(w).done, 1);
	assert_int_equal(world_counts(w).failed, 1);
	actor_done(&a);
}

/* One to be joined, so that who works on its lane may take it at a checkpoint. */
static void put_to_join(struct world *w, const char *lane)
{
	struct baton_str payload = BATON_STR("p");
	const struct baton_batch batch = {
		.queue = w->queue,
		.lane = baton_str_z(lane),
		.slot = BATON_JOIN,
		.payloads = &payload,
		.count = 1,
	};
	struct baton_put answer;
	assert_int_equal(baton_work_put(w->store, &batch, 1, &answer), BATON_OK);
}

/* Whether the lane is still that runner's. */
static void assert_has(struct world *w, const char *lane, const char *name)
{
	struct baton_where where;
	assert_int_equal(baton_lane_where(w->store, w->queue, baton_str_z(lane), &where), BATON_OK);
	assert_true(where.owned);
	assert_string_equal(where.runner.name, name);
}

static void a_shard_that_is_to_go_gives_nothing_more_at_a_checkpoint(void **state)
{
	static const char *const lanes[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
	struct world *w = *state;
	struct actor a, b;
	char given[8][2] = {""};
	unsigned count = 0;
	actor_init(w, &a, "a", 8);
	actor_init(w, &b, "b", 8);
	for (int i = 0; i < 8; i++) {
		put_to_join(w, lanes[i]);
		put_to_join(w, lanes[i]);
	}
	actor_settle(w, &a);
	assert_int_equal(a.starts, 8);
	actor_settle(w, &b);
	world_pass(w, 1000);
	actor_beat(w, &a);
	actor_settle(w, &a);
	for (unsigned i = 0; i < 8; i++) {
		assert_true(core_more(a.core, a.runs[i], 1));
		actor_orders(w, &a);
		actor_settle(w, &a);
		assert_int_equal(a.mores, i + 1);
		if (a.more)
			given[count++][0] = a.more->lane.ptr[0];
	}
	assert_in_range(count, 1, 7);
	for (unsigned i = 0; i < 8; i++)
		actor_end(w, &a, i, BATON_COMPLETE);
	actor_settle(w, &a);
	for (unsigned i = 0; i < count; i++)
		assert_has(w, given[i], "a");
	actor_done(&a);
	actor_done(&b);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
	const struct CMUnitTest tests[] = {
		TEST(one_runner_takes_all_shards_and_starts_what_is_there),
		TEST(no_more_is_claimed_than_there_are_slots),
		TEST(queues_get_their_share_by_weight),
		TEST(a_queue_that_was_idle_gets_no_more_than_its_share),
		TEST(a_second_runner_gets_half_of_the_shards),
		TEST(who_joins_or_leaves_has_the_shards_moved_within_two_seconds),
		TEST(a_shard_in_which_something_runs_moves_after_the_drain),
		TEST(at_its_deadline_it_starts_nothing_and_stops_what_runs),
		TEST(after_a_detachment_it_registers_anew_and_goes_on),
		TEST(a_silent_runner_is_taken_over_after_its_ttl_and_not_before),
		TEST(a_dead_runner_is_taken_over_at_once_but_not_while_its_handlers_live),
		TEST(what_a_tick_claimed_whose_answer_never_came_is_given_back_and_claimed_anew),
		TEST(what_was_claimed_under_a_lost_registration_is_never_started),
		TEST(an_end_whose_answer_never_came_is_sent_again_and_counted_once),
		TEST(while_it_is_suspect_nothing_starts_and_three_failures_detach),
		TEST(a_renewal_that_the_store_cannot_understand_detaches_at_once),
		TEST(what_fails_though_the_store_works_is_tried_less_and_less_often),
		TEST(a_stopped_runner_gives_everything_back_and_is_done),
		TEST(by_hand_it_stays_registered_without_shards_until_it_is_attached),
		TEST(an_end_that_is_not_accepted_fails_alone),
		TEST(a_shard_that_is_to_go_gives_nothing_more_at_a_checkpoint),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
