/* What only a store in PostgreSQL can run into: other people's transactions, a server that ends,
 * rights that are missing. */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <baton/lease.h>
#include <baton/queue.h>
#include <baton/shard.h>
#include <baton/store.h>
#include <baton/work.h>

#include "served.h"
#include "store/postgres/postgres.h"
#include "support/rng.h"
#include "support/soak.h"

static void a_lane_is_in_the_order_of_commits_whoever_put_first(void **state)
{
	struct bench *b = *state;
	PGconn *user = user_of(b);
	assert_true(does(user, "BEGIN"));
	assert_true(does(user, "SELECT baton.put('q', 'slow', 'x')"));
	assert_int_equal(put_into(b->store, "x", "quick"), BATON_OK);
	assert_int_equal(put_into(b->store, "y", "elsewhere"), BATON_OK);
	assert_true(does(user, "COMMIT"));
	PQfinish(user);
	assert_next(b, "quick");
	assert_next(b, "elsewhere");
	assert_next(b, "slow");
}

static void two_who_put_into_two_lanes_the_other_way_round_do_not_stop_each_other(void **state)
{
	struct bench *b = *state;
	PGconn *one = user_of(b), *two = user_of(b);
	assert_true(does(one, "BEGIN") && does(two, "BEGIN"));
	assert_true(does(one, "SELECT baton.put('q', '1', 'x')"));
	assert_true(does(two, "SELECT baton.put('q', '2', 'y')"));
	assert_true(does(one, "SELECT baton.put('q', '3', 'y')"));
	assert_true(does(two, "SELECT baton.put('q', '4', 'x')"));
	assert_true(does(two, "COMMIT"));
	assert_true(does(one, "COMMIT"));
	PQfinish(one);
	PQfinish(two);
	assert_next(b, "2");
	assert_next(b, "4");
	assert_next(b, "1");
	assert_next(b, "3");
}

static void what_a_user_puts_is_there_if_he_commits(void **state)
{
	struct bench *b = *state;
	char lane[64], text[64];
	PGconn *user = user_of(b);
	assert_true(does(user, "BEGIN"));
	assert_true(does(user, "SELECT baton.put('q', 'never', 'x')"));
	assert_true(does(user, "ROLLBACK"));
	assert_false(does(user, "SELECT baton.put('q', 'bad', 'x', '{\"colour\": 1}')"));
	assert_false(does(user, "SELECT baton.put('a/b', 'bad')"));
	assert_true(does(user, "SELECT baton.put_many('q', ARRAY['1', '2'], 'x')"));
	PQfinish(user);
	assert_next(b, "1");
	assert_next(b, "2");
	assert_int_equal(take_one(b->store, lane, text), 0);
}

static void a_queue_that_a_user_makes_is_as_any_other(void **state)
{
	struct bench *b = *state;
	const struct baton_queue_policy p = baton_queue_policy_default();
	struct baton_queue_info info;
	cluster_run(b->where, "SELECT baton.put('q', 'x', 'lane of it')");
	assert_int_equal(baton_queue_get(b->store, BATON_STR("q"), &info), BATON_OK);
	assert_memory_equal(&info.policy.retry, &p.retry, sizeof p.retry);
	assert_memory_equal(&info.policy.retry_lane, &p.retry_lane, sizeof p.retry_lane);
	assert_int_equal(info.policy.shards, p.shards);
	assert_int_equal(info.policy.payload_max, p.payload_max);
	assert_int_equal(info.policy.dedupe.ns, p.dedupe.ns);
	assert_int_equal(info.policy.on_retry, p.on_retry);
	assert_int_equal(info.policy.on_dead, p.on_dead);
	assert_int_equal(info.policy.mode, p.mode);
	/* The same lock and the same shard as a library that puts into that lane. */
	assert_int_equal(put_into(b->store, "lane of it", "y"), BATON_OK);
	assert_int_equal(cluster_number(b->where, "SELECT count(DISTINCT shard) FROM baton.batch"),
	                 1);
	cluster_run(b->where, "DELETE FROM baton.queue WHERE name = 'other'");
	assert_int_equal(put_into(b->store, "z", "z"), BATON_OK);
	assert_int_equal(cluster_number(b->where, "SELECT count(*) FROM baton.queue "
	                                          "WHERE stripe <> baton.stripe(name)"),
	                 0);
}

static void a_user_puts_with_a_key(void **state)
{
	struct bench *b = *state;
	struct baton_work_claims *claims = NULL;
	const struct baton_work_ask ask = {.queue = BATON_STR("q"), .claims = 9, .max = 9};
	const char *put = "SELECT baton.put('q', 'x', NULL, '{\"key\": \"k\"}')";
	PGconn *user = user_of(b);
	assert_true(does(user, put));
	assert_true(does(user, put));
	assert_false(does(user, "SELECT baton.put('q', 'x', NULL, '{\"key\": \"\"}')"));
	PQfinish(user);
	assert_int_equal(cluster_number(b->where, "SELECT count(*) FROM baton.jobs "
	                                          "WHERE key = 'k' AND lane IS NULL"),
	                 2);
	assert_int_equal(baton_work_claim(b->store, &ask, &claims), BATON_OK);
	assert_int_equal(claims->count, 1);
	assert_int_equal(claims->claims[0].key.len, 1);
	baton_work_claims_free(claims);
	/* The same shard as a lane of that name. */
	assert_int_equal(put_into(b->store, "k", "y"), BATON_OK);
	assert_int_equal(cluster_number(b->where, "SELECT count(DISTINCT shard) FROM baton.batch"),
	                 1);
}

static struct baton_work_claims *claim_all(struct baton_store *store)
{
	const struct baton_work_ask ask = {.queue = BATON_STR("q"), .claims = 9, .max = 9};
	struct baton_work_claims *claims = NULL;
	assert_int_equal(baton_work_claim(store, &ask, &claims), BATON_OK);
	return claims;
}

static void a_user_puts_completes_and_cancels_with_a_lane_and_a_key(void **state)
{
	struct bench *b = *state;
	char sql[160], token[33] = "";
	PGconn *user = user_of(b);
	assert_true(does(user, "BEGIN"));
	assert_true(does(user, "SELECT baton.put('q', 'x', 'a', '{\"key\": \"k\"}')"));
	assert_true(does(user, "SELECT baton.put('q', 'x', 'b', '{\"key\": \"k\"}')"));
	assert_true(does(user, "SELECT baton.put('q', 'x', 'c', '{\"key\": \"k\"}')"));
	assert_true(does(user, "COMMIT"));
	assert_int_equal(cluster_number(b->where, "SELECT count(*) FROM baton.jobs "
	                                          "WHERE key = 'k' AND lane IN ('a', 'b', 'c')"),
	                 3);
	struct baton_work_claims *claims = claim_all(b->store);
	assert_int_equal(claims->count, 1);
	assert_true(baton_str_equal(claims->claims[0].lane, BATON_STR("a")));
	assert_true(baton_str_equal(claims->claims[0].key, BATON_STR("k")));
	assert_null(claim_all(b->store));
	for (int i = 0; i < 16; i++)
		snprintf(token + 2 * i, 3, "%02x", claims->claims[0].proof.token.bytes[i]);
	snprintf(sql, sizeof sql, "SELECT baton.complete('%s', '%s')", claims->claims[0].proof.id,
	         token);
	assert_true(does(user, sql));
	baton_work_claims_free(claims);
	assert_true(does(user, "SELECT baton.cancel(id) FROM baton.jobs WHERE lane = 'b'"));
	claims = claim_all(b->store);
	assert_int_equal(claims->count, 1);
	assert_true(baton_str_equal(claims->claims[0].lane, BATON_STR("c")));
	baton_work_claims_free(claims);
	PQfinish(user);
	assert_int_equal(cluster_number(b->where, "SELECT count(*) FROM baton.faults()"), 0);
}

