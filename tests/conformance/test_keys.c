/* Concurrency keys: how many claims of one there can be at a time, and who waits for them. */
#include <baton/shard.h>

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

static struct baton_batch_id put_key_join(struct world *w, const char *key)
{
	struct baton_batch b = keyed(key);
	b.slot = BATON_JOIN;
	return put_batch(w, &b);
}

static void limit_is(struct world *w, uint32_t limit, enum baton_hold_on_retry hold)
{
	struct baton_queue_policy p = policy(w, "q");
	p.key_limit = limit;
	p.hold_on_retry = hold;
	p.retry.backoff = BATON_BACKOFF_FIXED;
	p.retry.base = baton_duration_ms(100);
	set_policy(w, "q", &p);
}

static const struct baton_work_claims *claim_some(struct world *w, uint32_t claims)
{
	const struct baton_work_ask ask = {.queue = BATON_STR("q"),
	                                   .ttl = baton_duration_ms(1000),
	                                   .claims = claims,
	                                   .max = 1};
	return claim_many(w, &ask);
}

static void assert_is(const struct baton_work_claim *c, const struct baton_batch_id *id)
{
	assert_non_null(c);
	assert_id(c->batches[0].id, *id);
}

static void a_claim_says_its_key(void **state)
{
	struct world *w = *state;
	struct baton_batch_id id = put_key(w, "k");
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_is(c, &id);
	assert_str(c->key, "k");
	assert_int_equal(c->lane.len, 0);
	assert_str(look(w, &id)->key, "k");
	assert_int_equal(look(w, &id)->lane.len, 0);
	complete(w, c);
	assert_sound(w);
}

static void the_longest_key_is_kept_whole(void **state)
{
	struct world *w = *state;
	char key[BATON_NAME_MAX + 1];
	memset(key, 'k', BATON_NAME_MAX);
	key[BATON_NAME_MAX] = '\0';
	struct baton_batch_id id = put_key(w, key);
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_str(c->key, key);
	assert_str(look(w, &id)->key, key);
	assert_sound(w);
}

static void a_key_that_is_too_long_is_refused_with_the_limit(void **state)
{
	struct world *w = *state;
	char key[BATON_NAME_MAX + 2];
	struct baton_put answer;
	memset(key, 'k', BATON_NAME_MAX + 1);
	key[BATON_NAME_MAX + 1] = '\0';
	struct baton_batch b = keyed(key);
	assert_int_equal(try_put(w, &b, &answer), BATON_INVALID);
	assert_detail("255");
}

static void a_key_is_held_by_one_and_the_next_in_order_follows(void **state)
{
	struct world *w = *state;
	struct baton_batch_id first = put_key(w, "k"), second = put_key(w, "k");
	struct baton_batch_id other = put_key(w, "l"), none = put(w, "q", "");
	struct baton_batch_id third = put_key(w, "k");
	const struct baton_work_claims *c = claim_some(w, 10);
	assert_int_equal(c->count, 3);
	assert_is(&c->claims[0], &first);
	assert_is(&c->claims[1], &other);
	assert_is(&c->claims[2], &none);
	assert_null(claim(w, "q", 1));
	complete(w, &c->claims[0]);
	const struct baton_work_claim *next = claim(w, "q", 1);
	assert_is(next, &second);
	assert_null(claim(w, "q", 1));
	complete(w, next);
	assert_is(claim(w, "q", 1), &third);
	assert_sound(w);
}

static void a_key_and_a_lane_of_the_same_name_have_nothing_to_do_with_each_other(void **state)
{
	struct world *w = *state;
	put_key(w, "x");
	put(w, "q", "x");
	assert_int_equal(claim_some(w, 10)->count, 2);
	assert_sound(w);
}

