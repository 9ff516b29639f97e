/* Whether what the store says about waiting work is the truth. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <baton/stall.h>

#include "base/check.h"
#include "sim/sim.h"

#define SEEDS_PER_LITERAL 64 /* of which one is looked at after steps that write nothing, too */

/* What is known for certain at the moment of a look. */
struct truth {
	bool claimed[SIM_JOBS_MAX];
	uint32_t busy[PLAN_QUEUES][SIM_LANES];    /* claims of the lane that last */
	uint32_t held[PLAN_QUEUES][SIM_KEYS + 1]; /* of the key */
	const struct job *ahead;                  /* that was found last */
};

static void learn(struct world *w, struct truth *t)
{
	memset(t, 0, sizeof *t);
	while (w->grants_from < w->grant_count && w->grants[w->grants_from].ended)
		w->grants_from++;
	for (uint32_t i = w->grants_from; i < w->grant_count; i++) {
		const struct grant *g = &w->grants[i];
		if (g->ended)
			continue;
		t->busy[g->queue][g->lane]++;
		for (uint32_t k = 1; k <= SIM_KEYS; k++)
			t->held[sim_class(w, g->queue)][k] += (g->keys & KEY_BIT(k)) != 0;
		for (uint32_t k = 0; k < g->count; k++)
			t->claimed[g->jobs[k]] = true;
	}
}

static const struct job *by_id(const struct world *w, const struct baton_batch_id *id)
{
	for (uint32_t i = 0; i < w->job_count; i++) {
		if (strcmp(w->jobs[i].id.text, id->text) == 0)
			return &w->jobs[i];
	}
	return NULL;
}

/* Many wait for the same. */
static const struct job *find_ahead(const struct world *w, struct truth *t,
                                    const struct baton_batch_id *id)
{
	if (!t->ahead || strcmp(t->ahead->id.text, id->text) != 0)
		t->ahead = by_id(w, id);
	return t->ahead;
}

/* What is in the way has to be there, and be of the same lane or key. One that was emitted has no
 * name here until somebody claims it. */
static void judge_ahead(struct world *w, struct truth *t, uint32_t number,
                        const struct baton_work_info *info)
{
	const struct job *job = &w->jobs[number], *ahead = find_ahead(w, t, &info->ahead);
	if (!ahead)
		return;
	bool held = info->why == BATON_WHY_KEY && (ahead->keys & job->keys) != 0;
	bool same = ahead != job && ahead->queue == job->queue &&
	            ((ahead->keys & job->keys) != 0 || (job->lane > 0 && ahead->lane == job->lane));
	if (held && ahead->queue != job->queue)
		count(w, COVER_WHY_CLASSED);
	same = same || (held && sim_class(w, ahead->queue) == sim_class(w, job->queue));
	if (!same || ahead->done || ahead->removed)
		wrong(w, "job %" PRIu32 " is said to wait for job %s, and does not", number,
		      info->ahead.text);
}

/* Who is first in a lane was put first, unless somebody has it, or one of them was delayed. */
static void judge_behind(struct world *w, struct truth *t, uint32_t number,
                         const struct baton_work_info *info)
{
	const struct job *job = &w->jobs[number], *ahead = find_ahead(w, t, &info->ahead);
	judge_ahead(w, t, number, info);
	if (ahead && job->lane > 0 && ahead->lane == job->lane && !t->claimed[ahead - w->jobs] &&
	    !job->loose && !ahead->loose && ahead->order > job->order)
		wrong(w, "job %" PRIu32 " is said to be behind job %s, which was put later", number,
		      info->ahead.text);
}

/* Whether the key is full where the job's shard is; nobody may have that. */
static bool is_full(const struct world *w, uint32_t number, const struct baton_work_info *info,
                    uint32_t key)
{
	const uint32_t queue = w->jobs[number].queue;
	const struct proc *p = proc_of(w, w->shards[queue][info->shard].runner);
	return p && sim_holds(w, queue, key, p) >= sim_key_limits[queue];
}

/* Where a key counts for each host, or each process, it is held there. */
static void judge_site(struct world *w, uint32_t number, const struct baton_work_info *info,
                       const struct job *ahead)
{
	const uint32_t queue = w->jobs[number].queue;
	bool there = false;
	if (info->scope != sim_scope(w, queue))
		wrong(w, "of job %" PRIu32 " it is not told where its key counts", number);
	if (!sim_has_sites(w, queue))
		return;
	count(w, COVER_WHY_SITE);
	if (!is_full(w, number, info, sim_key(info->held)))
		wrong(w, "job %" PRIu32 " is said to wait for its key, which has room there",
		      number);
	const struct proc *p = proc_of(w, w->shards[queue][info->shard].runner);
	for (uint32_t i = w->grants_from; i < w->grant_count && ahead; i++) {
		const struct grant *g = &w->grants[i];
		for (uint32_t k = 0; k < g->count && !g->ended; k++)
			there = there || (&w->jobs[g->jobs[k]] == ahead &&
			                  sim_is_same_site(w, queue, p, proc_of(w, g->number)));
	}
	if (ahead && !there)
		wrong(w, "job %" PRIu32 " is said to wait for job %s, which runs elsewhere", number,
		      info->ahead.text);
}

