/* Looking at a store in a PostgreSQL database, and caring for it. */
#include "store/postgres/look.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "store/memory/ops.h"
#include "store/parcel.h"
#include "store/postgres/postgres.h"

static struct pg_store *of(struct baton_store *store)
{
	return (struct pg_store *)store;
}

struct lease_args {
	const struct baton_str *subjects;
	size_t count;
	struct lease_row *rows;
};

static void lease_want(struct wants *w, const void *args)
{
	const struct lease_args *a = args;
	for (size_t i = 0; i < a->count; i++)
		want_subject(w, a->subjects[i]);
}

static enum baton_err lease_run(struct baton_store *desk, void *args)
{
	const struct lease_args *a = args;
	return memory_lease_read(desk, a->subjects, a->count, a->rows);
}

enum baton_err pg_lease_read(struct baton_store *store, const struct baton_str *subjects,
                             size_t count, struct lease_row *rows)
{
	struct lease_args args = {subjects, count, rows};
	return pg_look(of(store), lease_want, lease_run, &args);
}

static void get_want(struct wants *w, const void *args)
{
	want_batch(w, ((const struct baton_batch_id *const *)args)[0]);
}

struct get_args {
	const struct baton_batch_id *id;
	struct baton_work_page **ret_page;
};

static enum baton_err get_run(struct baton_store *desk, void *args)
{
	const struct get_args *a = args;
	return memory_get(desk, a->id, a->ret_page);
}

enum baton_err pg_get(struct baton_store *store, const struct baton_batch_id *id,
                      struct baton_work_page **ret_page)
{
	struct get_args args = {id, ret_page};
	return pg_look(of(store), get_want, get_run, &args);
}

struct shards_args {
	struct baton_str queue;
	uint32_t first;
	struct baton_shard_answer *answers;
	size_t count;
};

static void shards_want(struct wants *w, const void *args)
{
	const struct shards_args *a = args;
	want_queue(w, a->queue);
	for (size_t i = 0; i < a->count; i++)
		want_shard(w, a->queue, a->first + (uint32_t)i);
}

static enum baton_err shards_run(struct baton_store *desk, void *args)
{
	const struct shards_args *a = args;
	return memory_shard_list(desk, a->queue, a->first, a->answers, a->count);
}

enum baton_err pg_shard_list(struct baton_store *store, struct baton_str queue, uint32_t first,
                             struct baton_shard_answer *answers, size_t count)
{
	struct shards_args args = {queue, first, answers, count};
	return pg_look(of(store), shards_want, shards_run, &args);
}

/* A look with statements of its own: the connection, and a desk for what they find. */
struct glance {
	struct pg_store *s;
	struct conn *c;
	struct desk d;
	int start;
};

/* Others wait until glance_end(). */
static enum baton_err glance_begin(struct glance *g, struct baton_store *store)
{
	*g = (struct glance){.s = of(store), .c = &of(store)->read};
	g->d.memory = true;
	pthread_mutex_lock(&g->s->read_mu);
	enum baton_err e = conn_need(g->c);
	if (e != BATON_OK)
		return e;
	conn_begin_look(g->c, atomic_load(&g->s->beat_ms));
	g->start = conn_send(g->c, SQL_START, NULL);
	return BATON_OK;
}

/* Reads the answers of what was sent after glance_begin(), which are those after the first two. */
static enum baton_err glance_read(struct glance *g)
{
	struct loading l;
	memset(&l, 0xff, sizeof l);
	l.start = g->start;
	enum baton_err e = conn_round(g->c);
	return e == BATON_OK ? load_take(g->s, g->c, &l, &g->d) : e;
}

static enum baton_err glance_end(struct glance *g, enum baton_err e)
{
	conn_rollback(g->c);
	desk_close(&g->d);
	pthread_mutex_unlock(&g->s->read_mu);
	return e;
}

enum baton_err pg_lease_list(struct baton_store *store, struct baton_str prefix,
                             struct baton_str after, struct baton_lease_entry *entries, size_t max,
                             size_t *ret_count)
{
	struct glance g;
	struct args a;
	int list = 0;
	enum baton_err e = glance_begin(&g, store);
	if (e == BATON_OK) {
		args_init(&a, store->alloc, 4);
		arg_text(&a, 0, after);
		arg_text(&a, 1, prefix);
		arg_int(&a, 2, baton_store_now(store).ms);
		arg_int(&a, 3, (int64_t)max);
		list = conn_send(g.c, SQL_LEASE_LIST, &a);
		e = glance_read(&g);
	}
	if (e == BATON_OK)
		e = desk_leases(&g.d, conn_answer(g.c, list));
	if (e == BATON_OK)
		e = memory_lease_list(g.d.store, prefix, after, entries, max, ret_count);
	return glance_end(&g, e);
}

