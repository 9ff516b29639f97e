/* Writing back what has changed on a desk: one statement for all rows of a kind. */
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/mem.h"
#include "queue/line.h"
#include "queue/policy.h"
#include "queue/rate.h"
#include "store/memory/lane.h"
#include "store/memory/queue.h"
#include "store/parcel.h"
#include "store/postgres/bulk.h"
#include "store/postgres/keyed.h"
#include "store/postgres/steps.h"

#define SENT_ENOUGH 128 /* before answers are read */
#define DEAD_FEW 8      /* that are walked over in the line of a lane */
#define LOAD_MIN 1000   /* new rows that are copied instead of sent as arrays */

/* Their queue, and the pool, are known as numbers. */
#define COPY_BATCHES                                                                          \
	"COPY baton.batch(seq, queue, lane, shard, head, line, state, rank, flags, put_at, "  \
	"due, grp, retry, attempts, fence, cancel, holds, blocks, error, payload, ended_at, " \
	"until, rival, guest, keeps, pool) FROM STDIN (FORMAT binary)"
#define BATCH_POOL 25

struct writer {
	struct desk *d;
	struct conn *c;
	bool any;
	int told; /* which answer has the number of the transaction; -1: none */
	bool sure;
};

static void args_new(struct writer *w, struct args *a, int count)
{
	args_init(a, w->c->alloc, count);
}

static void send(struct writer *w, enum sql sql, struct args *a)
{
	int answer = conn_send(w->c, sql, a);
	if (sql == SQL_QUEUE_COUNT_ONE || sql == SQL_QUEUE_COUNT_SURE)
		w->told = answer;
	w->any = true;
}

static void arrays(struct args *a, const enum arg_type *types)
{
	for (int i = 0; i < a->count; i++)
		arg_array(a, i, types[i]);
}

static void retry_arg(struct args *a, int at, const struct baton_retry *r)
{
	arg_int(a, at, r->attempts);
	arg_int(a, at + 1, r->backoff);
	arg_int(a, at + 2, r->base.ns);
	arg_int(a, at + 3, r->cap.ns);
}

static void policy_args(struct args *a, struct baton_str name, const struct baton_queue_policy *p)
{
	arg_text(a, 0, name);
	arg_int(a, 1, stripe_of(name));
	arg_int(a, 2, p->mode);
	arg_int(a, 3, p->shards);
	arg_bool(a, 4, p->paused);
	arg_int(a, 5, p->payload_max);
	arg_int(a, 6, (int64_t)p->waiting_max);
	retry_arg(a, 7, &p->retry);
	retry_arg(a, 11, &p->retry_lane);
	arg_int(a, 15, p->on_retry);
	arg_int(a, 16, p->on_dead);
	arg_int(a, 17, p->dedupe.ns);
	arg_int(a, 18, p->keep.ns);
}

static enum baton_err queue_add(struct writer *w, const struct queue *q)
{
	struct args a;
	args_new(w, &a, 38);
	policy_args(&a, q->name, &q->is.policy);
	for (int state = BATON_BATCH_READY; state < BATON_BATCH_GONE; state++)
		arg_int(&a, 18 + state, (int64_t)q->is.in[state]);
	arg_int(&a, 25, (int64_t)q->is.done);
	arg_int(&a, 26, (int64_t)q->is.failed);
	arg_int(&a, 27, q->is.policy.key_limit);
	arg_int(&a, 28, q->is.policy.hold_on_retry);
	arg_int(&a, 29, q->is.policy.on_conflict);
	arg_int(&a, 30, q->is.policy.key_waiting_max);
	arg_int(&a, 31, q->is.policy.key_fair);
	arg_int(&a, 32, (int64_t)q->is.policy.key_rate.starts);
	arg_int(&a, 33, q->is.policy.key_rate.window.ns);
	arg_int(&a, 34, q->is.policy.key_ttl.ns);
	arg_bool(&a, 35, q->is.guests);
	arg_int(&a, 36, q->is.policy.key_scope);
	arg_text(&a, 37, baton_str_z(q->is.policy.key_class));
	send(w, SQL_QUEUE_ADD, &a);
	return w->c->sent > SENT_ENOUGH ? conn_round(w->c) : BATON_OK;
}

static enum baton_err queues_add(struct writer *w)
{
	enum baton_err e = BATON_OK;
	for (struct row *row = w->d->m->queues.oldest; row && e == BATON_OK; row = row->newer) {
		if (row->kept == 0 && row->noted)
			e = queue_add(w, (struct queue *)row);
	}
	return e;
}

