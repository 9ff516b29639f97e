/* What a process remembers of queues in PostgreSQL is asked for less often, and never believed when
 * it is wrong. */
#include <stdio.h>
#include <string.h>

#include <baton/queue.h>
#include <baton/work.h>

#include "served.h"
#include "store/postgres/postgres.h"
#include "support/fake_clock.h"

#define CALL 8 /* that are put together */

/* Somebody for whom no time passes, so that nothing he remembers is too old. */
struct mind {
	struct fake_clock clock;
	struct baton_store *store;
};

static struct hints *hints_of(struct mind *k)
{
	return &((struct pg_store *)k->store)->hints;
}

static bool remembers(struct mind *k)
{
	struct recall r;
	return hints_recall(hints_of(k), BATON_STR("q"), 0, 1, &r);
}

static enum baton_err put_all(struct baton_store *store)
{
	static const struct baton_str payload = BATON_STR("0123456789");
	struct baton_batch batches[CALL];
	struct baton_put puts[CALL];
	for (int i = 0; i < CALL; i++)
		batches[i] = (struct baton_batch){.queue = BATON_STR("q"),
		                                  .payloads = &payload,
		                                  .count = 1};
	return baton_work_put(store, batches, CALL, puts);
}

/* How many there were. */
static size_t claim_all(struct baton_store *store)
{
	const struct baton_work_ask ask = {.queue = BATON_STR("q"),
	                                   .claims = CALL,
	                                   .max = 1,
	                                   .ttl = baton_duration_s(3600)};
	struct baton_work_claims *claims = NULL;
	assert_int_equal(baton_work_claim(store, &ask, &claims), BATON_OK);
	size_t count = claims ? claims->count : 0;
	baton_work_claims_free(claims);
	return count;
}

static void mind_begin(const struct bench *b, struct mind *k)
{
	fake_clock_init(&k->clock, (struct baton_mono){1});
	const struct baton_store_options options = {.where = baton_str_z(b->where),
	                                            .clock = &k->clock.clock};
	const struct baton_queue_policy p = baton_queue_policy_default();
	assert_int_equal(baton_queue_set(b->store, BATON_STR("q"), &p), BATON_OK);
	assert_int_equal(baton_store_open(&options, &k->store), BATON_OK);
	for (int i = 0; i < 2; i++) /* the first makes the row of counts */
		assert_int_equal(put_all(k->store), BATON_OK);
	assert_true(remembers(k));
}

static void mind_end(struct mind *k)
{
	baton_store_close(k->store);
	fake_clock_done(&k->clock);
}

static uint64_t ready(struct bench *b)
{
	struct baton_queue_info info;
	assert_int_equal(baton_queue_get(b->store, BATON_STR("q"), &info), BATON_OK);
	return info.counts.ready;
}

static void policy_of_another(struct bench *b, uint64_t payload_max, uint64_t waiting_max)
{
	struct baton_queue_policy p = baton_queue_policy_default();
	p.payload_max = (uint32_t)payload_max;
	p.waiting_max = waiting_max;
	assert_int_equal(baton_queue_set(b->store, BATON_STR("q"), &p), BATON_OK);
}

static void a_put_obeys_the_policy_that_another_has_set_meanwhile(void **state)
{
	struct bench *b = *state;
	struct mind k;
	mind_begin(b, &k);
	policy_of_another(b, 5, 0);
	assert_int_not_equal(put_all(k.store), BATON_OK);
	policy_of_another(b, 1000, 2 * CALL + 1);
	assert_int_not_equal(put_all(k.store), BATON_OK);
	assert_int_equal(ready(b), 2 * CALL);
	policy_of_another(b, 1000, 0);
	assert_int_equal(put_all(k.store), BATON_OK);
	assert_int_equal(ready(b), 3 * CALL);
	mind_end(&k);
}

static void nothing_is_claimed_from_a_queue_that_another_has_paused(void **state)
{
	struct bench *b = *state;
	struct mind k;
	mind_begin(b, &k);
	assert_int_equal(baton_queue_pause(b->store, BATON_STR("q"), true), BATON_OK);
	assert_int_equal(claim_all(k.store), 0);
	assert_int_equal(baton_queue_pause(b->store, BATON_STR("q"), false), BATON_OK);
	assert_int_equal(claim_all(k.store), CALL);
	mind_end(&k);
}

