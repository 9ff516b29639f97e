/* Moments on two clocks, which do not mix, and the spans between them. */
#include <baton/time.h>

#include <inttypes.h>
#include <stdio.h>

#include "base/civil.h"

#define NS_PER_MS 1000000
#define NS_PER_S 1000000000
#define MS_PER_DAY 86400000

/* The first and the last millisecond of the years 0 to 9999. */
#define PRINTABLE_MIN_MS (-62167219200000)
#define PRINTABLE_MAX_MS 253402300799999

static int64_t mul(int64_t a, int64_t b)
{
	int64_t r;
	if (__builtin_mul_overflow(a, b, &r))
		return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
	return r;
}

/* INT64_MAX stands for never and for ever, so it stays there whatever is added. */
static int64_t add(int64_t a, int64_t b)
{
	int64_t r;
	if (a == INT64_MAX || b == INT64_MAX)
		return INT64_MAX;
	if (__builtin_add_overflow(a, b, &r))
		return a < 0 ? INT64_MIN : INT64_MAX;
	return r;
}

static int64_t sub(int64_t a, int64_t b)
{
	int64_t r;
	if (a == INT64_MAX)
		return INT64_MAX;
	if (b == INT64_MAX)
		return INT64_MIN;
	if (__builtin_sub_overflow(a, b, &r))
		return a < 0 ? INT64_MIN : INT64_MAX;
	return r;
}

struct baton_duration baton_duration_ms(int64_t ms)
{
	return (struct baton_duration){mul(ms, NS_PER_MS)};
}

struct baton_duration baton_duration_s(int64_t s)
{
	return (struct baton_duration){mul(s, NS_PER_S)};
}

struct baton_mono baton_mono_add(struct baton_mono a, struct baton_duration d)
{
	return (struct baton_mono){add(a.ns, d.ns)};
}

struct baton_duration baton_mono_sub(struct baton_mono a, struct baton_mono b)
{
	return (struct baton_duration){sub(a.ns, b.ns)};
}

static int64_t ms_rounded_up(struct baton_duration d)
{
	if (d.ns == INT64_MAX)
		return INT64_MAX;
	return d.ns / NS_PER_MS + (d.ns % NS_PER_MS > 0);
}

struct baton_store_time baton_store_time_add(struct baton_store_time a, struct baton_duration d)
{
	return (struct baton_store_time){add(a.ms, ms_rounded_up(d))};
}

struct baton_duration baton_store_time_sub(struct baton_store_time a, struct baton_store_time b)
{
	return baton_duration_ms(sub(a.ms, b.ms));
}

/* By hand, because gmtime_r() takes a lock and reads the time zone. */
char *baton_store_time_print(struct baton_store_time t, char text[BATON_STORE_TIME_TEXT])
{
	if (t.ms == BATON_STORE_TIME_NEVER.ms) {
		snprintf(text, BATON_STORE_TIME_TEXT, "never");
		return text;
	}
	if (t.ms < PRINTABLE_MIN_MS || t.ms > PRINTABLE_MAX_MS) {
		snprintf(text, BATON_STORE_TIME_TEXT, "@%" PRId64, t.ms);
		return text;
	}
	int64_t day = civil_floor(t.ms, MS_PER_DAY);
	struct civil date = civil_of(day);
	uint32_t ms = (uint32_t)(t.ms - day * MS_PER_DAY);
	snprintf(text, BATON_STORE_TIME_TEXT, "%04d-%02d-%02dT%02u:%02u:%02u.%03uZ",
	         (uint16_t)date.year, date.month, date.day, ms / 3600000, ms / 60000 % 60,
	         ms / 1000 % 60, ms % 1000);
	return text;
}
