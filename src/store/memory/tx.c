/* A transaction on a store in memory. */
#include "store/memory/tx.h"

#include <string.h>

#include "base/fail.h"
#include "base/ids.h"
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

/* The lane of a batch, or one that has changed itself; NULL: it is something else. */
static struct lane *lane_of(const struct memory *m, struct row *row)
{
	if (row->table == &m->batches)
		return ((struct batch *)row)->lane;
	return row->table == &m->lanes ? (struct lane *)row : NULL;
}

/* Every such lane in the journal, once. */
static size_t lanes_changed(struct tx *tx, struct lane **lanes)
{
	size_t count = 0;
	tx->m->epoch++;
	for (struct entry *entry = tx->last; entry; entry = entry->before) {
		struct lane *lane = lane_of(tx->m, entry->row);
		if (!lane || lane->row.epoch == tx->m->epoch)
			continue;
		lane->row.epoch = tx->m->epoch;
		if (lanes)
			lanes[count] = lane;
		count++;
	}
	return count;
}

static enum baton_err gather_news(struct tx *tx)
{
	size_t count = lanes_changed(tx, NULL);
	struct lane **lanes = memory_tx_take(tx, count, sizeof(struct lane *));
	tx->news = memory_tx_take(tx, count, sizeof *tx->news);
	if (!lanes || !tx->news)
		return BATON_NO_MEMORY;
	lanes_changed(tx, lanes);
	for (size_t i = 0; i < count; i++) {
		struct line line = memory_line_look(lanes[i], tx->now);
		if (line.free)
			tx->news[tx->news_count++] = memory_news_of_lane(tx->m, lanes[i]);
	}
	return BATON_OK;
}

enum baton_err memory_tx_end_ring(struct tx *tx, enum baton_err e)
{
	if (e == BATON_OK && !tx->m->keeper.changed && !tx->spares)
		e = memory_rate_see_some(tx, MEMORY_SOME);
	return memory_tx_end(tx, e == BATON_OK ? gather_news(tx) : e);
}
