/* Users' own transactions: source keys, and being admitted under a fence. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <baton/lease.h>
#include <baton/work.h>

#include "served.h"
#include "world.h"

/* The SQLSTATE of what fails; "": it succeeds. */
static const char *fails(PGconn *pg, const char *sql)
{
	static char state[6];
	PGresult *r = PQexec(pg, sql);
	const char *is = PQresultErrorField(r, PG_DIAG_SQLSTATE);
	snprintf(state, sizeof state, "%s", is ? is : "");
	PQclear(r);
	return state;
}

static long long number(PGconn *pg, const char *sql)
{
	PGresult *r = PQexec(pg, sql);
	assert_int_equal(PQresultStatus(r), PGRES_TUPLES_OK);
	long long is = atoll(PQgetvalue(r, 0, 0));
	PQclear(r);
	return is;
}

/* The same put in C and in SQL, but for the source key. */
struct same {
	struct baton_batch batch;
	const char *sql;
};

static const struct baton_str both[] = {{"k", 1}, {"l", 1}}, twice[] = {{"k", 1}, {"k", 1}};

static const struct same same[] = {
	{{.priority = 0}, "NULL, '{\"source\": \"%s\"}'"},
	{{.lane = {"l", 1}}, "'l', '{\"source\": \"%s\"}'"},
	{{.priority = 7}, "NULL, '{\"source\": \"%s\", \"priority\": 7}'"},
	{{.lane = {"l", 1}, .cls = BATON_COMMAND},
         "'l', '{\"source\": \"%s\", \"class\": \"command\"}'"},
	{{.delivery = BATON_AFTER_COMMIT},
         "NULL, '{\"source\": \"%s\", \"delivery\": \"after_commit\"}'"},
	{{.lane = {"l", 1}, .slot = BATON_JOIN, .group = {"g", 1}},
         "'l', '{\"source\": \"%s\", \"slot\": \"join\", \"group\": \"g\"}'"},
	{{.key = {"k", 1}}, "NULL, '{\"source\": \"%s\", \"key\": \"k\"}'"},
	{{.keys = both, .key_count = 2},
         "NULL, '{\"source\": \"%s\", \"keys\": [\"l\", \"k\", \"l\"]}'"},
	{{.lane = {"l", 1}, .keys = both, .key_count = 2},
         "'l', '{\"source\": \"%s\", \"keys\": [\"k\", \"l\"]}'"},
	{{.keys = twice, .key_count = 2}, "NULL, '{\"source\": \"%s\", \"key\": \"k\"}'"},
	{{.key = {"k", 1}}, "NULL, '{\"source\": \"%s\", \"keys\": [\"k\"]}'"},
	{{.delay = {INT64_C(90500000000)}}, "NULL, '{\"source\": \"%s\", \"delay\": \"90.5 s\"}'"},
};

static enum baton_err put_same(struct baton_store *store, const struct same *x, const char *key,
                               const char *text, struct baton_put *ret)
{
	struct baton_str payload = baton_str_z(text);
	struct baton_batch b = x->batch;
	b.queue = BATON_STR("q");
	b.source = baton_str_z(key);
	b.payloads = &payload;
	b.count = 1;
	return baton_work_put(store, &b, 1, ret);
}

static const char *sql_of(const struct same *x, const char *key, const char *text)
{
	static char sql[400];
	char options[200];
	char *at = options;
	for (const char *s = x->sql; *s; s++) {
		if (s[0] == '%' && s[1] == 's') {
			at += sprintf(at, "%s", key);
			s++;
		} else {
			*at++ = *s;
		}
	}
	*at = '\0';
	snprintf(sql, sizeof sql, "SELECT baton.put('q', '%s'::text, %s)", text, options);
	return sql;
}

