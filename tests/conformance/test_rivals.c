/* Conflicts of keys: who waits, who is skipped for whom, and how many may wait. */
#include <baton/shard.h>

#include "world.h"

#define HOUR_MS 3600000

static struct baton_batch keyed(const char *key)
{
	struct baton_batch b = batch_of("q", "", NULL);
	b.key = baton_str_z(key);
	return b;
}

static struct baton_put put_key(struct world *w, const char *key)
{
	struct baton_batch b = keyed(key);
	struct baton_put answer;
	assert_int_equal(try_put(w, &b, &answer), BATON_OK);
	return answer;
}

static struct baton_batch_id ready(struct world *w, const char *key)
{
	struct baton_put put = put_key(w, key);
	assert_int_equal(put.state, BATON_BATCH_READY);
	return put.id;
}

static struct baton_batch_id skipped(struct world *w, const char *key)
{
	struct baton_put put = put_key(w, key);
	assert_int_equal(put.state, BATON_BATCH_SKIPPED);
	return put.id;
}

static struct baton_batch_id put_in(struct world *w, const char *key, int64_t ms)
{
	struct baton_batch b = keyed(key);
	b.delay = baton_duration_ms(ms);
	return put_batch(w, &b);
}

static void policy_is(struct world *w, enum baton_on_conflict on_conflict, uint32_t limit)
{
	struct baton_queue_policy p = policy(w, "q");
	p.on_conflict = on_conflict;
	p.key_limit = limit;
	p.retry.backoff = BATON_BACKOFF_FIXED;
	p.retry.base = baton_duration_ms(100);
	set_policy(w, "q", &p);
}

static void assert_skipped(struct world *w, const struct baton_batch_id *id,
                           const struct baton_batch_id *by)
{
	const struct baton_work_info *info = look(w, id);
	assert_int_equal(info->state, BATON_BATCH_SKIPPED);
	assert_int_equal(info->why, BATON_WHY_SKIPPED);
	assert_id(info->ahead, *by);
	assert_true(info->ended_at.ms > 0);
	assert_int_equal(info->claim.len, 0);
}

static void assert_is(const struct baton_work_claim *c, const struct baton_batch_id *id)
{
	assert_non_null(c);
	assert_id(c->batches[0].id, *id);
}

static void a_newcomer_is_skipped_for_the_holder(void **state)
{
	struct world *w = *state;
	policy_is(w, BATON_CONFLICT_SKIP, 1);
	struct baton_batch_id first = ready(w, "k");
	const struct baton_work_claim *c = claim(w, "q", 1);
	struct baton_batch_id second = skipped(w, "k"), other = ready(w, "l");
	assert_skipped(w, &second, &first);
	assert_int_equal(look(w, &second)->batch.attempt, 0);
	assert_int_equal(counts(w, "q").ready, 1);
	assert_is(claim(w, "q", 1), &other);
	complete(w, c);
	assert_null(claim(w, "q", 1));
	assert_int_equal(counts(w, "q").done, 1);
	struct baton_batch_id third = ready(w, "k");
	assert_is(claim(w, "q", 1), &third);
	assert_skipped(w, &second, &first);
	assert_sound(w);
}

static void who_will_hold_a_key_holds_it_against_newcomers(void **state)
{
	struct world *w = *state;
	policy_is(w, BATON_CONFLICT_SKIP, 2);
	struct baton_batch_id first = ready(w, "k"), second = ready(w, "k");
	struct baton_batch_id third = skipped(w, "k");
	assert_skipped(w, &third, &first);
	assert_is(claim(w, "q", 1), &first);
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_is(c, &second);
	assert_null(claim(w, "q", 1));
	complete(w, c);
	ready(w, "k");
	struct baton_batch_id last = skipped(w, "k");
	assert_skipped(w, &last, &first);
	assert_sound(w);
}

