/* What jobs cost in PostgreSQL does not depend on how many there were before them or wait behind
 * them, not even while somebody holds a snapshot that keeps everything that is dead from being
 * removed. Counted in pages that are looked at, not timed. */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <baton/queue.h>
#include <baton/shard.h>
#include <baton/work.h>

#include "served.h"
#include "support/soak.h"

#define EACH 5
#define ROUNDS 20
#define WARM 300 /* rounds after which every index has the depth that it keeps */
#define MORE_PERCENT 130
#define CALL 500 /* that are put together */

#define TURN_LANES 1000000

/* Where jobs are. */
enum place {
	NOWHERE, /* without a lane       */
	ONE,     /* all in the same lane */
	OWN,     /* each in its own      */
	NEW,     /* and nothing was in that before */
	KEYS,    /* each with a key of its own */
	HOT,     /* all with the same key */
	TURN,    /* each in its own lane, with one key or the other in turn */
	SEVERAL  /* with both keys, one, and the other, in turn */
};

static void put_some(struct baton_store *store, enum place where, uint32_t priority, unsigned first,
                     unsigned count)
{
	static struct baton_batch batches[CALL];
	static struct baton_put puts[CALL];
	static char names[CALL][24];
	static const struct baton_str both[] = {{"k", 1}, {"l", 1}};
	const struct baton_str payload = BATON_STR("what is to be done");
	for (unsigned i = 0; i < count; i++) {
		snprintf(names[i], sizeof names[i], "lane %u", where == ONE ? 0 : first + i);
		batches[i] = (struct baton_batch){.queue = BATON_STR("q"),
		                                  .priority = priority,
		                                  .payloads = &payload,
		                                  .count = 1};
		if (where == HOT)
			batches[i].key = BATON_STR("hot");
		else if (where == KEYS)
			batches[i].key = baton_str_z(names[i]);
		else if (where == TURN)
			batches[i].key = (first + i + first / TURN_LANES) % 2 ? BATON_STR("k")
			                                                      : BATON_STR("l");
		if (where == SEVERAL) {
			batches[i].keys = both + ((first + i) % 3 == 2);
			batches[i].key_count = (first + i) % 3 == 0 ? 2 : 1;
		}
		if (where == TURN)
			snprintf(names[i], sizeof names[i], "lane %u", (first + i) % TURN_LANES);
		if (where == ONE || where == OWN || where == NEW || where == TURN)
			batches[i].lane = baton_str_z(names[i]);
	}
	assert_int_equal(baton_work_put(store, batches, count, puts), BATON_OK);
}

static struct baton_work_claims *claim_some(struct baton_store *store, uint32_t count)
{
	const struct baton_work_ask ask = {.queue = BATON_STR("q"),
	                                   .claims = count,
	                                   .max = 1,
	                                   .ttl = baton_duration_s(3600)};
	struct baton_work_claims *claims = NULL;
	assert_int_equal(baton_work_claim(store, &ask, &claims), BATON_OK);
	assert_non_null(claims);
	assert_int_equal(claims->count, count);
	return claims;
}

static void end_some(struct baton_store *store, struct baton_work_claims *claims)
{
	static struct baton_work_end ends[CALL];
	static struct baton_work_ended ended[CALL];
	for (size_t i = 0; i < claims->count; i++) {
		assert_int_equal(claims->claims[i].batches[0].priority, BATON_PRIORITY_MAX);
		ends[i] = (struct baton_work_end){.proof = claims->claims[i].proof,
		                                  .how = BATON_COMPLETE};
	}
	assert_int_equal(baton_work_end(store, ends, claims->count, ended), BATON_OK);
	for (size_t i = 0; i < claims->count; i++)
		assert_int_equal(ended[i].err, BATON_OK);
	baton_work_claims_free(claims);
}