static void a_source_key_is_the_same_in_c_and_in_sql(void **state)
{
	struct bench *b = *state;
	PGconn *user = user_of(b);
	struct baton_put put;
	for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
		char c_first[16], sql_first[16];
		snprintf(c_first, sizeof c_first, "c %zu", i);
		snprintf(sql_first, sizeof sql_first, "sql %zu", i);
		assert_int_equal(put_same(b->store, &same[i], c_first, "x", &put), BATON_OK);
		assert_int_equal(number(user, sql_of(&same[i], c_first, "x")), atoll(put.id.text));
		assert_string_equal(fails(user, sql_of(&same[i], c_first, "y")), "BT003");
		long long id = number(user, sql_of(&same[i], sql_first, "x"));
		assert_int_equal(put_same(b->store, &same[i], sql_first, "x", &put), BATON_OK);
		assert_true(put.existing);
		assert_int_equal(atoll(put.id.text), id);
		assert_int_equal(put_same(b->store, &same[i], sql_first, "y", &put),
		                 BATON_CONFLICT);
	}
	assert_int_equal(number(user, "SELECT count(*) FROM baton.batch"),
	                 2 * sizeof same / sizeof same[0]);
	PQfinish(user);
}

#define PUT_KEYS(keys) "SELECT baton.put('q', 'x'::text, NULL, '{\"keys\": " keys "}')"

static void users_put_jobs_with_several_keys(void **state)
{
	struct bench *b = *state;
	PGconn *user = user_of(b);
	static const struct baton_str payload = {"x", 1};
	const struct baton_batch one = {.queue = BATON_STR("q"),
	                                .key = BATON_STR("k"),
	                                .payloads = &payload,
	                                .count = 1};
	struct baton_work_claims *claims = NULL, *none = NULL;
	struct baton_work_page *page;
	struct baton_put put;
	assert_true(does(user, "BEGIN"));
	long long first = number(user, PUT_KEYS("[\"l\", \"k\"]"));
	long long second = number(user, PUT_KEYS("[\"m\", \"l\"]"));
	assert_true(does(user, "COMMIT"));
	assert_int_equal(baton_work_put(b->store, &one, 1, &put), BATON_OK);
	assert_sound(b->store);
	assert_ok(claim_some(b->store, "q", 1, &claims));
	assert_int_equal(atoll(claims->claims[0].batches[0].id.text), first);
	assert_int_equal(claims->claims[0].key_count, 2);
	assert_int_equal(claims->claims[0].lane.len, 0);
	assert_ok(claim_some(b->store, "q", 1, &none));
	assert_null(none);
	assert_int_equal(number(user,
	                        "SELECT count(*) FROM baton.jobs WHERE lane IS NULL AND key = "
	                        "'l' AND keys = '{l,m}' AND state = 'ready'"),
	                 1);
	struct baton_batch_id id;
	snprintf(id.text, sizeof id.text, "%lld", second);
	assert_int_equal(baton_work_get(b->store, &id, &page), BATON_OK);
	assert_int_equal(page->infos[0].why, BATON_WHY_KEY);
	baton_work_page_free(page);
	/* A completion in the user's transaction frees all of them, as a cancellation does. */
	char sql[200], token[BATON_ID_TEXT];
	snprintf(sql, sizeof sql, "SELECT baton.complete('%s', '%s')", claims->claims[0].proof.id,
	         baton_id_print(&claims->claims[0].proof.token, token));
	assert_true(does(user, sql));
	assert_sound(b->store);
	snprintf(sql, sizeof sql, "SELECT baton.cancel(%lld)", second);
	assert_true(does(user, sql));
	assert_sound(b->store);
	baton_work_claims_free(claims);
	claims = NULL;
	assert_ok(claim_some(b->store, "q", 1, &claims));
	assert_string_equal(claims->claims[0].batches[0].id.text, put.id.text);
	baton_work_claims_free(claims);
	assert_string_equal(fails(user, PUT_KEYS("\"k\"")), "22023");
	assert_string_equal(fails(user, PUT_KEYS("[1]")), "22023");
	assert_string_equal(fails(user, PUT_KEYS("[\"\"]")), "22023");
	assert_string_equal(fails(user, PUT_KEYS("[\"k\", \"l\"], \"key\": \"m\"")), "22023");
	assert_string_equal(fails(user, PUT_KEYS("[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\","
	                                         "\"8\",\"9\"]")),
	                    "22023");
	PQfinish(user);
}

