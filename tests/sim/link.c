/* Messages between runners and the store: late, lost, repeated, or never answered. */
#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "sim/sim.h"

static const char *const kinds[] = {
	[CORE_REGISTER] = "register", [CORE_SURVEY] = "survey", [CORE_TAKE_OVER] = "take over",
	[CORE_TAKE] = "take",         [CORE_GIVE] = "give",     [CORE_TICK] = "tick",
	[CORE_SETTLE] = "settle",     [CORE_PROVE] = "prove",   [CORE_TELL] = "tell",
	[CORE_WISH] = "wish",         [CORE_LEAVE] = "leave",   [CORE_PROBE] = "probe",
	[CORE_MORE] = "more",
};

static bool hit(struct proc *p, enum action_kind kind, unsigned percent)
{
	return plan_window(p->w->plan, kind, p->seat, p->w->now) && chance(&p->rng, percent);
}

static enum call_fate fate_of(struct proc *p)
{
	if (hit(p, ACT_HOLE, 100))
		return CALL_LOST;
	if (hit(p, ACT_LOSE, 60))
		return CALL_LOST;
	if (hit(p, ACT_DEAFEN, 60))
		return CALL_DEAF;
	if (hit(p, ACT_REPEAT, 60))
		return CALL_TWICE;
	if (hit(p, ACT_BUSY, 70))
		return CALL_BUSY;
	if (hit(p, ACT_ERROR, 50))
		return CALL_ERROR;
	return CALL_FINE;
}

/* How long a message takes, in one direction. */
static int64_t way(struct proc *p)
{
	int64_t slow = 0;
	if (hit(p, ACT_SLOW, 60)) {
		count(p->w, COVER_SLOW);
		slow = between(&p->rng, 100 * SIM_MS, 5 * SIM_S);
	}
	return slow + between(&p->rng, SIM_MS / 20, p->w->plan->near ? SIM_MS : 5 * SIM_MS);
}

/* How long it takes to find out that there is no answer. */
static int64_t patience(struct proc *p)
{
	const struct action *hole = plan_window(p->w->plan, ACT_HOLE, p->seat, p->w->now);
	if (hole && hole->arg % 2 == 0)
		return hole->at + hole->span - p->w->now;
	return chance(&p->rng, 50) ? between(&p->rng, SIM_MS, 50 * SIM_MS)
	                           : between(&p->rng, SIM_S / 2, 5 * SIM_S);
}

static void count_fate(struct proc *p, enum call_fate fate)
{
	static const enum covered seen[] = {
		[CALL_LOST] = COVER_LOST, [CALL_DEAF] = COVER_DEAF,   [CALL_TWICE] = COVER_TWICE,
		[CALL_BUSY] = COVER_BUSY, [CALL_ERROR] = COVER_ERROR,
	};
	if (fate == CALL_FINE)
		return;
	count(p->w, seen[fate]);
	if (fate == CALL_LOST && plan_window(p->w->plan, ACT_HOLE, p->seat, p->w->now))
		count(p->w, COVER_HOLE);
}

static bool is_executed(enum call_fate fate)
{
	return fate == CALL_FINE || fate == CALL_DEAF || fate == CALL_TWICE;
}

/* A takeover stops the victim's beat first, and then has no time for the rest. */
static bool is_half_done(const struct call *call)
{
	return call->request.kind == CORE_TAKE_OVER && call->fate == CALL_BUSY;
}

void link_ask(struct proc *p, const struct core_request *request)
{
	struct world *w = p->w;
	struct call *call = &p->call;
	CHECK(!call->on);
	*call = (struct call){
		.on = true,
		.serial = ++w->serial,
		.fate = fate_of(p),
		.request = *request,
		.sent = proc_now(p),
	};
	count_fate(p, call->fate);
	call->answer.sent = call->sent;
	int64_t there = way(p);
	call->delay = way(p);
	if (is_executed(call->fate) || is_half_done(call))
		event_add(w, w->now + there, EV_EXEC, p->id, call->serial);
	if (call->fate != CALL_FINE && call->fate != CALL_TWICE)
		event_add(w, w->now + there + patience(p), EV_REPLY, p->id, call->serial);
}

/* Jobs that the runner had claimed vanish with it. */
static void vanish(struct world *w, uint64_t number)
{
	for (uint32_t i = 0; i < w->grant_count; i++) {
		const struct grant *g = &w->grants[i];
		enum baton_cancelled answer;
		if (g->number == number && !g->ended)
			baton_work_cancel(w->store, &w->jobs[g->jobs[0]].id, 1, &answer);
	}
}

/* The store accepts the end of a claim that is not the runner's any more. */
static void accept(struct proc *p, struct core_request *r, struct core_answer *a)
{
	struct world *w = p->w;
	for (size_t i = 0; i < r->end_count; i++) {
		uint32_t grant = judge_grant(w, r->ends[i].proof.id);
		if (a->err == BATON_OK && r->ended[i].err != BATON_NOT_HELD)
			continue;
		r->ended[i].err = BATON_OK;
		for (uint32_t k = 0; k < w->grants[grant].count; k++) {
			enum baton_cancelled answer;
			baton_work_cancel(w->store, &w->jobs[w->grants[grant].jobs[k]].id, 1,
			                  &answer);
		}
	}
	a->err = BATON_OK;
}

