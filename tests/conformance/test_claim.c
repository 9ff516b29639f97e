/* Claiming work that is pulled. */
#include "world.h"

static void assert_claims(const struct baton_work_claim *c, const char *first, size_t count)
{
	assert_non_null(c);
	assert_string_equal(c->batches[0].id.text, first);
	assert_int_equal(c->count, count);
}

static const struct baton_work_claims *claim_some(struct world *w, uint32_t claims, uint32_t max)
{
	const struct baton_work_ask ask = {.queue = BATON_STR("q"),
	                                   .ttl = baton_duration_ms(1000),
	                                   .claims = claims,
	                                   .max = max};
	return claim_many(w, &ask);
}

static void there_has_to_be_such_a_queue(void **state)
{
	struct world *w = *state;
	assert_int_equal(try_claim(w, "none"), BATON_NOT_FOUND);
	assert_detail("there is no queue \"none\"");
}

static void a_claim_says_what_it_is(void **state)
{
	struct world *w = *state;
	struct baton_batch_id id = put(w, "q", "lane");
	advance(w, 5);
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_claims(c, id.text, 1);
	assert_str(c->queue, "q");
	assert_str(c->lane, "lane");
	assert_int_equal(c->claimed_at.ms, START_MS + 5);
	assert_int_equal(c->expires_at.ms, START_MS + 1005);
	assert_int_equal(c->batches[0].attempt, 1);
	assert_int_equal(c->batches[0].put_at.ms, START_MS);
	assert_int_equal(c->batches[0].seq, 1);
	assert_str(c->batches[0].payloads[0], "payload");
	assert_int_equal(state_of(w, &id), BATON_BATCH_CLAIMED);
	assert_int_equal(counts(w, "q").running, 1);
	assert_int_equal(counts(w, "q").ready, 0);
}

static void the_name_of_a_claim_is_its_head_and_its_fence(void **state)
{
	struct world *w = *state;
	char name[48];
	put(w, "q", "lane");
	const struct baton_work_claim *c = claim(w, "q", 1);
	snprintf(name, sizeof name, "1-%llu", (unsigned long long)c->fence.v);
	assert_string_equal(c->proof.id, name);
}

static void the_first_claim_fixes_the_mode(void **state)
{
	struct world *w = *state;
	struct baton_lease lease = hold_lane(w, "q", "x", NULL);
	struct baton_lane_ask ask = lane_ask("q", "x", &lease);
	put_later(w, "q", "x", 100);
	assert_null(claim(w, "q", 1));
	assert_int_equal(queue_info(w, "q").policy.mode, BATON_QUEUE_OPEN);
	advance(w, 100);
	assert_non_null(claim(w, "q", 1));
	assert_int_equal(queue_info(w, "q").policy.mode, BATON_QUEUE_PULL);
	assert_int_equal(try_lane(w, &ask, NULL), BATON_BUSY);
	assert_detail("queue \"q\" is in pull mode, and this needs lane mode");
}

static void nothing_is_given_when_nothing_is_asked_for(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	assert_null(claim_some(w, 0, 1));
	assert_null(claim_some(w, 1, 0));
	assert_int_equal(queue_info(w, "q").policy.mode, BATON_QUEUE_OPEN);
	assert_int_equal(counts(w, "q").ready, 1);
}

static void a_paused_queue_gives_nothing(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	assert_int_equal(baton_queue_pause(w->store, BATON_STR("q"), true), BATON_OK);
	assert_null(claim(w, "q", 1));
	assert_int_equal(baton_queue_pause(w->store, BATON_STR("q"), false), BATON_OK);
	assert_non_null(claim(w, "q", 1));
}

static void work_comes_in_the_order_of_its_lane(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	put(w, "q", "x");
	assert_string_equal(claim(w, "q", 1)->batches[0].id.text, "1");
	assert_null(claim(w, "q", 1));
	complete(w, w->claims[0]->claims);
	assert_string_equal(claim(w, "q", 1)->batches[0].id.text, "2");
}