static int send_queue_list(struct glance *g, struct baton_str after, size_t max)
{
	struct args a;
	args_init(&a, g->c->alloc, 2);
	arg_text(&a, 0, after);
	arg_int(&a, 1, (int64_t)max);
	return conn_send(g->c, SQL_QUEUE_LIST, &a);
}

static int send_queue(struct glance *g, struct baton_str name)
{
	struct args a;
	args_init(&a, g->c->alloc, 1);
	arg_array(&a, 0, ARG_TEXT);
	add_str(&a, 0, name);
	return conn_send(g->c, SQL_LOOK, &a);
}

/* Sends a statement about all queues that were found. */
static int send_names(struct glance *g, enum sql sql)
{
	struct args names;
	args_init(&names, g->c->alloc, 1);
	arg_array(&names, 0, ARG_TEXT);
	for (size_t i = 0; i < g->d.queue_count; i++)
		add_str(&names, 0, g->d.queues[i].row->name);
	return conn_send(g->c, sql, &names);
}

/* The queues that were found, and their first heads. */
static enum baton_err queues_load(struct glance *g, int queues)
{
	enum baton_err e = glance_read(g);
	if (e == BATON_OK)
		e = desk_queues(&g->d, conn_answer(g->c, queues));
	if (e != BATON_OK)
		return e;
	int batches = send_names(g, SQL_OLDEST);
	int shared = send_names(g, SQL_OLDEST_BULK);
	int claims = send_names(g, SQL_OLDEST_CLAIMS);
	e = conn_round(g->c);
	if (e == BATON_OK)
		e = desk_batches(&g->d, conn_answer(g->c, batches));
	if (e == BATON_OK)
		e = desk_batches(&g->d, conn_answer(g->c, shared));
	return e == BATON_OK ? desk_claims(&g->d, conn_answer(g->c, claims)) : e;
}

enum baton_err pg_queue_get(struct baton_store *store, struct baton_str name,
                            struct baton_queue_info *ret_info)
{
	struct glance g;
	enum baton_err e = glance_begin(&g, store);
	if (e == BATON_OK)
		e = queues_load(&g, send_queue(&g, name));
	if (e == BATON_OK)
		e = memory_queue_get(g.d.store, name, ret_info);
	return glance_end(&g, e);
}

enum baton_err pg_queue_list(struct baton_store *store, struct baton_str after,
                             struct baton_queue_info *infos, size_t max, size_t *ret_count)
{
	struct glance g;
	enum baton_err e = glance_begin(&g, store);
	if (e == BATON_OK)
		e = queues_load(&g, send_queue_list(&g, after, max));
	if (e == BATON_OK)
		e = memory_queue_list(g.d.store, after, infos, max, ret_count);
	return glance_end(&g, e);
}

static void send_list(struct glance *g, const struct baton_work_filter *f, int64_t now_ms,
                      int *ret_list, int *ret_end)
{
	struct args a;
	args_init(&a, g->c->alloc, 6);
	arg_int(&a, 0, (int64_t)f->after);
	arg_optional(&a, 1, f->queue);
	arg_optional(&a, 2, f->lane);
	arg_int(&a, 3, f->state);
	arg_int(&a, 4, (int64_t)f->max);
	arg_int(&a, 5, now_ms);
	*ret_list = conn_send(g->c, SQL_LIST, &a);
	args_init(&a, g->c->alloc, 1);
	arg_int(&a, 0, (int64_t)f->after);
	*ret_end = conn_send(g->c, SQL_LIST_END, &a);
}

