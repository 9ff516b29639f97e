/* What a process remembers of a store, to ask less of it. */
#include "store/postgres/hints.h"

#include <string.h>

#include "store/postgres/wants.h"

#define OFTEN 32
#define OFTEN_MAX 16384
#define RECALL_NS INT64_C(1000000000)
#define LONG_AGO_NS (INT64_MIN / 2)

void hints_init(struct hints *h)
{
	*h = (struct hints){.due = 0};
	pthread_mutex_init(&h->mu, NULL);
}

void hints_done(struct hints *h)
{
	pthread_mutex_destroy(&h->mu);
}

static struct hint_claim *slot(struct hints *h, uint64_t base)
{
	return &h->claims[base / BULK_MAX % HINTS_CLAIMS];
}

void hints_claimed(struct hints *h, const struct hint_claim *claim)
{
	pthread_mutex_lock(&h->mu);
	*slot(h, claim->base) = *claim;
	pthread_mutex_unlock(&h->mu);
}

bool hints_find(struct hints *h, uint64_t base, struct hint_claim *ret)
{
	pthread_mutex_lock(&h->mu);
	*ret = *slot(h, base);
	pthread_mutex_unlock(&h->mu);
	return ret->stripe > 0 && ret->base == base;
}

void hints_claimed_apart(struct hints *h, const struct hint_claim *claim)
{
	pthread_mutex_lock(&h->mu);
	h->apart[claim->base % HINTS_CLAIMS] = *claim;
	pthread_mutex_unlock(&h->mu);
}

bool hints_find_apart(struct hints *h, uint64_t head, struct hint_claim *ret)
{
	pthread_mutex_lock(&h->mu);
	*ret = h->apart[head % HINTS_CLAIMS];
	pthread_mutex_unlock(&h->mu);
	return ret->stripe > 0 && ret->base == head;
}

static bool is_recalled(const struct recall *r, struct baton_str name, uint32_t queue)
{
	if (name.len == 0)
		return r->name[0] && r->queue == queue;
	return baton_str_equal(baton_str_z(r->name), name);
}

bool hints_recall(struct hints *h, struct baton_str name, uint32_t queue, int64_t now_ns,
                  struct recall *ret)
{
	bool found = false;
	pthread_mutex_lock(&h->mu);
	for (size_t i = 0; i < HINTS_QUEUES && !found; i++) {
		struct recall *r = &h->queues[i];
		if (!is_recalled(r, name, queue))
			continue;
		found = r->unsure == 0 && now_ns - r->at_ns < RECALL_NS;
		if (r->unsure > 0)
			r->unsure--;
		if (!found)
			break;
		memcpy(ret, r, sizeof *ret);
		ret->last = h->last;
	}
	pthread_mutex_unlock(&h->mu);
	return found;
}

/* NULL: nothing is known of it. */
static struct recall *recall_find(struct hints *h, struct baton_str name)
{
	for (size_t i = 0; i < HINTS_QUEUES; i++) {
		if (is_recalled(&h->queues[i], name, 0))
			return &h->queues[i];
	}
	return NULL;
}

/* The place of that queue, or of the one that was used the longest ago. */
static struct recall *recall_slot(struct hints *h, struct baton_str name)
{
	struct recall *own = recall_find(h, name), *oldest = &h->queues[0];
	if (own)
		return own;
	for (size_t i = 0; i < HINTS_QUEUES; i++) {
		struct recall *r = &h->queues[i];
		if (r->at_ns < oldest->at_ns)
			oldest = r;
	}
	oldest->unsure = oldest->often = 0;
	return oldest;
}

void hints_remember(struct hints *h, const struct recall *queue)
{
	pthread_mutex_lock(&h->mu);
	struct recall *r = recall_slot(h, baton_str_z(queue->name));
	const uint32_t unsure = r->unsure, often = r->often;
	memcpy(r, queue, sizeof *r);
	r->unsure = unsure;
	r->often = often;
	h->last = queue->last > h->last ? queue->last : h->last;
	pthread_mutex_unlock(&h->mu);
}

void hints_number(struct hints *h, uint64_t number)
{
	pthread_mutex_lock(&h->mu);
	h->last = number > h->last ? number : h->last;
	pthread_mutex_unlock(&h->mu);
}

void hints_drop(struct hints *h, struct baton_str name)
{
	pthread_mutex_lock(&h->mu);
	struct recall *r = recall_find(h, name);
	if (r)
		r->at_ns = LONG_AGO_NS;
	pthread_mutex_unlock(&h->mu);
}

void hints_unsure(struct hints *h, const struct recall *queue)
{
	pthread_mutex_lock(&h->mu);
	struct recall *r = recall_find(h, baton_str_z(queue->name));
	if (r) {
		r->unsure = r->often > OFTEN ? r->often : OFTEN;
		r->often = r->unsure < OFTEN_MAX ? 2 * r->unsure : OFTEN_MAX;
	}
	pthread_mutex_unlock(&h->mu);
}

void hints_sure(struct hints *h, const struct recall *queue)
{
	pthread_mutex_lock(&h->mu);
	struct recall *r = recall_find(h, baton_str_z(queue->name));
	if (r)
		r->often /= 2;
	pthread_mutex_unlock(&h->mu);
}

void hints_forget(struct hints *h)
{
	pthread_mutex_lock(&h->mu);
	memset(h->queues, 0, sizeof h->queues);
	memset(h->claims, 0, sizeof h->claims);
	memset(h->apart, 0, sizeof h->apart);
	h->last = 0;
	pthread_mutex_unlock(&h->mu);
}

static uint8_t *pool_slot(struct hints *h, uint32_t stripe, uint32_t pool)
{
	return &h->heads[(stripe + pool) % HINTS_POOLS];
}

bool hints_heads(struct hints *h, uint32_t stripe, uint32_t pool)
{
	pthread_mutex_lock(&h->mu);
	bool any = *pool_slot(h, stripe, pool) > 0;
	pthread_mutex_unlock(&h->mu);
	return any;
}

void hints_heads_found(struct hints *h, uint32_t stripe, uint32_t pool, bool any)
{
	pthread_mutex_lock(&h->mu);
	uint8_t *often = pool_slot(h, stripe, pool);
	if (any)
		*often = OFTEN;
	else if (*often > 0)
		--*often;
	pthread_mutex_unlock(&h->mu);
}

bool hints_strict(struct hints *h, uint32_t stripe)
{
	pthread_mutex_lock(&h->mu);
	bool strict = h->strict[stripe];
	pthread_mutex_unlock(&h->mu);
	return strict;
}

void hints_strict_found(struct hints *h, uint32_t stripe, bool strict)
{
	pthread_mutex_lock(&h->mu);
	h->strict[stripe] = strict;
	pthread_mutex_unlock(&h->mu);
}

uint64_t hints_classes(struct hints *h, uint32_t stripe)
{
	pthread_mutex_lock(&h->mu);
	uint64_t classes = h->classes[stripe];
	pthread_mutex_unlock(&h->mu);
	return classes;
}

void hints_class_found(struct hints *h, uint32_t stripe, uint64_t bit)
{
	pthread_mutex_lock(&h->mu);
	h->classes[stripe] |= bit;
	pthread_mutex_unlock(&h->mu);
}

bool hints_due(struct hints *h)
{
	pthread_mutex_lock(&h->mu);
	bool due = h->due > 0;
	h->due -= due;
	pthread_mutex_unlock(&h->mu);
	return due;
}

void hints_due_found(struct hints *h)
{
	pthread_mutex_lock(&h->mu);
	h->due = OFTEN;
	pthread_mutex_unlock(&h->mu);
}
