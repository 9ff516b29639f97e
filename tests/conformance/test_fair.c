/* Keys that take turns. */
#include <stdlib.h>

#include <baton/shard.h>

#include "support/soak.h"
#include "world.h"

static struct baton_batch keyed(const char *key)
{
	struct baton_batch b = batch_of("q", "", NULL);
	b.key = baton_str_z(key);
	return b;
}

static struct baton_batch_id put_key(struct world *w, const char *key)
{
	struct baton_batch b = keyed(key);
	return put_batch(w, &b);
}

static struct baton_batch_id put_key_later(struct world *w, const char *key, int64_t ms)
{
	struct baton_batch b = keyed(key);
	b.delay = baton_duration_ms(ms);
	return put_batch(w, &b);
}

/* One job for each letter, of the key that it is. */
static void put_keys(struct world *w, const char *letters)
{
	for (; *letters; letters++)
		put_key(w, (const char[]){*letters, '\0'});
}

static void fair_is(struct world *w, enum baton_key_fair fair, uint32_t limit)
{
	struct baton_queue_policy p = policy(w, "q");
	p.key_fair = fair;
	p.key_limit = limit;
	p.retry.backoff = BATON_BACKOFF_NONE;
	set_policy(w, "q", &p);
}

static void one_shard(struct world *w)
{
	struct baton_queue_policy p = policy(w, "q");
	p.shards = 1;
	set_policy(w, "q", &p);
}

/* Claims and completes one job after the other, and says of which keys they were: a letter each. */
static void assert_order(struct world *w, const char *letters)
{
	char were[100] = "";
	for (size_t i = 0; i < sizeof were - 1; i++) {
		const struct baton_work_claim *c = claim(w, "q", 1);
		if (!c)
			break;
		were[i] = c->key.ptr[0];
		were[i + 1] = '\0';
		complete(w, c);
	}
	assert_string_equal(were, letters);
	assert_sound(w);
}

static void keys_come_in_the_order_of_arrival_when_nothing_is_said(void **state)
{
	struct world *w = *state;
	assert_int_equal(policy(w, "q").key_fair, BATON_KEY_FAIR_OFF);
	put_keys(w, "aaabbc");
	assert_order(w, "aaabbc");
}

static void keys_take_turns(void **state)
{
	struct world *w = *state;
	fair_is(w, BATON_KEY_FAIR_ON, 1);
	put_keys(w, "aaaabbc");
	assert_order(w, "abcabaa");
}

static void within_a_key_the_order_stays(void **state)
{
	struct world *w = *state;
	struct baton_batch_id a[3], b[3];
	fair_is(w, BATON_KEY_FAIR_ON, 1);
	for (int i = 0; i < 3; i++)
		a[i] = put_key(w, "a");
	for (int i = 0; i < 3; i++)
		b[i] = put_key(w, "b");
	for (int i = 0; i < 3; i++) {
		const struct baton_work_claim *c = claim(w, "q", 1);
		assert_id(c->batches[0].id, a[i]);
		complete(w, c);
		c = claim(w, "q", 1);
		assert_id(c->batches[0].id, b[i]);
		complete(w, c);
	}
	assert_sound(w);
}

static void several_of_one_call_take_turns_too(void **state)
{
	struct world *w = *state;
	const struct baton_work_ask ask = {.queue = BATON_STR("q"),
	                                   .ttl = baton_duration_ms(1000),
	                                   .claims = 7,
	                                   .max = 1};
	char were[8] = "";
	fair_is(w, BATON_KEY_FAIR_ON, 3);
	put_keys(w, "aaaaabbc");
	const struct baton_work_claims *c = claim_many(w, &ask);
	assert_int_equal(c->count, 6); /* three of "a" at a time */
	for (size_t i = 0; i < c->count; i++)
		were[i] = c->claims[i].key.ptr[0];
	assert_string_equal(were, "abcaba");
	assert_sound(w);
}

static void work_without_a_key_comes_when_it_came(void **state)
{
	struct world *w = *state;
	fair_is(w, BATON_KEY_FAIR_ON, 1);
	put_keys(w, "aa");
	struct baton_batch_id none = put(w, "q", "");
	put_keys(w, "b");
	complete(w, claim(w, "q", 1));
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_id(c->batches[0].id, none);
	complete(w, c);
	assert_order(w, "ba");
}

