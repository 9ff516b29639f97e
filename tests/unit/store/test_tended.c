/* Up to when nothing is due in a queue, and up to which number it has no head: whoever claims says
 * so in the store, and the next one, in whatever process, begins there. What comes before that
 * after all is found: a clock may be set back, and the second of a lane was put long before others.
 */
#include <stdio.h>

#include <baton/shard.h>

#include "queue/place.h"
#include "served.h"
#include "store/store.h"
#include "world.h"

#define HOUR_MS INT64_C(3600000)
#define YEARS_MS (20 * 365 * 24 * HOUR_MS)
#define SHARED 8  /* so many that are put together stand in one row */
#define MANY 1010 /* more than are made ready at once */
#define CALL_MAX 505

/* A store on a clock of its own. */
struct timed {
	struct bench *b;
	struct fake_clock clock;
	struct baton_store *store;
};

static void timed_open(struct timed *t, struct bench *b)
{
	t->b = b;
	fake_clock_init(&t->clock, (struct baton_mono){1});
	const struct baton_store_options options = {.where = baton_str_z(b->where),
	                                            .owner = BATON_STR("tester"),
	                                            .clock = &t->clock.clock};
	assert_ok(baton_store_open(&options, &t->store));
}

static void timed_close(struct timed *t)
{
	baton_store_close(t->store);
	fake_clock_done(&t->clock);
}

static int64_t wall_ms(const struct timed *t)
{
	return t->clock.clock.wall(&t->clock.clock).ms;
}

static void set_wall(struct timed *t, int64_t ms)
{
	fake_clock_set_wall(&t->clock, (struct baton_store_time){ms});
}

static long long since_ms(const struct timed *t)
{
	return cluster_number(t->b->where, "SELECT baton.since(id) FROM baton.queue");
}

static void assert_fits(const struct timed *t)
{
	uint64_t faults = 1;
	assert_ok(baton_store_check(t->store, NULL, NULL, &faults));
	assert_int_equal(faults, 0);
}

static void put_later(struct timed *t, size_t count, int64_t delay_ms)
{
	static struct baton_batch batches[CALL_MAX];
	static struct baton_put puts[CALL_MAX];
	static const struct baton_str payload = {"late", 4};
	for (size_t i = 0; i < count; i++)
		batches[i] = (struct baton_batch){.queue = BATON_STR("q"),
		                                  .delay = baton_duration_ms(delay_ms),
		                                  .payloads = &payload,
		                                  .count = 1};
	assert_ok(baton_work_put(t->store, batches, count, puts));
}

/* One claim for a second; NULL: there is nothing. */
static struct baton_work_claims *claim_one(struct timed *t)
{
	struct baton_work_claims *claims = NULL;
	assert_ok(claim_some(t->store, "q", 1, &claims));
	return claims;
}

static void live(struct timed *t)
{
	assert_ok(put_some(t->store, "q", "lane", 1));
	struct baton_work_claims *claims = claim_one(t);
	assert_non_null(claims);
	assert_ok(complete(t->store, &claims->claims[0], NULL));
	baton_work_claims_free(claims);
}

static void who_comes_begins_where_the_last_one_was(void **state)
{
	struct timed t;
	timed_open(&t, *state);
	live(&t);
	assert_int_equal(since_ms(&t), wall_ms(&t));
	fake_clock_advance(&t.clock, baton_duration_ms(HOUR_MS));
	live(&t);
	assert_int_equal(since_ms(&t), wall_ms(&t));
	/* Not while something is due that was not seen to. */
	const int64_t before = wall_ms(&t);
	put_later(&t, CALL_MAX, 1000);
	put_later(&t, CALL_MAX, 1000);
	fake_clock_advance(&t.clock, baton_duration_ms(HOUR_MS));
	baton_work_claims_free(claim_one(&t));
	assert_int_equal(since_ms(&t), before);
	assert_int_equal(cluster_number(t.b->where, "SELECT count(*) FROM baton.batch "
	                                            "WHERE state = 2"),
	                 MANY - 1000);
	baton_work_claims_free(claim_one(&t));
	assert_int_equal(since_ms(&t), wall_ms(&t));
	assert_fits(&t);
	timed_close(&t);
}

