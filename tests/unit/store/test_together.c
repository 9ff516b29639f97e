/* Jobs with keys that stand in rows with others: who else may have a key, and is found. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <baton/work.h>

#include "served.h"
#include "support/child.h"

#define FEW 10
#define CALLS 40 /* more rows than are looked through */

/* FEW jobs, each with a key of its own. */
static void put_keyed(struct baton_store *store, const char *prefix, int from)
{
	struct baton_batch batches[FEW];
	struct baton_str payloads[FEW];
	struct baton_put puts[FEW];
	char keys[FEW][24];
	for (int i = 0; i < FEW; i++) {
		snprintf(keys[i], sizeof keys[i], "%s%d", prefix, from + i);
		payloads[i] = baton_str_z(keys[i]);
		batches[i] = (struct baton_batch){.queue = BATON_STR("q"),
		                                  .key = baton_str_z(keys[i]),
		                                  .payloads = &payloads[i],
		                                  .count = 1};
	}
	assert_int_equal(baton_work_put(store, batches, FEW, puts), BATON_OK);
}

static void put_key(struct baton_store *store, const char *key, const char *text)
{
	const struct baton_str payload = baton_str_z(text);
	const struct baton_batch batch = {.queue = BATON_STR("q"),
	                                  .key = baton_str_z(key),
	                                  .payloads = &payload,
	                                  .count = 1};
	struct baton_put put;
	assert_int_equal(baton_work_put(store, &batch, 1, &put), BATON_OK);
}

static void put_plain(struct baton_store *store, int count)
{
	static struct baton_batch batches[1000];
	static struct baton_put puts[1000];
	const struct baton_str payload = BATON_STR("x");
	for (int i = 0; i < count; i++)
		batches[i] = (struct baton_batch){.queue = BATON_STR("q"),
		                                  .payloads = &payload,
		                                  .count = 1};
	assert_int_equal(baton_work_put(store, batches, (size_t)count, puts), BATON_OK);
}

static struct baton_work_claims *claim_up_to(struct baton_store *store, uint32_t count)
{
	const struct baton_work_ask ask = {.queue = BATON_STR("q"), .claims = count, .max = 1};
	struct baton_work_claims *claims = NULL;
	assert_int_equal(baton_work_claim(store, &ask, &claims), BATON_OK);
	return claims;
}

static struct baton_work_claims *claim_just(struct baton_store *store, uint32_t count)
{
	struct baton_work_claims *claims = claim_up_to(store, count + 1);
	assert_non_null(claims);
	assert_int_equal(claims->count, count);
	return claims;
}

static void assert_none(struct baton_store *store)
{
	assert_null(claim_up_to(store, 1));
}

static void complete(struct baton_store *store, const struct baton_work_claim *c)
{
	const struct baton_work_end end = {.proof = c->proof, .how = BATON_COMPLETE};
	struct baton_work_ended ended;
	assert_int_equal(baton_work_end(store, &end, 1, &ended), BATON_OK);
	assert_int_equal(ended.err, BATON_OK);
}

/* All but one of them. */
static void complete_others(struct baton_store *store, const struct baton_work_claims *c,
                            size_t but)
{
	for (size_t i = 0; i < c->count; i++) {
		if (i != but)
			complete(store, &c->claims[i]);
	}
}

#define NOBODY SIZE_MAX

static void assert_text(const struct baton_work_claim *c, const char *text)
{
	const struct baton_str is = c->batches[0].payloads[0];
	assert_int_equal(is.len, strlen(text));
	assert_memory_equal(is.ptr, text, is.len);
}

static long long rows(const struct bench *b, const char *table)
{
	char sql[100];
	snprintf(sql, sizeof sql, "SELECT count(*) FROM baton.%s", table);
	return cluster_number(b->where, sql);
}

static void assert_nothing_left(const struct bench *b)
{
	assert_int_equal(rows(b, "bulk"), 0);
	assert_int_equal(rows(b, "chunk"), 0);
	assert_int_equal(rows(b, "lone"), 0);
	assert_int_equal(rows(b, "batch"), 0);
	assert_int_equal(rows(b, "claim"), 0);
}

