/* What a runner does, decided. */
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/mem.h"
#include "runner/metrics.h"
#include "runner/state.h"

#define NEW(c, field, count) ((c)->field = mem_new((c)->o.alloc, (count), sizeof *(c)->field))
#define FREE(c, field, count) mem_free((c)->o.alloc, (c)->field, (count), sizeof *(c)->field)

static bool has_room(struct core *c)
{
	return NEW(c, sights, BATON_RUNNERS_MAX) && NEW(c, members, BATON_RUNNERS_MAX) &&
	       NEW(c, takes, BATON_QUEUE_SHARDS_MAX) && NEW(c, gives, BATON_QUEUE_SHARDS_MAX) &&
	       NEW(c, shards, BATON_SHARDS_MAX) && NEW(c, answers, BATON_SHARDS_MAX) &&
	       NEW(c, ends, BATON_CLAIMS_MAX) && NEW(c, ended, BATON_CLAIMS_MAX) &&
	       NEW(c, end_runs, BATON_CLAIMS_MAX) && NEW(c, proofs, c->runs.max);
}

enum baton_err core_new(const struct core_options *options, struct core **ret_core)
{
	struct core *c = mem_new(options->alloc, 1, sizeof *c);
	if (!c)
		return fail_memory(sizeof *c, "a runner");
	c->o = *options;
	c->weight = options->weight;
	c->want = BATON_WISH_WORK;
	c->hungry = true;
	for (size_t i = 0; i < options->serve_count; i++)
		c->served[i].serve = &options->serves[i];
	enum baton_err e = runs_init(&c->runs, options->alloc, options->slots);
	if (e == BATON_OK && !has_room(c))
		e = fail_memory(BATON_SHARDS_MAX * sizeof *c->shards, "a runner");
	if (e != BATON_OK) {
		core_free(c);
		return e;
	}
	*ret_core = c;
	return BATON_OK;
}

void core_free(struct core *c)
{
	if (!c)
		return;
	FREE(c, sights, BATON_RUNNERS_MAX);
	FREE(c, members, BATON_RUNNERS_MAX);
	FREE(c, takes, BATON_QUEUE_SHARDS_MAX);
	FREE(c, gives, BATON_QUEUE_SHARDS_MAX);
	FREE(c, shards, BATON_SHARDS_MAX);
	FREE(c, answers, BATON_SHARDS_MAX);
	FREE(c, ends, BATON_CLAIMS_MAX);
	FREE(c, ended, BATON_CLAIMS_MAX);
	FREE(c, end_runs, BATON_CLAIMS_MAX);
	FREE(c, proofs, c->runs.max);
	runs_done(&c->runs, c->o.alloc);
	for (size_t i = 0; i < c->o.serve_count; i++) {
		mem_free(c->o.alloc, c->served[i].shards, c->served[i].count,
		         sizeof *c->served[i].shards);
		mem_free(c->o.alloc, c->served[i].owners, c->served[i].count,
		         sizeof *c->served[i].owners);
	}
	mem_free(c->o.alloc, c, 1, sizeof *c);
}

struct baton_mono core_deadline(const struct core *c)
{
	return baton_mono_add(c->sent, (struct baton_duration){c->o.ttl.ns - c->o.margin.ns});
}

struct baton_mono core_hard_stop(const struct core *c)
{
	if (c->runs.running == 0 && c->visits == 0 && c->number == 0)
		return BATON_MONO_NEVER;
	return baton_mono_add(c->sent, (struct baton_duration){c->o.ttl.ns - c->o.margin.ns / 2});
}

/* Nothing is done any more under the registration as it is. */
static void drop_all(struct core *c, struct baton_mono now)
{
	struct baton_detach_info info;
	baton_detach_look(c->o.detach, &info);
	c->counts.detached++;
	c->counts.detachments[info.why]++;
	c->stale = true;
	c->told = false;
	c->heard = false;
	c->take_over = false;
	c->wish = false;
	c->probe_at = now;
	c->backoff = (struct baton_duration){0};
	for (size_t i = 0; i < c->o.serve_count; i++) {
		for (uint32_t n = 0; n < c->served[i].count; n++) {
			struct shard *shard = &c->served[i].shards[n];
			shard->is = shard->is == SHARD_MINE || shard->is == SHARD_LEAVING
			                    ? SHARD_DROPPED
			                    : SHARD_NOT_MINE;
		}
	}
	runs_stop(c);
}