static void puts_of_one_call_meet_each_other(void **state)
{
	struct world *w = *state;
	policy_is(w, BATON_CONFLICT_SKIP, 1);
	struct baton_batch both[3] = {keyed("k"), keyed("l"), keyed("k")};
	struct baton_put puts[3];
	assert_int_equal(baton_work_put(w->store, both, 3, puts), BATON_OK);
	assert_int_equal(puts[0].state, BATON_BATCH_READY);
	assert_int_equal(puts[1].state, BATON_BATCH_READY);
	assert_int_equal(puts[2].state, BATON_BATCH_SKIPPED);
	assert_skipped(w, &puts[2].id, &puts[0].id);
	assert_sound(w);
}

static void only_the_latest_waits(void **state)
{
	struct world *w = *state;
	policy_is(w, BATON_CONFLICT_LATEST, 1);
	struct baton_batch_id first = ready(w, "k");
	const struct baton_work_claim *c = claim(w, "q", 1);
	struct baton_batch_id ids[4];
	for (int i = 0; i < 4; i++)
		ids[i] = ready(w, "k");
	for (int i = 0; i < 3; i++)
		assert_skipped(w, &ids[i], &ids[i + 1]);
	assert_int_equal(counts(w, "q").ready, 1);
	assert_int_equal(look(w, &ids[3])->why, BATON_WHY_KEY);
	assert_id(look(w, &ids[3])->ahead, first);
	complete(w, c);
	c = claim(w, "q", 1);
	assert_is(c, &ids[3]);
	complete(w, c);
	assert_null(claim(w, "q", 1));
	assert_sound(w);
}

static void who_can_begin_at_once_does_not_wait_for_its_key(void **state)
{
	struct world *w = *state;
	policy_is(w, BATON_CONFLICT_LATEST, 2);
	struct baton_batch_id a = ready(w, "k"), b = ready(w, "k"), c = ready(w, "k");
	struct baton_batch_id d = ready(w, "k");
	assert_skipped(w, &c, &d);
	const struct baton_work_claim *first = claim(w, "q", 1);
	assert_is(first, &a);
	assert_is(claim(w, "q", 1), &b);
	assert_null(claim(w, "q", 1));
	complete(w, first);
	assert_is(claim(w, "q", 1), &d);
	assert_sound(w);
}

static void only_the_first_waits(void **state)
{
	struct world *w = *state;
	policy_is(w, BATON_CONFLICT_FIRST, 1);
	ready(w, "k");
	const struct baton_work_claim *c = claim(w, "q", 1);
	struct baton_batch_id waits = ready(w, "k");
	struct baton_batch_id third = skipped(w, "k"), fourth = skipped(w, "k");
	assert_skipped(w, &third, &waits);
	assert_skipped(w, &fourth, &waits);
	complete(w, c);
	assert_is(claim(w, "q", 1), &waits);
	struct baton_batch_id next = ready(w, "k"), last = skipped(w, "k");
	assert_skipped(w, &last, &next);
	assert_sound(w);
}

static void a_running_one_is_asked_to_stop_and_the_newcomer_follows(void **state)
{
	struct world *w = *state;
	policy_is(w, BATON_CONFLICT_REPLACE, 1);
	struct baton_batch_id first = ready(w, "k");
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_is(c, &first);
	assert_false(renew(w, c, 1000).cancel);
	struct baton_batch_id second = ready(w, "k");
	assert_true(renew(w, c, 1000).cancel);
	assert_true(look(w, &first)->cancel);
	assert_id(look(w, &first)->ahead, second);
	assert_null(claim(w, "q", 1)); /* not before it has stopped */
	struct baton_work_ended ended = end(w, c, BATON_ABANDON);
	assert_int_equal(ended.state, BATON_BATCH_SKIPPED);
	assert_skipped(w, &first, &second);
	assert_is(claim(w, "q", 1), &second);
	assert_sound(w);
}

