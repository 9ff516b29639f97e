/* How many jobs of a queue wait for a key: what could be claimed otherwise, without those whose
 * turn it is. And how many of a key may. */
#include <stdio.h>

#include "world.h"

/* "" for the lane, or the key: none. */
static struct baton_batch keyed(const char *lane, const char *key)
{
	struct baton_batch b = batch_of("q", lane, NULL);
	b.key = baton_str_z(key);
	return b;
}

static struct baton_batch_id put_in(struct world *w, const char *lane, const char *key)
{
	struct baton_batch b = keyed(lane, key);
	return put_batch(w, &b);
}

static struct baton_batch_id put_key(struct world *w, const char *key)
{
	return put_in(w, "", key);
}

static struct baton_batch_id put_keys(struct world *w, const char *lane, const char *one,
                                      const char *other)
{
	const struct baton_str keys[] = {baton_str_z(one), baton_str_z(other)};
	struct baton_batch b = batch_of("q", lane, NULL);
	b.keys = keys;
	b.key_count = 2;
	return put_batch(w, &b);
}

static void assert_waiting(struct world *w, uint64_t waiting)
{
	assert_int_equal(counts(w, "q").waiting_on_key, waiting);
	assert_sound(w);
}

static void work_without_keys_waits_for_none(void **state)
{
	struct world *w = *state;
	put(w, "q", "");
	put(w, "q", "a");
	put(w, "q", "a");
	assert_waiting(w, 0);
	claim(w, "q", 1);
	assert_waiting(w, 0);
}

static void one_alone_with_its_key_waits_for_nobody(void **state)
{
	struct world *w = *state;
	put_key(w, "k");
	put_key(w, "l");
	assert_waiting(w, 0);
	claim(w, "q", 1);
	assert_waiting(w, 0);
}

static void those_behind_the_first_of_a_key_wait_for_it(void **state)
{
	struct world *w = *state;
	for (int i = 0; i < 3; i++)
		put_key(w, "k");
	put_key(w, "l");
	assert_waiting(w, 2);
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_waiting(w, 2);
	complete(w, c);
	assert_waiting(w, 1);
}

static void a_higher_limit_moves_one_on_at_a_time(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = baton_queue_policy_default();
	set_policy(w, "q", &p);
	for (int i = 0; i < 3; i++)
		put_key(w, "k");
	claim(w, "q", 1);
	assert_waiting(w, 2);
	p = policy(w, "q");
	p.key_limit = 2;
	set_policy(w, "q", &p);
	assert_waiting(w, 1);
	p.key_limit = 1;
	set_policy(w, "q", &p);
	assert_waiting(w, 2);
}

static void what_is_delayed_waits_for_its_time_first(void **state)
{
	struct world *w = *state;
	struct baton_batch later = keyed("", "k");
	later.delay = baton_duration_ms(500);
	put_key(w, "k");
	put_batch(w, &later);
	assert_waiting(w, 0);
	advance(w, 500);
	claim(w, "q", 1);
	assert_waiting(w, 1);
}

static void one_that_is_cancelled_waits_no_more(void **state)
{
	struct world *w = *state;
	struct baton_batch_id first = put_key(w, "k"), last = put_key(w, "k");
	put_key(w, "k");
	assert_int_equal(cancel(w, &last), BATON_CANCEL_REMOVED);
	assert_waiting(w, 1);
	assert_int_equal(cancel(w, &first), BATON_CANCEL_REMOVED);
	assert_waiting(w, 0);
}

static void those_of_an_expired_claim_come_before_the_others(void **state)
{
	struct world *w = *state;
	put_key(w, "k");
	put_key(w, "k");
	const struct baton_work_claim *c = claim(w, "q", 1);
	put(w, "q", "a");
	advance(w, 1000);
	const struct baton_work_ask none = {.queue = BATON_STR("q"),
	                                    .claims = 1,
	                                    .max = 1,
	                                    .ttl = baton_duration_ms(1000)};
	assert_int_equal(claim_many(w, &none)->count, 1);
	assert_waiting(w, 1);
	assert_int_equal(renew(w, c, 1000).err, BATON_NOT_HELD);
}

/* Its claim has expired, and it fails all the same. */
static void one_that_fails_late_and_queues_again_waits_once(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = baton_queue_policy_default();
	p.hold_on_retry = BATON_HOLD_GIVE_UP;
	p.retry.backoff = BATON_BACKOFF_FIXED;
	p.retry.base = baton_duration_ms(100);
	set_policy(w, "q", &p);
	put_key(w, "k");
	put_key(w, "k");
	put_key(w, "k");
	const struct baton_work_claim *c = claim(w, "q", 1);
	struct baton_batch urgent = batch_of("q", "", NULL);
	urgent.priority = BATON_PRIORITY_MAX;
	put_batch(w, &urgent);
	advance(w, 1000);
	assert_int_equal(claim(w, "q", 1)->key.len, 0);
	end(w, c, BATON_FAIL);
	assert_waiting(w, 1);
}