/* Who holds a key has a claim, or keeps it for the next attempt where that is so. */
static void judge_holder(struct world *w, struct truth *t, uint32_t number,
                         const struct baton_work_info *info)
{
	const struct job *ahead = find_ahead(w, t, &info->ahead);
	judge_ahead(w, t, number, info);
	if (w->jobs[number].lane > 0)
		count(w, COVER_WHY_GUEST);
	const uint32_t held = sim_key(info->held);
	if (held == 0 || !(w->jobs[number].keys & KEY_BIT(held)))
		wrong(w, "job %" PRIu32 " is said to wait for a key that it does not have", number);
	if (ahead && !(ahead->keys & KEY_BIT(held)))
		wrong(w, "job %" PRIu32 " is said to wait for its key, which job %s does not have",
		      number, info->ahead.text);
	judge_site(w, number, info, ahead);
	const bool gives_up = w->jobs[number].queue == 0 || sim_has_sites(w, w->jobs[number].queue);
	if (ahead && !t->claimed[ahead - w->jobs] && gives_up)
		wrong(w, "job %" PRIu32 " is said to wait for its key, which job %s does not hold",
		      number, info->ahead.text);
}

/* Whom it waits for is who has its shard: the same for all there, until a runner changes. */
static void judge_stall(struct world *w, uint32_t number, const struct baton_work_info *info)
{
	struct baton_stalled stalled;
	bool *judged = &w->stalls[w->jobs[number].queue][info->shard];
	if (*judged)
		return;
	*judged = true;
	uint64_t owner = w->shards[w->jobs[number].queue][info->shard].runner;
	CHECK(baton_stall_look(w->store, info, &stalled) == BATON_OK);
	if (w->paused[w->jobs[number].queue] != (stalled.stall == BATON_STALL_PAUSED))
		wrong(w, "of job %" PRIu32 " it is not told that it waits for its queue", number);
	if (stalled.stall == BATON_STALL_PAUSED)
		return;
	if (stalled.owned != (owner > 0) || (owner > 0 && stalled.runner.number != owner))
		wrong(w,
		      "job %" PRIu32 " is said to wait for runner %" PRIu64
		      ", but its shard is that of %" PRIu64,
		      number, stalled.known ? stalled.runner.number : 0, owner);
	switch (stalled.stall) {
	case BATON_STALL_NO_RUNNER:
		count(w, COVER_STALL_NOBODY);
		break;
	case BATON_STALL_DETACHED:
		count(w, COVER_STALL_DETACHED);
		break;
	case BATON_STALL_TRANSIT:
		count(w, COVER_STALL_TRANSIT);
		break;
	case BATON_STALL_TURN:
		count(w, COVER_STALL_TURN);
		break;
	case BATON_STALL_DEAD:
	case BATON_STALL_SLOTS:
	case BATON_STALL_PULLER:
	case BATON_STALL_HOLDER:
	case BATON_STALL_PAUSED:
		wrong(w, "job %" PRIu32 " is said to wait for what is not there", number);
		break;
	}
}

static void judge_ready(struct world *w, struct truth *t, uint32_t number,
                        const struct baton_work_info *info)
{
	const struct job *job = &w->jobs[number];
	if (job->lane > 0 && t->busy[job->queue][job->lane] > 0)
		wrong(w, "job %" PRIu32 " is said to be ready, but its lane is busy", number);
	for (uint32_t k = 1; k <= SIM_KEYS; k++) {
		const bool full =
			sim_has_sites(w, job->queue)
				? is_full(w, number, info, k)
				: t->held[sim_class(w, job->queue)][k] >= sim_limit(w, job->queue);
		if ((job->keys & KEY_BIT(k)) && full)
			wrong(w, "job %" PRIu32 " is said to be ready, but its key is held",
			      number);
	}
	if (w->paused[job->queue] != (info->why == BATON_WHY_PAUSED))
		wrong(w, "of job %" PRIu32 " it is not told that its queue is paused, or is not",
		      number);
	if (info->why == BATON_WHY_PAUSED)
		count(w, COVER_WHY_PAUSED);
	else
		judge_stall(w, number, info);
}

