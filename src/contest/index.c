/* The index of subjects. */
#include "contest/index.h"

#include "contest/step.h"

static index_entry *entries_of(const struct view *v, const struct shard *shard)
{
	return v->index + (size_t)(shard - v->shards) * v->shard_places;
}

static uint64_t entry_make(uint64_t hash, uint32_t n)
{
	return (hash & UINT64_C(0xffffffff00000000)) | (n + 1);
}

static uint32_t home_of(const struct view *v, uint64_t hash)
{
	return (uint32_t)hash & (v->shard_places - 1);
}

struct index_walk index_begin(const struct view *v, uint64_t hash)
{
	return (struct index_walk){
		.entries = entries_of(v, index_shard(v, hash)),
		.at = home_of(v, hash),
		.left = v->shard_places,
		.tag = (uint32_t)(hash >> 32),
	};
}

bool index_next(const struct view *v, struct index_walk *walk, uint32_t *ret_slot)
{
	while (walk->left > 0) {
		uint64_t entry =
			atomic_load_explicit(&walk->entries[walk->at], memory_order_acquire);
		if (entry == 0)
			return false;
		walk->at = (walk->at + 1) & (v->shard_places - 1);
		walk->left--;
		uint32_t n = (uint32_t)entry - 1;
		if (entry >> 32 == walk->tag && n < v->params[PARAM_SUBJECTS]) {
			*ret_slot = n;
			return true;
		}
	}
	return false;
}

/* Room for one more, with an empty entry left to end all walks. */
bool index_has_room(const struct view *v, const struct shard *shard)
{
	const index_entry *entries = entries_of(v, shard);
	uint32_t empty = 0;
	for (uint32_t i = 0; i < v->shard_places && empty < 2; i++)
		empty += atomic_load_explicit(&entries[i], memory_order_relaxed) == 0;
	return empty == 2;
}

static void version_next(struct shard *shard)
{
	atomic_fetch_add(&shard->version, 1);
}

static void entry_put(struct view *v, struct shard *shard, uint32_t n)
{
	index_entry *entries = entries_of(v, shard);
	uint64_t hash = atomic_load(&v->slots[n].hash);
	uint32_t at = home_of(v, hash);
	for (uint32_t i = 0; i < v->shard_places; i++) {
		if (atomic_load(&entries[at]) == 0) {
			atomic_store(&entries[at], entry_make(hash, n));
			return;
		}
		at = (at + 1) & (v->shard_places - 1);
	}
}

void index_add(struct view *v, struct shard *shard, uint32_t n)
{
	version_next(shard);
	STEP(SETTLE_INDEXING);
	entry_put(v, shard, n);
	version_next(shard);
}

/* Whether an entry at `at` whose home is `home` may move back to `hole`. */
static bool may_fill(uint32_t home, uint32_t at, uint32_t hole)
{
	return at > hole ? home <= hole || home > at : home <= hole && home > at;
}

static void hole_close(struct view *v, index_entry *entries, uint32_t hole)
{
	uint32_t mask = v->shard_places - 1;
	uint32_t at = hole;
	for (uint32_t i = 0; i < v->shard_places; i++) {
		at = (at + 1) & mask;
		uint64_t entry = atomic_load(&entries[at]);
		if (entry == 0)
			break;
		uint32_t n = (uint32_t)entry - 1;
		if (n >= v->params[PARAM_SUBJECTS])
			continue;
		if (may_fill(home_of(v, atomic_load(&v->slots[n].hash)), at, hole)) {
			atomic_store(&entries[hole], entry);
			hole = at;
			STEP(EVICT_SHIFTING);
		}
	}
	atomic_store(&entries[hole], 0);
}

void index_remove(struct view *v, struct shard *shard, uint32_t n)
{
	index_entry *entries = entries_of(v, shard);
	uint32_t mask = v->shard_places - 1;
	uint32_t at = home_of(v, atomic_load(&v->slots[n].hash));
	version_next(shard);
	for (uint32_t i = 0; i < v->shard_places; i++, at = (at + 1) & mask) {
		uint64_t entry = atomic_load(&entries[at]);
		if (entry == 0)
			break;
		if ((uint32_t)entry == n + 1) {
			hole_close(v, entries, at);
			break;
		}
	}
	version_next(shard);
}

void index_repair(struct view *v, struct shard *shard)
{
	index_entry *entries = entries_of(v, shard);
	if ((atomic_load(&shard->version) & 1) == 0)
		version_next(shard);
	for (uint32_t i = 0; i < v->shard_places; i++)
		atomic_store(&entries[i], 0);
	uint32_t fresh = view_fresh(v);
	for (uint32_t n = 0; n < fresh; n++) {
		struct slot *slot = &v->slots[n];
		if (atomic_load(&slot->listed) == 0 ||
		    index_shard(v, atomic_load(&slot->hash)) != shard)
			continue;
		struct word w = slot_load(slot);
		if (word_code(w) != WORD_VACANT) {
			entry_put(v, shard, n);
			continue;
		}
		if (atomic_load(&shard->floor) < word_tenure(w))
			atomic_store(&shard->floor, word_tenure(w));
		atomic_store(&slot->listed, 0);
	}
	version_next(shard);
}
