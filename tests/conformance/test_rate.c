/* Keys that may start only so often. */
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

/* One job for each letter, of the key that it is. */
static void put_keys(struct world *w, const char *letters)
{
	for (; *letters; letters++)
		put_key(w, (const char[]){*letters, '\0'});
}

static void rate_is(struct world *w, uint64_t starts, int64_t window_ms)
{
	struct baton_queue_policy p = policy(w, "q");
	p.key_rate = (struct baton_key_rate){starts, baton_duration_ms(window_ms)};
	p.retry.backoff = BATON_BACKOFF_NONE;
	set_policy(w, "q", &p);
}

/* Claims and completes one job after the other, and says of which keys they were: a letter each. */
static void assert_starts(struct world *w, const char *letters)
{
	char were[100] = "";
	for (size_t i = 0; i < sizeof were - 1; i++) {
		const struct baton_work_claim *c = claim(w, "q", 1);
		if (!c)
			break;
		were[i] = c->key.len > 0 ? c->key.ptr[0] : '-';
		were[i + 1] = '\0';
		complete(w, c);
	}
	assert_string_equal(were, letters);
	assert_sound(w);
}

/* When something is due, after the beginning of the test; -1: nothing is. */
static int64_t next_due(struct world *w)
{
	struct baton_store_time due;
	enum baton_err e = baton_work_next_due(w->store, BATON_STR("q"), &due);
	return e == BATON_OK ? due.ms - START_MS : -1;
}

static void keys_start_as_often_as_may_be_when_nothing_is_said(void **state)
{
	struct world *w = *state;
	assert_int_equal(policy(w, "q").key_rate.starts, 0);
	put_keys(w, "aaaa");
	assert_starts(w, "aaaa");
}

static void a_key_starts_so_often_in_a_window_and_others_are_not_held_up(void **state)
{
	struct world *w = *state;
	rate_is(w, 2, 1000);
	put_keys(w, "aaaaabb");
	put(w, "q", "");
	assert_starts(w, "aabb-");
	advance(w, 999);
	assert_starts(w, "");
	advance(w, 1);
	assert_starts(w, "aa");
	advance(w, 1000);
	assert_starts(w, "a");
}

static void the_window_slides(void **state)
{
	struct world *w = *state;
	rate_is(w, 2, 1000);
	put_keys(w, "aaaaaa");
	complete(w, claim(w, "q", 1)); /* at 0 */
	advance(w, 600);
	assert_starts(w, "a"); /* at 600 */
	advance(w, 399);
	assert_starts(w, "");
	advance(w, 1);
	assert_starts(w, "a"); /* at 1000: the first has left */
	assert_int_equal(next_due(w), 1600);
	advance(w, 599);
	assert_starts(w, "");
	advance(w, 1);
	assert_starts(w, "a"); /* at 1600: the second has */
	advance(w, 400);
	assert_starts(w, "a");
}

static void a_window_that_is_full_is_told_with_its_end(void **state)
{
	struct world *w = *state;
	rate_is(w, 1, 1000);
	put_key(w, "a");
	struct baton_batch_id second = put_key(w, "a"), third = put_key(w, "a");
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_int_equal(look(w, &second)->why, BATON_WHY_KEY); /* who holds it comes first */
	complete(w, c);
	const struct baton_work_info *info = look(w, &second);
	assert_int_equal(info->why, BATON_WHY_RATE);
	assert_int_equal(info->state, BATON_BATCH_READY);
	assert_int_equal(info->due.ms, START_MS + 1000);
	assert_int_equal(info->rate.starts, 1);
	assert_int_equal(info->rate.window.ns, 1000000000);
	assert_int_equal(look(w, &third)->why, BATON_WHY_RATE);
	assert_int_equal(next_due(w), 1000);
	advance(w, 1000);
	assert_non_null(claim(w, "q", 1));
	assert_int_equal(look(w, &third)->why, BATON_WHY_KEY);
}

