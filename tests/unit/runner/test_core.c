/* The core of a runner, on a real store in memory with a clock of the test's. */
#include "runner/core.h"

#include <stdio.h>
#include <string.h>

#include "runner/carry.h"
#include "support/fake_clock.h"
#include "support/harness.h"

#define TTL_S 10
#define MARGIN_S 2
#define SHARDS 16

/* One runner. */
struct actor {
	struct baton_detach detach;
	struct carrier carrier;
	struct core *core;
	struct core_request request;
	enum core_fate others;  /* how all others look to it */
	struct core_order last; /* the last order */
	unsigned starts, stops; /* orders so far */
	uint64_t runs[64];      /* that were started */
};

struct world {
	struct fake_clock clock;
	struct baton_store *store;
	struct core_serve serve;
	struct baton_str queue;
};

static struct baton_mono now_of(struct world *w)
{
	return w->clock.clock.now(&w->clock.clock);
}

static int setup(void **state)
{
	static struct world w;
	memset(&w, 0, sizeof w);
	fake_clock_init(&w.clock, (struct baton_mono){1000000000000});
	w.queue = BATON_STR("q");
	w.serve = (struct core_serve){w.queue, 1, 1};
	const struct baton_store_options options = {
		.where = BATON_STR("memory:"),
		.clock = &w.clock.clock,
	};
	const struct baton_queue_policy policy = baton_queue_policy_default();
	assert_int_equal(baton_store_open(&options, &w.store), BATON_OK);
	assert_int_equal(baton_queue_set(w.store, w.queue, &policy), BATON_OK);
	*state = &w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	baton_store_close(w->store);
	fake_clock_done(&w->clock);
	return 0;
}

static enum core_fate fate(void *arg, const struct baton_runner_info *info)
{
	const struct actor *a = arg;
	return info->number == core_number(a->core) ? CORE_LIVES : a->others;
}

static void actor_init(struct world *w, struct actor *a, const char *name, uint32_t slots)
{
	memset(a, 0, sizeof *a);
	a->others = CORE_LIVES;
	baton_detach_init(&a->detach, NULL);
	const struct core_options core = {
		.alloc = baton_alloc_libc(),
		.detach = &a->detach,
		.serves = &w->serve,
		.serve_count = 1,
		.slots = slots,
		.weight = 1,
		.ttl = baton_duration_s(TTL_S),
		.margin = baton_duration_s(MARGIN_S),
		.beat = baton_duration_s(1),
		.drain = baton_duration_s(15),
	};
	const struct carrier_options carrier = {
		.alloc = baton_alloc_libc(),
		.clock = &w->clock.clock,
		.store = w->store,
		.ask = {.name = baton_str_z(name),
	                .weight = 1,
	                .ttl = baton_duration_s(TTL_S),
	                .queues = &w->queue,
	                .queue_count = 1},
		.serves = &w->serve,
		.serve_count = 1,
		.fate = fate,
		.arg = a,
	};
	assert_int_equal(core_new(&core, &a->core), BATON_OK);
	assert_int_equal(carrier_init(&a->carrier, &carrier), BATON_OK);
}

/* Handlers and claims are let go first. */
static void actor_done(struct actor *a)
{
	carrier_done(&a->carrier);
	core_free(a->core);
}

static void take_orders(struct world *w, struct actor *a)
{
	while (core_order(a->core, now_of(w), &a->last)) {
		if (a->last.kind == CORE_START)
			a->runs[a->starts++] = a->last.run;
		else
			a->stops++;
	}
}

/* What it wants to ask, done, and the answer given. False: it asks nothing. */
static bool step(struct world *w, struct actor *a)
{
	struct core_answer answer;
	if (!core_ask(a->core, now_of(w), &a->request))
		return false;
	carry_out(&a->carrier, &a->request, &answer);
	core_answered(a->core, now_of(w), &answer);
	take_orders(w, a);
	return true;
}

/* Until it asks nothing more at this moment. */
static void settle(struct world *w, struct actor *a)
{
	int steps = 0;
	while (step(w, a))
		assert_true(++steps < 100);
}