static void a_lane_and_a_key_of_a_user_are_refused_where_the_policy_cannot_be_kept(void **state)
{
	struct bench *b = *state;
	struct baton_queue_policy p = baton_queue_policy_default();
	const char *put = "SELECT baton.put('q', 'x', 'a', '{\"key\": \"k\"}')";
	PGconn *user = user_of(b);
	p.key_fair = BATON_KEY_FAIR_ON;
	assert_int_equal(baton_queue_set(b->store, BATON_STR("q"), &p), BATON_OK);
	assert_false(does(user, put));
	p.key_fair = BATON_KEY_FAIR_OFF;
	assert_int_equal(baton_queue_set(b->store, BATON_STR("q"), &p), BATON_OK);
	assert_true(does(user, "BEGIN"));
	assert_true(does(user, put));
	p.on_conflict = BATON_CONFLICT_SKIP; /* between his put and his commit */
	assert_int_equal(baton_queue_set(b->store, BATON_STR("q"), &p), BATON_OK);
	assert_false(does(user, "COMMIT"));
	p.on_conflict = BATON_CONFLICT_WAIT;
	assert_int_equal(baton_queue_set(b->store, BATON_STR("q"), &p), BATON_OK);
	assert_true(does(user, put));
	p.key_fair = BATON_KEY_FAIR_ON;
	assert_int_equal(baton_queue_set(b->store, BATON_STR("q"), &p), BATON_INVALID);
	PQfinish(user);
}

/* A store as an earlier version made it, with something put into it. */
static void make_past(const char *where, int version, const char *lane)
{
	char text[700];
	for (int step = 1; step <= version; step++)
		cluster_run(where, baton_store_tables(step));
	snprintf(text, sizeof text,
	         "INSERT INTO baton.state(one, version, name, made, runner, place) "
	         "VALUES(1, %d, decode(md5('x'), 'hex'), 0, 0, '')",
	         version);
	cluster_run(where, text);
	cluster_run(where,
	            "INSERT INTO baton.queue(name, stripe, mode, shards, paused, payload_max, "
	            "waiting_max, attempts, backoff, base, cap, lane_attempts, lane_backoff, "
	            "lane_base, lane_cap, on_retry, on_dead, dedupe, keep, ready, delayed, "
	            "retrying, claimed, dead, kept, done, failed) SELECT 'q', 64 + (1023 & "
	            "('x' || left(encode(sha256('q'), 'hex'), 4))::bit(16)::int), 1, 16, false, "
	            "1048576, 0, 20, 1, 1000000000, 3600000000000, 5, 1, 1000000000, "
	            "30000000000, 1, 1, 86400000000000, 0, 2, 0, 0, 0, 0, 0, 0, 0");
	snprintf(text, sizeof text,
	         "INSERT INTO baton.batch(seq, put_at, fence, queue, shard, pool, attempts, state, "
	         "rank, flags, head, line, cancel, holds, blocks, lane, payload) "
	         "SELECT nextval('baton.seq'), 1, 0, 1, 0, 0, 0, 1, 9, 0, i = 1, true, false, "
	         "false, false, %s, i::text::bytea FROM generate_series(1, 2) i",
	         lane);
	cluster_run(where, text);
}

static void what_was_put_before_there_were_keys_is_there(void **state)
{
	(void)state;
	struct bench old = {.store = NULL};
	cluster_database(served_cluster(), old.where, sizeof old.where);
	make_past(old.where, 3, "'x'");
	old.store = open_as(old.where);
	assert_next(&old, "1");
	assert_next(&old, "2");
	struct baton_queue_info info;
	assert_int_equal(baton_queue_get(old.store, BATON_STR("q"), &info), BATON_OK);
	assert_int_equal(info.policy.key_limit, 1);
	assert_int_equal(info.policy.hold_on_retry, BATON_HOLD_KEEP);
	uint64_t faults = 1;
	assert_int_equal(baton_store_check(old.store, NULL, NULL, &faults), BATON_OK);
	assert_int_equal(faults, 0);
	baton_store_close(old.store);
	cluster_drop(served_cluster(), old.where);
}

/* One as the version before work could give way to others of its key made it. */
static void what_was_put_before_there_were_conflicts_is_there(void **state)
{
	(void)state;
	struct bench old = {.store = NULL};
	struct baton_queue_info info;
	uint64_t faults = 1;
	cluster_database(served_cluster(), old.where, sizeof old.where);
	cluster_run(old.where, "DROP SCHEMA IF EXISTS baton CASCADE");
	make_past(old.where, 6, "chr(1) || 'k'");
	old.store = open_as(old.where);
	assert_int_equal(baton_queue_get(old.store, BATON_STR("q"), &info), BATON_OK);
	assert_int_equal(info.policy.on_conflict, BATON_CONFLICT_WAIT);
	assert_int_equal(info.policy.key_waiting_max, 0);
	assert_next(&old, "1");
	assert_next(&old, "2");
	assert_int_equal(baton_store_check(old.store, NULL, NULL, &faults), BATON_OK);
	assert_int_equal(faults, 0);
	baton_store_close(old.store);
	cluster_drop(served_cluster(), old.where);
}

static void conflict_is(struct baton_store *store, enum baton_on_conflict on_conflict,
                        uint32_t waiting_max)
{
	const struct baton_queue_policy p = {.on_conflict = on_conflict,
	                                     .key_waiting_max = waiting_max};
	assert_int_equal(baton_queue_change(store, BATON_STR("q"), &p,
	                                    BATON_POLICY_ON_CONFLICT |
	                                            BATON_POLICY_KEY_WAITING_MAX),
	                 BATON_OK);
}

static void what_a_user_puts_gives_way_to_others_of_its_key(void **state)
{
	struct bench *b = *state;
	const char *put = "SELECT baton.put('q', 'x', NULL, '{\"key\": \"k\"}')";
	const char *waiting = "SELECT count(*) FROM baton.jobs WHERE state = 'ready'";
	const char *given = "SELECT count(*) FROM baton.jobs WHERE state = 'skipped' "
			    "AND skipped_for = 1";
	PGconn *user = user_of(b);
	conflict_is(b->store, BATON_CONFLICT_SKIP, 0);
	assert_true(does(user, "SELECT baton.put('q', 'x', NULL, '{\"key\": \"k\"}'), "
	                       "baton.put('q', 'x', NULL, '{\"key\": \"k\"}')"));
	assert_true(does(user, put));
	assert_int_equal(cluster_number(b->where, waiting), 1);
	assert_int_equal(cluster_number(b->where, given), 2);
	conflict_is(b->store, BATON_CONFLICT_LATEST, 0);
	assert_true(does(user, put));
	assert_true(does(user, put));
	assert_true(does(user, "SELECT baton.put('q', 'x', NULL, '{\"key\": \"l\"}')"));
	assert_true(does(user, "SELECT baton.put('q', 'x')"));
	assert_int_equal(cluster_number(b->where, waiting), 4);
	assert_int_equal(cluster_number(b->where, "SELECT count(*) FROM baton.jobs "
	                                          "WHERE state = 'skipped'"),
	                 3);
	conflict_is(b->store, BATON_CONFLICT_WAIT, 2);
	assert_false(does(user, put));
	assert_non_null(strstr(PQerrorMessage(user), "key 'k' of queue 'q' has as many jobs "
	                                             "waiting as its key_waiting_max allows, 2"));
	assert_true(does(user, "SELECT baton.put('q', 'x', NULL, '{\"key\": \"l\"}')"));
	PQfinish(user);
}

