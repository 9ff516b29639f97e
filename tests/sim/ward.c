/* Guardians and handlers. A guardian goes on when its runner is frozen, and knows nothing of it but
 * the deadline that was set last, and whether it is dead. */
#include <inttypes.h>

#include "base/check.h"
#include "sim/sim.h"

#define GRACE (5 * SIM_S)

static struct handler *by_serial(struct proc *p, uint64_t serial)
{
	for (size_t i = 0; i < SIM_HANDLERS_MAX; i++) {
		if (p->handlers[i].serial == serial)
			return &p->handlers[i];
	}
	return NULL;
}

static struct handler *by_run(struct proc *p, uint64_t run)
{
	for (size_t i = 0; i < SIM_HANDLERS_MAX; i++) {
		struct handler *h = &p->handlers[i];
		if (h->serial > 0 && h->run == run)
			return h;
	}
	return NULL;
}

bool ward_is_empty(const struct proc *p)
{
	size_t i = 0;
	while (i < SIM_HANDLERS_MAX && !p->handlers[i].on)
		i++;
	return i == SIM_HANDLERS_MAX;
}

/* How it will end, which depends on the work and on how often it was begun alone. */
static void draw_end(struct world *w, struct handler *h)
{
	const struct grant *g = &w->grants[h->grant];
	struct rng rng = rng_seed(w->plan->seed ^ (g->jobs[0] + 1) * UINT64_C(0x632be59bd9b4e019) ^
	                          ++w->jobs[g->jobs[0]].tries);
	uint64_t roll = rng_below(&rng, 100);
	h->how = roll < 80   ? BATON_COMPLETE
	         : roll < 90 ? BATON_FAIL
	         : roll < 93 ? BATON_SNOOZE
	         : roll < 96 ? BATON_ABANDON
	         : roll < 98 ? BATON_REJECT
	                     : BATON_COMPLETE;
	h->deaf = chance(&rng, 25);
}

static int64_t length_of(struct proc *p, const struct grant *g)
{
	uint64_t roll = rng_below(&p->rng, 100);
	if (p->w->jobs[g->jobs[0]].poison)
		return between(&p->rng, SIM_MS, 100 * SIM_MS);
	return roll < 60 || p->w->healed ? between(&p->rng, SIM_MS, 300 * SIM_MS)
	       : roll < 80               ? between(&p->rng, 300 * SIM_MS, 3 * SIM_S)
	                                 : between(&p->rng, 3 * SIM_S, 25 * SIM_S);
}

void ward_start(struct proc *p, const struct core_order *order)
{
	struct world *w = p->w;
	judge_start(p, order);
	struct handler *h = by_serial(p, 0);
	if (!h) {
		wrong(w, "%s starts more handlers than it has slots", p->name);
		return;
	}
	*h = (struct handler){
		.waits = true,
		.serial = ++w->serial,
		.run = order->run,
		.grant = judge_grant(w, order->claim->proof.id),
		.hold = order->claim->hold.ns,
	};
	draw_end(w, h);
	event_add(w, w->now + between(&p->rng, SIM_MS / 20, 3 * SIM_MS), EV_START, p->id,
	          h->serial);
	if (p->armed > 0)
		freeze(p, p->armed);
	p->armed = 0;
}

/* The loop hears of it in a moment. */
static void end(struct proc *p, struct handler *h, enum baton_work_how how)
{
	h->waits = h->on = h->dying = false;
	h->over = true;
	h->how = how;
	event_add(p->w, p->w->now + between(&p->rng, 0, 2 * SIM_MS), EV_ENDED, p->id, h->serial);
}

void ward_started(struct proc *p, uint64_t serial)
{
	struct world *w = p->w;
	struct handler *h = by_serial(p, serial);
	if (!h || !h->waits)
		return;
	bool late = p->guard.ns <= proc_now(p).ns;
	if (late)
		count(w, COVER_START_LATE);
	if (late || h->told || p->orphan) {
		end(p, h, BATON_ABANDON);
		return;
	}
	h->waits = false;
	h->on = true;
	say(w, p, "handler of job %" PRIu32 " starts, claim %s", w->grants[h->grant].jobs[0],
	    w->grants[h->grant].id);
	judge_running(p, h);
	int64_t length = length_of(p, &w->grants[h->grant]);
	event_add(w, w->now + length, EV_HANDLER, p->id, serial);
	if (h->hold > 0)
		event_add(w, w->now + h->hold, EV_HOLD, p->id, serial);
	h->hasty = chance(&p->rng, 30);
	int64_t before = h->hasty && length > 3 * SIM_MS ? 3 * SIM_MS : length;
	if (chance(&p->rng, 50))
		event_add(w, w->now + length - between(&p->rng, 0, before), EV_CHECKPOINT, p->id,
		          serial);
}

void ward_checkpoint(struct proc *p, uint64_t serial)
{
	struct handler *h = by_serial(p, serial);
	if (!h || !h->on || h->asks)
		return;
	h->asks = true;
	count(p->w, COVER_CHECKPOINT);
	if (!core_more(p->core, h->run, 1 + (uint32_t)rng_below(&p->rng, SIM_JOIN_MAX)))
		wrong(p->w, "%s does not let a handler ask for more", p->name);
}

