/* Runners in an SQLite file. */
#include "store/sqlite/runners.h"

#include <string.h>

#include "base/fail.h"
#include "store/sqlite/fate.h"
#include "store/sqlite/rates.h"

static size_t text_copy(const struct query *q, int column, char *to, size_t max)
{
	struct baton_str s = column_str(q, column);
	size_t len = s.len < max ? s.len : max;
	if (len > 0)
		memcpy(to, s.ptr, len);
	return len;
}

/* With a NUL behind it. */
static void text_read(const struct query *q, int column, char *to, size_t max)
{
	to[text_copy(q, column, to, max)] = '\0';
}

static enum baton_err unreadable(const struct db *db)
{
	return fail(BATON_STORAGE, "store %s is damaged: it has a runner that cannot be read",
	            db->path);
}

static enum baton_err row_read(const struct query *q, struct runner_row *r)
{
	*r = (struct runner_row){
		.number = (uint64_t)column_int(q, 0),
		.slot = (uint32_t)column_int(q, 2),
		.weight = (uint32_t)column_int(q, 6),
		.ttl = {column_int(q, 7)},
		.since = {column_int(q, 8)},
		.guardian = (int32_t)column_int(q, 12),
		.wish = (enum baton_runner_wish)column_int(q, 13),
	};
	text_read(q, 1, r->name, BATON_NAME_MAX);
	text_read(q, 3, r->endpoint, BATON_NAME_MAX);
	text_read(q, 4, r->labels, BATON_NAME_MAX);
	text_read(q, 9, r->host, BATON_NAME_MAX);
	text_read(q, 10, r->queues, BATON_RUNNER_QUEUES_MAX);
	text_read(q, 11, r->life, BATON_RUNNER_LIFE_MAX);
	text_read(q, 14, r->state, BATON_NAME_MAX);
	if (r->slot < BEATS_MAX && (unsigned)r->wish - 1 < BATON_WISH_LEAVE &&
	    baton_owner_parse(column_str(q, 5), &r->owner) == BATON_OK)
		return BATON_OK;
	return unreadable(q->db);
}

/* The row that a query finds, if it does. */
static enum baton_err take_row(struct query *q, struct runner_row *ret, bool *ret_found)
{
	enum baton_err bad = BATON_OK;
	*ret_found = query_row(q);
	if (*ret_found)
		bad = row_read(q, ret);
	enum baton_err e = query_end(q);
	return e == BATON_OK ? bad : e;
}

enum baton_err runner_load(struct db *db, uint64_t number, struct runner_row *ret, bool *ret_found)
{
	struct query q = query_begin(db, SQL_RUNNER_READ);
	query_int(&q, (int64_t)number);
	return take_row(&q, ret, ret_found);
}

enum baton_err runner_owner(struct db *db, uint64_t number, struct baton_owner *ret,
                            bool *ret_found)
{
	enum baton_err bad = BATON_OK;
	struct query q = query_begin(db, SQL_RUNNER_OWNER);
	query_int(&q, (int64_t)number);
	*ret_found = query_row(&q);
	if (*ret_found && baton_owner_parse(column_str(&q, 0), ret) != BATON_OK)
		bad = unreadable(db);
	enum baton_err e = query_end(&q);
	return e == BATON_OK ? bad : e;
}

/* The first slot that no runner has. */
static enum baton_err slot_find(struct sqlite_store *s, uint32_t *ret)
{
	struct query q = query_begin(&s->db, SQL_RUNNER_SLOTS);
	uint32_t slot = 0;
	while (query_row(&q) && column_int(&q, 0) == slot)
		slot++;
	enum baton_err e = query_end(&q);
	if (e == BATON_OK && slot == BEATS_MAX)
		e = fail(BATON_FULL, "there are %d runners: no more can be registered", BEATS_MAX);
	*ret = slot;
	return e;
}

static enum baton_err number_next(struct sqlite_store *s, uint64_t *ret)
{
	struct query q = query_begin(&s->db, SQL_RUNNER_COUNT);
	*ret = query_row(&q) ? (uint64_t)column_int(&q, 0) : 0;
	while (query_row(&q))
		;
	return query_end(&q);
}

