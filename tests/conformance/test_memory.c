/* Every allocation is failed in turn: all of a call is done then, or nothing of it. */
#include <stdlib.h>
#include <string.h>

#include <baton/shard.h>

#include "support/soak.h"
#include "world.h"

/* What can be seen of the queue, in numbers. */
struct picture {
	struct baton_queue_counts counts;
	bool queue;
	uint32_t key_limit;
	size_t batches;
	size_t held;
};

static struct picture picture_of(struct world *w)
{
	static struct baton_lease_entry entries[8];
	struct baton_queue_info info;
	struct picture p = {.batches = 0};
	const struct baton_work_filter f = {.max = 100};
	struct baton_work_page *page;
	fault_arm(&w->fault, 0);
	p.queue = baton_queue_get(w->store, BATON_STR("q"), &info) == BATON_OK;
	if (p.queue) {
		p.counts = info.counts;
		p.key_limit = info.policy.key_limit;
	}
	assert_int_equal(baton_work_list(w->store, &f, &page), BATON_OK);
	p.batches = page->count;
	baton_work_page_free(page);
	assert_int_equal(baton_lease_list(w->store, BATON_STR(""), BATON_STR(""), entries, 8,
	                                  &p.held),
	                 BATON_OK);
	return p;
}

static bool equal(const struct picture *a, const struct picture *b)
{
	return a->queue == b->queue && a->key_limit == b->key_limit && a->batches == b->batches &&
	       a->held == b->held && a->counts.ready == b->counts.ready &&
	       a->counts.delayed == b->counts.delayed && a->counts.running == b->counts.running &&
	       a->counts.waiting_on_key == b->counts.waiting_on_key &&
	       a->counts.dead == b->counts.dead && a->counts.done == b->counts.done &&
	       a->counts.failed == b->counts.failed;
}

/* Prepares a store, and does it with the allocation `n` failing. False: there are not so many. */
static bool fail_one(unsigned n, void (*prepare)(struct world *w),
                     enum baton_err (*scenario)(struct world *w))
{
	struct world *w = malloc(sizeof *w);
	world_open(w, world_kind());
	prepare(w);
	struct picture before = picture_of(w);
	fault_arm(&w->fault, n);
	enum baton_err e = scenario(w);
	bool fired = fault_fired(&w->fault);
	struct picture after = picture_of(w);
	assert_sound(w);
	assert_true(e == BATON_OK || (e == BATON_NO_MEMORY && fired));
	assert_int_equal(equal(&before, &after), e != BATON_OK);
	world_close(w);
	free(w);
	return fired;
}

static void fail_each(void (*prepare)(struct world *w), enum baton_err (*scenario)(struct world *w))
{
	/* Each costs several transactions, and a server takes its time. */
	unsigned step = strncmp(world_kind(), "postgres:", 9) == 0 ? soak_scale(37, 1) : 1;
	for (unsigned n = 1; fail_one(n, prepare, scenario);)
		n += step;
}

static enum baton_err put_some(struct world *w)
{
	static const struct baton_str many[] = {{"a", 1}, {"bc", 2}};
	struct baton_batch b[] = {batch_of("q", "x", many), batch_of("q", "", NULL),
	                          batch_of("q", "y", NULL)};
	struct baton_put puts[3];
	b[0].count = 2;
	b[1].source = BATON_STR("key");
	b[2].delay = baton_duration_ms(100);
	return baton_work_put(w->store, b, 3, puts);
}

static enum baton_err claim_some(struct world *w)
{
	struct baton_work_claims *claims = NULL;
	const struct baton_work_ask ask = {.queue = BATON_STR("q"), .claims = 10, .max = 10};
	enum baton_err e = baton_work_claim(w->store, &ask, &claims);
	assert_true(e == BATON_OK || !claims);
	keep_claims(w, claims);
	return e;
}

static struct baton_lease lease;

static enum baton_err claim_lane_some(struct world *w)
{
	struct baton_lane_ask ask = lane_ask("q", "x", &lease);
	return try_lane(w, &ask, NULL);
}

static struct baton_work_end to_end[3];

static enum baton_err end_some(struct world *w)
{
	struct baton_work_ended answers[3];
	enum baton_err e = baton_work_end(w->store, to_end, 3, answers);
	for (int i = 0; i < 3 && e == BATON_OK; i++)
		assert_int_equal(answers[i].err, BATON_OK);
	return e;
}

