/* Keys that count for each process, or for each host, and not in the cluster. */
#include "sites.h"

static void each_process_runs_as_many_of_a_key_as_the_limit_says(void **state)
{
	struct world *w = *state;
	scope_is(w, BATON_KEY_SCOPE_PROCESS, 1);
	struct baton_runner *one = enlist(w, "one", 0), *two = enlist(w, "two", 0);
	own(one, 0, 2);
	own(two, 2, 4);
	for (int i = 0; i < 12; i++)
		put_key(w, "gpu");
	const struct baton_work_claims *first = take(w, one), *second = take(w, two);
	assert_non_null(first);
	assert_non_null(second);
	assert_int_equal(first->count, 1);
	assert_int_equal(second->count, 1);
	assert_str(first->claims[0].key, "gpu");
	assert_int_equal(first->claims[0].lane.len, 0);
	assert_null(take(w, one));
	assert_null(take(w, two));
	const struct baton_work_claims *next = tick(w, one, &first->claims[0], BATON_COMPLETE, 10);
	assert_non_null(next);
	assert_int_equal(next->count, 1);
	assert_null(take(w, two));
	assert_sound(w);
	baton_runner_leave(one);
	baton_runner_leave(two);
}

static void the_processes_of_a_host_share_its_keys(void **state)
{
	struct world *w = *state;
	scope_is(w, BATON_KEY_SCOPE_HOST, 2);
	struct baton_runner *one = enlist(w, "one", 0), *two = enlist(w, "two", 0);
	struct baton_runner *far = enlist(w, "far", 1);
	own(one, 0, 1);
	own(two, 1, 2);
	own(far, 2, 4);
	for (int i = 0; i < 16; i++)
		put_key(w, "gpu");
	const struct baton_work_claims *first = tick(w, one, NULL, BATON_COMPLETE, 1);
	assert_int_equal(first->count, 1);
	const struct baton_work_claims *second = take(w, two);
	assert_int_equal(second->count, 1);
	assert_null(take(w, one));
	assert_null(take(w, two));
	assert_int_equal(take(w, far)->count, 2);
	assert_null(take(w, far));
	/* The one ends, and the other goes on. */
	assert_null(tick(w, one, &first->claims[0], BATON_COMPLETE, 0));
	assert_int_equal(take(w, two)->count, 1);
	assert_null(take(w, one));
	assert_sound(w);
	baton_runner_leave(one);
	baton_runner_leave(two);
	baton_runner_leave(far);
}

static void a_full_key_keeps_nobody_else_waiting(void **state)
{
	struct world *w = *state;
	scope_is(w, BATON_KEY_SCOPE_PROCESS, 1);
	struct baton_runner *one = enlist(w, "one", 0);
	own(one, 0, SHARDS);
	for (int i = 0; i < 40; i++)
		put_key(w, "gpu");
	assert_int_equal(take(w, one)->count, 1);
	put_key(w, "disk");
	put(w, QUEUE, NULL);
	put(w, QUEUE, "lane");
	const struct baton_work_claims *others = take(w, one);
	assert_non_null(others);
	assert_int_equal(others->count, 3);
	assert_null(take(w, one));
	assert_sound(w);
	baton_runner_leave(one);
}

static void one_tick_gives_no_more_than_the_limit(void **state)
{
	struct world *w = *state;
	scope_is(w, BATON_KEY_SCOPE_HOST, 3);
	struct baton_runner *one = enlist(w, "one", 0);
	own(one, 0, SHARDS);
	for (int i = 0; i < 16; i++)
		put_key(w, "gpu");
	assert_int_equal(take(w, one)->count, 3);
	assert_null(take(w, one));
	/* More at once, and then fewer: what runs goes on. */
	struct baton_queue_policy p = policy(w, QUEUE);
	p.key_limit = 5;
	set_policy(w, QUEUE, &p);
	assert_int_equal(take(w, one)->count, 2);
	p.key_limit = 1;
	set_policy(w, QUEUE, &p);
	assert_null(take(w, one));
	assert_int_equal(counts(w, QUEUE).running, 5);
	assert_sound(w);
	baton_runner_leave(one);
}