static void who_is_done_before_it_stops_is_done(void **state)
{
	struct world *w = *state;
	policy_is(w, BATON_CONFLICT_REPLACE, 1);
	struct baton_queue_policy p = policy(w, "q");
	p.keep = baton_duration_ms(1000);
	set_policy(w, "q", &p);
	struct baton_batch_id first = ready(w, "k");
	const struct baton_work_claim *c = claim(w, "q", 1);
	ready(w, "k");
	assert_int_equal(complete(w, c), BATON_BATCH_DONE);
	assert_int_equal(state_of(w, &first), BATON_BATCH_DONE);
	assert_int_equal(counts(w, "q").done, 1);
	assert_non_null(claim(w, "q", 1));
	assert_sound(w);
}

static void who_fails_or_expires_while_it_is_replaced_does_not_come_back(void **state)
{
	struct world *w = *state;
	policy_is(w, BATON_CONFLICT_REPLACE, 1);
	struct baton_batch_id first = ready(w, "k");
	const struct baton_work_claim *c = claim(w, "q", 1);
	struct baton_batch_id second = ready(w, "k");
	end(w, c, BATON_FAIL);
	assert_skipped(w, &first, &second);
	assert_is(claim(w, "q", 1), &second);
	struct baton_batch_id third = ready(w, "k");
	advance(w, 2000);
	assert_is(claim(w, "q", 1), &third);
	assert_skipped(w, &second, &third);
	assert_sound(w);
}

static void the_newest_that_waits_replaces_the_one_before_it(void **state)
{
	struct world *w = *state;
	policy_is(w, BATON_CONFLICT_REPLACE, 1);
	struct baton_batch_id first = ready(w, "k"), second = ready(w, "k");
	assert_skipped(w, &first, &second);
	const struct baton_work_claim *c = claim(w, "q", 1);
	struct baton_batch_id third = ready(w, "k"), fourth = ready(w, "k");
	assert_skipped(w, &third, &fourth);
	assert_id(look(w, &second)->ahead, third);
	end(w, c, BATON_ABANDON);
	assert_skipped(w, &second, &third);
	assert_is(claim(w, "q", 1), &fourth);
	assert_sound(w);
}

static void the_oldest_of_several_is_replaced(void **state)
{
	struct world *w = *state;
	policy_is(w, BATON_CONFLICT_REPLACE, 2);
	struct baton_batch_id a = ready(w, "k"), b = ready(w, "k");
	const struct baton_work_claim *first = claim(w, "q", 1), *second = claim(w, "q", 1);
	struct baton_batch_id c = ready(w, "k"), d = ready(w, "k");
	assert_true(renew(w, first, 1000).cancel && renew(w, second, 1000).cancel);
	assert_id(look(w, &a)->ahead, c);
	assert_id(look(w, &b)->ahead, d);
	struct baton_batch_id e = ready(w, "k");
	assert_skipped(w, &c, &e);
	end(w, first, BATON_ABANDON);
	end(w, second, BATON_ABANDON);
	assert_is(claim(w, "q", 1), &d);
	assert_is(claim(w, "q", 1), &e);
	assert_sound(w);
}

static void one_that_keeps_its_key_for_a_retry_is_replaced_at_once(void **state)
{
	struct world *w = *state;
	policy_is(w, BATON_CONFLICT_REPLACE, 1);
	struct baton_batch_id first = ready(w, "k");
	end(w, claim(w, "q", 1), BATON_FAIL);
	assert_int_equal(counts(w, "q").delayed, 1);
	struct baton_batch_id second = ready(w, "k");
	assert_skipped(w, &first, &second);
	assert_int_equal(counts(w, "q").delayed, 0);
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_is(c, &second);
	complete(w, c);
	advance(w, 1000);
	assert_null(claim(w, "q", 1));
	assert_sound(w);
}

