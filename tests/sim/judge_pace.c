/* Whether keys take turns where they should, and start no more often than they may; and how long
 * they may be had. */
#include <inttypes.h>
#include <string.h>

#include <baton/work.h>

#include "sim/sim.h"

bool sim_has_guests(const struct world *w, uint32_t queue)
{
	return (w->plan->seed / 11 + queue) % 3 == 0;
}

bool sim_is_classed(const struct world *w, uint32_t queue)
{
	return queue > 0 && (w->plan->seed / 13) % 3 == 0;
}

uint32_t sim_class(const struct world *w, uint32_t queue)
{
	return sim_is_classed(w, queue) ? 1 : queue;
}

/* Jobs with a lane and a key do not give way, and so no others of their class do. */
bool sim_waits_always(const struct world *w, uint32_t queue)
{
	for (uint32_t i = 0; i < PLAN_QUEUES; i++) {
		if (sim_class(w, i) == sim_class(w, queue) && sim_has_guests(w, i))
			return true;
	}
	return false;
}

uint32_t sim_limit(const struct world *w, uint32_t queue)
{
	/* So many that only what is counted beside who holds a key can be wrong. */
	if (w->plan->variant == VARIANT_APART && sim_is_classed(w, queue))
		return 1000;
	return sim_key_limits[sim_class(w, queue)];
}

bool sim_is_fair(const struct world *w, uint32_t queue)
{
	return (w->plan->seed / 5 + queue) % 2 == 0 && !sim_has_guests(w, queue);
}

/* Whether the job can be claimed in that shard now. */
static bool is_claimable(const struct world *w, const struct job *job, uint32_t shard)
{
	struct baton_work_page *page = NULL;
	if (!job->put || job->done || job->removed || job->id.text[0] == '\0' ||
	    baton_work_get(w->store, &job->id, &page) != BATON_OK)
		return false;
	bool can = page->infos[0].why == BATON_WHY_READY && page->infos[0].shard == shard;
	baton_work_page_free(page);
	return can;
}

/* One that could be claimed when this key was claimed from last, and can be now, was passed by. */
static void judge_pass(struct world *w, const struct grant *g, uint32_t number)
{
	const struct job *other = &w->jobs[number], *job = &w->jobs[g->jobs[0]];
	uint32_t *passed = &w->passed[g->queue][g->key][other->key];
	if (*passed == number + 1 && other->batch.priority >= job->batch.priority)
		wrong(w, "job %" PRIu32 " is passed again by job %" PRIu32 " of another key",
		      number, g->jobs[0]);
	count(w, COVER_PASSED);
	*passed = number + 1;
}

/* Whether it had no turn when the grant with that number was made: its key was claimed from in
 * another queue by the same call, which takes one of a class once; or the head of its line was one
 * that was given later by the same call. */
static bool is_taken(const struct world *w, uint32_t first, uint32_t number, const struct job *job)
{
	for (uint32_t i = first; i < w->grant_count; i++) {
		const struct grant *g = &w->grants[i];
		bool before = g->queue == job->queue && i > number && g->key == job->key &&
		              g->shard == w->grants[number].shard;
		bool elsewhere = g->queue != job->queue && (g->keys & KEY_BIT(job->key)) &&
		                 sim_class(w, g->queue) == sim_class(w, job->queue);
		if (before || elsewhere)
			return true;
	}
	return false;
}

/* In the order in which they were given. */
void judge_turns(struct world *w, uint32_t first)
{
	for (uint32_t i = first; i < w->grant_count && !w->failed; i++) {
		const struct grant *g = &w->grants[i];
		bool looks = g->key > 0 && sim_is_fair(w, g->queue);
		for (uint32_t k = 0; k <= SIM_KEYS; k++)
			w->passed[g->queue][k][g->key] = 0;
		for (uint32_t n = 0; n < w->job_count && looks && !w->failed; n++) {
			const struct job *job = &w->jobs[n];
			if (job->queue == g->queue && job->key > 0 && job->key != g->key &&
			    !is_taken(w, first, i, job) && is_claimable(w, job, g->shard))
				judge_pass(w, g, n);
		}
	}
}

struct baton_duration sim_key_ttl(const struct world *w, uint32_t queue)
{
	/* Not where another rule would see at once what is to be caught. */
	bool limited = (w->plan->seed / 7 + sim_class(w, queue)) % 3 == 0;
	limited = limited && w->plan->variant != VARIANT_GUESTLESS &&
	          w->plan->variant != VARIANT_PARTIAL;
	return (struct baton_duration){limited ? 2 * SIM_S : 0};
}

struct baton_key_rate sim_rate(const struct world *w, uint32_t queue)
{
	bool rated = (w->plan->seed / 3 + sim_class(w, queue)) % 3 == 0;
	return (struct baton_key_rate){rated ? SIM_STARTS : 0, {rated ? 700 * SIM_MS : 0}};
}

bool judge_is_full(const struct world *w, const struct grant *g, uint32_t key,
                   struct baton_store_time now)
{
	const struct baton_key_rate rate = sim_rate(w, g->queue);
	const uint32_t of = sim_class(w, g->queue);
	const struct baton_store_time first = w->started[of][key][SIM_STARTS - 1];
	if (sim_has_sites(w, g->queue))
		return rate.starts > 0 && sim_starts(w, g, key, now) >= rate.starts;
	return rate.starts > 0 && key > 0 && first.ms > 0 &&
	       !baton_store_time_ready(baton_store_time_add(first, rate.window), now);
}

void judge_rate_start(struct world *w, const struct grant *g, uint32_t key,
                      struct baton_store_time at)
{
	struct baton_store_time *started = w->started[sim_class(w, g->queue)][key];
	if (sim_rate(w, g->queue).starts == 0)
		return;
	if (judge_is_full(w, g, key, at))
		wrong(w, "job %" PRIu32 " starts, though its key has started %d times before",
		      g->jobs[0], SIM_STARTS);
	memmove(started + 1, started, (SIM_STARTS - 1) * sizeof *started);
	started[0] = at;
	count(w, sim_is_classed(w, g->queue)  ? COVER_RATED_CLASSED
	         : sim_has_sites(w, g->queue) ? COVER_RATED_SITE
	                                      : COVER_RATED);
}

/* What has started at times that are yet to come is not known to have started. */
void judge_set_back(struct world *w)
{
	memset(w->started, 0, sizeof w->started);
	w->counted = w->grant_count;
	w->set_back = true;
}
