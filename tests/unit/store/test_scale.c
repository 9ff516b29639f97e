/* What a put, a claim and a completion cost does not depend on how much is stored. Counted, not
 * timed: the steps of SQLite's machine, the pages that are looked at, and those that are
 * written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <baton/shard.h>
#include <sqlite3.h>

#include "queue/place.h"
#include "store/sqlite/sqlite.h"
#include "support/skips.h"
#include "support/soak.h"
#include "world.h"

#define ROUNDS 100
#define PUT_MAX 10000
#define CLAIM_MAX 1000

/* How much there is of everything. */
struct amounts {
	size_t front;  /* in the lane before all the others */
	size_t lanes;  /* with one batch each               */
	size_t single; /* without a lane                    */
	size_t delayed;
	size_t dead;
	size_t claimed;
};

struct cost {
	uint64_t steps, pages, written;
};

static int now_and_reset(sqlite3 *db, int what)
{
	int value = 0, highest;
	assert_int_equal(sqlite3_db_status(db, what, &value, &highest, 1), SQLITE_OK);
	return value;
}

/* Since the last call. */
static struct cost spent(struct baton_store *store)
{
	sqlite3 *db = ((struct sqlite_store *)store)->db.handle;
	struct cost c = {.steps = 0};
	for (sqlite3_stmt *s = NULL; (s = sqlite3_next_stmt(db, s));)
		c.steps += (uint64_t)sqlite3_stmt_status(s, SQLITE_STMTSTATUS_VM_STEP, 1);
	c.pages = (uint64_t)now_and_reset(db, SQLITE_DBSTATUS_CACHE_HIT) +
	          (uint64_t)now_and_reset(db, SQLITE_DBSTATUS_CACHE_MISS);
	c.written = (uint64_t)now_and_reset(db, SQLITE_DBSTATUS_CACHE_WRITE);
	return c;
}

static void add(struct cost *to, struct cost c)
{
	to->steps += c.steps;
	to->pages += c.pages;
	to->written += c.written;
}

/* A `lane` that begins with '#' is another one for each batch. */
static void put_many(struct baton_store *store, const char *queue, const char *lane, size_t count,
                     int64_t delay_ms)
{
	static struct baton_batch batches[PUT_MAX];
	static struct baton_put puts[PUT_MAX];
	static char lanes[PUT_MAX][32];
	static char bytes[150];
	static const struct baton_str payload = {bytes, sizeof bytes};
	for (size_t done = 0; done < count;) {
		size_t n = 0;
		for (; n < PUT_MAX && done < count; n++, done++) {
			snprintf(lanes[n], sizeof lanes[n], lane[0] == '#' ? "%s %zu" : "%s", lane,
			         done);
			batches[n] = (struct baton_batch){.queue = baton_str_z(queue),
			                                  .lane = baton_str_z(lanes[n]),
			                                  .delay = baton_duration_ms(delay_ms),
			                                  .payloads = &payload,
			                                  .count = 1};
		}
		assert_ok(baton_work_put(store, batches, n, puts));
	}
}

static struct baton_work_claims *claim_many(struct baton_store *store, const char *queue,
                                            size_t count)
{
	struct baton_work_claims *claims = NULL;
	const struct baton_work_ask ask = {.queue = baton_str_z(queue),
	                                   .ttl = baton_duration_ms(1000000),
	                                   .claims = (uint32_t)count,
	                                   .max = 1};
	assert_ok(baton_work_claim(store, &ask, &claims));
	assert_non_null(claims);
	assert_int_equal(claims->count, count);
	return claims;
}

static void reject_many(struct baton_store *store, size_t count)
{
	static struct baton_work_end ends[CLAIM_MAX];
	static struct baton_work_ended answers[CLAIM_MAX];
	while (count > 0) {
		size_t n = count < CLAIM_MAX ? count : CLAIM_MAX;
		struct baton_work_claims *claims = claim_many(store, "q", n);
		for (size_t i = 0; i < n; i++)
			ends[i] = (struct baton_work_end){.proof = claims->claims[i].proof,
			                                  .how = BATON_REJECT};
		assert_ok(baton_work_end(store, ends, n, answers));
		baton_work_claims_free(claims);
		count -= n;
	}
}

static void leave_claimed(struct baton_store *store, size_t count)
{
	while (count > 0) {
		size_t n = count < CLAIM_MAX ? count : CLAIM_MAX;
		baton_work_claims_free(claim_many(store, "q", n));
		count -= n;
	}
}

static void make(struct baton_store *store, const struct amounts *a)
{
	put_many(store, "q", "", a->dead, 0);
	reject_many(store, a->dead);
	put_many(store, "q", "", a->claimed, 0);
	leave_claimed(store, a->claimed);
	put_many(store, "q", "", a->delayed, 1000000);
	put_many(store, "q", "front", a->front, 0);
	put_many(store, "q", "# lane", a->lanes, 0);
	put_many(store, "q", "", a->single, 0);
}