static void what_becomes_due_replaces_what_runs(void **state)
{
	struct world *w = *state;
	policy_is(w, BATON_CONFLICT_REPLACE, 1);
	struct baton_batch_id late = put_in(w, "k", 100), first = ready(w, "k");
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_is(c, &first);
	advance(w, 150);
	assert_null(claim(w, "q", 1));
	assert_true(renew(w, c, 1000).cancel);
	struct baton_batch_id kept = ready(w, "l");
	end(w, claim(w, "q", 1), BATON_FAIL);
	struct baton_batch_id later = put_in(w, "l", 10);
	advance(w, 20);
	assert_is(claim(w, "q", 1), &later);
	assert_skipped(w, &kept, &later);
	end(w, c, BATON_ABANDON);
	assert_skipped(w, &first, &late);
	assert_is(claim(w, "q", 1), &late);
	assert_sound(w);
}

static void what_is_due_before_one_that_keeps_its_key_replaces_it(void **state)
{
	struct world *w = *state;
	policy_is(w, BATON_CONFLICT_REPLACE, 1);
	struct baton_batch_id first = ready(w, "k");
	end(w, claim(w, "q", 1), BATON_FAIL);
	struct baton_batch_id second = put_in(w, "k", 10);
	advance(w, 1000);
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_is(c, &second);
	assert_skipped(w, &first, &second);
	assert_int_equal(counts(w, "q").delayed, 0);
	complete(w, c);
	assert_null(claim(w, "q", 1));
	struct baton_batch_id third = ready(w, "k");
	assert_is(claim(w, "q", 1), &third);
	assert_sound(w);
}

static void what_is_delayed_is_a_newcomer_when_it_is_due(void **state)
{
	struct world *w = *state;
	policy_is(w, BATON_CONFLICT_SKIP, 1);
	struct baton_batch_id late = put_in(w, "k", 100), later = put_in(w, "k", 200);
	struct baton_batch_id first = ready(w, "k");
	assert_int_equal(state_of(w, &late), BATON_BATCH_DELAYED);
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_is(c, &first);
	advance(w, 150);
	assert_null(claim(w, "q", 1));
	assert_skipped(w, &late, &first);
	complete(w, c);
	advance(w, 100);
	assert_is(claim(w, "q", 1), &later);
	assert_sound(w);
}

static void those_that_are_due_together_meet_in_order(void **state)
{
	struct world *w = *state;
	policy_is(w, BATON_CONFLICT_LATEST, 1);
	struct baton_batch_id ids[4];
	for (int i = 0; i < 4; i++)
		ids[i] = put_in(w, "k", 100 + i);
	advance(w, 200);
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_is(c, &ids[0]);
	assert_skipped(w, &ids[1], &ids[2]);
	assert_skipped(w, &ids[2], &ids[3]);
	complete(w, c);
	assert_is(claim(w, "q", 1), &ids[3]);
	assert_sound(w);
}

static void a_key_that_is_kept_for_a_retry_is_held(void **state)
{
	struct world *w = *state;
	policy_is(w, BATON_CONFLICT_SKIP, 1);
	struct baton_batch_id first = ready(w, "k");
	end(w, claim(w, "q", 1), BATON_FAIL);
	struct baton_batch_id second = skipped(w, "k");
	assert_skipped(w, &second, &first);
	advance(w, 200);
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_is(c, &first);
	assert_int_equal(c->batches[0].attempt, 2);
	assert_sound(w);
}

static void who_gave_its_key_up_comes_back_as_a_newcomer(void **state)
{
	struct world *w = *state;
	policy_is(w, BATON_CONFLICT_SKIP, 1);
	struct baton_queue_policy p = policy(w, "q");
	p.hold_on_retry = BATON_HOLD_GIVE_UP;
	set_policy(w, "q", &p);
	struct baton_batch_id first = ready(w, "k");
	const struct baton_work_end fails = {.proof = claim(w, "q", 1)->proof,
	                                     .how = BATON_FAIL,
	                                     .error = BATON_STR("it broke")};
	assert_int_equal(end_with(w, &fails).err, BATON_OK);
	struct baton_batch_id second = ready(w, "k");
	assert_is(claim(w, "q", 1), &second);
	advance(w, 200);
	assert_null(claim(w, "q", 1));
	assert_skipped(w, &first, &second);
	assert_int_equal(look(w, &first)->batch.attempt, 1);
	assert_str(look(w, &first)->error, "it broke");
	assert_sound(w);
}

