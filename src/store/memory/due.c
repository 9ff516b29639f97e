/* What time does to a store in memory. */
#include "store/memory/due.h"

#include <stdlib.h>

#include "queue/line.h"
#include "queue/policy.h"
#include "store/memory/batch.h"
#include "store/memory/class.h"
#include "store/memory/ops.h"
#include "store/memory/pace.h"
#include "store/memory/rate.h"
#include "store/memory/rival.h"

#define SEEN_MAX 1000

const struct baton_retry *memory_batch_retry(const struct batch *b)
{
	const struct baton_queue_policy *policy = &b->lane->queue->is.policy;
	if (b->put.retry.attempts > 0)
		return &b->put.retry;
	return line_retry_policy(b->lane->name, policy);
}

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_due(const void *a, const void *b)
{
	const struct batch *x = *(const struct batch *const *)a;
	const struct batch *y = *(const struct batch *const *)b;
	if (x->is.due.ms != y->is.due.ms)
		return x->is.due.ms < y->is.due.ms ? -1 : 1;
	return compare(x->is.seq, y->is.seq);
}

static bool is_due(const struct batch *b, struct baton_store_time now)
{
	return (b->is.state == BATON_BATCH_DELAYED || b->is.state == BATON_BATCH_RETRY) &&
	       baton_store_time_ready(b->is.due, now);
}

enum baton_err memory_batch_ready(struct tx *tx, struct batch *b, enum batch_event event)
{
	bool kept = b->is.holds && b->is.state == BATON_BATCH_RETRY;
	enum baton_err e = memory_batch_event(tx, b, event);
	if (e == BATON_OK && !kept)
		e = memory_pace_enter(tx, b);
	return e == BATON_OK && !kept ? memory_rival_enter(tx, b) : e;
}

static enum baton_err promote(struct tx *tx, const struct queue *queue)
{
	size_t most = queue->is.in[BATON_BATCH_DELAYED] + queue->is.in[BATON_BATCH_RETRY];
	most = most < tx->m->batches.count ? most : tx->m->batches.count;
	struct batch **due = memory_tx_take(tx, most, sizeof(struct batch *));
	size_t count = 0;
	if (!due)
		return BATON_NO_MEMORY;
	for (struct row *row = tx->m->batches.oldest; row && most > 0; row = row->newer) {
		struct batch *b = (struct batch *)row;
		if (b->lane->queue == queue && is_due(b, tx->now))
			due[count++] = b;
	}
	qsort(due, count, sizeof(struct batch *), by_due);
	enum baton_err e = BATON_OK;
	/* One that keeps its key may have been replaced by one that was due before it. */
	for (size_t i = 0; i < count && i < SEEN_MAX && e == BATON_OK; i++)
		if (is_due(due[i], tx->now))
			e = memory_batch_ready(tx, due[i], EVENT_DUE);
	return e;
}

static int by_expiry(const void *a, const void *b)
{
	const struct claim *x = *(const struct claim *const *)a;
	const struct claim *y = *(const struct claim *const *)b;
	if (x->is.expires.ms != y->is.expires.ms)
		return x->is.expires.ms < y->is.expires.ms ? -1 : 1;
	return compare(x->name.head, y->name.head);
}

/* What was offered is so no more when it is live again, after the clock was set back. */
static bool is_to_change(const struct claim *claim, struct baton_store_time now)
{
	return claim->is.offered == baton_store_time_live(claim->is.expires, now);
}

static enum baton_err offer(struct tx *tx, const struct queue *queue)
{
	struct claim **over = memory_tx_take(tx, tx->m->claims.count, sizeof(struct claim *));
	size_t count = 0;
	if (!over)
		return BATON_NO_MEMORY;
	for (struct row *row = tx->m->claims.oldest; row; row = row->newer) {
		struct claim *claim = (struct claim *)row;
		if (claim->lane->queue == queue && is_to_change(claim, tx->now))
			over[count++] = claim;
	}
	qsort(over, count, sizeof(struct claim *), by_expiry);
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < count && i < SEEN_MAX && e == BATON_OK; i++) {
		/* Who claims a key of a class does not look at the claims of other queues. */
		if (memory_class_has(over[i])) {
			e = memory_claim_recover(tx, over[i], "the claim expired");
			continue;
		}
		e = memory_tx_save(tx, &over[i]->row);
		if (e == BATON_OK)
			over[i]->is.offered = !over[i]->is.offered;
	}
	return e;
}

static enum baton_err see(struct tx *tx, struct queue *queue)
{
	enum baton_err e = promote(tx, queue);
	if (e == BATON_OK)
		e = memory_rate_see(tx, queue);
	return e == BATON_OK ? offer(tx, queue) : e;
}

enum baton_err memory_due_see(struct tx *tx, struct queue *queue)
{
	enum baton_err e = BATON_OK;
	struct queue *other = memory_class_next(queue, NULL);
	for (; other && e == BATON_OK; other = memory_class_next(queue, other))
		e = see(tx, other);
	return e == BATON_OK ? see(tx, queue) : e;
}

enum baton_err memory_classes_see(struct baton_store *store)
{
	struct tx tx;
	enum baton_err e = BATON_OK;
	memory_tx_begin(&tx, store);
	for (struct row *row = tx.m->queues.oldest; row && e == BATON_OK; row = row->newer) {
		struct queue *queue = (struct queue *)row;
		if (policy_has_class(&queue->is.policy))
			e = see(&tx, queue);
	}
	return memory_tx_end_ring(&tx, e);
}

enum baton_err memory_batch_fail(struct tx *tx, struct batch *b, struct text *why,
                                 enum batch_event event, bool last)
{
	struct queue *queue = b->lane->queue;
	if (b->is.cancel)
		return memory_batch_cancelled(tx, b);
	last = last || b->is.attempts + 1 >= memory_batch_retry(b)->attempts;
	enum baton_err e = memory_batch_event(tx, b, last ? EVENT_DIE : event);
	if (e == BATON_OK)
		e = memory_text_set(tx, &b->is.error, why);
	if (e != BATON_OK)
		return e;
	b->is.attempts++;
	queue->is.failed++;
	if (last)
		b->is.ended_at = tx->now;
	return BATON_OK;
}

enum baton_err memory_claim_recover(struct tx *tx, struct claim *claim, const char *why)
{
	struct text *text = memory_text_new(tx, baton_str_z(why));
	if (!text)
		return BATON_NO_MEMORY;
	for (struct batch *b = claim->lane->first; b; b = b->next) {
		if (b->is.claim != claim)
			continue;
		enum baton_err e = memory_batch_fail(tx, b, text, EVENT_ABANDON, false);
		if (e != BATON_OK)
			return e;
	}
	return BATON_OK;
}