static enum baton_err row_write(struct sqlite_store *s, const struct runner_row *r)
{
	char owner[BATON_OWNER_TEXT];
	struct query q = query_begin(&s->db, SQL_RUNNER_ADD);
	query_int(&q, (int64_t)r->number);
	query_text(&q, baton_str_z(r->name));
	query_int(&q, r->slot);
	query_text(&q, baton_str_z(r->endpoint));
	query_text(&q, baton_str_z(r->labels));
	query_text(&q, baton_str_z(baton_owner_print(&r->owner, owner)));
	query_int(&q, r->weight);
	query_int(&q, r->ttl.ns);
	query_int(&q, r->since.ms);
	query_text(&q, baton_str_z(r->host));
	query_text(&q, baton_str_z(r->queues));
	query_text(&q, baton_str_z(r->life));
	query_int(&q, r->guardian);
	query_int(&q, r->wish);
	query_text(&q, baton_str_z(r->state));
	return query_run(&q);
}

struct add_args {
	struct runner_row *row, *other;
};

static enum baton_err add_run(void *store, void *args)
{
	struct sqlite_store *s = store;
	struct add_args *a = args;
	bool found;
	struct query q = query_begin(&s->db, SQL_RUNNER_FIND);
	query_text(&q, baton_str_z(a->row->name));
	enum baton_err e = take_row(&q, a->other, &found);
	if (e == BATON_OK && found)
		return BATON_YIELD;
	if (e == BATON_OK)
		e = slot_find(s, &a->row->slot);
	if (e == BATON_OK)
		e = number_next(s, &a->row->number);
	a->row->since = s->now;
	return e == BATON_OK ? row_write(s, a->row) : e;
}

enum baton_err sqlite_runner_add(struct baton_store *store, struct runner_row *row,
                                 struct runner_row *ret_other)
{
	struct add_args args = {row, ret_other};
	return sqlite_write((struct sqlite_store *)store, add_run, &args);
}

static enum baton_err claims_list(struct sqlite_store *s, int64_t owner, struct claim_name **ret,
                                  size_t *ret_count)
{
	struct claim_name *list = NULL;
	size_t count = 0, cap = 0;
	bool memory = true;
	struct query q = query_begin(&s->db, SQL_CLAIM_BOUND);
	query_int(&q, owner);
	while (memory && query_row(&q)) {
		if (count == cap) {
			cap = cap ? cap * 2 : 64;
			struct claim_name *more = arena_take(&s->scratch, cap, sizeof *more);
			memory = more != NULL;
			if (memory && count > 0)
				memcpy(more, list, count * sizeof *list);
			list = more;
		}
		if (memory)
			list[count++] = (struct claim_name){(uint64_t)column_int(&q, 0),
			                                    (uint64_t)column_int(&q, 1)};
	}
	*ret = list;
	*ret_count = count;
	enum baton_err e = query_end(&q);
	return e == BATON_OK && !memory ? fail(BATON_NO_MEMORY, "no memory for claims") : e;
}

static bool is_known(const struct returning *returning, const struct claim_row *c)
{
	const struct claim_name name = {(uint64_t)c->head, c->fence};
	char text[CLAIM_NAME_TEXT];
	claim_name_print(&name, text);
	return store_is_known(returning->known, returning->known_count, text);
}

/* Several shards may be held under the same fence: only the batches tell where a claim is from. */
static enum baton_err is_returned(struct sqlite_store *s, const struct returning *returning,
                                  const struct claim_row *c, bool *ret)
{
	struct batch_row first;
	bool found = true;
	*ret = returning->known_count == 0 || !is_known(returning, c);
	if (!*ret || returning->queue == 0)
		return BATON_OK;
	enum baton_err e = batch_load(&s->db, c->seqs[0], &first, &found);
	*ret = e == BATON_OK && found && c->queue == returning->queue &&
	       first.shard == returning->shard;
	return e;
}

enum baton_err runner_return(struct sqlite_store *s, const struct runner_row *r,
                             const struct returning *returning)
{
	int64_t owner;
	struct claim_name *names;
	size_t count = 0;
	enum baton_err e = owner_number(s, &r->owner, &owner);
	if (e == BATON_OK)
		e = bulk_melt_owner(s, owner);
	if (e == BATON_OK)
		e = claims_list(s, owner, &names, &count);
	for (size_t i = 0; i < count && e == BATON_OK; i++) {
		struct claim_row c;
		struct queue_row *q;
		bool found, returned = false;
		e = claim_load(s, &names[i], &c, &found);
		if (e == BATON_OK && found)
			e = is_returned(s, returning, &c, &returned);
		if (e != BATON_OK || !returned)
			continue;
		e = books_queue_by_id(&s->books, &s->db, c.queue, &q);
		if (e == BATON_OK)
			e = claim_return(s, q, &c, returning->why);
	}
	return e;
}

struct remove_args {
	uint64_t number;
	enum runner_end end;
};

