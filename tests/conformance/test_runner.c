/* Runners and the shards that they own. */
#include <unistd.h>

#include <baton/shard.h>

#include "world.h"

#define TTL_S 10

static struct baton_runner *enlist(struct world *w, const char *name)
{
	struct baton_runner_ask ask = {.name = baton_str_z(name),
	                               .weight = 1,
	                               .ttl = baton_duration_s(TTL_S)};
	struct baton_runner *r = NULL;
	assert_int_equal(baton_runner_register(w->store, &ask, &r, NULL), BATON_OK);
	return r;
}

static struct baton_runner_info seen(struct world *w, const struct baton_runner *r)
{
	struct baton_runner_info info;
	size_t count;
	assert_int_equal(baton_runner_list(w->store, baton_runner_number(r) - 1, &info, 1, &count),
	                 BATON_OK);
	assert_int_equal(count, 1);
	return info;
}

/* A queue of one shard, so that all of its work is there. */
static void one_shard(struct world *w, const char *queue)
{
	struct baton_queue_policy p = baton_queue_policy_default();
	p.shards = 1;
	p.retry.backoff = p.retry_lane.backoff = BATON_BACKOFF_NONE;
	set_policy(w, queue, &p);
}

static struct baton_shard shard(const char *queue, uint32_t number)
{
	return (struct baton_shard){baton_str_z(queue), number, 10, 10};
}

static struct baton_shard_answer own(struct baton_runner *r, const char *queue, uint32_t number)
{
	struct baton_shard s = shard(queue, number);
	struct baton_shard_answer a;
	assert_int_equal(baton_shard_take(r, &s, 1, &a), BATON_OK);
	return a;
}

/* What a tick without ends gives of shard 0; NULL: nothing. */
static const struct baton_work_claims *tick(struct world *w, struct baton_runner *r,
                                            const char *queue)
{
	struct baton_shard s = shard(queue, 0);
	struct baton_shard_answer a;
	struct baton_tick t = {.shards = &s, .shard_count = 1, .owned = &a};
	struct baton_work_claims *claims = NULL;
	assert_int_equal(baton_runner_tick(r, &t, &claims), BATON_OK);
	if (claims)
		keep_claims(w, claims);
	return claims;
}

static struct baton_work_ended tick_end(struct baton_runner *r, const struct baton_work_claim *c,
                                        enum baton_work_how how)
{
	struct baton_work_end end = {.proof = c->proof, .how = how};
	struct baton_work_ended ended;
	struct baton_tick t = {.ends = &end, .end_count = 1, .ended = &ended};
	struct baton_work_claims *claims = NULL;
	assert_int_equal(baton_runner_tick(r, &t, &claims), BATON_OK);
	assert_null(claims);
	return ended;
}

static void a_runner_that_is_registered_is_listed_and_beats(void **state)
{
	struct world *w = *state;
	struct baton_runner *r = enlist(w, "one");
	struct baton_runner_info before = seen(w, r);
	assert_string_equal(before.name, "one");
	assert_int_equal(baton_runner_beat(r), BATON_OK);
	assert_true(seen(w, r).beat != before.beat);
	baton_runner_leave(r);
	size_t count;
	assert_int_equal(baton_runner_list(w->store, 0, &before, 1, &count), BATON_OK);
	assert_int_equal(count, 0);
	assert_sound(w);
}

static void what_a_runner_registers_with_is_told_to_others(void **state)
{
	struct world *w = *state;
	const struct baton_str queues[] = {BATON_STR("mail"), BATON_STR("video cut"),
	                                   BATON_STR("m")};
	const struct baton_runner_ask ask = {.name = BATON_STR("one"),
	                                     .weight = 7,
	                                     .endpoint = BATON_STR("host:1"),
	                                     .labels = BATON_STR("zone=a"),
	                                     .ttl = baton_duration_s(TTL_S),
	                                     .queues = queues,
	                                     .queue_count = 3,
	                                     .guardian = 4711,
	                                     .life = BATON_STR("/run/one.life")};
	struct baton_runner *r = NULL;
	assert_int_equal(baton_runner_register(w->store, &ask, &r, NULL), BATON_OK);
	struct baton_runner_info info = seen(w, r);
	assert_string_equal(info.endpoint, "host:1");
	assert_string_equal(info.labels, "zone=a");
	assert_string_equal(info.queues, "mail/video cut/m");
	assert_string_equal(info.life, "/run/one.life");
	assert_int_equal(info.guardian, 4711);
	assert_int_equal(info.weight, 7);
	char host[256] = "";
	assert_int_equal(gethostname(host, sizeof host - 1), 0);
	assert_string_equal(info.host, host);
	baton_runner_leave(r);
}

static void a_runner_serves_the_queues_that_it_names(void **state)
{
	(void)state;
	static const struct {
		const char *queues, *queue;
		bool serves;
	} cases[] = {
		{"", "a", false},     {"a", "a", true},       {"a/b", "a", true},
		{"a/b", "b", true},   {"a/b", "a/b", false},  {"ab", "a", false},
		{"ab/c", "b", false}, {"a/bc/d", "c", false}, {"a/bc/d", "bc", true},
		{"a", "", false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		static struct baton_runner_info info;
		snprintf(info.queues, sizeof info.queues, "%s", cases[i].queues);
		assert_int_equal(baton_runner_serves(&info, baton_str_z(cases[i].queue)),
		                 cases[i].serves);
	}
}

static void a_runner_proves_that_it_can_write_until_it_is_taken_over(void **state)
{
	struct world *w = *state;
	struct baton_runner *r = enlist(w, "one");
	struct baton_runner_info before = seen(w, r);
	assert_int_equal(baton_runner_prove(r), BATON_OK);
	struct baton_runner_info after = seen(w, r);
	assert_int_equal(after.beat, before.beat);
	assert_int_equal(baton_runner_take_over(w->store, &after), BATON_OK);
	assert_int_equal(baton_runner_prove(r), BATON_NOT_HELD);
	baton_runner_leave(r);
	assert_sound(w);
}

static void what_is_asked_of_a_runner_lasts_as_long_as_it_does(void **state)
{
	struct world *w = *state;
	static const enum baton_runner_wish wishes[] = {BATON_WISH_DRAIN, BATON_WISH_LEAVE,
	                                                BATON_WISH_WORK, BATON_WISH_DETACH};
	struct baton_runner *r = enlist(w, "one"), *other = enlist(w, "two");
	assert_int_equal(seen(w, r).wish, BATON_WISH_WORK);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(baton_runner_wish(w->store, BATON_STR("one"), wishes[i]),
		                 BATON_OK);
		assert_int_equal(seen(w, r).wish, wishes[i]);
		assert_int_equal(seen(w, other).wish, BATON_WISH_WORK);
	}
	assert_int_equal(baton_runner_prove(r), BATON_OK);
	assert_int_equal(baton_runner_tell(r, BATON_STR("detached")), BATON_OK);
	assert_int_equal(seen(w, r).wish, BATON_WISH_DETACH);
	baton_runner_leave(r);
	assert_int_equal(baton_runner_wish(w->store, BATON_STR("one"), BATON_WISH_WORK),
	                 BATON_NOT_FOUND);
	assert_detail("there is no runner \"one\"");
	r = enlist(w, "one");
	assert_int_equal(seen(w, r).wish, BATON_WISH_WORK);
	assert_int_equal(baton_runner_wish(w->store, BATON_STR("one"), 0), BATON_INVALID);
	assert_detail("the wish is 0: 1 to 4 are allowed");
	assert_int_equal(baton_runner_wish(w->store, BATON_STR("one"), 5), BATON_INVALID);
	assert_int_equal(baton_runner_wish(w->store, BATON_STR(""), BATON_WISH_WORK),
	                 BATON_INVALID);
	baton_runner_leave(r);
	baton_runner_leave(other);
	assert_sound(w);
}

