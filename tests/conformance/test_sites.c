/* The rest of the policy where keys count for each process, or for each host. */
#include "sites.h"

static void change(struct world *w, const struct baton_queue_policy *p, uint32_t fields)
{
	assert_int_equal(baton_queue_change(w->store, BATON_STR(QUEUE), p, fields), BATON_OK);
}

static void bound_is(struct world *w, uint32_t max)
{
	const struct baton_queue_policy p = {.key_waiting_max = max};
	change(w, &p, BATON_POLICY_KEY_WAITING_MAX);
}

static enum baton_err try_key(struct world *w, const char *key, int64_t delay_ms)
{
	struct baton_str payload = BATON_STR("x");
	struct baton_batch b = batch_of(QUEUE, NULL, &payload);
	struct baton_put answer;
	b.key = baton_str_z(key);
	b.delay = baton_duration_ms(delay_ms);
	return try_put(w, &b, &answer);
}

static void the_bound_of_a_key_counts_who_waits_in_all_shards(void **state)
{
	struct world *w = *state;
	scope_is(w, BATON_KEY_SCOPE_HOST, 1);
	bound_is(w, 6);
	struct baton_runner *one = enlist(w, "one", 0), *far = enlist(w, "far", 1);
	own(one, 0, 2);
	own(far, 2, SHARDS);
	/* More than there are shards, so that some of them have two. */
	for (int i = 0; i < 6; i++)
		assert_int_equal(try_key(w, "gpu", 0), BATON_OK);
	assert_int_equal(try_key(w, "gpu", 0), BATON_FULL);
	assert_detail("key \"gpu\" of queue \"q\" has as many jobs waiting as its key_waiting_max "
	              "allows, 6: put again when some are done");
	/* Others are not in the way, nor is what does not wait yet; a name that begins so is other. */
	assert_int_equal(try_key(w, "gp", 0), BATON_OK);
	assert_int_equal(try_key(w, "gpu2", 0), BATON_OK);
	assert_int_equal(try_key(w, "gpu", 1000), BATON_OK);
	/* Who runs does not wait, wherever that is. */
	assert_non_null(take(w, one));
	assert_non_null(take(w, far));
	assert_int_equal(try_key(w, "gpu", 0), BATON_OK);
	assert_int_equal(try_key(w, "gpu", 0), BATON_OK);
	assert_int_equal(try_key(w, "gpu", 0), BATON_FULL);
	/* What is due is not refused, and counts. */
	advance(w, 1001);
	take(w, one);
	bound_is(w, 7);
	assert_int_equal(try_key(w, "gpu", 0), BATON_FULL);
	bound_is(w, 8);
	assert_int_equal(try_key(w, "gpu", 0), BATON_OK);
	assert_int_equal(try_key(w, "gpu", 0), BATON_FULL);
	bound_is(w, 0);
	assert_int_equal(try_key(w, "gpu", 0), BATON_OK);
	assert_sound(w);
	baton_runner_leave(one);
	baton_runner_leave(far);
}

static void what_is_put_together_counts_together_for_the_bound(void **state)
{
	struct world *w = *state;
	struct baton_str payload = BATON_STR("x");
	struct baton_batch four[4];
	struct baton_put answers[4];
	scope_is(w, BATON_KEY_SCOPE_PROCESS, 1);
	bound_is(w, 4);
	for (int i = 0; i < 4; i++) {
		four[i] = batch_of(QUEUE, NULL, &payload);
		four[i].key = BATON_STR("gpu");
	}
	put_key(w, "gpu");
	assert_int_equal(baton_work_put(w->store, four, 4, answers), BATON_FULL);
	assert_detail("key_waiting_max allows, 4");
	assert_int_equal(counts(w, QUEUE).ready, 1);
	assert_int_equal(baton_work_put(w->store, four, 3, answers), BATON_OK);
	const struct baton_batch_id id = answers[0].id;
	assert_int_equal(baton_work_put(w->store, four, 1, answers), BATON_FULL);
	/* Who is cancelled does not wait any more. */
	cancel(w, &id);
	assert_int_equal(baton_work_put(w->store, four, 1, answers), BATON_OK);
	assert_int_equal(baton_work_put(w->store, four, 1, answers), BATON_FULL);
	assert_sound(w);
}

static void what_is_emitted_counts_for_the_bound(void **state)
{
	struct world *w = *state;
	struct baton_str payload = BATON_STR("x");
	struct baton_batch two[2];
	scope_is(w, BATON_KEY_SCOPE_HOST, 1);
	bound_is(w, 2);
	struct baton_runner *one = enlist(w, "one", 0);
	own(one, 0, SHARDS);
	put_key(w, "gpu");
	put_key(w, "gpu");
	const struct baton_work_claims *given = take(w, one);
	for (int i = 0; i < 2; i++) {
		two[i] = batch_of(QUEUE, NULL, &payload);
		two[i].key = BATON_STR("gpu");
	}
	struct baton_work_end end = {.proof = given->claims[0].proof,
	                             .how = BATON_COMPLETE,
	                             .emits = two,
	                             .emit_count = 2};
	struct baton_work_ended ended;
	assert_int_equal(baton_work_end(w->store, &end, 1, &ended), BATON_OK);
	assert_int_equal(ended.err, BATON_FULL);
	assert_int_equal(counts(w, QUEUE).running, 1);
	end.emit_count = 1;
	assert_int_equal(baton_work_end(w->store, &end, 1, &ended), BATON_OK);
	assert_int_equal(ended.err, BATON_OK);
	assert_int_equal(counts(w, QUEUE).ready, 2);
	assert_sound(w);
	baton_runner_leave(one);
}

static const struct CMUnitTest tests[] = {
	WORLD_TEST(the_bound_of_a_key_counts_who_waits_in_all_shards),
	WORLD_TEST(what_is_put_together_counts_together_for_the_bound),
	WORLD_TEST(what_is_emitted_counts_for_the_bound),
};

WORLD_MAIN("sites", tests)