static void make_wrong(struct proc *p, struct core_request *r, struct core_answer *a)
{
	enum variant variant = p->w->plan->variant;
	if (variant == VARIANT_UNFENCED && r->kind == CORE_TICK &&
	    (a->err == BATON_OK || a->err == BATON_NOT_HELD))
		accept(p, r, a);
	if (variant == VARIANT_UNRECOVERED && r->kind == CORE_TAKE_OVER && a->err == BATON_OK)
		vanish(p->w, r->victim->number);
}

/* What it may change in the store, but for beats. */
static void note_write(struct world *w, enum core_kind kind)
{
	const bool work = kind == CORE_TICK || kind == CORE_MORE;
	const bool more = !work && kind != CORE_SURVEY && kind != CORE_PROBE && kind != CORE_PROVE;
	w->written |= work || more;
	w->moved |= more;
}

/* Whoever takes over dies between the two steps of it, or the second fails. */
static bool cut(struct proc *p)
{
	struct call *call = &p->call;
	const bool dies = call->request.kind == CORE_TAKE_OVER && !p->w->healed &&
	                  chance(&p->rng, p->alive ? 5 : 50);
	if (!dies && !is_half_done(call))
		return false;
	if (dies)
		proc_die(p);
	enum baton_err e = baton_runner_stop(p->w->store, call->request.victim);
	say(p->w, p, "only stops the beat of %" PRIu64 ": %s", call->request.victim->number,
	    baton_err_name(e));
	if (e == BATON_OK)
		count(p->w, dies ? COVER_TAKEOVER_DIES : COVER_TAKEOVER_HALF);
	return true;
}

static void carry(struct proc *p)
{
	struct call *call = &p->call;
	judge_request(p, &call->request);
	note_write(p->w, call->request.kind);
	const bool registers = call->request.kind == CORE_REGISTER;
	struct baton_owner was;
	if (registers)
		sim_site_enter(p, &was);
	carry_out(&p->carrier, &call->request, &call->answer);
	if (registers)
		sim_site_leave(p, &was);
	make_wrong(p, &call->request, &call->answer);
	judge_answer(p, &call->request, &call->answer);
	say(p->w, p, "%s of %" PRIu64 ": %s", kinds[call->request.kind],
	    p->carrier.runner ? baton_runner_number(p->carrier.runner) : 0,
	    call->answer.err == BATON_OK ? "ok" : baton_err_name(call->answer.err));
}

/* Whether it does no harm to do it again, so that somebody between here and there may. */
static bool is_repeatable(const struct core_request *r)
{
	return r->kind != CORE_REGISTER && r->kind != CORE_MORE &&
	       (r->kind != CORE_TICK || r->claims == 0);
}

/* Nobody learns what came of it, and so it is not known here either. */
static void forget(struct proc *p, struct baton_runner *before)
{
	struct call *call = &p->call;
	baton_work_claims_free(call->answer.claims);
	call->answer.claims = NULL;
	p->carrier.runner = before;
	p->runner = call->request.kind == CORE_REGISTER ? NULL : before;
}

/* Whoever writes to a shard whose rows a user's transaction keeps waits for its end; beats do not.
 * 0: nobody keeps them. */
static int64_t held_until(const struct proc *p)
{
	const struct world *w = p->w;
	const struct core_request *r = &p->call.request;
	const struct action *a = plan_window(w->plan, ACT_HOLD, PLAN_SEATS_MAX, w->now);
	if (!a || (r->kind != CORE_TICK && r->kind != CORE_MORE && r->kind != CORE_GIVE &&
	           r->kind != CORE_TAKE_OVER))
		return 0;
	uint32_t queue = (uint32_t)(a->arg % PLAN_QUEUES);
	uint32_t shard = (uint32_t)(a->arg / PLAN_QUEUES % sim_shards[queue]);
	uint64_t number = r->kind == CORE_TAKE_OVER ? r->victim->number : p->number;
	if (number == 0 || w->shards[queue][shard].runner != number)
		return 0;
	return a->at + a->span < w->plan->end ? a->at + a->span : w->plan->end;
}

/* It is done then, or not at all if that takes longer than a statement may. */
static void hold(struct proc *p, int64_t until)
{
	struct world *w = p->w;
	struct call *call = &p->call;
	if (until - w->now <= w->plan->ttl / 3) {
		count(w, COVER_HELD);
		event_add(w, until, EV_EXEC, p->id, call->serial);
		return;
	}
	count(w, COVER_HELD_LONG);
	call->fate = CALL_BUSY;
	event_add(w, w->now + w->plan->ttl / 3, EV_REPLY, p->id, call->serial);
}

