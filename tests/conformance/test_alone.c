/* Jobs that are put together, each of which alone has its key: some stores keep them in one row,
 * until another job of one of these keys comes, or something unusual is done to one of them. */
#include <stdlib.h>

#include <baton/shard.h>

#include "world.h"

#define MANY 150 /* more than two rows have */

struct many {
	struct baton_put puts[MANY];
	struct baton_batch batches[MANY];
	struct baton_str payloads[MANY];
	char texts[MANY][24], keys[MANY][24];
};

/* Each has its own text, and its own key; every tenth has none. */
static void fill(struct many *m, const char *prefix)
{
	for (int i = 0; i < MANY; i++) {
		snprintf(m->texts[i], sizeof m->texts[i], "%s%d", prefix, i);
		snprintf(m->keys[i], sizeof m->keys[i], "%s%d", prefix, i);
		m->payloads[i] = baton_str_z(m->texts[i]);
		m->batches[i] = (struct baton_batch){.queue = BATON_STR("q"),
		                                     .payloads = &m->payloads[i],
		                                     .count = 1};
		if (i % 10 != 9)
			m->batches[i].key = baton_str_z(m->keys[i]);
	}
}

static void put_many(struct world *w, struct many *m, const char *prefix)
{
	fill(m, prefix);
	assert_int_equal(baton_work_put(w->store, m->batches, MANY, m->puts), BATON_OK);
	assert_sound(w);
}

static struct baton_batch keyed(const char *key)
{
	struct baton_batch b = batch_of("q", "", NULL);
	b.key = baton_str_z(key);
	return b;
}

static struct baton_batch_id put_key(struct world *w, const char *key)
{
	struct baton_batch b = keyed(key);
	struct baton_batch_id id = put_batch(w, &b);
	assert_sound(w);
	return id;
}

/* As many as there are, up to `most`. */
static const struct baton_work_claims *take(struct world *w, uint32_t most)
{
	const struct baton_work_ask ask = {.queue = BATON_STR("q"),
	                                   .claims = most,
	                                   .max = 1,
	                                   .ttl = baton_duration_ms(1000)};
	const struct baton_work_claims *claims = claim_many(w, &ask);
	assert_sound(w);
	return claims;
}

static const struct baton_work_claim *take_just(struct world *w, uint32_t count)
{
	const struct baton_work_claims *claims = take(w, count);
	assert_non_null(claims);
	assert_int_equal(claims->count, count);
	return claims->claims;
}

static void assert_is(const struct baton_work_claim *c, const struct baton_batch_id *id)
{
	assert_non_null(c);
	assert_id(c->batches[0].id, *id);
}

static void assert_job(const struct baton_work_claim *c, const struct many *m, int index)
{
	assert_is(c, &m->puts[index].id);
	assert_int_equal(c->batches[0].count, 1);
	assert_str(c->batches[0].payloads[0], m->texts[index]);
	assert_str(c->key, index % 10 != 9 ? m->keys[index] : "");
	assert_int_equal(c->lane.len, 0);
}

static void they_come_in_order_say_their_keys_and_leave_nothing_behind(void **state)
{
	struct world *w = *state;
	static struct many m;
	put_many(w, &m, "k");
	assert_str(look(w, &m.puts[70].id)->key, "k70");
	assert_int_equal(look(w, &m.puts[70].id)->why, BATON_WHY_READY);
	const struct baton_work_claim *c = take_just(w, MANY);
	for (int i = 0; i < MANY; i++) {
		assert_job(&c[i], &m, i);
		assert_true(i == 0 || c[i].fence.v > c[i - 1].fence.v);
	}
	assert_str(look(w, &m.puts[70].id)->key, "k70");
	assert_int_equal(state_of(w, &m.puts[70].id), BATON_BATCH_CLAIMED);
	for (int i = MANY - 1; i >= 0; i--)
		assert_int_equal(complete(w, &c[i]), BATON_BATCH_GONE);
	assert_sound(w);
	assert_null(take(w, 1));
	assert_int_equal(counts(w, "q").done, MANY);
	assert_int_equal(counts(w, "q").running, 0);
}

