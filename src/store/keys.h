/* Several keys of a batch: as callers give and get them, and as stores keep them (queue/line.h). */
#ifndef STORE_KEYS_H
#define STORE_KEYS_H

#include <baton/work.h>

#include "base/arena.h"

/* Makes the batches those that stores get: `keys` are in `key`. They are copied into the arena if
 * one of them has several. BATON_NO_MEMORY. */
enum baton_err keys_of_batches(struct arena *a, const struct baton_batch **batches, size_t count);

/* The same for what is emitted. */
enum baton_err keys_of_ends(struct arena *a, const struct baton_work_end **ends, size_t count);

/* Where somebody is told the keys of a claim or a batch. */
struct keys_shown {
	struct baton_str *key;
	const struct baton_str **keys;
	size_t *count;
};

/* The keys in the text that a store keeps, in the memory of `a`. BATON_NO_MEMORY. */
enum baton_err keys_show(struct arena *a, struct baton_str text, const struct keys_shown *ret);

#define KEYS_OF(of) \
	(&(struct keys_shown){.key = &(of)->key, .keys = &(of)->keys, .count = &(of)->key_count})

#endif
