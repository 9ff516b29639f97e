/* How often the keys of queues have started lately. */
#include "store/sqlite/rates.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "base/fail.h"
#include "queue/line.h"
#include "queue/policy.h"
#include "store/sqlite/batches.h"
#include "store/sqlite/class.h"
#include "store/sqlite/lanes.h"
#include "store/sqlite/sites.h"

#define FREE_MAX 1000
#define PAGE 100 /* of rows with all their starts */

/* A row of `rate`. */
struct rate_row {
	int64_t id; /* 0: there is none yet */
	struct baton_str name;
	struct baton_store_time *starts; /* with room for one more; NULL: not read */
	size_t count;
};

static enum baton_err no_memory(void)
{
	return fail(BATON_NO_MEMORY, "no memory for the starts of keys");
}

static bool starts_read(struct arena *a, struct baton_str blob, struct rate_row *ret)
{
	size_t count = blob.len / sizeof(uint64_t);
	ret->starts = arena_take(a, count + 1, sizeof *ret->starts);
	for (size_t i = 0; i < count && ret->starts; i++) {
		uint64_t number;
		memcpy(&number, blob.ptr + i * sizeof number, sizeof number);
		ret->starts[i].ms = (int64_t)le64toh(number);
	}
	ret->count = count;
	return ret->starts != NULL;
}

/* Begins a statement about a key: of a queue, or of all queues of its class. */
static struct query key_query(struct sqlite_store *s, const struct queue_row *row, enum sql own,
                              enum sql shared)
{
	return query_begin(&s->db, policy_has_class(&row->policy) ? shared : own);
}

static void query_key(struct query *q, const struct queue_row *row, struct baton_str line)
{
	if (policy_has_class(&row->policy))
		query_text(q, baton_str_z(row->policy.key_class));
	else
		query_int(q, row->id);
	query_text(q, line);
}

static enum baton_err row_load(struct sqlite_store *s, const struct queue_row *row,
                               struct baton_str line, struct rate_row *ret)
{
	struct query q = key_query(s, row, SQL_RATE_READ, SQL_CLASS_RATE);
	*ret = (struct rate_row){.name = line};
	query_key(&q, row, line);
	bool found = query_row(&q);
	if (found)
		ret->id = column_int(&q, 0);
	const struct baton_str blob = found ? column_str(&q, 2) : (struct baton_str){"", 0};
	bool memory = starts_read(&s->scratch, blob, ret);
	enum baton_err e = query_end(&q);
	return e == BATON_OK && !memory ? no_memory() : e;
}

/* The line, where it is there, waits until then. *ret: where that is new. */
static enum baton_err line_waits(struct sqlite_store *s, const struct queue_row *row,
                                 struct baton_str line, struct baton_store_time until,
                                 struct class_lines *ret)
{
	struct query q = key_query(s, row, SQL_LANE_UNTIL, SQL_CLASS_UNTIL);
	query_int(&q, until.ms);
	query_key(&q, row, line);
	ret->count = 0;
	while (ret->count < BATON_QUEUE_CLASS_MAX && query_row(&q))
		ret->list[ret->count++] = (struct class_line){column_int(&q, 0), column_int(&q, 1)};
	return query_end(&q);
}

enum baton_err rates_begin(struct sqlite_store *s, const struct queue_row *row,
                           struct baton_str line, int64_t lane)
{
	if (!line_is_rated(line, &row->policy))
		return BATON_OK;
	struct query q = key_query(s, row, SQL_LANE_WAIT, SQL_CLASS_WAIT);
	query_key(&q, row, line);
	query_int(&q, lane);
	return query_run(&q);
}