/* What of a life. */
enum part {
	PUT,
	CLAIM,
	COMPLETE,
	PARTS
};

static void live(struct baton_store *store, const char *lane, struct cost costs[PARTS])
{
	memset(costs, 0, PARTS * sizeof *costs);
	spent(store);
	for (int i = 0; i < ROUNDS; i++) {
		put_many(store, "q", lane, 1, 0);
		add(&costs[PUT], spent(store));
		struct baton_work_claims *claims = claim_many(store, "q", 1);
		add(&costs[CLAIM], spent(store));
		assert_ok(complete(store, &claims->claims[0], NULL));
		add(&costs[COMPLETE], spent(store));
		baton_work_claims_free(claims);
	}
}

static void measure(struct world *w, const struct amounts *a, struct cost ret[4][PARTS])
{
	static const char *const lanes[] = {"", "front", "# lane", "of its own"};
	world_remove(w->path);
	w->sync = BATON_STORE_RELAXED;
	world_open(w);
	make(w->store, a);
	for (size_t i = 0; i < 2; i++)
		live(w->store, lanes[i], ret[i]);
	struct baton_work_claims *front = claim_many(w->store, "q", 1);
	for (size_t i = 2; i < 4; i++)
		live(w->store, lanes[i], ret[i]);
	baton_work_claims_free(front);
	assert_sound(w->store);
	world_close(w);
	world_remove(w->path);
}

static void show(const char *what, const struct cost c[PARTS])
{
	print_message("# %s: steps %d %d %d, pages %d %d %d, written %d %d %d\n", what,
	              (int)c[0].steps, (int)c[1].steps, (int)c[2].steps, (int)c[0].pages,
	              (int)c[1].pages, (int)c[2].pages, (int)c[0].written, (int)c[1].written,
	              (int)c[2].written);
}

static void the_cost_of_a_life_does_not_grow(void **state)
{
	const struct amounts few = {200, 200, 400, 50, 50, 100};
	const size_t n = soak_scale(1, 50);
	const struct amounts many = {100000 * n, 20000 * n, 80000 * n,
	                             20000 * n,  20000 * n, 5000 * n};
	static struct cost less[4][PARTS], more[4][PARTS];
	measure(*state, &few, less);
	measure(*state, &many, more);
	for (size_t i = 0; i < 4; i++) {
		show("few ", less[i]);
		show("many", more[i]);
	}
	for (size_t i = 0; i < 4; i++) {
		for (size_t part = 0; part < PARTS; part++) {
			assert_true(more[i][part].steps * 10 <= less[i][part].steps * 13);
			assert_true(more[i][part].written * 10 <= less[i][part].written * 13);
			/* A level more of every tree. */
			assert_true(more[i][part].pages <= less[i][part].pages * 2);
		}
	}
}

/* What a job of another key costs when so many wait for the one that is held. */
static struct cost beside(struct world *w, uint32_t limit, size_t waiting)
{
	static const struct baton_str payload = {"x", 1};
	struct baton_batch hot = {.queue = BATON_STR("q"),
	                          .key = BATON_STR("hot"),
	                          .payloads = &payload,
	                          .count = 1};
	struct baton_batch other = hot;
	struct baton_put put;
	struct baton_queue_policy p = baton_queue_policy_default();
	struct baton_work_ended ended;
	p.key_limit = limit;
	other.key = BATON_STR("other");
	world_open(w);
	assert_ok(baton_queue_set(w->store, BATON_STR("q"), &p));
	for (size_t i = 0; i < waiting + limit; i++)
		assert_ok(baton_work_put(w->store, &hot, 1, &put));
	baton_work_claims_free(claim_many(w->store, "q", limit));
	spent(w->store);
	assert_ok(baton_work_put(w->store, &hot, 1, &put));
	assert_ok(baton_work_put(w->store, &other, 1, &put));
	struct baton_work_claims *claims = claim_many(w->store, "q", 1);
	const struct baton_work_end end = {.proof = claims->claims[0].proof, .how = BATON_COMPLETE};
	assert_int_equal(claims->claims[0].key.len, 5);
	assert_ok(baton_work_end(w->store, &end, 1, &ended));
	baton_work_claims_free(claims);
	struct cost c = spent(w->store);
	world_close(w);
	world_remove(w->path);
	return c;
}

static void a_hot_key_costs_others_nothing(void **state)
{
	struct world *w = *state;
	w->sync = BATON_STORE_RELAXED;
	for (uint32_t limit = 1; limit <= 100; limit += 99) {
		struct cost few = beside(w, limit, 2);
		struct cost many = beside(w, limit, soak_scale(2000, 100000));
		print_message("# limit %u: %d and %d steps, %d and %d pages\n", limit,
		              (int)few.steps, (int)many.steps, (int)few.pages, (int)many.pages);
		assert_true(many.steps * 10 <= few.steps * 11);
		assert_true(many.pages <= few.pages * 2);
	}
}

