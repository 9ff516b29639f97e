/* Claiming work of one lane, by the holder of its lease. */
#include <inttypes.h>

#include <baton/shard.h>

#include "support/soak.h"
#include "world.h"

static struct baton_lane_ask at_checkpoint(const struct baton_lease *lease)
{
	struct baton_lane_ask ask = lane_ask("q", "x", lease);
	ask.at = BATON_CHECKPOINT;
	return ask;
}

static void force(struct world *w, const char *subject)
{
	const struct baton_str name = baton_str_z(subject);
	struct baton_lease_answer answer;
	assert_int_equal(baton_lease_force(w->store, &name, 1, &answer), BATON_OK);
	assert_int_equal(answer.err, BATON_OK);
}

static void the_subject_of_a_lane_is_made_of_its_names(void **state)
{
	(void)state;
	char text[BATON_LEASE_SUBJECT_MAX + 1];
	assert_int_equal(baton_lane_subject(BATON_STR("q"), BATON_STR("a/b"), text), BATON_OK);
	assert_string_equal(text, "lane/q/a/b");
	assert_int_equal(baton_lane_subject(BATON_STR("q/r"), BATON_STR("a"), text), BATON_INVALID);
	assert_detail("the queue's name is \"q/r\": it may not have a '/'");
	assert_int_equal(baton_lane_subject(BATON_STR("q"), BATON_STR(""), text), BATON_INVALID);
}

static void the_holder_of_a_lane_gets_its_head(void **state)
{
	struct world *w = *state;
	struct baton_lease lease = hold_lane(w, "q", "x", NULL);
	struct baton_lane_ask ask = lane_ask("q", "x", &lease);
	struct baton_batch_id id = put(w, "q", "x");
	put(w, "q", "y");
	const struct baton_work_claim *c = claim_lane(w, &ask);
	assert_id(c->batches[0].id, id);
	assert_int_equal(c->expires_at.ms, START_MS + 1000);
	assert_true(c->fence.v >> 20 == lease.fence.v);
	assert_int_equal(queue_info(w, "q").policy.mode, BATON_QUEUE_LANE);
	assert_int_equal(try_claim(w, "q"), BATON_BUSY);
	assert_detail("queue \"q\" is in lane mode, and this needs pull mode");
}

static void an_empty_lane_gives_nothing_and_leaves_the_mode_open(void **state)
{
	struct world *w = *state;
	struct baton_lease lease = hold_lane(w, "q", "x", NULL);
	struct baton_lane_ask ask = lane_ask("q", "x", &lease);
	assert_int_equal(try_lane(w, &ask, NULL), BATON_NOT_FOUND);
	put(w, "q", "y");
	assert_null(claim_lane(w, &ask));
	assert_int_equal(queue_info(w, "q").policy.mode, BATON_QUEUE_OPEN);
}

static void without_the_lease_of_that_lane_nothing_is_given(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	put(w, "q", "y");
	struct baton_lease lease = hold_lane(w, "q", "y", NULL);
	struct baton_lane_ask ask = lane_ask("q", "x", &lease);
	assert_int_equal(try_lane(w, &ask, NULL), BATON_NOT_HELD);
	ask.lane = BATON_STR("y");
	lease.token.bytes[3] ^= 1;
	assert_int_equal(try_lane(w, &ask, NULL), BATON_NOT_HELD);
	lease.token.bytes[3] ^= 1;
	lease.fence.v--;
	assert_int_equal(try_lane(w, &ask, NULL), BATON_NOT_HELD);
	lease.fence.v++;
	advance(w, 9999);
	assert_int_equal(try_lane(w, &ask, NULL), BATON_OK);
	advance(w, 1);
	assert_int_equal(try_lane(w, &ask, NULL), BATON_NOT_HELD);
}

static void at_a_checkpoint_only_what_is_for_now_is_given(void **state)
{
	struct world *w = *state;
	struct baton_lease lease = hold_lane(w, "q", "x", NULL);
	struct baton_lane_ask ask = at_checkpoint(&lease);
	struct baton_batch b = batch_of("q", "x", NULL);
	put_batch(w, &b);
	b.delivery = BATON_AFTER_COMMIT;
	put_batch(w, &b);
	const struct baton_work_claim *c = claim_lane(w, &ask);
	assert_string_equal(c->batches[0].id.text, "1");
	assert_null(claim_lane(w, &ask));
	complete(w, c);
	assert_null(claim_lane(w, &ask));
	ask.at = BATON_IDLE;
	assert_string_equal(claim_lane(w, &ask)->batches[0].id.text, "2");
}