static void what_a_runner_tells_is_seen_by_others(void **state)
{
	struct world *w = *state;
	static char longest[BATON_NAME_MAX + 1];
	memset(longest, 's', sizeof longest);
	struct baton_runner *r = enlist(w, "one"), *other = enlist(w, "two");
	assert_string_equal(seen(w, r).state, "");
	assert_int_equal(baton_runner_tell(r, (struct baton_str){longest, BATON_NAME_MAX}),
	                 BATON_OK);
	assert_memory_equal(seen(w, r).state, longest, BATON_NAME_MAX);
	assert_int_equal(baton_runner_tell(r, BATON_STR("draining")), BATON_OK);
	assert_string_equal(seen(w, r).state, "draining");
	assert_string_equal(seen(w, other).state, "");
	assert_int_equal(baton_runner_tell(r, (struct baton_str){longest, BATON_NAME_MAX + 1}),
	                 BATON_INVALID);
	assert_detail("256");
	assert_int_equal(baton_runner_wish(w->store, BATON_STR("one"), BATON_WISH_DRAIN), BATON_OK);
	assert_string_equal(seen(w, r).state, "draining");
	assert_int_equal(baton_runner_tell(r, BATON_STR("")), BATON_OK);
	assert_string_equal(seen(w, r).state, "");
	struct baton_runner_info info = seen(w, r);
	assert_int_equal(baton_runner_take_over(w->store, &info), BATON_OK);
	assert_int_equal(baton_runner_tell(r, BATON_STR("attached")), BATON_NOT_HELD);
	baton_runner_leave(r);
	baton_runner_leave(other);
}

static void what_a_runner_reports_is_kept_until_it_leaves(void **state)
{
	struct world *w = *state;
	static char text[BATON_RUNNER_REPORT_MAX], longest[BATON_RUNNER_REPORT_MAX + 1];
	memset(longest, 'r', sizeof longest);
	struct baton_str report;
	struct baton_store_time at;
	struct baton_runner *r = enlist(w, "one"), *other = enlist(w, "two");
	uint64_t number = baton_runner_number(r);
	assert_int_equal(baton_runner_reported(w->store, number, text, &report, &at),
	                 BATON_NOT_FOUND);
	const struct baton_str full = {longest, BATON_RUNNER_REPORT_MAX};
	assert_int_equal(baton_runner_report(r, BATON_STR("attached"), full), BATON_OK);
	assert_int_equal(baton_runner_reported(w->store, number, text, &report, &at), BATON_OK);
	assert_true(baton_str_equal(report, full));
	assert_true(at.ms > 0);
	assert_string_equal(seen(w, r).state, "attached");
	assert_int_equal(baton_runner_report(r, BATON_STR("draining"), BATON_STR("a\nb")),
	                 BATON_OK);
	assert_int_equal(baton_runner_tell(r, BATON_STR("detached")), BATON_OK);
	assert_int_equal(baton_runner_reported(w->store, number, text, &report, &at), BATON_OK);
	assert_true(baton_str_equal(report, BATON_STR("a\nb")));
	assert_string_equal(seen(w, r).state, "detached");
	assert_int_equal(baton_runner_reported(w->store, baton_runner_number(other), text, &report,
	                                       &at),
	                 BATON_NOT_FOUND);
	const struct baton_str bad[] = {{longest, sizeof longest},
	                                BATON_STR("a\0b"),
	                                BATON_STR("\xff")};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(baton_runner_report(r, BATON_STR("x"), bad[i]), BATON_INVALID);
	assert_sound(w);
	baton_runner_leave(r);
	assert_int_equal(baton_runner_reported(w->store, number, text, &report, &at),
	                 BATON_NOT_FOUND);
	struct baton_runner_info info = seen(w, other);
	assert_int_equal(baton_runner_report(other, BATON_STR("attached"), BATON_STR("")),
	                 BATON_OK);
	info = seen(w, other);
	assert_int_equal(baton_runner_take_over(w->store, &info), BATON_OK);
	assert_int_equal(baton_runner_report(other, BATON_STR("attached"), BATON_STR("late")),
	                 BATON_NOT_HELD);
	assert_int_equal(baton_runner_reported(w->store, info.number, text, &report, &at),
	                 BATON_NOT_FOUND);
	baton_runner_leave(other);
}

static void a_second_runner_of_one_name_yields_unless_it_replaces(void **state)
{
	struct world *w = *state;
	struct baton_runner *first = enlist(w, "one"), *second = NULL;
	struct baton_runner_ask ask = {.name = BATON_STR("one"),
	                               .weight = 1,
	                               .ttl = baton_duration_s(TTL_S)};
	struct baton_runner_info other;
	assert_int_equal(baton_runner_register(w->store, &ask, &second, &other), BATON_YIELD);
	assert_int_equal(other.number, baton_runner_number(first));
	ask.replace = true;
	assert_int_equal(baton_runner_register(w->store, &ask, &second, NULL), BATON_OK);
	assert_int_equal(baton_runner_beat(first), BATON_NOT_HELD);
	assert_int_equal(baton_runner_beat(second), BATON_OK);
	baton_runner_leave(first);
	assert_int_equal(baton_runner_beat(second), BATON_OK);
	baton_runner_leave(second);
}

