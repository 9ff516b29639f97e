/* rculfhash of liburcu: a lock-free hash table whose removed nodes may be reused after a grace
 * period only. */
#include <err.h>
#include <stdlib.h>
#include <urcu/rculfhash.h>
#include <urcu/urcu-memb.h>

#include "mix.h"
#include "pool.h"
#include "table.h"

/* One grace period serves so many removed nodes. */
#define RETIRED_MAX 1024

struct item {
	struct cds_lfht_node node;
	struct entry entry;
};

struct hand {
	struct pool pool;
	struct item *retired[RETIRED_MAX];
	unsigned retired_count;
} __attribute__((aligned(128)));

struct lfht {
	struct cds_lfht *ht;
	unsigned threads;
	struct hand hands[]; /* each for the thread of that number alone */
};

static unsigned long buckets_for(size_t keys)
{
	unsigned long n = 16;
	while (n < keys)
		n *= 2;
	return n;
}

static void *make(size_t keys, unsigned threads)
{
	struct lfht *t =
		aligned_alloc(_Alignof(struct lfht), sizeof *t + threads * sizeof(struct hand));
	if (!t)
		errx(1, "no memory");
	t->threads = threads;
	for (unsigned i = 0; i < threads; i++)
		t->hands[i] = (struct hand){.pool = {.size = sizeof(struct item)}};
	unsigned long buckets = buckets_for(keys);
	t->ht = cds_lfht_new_flavor(buckets, 1, 0, 0, &urcu_memb_flavor, NULL);
	if (!t->ht)
		errx(1, "no memory");
	return t;
}

static void enter(void *table)
{
	(void)table;
	urcu_memb_register_thread();
}

static void leave(void *table)
{
	(void)table;
	urcu_memb_unregister_thread();
}

/* A table must be empty to be destroyed. */
static void empty(struct lfht *t)
{
	struct cds_lfht_iter iter;
	struct cds_lfht_node *node;
	enter(t);
	urcu_memb_read_lock();
	for (cds_lfht_first(t->ht, &iter); (node = cds_lfht_iter_get_node(&iter));
	     cds_lfht_next(t->ht, &iter))
		cds_lfht_del(t->ht, node);
	urcu_memb_read_unlock();
	leave(t);
}

static void unmake(void *table)
{
	struct lfht *t = table;
	empty(t);
	urcu_memb_synchronize_rcu();
	if (cds_lfht_destroy(t->ht, NULL) != 0)
		errx(1, "lfht: the table cannot be destroyed");
	for (unsigned i = 0; i < t->threads; i++)
		pool_done(&t->hands[i].pool);
	free(t);
}

static struct item *item_of(struct cds_lfht_node *node)
{
	return caa_container_of(node, struct item, node);
}

static int match(struct cds_lfht_node *node, const void *key)
{
	return key_equal(&item_of(node)->entry.key, key);
}

static bool acquire(void *table, const struct key *key, const struct caller *who)
{
	struct lfht *t = table;
	struct pool *pool = &t->hands[who->thread].pool;
	struct item *item = pool_take(pool);
	entry_set(&item->entry, key, who);
	urcu_memb_read_lock();
	struct cds_lfht_node *node =
		cds_lfht_add_unique(t->ht, mix_hash(key), match, key, &item->node);
	bool added = node == &item->node;
	bool ok = added || entry_is_of(&item_of(node)->entry, who);
	urcu_memb_read_unlock();
	if (!added)
		pool_give(pool, item);
	return ok;
}

static void retire(struct hand *h, struct item *item)
{
	h->retired[h->retired_count++] = item;
	if (h->retired_count < RETIRED_MAX)
		return;
	urcu_memb_synchronize_rcu();
	while (h->retired_count > 0)
		pool_give(&h->pool, h->retired[--h->retired_count]);
}

static bool release(void *table, const struct key *key, const struct caller *who)
{
	struct lfht *t = table;
	struct cds_lfht_iter iter;
	urcu_memb_read_lock();
	cds_lfht_lookup(t->ht, mix_hash(key), match, key, &iter);
	struct cds_lfht_node *node = cds_lfht_iter_get_node(&iter);
	bool ok = node && entry_is_of(&item_of(node)->entry, who) && cds_lfht_del(t->ht, node) == 0;
	urcu_memb_read_unlock();
	if (ok)
		retire(&t->hands[who->thread], item_of(node));
	return ok;
}

const struct table_kind table_lfht = {
	.name = "lfht",
	.about = "liburcu " BENCH_LFHT ", rculfhash with urcu-memb, a fast hash without a secret, "
		 "sized beforehand, nodes from a free list per thread, to which they return "
		 "after a grace period, one per 1,024 nodes",
	.role = ROLE_RIVAL,
	.make = make,
	.unmake = unmake,
	.enter = enter,
	.leave = leave,
	.acquire = acquire,
	.release = release,
};
