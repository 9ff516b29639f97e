/* How claims end, and what operators do to batches. */
#include <stdlib.h>

#include "world.h"

static struct baton_work_ended end_ids(struct world *w, const struct baton_work_claim *c,
                                       enum baton_work_how how, const struct baton_batch_id *ids,
                                       size_t count)
{
	const struct baton_work_end e = {.proof = c->proof, .how = how, .ids = ids, .count = count};
	return end_with(w, &e);
}

/* Two batches that join, under one claim. */
static const struct baton_work_claim *claim_two(struct world *w)
{
	put_join(w, "q", "x", "");
	put_join(w, "q", "x", "");
	const struct baton_work_claim *c = claim(w, "q", 2);
	assert_int_equal(c->count, 2);
	return c;
}

static void what_is_completed_is_gone(void **state)
{
	struct world *w = *state;
	struct baton_batch_id id = put(w, "q", "x");
	struct baton_work_ended answer = end(w, claim(w, "q", 1), BATON_COMPLETE);
	assert_int_equal(answer.err, BATON_OK);
	assert_int_equal(answer.state, BATON_BATCH_GONE);
	assert_int_equal(answer.due.ms, 0);
	assert_int_equal(state_of(w, &id), BATON_BATCH_GONE);
	assert_int_equal(counts(w, "q").done, 1);
	assert_int_equal(counts(w, "q").running, 0);
}

static void a_result_is_kept_exactly_as_long_as_the_queue_says(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	p.keep = baton_duration_ms(100);
	set_policy(w, "q", &p);
	struct baton_batch_id id = put(w, "q", "x");
	const struct baton_work_end e = {.proof = claim(w, "q", 1)->proof,
	                                 .how = BATON_COMPLETE,
	                                 .result = BATON_STR("42")};
	assert_int_equal(end_with(w, &e).state, BATON_BATCH_DONE);
	advance(w, 99);
	const struct baton_work_info *info = look(w, &id);
	assert_int_equal(info->state, BATON_BATCH_DONE);
	assert_int_equal(info->why, BATON_WHY_DONE);
	assert_str(info->result, "42");
	assert_int_equal(info->ended_at.ms, START_MS);
	assert_int_equal(info->batch.attempt, 1);
	assert_int_equal(cancel(w, &id), BATON_CANCEL_MISSING);
	assert_int_equal(revive(w, &id), BATON_INVALID);
	advance(w, 1);
	assert_null(look(w, &id));
	assert_int_equal(revive(w, &id), BATON_NOT_FOUND);
}

static void a_completion_that_is_repeated_gets_the_same_answer(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_int_equal(end(w, c, BATON_COMPLETE).err, BATON_OK);
	assert_int_equal(end(w, c, BATON_COMPLETE).err, BATON_OK);
	assert_int_equal(end(w, c, BATON_COMPLETE).state, BATON_BATCH_GONE);
	assert_int_equal(counts(w, "q").done, 1);
	assert_int_equal(end(w, c, BATON_FAIL).err, BATON_NOT_HELD);
	assert_int_equal(end(w, c, BATON_ABANDON).err, BATON_NOT_HELD);
	assert_int_equal(renew(w, c, 1000).err, BATON_NOT_HELD);
	advance(w, 86400000 - 1);
	assert_int_equal(end(w, c, BATON_COMPLETE).err, BATON_OK);
	advance(w, 1);
	assert_int_equal(end(w, c, BATON_COMPLETE).err, BATON_NOT_HELD);
}

static void a_repeated_completion_needs_the_token_too(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	struct baton_work_claim c = *claim(w, "q", 1);
	complete(w, &c);
	c.proof.token.bytes[0] ^= 1;
	assert_int_equal(end(w, &c, BATON_COMPLETE).err, BATON_NOT_HELD);
}