static void what_a_user_puts_is_bounded_with_what_waits_in_lanes(void **state)
{
	struct bench *b = *state;
	const char *alone = "SELECT baton.put('q', 'x', NULL, '{\"key\": \"k\"}')";
	const char *lane = "SELECT baton.put('q', 'x', 'a', '{\"key\": \"k\"}')";
	const char *both = "SELECT baton.put('q', 'x', NULL, '{\"keys\": [\"k\", \"l\"]}')";
	PGconn *user = user_of(b);
	uint64_t faults = 1;
	conflict_is(b->store, BATON_CONFLICT_WAIT, 2);
	assert_true(does(user, lane));
	assert_true(does(user, lane));
	const char *const puts[] = {alone, lane, both};
	for (size_t i = 0; i < 3; i++) {
		assert_false(does(user, puts[i]));
		assert_non_null(
			strstr(PQerrorMessage(user), "key 'k' of queue 'q' has as many jobs "));
	}
	assert_true(does(user, "SELECT baton.cancel(1)"));
	assert_true(does(user, both));
	assert_false(does(user, alone));
	assert_true(does(user, "SELECT baton.put('q', 'x', NULL, '{\"key\": \"l\"}')"));
	assert_false(does(user, "SELECT baton.put('q', 'x', 'b', '{\"key\": \"l\"}')"));
	assert_int_equal(baton_store_check(b->store, NULL, NULL, &faults), BATON_OK);
	assert_int_equal(faults, 0);
	PQfinish(user);
}

/* Threads that put into a few lanes, each through a store of its own, and those after the first
 * ones in users' own transactions, which stay open while others commit. */
#define WRITERS 6
#define STORES 3
#define PUTS 150 /* of each, in a long run */
#define LANES 3

/* A moment is a number; each put has that at which it, or its commit, was begun, and that at which
 * it was done. */
struct crew {
	_Atomic unsigned clock;
	_Atomic unsigned stores; /* that still put */
	pthread_mutex_t mu;
	pthread_cond_t passed; /* a moment has, or a store is done */
	unsigned puts;         /* of each writer */
	_Atomic unsigned begun[WRITERS * PUTS + 1], ended[WRITERS * PUTS + 1];
};

struct writer {
	struct bench *b;
	struct crew *crew;
	unsigned number;
	pthread_t thread;
};

static void put_two(struct baton_store *store, const char *text, const unsigned lanes[2])
{
	struct baton_put puts[2];
	char names[2][8];
	const struct baton_str payload = baton_str_z(text);
	struct baton_batch batches[2];
	memset(batches, 0, sizeof batches);
	for (int i = 0; i < 2; i++) {
		snprintf(names[i], sizeof names[i], "%u", lanes[i]);
		batches[i].queue = BATON_STR("q");
		batches[i].lane = baton_str_z(names[i]);
		batches[i].payloads = &payload;
		batches[i].count = 1;
	}
	assert_int_equal(baton_work_put(store, batches, 2, puts), BATON_OK);
}

static unsigned moment(struct crew *crew)
{
	pthread_mutex_lock(&crew->mu);
	unsigned now = atomic_fetch_add(&crew->clock, 1);
	pthread_cond_broadcast(&crew->passed);
	pthread_mutex_unlock(&crew->mu);
	return now;
}

static void store_is_done(struct crew *crew)
{
	pthread_mutex_lock(&crew->mu);
	atomic_fetch_sub(&crew->stores, 1);
	pthread_cond_broadcast(&crew->passed);
	pthread_mutex_unlock(&crew->mu);
}

/* Until others have done something. */
static void stay_open(struct crew *crew, unsigned moments)
{
	const unsigned since = atomic_load(&crew->clock);
	pthread_mutex_lock(&crew->mu);
	while (atomic_load(&crew->clock) < since + moments && atomic_load(&crew->stores) > 0)
		pthread_cond_wait(&crew->passed, &crew->mu);
	pthread_mutex_unlock(&crew->mu);
}

static void stage_two(PGconn *user, const char *text, const unsigned lanes[2])
{
	char sql[160];
	snprintf(sql, sizeof sql,
	         "BEGIN; SELECT baton.put('q', '%s', '%u'); SELECT baton.put('q', '%s', '%u')",
	         text, lanes[0], text, lanes[1]);
	assert_true(does(user, sql));
}

static void *write_many(void *arg)
{
	struct writer *w = arg;
	struct crew *crew = w->crew;
	const bool stages = w->number >= STORES;
	struct baton_store *store = stages ? NULL : open_as(w->b->where);
	PGconn *user = stages ? user_of(w->b) : NULL;
	struct rng rng = rng_seed(w->number + 1);
	for (unsigned i = 0; i < crew->puts; i++) {
		char text[16];
		const unsigned id = 1 + w->number * crew->puts + i;
		const unsigned lanes[2] = {(unsigned)(rng_next(&rng) % LANES),
		                           (unsigned)(rng_next(&rng) % LANES)};
		snprintf(text, sizeof text, "%u", id);
		if (stages) {
			stage_two(user, text, lanes);
			stay_open(crew, (unsigned)(rng_next(&rng) % 20));
		}
		atomic_store(&crew->begun[id], moment(crew));
		if (stages)
			assert_true(does(user, "COMMIT"));
		else
			put_two(store, text, lanes);
		atomic_store(&crew->ended[id], moment(crew));
	}
	if (!stages)
		store_is_done(crew);
	baton_store_close(store);
	PQfinish(user);
	return NULL;
}

/* What was committed before another was begun comes before it in its lane. */
static void assert_order(const struct crew *crew, unsigned latest[LANES], const char *lane,
                         const char *text)
{
	unsigned at = (unsigned)atoi(lane), id = (unsigned)strtoul(text, NULL, 10);
	unsigned begun = atomic_load(&crew->begun[id]);
	if (atomic_load(&crew->ended[id]) < latest[at])
		fail_msg("lane %s gave %u, which ended at %u, after %u", lane, id,
		         (unsigned)crew->ended[id], latest[at]);
	latest[at] = begun > latest[at] ? begun : latest[at];
}

/* Takes what is there while others put. The numbers of a lane only ever grow: none that was given
 * to an earlier transaction turns up after a later one was taken. */
static unsigned take_all(struct bench *b, struct crew *crew)
{
	unsigned count = 0, latest[LANES] = {0};
	bool done = false;
	uint64_t last[LANES] = {0}, seq;
	char lane[64], text[64];
	for (;;) {
		seq = take_one(b->store, lane, text);
		if (seq == 0 && done)
			return count;
		done = atomic_load(&crew->clock) == 1 + 2 * WRITERS * crew->puts;
		if (seq == 0)
			continue;
		unsigned at = (unsigned)atoi(lane);
		if (seq < last[at])
			fail_msg("lane %s gave %" PRIu64 " after %" PRIu64, lane, seq, last[at]);
		last[at] = seq;
		assert_order(crew, latest, lane, text);
		count++;
	}
}

