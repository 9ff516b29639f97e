/* Two who are at it at the same time, each stopped where the other has to wait for it: no write of
 * one who was replaced is accepted, no lane changes its order, and nobody waits for a user. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <baton/lease.h>
#include <baton/queue.h>
#include <baton/shard.h>
#include <baton/work.h>

#include "served.h"

/* Whoever ends a claim stops as the last thing before its commit, until the gate is opened. */
struct gate {
	struct bench *b;
	PGconn *pg;
};

static void gate_shut(struct gate *g, struct bench *b)
{
	*g = (struct gate){b, user_of(b)};
	cluster_run(b->where,
	            "CREATE FUNCTION public.stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
	            "PERFORM pg_advisory_xact_lock(1, 1); RETURN NULL; END $$; "
	            "CREATE CONSTRAINT TRIGGER stop AFTER DELETE ON baton.claim DEFERRABLE "
	            "INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.stop()");
	assert_true(does(g->pg, "SELECT pg_advisory_lock(1, 1)"));
}

static void gate_open(struct gate *g)
{
	PQfinish(g->pg);
	g->pg = NULL;
}

static void gate_remove(struct gate *g)
{
	cluster_run(g->b->where, "DROP TRIGGER stop ON baton.claim; DROP FUNCTION public.stop()");
}

/* Until so many of this database wait for others. */
static void await_stopped(const struct bench *b, int count)
{
	PGconn *pg = user_of(b);
	int stopped = 0;
	while (stopped < count) {
		PGresult *r = PQexec(pg, "SELECT count(*) FROM pg_stat_activity WHERE datname = "
		                         "current_database() AND "
		                         "cardinality(pg_blocking_pids(pid)) > 0");
		assert_int_equal(PQntuples(r), 1);
		stopped = (int)strtol(PQgetvalue(r, 0, 0), NULL, 10);
		PQclear(r);
	}
	PQfinish(pg);
}

/* A store that waits for locks as long as it takes to look at who waits. */
static struct baton_store *open_patient(const char *where)
{
	struct baton_store *store = NULL;
	const struct baton_store_options options = {.where = baton_str_z(where),
	                                            .owner = BATON_STR("patient"),
	                                            .patience = baton_duration_s(300)};
	assert_int_equal(baton_store_open(&options, &store), BATON_OK);
	return store;
}

/* One batch, claimed by one who is about to be replaced by another. */
struct race {
	struct bench *b;
	struct gate gate;
	struct baton_store *mine, *theirs;
	struct baton_runner *runner; /* NULL: the claim is one with a time limit */
	struct baton_runner_info seen;
	struct baton_work_claims *first, *second;
	PGconn *user;
	char sql[600];      /* what the user's transaction says last */
	bool was_replaced;  /* the other has taken it over           */
	bool was_accepted;  /* what the first one wrote              */
	bool until_it_does; /* the other asks until it has the claim */
};

static const struct baton_work_claim *claim_of(const struct race *r)
{
	return &r->first->claims[0];
}

static struct baton_work_claims *claim_for(struct baton_store *store, int64_t ttl_ms)
{
	struct baton_work_claims *claims = NULL;
	const struct baton_work_ask ask = {.queue = BATON_STR("q"),
	                                   .claims = 1,
	                                   .max = 1,
	                                   .ttl = baton_duration_ms(ttl_ms)};
	assert_int_equal(baton_work_claim(store, &ask, &claims), BATON_OK);
	return claims;
}

static void race_open(struct race *r, struct bench *b)
{
	memset(r, 0, sizeof *r);
	r->b = b;
	r->mine = open_patient(b->where);
	r->theirs = open_patient(b->where);
	r->user = user_of(b);
}

static void race_claim(struct race *r)
{
	assert_int_equal(put_into(r->mine, "x", "work"), BATON_OK);
	r->first = claim_for(r->mine, 1);
	assert_non_null(r->first);
}

static struct baton_shard all_of_q(void)
{
	return (struct baton_shard){BATON_STR("q"), 0, 10, 10};
}

static enum baton_err tick(struct race *r, const struct baton_work_end *end,
                           struct baton_work_claims **ret)
{
	struct baton_shard shard = all_of_q();
	struct baton_shard_answer owned;
	struct baton_work_ended ended = {.err = BATON_OK};
	const struct baton_tick t = {.ends = end,
	                             .end_count = end ? 1 : 0,
	                             .ended = &ended,
	                             .shards = &shard,
	                             .shard_count = 1,
	                             .owned = &owned};
	enum baton_err e = baton_runner_tick(r->runner, &t, ret);
	return e == BATON_OK ? ended.err : e;
}