static void who_finishes_quickly_does_not_get_round_it(void **state)
{
	struct world *w = *state;
	rate_is(w, 2, 1000);
	put_keys(w, "aa");
	assert_starts(w, "aa"); /* nothing of the key is left */
	struct baton_batch_id late = put_key(w, "a");
	assert_int_equal(look(w, &late)->why, BATON_WHY_RATE);
	assert_starts(w, "");
	cancel(w, &late);
	put_key(w, "a");
	assert_starts(w, "");
	advance(w, 1000);
	assert_starts(w, "a");
}

static void what_has_left_the_window_is_forgotten_though_nobody_claims(void **state)
{
	struct world *w = *state;
	size_t count = 1;
	rate_is(w, 2, 1000);
	put_keys(w, "aabccd");
	assert_starts(w, "aabccd");
	advance(w, 999);
	assert_int_equal(baton_store_tidy(w->store, 100, &count), BATON_OK);
	assert_int_equal(count, 0);
	advance(w, 1);
	assert_int_equal(baton_store_tidy(w->store, 100, &count), BATON_OK);
	assert_int_equal(count, 4); /* those of "a" and "c", too, which were full */
	assert_int_equal(next_due(w), -1);
	put_keys(w, "aacd");
	assert_starts(w, "aacd");
}

static void who_waits_for_a_window_that_is_forgotten_waits_no_more(void **state)
{
	struct world *w = *state;
	const struct baton_store_wait wait = {.queue = BATON_STR("q"), .until = {0}};
	uint64_t seen = 0;
	size_t count = 0;
	rate_is(w, 1, 1000);
	put_key(w, "a");
	struct baton_batch_id second = put_key(w, "a");
	put_key(w, "a");
	complete(w, claim(w, "q", 1));
	advance(w, 1000);
	assert_int_equal(baton_store_wait(w->store, &wait, &seen), BATON_OK);
	assert_int_equal(baton_store_wait(w->store, &wait, &seen), BATON_TIMEOUT);
	assert_int_equal(baton_store_tidy(w->store, 100, &count), BATON_OK);
	assert_int_equal(count, 1);
	assert_int_equal(baton_store_wait(w->store, &wait, &seen), BATON_OK); /* it is told */
	assert_int_equal(look(w, &second)->why, BATON_WHY_READY);
	assert_sound(w);
	assert_starts(w, "a");
	advance(w, 1000);
	assert_starts(w, "a");
}

static void starts_that_count_no_more_are_tidied_away(void **state)
{
	struct world *w = *state;
	size_t count = 0;
	rate_is(w, 2, 1000);
	put_keys(w, "ab");
	assert_starts(w, "ab");
	assert_int_equal(baton_store_tidy(w->store, 100, &count), BATON_OK);
	assert_int_equal(count, 0);
	advance(w, 1000);
	assert_int_equal(baton_store_tidy(w->store, 1, &count), BATON_OK);
	assert_int_equal(count, 1);
	assert_int_equal(baton_store_tidy(w->store, 100, &count), BATON_OK);
	assert_int_equal(count, 1);
	assert_sound(w);
}

static void a_claim_of_several_is_one_start(void **state)
{
	struct world *w = *state;
	rate_is(w, 1, 1000);
	for (int i = 0; i < 4; i++) {
		struct baton_batch b = keyed("a");
		b.slot = BATON_JOIN;
		put_batch(w, &b);
	}
	const struct baton_work_claim *c = claim(w, "q", 3);
	assert_int_equal(c->count, 3);
	complete(w, c);
	assert_null(claim(w, "q", 3));
	advance(w, 1000);
	assert_int_equal(claim(w, "q", 3)->count, 1);
}

static void several_of_one_call_are_counted_too(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	const struct baton_work_ask ask = {.queue = BATON_STR("q"),
	                                   .ttl = baton_duration_ms(10000),
	                                   .claims = 10,
	                                   .max = 1};
	p.key_limit = 5;
	set_policy(w, "q", &p);
	rate_is(w, 3, 1000);
	put_keys(w, "aaaaaaabb");
	assert_int_equal(claim_many(w, &ask)->count, 5);
	assert_sound(w);
	advance(w, 1000);
	assert_int_equal(claim_many(w, &ask)->count, 2); /* of five that may be held */
	assert_sound(w);
}