#define SITED_SHARDS 4

/* One claim of any shard of the runner; NULL: there is none. */
static struct baton_work_claims *tick_one(struct baton_runner *r, const struct baton_work_end *end)
{
	struct baton_shard shards[SITED_SHARDS];
	struct baton_shard_answer owned[SITED_SHARDS];
	struct baton_work_ended ended = {.err = BATON_OK};
	struct baton_work_claims *claims = NULL;
	for (uint32_t i = 0; i < SITED_SHARDS; i++)
		shards[i] = (struct baton_shard){BATON_STR("q"), i, 1, 1};
	const struct baton_tick tick = {.ends = end,
	                                .end_count = end ? 1 : 0,
	                                .ended = &ended,
	                                .shards = shards,
	                                .shard_count = SITED_SHARDS,
	                                .owned = owned,
	                                .claims = 1};
	assert_ok(baton_runner_tick(r, &tick, &claims));
	assert_ok(ended.err);
	return claims;
}

/* A queue whose keys count in places, as it is said, and a runner that has all of it. */
static struct baton_runner *enlist(struct world *w, const struct baton_queue_policy *as)
{
	const struct baton_runner_ask ask = {.name = BATON_STR("r"),
	                                     .weight = 1,
	                                     .ttl = baton_duration_s(60)};
	struct baton_queue_policy p = baton_queue_policy_default();
	struct baton_runner *r = NULL;
	p.key_scope = as->key_scope;
	p.key_limit = as->key_limit;
	p.key_rate = as->key_rate;
	p.key_fair = as->key_fair;
	p.hold_on_retry = BATON_HOLD_GIVE_UP;
	p.shards = SITED_SHARDS;
	assert_ok(baton_queue_set(w->store, BATON_STR("q"), &p));
	assert_ok(baton_runner_register(w->store, &ask, &r, NULL));
	for (uint32_t i = 0; i < SITED_SHARDS; i++) {
		const struct baton_shard s = {BATON_STR("q"), i, 1, 1};
		struct baton_shard_answer a;
		assert_ok(baton_shard_take(r, &s, 1, &a));
	}
	return r;
}

/* The same for a key that counts in a place, and is full there, or has started too often. */
static struct cost beside_sited(struct world *w, const struct baton_queue_policy *as,
                                size_t waiting)
{
	static const struct baton_str payload = {"x", 1};
	struct baton_batch hot = {.queue = BATON_STR("q"),
	                          .key = BATON_STR("hot"),
	                          .payloads = &payload,
	                          .count = 1};
	struct baton_batch other = hot;
	struct baton_put put;
	other.key = BATON_STR("other");
	world_open(w);
	struct baton_runner *r = enlist(w, as);
	for (size_t i = 0; i < waiting + 1; i++)
		assert_ok(baton_work_put(w->store, &hot, 1, &put));
	baton_work_claims_free(tick_one(r, NULL));
	assert_null(tick_one(r, NULL));
	spent(w->store);
	assert_ok(baton_work_put(w->store, &hot, 1, &put));
	assert_ok(baton_work_put(w->store, &other, 1, &put));
	struct baton_work_claims *claims = tick_one(r, NULL);
	assert_int_equal(claims->claims[0].key.len, 5);
	const struct baton_work_end end = {.proof = claims->claims[0].proof, .how = BATON_COMPLETE};
	assert_null(tick_one(r, &end));
	baton_work_claims_free(claims);
	struct cost c = spent(w->store);
	baton_runner_leave(r);
	world_close(w);
	world_remove(w->path);
	return c;
}

static void a_key_that_is_full_on_a_host_costs_others_nothing(void **state)
{
	struct world *w = *state;
	static const struct baton_queue_policy cases[] = {
		{.key_scope = BATON_KEY_SCOPE_PROCESS,
	         .key_limit = 1,
	         .key_fair = BATON_KEY_FAIR_OFF},
		{.key_scope = BATON_KEY_SCOPE_HOST, .key_limit = 1, .key_fair = BATON_KEY_FAIR_OFF},
		{.key_scope = BATON_KEY_SCOPE_HOST,
	         .key_limit = 1000,
	         .key_rate = {1, {3600000000000}},
	         .key_fair = BATON_KEY_FAIR_OFF},
		{.key_scope = BATON_KEY_SCOPE_PROCESS,
	         .key_limit = 1,
	         .key_fair = BATON_KEY_FAIR_ON},
	};
	w->sync = BATON_STORE_RELAXED;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct cost few = beside_sited(w, &cases[i], 16);
		struct cost many = beside_sited(w, &cases[i], soak_scale(2000, 100000));
		print_message("# case %zu: %d and %d steps, %d and %d pages\n", i, (int)few.steps,
		              (int)many.steps, (int)few.pages, (int)many.pages);
		assert_true(many.steps * 10 <= few.steps * 11);
		assert_true(many.pages <= few.pages * 2);
	}
}

