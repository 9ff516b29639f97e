/* Runners whose cores act on a store in memory. */
#include "actor.h"

#include <string.h>

struct baton_mono world_now(struct world *w)
{
	return w->clock.clock.now(&w->clock.clock);
}

int world_setup(void **state)
{
	static struct world w;
	memset(&w, 0, sizeof w);
	fake_clock_init(&w.clock, (struct baton_mono){1000000000000});
	w.queue = BATON_STR("q");
	w.queues[0] = w.queue;
	w.serves[0] = (struct core_serve){w.queue, 1, 1};
	w.serve_count = 1;
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

int world_teardown(void **state)
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

void actor_init(struct world *w, struct actor *a, const char *name, uint32_t slots)
{
	memset(a, 0, sizeof *a);
	a->others = CORE_LIVES;
	baton_detach_init(&a->detach, NULL);
	const struct core_options core = {
		.alloc = baton_alloc_libc(),
		.detach = &a->detach,
		.serves = w->serves,
		.serve_count = w->serve_count,
		.slots = slots,
		.weight = 1,
		.ttl = baton_duration_s(TTL_S),
		.margin = baton_duration_s(MARGIN_S),
		.beat = baton_duration_s(1),
		.drain = baton_duration_s(DRAIN_S),
	};
	const struct carrier_options carrier = {
		.alloc = baton_alloc_libc(),
		.clock = &w->clock.clock,
		.store = w->store,
		.ask = {.name = baton_str_z(name),
	                .weight = 1,
	                .ttl = baton_duration_s(TTL_S),
	                .queues = w->queues,
	                .queue_count = w->serve_count},
		.serves = w->serves,
		.serve_count = w->serve_count,
		.fate = fate,
		.arg = a,
	};
	assert_int_equal(core_new(&core, &a->core), BATON_OK);
	assert_int_equal(carrier_init(&a->carrier, &carrier), BATON_OK);
}

void actor_done(struct actor *a)
{
	carrier_done(&a->carrier);
	core_free(a->core);
}

static void actor_got(struct actor *a)
{
	a->mores++;
	a->more = a->last.claim;
}

void actor_orders(struct world *w, struct actor *a)
{
	while (core_order(a->core, world_now(w), &a->last)) {
		if (a->last.kind == CORE_START)
			a->runs[a->starts++] = a->last.run;
		else if (a->last.kind == CORE_STOP)
			a->stops++;
		else
			actor_got(a);
	}
}

bool actor_step(struct world *w, struct actor *a)
{
	struct core_answer answer;
	if (!core_ask(a->core, world_now(w), &a->request))
		return false;
	carry_out(&a->carrier, &a->request, &answer);
	core_answered(a->core, world_now(w), &answer);
	actor_orders(w, a);
	return true;
}

void actor_settle(struct world *w, struct actor *a)
{
	int steps = 0;
	while (actor_step(w, a))
		assert_true(++steps < 100);
}

void actor_until(struct world *w, struct actor *a, enum core_kind kind)
{
	struct core_answer answer;
	for (int steps = 0; steps < 100; steps++) {
		assert_true(core_ask(a->core, world_now(w), &a->request));
		if (a->request.kind == kind)
			return;
		carry_out(&a->carrier, &a->request, &answer);
		core_answered(a->core, world_now(w), &answer);
		actor_orders(w, a);
	}
	fail_msg("it never asked for %d", (int)kind);
}

void actor_answer(struct world *w, struct actor *a, enum baton_err err)
{
	struct core_answer answer = {.err = err, .sent = world_now(w), .why = "the disk is away"};
	core_answered(a->core, world_now(w), &answer);
	actor_orders(w, a);
}

void actor_beat(struct world *w, struct actor *a)
{
	struct baton_mono now = world_now(w);
	enum baton_err e = baton_runner_beat(a->carrier.runner);
	core_beaten(a->core, core_number(a->core), e, "", now, now);
}

void world_pass(struct world *w, int64_t ms)
{
	fake_clock_advance(&w->clock, baton_duration_ms(ms));
}

void world_put(struct world *w, const char *lane, int count)
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

struct baton_queue_counts world_counts(struct world *w)
{
	struct baton_queue_info info;
	assert_int_equal(baton_queue_get(w->store, w->queue, &info), BATON_OK);
	return info.counts;
}

void actor_end(struct world *w, struct actor *a, unsigned run, enum baton_work_how how)
{
	const struct core_end end = {.how = how, .error = BATON_STR("no")};
	core_ended(a->core, a->runs[run], &end, world_now(w));
}
