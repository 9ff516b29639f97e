/* Spans of time as people write them. */
#include <baton/time.h>

#include <stdio.h>
#include <string.h>

#include "support/harness.h"
#include "support/rng.h"
#include "support/soak.h"

#define US INT64_C(1000)
#define MS (1000 * US)
#define S (1000 * MS)
#define MIN (60 * S)
#define H (60 * MIN)
#define D (24 * H)
#define W (7 * D)
#define M (2629800 * S)
#define Y (31557600 * S)
#define FOREVER INT64_MAX

struct span_case {
	const char *text;
	int64_t ns;
};

static void assert_read(const struct span_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct baton_duration d = {-1};
		if (baton_duration_parse(baton_str_z(cases[i].text), &d) != BATON_OK)
			fail_msg("%s: %s", cases[i].text, baton_err_detail());
		if (d.ns != cases[i].ns)
			fail_msg("%s: %lld", cases[i].text, (long long)d.ns);
	}
}

static void every_unit_of_systemd_is_known(void **state)
{
	(void)state;
	static const struct span_case cases[] = {
		{"1ns", 1},         {"1nsec", 1},      {"1us", US},      {"1usec", US},
		{"1\u00b5s", US},   {"1\u03bcs", US},  {"1ms", MS},      {"1msec", MS},
		{"1s", S},          {"1sec", S},       {"1second", S},   {"2seconds", 2 * S},
		{"1m", MIN},        {"1min", MIN},     {"1minute", MIN}, {"2minutes", 2 * MIN},
		{"1h", H},          {"1hr", H},        {"1hour", H},     {"2hours", 2 * H},
		{"1d", D},          {"1day", D},       {"2days", 2 * D}, {"1w", W},
		{"1week", W},       {"2weeks", 2 * W}, {"1M", M},        {"1month", M},
		{"2months", 2 * M}, {"1y", Y},         {"1year", Y},     {"2years", 2 * Y},
	};
	assert_read(cases, sizeof cases / sizeof *cases);
}

static void spans_are_read_in_every_form_that_is_documented(void **state)
{
	(void)state;
	static const struct span_case cases[] = {
		{"90", 90 * S},
		{"0", 0},
		{"0ns", 0},
		{"000", 0},
		{"007s", 7 * S},
		{"1500ms", 1500 * MS},
		{"2 h", 2 * H},
		{"2hours", 2 * H},
		{"48hr", 48 * H},
		{"1y 12month", Y + 12 * M},
		{"55s500ms", 55 * S + 500 * MS},
		{"300ms20s 5day", 300 * MS + 20 * S + 5 * D},
		{"1h 30min", H + 30 * MIN},
		{"1h30m", H + 30 * MIN},
		{"  1h\t30 min  ", H + 30 * MIN},
		{"1s 1s 1s", 3 * S},
		{"infinity", FOREVER},
		{"  infinity ", FOREVER},
	};
	assert_read(cases, sizeof cases / sizeof *cases);
}

static void decimals_are_exact(void **state)
{
	(void)state;
	static const struct span_case cases[] = {
		{"1.5h", H + 30 * MIN}, {".5s", 500 * MS},
		{"0.5", 500 * MS},      {"1.000", S},
		{"0.1s", 100 * MS},     {"0.3s", 300 * MS},
		{"0.7us", 700},         {"2.25y", 2 * Y + Y / 4},
		{"0.000000001s", 1},    {"1.123456789s", 1123456789},
		{"0.0000000001h", 360}, {"9223372036.854775806", INT64_MAX - 1},
	};
	assert_read(cases, sizeof cases / sizeof *cases);
}

static void what_is_finer_than_a_nanosecond_is_rounded_up(void **state)
{
	(void)state;
	static const struct span_case cases[] = {
		{"0.000000000000000031688087812y", 1},
		{"0.99999999999999999999999999999999999999999999999999999999d", D},
		{"0.1ns", 1},
		{"1.5ns", 2},
		{"0.0000000001s", 1},
		{"1.0000000000001s", S + 1},
		{"0.3333333333333h", 20 * MIN},
		{"1.0000000000s", S},
		{"0.5ns0.5ns", 2},
		{"0.0000000000000000000000001y", 1},
	};
	assert_read(cases, sizeof cases / sizeof *cases);
}

