/* Processes: a runner as the engine drives it, on a clock that drifts. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "sim/sim.h"

#define DRIFT_MAX (10 * SIM_MS) /* in a second: a hundredth */
#define SPINS_MAX 100

static struct proc *proc_by_clock(const struct baton_clock *self)
{
	return (struct proc *)((char *)self - offsetof(struct proc, clock));
}

static int64_t local(const struct proc *p, int64_t at)
{
	return p->base + at + at / 1000 * p->drift / (SIM_S / 1000);
}

struct baton_mono proc_now(const struct proc *p)
{
	return (struct baton_mono){local(p, p->w->now)};
}

int64_t proc_when(const struct proc *p, struct baton_mono at)
{
	if (at.ns >= local(p, INT64_C(100000) * SIM_S))
		return INT64_MAX;
	int64_t span = at.ns - p->base;
	int64_t when = span - span / 1000 * p->drift / (SIM_S / 1000) - SIM_MS;
	int64_t step = 4 * SIM_MS;
	while (local(p, when) < at.ns)
		when += step;
	for (; step > 0; step /= 4) {
		while (local(p, when - step) >= at.ns)
			when -= step;
	}
	return when;
}

static struct baton_mono clock_now(const struct baton_clock *self)
{
	return proc_now(proc_by_clock(self));
}

struct proc *proc_at(const struct world *w, uint32_t seat)
{
	struct proc *p = w->seats[seat] > 0 ? w->procs[w->seats[seat] - 1] : NULL;
	return p && p->alive ? p : NULL;
}

struct proc *proc_of(const struct world *w, uint64_t number)
{
	if (number >= SIM_NUMBERS_MAX || w->owners[number] == 0)
		return NULL;
	return w->procs[w->owners[number] - 1];
}

enum core_fate proc_fate(void *arg, const struct baton_runner_info *info)
{
	const struct proc *p = arg;
	const struct proc *other = proc_of(p->w, info->number);
	if (other == p)
		return CORE_OWN;
	if (!other || other->alive || other->host != p->host)
		return CORE_LIVES;
	return other->buried && ward_is_empty(other) ? CORE_DEAD : CORE_DYING;
}

void proc_began(void *arg, struct baton_runner *runner)
{
	struct proc *p = arg;
	struct world *w = p->w;
	uint64_t number = baton_runner_number(runner);
	CHECK(number < SIM_NUMBERS_MAX && w->handle_count < SIM_NUMBERS_MAX);
	w->owners[number] = p->id + 1;
	w->handles[w->handle_count++] = runner;
	p->runner = runner;
}

/* Handles are freed when the run is over. */
void proc_retire(void *arg, struct baton_runner *runner)
{
	struct proc *p = arg;
	if (p->runner == runner)
		p->runner = NULL;
}

static void choose_queues(struct proc *p, struct rng *rng)
{
	p->serve_count = 0;
	for (uint32_t i = 0; i < PLAN_QUEUES; i++) {
		if (p->seat > 0 && chance(rng, 20) && (i > 0 || p->serve_count > 0))
			continue;
		p->queues[p->serve_count] = baton_str_z(sim_queues[i]);
		p->serves[p->serve_count++] =
			(struct core_serve){baton_str_z(sim_queues[i]), 1 + i, i == 1 ? 3 : 1};
	}
	CHECK(p->serve_count > 0);
}

