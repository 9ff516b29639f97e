/* What is said of the keys of a class holds over all of its queues: how often they start,
 * how many wait for them, and who gives way to whom; their turns are those of each
 * queue. */
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

static void bound_is(struct world *w, const char *queue, uint32_t bound)
{
	const struct baton_queue_policy p = {.key_waiting_max = bound};
	change(w, queue, &p, BATON_POLICY_KEY_WAITING_MAX);
}

static void assert_full(struct world *w, const char *queue, const char *lane, const char *key)
{
	struct baton_batch b = batch_of(queue, lane, NULL);
	struct baton_put put;
	b.key = baton_str_z(key);
	assert_int_equal(try_put(w, &b, &put), BATON_FULL);
	assert_detail(key);
	assert_detail(queue);
	assert_sound(w);
}

static void who_waits_for_a_key_is_counted_over_queues(void **state)
{
	struct world *w = *state;
	bound_is(w, "a", 3);
	assert_int_equal(policy(w, "b").key_waiting_max, 3);
	struct baton_batch_id a1 = put_key(w, "a", "k"), b1 = put_key(w, "b", "k");
	put_key(w, "a", "k");
	assert_full(w, "a", NULL, "k");
	assert_full(w, "b", NULL, "k");
	put_key(w, "b", "l");
	const struct baton_work_claim *c = assert_next(w, "b", &b1);
	put_key(w, "b", "k"); /* one that runs waits no more */
	assert_full(w, "a", NULL, "k");
	complete(w, c);
	assert_next(w, "a", &a1);
	put_key(w, "a", "k");
	assert_full(w, "b", NULL, "k");
}

static void so_are_those_in_lanes_and_with_several_keys(void **state)
{
	struct world *w = *state;
	const struct baton_str both[] = {BATON_STR("k"), BATON_STR("l")};
	struct baton_batch several = batch_of("a", NULL, NULL);
	struct baton_put put;
	several.keys = both;
	several.key_count = 2;
	put_guest(w, "a", "x", "k");
	bound_is(w, "b", 3); /* what waits before it is set counts, too */
	put_guest(w, "b", "x", "k");
	put_batch(w, &several);
	assert_full(w, "b", NULL, "k");
	assert_full(w, "b", "y", "k");
	assert_full(w, "a", "x", "k");
	put_key(w, "b", "l");
	put_key(w, "b", "l");
	assert_full(w, "b", NULL, "l");
	several.queue = BATON_STR("b");
	assert_int_equal(try_put(w, &several, &put), BATON_FULL);
	bound_is(w, "a", 0);
	assert_sound(w);
	put_batch(w, &several);
	bound_is(w, "a", 4);
	assert_full(w, "b", NULL, "k");
	assert_full(w, "a", NULL, "l");
}

static void jobs_that_are_put_together_into_two_queues_count_for_each_other(void **state)
{
	struct world *w = *state;
	struct baton_batch b[4];
	struct baton_put puts[4];
	class_is(w, "c", CLASS);
	bound_is(w, "a", 3);
	put_key(w, "c", "k");
	for (int i = 0; i < 4; i++) {
		b[i] = batch_of(i % 2 ? "b" : "a", NULL, NULL);
		b[i].key = i == 3 ? BATON_STR("l") : BATON_STR("k");
	}
	assert_int_equal(baton_work_put(w->store, b, 4, puts), BATON_FULL);
	assert_sound(w);
	b[2].key = BATON_STR("l");
	assert_int_equal(baton_work_put(w->store, b, 4, puts), BATON_OK);
	assert_full(w, "c", NULL, "k");
	put_key(w, "c", "l");
	assert_full(w, "a", NULL, "l");
}

static void conflict_is(struct world *w, const char *queue, enum baton_on_conflict how)
{
	const struct baton_queue_policy p = {.on_conflict = how};
	change(w, queue, &p, BATON_POLICY_ON_CONFLICT);
}

static void assert_skipped(struct world *w, const struct baton_batch_id *id,
                           const struct baton_batch_id *by)
{
	const struct baton_work_info *info = look(w, id);
	assert_int_equal(info->state, BATON_BATCH_SKIPPED);
	assert_id(info->ahead, *by);
	assert_sound(w);
}

static void a_newcomer_is_skipped_for_who_has_its_key_in_another_queue(void **state)
{
	struct world *w = *state;
	conflict_is(w, "a", BATON_CONFLICT_SKIP);
	assert_int_equal(policy(w, "b").on_conflict, BATON_CONFLICT_SKIP);
	struct baton_batch_id a = put_key(w, "a", "k"), b = put_key(w, "b", "k");
	assert_skipped(w, &b, &a); /* it is ready, and so will run */
	struct baton_batch_id other = put_key(w, "b", "l");
	const struct baton_work_claim *c = assert_next(w, "a", &a);
	b = put_key(w, "b", "k");
	assert_skipped(w, &b, &a);
	assert_done(w, "b", &other);
	assert_none(w, "b");
	complete(w, c);
	b = put_key(w, "b", "k");
	assert_done(w, "b", &b);
	assert_int_equal(counts(w, "b").ready, 0);
	assert_int_equal(counts(w, "a").ready, 0);
}