/* Until it asks for that; the request is a->request, and is not done yet. */
static void until(struct world *w, struct actor *a, enum core_kind kind)
{
	struct core_answer answer;
	for (int steps = 0; steps < 100; steps++) {
		assert_true(core_ask(a->core, now_of(w), &a->request));
		if (a->request.kind == kind)
			return;
		carry_out(&a->carrier, &a->request, &answer);
		core_answered(a->core, now_of(w), &answer);
		take_orders(w, a);
	}
	fail_msg("it never asked for %d", (int)kind);
}

static void answer_with(struct world *w, struct actor *a, enum baton_err err)
{
	struct core_answer answer = {.err = err, .sent = now_of(w), .why = "the disk is away"};
	core_answered(a->core, now_of(w), &answer);
	take_orders(w, a);
}

static void beat(struct world *w, struct actor *a)
{
	struct baton_mono now = now_of(w);
	enum baton_err e = baton_runner_beat(a->carrier.runner);
	core_beaten(a->core, core_number(a->core), e, "", now, now);
}

static void pass(struct world *w, int64_t ms)
{
	fake_clock_advance(&w->clock, baton_duration_ms(ms));
}

static void put(struct world *w, const char *lane, int count)
{
	struct baton_str payload = BATON_STR("p");
	for (int i = 0; i < count; i++) {
		const struct baton_batch batch = {
			.queue = w->queue,
			.lane = baton_str_z(lane),
			.payloads = &payload,
			.count = 1,
		};
		struct baton_put answer;
		assert_int_equal(baton_work_put(w->store, &batch, 1, &answer), BATON_OK);
	}
}

static struct baton_queue_counts counts_of(struct world *w)
{
	struct baton_queue_info info;
	assert_int_equal(baton_queue_get(w->store, w->queue, &info), BATON_OK);
	return info.counts;
}

static void end(struct world *w, struct actor *a, unsigned run, enum baton_work_how how)
{
	const struct core_end end = {.how = how, .error = BATON_STR("no")};
	core_ended(a->core, a->runs[run], &end, now_of(w));
}

static void one_runner_takes_all_shards_and_starts_what_is_there(void **state)
{
	struct world *w = *state;
	struct actor a;
	actor_init(w, &a, "a", 4);
	put(w, "x", 2);
	put(w, "y", 1);
	settle(w, &a);
	assert_int_equal(core_counts(a.core).owned, SHARDS);
	assert_int_equal(a.starts, 2);
	end(w, &a, 0, BATON_COMPLETE);
	end(w, &a, 1, BATON_COMPLETE);
	settle(w, &a);
	assert_int_equal(a.starts, 3);
	end(w, &a, 2, BATON_COMPLETE);
	settle(w, &a);
	assert_int_equal(counts_of(w).done, 3);
	assert_true(core_is_idle(a.core));
	actor_done(&a);
}

static void no_more_is_claimed_than_there_are_slots(void **state)
{
	struct world *w = *state;
	struct actor a;
	actor_init(w, &a, "a", 2);
	put(w, "", 5);
	settle(w, &a);
	assert_int_equal(a.starts, 2);
	assert_int_equal(counts_of(w).running, 2);
	end(w, &a, 0, BATON_COMPLETE);
	end(w, &a, 1, BATON_COMPLETE);
	settle(w, &a);
	assert_int_equal(a.starts, 4);
	end(w, &a, 2, BATON_COMPLETE);
	end(w, &a, 3, BATON_COMPLETE);
	settle(w, &a);
	end(w, &a, 4, BATON_COMPLETE);
	settle(w, &a);
	actor_done(&a);
}

static void a_second_runner_gets_half_of_the_shards(void **state)
{
	struct world *w = *state;
	struct actor a, b;
	actor_init(w, &a, "a", 4);
	actor_init(w, &b, "b", 4);
	settle(w, &a);
	settle(w, &b);
	for (int i = 0; i < 3; i++) {
		pass(w, 1000);
		beat(w, &a);
		beat(w, &b);
		settle(w, &a);
		settle(w, &b);
	}
	assert_int_equal(core_counts(a.core).owned, SHARDS / 2);
	assert_int_equal(core_counts(b.core).owned, SHARDS / 2);
	actor_done(&a);
	actor_done(&b);
}

