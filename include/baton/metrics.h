/* What runners have done and how they stand, in numbers for those who watch them.
 *
 * A runner counts for as long as its process lives, over all of its registrations, and tells the
 * store now and then: a few seconds after something has changed, and once a minute in any case. */
#ifndef BATON_METRICS_H
#define BATON_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include <baton/api.h>
#include <baton/detach.h>
#include <baton/err.h>
#include <baton/runner.h>
#include <baton/store.h>
#include <baton/str.h>
#include <baton/time.h>

BATON_BEGIN

/* How many spans of time handlers are counted by: the last one has no end. */
#define BATON_METRICS_SPANS 12

/* The end of each span, BATON_DURATION_FOREVER for the last; `i` is below BATON_METRICS_SPANS. */
BATON_API struct baton_duration baton_metrics_span(size_t i);

/* Of one queue. */
struct baton_queue_metrics {
	char queue[BATON_NAME_MAX + 1];
	uint64_t shards;    /* that the runner owns now                                    */
	uint64_t started;   /* handlers, each for one claim                                */
	uint64_t completed; /* claims, and the same below, as the store has recorded it    */
	uint64_t failed;    /* and are tried again                                         */
	uint64_t rejected;  /* and are dead at once                                        */
	uint64_t returned;  /* as if they had not been claimed                             */
	uint64_t refused;   /* their end came too late: under an old fence                 */
	uint64_t took[BATON_METRICS_SPANS]; /* handlers that took longer than the span before
	                                       it, and not longer than this one              */
	uint64_t took_ns; /* all of them together                                        */
};

struct baton_runner_metrics {
	uint64_t detached;                           /* 1: it is now                         */
	uint64_t detachments[BATON_DETACH_WHYS + 1]; /* by enum baton_detach_why             */
	uint64_t attachments;                        /* after a detachment                   */
	uint64_t fenced;                             /* writes that the store has refused    */
	uint64_t takeovers;                          /* of other runners                     */
	uint64_t ticks;                              /* transactions that claim and end      */
	uint64_t slots, running;                     /* handlers: at most, and now           */
	uint64_t worker_starts, worker_restarts;     /* of persistent workers                */
	uint64_t beat_age_ns;                        /* since the last renewal that went well */
	size_t queue_count;
	struct baton_queue_metrics queues[BATON_RUNNER_SERVES_MAX];
};

/* Of this runner, now. Any thread. */
BATON_API void baton_engine_metrics(struct baton_engine *engine, struct baton_runner_metrics *ret);

/* What the runner of that number has told last, and when.
 *
 * BATON_NOT_FOUND: there is no such runner, or it has told nothing yet. BATON_NO_MEMORY,
 * BATON_STORAGE. Any thread. */
BATON_API enum baton_err baton_runner_metrics(struct baton_store *store, uint64_t number,
                                              struct baton_runner_metrics *ret,
                                              struct baton_store_time *ret_at);

/* A runner whose metrics are written. What it points to is borrowed. */
struct baton_metrics_row {
	const char *runner; /* its name */
	const char *host;
	struct baton_duration age;                  /* of the metrics; 0: they are of now */
	const struct baton_runner_metrics *metrics; /* NULL: it has told nothing yet */
};

/* Writes the metrics of runners in the text format of Prometheus, version 0.0.4, by calls of
 * `write` with pieces of it. */
BATON_API void baton_metrics_write(const struct baton_metrics_row *rows, size_t count,
                                   void (*write)(void *arg, const char *text, size_t len),
                                   void *arg);

BATON_END

#endif
