/* Moments as people type them. */
#include <baton/time.h>

#include <string.h>
#include <time.h>

#include "base/fail.h"
#include "base/quote.h"

/* Reads what is left of a text from its beginning. */
struct reader {
	struct baton_str rest;
};

static bool take_char(struct reader *r, const char *any_of)
{
	if (r->rest.len == 0 || r->rest.ptr[0] == '\0' || !strchr(any_of, r->rest.ptr[0]))
		return false;
	r->rest.ptr++;
	r->rest.len--;
	return true;
}

/* Exactly `digits` of them. */
static bool take_digits(struct reader *r, int digits, int64_t *ret)
{
	int64_t number = 0;
	for (int i = 0; i < digits; i++) {
		const char *digit = r->rest.ptr;
		if (!take_char(r, "0123456789"))
			return false;
		number = 10 * number + (*digit - '0');
	}
	*ret = number;
	return true;
}

/* The milliseconds of a fraction, if there is one, rounded up. */
static bool take_fraction(struct reader *r, int64_t *ret_ms)
{
	int64_t ms = 0, digit, place = 100;
	bool finer = false;
	*ret_ms = 0;
	if (!take_char(r, "."))
		return true;
	if (!take_digits(r, 1, &digit))
		return false;
	do {
		ms += digit * place;
		finer = finer || (place == 0 && digit > 0);
		place /= 10;
	} while (take_digits(r, 1, &digit));
	*ret_ms = ms + finer;
	return true;
}

static bool take_date(struct reader *r, struct tm *ret)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int64_t year, month, day;
	if (!take_digits(r, 4, &year) || !take_char(r, "-") || !take_digits(r, 2, &month) ||
	    !take_char(r, "-") || !take_digits(r, 2, &day))
		return false;
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	if (month < 1 || month > 12 || day < 1 || day > days[month - 1] + (month == 2 && leap))
		return false;
	*ret = (struct tm){.tm_year = (int)year - 1900,
	                   .tm_mon = (int)month - 1,
	                   .tm_mday = (int)day};
	return true;
}

static bool take_time(struct reader *r, struct tm *ret)
{
	int64_t hour, minute, second;
	if (!take_digits(r, 2, &hour) || !take_char(r, ":") || !take_digits(r, 2, &minute) ||
	    !take_char(r, ":") || !take_digits(r, 2, &second))
		return false;
	ret->tm_hour = (int)hour;
	ret->tm_min = (int)minute;
	ret->tm_sec = (int)second;
	return hour <= 23 && minute <= 59 && second <= 60;
}

static bool take_zone(struct reader *r, int64_t *ret_seconds)
{
	int64_t hours, minutes;
	*ret_seconds = 0;
	if (take_char(r, "Zz"))
		return true;
	bool west = r->rest.len > 0 && r->rest.ptr[0] == '-';
	if (!take_char(r, "+-") || !take_digits(r, 2, &hours) || !take_char(r, ":") ||
	    !take_digits(r, 2, &minutes) || hours > 23 || minutes > 59)
		return false;
	*ret_seconds = (west ? -60 : 60) * (60 * hours + minutes);
	return true;
}

static bool take_rfc3339(struct reader *r, int64_t *ret_ms)
{
	struct tm parts;
	int64_t ms, zone;
	if (!take_date(r, &parts) || !take_char(r, "Tt ") || !take_time(r, &parts) ||
	    !take_fraction(r, &ms) || !take_zone(r, &zone))
		return false;
	*ret_ms = ((int64_t)timegm(&parts) - zone) * 1000 + ms;
	return true;
}

/* As many seconds as the years to 9999 have. */
#define SECONDS_MAX INT64_C(253402300800)

static bool take_seconds(struct reader *r, int64_t *ret_ms)
{
	int64_t seconds, digit, ms;
	if (!take_digits(r, 1, &seconds))
		return false;
	while (take_digits(r, 1, &digit)) {
		seconds = 10 * seconds + digit;
		if (seconds > SECONDS_MAX)
			return false;
	}
	if (!take_fraction(r, &ms))
		return false;
	*ret_ms = seconds * 1000 + ms;
	return true;
}

enum baton_err baton_store_time_parse(struct baton_str text, struct baton_store_time *ret)
{
	char shown[QUOTE_TEXT];
	struct reader r = {text};
	int64_t ms;
	bool good = take_char(&r, "@") ? take_seconds(&r, &ms) : take_rfc3339(&r, &ms);
	if (!good || r.rest.len > 0 || ms < 0)
		return fail(BATON_INVALID,
		            "a moment is such as 2026-02-28T09:05:00Z, "
		            "2026-02-28T10:05:00+01:00 or @1772269500 from 1970 on, not %s",
		            quote(text, shown));
	ret->ms = ms;
	return BATON_OK;
}
