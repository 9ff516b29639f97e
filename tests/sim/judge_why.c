/* Whether what the store says about waiting work is the truth. */
#include <inttypes.h>
#include <string.h>

#include <baton/stall.h>

#include "base/check.h"
#include "sim/sim.h"

static bool has_job(const struct grant *g, uint32_t job)
{
	uint32_t i = 0;
	while (i < g->count && g->jobs[i] != job)
		i++;
	return i < g->count;
}

/* A claim that lasts, and has the job. */
static bool is_claimed(const struct world *w, uint32_t job)
{
	for (uint32_t i = w->grant_count; i > 0; i--) {
		if (!w->grants[i - 1].ended && has_job(&w->grants[i - 1], job))
			return true;
	}
	return false;
}

static bool is_lane_busy(const struct world *w, const struct job *job)
{
	for (uint32_t i = 0; i < w->grant_count && job->lane > 0; i++) {
		const struct grant *g = &w->grants[i];
		if (!g->ended && g->queue == job->queue && g->lane == job->lane)
			return true;
	}
	return false;
}

static const struct job *by_id(const struct world *w, const struct baton_batch_id *id)
{
	for (uint32_t i = 0; i < w->job_count; i++) {
		if (strcmp(w->jobs[i].id.text, id->text) == 0)
			return &w->jobs[i];
	}
	return NULL;
}

/* What is in the way has to be there, and be of the same lane or key. One that was emitted has no
 * name here until somebody claims it. */
static void judge_ahead(struct world *w, uint32_t number, const struct baton_work_info *info)
{
	const struct job *job = &w->jobs[number], *ahead = by_id(w, &info->ahead);
	if (!ahead)
		return;
	bool same = ahead != job && ahead->queue == job->queue &&
	            (info->key.len > 0 ? ahead->key == job->key : ahead->lane == job->lane);
	if (!same || ahead->done || ahead->removed)
		wrong(w, "job %" PRIu32 " is said to wait for job %s, and does not", number,
		      info->ahead.text);
}

/* Whom it waits for is who has its shard. */
static void judge_stall(struct world *w, uint32_t number, const struct baton_work_info *info)
{
	struct baton_stalled stalled;
	uint64_t owner = w->shards[w->jobs[number].queue][info->shard].runner;
	CHECK(baton_stall_look(w->store, info, &stalled) == BATON_OK);
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
		wrong(w, "job %" PRIu32 " is said to wait for what is not there", number);
		break;
	}
}

static void judge_ready(struct world *w, uint32_t number, const struct baton_work_info *info)
{
	const struct job *job = &w->jobs[number];
	if (is_lane_busy(w, job))
		wrong(w, "job %" PRIu32 " is said to be ready, but its lane is busy", number);
	if (w->paused[job->queue] != (info->why == BATON_WHY_PAUSED))
		wrong(w, "of job %" PRIu32 " it is not told that its queue is paused, or is not",
		      number);
	if (info->why == BATON_WHY_PAUSED)
		count(w, COVER_WHY_PAUSED);
	else
		judge_stall(w, number, info);
}

static void judge_info(struct world *w, uint32_t number, const struct baton_work_info *info)
{
	if ((info->why == BATON_WHY_NOTHING) != is_claimed(w, number))
		wrong(w, "of job %" PRIu32 " it is not told that it runs, or does not", number);
	switch (info->why) {
	case BATON_WHY_READY:
	case BATON_WHY_PAUSED:
		judge_ready(w, number, info);
		break;
	case BATON_WHY_DELAYED:
		count(w, COVER_WHY_DELAYED);
		if (!w->jobs[number].loose)
			wrong(w, "job %" PRIu32 " is said to be delayed", number);
		break;
	case BATON_WHY_RETRY:
		count(w, COVER_WHY_RETRY);
		if (info->batch.attempt == 0)
			wrong(w, "job %" PRIu32 " is said to have failed", number);
		break;
	case BATON_WHY_BEHIND:
		count(w, COVER_WHY_BEHIND);
		judge_ahead(w, number, info);
		break;
	case BATON_WHY_KEY:
		count(w, COVER_WHY_KEY);
		judge_ahead(w, number, info);
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

void judge_whys(struct world *w)
{
	for (uint32_t i = 0; i < w->job_count && !w->failed; i++) {
		const struct job *job = &w->jobs[i];
		struct baton_work_page *page;
		if (!job->put || job->done || job->removed || job->id.text[0] == '\0' ||
		    baton_work_get(w->store, &job->id, &page) != BATON_OK)
			continue;
		judge_info(w, i, &page->infos[0]);
		baton_work_page_free(page);
	}
}