static void the_latest_takes_the_place_of_one_that_waits_in_another_queue(void **state)
{
	struct world *w = *state;
	conflict_is(w, "b", BATON_CONFLICT_LATEST);
	struct baton_batch_id a1 = put_key(w, "a", "k"), b1 = put_key(w, "b", "k");
	const struct baton_work_claim *c = assert_next(w, "a", &a1);
	struct baton_batch_id a2 = put_key(w, "a", "k");
	assert_skipped(w, &b1, &a2);
	assert_int_equal(counts(w, "b").ready, 0);
	struct baton_batch_id b2 = put_key(w, "b", "k");
	assert_skipped(w, &a2, &b2);
	complete(w, c);
	assert_none(w, "a");
	assert_done(w, "b", &b2);
}

static void the_first_stays_that_waits_in_whichever_queue(void **state)
{
	struct world *w = *state;
	conflict_is(w, "b", BATON_CONFLICT_FIRST);
	struct baton_batch_id a1 = put_key(w, "a", "k"), b1 = put_key(w, "b", "k");
	struct baton_batch_id a2 = put_key(w, "a", "k");
	assert_skipped(w, &a2, &b1);
	assert_done(w, "a", &a1);
	struct baton_batch_id a3 = put_key(w, "a", "k");
	assert_int_equal(state_of(w, &a3), BATON_BATCH_READY);
	assert_done(w, "b", &b1);
	assert_done(w, "a", &a3);
}

static void the_oldest_is_replaced_in_whichever_queue(void **state)
{
	struct world *w = *state;
	conflict_is(w, "a", BATON_CONFLICT_REPLACE);
	struct baton_batch_id a1 = put_key(w, "a", "k"), b1 = put_key(w, "b", "k");
	assert_skipped(w, &a1, &b1); /* which only waited */
	const struct baton_work_claim *c = assert_next(w, "b", &b1);
	struct baton_batch_id a2 = put_key(w, "a", "k");
	assert_int_equal(state_of(w, &b1), BATON_BATCH_CLAIMED);
	assert_true(
		renew(w, c, 1000).cancel); /* it is asked to stop, and holds the key until then */
	assert_none(w, "a");
	end(w, c, BATON_ABANDON);
	assert_skipped(w, &b1, &a2);
	assert_done(w, "a", &a2);
}

static void one_that_keeps_its_key_is_replaced_from_another_queue(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "b");
	p.retry.backoff = BATON_BACKOFF_FIXED;
	p.retry.base = baton_duration_ms(100000);
	p.retry.cap = p.retry.base;
	p.on_conflict = BATON_CONFLICT_REPLACE;
	set_policy(w, "b", &p);
	struct baton_batch_id b = put_key(w, "b", "k");
	end(w, assert_next(w, "b", &b), BATON_FAIL);
	struct baton_batch_id a = put_key(w, "a", "k");
	assert_skipped(w, &b, &a);
	assert_int_equal(counts(w, "b").delayed, 0);
	assert_done(w, "a", &a);
}

static void what_is_due_gives_way_over_queues(void **state)
{
	struct world *w = *state;
	struct baton_batch later = batch_of("b", NULL, NULL);
	later.key = BATON_STR("k");
	later.delay = baton_duration_ms(100);
	conflict_is(w, "a", BATON_CONFLICT_SKIP);
	struct baton_batch_id b = put_batch(w, &later), a = put_key(w, "a", "k");
	const struct baton_work_claim *c = assert_next(w, "a", &a);
	advance(w, 100);
	assert_none(w, "a"); /* which sees to it */
	assert_skipped(w, &b, &a);
	complete(w, c);
	conflict_is(w, "a", BATON_CONFLICT_LATEST);
	a = put_key(w, "a", "k");
	c = assert_next(w, "a", &a);
	b = put_batch(w, &later);
	struct baton_batch_id waits = put_key(w, "a", "k");
	advance(w, 100);
	assert_none(w, "b");
	assert_skipped(w, &waits, &b);
	assert_int_equal(counts(w, "a").ready, 0);
	complete(w, c);
	assert_done(w, "b", &b);
}

static void as_many_as_may_run_are_no_conflict_over_queues(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "a");
	p.key_limit = 2;
	p.on_conflict = BATON_CONFLICT_SKIP;
	set_policy(w, "a", &p);
	struct baton_batch_id a = put_key(w, "a", "k"), b = put_key(w, "b", "k");
	struct baton_batch_id third = put_key(w, "b", "k");
	assert_skipped(w, &third, &a);
	const struct baton_work_claim *c = assert_next(w, "b", &b);
	assert_next(w, "a", &a);
	third = put_key(w, "a", "k");
	assert_skipped(w, &third, &a);
	complete(w, c);
	third = put_key(w, "a", "k");
	assert_done(w, "a", &third);
}

