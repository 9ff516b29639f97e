/* Schedules in an SQLite file. */
#include "base/fail.h"
#include "store/parcel.h"
#include "store/refuse.h"
#include "store/sqlite/puts.h"
#include "store/sqlite/sqlite.h"

static enum baton_err set_run(void *store, void *args)
{
	struct sqlite_store *s = store;
	const struct baton_schedule *r = args;
	struct query q = query_begin(&s->db, SQL_SCHEDULE_SET);
	query_text(&q, r->name);
	query_text(&q, r->cron);
	query_text(&q, r->zone);
	query_int(&q, r->missed);
	query_text(&q, r->queue);
	query_text(&q, r->lane);
	query_int(&q, r->priority);
	query_blob(&q, r->payload.ptr, r->payload.len);
	query_int(&q, r->last.ms);
	query_int(&q, r->next.ms);
	return query_run(&q);
}

/* Whoever puts what is due has to look again. Other processes see that the file has changed. */
static void tell(struct baton_store *store, struct baton_str queue)
{
	const struct baton_store_news news = {.queue = baton_queue_hash(store, queue)};
	store_ring(store, &news, 1);
}

enum baton_err sqlite_schedule_set(struct baton_store *store, const struct baton_schedule *schedule)
{
	struct baton_schedule copy = *schedule;
	enum baton_err e = sqlite_write((struct sqlite_store *)store, set_run, &copy);
	if (e == BATON_OK)
		tell(store, schedule->queue);
	return e;
}

static enum baton_err remove_run(void *store, void *args)
{
	struct sqlite_store *s = store;
	const struct baton_str *name = args;
	struct query q = query_begin(&s->db, SQL_SCHEDULE_HAS);
	query_text(&q, *name);
	bool found = query_row(&q);
	enum baton_err e = query_end(&q);
	if (e == BATON_OK && !found)
		e = refuse_schedule(*name);
	if (e != BATON_OK)
		return e;
	q = query_begin(&s->db, SQL_SCHEDULE_DROP);
	query_text(&q, *name);
	return query_run(&q);
}

enum baton_err sqlite_schedule_remove(struct baton_store *store, struct baton_str name)
{
	return sqlite_write((struct sqlite_store *)store, remove_run, &name);
}

static struct baton_schedule row_read(const struct query *q)
{
	return (struct baton_schedule){
		.name = column_str(q, 0),
		.cron = column_str(q, 1),
		.zone = column_str(q, 2),
		.missed = (enum baton_missed)column_int(q, 3),
		.queue = column_str(q, 4),
		.lane = column_str(q, 5),
		.priority = (uint32_t)column_int(q, 6),
		.payload = column_str(q, 7),
		.last = {column_int(q, 8)},
		.next = {column_int(q, 9)},
	};
}

enum baton_err sqlite_schedule_list(struct baton_store *store, struct baton_str after,
                                    struct baton_str name, size_t max,
                                    struct schedules_parcel *page)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	bool memory = true;
	enum baton_err e = sqlite_read_begin(s);
	if (e != BATON_OK)
		return e;
	struct query q =
		query_begin(&s->read, name.len > 0 ? SQL_SCHEDULE_READ : SQL_SCHEDULE_LIST);
	query_text(&q, name.len > 0 ? name : after);
	if (name.len == 0)
		query_int(&q, (int64_t)max);
	while (memory && query_row(&q)) {
		struct baton_schedule row = row_read(&q);
		memory = schedules_parcel_add(page, &row);
	}
	e = query_end(&q);
	sqlite_read_end(s);
	return e == BATON_OK && !memory ? fail(BATON_NO_MEMORY, "no memory for schedules") : e;
}

/* Whether the schedule still stands where the caller saw it. */
static enum baton_err is_there(struct sqlite_store *s, const struct schedule_step *step, bool *ret)
{
	struct query q = query_begin(&s->db, SQL_SCHEDULE_READ);
	query_text(&q, step->name);
	*ret = query_row(&q) && column_int(&q, 8) == step->from.ms;
	return query_end(&q);
}

static enum baton_err move_on(struct sqlite_store *s, const struct schedule_step *step)
{
	enum baton_err e = put_all(s, step->batches, step->count, NULL);
	if (e != BATON_OK)
		return e;
	struct query q = query_begin(&s->db, SQL_SCHEDULE_MOVE);
	query_int(&q, step->last.ms);
	query_int(&q, step->next.ms);
	query_text(&q, step->name);
	return query_run(&q);
}

static enum baton_err step_run(void *store, void *args)
{
	struct sqlite_store *s = store;
	const struct schedule_step *step = args;
	struct books_mark mark;
	bool there;
	enum baton_err e = is_there(s, step, &there);
	if (e == BATON_OK && !there)
		return BATON_NOT_HELD;
	if (e == BATON_OK)
		e = sqlite_save_begin(s, &mark);
	return e == BATON_OK ? sqlite_save_end(s, &mark, move_on(s, step)) : e;
}

enum baton_err sqlite_schedule_step(struct baton_store *store, const struct schedule_step *step)
{
	struct schedule_step copy = *step;
	enum baton_err e = sqlite_write((struct sqlite_store *)store, step_run, &copy);
	if (e == BATON_OK && step->count == 0)
		tell(store, step->queue);
	return e;
}
