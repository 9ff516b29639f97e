/* How a store stands at one moment. */
#include "sight.h"

#include <stdlib.h>
#include <string.h>

#include "wall.h"

#define PAGE 64
#define NS_PER_S 1e9

/* Pages of dead jobs that a look goes through in each queue. */
#define FAILURE_PAGES 2

static const struct sight_queue *queue_of(const struct sight *s, const char *name)
{
	for (size_t i = 0; s && i < s->queue_count; i++) {
		if (strcmp(s->queues[i].info.name, name) == 0)
			return &s->queues[i];
	}
	return NULL;
}

static double rate(uint64_t before, uint64_t now, double seconds)
{
	return now >= before && seconds > 0 ? (double)(now - before) / seconds : 0;
}

/* What has happened since then. */
static void rates_set(struct sight *s, const struct sight *before, struct sight_queue *q)
{
	const struct sight_queue *old = queue_of(before, q->info.name);
	q->done = q->failed = -1;
	if (!old)
		return;
	double seconds = (double)(s->taken.ns - before->taken.ns) / NS_PER_S;
	q->done = rate(old->info.counts.done, q->info.counts.done, seconds);
	q->failed = rate(old->info.counts.failed, q->info.counts.failed, seconds);
}

static enum baton_err owners_read(struct baton_store *store, struct sight_queue *q)
{
	uint32_t shards = q->info.policy.shards;
	struct baton_shard_answer *answers = calloc(shards, sizeof *answers);
	q->owners = calloc(shards, sizeof *q->owners);
	enum baton_err e = BATON_NO_MEMORY;
	if (answers && q->owners)
		e = baton_shard_list(store, baton_str_z(q->info.name), 0, answers, shards);
	for (uint32_t i = 0; e == BATON_OK && i < shards; i++)
		q->owners[i] = answers[i].runner;
	free(answers);
	return e;
}

static bool queues_grow(struct sight *s)
{
	if (s->queue_count + PAGE <= s->queue_cap)
		return true;
	size_t cap = 2 * s->queue_cap + PAGE;
	struct sight_queue *larger = reallocarray(s->queues, cap, sizeof *larger);
	if (!larger)
		return false;
	s->queues = larger;
	s->queue_cap = cap;
	return true;
}

static enum baton_err page_add(struct sight *s, struct baton_store *store,
                               const struct sight *before, const struct baton_queue_info *infos,
                               size_t count)
{
	if (!queues_grow(s))
		return BATON_NO_MEMORY;
	for (size_t i = 0; i < count; i++) {
		struct sight_queue *q = &s->queues[s->queue_count++];
		*q = (struct sight_queue){.info = infos[i]};
		rates_set(s, before, q);
		enum baton_err e = q->info.policy.mode == BATON_QUEUE_RUNNER ? owners_read(store, q)
		                                                             : BATON_OK;
		if (e != BATON_OK)
			return e;
	}
	return BATON_OK;
}

static enum baton_err queues_read(struct sight *s, struct baton_store *store,
                                  const struct sight *before)
{
	struct baton_queue_info *infos = calloc(PAGE, sizeof *infos);
	char after[BATON_NAME_MAX + 1] = "";
	enum baton_err e = infos ? BATON_OK : BATON_NO_MEMORY;
	size_t count = PAGE;
	while (e == BATON_OK && count == PAGE) {
		e = baton_queue_list(store, baton_str_z(after), infos, PAGE, &count);
		if (e == BATON_OK)
			e = page_add(s, store, before, infos, count);
		if (e == BATON_OK && count > 0)
			memcpy(after, infos[count - 1].name, sizeof after);
	}
	free(infos);
	return e;
}

static void text_copy(char *to, size_t room, struct baton_str from)
{
	size_t len = from.len < room - 1 ? from.len : room - 1;
	if (len > 0)
		memcpy(to, from.ptr, len);
	to[len] = '\0';
}

/* Puts it in its place, if it is one of the latest. */
static void failure_add(struct sight *s, const struct baton_work_info *info)
{
	struct baton_store_time at = info->ended_at;
	size_t i = s->failure_count;
	while (i > 0 && s->failures[i - 1].at.ms <= at.ms)
		i--;
	if (i == SIGHT_FAILURES)
		return;
	s->failure_count += s->failure_count < SIGHT_FAILURES;
	memmove(&s->failures[i + 1], &s->failures[i],
	        (s->failure_count - 1 - i) * sizeof s->failures[0]);
	struct sight_failure *f = &s->failures[i];
	*f = (struct sight_failure){
		.id = info->batch.id,
		.attempt = info->batch.attempt,
		.at = at,
	};
	text_copy(f->queue, sizeof f->queue, info->queue);
	text_copy(f->lane, sizeof f->lane, info->lane);
	text_copy(f->error, sizeof f->error, info->error);
	f->error_len = info->error.len < SIGHT_ERROR ? info->error.len : SIGHT_ERROR;
}

static enum baton_err failures_read(struct sight *s, struct baton_store *store, const char *queue)
{
	struct baton_work_filter filter = {
		.queue = baton_str_z(queue),
		.state = BATON_BATCH_DEAD,
		.max = BATON_LIST_MAX,
	};
	for (int i = 0; i < FAILURE_PAGES; i++) {
		struct baton_work_page *page = NULL;
		enum baton_err e = baton_work_list(store, &filter, &page);
		if (e != BATON_OK)
			return e;
		for (size_t k = 0; k < page->count; k++)
			failure_add(s, &page->infos[k]);
		filter.after = page->next;
		baton_work_page_free(page);
		if (filter.after == 0)
			return BATON_OK;
	}
	s->more = true;
	return BATON_OK;
}

static enum baton_err keys_read(struct sight *s, struct baton_store *store)
{
	const struct baton_queue_info **queues =
		calloc(s->queue_count + 1, sizeof(const struct baton_queue_info *));
	if (!queues)
		return BATON_NO_MEMORY;
	for (size_t i = 0; i < s->queue_count; i++)
		queues[i] = &s->queues[i].info;
	enum baton_err e = hitches_read(&s->hitches, store, queues, s->queue_count);
	free(queues);
	return e;
}

enum baton_err sight_take(struct sight *s, struct baton_store *store, const struct sight *before)
{
	s->taken = wall_now().boot;
	s->now = baton_store_now(store);
	enum baton_err e = queues_read(s, store, before);
	if (e == BATON_OK)
		e = runners_read(&s->runners, store);
	for (size_t i = 0; i < s->queue_count && e == BATON_OK; i++) {
		if (s->queues[i].info.counts.dead > 0)
			e = failures_read(s, store, s->queues[i].info.name);
	}
	return e == BATON_OK ? keys_read(s, store) : e;
}

void sight_done(struct sight *s)
{
	for (size_t i = 0; i < s->queue_count; i++)
		free(s->queues[i].owners);
	free(s->queues);
	runners_done(&s->runners);
	*s = (struct sight){.queues = NULL};
}
