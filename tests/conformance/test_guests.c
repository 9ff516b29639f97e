/* Work with a lane and a key: the lane keeps its order, and the key its limit, across lanes. */
#include <stdlib.h>

#include <baton/shard.h>

#include "world.h"

static struct baton_batch guest(const char *lane, const char *key)
{
	struct baton_batch b = batch_of("q", lane, NULL);
	b.key = baton_str_z(key);
	return b;
}

/* "" for the lane: a job that has only the key. */
static struct baton_batch_id put_guest(struct world *w, const char *lane, const char *key)
{
	struct baton_batch b = guest(lane, key);
	return put_batch(w, &b);
}

static struct baton_batch_id put_guest_join(struct world *w, const char *lane, const char *key)
{
	struct baton_batch b = guest(lane, key);
	b.slot = BATON_JOIN;
	return put_batch(w, &b);
}

static struct baton_batch_id put_guest_later(struct world *w, const char *lane, const char *key,
                                             int64_t ms)
{
	struct baton_batch b = guest(lane, key);
	b.delay = baton_duration_ms(ms);
	return put_batch(w, &b);
}

static void limit_is(struct world *w, uint32_t limit)
{
	struct baton_queue_policy p = policy(w, "q");
	p.key_limit = limit;
	set_policy(w, "q", &p);
}

