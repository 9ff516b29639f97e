/* A connection to a PostgreSQL server. */
#include "store/postgres/conn.h"

#include <endian.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/fail.h"
#include "base/number.h"

#define BINARY 1
#define NAME_MAX_LEN 16
#define STATEMENT_MORE 6 /* times as long as a lock a statement may take */
#define ARRAY_HEAD 20
#define COPY_SIZE 65536 /* bytes that are sent together */

static const char *const texts[] = {
#define SQL_TEXT(name, text) text,
	SQL_TABLE(SQL_TEXT)
#undef SQL_TEXT
};

void conn_init(struct conn *c, const struct baton_alloc *alloc, const char *info, const char *where)
{
	*c = (struct conn){.alloc = alloc, .info = info, .where = where};
}

static void results_clear(struct conn *c)
{
	for (int i = 0; i < c->read; i++)
		PQclear(c->results[i]);
	c->read = 0;
}

static void disconnect(struct conn *c)
{
	results_clear(c);
	PQfinish(c->pg);
	c->pg = NULL;
	c->sent = 0;
	c->open = false;
	c->lost = false;
	c->once = false;
	c->owed = false;
	memset(c->prepared, 0, sizeof c->prepared);
}

/* libpq's sentences end with a line's end, and may have several lines. */
static void why_set(struct conn *c, const char *text)
{
	size_t len = strcspn(text, "\n");
	snprintf(c->why, sizeof c->why, "%.*s", (int)(len < 380 ? len : 380), text);
}

/* What it means for whoever called. */
static enum baton_err err_of(const char *state)
{
	if (strcmp(state, "55P03") == 0 || strcmp(state, "40P01") == 0 ||
	    strcmp(state, "40001") == 0 || strcmp(state, "57014") == 0)
		return BATON_BUSY;
	if (strcmp(state, "53200") == 0)
		return BATON_NO_MEMORY;
	return BATON_STORAGE;
}

static void failed(struct conn *c, const PGresult *r)
{
	const char *state = r ? PQresultErrorField(r, PG_DIAG_SQLSTATE) : NULL;
	const char *message = r ? PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY) : NULL;
	c->lost = c->lost || !r;
	if (c->err != BATON_OK)
		return;
	snprintf(c->state, sizeof c->state, "%s", state ? state : "");
	why_set(c, message ? message : PQerrorMessage(c->pg));
	c->err = err_of(c->state);
}

/* Something could not be sent. What the server said before it hung up may lie unread: then it is
 * known why, and that nothing of this was done. */
static void unsent(struct conn *c)
{
	PGresult *r = PQstatus(c->pg) == CONNECTION_OK ? NULL : PQgetResult(c->pg);
	failed(c, PQresultErrorField(r, PG_DIAG_SQLSTATE) ? r : NULL);
	c->lost = true;
	PQclear(r);
}

static bool is_broken(const struct conn *c)
{
	return !c->pg || c->lost || PQstatus(c->pg) != CONNECTION_OK;
}

enum baton_err conn_fail(struct conn *c)
{
	enum baton_err e = c->err;
	if (is_broken(c) && c->committed && c->state[0] == '\0')
		fail_detail("the connection to store %s broke while it committed: %s; nobody knows "
		            "whether it was done",
		            c->where, c->why);
	else if (e == BATON_BUSY)
		fail_detail("store %s is busy: %s", c->where, c->why);
	else
		fail_detail("store %s failed: %s", c->where, c->why);
	c->err = BATON_OK;
	return e;
}

enum baton_err conn_exec(struct conn *c, const char *text)
{
	PGresult *r = PQexec(c->pg, text);
	ExecStatusType status = PQresultStatus(r);
	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		failed(c, r);
	PQclear(r);
	return c->err == BATON_OK ? BATON_OK : conn_fail(c);
}

/* What every connection is told. The statements know which index they want, whatever the planner
 * thinks of tables that have not been analyzed yet. */
