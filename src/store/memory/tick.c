/* The ticks of those who own shards in a store in memory. */
#include "queue/turns.h"
#include "store/memory/due.h"
#include "store/memory/lane.h"
#include "store/memory/ops.h"
#include "store/memory/put.h"
#include "store/memory/queue.h"
#include "store/memory/runner.h"
#include "store/memory/site.h"
#include "store/memory/take.h"

/* A shard that is asked for. */
struct asked {
	struct queue *queue;
	struct lease *row; /* its own, if work of it is wanted */
	bool *ready;       /* [number of its queue's shards] which of them have something; NULL: it
	                      is not known                                                     */
	size_t left;       /* how many claims it may still give */
};

struct ticking {
	struct tx *tx;
	const struct runner *runner;
	const struct baton_tick *tick;
	struct asked *asked;
	struct claims_parcel *parcel;
	struct key_uses uses; /* what is held where the runner is */
	size_t max;           /* claims in all */
};

static enum baton_err find_queues(struct ticking *t)
{
	enum baton_err e = BATON_OK;
	t->asked = memory_tx_take(t->tx, t->tick->shard_count, sizeof *t->asked);
	if (!t->asked)
		return BATON_NO_MEMORY;
	for (size_t i = 0; i < t->tick->shard_count && e == BATON_OK; i++)
		e = memory_shard_queue(t->tx, &t->tick->shards[i], &t->asked[i].queue);
	return e;
}

/* Which shards of the queue have something that can be claimed. */
static void find_ready(const struct ticking *t, const struct queue *queue, bool *ready)
{
	const struct tx *tx = t->tx;
	for (struct row *row = tx->m->lanes.oldest; row; row = row->newer) {
		const struct lane *lane = (struct lane *)row;
		const struct batch *head = lane->queue == queue ? memory_head(lane, tx->now) : NULL;
		if (head && memory_head_is_marked(tx, head) &&
		    !memory_site_is_full(tx, lane, &t->runner->put.owner, &t->uses))
			ready[memory_lane_shard(head->lane)] = true;
	}
}

/* Once for each queue. */
static enum baton_err look_at_queue(struct ticking *t, size_t i)
{
	struct asked *asked = &t->asked[i];
	for (size_t k = i; k > 0; k--) {
		if (t->asked[k - 1].queue == asked->queue && t->asked[k - 1].ready) {
			asked->ready = t->asked[k - 1].ready;
			return BATON_OK;
		}
	}
	asked->ready = memory_tx_take(t->tx, asked->queue->is.policy.shards, sizeof(bool));
	if (!asked->ready)
		return BATON_NO_MEMORY;
	enum baton_err e = memory_due_see(t->tx, asked->queue);
	memory_heads_mark(t->tx, asked->queue);
	if (e == BATON_OK)
		e = memory_site_uses(t->tx, asked->queue, &t->runner->put.owner, &t->uses);
	if (e == BATON_OK)
		find_ready(t, asked->queue, asked->ready);
	return e;
}

/* Whose the shard is, and whether work of it is wanted and there is some. */
static enum baton_err look_at(struct ticking *t, size_t i)
{
	struct asked *asked = &t->asked[i];
	const struct baton_shard *shard = &t->tick->shards[i];
	struct lease *row = memory_shard_find(t->tx->m, shard->queue, shard->number);
	t->tick->owned[i] = memory_shard_answer(row, t->runner->put.number);
	if (asked->queue->is.policy.paused || shard->claims == 0 || shard->max == 0)
		return BATON_OK;
	/* What is due in the queue is seen to by whoever asks. */
	if (t->tick->owned[i].err != BATON_OK)
		return memory_due_see(t->tx, asked->queue);
	enum baton_err e = BATON_OK;
	/* Who has a shard of an open queue is the first who claims from it. */
	if (asked->queue->is.policy.mode == BATON_QUEUE_OPEN)
		e = memory_queue_use(t->tx, asked->queue, BATON_QUEUE_RUNNER);
	if (e == BATON_OK)
		e = look_at_queue(t, i);
	asked->row = row;
	asked->left = e == BATON_OK && asked->ready[shard->number] ? shard->claims : 0;
	return e;
}

/* The next claims of one shard; one that has fewer than it may give is done. */
static enum baton_err give_from(struct ticking *t, size_t i, size_t each)
{
	struct asked *asked = &t->asked[i];
	struct take take = {&t->runner->put.owner, asked->row, BATON_DURATION_FOREVER, t->parcel,
	                    &t->uses};
	const size_t before = t->parcel->pub.count;
	const struct take_limits limits = {asked->left < each ? asked->left : each,
	                                   t->tick->shards[i].max};
	enum baton_err e =
		memory_take_lanes(t->tx, asked->queue, t->tick->shards[i].number, &take, &limits);
	size_t given = t->parcel->pub.count - before;
	asked->left = given < limits.claims ? 0 : asked->left - given;
	return e;
}

static size_t count_ready(const struct ticking *t)
{
	size_t ready = 0;
	for (size_t i = 0; i < t->tick->shard_count; i++)
		ready += t->asked[i].left > 0;
	return ready;
}

static enum baton_err give_all(struct ticking *t)
{
	const struct baton_work_claims *given = &t->parcel->pub;
	enum baton_err e = BATON_OK;
	size_t ready = count_ready(t);
	while (ready > 0 && given->count < t->max && e == BATON_OK) {
		size_t each = turns_each(t->max - given->count, ready);
		for (size_t i = 0; i < t->tick->shard_count && e == BATON_OK; i++) {
			if (t->asked[i].left > 0 && given->count < t->max)
				e = give_from(t, i, each);
		}
		ready = count_ready(t);
	}
	return e;
}

static enum baton_err tick_claims(struct ticking *t)
{
	enum baton_err e = BATON_OK;
	t->parcel = memory_take_parcel(t->tx, t->max);
	if (!t->parcel)
		return BATON_NO_MEMORY;
	for (size_t i = 0; i < t->tick->shard_count && e == BATON_OK; i++)
		e = look_at(t, i);
	return e == BATON_OK ? give_all(t) : e;
}

enum baton_err memory_tick(struct baton_store *store, uint64_t runner,
                           const struct baton_tick *tick, struct baton_work_claims **ret_claims)
{
	struct tx tx;
	memory_tx_begin(&tx, store);
	struct ticking t = {.tx = &tx,
	                    .runner = memory_runner_find(tx.m, runner),
	                    .tick = tick,
	                    .uses = {.arena = &tx.arena},
	                    .max = store_tick_claims(tick)};
	enum baton_err e = t.runner ? find_queues(&t) : BATON_NOT_HELD;
	if (e == BATON_OK)
		e = memory_end_all(&tx, tick->ends, tick->end_count, tick->ended);
	if (e == BATON_OK)
		e = tick_claims(&t);
	return memory_take_give(memory_tx_end_ring(&tx, e), t.parcel, ret_claims);
}
