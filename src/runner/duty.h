/* A singleton of a runner: its seat, and its instance, a command under a guardian of its own or a
 * function on a thread.
 *
 * The processes of a command keep a latch, as descriptor 3, that is the same for all who offer the
 * singleton on this host. So no instance starts as long as one of another lives, whoever was
 * killed. */
#ifndef RUNNER_DUTY_H
#define RUNNER_DUTY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <baton/clock.h>
#include <baton/detach.h>
#include <baton/log.h>
#include <baton/singleton.h>

#include "guardian/wards.h"
#include "runner/alarm.h"
#include "runner/beside.h"
#include "runner/inbox.h"
#include "runner/seat.h"
#include "runner/waiter.h"

#define DUTY_SUBJECT "singleton/"

struct duty_options {
	const struct baton_alloc *alloc;
	const struct baton_clock *clock; /* that counts what the store counts: sleep included */
	const struct baton_log *log;
	struct baton_detach *detach;
	struct inbox *inbox;
	struct waiter *waiter; /* waits for commands too */
	const char *beside;
	const char *lock; /* see struct wards_ask */
	int64_t lock_at;
	struct baton_id store; /* its name: two stores may have singletons of one name */
};

struct baton_duty {
	struct baton_singleton what; /* [const] */
	struct duty_options o;       /* [const] */
	char subject[BATON_NAME_MAX + 1];
	struct seat seat;            /* [loop] */
	struct wards *wards;         /* [loop] NULL: none are open */
	bool lost;                   /* [loop] their guardian has died */
	struct baton_mono hard_stop; /* [loop] as it was set */
	struct alarm alarm;          /* of a function that may not run beyond its time */
	bool threaded;               /* [loop] there is a thread to be joined */
	pthread_t thread;
	baton_fence fence;     /* [const] while the function runs */
	_Atomic uint32_t word; /* [atomic] a futex: look up */
	_Atomic bool over;     /* [atomic] it is to end */
	_Atomic bool ended;    /* [atomic] it has */
	_Atomic int64_t until; /* [atomic] on the clock, when it is over anyway */
};

/* BATON_SYSTEM: no thread. duty_done() is fine all the same. */
enum baton_err duty_init(struct baton_duty *d, const struct baton_singleton *what,
                         const struct duty_options *options);

/* Ends what runs; waits for a function. Fine for a zeroed one. */
void duty_done(struct baton_duty *d);

/* How long its command has from SIGTERM to SIGKILL. */
struct baton_duration duty_grace(const struct baton_singleton *what);

/* Starts the instance. BATON_YIELD: something of another one lives still. */
enum baton_err duty_start(struct baton_duty *d);
void duty_stop(struct baton_duty *d);

/* Whether the instance has ended since the last time. Never waits. */
bool duty_hear(struct baton_duty *d);

/* Clears away what is kept from one instance to the next. Nothing runs. */
void duty_clear(struct baton_duty *d);

/* Tells whoever ends it, and itself, for how long it may go on: what the seat says now. */
void duty_deadline(struct baton_duty *d);

/* The store is away: the runner is to find out. Any thread. */
void duty_suspect(struct baton_duty *d);

/* Has the function look up from its wait. */
void duty_nudge(struct baton_duty *d);

/* For the function: whether it may act now, which it may not while the runner is suspect; and a
 * wait until the word is not `seen` any more, or until that moment. */
bool duty_may_act(const struct baton_duty *d);
uint32_t duty_word(const struct baton_duty *d);
void duty_wait(struct baton_duty *d, uint32_t seen, struct baton_duration most);

#endif
