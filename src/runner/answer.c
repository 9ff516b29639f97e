/* What a runner makes of the store's answers. */
#include <stdio.h>

#include "base/check.h"
#include "runner/state.h"

#define DYING_MS 10   /* how soon to look again at a runner that is about to be gone */
#define TROUBLE_MS 50 /* the first pause after a request that failed */
#define TROUBLE_MAX 5 /* how often that is doubled, and a stopped runner tries to leave */

/* Somebody has the name. Whoever is lost is taken over, and so is what this runner registered
 * without an answer, or has lost to one who went no further than stopping its beat; others may be
 * asked to leave. */
static void name_taken(struct core *c, const struct core_answer *a, struct baton_mono now)
{
	bool silent = survey_is_silent(c, &a->other, a->sent, now);
	c->victim = a->other;
	bool lost = a->fate == CORE_OWN && (c->unsure || a->other.number == c->lost);
	if (survey_is_lost(a->fate, silent) || lost) {
		c->take_over = true;
	} else if (a->fate == CORE_DYING) {
		c->probe_at = baton_mono_add(now, silent ? c->o.beat : baton_duration_ms(DYING_MS));
	} else if (c->o.replace) {
		c->wish = true;
	} else {
		snprintf(c->why, sizeof c->why, "a runner '%.200s' is there already, as process %d",
		         a->other.name, (int)a->other.owner.pid);
		c->result = BATON_YIELD;
		c->done = true;
	}
}

static void registered(struct core *c, const struct core_answer *a, struct baton_mono now)
{
	if (a->err == BATON_OK) {
		c->number = a->number;
		c->unsure = false;
		c->sent = a->sent;
		c->told = c->stopping;
		c->doubt = false;
		c->noted = c->want == BATON_WISH_WORK;
		c->weight = core_weight(c);
		c->stale = c->detached;
		c->survey_at = now;
		c->sight_count = 0;
		c->hungry = true;
		core_renewed(c, now);
	} else if (a->err == BATON_YIELD) {
		name_taken(c, a, now);
	} else if (a->err == BATON_INVALID || a->err == BATON_FULL) {
		snprintf(c->why, sizeof c->why, "%s", a->why);
		c->result = a->err;
		c->done = true;
	} else {
		c->unsure = true;
		core_failed(c, a->err, a->why, now);
	}
}

static struct served *served_of(struct core *c, const struct baton_shard *shard)
{
	size_t i = 0;
	while (i < c->o.serve_count && !baton_str_equal(c->served[i].serve->queue, shard->queue))
		i++;
	CHECK(i < c->o.serve_count && shard->number < c->served[i].count);
	return &c->served[i];
}

/* Whose the shards are that were to be taken or given. Detached meanwhile, nothing is used. */
static void changed(struct core *c, const struct core_answer *a, bool take)
{
	for (size_t i = 0; i < c->request.shard_count; i++) {
		struct served *s = served_of(c, &c->request.shards[i]);
		uint32_t number = c->request.shards[i].number;
		bool mine = a->err == BATON_OK && take && c->answers[i].err == BATON_OK;
		if (!take && a->err != BATON_OK)
			continue;
		s->owners[number] = mine ? c->number : c->answers[i].runner;
		s->shards[number].is = !mine      ? SHARD_NOT_MINE
		                       : c->stale ? SHARD_DROPPED
		                                  : SHARD_MINE;
		s->shards[number].fence = c->answers[i].fence;
		c->hungry = c->hungry || mine;
	}
}

/* Its emits were refused: what the handler did is not recorded, so it failed. */
static void fail_instead(struct core *c, struct run *r, enum baton_err err)
{
	if (r->end.drop)
		r->end.drop(r->end.hold);
	r->end = (struct core_end){
		.how = BATON_FAIL,
		.error = err == BATON_FULL ? BATON_STR("the queue of its follow-up work is full")
	                 : err == BATON_INVALID
	                         ? BATON_STR("its result or its follow-up work is not accepted")
	                         : BATON_STR("its follow-up work has a source key that is there "
	                                     "with other content"),
	};
	run_again(c, r);
}

static void count_end(struct core *c, const struct run *r)
{
	struct baton_queue_metrics *m = &c->served[r->queue].metrics;
	switch (r->end.how) {
	case BATON_COMPLETE:
		c->counts.completed++;
		m->completed++;
		break;
	case BATON_FAIL:
		c->counts.failed++;
		m->failed++;
		break;
	case BATON_REJECT:
		c->counts.failed++;
		m->rejected++;
		break;
	case BATON_ABANDON:
	case BATON_SNOOZE:
		c->counts.returned++;
		m->returned++;
		break;
	}
}

static void count_refused(struct core *c, const struct run *r)
{
	c->counts.refused++;
	c->counts.fenced++;
	c->served[r->queue].metrics.refused++;
}

/* What a run took while it was under way. If the run failed instead, this does so with it. */
static void extra_answered(struct core *c, struct run *r)
{
	if (r->is == RUN_SENT)
		run_drop(c, r);
}

static void end_answered(struct core *c, size_t i)
{
	struct run *r = &c->runs.all[c->end_runs[i]];
	enum baton_err e = c->ended[i].err;
	if (c->ends[i].tied) {
		extra_answered(c, r);
		return;
	}
	if (e != BATON_OK && e != BATON_NOT_HELD) {
		fail_instead(c, r, e);
		return;
	}
	if (e == BATON_OK)
		count_end(c, r);
	else
		count_refused(c, r);
	run_drop(c, r);
}