#define PUT "SELECT baton.put('q', 'x'::text, NULL, '{\"source\": \"k\"}')"

static long long answer(PGconn *pg)
{
	PGresult *r = PQgetResult(pg);
	assert_int_equal(PQresultStatus(r), PGRES_TUPLES_OK);
	long long is = atoll(PQgetvalue(r, 0, 0));
	PQclear(r);
	while ((r = PQgetResult(pg)))
		PQclear(r);
	return is;
}

static void two_users_who_put_one_key_at_once_get_the_same_job(void **state)
{
	struct bench *b = *state;
	PGconn *one = user_of(b), *two = user_of(b);
	assert_true(does(one, "BEGIN"));
	long long id = number(one, PUT);
	assert_int_equal(number(one, PUT), id);
	assert_true(PQsendQuery(two, PUT));
	assert_true(does(one, "COMMIT"));
	assert_int_equal(answer(two), id);
	assert_int_equal(number(one, "SELECT count(*) FROM baton.batch"), 1);
	assert_true(does(one, "BEGIN"));
	assert_int_equal(number(one, PUT), id);
	assert_true(does(one, "ROLLBACK"));
	PQfinish(one);
	PQfinish(two);
}

static void a_key_that_is_put_by_a_library_meanwhile_fails_the_commit(void **state)
{
	struct bench *b = *state;
	PGconn *user = user_of(b);
	struct baton_put put;
	assert_true(does(user, "BEGIN"));
	assert_true(number(user, PUT) > 0);
	assert_int_equal(put_same(b->store, &same[0], "k", "x", &put), BATON_OK);
	assert_string_equal(fails(user, "COMMIT"), "40001");
	assert_int_equal(number(user, PUT), atoll(put.id.text));
	assert_int_equal(number(user, "SELECT count(*) FROM baton.batch"), 1);
	PQfinish(user);
}

/* It is remembered while the job is there, and as long as the queue says. */
static void a_key_that_is_forgotten_can_be_put_again(void **state)
{
	struct bench *b = *state;
	PGconn *user = user_of(b);
	long long id = number(user, PUT);
	assert_true(does(user, "UPDATE baton.source SET until = 1"));
	assert_int_equal(number(user, PUT), id);
	assert_next(b, "x");
	assert_true(number(user, PUT) > id);
	PQfinish(user);
}

/* What the library would not take either. */
static void what_is_no_job_is_refused(void **state)
{
	static const struct {
		const char *queue, *rest;
	} wrong[] = {
		{"''", "NULL"},
		{"'a/b'", "NULL"},
		{"repeat('q', 256)", "NULL"},
		{"'q'", "''"},
		{"'q'", "chr(10)"},
		{"'q'", "repeat('l', 256)"},
		{"'q'", "NULL, '[]'"},
		{"'q'", "NULL, '{\"colour\": 1}'"},
		{"'q'", "NULL, '{\"priority\": 10}'"},
		{"'q'", "NULL, '{\"priority\": -1}'"},
		{"'q'", "NULL, '{\"delay\": \"-1 s\"}'"},
		{"'q'", "NULL, '{\"delay\": \"367 days\"}'"},
		{"'q'", "NULL, '{\"source\": \"\"}'"},
		{"'q'", "NULL, '{\"key\": \"\"}'"},
		{"'q'", "NULL, '{\"slot\": \"twice\"}'"},
		{"'q'", "NULL, '{\"group\": \"g\"}'"},
		{"'q'", "NULL, '{\"slot\": \"join\", \"group\": \"\"}'"},
		{"'q'", "NULL, '{\"slot\": \"join\", \"class\": \"command\"}'"},
		{"'q'", "NULL, jsonb_build_object('key', repeat('k', 256))"},
		{"'q'", "NULL, jsonb_build_object('source', repeat('k', 256))"},
		{"'q'", "NULL, jsonb_build_object('slot', 'join', 'group', repeat('g', 256))"},
		{"'q'", "NULL, jsonb_build_object('slot', 'join', 'group', chr(7))"},
	};
	struct bench *b = *state;
	PGconn *user = user_of(b);
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		char sql[300];
		snprintf(sql, sizeof sql, "SELECT baton.put(%s, 'x'::text, %s)", wrong[i].queue,
		         wrong[i].rest);
		if (strcmp(fails(user, sql), "22023") != 0)
			fail_msg("%s: %s", sql, PQerrorMessage(user));
	}
	PQfinish(user);
	assert_int_equal(cluster_number(b->where, "SELECT count(*) FROM baton.batch"), 0);
}

