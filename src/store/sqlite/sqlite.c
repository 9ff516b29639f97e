/* A store in an SQLite file: its opening, and its transactions. */
#include "store/sqlite/sqlite.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fail.h"
#include "base/mem.h"
#include "store/sqlite/schema.h"

#define TIDY_EVERY 64 /* transactions */

void sqlite_tell(struct sqlite_store *s, const struct queue_row *q, struct baton_str lane,
                 uint32_t shard)
{
	struct baton_store_news news = {
		.queue = baton_queue_hash(&s->base, queue_row_name(q)),
		.lane = store_lane_hash(lane),
		.shard = shard,
	};
	for (size_t i = 0; i < s->news_count; i++) {
		const struct baton_store_news *known = &s->news[i];
		if (known->queue == news.queue && known->lane == news.lane &&
		    known->shard == news.shard)
			return;
	}
	if (s->news_count < NEWS_MAX)
		s->news[s->news_count++] = news;
}

static enum baton_err simple(struct db *db, enum sql sql)
{
	struct query q = query_begin(db, sql);
	return query_run(&q);
}

/* Whether it is an answer, which leaves the transaction in order, or a failure, after which nobody
 * knows what has been written. */
static bool is_answer(enum baton_err e)
{
	switch (e) {
	case BATON_OK:
	case BATON_YIELD:
	case BATON_NOT_HELD:
	case BATON_INVALID:
	case BATON_FULL:
	case BATON_CONFLICT:
	case BATON_NOT_FOUND:
	case BATON_BUSY:
		return true;
	case BATON_TIMEOUT:
	case BATON_CANCELLED:
	case BATON_NO_MEMORY:
	case BATON_SYSTEM:
	case BATON_GONE:
	case BATON_STALE:
	case BATON_STORAGE:
		return false;
	}
	return false;
}

/* Whether the request is over, as it is. Who finds that there are no more fences finds it in the
 * middle, and nothing of what he asked for is done. */
static bool is_over(const struct request *r, enum baton_err e)
{
	return is_answer(e) && !(r->fences && e == BATON_FULL);
}

enum baton_err sqlite_save_begin(struct sqlite_store *s, struct books_mark *mark)
{
	enum baton_err e = books_mark(&s->books, mark);
	if (e == BATON_OK)
		e = bulk_save(s);
	if (e == BATON_OK)
		e = simple(&s->db, SQL_SAVE);
	if (e != BATON_OK)
		books_mark_done(&s->books, mark);
	return e;
}

enum baton_err sqlite_save_end(struct sqlite_store *s, const struct books_mark *mark,
                               enum baton_err e)
{
	struct books_mark kept = *mark;
	enum baton_err ended = BATON_OK;
	if (is_answer(e) && e != BATON_OK) {
		ended = simple(&s->db, SQL_SAVE_BACK);
		if (ended == BATON_OK)
			books_back(&s->books, mark);
		bulk_back(s);
	}
	/* After a failure the whole transaction is undone. */
	if (is_answer(e) && ended == BATON_OK)
		ended = simple(&s->db, SQL_SAVE_KEEP);
	books_mark_done(&s->books, &kept);
	return ended == BATON_OK ? e : ended;
}

static void request_fail(struct request *r, enum baton_err e)
{
	const char *detail = baton_err_detail();
	size_t len = strnlen(detail, sizeof r->detail - 1);
	memcpy(r->detail, detail, len);
	r->detail[len] = '\0';
	r->err = e;
}

static void rollback(struct sqlite_store *s)
{
	db_rollback(&s->db);
	books_forget(&s->books);
	bulk_reset(&s->bulks);
	s->news_count = 0;
	s->freed = false;
}

/* What is written to a file that is no longer where the others look for it is lost, and what is
 * read from it is old. */
