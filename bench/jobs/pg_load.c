/* Loads: ten thousand jobs in a transaction, by this library and by hand, into rows as it has them.
 */
#include <endian.h>
#include <err.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <baton/work.h>

#include "claims/arena.h"
#include "jobs/jobs.h"
#include "jobs/pg.h"

#define LANES 1000
#define INT8_TYPE 20
#define TEXT_TYPE 25
#define BYTES_TYPE 17
#define COLUMNS                                                                               \
	"load(seq, lane, payload, put_at, fence, queue, shard, pool, attempts, state, rank, " \
	"flags, head, line, cancel, holds, blocks)"
#define NUMBERS "1, 0, 1, 0, 0, 0, 1, 0, 0, false, true, false, false, false"

static const char payload[JOB_BYTES];

static void lane_name(char name[16], unsigned number)
{
	snprintf(name, 16, "lane %u", number % LANES);
}

/* Bytes in the order of the wire. */
struct bytes {
	char *at;
	char *from;
};

static void add(struct bytes *b, const void *bytes, size_t len)
{
	memcpy(b->at, bytes, len);
	b->at += len;
}

static void add_2(struct bytes *b, uint16_t n)
{
	n = htobe16(n);
	add(b, &n, sizeof n);
}

static void add_4(struct bytes *b, uint32_t n)
{
	n = htobe32(n);
	add(b, &n, sizeof n);
}

static void add_number(struct bytes *b, uint64_t n)
{
	n = htobe64(n);
	add_4(b, sizeof n);
	add(b, &n, sizeof n);
}

static void add_bytes(struct bytes *b, const char *bytes, size_t len)
{
	add_4(b, (uint32_t)len);
	add(b, bytes, len);
}

struct loader {
	PGconn *pg;
	uint64_t seq;
	struct bytes column[3], rows;
};

static void checked(const struct loader *l, PGresult *r, ExecStatusType expected)
{
	if (PQresultStatus(r) != expected)
		errx(1, "PostgreSQL: %s", PQerrorMessage(l->pg));
	PQclear(r);
}

static void run(const struct loader *l, const char *sql)
{
	checked(l, PQexec(l->pg, sql), PGRES_COMMAND_OK);
}

static void *bare_begin(const char *where)
{
	struct loader *l = arena_new(sizeof *l);
	struct baton_store *store;
	const struct baton_store_options options = {.where = baton_str_z(where)};
	must(baton_store_open(&options, &store)); /* its tables are the pattern */
	baton_store_close(store);
	l->pg = PQconnectdb(pg_info(where));
	run(l, "CREATE TABLE load(LIKE baton.batch INCLUDING ALL)");
	checked(l,
	        PQprepare(l->pg, "load",
	                  "INSERT INTO " COLUMNS " SELECT u.*, " NUMBERS
	                  " FROM unnest($1::bigint[], $2::text[], $3::bytea[]) u",
	                  0, NULL),
	        PGRES_COMMAND_OK);
	for (int i = 0; i < 3; i++)
		l->column[i].from = arena_new((size_t)PG_LOAD * (JOB_BYTES + 8) + 32);
	l->rows.from = arena_new((size_t)PG_LOAD * (JOB_BYTES + 160) + 32);
	return l;
}

static void begin_array(struct bytes *b, uint32_t type)
{
	b->at = b->from;
	add_4(b, 1);
	add_4(b, 0);
	add_4(b, type);
	add_4(b, PG_LOAD);
	add_4(b, 1);
}

static void load_arrays(struct loader *l)
{
	static const int formats[] = {1, 1, 1};
	const char *values[3];
	int lengths[3];
	begin_array(&l->column[0], INT8_TYPE);
	begin_array(&l->column[1], TEXT_TYPE);
	begin_array(&l->column[2], BYTES_TYPE);
	for (unsigned i = 0; i < PG_LOAD; i++) {
		char name[16];
		lane_name(name, i);
		add_number(&l->column[0], ++l->seq);
		add_bytes(&l->column[1], name, strlen(name));
		add_bytes(&l->column[2], payload, sizeof payload);
	}
	for (int i = 0; i < 3; i++) {
		values[i] = l->column[i].from;
		lengths[i] = (int)(l->column[i].at - l->column[i].from);
	}
	checked(l, PQexecPrepared(l->pg, "load", 3, values, lengths, formats, 1), PGRES_COMMAND_OK);
}

