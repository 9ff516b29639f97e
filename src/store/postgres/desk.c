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

#define CLAIM_KEPT 1
#define CLAIM_OFFERED 2

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

static enum baton_err load_end(struct desk *d, struct tx *tx, bool memory)
{
	enum baton_err e = memory_tx_end(tx, memory ? BATON_OK : BATON_NO_MEMORY);
	d->m->keeper.changed = changed;
	return e == BATON_OK && !d->memory ? fail_memory(1, "a transaction") : e;
}

/* After anything but a lack of memory the rows stay: the desk is not used any more. */
enum baton_err desk_load_end(struct desk *d, struct tx *tx, enum baton_err e)
{
	if (e == BATON_STORAGE) {
		load_end(d, tx, true);
		return e;
	}
	return load_end(d, tx, e == BATON_OK);
}

static struct baton_retry retry_read(const PGresult *r, int row, int at)
{
	return (struct baton_retry){
		.attempts = (uint32_t)cell_int(r, row, at),
		.backoff = (enum baton_backoff)cell_int(r, row, at + 1),
		.base = {cell_int(r, row, at + 2)},
		.cap = {cell_int(r, row, at + 3)},
	};
}

static void queue_read(const PGresult *r, int row, struct queue *q)
{
	q->is.policy = (struct baton_queue_policy){
		.mode = (enum baton_queue_mode)cell_int(r, row, 2),
		.shards = (uint32_t)cell_int(r, row, 3),
		.paused = cell_bool(r, row, 4),
		.payload_max = (uint32_t)cell_int(r, row, 5),
		.waiting_max = (uint64_t)cell_int(r, row, 6),
		.retry = retry_read(r, row, 7),
		.retry_lane = retry_read(r, row, 11),
		.on_retry = (enum baton_on_retry)cell_int(r, row, 15),
		.on_dead = (enum baton_on_dead)cell_int(r, row, 16),
		.dedupe = {cell_int(r, row, 17)},
		.keep = {cell_int(r, row, 18)},
		.key_limit = (uint32_t)cell_int(r, row, 30),
		.hold_on_retry = (enum baton_hold_on_retry)cell_int(r, row, 31),
		.on_conflict = (enum baton_on_conflict)cell_int(r, row, 32),
		.key_waiting_max = (uint32_t)cell_int(r, row, 33),
		.key_fair = (enum baton_key_fair)cell_int(r, row, 34),
		.key_rate = {(uint64_t)cell_int(r, row, 35), {cell_int(r, row, 36)}},
		.key_ttl = {cell_int(r, row, 37)},
		.key_scope = (enum baton_key_scope)cell_int(r, row, 42),
	};
	for (int state = BATON_BATCH_READY; state < BATON_BATCH_GONE; state++)
		q->is.in[state] = (uint64_t)cell_int(r, row, 18 + state);
	q->is.done = (uint64_t)cell_int(r, row, 25);
	q->is.failed = (uint64_t)cell_int(r, row, 26);
	q->is.reach.top = (uint64_t)cell_int(r, row, 28);
	q->is.reach.floor = (uint64_t)cell_int(r, row, 29);
	q->is.guests = cell_bool(r, row, 40);
	q->waiting = (uint64_t)cell_int(r, row, 41);
	policy_set_class(&q->is.policy, cell_str(r, row, 43));
}

static struct read_queue *queue_note(struct desk *d, struct queue *q, int64_t since_ms)
{
	if (!desk_room(d, (void **)&d->queues, d->queue_count, &d->queue_cap, sizeof *d->queues))
		return NULL;
	struct read_queue *read = &d->queues[d->queue_count++];
	read->row = q;
	memcpy(&read->policy, &q->is.policy, sizeof read->policy);
	memcpy(read->in, q->is.in, sizeof read->in);
	read->done = q->is.done;
	read->failed = q->is.failed;
	read->reach = q->is.reach;
	read->guests = q->is.guests;
	read->since_ms = read->tended_ms = since_ms;
	return read;
}