static void a_wrong_token_ends_nothing(void **state)
{
	struct world *w = *state;
	struct baton_batch_id id = put(w, "q", "x");
	struct baton_work_claim c = *claim(w, "q", 1);
	c.proof.token.bytes[0] ^= 1;
	assert_int_equal(end(w, &c, BATON_COMPLETE).err, BATON_NOT_HELD);
	assert_int_equal(state_of(w, &id), BATON_BATCH_CLAIMED);
}

static void a_late_completion_is_accepted_if_nobody_took_the_work(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	put(w, "q", "");
	const struct baton_work_claim *c = claim(w, "q", 1), *single = claim(w, "q", 1);
	advance(w, 100000);
	struct baton_work_ask nothing = {.queue = BATON_STR("q"), .claims = 1, .max = 0};
	assert_null(claim_many(w, &nothing));
	assert_int_equal(complete(w, c), BATON_BATCH_GONE);
	assert_int_equal(complete(w, single), BATON_BATCH_GONE);
	assert_int_equal(counts(w, "q").failed, 0);
}

static void a_completion_after_a_takeover_is_refused(void **state)
{
	struct world *w = *state;
	struct baton_batch_id id = put(w, "q", "x");
	const struct baton_work_claim *first = claim(w, "q", 1);
	advance(w, 1000);
	const struct baton_work_claim *second = claim_as(w, "q", &w->other);
	assert_int_equal(end(w, first, BATON_COMPLETE).err, BATON_NOT_HELD);
	assert_int_equal(end(w, first, BATON_ABANDON).err, BATON_NOT_HELD);
	assert_int_equal(state_of(w, &id), BATON_BATCH_CLAIMED);
	complete(w, second);
	assert_int_equal(end(w, first, BATON_COMPLETE).err, BATON_NOT_HELD);
}

static void a_part_of_a_claim_can_be_completed_and_the_rest_goes_on(void **state)
{
	struct world *w = *state;
	const struct baton_work_claim *c = claim_two(w);
	const struct baton_batch_id first = c->batches[0].id, second = c->batches[1].id;
	assert_int_equal(end_ids(w, c, BATON_COMPLETE, &first, 1).err, BATON_OK);
	assert_int_equal(state_of(w, &first), BATON_BATCH_GONE);
	assert_int_equal(state_of(w, &second), BATON_BATCH_CLAIMED);
	assert_int_equal(renew(w, c, 1000).err, BATON_OK);
	assert_int_equal(end_ids(w, c, BATON_COMPLETE, &first, 1).err, BATON_NOT_HELD);
	complete(w, c);
	assert_int_equal(counts(w, "q").done, 2);
	assert_int_equal(end(w, c, BATON_COMPLETE).err, BATON_OK);
}

static void a_batch_that_is_not_under_the_claim_changes_nothing(void **state)
{
	struct world *w = *state;
	const struct baton_work_claim *c = claim_two(w);
	struct baton_batch_id ids[] = {c->batches[0].id, put(w, "q", "y")};
	struct baton_batch_id nonsense = {"nonsense"};
	assert_int_equal(end_ids(w, c, BATON_COMPLETE, ids, 2).err, BATON_NOT_HELD);
	assert_int_equal(end_ids(w, c, BATON_COMPLETE, &nonsense, 1).err, BATON_NOT_HELD);
	assert_int_equal(state_of(w, &ids[0]), BATON_BATCH_CLAIMED);
	assert_int_equal(counts(w, "q").done, 0);
}

static void a_batch_that_is_named_twice_is_ended_once(void **state)
{
	struct world *w = *state;
	const struct baton_work_claim *c = claim_two(w);
	const struct baton_batch_id ids[] = {c->batches[1].id, c->batches[1].id};
	assert_int_equal(end_ids(w, c, BATON_COMPLETE, ids, 2).err, BATON_OK);
	assert_int_equal(counts(w, "q").running, 1);
	assert_int_equal(counts(w, "q").done, 1);
}