static enum baton_err hold_some(struct world *w)
{
	const struct baton_lease_ask asks[] = {{.subject = BATON_STR("a")},
	                                       {.subject = BATON_STR("lane/q/x")}};
	struct baton_lease_answer answers[2];
	return baton_lease_claim(w->store, asks, 2, answers);
}

static void nothing(struct world *w)
{
	(void)w;
}

static void work(struct world *w)
{
	assert_int_equal(put_some(w), BATON_OK);
	put_join(w, "q", "z", "");
	put_join(w, "q", "z", "");
}

static void lost_claims(struct world *w)
{
	work(w);
	assert_int_equal(claim_some(w), BATON_OK);
	advance(w, 30000);
}

static void a_lane(struct world *w)
{
	work(w);
	lease = hold_lane(w, "q", "x", NULL);
}

/* Three claims, whose ends are in to_end. */
static void claims(struct world *w)
{
	static struct baton_batch emits[2];
	struct baton_queue_policy p = policy(w, "q");
	p.keep = baton_duration_s(60);
	set_policy(w, "q", &p);
	work(w);
	const struct baton_work_ask ask = {.queue = BATON_STR("q"), .claims = 3, .max = 1};
	const struct baton_work_claims *c = claim_many(w, &ask);
	emits[0] = batch_of("q", "new", NULL);
	emits[1] = batch_of("p", "", NULL);
	to_end[0] = (struct baton_work_end){.proof = c->claims[0].proof,
	                                    .how = BATON_COMPLETE,
	                                    .result = BATON_STR("r"),
	                                    .emits = emits,
	                                    .emit_count = 2};
	to_end[1] = (struct baton_work_end){.proof = c->claims[1].proof,
	                                    .how = BATON_FAIL,
	                                    .error = BATON_STR("it broke")};
	to_end[2] = (struct baton_work_end){.proof = c->claims[2].proof, .how = BATON_REJECT};
}

/* Three claims of a key that is given up, and one more who waits for it. */
static void key_claims(struct world *w)
{
	struct baton_queue_policy p = policy(w, "q");
	struct baton_batch b = batch_of("q", "", NULL);
	p.key_limit = 3;
	p.hold_on_retry = BATON_HOLD_GIVE_UP;
	set_policy(w, "q", &p);
	b.key = BATON_STR("k");
	for (int i = 0; i < 4; i++)
		put_batch(w, &b);
	const struct baton_work_ask ask = {.queue = BATON_STR("q"), .claims = 4, .max = 1};
	const struct baton_work_claims *c = claim_many(w, &ask);
	assert_int_equal(c->count, 3);
	for (int i = 0; i < 3; i++)
		to_end[i] = (struct baton_work_end){.proof = c->claims[i].proof,
		                                    .how = BATON_FAIL,
		                                    .error = BATON_STR("it broke")};
}

static enum baton_err raise_limit(struct world *w)
{
	struct baton_queue_policy p = baton_queue_policy_default();
	p.key_limit = 4;
	return baton_queue_change(w->store, BATON_STR("q"), &p, BATON_POLICY_KEY_LIMIT);
}

static void an_end_that_gives_up_a_key_is_whole_or_nothing(void **state)
{
	(void)state;
	fail_each(key_claims, end_some);
}

static void a_change_of_the_limit_of_keys_is_whole_or_nothing(void **state)
{
	(void)state;
	fail_each(key_claims, raise_limit);
}

/* One who has a key, and one who waits for it and will give way. */
static void rivals(struct world *w)
{
	struct baton_queue_policy p = policy(w, "q");
	struct baton_batch b = batch_of("q", "", NULL);
	p.on_conflict = BATON_CONFLICT_LATEST;
	p.key_waiting_max = 3;
	set_policy(w, "q", &p);
	b.key = BATON_STR("k");
	put_batch(w, &b);
	assert_non_null(claim(w, "q", 1));
	put_batch(w, &b);
}

static enum baton_err put_rival(struct world *w)
{
	struct baton_batch b = batch_of("q", "", NULL);
	struct baton_put answer;
	b.key = BATON_STR("k");
	return try_put(w, &b, &answer);
}

static void a_put_for_which_another_is_skipped_is_whole_or_nothing(void **state)
{
	(void)state;
	fail_each(rivals, put_rival);
}

#define TOGETHER 8