/* Ends that nobody can be told of: the registration is gone, and with it the claims. */
static void refuse_unsent(struct core *c)
{
	for (uint32_t i = 0; i < c->runs.max && c->runs.unsent > 0; i++) {
		if (c->runs.all[i].is == RUN_TIED)
			run_drop(c, &c->runs.all[i]);
		if (c->runs.all[i].is == RUN_ENDED) {
			c->counts.refused++;
			c->served[c->runs.all[i].queue].metrics.refused++;
			run_drop(c, &c->runs.all[i]);
		}
	}
}

void core_notice(struct core *c, struct baton_mono now)
{
	struct baton_detach_info info;
	bool detached = baton_detach_state(c->o.detach) == BATON_DETACHED;
	if (detached && !c->detached)
		drop_all(c, now);
	if (!detached && c->detached)
		c->counts.attachments++;
	c->detached = detached;
	if (!detached && !c->stale && !c->manual)
		return;
	baton_detach_look(c->o.detach, &info);
	if (info.manual != c->manual) {
		c->want = info.manual ? BATON_WISH_DETACH : BATON_WISH_WORK;
		c->noted = false;
	}
	c->manual = info.manual;
	if (!c->stale)
		return;
	if (c->number == 0)
		refuse_unsent(c);
	/* What is under way was asked under that registration, and may bring claims of it. */
	if (c->number == 0 && !c->asked && c->runs.running == 0 && c->runs.unsent == 0 &&
	    c->visits == 0)
		c->stale = false;
}

void core_lost(struct core *c, struct baton_mono now)
{
	baton_detach_make(c->o.detach, BATON_DETACH_EXPIRED, NULL, now);
	core_notice(c, now);
	if (c->number > 0)
		c->lost = c->number;
	c->number = 0;
	core_notice(c, now);
}

/* Also a repeat: it comes after what the store may have been asked for meanwhile. */
void core_detach(struct core *c, struct baton_mono now)
{
	c->want = BATON_WISH_DETACH;
	c->noted = false;
	baton_detach_make(c->o.detach, BATON_DETACH_MANUAL, NULL, now);
	core_notice(c, now);
}

void core_attach(struct core *c, struct baton_mono now)
{
	baton_detach_attach(c->o.detach, now);
	c->probe_at = now;
	core_notice(c, now);
}

/* A renewal or a probe failed; that counts once in the time of a beat. */
void core_failed(struct core *c, enum baton_err err, const char *why, struct baton_mono now)
{
	bool storage = err == BATON_STORAGE || err == BATON_BUSY || err == BATON_TIMEOUT;
	snprintf(c->failure, sizeof c->failure, "%s", why ? why : "");
	c->prove_at = baton_mono_add(now, c->o.beat);
	if (!storage)
		baton_detach_make(c->o.detach, BATON_DETACH_STORAGE, why, now);
	else if (c->detached || core_due(c->counted_at, now))
		baton_detach_failed(c->o.detach, now);
	if (core_due(c->counted_at, now))
		c->counted_at = baton_mono_add(now, c->o.beat);
	core_notice(c, now);
}

void core_renewed(struct core *c, struct baton_mono now)
{
	c->backoff = (struct baton_duration){0};
	c->failure[0] = '\0';
	c->counted_at = now;
	bool rests = c->manual && c->told && !c->stopping;
	if (c->detached)
		c->probe_at = baton_mono_add(now, rests ? c->o.beat : baton_duration_ms(100));
	baton_detach_healthy(c->o.detach, now);
	core_notice(c, now);
}

void core_beaten(struct core *c, uint64_t number, enum baton_err err, const char *why,
                 struct baton_mono sent, struct baton_mono now)
{
	if (number != c->number || number == 0)
		return;
	if (err == BATON_NOT_HELD) {
		c->counts.fenced++;
		core_lost(c, now);
	} else if (err != BATON_OK) {
		baton_detach_suspect(c->o.detach);
		core_failed(c, err, why, now);
	} else {
		bool held = !c->stale || c->manual;
		if (held && sent.ns > c->sent.ns)
			c->sent = sent;
		if (c->o.beats_prove || baton_detach_state(c->o.detach) == BATON_ATTACHED)
			core_renewed(c, now);
	}
}

bool core_ask(struct core *c, struct baton_mono now, struct core_request *ret)
{
	core_time(c, now);
	if (!ask_next(c, now))
		return false;
	c->looked = c->request.kind == CORE_SURVEY;
	c->mored = c->request.kind == CORE_MORE;
	*ret = c->request;
	return true;
}

bool core_is_attached(const struct core *c, struct baton_mono now)
{
	return c->number > 0 && !c->stale && baton_detach_state(c->o.detach) == BATON_ATTACHED &&
	       baton_mono_live(core_deadline(c), now);
}