static void they_stand_together_and_leave_nothing_behind(void **state)
{
	struct bench *b = *state;
	for (int i = 0; i < 3; i++) {
		put_keyed(b->store, "k", 0);
		assert_int_equal(rows(b, "batch"), 0);
		struct baton_work_claims *c = claim_just(b->store, FEW);
		assert_int_equal(rows(b, "claim"), 0);
		complete_others(b->store, c, NOBODY);
		baton_work_claims_free(c);
		assert_nothing_left(b);
	}
}

static void one_alone_stands_as_others_do(void **state)
{
	struct bench *b = *state;
	put_key(b->store, "k", "one");
	assert_int_equal(rows(b, "bulk"), 1);
	put_key(b->store, "k", "two");
	assert_int_equal(rows(b, "bulk"), 0);
	assert_int_equal(rows(b, "batch"), 2);
	assert_next(b, "one");
	assert_next(b, "two");
	put_key(b->store, "k", "three");
	assert_int_equal(rows(b, "bulk"), 1);
	assert_next(b, "three");
	assert_nothing_left(b);
}

static const char users_put[] = "SELECT baton.put('q', 'user'::text, NULL, '{\"key\": \"k3\"}')";

/* Completes what has the key "k3"; then the user's comes, and nobody else. */
static void assert_users_is_next(struct bench *b, struct baton_work_claims *c)
{
	assert_none(b->store);
	assert_text(&c->claims[3], "k3");
	complete_others(b->store, c, 3);
	assert_none(b->store);
	complete(b->store, &c->claims[3]);
	baton_work_claims_free(c);
	assert_next(b, "user");
	assert_nothing_left(b);
}

static void a_users_put_waits_for_one_that_was_claimed_before_it_was_committed(void **state)
{
	struct bench *b = *state;
	PGconn *pg = user_of(b);
	put_keyed(b->store, "k", 0);
	assert_true(does(pg, "BEGIN"));
	assert_true(does(pg, users_put));
	struct baton_work_claims *c = claim_just(b->store, FEW);
	assert_true(does(pg, "COMMIT"));
	assert_users_is_next(b, c);
	PQfinish(pg);
}

static void a_users_put_waits_for_those_that_were_put_before_it_was_committed(void **state)
{
	struct bench *b = *state;
	PGconn *pg = user_of(b);
	put_keyed(b->store, "k", 20);
	assert_true(does(pg, "BEGIN"));
	assert_true(does(pg, users_put));
	put_keyed(b->store, "k", 0);
	assert_true(does(pg, "COMMIT"));
	struct baton_work_claims *c = claim_just(b->store, 2 * FEW);
	struct baton_work_claims first = {.count = FEW, .claims = c->claims};
	complete_others(b->store, &first, NOBODY);
	assert_none(b->store);
	assert_text(&c->claims[FEW + 3], "k3");
	first.claims += FEW;
	complete_others(b->store, &first, NOBODY);
	baton_work_claims_free(c);
	assert_next(b, "user");
	assert_nothing_left(b);
	PQfinish(pg);
}

static void a_put_waits_for_a_users_that_was_committed_before_it(void **state)
{
	struct bench *b = *state;
	PGconn *pg = user_of(b);
	put_keyed(b->store, "l", 0); /* the process remembers the queue */
	assert_true(does(pg, users_put));
	put_keyed(b->store, "k", 0);
	struct baton_work_claims *c = claim_just(b->store, 2 * FEW);
	assert_text(&c->claims[FEW], "user");
	complete_others(b->store, c, FEW);
	assert_none(b->store);
	complete(b->store, &c->claims[FEW]);
	baton_work_claims_free(c);
	assert_next(b, "k3");
	assert_nothing_left(b);
	PQfinish(pg);
}

static void another_store_sees_who_has_a_key(void **state)
{
	struct bench *b = *state;
	struct baton_store *other = open_as(b->where);
	put_keyed(b->store, "k", 0);
	put_keyed(other, "k", 5);
	put_keyed(b->store, "k", 10);
	struct baton_work_claims *c = claim_just(b->store, 4 * FEW / 2);
	complete_others(other, c, NOBODY);
	baton_work_claims_free(c);
	c = claim_just(other, FEW);
	complete_others(b->store, c, NOBODY);
	baton_work_claims_free(c);
	assert_nothing_left(b);
	baton_store_close(other);
}