static void one_that_comes_back_waits_as_it_did(void **state)
{
	struct world *w = *state;
	put_key(w, "k");
	put_key(w, "k");
	end(w, claim(w, "q", 1), BATON_ABANDON);
	assert_waiting(w, 1);
}

static void a_key_that_has_started_as_often_as_it_may_keeps_all(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = baton_queue_policy_default();
	p.key_rate = (struct baton_key_rate){1, baton_duration_ms(1000)};
	set_policy(w, "q", &p);
	put_key(w, "k");
	put_key(w, "k");
	complete(w, claim(w, "q", 1));
	assert_waiting(w, 1);
	put(w, "q", "");
	advance(w, 1000);
	claim(w, "q", 1);
	assert_waiting(w, 0);
}

static void a_lane_waits_with_its_first(void **state)
{
	struct world *w = *state;
	put_key(w, "k");
	put_in(w, "a", "k");
	put_in(w, "a", "k");
	put_in(w, "b", "l");
	put_in(w, "c", "");
	put_in(w, "c", "k");
	assert_waiting(w, 1);
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_waiting(w, 1);
	complete(w, c);
	assert_waiting(w, 0);
}

static void a_lane_that_is_busy_asks_for_nothing(void **state)
{
	struct world *w = *state;
	put_in(w, "a", "");
	put_key(w, "k");
	put_in(w, "a", "k");
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_waiting(w, 0);
	complete(w, c);
	assert_waiting(w, 1);
}

static void one_with_several_keys_waits_once(void **state)
{
	struct world *w = *state;
	put_key(w, "k");
	put_keys(w, "", "k", "l");
	put_keys(w, "a", "l", "m");
	put_key(w, "m");
	assert_waiting(w, 3);
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_waiting(w, 3);
	complete(w, c);
	assert_waiting(w, 2);
	c = claim(w, "q", 1);
	complete(w, c);
	assert_waiting(w, 1);
}

static void one_that_gives_way_waits_no_more(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = baton_queue_policy_default();
	p.on_conflict = BATON_CONFLICT_LATEST;
	set_policy(w, "q", &p);
	put_key(w, "k");
	claim(w, "q", 1);
	for (int i = 0; i < 3; i++) {
		put_key(w, "k");
		assert_waiting(w, 1);
	}
}

static void bound_is(struct world *w, uint32_t max)
{
	struct baton_queue_policy p = policy(w, "q");
	p.key_waiting_max = max;
	set_policy(w, "q", &p);
}

static void assert_refused(struct world *w, const struct baton_batch *b, const char *key)
{
	char words[80];
	struct baton_put ignored;
	uint64_t ready = counts(w, "q").ready;
	snprintf(words, sizeof words, "key \"%s\" of queue \"q\" has as many jobs waiting", key);
	assert_int_equal(try_put(w, b, &ignored), BATON_FULL);
	assert_detail(words);
	assert_int_equal(counts(w, "q").ready, ready);
	assert_sound(w);
}

static void assert_full(struct world *w, const char *lane, const char *key)
{
	struct baton_batch b = keyed(lane, key);
	assert_refused(w, &b, key);
}

static void a_key_is_bounded_wherever_those_stand_who_want_it(void **state)
{
	struct world *w = *state;
	bound_is(w, 3);
	put_in(w, "a", "k");
	put_in(w, "a", "k");
	put_key(w, "k");
	put_in(w, "b", "l");
	assert_full(w, "c", "k");
	assert_full(w, "a", "k");
	assert_full(w, "", "k");
	complete(w, claim(w, "q", 1));
	put_in(w, "c", "k");
	assert_full(w, "", "k");
}

/* Its other keys may have room. */
static void each_of_several_keys_is_bounded(void **state)
{
	struct world *w = *state;
	const struct baton_str keys[] = {BATON_STR("m"), BATON_STR("l")};
	struct baton_batch b = batch_of("q", "", NULL);
	b.keys = keys;
	b.key_count = 2;
	bound_is(w, 2);
	put_keys(w, "", "k", "l");
	put_keys(w, "a", "l", "m");
	assert_refused(w, &b, "l");
	assert_full(w, "", "l");
	put_key(w, "k");
	put_in(w, "a", "m");
	assert_full(w, "b", "k");
	assert_full(w, "b", "m");
	complete(w, claim(w, "q", 1));
	assert_full(w, "b", "m");
	put_in(w, "b", "l");
}

static void what_is_delayed_counts_once_it_is_ready(void **state)
{
	struct world *w = *state;
	struct baton_batch later = keyed("a", "k");
	later.delay = baton_duration_ms(500);
	bound_is(w, 1);
	put_batch(w, &later);
	put_in(w, "b", "k");
	put_batch(w, &later);
	assert_full(w, "c", "k");
	const struct baton_work_claim *c = claim(w, "q", 1);
	advance(w, 500);
	complete(w, c);
	put(w, "q", "");
	claim(w, "q", 1);
	assert_full(w, "c", "k");
	assert_sound(w);
}