/* Who gets something may ask again. */
void ward_more(struct proc *p, const struct core_order *order)
{
	struct world *w = p->w;
	struct handler *h = by_run(p, order->run);
	if (!h || !h->asks) {
		wrong(w, "%s answers a handler that has not asked", p->name);
		return;
	}
	h->asks = false;
	if (order->claim && h->over) {
		core_more_lost(p->core, order->run);
		return;
	}
	if (order->claim) {
		struct grant *g = &w->grants[judge_grant(w, order->claim->proof.id)];
		count(w, COVER_MORE);
		g->given = true;
		say(w, p, "handler of job %" PRIu32 " gets job %" PRIu32 " too",
		    w->grants[h->grant].jobs[0], g->jobs[0]);
		if (h->told || p->stopping || baton_detach_state(&p->detach) == BATON_DETACHED)
			wrong(w, "%s gives more to a handler that is to stop", p->name);
	}
	if (h->on && h->ripe)
		event_add(w, w->now, EV_HANDLER, p->id, h->serial);
	else if (h->on && order->claim && chance(&p->rng, 50))
		event_add(w, w->now + between(&p->rng, 0, SIM_S), EV_CHECKPOINT, p->id, h->serial);
}

void ward_stop(struct proc *p, uint64_t run)
{
	struct world *w = p->w;
	struct handler *h = by_run(p, run);
	if (!h || h->told)
		return;
	h->told = true;
	if (!h->on)
		return;
	say(w, p, "handler of job %" PRIu32 " is told to stop", w->grants[h->grant].jobs[0]);
	if (!p->stopping && p->seen != BATON_DETACHED)
		count(w, COVER_DRAIN);
	if (h->deaf) {
		event_add(w, w->now + GRACE, EV_KILL, p->id, h->serial);
		return;
	}
	if (chance(&p->rng, 80))
		h->how = BATON_ABANDON;
	event_add(w, w->now + between(&p->rng, SIM_MS, 300 * SIM_MS), EV_HANDLER, p->id, h->serial);
}

void ward_handler(struct proc *p, uint64_t serial)
{
	struct world *w = p->w;
	struct handler *h = by_serial(p, serial);
	if (!h || !h->on)
		return;
	h->ripe = h->asks && !h->hasty;
	if (h->ripe)
		return;
	say(w, p, "handler of job %" PRIu32 " ends", w->grants[h->grant].jobs[0]);
	if (w->jobs[w->grants[h->grant].jobs[0]].poison && p->alive) {
		count(w, COVER_POISON);
		proc_die(p);
	}
	end(p, h, h->how);
}

void ward_kill(struct proc *p, uint64_t serial)
{
	struct handler *h = by_serial(p, serial);
	if (!h || !h->on)
		return;
	if (!h->dying)
		count(p->w, COVER_KILL_GRACE);
	say(p->w, p, "handler of job %" PRIu32 " is dead", p->w->grants[h->grant].jobs[0]);
	end(p, h, h->told ? BATON_ABANDON : BATON_FAIL);
}

/* The guardian ends it as at a timeout, whatever its runner does. */
void ward_hold(struct proc *p, uint64_t serial)
{
	struct world *w = p->w;
	struct handler *h = by_serial(p, serial);
	if (!h || !h->on || h->dying || h->told)
		return;
	count(w, COVER_KEY_TTL);
	say(w, p, "handler of job %" PRIu32 " has had its key for too long",
	    w->grants[h->grant].jobs[0]);
	h->how = BATON_FAIL;
	if (!h->deaf)
		event_add(w, w->now + between(&p->rng, SIM_MS, 300 * SIM_MS), EV_HANDLER, p->id,
		          serial);
	event_add(w, w->now + GRACE, EV_KILL, p->id, serial);
}

void ward_kill_all(struct proc *p, enum covered why)
{
	for (size_t i = 0; i < SIM_HANDLERS_MAX; i++) {
		struct handler *h = &p->handlers[i];
		if (!h->on || h->dying)
			continue;
		h->dying = true;
		count(p->w, why);
		event_add(p->w, p->w->now + between(&p->rng, SIM_MS / 10, 20 * SIM_MS), EV_KILL,
		          p->id, h->serial);
	}
}

void ward_guard(struct proc *p)
{
	if (p->guard.ns > proc_now(p).ns)
		return;
	ward_kill_all(p, p->frozen > p->w->now ? COVER_KILL_FROZEN
	                 : p->alive            ? COVER_KILL_LIVE
	                                       : COVER_KILL_DEAD);
}

void ward_bury(struct proc *p)
{
	p->buried = true;
	ward_kill_all(p, COVER_KILL_DEAD);
}

void ward_deadline(struct proc *p, struct baton_mono at)
{
	if (at.ns == p->guard.ns)
		return;
	p->guard = at;
	int64_t when = proc_when(p, at);
	if (when != INT64_MAX)
		event_add(p->w, when, EV_GUARD, p->id, 0);
}

void ward_ended(struct proc *p, uint64_t serial)
{
	struct world *w = p->w;
	struct handler *h = by_serial(p, serial);
	if (!h || !h->over)
		return;
	const struct job *job = &w->jobs[w->grants[h->grant].jobs[0]];
	struct core_end end = {
		.how = h->how,
		.error = h->how == BATON_FAIL || h->how == BATON_REJECT ? BATON_STR("no")
	                                                                : BATON_STR(""),
		.delay = {h->how == BATON_SNOOZE ? 300 * SIM_MS : 0},
	};
	if (h->how == BATON_COMPLETE && job->emit > 0) {
		end.emits = &w->jobs[job->emit].batch;
		end.emit_count = 1;
	}
	uint64_t run = h->run;
	*h = (struct handler){.serial = 0};
	core_ended(p->core, run, &end, proc_now(p));
}