static void the_keys_of_old_rows_are_written_down_and_forgotten(void **state)
{
	struct bench *b = *state;
	for (int i = 0; i < CALLS; i++)
		put_keyed(b->store, "k", i * FEW);
	assert_true(rows(b, "lone") > 0);
	put_key(b->store, "k5", "old");
	put_key(b->store, "k399", "young");
	struct baton_work_claims *c = claim_just(b->store, CALLS * FEW);
	complete_others(b->store, c, 21);
	struct baton_work_claims *next = claim_just(b->store, 2);
	assert_text(&next->claims[0], "old");
	assert_text(&next->claims[1], "young");
	complete_others(b->store, next, NOBODY);
	baton_work_claims_free(next);
	put_key(b->store, "k22", "free"); /* who had it is done, though one of its row is not */
	put_key(b->store, "k21", "busy");
	assert_next(b, "free");
	assert_none(b->store);
	complete(b->store, &c->claims[21]);
	baton_work_claims_free(c);
	assert_next(b, "busy");
	assert_nothing_left(b);
}

static void the_keys_of_a_row_far_behind_are_written_down(void **state)
{
	struct bench *b = *state;
	put_keyed(b->store, "k", 0);
	struct baton_work_claims *c = claim_just(b->store, FEW);
	for (int i = 0; i < 3; i++) {
		put_plain(b->store, 900);
		struct baton_work_claims *done = claim_just(b->store, 900);
		complete_others(b->store, done, NOBODY);
		baton_work_claims_free(done);
	}
	put_key(b->store, "l", "next");
	assert_int_equal(rows(b, "lone"), FEW);
	put_key(b->store, "k3", "second");
	assert_int_equal(rows(b, "lone"), 0);
	assert_next(b, "next");
	assert_none(b->store);
	complete_others(b->store, c, NOBODY);
	baton_work_claims_free(c);
	assert_next(b, "second");
	assert_nothing_left(b);
}

/* The first of a row has no key, and the number before that of its first key is written down. */
static void a_row_that_begins_with_one_without_a_key_is_found(void **state)
{
	struct bench *b = *state;
	const struct baton_str payload = BATON_STR("x");
	struct baton_batch batches[6];
	struct baton_put puts[6];
	char keys[6][8];
	for (int i = 0; i < 6; i++) {
		snprintf(keys[i], sizeof keys[i], "k%d", i);
		batches[i] = (struct baton_batch){.queue = BATON_STR("q"),
		                                  .payloads = &payload,
		                                  .count = 1};
		if (i > 0)
			batches[i].key = baton_str_z(keys[i]);
	}
	put_plain(b->store, 500);
	assert_int_equal(baton_work_put(b->store, batches, 6, puts), BATON_OK);
	assert_int_equal(rows(b, "young"), 1);
	struct baton_work_claims *c = claim_just(b->store, 506);
	put_key(b->store, "k3", "second");
	assert_none(b->store);
	complete_others(b->store, c, NOBODY);
	baton_work_claims_free(c);
	assert_next(b, "second");
	assert_nothing_left(b);
}

#define LIVES 12 /* and deaths */

/* Puts, claims and completes jobs with the same keys until it is killed, and says so after each
 * step. */
