/* ck_ht of Concurrency Kit in bytestring mode: open addressing over pointers to keys. Its
 * writers need a lock. */
#include <ck_ht.h>
#include <err.h>
#include <stdlib.h>

#include "shards.h"
#include "table.h"

#define SEED 0x5eed

static void *ck_malloc_new(size_t size)
{
	return malloc(size);
}

static void *ck_malloc_resize(void *block, size_t old_size, size_t new_size, bool may_move)
{
	(void)old_size;
	(void)may_move;
	return realloc(block, new_size);
}

/* Everyone who could still read the block holds the same lock, so nothing has to be deferred. */
static void ck_malloc_free(void *block, size_t size, bool defer)
{
	(void)size;
	(void)defer;
	free(block);
}

static struct ck_malloc heap = {.malloc = ck_malloc_new,
                                .realloc = ck_malloc_resize,
                                .free = ck_malloc_free};

static void *make(size_t keys, unsigned threads)
{
	struct shards *s = shards_new(threads, sizeof(struct entry));
	for (unsigned i = 0; i < s->count; i++) {
		ck_ht_t *ht = malloc(sizeof *ht);
		unsigned mode = CK_HT_MODE_BYTESTRING | CK_HT_WORKLOAD_DELETE;
		if (!ht || !ck_ht_init(ht, mode, NULL, &heap, 2 * keys / s->count + 8, SEED))
			errx(1, "no memory");
		s->at[i].table = ht;
	}
	return s;
}

static void unmake(void *table)
{
	struct shards *s = table;
	for (unsigned i = 0; i < s->count; i++) {
		ck_ht_destroy(s->at[i].table);
		free(s->at[i].table);
	}
	shards_free(s);
}

/* The seed is the same in all shards, so any of them can hash. */
static ck_ht_hash_t hash_of(struct shards *s, const struct key *key)
{
	ck_ht_hash_t hash;
	ck_ht_hash(&hash, s->at[0].table, key->text, (uint16_t)key->len);
	return hash;
}

static struct entry *find(struct shard *in, const struct key *key, ck_ht_hash_t hash)
{
	ck_ht_entry_t slot;
	ck_ht_entry_key_set(&slot, key->text, (uint16_t)key->len);
	return ck_ht_get_spmc(in->table, hash, &slot) ? ck_ht_entry_value(&slot) : NULL;
}

static bool add(struct shard *in, const struct key *key, ck_ht_hash_t hash,
                const struct caller *who)
{
	struct entry *e = pool_take(&in->pool);
	entry_set(e, key, who);
	ck_ht_entry_t slot;
	ck_ht_entry_set(&slot, hash, e->key.text, (uint16_t)e->key.len, e);
	return ck_ht_put_spmc(in->table, hash, &slot);
}

static bool acquire(void *table, const struct key *key, const struct caller *who)
{
	ck_ht_hash_t hash = hash_of(table, key);
	struct shard *in = shard_enter(table, hash.value);
	const struct entry *e = find(in, key, hash);
	bool ok = e ? entry_is_of(e, who) : add(in, key, hash, who);
	shard_leave(table, in);
	return ok;
}

static void drop(struct shard *in, const struct key *key, ck_ht_hash_t hash, struct entry *e)
{
	ck_ht_entry_t slot;
	ck_ht_entry_key_set(&slot, key->text, (uint16_t)key->len);
	if (!ck_ht_remove_spmc(in->table, hash, &slot))
		errx(1, "ck_ht: a key that was found cannot be removed");
	pool_give(&in->pool, e);
}

static bool release(void *table, const struct key *key, const struct caller *who)
{
	ck_ht_hash_t hash = hash_of(table, key);
	struct shard *in = shard_enter(table, hash.value);
	struct entry *e = find(in, key, hash);
	bool ok = e && entry_is_of(e, who);
	if (ok)
		drop(in, key, hash, e);
	shard_leave(table, in);
	return ok;
}

const struct table_kind table_ck = {
	.name = "ck_ht",
	.about = "Concurrency Kit " BENCH_CK ", ck_ht, bytestring mode, its default hash, "
		 "sized beforehand, entries from a free list; " SHARDS_ABOUT,
	.role = ROLE_RIVAL,
	.make = make,
	.unmake = unmake,
	.acquire = acquire,
	.release = release,
};
