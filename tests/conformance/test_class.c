/* Queues that have their keys in common: each keeps its order, and a key its limit, over all. */
#include <baton/shard.h>

#include "world.h"

#define CLASS "tenant"

static void join(struct world *w, const char *queue)
{
	struct baton_queue_policy p = baton_queue_policy_default();
	snprintf(p.key_class, sizeof p.key_class, CLASS);
	assert_int_equal(baton_queue_change(w->store, baton_str_z(queue), &p,
	                                    BATON_POLICY_KEY_CLASS),
	                 BATON_OK);
}

static int setup(void **state)
{
	int e = world_setup(state);
	if (e == 0) {
		join(*state, "a");
		join(*state, "b");
	}
	return e;
}

static struct baton_batch keyed(const char *queue, const char *lane, const char *key)
{
	struct baton_batch b = batch_of(queue, lane, NULL);
	b.key = baton_str_z(key);
	return b;
}

static struct baton_batch_id put_key(struct world *w, const char *queue, const char *key)
{
	struct baton_batch b = keyed(queue, NULL, key);
	return put_batch(w, &b);
}

static struct baton_batch_id put_guest(struct world *w, const char *queue, const char *lane,
                                       const char *key)
{
	struct baton_batch b = keyed(queue, lane, key);
	return put_batch(w, &b);
}

/* Of all of the class. */
static void limit_is(struct world *w, const char *queue, uint32_t limit)
{
	struct baton_queue_policy p = {.key_limit = limit};
	assert_int_equal(baton_queue_change(w->store, baton_str_z(queue), &p,
	                                    BATON_POLICY_KEY_LIMIT),
	                 BATON_OK);
}

static void retry_is(struct world *w, const char *queue, enum baton_hold_on_retry hold)
{
	struct baton_queue_policy p = policy(w, queue);
	p.hold_on_retry = hold;
	p.retry.backoff = BATON_BACKOFF_FIXED;
	p.retry.base = baton_duration_ms(100);
	set_policy(w, queue, &p);
}

static const struct baton_work_claims *claim_some(struct world *w, const char *queue,
                                                  uint32_t claims)
{
	const struct baton_work_ask ask = {.queue = baton_str_z(queue),
	                                   .ttl = baton_duration_ms(1000),
	                                   .claims = claims,
	                                   .max = 1};
	return claim_many(w, &ask);
}

static const struct baton_work_claim *assert_next(struct world *w, const char *queue,
                                                  const struct baton_batch_id *id)
{
	const struct baton_work_claim *c = claim(w, queue, 1);
	assert_non_null(c);
	assert_id(c->batches[0].id, *id);
	assert_sound(w);
	return c;
}

static void assert_none(struct world *w, const char *queue)
{
	assert_null(claim(w, queue, 1));
	assert_sound(w);
}

static void assert_why(struct world *w, const struct baton_batch_id *id, enum baton_why why,
                       const struct baton_batch_id *ahead)
{
	const struct baton_work_info *info = look(w, id);
	assert_int_equal(info->why, why);
	assert_string_equal(info->ahead.text, ahead ? ahead->text : "");
}

static void a_key_is_held_once_over_queues(void **state)
{
	struct world *w = *state;
	struct baton_batch_id a = put_key(w, "a", "k"), b = put_key(w, "b", "k");
	struct baton_batch_id other = put_key(w, "b", "l");
	const struct baton_work_claim *c = assert_next(w, "a", &a);
	assert_next(w, "b", &other);
	assert_none(w, "b");
	complete(w, c);
	c = assert_next(w, "b", &b);
	struct baton_batch_id next = put_key(w, "a", "k");
	assert_none(w, "a");
	complete(w, c);
	assert_next(w, "a", &next);
}

static void queues_without_a_class_share_nothing(void **state)
{
	struct world *w = *state;
	struct baton_batch_id a = put_key(w, "a", "k"), c = put_key(w, "c", "k");
	assert_next(w, "a", &a);
	assert_next(w, "c", &c);
}

