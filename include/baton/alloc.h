/* Where memory comes from. Programs use the C library's; tests bring their own and make it fail. */
#ifndef BATON_ALLOC_H
#define BATON_ALLOC_H

#include <stddef.h>

#include <baton/api.h>

BATON_BEGIN

struct baton_alloc {
	/* Resizes a block, as realloc() does: `old` of `old_size` bytes becomes `new_size` bytes,
	 * aligned for every basic type. `old` NULL (old_size 0): a new block. `new_size` 0: frees,
	 * returns NULL. NULL otherwise: no memory, and `old` is as it was. From any thread. */
	void *(*resize)(const struct baton_alloc *self, void *old, size_t old_size,
	                size_t new_size);
};

/* malloc(), realloc() and free(). */
BATON_API const struct baton_alloc *baton_alloc_libc(void);

BATON_END

#endif