enum baton_err desk_queues(struct desk *d, const PGresult *r)
{
	struct tx tx;
	bool memory = true;
	desk_load_begin(d, &tx);
	for (int i = 0; i < PQntuples(r) && memory; i++) {
		struct baton_str name = cell_str(r, i, 1);
		if (cell_is_null(r, i, 0) || memory_queue_find(d->m, name))
			continue;
		struct queue *q = memory_queue_make(&tx, name);
		memory = q != NULL;
		if (!memory)
			break;
		q->row.kept = (uint64_t)cell_int(r, i, 0);
		queue_read(r, i, q);
		if (!cell_is_null(r, i, 44))
			memory = arena_copy(&d->arena, cell_str(r, i, 44), &q->peers);
		if (!memory)
			break;
		struct read_queue *read = queue_note(d, q, cell_int(r, i, 27));
		memory = read != NULL;
		if (!memory)
			break;
		read->counts = (uint64_t)cell_int(r, i, 38);
		read->version = (uint32_t)cell_int(r, i, 39);
	}
	return load_end(d, &tx, memory);
}

enum baton_err desk_recall(struct desk *d, struct baton_str name, uint32_t number,
                           const struct read_queue *was)
{
	struct tx tx;
	desk_load_begin(d, &tx);
	struct queue *q = memory_queue_make(&tx, name);
	struct read_queue *read = q ? queue_note(d, q, was->since_ms) : NULL;
	if (read) {
		memcpy(read, was, sizeof *read);
		read->row = q;
		q->row.kept = number;
		memcpy(&q->is.policy, &was->policy, sizeof q->is.policy);
		memcpy(q->is.in, was->in, sizeof q->is.in);
		q->is.done = was->done;
		q->is.failed = was->failed;
		q->is.reach = was->reach;
		q->is.guests = was->guests;
	}
	d->recalled = true;
	return load_end(d, &tx, read != NULL);
}

bool desk_foresee(const struct desk *d, const struct read_queue *read, struct read_queue *ret)
{
	const struct queue *q = read->row;
	if (!policy_equal(&read->policy, &q->is.policy) || read->guests != q->is.guests ||
	    read->counts == 0)
		return false;
	memcpy(ret, read, sizeof *ret);
	ret->row = NULL;
	memcpy(ret->in, q->is.in, sizeof ret->in);
	ret->done = q->is.done;
	ret->failed = q->is.failed;
	ret->reach = q->is.reach;
	ret->since_ms = ret->tended_ms = read->since_ms;
	if (!desk_counts_changed(read))
		return true;
	ret->since_ms = ret->tended_ms = read->tended_ms;
	ret->counts = read->counts + 1;
	return !d->recalled || read->version > 0;
}

enum baton_err desk_far(struct desk *d, const PGresult *r)
{
	for (int i = 0; i < PQntuples(r); i++) {
		if (!cell_bool(r, i, 6))
			continue;
		if (!desk_room(d, (void **)&d->fars, d->far_count, &d->far_cap, sizeof *d->fars))
			return BATON_NO_MEMORY;
		d->fars[d->far_count++] =
			(struct far){(int32_t)cell_int(r, i, 0), (int32_t)cell_int(r, i, 1),
		                     (int32_t)cell_int(r, i, 2)};
	}
	return BATON_OK;
}

enum baton_err desk_tended(struct desk *d, const PGresult *r)
{
	for (int i = 0; i < PQntuples(r); i++) {
		if (cell_bool(r, i, 2))
			desk_tended_at(d, cell_int(r, i, 0), cell_int(r, i, 1));
	}
	return BATON_OK;
}

void desk_tended_at(const struct desk *d, int64_t queue, int64_t at_ms)
{
	for (size_t i = 0; i < d->queue_count; i++) {
		struct read_queue *read = &d->queues[i];
		if (read->row->row.kept == (uint64_t)queue && read->since_ms < at_ms)
			read->tended_ms = at_ms;
	}
}

