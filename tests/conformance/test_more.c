/* More work of a lane for a run that is under way. */
#include <baton/shard.h>

#include "world.h"

static struct baton_runner *enlist(struct world *w, const char *name)
{
	struct baton_runner_ask ask = {.name = baton_str_z(name),
	                               .weight = 1,
	                               .ttl = baton_duration_s(10)};
	struct baton_runner *r = NULL;
	assert_int_equal(baton_runner_register(w->store, &ask, &r, NULL), BATON_OK);
	return r;
}

static struct baton_runner_info seen(struct world *w, const struct baton_runner *r)
{
	struct baton_runner_info info;
	size_t count;
	assert_int_equal(baton_runner_list(w->store, baton_runner_number(r) - 1, &info, 1, &count),
	                 BATON_OK);
	assert_int_equal(count, 1);
	return info;
}

/* A runner that has the only shard of the queue. */
static struct baton_runner *owner_of(struct world *w, const char *name)
{
	const struct baton_shard shard = {.queue = BATON_STR("q")};
	struct baton_shard_answer answer;
	struct baton_runner *r = enlist(w, name);
	assert_int_equal(baton_shard_take(r, &shard, 1, &answer), BATON_OK);
	assert_int_equal(answer.err, BATON_OK);
	return r;
}

static void one_shard(struct world *w)
{
	struct baton_queue_policy p = baton_queue_policy_default();
	p.shards = 1;
	p.keep = baton_duration_s(3600);
	p.retry.backoff = p.retry_lane.backoff = BATON_BACKOFF_NONE;
	set_policy(w, "q", &p);
}

/* The next claim, of at most `max` batches; NULL: there is none. */
static const struct baton_work_claim *begin(struct world *w, struct baton_runner *r, uint32_t max)
{
	const struct baton_shard shard = {BATON_STR("q"), 0, 1, max};
	struct baton_shard_answer answer;
	const struct baton_tick t = {.shards = &shard, .shard_count = 1, .owned = &answer};
	struct baton_work_claims *claims = NULL;
	assert_int_equal(baton_runner_tick(r, &t, &claims), BATON_OK);
	if (claims)
		keep_claims(w, claims);
	return claims ? &claims->claims[0] : NULL;
}

static struct baton_more_ask ask_of(const struct baton_work_claim *c, uint32_t max)
{
	return (struct baton_more_ask){.queue = c->queue,
	                               .lane = c->lane,
	                               .shard = c->shard,
	                               .proof = c->proof,
	                               .max = max};
}

static const struct baton_work_claim *more(struct world *w, struct baton_runner *r,
                                           const struct baton_work_claim *c, uint32_t max)
{
	const struct baton_more_ask ask = ask_of(c, max);
	struct baton_work_claims *claims = NULL;
	assert_int_equal(baton_runner_more(r, &ask, &claims), BATON_OK);
	if (claims)
		keep_claims(w, claims);
	assert_true(!claims || claims->count == 1);
	return claims ? &claims->claims[0] : NULL;
}

/* Ends claims of one run. */
static void end_all(struct baton_runner *r, const struct baton_work_claim *const *claims,
                    size_t count, enum baton_work_how how, struct baton_work_ended *answers)
{
	struct baton_work_end ends[4];
	struct baton_work_claims *none = NULL;
	for (size_t i = 0; i < count; i++)
		ends[i] = (struct baton_work_end){.proof = claims[i]->proof,
		                                  .how = how,
		                                  .error = BATON_STR("no"),
		                                  .tied = i > 0};
	const struct baton_tick t = {.ends = ends, .end_count = count, .ended = answers};
	assert_int_equal(baton_runner_tick(r, &t, &none), BATON_OK);
	assert_null(none);
}

