/* What a runner concludes from a look around: who is lost, what others wish, and which shards it
 * should have. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "runner/state.h"

/* Since when that beat has been seen. */
static struct baton_mono seen_since(const struct core *c, const struct baton_runner_info *info,
                                    struct baton_mono now)
{
	for (size_t i = 0; i < c->sight_count; i++) {
		const struct sight *s = &c->sights[i];
		if (s->number == info->number && s->beat == info->beat)
			return s->since;
	}
	return now;
}

static bool is_silent(const struct core *c, const struct baton_runner_info *info,
                      struct baton_mono sent, struct baton_mono now)
{
	return baton_mono_sub(sent, seen_since(c, info, now)).ns >= info->ttl.ns;
}

bool survey_is_lost(enum core_fate fate, bool silent)
{
	return fate == CORE_DEAD || (silent && fate != CORE_DYING);
}

bool survey_expects_death(const struct core *c, const struct core_survey *survey,
                          struct baton_mono sent, struct baton_mono now)
{
	size_t i = 0;
	while (i < survey->runner_count &&
	       (survey->fates[i] != CORE_DYING || is_silent(c, &survey->runners[i], sent, now)))
		i++;
	return i < survey->runner_count;
}

/* Whoever is dead, or was seen with the same beat for its ttl on this runner's own clock. */
static void watch(struct core *c, const struct core_survey *survey, struct baton_mono sent,
                  struct baton_mono now)
{
	struct sight next[BATON_RUNNERS_MAX] = {{0}};
	for (size_t i = 0; i < survey->runner_count; i++) {
		const struct baton_runner_info *info = &survey->runners[i];
		next[i] = (struct sight){info->number, info->beat, seen_since(c, info, now)};
		if (c->take_over || info->number == c->number)
			continue;
		if (survey_is_lost(survey->fates[i], is_silent(c, info, sent, now))) {
			c->victim = *info;
			c->take_over = true;
		}
	}
	memcpy(c->sights, next, survey->runner_count * sizeof *next);
	c->sight_count = survey->runner_count;
}

bool survey_is_silent(struct core *c, const struct baton_runner_info *info, struct baton_mono sent,
                      struct baton_mono now)
{
	bool silent = is_silent(c, info, sent, now);
	c->sights[0] = (struct sight){info->number, info->beat, seen_since(c, info, now)};
	c->sight_count = 1;
	return silent;
}

/* Those who serve the queue, with what they should have of it. */
static size_t members_of(struct core *c, const struct core_survey *survey, struct baton_str queue)
{
	size_t count = 0;
	for (size_t i = 0; i < survey->runner_count; i++) {
		const struct baton_runner_info *info = &survey->runners[i];
		bool me = info->number == c->number;
		if (survey->fates[i] == CORE_DEAD || !baton_runner_serves(info, queue))
			continue;
		c->members[count++] = (struct balance_member){
			.number = info->number,
			.weight = me                              ? c->weight
		                  : info->wish == BATON_WISH_WORK ? info->weight
		                                                  : 0,
		};
	}
	return count;
}

/* Room for as many shards as the queue has. What is claimed in it keeps its place: the number of a
 * queue's shards never changes. */
static bool resize(struct core *c, struct served *s, uint32_t count)
{
	if (s->count == count)
		return true;
	struct shard *shards = mem_new(c->o.alloc, count, sizeof *shards);
	uint64_t *owners = mem_new(c->o.alloc, count, sizeof *owners);
	if (!shards || !owners || s->count > 0) {
		mem_free(c->o.alloc, shards, count, sizeof *shards);
		mem_free(c->o.alloc, owners, count, sizeof *owners);
		return false;
	}
	s->shards = shards;
	s->owners = owners;
	s->count = count;
	return true;
}

/* What came to it meanwhile was not asked for. */
static void use(struct core *c, struct shard *shard)
{
	c->hungry = c->hungry || shard->is != SHARD_MINE;
	shard->is = SHARD_MINE;
}

/* The store's word on whose it is goes: a taking or giving whose answer was lost is found here. */
static void adopt(struct core *c, struct served *s, uint32_t n, const struct baton_shard_answer *a)
{
	struct shard *shard = &s->shards[n];
	bool mine = a->runner == c->number && a->runner > 0;
	s->owners[n] = a->runner;
	if (mine)
		shard->fence = a->fence;
	if (!mine)
		shard->is = SHARD_NOT_MINE;
	else if (c->stale)
		shard->is = SHARD_DROPPED;
	else if (shard->is != SHARD_LEAVING)
		use(c, shard);
}

