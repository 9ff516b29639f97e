/* What is said of the keys of a class holds over all of its queues: how often they start. */
#include <baton/shard.h>

#include "world.h"

#define CLASS "tenant"

static void change(struct world *w, const char *queue, const struct baton_queue_policy *p,
                   uint32_t fields)
{
	assert_int_equal(baton_queue_change(w->store, baton_str_z(queue), p, fields), BATON_OK);
}

static void class_is(struct world *w, const char *queue, const char *name)
{
	struct baton_queue_policy p = baton_queue_policy_default();
	snprintf(p.key_class, sizeof p.key_class, "%s", name);
	change(w, queue, &p, BATON_POLICY_KEY_CLASS);
}

/* Two queues of a class, whose failures are tried again at once. */
static int setup(void **state)
{
	int e = world_setup(state);
	if (e != 0)
		return e;
	set_attempts(*state, "a", 5);
	set_attempts(*state, "b", 5);
	class_is(*state, "a", CLASS);
	class_is(*state, "b", CLASS);
	return 0;
}

#define SHARED_TEST(f) cmocka_unit_test_setup_teardown(f, setup, world_teardown)

static struct baton_batch_id put_key(struct world *w, const char *queue, const char *key)
{
	struct baton_batch b = batch_of(queue, NULL, NULL);
	b.key = baton_str_z(key);
	return put_batch(w, &b);
}

static struct baton_batch_id put_guest(struct world *w, const char *queue, const char *lane,
                                       const char *key)
{
	struct baton_batch b = batch_of(queue, lane, NULL);
	b.key = baton_str_z(key);
	return put_batch(w, &b);
}