static enum baton_err tell_wishes(struct conn *c)
{
	char text[600];
	if (c->pooled)
		return BATON_OK; /* each transaction is told */
	snprintf(text, sizeof text,
	         "SET search_path = pg_catalog; SET client_min_messages = warning;"
	         "SET lock_timeout = %lld; SET statement_timeout = %lld;"
	         "SET idle_in_transaction_session_timeout = " IDLE_MS ";"
	         "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off;"
	         "SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off;"
	         "SET bytea_output = hex; SET default_transaction_isolation = 'read committed'",
	         (long long)c->patience_ms, (long long)c->patience_ms * STATEMENT_MORE);
	return conn_exec(c, text);
}

enum baton_err conn_ask(struct conn *c, const char *text, char *ret, size_t size)
{
	PGresult *r = PQexec(c->pg, text);
	if (PQresultStatus(r) == PGRES_TUPLES_OK)
		snprintf(ret, size, "%s", PQntuples(r) > 0 ? PQgetvalue(r, 0, 0) : "");
	else
		failed(c, r);
	PQclear(r);
	return c->err == BATON_OK ? BATON_OK : conn_fail(c);
}

enum baton_err conn_number(struct conn *c, const char *text, int64_t *ret)
{
	char answer[32];
	uint64_t number;
	enum baton_err e = conn_ask(c, text, answer, sizeof answer);
	if (e != BATON_OK)
		return e;
	if (!number_parse(baton_str_z(answer), INT64_MAX, &number))
		return fail(BATON_STORAGE, "store %s answers '%s' where a number is expected",
		            c->where, answer);
	*ret = (int64_t)number;
	return BATON_OK;
}

/* A library writes nothing to the terminal. */
static void ignore_notice(void *arg, const char *message)
{
	(void)arg;
	(void)message;
}

/* What comes before the name of the database is what it may say otherwise. A server that does not
 * answer any more is given up as soon as it gives up a client. */
static const char *const option_names[] = {"connect_timeout",
                                           "tcp_user_timeout",
                                           "keepalives_idle",
                                           "keepalives_interval",
                                           "keepalives_count",
                                           "fallback_application_name",
                                           "dbname",
                                           "client_encoding",
                                           NULL};
#define OPTION_VALUES(info)                                               \
	{                                                                 \
		"10", IDLE_MS, "3", "1", "3", "baton", info, "UTF8", NULL \
	}

PGconn *conn_start(const char *info)
{
	const char *const values[] = OPTION_VALUES(info);
	PGconn *pg = PQconnectStartParams(option_names, values, 1);
	if (pg)
		PQsetNoticeProcessor(pg, ignore_notice, NULL);
	return pg;
}

enum baton_err conn_be_quick(struct conn *c)
{
	if (PQenterPipelineMode(c->pg) == 1)
		return BATON_OK;
	return fail(BATON_STORAGE, "cannot use the connection to store %s", c->where);
}

enum baton_err conn_connect(struct conn *c, bool plain)
{
	const char *const values[] = OPTION_VALUES(c->info);
	disconnect(c);
	c->connects++;
	c->plans = 0;
	c->err = BATON_OK;
	c->committed = false;
	c->pg = PQconnectdbParams(option_names, values, 1);
	if (!c->pg)
		return fail_memory(1, "a connection");
	if (PQstatus(c->pg) != CONNECTION_OK) {
		why_set(c, PQerrorMessage(c->pg));
		disconnect(c);
		return fail(BATON_STORAGE, "cannot connect to store %s: %s", c->where, c->why);
	}
	PQsetNoticeProcessor(c->pg, ignore_notice, NULL);
	enum baton_err e = tell_wishes(c);
	if (e == BATON_OK && c->arrived)
		e = c->arrived(c);
	if (e == BATON_OK && !plain)
		e = conn_be_quick(c);
	if (e != BATON_OK)
		disconnect(c);
	return e;
}

/* Until the server is in step again: after a failure it skips everything up to there. */
static void await_step(struct conn *c)
{
	int nothing = 0; /* in a row: two of them mean that nothing will come any more */
	while (!is_broken(c)) {
		PGresult *r = PQgetResult(c->pg);
		bool done = PQresultStatus(r) == PGRES_PIPELINE_SYNC;
		nothing = r ? 0 : nothing + 1;
		PQclear(r);
		if (done)
			return;
		if (nothing > 1)
			failed(c, NULL);
	}
}

static void settle_owed(struct conn *c)
{
	if (c->owed)
		await_step(c);
	c->owed = false;
}