static void a_higher_priority_comes_before_any_turn(void **state)
{
	struct world *w = *state;
	struct baton_batch urgent = keyed("a");
	fair_is(w, BATON_KEY_FAIR_ON, 1);
	urgent.priority = 5;
	for (int i = 0; i < 3; i++)
		put_batch(w, &urgent);
	put_keys(w, "bba");
	assert_order(w, "aaabab");
}

/* A job waits for one of each other key at most, however many of them wait. */
static void a_long_line_delays_another_key_by_one_job(void **state)
{
	struct world *w = *state;
	unsigned many = soak_scale(1000, world_is_served() ? 5000 : 100000);
	struct baton_batch *hot = calloc(many, sizeof *hot);
	fair_is(w, BATON_KEY_FAIR_ON, 1);
	for (unsigned i = 0; i < many; i++)
		hot[i] = keyed(i % 2 ? "hot" : "warm");
	assert_int_equal(baton_work_put(w->store, hot, many, NULL), BATON_OK);
	free(hot);
	for (int round = 0; round < 20; round++) {
		struct baton_batch_id one = put_key(w, "one");
		const struct baton_work_claim *c = claim(w, "q", 1);
		int before = 0;
		for (; strcmp(c->batches[0].id.text, one.text) != 0; before++) {
			complete(w, c);
			c = claim(w, "q", 1);
		}
		complete(w, c);
		assert_true(before <= 2);
	}
}

/* Each would stand before "z" with its own number. */
static void work_that_becomes_due_does_not_pass_those_that_wait(void **state)
{
	struct world *w = *state;
	fair_is(w, BATON_KEY_FAIR_ON, 1);
	put_key_later(w, "a", 100);
	put_key_later(w, "a", 200);
	struct baton_batch_id third = put_key_later(w, "a", 300);
	put_keys(w, "zz");
	advance(w, 100);
	complete(w, claim(w, "q", 1));
	advance(w, 100);
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_str(c->key, "a");
	complete(w, c);
	assert_int_equal(revive(w, &third), BATON_OK);
	assert_order(w, "zaa");
}

/* Its line has begun with one that was put just now, and so has no turn. */
static void what_was_delayed_takes_a_line_no_further_forward(void **state)
{
	struct world *w = *state;
	fair_is(w, BATON_KEY_FAIR_ON, 1);
	put_key_later(w, "a", 1000);
	put_keys(w, "zza");
	advance(w, 1000);
	assert_order(w, "zaza");
	struct baton_batch_id early = put_key_later(w, "a", 1000);
	put_keys(w, "zza");
	assert_int_equal(revive(w, &early), BATON_OK);
	assert_order(w, "zaza");
}

static void what_was_delayed_does_not_hold_its_line_back(void **state)
{
	struct world *w = *state;
	fair_is(w, BATON_KEY_FAIR_ON, 1);
	put_key_later(w, "a", 1000);
	put_keys(w, "az");
	advance(w, 1000);
	assert_order(w, "aza");
	struct baton_batch_id early = put_key_later(w, "a", 1000);
	put_keys(w, "az");
	assert_int_equal(revive(w, &early), BATON_OK);
	assert_order(w, "aza");
}

/* Its turn is a later number than that of the first that waits. */
static void a_line_that_was_claimed_from_keeps_its_turn(void **state)
{
	struct world *w = *state;
	fair_is(w, BATON_KEY_FAIR_ON, 1);
	put_key_later(w, "a", 1000);
	struct baton_batch_id early = put_key_later(w, "a", 2000);
	put_keys(w, "aaabbz");
	complete(w, claim(w, "q", 1));
	advance(w, 1000);
	complete(w, claim(w, "q", 1)); /* b */
	assert_int_equal(revive(w, &early), BATON_OK);
	assert_order(w, "zabaaa");
}

