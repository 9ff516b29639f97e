/* The queues of a store in memory. */
#include "store/memory/queue.h"

#include <stdlib.h>

#include "queue/line.h"
#include "queue/policy.h"
#include "store/memory/class.h"
#include "store/memory/lane.h"
#include "store/memory/news.h"
#include "store/memory/ops.h"
#include "store/memory/pace.h"
#include "store/memory/rate.h"
#include "store/memory/rival.h"
#include "store/refuse.h"

struct queue *memory_queue_find(const struct memory *m, struct baton_str name)
{
	struct row *row = memory_row_first(&m->queues, memory_hash(m, name.ptr, name.len));
	for (; row; row = memory_row_next(row)) {
		struct queue *queue = (struct queue *)row;
		if (baton_str_equal(queue->name, name))
			return queue;
	}
	return NULL;
}

struct queue *memory_queue_make(struct tx *tx, struct baton_str name)
{
	struct queue *queue = memory_queue_find(tx->m, name);
	if (queue)
		return queue;
	queue = (struct queue *)memory_tx_add(tx, &tx->m->queues, sizeof *queue + name.len,
	                                      memory_hash(tx->m, name.ptr, name.len));
	if (!queue)
		return NULL;
	char *text = (char *)(queue + 1);
	memcpy(text, name.ptr, name.len);
	queue->memory = tx->m;
	queue->name = (struct baton_str){text, name.len};
	queue->is.policy = baton_queue_policy_default();
	return queue;
}

uint64_t memory_queue_waiting(const struct queue *queue)
{
	return queue->is.in[BATON_BATCH_READY] + queue->is.in[BATON_BATCH_DELAYED] +
	       queue->is.in[BATON_BATCH_RETRY];
}

enum baton_err memory_queue_enter(const struct memory *m, struct baton_str name,
                                  enum baton_queue_mode mode, struct queue **ret)
{
	struct queue *queue = memory_queue_find(m, name);
	*ret = queue;
	if (!queue)
		return refuse_queue(name);
	enum baton_queue_mode is = queue->is.policy.mode;
	if (is != BATON_QUEUE_OPEN && is != mode)
		return refuse_mode(name, is, mode);
	if (mode != BATON_QUEUE_RUNNER && policy_has_sites(&queue->is.policy))
		return refuse_scope(name, &queue->is.policy);
	if (mode == BATON_QUEUE_LANE && policy_has_class(&queue->is.policy))
		return refuse_class_mode(name, &queue->is.policy);
	return mode == BATON_QUEUE_LANE && queue->is.guests
	               ? refuse_for_guests(name, "the mode is lane")
	               : BATON_OK;
}

enum baton_err memory_queue_use(struct tx *tx, struct queue *queue, enum baton_queue_mode mode)
{
	enum baton_err e = memory_tx_save(tx, &queue->row);
	if (e != BATON_OK)
		return e;
	fence_reach_mode(&queue->is.reach, queue->is.policy.mode, mode);
	queue->is.policy.mode = mode;
	return BATON_OK;
}

static struct queue_load load_of(const struct queue *queue)
{
	struct queue_load load = {.running = queue->is.in[BATON_BATCH_CLAIMED]};
	for (int state = BATON_BATCH_READY; state <= BATON_BATCH_DEAD; state++)
		load.work += queue->is.in[state];
	return load;
}

bool memory_queue_is_without_guests(const struct queue *queue)
{
	return !queue->is.guests || load_of(queue).work == 0;
}