static int live(int channel, void *arg)
{
	struct baton_store *store = open_as(arg);
	for (int i = 0;; i++) {
		struct baton_batch batches[FEW];
		struct baton_put puts[FEW];
		struct baton_work_end ends[FEW];
		struct baton_work_ended ended[FEW];
		struct baton_work_claims *c = NULL;
		char keys[FEW][8];
		const struct baton_str payload = BATON_STR("x");
		const struct baton_work_ask ask = {.queue = BATON_STR("q"),
		                                   .claims = FEW,
		                                   .max = 1,
		                                   .ttl = baton_duration_ms(50)};
		for (int j = 0; j < FEW; j++) {
			snprintf(keys[j], sizeof keys[j], "k%d", (i * 3 + j) % 25);
			batches[j] = (struct baton_batch){.queue = BATON_STR("q"),
			                                  .key = baton_str_z(keys[j]),
			                                  .payloads = &payload,
			                                  .count = 1};
		}
		if (baton_work_put(store, batches, FEW, puts) != BATON_OK)
			return 1;
		channel_send(channel, "put");
		if (baton_work_claim(store, &ask, &c) != BATON_OK)
			return 2;
		channel_send(channel, "claimed");
		for (size_t j = 0; c && j < c->count; j++)
			ends[j] = (struct baton_work_end){.proof = c->claims[j].proof,
			                                  .how = BATON_COMPLETE};
		if (c && baton_work_end(store, ends, c->count, ended) != BATON_OK)
			return 3;
		baton_work_claims_free(c);
		channel_send(channel, "ended");
	}
}

/* The server may still be at what a killed process has asked for: returns when it is not. */
static void await_server(const struct bench *b, long long since_us)
{
	char sql[300];
	snprintf(sql, sizeof sql,
	         "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid, 60000)) FROM "
	         "pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
	         "AND extract(epoch FROM backend_start) * 1000000 >= %lld",
	         since_us);
	cluster_number(b->where, sql);
}

/* What was not done is done by others, each key once at a time, and nothing is left held. */
static void whoever_is_killed_leaves_every_key_to_others(void **state)
{
	struct bench *b = *state;
	for (int i = 0; i < LIVES; i++) {
		struct child c;
		char word[16];
		const long long since_us =
			cluster_number(b->where,
		                       "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)");
		child_start(&c, live, b->where);
		for (int steps = 0; steps <= i; steps++)
			assert_true(channel_receive(c.channel, word, sizeof word));
		kill(c.pid, SIGKILL);
		assert_int_equal(child_reap(&c), 128 + SIGKILL);
		await_server(b, since_us);
		uint64_t faults;
		assert_int_equal(baton_store_check(b->store, NULL, NULL, &faults), BATON_OK);
		assert_int_equal(faults, 0);
	}
	cluster_run(b->where, "UPDATE baton.claim SET expires_at = 1; UPDATE baton.chunk SET "
	                      "expires_at = 1; UPDATE baton.tally SET tended = 0");
	for (struct baton_work_claims *c; (c = claim_up_to(b->store, 100));) {
		assert_int_equal(
			cluster_number(b->where,
		                       "SELECT count(*) FROM (SELECT key FROM baton.jobs WHERE "
		                       "state = 'claimed' GROUP BY key HAVING count(*) > 1) x"),
			0);
		complete_others(b->store, c, NOBODY);
		baton_work_claims_free(c);
	}
	assert_nothing_left(b);
}

/* Before version 12 rows of several flags could have numbers between each other's. */
static void of_rows_that_overlap_the_first_comes_first(void **state)
{
	struct bench *b = *state;
	PGconn *pg = user_of(b);
	put_plain(b->store, 20);
	assert_true(does(pg, "BEGIN"));
	assert_true(does(
		pg,
		"CREATE TEMP TABLE t AS SELECT b.*, u.seq, u.payload AS bytes, u.seq % 3 = 1 "
		"AS other FROM baton.bulk b CROSS JOIN LATERAL baton.unpack(b.first, b.payload) u "
		"WHERE b.first = (SELECT max(first) FROM baton.bulk WHERE n > 4)"));
	assert_true(does(pg, "DELETE FROM baton.bulk WHERE first = (SELECT max(first) FROM t)"));
	assert_true(does(
		pg, "INSERT INTO baton.bulk(first, last, has, put_at, queue, pool, rank, n, flags, "
		    "payload) SELECT min(seq), max(seq), sum(1::bigint << (seq - low)::int), "
		    "min(put_at), min(queue), min(pool), min(rank), count(*), min(flags), "
		    "string_agg(set_byte('\\x00', 0, (seq - low)::int) || int4send(length(bytes)) "
		    "|| bytes, '' ORDER BY seq) FROM (SELECT *, min(seq) OVER (PARTITION BY other) "
		    "AS low FROM t) x GROUP BY other"));
	assert_true(does(pg, "COMMIT"));
	uint64_t last = 0;
	char lane[64], text[64];
	for (int i = 0; i < 20; i++) {
		uint64_t number = take_one(b->store, lane, text);
		assert_true(number > last);
		last = number;
	}
	assert_none(b->store);
	PQfinish(pg);
}

