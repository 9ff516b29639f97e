/* A transaction on a store in memory. */
#include "store/memory/tx.h"

#include <string.h>

#include "base/fail.h"
#include "base/ids.h"
#include "queue/policy.h"
#include "store/memory/class.h"
#include "store/memory/forget.h"
#include "store/memory/lane.h"
#include "store/memory/news.h"
#include "store/memory/rate.h"

/* What a row was before the change after it, the newest first. */
struct entry {
	struct entry *before;
	struct row *row;
	bool added; /* it was not there */
	bool gone;
	char bytes[];
};

void memory_tx_begin(struct tx *tx, struct baton_store *store)
{
	struct memory *m = (struct memory *)store;
	tx->m = m;
	tx->now = baton_store_now(store);
	tx->last = NULL;
	tx->news = NULL;
	tx->news_count = tx->random_count = tx->random_left = 0;
	tx->spares = false;
	arena_init(&tx->arena, store->alloc);
	pthread_mutex_lock(&m->mu);
	m->calls++;
	tx->start = memory_tx_mark(tx);
}

void *memory_tx_take(struct tx *tx, size_t count, size_t size)
{
	void *place = arena_take(&tx->arena, count, size);
	if (!place)
		fail_memory(count * size, "a transaction");
	return place;
}

static struct entry *note(struct tx *tx, size_t len)
{
	struct entry *entry = memory_tx_take(tx, 1, sizeof *entry + len);
	if (entry) {
		entry->before = tx->last;
		tx->last = entry;
	}
	return entry;
}

enum baton_err memory_tx_save(struct tx *tx, struct row *row)
{
	if (row->epoch == tx->m->epoch)
		return BATON_OK;
	struct entry *entry = note(tx, row->table->len);
	if (!entry)
		return BATON_NO_MEMORY;
	entry->row = row;
	entry->gone = row->gone;
	memcpy(entry->bytes, (char *)row + row->table->from, row->table->len);
	row->epoch = tx->m->epoch;
	return BATON_OK;
}

enum baton_err memory_tx_delete(struct tx *tx, struct row *row)
{
	enum baton_err e = memory_tx_save(tx, row);
	if (e == BATON_OK)
		row->gone = true;
	return e;
}

struct row *memory_tx_add(struct tx *tx, struct table *t, size_t size, uint64_t hash)
{
	struct entry *entry = note(tx, 0);
	if (!entry)
		return NULL;
	entry->added = true;
	entry->row = memory_row_add(t, size, hash);
	if (entry->row) {
		entry->row->epoch = tx->m->epoch;
		return entry->row;
	}
	tx->last = entry->before;
	fail_memory(size, "a row of the store");
	return NULL;
}

enum baton_err memory_tx_random(struct tx *tx, struct baton_id *ret)
{
	if (tx->random_left == 0) {
		size_t count = tx->random_count > 0 ? 2 * tx->random_count : 1;
		count = count < TX_RANDOM_MAX ? count : TX_RANDOM_MAX;
		enum baton_err e = ids_random(tx->random, count);
		if (e != BATON_OK)
			return e;
		tx->random_count = tx->random_left = count;
	}
	*ret = tx->random[--tx->random_left];
	return BATON_OK;
}

struct mark memory_tx_mark(struct tx *tx)
{
	tx->m->epoch++;
	return (struct mark){tx->last, tx->m->seq};
}

static void restore(const struct entry *entry)
{
	struct row *row = entry->row;
	struct table *t = row->table;
	if (entry->added) {
		memory_row_leave(row);
		memory_row_free(t->alloc, row);
		return;
	}
	memcpy((char *)row + t->from, entry->bytes, t->len);
	row->gone = entry->gone;
	if (t->restored)
		t->restored(row);
}

void memory_tx_undo(struct tx *tx, struct mark mark)
{
	for (; tx->last != mark.last; tx->last = tx->last->before)
		restore(tx->last);
	tx->m->seq = mark.seq;
	tx->m->epoch++;
}

/* Rows are freed after all have left, since the journal may name one more than once. */
static void commit(struct tx *tx)
{
	struct row *free_rows = NULL;
	const struct keeper *keeper = &tx->m->keeper;
	for (struct entry *entry = tx->last; entry && keeper->changed; entry = entry->before)
		keeper->changed(keeper->arg, entry->row);
	for (struct entry *entry = tx->last; entry; entry = entry->before) {
		struct row *row = entry->row->gone && entry->row->table ? entry->row : NULL;
		while (row) {
			struct row *also = memory_row_leave(row);
			row->next = free_rows;
			free_rows = row;
			row = also;
		}
	}
	while (free_rows) {
		struct row *row = free_rows;
		free_rows = row->next;
		memory_row_free(tx->m->rows, row);
	}
}