static void at_a_checkpoint_the_claims_of_the_same_lease_go_on(void **state)
{
	struct world *w = *state;
	struct baton_lease lease = hold_lane(w, "q", "x", NULL);
	struct baton_lane_ask ask = at_checkpoint(&lease);
	put(w, "q", "x");
	put(w, "q", "x");
	const struct baton_work_claim *first = claim_lane(w, &ask), *second = claim_lane(w, &ask);
	assert_string_equal(second->batches[0].id.text, "2");
	assert_true(second->fence.v > first->fence.v);
	assert_int_equal(renew(w, first, 1000).err, BATON_OK);
	complete(w, second);
	complete(w, first);
}

static void what_was_given_back_can_be_taken_again_at_a_checkpoint(void **state)
{
	struct world *w = *state;
	struct baton_lease lease = hold_lane(w, "q", "x", NULL);
	struct baton_lane_ask ask = at_checkpoint(&lease);
	put_join(w, "q", "x", "");
	put_join(w, "q", "x", "");
	const struct baton_work_claim *first = claim_lane(w, &ask);
	assert_int_equal(first->count, 2);
	const struct baton_work_end e = {.proof = first->proof,
	                                 .how = BATON_ABANDON,
	                                 .ids = &first->batches[0].id,
	                                 .count = 1};
	assert_int_equal(end_with(w, &e).err, BATON_OK);
	const struct baton_work_claim *again = claim_lane(w, &ask);
	assert_string_equal(again->batches[0].id.text, "1");
	assert_string_not_equal(again->proof.id, first->proof.id);
	complete(w, first);
	complete(w, again);
	assert_int_equal(counts(w, "q").done, 2);
}

static void an_idle_holder_has_nothing_else_running(void **state)
{
	struct world *w = *state;
	struct baton_lease lease = hold_lane(w, "q", "x", NULL);
	struct baton_lane_ask ask = lane_ask("q", "x", &lease);
	put(w, "q", "x");
	put(w, "q", "x");
	const struct baton_work_claim *c = claim_lane(w, &ask);
	assert_int_equal(try_lane(w, &ask, NULL), BATON_YIELD);
	advance(w, 5000);
	assert_int_equal(try_lane(w, &ask, NULL), BATON_YIELD);
	complete(w, c);
	assert_string_equal(claim_lane(w, &ask)->batches[0].id.text, "2");
}

/* It is renewed, ended or given back; so that nobody does it twice who was only slow. */
static void nobody_takes_back_its_own_expired_claim(void **state)
{
	struct world *w = *state;
	struct baton_lease lease = hold_lane(w, "q", "x", NULL);
	struct baton_lane_ask ask = lane_ask("q", "x", &lease);
	put(w, "q", "x");
	const struct baton_work_claim *first = claim_lane(w, &ask), *again = NULL;
	advance(w, 2000);
	ask.at = BATON_CHECKPOINT;
	assert_int_equal(try_lane(w, &ask, &again), BATON_OK);
	assert_null(again);
	ask.ids = &first->batches[0].id;
	ask.count = 1;
	for (int pass = 0; pass < 2; pass++) {
		ask.pass = pass;
		try_lane(w, &ask, &again);
		assert_null(again);
	}
	assert_int_equal(look(w, &first->batches[0].id)->batch.attempt, 1);
	assert_int_equal(renew(w, first, 1000).err, BATON_OK);
	complete(w, first);
}