static void as_many_hold_a_key_as_its_limit_says(void **state)
{
	struct world *w = *state;
	limit_is(w, 3, BATON_HOLD_KEEP);
	struct baton_batch_id ids[6];
	for (int i = 0; i < 6; i++)
		ids[i] = put_key(w, "k");
	const struct baton_work_claims *c = claim_some(w, 10);
	assert_int_equal(c->count, 3);
	for (int i = 0; i < 3; i++)
		assert_is(&c->claims[i], &ids[i]);
	complete(w, &c->claims[1]);
	assert_is(claim(w, "q", 1), &ids[3]);
	assert_null(claim(w, "q", 1));
	assert_sound(w);
}

static void a_joined_claim_holds_its_key_once(void **state)
{
	struct world *w = *state;
	limit_is(w, 2, BATON_HOLD_KEEP);
	for (int i = 0; i < 4; i++)
		put_key_join(w, "k");
	assert_int_equal(claim(w, "q", 3)->count, 3);
	assert_int_equal(claim(w, "q", 3)->count, 1);
	put_key_join(w, "k");
	assert_null(claim(w, "q", 3));
	assert_sound(w);
}

static void a_part_of_a_claim_that_ends_leaves_the_key_held(void **state)
{
	struct world *w = *state;
	struct baton_batch_id first = put_key_join(w, "k");
	put_key_join(w, "k");
	struct baton_batch_id third = put_key(w, "k");
	const struct baton_work_claim *c = claim(w, "q", 2);
	const struct baton_work_end part = {.proof = c->proof,
	                                    .how = BATON_COMPLETE,
	                                    .ids = &first,
	                                    .count = 1};
	assert_int_equal(c->count, 2);
	end_with(w, &part);
	assert_null(claim(w, "q", 1));
	complete(w, c);
	assert_is(claim(w, "q", 1), &third);
	assert_sound(w);
}

static void a_higher_limit_lets_those_begin_who_wait(void **state)
{
	struct world *w = *state;
	for (int i = 0; i < 5; i++)
		put_key(w, "k");
	assert_int_equal(claim_some(w, 10)->count, 1);
	limit_is(w, 3, BATON_HOLD_KEEP);
	assert_int_equal(claim_some(w, 10)->count, 2);
	assert_sound(w);
}

static void a_lower_limit_holds_for_those_who_come(void **state)
{
	struct world *w = *state;
	limit_is(w, 3, BATON_HOLD_KEEP);
	for (int i = 0; i < 5; i++)
		put_key(w, "k");
	const struct baton_work_claims *c = claim_some(w, 2);
	assert_int_equal(c->count, 2);
	limit_is(w, 1, BATON_HOLD_KEEP);
	assert_null(claim(w, "q", 1));
	complete(w, &c->claims[0]);
	assert_null(claim(w, "q", 1));
	complete(w, &c->claims[1]);
	assert_int_equal(claim_some(w, 10)->count, 1);
	assert_sound(w);
}

static void work_that_waits_for_its_next_attempt_keeps_its_key(void **state)
{
	struct world *w = *state;
	limit_is(w, 1, BATON_HOLD_KEEP);
	struct baton_batch_id first = put_key(w, "k"), second = put_key(w, "k");
	struct baton_batch_id other = put_key(w, "l");
	end(w, claim(w, "q", 1), BATON_FAIL);
	assert_is(claim(w, "q", 1), &other);
	assert_null(claim(w, "q", 1));
	assert_int_equal(look(w, &second)->why, BATON_WHY_KEY);
	assert_id(look(w, &second)->ahead, first);
	assert_sound(w);
	advance(w, 100);
	assert_is(claim(w, "q", 1), &first);
	assert_null(claim(w, "q", 1));
	assert_sound(w);
}

static void kept_keys_count_against_the_limit(void **state)
{
	struct world *w = *state;
	limit_is(w, 2, BATON_HOLD_KEEP);
	for (int i = 0; i < 4; i++)
		put_key(w, "k");
	end(w, claim(w, "q", 1), BATON_FAIL);
	assert_int_equal(claim_some(w, 10)->count, 1);
	assert_sound(w);
}

