/* Claiming from a queue of a store in memory: from whichever lanes are free. */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/fail.h"
#include "base/mem.h"
#include "queue/policy.h"
#include "store/memory/class.h"
#include "store/memory/due.h"
#include "store/memory/lane.h"
#include "store/memory/lease.h"
#include "store/memory/ops.h"
#include "store/memory/pace.h"
#include "store/memory/queue.h"
#include "store/memory/site.h"
#include "store/memory/take.h"
#include "store/refuse.h"

#define SUBJECT_MAX (BATON_NAME_MAX + 5)

static struct baton_str subject_of(struct baton_str queue, char text[SUBJECT_MAX + 1])
{
	int len = snprintf(text, SUBJECT_MAX + 1, "pull/%.*s", (int)queue.len, queue.ptr);
	return (struct baton_str){text, (size_t)len};
}

static enum baton_err check_lease(const struct tx *tx, const struct queue *queue,
                                  const struct baton_owner *owner)
{
	char subject[SUBJECT_MAX + 1];
	const struct lease *lease = memory_lease_find(tx->m, subject_of(queue->name, subject));
	if (!lease || !lease_is_live(&lease->is.row, tx->now) ||
	    baton_id_equal(&lease->is.row.owner.incarnation, &owner->incarnation) ||
	    baton_owner_is_dead(&tx->m->store.owner, &lease->is.row.owner, tx->m->store.reach))
		return BATON_OK;
	return refuse_puller(queue->name, lease->is.row.owner.id);
}

static bool comes_before(const struct batch *a, const struct batch *b)
{
	if (a->put.priority != b->put.priority)
		return a->put.priority > b->put.priority;
	return memory_pace_before(a, b);
}

/* The first batches of the lanes that can be claimed from. */
struct firsts {
	struct batch **list;
	size_t count, cap;
};

static int first_compare(const void *a, const void *b)
{
	const struct batch *const *x = a, *const *y = b;
	return comes_before(*x, *y) ? -1 : 1;
}

static enum baton_err firsts_find(const struct tx *tx, const struct queue *queue, uint32_t shard,
                                  struct firsts *ret)
{
	const struct baton_alloc *alloc = tx->m->store.alloc;
	*ret = (struct firsts){.cap = tx->m->lanes.count};
	ret->list = ret->cap > 0 ? mem_new(alloc, ret->cap, sizeof(struct batch *)) : NULL;
	if (ret->cap > 0 && !ret->list)
		return fail_memory(ret->cap * sizeof(struct batch *), "lanes");
	for (struct row *row = tx->m->lanes.oldest; row; row = row->newer) {
		const struct lane *lane = (struct lane *)row;
		/* Guests stand elsewhere than the line of their key. */
		if (lane->queue != queue || (shard != MEMORY_ANY_SHARD && !lane->guests &&
		                             memory_lane_shard(lane) != shard))
			continue;
		struct batch *head = memory_head(lane, tx->now);
		/* One with several keys is the head of all of them. */
		if (head && memory_key_of(head) == lane && memory_head_is_marked(tx, head) &&
		    (shard == MEMORY_ANY_SHARD || memory_lane_shard(head->lane) == shard))
			ret->list[ret->count++] = head;
	}
	if (ret->count > 1)
		qsort(ret->list, ret->count, sizeof(struct batch *), first_compare);
	return BATON_OK;
}

static void firsts_done(const struct tx *tx, struct firsts *f)
{
	mem_free(tx->m->store.alloc, f->list, f->cap, sizeof(struct batch *));
}

static enum baton_err recover_all(struct tx *tx, struct lane *lane)
{
	for (;;) {
		struct line line = memory_line_look(lane, tx->now);
		if (!line.offered)
			return BATON_OK;
		enum baton_err e =
			memory_claim_recover(tx, line.offered->is.claim, "the claim expired");
		if (e != BATON_OK)
			return e;
	}
}

/* The row under which the queue's claims are counted, with the fence of whoever held it last. */
static enum baton_err open_granter(struct tx *tx, struct baton_str queue, struct lease **ret)
{
	char text[SUBJECT_MAX + 1];
	struct lease *lease = memory_lease_make(tx, subject_of(queue, text));
	if (!lease || memory_tx_save(tx, &lease->row) != BATON_OK)
		return BATON_NO_MEMORY;
	*ret = lease;
	return lease->is.row.fence > 0 ? BATON_OK : memory_lease_raise(tx, lease);
}

/* One claim of the lane of that head, if there is still something once what was lost there, or with
 * its key, is recovered. After that the lane has one more claim, or none that is offered. One that
 * has a key is claimed only if it was a head before. */
