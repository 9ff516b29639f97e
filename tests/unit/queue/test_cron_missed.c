/* What becomes of ticks that nobody was there for. */

#include "queue/cron.h"
#include "support/harness.h"
#include "support/rng.h"

#define S INT64_C(1000)
#define MIN (60 * S)
#define HOUR (60 * MIN)
#define ROOM 4
#define GRACE_MS (90 * S)

/* Moments are milliseconds since 1970, in UTC. */
struct missed_case {
	const char *text;
	int64_t last_ms;
	int64_t now_ms;
	int64_t ticks[ROOM];
	size_t count;
	int64_t new_last_ms;
	bool more;
};

static struct cron cron_of(const char *text)
{
	struct cron cron;
	if (cron_parse(baton_str_z(text), &cron) != BATON_OK)
		fail_msg("%s", baton_err_detail());
	return cron;
}

static struct cron_ask ask_of(enum cron_policy policy, int64_t last_ms, int64_t now_ms)
{
	return (struct cron_ask){
		.policy = policy,
		.grace = {GRACE_MS * 1000000},
		.last = {last_ms},
		.now = {now_ms},
	};
}

static void assert_due(enum cron_policy policy, const struct missed_case *cases, size_t count)
{
	struct zone utc = ZONE_UTC;
	for (size_t i = 0; i < count; i++) {
		const struct missed_case *c = &cases[i];
		struct cron cron = cron_of(c->text);
		struct cron_ask ask = ask_of(policy, c->last_ms, c->now_ms);
		struct baton_store_time ticks[ROOM] = {{0}};
		struct cron_due due = cron_missed(&cron, &utc, &ask, ticks, ROOM);
		if (due.count != c->count || due.last.ms != c->new_last_ms || due.more != c->more)
			fail_msg("case %zu: %zu ticks up to %lld, more: %d", i, due.count,
			         (long long)due.last.ms, due.more);
		for (size_t n = 0; n < due.count; n++)
			assert_int_equal(ticks[n].ms, c->ticks[n]);
	}
}

static void a_tick_is_due_at_its_moment_and_not_before(void **state)
{
	(void)state;
	static const struct missed_case cases[] = {
		{"0 * * * *", 0, HOUR - 1, {0}, 0, 0, false},
		{"0 * * * *", 0, HOUR, {HOUR}, 1, HOUR, false},
		{"0 * * * *", 0, HOUR + 1, {HOUR}, 1, HOUR, false},
		{"0 * * * *", HOUR, HOUR + 1, {0}, 0, HOUR, false},
		{"0 * * * *", HOUR, HOUR, {0}, 0, HOUR, false},
		{"0 * * * *", HOUR - 1, HOUR, {HOUR}, 1, HOUR, false},
		/* The clock was put back. */
		{"0 * * * *", 9 * HOUR, HOUR, {0}, 0, 9 * HOUR, false},
	};
	assert_due(CRON_ALL, cases, sizeof cases / sizeof *cases);
	assert_due(CRON_ONCE, cases, sizeof cases / sizeof *cases);
	assert_due(CRON_SKIP, cases, sizeof cases / sizeof *cases);
}

static void all_puts_every_tick_as_far_as_there_is_room(void **state)
{
	(void)state;
	static const struct missed_case cases[] = {
		{"0 * * * *", 0, 3 * HOUR, {HOUR, 2 * HOUR, 3 * HOUR}, 3, 3 * HOUR, false},
		{"0 * * * *",
	         0,
	         4 * HOUR,
	         {HOUR, 2 * HOUR, 3 * HOUR, 4 * HOUR},
	         4,
	         4 * HOUR,
	         false},
		{"0 * * * *", 0, 5 * HOUR, {HOUR, 2 * HOUR, 3 * HOUR, 4 * HOUR}, 4, 4 * HOUR, true},
		{"0 * * * *", 4 * HOUR, 5 * HOUR, {5 * HOUR}, 1, 5 * HOUR, false},
	};
	assert_due(CRON_ALL, cases, sizeof cases / sizeof *cases);
}