/* What was sent away may not be read by the server if the connection ends before it. */
void conn_close(struct conn *c)
{
	settle_owed(c);
	disconnect(c);
	arena_done(&c->spare);
}

/* Whether the server has ended it while nobody used it. */
static bool is_closed(const struct conn *c)
{
	struct pollfd on = {.fd = PQsocket(c->pg), .events = POLLRDHUP};
	return poll(&on, 1, 0) > 0;
}

enum baton_err conn_need(struct conn *c)
{
	settle_owed(c);
	if (!is_broken(c) && !c->once && !is_closed(c) && c->err == BATON_OK)
		return BATON_OK;
	return conn_connect(c, false);
}

static void note(struct conn *c, enum sql prepares)
{
	CHECK(c->sent < CONN_SENT_MAX);
	c->prepares[c->sent++] = prepares;
}

static void prepare(struct conn *c, enum sql sql, const char *name)
{
	if (c->prepared[sql])
		return;
	if (PQsendPrepare(c->pg, name, texts[sql], 0, NULL) != 1) {
		unsent(c);
		return;
	}
	note(c, sql);
	c->prepared[sql] = true;
}

/* Arguments as libpq takes them. */
struct given {
	const char *values[ARGS_MAX];
	int lengths[ARGS_MAX], formats[ARGS_MAX];
	int count;
};

static void give(const struct args *args, struct given *g)
{
	g->count = args ? args->count : 0;
	for (int i = 0; i < g->count; i++) {
		const struct buf *b = &args->list[i].bytes;
		g->values[i] = args->list[i].null ? NULL : b->data ? b->data : "";
		g->lengths[i] = (int)b->len;
		g->formats[i] = BINARY;
	}
}

static int send_unprepared(struct conn *c, enum sql sql, const struct args *args)
{
	struct given g;
	give(args, &g);
	return PQsendQueryParams(c->pg, texts[sql], g.count, NULL, g.values, g.lengths, g.formats,
	                         BINARY);
}

static int send_prepared(struct conn *c, enum sql sql, const struct args *args)
{
	struct given g;
	char name[NAME_MAX_LEN];
	give(args, &g);
	snprintf(name, sizeof name, "baton%d", (int)sql);
	prepare(c, sql, name);
	return PQsendQueryPrepared(c->pg, name, g.count, g.values, g.lengths, g.formats, BINARY);
}

static void send_with(struct conn *c, enum sql sql, const struct args *args)
{
	int ok = c->pooled ? send_unprepared(c, sql, args) : send_prepared(c, sql, args);
	if (ok != 1)
		unsent(c);
	else
		note(c, SQL_COUNT);
}

void conn_send_away(struct conn *c, enum sql sql, struct args *args)
{
	args_finish(args);
	if (args_check(args) == BATON_OK && !is_broken(c) && c->err == BATON_OK) {
		c->owed = send_unprepared(c, sql, args) == 1 && PQpipelineSync(c->pg) == 1 &&
		          PQflush(c->pg) >= 0;
		c->lost = !c->owed;
	}
	args_done(args);
}

int conn_send(struct conn *c, enum sql sql, struct args *args)
{
	if (args && c->err == BATON_OK) {
		args_finish(args);
		enum baton_err e = args_check(args);
		if (e != BATON_OK) {
			why_set(c, baton_err_detail());
			c->err = e;
		}
	}
	results_clear(c);
	if (c->err == BATON_OK)
		send_with(c, sql, args);
	if (args)
		args_done(args);
	int number = -1;
	for (int i = 0; i < c->sent; i++)
		number += c->prepares[i] == SQL_COUNT;
	return number < 0 ? 0 : number;
}

static void tell_ms(struct args *a, int at, int64_t ms)
{
	char text[32];
	snprintf(text, sizeof text, "%lld", (long long)ms);
	arg_text(a, at, baton_str_z(text));
}