static void the_longest_span_is_read_and_one_more_is_refused(void **state)
{
	(void)state;
	static const struct span_case longest[] = {
		{"9223372036854775806ns", INT64_MAX - 1},
		{"106751d 23h 47min 16s 854ms 775us 806ns", INT64_MAX - 1},
		{"292y", 292 * Y},
		{"00000000000000000000000000000000000001s", S},
	};
	assert_read(longest, sizeof longest / sizeof *longest);

	static const char *const longer[] = {
		"9223372036854775807ns",
		"9223372036854775808ns",
		"9223372036.854775807",
		"9223372036.8547758061",
		"18446744073709551615ns",
		"18446744073709551616ns",
		"18446744073709551617ns",
		"99999999999999999999999999999999999999999s",
		/* Each of these would be short again if it went round 2^64. */
		"20000000000000000000ns",
		"18446744074s",
		"9223372036854775806ns 18446744073709551615ns",
		"293y",
		"292y 1y",
		"9223372036854775806ns 1ns",
		"9223372036854775806ns 0.1ns",
	};
	for (size_t i = 0; i < sizeof longer / sizeof *longer; i++) {
		struct baton_duration d = {-1};
		char detail[300];
		snprintf(detail, sizeof detail,
		         "\"%s\" is too long: at most 106751d 23h 47min 16s 854ms 775us 806ns are "
		         "allowed, or infinity",
		         longer[i]);
		assert_int_equal(baton_duration_parse(baton_str_z(longer[i]), &d), BATON_INVALID);
		assert_string_equal(baton_err_detail(), detail);
		assert_int_equal(d.ns, -1);
	}
}

#define NUMBER_NEEDED " a number is needed, such as 90 or 1.5, without a sign"
#define UNITS "; there are ns, us, ms, s, min, h, d, w, M (month) and y"
#define ALONE " needs a unit; only a number on its own is in seconds"
#define EMPTY \
	"a time span is empty: write a number and a unit, such as 90s or 1h 30min, or infinity"

static void everything_else_is_refused_with_the_reason(void **state)
{
	(void)state;
	static const struct {
		struct baton_str text;
		const char *detail;
	} cases[] = {
		{BATON_STR(""), EMPTY},
		{BATON_STR("  \t"), EMPTY},
		{BATON_STR("-5s"), "\"-5s\" is no time span: at \"-5s\"" NUMBER_NEEDED},
		{BATON_STR("+5s"), "\"+5s\" is no time span: at \"+5s\"" NUMBER_NEEDED},
		{BATON_STR("1h -5s"), "\"1h -5s\" is no time span: at \"-5s\"" NUMBER_NEEDED},
		{BATON_STR("h"), "\"h\" is no time span: at \"h\"" NUMBER_NEEDED},
		{BATON_STR("1h min"), "\"1h min\" is no time span: at \"min\"" NUMBER_NEEDED},
		{BATON_STR("."), "\".\" is no time span: at \".\"" NUMBER_NEEDED},
		{BATON_STR("5."), "\"5.\" is no time span: at \"5.\"" NUMBER_NEEDED},
		{BATON_STR("5.s"), "\"5.s\" is no time span: at \"5.s\"" NUMBER_NEEDED},
		{BATON_STR(".s"), "\".s\" is no time span: at \".s\"" NUMBER_NEEDED},
		{BATON_STR("5 apples"),
	         "\"5 apples\" is no time span: \"apples\" is no unit" UNITS},
		{BATON_STR("1S"), "\"1S\" is no time span: \"S\" is no unit" UNITS},
		{BATON_STR("1H"), "\"1H\" is no time span: \"H\" is no unit" UNITS},
		{BATON_STR("1Min"), "\"1Min\" is no time span: \"Min\" is no unit" UNITS},
		{BATON_STR("1e3s"), "\"1e3s\" is no time span: \"e\" is no unit" UNITS},
		{BATON_STR("0x10s"), "\"0x10s\" is no time span: \"x\" is no unit" UNITS},
		{BATON_STR("1,5h"), "\"1,5h\" is no time span: \",\" is no unit" UNITS},
		{BATON_STR("5s\n"), "\"5s\\x0a\" is no time span: \"s\\x0a\" is no unit" UNITS},
		{BATON_STR("5s\0"), "\"5s\\x00\" is no time span: \"s\\x00\" is no unit" UNITS},
		{BATON_STR("5\xb5s"), "\"5\\xb5s\" is no time span: \"\\xb5s\" is no unit" UNITS},
		{BATON_STR("1h 30"), "\"1h 30\" is no time span: \"30\"" ALONE},
		{BATON_STR("30 1h"), "\"30 1h\" is no time span: \"30\"" ALONE},
		{BATON_STR("1 2"), "\"1 2\" is no time span: \"1\"" ALONE},
		{BATON_STR("1.2.3"), "\"1.2.3\" is no time span: \"1.2\"" ALONE},
		{BATON_STR("Infinity"),
	         "\"Infinity\" is no time span: at \"Infinity\"" NUMBER_NEEDED},
		{BATON_STR("infinity 1s"),
	         "\"infinity 1s\" is no time span: at \"infinity 1s\"" NUMBER_NEEDED},
		{BATON_STR("1s infinity"),
	         "\"1s infinity\" is no time span: at \"infinity\"" NUMBER_NEEDED},
		{BATON_STR("5infinity"),
	         "\"5infinity\" is no time span: \"infinity\" is no unit" UNITS},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct baton_duration d = {-1};
		assert_int_equal(baton_duration_parse(cases[i].text, &d), BATON_INVALID);
		assert_string_equal(baton_err_detail(), cases[i].detail);
		assert_int_equal(d.ns, -1);
	}
}