static void a_dead_batch_comes_back_as_a_newcomer(void **state)
{
	struct world *w = *state;
	policy_is(w, BATON_CONFLICT_SKIP, 1);
	struct baton_batch_id first = ready(w, "k");
	end(w, claim(w, "q", 1), BATON_REJECT);
	struct baton_batch_id second = ready(w, "k");
	assert_int_equal(revive(w, &first), BATON_OK);
	assert_skipped(w, &first, &second);
	assert_int_equal(counts(w, "q").dead, 0);
	assert_is(claim(w, "q", 1), &second);
	assert_sound(w);
}

static void work_that_goes_back_to_its_place_is_no_newcomer(void **state)
{
	struct world *w = *state;
	policy_is(w, BATON_CONFLICT_FIRST, 1);
	struct baton_batch_id first = ready(w, "k");
	const struct baton_work_claim *c = claim(w, "q", 1);
	struct baton_batch_id second = ready(w, "k");
	end(w, c, BATON_ABANDON);
	assert_int_equal(state_of(w, &first), BATON_BATCH_READY);
	assert_int_equal(state_of(w, &second), BATON_BATCH_READY);
	assert_is(claim(w, "q", 1), &first);
	assert_sound(w);
}

static void work_that_was_taken_from_an_expired_claim_holds_its_key(void **state)
{
	struct world *w = *state;
	policy_is(w, BATON_CONFLICT_LATEST, 1);
	struct baton_batch_id first = ready(w, "k");
	const struct baton_work_claim *c = claim(w, "q", 1);
	struct baton_batch_id second = ready(w, "k");
	advance(w, 2000);
	put(w, "q", "");
	assert_non_null(claim(w, "q", 1)); /* which offers what has expired, and takes it */
	assert_int_equal(state_of(w, &first), BATON_BATCH_CLAIMED);
	struct baton_batch_id third = ready(w, "k");
	assert_skipped(w, &second, &third);
	assert_int_equal(renew(w, c, 1000).err, BATON_NOT_HELD);
	assert_sound(w);
}

static void what_a_completion_emits_finds_its_key_free(void **state)
{
	struct world *w = *state;
	policy_is(w, BATON_CONFLICT_SKIP, 1);
	ready(w, "k");
	struct baton_batch next = keyed("k");
	const struct baton_work_end done = {.proof = claim(w, "q", 1)->proof,
	                                    .how = BATON_COMPLETE,
	                                    .emits = &next,
	                                    .emit_count = 1};
	assert_int_equal(end_with(w, &done).err, BATON_OK);
	assert_int_equal(counts(w, "q").ready, 1);
	assert_non_null(claim(w, "q", 1));
	assert_sound(w);
}

static void what_waits_is_left_alone_by_a_change(void **state)
{
	struct world *w = *state;
	struct baton_batch_id ids[4];
	for (int i = 0; i < 4; i++)
		ids[i] = ready(w, "k");
	policy_is(w, BATON_CONFLICT_LATEST, 1);
	struct baton_batch_id last = ready(w, "k");
	assert_skipped(w, &ids[3], &last);
	for (int i = 0; i < 3; i++) {
		const struct baton_work_claim *c = claim(w, "q", 1);
		assert_is(c, &ids[i]);
		complete(w, c);
	}
	assert_is(claim(w, "q", 1), &last);
	assert_sound(w);
}

