/* GHashTable as a set of entries: open addressing, hashes kept beside the pointers. */
#include <glib.h>

#include "shards.h"
#include "table.h"

/* What the table points to. A key that is only asked for has its text elsewhere. */
struct item {
	const struct key *key;
	guint hash;
	struct entry entry;
};

static guint item_hash(gconstpointer item)
{
	return ((const struct item *)item)->hash;
}

static gboolean item_equal(gconstpointer a, gconstpointer b)
{
	return key_equal(((const struct item *)a)->key, ((const struct item *)b)->key);
}

static void *make(size_t keys, unsigned threads)
{
	(void)keys;
	struct shards *s = shards_new(threads, sizeof(struct item));
	for (unsigned i = 0; i < s->count; i++)
		s->at[i].table = g_hash_table_new(item_hash, item_equal);
	return s;
}

static void unmake(void *table)
{
	struct shards *s = table;
	for (unsigned i = 0; i < s->count; i++)
		g_hash_table_destroy(s->at[i].table);
	shards_free(s);
}

static bool add(struct shard *in, const struct key *key, guint hash, const struct caller *who)
{
	struct item *item = pool_take(&in->pool);
	entry_set(&item->entry, key, who);
	item->key = &item->entry.key;
	item->hash = hash;
	return g_hash_table_add(in->table, item);
}

static bool acquire(void *table, const struct key *key, const struct caller *who)
{
	struct item wanted = {.key = key, .hash = g_str_hash(key->text)};
	struct shard *in = shard_enter(table, wanted.hash);
	const struct item *item = g_hash_table_lookup(in->table, &wanted);
	bool ok = item ? entry_is_of(&item->entry, who) : add(in, key, wanted.hash, who);
	shard_leave(table, in);
	return ok;
}

static bool release(void *table, const struct key *key, const struct caller *who)
{
	struct item wanted = {.key = key, .hash = g_str_hash(key->text)};
	struct shard *in = shard_enter(table, wanted.hash);
	struct item *item = g_hash_table_lookup(in->table, &wanted);
	bool ok = item && entry_is_of(&item->entry, who) && g_hash_table_remove(in->table, item);
	if (ok)
		pool_give(&in->pool, item);
	shard_leave(table, in);
	return ok;
}

const struct table_kind table_glib = {
	.name = "GHashTable",
	.about = "GLib " BENCH_GLIB ", g_str_hash computed once per call, entries from a free "
		 "list; " SHARDS_ABOUT,
	.role = ROLE_RIVAL,
	.make = make,
	.unmake = unmake,
	.acquire = acquire,
	.release = release,
};
