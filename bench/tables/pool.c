/* Blocks of one size from a free list. */
#include "pool.h"

#include <err.h>
#include <stdlib.h>

#define POOL_CHUNK 64
#define POOL_ALIGN 64

static size_t rounded(size_t size)
{
	return (size + POOL_ALIGN - 1) / POOL_ALIGN * POOL_ALIGN;
}

/* The chunk's first cache line links it to the others. */
void pool_grow(struct pool *p)
{
	size_t step = rounded(p->size);
	char *chunk = aligned_alloc(POOL_ALIGN, POOL_ALIGN + POOL_CHUNK * step);
	if (!chunk)
		errx(1, "no memory");
	struct pool_block *head = (struct pool_block *)(void *)chunk;
	head->next = p->chunks;
	p->chunks = head;
	for (size_t i = POOL_CHUNK; i-- > 0;)
		pool_give(p, chunk + POOL_ALIGN + i * step);
}

void pool_done(struct pool *p)
{
	while (p->chunks) {
		struct pool_block *chunk = p->chunks;
		p->chunks = chunk->next;
		free(chunk);
	}
	p->free = NULL;
}