/* The queues and the claims of the batches that were found. */
static enum baton_err list_load(struct glance *g, const PGresult *batches)
{
	struct args queues, seqs, members;
	args_init(&queues, g->c->alloc, 1);
	args_init(&seqs, g->c->alloc, 1);
	args_init(&members, g->c->alloc, 1);
	arg_array(&queues, 0, ARG_INT4);
	arg_array(&seqs, 0, ARG_INT8);
	arg_array(&members, 0, ARG_INT8);
	for (int i = 0; i < PQntuples(batches); i++) {
		add_int(&queues, 0, cell_int(batches, i, 2));
		add_int(&seqs, 0, cell_int(batches, i, 0));
		add_int(&members, 0, cell_int(batches, i, 0));
	}
	PGresult *copy = PQcopyResult(batches, PG_COPYRES_ATTRS | PG_COPYRES_TUPLES);
	int queue_list = conn_send(g->c, SQL_LIST_QUEUES, &queues);
	int claim_list = conn_send(g->c, SQL_LIST_CLAIMS, &seqs);
	int item_list = conn_send(g->c, SQL_MEMBER_CLAIMS, &members);
	enum baton_err e = conn_round(g->c);
	if (e == BATON_OK && !copy)
		e = fail(BATON_NO_MEMORY, "no memory for a page");
	if (e == BATON_OK)
		e = desk_queues(&g->d, conn_answer(g->c, queue_list));
	if (e == BATON_OK)
		e = desk_batches(&g->d, copy);
	if (e == BATON_OK)
		e = desk_claims(&g->d, conn_answer(g->c, claim_list));
	if (e == BATON_OK)
		e = desk_claims(&g->d, conn_answer(g->c, item_list));
	PQclear(copy);
	return e;
}

enum baton_err pg_list(struct baton_store *store, const struct baton_work_filter *filter,
                       struct baton_work_page **ret_page)
{
	struct glance g;
	struct baton_work_page *page = NULL;
	int list = 0, end = 0;
	int64_t last = 0;
	enum baton_err e = glance_begin(&g, store);
	if (e == BATON_OK) {
		send_list(&g, filter, baton_store_now(store).ms, &list, &end);
		e = glance_read(&g);
	}
	if (e == BATON_OK) {
		last = cell_int(conn_answer(g.c, end), 0, 0);
		e = list_load(&g, conn_answer(g.c, list));
	}
	if (e == BATON_OK)
		e = memory_list(g.d.store, filter, &page);
	/* No more were looked at, though there are some. */
	if (e == BATON_OK && last > 0 && page->count < filter->max)
		page->next = (uint64_t)last;
	if (e == BATON_OK)
		*ret_page = page;
	return glance_end(&g, e);
}

enum baton_err pg_next_due(struct baton_store *store, struct baton_str queue,
                           struct baton_store_time after, struct baton_store_time *ret)
{
	struct glance g;
	struct args a;
	bool found = false;
	enum baton_err e = glance_begin(&g, store);
	if (e == BATON_OK) {
		args_init(&a, store->alloc, 2);
		arg_optional(&a, 0, queue);
		arg_int(&a, 1, after.ms + 1);
		int due = conn_send(g.c, SQL_NEXT_DUE, &a);
		e = conn_round(g.c);
		int64_t at = INT64_MAX; /* what a runner has claimed lasts as long as it does */
		if (e == BATON_OK && PQntuples(conn_answer(g.c, due)) > 0)
			at = cell_int(conn_answer(g.c, due), 0, 0);
		found = at != INT64_MAX;
		if (found)
			ret->ms = at;
	}
	e = glance_end(&g, e);
	return e == BATON_OK && !found ? BATON_NOT_FOUND : e;
}

enum baton_err pg_schedule_list(struct baton_store *store, struct baton_str after,
                                struct baton_str name, size_t max, struct schedules_parcel *page)
{
	struct glance g;
	struct args a;
	enum baton_err e = glance_begin(&g, store);
	if (e != BATON_OK)
		return glance_end(&g, e);
	args_init(&a, store->alloc, name.len > 0 ? 1 : 2);
	if (name.len > 0) {
		arg_array(&a, 0, ARG_TEXT);
		add_str(&a, 0, name);
	} else {
		arg_text(&a, 0, after);
		arg_int(&a, 1, (int64_t)max);
	}
	int list = conn_send(g.c, name.len > 0 ? SQL_SCHEDULES : SQL_SCHEDULE_LIST, &a);
	e = glance_read(&g);
	if (e == BATON_OK)
		e = desk_schedules(&g.d, conn_answer(g.c, list));
	if (e == BATON_OK)
		e = memory_schedule_list(g.d.store, after, name, max, page);
	return glance_end(&g, e);
}

