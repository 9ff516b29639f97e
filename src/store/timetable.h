/* When a schedule ticks: an expression and its zone, ready to be asked. */
#ifndef STORE_TIMETABLE_H
#define STORE_TIMETABLE_H

#include <baton/alloc.h>
#include <baton/err.h>
#include <baton/str.h>

#include "base/buf.h"
#include "queue/cron.h"

struct timetable {
	struct cron cron;
	struct zone zone;
	struct buf file; /* what the zone is a view of */
};

/* An empty zone is UTC. BATON_INVALID: a bad expression or zone; the detail says what and where.
 * timetable_done() is fine after a failure. */
enum baton_err timetable_open(const struct baton_alloc *alloc, struct baton_str cron,
                              struct baton_str zone, struct timetable *t);
void timetable_done(struct timetable *t);

#endif