static void each_queue_keeps_its_order_and_the_first_who_asks_gets_the_key(void **state)
{
	struct world *w = *state;
	struct baton_batch_id a1 = put_key(w, "a", "k"), b1 = put_key(w, "b", "k");
	struct baton_batch_id a2 = put_key(w, "a", "k"), b2 = put_key(w, "b", "k");
	complete(w, assert_next(w, "b", &b1));
	complete(w, assert_next(w, "b", &b2));
	complete(w, assert_next(w, "a", &a1));
	complete(w, assert_next(w, "a", &a2));
	assert_sound(w);
}

static void one_that_is_paused_is_in_nobodys_way(void **state)
{
	struct world *w = *state;
	struct baton_batch_id a = put_key(w, "a", "k"), b = put_key(w, "b", "k");
	assert_int_equal(baton_queue_pause(w->store, BATON_STR("a"), true), BATON_OK);
	assert_none(w, "a");
	complete(w, assert_next(w, "b", &b));
	assert_int_equal(baton_queue_pause(w->store, BATON_STR("a"), false), BATON_OK);
	assert_next(w, "a", &a);
}

static void a_limit_is_that_of_all_and_holds_at_once(void **state)
{
	struct world *w = *state;
	struct baton_batch_id a[3], b[3];
	limit_is(w, "b", 3);
	assert_int_equal(policy(w, "a").key_limit, 3);
	for (int i = 0; i < 3; i++) {
		a[i] = put_key(w, "a", "k");
		b[i] = put_key(w, "b", "k");
	}
	const struct baton_work_claim *c = assert_next(w, "a", &a[0]);
	assert_next(w, "b", &b[0]);
	assert_next(w, "b", &b[1]);
	assert_none(w, "a");
	assert_none(w, "b");
	unsigned rings = w->rings;
	limit_is(w, "a", 4);
	assert_true(w->rings > rings);
	assert_sound(w);
	assert_next(w, "b", &b[2]);
	limit_is(w, "a", 1);
	complete(w, c);
	assert_none(w, "a");
}

/* What else wants it is for the next call, whoever that is. */
static void a_call_takes_a_key_of_a_class_once(void **state)
{
	struct world *w = *state;
	limit_is(w, "a", 2);
	for (int i = 0; i < 3; i++)
		put_key(w, "a", "k");
	put_key(w, "a", "l");
	unsigned rings = w->rings;
	assert_int_equal(claim_some(w, "a", 10)->count, 2);
	assert_true(w->rings > rings);
	assert_sound(w);
	assert_int_equal(claim_some(w, "a", 10)->count, 1);
	assert_null(claim_some(w, "a", 10));
	assert_sound(w);
}

static void an_end_rings_for_the_other_queue(void **state)
{
	struct world *w = *state;
	struct baton_batch_id a = put_key(w, "a", "k");
	put_key(w, "b", "k");
	const struct baton_work_claim *c = assert_next(w, "a", &a);
	unsigned rings = w->rings;
	complete(w, c);
	assert_true(w->rings > rings);
}

static void why_names_the_holder_in_the_other_queue(void **state)
{
	struct world *w = *state;
	struct baton_batch_id a = put_key(w, "a", "k"), b = put_key(w, "b", "k");
	struct baton_batch_id c = put_guest(w, "b", "x", "k");
	assert_why(w, &b, BATON_WHY_READY, NULL);
	assert_next(w, "a", &a);
	assert_why(w, &b, BATON_WHY_KEY, &a);
	assert_why(w, &c, BATON_WHY_KEY, &a);
	assert_str(look(w, &b)->held, "k");
	assert_str(look(w, &a)->queue, "a");
}

static void an_expired_claim_gives_its_key_to_the_other_queue(void **state)
{
	struct world *w = *state;
	struct baton_batch_id a = put_key(w, "a", "k"), b = put_key(w, "b", "k");
	const struct baton_work_claim *late = assert_next(w, "a", &a);
	advance(w, 999);
	assert_none(w, "b");
	struct baton_store_time due;
	assert_int_equal(baton_work_next_due(w->store, BATON_STR("b"), &due), BATON_OK);
	assert_int_equal(due.ms, START_MS + 1000);
	advance(w, 1);
	const struct baton_work_claim *c = assert_next(w, "b", &b);
	assert_int_equal(renew(w, late, 1000).err, BATON_NOT_HELD);
	assert_int_equal(end(w, late, BATON_COMPLETE).err, BATON_NOT_HELD);
	assert_none(w, "a");
	complete(w, c);
	c = assert_next(w, "a", &a);
	assert_int_equal(c->batches[0].attempt, 2);
}

