/* What a batch that is ready waits for. */
#include <baton/stall.h>

#include <string.h>

#include <baton/metrics.h>
#include <baton/queue.h>

#include "base/fail.h"
#include "base/mem.h"
#include "store/store.h"

#define PAGE 8 /* of runners */

static bool begins_with(const char *text, const char *word)
{
	return strncmp(text, word, strlen(word)) == 0;
}

static bool is_detached(const struct baton_runner_info *r)
{
	return begins_with(r->state, "detached");
}

static bool is_leaving(const struct baton_runner_info *r)
{
	return begins_with(r->state, "draining") || r->weight == 0 || r->wish == BATON_WISH_DRAIN ||
	       r->wish == BATON_WISH_LEAVE;
}

/* How much a runner that serves the queue explains why nobody has a shard of it: one that works
 * will take it. */
static int rank(const struct baton_runner_info *r)
{
	return is_detached(r) ? 1 : is_leaving(r) ? 2 : 3;
}

/* Somebody who serves the queue, of those the one that is nearest to working; and the owner of the
 * shard, if there is one. `page` has room for a page. */
struct search {
	struct baton_str queue;
	uint64_t owner;
	struct baton_runner_info *page;
	int rank; /* of what was found; 0: nobody; 4: the owner */
};

static void consider(struct search *s, const struct baton_runner_info *r, struct baton_stalled *ret)
{
	int is = s->owner > 0                       ? (r->number == s->owner ? 4 : 0)
	         : baton_runner_serves(r, s->queue) ? rank(r)
	                                            : 0;
	if (is <= s->rank)
		return;
	s->rank = is;
	ret->runner = *r;
	ret->known = true;
}

static enum baton_err search(struct baton_store *store, struct search *s, struct baton_stalled *ret)
{
	size_t count = PAGE;
	uint64_t after = 0;
	while (count == PAGE && s->rank < 4) {
		enum baton_err e = baton_runner_list(store, after, s->page, PAGE, &count);
		if (e != BATON_OK)
			return e;
		for (size_t i = 0; i < count; i++) {
			after = s->page[i].number;
			consider(s, &s->page[i], ret);
		}
	}
	return BATON_OK;
}

/* Whether it had no slot free when it told last. */
static enum baton_err look_at_slots(struct baton_store *store, struct baton_stalled *ret)
{
	struct baton_runner_metrics *m = mem_new(store->alloc, 1, sizeof *m);
	if (!m)
		return fail_memory(sizeof *m, "the metrics of a runner");
	enum baton_err e = baton_runner_metrics(store, ret->runner.number, m, &ret->told);
	ret->stall = BATON_STALL_TURN;
	if (e == BATON_OK && m->slots > 0 && m->running >= m->slots) {
		ret->stall = BATON_STALL_SLOTS;
		ret->running = m->running;
		ret->slots = m->slots;
	}
	mem_free(store->alloc, m, 1, sizeof *m);
	return e == BATON_NOT_FOUND ? BATON_OK : e;
}

static enum baton_err judge(struct baton_store *store, const struct search *s,
                            struct baton_stalled *ret)
{
	const struct baton_runner_info *r = &ret->runner;
	ret->stall = BATON_STALL_NO_RUNNER;
	if (s->rank == 0)
		return BATON_OK;
	ret->stall = BATON_STALL_TRANSIT;
	if (baton_owner_is_dead(&store->owner, &r->owner, store->reach))
		ret->stall = s->owner > 0 ? BATON_STALL_DEAD : BATON_STALL_TRANSIT;
	else if (is_detached(r))
		ret->stall = BATON_STALL_DETACHED;
	else if (s->owner > 0 && !is_leaving(r))
		return look_at_slots(store, ret);
	return BATON_OK;
}

static enum baton_err look_at_runners(struct baton_store *store, const struct baton_work_info *info,
                                      struct baton_stalled *ret)
{
	struct baton_shard_answer owner = {.runner = 0};
	enum baton_err e = baton_shard_list(store, info->queue, info->shard, &owner, 1);
	if (e != BATON_OK)
		return e;
	struct search s = {.queue = info->queue, .owner = owner.runner};
	s.page = mem_new(store->alloc, PAGE, sizeof *s.page);
	if (!s.page)
		return fail_memory(PAGE * sizeof *s.page, "a list of runners");
	e = search(store, &s, ret);
	/* The owner has gone in between. */
	if (e == BATON_OK && s.owner > 0 && s.rank == 0) {
		s.owner = 0;
		e = search(store, &s, ret);
	}
	mem_free(store->alloc, s.page, PAGE, sizeof *s.page);
	ret->owned = s.owner > 0;
	return e == BATON_OK ? judge(store, &s, ret) : e;
}

enum baton_err baton_stall_look(struct baton_store *store, const struct baton_work_info *info,
                                struct baton_stalled *ret)
{
	struct baton_queue_info queue;
	enum baton_err e = baton_queue_get(store, info->queue, &queue);
	if (e != BATON_OK)
		return e;
	memset(ret, 0, sizeof *ret);
	ret->shard = info->shard;
	ret->stall = BATON_STALL_PAUSED;
	if (queue.policy.paused)
		return BATON_OK;
	switch (queue.policy.mode) {
	case BATON_QUEUE_PULL:
		ret->stall = BATON_STALL_PULLER;
		break;
	case BATON_QUEUE_LANE:
		ret->stall = BATON_STALL_HOLDER;
		break;
	case BATON_QUEUE_OPEN:
	case BATON_QUEUE_RUNNER:
		return look_at_runners(store, info, ret);
	}
	return BATON_OK;
}