static void leave(struct core *c, struct shard *shard, struct baton_mono now)
{
	if (shard->is != SHARD_MINE)
		return;
	shard->is = SHARD_LEAVING;
	shard->drain = baton_mono_add(now, c->o.drain);
}

static bool plan(struct core *c, struct served *s, size_t members, struct baton_mono now)
{
	size_t takes = 0, gives = 0;
	bool given[BATON_QUEUE_SHARDS_MAX] = {false};
	const struct balance_ask ask = {
		.members = c->members,
		.count = members,
		.me = c->number,
		.owners = s->owners,
		.shards = s->count,
	};
	balance_plan(&ask, c->takes, &takes, c->gives, &gives);
	for (size_t i = 0; i < takes; i++)
		s->shards[c->takes[i]].is = SHARD_WANTED;
	for (size_t i = 0; i < gives; i++) {
		given[c->gives[i]] = true;
		leave(c, &s->shards[c->gives[i]], now);
	}
	for (uint32_t n = 0; n < s->count; n++) {
		struct shard *shard = &s->shards[n];
		if (shard->is == SHARD_LEAVING && !given[n])
			use(c, shard);
		c->leaving = c->leaving || shard->is == SHARD_LEAVING;
	}
	return takes == 0 && gives == 0;
}

static bool all_owned(const struct served *s)
{
	uint32_t n = 0;
	while (n < s->count && s->owners[n] != 0)
		n++;
	return n == s->count;
}

static void look_at_queue(struct core *c, struct served *s, const struct core_survey *survey,
                          struct baton_mono now)
{
	const struct core_queue_seen *seen = &survey->queues[s - c->served];
	bool was_paused = s->paused;
	s->usable = seen->there && seen->served && resize(c, s, seen->shards);
	s->paused = seen->paused;
	if (was_paused && !s->paused)
		c->hungry = true;
	if (!s->usable)
		return;
	for (uint32_t n = 0; n < s->count; n++)
		adopt(c, s, n, &seen->owners[n]);
	bool still = c->stale || plan(c, s, members_of(c, survey, s->serve->queue), now);
	c->settled = c->settled && still && all_owned(s);
}

uint32_t core_weight(const struct core *c)
{
	return c->want == BATON_WISH_WORK && !c->stopping ? c->o.weight : 0;
}

/* What the operator wants of this runner, once the store knows what he wanted before. */
static void heed(struct core *c, const struct baton_runner_info *me, struct baton_mono now)
{
	if (me->wish == BATON_WISH_LEAVE && !c->stopping) {
		snprintf(c->why, sizeof c->why, "another runner '%s' has taken its place",
		         me->name);
		c->result = BATON_NOT_HELD;
		core_stop(c, (struct baton_duration){0}, now);
	}
	if (me->wish != BATON_WISH_LEAVE && c->noted) {
		if (me->wish == BATON_WISH_DETACH && !c->manual)
			core_detach(c, now);
		if (me->wish != BATON_WISH_DETACH && c->manual)
			core_attach(c, now);
		c->want = me->wish;
		c->noted = true;
	}
	if (core_weight(c) != c->weight)
		c->told = false;
	c->weight = core_weight(c);
}

/* Whether the run has that claim, be it one that it took while it was under way. */
static bool has_claim(struct core *c, const struct run *r, const struct baton_claim_id *id)
{
	while (r && strcmp(r->claim->proof.id, id->text) != 0)
		r = run_next(c, r);
	return r;
}

/* Their handlers are told to stop, as when the runner ends; what they have then is given back, and
 * the store does away with it. */
static void cancel(struct core *c, const struct baton_claim_id *id)
{
	for (uint32_t i = 0; i < c->runs.max; i++) {
		struct run *r = &c->runs.all[i];
		if ((r->is == RUN_NEW || r->is == RUN_ON) && has_claim(c, r, id))
			run_stop(c, r);
	}
}

void survey_take_in(struct core *c, const struct core_survey *survey, struct baton_mono sent,
                    struct baton_mono now)
{
	const struct baton_runner_info *me = NULL;
	for (size_t i = 0; i < survey->runner_count && !me; i++) {
		if (survey->runners[i].number == c->number)
			me = &survey->runners[i];
	}
	if (!me) {
		core_lost(c, now);
		return;
	}
	c->heard = c->stale;
	heed(c, me, now);
	if (!c->stale)
		watch(c, survey, sent, now);
	c->settled = true;
	c->leaving = false;
	for (size_t i = 0; i < c->o.serve_count; i++)
		look_at_queue(c, &c->served[i], survey, now);
	for (size_t i = 0; i < survey->cancel_count; i++)
		cancel(c, &survey->cancels[i]);
}
