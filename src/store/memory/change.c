/* What somebody else than its claimant does to a batch of a store in memory. */
#include "store/memory/batch.h"
#include "store/memory/due.h"
#include "store/memory/ops.h"
#include "store/memory/pace.h"
#include "store/memory/rival.h"

static enum baton_err cancel_one(struct tx *tx, const struct baton_batch_id *id,
                                 enum baton_cancelled *answer)
{
	struct batch *b = memory_batch_named(tx, id);
	*answer = BATON_CANCEL_MISSING;
	if (!b || b->is.state == BATON_BATCH_DONE)
		return BATON_OK;
	bool claimed = b->is.state == BATON_BATCH_CLAIMED;
	*answer = claimed ? BATON_CANCEL_TOLD : BATON_CANCEL_REMOVED;
	enum baton_err e = memory_batch_event(tx, b, EVENT_CANCEL);
	if (e == BATON_OK)
		b->is.cancel = claimed;
	return e;
}

enum baton_err memory_cancel(struct baton_store *store, const struct baton_batch_id *ids,
                             size_t count, enum baton_cancelled *answers)
{
	struct tx tx;
	enum baton_err e = BATON_OK;
	memory_tx_begin(&tx, store);
	for (size_t i = 0; i < count && e == BATON_OK; i++)
		e = cancel_one(&tx, &ids[i], &answers[i]);
	return memory_tx_end_ring(&tx, e);
}

/* To the end of its lane, as if it had never been tried. */
static enum baton_err begin_again(struct tx *tx, struct batch *b)
{
	enum baton_err e = memory_batch_event(tx, b, EVENT_REVIVE);
	if (e == BATON_OK)
		e = memory_text_set(tx, &b->is.error, NULL);
	if (e != BATON_OK)
		return e;
	b->is.attempts = 0;
	memory_batch_last(tx, b);
	e = memory_pace_enter(tx, b);
	return e == BATON_OK ? memory_rival_enter(tx, b) : e;
}

static enum baton_err revive_one(struct tx *tx, const struct baton_batch_id *id,
                                 enum baton_err *answer)
{
	struct batch *b = memory_batch_named(tx, id);
	bool dead = b && b->is.state == BATON_BATCH_DEAD;
	bool waits = b && (b->is.state == BATON_BATCH_DELAYED || b->is.state == BATON_BATCH_RETRY);
	*answer = b ? BATON_INVALID : BATON_NOT_FOUND;
	if (!dead && !waits)
		return BATON_OK;
	*answer = BATON_OK;
	return dead ? begin_again(tx, b) : memory_batch_ready(tx, b, EVENT_REVIVE);
}

enum baton_err memory_revive(struct baton_store *store, const struct baton_batch_id *ids,
                             size_t count, enum baton_err *answers)
{
	struct tx tx;
	enum baton_err e = BATON_OK;
	memory_tx_begin(&tx, store);
	for (size_t i = 0; i < count && e == BATON_OK; i++)
		e = revive_one(&tx, &ids[i], &answers[i]);
	return memory_tx_end_ring(&tx, e);
}
