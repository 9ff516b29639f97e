/* The policy of a queue. */
#include <stdio.h>
#include <string.h>

#include "queue/policy.h"
#include "support/harness.h"

static struct baton_queue_policy good;

static void refuse(const char *words)
{
	assert_int_equal(baton_queue_policy_check(&good), BATON_INVALID);
	if (!strstr(baton_err_detail(), words))
		fail_msg("\"%s\" is not in: %s", words, baton_err_detail());
	good = baton_queue_policy_default();
}

static void allow(void)
{
	assert_int_equal(baton_queue_policy_check(&good), BATON_OK);
	good = baton_queue_policy_default();
}

static void the_default_is_what_the_manual_says(void **state)
{
	(void)state;
	struct baton_queue_policy p = baton_queue_policy_default();
	assert_int_equal(baton_queue_policy_check(&p), BATON_OK);
	assert_int_equal(p.mode, BATON_QUEUE_OPEN);
	assert_int_equal(p.shards, 16);
	assert_int_equal(p.payload_max, 1048576);
	assert_int_equal(p.waiting_max, 0);
	assert_int_equal(p.retry.attempts, 20);
	assert_int_equal(p.retry.backoff, BATON_BACKOFF_EXPONENTIAL);
	assert_int_equal(p.retry.base.ns, baton_duration_s(1).ns);
	assert_int_equal(p.retry.cap.ns, baton_duration_s(3600).ns);
	assert_int_equal(p.retry_lane.attempts, 5);
	assert_int_equal(p.retry_lane.cap.ns, baton_duration_s(30).ns);
	assert_int_equal(p.on_retry, BATON_ON_RETRY_BLOCK);
	assert_int_equal(p.on_dead, BATON_ON_DEAD_CONTINUE);
	assert_int_equal(p.dedupe.ns, baton_duration_s(86400).ns);
	assert_int_equal(p.keep.ns, 0);
	assert_false(p.paused);
}

static void numbers_have_their_limits(void **state)
{
	(void)state;
	good = baton_queue_policy_default();
	good.mode = (enum baton_queue_mode)0;
	refuse("mode is 0: 1 to 4 are allowed");
	good.mode = (enum baton_queue_mode)5;
	refuse("mode is 5");
	good.shards = 0;
	refuse("shards is 0: 1 to 4096 are allowed");
	good.shards = 4097;
	refuse("shards is 4097");
	good.shards = 4096;
	allow();
	good.payload_max = 0;
	refuse("payload_max is 0: 1 to 67108864 are allowed");
	good.payload_max = (1u << 26) + 1;
	refuse("payload_max is 67108865");
	good.payload_max = 1u << 26;
	allow();
	good.waiting_max = BATON_QUEUE_WAITING_MAX + 1;
	refuse("waiting_max is 1000000000001: 0 to 1000000000000 are allowed");
	good.on_retry = (enum baton_on_retry)3;
	refuse("on_retry is 3: 1 to 2 are allowed");
	good.on_dead = (enum baton_on_dead)0;
	refuse("on_dead is 0: 1 to 2 are allowed");
	good.key_limit = 0;
	refuse("key_limit is 0: 1 to 1000000 are allowed");
	good.key_limit = 1000001;
	refuse("key_limit is 1000001");
	good.key_limit = 1000000;
	allow();
	good.hold_on_retry = (enum baton_hold_on_retry)3;
	refuse("hold_on_retry is 3: 1 to 2 are allowed");
}

static void spans_have_their_limits(void **state)
{
	(void)state;
	good = baton_queue_policy_default();
	good.dedupe.ns = 0;
	refuse("dedupe is 0: 1ms to 365d are allowed");
	good.dedupe = baton_duration_ms(BATON_QUEUE_SPAN_MAX_MS + 1);
	refuse("dedupe is");
	good.dedupe = baton_duration_ms(BATON_QUEUE_SPAN_MAX_MS);
	allow();
	good.keep.ns = -1;
	refuse("keep is -1ns: 0 to 365d are allowed");
	good.keep = baton_duration_ms(BATON_QUEUE_SPAN_MAX_MS + 1);
	refuse("keep is");
}

static void retries_have_their_limits(void **state)
{
	(void)state;
	good = baton_queue_policy_default();
	good.retry.attempts = 0;
	refuse("attempts is 0: 1 to 1000000 are allowed");
	good.retry_lane.attempts = 1000001;
	refuse("attempts is 1000001");
	good.retry.backoff = (enum baton_backoff)4;
	refuse("backoff is 4: 1 to 3 are allowed");
	good.retry.base.ns = 0;
	refuse("base is 0: 1ms to 1d are allowed");
	good.retry.base = good.retry.cap = baton_duration_ms(86400001);
	refuse("base is");
	good.retry.cap = baton_duration_ms(999);
	refuse("cap is 999ms: 1s to 1d are allowed");
	good.retry.cap = baton_duration_ms(86400001);
	refuse("cap is");
	good.retry = (struct baton_retry){.attempts = 1, .backoff = BATON_BACKOFF_NONE};
	allow();
	good.retry = (struct baton_retry){1, BATON_BACKOFF_FIXED, baton_duration_ms(1), {0}};
	allow();
}

