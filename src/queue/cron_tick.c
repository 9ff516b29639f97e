/* The ticks of a cron schedule in a time zone. */
#include "base/check.h"
#include "base/civil.h"
#include "queue/cron.h"

#define MS_PER_S 1000
#define ALL_HOURS 0xffffff

/* The first and the last second of the years 0 to 9999. */
#define FIRST_S (-62167219200)
#define LAST_S 253402300799

/* The clock on the wall only counts as it goes forward: a tick is when it first shows a time that
 * fits, or jumps over it. */
static int64_t next_once(const struct cron *cron, const struct zone *zone, int64_t after_s)
{
	return zone_find(zone, cron_fit(cron, zone_reached(zone, after_s) + 1)).utc_s;
}

/* The clock on the wall counts whatever it shows. */
static int64_t next_shown(const struct cron *cron, const struct zone *zone, int64_t after_s)
{
	int64_t from_s = after_s + 1;
	while (from_s <= LAST_S) {
		struct zone_span span = zone_at(zone, from_s);
		int64_t at_s = cron_fit(cron, from_s + span.offset_s) - span.offset_s;
		if (at_s < span.end_s)
			return at_s;
		from_s = span.end_s;
	}
	return INT64_MAX;
}

struct baton_store_time cron_next(const struct cron *cron, const struct zone *zone,
                                  struct baton_store_time after)
{
	int64_t after_s = civil_floor(after.ms, MS_PER_S);
	if (after_s < FIRST_S)
		after_s = FIRST_S;
	int64_t at_s = cron->hours == ALL_HOURS ? next_shown(cron, zone, after_s)
	                                        : next_once(cron, zone, after_s);
	if (at_s > LAST_S)
		return BATON_STORE_TIME_NEVER;
	return (struct baton_store_time){at_s * MS_PER_S};
}

static bool is_due(struct baton_store_time tick, struct baton_store_time now)
{
	return tick.ms != BATON_STORE_TIME_NEVER.ms && baton_store_time_ready(tick, now);
}

/* The last tick after `from` and not after `until`; `from` if there is none. Halves the time in
 * which it must be, because there may be any number of ticks. */
static struct baton_store_time last_tick(const struct cron *cron, const struct zone *zone,
                                         struct baton_store_time from,
                                         struct baton_store_time until)
{
	int64_t high = until.ms; /* no tick after this one is within */
	while (from.ms < high) {
		int64_t gap = (int64_t)(((uint64_t)high - (uint64_t)from.ms) / 2);
		struct baton_store_time middle = {from.ms + gap};
		struct baton_store_time tick = cron_next(cron, zone, middle);
		if (is_due(tick, until))
			from = tick;
		else if (gap > 0)
			high = middle.ms;
		else
			break;
	}
	return from;
}

/* The last moment at which a tick is missed. */
static struct baton_store_time missed_until(const struct cron_ask *ask)
{
	struct baton_store_time edge;
	int64_t grace_ms = baton_store_time_add((struct baton_store_time){0}, ask->grace).ms;
	if (__builtin_sub_overflow(ask->now.ms, grace_ms, &edge.ms))
		edge.ms = INT64_MIN;
	return edge;
}

struct cron_due cron_missed(const struct cron *cron, const struct zone *zone,
                            const struct cron_ask *ask, struct baton_store_time *ticks, size_t max)
{
	CHECK(max > 0 && ask->grace.ns > 0);
	struct cron_due due = {.last = ask->last};
	if (ask->policy != CRON_ALL) {
		due.last = last_tick(cron, zone, ask->last, missed_until(ask));
		if (ask->policy == CRON_ONCE && due.last.ms != ask->last.ms)
			ticks[due.count++] = due.last;
	}
	size_t room = max < CRON_TICKS_MAX ? max : CRON_TICKS_MAX;
	for (;;) {
		struct baton_store_time tick = cron_next(cron, zone, due.last);
		if (!is_due(tick, ask->now))
			return due;
		due.more = due.count == room;
		if (due.more)
			return due;
		ticks[due.count++] = tick;
		due.last = tick;
	}
}
