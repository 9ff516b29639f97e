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

/* Where somebody stops who is about to do something: when he has changed a row of that table in
 * that way, or `last` before his commit if he has; without an event, when he first reads it. */
struct step {
	const char *table, *event;
	bool last;
};

static const struct step before_commit = {"claim", "DELETE", true};

struct gate {
	struct bench *b;
	PGconn *pg;
	struct step at;
};

static void gate_shut(struct gate *g, struct bench *b, const struct step *at)
{
	char sql[400];
	*g = (struct gate){b, user_of(b), *at};
	if (!at->event) {
		snprintf(sql, sizeof sql, "BEGIN; LOCK TABLE baton.%s IN ACCESS EXCLUSIVE MODE",
		         at->table);
		assert_true(does(g->pg, sql));
		return;
	}
	cluster_run(b->where,
	            "CREATE FUNCTION public.stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
	            "PERFORM pg_advisory_xact_lock(1, 1); RETURN NULL; END $$");
	snprintf(sql, sizeof sql,
	         "CREATE %s stop AFTER %s ON baton.%s %s FOR EACH ROW EXECUTE FUNCTION "
	         "public.stop()",
	         at->last ? "CONSTRAINT TRIGGER" : "TRIGGER", at->event, at->table,
	         at->last ? "DEFERRABLE INITIALLY DEFERRED" : "");
	cluster_run(b->where, sql);
	assert_true(does(g->pg, "SELECT pg_advisory_lock(1, 1)"));
}

static void gate_open(struct gate *g)
{
	PQfinish(g->pg);
	g->pg = NULL;
}

static void gate_remove(struct gate *g)
{
	char sql[100];
	if (!g->at.event)
		return;
	snprintf(sql, sizeof sql, "DROP TRIGGER stop ON baton.%s; DROP FUNCTION public.stop()",
	         g->at.table);
	cluster_run(g->b->where, sql);
}

/* How many of this database wait for others. */
static int waiting(const struct bench *b)
{
	return (int)cluster_number(b->where,
	                           "SELECT count(*) FROM pg_stat_activity WHERE datname = "
	                           "current_database() AND "
	                           "cardinality(pg_blocking_pids(pid)) > 0");
}