static void each_field_is_changed_alone(void **state)
{
	(void)state;
	const struct baton_queue_policy other = {
		.mode = BATON_QUEUE_LANE,
		.shards = 2,
		.payload_max = 3,
		.waiting_max = 4,
		.retry = {5, BATON_BACKOFF_FIXED, baton_duration_ms(6), baton_duration_s(7)},
		.retry_lane = {8, BATON_BACKOFF_FIXED, baton_duration_ms(9), baton_duration_s(10)},
		.on_retry = BATON_ON_RETRY_PASS,
		.on_dead = BATON_ON_DEAD_HOLD,
		.dedupe = baton_duration_ms(11),
		.keep = baton_duration_ms(12),
		.key_limit = 13,
		.hold_on_retry = BATON_HOLD_GIVE_UP,
		.on_conflict = BATON_CONFLICT_FIRST,
		.key_waiting_max = 7,
		.key_fair = BATON_KEY_FAIR_ON,
		.key_rate = {14, baton_duration_ms(15)},
		.key_ttl = baton_duration_ms(16),
		.key_scope = BATON_KEY_SCOPE_CLUSTER, /* the only one that goes with all */
		.key_class = "a class",
		.paused = true,
	};
	struct baton_queue_policy p = baton_queue_policy_default(), one = p;
	assert_int_equal(policy_change(&p, &other, 0), BATON_OK);
	assert_int_equal(p.shards, BATON_QUEUE_SHARDS);
	for (uint32_t field = 1; field < BATON_POLICY_ALL; field <<= 1) {
		one = baton_queue_policy_default();
		assert_int_equal(policy_change(&one, &other, field), BATON_OK);
		assert_int_equal(one.mode == other.mode, field == BATON_POLICY_MODE);
		assert_int_equal(one.retry.cap.ns == other.retry.cap.ns, field == BATON_POLICY_CAP);
		assert_int_equal(one.retry_lane.attempts == other.retry_lane.attempts,
		                 field == BATON_POLICY_LANE_ATTEMPTS);
		assert_int_equal(one.keep.ns == other.keep.ns, field == BATON_POLICY_KEEP);
		assert_int_equal(one.key_limit == other.key_limit, field == BATON_POLICY_KEY_LIMIT);
		assert_int_equal(one.hold_on_retry == other.hold_on_retry,
		                 field == BATON_POLICY_HOLD_ON_RETRY);
		assert_int_equal(one.on_conflict == other.on_conflict,
		                 field == BATON_POLICY_ON_CONFLICT);
		assert_int_equal(one.key_waiting_max == other.key_waiting_max,
		                 field == BATON_POLICY_KEY_WAITING_MAX);
		assert_int_equal(one.key_fair == other.key_fair, field == BATON_POLICY_KEY_FAIR);
		assert_int_equal(one.key_rate.starts == other.key_rate.starts,
		                 field == BATON_POLICY_KEY_RATE);
		assert_int_equal(one.key_rate.window.ns == other.key_rate.window.ns,
		                 field == BATON_POLICY_KEY_RATE);
		assert_int_equal(one.key_ttl.ns == other.key_ttl.ns, field == BATON_POLICY_KEY_TTL);
		assert_int_equal(strcmp(one.key_class, other.key_class) == 0,
		                 field == BATON_POLICY_KEY_CLASS);
		assert_int_equal(one.paused == other.paused, field == BATON_POLICY_PAUSED);
		/* There is no class with the others. */
		if (field != BATON_POLICY_KEY_CLASS)
			assert_int_equal(policy_change(&p, &other, field), BATON_OK);
	}
	assert_int_equal(p.shards, 2);
	assert_int_equal(p.waiting_max, 4);
	assert_int_equal(p.retry.base.ns, other.retry.base.ns);
	assert_int_equal(p.retry_lane.cap.ns, other.retry_lane.cap.ns);
	assert_int_equal(p.on_dead, BATON_ON_DEAD_HOLD);
	assert_true(p.paused);
}

static void a_scope_is_changed_where_it_goes_with_the_rest(void **state)
{
	(void)state;
	const struct baton_queue_policy host = {.key_scope = BATON_KEY_SCOPE_HOST,
	                                        .hold_on_retry = BATON_HOLD_GIVE_UP};
	struct baton_queue_policy p = baton_queue_policy_default();
	assert_int_equal(policy_change(&p, &host, BATON_POLICY_KEY_SCOPE), BATON_INVALID);
	assert_string_equal(baton_err_detail(), "key_scope is host: that is possible where "
	                                        "hold_on_retry is give-up");
	assert_int_equal(p.key_scope, BATON_KEY_SCOPE_CLUSTER);
	assert_int_equal(policy_change(&p, &host,
	                               BATON_POLICY_KEY_SCOPE | BATON_POLICY_HOLD_ON_RETRY),
	                 BATON_OK);
	assert_int_equal(p.key_scope, BATON_KEY_SCOPE_HOST);
	assert_true(policy_has_sites(&p));
	assert_string_equal(policy_against_guests(&p), "key_scope is host");
	p.mode = BATON_QUEUE_RUNNER;
	assert_int_equal(baton_queue_policy_check(&p), BATON_OK);
	p.mode = BATON_QUEUE_PULL;
	assert_int_equal(baton_queue_policy_check(&p), BATON_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_default_is_what_the_manual_says),
		cmocka_unit_test(numbers_have_their_limits),
		cmocka_unit_test(spans_have_their_limits),
		cmocka_unit_test(retries_have_their_limits),
		cmocka_unit_test(each_field_is_changed_alone),
		cmocka_unit_test(a_scope_is_changed_where_it_goes_with_the_rest),
	};
	return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