static void a_shard_has_one_owner_and_its_fence_grows(void **state)
{
	struct world *w = *state;
	one_shard(w, "q");
	struct baton_runner *a = enlist(w, "a"), *b = enlist(w, "b");
	struct baton_shard_answer first = own(a, "q", 0);
	assert_int_equal(first.err, BATON_OK);
	assert_int_equal(own(a, "q", 0).fence.v, first.fence.v);
	struct baton_shard_answer refused = own(b, "q", 0);
	assert_int_equal(refused.err, BATON_YIELD);
	assert_int_equal(refused.runner, baton_runner_number(a));
	struct baton_shard s = shard("q", 0);
	assert_int_equal(baton_shard_give(a, &s, 1, &refused), BATON_OK);
	assert_int_equal(refused.err, BATON_OK);
	assert_true(own(b, "q", 0).fence.v > first.fence.v);
	baton_runner_leave(a);
	baton_runner_leave(b);
}

static void a_tick_gives_the_work_of_owned_shards_alone(void **state)
{
	struct world *w = *state;
	one_shard(w, "q");
	struct baton_runner *a = enlist(w, "a"), *b = enlist(w, "b");
	struct baton_batch_id id = put(w, "q", "lane");
	put(w, "q", NULL);
	own(a, "q", 0);
	assert_null(tick(w, b, "q"));
	const struct baton_work_claims *c = tick(w, a, "q");
	assert_non_null(c);
	assert_int_equal(c->count, 2);
	assert_id(c->claims[0].batches[0].id, id);
	assert_true(c->claims[0].expires_at.ms == BATON_STORE_TIME_NEVER.ms);
	assert_true(c->claims[1].fence.v > c->claims[0].fence.v);
	assert_null(tick(w, a, "q"));
	assert_int_equal(tick_end(a, &c->claims[0], BATON_COMPLETE).err, BATON_OK);
	assert_int_equal(counts(w, "q").running, 1);
	assert_int_equal(counts(w, "q").done, 1);
	assert_sound(w);
	baton_runner_leave(a);
	baton_runner_leave(b);
	assert_int_equal(counts(w, "q").ready, 1);
	assert_sound(w);
}

static void what_a_runner_has_claimed_is_never_due(void **state)
{
	struct world *w = *state;
	struct baton_store_time due;
	one_shard(w, "q");
	struct baton_runner *a = enlist(w, "a");
	put(w, "q", "lane");
	own(a, "q", 0);
	assert_non_null(tick(w, a, "q"));
	assert_int_equal(baton_work_next_due(w->store, BATON_STR("q"), &due), BATON_NOT_FOUND);
	assert_int_equal(baton_work_next_due(w->store, BATON_STR(""), &due), BATON_NOT_FOUND);
	baton_runner_leave(a);
}

static void set_mode(struct world *w, enum baton_queue_mode mode)
{
	const struct baton_queue_policy p = {.mode = mode};
	assert_int_equal(baton_queue_change(w->store, BATON_STR("q"), &p, BATON_POLICY_MODE),
	                 BATON_OK);
}

/* Its shards are somebody's still, and he asks first. */
static void a_queue_that_anybody_may_claim_from_goes_on_with_its_runner(void **state)
{
	struct world *w = *state;
	one_shard(w, "q");
	struct baton_runner *a = enlist(w, "a");
	own(a, "q", 0);
	put(w, "q", "lane");
	put(w, "q", NULL);
	set_mode(w, BATON_QUEUE_OPEN);
	put(w, "q", "other");
	size_t given = 0;
	/* The first one may only say whose the queue is. */
	for (int i = 0; i < 2; i++) {
		const struct baton_work_claims *c = tick(w, a, "q");
		given += c ? c->count : 0;
	}
	bool fixed = policy(w, "q").mode == BATON_QUEUE_RUNNER;
	baton_runner_leave(a);
	assert_int_equal(given, 3);
	assert_true(fixed);
}

static void a_queue_that_is_pulled_from_gives_a_runner_nothing(void **state)
{
	struct world *w = *state;
	one_shard(w, "q");
	struct baton_runner *a = enlist(w, "a");
	own(a, "q", 0);
	put(w, "q", "lane");
	set_mode(w, BATON_QUEUE_PULL);
	struct baton_shard s = shard("q", 0);
	struct baton_shard_answer owned;
	const struct baton_tick t = {.shards = &s, .shard_count = 1, .owned = &owned};
	struct baton_work_claims *claims = NULL;
	enum baton_err e = baton_runner_tick(a, &t, &claims);
	baton_runner_leave(a);
	assert_int_equal(e, BATON_BUSY);
	assert_null(claims);
	assert_non_null(claim(w, "q", 1));
}

/* How many claims a tick of all that is asked for gives of each; each queue has one shard. */
static void tick_counts(struct world *w, struct baton_runner *r, const struct baton_shard *shards,
                        uint32_t claims, size_t ret[3])
{
	struct baton_shard_answer answers[3];
	struct baton_tick t = {.shards = shards,
	                       .shard_count = 3,
	                       .owned = answers,
	                       .claims = claims};
	struct baton_work_claims *given = NULL;
	assert_int_equal(baton_runner_tick(r, &t, &given), BATON_OK);
	memset(ret, 0, 3 * sizeof ret[0]);
	for (size_t i = 0; given && i < given->count; i++) {
		for (size_t k = 0; k < 3; k++)
			ret[k] += baton_str_equal(given->claims[i].queue, shards[k].queue);
	}
	if (given)
		keep_claims(w, given);
}