static void end_of(struct baton_store *store, struct baton_work_claims *claims)
{
	struct baton_work_ended ended;
	const struct baton_work_end end = {.proof = claims->claims[0].proof, .how = BATON_COMPLETE};
	assert_ok(baton_work_end(store, &end, 1, &ended));
	assert_ok(ended.err);
	baton_work_claims_free(claims);
}

/* What an end and the next claim cost when so many lanes wait for two keys in turn: the next job of
 * each lane wants the other one. */
static struct cost in_turn(struct world *w, unsigned lanes, uint32_t key_waiting_max)
{
	struct baton_queue_policy p = baton_queue_policy_default();
	p.key_waiting_max = key_waiting_max;
	static const struct baton_str payload = {"x", 1};
	char lane[16];
	struct baton_batch b = {.queue = BATON_STR("q"), .payloads = &payload, .count = 1};
	struct baton_put put;
	world_open(w);
	assert_ok(baton_queue_set(w->store, BATON_STR("q"), &p));
	for (unsigned i = 0; i < 3 * lanes; i++) {
		snprintf(lane, sizeof lane, "%u", i % lanes);
		b.lane = baton_str_z(lane);
		b.key = (i + i / lanes) % 2 ? BATON_STR("k") : BATON_STR("l");
		assert_ok(baton_work_put(w->store, &b, 1, &put));
	}
	struct baton_work_claims *held[2] = {claim_many(w->store, "q", 1),
	                                     claim_many(w->store, "q", 1)};
	assert_false(baton_str_equal(held[0]->claims[0].key, held[1]->claims[0].key));
	spent(w->store);
	for (int i = 0; i < 20; i++) {
		end_of(w->store, held[i % 2]);
		held[i % 2] = claim_many(w->store, "q", 1);
		assert_int_equal(held[i % 2]->count, 1);
	}
	struct cost c = spent(w->store);
	for (int i = 0; i < 2; i++)
		end_of(w->store, held[i]);
	world_close(w);
	world_remove(w->path);
	return c;
}

static void lanes_that_wait_for_keys_cost_those_who_have_them_nothing(void **state)
{
	struct world *w = *state;
	w->sync = BATON_STORE_RELAXED;
	for (uint32_t max = 0; max <= BATON_QUEUE_KEY_WAITING_MAX;
	     max += BATON_QUEUE_KEY_WAITING_MAX) {
		unsigned lanes = (unsigned)soak_scale(1500, max > 0 ? 6000 : 50000);
		struct cost few = in_turn(w, 30, max), many = in_turn(w, lanes, max);
		print_message("# bound %u: %d and %d steps, %d and %d pages\n", max, (int)few.steps,
		              (int)many.steps, (int)few.pages, (int)many.pages);
		assert_true(many.steps * 10 <= few.steps * 11);
		assert_true(many.pages <= few.pages * 2);
	}
}

/* What it costs when so many wait for both of two keys, and for one of them, which get free in
 * turn. */
static struct cost with_several(struct world *w, unsigned jobs)
{
	static const struct baton_str payload = {"x", 1}, both[] = {{"k", 1}, {"l", 1}};
	struct baton_batch b = {.queue = BATON_STR("q"), .payloads = &payload, .count = 1};
	struct baton_put put;
	const struct baton_work_ask ask = {.queue = BATON_STR("q"),
	                                   .ttl = baton_duration_ms(1000000),
	                                   .claims = 1,
	                                   .max = 1};
	world_open(w);
	for (unsigned i = 0; i < 3 * jobs; i++) {
		b.keys = both + (i % 3 == 2);
		b.key_count = i % 3 == 0 ? 2 : 1;
		assert_ok(baton_work_put(w->store, &b, 1, &put));
	}
	spent(w->store);
	for (int i = 0; i < 10; i++) {
		struct baton_work_claims *none = NULL, *c = claim_many(w->store, "q", 1);
		assert_int_equal(c->claims[0].key_count, 2);
		end_of(w->store, c);
		struct baton_work_claims *k = claim_many(w->store, "q", 1);
		struct baton_work_claims *l = claim_many(w->store, "q", 1);
		end_of(w->store, i % 2 ? k : l);
		assert_ok(baton_work_claim(w->store, &ask, &none));
		assert_null(none);
		end_of(w->store, i % 2 ? l : k);
	}
	struct cost c = spent(w->store);
	world_close(w);
	world_remove(w->path);
	return c;
}

