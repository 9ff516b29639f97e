/* A connection to an SQLite file, and the statements that are prepared on it. */
#ifndef SQLITE_DB_H
#define SQLITE_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

#include <baton/clock.h>
#include <baton/err.h>
#include <baton/id.h>
#include <baton/str.h>
#include <baton/time.h>

#include "store/sqlite/sql.h"

/* What is locked by whoever writes, in SQLite's format: a byte of the file beside the store. */
#define DB_LOCK_FILE "-shm"
#define DB_LOCK_AT 120

/* How long to wait for another one's lock. */
struct db_patience {
	const struct baton_clock *clock; /* borrowed */
	int64_t ms;
};

struct db {
	sqlite3 *handle;
	sqlite3_stmt *stmts[SQL_END]; /* NULL: not prepared yet */
	const char *path;             /* borrowed */
	bool known;                   /* it has been read before, and was a store */
	struct db_patience patience;
	struct baton_mono since; /* when the first of the pauses began */
	int64_t paused_us;       /* in all, since the last begin */
};

/* Opens the file. BATON_NOT_FOUND: `existing`, and there is none. Errors as baton_store_open(). */
enum baton_err db_open(struct db *db, const char *path, bool existing,
                       const struct db_patience *patience);

/* Waits a moment for another one's lock. False: the patience is over. A pause is longer than it is
 * asked for, on a busy host by far: so the clock counts, and the pauses where it stands still. */
bool db_pause(struct db *db, int64_t us);

/* Fine for a zeroed one. */
void db_close(struct db *db);

/* Runs statements that return nothing. */
enum baton_err db_exec(struct db *db, const char *sql);

/* Begins a transaction with SQL_BEGIN or SQL_BEGIN_READ. Not BATON_OK: none is open. */
enum baton_err db_begin(struct db *db, enum sql begin);

/* Ends the transaction, if one is open, and undoes what it did. */
void db_rollback(struct db *db);

/* The first column of the first row. */
enum baton_err db_number(struct db *db, const char *sql, int64_t *ret);

/* What SQLite's code means, with a sentence. */
enum baton_err db_fail(struct db *db, int code, const char *doing);

/* One run of a prepared statement. What is bound must live until it ends. The first failure sticks,
 * so that only query_row() and query_end() have to be looked at. */
struct query {
	struct db *db;
	sqlite3_stmt *stmt;
	int at; /* the last parameter that was bound */
	int code;
};

struct query query_begin(struct db *db, enum sql sql);
void query_int(struct query *q, int64_t value);
void query_text(struct query *q, struct baton_str text);
void query_blob(struct query *q, const void *bytes, size_t len);
void query_null(struct query *q);

/* Binds the text, or NULL where it is empty. */
void query_optional(struct query *q, struct baton_str text);

/* Whether there is another row, whose columns are valid until the next call on `q`. */
bool query_row(struct query *q);

int64_t column_int(const struct query *q, int column);
struct baton_str column_str(const struct query *q, int column); /* text or blob */
bool column_is_null(const struct query *q, int column);
bool column_is_text(const struct query *q, int column);
void column_id(const struct query *q, int column, struct baton_id *ret);

/* Ends the run, after the last row or before. BATON_OK unless something failed. */
enum baton_err query_end(struct query *q);

/* As that; if nothing failed, what was found out about the row. */
enum baton_err query_end_as(struct query *q, enum baton_err row);

/* Runs a statement that returns no rows to its end. */
enum baton_err query_run(struct query *q);

/* How many rows the last statement that ran has changed. */
int db_changes(const struct db *db);

#endif
