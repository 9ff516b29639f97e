/* Batches as they are stored. */
#include "store/sqlite/batches.h"

#include <endian.h>
#include <string.h>

#include "base/fail.h"
#include "base/mem.h"
#include "store/parcel.h"
#include "store/sqlite/claims.h"

enum {
	FLAG_COMMAND = 1,
	FLAG_AFTER_COMMIT = 2,
	FLAG_JOIN = 4,
	FLAG_MANY = 8
};
#define PRIORITY_SHIFT 4
#define SHARD_SHIFT 8

enum baton_err run_numbers(struct db *db, enum sql sql, const int64_t *numbers, size_t count)
{
	struct query q = query_begin(db, sql);
	for (size_t i = 0; i < count; i++)
		query_int(&q, numbers[i]);
	return query_run(&q);
}

enum baton_err find_number(struct db *db, enum sql sql, const int64_t *numbers, size_t count,
                           int64_t *ret)
{
	struct query q = query_begin(db, sql);
	for (size_t i = 0; i < count; i++)
		query_int(&q, numbers[i]);
	*ret = query_row(&q) ? column_int(&q, 0) : 0;
	return query_end(&q);
}

int64_t batch_flags(const struct batch_row *b)
{
	int64_t flags = 0;
	flags |= b->cls == BATON_COMMAND ? FLAG_COMMAND : 0;
	flags |= b->delivery == BATON_AFTER_COMMIT ? FLAG_AFTER_COMMIT : 0;
	flags |= b->slot == BATON_JOIN ? FLAG_JOIN : 0;
	flags |= b->many ? FLAG_MANY : 0;
	flags |= (int64_t)b->priority << PRIORITY_SHIFT;
	return flags | (int64_t)b->shard << SHARD_SHIFT;
}

void batch_flags_read(int64_t flags, struct batch_row *b)
{
	b->cls = flags & FLAG_COMMAND ? BATON_COMMAND : BATON_WORK;
	b->delivery = flags & FLAG_AFTER_COMMIT ? BATON_AFTER_COMMIT : BATON_EARLIEST;
	b->slot = flags & FLAG_JOIN ? BATON_JOIN : BATON_EXCLUSIVE;
	b->many = (flags & FLAG_MANY) != 0;
	b->priority = (uint32_t)(flags >> PRIORITY_SHIFT & 15);
	b->shard = (uint32_t)(flags >> SHARD_SHIFT);
}

/* An override of the retry policy: its four numbers. */
static void retry_pack(const struct baton_retry *r, int64_t bytes[4])
{
	bytes[0] = (int64_t)htole64(r->attempts);
	bytes[1] = (int64_t)htole64((uint64_t)r->backoff);
	bytes[2] = (int64_t)htole64((uint64_t)r->base.ns);
	bytes[3] = (int64_t)htole64((uint64_t)r->cap.ns);
}

static bool retry_unpack(struct baton_str s, struct baton_retry *ret)
{
	uint64_t bytes[4];
	if (s.len != sizeof bytes)
		return false;
	memcpy(bytes, s.ptr, sizeof bytes);
	*ret = (struct baton_retry){
		.attempts = (uint32_t)le64toh(bytes[0]),
		.backoff = (enum baton_backoff)le64toh(bytes[1]),
		.base = {(int64_t)le64toh(bytes[2])},
		.cap = {(int64_t)le64toh(bytes[3])},
	};
	return baton_retry_check(ret) == BATON_OK;
}

static size_t name_read(const struct query *q, int column, char *name, size_t max)
{
	struct baton_str s = column_str(q, column);
	size_t len = s.len < max ? s.len : max;
	if (len > 0)
		memcpy(name, s.ptr, len);
	name[len] = '\0';
	return len;
}

/* Of one with both, the lane is followed by the names of the lines of its keys. */
static void lines_read(struct baton_str s, struct batch_row *b)
{
	const char *key = s.len > 1 ? memchr(s.ptr + 1, LINE_KEYED, s.len - 1) : NULL;
	size_t lane = key ? (size_t)(key - s.ptr) : s.len, rest = s.len - lane;
	b->lane_len = lane < LINE_NAME_MAX ? lane : LINE_NAME_MAX;
	b->key_len = rest < LINE_KEYS_MAX ? rest : LINE_KEYS_MAX;
	if (b->lane_len > 0)
		memcpy(b->lane, s.ptr, b->lane_len);
	if (b->key_len > 0)
		memcpy(b->key, key, b->key_len);
	b->lane[b->lane_len] = b->key[b->key_len] = '\0';
}