static enum baton_err remove_run(void *store, void *args)
{
	struct sqlite_store *s = store;
	const struct remove_args *a = args;
	struct returning all = {.queue = 0};
	struct runner_row row;
	bool found;
	if (a->end == RUNNER_TAKEN)
		all.why = BATON_STR("its runner was lost");
	enum baton_err e = runner_load(&s->db, a->number, &row, &found);
	if (e == BATON_OK && !found)
		return BATON_NOT_HELD;
	if (e == BATON_OK)
		e = runner_return(s, &row, &all);
	if (e == BATON_OK)
		e = RUN(&s->db, SQL_SHARD_FREE, (int64_t)a->number);
	books_shard(&s->books);
	if (e == BATON_OK)
		e = rates_forget(s, &row.owner);
	return e == BATON_OK ? RUN(&s->db, SQL_RUNNER_DROP, (int64_t)a->number) : e;
}

enum baton_err sqlite_runner_remove(struct baton_store *store, uint64_t number, enum runner_end end)
{
	struct remove_args args = {number, end};
	return sqlite_write_first((struct sqlite_store *)store, remove_run, &args);
}

struct settle_args {
	uint64_t number;
	struct returning unknown;
};

static enum baton_err settle_run(void *store, void *args)
{
	struct sqlite_store *s = store;
	const struct settle_args *a = args;
	struct runner_row row;
	bool found;
	enum baton_err e = runner_load(&s->db, a->number, &row, &found);
	if (e == BATON_OK && !found)
		return BATON_NOT_HELD;
	return e == BATON_OK ? runner_return(s, &row, &a->unknown) : e;
}

enum baton_err sqlite_runner_settle(struct baton_store *store, uint64_t number,
                                    const struct baton_work_proof *known, size_t count)
{
	struct settle_args args = {number, {.known = known, .known_count = count}};
	return sqlite_write_first((struct sqlite_store *)store, settle_run, &args);
}

static enum baton_err mark_run(void *store, void *args)
{
	struct sqlite_store *s = store;
	const struct runner_mark *mark = args;
	struct query q = query_begin(&s->db, SQL_RUNNER_MARK);
	query_int(&q, mark->wish);
	if (mark->state)
		query_text(&q, baton_str_z(mark->state));
	else
		query_null(&q);
	query_int(&q, (int64_t)mark->number);
	query_optional(&q, mark->name);
	if (mark->report.ptr)
		query_text(&q, mark->report);
	else
		query_null(&q);
	query_int(&q, s->now.ms);
	bool found = query_row(&q);
	while (query_row(&q))
		;
	enum baton_err e = query_end(&q);
	return e == BATON_OK && !found ? BATON_NOT_HELD : e;
}

enum baton_err sqlite_runner_mark(struct baton_store *store, const struct runner_mark *mark)
{
	struct runner_mark copy = *mark;
	return sqlite_write_proof((struct sqlite_store *)store, mark_run, &copy);
}

enum baton_err sqlite_runner_cancels(struct baton_store *store, uint64_t number,
                                     struct baton_claim_id *ids, size_t max, size_t *ret_count)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	enum baton_err e = sqlite_read_begin(s);
	if (e != BATON_OK)
		return e;
	e = claims_to_cancel(&s->read, number, ids, max, ret_count);
	sqlite_read_end(s);
	return e;
}

enum baton_err sqlite_runner_report(struct baton_store *store, uint64_t number,
                                    struct runner_report *ret)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	enum baton_err e = sqlite_read_begin(s);
	if (e != BATON_OK)
		return e;
	struct query q = query_begin(&s->read, SQL_RUNNER_REPORT);
	query_int(&q, (int64_t)number);
	bool found = query_row(&q);
	if (found) {
		ret->len = text_copy(&q, 0, ret->text, BATON_RUNNER_REPORT_MAX);
		ret->at.ms = column_int(&q, 1);
	}
	e = query_end(&q);
	sqlite_read_end(s);
	return e == BATON_OK && !found ? BATON_NOT_FOUND : e;
}

enum baton_err sqlite_runner_next(struct baton_store *store, uint64_t after,
                                  struct runner_row *ret_row)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	bool found;
	enum baton_err e = sqlite_read_begin(s);
	if (e != BATON_OK)
		return e;
	struct query q = query_begin(&s->read, SQL_RUNNER_NEXT);
	query_int(&q, (int64_t)after);
	e = take_row(&q, ret_row, &found);
	sqlite_read_end(s);
	return e == BATON_OK && !found ? BATON_NOT_FOUND : e;
}