static void two_pullers_never_have_one_lane(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	put(w, "q", "x");
	put(w, "q", "y");
	assert_claims(claim_as(w, "q", NULL), "1", 1);
	assert_claims(claim_as(w, "q", &w->other), "3", 1);
	assert_null(claim_as(w, "q", &w->other));
}

static void work_without_a_lane_has_no_order_to_wait_for(void **state)
{
	struct world *w = *state;
	put(w, "q", "");
	put(w, "q", "");
	const struct baton_work_claims *claims = claim_some(w, 5, 5);
	assert_int_equal(claims->count, 2);
	assert_claims(&claims->claims[0], "1", 1);
	assert_claims(&claims->claims[1], "2", 1);
	assert_int_equal(claims->claims[0].lane.len, 0);
}

static void higher_priorities_come_first_and_then_what_was_put_first(void **state)
{
	struct world *w = *state;
	static const uint32_t priorities[] = {0, 9, 5, 9};
	for (int i = 0; i < 4; i++) {
		struct baton_batch b = batch_of("q", "", NULL);
		b.priority = priorities[i];
		put_batch(w, &b);
	}
	const struct baton_work_claims *claims = claim_some(w, 4, 1);
	static const char *const order[] = {"2", "4", "3", "1"};
	for (int i = 0; i < 4; i++)
		assert_string_equal(claims->claims[i].batches[0].id.text, order[i]);
}

static void the_head_has_the_priority_of_its_lane(void **state)
{
	struct world *w = *state;
	struct baton_batch b = batch_of("q", "x", NULL);
	put_batch(w, &b);
	b.priority = 9;
	put_batch(w, &b);
	b = batch_of("q", "y", NULL);
	b.priority = 5;
	put_batch(w, &b);
	assert_claims(claim(w, "q", 1), "3", 1);
	assert_claims(claim(w, "q", 1), "1", 1);
}

/* By the age of what is first in each; nobody who came later passes. */
static void a_long_lane_starves_nobody(void **state)
{
	struct world *w = *state;
	static const char *const lanes[] = {"x", "x", "y", "x", "z", "x", "y"};
	for (int i = 0; i < 7; i++)
		put(w, "q", lanes[i]);
	for (int i = 0; i < 7; i++) {
		const struct baton_work_claim *c = claim(w, "q", 1);
		assert_int_equal(c->batches[0].seq, i + 1);
		complete(w, c);
	}
	assert_null(claim(w, "q", 1));
}

static void a_join_takes_those_behind_it_that_fit(void **state)
{
	struct world *w = *state;
	put_join(w, "q", "x", "g");
	put_join(w, "q", "x", "g");
	put_join(w, "q", "x", "other");
	put_join(w, "q", "x", "g");
	const struct baton_work_claim *c = claim(w, "q", 10);
	assert_claims(c, "1", 2);
	assert_string_equal(c->batches[1].id.text, "2");
	complete(w, c);
	assert_claims(claim(w, "q", 10), "3", 1);
}

static void a_join_takes_no_more_than_max(void **state)
{
	struct world *w = *state;
	for (int i = 0; i < 4; i++)
		put_join(w, "q", "x", "");
	assert_claims(claim(w, "q", 3), "1", 3);
}

static void a_delayed_batch_does_not_split_a_join(void **state)
{
	struct world *w = *state;
	put_join(w, "q", "x", "");
	struct baton_batch b = batch_of("q", "x", NULL);
	b.slot = BATON_JOIN;
	b.delay = baton_duration_ms(100);
	put_batch(w, &b);
	put_join(w, "q", "x", "");
	const struct baton_work_claim *c = claim(w, "q", 10);
	assert_claims(c, "1", 2);
	assert_string_equal(c->batches[1].id.text, "3");
	complete(w, c);
	put_join(w, "q", "x", "");
	advance(w, 100);
	assert_claims(claim(w, "q", 10), "2", 2);
}

