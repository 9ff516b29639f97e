/* Queues: their policies, modes and counts. */
#include "world.h"

static enum baton_err try_set(struct world *w, const struct baton_queue_policy *p)
{
	return baton_queue_set(w->store, BATON_STR("q"), p);
}

static void a_policy_comes_back_as_it_was_set(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = baton_queue_policy_default();
	p.mode = BATON_QUEUE_LANE;
	p.shards = 4096;
	p.payload_max = 77;
	p.waiting_max = 78;
	p.retry = (struct baton_retry){7, BATON_BACKOFF_FIXED, baton_duration_ms(5),
	                               baton_duration_ms(6)};
	p.retry_lane = (struct baton_retry){8, BATON_BACKOFF_NONE, baton_duration_ms(9),
	                                    baton_duration_ms(10)};
	p.on_retry = BATON_ON_RETRY_PASS;
	p.on_dead = BATON_ON_DEAD_HOLD;
	p.dedupe = baton_duration_ms(11);
	p.keep = baton_duration_ms(12);
	p.paused = true;
	set_policy(w, "q", &p);
	struct baton_queue_policy is = policy(w, "q");
	assert_int_equal(is.mode, BATON_QUEUE_LANE);
	assert_int_equal(is.shards, 4096);
	assert_int_equal(is.payload_max, 77);
	assert_int_equal(is.waiting_max, 78);
	assert_int_equal(is.retry.attempts, 7);
	assert_int_equal(is.retry.backoff, BATON_BACKOFF_FIXED);
	assert_int_equal(is.retry.base.ns, p.retry.base.ns);
	assert_int_equal(is.retry.cap.ns, p.retry.cap.ns);
	assert_int_equal(is.retry_lane.attempts, 8);
	assert_int_equal(is.retry_lane.backoff, BATON_BACKOFF_NONE);
	assert_int_equal(is.on_retry, BATON_ON_RETRY_PASS);
	assert_int_equal(is.on_dead, BATON_ON_DEAD_HOLD);
	assert_int_equal(is.dedupe.ns, p.dedupe.ns);
	assert_int_equal(is.keep.ns, p.keep.ns);
	assert_true(is.paused);
}

static enum baton_err try_change(struct baton_store *store, const struct baton_queue_policy *p,
                                 uint32_t fields)
{
	return baton_queue_change(store, BATON_STR("q"), p, fields);
}

static void what_two_change_at_the_same_moment_is_all_there(void **state)
{
	struct world *w = *state;
	struct baton_store *twin = world_twin(w);
	put(w, "q", "x");
	struct baton_queue_policy one = policy(w, "q"), two = one;
	one.keep = baton_duration_s(7);
	two.retry_lane.attempts = 9;
	assert_int_equal(try_change(w->store, &one, BATON_POLICY_KEEP), BATON_OK);
	assert_int_equal(try_change(twin, &two, BATON_POLICY_LANE_ATTEMPTS), BATON_OK);
	one.paused = true;
	assert_int_equal(try_change(w->store, &one, BATON_POLICY_PAUSED), BATON_OK);
	assert_int_equal(policy(w, "q").keep.ns, baton_duration_s(7).ns);
	assert_int_equal(policy(w, "q").retry_lane.attempts, 9);
	assert_int_equal(policy(w, "q").retry.attempts, BATON_QUEUE_ATTEMPTS);
	assert_true(policy(w, "q").paused);
}

static void a_queue_that_is_made_by_a_change_has_the_rest_of_the_default(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = {.mode = BATON_QUEUE_LANE, .shards = 3};
	assert_int_equal(try_change(w->store, &p, BATON_POLICY_MODE | BATON_POLICY_SHARDS),
	                 BATON_OK);
	assert_int_equal(policy(w, "q").mode, BATON_QUEUE_LANE);
	assert_int_equal(policy(w, "q").shards, 3);
	assert_int_equal(policy(w, "q").payload_max, BATON_QUEUE_PAYLOAD_MAX);
	assert_int_equal(policy(w, "q").retry.attempts, BATON_QUEUE_ATTEMPTS);
}

static void a_change_has_to_fit_to_what_stays(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = {.retry.base = baton_duration_s(7200), .keep = {5}};
	put(w, "q", "x");
	assert_int_equal(try_change(w->store, &p, BATON_POLICY_BASE | BATON_POLICY_KEEP),
	                 BATON_INVALID);
	assert_detail("cap is 1h: 2h to 1d are allowed");
	assert_int_equal(policy(w, "q").keep.ns, 0);
	assert_int_equal(try_change(w->store, &p, 1u << 31), BATON_INVALID);
	assert_detail("fields is 0x80000000: bits of 0x");
	p = baton_queue_policy_default();
	p.shards = 17;
	assert_int_equal(try_change(w->store, &p, BATON_POLICY_SHARDS), BATON_INVALID);
	assert_detail("which cannot be changed");
	claim(w, "q", 1);
	p.mode = BATON_QUEUE_LANE;
	assert_int_equal(try_change(w->store, &p, BATON_POLICY_MODE), BATON_BUSY);
	assert_int_equal(try_change(w->store, &p, BATON_POLICY_KEEP), BATON_OK);
	assert_int_equal(policy(w, "q").mode, BATON_QUEUE_PULL);
}

static void the_number_of_shards_is_fixed(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	struct baton_queue_policy p = policy(w, "q");
	p.shards = 8;
	assert_int_equal(try_set(w, &p), BATON_INVALID);
	assert_detail("shards is 8: queue \"q\" was made with 16, which cannot be changed");
}