static void a_live_claim_of_an_earlier_lease_is_in_the_way(void **state)
{
	struct world *w = *state;
	struct baton_lease lease = hold_lane(w, "q", "x", &w->other);
	struct baton_lane_ask ask = lane_ask("q", "x", &lease);
	put(w, "q", "x");
	const struct baton_work_claim *first = claim_lane(w, &ask);
	force(w, "lane/q/x");
	lease = hold_lane(w, "q", "x", NULL);
	assert_int_equal(try_lane(w, &ask, NULL), BATON_YIELD);
	ask.at = BATON_CHECKPOINT;
	assert_int_equal(try_lane(w, &ask, NULL), BATON_YIELD);
	advance(w, 1000);
	const struct baton_work_claim *second = claim_lane(w, &ask);
	assert_string_equal(second->batches[0].id.text, "1");
	assert_int_equal(second->batches[0].attempt, 2);
	assert_str(look(w, &second->batches[0].id)->error, "the claim expired");
	assert_true(second->fence.v > first->fence.v);
	assert_int_equal(end(w, first, BATON_COMPLETE).err, BATON_NOT_HELD);
}

static void the_claim_of_a_dead_owner_is_recovered_at_once(void **state)
{
	struct world *w = *state;
	struct baton_lease lease = hold_lane(w, "q", "x", &w->dead);
	struct baton_lane_ask ask = lane_ask("q", "x", &lease);
	struct baton_batch_id id = put(w, "q", "x");
	claim_lane(w, &ask);
	lease = hold_lane(w, "q", "x", NULL);
	const struct baton_work_claim *c = claim_lane(w, &ask);
	assert_id(c->batches[0].id, id);
	assert_int_equal(c->batches[0].attempt, 2);
	assert_str(look(w, &id)->error, "its owner died");
}

static void who_yields_changes_nothing(void **state)
{
	struct world *w = *state;
	struct baton_lease lease = hold_lane(w, "q", "x", &w->other);
	struct baton_lane_ask ask = at_checkpoint(&lease);
	put(w, "q", "x");
	put(w, "q", "x");
	struct baton_batch_id later = put_later(w, "q", "x", 500);
	const struct baton_work_claim *short_one = claim_lane(w, &ask);
	ask.ttl = baton_duration_ms(5000);
	claim_lane(w, &ask);
	force(w, "lane/q/x");
	lease = hold_lane(w, "q", "x", NULL);
	advance(w, 1000);
	assert_int_equal(try_lane(w, &ask, NULL), BATON_YIELD);
	assert_int_equal(state_of(w, &later), BATON_BATCH_DELAYED);
	assert_int_equal(counts(w, "q").failed, 0);
	assert_int_equal(counts(w, "q").running, 2);
	complete(w, short_one);
}

static void exact_ids_are_had_together_or_not_at_all(void **state)
{
	struct world *w = *state;
	struct baton_lease lease = hold_lane(w, "q", "x", NULL);
	struct baton_lane_ask ask = lane_ask("q", "x", &lease);
	struct baton_batch_id ids[] = {put_join(w, "q", "x", ""), put_join(w, "q", "x", "")};
	struct baton_batch_id reversed[] = {ids[1], ids[0]};
	struct baton_batch_id twice[] = {ids[0], ids[0]};
	struct baton_batch_id elsewhere[] = {ids[0], put(w, "q", "y")};
	struct baton_batch_id unknown[] = {ids[0], {"99"}};
	const struct baton_batch_id *refused[] = {twice, elsewhere, unknown};
	for (int i = 0; i < 3; i++) {
		ask.ids = refused[i];
		ask.count = 2;
		assert_int_equal(try_lane(w, &ask, NULL), BATON_YIELD);
	}
	ask.ids = ids;
	ask.count = 0;
	assert_int_equal(try_lane(w, &ask, NULL), BATON_YIELD);
	ask.count = 2;
	ask.max = 1;
	assert_int_equal(try_lane(w, &ask, NULL), BATON_YIELD);
	ask.max = 0;
	assert_null(claim_lane(w, &ask));
	assert_int_equal(counts(w, "q").running, 0);
	ask.max = 2;
	ask.ids = reversed;
	const struct baton_work_claim *c = claim_lane(w, &ask);
	assert_int_equal(c->count, 2);
	assert_id(c->batches[0].id, ids[0]);
}