static void a_late_claim_that_nobody_saw_is_renewed_and_keeps_its_key(void **state)
{
	struct world *w = *state;
	struct baton_batch_id a = put_key(w, "a", "k");
	put_key(w, "b", "k");
	const struct baton_work_claim *late = assert_next(w, "a", &a);
	advance(w, 1500);
	assert_int_equal(renew(w, late, 1000).err, BATON_OK);
	assert_none(w, "b");
	complete(w, late);
}

static void work_that_keeps_its_key_until_its_next_attempt_keeps_it_from_all(void **state)
{
	struct world *w = *state;
	retry_is(w, "a", BATON_HOLD_KEEP);
	struct baton_batch_id a = put_key(w, "a", "k"), b = put_key(w, "b", "k");
	end(w, assert_next(w, "a", &a), BATON_FAIL);
	assert_none(w, "b");
	assert_why(w, &b, BATON_WHY_KEY, &a);
	advance(w, 100);
	/* Nobody asks for work of the other queue, whose job is ready again now. */
	const struct baton_work_claim *c = assert_next(w, "b", &b);
	assert_none(w, "a");
	complete(w, c);
	assert_next(w, "a", &a);
}

static void work_that_gives_its_key_up_gives_it_to_all(void **state)
{
	struct world *w = *state;
	retry_is(w, "a", BATON_HOLD_GIVE_UP);
	assert_int_equal(policy(w, "b").hold_on_retry, BATON_HOLD_GIVE_UP);
	struct baton_batch_id a = put_key(w, "a", "k"), b = put_key(w, "b", "k");
	end(w, assert_next(w, "a", &a), BATON_FAIL);
	assert_next(w, "b", &b);
	advance(w, 100);
	assert_none(w, "a");
}

static void one_that_is_cancelled_while_it_keeps_its_key_lets_it_go(void **state)
{
	struct world *w = *state;
	retry_is(w, "a", BATON_HOLD_KEEP);
	struct baton_batch_id a = put_key(w, "a", "k"), b = put_key(w, "b", "k");
	end(w, assert_next(w, "a", &a), BATON_FAIL);
	assert_none(w, "b");
	assert_int_equal(cancel(w, &a), BATON_CANCEL_REMOVED);
	assert_next(w, "b", &b);
}

static void one_that_dies_lets_its_key_go_and_comes_back_behind_its_holder(void **state)
{
	struct world *w = *state;
	set_attempts(w, "a", 1);
	struct baton_batch_id a = put_key(w, "a", "k"), b = put_key(w, "b", "k");
	end(w, assert_next(w, "a", &a), BATON_FAIL);
	assert_int_equal(state_of(w, &a), BATON_BATCH_DEAD);
	const struct baton_work_claim *c = assert_next(w, "b", &b);
	assert_int_equal(revive(w, &a), BATON_OK);
	assert_none(w, "a");
	complete(w, c);
	assert_next(w, "a", &a);
}

static void fences_grow_along_a_key_over_queues(void **state)
{
	struct world *w = *state;
	uint64_t last = 0;
	for (int i = 0; i < 6; i++) {
		const char *queue = i % 3 ? "a" : "b";
		put_key(w, queue, "k");
		const struct baton_work_claim *c = claim(w, queue, 1);
		assert_non_null(c);
		assert_true(c->fence.v > last);
		last = c->fence.v;
		complete(w, c);
	}
}

static void a_lane_whose_first_job_has_a_key_waits_for_other_queues(void **state)
{
	struct world *w = *state;
	struct baton_batch_id a = put_guest(w, "a", "x", "k"), b = put_guest(w, "b", "x", "k");
	struct baton_batch_id plain = put(w, "b", "y"), alone = put_key(w, "b", "k");
	const struct baton_work_claim *c = assert_next(w, "a", &a);
	assert_next(w, "b", &plain);
	assert_none(w, "b");
	complete(w, c);
	c = assert_next(w, "b", &b);
	put_guest(w, "a", "x", "k");
	assert_none(w, "a");
	assert_none(w, "b");
	complete(w, c);
	assert_next(w, "b", &alone);
	assert_none(w, "a");
}