static void a_list_shows_the_key_of_each(void **state)
{
	struct world *w = *state;
	static struct many m;
	put_many(w, &m, "k");
	take_just(w, 20);
	put_key(w, "k50");
	const struct baton_work_filter all = {.queue = BATON_STR("q"), .max = MANY + 1};
	const struct baton_work_page *page = list(w, &all);
	assert_int_equal(page->count, MANY + 1);
	for (int i = 0; i < MANY; i++) {
		assert_id(page->infos[i].batch.id, m.puts[i].id);
		assert_str(page->infos[i].key, i % 10 != 9 ? m.keys[i] : "");
		assert_int_equal(page->infos[i].state,
		                 i < 20 ? BATON_BATCH_CLAIMED : BATON_BATCH_READY);
	}
	assert_str(page->infos[MANY].key, "k50");
}

static void the_second_of_a_key_waits_for_one_that_is_ready(void **state)
{
	struct world *w = *state;
	static struct many m;
	put_many(w, &m, "k");
	struct baton_batch_id second = put_key(w, "k70"), first_row = put_key(w, "k0");
	assert_id(look(w, &second)->ahead, m.puts[70].id);
	const struct baton_work_claim *c = take_just(w, MANY);
	for (int i = 0; i < MANY; i++)
		assert_job(&c[i], &m, i);
	assert_null(take(w, 10));
	assert_int_equal(look(w, &second)->why, BATON_WHY_KEY);
	assert_int_equal(complete(w, &c[71]), BATON_BATCH_GONE);
	assert_null(take(w, 10));
	assert_int_equal(complete(w, &c[70]), BATON_BATCH_GONE);
	assert_is(take_just(w, 1), &second);
	assert_int_equal(complete(w, &c[0]), BATON_BATCH_GONE);
	assert_is(take_just(w, 1), &first_row);
	assert_null(take(w, 1));
}

static void the_second_of_a_key_waits_for_one_that_is_claimed(void **state)
{
	struct world *w = *state;
	static struct many m;
	put_many(w, &m, "k");
	const struct baton_work_claim *c = take_just(w, MANY);
	struct baton_batch_id second = put_key(w, "k70");
	assert_null(take(w, 10));
	for (int i = 0; i < MANY; i++) {
		if (i != 70)
			assert_int_equal(complete(w, &c[i]), BATON_BATCH_GONE);
	}
	assert_null(take(w, 10));
	assert_int_equal(renew(w, &c[70], 1000).err, BATON_OK);
	assert_int_equal(complete(w, &c[70]), BATON_BATCH_GONE);
	assert_is(take_just(w, 1), &second);
}

static void a_key_whose_job_is_done_is_free(void **state)
{
	struct world *w = *state;
	static struct many m, again;
	put_many(w, &m, "k");
	const struct baton_work_claim *c = take_just(w, MANY);
	assert_int_equal(complete(w, &c[70]), BATON_BATCH_GONE);
	struct baton_batch_id next = put_key(w, "k70");
	assert_is(take_just(w, 1), &next);
	for (int i = 0; i < MANY; i++) {
		if (i != 70 && i % 7 != 0)
			assert_int_equal(complete(w, &c[i]), BATON_BATCH_GONE);
	}
	put_many(w, &again, "k");
	const struct baton_work_claims *rest = take(w, MANY);
	for (size_t i = 0; i < rest->count; i++) {
		int index = atoi(rest->claims[i].batches[0].payloads[0].ptr + 1);
		assert_true(index % 10 == 9 || (index != 70 && index % 7 != 0));
	}
	assert_int_equal(rest->count, MANY - 20); /* 22 with a seventh, 2 of them without a key */
}