static void a_cancelled_retry_lets_go_of_its_key(void **state)
{
	struct world *w = *state;
	limit_is(w, 1, BATON_HOLD_KEEP);
	struct baton_batch_id first = put_key(w, "k"), second = put_key(w, "k");
	end(w, claim(w, "q", 1), BATON_FAIL);
	assert_null(claim(w, "q", 1));
	assert_int_equal(cancel(w, &first), BATON_CANCEL_REMOVED);
	assert_is(claim(w, "q", 1), &second);
	assert_sound(w);
}

static void work_that_gives_up_its_key_queues_again_behind_the_others(void **state)
{
	struct world *w = *state;
	limit_is(w, 1, BATON_HOLD_GIVE_UP);
	struct baton_batch_id first = put_key(w, "k"), second = put_key(w, "k");
	end(w, claim(w, "q", 1), BATON_FAIL);
	assert_int_equal(state_of(w, &first), BATON_BATCH_RETRY);
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_is(c, &second);
	struct baton_batch_id third = put_key(w, "k");
	advance(w, 100);
	assert_null(claim(w, "q", 1));
	end(w, c, BATON_ABANDON);
	c = claim(w, "q", 1);
	assert_is(c, &second);
	complete(w, c);
	c = claim(w, "q", 1);
	assert_is(c, &first);
	assert_int_equal(c->batches[0].attempt, 2);
	complete(w, c);
	assert_is(claim(w, "q", 1), &third);
	assert_sound(w);
}

static void those_that_fail_together_queue_again_in_their_order(void **state)
{
	struct world *w = *state;
	limit_is(w, 1, BATON_HOLD_GIVE_UP);
	struct baton_batch_id first = put_key_join(w, "k"), second = put_key_join(w, "k");
	struct baton_batch_id third = put_key_join(w, "k"), fourth = put_key(w, "k");
	const struct baton_work_claim *c = claim(w, "q", 3);
	assert_int_equal(c->count, 3);
	const struct baton_batch_id ids[] = {third, first};
	const struct baton_work_end two = {.proof = c->proof,
	                                   .how = BATON_FAIL,
	                                   .ids = ids,
	                                   .count = 2};
	assert_int_equal(end_with(w, &two).state, BATON_BATCH_RETRY);
	end(w, c, BATON_ABANDON);
	advance(w, 100);
	c = claim(w, "q", 3);
	assert_is(c, &second);
	complete(w, c);
	c = claim(w, "q", 3);
	assert_is(c, &fourth);
	complete(w, c);
	c = claim(w, "q", 3);
	assert_int_equal(c->count, 2);
	assert_is(c, &first);
	assert_id(c->batches[1].id, third);
	assert_sound(w);
}

static void a_dead_batch_holds_no_key(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	p.on_dead = BATON_ON_DEAD_HOLD;
	set_policy(w, "q", &p);
	struct baton_batch_id first = put_key(w, "k"), second = put_key(w, "k");
	end(w, claim(w, "q", 1), BATON_REJECT);
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_is(c, &second);
	assert_int_equal(revive(w, &first), BATON_OK);
	assert_null(claim(w, "q", 1));
	complete(w, c);
	assert_is(claim(w, "q", 1), &first);
	assert_sound(w);
}

static void an_expired_claim_holds_its_key_no_more(void **state)
{
	struct world *w = *state;
	limit_is(w, 2, BATON_HOLD_KEEP);
	struct baton_batch_id ids[4];
	for (int i = 0; i < 4; i++)
		ids[i] = put_key(w, "k");
	const struct baton_work_claim *lost = claim(w, "q", 1);
	advance(w, 500);
	const struct baton_work_claim *live = claim(w, "q", 1);
	assert_null(claim(w, "q", 1));
	advance(w, 500);
	const struct baton_work_claim *again = claim(w, "q", 1);
	assert_is(again, &ids[0]);
	assert_int_equal(again->batches[0].attempt, 2);
	assert_true(again->fence.v > live->fence.v);
	assert_null(claim(w, "q", 1));
	const struct baton_work_end late = {.proof = lost->proof, .how = BATON_COMPLETE};
	assert_int_equal(end_with(w, &late).err, BATON_NOT_HELD);
	complete(w, live);
	assert_is(claim(w, "q", 1), &ids[2]);
	assert_sound(w);
}