static enum baton_err check_place(const struct sqlite_store *s, const struct db *db)
{
	int moved = 0;
	int code = sqlite3_file_control(db->handle, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
	if (code == SQLITE_OK && moved == 0)
		return BATON_OK;
	return fail(BATON_STORAGE,
	            "store %s was removed or replaced while it was open: it has to be opened anew",
	            s->path);
}

enum baton_err sqlite_read_begin(struct sqlite_store *s)
{
	pthread_mutex_lock(&s->read_mu);
	s->read.paused_us = 0;
	enum baton_err e = check_place(s, &s->read);
	if (e != BATON_OK)
		pthread_mutex_unlock(&s->read_mu);
	return e;
}

void sqlite_read_end(struct sqlite_store *s)
{
	pthread_mutex_unlock(&s->read_mu);
}

static enum baton_err begin(struct sqlite_store *s, bool renews)
{
	s->db.paused_us = 0;
	s->news_count = 0;
	s->freed = false;
	turn_wait(&s->turn, renews);
	enum baton_err e = db_begin(&s->db, SQL_BEGIN);
	turn_pass(&s->turn);
	if (e != BATON_OK)
		return e;
	e = check_place(s, &s->db);
	if (e == BATON_OK)
		e = books_open(&s->books, &s->db);
	if (e != BATON_OK)
		rollback(s);
	s->books.turn++;
	return e;
}

/* Those of one kind; they share what is gathered for the commit, and others see it. */
static enum baton_err run_kind(struct sqlite_store *s, struct request *list, enum request_kind kind)
{
	enum baton_err e = BATON_OK;
	for (struct request *r = list; r && e == BATON_OK; r = r->next) {
		if (r->kind != kind)
			continue;
		enum baton_err own = r->run(s, r->args);
		if (is_over(r, own))
			request_fail(r, own);
		else
			e = own;
		if (e == BATON_OK && kind == REQUEST_OTHER)
			e = bulk_flush(s);
		arena_reset(&s->scratch);
	}
	return e == BATON_OK ? bulk_flush(s) : e;
}

/* Every request of the list in one transaction. Not BATON_OK: nothing is there of any of them. */
static enum baton_err run_once(struct sqlite_store *s, struct request *list)
{
	enum baton_err e = begin(s, list->first);
	s->now = baton_store_now(&s->base);
	for (enum request_kind k = REQUEST_OTHER; k <= REQUEST_CLAIM && e == BATON_OK; k++)
		e = run_kind(s, list, k);
	if (e == BATON_OK && ++s->transactions % TIDY_EVERY == 0) {
		e = tidy_little(s);
		arena_done(&s->scratch); /* what a large request took, too */
	}
	if (e == BATON_OK)
		e = books_write(&s->books, &s->db, s->now);
	if (e == BATON_OK)
		e = simple(&s->db, SQL_COMMIT);
	bulk_reset(&s->bulks);
	if (!sqlite3_get_autocommit(s->db.handle))
		rollback(s);
	else if (e != BATON_OK)
		books_forget(&s->books);
	return e;
}

static bool hands_out_fences(const struct request *list)
{
	for (const struct request *r = list; r; r = r->next) {
		if (r->fences)
			return true;
	}
	return false;
}

/* How much the next transaction syncs, which cannot change within it. */
static enum baton_err sync_set(struct sqlite_store *s, bool full)
{
	if (s->full == full)
		return BATON_OK;
	enum baton_err e =
		db_exec(&s->db, full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
	if (e == BATON_OK)
		s->full = full;
	return e;
}

/* A relaxed store is not relaxed about fences. */
static enum baton_err run_all(struct sqlite_store *s, struct request *list)
{
	enum baton_err e =
		sync_set(s, s->base.sync != BATON_STORE_RELAXED || hands_out_fences(list));
	return e == BATON_OK ? run_once(s, list) : e;
}

static void ring(struct sqlite_store *s)
{
	struct baton_store_news news[NEWS_MAX];
	size_t count = s->news_count;
	memcpy(news, s->news, count * sizeof news[0]);
	s->news_count = 0;
	s->freed = false;
	store_ring(&s->base, news, count);
}

/* A group that fails is done again one by one, so that nobody fails for what another asked. But
 * who has the lock has it for all of them: each would only wait as long again. */
static void commit(void *store, struct request *list)
{
	struct sqlite_store *s = store;
	enum baton_err e = run_all(s, list);
	if (e == BATON_OK) {
		ring(s);
		return;
	}
	bool alone = !list->next;
	for (struct request *r = list; r; r = r->next) {
		struct request *next = r->next;
		r->next = NULL;
		if (!alone && e != BATON_BUSY)
			e = r->after && r->after->err != BATON_OK ? r->after->err : run_all(s, r);
		if (e == BATON_OK)
			ring(s);
		else
			request_fail(r, e);
		r->next = next;
	}
}

enum baton_err sqlite_write(struct sqlite_store *s, enum baton_err (*run)(void *store, void *args),
                            void *args)
{
	struct request r = {.run = run, .args = args};
	return group_do(&s->group, &r);
}

enum baton_err sqlite_write_kind(struct sqlite_store *s, enum request_kind kind,
                                 enum baton_err (*run)(void *store, void *args), void *args)
{
	struct request r = {.run = run, .args = args, .kind = kind};
	return group_do(&s->group, &r);
}

enum baton_err sqlite_write_first(struct sqlite_store *s,
                                  enum baton_err (*run)(void *store, void *args), void *args)
{
	struct request r = {.run = run, .args = args, .first = true};
	return group_do(&s->group, &r);
}

enum baton_err sqlite_write_fences(struct sqlite_store *s,
                                   enum baton_err (*run)(void *store, void *args), void *args)
{
	struct request r = {.run = run, .args = args, .fences = true};
	return group_do(&s->group, &r);
}

enum baton_err sqlite_write_proof(struct sqlite_store *s,
                                  enum baton_err (*run)(void *store, void *args), void *args)
{
	struct request r = {.run = run, .args = args, .first = true, .fences = true};
	return group_do(&s->group, &r);
}

static enum baton_err sqlite_version(struct baton_store *store, uint64_t *ret)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	enum baton_err e = sqlite_read_begin(s);
	if (e != BATON_OK)
		return e;
	struct query q = query_begin(&s->read, SQL_VERSION);
	int64_t version = query_row(&q) ? column_int(&q, 0) : 0;
	e = query_end(&q);
	if (e == BATON_OK && version != s->version_seen) {
		s->version_seen = version;
		s->version++;
	}
	*ret = s->version;
	sqlite_read_end(s);
	return e;
}

static void sqlite_close(struct baton_store *store)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	/* In a forked child SQLite would undo, in the memory that it shares with others, what the
	 * parent is at. */
	if (store_enter(store) == BATON_OK) {
		db_close(&s->db);
		db_close(&s->read);
	}
	turn_close(&s->turn);
	arena_done(&s->scratch);
	arena_done(&s->bulks.arena);
	books_done(&s->books);
	group_done(&s->group);
	pthread_mutex_destroy(&s->read_mu);
	store_done(&s->base);
	mem_free(s->base.alloc, s, 1, sizeof *s);
}