static enum baton_err claim_lane(struct tx *tx, struct take *take, struct batch *head, size_t max)
{
	struct ready ready;
	struct lane *lane = head->lane;
	enum baton_err e = recover_all(tx, lane);
	const struct batch *first = e == BATON_OK ? memory_line_first(lane, tx->now) : NULL;
	if (first && first->key_count > 0 && first != head)
		return BATON_OK;
	for (size_t i = 0; first && i < first->key_count && e == BATON_OK; i++)
		e = recover_all(tx, first->keys[i].key);
	if (e != BATON_OK || !memory_line_look(lane, tx->now).free)
		return e;
	e = memory_take_ready(tx, lane, &ready);
	if (e == BATON_OK && !take->granter)
		e = open_granter(tx, lane->queue->name, &take->granter);
	if (e != BATON_OK)
		return e;
	size_t count = select_prefix(ready.candidates, ready.count, BATON_IDLE, max);
	CHECK(count > 0);
	e = memory_take(tx, take, ready.batches, count);
	return e == BATON_OK && take->uses && line_is_sited(lane->name, NULL)
	               ? uses_add(take->uses, lane->queue, lane->name, 1)
	               : e;
}

/* Whether it has a key of which no more may be held where the claims are for. */
static bool is_full_here(const struct tx *tx, const struct take *take, const struct batch *head)
{
	return take->uses && memory_site_is_full(tx, head->lane, take->owner, take->uses);
}

/* Where lanes have keys, what is done to one may have taken the head of another. */
static bool is_head(const struct tx *tx, const struct batch *head)
{
	const struct lane *line = memory_key_of(head);
	if (memory_class_is_taken(tx, head))
		return false;
	return !head->lane->queue->is.guests || memory_head(line, tx->now) == head;
}

/* The lane of number `at` is done with, but if more can be claimed of it, as of a key that several
 * may have: then it takes its place among those behind. Returns which one is next. */
static size_t firsts_next(const struct tx *tx, struct firsts *f, size_t at)
{
	struct line line = memory_line_look(f->list[at]->lane, tx->now);
	if (!line.free || line.first->key_count > 0 || memory_class_is_taken(tx, line.first))
		return at + 1;
	size_t to = at;
	for (; to + 1 < f->count && comes_before(f->list[to + 1], line.first); to++)
		f->list[to] = f->list[to + 1];
	f->list[to] = line.first;
	return at;
}

/* What is done to one lane makes no other head that may be taken: so they are put in order once. */
enum baton_err memory_take_lanes(struct tx *tx, struct queue *queue, uint32_t shard,
                                 struct take *take, const struct take_limits *limits)
{
	size_t before = take->parcel->pub.count;
	struct firsts firsts;
	enum baton_err e = firsts_find(tx, queue, shard, &firsts);
	for (size_t i = 0; i < firsts.count && e == BATON_OK;) {
		if (take->parcel->pub.count - before >= limits->claims)
			break;
		if (!is_head(tx, firsts.list[i]) || is_full_here(tx, take, firsts.list[i])) {
			i++;
			continue;
		}
		e = claim_lane(tx, take, firsts.list[i], limits->max);
		i = firsts_next(tx, &firsts, i);
	}
	firsts_done(tx, &firsts);
	return e;
}

static enum baton_err claim_lanes(struct tx *tx, struct queue *queue,
                                  const struct baton_work_ask *ask, struct claims_parcel *parcel)
{
	struct take take = {store_asker(&tx->m->store, ask->owner), NULL, store_ttl(ask->ttl),
	                    parcel, NULL};
	const struct take_limits limits = {ask->claims, ask->max};
	enum baton_err e = memory_due_see(tx, queue);
	memory_heads_mark(tx, queue);
	if (e == BATON_OK)
		e = memory_take_lanes(tx, queue, MEMORY_ANY_SHARD, &take, &limits);
	if (e == BATON_OK && parcel->pub.count > 0)
		e = memory_queue_use(tx, queue, BATON_QUEUE_PULL);
	return e;
}

enum baton_err memory_claim(struct baton_store *store, const struct baton_work_ask *ask,
                            struct baton_work_claims **ret_claims)
{
	struct tx tx;
	struct claims_parcel *parcel = NULL;
	memory_tx_begin(&tx, store);
	struct queue *queue;
	enum baton_err e = memory_queue_enter(tx.m, ask->queue, BATON_QUEUE_PULL, &queue);
	if (e == BATON_OK)
		e = check_lease(&tx, queue, store_asker(store, ask->owner));
	if (e == BATON_OK && !queue->is.policy.paused && ask->claims > 0 && ask->max > 0) {
		parcel = memory_take_parcel(&tx, ask->claims);
		e = parcel ? claim_lanes(&tx, queue, ask, parcel) : BATON_NO_MEMORY;
	}
	/* A claim of a guest can make another one a head, and a key of a class is claimed once. */
	bool ring = e == BATON_OK && (queue->is.guests || policy_has_class(&queue->is.policy));
	return memory_take_give(ring ? memory_tx_end_ring(&tx, e) : memory_tx_end(&tx, e), parcel,
	                        ret_claims);
}
