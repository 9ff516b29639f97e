/* Work with several keys: it holds all of them or none, and each keeps its order and its limit. */
#include <stdlib.h>

#include <baton/shard.h>

#include "world.h"

/* The keys in `words`, which have a blank between them. */
struct words {
	struct baton_str list[BATON_KEYS_MAX + 1];
	size_t count;
};

static struct words words_of(const char *words)
{
	struct words w = {.count = 0};
	while (*words) {
		size_t len = strcspn(words, " ");
		assert_true(w.count < BATON_KEYS_MAX + 1);
		w.list[w.count++] = (struct baton_str){words, len};
		words += len + (words[len] == ' ');
	}
	return w;
}

static struct baton_batch several(const char *lane, const struct words *keys)
{
	struct baton_batch b = batch_of("q", lane, NULL);
	b.keys = keys->list;
	b.key_count = keys->count;
	return b;
}

/* "" for the lane: none. */
static struct baton_batch_id put_in(struct world *w, const char *lane, const char *keys)
{
	const struct words list = words_of(keys);
	struct baton_batch b = several(lane, &list);
	return put_batch(w, &b);
}

static struct baton_batch_id put_keys(struct world *w, const char *keys)
{
	return put_in(w, "", keys);
}

static struct baton_batch_id put_later_in(struct world *w, const char *lane, const char *keys,
                                          int64_t ms)
{
	const struct words list = words_of(keys);
	struct baton_batch b = several(lane, &list);
	b.delay = baton_duration_ms(ms);
	return put_batch(w, &b);
}

static void limit_is(struct world *w, uint32_t limit)
{
	struct baton_queue_policy p = policy(w, "q");
	p.key_limit = limit;
	set_policy(w, "q", &p);
}

