/* SQLite by hand: the rows that the store writes for a job that is put alone, and nothing else. */
#include <err.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claims/arena.h"
#include "jobs/jobs.h"
#include "jobs/meeting.h"

static const char tables[] =
	"PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA secure_delete=FAST;"
	"CREATE TABLE counter(one INTEGER PRIMARY KEY, seq INTEGER, ready INTEGER, done INTEGER);"
	"INSERT INTO counter VALUES(1, 0, 0, 0);"
	"CREATE TABLE job(seq INTEGER PRIMARY KEY, queue INTEGER, put_at INTEGER, payload BLOB);"
	"CREATE TABLE ready(queue INTEGER, rank INTEGER, seq INTEGER,"
	" PRIMARY KEY(queue, rank, seq)) WITHOUT ROWID;"
	"CREATE TABLE claim(seq INTEGER, fence INTEGER, token BLOB, expires INTEGER,"
	" PRIMARY KEY(seq, fence)) WITHOUT ROWID;"
	"CREATE INDEX claim_expires ON claim(expires);"
	"CREATE TABLE finished(seq INTEGER PRIMARY KEY, fence INTEGER, token BLOB, until INTEGER);";

enum step {
	PUT,
	PUT_READY,
	FIND,
	TAKE,
	READ,
	CLAIM,
	PROVE,
	FREE,
	FINISH,
	FORGET,
	COUNT,
	STEPS
};

static const char *const texts[STEPS] = {
	[PUT] = "INSERT INTO job VALUES(?1, 1, 1700000000000, ?2)",
	[PUT_READY] = "INSERT INTO ready VALUES(1, 9, ?1)",
	[FIND] = "SELECT seq FROM ready WHERE queue = 1 ORDER BY rank, seq LIMIT ?1",
	[TAKE] = "DELETE FROM ready WHERE queue = 1 AND rank = 9 AND seq = ?1",
	[READ] = "SELECT payload FROM job WHERE seq = ?1",
	[CLAIM] = "INSERT INTO claim VALUES(?1, 1785000000000000, randomblob(16), 1700000000000)",
	[PROVE] = "SELECT token FROM claim WHERE seq = ?1",
	[FREE] = "DELETE FROM claim WHERE seq = ?1",
	[FINISH] =
		"INSERT INTO finished VALUES(?1, 1785000000000000, randomblob(16), 1700000000000)",
	[FORGET] = "DELETE FROM job WHERE seq = ?1",
	[COUNT] = "UPDATE counter SET seq = ?1, ready = ready + 1, done = done + 1",
};

#define GROUP_MAX 100

struct bare {
	char folder[PATH_MAX];
	sqlite3 *db;
	sqlite3_stmt *stmts[STEPS];
	sqlite3_int64 seq;
	unsigned group;
	struct meeting meeting;
};

static void check(const struct bare *b, int code, int expected)
{
	if (code != expected)
		errx(1, "SQLite: %s", sqlite3_errmsg(b->db));
}

static void *bare_open(unsigned group)
{
	static const char payload[JOB_BYTES];
	char path[PATH_MAX + 16];
	struct bare *b = arena_new(sizeof *b);
	b->group = group;
	jobs_folder(b->folder);
	snprintf(path, sizeof path, "%s/bare", b->folder);
	check(b, sqlite3_open(path, &b->db), SQLITE_OK);
	check(b, sqlite3_exec(b->db, tables, NULL, NULL, NULL), SQLITE_OK);
	for (int i = 0; i < STEPS; i++)
		check(b,
		      sqlite3_prepare_v3(b->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT,
		                         &b->stmts[i], NULL),
		      SQLITE_OK);
	sqlite3_bind_blob(b->stmts[PUT], 2, payload, sizeof payload, SQLITE_STATIC);
	return b;
}

static void run(struct bare *b, enum step step, sqlite3_int64 seq)
{
	bool reads = step == READ || step == PROVE;
	sqlite3_bind_int64(b->stmts[step], 1, seq);
	check(b, sqlite3_step(b->stmts[step]), reads ? SQLITE_ROW : SQLITE_DONE);
	sqlite3_reset(b->stmts[step]);
}