/* The columns that are the same in all rows, and their sizes: those of NUMBERS. */
static void add_same(struct bytes *b)
{
	static const struct {
		uint8_t size, value;
	} same[] = {{8, 1}, {8, 0}, {4, 1}, {4, 0}, {4, 0}, {4, 0}, {2, 1},
	            {2, 0}, {2, 0}, {1, 0}, {1, 1}, {1, 0}, {1, 0}, {1, 0}};
	for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
		uint64_t n = htobe64(same[i].value);
		add_4(b, same[i].size);
		add(b, (const char *)&n + sizeof n - same[i].size, same[i].size);
	}
}

static void fill_rows(struct loader *l)
{
	static const char head[] = "PGCOPY\n\377\r\n";
	l->rows.at = l->rows.from;
	add(&l->rows, head, sizeof head);
	add_4(&l->rows, 0);
	add_4(&l->rows, 0);
	for (unsigned i = 0; i < PG_LOAD; i++) {
		char name[16];
		lane_name(name, i);
		add_2(&l->rows, 17);
		add_number(&l->rows, ++l->seq);
		add_bytes(&l->rows, name, strlen(name));
		add_bytes(&l->rows, payload, sizeof payload);
		add_same(&l->rows);
	}
	add_2(&l->rows, UINT16_MAX);
}

static void load_copy(struct loader *l)
{
	fill_rows(l);
	checked(l, PQexec(l->pg, "COPY " COLUMNS " FROM STDIN (FORMAT binary)"), PGRES_COPY_IN);
	if (PQputCopyData(l->pg, l->rows.from, (int)(l->rows.at - l->rows.from)) != 1 ||
	    PQputCopyEnd(l->pg, NULL) != 1)
		errx(1, "PostgreSQL: %s", PQerrorMessage(l->pg));
	checked(l, PQgetResult(l->pg), PGRES_COMMAND_OK);
	PQclear(PQgetResult(l->pg));
}

static void arrays(void *state, uint64_t jobs)
{
	for (uint64_t i = 0; i < jobs; i += PG_LOAD)
		load_arrays(state);
}

static void copies(void *state, uint64_t jobs)
{
	for (uint64_t i = 0; i < jobs; i += PG_LOAD)
		load_copy(state);
}

static void *store_begin(const char *where)
{
	struct baton_store *store;
	const struct baton_store_options options = {.where = baton_str_z(where)};
	must(baton_store_open(&options, &store));
	return store;
}

static void put_many(struct baton_store *store, uint64_t jobs, bool laned)
{
	static struct baton_batch batches[PG_LOAD];
	static struct baton_put puts[PG_LOAD];
	static char names[PG_LOAD][16];
	const struct baton_str bytes = {payload, sizeof payload};
	for (unsigned i = 0; i < PG_LOAD; i++) {
		lane_name(names[i], i);
		batches[i] = (struct baton_batch){.queue = BATON_STR("load"),
		                                  .payloads = &bytes,
		                                  .count = 1};
		if (laned)
			batches[i].lane = baton_str_z(names[i]);
	}
	for (uint64_t i = 0; i < jobs; i += PG_LOAD)
		must(baton_work_put(store, batches, PG_LOAD, puts));
}

static void laned(void *state, uint64_t jobs)
{
	put_many(state, jobs, true);
}

static void unlaned(void *state, uint64_t jobs)
{
	put_many(state, jobs, false);
}

const struct pg_work pg_baton_load = {store_begin, unlaned};
const struct pg_work pg_baton_load_lanes = {store_begin, laned};
const struct pg_work pg_bare_arrays = {bare_begin, arrays};
const struct pg_work pg_bare_copies = {bare_begin, copies};