static void a_run_takes_what_came_behind_it_and_all_is_completed_together(void **state)
{
	struct world *w = *state;
	struct baton_work_ended ended[2];
	one_shard(w);
	struct baton_runner *r = owner_of(w, "a");
	put_join(w, "q", "lane", NULL);
	const struct baton_work_claim *first = begin(w, r, 10);
	assert_int_equal(first->count, 1);
	assert_null(more(w, r, first, 10));
	put_join(w, "q", "lane", NULL);
	put_join(w, "q", "lane", NULL);
	put_join(w, "q", "other", NULL);
	const struct baton_work_claim *second = more(w, r, first, 10);
	assert_int_equal(second->count, 2);
	assert_true(second->batches[0].seq > first->batches[0].seq);
	assert_true(second->fence.v > first->fence.v);
	assert_int_equal(second->batches[0].attempt, 1);
	assert_string_equal(second->lane.ptr, "lane");
	assert_null(more(w, r, first, 10));
	assert_int_equal(counts(w, "q").running, 3);
	assert_sound(w);
	const struct baton_work_claim *both[] = {first, second};
	end_all(r, both, 2, BATON_COMPLETE, ended);
	assert_int_equal(ended[0].err, BATON_OK);
	assert_int_equal(ended[1].err, BATON_OK);
	assert_int_equal(counts(w, "q").done, 3);
	assert_int_equal(counts(w, "q").running, 0);
	assert_non_null(begin(w, r, 10));
	baton_runner_leave(r);
	assert_sound(w);
}

static void no_more_than_is_asked_for_is_given_and_the_rest_in_order(void **state)
{
	struct world *w = *state;
	one_shard(w);
	struct baton_runner *r = owner_of(w, "a");
	put(w, "q", "lane");
	const struct baton_work_claim *first = begin(w, r, 1);
	for (int i = 0; i < 5; i++)
		put_join(w, "q", "lane", NULL);
	const struct baton_work_claim *a = more(w, r, first, 2), *b = more(w, r, first, 2);
	const struct baton_work_claim *c = more(w, r, first, 2);
	assert_int_equal(a->count, 2);
	assert_int_equal(b->count, 2);
	assert_int_equal(c->count, 1);
	assert_true(a->batches[1].seq < b->batches[0].seq);
	assert_true(b->batches[1].seq < c->batches[0].seq);
	assert_true(a->fence.v < b->fence.v && b->fence.v < c->fence.v);
	assert_null(more(w, r, first, 2));
	baton_runner_leave(r);
	assert_int_equal(counts(w, "q").ready, 6);
	assert_sound(w);
}

static void what_is_to_be_alone_waits_for_a_run_of_its_own(void **state)
{
	struct world *w = *state;
	const struct baton_str payload = BATON_STR("p");
	struct baton_batch after = batch_of("q", "after", &payload);
	after.slot = BATON_JOIN;
	after.delivery = BATON_AFTER_COMMIT;
	one_shard(w);
	struct baton_runner *r = owner_of(w, "a");
	static const char *const lanes[] = {"alone", "command", "after", "later"};
	for (size_t i = 0; i < 4; i++) {
		put_join(w, "q", lanes[i], NULL);
		const struct baton_work_claim *run = begin(w, r, 10);
		if (i == 0)
			put(w, "q", "alone");
		else if (i == 1)
			put_command(w, "q", "command");
		else if (i == 2)
			put_batch(w, &after);
		if (i < 3)
			put_join(w, "q", lanes[i], NULL);
		else
			put_later(w, "q", "later", 1000);
		assert_null(more(w, r, run, 10));
	}
	assert_sound(w);
	baton_runner_leave(r);
}

static void groups_are_not_mixed(void **state)
{
	struct world *w = *state;
	one_shard(w);
	struct baton_runner *r = owner_of(w, "a");
	put_join(w, "q", "lane", NULL);
	const struct baton_work_claim *run = begin(w, r, 10);
	put_join(w, "q", "lane", "x");
	put_join(w, "q", "lane", "x");
	put_join(w, "q", "lane", "y");
	assert_int_equal(more(w, r, run, 10)->count, 2);
	assert_int_equal(more(w, r, run, 10)->count, 1);
	baton_runner_leave(r);
}

