/* Where the time comes from. Programs use the system's; tests bring their own. */
#ifndef BATON_CLOCK_H
#define BATON_CLOCK_H

#include <stdint.h>

#include <baton/api.h>
#include <baton/time.h>

BATON_BEGIN

/* A source of time. All three are called from any thread. */
struct baton_clock {
	/* This moment on this clock. Never goes back. */
	struct baton_mono (*now)(const struct baton_clock *self);

	/* What the host's wall clock shows. For people to read: nothing is decided by it. */
	struct baton_store_time (*wall)(const struct baton_clock *self);

	/* Returns once *word is not `seen`, once `until` has been reached, or for no reason at all:
	 * callers look again. Whoever changes *word also wakes its futex (FUTEX_WAKE, private). */
	void (*wait)(const struct baton_clock *self, const uint32_t *word, uint32_t seen,
	             struct baton_mono until);
};

/* The time since boot without the time that the machine slept (CLOCK_MONOTONIC): for limits among
 * parties that all sleep together, such as the threads of a process. */
BATON_API const struct baton_clock *baton_clock_awake(void);

/* The time since boot, sleep included (CLOCK_BOOTTIME): for limits that another machine counts too.
 * A wait on it that spans a suspend of the machine may return up to 100 ms late. */
BATON_API const struct baton_clock *baton_clock_boot(void);

BATON_END

#endif