static void retry_is(struct world *w, enum baton_on_retry on_retry, enum baton_hold_on_retry hold)
{
	struct baton_queue_policy p = policy(w, "q");
	p.on_retry = on_retry;
	p.hold_on_retry = hold;
	p.retry_lane.backoff = BATON_BACKOFF_FIXED;
	p.retry_lane.base = baton_duration_ms(100);
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

static const struct baton_work_claim *assert_next(struct world *w, const struct baton_batch_id *id)
{
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_is(c, id);
	assert_sound(w);
	return c;
}

static void assert_none(struct world *w)
{
	assert_null(claim(w, "q", 1));
	assert_sound(w);
}

static void assert_why(struct world *w, const struct baton_batch_id *id, enum baton_why why,
                       const struct baton_batch_id *ahead)
{
	const struct baton_work_info *info = look(w, id);
	assert_int_equal(info->why, why);
	assert_string_equal(info->ahead.text, ahead ? ahead->text : "");
}

static void a_claim_says_its_lane_and_its_key(void **state)
{
	struct world *w = *state;
	struct baton_batch_id id = put_guest(w, "a", "k");
	assert_str(look(w, &id)->lane, "a");
	assert_str(look(w, &id)->key, "k");
	const struct baton_work_claim *c = assert_next(w, &id);
	assert_str(c->lane, "a");
	assert_str(c->key, "k");
	const struct baton_work_page *page =
		list(w, &(struct baton_work_filter){.lane = BATON_STR("a"), .max = 10});
	assert_int_equal(page->count, 1);
	assert_str(page->infos[0].key, "k");
	complete(w, c);
	assert_sound(w);
}

static void the_longest_names_are_kept_whole(void **state)
{
	struct world *w = *state;
	char lane[BATON_NAME_MAX + 1], key[BATON_NAME_MAX + 1];
	memset(lane, 'l', BATON_NAME_MAX);
	memset(key, 'k', BATON_NAME_MAX);
	lane[BATON_NAME_MAX] = key[BATON_NAME_MAX] = '\0';
	struct baton_batch_id id = put_guest(w, lane, key);
	const struct baton_work_claim *c = assert_next(w, &id);
	assert_str(c->lane, lane);
	assert_str(c->key, key);
}

static void a_key_is_held_by_one_lane_and_the_next_in_order_follows(void **state)
{
	struct world *w = *state;
	struct baton_batch_id a = put_guest(w, "a", "k"), b = put_guest(w, "b", "k");
	struct baton_batch_id other = put_guest(w, "c", "l"), none = put(w, "q", "d");
	struct baton_batch_id e = put_guest(w, "e", "k");
	const struct baton_work_claims *c = claim_some(w, 10);
	assert_int_equal(c->count, 3);
	assert_is(&c->claims[0], &a);
	assert_is(&c->claims[1], &other);
	assert_is(&c->claims[2], &none);
	assert_none(w);
	complete(w, &c->claims[0]);
	const struct baton_work_claim *next = assert_next(w, &b);
	assert_none(w);
	complete(w, next);
	assert_next(w, &e);
	assert_none(w);
}

static void a_lane_keeps_its_order_whatever_keys_it_has(void **state)
{
	struct world *w = *state;
	struct baton_batch_id busy = put_guest(w, "x", "l");
	struct baton_batch_id a1 = put_guest(w, "a", "k"), a2 = put_guest(w, "a", "l");
	struct baton_batch_id a3 = put(w, "q", "a"), b1 = put_guest(w, "b", "k");
	const struct baton_work_claim *l = assert_next(w, &busy);
	const struct baton_work_claim *k = assert_next(w, &a1);
	assert_none(w);
	complete(w, k);
	k = assert_next(w, &b1);
	assert_none(w); /* a2 waits for l, and a3 for a2 */
	assert_why(w, &a2, BATON_WHY_KEY, &busy);
	assert_why(w, &a3, BATON_WHY_BEHIND, &a2);
	complete(w, l);
	l = assert_next(w, &a2);
	assert_none(w);
	complete(w, l);
	assert_next(w, &a3);
	complete(w, k);
	assert_none(w);
}

static void those_with_a_lane_and_those_without_share_a_key_in_order(void **state)
{
	struct world *w = *state;
	struct baton_batch_id ids[6];
	static const char *const lanes[] = {"", "a", "", "b", "", "a"};
	for (int i = 0; i < 6; i++)
		ids[i] = put_guest(w, lanes[i], "k");
	for (int i = 0; i < 6; i++) {
		const struct baton_work_claim *c = assert_next(w, &ids[i]);
		assert_str(c->lane, lanes[i]);
		assert_none(w);
		complete(w, c);
	}
	assert_none(w);
}

static void one_that_has_its_key_alone_meets_a_guest(void **state)
{
	struct world *w = *state;
	struct baton_batch_id lone = put_guest(w, "", "k"), a = put_guest(w, "a", "k");
	const struct baton_work_claim *c = assert_next(w, &lone);
	assert_none(w);
	assert_why(w, &a, BATON_WHY_KEY, &lone);
	complete(w, c);
	c = assert_next(w, &a);
	struct baton_batch_id again = put_guest(w, "", "k");
	assert_none(w);
	assert_why(w, &again, BATON_WHY_KEY, &a);
	complete(w, c);
	assert_next(w, &again);
}

#define TOGETHER 8

/* Jobs with the keys "0" to "7" and no lane, which a store may keep in one row; then, if `lane` is
 * not NULL, one of that lane with the key "2" in the same call. */
static void put_together(struct world *w, const char *lane, struct baton_batch_id ids[TOGETHER + 1])
{
	static const char *const keys[] = {"0", "1", "2", "3", "4", "5", "6", "7", "2"};
	struct baton_batch batches[TOGETHER + 1];
	struct baton_put puts[TOGETHER + 1];
	size_t count = lane ? TOGETHER + 1 : TOGETHER;
	for (size_t i = 0; i < count; i++)
		batches[i] = guest(i < TOGETHER ? "" : lane, keys[i]);
	assert_int_equal(baton_work_put(w->store, batches, count, puts), BATON_OK);
	for (size_t i = 0; i < count; i++)
		ids[i] = puts[i].id;
	assert_sound(w);
}

static void a_guest_waits_for_one_that_stands_together_with_others(void **state)
{
	struct world *w = *state;
	struct baton_batch_id ids[TOGETHER + 1];
	put_together(w, NULL, ids);
	struct baton_batch_id a = put_guest(w, "a", "2");
	assert_sound(w);
	assert_why(w, &a, BATON_WHY_BEHIND, &ids[2]);
	const struct baton_work_claims *c = claim_some(w, TOGETHER + 1);
	assert_int_equal(c->count, TOGETHER);
	for (int i = 0; i < TOGETHER; i++)
		assert_is(&c->claims[i], &ids[i]);
	assert_why(w, &a, BATON_WHY_KEY, &ids[2]);
	assert_none(w);
	complete(w, &c->claims[3]);
	assert_none(w);
	complete(w, &c->claims[2]);
	assert_true(assert_next(w, &a)->fence.v > c->claims[2].fence.v);
}

static void a_guest_waits_for_a_claim_that_stands_together_with_others(void **state)
{
	struct world *w = *state;
	struct baton_batch_id ids[TOGETHER + 1];
	put_together(w, NULL, ids);
	const struct baton_work_claims *c = claim_some(w, 5);
	assert_int_equal(c->count, 5);
	struct baton_batch_id a = put_guest(w, "a", "2"), b = put_guest(w, "b", "7");
	struct baton_batch_id free = put_guest(w, "c", "8");
	assert_sound(w);
	assert_why(w, &a, BATON_WHY_KEY, &ids[2]);
	assert_why(w, &b, BATON_WHY_BEHIND, &ids[7]);
	for (int i = 5; i < TOGETHER; i++)
		assert_next(w, &ids[i]);
	assert_next(w, &free);
	assert_none(w);
	complete(w, &c->claims[2]);
	assert_true(assert_next(w, &a)->fence.v > c->claims[2].fence.v);
	assert_none(w);
	advance(w, 1000); /* all are over, and those that were put first come first again */
	for (int i = 0; i < TOGETHER; i++) {
		if (i != 2)
			assert_next(w, &ids[i]);
	}
}

static void those_who_are_put_together_wait_for_a_guest(void **state)
{
	struct world *w = *state;
	struct baton_batch_id ids[TOGETHER + 1];
	struct baton_batch_id a = put_guest(w, "a", "2"), b = put_guest(w, "b", "5");
	const struct baton_work_claim *held = assert_next(w, &a);
	put_together(w, NULL, ids);
	assert_next(w, &b);
	const struct baton_work_claims *c = claim_some(w, TOGETHER);
	assert_int_equal(c->count, TOGETHER - 2);
	for (size_t i = 0; i < c->count; i++)
		assert_is(&c->claims[i], &ids[i < 2 ? i : i < 4 ? i + 1 : i + 2]);
	assert_why(w, &ids[2], BATON_WHY_KEY, &a);
	assert_why(w, &ids[5], BATON_WHY_KEY, &b);
	assert_none(w);
	complete(w, held);
	assert_true(assert_next(w, &ids[2])->fence.v > held->fence.v);
	assert_none(w);
}

static void a_guest_that_is_put_with_others_waits_for_that_of_its_key(void **state)
{
	struct world *w = *state;
	struct baton_batch_id ids[TOGETHER + 1];
	put_together(w, "a", ids);
	const struct baton_work_claims *c = claim_some(w, TOGETHER + 1);
	assert_int_equal(c->count, TOGETHER);
	assert_is(&c->claims[2], &ids[2]);
	assert_why(w, &ids[TOGETHER], BATON_WHY_KEY, &ids[2]);
	assert_none(w);
	complete(w, &c->claims[2]);
	assert_next(w, &ids[TOGETHER]);
}

/* One in its lane comes before it, so it asks for its key only later. */
static void a_guest_meets_those_who_were_put_together_while_it_was_not_the_first(void **state)
{
	struct world *w = *state;
	struct baton_batch_id ids[TOGETHER + 1];
	struct baton_batch_id first = put(w, "q", "a"), deep = put_guest(w, "a", "2");
	const struct baton_work_claim *a = assert_next(w, &first);
	put_together(w, NULL, ids);
	const struct baton_work_claims *c = claim_some(w, 3);
	assert_is(&c->claims[2], &ids[2]);
	complete(w, a);
	assert_sound(w);
	assert_why(w, &deep, BATON_WHY_KEY, &ids[2]);
	for (int i = 3; i < TOGETHER; i++)
		assert_next(w, &ids[i]);
	assert_none(w);
	complete(w, &c->claims[2]);
	assert_true(assert_next(w, &deep)->fence.v > c->claims[2].fence.v);
}

static void a_guest_that_is_not_the_first_of_its_lane_holds_up_no_key(void **state)
{
	struct world *w = *state;
	struct baton_batch_id first = put(w, "q", "a"), deep = put_guest(w, "a", "k");
	struct baton_batch_id later = put_guest(w, "", "k");
	const struct baton_work_claim *a = assert_next(w, &first);
	const struct baton_work_claim *k = assert_next(w, &later);
	complete(w, a);
	assert_none(w);
	assert_why(w, &deep, BATON_WHY_KEY, &later);
	complete(w, k);
	assert_next(w, &deep);
}

static void as_many_hold_a_key_as_its_limit_says(void **state)
{
	struct world *w = *state;
	limit_is(w, 2);
	struct baton_batch_id ids[5];
	static const char *const lanes[] = {"a", "b", "", "c", "d"};
	for (int i = 0; i < 5; i++)
		ids[i] = put_guest(w, lanes[i], "k");
	const struct baton_work_claim *one = assert_next(w, &ids[0]);
	const struct baton_work_claim *two = assert_next(w, &ids[1]);
	assert_none(w);
	complete(w, one);
	one = assert_next(w, &ids[2]);
	assert_none(w);
	complete(w, two);
	assert_next(w, &ids[3]);
	assert_none(w);
	complete(w, one);
	assert_next(w, &ids[4]);
}

static void what_a_call_makes_free_is_for_the_next_one_which_is_woken(void **state)
{
	struct world *w = *state;
	limit_is(w, 2);
	struct baton_batch_id a = put_guest(w, "a", "k"), b = put_guest(w, "b", "k");
	unsigned rings = w->rings;
	const struct baton_work_claims *c = claim_some(w, 10);
	assert_int_equal(c->count, 1);
	assert_is(&c->claims[0], &a);
	assert_true(w->rings > rings);
	c = claim_some(w, 10);
	assert_int_equal(c->count, 1);
	assert_is(&c->claims[0], &b);
	assert_sound(w);
}

static void an_end_wakes_who_waits_for_the_key(void **state)
{
	struct world *w = *state;
	struct baton_batch_id a = put_guest(w, "a", "k");
	put_guest(w, "b", "k");
	const struct baton_work_claim *c = assert_next(w, &a);
	unsigned rings = w->rings;
	complete(w, c);
	assert_true(w->rings > rings);
}

static void a_joined_claim_is_of_one_key_and_holds_it_once(void **state)
{
	struct world *w = *state;
	limit_is(w, 2);
	put_guest_join(w, "a", "k");
	put_guest_join(w, "a", "k");
	struct baton_batch_id l = put_guest_join(w, "a", "l");
	struct baton_batch_id b = put_guest(w, "b", "k"), c1 = put_guest(w, "c", "k");
	const struct baton_work_claim *a = claim(w, "q", 10);
	assert_int_equal(a->count, 2);
	const struct baton_work_end part = {.proof = a->proof,
	                                    .how = BATON_COMPLETE,
	                                    .ids = &a->batches[0].id,
	                                    .count = 1};
	assert_next(w, &b);
	assert_none(w);
	end_with(w, &part);
	assert_none(w);
	complete(w, a);
	const struct baton_work_claims *rest = claim_some(w, 10);
	assert_int_equal(rest->count, 2);
	assert_is(&rest->claims[0], &l);
	assert_is(&rest->claims[1], &c1);
	assert_sound(w);
}

static void a_higher_limit_lets_those_begin_who_wait(void **state)
{
	struct world *w = *state;
	struct baton_batch_id a = put_guest(w, "a", "k"), b = put_guest(w, "b", "k");
	put_guest(w, "c", "k");
	assert_next(w, &a);
	assert_none(w);
	unsigned rings = w->rings;
	limit_is(w, 2);
	assert_true(w->rings > rings);
	assert_next(w, &b);
	assert_none(w);
}

static void a_lower_limit_holds_for_those_who_come(void **state)
{
	struct world *w = *state;
	limit_is(w, 2);
	struct baton_batch_id a = put_guest(w, "a", "k"), b = put_guest(w, "b", "k");
	struct baton_batch_id c = put_guest(w, "c", "k");
	const struct baton_work_claim *one = assert_next(w, &a), *two = assert_next(w, &b);
	limit_is(w, 1);
	complete(w, one);
	assert_none(w);
	complete(w, two);
	assert_next(w, &c);
	assert_none(w);
}

static void a_retry_that_blocks_and_keeps_holds_up_its_lane_and_its_key(void **state)
{
	struct world *w = *state;
	retry_is(w, BATON_ON_RETRY_BLOCK, BATON_HOLD_KEEP);
	struct baton_batch_id a = put_guest(w, "a", "k"), a2 = put_guest(w, "a", "l");
	struct baton_batch_id b = put_guest(w, "b", "k"), c = put_guest(w, "", "k");
	end(w, assert_next(w, &a), BATON_FAIL);
	assert_none(w);
	assert_why(w, &a2, BATON_WHY_BEHIND, &a);
	assert_why(w, &b, BATON_WHY_KEY, &a);
	assert_why(w, &c, BATON_WHY_KEY, &a);
	advance(w, 100);
	const struct baton_work_claim *again = assert_next(w, &a);
	assert_int_equal(again->batches[0].attempt, 2);
	assert_none(w);
	complete(w, again);
	assert_int_equal(claim_some(w, 10)->count, 2);
	assert_sound(w);
}

static void a_retry_that_is_passed_and_keeps_holds_up_its_key_alone(void **state)
{
	struct world *w = *state;
	retry_is(w, BATON_ON_RETRY_PASS, BATON_HOLD_KEEP);
	struct baton_batch_id a = put_guest(w, "a", "k"), a2 = put_guest(w, "a", "l");
	struct baton_batch_id b = put_guest(w, "b", "k");
	end(w, assert_next(w, &a), BATON_FAIL);
	const struct baton_work_claim *l = assert_next(w, &a2);
	assert_none(w);
	assert_why(w, &b, BATON_WHY_KEY, &a);
	advance(w, 100);
	/* Its time has come, and its lane is busy: so others may have the key. */
	const struct baton_work_claim *k = assert_next(w, &b);
	assert_none(w);
	complete(w, l);
	assert_none(w);
	complete(w, k);
	assert_next(w, &a);
}

static void a_retry_that_blocks_and_gives_up_holds_up_its_lane_alone(void **state)
{
	struct world *w = *state;
	retry_is(w, BATON_ON_RETRY_BLOCK, BATON_HOLD_GIVE_UP);
	struct baton_batch_id a = put_guest(w, "a", "k"), a2 = put_guest(w, "a", "l");
	struct baton_batch_id b = put_guest(w, "b", "k"), c = put_guest(w, "c", "k");
	end(w, assert_next(w, &a), BATON_FAIL);
	const struct baton_work_claim *k = assert_next(w, &b);
	assert_none(w);
	assert_why(w, &a2, BATON_WHY_BEHIND, &a);
	advance(w, 100);
	assert_none(w);
	complete(w, k);
	k = assert_next(w, &a); /* where it was: its lane's order is that of numbers */
	assert_none(w);
	complete(w, k);
	const struct baton_work_claims *rest = claim_some(w, 10);
	assert_int_equal(rest->count, 2);
	assert_is(&rest->claims[0], &a2);
	assert_is(&rest->claims[1], &c);
	assert_sound(w);
}

static void a_retry_that_is_passed_and_gives_up_holds_up_nobody(void **state)
{
	struct world *w = *state;
	retry_is(w, BATON_ON_RETRY_PASS, BATON_HOLD_GIVE_UP);
	struct baton_batch_id a = put_guest(w, "a", "k"), a2 = put_guest(w, "a", "k");
	struct baton_batch_id b = put_guest(w, "b", "k");
	end(w, assert_next(w, &a), BATON_FAIL);
	const struct baton_work_claim *c = assert_next(w, &a2);
	assert_none(w);
	advance(w, 100);
	assert_none(w);
	complete(w, c);
	c = assert_next(w, &a);
	complete(w, c);
	assert_next(w, &b);
}

static void a_cancelled_retry_lets_go_of_its_key(void **state)
{
	struct world *w = *state;
	retry_is(w, BATON_ON_RETRY_BLOCK, BATON_HOLD_KEEP);
	struct baton_batch_id a = put_guest(w, "a", "k"), b = put_guest(w, "b", "k");
	end(w, assert_next(w, &a), BATON_FAIL);
	assert_none(w);
	assert_int_equal(cancel(w, &a), BATON_CANCEL_REMOVED);
	const struct baton_work_claim *c = assert_next(w, &b);
	retry_is(w, BATON_ON_RETRY_PASS, BATON_HOLD_KEEP);
	a = put_guest(w, "a", "k");
	end(w, c, BATON_FAIL);
	assert_none(w);
	assert_int_equal(revive(w, &b), BATON_OK); /* it is tried at once */
	complete(w, assert_next(w, &b));
	assert_next(w, &a);
}

static void kept_keys_count_against_the_limit(void **state)
{
	struct world *w = *state;
	retry_is(w, BATON_ON_RETRY_PASS, BATON_HOLD_KEEP);
	limit_is(w, 2);
	struct baton_batch_id a = put_guest(w, "a", "k"), b = put_guest(w, "b", "k");
	put_guest(w, "c", "k");
	end(w, assert_next(w, &a), BATON_FAIL);
	assert_next(w, &b);
	assert_none(w);
}

static void what_gives_up_its_claim_in_other_ways_lets_go_of_its_key(void **state)
{
	struct world *w = *state;
	struct baton_batch_id a = put_guest(w, "a", "k"), b = put_guest(w, "b", "k");
	end(w, assert_next(w, &a), BATON_ABANDON);
	struct baton_work_end snooze = {.how = BATON_SNOOZE, .delay = baton_duration_ms(50)};
	snooze.proof = assert_next(w, &a)->proof;
	end_with(w, &snooze);
	const struct baton_work_claim *c = assert_next(w, &b);
	advance(w, 50);
	assert_none(w);
	end(w, c, BATON_REJECT);
	c = assert_next(w, &a);
	assert_int_equal(revive(w, &b), BATON_OK);
	assert_none(w);
	assert_int_equal(cancel(w, &a), BATON_CANCEL_TOLD);
	assert_none(w);
	end(w, c, BATON_ABANDON);
	assert_next(w, &b);
}

static void a_dead_guest_holds_its_lane_and_not_its_key(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	p.on_dead = BATON_ON_DEAD_HOLD;
	set_policy(w, "q", &p);
	struct baton_batch_id a = put_guest(w, "a", "k"), a2 = put_guest(w, "a", "l");
	struct baton_batch_id b = put_guest(w, "b", "k");
	end(w, assert_next(w, &a), BATON_REJECT);
	complete(w, assert_next(w, &b));
	assert_none(w);
	assert_why(w, &a2, BATON_WHY_LANE_HELD, &a);
	assert_int_equal(cancel(w, &a), BATON_CANCEL_REMOVED);
	assert_next(w, &a2);
}

static void a_job_that_comes_before_a_guest_in_its_lane_gives_its_turn_to_the_next(void **state)
{
	struct world *w = *state;
	struct baton_batch_id early = put_later(w, "q", "a", 100);
	struct baton_batch_id a = put_guest(w, "a", "k"), b = put_guest(w, "b", "k");
	assert_why(w, &b, BATON_WHY_BEHIND, &a);
	advance(w, 100);
	const struct baton_work_claims *c = claim_some(w, 10);
	assert_int_equal(c->count, 2);
	assert_is(&c->claims[0], &early);
	assert_is(&c->claims[1], &b);
	complete(w, &c->claims[0]);
	assert_none(w);
	assert_why(w, &a, BATON_WHY_KEY, &b);
	complete(w, &c->claims[1]);
	assert_next(w, &a);
}

static void a_guest_that_becomes_due_takes_its_place_in_lane_and_key(void **state)
{
	struct world *w = *state;
	struct baton_batch_id late = put_guest_later(w, "a", "k", 100);
	struct baton_batch_id a = put_guest(w, "a", "l"), b = put_guest(w, "b", "k");
	struct baton_batch_id x = put_guest(w, "x", "k");
	const struct baton_work_claims *c = claim_some(w, 10);
	assert_int_equal(c->count, 2);
	assert_is(&c->claims[0], &a);
	assert_is(&c->claims[1], &b);
	advance(w, 100);
	assert_none(w);
	complete(w, &c->claims[1]);
	const struct baton_work_claim *k = assert_next(w, &x); /* lane a is busy */
	complete(w, &c->claims[0]);
	assert_none(w);
	complete(w, k);
	assert_next(w, &late);
}

static void a_cancelled_guest_gives_its_turn_to_the_next(void **state)
{
	struct world *w = *state;
	struct baton_batch_id a = put_guest(w, "a", "k"), a2 = put_guest(w, "a", "l");
	struct baton_batch_id b = put_guest(w, "b", "k");
	assert_int_equal(cancel(w, &a), BATON_CANCEL_REMOVED);
	const struct baton_work_claims *c = claim_some(w, 10);
	assert_int_equal(c->count, 2);
	assert_is(&c->claims[0], &a2);
	assert_is(&c->claims[1], &b);
	assert_sound(w);
}

static void an_expired_claim_is_over_once_another_lane_has_its_key(void **state)
{
	struct world *w = *state;
	struct baton_batch_id early = put_guest_later(w, "a", "l", 1000);
	struct baton_batch_id a = put_guest(w, "a", "k"), b = put_guest(w, "b", "k");
	struct baton_batch_id x = put_guest(w, "x", "l");
	const struct baton_work_claim *lost = assert_next(w, &a);
	const struct baton_work_claim *l = assert_next(w, &x);
	renew(w, l, 5000);
	advance(w, 1000);
	/* The lane of the claim that is over now begins with one that waits for another key. */
	assert_int_equal(state_of(w, &early), BATON_BATCH_DELAYED);
	const struct baton_work_claim *c = assert_next(w, &b);
	assert_true(c->fence.v > lost->fence.v);
	assert_int_equal(renew(w, lost, 1000).err, BATON_NOT_HELD);
	assert_int_equal(end(w, lost, BATON_COMPLETE).err, BATON_NOT_HELD);
	assert_int_equal(look(w, &a)->batch.attempt, 1);
	assert_int_equal(state_of(w, &a), BATON_BATCH_READY);
	assert_none(w);
	complete(w, l);
	complete(w, assert_next(w, &early));
	assert_none(w);
	complete(w, c);
	assert_int_equal(assert_next(w, &a)->batches[0].attempt, 2);
}

static void an_expired_claim_of_a_lane_is_over_once_a_job_without_one_has_its_key(void **state)
{
	struct world *w = *state;
	struct baton_batch_id early = put_later(w, "q", "a", 1000);
	struct baton_batch_id a = put_guest(w, "a", "k"), b = put_guest(w, "", "k");
	const struct baton_work_claim *lost = assert_next(w, &a);
	advance(w, 1000);
	const struct baton_work_claims *c = claim_some(w, 10);
	assert_int_equal(c->count, 2);
	assert_is(&c->claims[0], &early);
	assert_is(&c->claims[1], &b);
	assert_int_equal(renew(w, lost, 1000).err, BATON_NOT_HELD);
	assert_none(w);
	complete(w, &c->claims[0]);
	complete(w, &c->claims[1]);
	assert_next(w, &a);
}

static void an_expired_claim_without_a_lane_is_over_once_a_guest_has_its_key(void **state)
{
	struct world *w = *state;
	struct baton_batch_id guest_first = put_guest_later(w, "a", "k", 1000);
	struct baton_batch_id lone = put_guest(w, "", "k");
	const struct baton_work_claim *lost = assert_next(w, &lone);
	advance(w, 1000);
	const struct baton_work_claim *c = assert_next(w, &guest_first);
	assert_int_equal(renew(w, lost, 1000).err, BATON_NOT_HELD);
	assert_none(w);
	complete(w, c);
	assert_next(w, &lone);
}

static void an_expired_claim_is_taken_again_with_its_key(void **state)
{
	struct world *w = *state;
	struct baton_batch_id a = put_guest(w, "a", "k");
	put_guest(w, "b", "k");
	const struct baton_work_claim *lost = assert_next(w, &a);
	advance(w, 1000);
	const struct baton_work_claim *c = assert_next(w, &a);
	assert_int_equal(c->batches[0].attempt, 2);
	assert_true(c->fence.v > lost->fence.v);
	assert_int_equal(renew(w, lost, 1000).err, BATON_NOT_HELD);
	assert_none(w);
}

static void a_lane_whose_expired_head_is_dead_goes_on_with_the_next_call(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	p.retry_lane.attempts = 1;
	set_policy(w, "q", &p);
	struct baton_batch_id a = put_guest(w, "a", "k"), a2 = put_guest(w, "a", "k");
	struct baton_batch_id b = put_guest(w, "b", "k"), c = put_guest(w, "c", "l");
	assert_next(w, &a);
	advance(w, 1000);
	const struct baton_work_claims *some = claim_some(w, 10);
	assert_int_equal(some->count, 1);
	assert_is(&some->claims[0], &c);
	assert_int_equal(state_of(w, &a), BATON_BATCH_DEAD);
	assert_sound(w);
	const struct baton_work_claim *next = assert_next(w, &a2);
	assert_none(w);
	complete(w, next);
	assert_next(w, &b);
}

/* One that has a key alone, or stands together with others, was a head when the call began; what
 * is next in a lane whose first is dead wants the same key, and comes before it. */
static void a_lane_whose_expired_head_is_dead_takes_the_turn_of_others(void **state)
{
	struct world *w = *state;
	struct baton_batch_id ids[TOGETHER + 1];
	set_attempts(w, "q", 1);
	for (int together = 0; together < 2; together++) {
		struct baton_batch_id dead = put_guest(w, "a", "k");
		struct baton_batch_id next = put_guest(w, "a", "2");
		struct baton_batch_id lone = dead;
		assert_next(w, &dead);
		if (together)
			put_together(w, NULL, ids);
		else
			lone = put_guest(w, "", "2");
		advance(w, 1000);
		const struct baton_work_claims *c = claim_some(w, 4);
		assert_sound(w);
		if (together) {
			static const int order[] = {0, 1, 3, 4};
			for (int i = 0; i < 4; i++)
				assert_is(&c->claims[i], &ids[order[i]]);
			lone = ids[2];
		} else {
			assert_null(c);
		}
		assert_why(w, &lone, BATON_WHY_BEHIND, &next);
		complete(w, assert_next(w, &next));
		complete(w, assert_next(w, &lone));
	}
}

/* Of those whose claims are over, the first asked for the key; whoever asked after it is next, and
 * so is the next of its lane, before one without a lane that came later. */
static void one_that_asks_is_next_when_the_expired_claim_before_it_is_dead(void **state)
{
	struct world *w = *state;
	static const char *const lanes[] = {"a", "b"};
	set_attempts(w, "q", 1);
	limit_is(w, 3);
	for (int i = 0; i < 2; i++) {
		struct baton_batch_id early = put_guest_later(w, "", "k", 500);
		struct baton_batch_id dead = put_guest(w, "a", "k");
		assert_next(w, &dead);
		struct baton_batch_id next = put_guest(w, lanes[i], "k");
		struct baton_batch_id last = put_guest(w, "", "k");
		advance(w, 1000);
		const struct baton_work_claims *c = claim_some(w, 3);
		assert_sound(w);
		assert_int_equal(c->count, 1);
		assert_is(&c->claims[0], &early);
		assert_int_equal(state_of(w, &dead), BATON_BATCH_DEAD);
		assert_next(w, &next);
		assert_next(w, &last);
		assert_int_equal(cancel(w, &dead), BATON_CANCEL_REMOVED);
		advance(w, 1000);
		claim_some(w, 3);
		assert_none(w);
	}
}

static void a_lane_that_a_claim_of_its_key_frees_is_for_the_next_call(void **state)
{
	struct world *w = *state;
	set_attempts(w, "q", 1);
	struct baton_batch_id early = put_guest_later(w, "z", "k", 500);
	struct baton_batch_id dead = put_guest(w, "x", "k");
	assert_next(w, &dead);
	struct baton_batch_id behind = put(w, "q", "x");
	advance(w, 1000);
	const struct baton_work_claims *c = claim_some(w, 3);
	assert_int_equal(c->count, 1);
	assert_is(&c->claims[0], &early);
	assert_int_equal(state_of(w, &dead), BATON_BATCH_DEAD);
	assert_next(w, &behind);
	assert_none(w);
}

static void a_renewed_claim_holds_its_key_again(void **state)
{
	struct world *w = *state;
	struct baton_batch_id a = put_guest(w, "a", "k"), b = put_guest(w, "b", "k");
	const struct baton_work_claim *c = assert_next(w, &a);
	advance(w, 1000);
	assert_int_equal(renew(w, c, 1000).err, BATON_OK);
	assert_none(w);
	assert_why(w, &b, BATON_WHY_KEY, &a);
	complete(w, c);
	assert_next(w, &b);
}

/* Others see that it is over, when they claim something else. */
static void a_claim_that_was_seen_to_be_over_can_be_renewed_with_its_key(void **state)
{
	struct world *w = *state;
	struct baton_batch_id early = put_guest_later(w, "a", "l", 1000);
	struct baton_batch_id a = put_guest(w, "a", "k"), x = put_guest(w, "x", "l");
	const struct baton_work_claim *c = assert_next(w, &a);
	renew(w, assert_next(w, &x), 9000);
	advance(w, 1000);
	assert_none(w); /* the lane begins with one that waits for l */
	assert_why(w, &early, BATON_WHY_BEHIND, &a);
	assert_int_equal(renew(w, c, 1000).err, BATON_OK);
	struct baton_batch_id b = put_guest(w, "b", "k");
	assert_none(w);
	assert_why(w, &b, BATON_WHY_KEY, &a);
	assert_int_equal(complete(w, c), BATON_BATCH_GONE);
	assert_next(w, &b);
}

static void a_clock_that_is_set_back_gives_no_key_twice(void **state)
{
	struct world *w = *state;
	struct baton_batch_id early = put_guest_later(w, "a", "l", 1000);
	struct baton_batch_id a = put_guest(w, "a", "k"), b = put_guest(w, "b", "k");
	struct baton_batch_id x = put_guest(w, "x", "l");
	const struct baton_work_claim *lost = assert_next(w, &a);
	renew(w, assert_next(w, &x), 9000);
	advance(w, 1000);
	const struct baton_work_claim *c = assert_next(w, &b);
	step_clock(w, -900);
	assert_none(w);
	assert_int_equal(renew(w, lost, 1000).err, BATON_NOT_HELD);
	assert_int_equal(state_of(w, &a), BATON_BATCH_READY);
	assert_int_equal(state_of(w, &early), BATON_BATCH_READY);
	complete(w, c);
	assert_none(w); /* lane a waits for l */
}

static void a_claim_that_is_live_again_holds_its_key_again(void **state)
{
	struct world *w = *state;
	struct baton_batch_id early = put_guest_later(w, "a", "l", 1000);
	struct baton_batch_id a = put_guest(w, "a", "k"), x = put_guest(w, "x", "l");
	const struct baton_work_claim *c = assert_next(w, &a);
	renew(w, assert_next(w, &x), 9000);
	advance(w, 1000);
	assert_none(w);
	step_clock(w, -900);
	put_guest(w, "b", "k");
	if (claim(w, "q",
	          1)) /* a store may see only now that it is live, and give nothing for that */
		assert_int_equal(renew(w, c, 1000).err, BATON_NOT_HELD);
	assert_none(w);
	assert_int_equal(state_of(w, &early), BATON_BATCH_READY);
}

static void why_names_who_is_before_a_guest(void **state)
{
	struct world *w = *state;
	struct baton_batch_id a = put_guest(w, "a", "k"), b = put_guest(w, "b", "k");
	struct baton_batch_id b2 = put(w, "q", "b"), c = put_guest(w, "", "k");
	assert_why(w, &a, BATON_WHY_READY, NULL);
	assert_why(w, &b, BATON_WHY_BEHIND, &a);
	assert_why(w, &b2, BATON_WHY_BEHIND, &b);
	assert_why(w, &c, BATON_WHY_BEHIND, &a);
	const struct baton_work_claim *k = assert_next(w, &a);
	assert_why(w, &a, BATON_WHY_NOTHING, NULL);
	assert_why(w, &b, BATON_WHY_KEY, &a);
	assert_why(w, &c, BATON_WHY_KEY, &a);
	complete(w, k);
	assert_why(w, &b, BATON_WHY_READY, NULL);
	assert_why(w, &c, BATON_WHY_BEHIND, &b);
	baton_queue_pause(w->store, BATON_STR("q"), true);
	assert_why(w, &b, BATON_WHY_PAUSED, NULL);
}

static void a_key_starts_so_often_in_a_window_in_whichever_lanes(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	p.key_rate = (struct baton_key_rate){2, baton_duration_ms(1000)};
	p.key_limit = 10;
	set_policy(w, "q", &p);
	struct baton_batch_id a = put_guest(w, "a", "k"), b = put_guest(w, "", "k");
	struct baton_batch_id c = put_guest(w, "c", "k"), l = put_guest(w, "l", "l");
	complete(w, assert_next(w, &a));
	complete(w, assert_next(w, &b));
	assert_next(w, &l);
	assert_none(w);
	assert_int_equal(look(w, &c)->why, BATON_WHY_RATE);
	assert_int_equal(look(w, &c)->due.ms, START_MS + 1000);
	advance(w, 999);
	assert_none(w);
	advance(w, 1);
	assert_next(w, &c);
	put_guest(w, "c2", "k");
	p = policy(w, "q");
	p.key_rate.starts = 0;
	set_policy(w, "q", &p);
	assert_non_null(claim(w, "q", 1));
	assert_sound(w);
}

static void a_guest_holds_its_key_no_longer_than_its_ttl(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	p.key_ttl = baton_duration_ms(300);
	set_policy(w, "q", &p);
	struct baton_batch_id a = put_guest(w, "a", "k"), plain = put(w, "q", "b");
	const struct baton_work_claim *c = assert_next(w, &a);
	assert_int_equal(c->expires_at.ms, START_MS + 300);
	assert_int_equal(c->hold.ns, 300000000);
	assert_int_equal(assert_next(w, &plain)->expires_at.ms, START_MS + 1000);
	advance(w, 200);
	assert_int_equal(renew(w, c, 1000).expires_at.ms, START_MS + 500);
	advance(w, 300);
	assert_next(w, &a);
	assert_int_equal(end(w, c, BATON_COMPLETE).err, BATON_NOT_HELD);
}

static void priorities_count_between_heads(void **state)
{
	struct world *w = *state;
	struct baton_batch_id low = put_guest(w, "a", "k");
	struct baton_batch b = guest("b", "l");
	b.priority = 5;
	struct baton_batch_id high = put_batch(w, &b);
	const struct baton_work_claims *c = claim_some(w, 10);
	assert_int_equal(c->count, 2);
	assert_is(&c->claims[0], &high);
	assert_is(&c->claims[1], &low);
}

typedef void (*change)(struct baton_queue_policy *p);

static void skips(struct baton_queue_policy *p)
{
	p->on_conflict = BATON_CONFLICT_SKIP;
}

static void replaces(struct baton_queue_policy *p)
{
	p->on_conflict = BATON_CONFLICT_REPLACE;
}

static void is_fair(struct baton_queue_policy *p)
{
	p->key_fair = BATON_KEY_FAIR_ON;
}

static void is_of_lanes(struct baton_queue_policy *p)
{
	p->mode = BATON_QUEUE_LANE;
}

static const struct {
	change change;
	const char *words;
} refused[] = {{skips, "on_conflict is not wait"},
               {replaces, "on_conflict is not wait"},
               {is_fair, "key_fair is on"},
               {is_of_lanes, "the mode is lane"}};

static void a_lane_and_a_key_are_refused_where_the_policy_cannot_be_kept(void **state)
{
	struct world *w = *state;
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		struct baton_queue_policy p = baton_queue_policy_default();
		struct baton_batch b = guest("a", "k");
		struct baton_put answer;
		refused[i].change(&p);
		set_policy(w, "q", &p);
		assert_int_equal(try_put(w, &b, &answer), BATON_INVALID);
		assert_detail("both a lane and a key");
		assert_detail(refused[i].words);
		assert_int_equal(counts(w, "q").ready, 0);
	}
	const struct baton_queue_policy plain = baton_queue_policy_default();
	set_policy(w, "q", &plain);
	put_guest(w, "a", "k");
	assert_sound(w);
}