/* What the policy of the queue becomes, NULL being one that is made. */
static enum baton_err policy_next(const struct memory *m, struct baton_str name,
                                  const struct queue *queue,
                                  const struct baton_queue_policy *changes, uint32_t fields,
                                  struct baton_queue_policy *ret)
{
	*ret = queue ? queue->is.policy : baton_queue_policy_default();
	enum baton_err e = memory_class_join(m, queue, changes, fields, ret);
	if (e == BATON_OK)
		e = policy_change(ret, changes, fields);
	if (e == BATON_OK && queue)
		e = refuse_change(name, &queue->is.policy, ret, load_of(queue));
	if (e == BATON_OK && queue)
		e = refuse_class(name, &queue->is.policy, ret,
		                 queue->is.in[BATON_BATCH_CLAIMED] + memory_queue_waiting(queue));
	if (e == BATON_OK)
		e = memory_class_refuse(m, queue, ret);
	bool free = !queue || memory_queue_is_without_guests(queue);
	const char *against = free ? NULL : policy_against_guests(ret);
	return e == BATON_OK && against ? refuse_for_guests(name, against) : e;
}

/* Something can be claimed of the queue now, and, if `shared`, of the others of its class. */
static enum baton_err tell(struct tx *tx, const struct queue *queue, bool shared)
{
	tx->news = memory_tx_take(tx, BATON_QUEUE_CLASS_MAX, sizeof *tx->news);
	if (!tx->news)
		return BATON_NO_MEMORY;
	tx->news[tx->news_count++] = memory_news_of_queue(tx->m, queue->name);
	const struct queue *other = shared ? memory_class_next(queue, NULL) : NULL;
	for (; other && tx->news_count < BATON_QUEUE_CLASS_MAX;
	     other = memory_class_next(queue, other))
		tx->news[tx->news_count++] = memory_news_of_queue(tx->m, other->name);
	return BATON_OK;
}

static enum baton_err queue_change(struct tx *tx, struct baton_str name,
                                   const struct baton_queue_policy *policy)
{
	struct queue *queue = memory_queue_make(tx, name);
	if (!queue || memory_tx_save(tx, &queue->row) != BATON_OK)
		return BATON_NO_MEMORY;
	const struct baton_key_rate was = queue->is.policy.key_rate;
	bool other_rate = !rate_equal(&was, &policy->key_rate);
	bool more = queue->is.policy.key_limit < policy->key_limit;
	bool resumed = queue->is.policy.paused && !policy->paused;
	enum baton_err e = memory_class_leave(tx, queue, policy);
	if (e != BATON_OK)
		return e;
	fence_reach_mode(&queue->is.reach, queue->is.policy.mode, policy->mode);
	if (queue->is.guests && policy_against_guests(policy)) {
		queue->is.guests = false;
		fence_reach_apart(&queue->is.reach);
	}
	bool other_turns = queue->is.policy.key_fair != policy->key_fair;
	queue->is.policy = *policy;
	bool raised = memory_class_is_raised(queue);
	if (resumed || other_rate || more || raised)
		e = tell(tx, queue, raised);
	if (e == BATON_OK)
		e = memory_class_share(tx, queue);
	if (e == BATON_OK && other_turns)
		e = memory_pace_reset(tx, queue);
	return e == BATON_OK && other_rate ? memory_rate_change(tx, queue, &was) : e;
}

enum baton_err memory_queue_set(struct baton_store *store, struct baton_str name,
                                const struct baton_queue_policy *policy, uint32_t fields,
                                bool existing)
{
	struct tx tx;
	struct baton_queue_policy next = *policy;
	memory_tx_begin(&tx, store);
	const struct queue *queue = memory_queue_find(tx.m, name);
	enum baton_err e = queue || !existing
	                           ? policy_next(tx.m, name, queue, policy, fields, &next)
	                           : refuse_queue(name);
	return memory_tx_end(&tx, e == BATON_OK ? queue_change(&tx, name, &next) : e);
}

/* The age of the first head of each priority; the oldest of these. */
static struct baton_duration oldest(const struct tx *tx, const struct queue *queue)
{
	const struct batch *first[BATON_PRIORITY_MAX + 1] = {NULL};
	struct baton_duration most = {0};
	for (struct row *row = tx->m->lanes.oldest; row; row = row->newer) {
		const struct lane *lane = (struct lane *)row;
		const struct batch *head = lane->queue == queue ? memory_head(lane, tx->now) : NULL;
		const struct batch **of = head ? &first[head->put.priority] : NULL;
		if (of && (!*of || memory_pace_before(head, *of)))
			*of = head;
	}
	for (int i = 0; i <= BATON_PRIORITY_MAX; i++) {
		struct baton_duration age = {0};
		if (first[i])
			age = baton_store_time_sub(tx->now, first[i]->put_at);
		most = age.ns > most.ns ? age : most;
	}
	return most;
}

