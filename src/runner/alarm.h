/* The thread that ends the process when a function runs beyond its time: a function cannot be
 * killed, and whoever started it may be busy with it. */
#ifndef RUNNER_ALARM_H
#define RUNNER_ALARM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <baton/clock.h>
#include <baton/err.h>
#include <baton/log.h>
#include <baton/time.h>

struct alarm {
	const struct baton_clock *clock; /* [const] NULL: not open */
	const struct baton_log *log;     /* [const] or NULL */
	pthread_t thread;                /* [loop] */
	bool runs;                       /* [loop] */
	_Atomic int64_t at;              /* [atomic] ns */
	_Atomic uint32_t running;        /* [atomic] functions */
	_Atomic uint32_t word;           /* [atomic] a futex: something has changed */
	_Atomic bool quit;               /* [atomic] */
};

/* `armed`: there is a thread; otherwise functions are only kept from starting too late.
 * BATON_SYSTEM. alarm_done() is fine after a failure, and for a zeroed one. */
enum baton_err alarm_init(struct alarm *a, const struct baton_clock *clock,
                          const struct baton_log *log, bool armed);
void alarm_done(struct alarm *a);

/* From then on no function may run. At first there is no such moment. */
void alarm_set(struct alarm *a, struct baton_mono at);

/* That moment. Any thread. */
struct baton_mono alarm_at(const struct alarm *a);

/* A function is about to run; false: it is too late, and it must not. And it has ended.
 * Any thread. */
bool alarm_enter(struct alarm *a);
void alarm_leave(struct alarm *a);

#endif