static void ends_are_each_for_themselves(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	put(w, "q", "y");
	struct baton_work_end ends[] = {{.proof = claim(w, "q", 1)->proof, .how = BATON_COMPLETE},
	                                {.proof = claim(w, "q", 1)->proof, .how = BATON_ABANDON},
	                                {.proof.id = "7-7", .how = BATON_COMPLETE}};
	struct baton_work_ended answers[3];
	assert_int_equal(baton_work_end(w->store, ends, 3, answers), BATON_OK);
	assert_int_equal(answers[0].err, BATON_OK);
	assert_int_equal(answers[1].state, BATON_BATCH_READY);
	assert_int_equal(answers[2].err, BATON_NOT_HELD);
}

static void emitted_work_is_put_with_the_completion(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	struct baton_batch emits[] = {batch_of("next", "a", NULL), batch_of("next", "", NULL)};
	const struct baton_work_end e = {.proof = claim(w, "q", 1)->proof,
	                                 .how = BATON_COMPLETE,
	                                 .emits = emits,
	                                 .emit_count = 2};
	assert_int_equal(end_with(w, &e).err, BATON_OK);
	assert_int_equal(counts(w, "next").ready, 2);
	assert_int_equal(end_with(w, &e).err, BATON_OK);
	assert_int_equal(counts(w, "next").ready, 2);
}

static void emitted_work_that_is_refused_keeps_the_claim(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "next");
	struct baton_batch emits[] = {batch_of("next", "a", NULL), batch_of("next", "b", NULL)};
	p.waiting_max = 1;
	set_policy(w, "next", &p);
	struct baton_batch_id id = put(w, "q", "x");
	const struct baton_work_end e = {.proof = claim(w, "q", 1)->proof,
	                                 .how = BATON_COMPLETE,
	                                 .emits = emits,
	                                 .emit_count = 2};
	assert_int_equal(end_with(w, &e).err, BATON_FULL);
	assert_int_equal(counts(w, "next").ready, 0);
	assert_int_equal(state_of(w, &id), BATON_BATCH_CLAIMED);
	emits[0].source = emits[1].source = BATON_STR("key");
	emits[1].lane = emits[0].lane;
	emits[1].priority = 1;
	assert_int_equal(end_with(w, &e).err, BATON_CONFLICT);
	emits[1] = emits[0];
	assert_int_equal(end_with(w, &e).err, BATON_OK);
	assert_int_equal(counts(w, "next").ready, 1);
}

static void emitted_work_is_put_after_what_is_completed_is_gone(void **state)
{
	struct world *w = *state;
	struct baton_batch b = batch_of("q", "x", NULL);
	b.source = BATON_STR("key");
	put_batch(w, &b);
	advance(w, 86400000);
	b.priority = 1;
	const struct baton_work_end e = {.proof = claim(w, "q", 1)->proof,
	                                 .how = BATON_COMPLETE,
	                                 .emits = &b,
	                                 .emit_count = 1};
	assert_int_equal(end_with(w, &e).err, BATON_OK);
	assert_string_equal(claim(w, "q", 1)->batches[0].id.text, "2");
}

static void what_fails_waits_for_its_next_attempt_and_blocks_its_lane(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	p.retry_lane = (struct baton_retry){3, BATON_BACKOFF_FIXED, baton_duration_ms(50),
	                                    baton_duration_ms(50)};
	set_policy(w, "q", &p);
	struct baton_batch_id id = put(w, "q", "x"), behind = put(w, "q", "x");
	const struct baton_work_end e = {.proof = claim(w, "q", 1)->proof,
	                                 .how = BATON_FAIL,
	                                 .error = BATON_STR("it broke")};
	struct baton_work_ended answer = end_with(w, &e);
	assert_int_equal(answer.state, BATON_BATCH_RETRY);
	assert_int_equal(answer.due.ms, START_MS + 50);
	assert_str(look(w, &id)->error, "it broke");
	assert_int_equal(look(w, &id)->why, BATON_WHY_RETRY);
	assert_int_equal(look(w, &behind)->why, BATON_WHY_BEHIND);
	assert_id(look(w, &behind)->ahead, id);
	assert_int_equal(counts(w, "q").delayed, 1);
	assert_int_equal(counts(w, "q").failed, 1);
	advance(w, 49);
	assert_null(claim(w, "q", 1));
	advance(w, 1);
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_id(c->batches[0].id, id);
	assert_int_equal(c->batches[0].attempt, 2);
}