static void the_mode_changes_only_while_nothing_is_claimed(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	const struct baton_work_claim *c = claim(w, "q", 1);
	struct baton_queue_policy p = policy(w, "q");
	p.mode = BATON_QUEUE_LANE;
	assert_int_equal(try_set(w, &p), BATON_BUSY);
	assert_detail("queue \"q\" is in pull mode and has 1 claimed");
	p.mode = BATON_QUEUE_PULL;
	p.keep = baton_duration_s(1);
	assert_int_equal(try_set(w, &p), BATON_OK);
	end(w, c, BATON_ABANDON);
	p.mode = BATON_QUEUE_RUNNER;
	assert_int_equal(try_set(w, &p), BATON_OK);
	assert_int_equal(try_claim(w, "q"), BATON_BUSY);
	assert_detail("runner mode");
}

static void a_policy_has_its_limits(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = baton_queue_policy_default();
	p.shards = 4097;
	assert_int_equal(try_set(w, &p), BATON_INVALID);
	assert_detail("shards is 4097: 1 to 4096 are allowed");
	p.shards = 1;
	assert_int_equal(baton_queue_set(w->store, BATON_STR("a/b"), &p), BATON_INVALID);
	struct baton_queue_info info;
	assert_int_equal(baton_queue_get(w->store, BATON_STR("q"), &info), BATON_NOT_FOUND);
	assert_detail("there is no queue \"q\"");
}

static void only_a_queue_that_is_there_can_be_paused(void **state)
{
	struct world *w = *state;
	assert_int_equal(baton_queue_pause(w->store, BATON_STR("q"), true), BATON_NOT_FOUND);
	assert_detail("there is no queue \"q\"");
	set_attempts(w, "q", 7);
	assert_int_equal(baton_queue_pause(w->store, BATON_STR("q"), true), BATON_OK);
	assert_int_equal(policy(w, "q").retry.attempts, 7);
	assert_true(policy(w, "q").paused);
}

static void a_queue_that_goes_on_is_told(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	uint64_t queue = w->news.queue;
	baton_queue_pause(w->store, BATON_STR("q"), true);
	unsigned rings = w->rings;
	baton_queue_pause(w->store, BATON_STR("q"), false);
	assert_int_equal(w->rings, rings + 1);
	assert_int_equal(w->news.queue, queue);
	baton_queue_pause(w->store, BATON_STR("q"), false);
	assert_int_equal(w->rings, rings + 1);
}

static void queues_are_listed_in_the_order_of_their_names(void **state)
{
	struct world *w = *state;
	static struct baton_queue_info infos[3];
	size_t count;
	put(w, "b", "");
	put(w, "a", "");
	put(w, "ab", "");
	assert_int_equal(baton_queue_list(w->store, BATON_STR(""), infos, 3, &count), BATON_OK);
	assert_int_equal(count, 3);
	assert_string_equal(infos[0].name, "a");
	assert_string_equal(infos[1].name, "ab");
	assert_string_equal(infos[2].name, "b");
	assert_int_equal(infos[2].counts.ready, 1);
	assert_int_equal(baton_queue_list(w->store, BATON_STR("a"), infos, 1, &count), BATON_OK);
	assert_int_equal(count, 1);
	assert_string_equal(infos[0].name, "ab");
}

static void everything_is_counted(void **state)
{
	struct world *w = *state;
	set_attempts(w, "q", 2);
	for (int i = 0; i < 5; i++)
		put(w, "q", "");
	put_later(w, "q", "", 100000);
	complete(w, claim(w, "q", 1));
	const struct baton_work_end e = {.proof = claim(w, "q", 1)->proof,
	                                 .how = BATON_FAIL,
	                                 .delay = baton_duration_s(1000)};
	end_with(w, &e);
	end(w, claim(w, "q", 1), BATON_REJECT);
	claim(w, "q", 1);
	struct baton_queue_counts c = counts(w, "q");
	assert_int_equal(c.ready, 1);
	assert_int_equal(c.delayed, 2);
	assert_int_equal(c.running, 1);
	assert_int_equal(c.dead, 1);
	assert_int_equal(c.done, 1);
	assert_int_equal(c.failed, 2);
}

static void what_failed_waits_as_the_policy_was_then(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	put(w, "q", "x");
	const struct baton_work_end e = {.proof = claim(w, "q", 1)->proof,
	                                 .how = BATON_FAIL,
	                                 .delay = baton_duration_ms(100)};
	end_with(w, &e);
	struct baton_queue_policy p = policy(w, "q");
	p.on_retry = BATON_ON_RETRY_PASS;
	set_policy(w, "q", &p);
	assert_null(claim(w, "q", 1));
	advance(w, 100);
	assert_string_equal(claim(w, "q", 1)->batches[0].id.text, "1");
}

static const struct CMUnitTest tests[] = {
	WORLD_TEST(a_policy_comes_back_as_it_was_set),
	WORLD_TEST(what_two_change_at_the_same_moment_is_all_there),
	WORLD_TEST(a_queue_that_is_made_by_a_change_has_the_rest_of_the_default),
	WORLD_TEST(a_change_has_to_fit_to_what_stays),
	WORLD_TEST(the_number_of_shards_is_fixed),
	WORLD_TEST(the_mode_changes_only_while_nothing_is_claimed),
	WORLD_TEST(a_policy_has_its_limits),
	WORLD_TEST(only_a_queue_that_is_there_can_be_paused),
	WORLD_TEST(a_queue_that_goes_on_is_told),
	WORLD_TEST(queues_are_listed_in_the_order_of_their_names),
	WORLD_TEST(everything_is_counted),
	WORLD_TEST(what_failed_waits_as_the_policy_was_then),
};

WORLD_MAIN("queue", tests)
