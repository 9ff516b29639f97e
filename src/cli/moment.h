/* Moments and spans as people type them. */
#ifndef CLI_MOMENT_H
#define CLI_MOMENT_H

#include <stdbool.h>

#include <baton.h>

/* Reads RFC 3339 with its zone, "2026-02-28T09:05:00.250Z" or "2026-02-28 10:05:00+01:00", or
 * "@" and seconds since 1970, "@1772269500" or "@1772269500.25", from 1970 on. What is finer than a
 * millisecond is rounded up. False: it is something else. */
bool moment_read(struct baton_str text, struct baton_store_time *ret);

/* The value of `option`. False: it is no moment, as one line on standard error has said. */
bool moment_parse(const char *option, const char *text, struct baton_store_time *ret);

/* The value of `option`, as baton_duration_parse() reads it, `min` to `max`. False: as above. */
struct span_limits {
	struct baton_duration min, max;
};
bool span_parse(const char *option, const char *text, const struct span_limits *limits,
                struct baton_duration *ret);

/* The limits of a ttl, and of a delay, which may be 0. */
struct span_limits span_limits_ttl(void);
struct span_limits span_limits_delay(void);

#endif
