/* Memory that is given back all at once. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include <baton/alloc.h>
#include <baton/str.h>

struct arena {
	const struct baton_alloc *alloc; /* [const] */
	struct arena_chunk *chunks;      /* the newest first */
};

/* An empty one. Allocates nothing. */
void arena_init(struct arena *a, const struct baton_alloc *alloc);

/* Gives everything back. Fine for a zeroed arena, and twice. */
void arena_done(struct arena *a);

/* Takes back all that was given, and keeps a block for what comes, of at most 1 MiB. Fine for a
 * zeroed arena. */
void arena_reset(struct arena *a);

/* count * size zero bytes, aligned for every basic type; of 0 bytes too. NULL: no memory. */
void *arena_take(struct arena *a, size_t count, size_t size);

/* As that, of bytes that may be anything. */
void *arena_take_raw(struct arena *a, size_t count, size_t size);

/* A copy of the bytes, with a terminator after them. False: no memory. */
bool arena_copy(struct arena *a, struct baton_str s, struct baton_str *ret);

#endif