static void two_of_one_key_that_are_put_together_run_one_after_the_other(void **state)
{
	struct world *w = *state;
	static struct many m;
	fill(&m, "k");
	m.batches[40].key = BATON_STR("k3");
	m.batches[41].key = BATON_STR("k3");
	m.batches[130].key = BATON_STR("k3");
	assert_int_equal(baton_work_put(w->store, m.batches, MANY, m.puts), BATON_OK);
	const struct baton_work_claims *c = take(w, MANY);
	assert_int_equal(c->count, MANY - 3);
	for (int i = 0, at = 0; i < MANY; i++) {
		if (i != 40 && i != 41 && i != 130)
			assert_is(&c->claims[at++], &m.puts[i].id);
	}
	assert_null(take(w, 1));
	complete(w, &c->claims[3]);
	const struct baton_work_claim *next = take_just(w, 1);
	assert_is(next, &m.puts[40].id);
	complete(w, next);
	next = take_just(w, 1);
	assert_is(next, &m.puts[41].id);
	complete(w, next);
	assert_is(take_just(w, 1), &m.puts[130].id);
}

static void those_who_are_put_together_wait_for_a_key_that_others_have(void **state)
{
	struct world *w = *state;
	static struct many m;
	struct baton_batch_id ready = put_key(w, "k3"), line = put_key(w, "k5");
	struct baton_batch_id behind = put_key(w, "k5"), held = put_key(w, "k20");
	const struct baton_work_claim *three = take_just(w, 3);
	assert_is(&three[2], &held);
	put_many(w, &m, "k");
	const struct baton_work_claims *c = take(w, MANY);
	assert_int_equal(c->count, MANY - 3);
	for (size_t i = 0; i < c->count; i++) {
		assert_false(baton_str_equal(c->claims[i].key, BATON_STR("k3")));
		assert_false(baton_str_equal(c->claims[i].key, BATON_STR("k5")));
		assert_false(baton_str_equal(c->claims[i].key, BATON_STR("k20")));
	}
	assert_is(&three[0], &ready);
	assert_is(&three[1], &line);
	complete(w, &three[1]);
	const struct baton_work_claim *next = take_just(w, 1);
	assert_is(next, &behind);
	complete(w, next);
	assert_is(take_just(w, 1), &m.puts[5].id);
	complete(w, &three[2]);
	assert_is(take_just(w, 1), &m.puts[20].id);
}

static void one_whose_time_has_come_waits_for_one_that_stands_with_others(void **state)
{
	struct world *w = *state;
	static struct many m;
	struct baton_batch late = keyed("k70");
	late.delay = baton_duration_ms(500);
	struct baton_batch_id delayed = put_batch(w, &late);
	put_many(w, &m, "k");
	advance(w, 600);
	const struct baton_work_claims *c = take(w, MANY + 1);
	assert_int_equal(c->count, MANY);
	bool first = false;
	for (size_t i = 0; i < c->count; i++)
		first = first || strcmp(c->claims[i].batches[0].id.text, delayed.text) == 0;
	assert_int_equal(state_of(w, first ? &m.puts[70].id : &delayed), BATON_BATCH_READY);
}

static void one_that_is_brought_back_waits_for_one_that_stands_with_others(void **state)
{
	struct world *w = *state;
	static struct many m;
	struct baton_batch_id dead = put_key(w, "k70");
	const struct baton_work_claim *c = take_just(w, 1);
	assert_int_equal(end(w, c, BATON_REJECT).state, BATON_BATCH_DEAD);
	put_many(w, &m, "k");
	assert_int_equal(revive(w, &dead), BATON_OK);
	assert_sound(w);
	c = take_just(w, MANY);
	assert_job(&c[70], &m, 70);
	assert_null(take(w, 1));
	complete(w, &c[70]);
	assert_is(take_just(w, 1), &dead);
}

static void what_is_put_with_a_refused_one_changes_nothing_about_keys(void **state)
{
	struct world *w = *state;
	static struct many m;
	static char large[3000];
	const struct baton_str payload = {large, sizeof large};
	struct baton_queue_policy p = policy(w, "q");
	struct baton_put puts[3];
	p.payload_max = 2500;
	set_policy(w, "q", &p);
	put_many(w, &m, "k");
	struct baton_batch some[3] = {keyed("k70"), keyed("new"), batch_of("q", "", &payload)};
	some[0].group = BATON_STR("g"); /* it has a row of its own at once */
	some[0].slot = BATON_JOIN;
	assert_int_equal(baton_work_put(w->store, some, 3, puts), BATON_INVALID);
	assert_sound(w);
	struct baton_batch_id second = put_key(w, "k70");
	const struct baton_work_claim *c = take_just(w, MANY);
	for (int i = 0; i < MANY; i++)
		assert_job(&c[i], &m, i);
	assert_null(take(w, 1));
	complete(w, &c[70]);
	assert_is(take_just(w, 1), &second);
}