static void exact_ids_pass_others_only_when_that_is_asked_for(void **state)
{
	struct world *w = *state;
	struct baton_lease lease = hold_lane(w, "q", "x", NULL);
	struct baton_lane_ask ask = lane_ask("q", "x", &lease);
	put(w, "q", "x");
	struct baton_batch_id wanted = put(w, "q", "x");
	put_command(w, "q", "x");
	struct baton_batch_id behind_command = put(w, "q", "x");
	ask.ids = &wanted;
	ask.count = 1;
	assert_int_equal(try_lane(w, &ask, NULL), BATON_YIELD);
	ask.pass = true;
	const struct baton_work_claim *c = claim_lane(w, &ask);
	assert_id(c->batches[0].id, wanted);
	ask.at = BATON_CHECKPOINT;
	ask.ids = &behind_command;
	assert_int_equal(try_lane(w, &ask, NULL), BATON_YIELD);
	complete(w, c);
	ask.ids = NULL;
	assert_string_equal(claim_lane(w, &ask)->batches[0].id.text, "1");
}

static void what_waits_for_its_next_attempt_blocks_the_lane_here_too(void **state)
{
	struct world *w = *state;
	struct baton_lease lease = hold_lane(w, "q", "x", NULL);
	struct baton_lane_ask ask = lane_ask("q", "x", &lease);
	put(w, "q", "x");
	struct baton_batch_id behind = put(w, "q", "x");
	const struct baton_work_end e = {.proof = claim_lane(w, &ask)->proof,
	                                 .how = BATON_FAIL,
	                                 .delay = baton_duration_ms(100)};
	end_with(w, &e);
	assert_null(claim_lane(w, &ask));
	ask.ids = &behind;
	ask.count = 1;
	ask.pass = true;
	assert_int_equal(try_lane(w, &ask, NULL), BATON_YIELD);
	ask.ids = NULL;
	advance(w, 100);
	assert_string_equal(claim_lane(w, &ask)->batches[0].id.text, "1");
}

static void a_lane_that_a_dead_batch_holds_gives_nothing(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	p.on_dead = BATON_ON_DEAD_HOLD;
	set_policy(w, "q", &p);
	struct baton_lease lease = hold_lane(w, "q", "x", NULL);
	struct baton_lane_ask ask = lane_ask("q", "x", &lease);
	put(w, "q", "x");
	struct baton_batch_id behind = put(w, "q", "x");
	end(w, claim_lane(w, &ask), BATON_REJECT);
	assert_null(claim_lane(w, &ask));
	ask.ids = &behind;
	ask.count = 1;
	assert_int_equal(try_lane(w, &ask, NULL), BATON_YIELD);
}

static void a_paused_queue_gives_nothing_to_a_lane_either(void **state)
{
	struct world *w = *state;
	struct baton_lease lease = hold_lane(w, "q", "x", NULL);
	struct baton_lane_ask ask = lane_ask("q", "x", &lease);
	put(w, "q", "x");
	baton_queue_pause(w->store, BATON_STR("q"), true);
	assert_null(claim_lane(w, &ask));
}

static void claims_of_one_lease_after_the_other_have_growing_fences(void **state)
{
	struct world *w = *state;
	uint64_t last = 0;
	for (int i = 0; i < 4; i++) {
		struct baton_lease lease = hold_lane(w, "q", "x", NULL);
		struct baton_lane_ask ask = lane_ask("q", "x", &lease);
		put(w, "q", "x");
		const struct baton_work_claim *c = claim_lane(w, &ask);
		assert_true(c->fence.v > last);
		last = c->fence.v;
		complete(w, c);
		force(w, "lane/q/x");
	}
}

static void fences_grow_along_a_lane_when_a_batch_brings_a_higher_one(void **state)
{
	struct world *w = *state;
	for (int i = 0; i < 3; i++)
		put(w, "q", "x");
	uint64_t pulled = 0;
	for (int i = 0; i < 9; i++) {
		const struct baton_work_claim *c = claim(w, "q", 1);
		pulled = c->fence.v;
		end(w, c, BATON_ABANDON);
	}
	struct baton_queue_policy p = policy(w, "q");
	p.mode = BATON_QUEUE_LANE;
	set_policy(w, "q", &p);
	struct baton_lease lease = hold_lane(w, "q", "x", NULL);
	struct baton_lane_ask ask = at_checkpoint(&lease);
	const struct baton_work_claim *first = claim_lane(w, &ask), *second = claim_lane(w, &ask);
	assert_true(first->fence.v > pulled);
	assert_true(second->fence.v > first->fence.v);
}

