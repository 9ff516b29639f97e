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
	/* Others are not in the way, nor is what does not wait yet; nor names that begin so. */
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

static void rate_is(struct world *w, uint64_t starts, int64_t window_ms)
{
	const struct baton_queue_policy p = {.key_rate = {starts, baton_duration_ms(window_ms)}};
	change(w, &p, BATON_POLICY_KEY_RATE);
}

static size_t given(const struct baton_work_claims *claims)
{
	return claims ? claims->count : 0;
}

/* Takes all that there is, and completes it. Returns how much that was. */
static size_t run_all(struct world *w, struct baton_runner *r)
{
	size_t count = 0;
	for (const struct baton_work_claims *c = take(w, r); c; c = take(w, r)) {
		for (size_t i = 0; i < c->count; i++)
			tick(w, r, &c->claims[i], BATON_COMPLETE, 0);
		count += c->count;
	}
	return count;
}

static void each_host_starts_a_key_as_often_as_its_rate_says(void **state)
{
	struct world *w = *state;
	scope_is(w, BATON_KEY_SCOPE_HOST, 5);
	rate_is(w, 2, 1000);
	struct baton_runner *one = enlist(w, "one", 0), *two = enlist(w, "two", 0);
	struct baton_runner *far = enlist(w, "far", 1);
	own(one, 0, 1);
	own(two, 1, 2);
	own(far, 2, SHARDS);
	for (int i = 0; i < 24; i++)
		put_key(w, "gpu");
	assert_int_equal(given(tick(w, one, NULL, BATON_COMPLETE, 1)), 1);
	advance(w, 300);
	/* The two of one host have two starts together, and that they have ended does not help. */
	assert_int_equal(run_all(w, two), 1);
	assert_int_equal(run_all(w, one), 0);
	assert_int_equal(run_all(w, far), 2);
	/* Other keys are not in the way, nor are others in theirs. */
	put_key(w, "disk");
	put(w, QUEUE, NULL);
	assert_int_equal(run_all(w, one) + run_all(w, two) + run_all(w, far), 2);
	advance(w, 699);
	assert_int_equal(run_all(w, one), 0);
	advance(w, 1);
	assert_int_equal(run_all(w, one), 1);
	assert_int_equal(run_all(w, two), 0);
	assert_int_equal(run_all(w, far), 0);
	advance(w, 300);
	assert_int_equal(run_all(w, two), 1);
	assert_int_equal(run_all(w, far), 2);
	assert_sound(w);
	baton_runner_leave(one);
	baton_runner_leave(two);
	baton_runner_leave(far);
}

static void each_process_has_a_window_of_its_own_which_ends_with_it(void **state)
{
	struct world *w = *state;
	scope_is(w, BATON_KEY_SCOPE_PROCESS, 5);
	rate_is(w, 1, 60000);
	struct baton_runner *one = enlist(w, "one", 0), *two = enlist(w, "two", 0);
	own(one, 0, 2);
	own(two, 2, SHARDS);
	for (int i = 0; i < 12; i++)
		put_key(w, "gpu");
	assert_int_equal(run_all(w, one), 1);
	assert_int_equal(run_all(w, two), 1);
	assert_int_equal(run_all(w, one) + run_all(w, two), 0);
	baton_runner_leave(one);
	struct baton_store_time due;
	assert_int_equal(baton_work_next_due(w->store, BATON_STR(QUEUE), &due), BATON_OK);
	baton_runner_leave(two);
	/* Nobody is left for whom it would be over. */
	assert_int_equal(baton_work_next_due(w->store, BATON_STR(QUEUE), &due), BATON_NOT_FOUND);
	one = enlist(w, "one", 0);
	own(one, 0, SHARDS);
	assert_int_equal(run_all(w, one), 1);
	assert_int_equal(run_all(w, one), 0);
	assert_sound(w);
	baton_runner_leave(one);
}

static void a_takeover_gives_no_start_of_a_host_back(void **state)
{
	struct world *w = *state;
	struct baton_runner_info seen;
	size_t count;
	scope_is(w, BATON_KEY_SCOPE_HOST, 5);
	rate_is(w, 1, 1000);
	struct baton_runner *one = enlist(w, "one", 0), *two = enlist(w, "two", 0);
	own(one, 0, 2);
	own(two, 2, SHARDS);
	for (int i = 0; i < 8; i++)
		put_key(w, "gpu");
	assert_int_equal(given(take(w, one)), 1);
	assert_int_equal(baton_runner_list(w->store, baton_runner_number(one) - 1, &seen, 1,
	                                   &count),
	                 BATON_OK);
	assert_int_equal(baton_runner_take_over(w->store, &seen), BATON_OK);
	own(two, 0, 2);
	assert_null(take(w, two));
	advance(w, 1000);
	assert_int_equal(given(take(w, two)), 1);
	assert_sound(w);
	baton_runner_free(one);
	baton_runner_leave(two);
}