static void shards_give_in_turn_until_it_is_enough(void **state)
{
	struct world *w = *state;
	static const struct {
		uint32_t all, each[3];
		size_t given[3];
	} cases[] = {
		{1, {10, 10, 10}, {1, 0, 0}},
		{2, {10, 10, 10}, {1, 1, 0}},
		{4, {10, 10, 10}, {2, 1, 1}},
		{7, {10, 10, 10}, {3, 1, 3}},
		{9, {10, 10, 10}, {4, 1, 4}},
		{7, {2, 10, 10}, {2, 1, 4}},
		{7, {0, 10, 10}, {0, 1, 6}},
		{1000, {900, 900, 900}, {20, 1, 30}},
		{0, {3, 3, 3}, {3, 1, 3}},
		{40, {1000, 1000, 1000}, {20, 1, 19}},
		{45, {1000, 1000, 1000}, {20, 1, 24}},
	};
	static const char *const queues[] = {"a", "b", "c"};
	static const int amounts[] = {20, 1, 30};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct baton_shard shards[3];
		size_t given[3];
		struct baton_runner *r = enlist(w, "r");
		for (size_t k = 0; k < 3; k++) {
			one_shard(w, queues[k]);
			own(r, queues[k], 0);
			for (int n = 0; n < amounts[k] && i == 0; n++)
				put(w, queues[k], NULL);
			shards[k] = shard(queues[k], 0);
			shards[k].claims = cases[i].each[k];
		}
		tick_counts(w, r, shards, cases[i].all, given);
		for (size_t k = 0; k < 3; k++) {
			if (given[k] != cases[i].given[k])
				fail_msg("case %zu: %s gave %zu", i, queues[k], given[k]);
		}
		assert_sound(w);
		baton_runner_leave(r);
	}
}

static void a_shard_that_is_asked_for_twice_gives_no_fence_twice(void **state)
{
	struct world *w = *state;
	one_shard(w, "q");
	struct baton_runner *r = enlist(w, "r");
	own(r, "q", 0);
	for (int i = 0; i < 5; i++)
		put(w, "q", NULL);
	const struct baton_shard shards[] = {shard("q", 0), shard("q", 0)};
	struct baton_shard_answer answers[2];
	struct baton_tick t = {.shards = shards, .shard_count = 2, .owned = answers, .claims = 4};
	struct baton_work_claims *given = NULL;
	assert_int_equal(baton_runner_tick(r, &t, &given), BATON_OK);
	keep_claims(w, given);
	assert_int_equal(given->count, 4);
	for (size_t i = 1; i < 4; i++)
		assert_true(given->claims[i].fence.v > given->claims[i - 1].fence.v);
	const struct baton_work_claims *last = tick(w, r, "q");
	assert_true(last->claims[0].fence.v > given->claims[3].fence.v);
	assert_int_equal(answers[1].err, BATON_OK);
	baton_runner_leave(r);
	assert_sound(w);
}

static struct baton_shard_answer tick_answer(struct baton_runner *r, const char *queue)
{
	struct baton_shard s = shard(queue, 0);
	struct baton_shard_answer a;
	struct baton_tick t = {.shards = &s, .shard_count = 1, .owned = &a};
	struct baton_work_claims *claims = NULL;
	assert_int_equal(baton_runner_tick(r, &t, &claims), BATON_OK);
	assert_null(claims);
	return a;
}

static void each_tick_says_whose_a_shard_is_now(void **state)
{
	struct world *w = *state;
	one_shard(w, "q");
	struct baton_runner *a = enlist(w, "a"), *b = enlist(w, "b");
	assert_int_equal(tick_answer(a, "q").err, BATON_NOT_HELD);
	uint64_t fence = own(a, "q", 0).fence.v;
	assert_int_equal(tick_answer(a, "q").fence.v, fence);
	assert_int_equal(tick_answer(b, "q").err, BATON_YIELD);
	assert_int_equal(tick_answer(b, "q").runner, baton_runner_number(a));
	assert_int_equal(tick_answer(a, "q").fence.v, fence);
	struct baton_shard s = shard("q", 0);
	struct baton_shard_answer answer;
	assert_int_equal(baton_shard_give(a, &s, 1, &answer), BATON_OK);
	assert_int_equal(tick_answer(a, "q").err, BATON_NOT_HELD);
	uint64_t next = own(b, "q", 0).fence.v;
	assert_true(next > fence);
	assert_int_equal(tick_answer(a, "q").err, BATON_YIELD);
	assert_int_equal(tick_answer(b, "q").fence.v, next);
	assert_int_equal(baton_shard_give(b, &s, 1, &answer), BATON_OK);
	assert_true(own(b, "q", 0).fence.v > next);
	assert_true(tick_answer(b, "q").fence.v > next);
	baton_runner_leave(b);
	assert_int_equal(tick_answer(a, "q").err, BATON_NOT_HELD);
	assert_true(own(a, "q", 0).fence.v > next);
	assert_int_equal(tick_answer(a, "q").err, BATON_OK);
	baton_runner_leave(a);
}

static void what_was_put_before_the_first_runner_came_is_found(void **state)
{
	struct world *w = *state;
	struct baton_runner *a = enlist(w, "a");
	for (int i = 0; i < 40; i++)
		put(w, "q", NULL);
	size_t got = 0;
	for (uint32_t n = 0; n < BATON_QUEUE_SHARDS; n++) {
		struct baton_shard s = {BATON_STR("q"), n, 40, 1};
		struct baton_shard_answer answer;
		struct baton_tick t = {.shards = &s, .shard_count = 1, .owned = &answer};
		struct baton_work_claims *claims = NULL;
		assert_int_equal(own(a, "q", n).err, BATON_OK);
		assert_int_equal(baton_runner_tick(a, &t, &claims), BATON_OK);
		got += claims ? claims->count : 0;
		baton_work_claims_free(claims);
		assert_sound(w);
	}
	assert_int_equal(got, 40);
	baton_runner_leave(a);
	struct baton_queue_policy p = policy(w, "q");
	p.mode = BATON_QUEUE_PULL;
	set_policy(w, "q", &p);
	assert_sound(w);
	for (int i = 0; i < 40; i++)
		assert_int_equal(complete(w, claim(w, "q", 1)), BATON_BATCH_GONE);
	assert_sound(w);
}

static void a_runner_that_has_beaten_is_not_taken_over(void **state)
{
	struct world *w = *state;
	struct baton_runner *a = enlist(w, "a");
	struct baton_runner_info old = seen(w, a);
	assert_int_equal(baton_runner_beat(a), BATON_OK);
	assert_int_equal(baton_runner_take_over(w->store, &old), BATON_NOT_HELD);
	assert_int_equal(baton_runner_beat(a), BATON_OK);
	baton_runner_leave(a);
}