void link_exec(struct proc *p, uint64_t serial)
{
	struct world *w = p->w;
	struct call *call = &p->call;
	if (!call->on || call->serial != serial)
		return;
	if (!p->alive) {
		if (w->plan->near && chance(&p->rng, 50))
			return;
		count(w, COVER_DEAD_EXEC);
	}
	int64_t until = held_until(p);
	if (until > w->now) {
		hold(p, until);
		return;
	}
	if (cut(p))
		return;
	struct baton_runner *before = p->carrier.runner;
	struct baton_runner *beats = p->runner;
	bool again = call->fate == CALL_TWICE;
	bool deaf = call->fate == CALL_DEAF || (again && !is_repeatable(&call->request));
	carry(p);
	if (again) {
		baton_work_claims_free(call->answer.claims);
		carry(p);
	}
	if (deaf) {
		forget(p, call->request.kind == CORE_REGISTER ? NULL : before);
		call->fate = CALL_DEAF;
	}
	call->done = !deaf;
	if (!deaf || again)
		event_add(w, w->now + call->delay, EV_REPLY, p->id, serial);
	if (p->runner && p->runner != beats && p->alive)
		event_add(w, w->now, EV_PULSE, p->id, baton_runner_number(p->runner));
}

static enum baton_err err_of(enum call_fate fate)
{
	return fate == CALL_BUSY ? BATON_BUSY : fate == CALL_ERROR ? BATON_SYSTEM : BATON_STORAGE;
}

static void told(struct proc *p, const struct core_answer *a)
{
	if (p->call.request.kind == CORE_REGISTER && a->err == BATON_OK)
		p->proved = p->call.sent;
}

void link_reply(struct proc *p, uint64_t serial)
{
	struct call *call = &p->call;
	if (!call->on || call->serial != serial)
		return;
	call->on = false;
	call->answer.sent = call->sent;
	if (!call->done) {
		call->answer = (struct core_answer){
			.err = err_of(call->fate),
			.why = "the network is away",
			.sent = call->sent,
		};
	}
	say(p->w, p, "hears of %s: %s", kinds[call->request.kind],
	    baton_err_name(call->answer.err));
	told(p, &call->answer);
	if (p->w->plan->variant == VARIANT_RECEIVED)
		call->answer.sent = proc_now(p);
	core_answered(p->core, proc_now(p), &call->answer);
}

/* Beats. In one host's memory they are never lost. */

void link_pulse(struct proc *p, uint64_t number)
{
	struct world *w = p->w;
	struct beat *b = &p->beat;
	if (!p->runner || b->on || number != baton_runner_number(p->runner))
		return;
	*b = (struct beat){
		.on = true,
		.serial = ++w->serial,
		.runner = p->runner,
		.fate = w->plan->near ? CALL_FINE : fate_of(p),
		.sent = proc_now(p),
		.err = BATON_STORAGE,
	};
	int64_t there = w->plan->near ? 0 : way(p);
	b->delay = w->plan->near ? 0 : way(p);
	if (is_executed(b->fate))
		event_add(w, w->now + there, EV_BEAT_EXEC, p->id, b->serial);
	if (!is_executed(b->fate) || b->fate == CALL_DEAF) {
		count(w, b->fate == CALL_DEAF ? COVER_BEAT_DEAF : COVER_BEAT_LOST);
		event_add(w, w->now + there + patience(p), EV_BEAT_REPLY, p->id, b->serial);
	}
}

void link_beat_exec(struct proc *p, uint64_t serial)
{
	struct beat *b = &p->beat;
	if (!b->on || b->serial != serial)
		return;
	enum baton_err err = baton_runner_beat(b->runner);
	if (b->fate == CALL_DEAF)
		return;
	b->err = err;
	event_add(p->w, p->w->now + b->delay, EV_BEAT_REPLY, p->id, serial);
}

void link_beat_reply(struct proc *p, uint64_t serial)
{
	struct beat *b = &p->beat;
	struct baton_mono now = proc_now(p);
	if (!b->on || b->serial != serial)
		return;
	uint64_t number = baton_runner_number(b->runner);
	b->on = false;
	if (p->runner)
		event_add(p->w, proc_when(p, baton_mono_add(now, baton_duration_s(1))), EV_PULSE,
		          p->id, baton_runner_number(p->runner));
	if (b->err == BATON_OK && number == core_number(p->core) && b->sent.ns > p->proved.ns)
		p->proved = b->sent;
	if (b->err == BATON_NOT_HELD && number == core_number(p->core))
		count(p->w, COVER_LOST_NOTICED);
	enum baton_err err = b->fate == CALL_BUSY    ? BATON_BUSY
	                     : b->fate == CALL_ERROR ? BATON_SYSTEM
	                                             : b->err;
	if (err != BATON_OK)
		say(p->w, p, "beat of %" PRIu64 ": %s", number, baton_err_name(err));
	bool received = p->w->plan->variant == VARIANT_RECEIVED;
	core_beaten(p->core, number, err, "the network is away", received ? now : b->sent, now);
}
