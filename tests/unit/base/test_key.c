/* The limits of a key policy. */
#include <baton/key.h>

#include "support/harness.h"

#define MS INT64_C(1000000)
#define DAY (86400000 * MS)

static void the_default_is_one_holder_in_the_cluster_and_nothing_else(void **state)
{
	(void)state;
	struct baton_key_policy p = baton_key_policy_default();
	assert_int_equal(p.limit, 1);
	assert_int_equal(p.scope, BATON_KEY_SCOPE_CLUSTER);
	assert_int_equal(p.on_conflict, BATON_KEY_WAIT);
	assert_int_equal(p.waiting_max, 0);
	assert_int_equal(p.on_retry, BATON_KEY_RETRY_KEEP);
	assert_int_equal(p.rate, 0);
	assert_int_equal(p.window.ns, 0);
	assert_false(p.fair);
	assert_int_equal(p.ttl.ns, 0);
	assert_int_equal(baton_key_policy_check(&p), BATON_OK);
}

/* A policy that uses everything. */
static struct baton_key_policy full(void)
{
	return (struct baton_key_policy){
		.limit = 5,
		.scope = BATON_KEY_SCOPE_HOST,
		.on_conflict = BATON_KEY_LATEST,
		.waiting_max = 10,
		.on_retry = BATON_KEY_RETRY_GIVE_UP,
		.rate = 3,
		.window = {MS},
		.fair = true,
		.ttl = {MS},
	};
}

/* Sets one field of a policy. */
enum field {
	LIMIT = 1,
	SCOPE,
	CONFLICT,
	WAITING,
	RETRY,
	RATE,
	WINDOW,
	TTL
};

static void set(struct baton_key_policy *p, enum field field, int64_t value)
{
	switch (field) {
	case LIMIT:
		p->limit = (uint32_t)value;
		return;
	case SCOPE:
		p->scope = (enum baton_key_scope)value;
		return;
	case CONFLICT:
		p->on_conflict = (enum baton_key_conflict)value;
		return;
	case WAITING:
		p->waiting_max = (uint32_t)value;
		return;
	case RETRY:
		p->on_retry = (enum baton_key_retry)value;
		return;
	case RATE:
		p->rate = (uint32_t)value;
		return;
	case WINDOW:
		p->window.ns = value;
		return;
	case TTL:
		p->ttl.ns = value;
		return;
	}
}

static void every_value_within_its_limits_is_allowed(void **state)
{
	(void)state;
	static const struct {
		enum field field;
		int64_t value;
	} cases[] = {
		{LIMIT, 1},    {LIMIT, 1000000}, {SCOPE, 1}, {SCOPE, 3}, {CONFLICT, 1},
		{CONFLICT, 5}, {WAITING, 0},     {RETRY, 1}, {RETRY, 2}, {WAITING, 1000000},
		{RATE, 1},     {RATE, 1000000},  {TTL, 0},   {TTL, MS},  {WINDOW, MS},
		{WINDOW, DAY}, {TTL, DAY},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct baton_key_policy p = full();
		set(&p, cases[i].field, cases[i].value);
		assert_int_equal(baton_key_policy_check(&p), BATON_OK);
	}
}

static void a_value_outside_is_refused_with_its_name_and_its_limits(void **state)
{
	(void)state;
	static const struct {
		enum field field;
		int64_t value;
		const char *detail;
	} cases[] = {
		{LIMIT, 0, "limit is 0: 1 to 1000000 are allowed"},
		{LIMIT, 1000001, "limit is 1000001: 1 to 1000000 are allowed"},
		{LIMIT, UINT32_MAX, "limit is 4294967295: 1 to 1000000 are allowed"},
		{SCOPE, 0, "scope is 0: 1 (process), 2 (host) and 3 (cluster) are allowed"},
		{SCOPE, 4, "scope is 4: 1 (process), 2 (host) and 3 (cluster) are allowed"},
		{CONFLICT, 0,
	         "on_conflict is 0: 1 (wait), 2 (skip), 3 (replace), 4 (latest) and 5 (first) are "
	         "allowed"},
		{CONFLICT, 6,
	         "on_conflict is 6: 1 (wait), 2 (skip), 3 (replace), 4 (latest) and 5 (first) are "
	         "allowed"},
		{WAITING, 1000001, "waiting_max is 1000001: 0 to 1000000 are allowed"},
		{RETRY, 0, "on_retry is 0: 1 (keep) and 2 (give up) are allowed"},
		{RETRY, 3, "on_retry is 3: 1 (keep) and 2 (give up) are allowed"},
		{RATE, 1000001, "rate is 1000001: 0 to 1000000 are allowed"},
		{RATE, 0, "window is 1ms: only 0 is allowed without a rate"},
		{WINDOW, 0, "window is 0: 1ms to 1d are allowed"},
		{WINDOW, MS - 1, "window is 999us 999ns: 1ms to 1d are allowed"},
		{WINDOW, DAY + 1, "window is 1d 1ns: 1ms to 1d are allowed"},
		{WINDOW, INT64_MAX, "window is infinity: 1ms to 1d are allowed"},
		{WINDOW, -MS, "window is -1ms: 1ms to 1d are allowed"},
		{TTL, MS - 1, "ttl is 999us 999ns: 1ms to 1d are allowed"},
		{TTL, DAY + 1, "ttl is 1d 1ns: 1ms to 1d are allowed"},
		{TTL, INT64_MIN,
	         "ttl is -106751d 23h 47min 16s 854ms 775us 808ns: 1ms to 1d are allowed"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct baton_key_policy p = full();
		set(&p, cases[i].field, cases[i].value);
		assert_int_equal(baton_key_policy_check(&p), BATON_INVALID);
		assert_string_equal(baton_err_detail(), cases[i].detail);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_default_is_one_holder_in_the_cluster_and_nothing_else),
		cmocka_unit_test(every_value_within_its_limits_is_allowed),
		cmocka_unit_test(a_value_outside_is_refused_with_its_name_and_its_limits),
	};
	return cmocka_run_group_tests_name("key", tests, NULL, NULL);
}