static void a_renewed_claim_holds_its_key_again(void **state)
{
	struct world *w = *state;
	put_key(w, "k");
	put_key(w, "k");
	const struct baton_work_claim *c = claim(w, "q", 1);
	advance(w, 1000);
	put(w, "other", "");
	assert_non_null(claim(w, "other", 1));
	assert_int_equal(renew(w, c, 1000).err, BATON_OK);
	assert_null(claim(w, "q", 1));
	assert_sound(w);
	complete(w, c);
	assert_non_null(claim(w, "q", 1));
	assert_sound(w);
}

static void a_claim_that_expired_and_nobody_took_can_be_completed(void **state)
{
	struct world *w = *state;
	limit_is(w, 2, BATON_HOLD_KEEP);
	for (int i = 0; i < 3; i++)
		put_key(w, "k");
	const struct baton_work_claim *first = claim(w, "q", 1);
	advance(w, 999);
	claim(w, "q", 1);
	assert_null(claim(w, "q", 1));
	advance(w, 1);
	complete(w, first);
	assert_non_null(claim(w, "q", 1));
	assert_null(claim(w, "q", 1));
	assert_sound(w);
}

static void why_names_the_holder_of_the_key(void **state)
{
	struct world *w = *state;
	struct baton_batch_id first = put_key(w, "k"), second = put_key(w, "k");
	assert_int_equal(look(w, &first)->why, BATON_WHY_READY);
	assert_int_equal(look(w, &second)->why, BATON_WHY_BEHIND);
	assert_id(look(w, &second)->ahead, first);
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_int_equal(look(w, &second)->why, BATON_WHY_KEY);
	assert_id(look(w, &second)->ahead, first);
	complete(w, c);
	assert_int_equal(look(w, &second)->why, BATON_WHY_READY);
	baton_queue_pause(w->store, BATON_STR("q"), true);
	assert_int_equal(look(w, &second)->why, BATON_WHY_PAUSED);
}

static void a_repeated_put_with_another_key_is_a_conflict(void **state)
{
	struct world *w = *state;
	struct baton_batch b = keyed("k");
	struct baton_put answer;
	b.source = BATON_STR("source");
	put_batch(w, &b);
	assert_int_equal(try_put(w, &b, &answer), BATON_OK);
	assert_true(answer.existing);
	b.key = BATON_STR("l");
	assert_int_equal(try_put(w, &b, &answer), BATON_CONFLICT);
	b.key = BATON_STR("");
	assert_int_equal(try_put(w, &b, &answer), BATON_CONFLICT);
}

static struct baton_runner *enlist(struct world *w, const char *name)
{
	struct baton_runner_ask ask = {.name = baton_str_z(name),
	                               .weight = 1,
	                               .ttl = baton_duration_s(10)};
	struct baton_runner *r = NULL;
	assert_int_equal(baton_runner_register(w->store, &ask, &r, NULL), BATON_OK);
	return r;
}

/* Takes all of the queue's shards, and claims what there is. */
static const struct baton_work_claims *take_all(struct world *w, struct baton_runner *r)
{
	struct baton_shard shards[BATON_QUEUE_SHARDS];
	struct baton_shard_answer owned[BATON_QUEUE_SHARDS];
	struct baton_work_claims *claims = NULL;
	for (uint32_t i = 0; i < BATON_QUEUE_SHARDS; i++)
		shards[i] = (struct baton_shard){BATON_STR("q"), i, 10, 1};
	assert_int_equal(baton_shard_take(r, shards, BATON_QUEUE_SHARDS, owned), BATON_OK);
	const struct baton_tick t = {.shards = shards,
	                             .shard_count = BATON_QUEUE_SHARDS,
	                             .owned = owned};
	assert_int_equal(baton_runner_tick(r, &t, &claims), BATON_OK);
	keep_claims(w, claims);
	return claims;
}