enum baton_err pg_runner_next(struct baton_store *store, uint64_t after, struct runner_row *ret_row)
{
	struct glance g;
	struct args a;
	enum baton_err e = glance_begin(&g, store);
	if (e != BATON_OK)
		return glance_end(&g, e);
	args_init(&a, store->alloc, 2);
	arg_int(&a, 0, after < INT64_MAX ? (int64_t)after : INT64_MAX);
	arg_int(&a, 1, 1);
	int list = conn_send(g.c, SQL_RUNNERS, &a);
	e = glance_read(&g);
	if (e == BATON_OK)
		e = desk_runners(&g.d, conn_answer(g.c, list));
	if (e == BATON_OK)
		e = memory_runner_next(g.d.store, after, ret_row);
	return glance_end(&g, e);
}

/* Runs one statement by itself. *ret_rows: how many it found; *ret_number: the first of them. */
static enum baton_err one_number(struct pg_store *s, enum sql sql, struct args *a, int *ret_rows,
                                 int64_t *ret_number)
{
	struct conn *c = &s->read;
	pthread_mutex_lock(&s->read_mu);
	enum baton_err e = conn_need(c);
	if (e != BATON_OK) {
		if (a)
			args_done(a);
		pthread_mutex_unlock(&s->read_mu);
		return e;
	}
	conn_begin(c, atomic_load(&s->beat_ms));
	int answer = conn_send(c, sql, a);
	e = conn_commit(c);
	if (e == BATON_OK) {
		const PGresult *r = conn_answer(c, answer);
		*ret_rows = PQntuples(r);
		*ret_number = *ret_rows > 0 ? cell_int(r, 0, 0) : 0;
	}
	conn_rollback(c);
	pthread_mutex_unlock(&s->read_mu);
	return e;
}

enum baton_err pg_beat(struct baton_store *store, uint64_t number)
{
	struct args a;
	int rows;
	int64_t beat;
	args_init(&a, store->alloc, 1);
	arg_int(&a, 0, (int64_t)number);
	enum baton_err e = one_number(of(store), SQL_RUNNER_BEAT, &a, &rows, &beat);
	return e == BATON_OK && rows == 0 ? BATON_NOT_HELD : e;
}

static enum baton_err mark_report(struct baton_store *store, const struct runner_mark *mark)
{
	struct args a;
	int rows;
	int64_t number;
	args_init(&a, store->alloc, 3);
	arg_int(&a, 0, (int64_t)mark->number);
	if (mark->state)
		arg_text(&a, 1, baton_str_z(mark->state));
	arg_text(&a, 2, mark->report);
	enum baton_err e = one_number(of(store), SQL_RUNNER_REPORT, &a, &rows, &number);
	return e == BATON_OK && rows == 0 ? BATON_NOT_HELD : e;
}

enum baton_err pg_runner_report(struct baton_store *store, uint64_t number,
                                struct runner_report *ret)
{
	struct glance g;
	struct args a;
	bool found = false;
	enum baton_err e = glance_begin(&g, store);
	if (e != BATON_OK)
		return glance_end(&g, e);
	args_init(&a, store->alloc, 1);
	arg_int(&a, 0, (int64_t)number);
	int answer = conn_send(g.c, SQL_RUNNER_REPORTED, &a);
	e = glance_read(&g);
	if (e == BATON_OK) {
		const PGresult *r = conn_answer(g.c, answer);
		found = PQntuples(r) > 0;
		struct baton_str text = found ? cell_str(r, 0, 0) : (struct baton_str){NULL, 0};
		ret->len = text.len < BATON_RUNNER_REPORT_MAX ? text.len : BATON_RUNNER_REPORT_MAX;
		if (ret->len > 0)
			memcpy(ret->text, text.ptr, ret->len);
		ret->at.ms = found ? cell_int(r, 0, 1) : 0;
	}
	return glance_end(&g, e == BATON_OK && !found ? BATON_NOT_FOUND : e);
}

