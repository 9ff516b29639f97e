/* How many jobs of a queue wait for a key: what could be claimed otherwise, without those whose
 * turn it is. */
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

static const struct CMUnitTest tests[] = {
	WORLD_TEST(work_without_keys_waits_for_none),
	WORLD_TEST(one_alone_with_its_key_waits_for_nobody),
	WORLD_TEST(those_behind_the_first_of_a_key_wait_for_it),
	WORLD_TEST(a_higher_limit_moves_one_on_at_a_time),
	WORLD_TEST(what_is_delayed_waits_for_its_time_first),
	WORLD_TEST(one_that_is_cancelled_waits_no_more),
	WORLD_TEST(those_of_an_expired_claim_come_before_the_others),
	WORLD_TEST(one_that_comes_back_waits_as_it_did),
	WORLD_TEST(a_key_that_has_started_as_often_as_it_may_keeps_all),
	WORLD_TEST(a_lane_waits_with_its_first),
	WORLD_TEST(a_lane_that_is_busy_asks_for_nothing),
	WORLD_TEST(one_with_several_keys_waits_once),
	WORLD_TEST(one_that_gives_way_waits_no_more),
};

WORLD_MAIN("waiting", tests)
