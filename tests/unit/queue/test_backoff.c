/* Delays between attempts. */
#include "queue/backoff.h"
#include "support/harness.h"
#include "support/rng.h"

#define S INT64_C(1000000000)

struct delay_case {
	struct baton_retry retry;
	uint32_t attempt;
	uint64_t random;
	int64_t ns;
};

#define EXPONENTIAL(base_ns, cap_ns)                                                       \
	{                                                                                  \
		.backoff = BATON_BACKOFF_EXPONENTIAL, .base = {base_ns}, .cap = { cap_ns } \
	}

static void assert_delays(const struct delay_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct delay_case *c = &cases[i];
		struct baton_duration d = backoff_delay(&c->retry, c->attempt, c->random);
		if (d.ns != c->ns)
			fail_msg("case %zu: %lld", i, (long long)d.ns);
	}
}

static void the_longest_delay_doubles_from_the_base_to_the_cap(void **state)
{
	(void)state;
	static const struct delay_case cases[] = {
		{EXPONENTIAL(S, 3600 * S), 1, UINT64_MAX, S},
		{EXPONENTIAL(S, 3600 * S), 2, UINT64_MAX, 2 * S},
		{EXPONENTIAL(S, 3600 * S), 3, UINT64_MAX, 4 * S},
		{EXPONENTIAL(S, 3600 * S), 12, UINT64_MAX, 2048 * S},
		{EXPONENTIAL(S, 3600 * S), 13, UINT64_MAX, 3600 * S},
		{EXPONENTIAL(S, 3600 * S), 14, UINT64_MAX, 3600 * S},
		{EXPONENTIAL(S, 3600 * S), UINT32_MAX, UINT64_MAX, 3600 * S},
		{EXPONENTIAL(S, 4 * S), 3, UINT64_MAX, 4 * S},
		{EXPONENTIAL(0, 3600 * S), UINT32_MAX, UINT64_MAX, 0},
		{EXPONENTIAL(7, 7), 9, UINT64_MAX, 7},
	};
	assert_delays(cases, sizeof cases / sizeof *cases);
}

static void a_delay_saturates(void **state)
{
	(void)state;
	static const struct delay_case cases[] = {
		{EXPONENTIAL(1, INT64_MAX), 63, UINT64_MAX, INT64_C(1) << 62},
		{EXPONENTIAL(1, INT64_MAX), 64, UINT64_MAX, INT64_MAX},
		{EXPONENTIAL(1, INT64_MAX), UINT32_MAX, UINT64_MAX, INT64_MAX},
	};
	assert_delays(cases, sizeof cases / sizeof *cases);
}

static void the_random_bits_choose_among_all_delays_evenly(void **state)
{
	(void)state;
	static const struct delay_case cases[] = {
		{EXPONENTIAL(3, 3), 1, 0, 0},
		{EXPONENTIAL(3, 3), 1, (UINT64_C(1) << 62) - 1, 0},
		{EXPONENTIAL(3, 3), 1, UINT64_C(1) << 62, 1},
		{EXPONENTIAL(3, 3), 1, (UINT64_C(1) << 63) - 1, 1},
		{EXPONENTIAL(3, 3), 1, UINT64_C(1) << 63, 2},
		{EXPONENTIAL(3, 3), 1, UINT64_C(3) << 62, 3},
		{EXPONENTIAL(3, 3), 1, UINT64_MAX, 3},
	};
	assert_delays(cases, sizeof cases / sizeof *cases);
}

static void a_fixed_delay_is_the_base_and_none_is_nothing(void **state)
{
	(void)state;
	static const struct delay_case cases[] = {
		{{.backoff = BATON_BACKOFF_FIXED, .base = {5 * S}}, 1, 0, 5 * S},
		{{.backoff = BATON_BACKOFF_FIXED, .base = {5 * S}}, 9, 77, 5 * S},
		{{.backoff = BATON_BACKOFF_FIXED, .base = {5 * S}}, UINT32_MAX, UINT64_MAX, 5 * S},
		{{.backoff = BATON_BACKOFF_NONE, .base = {5 * S}}, 1, UINT64_MAX, 0},
		{{.backoff = BATON_BACKOFF_NONE, .base = {5 * S}}, UINT32_MAX, UINT64_MAX, 0},
	};
	assert_delays(cases, sizeof cases / sizeof *cases);
}

static void any_backoff_stays_between_nothing_and_its_cap(void **state)
{
	(void)state;
	struct rng rng = rng_seed_from_env();
	for (int i = 0; i < 100000; i++) {
		int64_t cap = (int64_t)(rng_next(&rng) >> 1 >> rng_below(&rng, 63));
		struct baton_retry b =
			EXPONENTIAL((int64_t)rng_below(&rng, (uint64_t)cap + 1), cap);
		uint32_t attempt = 1 + (uint32_t)(rng_next(&rng) >> 33 >> rng_below(&rng, 31));
		int64_t ns = backoff_delay(&b, attempt, rng_next(&rng)).ns;
		int64_t most = backoff_delay(&b, attempt, UINT64_MAX).ns;
		assert_true(ns >= 0 && ns <= most && most <= cap && most >= b.base.ns);
		assert_true(backoff_delay(&b, attempt + 1, UINT64_MAX).ns >= most);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_longest_delay_doubles_from_the_base_to_the_cap),
		cmocka_unit_test(a_delay_saturates),
		cmocka_unit_test(the_random_bits_choose_among_all_delays_evenly),
		cmocka_unit_test(a_fixed_delay_is_the_base_and_none_is_nothing),
		cmocka_unit_test(any_backoff_stays_between_nothing_and_its_cap),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