static void who_waits_for_a_window_is_told_when_it_is_over(void **state)
{
	struct world *w = *state;
	scope_is(w, BATON_KEY_SCOPE_HOST, 5);
	rate_is(w, 1, 1000);
	struct baton_runner *one = enlist(w, "one", 0), *far = enlist(w, "far", 1);
	struct baton_runner *idle = enlist(w, "idle", 1);
	own(one, 0, 2);
	own(far, 2, SHARDS);
	struct baton_batch_id ids[8];
	for (size_t i = 0; i < 8; i++)
		ids[i] = put_key(w, "gpu");
	const struct baton_store_time from = baton_store_now(w->store);
	const struct baton_work_claims *c = take(w, one);
	assert_int_equal(given(c), 1);
	tick(w, one, &c->claims[0], BATON_COMPLETE, 0);
	struct baton_store_time due;
	assert_int_equal(baton_work_next_due(w->store, BATON_STR(QUEUE), &due), BATON_OK);
	assert_int_equal(due.ms, from.ms + 1000);
	for (size_t i = 0; i < 8; i++) {
		struct baton_work_page *page = NULL;
		if (baton_work_get(w->store, &ids[i], &page) != BATON_OK)
			continue; /* the one that is done */
		const struct baton_work_info *info = &page->infos[0];
		if (info->shard < 2) {
			assert_int_equal(info->why, BATON_WHY_RATE);
			assert_int_equal(info->due.ms, due.ms);
			assert_int_equal(info->rate.starts, 1);
			assert_str(info->held, "gpu");
		} else {
			assert_true(info->why == BATON_WHY_READY || info->why == BATON_WHY_BEHIND);
		}
		baton_work_page_free(page);
	}
	/* Whoever sees that it is over tells those who may have gone to sleep since, also if there
	 * is nothing for himself. */
	advance(w, 1000);
	const unsigned rings = w->rings;
	assert_null(take(w, idle));
	/* A server does so itself, and only if somebody sleeps. */
	assert_true(w->rings > rings || world_is_served());
	assert_int_equal(given(take(w, one)), 1);
	assert_sound(w);
	baton_runner_leave(one);
	baton_runner_leave(far);
	baton_runner_leave(idle);
}

static void another_rate_counts_what_each_place_has_started(void **state)
{
	struct world *w = *state;
	scope_is(w, BATON_KEY_SCOPE_PROCESS, 5);
	rate_is(w, 3, 1000);
	struct baton_runner *one = enlist(w, "one", 0), *two = enlist(w, "two", 0);
	own(one, 0, 2);
	own(two, 2, SHARDS);
	for (int i = 0; i < 40; i++)
		put_key(w, "gpu");
	assert_int_equal(run_all(w, one), 3);
	rate_is(w, 1, 1000);
	assert_int_equal(run_all(w, one), 0);
	assert_int_equal(run_all(w, two), 1);
	rate_is(w, 2, 1000);
	assert_int_equal(run_all(w, one), 1);
	assert_int_equal(run_all(w, two), 1);
	rate_is(w, 0, 0);
	assert_int_equal(run_all(w, one) + run_all(w, two), 34);
	assert_sound(w);
	baton_runner_leave(one);
	baton_runner_leave(two);
}

static void many_keys_that_have_started_too_often_are_passed_over(void **state)
{
	struct world *w = *state;
	char key[16];
	scope_is(w, BATON_KEY_SCOPE_PROCESS, 1);
	rate_is(w, 1, 60000);
	struct baton_runner *one = enlist(w, "one", 0);
	own(one, 0, SHARDS);
	for (int i = 0; i < 3 * 60 * SHARDS; i++) {
		snprintf(key, sizeof key, "k%d", i / SHARDS % 60);
		put_key(w, key);
	}
	assert_int_equal(run_all(w, one), 60);
	put_key(w, "other");
	const struct baton_work_claims *last = tick(w, one, NULL, BATON_COMPLETE, 1);
	assert_int_equal(given(last), 1);
	assert_str(last->claims[0].key, "other");
	assert_sound(w);
	baton_runner_leave(one);
}

static void turns_are(struct world *w, enum baton_key_fair fair)
{
	const struct baton_queue_policy p = {.key_fair = fair};
	change(w, &p, BATON_POLICY_KEY_FAIR);
}

