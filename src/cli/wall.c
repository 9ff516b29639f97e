/* What the wall clock showed, or will show, at a moment of the boot clock; for people to read. */
#include <stdio.h>
#include <time.h>

#include "wall.h"

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S (1000 * NS_PER_MS)
#define NS_PER_MIN (60 * NS_PER_S)
#define NS_PER_H (60 * NS_PER_MIN)

struct wall wall_now(void)
{
	const struct baton_clock *clock = baton_clock_boot();
	return (struct wall){.boot = clock->now(clock), .time = clock->wall(clock)};
}

struct baton_store_time wall_at(const struct wall *now, struct baton_mono moment)
{
	if (moment.ns == BATON_MONO_NEVER.ns)
		return BATON_STORE_TIME_NEVER;
	return baton_store_time_add(now->time, baton_mono_sub(moment, now->boot));
}

/* Writes the seconds of `t`. False: it is too far away to have a date here. */
static bool print_seconds(struct baton_store_time t, char text[WALL_TEXT])
{
	time_t seconds = (time_t)(t.ms / 1000 - (t.ms % 1000 < 0));
	struct tm parts;
	return localtime_r(&seconds, &parts) &&
	       strftime(text, WALL_TEXT, "%Y-%m-%d %H:%M:%S", &parts) > 0;
}

const char *wall_print(struct baton_store_time t, char text[WALL_TEXT])
{
	if (t.ms == BATON_STORE_TIME_NEVER.ms || !print_seconds(t, text))
		baton_store_time_print(t, text);
	return text;
}

const char *wall_print_ms(struct baton_store_time t, char text[WALL_TEXT])
{
	char seconds[WALL_TEXT];
	if (t.ms == BATON_STORE_TIME_NEVER.ms || !print_seconds(t, seconds))
		baton_store_time_print(t, text);
	else
		snprintf(text, WALL_TEXT, "%.40s.%03d", seconds,
		         (int)((t.ms % 1000 + 1000) % 1000));
	return text;
}

const char *wall_span(struct baton_duration d, char text[BATON_DURATION_TEXT])
{
	int64_t unit = NS_PER_H;
	if (d.ns < 0)
		d.ns = 0;
	if (d.ns < NS_PER_S)
		unit = NS_PER_MS;
	else if (d.ns < NS_PER_H)
		unit = NS_PER_S;
	else if (d.ns < 24 * NS_PER_H)
		unit = NS_PER_MIN;
	if (d.ns != BATON_DURATION_FOREVER.ns)
		d.ns -= d.ns % unit;
	return baton_duration_print(d, text);
}
