/* A time zone: how many seconds are added to UTC at which moments. */
#ifndef QUEUE_ZONE_H
#define QUEUE_ZONE_H

#include <stddef.h>
#include <stdint.h>

#include <baton/err.h>
#include <baton/str.h>

#include "queue/zone_rule.h"

/* The least and the most that is added to UTC (RFC 8536). */
#define ZONE_OFFSET_MIN_S (-89999)
#define ZONE_OFFSET_MAX_S 93599

/* Views of the data that it was read from, which must outlive it. Times are seconds since 1970. */
struct zone {
	struct baton_str changes; /* the moments, ascending, of `width` bytes each            */
	struct baton_str kinds;   /* what each changes to: one byte, a number among the types */
	struct baton_str types;   /* of 6 bytes, which begin with the offset                  */
	size_t width;
	bool has_rule; /* from the last change on; else that one lasts */
	struct zone_rule rule;
};

#define ZONE_UTC ((struct zone){.has_rule = true})

/* Reads the content of a time zone file: TZif (RFC 8536) of version 1, which has 32-bit moments, or
 * later. All of it is checked; nothing is copied.
 *
 * BATON_INVALID: no such content, with what is wrong with it; *ret is untouched. Leap seconds are
 * refused: the store's clock does not count them. */
enum baton_err zone_parse(struct baton_str tzif, struct zone *ret);

/* The span that contains the moment; the next one may have the same offset. Moments and local times
 * are within 2^59 seconds of 1970, here and below. */
struct zone_span zone_at(const struct zone *zone, int64_t utc_s);

/* What becomes of a local time on the clock on the wall. */
enum zone_shown {
	ZONE_ONCE = 1, /* it is shown once                                   */
	ZONE_SKIPPED,  /* the clock is put forward over it                   */
	ZONE_REPEATED, /* the clock is put back, so that it is shown again */
};

struct zone_local {
	int64_t utc_s; /* the first moment at which the clock shows it, or later */
	enum zone_shown shown;
};

/* When the local time `local_s` is. A local time is the seconds from 1970-01-01 00:00 to it on a
 * clock that nobody ever changed. */
struct zone_local zone_find(const struct zone *zone, int64_t local_s);

/* The latest local time that was shown up to and at the moment. It is the time on the wall unless
 * the clock was put back and has not caught up. zone_find(x).utc_s <= utc_s iff x <=
 * zone_reached(utc_s). */
int64_t zone_reached(const struct zone *zone, int64_t utc_s);

#endif