static const struct {
	const char *sql, *sentence;
} harms[] = {
	{"INSERT INTO baton.batch(seq, put_at, fence, queue, shard, pool, attempts, state, rank, "
         "flags, head, line, cancel, holds, blocks, lane, payload) SELECT 1, 1, 0, q.id, 0, 0, 0, "
         "1, 9, 0, true, true, false, false, false, chr(1) || 'k399', '' FROM baton.queue q",
         "batches that stand in a row with others have a key that somebody else has"},
	{"UPDATE baton.bulk SET keys[2] = keys[1]",
         "batches that stand in a row with others have a key that somebody else has"},
	{"UPDATE baton.bulk SET keys = keys[2:]",
         "rows of several batches have keys that are none, or not one for each"},
	{"UPDATE baton.bulk SET keys[1] = 'x'",
         "rows of several batches have keys that are none, or not one for each"},
	{"UPDATE baton.bulk SET keys = array_fill(NULL::text, ARRAY[10])",
         "rows of several batches have keys that are none, or not one for each"},
	{"DELETE FROM baton.lone WHERE line = chr(1) || 'k5'",
         "rows of several batches have keys that are not found"},
	{"UPDATE baton.young SET seq = 100000",
         "rows of several batches have keys that are not found"},
	{"DELETE FROM baton.bulk", "keys are remembered of rows that are gone"},
	{"UPDATE baton.lone SET line = line || 'x'", "keys are remembered of rows that are gone"},
	{"UPDATE baton.young SET lone = lone + 1",
         "queues have another number of such keys than is counted"},
	{"UPDATE baton.queue SET key_ttl = 5",
         "rows of several batches have keys, which those of their queue cannot"},
	{"UPDATE baton.queue SET guests = true",
         "rows of several batches have keys, which those of their queue cannot"},
};

static void what_does_not_fit_together_is_found(void **state)
{
	struct bench *b = *state;
	PGconn *pg = user_of(b);
	char sql[300];
	for (int i = 0; i < CALLS; i++)
		put_keyed(b->store, "k", i * FEW);
	for (size_t i = 0; i < sizeof harms / sizeof harms[0]; i++) {
		snprintf(sql, sizeof sql,
		         "SELECT 1 / (SELECT count(*) FROM baton.faults() WHERE sentence = '%s')",
		         harms[i].sentence);
		assert_true(does(pg, "BEGIN"));
		assert_true(does(pg, harms[i].sql));
		if (!does(pg, sql))
			fail_msg("not found: %s", harms[i].sql);
		assert_true(does(pg, "ROLLBACK"));
		assert_false(does(pg, sql));
	}
	PQfinish(pg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SERVED_TEST(they_stand_together_and_leave_nothing_behind),
		SERVED_TEST(one_alone_stands_as_others_do),
		SERVED_TEST(a_users_put_waits_for_one_that_was_claimed_before_it_was_committed),
		SERVED_TEST(a_users_put_waits_for_those_that_were_put_before_it_was_committed),
		SERVED_TEST(a_put_waits_for_a_users_that_was_committed_before_it),
		SERVED_TEST(another_store_sees_who_has_a_key),
		SERVED_TEST(the_keys_of_old_rows_are_written_down_and_forgotten),
		SERVED_TEST(the_keys_of_a_row_far_behind_are_written_down),
		SERVED_TEST(a_row_that_begins_with_one_without_a_key_is_found),
		SERVED_TEST(whoever_is_killed_leaves_every_key_to_others),
		SERVED_TEST(of_rows_that_overlap_the_first_comes_first),
		SERVED_TEST(what_does_not_fit_together_is_found),
	};
	return served_main("together", tests, sizeof tests / sizeof tests[0]);
}