static void several_that_are_put_together_give_way_over_queues(void **state)
{
	struct world *w = *state;
	struct baton_batch b[4];
	struct baton_put puts[4];
	conflict_is(w, "a", BATON_CONFLICT_LATEST);
	struct baton_batch_id first = put_key(w, "b", "k"), second = put_key(w, "b", "k");
	for (int i = 0; i < 4; i++) {
		b[i] = batch_of(i % 2 ? "b" : "a", NULL, NULL);
		b[i].key = BATON_STR("k");
	}
	assert_int_equal(baton_work_put(w->store, b, 4, puts), BATON_OK);
	assert_skipped(w, &second, &puts[0].id);
	for (int i = 0; i < 3; i++)
		assert_skipped(w, &puts[i].id, &puts[i + 1].id);
	assert_done(w, "b", &first);
	assert_none(w, "a");
	assert_done(w, "b", &puts[3].id);
}

static void a_queue_of_a_class_that_has_guests_keeps_others_from_conflicts(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = {.on_conflict = BATON_CONFLICT_SKIP};
	struct baton_batch_id b = put_guest(w, "b", "x", "k");
	assert_int_equal(baton_queue_change(w->store, BATON_STR("a"), &p, BATON_POLICY_ON_CONFLICT),
	                 BATON_INVALID);
	assert_detail("queue \"b\" has jobs");
	assert_detail("on_conflict is not wait");
	assert_done(w, "b", &b);
	conflict_is(w, "a", BATON_CONFLICT_SKIP);
	assert_sound(w);
	struct baton_batch guest = batch_of("b", "x", NULL);
	struct baton_put put;
	guest.key = BATON_STR("k");
	assert_int_equal(try_put(w, &guest, &put), BATON_INVALID);
}

static void fair_is(struct world *w, const char *queue, enum baton_key_fair fair)
{
	const struct baton_queue_policy p = {.key_fair = fair};
	change(w, queue, &p, BATON_POLICY_KEY_FAIR);
}

/* Claims and completes one job after the other, and says of which keys they were. */
static void assert_keys(struct world *w, const char *queue, const char *letters)
{
	char were[100] = "";
	for (size_t i = 0; i < strlen(letters); i++) {
		const struct baton_work_claim *c = claim(w, queue, 1);
		if (!c)
			break;
		were[i] = c->key.ptr[0];
		were[i + 1] = '\0';
		complete(w, c);
		assert_sound(w);
	}
	assert_string_equal(were, letters);
}

static void put_keys(struct world *w, const char *queue, const char *letters)
{
	for (; *letters; letters++)
		put_key(w, queue, (const char[]){*letters, '\0'});
}

static void keys_of_a_class_take_turns_in_each_queue(void **state)
{
	struct world *w = *state;
	fair_is(w, "a", BATON_KEY_FAIR_ON);
	assert_int_equal(policy(w, "b").key_fair, BATON_KEY_FAIR_OFF); /* each has its order */
	put_keys(w, "a", "kkkll");
	put_keys(w, "b", "kkl");
	assert_keys(w, "a", "klk");
	assert_keys(w, "b", "kkl");
	assert_keys(w, "a", "lk");
}

static void turns_in_one_queue_take_nobodys_place_in_another(void **state)
{
	struct world *w = *state;
	fair_is(w, "a", BATON_KEY_FAIR_ON);
	fair_is(w, "b", BATON_KEY_FAIR_ON);
	put_keys(w, "a", "kkk");
	put_keys(w, "b", "kl");
	assert_keys(w, "a", "kkk");
	put_keys(w, "b", "m");
	assert_keys(w, "b", "klm"); /* and not behind those that came later */
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
		SHARED_TEST(who_waits_for_a_key_is_counted_over_queues),
		SHARED_TEST(so_are_those_in_lanes_and_with_several_keys),
		SHARED_TEST(jobs_that_are_put_together_into_two_queues_count_for_each_other),
		SHARED_TEST(a_newcomer_is_skipped_for_who_has_its_key_in_another_queue),
		SHARED_TEST(the_latest_takes_the_place_of_one_that_waits_in_another_queue),
		SHARED_TEST(the_first_stays_that_waits_in_whichever_queue),
		SHARED_TEST(the_oldest_is_replaced_in_whichever_queue),
		SHARED_TEST(one_that_keeps_its_key_is_replaced_from_another_queue),
		SHARED_TEST(what_is_due_gives_way_over_queues),
		SHARED_TEST(as_many_as_may_run_are_no_conflict_over_queues),
		SHARED_TEST(several_that_are_put_together_give_way_over_queues),
		SHARED_TEST(a_queue_of_a_class_that_has_guests_keeps_others_from_conflicts),
		SHARED_TEST(keys_of_a_class_take_turns_in_each_queue),
		SHARED_TEST(turns_in_one_queue_take_nobodys_place_in_another),
	};
	return world_main(argc, argv, "shared", tests, sizeof tests / sizeof tests[0]);
}