static void at_its_deadline_it_starts_nothing_and_stops_what_runs(void **state)
{
	struct world *w = *state;
	struct actor a;
	actor_init(w, &a, "a", 4);
	put(w, "x", 1);
	settle(w, &a);
	assert_int_equal(a.starts, 1);
	put(w, "y", 1);
	core_news(a.core);
	until(w, &a, CORE_TICK);
	struct core_answer answer;
	carry_out(&a.carrier, &a.request, &answer);
	assert_non_null(answer.claims);
	pass(w, (TTL_S - MARGIN_S) * 1000 - 1);
	core_time(a.core, now_of(w));
	assert_int_equal(baton_detach_state(&a.detach), BATON_ATTACHED);
	pass(w, 1);
	core_answered(a.core, now_of(w), &answer);
	take_orders(w, &a);
	assert_int_equal(baton_detach_state(&a.detach), BATON_DETACHED);
	struct baton_detach_info info;
	baton_detach_look(&a.detach, &info);
	assert_string_equal(info.text, "lease expired");
	assert_int_equal(a.starts, 1);
	assert_int_equal(a.stops, 1);
	assert_int_equal(core_counts(a.core).owned, 0);
	end(w, &a, 0, BATON_ABANDON);
	settle(w, &a);
	actor_done(&a);
}

static void after_a_detachment_it_registers_anew_and_goes_on(void **state)
{
	struct world *w = *state;
	struct actor a;
	actor_init(w, &a, "a", 4);
	put(w, "x", 1);
	settle(w, &a);
	uint64_t before = core_number(a.core);
	pass(w, TTL_S * 1000);
	core_time(a.core, now_of(w));
	take_orders(w, &a);
	assert_int_equal(a.stops, 1);
	end(w, &a, 0, BATON_ABANDON);
	for (int i = 0; i < 20 && baton_detach_state(&a.detach) != BATON_ATTACHED; i++) {
		settle(w, &a);
		pass(w, 100);
	}
	settle(w, &a);
	assert_int_equal(baton_detach_state(&a.detach), BATON_ATTACHED);
	assert_true(core_number(a.core) > before);
	assert_int_equal(a.starts, 2);
	assert_int_equal(a.last.claim->batches[0].attempt, 1);
	end(w, &a, 1, BATON_COMPLETE);
	settle(w, &a);
	assert_int_equal(counts_of(w).done, 1);
	actor_done(&a);
}

static void a_silent_runner_is_taken_over_after_its_ttl_and_not_before(void **state)
{
	struct world *w = *state;
	struct actor a, b;
	actor_init(w, &a, "a", 4);
	actor_init(w, &b, "b", 4);
	put(w, "x", 1);
	settle(w, &a);
	settle(w, &b);
	for (int i = 1; i < TTL_S; i++) {
		pass(w, 1000);
		beat(w, &b);
		settle(w, &b);
	}
	assert_int_equal(core_counts(b.core).takeovers, 0);
	pass(w, 999);
	core_look_around(b.core);
	settle(w, &b);
	assert_int_equal(core_counts(b.core).takeovers, 0);
	pass(w, 1);
	core_look_around(b.core);
	settle(w, &b);
	assert_int_equal(core_counts(b.core).takeovers, 1);
	assert_int_equal(core_counts(b.core).owned, SHARDS);
	core_news(b.core);
	pass(w, 1);
	settle(w, &b);
	end(w, &a, 0, BATON_COMPLETE);
	take_orders(w, &a);
	settle(w, &a);
	assert_int_equal(counts_of(w).done, 0);
	assert_int_equal(core_counts(a.core).refused, 1);
	for (unsigned i = 0; i < b.starts; i++)
		end(w, &b, i, BATON_COMPLETE);
	settle(w, &b);
	actor_done(&a);
	actor_done(&b);
}

