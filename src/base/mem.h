/* Blocks from a baton_alloc, with the sizes computed without overflow. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>

#include <baton/alloc.h>

/* A block of count * size zero bytes, or NULL (also on overflow, and for 0 bytes). */
void *mem_new(const struct baton_alloc *alloc, size_t count, size_t size);

/* Resizes a block from old_count to new_count elements; what is added is not cleared.
 * NULL (also on overflow, and for 0 bytes): `old` is as it was. */
void *mem_resize(const struct baton_alloc *alloc, void *old, size_t old_count, size_t new_count,
                 size_t size);

/* Frees a block of count * size bytes. NULL is fine. */
void mem_free(const struct baton_alloc *alloc, void *block, size_t count, size_t size);

#endif
