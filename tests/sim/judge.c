/* What has to be true, whatever happens. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "sim/sim.h"

uint32_t judge_grant(const struct world *w, const char *id)
{
	uint32_t i = w->grant_count;
	while (i > 0 && strcmp(w->grants[i - 1].id, id) != 0)
		i--;
	CHECK(i > 0);
	return i - 1;
}

static uint32_t queue_of(struct baton_str name)
{
	uint32_t i = 0;
	while (i < PLAN_QUEUES && !baton_str_equal(name, baton_str_z(sim_queues[i])))
		i++;
	CHECK(i < PLAN_QUEUES);
	return i;
}

/* Whether the shard is still the runner's, without a break since the claim was made. */
static bool is_current(const struct world *w, const struct grant *g)
{
	const struct baton_shard_answer *shard = &w->shards[g->queue][g->shard];
	return shard->runner == g->number && shard->fence.v == g->fence;
}

/* Claims that the store has taken back. */
static void take_back(struct world *w, uint64_t number, const struct core_request *r)
{
	for (uint32_t i = 0; i < w->grant_count; i++) {
		struct grant *g = &w->grants[i];
		bool known = false;
		if (g->number != number || g->ended)
			continue;
		for (size_t k = 0; k < r->proof_count; k++)
			known = known || strcmp(r->proofs[k].id, g->id) == 0;
		bool given = r->kind != CORE_GIVE;
		for (size_t k = 0; k < r->shard_count && r->kind == CORE_GIVE; k++)
			given = given || (queue_of(r->shards[k].queue) == g->queue &&
			                  r->shards[k].number == g->shard);
		if (given && !known) {
			g->ended = true;
			g->how = BATON_ABANDON;
		}
	}
}

void judge_request(struct proc *p, const struct core_request *r)
{
	(void)r;
	p->number = p->carrier.runner ? baton_runner_number(p->carrier.runner) : 0;
}

/* Ends. */

static void job_done(struct world *w, uint32_t number)
{
	struct job *job = &w->jobs[number];
	if (job->done)
		wrong(w, "job %" PRIu32 " is completed twice", number);
	if (job->removed)
		wrong(w, "job %" PRIu32 " is completed after it was cancelled", number);
	job->done = true;
}

/* The handler of a claim emits what belongs to its first job. */
static void job_emits(struct world *w, const struct job *job)
{
	if (job->emit == 0)
		return;
	count(w, COVER_EMIT);
	w->jobs[job->emit].put = true;
	w->jobs[job->emit].order = ++w->orders;
}

static void count_how(struct world *w, enum baton_work_how how)
{
	static const enum covered seen[] = {
		[BATON_COMPLETE] = COVER_COMPLETE, [BATON_FAIL] = COVER_FAIL,
		[BATON_REJECT] = COVER_REJECT,     [BATON_ABANDON] = COVER_ABANDON,
		[BATON_SNOOZE] = COVER_SNOOZE,
	};
	count(w, seen[how]);
}

static void end_accepted(struct proc *p, struct grant *g, enum baton_work_how how)
{
	struct world *w = p->w;
	bool alone = g->of == 0 || !g->given;
	if (g->of > 0 && !g->given && how != BATON_ABANDON)
		wrong(w, "claim %s ends as if its handler had known of it", g->id);
	if (g->ended && g->how == BATON_COMPLETE && how == BATON_COMPLETE) {
		count(w, COVER_COMPLETE_AGAIN);
		return;
	}
	if (g->ended || g->number != p->number || !is_current(w, g))
		wrong(w,
		      "the end of claim %s of registration %" PRIu64
		      " is accepted under an old fence",
		      g->id, g->number);
	g->ended = true;
	g->how = how;
	count_how(w, how);
	for (uint32_t i = 0; i < g->count; i++) {
		w->jobs[g->jobs[i]].loose |= how == BATON_SNOOZE;
		if (how == BATON_COMPLETE)
			job_done(w, g->jobs[i]);
	}
	if (how == BATON_COMPLETE && alone)
		job_emits(w, &w->jobs[g->jobs[0]]);
	if (g->of > 0 && !g->given)
		count(w, COVER_MORE_BACK);
	else if (g->of > 0 && how == BATON_COMPLETE)
		count(w, COVER_MORE_DONE);
}

