/* The yearly rule of a time zone: the TZ string of POSIX, with the extensions of RFC 8536. */
#include "queue/zone_rule.h"

#include "base/civil.h"
#include "base/fail.h"
#include "base/quote.h"

#define HOUR_S 3600

/* The clocks change at two in the morning unless told otherwise. */
#define CHANGE_TIME_S (2 * HOUR_S)

/* RFC 8536 lets the time of a change be up to a week away from its day. */
#define OFFSET_HOURS_MAX 24
#define CHANGE_HOURS_MAX 167

#define NAME_MIN 3

/* A text that is read from the left. */
struct scan {
	struct baton_str all;
	struct baton_str rest;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_in_brackets(char c)
{
	return is_letter(c) || is_digit(c) || c == '+' || c == '-';
}

static void skip(struct scan *s, size_t n)
{
	if (n > 0) /* an empty text may be NULL, to which nothing can be added */
		s->rest = (struct baton_str){s->rest.ptr + n, s->rest.len - n};
}

static bool take(struct scan *s, char c)
{
	if (s->rest.len == 0 || s->rest.ptr[0] != c)
		return false;
	skip(s, 1);
	return true;
}

static size_t take_while(struct scan *s, bool (*of)(char c))
{
	size_t n = 0;
	while (n < s->rest.len && of(s->rest.ptr[n]))
		n++;
	skip(s, n);
	return n;
}

static enum baton_err refuse(const struct scan *s, const char *needed)
{
	char all[QUOTE_TEXT], here[QUOTE_TEXT];
	return fail(BATON_INVALID, "%s is no rule of a time zone: at %s %s is needed",
	            quote(s->all, all), quote(s->rest, here), needed);
}

/* A number from `min` to `max`; `needed` says so. */
static enum baton_err take_number(struct scan *s, int min, int max, const char *needed, int *ret)
{
	struct scan from = *s;
	int n = 0;
	size_t len = take_while(s, is_digit);
	for (size_t i = 0; i < len && n <= max; i++)
		n = n * 10 + (from.rest.ptr[i] - '0');
	if (len == 0 || n < min || n > max)
		return refuse(&from, needed);
	*ret = n;
	return BATON_OK;
}

/* The name of a kind of time, which nobody here shows: "CET" or "<+03>". */
static enum baton_err take_name(struct scan *s)
{
	struct scan from = *s;
	bool bracket = take(s, '<');
	size_t len = take_while(s, bracket ? is_in_brackets : is_letter);
	if (len < NAME_MIN || (bracket && !take(s, '>')))
		return refuse(&from, "a name of three letters or more, or <...>,");
	return BATON_OK;
}

/* [+-]hh[:mm[:ss]] in seconds. */
static enum baton_err take_time(struct scan *s, int hours_max, int32_t *ret)
{
	int part[3] = {0};
	bool negative = take(s, '-');
	if (!negative)
		take(s, '+');
	enum baton_err e = take_number(s, 0, hours_max,
	                               hours_max == OFFSET_HOURS_MAX ? "a number of hours, 0 to 24,"
	                                                             : "an hour, 0 to 167,",
	                               &part[0]);
	for (int i = 1; e == BATON_OK && i < 3 && take(s, ':'); i++)
		e = take_number(s, 0, 59, "a number from 0 to 59", &part[i]);
	if (e != BATON_OK)
		return e;
	int32_t time_s = part[0] * HOUR_S + part[1] * 60 + part[2];
	*ret = negative ? -time_s : time_s;
	return BATON_OK;
}

static enum baton_err take_weekday(struct scan *s, struct zone_change *ret)
{
	enum baton_err e = take_number(s, 1, 12, "a month from 1 to 12", &ret->month);
	if (e == BATON_OK && !take(s, '.'))
		e = refuse(s, "a dot");
	if (e == BATON_OK)
		e = take_number(s, 1, 5, "a week from 1 to 5", &ret->week);
	if (e == BATON_OK && !take(s, '.'))
		e = refuse(s, "a dot");
	if (e == BATON_OK)
		e = take_number(s, 0, 6, "a weekday from 0 to 6", &ret->day);
	return e;
}

static enum baton_err take_change(struct scan *s, struct zone_change *ret)
{
	struct zone_change c = {.time_s = CHANGE_TIME_S};
	enum baton_err e;
	if (!take(s, ','))
		return refuse(s, "a comma and the day of a change");
	if (take(s, 'M')) {
		c.kind = ZONE_DAY_WEEKDAY;
		e = take_weekday(s, &c);
	} else if (take(s, 'J')) {
		c.kind = ZONE_DAY_JULIAN;
		e = take_number(s, 1, 365, "a day from 1 to 365", &c.day);
	} else {
		c.kind = ZONE_DAY_COUNTED;
		e = take_number(s, 0, 365, "a day from 0 to 365, J and a day, or M,", &c.day);
	}
	if (e == BATON_OK && take(s, '/'))
		e = take_time(s, CHANGE_HOURS_MAX, &c.time_s);
	if (e == BATON_OK)
		*ret = c;
	return e;
}

/* What follows the time that is valid outside of daylight-saving time. */
static enum baton_err take_dst(struct scan *s, struct zone_rule *rule)
{
	enum baton_err e = take_name(s);
	rule->has_dst = true;
	rule->dst_offset_s = rule->offset_s + HOUR_S;
	if (e == BATON_OK && s->rest.len > 0 && s->rest.ptr[0] != ',') {
		int32_t west_s = 0;
		e = take_time(s, OFFSET_HOURS_MAX, &west_s);
		rule->dst_offset_s = -west_s;
	}
	if (e == BATON_OK)
		e = take_change(s, &rule->start);
	if (e == BATON_OK)
		e = take_change(s, &rule->end);
	if (e == BATON_OK && s->rest.len > 0)
		e = refuse(s, "the end");
	return e;
}

enum baton_err zone_rule_parse(struct baton_str text, struct zone_rule *ret)
{
	struct scan s = {.all = text, .rest = text};
	struct zone_rule rule = {.offset_s = 0};
	int32_t west_s = 0;
	enum baton_err e = take_name(&s);
	if (e == BATON_OK)
		e = take_time(&s, OFFSET_HOURS_MAX, &west_s);
	rule.offset_s = -west_s;
	if (e == BATON_OK && s.rest.len > 0)
		e = take_dst(&s, &rule);
	if (e == BATON_OK)
		*ret = rule;
	return e;
}

static int64_t weekday_in(const struct zone_change *c, int64_t year)
{
	int64_t first = civil_days(year, c->month, 1);
	int day = 1 + (c->day - civil_weekday(first) + 7) % 7 + (c->week - 1) * 7;
	if (day > civil_month_days(year, c->month))
		day -= 7;
	return first + day - 1;
}

static int64_t day_in(const struct zone_change *c, int64_t year)
{
	switch (c->kind) {
	case ZONE_DAY_COUNTED:
		return civil_days(year, 1, 1) + c->day;
	case ZONE_DAY_JULIAN: {
		bool leap = civil_month_days(year, 2) == 29;
		return civil_days(year, 1, c->day) + (leap && c->day > 31 + 28);
	}
	case ZONE_DAY_WEEKDAY:
		break;
	}
	return weekday_in(c, year);
}

/* When the change happens in that year, in UTC. */
static int64_t change_at(const struct zone_change *c, int64_t year, int32_t offset_before_s)
{
	return day_in(c, year) * CIVIL_DAY_S + c->time_s - offset_before_s;
}

static void narrow(struct zone_span *span, int64_t change_s, int64_t utc_s)
{
	if (change_s <= utc_s && change_s > span->begin_s)
		span->begin_s = change_s;
	if (change_s > utc_s && change_s < span->end_s)
		span->end_s = change_s;
}

struct zone_span zone_rule_at(const struct zone_rule *rule, int64_t utc_s)
{
	struct zone_span span = {INT64_MIN, INT64_MAX, rule->offset_s};
	if (!rule->has_dst)
		return span;
	/* Daylight-saving time is on in [start, end) of every year, or, south of the equator, from
	 * the start to the end of the next year. A change may be a week before or after its year,
	 * so the years around it decide too. Where one stretch meets the next there is no change.
	 */
	int64_t year = civil_of(civil_floor(utc_s, CIVIL_DAY_S)).year;
	for (int64_t y = year - 2; y <= year + 2; y++) {
		int64_t start = change_at(&rule->start, y, rule->offset_s);
		int64_t end = change_at(&rule->end, y, rule->dst_offset_s);
		narrow(&span, start, utc_s);
		narrow(&span, end, utc_s);
		if (end < start)
			end = change_at(&rule->end, y + 1, rule->dst_offset_s);
		if (start <= utc_s && utc_s < end)
			span.offset_s = rule->dst_offset_s;
	}
	return span;
}
