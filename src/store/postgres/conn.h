/* A connection to a PostgreSQL server.
 *
 * Statements are sent in a row and their answers read together, so that a transaction costs a round
 * trip for what it reads and one for what it writes. The first thing that fails sticks: what is
 * sent after it is not done, and conn_round() says what it was. */
#ifndef POSTGRES_CONN_H
#define POSTGRES_CONN_H

#include <libpq-fe.h>

#include <baton/alloc.h>
#include <baton/err.h>
#include <baton/id.h>
#include <baton/str.h>
#include <baton/time.h>

#include "base/arena.h"
#include "store/postgres/args.h"
#include "store/postgres/sql.h"

enum sql {
#define SQL_NAME(name, text) SQL_##name,
	SQL_TABLE(SQL_NAME)
#undef SQL_NAME
	SQL_COUNT
};

#define CONN_SENT_MAX 256

struct conn {
	const struct baton_alloc *alloc; /* [const] */
	const char *info;                /* [const] what libpq is given; has secrets            */
	const char *where;               /* [const] what people are told                        */
	int64_t patience_ms;             /* [const] */
	bool pooled; /* [const] through a proxy: nothing outlasts a transaction */
	enum baton_err (*arrived)(struct conn *c); /* [const] NULL, or called on each connection */
	PGconn *pg; /* NULL: none yet, or it was lost                      */
	bool prepared[SQL_COUNT];
	uint64_t connects;  /* how often it was connected                                       */
	bool owed;          /* the answer to conn_send_away() was not read yet                  */
	bool lost;          /* it cannot be used any more                                       */
	bool once;          /* the next who needs it gets another one                           */
	int64_t planned_ns; /* when the server was last told to plan anew                       */
	int64_t plans;      /* how many seconds after that it is told again                     */
	bool open;      /* a transaction is                                                     */
	bool committed; /* COMMIT was sent in it: when the connection breaks now, nobody knows   */
	enum baton_err err;
	char why[400];  /* the first that failed */
	char state[6];  /* its SQLSTATE; "": the connection */
	char place[96]; /* where the store was when it was connected; see schema.c */
	PGresult *results[CONN_SENT_MAX];
	enum sql
		prepares[CONN_SENT_MAX]; /* the answer is that of a PREPARE; SQL_COUNT: it is not */
	int sent, read;
	struct arena spare; /* for what is read */
};

void conn_init(struct conn *c, const struct baton_alloc *alloc, const char *info,
               const char *where);
void conn_close(struct conn *c);

/* Connects, if it is not connected. BATON_STORAGE: it cannot; the detail says why, no secrets. */
enum baton_err conn_need(struct conn *c);

/* Begins to connect, as PQconnectStart() does. */
PGconn *conn_start(const char *info);

/* Connects, whether it is connected or not; `plain`: for conn_exec() and conn_ask(). */
enum baton_err conn_connect(struct conn *c, bool plain);

/* A plain one becomes one for statements by name. */
enum baton_err conn_be_quick(struct conn *c);

/* Begins a transaction; one that only reads, and all of it as at one moment. `within_ms`: how long
 * a statement of it may take; 0: as of any other. */
void conn_begin(struct conn *c, int64_t within_ms);
void conn_begin_look(struct conn *c, int64_t within_ms);

/* Sends a statement; `args` (NULL: none) are ended. Returns the number of its answer. */
int conn_send(struct conn *c, enum sql sql, struct args *args);

/* Adds rows to a table by `text`, which is a COPY of binary rows: an element of each of the arrays
 * `columns` for each row. All that was sent before is read first, and gone. */
enum baton_err conn_copy(struct conn *c, const char *text, const struct args *columns);

/* Reads the answers of all that was sent since the last call. They are valid until the next one. */
enum baton_err conn_round(struct conn *c);

/* Asks the server not to keep the answers so far until it is done with what comes next. */
void conn_hurry(struct conn *c);

/* Sends a statement that is a transaction of its own, and waits for nothing: what becomes of it is
 * of no consequence. No transaction is open. */
void conn_send_away(struct conn *c, enum sql sql, struct args *args);

/* The end of the transaction. When the connection breaks after COMMIT was sent, the detail of
 * BATON_STORAGE says that nobody knows whether it was done. */
enum baton_err conn_commit(struct conn *c);
void conn_rollback(struct conn *c);

/* Runs statements without arguments, one after the other, on a plain connection. */
enum baton_err conn_exec(struct conn *c, const char *text);

/* The first column of the first row that it finds, as text; "": there is none. */
enum baton_err conn_ask(struct conn *c, const char *text, char *ret, size_t size);

/* As that, for a number that is not negative. */
enum baton_err conn_number(struct conn *c, const char *text, int64_t *ret);

/* Sets the detail to what failed. */
enum baton_err conn_fail(struct conn *c);

/* The answer of that number. */
const PGresult *conn_answer(const struct conn *c, int number);

/* The columns of an answer. */
bool cell_is_null(const PGresult *r, int row, int column);
int64_t cell_int(const PGresult *r, int row, int column);
bool cell_bool(const PGresult *r, int row, int column);
struct baton_str cell_str(const PGresult *r, int row, int column);
void cell_id(const PGresult *r, int row, int column, struct baton_id *ret);

/* How many elements an array of numbers has, and each of them. */
size_t cell_count(const PGresult *r, int row, int column);
int64_t cell_element(const PGresult *r, int row, int column, size_t at);

#endif