static void a_runner_that_is_stopped_keeps_what_it_has_until_it_is_taken_over(void **state)
{
	struct world *w = *state;
	one_shard(w, "q");
	put(w, "q", NULL);
	struct baton_runner *a = enlist(w, "a"), *b = enlist(w, "b");
	own(a, "q", 0);
	const struct baton_work_claims *had = tick(w, a, "q");
	struct baton_runner_info old = seen(w, a);
	assert_int_equal(baton_runner_beat(a), BATON_OK);
	assert_int_equal(baton_runner_stop(w->store, &old), BATON_NOT_HELD);
	assert_int_equal(baton_runner_beat(a), BATON_OK);
	old = seen(w, a);
	assert_int_equal(baton_runner_stop(w->store, &old), BATON_OK);
	struct baton_shard s = shard("q", 0);
	struct baton_shard_answer answer;
	struct baton_work_end end = {.proof = had->claims[0].proof, .how = BATON_COMPLETE};
	struct baton_work_ended ended;
	struct baton_tick t = {.ends = &end, .end_count = 1, .ended = &ended};
	struct baton_work_claims *claims = NULL;
	assert_int_equal(baton_runner_beat(a), BATON_NOT_HELD);
	assert_int_equal(baton_runner_prove(a), BATON_NOT_HELD);
	assert_int_equal(baton_runner_tell(a, BATON_STR("attached")), BATON_NOT_HELD);
	assert_int_equal(baton_runner_tick(a, &t, &claims), BATON_NOT_HELD);
	assert_int_equal(baton_shard_take(a, &s, 1, &answer), BATON_NOT_HELD);
	assert_int_equal(baton_shard_give(a, &s, 1, &answer), BATON_NOT_HELD);
	assert_string_equal(seen(w, a).state, "");
	assert_int_equal(own(b, "q", 0).err, BATON_YIELD);
	assert_int_equal(counts(w, "q").running, 1);
	old = seen(w, a);
	assert_int_equal(baton_runner_take_over(w->store, &old), BATON_OK);
	assert_int_equal(own(b, "q", 0).err, BATON_OK);
	assert_int_equal(tick(w, b, "q")->claims[0].batches[0].attempt, 2);
	baton_runner_leave(a);
	baton_runner_leave(b);
	assert_sound(w);
}

static void what_a_lost_runner_had_is_ready_again_with_an_attempt_more(void **state)
{
	struct world *w = *state;
	one_shard(w, "q");
	struct baton_runner *a = enlist(w, "a"), *b = enlist(w, "b");
	put(w, "q", "lane");
	put(w, "q", NULL);
	uint64_t fence = own(a, "q", 0).fence.v;
	const struct baton_work_claims *old = tick(w, a, "q");
	struct baton_runner_info info = seen(w, a);
	assert_int_equal(baton_runner_take_over(w->store, &info), BATON_OK);
	assert_int_equal(baton_runner_beat(a), BATON_NOT_HELD);
	assert_int_equal(counts(w, "q").ready, 2);
	assert_sound(w);
	assert_true(own(b, "q", 0).fence.v > fence);
	const struct baton_work_claims *new = tick(w, b, "q");
	assert_int_equal(new->count, 2);
	assert_int_equal(new->claims[0].batches[0].attempt, 2);
	assert_true(new->claims[0].fence.v > old->claims[1].fence.v);

	struct baton_work_end late = {.proof = old->claims[0].proof, .how = BATON_COMPLETE};
	struct baton_work_ended answer;
	assert_int_equal(baton_work_end(w->store, &late, 1, &answer), BATON_OK);
	assert_int_equal(answer.err, BATON_NOT_HELD);
	struct baton_tick t = {.ends = &late, .end_count = 1, .ended = &answer};
	struct baton_work_claims *none = NULL;
	assert_int_equal(baton_runner_tick(a, &t, &none), BATON_NOT_HELD);
	assert_int_equal(baton_runner_take_over(w->store, &info), BATON_NOT_HELD);
	baton_runner_leave(a);
	assert_int_equal(counts(w, "q").running, 2);
	baton_runner_leave(b);
	assert_sound(w);
}

static void work_that_kills_its_runners_ends_among_the_dead(void **state)
{
	struct world *w = *state;
	one_shard(w, "q");
	struct baton_queue_policy p = policy(w, "q");
	p.retry.attempts = 2;
	set_policy(w, "q", &p);
	put(w, "q", NULL);
	for (int i = 0; i < 2; i++) {
		struct baton_runner *a = enlist(w, "a");
		own(a, "q", 0);
		assert_non_null(tick(w, a, "q"));
		struct baton_runner_info info = seen(w, a);
		assert_int_equal(baton_runner_take_over(w->store, &info), BATON_OK);
		baton_runner_leave(a);
	}
	assert_int_equal(counts(w, "q").dead, 1);
	assert_int_equal(counts(w, "q").ready, 0);
	assert_sound(w);
}

static void a_shard_that_is_given_back_takes_its_claims_with_it(void **state)
{
	struct world *w = *state;
	one_shard(w, "q");
	struct baton_runner *a = enlist(w, "a");
	put(w, "q", NULL);
	own(a, "q", 0);
	const struct baton_work_claims *c = tick(w, a, "q");
	struct baton_shard s = shard("q", 0);
	struct baton_shard_answer answer;
	assert_int_equal(baton_shard_give(a, &s, 1, &answer), BATON_OK);
	assert_int_equal(counts(w, "q").ready, 1);
	assert_int_equal(tick_end(a, &c->claims[0], BATON_COMPLETE).err, BATON_NOT_HELD);
	own(a, "q", 0);
	assert_int_equal(tick(w, a, "q")->claims[0].batches[0].attempt, 1);
	baton_runner_leave(a);
	assert_sound(w);
}

/* All shards of a queue, taken at once, and everything that is there claimed. */
static const struct baton_work_claims *claim_everywhere(struct world *w, struct baton_runner *r,
                                                        const char *queue)
{
	struct baton_shard shards[BATON_QUEUE_SHARDS];
	struct baton_shard_answer answers[BATON_QUEUE_SHARDS];
	struct baton_work_claims *claims = NULL;
	for (uint32_t i = 0; i < BATON_QUEUE_SHARDS; i++)
		shards[i] = shard(queue, i);
	const struct baton_tick t = {
		.shards = shards,
		.shard_count = BATON_QUEUE_SHARDS,
		.owned = answers,
	};
	assert_int_equal(baton_shard_take(r, shards, BATON_QUEUE_SHARDS, answers), BATON_OK);
	assert_int_equal(baton_runner_tick(r, &t, &claims), BATON_OK);
	assert_non_null(claims);
	keep_claims(w, claims);
	return claims;
}