static enum baton_err policies_set(struct writer *w)
{
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < w->d->queue_count && e == BATON_OK; i++) {
		const struct read_queue *read = &w->d->queues[i];
		const struct queue *q = read->row;
		struct args a;
		if (!q->row.noted ||
		    (read->guests == q->is.guests && policy_equal(&read->policy, &q->is.policy)))
			continue;
		args_new(w, &a, 30);
		policy_args(&a, q->name, &q->is.policy);
		arg_int(&a, 19, q->is.policy.key_limit);
		arg_int(&a, 20, q->is.policy.hold_on_retry);
		arg_int(&a, 21, q->is.policy.on_conflict);
		arg_int(&a, 22, q->is.policy.key_waiting_max);
		arg_int(&a, 23, q->is.policy.key_fair);
		arg_int(&a, 24, (int64_t)q->is.policy.key_rate.starts);
		arg_int(&a, 25, q->is.policy.key_rate.window.ns);
		arg_int(&a, 26, q->is.policy.key_ttl.ns);
		arg_bool(&a, 27, q->is.guests);
		arg_int(&a, 28, q->is.policy.key_scope);
		arg_text(&a, 29, baton_str_z(q->is.policy.key_class));
		send(w, SQL_QUEUE_SET, &a);
		e = w->c->sent > SENT_ENOUGH ? conn_round(w->c) : BATON_OK;
	}
	return e;
}

bool desk_counts_changed(const struct read_queue *read)
{
	const struct queue *q = read->row;
	return memcmp(read->in, q->is.in, sizeof read->in) != 0 || read->done != q->is.done ||
	       read->failed != q->is.failed || read->reach.top != q->is.reach.top ||
	       read->reach.floor != q->is.reach.floor || read->tended_ms < read->since_ms;
}

static void counts_add(struct args *a, const struct read_queue *read)
{
	const struct queue *q = read->row;
	add_int(a, 0, (int64_t)q->row.kept);
	for (int state = BATON_BATCH_READY; state < BATON_BATCH_GONE; state++)
		add_int(a, state, (int64_t)(q->is.in[state] - read->in[state]));
	add_int(a, 7, (int64_t)(q->is.done - read->done));
	add_int(a, 8, (int64_t)(q->is.failed - read->failed));
	add_int(a, 9, (int64_t)q->is.reach.top);
	add_int(a, 10, (int64_t)q->is.reach.floor);
	add_int(a, 11, read->tended_ms);
}

static void count_set_one(struct writer *w, const struct read_queue *read)
{
	struct args a;
	const struct queue *q = read->row;
	const bool sure = w->d->recalled;
	args_new(w, &a, sure ? 17 : 13);
	arg_int(&a, 0, (int64_t)q->row.kept);
	arg_int(&a, 1, (int64_t)read->counts);
	for (int state = BATON_BATCH_READY; state < BATON_BATCH_GONE; state++)
		arg_int(&a, 1 + state, (int64_t)(q->is.in[state] - read->in[state]));
	arg_int(&a, 8, (int64_t)(q->is.done - read->done));
	arg_int(&a, 9, (int64_t)(q->is.failed - read->failed));
	arg_int(&a, 10, (int64_t)q->is.reach.top);
	arg_int(&a, 11, (int64_t)q->is.reach.floor);
	arg_int(&a, 12, read->tended_ms);
	if (sure) {
		arg_int(&a, 13, read->since_ms);
		arg_int(&a, 14, (int64_t)read->version);
		arg_int(&a, 15, pg_step_count);
		if (w->d->m->seq != w->d->last)
			arg_int(&a, 16, (int64_t)w->d->last);
	}
	send(w, sure ? SQL_QUEUE_COUNT_SURE : SQL_QUEUE_COUNT_ONE, &a);
	w->sure = true;
}