enum baton_err memory_tx_end(struct tx *tx, enum baton_err e)
{
	struct memory *m = tx->m;
	if (e == BATON_OK) {
		commit(tx);
		if (!m->keeper.changed && !tx->spares)
			memory_forget_some(m, tx->now);
	} else {
		memory_tx_undo(tx, tx->start);
	}
	pthread_mutex_unlock(&m->mu);
	if (e == BATON_OK)
		store_ring(&m->store, tx->news, tx->news_count);
	arena_done(&tx->arena);
	return e;
}

/* Lanes, each once. */
struct lanes {
	struct lane **list; /* NULL: they are only counted */
	size_t count;
};

static void lanes_add(const struct tx *tx, struct lanes *l, struct lane *lane)
{
	if (!lane || lane->row.epoch == tx->m->epoch)
		return;
	lane->row.epoch = tx->m->epoch;
	if (l->list)
		l->list[l->count] = lane;
	l->count++;
}

/* The lines of a key in the other queues of its class. */
static void lanes_of_class(const struct tx *tx, struct lanes *l, const struct lane *key)
{
	const struct queue *queue = NULL;
	if (line_is_keyed(key->name))
		queue = memory_class_next(key->queue, NULL);
	for (; queue; queue = memory_class_next(key->queue, queue))
		lanes_add(tx, l, memory_class_line(queue, key->name));
}

static void lanes_of_keys(const struct tx *tx, struct lanes *l, const struct batch *b)
{
	for (size_t i = 0; i < b->key_count; i++) {
		lanes_add(tx, l, b->keys[i].key);
		lanes_of_class(tx, l, b->keys[i].key);
	}
}

/* Every lane in the journal that has changed, or whose batches have. Where a lane has changed
 * another one may be the first to ask for a key of its batches. */
static void lanes_changed(struct tx *tx, struct lanes *l)
{
	tx->m->epoch++;
	for (struct entry *entry = tx->last; entry; entry = entry->before) {
		const struct row *row = entry->row;
		const struct batch *b = row->table == &tx->m->batches ? (struct batch *)row : NULL;
		struct lane *lane = row->table == &tx->m->lanes ? (struct lane *)row : NULL;
		lanes_add(tx, l, b ? b->lane : lane);
		if (b)
			lanes_of_class(tx, l, b->lane);
		if (!b || !b->lane->queue->is.guests)
			continue;
		lanes_of_keys(tx, l, b);
		for (b = b->lane->first; b; b = b->next)
			lanes_of_keys(tx, l, b);
	}
}

/* Where something can be claimed in the lane now, or with its key; NULL: nowhere. A desk does not
 * have all who may be next, so that somebody looks. */
static const struct lane *news_of(const struct tx *tx, const struct lane *lane)
{
	bool free = memory_line_look(lane, tx->now).free;
	const struct queue *q = lane->queue;
	if (free || (tx->m->keeper.changed && (q->is.guests || policy_has_class(&q->is.policy))))
		return lane;
	/* Others on its host may wait in other shards. */
	if (lane->freed_in == tx->m->calls && policy_has_sites(&lane->queue->is.policy) &&
	    line_is_keyed(lane->name))
		return lane;
	const struct batch *head = lane->guests ? memory_head(lane, tx->now) : NULL;
	return head ? head->lane : NULL;
}

static enum baton_err gather_news(struct tx *tx)
{
	struct lanes lanes = {.count = 0};
	lanes_changed(tx, &lanes);
	lanes.list = memory_tx_take(tx, lanes.count, sizeof(struct lane *));
	size_t each = 1;
	const struct row *row = tx->m->keeper.changed ? tx->m->queues.oldest : NULL;
	for (; row; row = row->newer)
		each = ((const struct queue *)row)->peers.len > 0 ? BATON_QUEUE_CLASS_MAX : each;
	tx->news = memory_tx_take(tx, lanes.count * each, sizeof *tx->news);
	if (!lanes.list || !tx->news)
		return BATON_NO_MEMORY;
	lanes.count = 0;
	lanes_changed(tx, &lanes);
	for (size_t i = 0; i < lanes.count; i++) {
		const struct lane *lane = news_of(tx, lanes.list[i]);
		if (!lane)
			continue;
		tx->news[tx->news_count++] = memory_news_of_lane(tx->m, lane);
		tx->news_count += memory_news_of_peers(tx->m, lane, tx->news + tx->news_count);
	}
	return BATON_OK;
}

enum baton_err memory_tx_end_ring(struct tx *tx, enum baton_err e)
{
	if (e == BATON_OK && !tx->m->keeper.changed && !tx->spares)
		e = memory_rate_see_some(tx, MEMORY_SOME);
	return memory_tx_end(tx, e == BATON_OK ? gather_news(tx) : e);
}