static void whatever_becomes_of_a_claim_it_was_a_start(void **state)
{
	struct world *w = *state;
	rate_is(w, 3, 10000);
	put_keys(w, "aaaa");
	end(w, claim(w, "q", 1), BATON_ABANDON);
	end(w, claim(w, "q", 1), BATON_FAIL);
	assert_non_null(claim(w, "q", 1));
	advance(w, 1000); /* it expires */
	assert_null(claim(w, "q", 1));
	assert_sound(w);
	advance(w, 9000);
	assert_starts(w, "aaa");
}

static void a_delayed_job_waits_for_the_window_too(void **state)
{
	struct world *w = *state;
	rate_is(w, 1, 1000);
	struct baton_batch b = keyed("a");
	b.delay = baton_duration_ms(500);
	struct baton_batch_id late = put_batch(w, &b);
	put_key(w, "a");
	assert_starts(w, "a");
	assert_int_equal(next_due(w), 500);
	advance(w, 500);
	assert_null(claim(w, "q", 1));
	assert_int_equal(look(w, &late)->why, BATON_WHY_RATE);
	assert_int_equal(next_due(w), 1000);
	advance(w, 500);
	assert_starts(w, "a");
}

static void a_higher_rate_frees_keys_at_once_and_a_lower_one_holds_them(void **state)
{
	struct world *w = *state;
	rate_is(w, 1, 1000);
	put_keys(w, "aaaaaabb");
	assert_starts(w, "ab");
	advance(w, 100);
	rate_is(w, 3, 1000);
	assert_starts(w, "aab");
	advance(w, 100);
	rate_is(w, 2, 1000); /* of the starts at 0, 100 and 100 the last two count */
	assert_starts(w, "");
	assert_int_equal(next_due(w), 1000);
	advance(w, 800);
	assert_starts(w, "");
	advance(w, 100);
	assert_starts(w, "aa");
	rate_is(w, 0, 0);
	assert_starts(w, "a");
	assert_int_equal(next_due(w), -1);
}

static void
a_shorter_window_ends_earlier_and_a_longer_one_counts_what_was_in_the_former(void **state)
{
	struct world *w = *state;
	rate_is(w, 1, 1000);
	put_keys(w, "aaaa");
	assert_starts(w, "a");
	rate_is(w, 1, 300);
	assert_int_equal(next_due(w), 300);
	advance(w, 300);
	assert_starts(w, "a");
	advance(w, 200);
	rate_is(w, 1, 2000);
	assert_starts(w, "");
	assert_int_equal(next_due(w), 2300);
	advance(w, 1800);
	assert_starts(w, "a");
	rate_is(w, 1, 100);
	advance(w, 100);
	rate_is(w, 1, 2000); /* what has left the window of 100 ms has left it */
	assert_starts(w, "a");
}

static void a_rate_that_begins_counts_from_then_on(void **state)
{
	struct world *w = *state;
	put_keys(w, "aaaab");
	assert_starts(w, "aaaab");
	put_keys(w, "aab");
	const struct baton_work_claim *c = claim(w, "q", 1);
	rate_is(w, 1, 1000);
	complete(w, c);
	assert_starts(w, "ab");
	put_keys(w, "ab");
	assert_starts(w, "");
}

static void a_clock_that_is_set_back_holds_a_key_no_longer_than_a_window(void **state)
{
	struct world *w = *state;
	rate_is(w, 1, 1000);
	put_keys(w, "aab");
	assert_starts(w, "ab");
	step_clock(w, -1000000);
	assert_starts(w, "");
	assert_int_equal(next_due(w), -1000000 + 1000);
	advance(w, 999);
	assert_starts(w, "");
	advance(w, 1);
	assert_starts(w, "a");
}

static void a_clock_that_is_set_back_holds_no_key_that_has_room(void **state)
{
	struct world *w = *state;
	rate_is(w, 2, 1000);
	put_keys(w, "aaa");
	complete(w, claim(w, "q", 1));
	step_clock(w, -1000000);
	assert_starts(w, "a");
	assert_int_equal(next_due(w), -1000000 + 1000);
	advance(w, 1000);
	assert_starts(w, "a");
}