void batch_row_read(const struct query *q, struct batch_row *b)
{
	b->seq = column_int(q, 0);
	b->queue = column_int(q, 1);
	batch_flags_read(column_int(q, 2), b);
	b->put_at.ms = column_int(q, 3);
	b->due.ms = column_int(q, 4);
	b->id = column_is_null(q, 5) ? b->seq : column_int(q, 5);
	lines_read(column_str(q, 6), b);
	b->group_len = name_read(q, 7, b->group, BATON_NAME_MAX);
	b->has_retry = !column_is_null(q, 8) && retry_unpack(column_str(q, 8), &b->retry);
}

struct candidate batch_row_candidate(const struct batch_row *b)
{
	return (struct candidate){(uint64_t)b->seq,   b->cls,
	                          b->delivery,        b->slot,
	                          batch_row_group(b), batch_row_guest(b)};
}

enum baton_err batch_load(struct db *db, int64_t seq, struct batch_row *ret, bool *ret_found)
{
	struct query q = query_begin(db, SQL_BATCH_READ);
	query_int(&q, seq);
	*ret_found = query_row(&q);
	if (*ret_found)
		batch_row_read(&q, ret);
	return query_end(&q);
}

enum baton_err batch_need(struct db *db, int64_t seq, struct batch_row *ret)
{
	bool found;
	enum baton_err e = batch_load(db, seq, ret, &found);
	if (e == BATON_OK && !found)
		e = fail(BATON_STORAGE,
		         "store %s is damaged: batch %lld is gone; baton check says more", db->path,
		         (long long)seq);
	return e;
}

enum baton_err batch_seq_of(struct db *db, int64_t id, int64_t *ret_seq)
{
	struct batch_row row;
	bool found;
	enum baton_err e = batch_load(db, id, &row, &found);
	if (e != BATON_OK)
		return e;
	if (found && row.id == id) {
		*ret_seq = id;
		return BATON_OK;
	}
	return FIND(db, SQL_BATCH_BORN, ret_seq, id);
}

#define LINES_MAX (LINE_NAME_MAX + LINE_KEYS_MAX)

static void bind_row(struct query *q, const struct batch_row *b, int64_t retry[4],
                     char lines[LINES_MAX])
{
	query_int(q, b->seq);
	query_int(q, b->queue);
	query_int(q, batch_flags(b));
	query_int(q, b->put_at.ms);
	if (b->due.ms > 0)
		query_int(q, b->due.ms);
	else
		query_null(q);
	query_null(q);
	memcpy(lines, b->lane, b->lane_len);
	memcpy(lines + b->lane_len, b->key, b->key_len);
	query_optional(q, (struct baton_str){lines, b->lane_len + b->key_len});
	query_optional(q, batch_row_group(b));
	if (b->has_retry) {
		retry_pack(&b->retry, retry);
		query_blob(q, retry, 4 * sizeof *retry);
	} else {
		query_null(q);
	}
}

enum baton_err batch_store(struct db *db, const struct batch_row *b,
                           const struct baton_str *payloads, size_t count,
                           const struct baton_alloc *alloc)
{
	int64_t retry[4];
	char lines[LINES_MAX];
	struct query q = query_begin(db, SQL_BATCH_ADD);
	bind_row(&q, b, retry, lines);
	if (count == 1) {
		query_blob(&q, payloads[0].ptr, payloads[0].len);
		return query_run(&q);
	}
	size_t size = payloads_size(payloads, count);
	char *bytes = mem_new(alloc, 1, size);
	if (!bytes) {
		query_end(&q);
		return fail_memory(size, "payloads");
	}
	payloads_pack(payloads, count, bytes);
	query_blob(&q, bytes, size);
	enum baton_err e = query_run(&q);
	mem_free(alloc, bytes, 1, size);
	return e;
}