/* It is told until when; and once that has passed, who has not seen to it yet. */
static void judge_due(struct world *w, uint32_t number, const struct baton_work_info *info)
{
	const bool retry = info->why == BATON_WHY_RETRY;
	if (retry ? info->batch.attempt == 0 : !w->jobs[number].loose)
		wrong(w, "job %" PRIu32 " is said to %s", number,
		      retry ? "have failed" : "be delayed");
	count(w, retry ? COVER_WHY_RETRY : COVER_WHY_DELAYED);
	if (baton_store_time_ready(info->due, baton_store_now(w->store))) {
		count(w, COVER_WHY_DUE);
		judge_stall(w, number, info);
	} else if (info->due.ms < w->due.ms) {
		w->due = info->due;
	}
}

/* Its key has started so often; and once it may start again, who has not seen to it yet. */
static void judge_rate(struct world *w, uint32_t number, const struct baton_work_info *info)
{
	const struct job *job = &w->jobs[number];
	const struct baton_store_time now = baton_store_now(w->store);
	bool due = baton_store_time_ready(info->due, now);
	const uint32_t held = sim_key(info->held);
	const struct grant where = {.queue = job->queue,
	                            .number = w->shards[job->queue][info->shard].runner};
	count(w, sim_has_sites(w, job->queue) ? COVER_WHY_RATE_SITE : COVER_WHY_RATE);
	if (held == 0 || !(job->keys & KEY_BIT(held)) || info->rate.starts == 0 ||
	    info->rate.starts != sim_rate(w, job->queue).starts ||
	    (!due && !w->set_back && !judge_is_full(w, &where, held, now)))
		wrong(w, "job %" PRIu32 " is said to wait for its rate, and does not", number);
	if (due)
		judge_stall(w, number, info);
	else if (info->due.ms < w->due.ms)
		w->due = info->due;
}

static void judge_info(struct world *w, struct truth *t, uint32_t number,
                       const struct baton_work_info *info)
{
	if ((info->why == BATON_WHY_NOTHING) != t->claimed[number])
		wrong(w, "of job %" PRIu32 " it is not told that it runs, or does not", number);
	switch (info->why) {
	case BATON_WHY_READY:
	case BATON_WHY_PAUSED:
		judge_ready(w, t, number, info);
		break;
	case BATON_WHY_DELAYED:
	case BATON_WHY_RETRY:
		judge_due(w, number, info);
		break;
	case BATON_WHY_BEHIND:
		count(w, COVER_WHY_BEHIND);
		judge_behind(w, t, number, info);
		break;
	case BATON_WHY_KEY:
		count(w, COVER_WHY_KEY);
		judge_holder(w, t, number, info);
		break;
	case BATON_WHY_RATE:
		judge_rate(w, number, info);
		break;
	case BATON_WHY_LANE_HELD:
		wrong(w, "job %" PRIu32 " is said to be held by a dead one", number);
		break;
	case BATON_WHY_NOTHING:
	case BATON_WHY_DEAD:
	case BATON_WHY_DONE:
	case BATON_WHY_SKIPPED:
		break;
	}
}

/* What was emitted, of which nobody has told the name. */
static void find_names(struct world *w)
{
	struct baton_work_filter f = {.after = w->named, .max = BATON_LIST_MAX};
	do {
		struct baton_work_page *page, *one;
		CHECK(baton_work_list(w->store, &f, &page) == BATON_OK);
		for (size_t i = 0; i < page->count; i++) {
			const struct baton_batch_id *id = &page->infos[i].batch.id;
			CHECK(baton_work_get(w->store, id, &one) == BATON_OK);
			const char *text = one->infos[0].batch.payloads[0].ptr;
			w->jobs[strtoul(text, NULL, 10)].name = *id;
			w->named = page->infos[i].batch.seq;
			baton_work_page_free(one);
		}
		f.after = page->next;
		baton_work_page_free(page);
	} while (f.after > 0);
}

/* What is said of a batch follows from what the store has and from what is due by now. */
static bool may_have_changed(const struct world *w)
{
	return w->written || baton_store_time_ready(w->due, baton_store_now(w->store));
}

static void judge_one(struct world *w, struct truth *t, uint32_t number)
{
	const struct job *job = &w->jobs[number];
	struct baton_work_page *page;
	if (!job->put || job->done || job->removed || job->skipped ||
	    baton_work_get(w->store, &job->name, &page) != BATON_OK)
		return;
	judge_info(w, t, number, &page->infos[0]);
	baton_work_page_free(page);
}

void judge_whys(struct world *w)
{
	static struct truth truth;
	const bool literal = w->plan->seed % SEEDS_PER_LITERAL == 0;
	if (!may_have_changed(w) && !literal)
		return;
	find_names(w);
	if (w->moved || literal)
		memset(w->stalls, 0, sizeof w->stalls);
	w->written = w->moved = false;
	w->due = BATON_STORE_TIME_NEVER;
	count(w, COVER_WHY_LOOK);
	learn(w, &truth);
	for (uint32_t i = 0; i < w->job_count && !w->failed; i++)
		judge_one(w, &truth, i);
}
