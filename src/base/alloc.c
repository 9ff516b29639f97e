/* Where memory comes from. */
#include <baton/alloc.h>

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"

static void *libc_resize(const struct baton_alloc *self, void *old, size_t old_size,
                         size_t new_size)
{
	(void)self;
	(void)old_size;
	if (new_size == 0) {
		free(old);
		return NULL;
	}
	return realloc(old, new_size);
}

const struct baton_alloc *baton_alloc_libc(void)
{
	static const struct baton_alloc libc = {.resize = libc_resize};
	return &libc;
}

void *mem_new(const struct baton_alloc *alloc, size_t count, size_t size)
{
	void *block = mem_resize(alloc, NULL, 0, count, size);
	if (block != NULL)
		memset(block, 0, count * size);
	return block;
}

/* The size of a block that exists, so it was computed before and did not overflow. */
static size_t size_of(size_t count, size_t size)
{
	size_t bytes = 0;
	CHECK(!__builtin_mul_overflow(count, size, &bytes));
	return bytes;
}

void *mem_resize(const struct baton_alloc *alloc, void *old, size_t old_count, size_t new_count,
                 size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(new_count, size, &bytes) || bytes == 0)
		return NULL;
	return alloc->resize(alloc, old, old != NULL ? size_of(old_count, size) : 0, bytes);
}

void mem_free(const struct baton_alloc *alloc, void *block, size_t count, size_t size)
{
	if (block != NULL)
		alloc->resize(alloc, block, size_of(count, size), 0);
}