static void the_work_of_a_key_is_in_one_shard_which_its_name_gives(void **state)
{
	struct world *w = *state;
	struct baton_where where;
	struct baton_runner *r = enlist(w, "one");
	limit_is(w, 10, BATON_HOLD_KEEP);
	for (int i = 0; i < 5; i++)
		put_key(w, "k");
	const struct baton_work_claims *c = take_all(w, r);
	assert_int_equal(c->count, 5);
	assert_int_equal(baton_lane_where(w->store, BATON_STR("q"), BATON_STR("k"), &where),
	                 BATON_OK);
	for (size_t i = 0; i < c->count; i++)
		assert_int_equal(c->claims[i].shard, where.shard);
	baton_runner_leave(r);
	assert_sound(w);
}

static void a_takeover_frees_the_keys_of_the_lost_runner(void **state)
{
	struct world *w = *state;
	struct baton_runner *lost = enlist(w, "one"), *next = enlist(w, "two");
	struct baton_batch_id first = put_key(w, "k");
	put_key(w, "k");
	const struct baton_work_claims *c = take_all(w, lost);
	assert_int_equal(c->count, 1);
	assert_null(take_all(w, next));
	struct baton_runner_info infos[2];
	size_t count;
	assert_int_equal(baton_runner_list(w->store, 0, infos, 2, &count), BATON_OK);
	assert_int_equal(infos[0].number, baton_runner_number(lost));
	assert_int_equal(baton_runner_take_over(w->store, &infos[0]), BATON_OK);
	const struct baton_work_claims *again = take_all(w, next);
	assert_int_equal(again->count, 1);
	assert_is(&again->claims[0], &first);
	assert_int_equal(again->claims[0].batches[0].attempt, 2);
	assert_true(again->claims[0].fence.v > c->claims[0].fence.v);
	assert_sound(w);
	baton_runner_leave(lost);
	baton_runner_leave(next);
}

static void an_expired_claim_is_over_once_another_job_has_its_key(void **state)
{
	struct world *w = *state;
	struct baton_batch late = keyed("k");
	late.delay = baton_duration_ms(500);
	struct baton_batch_id first = put_batch(w, &late), second = put_key(w, "k");
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_is(c, &second);
	advance(w, 1000);
	const struct baton_work_claim *other = claim(w, "q", 1);
	assert_is(other, &first);
	assert_int_equal(renew(w, c, 1000).err, BATON_NOT_HELD);
	assert_null(claim(w, "q", 1));
	assert_int_equal(complete(w, other), BATON_BATCH_GONE);
	assert_is(claim(w, "q", 1), &second);
	assert_sound(w);
}

static void ttl_is(struct world *w, int64_t ms)
{
	struct baton_queue_policy p = policy(w, "q");
	p.key_ttl = baton_duration_ms(ms);
	p.retry.backoff = BATON_BACKOFF_NONE;
	set_policy(w, "q", &p);
}

static void a_key_is_held_no_longer_than_its_ttl_without_renewal(void **state)
{
	struct world *w = *state;
	ttl_is(w, 300);
	put_key(w, "k");
	put_key(w, "k");
	const struct baton_work_claim *c = claim(w, "q", 1); /* which asks for 1,000 ms */
	assert_int_equal(c->expires_at.ms, START_MS + 300);
	assert_int_equal(c->hold.ns, 300000000);
	advance(w, 200);
	struct baton_work_renewal r = renew(w, c, 1000);
	assert_int_equal(r.err, BATON_OK);
	assert_int_equal(r.expires_at.ms, START_MS + 500);
	advance(w, 299);
	assert_null(claim(w, "q", 1));
	advance(w, 1);
	const struct baton_work_claim *next = claim(w, "q", 1);
	assert_non_null(next);
	assert_true(next->fence.v > c->fence.v);
	assert_int_equal(end(w, c, BATON_COMPLETE).err, BATON_NOT_HELD);
	assert_int_equal(renew(w, next, 100).expires_at.ms, START_MS + 800); /* never earlier */
	assert_sound(w);
}

