/* Queues and their counts: as they are read, and written back. */
#include <string.h>

#include "base/fail.h"
#include "queue/policy.h"
#include "store/memory/queue.h"
#include "store/postgres/steps.h"
#include "store/postgres/write.h"

#define SENT_ENOUGH 128 /* before answers are read */

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
	return desk_load_done(d, &tx, memory);
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
	return desk_load_done(d, &tx, read != NULL);
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
	writer_args(w, &a, 38);
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
	writer_send(w, SQL_QUEUE_ADD, &a);
	return w->c->sent > SENT_ENOUGH ? conn_round(w->c) : BATON_OK;
}

enum baton_err write_queues(struct writer *w)
{
	enum baton_err e = BATON_OK;
	for (struct row *row = w->d->m->queues.oldest; row && e == BATON_OK; row = row->newer) {
		if (row->kept == 0 && row->noted)
			e = queue_add(w, (struct queue *)row);
	}
	return e;
}

enum baton_err write_policies(struct writer *w)
{
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < w->d->queue_count && e == BATON_OK; i++) {
		const struct read_queue *read = &w->d->queues[i];
		const struct queue *q = read->row;
		struct args a;
		if (!q->row.noted ||
		    (read->guests == q->is.guests && policy_equal(&read->policy, &q->is.policy)))
			continue;
		writer_args(w, &a, 30);
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
		writer_send(w, SQL_QUEUE_SET, &a);
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
	writer_args(w, &a, sure ? 17 : 13);
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
	writer_send(w, sure ? SQL_QUEUE_COUNT_SURE : SQL_QUEUE_COUNT_ONE, &a);
	w->sure = true;
}

void write_counts(struct writer *w)
{
	static const enum arg_type types[] = {ARG_INT4, ARG_INT8, ARG_INT8, ARG_INT8,
	                                      ARG_INT8, ARG_INT8, ARG_INT8, ARG_INT8,
	                                      ARG_INT8, ARG_INT8, ARG_INT8, ARG_INT8};
	struct args a;
	const struct read_queue *only = NULL;
	writer_args(w, &a, 12);
	writer_arrays(&a, types);
	for (size_t i = 0; i < w->d->queue_count; i++) {
		if (!desk_counts_changed(&w->d->queues[i]))
			continue;
		only = &w->d->queues[i];
		counts_add(&a, only);
	}
	/* Those who wait look whether a queue has changed, or this. */
	if (only && a.list[0].count == 1)
		count_set_one(w, only);
	else if (a.list[0].count > 1)
		writer_send(w, SQL_QUEUE_COUNT, &a);
	else if (w->d->news_count > 0)
		writer_send(w, SQL_RING, NULL);
	args_done(&a);
}