/* What somebody does after the clock was set back; it gives work that can be claimed 2 s later. */
static void puts_with_a_delay(struct timed *t)
{
	put_later(t, 1, 1000);
}

static void claims_and_is_gone(struct timed *t)
{
	assert_ok(put_some(t->store, "q", "x", 1));
	baton_work_claims_free(claim_one(t));
}

static void claims_of_many_and_is_gone(struct timed *t)
{
	assert_ok(put_some(t->store, "q", "", SHARED));
	for (int i = 0; i < SHARED; i++)
		baton_work_claims_free(claim_one(t));
	assert_true(cluster_number(t->b->where, "SELECT count(*) FROM baton.chunk") > 0);
}

static void fails(struct timed *t)
{
	assert_ok(put_some(t->store, "q", "x", 1));
	struct baton_work_claims *claims = claim_one(t);
	const struct baton_work_end end = {.proof = claims->claims[0].proof,
	                                   .how = BATON_FAIL,
	                                   .delay = baton_duration_ms(1000)};
	struct baton_work_ended ended;
	assert_ok(baton_work_end(t->store, &end, 1, &ended));
	assert_ok(ended.err);
	baton_work_claims_free(claims);
}

static void puts_with_a_delay_and_claims_nothing(struct timed *t)
{
	put_later(t, 1, 1000);
	assert_null(claim_one(t));
}

static void what_is_given_a_time_that_has_passed_before_is_found(void **state)
{
	static void (*const deeds[])(struct timed * t) = {
		puts_with_a_delay,
		claims_and_is_gone,
		claims_of_many_and_is_gone,
		fails,
		puts_with_a_delay_and_claims_nothing,
	};
	for (size_t i = 0; i < sizeof deeds / sizeof deeds[0]; i++) {
		struct timed t;
		timed_open(&t, *state);
		const int64_t early = wall_ms(&t);
		fake_clock_advance(&t.clock, baton_duration_ms(HOUR_MS));
		live(&t);
		assert_int_equal(since_ms(&t), early + HOUR_MS);
		set_wall(&t, early);
		deeds[i](&t);
		assert_true(since_ms(&t) <= early + 1000);
		assert_fits(&t);
		set_wall(&t, early + 2 * HOUR_MS);
		struct baton_work_claims *found = claim_one(&t);
		assert_non_null(found);
		baton_work_claims_free(found);
		assert_fits(&t);
		cluster_run(t.b->where, "TRUNCATE baton.batch, baton.bulk, baton.claim, "
		                        "baton.chunk, baton.mark, baton.tally, baton.queue");
		timed_close(&t);
	}
}

/* A claim that has expired can be taken; it is live again when the clock is set back, and expires
 * once more. */
static void what_expires_for_the_second_time_is_found(void **state)
{
	struct timed t;
	timed_open(&t, *state);
	const int64_t early = wall_ms(&t);
	put_later(&t, 1, 1500);
	assert_ok(put_some(t.store, "q", "", 1));
	struct baton_work_claims *lost = claim_one(&t);
	set_wall(&t, early + 2000);
	struct baton_work_claims *first = claim_one(&t);
	assert_true(first->claims[0].batches[0].seq < lost->claims[0].batches[0].seq);
	assert_ok(complete(t.store, &first->claims[0], NULL));
	set_wall(&t, early + 500);
	assert_null(claim_one(&t));
	assert_fits(&t);
	set_wall(&t, early + HOUR_MS);
	struct baton_work_claims *found = claim_one(&t);
	assert_non_null(found);
	assert_true(found->claims[0].batches[0].seq == lost->claims[0].batches[0].seq);
	baton_work_claims_free(found);
	baton_work_claims_free(first);
	baton_work_claims_free(lost);
	timed_close(&t);
}

static void what_a_user_puts_for_a_time_that_has_passed_before_is_found(void **state)
{
	struct timed t;
	timed_open(&t, *state);
	fake_clock_advance(&t.clock, baton_duration_ms(YEARS_MS));
	live(&t);
	assert_int_equal(since_ms(&t), wall_ms(&t));
	cluster_run(t.b->where, "SELECT baton.put('q', 'late', 'x', '{\"delay\": \"1 hour\"}')");
	assert_true(since_ms(&t) < wall_ms(&t));
	assert_fits(&t);
	struct baton_work_claims *found = claim_one(&t);
	assert_non_null(found);
	baton_work_claims_free(found);
	timed_close(&t);
}