static void what_fails_gives_its_key_up_and_queues_again(void **state)
{
	struct world *w = *state;
	scope_is(w, BATON_KEY_SCOPE_HOST, 1);
	struct baton_runner *one = enlist(w, "one", 0);
	own(one, 0, SHARDS);
	struct baton_batch_id a = put_key(w, "gpu");
	const struct baton_work_claims *first = take(w, one);
	assert_id(first->claims[0].batches[0].id, a);
	for (int i = 0; i < SHARDS; i++)
		put_key(w, "gpu");
	const struct baton_work_claims *next = tick(w, one, &first->claims[0], BATON_FAIL, 10);
	assert_int_equal(next->count, 1);
	assert_null(take(w, one));
	assert_sound(w);
	baton_runner_leave(one);
}

static void a_takeover_frees_the_keys_of_the_dead(void **state)
{
	struct world *w = *state;
	scope_is(w, BATON_KEY_SCOPE_HOST, 1);
	struct baton_runner *one = enlist(w, "one", 0), *two = enlist(w, "two", 0);
	struct baton_runner_info seen;
	size_t count;
	own(one, 0, 2);
	own(two, 2, 4);
	for (int i = 0; i < 8; i++)
		put_key(w, "gpu");
	assert_int_equal(take(w, one)->count, 1);
	assert_null(take(w, two));
	assert_int_equal(baton_runner_list(w->store, baton_runner_number(one) - 1, &seen, 1,
	                                   &count),
	                 BATON_OK);
	assert_int_equal(baton_runner_take_over(w->store, &seen), BATON_OK);
	own(two, 0, 2);
	assert_int_equal(take(w, two)->count, 1);
	assert_null(take(w, two));
	assert_sound(w);
	baton_runner_free(one);
	baton_runner_leave(two);
}

static void a_shard_that_is_given_brings_its_keys_to_the_other_host(void **state)
{
	struct world *w = *state;
	const struct baton_shard s = {BATON_STR(QUEUE), 0, 1, 1};
	struct baton_shard_answer a;
	scope_is(w, BATON_KEY_SCOPE_HOST, 1);
	struct baton_runner *one = enlist(w, "one", 0), *far = enlist(w, "far", 1);
	own(one, 0, SHARDS);
	for (int i = 0; i < 8; i++)
		put_key(w, "gpu");
	assert_int_equal(take(w, one)->count, 1);
	assert_null(take(w, far));
	assert_int_equal(baton_shard_give(one, &s, 1, &a), BATON_OK);
	own(far, 0, 1);
	assert_int_equal(take(w, far)->count, 1);
	assert_null(take(w, far));
	assert_sound(w);
	baton_runner_leave(one);
	baton_runner_leave(far);
}

static void an_end_wakes_those_who_wait_on_the_host(void **state)
{
	struct world *w = *state;
	scope_is(w, BATON_KEY_SCOPE_HOST, 1);
	struct baton_runner *one = enlist(w, "one", 0), *two = enlist(w, "two", 0);
	own(one, 0, 1);
	own(two, 1, SHARDS);
	for (int i = 0; i < SHARDS; i++)
		put_key(w, "gpu");
	/* One is in each shard, so nothing is left in that of the first. */
	const struct baton_work_claims *first = take(w, one);
	assert_int_equal(first->count, 1);
	assert_null(take(w, two));
	const unsigned rings = w->rings;
	assert_null(tick(w, one, &first->claims[0], BATON_COMPLETE, 0));
	assert_true(w->rings > rings);
	assert_sound(w);
	baton_runner_leave(one);
	baton_runner_leave(two);
}