enum core_lead core_leads(const struct core *c, struct baton_mono now)
{
	if (core_is_attached(c, now))
		return c->stopping || c->weight == 0 ? CORE_NOT_LEADING : CORE_LEADING;
	bool suspect = c->number > 0 && !c->stale && !c->stopping && c->weight > 0 &&
	               baton_detach_state(c->o.detach) == BATON_SUSPECT &&
	               baton_mono_live(core_deadline(c), now);
	return suspect ? CORE_STAYING : CORE_NOT_LEADING;
}

bool core_order(struct core *c, struct baton_mono now, struct core_order *ret)
{
	core_time(c, now);
	enum core_order_kind kind = CORE_STOP;
	struct run *r = runs_halt(c);
	if (!r && more_order(c, ret))
		return true;
	if (!r && core_is_attached(c, now)) {
		kind = CORE_START;
		r = runs_fresh(c);
	}
	if (!r)
		return false;
	if (kind == CORE_START) {
		r->is = RUN_ON;
		r->begun = now;
		c->counts.started++;
		c->served[r->queue].metrics.started++;
	}
	*ret = (struct core_order){kind, run_id(c, r), r->claim};
	return true;
}

void core_ended(struct core *c, uint64_t run, const struct core_end *end, struct baton_mono now)
{
	struct run *r = run_find(c, run);
	if (!r || (r->is != RUN_ON && r->is != RUN_STOPPING)) {
		if (end->drop)
			end->drop(end->hold);
		return;
	}
	metrics_took(&c->served[r->queue].metrics, baton_mono_sub(now, r->begun));
	run_end(c, r, end);
	c->hungry = true;
	core_notice(c, now);
}

bool core_is_stopping(struct core *c, uint64_t run)
{
	const struct run *r = run_find(c, run);
	return r && r->is == RUN_STOPPING;
}

void core_news(struct core *c)
{
	c->hungry = true;
}

void core_progressed(struct core *c)
{
	c->progressed = true;
}

void core_look_around(struct core *c)
{
	c->survey_at = (struct baton_mono){0};
	c->looked = false;
}

/* Shards that have had their time to end what runs in them. */
static void drain(struct core *c, struct baton_mono now)
{
	for (uint32_t i = 0; i < c->runs.max; i++) {
		struct run *r = &c->runs.all[i];
		if (r->is != RUN_NEW && r->is != RUN_ON)
			continue;
		const struct shard *shard = &c->served[r->queue].shards[r->shard];
		if (shard->is == SHARD_LEAVING && core_due(shard->drain, now))
			run_stop(c, r);
	}
}

/* Whether what it asked for may be answered yet: by hand it was detached though the store is there,
 * and its registration lasts. */
static bool is_heard(const struct core *c, struct baton_mono now)
{
	return !c->detached ||
	       (c->manual && c->number > 0 && baton_mono_live(core_deadline(c), now));
}

/* Detached, it has nobody to give anything back to; and a call that never returns is not waited for
 * longer than its registration lasts. */
static void stop_if_done(struct core *c, struct baton_mono now)
{
	if (!c->stopping || c->done || c->runs.running > 0 || c->visits > 0)
		return;
	c->done = !c->asked && (c->number == 0 || c->tried);
	if (c->done && c->number > 0) {
		c->result = BATON_STORAGE;
		snprintf(c->why, sizeof c->why,
		         "the store cannot be told that the runner ends, and what it had is given "
		         "to others when its time is over, at the latest: %.160s",
		         c->failure);
	}
	if (c->asked && !is_heard(c, now)) {
		c->done = true;
		c->result = BATON_TIMEOUT;
		snprintf(c->why, sizeof c->why,
		         "the store does not answer: what the runner had is "
		         "given to others when its time is over");
	}
}

void core_time(struct core *c, struct baton_mono now)
{
	if (core_due(c->again_at, now))
		c->again_at = (struct baton_mono){0};
	if (c->number > 0 && !c->stale && core_due(core_deadline(c), now))
		baton_detach_make(c->o.detach, BATON_DETACH_EXPIRED, NULL, now);
	core_notice(c, now);
	if (c->stopping && core_due(c->stop_at, now))
		runs_stop(c);
	else if (c->leaving)
		drain(c, now);
	stop_if_done(c, now);
}

static struct baton_mono earlier(struct baton_mono a, struct baton_mono b)
{
	return a.ns < b.ns ? a : b;
}

