/* How often keys are held where a tick comes from, of queues whose keys count there. */
#ifndef STORE_USES_H
#define STORE_USES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/err.h>
#include <baton/policy.h>
#include <baton/str.h>

#include "base/arena.h"

/* Of one key. */
struct key_use {
	const void *queue;     /* whatever names it */
	struct baton_str line; /* line_counted()    */
	uint64_t count;
};

/* Only keys that are held. */
struct key_uses {
	struct arena *arena; /* borrowed */
	struct key_use *list;
	size_t count, cap;
};

/* The key of that line is held so many times more. BATON_NO_MEMORY. */
enum baton_err uses_add(struct key_uses *u, const void *queue, struct baton_str line,
                        uint64_t count);

/* Whether no more claims of that line may begin there: of a line of one shard, and of no other. */
bool uses_are_full(const struct key_uses *u, const void *queue,
                   const struct baton_queue_policy *policy, struct baton_str line);

/* How many keys of the queue that is so of. */
size_t uses_full_count(const struct key_uses *u, const void *queue,
                       const struct baton_queue_policy *policy);

#endif
