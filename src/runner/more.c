/* Checkpoints: work that a run takes from its lane while it is under way. What it took is a claim
 * of its own, which ends with the run, in the same transaction. */
#include "base/check.h"
#include "runner/state.h"

bool core_more(struct core *c, uint64_t run, uint32_t max)
{
	struct run *r = run_find(c, run);
	if (!r || (r->is != RUN_ON && r->is != RUN_STOPPING) || r->wants > 0 || r->gives)
		return false;
	r->wants = max;
	c->runs.wanting++;
	return true;
}

/* There is nothing more to be asked for it. */
static void want_nothing(struct core *c, struct run *r)
{
	if (r->wants > 0)
		c->runs.wanting--;
	r->wants = 0;
}

/* Its handler is to be told. */
static void give(struct core *c, struct run *r, const struct baton_work_claim *claim)
{
	want_nothing(c, r);
	r->gives = true;
	r->given = claim;
	c->runs.giving++;
}

void more_forget(struct core *c, struct run *r)
{
	want_nothing(c, r);
	if (r->gives)
		c->runs.giving--;
	r->gives = false;
}

/* The next one that asks, from where the last one was found. */
static struct run *next_wanting(struct core *c)
{
	for (uint32_t i = 0; i < c->runs.max && c->runs.wanting > 0; i++) {
		struct run *r = &c->runs.all[(c->more_turn + i) % c->runs.max];
		if (r->wants == 0)
			continue;
		c->more_turn = (uint32_t)(r - c->runs.all) + 1;
		return r;
	}
	return NULL;
}

static bool has_room(const struct core *c, const struct run *r)
{
	return r->extras < CORE_EXTRAS_OF_RUN && c->runs.extras < CORE_EXTRAS_MAX;
}

/* A shard that is to go gives nothing new. */
static bool may_have(const struct core *c, const struct run *r)
{
	return r->is == RUN_ON && !c->stale && !c->stopping &&
	       c->served[r->queue].shards[r->shard].is == SHARD_MINE;
}

bool more_ask(struct core *c)
{
	struct run *r = c->stopping ? NULL : next_wanting(c);
	if (!r || !may_have(c, r) || r->claim->lane.len == 0 || !has_room(c, r))
		return false;
	c->more_run = run_id(c, r);
	c->more = (struct baton_more_ask){
		.queue = r->claim->queue,
		.lane = r->claim->lane,
		.shard = r->claim->shard,
		.proof = r->claim->proof,
		.max = r->wants,
	};
	c->request.more = &c->more;
	return true;
}

/* What was taken for a run that does not want it any more goes back as if it had not been. */
static void give_back(struct core *c, struct run *extra)
{
	const struct core_end back = {.how = BATON_ABANDON};
	run_end(c, extra, &back);
}

static void take_in(struct core *c, struct run *r, struct baton_work_claims *claims)
{
	CHECK(claims->count == 1);
	struct run *extra = run_extra(c, claims);
	if (!r || r->wants == 0 || !may_have(c, r)) {
		give_back(c, extra);
		return;
	}
	struct run *last = r;
	while (last->more > 0)
		last = &c->runs.all[last->more - 1];
	last->more = (uint32_t)(extra - c->runs.all) + 1;
	r->extras++;
	give(c, r, extra->claim);
}

void more_answered(struct core *c, struct core_answer *a)
{
	struct run *r = run_find(c, c->more_run);
	c->doubt = c->doubt || a->err != BATON_OK;
	if (a->err == BATON_OK && a->claims)
		take_in(c, r, a->claims);
	a->claims = NULL;
	if (r && r->wants > 0)
		give(c, r, NULL);
}

/* Who cannot have anything is told so, and does not wait. */
static void refuse(struct core *c)
{
	for (uint32_t i = 0; i < c->runs.max && c->runs.wanting > 0; i++) {
		struct run *r = &c->runs.all[i];
		bool can =
			r->wants > 0 && may_have(c, r) && r->claim->lane.len > 0 && has_room(c, r);
		if (r->wants > 0 && !can)
			give(c, r, NULL);
	}
}

bool more_order(struct core *c, struct core_order *ret)
{
	refuse(c);
	for (uint32_t i = 0; i < c->runs.max && c->runs.giving > 0; i++) {
		struct run *r = &c->runs.all[i];
		if (!r->gives)
			continue;
		*ret = (struct core_order){CORE_MORE_GIVEN, run_id(c, r), r->given};
		more_forget(c, r);
		return true;
	}
	return false;
}

void core_more_lost(struct core *c, uint64_t run)
{
	struct run *before = run_find(c, run);
	struct run *last = before ? run_next(c, before) : NULL;
	if (!last || (before->is != RUN_ON && before->is != RUN_STOPPING))
		return;
	before->extras--;
	for (; last->more > 0; last = run_next(c, last))
		before = last;
	before->more = 0;
	give_back(c, last);
}