/* Of a key one lives at a time. */
static void live_some(struct baton_store *store, enum place where)
{
	static unsigned lanes = 1000;
	const uint32_t count = where == HOT ? 1 : EACH;
	lanes += EACH;
	put_some(store, where, BATON_PRIORITY_MAX, where == NEW ? lanes : 1, count);
	end_some(store, claim_some(store, count));
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

static void live_many(struct bench *b, enum place where, unsigned rounds)
{
	struct baton_store *store = open_as(b->where);
	for (unsigned i = 0; i < rounds; i++)
		live_some(store, where);
	baton_store_close(store);
}

static long long pages_of(struct bench *b, enum place where, unsigned rounds, int connections)
{
	long long before = pages(b, connections);
	live_many(b, where, rounds);
	return pages(b, connections) - before;
}

/* So many pages do some lives take in a process that has just come. */
static long long cost(struct bench *b, enum place where, int connections)
{
	return pages_of(b, where, ROUNDS, connections);
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
		fail_msg("%d rounds took %lld pages at first, and now %lld", ROUNDS, first, last);
	print_message("# %d rounds: %lld pages at first, and now %lld\n", ROUNDS, first, last);
}

/* As long as this transaction is open, nothing that is dead is removed. The statistics are those of
 * tables in which little is alive, and stay so. */
static PGconn *hold(struct bench *b)
{
	PGconn *user = user_of(b);
	live_some(b->store, NOWHERE);
	begin(b);
	cluster_run(b->where, "ANALYZE");
	assert_true(does(user, "BEGIN ISOLATION LEVEL REPEATABLE READ"));
	assert_true(does(user, "SELECT count(*) FROM baton.queue"));
	return user;
}

static void wait_many(struct bench *b, unsigned calls)
{
	struct baton_store *store = open_as(b->where);
	for (unsigned i = 0; i < calls; i++)
		put_some(store, NOWHERE, 0, 0, CALL);
	baton_store_close(store);
}

/* Who wrote the row last that every transaction reads. */
static long long state_writer(const struct bench *b)
{
	return cluster_number(b->where, "SELECT xmin::text::bigint FROM baton.state");
}

/* In a long run ten million wait at last, and a hundred thousand have lived. */
static void lives_cost_the_same_while_an_old_snapshot_is_held(void **state)
{
	struct bench *b = *state;
	PGconn *user = hold(b);
	wait_many(b, 2);
	long long written = state_writer(b);
	live_many(b, NOWHERE, WARM);
	long long first = cost(b, NOWHERE, 1);
	live_many(b, NOWHERE, soak_scale(100, 20000));
	long long later = cost(b, NOWHERE, 1);
	wait_many(b, soak_scale(2, 20000));
	long long last = cost(b, NOWHERE, 1);
	PQfinish(user);
	b->store = open_as(b->where);
	assert_int_equal(state_writer(b), written);
	assert_flat(first, later);
	assert_flat(first, last);
}

/* Heads of as many lanes, as if they had been put and were gone; who claims next walks over them
 * once. */
static void lose_heads(struct bench *b, unsigned count)
{
	char sql[500];
	snprintf(sql, sizeof sql,
	         "INSERT INTO baton.batch(seq, put_at, fence, queue, shard, pool, attempts, state, "
	         "rank, flags, head, line, cancel, holds, blocks, lane, payload) SELECT "
	         "nextval('baton.seq'), 1, 0, q.id, 0, 0, 0, 1, 0, 0, true, true, false, false, "
	         "false, 'gone ' || i, 'x' FROM baton.queue q, generate_series(1, %u) i",
	         count);
	cluster_run(b->where, sql);
	cluster_run(b->where, "DELETE FROM baton.batch");
	live_many(b, NEW, 1);
}

static void lives_in_lanes_cost_the_same_while_an_old_snapshot_is_held(void **state)
{
	struct bench *b = *state;
	PGconn *user = hold(b);
	live_many(b, NEW, WARM / 3);
	long long first = cost(b, NEW, 1);
	lose_heads(b, soak_scale(10000, 1000000));
	live_many(b, NEW, soak_scale(10, 20000));
	long long last = cost(b, NEW, 1);
	PQfinish(user);
	b->store = open_as(b->where);
	assert_flat(first, last);
}

/* The same few lanes are used again and again: a hundred thousand jobs of each in a long run, in
 * which one index after the other gets a level more. */
static void a_lane_that_is_used_again_costs_the_same_while_an_old_snapshot_is_held(void **state)
{
	struct bench *b = *state;
	PGconn *user = hold(b);
	live_many(b, OWN, WARM / 3);
	long long first = cost(b, OWN, 1);
	live_many(b, OWN, soak_scale(500, 100000));
	long long last = cost(b, OWN, 1);
	PQfinish(user);
	b->store = open_as(b->where);
	assert_flat(first, last);
}

/* Without a lane, in one lane, and in as many lanes: a million of each in a long run. */
static void lives_cost_the_same_however_much_waits(void **state)
{
	struct bench *b = *state;
	long long first[2], last[2];
	begin(b);
	struct baton_store *store = open_as(b->where);
	for (unsigned i = 0; i < soak_scale(3, 2000); i++) {
		for (enum place where = NOWHERE; where <= OWN; where++)
			put_some(store, where, 0, 100 + i * CALL, CALL);
		if (i > 0)
			continue;
		for (int j = 0; j < 2; j++) {
			live_many(b, j == 0 ? NOWHERE : OWN, WARM / 3);
			first[j] = cost(b, j == 0 ? NOWHERE : OWN, 3);
		}
	}
	for (int j = 0; j < 2; j++)
		last[j] = cost(b, j == 0 ? NOWHERE : OWN, 3);
	baton_store_close(store);
	b->store = open_as(b->where);
	for (int j = 0; j < 2; j++)
		assert_flat(first[j], last[j]);
}

#define TOGETHER 100

static long long cost_together(struct bench *b, enum place where, unsigned rounds)
{
	static unsigned keys = 1000;
	long long before = pages(b, 0);
	struct baton_store *store = open_as(b->where);
	for (unsigned i = 0; i < rounds; i++, keys += TOGETHER) {
		put_some(store, where, BATON_PRIORITY_MAX, keys, TOGETHER);
		end_some(store, claim_some(store, TOGETHER));
	}
	baton_store_close(store);
	return pages(b, 0) - before;
}

/* As long as nobody else has these, none of them has waited for long, and no job has stood in a
 * line since the tables were made: after that each key is looked for in an index that has pages. */
static void jobs_with_keys_cost_little_more_than_those_without(void **state)
{
	struct bench *b = *state;
	begin(b);
	cost_together(b, KEYS, ROUNDS);
	long long without = cost_together(b, NOWHERE, ROUNDS);
	long long with = cost_together(b, KEYS, ROUNDS);
	b->store = open_as(b->where);
	assert_flat(without, with);
}

/* Statistics as they are after some time, when most of what there is waits for that key. */
static void crowd(struct bench *b, struct baton_store *store, unsigned calls)
{
	for (unsigned i = 0; i < calls; i++)
		put_some(store, HOT, BATON_PRIORITY_MAX, 0, CALL);
	cluster_run(b->where, "ANALYZE");
}

/* In a long run 100,000 wait for it at last. */
static void a_key_that_many_wait_for_costs_others_and_itself_nothing(void **state)
{
	struct bench *b = *state;
	const enum place who[] = {KEYS, HOT};
	const unsigned more = soak_scale(9, 199);
	begin(b);
	struct baton_store *store = open_as(b->where);
	for (int i = 0; i < 2; i++) {
		struct baton_work_claims *held = NULL;
		crowd(b, store, 1);
		if (who[i] == KEYS)
			held = claim_some(store, 1);
		live_many(b, who[i], WARM / 3);
		long long first = cost(b, who[i], 3);
		crowd(b, store, more);
		assert_flat(first, cost(b, who[i], 3));
		if (held)
			end_some(store, held);
	}
	baton_store_close(store);
	b->store = open_as(b->where);
}

#define SITED_SHARDS 4

/* A runner with these shards of the queue. */
static struct baton_runner *enlist(struct baton_store *store, const char *name, uint32_t first,
                                   uint32_t end)
{
	const struct baton_runner_ask ask = {.name = baton_str_z(name),
	                                     .weight = 1,
	                                     .ttl = baton_duration_s(3600)};
	struct baton_runner *r = NULL;
	assert_int_equal(baton_runner_register(store, &ask, &r, NULL), BATON_OK);
	for (uint32_t i = first; i < end; i++) {
		const struct baton_shard s = {BATON_STR("q"), i, 1, 1};
		struct baton_shard_answer a;
		assert_int_equal(baton_shard_take(r, &s, 1, &a), BATON_OK);
		assert_int_equal(a.err, BATON_OK);
	}
	return r;
}

/* What it gets of all shards that it has, while it ends those; NULL: nothing. */
static struct baton_work_claims *tick(struct baton_runner *r, const struct baton_work_claims *done)
{
	struct baton_shard shards[SITED_SHARDS];
	struct baton_shard_answer owned[SITED_SHARDS];
	struct baton_work_ended ended[SITED_SHARDS];
	struct baton_work_end ends[SITED_SHARDS];
	struct baton_work_claims *claims = NULL;
	for (size_t i = 0; done && i < done->count; i++)
		ends[i] = (struct baton_work_end){.proof = done->claims[i].proof,
		                                  .how = BATON_COMPLETE};
	for (uint32_t i = 0; i < SITED_SHARDS; i++)
		shards[i] = (struct baton_shard){BATON_STR("q"), i, 1, 1};
	const struct baton_tick t = {.ends = ends,
	                             .end_count = done ? done->count : 0,
	                             .ended = ended,
	                             .shards = shards,
	                             .shard_count = SITED_SHARDS,
	                             .owned = owned,
	                             .claims = SITED_SHARDS};
	assert_int_equal(baton_runner_tick(r, &t, &claims), BATON_OK);
	return claims;
}

/* Jobs of other keys, one after the other, in shards in which the full one waits too. */
static long long cost_beside(struct bench *b)
{
	static unsigned keys = 1000;
	long long before = pages(b, 4);
	struct baton_store *store = open_as(b->where);
	struct baton_runner *r = enlist(store, "other", 1, SITED_SHARDS);
	for (int i = 0; i < ROUNDS; i++, keys += SITED_SHARDS) {
		put_some(store, KEYS, 0, keys, SITED_SHARDS);
		struct baton_work_claims *claims = tick(r, NULL);
		assert_non_null(claims);
		assert_int_equal(claims->count, SITED_SHARDS - 1);
		assert_null(tick(r, claims));
		baton_work_claims_free(claims);
	}
	baton_runner_leave(r);
	baton_store_close(store);
	return pages(b, 4) - before;
}

/* In a long run 100,000 wait for it at last. */
static void full_on_a_host(struct bench *b, uint32_t limit, struct baton_key_rate rate)
{
	struct baton_queue_policy p = baton_queue_policy_default();
	p.key_scope = BATON_KEY_SCOPE_HOST;
	p.hold_on_retry = BATON_HOLD_GIVE_UP;
	p.key_limit = limit;
	p.key_rate = rate;
	p.shards = SITED_SHARDS;
	assert_int_equal(baton_queue_set(b->store, BATON_STR("q"), &p), BATON_OK);
	begin(b);
	struct baton_store *store = open_as(b->where);
	struct baton_runner *r = enlist(store, "holder", 0, 1);
	crowd(b, store, 1);
	struct baton_work_claims *held = tick(r, NULL);
	assert_int_equal(held->count, 1);
	cost_beside(b);
	long long first = cost_beside(b);
	crowd(b, store, (unsigned)soak_scale(9, 199));
	assert_flat(first, cost_beside(b));
	baton_work_claims_free(held);
	baton_runner_leave(r);
	baton_store_close(store);
	b->store = open_as(b->where);
}

static void a_key_that_is_full_on_a_host_costs_others_nothing(void **state)
{
	full_on_a_host(*state, 1, (struct baton_key_rate){.starts = 0});
}

static void nor_does_one_that_has_started_too_often_there(void **state)
{
	full_on_a_host(*state, 1000, (struct baton_key_rate){1, baton_duration_s(3600)});
}

/* Ends and claims, one after the other, where two keys get free in turn. */
static long long cost_of_turns(struct bench *b)
{
	long long before = pages(b, 3);
	struct baton_store *store = open_as(b->where);
	struct baton_work_claims *held[2] = {claim_some(store, 1), claim_some(store, 1)};
	assert_false(baton_str_equal(held[0]->claims[0].key, held[1]->claims[0].key));
	for (int i = 0; i < 2 * ROUNDS; i++) {
		end_some(store, held[i % 2]);
		held[i % 2] = claim_some(store, 1);
	}
	for (int i = 0; i < 2; i++)
		end_some(store, held[i]);
	baton_store_close(store);
	return pages(b, 3) - before;
}

static void lanes_that_wait_for_keys_cost_those_who_have_them_nothing(void **state)
{
	struct bench *b = *state;
	unsigned lanes = 0;
	begin(b);
	struct baton_store *store = open_as(b->where);
	for (; lanes < 2 * CALL; lanes += CALL)
		put_some(store, TURN, BATON_PRIORITY_MAX, lanes, CALL);
	cluster_run(b->where, "ANALYZE");
	cost_of_turns(b);
	long long first = cost_of_turns(b);
	for (unsigned all = lanes + CALL * (unsigned)soak_scale(16, 200); lanes < all;
	     lanes += CALL)
		put_some(store, TURN, BATON_PRIORITY_MAX, lanes, CALL);
	cluster_run(b->where, "ANALYZE");
	assert_flat(first, cost_of_turns(b));
	baton_store_close(store);
	b->store = open_as(b->where);
}

/* What a user's transactions take, each in a session that has just begun: so many statements, one
 * after the other. */
static long long cost_of_user(struct bench *b, int connections, const char *sql, unsigned times)
{
	long long before = pages(b, connections);
	PGconn *user = user_of(b);
	for (unsigned i = 0; i < times; i++)
		assert_true(does(user, sql));
	PQfinish(user);
	return pages(b, connections) - before;
}

/* In a long run 100,000 at once. */
static void what_a_user_puts_together_costs_each_the_same(void **state)
{
	static const char *const puts[] = {
		"SELECT baton.put('%s', 'x'::text, i::text) FROM generate_series(1, %u) i",
		"SELECT baton.put('%s', 'x'::text, NULL, jsonb_build_object('key', i)) "
		"FROM generate_series(1, %u) i",
		"SELECT baton.put('%s', 'x'::text, NULL, jsonb_build_object('source', i)) "
		"FROM generate_series(1, %u) i",
	};
	struct bench *b = *state;
	const unsigned more = soak_scale(10, 200);
	begin(b);
	for (size_t i = 0; i < sizeof puts / sizeof puts[0]; i++) {
		char sql[200], queue[8];
		long long cost[2];
		for (unsigned j = 0; j < 2; j++) {
			snprintf(queue, sizeof queue, "q%zu.%u", i, j);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			snprintf(sql, sizeof sql, puts[i], queue, j == 0 ? CALL : CALL * more);
#pragma GCC diagnostic pop
			cost[j] = cost_of_user(b, 0, sql, 1);
		}
		assert_flat(cost[0], cost[1] / more);
	}
	b->store = open_as(b->where);
}

/* Whatever waits, and whatever the server thinks of that. */
static void what_a_user_puts_costs_the_same_however_much_waits(void **state)
{
	static const char *const puts[] = {
		"SELECT baton.put('q', 'x'::text)",
		"SELECT baton.put('q', 'x'::text, 'of his own')",
		"SELECT baton.put('q', 'x'::text, NULL, '{\"key\": \"of his own\"}')",
	};
	enum {
		COUNT = sizeof puts / sizeof puts[0]
	};
	struct bench *b = *state;
	long long first[COUNT], last[COUNT];
	begin(b);
	struct baton_store *store = open_as(b->where);
	for (unsigned j = 0; j < 2; j++) {
		for (unsigned i = 0; i < (j == 0 ? 5 : soak_scale(20, 400)); i++) {
			const unsigned from = (1 + 1000 * j + i) * CALL;
			put_some(store, ONE, 0, 0, CALL);
			put_some(store, OWN, 0, from, CALL);
			put_some(store, KEYS, 0, from, CALL);
			put_some(store, HOT, 0, 0, CALL);
		}
		cluster_run(b->where, "ANALYZE");
		/* The first ones remove what is dead on the pages that they come by. */
		for (int i = 0; i < COUNT; i++)
			cost_of_user(b, 3, puts[i], ROUNDS);
		for (int i = 0; i < COUNT; i++)
			last[i] = cost_of_user(b, 3, puts[i], ROUNDS);
		if (j == 0)
			memcpy(first, last, sizeof first);
	}
	baton_store_close(store);
	b->store = open_as(b->where);
	for (int i = 0; i < COUNT; i++)
		assert_flat(first[i], last[i]);
}

static void assert_nothing(struct baton_store *store)
{
	const struct baton_work_ask ask = {.queue = BATON_STR("q"),
	                                   .claims = 1,
	                                   .max = 1,
	                                   .ttl = baton_duration_s(3600)};
	struct baton_work_claims *claims = NULL;
	assert_int_equal(baton_work_claim(store, &ask, &claims), BATON_OK);
	assert_null(claims);
}

/* One with both keys, and then two with one each, which get free in turn. */
static long long cost_of_several(struct bench *b)
{
	long long before = pages(b, 3);
	struct baton_store *store = open_as(b->where);
	for (int i = 0; i < ROUNDS; i++) {
		struct baton_work_claims *both = claim_some(store, 1);
		assert_int_equal(both->claims[0].key_count, 2);
		end_some(store, both);
		struct baton_work_claims *k = claim_some(store, 1), *l = claim_some(store, 1);
		end_some(store, i % 2 ? k : l);
		assert_nothing(store);
		end_some(store, i % 2 ? l : k);
	}
	baton_store_close(store);
	return pages(b, 3) - before;
}

static void those_who_wait_for_several_keys_cost_those_who_have_them_nothing(void **state)
{
	struct bench *b = *state;
	unsigned jobs = 0;
	begin(b);
	struct baton_store *store = open_as(b->where);
	for (; jobs < 2 * CALL; jobs += CALL)
		put_some(store, SEVERAL, BATON_PRIORITY_MAX, jobs, CALL);
	cluster_run(b->where, "ANALYZE");
	cost_of_several(b);
	long long first = cost_of_several(b);
	for (unsigned all = jobs + CALL * (unsigned)soak_scale(16, 200); jobs < all; jobs += CALL)
		put_some(store, SEVERAL, BATON_PRIORITY_MAX, jobs, CALL);
	cluster_run(b->where, "ANALYZE");
	assert_flat(first, cost_of_several(b));
	baton_store_close(store);
	b->store = open_as(b->where);
}

static const char *const of_class[] = {"q", "r"};

/* So many to each of two queues of a class, all with the same key. */
static void put_in_class(struct baton_store *store)
{
	static struct baton_batch batches[CALL];
	static struct baton_put puts[CALL];
	const struct baton_str payload = BATON_STR("what is to be done");
	for (int q = 0; q < 2; q++) {
		for (unsigned i = 0; i < CALL; i++)
			batches[i] = (struct baton_batch){.queue = baton_str_z(of_class[q]),
			                                  .key = BATON_STR("hot"),
			                                  .priority = BATON_PRIORITY_MAX,
			                                  .payloads = &payload,
			                                  .count = 1};
		assert_int_equal(baton_work_put(store, batches, CALL, puts), BATON_OK);
	}
}

static long long cost_of_class(struct bench *b)
{
	long long before = pages(b, 3);
	struct baton_store *store = open_as(b->where);
	for (int i = 0; i < 2 * ROUNDS; i++) {
		const struct baton_work_ask ask = {.queue = baton_str_z(of_class[i % 2]),
		                                   .claims = 1,
		                                   .max = 1,
		                                   .ttl = baton_duration_s(3600)};
		struct baton_work_claims *claims = NULL;
		assert_int_equal(baton_work_claim(store, &ask, &claims), BATON_OK);
		assert_non_null(claims);
		end_some(store, claims);
	}
	baton_store_close(store);
	return pages(b, 3) - before;
}

static void those_who_wait_in_queues_of_a_class_cost_those_who_run_nothing(void **state)
{
	struct bench *b = *state;
	const struct baton_queue_policy p = {.key_class = "class"};
	begin(b);
	struct baton_store *store = open_as(b->where);
	for (int q = 0; q < 2; q++)
		assert_int_equal(baton_queue_change(store, baton_str_z(of_class[q]), &p,
		                                    BATON_POLICY_KEY_CLASS),
		                 BATON_OK);
	put_in_class(store);
	cluster_run(b->where, "ANALYZE");
	cost_of_class(b);
	long long first = cost_of_class(b);
	for (unsigned i = soak_scale(8, 100); i > 0; i--)
		put_in_class(store);
	cluster_run(b->where, "ANALYZE");
	assert_flat(first, cost_of_class(b));
	baton_store_close(store);
	b->store = open_as(b->where);
}

/* What it costs there to put what the last that waits gives way to, or what there is no room for,
 * and to claim where starts are counted. */
static long long cost_of_newcomers(struct bench *b)
{
	const struct baton_str payload = BATON_STR("what is to be done");
	struct baton_batch batch = {.key = BATON_STR("hot"),
	                            .priority = BATON_PRIORITY_MAX,
	                            .payloads = &payload,
	                            .count = 1};
	struct baton_queue_policy p = {.on_conflict = BATON_CONFLICT_LATEST};
	struct baton_put put;
	long long before = pages(b, 3);
	struct baton_store *store = open_as(b->where);
	for (int i = 0; i < 2 * ROUNDS; i++) {
		batch.queue = baton_str_z(of_class[i % 2]);
		p.key_waiting_max = i % 3 == 0 ? 10 : 0;
		assert_int_equal(baton_queue_change(store, batch.queue, &p,
		                                    BATON_POLICY_ON_CONFLICT |
		                                            BATON_POLICY_KEY_WAITING_MAX),
		                 BATON_OK);
		assert_int_equal(baton_work_put(store, &batch, 1, &put),
		                 i % 3 == 0 ? BATON_FULL : BATON_OK);
	}
	p.on_conflict = BATON_CONFLICT_WAIT;
	p.key_waiting_max = 0;
	assert_int_equal(baton_queue_change(store, batch.queue, &p,
	                                    BATON_POLICY_ON_CONFLICT |
	                                            BATON_POLICY_KEY_WAITING_MAX),
	                 BATON_OK);
	baton_store_close(store);
	return pages(b, 3) - before + cost_of_class(b);
}

static void those_who_wait_in_queues_of_a_class_cost_newcomers_nothing(void **state)
{
	struct bench *b = *state;
	const struct baton_queue_policy p = {.key_class = "class",
	                                     .key_rate = {1000, baton_duration_s(3600)}};
	begin(b);
	struct baton_store *store = open_as(b->where);
	for (int q = 0; q < 2; q++)
		assert_int_equal(baton_queue_change(store, baton_str_z(of_class[q]), &p,
		                                    BATON_POLICY_KEY_CLASS | BATON_POLICY_KEY_RATE),
		                 BATON_OK);
	put_in_class(store);
	cluster_run(b->where, "ANALYZE");
	cost_of_newcomers(b);
	long long first = cost_of_newcomers(b);
	for (unsigned i = soak_scale(24, 100); i > 0; i--)
		put_in_class(store);
	cluster_run(b->where, "ANALYZE");
	assert_flat(first, cost_of_newcomers(b));
	baton_store_close(store);
	b->store = open_as(b->where);
}

static void set_rate(struct bench *b, uint32_t key_limit)
{
	struct baton_queue_policy p = baton_queue_policy_default();
	p.key_limit = key_limit;
	p.key_rate = (struct baton_key_rate){1, baton_duration_s(3600)};
	assert_int_equal(baton_queue_set(b->store, BATON_STR("q"), &p), BATON_OK);
}

/* So many keys that were not there before start. */
static long long cost_of_starts(struct bench *b)
{
	static unsigned keys = 100000000;
	long long before = pages(b, 0);
	struct baton_store *store = open_as(b->where);
	for (unsigned i = 0; i < ROUNDS; i++, keys += EACH) {
		put_some(store, KEYS, BATON_PRIORITY_MAX, keys, EACH);
		end_some(store, claim_some(store, EACH));
	}
	baton_store_close(store);
	return pages(b, 0) - before;
}

/* Keys that were not there before start, and may not do so again for the rest of the test. Of their
 * jobs nothing is left. */
static void fill_windows(struct bench *b, unsigned calls)
{
	static unsigned keys = 1000000;
	struct baton_store *store = open_as(b->where);
	for (unsigned i = 0; i < calls; i++, keys += CALL) {
		put_some(store, KEYS, BATON_PRIORITY_MAX, keys, CALL);
		end_some(store, claim_some(store, CALL));
	}
	baton_store_close(store);
	cluster_run(b->where, "VACUUM baton.batch, baton.claim");
	cluster_run(b->where, "ANALYZE");
}

/* Of a key that may not start now: they wait. */
static long long cost_of_puts(struct bench *b)
{
	long long before = pages(b, 0);
	struct baton_store *store = open_as(b->where);
	for (unsigned i = 0; i < ROUNDS; i++)
		put_some(store, HOT, 0, 0, 1);
	baton_store_close(store);
	return pages(b, 0) - before;
}

/* However many may hold the key at once. */
static void who_waits_for_the_window_of_a_key_costs_those_who_come_nothing(void **state)
{
	struct bench *b = *state;
	set_rate(b, BATON_QUEUE_KEY_LIMIT_MAX);
	put_some(b->store, HOT, BATON_PRIORITY_MAX, 0, 1);
	end_some(b->store, claim_some(b->store, 1));
	crowd(b, b->store, 1);
	begin(b);
	long long first = cost_of_puts(b);
	b->store = open_as(b->where);
	crowd(b, b->store, 3);
	baton_store_close(b->store);
	long long last = cost_of_puts(b);
	b->store = open_as(b->where);
	assert_flat(first, last);
}

/* In a long run 100,000 keys wait for their window at last. */
static void keys_that_wait_for_their_window_cost_others_nothing(void **state)
{
	struct bench *b = *state;
	set_rate(b, 1);
	begin(b);
	fill_windows(b, 1);
	live_many(b, NOWHERE, WARM / 3);
	long long first = cost(b, NOWHERE, 0), start = cost_of_starts(b);
	fill_windows(b, soak_scale(9, 199));
	long long last = cost(b, NOWHERE, 0), another = cost_of_starts(b);
	b->store = open_as(b->where);
	assert_flat(first, last);
	assert_flat(start, another);
}

/* Of all kinds, most of them claimed, and some of these by claims that are over. */
static void fill(struct bench *b, unsigned calls)
{
	struct baton_store *store = open_as(b->where);
	for (unsigned i = 0; i < calls; i++) {
		put_some(store, NOWHERE, BATON_PRIORITY_MAX, 0, CALL);
		put_some(store, NOWHERE, 0, 0, CALL);
		put_some(store, OWN, BATON_PRIORITY_MAX, 1000 + i * CALL, CALL);
		put_some(store, KEYS, BATON_PRIORITY_MAX, i * CALL, CALL);
		put_some(store, KEYS, 0, i * CALL, CALL);
		for (unsigned j = 0; j < 3; j++)
			baton_work_claims_free(claim_some(store, CALL));
	}
	baton_store_close(store);
}

static long long cost_of_counts(struct bench *b, uint64_t waiting)
{
	struct baton_queue_info info;
	struct baton_store *store = open_as(b->where);
	long long before = pages(b, 1);
	for (int i = 0; i < ROUNDS; i++)
		assert_int_equal(baton_queue_get(store, BATON_STR("q"), &info), BATON_OK);
	assert_int_equal(info.counts.waiting_on_key, waiting);
	baton_store_close(store);
	return pages(b, 0) - before;
}

/* Three of each key, of which two wait. */
static void how_many_wait_for_keys_is_read_at_the_same_cost(void **state)
{
	struct bench *b = *state;
	const unsigned more = soak_scale(9, 199);
	begin(b);
	struct baton_store *store = open_as(b->where);
	for (unsigned i = 0; i < 3; i++)
		put_some(store, KEYS, 0, 0, CALL);
	cluster_run(b->where, "ANALYZE");
	baton_store_close(store);
	long long first = cost_of_counts(b, UINT64_C(2) * CALL);
	store = open_as(b->where);
	for (unsigned i = 0; i < 3 * more; i++)
		put_some(store, KEYS, 0, (1 + i % more) * CALL, CALL);
	baton_store_close(store);
	cluster_run(b->where, "ANALYZE");
	long long last = cost_of_counts(b, UINT64_C(2) * CALL * (1 + more));
	b->store = open_as(b->where);
	assert_flat(first, last);
}

static long long cost_of_check(struct bench *b)
{
	uint64_t faults = 1;
	long long before = pages(b, 0);
	struct baton_store *store = open_as(b->where);
	assert_int_equal(baton_store_check(store, NULL, NULL, &faults), BATON_OK);
	assert_int_equal(faults, 0);
	baton_store_close(store);
	return pages(b, 0) - before;
}

/* Much more of everything, once more. */
static void a_check_costs_what_there_is_and_not_its_square(void **state)
{
	struct bench *b = *state;
	struct baton_queue_policy p = baton_queue_policy_default();
	p.key_fair = BATON_KEY_FAIR_ON;
	assert_int_equal(baton_queue_set(b->store, BATON_STR("q"), &p), BATON_OK);
	begin(b);
	fill(b, 1);
	cluster_run(b->where, "ANALYZE"); /* of nearly nothing, and so it stays */
	long long first = cost_of_check(b);
	fill(b, soak_scale(10, 200));
	long long last = cost_of_check(b);
	b->store = open_as(b->where);
	assert_flat(first, last / soak_scale(11, 201));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* First: the index over lines has no pages yet. */
		SERVED_TEST(jobs_with_keys_cost_little_more_than_those_without),
		SERVED_TEST(lives_cost_the_same_while_an_old_snapshot_is_held),
		SERVED_TEST(lives_in_lanes_cost_the_same_while_an_old_snapshot_is_held),
		SERVED_TEST(a_lane_that_is_used_again_costs_the_same_while_an_old_snapshot_is_held),
		SERVED_TEST(lives_cost_the_same_however_much_waits),
		SERVED_TEST(a_key_that_many_wait_for_costs_others_and_itself_nothing),
		SERVED_TEST(a_key_that_is_full_on_a_host_costs_others_nothing),
		SERVED_TEST(nor_does_one_that_has_started_too_often_there),
		SERVED_TEST(lanes_that_wait_for_keys_cost_those_who_have_them_nothing),
		SERVED_TEST(what_a_user_puts_together_costs_each_the_same),
		SERVED_TEST(what_a_user_puts_costs_the_same_however_much_waits),
		SERVED_TEST(those_who_wait_for_several_keys_cost_those_who_have_them_nothing),
		SERVED_TEST(those_who_wait_in_queues_of_a_class_cost_those_who_run_nothing),
		SERVED_TEST(those_who_wait_in_queues_of_a_class_cost_newcomers_nothing),
		SERVED_TEST(keys_that_wait_for_their_window_cost_others_nothing),
		SERVED_TEST(who_waits_for_the_window_of_a_key_costs_those_who_come_nothing),
		SERVED_TEST(how_many_wait_for_keys_is_read_at_the_same_cost),
		SERVED_TEST(a_check_costs_what_there_is_and_not_its_square),
	};
	return served_main("growth", tests, sizeof tests / sizeof tests[0]);
}