/* How many of a line could be claimed, but for their keys. */
static uint64_t waiting_in(const struct lane *lane, struct baton_store_time now)
{
	uint64_t count = 0;
	if (!line_is_keyed(lane->name)) {
		const struct batch *first = memory_line_first(lane, now);
		return first && first->key_count > 0;
	}
	for (const struct batch *b = lane->first; b; b = b->next)
		count += memory_rival_waits(b, now);
	return count;
}

/* Those that wait for a key: without the heads, each of which is that of its first key once. */
static uint64_t waiting(const struct tx *tx, const struct queue *queue)
{
	uint64_t count = 0;
	if (tx->m->keeper.changed)
		return queue->waiting;
	for (struct row *row = tx->m->lanes.oldest; row; row = row->newer) {
		const struct lane *lane = (struct lane *)row;
		if (lane->queue != queue || lane->name.len == 0)
			continue;
		bool keyed = line_is_keyed(lane->name);
		const struct batch *head = keyed ? memory_head(lane, tx->now) : NULL;
		count += waiting_in(lane, tx->now);
		count -= head && memory_key_of(head) == lane;
	}
	return count;
}

static void describe(const struct tx *tx, const struct queue *queue, struct baton_queue_info *ret)
{
	const uint64_t *in = queue->is.in;
	memset(ret, 0, sizeof *ret);
	memcpy(ret->name, queue->name.ptr, queue->name.len);
	ret->policy = queue->is.policy;
	ret->counts = (struct baton_queue_counts){
		.ready = in[BATON_BATCH_READY],
		.delayed = in[BATON_BATCH_DELAYED] + in[BATON_BATCH_RETRY],
		.running = in[BATON_BATCH_CLAIMED],
		.dead = in[BATON_BATCH_DEAD],
		.done = queue->is.done,
		.failed = queue->is.failed,
		.waiting_on_key = waiting(tx, queue),
		.oldest = oldest(tx, queue),
	};
}

enum baton_err memory_queue_get(struct baton_store *store, struct baton_str name,
                                struct baton_queue_info *ret_info)
{
	struct tx tx;
	memory_tx_begin(&tx, store);
	const struct queue *queue = memory_queue_find(tx.m, name);
	if (queue)
		describe(&tx, queue, ret_info);
	return memory_tx_end(&tx, queue ? BATON_OK : refuse_queue(name));
}

static int by_name(const void *a, const void *b)
{
	struct baton_str s = (*(const struct queue *const *)a)->name;
	struct baton_str t = (*(const struct queue *const *)b)->name;
	return memory_compare(s, t);
}

enum baton_err memory_queue_list(struct baton_store *store, struct baton_str after,
                                 struct baton_queue_info *infos, size_t max, size_t *ret_count)
{
	struct tx tx;
	size_t count = 0;
	memory_tx_begin(&tx, store);
	const struct queue **queues =
		memory_tx_take(&tx, tx.m->queues.count, sizeof(const struct queue *));
	if (!queues)
		return memory_tx_end(&tx, BATON_NO_MEMORY);
	for (struct row *row = tx.m->queues.oldest; row; row = row->newer) {
		const struct queue *queue = (struct queue *)row;
		if (memory_compare(queue->name, after) > 0)
			queues[count++] = queue;
	}
	qsort(queues, count, sizeof(const struct queue *), by_name);
	count = count < max ? count : max;
	for (size_t i = 0; i < count; i++)
		describe(&tx, queues[i], &infos[i]);
	*ret_count = count;
	return memory_tx_end(&tx, BATON_OK);
}
