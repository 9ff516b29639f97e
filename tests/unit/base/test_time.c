/* Arithmetic on moments and spans, and how moments are shown. */
#include <baton/time.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "support/harness.h"
#include "support/rng.h"
#include "support/soak.h"

#define NEVER INT64_MAX
#define MS INT64_C(1000000)

static void spans_from_whole_numbers_saturate(void **state)
{
	(void)state;
	static const struct {
		int64_t n;
		int64_t ms_ns;
		int64_t s_ns;
	} cases[] = {
		{0, 0, 0},
		{1, 1000000, 1000000000},
		{-1, -1000000, -1000000000},
		{9223372036, INT64_C(9223372036000000), INT64_C(9223372036000000000)},
		{9223372037, INT64_C(9223372037000000), INT64_MAX},
		{-9223372037, INT64_C(-9223372037000000), INT64_MIN},
		{INT64_MAX, INT64_MAX, INT64_MAX},
		{INT64_MIN, INT64_MIN, INT64_MIN},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_true(baton_duration_ms(cases[i].n).ns == cases[i].ms_ns);
		assert_true(baton_duration_s(cases[i].n).ns == cases[i].s_ns);
	}
}

static void adding_a_span_saturates_and_never_stays_never(void **state)
{
	(void)state;
	static const struct {
		int64_t at;
		int64_t span;
		int64_t sum;
	} cases[] = {
		{5, 7, 12},
		{5, -7, -2},
		{NEVER - 1, 1, NEVER},
		{NEVER - 1, 2, NEVER},
		{INT64_MIN, -1, INT64_MIN},
		{INT64_MIN + 1, -1, INT64_MIN},
		{NEVER, -1, NEVER},
		{NEVER, INT64_MIN, NEVER},
		{-5, NEVER, NEVER},
		{INT64_MIN, NEVER, NEVER},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct baton_mono at = {cases[i].at};
		struct baton_duration span = {cases[i].span};
		assert_true(baton_mono_add(at, span).ns == cases[i].sum);
	}
}

static void the_span_between_moments_saturates(void **state)
{
	(void)state;
	static const struct {
		int64_t to;
		int64_t from;
		int64_t span;
	} cases[] = {
		{7, 5, 2},
		{5, 7, -2},
		{NEVER - 1, -1, NEVER},
		{NEVER - 1, -2, NEVER},
		{-2, NEVER - 1, -NEVER - 1},
		{INT64_MIN, 1, INT64_MIN},
		{NEVER, 5, NEVER},
		{NEVER, -5, NEVER},
		{NEVER, NEVER, NEVER},
		{5, NEVER, INT64_MIN},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct baton_mono to = {cases[i].to};
		struct baton_mono from = {cases[i].from};
		assert_true(baton_mono_sub(to, from).ns == cases[i].span);
	}
}

static void on_the_stores_clock_a_part_of_a_millisecond_counts_as_one(void **state)
{
	(void)state;
	static const struct {
		int64_t at;
		int64_t span;
		int64_t sum;
	} cases[] = {
		{100, 0, 100},
		{100, 1, 101},
		{100, MS - 1, 101},
		{100, MS, 101},
		{100, MS + 1, 102},
		{100, -1, 100},
		{100, -MS, 99},
		{100, -MS - 1, 99},
		{NEVER - 1, MS, NEVER},
		{NEVER - 1, 2 * MS, NEVER},
		{INT64_MIN, -MS, INT64_MIN},
		{NEVER, -MS, NEVER},
		{-5, NEVER, NEVER},
		{0, NEVER - 1, INT64_C(9223372036855)},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct baton_store_time at = {cases[i].at};
		struct baton_duration span = {cases[i].span};
		assert_true(baton_store_time_add(at, span).ms == cases[i].sum);
	}
}

static void the_span_between_stored_moments_saturates(void **state)
{
	(void)state;
	static const struct {
		int64_t to;
		int64_t from;
		int64_t span;
	} cases[] = {
		{7, 5, 2 * MS},
		{5, 7, -2 * MS},
		{INT64_C(9223372036854), 0, INT64_C(9223372036854) * MS},
		{INT64_C(9223372036855), 0, NEVER},
		{0, INT64_C(9223372036855), INT64_MIN},
		{NEVER, 5, NEVER},
		{NEVER, NEVER, NEVER},
		{5, NEVER, INT64_MIN},
		{INT64_MIN, 1, INT64_MIN},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct baton_store_time to = {cases[i].to};
		struct baton_store_time from = {cases[i].from};
		assert_true(baton_store_time_sub(to, from).ns == cases[i].span);
	}
}

static void at_exactly_the_deadline_it_is_too_late(void **state)
{
	(void)state;
	assert_true(baton_mono_live((struct baton_mono){11}, (struct baton_mono){10}));
	assert_false(baton_mono_live((struct baton_mono){10}, (struct baton_mono){10}));
	assert_false(baton_mono_live((struct baton_mono){9}, (struct baton_mono){10}));
	assert_true(baton_store_time_live((struct baton_store_time){11},
	                                  (struct baton_store_time){10}));
	assert_false(baton_store_time_live((struct baton_store_time){10},
	                                   (struct baton_store_time){10}));
}

static void at_exactly_its_moment_it_is_ready(void **state)
{
	(void)state;
	struct baton_store_time now = {10};
	assert_true(baton_store_time_ready((struct baton_store_time){9}, now));
	assert_true(baton_store_time_ready((struct baton_store_time){10}, now));
	assert_false(baton_store_time_ready((struct baton_store_time){11}, now));
}

