/* What ends and what is claimed in one call. */
#include <pthread.h>

#include "world.h"

struct next {
	enum baton_err err;
	struct baton_work_ended ended;
	const struct baton_work_claim *claim; /* NULL: nothing was claimed */
};

static struct next next_with(struct world *w, const struct baton_work_end *end, const char *queue)
{
	const struct baton_work_ask ask = {.queue = baton_str_z(queue),
	                                   .ttl = baton_duration_ms(1000),
	                                   .claims = 1,
	                                   .max = 1};
	struct baton_work_claims *claims = NULL;
	struct next next = {.claim = NULL};
	next.err = baton_work_next(w->store, end, 1, &next.ended, &ask, &claims);
	if (claims) {
		assert_int_equal(next.err, BATON_OK);
		assert_int_equal(claims->count, 1);
		next.claim = &claims->claims[0];
		keep_claims(w, claims);
	}
	return next;
}

static struct next next(struct world *w, const struct baton_work_claim *c, const char *queue)
{
	const struct baton_work_end end = {.proof = c->proof, .how = BATON_COMPLETE};
	return next_with(w, &end, queue);
}

static void one_job_is_completed_and_the_next_one_claimed(void **state)
{
	struct world *w = *state;
	struct baton_batch_id first = put(w, "q", ""), second = put(w, "q", "");
	struct next n = next(w, claim(w, "q", 1), "q");
	assert_int_equal(n.err, BATON_OK);
	assert_int_equal(n.ended.err, BATON_OK);
	assert_int_equal(n.ended.state, BATON_BATCH_GONE);
	assert_id(n.claim->batches[0].id, second);
	assert_int_equal(state_of(w, &first), BATON_BATCH_GONE);
	assert_int_equal(counts(w, "q").done, 1);
	assert_int_equal(counts(w, "q").running, 1);
	n = next(w, n.claim, "q");
	assert_int_equal(n.err, BATON_OK);
	assert_int_equal(n.ended.err, BATON_OK);
	assert_null(n.claim);
	assert_int_equal(counts(w, "q").done, 2);
	assert_int_equal(counts(w, "q").running, 0);
}

static void the_next_of_the_same_lane_can_be_had(void **state)
{
	struct world *w = *state;
	put(w, "q", "x");
	struct baton_batch_id second = put(w, "q", "x");
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_null(claim(w, "q", 1));
	struct next n = next(w, c, "q");
	assert_id(n.claim->batches[0].id, second);
	assert_true(n.claim->fence.v > c->fence.v);
}

static void the_next_of_the_same_key_can_be_had(void **state)
{
	static const struct baton_str payload = BATON_STR("x");
	struct world *w = *state;
	struct baton_batch b = batch_of("q", "", &payload);
	b.key = BATON_STR("k");
	put_batch(w, &b);
	struct baton_batch_id second = put_batch(w, &b);
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_null(claim(w, "q", 1));
	assert_id(next(w, c, "q").claim->batches[0].id, second);
}

static void what_is_emitted_can_be_claimed_at_once(void **state)
{
	static const struct baton_str payload = BATON_STR("follows");
	struct world *w = *state;
	put(w, "q", "");
	const struct baton_batch emit = batch_of("r", "", &payload);
	const struct baton_work_end end = {.proof = claim(w, "q", 1)->proof,
	                                   .how = BATON_COMPLETE,
	                                   .emits = &emit,
	                                   .emit_count = 1};
	struct next n = next_with(w, &end, "r");
	assert_int_equal(n.ended.err, BATON_OK);
	assert_str(n.claim->batches[0].payloads[0], "follows");
}

static void what_is_given_back_can_be_had_again(void **state)
{
	struct world *w = *state;
	struct baton_batch_id id = put(w, "q", "");
	const struct baton_work_claim *c = claim(w, "q", 1);
	const struct baton_work_end end = {.proof = c->proof, .how = BATON_ABANDON};
	struct next n = next_with(w, &end, "q");
	assert_int_equal(n.ended.state, BATON_BATCH_READY);
	assert_id(n.claim->batches[0].id, id);
	assert_true(n.claim->fence.v > c->fence.v);
}

/* Who was superseded is told so, and gets what is there. */
static void a_claim_that_was_lost_does_not_keep_one_from_the_next(void **state)
{
	struct world *w = *state;
	put(w, "q", "");
	const struct baton_work_claim *lost = claim(w, "q", 1);
	advance(w, 1000);
	const struct baton_work_claim *taken = claim_as(w, "q", &w->other);
	struct baton_batch_id second = put(w, "q", "");
	struct next n = next(w, lost, "q");
	assert_int_equal(n.err, BATON_OK);
	assert_int_equal(n.ended.err, BATON_NOT_HELD);
	assert_id(n.claim->batches[0].id, second);
	assert_int_equal(renew(w, taken, 1000).err, BATON_OK);
}

static void what_ends_has_ended_though_nothing_can_be_claimed(void **state)
{
	struct world *w = *state;
	for (int i = 0; i < 3; i++)
		put(w, "q", "");
	struct next n = next(w, claim(w, "q", 1), "missing");
	assert_int_equal(n.err, BATON_NOT_FOUND);
	assert_detail("missing");
	assert_int_equal(n.ended.err, BATON_OK);
	assert_int_equal(counts(w, "q").done, 1);
	struct baton_queue_policy p = policy(w, "runners");
	p.mode = BATON_QUEUE_RUNNER;
	set_policy(w, "runners", &p);
	n = next(w, claim(w, "q", 1), "runners");
	assert_int_equal(n.err, BATON_BUSY);
	assert_detail("runners");
	assert_int_equal(n.ended.err, BATON_OK);
	assert_int_equal(counts(w, "q").done, 2);
	const struct baton_work_claim *last = claim(w, "q", 1);
	put(w, "q", "");
	p = policy(w, "q");
	p.paused = true;
	set_policy(w, "q", &p);
	n = next(w, last, "q");
	assert_int_equal(n.err, BATON_OK);
	assert_null(n.claim);
	assert_int_equal(counts(w, "q").done, 3);
	assert_int_equal(counts(w, "q").ready, 1);
}