static void those_who_put_by_turns_lose_nothing_and_count_right(void **state)
{
	struct bench *b = *state;
	struct mind k;
	mind_begin(b, &k);
	for (int i = 0; i < 40; i++) {
		assert_int_equal(put_all(b->store), BATON_OK);
		assert_int_equal(put_all(k.store), BATON_OK);
		assert_int_equal(claim_all(b->store), CALL);
	}
	assert_int_equal(ready(b), 42 * CALL);
	mind_end(&k);
}

/* A copy from before the last puts takes the place of what there is, under those who are connected:
 * the last row of counts has the same number again, once somebody else has put as often. */
static void what_was_brought_back_is_not_taken_for_what_is_remembered(void **state)
{
	struct bench *b = *state;
	struct mind k;
	static const char *const tables[] = {"queue", "tally", "bulk", "mark", "batch"};
	char sql[300];
	mind_begin(b, &k);
	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
		snprintf(sql, sizeof sql, "CREATE TABLE public.%s AS SELECT * FROM baton.%s",
		         tables[i], tables[i]);
		cluster_run(b->where, sql);
	}
	assert_int_equal(put_all(k.store), BATON_OK);
	assert_true(remembers(&k));
	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
		snprintf(sql, sizeof sql,
		         "DELETE FROM baton.%s; INSERT INTO baton.%s OVERRIDING SYSTEM VALUE "
		         "SELECT * FROM public.%s",
		         tables[i], tables[i], tables[i]);
		cluster_run(b->where, sql);
	}
	assert_int_equal(put_all(b->store), BATON_OK);
	assert_int_equal(put_all(k.store), BATON_OK);
	assert_int_equal(ready(b), 4 * CALL);
	assert_int_equal(claim_all(k.store), CALL);
	mind_end(&k);
}

/* Another server may answer now. */
static void nothing_is_remembered_across_connections(void **state)
{
	struct bench *b = *state;
	struct mind k;
	mind_begin(b, &k);
	uint32_t queue = 0;
	struct recall r;
	assert_true(hints_recall(hints_of(&k), BATON_STR("q"), 0, 1, &r));
	queue = r.queue;
	cluster_run(b->where, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
	                      "WHERE datname = current_database() AND pid <> pg_backend_pid()");
	const struct baton_str payload = BATON_STR("x");
	const struct baton_batch other = {.queue = BATON_STR("other"),
	                                  .payloads = &payload,
	                                  .count = 1};
	struct baton_put put;
	assert_int_equal(baton_work_put(k.store, &other, 1, &put), BATON_OK);
	assert_false(hints_recall(hints_of(&k), BATON_STR(""), queue, 1, &r));
	assert_int_equal(put_all(k.store), BATON_OK);
	assert_true(remembers(&k));
	assert_int_equal(ready(b), 3 * CALL);
	mind_end(&k);
}

static void put_in_lanes(struct baton_store *store)
{
	static const struct baton_str payload = BATON_STR("x");
	const struct baton_batch batches[] = {{.queue = BATON_STR("q"),
	                                       .lane = BATON_STR("a"),
	                                       .priority = BATON_PRIORITY_MAX,
	                                       .payloads = &payload,
	                                       .count = 1},
	                                      {.queue = BATON_STR("q"),
	                                       .lane = BATON_STR("b"),
	                                       .priority = BATON_PRIORITY_MAX,
	                                       .payloads = &payload,
	                                       .count = 1}};
	struct baton_put puts[2];
	assert_int_equal(baton_work_put(store, batches, 2, puts), BATON_OK);
}

static struct baton_work_claims *claim_lanes(struct baton_store *store)
{
	const struct baton_work_ask ask = {.queue = BATON_STR("q"),
	                                   .claims = 2,
	                                   .max = 1,
	                                   .ttl = baton_duration_s(3600)};
	struct baton_work_claims *claims = NULL;
	assert_int_equal(baton_work_claim(store, &ask, &claims), BATON_OK);
	assert_non_null(claims);
	assert_int_equal(claims->count, 2);
	return claims;
}

static void end_lanes(struct baton_store *store, const struct baton_work_claims *claims)
{
	struct baton_work_end ends[2];
	struct baton_work_ended ended[2];
	for (int i = 0; i < 2; i++)
		ends[i] = (struct baton_work_end){.proof = claims->claims[i].proof,
		                                  .how = BATON_COMPLETE};
	assert_int_equal(baton_work_end(store, ends, 2, ended), BATON_OK);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ended[i].err, BATON_OK);
}