static void begin(struct conn *c, enum sql sql, int64_t within_ms)
{
	struct args a;
	const int64_t usual_ms = c->patience_ms * STATEMENT_MORE;
	const bool less = within_ms > 0 && within_ms < usual_ms;
	c->committed = false;
	c->open = true;
	conn_send(c, sql == SQL_BEGIN && !c->pooled ? SQL_BEGIN_USUAL : sql, NULL);
	if (c->pooled) {
		args_init(&a, c->alloc, 2);
		tell_ms(&a, 0, c->patience_ms);
		tell_ms(&a, 1, less ? within_ms : usual_ms);
		conn_send(c, SQL_WISHES, &a);
	} else if (less) {
		args_init(&a, c->alloc, 1);
		tell_ms(&a, 0, within_ms);
		conn_send(c, SQL_WITHIN, &a);
	}
}

void conn_begin(struct conn *c, int64_t within_ms)
{
	begin(c, SQL_BEGIN, within_ms);
}

void conn_begin_look(struct conn *c, int64_t within_ms)
{
	begin(c, SQL_BEGIN_READ, within_ms);
}

/* One answer, and the end of it. */
static PGresult *receive(struct conn *c)
{
	PGresult *r = PQgetResult(c->pg);
	for (PGresult *more = r ? PQgetResult(c->pg) : NULL; more; more = PQgetResult(c->pg))
		PQclear(more);
	ExecStatusType status = PQresultStatus(r);
	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK &&
	    status != PGRES_PIPELINE_ABORTED)
		failed(c, r);
	return r;
}

static void take(struct conn *c, int i)
{
	PGresult *r = receive(c);
	if (c->prepares[i] == SQL_COUNT) {
		c->results[c->read++] = r;
		return;
	}
	c->prepared[c->prepares[i]] = PQresultStatus(r) == PGRES_COMMAND_OK;
	PQclear(r);
}

/* Reads the answers, and gets in step with the server: only of who is in step does it know that it
 * waits for him, and ends what he has open if he does not come back. */
static enum baton_err round_trip(struct conn *c)
{
	int sent = c->sent;
	c->sent = 0;
	results_clear(c);
	if (!is_broken(c) && (PQpipelineSync(c->pg) != 1 || PQflush(c->pg) < 0))
		unsent(c);
	for (int i = 0; i < sent && !is_broken(c); i++)
		take(c, i);
	await_step(c);
	if (is_broken(c))
		failed(c, NULL);
	return c->err == BATON_OK ? BATON_OK : conn_fail(c);
}

enum baton_err conn_round(struct conn *c)
{
	return round_trip(c);
}

/* Where a row begins in each of some arrays. */
struct copying {
	const struct args *columns;
	size_t at[ARGS_MAX];
	struct buf out;
};

static void copy_16(struct buf *out, int16_t number)
{
	uint16_t bytes = htobe16((uint16_t)number);
	buf_append(out, &bytes, sizeof bytes);
}

/* An element of an array is written as a field of a row is: its length, or -1, and what it is. */
static void copy_row(struct copying *k)
{
	copy_16(&k->out, (int16_t)k->columns->count);
	for (int i = 0; i < k->columns->count; i++) {
		const char *element = (const char *)k->columns->list[i].bytes.data + k->at[i];
		uint32_t len;
		memcpy(&len, element, sizeof len);
		len = be32toh(len);
		const size_t size = sizeof len + (len == UINT32_MAX ? 0 : len);
		buf_append(&k->out, element, size);
		k->at[i] += size;
	}
}

static bool copy_send(struct conn *c, struct copying *k, size_t enough)
{
	if (k->out.err != BATON_OK)
		return false;
	if (k->out.len < enough)
		return true;
	bool ok = PQputCopyData(c->pg, k->out.data, (int)k->out.len) == 1;
	buf_reset(&k->out);
	return ok;
}

