/* What the writer has to know in every transaction. */
#include "store/sqlite/books.h"

#include <endian.h>
#include <string.h>

#include "base/fail.h"
#include "base/mem.h"
#include "queue/batch.h"
#include "queue/policy.h"
#include "store/sqlite/schema.h"

#define KEPT_MAX 256
#define NUMBER_MAX (INT64_C(1) << 53)

void books_init(struct books *b, const struct baton_alloc *alloc)
{
	*b = (struct books){.alloc = alloc};
}

static void forget(struct books *b)
{
	for (size_t i = 0; i < b->count; i++)
		mem_free(b->alloc, b->queues[i], 1, sizeof **b->queues);
	b->count = 0;
	b->owner_count = 0;
	b->asker_number = 0;
	b->loaded = false;
	b->changed = false;
	b->roster.synced = false;
}

void books_forget(struct books *b)
{
	forget(b);
	roster_forget(&b->roster);
	holdings_forget(&b->holdings);
}

void books_done(struct books *b)
{
	books_forget(b);
	holdings_done(&b->holdings, b->alloc);
	mem_free(b->alloc, b->queues, b->cap, sizeof(struct queue_row *));
	b->queues = NULL;
	b->cap = 0;
}

/* One that more can follow, since nobody can have given out so many. */
static bool is_number(int64_t number)
{
	return number >= 0 && number <= NUMBER_MAX;
}

static size_t young_read(struct baton_str bytes, int64_t young[ROSTER_ROWS])
{
	size_t count = bytes.len / sizeof(uint64_t);
	count = count < ROSTER_ROWS ? count : ROSTER_ROWS;
	for (size_t i = 0; i < count; i++) {
		uint64_t little;
		memcpy(&little, bytes.ptr + i * sizeof little, sizeof little);
		young[i] = (int64_t)le64toh(little);
	}
	return count;
}

enum baton_err books_young(struct db *db, int64_t young[ROSTER_ROWS], size_t *ret_count)
{
	struct query q = query_begin(db, SQL_STATE_READ);
	*ret_count = query_row(&q) ? young_read(column_str(&q, 7), young) : 0;
	return query_end(&q);
}

static enum baton_err state_write(const struct books *b, struct db *db)
{
	uint64_t young[ROSTER_ROWS];
	for (size_t i = 0; i < b->young_count; i++)
		young[i] = htole64((uint64_t)b->young[i]);
	struct query q = query_begin(db, SQL_STATE_WRITE);
	query_int(&q, b->seq);
	query_int(&q, b->lane);
	query_int(&q, b->swept);
	query_int(&q, b->shards);
	query_blob(&q, young, b->young_count * sizeof young[0]);
	return query_run(&q);
}

void books_grown(struct books *b, int64_t first)
{
	size_t left = 0;
	for (size_t i = 0; i < b->young_count; i++) {
		if (b->young[i] != first)
			b->young[left++] = b->young[i];
	}
	b->young_count = left;
	roster_drop(&b->roster, first);
}

static enum baton_err load(struct books *b, struct db *db)
{
	struct query q = query_begin(db, SQL_STATE_READ);
	bool found = query_row(&q);
	if (found) {
		b->seq = column_int(&q, 0);
		b->lane = column_int(&q, 1);
		b->granter_floor = (uint64_t)column_int(&q, 2);
		b->plain_floor = (uint64_t)column_int(&q, 3);
		b->swept = column_int(&q, 4);
		b->shards = column_int(&q, 6);
		b->young_count = young_read(column_str(&q, 7), b->young);
	}
	enum baton_err e = query_end(&q);
	if (e == BATON_OK && !found)
		e = fail(BATON_STORAGE, "store %s is damaged: its counters are gone", db->path);
	else if (e == BATON_OK && (!is_number(b->seq) || !is_number(b->lane)))
		e = fail(BATON_STORAGE,
		         "store %s is damaged: the numbers of its last job and lane are %lld and "
		         "%lld, where 0 to %lld can be",
		         db->path, (long long)b->seq, (long long)b->lane, (long long)NUMBER_MAX);
	b->loaded = e == BATON_OK;
	return e;
}