static void several_of_a_key_are_held_no_longer_either(void **state)
{
	struct world *w = *state;
	put_key(w, "k");
	put_key(w, "k");
	put_key(w, "k");
	const struct baton_work_claim *before = claim(w, "q", 1);
	ttl_is(w, 300);
	assert_int_equal(before->hold.ns, 0);
	complete(w, before);
	assert_int_equal(claim(w, "q", 1)->expires_at.ms, START_MS + 300);
	assert_sound(w);
}

static void work_without_a_key_is_claimed_for_as_long_as_was_asked(void **state)
{
	struct world *w = *state;
	ttl_is(w, 300);
	put(w, "q", "lane");
	put(w, "q", "");
	for (int i = 0; i < 2; i++) {
		const struct baton_work_claim *c = claim(w, "q", 1);
		assert_int_equal(c->expires_at.ms, START_MS + 1000);
		assert_int_equal(c->hold.ns, 0);
		assert_int_equal(renew(w, c, 5000).expires_at.ms, START_MS + 5000);
	}
}

static void a_ttl_of_keys_beyond_its_limits_is_refused(void **state)
{
	struct world *w = *state;
	static const int64_t bad[] = {-1, 999999, INT64_C(86400000000001)};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct baton_queue_policy p = policy(w, "q");
		p.key_ttl.ns = bad[i];
		assert_int_equal(baton_queue_set(w->store, BATON_STR("q"), &p), BATON_INVALID);
		assert_detail("1ms to 1d are allowed");
	}
	ttl_is(w, 1);
	ttl_is(w, 86400000);
	assert_int_equal(policy(w, "q").key_ttl.ns, INT64_C(86400000000000));
}

static const struct CMUnitTest tests[] = {
	WORLD_TEST(an_expired_claim_is_over_once_another_job_has_its_key),
	WORLD_TEST(a_claim_says_its_key),
	WORLD_TEST(the_longest_key_is_kept_whole),
	WORLD_TEST(a_key_that_is_too_long_is_refused_with_the_limit),
	WORLD_TEST(a_key_is_held_by_one_and_the_next_in_order_follows),
	WORLD_TEST(a_key_and_a_lane_of_the_same_name_have_nothing_to_do_with_each_other),
	WORLD_TEST(as_many_hold_a_key_as_its_limit_says),
	WORLD_TEST(a_joined_claim_holds_its_key_once),
	WORLD_TEST(a_part_of_a_claim_that_ends_leaves_the_key_held),
	WORLD_TEST(a_higher_limit_lets_those_begin_who_wait),
	WORLD_TEST(a_lower_limit_holds_for_those_who_come),
	WORLD_TEST(work_that_waits_for_its_next_attempt_keeps_its_key),
	WORLD_TEST(kept_keys_count_against_the_limit),
	WORLD_TEST(a_cancelled_retry_lets_go_of_its_key),
	WORLD_TEST(work_that_gives_up_its_key_queues_again_behind_the_others),
	WORLD_TEST(those_that_fail_together_queue_again_in_their_order),
	WORLD_TEST(a_dead_batch_holds_no_key),
	WORLD_TEST(an_expired_claim_holds_its_key_no_more),
	WORLD_TEST(a_renewed_claim_holds_its_key_again),
	WORLD_TEST(a_claim_that_expired_and_nobody_took_can_be_completed),
	WORLD_TEST(why_names_the_holder_of_the_key),
	WORLD_TEST(a_repeated_put_with_another_key_is_a_conflict),
	WORLD_TEST(the_work_of_a_key_is_in_one_shard_which_its_name_gives),
	WORLD_TEST(a_takeover_frees_the_keys_of_the_lost_runner),
	WORLD_TEST(a_key_is_held_no_longer_than_its_ttl_without_renewal),
	WORLD_TEST(several_of_a_key_are_held_no_longer_either),
	WORLD_TEST(work_without_a_key_is_claimed_for_as_long_as_was_asked),
	WORLD_TEST(a_ttl_of_keys_beyond_its_limits_is_refused),
};

WORLD_MAIN("keys", tests)