static void once_puts_the_last_missed_tick_and_those_on_time(void **state)
{
	(void)state;
	static const struct missed_case cases[] = {
		{"0 * * * *", 0, 5 * HOUR + 5 * MIN, {5 * HOUR}, 1, 5 * HOUR, false},
		{"0 * * * *", 0, 5 * HOUR + GRACE_MS, {5 * HOUR}, 1, 5 * HOUR, false},
		{"0 * * * *", 0, 5 * HOUR + GRACE_MS - 1, {4 * HOUR, 5 * HOUR}, 2, 5 * HOUR, false},
		{"0 * * * *", 4 * HOUR, 5 * HOUR + 1, {5 * HOUR}, 1, 5 * HOUR, false},
		{"0 * * * *", HOUR - 1, HOUR + GRACE_MS + 1, {HOUR}, 1, HOUR, false},
		{"0 * * * *", HOUR - 1, HOUR + GRACE_MS, {HOUR}, 1, HOUR, false},
		{"* * * * *", 0, HOUR, {HOUR - 2 * MIN, HOUR - MIN, HOUR}, 3, HOUR, false},
		{"*/30 * * * * *",
	         0,
	         HOUR,
	         {HOUR - 90 * S, HOUR - 60 * S, HOUR - 30 * S, HOUR},
	         4,
	         HOUR,
	         false},
		{"*/20 * * * * *",
	         0,
	         HOUR,
	         {HOUR - 100 * S, HOUR - 80 * S, HOUR - 60 * S, HOUR - 40 * S},
	         4,
	         HOUR - 40 * S,
	         true},
	};
	assert_due(CRON_ONCE, cases, sizeof cases / sizeof *cases);
}

static void skip_puts_only_those_on_time_and_forgets_the_others(void **state)
{
	(void)state;
	static const struct missed_case cases[] = {
		{"0 * * * *", 0, 5 * HOUR + 5 * MIN, {0}, 0, 5 * HOUR, false},
		{"0 * * * *", 0, 5 * HOUR + GRACE_MS, {0}, 0, 5 * HOUR, false},
		{"0 * * * *", 0, 5 * HOUR + GRACE_MS - 1, {5 * HOUR}, 1, 5 * HOUR, false},
		{"0 * * * *", 0, 5 * HOUR, {5 * HOUR}, 1, 5 * HOUR, false},
		{"0 * * * *", HOUR - 1, HOUR + GRACE_MS + 1, {0}, 0, HOUR, false},
		{"0 * * * *", HOUR - 1, HOUR + GRACE_MS, {0}, 0, HOUR, false},
		{"* * * * *", 0, HOUR, {HOUR - MIN, HOUR}, 2, HOUR, false},
	};
	assert_due(CRON_SKIP, cases, sizeof cases / sizeof *cases);
}

static void a_grace_that_is_no_whole_millisecond_counts_as_the_longer_one(void **state)
{
	(void)state;
	struct zone utc = ZONE_UTC;
	struct cron cron = cron_of("0 * * * *");
	struct baton_store_time ticks[ROOM];
	struct cron_ask ask = ask_of(CRON_SKIP, 0, HOUR + 1);
	ask.grace.ns = 1000001;
	assert_int_equal(cron_missed(&cron, &utc, &ask, ticks, ROOM).count, 1);
	ask.grace.ns = 1000000;
	assert_int_equal(cron_missed(&cron, &utc, &ask, ticks, ROOM).count, 0);
	ask.grace = BATON_DURATION_FOREVER;
	assert_int_equal(cron_missed(&cron, &utc, &ask, ticks, ROOM).count, 1);
	ask = ask_of(CRON_ONCE, INT64_MIN, INT64_MIN + 1);
	assert_int_equal(cron_missed(&cron, &utc, &ask, ticks, ROOM).count, 0);
}