static void who_does_not_have_the_claim_gets_nothing(void **state)
{
	struct world *w = *state;
	struct baton_work_ended ended;
	one_shard(w);
	struct baton_runner *r = owner_of(w, "a"), *other = enlist(w, "b");
	put_join(w, "q", "lane", NULL);
	put_join(w, "q", NULL, NULL);
	const struct baton_work_claim *run = begin(w, r, 1), *alone = begin(w, r, 1);
	put_join(w, "q", "lane", NULL);
	assert_null(more(w, other, run, 10));
	assert_null(more(w, r, alone, 10));
	struct baton_work_claim fake = *run;
	fake.proof.token.bytes[0] ^= 1;
	assert_null(more(w, r, &fake, 10));
	fake = *run;
	snprintf(fake.proof.id, sizeof fake.proof.id, "nonsense");
	assert_null(more(w, r, &fake, 10));
	fake = *run;
	fake.lane = BATON_STR("elsewhere");
	assert_null(more(w, r, &fake, 10));
	assert_int_equal(baton_queue_pause(w->store, BATON_STR("q"), true), BATON_OK);
	assert_null(more(w, r, run, 10));
	assert_int_equal(baton_queue_pause(w->store, BATON_STR("q"), false), BATON_OK);
	end_all(r, &run, 1, BATON_COMPLETE, &ended);
	assert_null(more(w, r, run, 10));
	struct baton_more_ask ask = ask_of(run, 0);
	struct baton_work_claims *none = NULL;
	assert_int_equal(baton_runner_more(r, &ask, &none), BATON_INVALID);
	ask.max = 10;
	ask.shard = 1;
	assert_int_equal(baton_runner_more(r, &ask, &none), BATON_INVALID);
	baton_runner_leave(other);
	struct baton_runner_info info = seen(w, r);
	assert_int_equal(baton_runner_take_over(w->store, &info), BATON_OK);
	ask.shard = 0;
	assert_int_equal(baton_runner_more(r, &ask, &none), BATON_NOT_HELD);
	baton_runner_leave(r);
	assert_sound(w);
}

static void a_retry_that_blocks_the_lane_is_not_passed_by(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = baton_queue_policy_default();
	struct baton_work_ended ended;
	p.shards = 1;
	p.retry_lane.backoff = BATON_BACKOFF_FIXED;
	p.retry_lane.base = baton_duration_s(60);
	p.retry_lane.cap = baton_duration_s(60);
	set_policy(w, "q", &p);
	struct baton_runner *r = owner_of(w, "a");
	put_join(w, "q", "lane", NULL);
	put_join(w, "q", "lane", NULL);
	put_join(w, "q", "lane", NULL);
	const struct baton_work_claim *first = begin(w, r, 1);
	const struct baton_work_claim *second = more(w, r, first, 1);
	end_all(r, &second, 1, BATON_FAIL, &ended);
	assert_int_equal(ended.err, BATON_OK);
	assert_null(more(w, r, first, 1));
	baton_runner_leave(r);
	assert_sound(w);
}

static void after_a_loss_all_of_it_comes_again_in_order(void **state)
{
	struct world *w = *state;
	struct baton_work_ended ended[2];
	one_shard(w);
	struct baton_runner *a = owner_of(w, "a");
	put_join(w, "q", "lane", NULL);
	const struct baton_work_claim *first = begin(w, a, 1);
	put_join(w, "q", "lane", NULL);
	const struct baton_work_claim *both[] = {first, more(w, a, first, 1)};
	struct baton_runner_info info = seen(w, a);
	assert_int_equal(baton_runner_take_over(w->store, &info), BATON_OK);
	struct baton_runner *b = owner_of(w, "b");
	const struct baton_work_claim *again = begin(w, b, 10);
	assert_int_equal(again->count, 2);
	assert_int_equal(again->batches[0].attempt, 2);
	assert_int_equal(again->batches[1].attempt, 2);
	assert_true(again->batches[0].seq < again->batches[1].seq);
	assert_true(again->fence.v > both[1]->fence.v);
	struct baton_work_end late[2] = {{.proof = both[0]->proof, .how = BATON_COMPLETE},
	                                 {.proof = both[1]->proof, .how = BATON_COMPLETE}};
	assert_int_equal(baton_work_end(w->store, late, 2, ended), BATON_OK);
	assert_int_equal(ended[0].err, BATON_NOT_HELD);
	assert_int_equal(ended[1].err, BATON_NOT_HELD);
	baton_runner_leave(a);
	baton_runner_leave(b);
	assert_sound(w);
}

