/* The system's time zones, and moments and local times as people write them. */
#ifndef UNIT_QUEUE_ZONES_H
#define UNIT_QUEUE_ZONES_H

#include <stdint.h>

#include "base/buf.h"
#include "queue/zone.h"

/* A zone with the bytes that it looks at. */
struct zone_data {
	struct buf bytes;
	struct zone zone;
};

/* Reads the zone, or fails the test. The C library uses it from now on too. */
void zone_data_init(struct zone_data *data, const char *name);
void zone_data_done(struct zone_data *data);

/* Seconds since 1970 of "2026-03-29 02:30:00", where the seconds may be missing; fails the test if
 * it is written otherwise. */
int64_t seconds_of(const char *text);

/* The other way round. Returns `text`. */
char *seconds_print(int64_t seconds, char text[32]);

#endif