static void what_was_skipped_can_be_seen_for_a_while(void **state)
{
	struct world *w = *state;
	policy_is(w, BATON_CONFLICT_SKIP, 1);
	struct baton_batch_id first = ready(w, "k"), second = skipped(w, "k");
	const struct baton_work_filter only = {.queue = BATON_STR("q"),
	                                       .state = BATON_BATCH_SKIPPED,
	                                       .max = 10};
	const struct baton_work_filter done = {.state = BATON_BATCH_DONE, .max = 10};
	const struct baton_work_page *page = list(w, &only);
	assert_int_equal(page->count, 1);
	assert_id(page->infos[0].batch.id, second);
	assert_id(page->infos[0].ahead, first);
	assert_int_equal(list(w, &done)->count, 0);
	assert_int_equal(cancel(w, &second), BATON_CANCEL_MISSING);
	assert_int_equal(revive(w, &second), BATON_INVALID);
	advance(w, HOUR_MS - 1);
	assert_skipped(w, &second, &first);
	advance(w, 1);
	assert_int_equal(state_of(w, &second), BATON_BATCH_GONE);
	assert_int_equal(list(w, &only)->count, 0);
	assert_int_equal(baton_store_tidy(w->store, 100, NULL), BATON_OK);
	assert_sound(w);
}

static void what_was_skipped_is_kept_as_long_as_results_are(void **state)
{
	struct world *w = *state;
	policy_is(w, BATON_CONFLICT_SKIP, 1);
	struct baton_queue_policy p = policy(w, "q");
	p.keep = baton_duration_ms(50);
	set_policy(w, "q", &p);
	struct baton_batch_id first = ready(w, "k"), second = skipped(w, "k");
	assert_skipped(w, &second, &first);
	advance(w, 50);
	assert_int_equal(state_of(w, &second), BATON_BATCH_GONE);
	assert_sound(w);
}

static void a_repeated_put_says_that_it_was_skipped(void **state)
{
	struct world *w = *state;
	policy_is(w, BATON_CONFLICT_SKIP, 1);
	ready(w, "k");
	struct baton_batch b = keyed("k");
	struct baton_put first, again;
	b.source = BATON_STR("order-7");
	assert_int_equal(try_put(w, &b, &first), BATON_OK);
	assert_int_equal(first.state, BATON_BATCH_SKIPPED);
	assert_int_equal(try_put(w, &b, &again), BATON_OK);
	assert_true(again.existing);
	assert_id(again.id, first.id);
	assert_int_equal(again.state, BATON_BATCH_SKIPPED);
	assert_sound(w);
}

static void bound_is(struct world *w, uint32_t max)
{
	struct baton_queue_policy p = policy(w, "q");
	p.key_waiting_max = max;
	set_policy(w, "q", &p);
}

static void no_more_wait_for_a_key_than_its_bound(void **state)
{
	struct world *w = *state;
	struct baton_batch b = keyed("k");
	struct baton_put answer;
	bound_is(w, 2);
	ready(w, "k");
	const struct baton_work_claim *c = claim(w, "q", 1);
	ready(w, "k");
	ready(w, "k");
	assert_int_equal(try_put(w, &b, &answer), BATON_FULL);
	assert_detail("key \"k\" of queue \"q\" has as many jobs waiting as its key_waiting_max "
	              "allows, 2");
	assert_int_equal(counts(w, "q").ready, 2);
	ready(w, "l");
	put(w, "q", "");
	struct baton_batch_id late = put_in(w, "k", 100);
	complete(w, c);
	assert_int_equal(try_put(w, &b, &answer), BATON_FULL);
	assert_non_null(claim(w, "q", 1));
	ready(w, "k");
	advance(w, 200);
	assert_non_null(claim(w, "q", 1));
	assert_int_equal(state_of(w, &late), BATON_BATCH_READY);
	bound_is(w, 0);
	ready(w, "k");
	assert_sound(w);
}

