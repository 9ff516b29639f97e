/* What the wall clock showed, or will show, at a moment of the boot clock; for people to read. */
#ifndef CLI_WALL_H
#define CLI_WALL_H

#include <baton.h>

/* One moment on both clocks. */
struct wall {
	struct baton_mono boot;
	struct baton_store_time time;
};

struct wall wall_now(void);

/* `moment` on the wall clock, if that has not been and will not be set meanwhile. BATON_MONO_NEVER
 * is BATON_STORE_TIME_NEVER. */
struct baton_store_time wall_at(const struct wall *now, struct baton_mono moment);

/* Room for what wall_print() and wall_print_ms() write, with the terminator. */
#define WALL_TEXT 64

/* Writes `t` in the user's time zone, "2026-02-28 09:05:00"; "never" for BATON_STORE_TIME_NEVER.
 * Returns `text`. */
const char *wall_print(struct baton_store_time t, char text[WALL_TEXT]);

/* The same with milliseconds. */
const char *wall_print_ms(struct baton_store_time t, char text[WALL_TEXT]);

/* Writes a span with no more than two units, rounded down: "350ms", "12s", "2min 5s", "3h 20min",
 * "4d 1h". One below 0 counts as 0. Returns `text`. */
const char *wall_span(struct baton_duration d, char text[BATON_DURATION_TEXT]);

#endif