static void a_moment_is_shown_as_a_date_in_utc(void **state)
{
	(void)state;
	static const struct {
		int64_t ms;
		const char *text;
	} cases[] = {
		{0, "1970-01-01T00:00:00.000Z"},
		{-1, "1969-12-31T23:59:59.999Z"},
		{INT64_C(1772269500250), "2026-02-28T09:05:00.250Z"},
		{INT64_C(951782400000), "2000-02-29T00:00:00.000Z"},
		{INT64_C(951868800000), "2000-03-01T00:00:00.000Z"},
		{INT64_C(4107542399999), "2100-02-28T23:59:59.999Z"},
		{INT64_C(4107542400000), "2100-03-01T00:00:00.000Z"},
		{INT64_C(1735689599999), "2024-12-31T23:59:59.999Z"},
		{INT64_C(253402300799999), "9999-12-31T23:59:59.999Z"},
		{INT64_C(253402300800000), "@253402300800000"},
		{INT64_C(-62167219200000), "0000-01-01T00:00:00.000Z"},
		{INT64_C(-62167219200001), "@-62167219200001"},
		{INT64_MIN, "@-9223372036854775808"},
		{INT64_MAX - 1, "@9223372036854775806"},
		{INT64_MAX, "never"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[BATON_STORE_TIME_TEXT];
		struct baton_store_time t = {cases[i].ms};
		assert_ptr_equal(baton_store_time_print(t, text), text);
		assert_string_equal(text, cases[i].text);
	}
}

static void assert_as_the_c_library(int64_t ms)
{
	int64_t s = ms >= 0 ? ms / 1000 : -((999 - ms) / 1000);
	time_t seconds = (time_t)s;
	struct tm tm;
	char date[64], expected[80], text[BATON_STORE_TIME_TEXT];
	assert_non_null(gmtime_r(&seconds, &tm));
	strftime(date, sizeof date, "-%m-%dT%H:%M:%S", &tm);
	snprintf(expected, sizeof expected, "%04d%s.%03dZ", tm.tm_year + 1900, date,
	         (int)(ms - s * 1000));
	baton_store_time_print((struct baton_store_time){ms}, text);
	assert_string_equal(text, expected);
}

static void every_date_is_the_one_that_the_c_library_shows(void **state)
{
	(void)state;
	const int64_t first = INT64_C(-62167219200000);
	const int64_t last = INT64_C(253402300799999);
	/* Every day of 400 years, where the calendar begins anew, and moments at random. */
	for (int64_t day = 0; day < 146097 + 1000; day++)
		assert_as_the_c_library(first + day * 86400000);
	struct rng rng = rng_seed_from_env();
	for (unsigned i = 0; i < soak_scale(20000, 5000000); i++)
		assert_as_the_c_library(first +
		                        (int64_t)rng_below(&rng, (uint64_t)(last - first + 1)));
}

static void a_moment_is_read_as_people_write_it(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t ms;
	} cases[] = {
		{"2026-02-28T09:05:00Z", INT64_C(1772269500000)},
		{"2026-02-28 10:05:00.25+01:00", INT64_C(1772269500250)},
		{"2026-02-28t08:35:00-00:30", INT64_C(1772269500000)},
		{"2026-02-28T09:05:00.0001Z", INT64_C(1772269500001)},
		{"@1772269500", INT64_C(1772269500000)},
		{"@1772269500.5", INT64_C(1772269500500)},
		{"@0", 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct baton_store_time t;
		assert_int_equal(baton_store_time_parse(baton_str_z(cases[i].text), &t), BATON_OK);
		assert_int_equal(t.ms, cases[i].ms);
	}
}

static void what_is_no_moment_is_refused_and_named(void **state)
{
	(void)state;
	static const char *const cases[] = {
		"",
		"soon",
		"@",
		"@-1",
		"@1e9",
		"2026-02-28",
		"2026-02-30T09:05:00Z",
		"2026-02-28T24:05:00Z",
		"2026-02-28T09:05:00",
		"2026-02-28T09:05:00Z ",
		"1969-12-31T23:59:59Z",
		"@999999999999999",
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct baton_store_time t = {7};
		assert_int_equal(baton_store_time_parse(baton_str_z(cases[i]), &t), BATON_INVALID);
		assert_non_null(strstr(baton_err_detail(), "2026-02-28T09:05:00Z"));
		assert_int_equal(t.ms, 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spans_from_whole_numbers_saturate),
		cmocka_unit_test(adding_a_span_saturates_and_never_stays_never),
		cmocka_unit_test(the_span_between_moments_saturates),
		cmocka_unit_test(on_the_stores_clock_a_part_of_a_millisecond_counts_as_one),
		cmocka_unit_test(the_span_between_stored_moments_saturates),
		cmocka_unit_test(at_exactly_the_deadline_it_is_too_late),
		cmocka_unit_test(at_exactly_its_moment_it_is_ready),
		cmocka_unit_test(a_moment_is_shown_as_a_date_in_utc),
		cmocka_unit_test(every_date_is_the_one_that_the_c_library_shows),
		cmocka_unit_test(a_moment_is_read_as_people_write_it),
		cmocka_unit_test(what_is_no_moment_is_refused_and_named),
	};
	return cmocka_run_group_tests_name("time", tests, NULL, NULL);
}
