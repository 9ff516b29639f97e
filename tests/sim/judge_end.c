/* What has to be true in the end: all work is done, and the shards are shared out. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "sim/sim.h"

#define LIMIT_S 120 /* within so much time after the last fault everything is done */

static bool serves(const struct proc *p, uint32_t queue)
{
	for (size_t i = 0; i < p->serve_count; i++) {
		if (baton_str_equal(p->queues[i], baton_str_z(sim_queues[queue])))
			return true;
	}
	return false;
}

static uint32_t owned(const struct world *w, const struct proc *p, uint32_t queue)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < sim_shards[queue]; i++)
		n += core_number(p->core) > 0 && w->shards[queue][i].runner == core_number(p->core);
	return n;
}

/* Whether everybody has his share of the queue's shards, rounded up or down. */
static bool is_balanced(const struct world *w, uint32_t queue)
{
	uint32_t weights = 0, shards = sim_shards[queue], all = 0;
	for (uint32_t i = 0; i < w->proc_count; i++) {
		const struct proc *p = w->procs[i];
		if (p->alive && serves(p, queue))
			weights += 1 + p->seat % 2;
	}
	for (uint32_t i = 0; i < w->proc_count; i++) {
		const struct proc *p = w->procs[i];
		if (!p->alive || !serves(p, queue))
			continue;
		uint32_t part = shards * (1 + p->seat % 2);
		uint32_t has = owned(w, p, queue);
		if (has < part / weights || has > (part + weights - 1) / weights)
			return false;
		all += has;
	}
	return all == shards;
}

static const char *unfinished_runners(const struct world *w)
{
	for (uint32_t i = 0; i < w->plan->seats; i++) {
		const struct proc *p = proc_at(w, i);
		if (w->retired[i] && !p)
			continue;
		if (!p)
			return "a runner is not there";
		if (w->retired[i])
			return "a runner does not end";
		if (baton_detach_state(&p->detach) != BATON_ATTACHED)
			return "a runner is not attached";
	}
	for (uint32_t i = 0; i < PLAN_QUEUES; i++) {
		if (!is_balanced(w, i))
			return "the shards are not shared out as they should";
	}
	return NULL;
}

static const char *unfinished_work(const struct world *w)
{
	for (uint32_t i = 0; i < PLAN_QUEUES; i++) {
		struct baton_queue_info info;
		CHECK(baton_queue_get(w->store, baton_str_z(sim_queues[i]), &info) == BATON_OK);
		if (info.counts.running > 0)
			return "something is still claimed";
		if (info.counts.ready > 0)
			return "something is still ready";
		if (info.counts.delayed > 0)
			return "something is still delayed";
	}
	return NULL;
}

static void judge_job(struct world *w, uint32_t i)
{
	const struct job *job = &w->jobs[i];
	struct baton_work_page *page;
	if (!job->put || job->done || job->removed || job->skipped)
		return;
	enum baton_err e = job->id.text[0] == '\0' ? BATON_NOT_FOUND
	                                           : baton_work_get(w->store, &job->id, &page);
	if (e == BATON_NOT_FOUND) {
		if (!job->cancel)
			wrong(w, "job %" PRIu32 " is lost", i);
		return;
	}
	CHECK(e == BATON_OK);
	if (page->infos[0].state == BATON_BATCH_DEAD)
		count(w, COVER_DEAD);
	else
		wrong(w, "job %" PRIu32 " is neither done nor dead", i);
	baton_work_page_free(page);
}

static uint32_t class_of(const struct world *w, struct baton_str queue)
{
	uint32_t i = 0;
	while (i + 1 < PLAN_QUEUES && !baton_str_equal(queue, baton_str_z(sim_queues[i])))
		i++;
	return sim_class(w, i);
}

static bool is_same_class(const struct world *w, struct baton_str a, struct baton_str b)
{
	return class_of(w, a) == class_of(w, b);
}

/* One that was skipped, for another of its key. */
static void judge_skipped(struct world *w, const struct baton_batch_id *id)
{
	struct baton_work_page *page, *other = NULL;
	CHECK(baton_work_get(w->store, id, &page) == BATON_OK);
	const struct baton_work_info *info = &page->infos[0];
	unsigned long number = strtoul(info->batch.payloads[0].ptr, NULL, 10);
	struct job *job = &w->jobs[number];
	if (!job->put || job->done || job->removed)
		wrong(w, "job %lu is skipped, but it was not there", number);
	if (info->ahead.text[0] == '\0')
		wrong(w, "job %lu is skipped for nobody", number);
	else if (baton_work_get(w->store, &info->ahead, &other) == BATON_OK &&
	         !(baton_str_equal(other->infos[0].key, info->key) &&
	           is_same_class(w, other->infos[0].queue, info->queue)))
		wrong(w, "job %lu is skipped for one that has another key", number);
	job->skipped = true;
	count(w, COVER_SKIPPED);
	if (other && !baton_str_equal(other->infos[0].queue, info->queue))
		count(w, COVER_SKIPPED_ELSEWHERE);
	baton_work_page_free(other);
	baton_work_page_free(page);
}

void find_skipped(struct world *w)
{
	struct baton_work_filter f = {.state = BATON_BATCH_SKIPPED, .max = BATON_LIST_MAX};
	do {
		struct baton_work_page *page;
		CHECK(baton_work_list(w->store, &f, &page) == BATON_OK);
		for (size_t i = 0; i < page->count; i++)
			judge_skipped(w, &page->infos[i].batch.id);
		f.after = page->next;
		baton_work_page_free(page);
	} while (f.after > 0);
}

static void judge_counts(struct world *w)
{
	uint64_t done[PLAN_QUEUES] = {0};
	for (uint32_t i = 0; i < w->job_count; i++)
		done[w->jobs[i].queue] += w->jobs[i].done;
	for (uint32_t i = 0; i < PLAN_QUEUES; i++) {
		struct baton_queue_info info;
		CHECK(baton_queue_get(w->store, baton_str_z(sim_queues[i]), &info) == BATON_OK);
		if (info.counts.done != done[i])
			wrong(w,
			      "%" PRIu64 " jobs of %s were completed, and the store says %" PRIu64,
			      done[i], sim_queues[i], info.counts.done);
	}
}

static void on_fault(void *arg, const char *sentence)
{
	wrong(arg, "the store does not fit together: %s", sentence);
}

static void judge_all(struct world *w)
{
	uint64_t faults;
	find_skipped(w);
	for (uint32_t i = 0; i < w->job_count; i++)
		judge_job(w, i);
	judge_counts(w);
	CHECK(baton_store_check(w->store, on_fault, w, &faults) == BATON_OK);
	w->over = true;
}

static void tell_unfinished(struct world *w)
{
	for (uint32_t i = 0; i < w->job_count; i++) {
		const struct job *job = &w->jobs[i];
		if (job->put && !job->done && !job->removed)
			say(w, NULL,
			    "job %" PRIu32 " of %s, batch %s, lane %" PRIu32 ", is not done", i,
			    sim_queues[job->queue], job->id.text, job->lane);
	}
}

void judge_look(struct world *w)
{
	const char *why = unfinished_work(w);
	heal_again(w);
	if (!why)
		why = unfinished_runners(w);
	if (!why)
		judge_all(w);
	else if (w->now < w->plan->end + LIMIT_S * SIM_S)
		event_add(w, w->now + SIM_S, EV_LOOK, 0, 0);
	else
		wrong(w, "%d s after the last fault %s", LIMIT_S, why);
	if (why && w->failed) {
		tell_unfinished(w);
		w->rule = why;
	}
}