static void several_keys_are_had_together_over_queues(void **state)
{
	struct world *w = *state;
	const struct baton_str both[] = {BATON_STR("k"), BATON_STR("l")};
	struct baton_batch b = batch_of("b", NULL, NULL);
	b.keys = both;
	b.key_count = 2;
	struct baton_batch_id k = put_key(w, "a", "k"), l = put_key(w, "a", "l");
	struct baton_batch_id two = put_batch(w, &b);
	const struct baton_work_claim *ck = assert_next(w, "a", &k), *cl = assert_next(w, "a", &l);
	assert_none(w, "b");
	complete(w, ck);
	assert_none(w, "b");
	assert_why(w, &two, BATON_WHY_KEY, &l);
	complete(w, cl);
	ck = assert_next(w, "b", &two);
	k = put_key(w, "a", "k");
	l = put_key(w, "a", "l");
	assert_none(w, "a");
	complete(w, ck);
	assert_int_equal(claim_some(w, "a", 10)->count, 2);
	assert_sound(w);
}

static void a_queue_that_joins_gets_the_policy_of_the_class(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "a");
	p.key_limit = 7;
	p.hold_on_retry = BATON_HOLD_GIVE_UP;
	p.key_ttl = baton_duration_ms(500);
	set_policy(w, "a", &p);
	join(w, "c");
	assert_int_equal(policy(w, "b").key_limit, 7);
	assert_int_equal(policy(w, "c").key_limit, 7);
	assert_int_equal(policy(w, "c").hold_on_retry, BATON_HOLD_GIVE_UP);
	assert_int_equal(policy(w, "c").key_ttl.ns, p.key_ttl.ns);
	assert_string_equal(policy(w, "c").key_class, CLASS);
	p.key_limit = 3;
	assert_int_equal(baton_queue_change(w->store, BATON_STR("d"), &p,
	                                    BATON_POLICY_KEY_CLASS | BATON_POLICY_KEY_LIMIT),
	                 BATON_OK);
	assert_int_equal(policy(w, "a").key_limit, 3);
	assert_int_equal(policy(w, "d").hold_on_retry, BATON_HOLD_GIVE_UP);
	assert_sound(w);
}

/* One that joins and has had that limit before changes it for the others all the same. */
static void a_queue_that_joins_changes_the_limit_of_the_class(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "a");
	p.key_limit = 2;
	assert_int_equal(baton_queue_change(w->store, BATON_STR("c"), &p, BATON_POLICY_KEY_LIMIT),
	                 BATON_OK);
	struct baton_batch_id a = put_key(w, "a", "k"), b = put_key(w, "a", "k");
	put_key(w, "a", "k");
	assert_next(w, "a", &a);
	assert_none(w, "a");
	unsigned rings = w->rings;
	assert_int_equal(baton_queue_change(w->store, BATON_STR("c"), &p,
	                                    BATON_POLICY_KEY_CLASS | BATON_POLICY_KEY_LIMIT),
	                 BATON_OK);
	assert_true(w->rings > rings);
	assert_sound(w);
	const struct baton_work_claim *second = assert_next(w, "a", &b);
	assert_none(w, "a");
	p.key_limit = 1;
	assert_int_equal(baton_queue_change(w->store, BATON_STR("d"), &p, BATON_POLICY_KEY_LIMIT),
	                 BATON_OK);
	complete(w, second);
	assert_int_equal(baton_queue_change(w->store, BATON_STR("d"), &p,
	                                    BATON_POLICY_KEY_CLASS | BATON_POLICY_KEY_LIMIT),
	                 BATON_OK);
	assert_sound(w);
	assert_none(w, "a");
}