/* The fence of one claim of lane x, whose batch is put for it. Before it `grants` others have held
 * what such claims need. */
typedef uint64_t claimant(struct world *w, int grants);

static void set_mode(struct world *w, enum baton_queue_mode mode)
{
	struct baton_queue_policy p = policy(w, "q");
	p.mode = mode;
	p.shards = 1;
	set_policy(w, "q", &p);
}

static uint64_t pulled(struct world *w, int grants)
{
	for (int i = 0; i < grants; i++) {
		struct baton_lease_ask ask = {.subject = BATON_STR("pull/q")};
		struct baton_lease_answer answer;
		assert_int_equal(baton_lease_claim(w->store, &ask, 1, &answer), BATON_OK);
		assert_int_equal(answer.err, BATON_OK);
		force(w, "pull/q");
	}
	put(w, "q", "x");
	const struct baton_work_claim *c = claim(w, "q", 1);
	complete(w, c);
	return c->fence.v;
}

static uint64_t taken_by_lane(struct world *w, int grants)
{
	for (int i = 0; i < grants; i++) {
		hold_lane(w, "q", "x", NULL);
		force(w, "lane/q/x");
	}
	struct baton_lease lease = hold_lane(w, "q", "x", NULL);
	struct baton_lane_ask ask = lane_ask("q", "x", &lease);
	put(w, "q", "x");
	const struct baton_work_claim *c = claim_lane(w, &ask);
	complete(w, c);
	force(w, "lane/q/x");
	return c->fence.v;
}

static uint64_t ticked(struct world *w, int grants)
{
	struct baton_runner_ask ask = {.name = BATON_STR("r"),
	                               .weight = 1,
	                               .ttl = baton_duration_s(10)};
	struct baton_runner *r = NULL;
	assert_int_equal(baton_runner_register(w->store, &ask, &r, NULL), BATON_OK);
	struct baton_shard shard = {BATON_STR("q"), 0, 1, 1};
	struct baton_shard_answer owned;
	struct baton_tick t = {.shards = &shard, .shard_count = 1, .owned = &owned};
	struct baton_work_claims *claims = NULL;
	for (int i = 0; i < grants; i++) {
		assert_int_equal(baton_shard_take(r, &shard, 1, &owned), BATON_OK);
		assert_int_equal(baton_shard_give(r, &shard, 1, &owned), BATON_OK);
	}
	assert_int_equal(baton_shard_take(r, &shard, 1, &owned), BATON_OK);
	put(w, "q", "x");
	assert_int_equal(baton_runner_tick(r, &t, &claims), BATON_OK);
	assert_non_null(claims);
	keep_claims(w, claims);
	complete(w, &claims->claims[0]);
	baton_runner_leave(r);
	return claims->claims[0].fence.v;
}

static const struct {
	enum baton_queue_mode mode;
	claimant *claim;
} modes[] = {{BATON_QUEUE_PULL, pulled},
             {BATON_QUEUE_LANE, taken_by_lane},
             {BATON_QUEUE_RUNNER, ticked}};

/* Each mode is by far ahead of the other in turn, before one and after the other. */
static void walk_modes(struct world *w, int from, int to, bool through_open)
{
	uint64_t last = 0;
	for (int i = 0; i < 4; i++) {
		int at = i % 2 == 0 ? from : to;
		if (through_open)
			set_mode(w, BATON_QUEUE_OPEN);
		set_mode(w, modes[at].mode);
		for (int n = 0; n < 3; n++) {
			uint64_t fence = modes[at].claim(w, n == 1 && i < 2 ? 8 * (2 - i) : 0);
			if (fence <= last)
				fail_msg("mode %d, change %d, claim %d: %" PRIu64
				         " comes after %" PRIu64,
				         (int)modes[at].mode, i, n, fence, last);
			last = fence;
		}
	}
}