/* What a run took ends with it, in the same transaction. */
static void judge_group(struct world *w, uint32_t first)
{
	for (uint32_t i = first; i < w->grant_count; i++) {
		const struct grant *g = &w->grants[i];
		if (g->of == first + 1 && g->given && (!g->ended || g->how != w->grants[first].how))
			wrong(w, "claim %s does not end as claim %s, which took it", g->id,
			      w->grants[first].id);
	}
}

static void judge_ends(struct proc *p, const struct core_request *r)
{
	for (size_t i = 0; i < r->end_count; i++) {
		struct grant *g = &p->w->grants[judge_grant(p->w, r->ends[i].proof.id)];
		say(p->w, p, "ends claim %s with %d: %s", g->id, (int)r->ends[i].how,
		    baton_err_name(r->ended[i].err));
		if (r->ended[i].err == BATON_OK)
			end_accepted(p, g, r->ends[i].how);
		else
			count(p->w, COVER_REFUSED);
	}
	for (size_t i = 0; i < r->end_count; i++) {
		if (r->ended[i].err == BATON_OK)
			judge_group(p->w, judge_grant(p->w, r->ends[i].proof.id));
	}
}

/* Claims. */

static bool may_be_overtaken(struct world *w, const struct job *job)
{
	struct baton_work_page *page;
	if (job->id.text[0] == '\0')
		return job->loose;
	enum baton_err e = baton_work_get(w->store, &job->id, &page);
	if (e == BATON_NOT_FOUND)
		return job->cancel;
	CHECK(e == BATON_OK);
	enum baton_batch_state state = page->infos[0].state;
	baton_work_page_free(page);
	return state == BATON_BATCH_DEAD || state == BATON_BATCH_DELAYED ||
	       (state == BATON_BATCH_RETRY && job->queue == 0);
}

static bool is_in(const struct grant *g, uint32_t job)
{
	uint32_t i = 0;
	while (i < g->count && g->jobs[i] != job)
		i++;
	return i < g->count;
}

/* Whether both are of one run. */
static bool is_same_run(const struct world *w, const struct grant *a, const struct grant *b)
{
	uint32_t first = a->of > 0 ? a->of : (uint32_t)(a - w->grants) + 1;
	return first == (b->of > 0 ? b->of : (uint32_t)(b - w->grants) + 1);
}

/* Whether the run that the claim is for has that job too. */
static bool has_run(const struct world *w, const struct grant *g, uint32_t job)
{
	for (uint32_t i = g->of - 1; g->of > 0 && i < w->grant_count; i++) {
		const struct grant *other = &w->grants[i];
		if (!other->ended && is_same_run(w, other, g) && is_in(other, job))
			return true;
	}
	return false;
}

/* What was put earlier to the lane has to be over. */
static void judge_order(struct world *w, const struct grant *g)
{
	for (uint32_t i = 0; i < w->job_count && g->lane > 0 && !w->failed; i++) {
		const struct job *job = &w->jobs[i];
		if (job->queue != g->queue || job->lane != g->lane || !job->put || job->done ||
		    job->removed || is_in(g, i) || has_run(w, g, i) ||
		    job->order > w->jobs[g->jobs[0]].order)
			continue;
		if (!may_be_overtaken(w, job))
			wrong(w, "job %" PRIu32 " is claimed before job %" PRIu32 " of its lane",
			      g->jobs[0], i);
	}
}

static bool is_same_lane(const struct grant *a, const struct grant *b)
{
	if (a->queue != b->queue || a->lane != b->lane)
		return false;
	return a->lane > 0 || a->jobs[0] == b->jobs[0];
}

/* Nobody else has it. */
static void judge_alone(struct world *w, const struct grant *g)
{
	for (uint32_t i = 0; i < w->grant_count; i++) {
		const struct grant *other = &w->grants[i];
		if (other != g && !other->ended && is_same_lane(other, g) &&
		    !is_same_run(w, other, g))
			wrong(w, "job %" PRIu32 " is claimed while claim %s of its lane lasts",
			      g->jobs[0], other->id);
	}
}

