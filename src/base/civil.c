/* Dates of the Gregorian calendar, and days counted from the first of January 1970. */
#include "base/civil.h"

#include <stdbool.h>

/* Years are counted from March here, so that the day that some years have more is their last one;
 * four hundred of them have always the same number of days. */
#define CYCLE_YEARS 400
#define CYCLE_DAYS 146097

/* From the first of March of the year 0 to the first of January 1970. */
#define DAYS_BEFORE_1970 719468

/* Of the months from March on, how many days of their year are before them. */
static const int days_before[] = {0, 31, 61, 92, 122, 153, 184, 214, 245, 275, 306, 337};

int64_t civil_floor(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

struct civil civil_of(int64_t days)
{
	days += DAYS_BEFORE_1970;
	int64_t cycle = civil_floor(days, CYCLE_DAYS);
	int day = (int)(days - cycle * CYCLE_DAYS);
	int centuries = day / 36524 < 4 ? day / 36524 : 3;
	day -= centuries * 36524;
	int fours = day / 1461;
	day %= 1461;
	int years = day / 365 < 4 ? day / 365 : 3;
	day -= years * 365;

	int month = 11;
	while (days_before[month] > day)
		month--;
	bool next_year = month >= 10; /* January and February */
	int year = centuries * 100 + fours * 4 + years + next_year;
	return (struct civil){
		.year = cycle * CYCLE_YEARS + year,
		.month = (uint8_t)(next_year ? month - 9 : month + 3),
		.day = (uint8_t)(day - days_before[month] + 1),
	};
}

int64_t civil_days(int64_t year, int month, int day)
{
	year -= month < 3;
	int64_t cycle = civil_floor(year, CYCLE_YEARS);
	int64_t y = year - cycle * CYCLE_YEARS;
	int64_t before = y * 365 + y / 4 - y / 100 + days_before[(month + 9) % 12];
	return cycle * CYCLE_DAYS + before + day - 1 - DAYS_BEFORE_1970;
}

int civil_month_days(int64_t year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
	return days[month - 1] + (month == 2 && leap);
}

int civil_weekday(int64_t days)
{
	int64_t since_sunday = days + 4; /* 1970-01-01 was a Thursday */
	return (int)(since_sunday - civil_floor(since_sunday, 7) * 7);
}
