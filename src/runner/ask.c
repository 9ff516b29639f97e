/* What a runner asks the store for next. */
#include <stdio.h>

#include "runner/state.h"

#define BACKOFF_MIN_MS 100
#define BACKOFF_MAX_MS 2000
#define REPORTS_IDLE 11 /* that are left out while nothing happens */

static bool ask(struct core *c, enum core_kind kind)
{
	c->asked = true;
	c->request.kind = kind;
	return true;
}

/* Every probe comes later than the one before, until one goes well. */
static void probe_later(struct core *c, struct baton_mono now)
{
	const struct baton_duration min = baton_duration_ms(BACKOFF_MIN_MS);
	const struct baton_duration max = baton_duration_ms(BACKOFF_MAX_MS);
	c->backoff.ns = c->backoff.ns == 0           ? min.ns
	                : c->backoff.ns < max.ns / 2 ? c->backoff.ns * 2
	                                             : max.ns;
	c->probe_at = baton_mono_add(now, c->backoff);
}

static bool probe(struct core *c, enum core_kind kind, struct baton_mono now)
{
	if (!core_due(c->probe_at, now))
		return false;
	probe_later(c, now);
	return ask(c, kind);
}

static void add_end(struct core *c, struct run *r, bool tied)
{
	size_t n = c->request.end_count++;
	c->ends[n] = (struct baton_work_end){
		.proof = r->claim->proof,
		.how = r->end.how,
		.result = r->end.result,
		.emits = r->end.emits,
		.emit_count = r->end.emit_count,
		.error = r->end.error,
		.delay = r->end.delay,
		.tied = tied,
	};
	c->end_runs[n] = (uint32_t)(r - c->runs.all);
	r->is = RUN_SENT;
}

static void add_ends(struct core *c)
{
	size_t max = c->singly > 0 ? 1 : BATON_CLAIMS_MAX - CORE_EXTRAS_OF_RUN;
	struct run *r;
	c->groups = 0;
	while (c->request.end_count < max && (r = runs_over(c))) {
		add_end(c, r, false);
		for (struct run *x = run_next(c, r); x; x = run_next(c, x))
			add_end(c, x, true);
		c->groups++;
	}
	c->request.ends = c->ends;
	c->request.ended = c->ended;
}

static void add_shard(struct core *c, const struct served *s, uint32_t number, uint32_t claims)
{
	if (c->request.shard_count == BATON_SHARDS_MAX)
		return;
	c->shards[c->request.shard_count++] = (struct baton_shard){
		.queue = s->serve->queue,
		.number = number,
		.claims = claims,
		.max = s->serve->join,
	};
}

static uint32_t slots_free(const struct core *c)
{
	uint32_t free = c->runs.running < c->o.slots ? c->o.slots - c->runs.running : 0;
	uint64_t left = c->o.limit > 0 ? c->o.limit - c->counts.claimed : UINT64_MAX;
	free = left < free ? (uint32_t)left : free;
	/* What ends faster than the store is told waits in its place; some are for checkpoints. */
	uint32_t kept = CORE_EXTRAS_MAX - c->runs.extras;
	uint32_t spare = c->runs.spare.count > kept ? c->runs.spare.count - kept : 0;
	free = spare < free ? spare : free;
	return free < BATON_CLAIMS_MAX ? free : BATON_CLAIMS_MAX;
}

/* The queue whose share is the earliest to be due, of those that are not marked. */
static struct served *least_served(struct core *c, const bool *marked)
{
	struct served *least = NULL;
	for (size_t i = 0; i < c->o.serve_count; i++) {
		struct served *s = &c->served[i];
		if (!marked[i] && (!least || s->pass < least->pass))
			least = s;
	}
	return least;
}

static void add_queue(struct core *c, const struct served *s, uint32_t claims)
{
	for (uint32_t i = 0; i < s->count; i++) {
		uint32_t number = (s->turn + i) % s->count;
		if (s->shards[number].is == SHARD_MINE)
			add_shard(c, s, number, claims);
	}
}

/* Where work is wanted from. Whoever had least for its weight lately comes first. */
static void add_wanted(struct core *c, uint32_t claims)
{
	bool marked[CORE_QUEUES_MAX] = {false};
	struct served *s;
	while ((s = least_served(c, marked))) {
		marked[s - c->served] = true;
		if (s->usable && !s->paused)
			add_queue(c, s, claims);
	}
	if (c->request.shard_count > 0)
		c->request.claims = claims;
}

static bool ask_tick(struct core *c)
{
	uint32_t free = c->stale || c->stopping || !c->hungry ? 0 : slots_free(c);
	add_ends(c);
	if (free > 0)
		add_wanted(c, free);
	if (free > 0) {
		c->hungry = false;
		c->empty = c->empty || c->request.claims == 0;
	}
	if (c->request.end_count == 0 && c->request.claims == 0)
		return false;
	return ask(c, CORE_TICK);
}

/* What is claimed and known here. */
static bool ask_settle(struct core *c)
{
	for (uint32_t i = 0; i < c->runs.max; i++) {
		if (c->runs.all[i].is != RUN_NONE)
			c->proofs[c->request.proof_count++] = c->runs.all[i].claim->proof;
	}
	return ask(c, CORE_SETTLE);
}

