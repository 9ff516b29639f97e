/* Putting work. */
#include "world.h"

static struct baton_batch keyed(const char *lane, const char *key, const struct baton_str *payload)
{
	struct baton_batch b = batch_of("q", lane, payload);
	b.source = baton_str_z(key);
	return b;
}

static const struct baton_str other_payload = {"other", 5};

static void the_first_batch_is_named_1_and_the_next_2(void **state)
{
	struct world *w = *state;
	assert_string_equal(put(w, "q", "").text, "1");
	assert_string_equal(put(w, "other", "lane").text, "2");
}

static void a_put_is_ready_and_makes_its_queue(void **state)
{
	struct world *w = *state;
	struct baton_batch_id id = put(w, "q", "lane");
	assert_int_equal(state_of(w, &id), BATON_BATCH_READY);
	struct baton_queue_info info = queue_info(w, "q");
	assert_int_equal(info.counts.ready, 1);
	assert_int_equal(info.policy.mode, BATON_QUEUE_OPEN);
	assert_int_equal(info.policy.shards, 16);
	assert_int_equal(info.policy.retry_lane.attempts, 5);
}

static void payloads_come_back_as_they_were_put(void **state)
{
	struct world *w = *state;
	const struct baton_str payloads[] = {{"\0\xff", 2}, {"", 0}, {"third", 5}};
	struct baton_batch b = batch_of("q", "lane", payloads);
	b.count = 3;
	put_batch(w, &b);
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_int_equal(c->batches[0].count, 3);
	assert_int_equal(c->batches[0].payloads[0].len, 2);
	assert_memory_equal(c->batches[0].payloads[0].ptr, "\0\xff", 2);
	assert_int_equal(c->batches[0].payloads[1].len, 0);
	assert_str(c->batches[0].payloads[2], "third");
}

static void all_of_a_put_are_there_or_none(void **state)
{
	struct world *w = *state;
	struct baton_batch b[] = {batch_of("q", "x", NULL), batch_of("bad/name", "x", NULL)};
	struct baton_put puts[2];
	assert_int_equal(baton_work_put(w->store, b, 2, puts), BATON_INVALID);
	assert_detail("batch 2: the queue's name is \"bad/name\"");
	struct baton_queue_info info;
	assert_int_equal(baton_queue_get(w->store, BATON_STR("q"), &info), BATON_NOT_FOUND);
	b[1] = batch_of("q", "y", NULL);
	assert_int_equal(baton_work_put(w->store, b, 2, puts), BATON_OK);
	assert_string_equal(puts[0].id.text, "1");
	assert_string_equal(puts[1].id.text, "2");
}

static void a_put_of_nothing_is_fine(void **state)
{
	struct world *w = *state;
	assert_int_equal(baton_work_put(w->store, NULL, 0, NULL), BATON_OK);
}

static void a_payload_over_the_queues_limit_is_refused(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	const struct baton_str five = {"12345", 5}, six = {"123456", 6};
	p.payload_max = 5;
	set_policy(w, "q", &p);
	struct baton_batch b[] = {batch_of("q", "", &five), batch_of("q", "", &six)};
	struct baton_put puts[2];
	assert_int_equal(baton_work_put(w->store, &b[1], 1, puts), BATON_INVALID);
	assert_detail("the payload has 6 bytes: queue \"q\" allows 5");
	assert_int_equal(baton_work_put(w->store, b, 2, puts), BATON_INVALID);
	assert_detail("batch 2: the payload has 6 bytes");
	assert_int_equal(counts(w, "q").ready, 0);
	assert_int_equal(baton_work_put(w->store, b, 1, puts), BATON_OK);
}

static void a_delay_makes_a_batch_wait_until_exactly_its_time(void **state)
{
	struct world *w = *state;
	struct baton_batch_id id = put_later(w, "q", "x", 100);
	assert_int_equal(state_of(w, &id), BATON_BATCH_DELAYED);
	assert_int_equal(look(w, &id)->due.ms, START_MS + 100);
	advance(w, 99);
	assert_null(claim(w, "q", 1));
	advance(w, 1);
	assert_id(claim(w, "q", 1)->batches[0].id, id);
}

static void a_time_that_has_passed_is_now(void **state)
{
	struct world *w = *state;
	struct baton_batch b = batch_of("q", "", NULL);
	struct baton_put answer;
	b.at.ms = START_MS;
	assert_int_equal(try_put(w, &b, &answer), BATON_OK);
	assert_int_equal(answer.state, BATON_BATCH_READY);
	b.at.ms = START_MS + 1;
	assert_int_equal(try_put(w, &b, &answer), BATON_OK);
	assert_int_equal(answer.state, BATON_BATCH_DELAYED);
}

