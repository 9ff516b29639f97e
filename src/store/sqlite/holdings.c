/* The shards that a runner has. */
#include "store/sqlite/holdings.h"

#include "base/fail.h"
#include "base/mem.h"

void holdings_forget(struct holdings *h)
{
	h->runner = 0;
	h->count = 0;
}

void holdings_done(struct holdings *h, const struct baton_alloc *alloc)
{
	mem_free(alloc, h->items, h->cap, sizeof *h->items);
	*h = (struct holdings){.runner = 0};
}

static bool add(struct holdings *h, const struct baton_alloc *alloc, const struct holding *item)
{
	if (h->count == h->cap) {
		size_t cap = h->cap ? h->cap * 2 : 64;
		void *more = mem_resize(alloc, h->items, h->cap, cap, sizeof *h->items);
		if (!more)
			return false;
		h->items = more;
		h->cap = cap;
	}
	h->items[h->count++] = *item;
	return true;
}

static enum baton_err read_all(struct holdings *h, const struct baton_alloc *alloc, struct db *db,
                               uint64_t runner)
{
	bool memory = true;
	struct query q = query_begin(db, SQL_SHARD_HELD);
	query_int(&q, (int64_t)runner);
	while (memory && query_row(&q))
		memory = add(h, alloc,
		             &(struct holding){.queue = column_int(&q, 0),
		                               .number = (uint32_t)column_int(&q, 1),
		                               .fence = (uint64_t)column_int(&q, 2)});
	enum baton_err e = query_end(&q);
	if (e == BATON_OK && !memory)
		e = fail(BATON_NO_MEMORY, "no memory for the shards of a runner");
	return e;
}

enum baton_err holdings_load(struct holdings *h, const struct baton_alloc *alloc, struct db *db,
                             uint64_t runner, int64_t changes)
{
	if (h->runner == runner && h->changes == changes) {
		for (size_t i = 0; i < h->count; i++)
			h->items[i].wanted = h->items[i].ready = h->items[i].counts = false;
		return BATON_OK;
	}
	holdings_forget(h);
	enum baton_err e = read_all(h, alloc, db, runner);
	if (e == BATON_OK) {
		h->runner = runner;
		h->changes = changes;
	}
	return e;
}

struct holding *holdings_find(const struct holdings *h, int64_t queue, uint32_t number)
{
	size_t low = 0, high = h->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		struct holding *item = &h->items[middle];
		if (item->queue == queue && item->number == number)
			return item;
		if (item->queue < queue || (item->queue == queue && item->number < number))
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}
