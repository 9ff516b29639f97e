/* Writing back what has changed on a desk: one statement for all rows of a kind. */
#include "store/postgres/write.h"

#include "base/fail.h"
#include "store/postgres/bulk.h"
#include "store/postgres/keyed.h"

void writer_args(struct writer *w, struct args *a, int count)
{
	args_init(a, w->c->alloc, count);
}

void writer_send(struct writer *w, enum sql sql, struct args *a)
{
	int answer = conn_send(w->c, sql, a);
	if (sql == SQL_QUEUE_COUNT_ONE || sql == SQL_QUEUE_COUNT_SURE)
		w->told = answer;
	w->any = true;
}

void writer_arrays(struct args *a, const enum arg_type *types)
{
	for (int i = 0; i < a->count; i++)
		arg_array(a, i, types[i]);
}

void writer_add_time(struct args *a, int at, struct baton_store_time t)
{
	if (t.ms > 0)
		add_int(a, at, t.ms);
	else
		add_null(a, at);
}

static void numbers_gone(struct writer *w, enum sql sql, const struct nums *first,
                         const struct nums *second)
{
	struct args a;
	if (first->count == 0)
		return;
	writer_args(w, &a, second ? 2 : 1);
	arg_array(&a, 0, ARG_INT8);
	if (second)
		arg_array(&a, 1, ARG_INT8);
	for (size_t i = 0; i < first->count; i++) {
		add_int(&a, 0, (int64_t)first->list[i]);
		if (second)
			add_int(&a, 1, (int64_t)second->list[i]);
	}
	writer_send(w, sql, &a);
}

/* The numbers that the calls were given are now really drawn; if others drew some meanwhile the
 * transaction fails, and is done again with numbers that are drawn first. */
static void draw(struct writer *w)
{
	struct args a;
	if (!w->d->expects || w->d->m->seq == w->d->last)
		return;
	writer_args(w, &a, 2);
	arg_int(&a, 0, (int64_t)w->d->last + 1);
	arg_int(&a, 1, (int64_t)(w->d->m->seq - w->d->last));
	writer_send(w, SQL_DRAW_EXPECTED, &a);
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
	enum baton_err e = write_queues(&w);
	if (e == BATON_OK)
		e = write_policies(&w);
	if (e != BATON_OK)
		return e;
	if (d->recalled)
		write_counts(&w); /* first, since numbers that were drawn are gone */
	bulk_count(d);
	w.any = keyed_check(d, c) || w.any;
	draw(&w);
	numbers_gone(&w, SQL_CLAIM_DROP, &d->gone_heads, &d->gone_fences);
	numbers_gone(&w, SQL_BATCH_DROP, &d->gone_batches, NULL);
	numbers_gone(&w, SQL_RUNNER_DROP, &d->gone_runners, NULL);
	write_schedules_gone(&w);
	e = bulk_write(&w);
	if (e == BATON_OK)
		e = write_batches(&w);
	if (e == BATON_OK)
		e = write_claims(&w);
	if (e != BATON_OK)
		return e;
	write_sources(&w);
	write_guard(&w);
	write_leases(&w);
	write_counters(&w);
	write_schedules(&w);
	write_runners(&w);
	e = write_rates(&w);
	if (e != BATON_OK)
		return e;
	if (!d->recalled)
		write_counts(&w);
	write_paces(&w);
	w.any = keyed_melt(d, c) || w.any;
	write_settle(&w);
	write_paces_leave(&w);
	write_rates_settle(&w);
	write_settle_all(&w);
	write_lows(&w);
	ret->any = ret->any || w.any;
	ret->told = w.told;
	ret->sure = w.sure || !d->recalled;
	return BATON_OK;
}