static void under_pass_others_overtake_what_waits_for_its_next_attempt(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	p.on_retry = BATON_ON_RETRY_PASS;
	set_policy(w, "q", &p);
	put(w, "q", "x");
	put(w, "q", "x");
	put(w, "q", "x");
	const struct baton_work_end e = {.proof = claim(w, "q", 1)->proof,
	                                 .how = BATON_FAIL,
	                                 .delay = baton_duration_ms(100)};
	end_with(w, &e);
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_string_equal(c->batches[0].id.text, "2");
	complete(w, c);
	advance(w, 100);
	assert_string_equal(claim(w, "q", 1)->batches[0].id.text, "1");
}

static void a_delay_of_the_failure_counts_instead_of_the_policys(void **state)
{
	struct world *w = *state;
	set_attempts(w, "q", 3);
	put(w, "q", "x");
	struct baton_work_end e = {.proof = claim(w, "q", 1)->proof,
	                           .how = BATON_FAIL,
	                           .delay = baton_duration_ms(70)};
	assert_int_equal(end_with(w, &e).due.ms, START_MS + 70);
	advance(w, 70);
	e.proof = claim(w, "q", 1)->proof;
	e.delay.ns = 0;
	assert_int_equal(end_with(w, &e).due.ms, START_MS + 70);
}

static void after_the_last_attempt_it_is_dead(void **state)
{
	struct world *w = *state;
	set_attempts(w, "q", 2);
	struct baton_batch_id id = put(w, "q", "x");
	put(w, "q", "x");
	assert_int_equal(end(w, claim(w, "q", 1), BATON_FAIL).state, BATON_BATCH_RETRY);
	struct baton_work_ended answer = end(w, claim(w, "q", 1), BATON_FAIL);
	assert_int_equal(answer.state, BATON_BATCH_DEAD);
	assert_int_equal(answer.due.ms, 0);
	assert_int_equal(look(w, &id)->why, BATON_WHY_DEAD);
	assert_int_equal(look(w, &id)->batch.attempt, 2);
	assert_string_equal(claim(w, "q", 1)->batches[0].id.text, "2");
}

static void a_batch_may_have_its_own_number_of_attempts(void **state)
{
	struct world *w = *state;
	struct baton_batch b = batch_of("q", "x", NULL);
	b.retry = (struct baton_retry){.attempts = 1, .backoff = BATON_BACKOFF_NONE};
	put_batch(w, &b);
	assert_int_equal(end(w, claim(w, "q", 1), BATON_FAIL).state, BATON_BATCH_DEAD);
}

static void work_with_and_without_a_lane_has_different_attempts(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	p.retry = (struct baton_retry){.attempts = 2, .backoff = BATON_BACKOFF_NONE};
	p.retry_lane = (struct baton_retry){.attempts = 1, .backoff = BATON_BACKOFF_NONE};
	set_policy(w, "q", &p);
	put(w, "q", "x");
	put(w, "q", "");
	assert_int_equal(end(w, claim(w, "q", 1), BATON_FAIL).state, BATON_BATCH_DEAD);
	assert_int_equal(end(w, claim(w, "q", 1), BATON_FAIL).state, BATON_BATCH_RETRY);
}

static void what_is_rejected_is_dead_at_once(void **state)
{
	struct world *w = *state;
	struct baton_batch_id id = put(w, "q", "");
	assert_int_equal(end(w, claim(w, "q", 1), BATON_REJECT).state, BATON_BATCH_DEAD);
	assert_int_equal(look(w, &id)->ended_at.ms, START_MS);
	assert_int_equal(counts(w, "q").dead, 1);
	assert_int_equal(counts(w, "q").failed, 1);
}