enum baton_err books_open(struct books *b, struct db *db)
{
	struct query q = query_begin(db, SQL_VERSION);
	int64_t version = query_row(&q) ? column_int(&q, 0) : 0;
	enum baton_err e = query_end(&q);
	if (e != BATON_OK)
		return e;
	if (b->loaded && version == b->version && b->count <= KEPT_MAX)
		return BATON_OK;
	forget(b);
	b->version = version;
	e = schema_check(db);
	return e == BATON_OK ? load(b, db) : e;
}

/* What changes with every transaction, in the order of the columns. */
static void counts_bind(struct query *q, const struct queue_row *row)
{
	query_int(q, (int64_t)row->pulled.granter);
	query_int(q, (int64_t)row->pulled.counter);
	query_int(q, row->tally.ready);
	query_int(q, row->tally.delayed);
	query_int(q, row->tally.running);
	query_int(q, row->tally.dead);
	query_int(q, row->tally.done);
	query_int(q, row->tally.failed);
	query_int(q, row->tally.waiting);
	query_int(q, row->mixed);
	query_int(q, (int64_t)row->reach.top);
	query_int(q, (int64_t)row->reach.floor);
}

void books_waiting(struct queue_row *q, int64_t more)
{
	q->tally.waiting += more;
	q->changed = true;
}

static enum baton_err write_counts(struct db *db, const struct queue_row *row)
{
	struct query q = query_begin(db, SQL_QUEUE_COUNT);
	counts_bind(&q, row);
	query_int(&q, row->id);
	return query_run(&q);
}

enum baton_err books_owners_write(struct books *b, struct db *db, struct baton_store_time now)
{
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < b->owner_count && e == BATON_OK; i++) {
		struct query q = query_begin(db, SQL_OWNER_COUNT);
		query_int(&q, b->owners[i].claims);
		query_int(&q, now.ms);
		query_int(&q, b->owners[i].owner);
		e = query_run(&q);
	}
	b->owner_count = 0;
	return e;
}

enum baton_err books_owner(struct books *b, struct db *db, int64_t owner, int64_t claims,
                           struct baton_store_time now)
{
	for (size_t i = 0; i < b->owner_count; i++) {
		if (b->owners[i].owner == owner) {
			b->owners[i].claims += claims;
			return BATON_OK;
		}
	}
	enum baton_err e = BATON_OK;
	if (b->owner_count == BOOKS_OWNERS)
		e = books_owners_write(b, db, now);
	b->owners[b->owner_count++] = (struct owner_change){owner, claims};
	return e;
}

enum baton_err books_write(struct books *b, struct db *db, struct baton_store_time now)
{
	enum baton_err e = books_owners_write(b, db, now);
	if (e != BATON_OK)
		return e;
	if (b->changed) {
		e = state_write(b, db);
		b->changed = false;
	}
	for (size_t i = 0; i < b->count && e == BATON_OK; i++) {
		if (b->queues[i]->changed)
			e = write_counts(db, b->queues[i]);
		b->queues[i]->changed = false;
	}
	return e;
}

static struct baton_retry retry_read(const struct query *q, int at)
{
	return (struct baton_retry){
		.attempts = (uint32_t)column_int(q, at),
		.backoff = (enum baton_backoff)column_int(q, at + 1),
		.base = {column_int(q, at + 2)},
		.cap = {column_int(q, at + 3)},
	};
}

/* Who goes from each name to the next would never come past one that is no text. */
static enum baton_err queue_row_check(const struct query *q, const struct queue_row *row)
{
	const struct baton_str class = column_str(q, 41);
	enum baton_err e = batch_check_queue(column_str(q, 1));
	if (e == BATON_OK && (!column_is_text(q, 1) || !column_is_text(q, 41)))
		e = fail(BATON_INVALID, "its names are no texts");
	if (e == BATON_OK && class.len > BATON_NAME_MAX)
		e = fail(BATON_INVALID, "the name of its class has %zu bytes: 0 to %d are allowed",
		         class.len, BATON_NAME_MAX);
	return e == BATON_OK ? policy_limits(&row->policy) : e;
}