/* Keeps the starts; without any, none. They are of no use afterwards. */
static enum baton_err row_write(struct sqlite_store *s, const struct queue_row *row,
                                const struct rate_row *r, struct baton_store_time until)
{
	if (r->count == 0)
		return r->id > 0 ? RUN(&s->db, SQL_RATE_DROP, r->id) : BATON_OK;
	struct query q = query_begin(&s->db, r->id > 0 ? SQL_RATE_WRITE : SQL_RATE_ADD);
	query_int(&q, until.ms);
	query_int(&q, rate_over(&row->policy.key_rate, r->starts, r->count).ms);
	for (size_t i = 0; i < r->count; i++)
		r->starts[i].ms = (int64_t)htole64((uint64_t)r->starts[i].ms);
	query_blob(&q, r->starts, r->count * sizeof *r->starts);
	if (r->id > 0) {
		query_int(&q, r->id);
	} else {
		query_int(&q, row->id);
		query_text(&q, r->name);
	}
	return query_run(&q);
}

enum baton_err rates_start(struct sqlite_store *s, const struct queue_row *q, struct baton_str line,
                           const struct baton_owner *owner)
{
	const struct baton_key_rate *rate = &q->policy.key_rate;
	struct rate_row r;
	struct class_lines lines;
	char text[RATE_NAME_MAX];
	if (!line_is_rated(line, &q->policy))
		return BATON_OK;
	enum baton_err e = row_load(s, q, rate_name(line, &q->policy, owner, text), &r);
	if (e != BATON_OK)
		return e;
	r.count = rate_start(rate, r.starts, r.count, s->now);
	struct baton_store_time until = rate_until(rate, r.starts, r.count);
	e = row_write(s, q, &r, until);
	return e == BATON_OK ? line_waits(s, q, r.name, until, &lines) : e;
}

enum baton_err rates_until(struct db *db, const struct queue_row *q, struct baton_str line,
                           const struct baton_owner *owner, int64_t *ret)
{
	char text[RATE_NAME_MAX];
	*ret = 0;
	if (!line_is_sited(line, NULL) || !line_is_rated(line, &q->policy))
		return BATON_OK;
	struct query read = query_begin(db, SQL_RATE_FULL);
	query_int(&read, q->id);
	query_text(&read, rate_name(line, &q->policy, owner, text));
	*ret = query_row(&read) ? column_int(&read, 0) : 0;
	return query_end(&read);
}

enum baton_err rates_forget(struct sqlite_store *s, const struct baton_owner *owner)
{
	char from[RATE_NAME_MAX], to[RATE_NAME_MAX];
	struct baton_str site = rate_site(BATON_KEY_SCOPE_PROCESS, owner, from);
	memcpy(to, from, site.len);
	from[site.len] = LINE_KEYED;
	to[site.len] = LINE_KEYED + 1;
	struct query drop = query_begin(&s->db, SQL_RATE_FORGET);
	query_text(&drop, (struct baton_str){from, site.len + 1});
	query_text(&drop, (struct baton_str){to, site.len + 1});
	query_int(&drop, RATES_FORGET_MAX);
	return query_run(&drop);
}

static_assert(sizeof(struct baton_store_time) == sizeof(uint64_t), "a start has eight bytes");

/* Rows of a queue that a query finds, at most `max`. */
struct rows {
	struct arena *a;
	struct rate_row *list;
	size_t count, max;
	bool whole; /* with their starts */
};

/* Of a query whose own arguments are set. */
static enum baton_err rows_read(struct query *q, struct rows *ret)
{
	bool memory = true;
	ret->list = NULL;
	ret->count = 0;
	query_int(q, (int64_t)ret->max);
	while (memory && ret->count < ret->max && query_row(q)) {
		if (!ret->list)
			ret->list = arena_take(ret->a, ret->max, sizeof *ret->list);
		memory = ret->list != NULL;
		if (!memory)
			break;
		struct rate_row *r = &ret->list[ret->count++];
		*r = (struct rate_row){.id = column_int(q, 0)};
		memory = arena_copy(ret->a, column_str(q, 1), &r->name) &&
		         (!ret->whole || starts_read(ret->a, column_str(q, 2), r));
	}
	enum baton_err e = query_end(q);
	return e == BATON_OK && !memory ? no_memory() : e;
}

/* For those up to, or after, a moment. */
static enum baton_err rows_by_time(struct sqlite_store *s, enum sql sql,
                                   const struct queue_row *row, struct baton_store_time at,
                                   struct rows *ret)
{
	struct query q = query_begin(&s->db, sql);
	query_int(&q, row->id);
	query_int(&q, at.ms);
	return rows_read(&q, ret);
}

