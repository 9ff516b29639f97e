/* A schedule as it is shown, to people and to programs. */
#ifndef CLI_SCHEDULE_H
#define CLI_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>

#include <baton.h>

#include "out.h"

/* How many of the next ticks are shown of one schedule. */
#define SCHEDULE_TICKS 5

/* How many of them can be asked for. */
#define SCHEDULE_NEXT_MAX 1000

/* "once", "all" or "skip". */
const char *schedule_missed_name(enum baton_missed missed);

/* Reads it. False: it is something else, as one line on standard error has said. */
bool schedule_missed_parse(const char *text, enum baton_missed *ret);

/* A line for each, with titles above them if that is wanted. */
void schedule_table(struct out *out, const struct baton_schedules *schedules,
                    struct baton_store_time now, bool titles);

/* All about one, with the ticks that come next, and the one before them that is still due. */
void schedule_print(struct out *out, const struct baton_schedule *s,
                    const struct baton_store_time *ticks, size_t count);

/* An object; with the list of the next ticks, unless `ticks` is NULL. */
void schedule_json(struct out *out, const struct baton_schedule *s,
                   const struct baton_store_time *ticks, size_t count);

/* The moments of ticks as the clocks of its zone show them, a line each. Changes the zone of this
 * process. */
void schedule_next_print(struct out *out, const struct baton_schedule *s,
                         const struct baton_store_time *ticks, size_t count, bool json);

#endif
