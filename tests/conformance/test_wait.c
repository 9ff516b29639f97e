/* Waiting for work. */
#include <pthread.h>

#include <baton/shard.h>

#include "world.h"

/* A thread that waits once. */
struct waiter {
	struct world *w;
	struct baton_store *store;
	struct baton_store_wait wait;
	uint64_t seen;
	enum baton_err err;
	pthread_t thread;
};

static void *run(void *arg)
{
	struct waiter *x = arg;
	x->err = baton_store_wait(x->store, &x->wait, &x->seen);
	return NULL;
}

static struct baton_mono in_ms(struct world *w, int64_t ms)
{
	return baton_mono_add(w->clock.clock.now(&w->clock.clock), baton_duration_ms(ms));
}

/* Waits, and returns once it sleeps. */
static void sleep_again(struct world *w, struct waiter *x)
{
	assert_int_equal(pthread_create(&x->thread, NULL, run, x), 0);
	fake_clock_wait_blocked(&w->clock, 1);
}

/* Begins to wait through that handle for an hour at most, and returns once it sleeps. */
static void start_at(struct world *w, struct baton_store *store, struct waiter *x,
                     const char *queue)
{
	*x = (struct waiter){.w = w,
	                     .store = store,
	                     .wait = {.queue = baton_str_z(queue), .until = in_ms(w, 3600000)}};
	assert_int_equal(baton_store_wait(store, &x->wait, &x->seen), BATON_OK);
	sleep_again(w, x);
}

static void start(struct world *w, struct waiter *x, const char *queue)
{
	start_at(w, w->store, x, queue);
}

static enum baton_err finish(struct waiter *x)
{
	assert_int_equal(pthread_join(x->thread, NULL), 0);
	return x->err;
}

static void the_first_look_is_always_worth_it(void **state)
{
	struct world *w = *state;
	uint64_t seen = 0;
	const struct baton_store_wait wait = {.until = in_ms(w, 0)};
	assert_int_equal(baton_store_wait(w->store, &wait, &seen), BATON_OK);
	assert_int_not_equal(seen, 0);
	assert_int_equal(baton_store_wait(w->store, &wait, &seen), BATON_TIMEOUT);
}

static void a_put_ends_the_wait(void **state)
{
	struct world *w = *state;
	struct waiter x;
	start(w, &x, "q");
	put(w, "q", "x");
	assert_int_equal(finish(&x), BATON_OK);
}

static void what_was_put_before_the_wait_is_not_missed(void **state)
{
	struct world *w = *state;
	uint64_t seen = 0;
	const struct baton_store_wait wait = {.until = in_ms(w, 1000)};
	assert_int_equal(baton_store_wait(w->store, &wait, &seen), BATON_OK);
	put(w, "q", "x");
	assert_int_equal(baton_store_wait(w->store, &wait, &seen), BATON_OK);
}

/* Though nobody claims it: who waits does not turn round and round. */
static void what_is_due_is_told_once(void **state)
{
	struct world *w = *state;
	struct baton_store_time told = {0};
	struct waiter x = {.w = w,
	                   .store = w->store,
	                   .wait = {.until = in_ms(w, 3600000), .told = &told}};
	struct baton_batch b = batch_of("q", "", NULL);
	for (int64_t i = 1; i <= 2; i++) {
		b.delay = baton_duration_ms(i * 1000);
		put_batch(w, &b);
	}
	assert_int_equal(baton_store_wait(w->store, &x.wait, &x.seen), BATON_OK);
	for (int i = 0; i < 2; i++) {
		sleep_again(w, &x);
		advance(w, 1000);
		assert_int_equal(finish(&x), BATON_OK);
	}
	sleep_again(w, &x);
	advance(w, 3600000);
	assert_int_equal(finish(&x), BATON_TIMEOUT);
}

static void a_put_through_another_handle_is_noticed_in_time(void **state)
{
	struct world *w = *state;
	struct baton_store *twin = world_twin(w);
	struct baton_batch b = batch_of("q", "x", NULL);
	struct baton_put answer;
	struct waiter x;
	start(w, &x, "q");
	assert_int_equal(baton_work_put(twin, &b, 1, &answer), BATON_OK);
	advance(w, 1000);
	assert_int_equal(finish(&x), BATON_OK);
}

/* Something that makes work of queue "q" ready, and what has to be before it. */
struct change {
	void (*before)(struct world *w);
	void (*make)(struct world *w);
};

static const struct baton_work_claim *had; /* of those that have something claimed before */

static void nothing(struct world *w)
{
	(void)w;
}

static void put_one(struct world *w)
{
	put(w, "q", "x");
}

static void have_one(struct world *w)
{
	put(w, "q", "x");
	had = claim(w, "q", 1);
}

static void have_one_of_two(struct world *w)
{
	have_one(w);
	put(w, "q", "x");
}

static void have_one_of_a_key(struct world *w)
{
	struct baton_batch b = batch_of("q", "", NULL);
	b.key = BATON_STR("k");
	put_batch(w, &b);
	put_batch(w, &b);
	had = claim(w, "q", 1);
}