static void a_missing_text_is_an_empty_one(void **state)
{
	(void)state;
	struct baton_duration d = {-1};
	assert_int_equal(baton_duration_parse((struct baton_str){NULL, 0}, &d), BATON_INVALID);
	assert_string_equal(baton_err_detail(), EMPTY);
	assert_int_equal(d.ns, -1);
}

static void a_long_text_is_shown_in_part(void **state)
{
	(void)state;
	char text[100000];
	memset(text, 'x', sizeof text);
	struct baton_duration d = {-1};
	assert_int_equal(baton_duration_parse((struct baton_str){text, sizeof text}, &d),
	                 BATON_INVALID);
	assert_true(strlen(baton_err_detail()) < 300);
	assert_non_null(strstr(baton_err_detail(), "xxx...\" is no time span: at \"xxx"));
}

static void spans_are_shown_in_the_largest_units_that_need_no_thought(void **state)
{
	(void)state;
	static const struct {
		int64_t ns;
		const char *text;
	} cases[] = {
		{0, "0"},
		{1, "1ns"},
		{1500 * MS, "1s 500ms"},
		{90 * MIN, "1h 30min"},
		{D - 1, "23h 59min 59s 999ms 999us 999ns"},
		{365 * D, "365d"},
		{FOREVER - 1, "106751d 23h 47min 16s 854ms 775us 806ns"},
		{FOREVER, "infinity"},
		{-1, "-1ns"},
		{-90 * MIN, "-1h 30min"},
		{INT64_MIN, "-106751d 23h 47min 16s 854ms 775us 808ns"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[BATON_DURATION_TEXT];
		struct baton_duration d = {cases[i].ns};
		assert_ptr_equal(baton_duration_print(d, text), text);
		assert_string_equal(text, cases[i].text);
	}
}

static void what_is_shown_is_read_back_as_the_same_span(void **state)
{
	(void)state;
	struct rng rng = rng_seed_from_env();
	for (unsigned i = 0; i < soak_scale(20000, 5000000); i++) {
		struct baton_duration d = {(int64_t)(rng_next(&rng) >> (1 + rng_below(&rng, 63)))};
		struct baton_duration read = {-1};
		char text[BATON_DURATION_TEXT];
		baton_duration_print(d, text);
		if (baton_duration_parse(baton_str_z(text), &read) != BATON_OK || read.ns != d.ns)
			fail_msg("%lld: %s", (long long)d.ns, text);
	}
}

/* By one division of wide numbers instead of many small ones. */
static void a_fraction_is_what_one_division_says(void **state)
{
	(void)state;
	static const struct span_case units[] = {
		{"ns", 1}, {"us", US}, {"s", S}, {"h", H}, {"y", Y}};
	struct rng rng = rng_seed_from_env();
	for (unsigned i = 0; i < soak_scale(20000, 5000000); i++) {
		const struct span_case *unit = &units[rng_below(&rng, 5)];
		unsigned digits = 1 + (unsigned)rng_below(&rng, 18);
		uint64_t scale = 1;
		for (unsigned k = 0; k < digits; k++)
			scale *= 10;
		uint64_t fraction = rng_below(&rng, scale);
		unsigned __int128 ns = (unsigned __int128)fraction * (uint64_t)unit->ns;
		ns = (ns + scale - 1) / scale;

		char text[64];
		struct baton_duration d = {-1};
		snprintf(text, sizeof text, "0.%0*llu%s", (int)digits, (unsigned long long)fraction,
		         unit->text);
		assert_int_equal(baton_duration_parse(baton_str_z(text), &d), BATON_OK);
		if (d.ns != (int64_t)ns)
			fail_msg("%s: %lld", text, (long long)d.ns);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_unit_of_systemd_is_known),
		cmocka_unit_test(spans_are_read_in_every_form_that_is_documented),
		cmocka_unit_test(decimals_are_exact),
		cmocka_unit_test(what_is_finer_than_a_nanosecond_is_rounded_up),
		cmocka_unit_test(the_longest_span_is_read_and_one_more_is_refused),
		cmocka_unit_test(everything_else_is_refused_with_the_reason),
		cmocka_unit_test(a_missing_text_is_an_empty_one),
		cmocka_unit_test(a_long_text_is_shown_in_part),
		cmocka_unit_test(spans_are_shown_in_the_largest_units_that_need_no_thought),
		cmocka_unit_test(what_is_shown_is_read_back_as_the_same_span),
		cmocka_unit_test(a_fraction_is_what_one_division_says),
	};
	return cmocka_run_group_tests_name("duration", tests, NULL, NULL);
}