static void concurrent_writers_lose_nothing_and_keep_the_order_of_their_lanes(void **state)
{
	struct bench *b = *state;
	struct writer w[WRITERS];
	static struct crew crew = {.mu = PTHREAD_MUTEX_INITIALIZER,
	                           .passed = PTHREAD_COND_INITIALIZER};
	memset((void *)crew.ended, 0xff, sizeof crew.ended); /* not yet */
	assert_int_equal(put_into(b->store, "0", "0"), BATON_OK);
	atomic_store(&crew.clock, 1);
	atomic_store(&crew.stores, STORES);
	crew.puts = soak_scale(25, PUTS);
	for (unsigned i = 0; i < WRITERS; i++) {
		w[i] = (struct writer){.b = b, .crew = &crew, .number = i};
		assert_int_equal(pthread_create(&w[i].thread, NULL, write_many, &w[i]), 0);
	}
	assert_int_equal(take_all(b, &crew), 1 + WRITERS * crew.puts * 2);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(w[i].thread, NULL);
}

static void assert_says(const char *words)
{
	if (!strstr(baton_err_detail(), words))
		fail_msg("\"%s\" is not in: %s", words, baton_err_detail());
}

static long long stored_as(const struct bench *b, const char *is)
{
	char sql[100];
	snprintf(sql, sizeof sql, "SELECT count(*) FROM baton.jobs WHERE state = '%s'", is);
	return cluster_number(b->where, sql);
}

/* Puts so many into two lanes in turn, and some of them for later. */
static enum baton_err put_load(struct baton_store *store, size_t count)
{
	static struct baton_batch batches[2000];
	static struct baton_put puts[2000];
	static char texts[2000][8];
	static struct baton_str payloads[2000];
	for (size_t i = 0; i < count; i++) {
		snprintf(texts[i], sizeof texts[i], "%zu", i);
		payloads[i] = baton_str_z(texts[i]);
		batches[i] = (struct baton_batch){.queue = BATON_STR("q"),
		                                  .lane = i % 2 ? BATON_STR("1") : BATON_STR("0"),
		                                  .payloads = &payloads[i],
		                                  .count = 1};
		if (i % 500 == 499)
			batches[i].delay = baton_duration_s(3600);
	}
	return baton_work_put(store, batches, count, puts);
}

static void what_is_loaded_is_copied_and_comes_out_in_order(void **state)
{
	struct bench *b = *state;
	char lane[64], text[64];
	int next[2] = {0, 1};
	assert_int_equal(put_into(b->store, "x", "first"), BATON_OK);
	assert_next(b, "first");
	cluster_run(
		b->where,
		"CREATE TABLE public.copied(n int); CREATE FUNCTION public.note() RETURNS trigger "
		"LANGUAGE plpgsql AS $$ BEGIN IF current_query() LIKE 'COPY%' THEN "
		"INSERT INTO public.copied VALUES (1); END IF; RETURN NULL; END $$; "
		"CREATE TRIGGER note AFTER INSERT ON baton.batch "
		"FOR EACH STATEMENT EXECUTE FUNCTION public.note()");
	assert_int_equal(put_load(b->store, 20), BATON_OK);
	assert_int_equal(cluster_number(b->where, "SELECT count(*) FROM public.copied"), 0);
	for (int i = 0; i < 20; i++)
		assert_true(take_one(b->store, lane, text) > 0);
	assert_int_equal(put_load(b->store, 2000), BATON_OK);
	assert_int_equal(cluster_number(b->where, "SELECT count(*) FROM public.copied"), 1);
	assert_int_equal(stored_as(b, "delayed"), 4);
	assert_int_equal(stored_as(b, "ready"), 1996);
	for (int i = 0; i < 10; i++) {
		assert_true(take_one(b->store, lane, text) > 0);
		assert_int_equal(atoi(text), next[atoi(lane)]);
		next[atoi(lane)] += 2;
	}
	/* All of it or nothing. */
	cluster_run(b->where,
	            "DROP TRIGGER note ON baton.batch; DROP FUNCTION public.note(); "
	            "DROP TABLE public.copied; "
	            "ALTER TABLE baton.batch ADD CONSTRAINT few CHECK (payload <> '1777') "
	            "NOT VALID");
	assert_int_equal(put_load(b->store, 2000), BATON_STORAGE);
	assert_says("few");
	assert_int_equal(stored_as(b, "ready"), 1986);
	cluster_run(b->where, "ALTER TABLE baton.batch DROP CONSTRAINT few");
	assert_int_equal(put_load(b->store, 1999), BATON_OK);
	assert_int_equal(stored_as(b, "ready"), 1986 + 1996);
}

static const struct baton_work_claim *claim_one(struct baton_store *store,
                                                struct baton_work_claims **ret)
{
	const struct baton_work_ask ask = {.queue = BATON_STR("q"),
	                                   .claims = 1,
	                                   .max = 1,
	                                   .ttl = baton_duration_ms(1)};
	*ret = NULL;
	assert_int_equal(baton_work_claim(store, &ask, ret), BATON_OK);
	return *ret ? &(*ret)->claims[0] : NULL;
}

/* As long as it takes the server's clock to go on. */
static const struct baton_work_claim *claim_next(struct baton_store *store,
                                                 struct baton_work_claims **ret)
{
	const struct baton_work_claim *c = claim_one(store, ret);
	while (!c)
		c = claim_one(store, ret);
	return c;
}

static void a_completion_in_a_users_transaction_is_refused_once_another_has_the_work(void **state)
{
	struct bench *b = *state;
	struct baton_work_claims *first, *second;
	char token[33], sql[200];
	PGconn *user = user_of(b);
	assert_int_equal(put_into(b->store, "x", "work"), BATON_OK);
	const struct baton_work_claim *c = claim_one(b->store, &first);
	assert_non_null(c);
	snprintf(sql, sizeof sql, "SELECT baton.complete('%s', '%s')", c->proof.id,
	         baton_id_print(&c->proof.token, token));
	assert_true(does(user, "BEGIN"));
	assert_true(does(user, sql));
	/* Neither the claim nor its lane waits for the user. */
	const struct baton_work_claim *other = claim_next(b->store, &second);
	assert_true(other->fence.v > c->fence.v);
	assert_false(does(user, "COMMIT"));
	/* The same without anybody in between. */
	snprintf(sql, sizeof sql, "SELECT baton.complete('%s', '%s')", other->proof.id,
	         baton_id_print(&other->proof.token, token));
	assert_true(does(user, sql));
	assert_false(does(user, sql));
	assert_int_equal(cluster_number(b->where, "SELECT count(*) FROM baton.batch"), 0);
	baton_work_claims_free(first);
	baton_work_claims_free(second);
	PQfinish(user);
}

static void who_may_only_put_can_do_nothing_else(void **state)
{
	struct bench *b = *state;
	PGconn *user = user_of(b);
	assert_true(does(user, "SET ROLE baton_put"));
	assert_true(does(user, "SELECT baton.put('q', 'x', 'y')"));
	static const char *const others[] = {
		"SELECT * FROM baton.jobs",
		"SELECT * FROM baton.batch",
		"DELETE FROM baton.claim",
		"INSERT INTO baton.staged(id, xid, what, queue) VALUES (1, '1', 'cancel', 'q')",
		"SELECT baton.cancel(1)",
		"SELECT baton.complete('1-1', '00000000000000000000000000000000')",
		"SELECT baton.admit('s', 1)",
		"SELECT baton.ring('')",
		"SELECT * FROM baton.sleeper",
		"SELECT baton.tidy(1, 1)",
		"SELECT nextval('baton.seq')",
		"CREATE TABLE baton.t(x int)",
	};
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
		if (does(user, others[i]))
			fail_msg("baton_put may do this: %s", others[i]);
	}
	PQfinish(user);
	assert_next(b, "x");
}

