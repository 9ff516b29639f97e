/* Claiming from one lane of a store in memory, by the holder of its lease. */
#include <stdlib.h>

#include "store/memory/batch.h"
#include "store/memory/due.h"
#include "store/memory/lane.h"
#include "store/memory/lease.h"
#include "store/memory/ops.h"
#include "store/memory/queue.h"
#include "store/memory/take.h"

/* The lane's lease, if the proof holds and it has not expired, or NULL. */
static struct lease *proved(const struct tx *tx, const struct baton_lane_ask *ask)
{
	char subject[BATON_LEASE_SUBJECT_MAX + 1];
	const struct lease_claimed claimed = {ask->lease->incarnation, ask->lease->token,
	                                      ask->lease->fence.v};
	if (baton_lane_subject(ask->queue, ask->lane, subject) != BATON_OK)
		return NULL;
	struct lease *lease = memory_lease_find(tx->m, baton_str_z(subject));
	bool holds = lease && lease_is_live(&lease->is.row, tx->now) &&
	             lease_is_proved(&lease->is.row, &claimed);
	return holds ? lease : NULL;
}

/* Why the claim, which another lease gave, can be recovered. NULL: it cannot. */
static const char *why_lost(const struct tx *tx, const struct claim *claim)
{
	if (!baton_store_time_live(claim->is.expires, tx->now))
		return "the claim expired";
	bool dead = baton_owner_is_dead(&tx->m->store.owner, &claim->owner, tx->m->store.reach);
	return dead ? "its owner died" : NULL;
}

/* Makes way: no claim that another lease gave is left, and when idle none at all. */
static enum baton_err clear(struct tx *tx, const struct lane *lane, const struct lease *lease,
                            enum baton_boundary at)
{
	for (struct batch *b = lane->first; b; b = b->next) {
		struct claim *claim = b->is.claim;
		if (!claim)
			continue;
		bool own = claim->granter == lease->is.row.fence;
		if (own && at == BATON_CHECKPOINT)
			continue;
		const char *why = own ? NULL : why_lost(tx, claim);
		if (!why)
			return BATON_YIELD;
		enum baton_err e = memory_claim_recover(tx, claim, why);
		if (e != BATON_OK)
			return e;
	}
	return BATON_OK;
}

static int by_seq(const void *a, const void *b)
{
	const struct batch *x = *(const struct batch *const *)a;
	const struct batch *y = *(const struct batch *const *)b;
	return (x->is.seq > y->is.seq) - (x->is.seq < y->is.seq);
}

/* The batches that are asked for, in the order of their numbers, if they can be had together. */
static enum baton_err exact(struct tx *tx, const struct baton_lane_ask *ask,
                            const struct ready *ready, struct batch **wanted)
{
	uint64_t *seqs = memory_tx_take(tx, ask->count, sizeof *seqs);
	if (!seqs)
		return BATON_NO_MEMORY;
	if (ask->count > ask->max)
		return BATON_YIELD;
	for (size_t i = 0; i < ask->count; i++) {
		wanted[i] = memory_batch_named(tx, &ask->ids[i]);
		if (!wanted[i])
			return BATON_YIELD;
	}
	qsort(wanted, ask->count, sizeof(struct batch *), by_seq);
	for (size_t i = 0; i < ask->count; i++)
		seqs[i] = wanted[i]->is.seq;
	bool can =
		select_exact(ready->candidates, ready->count, seqs, ask->count, ask->at, ask->pass);
	return can ? BATON_OK : BATON_YIELD;
}

static enum baton_err choose(struct tx *tx, const struct baton_lane_ask *ask,
                             const struct lane *lane, struct batch ***ret_batches,
                             size_t *ret_count)
{
	struct ready ready = {0};
	bool stands_still = !lane || memory_line_look(lane, tx->now).dead;
	enum baton_err e = stands_still ? BATON_OK : memory_take_ready(tx, lane, &ready);
	if (e != BATON_OK)
		return e;
	*ret_batches = ready.batches;
	*ret_count = select_prefix(ready.candidates, ready.count, ask->at, ask->max);
	if (!ask->ids)
		return BATON_OK;
	*ret_batches = memory_tx_take(tx, ask->count, sizeof(struct batch *));
	*ret_count = ask->count;
	return *ret_batches ? exact(tx, ask, &ready, *ret_batches) : BATON_NO_MEMORY;
}

static enum baton_err claim_work(struct tx *tx, struct queue *queue,
                                 const struct baton_lane_ask *ask, const struct take *take)
{
	struct batch **batches = NULL;
	size_t count = 0;
	enum baton_err e = memory_due_see(tx, queue);
	if (e != BATON_OK)
		return e;
	struct lane *lane = memory_lane_find(tx->m, ask->queue, ask->lane);
	if (lane)
		e = clear(tx, lane, take->granter, ask->at);
	if (e == BATON_OK)
		e = choose(tx, ask, lane, &batches, &count);
	if (e != BATON_OK || count == 0)
		return e;
	e = memory_take(tx, take, batches, count);
	return e == BATON_OK ? memory_queue_use(tx, queue, BATON_QUEUE_LANE) : e;
}

enum baton_err memory_lane_claim(struct baton_store *store, const struct baton_lane_ask *ask,
                                 struct baton_work_claims **ret_claims)
{
	struct tx tx;
	struct claims_parcel *parcel = NULL;
	memory_tx_begin(&tx, store);
	struct queue *queue;
	enum baton_err e = memory_queue_enter(tx.m, ask->queue, BATON_QUEUE_LANE, &queue);
	struct lease *lease = e == BATON_OK ? proved(&tx, ask) : NULL;
	if (e == BATON_OK && !lease)
		e = BATON_NOT_HELD;
	if (e == BATON_OK && !queue->is.policy.paused && ask->max > 0) {
		parcel = memory_take_parcel(&tx, 1);
		const struct take take = {lease ? &lease->is.row.owner : NULL, lease,
		                          store_ttl(ask->ttl), parcel, NULL};
		e = parcel ? claim_work(&tx, queue, ask, &take) : BATON_NO_MEMORY;
	}
	return memory_take_end(&tx, e, parcel, ret_claims);
}