void desk_until(const struct desk *d, const struct queue *q, struct baton_store_time at)
{
	for (size_t i = 0; i < d->queue_count; i++) {
		struct read_queue *read = &d->queues[i];
		if (read->row == q && at.ms < read->tended_ms)
			read->tended_ms = at.ms;
	}
}

struct queue *desk_queue_of(const struct desk *d, int64_t id)
{
	for (size_t i = 0; i < d->queue_count; i++) {
		if (d->queues[i].row->row.kept == (uint64_t)id)
			return d->queues[i].row;
	}
	return NULL;
}

struct batch *desk_batch(const struct desk *d, uint64_t id)
{
	struct row *row = memory_row_first(&d->m->batches, memory_hash(d->m, &id, sizeof id));
	for (; row; row = memory_row_next(row)) {
		if (((struct batch *)row)->id == id)
			return (struct batch *)row;
	}
	return NULL;
}

static struct batch *batch_by_seq(const struct desk *d, uint64_t seq)
{
	struct batch *b = desk_batch(d, seq);
	if (b && b->is.seq == seq)
		return b;
	for (struct row *row = d->m->batches.oldest; row; row = row->newer) {
		b = (struct batch *)row;
		if (b->is.seq == seq)
			return b;
	}
	return NULL;
}

#define BATCH_GUEST 22
#define BATCH_HEAD 24
#define BATCH_PAYLOAD 25

/* What was put, as far as it was read. */
static enum baton_err put_read(struct desk *d, const PGresult *r, int row, struct baton_batch *put)
{
	int64_t flags = cell_int(r, row, 6);
	struct baton_str retry = cell_str(r, row, 10);
	*put = (struct baton_batch){
		.lane = cell_str(r, row, 3),
		.key = line_key(cell_str(r, row, BATCH_GUEST)),
		.cls = flags & FLAG_COMMAND ? BATON_COMMAND : BATON_WORK,
		.delivery = flags & FLAG_AFTER_COMMIT ? BATON_AFTER_COMMIT : BATON_EARLIEST,
		.slot = flags & FLAG_JOIN ? BATON_JOIN : BATON_EXCLUSIVE,
		.priority = (uint32_t)(BATON_PRIORITY_MAX - cell_int(r, row, 5)),
		.group = cell_str(r, row, 9),
	};
	if (retry.len == 32) {
		uint64_t n[4];
		memcpy(n, retry.ptr, sizeof n);
		put->retry = (struct baton_retry){(uint32_t)be64toh(n[0]),
		                                  (enum baton_backoff)be64toh(n[1]),
		                                  {(int64_t)be64toh(n[2])},
		                                  {(int64_t)be64toh(n[3])}};
	}
	if (cell_is_null(r, row, BATCH_PAYLOAD))
		return BATON_OK;
	return payloads_unpack(&d->arena, cell_str(r, row, BATCH_PAYLOAD), (flags & FLAG_MANY) != 0,
	                       &put->payloads, &put->count);
}

static bool text_read(struct tx *tx, const PGresult *r, int row, int column, struct text **slot)
{
	if (cell_is_null(r, row, column))
		return true;
	struct text *text = memory_text_new(tx, cell_str(r, row, column));
	return text && memory_text_set(tx, slot, text) == BATON_OK;
}