static void counts_set(struct writer *w)
{
	static const enum arg_type types[] = {ARG_INT4, ARG_INT8, ARG_INT8, ARG_INT8,
	                                      ARG_INT8, ARG_INT8, ARG_INT8, ARG_INT8,
	                                      ARG_INT8, ARG_INT8, ARG_INT8, ARG_INT8};
	struct args a;
	const struct read_queue *only = NULL;
	args_new(w, &a, 12);
	arrays(&a, types);
	for (size_t i = 0; i < w->d->queue_count; i++) {
		if (!desk_counts_changed(&w->d->queues[i]))
			continue;
		only = &w->d->queues[i];
		counts_add(&a, only);
	}
	/* Those who wait look whether a queue has changed, or this. */
	if (a.list[0].count == 1)
		count_set_one(w, only);
	else if (a.list[0].count > 1)
		send(w, SQL_QUEUE_COUNT, &a);
	else if (w->d->news_count > 0)
		send(w, SQL_RING, NULL);
	args_done(&a);
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

/* In a lane settle() has the last word; what is right already it need not write again. */
static bool head_of(const struct desk *d, const struct batch *b)
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

static void add_time(struct args *a, int at, struct baton_store_time t)
{
	if (t.ms > 0)
		add_int(a, at, t.ms);
	else
		add_null(a, at);
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
	add_bool(a, 4, head_of(w->d, b));
	add_bool(a, 5, line_of(b));
	add_int(a, 6, b->is.state);
	add_int(a, 7, BATON_PRIORITY_MAX - (int64_t)b->put.priority);
	add_int(a, 8, desk_flags(&b->put));
	add_int(a, 9, b->put_at.ms);
	if (b->is.state == BATON_BATCH_READY)
		add_null(a, 10);
	else
		add_time(a, 10, b->is.due);
	add_optional(a, 11, b->put.group);
	add_retry(a, 12, &b->put.retry);
	add_int(a, 13, b->is.attempts);
	add_int(a, 14, (int64_t)b->is.fence);
	add_bool(a, 15, b->is.cancel);
	add_bool(a, 16, b->is.holds);
	add_bool(a, 17, b->is.blocks);
	add_text(a, 18, b->is.error);
	add_time(a, 20, b->is.ended_at);
	add_time(a, 21, b->is.until);
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
	add_bool(a, 3, head_of(d, b));
	add_bool(a, 4, line_of(b));
	add_int(a, 5, b->is.state);
	add_time(a, 6, b->is.due);
	add_int(a, 7, b->is.attempts);
	add_int(a, 8, (int64_t)b->is.fence);
	add_bool(a, 9, b->is.cancel);
	add_bool(a, 10, b->is.holds);
	add_bool(a, 11, b->is.blocks);
	add_text(a, 12, b->is.error);
	add_text(a, 13, b->is.result);
	add_time(a, 14, b->is.ended_at);
	add_time(a, 15, b->is.until);
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

static enum baton_err batches_write(struct writer *w)
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
	args_new(w, &new, load ? BATCH_POOL + 1 : BATCH_POOL);
	args_new(w, &old, 18);
	arrays(&new, new_types);
	if (load)
		new.list[1].type = ARG_INT4;
	arrays(&old, old_types);
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
		send(w, SQL_BATCH_SET, &old);
	if (e == BATON_OK && load)
		e = batches_load(w, &new);
	else if (e == BATON_OK && new.list[0].count > 0)
		send(w, SQL_BATCH_ADD, &new);
	args_done(&new);
	args_done(&old);
	return e;
}

/* The batches of the claim as an array is written. */
static void add_seqs(struct args *a, int at, const struct claim *c, struct buf *text)
{
	const char *before = "{";
	buf_reset(text);
	for (const struct batch *b = c->lane->first; b; b = b->next) {
		if (b->is.claim != c)
			continue;
		buf_printf(text, "%s%" PRIu64, before, b->is.seq);
		before = ",";
	}
	if (buf_printf(text, "}") == BATON_OK)
		add_str(a, at, buf_str(text));
	else
		a->list[at].bytes.err = text->err;
}

static void claim_add(struct args *a, const struct claim *c, struct buf *text)
{
	char owner[BATON_OWNER_TEXT];
	add_int(a, 0, (int64_t)c->name.head);
	add_int(a, 1, (int64_t)c->name.fence);
	add_str(a, 2, (struct baton_str){(const char *)c->token.bytes, sizeof c->token.bytes});
	add_str(a, 3, baton_str_z(baton_owner_print(&c->owner, owner)));
	add_str(a, 4, c->lane->queue->name);
	add_optional(a, 5, c->lane->name);
	add_int(a, 6, (int64_t)c->granter);
	add_int(a, 7, c->claimed_at.ms);
	add_int(a, 8, c->is.expires.ms);
	add_bool(a, 9, c->is.offered);
	add_seqs(a, 10, c, text);
	char guest[LINE_KEYS_MAX];
	add_optional(a, 11, memory_claim_guest(c, guest));
}

static void claim_set(struct args *a, const struct claim *c, struct buf *text)
{
	add_int(a, 0, (int64_t)c->name.head);
	add_int(a, 1, (int64_t)c->name.fence);
	add_int(a, 2, c->is.expires.ms);
	add_bool(a, 3, c->is.offered);
	add_seqs(a, 4, c, text);
}

static bool stands_in_bulk(const struct claim *c)
{
	return c->lane->first && (c->lane->first->row.kept & IN_BULK);
}

static enum baton_err claims_write(struct writer *w)
{
	static const enum arg_type new_types[] = {ARG_INT8, ARG_INT8, ARG_BYTES, ARG_TEXT,
	                                          ARG_TEXT, ARG_TEXT, ARG_INT8,  ARG_INT8,
	                                          ARG_INT8, ARG_BOOL, ARG_TEXT,  ARG_TEXT};
	static const enum arg_type old_types[] = {ARG_INT8, ARG_INT8, ARG_INT8, ARG_BOOL, ARG_TEXT};
	struct args new, old;
	struct buf text;
	buf_init(&text, w->c->alloc, (size_t)1 << 24);
	args_new(w, &new, 12);
	args_new(w, &old, 5);
	arrays(&new, new_types);
	arrays(&old, old_types);
	for (struct row *row = w->d->m->claims.oldest; row; row = row->newer) {
		const struct claim *claim = (struct claim *)row;
		if (!row->noted)
			continue;
		if (!claim->is.offered)
			desk_until(w->d, claim->lane->queue, claim->is.expires);
		if (stands_in_bulk(claim))
			continue;
		if (row->kept == 0)
			claim_add(&new, claim, &text);
		else
			claim_set(&old, claim, &text);
	}
	enum baton_err e = args_check(&new);
	if (e == BATON_OK)
		e = args_check(&old);
	if (e == BATON_OK && old.list[0].count > 0)
		send(w, SQL_CLAIM_SET, &old);
	if (e == BATON_OK && new.list[0].count > 0)
		send(w, SQL_CLAIM_ADD, &new);
	args_done(&new);
	args_done(&old);
	buf_done(&text);
	return e;
}

static void sources_write(struct writer *w)
{
	static const enum arg_type types[] = {ARG_BYTES, ARG_BYTES, ARG_INT8, ARG_INT8};
	struct args a;
	args_new(w, &a, 4);
	arrays(&a, types);
	for (struct row *row = w->d->m->sources.oldest; row; row = row->newer) {
		const struct source *s = (struct source *)row;
		if (!row->noted)
			continue;
		add_str(&a, 0, (struct baton_str){(const char *)s->key, DIGEST_SIZE});
		add_str(&a, 1, (struct baton_str){(const char *)s->is.content, DIGEST_SIZE});
		add_int(&a, 2, (int64_t)s->is.id);
		add_int(&a, 3, s->is.until.ms);
	}
	if (a.list[0].count > 0)
		send(w, SQL_SOURCE_SET, &a);
	args_done(&a);
}

static void add_id(struct args *a, int at, const struct baton_id *id)
{
	add_str(a, at, (struct baton_str){(const char *)id->bytes, sizeof id->bytes});
}

/* What nobody has held, such as a shard, has no owner. */
static void lease_add(struct args *a, const struct lease *l)
{
	static const struct baton_id none;
	const struct lease_row *row = &l->is.row;
	char owner[BATON_OWNER_TEXT] = "";
	if (!baton_id_equal(&row->owner.incarnation, &none))
		baton_owner_print(&row->owner, owner);
	add_str(a, 0, l->subject);
	add_bool(a, 1, row->held);
	add_str(a, 2, baton_str_z(owner));
	add_id(a, 3, &row->token);
	add_id(a, 4, &row->nonce);
	add_int(a, 5, (int64_t)row->fence);
	add_int(a, 6, (int64_t)l->is.counter);
	add_int(a, 7, row->claimed_at.ms);
	add_int(a, 8, row->expires_at.ms);
	if (l->is.runner > 0)
		add_int(a, 9, (int64_t)l->is.runner);
	else
		add_null(a, 9);
}

/* Those that get another fence: nobody may have been admitted under the old one. */
static void guard(struct writer *w)
{
	struct args a;
	args_new(w, &a, 1);
	arg_array(&a, 0, ARG_TEXT);
	for (struct row *row = w->d->m->leases.oldest; row; row = row->newer) {
		const struct lease *l = (struct lease *)row;
		if (row->noted && row->kept > 0 && row->kept != 1 + l->is.row.fence)
			add_str(&a, 0, l->subject);
	}
	if (a.list[0].count > 0)
		send(w, SQL_GUARD, &a);
	args_done(&a);
}

/* Of one subject. Whoever else holds it has another token. */
static bool is_same_hold(const struct lease_row *a, const struct lease_row *b)
{
	return a->held == b->held && a->fence == b->fence &&
	       baton_id_equal(&a->owner.incarnation, &b->owner.incarnation) &&
	       baton_id_equal(&a->token, &b->token) && baton_id_equal(&a->nonce, &b->nonce) &&
	       a->claimed_at.ms == b->claimed_at.ms && a->expires_at.ms == b->expires_at.ms;
}

/* Whether nothing but the count of its claims has changed. */
static const struct read_lease *is_only_counted(const struct desk *d, const struct lease *l)
{
	for (size_t i = 0; i < d->lease_count; i++) {
		const struct read_lease *read = &d->leases[i];
		if (read->row == l)
			return is_same_hold(&read->was, &l->is.row) &&
			                       read->runner == l->is.runner &&
			                       l->is.counter > read->counter
			               ? read
			               : NULL;
	}
	return NULL;
}

static void counter_set_one(struct writer *w, const struct read_lease *read)
{
	struct args a;
	args_new(w, &a, 4);
	arg_text(&a, 0, read->row->subject);
	arg_int(&a, 1, (int64_t)read->row->is.row.fence);
	arg_int(&a, 2, (int64_t)read->counter);
	arg_int(&a, 3, (int64_t)read->row->is.counter);
	send(w, SQL_COUNTER_SET_ONE, &a);
}

static void counters_write(struct writer *w)
{
	static const enum arg_type types[] = {ARG_TEXT, ARG_INT8, ARG_INT8, ARG_INT8};
	struct args a;
	const struct read_lease *only = NULL;
	args_new(w, &a, 4);
	arrays(&a, types);
	for (struct row *row = w->d->m->leases.oldest; row; row = row->newer) {
		const struct lease *l = (struct lease *)row;
		const struct read_lease *read = row->noted ? is_only_counted(w->d, l) : NULL;
		if (!read)
			continue;
		add_str(&a, 0, l->subject);
		add_int(&a, 1, (int64_t)l->is.row.fence);
		add_int(&a, 2, read->first ? 0 : (int64_t)read->counter);
		add_int(&a, 3, (int64_t)l->is.counter);
		only = read;
	}
	if (a.list[0].count == 1 && !only->first)
		counter_set_one(w, only);
	else if (a.list[0].count > 0)
		send(w, SQL_COUNTER_SET, &a);
	args_done(&a);
}

static void leases_write(struct writer *w)
{
	static const enum arg_type types[] = {ARG_TEXT, ARG_BOOL, ARG_TEXT, ARG_BYTES, ARG_BYTES,
	                                      ARG_INT8, ARG_INT8, ARG_INT8, ARG_INT8,  ARG_INT8};
	struct args a;
	args_new(w, &a, 10);
	arrays(&a, types);
	for (struct row *row = w->d->m->leases.oldest; row; row = row->newer) {
		if (row->noted && !is_only_counted(w->d, (struct lease *)row))
			lease_add(&a, (struct lease *)row);
	}
	if (a.list[0].count > 0)
		send(w, SQL_LEASE_SET, &a);
	args_done(&a);
}

static void schedules_write(struct writer *w)
{
	for (struct row *row = w->d->m->schedules.oldest; row; row = row->newer) {
		const struct schedule *s = (struct schedule *)row;
		struct args a;
		if (!row->noted)
			continue;
		args_new(w, &a, 10);
		arg_text(&a, 0, s->put.name);
		arg_text(&a, 1, s->put.cron);
		arg_text(&a, 2, s->put.zone);
		arg_int(&a, 3, s->put.missed);
		arg_text(&a, 4, s->put.queue);
		arg_text(&a, 5, s->put.lane);
		arg_int(&a, 6, s->put.priority);
		arg_text(&a, 7, s->put.payload);
		arg_int(&a, 8, s->is.last.ms);
		arg_int(&a, 9, s->is.next.ms);
		send(w, SQL_SCHEDULE_SET, &a);
	}
}

static void runners_write(struct writer *w)
{
	struct args a;
	for (struct row *row = w->d->m->runners.oldest; row; row = row->newer) {
		const struct runner_row *r = &((struct runner *)row)->put;
		char owner[BATON_OWNER_TEXT];
		if (!row->noted || row->kept > 0)
			continue;
		args_new(w, &a, 16);
		arg_int(&a, 0, (int64_t)r->number);
		arg_text(&a, 1, baton_str_z(r->name));
		arg_int(&a, 2, r->slot);
		arg_text(&a, 3, baton_str_z(r->endpoint));
		arg_text(&a, 4, baton_str_z(r->labels));
		arg_text(&a, 5, baton_str_z(baton_owner_print(&r->owner, owner)));
		arg_int(&a, 6, r->weight);
		arg_int(&a, 7, r->ttl.ns);
		arg_int(&a, 8, r->since.ms);
		arg_int(&a, 9, 1);
		arg_text(&a, 10, baton_str_z(r->host));
		arg_text(&a, 11, baton_str_z(r->queues));
		arg_text(&a, 12, baton_str_z(r->life));
		arg_int(&a, 13, r->guardian);
		arg_int(&a, 14, ((struct runner *)row)->is.wish);
		arg_text(&a, 15, baton_str_z(((struct runner *)row)->is.state));
		send(w, SQL_RUNNER_ADD, &a);
	}
	if (w->d->m->runner == w->d->last_runner)
		return;
	args_new(w, &a, 1);
	arg_int(&a, 0, (int64_t)w->d->m->runner);
	send(w, SQL_RUNNER_LAST, &a);
}

static void numbers_gone(struct writer *w, enum sql sql, const struct nums *first,
                         const struct nums *second)
{
	struct args a;
	if (first->count == 0)
		return;
	args_new(w, &a, second ? 2 : 1);
	arg_array(&a, 0, ARG_INT8);
	if (second)
		arg_array(&a, 1, ARG_INT8);
	for (size_t i = 0; i < first->count; i++) {
		add_int(&a, 0, (int64_t)first->list[i]);
		if (second)
			add_int(&a, 1, (int64_t)second->list[i]);
	}
	send(w, sql, &a);
}

static void schedules_gone(struct writer *w)
{
	struct args a;
	const struct strs *names = &w->d->gone_schedules;
	if (names->count == 0)
		return;
	args_new(w, &a, 1);
	arg_array(&a, 0, ARG_TEXT);
	for (size_t i = 0; i < names->count; i++)
		add_str(&a, 0, names->list[i]);
	send(w, SQL_SCHEDULE_DROP, &a);
}

/* Whether a batch that was there before has done more than to be claimed. */
static bool has_moved(const struct batch *b)
{
	return b->row.noted && b->row.kept > 0 &&
	       (b->row.kept != b->is.seq || b->is.state != BATON_BATCH_CLAIMED);
}

/* Whether the rows of a lane, as they will be, say of the right one that a claim can begin with it.
 * Nothing of it is gone, and what was read of it begins with the first, so that is known. */
static bool is_led_right(const struct desk *d, const struct lane *lane)
{
	const struct line line = memory_line_look(lane, d->now);
	if (lane->queue->is.guests)
		return false;
	for (const struct batch *b = lane->first; b; b = b->next) {
		bool is = b->row.noted ? head_of(d, b) : b->was_head;
		if (has_moved(b) || is != (line.free && line.first == b))
			return false;
	}
	return true;
}

static bool is_led(const struct desk *d, struct lane *lane)
{
	if (lane->led == LED_UNKNOWN)
		lane->led = is_led_right(d, lane) ? LED_RIGHT : LED_WRONG;
	return lane->led == LED_RIGHT;
}

/* Whether nothing is in the lane any more, and little is dead in it: else settle() sees to that. */
static bool is_empty(const struct desk *d, const struct touched *t)
{
	const struct queue *q = memory_queue_find(d->m, t->queue);
	return d->around && q && !q->is.guests && d->dead <= DEAD_FEW * (int64_t)d->lane_count;
}

/* Those with keys that nobody else has need no line, and some lanes are right as they are. */
static bool is_settled(const struct desk *d, const struct touched *t)
{
	if (line_is_keyed(t->lane) && d->shared == 0)
		return false;
	struct lane *lane = memory_lane_find(d->m, t->queue, t->lane);
	if (line_is_keyed(t->lane))
		return lane && keyed_stands_in_bulk(d, lane);
	if (!lane)
		return is_empty(d, t);
	return !t->left && is_led(d, lane);
}

static void settle(struct writer *w)
{
	struct args a;
	args_new(w, &a, 3);
	arg_array(&a, 0, ARG_TEXT);
	arg_array(&a, 1, ARG_TEXT);
	for (size_t i = 0; i < w->d->lane_count; i++) {
		if (is_settled(w->d, &w->d->lanes[i]))
			continue;
		add_str(&a, 0, w->d->lanes[i].queue);
		add_str(&a, 1, w->d->lanes[i].lane);
	}
	arg_int(&a, 2, (int64_t)w->d->m->batches.count);
	if (a.list[0].count > 0)
		send(w, SQL_SETTLE, &a);
	args_done(&a);
}

/* After all heads are as they should be. */
static void raise_lows(struct writer *w)
{
	static const enum arg_type types[] = {ARG_INT4, ARG_INT4, ARG_INT4};
	struct args a;
	if (w->d->far_count == 0 || !w->any)
		return;
	args_new(w, &a, 3);
	arrays(&a, types);
	for (size_t i = 0; i < w->d->far_count; i++) {
		add_int(&a, 0, w->d->fars[i].queue);
		add_int(&a, 1, w->d->fars[i].pool);
		add_int(&a, 2, w->d->fars[i].rank);
	}
	send(w, SQL_RAISE, &a);
}

static bool other_limit(const struct baton_queue_policy *a, const struct baton_queue_policy *b)
{
	return a->key_limit != b->key_limit || !rate_equal(&a->key_rate, &b->key_rate);
}

static bool other_turns(const struct baton_queue_policy *a, const struct baton_queue_policy *b)
{
	return a->key_fair != b->key_fair;
}

/* Where something about keys has changed. */
static void settle_all(struct writer *w, enum sql sql,
                       bool (*differs)(const struct baton_queue_policy *a,
                                       const struct baton_queue_policy *b))
{
	struct args a;
	args_new(w, &a, 1);
	arg_array(&a, 0, ARG_TEXT);
	for (size_t i = 0; i < w->d->queue_count; i++) {
		const struct read_queue *read = &w->d->queues[i];
		if (differs(&read->policy, &read->row->is.policy))
			add_str(&a, 0, read->row->name);
	}
	if (a.list[0].count > 0)
		send(w, sql, &a);
	args_done(&a);
}

/* The turns that lines have got. */
static void paces_write(struct writer *w)
{
	static const enum arg_type types[] = {ARG_TEXT, ARG_TEXT, ARG_INT8};
	struct args a;
	args_new(w, &a, 3);
	arrays(&a, types);
	for (struct row *row = w->d->m->lanes.oldest; row; row = row->newer) {
		const struct lane *lane = (struct lane *)row;
		if (!row->noted || lane->is.turn == row->kept)
			continue;
		add_str(&a, 0, lane->queue->name);
		add_str(&a, 1, lane->name);
		add_int(&a, 2, (int64_t)lane->is.turn);
	}
	if (a.list[0].count > 0)
		send(w, SQL_PACE_SET, &a);
	args_done(&a);
}

static void rate_add(struct args *a, const struct rate *rate, struct buf *text)
{
	const struct baton_key_rate *is = &rate->queue->is.policy.key_rate;
	const char *before = "{";
	buf_reset(text);
	for (size_t i = 0; i < rate->count; i++) {
		buf_printf(text, "%s%" PRId64, before, rate->starts[i].ms);
		before = ",";
	}
	add_str(a, 0, rate->queue->name);
	add_str(a, 1, rate->name);
	add_time(a, 2, rate->is.until);
	add_int(a, 3, rate_over(is, rate->starts, rate->count).ms);
	if (buf_printf(text, "}") == BATON_OK)
		add_str(a, 4, buf_str(text));
	else
		a->list[4].bytes.err = text->err;
}

/* Those of keys of a class are in one of its queues: that which has claimed last. */
static void rates_gather(struct writer *w)
{
	struct args a;
	args_new(w, &a, 2);
	arg_array(&a, 0, ARG_TEXT);
	arg_array(&a, 1, ARG_TEXT);
	for (struct row *row = w->d->m->rates.oldest; row; row = row->newer) {
		const struct rate *rate = (struct rate *)row;
		if (!row->noted || !policy_has_class(&rate->queue->is.policy))
			continue;
		add_str(&a, 0, rate->queue->name);
		add_str(&a, 1, rate->name);
	}
	if (a.list[0].count > 0)
		send(w, SQL_RATE_GATHER, &a);
	args_done(&a);
}

/* The starts that keys have had, and how long they wait. */
static enum baton_err rates_write(struct writer *w)
{
	static const enum arg_type types[] = {ARG_TEXT, ARG_TEXT, ARG_INT8, ARG_INT8, ARG_TEXT};
	struct args a;
	struct buf text;
	buf_init(&text, w->c->alloc, (size_t)1 << 20);
	args_new(w, &a, 5);
	arrays(&a, types);
	for (struct row *row = w->d->m->rates.oldest; row; row = row->newer) {
		const struct rate *rate = (struct rate *)row;
		if (!row->noted)
			continue;
		if (rate->is.until.ms > 0)
			desk_until(w->d, rate->queue, rate->is.until);
		rate_add(&a, rate, &text);
	}
	enum baton_err e = args_check(&a);
	if (e == BATON_OK && a.list[0].count > 0)
		send(w, SQL_RATE_SET, &a);
	args_done(&a);
	buf_done(&text);
	return e;
}

/* What the rate of a queue is now changes what its keys may. */
static void rates_settle(struct writer *w)
{
	struct args a;
	args_new(w, &a, 3);
	arg_array(&a, 0, ARG_TEXT);
	arg_array(&a, 1, ARG_INT8);
	arg_int(&a, 2, w->d->now.ms);
	for (size_t i = 0; i < w->d->queue_count; i++) {
		const struct read_queue *read = &w->d->queues[i];
		const struct baton_key_rate *was = &read->policy.key_rate;
		if (rate_equal(was, &read->row->is.policy.key_rate))
			continue;
		add_str(&a, 0, read->row->name);
		add_int(&a, 1, baton_store_time_add((struct baton_store_time){0}, was->window).ms);
	}
	if (a.list[0].count > 0)
		send(w, SQL_SETTLE_RATE, &a);
	args_done(&a);
}

static bool takes_turns(const struct desk *d, const struct touched *t)
{
	const struct queue *q = memory_queue_find(d->m, t->queue);
	return q && line_takes_turns(t->lane, &q->is.policy);
}

/* Those of keys that nobody may have any more. */
static void paces_leave(struct writer *w)
{
	struct args a;
	args_new(w, &a, 2);
	arg_array(&a, 0, ARG_TEXT);
	arg_array(&a, 1, ARG_TEXT);
	for (size_t i = 0; i < w->d->lane_count; i++) {
		if (!takes_turns(w->d, &w->d->lanes[i]))
			continue;
		add_str(&a, 0, w->d->lanes[i].queue);
		add_str(&a, 1, w->d->lanes[i].lane);
	}
	if (a.list[0].count > 0)
		send(w, SQL_PACE_LEAVE, &a);
	args_done(&a);
}

/* The numbers that the calls were given are now really drawn; if others drew some meanwhile the
 * transaction fails, and is done again with numbers that are drawn first. */
static void draw(struct writer *w)
{
	struct args a;
	if (!w->d->expects || w->d->m->seq == w->d->last)
		return;
	args_new(w, &a, 2);
	arg_int(&a, 0, (int64_t)w->d->last + 1);
	arg_int(&a, 1, (int64_t)(w->d->m->seq - w->d->last));
	send(w, SQL_DRAW_EXPECTED, &a);
}

/* Rows of several batches, and the claims on them. */
static enum baton_err bulk_write(struct writer *w)
{
	struct bulk_writer b = {w->d, w->c, false};
	bulk_ends_write(&b);
	enum baton_err e = bulk_batches_write(&b);
	if (e == BATON_OK)
		e = bulk_claims_write(&b);
	if (e == BATON_OK)
		e = bulk_answers_write(&b);
	w->any = w->any || b.any;
	return e;
}

enum baton_err desk_write(struct desk *d, struct conn *c, struct written *ret)
{
	struct writer w = {d, c, false, -1, false};
	if (!d->memory)
		return fail_memory(1, "a transaction");
	enum baton_err e = queues_add(&w);
	if (e == BATON_OK)
		e = policies_set(&w);
	if (e != BATON_OK)
		return e;
	if (d->recalled)
		counts_set(&w); /* first, since numbers that were drawn are gone */
	bulk_count(d);
	w.any = keyed_check(d, c) || w.any;
	draw(&w);
	numbers_gone(&w, SQL_CLAIM_DROP, &d->gone_heads, &d->gone_fences);
	numbers_gone(&w, SQL_BATCH_DROP, &d->gone_batches, NULL);
	numbers_gone(&w, SQL_RUNNER_DROP, &d->gone_runners, NULL);
	schedules_gone(&w);
	e = bulk_write(&w);
	if (e == BATON_OK)
		e = batches_write(&w);
	if (e == BATON_OK)
		e = claims_write(&w);
	if (e != BATON_OK)
		return e;
	sources_write(&w);
	guard(&w);
	leases_write(&w);
	counters_write(&w);
	schedules_write(&w);
	runners_write(&w);
	rates_gather(&w);
	e = rates_write(&w);
	if (e != BATON_OK)
		return e;
	if (!d->recalled)
		counts_set(&w);
	paces_write(&w);
	w.any = keyed_melt(d, c) || w.any;
	settle(&w);
	paces_leave(&w);
	rates_settle(&w);
	settle_all(&w, SQL_SETTLE_LIMIT, other_limit);
	settle_all(&w, SQL_SETTLE_FAIR, other_turns);
	raise_lows(&w);
	ret->any = ret->any || w.any;
	ret->told = w.told;
	ret->sure = w.sure || !d->recalled;
	return BATON_OK;
}