static void a_busy_lock_is_waited_for_with_a_bound(void **state)
{
	struct bench *b = *state;
	struct baton_store *store = NULL;
	const struct baton_store_options options = {.where = baton_str_z(b->where),
	                                            .patience = baton_duration_ms(500)};
	PGconn *user = user_of(b);
	assert_int_equal(baton_store_open(&options, &store), BATON_OK);
	assert_true(does(user, "SELECT pg_advisory_lock(1650553967, baton.stripe('q'))"));
	assert_int_equal(put_into(store, "x", "y"), BATON_BUSY);
	assert_true(does(user, "SELECT pg_advisory_unlock_all()"));
	assert_int_equal(put_into(store, "x", "y"), BATON_OK);
	baton_store_close(store);
	PQfinish(user);
}

static void a_lost_connection_is_made_again(void **state)
{
	struct bench *b = *state;
	assert_int_equal(put_into(b->store, "x", "1"), BATON_OK);
	cluster_run(b->where, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
	                      "WHERE datname = current_database() AND pid <> pg_backend_pid()");
	assert_int_equal(put_into(b->store, "x", "2"), BATON_OK);
	assert_next(b, "1");
	assert_next(b, "2");
}

/* What the server said when it ended the transaction is read before the write that fails, and is
 * known all the same: so it is known that nothing was done. */
static void who_was_ended_is_told_so_whatever_he_sends(void **state)
{
	enum {
		LARGE = 4000000
	};
	struct bench *b = *state;
	struct conn c;
	char *text = malloc(LARGE);
	memset(text, 'x', LARGE);
	conn_init(&c, baton_alloc_libc(), ((struct pg_store *)b->store)->info, b->where);
	for (size_t size = 1; size <= LARGE; size = size * LARGE) {
		assert_int_equal(conn_need(&c), BATON_OK);
		conn_begin(&c, 0);
		assert_int_equal(conn_round(&c), BATON_OK);
		assert_int_equal(
			cluster_number(b->where,
		                       "SELECT count(pg_terminate_backend(pid, 60000)) "
		                       "FROM pg_stat_activity WHERE state = 'idle in transaction'"),
			1);
		for (int i = 0; i < 3; i++) {
			struct args a;
			args_init(&a, baton_alloc_libc(), 4);
			arg_text(&a, 0, (struct baton_str){text, size});
			arg_text(&a, 1, (struct baton_str){text, size});
			arg_int(&a, 2, 0);
			arg_int(&a, 3, 1);
			conn_send(&c, SQL_LEASE_LIST, &a);
		}
		assert_int_equal(conn_commit(&c), BATON_STORAGE);
		assert_string_equal(c.state, "57P01");
		conn_rollback(&c);
	}
	conn_close(&c);
	free(text);
}

/* The connection ends in the middle of a commit. */
static void a_commit_that_was_not_made_has_failed(void **state)
{
	struct bench *b = *state;
	cluster_run(b->where,
	            "CREATE FUNCTION public.hit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
	            "PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$; "
	            "CREATE CONSTRAINT TRIGGER hit AFTER INSERT ON baton.batch DEFERRABLE "
	            "INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.hit()");
	assert_int_equal(put_into(b->store, "x", "1"), BATON_STORAGE);
	assert_int_equal(cluster_number(b->where, "SELECT count(*) FROM baton.batch"), 0);
	cluster_run(b->where, "DROP TRIGGER hit ON baton.batch; DROP FUNCTION public.hit()");
	assert_int_equal(put_into(b->store, "x", "2"), BATON_OK);
	assert_next(b, "2");
}

/* Ends the connection of whoever waits for a standby. */
static void *end_waiting(void *arg)
{
	const struct bench *b = arg;
	while (cluster_number(b->where, "SELECT count(pg_terminate_backend(pid)) "
	                                "FROM pg_stat_activity WHERE wait_event = 'SyncRep'") == 0)
		;
	return NULL;
}

/* Whether the server waits for a standby that is not there, and so does whoever commits; by then
 * the transaction is committed. */
static void wait_for_standby(const struct bench *b, bool on)
{
	cluster_run(b->where, on ? "ALTER SYSTEM SET synchronous_standby_names = 'nobody'"
	                         : "ALTER SYSTEM RESET synchronous_standby_names");
	cluster_run(b->where, "SELECT pg_reload_conf()");
	while ((cluster_number(b->where,
	                       "SELECT count(*) FROM pg_settings WHERE name = "
	                       "'synchronous_standby_names' AND setting = 'nobody'") > 0) != on)
		;
}

static void a_commit_that_was_made_though_its_answer_is_lost_has_succeeded(void **state)
{
	struct bench *b = *state;
	pthread_t thread;
	assert_int_equal(put_into(b->store, "x", "1"), BATON_OK);
	wait_for_standby(b, true);
	assert_int_equal(pthread_create(&thread, NULL, end_waiting, b), 0);
	enum baton_err e = put_into(b->store, "x", "2");
	pthread_join(thread, NULL);
	wait_for_standby(b, false);
	assert_int_equal(e, BATON_OK);
	assert_next(b, "1");
	assert_next(b, "2");
}

/* Ends the connection of whoever waits for a standby, and whoever connects next finds another
 * server, with other transactions: one that has the table under another number. */
static void *replace_server(void *arg)
{
	const struct bench *b = arg;
	PGconn *pg = user_of(b);
	assert_true(does(pg, "SET synchronous_commit = local"));
	while (cluster_number(b->where, "SELECT count(*) FROM pg_stat_activity "
	                                "WHERE wait_event = 'SyncRep'") == 0)
		;
	assert_true(PQsendQuery(pg, "BEGIN; LOCK TABLE baton.state IN ACCESS EXCLUSIVE MODE; "
	                            "CREATE TABLE public.state AS TABLE baton.state; "
	                            "ALTER TABLE baton.state RENAME TO old; "
	                            "CREATE TABLE baton.state (LIKE baton.old INCLUDING ALL); "
	                            "INSERT INTO baton.state SELECT * FROM public.state; "
	                            "GRANT ALL ON baton.state TO baton_runner, baton_operator; "
	                            "DROP TABLE baton.old, public.state; COMMIT"));
	while (cluster_number(b->where, "SELECT count(*) FROM pg_locks WHERE NOT granted "
	                                "AND mode = 'AccessExclusiveLock'") == 0)
		;
	end_waiting(arg);
	for (PGresult *r; (r = PQgetResult(pg));)
		PQclear(r);
	PQfinish(pg);
	wait_for_standby(b, false);
	return NULL;
}

/* The number of its transaction may be another one's there. */
static void what_another_server_says_of_a_commit_proves_nothing(void **state)
{
	struct bench *b = *state;
	pthread_t thread;
	assert_int_equal(put_into(b->store, "x", "1"), BATON_OK);
	wait_for_standby(b, true);
	assert_int_equal(pthread_create(&thread, NULL, replace_server, b), 0);
	enum baton_err e = put_into(b->store, "x", "2");
	pthread_join(thread, NULL);
	assert_int_equal(e, BATON_STORAGE);
	assert_says("nobody knows whether it was done");
	assert_next(b, "1");
	assert_next(b, "2");
}

static enum baton_err try_open(const char *where, bool existing)
{
	struct baton_store *store = NULL;
	const struct baton_store_options options = {.where = baton_str_z(where),
	                                            .existing = existing,
	                                            .patience = baton_duration_ms(200)};
	enum baton_err e = baton_store_open(&options, &store);
	baton_store_close(store);
	return e;
}

