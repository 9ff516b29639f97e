/* What a process remembers of a store, to ask less of it. */
#include "store/postgres/hints.h"

#include "store/postgres/wants.h"

#define OFTEN 32

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
