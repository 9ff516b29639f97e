/* The thread that beats: it says at even intervals that the runner lives, whatever else is under
 * way, and tells the loop what came of it. */
#ifndef RUNNER_PULSE_H
#define RUNNER_PULSE_H

#include <pthread.h>

#include <baton/clock.h>
#include <baton/shard.h>

#include "runner/inbox.h"

struct pulse {
	struct inbox *inbox;             /* [const] */
	const struct baton_clock *clock; /* [const] */
	struct baton_duration every;     /* [const] */
	struct baton_duration patience;  /* [const] */
	pthread_t thread;                /* [loop] */
	bool runs;                       /* [loop] */
	_Atomic uint32_t word;           /* [atomic] a futex: something has changed */
	pthread_mutex_t mu;
	bool quit;                    /* [mu] */
	struct baton_runner *runner;  /* [mu] that is to beat; NULL: none */
	struct baton_runner *beating; /* [mu] whose beat is under way; NULL: none */
	bool retired;                 /* [mu] that one is to be freed afterwards */
};

/* It beats no more while the loop has left a beat in the inbox for longer than `patience`. */
enum baton_err pulse_init(struct pulse *pulse, struct inbox *inbox, const struct baton_clock *clock,
                          struct baton_duration every, struct baton_duration patience);

/* Waits for a beat that is under way, as long as it takes. */
void pulse_done(struct pulse *pulse);

/* Beats for that registration from now on. */
void pulse_begin(struct pulse *pulse, struct baton_runner *runner);

/* Beats no more for it, and frees it, when nothing uses it any more. Any thread. */
void pulse_retire(struct pulse *pulse, struct baton_runner *runner);

#endif