/* One of each of these keys, as often as that: the number of each decides its shard, so that all
 * are in all of them. */
static void put_rounds(struct world *w, const char *const *keys, int count, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		for (int k = 0; k < count; k++) {
			for (int n = 0; n < SHARDS; n++)
				put_key(w, keys[k]);
		}
	}
}

/* The next job of one shard, which is completed. */
static void next_is(struct world *w, struct baton_runner *r, uint32_t number, const char *key)
{
	const struct baton_shard shard = {BATON_STR(QUEUE), number, 1, 1};
	struct baton_shard_answer a;
	struct baton_work_claims *claims = NULL;
	const struct baton_tick t = {.shards = &shard, .shard_count = 1, .owned = &a, .claims = 1};
	assert_int_equal(baton_runner_tick(r, &t, &claims), BATON_OK);
	assert_non_null(claims);
	assert_str(claims->claims[0].key, key);
	keep_claims(w, claims);
	tick(w, r, &claims->claims[0], BATON_COMPLETE, 0);
}

static void keys_take_turns_in_each_shard(void **state)
{
	struct world *w = *state;
	static const char *const first[] = {"gpu"}, *const then[] = {"disk", "net"};
	scope_is(w, BATON_KEY_SCOPE_HOST, 1);
	turns_are(w, BATON_KEY_FAIR_ON);
	struct baton_runner *one = enlist(w, "one", 0);
	own(one, 0, SHARDS);
	put_rounds(w, first, 1, 4);
	put_rounds(w, then, 2, 2);
	for (uint32_t i = 0; i < SHARDS; i++) {
		next_is(w, one, i, "gpu");
		next_is(w, one, i, "disk");
		next_is(w, one, i, "net");
		next_is(w, one, i, "gpu");
		next_is(w, one, i, "disk");
		next_is(w, one, i, "net");
		next_is(w, one, i, "gpu");
		next_is(w, one, i, "gpu");
	}
	assert_null(take(w, one));
	assert_sound(w);
	baton_runner_leave(one);
}

static void a_key_that_is_full_here_loses_no_turn(void **state)
{
	struct world *w = *state;
	static const char *const keys[] = {"gpu", "disk"};
	scope_is(w, BATON_KEY_SCOPE_PROCESS, 1);
	turns_are(w, BATON_KEY_FAIR_ON);
	struct baton_runner *one = enlist(w, "one", 0);
	own(one, 0, SHARDS);
	put_rounds(w, keys, 2, 4);
	/* Of the first shard, so that those of the others have had no turn. */
	const struct baton_shard shard = {BATON_STR(QUEUE), 0, 1, 1};
	struct baton_shard_answer a;
	struct baton_work_claims *held = NULL;
	const struct baton_tick t = {.shards = &shard, .shard_count = 1, .owned = &a, .claims = 1};
	assert_int_equal(baton_runner_tick(one, &t, &held), BATON_OK);
	keep_claims(w, held);
	assert_str(held->claims[0].key, "gpu");
	next_is(w, one, 1, "disk");
	next_is(w, one, 1, "disk");
	tick(w, one, &held->claims[0], BATON_COMPLETE, 0);
	next_is(w, one, 1, "gpu");
	next_is(w, one, 1, "disk");
	next_is(w, one, 1, "gpu");
	assert_sound(w);
	/* Without turns they come as they came. */
	turns_are(w, BATON_KEY_FAIR_OFF);
	next_is(w, one, 2, "gpu");
	next_is(w, one, 2, "disk");
	next_is(w, one, 2, "gpu");
	assert_sound(w);
	baton_runner_leave(one);
}

static const struct CMUnitTest tests[] = {
	WORLD_TEST(the_bound_of_a_key_counts_who_waits_in_all_shards),
	WORLD_TEST(what_is_put_together_counts_together_for_the_bound),
	WORLD_TEST(what_is_emitted_counts_for_the_bound),
	WORLD_TEST(each_host_starts_a_key_as_often_as_its_rate_says),
	WORLD_TEST(each_process_has_a_window_of_its_own_which_ends_with_it),
	WORLD_TEST(a_takeover_gives_no_start_of_a_host_back),
	WORLD_TEST(who_waits_for_a_window_is_told_when_it_is_over),
	WORLD_TEST(another_rate_counts_what_each_place_has_started),
	WORLD_TEST(many_keys_that_have_started_too_often_are_passed_over),
	WORLD_TEST(keys_take_turns_in_each_shard),
	WORLD_TEST(a_key_that_is_full_here_loses_no_turn),
};

WORLD_MAIN("sites", tests)