static bool has_key(const struct world *w, const struct grant *g, uint32_t queue, uint32_t key)
{
	return sim_class(w, g->queue) == sim_class(w, queue) && (g->keys & KEY_BIT(key));
}

/* No more hold that key of it than may. */
static void judge_one_key(struct world *w, const struct grant *g, uint32_t key)
{
	const uint32_t holds = sim_holds(w, g->queue, key, proc_of(w, g->number));
	uint32_t all = 0;
	for (uint32_t i = 0; i < w->grant_count; i++)
		all += !w->grants[i].ended && has_key(w, &w->grants[i], g->queue, key);
	if (all > sim_limit(w, g->queue) && sim_has_sites(w, g->queue))
		count(w, COVER_KEY_SITES);
	if (holds > sim_limit(w, g->queue))
		wrong(w, "job %" PRIu32 " is claimed, and its key is held %" PRIu32 " times",
		      g->jobs[0], holds);
	count(w, holds > 1 ? COVER_KEY_SHARED : COVER_KEY);
	if (sim_is_classed(w, g->queue))
		count(w, COVER_KEY_CLASSED);
}

/* Along a key they grow, in whichever shards it is claimed. */
static void judge_key_fence(struct world *w, const struct grant *g, uint32_t key, uint64_t fence)
{
	uint64_t *last = &w->key_fences[sim_class(w, g->queue)][key];
	if ((!sim_has_guests(w, g->queue) && !sim_is_classed(w, g->queue)) ||
	    w->plan->variant == VARIANT_APART)
		return;
	if (fence <= *last)
		wrong(w, "job %" PRIu32 " has a fence that is not above the last one of its key",
		      g->jobs[0]);
	*last = fence;
}

static void judge_keys(struct world *w, const struct grant *g, const struct baton_work_claim *claim)
{
	if (g->key > 0 && g->lane > 0)
		count(w, COVER_GUEST);
	if (g->keys & ~KEY_BIT(g->key))
		count(w, COVER_SEVERAL);
	for (uint32_t k = 1; k <= SIM_KEYS; k++) {
		if (!(g->keys & KEY_BIT(k)))
			continue;
		judge_one_key(w, g, k);
		judge_key_fence(w, g, k, claim->fence.v);
		judge_rate_start(w, g, k, claim->claimed_at);
	}
}

static void grant_add(struct proc *p, const struct baton_work_claim *claim, uint32_t of)
{
	struct world *w = p->w;
	CHECK(w->grant_count < SIM_GRANTS_MAX && claim->count <= SIM_JOIN_MAX);
	struct grant *g = &w->grants[w->grant_count++];
	*g = (struct grant){
		.number = p->number,
		.at = claim->claimed_at,
		.queue = queue_of(claim->queue),
		.shard = claim->shard,
		.count = (uint32_t)claim->count,
		.of = of,
	};
	snprintf(g->id, sizeof g->id, "%s", claim->proof.id);
	g->fence = w->shards[g->queue][g->shard].fence.v;
	for (uint32_t i = 0; i < g->count; i++) {
		g->jobs[i] = (uint32_t)strtoul(claim->batches[i].payloads[0].ptr, NULL, 10);
		struct job *job = &w->jobs[g->jobs[i]];
		job->id = claim->batches[i].id;
		if (!job->put || job->done || job->removed)
			wrong(w, "job %" PRIu32 " is claimed, but it is not there", g->jobs[i]);
	}
	g->lane = w->jobs[g->jobs[0]].lane;
	g->key = w->jobs[g->jobs[0]].key;
	g->keys = w->jobs[g->jobs[0]].keys;
	say(w, p, "gets job %" PRIu32 " and %" PRIu32 " more of shard %" PRIu32 " of %s, claim %s",
	    g->jobs[0], g->count - 1, g->shard, sim_queues[g->queue], g->id);
	if (g->count > 1)
		count(w, COVER_JOINED);
	if (!is_current(w, g))
		wrong(w, "%s claims in shard %" PRIu32 ", which is not its own", p->name, g->shard);
	judge_order(w, g);
	judge_alone(w, g);
	judge_keys(w, g, claim);
}

