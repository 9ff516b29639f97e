/* Queues of a store in memory that have their keys in common. */
#include "store/memory/class.h"

#include "queue/line.h"
#include "queue/policy.h"
#include "store/memory/lane.h"
#include "store/memory/queue.h"
#include "store/memory/rate.h"
#include "store/refuse.h"

static struct queue *next_of(const struct memory *m, const struct baton_queue_policy *policy,
                             const struct queue *but, const struct queue *after)
{
	struct row *row = after ? after->row.newer : m->queues.oldest;
	for (; row; row = row->newer) {
		struct queue *queue = (struct queue *)row;
		if (queue != but && !row->gone && policy_same_class(&queue->is.policy, policy))
			return queue;
	}
	return NULL;
}

struct queue *memory_class_next(const struct queue *of, const struct queue *after)
{
	if (!policy_has_class(&of->is.policy))
		return NULL;
	return next_of(of->memory, &of->is.policy, of, after);
}

struct lane *memory_class_line(const struct queue *queue, struct baton_str name)
{
	return memory_lane_find(queue->memory, queue->name, name);
}

bool memory_class_has(const struct claim *claim)
{
	return policy_has_class(&claim->lane->queue->is.policy) &&
	       line_is_keyed(memory_key_of_claim(claim)->name);
}

void memory_class_take(const struct tx *tx, const struct claim *claim)
{
	if (!memory_class_has(claim))
		return;
	if (claim->key_count == 0)
		claim->lane->taken_in = tx->m->calls;
	for (size_t i = 0; i < claim->key_count; i++)
		claim->keys[i]->taken_in = tx->m->calls;
}

static bool is_taken(const struct tx *tx, const struct lane *key)
{
	const bool desk = tx->m->keeper.changed != NULL;
	return key && (desk ? key->taken_in > 0 : key->taken_in == tx->m->calls);
}

static bool is_taken_of(const struct tx *tx, const struct lane *key)
{
	bool taken = is_taken(tx, key);
	const struct queue *queue = memory_class_next(key->queue, NULL);
	for (; queue && !taken; queue = memory_class_next(key->queue, queue))
		taken = is_taken(tx, memory_class_line(queue, key->name));
	return taken;
}

bool memory_class_is_taken(const struct tx *tx, const struct batch *b)
{
	if (!policy_has_class(&b->lane->queue->is.policy))
		return false;
	bool taken = line_is_keyed(b->lane->name) && is_taken_of(tx, b->lane);
	for (size_t i = 0; i < b->key_count && !taken; i++)
		taken = is_taken_of(tx, b->keys[i].key);
	return taken;
}

uint64_t memory_class_fence(const struct queue *queue, uint64_t last)
{
	last = fence_of_key(&queue->is.reach, last);
	const struct queue *other = memory_class_next(queue, NULL);
	for (; other; other = memory_class_next(queue, other))
		last = fence_of_key(&other->is.reach, last);
	return last;
}

enum baton_err memory_class_join(const struct memory *m, const struct queue *queue,
                                 const struct baton_queue_policy *changes, uint32_t fields,
                                 struct baton_queue_policy *policy)
{
	size_t count = 0;
	if (!(fields & BATON_POLICY_KEY_CLASS) || !policy_has_class(changes) ||
	    policy_same_class(policy, changes))
		return BATON_OK;
	const struct queue *other = next_of(m, changes, queue, NULL);
	if (other)
		policy_share(policy, &other->is.policy);
	for (; other; other = next_of(m, changes, queue, other))
		count++;
	return count < BATON_QUEUE_CLASS_MAX ? BATON_OK : refuse_class_full(changes);
}

static const char *against_guests(const struct queue *queue, const struct baton_queue_policy *next)
{
	struct baton_queue_policy policy = queue->is.policy;
	policy_share(&policy, next);
	return queue->is.guests ? policy_against_guests(&policy) : NULL;
}

enum baton_err memory_class_refuse(const struct memory *m, const struct queue *queue,
                                   const struct baton_queue_policy *next)
{
	const struct queue *other = NULL;
	if (!policy_has_class(next))
		return BATON_OK;
	while ((other = next_of(m, next, queue, other)) != NULL) {
		const char *against = against_guests(other, next);
		if (against && !memory_queue_is_without_guests(other))
			return refuse_for_guests(other->name, against);
	}
	return BATON_OK;
}

enum baton_err memory_class_leave(struct tx *tx, const struct queue *queue,
                                  const struct baton_queue_policy *next)
{
	enum baton_err e = BATON_OK;
	if (policy_same_class(&queue->is.policy, next))
		return BATON_OK;
	struct queue *other = memory_class_next(queue, NULL);
	if (other || (policy_has_class(next) && next_of(tx->m, next, queue, NULL)))
		e = memory_rate_leave(tx, queue, other);
	for (; other && e == BATON_OK; other = memory_class_next(queue, other)) {
		e = memory_tx_save(tx, &other->row);
		if (e == BATON_OK)
			fence_reach_leave(&other->is.reach, &queue->is.reach);
	}
	return e;
}

bool memory_class_is_raised(const struct queue *queue)
{
	const struct queue *other = memory_class_next(queue, NULL);
	return other && (other->is.policy.key_limit < queue->is.policy.key_limit ||
	                 !rate_equal(&other->is.policy.key_rate, &queue->is.policy.key_rate));
}

enum baton_err memory_class_share(struct tx *tx, const struct queue *queue)
{
	enum baton_err e = BATON_OK;
	struct queue *other = memory_class_next(queue, NULL);
	for (; other && e == BATON_OK; other = memory_class_next(queue, other)) {
		const struct baton_key_rate was = other->is.policy.key_rate;
		e = memory_tx_save(tx, &other->row);
		if (e != BATON_OK)
			return e;
		if (against_guests(other, &queue->is.policy)) {
			other->is.guests = false;
			fence_reach_apart(&other->is.reach);
		}
		policy_share(&other->is.policy, &queue->is.policy);
		if (!rate_equal(&was, &other->is.policy.key_rate))
			e = memory_rate_change(tx, other, &was);
	}
	return e;
}