static void what_is_no_store_is_refused(void **state)
{
	struct bench *b = *state;
	char where[400];
	cluster_run(b->where, "UPDATE baton.state SET version = version + 1000");
	assert_int_equal(try_open(b->where, false), BATON_INVALID);
	assert_says("a newer baton has to open it");
	cluster_run(b->where, "UPDATE baton.state SET version = version - 1000");
	cluster_run(b->where, "ALTER TABLE baton.state RENAME TO statue");
	assert_int_equal(try_open(b->where, false), BATON_INVALID);
	assert_says("another program's");
	cluster_run(b->where, "ALTER TABLE baton.statue RENAME TO state");
	snprintf(where, sizeof where, "postgres:host=%s dbname=postgres user=baton",
	         served_cluster()->directory);
	assert_int_equal(try_open(where, true), BATON_NOT_FOUND);
	snprintf(where, sizeof where, "postgres:host=%s dbname=nowhere user=baton password=geheim",
	         served_cluster()->directory);
	assert_int_equal(try_open(where, false), BATON_STORAGE);
	assert_says("nowhere");
	assert_null(strstr(baton_err_detail(), "geheim"));
	assert_int_equal(try_open("postgres:pass word=geheim", false), BATON_INVALID);
	assert_null(strstr(baton_err_detail(), "geheim"));
	assert_int_equal(try_open("postgresql://u:geheim@[::1/x", false), BATON_INVALID);
	assert_null(strstr(baton_err_detail(), "geheim"));
}

static void missing_rights_and_read_only_servers_are_named(void **state)
{
	struct bench *b = *state;
	char where[400];
	cluster_run(b->where, "DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN");
	snprintf(where, sizeof where, "%s", b->where);
	char *user = strstr(where, "user=baton");
	memcpy(user, "user=guest", 10);
	assert_int_equal(try_open(where, true), BATON_STORAGE);
	assert_says("permission denied");
	cluster_run(b->where, "GRANT baton_runner TO guest");
	struct baton_store *store = open_as(where);
	assert_int_equal(put_into(store, "x", "1"), BATON_OK);
	cluster_run(b->where, "ALTER ROLE guest SET default_transaction_read_only = on; "
	                      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
	                      "WHERE usename = 'guest'");
	assert_int_equal(put_into(store, "x", "2"), BATON_STORAGE);
	assert_says("read-only");
	cluster_run(b->where, "ALTER ROLE guest CONNECTION LIMIT 0; "
	                      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
	                      "WHERE usename = 'guest'");
	assert_int_equal(put_into(store, "x", "3"), BATON_STORAGE);
	assert_says("too many connections");
	baton_store_close(store);
	assert_next(b, "1");
	cluster_run(b->where, "DROP OWNED BY guest; DROP ROLE guest");
}

/* All of them are somebody's, and those for the server's owners do not help others. */
static void a_server_without_connections_is_named_and_what_is_connected_goes_on(void **state)
{
	enum {
		MANY = 80
	};
	struct bench *b = *state;
	PGconn *all[MANY];
	int count = 0;
	char where[400];
	snprintf(where, sizeof where, "%s", b->where);
	memcpy(strstr(where, "user=baton"), "user=guest", 10);
	cluster_run(b->where, "CREATE ROLE guest LOGIN IN ROLE baton_runner");
	struct baton_store *store = open_as(where);
	assert_int_equal(put_into(store, "x", "1"), BATON_OK);
	for (; count < MANY; count++) {
		all[count] = PQconnectdb(where + strlen("postgres:"));
		if (PQstatus(all[count]) != CONNECTION_OK)
			break;
	}
	assert_int_equal(try_open(where, true), BATON_STORAGE);
	assert_says("cannot connect to store");
	assert_says("connection slots");
	assert_int_equal(put_into(store, "x", "2"), BATON_OK);
	for (int i = 0; i <= count && i < MANY; i++)
		PQfinish(all[i]);
	assert_int_equal(put_into(store, "x", "3"), BATON_OK);
	baton_store_close(store);
	for (int i = 1; i <= 3; i++) {
		char text[8];
		snprintf(text, sizeof text, "%d", i);
		assert_next(b, text);
	}
	cluster_run(b->where, "DROP OWNED BY guest; DROP ROLE guest");
}

static struct baton_lease hold(struct baton_store *store, const char *subject)
{
	struct baton_lease_answer answer;
	const struct baton_lease_ask ask = {.subject = baton_str_z(subject)};
	assert_int_equal(baton_lease_claim(store, &ask, 1, &answer), BATON_OK);
	assert_int_equal(answer.err, BATON_OK);
	return answer.lease;
}

static void in_a_copy_nothing_is_held_and_fences_are_higher(void **state)
{
	struct bench *b = *state;
	struct baton_lease lease = hold(b->store, "s");
	struct baton_lease_proof proof = {BATON_STR("s"), &lease};
	enum baton_err answer;
	cluster_run(b->where, "UPDATE baton.state SET place = '1.2.3/1'");
	struct baton_store *copy = open_as(b->where);
	assert_int_equal(baton_lease_renew(b->store, &proof, 1, baton_duration_s(10), false,
	                                   &answer),
	                 BATON_OK);
	assert_int_equal(answer, BATON_NOT_HELD);
	assert_true(hold(copy, "s").fence.v > lease.fence.v);
	baton_store_close(copy);
}

/* Claims one, and gives it back. */
static uint64_t claim_fence(struct baton_store *store, enum baton_err expected)
{
	struct baton_work_claims *claims = NULL;
	const struct baton_work_ask ask = {.queue = BATON_STR("q"), .claims = 1, .max = 1};
	assert_int_equal(baton_work_claim(store, &ask, &claims), expected);
	if (!claims)
		return 0;
	uint64_t fence = claims->claims[0].fence.v;
	const struct baton_work_end end = {.proof = claims->claims[0].proof, .how = BATON_ABANDON};
	struct baton_work_ended ended;
	assert_int_equal(baton_work_end(store, &end, 1, &ended), BATON_OK);
	baton_work_claims_free(claims);
	return fence;
}

/* Those who were there go on with another server, which may not know of the last fences. */
static void after_a_failover_fences_are_higher(void **state)
{
	struct bench *b = *state;
	enum baton_err answer;
	struct baton_lease before = hold(b->store, "s");
	struct baton_lease_proof proof = {BATON_STR("s"), &before};
	assert_int_equal(put_into(b->store, "x", "0"), BATON_OK);
	uint64_t claimed = claim_fence(b->store, BATON_OK);
	cluster_standby(served_cluster());
	assert_int_equal(put_into(b->store, "x", "1"), BATON_STORAGE);
	assert_says("read-only");
	claim_fence(b->store, BATON_STORAGE);
	cluster_run(b->where, "SELECT pg_promote()");
	assert_true(claim_fence(b->store, BATON_OK) > claimed + 1000);
	assert_int_equal(put_into(b->store, "x", "2"), BATON_OK);
	assert_int_equal(baton_lease_release(b->store, &proof, 1, &answer), BATON_OK);
	assert_int_equal(answer, BATON_OK);
	assert_true(hold(b->store, "s").fence.v > before.fence.v + 1000);
	assert_next(b, "0");
	assert_next(b, "2");
}