static void begin(struct bare *b)
{
	check(b, sqlite3_exec(b->db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
}

static void commit(struct bare *b)
{
	run(b, COUNT, b->seq);
	check(b, sqlite3_exec(b->db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
}

static void put(struct bare *b)
{
	run(b, PUT, ++b->seq);
	run(b, PUT_READY, b->seq);
}

static void take(struct bare *b, sqlite3_int64 seq)
{
	run(b, TAKE, seq);
	run(b, READ, seq);
	run(b, CLAIM, seq);
}

static void complete(struct bare *b, sqlite3_int64 seq)
{
	run(b, PROVE, seq);
	run(b, FREE, seq);
	run(b, FORGET, seq);
	run(b, FINISH, seq);
}

static void put_all(struct bare *b, unsigned count)
{
	begin(b);
	for (unsigned i = 0; i < count; i++)
		put(b);
	commit(b);
}

static unsigned find(struct bare *b, unsigned count, sqlite3_int64 *seqs)
{
	unsigned found = 0;
	sqlite3_bind_int64(b->stmts[FIND], 1, count);
	while (sqlite3_step(b->stmts[FIND]) == SQLITE_ROW)
		seqs[found++] = sqlite3_column_int64(b->stmts[FIND], 0);
	sqlite3_reset(b->stmts[FIND]);
	return found;
}

static unsigned claim_all(struct bare *b, unsigned count, sqlite3_int64 *seqs)
{
	begin(b);
	unsigned found = find(b, count, seqs);
	for (unsigned i = 0; i < found; i++)
		take(b, seqs[i]);
	commit(b);
	return found;
}

static void complete_all(struct bare *b, unsigned count, const sqlite3_int64 *seqs)
{
	begin(b);
	for (unsigned i = 0; i < count; i++)
		complete(b, seqs[i]);
	commit(b);
}

/* One thread does the work of all: nothing is faster with SQLite. */
static uint64_t bare_lives(void *queue, unsigned thread, const struct lives *lives)
{
	struct bare *b = queue;
	sqlite3_int64 seqs[GROUP_MAX];
	uint64_t left = thread == 0 ? lives->count * lives->threads : 0, done = 0;
	while (left > 0) {
		unsigned now = left < b->group ? (unsigned)left : b->group;
		put_all(b, now);
		unsigned claimed = claim_all(b, now, seqs);
		complete_all(b, claimed, seqs);
		done += claimed;
		left -= now;
	}
	return done;
}

/* What one of several callers asks for. */
struct wish {
	struct guest guest; /* first */
	enum {
		WISH_PUT = 1,
		WISH_CLAIM,
		WISH_COMPLETE
	} what;
	sqlite3_int64 seq;
};

static void grant(struct bare *b, struct wish *w)
{
	switch (w->what) {
	case WISH_PUT:
		put(b);
		break;
	case WISH_CLAIM:
		if (find(b, 1, &w->seq) != 1)
			errx(1, "there is nothing to claim");
		take(b, w->seq);
		break;
	case WISH_COMPLETE:
		complete(b, w->seq);
		break;
	}
}

static void grant_all(void *queue, struct guest *list)
{
	struct bare *b = queue;
	begin(b);
	for (; list; list = list->next)
		grant(b, (struct wish *)list);
	commit(b);
}

/* Each thread does its own work, one job a call, and shares the commits with the others. */
static uint64_t shared_lives(void *queue, unsigned thread, const struct lives *lives)
{
	struct bare *b = queue;
	(void)thread;
	for (uint64_t i = 0; i < lives->count; i++) {
		struct wish w = {.seq = 0};
		for (w.what = WISH_PUT; w.what <= WISH_COMPLETE; w.what++)
			meeting_come(&b->meeting, &w.guest, grant_all, b);
	}
	return lives->count;
}

static void bare_close(void *queue)
{
	struct bare *b = queue;
	for (int i = 0; i < STEPS; i++)
		sqlite3_finalize(b->stmts[i]);
	sqlite3_close(b->db);
	jobs_folder_remove(b->folder);
	free(b);
}

static void *open_hundred(void)
{
	return bare_open(GROUP_MAX);
}

static void *open_single(void)
{
	return bare_open(1);
}

static void *open_shared(void)
{
	return bare_open(0);
}

const struct queue_kind jobs_bare_shared = {open_shared, shared_lives, bare_close, false};
const struct queue_kind jobs_bare_hundred = {open_hundred, bare_lives, bare_close, true};
const struct queue_kind jobs_bare_single = {open_single, bare_lives, bare_close, false};