/* It has the place of the one that it replaces, or that is skipped for it. */
static void who_comes_instead_of_another_one_stands_in_its_place(void **state)
{
	struct world *w = *state;
	fair_is(w, BATON_KEY_FAIR_ON, 1);
	struct baton_queue_policy p = policy(w, "q");
	p.on_conflict = BATON_CONFLICT_REPLACE;
	set_policy(w, "q", &p);
	for (int round = 0; round < 2; round++) {
		struct baton_batch_id early = put_key_later(w, "a", 1000);
		put_keys(w, "yaz");
		if (round == 0)
			advance(w, 1000);
		else
			assert_int_equal(revive(w, &early), BATON_OK);
		assert_order(w, "yaz");
	}
}

static void work_that_is_given_back_does_not_give_its_turn_back(void **state)
{
	struct world *w = *state;
	fair_is(w, BATON_KEY_FAIR_ON, 1);
	put_keys(w, "aab");
	assert_int_equal(end(w, claim(w, "q", 1), BATON_ABANDON).err, BATON_OK);
	assert_order(w, "baa");
	put_keys(w, "aab");
	assert_non_null(claim(w, "q", 1));
	advance(w, 1000);
	assert_order(w, "baa");
}

/* What gives up its key queues behind all, with a new number; what keeps it has had its turn. */
static void work_that_fails_has_had_its_turn(void **state)
{
	struct world *w = *state;
	fair_is(w, BATON_KEY_FAIR_ON, 1);
	put_keys(w, "aab");
	assert_int_equal(end(w, claim(w, "q", 1), BATON_FAIL).err, BATON_OK);
	assert_order(w, "baa");
	struct baton_queue_policy p = policy(w, "q");
	p.hold_on_retry = BATON_HOLD_GIVE_UP;
	set_policy(w, "q", &p);
	put_keys(w, "aab");
	assert_int_equal(end(w, claim(w, "q", 1), BATON_FAIL).err, BATON_OK);
	assert_order(w, "baa");
}

static void a_cancelled_head_takes_its_line_no_further_forward(void **state)
{
	struct world *w = *state;
	fair_is(w, BATON_KEY_FAIR_ON, 1);
	put_key(w, "a");
	struct baton_batch_id second = put_key(w, "a");
	put_keys(w, "ab");
	complete(w, claim(w, "q", 1));
	assert_int_equal(cancel(w, &second), BATON_CANCEL_REMOVED);
	assert_order(w, "ba");
}

static void turns_begin_and_end_while_work_waits(void **state)
{
	struct world *w = *state;
	put_keys(w, "aaaabbb");
	complete(w, claim(w, "q", 1));
	fair_is(w, BATON_KEY_FAIR_ON, 1);
	assert_sound(w);
	complete(w, claim(w, "q", 1)); /* a */
	complete(w, claim(w, "q", 1)); /* b */
	fair_is(w, BATON_KEY_FAIR_OFF, 1);
	assert_sound(w);
	assert_order(w, "aabb");
	put_keys(w, "aabb");
	fair_is(w, BATON_KEY_FAIR_ON, 1);
	assert_order(w, "abab");
}

/* In some stores a key that one job has takes another way. */
static void keys_of_one_job_each_take_turns_once_they_have_more(void **state)
{
	struct world *w = *state;
	put_keys(w, "abc");
	const struct baton_work_claim *a = claim(w, "q", 1);
	fair_is(w, BATON_KEY_FAIR_ON, 1);
	assert_sound(w);
	put_keys(w, "abc");
	const struct baton_work_claim *b = claim(w, "q", 1);
	assert_str(b->key, "b");
	assert_int_equal(end(w, b, BATON_ABANDON).err, BATON_OK);
	complete(w, a);
	assert_order(w, "cabcb");
}