static void a_long_error_is_cut_where_a_character_ends(void **state)
{
	struct world *w = *state;
	char *text = malloc(4100);
	memset(text, 'a', 4095);
	memcpy(text + 4095, "\xc3\xa9 end", 5);
	struct baton_batch_id id = put(w, "q", "");
	const struct baton_work_end e = {.proof = claim(w, "q", 1)->proof,
	                                 .how = BATON_REJECT,
	                                 .error = {text, 4100}};
	end_with(w, &e);
	free(text);
	assert_int_equal(look(w, &id)->error.len, 4095);
}

static void what_is_abandoned_is_back_at_its_old_place_uncounted(void **state)
{
	struct world *w = *state;
	struct baton_batch_id id = put(w, "q", "x");
	put(w, "q", "x");
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_int_equal(end(w, c, BATON_ABANDON).state, BATON_BATCH_READY);
	assert_int_equal(end(w, c, BATON_COMPLETE).err, BATON_NOT_HELD);
	c = claim(w, "q", 1);
	assert_id(c->batches[0].id, id);
	assert_int_equal(c->batches[0].attempt, 1);
	assert_int_equal(counts(w, "q").failed, 0);
}

static void what_is_snoozed_is_outside_of_its_lane_until_then(void **state)
{
	struct world *w = *state;
	struct baton_batch_id id = put(w, "q", "x");
	put(w, "q", "x");
	put(w, "q", "x");
	const struct baton_work_end e = {.proof = claim(w, "q", 1)->proof,
	                                 .how = BATON_SNOOZE,
	                                 .delay = baton_duration_ms(100)};
	struct baton_work_ended answer = end_with(w, &e);
	assert_int_equal(answer.state, BATON_BATCH_DELAYED);
	assert_int_equal(answer.due.ms, START_MS + 100);
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_string_equal(c->batches[0].id.text, "2");
	complete(w, c);
	advance(w, 100);
	c = claim(w, "q", 1);
	assert_id(c->batches[0].id, id);
	assert_int_equal(c->batches[0].attempt, 1);
}

static void a_part_that_is_given_back_waits_for_the_rest(void **state)
{
	struct world *w = *state;
	const struct baton_work_claim *c = claim_two(w);
	const struct baton_batch_id first = c->batches[0].id;
	assert_int_equal(end_ids(w, c, BATON_ABANDON, &first, 1).state, BATON_BATCH_READY);
	assert_null(claim(w, "q", 2));
	assert_int_equal(look(w, &first)->why, BATON_WHY_BEHIND);
	assert_string_equal(look(w, &first)->ahead.text, "2");
	complete(w, c);
	assert_id(claim(w, "q", 2)->batches[0].id, first);
}

static void the_answer_is_about_the_first_of_those_that_ended(void **state)
{
	struct world *w = *state;
	set_attempts(w, "q", 2);
	put_join(w, "q", "x", "");
	end(w, claim(w, "q", 1), BATON_FAIL);
	put_join(w, "q", "x", "");
	const struct baton_work_claim *c = claim(w, "q", 2);
	assert_int_equal(c->count, 2);
	struct baton_work_ended answer = end(w, c, BATON_FAIL);
	assert_int_equal(answer.state, BATON_BATCH_DEAD);
	assert_int_equal(answer.due.ms, 0);
	assert_int_equal(state_of(w, &c->batches[1].id), BATON_BATCH_RETRY);
}

static void a_dead_batch_holds_its_lane_until_it_is_revived(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	p.on_dead = BATON_ON_DEAD_HOLD;
	set_policy(w, "q", &p);
	struct baton_batch_id id = put(w, "q", "x"), behind = put(w, "q", "x");
	end(w, claim(w, "q", 1), BATON_REJECT);
	assert_null(claim(w, "q", 1));
	assert_int_equal(look(w, &behind)->why, BATON_WHY_LANE_HELD);
	assert_id(look(w, &behind)->ahead, id);
	assert_int_equal(revive(w, &id), BATON_OK);
	assert_id(claim(w, "q", 1)->batches[0].id, behind);
}