/* The same for a runner, which is taken over. */
static void race_run(struct race *r)
{
	struct baton_queue_policy p = baton_queue_policy_default();
	const struct baton_runner_ask ask = {.name = BATON_STR("r"),
	                                     .weight = 1,
	                                     .ttl = baton_duration_s(5)};
	struct baton_shard shard = all_of_q();
	struct baton_shard_answer owned;
	size_t count = 0;
	p.shards = 1;
	assert_int_equal(baton_queue_set(r->mine, BATON_STR("q"), &p), BATON_OK);
	assert_int_equal(put_into(r->mine, "x", "work"), BATON_OK);
	assert_int_equal(baton_runner_register(r->mine, &ask, &r->runner, NULL), BATON_OK);
	assert_int_equal(baton_shard_take(r->runner, &shard, 1, &owned), BATON_OK);
	assert_int_equal(tick(r, NULL, &r->first), BATON_OK);
	assert_non_null(r->first);
	assert_int_equal(baton_runner_list(r->theirs, 0, &r->seen, 1, &count), BATON_OK);
	assert_int_equal(count, 1);
}

static void race_close(struct race *r)
{
	baton_runner_leave(r->runner);
	baton_work_claims_free(r->first);
	baton_work_claims_free(r->second);
	baton_store_close(r->mine);
	baton_store_close(r->theirs);
	PQfinish(r->user);
}

/* Those who replace it. */
static void *replace_claim(void *arg)
{
	struct race *r = arg;
	do
		r->second = claim_for(r->theirs, 60000);
	while (!r->second && r->until_it_does);
	r->was_replaced = r->second != NULL;
	return NULL;
}

static void *replace_runner(void *arg)
{
	struct race *r = arg;
	r->was_replaced = baton_runner_take_over(r->theirs, &r->seen) == BATON_OK;
	return NULL;
}

/* Those who write. */
static void *write_end(void *arg)
{
	struct race *r = arg;
	const struct baton_work_end end = {.proof = claim_of(r)->proof, .how = BATON_COMPLETE};
	struct baton_work_ended ended;
	r->was_accepted =
		baton_work_end(r->mine, &end, 1, &ended) == BATON_OK && ended.err == BATON_OK;
	return NULL;
}

static void *write_tick(void *arg)
{
	struct race *r = arg;
	struct baton_work_claims *more = NULL;
	const struct baton_work_end end = {.proof = claim_of(r)->proof, .how = BATON_COMPLETE};
	r->was_accepted = tick(r, &end, &more) == BATON_OK;
	baton_work_claims_free(more);
	return NULL;
}

static void *write_sql(void *arg)
{
	struct race *r = arg;
	PGresult *result = PQexec(r->user, r->sql);
	r->was_accepted =
		PQresultStatus(result) == PGRES_COMMAND_OK && strcmp(PQcmdTuples(result), "0") != 0;
	PQclear(result);
	return NULL;
}

typedef void *act(void *arg);

/* The first is stopped before its commit, the second goes as far as it gets, and both go on. */
static void race(struct race *r, act *first, act *second)
{
	pthread_t one, two;
	gate_shut(&r->gate, r->b);
	assert_int_equal(pthread_create(&one, NULL, first, r), 0);
	await_stopped(r->b, 1);
	assert_int_equal(pthread_create(&two, NULL, second, r), 0);
	await_stopped(r->b, 2);
	gate_open(&r->gate);
	pthread_join(one, NULL);
	pthread_join(two, NULL);
	gate_remove(&r->gate);
}

static long long stored(const struct bench *b)
{
	return cluster_number(b->where, "SELECT count(*) FROM baton.batch");
}

static void assert_refused(struct race *r)
{
	assert_true(r->was_replaced);
	assert_false(r->was_accepted);
	assert_int_equal(stored(r->b), 1);
}

static void a_completion_during_a_takeover_is_refused(void **state)
{
	struct race r;
	race_open(&r, *state);
	race_claim(&r);
	r.until_it_does = true;
	race(&r, replace_claim, write_end);
	assert_refused(&r);
	race_close(&r);
}