static void a_paused_queue_goes_on_where_the_window_is(void **state)
{
	struct world *w = *state;
	rate_is(w, 1, 1000);
	put_keys(w, "aa");
	assert_starts(w, "a");
	struct baton_queue_policy p = policy(w, "q");
	p.paused = true;
	set_policy(w, "q", &p);
	assert_int_equal(next_due(w), -1);
	advance(w, 1000);
	p.paused = false;
	set_policy(w, "q", &p);
	assert_starts(w, "a");
}

static void keys_take_turns_with_a_rate_too(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	p.key_fair = BATON_KEY_FAIR_ON;
	set_policy(w, "q", &p);
	rate_is(w, 2, 1000);
	put_keys(w, "aaaabbbc");
	assert_starts(w, "abcab");
	advance(w, 1000);
	assert_starts(w, "aba");
}

static void what_is_skipped_does_not_start(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	p.on_conflict = BATON_CONFLICT_FIRST;
	set_policy(w, "q", &p);
	rate_is(w, 1, 1000);
	put_keys(w, "a");
	assert_starts(w, "a");
	struct baton_batch_id one = put_key(w, "a"), two = put_key(w, "a"), more = put_key(w, "a");
	assert_int_equal(state_of(w, &one), BATON_BATCH_READY);
	assert_int_equal(state_of(w, &two), BATON_BATCH_READY); /* behind the one that will run */
	assert_int_equal(state_of(w, &more), BATON_BATCH_SKIPPED);
	advance(w, 1000);
	assert_starts(w, "a");
	advance(w, 1000);
	assert_starts(w, "a");
}

static struct baton_work_claims *tick(struct world *w, struct baton_runner *r, uint32_t claims)
{
	struct baton_shard s = {BATON_STR("q"), 0, claims, 1};
	struct baton_shard_answer answer;
	struct baton_tick t = {.shards = &s, .shard_count = 1, .owned = &answer};
	struct baton_work_claims *c = NULL;
	assert_int_equal(baton_runner_tick(r, &t, &c), BATON_OK);
	keep_claims(w, c);
	return c;
}

static struct baton_runner *runner_of(struct world *w, const char *name)
{
	struct baton_runner_ask ask = {.name = baton_str_z(name),
	                               .weight = 1,
	                               .ttl = baton_duration_s(10)};
	struct baton_shard s = {BATON_STR("q"), 0, 1, 1};
	struct baton_shard_answer answer;
	struct baton_runner *r = NULL;
	assert_int_equal(baton_runner_register(w->store, &ask, &r, NULL), BATON_OK);
	assert_int_equal(baton_shard_take(r, &s, 1, &answer), BATON_OK);
	return r;
}

static void a_takeover_gives_no_start_back(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	struct baton_runner_info info;
	size_t count;
	p.shards = 1;
	set_policy(w, "q", &p);
	rate_is(w, 1, 1000);
	put_keys(w, "aab");
	struct baton_runner *lost = runner_of(w, "r");
	assert_int_equal(tick(w, lost, 5)->count, 2);
	assert_int_equal(baton_runner_list(w->store, 0, &info, 1, &count), BATON_OK);
	assert_int_equal(baton_runner_take_over(w->store, &info), BATON_OK);
	baton_runner_leave(lost);
	struct baton_runner *next = runner_of(w, "s");
	assert_null(tick(w, next, 5));
	assert_sound(w);
	advance(w, 1000);
	assert_int_equal(tick(w, next, 5)->count, 2);
	assert_sound(w);
	baton_runner_leave(next);
}

static void assert_rate(struct world *w, const struct baton_key_rate *rate)
{
	const struct baton_key_rate is = policy(w, "q").key_rate;
	assert_int_equal(is.starts, rate->starts);
	assert_int_equal(is.window.ns, rate->window.ns);
}