static void a_dead_runner_is_taken_over_at_once_but_not_while_its_handlers_live(void **state)
{
	struct world *w = *state;
	struct actor a, b;
	actor_init(w, &a, "a", 4);
	actor_init(w, &b, "b", 4);
	settle(w, &a);
	settle(w, &b);
	b.others = CORE_DYING;
	core_look_around(b.core);
	settle(w, &b);
	assert_int_equal(core_counts(b.core).takeovers, 0);
	b.others = CORE_DEAD;
	pass(w, 10);
	settle(w, &b);
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
	settle(w, &a);
	put(w, "x", 1);
	core_news(a.core);
	until(w, &a, CORE_TICK);
	carry_out(&a.carrier, &a.request, &answer);
	assert_non_null(answer.claims);
	baton_work_claims_free(answer.claims);
	assert_int_equal(counts_of(w).running, 1);
	answer_with(w, &a, BATON_STORAGE);
	assert_int_equal(baton_detach_state(&a.detach), BATON_SUSPECT);
	until(w, &a, CORE_SETTLE);
	assert_int_equal(baton_detach_state(&a.detach), BATON_ATTACHED);
	carry_out(&a.carrier, &a.request, &answer);
	core_answered(a.core, now_of(w), &answer);
	settle(w, &a);
	assert_int_equal(a.starts, 1);
	assert_int_equal(a.last.claim->batches[0].attempt, 1);
	end(w, &a, 0, BATON_COMPLETE);
	settle(w, &a);
	assert_int_equal(counts_of(w).done, 1);
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
	settle(w, &a);
	put(w, "x", 1);
	core_news(a.core);
	until(w, &a, CORE_TICK);
	carry_out(&a.carrier, &a.request, &answer);
	assert_non_null(answer.claims);
	assert_int_equal(baton_runner_list(w->store, 0, &info, 1, &count), BATON_OK);
	assert_int_equal(baton_runner_take_over(w->store, &info), BATON_OK);
	beat(w, &a);
	assert_int_equal(baton_detach_state(&a.detach), BATON_DETACHED);
	pass(w, 1000);
	core_answered(a.core, now_of(w), &answer);
	for (int i = 0; i < 20 && a.starts == 0; i++) {
		settle(w, &a);
		take_orders(w, &a);
		pass(w, 100);
	}
	assert_int_equal(a.starts, 1);
	assert_int_equal(a.last.claim->batches[0].attempt, 2);
	end(w, &a, 0, BATON_COMPLETE);
	settle(w, &a);
	assert_int_equal(core_counts(a.core).refused, 1);
	assert_int_equal(counts_of(w).done, 1);
	actor_done(&a);
}

static void an_end_whose_answer_never_came_is_sent_again_and_counted_once(void **state)
{
	struct world *w = *state;
	struct actor a;
	struct core_answer answer;
	actor_init(w, &a, "a", 4);
	put(w, "x", 1);
	settle(w, &a);
	end(w, &a, 0, BATON_COMPLETE);
	until(w, &a, CORE_TICK);
	carry_out(&a.carrier, &a.request, &answer);
	baton_work_claims_free(answer.claims);
	answer_with(w, &a, BATON_STORAGE);
	settle(w, &a);
	assert_int_equal(core_counts(a.core).completed, 1);
	assert_int_equal(core_counts(a.core).refused, 0);
	assert_int_equal(counts_of(w).done, 1);
	actor_done(&a);
}

static void while_it_is_suspect_nothing_starts_and_three_failures_detach(void **state)
{
	struct world *w = *state;
	struct actor a;
	struct baton_detach_info info;
	actor_init(w, &a, "a", 4);
	settle(w, &a);
	put(w, "x", 1);
	core_news(a.core);
	until(w, &a, CORE_TICK);
	answer_with(w, &a, BATON_STORAGE);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(baton_detach_state(&a.detach), BATON_SUSPECT);
		until(w, &a, CORE_PROVE);
		answer_with(w, &a, BATON_STORAGE);
		assert_false(i < 2 && core_ask(a.core, now_of(w), &a.request));
		pass(w, 1000);
		beat(w, &a);
	}
	assert_int_equal(baton_detach_state(&a.detach), BATON_DETACHED);
	baton_detach_look(&a.detach, &info);
	assert_string_equal(info.text, "keep-alive failure streak: 3 consecutive failures");
	assert_int_equal(a.starts, 0);
	settle(w, &a);
	actor_done(&a);
}

