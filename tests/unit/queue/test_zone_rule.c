/* The yearly rule of a time zone. */
#include <string.h>

#include "base/civil.h"
#include "queue/zone_rule.h"
#include "support/harness.h"

#define H 3600

static struct zone_rule rule_of(const char *text)
{
	struct zone_rule rule;
	if (zone_rule_parse(baton_str_z(text), &rule) != BATON_OK)
		fail_msg("%s", baton_err_detail());
	return rule;
}

static int64_t utc(int year, int month, int day, int time_s)
{
	return civil_days(year, month, day) * CIVIL_DAY_S + time_s;
}

struct offset_case {
	const char *text;
	int32_t offset_s;
};

static void a_rule_without_changes_is_one_offset(void **state)
{
	(void)state;
	static const struct offset_case cases[] = {
		{"UTC0", 0},
		{"CET-1", H},
		{"EST5", -5 * H},
		{"EST+5", -5 * H},
		{"IST-5:30", 5 * H + 1800},
		{"<+0545>-5:45", 5 * H + 2700},
		{"<-03>3", -3 * H},
		{"LMT0:25:21", -1521},
		{"LMT-24:59:59", 89999},
		{"LMT24:59:59", -89999},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct zone_rule rule = rule_of(cases[i].text);
		struct zone_span span = zone_rule_at(&rule, 1700000000);
		assert_int_equal(span.offset_s, cases[i].offset_s);
		assert_true(span.begin_s == INT64_MIN && span.end_s == INT64_MAX);
	}
}

static void assert_change(const char *text, int64_t at_s, int32_t before_s, int32_t after_s)
{
	struct zone_rule rule = rule_of(text);
	struct zone_span before = zone_rule_at(&rule, at_s - 1);
	struct zone_span after = zone_rule_at(&rule, at_s);
	if (before.end_s != at_s || after.begin_s != at_s || before.offset_s != before_s ||
	    after.offset_s != after_s)
		fail_msg("%s: %lld of %lld with %d, then %lld with %d", text,
		         (long long)before.end_s, (long long)at_s, before.offset_s,
		         (long long)after.begin_s, after.offset_s);
}

static void the_clocks_change_when_the_rule_says(void **state)
{
	(void)state;
	const char *berlin = "CET-1CEST,M3.5.0,M10.5.0/3";
	assert_change(berlin, utc(2026, 3, 29, H), H, 2 * H);
	assert_change(berlin, utc(2026, 10, 25, H), 2 * H, H);
	assert_change(berlin, utc(2400, 3, 26, H), H, 2 * H);
	const char *new_york = "EST5EDT,M3.2.0,M11.1.0";
	assert_change(new_york, utc(2026, 3, 8, 7 * H), -5 * H, -4 * H);
	assert_change(new_york, utc(2026, 11, 1, 6 * H), -4 * H, -5 * H);
	const char *lord_howe = "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0";
	assert_change(lord_howe, utc(2026, 4, 4, 15 * H), 11 * H, 10 * H + 1800);
	assert_change(lord_howe, utc(2026, 10, 3, 15 * H + 1800), 10 * H + 1800, 11 * H);
	const char *dublin = "IST-1GMT0,M10.5.0,M3.5.0/1";
	assert_change(dublin, utc(2026, 3, 29, H), 0, H);
	assert_change(dublin, utc(2026, 10, 25, H), H, 0);
	const char *nuuk = "<-02>2<-01>,M3.5.0/-1,M10.5.0/0";
	assert_change(nuuk, utc(2026, 3, 29, H), -2 * H, -H);
	assert_change(nuuk, utc(2026, 10, 25, H), -H, -2 * H);
	const char *gaza = "EET-2EEST,M3.4.4/50,M10.4.4/50";
	assert_change(gaza, utc(2026, 3, 28, 0), 2 * H, 3 * H);
	assert_change(gaza, utc(2026, 10, 23, 23 * H), 3 * H, 2 * H);
}

