/* A thread that renews what a source gave: a store may take long to answer, or never do, and the
 * guardian has to act in time all the same. */
#ifndef GUARDIAN_RENEWER_H
#define GUARDIAN_RENEWER_H

#include <pthread.h>
#include <stdbool.h>

#include <baton/err.h>
#include <baton/guardian.h>
#include <baton/time.h>

#define RENEWER_WHY 256

/* What became of it so far. */
struct renewer_news {
	struct baton_mono sent; /* just before the last renewal that went well */
	bool lost;
	char why[RENEWER_WHY]; /* a renewal since then failed; "": none has */
};

/* Begins as RENEWER_NONE. Stays where it is while the thread runs. */
struct renewer {
	const struct baton_guardian_source *source; /* [const] while it runs */
	struct baton_duration ttl;                  /* [const] while it runs */
	pthread_t thread;                           /* [guardian] */
	bool runs;                                  /* [guardian] there is one to be joined */
	pthread_mutex_t mu;
	pthread_cond_t changed;   /* `stop` or `done`; on CLOCK_MONOTONIC */
	bool stop;                /* [mu] it is to be given back */
	bool done;                /* [mu] it was, and the thread ends */
	struct renewer_news news; /* [mu] written by the thread */
};

#define RENEWER_NONE ((struct renewer){.mu = PTHREAD_MUTEX_INITIALIZER})

/* Begins to renew what was asked for at `sent`. None may run. All signals are blocked.
 * BATON_SYSTEM: there is no thread to be had. */
enum baton_err renewer_start(struct renewer *r, const struct baton_guardian_source *source,
                             struct baton_duration ttl, struct baton_mono sent);

/* Never waits for the source. */
void renewer_look(struct renewer *r, struct renewer_news *ret);

/* Has it given back, and waits for that until `until`, on baton_clock_boot(). False: the source
 * does not answer. True if none runs. */
bool renewer_stop(struct renewer *r, struct baton_mono until);

/* Waits, as long as it takes, for one that was stopped. Nothing happens if none runs. */
void renewer_join(struct renewer *r);

#endif