static void what_fails_holds_its_key_and_the_others_are_as_they_were(void **state)
{
	struct world *w = *state;
	static struct many m;
	struct baton_queue_policy p = policy(w, "q");
	p.hold_on_retry = BATON_HOLD_KEEP;
	p.retry.backoff = BATON_BACKOFF_FIXED;
	p.retry.base = baton_duration_ms(100);
	set_policy(w, "q", &p);
	put_many(w, &m, "k");
	const struct baton_work_claim *c = take_just(w, 10);
	assert_int_equal(end(w, &c[4], BATON_FAIL).state, BATON_BATCH_RETRY);
	assert_sound(w);
	struct baton_batch_id second = put_key(w, "k4"), other = put_key(w, "k5");
	assert_int_equal(complete(w, &c[5]), BATON_BATCH_GONE);
	assert_int_equal(state_of(w, &m.puts[6].id), BATON_BATCH_CLAIMED);
	const struct baton_work_claims *rest = take(w, MANY);
	assert_int_equal(rest->count, MANY - 10 + 1);
	assert_is(&rest->claims[MANY - 10], &other);
	advance(w, 150);
	const struct baton_work_claim *again = take_just(w, 1);
	assert_job(again, &m, 4);
	complete(w, again);
	assert_is(take_just(w, 1), &second);
}

static void what_is_cancelled_frees_its_key(void **state)
{
	struct world *w = *state;
	static struct many m;
	put_many(w, &m, "k");
	struct baton_batch_id second = put_key(w, "k70");
	assert_int_equal(cancel(w, &m.puts[70].id), BATON_CANCEL_REMOVED);
	assert_int_equal(cancel(w, &m.puts[71].id), BATON_CANCEL_REMOVED);
	struct baton_batch_id other = put_key(w, "k71");
	const struct baton_work_claim *c = take_just(w, MANY);
	assert_job(&c[69], &m, 69);
	assert_job(&c[70], &m, 72);
	assert_is(&c[MANY - 2], &second);
	assert_is(&c[MANY - 1], &other);
}

static void claims_that_expire_give_their_keys_back(void **state)
{
	struct world *w = *state;
	static struct many m;
	put_many(w, &m, "k");
	take_just(w, MANY);
	struct baton_batch_id second = put_key(w, "k70");
	advance(w, 1500);
	const struct baton_work_claims *c = take(w, MANY + 1);
	assert_int_equal(c->count, MANY);
	for (size_t i = 0; i < c->count; i++)
		assert_string_not_equal(c->claims[i].batches[0].id.text, second.text);
	for (size_t i = 0; i < c->count; i++)
		complete(w, &c->claims[i]);
	assert_is(take_just(w, 1), &second);
}

static void a_limit_of_two_lets_the_second_run_beside_the_first(void **state)
{
	struct world *w = *state;
	static struct many m;
	struct baton_queue_policy p = policy(w, "q");
	p.key_limit = 2;
	set_policy(w, "q", &p);
	put_many(w, &m, "k");
	const struct baton_work_claim *c = take_just(w, MANY);
	struct baton_batch_id second = put_key(w, "k70"), third = put_key(w, "k70");
	const struct baton_work_claims *both = take(w, 5);
	assert_int_equal(both->count, 1);
	assert_is(&both->claims[0], &second);
	complete(w, &c[70]);
	assert_is(take_just(w, 1), &third);
}