static void a_repeated_source_key_gives_the_same_batch(void **state)
{
	struct world *w = *state;
	struct baton_batch b = keyed("lane", "key", NULL);
	struct baton_put first, again;
	assert_int_equal(try_put(w, &b, &first), BATON_OK);
	assert_false(first.existing);
	assert_int_equal(try_put(w, &b, &again), BATON_OK);
	assert_true(again.existing);
	assert_id(again.id, first.id);
	assert_int_equal(again.state, BATON_BATCH_READY);
	assert_int_equal(counts(w, "q").ready, 1);
}

static void a_source_key_belongs_to_its_queue_and_lane_or_none(void **state)
{
	struct world *w = *state;
	struct baton_batch b[] = {keyed("x", "key", NULL), keyed("y", "key", NULL),
	                          keyed("", "key", NULL), keyed("x", "key", NULL),
	                          keyed("", "key", NULL)};
	struct baton_put puts[5];
	b[3].queue = BATON_STR("other");
	assert_int_equal(baton_work_put(w->store, b, 5, puts), BATON_OK);
	assert_false(puts[1].existing);
	assert_false(puts[2].existing);
	assert_false(puts[3].existing);
	assert_true(puts[4].existing);
	assert_id(puts[4].id, puts[2].id);
}

static void a_source_key_with_other_content_is_a_conflict_for_all(void **state)
{
	struct world *w = *state;
	struct baton_batch b[] = {batch_of("q", "lane", NULL),
	                          keyed("lane", "key", &other_payload)};
	struct baton_batch first = keyed("lane", "key", NULL);
	struct baton_put puts[2];
	put_batch(w, &first);
	assert_int_equal(baton_work_put(w->store, b, 2, puts), BATON_CONFLICT);
	assert_detail("batch 2: source key \"key\" is that of job 1 in queue \"q\"");
	assert_int_equal(counts(w, "q").ready, 1);
}

static void the_delay_is_part_of_the_content(void **state)
{
	struct world *w = *state;
	struct baton_batch b = keyed("lane", "key", NULL);
	struct baton_put answer;
	b.delay = baton_duration_ms(100);
	put_batch(w, &b);
	advance(w, 50);
	assert_int_equal(try_put(w, &b, &answer), BATON_OK);
	assert_true(answer.existing);
	assert_int_equal(answer.state, BATON_BATCH_DELAYED);
	b.delay = baton_duration_ms(50);
	assert_int_equal(try_put(w, &b, &answer), BATON_CONFLICT);
}

static void the_second_of_two_equal_keys_in_a_call_sees_the_first(void **state)
{
	struct world *w = *state;
	struct baton_batch b[] = {keyed("lane", "key", NULL), keyed("lane", "key", NULL)};
	struct baton_put puts[2];
	assert_int_equal(baton_work_put(w->store, b, 2, puts), BATON_OK);
	assert_true(puts[1].existing);
	assert_id(puts[0].id, puts[1].id);
	b[1].payloads = &other_payload;
	b[0].source = b[1].source = BATON_STR("another");
	assert_int_equal(baton_work_put(w->store, b, 2, puts), BATON_CONFLICT);
	assert_int_equal(counts(w, "q").ready, 1);
}

static void a_source_key_is_known_while_claimed_and_after_completion(void **state)
{
	struct world *w = *state;
	struct baton_batch b = keyed("lane", "key", NULL);
	struct baton_put answer;
	put_batch(w, &b);
	const struct baton_work_claim *c = claim(w, "q", 1);
	assert_int_equal(try_put(w, &b, &answer), BATON_OK);
	assert_int_equal(answer.state, BATON_BATCH_CLAIMED);
	complete(w, c);
	assert_int_equal(try_put(w, &b, &answer), BATON_OK);
	assert_true(answer.existing);
	assert_string_equal(answer.id.text, "1");
	assert_int_equal(answer.state, BATON_BATCH_GONE);
	b.payloads = &other_payload;
	assert_int_equal(try_put(w, &b, &answer), BATON_CONFLICT);
}

static void a_source_key_is_forgotten_exactly_at_the_end_of_its_time(void **state)
{
	struct world *w = *state;
	struct baton_batch b = keyed("lane", "key", NULL);
	struct baton_put answer;
	put_batch(w, &b);
	complete(w, claim(w, "q", 1));
	advance(w, 86400000 - 1);
	assert_int_equal(try_put(w, &b, &answer), BATON_OK);
	assert_true(answer.existing);
	advance(w, 1);
	assert_int_equal(try_put(w, &b, &answer), BATON_OK);
	assert_false(answer.existing);
	assert_string_equal(answer.id.text, "2");
}