/* Jobs that have keys of their own, put together, the first of which are claimed. */
static enum baton_err put_keys(struct world *w, int from)
{
	struct baton_batch b[TOGETHER];
	struct baton_put puts[TOGETHER];
	char keys[TOGETHER][4];
	for (int i = 0; i < TOGETHER; i++) {
		snprintf(keys[i], sizeof keys[i], "%d", from + i);
		b[i] = batch_of("q", "", NULL);
		b[i].key = baton_str_z(keys[i]);
	}
	return baton_work_put(w->store, b, TOGETHER, puts);
}

static void keys_alone(struct world *w)
{
	const struct baton_work_ask ask = {.queue = BATON_STR("q"), .claims = 3, .max = 1};
	assert_int_equal(put_keys(w, 0), BATON_OK);
	const struct baton_work_claims *c = claim_many(w, &ask);
	for (int i = 0; i < 3; i++)
		to_end[i] = (struct baton_work_end){.proof = c->claims[i].proof,
		                                    .how = i == 1 ? BATON_FAIL : BATON_COMPLETE,
		                                    .error = BATON_STR("it broke")};
}

/* Two of these have keys that are claimed, some that are ready, and one is new. */
static enum baton_err put_more_keys(struct world *w)
{
	return put_keys(w, 1);
}

static enum baton_err take_turns(struct world *w)
{
	struct baton_queue_policy p = baton_queue_policy_default();
	p.key_fair = BATON_KEY_FAIR_ON;
	p.key_limit = 2;
	return baton_queue_change(w->store, BATON_STR("q"), &p,
	                          BATON_POLICY_KEY_FAIR | BATON_POLICY_KEY_LIMIT);
}

static void what_is_done_to_keys_that_jobs_have_alone_is_whole_or_nothing(void **state)
{
	(void)state;
	fail_each(nothing, put_more_keys);
	fail_each(keys_alone, put_more_keys);
	fail_each(keys_alone, claim_some);
	fail_each(keys_alone, end_some);
	fail_each(keys_alone, take_turns);
}

static void a_put_is_whole_or_nothing(void **state)
{
	(void)state;
	fail_each(nothing, put_some);
}

static void a_claim_is_whole_or_nothing(void **state)
{
	(void)state;
	fail_each(work, claim_some);
}

static void a_claim_of_what_was_lost_is_whole_or_nothing(void **state)
{
	(void)state;
	fail_each(lost_claims, claim_some);
}

static void a_claim_of_a_lane_is_whole_or_nothing(void **state)
{
	(void)state;
	fail_each(a_lane, claim_lane_some);
}

static void an_end_is_whole_or_nothing(void **state)
{
	(void)state;
	fail_each(claims, end_some);
}

/* Many in one call, with nothing unusual about them: a store may keep them together. */
#define MANY 8

static enum baton_err put_many(struct world *w)
{
	struct baton_batch b[MANY];
	struct baton_put puts[MANY];
	for (int i = 0; i < MANY; i++)
		b[i] = batch_of("q", "", NULL);
	return baton_work_put(w->store, b, MANY, puts);
}

static void many(struct world *w)
{
	assert_int_equal(put_many(w), BATON_OK);
}

/* Some of them are claimed, in one call; the ends of three are in to_end, all completions. */
static void many_claims(struct world *w)
{
	many(w);
	const struct baton_work_ask ask = {.queue = BATON_STR("q"), .claims = 5, .max = 1};
	const struct baton_work_claims *c = claim_many(w, &ask);
	for (int i = 0; i < 3; i++)
		to_end[i] =
			(struct baton_work_end){.proof = c->claims[i].proof, .how = BATON_COMPLETE};
}

/* The same, with one that fails. */
static void many_claims_and_a_failure(struct world *w)
{
	many_claims(w);
	to_end[1].how = BATON_FAIL;
}

static void many_lost_claims(struct world *w)
{
	many_claims(w);
	advance(w, 30000);
}

static enum baton_err cancel_some(struct world *w)
{
	const struct baton_batch_id ids[] = {{"1"}, {"7"}};
	enum baton_cancelled answers[2];
	return baton_work_cancel(w->store, ids, 2, answers);
}

static void a_dead_one(struct world *w)
{
	many(w);
	end(w, claim(w, "q", 1), BATON_REJECT);
}

static enum baton_err revive_some(struct world *w)
{
	const struct baton_batch_id id = {"1"};
	enum baton_err answer = BATON_OK;
	enum baton_err e = baton_work_revive(w->store, &id, 1, &answer);
	return e == BATON_OK ? answer : e;
}