enum baton_err trouble_load(struct db *db, int64_t seq, struct trouble *t)
{
	struct query q = query_begin(db, SQL_TROUBLE_READ);
	query_int(&q, seq);
	t->attempts = 0;
	t->fence = 0;
	t->due.ms = 0;
	t->cancel = false;
	t->rival = 0;
	t->error_len = 0;
	if (query_row(&q)) {
		t->attempts = (uint32_t)column_int(&q, 0);
		t->fence = (uint64_t)column_int(&q, 1);
		trouble_error(t, column_str(&q, 2));
		t->due.ms = column_int(&q, 3);
		t->cancel = column_int(&q, 4) != 0;
		t->rival = column_int(&q, 5);
	}
	return query_end(&q);
}

enum baton_err trouble_save(struct db *db, int64_t seq, const struct trouble *t)
{
	struct query q = query_begin(db, SQL_TROUBLE_WRITE);
	query_int(&q, seq);
	query_int(&q, t->attempts);
	query_int(&q, (int64_t)t->fence);
	query_optional(&q, (struct baton_str){t->error, t->error_len});
	if (t->due.ms > 0)
		query_int(&q, t->due.ms);
	else
		query_null(&q);
	query_int(&q, t->cancel);
	if (t->rival > 0)
		query_int(&q, t->rival);
	else
		query_null(&q);
	return query_run(&q);
}

/* Cut where a character ends. */
void trouble_error(struct trouble *t, struct baton_str error)
{
	size_t len = error.len;
	if (len > BATON_ERROR_MAX) {
		len = BATON_ERROR_MAX;
		while (len > BATON_ERROR_MAX - 4 && ((unsigned char)error.ptr[len] & 0xc0) == 0x80)
			len--;
	}
	t->error_len = len;
	if (len > 0)
		memcpy(t->error, error.ptr, len);
}

/* Whether it waits outside of the ready ones. */
static enum baton_err waits(struct db *db, const struct batch_row *b, bool *ret_waits,
                            bool *ret_retry, struct baton_store_time *ret_due)
{
	struct trouble t;
	enum baton_err e = trouble_load(db, b->seq, &t);
	if (e != BATON_OK)
		return e;
	*ret_due = t.due.ms > 0 ? t.due : b->due;
	*ret_waits = false;
	if (ret_due->ms == 0)
		return BATON_OK;
	struct query q = query_begin(db, SQL_LATER_HAS);
	query_int(&q, b->queue);
	query_int(&q, ret_due->ms);
	query_int(&q, b->seq);
	*ret_waits = query_row(&q);
	*ret_retry = *ret_waits && column_int(&q, 0) != 0;
	return query_end(&q);
}

/* How long what has ended is kept, 0 without that; and for whom it was skipped. */
static enum baton_err done_until(struct db *db, int64_t seq, struct baton_store_time *ret_until,
                                 int64_t *ret_rival)
{
	struct query q = query_begin(db, SQL_DONE_UNTIL);
	query_int(&q, seq);
	if (query_row(&q)) {
		ret_until->ms = column_int(&q, 0);
		*ret_rival = column_int(&q, 1);
	}
	return query_end(&q);
}

enum baton_err batch_state(struct db *db, const struct batch_row *b, struct baton_store_time now,
                           enum baton_batch_state *ret, struct baton_store_time *ret_due)
{
	int64_t at = 0, rival = 0;
	struct baton_store_time until = {0};
	bool waiting = false, retry = false;
	enum baton_err e = FIND(db, SQL_DEAD_HAS, &at, b->queue, b->seq);
	if (e != BATON_OK || at > 0) {
		*ret = BATON_BATCH_DEAD;
		return e;
	}
	e = done_until(db, b->seq, &until, &rival);
	if (e != BATON_OK || until.ms > 0) {
		*ret = baton_store_time_live(until, now)
		               ? batch_shown(BATON_BATCH_DONE, (uint64_t)rival)
		               : BATON_BATCH_GONE;
		return e;
	}
	e = waits(db, b, &waiting, &retry, ret_due);
	if (e != BATON_OK || waiting) {
		*ret = retry ? BATON_BATCH_RETRY : BATON_BATCH_DELAYED;
		return e;
	}
	bool claimed;
	e = claim_has(db, b, &claimed);
	*ret = claimed ? BATON_BATCH_CLAIMED : BATON_BATCH_READY;
	return e;
}

struct baton_retry batch_row_retry(const struct batch_row *b, const struct baton_queue_policy *p)
{
	if (b->has_retry)
		return b->retry;
	return *line_retry_policy(batch_row_line(b), p);
}