static const struct store_ops ops = {
	.close = sqlite_close,
	.lease_claim = sqlite_lease_claim,
	.lease_renew = sqlite_lease_renew,
	.lease_release = sqlite_lease_release,
	.lease_force = sqlite_lease_force,
	.lease_read = sqlite_lease_read,
	.lease_list = sqlite_lease_list,
	.queue_set = sqlite_queue_set,
	.queue_list = sqlite_queue_list,
	.queue_get = sqlite_queue_get,
	.put = sqlite_put,
	.claim = sqlite_claim,
	.lane_claim = sqlite_lane_claim,
	.renew = sqlite_renew,
	.end = sqlite_end,
	.next = sqlite_next,
	.cancel = sqlite_cancel,
	.revive = sqlite_revive,
	.get = sqlite_get,
	.list = sqlite_list,
	.next_due = sqlite_next_due,
	.schedule_set = sqlite_schedule_set,
	.schedule_remove = sqlite_schedule_remove,
	.schedule_list = sqlite_schedule_list,
	.schedule_step = sqlite_schedule_step,
	.runner_add = sqlite_runner_add,
	.runner_remove = sqlite_runner_remove,
	.runner_settle = sqlite_runner_settle,
	.runner_next = sqlite_runner_next,
	.runner_mark = sqlite_runner_mark,
	.runner_cancels = sqlite_runner_cancels,
	.runner_report = sqlite_runner_report,
	.shard_change = sqlite_shard_change,
	.shard_list = sqlite_shard_list,
	.tick = sqlite_tick,
	.more = sqlite_more,
	.backup = sqlite_backup,
	.check = sqlite_check,
	.tidy = sqlite_tidy,
	.version = sqlite_version,
};

