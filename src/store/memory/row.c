/* Rows of a store in memory, and the tables that they are found in. */
#include "store/memory/row.h"

#include "base/mem.h"

#define BUCKETS_MIN 64

static struct row **bucket_of(const struct table *t, uint64_t hash)
{
	return &t->buckets[hash & (t->bucket_count - 1)];
}

void memory_row_free(const struct baton_alloc *alloc, struct row *row)
{
	mem_free(alloc, row, 1, row->size);
}

void memory_table_done(struct table *t)
{
	for (struct row *row = t->oldest, *newer; row; row = newer) {
		newer = row->newer;
		memory_row_free(t->alloc, row);
	}
	mem_free(t->alloc, t->buckets, t->bucket_count, sizeof(struct row *));
	t->oldest = t->newest = NULL;
	t->buckets = NULL;
	t->bucket_count = 0;
}

/* False: there are no buckets at all. Full ones are only slower. */
static bool make_room(struct table *t)
{
	if (t->count < t->bucket_count)
		return true;
	size_t count = t->bucket_count > 0 ? t->bucket_count * 2 : BUCKETS_MIN;
	struct row **buckets = mem_new(t->alloc, count, sizeof(struct row *));
	if (!buckets)
		return t->bucket_count > 0;
	mem_free(t->alloc, t->buckets, t->bucket_count, sizeof(struct row *));
	t->buckets = buckets;
	t->bucket_count = count;
	for (struct row *row = t->oldest; row; row = row->newer) {
		struct row **bucket = bucket_of(t, row->hash);
		row->next = *bucket;
		*bucket = row;
	}
	return true;
}

static void append(struct table *t, struct row *row)
{
	row->older = t->newest;
	row->newer = NULL;
	*(t->newest ? &t->newest->newer : &t->oldest) = row;
	t->newest = row;
}

static void take_out(struct table *t, struct row *row)
{
	*(row->older ? &row->older->newer : &t->oldest) = row->newer;
	*(row->newer ? &row->newer->older : &t->newest) = row->older;
}

struct row *memory_row_add(struct table *t, size_t size, uint64_t hash)
{
	struct row *row = make_room(t) ? mem_new(t->alloc, 1, size) : NULL;
	if (!row)
		return NULL;
	struct row **bucket = bucket_of(t, hash);
	row->table = t;
	row->hash = hash;
	row->size = size;
	row->next = *bucket;
	*bucket = row;
	append(t, row);
	t->count++;
	return row;
}

static struct row *matching(struct row *row, uint64_t hash)
{
	while (row && (row->gone || row->hash != hash))
		row = row->next;
	return row;
}

struct row *memory_row_first(const struct table *t, uint64_t hash)
{
	return t->bucket_count > 0 ? matching(*bucket_of(t, hash), hash) : NULL;
}

struct row *memory_row_next(const struct row *row)
{
	return matching(row->next, row->hash);
}

struct row *memory_row_leave(struct row *row)
{
	struct table *t = row->table;
	struct row **at = bucket_of(t, row->hash);
	while (*at != row)
		at = &(*at)->next;
	*at = row->next;
	take_out(t, row);
	t->count--;
	row->table = NULL;
	return t->left ? t->left(row) : NULL;
}

void memory_row_drop(struct row *row)
{
	while (row) {
		const struct baton_alloc *alloc = row->table->alloc;
		struct row *also = memory_row_leave(row);
		memory_row_free(alloc, row);
		row = also;
	}
}

void memory_table_turn(struct table *t)
{
	struct row *row = t->oldest;
	if (!row)
		return;
	take_out(t, row);
	append(t, row);
}