static void a_rate_beyond_its_limits_is_refused(void **state)
{
	struct world *w = *state;
	static const struct {
		struct baton_key_rate rate;
		const char *words; /* NULL: it is allowed */
	} cases[] = {
		{{BATON_QUEUE_KEY_STARTS_MAX, {1000000}}, NULL},
		{{1, {BATON_QUEUE_SPAN_MAX_MS * 1000000}}, NULL},
		{{0, {0}}, NULL},
		{{BATON_QUEUE_KEY_STARTS_MAX + 1, {1000000}},
	         "key_rate.starts is 1001: 0 to 1000 are allowed"},
		{{1, {999999}}, "key_rate.window is 999us 999ns: 1ms to 365d are allowed"},
		{{1, {BATON_QUEUE_SPAN_MAX_MS * 1000000 + 1}}, "1ms to 365d are allowed"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct baton_queue_policy p = policy(w, "q");
		p.key_rate = cases[i].rate;
		enum baton_err e = baton_queue_set(w->store, BATON_STR("q"), &p);
		assert_int_equal(e, cases[i].words ? BATON_INVALID : BATON_OK);
		if (cases[i].words)
			assert_detail(cases[i].words);
		else
			assert_rate(w, &cases[i].rate);
	}
}

static void the_most_starts_of_a_window_are_counted(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	const struct baton_work_ask ask = {.queue = BATON_STR("q"),
	                                   .ttl = baton_duration_ms(1000),
	                                   .claims = 500,
	                                   .max = 1};
	struct baton_batch b[BATON_QUEUE_KEY_STARTS_MAX + 3];
	struct baton_put put[BATON_QUEUE_KEY_STARTS_MAX + 3];
	p.key_limit = BATON_QUEUE_KEY_LIMIT_MAX;
	set_policy(w, "q", &p);
	rate_is(w, BATON_QUEUE_KEY_STARTS_MAX, 10000);
	for (size_t i = 0; i < sizeof b / sizeof b[0]; i++)
		b[i] = keyed("a");
	assert_int_equal(baton_work_put(w->store, b, sizeof b / sizeof b[0], put), BATON_OK);
	assert_int_equal(claim_many(w, &ask)->count, 500);
	advance(w, 1);
	assert_int_equal(claim_many(w, &ask)->count, 500);
	assert_int_equal(try_claim(w, "q"), BATON_OK);
	assert_int_equal(counts(w, "q").running, BATON_QUEUE_KEY_STARTS_MAX);
	assert_int_equal(next_due(w), 1000); /* claims expire */
	assert_sound(w);
}

static const struct CMUnitTest tests[] = {
	WORLD_TEST(keys_start_as_often_as_may_be_when_nothing_is_said),
	WORLD_TEST(a_key_starts_so_often_in_a_window_and_others_are_not_held_up),
	WORLD_TEST(the_window_slides),
	WORLD_TEST(a_window_that_is_full_is_told_with_its_end),
	WORLD_TEST(who_finishes_quickly_does_not_get_round_it),
	WORLD_TEST(what_has_left_the_window_is_forgotten_though_nobody_claims),
	WORLD_TEST(who_waits_for_a_window_that_is_forgotten_waits_no_more),
	WORLD_TEST(starts_that_count_no_more_are_tidied_away),
	WORLD_TEST(a_claim_of_several_is_one_start),
	WORLD_TEST(several_of_one_call_are_counted_too),
	WORLD_TEST(whatever_becomes_of_a_claim_it_was_a_start),
	WORLD_TEST(a_delayed_job_waits_for_the_window_too),
	WORLD_TEST(a_higher_rate_frees_keys_at_once_and_a_lower_one_holds_them),
	WORLD_TEST(a_shorter_window_ends_earlier_and_a_longer_one_counts_what_was_in_the_former),
	WORLD_TEST(a_rate_that_begins_counts_from_then_on),
	WORLD_TEST(a_clock_that_is_set_back_holds_a_key_no_longer_than_a_window),
	WORLD_TEST(a_clock_that_is_set_back_holds_no_key_that_has_room),
	WORLD_TEST(a_paused_queue_goes_on_where_the_window_is),
	WORLD_TEST(keys_take_turns_with_a_rate_too),
	WORLD_TEST(what_is_skipped_does_not_start),
	WORLD_TEST(a_takeover_gives_no_start_back),
	WORLD_TEST(a_rate_beyond_its_limits_is_refused),
	WORLD_TEST(the_most_starts_of_a_window_are_counted),
};

WORLD_MAIN("rate", tests)