static void have_a_dead_one(struct world *w)
{
	have_one(w);
	end(w, had, BATON_REJECT);
}

static void have_a_retry_before_another(struct world *w)
{
	have_one_of_two(w);
	const struct baton_work_end e = {.proof = had->proof,
	                                 .how = BATON_FAIL,
	                                 .delay = baton_duration_s(7200)};
	assert_int_equal(end_with(w, &e).err, BATON_OK);
}

static void be_paused(struct world *w)
{
	put(w, "q", "x");
	assert_int_equal(baton_queue_pause(w->store, BATON_STR("q"), true), BATON_OK);
}

static void be_held_by_another(struct world *w)
{
	const struct baton_lease_ask ask = {.subject = BATON_STR("pull/q"),
	                                    .owner = &w->other,
	                                    .ttl = baton_duration_s(7200)};
	struct baton_lease_answer answer;
	put(w, "q", "x");
	assert_int_equal(baton_lease_claim(w->store, &ask, 1, &answer), BATON_OK);
	assert_int_equal(try_claim(w, "q"), BATON_BUSY);
}

static void have_a_schedule(struct world *w)
{
	const struct baton_schedule schedule = {.name = BATON_STR("s"),
	                                        .cron = BATON_STR("@yearly"),
	                                        .queue = BATON_STR("q")};
	assert_int_equal(baton_schedule_set(w->store, &schedule), BATON_OK);
}

static void complete_it(struct world *w)
{
	complete(w, had);
}

static void abandon_it(struct world *w)
{
	end(w, had, BATON_ABANDON);
}

static void cancel_the_first(struct world *w)
{
	const struct baton_batch_id id = {"1"};
	assert_int_equal(cancel(w, &id), BATON_CANCEL_REMOVED);
}

static void revive_the_first(struct world *w)
{
	const struct baton_batch_id id = {"1"};
	assert_int_equal(revive(w, &id), BATON_OK);
}

static void resume(struct world *w)
{
	assert_int_equal(baton_queue_pause(w->store, BATON_STR("q"), false), BATON_OK);
}

static void take_it_away(struct world *w)
{
	const struct baton_str subject = BATON_STR("pull/q");
	struct baton_lease_answer answer;
	assert_int_equal(baton_lease_force(w->store, &subject, 1, &answer), BATON_OK);
}

static void raise_the_limit(struct world *w)
{
	const struct baton_queue_policy p = {.key_limit = 2};
	assert_int_equal(baton_queue_change(w->store, BATON_STR("q"), &p, BATON_POLICY_KEY_LIMIT),
	                 BATON_OK);
}

static void run_the_schedule(struct world *w)
{
	struct baton_put answer;
	assert_int_equal(baton_schedule_run(w->store, BATON_STR("s"), &answer), BATON_OK);
}

static const struct change changes[] = {
	{nothing, put_one},
	{have_one_of_two, complete_it},
	{have_one, abandon_it},
	{have_one_of_a_key, complete_it},
	{have_one_of_a_key, raise_the_limit},
	{have_a_retry_before_another, cancel_the_first},
	{have_a_dead_one, revive_the_first},
	{be_paused, resume},
	{be_held_by_another, take_it_away},
	{have_a_schedule, run_the_schedule},
};

/* Without any of the calls that wake those who wait: nothing rings at another handle. */
static void whatever_makes_work_ready_is_noticed_in_time_though_nobody_rings(void **state)
{
	for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
		struct waiter x;
		world_teardown(state);
		world_setup(state);
		struct world *w = *state;
		changes[i].before(w);
		start_at(w, world_twin(w), &x, "q");
		changes[i].make(w);
		advance(w, 1000);
		assert_int_equal(finish(&x), BATON_OK);
		assert_non_null(claim(w, "q", 1));
	}
}

static const struct baton_shard only = {BATON_STR("q"), 0, 1, 1};

/* One that has claimed the only job of "q". */
static struct baton_runner *runner_at_work(struct world *w)
{
	const struct baton_runner_ask ask = {.name = BATON_STR("r"), .ttl = baton_duration_s(3600)};
	const struct baton_queue_policy one = {.shards = 1};
	struct baton_shard_answer answer;
	const struct baton_tick tick = {.shards = &only, .shard_count = 1, .owned = &answer};
	struct baton_work_claims *claims = NULL;
	struct baton_runner *r = NULL;
	assert_int_equal(baton_queue_change(w->store, only.queue, &one, BATON_POLICY_SHARDS),
	                 BATON_OK);
	put(w, "q", "x");
	assert_int_equal(baton_runner_register(w->store, &ask, &r, NULL), BATON_OK);
	assert_int_equal(baton_shard_take(r, &only, 1, &answer), BATON_OK);
	assert_int_equal(baton_runner_tick(r, &tick, &claims), BATON_OK);
	assert_non_null(claims);
	keep_claims(w, claims);
	return r;
}

static void leave_it(struct world *w, struct baton_runner *r)
{
	(void)w;
	assert_int_equal(baton_runner_unregister(r), BATON_OK);
}