static void fences_grow_along_a_lane_when_the_mode_of_its_queue_changes(void **state)
{
	/* In a server one of the two ways, but for long runs. */
	bool both = !world_is_served() || soak_scale(0, 1) == 1;
	for (int from = 0; from < 3; from++) {
		for (int to = 0; to < 3; to++) {
			for (int open = 0; open < 2 && from != to; open++) {
				if (!both && open != (from + to) % 2)
					continue;
				world_teardown(state);
				world_setup(state);
				walk_modes(*state, from, to, open == 1);
				assert_sound(*state);
			}
		}
	}
}

static void a_lease_that_outlives_the_mode_of_its_queue_gives_higher_fences_after_it(void **state)
{
	struct world *w = *state;
	struct baton_lease lease = hold_lane(w, "q", "x", NULL);
	struct baton_lane_ask ask = lane_ask("q", "x", &lease);
	uint64_t last = 0;
	set_mode(w, BATON_QUEUE_OPEN);
	for (int i = 0; i < 4; i++) {
		set_mode(w, BATON_QUEUE_LANE);
		put(w, "q", "x");
		const struct baton_work_claim *c = claim_lane(w, &ask);
		assert_true(c->fence.v > last);
		last = c->fence.v;
		complete(w, c);
		set_mode(w, BATON_QUEUE_PULL);
		uint64_t fence = pulled(w, i);
		assert_true(fence > last);
		last = fence;
	}
}

static void a_revived_batch_brings_its_last_fence_with_it(void **state)
{
	struct world *w = *state;
	struct baton_batch_id id = put(w, "q", "x");
	const struct baton_work_claim *c = claim(w, "q", 1);
	for (int i = 0; i < 9; i++) {
		end(w, c, BATON_ABANDON);
		c = claim(w, "q", 1);
	}
	end(w, c, BATON_REJECT);
	assert_int_equal(revive(w, &id), BATON_OK);
	struct baton_queue_policy p = policy(w, "q");
	p.mode = BATON_QUEUE_LANE;
	set_policy(w, "q", &p);
	struct baton_lease lease = hold_lane(w, "q", "x", NULL);
	struct baton_lane_ask ask = lane_ask("q", "x", &lease);
	assert_true(claim_lane(w, &ask)->fence.v > c->fence.v);
}

static const struct CMUnitTest tests[] = {
	WORLD_TEST(the_subject_of_a_lane_is_made_of_its_names),
	WORLD_TEST(the_holder_of_a_lane_gets_its_head),
	WORLD_TEST(an_empty_lane_gives_nothing_and_leaves_the_mode_open),
	WORLD_TEST(without_the_lease_of_that_lane_nothing_is_given),
	WORLD_TEST(at_a_checkpoint_only_what_is_for_now_is_given),
	WORLD_TEST(at_a_checkpoint_the_claims_of_the_same_lease_go_on),
	WORLD_TEST(what_was_given_back_can_be_taken_again_at_a_checkpoint),
	WORLD_TEST(an_idle_holder_has_nothing_else_running),
	WORLD_TEST(nobody_takes_back_its_own_expired_claim),
	WORLD_TEST(a_live_claim_of_an_earlier_lease_is_in_the_way),
	WORLD_TEST(the_claim_of_a_dead_owner_is_recovered_at_once),
	WORLD_TEST(who_yields_changes_nothing),
	WORLD_TEST(exact_ids_are_had_together_or_not_at_all),
	WORLD_TEST(exact_ids_pass_others_only_when_that_is_asked_for),
	WORLD_TEST(what_waits_for_its_next_attempt_blocks_the_lane_here_too),
	WORLD_TEST(a_lane_that_a_dead_batch_holds_gives_nothing),
	WORLD_TEST(a_paused_queue_gives_nothing_to_a_lane_either),
	WORLD_TEST(claims_of_one_lease_after_the_other_have_growing_fences),
	WORLD_TEST(fences_grow_along_a_lane_when_a_batch_brings_a_higher_one),
	WORLD_TEST(fences_grow_along_a_lane_when_the_mode_of_its_queue_changes),
	WORLD_TEST(a_lease_that_outlives_the_mode_of_its_queue_gives_higher_fences_after_it),
	WORLD_TEST(a_revived_batch_brings_its_last_fence_with_it),
};

WORLD_MAIN("lane", tests)