static void a_command_is_taken_alone_and_never_passed(void **state)
{
	struct world *w = *state;
	put_join(w, "q", "x", "");
	put_command(w, "q", "x");
	put_join(w, "q", "x", "");
	put_join(w, "q", "x", "");
	static const char *const heads[] = {"1", "2", "3"};
	static const size_t sizes[] = {1, 1, 2};
	for (int i = 0; i < 3; i++) {
		const struct baton_work_claim *c = claim(w, "q", 10);
		assert_claims(c, heads[i], sizes[i]);
		complete(w, c);
	}
}

static void an_exclusive_batch_is_taken_alone(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	put_join(w, "q", "x", "");
	assert_claims(claim(w, "q", 10), "1", 1);
}

static void fences_grow_along_a_lane(void **state)
{
	struct world *w = *state;
	uint64_t last = 0;
	for (int i = 0; i < 5; i++) {
		put(w, "q", "x");
		const struct baton_work_claim *c = claim(w, "q", 1);
		assert_true(c->fence.v > last);
		assert_true(c->fence.v < UINT64_C(1) << 53);
		last = c->fence.v;
		end(w, c, i % 2 ? BATON_COMPLETE : BATON_ABANDON);
	}
}

static void at_exactly_its_expiry_a_claim_can_be_taken(void **state)
{
	struct world *w = *state;
	struct baton_batch_id id = put(w, "q", "x");
	const struct baton_work_claim *first = claim(w, "q", 1);
	advance(w, 999);
	assert_null(claim(w, "q", 1));
	advance(w, 1);
	const struct baton_work_claim *second = claim_as(w, "q", &w->other);
	assert_claims(second, id.text, 1);
	assert_int_equal(second->batches[0].attempt, 2);
	assert_true(second->fence.v > first->fence.v);
	assert_str(look(w, &id)->error, "the claim expired");
	assert_int_equal(counts(w, "q").failed, 1);
}

static void an_expired_claim_of_a_join_is_recovered_whole(void **state)
{
	struct world *w = *state;
	put_join(w, "q", "x", "");
	put_join(w, "q", "x", "");
	assert_claims(claim(w, "q", 2), "1", 2);
	put_join(w, "q", "x", "");
	advance(w, 1000);
	const struct baton_work_claim *c = claim(w, "q", 10);
	assert_claims(c, "1", 3);
	assert_int_equal(c->batches[1].attempt, 2);
	assert_int_equal(c->batches[2].attempt, 1);
	assert_int_equal(counts(w, "q").failed, 2);
}

static void work_that_is_lost_at_its_last_attempt_is_dead(void **state)
{
	struct world *w = *state;
	set_attempts(w, "q", 2);
	struct baton_batch_id id = put(w, "q", "x");
	put(w, "q", "x");
	claim(w, "q", 1);
	advance(w, 1000);
	assert_claims(claim(w, "q", 1), id.text, 1);
	advance(w, 1000);
	assert_claims(claim(w, "q", 1), "2", 1);
	assert_int_equal(state_of(w, &id), BATON_BATCH_DEAD);
	assert_int_equal(counts(w, "q").dead, 1);
}

static void what_was_cancelled_is_gone_when_its_claim_is_lost(void **state)
{
	struct world *w = *state;
	struct baton_batch_id id = put(w, "q", "");
	claim(w, "q", 1);
	assert_int_equal(cancel(w, &id), BATON_CANCEL_TOLD);
	advance(w, 1000);
	assert_null(claim(w, "q", 1));
	assert_int_equal(state_of(w, &id), BATON_BATCH_GONE);
	assert_int_equal(counts(w, "q").failed, 0);
}

static void a_lost_claim_that_nobody_took_can_be_renewed(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	put(w, "q", "");
	const struct baton_work_claim *c = claim(w, "q", 1);
	const struct baton_work_claim *single = claim(w, "q", 1);
	advance(w, 5000);
	struct baton_work_ask none = {.queue = BATON_STR("q"), .claims = 1, .max = 0};
	assert_null(claim_many(w, &none));
	assert_int_equal(renew(w, c, 1000).err, BATON_OK);
	assert_int_equal(renew(w, single, 1000).expires_at.ms, START_MS + 6000);
	assert_null(claim(w, "q", 1));
}

