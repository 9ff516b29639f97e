/* Dates of the calendar against those of the C library. */
#include <time.h>

#include "base/civil.h"
#include "support/harness.h"

static void assert_date(int64_t days, int64_t year, int month, int day)
{
	struct civil date = civil_of(days);
	if (date.year != year || date.month != month || date.day != day)
		fail_msg("day %lld is %lld-%d-%d", (long long)days, (long long)date.year,
		         date.month, date.day);
	assert_int_equal(civil_days(year, month, day), days);
}

static void known_dates_are_right(void **state)
{
	(void)state;
	assert_date(0, 1970, 1, 1);
	assert_date(-1, 1969, 12, 31);
	assert_date(11016, 2000, 2, 29);
	assert_date(11017, 2000, 3, 1);
	assert_date(47540, 2100, 2, 28);
	assert_date(47541, 2100, 3, 1);
	assert_date(-719468, 0, 3, 1);
	assert_date(-719469, 0, 2, 29);
	assert_date(-719529, -1, 12, 31);
	assert_date(2932896, 9999, 12, 31);
	assert_date(INT64_C(365242500000000) - 719468, INT64_C(1000000000000), 3, 1);
}

static void every_day_of_800_years_is_that_of_the_c_library(void **state)
{
	(void)state;
	for (int64_t days = -200000; days < 92194; days++) {
		struct tm tm;
		time_t t = days * CIVIL_DAY_S;
		assert_non_null(gmtime_r(&t, &tm));
		assert_date(days, tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
		assert_int_equal(civil_weekday(days), tm.tm_wday);
	}
}

static void a_month_ends_where_the_next_one_begins(void **state)
{
	(void)state;
	for (int64_t year = 1896; year <= 2104; year++)
		for (int month = 1; month <= 12; month++) {
			int64_t next = month < 12 ? civil_days(year, month + 1, 1)
			                          : civil_days(year + 1, 1, 1);
			assert_int_equal(civil_days(year, month, 1) + civil_month_days(year, month),
			                 next);
		}
}

static void division_is_rounded_down(void **state)
{
	(void)state;
	assert_int_equal(civil_floor(7, 7), 1);
	assert_int_equal(civil_floor(6, 7), 0);
	assert_int_equal(civil_floor(0, 7), 0);
	assert_int_equal(civil_floor(-1, 7), -1);
	assert_int_equal(civil_floor(-7, 7), -1);
	assert_int_equal(civil_floor(-8, 7), -2);
	assert_int_equal(civil_floor(INT64_MIN, 1000), INT64_C(-9223372036854776));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_dates_are_right),
		cmocka_unit_test(every_day_of_800_years_is_that_of_the_c_library),
		cmocka_unit_test(a_month_ends_where_the_next_one_begins),
		cmocka_unit_test(division_is_rounded_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