static void days_of_the_year_count_february_29_or_not(void **state)
{
	(void)state;
	assert_change("AAA0BBB,J60/0,J300/1", utc(2023, 3, 1, 0), 0, H);
	assert_change("AAA0BBB,J60/0,J300/1", utc(2024, 3, 1, 0), 0, H);
	assert_change("AAA0BBB,J59/0,J300/1", utc(2024, 2, 28, 0), 0, H);
	assert_change("AAA0BBB,59/0,300/1", utc(2023, 3, 1, 0), 0, H);
	assert_change("AAA0BBB,59/0,300/1", utc(2024, 2, 29, 0), 0, H);
	assert_change("AAA0BBB,J365/0,J300/1", utc(2024, 12, 31, 0), 0, H);
	assert_change("AAA0BBB,365/0,J300/1", utc(2024, 12, 31, 0), 0, H);
	assert_change("AAA0BBB,365/0,J300/1", utc(2024, 1, 1, 0), 0, H);
}

static void daylight_saving_time_may_last_all_year(void **state)
{
	(void)state;
	static const char *const texts[] = {"EST5EDT,0/0,J365/25", "XXX3EDT4,0/0,J365/23"};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct zone_rule rule = rule_of(texts[i]);
		for (int64_t t = utc(2023, 12, 1, 0); t < utc(2025, 2, 1, 0); t += 60 * 15)
			assert_int_equal(zone_rule_at(&rule, t).offset_s, -4 * H);
	}
}

static void a_change_may_be_outside_of_its_year(void **state)
{
	(void)state;
	const char *early = "AAA0BBB,J1/-167,J100/0";
	assert_change(early, utc(2024, 12, 25, H), 0, H);
	const char *late = "AAA0BBB,J100/0,J365/167";
	assert_change(late, utc(2025, 1, 6, 22 * H), H, 0);
}

struct refusal {
	const char *text;
	const char *why;
};

static void what_is_no_rule_is_refused_with_the_reason(void **state)
{
	(void)state;
	static const struct refusal cases[] = {
		{"", "at \"\" a name"},
		{"AB3", "at \"AB3\" a name"},
		{"<AB3", "at \"<AB3\" a name"},
		{"<A B>3", "a name"},
		{"ABC", "at \"\" a number of hours, 0 to 24, is needed"},
		{"ABC25", "at \"25\" a number of hours, 0 to 24, is needed"},
		{"ABC99999999999999999999", "0 to 24, is needed"},
		{"ABC3:60", "at \"60\" a number from 0 to 59 is needed"},
		{"ABC3:", "a number from 0 to 59 is needed"},
		{"ABC3DEF", "a comma and the day of a change is needed"},
		{"ABC3DEF,M3.2.0", "a comma and the day of a change is needed"},
		{"ABC3DEF,M13.2.0,M11.1.0", "at \"13.2.0,M11.1.0\" a month from 1 to 12"},
		{"ABC3DEF,M0.2.0,M11.1.0", "a month from 1 to 12"},
		{"ABC3DEF,M3.6.0,M11.1.0", "a week from 1 to 5"},
		{"ABC3DEF,M3.0.0,M11.1.0", "a week from 1 to 5"},
		{"ABC3DEF,M3.2.7,M11.1.0", "a weekday from 0 to 6"},
		{"ABC3DEF,M3-2.7,M11.1.0", "a dot is needed"},
		{"ABC3DEF,J0,J5", "a day from 1 to 365"},
		{"ABC3DEF,J366,J5", "a day from 1 to 365"},
		{"ABC3DEF,366,5", "a day from 0 to 365"},
		{"ABC3DEF,M3.2.0/168,M11.1.0", "an hour, 0 to 167,"},
		{"ABC3DEF,M3.2.0,M11.1.0x", "at \"x\" the end is needed"},
		{"ABC3DEF25,M3.2.0,M11.1.0", "0 to 24, is needed"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct zone_rule rule = {.offset_s = 77};
		assert_int_equal(zone_rule_parse(baton_str_z(cases[i].text), &rule), BATON_INVALID);
		assert_int_equal(rule.offset_s, 77);
		if (strstr(baton_err_detail(), cases[i].why) == NULL)
			fail_msg("%s", baton_err_detail());
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rule_without_changes_is_one_offset),
		cmocka_unit_test(the_clocks_change_when_the_rule_says),
		cmocka_unit_test(days_of_the_year_count_february_29_or_not),
		cmocka_unit_test(daylight_saving_time_may_last_all_year),
		cmocka_unit_test(a_change_may_be_outside_of_its_year),
		cmocka_unit_test(what_is_no_rule_is_refused_with_the_reason),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