static void a_policy_that_cannot_be_kept_is_refused_where_lanes_have_keys(void **state)
{
	struct world *w = *state;
	struct baton_batch_id id = put_guest(w, "a", "k");
	put_later(w, "q", "", 500000);
	complete(w, assert_next(w, &id));
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		struct baton_queue_policy p = policy(w, "q");
		refused[i].change(&p);
		assert_int_equal(baton_queue_set(w->store, BATON_STR("q"), &p), BATON_INVALID);
		assert_detail("has had some with both a lane and a key");
		assert_detail(refused[i].words);
	}
	limit_is(w, 2);
}

/* It may have results, and fences go on growing along its keys. */
static void a_queue_without_work_may_have_any_policy_again(void **state)
{
	struct world *w = *state;
	uint64_t fence = 0;
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		struct baton_queue_policy p = baton_queue_policy_default();
		p.keep = baton_duration_s(1000);
		set_policy(w, "q", &p);
		struct baton_batch_id id = put_guest(w, "a", "k");
		const struct baton_work_claim *c = assert_next(w, &id);
		assert_true(c->fence.v > fence);
		fence = c->fence.v;
		complete(w, c);
		p = policy(w, "q");
		refused[i].change(&p);
		set_policy(w, "q", &p);
		assert_sound(w);
		struct baton_batch b = guest("a", "k");
		struct baton_put answer;
		assert_int_equal(try_put(w, &b, &answer), BATON_INVALID);
		assert_detail(refused[i].words);
		if (p.mode == BATON_QUEUE_LANE)
			continue;
		struct baton_batch_id alone = put_guest(w, "", "k");
		c = assert_next(w, &alone);
		assert_true(c->fence.v > fence);
		fence = c->fence.v;
		complete(w, c);
		assert_sound(w);
	}
}

