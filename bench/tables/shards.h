/* How a table that is not made for threads is used by several: 64 of them, each with a lock. For
 * one thread there is a single one without a lock. */
#ifndef BENCH_SHARDS_H
#define BENCH_SHARDS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "pool.h"

#define SHARDS 64
#define SHARDS_SHIFT 58
#define SHARDS_ABOUT "for two threads 64 shards with an adaptive mutex each"

struct shard {
	pthread_mutex_t mutex;
	struct pool pool; /* [mutex] */
	void *table;      /* [mutex] the library's */
} __attribute__((aligned(128)));

struct shards {
	unsigned count; /* [const] 1 or SHARDS */
	struct shard at[] __attribute__((aligned(128)));
};

/* Shards with pools of blocks of that size; their tables are NULL. Ends the program when there
 * is no memory. */
struct shards *shards_new(unsigned threads, size_t block);

/* Frees the pools and the shards, not the tables. */
void shards_free(struct shards *s);

/* The shard of that hash, for this thread alone. All bits count, so that the bits by which the
 * table inside finds its bucket differ among the keys of a shard. */
static inline struct shard *shard_enter(struct shards *s, uint64_t hash)
{
	if (s->count == 1)
		return &s->at[0];
	struct shard *one = &s->at[hash * UINT64_C(0x9e3779b97f4a7c15) >> SHARDS_SHIFT];
	pthread_mutex_lock(&one->mutex);
	return one;
}

static inline void shard_leave(struct shards *s, struct shard *one)
{
	if (s->count > 1)
		pthread_mutex_unlock(&one->mutex);
}

#endif