static void rate_is(struct world *w, const char *queue, uint64_t starts, int64_t window_ms)
{
	struct baton_queue_policy p = baton_queue_policy_default();
	p.key_rate = (struct baton_key_rate){starts, baton_duration_ms(window_ms)};
	change(w, queue, &p, BATON_POLICY_KEY_RATE);
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

static void assert_done(struct world *w, const char *queue, const struct baton_batch_id *id)
{
	complete(w, assert_next(w, queue, id));
	assert_sound(w);
}

static void assert_none(struct world *w, const char *queue)
{
	assert_null(claim(w, queue, 1));
	assert_sound(w);
}

/* When something is due for who claims from the queue, after the beginning; -1: nothing is. */
static int64_t next_due(struct world *w, const char *queue)
{
	struct baton_store_time due;
	enum baton_err e = baton_work_next_due(w->store, baton_str_z(queue), &due);
	return e == BATON_OK ? due.ms - START_MS : -1;
}

static void starts_of_a_key_count_over_queues(void **state)
{
	struct world *w = *state;
	rate_is(w, "a", 2, 1000);
	assert_int_equal(policy(w, "b").key_rate.starts, 2);
	struct baton_batch_id a1 = put_key(w, "a", "k"), b1 = put_key(w, "b", "k");
	struct baton_batch_id a2 = put_key(w, "a", "k"), b2 = put_key(w, "b", "k");
	struct baton_batch_id other = put_key(w, "b", "l");
	assert_done(w, "a", &a1);
	advance(w, 400);
	assert_done(w, "b", &b1);
	assert_none(w, "a");
	assert_done(w, "b", &other);
	assert_none(w, "b");
	assert_int_equal(look(w, &a2)->why, BATON_WHY_RATE);
	assert_int_equal(look(w, &b2)->why, BATON_WHY_RATE);
	assert_int_equal(look(w, &b2)->due.ms, START_MS + 1000);
	assert_int_equal(next_due(w, "a"), 1000);
	assert_int_equal(next_due(w, "b"), 1000);
	advance(w, 599);
	assert_none(w, "b");
	advance(w, 1);
	assert_done(w, "b", &b2); /* the first start was that of the other queue */
	assert_none(w, "a");
	advance(w, 399);
	assert_none(w, "a");
	advance(w, 1);
	assert_done(w, "a", &a2);
}

static void a_line_that_is_made_in_another_queue_waits_for_the_window(void **state)
{
	struct world *w = *state;
	rate_is(w, "b", 1, 1000);
	struct baton_batch_id a = put_key(w, "a", "k");
	assert_done(w, "a", &a);
	struct baton_batch_id b = put_key(w, "b", "k"), g = put_guest(w, "b", "x", "k");
	assert_none(w, "b");
	assert_int_equal(look(w, &b)->why, BATON_WHY_RATE);
	advance(w, 1000);
	assert_done(w, "b", &b);
	assert_none(w, "b");
	advance(w, 1000);
	assert_done(w, "b", &g); /* it asks for the key from a lane */
	a = put_key(w, "a", "k");
	assert_none(w, "a");
	advance(w, 1000);
	assert_done(w, "a", &a);
}

static void a_window_ends_for_all_queues_though_one_alone_is_asked(void **state)
{
	struct world *w = *state;
	rate_is(w, "a", 1, 1000);
	struct baton_batch_id a = put_key(w, "a", "k");
	assert_done(w, "a", &a);
	struct baton_batch_id b = put_key(w, "b", "k");
	assert_none(w, "b");
	advance(w, 1000);
	assert_none(w, "a"); /* which sees to it */
	assert_int_equal(look(w, &b)->why, BATON_WHY_READY);
	assert_done(w, "b", &b);
}

static void who_waits_for_another_queue_is_told_that_a_window_is_over(void **state)
{
	struct world *w = *state;
	const struct baton_store_wait wait = {.queue = BATON_STR("b"), .until = {0}};
	uint64_t seen = 0;
	size_t count = 0;
	rate_is(w, "a", 1, 1000);
	struct baton_batch_id a = put_key(w, "a", "k");
	assert_done(w, "a", &a);
	struct baton_batch_id b = put_key(w, "b", "k");
	assert_none(w, "b");
	advance(w, 1000);
	assert_int_equal(baton_store_wait(w->store, &wait, &seen), BATON_OK);
	assert_int_equal(baton_store_wait(w->store, &wait, &seen), BATON_TIMEOUT);
	assert_int_equal(baton_store_tidy(w->store, 100, &count), BATON_OK);
	assert_int_equal(count, 1);
	assert_int_equal(baton_store_wait(w->store, &wait, &seen), BATON_OK);
	assert_done(w, "b", &b);
}

static void a_change_of_the_rate_counts_the_starts_of_all_queues(void **state)
{
	struct world *w = *state;
	rate_is(w, "a", 3, 1000);
	for (int i = 0; i < 3; i++) {
		const char *queue = i == 1 ? "b" : "a";
		struct baton_batch_id id = put_key(w, queue, "k");
		assert_done(w, queue, &id);
	}
	struct baton_batch_id a = put_key(w, "a", "k"), b = put_key(w, "b", "k");
	assert_none(w, "a");
	rate_is(w, "b", 4, 1000);
	assert_sound(w);
	assert_done(w, "b", &b);
	assert_none(w, "a");
	rate_is(w, "a", 0, 0);
	assert_sound(w);
	assert_done(w, "a", &a);
	rate_is(w, "a", 1, 1000);
	assert_sound(w);
}

static void starts_stay_with_the_class_when_a_queue_leaves(void **state)
{
	struct world *w = *state;
	rate_is(w, "a", 1, 1000);
	struct baton_batch_id a = put_key(w, "a", "k");
	assert_done(w, "a", &a);
	class_is(w, "a", "");
	assert_sound(w);
	struct baton_batch_id b = put_key(w, "b", "k");
	a = put_key(w, "a", "k");
	assert_none(w, "b");
	assert_done(w, "a", &a); /* on its own it has started none */
	assert_int_equal(next_due(w, "b"), 1000);
	advance(w, 1000);
	assert_done(w, "b", &b);
}

static void starts_of_one_that_joins_do_not_count(void **state)
{
	struct world *w = *state;
	rate_is(w, "a", 1, 1000);
	rate_is(w, "c", 1, 5000);
	struct baton_batch_id c = put_key(w, "c", "k");
	assert_done(w, "c", &c);
	class_is(w, "c", CLASS);
	assert_sound(w);
	assert_int_equal(policy(w, "c").key_rate.window.ns, 1000000000);
	c = put_key(w, "c", "k");
	assert_done(w, "c", &c);
	struct baton_batch_id a = put_key(w, "a", "k");
	assert_none(w, "a");
	advance(w, 1000);
	assert_done(w, "a", &a);
}

static void the_last_of_a_class_keeps_its_starts(void **state)
{
	struct world *w = *state;
	rate_is(w, "a", 1, 1000);
	class_is(w, "b", "");
	struct baton_batch_id a = put_key(w, "a", "k");
	assert_done(w, "a", &a);
	class_is(w, "a", "");
	a = put_key(w, "a", "k");
	assert_none(w, "a");
	advance(w, 1000);
	assert_done(w, "a", &a);
}

static void a_job_with_several_keys_starts_all_of_them_over_queues(void **state)
{
	struct world *w = *state;
	const struct baton_str both[] = {BATON_STR("k"), BATON_STR("l")};
	struct baton_batch several = batch_of("a", NULL, NULL);
	several.keys = both;
	several.key_count = 2;
	rate_is(w, "a", 1, 1000);
	struct baton_batch_id first = put_key(w, "b", "l");
	assert_done(w, "b", &first);
	struct baton_batch_id id = put_batch(w, &several);
	assert_none(w, "a");
	assert_int_equal(look(w, &id)->why, BATON_WHY_RATE);
	advance(w, 1000);
	assert_done(w, "a", &id);
	struct baton_batch_id k = put_key(w, "b", "k"), l = put_key(w, "b", "l");
	assert_none(w, "b");
	advance(w, 1000);
	assert_done(w, "b", &k);
	assert_done(w, "b", &l);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SHARED_TEST(starts_of_a_key_count_over_queues),
		SHARED_TEST(a_line_that_is_made_in_another_queue_waits_for_the_window),
		SHARED_TEST(a_window_ends_for_all_queues_though_one_alone_is_asked),
		SHARED_TEST(who_waits_for_another_queue_is_told_that_a_window_is_over),
		SHARED_TEST(a_change_of_the_rate_counts_the_starts_of_all_queues),
		SHARED_TEST(starts_stay_with_the_class_when_a_queue_leaves),
		SHARED_TEST(starts_of_one_that_joins_do_not_count),
		SHARED_TEST(the_last_of_a_class_keeps_its_starts),
		SHARED_TEST(a_job_with_several_keys_starts_all_of_them_over_queues),
	};
	return world_main(argc, argv, "shared", tests, sizeof tests / sizeof tests[0]);
}