static void a_takeover_during_a_completion_finds_nothing(void **state)
{
	struct race r;
	race_open(&r, *state);
	race_claim(&r);
	race(&r, write_end, replace_claim);
	assert_true(r.was_accepted);
	assert_false(r.was_replaced);
	assert_int_equal(stored(r.b), 0);
	race_close(&r);
}

static void a_tick_during_a_takeover_is_refused(void **state)
{
	struct race r;
	race_open(&r, *state);
	race_run(&r);
	race(&r, replace_runner, write_tick);
	assert_refused(&r);
	race_close(&r);
}

static void a_takeover_during_a_tick_recovers_nothing(void **state)
{
	struct race r;
	race_open(&r, *state);
	race_run(&r);
	race(&r, write_tick, replace_runner);
	assert_true(r.was_accepted);
	assert_int_equal(stored(r.b), 0);
	race_close(&r);
}

/* The user asks in good time, and commits in the middle of the takeover, or before it. */
static void open_completion(struct race *r)
{
	char token[33], sql[200];
	const struct baton_work_claim *c = claim_of(r);
	snprintf(sql, sizeof sql, "BEGIN; SELECT baton.complete('%s', '%s')", c->proof.id,
	         baton_id_print(&c->proof.token, token));
	assert_true(does(r->user, sql));
	snprintf(r->sql, sizeof r->sql, "COMMIT");
}

static void a_users_commit_during_a_takeover_is_refused(void **state)
{
	struct race r;
	race_open(&r, *state);
	race_claim(&r);
	open_completion(&r);
	r.until_it_does = true;
	race(&r, replace_claim, write_sql);
	assert_refused(&r);
	race_close(&r);
}

static void a_takeover_during_a_users_commit_finds_nothing(void **state)
{
	struct race r;
	race_open(&r, *state);
	race_claim(&r);
	open_completion(&r);
	race(&r, write_sql, replace_claim);
	assert_true(r.was_accepted);
	assert_false(r.was_replaced);
	assert_int_equal(stored(r.b), 0);
	race_close(&r);
}

/* What looks as if it checked the fence: the same race shows that it does not. */
static void a_check_that_is_none_accepts_what_is_stale(void **state)
{
	static const char *const checks[] = {
		"DELETE FROM baton.batch b WHERE b.seq = %llu AND EXISTS (SELECT 1 "
		"FROM baton.claim c WHERE c.head = b.seq AND c.fence = %llu)",
		"WITH l AS MATERIALIZED (SELECT pg_advisory_xact_lock(1650553967, "
		"baton.stripe('q'))) DELETE FROM baton.batch b USING l WHERE b.seq = %llu AND "
		"EXISTS (SELECT 1 FROM baton.claim c WHERE c.head = b.seq AND c.fence = %llu)",
	};
	for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
		struct race r;
		race_open(&r, *state);
		race_claim(&r);
		r.until_it_does = true;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(r.sql, sizeof r.sql, checks[i],
		         (unsigned long long)claim_of(&r)->batches[0].seq,
		         (unsigned long long)claim_of(&r)->fence.v);
#pragma GCC diagnostic pop
		race(&r, replace_claim, write_sql);
		assert_true(r.was_replaced);
		assert_true(r.was_accepted);
		assert_int_equal(stored(r.b), 0);
		cluster_run(r.b->where, "DELETE FROM baton.claim; DELETE FROM baton.queue");
		race_close(&r);
	}
}

/* How many are behind, in the line of the lane, one that was taken already. */
static long long overtaken(const struct bench *b, uint64_t taken)
{
	char sql[100];
	snprintf(sql, sizeof sql, "SELECT count(*) FROM baton.batch WHERE seq < %llu",
	         (unsigned long long)taken);
	return cluster_number(b->where, sql);
}

/* A user's transaction puts, another's batch is put and taken, and the first commits. */
static long long overtake(struct bench *b, const char *sql)
{
	char lane[64], text[64];
	PGconn *user = user_of(b);
	assert_int_equal(put_into(b->store, "x", "before"), BATON_OK);
	assert_true(does(user, "BEGIN"));
	assert_true(does(user, sql));
	assert_int_equal(put_into(b->store, "x", "quick"), BATON_OK);
	assert_next(b, "before");
	uint64_t taken = take_one(b->store, lane, text);
	assert_string_equal(text, "quick");
	assert_true(does(user, "COMMIT"));
	PQfinish(user);
	return overtaken(b, taken);
}

