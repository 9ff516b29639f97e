/* Jobs that are put together, which some stores keep in one row, and what becomes of the others
 * when something unusual is done to one of them. */
#include <baton/shard.h>

#include "world.h"

#define MANY 150 /* more than two rows have */

struct many {
	struct baton_put puts[MANY];
	char texts[MANY][24];
};

/* Each has its own text. */
static void put_all(struct world *w, struct many *m, uint32_t priority)
{
	static struct baton_batch batches[MANY];
	struct baton_str payloads[MANY];
	for (int i = 0; i < MANY; i++) {
		snprintf(m->texts[i], sizeof m->texts[i], "%u.%d", priority, i);
		payloads[i] = baton_str_z(m->texts[i]);
		batches[i] = (struct baton_batch){.queue = BATON_STR("q"),
		                                  .priority = priority,
		                                  .payloads = &payloads[i],
		                                  .count = 1};
	}
	assert_int_equal(baton_work_put(w->store, batches, MANY, m->puts), BATON_OK);
}

static const struct baton_work_claim *take(struct world *w, uint32_t count)
{
	const struct baton_work_ask ask = {.queue = BATON_STR("q"),
	                                   .claims = count,
	                                   .max = 1,
	                                   .ttl = baton_duration_ms(1000)};
	const struct baton_work_claims *claims = claim_many(w, &ask);
	assert_non_null(claims);
	assert_int_equal(claims->count, count);
	assert_sound(w);
	return claims->claims;
}

static void assert_job(const struct baton_work_claim *c, const struct many *m, int index)
{
	assert_int_equal(c->count, 1);
	assert_int_equal(c->batches[0].count, 1);
	assert_str(c->batches[0].payloads[0], m->texts[index]);
	assert_id(c->batches[0].id, m->puts[index].id);
}

/* The next that can be claimed is that one. */
static void assert_next(struct world *w, const struct many *m, int index)
{
	assert_job(take(w, 1), m, index);
}

static void they_come_in_order_and_leave_nothing_behind(void **state)
{
	struct world *w = *state;
	static struct many low, high;
	put_all(w, &low, 0);
	put_all(w, &high, 5);
	const struct baton_work_claim *first = take(w, MANY + 3), *rest = take(w, MANY - 3);
	for (int i = 0; i < MANY + 3; i++) {
		assert_job(&first[i], i < MANY ? &high : &low, i % MANY);
		assert_true(i == 0 || first[i].fence.v > first[i - 1].fence.v);
	}
	for (int i = MANY + 2; i >= 0; i--)
		assert_int_equal(complete(w, &first[i]), BATON_BATCH_GONE);
	assert_sound(w);
	for (int i = 0; i < MANY - 3; i++)
		assert_int_equal(complete(w, &rest[i]), BATON_BATCH_GONE);
	assert_sound(w);
	assert_null(claim(w, "q", 1));
	assert_int_equal(counts(w, "q").done, 2 * MANY);
	assert_int_equal(counts(w, "q").running, 0);
}

/* Commands stand in other rows than work, and yet each has its place among the others. */
static void those_of_two_classes_come_in_order_however_few_are_taken(void **state)
{
	struct world *w = *state;
	struct baton_batch batches[60];
	struct baton_put puts[60];
	const struct baton_str payload = BATON_STR("x");
	for (int i = 0; i < 60; i++)
		batches[i] = (struct baton_batch){.queue = BATON_STR("q"),
		                                  .cls = i % 5 == 2 ? BATON_COMMAND : BATON_WORK,
		                                  .payloads = &payload,
		                                  .count = 1};
	assert_int_equal(baton_work_put(w->store, batches, 60, puts), BATON_OK);
	for (int i = 0; i < 60; i += 3) {
		const struct baton_work_claim *c = take(w, 3);
		for (int j = 0; j < 3; j++)
			assert_id(c[j].batches[0].id, puts[i + j].id);
	}
	assert_null(claim(w, "q", 1));
}

static void who_completes_again_is_told_the_same(void **state)
{
	struct world *w = *state;
	static struct many m;
	put_all(w, &m, 0);
	struct baton_work_claim c = *take(w, 1);
	assert_int_equal(complete(w, &c), BATON_BATCH_GONE);
	assert_int_equal(complete(w, &c), BATON_BATCH_GONE);
	assert_int_equal(end(w, &c, BATON_ABANDON).err, BATON_NOT_HELD);
	c.proof.token.bytes[3] ^= 1;
	assert_int_equal(end(w, &c, BATON_COMPLETE).err, BATON_NOT_HELD);
	assert_int_equal(counts(w, "q").done, 1);
}

