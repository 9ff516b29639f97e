/* Keys that count for each host, or each process, in a store in memory. */
#include "store/memory/site.h"

#include "queue/line.h"
#include "queue/policy.h"
#include "queue/site.h"
#include "store/memory/lane.h"
#include "store/memory/rate.h"
#include "store/memory/runner.h"

/* Whether the claim holds a key of the queue that counts where that owner is. */
static bool is_there(const struct claim *claim, const struct queue *queue,
                     const struct baton_owner *owner)
{
	return !claim->row.gone && claim->lane->queue == queue &&
	       line_is_sited(claim->lane->name, NULL) &&
	       site_is_same(queue->is.policy.key_scope, owner, &claim->owner);
}

/* What a desk has of it was counted by the server. */
static enum baton_err add_known(const struct tx *tx, const struct queue *queue,
                                struct key_uses *uses)
{
	const struct key_uses *known = &tx->m->known;
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < known->count && e == BATON_OK; i++) {
		const struct key_use *use = &known->list[i];
		if (use->queue == queue)
			e = uses_add(uses, queue, use->line, use->count);
	}
	return e;
}

enum baton_err memory_site_uses(struct tx *tx, const struct queue *queue,
                                const struct baton_owner *owner, struct key_uses *uses)
{
	enum baton_err e = BATON_OK;
	if (!policy_has_sites(&queue->is.policy))
		return BATON_OK;
	if (tx->m->keeper.changed)
		return add_known(tx, queue, uses);
	for (struct row *row = tx->m->claims.oldest; row && e == BATON_OK; row = row->newer) {
		const struct claim *claim = (struct claim *)row;
		if (is_there(claim, queue, owner))
			e = uses_add(uses, queue, claim->lane->name, 1);
	}
	return e;
}

bool memory_site_is_full(const struct tx *tx, const struct lane *lane,
                         const struct baton_owner *owner, const struct key_uses *uses)
{
	const struct queue *queue = lane->queue;
	return uses_are_full(uses, queue, &queue->is.policy, lane->name) ||
	       memory_rate_until_at(tx->m, lane, owner).ms > 0;
}

static const struct batch *first_of_claim(const struct claim *claim)
{
	const struct batch *b = claim->lane->first;
	while (b && b->is.claim != claim)
		b = b->next;
	return b;
}

/* The first of those claims that hold the key of the line there; *ret_count: how many there are. */
static const struct batch *holder(const struct tx *tx, const struct lane *lane,
                                  const struct baton_owner *owner, uint64_t *ret_count)
{
	const struct batch *first = NULL;
	*ret_count = 0;
	for (struct row *row = tx->m->claims.oldest; row; row = row->newer) {
		const struct claim *claim = (struct claim *)row;
		if (!is_there(claim, lane->queue, owner) ||
		    !baton_str_equal(line_counted(claim->lane->name), line_counted(lane->name)))
			continue;
		const struct batch *b = first_of_claim(claim);
		first = !first || (b && b->is.seq < first->is.seq) ? b : first;
		++*ret_count;
	}
	return first;
}

/* Who has the shard of the line, or NULL. */
static const struct runner *runner_of(const struct tx *tx, const struct lane *lane)
{
	const struct lease *shard =
		memory_shard_find(tx->m, lane->queue->name, memory_lane_shard(lane));
	return shard ? memory_runner_find(tx->m, shard->is.runner) : NULL;
}

struct baton_store_time memory_site_until(const struct tx *tx, const struct lane *lane)
{
	if (tx->m->keeper.changed || !line_is_sited(lane->name, NULL))
		return lane->held_until;
	const struct runner *runner = runner_of(tx, lane);
	return runner ? memory_rate_until_at(tx->m, lane, &runner->put.owner)
	              : (struct baton_store_time){0};
}

uint64_t memory_site_holder(const struct tx *tx, const struct lane *lane)
{
	const struct queue *queue = lane->queue;
	uint64_t count;
	if (!line_is_sited(lane->name, NULL))
		return 0;
	if (tx->m->keeper.changed)
		return lane->held_by;
	const struct runner *runner = runner_of(tx, lane);
	const struct batch *first = runner ? holder(tx, lane, &runner->put.owner, &count) : NULL;
	return first && count >= queue->is.policy.key_limit ? first->id : 0;
}
