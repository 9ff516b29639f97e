/* PostgreSQL by hand: a table with one index, 100 jobs in each statement, and nothing else. */
#include <err.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claims/arena.h"
#include "jobs/jobs.h"
#include "jobs/pg.h"

#define ELEMENT_MAX (2 * JOB_BYTES + 8)

struct bare {
	PGconn *pg;
	char payloads[PG_EACH * ELEMENT_MAX + 8]; /* an array of them, as text */
	char ids[PG_EACH * 24 + 8];
};

static PGresult *checked(const struct bare *b, PGresult *r)
{
	ExecStatusType status = PQresultStatus(r);
	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		errx(1, "PostgreSQL: %s", PQerrorMessage(b->pg));
	return r;
}

static void prepare(const struct bare *b, const char *name, const char *sql)
{
	PQclear(checked(b, PQprepare(b->pg, name, sql, 0, NULL)));
}

static void *bare_begin(const char *where)
{
	struct bare *b = arena_new(sizeof *b);
	b->pg = PQconnectdb(pg_info(where));
	PQclear(checked(b, PQexec(b->pg, "SET client_min_messages = warning")));
	PQclear(checked(b, PQexec(b->pg, "CREATE TABLE IF NOT EXISTS job(id bigint GENERATED "
	                                 "ALWAYS AS IDENTITY PRIMARY KEY, owner int, put_at "
	                                 "timestamptz NOT NULL DEFAULT now(), payload bytea NOT "
	                                 "NULL) WITH (fillfactor = 70)")));
	prepare(b, "put", "INSERT INTO job(payload) SELECT unnest($1::bytea[])");
	prepare(b, "claim",
	        "UPDATE job SET owner = 1 WHERE id = ANY(ARRAY(SELECT id FROM job WHERE owner IS "
	        "NULL ORDER BY id LIMIT $1::int FOR UPDATE SKIP LOCKED)) RETURNING id, payload");
	prepare(b, "complete", "DELETE FROM job WHERE id = ANY($1::bigint[]) AND owner = 1");
	char *to = b->payloads;
	*to++ = '{';
	for (int i = 0; i < PG_EACH; i++) {
		to += sprintf(to, "%s\"\\\\x", i > 0 ? "," : "");
		memset(to, '0', (size_t)2 * JOB_BYTES);
		to += 2 * JOB_BYTES;
		*to++ = '"';
	}
	strcpy(to, "}");
	return b;
}

/* Returns how many it was: others may have some locked. Never more than its share, or another
 * process would wait for its own without end (the array: a join may look for the rows twice). */
static int claim_and_complete(struct bare *b, int max)
{
	char limit[16];
	const char *most = limit;
	sprintf(limit, "%d", max);
	PGresult *r = checked(b, PQexecPrepared(b->pg, "claim", 1, &most, NULL, NULL, 0));
	int count = PQntuples(r);
	char *to = b->ids;
	*to++ = '{';
	for (int i = 0; i < count; i++)
		to += sprintf(to, "%s%s", i > 0 ? "," : "", PQgetvalue(r, i, 0));
	strcpy(to, "}");
	PQclear(r);
	const char *value = b->ids;
	if (count > 0)
		PQclear(checked(b, PQexecPrepared(b->pg, "complete", 1, &value, NULL, NULL, 1)));
	return count;
}

static void bare_bulk(struct bare *b)
{
	const char *value = b->payloads;
	PQclear(checked(b, PQexecPrepared(b->pg, "put", 1, &value, NULL, NULL, 1)));
	for (int left = PG_EACH; left > 0;)
		left -= claim_and_complete(b, left);
}

static void bare_lives(void *state, uint64_t jobs)
{
	for (uint64_t i = 0; i < jobs; i += PG_EACH)
		bare_bulk(state);
}

const struct pg_work pg_bare_lives = {bare_begin, bare_lives};