static void a_shard_that_is_given_back_takes_no_claims_of_others_with_it(void **state)
{
	struct world *w = *state;
	struct baton_runner *a = enlist(w, "a");
	struct baton_shard_answer answer;
	put(w, "q", "one");
	put(w, "q", "two");
	put(w, "q", "three");
	const struct baton_work_claims *c = claim_everywhere(w, a, "q");
	assert_int_equal(c->count, 3);
	for (size_t i = 1; i < 3; i++)
		assert_int_not_equal(c->claims[i].shard, c->claims[0].shard);
	struct baton_shard s = shard("q", c->claims[0].shard);
	assert_int_equal(baton_shard_give(a, &s, 1, &answer), BATON_OK);
	assert_int_equal(counts(w, "q").running, 2);
	assert_int_equal(tick_end(a, &c->claims[0], BATON_COMPLETE).err, BATON_NOT_HELD);
	assert_int_equal(tick_end(a, &c->claims[1], BATON_COMPLETE).err, BATON_OK);
	assert_int_equal(tick_end(a, &c->claims[2], BATON_COMPLETE).err, BATON_OK);
	baton_runner_leave(a);
	assert_sound(w);
}

static void claims_that_their_runner_does_not_know_of_are_given_back(void **state)
{
	struct world *w = *state;
	struct baton_runner *a = enlist(w, "a");
	put(w, "q", "one");
	put(w, "q", "two");
	const struct baton_work_claims *c = claim_everywhere(w, a, "q");
	assert_int_equal(baton_runner_settle(a, &c->claims[1].proof, 1), BATON_OK);
	assert_int_equal(counts(w, "q").running, 1);
	assert_int_equal(tick_end(a, &c->claims[0], BATON_COMPLETE).err, BATON_NOT_HELD);
	assert_int_equal(tick_end(a, &c->claims[1], BATON_COMPLETE).err, BATON_OK);
	c = claim_everywhere(w, a, "q");
	assert_int_equal(c->count, 1);
	assert_int_equal(c->claims[0].batches[0].attempt, 1);
	assert_int_equal(baton_runner_settle(a, NULL, 0), BATON_OK);
	assert_int_equal(counts(w, "q").running, 0);
	const struct baton_runner_info info = seen(w, a);
	assert_int_equal(baton_runner_take_over(w->store, &info), BATON_OK);
	assert_int_equal(baton_runner_settle(a, NULL, 0), BATON_NOT_HELD);
	baton_runner_leave(a);
	assert_sound(w);
}

static void a_queue_of_another_mode_has_no_shards_to_take(void **state)
{
	struct world *w = *state;
	put(w, "pulled", NULL);
	claim(w, "pulled", 1);
	struct baton_runner *a = enlist(w, "a");
	struct baton_shard s = shard("pulled", 0), missing = shard("none", 0);
	struct baton_shard_answer answer;
	assert_int_equal(baton_shard_take(a, &s, 1, &answer), BATON_BUSY);
	assert_detail("pull");
	assert_int_equal(baton_shard_take(a, &missing, 1, &answer), BATON_NOT_FOUND);
	one_shard(w, "q");
	s = shard("q", 1);
	assert_int_equal(baton_shard_take(a, &s, 1, &answer), BATON_INVALID);
	assert_detail("0 to 0");
	own(a, "q", 0);
	put(w, "q", NULL);
	assert_int_equal(try_claim(w, "q"), BATON_BUSY);
	assert_detail("runner");
	baton_runner_leave(a);
	assert_sound(w);
}

static struct baton_where where(struct world *w, const char *lane)
{
	struct baton_where where;
	memset(&where, 0xff, sizeof where);
	assert_int_equal(baton_lane_where(w->store, BATON_STR("q"), baton_str_z(lane), &where),
	                 BATON_OK);
	return where;
}

static void a_lane_is_where_its_work_is_given(void **state)
{
	struct world *w = *state;
	struct baton_runner *a = enlist(w, "a"), *b = enlist(w, "b");
	uint32_t seen_shards = 0;
	for (int i = 0; i < 8; i++) {
		char lane[16];
		snprintf(lane, sizeof lane, "lane %d", i);
		struct baton_batch_id id = put(w, "q", lane);
		struct baton_where nobody = where(w, lane);
		assert_false(nobody.owned);
		struct baton_shard_answer own_answer = own(i % 2 ? a : b, "q", nobody.shard);
		struct baton_where now = where(w, lane);
		assert_int_equal(now.shard, nobody.shard);
		assert_true(now.owned);
		assert_int_equal(now.fence.v, own_answer.fence.v);
		assert_string_equal(now.runner.name, i % 2 ? "a" : "b");
		struct baton_shard s = shard("q", now.shard);
		struct baton_shard_answer answer;
		struct baton_tick t = {.shards = &s, .shard_count = 1, .owned = &answer};
		struct baton_work_claims *claims = NULL;
		assert_int_equal(baton_runner_tick(i % 2 ? a : b, &t, &claims), BATON_OK);
		keep_claims(w, claims);
		assert_str(claims->claims[0].lane, lane);
		assert_int_equal(baton_shard_give(i % 2 ? a : b, &s, 1, &answer), BATON_OK);
		assert_false(where(w, lane).owned);
		assert_int_equal(where(w, lane).fence.v, now.fence.v);
		seen_shards |= UINT32_C(1) << now.shard % 32;
		assert_int_equal(cancel(w, &id), BATON_CANCEL_REMOVED);
	}
	assert_true((seen_shards & (seen_shards - 1)) != 0);
	struct baton_where other;
	assert_int_equal(baton_lane_where(w->store, BATON_STR("none"), BATON_STR("lane"), &other),
	                 BATON_NOT_FOUND);
	assert_int_equal(baton_lane_where(w->store, BATON_STR("q"), BATON_STR(""), &other),
	                 BATON_INVALID);
	baton_runner_leave(a);
	baton_runner_leave(b);
}

