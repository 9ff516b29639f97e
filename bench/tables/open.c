/* The floor: open addressing with the key and its owner inside the slot, one cache line each,
 * half of them empty. It neither grows nor keeps anything else, and its keys must be short. */
#include <assert.h>
#include <err.h>
#include <stdlib.h>

#include "mix.h"
#include "shards.h"
#include "table.h"

struct slot {
	struct baton_id owner;
	struct key key; /* len 0: empty */
};
static_assert(sizeof(struct slot) == 64, "one cache line");

struct open {
	size_t mask;
	struct slot slots[] __attribute__((aligned(64)));
};

static struct open *open_new(size_t keys)
{
	size_t count = 8;
	while (count < 2 * keys)
		count *= 2;
	size_t size = sizeof(struct open) + count * sizeof(struct slot);
	struct open *o = aligned_alloc(_Alignof(struct open), size);
	if (!o)
		errx(1, "no memory");
	memset(o, 0, size);
	o->mask = count - 1;
	return o;
}

/* Shards are not equally full, so each gets a quarter more than its share. */
static void *make(size_t keys, unsigned threads)
{
	struct shards *s = shards_new(threads, sizeof(void *));
	size_t share = keys + 8;
	if (s->count > 1)
		share = share / s->count * 5 / 4 + 64;
	for (unsigned i = 0; i < s->count; i++)
		s->at[i].table = open_new(share);
	return s;
}

static void unmake(void *table)
{
	struct shards *s = table;
	for (unsigned i = 0; i < s->count; i++)
		free(s->at[i].table);
	shards_free(s);
}

/* Where the key is, or the empty slot where it would be. */
static struct slot *find(struct open *o, const struct key *key, uint64_t hash)
{
	size_t at = hash & o->mask;
	while (o->slots[at].key.len != 0 && !key_equal(&o->slots[at].key, key))
		at = (at + 1) & o->mask;
	return &o->slots[at];
}

static bool acquire(void *table, const struct key *key, const struct caller *who)
{
	uint64_t hash = mix_hash(key);
	struct shard *in = shard_enter(table, hash);
	struct slot *slot = find(in->table, key, hash);
	bool ok = slot->key.len == 0 || baton_id_equal(&slot->owner, &who->owner);
	if (slot->key.len == 0) {
		slot->owner = who->owner;
		slot->key = *key;
	}
	shard_leave(table, in);
	return ok;
}

/* Moves back whoever was pushed beyond the hole, so that no search ends too early. */
static void close_hole(struct open *o, size_t hole)
{
	for (size_t at = (hole + 1) & o->mask; o->slots[at].key.len != 0; at = (at + 1) & o->mask) {
		size_t home = mix_hash(&o->slots[at].key) & o->mask;
		if (((at - home) & o->mask) < ((at - hole) & o->mask))
			continue;
		o->slots[hole] = o->slots[at];
		hole = at;
	}
	o->slots[hole].key.len = 0;
}

static bool release(void *table, const struct key *key, const struct caller *who)
{
	uint64_t hash = mix_hash(key);
	struct shard *in = shard_enter(table, hash);
	struct open *o = in->table;
	struct slot *slot = find(o, key, hash);
	bool ok = slot->key.len != 0 && baton_id_equal(&slot->owner, &who->owner);
	if (ok)
		close_hole(o, (size_t)(slot - o->slots));
	shard_leave(table, in);
	return ok;
}

const struct table_kind table_open = {
	.name = "open addressing",
	.about = "written for this bench: linear probing, key and owner inside the slot, a fast "
		 "hash without a secret, sized beforehand to at most half full; " SHARDS_ABOUT,
	.role = ROLE_FLOOR,
	.make = make,
	.unmake = unmake,
	.acquire = acquire,
	.release = release,
};