static bool batch_read(struct tx *tx, const PGresult *r, int row, struct batch *b)
{
	b->row.kept = b->is.seq;
	b->put_at.ms = cell_int(r, row, 7);
	b->is.state = (enum baton_batch_state)cell_int(r, row, 4);
	b->is.due.ms = cell_int(r, row, 8);
	b->is.attempts = (uint32_t)cell_int(r, row, 11);
	b->is.fence = (uint64_t)cell_int(r, row, 12);
	b->is.cancel = cell_bool(r, row, 13);
	b->is.holds = cell_bool(r, row, 14);
	b->is.blocks = cell_bool(r, row, 15);
	b->is.ended_at.ms = cell_int(r, row, 18);
	b->is.until.ms = cell_int(r, row, 19);
	b->is.by = (uint64_t)cell_int(r, row, 20);
	b->is.keeps = cell_bool(r, row, 23);
	if (!cell_is_null(r, row, 21))
		b->lane->row.kept = b->lane->is.turn = (uint64_t)cell_int(r, row, 21) / 2;
	return text_read(tx, r, row, 16, &b->is.error) && text_read(tx, r, row, 17, &b->is.result);
}

static enum baton_err batch_load(struct desk *d, struct tx *tx, const PGresult *r, int row,
                                 struct batch **ret)
{
	uint64_t seq = (uint64_t)cell_int(r, row, 0);
	uint64_t id = cell_is_null(r, row, 1) ? seq : (uint64_t)cell_int(r, row, 1);
	struct queue *q = desk_queue_of(d, cell_int(r, row, 2));
	struct baton_batch put;
	*ret = desk_batch(d, id);
	if (*ret)
		return BATON_OK;
	if (!q)
		return fail(BATON_STORAGE, "the store is damaged: batch %llu has no queue",
		            (unsigned long long)seq);
	enum baton_err e = put_read(d, r, row, &put);
	if (e != BATON_OK)
		return e;
	*ret = memory_batch_make(tx, q, &put, id, seq);
	return *ret && batch_read(tx, r, row, *ret) ? BATON_OK : BATON_NO_MEMORY;
}

/* The starts of a line, which are in that column. */
static enum baton_err starts_load(struct desk *d, struct tx *tx, const PGresult *r, int row,
                                  int column, struct rate_starts *s)
{
	if (!s->queue || cell_is_null(r, row, column) || memory_rate_find(d->m, s->queue, s->name))
		return BATON_OK;
	s->count = cell_count(r, row, column);
	s->list = memory_tx_take(tx, s->count, sizeof *s->list);
	if (!s->list)
		return BATON_NO_MEMORY;
	for (size_t i = 0; i < s->count; i++)
		s->list[i].ms = cell_element(r, row, column, i);
	return memory_rate_set(tx, s);
}

#define HEAD_STARTS 26
#define BATCH_CLAIM 27 /* where the claim of a batch begins, if it comes with it */
#define AROUND_DEAD 39

/* Those of several keys, one after the other, each behind their number. */
static enum baton_err starts_of_several(const struct desk *d, struct tx *tx, const PGresult *r,
                                        int row, const struct batch *b)
{
	size_t at = 0, all = cell_count(r, row, HEAD_STARTS);
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < b->key_count && at < all && e == BATON_OK; i++) {
		struct rate_starts s = {.queue = b->lane->queue, .name = b->keys[i].key->name};
		s.count = (size_t)cell_element(r, row, HEAD_STARTS, at++);
		if (s.count > all - at)
			return fail(BATON_STORAGE,
			            "the store is damaged: the starts of keys are cut off");
		s.list = memory_tx_take(tx, s.count, sizeof *s.list);
		if (!s.list)
			return BATON_NO_MEMORY;
		for (size_t k = 0; k < s.count; k++)
			s.list[k].ms = cell_element(r, row, HEAD_STARTS, at++);
		if (s.count > 0 && !memory_rate_find(d->m, s.queue, s.name))
			e = memory_rate_set(tx, &s);
	}
	return e;
}