static void hold_on_retry_is(struct world *w, enum baton_hold_on_retry hold)
{
	struct baton_queue_policy p = policy(w, "q");
	p.hold_on_retry = hold;
	p.retry_lane.backoff = p.retry.backoff = BATON_BACKOFF_FIXED;
	p.retry_lane.base = p.retry.base = baton_duration_ms(100);
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

/* `key`: which it waits for; "": none. */
static void assert_why(struct world *w, const struct baton_batch_id *id, enum baton_why why,
                       const struct baton_batch_id *ahead, const char *key)
{
	const struct baton_work_info *info = look(w, id);
	assert_int_equal(info->why, why);
	assert_string_equal(info->ahead.text, ahead ? ahead->text : "");
	assert_str(info->held, key);
}

static void assert_keys(const struct baton_str *keys, size_t count, const char *words)
{
	const struct words list = words_of(words);
	assert_int_equal(count, list.count);
	for (size_t i = 0; i < count; i++)
		assert_true(baton_str_equal(keys[i], list.list[i]));
}

static void a_claim_says_all_of_its_keys_in_order(void **state)
{
	struct world *w = *state;
	struct baton_batch_id a = put_keys(w, "m k l"), b = put_in(w, "a", "y x");
	const struct baton_work_info *info = look(w, &a);
	assert_str(info->lane, "");
	assert_str(info->key, "k");
	assert_keys(info->keys, info->key_count, "k l m");
	const struct baton_work_claim *c = assert_next(w, &a);
	assert_str(c->lane, "");
	assert_str(c->key, "k");
	assert_keys(c->keys, c->key_count, "k l m");
	const struct baton_work_claim *d = assert_next(w, &b);
	assert_str(d->lane, "a");
	assert_keys(d->keys, d->key_count, "x y");
	const struct baton_work_page *page =
		list(w, &(struct baton_work_filter){.queue = BATON_STR("q"), .max = 10});
	assert_int_equal(page->count, 2);
	assert_keys(page->infos[0].keys, page->infos[0].key_count, "k l m");
	assert_keys(page->infos[1].keys, page->infos[1].key_count, "x y");
	complete(w, c);
	complete(w, d);
	assert_sound(w);
}

static void one_key_is_a_list_too(void **state)
{
	struct world *w = *state;
	struct baton_batch_id a = put_keys(w, "k"), b = put_keys(w, "k k");
	assert_keys(look(w, &a)->keys, look(w, &a)->key_count, "k");
	const struct baton_work_claim *c = assert_next(w, &a);
	assert_keys(c->keys, c->key_count, "k");
	assert_none(w);
	assert_why(w, &b, BATON_WHY_KEY, &a, "k");
	complete(w, c);
	assert_keys(look(w, &b)->keys, look(w, &b)->key_count, "k");
	assert_next(w, &b);
}

static void a_key_that_is_named_twice_counts_once(void **state)
{
	struct world *w = *state;
	limit_is(w, 2);
	struct baton_batch_id a = put_keys(w, "l k l"), b = put_keys(w, "l m");
	assert_keys(look(w, &a)->keys, look(w, &a)->key_count, "k l");
	assert_next(w, &a);
	assert_next(w, &b);
}

static void the_longest_names_are_kept_whole(void **state)
{
	struct world *w = *state;
	char lane[BATON_NAME_MAX + 1], names[BATON_KEYS_MAX][BATON_NAME_MAX + 1];
	struct words keys = {.count = BATON_KEYS_MAX};
	memset(lane, 'l', BATON_NAME_MAX);
	lane[BATON_NAME_MAX] = '\0';
	for (int i = 0; i < BATON_KEYS_MAX; i++) {
		memset(names[i], 'a' + i, BATON_NAME_MAX);
		names[i][BATON_NAME_MAX] = '\0';
		keys.list[i] = baton_str_z(names[i]);
	}
	struct baton_batch b = several(lane, &keys);
	struct baton_batch_id id = put_batch(w, &b);
	const struct baton_work_claim *c = assert_next(w, &id);
	assert_str(c->lane, lane);
	assert_int_equal(c->key_count, BATON_KEYS_MAX);
	for (int i = 0; i < BATON_KEYS_MAX; i++)
		assert_str(c->keys[i], names[i]);
	complete(w, c);
	assert_sound(w);
}

static void what_is_wrong_about_keys_is_said(void **state)
{
	struct world *w = *state;
	const struct words nine = words_of("1 2 3 4 5 6 7 8 9"), two = words_of("k l");
	struct words bad = words_of("k l");
	struct baton_put put;
	struct baton_batch b = several("", &nine);
	assert_int_equal(try_put(w, &b, &put), BATON_INVALID);
	assert_detail("has 9 keys: at most 8");
	b = several("", &two);
	b.key = BATON_STR("m");
	assert_int_equal(try_put(w, &b, &put), BATON_INVALID);
	assert_detail("both a key and a list of keys");
	bad.list[1] = BATON_STR("l\1m");
	b = several("", &bad);
	assert_int_equal(try_put(w, &b, &put), BATON_INVALID);
	assert_detail("control character U+0001");
	bad.list[1] = BATON_STR("");
	b = several("", &bad);
	assert_int_equal(try_put(w, &b, &put), BATON_INVALID);
	assert_detail("the key");
}

static void all_keys_are_held_and_freed_together(void **state)
{
	struct world *w = *state;
	struct baton_batch_id both = put_keys(w, "k l");
	struct baton_batch_id k = put_keys(w, "k"), l = put_in(w, "a", "l"), m = put_keys(w, "m");
	const struct baton_work_claims *c = claim_some(w, 10);
	assert_int_equal(c->count, 2);
	assert_is(&c->claims[0], &both);
	assert_is(&c->claims[1], &m);
	assert_none(w);
	assert_why(w, &k, BATON_WHY_KEY, &both, "k");
	assert_why(w, &l, BATON_WHY_KEY, &both, "l");
	complete(w, &c->claims[0]);
	c = claim_some(w, 10);
	assert_int_equal(c->count, 2);
	assert_is(&c->claims[0], &k);
	assert_is(&c->claims[1], &l);
	assert_sound(w);
}

static void who_waits_for_one_key_takes_no_other_but_is_passed_by_nobody(void **state)
{
	struct world *w = *state;
	struct baton_batch_id k = put_keys(w, "k");
	struct baton_batch_id both = put_keys(w, "k l"), l = put_keys(w, "l"), m = put_keys(w, "m");
	const struct baton_work_claims *c = claim_some(w, 10);
	assert_int_equal(c->count, 2);
	assert_is(&c->claims[0], &k);
	assert_is(&c->claims[1], &m);
	assert_why(w, &both, BATON_WHY_KEY, &k, "k");
	assert_why(w, &l, BATON_WHY_BEHIND, &both, ""); /* l is free */
	complete(w, &c->claims[0]);
	const struct baton_work_claim *next = assert_next(w, &both);
	assert_none(w);
	complete(w, next);
	assert_next(w, &l);
}

static void two_who_name_their_keys_in_opposite_orders_take_turns(void **state)
{
	struct world *w = *state;
	struct baton_batch_id ids[10];
	for (int i = 0; i < 10; i++)
		ids[i] = put_keys(w, i % 2 ? "l k" : "k l");
	for (int i = 0; i < 10; i++) {
		const struct baton_work_claim *c = assert_next(w, &ids[i]);
		assert_none(w);
		complete(w, c);
	}
	assert_none(w);
}

static void a_ring_of_keys_comes_to_an_end(void **state)
{
	struct world *w = *state;
	static const char *const keys[] = {"a b", "b c", "c d", "d a", "a c", "b d", "a b c d"};
	struct baton_batch_id ids[28];
	bool done[28] = {false};
	for (int i = 0; i < 28; i++)
		ids[i] = put_in(w, i % 3 == 0 ? "x" : "", keys[i % 7]);
	for (int left = 28; left > 0;) {
		const struct baton_work_claims *c = claim_some(w, 10);
		assert_true(c->count > 0);
		for (size_t i = 0; i < c->count; i++) {
			for (int n = 0; n < 28; n++)
				done[n] = done[n] ||
				          strcmp(ids[n].text, c->claims[i].batches[0].id.text) == 0;
			complete(w, &c->claims[i]);
			left--;
		}
		assert_sound(w);
	}
	for (int i = 0; i < 28; i++)
		assert_true(done[i]);
}

static void those_of_other_keys_are_not_in_anybodys_way(void **state)
{
	struct world *w = *state;
	struct baton_batch_id first = put_keys(w, "a b"), second = put_keys(w, "c d");
	struct baton_batch_id third = put_keys(w, "b c"), fourth = put_keys(w, "e f");
	const struct baton_work_claims *c = claim_some(w, 10);
	assert_int_equal(c->count, 3);
	assert_is(&c->claims[0], &first);
	assert_is(&c->claims[1], &second);
	assert_is(&c->claims[2], &fourth);
	assert_why(w, &third, BATON_WHY_KEY, &first, "b");
	complete(w, &c->claims[0]);
	assert_none(w);
	assert_why(w, &third, BATON_WHY_KEY, &second, "c");
	complete(w, &c->claims[1]);
	assert_next(w, &third);
}

static void a_lane_asks_for_the_keys_of_its_first(void **state)
{
	struct world *w = *state;
	struct baton_batch_id k = put_keys(w, "k");
	struct baton_batch_id a1 = put_in(w, "a", "k l"), a2 = put_in(w, "a", "l m");
	struct baton_batch_id b1 = put_in(w, "b", "m n"), a3 = put(w, "q", "a");
	const struct baton_work_claims *c = claim_some(w, 10);
	assert_int_equal(c->count, 2);
	assert_is(&c->claims[0], &k);
	assert_is(&c->claims[1], &b1); /* a2 is not the first of its lane */
	assert_why(w, &a2, BATON_WHY_BEHIND, &a1, "");
	complete(w, &c->claims[0]);
	const struct baton_work_claim *next = assert_next(w, &a1);
	complete(w, next);
	assert_none(w);
	assert_why(w, &a2, BATON_WHY_KEY, &b1, "m");
	assert_why(w, &a3, BATON_WHY_BEHIND, &a2, "");
	complete(w, &c->claims[1]);
	complete(w, assert_next(w, &a2));
	assert_next(w, &a3);
}

static void a_joined_claim_is_of_the_same_keys(void **state)
{
	struct world *w = *state;
	static const char *const keys[] = {"k l", "l k", "k", "k l m", "k l"};
	struct baton_batch_id ids[5];
	for (int i = 0; i < 5; i++) {
		const struct words list = words_of(keys[i]);
		struct baton_batch b = several("a", &list);
		b.slot = BATON_JOIN;
		ids[i] = put_batch(w, &b);
	}
	const struct baton_work_claim *c = claim(w, "q", 10);
	assert_is(c, &ids[0]);
	assert_int_equal(c->count, 2);
	assert_id(c->batches[1].id, ids[1]);
	assert_keys(c->keys, c->key_count, "k l");
	assert_sound(w);
	/* What is left of it holds the keys still. */
	const struct baton_work_end one = {.proof = c->proof,
	                                   .how = BATON_COMPLETE,
	                                   .ids = &ids[0],
	                                   .count = 1};
	assert_int_equal(end_with(w, &one).err, BATON_OK);
	struct baton_batch_id other = put_keys(w, "l z");
	assert_none(w);
	assert_why(w, &other, BATON_WHY_KEY, &ids[1], "l");
	const struct baton_work_end rest = {.proof = c->proof,
	                                    .how = BATON_COMPLETE,
	                                    .ids = &ids[1],
	                                    .count = 1};
	assert_int_equal(end_with(w, &rest).err, BATON_OK);
	complete(w, assert_next(w, &ids[2]));
	complete(w, assert_next(w, &ids[3]));
	complete(w, assert_next(w, &ids[4]));
	assert_next(w, &other);
}

static void each_key_has_the_limit(void **state)
{
	struct world *w = *state;
	limit_is(w, 2);
	struct baton_batch_id a = put_keys(w, "k l"), b = put_keys(w, "k m");
	struct baton_batch_id c = put_keys(w, "k n"), d = put_keys(w, "l m");
	assert_next(w, &a);
	assert_next(w, &b);
	assert_next(w, &d);
	assert_none(w);
	assert_why(w, &c, BATON_WHY_KEY, &a, "k");
	limit_is(w, 3);
	assert_next(w, &c);
	limit_is(w, 1);
	struct baton_batch_id e = put_keys(w, "n o");
	assert_none(w);
	assert_why(w, &e, BATON_WHY_KEY, &c, "n");
}

static void a_limit_that_is_lowered_takes_the_turn_of_who_waits(void **state)
{
	struct world *w = *state;
	limit_is(w, 2);
	struct baton_batch_id a = put_keys(w, "k l");
	const struct baton_work_claim *c = assert_next(w, &a);
	struct baton_batch_id b = put_keys(w, "l m");
	assert_why(w, &b, BATON_WHY_READY, NULL, "");
	limit_is(w, 1);
	assert_none(w);
	assert_why(w, &b, BATON_WHY_KEY, &a, "l");
	complete(w, c);
	assert_next(w, &b);
}

static void one_that_comes_before_takes_the_turn_in_all_lines(void **state)
{
	struct world *w = *state;
	struct baton_batch_id early = put_later_in(w, "", "k l", 100);
	struct baton_batch_id both = put_keys(w, "l m"), m = put_keys(w, "m n");
	assert_why(w, &both, BATON_WHY_READY, NULL, "");
	advance(w, 100);
	/* `both` was a head until then; its other key is given to nobody else. */
	const struct baton_work_claims *c = claim_some(w, 10);
	assert_int_equal(c->count, 1);
	assert_is(&c->claims[0], &early);
	assert_none(w);
	assert_why(w, &both, BATON_WHY_KEY, &early, "l");
	assert_why(w, &m, BATON_WHY_BEHIND, &both, "");
	complete(w, &c->claims[0]);
	complete(w, assert_next(w, &both));
	assert_next(w, &m);
}

static void a_cancelled_waiter_gives_its_turn_in_all_lines(void **state)
{
	struct world *w = *state;
	struct baton_batch_id k = put_keys(w, "k");
	const struct baton_work_claim *c = assert_next(w, &k);
	struct baton_batch_id all = put_keys(w, "k l m");
	struct baton_batch_id l = put_keys(w, "l"), m = put_in(w, "a", "m n");
	assert_none(w);
	assert_int_equal(cancel(w, &all), BATON_CANCEL_REMOVED);
	const struct baton_work_claims *got = claim_some(w, 10);
	assert_int_equal(got->count, 2);
	assert_is(&got->claims[0], &l);
	assert_is(&got->claims[1], &m);
	assert_sound(w);
	complete(w, c);
	assert_none(w);
}

static void what_a_call_makes_free_is_for_the_next_one_which_is_woken(void **state)
{
	struct world *w = *state;
	limit_is(w, 2);
	struct baton_batch_id a = put_keys(w, "k l"), b = put_keys(w, "k l");
	struct baton_batch_id c = put_keys(w, "k l");
	unsigned rings = w->rings;
	const struct baton_work_claims *got = claim_some(w, 10);
	assert_int_equal(got->count, 1);
	assert_is(&got->claims[0], &a);
	assert_true(w->rings > rings);
	got = claim_some(w, 10);
	assert_int_equal(got->count, 1);
	assert_is(&got->claims[0], &b);
	assert_none(w);
	rings = w->rings;
	complete(w, &got->claims[0]);
	assert_true(w->rings > rings);
	assert_next(w, &c);
}

static void a_retry_keeps_all_keys(void **state)
{
	struct world *w = *state;
	hold_on_retry_is(w, BATON_HOLD_KEEP);
	struct baton_batch_id a = put_keys(w, "k l"), k = put_keys(w, "k"), l = put_in(w, "a", "l");
	end(w, assert_next(w, &a), BATON_FAIL);
	assert_none(w);
	assert_why(w, &k, BATON_WHY_KEY, &a, "k");
	assert_why(w, &l, BATON_WHY_KEY, &a, "l");
	advance(w, 100);
	const struct baton_work_claim *again = assert_next(w, &a);
	assert_int_equal(again->batches[0].attempt, 2);
	complete(w, again);
	assert_int_equal(claim_some(w, 10)->count, 2);
	assert_sound(w);
}

static void a_retry_that_is_cancelled_lets_go_of_all_keys(void **state)
{
	struct world *w = *state;
	hold_on_retry_is(w, BATON_HOLD_KEEP);
	struct baton_batch_id a = put_keys(w, "k l"), b = put_in(w, "a", "k l m");
	struct baton_batch_id c = put_keys(w, "l m");
	end(w, assert_next(w, &a), BATON_FAIL);
	assert_none(w);
	assert_int_equal(cancel(w, &a), BATON_CANCEL_REMOVED);
	end(w, assert_next(w, &b), BATON_FAIL);
	assert_none(w);
	assert_int_equal(cancel(w, &b), BATON_CANCEL_REMOVED);
	assert_next(w, &c);
}

static void a_retry_that_gives_up_its_keys_comes_back_behind_the_others(void **state)
{
	struct world *w = *state;
	hold_on_retry_is(w, BATON_HOLD_GIVE_UP);
	struct baton_batch_id a = put_keys(w, "k l"), b = put_keys(w, "l k");
	struct baton_batch_id c = put_keys(w, "k");
	uint64_t before = look(w, &a)->batch.seq;
	end(w, assert_next(w, &a), BATON_FAIL);
	assert_true(look(w, &a)->batch.seq > before);
	assert_sound(w);
	complete(w, assert_next(w, &b));
	advance(w, 100);
	complete(w, assert_next(w, &c));
	const struct baton_work_claim *again = assert_next(w, &a);
	assert_int_equal(again->batches[0].attempt, 2);
	assert_keys(again->keys, again->key_count, "k l");
	complete(w, again);
	assert_none(w);
}

static void in_a_lane_a_retry_that_gives_up_its_keys_keeps_its_place(void **state)
{
	struct world *w = *state;
	hold_on_retry_is(w, BATON_HOLD_GIVE_UP);
	struct baton_batch_id a1 = put_in(w, "a", "k l"), a2 = put_in(w, "a", "l m");
	struct baton_batch_id b = put_keys(w, "l m");
	end(w, assert_next(w, &a1), BATON_FAIL);
	complete(w, assert_next(w, &b));
	assert_none(w);
	advance(w, 100);
	complete(w, assert_next(w, &a1));
	assert_next(w, &a2);
}

static void what_ends_in_other_ways_lets_go_of_all_keys(void **state)
{
	struct world *w = *state;
	static const enum baton_work_how hows[] = {BATON_ABANDON, BATON_REJECT, BATON_SNOOZE};
	struct baton_batch_id a = put_keys(w, "k l"), b = put_keys(w, "l m");
	for (int i = 0; i < 3; i++) {
		const struct baton_work_claim *c = assert_next(w, &a);
		const struct baton_work_end how = {.proof = c->proof,
		                                   .how = hows[i],
		                                   .delay = baton_duration_ms(100)};
		assert_int_equal(end_with(w, &how).err, BATON_OK);
		assert_sound(w);
		if (hows[i] == BATON_ABANDON)
			continue;
		const struct baton_work_claim *other = assert_next(w, &b);
		end(w, other, BATON_ABANDON);
		if (hows[i] == BATON_REJECT)
			assert_int_equal(revive(w, &a), BATON_OK);
		assert_sound(w);
		complete(w, assert_next(w, &b));
		b = put_keys(w, "l m");
	}
	advance(w, 100);
	assert_next(w, &a);
}

static void an_expired_claim_is_over_once_somebody_has_one_of_its_keys(void **state)
{
	struct world *w = *state;
	static const char *const keys[] = {"k", "l", "m"};
	for (int i = 0; i < 3; i++) {
		struct baton_batch_id early = put_later_in(w, "", keys[i], 1000);
		struct baton_batch_id a = put_keys(w, "k l m");
		const struct baton_work_claim *lost = assert_next(w, &a);
		advance(w, 1000);
		const struct baton_work_claim *c = assert_next(w, &early);
		assert_true(c->fence.v > lost->fence.v);
		assert_int_equal(renew(w, lost, 1000).err, BATON_NOT_HELD);
		assert_int_equal(end(w, lost, BATON_COMPLETE).err, BATON_NOT_HELD);
		assert_int_equal(state_of(w, &a), BATON_BATCH_READY);
		assert_none(w);
		assert_why(w, &a, BATON_WHY_KEY, &early, keys[i]);
		complete(w, c);
		const struct baton_work_claim *again = assert_next(w, &a);
		assert_int_equal(again->batches[0].attempt, 2);
		assert_true(again->fence.v > c->fence.v);
		complete(w, again);
	}
}

static void one_with_several_keys_ends_the_expired_claims_of_each(void **state)
{
	struct world *w = *state;
	struct baton_batch_id early = put_later_in(w, "", "k l m", 1000);
	struct baton_batch_id k = put_keys(w, "k"), l = put_in(w, "a", "l"), m = put_keys(w, "m n");
	const struct baton_work_claims *lost = claim_some(w, 10);
	assert_int_equal(lost->count, 3);
	advance(w, 1000);
	const struct baton_work_claim *c = assert_next(w, &early);
	for (int i = 0; i < 3; i++) {
		assert_true(c->fence.v > lost->claims[i].fence.v);
		assert_int_equal(renew(w, &lost->claims[i], 1000).err, BATON_NOT_HELD);
	}
	assert_none(w);
	complete(w, c);
	const struct baton_work_claims *again = claim_some(w, 10);
	assert_int_equal(again->count, 3);
	assert_is(&again->claims[0], &k);
	assert_is(&again->claims[1], &l);
	assert_is(&again->claims[2], &m);
	assert_sound(w);
}

static void an_expired_claim_that_is_renewed_has_all_its_keys(void **state)
{
	struct world *w = *state;
	struct baton_batch_id a = put_keys(w, "k l"), other = put_keys(w, "z");
	const struct baton_work_claim *c = assert_next(w, &a);
	advance(w, 1000);
	struct baton_batch_id b = put_keys(w, "l m");
	assert_next(w, &a); /* it is taken again, by who asks first */
	assert_next(w, &other);
	assert_int_equal(renew(w, c, 1000).err, BATON_NOT_HELD);
	advance(w, 900);
	assert_none(w);
	assert_why(w, &b, BATON_WHY_KEY, &a, "l");
}

/* Others see that it is over, when they ask; it comes behind one that waits for another key. */
static void a_claim_that_was_seen_to_be_over_can_be_renewed_with_its_keys(void **state)
{
	struct world *w = *state;
	struct baton_batch_id early = put_later_in(w, "", "l x", 1000);
	struct baton_batch_id a = put_keys(w, "k l"), x = put_keys(w, "x");
	const struct baton_work_claim *c = assert_next(w, &a), *held = assert_next(w, &x);
	renew(w, held, 9000);
	advance(w, 1000);
	assert_none(w);
	assert_why(w, &early, BATON_WHY_KEY, &x, "x");
	assert_int_equal(renew(w, c, 1000).err, BATON_OK);
	struct baton_batch_id k = put_keys(w, "k m");
	assert_none(w);
	assert_why(w, &k, BATON_WHY_KEY, &a, "k");
	complete(w, held);
	assert_none(w);
	assert_why(w, &early, BATON_WHY_KEY, &a, "l");
	assert_int_equal(complete(w, c), BATON_BATCH_GONE);
	assert_int_equal(claim_some(w, 10)->count, 2);
	assert_sound(w);
}

static void a_claim_that_was_seen_to_be_over_can_be_completed(void **state)
{
	struct world *w = *state;
	struct baton_batch_id early = put_later_in(w, "", "l x", 1000);
	struct baton_batch_id a = put_keys(w, "k l"), x = put_keys(w, "x"), k = put_keys(w, "k");
	const struct baton_work_claim *c = assert_next(w, &a), *held = assert_next(w, &x);
	renew(w, held, 9000);
	advance(w, 1000);
	assert_none(w);
	assert_why(w, &k, BATON_WHY_BEHIND, &a, "");
	assert_int_equal(complete(w, c), BATON_BATCH_GONE);
	assert_next(w, &k);
	assert_none(w);
	complete(w, held);
	assert_next(w, &early);
}

static void a_clock_that_is_set_back_gives_no_key_twice(void **state)
{
	struct world *w = *state;
	struct baton_batch_id early = put_later_in(w, "", "l", 1000);
	struct baton_batch_id a = put_keys(w, "k l m"), k = put_keys(w, "k z");
	const struct baton_work_claim *lost = assert_next(w, &a);
	advance(w, 1000);
	const struct baton_work_claim *c = assert_next(w, &early);
	step_clock(w, -1000);
	assert_int_equal(renew(w, lost, 1000).err, BATON_NOT_HELD);
	assert_none(w); /* a waits for l, and k for a */
	assert_why(w, &a, BATON_WHY_KEY, &early, "l");
	assert_why(w, &k, BATON_WHY_BEHIND, &a, "");
	complete(w, c);
	complete(w, assert_next(w, &a));
	assert_next(w, &k);
}

static void a_claim_that_is_live_again_holds_all_its_keys_again(void **state)
{
	struct world *w = *state;
	struct baton_batch_id early = put_later_in(w, "", "l x", 1000);
	struct baton_batch_id a = put_keys(w, "k l"), x = put_keys(w, "x");
	const struct baton_work_claim *c = assert_next(w, &a);
	renew(w, assert_next(w, &x), 9000);
	advance(w, 1000);
	assert_none(w);
	step_clock(w, -900);
	struct baton_batch_id k = put_keys(w, "k m");
	/* A store may see only now that it is live; it has all its keys then, or is over. */
	const struct baton_work_claim *got = claim(w, "q", 1);
	assert_sound(w);
	if (got)
		assert_int_equal(renew(w, c, 1000).err, BATON_NOT_HELD);
	else
		assert_id(look(w, &k)->ahead, a);
	assert_none(w);
	assert_int_equal(state_of(w, &early), BATON_BATCH_READY);
}

static void an_expired_claim_that_dies_gives_its_keys_to_the_next_call(void **state)
{
	struct world *w = *state;
	set_attempts(w, "q", 1);
	struct baton_batch_id a = put_keys(w, "k l"), b = put_in(w, "a", "l m");
	struct baton_batch_id c = put_keys(w, "m n");
	assert_next(w, &a);
	advance(w, 1000);
	assert_null(claim(w, "q", 1));
	assert_sound(w);
	assert_int_equal(state_of(w, &a), BATON_BATCH_DEAD);
	const struct baton_work_claim *got = assert_next(w, &b);
	assert_none(w);
	complete(w, got);
	assert_next(w, &c);
}

static void each_key_starts_so_often_in_a_window(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	p.key_rate = (struct baton_key_rate){2, baton_duration_ms(1000)};
	set_policy(w, "q", &p);
	struct baton_batch_id k1 = put_keys(w, "k"), both = put_keys(w, "k l");
	struct baton_batch_id lm = put_keys(w, "l m"), km = put_keys(w, "k m");
	struct baton_batch_id m = put_keys(w, "m"), l = put_keys(w, "l n");
	complete(w, assert_next(w, &k1));
	advance(w, 100);
	complete(w, assert_next(w, &both));
	complete(w, assert_next(w, &lm));
	assert_none(w);
	assert_why(w, &km, BATON_WHY_RATE, NULL, "k");
	assert_why(w, &l, BATON_WHY_RATE, NULL, "l");
	assert_why(w, &m, BATON_WHY_BEHIND, &km, "");
	advance(w, 899);
	assert_none(w);
	advance(w, 1); /* the first start of k leaves the window */
	complete(w, assert_next(w, &km));
	assert_none(w);
	assert_why(w, &m, BATON_WHY_RATE, NULL, "m");
	advance(w, 100);
	complete(w, assert_next(w, &m));
	complete(w, assert_next(w, &l));
	assert_none(w);
}

static void the_last_window_decides(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	p.key_rate = (struct baton_key_rate){1, baton_duration_ms(1000)};
	set_policy(w, "q", &p);
	struct baton_batch_id l = put_keys(w, "l");
	complete(w, assert_next(w, &l));
	advance(w, 300);
	struct baton_batch_id k = put_keys(w, "k");
	complete(w, assert_next(w, &k));
	advance(w, 300);
	struct baton_batch_id m = put_keys(w, "m");
	complete(w, assert_next(w, &m));
	struct baton_batch_id all = put_keys(w, "k l m");
	assert_none(w);
	assert_why(w, &all, BATON_WHY_RATE, NULL, "m");
	assert_int_equal(look(w, &all)->due.ms, START_MS + 1600);
	advance(w, 999);
	assert_none(w);
	advance(w, 1);
	assert_next(w, &all);
}

static void keys_are_held_no_longer_than_their_ttl(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	p.key_ttl = baton_duration_ms(300);
	set_policy(w, "q", &p);
	struct baton_batch_id early = put_later_in(w, "", "l", 300), a = put_keys(w, "k l");
	const struct baton_work_claim *c = assert_next(w, &a);
	assert_int_equal(c->expires_at.ms, START_MS + 300);
	assert_int_equal(c->hold.ns, baton_duration_ms(300).ns);
	advance(w, 200);
	assert_int_equal(renew(w, c, 1000).expires_at.ms, START_MS + 500);
	advance(w, 300);
	assert_next(w, &early);
	assert_int_equal(renew(w, c, 1000).err, BATON_NOT_HELD);
}

static void skips(struct baton_queue_policy *p)
{
	p->on_conflict = BATON_CONFLICT_SKIP;
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
	void (*make)(struct baton_queue_policy *p);
	const char *words;
} unfit[] = {
	{skips, "on_conflict is not wait"},
	{is_fair, "key_fair is on"},
	{is_of_lanes, "the mode is lane"},
};
#define UNFIT (sizeof unfit / sizeof unfit[0])

static void several_keys_are_refused_where_the_policy_cannot_be_kept(void **state)
{
	struct world *w = *state;
	const struct words two = words_of("k l");
	for (size_t i = 0; i < UNFIT; i++) {
		struct baton_queue_policy p = baton_queue_policy_default();
		struct baton_batch b = several("", &two);
		struct baton_put put;
		unfit[i].make(&p);
		set_policy(w, "q", &p);
		assert_int_equal(try_put(w, &b, &put), BATON_INVALID);
		assert_detail("several keys are given");
		assert_detail(unfit[i].words);
	}
}

static void a_policy_that_cannot_be_kept_is_refused_where_jobs_have_several_keys(void **state)
{
	struct world *w = *state;
	struct baton_batch_id a = put_keys(w, "k l");
	for (size_t i = 0; i < UNFIT; i++) {
		struct baton_queue_policy p = policy(w, "q");
		unfit[i].make(&p);
		assert_int_equal(baton_queue_set(w->store, BATON_STR("q"), &p), BATON_INVALID);
		assert_detail("several keys");
		assert_detail(unfit[i].words);
	}
	complete(w, assert_next(w, &a));
}

static void a_repeated_put_is_the_same_whatever_the_order_of_its_keys(void **state)
{
	struct world *w = *state;
	static const char *const same[] = {"k l m", "m l k", "l k l m"}, *const other[] = {
										 "k l", "k l m n",
										 "k", "klm"};
	struct baton_put first = {.existing = true}, put;
	for (int i = 0; i < 3; i++) {
		const struct words list = words_of(same[i]);
		struct baton_batch b = several("", &list);
		b.source = BATON_STR("s");
		assert_int_equal(try_put(w, &b, i == 0 ? &first : &put), BATON_OK);
		assert_int_equal(i == 0 ? first.existing : put.existing, i > 0);
		if (i > 0)
			assert_id(put.id, first.id);
	}
	for (int i = 0; i < 4; i++) {
		const struct words list = words_of(other[i]);
		struct baton_batch b = several("", &list);
		b.source = BATON_STR("s");
		assert_int_equal(try_put(w, &b, &put), BATON_CONFLICT);
	}
}

static void what_is_emitted_may_have_several_keys(void **state)
{
	struct world *w = *state;
	const struct words keys = words_of("l k");
	struct baton_batch emits[] = {several("", &keys), several("a", &keys)};
	struct baton_batch_id a = put_keys(w, "k z");
	const struct baton_work_claim *c = assert_next(w, &a);
	const struct baton_work_end how = {.proof = c->proof,
	                                   .how = BATON_COMPLETE,
	                                   .emits = emits,
	                                   .emit_count = 2};
	assert_int_equal(end_with(w, &how).err, BATON_OK);
	c = claim(w, "q", 1);
	assert_non_null(c);
	assert_keys(c->keys, c->key_count, "k l");
	assert_none(w);
	complete(w, c);
	c = claim(w, "q", 1);
	assert_str(c->lane, "a");
	assert_keys(c->keys, c->key_count, "k l");
}

static void one_that_stands_together_with_others_meets_one_with_several_keys(void **state)
{
	struct world *w = *state;
	static const char *const names[] = {"0", "1", "2", "3", "4", "5"};
	struct baton_batch batches[6];
	struct baton_put puts[6];
	for (int i = 0; i < 6; i++) {
		batches[i] = batch_of("q", "", NULL);
		batches[i].key = baton_str_z(names[i]);
	}
	assert_int_equal(baton_work_put(w->store, batches, 6, puts), BATON_OK);
	struct baton_batch_id both = put_keys(w, "2 4");
	assert_sound(w);
	assert_why(w, &both, BATON_WHY_BEHIND, &puts[2].id, "");
	const struct baton_work_claims *c = claim_some(w, 10);
	assert_int_equal(c->count, 6);
	assert_sound(w);
	complete(w, &c->claims[2]);
	assert_none(w);
	assert_why(w, &both, BATON_WHY_KEY, &puts[4].id, "4");
	complete(w, &c->claims[4]);
	const struct baton_work_claim *got = assert_next(w, &both);
	assert_true(got->fence.v > c->claims[5].fence.v);
	assert_int_equal(baton_work_put(w->store, batches, 6, puts), BATON_OK);
	assert_none(w); /* 2 and 4 are held by it, and the others by those before */
}

static void fences_grow_along_each_key(void **state)
{
	struct world *w = *state;
	static const char *const keys[] = {"a b", "b c", "a", "c", "a b c", "b", "c a"};
	uint64_t last[3] = {0};
	for (int i = 0; i < 21; i++) {
		struct baton_batch_id id = put_in(w, i % 2 ? "" : "x", keys[i % 7]);
		const struct baton_work_claim *c = assert_next(w, &id);
		for (size_t k = 0; k < c->key_count; k++) {
			uint64_t *of = &last[c->keys[k].ptr[0] - 'a'];
			assert_true(c->fence.v > *of);
			*of = c->fence.v;
		}
		complete(w, c);
	}
}

static void two_keys_that_are_freed_in_turn_let_one_begin_at_a_time(void **state)
{
	struct world *w = *state;
	struct baton_batch_id ids[60];
	for (int i = 0; i < 60; i++)
		ids[i] = put_in(w, i % 4 == 3 ? "x" : "",
		                i % 3 == 0   ? "k l"
		                : i % 3 == 1 ? "k"
		                             : "l");
	size_t done = 0;
	const struct baton_work_claim *held[2] = {NULL, NULL};
	while (done < 60) {
		const struct baton_work_claim *c = claim(w, "q", 1);
		assert_sound(w);
		if (!c) {
			int which = held[0] && (!held[1] || done % 2 == 0) ? 0 : 1;
			assert_non_null(held[which]);
			complete(w, held[which]);
			if (held[0] == held[1])
				held[0] = held[1] = NULL;
			held[which] = NULL;
			done++;
			continue;
		}
		for (size_t i = 0; i < c->key_count; i++) {
			int of = c->keys[i].ptr[0] - 'k';
			assert_null(held[of]);
			held[of] = c;
		}
	}
	assert_none(w);
	for (int i = 0; i < 60; i++) {
		struct baton_work_page *page;
		assert_int_equal(baton_work_get(w->store, &ids[i], &page), BATON_NOT_FOUND);
	}
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

/* Shards from one to another. */
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

#define HALF (BATON_QUEUE_SHARDS / 2)

/* A job with these keys whose shard is below the middle, or not; others are cancelled. */
static struct baton_batch_id put_half(struct world *w, bool low, const char *keys)
{
	for (;;) {
		struct baton_batch_id id = put_keys(w, keys);
		if ((look(w, &id)->shard < HALF) == low)
			return id;
		assert_int_equal(cancel(w, &id), BATON_CANCEL_REMOVED);
	}
}

static void runners_of_different_shards_share_keys(void **state)
{
	struct world *w = *state;
	struct baton_runner *one = enlist(w, "one"), *two = enlist(w, "two");
	struct baton_batch_id ids[10];
	static const char *const keys[] = {"k l", "l m", "m k", "k l m"};
	uint64_t fence = 0;
	for (int i = 0; i < 10; i++)
		ids[i] = put_half(w, i % 3 != 0, keys[i % 4]);
	const struct baton_work_claim *done = NULL;
	bool done_low = false;
	for (int i = 0; i < 10; i++) {
		bool low = i % 3 != 0;
		/* Who has ended it need not be who goes on. */
		const struct baton_work_claims *ended =
			done_low ? tick(w, one, 0, HALF, done) : tick(w, two, HALF, 2 * HALF, done);
		const struct baton_work_claims *c = ended;
		if (!done || low != done_low) {
			assert_true(!done || !ended);
			c = ended ? ended
			          : (low ? tick(w, one, 0, HALF, NULL)
			                 : tick(w, two, HALF, 2 * HALF, NULL));
		}
		assert_non_null(c);
		assert_int_equal(c->count, 1);
		assert_is(&c->claims[0], &ids[i]);
		assert_true(c->claims[0].fence.v > fence);
		fence = c->claims[0].fence.v;
		assert_null(tick(w, one, 0, HALF, NULL));
		assert_null(tick(w, two, HALF, 2 * HALF, NULL));
		done = &c->claims[0];
		done_low = low;
	}
	baton_runner_leave(one);
	baton_runner_leave(two);
	assert_sound(w);
}

static void a_takeover_frees_all_keys_of_the_lost_runner(void **state)
{
	struct world *w = *state;
	struct baton_runner *lost = enlist(w, "one"), *next = enlist(w, "two");
	struct baton_batch_id a = put_half(w, true, "k l"), b = put_half(w, false, "l m");
	struct baton_batch_id c = put_half(w, false, "k n");
	const struct baton_work_claims *got = tick(w, lost, 0, HALF, NULL);
	assert_is(&got->claims[0], &a);
	assert_null(tick(w, next, HALF, 2 * HALF, NULL));
	struct baton_runner_info infos[2];
	size_t count;
	assert_int_equal(baton_runner_list(w->store, 0, infos, 2, &count), BATON_OK);
	unsigned rings = w->rings;
	assert_int_equal(baton_runner_take_over(w->store, &infos[0]), BATON_OK);
	assert_true(w->rings > rings);
	assert_sound(w);
	assert_null(tick(w, next, HALF, 2 * HALF, NULL)); /* it is the first one's turn again */
	uint64_t fence = got->claims[0].fence.v;
	got = tick(w, next, 0, HALF, NULL);
	assert_is(&got->claims[0], &a);
	assert_true(got->claims[0].fence.v > fence);
	got = tick(w, next, 0, 2 * HALF, &got->claims[0]);
	assert_int_equal(got->count, 2);
	assert_is(&got->claims[0], &b);
	assert_is(&got->claims[1], &c);
	baton_runner_leave(lost);
	baton_runner_leave(next);
	assert_sound(w);
}

static void a_runner_that_leaves_gives_all_keys_back(void **state)
{
	struct world *w = *state;
	struct baton_runner *one = enlist(w, "one"), *two = enlist(w, "two");
	struct baton_batch_id a = put_half(w, true, "k l"), b = put_half(w, false, "l m");
	assert_is(&tick(w, one, 0, HALF, NULL)->claims[0], &a);
	assert_int_equal(cancel(w, &a), BATON_CANCEL_TOLD);
	baton_runner_leave(one);
	assert_sound(w);
	assert_is(&tick(w, two, HALF, 2 * HALF, NULL)->claims[0], &b);
	baton_runner_leave(two);
}

static void a_run_gets_no_work_with_keys_at_a_checkpoint(void **state)
{
	struct world *w = *state;
	struct baton_runner *r = enlist(w, "one");
	struct baton_batch_id a = put_in(w, "a", "k l");
	const struct words keys = words_of("k l");
	struct baton_batch b = several("a", &keys);
	b.slot = BATON_JOIN;
	put_batch(w, &b);
	const struct baton_work_claims *c = tick(w, r, 0, 2 * HALF, NULL);
	assert_is(&c->claims[0], &a);
	struct baton_work_claims *more = NULL;
	const struct baton_more_ask ask = {.queue = BATON_STR("q"),
	                                   .lane = BATON_STR("a"),
	                                   .shard = c->claims[0].shard,
	                                   .proof = c->claims[0].proof,
	                                   .max = 10};
	assert_int_equal(baton_runner_more(r, &ask, &more), BATON_OK);
	assert_null(more);
	baton_runner_leave(r);
}

static void a_dead_one_holds_no_key_and_is_revived_behind_the_others(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	p.on_dead = BATON_ON_DEAD_HOLD;
	set_policy(w, "q", &p);
	struct baton_batch_id a = put_keys(w, "k l"), b = put_keys(w, "l k");
	end(w, assert_next(w, &a), BATON_REJECT);
	assert_int_equal(state_of(w, &a), BATON_BATCH_DEAD);
	const struct baton_work_claim *c = assert_next(w, &b);
	assert_int_equal(revive(w, &a), BATON_OK);
	assert_none(w);
	assert_why(w, &a, BATON_WHY_KEY, &b, "k");
	complete(w, c);
	assert_next(w, &a);
}

static void a_kept_result_holds_no_key(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	p.keep = baton_duration_s(10);
	set_policy(w, "q", &p);
	struct baton_batch_id a = put_keys(w, "k l"), b = put_keys(w, "l m");
	complete(w, assert_next(w, &a));
	assert_int_equal(state_of(w, &a), BATON_BATCH_DONE);
	assert_keys(look(w, &a)->keys, look(w, &a)->key_count, "k l");
	complete(w, assert_next(w, &b));
	advance(w, 10000);
	size_t count;
	assert_int_equal(baton_store_tidy(w->store, 100, &count), BATON_OK);
	assert_sound(w);
}

/* The claim that is over holds a key, too, that the one who takes its other key does not want. */
static void a_call_leaves_to_the_next_one_what_it_makes_free_of_other_keys(void **state)
{
	static const struct baton_str first[] = {{"j", 1}, {"k", 1}}, over[] = {{"k", 1}, {"l", 1}};
	struct world *w = *state;
	struct baton_batch a = batch_of("q", "", NULL), b = a, c = a;
	a.keys = first;
	b.keys = over;
	a.key_count = b.key_count = 2;
	a.delay = baton_duration_ms(500);
	c.key = BATON_STR("l");
	set_attempts(w, "q", 1);
	put_batch(w, &a);
	put_batch(w, &b);
	struct baton_batch_id waits = put_batch(w, &c);
	assert_non_null(claim(w, "q", 1));
	advance(w, 1000);
	const struct baton_work_ask ask = {.queue = BATON_STR("q"),
	                                   .ttl = baton_duration_ms(1000),
	                                   .claims = 4,
	                                   .max = 1};
	assert_int_equal(claim_many(w, &ask)->count, 1);
	const struct baton_work_claims *next = claim_many(w, &ask);
	assert_int_equal(next->count, 1);
	assert_id(next->claims[0].batches[0].id, waits);
}

static const struct CMUnitTest tests[] = {
	WORLD_TEST(a_claim_says_all_of_its_keys_in_order),
	WORLD_TEST(one_key_is_a_list_too),
	WORLD_TEST(a_key_that_is_named_twice_counts_once),
	WORLD_TEST(the_longest_names_are_kept_whole),
	WORLD_TEST(what_is_wrong_about_keys_is_said),
	WORLD_TEST(all_keys_are_held_and_freed_together),
	WORLD_TEST(who_waits_for_one_key_takes_no_other_but_is_passed_by_nobody),
	WORLD_TEST(two_who_name_their_keys_in_opposite_orders_take_turns),
	WORLD_TEST(a_ring_of_keys_comes_to_an_end),
	WORLD_TEST(those_of_other_keys_are_not_in_anybodys_way),
	WORLD_TEST(a_lane_asks_for_the_keys_of_its_first),
	WORLD_TEST(a_joined_claim_is_of_the_same_keys),
	WORLD_TEST(each_key_has_the_limit),
	WORLD_TEST(a_limit_that_is_lowered_takes_the_turn_of_who_waits),
	WORLD_TEST(one_that_comes_before_takes_the_turn_in_all_lines),
	WORLD_TEST(a_cancelled_waiter_gives_its_turn_in_all_lines),
	WORLD_TEST(what_a_call_makes_free_is_for_the_next_one_which_is_woken),
	WORLD_TEST(a_retry_keeps_all_keys),
	WORLD_TEST(a_retry_that_is_cancelled_lets_go_of_all_keys),
	WORLD_TEST(a_retry_that_gives_up_its_keys_comes_back_behind_the_others),
	WORLD_TEST(in_a_lane_a_retry_that_gives_up_its_keys_keeps_its_place),
	WORLD_TEST(what_ends_in_other_ways_lets_go_of_all_keys),
	WORLD_TEST(an_expired_claim_is_over_once_somebody_has_one_of_its_keys),
	WORLD_TEST(one_with_several_keys_ends_the_expired_claims_of_each),
	WORLD_TEST(an_expired_claim_that_is_renewed_has_all_its_keys),
	WORLD_TEST(a_claim_that_was_seen_to_be_over_can_be_renewed_with_its_keys),
	WORLD_TEST(a_claim_that_was_seen_to_be_over_can_be_completed),
	WORLD_TEST(a_clock_that_is_set_back_gives_no_key_twice),
	WORLD_TEST(a_claim_that_is_live_again_holds_all_its_keys_again),
	WORLD_TEST(an_expired_claim_that_dies_gives_its_keys_to_the_next_call),
	WORLD_TEST(each_key_starts_so_often_in_a_window),
	WORLD_TEST(the_last_window_decides),
	WORLD_TEST(keys_are_held_no_longer_than_their_ttl),
	WORLD_TEST(several_keys_are_refused_where_the_policy_cannot_be_kept),
	WORLD_TEST(a_policy_that_cannot_be_kept_is_refused_where_jobs_have_several_keys),
	WORLD_TEST(a_repeated_put_is_the_same_whatever_the_order_of_its_keys),
	WORLD_TEST(what_is_emitted_may_have_several_keys),
	WORLD_TEST(one_that_stands_together_with_others_meets_one_with_several_keys),
	WORLD_TEST(fences_grow_along_each_key),
	WORLD_TEST(two_keys_that_are_freed_in_turn_let_one_begin_at_a_time),
	WORLD_TEST(runners_of_different_shards_share_keys),
	WORLD_TEST(a_takeover_frees_all_keys_of_the_lost_runner),
	WORLD_TEST(a_runner_that_leaves_gives_all_keys_back),
	WORLD_TEST(a_run_gets_no_work_with_keys_at_a_checkpoint),
	WORLD_TEST(a_dead_one_holds_no_key_and_is_revived_behind_the_others),
	WORLD_TEST(a_kept_result_holds_no_key),
	WORLD_TEST(a_call_leaves_to_the_next_one_what_it_makes_free_of_other_keys),
};

WORLD_MAIN("several", tests)
