/* What jobs cost in PostgreSQL does not depend on how many there were before them or wait behind
 * them, not even while somebody holds a snapshot that keeps everything that is dead from being
 * removed. Counted in pages that are looked at, not timed. */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <baton/work.h>

#include "served.h"
#include "support/soak.h"

#define EACH 5
#define ROUNDS 20
#define WARM 150 /* rounds after which every index has the depth that it keeps */
#define MORE_PERCENT 130

static void put_some(struct baton_store *store)
{
	struct baton_batch batches[EACH];
	struct baton_put puts[EACH];
	const struct baton_str payload = BATON_STR("what is to be done");
	for (int i = 0; i < EACH; i++)
		batches[i] = (struct baton_batch){.queue = BATON_STR("q"),
		                                  .payloads = &payload,
		                                  .count = 1};
	assert_int_equal(baton_work_put(store, batches, EACH, puts), BATON_OK);
}

static void live_some(struct baton_store *store)
{
	const struct baton_work_ask ask = {.queue = BATON_STR("q"), .claims = EACH, .max = 1};
	struct baton_work_claims *claims = NULL;
	struct baton_work_end ends[EACH];
	struct baton_work_ended ended[EACH];
	put_some(store);
	assert_int_equal(baton_work_claim(store, &ask, &claims), BATON_OK);
	assert_int_equal(claims->count, EACH);
	for (int i = 0; i < EACH; i++)
		ends[i] = (struct baton_work_end){.proof = claims->claims[i].proof,
		                                  .how = BATON_COMPLETE};
	assert_int_equal(baton_work_end(store, ends, EACH, ended), BATON_OK);
	for (int i = 0; i < EACH; i++)
		assert_int_equal(ended[i].err, BATON_OK);
	baton_work_claims_free(claims);
}

/* Servers count what a connection has done at the latest when it ends. */
static long long pages(const struct bench *b, int connections)
{
	char sql[160];
	snprintf(sql, sizeof sql,
	         "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
	         "AND backend_type = 'client backend' AND pid <> pg_backend_pid()");
	while (cluster_number(b->where, sql) > connections)
		sched_yield();
	return cluster_number(b->where,
	                      "SELECT sum(heap_blks_hit + heap_blks_read + idx_blks_hit + "
	                      "idx_blks_read) FROM pg_statio_user_tables");
}

static void live_many(struct bench *b, int rounds)
{
	struct baton_store *store = open_as(b->where);
	for (int i = 0; i < rounds; i++)
		live_some(store);
	baton_store_close(store);
}

/* So many pages do some lives take, from a connection of their own. */
static long long cost(struct bench *b, int connections)
{
	long long before = pages(b, connections);
	live_many(b, ROUNDS);
	return pages(b, connections) - before;
}

/* Vacuuming would be counted too. */
static void begin(struct bench *b)
{
	baton_store_close(b->store);
	cluster_run(b->where, "DO $$ DECLARE t regclass; BEGIN FOR t IN SELECT oid FROM pg_class "
	                      "WHERE relnamespace = 'baton'::regnamespace AND relkind = 'r' LOOP "
	                      "EXECUTE 'ALTER TABLE ' || t || ' SET (autovacuum_enabled = off)'; "
	                      "END LOOP; END $$");
}

static void assert_flat(long long first, long long last)
{
	if (last * 100 > first * MORE_PERCENT)
		fail_msg("%d lives took %lld pages at first, and now %lld", ROUNDS * EACH, first,
		         last);
}

static void lives_cost_the_same_while_an_old_snapshot_is_held(void **state)
{
	struct bench *b = *state;
	PGconn *user = user_of(b);
	begin(b);
	assert_true(does(user, "BEGIN ISOLATION LEVEL REPEATABLE READ"));
	assert_true(does(user, "SELECT count(*) FROM baton.queue"));
	live_many(b, WARM);
	long long first = cost(b, 1);
	live_many(b, (int)soak_scale(200, 20000));
	long long last = cost(b, 1);
	PQfinish(user);
	b->store = open_as(b->where);
	assert_flat(first, last);
}

static void lives_cost_the_same_however_much_waits(void **state)
{
	struct bench *b = *state;
	begin(b);
	live_many(b, WARM);
	long long first = cost(b, 0);
	struct baton_store *store = open_as(b->where);
	for (int i = 0; i < (int)soak_scale(200, 500000); i++)
		put_some(store);
	baton_store_close(store);
	long long last = cost(b, 0);
	b->store = open_as(b->where);
	assert_flat(first, last);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SERVED_TEST(lives_cost_the_same_while_an_old_snapshot_is_held),
		SERVED_TEST(lives_cost_the_same_however_much_waits),
	};
	return served_main("growth", tests, sizeof tests / sizeof tests[0]);
}