/* Jobs in lanes of their own are put, claimed and completed: what was before is passed over. */
static void pass_over(struct timed *t)
{
	static struct baton_batch batches[CALL_MAX];
	static struct baton_put puts[CALL_MAX];
	static struct baton_work_end ends[CALL_MAX];
	static struct baton_work_ended ended[CALL_MAX];
	static char names[CALL_MAX][16];
	static const struct baton_str payload = {"other", 5};
	const struct baton_work_ask ask = {.queue = BATON_STR("q"), .claims = 100, .max = 1};
	for (unsigned i = 0; i < CALL_MAX; i++) {
		snprintf(names[i], sizeof names[i], "of its own %u", i);
		batches[i] = (struct baton_batch){.queue = BATON_STR("q"),
		                                  .lane = baton_str_z(names[i]),
		                                  .payloads = &payload,
		                                  .count = 1};
	}
	assert_ok(baton_work_put(t->store, batches, CALL_MAX, puts));
	for (struct baton_work_claims *claims = NULL;; claims = NULL) {
		assert_ok(baton_work_claim(t->store, &ask, &claims));
		if (!claims)
			break;
		for (size_t i = 0; i < claims->count; i++)
			ends[i] = (struct baton_work_end){.proof = claims->claims[i].proof,
			                                  .how = BATON_COMPLETE};
		assert_ok(baton_work_end(t->store, ends, claims->count, ended));
		baton_work_claims_free(claims);
	}
	assert_true(cluster_number(t->b->where, "SELECT places[10] FROM baton.low") > 2 * SHARED);
	assert_fits(t);
}

static void the_second_of_a_lane(struct timed *t)
{
	assert_ok(put_some(t->store, "q", "x", 1));
	assert_ok(put_some(t->store, "q", "x", 1));
	struct baton_work_claims *first = claim_one(t);
	pass_over(t);
	assert_ok(complete(t->store, &first->claims[0], NULL));
	baton_work_claims_free(first);
}

static void what_was_given_back(struct timed *t)
{
	assert_ok(put_some(t->store, "q", "", 1));
	struct baton_work_claims *first = claim_one(t);
	pass_over(t);
	const struct baton_work_end end = {.proof = first->claims[0].proof, .how = BATON_ABANDON};
	struct baton_work_ended ended;
	assert_ok(baton_work_end(t->store, &end, 1, &ended));
	baton_work_claims_free(first);
}

static void what_has_expired(struct timed *t)
{
	assert_ok(put_some(t->store, "q", "", 1));
	baton_work_claims_free(claim_one(t));
	pass_over(t);
	fake_clock_advance(&t->clock, baton_duration_ms(HOUR_MS));
}

static void what_was_delayed(struct timed *t)
{
	put_later(t, 1, 1000);
	pass_over(t);
	fake_clock_advance(&t->clock, baton_duration_ms(HOUR_MS));
}

/* One of those that stand in one row is removed: the others get rows of their own. */
static void what_stood_in_a_row_with_others(struct timed *t)
{
	enum baton_cancelled cancelled;
	assert_ok(put_some(t->store, "q", "", SHARED));
	struct baton_work_claims *first = claim_one(t);
	assert_true(cluster_number(t->b->where, "SELECT count(*) FROM baton.bulk") > 0);
	cluster_run(t->b->where, "INSERT INTO baton.low VALUES (1, 0, 1, "
	                         "'{0,0,0,0,0,0,0,0,0,1000}')");
	assert_ok(baton_work_cancel(t->store, &first->claims[0].batches[0].id, 1, &cancelled));
	assert_int_equal(cluster_number(t->b->where, "SELECT count(*) FROM baton.bulk"), 0);
	baton_work_claims_free(first);
}

static void heads_that_come_before_others_after_all_are_found(void **state)
{
	static void (*const deeds[])(struct timed * t) = {
		the_second_of_a_lane,
		what_was_given_back,
		what_has_expired,
		what_was_delayed,
		what_stood_in_a_row_with_others,
	};
	for (size_t i = 0; i < sizeof deeds / sizeof deeds[0]; i++) {
		struct timed t;
		cluster_run(((struct bench *)*state)->where,
		            "TRUNCATE baton.batch, baton.bulk, baton.claim, baton.chunk, "
		            "baton.mark, baton.tally, baton.low, baton.queue RESTART IDENTITY; "
		            "SELECT setval('baton.seq', 1, false)");
		timed_open(&t, *state);
		deeds[i](&t);
		assert_fits(&t);
		struct baton_work_claims *found = claim_one(&t);
		assert_non_null(found);
		assert_true(found->claims[0].batches[0].seq <= SHARED);
		baton_work_claims_free(found);
		timed_close(&t);
	}
}