static void those_who_wait_for_several_keys_cost_those_who_have_them_nothing(void **state)
{
	struct world *w = *state;
	w->sync = BATON_STORE_RELAXED;
	struct cost few = with_several(w, 20);
	struct cost many = with_several(w, (unsigned)soak_scale(1000, 30000));
	print_message("# %d and %d steps, %d and %d pages\n", (int)few.steps, (int)many.steps,
	              (int)few.pages, (int)many.pages);
	assert_true(many.steps * 10 <= few.steps * 11);
	assert_true(many.pages <= few.pages * 2);
}

static void join(struct baton_store *store, const char *queue, const char *class)
{
	struct baton_queue_policy p = baton_queue_policy_default();
	snprintf(p.key_class, sizeof p.key_class, "%s", class);
	assert_ok(baton_queue_change(store, baton_str_z(queue), &p, BATON_POLICY_KEY_CLASS));
}

/* What ends and claims cost in two queues in turn, in which so many wait for the same key. */
static struct cost in_a_class(struct world *w, unsigned jobs)
{
	static const struct baton_str payload = {"x", 1};
	struct baton_batch b = {.key = BATON_STR("k"), .payloads = &payload, .count = 1};
	struct baton_put put;
	world_open(w);
	join(w->store, "q", "class");
	join(w->store, "r", "class");
	for (unsigned i = 0; i < 2 * jobs; i++) {
		b.queue = i % 2 ? BATON_STR("q") : BATON_STR("r");
		assert_ok(baton_work_put(w->store, &b, 1, &put));
	}
	spent(w->store);
	for (int i = 0; i < 20; i++)
		end_of(w->store, claim_many(w->store, i % 2 ? "q" : "r", 1));
	struct cost c = spent(w->store);
	world_close(w);
	world_remove(w->path);
	return c;
}

static void those_who_wait_in_queues_of_a_class_cost_those_who_run_nothing(void **state)
{
	struct world *w = *state;
	w->sync = BATON_STORE_RELAXED;
	struct cost few = in_a_class(w, 30);
	struct cost many = in_a_class(w, (unsigned)soak_scale(1500, 50000));
	print_message("# %d and %d steps, %d and %d pages\n", (int)few.steps, (int)many.steps,
	              (int)few.pages, (int)many.pages);
	assert_true(many.steps * 10 <= few.steps * 11);
	assert_true(many.pages <= few.pages * 2);
}

/* Opens it with so many queues of a class, each with jobs of the same 50 keys. */
static void open_with_class(struct world *w, unsigned queues)
{
	static const struct baton_str payload = {"x", 1};
	struct baton_batch b = {.payloads = &payload, .count = 1};
	struct baton_put put;
	char queue[8], key[8];
	world_open(w);
	for (unsigned i = 0; i < queues; i++) {
		snprintf(queue, sizeof queue, "q%u", i);
		join(w->store, queue, "class");
		b.queue = baton_str_z(queue);
		for (unsigned k = 0; k < 50; k++) {
			snprintf(key, sizeof key, "%u", k);
			b.key = baton_str_z(key);
			assert_ok(baton_work_put(w->store, &b, 1, &put));
		}
	}
	spent(w->store);
}

/* What another limit costs there. */
static struct cost of_a_limit(struct world *w, unsigned queues)
{
	const struct baton_queue_policy p = {.key_limit = 2};
	open_with_class(w, queues);
	assert_ok(baton_queue_change(w->store, BATON_STR("q0"), &p, BATON_POLICY_KEY_LIMIT));
	struct cost c = spent(w->store);
	world_close(w);
	world_remove(w->path);
	return c;
}

/* What it costs to claim all of one of them in one call. */
static struct cost of_many_claims(struct world *w, unsigned queues)
{
	open_with_class(w, queues);
	baton_work_claims_free(claim_many(w->store, "q0", 50));
	struct cost c = spent(w->store);
	world_close(w);
	world_remove(w->path);
	return c;
}

static void many_claims_of_a_class_settle_each_line_a_few_times(void **state)
{
	struct world *w = *state;
	w->sync = BATON_STORE_RELAXED;
	struct cost few = of_many_claims(w, 3), many = of_many_claims(w, 12);
	print_message("# %d and %d steps\n", (int)few.steps, (int)many.steps);
	assert_true(many.steps <= few.steps * 4 * 3);
}

/* For each it is looked who holds the key in the others, and no more. */
static void another_limit_of_a_class_settles_each_line_once(void **state)
{
	struct world *w = *state;
	w->sync = BATON_STORE_RELAXED;
	struct cost few = of_a_limit(w, 3), many = of_a_limit(w, 12);
	print_message("# %d and %d steps\n", (int)few.steps, (int)many.steps);
	assert_true(many.steps <= few.steps * 4 * 4);
}