static void a_put_of_many_is_whole_or_nothing(void **state)
{
	(void)state;
	fail_each(nothing, put_many);
}

static void a_claim_of_many_is_whole_or_nothing(void **state)
{
	(void)state;
	fail_each(many, claim_some);
}

static void an_end_of_many_is_whole_or_nothing(void **state)
{
	(void)state;
	fail_each(many_claims, end_some);
	fail_each(many_claims_and_a_failure, end_some);
}

static void a_claim_of_many_that_were_lost_is_whole_or_nothing(void **state)
{
	(void)state;
	fail_each(many_lost_claims, claim_some);
}

static void a_cancellation_is_whole_or_nothing(void **state)
{
	(void)state;
	fail_each(many, cancel_some);
	fail_each(many_claims, cancel_some);
}

static void a_revival_is_whole_or_nothing(void **state)
{
	(void)state;
	fail_each(a_dead_one, revive_some);
}

static struct baton_runner *runner;
static struct baton_more_ask more_ask;

/* A run of a runner, and more of its lane behind it. */
static void a_run(struct world *w)
{
	const struct baton_runner_ask ask = {.name = BATON_STR("r"),
	                                     .weight = 1,
	                                     .ttl = baton_duration_s(10)};
	const struct baton_shard shard = {BATON_STR("q"), 0, 1, 1};
	struct baton_shard_answer answer;
	const struct baton_tick tick = {.shards = &shard, .shard_count = 1, .owned = &answer};
	struct baton_queue_policy p = policy(w, "q");
	struct baton_work_claims *claims = NULL;
	p.shards = 1;
	set_policy(w, "q", &p);
	for (int i = 0; i < 3; i++)
		put_join(w, "q", "lane", NULL);
	assert_int_equal(baton_runner_register(w->store, &ask, &runner, NULL), BATON_OK);
	assert_int_equal(baton_shard_take(runner, &shard, 1, &answer), BATON_OK);
	assert_int_equal(baton_runner_tick(runner, &tick, &claims), BATON_OK);
	keep_claims(w, claims);
	more_ask = (struct baton_more_ask){.queue = shard.queue,
	                                   .lane = BATON_STR("lane"),
	                                   .proof = claims->claims[0].proof,
	                                   .max = 10};
}

static enum baton_err take_more(struct world *w)
{
	struct baton_work_claims *claims = NULL;
	enum baton_err e = baton_runner_more(runner, &more_ask, &claims);
	if (e == BATON_OK)
		keep_claims(w, claims);
	baton_runner_free(runner);
	return e;
}

static void more_for_a_run_is_given_whole_or_not_at_all(void **state)
{
	(void)state;
	fail_each(a_run, take_more);
}

static void a_lease_claim_is_whole_or_nothing(void **state)
{
	(void)state;
	fail_each(nothing, hold_some);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(a_put_is_whole_or_nothing),
	cmocka_unit_test(a_claim_is_whole_or_nothing),
	cmocka_unit_test(a_claim_of_what_was_lost_is_whole_or_nothing),
	cmocka_unit_test(a_claim_of_a_lane_is_whole_or_nothing),
	cmocka_unit_test(an_end_is_whole_or_nothing),
	cmocka_unit_test(a_put_of_many_is_whole_or_nothing),
	cmocka_unit_test(a_claim_of_many_is_whole_or_nothing),
	cmocka_unit_test(an_end_of_many_is_whole_or_nothing),
	cmocka_unit_test(a_claim_of_many_that_were_lost_is_whole_or_nothing),
	cmocka_unit_test(a_cancellation_is_whole_or_nothing),
	cmocka_unit_test(a_revival_is_whole_or_nothing),
	cmocka_unit_test(an_end_that_gives_up_a_key_is_whole_or_nothing),
	cmocka_unit_test(a_change_of_the_limit_of_keys_is_whole_or_nothing),
	cmocka_unit_test(a_put_for_which_another_is_skipped_is_whole_or_nothing),
	cmocka_unit_test(what_is_done_to_keys_that_jobs_have_alone_is_whole_or_nothing),
	cmocka_unit_test(more_for_a_run_is_given_whole_or_not_at_all),
	cmocka_unit_test(a_lease_claim_is_whole_or_nothing),
};

WORLD_MAIN("memory", tests)
