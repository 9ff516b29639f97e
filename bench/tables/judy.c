/* JudyHS: a hash at the root, digital trees below. It keeps its own copy of the key and one word
 * for its user. */
#include <Judy.h>
#include <err.h>

#include "mix.h"
#include "shards.h"
#include "table.h"

static void *make(size_t keys, unsigned threads)
{
	(void)keys;
	return shards_new(threads, sizeof(struct baton_id));
}

static void unmake(void *table)
{
	struct shards *s = table;
	for (unsigned i = 0; i < s->count; i++)
		JudyHSFreeArray(&s->at[i].table, PJE0);
	shards_free(s);
}

/* JudyHS does not show its hash; another one picks the shard, where there are several. */
static struct shard *enter(struct shards *s, const struct key *key)
{
	return shard_enter(s, s->count > 1 ? mix_hash(key) : 0);
}

/* Judy's functions take a plain pointer, but only read the key. */
static void *text_of(const struct key *key)
{
	return (void *)key->text;
}

static bool acquire(void *table, const struct key *key, const struct caller *who)
{
	struct shard *in = enter(table, key);
	void **word = JudyHSIns(&in->table, text_of(key), key->len, PJE0);
	if (word == PPJERR)
		errx(1, "no memory");
	bool ok = true;
	if (*word) {
		ok = baton_id_equal(*word, &who->owner);
	} else {
		struct baton_id *owner = pool_take(&in->pool);
		*owner = who->owner;
		*word = owner;
	}
	shard_leave(table, in);
	return ok;
}

static bool release(void *table, const struct key *key, const struct caller *who)
{
	struct shard *in = enter(table, key);
	void **word = JudyHSGet(in->table, text_of(key), key->len);
	bool ok = word && baton_id_equal(*word, &who->owner);
	if (ok) {
		pool_give(&in->pool, *word);
		JudyHSDel(&in->table, text_of(key), key->len, PJE0);
	}
	shard_leave(table, in);
	return ok;
}

const struct table_kind table_judy = {
	.name = "JudyHS",
	.about = "JudyHS, owners from a free list; " SHARDS_ABOUT,
	.role = ROLE_RIVAL,
	.make = make,
	.unmake = unmake,
	.acquire = acquire,
	.release = release,
};