/* What can be claimed comes with the starts of its key. */
static enum baton_err head_load(struct desk *d, struct tx *tx, const PGresult *r, int row)
{
	bool guest = !cell_is_null(r, row, BATCH_GUEST);
	struct rate_starts s = {.queue = desk_queue_of(d, cell_int(r, row, 2)),
	                        .name = cell_str(r, row, guest ? BATCH_GUEST : 3)};
	char text[RATE_NAME_MAX];
	struct batch *b = NULL;
	enum baton_err e = batch_load(d, tx, r, row, &b);
	if (e != BATON_OK)
		return e;
	b->was_head = cell_bool(r, row, BATCH_HEAD);
	if (PQnfields(r) <= HEAD_STARTS)
		return e;
	if (b->key_count > 1)
		return starts_of_several(d, tx, r, row, b);
	if (d->asker)
		s.name = rate_name(s.name, &s.queue->is.policy, d->asker, text);
	return starts_load(d, tx, r, row, HEAD_STARTS, &s);
}

enum baton_err desk_batches(struct desk *d, const PGresult *r)
{
	struct tx tx;
	enum baton_err e = BATON_OK;
	desk_load_begin(d, &tx);
	for (int i = 0; i < PQntuples(r) && e == BATON_OK; i++)
		e = head_load(d, &tx, r, i);
	return desk_load_end(d, &tx, e);
}

bool desk_has_claim(const struct desk *d, const struct claim_name *name)
{
	struct row *row = memory_row_first(&d->m->claims, memory_hash(d->m, name, sizeof *name));
	for (; row; row = memory_row_next(row)) {
		const struct claim *c = (struct claim *)row;
		if (c->name.head == name->head && c->name.fence == name->fence)
			return true;
	}
	return false;
}

/* A claim in a row of an answer, from that column on. */
struct claim_cells {
	const PGresult *r;
	int row, at;
};

static void claim_read(const struct claim_cells *from, struct claim *c)
{
	const PGresult *r = from->r;
	const int row = from->row, at = from->at;
	cell_id(r, row, at + 2, &c->token);
	c->granter = (uint64_t)cell_int(r, row, at + 6);
	c->claimed_at.ms = cell_int(r, row, at + 7);
	c->is.expires.ms = cell_int(r, row, at + 8);
	c->is.offered = cell_bool(r, row, at + 9);
	c->row.kept = CLAIM_KEPT | (c->is.offered ? CLAIM_OFFERED : 0);
}

/* The first of its batches that is here, or NULL. */
static struct batch *claim_first(struct desk *d, const struct claim_cells *from)
{
	struct batch *b = NULL;
	for (size_t i = 0; i < cell_count(from->r, from->row, from->at + 10) && !b; i++)
		b = batch_by_seq(d, (uint64_t)cell_element(from->r, from->row, from->at + 10, i));
	return b;
}

static void claim_attach(struct desk *d, const struct claim_cells *from, struct claim *c)
{
	size_t count = cell_count(from->r, from->row, from->at + 10);
	for (size_t i = 0; i < count; i++) {
		struct batch *b = batch_by_seq(d, (uint64_t)cell_element(from->r, from->row,
		                                                         from->at + 10, i));
		if (!b)
			continue;
		b->is.claim = c;
		c->is.count++;
	}
}

static enum baton_err claim_load(struct desk *d, struct tx *tx, const struct claim_cells *from)
{
	struct claim_name name = {(uint64_t)cell_int(from->r, from->row, from->at),
	                          (uint64_t)cell_int(from->r, from->row, from->at + 1)};
	struct baton_owner owner;
	if (desk_has_claim(d, &name))
		return BATON_OK;
	if (baton_owner_parse(cell_str(from->r, from->row, from->at + 3), &owner) != BATON_OK)
		return fail(BATON_STORAGE, "the store is damaged: a claim has no owner");
	const struct batch *first = claim_first(d, from);
	struct claim *c = first ? memory_claim_add(tx, &name, first) : NULL;
	if (!c)
		return first ? BATON_NO_MEMORY : BATON_OK; /* none of its batches is here */
	c->owner = owner;
	claim_read(from, c);
	claim_attach(d, from, c);
	return BATON_OK;
}