/* A life with a key in a queue that has none, beside others that have a class, or have not. */
static struct cost without_a_class(struct world *w, const char *class)
{
	static const struct baton_str payload = {"x", 1};
	struct baton_batch b = {.key = BATON_STR("k"), .payloads = &payload, .count = 1};
	struct baton_put put;
	world_open(w);
	for (int i = 0; i < 3; i++) {
		const char *queue = i == 0 ? "q" : i == 1 ? "r" : "s";
		b.queue = baton_str_z(queue);
		join(w->store, queue, i < 2 ? class : "");
		assert_ok(baton_work_put(w->store, &b, 1, &put));
	}
	end_of(w->store, claim_many(w->store, "s", 1));
	spent(w->store);
	assert_ok(baton_work_put(w->store, &b, 1, &put));
	end_of(w->store, claim_many(w->store, "s", 1));
	struct cost c = spent(w->store);
	world_close(w);
	world_remove(w->path);
	return c;
}

static void a_queue_without_a_class_costs_what_it_did(void **state)
{
	struct world *w = *state;
	struct cost alone = without_a_class(w, ""), beside_it = without_a_class(w, "class");
	print_message("# %d and %d steps, %d and %d pages\n", (int)alone.steps,
	              (int)beside_it.steps, (int)alone.pages, (int)beside_it.pages);
	assert_int_equal(beside_it.steps, alone.steps);
	assert_int_equal(beside_it.pages, alone.pages);
}

/* What it costs to put, claim and complete one of many jobs. */
static struct cost life_of(struct world *w, const char *key)
{
	static const struct baton_str payload = {"x", 1};
	struct baton_batch b = {.queue = BATON_STR("q"),
	                        .key = baton_str_z(key),
	                        .payloads = &payload,
	                        .count = 1};
	struct baton_put put;
	struct baton_work_ended ended;
	struct cost c = {.steps = 0};
	world_open(w);
	for (int i = 0; i < 3; i++) {
		spent(w->store);
		assert_ok(baton_work_put(w->store, &b, 1, &put));
		struct baton_work_claims *claims = claim_many(w->store, "q", 1);
		const struct baton_work_end end = {.proof = claims->claims[0].proof,
		                                   .how = BATON_COMPLETE};
		assert_ok(baton_work_end(w->store, &end, 1, &ended));
		baton_work_claims_free(claims);
		c = spent(w->store);
	}
	world_close(w);
	world_remove(w->path);
	return c;
}

static void a_key_that_one_job_alone_has_costs_little(void **state)
{
	struct world *w = *state;
	w->sync = BATON_STORE_RELAXED;
	struct cost without = life_of(w, ""), with = life_of(w, "k");
	print_message("# without a key %d steps, %d pages; with one %d and %d\n",
	              (int)without.steps, (int)without.pages, (int)with.steps, (int)with.pages);
	assert_true(with.steps * 10 <= without.steps * 12);
	assert_true(with.written <= without.written + 2);
}

static void start_keys(struct baton_store *store, const char *queue, unsigned count)
{
	static const struct baton_str payload = {"x", 1};
	struct baton_put put;
	for (unsigned i = 0; i < count; i++) {
		char key[16];
		snprintf(key, sizeof key, "%u", i);
		const struct baton_batch b = {.queue = baton_str_z(queue),
		                              .key = baton_str_z(key),
		                              .payloads = &payload,
		                              .count = 1};
		assert_ok(baton_work_put(store, &b, 1, &put));
	}
	baton_work_claims_free(claim_many(store, queue, count));
}

/* What it costs to change how often the keys of a queue may start, of which three have, when so
 * many of another queue have. */
static struct cost change_of_rate(struct world *w, unsigned others)
{
	struct baton_queue_policy p = baton_queue_policy_default();
	p.mode = BATON_QUEUE_PULL;
	p.key_rate = (struct baton_key_rate){1, baton_duration_s(60)};
	world_open(w);
	assert_ok(baton_queue_set(w->store, BATON_STR("q"), &p));
	assert_ok(baton_queue_set(w->store, BATON_STR("r"), &p));
	start_keys(w->store, "q", 3);
	start_keys(w->store, "r", others);
	p.key_rate.starts = 2;
	spent(w->store);
	assert_ok(baton_queue_set(w->store, BATON_STR("q"), &p));
	struct cost c = spent(w->store);
	world_close(w);
	world_remove(w->path);
	return c;
}

static void a_change_of_rate_costs_nothing_for_other_queues(void **state)
{
	struct world *w = *state;
	w->sync = BATON_STORE_RELAXED;
	struct cost few = change_of_rate(w, 3), many = change_of_rate(w, 900);
	print_message("# %d steps with 3 keys of another queue, %d with 900\n", (int)few.steps,
	              (int)many.steps);
	assert_true(many.steps * 10 <= few.steps * 11);
}

#define SHARDS 1000