/* Longer than six times the patience. */
static void a_statement_that_takes_too_long_is_given_up(void **state)
{
	struct bench *b = *state;
	struct baton_store *store = NULL;
	const struct baton_store_options options = {.where = baton_str_z(b->where),
	                                            .patience = baton_duration_ms(50)};
	assert_int_equal(baton_store_open(&options, &store), BATON_OK);
	cluster_run(b->where,
	            "CREATE FUNCTION public.dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
	            "PERFORM pg_sleep(600); RETURN NULL; END $$; "
	            "CREATE TRIGGER dawdle AFTER INSERT ON baton.batch "
	            "FOR EACH ROW EXECUTE FUNCTION public.dawdle()");
	assert_int_equal(put_into(store, "x", "1"), BATON_BUSY);
	cluster_run(b->where, "DROP TRIGGER dawdle ON baton.batch; DROP FUNCTION public.dawdle()");
	assert_int_equal(put_into(store, "x", "2"), BATON_OK);
	assert_next(b, "2");
	baton_store_close(store);
}

/* What a statement that changes the table is allowed to take, in milliseconds. */
static long long allowed(const struct bench *b)
{
	return cluster_number(b->where, "SELECT coalesce(max(ms), -1) FROM public.allowed");
}

static void note_what_is_allowed(const struct bench *b, const char *table)
{
	char text[400];
	snprintf(text, sizeof text,
	         "DROP TABLE IF EXISTS public.allowed; CREATE TABLE public.allowed(ms bigint); "
	         "CREATE OR REPLACE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS $$ "
	         "BEGIN INSERT INTO public.allowed SELECT extract(epoch FROM "
	         "current_setting('statement_timeout')::interval) * 1000; RETURN NULL; END $$; "
	         "CREATE TRIGGER note AFTER INSERT OR UPDATE ON baton.%s "
	         "FOR EACH ROW EXECUTE FUNCTION public.note()",
	         table);
	cluster_run(b->where, text);
}

static void renewals_and_beats_may_take_a_third_of_their_ttl(void **state)
{
	struct bench *b = *state;
	struct baton_lease held = hold(b->store, "s");
	struct baton_lease_proof proof = {BATON_STR("s"), &held};
	const struct baton_runner_ask ask = {.name = BATON_STR("r"),
	                                     .weight = 1,
	                                     .ttl = baton_duration_s(12)};
	struct baton_runner *runner = NULL;
	enum baton_err answer;
	note_what_is_allowed(b, "lease");
	for (int s = 15; s > 0; s -= 12) {
		cluster_run(b->where, "TRUNCATE public.allowed");
		assert_int_equal(baton_lease_renew(b->store, &proof, 1, baton_duration_s(s), true,
		                                   &answer),
		                 BATON_OK);
		assert_int_equal(answer, BATON_OK);
		assert_int_equal(allowed(b), s == 15 ? 5000 : 3000);
	}
	cluster_run(b->where, "DROP TRIGGER note ON baton.lease");
	note_what_is_allowed(b, "runner");
	assert_int_equal(baton_runner_register(b->store, &ask, &runner, NULL), BATON_OK);
	cluster_run(b->where, "TRUNCATE public.allowed");
	assert_int_equal(baton_runner_beat(runner), BATON_OK);
	assert_int_equal(allowed(b), 4000);
	cluster_run(b->where, "DROP TRIGGER note ON baton.runner");
	note_what_is_allowed(b, "batch");
	assert_int_equal(put_into(b->store, "x", "1"), BATON_OK);
	assert_int_equal(allowed(b), 30000);
	cluster_run(b->where, "DROP TRIGGER note ON baton.batch");
	assert_next(b, "1");
	baton_runner_leave(runner);
}

#define MANY_RUNNERS 100
#define SHARDS_EACH 10

/* Runners of queue "q", each with its part of the shards. */
static void share_out(const struct bench *b, struct baton_runner **runners)
{
	struct baton_queue_policy policy = baton_queue_policy_default();
	policy.shards = MANY_RUNNERS * SHARDS_EACH;
	assert_int_equal(baton_queue_set(b->store, BATON_STR("q"), &policy), BATON_OK);
	for (uint32_t i = 0; i < MANY_RUNNERS; i++) {
		char name[16];
		struct baton_shard shards[SHARDS_EACH];
		struct baton_shard_answer answers[SHARDS_EACH];
		snprintf(name, sizeof name, "r%u", i);
		const struct baton_runner_ask ask = {.name = baton_str_z(name),
		                                     .weight = 1,
		                                     .ttl = baton_duration_s(3600)};
		assert_int_equal(baton_runner_register(b->store, &ask, &runners[i], NULL),
		                 BATON_OK);
		for (uint32_t k = 0; k < SHARDS_EACH; k++)
			shards[k] = (struct baton_shard){.queue = BATON_STR("q"),
			                                 .number = i * SHARDS_EACH + k};
		assert_int_equal(baton_shard_take(runners[i], shards, SHARDS_EACH, answers),
		                 BATON_OK);
		for (uint32_t k = 0; k < SHARDS_EACH; k++)
			assert_int_equal(answers[k].err, BATON_OK);
	}
}

/* One for each runner, of one row, whatever it owns. */
static void a_hundred_runners_with_a_thousand_shards_beat_by_one_statement_each(void **state)
{
	struct bench *b = *state;
	struct baton_runner *runners[MANY_RUNNERS];
	share_out(b, runners);
	cluster_run(
		b->where,
		"CREATE TABLE public.beats(what text, changed bigint); CREATE FUNCTION "
		"public.beaten() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO "
		"public.beats SELECT tg_table_name, count(*) FROM changed; RETURN NULL; END $$; "
		"DO $$ DECLARE t text; BEGIN FOR t IN SELECT tablename FROM pg_tables WHERE "
		"schemaname = 'baton' LOOP EXECUTE format('CREATE TRIGGER beaten AFTER UPDATE ON "
		"baton.%I REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION "
		"public.beaten()', t); END LOOP; END $$");
	for (size_t i = 0; i < MANY_RUNNERS; i++)
		assert_int_equal(baton_runner_beat(runners[i]), BATON_OK);
	assert_int_equal(cluster_number(b->where, "SELECT count(*) FROM public.beats"),
	                 MANY_RUNNERS);
	assert_int_equal(cluster_number(b->where, "SELECT count(*) FROM public.beats WHERE what = "
	                                          "'runner' AND changed = 1"),
	                 MANY_RUNNERS);
	cluster_run(b->where, "DROP FUNCTION public.beaten() CASCADE; DROP TABLE public.beats");
	for (size_t i = 0; i < MANY_RUNNERS; i++)
		baton_runner_leave(runners[i]);
}

/* He would wait for a minute, and the lease would be over. */
static void a_renewal_that_hangs_ends_before_it_is_too_late(void **state)
{
	struct bench *b = *state;
	struct baton_store *store = NULL;
	const struct baton_store_options options = {.where = baton_str_z(b->where),
	                                            .patience = baton_duration_s(60)};
	assert_int_equal(baton_store_open(&options, &store), BATON_OK);
	struct baton_lease held = hold(store, "s");
	struct baton_lease_proof proof = {BATON_STR("s"), &held};
	enum baton_err answer;
	PGconn *user = user_of(b);
	assert_true(does(user, "BEGIN; SELECT pg_advisory_xact_lock(1650553967, g) FROM "
	                       "generate_series(0, 1023) g"));
	assert_int_equal(baton_lease_renew(store, &proof, 1, baton_duration_s(9), false, &answer),
	                 BATON_BUSY);
	assert_says("statement timeout");
	assert_true(does(user, "ROLLBACK"));
	PQfinish(user);
	assert_int_equal(baton_lease_renew(store, &proof, 1, baton_duration_s(9), false, &answer),
	                 BATON_OK);
	assert_int_equal(answer, BATON_OK);
	baton_store_close(store);
}