static void limits_of_a_registration_are_named(void **state)
{
	struct world *w = *state;
	static const struct baton_str slashed = {"a/b", 3};
	static const struct {
		struct baton_runner_ask ask;
		const char *words;
	} cases[] = {
		{{.name = {"", 0}, .ttl = {INT64_C(5000000000)}}, "name"},
		{{.name = {"a", 1}, .ttl = {INT64_C(999000000)}}, "1s to 1h"},
		{{.name = {"a", 1}, .ttl = {INT64_C(3601000000000)}}, "1s to 1h"},
		{{.name = {"a", 1}, .ttl = {INT64_C(5000000000)}, .weight = 1001}, "0 to 1000"},
		{{.name = {"a", 1}, .ttl = {INT64_C(5000000000)}, .guardian = -1}, "process -1"},
		{{.name = {"a", 1}, .ttl = {INT64_C(5000000000)}, .life = {"life", 4}},
	         "\"life\": a path that begins with / is needed"},
		{{.name = {"a", 1},
	          .ttl = {INT64_C(5000000000)},
	          .queues = &slashed,
	          .queue_count = 1},
	         "'/'"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct baton_runner *r = NULL;
		assert_int_equal(baton_runner_register(w->store, &cases[i].ask, &r, NULL),
		                 BATON_INVALID);
		assert_detail(cases[i].words);
	}
}

static void names_of_a_registration_have_their_limits(void **state)
{
	struct world *w = *state;
	static char text[256];
	struct baton_runner *r = NULL;
	memset(text, 'n', sizeof text);
	for (int i = 0; i < 3; i++) {
		struct baton_runner_ask ask = {.name = BATON_STR("a"),
		                               .ttl = baton_duration_s(TTL_S)};
		struct baton_str *names[] = {&ask.name, &ask.endpoint, &ask.labels};
		*names[i] = (struct baton_str){text, 256};
		assert_int_equal(baton_runner_register(w->store, &ask, &r, NULL), BATON_INVALID);
		assert_detail("256");
	}
}

static void long_lists_and_paths_have_their_limits(void **state)
{
	struct world *w = *state;
	static char text[BATON_RUNNER_LIFE_MAX + 2];
	struct baton_str queues[17];
	struct baton_runner *r = NULL;
	memset(text, 'n', sizeof text);
	text[0] = '/';
	for (size_t i = 0; i < 17; i++)
		queues[i] = (struct baton_str){text + 1, i < 16 ? 255 : 1};
	struct baton_runner_ask ask = {.name = BATON_STR("a"),
	                               .ttl = baton_duration_s(TTL_S),
	                               .queues = queues,
	                               .queue_count = 17,
	                               .life = {text, BATON_RUNNER_LIFE_MAX}};
	assert_int_equal(baton_runner_register(w->store, &ask, &r, NULL), BATON_INVALID);
	assert_detail("the names of 17 queues have 4097 bytes, with one between any two: at most "
	              "4096 are allowed");
	ask.queue_count = 16;
	ask.life.len++;
	assert_int_equal(baton_runner_register(w->store, &ask, &r, NULL), BATON_INVALID);
	assert_detail("4001");
	ask.life.len--;
	assert_int_equal(baton_runner_register(w->store, &ask, &r, NULL), BATON_OK);
	struct baton_runner_info info = seen(w, r);
	assert_int_equal(strlen(info.queues), 16 * 255 + 15);
	assert_true(baton_runner_serves(&info, queues[15]));
	assert_int_equal(strlen(info.life), BATON_RUNNER_LIFE_MAX);
	baton_runner_leave(r);
}

/* As many as there may be: all of them by themselves, or, in a server, which takes its time, as
 * rows like that of the first. Returns how many have to leave. */
static int enlist_all(struct world *w, struct baton_runner *runners[BATON_RUNNERS_MAX])
{
	int count = world_is_served() ? 1 : BATON_RUNNERS_MAX;
	for (int i = 0; i < count; i++) {
		char name[16];
		snprintf(name, sizeof name, "r%d", i);
		runners[i] = enlist(w, name);
	}
	if (count == 1)
		world_copy_runner(w, BATON_RUNNERS_MAX - 1);
	return count;
}

static void there_is_an_end_to_runners(void **state)
{
	struct world *w = *state;
	static struct baton_runner *runners[BATON_RUNNERS_MAX];
	const struct baton_runner_ask one_more = {.name = BATON_STR("one more"),
	                                          .ttl = baton_duration_s(TTL_S)};
	struct baton_runner *r = NULL;
	int count = enlist_all(w, runners), middle = count / 2;
	assert_int_equal(baton_runner_register(w->store, &one_more, &r, NULL), BATON_FULL);
	assert_detail("there are 1024 runners: no more can be registered");
	baton_runner_leave(runners[middle]);
	assert_int_equal(baton_runner_register(w->store, &one_more, &r, NULL), BATON_OK);
	runners[middle] = r;
	for (int i = 0; i < count; i++)
		baton_runner_leave(runners[i]);
}

static void shards_have_their_limits(void **state)
{
	struct world *w = *state;
	static struct baton_shard shards[BATON_SHARDS_MAX + 1];
	static struct baton_shard_answer answers[BATON_SHARDS_MAX + 1];
	one_shard(w, "q");
	struct baton_runner *r = enlist(w, "one");
	for (int i = 0; i <= BATON_SHARDS_MAX; i++)
		shards[i] = shard("q", 0);
	assert_int_equal(baton_shard_take(r, shards, BATON_SHARDS_MAX + 1, answers), BATON_INVALID);
	assert_detail("4097 shards in one call: at most 4096 are allowed");
	shards[0].number = 1;
	assert_int_equal(baton_shard_take(r, shards, 1, answers), BATON_INVALID);
	assert_detail("queue \"q\" has the shards 0 to 0: there is no 1");
	assert_int_equal(baton_shard_list(w->store, BATON_STR("q"), 0, answers, 2), BATON_INVALID);
	assert_int_equal(baton_shard_list(w->store, BATON_STR("q"), UINT32_MAX, answers, 2),
	                 BATON_INVALID);
	assert_detail("queue \"q\" has the shards 0 to 0: there is no 4294967296");
	baton_runner_leave(r);
}

static void ticks_have_their_limits(void **state)
{
	struct world *w = *state;
	struct baton_shard asked = shard("q", 0);
	struct baton_shard_answer answer;
	struct baton_work_claims *claims = NULL;
	struct baton_tick t = {.shards = &asked, .shard_count = 1, .owned = &answer};
	one_shard(w, "q");
	struct baton_runner *r = enlist(w, "one");
	asked.max = 10001;
	assert_int_equal(baton_runner_tick(r, &t, &claims), BATON_INVALID);
	assert_detail("10001 batches in one claim: at most 10000 are allowed");
	asked = shard("q", 0);
	asked.claims = 1001;
	assert_int_equal(baton_runner_tick(r, &t, &claims), BATON_INVALID);
	assert_detail("1001 claims in one call: at most 1000 are allowed");
	t.claims = 1000;
	assert_int_equal(baton_runner_tick(r, &t, &claims), BATON_OK);
	asked.claims = UINT32_MAX;
	assert_int_equal(baton_runner_tick(r, &t, &claims), BATON_OK);
	t.claims = 1001;
	asked.claims = 1;
	assert_int_equal(baton_runner_tick(r, &t, &claims), BATON_INVALID);
	assert_detail("1001 claims in one call: at most 1000 are allowed");
	baton_runner_leave(r);
}

static void a_runner_learns_which_of_its_claims_are_to_be_cancelled(void **state)
{
	struct world *w = *state;
	struct baton_runner *r = enlist(w, "one"), *other = enlist(w, "two");
	struct baton_shard shards[BATON_QUEUE_SHARDS];
	struct baton_shard_answer owned[BATON_QUEUE_SHARDS];
	struct baton_work_claims *claims = NULL;
	struct baton_claim_id ids[4];
	size_t count = 9;
	struct baton_batch_id first = put(w, "q", "x"), second = put(w, "q", "");
	struct baton_batch keyed = batch_of("q", "", NULL);
	keyed.key = BATON_STR("k");
	struct baton_batch_id third = put_batch(w, &keyed);
	for (uint32_t i = 0; i < BATON_QUEUE_SHARDS; i++)
		shards[i] = shard("q", i);
	assert_int_equal(baton_shard_take(r, shards, BATON_QUEUE_SHARDS, owned), BATON_OK);
	const struct baton_tick t = {.shards = shards,
	                             .shard_count = BATON_QUEUE_SHARDS,
	                             .owned = owned,
	                             .claims = 9};
	assert_int_equal(baton_runner_tick(r, &t, &claims), BATON_OK);
	keep_claims(w, claims);
	assert_int_equal(claims->count, 3);
	assert_int_equal(baton_runner_cancels(r, ids, 4, &count), BATON_OK);
	assert_int_equal(count, 0);
	assert_int_equal(cancel(w, &first), BATON_CANCEL_TOLD);
	assert_int_equal(baton_runner_cancels(r, ids, 4, &count), BATON_OK);
	assert_int_equal(count, 1);
	for (size_t i = 0; i < 3; i++) {
		bool is = strcmp(claims->claims[i].batches[0].id.text, first.text) == 0;
		assert_int_equal(strcmp(claims->claims[i].proof.id, ids[0].text) == 0, is);
	}
	assert_int_equal(cancel(w, &second), BATON_CANCEL_TOLD);
	assert_int_equal(cancel(w, &third), BATON_CANCEL_TOLD);
	assert_int_equal(baton_runner_cancels(r, ids, 4, &count), BATON_OK);
	assert_int_equal(count, 3);
	assert_int_equal(baton_runner_cancels(r, ids, 2, &count), BATON_OK);
	assert_int_equal(count, 2);
	assert_int_equal(baton_runner_cancels(other, ids, 4, &count), BATON_OK);
	assert_int_equal(count, 0);
	for (size_t i = 0; i < 3; i++)
		end(w, &claims->claims[i], BATON_ABANDON);
	assert_int_equal(baton_runner_cancels(r, ids, 4, &count), BATON_OK);
	assert_int_equal(count, 0);
	assert_int_equal(counts(w, "q").ready, 0);
	baton_runner_leave(r);
	baton_runner_leave(other);
	assert_sound(w);
}

static const struct CMUnitTest tests[] = {
	WORLD_TEST(a_runner_that_is_registered_is_listed_and_beats),
	WORLD_TEST(what_a_runner_registers_with_is_told_to_others),
	WORLD_TEST(a_runner_serves_the_queues_that_it_names),
	WORLD_TEST(a_runner_proves_that_it_can_write_until_it_is_taken_over),
	WORLD_TEST(what_is_asked_of_a_runner_lasts_as_long_as_it_does),
	WORLD_TEST(what_a_runner_tells_is_seen_by_others),
	WORLD_TEST(what_a_runner_reports_is_kept_until_it_leaves),
	WORLD_TEST(a_second_runner_of_one_name_yields_unless_it_replaces),
	WORLD_TEST(a_shard_has_one_owner_and_its_fence_grows),
	WORLD_TEST(a_tick_gives_the_work_of_owned_shards_alone),
	WORLD_TEST(what_a_runner_has_claimed_is_never_due),
	WORLD_TEST(a_queue_that_anybody_may_claim_from_goes_on_with_its_runner),
	WORLD_TEST(a_queue_that_is_pulled_from_gives_a_runner_nothing),
	WORLD_TEST(shards_give_in_turn_until_it_is_enough),
	WORLD_TEST(a_shard_that_is_asked_for_twice_gives_no_fence_twice),
	WORLD_TEST(each_tick_says_whose_a_shard_is_now),
	WORLD_TEST(what_was_put_before_the_first_runner_came_is_found),
	WORLD_TEST(a_runner_that_has_beaten_is_not_taken_over),
	WORLD_TEST(a_runner_that_is_stopped_keeps_what_it_has_until_it_is_taken_over),
	WORLD_TEST(what_a_lost_runner_had_is_ready_again_with_an_attempt_more),
	WORLD_TEST(work_that_kills_its_runners_ends_among_the_dead),
	WORLD_TEST(a_shard_that_is_given_back_takes_its_claims_with_it),
	WORLD_TEST(a_shard_that_is_given_back_takes_no_claims_of_others_with_it),
	WORLD_TEST(claims_that_their_runner_does_not_know_of_are_given_back),
	WORLD_TEST(a_queue_of_another_mode_has_no_shards_to_take),
	WORLD_TEST(a_lane_is_where_its_work_is_given),
	WORLD_TEST(limits_of_a_registration_are_named),
	WORLD_TEST(names_of_a_registration_have_their_limits),
	WORLD_TEST(long_lists_and_paths_have_their_limits),
	WORLD_TEST(there_is_an_end_to_runners),
	WORLD_TEST(shards_have_their_limits),
	WORLD_TEST(ticks_have_their_limits),
	WORLD_TEST(a_runner_learns_which_of_its_claims_are_to_be_cancelled),
};

WORLD_MAIN("runner", tests)