static void a_claim_that_was_taken_cannot_be_renewed(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	const struct baton_work_claim *first = claim(w, "q", 1);
	advance(w, 1000);
	const struct baton_work_claim *second = claim_as(w, "q", &w->other);
	assert_int_equal(renew(w, first, 1000).err, BATON_NOT_HELD);
	assert_int_equal(renew(w, second, 1000).err, BATON_OK);
}

static void a_renewal_never_shortens(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_int_equal(renew(w, c, 10).expires_at.ms, START_MS + 1000);
	assert_int_equal(renew(w, c, 2000).expires_at.ms, START_MS + 2000);
}

static void a_stale_token_renews_nothing(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	struct baton_work_claim c = *claim(w, "q", 1);
	c.proof.token.bytes[15] ^= 1;
	assert_int_equal(renew(w, &c, 1000).err, BATON_NOT_HELD);
	c.proof.token.bytes[15] ^= 1;
	snprintf(c.proof.id, sizeof c.proof.id, "nonsense");
	assert_int_equal(renew(w, &c, 1000).err, BATON_NOT_HELD);
}

static void a_ready_batch_is_found_behind_more_than_a_thousand_claimed(void **state)
{
	struct world *w = *state;
	static struct baton_batch batches[1200];
	static struct baton_put puts[1200];
	for (int i = 0; i < 1200; i++)
		batches[i] = batch_of("q", "", NULL);
	assert_int_equal(baton_work_put(w->store, batches, 1200, puts), BATON_OK);
	assert_int_equal(claim_some(w, 1000, 1)->count, 1000);
	assert_int_equal(claim_some(w, 199, 1)->count, 199);
	assert_claims(claim(w, "q", 1), "1200", 1);
	assert_null(claim(w, "q", 1));
	advance(w, 1000);
	assert_int_equal(claim_some(w, 1000, 1)->count, 1000);
	assert_int_equal(claim_some(w, 1000, 1)->count, 200);
}

static void a_clock_that_goes_back_takes_no_live_claim(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	put(w, "q", "");
	assert_non_null(claim(w, "q", 1));
	assert_non_null(claim(w, "q", 1));
	put(w, "q", "last");
	advance(w, 1000);
	/* The two are offered, since one of them is taken, and the other one is next. */
	assert_claims(claim(w, "q", 1), "1", 1);
	step_clock(w, -600);
	assert_claims(claim(w, "q", 1), "3", 1);
	assert_null(claim(w, "q", 1));
	advance(w, 600);
	assert_claims(claim(w, "q", 1), "2", 1);
}

static void fences_do_not_go_back_with_the_clock(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	const struct baton_work_claim *first = claim(w, "q", 1);
	end(w, first, BATON_ABANDON);
	step_clock(w, -100000000);
	assert_true(claim(w, "q", 1)->fence.v > first->fence.v);
}

static struct baton_lease hold_pull(struct world *w, const struct baton_owner *owner)
{
	const struct baton_lease_ask ask = {.subject = BATON_STR("pull/q"),
	                                    .owner = owner,
	                                    .ttl = baton_duration_ms(500)};
	struct baton_lease_answer answer;
	assert_int_equal(baton_lease_claim(w->store, &ask, 1, &answer), BATON_OK);
	assert_int_equal(answer.err, BATON_OK);
	return answer.lease;
}

static void whoever_holds_the_queue_hands_out_its_work_alone(void **state)
{
	struct world *w = *state;
	put(w, "q", "");
	put(w, "q", "");
	hold_pull(w, &w->other);
	assert_int_equal(try_claim(w, "q"), BATON_BUSY);
	assert_detail("the work of queue \"q\" is handed out by \"other\"");
	assert_claims(claim_as(w, "q", &w->other), "1", 1);
	advance(w, 500);
	assert_claims(claim(w, "q", 1), "2", 1);
}

