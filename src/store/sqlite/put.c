/* Putting work into an SQLite file. */
#include <string.h>

#include "queue/batch.h"
#include "queue/place.h"
#include "queue/policy.h"
#include "store/refuse.h"
#include "store/sqlite/class.h"
#include "store/sqlite/fate.h"
#include "store/sqlite/lanes.h"
#include "store/sqlite/puts.h"
#include "store/sqlite/wishes.h"

#define KEY_SIZE 16 /* bytes of a digest that are stored */

struct source {
	uint8_t key[DIGEST_SIZE];
	uint8_t content[DIGEST_SIZE];
};

/* What is known about the source key. */
struct known {
	bool found;
	bool same; /* the content too */
	int64_t id;
	enum baton_batch_state state;
};

static enum baton_err state_by_id(struct sqlite_store *s, int64_t id, enum baton_batch_state *ret)
{
	struct batch_row b;
	struct baton_store_time due;
	int64_t seq;
	enum baton_err e = batch_seq_of(&s->db, id, &seq);
	*ret = BATON_BATCH_GONE;
	if (e != BATON_OK || seq == 0)
		return e;
	e = batch_need(&s->db, seq, &b);
	return e == BATON_OK ? batch_state(&s->db, &b, s->now, ret, &due) : e;
}

static enum baton_err source_look(struct sqlite_store *s, const struct source *source,
                                  struct known *ret)
{
	*ret = (struct known){.found = false};
	struct query q = query_begin(&s->db, SQL_SOURCE_READ);
	query_blob(&q, source->key, KEY_SIZE);
	if (query_row(&q)) {
		struct baton_str content = column_str(&q, 1);
		ret->id = column_int(&q, 0);
		ret->same = content.len == KEY_SIZE &&
		            memcmp(content.ptr, source->content, KEY_SIZE) == 0;
		ret->found =
			baton_store_time_live((struct baton_store_time){column_int(&q, 2)}, s->now);
	}
	enum baton_err e = query_end(&q);
	if (e != BATON_OK || ret->id == 0)
		return e;
	e = state_by_id(s, ret->id, &ret->state);
	ret->found = ret->found || ret->state != BATON_BATCH_GONE;
	return e;
}

static enum baton_err source_remember(struct sqlite_store *s, const struct source *source,
                                      int64_t id, struct baton_duration dedupe)
{
	struct query q = query_begin(&s->db, SQL_SOURCE_WRITE);
	query_blob(&q, source->key, KEY_SIZE);
	query_int(&q, id);
	query_blob(&q, source->content, KEY_SIZE);
	query_int(&q, baton_store_time_add(s->now, dedupe).ms);
	return query_run(&q);
}

static enum baton_err check_room(const struct queue_row *q)
{
	uint64_t waiting = (uint64_t)(q->tally.ready + q->tally.delayed);
	uint64_t max = q->policy.waiting_max;
	return max == 0 || waiting < max ? BATON_OK : refuse_full(queue_row_name(q), waiting, max);
}

static enum baton_err add_waiting(struct sqlite_store *s, const struct queue_row *q,
                                  struct baton_str line, int64_t *waiting)
{
	int64_t max = q->policy.key_waiting_max, here = 0, wishes = 0;
	enum baton_err e = key_waits(s, q, line, max, &here);
	if (e == BATON_OK)
		e = wish_count(s, q, line, max - here, &wishes);
	*waiting += here + wishes;
	return e;
}

/* Of a class, in all of its queues. */
static enum baton_err check_room_of_key(struct sqlite_store *s, const struct queue_row *q,
                                        struct baton_str key)
{
	int64_t max = q->policy.key_waiting_max, waiting = 0;
	struct class_queues others;
	struct queue_row *other;
	char text[LINE_NAME_MAX];
	const struct baton_str line = line_of_key(key, text);
	enum baton_err e = class_queues(&s->db, &q->policy, q->id, &others);
	if (e == BATON_OK)
		e = add_waiting(s, q, line, &waiting);
	for (size_t i = 0; i < others.count && e == BATON_OK && waiting < max; i++) {
		e = books_queue_by_id(&s->books, &s->db, others.list[i], &other);
		if (e == BATON_OK)
			e = add_waiting(s, other, line, &waiting);
	}
	if (e == BATON_OK && waiting >= max)
		e = refuse_key_full(queue_row_name(q), key, q->policy.key_waiting_max);
	return e;
}

/* Of each of its keys. What is delayed does not wait for them yet. */
static enum baton_err check_room_of_keys(struct sqlite_store *s, const struct queue_row *q,
                                         const struct baton_batch *b)
{
	struct baton_str rest = b->key, key;
	enum baton_err e = BATON_OK;
	if (q->policy.key_waiting_max == 0 ||
	    !baton_store_time_ready(batch_available(b, s->now), s->now))
		return BATON_OK;
	while (e == BATON_OK && keys_next(&rest, &key))
		e = check_room_of_key(s, q, key);
	return e;
}

/* Whether it may have both a lane and a key, or several, if it does. */
static enum baton_err check_guest(const struct queue_row *q, const struct baton_batch *b)
{
	const char *against = NULL;
	if (line_has_guest(b))
		against = policy_against_guests(&q->policy);
	return against ? refuse_guest(queue_row_name(q), b, against) : BATON_OK;
}

/* Work without a lane goes to one shard after the other, a whole transaction to the same; and so
 * does what stands together in a row, unless it is claimed from shards. */
static uint32_t shard_of(const struct sqlite_store *s, const struct queue_row *q,
                         const struct batch_row *b, bool together)
{
	struct baton_str line = batch_row_line(b);
	if (line.len > 0 && !(together && q->policy.mode != BATON_QUEUE_RUNNER))
		return place_of_line(queue_row_name(q), line, q->policy.shards);
	return s->books.turn % q->policy.shards;
}

