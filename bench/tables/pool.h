/* Blocks of one size from a free list, so that no contestant is slowed down by malloc(). */
#ifndef BENCH_POOL_H
#define BENCH_POOL_H

#include <stddef.h>

struct pool_block {
	struct pool_block *next;
};

/* Zeros but for `size`: an empty pool. Not thread-safe. */
struct pool {
	size_t size; /* of a block, at least that of a pointer */
	struct pool_block *free;
	struct pool_block *chunks;
};

/* Makes more blocks; ends the program when there is no memory. */
void pool_grow(struct pool *p);

/* Frees the memory of all blocks. */
void pool_done(struct pool *p);

static inline void *pool_take(struct pool *p)
{
	if (!p->free)
		pool_grow(p);
	struct pool_block *b = p->free;
	p->free = b->next;
	return b;
}

static inline void pool_give(struct pool *p, void *block)
{
	struct pool_block *b = block;
	b->next = p->free;
	p->free = b;
}

#endif
