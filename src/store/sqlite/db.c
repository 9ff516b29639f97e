/* A connection to an SQLite file. */
#include "store/sqlite/db.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <baton/store.h>

#include "base/check.h"
#include "base/fail.h"
#include "base/process.h"

#define PAUSE_US 150
#define NAME_SIZE (BATON_STORE_PATH_MAX + 32)

static const char *const texts[SQL_END] = {
#define SQL_TEXT(name, text) [SQL_##name] = (text),
	SQL_TABLE(SQL_TEXT)
#undef SQL_TEXT
};

bool db_pause(struct db *db, int64_t us)
{
	const struct baton_clock *clock = db->patience.clock;
	struct baton_mono now = clock->now(clock);
	if (db->paused_us == 0)
		db->since = now;
	if (db->paused_us >= db->patience.ms * 1000 ||
	    baton_mono_sub(now, db->since).ns >= baton_duration_ms(db->patience.ms).ns)
		return false;
	usleep((useconds_t)us);
	db->paused_us += us;
	return true;
}

/* SQLite's own waits longer and longer between two looks, up to 100 ms; a renewal beside a busy
 * writer would come too late. */
static int on_busy(void *arg, int tries)
{
	(void)tries;
	return db_pause(arg, PAUSE_US);
}

/* Where nothing can be written, SQLite opens the file all the same, and then misses the others. */
static bool is_readonly(const struct db *db, int code)
{
	return (code & 0xff) == SQLITE_READONLY ||
	       ((code & 0xff) == SQLITE_CANTOPEN && db->handle &&
	        sqlite3_db_readonly(db->handle, "main") == 1);
}

/* Why no file can be made beside that one; 0: it can. */
static int folder_errno(const char *path)
{
	char folder[NAME_SIZE] = ".";
	const char *slash = strrchr(path, '/');
	if (slash)
		snprintf(folder, sizeof folder, "%.*s", (int)(slash - path) + 1, path);
	return access(folder, W_OK | X_OK) == 0 ? 0 : errno;
}

static enum baton_err fail_readonly(const struct db *db, const char *doing)
{
	char why[256] = "";
	int errnum = access(db->path, W_OK) == 0 ? folder_errno(db->path) : errno;
	if (errnum != 0)
		snprintf(why, sizeof why, " (%s)", strerror(errnum));
	return fail(BATON_STORAGE,
	            "cannot %s store %s: its file and its folder have to be writable%s", doing,
	            db->path, why);
}

/* Names the one that has it locked, if that can be told. */
static enum baton_err fail_locked(const struct db *db)
{
	char real[PATH_MAX], path[PATH_MAX + sizeof DB_LOCK_FILE];
	char who[64] = "another process", more[96] = "";
	int32_t pid;
	snprintf(path, sizeof path, "%s" DB_LOCK_FILE, realpath(db->path, real) ? real : db->path);
	if (process_of_lock(path, DB_LOCK_AT, &pid) && pid != getpid()) {
		snprintf(who, sizeof who, "process %d", (int)pid);
		if (process_is_stopped(pid))
			snprintf(more, sizeof more,
			         ": it is stopped, and 'kill -CONT %d' lets it go on", (int)pid);
	}
	return fail(BATON_BUSY, "%s has kept store %s locked for more than %lld ms%s", who,
	            db->path, (long long)db->patience.ms, more);
}

enum baton_err db_fail(struct db *db, int code, const char *doing)
{
	const char *text = db->handle ? sqlite3_errmsg(db->handle) : sqlite3_errstr(code);
	int errnum = db->handle ? sqlite3_system_errno(db->handle) : 0;
	char why[256] = "";
	if (errnum != 0 && (code & 0xff) != SQLITE_BUSY)
		snprintf(why, sizeof why, " (%s)", strerror(errnum));
	if (is_readonly(db, code))
		return fail_readonly(db, doing);
	switch (code & 0xff) {
	case SQLITE_NOMEM:
		return fail(BATON_NO_MEMORY, "no memory to %s store %s", doing, db->path);
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return fail_locked(db);
	case SQLITE_NOTADB:
		if (db->known)
			return fail(
				BATON_GONE,
				"cannot %s store %s: it was overwritten while it was open; a copy "
				"made by baton backup can take its place",
				doing, db->path);
		return fail(BATON_INVALID, "%s is no store: it is not an SQLite file", db->path);
	case SQLITE_FULL:
		return fail(BATON_STORAGE,
		            "cannot %s store %s: there is no room left on its disk; nothing was "
		            "changed",
		            doing, db->path);
	case SQLITE_CANTOPEN:
		/* Who may not make it then looks for one to read, and says that there is none. */
		if (errnum == ENOENT && folder_errno(db->path) != 0)
			errnum = folder_errno(db->path);
		return fail(BATON_STORAGE, "cannot open store %s: %s", db->path,
		            errnum != 0 ? strerror(errnum) : text);
	case SQLITE_CORRUPT:
		return fail(BATON_STORAGE,
		            "cannot %s store %s: the file is damaged; baton check says more, and a "
		            "copy made by baton backup can take its place",
		            doing, db->path);
	default:
		return fail(BATON_STORAGE, "cannot %s store %s: %s%s", doing, db->path, text, why);
	}
}