/* Whoever had a key of the class in it may act late. */
static void fences_grow_also_when_a_queue_has_left(void **state)
{
	struct world *w = *state;
	const struct baton_queue_policy none = baton_queue_policy_default();
	uint64_t last = 0;
	for (int i = 0; i < 3; i++) {
		struct baton_batch_id a = put_key(w, "a", "k");
		const struct baton_work_claim *c = assert_next(w, "a", &a);
		last = c->fence.v;
		complete(w, c);
	}
	assert_int_equal(baton_queue_change(w->store, BATON_STR("a"), &none,
	                                    BATON_POLICY_KEY_CLASS),
	                 BATON_OK);
	assert_sound(w);
	struct baton_batch_id b = put_key(w, "b", "k");
	assert_true(assert_next(w, "b", &b)->fence.v > last);
}

static void a_queue_leaves_while_it_has_no_jobs(void **state)
{
	struct world *w = *state;
	const struct baton_queue_policy none = baton_queue_policy_default();
	struct baton_batch_id a = put_key(w, "a", "k"), b;
	assert_int_equal(baton_queue_change(w->store, BATON_STR("a"), &none,
	                                    BATON_POLICY_KEY_CLASS),
	                 BATON_BUSY);
	assert_detail("queue \"a\" has 1 jobs");
	const struct baton_work_claim *c = assert_next(w, "a", &a);
	assert_int_equal(baton_queue_change(w->store, BATON_STR("a"), &none,
	                                    BATON_POLICY_KEY_CLASS),
	                 BATON_BUSY);
	complete(w, c);
	assert_int_equal(baton_queue_change(w->store, BATON_STR("a"), &none,
	                                    BATON_POLICY_KEY_CLASS),
	                 BATON_OK);
	assert_string_equal(policy(w, "a").key_class, "");
	a = put_key(w, "a", "k");
	b = put_key(w, "b", "k");
	assert_next(w, "a", &a);
	assert_next(w, "b", &b);
	limit_is(w, "a", 5);
	assert_int_equal(policy(w, "b").key_limit, 1);
}

static void a_queue_with_jobs_does_not_join(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "a");
	put_key(w, "c", "k");
	assert_int_equal(baton_queue_change(w->store, BATON_STR("c"), &p, BATON_POLICY_KEY_CLASS),
	                 BATON_BUSY);
	assert_detail("queue \"c\" has 1 jobs");
	assert_string_equal(policy(w, "c").key_class, "");
}

static void what_cannot_be_in_a_class_is_refused(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "a");
	p.mode = BATON_QUEUE_LANE;
	p.key_scope = BATON_KEY_SCOPE_HOST;
	const struct {
		uint32_t field;
		const char *words;
	} cases[] = {
		{BATON_POLICY_MODE, "the mode is lane"},
		{BATON_POLICY_KEY_SCOPE, "key_scope is not cluster"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_int_equal(baton_queue_change(w->store, BATON_STR("a"), &p, cases[i].field),
		                 BATON_INVALID);
		assert_detail(cases[i].words);
		assert_int_equal(baton_queue_change(w->store, BATON_STR("c"), &p,
		                                    cases[i].field | BATON_POLICY_KEY_CLASS),
		                 BATON_INVALID);
		assert_detail(cases[i].words);
	}
	memset(p.key_class, 'c', sizeof p.key_class);
	assert_int_equal(baton_queue_change(w->store, BATON_STR("c"), &p, BATON_POLICY_KEY_CLASS),
	                 BATON_INVALID);
	assert_detail("255");
}

static void a_lane_of_a_class_is_not_handed_out_by_its_lease(void **state)
{
	struct world *w = *state;
	put(w, "a", "x");
	struct baton_lease lease = hold_lane(w, "a", "x", NULL);
	struct baton_lane_ask ask = lane_ask("a", "x", &lease);
	assert_int_equal(try_lane(w, &ask, NULL), BATON_INVALID);
	assert_detail("the mode is lane");
}

