/* A desk: a small part of the store in memory. */
#include "store/postgres/desk.h"

#include <endian.h>
#include <string.h>

#include "base/fail.h"
#include "queue/line.h"
#include "queue/policy.h"
#include "store/memory/batch.h"
#include "store/memory/lane.h"
#include "store/memory/lease.h"
#include "store/memory/queue.h"
#include "store/memory/rate.h"
#include "store/memory/rival.h"
#include "store/memory/schedule.h"
#include "store/memory/take.h"
#include "store/parcel.h"
#include "store/postgres/bulk.h"

static struct baton_store_time desk_wall(const struct baton_clock *clock)
{
	return ((const struct desk *)((const char *)clock - offsetof(struct desk, clock)))->now;
}

/* Rows live as long as the desk. */
static void *rows_resize(const struct baton_alloc *self, void *old, size_t old_size,
                         size_t new_size)
{
	struct desk *d = (struct desk *)((const char *)self - offsetof(struct desk, rows));
	if (new_size == 0)
		return NULL;
	void *block = arena_take_raw(&d->arena, 1, new_size);
	if (block && old)
		memcpy(block, old, old_size < new_size ? old_size : new_size);
	return block;
}

bool desk_room(struct desk *d, void **list, size_t count, size_t *cap, size_t size)
{
	if (count < *cap)
		return true;
	size_t more = *cap > 0 ? *cap * 2 : 16;
	void *wider = arena_take(&d->arena, more, size);
	if (!wider) {
		d->memory = false;
		return false;
	}
	if (count > 0)
		memcpy(wider, *list, count * size);
	*list = wider;
	*cap = more;
	return true;
}

static void num_add(struct desk *d, struct nums *n, uint64_t number)
{
	if (desk_room(d, (void **)&n->list, n->count, &n->cap, sizeof *n->list))
		n->list[n->count++] = number;
}

static struct baton_str keep(struct desk *d, struct baton_str s)
{
	struct baton_str copy = {"", 0};
	if (!arena_copy(&d->arena, s, &copy))
		d->memory = false;
	return copy;
}

static void str_add(struct desk *d, struct strs *s, struct baton_str str)
{
	if (desk_room(d, (void **)&s->list, s->count, &s->cap, sizeof *s->list))
		s->list[s->count++] = keep(d, str);
}

static void touch_line(struct desk *d, struct baton_str queue, struct baton_str line, bool left)
{
	struct touched *last = d->lane_count > 0 ? &d->lanes[d->lane_count - 1] : NULL;
	if (line.len == 0)
		return;
	if (last && baton_str_equal(last->lane, line) && baton_str_equal(last->queue, queue)) {
		last->left = last->left || left;
		return;
	}
	if (desk_room(d, (void **)&d->lanes, d->lane_count, &d->lane_cap, sizeof *d->lanes))
		d->lanes[d->lane_count++] = (struct touched){keep(d, queue), keep(d, line), left};
}

/* A lane. In the line of what stands in a row with others is nobody else. */
static void touch(struct desk *d, const struct lane *lane, bool left)
{
	if (lane->first && lane->first == lane->last && (lane->first->row.kept & IN_BULK))
		return;
	touch_line(d, lane->queue->name, lane->name, left);
}

/* Its lane, and the lines of the keys that it has beside that. */
static void touch_batch(struct desk *d, const struct batch *b)
{
	touch(d, b->lane, b->row.gone);
	for (size_t i = 0; i < b->key_count; i++)
		touch_line(d, b->lane->queue->name, b->keys[i].key->name, b->row.gone);
}

static void claim_changed(struct desk *d, struct claim *c)
{
	bool was = (c->row.kept & CLAIM_OFFERED) != 0;
	touch(d, c->lane, c->row.gone);
	for (size_t i = 0; i < c->key_count; i++)
		touch_line(d, c->lane->queue->name, c->keys[i]->name, c->row.gone);
	if (c->row.gone && (c->row.kept & CLAIM_CHUNK)) {
		d->chunks[CHUNK_NUMBER(c->row.kept)].gone |= UINT64_C(1)
		                                             << CHUNK_PLACE(c->row.kept);
	} else if (c->row.gone && c->row.kept) {
		num_add(d, &d->gone_heads, c->name.head);
		num_add(d, &d->gone_fences, c->name.fence);
	}
	if (!c->row.gone && c->lane->name.len == 0 && c->is.offered != was && c->lane->first)
		c->lane->first->row.noted = true;
}