static void why_names_the_holder_where_the_shard_is(void **state)
{
	struct world *w = *state;
	scope_is(w, BATON_KEY_SCOPE_HOST, 1);
	struct baton_runner *one = enlist(w, "one", 0), *far = enlist(w, "far", 1);
	own(one, 0, 2);
	own(far, 2, 3);
	struct baton_batch_id ids[12];
	for (size_t i = 0; i < 12; i++)
		ids[i] = put_key(w, "gpu");
	const struct baton_work_claims *here = take(w, one);
	for (size_t i = 0; i < 12; i++) {
		const struct baton_work_info *info = look(w, &ids[i]);
		assert_str(info->key, "gpu");
		if (info->state == BATON_BATCH_CLAIMED)
			continue;
		if (info->shard >= 2) {
			assert_true(info->why == BATON_WHY_READY || info->why == BATON_WHY_BEHIND);
			continue;
		}
		assert_int_equal(info->why, BATON_WHY_KEY);
		assert_id(info->ahead, here->claims[0].batches[0].id);
		assert_str(info->held, "gpu");
	}
	const struct baton_work_claims *there = take(w, far);
	assert_int_equal(there->count, 1);
	for (size_t i = 0; i < 12; i++) {
		const struct baton_work_info *info = look(w, &ids[i]);
		if (info->state == BATON_BATCH_CLAIMED || info->shard != 2)
			continue;
		assert_int_equal(info->why, BATON_WHY_KEY);
		assert_id(info->ahead, there->claims[0].batches[0].id);
	}
	baton_runner_leave(one);
	baton_runner_leave(far);
}

static void what_a_scope_does_not_go_with_is_refused(void **state)
{
	struct world *w = *state;
	const struct {
		struct baton_queue_policy p;
		uint32_t fields;
		const char *words;
	} cases[] = {
		{{.hold_on_retry = BATON_HOLD_KEEP},
	         BATON_POLICY_HOLD_ON_RETRY,
	         "key_scope is host: that is possible where hold_on_retry is give-up"},
		{{.on_conflict = BATON_CONFLICT_SKIP}, BATON_POLICY_ON_CONFLICT, "on_conflict"},
		{{.mode = BATON_QUEUE_PULL}, BATON_POLICY_MODE, "mode"},
		{{.mode = BATON_QUEUE_LANE}, BATON_POLICY_MODE, "mode"},
		{{.key_scope = 4}, BATON_POLICY_KEY_SCOPE, "key_scope is 4: 1 to 3 are allowed"},
	};
	scope_is(w, BATON_KEY_SCOPE_HOST, 1);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_int_equal(baton_queue_change(w->store, BATON_STR(QUEUE), &cases[i].p,
		                                    cases[i].fields),
		                 BATON_INVALID);
		assert_detail(cases[i].words);
	}
	const struct baton_queue_policy ttl = {.key_ttl = baton_duration_s(5)};
	assert_int_equal(baton_queue_change(w->store, BATON_STR(QUEUE), &ttl, BATON_POLICY_KEY_TTL),
	                 BATON_OK);
}

static void such_work_is_for_runners_alone(void **state)
{
	struct world *w = *state;
	scope_is(w, BATON_KEY_SCOPE_HOST, 1);
	put_key(w, "gpu");
	assert_int_equal(try_claim(w, QUEUE), BATON_INVALID);
	assert_detail("key_scope of queue \"q\" is host");
}

static void it_has_one_key_and_no_lane(void **state)
{
	struct world *w = *state;
	struct baton_str payload = BATON_STR("x");
	struct baton_batch b = batch_of(QUEUE, "lane", &payload);
	struct baton_put answer;
	const struct baton_str keys[] = {BATON_STR("a"), BATON_STR("b")};
	scope_is(w, BATON_KEY_SCOPE_PROCESS, 1);
	b.key = BATON_STR("gpu");
	assert_int_equal(try_put(w, &b, &answer), BATON_INVALID);
	assert_detail("key_scope is process");
	b = batch_of(QUEUE, NULL, &payload);
	b.keys = keys;
	b.key_count = 2;
	assert_int_equal(try_put(w, &b, &answer), BATON_INVALID);
	assert_detail("key_scope is process");
}