static void a_class_has_so_many_queues_at_most(void **state)
{
	struct world *w = *state;
	char name[8];
	for (int i = 2; i < BATON_QUEUE_CLASS_MAX; i++) {
		snprintf(name, sizeof name, "q%d", i);
		join(w, name);
	}
	struct baton_queue_policy p = policy(w, "a");
	assert_int_equal(baton_queue_change(w->store, BATON_STR("more"), &p,
	                                    BATON_POLICY_KEY_CLASS),
	                 BATON_FULL);
	assert_detail("16");
	struct baton_batch_id a = put_key(w, "a", "k");
	put_key(w, name, "k");
	assert_next(w, "a", &a);
	assert_none(w, name);
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

/* Takes all shards of these queues, ends `done` (NULL: nothing) and claims. */
static const struct baton_work_claims *tick(struct world *w, struct baton_runner *r,
                                            const char *queues, const struct baton_work_claim *done)
{
	struct baton_shard shards[2 * BATON_QUEUE_SHARDS];
	struct baton_shard_answer owned[2 * BATON_QUEUE_SHARDS];
	struct baton_work_claims *claims = NULL;
	struct baton_work_ended ended;
	struct baton_work_end end = {.how = BATON_COMPLETE};
	size_t count = 0;
	for (const char *c = queues; *c; c++) {
		for (uint32_t i = 0; i < BATON_QUEUE_SHARDS; i++)
			shards[count++] = (struct baton_shard){{c, 1}, i, 10, 10};
	}
	assert_int_equal(baton_shard_take(r, shards, count, owned), BATON_OK);
	if (done)
		end.proof = done->proof;
	const struct baton_tick t = {.shards = shards,
	                             .shard_count = count,
	                             .owned = owned,
	                             .ends = &end,
	                             .end_count = done ? 1 : 0,
	                             .ended = &ended};
	assert_int_equal(baton_runner_tick(r, &t, &claims), BATON_OK);
	if (claims)
		keep_claims(w, claims);
	assert_sound(w);
	return claims;
}

static void runners_and_pullers_share_a_key(void **state)
{
	struct world *w = *state;
	struct baton_runner *one = enlist(w, "one");
	struct baton_batch_id a = put_key(w, "a", "k"), b = put_key(w, "b", "k");
	struct baton_batch_id a2 = put_key(w, "a", "k");
	const struct baton_work_claims *c = tick(w, one, "a", NULL);
	assert_int_equal(c->count, 1);
	assert_id(c->claims[0].batches[0].id, a);
	assert_none(w, "b");
	const struct baton_work_claims *again = tick(w, one, "a", &c->claims[0]);
	assert_int_equal(again->count, 1);
	assert_id(again->claims[0].batches[0].id, a2);
	assert_null(tick(w, one, "a", &again->claims[0]));
	const struct baton_work_claim *pulled = assert_next(w, "b", &b);
	put_key(w, "a", "k");
	assert_null(tick(w, one, "a", NULL));
	advance(w, 1000);
	assert_int_equal(tick(w, one, "a", NULL)->count, 1); /* the puller has lost it */
	assert_int_equal(end(w, pulled, BATON_COMPLETE).err, BATON_NOT_HELD);
	baton_runner_leave(one);
}

static void one_tick_over_two_queues_takes_a_key_once(void **state)
{
	struct world *w = *state;
	struct baton_runner *one = enlist(w, "one");
	limit_is(w, "a", 2);
	put_key(w, "a", "k");
	put_key(w, "b", "k");
	put_key(w, "b", "l");
	assert_int_equal(tick(w, one, "ab", NULL)->count, 2);
	assert_int_equal(tick(w, one, "ab", NULL)->count, 1);
	put_key(w, "a", "k");
	assert_null(tick(w, one, "ab", NULL));
	baton_runner_leave(one);
}

static void a_takeover_frees_the_keys_for_the_other_queue(void **state)
{
	struct world *w = *state;
	struct baton_runner *lost = enlist(w, "one"), *next = enlist(w, "two");
	struct baton_batch_id a = put_key(w, "a", "k"), b = put_key(w, "b", "k");
	assert_int_equal(tick(w, lost, "a", NULL)->count, 1);
	assert_null(tick(w, next, "b", NULL));
	struct baton_runner_info infos[2];
	size_t count;
	assert_int_equal(baton_runner_list(w->store, 0, infos, 2, &count), BATON_OK);
	unsigned rings = w->rings;
	assert_int_equal(baton_runner_take_over(w->store, &infos[0]), BATON_OK);
	assert_true(w->rings > rings);
	assert_sound(w);
	const struct baton_work_claims *c = tick(w, next, "b", NULL);
	assert_int_equal(c->count, 1);
	assert_id(c->claims[0].batches[0].id, b);
	assert_null(tick(w, next, "a", NULL));
	c = tick(w, next, "ab", &c->claims[0]);
	assert_id(c->claims[0].batches[0].id, a);
	assert_int_equal(c->claims[0].batches[0].attempt, 2);
	baton_runner_leave(lost);
	baton_runner_leave(next);
}

static void a_runner_that_leaves_gives_its_keys_to_the_other_queue(void **state)
{
	struct world *w = *state;
	struct baton_runner *one = enlist(w, "one");
	put_key(w, "a", "k");
	struct baton_batch_id b = put_key(w, "b", "k");
	assert_int_equal(tick(w, one, "a", NULL)->count, 1);
	assert_none(w, "b");
	baton_runner_leave(one);
	assert_next(w, "b", &b);
}

static void another_process_keeps_to_it(void **state)
{
	struct world *w = *state;
	struct baton_store *own = w->store, *twin = world_twin(w);
	struct baton_batch_id a = put_key(w, "a", "k"), b = put_key(w, "b", "k");
	const struct baton_work_claim *c = assert_next(w, "a", &a);
	w->store = twin;
	assert_none(w, "b");
	complete(w, c);
	c = assert_next(w, "b", &b);
	w->store = own;
	put_key(w, "a", "k");
	assert_none(w, "a");
	complete(w, c);
	assert_non_null(claim(w, "a", 1));
	assert_sound(w);
}

#define CLASS_TEST(f) cmocka_unit_test_setup_teardown(f, setup, world_teardown)

static const struct CMUnitTest tests[] = {
	CLASS_TEST(a_key_is_held_once_over_queues),
	CLASS_TEST(queues_without_a_class_share_nothing),
	CLASS_TEST(each_queue_keeps_its_order_and_the_first_who_asks_gets_the_key),
	CLASS_TEST(one_that_is_paused_is_in_nobodys_way),
	CLASS_TEST(a_limit_is_that_of_all_and_holds_at_once),
	CLASS_TEST(a_call_takes_a_key_of_a_class_once),
	CLASS_TEST(an_end_rings_for_the_other_queue),
	CLASS_TEST(why_names_the_holder_in_the_other_queue),
	CLASS_TEST(an_expired_claim_gives_its_key_to_the_other_queue),
	CLASS_TEST(a_late_claim_that_nobody_saw_is_renewed_and_keeps_its_key),
	CLASS_TEST(work_that_keeps_its_key_until_its_next_attempt_keeps_it_from_all),
	CLASS_TEST(work_that_gives_its_key_up_gives_it_to_all),
	CLASS_TEST(one_that_is_cancelled_while_it_keeps_its_key_lets_it_go),
	CLASS_TEST(one_that_dies_lets_its_key_go_and_comes_back_behind_its_holder),
	CLASS_TEST(fences_grow_along_a_key_over_queues),
	CLASS_TEST(fences_grow_also_when_a_queue_has_left),
	CLASS_TEST(a_lane_whose_first_job_has_a_key_waits_for_other_queues),
	CLASS_TEST(several_keys_are_had_together_over_queues),
	CLASS_TEST(a_queue_that_joins_gets_the_policy_of_the_class),
	CLASS_TEST(a_queue_that_joins_changes_the_limit_of_the_class),
	CLASS_TEST(a_queue_leaves_while_it_has_no_jobs),
	CLASS_TEST(a_queue_with_jobs_does_not_join),
	CLASS_TEST(what_cannot_be_in_a_class_is_refused),
	CLASS_TEST(a_lane_of_a_class_is_not_handed_out_by_its_lease),
	CLASS_TEST(a_class_has_so_many_queues_at_most),
	CLASS_TEST(runners_and_pullers_share_a_key),
	CLASS_TEST(one_tick_over_two_queues_takes_a_key_once),
	CLASS_TEST(a_takeover_frees_the_keys_for_the_other_queue),
	CLASS_TEST(a_runner_that_leaves_gives_its_keys_to_the_other_queue),
	CLASS_TEST(another_process_keeps_to_it),
};

WORLD_MAIN("class", tests)