static enum baton_err claims_load(struct desk *d, const PGresult *r, int at)
{
	struct tx tx;
	enum baton_err e = BATON_OK;
	desk_load_begin(d, &tx);
	for (int i = 0; i < PQntuples(r) && e == BATON_OK; i++) {
		if (!cell_is_null(r, i, at))
			e = claim_load(d, &tx, &(struct claim_cells){r, i, at});
	}
	return desk_load_end(d, &tx, e);
}

enum baton_err desk_claims(struct desk *d, const PGresult *r)
{
	return claims_load(d, r, 0);
}

enum baton_err desk_held(struct desk *d, const PGresult *r)
{
	return claims_load(d, r, BATCH_CLAIM);
}

enum baton_err desk_around(struct desk *d, const PGresult *r)
{
	if (PQntuples(r) > 0)
		d->dead += cell_int(r, 0, AROUND_DEAD);
	return desk_held(d, r);
}

/* Of its guests, or of those in its lines in all shards, only some are here. */
static enum baton_err crowd_load(struct desk *d, struct tx *tx, const struct rate_starts *s,
                                 uint64_t ready)
{
	struct queue *q = s->queue;
	struct lane *lane = q ? memory_lane_find(d->m, q->name, s->name) : NULL;
	if (!q || (!lane && ready == 0))
		return BATON_OK;
	if (!lane)
		lane = memory_lane_open(tx, q, s->name, 0);
	if (!lane)
		return BATON_NO_MEMORY;
	lane->crowd = 0;
	uint64_t here = policy_has_sites(&q->is.policy) ? memory_sites_waiting(tx, q, s->name)
	                                                : memory_guests_waiting(lane);
	lane->crowd = ready > here ? ready - here : 0;
	return BATON_OK;
}

enum baton_err desk_waiting(struct desk *d, const PGresult *r)
{
	struct tx tx;
	enum baton_err e = BATON_OK;
	desk_load_begin(d, &tx);
	for (int i = 0; i < PQntuples(r) && e == BATON_OK; i++) {
		struct rate_starts s = {.queue = desk_queue_of(d, cell_int(r, i, 0)),
		                        .name = cell_str(r, i, 1),
		                        .until = {cell_int(r, i, 3)}};
		const struct queue *q = s.queue;
		struct lane *lane = q ? memory_lane_find(d->m, q->name, s.name) : NULL;
		uint64_t here = 0;
		for (const struct batch *b = lane ? lane->first : NULL; b; b = b->next)
			here += b->is.state == BATON_BATCH_READY;
		if (lane && !cell_is_null(r, i, 2))
			lane->unseen = (uint64_t)cell_int(r, i, 2) - here;
		e = crowd_load(d, &tx, &s, (uint64_t)cell_int(r, i, 5));
		if (e == BATON_OK)
			e = starts_load(d, &tx, r, i, 4, &s);
	}
	return desk_load_end(d, &tx, e);
}

enum baton_err desk_site_holders(struct desk *d, const PGresult *r)
{
	for (int i = 0; i < PQntuples(r); i++) {
		const struct queue *q = desk_queue_of(d, cell_int(r, i, 0));
		struct lane *lane = q ? memory_lane_find(d->m, q->name, cell_str(r, i, 1)) : NULL;
		if (!lane)
			continue;
		lane->held_by = (uint64_t)cell_int(r, i, 2);
		lane->held_until.ms = cell_int(r, i, 3);
	}
	return BATON_OK;
}

enum baton_err desk_site_uses(struct desk *d, const PGresult *r)
{
	enum baton_err e = BATON_OK;
	d->m->known = (struct key_uses){.arena = &d->arena};
	for (int i = 0; i < PQntuples(r) && e == BATON_OK; i++) {
		const struct queue *q = desk_queue_of(d, cell_int(r, i, 0));
		if (q)
			e = uses_add(&d->m->known, q, cell_str(r, i, 1),
			             (uint64_t)cell_int(r, i, 2));
	}
	return e;
}