static void no_call_gives_more_than_a_thousand(void **state)
{
	(void)state;
	static struct baton_store_time ticks[CRON_TICKS_MAX + 1];
	struct zone utc = ZONE_UTC;
	struct cron cron = cron_of("* * * * * *");
	struct cron_ask ask = ask_of(CRON_ALL, 0, 5000 * S);
	size_t total = 0;
	for (bool more = true; more;) {
		struct cron_due due = cron_missed(&cron, &utc, &ask, ticks, CRON_TICKS_MAX + 1);
		assert_int_equal(due.count, CRON_TICKS_MAX);
		for (size_t i = 0; i < due.count; i++)
			assert_int_equal(ticks[i].ms, (int64_t)(++total) * S);
		ask.last = due.last;
		more = due.more;
	}
	assert_int_equal(total, 5000);
}

static void centuries_of_missed_ticks_are_passed_at_once(void **state)
{
	(void)state;
	struct zone utc = ZONE_UTC;
	struct cron cron = cron_of("* * * * * *");
	struct baton_store_time ticks[ROOM];
	struct cron_ask ask = ask_of(CRON_ONCE, INT64_MIN, INT64_MAX);
	struct cron_due due = cron_missed(&cron, &utc, &ask, ticks, ROOM);
	assert_int_equal(due.count, 1);
	assert_int_equal(due.last.ms, INT64_C(253402300799000));
	assert_false(due.more);
}

/* The policies by their definition, on every tick. */
static size_t reference(const struct cron *cron, const struct cron_ask *ask, int64_t *ticks)
{
	struct zone utc = ZONE_UTC;
	struct baton_store_time t = ask->last;
	size_t count = 0;
	for (;;) {
		t = cron_next(cron, &utc, t);
		if (t.ms > ask->now.ms)
			return count;
		bool missed = t.ms + GRACE_MS <= ask->now.ms;
		if (missed && ask->policy == CRON_SKIP)
			continue;
		if (missed && ask->policy == CRON_ONCE)
			count = 0;
		ticks[count++] = t.ms;
	}
}

static void every_policy_does_what_it_says_at_any_moment(void **state)
{
	(void)state;
	static const char *const texts[] = {"*/7 * * * * *", "* * * * *", "*/3 * * * *",
	                                    "17 */2 * * *"};
	static const enum cron_policy policies[] = {CRON_ONCE, CRON_ALL, CRON_SKIP};
	static int64_t wanted[CRON_TICKS_MAX];
	static struct baton_store_time ticks[CRON_TICKS_MAX];
	struct zone utc = ZONE_UTC;
	struct rng rng = rng_seed_from_env();
	for (int i = 0; i < 2000; i++) {
		struct cron cron = cron_of(texts[rng_below(&rng, 4)]);
		int64_t last_ms = (int64_t)rng_below(&rng, (uint64_t)HOUR);
		int64_t now_ms = last_ms + (int64_t)rng_below(&rng, (uint64_t)HOUR);
		struct cron_ask ask = ask_of(policies[rng_below(&rng, 3)], last_ms, now_ms);
		size_t count = reference(&cron, &ask, wanted);
		struct cron_due due = cron_missed(&cron, &utc, &ask, ticks, CRON_TICKS_MAX);
		assert_int_equal(due.count, count);
		for (size_t n = 0; n < count; n++)
			assert_int_equal(ticks[n].ms, wanted[n]);
		assert_false(due.more);
		ask.last = due.last;
		assert_true(cron_next(&cron, &utc, due.last).ms > now_ms);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tick_is_due_at_its_moment_and_not_before),
		cmocka_unit_test(all_puts_every_tick_as_far_as_there_is_room),
		cmocka_unit_test(once_puts_the_last_missed_tick_and_those_on_time),
		cmocka_unit_test(skip_puts_only_those_on_time_and_forgets_the_others),
		cmocka_unit_test(a_grace_that_is_no_whole_millisecond_counts_as_the_longer_one),
		cmocka_unit_test(no_call_gives_more_than_a_thousand),
		cmocka_unit_test(centuries_of_missed_ticks_are_passed_at_once),
		cmocka_unit_test(every_policy_does_what_it_says_at_any_moment),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
