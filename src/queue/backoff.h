/* How long to wait before work that failed is tried again. */
#ifndef QUEUE_BACKOFF_H
#define QUEUE_BACKOFF_H

#include <stdint.h>

#include <baton/policy.h>
#include <baton/time.h>

/* The delay after the attempt that failed, counted from 1. `retry` has passed baton_retry_check().
 * An exponential one grows from base to cap, twice as long each time; `random`, any 64 random bits,
 * chooses evenly among all delays up to that, both ends included, so that those who failed together
 * do not come back together. */
struct baton_duration backoff_delay(const struct baton_retry *retry, uint32_t attempt,
                                    uint64_t random);

#endif