static void judge_tick(struct proc *p, const struct core_request *r, const struct core_answer *a)
{
	if (a->err != BATON_OK) {
		if (r->end_count > 0)
			count(p->w, COVER_REFUSED);
		return;
	}
	judge_ends(p, r);
	uint32_t first = p->w->grant_count;
	for (size_t i = 0; a->claims && i < a->claims->count; i++)
		grant_add(p, &a->claims->claims[i], 0);
	judge_turns(p->w, first);
}

/* Only who has a claim of the lane gets more. */
static void judge_more(struct proc *p, const struct core_request *r, const struct core_answer *a)
{
	uint32_t of = judge_grant(p->w, r->more->proof.id);
	if (a->err != BATON_OK || !a->claims)
		return;
	if (p->w->grants[of].ended || p->w->grants[of].number != p->number)
		wrong(p->w, "%s gets more for claim %s, which it does not have", p->name,
		      r->more->proof.id);
	grant_add(p, &a->claims->claims[0], of + 1);
}

/* Shards. */

static void judge_shard(struct world *w, uint32_t queue, uint32_t number,
                        const struct baton_shard_answer *is)
{
	const struct baton_shard_answer *was = &w->shards[queue][number];
	if (is->fence.v < was->fence.v)
		wrong(w, "the fence of shard %" PRIu32 " of %s has fallen", number,
		      sim_queues[queue]);
	if (is->runner > 0 && is->runner != was->runner && is->fence.v == was->fence.v)
		wrong(w, "shard %" PRIu32 " of %s has a new owner under the same fence", number,
		      sim_queues[queue]);
	if (was->runner > 0 && is->runner > 0 && is->runner != was->runner)
		wrong(w, "shard %" PRIu32 " of %s was given away while it had an owner", number,
		      sim_queues[queue]);
	w->shards[queue][number] = *is;
}

static void judge_handler(struct world *w, const struct proc *p, const struct handler *h)
{
	const struct grant *g = &w->grants[h->grant];
	if (!is_current(w, g))
		wrong(w,
		      "%s works on job %" PRIu32 " in shard %" PRIu32
		      " of %s, which is not its own any more",
		      p->name, g->jobs[0], g->shard, sim_queues[g->queue]);
}

void judge_shards(struct world *w)
{
	for (uint32_t q = 0; q < PLAN_QUEUES; q++) {
		struct baton_shard_answer shards[SIM_SHARDS_MAX];
		CHECK(baton_shard_list(w->store, baton_str_z(sim_queues[q]), 0, shards,
		                       sim_shards[q]) == BATON_OK);
		for (uint32_t i = 0; i < sim_shards[q]; i++)
			judge_shard(w, q, i, &shards[i]);
	}
	for (uint32_t i = 0; i < w->proc_count; i++) {
		const struct proc *p = w->procs[i];
		for (size_t k = 0; k < SIM_HANDLERS_MAX; k++) {
			if (p->handlers[k].on)
				judge_handler(w, p, &p->handlers[k]);
		}
	}
}

/* Answers. */

static void judge_take_over(struct proc *p, const struct core_request *r,
                            const struct core_answer *a)
{
	struct world *w = p->w;
	if (a->err != BATON_OK) {
		count(w, COVER_TAKEOVER_LATE);
		return;
	}
	const struct proc *victim = proc_of(w, r->victim->number);
	bool known = victim && !victim->alive && victim->host == p->host;
	say(w, p, "takes over %" PRIu64 " by %s", r->victim->number,
	    known         ? "death"
	    : victim == p ? "right"
	                  : "silence");
	count(w, known         ? COVER_TAKEOVER_DEATH
	         : victim == p ? COVER_TAKEOVER_OWN
	                       : COVER_TAKEOVER_SILENCE);
	take_back(w, r->victim->number, r);
}

static void judge_registered(struct proc *p, const struct core_answer *a)
{
	struct world *w = p->w;
	if (a->err == BATON_OK)
		count(w, ++p->registrations > 1 ? COVER_REREGISTER : COVER_REGISTER);
	if (a->err == BATON_YIELD && a->fate == CORE_DYING)
		count(w, COVER_NAME_DYING);
}

