/* The index of subjects: open addressing without tombstones, in shards. Whoever changes one has its
 * lock; readers look at its version before and after. */
#ifndef CONTEST_INDEX_H
#define CONTEST_INDEX_H

#include "contest/layout.h"

static inline struct shard *index_shard(const struct view *v, uint64_t hash)
{
	return &v->shards[(hash >> 40) & (v->shard_count - 1)];
}

/* A walk along the entries that a hash can have. */
struct index_walk {
	const index_entry *entries;
	uint32_t at, left, tag;
};

struct index_walk index_begin(const struct view *v, uint64_t hash);

/* The next place whose entry has the hash's upper half. False: there are no more. */
bool index_next(const struct view *v, struct index_walk *walk, uint32_t *ret_slot);

bool index_has_room(const struct view *v, const struct shard *shard);
void index_add(struct view *v, struct shard *shard, uint32_t n);
void index_remove(struct view *v, struct shard *shard, uint32_t n);

/* Makes the index anew from the places that say that they are listed, after somebody died while he
 * changed it. */
void index_repair(struct view *v, struct shard *shard);

#endif