static void set_part(struct world *w, int which)
{
	struct baton_queue_policy p = policy(w, "q");
	switch (which) {
	case 0:
		p.key_fair = BATON_KEY_FAIR_ON;
		break;
	case 1:
		p.key_rate = (struct baton_key_rate){1, baton_duration_ms(10000)};
		break;
	case 2:
		p.key_ttl = baton_duration_ms(300);
		break;
	case 3:
		p.on_conflict = BATON_CONFLICT_SKIP;
		break;
	case 4:
		p.key_waiting_max = 1;
		break;
	case 5:
		p.keep = baton_duration_ms(100000);
		break;
	}
	set_policy(w, "q", &p);
	assert_sound(w);
}

static void a_policy_of_keys_holds_for_those_that_stand_together_already(void **state)
{
	struct world *w = *state;
	static struct many m;
	for (int which = 0; which < 6; which++) {
		if (which > 0) {
			world_teardown(state);
			world_setup(state);
			w = *state;
		}
		put_many(w, &m, "k");
		const struct baton_work_claim *c = take_just(w, 50);
		set_part(w, which);
		struct baton_batch b = keyed("k70"), held = keyed("k20");
		struct baton_put put;
		enum baton_err e = try_put(w, &b, &put);
		assert_int_equal(e, which == 4 ? BATON_FULL : BATON_OK);
		if (which == 3)
			assert_int_equal(put.state, BATON_BATCH_SKIPPED);
		e = try_put(w, &held, &put);
		assert_int_equal(e, BATON_OK);
		assert_sound(w);
		const struct baton_work_claims *rest = take(w, MANY);
		assert_int_equal(rest->count, MANY - 50);
		for (size_t i = 0; i < rest->count; i++)
			assert_int_equal(rest->claims[i].expires_at.ms -
			                         rest->claims[i].claimed_at.ms,
			                 which == 2 && rest->claims[i].key.len > 0 ? 300 : 1000);
		for (int i = 0; i < 50; i++)
			assert_int_equal(complete(w, &c[i]),
			                 which == 5 ? BATON_BATCH_DONE : BATON_BATCH_GONE);
		assert_sound(w);
	}
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

/* Takes all of the queue's shards, and claims what there is. */
static const struct baton_work_claims *take_all(struct world *w, struct baton_runner *r)
{
	struct baton_shard shards[BATON_QUEUE_SHARDS];
	struct baton_shard_answer owned[BATON_QUEUE_SHARDS];
	struct baton_work_claims *claims = NULL;
	for (uint32_t i = 0; i < BATON_QUEUE_SHARDS; i++)
		shards[i] = (struct baton_shard){BATON_STR("q"), i, 40, 1};
	assert_int_equal(baton_shard_take(r, shards, BATON_QUEUE_SHARDS, owned), BATON_OK);
	const struct baton_tick t = {.shards = shards,
	                             .shard_count = BATON_QUEUE_SHARDS,
	                             .owned = owned};
	assert_int_equal(baton_runner_tick(r, &t, &claims), BATON_OK);
	keep_claims(w, claims);
	assert_sound(w);
	return claims;
}

/* What was put before anybody claimed stands in no shard; a key gives its job one. */
static void a_runner_gets_each_from_the_shard_of_its_key(void **state)
{
	struct world *w = *state;
	static struct many m;
	put_many(w, &m, "k");
	struct baton_runner *r = enlist(w, "one");
	const struct baton_work_claims *c = take_all(w, r);
	assert_int_equal(c->count, MANY);
	for (size_t i = 0; i < c->count; i++) {
		struct baton_where where;
		if (c->claims[i].key.len == 0)
			continue;
		assert_int_equal(baton_lane_where(w->store, BATON_STR("q"), c->claims[i].key,
		                                  &where),
		                 BATON_OK);
		assert_int_equal(c->claims[i].shard, where.shard);
	}
	struct baton_batch_id second = put_key(w, "k70");
	assert_null(take_all(w, r));
	for (size_t i = 0; i < c->count; i++)
		complete(w, &c->claims[i]);
	c = take_all(w, r);
	assert_int_equal(c->count, 1);
	assert_is(&c->claims[0], &second);
	baton_runner_leave(r);
	assert_sound(w);
}

static void what_a_lost_runner_had_goes_to_the_next_with_its_key(void **state)
{
	struct world *w = *state;
	static struct many m;
	struct baton_queue_policy p = policy(w, "q");
	p.mode = BATON_QUEUE_RUNNER;
	p.shards = 1;
	set_policy(w, "q", &p);
	put_many(w, &m, "k");
	struct baton_runner *lost = enlist(w, "one"), *next = enlist(w, "two");
	struct baton_shard shard = {BATON_STR("q"), 0, 100, 1};
	struct baton_shard_answer owned;
	struct baton_work_claims *had = NULL, *got = NULL;
	const struct baton_tick t = {.shards = &shard, .shard_count = 1, .owned = &owned};
	assert_int_equal(baton_shard_take(lost, &shard, 1, &owned), BATON_OK);
	assert_int_equal(baton_runner_tick(lost, &t, &had), BATON_OK);
	keep_claims(w, had);
	assert_int_equal(had->count, 100);
	struct baton_batch_id second = put_key(w, "k70");
	struct baton_runner_info infos[2];
	size_t count;
	assert_int_equal(baton_runner_list(w->store, 0, infos, 2, &count), BATON_OK);
	assert_int_equal(baton_runner_take_over(w->store, &infos[0]), BATON_OK);
	assert_sound(w);
	shard.claims = MANY + 1;
	assert_int_equal(baton_shard_take(next, &shard, 1, &owned), BATON_OK);
	assert_int_equal(baton_runner_tick(next, &t, &got), BATON_OK);
	keep_claims(w, got);
	assert_int_equal(got->count, MANY);
	for (int i = 0; i < MANY; i++) {
		assert_job(&got->claims[i], &m, i);
		assert_true(i >= 100 || got->claims[i].fence.v > had->claims[i].fence.v);
	}
	assert_int_equal(state_of(w, &second), BATON_BATCH_READY);
	assert_sound(w);
	baton_runner_leave(lost);
	baton_runner_leave(next);
}

/* Of two handles, each puts what the other one's jobs have the keys of. */
static void another_handle_sees_who_has_a_key(void **state)
{
	struct world *w = *state;
	struct baton_store *twin = world_twin(w), *own = w->store;
	static struct many m, other;
	put_many(w, &m, "k");
	w->store = twin;
	put_many(w, &other, "l");
	struct baton_batch_id second = put_key(w, "k70");
	w->store = own;
	struct baton_batch_id too = put_key(w, "l70");
	const struct baton_work_claim *c = take_just(w, 2 * MANY);
	assert_null(take(w, 1));
	w->store = twin;
	complete(w, &c[70]);
	complete(w, &c[MANY + 70]);
	struct baton_batch_id last = put_key(w, "k71");
	c = take_just(w, 2);
	assert_is(&c[0], &second);
	assert_is(&c[1], &too);
	assert_int_equal(state_of(w, &last), BATON_BATCH_READY);
	w->store = own;
	assert_null(take(w, 1));
}

#define HEAP 26 /* calls, so that there are more rows than are looked through */

static void the_keys_of_many_thousand_that_wait_are_found(void **state)
{
	struct world *w = *state;
	static struct many m;
	char prefix[8];
	int calls = world_is_served() ? 8 : HEAP;
	for (int i = 0; i < calls; i++) {
		snprintf(prefix, sizeof prefix, "%d.", i);
		fill(&m, prefix);
		assert_int_equal(baton_work_put(w->store, m.batches, MANY, m.puts), BATON_OK);
	}
	assert_sound(w);
	struct baton_batch_id old = put_key(w, "0.3"), new = put_key(w, "7.3");
	struct baton_batch many[8];
	struct baton_put puts[8];
	char keys[8][8];
	for (int i = 0; i < 8; i++) { /* some of these are in use */
		snprintf(keys[i], sizeof keys[i], "%d.%d", i % 4 == 0 ? 1 : 100 + i, 20 + i);
		many[i] = keyed(keys[i]);
	}
	assert_int_equal(baton_work_put(w->store, many, 8, puts), BATON_OK);
	size_t found = 0;
	const struct baton_work_claims *c;
	while ((c = take(w, 1000))) {
		found += c->count;
		for (size_t i = 0; i < c->count; i++) {
			assert_string_not_equal(c->claims[i].batches[0].id.text, old.text);
			assert_string_not_equal(c->claims[i].batches[0].id.text, new.text);
		}
	}
	assert_int_equal(found, calls * MANY + 6);
	for (size_t i = 0; i < w->claim_count; i++) {
		for (size_t j = 0; j < w->claims[i]->count; j++)
			complete(w, &w->claims[i]->claims[j]);
	}
	assert_sound(w);
	const struct baton_work_claims *last = take(w, 10);
	assert_int_equal(last->count, 4);
	for (size_t i = 0; i < 4; i++)
		complete(w, &last->claims[i]);
	assert_sound(w);
	put_many(w, &m, "0.");
	take_just(w, MANY);
}

/* One that had to leave its row, although nobody came, has its key when the row is gone. */
static void one_that_was_counted_has_its_key_when_the_others_are_done(void **state)
{
	struct world *w = *state;
	static struct many m;
	struct baton_put put;
	char prefix[8];
	int calls = world_is_served() ? 2 : HEAP;
	for (int i = 0; i < calls; i++) {
		snprintf(prefix, sizeof prefix, "%d.", i);
		fill(&m, prefix);
		assert_int_equal(baton_work_put(w->store, m.batches, MANY, m.puts), BATON_OK);
	}
	struct baton_queue_policy p = policy(w, "q");
	p.key_waiting_max = 1;
	set_policy(w, "q", &p);
	struct baton_batch second = keyed("0.70");
	assert_int_equal(try_put(w, &second, &put), BATON_FULL);
	p.key_waiting_max = 0;
	set_policy(w, "q", &p);
	assert_sound(w);
	const struct baton_work_claim *c = take_just(w, MANY);
	for (int i = 0; i < MANY; i++) {
		if (i != 70)
			complete(w, &c[i]);
	}
	assert_sound(w);
	struct baton_batch_id id = put_key(w, "0.70");
	const struct baton_work_claims *rest;
	while ((rest = take(w, 1000))) {
		for (size_t i = 0; i < rest->count; i++)
			assert_string_not_equal(rest->claims[i].batches[0].id.text, id.text);
	}
	complete(w, &c[70]);
	assert_is(take_just(w, 1), &id);
}

static const struct CMUnitTest tests[] = {
	WORLD_TEST(they_come_in_order_say_their_keys_and_leave_nothing_behind),
	WORLD_TEST(a_list_shows_the_key_of_each),
	WORLD_TEST(the_second_of_a_key_waits_for_one_that_is_ready),
	WORLD_TEST(the_second_of_a_key_waits_for_one_that_is_claimed),
	WORLD_TEST(a_key_whose_job_is_done_is_free),
	WORLD_TEST(two_of_one_key_that_are_put_together_run_one_after_the_other),
	WORLD_TEST(those_who_are_put_together_wait_for_a_key_that_others_have),
	WORLD_TEST(one_whose_time_has_come_waits_for_one_that_stands_with_others),
	WORLD_TEST(one_that_is_brought_back_waits_for_one_that_stands_with_others),
	WORLD_TEST(what_is_put_with_a_refused_one_changes_nothing_about_keys),
	WORLD_TEST(what_fails_holds_its_key_and_the_others_are_as_they_were),
	WORLD_TEST(what_is_cancelled_frees_its_key),
	WORLD_TEST(claims_that_expire_give_their_keys_back),
	WORLD_TEST(a_limit_of_two_lets_the_second_run_beside_the_first),
	WORLD_TEST(a_policy_of_keys_holds_for_those_that_stand_together_already),
	WORLD_TEST(a_runner_gets_each_from_the_shard_of_its_key),
	WORLD_TEST(what_a_lost_runner_had_goes_to_the_next_with_its_key),
	WORLD_TEST(another_handle_sees_who_has_a_key),
	WORLD_TEST(the_keys_of_many_thousand_that_wait_are_found),
	WORLD_TEST(one_that_was_counted_has_its_key_when_the_others_are_done),
};

WORLD_MAIN("alone", tests)