/* NULL: all of it was sent; else why not, for the server. */
static const char *copy_rows(struct conn *c, const struct args *columns)
{
	static const char head[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0";
	struct copying k = {.columns = columns};
	bool ok = true;
	buf_init(&k.out, c->alloc, (size_t)1 << 30);
	buf_append(&k.out, head, sizeof head);
	for (int i = 0; i < columns->count; i++)
		k.at[i] = ARRAY_HEAD;
	for (uint32_t row = 0; row < columns->list[0].count && ok; row++) {
		copy_row(&k);
		ok = copy_send(c, &k, COPY_SIZE);
	}
	copy_16(&k.out, -1);
	ok = ok && copy_send(c, &k, 0);
	buf_done(&k.out);
	return ok ? NULL : "it could not be sent";
}

static void copy_end(struct conn *c, const char *why)
{
	if (PQputCopyEnd(c->pg, why) != 1)
		failed(c, NULL);
	for (PGresult *r; (r = PQgetResult(c->pg));) {
		if (PQresultStatus(r) != PGRES_COMMAND_OK)
			failed(c, r);
		PQclear(r);
	}
}

/* In a pipeline nothing can be copied. */
enum baton_err conn_copy(struct conn *c, const char *text, const struct args *columns)
{
	enum baton_err e = args_check(columns);
	if (e == BATON_OK)
		e = conn_round(c);
	if (e != BATON_OK)
		return e;
	PGresult *r = PQexitPipelineMode(c->pg) == 1 ? PQexec(c->pg, text) : NULL;
	if (PQresultStatus(r) == PGRES_COPY_IN)
		copy_end(c, copy_rows(c, columns));
	else
		failed(c, r);
	PQclear(r);
	if (PQenterPipelineMode(c->pg) != 1)
		failed(c, NULL);
	return c->err == BATON_OK ? BATON_OK : conn_fail(c);
}

void conn_hurry(struct conn *c)
{
	if (!is_broken(c) && PQsendFlushRequest(c->pg) != 1)
		failed(c, NULL);
}

enum baton_err conn_commit(struct conn *c)
{
	conn_send(c, SQL_COMMIT, NULL);
	c->committed = true;
	enum baton_err e = round_trip(c);
	if (e != BATON_OK)
		return e;
	c->open = false;
	c->committed = false;
	return BATON_OK;
}

/* What was sent and not read cannot be told apart any more, so such a connection is given up. */
void conn_rollback(struct conn *c)
{
	bool whole = c->sent == 0 && !is_broken(c);
	if (!c->open)
		return;
	c->open = false;
	c->err = BATON_OK;
	if (whole) {
		conn_send(c, SQL_ROLLBACK, NULL);
		whole = round_trip(c) == BATON_OK;
	}
	if (!whole)
		disconnect(c);
	c->err = BATON_OK;
}

const PGresult *conn_answer(const struct conn *c, int number)
{
	CHECK(number < c->read);
	return c->results[number];
}

bool cell_is_null(const PGresult *r, int row, int column)
{
	return PQgetisnull(r, row, column) != 0;
}

/* A whole number in the form of the wire: its highest byte, which has the sign, comes first. */
static int64_t number_at(const char *bytes, int size)
{
	int64_t number = size > 0 && ((unsigned char)bytes[0] & 0x80) ? -1 : 0;
	for (int i = 0; i < size; i++)
		number = (int64_t)((uint64_t)number << 8 | (unsigned char)bytes[i]);
	return number;
}

int64_t cell_int(const PGresult *r, int row, int column)
{
	if (PQgetisnull(r, row, column))
		return 0;
	return number_at(PQgetvalue(r, row, column), PQgetlength(r, row, column));
}

bool cell_bool(const PGresult *r, int row, int column)
{
	return !PQgetisnull(r, row, column) && PQgetvalue(r, row, column)[0] != 0;
}

struct baton_str cell_str(const PGresult *r, int row, int column)
{
	if (PQgetisnull(r, row, column))
		return (struct baton_str){"", 0};
	return (struct baton_str){PQgetvalue(r, row, column), (size_t)PQgetlength(r, row, column)};
}

void cell_id(const PGresult *r, int row, int column, struct baton_id *ret)
{
	struct baton_str s = cell_str(r, row, column);
	memset(ret, 0, sizeof *ret);
	if (s.len == sizeof ret->bytes)
		memcpy(ret->bytes, s.ptr, s.len);
}

size_t cell_count(const PGresult *r, int row, int column)
{
	if (PQgetisnull(r, row, column) || PQgetlength(r, row, column) < ARRAY_HEAD)
		return 0;
	return (size_t)number_at(PQgetvalue(r, row, column) + 12, 4);
}

int64_t cell_element(const PGresult *r, int row, int column, size_t at)
{
	size_t from = ARRAY_HEAD + at * 12 + 4;
	if (PQgetisnull(r, row, column) || from + 8 > (size_t)PQgetlength(r, row, column))
		return 0;
	return number_at(PQgetvalue(r, row, column) + from, 8);
}
