/* Runners and shards as they are stored. */
#ifndef SQLITE_RUNNERS_H
#define SQLITE_RUNNERS_H

#include "store/sqlite/sqlite.h"

/* The runner of that number. *ret_found false: it is not registered. */
enum baton_err runner_load(struct db *db, uint64_t number, struct runner_row *ret, bool *ret_found);

/* As whom it claims. */
enum baton_err runner_owner(struct db *db, uint64_t number, struct baton_owner *ret,
                            bool *ret_found);

/* A shard that nobody ever had has zeros. */
struct shard_row {
	uint64_t runner; /* 0: nobody */
	struct fence_base base;
};
enum baton_err shard_load(struct db *db, int64_t queue, uint32_t number, struct shard_row *ret);

/* The queue of a shard that is asked for. BATON_INVALID: it has no such shard. */
enum baton_err shard_queue(struct sqlite_store *s, const struct baton_shard *shard,
                           struct queue_row **ret);

/* What the runner is told of it. */
struct baton_shard_answer shard_answer(const struct shard_row *row, uint64_t runner);

/* Which of its claims a runner gives back: all, or those in one shard of the queue, and none that
 * is known. */
struct returning {
	int64_t queue; /* 0: all */
	uint32_t shard;
	const struct baton_work_proof *known;
	size_t known_count;
	struct baton_str why; /* it counts as an attempt, for this; empty: it does not */
};
enum baton_err runner_return(struct sqlite_store *s, const struct runner_row *r,
                             const struct returning *returning);

#endif