static enum baton_err read_name(struct sqlite_store *s)
{
	struct query q = query_begin(&s->db, SQL_STATE_READ);
	if (query_row(&q))
		column_id(&q, 5, &s->base.name);
	return query_end(&q);
}

/* What is beside the file, wherever that is: by whatever name it was opened, all share it. */
static enum baton_err open_beside(struct sqlite_store *s)
{
	char real[PATH_MAX];
	if (!realpath(s->path, real))
		return fail(BATON_STORAGE, "cannot find store %s: %s", s->path, strerror(errno));
	int len = snprintf(s->base.beats_path, sizeof s->base.beats_path, "%s-beats", real);
	if (len < (int)sizeof s->base.beats_path) {
		memcpy(s->base.lock_path, real, strlen(real));
		memcpy(s->base.lock_path + strlen(real), DB_LOCK_FILE, sizeof DB_LOCK_FILE);
		s->base.lock_at = DB_LOCK_AT;
		turn_open(&s->turn, real);
		return BATON_OK;
	}
	return fail(BATON_INVALID, "the path of the store has %zu bytes: at most %d are allowed",
	            strlen(real), BATON_STORE_PATH_MAX);
}

#define AGAIN_US 500

/* Where several make one new file at once, SQLite tells some of them that it is busy without having
 * waited: it cannot wait for a lock with another one in hand. So all of it is tried again. */
static enum baton_err schema_wait(struct sqlite_store *s)
{
	enum baton_err e = schema_open(&s->db, baton_store_now(&s->base));
	while (e == BATON_BUSY && db_pause(&s->db, AGAIN_US))
		e = schema_open(&s->db, baton_store_now(&s->base));
	return e;
}

static enum baton_err open_both(struct sqlite_store *s, bool existing)
{
	const struct db_patience patience = {s->base.clock, s->base.patience.ns / 1000000};
	enum baton_err e = db_open(&s->db, s->path, existing, &patience);
	if (e == BATON_OK)
		e = schema_wait(s);
	if (e == BATON_OK)
		e = read_name(s);
	if (e == BATON_OK)
		e = open_beside(s);
	if (e == BATON_OK)
		e = db_open(&s->read, s->path, true, &patience);
	s->db.known = s->read.known = true;
	return e;
}

enum baton_err sqlite_open(const struct baton_store *store, const char *path, bool existing,
                           struct baton_store **ret_store)
{
	struct sqlite_store *s = mem_new(store->alloc, 1, sizeof *s);
	if (!s)
		return fail_memory(sizeof *s, "a store");
	s->base = *store;
	s->base.ops = &ops;
	s->full = true;
	memcpy(s->path, path, strlen(path) + 1);
	pthread_mutex_init(&s->base.beats_mu, NULL);
	pthread_mutex_init(&s->read_mu, NULL);
	group_init(&s->group, commit, s);
	s->turn.fd = -1;
	books_init(&s->books, store->alloc);
	arena_init(&s->scratch, store->alloc);
	arena_init(&s->bulks.arena, store->alloc);
	enum baton_err e = open_both(s, existing);
	if (e != BATON_OK) {
		sqlite_close(&s->base);
		return e;
	}
	*ret_store = &s->base;
	return BATON_OK;
}