static void open_core(struct proc *p, struct rng *rng, bool replace)
{
	const struct plan *plan = p->w->plan;
	const struct baton_detach_options detach = {.streak = plan->near ? 3 : 6};
	const struct core_options core = {
		.alloc = baton_alloc_libc(),
		.detach = &p->detach,
		.serves = p->serves,
		.serve_count = p->serve_count,
		.slots = 1 + (uint32_t)rng_below(rng, 4),
		.weight = 1 + p->seat % 2,
		.ttl = {plan->ttl},
		.margin = {plan->margin},
		.beat = {SIM_S},
		.drain = {3 * SIM_S},
		.report = {5 * SIM_S},
		.beats_prove = !plan->near,
		.replace = replace,
	};
	const struct carrier_options carrier = {
		.alloc = baton_alloc_libc(),
		.clock = &p->clock,
		.store = p->w->store,
		.ask = {.name = baton_str_z(p->name),
	                .weight = 1 + p->seat % 2,
	                .ttl = {plan->ttl},
	                .queues = p->queues,
	                .queue_count = p->serve_count},
		.serves = p->serves,
		.serve_count = p->serve_count,
		.fate = proc_fate,
		.began = proc_began,
		.retire = proc_retire,
		.arg = p,
	};
	baton_detach_init(&p->detach, &detach);
	p->carrier.o = carrier;
	CHECK(core_new(&core, &p->core) == BATON_OK);
}

/* Its place, empty. The carrier's memory is large and is used again. */
static struct proc *place(struct world *w)
{
	static const struct carrier_options none = {.serve_count = PLAN_QUEUES};
	struct carrier_options options = none;
	options.alloc = baton_alloc_libc();
	struct proc *p = w->procs[w->proc_count];
	if (!p) {
		p = calloc(1, sizeof *p);
		CHECK(p && carrier_init(&p->carrier, &options) == BATON_OK);
	}
	struct carrier carrier = p->carrier;
	memset(p, 0, sizeof *p);
	p->carrier = carrier;
	p->carrier.runner = NULL;
	w->procs[w->proc_count] = p;
	p->id = w->proc_count++;
	return p;
}

/* One that was to be replaced, and outlived who was to replace it, has the seat again. */
static bool is_taken(struct world *w, uint32_t seat)
{
	for (uint32_t i = 0; i < w->proc_count && !proc_at(w, seat); i++) {
		if (w->procs[i]->alive && w->procs[i]->seat == seat)
			w->seats[seat] = i + 1;
	}
	return proc_at(w, seat);
}

void proc_boot(struct world *w, uint32_t seat, bool replace)
{
	if (w->retired[seat] || (is_taken(w, seat) && !replace))
		return;
	if (w->proc_count == SIM_PROCS_MAX) {
		wrong(w, "%d processes were not enough", SIM_PROCS_MAX);
		return;
	}
	/* All processes of a seat serve the same, and their host's clock goes on. */
	struct rng host = rng_seed(w->plan->seed ^ (seat + 1) * UINT64_C(0x9e3779b1));
	struct proc *p = place(w);
	p->w = w;
	p->seat = seat;
	p->host = seat % w->plan->hosts;
	p->alive = true;
	p->clock = (struct baton_clock){.now = clock_now};
	p->rng = rng_seed(w->plan->seed ^ (p->id + 1) * UINT64_C(0xd1b54a32d192ed03));
	snprintf(p->name, sizeof p->name, "r%" PRIu32, seat);
	choose_queues(p, &host);
	struct rng clock = rng_seed(w->plan->seed + p->host);
	p->drift = between(&clock, -DRIFT_MAX, DRIFT_MAX);
	p->base = between(&clock, SIM_S, 1000000 * SIM_S);
	p->seen = BATON_ATTACHED;
	p->guard = BATON_MONO_NEVER;
	count(w, w->seats[seat] > 0 ? COVER_RESTART : COVER_JOIN);
	w->seats[seat] = p->id + 1;
	open_core(p, &host, replace);
	say(w, p, "starts on host %" PRIu32, p->host);
	event_add(w, w->now + SIM_S, EV_EAR, p->id, 0);
	proc_act(p);
}

void proc_done(struct proc *p)
{
	if (p->call.on && p->call.done)
		baton_work_claims_free(p->call.answer.claims);
	core_free(p->core);
	p->core = NULL;
	p->carrier.runner = NULL;
	p->carrier.o.serve_count = PLAN_QUEUES;
}