static void every_dead_batch_of_a_lane_holds_it(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	p.on_dead = BATON_ON_DEAD_HOLD;
	set_policy(w, "q", &p);
	const struct baton_work_claim *c = claim_two(w);
	end(w, c, BATON_REJECT);
	struct baton_batch_id behind = put(w, "q", "x");
	assert_id(look(w, &behind)->ahead, c->batches[0].id);
	assert_int_equal(cancel(w, &c->batches[0].id), BATON_CANCEL_REMOVED);
	assert_id(look(w, &behind)->ahead, c->batches[1].id);
	assert_null(claim(w, "q", 1));
	assert_int_equal(cancel(w, &c->batches[1].id), BATON_CANCEL_REMOVED);
	assert_string_equal(claim(w, "q", 1)->batches[0].id.text, "3");
}

static void what_waits_is_cancelled_at_once(void **state)
{
	struct world *w = *state;
	set_attempts(w, "q", 3);
	struct baton_batch_id ids[] = {put(w, "q", "a"), put_later(w, "q", "b", 1000),
	                               put(w, "q", "c"), put(w, "q", "d"),
	                               {"99"},           {"nonsense"}};
	struct baton_work_end e = {.proof = claim(w, "q", 1)->proof, .how = BATON_ABANDON};
	end_with(w, &e);
	struct baton_work_ask ask = {.queue = BATON_STR("q"), .claims = 3, .max = 1};
	const struct baton_work_claims *all = claim_many(w, &ask);
	end(w, &all->claims[0], BATON_ABANDON);
	end(w, &all->claims[1], BATON_REJECT);
	e = (struct baton_work_end){.proof = all->claims[2].proof,
	                            .how = BATON_FAIL,
	                            .delay = baton_duration_ms(100)};
	end_with(w, &e);
	enum baton_cancelled answers[6];
	assert_int_equal(baton_work_cancel(w->store, ids, 6, answers), BATON_OK);
	for (int i = 0; i < 6; i++)
		assert_int_equal(answers[i], i < 4 ? BATON_CANCEL_REMOVED : BATON_CANCEL_MISSING);
	struct baton_queue_counts now = counts(w, "q");
	assert_int_equal(now.ready + now.delayed + now.running + now.dead, 0);
	assert_int_equal(cancel(w, &ids[0]), BATON_CANCEL_MISSING);
}

static void ids_that_are_empty_unknown_or_named_twice_are_answered_each(void **state)
{
	struct world *w = *state;
	struct baton_batch_id a = put(w, "q", "x"), b = put(w, "q", "y");
	const struct baton_batch_id ids[] = {a, {""}, a, {"99"}, b};
	enum baton_cancelled cancelled[5];
	enum baton_err revived[5];
	end(w, claim(w, "q", 1), BATON_REJECT);
	assert_int_equal(baton_work_revive(w->store, ids, 5, revived), BATON_OK);
	static const enum baton_err answers[] = {BATON_OK, BATON_NOT_FOUND, BATON_INVALID,
	                                         BATON_NOT_FOUND, BATON_INVALID};
	for (int i = 0; i < 5; i++)
		assert_int_equal(revived[i], answers[i]);
	assert_int_equal(baton_work_cancel(w->store, ids, 5, cancelled), BATON_OK);
	static const enum baton_cancelled gone[] = {BATON_CANCEL_REMOVED, BATON_CANCEL_MISSING,
	                                            BATON_CANCEL_MISSING, BATON_CANCEL_MISSING,
	                                            BATON_CANCEL_REMOVED};
	for (int i = 0; i < 5; i++)
		assert_int_equal(cancelled[i], gone[i]);
	assert_int_equal(baton_work_cancel(w->store, ids, 0, cancelled), BATON_OK);
	assert_int_equal(baton_work_revive(w->store, ids, 0, revived), BATON_OK);
	assert_sound(w);
}

