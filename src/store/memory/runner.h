/* The runners of a store in memory, and their shards. */
#ifndef STORE_MEMORY_RUNNER_H
#define STORE_MEMORY_RUNNER_H

#include "store/memory/tx.h"

/* NULL: it is not registered. */
struct runner *memory_runner_find(const struct memory *m, uint64_t number);

/* The queue of a shard that is asked for. BATON_INVALID: it has no such shard. */
enum baton_err memory_shard_queue(const struct tx *tx, const struct baton_shard *shard,
                                  struct queue **ret);

/* The row of a shard; NULL: nobody ever had it. */
struct lease *memory_shard_find(const struct memory *m, struct baton_str queue, uint32_t number);

/* What the runner is told of it. */
struct baton_shard_answer memory_shard_answer(const struct lease *shard, uint64_t runner);

#endif