/* Those whose place is known by a lock are few: the server has only so many for all. */
static void many_source_keys_in_one_transaction_leave_locks_to_others(void **state)
{
	struct bench *b = *state;
	PGconn *user = user_of(b);
	assert_true(does(user, "BEGIN"));
	assert_int_equal(number(user, "SELECT count(baton.put('q', 'x'::text, NULL, "
	                              "jsonb_build_object('source', i::text))) "
	                              "FROM generate_series(1, 2000) i"),
	                 2000);
	assert_true(number(user, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' "
	                         "AND pid = pg_backend_pid()") <= 256);
	assert_true(does(user, "COMMIT"));
	/* What was there before is found, however many there are. */
	assert_int_equal(number(user, "SELECT count(DISTINCT baton.put('q', 'x'::text, NULL, "
	                              "jsonb_build_object('source', i::text))) "
	                              "FROM generate_series(1, 2000) i"),
	                 2000);
	assert_int_equal(number(user, "SELECT count(*) FROM baton.jobs"), 2000);
	PQfinish(user);
}

static struct baton_lease_answer claim_as(struct baton_store *store,
                                          const struct baton_owner *owner, int64_t ttl_ms)
{
	struct baton_lease_answer a;
	const struct baton_lease_ask ask = {.subject = BATON_STR("s"),
	                                    .owner = owner,
	                                    .ttl = baton_duration_ms(ttl_ms)};
	assert_int_equal(baton_lease_claim(store, &ask, 1, &a), BATON_OK);
	return a;
}

static const char *admit(PGconn *user, baton_fence fence)
{
	char sql[100];
	snprintf(sql, sizeof sql, "SELECT baton.admit('s', %" PRIu64 ")", fence.v);
	return fails(user, sql);
}

static void who_is_admitted_holds_off_the_next_owner_and_no_renewal(void **state)
{
	struct bench *b = *state;
	struct baton_store *other = open_as(b->where);
	PGconn *user = user_of(b);
	enum baton_err err;
	struct baton_lease lease = claim_as(b->store, NULL, 60000).lease;
	struct baton_lease_proof proof = {BATON_STR("s"), &lease};
	assert_true(does(user, "BEGIN"));
	assert_string_equal(admit(user, lease.fence), "");
	assert_int_equal(baton_lease_renew(b->store, &proof, 1, baton_duration_ms(1), true, &err),
	                 BATON_OK);
	assert_int_equal(err, BATON_OK);
	cluster_run(b->where, "UPDATE baton.lease SET expires_at = 1");
	assert_int_equal(claim_as(other, NULL, 60000).err, BATON_YIELD);
	assert_true(does(user, "COMMIT"));
	struct baton_lease_answer next = claim_as(other, NULL, 60000);
	assert_int_equal(next.err, BATON_OK);
	assert_true(next.lease.fence.v > lease.fence.v);
	assert_string_equal(admit(user, lease.fence), "BT002");
	assert_string_equal(admit(user, next.lease.fence), "");
	baton_store_close(other);
	PQfinish(user);
}