/* Shards in that state in which nothing is under way. */
static bool ask_shards(struct core *c, enum shard_is is, enum core_kind kind)
{
	for (size_t i = 0; i < c->o.serve_count; i++) {
		for (uint32_t n = 0; n < c->served[i].count; n++) {
			const struct shard *shard = &c->served[i].shards[n];
			if (shard->is == is && shard->runs == 0 && shard->visits == 0)
				add_shard(c, &c->served[i], n, 0);
		}
	}
	return c->request.shard_count > 0 && ask(c, kind);
}

/* Whether something has happened that a report tells of, and the last one is old enough; without
 * anything it has to be older. */
static bool is_report_due(const struct core *c, struct baton_mono now)
{
	struct baton_duration idle = {c->o.report.ns * REPORTS_IDLE};
	if (c->o.report.ns > 0 && c->progressed && core_due(c->progress_at, now))
		return true;
	return c->o.report.ns > 0 && core_due(c->report_at, now) &&
	       (core_events(c) != c->reported || core_due(baton_mono_add(c->report_at, idle), now));
}

/* What it is at, and what it has done, for whoever looks at the runners. */
static bool ask_tell(struct core *c)
{
	struct baton_detach_info info;
	const char *state = c->stopping || c->weight == 0 ? "draining" : "attached";
	baton_detach_look(c->o.detach, &info);
	if (c->stale)
		snprintf(c->request.text, sizeof c->request.text, "detached: %.200s", info.text);
	else
		snprintf(c->request.text, sizeof c->request.text, "%s", state);
	c->told = true;
	c->progressed = false;
	c->reporting = core_events(c);
	return ask(c, CORE_TELL);
}

/* The store forgets with a registration what was asked of the runner, and knows nothing of what was
 * asked here: it is told, so that whoever asks for something else is heard. */
static bool ask_note(struct core *c)
{
	c->request.wish = c->want;
	return ask(c, CORE_WISH);
}

/* The registration is one from before a detachment: its handlers end, what they did is sent, and it
 * is given up. Each step is also a probe. */
static bool ask_stale(struct core *c, struct baton_mono now)
{
	if (c->number == 0)
		return probe(c, CORE_PROBE, now);
	if (!core_due(c->probe_at, now))
		return false;
	probe_later(c, now);
	if (c->runs.unsent > 0)
		return ask_tick(c);
	if (c->runs.running > 0 || c->visits > 0)
		return ask(c, CORE_PROVE);
	/* What is wanted of it is forgotten with the registration. */
	if (!c->manual && !c->heard && !c->stopping)
		return ask(c, CORE_SURVEY);
	if (!c->manual || c->stopping)
		return ask(c, CORE_LEAVE);
	if (ask_shards(c, SHARD_DROPPED, CORE_GIVE))
		return true;
	if (!c->noted)
		return ask_note(c);
	return c->told && !is_report_due(c, now) ? ask(c, CORE_SURVEY) : ask_tell(c);
}

static bool ask_take_over(struct core *c)
{
	c->request.victim = &c->victim;
	return ask(c, CORE_TAKE_OVER);
}

/* The name may be taken by somebody who has to go first. */
static bool ask_register(struct core *c, struct baton_mono now)
{
	if (c->take_over)
		return ask_take_over(c);
	c->request.victim = &c->victim;
	c->request.wish = BATON_WISH_LEAVE;
	if (c->wish)
		return ask(c, CORE_WISH);
	return probe(c, CORE_REGISTER, now);
}

static bool ask_attached(struct core *c, struct baton_mono now)
{
	bool look = !c->stopping && core_due(c->survey_at, now);
	if (!core_due(c->again_at, now))
		return false;
	if (c->take_over)
		return ask_take_over(c);
	if (c->doubt)
		return ask_settle(c);
	if (look && !c->looked)
		return ask(c, CORE_SURVEY);
	if (!c->noted)
		return ask_note(c);
	if (!c->mored && more_ask(c))
		return ask(c, CORE_MORE);
	if (ask_tick(c) || ask_shards(c, SHARD_LEAVING, CORE_GIVE))
		return true;
	if (more_ask(c))
		return ask(c, CORE_MORE);
	if (!c->stopping && ask_shards(c, SHARD_WANTED, CORE_TAKE))
		return true;
	if (c->stopping && c->runs.running == 0 && c->runs.unsent == 0 && c->visits == 0)
		return ask(c, CORE_LEAVE);
	if (!c->told || is_report_due(c, now))
		return ask_tell(c);
	return look && ask(c, CORE_SURVEY);
}

bool ask_next(struct core *c, struct baton_mono now)
{
	enum baton_attachment state = baton_detach_state(c->o.detach);
	if (c->asked || c->done)
		return false;
	c->request = (struct core_request){
		.shards = c->shards,
		.answers = c->answers,
		.proofs = c->proofs,
	};
	if (c->stale)
		return ask_stale(c, now);
	if (state == BATON_DETACHED && (!c->manual || c->number > 0 || c->stopping))
		return probe(c, CORE_PROBE, now);
	if (c->number == 0)
		return !c->stopping && ask_register(c, now);
	if (state == BATON_SUSPECT)
		return core_due(c->prove_at, now) && ask(c, CORE_PROVE);
	return ask_attached(c, now);
}