static void who_holds_a_lane_claims_nothing_where_lanes_have_keys(void **state)
{
	struct world *w = *state;
	put_guest(w, "a", "k");
	struct baton_lease lease = hold_lane(w, "q", "a", NULL);
	struct baton_lane_ask ask = lane_ask("q", "a", &lease);
	const struct baton_work_claim *c;
	assert_int_equal(try_lane(w, &ask, &c), BATON_INVALID);
	assert_detail("the mode is lane");
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

/* Shards from one to another, one claim each. */
static const struct baton_work_claims *tick(struct world *w, struct baton_runner *r, uint32_t from,
                                            uint32_t to, const struct baton_work_claim *done)
{
	struct baton_shard shards[BATON_QUEUE_SHARDS];
	struct baton_shard_answer owned[BATON_QUEUE_SHARDS];
	struct baton_work_claims *claims = NULL;
	struct baton_work_ended ended;
	struct baton_work_end ends = {.how = BATON_COMPLETE};
	for (uint32_t i = from; i < to; i++)
		shards[i - from] = (struct baton_shard){BATON_STR("q"), i, 10, 10};
	assert_int_equal(baton_shard_take(r, shards, to - from, owned), BATON_OK);
	if (done)
		ends.proof = done->proof;
	const struct baton_tick t = {.shards = shards,
	                             .shard_count = to - from,
	                             .owned = owned,
	                             .ends = &ends,
	                             .end_count = done != NULL,
	                             .ended = &ended};
	assert_int_equal(baton_runner_tick(r, &t, &claims), BATON_OK);
	if (done)
		assert_int_equal(ended.err, BATON_OK);
	keep_claims(w, claims);
	assert_sound(w);
	return claims;
}

#define LANE_NAME 16

/* A lane whose shard is below the middle, or not. */
static void lane_of(struct world *w, bool low, int n, char name[LANE_NAME])
{
	struct baton_where where;
	for (int i = 0;; i++) {
		snprintf(name, LANE_NAME, "%c%d", low ? 'l' : 'h', i);
		assert_int_equal(baton_lane_where(w->store, BATON_STR("q"), baton_str_z(name),
		                                  &where),
		                 BATON_OK);
		if ((where.shard < BATON_QUEUE_SHARDS / 2) == low && n-- == 0)
			return;
	}
}

#define HALF (BATON_QUEUE_SHARDS / 2)

static void runners_of_different_shards_share_a_key(void **state)
{
	struct world *w = *state;
	struct baton_runner *one = enlist(w, "one"), *two = enlist(w, "two");
	char low[LANE_NAME], high[LANE_NAME];
	limit_is(w, 1);
	lane_of(w, true, 0, low);
	lane_of(w, false, 0, high);
	struct baton_batch_id ids[4];
	for (int i = 0; i < 4; i++)
		ids[i] = put_guest(w, i % 2 ? high : low, "k");
	uint64_t fence = 0;
	const struct baton_work_claim *last[2] = {NULL, NULL};
	for (int i = 0; i < 4; i++) {
		struct baton_runner *mine = i % 2 ? two : one, *other = i % 2 ? one : two;
		const struct baton_work_claims *c =
			tick(w, mine, i % 2 ? HALF : 0, i % 2 ? 2 * HALF : HALF, NULL);
		assert_int_equal(c->count, 1);
		assert_is(&c->claims[0], &ids[i]);
		assert_true(c->claims[0].fence.v > fence); /* along the key, whoever gives it */
		fence = c->claims[0].fence.v;
		assert_null(tick(w, other, i % 2 ? 0 : HALF, i % 2 ? HALF : 2 * HALF, NULL));
		last[i % 2] = &c->claims[0];
		if (i < 3) {
			const struct baton_work_claims *none =
				tick(w, mine, i % 2 ? HALF : 0, i % 2 ? 2 * HALF : HALF,
			             last[i % 2]);
			assert_null(none); /* the next one is the other's */
		}
	}
	baton_runner_leave(one);
	baton_runner_leave(two);
	assert_sound(w);
}

static void a_job_without_a_lane_has_a_higher_fence_than_the_guest_before_it(void **state)
{
	struct world *w = *state;
	struct baton_runner *one = enlist(w, "one"), *two = enlist(w, "two");
	char low[LANE_NAME], key[LANE_NAME];
	limit_is(w, 1);
	lane_of(w, true, 0, low);
	lane_of(w, false, 0, key);    /* a key of that name has its shard */
	for (int i = 0; i < 3; i++) { /* more changes of owner for the lower half */
		assert_null(tick(w, one, 0, HALF, NULL));
		baton_runner_leave(one);
		one = enlist(w, "one");
	}
	struct baton_batch_id a = put_guest(w, low, key), b = put_guest(w, "", key);
	const struct baton_work_claims *c = tick(w, one, 0, HALF, NULL);
	assert_is(&c->claims[0], &a);
	assert_null(tick(w, two, HALF, 2 * HALF, NULL));
	assert_null(tick(w, one, 0, HALF, &c->claims[0]));
	const struct baton_work_claims *next = tick(w, two, HALF, 2 * HALF, NULL);
	assert_is(&next->claims[0], &b);
	assert_true(next->claims[0].fence.v > c->claims[0].fence.v);
	baton_runner_leave(one);
	baton_runner_leave(two);
}

/* Those who are put together, after guests in another shard; `fair`: in a queue that had no work in
 * between, and has a policy that guests cannot be under. */
static void assert_higher_fences(struct world *w, bool fair)
{
	struct baton_runner *one = enlist(w, "one"), *two = enlist(w, "two");
	struct baton_queue_policy p = policy(w, "q");
	struct baton_batch batches[4];
	char names[5][LANE_NAME]; /* a lane of the first shard, and keys of the second */
	uint64_t fence = 0;
	p.shards = 2;
	set_policy(w, "q", &p);
	for (int i = 0, n = 0; n < 5; i++) {
		struct baton_where where;
		snprintf(names[n], LANE_NAME, "n%d", i);
		assert_int_equal(baton_lane_where(w->store, BATON_STR("q"), baton_str_z(names[n]),
		                                  &where),
		                 BATON_OK);
		n += where.shard == (n > 0);
	}
	for (int i = 0; i < 3; i++) { /* more changes of owner for the first shard */
		assert_null(tick(w, one, 0, 1, NULL));
		baton_runner_leave(one);
		one = enlist(w, "one");
	}
	for (int i = 0; i < 4; i++) {
		struct baton_batch_id id = put_guest(w, names[0], names[1 + i]);
		const struct baton_work_claims *c = tick(w, one, 0, 1, NULL);
		assert_is(&c->claims[0], &id);
		fence = c->claims[0].fence.v;
		assert_null(tick(w, one, 0, 1, &c->claims[0]));
		batches[i] = guest("", names[1 + i]);
	}
	p.mode = BATON_QUEUE_RUNNER;
	p.key_fair = fair ? BATON_KEY_FAIR_ON : BATON_KEY_FAIR_OFF;
	set_policy(w, "q", &p);
	assert_int_equal(baton_work_put(w->store, batches, 4, NULL), BATON_OK);
	const struct baton_work_claims *c = tick(w, two, 1, 2, NULL);
	assert_int_equal(c->count, 4);
	for (int i = 0; i < 4; i++) {
		assert_true(c->claims[i].fence.v > fence);
		fence = c->claims[i].fence.v;
	}
	baton_runner_leave(one);
	baton_runner_leave(two);
}

static void those_who_are_put_together_have_higher_fences_than_guests_before_them(void **state)
{
	assert_higher_fences(*state, false);
}

static void fences_are_higher_where_no_guests_can_be_any_more(void **state)
{
	assert_higher_fences(*state, true);
}

static void a_takeover_frees_the_keys_of_the_lost_runner(void **state)
{
	struct world *w = *state;
	struct baton_runner *lost = enlist(w, "one"), *next = enlist(w, "two");
	char low[LANE_NAME], high[LANE_NAME];
	limit_is(w, 1);
	lane_of(w, true, 0, low);
	lane_of(w, false, 0, high);
	struct baton_batch_id a = put_guest(w, low, "k"), b = put_guest(w, high, "k");
	const struct baton_work_claims *c = tick(w, lost, 0, HALF, NULL);
	assert_is(&c->claims[0], &a);
	assert_null(tick(w, next, HALF, 2 * HALF, NULL));
	struct baton_runner_info infos[2];
	size_t count;
	assert_int_equal(baton_runner_list(w->store, 0, infos, 2, &count), BATON_OK);
	unsigned rings = w->rings;
	assert_int_equal(baton_runner_take_over(w->store, &infos[0]), BATON_OK);
	assert_true(w->rings > rings);
	assert_sound(w);
	assert_null(tick(w, next, HALF, 2 * HALF, NULL)); /* it is the first one's turn again */
	c = tick(w, next, 0, HALF, NULL);
	assert_is(&c->claims[0], &a);
	assert_int_equal(c->claims[0].batches[0].attempt, 2);
	const struct baton_work_claims *last = tick(w, next, 0, 2 * HALF, &c->claims[0]);
	assert_is(&last->claims[0], &b);
	baton_runner_leave(lost);
	baton_runner_leave(next);
	assert_sound(w);
}

static void a_runner_that_leaves_gives_its_keys_back(void **state)
{
	struct world *w = *state;
	struct baton_runner *one = enlist(w, "one"), *two = enlist(w, "two");
	struct baton_batch_id a = put_guest(w, "a", "k");
	put_guest(w, "b", "k");
	const struct baton_work_claims *c = tick(w, one, 0, 2 * HALF, NULL);
	assert_int_equal(c->count, 1);
	baton_runner_leave(one);
	assert_sound(w);
	c = tick(w, two, 0, 2 * HALF, NULL);
	assert_int_equal(c->count, 1);
	assert_is(&c->claims[0], &a);
	assert_int_equal(c->claims[0].batches[0].attempt, 1);
	baton_runner_leave(two);
}

static void a_takeover_frees_the_key_of_a_guest_that_was_cancelled(void **state)
{
	struct world *w = *state;
	struct baton_runner *lost = enlist(w, "one"), *next = enlist(w, "two");
	struct baton_runner_info infos[2];
	size_t count;
	char low[LANE_NAME], high[LANE_NAME];
	limit_is(w, 1);
	lane_of(w, true, 0, low);
	lane_of(w, false, 0, high);
	struct baton_batch_id a = put_guest(w, low, "k"), b = put_guest(w, high, "k");
	const struct baton_work_claims *c = tick(w, lost, 0, HALF, NULL);
	assert_is(&c->claims[0], &a);
	assert_int_equal(cancel(w, &a), BATON_CANCEL_TOLD);
	assert_int_equal(baton_runner_list(w->store, 0, infos, 2, &count), BATON_OK);
	assert_int_equal(baton_runner_take_over(w->store, &infos[0]), BATON_OK);
	assert_sound(w);
	c = tick(w, next, HALF, 2 * HALF, NULL);
	assert_non_null(c);
	assert_is(&c->claims[0], &b);
	baton_runner_leave(lost);
	baton_runner_leave(next);
	assert_sound(w);
}

static void a_run_gets_no_work_with_a_key_at_a_checkpoint(void **state)
{
	struct world *w = *state;
	struct baton_runner *r = enlist(w, "one");
	struct baton_batch_id first = put_guest_join(w, "a", "k");
	put_guest_join(w, "a", "l");
	put_join(w, "q", "a", "");
	const struct baton_work_claims *c = tick(w, r, 0, 2 * HALF, NULL);
	assert_int_equal(c->count, 1);
	assert_int_equal(c->claims[0].count, 1);
	assert_is(&c->claims[0], &first);
	const struct baton_more_ask ask = {.queue = BATON_STR("q"),
	                                   .lane = BATON_STR("a"),
	                                   .shard = c->claims[0].shard,
	                                   .proof = c->claims[0].proof,
	                                   .max = 10};
	struct baton_work_claims *more = NULL;
	assert_int_equal(baton_runner_more(r, &ask, &more), BATON_OK);
	assert_null(more);
	baton_runner_leave(r);
	assert_sound(w);
}

/* Two keys that get free in turn, and lanes that want first one and then the other. */
static void lanes_that_want_two_keys_in_turn_all_come_to_an_end(void **state)
{
	struct world *w = *state;
	enum {
		LANES = 30,
		JOBS = 4
	};
	for (int j = 0; j < JOBS; j++) {
		for (int i = 0; i < LANES; i++) {
			char lane[LANE_NAME];
			snprintf(lane, sizeof lane, "%d", i);
			put_guest(w, lane, (i + j) % 2 ? "k" : "l");
		}
	}
	uint64_t last[LANES] = {0}, done = 0;
	for (;;) {
		const struct baton_work_claims *c = claim_some(w, 10);
		if (!c)
			break;
		assert_in_range(c->count, 1, 2);
		for (size_t i = 0; i < c->count; i++) {
			char text[8];
			snprintf(text, sizeof text, "%.*s", (int)c->claims[i].lane.len,
			         c->claims[i].lane.ptr);
			int lane = atoi(text);
			assert_true(c->claims[i].batches[0].seq > last[lane]);
			last[lane] = c->claims[i].batches[0].seq;
			complete(w, &c->claims[i]);
			done++;
		}
	}
	assert_int_equal(done, LANES * JOBS);
	assert_sound(w);
}

static void a_repeated_put_of_a_guest_is_the_same(void **state)
{
	struct world *w = *state;
	struct baton_batch b = guest("a", "k");
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

static void a_kept_result_holds_no_key(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	p.keep = baton_duration_s(10);
	set_policy(w, "q", &p);
	struct baton_batch_id a = put_guest(w, "a", "k"), b = put_guest(w, "b", "k");
	complete(w, assert_next(w, &a));
	assert_int_equal(state_of(w, &a), BATON_BATCH_DONE);
	assert_str(look(w, &a)->key, "k");
	complete(w, assert_next(w, &b));
	advance(w, 10000);
	size_t count;
	assert_int_equal(baton_store_tidy(w->store, 100, &count), BATON_OK);
	assert_sound(w);
}

static const struct CMUnitTest tests[] = {
	WORLD_TEST(a_claim_says_its_lane_and_its_key),
	WORLD_TEST(the_longest_names_are_kept_whole),
	WORLD_TEST(a_key_is_held_by_one_lane_and_the_next_in_order_follows),
	WORLD_TEST(a_lane_keeps_its_order_whatever_keys_it_has),
	WORLD_TEST(those_with_a_lane_and_those_without_share_a_key_in_order),
	WORLD_TEST(one_that_has_its_key_alone_meets_a_guest),
	WORLD_TEST(a_guest_waits_for_one_that_stands_together_with_others),
	WORLD_TEST(a_guest_waits_for_a_claim_that_stands_together_with_others),
	WORLD_TEST(those_who_are_put_together_wait_for_a_guest),
	WORLD_TEST(a_guest_that_is_put_with_others_waits_for_that_of_its_key),
	WORLD_TEST(a_guest_meets_those_who_were_put_together_while_it_was_not_the_first),
	WORLD_TEST(a_guest_that_is_not_the_first_of_its_lane_holds_up_no_key),
	WORLD_TEST(as_many_hold_a_key_as_its_limit_says),
	WORLD_TEST(what_a_call_makes_free_is_for_the_next_one_which_is_woken),
	WORLD_TEST(an_end_wakes_who_waits_for_the_key),
	WORLD_TEST(a_joined_claim_is_of_one_key_and_holds_it_once),
	WORLD_TEST(a_higher_limit_lets_those_begin_who_wait),
	WORLD_TEST(a_lower_limit_holds_for_those_who_come),
	WORLD_TEST(a_retry_that_blocks_and_keeps_holds_up_its_lane_and_its_key),
	WORLD_TEST(a_retry_that_is_passed_and_keeps_holds_up_its_key_alone),
	WORLD_TEST(a_retry_that_blocks_and_gives_up_holds_up_its_lane_alone),
	WORLD_TEST(a_retry_that_is_passed_and_gives_up_holds_up_nobody),
	WORLD_TEST(a_cancelled_retry_lets_go_of_its_key),
	WORLD_TEST(kept_keys_count_against_the_limit),
	WORLD_TEST(what_gives_up_its_claim_in_other_ways_lets_go_of_its_key),
	WORLD_TEST(a_dead_guest_holds_its_lane_and_not_its_key),
	WORLD_TEST(a_job_that_comes_before_a_guest_in_its_lane_gives_its_turn_to_the_next),
	WORLD_TEST(a_guest_that_becomes_due_takes_its_place_in_lane_and_key),
	WORLD_TEST(a_cancelled_guest_gives_its_turn_to_the_next),
	WORLD_TEST(an_expired_claim_is_over_once_another_lane_has_its_key),
	WORLD_TEST(an_expired_claim_of_a_lane_is_over_once_a_job_without_one_has_its_key),
	WORLD_TEST(an_expired_claim_without_a_lane_is_over_once_a_guest_has_its_key),
	WORLD_TEST(an_expired_claim_is_taken_again_with_its_key),
	WORLD_TEST(a_lane_whose_expired_head_is_dead_goes_on_with_the_next_call),
	WORLD_TEST(a_lane_whose_expired_head_is_dead_takes_the_turn_of_others),
	WORLD_TEST(one_that_asks_is_next_when_the_expired_claim_before_it_is_dead),
	WORLD_TEST(a_lane_that_a_claim_of_its_key_frees_is_for_the_next_call),
	WORLD_TEST(a_renewed_claim_holds_its_key_again),
	WORLD_TEST(a_claim_that_was_seen_to_be_over_can_be_renewed_with_its_key),
	WORLD_TEST(a_clock_that_is_set_back_gives_no_key_twice),
	WORLD_TEST(a_claim_that_is_live_again_holds_its_key_again),
	WORLD_TEST(why_names_who_is_before_a_guest),
	WORLD_TEST(a_key_starts_so_often_in_a_window_in_whichever_lanes),
	WORLD_TEST(a_guest_holds_its_key_no_longer_than_its_ttl),
	WORLD_TEST(priorities_count_between_heads),
	WORLD_TEST(a_lane_and_a_key_are_refused_where_the_policy_cannot_be_kept),
	WORLD_TEST(a_policy_that_cannot_be_kept_is_refused_where_lanes_have_keys),
	WORLD_TEST(a_queue_without_work_may_have_any_policy_again),
	WORLD_TEST(who_holds_a_lane_claims_nothing_where_lanes_have_keys),
	WORLD_TEST(runners_of_different_shards_share_a_key),
	WORLD_TEST(a_job_without_a_lane_has_a_higher_fence_than_the_guest_before_it),
	WORLD_TEST(those_who_are_put_together_have_higher_fences_than_guests_before_them),
	WORLD_TEST(fences_are_higher_where_no_guests_can_be_any_more),
	WORLD_TEST(a_takeover_frees_the_keys_of_the_lost_runner),
	WORLD_TEST(a_runner_that_leaves_gives_its_keys_back),
	WORLD_TEST(a_takeover_frees_the_key_of_a_guest_that_was_cancelled),
	WORLD_TEST(a_run_gets_no_work_with_a_key_at_a_checkpoint),
	WORLD_TEST(lanes_that_want_two_keys_in_turn_all_come_to_an_end),
	WORLD_TEST(a_repeated_put_of_a_guest_is_the_same),
	WORLD_TEST(a_kept_result_holds_no_key),
};

WORLD_MAIN("guests", tests)
