/* Handlers that are functions of the embedder's: called on threads, one for each slot at most, or
 * on the loop itself. */
#ifndef RUNNER_CALLS_H
#define RUNNER_CALLS_H

#include <pthread.h>

#include <baton/runner.h>

#include "runner/alarm.h"
#include "runner/inbox.h"
#include "runner/progress.h"

struct baton_run {
	struct baton_run *next;               /* [mu] of those that wait for a thread */
	struct baton_run *later, *sooner;     /* [mu] of all                          */
	struct calls *calls;                  /* [const] */
	uint64_t id;                          /* [const] */
	const struct baton_work_claim *claim; /* [const] */
	struct baton_mono due;                /* [mu] its time is over then */
	struct baton_mono last;               /* [const] and then at the latest */
	_Atomic bool cancelled;               /* [atomic] */
	bool late;                            /* [mu] its time was over, and it was told */
	struct progress *progress;            /* [mu] or NULL */
	struct inbox_more more;               /* [loop] while it asks */
	baton_run_got got;                    /* [mu] it has asked for more; NULL: it has not */
	void *got_arg;                        /* [mu] then */
	struct inbox_end end;                 /* [const] once it has ended */
	struct core_end kept;                 /* [const] then: what is dropped with it */
};

struct calls {
	const struct baton_alloc *alloc; /* [const] */
	struct inbox *inbox;             /* [const] */
	struct alarm *alarm;             /* [const] */
	baton_run_call call;             /* [const] */
	baton_run_call cancel;           /* [const] or NULL */
	void *arg;                       /* [const] */
	const struct baton_clock *clock; /* [const] */
	struct baton_duration timeout;   /* [const] 0: none */
	uint32_t max;                    /* [const] threads; 0: the loop calls */
	pthread_mutex_t mu;
	pthread_cond_t changed;
	pthread_t *threads;             /* [loop] */
	uint32_t count;                 /* [loop] of threads */
	uint32_t idle;                  /* [mu] threads without a run */
	uint32_t waiting;               /* [mu] runs without a thread */
	struct baton_run *first, *last; /* [mu] those */
	struct baton_run *all;          /* [mu] that have not ended */
	bool called;                    /* [mu] a thread was woken, and is not here yet */
	bool quit;                      /* [mu] */
	struct baton_mono due;          /* [loop] no time is over before that */
	_Atomic bool progressed;        /* [atomic] somebody has said how far he is */
};

struct calls_options {
	const struct baton_alloc *alloc;
	const struct baton_handler *handler;
	struct inbox *inbox; /* where ends are put */
	struct alarm *alarm; /* that is told what runs */
	uint32_t slots;
	const struct baton_clock *clock;
};

enum baton_err calls_init(struct calls *calls, const struct calls_options *options);

/* All runs have ended. */
void calls_done(struct calls *calls);

/* BATON_GONE: it is too late to begin. BATON_NO_MEMORY, BATON_SYSTEM: no thread. */
enum baton_err calls_start(struct calls *calls, uint64_t id, const struct baton_work_claim *claim);
void calls_stop(struct calls *calls, uint64_t id);

/* What came of it that the run has asked for more. False: it has ended meanwhile. */
bool calls_more(struct calls *calls, uint64_t id, const struct baton_work_claim *claim);

/* Tells those to stop that have taken too long. To be called at calls->due at the latest. */
void calls_act(struct calls *calls, struct baton_mono now);

/* Whether any run has said how far it is since the last time; and what they have said last. */
bool calls_progressed(struct calls *calls);
void calls_progress(struct calls *calls, struct buf *report);

#endif