/* What is deleted is remembered here, since its row leaves; all else is looked at in the end. */
static void gone(struct desk *d, struct row *row)
{
	const struct memory *m = d->m;
	if (row->kept == 0 || (row->table == &m->batches && (row->kept & IN_BULK)))
		return;
	if (row->table == &m->batches)
		num_add(d, &d->gone_batches, row->kept);
	else if (row->table == &m->schedules)
		str_add(d, &d->gone_schedules, ((struct schedule *)row)->put.name);
	else if (row->table == &m->runners)
		num_add(d, &d->gone_runners, ((struct runner *)row)->put.number);
	row->kept = 0;
}

static void changed(void *arg, struct row *row)
{
	struct desk *d = arg;
	if (row->table == &d->m->batches)
		touch_batch(d, (struct batch *)row);
	if (row->table == &d->m->rates && line_is_keyed(((struct rate *)row)->name))
		touch_line(d, ((struct rate *)row)->queue->name, ((struct rate *)row)->name,
		           row->gone);
	if (row->table == &d->m->claims) {
		claim_changed(d, (struct claim *)row);
		row->kept = row->gone ? 0 : row->kept;
	}
	if (row->gone)
		gone(d, row);
	row->noted = true;
}

static void on_news(void *arg, const struct baton_store_news *news, size_t count)
{
	struct desk *d = arg;
	for (size_t i = 0; i < count; i++) {
		if (desk_room(d, (void **)&d->news, d->news_count, &d->news_cap, sizeof *d->news))
			d->news[d->news_count++] = news[i];
	}
}

enum baton_err desk_open(struct desk *d, const struct baton_store *of, struct baton_store_time now,
                         struct baton_store_time made, struct arena *home)
{
	*d = (struct desk){.now = now, .memory = true, .home = home, .arena = *home};
	*home = (struct arena){.chunks = NULL};
	d->clock = *of->clock;
	d->clock.wall = desk_wall;
	d->arena.alloc = of->alloc;
	struct baton_store *base = arena_take(&d->arena, 1, sizeof *base);
	if (!base)
		return fail_memory(sizeof *base, "a transaction");
	base->alloc = of->alloc;
	base->clock = &d->clock;
	base->owner = of->owner;
	base->name = of->name;
	base->patience = of->patience;
	base->pid = of->pid;
	base->reach = of->reach;
	base->hook = (struct baton_store_hook){on_news, d};
	enum baton_err e = memory_open(base, &d->store);
	if (e != BATON_OK)
		return e;
	d->m = (struct memory *)d->store;
	d->rows.resize = rows_resize;
	memory_rows_from(d->m, &d->rows);
	d->m->made = made;
	d->m->keeper = (struct keeper){changed, d};
	return BATON_OK;
}

void desk_close(struct desk *d)
{
	if (d->store)
		d->store->ops->close(d->store);
	d->store = NULL;
	arena_reset(&d->arena);
	if (d->home)
		*d->home = d->arena;
	d->home = NULL;
	d->arena.chunks = NULL;
}

static void ignore(void *arg, struct row *row)
{
	(void)arg;
	(void)row;
}

/* In a transaction whose changes are ignored. */
void desk_load_begin(struct desk *d, struct tx *tx)
{
	d->m->keeper.changed = ignore;
	memory_tx_begin(tx, d->store);
}

enum baton_err desk_load_done(struct desk *d, struct tx *tx, bool memory)
{
	enum baton_err e = memory_tx_end(tx, memory ? BATON_OK : BATON_NO_MEMORY);
	d->m->keeper.changed = changed;
	return e == BATON_OK && !d->memory ? fail_memory(1, "a transaction") : e;
}

/* After anything but a lack of memory the rows stay: the desk is not used any more. */
enum baton_err desk_load_end(struct desk *d, struct tx *tx, enum baton_err e)
{
	if (e == BATON_STORAGE) {
		desk_load_done(d, tx, true);
		return e;
	}
	return desk_load_done(d, tx, e == BATON_OK);
}