/* An end that the store does not accept keeps none of the others from being sent. */
static void ends_refused(struct core *c, bool invalid)
{
	for (size_t i = 0; i < c->request.end_count; i++) {
		struct run *r = &c->runs.all[c->end_runs[i]];
		if (c->ends[i].tied)
			continue;
		if (invalid && c->groups == 1)
			fail_instead(c, r, BATON_INVALID);
		else
			run_again(c, r);
	}
	if (invalid && c->groups > 1)
		c->singly = c->groups;
}

/* Without an answer it is sent again: the store says the same as it has said, or would have. */
static void ticked(struct core *c, struct core_answer *a)
{
	bool asked = c->request.claims > 0;
	for (size_t i = 0; i < c->request.end_count && a->err == BATON_OK; i++)
		end_answered(c, i);
	if (c->singly > 0 && c->request.end_count > 0)
		c->singly--;
	if (a->err != BATON_OK)
		ends_refused(c, a->err == BATON_INVALID);
	c->doubt = c->doubt || (a->err != BATON_OK && asked);
	c->hungry = c->hungry || (a->err != BATON_OK && asked);
	if (a->err != BATON_OK)
		return;
	c->counts.ticks++;
	if (asked)
		c->empty = !a->claims;
	if (a->claims && a->claims->count == c->request.claims)
		c->hungry = true;
	runs_add(c, a->claims);
	a->claims = NULL;
	if (c->stale || c->stopping)
		runs_stop_new(c);
}

/* Meanwhile something else may have been asked of it. */
static void wished(struct core *c, const struct core_answer *a)
{
	if (c->request.victim)
		c->wish = false;
	else if (c->request.wish == c->want)
		c->noted = a->err == BATON_OK;
}

static void told(struct core *c, bool ok, struct baton_mono now)
{
	c->told = ok;
	if (!ok)
		return;
	c->reported = c->reporting;
	c->report_at = baton_mono_add(now, c->o.report);
	c->progress_at = baton_mono_add(now, c->o.beat);
}

static void left(struct core *c, const struct core_answer *a)
{
	if (a->err != BATON_OK && a->err != BATON_NOT_HELD)
		return;
	c->number = 0;
	if (c->stopping)
		c->done = true;
}

static void surveyed(struct core *c, const struct core_answer *a, struct baton_mono now)
{
	struct baton_duration soon = baton_duration_ms(DYING_MS);
	bool dying = survey_expects_death(c, a->survey, a->sent, now);
	c->survey_at = baton_mono_add(now, dying ? soon : c->o.beat);
	survey_take_in(c, a->survey, a->sent, now);
}

static void apply(struct core *c, struct core_answer *a, struct baton_mono now)
{
	switch (c->request.kind) {
	case CORE_REGISTER:
		registered(c, a, now);
		break;
	case CORE_SURVEY:
		if (a->err == BATON_OK)
			surveyed(c, a, now);
		break;
	case CORE_TAKE_OVER:
		c->take_over = false;
		c->counts.takeovers += a->err == BATON_OK;
		core_look_around(c);
		break;
	case CORE_TAKE:
	case CORE_GIVE:
		changed(c, a, c->request.kind == CORE_TAKE);
		c->counts.moved++;
		core_look_around(c);
		break;
	case CORE_TICK:
		ticked(c, a);
		break;
	case CORE_MORE:
		more_answered(c, a);
		break;
	case CORE_WISH:
		wished(c, a);
		break;
	case CORE_SETTLE:
		c->doubt = a->err != BATON_OK;
		break;
	case CORE_TELL:
		told(c, a->err == BATON_OK, now);
		break;
	case CORE_LEAVE:
		left(c, a);
		break;
	case CORE_PROVE:
	case CORE_PROBE:
		break;
	}
}

/* A renewal comes next. If that goes well, and this fails again and again all the same, there are
 * longer and longer pauses. */
static void trouble(struct core *c, struct baton_mono now)
{
	uint32_t doublings = c->trouble < TROUBLE_MAX ? c->trouble : TROUBLE_MAX;
	c->prove_at = now;
	if (c->trouble++ > 0)
		c->again_at = baton_mono_add(now, baton_duration_ms(TROUBLE_MS << doublings));
}

/* The store could not be asked. */
static void unavailable(struct core *c, const struct core_answer *a, bool renewal,
                        struct baton_mono now)
{
	baton_detach_suspect(c->o.detach);
	snprintf(c->failure, sizeof c->failure, "%s", a->why);
	if (renewal || c->detached)
		core_failed(c, a->err, a->why, now);
	else
		trouble(c, now);
	c->tried = c->tried || (c->stopping && (c->detached || c->trouble >= TROUBLE_MAX));
}

/* What the answer says about the store and the registration. */
static void judge(struct core *c, const struct core_answer *a, struct baton_mono now)
{
	enum core_kind kind = c->request.kind;
	bool renewal = kind == CORE_PROVE || kind == CORE_PROBE;
	bool gone = kind == CORE_LEAVE && a->err == BATON_NOT_HELD;
	c->counts.fenced += a->err == BATON_NOT_HELD && kind != CORE_TAKE_OVER;
	if (a->err == BATON_OK || gone) {
		if (renewal || c->detached)
			core_renewed(c, now);
		if (!renewal)
			c->trouble = 0;
	} else if (a->err == BATON_NOT_HELD) {
		if (kind != CORE_TAKE_OVER)
			core_lost(c, now);
	} else if (!renewal && (a->err == BATON_NOT_FOUND || a->err == BATON_INVALID)) {
		/* A queue is not what it was at the last look. */
		core_look_around(c);
	} else {
		unavailable(c, a, renewal, now);
	}
}

void core_answered(struct core *c, struct baton_mono now, struct core_answer *answer)
{
	CHECK(c->asked);
	c->asked = false;
	apply(c, answer, now);
	if (c->request.kind != CORE_REGISTER)
		judge(c, answer, now);
	core_notice(c, now);
	core_time(c, now);
}