enum baton_err pg_runner_cancels(struct baton_store *store, uint64_t number,
                                 struct baton_claim_id *ids, size_t max, size_t *ret_count)
{
	struct glance g;
	struct args a;
	enum baton_err e = glance_begin(&g, store);
	if (e != BATON_OK)
		return glance_end(&g, e);
	args_init(&a, store->alloc, 2);
	arg_int(&a, 0, (int64_t)number);
	arg_int(&a, 1, (int64_t)max);
	int answer = conn_send(g.c, SQL_RUNNER_CANCELS, &a);
	e = conn_round(g.c);
	if (e == BATON_OK) {
		const PGresult *r = conn_answer(g.c, answer);
		*ret_count = (size_t)PQntuples(r);
		for (int i = 0; i < PQntuples(r); i++)
			claim_name_print(&(struct claim_name){(uint64_t)cell_int(r, i, 0),
			                                      (uint64_t)cell_int(r, i, 1)},
			                 ids[i].text);
	}
	return glance_end(&g, e);
}

enum baton_err pg_runner_mark(struct baton_store *store, const struct runner_mark *mark)
{
	if (mark->report.ptr)
		return mark_report(store, mark);
	struct args a;
	int rows;
	int64_t number;
	args_init(&a, store->alloc, 4);
	arg_int(&a, 0, (int64_t)mark->number);
	arg_text(&a, 1, mark->name);
	if (mark->wish)
		arg_int(&a, 2, mark->wish);
	if (mark->state)
		arg_text(&a, 3, baton_str_z(mark->state));
	enum baton_err e = one_number(of(store), SQL_RUNNER_MARK, &a, &rows, &number);
	return e == BATON_OK && rows == 0 ? BATON_NOT_HELD : e;
}

enum baton_err pg_beat_stop(struct baton_store *store, uint64_t number, uint64_t seen)
{
	struct args a;
	int rows;
	int64_t beat;
	args_init(&a, store->alloc, 2);
	arg_int(&a, 0, (int64_t)number);
	arg_int(&a, 1, (int64_t)seen);
	enum baton_err e = one_number(of(store), SQL_RUNNER_STOP, &a, &rows, &beat);
	return e == BATON_OK && rows == 0 ? BATON_NOT_HELD : e;
}

enum baton_err pg_backup(struct baton_store *store, const char *path,
                         const struct baton_store_progress *progress)
{
	(void)store;
	(void)path;
	(void)progress;
	return fail(BATON_INVALID,
	            "a store in PostgreSQL is copied with its own tools: pg_dump, or "
	            "pg_basebackup for the whole server");
}

enum baton_err pg_check(struct baton_store *store, void (*report)(void *arg, const char *sentence),
                        void *arg, uint64_t *ret_faults)
{
	struct glance g;
	uint64_t faults = 0;
	enum baton_err e = glance_begin(&g, store);
	if (e == BATON_OK) {
		struct args a; /* however much there is */
		args_init(&a, store->alloc, 1);
		arg_text(&a, 0, BATON_STR("0"));
		conn_send(g.c, SQL_WITHIN, &a);
		int list = conn_send(g.c, SQL_CHECK, NULL);
		e = conn_round(g.c);
		for (int i = 0; e == BATON_OK && i < PQntuples(conn_answer(g.c, list)); i++) {
			char sentence[200];
			const PGresult *r = conn_answer(g.c, list);
			struct baton_str text = cell_str(r, i, 0);
			snprintf(sentence, sizeof sentence, "%" PRId64 " %.*s", cell_int(r, i, 1),
			         (int)text.len, text.ptr);
			faults++;
			if (report)
				report(arg, sentence);
		}
	}
	e = glance_end(&g, e);
	if (e == BATON_OK)
		*ret_faults = faults;
	return e;
}

enum baton_err pg_tidy(struct baton_store *store, size_t max, size_t *ret_count)
{
	struct args a;
	int rows;
	int64_t count = 0;
	args_init(&a, store->alloc, 2);
	arg_int(&a, 0, baton_store_now(store).ms);
	arg_int(&a, 1, max < 10000 ? (int64_t)max : 10000);
	enum baton_err e = one_number(of(store), SQL_TIDY, &a, &rows, &count);
	if (e == BATON_OK)
		*ret_count = (size_t)count;
	return e;
}

enum baton_err pg_version(struct baton_store *store, uint64_t *ret_version)
{
	int rows;
	int64_t version = 0;
	enum baton_err e = one_number(of(store), SQL_VERSION, NULL, &rows, &version);
	if (e == BATON_OK)
		*ret_version = (uint64_t)version;
	return e;
}

enum baton_err pg_mark(struct pg_store *s)
{
	int rows;
	int64_t since;
	return one_number(s, SQL_SLEEP, NULL, &rows, &since);
}
