/* Those who have a key in a store in memory, or will, and who gives way to whom. */
#include "store/memory/rival.h"

#include "queue/line.h"
#include "queue/policy.h"
#include "store/memory/batch.h"
#include "store/memory/lane.h"

static bool waits(const struct batch *b, struct baton_store_time now)
{
	return b->is.state == BATON_BATCH_READY ||
	       (b->is.claim && memory_claim_is_offered(b->is.claim, now));
}

struct rivals memory_rivals(const struct lane *lane, const struct batch *but,
                            struct baton_store_time now)
{
	struct rivals r = {.waiting = lane->unseen};
	for (struct batch *b = lane->first; b; b = b->next) {
		if (b == but)
			continue;
		if (waits(b, now)) {
			r.waiting++;
			r.first = r.first ? r.first : b;
			r.last = b;
		} else if (b->is.holds || b->is.claim) {
			r.holds += b->is.holds || memory_claim_counts(b);
			r.holder = r.holder ? r.holder : b;
		}
	}
	return r;
}

static enum baton_err skip(struct tx *tx, struct batch *b, const struct batch *by)
{
	enum baton_err e = memory_batch_event(tx, b, EVENT_SKIP);
	if (e != BATON_OK)
		return e;
	b->is.by = by->id;
	b->is.ended_at = tx->now;
	b->is.until =
		baton_store_time_add(tx->now, policy_skipped_keep(&b->lane->queue->is.policy));
	return BATON_OK;
}

enum baton_err memory_rival_enter(struct tx *tx, struct batch *b)
{
	const struct baton_queue_policy *policy = &b->lane->queue->is.policy;
	if (policy->on_conflict == BATON_CONFLICT_WAIT || !line_is_keyed(b->lane->name))
		return BATON_OK;
	struct rivals r = memory_rivals(b->lane, b, tx->now);
	switch (key_conflict(policy, r.holds, r.waiting)) {
	case KEY_NO_CONFLICT:
		break;
	case KEY_SKIPS_TO_HOLDER:
		return skip(tx, b, r.holder ? r.holder : r.first);
	case KEY_SKIPS_TO_WAITING:
		return skip(tx, b, r.last);
	case KEY_SKIPS_WAITING:
		return r.last->is.state == BATON_BATCH_READY ? skip(tx, r.last, b) : BATON_OK;
	}
	return BATON_OK;
}
