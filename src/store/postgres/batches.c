/* Batches in rows of their own: as they are read, and written back. */
#include <endian.h>
#include <string.h>

#include "base/fail.h"
#include "base/mem.h"
#include "queue/line.h"
#include "queue/rate.h"
#include "store/memory/batch.h"
#include "store/memory/lane.h"
#include "store/memory/queue.h"
#include "store/memory/rate.h"
#include "store/parcel.h"
#include "store/postgres/bulk.h"
#include "store/postgres/write.h"

#define LOAD_MIN 1000 /* new rows that are copied instead of sent as arrays */

/* Their queue, and the pool, are known as numbers. */
#define COPY_BATCHES                                                                          \
	"COPY baton.batch(seq, queue, lane, shard, head, line, state, rank, flags, put_at, "  \
	"due, grp, retry, attempts, fence, cancel, holds, blocks, error, payload, ended_at, " \
	"until, rival, guest, keeps, pool) FROM STDIN (FORMAT binary)"
#define BATCH_POOL 25

struct batch *desk_batch(const struct desk *d, uint64_t id)
{
	struct row *row = memory_row_first(&d->m->batches, memory_hash(d->m, &id, sizeof id));
	for (; row; row = memory_row_next(row)) {
		if (((struct batch *)row)->id == id)
			return (struct batch *)row;
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

#define HEAD_STARTS 26

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
	return desk_starts(d, tx, r, row, HEAD_STARTS, &s);
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

int32_t desk_flags(const struct baton_batch *put)
{
	int32_t flags = put->cls == BATON_COMMAND ? FLAG_COMMAND : 0;
	flags |= put->delivery == BATON_AFTER_COMMIT ? FLAG_AFTER_COMMIT : 0;
	flags |= put->slot == BATON_JOIN ? FLAG_JOIN : 0;
	return flags | (put->count > 1 ? FLAG_MANY : 0);
}

/* The first of its line from here on. */
static const struct batch *in_line(const struct batch *b)
{
	while (b && !memory_line_has(b))
		b = b->next;
	return b;
}

/* Whether it is the first of its line, and can be claimed, as far as the desk tells. One that may
 * have come in front of another is not said to be: settle() then sees to both. */
static bool leads(const struct desk *d, const struct batch *b)
{
	/* Who else is in the line of a key in one shard was not read. */
	if (b->key_count > 0 || line_is_sited(b->lane->name, NULL))
		return false;
	if (line_is_keyed(b->lane->name)) {
		struct line line = memory_line_look(b->lane, d->now);
		return b->row.kept == 0 && line.free && line.first == b;
	}
	return in_line(b->lane->first) == b && memory_line_look(b->lane, d->now).free &&
	       (b->row.kept == 0 || !in_line(b->next));
}

bool write_is_head(const struct desk *d, const struct batch *b)
{
	bool offered = b->is.claim && b->is.claim->is.offered;
	if (b->lane->name.len > 0)
		return leads(d, b);
	return b->is.state == BATON_BATCH_READY || (b->is.state == BATON_BATCH_CLAIMED && offered);
}

static bool line_of(const struct batch *b)
{
	return b->lane->name.len > 0 && memory_line_has(b);
}

static void add_text(struct args *a, int at, const struct text *text)
{
	if (text)
		add_str(a, at, text->bytes);
	else
		add_null(a, at);
}

static void add_retry(struct args *a, int at, const struct baton_retry *r)
{
	const uint64_t n[4] = {htobe64(r->attempts), htobe64((uint64_t)r->backoff),
	                       htobe64((uint64_t)r->base.ns), htobe64((uint64_t)r->cap.ns)};
	if (r->attempts > 0)
		add_str(a, at, (struct baton_str){(const char *)n, sizeof n});
	else
		add_null(a, at);
}

static enum baton_err add_payload(struct writer *w, struct args *a, int at,
                                  const struct baton_batch *put)
{
	const struct baton_alloc *alloc = w->c->alloc;
	if (put->count == 1) {
		add_str(a, at, put->payloads[0]);
		return BATON_OK;
	}
	size_t size = payloads_size(put->payloads, put->count);
	char *bytes = mem_new(alloc, 1, size);
	if (!bytes)
		return fail_memory(size, "payloads");
	payloads_pack(put->payloads, put->count, bytes);
	add_str(a, at, (struct baton_str){bytes, size});
	mem_free(alloc, bytes, 1, size);
	return BATON_OK;
}

static void add_rival(struct args *a, int at, const struct batch *b)
{
	if (b->is.by > 0)
		add_int(a, at, (int64_t)b->is.by);
	else
		add_null(a, at);
}

static void batch_until(const struct desk *d, const struct batch *b)
{
	if (b->is.state == BATON_BATCH_DELAYED || b->is.state == BATON_BATCH_RETRY)
		desk_until(d, b->lane->queue, b->is.due);
}

static int64_t pool_of(const struct batch *b)
{
	bool runner = b->lane->queue->is.policy.mode == BATON_QUEUE_RUNNER;
	return runner ? memory_lane_shard(b->lane) + 1 : 0;
}

static enum baton_err batch_add(struct writer *w, struct args *a, const struct batch *b)
{
	batch_until(w->d, b);
	add_int(a, 0, (int64_t)b->is.seq);
	if (a->count > BATCH_POOL) {
		add_int(a, 1, (int64_t)b->lane->queue->row.kept);
		add_int(a, BATCH_POOL, pool_of(b));
	} else {
		add_str(a, 1, b->lane->queue->name);
	}
	add_optional(a, 2, b->lane->name);
	add_int(a, 3, memory_lane_shard(b->lane));
	add_bool(a, 4, write_is_head(w->d, b));
	add_bool(a, 5, line_of(b));
	add_int(a, 6, b->is.state);
	add_int(a, 7, BATON_PRIORITY_MAX - (int64_t)b->put.priority);
	add_int(a, 8, desk_flags(&b->put));
	add_int(a, 9, b->put_at.ms);
	if (b->is.state == BATON_BATCH_READY)
		add_null(a, 10);
	else
		writer_add_time(a, 10, b->is.due);
	add_optional(a, 11, b->put.group);
	add_retry(a, 12, &b->put.retry);
	add_int(a, 13, b->is.attempts);
	add_int(a, 14, (int64_t)b->is.fence);
	add_bool(a, 15, b->is.cancel);
	add_bool(a, 16, b->is.holds);
	add_bool(a, 17, b->is.blocks);
	add_text(a, 18, b->is.error);
	writer_add_time(a, 20, b->is.ended_at);
	writer_add_time(a, 21, b->is.until);
	add_rival(a, 22, b);
	char guest[LINE_KEYS_MAX];
	add_optional(a, 23, memory_guest_name(b, guest));
	add_bool(a, 24, b->is.keeps);
	return add_payload(w, a, 19, &b->put);
}

static void batch_set(const struct desk *d, struct args *a, const struct batch *b)
{
	batch_until(d, b);
	add_int(a, 0, (int64_t)b->row.kept);
	add_int(a, 1, (int64_t)b->is.seq);
	add_int(a, 2, pool_of(b));
	add_bool(a, 3, write_is_head(d, b));
	add_bool(a, 4, line_of(b));
	add_int(a, 5, b->is.state);
	writer_add_time(a, 6, b->is.due);
	add_int(a, 7, b->is.attempts);
	add_int(a, 8, (int64_t)b->is.fence);
	add_bool(a, 9, b->is.cancel);
	add_bool(a, 10, b->is.holds);
	add_bool(a, 11, b->is.blocks);
	add_text(a, 12, b->is.error);
	add_text(a, 13, b->is.result);
	writer_add_time(a, 14, b->is.ended_at);
	writer_add_time(a, 15, b->is.until);
	add_rival(a, 16, b);
	add_bool(a, 17, b->is.keeps);
}

static bool has_row_to_write(const struct desk *d, const struct row *row)
{
	return row->noted && !(row->kept & IN_BULK) && !bulk_takes(d, (const struct batch *)row);
}

/* Whether there are many new rows, and of queues that are there already. */
static bool is_load(const struct desk *d)
{
	size_t count = 0;
	if (d->m->batches.count < LOAD_MIN)
		return false;
	for (const struct row *row = d->m->batches.oldest; row; row = row->newer) {
		if (row->kept > 0 || !has_row_to_write(d, row))
			continue;
		if (((const struct batch *)row)->lane->queue->row.kept == 0)
			return false;
		count++;
	}
	return count >= LOAD_MIN;
}

/* What was told before is not known any more. */
static enum baton_err batches_load(struct writer *w, const struct args *rows)
{
	w->told = -1;
	w->any = true;
	return conn_copy(w->c, COPY_BATCHES, rows);
}

enum baton_err write_batches(struct writer *w)
{
	static const enum arg_type new_types[] = {ARG_INT8,  ARG_TEXT, ARG_TEXT,  ARG_INT4,
	                                          ARG_BOOL,  ARG_BOOL, ARG_INT2,  ARG_INT2,
	                                          ARG_INT2,  ARG_INT8, ARG_INT8,  ARG_TEXT,
	                                          ARG_BYTES, ARG_INT4, ARG_INT8,  ARG_BOOL,
	                                          ARG_BOOL,  ARG_BOOL, ARG_BYTES, ARG_BYTES,
	                                          ARG_INT8,  ARG_INT8, ARG_INT8,  ARG_TEXT,
	                                          ARG_BOOL,  ARG_INT4};
	static const enum arg_type old_types[] = {ARG_INT8,  ARG_INT8,  ARG_INT4, ARG_BOOL,
	                                          ARG_BOOL,  ARG_INT2,  ARG_INT8, ARG_INT4,
	                                          ARG_INT8,  ARG_BOOL,  ARG_BOOL, ARG_BOOL,
	                                          ARG_BYTES, ARG_BYTES, ARG_INT8, ARG_INT8,
	                                          ARG_INT8,  ARG_BOOL};
	struct args new, old;
	enum baton_err e = BATON_OK;
	const bool load = is_load(w->d);
	writer_args(w, &new, load ? BATCH_POOL + 1 : BATCH_POOL);
	writer_args(w, &old, 18);
	writer_arrays(&new, new_types);
	if (load)
		new.list[1].type = ARG_INT4;
	writer_arrays(&old, old_types);
	for (struct row *row = w->d->m->batches.oldest; row && e == BATON_OK; row = row->newer) {
		const struct batch *b = (struct batch *)row;
		if (!has_row_to_write(w->d, row))
			continue;
		if (row->kept == 0)
			e = batch_add(w, &new, b);
		else
			batch_set(w->d, &old, b);
	}
	if (e == BATON_OK && old.list[0].count > 0)
		writer_send(w, SQL_BATCH_SET, &old);
	if (e == BATON_OK && load)
		e = batches_load(w, &new);
	else if (e == BATON_OK && new.list[0].count > 0)
		writer_send(w, SQL_BATCH_ADD, &new);
	args_done(&new);
	args_done(&old);
	return e;
}
