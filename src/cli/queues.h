/* The queues of a store, as they are shown. */
#ifndef CLI_QUEUES_H
#define CLI_QUEUES_H

#include <stdbool.h>
#include <stddef.h>

#include <baton.h>

#include "out.h"

/* Rows of a table, with titles before the first part of it. */
void queues_print(struct out *out, const struct baton_queue_info *infos, size_t count, bool titles);

/* One object, on a line of its own. */
void queue_json(struct out *out, const struct baton_queue_info *q);

#endif