static void await_stopped(const struct bench *b, int count)
{
	while (waiting(b) < count)
		;
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
	char sql[600];     /* what the user's transaction says last */
	bool was_replaced; /* the other has taken it over           */
	bool was_accepted; /* what the first one wrote              */
	bool together;     /* the work stands in a row with other work */
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

#define TOGETHER 4 /* jobs that stand in one row */

static void put_together(struct baton_store *store)
{
	const struct baton_str payload = BATON_STR("work");
	struct baton_batch batches[TOGETHER];
	struct baton_put puts[TOGETHER];
	for (int i = 0; i < TOGETHER; i++)
		batches[i] = (struct baton_batch){.queue = BATON_STR("q"),
		                                  .payloads = &payload,
		                                  .count = 1};
	assert_int_equal(baton_work_put(store, batches, TOGETHER, puts), BATON_OK);
}

/* Until the claim is over. */
static void race_expire(const struct race *r)
{
	while (cluster_number(r->b->where,
	                      "SELECT count(*) FROM (SELECT expires_at FROM baton.claim UNION ALL "
	                      "SELECT expires_at FROM baton.chunk) x "
	                      "WHERE expires_at >= baton.now_ms()") > 0)
		;
}

static void race_claim(struct race *r)
{
	if (r->together)
		put_together(r->mine);
	else
		assert_int_equal(put_into(r->mine, "x", "work"), BATON_OK);
	r->first = claim_for(r->mine, 1);
	assert_non_null(r->first);
	race_expire(r);
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

/* The same for a runner, which is taken over. It may take its time. */
static void race_run(struct race *r)
{
	struct baton_queue_policy p = baton_queue_policy_default();
	const struct baton_runner_ask ask = {.name = BATON_STR("r"),
	                                     .weight = 1,
	                                     .ttl = baton_duration_s(900)};
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
	r->second = claim_for(r->theirs, 60000);
	r->was_replaced = r->second && strcmp(r->second->claims[0].batches[0].id.text,
	                                      claim_of(r)->batches[0].id.text) == 0;
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
	struct baton_work_ended ended = {.err = BATON_OK};
	enum baton_err e = baton_work_end(r->mine, &end, 1, &ended);
	r->was_accepted = e == BATON_OK && ended.err == BATON_OK;
	return NULL;
}

static void *write_tick(void *arg)
{
	struct race *r = arg;
	struct baton_work_claims *more = NULL;
	const struct baton_work_end end = {.proof = claim_of(r)->proof, .how = BATON_COMPLETE};
	enum baton_err e = tick(r, &end, &more);
	r->was_accepted = e == BATON_OK;
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

/* The first is stopped at that step, the second goes as far as it gets, and both go on. */
static void race_at(struct race *r, const struct step *at, act *first, act *second)
{
	pthread_t one, two;
	gate_shut(&r->gate, r->b, at);
	assert_int_equal(pthread_create(&one, NULL, first, r), 0);
	await_stopped(r->b, 1);
	assert_int_equal(pthread_create(&two, NULL, second, r), 0);
	await_stopped(r->b, 2);
	gate_open(&r->gate);
	pthread_join(one, NULL);
	pthread_join(two, NULL);
	gate_remove(&r->gate);
}

static void race(struct race *r, act *first, act *second)
{
	race_at(r, &before_commit, first, second);
}

static long long stored(const struct bench *b)
{
	return cluster_number(b->where, "SELECT count(*) FROM baton.jobs");
}

/* What came of it, and how many jobs are left. */
static void assert_came_to(struct race *r, bool replaced, bool accepted)
{
	const struct step *at = &r->gate.at;
	const int left = (r->together ? TOGETHER : 1) - accepted;
	if (r->was_replaced != replaced || r->was_accepted != accepted || stored(r->b) != left)
		fail_msg("stopped at %s of %s: %sreplaced, %saccepted, %lld left",
		         at->event ? at->event : "reading", at->table,
		         r->was_replaced ? "" : "not ", r->was_accepted ? "" : "not ",
		         stored(r->b));
}

/* One who writes and one who replaces him, and where each of them can be stopped. */
struct kind {
	bool together;
	act *write, *replace;
	struct step writes[5], replaces[6];
};

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

static void begin(struct race *r, struct bench *b, const struct kind *kind)
{
	race_open(r, b);
	r->together = kind->together;
	if (kind->write == write_tick)
		race_run(r);
	else
		race_claim(r);
	if (kind->write == write_sql)
		open_completion(r);
}

static const struct kind kinds[] = {
	{.write = write_end,
         .replace = replace_claim,
         .writes = {{"claim", "DELETE", false},
                    {"batch", "DELETE", false},
                    {"tally", "INSERT", false},
                    {"claim", "DELETE", true}},
         .replaces = {{"claim", NULL, false},
                      {"claim", "UPDATE", false},
                      {"claim", "DELETE", false},
                      {"claim", "INSERT", false},
                      {"batch", "UPDATE", false},
                      {"claim", "DELETE", true}}},
	{.write = write_end,
         .replace = replace_claim,
         .together = true,
         .writes = {{"chunk", NULL, false},
                    {"chunk", "DELETE", false},
                    {"reply", "INSERT", false},
                    {"tally", "INSERT", false},
                    {"chunk", "DELETE", true}},
         .replaces = {{"chunk", NULL, false},
                      {"chunk", "DELETE", false},
                      {"batch", "INSERT", false},
                      {"bulk", "DELETE", false},
                      {"claim", "INSERT", false},
                      {"chunk", "DELETE", true}}},
	{.write = write_tick,
         .replace = replace_runner,
         .writes = {{"claim", "DELETE", false},
                    {"batch", "DELETE", false},
                    {"tally", "INSERT", false},
                    {"claim", "DELETE", true}},
         .replaces = {{"claim", "DELETE", false},
                      {"batch", "UPDATE", false},
                      {"lease", "UPDATE", false},
                      {"runner", "DELETE", false},
                      {"claim", "DELETE", true}}},
	{.write = write_sql,
         .replace = replace_claim,
         .writes = {{"claim", "DELETE", false},
                    {"batch", "DELETE", false},
                    {"answer", "INSERT", false},
                    {"claim", "DELETE", true}},
         .replaces = {{"claim", "UPDATE", false},
                      {"claim", "DELETE", false},
                      {"claim", "INSERT", false},
                      {"batch", "UPDATE", false},
                      {"claim", "DELETE", true}}},
	{.write = write_sql,
         .replace = replace_claim,
         .together = true,
         .writes = {{"chunk", "DELETE", false},
                    {"batch", "INSERT", false},
                    {"claim", "DELETE", false},
                    {"answer", "INSERT", false},
                    {"claim", "DELETE", true}},
         .replaces = {{"chunk", "DELETE", false},
                      {"batch", "INSERT", false},
                      {"bulk", "DELETE", false},
                      {"claim", "INSERT", false},
                      {"chunk", "DELETE", true}}},
};

#define KINDS (sizeof kinds / sizeof kinds[0])

/* A database of its own for each race, which is checked after it. */
static void a_write_during_a_takeover_is_refused_at_whatever_step(void **state)
{
	(void)state;
	for (size_t i = 0; i < KINDS; i++) {
		for (const struct step *at = kinds[i].replaces;
		     at < kinds[i].replaces + 6 && at->table; at++) {
			struct race r;
			void *b;
			served_setup(&b);
			begin(&r, b, &kinds[i]);
			race_at(&r, at, kinds[i].replace, kinds[i].write);
			assert_came_to(&r, true, false);
			race_close(&r);
			served_teardown(&b);
		}
	}
}

static void a_takeover_during_a_write_finds_all_of_it_or_nothing_at_whatever_step(void **state)
{
	(void)state;
	for (size_t i = 0; i < KINDS; i++) {
		for (const struct step *at = kinds[i].writes; at < kinds[i].writes + 5 && at->table;
		     at++) {
			struct race r;
			void *b;
			served_setup(&b);
			begin(&r, b, &kinds[i]);
			race_at(&r, at, kinds[i].write, kinds[i].replace);
			/* Who takes over a runner stops it first: what it has not done by then it
			 * does not do, all of it. */
			bool runner = kinds[i].replace == replace_runner;
			assert_came_to(&r, runner, !runner || at->last);
			race_close(&r);
			served_teardown(&b);
		}
	}
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

/* A number that is behind none that is given out, as whoever looks from a mark on wants it. */
static void mark_heads(const struct bench *b)
{
	cluster_run(b->where, "SELECT baton.raise(id, 0, 9) FROM baton.queue");
}

/* Whoever puts meanwhile is the last, and the mark is behind what he has put. */
static const char *lost_by_a_mark(struct bench *b, const char *sql)
{
	static char text[64];
	char lane[64];
	PGconn *user = user_of(b);
	assert_int_equal(put_into(b->store, "x", "before"), BATON_OK);
	assert_true(does(user, "BEGIN"));
	assert_true(does(user, sql));
	assert_int_equal(put_into(b->store, "y", "quick"), BATON_OK);
	assert_next(b, "before");
	assert_next(b, "quick");
	mark_heads(b);
	assert_true(does(user, "COMMIT"));
	PQfinish(user);
	return take_one(b->store, lane, text) > 0 ? text : "nothing";
}

static void what_commits_behind_a_mark_is_not_lost(void **state)
{
	struct bench *b = *state;
	assert_string_equal(lost_by_a_mark(b, "SELECT baton.put('q', 'slow', 'z')"), "slow");
}

static void a_mark_passes_over_a_number_that_is_drawn_when_it_is_put(void **state)
{
	struct bench *b = *state;
	assert_string_equal(
		lost_by_a_mark(b,
	                       "INSERT INTO baton.batch SELECT p.* FROM baton.batch b, "
	                       "jsonb_populate_record(NULL::baton.batch, to_jsonb(b) || "
	                       "jsonb_build_object('seq', nextval('baton.seq'), 'lane', 'z')) p"),
		"nothing");
	cluster_run(b->where, "DELETE FROM baton.batch");
}

/* Until the server has found out that they wait for each other; one of them is told. */
static bool stop_each_other(PGconn *one, PGconn *two, const char *first, const char *second)
{
	PGresult *r;
	bool stopped = false;
	assert_true(PQsendQuery(one, first));
	stopped = !does(two, second);
	if (!stopped)
		assert_true(does(two, "COMMIT"));
	else
		assert_true(does(two, "ROLLBACK"));
	while ((r = PQgetResult(one))) {
		stopped = stopped || PQresultStatus(r) == PGRES_FATAL_ERROR;
		PQclear(r);
	}
	assert_true(does(one, "COMMIT"));
	return stopped;
}

/* What was staged takes its locks at the end, all of them in order. */
static void locks_that_are_taken_when_something_is_put_stop_each_other(void **state)
{
	struct bench *b = *state;
	PGconn *one = user_of(b), *two = user_of(b);
	assert_true(does(one, "BEGIN; SELECT pg_advisory_xact_lock(2, 1)"));
	assert_true(does(two, "BEGIN; SELECT pg_advisory_xact_lock(2, 2)"));
	assert_true(stop_each_other(one, two, "SELECT pg_advisory_xact_lock(2, 2)",
	                            "SELECT pg_advisory_xact_lock(2, 1)"));
	assert_true(does(one, "BEGIN; SELECT baton.put('q', '1', 'x'), baton.put('p', '2', 'y')"));
	assert_true(does(two, "BEGIN; SELECT baton.put('p', '3', 'y'), baton.put('q', '4', 'x')"));
	assert_false(stop_each_other(one, two, "SELECT baton.put('p', '5', 'y')",
	                             "SELECT baton.put('q', '6', 'x')"));
	PQfinish(one);
	PQfinish(two);
	assert_int_equal(stored(b), 6);
}

/* Whether one who asks for the fence before is admitted while another one changes it. */
static bool is_admitted(struct bench *b, bool guarded)
{
	char sql[120];
	PGconn *taker = user_of(b), *user = user_of(b);
	cluster_run(b->where, "UPDATE baton.lease SET fence = 1");
	assert_true(does(taker, "BEGIN"));
	if (guarded)
		assert_true(does(taker, "SELECT baton.guard(ARRAY['s'])"));
	assert_true(does(taker, "UPDATE baton.lease SET fence = 2"));
	snprintf(sql, sizeof sql, "SET lock_timeout = 100; SELECT baton.admit('s', 1)");
	bool admitted = does(user, sql);
	assert_true(does(taker, "COMMIT"));
	PQfinish(taker);
	PQfinish(user);
	return admitted;
}

/* A change of the fence alone leaves the key of the row as it is, and who locks that does not wait
 * for it. */
static void a_lock_of_the_key_alone_admits_who_is_stale(void **state)
{
	struct bench *b = *state;
	struct baton_lease_answer answer;
	const struct baton_lease_ask ask = {.subject = BATON_STR("s")};
	assert_int_equal(baton_lease_claim(b->store, &ask, 1, &answer), BATON_OK);
	assert_true(is_admitted(b, false));
	assert_false(is_admitted(b, true));
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

/* What is kept of two queues, and has been for long enough. */
static void leave_results(struct bench *b)
{
	cluster_run(b->where,
	            "SELECT baton.put(q, 'x'::text, NULL, jsonb_build_object('source', q)) "
	            "FROM unnest(ARRAY['a', 'b']) q");
	cluster_run(b->where, "UPDATE baton.batch SET state = 6, head = false, ended_at = 1, "
	                      "until = 1; UPDATE baton.queue SET ready = 0, kept = 1");
}

static void *tidy(void *arg)
{
	struct race *r = arg;
	size_t count;
	r->was_replaced = baton_store_tidy(r->theirs, 100, &count) == BATON_OK;
	return NULL;
}

/* A user's transaction ends something in both, and is stopped when it has written to the second of
 * them. */
static void what_is_forgotten_of_two_queues_stops_nobody_who_uses_both(void **state)
{
	struct race r;
	pthread_t one, two;
	size_t count;
	race_open(&r, *state);
	leave_results(r.b);
	cluster_run(r.b->where, "SELECT baton.put('b', '1'); SELECT baton.put('a', '2')");
	gate_shut(&r.gate, r.b, &(struct step){"queue", "UPDATE", false});
	cluster_run(r.b->where,
	            "DROP TRIGGER stop ON baton.queue; CREATE TRIGGER stop AFTER UPDATE "
	            "ON baton.queue FOR EACH ROW WHEN (NEW.name = 'b' AND NEW.ready < "
	            "OLD.ready) EXECUTE FUNCTION public.stop()");
	assert_true(does(r.user, "BEGIN; SELECT baton.cancel(id) FROM baton.jobs "
	                         "WHERE state = 'ready' ORDER BY id"));
	snprintf(r.sql, sizeof r.sql, "COMMIT");
	assert_int_equal(pthread_create(&one, NULL, write_sql, &r), 0);
	await_stopped(r.b, 1);
	assert_int_equal(pthread_create(&two, NULL, tidy, &r), 0);
	while (!r.was_replaced && waiting(r.b) < 2)
		; /* it waits too, or is done */
	gate_open(&r.gate);
	pthread_join(one, NULL);
	pthread_join(two, NULL);
	gate_remove(&r.gate);
	assert_true(r.was_accepted);
	assert_true(r.was_replaced);
	assert_int_equal(baton_store_tidy(r.theirs, 100, &count), BATON_OK);
	assert_int_equal(stored(r.b), 0);
	race_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_write_during_a_takeover_is_refused_at_whatever_step),
		cmocka_unit_test(
			a_takeover_during_a_write_finds_all_of_it_or_nothing_at_whatever_step),
		SERVED_TEST(a_check_that_is_none_accepts_what_is_stale),
		SERVED_TEST(what_commits_later_has_a_later_number),
		SERVED_TEST(a_number_that_is_drawn_when_it_is_put_is_overtaken),
		SERVED_TEST(what_commits_behind_a_mark_is_not_lost),
		SERVED_TEST(a_mark_passes_over_a_number_that_is_drawn_when_it_is_put),
		SERVED_TEST(locks_that_are_taken_when_something_is_put_stop_each_other),
		SERVED_TEST(a_lock_of_the_key_alone_admits_who_is_stale),
		SERVED_TEST(an_open_transaction_of_a_user_delays_nobody),
		SERVED_TEST(what_is_forgotten_of_two_queues_stops_nobody_who_uses_both),
	};
	return served_main("races", tests, sizeof tests / sizeof tests[0]);
}