enum baton_err queue_row_try(const struct query *q, struct queue_row *ret)
{
	struct baton_str name = column_str(q, 1);
	*ret = (struct queue_row){
		.id = column_int(q, 0),
		.len = name.len < BATON_NAME_MAX ? name.len : BATON_NAME_MAX,
		.policy =
			{
				.mode = (enum baton_queue_mode)column_int(q, 2),
				.shards = (uint32_t)column_int(q, 3),
				.paused = column_int(q, 4) != 0,
				.payload_max = (uint32_t)column_int(q, 5),
				.waiting_max = (uint64_t)column_int(q, 6),
				.retry = retry_read(q, 7),
				.retry_lane = retry_read(q, 11),
				.on_retry = (enum baton_on_retry)column_int(q, 15),
				.on_dead = (enum baton_on_dead)column_int(q, 16),
				.dedupe = {column_int(q, 17)},
				.keep = {column_int(q, 18)},
				.key_limit = (uint32_t)column_int(q, 31),
				.hold_on_retry = (enum baton_hold_on_retry)column_int(q, 32),
				.on_conflict = (enum baton_on_conflict)column_int(q, 33),
				.key_waiting_max = (uint32_t)column_int(q, 34),
				.key_fair = (enum baton_key_fair)column_int(q, 35),
				.key_rate = {(uint64_t)column_int(q, 36), {column_int(q, 37)}},
				.key_ttl = {column_int(q, 38)},
				.key_scope = (enum baton_key_scope)column_int(q, 40),
			},
		.pulled = {(uint64_t)column_int(q, 19), (uint64_t)column_int(q, 20)},
		.tally = {column_int(q, 21), column_int(q, 22), column_int(q, 23),
	                  column_int(q, 24), column_int(q, 25), column_int(q, 26),
	                  column_int(q, 27)},
		.mixed = column_int(q, 28) != 0,
		.reach = {(uint64_t)column_int(q, 29), (uint64_t)column_int(q, 30)},
		.guests = column_int(q, 39) != 0,
	};
	if (ret->len > 0)
		memcpy(ret->name, name.ptr, ret->len);
	policy_set_class(&ret->policy, column_str(q, 41));
	return queue_row_check(q, ret);
}

enum baton_err queue_row_read(const struct query *q, struct queue_row *ret)
{
	if (queue_row_try(q, ret) == BATON_OK)
		return BATON_OK;
	return fail(BATON_STORAGE,
	            "store %s is damaged: queue %lld cannot be: %s; baton check says more",
	            q->db->path, (long long)ret->id, baton_err_detail());
}

static void retry_bind(struct query *q, const struct baton_retry *r)
{
	query_int(q, r->attempts);
	query_int(q, r->backoff);
	query_int(q, r->base.ns);
	query_int(q, r->cap.ns);
}

enum baton_err books_queue_write(struct db *db, const struct queue_row *row)
{
	const struct baton_queue_policy *p = &row->policy;
	struct query q = query_begin(db, SQL_QUEUE_WRITE);
	query_int(&q, row->id);
	query_text(&q, queue_row_name(row));
	query_int(&q, p->mode);
	query_int(&q, p->shards);
	query_int(&q, p->paused);
	query_int(&q, p->payload_max);
	query_int(&q, (int64_t)p->waiting_max);
	retry_bind(&q, &p->retry);
	retry_bind(&q, &p->retry_lane);
	query_int(&q, p->on_retry);
	query_int(&q, p->on_dead);
	query_int(&q, p->dedupe.ns);
	query_int(&q, p->keep.ns);
	counts_bind(&q, row);
	query_int(&q, p->key_limit);
	query_int(&q, p->hold_on_retry);
	query_int(&q, p->on_conflict);
	query_int(&q, p->key_waiting_max);
	query_int(&q, p->key_fair);
	query_int(&q, (int64_t)p->key_rate.starts);
	query_int(&q, p->key_rate.window.ns);
	query_int(&q, p->key_ttl.ns);
	query_int(&q, row->guests);
	query_int(&q, p->key_scope);
	query_text(&q, baton_str_z(p->key_class));
	return query_run(&q);
}

/* Room for one more row, which is not counted yet. */
static struct queue_row *row_new(struct books *b)
{
	if (b->count == b->cap) {
		size_t cap = b->cap ? b->cap * 2 : 16;
		void *more =
			mem_resize(b->alloc, b->queues, b->cap, cap, sizeof(struct queue_row *));
		if (!more)
			return NULL;
		b->queues = more;
		b->cap = cap;
	}
	struct queue_row *row = mem_new(b->alloc, 1, sizeof *row);
	if (row)
		b->queues[b->count] = row;
	return row;
}