/* What a tick of so many shards costs, of which so many have something, one batch each. */
static struct cost tick_cost(struct world *w, uint32_t asked, uint32_t filled)
{
	static struct baton_shard shards[SHARDS];
	static struct baton_shard_answer answers[SHARDS];
	static char lanes[SHARDS * 8][16];
	struct baton_runner *r = NULL;
	const struct baton_runner_ask ask = {.name = BATON_STR("r"),
	                                     .weight = 1,
	                                     .ttl = baton_duration_s(10)};
	struct baton_queue_policy p = baton_queue_policy_default();
	struct baton_work_claims *claims = NULL;
	p.shards = SHARDS;
	world_open(w);
	assert_ok(baton_queue_set(w->store, BATON_STR("q"), &p));
	assert_ok(baton_runner_register(w->store, &ask, &r, NULL));
	for (uint32_t i = 0; i < SHARDS; i++)
		shards[i] = (struct baton_shard){BATON_STR("q"), i, 1, 1};
	assert_ok(baton_shard_take(r, shards, SHARDS, answers));
	for (uint32_t shard = 0, i = 0; shard < filled; i++) {
		snprintf(lanes[i], sizeof lanes[i], "%u", (unsigned)i);
		if (place_of_lane(BATON_STR("q"), baton_str_z(lanes[i]), SHARDS) >= asked)
			continue;
		put_many(w->store, "q", lanes[i], 1, 0);
		shard++;
	}
	const struct baton_tick t = {.shards = shards,
	                             .shard_count = asked,
	                             .owned = answers,
	                             .claims = 1};
	struct baton_tick none = t;
	none.shard_count = 0;
	assert_ok(baton_runner_tick(r, &none, &claims));
	spent(w->store);
	assert_ok(baton_runner_tick(r, &t, &claims));
	struct cost c = spent(w->store);
	assert_int_equal(claims ? claims->count : 0, filled > 0);
	baton_work_claims_free(claims);
	baton_runner_leave(r);
	world_close(w);
	world_remove(w->path);
	return c;
}

static void a_shard_that_has_nothing_costs_a_tick_nothing(void **state)
{
	struct world *w = *state;
	struct cost one = tick_cost(w, 1, 0), all = tick_cost(w, SHARDS, 0);
	print_message("# nothing: of 1 shard %d steps, of %d %d\n", (int)one.steps, SHARDS,
	              (int)all.steps);
	assert_true(all.steps <= one.steps && all.pages <= one.pages);
	one = tick_cost(w, 1, 1);
	all = tick_cost(w, SHARDS, 1);
	print_message("# one job: of 1 shard %d steps, of %d %d\n", (int)one.steps, SHARDS,
	              (int)all.steps);
	assert_true(all.steps <= one.steps + 20 && all.pages <= one.pages + 5);
}

/* What it takes to list what is in that state beside so many rows of jobs that are ready. */
static uint64_t list_cost(struct world *w, enum baton_batch_state state, size_t rows)
{
	struct baton_work_page *page = NULL;
	const struct baton_work_filter filter = {.state = state, .max = 10};
	world_open(w);
	put_many(w->store, "q", "", 50, 0);
	reject_many(w->store, 2);
	leave_claimed(w->store, 2);
	put_many(w->store, "q", "l", rows, 0);
	for (size_t i = 0; i < rows; i++)
		put_many(w->store, "q", "", 40, 0);
	assert_ok(baton_work_list(w->store, &filter, &page));
	baton_work_page_free(page);
	sqlite3 *db = ((struct sqlite_store *)w->store)->read.handle;
	for (sqlite3_stmt *s = NULL; (s = sqlite3_next_stmt(db, s));)
		sqlite3_stmt_status(s, SQLITE_STMTSTATUS_VM_STEP, 1);
	assert_ok(baton_work_list(w->store, &filter, &page));
	bool some = state == BATON_BATCH_CLAIMED || state == BATON_BATCH_DEAD;
	assert_int_equal(page->count, some ? 2 : 0);
	baton_work_page_free(page);
	uint64_t steps = 0;
	for (sqlite3_stmt *s = NULL; (s = sqlite3_next_stmt(db, s));)
		steps += (uint64_t)sqlite3_stmt_status(s, SQLITE_STMTSTATUS_VM_STEP, 1);
	world_close(w);
	world_remove(w->path);
	return steps;
}

/* Some steps for a job that has a row of its own, and none for those that stand together. */
static void a_list_of_what_is_claimed_does_not_look_at_what_waits(void **state)
{
	static const enum baton_batch_state states[] = {BATON_BATCH_CLAIMED, BATON_BATCH_DEAD,
	                                                BATON_BATCH_DONE, BATON_BATCH_RETRY};
	struct world *w = *state;
	w->sync = BATON_STORE_RELAXED;
	for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
		uint64_t few = list_cost(w, states[i], 10), many = list_cost(w, states[i], 110);
		print_message("# state %d: %d steps, and %d beside 4,100 more\n", (int)states[i],
		              (int)few, (int)many);
		assert_true(many <= few + 100 * 20);
	}
}