static void a_stale_token_ends_nothing(void **state)
{
	struct world *w = *state;
	static struct many m;
	put_all(w, &m, 0);
	struct baton_work_claim c = *take(w, 1);
	c.proof.token.bytes[0] ^= 1;
	assert_int_equal(end(w, &c, BATON_COMPLETE).err, BATON_NOT_HELD);
	assert_int_equal(end(w, &c, BATON_FAIL).err, BATON_NOT_HELD);
	assert_int_equal(renew(w, &c, 5000).err, BATON_NOT_HELD);
	c.proof.token.bytes[0] ^= 1;
	assert_int_equal(complete(w, &c), BATON_BATCH_GONE);
	assert_sound(w);
}

static void what_fails_is_tried_again_and_the_others_are_not(void **state)
{
	struct world *w = *state;
	static struct many m;
	put_all(w, &m, 0);
	const struct baton_work_claim *c = take(w, 4);
	assert_int_equal(end(w, &c[1], BATON_FAIL).state, BATON_BATCH_RETRY);
	assert_int_equal(complete(w, &c[0]), BATON_BATCH_GONE);
	assert_int_equal(state_of(w, &m.puts[1].id), BATON_BATCH_RETRY);
	assert_int_equal(state_of(w, &m.puts[2].id), BATON_BATCH_CLAIMED);
	assert_int_equal(state_of(w, &m.puts[4].id), BATON_BATCH_READY);
	assert_int_equal(end(w, &c[2], BATON_ABANDON).state, BATON_BATCH_READY);
	assert_next(w, &m, 2);
	assert_next(w, &m, 4);
	assert_int_equal(complete(w, &c[3]), BATON_BATCH_GONE);
	assert_sound(w);
}

static void what_is_cancelled_is_gone_or_its_holder_is_told(void **state)
{
	struct world *w = *state;
	static struct many m;
	put_all(w, &m, 0);
	const struct baton_work_claim *c = take(w, 1);
	assert_int_equal(cancel(w, &m.puts[0].id), BATON_CANCEL_TOLD);
	assert_int_equal(cancel(w, &m.puts[1].id), BATON_CANCEL_REMOVED);
	assert_int_equal(cancel(w, &m.puts[1].id), BATON_CANCEL_MISSING);
	assert_true(renew(w, c, 1000).cancel);
	assert_next(w, &m, 2);
	assert_int_equal(cancel(w, &m.puts[MANY - 1].id), BATON_CANCEL_REMOVED);
	assert_int_equal(counts(w, "q").ready, MANY - 4);
	assert_sound(w);
}

static void what_is_renewed_lasts_and_what_has_expired_is_given_again(void **state)
{
	struct world *w = *state;
	static struct many m;
	put_all(w, &m, 0);
	const struct baton_work_claim *c = take(w, 3);
	assert_int_equal(renew(w, &c[1], 5000).err, BATON_OK);
	advance(w, 1000);
	const struct baton_work_claim *again = take(w, 3);
	assert_job(&again[0], &m, 0);
	assert_job(&again[1], &m, 2);
	assert_job(&again[2], &m, 3);
	assert_int_equal(again[0].batches[0].attempt, 2);
	assert_int_equal(again[2].batches[0].attempt, 1);
	assert_true(again[0].fence.v > c[0].fence.v);
	assert_int_equal(end(w, &c[0], BATON_COMPLETE).err, BATON_NOT_HELD);
	assert_int_equal(complete(w, &c[1]), BATON_BATCH_GONE);
	assert_int_equal(complete(w, &again[1]), BATON_BATCH_GONE);
	assert_sound(w);
}