static void a_dead_holder_of_the_queue_is_in_nobodys_way(void **state)
{
	struct world *w = *state;
	put(w, "q", "");
	hold_pull(w, &w->dead);
	assert_claims(claim(w, "q", 1), "1", 1);
}

static void fences_of_claims_grow_over_every_change_of_the_queues_holder(void **state)
{
	struct world *w = *state;
	uint64_t last = 0;
	for (int i = 0; i < 6; i++) {
		put(w, "q", "x");
		if (i % 2)
			assert_true(hold_pull(w, &w->other).fence.v << 20 >= last);
		const struct baton_work_claim *c = claim_as(w, "q", i % 2 ? &w->other : NULL);
		assert_true(c->fence.v > last);
		last = c->fence.v;
		complete(w, c);
		advance(w, 500);
	}
}

/* An owner without claims is forgotten after an hour, in one of many transactions: here each of
 * them is once the one in which he claims. */
static void who_claims_after_a_long_time_is_known(void **state)
{
	struct world *w = *state;
	for (int i = 0; i < 64; i++) {
		struct baton_batch_id id = put(w, "q", "");
		advance(w, INT64_C(2) * 3600 * 1000);
		const struct baton_work_claim *c = claim(w, "q", 1);
		assert_non_null(c);
		assert_int_equal(look(w, &id)->fence.v, c->fence.v);
		assert_int_equal(complete(w, c), BATON_BATCH_GONE);
	}
	assert_sound(w);
}

static const struct CMUnitTest tests[] = {
	WORLD_TEST(who_claims_after_a_long_time_is_known),
	WORLD_TEST(there_has_to_be_such_a_queue),
	WORLD_TEST(a_claim_says_what_it_is),
	WORLD_TEST(the_name_of_a_claim_is_its_head_and_its_fence),
	WORLD_TEST(the_first_claim_fixes_the_mode),
	WORLD_TEST(nothing_is_given_when_nothing_is_asked_for),
	WORLD_TEST(a_paused_queue_gives_nothing),
	WORLD_TEST(work_comes_in_the_order_of_its_lane),
	WORLD_TEST(two_pullers_never_have_one_lane),
	WORLD_TEST(work_without_a_lane_has_no_order_to_wait_for),
	WORLD_TEST(higher_priorities_come_first_and_then_what_was_put_first),
	WORLD_TEST(the_head_has_the_priority_of_its_lane),
	WORLD_TEST(a_long_lane_starves_nobody),
	WORLD_TEST(a_join_takes_those_behind_it_that_fit),
	WORLD_TEST(a_join_takes_no_more_than_max),
	WORLD_TEST(a_delayed_batch_does_not_split_a_join),
	WORLD_TEST(a_command_is_taken_alone_and_never_passed),
	WORLD_TEST(an_exclusive_batch_is_taken_alone),
	WORLD_TEST(fences_grow_along_a_lane),
	WORLD_TEST(at_exactly_its_expiry_a_claim_can_be_taken),
	WORLD_TEST(an_expired_claim_of_a_join_is_recovered_whole),
	WORLD_TEST(work_that_is_lost_at_its_last_attempt_is_dead),
	WORLD_TEST(what_was_cancelled_is_gone_when_its_claim_is_lost),
	WORLD_TEST(a_lost_claim_that_nobody_took_can_be_renewed),
	WORLD_TEST(a_claim_that_was_taken_cannot_be_renewed),
	WORLD_TEST(a_renewal_never_shortens),
	WORLD_TEST(a_stale_token_renews_nothing),
	WORLD_TEST(a_ready_batch_is_found_behind_more_than_a_thousand_claimed),
	WORLD_TEST(a_clock_that_goes_back_takes_no_live_claim),
	WORLD_TEST(fences_do_not_go_back_with_the_clock),
	WORLD_TEST(whoever_holds_the_queue_hands_out_its_work_alone),
	WORLD_TEST(a_dead_holder_of_the_queue_is_in_nobodys_way),
	WORLD_TEST(fences_of_claims_grow_over_every_change_of_the_queues_holder),
};

WORLD_MAIN("claim", tests)