/* What it takes to read the counts when so many keys have two that wait. */
static uint64_t counts_cost(struct world *w, uint64_t keys)
{
	static const struct baton_str payload = {"x", 1};
	struct baton_batch b = {.queue = BATON_STR("q"), .payloads = &payload, .count = 1};
	char lane[16], key[16];
	struct baton_put put;
	struct baton_queue_info info;
	world_open(w);
	for (unsigned i = 0; i < 3 * keys; i++) {
		snprintf(lane, sizeof lane, "%u", i);
		snprintf(key, sizeof key, "%u", (unsigned)(i % keys));
		b.lane = i % 2 ? baton_str_z(lane) : BATON_STR("");
		b.key = baton_str_z(key);
		assert_ok(baton_work_put(w->store, &b, 1, &put));
	}
	assert_ok(baton_queue_get(w->store, BATON_STR("q"), &info));
	assert_int_equal(info.counts.waiting_on_key, 2 * keys);
	sqlite3 *db = ((struct sqlite_store *)w->store)->read.handle;
	for (sqlite3_stmt *s = NULL; (s = sqlite3_next_stmt(db, s));)
		sqlite3_stmt_status(s, SQLITE_STMTSTATUS_VM_STEP, 1);
	assert_ok(baton_queue_get(w->store, BATON_STR("q"), &info));
	uint64_t steps = 0;
	for (sqlite3_stmt *s = NULL; (s = sqlite3_next_stmt(db, s));)
		steps += (uint64_t)sqlite3_stmt_status(s, SQLITE_STMTSTATUS_VM_STEP, 1);
	world_close(w);
	world_remove(w->path);
	return steps;
}

static void how_many_wait_for_keys_is_read_at_the_same_cost(void **state)
{
	struct world *w = *state;
	w->sync = BATON_STORE_RELAXED;
	uint64_t few = counts_cost(w, 3), many = counts_cost(w, soak_scale(600, 100000));
	print_message("# counts: %d and %d steps\n", (int)few, (int)many);
	assert_true(many <= few + few / 10);
}

static int count_turn(void *turns)
{
	++*(uint64_t *)turns;
	return 0;
}

/* What it takes to check so many rows of four jobs that stand together, in hundreds of steps. */
static uint64_t check_cost(struct world *w, size_t rows)
{
	uint64_t turns = 0;
	world_open(w);
	for (size_t i = 0; i < rows; i++)
		put_many(w->store, "q", "", 4, 0);
	sqlite3 *db = ((struct sqlite_store *)w->store)->read.handle;
	sqlite3_progress_handler(db, 100, count_turn, &turns);
	assert_sound(w->store);
	sqlite3_progress_handler(db, 0, NULL, NULL);
	world_close(w);
	world_remove(w->path);
	return turns;
}

static void a_check_takes_as_much_longer_as_there_is_more(void **state)
{
	struct world *w = *state;
	w->sync = BATON_STORE_RELAXED;
	uint64_t few = check_cost(w, 200), many = check_cost(w, 1600);
	print_message("# check: %d hundred steps, and %d with eight times as much\n", (int)few,
	              (int)many);
	assert_true(many <= few * 10);
}

int main(void)
{
	skips_repair();
	const struct CMUnitTest tests[] = {
		WORLD_TEST(the_cost_of_a_life_does_not_grow),
		WORLD_TEST(a_hot_key_costs_others_nothing),
		WORLD_TEST(a_key_that_is_full_on_a_host_costs_others_nothing),
		WORLD_TEST(lanes_that_wait_for_keys_cost_those_who_have_them_nothing),
		WORLD_TEST(those_who_wait_for_several_keys_cost_those_who_have_them_nothing),
		WORLD_TEST(those_who_wait_in_queues_of_a_class_cost_those_who_run_nothing),
		WORLD_TEST(another_limit_of_a_class_settles_each_line_once),
		WORLD_TEST(many_claims_of_a_class_settle_each_line_a_few_times),
		WORLD_TEST(a_queue_without_a_class_costs_what_it_did),
		WORLD_TEST(a_key_that_one_job_alone_has_costs_little),
		WORLD_TEST(a_change_of_rate_costs_nothing_for_other_queues),
		WORLD_TEST(a_shard_that_has_nothing_costs_a_tick_nothing),
		WORLD_TEST(a_list_of_what_is_claimed_does_not_look_at_what_waits),
		WORLD_TEST(how_many_wait_for_keys_is_read_at_the_same_cost),
		WORLD_TEST(a_check_takes_as_much_longer_as_there_is_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