static void at_exactly_their_expiry_they_can_be_taken(void **state)
{
	struct world *w = *state;
	static struct many m;
	put_all(w, &m, 0);
	const struct baton_work_claim *c = take(w, 5);
	advance(w, 999);
	assert_next(w, &m, 5);
	advance(w, 1);
	assert_job(take(w, 5), &m, 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(end(w, &c[i], BATON_COMPLETE).err, BATON_NOT_HELD);
	assert_int_equal(counts(w, "q").failed, 5);
}

static void late_completions_are_accepted_if_nobody_took_the_work(void **state)
{
	struct world *w = *state;
	static struct many m;
	put_all(w, &m, 0);
	const struct baton_work_claim *c = take(w, 5);
	advance(w, 100000);
	assert_int_equal(renew(w, &c[0], 1000).err, BATON_OK);
	for (int i = 0; i < 5; i++)
		assert_int_equal(complete(w, &c[i]), BATON_BATCH_GONE);
	assert_int_equal(counts(w, "q").failed, 0);
	assert_sound(w);
}

static void completions_are_remembered_exactly_as_long_as_the_queue_says(void **state)
{
	struct world *w = *state;
	static struct many m;
	put_all(w, &m, 0);
	const struct baton_work_claim *c = take(w, 5);
	for (int i = 0; i < 5; i++)
		complete(w, &c[i]);
	advance(w, 86400000 - 1);
	assert_int_equal(end(w, &c[4], BATON_COMPLETE).err, BATON_OK);
	advance(w, 1);
	assert_int_equal(end(w, &c[4], BATON_COMPLETE).err, BATON_NOT_HELD);
	assert_int_equal(counts(w, "q").done, 5);
}

static void a_clock_that_goes_back_takes_none_of_them(void **state)
{
	struct world *w = *state;
	static struct many m;
	put_all(w, &m, 0);
	const struct baton_work_claim *c = take(w, 5);
	step_clock(w, -100000000);
	const struct baton_work_claim *next = take(w, 5);
	assert_job(next, &m, 5);
	assert_true(next[0].fence.v > c[4].fence.v);
	for (int i = 0; i < 5; i++)
		assert_int_equal(complete(w, &c[i]), BATON_BATCH_GONE);
	assert_sound(w);
}

static void several_owners_share_them(void **state)
{
	struct world *w = *state;
	static struct many m;
	put_all(w, &m, 0);
	for (int i = 0; i < 40; i++) {
		const struct baton_work_claim *c = claim_as(w, "q", i % 2 ? &w->other : NULL);
		assert_job(c, &m, i);
		if (i % 3 == 0)
			assert_int_equal(complete(w, c), BATON_BATCH_GONE);
	}
	assert_sound(w);
	assert_int_equal(counts(w, "q").running, 26);
	assert_int_equal(counts(w, "q").ready, MANY - 40);
}

static void all_of_them_are_seen(void **state)
{
	struct world *w = *state;
	static struct many m;
	struct baton_batch_id between = put(w, "q", "lane");
	put_all(w, &m, 0);
	struct baton_batch_id last = put(w, "other", "");
	const struct baton_work_claim *c = take(w, 5); /* the first is the lane's */
	assert_int_equal(complete(w, &c[2]), BATON_BATCH_GONE);
	struct baton_work_filter f = {.queue = BATON_STR("q"), .max = 20};
	size_t seen = 0, claimed = 0;
	uint64_t before = 0;
	do {
		const struct baton_work_page *page = list(w, &f);
		for (size_t i = 0; i < page->count; i++) {
			assert_true(page->infos[i].batch.seq > before);
			before = page->infos[i].batch.seq;
			claimed += page->infos[i].state == BATON_BATCH_CLAIMED;
			seen++;
		}
		f.after = page->next;
	} while (f.after > 0);
	assert_int_equal(seen, MANY); /* the lane's instead of the one that is done */
	assert_int_equal(claimed, 4);
	f = (struct baton_work_filter){.state = BATON_BATCH_READY, .max = 1000};
	assert_int_equal(list(w, &f)->count, MANY - 4 + 1);
	const struct baton_work_info *info = look(w, &m.puts[2].id);
	assert_int_equal(info->fence.v, c[3].fence.v);
	assert_int_equal(info->expires_at.ms, c[3].expires_at.ms);
	assert_str(info->batch.payloads[0], m.texts[2]);
	assert_int_equal(info->batch.attempt, 1);
	assert_int_equal(look(w, &m.puts[9].id)->why, BATON_WHY_READY);
	assert_int_equal(state_of(w, &m.puts[1].id), BATON_BATCH_GONE);
	assert_int_equal(state_of(w, &between), BATON_BATCH_CLAIMED);
	assert_int_equal(state_of(w, &last), BATON_BATCH_READY);
}

static void results_that_are_kept_from_now_on_are_kept(void **state)
{
	struct world *w = *state;
	static struct many m;
	put_all(w, &m, 0);
	const struct baton_work_claim *c = take(w, 2);
	struct baton_queue_policy p = policy(w, "q");
	p.keep = baton_duration_s(60);
	set_policy(w, "q", &p);
	assert_int_equal(complete(w, &c[1]), BATON_BATCH_DONE);
	assert_int_equal(state_of(w, &m.puts[1].id), BATON_BATCH_DONE);
	assert_int_equal(state_of(w, &m.puts[0].id), BATON_BATCH_CLAIMED);
	assert_sound(w);
}

static void what_a_runner_that_leaves_had_is_given_to_the_next(void **state)
{
	struct world *w = *state;
	static struct many m;
	struct baton_queue_policy p = baton_queue_policy_default();
	p.shards = 1;
	set_policy(w, "q", &p);
	put_all(w, &m, 0);
	for (int turn = 0; turn < 2; turn++) {
		const struct baton_runner_ask ask = {.name = BATON_STR("r"),
		                                     .weight = 1,
		                                     .ttl = baton_duration_s(10)};
		const struct baton_shard shard = {BATON_STR("q"), 0, 70, 1};
		struct baton_shard_answer answer;
		const struct baton_tick t = {.shards = &shard, .shard_count = 1, .owned = &answer};
		struct baton_work_claims *claims = NULL;
		struct baton_runner *r = NULL;
		assert_int_equal(baton_runner_register(w->store, &ask, &r, NULL), BATON_OK);
		assert_int_equal(baton_shard_take(r, &shard, 1, &answer), BATON_OK);
		assert_int_equal(baton_runner_tick(r, &t, &claims), BATON_OK);
		assert_non_null(claims);
		keep_claims(w, claims);
		assert_int_equal(claims->count, 70);
		for (int i = 0; i < 70; i++)
			assert_job(&claims->claims[i], &m, i);
		assert_sound(w);
		baton_runner_leave(r);
		assert_sound(w);
	}
	assert_int_equal(counts(w, "q").running, 0);
	assert_int_equal(counts(w, "q").ready, MANY);
}

static void what_is_put_with_a_refused_one_is_not_there(void **state)
{
	struct world *w = *state;
	static struct many m;
	static struct baton_batch batches[MANY];
	char large[3000] = "";
	const struct baton_str payload = {large, sizeof large};
	struct baton_queue_policy p = policy(w, "q");
	p.payload_max = 2500;
	set_policy(w, "q", &p);
	for (int i = 0; i < MANY; i++)
		batches[i] = batch_of("q", "", i == MANY - 1 ? &payload : NULL);
	assert_int_equal(baton_work_put(w->store, batches, MANY, m.puts), BATON_INVALID);
	assert_null(claim(w, "q", 1));
	put_all(w, &m, 0);
	assert_next(w, &m, 0);
	assert_int_equal(counts(w, "q").ready, MANY - 1);
}

static void a_large_one_among_them_keeps_its_place(void **state)
{
	struct world *w = *state;
	static struct baton_batch batches[12];
	struct baton_put puts[12];
	static char large[5000];
	memset(large, 'x', sizeof large);
	const struct baton_str payload = {large, sizeof large};
	for (int i = 0; i < 12; i++)
		batches[i] = batch_of("q", "", i == 5 ? &payload : NULL);
	assert_int_equal(baton_work_put(w->store, batches, 12, puts), BATON_OK);
	const struct baton_work_claim *c = take(w, 12);
	for (int i = 0; i < 12; i++)
		assert_id(c[i].batches[0].id, puts[i].id);
	assert_int_equal(c[5].batches[0].payloads[0].len, sizeof large);
	for (int i = 0; i < 12; i++)
		assert_int_equal(complete(w, &c[i]), BATON_BATCH_GONE);
	assert_sound(w);
}

static const struct CMUnitTest tests[] = {
	WORLD_TEST(they_come_in_order_and_leave_nothing_behind),
	WORLD_TEST(those_of_two_classes_come_in_order_however_few_are_taken),
	WORLD_TEST(who_completes_again_is_told_the_same),
	WORLD_TEST(a_stale_token_ends_nothing),
	WORLD_TEST(what_fails_is_tried_again_and_the_others_are_not),
	WORLD_TEST(what_is_cancelled_is_gone_or_its_holder_is_told),
	WORLD_TEST(what_is_renewed_lasts_and_what_has_expired_is_given_again),
	WORLD_TEST(at_exactly_their_expiry_they_can_be_taken),
	WORLD_TEST(late_completions_are_accepted_if_nobody_took_the_work),
	WORLD_TEST(completions_are_remembered_exactly_as_long_as_the_queue_says),
	WORLD_TEST(a_clock_that_goes_back_takes_none_of_them),
	WORLD_TEST(several_owners_share_them),
	WORLD_TEST(all_of_them_are_seen),
	WORLD_TEST(results_that_are_kept_from_now_on_are_kept),
	WORLD_TEST(what_a_runner_that_leaves_had_is_given_to_the_next),
	WORLD_TEST(what_is_put_with_a_refused_one_is_not_there),
	WORLD_TEST(a_large_one_among_them_keeps_its_place),
};

WORLD_MAIN("bulk", tests)