static void give_its_shard_back(struct world *w, struct baton_runner *r)
{
	struct baton_shard_answer answer;
	(void)w;
	assert_int_equal(baton_shard_give(r, &only, 1, &answer), BATON_OK);
}

static void know_nothing_of_it(struct world *w, struct baton_runner *r)
{
	(void)w;
	assert_int_equal(baton_runner_settle(r, NULL, 0), BATON_OK);
}

static void take_it_over(struct world *w, struct baton_runner *r)
{
	struct baton_runner_info info;
	size_t count;
	(void)r;
	assert_int_equal(baton_runner_list(w->store, 0, &info, 1, &count), BATON_OK);
	assert_int_equal(baton_runner_take_over(w->store, &info), BATON_OK);
}

static void what_a_runner_had_is_noticed_in_time_though_nobody_rings(void **state)
{
	static void (*const ways[])(struct world *,
	                            struct baton_runner *) = {leave_it, give_its_shard_back,
	                                                      know_nothing_of_it, take_it_over};
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		struct waiter x;
		world_teardown(state);
		world_setup(state);
		struct world *w = *state;
		struct baton_runner *r = runner_at_work(w);
		start_at(w, world_twin(w), &x, "q");
		ways[i](w, r);
		advance(w, 1000);
		assert_int_equal(finish(&x), BATON_OK);
		assert_int_equal(counts(w, "q").ready, 1);
		baton_runner_free(r);
	}
}

static void the_wait_ends_when_something_is_due(void **state)
{
	struct world *w = *state;
	struct waiter x;
	put_later(w, "q", "x", 5000);
	start(w, &x, "q");
	for (int i = 0; i < 4; i++) {
		advance(w, 1000);
		fake_clock_wait_blocked(&w->clock, 1);
	}
	advance(w, 1000);
	assert_int_equal(finish(&x), BATON_OK);
	assert_non_null(claim(w, "q", 1));
}

static void the_wait_ends_when_a_claim_expires(void **state)
{
	struct world *w = *state;
	struct waiter x;
	put(w, "q", "x");
	claim(w, "q", 1);
	start(w, &x, "q");
	advance(w, 1000);
	assert_int_equal(finish(&x), BATON_OK);
	assert_non_null(claim(w, "q", 1));
}

static void what_is_due_in_another_queue_does_not_end_it(void **state)
{
	struct world *w = *state;
	struct waiter x;
	put_later(w, "other", "x", 500);
	start(w, &x, "q");
	advance(w, 1000);
	fake_clock_wait_blocked(&w->clock, 1);
	baton_store_poke(w->store);
	assert_int_equal(finish(&x), BATON_OK);
}

static void the_wait_ends_at_its_time(void **state)
{
	struct world *w = *state;
	struct waiter x;
	start(w, &x, "q");
	advance(w, 3600000);
	assert_int_equal(finish(&x), BATON_TIMEOUT);
}

static void a_poke_ends_the_wait(void **state)
{
	struct world *w = *state;
	struct waiter x;
	start(w, &x, "q");
	baton_store_poke(w->store);
	assert_int_equal(finish(&x), BATON_OK);
}

static void a_word_that_is_set_cancels_the_wait(void **state)
{
	struct world *w = *state;
	uint32_t word = 0;
	struct waiter x = {.w = w,
	                   .store = w->store,
	                   .wait = {.until = in_ms(w, 1000), .cancel = &word}};
	assert_int_equal(baton_store_wait(w->store, &x.wait, &x.seen), BATON_OK);
	assert_int_equal(pthread_create(&x.thread, NULL, run, &x), 0);
	fake_clock_wait_blocked(&w->clock, 1);
	__atomic_store_n(&word, 1, __ATOMIC_RELEASE);
	baton_store_poke(w->store);
	assert_int_equal(finish(&x), BATON_CANCELLED);
	assert_int_equal(baton_store_wait(w->store, &x.wait, &x.seen), BATON_CANCELLED);
}

static const struct CMUnitTest tests[] = {
	WORLD_TEST(the_first_look_is_always_worth_it),
	WORLD_TEST(a_put_ends_the_wait),
	WORLD_TEST(what_was_put_before_the_wait_is_not_missed),
	WORLD_TEST(what_is_due_is_told_once),
	WORLD_TEST(a_put_through_another_handle_is_noticed_in_time),
	WORLD_TEST(whatever_makes_work_ready_is_noticed_in_time_though_nobody_rings),
	WORLD_TEST(what_a_runner_had_is_noticed_in_time_though_nobody_rings),
	WORLD_TEST(the_wait_ends_when_something_is_due),
	WORLD_TEST(the_wait_ends_when_a_claim_expires),
	WORLD_TEST(what_is_due_in_another_queue_does_not_end_it),
	WORLD_TEST(the_wait_ends_at_its_time),
	WORLD_TEST(a_poke_ends_the_wait),
	WORLD_TEST(a_word_that_is_set_cancels_the_wait),
};

WORLD_MAIN("wait", tests)