static void runners_are_given_the_work_of_keys_in_turn(void **state)
{
	struct world *w = *state;
	struct baton_runner_ask ask = {.name = BATON_STR("r"),
	                               .weight = 1,
	                               .ttl = baton_duration_s(10)};
	struct baton_runner *r = NULL;
	struct baton_shard s = {BATON_STR("q"), 0, 1, 1};
	struct baton_shard_answer answer;
	struct baton_work_end end = {.how = BATON_COMPLETE};
	struct baton_work_ended ended;
	char were[8] = "";
	one_shard(w);
	fair_is(w, BATON_KEY_FAIR_ON, 1);
	assert_int_equal(baton_runner_register(w->store, &ask, &r, NULL), BATON_OK);
	assert_int_equal(baton_shard_take(r, &s, 1, &answer), BATON_OK);
	put_keys(w, "aaabbc");
	for (int i = 0; i < 6; i++) {
		struct baton_tick t = {.shards = &s, .shard_count = 1, .owned = &answer};
		struct baton_work_claims *c = NULL;
		t.ends = &end;
		t.ended = &ended;
		t.end_count = i > 0;
		assert_int_equal(baton_runner_tick(r, &t, &c), BATON_OK);
		assert_non_null(c);
		keep_claims(w, c);
		were[i] = c->claims[0].key.ptr[0];
		end.proof = c->claims[0].proof;
	}
	assert_string_equal(were, "abcaba");
	assert_sound(w);
	baton_runner_leave(r);
}

static void a_takeover_gives_no_turn_back(void **state)
{
	struct world *w = *state;
	struct baton_runner_ask ask = {.name = BATON_STR("r"),
	                               .weight = 1,
	                               .ttl = baton_duration_s(10)};
	struct baton_runner *lost = NULL;
	struct baton_runner_info info;
	struct baton_shard s = {BATON_STR("q"), 0, 1, 1};
	struct baton_shard_answer answer;
	struct baton_tick t = {.shards = &s, .shard_count = 1, .owned = &answer};
	struct baton_work_claims *c = NULL;
	struct baton_queue_policy p;
	size_t count;
	one_shard(w);
	fair_is(w, BATON_KEY_FAIR_ON, 1);
	put_keys(w, "aab");
	assert_int_equal(baton_runner_register(w->store, &ask, &lost, NULL), BATON_OK);
	assert_int_equal(baton_shard_take(lost, &s, 1, &answer), BATON_OK);
	assert_int_equal(baton_runner_tick(lost, &t, &c), BATON_OK);
	assert_str(c->claims[0].key, "a");
	keep_claims(w, c);
	assert_int_equal(baton_runner_list(w->store, 0, &info, 1, &count), BATON_OK);
	assert_int_equal(baton_runner_take_over(w->store, &info), BATON_OK);
	baton_runner_leave(lost);
	p = policy(w, "q");
	p.mode = BATON_QUEUE_OPEN;
	set_policy(w, "q", &p);
	assert_order(w, "baa");
}

static void what_is_neither_on_nor_off_is_refused(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	p.key_fair = (enum baton_key_fair)3;
	assert_int_equal(baton_queue_set(w->store, BATON_STR("q"), &p), BATON_INVALID);
	assert_detail("key_fair is 3: 1 to 2 are allowed");
}

static const struct CMUnitTest tests[] = {
	WORLD_TEST(keys_come_in_the_order_of_arrival_when_nothing_is_said),
	WORLD_TEST(keys_take_turns),
	WORLD_TEST(within_a_key_the_order_stays),
	WORLD_TEST(several_of_one_call_take_turns_too),
	WORLD_TEST(work_without_a_key_comes_when_it_came),
	WORLD_TEST(a_higher_priority_comes_before_any_turn),
	WORLD_TEST(a_long_line_delays_another_key_by_one_job),
	WORLD_TEST(work_that_becomes_due_does_not_pass_those_that_wait),
	WORLD_TEST(what_was_delayed_takes_a_line_no_further_forward),
	WORLD_TEST(what_was_delayed_does_not_hold_its_line_back),
	WORLD_TEST(a_line_that_was_claimed_from_keeps_its_turn),
	WORLD_TEST(who_comes_instead_of_another_one_stands_in_its_place),
	WORLD_TEST(work_that_is_given_back_does_not_give_its_turn_back),
	WORLD_TEST(work_that_fails_has_had_its_turn),
	WORLD_TEST(a_cancelled_head_takes_its_line_no_further_forward),
	WORLD_TEST(turns_begin_and_end_while_work_waits),
	WORLD_TEST(keys_of_one_job_each_take_turns_once_they_have_more),
	WORLD_TEST(runners_are_given_the_work_of_keys_in_turn),
	WORLD_TEST(a_takeover_gives_no_turn_back),
	WORLD_TEST(what_is_neither_on_nor_off_is_refused),
};

WORLD_MAIN("fair", tests)