/* He is willing to wait for a minute, but as a runner he has three seconds. Meanwhile he beats. */
static void a_tick_that_hangs_ends_before_the_runner_is_out_of_time(void **state)
{
	struct bench *b = *state;
	struct baton_store *store = NULL;
	const struct baton_store_options options = {.where = baton_str_z(b->where),
	                                            .patience = baton_duration_s(60)};
	const struct baton_runner_ask ask = {.name = BATON_STR("r"),
	                                     .weight = 1,
	                                     .ttl = baton_duration_s(3)};
	const struct baton_shard shard = {.queue = BATON_STR("q"), .claims = 1, .max = 1};
	struct baton_shard_answer owned;
	const struct baton_tick tick = {.shards = &shard, .shard_count = 1, .owned = &owned};
	struct baton_runner *runner = NULL;
	struct baton_work_claims *claims = NULL;
	assert_int_equal(baton_store_open(&options, &store), BATON_OK);
	assert_int_equal(put_into(store, "x", "1"), BATON_OK);
	assert_int_equal(baton_runner_register(store, &ask, &runner, NULL), BATON_OK);
	assert_int_equal(baton_shard_take(runner, &shard, 1, &owned), BATON_OK);
	PGconn *user = user_of(b);
	assert_true(does(user, "BEGIN; SELECT pg_advisory_xact_lock(1650553967, g) FROM "
	                       "generate_series(0, 1023) g"));
	assert_int_equal(baton_runner_tick(runner, &tick, &claims), BATON_BUSY);
	assert_says("statement timeout");
	assert_int_equal(baton_shard_give(runner, &shard, 1, &owned), BATON_BUSY);
	assert_says("statement timeout");
	assert_int_equal(baton_runner_settle(runner, NULL, 0), BATON_BUSY);
	assert_says("statement timeout");
	assert_int_equal(baton_runner_beat(runner), BATON_OK);
	assert_true(does(user, "ROLLBACK"));
	PQfinish(user);
	assert_int_equal(baton_runner_tick(runner, &tick, &claims), BATON_OK);
	assert_int_equal(owned.err, BATON_OK);
	baton_work_claims_free(claims);
	baton_runner_leave(runner);
	baton_store_close(store);
}

static void what_is_old_is_forgotten_along_the_way(void **state)
{
	struct bench *b = *state;
	cluster_run(b->where, "INSERT INTO baton.answer SELECT i, 1, 0, 7, '' "
	                      "FROM generate_series(1, 150) i; INSERT INTO baton.source "
	                      "SELECT int8send(i), '', 0, 0 FROM generate_series(1, 20) i");
	for (int i = 0; i < 256; i++)
		assert_int_equal(put_into(b->store, "x", "y"), BATON_OK);
	assert_int_equal(cluster_number(b->where, "SELECT count(*) FROM baton.answer"), 0);
	assert_int_equal(cluster_number(b->where, "SELECT count(*) FROM baton.source"), 0);
}

/* Puts until the server is gone, and remembers what was acknowledged. */
struct load {
	struct bench *b;
	_Atomic unsigned acknowledged;
	_Atomic bool end;
	pthread_t thread;
};

static void *put_under_load(void *arg)
{
	struct load *l = arg;
	struct baton_store *store = open_as(l->b->where);
	for (unsigned i = 0; !atomic_load(&l->end); i++) {
		char text[32];
		snprintf(text, sizeof text, "%u", i);
		while (put_into(store, "x", text) != BATON_OK && !atomic_load(&l->end))
			;
		if (!atomic_load(&l->end))
			atomic_store(&l->acknowledged, i + 1);
	}
	baton_store_close(store);
	return NULL;
}

static void what_was_acknowledged_outlasts_the_server(void **state)
{
	struct bench *b = *state;
	struct load l = {.b = b};
	char lane[64], text[64];
	assert_int_equal(pthread_create(&l.thread, NULL, put_under_load, &l), 0);
	for (unsigned crashes = 1; crashes <= 3; crashes++) {
		while (atomic_load(&l.acknowledged) < crashes * 20)
			sched_yield();
		cluster_crash(served_cluster());
	}
	while (atomic_load(&l.acknowledged) < 100)
		sched_yield();
	atomic_store(&l.end, true);
	pthread_join(l.thread, NULL);
	unsigned next = 0, acknowledged = atomic_load(&l.acknowledged);
	while (take_one(b->store, lane, text) > 0) {
		unsigned number = (unsigned)strtoul(text, NULL, 10);
		assert_true(number <= next); /* one whose outcome was unknown may be there twice */
		next = number == next ? next + 1 : next;
	}
	assert_true(next >= acknowledged);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SERVED_TEST(a_lane_is_in_the_order_of_commits_whoever_put_first),
		SERVED_TEST(two_who_put_into_two_lanes_the_other_way_round_do_not_stop_each_other),
		SERVED_TEST(what_a_user_puts_is_there_if_he_commits),
		SERVED_TEST(a_queue_that_a_user_makes_is_as_any_other),
		SERVED_TEST(a_user_puts_with_a_key),
		SERVED_TEST(a_user_puts_completes_and_cancels_with_a_lane_and_a_key),
		SERVED_TEST(a_lane_and_a_key_of_a_user_are_refused_where_the_policy_cannot_be_kept),
		SERVED_TEST(what_was_put_before_there_were_keys_is_there),
		SERVED_TEST(what_was_put_before_there_were_conflicts_is_there),
		SERVED_TEST(what_a_user_puts_gives_way_to_others_of_its_key),
		SERVED_TEST(what_a_user_puts_is_bounded_with_what_waits_in_lanes),
		SERVED_TEST(concurrent_writers_lose_nothing_and_keep_the_order_of_their_lanes),
		SERVED_TEST(what_is_loaded_is_copied_and_comes_out_in_order),
		SERVED_TEST(
			a_completion_in_a_users_transaction_is_refused_once_another_has_the_work),
		SERVED_TEST(who_may_only_put_can_do_nothing_else),
		SERVED_TEST(a_busy_lock_is_waited_for_with_a_bound),
		SERVED_TEST(a_lost_connection_is_made_again),
		SERVED_TEST(who_was_ended_is_told_so_whatever_he_sends),
		SERVED_TEST(a_commit_that_was_not_made_has_failed),
		SERVED_TEST(a_commit_that_was_made_though_its_answer_is_lost_has_succeeded),
		SERVED_TEST(what_another_server_says_of_a_commit_proves_nothing),
		SERVED_TEST(what_is_no_store_is_refused),
		SERVED_TEST(missing_rights_and_read_only_servers_are_named),
		SERVED_TEST(a_server_without_connections_is_named_and_what_is_connected_goes_on),
		SERVED_TEST(in_a_copy_nothing_is_held_and_fences_are_higher),
		SERVED_TEST(a_statement_that_takes_too_long_is_given_up),
		SERVED_TEST(renewals_and_beats_may_take_a_third_of_their_ttl),
		SERVED_TEST(a_hundred_runners_with_a_thousand_shards_beat_by_one_statement_each),
		SERVED_TEST(a_renewal_that_hangs_ends_before_it_is_too_late),
		SERVED_TEST(a_tick_that_hangs_ends_before_the_runner_is_out_of_time),
		SERVED_TEST(after_a_failover_fences_are_higher),
		SERVED_TEST(what_is_old_is_forgotten_along_the_way),
		SERVED_TEST(what_was_acknowledged_outlasts_the_server),
	};
	return served_main("postgres", tests, sizeof tests / sizeof tests[0]);
}
