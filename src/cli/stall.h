/* What a job that is ready waits for, as it is told. */
#ifndef CLI_STALL_H
#define CLI_STALL_H

#include <baton.h>

#include "json.h"
#include "line.h"

/* The reason in one word; NULL for none. */
const char *stall_name(enum baton_stall stall);

/* Add what comes after "job 17 ". */
void stall_tell_paused(struct line *line, const struct baton_work_info *info);
void stall_tell(struct line *line, const struct baton_work_info *info,
                const struct baton_stalled *stalled, struct baton_store_time now);

/* Adds "stall", the reason or null, and "runner" and "shard", of whom it waits for, or null. */
void stall_json(struct json *j, const struct baton_stalled *stalled);

#endif