static void boot_later(struct proc *p)
{
	struct world *w = p->w;
	bool soon = chance(&p->rng, 30); /* before its guardian has noticed */
	int64_t pause = soon ? between(&p->rng, SIM_MS, 20 * SIM_MS)
	                     : between(&p->rng, 100 * SIM_MS, 3 * SIM_S);
	if (w->seats[p->seat] == p->id + 1)
		event_add(w, w->now + pause, EV_BOOT, p->seat, 0);
}

void proc_die(struct proc *p)
{
	if (!p->alive)
		return;
	say(p->w, p, "dies");
	p->alive = false;
	p->frozen = 0;
	event_add(p->w, p->w->now + between(&p->rng, SIM_MS, 30 * SIM_MS), EV_BURY, p->id, 0);
	boot_later(p);
}

/* It has nothing more to do. */
static void leave(struct proc *p, enum baton_err err)
{
	say(p->w, p, "ends: %s", err == BATON_OK ? "done" : core_why(p->core));
	if (!ward_is_empty(p))
		wrong(p->w, "%s ends while its handlers run", p->name);
	if (err == BATON_TIMEOUT)
		count(p->w, COVER_UNANSWERED);
	else if (err == BATON_STORAGE)
		count(p->w, COVER_UNTOLD);
	else if (err != BATON_OK && err != BATON_YIELD && err != BATON_NOT_HELD)
		wrong(p->w, "%s ends: %s", p->name, core_why(p->core));
	if (err == BATON_YIELD)
		count(p->w, COVER_NAME_TAKEN);
	if (err == BATON_YIELD && p->call.answer.fate == CORE_OWN)
		wrong(p->w, "%s makes way for itself", p->name);
	if (err == BATON_NOT_HELD)
		count(p->w, COVER_REPLACED);
	p->alive = false;
	p->buried = true;
	boot_later(p);
}

static void count_why(struct proc *p)
{
	struct baton_detach_info info;
	baton_detach_look(&p->detach, &info);
	say(p->w, p, "detached: %s", info.text);
	switch (info.why) {
	case BATON_DETACH_STORAGE:
		count(p->w, COVER_WHY_STORAGE);
		break;
	case BATON_DETACH_STREAK:
		count(p->w, COVER_WHY_STREAK);
		break;
	case BATON_DETACH_EXPIRED:
		count(p->w, COVER_WHY_EXPIRED);
		break;
	case BATON_DETACH_MANUAL:
		count(p->w, COVER_WHY_MANUAL);
		break;
	case BATON_DETACH_GUARDIAN:
		count(p->w, COVER_WHY_GUARDIAN);
		break;
	}
}

/* Which way its attachment went. */
static void watch(struct proc *p)
{
	static const enum covered ways[4][4] = {
		[BATON_ATTACHED] = {[BATON_SUSPECT] = COVER_SUSPECT,
	                            [BATON_DETACHED] = COVER_ATTACHED_DETACHED},
		[BATON_SUSPECT] = {[BATON_ATTACHED] = COVER_CLEARED,
	                           [BATON_DETACHED] = COVER_SUSPECT_DETACHED},
		[BATON_DETACHED] =
			{[BATON_ATTACHED] = COVER_REATTACHED, [BATON_SUSPECT] = COVER_REATTACHED},
	};
	enum baton_attachment is = baton_detach_state(&p->detach);
	if (is == p->seen)
		return;
	count(p->w, ways[p->seen][is]);
	if (is == BATON_DETACHED)
		count_why(p);
	else
		say(p->w, p, "%s", is == BATON_SUSPECT ? "suspect" : "attached");
	p->seen = is;
}

static void give_orders(struct proc *p)
{
	while (core_order(p->core, proc_now(p), &p->order)) {
		watch(p);
		if (p->order.kind == CORE_START)
			ward_start(p, &p->order);
		else if (p->order.kind == CORE_MORE_GIVEN)
			ward_more(p, &p->order);
		else
			ward_stop(p, p->order.run);
	}
}