static void whoever_has_what_is_cancelled_is_told_and_it_does_not_come_back(void **state)
{
	struct world *w = *state;
	static const enum baton_work_how hows[] = {BATON_FAIL, BATON_REJECT, BATON_ABANDON,
	                                           BATON_SNOOZE};
	for (int i = 0; i < 4; i++) {
		struct baton_batch_id id = put(w, "q", "x");
		const struct baton_work_claim *c = claim(w, "q", 1);
		assert_false(renew(w, c, 1000).cancel);
		assert_int_equal(cancel(w, &id), BATON_CANCEL_TOLD);
		assert_int_equal(cancel(w, &id), BATON_CANCEL_TOLD);
		assert_true(look(w, &id)->cancel);
		assert_true(renew(w, c, 1000).cancel);
		assert_int_equal(end(w, c, hows[i]).state, BATON_BATCH_GONE);
		assert_int_equal(state_of(w, &id), BATON_BATCH_GONE);
	}
	assert_int_equal(counts(w, "q").failed, 0);
	assert_int_equal(counts(w, "q").dead, 0);
}

static void what_is_cancelled_can_still_be_completed(void **state)
{
	struct world *w = *state;
	struct baton_batch_id id = put(w, "q", "x");
	const struct baton_work_claim *c = claim(w, "q", 1);
	cancel(w, &id);
	assert_int_equal(end(w, c, BATON_COMPLETE).err, BATON_OK);
	assert_int_equal(counts(w, "q").done, 1);
}

static void a_cancelled_head_lets_the_next_one_go_on(void **state)
{
	struct world *w = *state;
	struct baton_batch_id id = put(w, "q", "x");
	put(w, "q", "x");
	const struct baton_work_end e = {.proof = claim(w, "q", 1)->proof,
	                                 .how = BATON_FAIL,
	                                 .delay = baton_duration_ms(1000)};
	end_with(w, &e);
	assert_null(claim(w, "q", 1));
	unsigned rings = w->rings;
	assert_int_equal(cancel(w, &id), BATON_CANCEL_REMOVED);
	assert_int_equal(w->rings, rings + 1);
	assert_string_equal(claim(w, "q", 1)->batches[0].id.text, "2");
}

static void a_revived_batch_keeps_its_name_at_the_end_of_its_lane(void **state)
{
	struct world *w = *state;
	struct baton_batch_id id = put(w, "q", "x");
	const struct baton_work_claim *first = claim(w, "q", 1);
	end(w, first, BATON_REJECT);
	put(w, "q", "x");
	assert_int_equal(revive(w, &id), BATON_OK);
	assert_int_equal(look(w, &id)->batch.seq, 3);
	assert_int_equal(look(w, &id)->error.len, 0);
	complete(w, claim(w, "q", 1));
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_id(c->batches[0].id, id);
	assert_int_equal(c->batches[0].attempt, 1);
	assert_true(c->fence.v > first->fence.v);
	complete(w, c);
	assert_int_equal(state_of(w, &id), BATON_BATCH_GONE);
}

static void what_waits_for_its_time_is_revived_at_its_old_place(void **state)
{
	struct world *w = *state;
	struct baton_batch_id id = put_later(w, "q", "x", 100000);
	put(w, "q", "x");
	assert_int_equal(revive(w, &id), BATON_OK);
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_id(c->batches[0].id, id);
	const struct baton_work_end e = {.proof = c->proof,
	                                 .how = BATON_FAIL,
	                                 .delay = baton_duration_ms(100000)};
	end_with(w, &e);
	assert_int_equal(revive(w, &id), BATON_OK);
	c = claim(w, "q", 1);
	assert_id(c->batches[0].id, id);
	assert_int_equal(c->batches[0].attempt, 2);
	assert_int_equal(revive(w, &id), BATON_INVALID);
	struct baton_batch_id none = {"99"};
	assert_int_equal(revive(w, &none), BATON_NOT_FOUND);
}