static struct baton_work_claims *tick(struct baton_runner *r, uint32_t shard,
                                      const struct baton_work_end *end)
{
	struct baton_shard s = {BATON_STR("q"), shard, 1, 1};
	struct baton_shard_answer answer;
	struct baton_work_ended ended;
	struct baton_work_claims *claims = NULL;
	const struct baton_tick t = {.shards = &s,
	                             .shard_count = 1,
	                             .owned = &answer,
	                             .ends = end,
	                             .ended = &ended,
	                             .end_count = end ? 1 : 0};
	assert_ok(baton_runner_tick(r, &t, &claims));
	return claims;
}

static uint64_t version(const struct timed *t)
{
	uint64_t version = 0;
	assert_ok(t->store->ops->version(t->store, &version));
	return version;
}

static long long state_row(const struct timed *t)
{
	return cluster_number(t->b->where, "SELECT xmin::text::bigint FROM baton.state");
}

/* Its owner may be another process, and sleep. All transactions read baton.state, so it is not
 * written for that. */
static void who_sees_that_a_window_is_over_says_so_in_its_queue_alone(void **state)
{
	struct timed t;
	const struct baton_runner_ask ask = {.name = BATON_STR("r"),
	                                     .weight = 1,
	                                     .ttl = baton_duration_s(1000)};
	const struct baton_str payload = BATON_STR("x");
	const struct baton_batch keyed = {.queue = BATON_STR("q"),
	                                  .key = BATON_STR("k"),
	                                  .payloads = &payload,
	                                  .count = 1};
	const struct baton_batch two[] = {keyed, keyed};
	const uint32_t its = place_of_lane(keyed.queue, keyed.key, 2);
	const struct baton_shard shards[] = {{keyed.queue, 0, 1, 1}, {keyed.queue, 1, 1, 1}};
	struct baton_shard_answer answers[2];
	struct baton_queue_policy p = baton_queue_policy_default();
	struct baton_runner *r = NULL;
	timed_open(&t, *state);
	p.mode = BATON_QUEUE_RUNNER;
	p.shards = 2;
	p.key_rate = (struct baton_key_rate){1, baton_duration_s(1)};
	assert_ok(baton_queue_set(t.store, keyed.queue, &p));
	assert_ok(baton_runner_register(t.store, &ask, &r, NULL));
	assert_ok(baton_shard_take(r, shards, 2, answers));
	assert_ok(baton_work_put(t.store, two, 2, NULL));
	struct baton_work_claims *first = tick(r, its, NULL);
	assert_non_null(first);
	const struct baton_work_end end = {.proof = first->claims[0].proof, .how = BATON_COMPLETE};
	assert_null(tick(r, its, &end));
	baton_work_claims_free(first);
	set_wall(&t, wall_ms(&t) + 1000);
	const uint64_t before = version(&t);
	const long long row = state_row(&t);
	assert_null(tick(r, 1 - its, NULL));
	assert_int_equal(state_row(&t), row);
	assert_true(version(&t) != before);
	assert_fits(&t);
	struct baton_work_claims *second = tick(r, its, NULL);
	assert_non_null(second);
	baton_work_claims_free(second);
	baton_runner_leave(r);
	timed_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SERVED_TEST(who_comes_begins_where_the_last_one_was),
		SERVED_TEST(what_is_given_a_time_that_has_passed_before_is_found),
		SERVED_TEST(what_expires_for_the_second_time_is_found),
		SERVED_TEST(what_a_user_puts_for_a_time_that_has_passed_before_is_found),
		SERVED_TEST(heads_that_come_before_others_after_all_are_found),
		SERVED_TEST(who_sees_that_a_window_is_over_says_so_in_its_queue_alone),
	};
	return served_main("tended", tests, sizeof tests / sizeof tests[0]);
}