/* Takes the row that the query found, if it did. */
static enum baton_err row_take(struct books *b, struct query *q, struct queue_row **ret)
{
	*ret = NULL;
	if (!query_row(q))
		return query_end(q);
	struct queue_row *row = row_new(b);
	enum baton_err damaged = row ? queue_row_read(q, row) : BATON_OK;
	enum baton_err e = query_end_as(q, damaged);
	if (!row)
		return fail_memory(sizeof *row, "a queue");
	if (e != BATON_OK) {
		mem_free(b->alloc, row, 1, sizeof *row);
		return e;
	}
	b->count++;
	*ret = row;
	return BATON_OK;
}

enum baton_err books_queue(struct books *b, struct db *db, struct baton_str name,
                           struct queue_row **ret)
{
	for (size_t i = 0; i < b->count; i++) {
		if (baton_str_equal(queue_row_name(b->queues[i]), name)) {
			*ret = b->queues[i];
			return BATON_OK;
		}
	}
	struct query q = query_begin(db, SQL_QUEUE_READ);
	query_text(&q, name);
	return row_take(b, &q, ret);
}

enum baton_err books_queue_by_id(struct books *b, struct db *db, int64_t id, struct queue_row **ret)
{
	for (size_t i = 0; i < b->count; i++) {
		if (b->queues[i]->id == id) {
			*ret = b->queues[i];
			return BATON_OK;
		}
	}
	struct query q = query_begin(db, SQL_QUEUE_READ_ID);
	query_int(&q, id);
	enum baton_err e = row_take(b, &q, ret);
	if (e == BATON_OK && !*ret)
		e = fail(BATON_STORAGE, "store %s is damaged: queue %lld is gone", db->path,
		         (long long)id);
	return e;
}

enum baton_err books_queue_make(struct books *b, struct db *db, struct baton_str name,
                                const struct baton_queue_policy *policy, struct queue_row **ret)
{
	struct query q = query_begin(db, SQL_QUEUE_LAST);
	int64_t last = query_row(&q) ? column_int(&q, 0) : 0;
	enum baton_err e = query_end(&q);
	if (e != BATON_OK)
		return e;
	struct queue_row *row = row_new(b);
	if (!row)
		return fail_memory(sizeof *row, "a queue");
	row->id = last + 1;
	row->len = name.len;
	memcpy(row->name, name.ptr, name.len);
	row->policy = *policy;
	e = books_queue_write(db, row);
	if (e != BATON_OK) {
		mem_free(b->alloc, row, 1, sizeof *row);
		return e;
	}
	b->count++;
	*ret = row;
	return BATON_OK;
}

void books_shard(struct books *b)
{
	b->shards++;
	b->changed = true;
}

enum baton_err books_mark(const struct books *b, struct books_mark *ret)
{
	*ret = (struct books_mark){.seq = b->seq,
	                           .lane = b->lane,
	                           .count = b->count,
	                           .owner_count = b->owner_count};
	memcpy(ret->owners, b->owners, sizeof b->owners);
	ret->young_count = b->young_count;
	memcpy(ret->young, b->young, sizeof b->young);
	if (b->count == 0)
		return BATON_OK;
	ret->rows = mem_new(b->alloc, b->count, sizeof *ret->rows);
	if (!ret->rows)
		return fail_memory(b->count * sizeof *ret->rows, "a savepoint");
	for (size_t i = 0; i < b->count; i++)
		ret->rows[i] = *b->queues[i];
	return BATON_OK;
}

void books_back(struct books *b, const struct books_mark *mark)
{
	b->seq = mark->seq;
	b->lane = mark->lane;
	b->owner_count = mark->owner_count;
	b->asker_number = 0;
	b->young_count = mark->young_count;
	memcpy(b->young, mark->young, sizeof b->young);
	roster_forget(&b->roster);
	memcpy(b->owners, mark->owners, sizeof b->owners);
	while (b->count > mark->count) {
		b->count--;
		mem_free(b->alloc, b->queues[b->count], 1, sizeof **b->queues);
	}
	for (size_t i = 0; i < b->count; i++)
		*b->queues[i] = mark->rows[i];
}

void books_mark_done(const struct books *b, struct books_mark *mark)
{
	mem_free(b->alloc, mark->rows, mark->count, sizeof *mark->rows);
	mark->rows = NULL;
}
