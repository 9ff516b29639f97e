/* The schedules of a store in memory. */
#ifndef STORE_MEMORY_SCHEDULE_H
#define STORE_MEMORY_SCHEDULE_H

#include <baton/schedule.h>

#include "store/memory/tx.h"

/* A new one, which copies the record. NULL: no memory. */
struct schedule *memory_schedule_add(struct tx *tx, const struct baton_schedule *s);

#endif