static void a_source_key_is_known_as_long_as_its_batch_is_there(void **state)
{
	struct world *w = *state;
	struct baton_batch b = keyed("lane", "key", NULL);
	struct baton_put answer;
	size_t count;
	put_batch(w, &b);
	advance(w, 10 * INT64_C(86400000));
	assert_int_equal(baton_store_tidy(w->store, 100, &count), BATON_OK);
	assert_int_equal(try_put(w, &b, &answer), BATON_OK);
	assert_true(answer.existing);
	complete(w, claim(w, "q", 1));
	assert_int_equal(try_put(w, &b, &answer), BATON_OK);
	assert_false(answer.existing);
}

static void a_dead_batch_keeps_its_source_key(void **state)
{
	struct world *w = *state;
	struct baton_batch b = keyed("lane", "key", NULL);
	struct baton_put answer;
	put_batch(w, &b);
	end(w, claim(w, "q", 1), BATON_REJECT);
	advance(w, 10 * INT64_C(86400000));
	assert_int_equal(try_put(w, &b, &answer), BATON_OK);
	assert_true(answer.existing);
	assert_int_equal(answer.state, BATON_BATCH_DEAD);
}

static void a_full_queue_takes_no_more_of_a_call(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	struct baton_batch b[] = {batch_of("q", "x", NULL), batch_of("q", "y", NULL)};
	struct baton_put puts[2];
	p.waiting_max = 3;
	set_policy(w, "q", &p);
	put(w, "q", "");
	put_later(w, "q", "", 1000);
	assert_int_equal(baton_work_put(w->store, b, 2, puts), BATON_FULL);
	assert_detail("batch 2: queue \"q\" has 3 jobs waiting, and its waiting_max is 3");
	assert_int_equal(counts(w, "q").ready, 1);
	assert_int_equal(baton_work_put(w->store, b, 1, puts), BATON_OK);
	claim(w, "q", 1);
	assert_int_equal(baton_work_put(w->store, b, 1, puts), BATON_OK);
}

static void what_waits_for_its_next_attempt_counts_as_waiting(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	struct baton_batch b = batch_of("q", "", NULL);
	struct baton_put answer;
	p.waiting_max = 1;
	set_policy(w, "q", &p);
	put(w, "q", "");
	end(w, claim(w, "q", 1), BATON_FAIL);
	assert_int_equal(try_put(w, &b, &answer), BATON_FULL);
}

static void a_repeat_is_answered_by_a_full_queue(void **state)
{
	struct world *w = *state;
	struct baton_queue_policy p = policy(w, "q");
	struct baton_batch b = keyed("", "key", NULL);
	struct baton_put answer;
	p.waiting_max = 1;
	set_policy(w, "q", &p);
	put_batch(w, &b);
	assert_int_equal(try_put(w, &b, &answer), BATON_OK);
	assert_true(answer.existing);
}

static void a_put_is_told_with_its_lane(void **state)
{
	struct world *w = *state;
	put(w, "q", "");
	assert_int_equal(w->rings, 1);
	assert_int_equal(w->news.lane, 0);
	uint64_t queue = w->news.queue;
	put(w, "q", "x");
	assert_int_equal(w->rings, 2);
	assert_int_equal(w->news.queue, queue);
	assert_int_not_equal(w->news.lane, 0);
	put_later(w, "q", "y", 1000);
	assert_int_equal(w->rings, 2);
}

static const struct CMUnitTest tests[] = {
	WORLD_TEST(the_first_batch_is_named_1_and_the_next_2),
	WORLD_TEST(a_put_is_ready_and_makes_its_queue),
	WORLD_TEST(payloads_come_back_as_they_were_put),
	WORLD_TEST(all_of_a_put_are_there_or_none),
	WORLD_TEST(a_put_of_nothing_is_fine),
	WORLD_TEST(a_payload_over_the_queues_limit_is_refused),
	WORLD_TEST(a_delay_makes_a_batch_wait_until_exactly_its_time),
	WORLD_TEST(a_time_that_has_passed_is_now),
	WORLD_TEST(a_repeated_source_key_gives_the_same_batch),
	WORLD_TEST(a_source_key_belongs_to_its_queue_and_lane_or_none),
	WORLD_TEST(a_source_key_with_other_content_is_a_conflict_for_all),
	WORLD_TEST(the_delay_is_part_of_the_content),
	WORLD_TEST(the_second_of_two_equal_keys_in_a_call_sees_the_first),
	WORLD_TEST(a_source_key_is_known_while_claimed_and_after_completion),
	WORLD_TEST(a_source_key_is_forgotten_exactly_at_the_end_of_its_time),
	WORLD_TEST(a_source_key_is_known_as_long_as_its_batch_is_there),
	WORLD_TEST(a_dead_batch_keeps_its_source_key),
	WORLD_TEST(a_full_queue_takes_no_more_of_a_call),
	WORLD_TEST(what_waits_for_its_next_attempt_counts_as_waiting),
	WORLD_TEST(a_repeat_is_answered_by_a_full_queue),
	WORLD_TEST(a_put_is_told_with_its_lane),
};

WORLD_MAIN("put", tests)
