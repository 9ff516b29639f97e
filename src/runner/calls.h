/* Handlers that are functions of the embedder's: called on threads, one for each slot at most, or
 * on the loop itself. */
#ifndef RUNNER_CALLS_H
#define RUNNER_CALLS_H

#include <pthread.h>

#include <baton/runner.h>

#include "runner/alarm.h"
#include "runner/inbox.h"

struct baton_run {
	struct baton_run *next;               /* [mu] of those that wait for a thread */
	struct baton_run *later, *sooner;     /* [mu] of all                          */
	struct calls *calls;                  /* [const] */
	uint64_t id;                          /* [const] */
	const struct baton_work_claim *claim; /* [const] */
	_Atomic bool cancelled;               /* [atomic] */
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
};

struct calls_options {
	const struct baton_alloc *alloc;
	const struct baton_handler *handler;
	struct inbox *inbox; /* where ends are put */
	struct alarm *alarm; /* that is told what runs */
	uint32_t slots;
};

enum baton_err calls_init(struct calls *calls, const struct calls_options *options);

/* All runs have ended. */
void calls_done(struct calls *calls);

/* BATON_GONE: it is too late to begin. BATON_NO_MEMORY, BATON_SYSTEM: no thread. */
enum baton_err calls_start(struct calls *calls, uint64_t id, const struct baton_work_claim *claim);
void calls_stop(struct calls *calls, uint64_t id);

#endif