static void one_that_comes_back_counts_again_and_is_never_refused(void **state)
{
	struct world *w = *state;
	bound_is(w, 1);
	put_in(w, "a", "k");
	const struct baton_work_claim *c = claim(w, "q", 1);
	struct baton_batch_id next = put_in(w, "b", "k");
	end(w, c, BATON_ABANDON);
	assert_full(w, "c", "k");
	assert_int_equal(cancel(w, &next), BATON_CANCEL_REMOVED);
	assert_full(w, "c", "k");
	claim(w, "q", 1);
	put_in(w, "c", "k");
	assert_full(w, "d", "k");
}

static void a_revived_one_counts_again(void **state)
{
	struct world *w = *state;
	set_attempts(w, "q", 1);
	bound_is(w, 1);
	struct baton_batch_id id = put_keys(w, "a", "k", "l");
	end(w, claim(w, "q", 1), BATON_FAIL);
	put_key(w, "k");
	assert_full(w, "b", "k");
	assert_int_equal(revive(w, &id), BATON_OK);
	assert_full(w, "b", "l");
}

/* Those that wait stay, however many they are; and nothing is known of them any more when the bound
 * is gone. */
static void a_bound_that_is_set_later_counts_those_that_wait(void **state)
{
	struct world *w = *state;
	struct baton_batch_id first = put_in(w, "a", "k");
	struct baton_batch later = keyed("a", "k");
	later.delay = baton_duration_ms(500);
	put_in(w, "a", "k");
	put_keys(w, "b", "k", "l");
	put_key(w, "k");
	put_batch(w, &later);
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_id(c->batches[0].id, first);
	bound_is(w, 3);
	assert_int_equal(counts(w, "q").ready, 3);
	assert_full(w, "c", "k");
	put_in(w, "c", "l");
	bound_is(w, 4);
	put_in(w, "c", "k");
	assert_full(w, "c", "k");
	bound_is(w, 0);
	put_in(w, "c", "k");
	complete(w, c);
	assert_sound(w);
	bound_is(w, 5);
	assert_full(w, "c", "k");
	bound_is(w, 6);
	put_in(w, "c", "k");
	assert_full(w, "c", "k");
}

static void those_of_one_call_are_counted_one_after_the_other(void **state)
{
	struct world *w = *state;
	struct baton_batch both[] = {keyed("a", "k"), keyed("b", "k"), keyed("c", "k")};
	struct baton_put puts[3];
	bound_is(w, 2);
	assert_int_equal(baton_work_put(w->store, both, 3, puts), BATON_FULL);
	assert_int_equal(counts(w, "q").ready, 0);
	assert_int_equal(baton_work_put(w->store, both, 2, puts), BATON_OK);
	assert_full(w, "", "k");
}

static void what_a_job_emits_is_bounded_too(void **state)
{
	struct world *w = *state;
	struct baton_batch emits[] = {keyed("a", "k"), keyed("b", "k")};
	put(w, "q", "");
	bound_is(w, 1);
	const struct baton_work_claim *c = claim(w, "q", 1);
	struct baton_work_end done = {.proof = c->proof,
	                              .how = BATON_COMPLETE,
	                              .emits = emits,
	                              .emit_count = 2};
	assert_int_equal(end_with(w, &done).err, BATON_FULL);
	done.emit_count = 1;
	assert_int_equal(end_with(w, &done).err, BATON_OK);
	assert_full(w, "b", "k");
}

static const struct CMUnitTest tests[] = {
	WORLD_TEST(a_key_is_bounded_wherever_those_stand_who_want_it),
	WORLD_TEST(each_of_several_keys_is_bounded),
	WORLD_TEST(what_is_delayed_counts_once_it_is_ready),
	WORLD_TEST(one_that_comes_back_counts_again_and_is_never_refused),
	WORLD_TEST(a_revived_one_counts_again),
	WORLD_TEST(a_bound_that_is_set_later_counts_those_that_wait),
	WORLD_TEST(those_of_one_call_are_counted_one_after_the_other),
	WORLD_TEST(what_a_job_emits_is_bounded_too),
	WORLD_TEST(work_without_keys_waits_for_none),
	WORLD_TEST(one_alone_with_its_key_waits_for_nobody),
	WORLD_TEST(those_behind_the_first_of_a_key_wait_for_it),
	WORLD_TEST(a_higher_limit_moves_one_on_at_a_time),
	WORLD_TEST(what_is_delayed_waits_for_its_time_first),
	WORLD_TEST(one_that_is_cancelled_waits_no_more),
	WORLD_TEST(those_of_an_expired_claim_come_before_the_others),
	WORLD_TEST(one_that_fails_late_and_queues_again_waits_once),
	WORLD_TEST(one_that_comes_back_waits_as_it_did),
	WORLD_TEST(a_key_that_has_started_as_often_as_it_may_keeps_all),
	WORLD_TEST(a_lane_waits_with_its_first),
	WORLD_TEST(a_lane_that_is_busy_asks_for_nothing),
	WORLD_TEST(one_with_several_keys_waits_once),
	WORLD_TEST(one_that_gives_way_waits_no_more),
};

WORLD_MAIN("waiting", tests)
