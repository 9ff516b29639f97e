/* Moments on two clocks, which do not mix, and the spans between them. */
#ifndef BATON_TIME_H
#define BATON_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include <baton/api.h>
#include <baton/err.h>
#include <baton/str.h>

BATON_BEGIN

/* A moment on a clock of this boot of this host. Used for deadlines, never stored. */
struct baton_mono {
	int64_t ns;
};

/* A moment on the store's clock, in milliseconds since 1970. For whatever is stored or shown. */
struct baton_store_time {
	int64_t ms;
};

/* A span of time. */
struct baton_duration {
	int64_t ns;
};

/* Later than every moment, longer than every span. Arithmetic saturates there and stays there. */
#define BATON_MONO_NEVER ((struct baton_mono){INT64_MAX})
#define BATON_STORE_TIME_NEVER ((struct baton_store_time){INT64_MAX})
#define BATON_DURATION_FOREVER ((struct baton_duration){INT64_MAX})

/* Spans from whole numbers, saturating. */
BATON_API struct baton_duration baton_duration_ms(int64_t ms);
BATON_API struct baton_duration baton_duration_s(int64_t s);

/* a + d, saturating at both ends. */
BATON_API struct baton_mono baton_mono_add(struct baton_mono a, struct baton_duration d);

/* From `b` to `a`, saturating; negative when `a` is the earlier one. */
BATON_API struct baton_duration baton_mono_sub(struct baton_mono a, struct baton_mono b);

/* As above. A span that is no whole number of milliseconds is rounded up, so that a limit is never
 * shorter than what was asked for. */
BATON_API struct baton_store_time baton_store_time_add(struct baton_store_time a,
                                                       struct baton_duration d);
BATON_API struct baton_duration baton_store_time_sub(struct baton_store_time a,
                                                     struct baton_store_time b);

/* Something is live iff it expires after now: at exactly the deadline it is too late. */
static inline bool baton_mono_live(struct baton_mono expires, struct baton_mono now)
{
	return expires.ns > now.ns;
}

static inline bool baton_store_time_live(struct baton_store_time expires,
                                         struct baton_store_time now)
{
	return expires.ms > now.ms;
}

/* Something is ready iff it is available at or before now. */
static inline bool baton_store_time_ready(struct baton_store_time available,
                                          struct baton_store_time now)
{
	return available.ms <= now.ms;
}

/* Reads a span as people write it: "90", "1500ms", "2s", "1.5h", "5min", "1h 30min", "55s500ms",
 * "infinity". The units are those of systemd.time(7), from ns to y. A number that stands alone is
 * in seconds; among others each one needs its unit. What is finer than a nanosecond is rounded up.
 *
 * BATON_INVALID: not of that form, negative, or too long for the type; the detail says what is
 * allowed, and *ret is untouched. Any thread. */
BATON_API enum baton_err baton_duration_parse(struct baton_str text, struct baton_duration *ret);

/* Room for what baton_duration_print() writes, with the terminator. */
#define BATON_DURATION_TEXT 96

/* Writes `d` so that baton_duration_parse() reads back exactly the same span: "1h 30min",
 * "1s 500ms", "365d", "0", "infinity". A negative span gets a leading "-", which only people read.
 * Returns `text`. */
BATON_API char *baton_duration_print(struct baton_duration d, char text[BATON_DURATION_TEXT]);

/* Reads RFC 3339 with its zone, "2026-02-28T09:05:00.250Z" or "2026-02-28 10:05:00+01:00", or "@"
 * and seconds since 1970, "@1772269500" or "@1772269500.25". What is finer than a millisecond is
 * rounded up.
 *
 * BATON_INVALID: not of that form, or before 1970; the detail says what is allowed, and *ret is
 * untouched. Any thread. */
BATON_API enum baton_err baton_store_time_parse(struct baton_str text,
                                                struct baton_store_time *ret);

/* Room for what baton_store_time_print() writes, with the terminator. */
#define BATON_STORE_TIME_TEXT 32

/* Writes `t` as RFC 3339 in UTC with milliseconds: "2026-02-28T09:05:00.250Z"; outside of the years
 * 0 to 9999 as "@<milliseconds>"; BATON_STORE_TIME_NEVER as "never". Returns `text`. */
BATON_API char *baton_store_time_print(struct baton_store_time t, char text[BATON_STORE_TIME_TEXT]);

BATON_END

#endif