/* When the next handler is to be told to stop, of those that were not told yet. */
static struct baton_mono stop_next(const struct core *c)
{
	struct baton_mono next = BATON_MONO_NEVER;
	for (uint32_t i = 0; i < c->runs.max && (c->stopping || c->leaving); i++) {
		const struct run *r = &c->runs.all[i];
		if (r->is != RUN_NEW && r->is != RUN_ON)
			continue;
		const struct shard *shard = &c->served[r->queue].shards[r->shard];
		if (shard->is == SHARD_LEAVING)
			next = earlier(next, shard->drain);
		if (c->stopping)
			next = earlier(next, c->stop_at);
	}
	return next;
}

/* Whether an answer is all that a stopped runner waits for, no longer than is_heard(). */
static bool is_awaited(const struct core *c)
{
	return c->stopping && !c->done && c->manual && c->asked && c->runs.running == 0;
}

struct baton_mono core_next(const struct core *c)
{
	struct baton_mono next = stop_next(c);
	if (c->number > 0 && (!c->stale || is_awaited(c)))
		next = earlier(next, core_deadline(c));
	if (c->asked || c->done)
		return next;
	if (c->stale || c->detached || c->number == 0)
		return earlier(next, c->probe_at);
	if (baton_detach_state(c->o.detach) == BATON_SUSPECT)
		return earlier(next, c->prove_at);
	if (c->again_at.ns > 0)
		return earlier(next, c->again_at);
	if (c->progressed && c->o.report.ns > 0)
		next = earlier(next, c->progress_at);
	return c->stopping ? next : earlier(next, c->survey_at);
}

void core_stop(struct core *c, struct baton_duration grace, struct baton_mono now)
{
	struct baton_mono at = baton_mono_add(now, grace);
	c->stop_at = c->stopping ? earlier(c->stop_at, at) : at;
	c->stopping = true;
	c->probe_at = earlier(c->probe_at, now);
	c->weight = 0;
	runs_stop_new(c);
	core_time(c, now);
}

bool core_is_done(const struct core *c, enum baton_err *ret_err)
{
	*ret_err = c->result;
	return c->done;
}

const char *core_why(const struct core *c)
{
	return c->why;
}

const char *core_failure(const struct core *c)
{
	return c->failure;
}

bool core_is_spent(const struct core *c)
{
	return c->o.limit > 0 && c->counts.claimed >= c->o.limit && c->runs.running == 0;
}

const struct baton_work_claim *core_claim(struct core *c, uint64_t run)
{
	const struct run *r = run_find(c, run);
	return r ? r->claim : NULL;
}

bool core_is_idle(const struct core *c)
{
	return c->number > 0 && !c->stale && c->settled && c->empty && !c->hungry && !c->asked &&
	       c->runs.running == 0 && c->runs.unsent == 0;
}

bool core_is_asking(const struct core *c)
{
	return c->asked;
}

uint64_t core_number(const struct core *c)
{
	return c->number;
}

static uint32_t owned(const struct served *s)
{
	uint32_t owned = 0;
	for (uint32_t n = 0; n < s->count; n++)
		owned += s->shards[n].is == SHARD_MINE || s->shards[n].is == SHARD_LEAVING;
	return owned;
}

struct core_counts core_counts(const struct core *c)
{
	struct core_counts counts = c->counts;
	counts.running = c->runs.running;
	counts.visits = c->visits;
	for (size_t i = 0; i < c->o.serve_count; i++)
		counts.owned += owned(&c->served[i]);
	return counts;
}

uint64_t core_events(const struct core *c)
{
	return c->counts.claimed + c->counts.ticks + c->counts.detached + c->counts.attachments +
	       c->counts.takeovers + c->counts.fenced + c->counts.moved;
}

static void queue_metrics(const struct served *s, struct baton_queue_metrics *ret)
{
	struct baton_str name = s->serve->queue;
	size_t len = name.len < BATON_NAME_MAX ? name.len : BATON_NAME_MAX;
	*ret = s->metrics;
	memcpy(ret->queue, name.ptr, len);
	ret->shards = owned(s);
}

void core_metrics(const struct core *c, struct baton_mono now, struct baton_runner_metrics *ret)
{
	int64_t age = baton_mono_sub(now, c->sent).ns;
	memcpy(ret->detachments, c->counts.detachments, sizeof ret->detachments);
	ret->detached = baton_detach_state(c->o.detach) == BATON_DETACHED;
	ret->attachments = c->counts.attachments;
	ret->fenced = c->counts.fenced;
	ret->takeovers = c->counts.takeovers;
	ret->ticks = c->counts.ticks;
	ret->slots = c->o.slots;
	ret->running = c->runs.running;
	ret->beat_age_ns = c->sent.ns > 0 && age > 0 ? (uint64_t)age : 0;
	ret->queue_count = c->o.serve_count;
	for (size_t i = 0; i < c->o.serve_count; i++)
		queue_metrics(&c->served[i], &ret->queues[i]);
}
