/* A store in a PostgreSQL server of the test's own. */
#include "served.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <baton/work.h>

static struct cluster cluster;

struct baton_store *open_as(const char *where)
{
	struct baton_store *store = NULL;
	const struct baton_store_options options = {.where = baton_str_z(where),
	                                            .owner = BATON_STR("tester")};
	if (baton_store_open(&options, &store) != BATON_OK)
		fail_msg("%s", baton_err_detail());
	return store;
}

int served_setup(void **state)
{
	struct bench *b = calloc(1, sizeof *b);
	cluster_database(&cluster, b->where, sizeof b->where);
	b->store = open_as(b->where);
	*state = b;
	return 0;
}

int served_teardown(void **state)
{
	struct bench *b = *state;
	uint64_t faults = 1;
	assert_int_equal(baton_store_check(b->store, NULL, NULL, &faults), BATON_OK);
	assert_int_equal(faults, 0);
	baton_store_close(b->store);
	cluster_drop(&cluster, b->where);
	free(b);
	return 0;
}

PGconn *user_of(const struct bench *b)
{
	PGconn *pg = PQconnectdb(b->where + strlen("postgres:"));
	assert_int_equal(PQstatus(pg), CONNECTION_OK);
	return pg;
}

bool does(PGconn *pg, const char *sql)
{
	PGresult *r = PQexec(pg, sql);
	ExecStatusType status = PQresultStatus(r);
	PQclear(r);
	return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

enum baton_err put_into(struct baton_store *store, const char *lane, const char *text)
{
	struct baton_str payload = baton_str_z(text);
	struct baton_put put;
	const struct baton_batch b = {.queue = BATON_STR("q"),
	                              .lane = baton_str_z(lane),
	                              .payloads = &payload,
	                              .count = 1};
	return baton_work_put(store, &b, 1, &put);
}

uint64_t take_one(struct baton_store *store, char lane[64], char text[64])
{
	struct baton_work_claims *claims = NULL;
	const struct baton_work_ask ask = {.queue = BATON_STR("q"), .claims = 1, .max = 1};
	struct baton_work_ended ended;
	assert_int_equal(baton_work_claim(store, &ask, &claims), BATON_OK);
	if (!claims)
		return 0;
	const struct baton_work_claim *c = &claims->claims[0];
	uint64_t seq = c->batches[0].seq;
	const struct baton_work_end end = {.proof = c->proof, .how = BATON_COMPLETE};
	snprintf(lane, 64, "%.*s", (int)c->lane.len, c->lane.ptr);
	snprintf(text, 64, "%.*s", (int)c->batches[0].payloads[0].len,
	         c->batches[0].payloads[0].ptr);
	assert_int_equal(baton_work_end(store, &end, 1, &ended), BATON_OK);
	assert_int_equal(ended.err, BATON_OK);
	baton_work_claims_free(claims);
	return seq;
}

void assert_next(struct bench *b, const char *expected)
{
	char lane[64], text[64];
	assert_true(take_one(b->store, lane, text) > 0);
	assert_string_equal(text, expected);
}

struct cluster *served_cluster(void)
{
	return &cluster;
}

int served_main(const char *name, const struct CMUnitTest *tests, size_t count)
{
	if (!cluster_start(&cluster, true)) {
		printf("1..0 # SKIP no PostgreSQL server can be started here\n");
		return 0;
	}
	int failed = _cmocka_run_group_tests(name, tests, count, NULL, NULL);
	cluster_stop(&cluster);
	return failed;
}
