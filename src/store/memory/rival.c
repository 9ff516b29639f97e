/* Those who have a key in a store in memory, or will, and who gives way to whom. */
#include "store/memory/rival.h"

#include "base/check.h"
#include "queue/line.h"
#include "queue/policy.h"
#include "store/memory/batch.h"
#include "store/memory/class.h"
#include "store/memory/lane.h"

bool memory_rival_waits(const struct batch *b, struct baton_store_time now)
{
	return b->is.state == BATON_BATCH_READY ||
	       (b->is.claim && memory_claim_is_offered(b->is.claim, now));
}

bool memory_claim_is_stopping(const struct claim *claim)
{
	for (const struct batch *b = claim->lane->first; b; b = b->next) {
		if (b->is.claim == claim && b->is.cancel)
			return true;
	}
	return false;
}

struct rivals memory_rivals(const struct lane *lane, const struct batch *but,
                            struct baton_store_time now)
{
	struct rivals r = {.waiting = lane->unseen};
	for (struct batch *b = lane->first; b; b = b->next) {
		if (b == but)
			continue;
		bool stopping = b->is.claim && memory_claim_is_stopping(b->is.claim);
		bool waiting = memory_rival_waits(b, now);
		if (!stopping && !r.oldest && (waiting || b->is.holds || b->is.claim))
			r.oldest = b;
		if (waiting) {
			r.waiting++;
			r.first = r.first ? r.first : b;
			r.last = b;
		} else if (b->is.holds || b->is.claim) {
			r.holds += b->is.holds || memory_claim_counts(b);
			r.stopping += stopping && memory_claim_counts(b);
			r.holder = r.holder ? r.holder : b;
		}
	}
	return r;
}

static struct batch *lower(struct batch *a, struct batch *b)
{
	return !a || (b && b->is.seq < a->is.seq) ? b : a;
}

static struct batch *higher(struct batch *a, struct batch *b)
{
	return !a || (b && b->is.seq > a->is.seq) ? b : a;
}

/* Those of the batch; of a class, in all of its queues. */
static struct rivals rivals_of(const struct tx *tx, const struct batch *b)
{
	struct rivals r = memory_rivals(b->lane, b, tx->now);
	const struct queue *queue = memory_class_next(b->lane->queue, NULL);
	for (; queue; queue = memory_class_next(b->lane->queue, queue)) {
		const struct lane *lane = memory_class_line(queue, b->lane->name);
		if (!lane)
			continue;
		const struct rivals o = memory_rivals(lane, NULL, tx->now);
		r.holds += o.holds;
		r.waiting += o.waiting;
		r.stopping += o.stopping;
		r.holder = lower(r.holder, o.holder);
		r.first = lower(r.first, o.first);
		r.last = higher(r.last, o.last);
		r.oldest = lower(r.oldest, o.oldest);
	}
	return r;
}

uint64_t memory_guests_waiting(const struct lane *lane)
{
	uint64_t count = lane->crowd;
	for (const struct guest *g = lane->guests; g; g = g->next)
		count += g->batch->is.state == BATON_BATCH_READY;
	return count;
}

uint64_t memory_sites_waiting(const struct tx *tx, const struct queue *queue, struct baton_str line)
{
	uint64_t count = 0;
	char text[LINE_NAME_MAX];
	for (uint32_t shard = 0; shard < queue->is.policy.shards; shard++) {
		const struct lane *lane =
			memory_lane_find(tx->m, queue->name, line_in_shard(line, shard, text));
		count += lane ? memory_rivals(lane, NULL, tx->now).waiting : 0;
	}
	return count;
}

static uint64_t waiting_in(const struct tx *tx, const struct queue *queue, struct baton_str line)
{
	const struct lane *lane = memory_lane_find(tx->m, queue->name, line);
	uint64_t count = lane ? memory_guests_waiting(lane) : 0;
	if (policy_has_sites(&queue->is.policy))
		return count + memory_sites_waiting(tx, queue, line);
	return count + (lane ? memory_rivals(lane, NULL, tx->now).waiting : 0);
}

uint64_t memory_key_waiting(const struct tx *tx, const struct queue *queue, struct baton_str line)
{
	uint64_t count = waiting_in(tx, queue, line);
	const struct queue *other = memory_class_next(queue, NULL);
	for (; other; other = memory_class_next(queue, other))
		count += waiting_in(tx, other, line);
	return count;
}

static enum baton_err skip(struct tx *tx, struct batch *b, const struct batch *by)
{
	return memory_batch_skip(tx, b, by->id);
}

/* One that waits ends; one that is claimed is asked to, with those of its claim. */
static enum baton_err replace(struct tx *tx, struct batch *old, const struct batch *by)
{
	const struct claim *claim = old->is.claim;
	enum baton_err e = BATON_OK;
	if (!claim)
		return skip(tx, old, by);
	for (struct batch *b = old->lane->first; b && e == BATON_OK; b = b->next) {
		if (b->is.claim != claim)
			continue;
		e = memory_batch_event(tx, b, EVENT_CANCEL);
		if (e == BATON_OK) {
			b->is.cancel = true;
			b->is.by = by->id;
		}
	}
	return e;
}

enum baton_err memory_rival_enter(struct tx *tx, struct batch *b)
{
	const struct baton_queue_policy *policy = &b->lane->queue->is.policy;
	if (policy->on_conflict == BATON_CONFLICT_WAIT || !line_is_keyed(b->lane->name))
		return BATON_OK;
	struct rivals r = rivals_of(tx, b);
	if (policy->on_conflict == BATON_CONFLICT_REPLACE)
		r.holds -= r.stopping;
	switch (key_conflict(policy, r.holds, r.waiting)) {
	case KEY_NO_CONFLICT:
		break;
	case KEY_SKIPS_TO_HOLDER:
		CHECK(r.holder || r.first);
		return skip(tx, b, r.holder ? r.holder : r.first);
	case KEY_SKIPS_TO_WAITING:
		CHECK(r.last);
		return skip(tx, b, r.last);
	case KEY_SKIPS_WAITING:
		CHECK(r.last);
		return r.last->is.state == BATON_BATCH_READY ? skip(tx, r.last, b) : BATON_OK;
	case KEY_REPLACES:
		return r.oldest ? replace(tx, r.oldest, b) : BATON_OK;
	}
	return BATON_OK;
}