static bool retry_is_given(const struct baton_retry *r)
{
	return r->attempts != 0;
}

static void row_make(const struct sqlite_store *s, const struct queue_row *q,
                     const struct baton_batch *b, struct batch_row *row)
{
	struct baton_store_time available = batch_available(b, s->now);
	row->seq = s->books.seq + 1;
	row->id = row->seq;
	row->queue = q->id;
	row->cls = b->cls;
	row->delivery = b->delivery;
	row->slot = b->slot;
	row->many = b->count > 1;
	row->priority = b->priority;
	row->put_at = s->now;
	row->due.ms = baton_store_time_ready(available, s->now) ? 0 : available.ms;
	row->has_retry = retry_is_given(&b->retry);
	row->retry = b->retry;
	struct baton_str line = line_name(b, (uint64_t)row->id, &q->policy, row->lane);
	row->lane_len = line.len;
	row->key_len = line_has_guest(b) ? lines_of_keys(b->key, row->key).len : 0;
	row->group_len = b->group.len;
	if (line.len > 0 && line.ptr != row->lane)
		memcpy(row->lane, line.ptr, line.len);
	if (b->group.len > 0)
		memcpy(row->group, b->group.ptr, b->group.len);
}

static enum baton_err store_new(struct sqlite_store *s, struct queue_row *q,
                                const struct baton_batch *b, struct baton_put *put)
{
	struct batch_row row;
	bool stays = true;
	row_make(s, q, b, &row);
	bool together = bulk_suits(q, &row, b);
	row.shard = shard_of(s, q, &row, together);
	enum baton_err e =
		together ? bulk_add(s, q, &row, b)
			 : batch_store(&s->db, &row, b->payloads, b->count, s->base.alloc);
	if (e == BATON_OK && row.key_len > 0 && !q->guests) {
		q->guests = true;
		e = books_queue_write(&s->db, q);
	}
	if (e != BATON_OK)
		return e;
	s->books.seq = row.seq;
	s->books.changed = true;
	q->changed = true;
	batch_id_print((uint64_t)row.seq, &put->id);
	put->existing = false;
	put->state = row.due.ms > 0 ? BATON_BATCH_DELAYED : BATON_BATCH_READY;
	if (row.due.ms > 0) {
		q->tally.delayed++;
		return RUN(&s->db, SQL_LATER_ADD, q->id, row.due.ms, row.seq, LATER_DELAY);
	}
	q->tally.ready++;
	e = wish_add(s, q, &row);
	if (e == BATON_OK && !together)
		e = lane_enter(s, q, &row, false, &stays);
	put->state = stays ? BATON_BATCH_READY : BATON_BATCH_SKIPPED;
	return e;
}

/* Looks before it writes: on BATON_INVALID, BATON_CONFLICT and BATON_FULL nothing is written. */
static enum baton_err put_one(struct sqlite_store *s, const struct baton_batch *b,
                              struct baton_put *put)
{
	struct baton_queue_policy policy = baton_queue_policy_default();
	struct queue_row *q;
	struct source source;
	struct known known = {.found = false};
	enum baton_err e = books_queue(&s->books, &s->db, b->queue, &q);
	if (e == BATON_OK)
		e = batch_check_payloads(b, q ? q->policy.payload_max : policy.payload_max);
	if (e == BATON_OK && b->source.len > 0) {
		batch_source_digest(b, source.key);
		batch_digest(b, source.content);
		e = source_look(s, &source, &known);
	}
	if (e != BATON_OK)
		return e;
	if (known.found && !known.same)
		return refuse_conflict(b, (uint64_t)known.id);
	if (known.found) {
		batch_id_print((uint64_t)known.id, &put->id);
		put->state = known.state;
		put->existing = true;
		return BATON_OK;
	}
	e = q ? check_room(q) : books_queue_make(&s->books, &s->db, b->queue, &policy, &q);
	if (e == BATON_OK)
		e = check_guest(q, b);
	if (e == BATON_OK)
		e = check_room_of_keys(s, q, b);
	if (e == BATON_OK)
		e = store_new(s, q, b, put);
	if (e == BATON_OK && b->source.len > 0)
		e = source_remember(s, &source, s->books.seq, q->policy.dedupe);
	return e;
}

enum baton_err put_all(struct sqlite_store *s, const struct baton_batch *batches, size_t count,
                       struct baton_put *puts)
{
	for (size_t i = 0; i < count; i++) {
		struct baton_batch b = batch_filled(&batches[i]);
		struct baton_put ignored;
		enum baton_err e = put_one(s, &b, puts ? &puts[i] : &ignored);
		if (e != BATON_OK)
			return count > 1 ? store_name_batch(e, i) : e;
	}
	return BATON_OK;
}

struct put_args {
	const struct baton_batch *batches;
	size_t count;
	struct baton_put *puts;
};

static enum baton_err put_run(void *store, void *args)
{
	struct sqlite_store *s = store;
	const struct put_args *a = args;
	struct books_mark mark;
	if (a->count == 1)
		return put_all(s, a->batches, 1, a->puts);
	enum baton_err e = sqlite_save_begin(s, &mark);
	if (e != BATON_OK)
		return e;
	return sqlite_save_end(s, &mark, put_all(s, a->batches, a->count, a->puts));
}

enum baton_err sqlite_put(struct baton_store *store, const struct baton_batch *batches,
                          size_t count, struct baton_put *puts)
{
	struct put_args args = {batches, count, puts};
	return sqlite_write_kind((struct sqlite_store *)store, REQUEST_PUT, put_run, &args);
}