/* One whose process has ended, though his time has not. */
static struct baton_owner dead_owner(const struct baton_store *store)
{
	struct baton_owner owner = *baton_store_owner(store);
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(baton_id_random(&owner.incarnation), BATON_OK);
	owner.pid = pid;
	return owner;
}

static void a_dead_holders_transaction_and_one_after_a_release_hold_it_off_too(void **state)
{
	struct bench *b = *state;
	PGconn *user = user_of(b);
	enum baton_err err;
	const struct baton_owner dead = dead_owner(b->store);
	struct baton_lease lease = claim_as(b->store, &dead, 60000).lease;
	assert_true(does(user, "BEGIN"));
	assert_string_equal(admit(user, lease.fence), "");
	assert_int_equal(claim_as(b->store, NULL, 60000).err, BATON_YIELD);
	assert_true(does(user, "ROLLBACK"));
	struct baton_lease_answer next = claim_as(b->store, NULL, 60000);
	assert_int_equal(next.err, BATON_OK);
	struct baton_lease_proof proof = {BATON_STR("s"), &next.lease};
	assert_true(does(user, "BEGIN"));
	assert_string_equal(admit(user, next.lease.fence), "");
	assert_int_equal(baton_lease_release(b->store, &proof, 1, &err), BATON_OK);
	assert_int_equal(claim_as(b->store, NULL, 60000).err, BATON_YIELD);
	assert_true(does(user, "COMMIT"));
	assert_string_equal(admit(user, next.lease.fence), "BT002");
	assert_int_equal(claim_as(b->store, NULL, 60000).err, BATON_OK);
	PQfinish(user);
}

/* The locks of a takeover, as baton.guard() and what is written after it take them. */
static void who_asks_while_the_owner_changes_waits_and_is_refused(void **state)
{
	struct bench *b = *state;
	PGconn *taker = user_of(b), *user = user_of(b);
	char sql[100];
	struct baton_lease lease = claim_as(b->store, NULL, 60000).lease;
	snprintf(sql, sizeof sql, "SELECT baton.admit('s', %" PRIu64 ")", lease.fence.v);
	assert_true(does(taker, "BEGIN; SELECT baton.guard(ARRAY['s']); "
	                        "UPDATE baton.lease SET fence = fence + 1"));
	assert_true(PQsendQuery(user, sql));
	while (cluster_number(b->where, "SELECT count(*) FROM pg_stat_activity WHERE "
	                                "cardinality(pg_blocking_pids(pid)) > 0") == 0)
		assert_int_equal(PQconsumeInput(user) && !PQisBusy(user), 0);
	assert_true(does(taker, "COMMIT"));
	PGresult *r = PQgetResult(user);
	assert_int_equal(PQresultStatus(r), PGRES_FATAL_ERROR);
	PQclear(r);
	PQfinish(taker);
	PQfinish(user);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SERVED_TEST(a_source_key_is_the_same_in_c_and_in_sql),
		SERVED_TEST(users_put_jobs_with_several_keys),
		SERVED_TEST(two_users_who_put_one_key_at_once_get_the_same_job),
		SERVED_TEST(a_key_that_is_put_by_a_library_meanwhile_fails_the_commit),
		SERVED_TEST(a_key_that_is_forgotten_can_be_put_again),
		SERVED_TEST(what_is_no_job_is_refused),
		SERVED_TEST(many_source_keys_in_one_transaction_leave_locks_to_others),
		SERVED_TEST(who_is_admitted_holds_off_the_next_owner_and_no_renewal),
		SERVED_TEST(a_dead_holders_transaction_and_one_after_a_release_hold_it_off_too),
		SERVED_TEST(who_asks_while_the_owner_changes_waits_and_is_refused),
	};
	return served_main("users", tests, sizeof tests / sizeof tests[0]);
}