static void what_fails_though_the_store_works_is_tried_less_and_less_often(void **state)
{
	struct world *w = *state;
	struct actor a;
	enum baton_err result;
	actor_init(w, &a, "a", 4);
	settle(w, &a);
	core_stop(a.core, baton_duration_s(5), now_of(w));
	until(w, &a, CORE_LEAVE);
	answer_with(w, &a, BATON_STORAGE);
	until(w, &a, CORE_PROVE);
	answer_with(w, &a, BATON_OK);
	for (int64_t ms = 100;; ms *= 2) {
		assert_true(ms < 10000);
		until(w, &a, CORE_LEAVE);
		answer_with(w, &a, BATON_STORAGE);
		if (core_is_done(a.core, &result))
			break;
		until(w, &a, CORE_PROVE);
		answer_with(w, &a, BATON_OK);
		assert_false(core_ask(a.core, now_of(w), &a.request));
		pass(w, ms - 1);
		assert_false(core_ask(a.core, now_of(w), &a.request));
		assert_true(core_next(a.core).ns > now_of(w).ns);
		pass(w, 1);
		beat(w, &a);
	}
	actor_done(&a);
}

static void a_stopped_runner_gives_everything_back_and_is_done(void **state)
{
	struct world *w = *state;
	struct actor a;
	enum baton_err result;
	actor_init(w, &a, "a", 1);
	put(w, "x", 1);
	put(w, "y", 1);
	settle(w, &a);
	core_stop(a.core, baton_duration_s(5), now_of(w));
	settle(w, &a);
	assert_false(core_is_done(a.core, &result));
	assert_int_equal(a.stops, 0);
	pass(w, 5000);
	core_time(a.core, now_of(w));
	take_orders(w, &a);
	assert_int_equal(a.stops, 1);
	end(w, &a, 0, BATON_ABANDON);
	settle(w, &a);
	assert_true(core_is_done(a.core, &result));
	assert_int_equal(result, BATON_OK);
	assert_int_equal(counts_of(w).running, 0);
	assert_int_equal(counts_of(w).ready, 2);
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
	put(w, "x", 1);
	settle(w, &a);
	assert_int_equal(baton_runner_wish(w->store, BATON_STR("a"), BATON_WISH_DETACH), BATON_OK);
	core_look_around(a.core);
	settle(w, &a);
	assert_int_equal(baton_detach_state(&a.detach), BATON_DETACHED);
	assert_int_equal(a.stops, 1);
	end(w, &a, 0, BATON_ABANDON);
	for (int i = 0; i < 30; i++) {
		pass(w, 500);
		beat(w, &a);
		settle(w, &a);
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
		pass(w, 500);
		if (a.carrier.runner)
			beat(w, &a);
		settle(w, &a);
	}
	assert_int_equal(a.starts, 2);
	end(w, &a, 1, BATON_COMPLETE);
	settle(w, &a);
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
	put(w, "x", 1);
	put(w, "y", 1);
	settle(w, &a);
	core_ended(a.core, a.runs[0], &bad, now_of(w));
	end(w, &a, 1, BATON_COMPLETE);
	settle(w, &a);
	assert_int_equal(counts_of(w).done, 1);
	assert_int_equal(counts_of(w).failed, 1);
	actor_done(&a);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(one_runner_takes_all_shards_and_starts_what_is_there),
		TEST(no_more_is_claimed_than_there_are_slots),
		TEST(a_second_runner_gets_half_of_the_shards),
		TEST(at_its_deadline_it_starts_nothing_and_stops_what_runs),
		TEST(after_a_detachment_it_registers_anew_and_goes_on),
		TEST(a_silent_runner_is_taken_over_after_its_ttl_and_not_before),
		TEST(a_dead_runner_is_taken_over_at_once_but_not_while_its_handlers_live),
		TEST(what_a_tick_claimed_whose_answer_never_came_is_given_back_and_claimed_anew),
		TEST(what_was_claimed_under_a_lost_registration_is_never_started),
		TEST(an_end_whose_answer_never_came_is_sent_again_and_counted_once),
		TEST(while_it_is_suspect_nothing_starts_and_three_failures_detach),
		TEST(what_fails_though_the_store_works_is_tried_less_and_less_often),
		TEST(a_stopped_runner_gives_everything_back_and_is_done),
		TEST(by_hand_it_stays_registered_without_shards_until_it_is_attached),
		TEST(an_end_that_is_not_accepted_fails_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