static enum baton_err check_kind(const char *path, bool existing)
{
	struct stat st;
	if (stat(path, &st) != 0) {
		if (errno == ENOENT && existing)
			return fail(BATON_NOT_FOUND, "there is no store %s", path);
		return errno == ENOENT ? BATON_OK
		                       : fail(BATON_STORAGE, "cannot open store %s: %s", path,
		                              strerror(errno));
	}
	if (!S_ISREG(st.st_mode))
		return fail(BATON_INVALID, "%s is no store: it is not a file", path);
	/* Somebody has begun to make it. */
	if (existing && st.st_size == 0)
		return fail(BATON_NOT_FOUND, "there is no store %s: the file is empty", path);
	return BATON_OK;
}

/* Where the first page says how it is written, and what it says there in a copy; a store that is in
 * use has another number before it has a log. */
#define HEADER_MODES 18
#define HEADER_SIZE 20
#define MODE_COPY 1

/* The log of a store that was here before would be taken for that of a copy that has come in its
 * place. The file is read through SQLite: who closes it another way ends this process's locks. */
static enum baton_err check_log(struct db *db)
{
	struct stat st;
	sqlite3_file *file = NULL;
	unsigned char header[HEADER_SIZE];
	/* Beside the file itself, should this be the name of a link. */
	const char *log = sqlite3_filename_wal(sqlite3_db_filename(db->handle, "main"));
	if (stat(log, &st) != 0 || st.st_size == 0)
		return BATON_OK;
	sqlite3_file_control(db->handle, "main", SQLITE_FCNTL_FILE_POINTER, &file);
	if (!file || !file->pMethods ||
	    file->pMethods->xRead(file, header, sizeof header, 0) != SQLITE_OK ||
	    header[HEADER_MODES] != MODE_COPY || header[HEADER_MODES + 1] != MODE_COPY)
		return BATON_OK;
	return fail(BATON_INVALID,
	            "%s is a copy, but %s is of the store that was there before: remove it first, "
	            "or put back that store",
	            db->path, log);
}

/* SQLite takes some names for something else than a file, but none that begins with a dot. */
static const char *plain(const char *path, char name[NAME_SIZE])
{
	if (path[0] == '/')
		return path;
	snprintf(name, NAME_SIZE, "./%s", path);
	return name;
}

enum baton_err db_open(struct db *db, const char *path, bool existing,
                       const struct db_patience *patience)
{
	char name[NAME_SIZE];
	*db = (struct db){.path = path, .patience = *patience};
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
	enum baton_err e = check_kind(path, existing);
	if (e != BATON_OK)
		return e;
	int code = sqlite3_open_v2(plain(path, name), &db->handle,
	                           flags | (existing ? 0 : SQLITE_OPEN_CREATE), NULL);
	if (code != SQLITE_OK)
		return db_fail(db, code, "open");
	sqlite3_busy_handler(db->handle, on_busy, db);
	return check_log(db);
}

void db_close(struct db *db)
{
	for (int i = 0; i < SQL_END; i++) {
		sqlite3_finalize(db->stmts[i]);
		db->stmts[i] = NULL;
	}
	sqlite3_close(db->handle);
	db->handle = NULL;
}

enum baton_err db_exec(struct db *db, const char *sql)
{
	int code = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);
	return code == SQLITE_OK ? BATON_OK : db_fail(db, code, "write to");
}

