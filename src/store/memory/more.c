/* More work of a lane for a run that is under way, in a store in memory. */
#include "base/digest.h"
#include "queue/batch.h"
#include "store/memory/due.h"
#include "store/memory/lane.h"
#include "store/memory/ops.h"
#include "store/memory/runner.h"
#include "store/memory/take.h"

/* Whether the lane is still under the claim that runs. */
static bool is_proved(const struct lane *lane, const struct baton_more_ask *ask)
{
	struct claim_name name;
	if (!claim_name_parse(ask->proof.id, &name))
		return false;
	for (const struct batch *b = lane->first; b; b = b->next) {
		const struct claim *c = b->is.claim;
		if (c && c->name.head == name.head && c->name.fence == name.fence)
			return digest_equal(&c->token, &ask->proof.token, sizeof c->token);
	}
	return false;
}

static enum baton_err take_more(struct tx *tx, const struct baton_more_ask *ask,
                                const struct take *take)
{
	struct ready ready;
	const struct lane *lane = memory_lane_find(tx->m, ask->queue, ask->lane);
	if (!lane || memory_lane_shard(lane) != ask->shard || !is_proved(lane, ask) ||
	    memory_line_look(lane, tx->now).dead)
		return BATON_OK;
	enum baton_err e = memory_take_ready(tx, lane, &ready);
	if (e != BATON_OK)
		return e;
	size_t count = select_more(ready.candidates, ready.count, ask->max);
	return count > 0 ? memory_take(tx, take, ready.batches, count) : BATON_OK;
}

enum baton_err memory_more(struct baton_store *store, uint64_t runner,
                           const struct baton_more_ask *ask, struct baton_work_claims **ret_claims)
{
	struct tx tx;
	struct claims_parcel *parcel = NULL;
	struct queue *queue = NULL;
	const struct baton_shard shard = {.queue = ask->queue, .number = ask->shard};
	memory_tx_begin(&tx, store);
	const struct runner *r = memory_runner_find(tx.m, runner);
	enum baton_err e = r ? memory_shard_queue(&tx, &shard, &queue) : BATON_NOT_HELD;
	if (e == BATON_OK && !queue->is.policy.paused)
		e = memory_due_see(&tx, queue);
	struct lease *row = e == BATON_OK ? memory_shard_find(tx.m, ask->queue, ask->shard) : NULL;
	if (row && row->is.runner == runner && !queue->is.policy.paused) {
		parcel = memory_take_parcel(&tx, 1);
		const struct take take = {&r->put.owner, row, BATON_DURATION_FOREVER, parcel, NULL};
		e = parcel ? take_more(&tx, ask, &take) : BATON_NO_MEMORY;
	}
	return memory_take_give(memory_tx_end_ring(&tx, e), parcel, ret_claims);
}