static void what_is_taken_and_not_known_goes_back(void **state)
{
	struct world *w = *state;
	one_shard(w);
	struct baton_runner *r = owner_of(w, "a");
	put_join(w, "q", "lane", NULL);
	const struct baton_work_claim *first = begin(w, r, 1);
	put_join(w, "q", "lane", NULL);
	more(w, r, first, 1);
	assert_int_equal(baton_runner_settle(r, &first->proof, 1), BATON_OK);
	assert_int_equal(counts(w, "q").running, 1);
	const struct baton_work_claim *again = more(w, r, first, 1);
	assert_int_equal(again->batches[0].attempt, 1);
	assert_sound(w);
	baton_runner_leave(r);
}

static void what_is_tied_ends_only_with_the_one_before_it(void **state)
{
	struct world *w = *state;
	const struct baton_str payload = BATON_STR("p"), else_ = BATON_STR("else");
	struct baton_batch known = batch_of("f", NULL, &payload);
	struct baton_batch emit = batch_of("f", NULL, &else_);
	struct baton_work_ended ended[3];
	struct baton_work_claims *none = NULL;
	known.source = emit.source = BATON_STR("once");
	put_batch(w, &known);
	one_shard(w);
	struct baton_runner *r = owner_of(w, "a");
	put_join(w, "q", "lane", NULL);
	put_join(w, "q", "next", NULL);
	const struct baton_work_claim *first = begin(w, r, 1), *next = begin(w, r, 1);
	put_join(w, "q", "lane", NULL);
	const struct baton_work_claim *second = more(w, r, first, 1);
	struct baton_work_end ends[3] = {
		{.proof = first->proof, .how = BATON_COMPLETE, .emits = &emit, .emit_count = 1},
		{.proof = second->proof, .how = BATON_COMPLETE, .tied = true},
		{.proof = next->proof, .how = BATON_COMPLETE},
	};
	const struct baton_tick t = {.ends = ends, .end_count = 3, .ended = ended};
	assert_int_equal(baton_runner_tick(r, &t, &none), BATON_OK);
	assert_int_equal(ended[0].err, BATON_CONFLICT);
	assert_int_equal(ended[1].err, BATON_CONFLICT);
	assert_int_equal(ended[2].err, BATON_OK);
	assert_int_equal(counts(w, "q").running, 2);
	assert_int_equal(counts(w, "q").done, 1);
	baton_runner_leave(r);
	assert_sound(w);
}

static const struct CMUnitTest tests[] = {
	WORLD_TEST(a_run_takes_what_came_behind_it_and_all_is_completed_together),
	WORLD_TEST(no_more_than_is_asked_for_is_given_and_the_rest_in_order),
	WORLD_TEST(what_is_to_be_alone_waits_for_a_run_of_its_own),
	WORLD_TEST(groups_are_not_mixed),
	WORLD_TEST(who_does_not_have_the_claim_gets_nothing),
	WORLD_TEST(a_retry_that_blocks_the_lane_is_not_passed_by),
	WORLD_TEST(after_a_loss_all_of_it_comes_again_in_order),
	WORLD_TEST(what_is_taken_and_not_known_goes_back),
	WORLD_TEST(what_is_tied_ends_only_with_the_one_before_it),
};

WORLD_MAIN("more", tests)