static void a_put_of_which_one_is_over_the_bound_puts_none(void **state)
{
	struct world *w = *state;
	struct baton_batch both[2] = {keyed("k"), keyed("k")};
	struct baton_put puts[2];
	bound_is(w, 1);
	assert_int_equal(baton_work_put(w->store, both, 2, puts), BATON_FULL);
	assert_detail("batch 2: key");
	assert_int_equal(counts(w, "q").ready, 0);
	assert_sound(w);
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

static void nothing_is_skipped_or_lost_by_a_takeover(void **state)
{
	struct world *w = *state;
	policy_is(w, BATON_CONFLICT_LATEST, 1);
	struct baton_runner *lost = enlist(w, "one"), *next = enlist(w, "two");
	struct baton_runner_info infos[2];
	size_t count;
	struct baton_batch_id first = ready(w, "k");
	assert_int_equal(take_all(w, lost)->count, 1);
	struct baton_batch_id second = ready(w, "k"), third = ready(w, "k");
	assert_skipped(w, &second, &third);
	assert_int_equal(baton_runner_list(w->store, 0, infos, 2, &count), BATON_OK);
	assert_int_equal(baton_runner_take_over(w->store, &infos[0]), BATON_OK);
	assert_int_equal(state_of(w, &first), BATON_BATCH_READY);
	assert_int_equal(state_of(w, &third), BATON_BATCH_READY);
	const struct baton_work_claims *c = take_all(w, next);
	assert_int_equal(c->count, 1);
	assert_is(&c->claims[0], &first);
	assert_null(take_all(w, next));
	struct baton_batch_id fourth = ready(w, "k");
	assert_skipped(w, &third, &fourth);
	assert_sound(w);
	baton_runner_leave(lost);
	baton_runner_leave(next);
}

static const struct CMUnitTest tests[] = {
	WORLD_TEST(a_newcomer_is_skipped_for_the_holder),
	WORLD_TEST(who_will_hold_a_key_holds_it_against_newcomers),
	WORLD_TEST(puts_of_one_call_meet_each_other),
	WORLD_TEST(only_the_latest_waits),
	WORLD_TEST(who_can_begin_at_once_does_not_wait_for_its_key),
	WORLD_TEST(only_the_first_waits),
	WORLD_TEST(a_running_one_is_asked_to_stop_and_the_newcomer_follows),
	WORLD_TEST(who_is_done_before_it_stops_is_done),
	WORLD_TEST(who_fails_or_expires_while_it_is_replaced_does_not_come_back),
	WORLD_TEST(the_newest_that_waits_replaces_the_one_before_it),
	WORLD_TEST(the_oldest_of_several_is_replaced),
	WORLD_TEST(one_that_keeps_its_key_for_a_retry_is_replaced_at_once),
	WORLD_TEST(what_becomes_due_replaces_what_runs),
	WORLD_TEST(what_is_due_before_one_that_keeps_its_key_replaces_it),
	WORLD_TEST(what_is_delayed_is_a_newcomer_when_it_is_due),
	WORLD_TEST(those_that_are_due_together_meet_in_order),
	WORLD_TEST(a_key_that_is_kept_for_a_retry_is_held),
	WORLD_TEST(who_gave_its_key_up_comes_back_as_a_newcomer),
	WORLD_TEST(a_dead_batch_comes_back_as_a_newcomer),
	WORLD_TEST(work_that_goes_back_to_its_place_is_no_newcomer),
	WORLD_TEST(work_that_was_taken_from_an_expired_claim_holds_its_key),
	WORLD_TEST(what_a_completion_emits_finds_its_key_free),
	WORLD_TEST(what_waits_is_left_alone_by_a_change),
	WORLD_TEST(what_was_skipped_can_be_seen_for_a_while),
	WORLD_TEST(what_was_skipped_is_kept_as_long_as_results_are),
	WORLD_TEST(a_repeated_put_says_that_it_was_skipped),
	WORLD_TEST(no_more_wait_for_a_key_than_its_bound),
	WORLD_TEST(a_put_of_which_one_is_over_the_bound_puts_none),
	WORLD_TEST(nothing_is_skipped_or_lost_by_a_takeover),
};

WORLD_MAIN("rivals", tests)
