/* A clock that stands still until the test moves it. */
#ifndef SUPPORT_FAKE_CLOCK_H
#define SUPPORT_FAKE_CLOCK_H

#include <pthread.h>
#include <stdint.h>

#include <baton/clock.h>
#include <baton/time.h>

struct fake_waiter;

struct fake_clock {
	struct baton_clock clock; /* [const] what the code under test gets              */
	pthread_mutex_t mu;
	pthread_cond_t changed;       /* [mu] the number of blocked threads              */
	struct fake_waiter *waiters;  /* [mu] the threads inside wait()                  */
	struct baton_mono now;        /* [mu]                                            */
	struct baton_store_time wall; /* [mu] what the wall clock showed at `wall_since` */
	struct baton_mono wall_since; /* [mu]                                            */
	uint32_t moves;               /* [atomic] a futex: how often the time has moved  */
};

/* The clock shows `now`; its wall clock 2026-01-01T00:00:00Z, until it is set. */
void fake_clock_init(struct fake_clock *c, struct baton_mono now);

/* Ends it. No thread may be waiting on it. */
void fake_clock_done(struct fake_clock *c);

/* Moves the time, and lets go on whoever waits for a moment that has been reached now. */
void fake_clock_advance(struct fake_clock *c, struct baton_duration d);

/* From now on the wall clock shows `wall` and moves along with the time. */
void fake_clock_set_wall(struct fake_clock *c, struct baton_store_time wall);

/* Returns once at least `n` threads are inside wait() for moments that have not been reached: from
 * then on neither a wake-up of their words nor fake_clock_advance() can pass them unnoticed. */
void fake_clock_wait_blocked(struct fake_clock *c, unsigned n);

#endif
