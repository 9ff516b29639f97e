/* The yearly rule of a time zone: the TZ string of POSIX, with the extensions of RFC 8536. */
#ifndef QUEUE_ZONE_RULE_H
#define QUEUE_ZONE_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include <baton/err.h>
#include <baton/str.h>

/* How a day of the year is given. */
enum zone_day {
	ZONE_DAY_COUNTED = 1, /* n: 0 to 365, February 29 counts              */
	ZONE_DAY_JULIAN,      /* Jn: 1 to 365, February 29 is never counted    */
	ZONE_DAY_WEEKDAY,     /* Mm.w.d: the weekday d of week w (5: the last) */
};

/* When the clocks change, on the clock that is valid until then. */
struct zone_change {
	enum zone_day kind;
	int day; /* n, or the weekday, Sunday being 0 */
	int month;
	int week;
	int32_t time_s; /* after midnight; -167 to 167 hours */
};

/* Zeroed, it is UTC. */
struct zone_rule {
	int32_t offset_s; /* what is added to UTC, east being positive */
	bool has_dst;     /* what is below counts                      */
	int32_t dst_offset_s;
	struct zone_change start; /* of daylight-saving time */
	struct zone_change end;
};

/* A stretch of time with one offset. */
struct zone_span {
	int64_t begin_s;  /* INT64_MIN: always has been */
	int64_t end_s;    /* the first second after it; INT64_MAX: never ends */
	int32_t offset_s; /* what is added to UTC for the local time */
};

/* Reads a TZ string such as "CET-1CEST,M3.5.0,M10.5.0/3". Daylight-saving time needs its dates.
 *
 * BATON_INVALID: not of that form, or a number outside of its limits; *ret is untouched. */
enum baton_err zone_rule_parse(struct baton_str text, struct zone_rule *ret);

/* A span that contains the moment; the next one may have the same offset. `utc_s` is seconds since
 * 1970, within 2^60 of it. */
struct zone_span zone_rule_at(const struct zone_rule *rule, int64_t utc_s);

#endif
