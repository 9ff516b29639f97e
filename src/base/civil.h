/* Dates of the Gregorian calendar, and days counted from the first of January 1970. */
#ifndef BASE_CIVIL_H
#define BASE_CIVIL_H

#include <stdint.h>

#define CIVIL_DAY_S 86400

struct civil {
	int64_t year;
	uint8_t month; /* 1 to 12 */
	uint8_t day;   /* 1 to 31 */
};

/* The date of the day `days` after 1970-01-01, which may be negative; at most 2^62 either way. */
struct civil civil_of(int64_t days);

/* The other way round. The day may be outside of its month and counts on from the first; years are
 * within 2^50 of 0. */
int64_t civil_days(int64_t year, int month, int day);

/* How many days the month has. */
int civil_month_days(int64_t year, int month);

/* The day of the week, Sunday being 0. */
int civil_weekday(int64_t days);

/* a / b, rounded down; b is positive. */
int64_t civil_floor(int64_t a, int64_t b);

#endif