static uint64_t head_of(const struct baton_work_claims *claims, size_t at)
{
	struct claim_name name;
	assert_true(claim_name_parse(claims->claims[at].proof.id, &name));
	return name.head;
}

/* Of each claim with a row of its own the queue is known, and what is not so is found out. */
static void claims_of_lanes_are_ended_whatever_is_remembered_of_them(void **state)
{
	struct bench *b = *state;
	struct mind k;
	struct hint_claim found;
	mind_begin(b, &k);
	put_in_lanes(k.store);
	struct baton_work_claims *claims = claim_lanes(k.store);
	for (size_t i = 0; i < 2; i++)
		assert_true(hints_find_apart(hints_of(&k), head_of(claims, i), &found));
	end_lanes(b->store, claims);
	end_lanes(k.store, claims); /* once more: the answer is the same */
	baton_work_claims_free(claims);

	put_in_lanes(k.store);
	claims = claim_lanes(k.store);
	for (size_t i = 0; i < 2; i++) {
		assert_true(hints_find_apart(hints_of(&k), head_of(claims, i), &found));
		found.queue++;
		found.stripe = STRIPES_OF_RUNNERS;
		hints_claimed_apart(hints_of(&k), &found);
	}
	end_lanes(k.store, claims);
	baton_work_claims_free(claims);
	assert_int_equal(ready(b), 2 * CALL);
	mind_end(&k);
}

/* Each time it is wrong is an error in the server's log. */
static void what_is_wrong_again_and_again_is_gone_by_less_and_less(void **state)
{
	struct hints h;
	struct recall r = {.name = "q", .queue = 1}, found;
	unsigned wrong = 0, right = 0;
	(void)state;
	hints_init(&h);
	hints_remember(&h, &r);
	for (int i = 0; i < 100000; i++) {
		if (!hints_recall(&h, BATON_STR("q"), 0, 0, &found))
			continue;
		wrong++;
		hints_unsure(&h, &found);
		hints_remember(&h, &r);
	}
	assert_in_range(wrong, 5, 20);
	for (int i = 0; i < 100000; i++) {
		if (!hints_recall(&h, BATON_STR("q"), 0, 0, &found))
			continue;
		right++;
		hints_sure(&h, &found);
	}
	assert_true(right > 80000);
	hints_unsure(&h, &r);
	for (wrong = 0; !hints_recall(&h, BATON_STR("q"), 0, 0, &found); wrong++)
		;
	assert_int_equal(wrong, 32);
	hints_done(&h);
}

/* Whose place is taken by another queue's. */
static void what_is_not_remembered_any_more_makes_no_other_queue_unsure(void **state)
{
	struct hints h;
	struct recall r = {.queue = 1}, found;
	(void)state;
	hints_init(&h);
	for (uint32_t i = 0; i < HINTS_QUEUES; i++) {
		r.at_ns = i + 1;
		snprintf(r.name, sizeof r.name, "q%u", i);
		hints_remember(&h, &r);
	}
	snprintf(r.name, sizeof r.name, "gone");
	hints_unsure(&h, &r);
	hints_drop(&h, BATON_STR("q1"));
	assert_false(hints_recall(&h, BATON_STR("gone"), 0, 0, &found));
	assert_false(hints_recall(&h, BATON_STR("q1"), 0, 0, &found));
	assert_true(hints_recall(&h, BATON_STR("q0"), 0, 0, &found));
	hints_done(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SERVED_TEST(a_put_obeys_the_policy_that_another_has_set_meanwhile),
		SERVED_TEST(nothing_is_claimed_from_a_queue_that_another_has_paused),
		SERVED_TEST(those_who_put_by_turns_lose_nothing_and_count_right),
		SERVED_TEST(what_was_brought_back_is_not_taken_for_what_is_remembered),
		SERVED_TEST(nothing_is_remembered_across_connections),
		SERVED_TEST(claims_of_lanes_are_ended_whatever_is_remembered_of_them),
		cmocka_unit_test(what_is_wrong_again_and_again_is_gone_by_less_and_less),
		cmocka_unit_test(what_is_not_remembered_any_more_makes_no_other_queue_unsure),
	};
	return served_main("hints", tests, sizeof tests / sizeof tests[0]);
}