enum baton_err db_number(struct db *db, const char *sql, int64_t *ret)
{
	sqlite3_stmt *stmt = NULL;
	int code = sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_step(stmt);
	if (code == SQLITE_ROW)
		*ret = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return code == SQLITE_ROW ? BATON_OK : db_fail(db, code, "read");
}

struct query query_begin(struct db *db, enum sql sql)
{
	struct query q = {.db = db, .code = SQLITE_OK};
	if (!db->stmts[sql])
		q.code = sqlite3_prepare_v3(db->handle, texts[sql], -1, SQLITE_PREPARE_PERSISTENT,
		                            &db->stmts[sql], NULL);
	q.stmt = db->stmts[sql];
	return q;
}

static void note(struct query *q, int code)
{
	if (q->code == SQLITE_OK)
		q->code = code;
}

void query_int(struct query *q, int64_t value)
{
	q->at++;
	if (q->code == SQLITE_OK)
		note(q, sqlite3_bind_int64(q->stmt, q->at, value));
}

void query_text(struct query *q, struct baton_str text)
{
	q->at++;
	if (q->code == SQLITE_OK)
		note(q, sqlite3_bind_text(q->stmt, q->at, text.len > 0 ? text.ptr : "",
		                          (int)text.len, SQLITE_STATIC));
}

void query_blob(struct query *q, const void *bytes, size_t len)
{
	q->at++;
	if (q->code == SQLITE_OK)
		note(q,
		     sqlite3_bind_blob64(q->stmt, q->at, len > 0 ? bytes : "", len, SQLITE_STATIC));
}

void query_null(struct query *q)
{
	q->at++;
	if (q->code == SQLITE_OK)
		note(q, sqlite3_bind_null(q->stmt, q->at));
}

void query_optional(struct query *q, struct baton_str text)
{
	if (text.len > 0)
		query_text(q, text);
	else
		query_null(q);
}

bool query_row(struct query *q)
{
	if (q->code != SQLITE_OK)
		return false;
	int code = sqlite3_step(q->stmt);
	if (code == SQLITE_ROW)
		return true;
	if (code != SQLITE_DONE)
		q->code = code;
	return false;
}

int64_t column_int(const struct query *q, int column)
{
	return sqlite3_column_int64(q->stmt, column);
}

bool column_is_null(const struct query *q, int column)
{
	return sqlite3_column_type(q->stmt, column) == SQLITE_NULL;
}

bool column_is_text(const struct query *q, int column)
{
	return sqlite3_column_type(q->stmt, column) == SQLITE_TEXT;
}

struct baton_str column_str(const struct query *q, int column)
{
	const void *bytes = sqlite3_column_blob(q->stmt, column);
	return (struct baton_str){bytes, (size_t)sqlite3_column_bytes(q->stmt, column)};
}

void column_id(const struct query *q, int column, struct baton_id *ret)
{
	struct baton_str s = column_str(q, column);
	memset(ret, 0, sizeof *ret);
	if (s.len == sizeof ret->bytes)
		memcpy(ret->bytes, s.ptr, s.len);
}

enum baton_err query_end(struct query *q)
{
	/* The sentence first: a reset may replace what the connection says about the failure. */
	enum baton_err e = q->code == SQLITE_OK ? BATON_OK : db_fail(q->db, q->code, "use");
	if (q->stmt)
		sqlite3_reset(q->stmt);
	return e;
}

enum baton_err query_end_as(struct query *q, enum baton_err row)
{
	enum baton_err e = query_end(q);
	return e == BATON_OK ? row : e;
}

enum baton_err query_run(struct query *q)
{
	while (query_row(q))
		;
	return query_end(q);
}

int db_changes(const struct db *db)
{
	return sqlite3_changes(db->handle);
}

void db_rollback(struct db *db)
{
	if (sqlite3_get_autocommit(db->handle))
		return;
	sqlite3_step(db->stmts[SQL_ROLLBACK]);
	sqlite3_reset(db->stmts[SQL_ROLLBACK]);
}

/* The way back is prepared first: who has no memory for it would keep the lock. */
enum baton_err db_begin(struct db *db, enum sql begin)
{
	struct query back = query_begin(db, SQL_ROLLBACK);
	enum baton_err e = query_end(&back);
	if (e != BATON_OK)
		return e;
	db_rollback(db);
	struct query q = query_begin(db, begin);
	return query_run(&q);
}