static enum baton_err rows_after(struct sqlite_store *s, const struct queue_row *row,
                                 struct baton_str name, struct rows *ret)
{
	struct query q = query_begin(&s->db, SQL_RATE_NEXT);
	query_int(&q, row->id);
	query_text(&q, name);
	return rows_read(&q, ret);
}

static enum baton_err line_settle(struct sqlite_store *s, struct queue_row *q,
                                  struct baton_str line, struct baton_store_time until)
{
	struct class_lines lines;
	struct queue_row *of;
	if (!line_is_keyed(line))
		return until.ms == 0 ? sites_tell(s, q, rate_line(line)) : BATON_OK;
	enum baton_err e = line_waits(s, q, line, until, &lines);
	for (size_t i = 0; i < lines.count && e == BATON_OK; i++) {
		e = books_queue_by_id(&s->books, &s->db, lines.list[i].queue, &of);
		if (e == BATON_OK)
			e = lane_settle_own(s, of, lines.list[i].lane);
	}
	return e;
}

/* Counts again what a key has started, of which only that counts which did so before, too. */
static enum baton_err look_again(struct sqlite_store *s, struct queue_row *q, struct rate_row *r,
                                 const struct baton_key_rate *was)
{
	const struct baton_key_rate *rate = &q->policy.key_rate;
	r->count = rate_look(was, r->starts, r->count, s->now);
	r->count = rate_look(rate, r->starts, r->count, s->now);
	struct baton_store_time until = rate_until(rate, r->starts, r->count);
	enum baton_err e = row_write(s, q, r, until);
	return e == BATON_OK ? line_settle(s, q, r->name, until) : e;
}

static enum baton_err look_at_all(struct sqlite_store *s, struct queue_row *q,
                                  const struct rows *rows, const struct baton_key_rate *was)
{
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < rows->count && e == BATON_OK; i++)
		e = look_again(s, q, &rows->list[i], was);
	return e;
}

static enum baton_err may_start(struct sqlite_store *s, struct queue_row *q,
                                const struct rate_row *r)
{
	enum baton_err e = RUN(&s->db, SQL_RATE_FREE, r->id);
	return e == BATON_OK ? line_settle(s, q, r->name, (struct baton_store_time){0}) : e;
}

enum baton_err rates_see(struct sqlite_store *s, struct queue_row *q, bool *ret_all)
{
	const struct baton_key_rate *rate = &q->policy.key_rate;
	struct rows due = {.a = &s->scratch, .max = FREE_MAX};
	struct rows ahead = {.a = &s->scratch, .max = PAGE, .whole = true};
	enum baton_err e = rows_by_time(s, SQL_RATE_DUE, q, s->now, &due);
	for (size_t i = 0; i < due.count && e == BATON_OK; i++)
		e = may_start(s, q, &due.list[i]);
	if (e == BATON_OK)
		e = rows_by_time(s, SQL_RATE_AHEAD, q, baton_store_time_add(s->now, rate->window),
		                 &ahead);
	*ret_all = due.count < due.max && ahead.count < ahead.max;
	return e == BATON_OK ? look_at_all(s, q, &ahead, rate) : e;
}

enum baton_err rates_change(struct sqlite_store *s, struct queue_row *q,
                            const struct baton_key_rate *was)
{
	struct arena arena;
	struct rows rows = {.a = &arena, .max = PAGE, .whole = true};
	enum baton_err e = BATON_OK;
	char text[RATE_NAME_MAX];
	struct baton_str after = {text, 0};
	arena_init(&arena, s->base.alloc);
	do {
		arena_reset(&arena);
		e = rows_after(s, q, after, &rows);
		if (e == BATON_OK)
			e = look_at_all(s, q, &rows, was);
		after.len = rows.count > 0 ? rows.list[rows.count - 1].name.len : 0;
		if (after.len > 0)
			memcpy(text, rows.list[rows.count - 1].name.ptr, after.len);
	} while (e == BATON_OK && rows.count == rows.max);
	arena_done(&arena);
	return e;
}
