/* A schedule as cron knows it: at which local times something happens. */
#ifndef QUEUE_CRON_H
#define QUEUE_CRON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/err.h>
#include <baton/str.h>
#include <baton/time.h>

#include "queue/zone.h"

/* The longest expression, in bytes. */
#define CRON_TEXT_MAX 1024

/* Sets of numbers, one bit each: bit n is set if n is in the set. None is empty. */
struct cron {
	uint64_t seconds;  /* 0 to 59                */
	uint64_t minutes;  /* 0 to 59                */
	uint32_t hours;    /* 0 to 23                */
	uint32_t days;     /* of the month: 1 to 31  */
	uint16_t months;   /* 1 to 12                */
	uint8_t weekdays;  /* 0 to 6, Sunday being 0 */
	bool any_day_does; /* either of `days` and `weekdays` is enough; else both must fit */
};

/* Reads an expression of five fields, or of six that begin with the seconds, between blanks:
 *
 *	[second] minute hour day-of-month month day-of-week
 *
 * A field is a list of items between commas; an item is *, a number, or a range such as 9-17, and a
 * range or * may have a step, as in 9-17/2. Months may be JAN to DEC, days of the week SUN to SAT,
 * in capitals or not. Sunday is 0 and 7; it ends a range as 7, as in FRI-SUN. Without a field for
 * them the seconds are 0. There are also @hourly, @daily, @midnight, @weekly, @monthly, @yearly and
 * @annually.
 *
 * Days are as in Vixie's cron: if neither the day of the month nor the day of the week begins with
 * *, a day does on which either fits; otherwise both have to.
 *
 * BATON_INVALID: not of that form, a number outside of its limits, or days that no month has, such
 * as February 30; the detail names the field, the value and the limits, and *ret is untouched. */
enum baton_err cron_parse(struct baton_str text, struct cron *ret);

/* The first local time at or after `local_s` at which the schedule fits. Local times are those of
 * zone_find(). There always is one, within 40 years. */
int64_t cron_fit(const struct cron *cron, int64_t local_s);

/* The first tick strictly after the moment; BATON_STORE_TIME_NEVER if there is none up to the year
 * 9999. A moment before the year 0 counts as its beginning.
 *
 * Where the clocks of the zone are changed, it depends on the hours of the schedule:
 * - Some hours, such as 30 2 * * *: every local time is a tick once. One that is skipped is at the
 *   moment at which the clocks are put forward, and those that meet there are one tick. One that is
 *   repeated is at the first of its moments.
 * - All hours, such as 0,30 * * * *: what the clock on the wall shows is a tick, as often as it
 *   shows it. What is skipped is none, and what is repeated is several.
 *
 * The work is bounded: some steps for each year until a day fits, which are 40 at most (February 29
 * on a given weekday, across 2100), and for each change of the clocks in them. */
struct baton_store_time cron_next(const struct cron *cron, const struct zone *zone,
                                  struct baton_store_time after);

/* What to do about missed ticks. */
enum cron_policy {
	CRON_ONCE = 1, /* the last of them is put, for all of them */
	CRON_ALL,      /* each of them is put                      */
	CRON_SKIP,     /* none of them is put                      */
};

/* A tick is due iff it is after `last` and not after `now`. One that is due is on time as long as
 * less than `grace`, which is positive, has passed since; otherwise it is missed. */
struct cron_ask {
	enum cron_policy policy;
	struct baton_duration grace;
	struct baton_store_time last; /* up to here all is settled; at first, when it was made */
	struct baton_store_time now;
};

struct cron_due {
	size_t count;                 /* of the ticks to put now                          */
	struct baton_store_time last; /* of the next ask, once those have been put        */
	bool more;                    /* others are due, for which there was no room      */
};

/* The most ticks that one call gives, whatever the room. */
#define CRON_TICKS_MAX 1000

/* Which ticks to put now, in order: of the missed ones what the policy says, and all that are on
 * time. They are written to `ticks`, which has room for `max`, at least 1. */
struct cron_due cron_missed(const struct cron *cron, const struct zone *zone,
                            const struct cron_ask *ask, struct baton_store_time *ticks, size_t max);

#endif