static void judge_taken(struct proc *p, const struct core_request *r, const struct core_answer *a)
{
	for (size_t i = 0; i < r->shard_count && a->err == BATON_OK; i++)
		count(p->w, r->answers[i].err == BATON_OK ? COVER_TAKE : COVER_TAKE_YIELD);
}

static void given_back(struct proc *p, const struct core_request *r, const struct core_answer *a,
                       enum covered what)
{
	if (a->err != BATON_OK)
		return;
	count(p->w, what);
	take_back(p->w, p->number, r);
}

void judge_answer(struct proc *p, const struct core_request *r, struct core_answer *a)
{
	struct world *w = p->w;
	switch (r->kind) {
	case CORE_REGISTER:
		judge_registered(p, a);
		break;
	case CORE_TAKE_OVER:
		judge_take_over(p, r, a);
		break;
	case CORE_TAKE:
		judge_taken(p, r, a);
		break;
	case CORE_GIVE:
		given_back(p, r, a, COVER_GIVE);
		break;
	case CORE_LEAVE:
		given_back(p, r, a, COVER_LEAVE);
		break;
	case CORE_SETTLE:
		given_back(p, r, a, COVER_SETTLE);
		break;
	case CORE_TICK:
		judge_tick(p, r, a);
		break;
	case CORE_MORE:
		judge_more(p, r, a);
		break;
	case CORE_TELL:
		count(w, COVER_TELL);
		break;
	case CORE_PROVE:
		count(w, COVER_PROVE);
		break;
	case CORE_PROBE:
		count(w, COVER_PROBE);
		break;
	case CORE_WISH:
		if (!r->victim)
			count(w, COVER_NOTE);
		return;
	case CORE_SURVEY:
		return;
	}
	if (r->kind != CORE_TICK && r->kind != CORE_MORE && r->kind != CORE_PROVE &&
	    r->kind != CORE_PROBE)
		judge_shards(w);
}

/* Handlers. */

void judge_start(struct proc *p, const struct core_order *order)
{
	struct world *w = p->w;
	struct baton_mono deadline =
		baton_mono_add(p->proved, (struct baton_duration){w->plan->ttl - w->plan->margin});
	const struct grant *g = &w->grants[judge_grant(w, order->claim->proof.id)];
	if (order->claim->hold.ns != (g->key > 0 ? sim_key_ttl(w, g->queue).ns : 0))
		wrong(w, "a handler is not told how long it may have its key");
	if (baton_detach_state(&p->detach) != BATON_ATTACHED)
		wrong(w, "%s starts a handler, but is not attached", p->name);
	if (p->manual)
		wrong(w, "%s starts a handler, but was detached by hand", p->name);
	if (proc_now(p).ns >= deadline.ns && w->plan->variant != VARIANT_RECEIVED)
		wrong(w, "%s starts a handler after its deadline", p->name);
	if (p->stopping)
		wrong(w, "%s starts a handler, but was stopped", p->name);
}

void judge_running(struct proc *p, const struct handler *h)
{
	struct world *w = p->w;
	const struct grant *g = &w->grants[h->grant];
	uint32_t holds[SIM_KEYS + 1] = {0};
	judge_handler(w, p, h);
	for (uint32_t i = 0; i < w->proc_count; i++) {
		const struct proc *other = w->procs[i];
		for (size_t k = 0; k < SIM_HANDLERS_MAX; k++) {
			const struct handler *o = &other->handlers[k];
			if (o->on && o != h && is_same_lane(&w->grants[o->grant], g))
				wrong(w,
				      "two handlers of one lane run, of jobs %" PRIu32
				      " and %" PRIu32,
				      g->jobs[0], w->grants[o->grant].jobs[0]);
			for (uint32_t n = 1; n <= SIM_KEYS && o->on; n++)
				holds[n] += has_key(w, &w->grants[o->grant], g->queue, n) &&
				            sim_is_same_site(w, g->queue, p, other);
		}
	}
	for (uint32_t n = 1; n <= SIM_KEYS; n++) {
		if (has_key(w, g, g->queue, n) && holds[n] > sim_limit(w, g->queue))
			wrong(w, "%" PRIu32 " handlers of one key run, one of job %" PRIu32,
			      holds[n], g->jobs[0]);
	}
}
