/* Waiting for work. */
#include <pthread.h>

#include "world.h"

/* A thread that waits once. */
struct waiter {
	struct world *w;
	struct baton_store_wait wait;
	uint64_t seen;
	enum baton_err err;
	pthread_t thread;
};

static void *run(void *arg)
{
	struct waiter *x = arg;
	x->err = baton_store_wait(x->w->store, &x->wait, &x->seen);
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

/* Begins to wait for an hour at most, and returns once it sleeps. */
static void start(struct world *w, struct waiter *x, const char *queue)
{
	*x = (struct waiter){.w = w,
	                     .wait = {.queue = baton_str_z(queue), .until = in_ms(w, 3600000)}};
	assert_int_equal(baton_store_wait(w->store, &x->wait, &x->seen), BATON_OK);
	sleep_again(w, x);
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
	struct waiter x = {.w = w, .wait = {.until = in_ms(w, 3600000), .told = &told}};
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
	struct waiter x = {.w = w, .wait = {.until = in_ms(w, 1000), .cancel = &word}};
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
	WORLD_TEST(the_wait_ends_when_something_is_due),
	WORLD_TEST(the_wait_ends_when_a_claim_expires),
	WORLD_TEST(what_is_due_in_another_queue_does_not_end_it),
	WORLD_TEST(the_wait_ends_at_its_time),
	WORLD_TEST(a_poke_ends_the_wait),
	WORLD_TEST(a_word_that_is_set_cancels_the_wait),
};

WORLD_MAIN("wait", tests)
