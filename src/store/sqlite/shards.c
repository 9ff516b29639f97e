/* Shards in an SQLite file. */
#include <inttypes.h>

#include "base/check.h"
#include "base/fail.h"
#include "base/quote.h"
#include "store/sqlite/fate.h"
#include "store/sqlite/grant.h"
#include "store/sqlite/lanes.h"
#include "store/sqlite/puts.h"
#include "store/sqlite/runners.h"

enum baton_err shard_load(struct db *db, int64_t queue, uint32_t number, struct shard_row *ret)
{
	struct query q = query_begin(db, SQL_SHARD_READ);
	query_int(&q, queue);
	query_int(&q, number);
	*ret = (struct shard_row){.runner = 0};
	if (query_row(&q))
		*ret = (struct shard_row){(uint64_t)column_int(&q, 0),
		                          {(uint64_t)column_int(&q, 1),
		                           (uint64_t)column_int(&q, 2)}};
	return query_end(&q);
}

static enum baton_err shard_save(struct sqlite_store *s, int64_t queue, uint32_t number,
                                 const struct shard_row *row)
{
	struct query q = query_begin(&s->db, SQL_SHARD_WRITE);
	query_int(&q, queue);
	query_int(&q, number);
	if (row->runner > 0)
		query_int(&q, (int64_t)row->runner);
	else
		query_null(&q);
	query_int(&q, (int64_t)row->base.granter);
	query_int(&q, (int64_t)row->base.counter);
	books_shard(&s->books);
	return query_run(&q);
}

static enum baton_err check_number(const struct queue_row *q, uint64_t number)
{
	char shown[QUOTE_TEXT];
	if (number < q->policy.shards)
		return BATON_OK;
	return fail(BATON_INVALID, "queue %s has the shards 0 to %u: there is no %" PRIu64,
	            quote(queue_row_name(q), shown), q->policy.shards - 1, number);
}

enum baton_err shard_queue(struct sqlite_store *s, const struct baton_shard *shard,
                           struct queue_row **ret)
{
	enum baton_err e = grant_queue(s, shard->queue, BATON_QUEUE_RUNNER, ret);
	return e == BATON_OK ? check_number(*ret, shard->number) : e;
}

struct baton_shard_answer shard_answer(const struct shard_row *row, uint64_t runner)
{
	enum baton_err e = row->runner == 0        ? BATON_NOT_HELD
	                   : row->runner == runner ? BATON_OK
	                                           : BATON_YIELD;
	return (struct baton_shard_answer){.err = e,
	                                   .fence = {row->base.granter},
	                                   .runner = row->runner};
}

static enum baton_err take(struct sqlite_store *s, struct queue_row *q, uint32_t number,
                           uint64_t runner, struct shard_row *row)
{
	uint64_t fence;
	if (!fence_next(FENCE_GRANTER, fence_granter_last(&row->base), s->books.granter_floor,
	                &fence))
		return fail(BATON_FULL, "the fences of queue %s have reached their end", q->name);
	*row = (struct shard_row){runner, {fence, 0}};
	CHECK(s->full);
	enum baton_err e = grant_mode(s, q, BATON_QUEUE_RUNNER);
	return e == BATON_OK ? shard_save(s, q->id, number, row) : e;
}

static enum baton_err give_up(struct sqlite_store *s, const struct runner_row *runner,
                              struct queue_row *q, uint32_t number, struct shard_row *row)
{
	const struct returning its = {.queue = q->id, .shard = number};
	enum baton_err e = runner_return(s, runner, &its);
	row->runner = 0;
	return e == BATON_OK ? shard_save(s, q->id, number, row) : e;
}

static enum baton_err change_one(struct sqlite_store *s, const struct runner_row *runner,
                                 const struct shard_change *c, size_t i)
{
	struct queue_row *q;
	struct shard_row row;
	enum baton_err e = shard_queue(s, &c->shards[i], &q);
	if (e == BATON_OK)
		e = shard_load(&s->db, q->id, c->shards[i].number, &row);
	if (e != BATON_OK)
		return e;
	if (c->take && row.runner == 0)
		e = take(s, q, c->shards[i].number, c->runner, &row);
	c->answers[i] = shard_answer(&row, c->runner);
	if (!c->take && row.runner == c->runner)
		e = give_up(s, runner, q, c->shards[i].number, &row);
	return e;
}

static enum baton_err change_run(void *store, void *args)
{
	struct sqlite_store *s = store;
	const struct shard_change *c = args;
	struct runner_row runner;
	struct queue_row *q;
	bool found;
	enum baton_err e = runner_load(&s->db, c->runner, &runner, &found);
	if (e == BATON_OK && !found)
		return BATON_NOT_HELD;
	for (size_t i = 0; i < c->count && e == BATON_OK; i++)
		e = shard_queue(s, &c->shards[i], &q);
	for (size_t i = 0; i < c->count && e == BATON_OK; i++)
		e = change_one(s, &runner, c, i);
	return e;
}

enum baton_err sqlite_shard_change(struct baton_store *store, const struct shard_change *change)
{
	struct shard_change copy = *change;
	return sqlite_write_fences((struct sqlite_store *)store, change_run, &copy);
}

enum baton_err sqlite_shard_list(struct baton_store *store, struct baton_str queue, uint32_t first,
                                 struct baton_shard_answer *answers, size_t count)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	struct queue_row row = {.id = 0};
	char shown[QUOTE_TEXT];
	enum baton_err e = sqlite_read_begin(s);
	if (e != BATON_OK)
		return e;
	struct query q = query_begin(&s->read, SQL_QUEUE_READ);
	query_text(&q, queue);
	enum baton_err damaged = query_row(&q) ? queue_row_read(&q, &row) : BATON_OK;
	e = query_end_as(&q, damaged);
	if (e == BATON_OK && row.id == 0)
		e = fail(BATON_NOT_FOUND, "there is no queue %s", quote(queue, shown));
	if (e == BATON_OK && count > 0)
		e = check_number(&row, (uint64_t)first + count - 1);
	for (size_t i = 0; i < count && e == BATON_OK; i++) {
		struct shard_row shard;
		e = shard_load(&s->read, row.id, first + (uint32_t)i, &shard);
		answers[i] = shard_answer(&shard, shard.runner);
	}
	sqlite_read_end(s);
	return e;
}