static void what_commits_later_has_a_later_number(void **state)
{
	struct bench *b = *state;
	assert_int_equal(overtake(b, "SELECT baton.put('q', 'slow', 'x')"), 0);
	assert_next(b, "slow");
}

static void a_number_that_is_drawn_when_it_is_put_is_overtaken(void **state)
{
	struct bench *b = *state;
	assert_int_equal(
		overtake(b, "INSERT INTO baton.batch SELECT p.* FROM baton.batch b, "
	                    "jsonb_populate_record(NULL::baton.batch, to_jsonb(b) || "
	                    "jsonb_build_object('seq', nextval('baton.seq'), 'head', false)) p"),
		1);
	cluster_run(b->where, "DELETE FROM baton.batch");
}

/* A store that says BATON_BUSY rather than wait. */
static struct baton_store *open_hasty(const char *where)
{
	struct baton_store *store = NULL;
	const struct baton_store_options options = {.where = baton_str_z(where),
	                                            .owner = BATON_STR("hasty"),
	                                            .patience = baton_duration_ms(100)};
	assert_int_equal(baton_store_open(&options, &store), BATON_OK);
	return store;
}

static void an_open_transaction_of_a_user_delays_nobody(void **state)
{
	struct bench *b = *state;
	char token[33], sql[300];
	struct baton_store *store = open_hasty(b->where);
	struct baton_runner *runner = NULL;
	const struct baton_runner_ask ask = {.name = BATON_STR("r"), .ttl = baton_duration_s(5)};
	struct baton_work_renewal renewal;
	PGconn *user = user_of(b);
	assert_int_equal(baton_runner_register(store, &ask, &runner, NULL), BATON_OK);
	assert_int_equal(put_into(store, "x", "1"), BATON_OK);
	assert_int_equal(put_into(store, "y", "2"), BATON_OK);
	struct baton_work_claims *claims = claim_for(store, 60000);
	const struct baton_work_proof *proof = &claims->claims[0].proof;
	snprintf(sql, sizeof sql,
	         "BEGIN; SELECT baton.put('q', 'later', 'x'), baton.put('q', 'later', 'y'), "
	         "baton.complete('%s', '%s'), count(*) FROM baton.jobs",
	         proof->id, baton_id_print(&proof->token, token));
	assert_true(does(user, sql));
	assert_int_equal(baton_runner_beat(runner), BATON_OK);
	assert_int_equal(baton_work_renew(store, proof, 1, baton_duration_s(60), &renewal),
	                 BATON_OK);
	assert_int_equal(renewal.err, BATON_OK);
	assert_int_equal(put_into(store, "x", "3"), BATON_OK);
	assert_next(b, "2");
	assert_true(does(user, "COMMIT"));
	assert_next(b, "3");
	assert_next(b, "later");
	assert_next(b, "later");
	/* Who wants his number at once holds up his queue, but no beat. */
	assert_true(does(user, "BEGIN; SET CONSTRAINTS ALL IMMEDIATE; "
	                       "SELECT baton.put('q', 'at once', 'x')"));
	assert_int_equal(put_into(store, "x", "4"), BATON_BUSY);
	assert_int_equal(baton_runner_beat(runner), BATON_OK);
	assert_true(does(user, "COMMIT"));
	assert_next(b, "at once");
	baton_work_claims_free(claims);
	baton_runner_leave(runner);
	baton_store_close(store);
	PQfinish(user);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SERVED_TEST(a_completion_during_a_takeover_is_refused),
		SERVED_TEST(a_takeover_during_a_completion_finds_nothing),
		SERVED_TEST(a_tick_during_a_takeover_is_refused),
		SERVED_TEST(a_takeover_during_a_tick_recovers_nothing),
		SERVED_TEST(a_users_commit_during_a_takeover_is_refused),
		SERVED_TEST(a_takeover_during_a_users_commit_finds_nothing),
		SERVED_TEST(a_check_that_is_none_accepts_what_is_stale),
		SERVED_TEST(what_commits_later_has_a_later_number),
		SERVED_TEST(a_number_that_is_drawn_when_it_is_put_is_overtaken),
		SERVED_TEST(an_open_transaction_of_a_user_delays_nobody),
	};
	return served_main("races", tests, sizeof tests / sizeof tests[0]);
}