static void wake_later(struct proc *p)
{
	struct world *w = p->w;
	int64_t at = proc_when(p, core_next(p->core));
	if (at == INT64_MAX)
		return;
	at = at > w->now ? at : w->now;
	if (p->wake > 0 && p->wake <= at)
		return;
	p->wake = at;
	event_add(w, at, EV_WAKE, p->id, 0);
}

/* As the engine does, each time that something has woken it. */
void proc_act(struct proc *p)
{
	struct core_request request;
	enum baton_err err;
	core_time(p->core, proc_now(p));
	watch(p);
	give_orders(p);
	ward_deadline(p, core_hard_stop(p->core));
	if (p->orphan && core_counts(p->core).running == 0 && !core_is_asking(p->core))
		p->orphan = false;
	if (core_ask(p->core, proc_now(p), &request))
		link_ask(p, &request);
	watch(p);
	if (core_is_done(p->core, &err))
		leave(p, err);
	else
		wake_later(p);
}

static void wake(struct proc *p, const struct event *e)
{
	struct world *w = p->w;
	if (p->wake <= e->at)
		p->wake = 0;
	p->spins = p->woken == w->now ? p->spins + 1 : 0;
	p->woken = w->now;
	if (p->spins > SPINS_MAX)
		wrong(w, "%s turns without end", p->name);
}

/* The store has changed, or something of it is due. */
static void listen(struct proc *p, bool again)
{
	struct world *w = p->w;
	struct baton_store_time due;
	bool is_due = baton_work_next_due(w->store, BATON_STR(""), &due) == BATON_OK &&
	              baton_store_time_ready(due, baton_store_now(w->store));
	if (again)
		event_add(w, w->now + SIM_S / 5, EV_EAR, p->id, 0);
	if (p->heard == w->changes && !is_due)
		return;
	p->heard = w->changes;
	core_news(p->core);
}

static void loop_event(struct proc *p, const struct event *e)
{
	if (e->kind == EV_WAKE)
		wake(p, e);
	else if (e->kind == EV_REPLY)
		link_reply(p, e->arg);
	else if (e->kind == EV_BEAT_REPLY)
		link_beat_reply(p, e->arg);
	else if (e->kind == EV_EAR)
		listen(p, e->arg == 0);
	else if (e->kind == EV_CHECKPOINT)
		ward_checkpoint(p, e->arg);
	else if (e->kind == EV_ENDED)
		ward_ended(p, e->arg);
	watch(p);
	proc_act(p);
}

/* What the store or the guardian does; the runner need not live for it. */
static bool outside_event(struct proc *p, const struct event *e)
{
	if (e->kind == EV_GUARD)
		ward_guard(p);
	else if (e->kind == EV_BURY)
		ward_bury(p);
	else if (e->kind == EV_HANDLER)
		ward_handler(p, e->arg);
	else if (e->kind == EV_KILL)
		ward_kill(p, e->arg);
	else if (e->kind == EV_HOLD)
		ward_hold(p, e->arg);
	else if (e->kind == EV_EXEC)
		link_exec(p, e->arg);
	else if (e->kind == EV_BEAT_EXEC)
		link_beat_exec(p, e->arg);
	else
		return false;
	return true;
}

static bool is_own(const struct proc *p, enum event_kind kind)
{
	bool call = kind == EV_EXEC || kind == EV_BEAT_EXEC;
	return kind > EV_OF_PROCESS || (p->w->plan->near && call);
}

void proc_event(struct proc *p, const struct event *e)
{
	struct world *w = p->w;
	if (is_own(p, e->kind) && p->frozen > w->now) {
		event_add(w, p->frozen + between(&p->rng, 0, SIM_MS), e->kind, e->who, e->arg);
		return;
	}
	if (outside_event(p, e) || !p->alive)
		return;
	if (e->kind == EV_PULSE)
		link_pulse(p, e->arg);
	else if (e->kind == EV_START)
		ward_started(p, e->arg);
	else
		loop_event(p, e);
}