static void digest_read(const PGresult *r, int row, int column, uint8_t digest[DIGEST_SIZE])
{
	struct baton_str s = cell_str(r, row, column);
	memset(digest, 0, DIGEST_SIZE);
	memcpy(digest, s.ptr, s.len < DIGEST_SIZE ? s.len : DIGEST_SIZE);
}

enum baton_err desk_sources(struct desk *d, const PGresult *r)
{
	struct tx tx;
	bool memory = true;
	desk_load_begin(d, &tx);
	for (int i = 0; i < PQntuples(r) && memory; i++) {
		uint8_t key[DIGEST_SIZE];
		digest_read(r, i, 0, key);
		struct source *s =
			(struct source *)memory_tx_add(&tx, &d->m->sources, sizeof *s,
		                                       memory_hash(d->m, key, sizeof key));
		memory = s != NULL;
		if (!memory)
			break;
		memcpy(s->key, key, sizeof key);
		digest_read(r, i, 1, s->is.content);
		s->is.id = (uint64_t)cell_int(r, i, 2);
		s->is.until.ms = cell_int(r, i, 3);
		s->row.kept = 1;
	}
	return load_end(d, &tx, memory);
}

enum baton_err desk_answers(struct desk *d, const PGresult *r)
{
	struct tx tx;
	bool memory = true;
	desk_load_begin(d, &tx);
	for (int i = 0; i < PQntuples(r) && memory; i++) {
		struct claim_name name = {(uint64_t)cell_int(r, i, 0), (uint64_t)cell_int(r, i, 1)};
		struct answer *a =
			(struct answer *)memory_tx_add(&tx, &d->m->answers, sizeof *a,
		                                       memory_hash(d->m, &name, sizeof name));
		memory = a != NULL;
		if (!memory)
			break;
		a->name = name;
		cell_id(r, i, 2, &a->token);
		a->state = (enum baton_batch_state)cell_int(r, i, 3);
		a->until.ms = cell_int(r, i, 4);
		a->row.kept = 1;
	}
	return load_end(d, &tx, memory);
}

static bool lease_read(const PGresult *r, int row, int at, struct lease *l)
{
	struct baton_str owner = cell_str(r, row, at + 2);
	l->row.kept = 1 + (uint64_t)cell_int(r, row, at + 5);
	l->is.row.held = cell_bool(r, row, at + 1);
	cell_id(r, row, at + 3, &l->is.row.token);
	cell_id(r, row, at + 4, &l->is.row.nonce);
	l->is.row.fence = (uint64_t)cell_int(r, row, at + 5);
	l->is.counter = (uint64_t)cell_int(r, row, at + 6);
	l->is.row.claimed_at.ms = cell_int(r, row, at + 7);
	l->is.row.expires_at.ms = cell_int(r, row, at + 8);
	l->is.runner = (uint64_t)cell_int(r, row, at + 9);
	return owner.len == 0 || baton_owner_parse(owner, &l->is.row.owner) == BATON_OK;
}

static bool lease_note(struct desk *d, struct lease *l, bool first)
{
	if (!desk_room(d, (void **)&d->leases, d->lease_count, &d->lease_cap, sizeof *d->leases))
		return false;
	struct read_lease *read = &d->leases[d->lease_count++];
	read->row = l;
	memcpy(&read->was, &l->is.row, sizeof read->was);
	read->counter = l->is.counter;
	read->runner = l->is.runner;
	read->first = first;
	return true;
}