/* There is one head to a lane, also if the one that was it has the higher priority. */
static void what_is_revived_before_the_head_of_its_lane_takes_its_place(void **state)
{
	struct world *w = *state;
	struct baton_batch_id id = put_later(w, "q", "x", 100000);
	struct baton_batch urgent = batch_of("q", "x", NULL);
	urgent.priority = BATON_PRIORITY_MAX;
	put_batch(w, &urgent);
	assert_int_equal(revive(w, &id), BATON_OK);
	assert_sound(w);
	assert_id(claim(w, "q", 1)->batches[0].id, id);
	assert_null(claim(w, "q", 1));
}

static void an_end_that_frees_a_lane_is_told(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	put(w, "q", "x");
	const struct baton_work_claim *c = claim(w, "q", 1);
	unsigned rings = w->rings;
	complete(w, c);
	assert_int_equal(w->rings, rings + 1);
	complete(w, claim(w, "q", 1));
	assert_int_equal(w->rings, rings + 1);
}

static const struct CMUnitTest tests[] = {
	WORLD_TEST(what_is_completed_is_gone),
	WORLD_TEST(a_result_is_kept_exactly_as_long_as_the_queue_says),
	WORLD_TEST(a_completion_that_is_repeated_gets_the_same_answer),
	WORLD_TEST(a_repeated_completion_needs_the_token_too),
	WORLD_TEST(a_wrong_token_ends_nothing),
	WORLD_TEST(a_late_completion_is_accepted_if_nobody_took_the_work),
	WORLD_TEST(a_completion_after_a_takeover_is_refused),
	WORLD_TEST(a_part_of_a_claim_can_be_completed_and_the_rest_goes_on),
	WORLD_TEST(a_batch_that_is_not_under_the_claim_changes_nothing),
	WORLD_TEST(a_batch_that_is_named_twice_is_ended_once),
	WORLD_TEST(ends_are_each_for_themselves),
	WORLD_TEST(emitted_work_is_put_with_the_completion),
	WORLD_TEST(emitted_work_that_is_refused_keeps_the_claim),
	WORLD_TEST(emitted_work_is_put_after_what_is_completed_is_gone),
	WORLD_TEST(what_fails_waits_for_its_next_attempt_and_blocks_its_lane),
	WORLD_TEST(under_pass_others_overtake_what_waits_for_its_next_attempt),
	WORLD_TEST(a_delay_of_the_failure_counts_instead_of_the_policys),
	WORLD_TEST(after_the_last_attempt_it_is_dead),
	WORLD_TEST(a_batch_may_have_its_own_number_of_attempts),
	WORLD_TEST(work_with_and_without_a_lane_has_different_attempts),
	WORLD_TEST(what_is_rejected_is_dead_at_once),
	WORLD_TEST(a_long_error_is_cut_where_a_character_ends),
	WORLD_TEST(what_is_abandoned_is_back_at_its_old_place_uncounted),
	WORLD_TEST(what_is_snoozed_is_outside_of_its_lane_until_then),
	WORLD_TEST(a_part_that_is_given_back_waits_for_the_rest),
	WORLD_TEST(the_answer_is_about_the_first_of_those_that_ended),
	WORLD_TEST(a_dead_batch_holds_its_lane_until_it_is_revived),
	WORLD_TEST(every_dead_batch_of_a_lane_holds_it),
	WORLD_TEST(what_waits_is_cancelled_at_once),
	WORLD_TEST(ids_that_are_empty_unknown_or_named_twice_are_answered_each),
	WORLD_TEST(whoever_has_what_is_cancelled_is_told_and_it_does_not_come_back),
	WORLD_TEST(what_is_cancelled_can_still_be_completed),
	WORLD_TEST(a_cancelled_head_lets_the_next_one_go_on),
	WORLD_TEST(a_revived_batch_keeps_its_name_at_the_end_of_its_lane),
	WORLD_TEST(what_waits_for_its_time_is_revived_at_its_old_place),
	WORLD_TEST(what_is_revived_before_the_head_of_its_lane_takes_its_place),
	WORLD_TEST(an_end_that_frees_a_lane_is_told),
};

WORLD_MAIN("end", tests)
