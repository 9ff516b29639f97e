/* uthash: hooks inside the element, chained buckets, all elements also in one list. */
#include <err.h>
#include <uthash.h>

#include "shards.h"
#include "table.h"

struct item {
	struct entry entry;
	UT_hash_handle hh;
};

static void *make(size_t keys, unsigned threads)
{
	(void)keys;
	return shards_new(threads, sizeof(struct item));
}

static void unmake(void *table)
{
	struct shards *s = table;
	for (unsigned i = 0; i < s->count; i++) {
		struct item *head = s->at[i].table;
		HASH_CLEAR(hh, head);
	}
	shards_free(s);
}

/* Its macros are whole functions. NOLINTBEGIN(readability-function-size) */
static struct item *find(struct shard *in, const struct key *key, unsigned hash)
{
	struct item *head = in->table;
	struct item *found;
	HASH_FIND_BYHASHVALUE(hh, head, key->text, key->len, hash, found);
	return found;
}

static bool add(struct shard *in, const struct key *key, unsigned hash, const struct caller *who)
{
	struct item *head = in->table;
	struct item *item = pool_take(&in->pool);
	entry_set(&item->entry, key, who);
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, head, item->entry.key.text, item->entry.key.len, hash,
	                            item);
	in->table = head;
	return true;
}

static bool acquire(void *table, const struct key *key, const struct caller *who)
{
	unsigned hash;
	HASH_VALUE(key->text, key->len, hash);
	struct shard *in = shard_enter(table, hash);
	const struct item *item = find(in, key, hash);
	bool ok = item ? entry_is_of(&item->entry, who) : add(in, key, hash, who);
	shard_leave(table, in);
	return ok;
}

static void drop(struct shard *in, struct item *item)
{
	struct item *head = in->table;
	HASH_DEL(head, item);
	in->table = head;
	pool_give(&in->pool, item);
}

static bool release(void *table, const struct key *key, const struct caller *who)
{
	unsigned hash;
	HASH_VALUE(key->text, key->len, hash);
	struct shard *in = shard_enter(table, hash);
	struct item *item = find(in, key, hash);
	bool ok = item && entry_is_of(&item->entry, who);
	if (ok)
		drop(in, item);
	shard_leave(table, in);
	return ok;
}

/* NOLINTEND(readability-function-size) */

const struct table_kind table_uthash = {
	.name = "uthash",
	.about = "uthash " BENCH_UTHASH ", its default hash computed once per call, elements from "
		 "a free list; " SHARDS_ABOUT,
	.role = ROLE_RIVAL,
	.make = make,
	.unmake = unmake,
	.acquire = acquire,
	.release = release,
};