enum baton_err desk_leases_at(struct desk *d, const PGresult *r, int at)
{
	struct tx tx;
	bool memory = true, sound = true;
	desk_load_begin(d, &tx);
	for (int i = 0; i < PQntuples(r) && memory && sound; i++) {
		if (cell_is_null(r, i, at))
			continue;
		struct lease *l = memory_lease_make(&tx, cell_str(r, i, at));
		memory = l != NULL;
		sound = memory && lease_read(r, i, at, l);
		bool first =
			PQnfields(r) > at + 10 && cell_int(r, i, at + 10) == cell_int(r, i, at + 6);
		memory = memory && lease_note(d, l, first);
	}
	enum baton_err e = load_end(d, &tx, memory);
	if (e == BATON_OK && !sound)
		e = fail(BATON_STORAGE,
		         "the store is damaged: it has an owner that cannot be read");
	return e;
}

enum baton_err desk_leases(struct desk *d, const PGresult *r)
{
	return desk_leases_at(d, r, 0);
}

enum baton_err desk_held_off(struct desk *d, const PGresult *r)
{
	for (int i = 0; i < PQntuples(r); i++) {
		struct lease *l = memory_lease_find(d->m, cell_str(r, i, 0));
		if (l)
			l->held_off = true;
	}
	return BATON_OK;
}

static void name_copy(const PGresult *r, int row, int column, char *text, size_t room)
{
	struct baton_str s = cell_str(r, row, column);
	size_t len = s.len < room ? s.len : room - 1;
	memcpy(text, s.ptr, len);
	text[len] = '\0';
}

enum baton_err desk_runners(struct desk *d, const PGresult *r)
{
	struct tx tx;
	bool memory = true;
	desk_load_begin(d, &tx);
	for (int i = 0; i < PQntuples(r) && memory; i++) {
		struct runner *n =
			(struct runner *)memory_tx_add(&tx, &d->m->runners, sizeof *n, 0);
		memory = n != NULL;
		if (!memory)
			break;
		n->put.number = (uint64_t)cell_int(r, i, 0);
		n->row.kept = n->put.number;
		name_copy(r, i, 1, n->put.name, sizeof n->put.name);
		n->put.slot = (uint32_t)cell_int(r, i, 2);
		name_copy(r, i, 3, n->put.endpoint, sizeof n->put.endpoint);
		name_copy(r, i, 4, n->put.labels, sizeof n->put.labels);
		baton_owner_parse(cell_str(r, i, 5), &n->put.owner);
		n->put.weight = (uint32_t)cell_int(r, i, 6);
		n->put.ttl.ns = cell_int(r, i, 7);
		n->put.since.ms = cell_int(r, i, 8);
		n->put.beat = (uint64_t)cell_int(r, i, 9);
		name_copy(r, i, 10, n->put.host, sizeof n->put.host);
		name_copy(r, i, 11, n->put.queues, sizeof n->put.queues);
		name_copy(r, i, 12, n->put.life, sizeof n->put.life);
		n->put.guardian = (int32_t)cell_int(r, i, 13);
		n->is.wish = (enum baton_runner_wish)cell_int(r, i, 14);
		name_copy(r, i, 15, n->is.state, sizeof n->is.state);
	}
	return load_end(d, &tx, memory);
}

enum baton_err desk_schedules(struct desk *d, const PGresult *r)
{
	struct tx tx;
	bool memory = true;
	desk_load_begin(d, &tx);
	for (int i = 0; i < PQntuples(r) && memory; i++) {
		const struct baton_schedule s = {
			.name = cell_str(r, i, 0),
			.cron = cell_str(r, i, 1),
			.zone = cell_str(r, i, 2),
			.missed = (enum baton_missed)cell_int(r, i, 3),
			.queue = cell_str(r, i, 4),
			.lane = cell_str(r, i, 5),
			.priority = (uint32_t)cell_int(r, i, 6),
			.payload = cell_str(r, i, 7),
			.last = {cell_int(r, i, 8)},
			.next = {cell_int(r, i, 9)},
		};
		struct schedule *row = memory_schedule_add(&tx, &s);
		memory = row != NULL;
		if (row)
			row->row.kept = 1;
	}
	return load_end(d, &tx, memory);
}