static void the_scope_changes_only_while_there_is_no_work(void **state)
{
	struct world *w = *state;
	const struct baton_queue_policy cluster = {.key_scope = BATON_KEY_SCOPE_CLUSTER};
	scope_is(w, BATON_KEY_SCOPE_HOST, 1);
	struct baton_batch_id id = put_key(w, "gpu");
	assert_int_equal(baton_queue_change(w->store, BATON_STR(QUEUE), &cluster,
	                                    BATON_POLICY_KEY_SCOPE),
	                 BATON_BUSY);
	assert_detail("the key_scope of queue \"q\" is host, and it has 1 jobs");
	cancel(w, &id);
	assert_int_equal(baton_queue_change(w->store, BATON_STR(QUEUE), &cluster,
	                                    BATON_POLICY_KEY_SCOPE),
	                 BATON_OK);
	put_key(w, "gpu");
	put_key(w, "gpu");
	assert_non_null(claim(w, QUEUE, 1));
	assert_null(claim(w, QUEUE, 1));
	assert_sound(w);
}

static void priorities_come_first_within_a_shard(void **state)
{
	struct world *w = *state;
	struct baton_str payload = BATON_STR("x");
	scope_is(w, BATON_KEY_SCOPE_PROCESS, 2);
	struct baton_runner *one = enlist(w, "one", 0);
	own(one, 0, SHARDS);
	for (int i = 0; i < 8; i++)
		put_key(w, "gpu");
	struct baton_batch b = batch_of(QUEUE, NULL, &payload);
	b.key = BATON_STR("disk");
	b.priority = 9;
	struct baton_batch_id urgent = put_batch(w, &b);
	const struct baton_work_claims *given = take(w, one);
	assert_int_equal(given->count, 3);
	bool found = false;
	for (size_t i = 0; i < given->count; i++)
		found = found || strcmp(given->claims[i].batches[0].id.text, urgent.text) == 0;
	assert_true(found);
	assert_sound(w);
	baton_runner_leave(one);
}

static void many_full_keys_are_passed_over(void **state)
{
	struct world *w = *state;
	char key[16];
	scope_is(w, BATON_KEY_SCOPE_PROCESS, 1);
	struct baton_runner *one = enlist(w, "one", 0);
	own(one, 0, SHARDS);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 50 * SHARDS; i++) {
			snprintf(key, sizeof key, "k%d", i / SHARDS);
			put_key(w, key);
		}
	}
	size_t given = 0;
	for (const struct baton_work_claims *c = take(w, one); c; c = take(w, one))
		given += c->count;
	assert_int_equal(given, 50);
	put_key(w, "other");
	const struct baton_work_claims *last = tick(w, one, NULL, BATON_COMPLETE, 1);
	assert_non_null(last);
	assert_str(last->claims[0].key, "other");
	assert_sound(w);
	baton_runner_leave(one);
}

static const struct CMUnitTest tests[] = {
	WORLD_TEST(each_process_runs_as_many_of_a_key_as_the_limit_says),
	WORLD_TEST(the_processes_of_a_host_share_its_keys),
	WORLD_TEST(a_full_key_keeps_nobody_else_waiting),
	WORLD_TEST(one_tick_gives_no_more_than_the_limit),
	WORLD_TEST(what_fails_gives_its_key_up_and_queues_again),
	WORLD_TEST(a_takeover_frees_the_keys_of_the_dead),
	WORLD_TEST(a_shard_that_is_given_brings_its_keys_to_the_other_host),
	WORLD_TEST(an_end_wakes_those_who_wait_on_the_host),
	WORLD_TEST(why_names_the_holder_where_the_shard_is),
	WORLD_TEST(what_a_scope_does_not_go_with_is_refused),
	WORLD_TEST(such_work_is_for_runners_alone),
	WORLD_TEST(it_has_one_key_and_no_lane),
	WORLD_TEST(the_scope_changes_only_while_there_is_no_work),
	WORLD_TEST(priorities_come_first_within_a_shard),
	WORLD_TEST(many_full_keys_are_passed_over),
};

WORLD_MAIN("scope", tests)
