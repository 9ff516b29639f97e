/* What is to happen in a run. */
#include "sim/plan.h"

#include <string.h>

#include "sim/sim.h"

/* How often each kind comes, among those that are drawn. */
static const struct {
	enum action_kind kind;
	unsigned weight;
	bool far; /* only where there is a network */
} faults[] = {
	{ACT_CRASH, 6, false},   {ACT_FREEZE, 8, false}, {ACT_ORPHAN, 2, false},
	{ACT_STEP, 3, false},    {ACT_STOP, 4, false},   {ACT_RETIRE, 2, false},
	{ACT_REPLACE, 2, false}, {ACT_DETACH, 5, false}, {ACT_WISH, 4, false},
	{ACT_LOSE, 4, false},    {ACT_DEAFEN, 6, false}, {ACT_REPEAT, 4, true},
	{ACT_HOLE, 6, true},     {ACT_SLOW, 8, true},    {ACT_BUSY, 4, false},
	{ACT_ERROR, 2, false},   {ACT_CANCEL, 6, false}, {ACT_PAUSE, 2, false},
	{ACT_HOLD, 5, true},
};

const char *action_name(enum action_kind kind)
{
	static const char *const names[ACT_END] = {
		[ACT_PUT] = "put",       [ACT_CANCEL] = "cancel",   [ACT_PAUSE] = "pause",
		[ACT_RESUME] = "resume", [ACT_WISH] = "wish",       [ACT_DETACH] = "detach",
		[ACT_ATTACH] = "attach", [ACT_JOIN] = "join",       [ACT_STOP] = "stop",
		[ACT_RETIRE] = "retire", [ACT_REPLACE] = "replace", [ACT_CRASH] = "crash",
		[ACT_FREEZE] = "freeze", [ACT_ORPHAN] = "orphan",   [ACT_STEP] = "step",
		[ACT_LOSE] = "lose",     [ACT_DEAFEN] = "deafen",   [ACT_REPEAT] = "repeat",
		[ACT_HOLE] = "hole",     [ACT_SLOW] = "slow",       [ACT_BUSY] = "busy",
		[ACT_ERROR] = "error",   [ACT_HOLD] = "hold",
	};
	return names[kind];
}

static void add(struct plan *plan, const struct action *a)
{
	if (plan->count < PLAN_ACTIONS_MAX)
		plan->actions[plan->count++] = *a;
}

static enum action_kind draw(const struct plan *plan, struct rng *rng)
{
	unsigned all = 0;
	size_t count = sizeof faults / sizeof *faults;
	for (size_t i = 0; i < count; i++)
		all += faults[i].weight;
	for (;;) {
		unsigned at = (unsigned)rng_below(rng, all);
		size_t i = 0;
		for (; at >= faults[i].weight; i++)
			at -= faults[i].weight;
		if (!faults[i].far || !plan->near)
			return faults[i].kind;
	}
}

/* How long it lasts: most are short, some longer than any patience. */
static int64_t span_of(const struct plan *plan, struct rng *rng, enum action_kind kind)
{
	if (kind == ACT_FREEZE && chance(rng, 50))
		return between(rng, plan->ttl - plan->margin, plan->ttl * 5 / 2);
	if (kind == ACT_STEP)
		return (chance(rng, 50) ? 1 : -1) * 3600 * SIM_S;
	if (chance(rng, 40))
		return between(rng, plan->ttl / 2, plan->ttl * 2);
	return between(rng, 50 * SIM_MS, plan->ttl / 2);
}

static void add_fault(struct plan *plan, struct rng *rng)
{
	struct action a = {.kind = draw(plan, rng)};
	a.seat = (uint32_t)rng_below(rng, plan->seats);
	a.at = between(rng, SIM_S, plan->end);
	a.span = span_of(plan, rng, a.kind);
	a.arg = rng_next(rng);
	if (a.kind == ACT_HOLD || (a.kind >= ACT_LOSE && chance(rng, 20)))
		a.seat = PLAN_SEATS_MAX;
	add(plan, &a);
	/* What the transaction puts is there when it commits. */
	if (a.kind == ACT_HOLD) {
		a.kind = ACT_PUT;
		a.at += a.span;
		add(plan, &a);
	}
	if (a.kind == ACT_DETACH || a.kind == ACT_PAUSE) {
		a.kind = a.kind == ACT_DETACH ? ACT_ATTACH : ACT_RESUME;
		a.at += a.span;
		add(plan, &a);
	}
	/* What was heard late is the last for long. */
	if ((a.kind == ACT_SLOW || a.kind == ACT_FREEZE) && chance(rng, 60)) {
		a.at += between(rng, 0, a.span);
		a.kind = chance(rng, 50) || plan->near ? ACT_FREEZE : ACT_HOLE;
		a.span = between(rng, plan->ttl, 2 * plan->ttl);
		a.arg = rng_next(rng);
		add(plan, &a);
	}
	/* Twice, the second time in the middle of the way back. */
	if (a.kind == ACT_ATTACH && chance(rng, 50)) {
		a.kind = ACT_DETACH;
		a.at += between(rng, 50 * SIM_MS, SIM_S);
		a.span = between(rng, SIM_S, 5 * SIM_S);
		add(plan, &a);
		a.kind = ACT_ATTACH;
		a.at += a.span;
		add(plan, &a);
	}
}

static void add_work(struct plan *plan, struct rng *rng)
{
	uint64_t puts = 15 + rng_below(rng, 45);
	for (uint64_t i = 0; i < puts; i++) {
		const struct action a = {
			.kind = ACT_PUT,
			.at = between(rng, 0, plan->end),
			.arg = rng_next(rng),
		};
		add(plan, &a);
	}
}

static void add_seats(struct plan *plan, struct rng *rng)
{
	for (uint32_t i = 0; i < plan->seats; i++) {
		const struct action a = {
			.kind = ACT_JOIN,
			.seat = i,
			.at = between(rng, 0, chance(rng, 70) ? SIM_S : plan->end / 2),
			.arg = rng_next(rng),
		};
		add(plan, &a);
	}
}

void plan_make(struct plan *plan, uint64_t seed, enum variant variant)
{
	struct rng rng = rng_seed(seed);
	memset(plan, 0, sizeof *plan);
	plan->seed = seed;
	plan->variant = variant;
	plan->near = chance(&rng, 30);
	plan->hosts = plan->near ? 1 : 1 + (uint32_t)rng_below(&rng, PLAN_SEATS_MAX);
	plan->seats = 2 + (uint32_t)rng_below(&rng, PLAN_SEATS_MAX - 1);
	plan->ttl = chance(&rng, 50) ? 10 * SIM_S : 6 * SIM_S;
	plan->margin = plan->ttl == 10 * SIM_S ? 2 * SIM_S : 3 * SIM_S / 2;
	plan->end = between(&rng, 20 * SIM_S, 60 * SIM_S);
	add_seats(plan, &rng);
	add_work(plan, &rng);
	uint64_t count = rng_below(&rng, 14);
	for (uint64_t i = 0; i < count; i++)
		add_fault(plan, &rng);
}

const struct action *plan_window(const struct plan *plan, enum action_kind kind, uint32_t seat,
                                 int64_t now)
{
	for (size_t i = 0; i < plan->count; i++) {
		const struct action *a = &plan->actions[i];
		if (a->kind == kind && (a->seat == seat || a->seat == PLAN_SEATS_MAX) &&
		    a->at <= now && now < a->at + a->span && now < plan->end)
			return a;
	}
	return NULL;
}