/* Nobody may pull from a queue whose keys count for each host. */
static void what_ends_has_ended_though_nobody_may_claim_there(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "hosts");
	p.key_scope = BATON_KEY_SCOPE_HOST;
	p.hold_on_retry = BATON_HOLD_GIVE_UP;
	set_policy(w, "hosts", &p);
	put(w, "q", "");
	struct next n = next(w, claim(w, "q", 1), "hosts");
	assert_int_equal(n.err, BATON_INVALID);
	assert_detail("hosts");
	assert_int_equal(n.ended.err, BATON_OK);
	assert_int_equal(n.ended.state, BATON_BATCH_GONE);
	assert_int_equal(counts(w, "q").done, 1);
}

static void what_is_not_allowed_changes_nothing(void **state)
{
	struct world *w = *state;
	put(w, "q", "");
	put(w, "q", "");
	const struct baton_work_claim *c = claim(w, "q", 1);
	struct next n = next(w, c, "");
	assert_int_equal(n.err, BATON_INVALID);
	assert_int_equal(n.ended.err, BATON_INVALID);
	const struct baton_work_end end = {.proof = c->proof,
	                                   .how = BATON_FAIL,
	                                   .result = BATON_STR("no")};
	n = next_with(w, &end, "q");
	assert_int_equal(n.err, BATON_INVALID);
	assert_detail("only what is completed");
	assert_int_equal(n.ended.err, BATON_INVALID);
	assert_int_equal(counts(w, "q").running, 1);
	assert_int_equal(counts(w, "q").ready, 1);
}

static void without_an_end_it_is_a_claim(void **state)
{
	struct world *w = *state;
	struct baton_batch_id id = put(w, "q", "");
	const struct baton_work_ask ask = {.queue = BATON_STR("q"), .claims = 1, .max = 1};
	struct baton_work_claims *claims = NULL;
	assert_int_equal(baton_work_next(w->store, NULL, 0, NULL, &ask, &claims), BATON_OK);
	assert_non_null(claims);
	assert_id(claims->claims[0].batches[0].id, id);
	keep_claims(w, claims);
}

#define WORKERS 8
#define EACH 40

struct worker {
	struct world *w;
	pthread_t thread;
	uint32_t wrong;
};

/* Lives of jobs, one after the other, each completed as the next is claimed; one more call in vain
 * at the end. */
static void *work(void *arg)
{
	struct worker *worker = arg;
	struct baton_store *store = worker->w->store;
	const struct baton_str payload = BATON_STR("x");
	const struct baton_batch batch = {.queue = BATON_STR("q"),
	                                  .payloads = &payload,
	                                  .count = 1};
	const struct baton_work_ask ask = {.queue = BATON_STR("q"), .claims = 1, .max = 1};
	struct baton_work_ask none = ask;
	struct baton_work_claims *claims = NULL;
	none.max = 0;
	for (int i = 0; i <= EACH; i++) {
		struct baton_work_claims *before = claims;
		struct baton_work_end end = {.how = BATON_COMPLETE};
		struct baton_work_ended ended = {.err = BATON_OK};
		struct baton_put put;
		if (before)
			end.proof = before->claims[0].proof;
		claims = NULL;
		worker->wrong += i < EACH && baton_work_put(store, &batch, 1, &put) != BATON_OK;
		worker->wrong += baton_work_next(store, &end, before ? 1 : 0, &ended,
		                                 i < EACH ? &ask : &none, &claims) != BATON_OK;
		worker->wrong += ended.err != BATON_OK;
		worker->wrong += (claims && claims->count == 1) != (i < EACH);
		baton_work_claims_free(before);
	}
	return NULL;
}

static void many_at_once_lose_nothing(void **state)
{
	struct world *w = *state;
	struct worker workers[WORKERS] = {{.w = w}};
	for (int i = 0; i < WORKERS; i++) {
		workers[i].w = w;
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (int i = 0; i < WORKERS; i++) {
		pthread_join(workers[i].thread, NULL);
		assert_int_equal(workers[i].wrong, 0);
	}
	assert_int_equal(counts(w, "q").done, WORKERS * EACH);
	assert_int_equal(counts(w, "q").running, 0);
	assert_int_equal(counts(w, "q").ready, 0);
	assert_sound(w);
}

static const struct CMUnitTest tests[] = {
	WORLD_TEST(one_job_is_completed_and_the_next_one_claimed),
	WORLD_TEST(the_next_of_the_same_lane_can_be_had),
	WORLD_TEST(the_next_of_the_same_key_can_be_had),
	WORLD_TEST(what_is_emitted_can_be_claimed_at_once),
	WORLD_TEST(what_is_given_back_can_be_had_again),
	WORLD_TEST(a_claim_that_was_lost_does_not_keep_one_from_the_next),
	WORLD_TEST(what_ends_has_ended_though_nothing_can_be_claimed),
	WORLD_TEST(what_ends_has_ended_though_nobody_may_claim_there),
	WORLD_TEST(what_is_not_allowed_changes_nothing),
	WORLD_TEST(without_an_end_it_is_a_claim),
	WORLD_TEST(many_at_once_lose_nothing),
};

WORLD_MAIN("next", tests)
