/* Schedules: work that is put again and again, at times that a cron expression names.
 *
 * They are records of the store. A runner that offers it puts what is due, one of them at a time
 * (<baton/runner.h>); so does whoever calls baton_schedule_tick(). Any number of processes may, and
 * each tick is put once. */
#ifndef BATON_SCHEDULE_H
#define BATON_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/api.h>
#include <baton/batch.h>
#include <baton/err.h>
#include <baton/store.h>
#include <baton/str.h>
#include <baton/time.h>
#include <baton/work.h>

BATON_BEGIN

#define BATON_CRON_MAX 1024                           /* bytes of an expression */
#define BATON_SCHEDULE_NAME_MAX (BATON_NAME_MAX - 40) /* a source key has name and tick */
#define BATON_SCHEDULES_MAX 1000                      /* in one page */
#define BATON_SCHEDULE_TICKS_MAX 1024                 /* of one schedule in one call */

/* What becomes of ticks that nobody put in time. */
enum baton_missed {
	BATON_MISSED_ONCE = 1, /* the last of them is put, for all of them */
	BATON_MISSED_ALL,      /* each of them is put                      */
	BATON_MISSED_SKIP      /* none of them is put                      */
};

/* How late a tick may be and still not count as missed. */
#define BATON_SCHEDULE_GRACE_MS 60000

/* A record. What it points to is borrowed. */
struct baton_schedule {
	struct baton_str
		name; /* 1 to BATON_SCHEDULE_NAME_MAX bytes of UTF-8, no control characters */
	struct baton_str
		cron; /* five fields, or six that begin with the seconds; or @daily, ...  */
	struct baton_str
		zone; /* such as Europe/Berlin; empty: UTC                                */
	enum baton_missed missed; /* 0: once                                                      */
	struct baton_str queue;   /* where its batches go, as in a put                            */
	struct baton_str lane;    /* empty: none                                                  */
	uint32_t priority;
	struct baton_str payload;
	struct baton_store_time
		last; /* the last tick that was put, or since when it counts: when it was
	                                 made or resumed; not read by baton_schedule_set()        */
	struct baton_store_time
		next; /* BATON_STORE_TIME_NEVER: none comes; not read either       */
	bool paused;  /* it does not tick; not read either */
};

/* The first ticks of an expression that come after the moment, in their order. An empty zone is
 * UTC.
 *
 * BATON_OK: *ret_count of them; fewer than `max` if no more come. BATON_INVALID: a bad expression
 * or zone; the detail says what and where. BATON_NO_MEMORY, BATON_SYSTEM: the zone's file cannot be
 * read. Any thread. */
BATON_API enum baton_err baton_schedule_ticks(struct baton_str cron, struct baton_str zone,
                                              struct baton_store_time after,
                                              struct baton_store_time *ticks, size_t max,
                                              size_t *ret_count);

/* Makes the schedule, or replaces the one of that name. A replaced one with the same expression and
 * zone goes on where it was; else it begins now. One that is paused stays so.
 *
 * BATON_INVALID: a bad name, expression or zone; the detail says what and where. Any thread. */
BATON_API enum baton_err baton_schedule_set(struct baton_store *store,
                                            const struct baton_schedule *schedule);

/* BATON_NOT_FOUND: there is none of that name. Any thread. */
BATON_API enum baton_err baton_schedule_remove(struct baton_store *store, struct baton_str name);

/* Pauses it: it does not tick; or resumes it: it ticks again from now on, and what would have come
 * meanwhile does not. Nothing changes if it is so already.
 *
 * BATON_NOT_FOUND: there is none of that name. Any thread. */
BATON_API enum baton_err baton_schedule_pause(struct baton_store *store, struct baton_str name,
                                              bool paused);

/* Puts one batch of it now, which is no tick: what comes next comes all the same, and so it does if
 * it is paused.
 *
 * BATON_NOT_FOUND: there is none of that name. Otherwise as baton_work_put(). Any thread. */
BATON_API enum baton_err baton_schedule_run(struct baton_store *store, struct baton_str name,
                                            struct baton_put *ret_put);

/* What a call found: one block, ended by baton_schedules_free(). */
struct baton_schedules {
	const struct baton_schedule *schedules;
	size_t count;
};

/* NULL is fine. */
BATON_API void baton_schedules_free(struct baton_schedules *schedules);

/* Those whose name comes after `after` ("" at first) in the order of their bytes, at most `max`.
 * Any thread. */
BATON_API enum baton_err baton_schedule_list(struct baton_store *store, struct baton_str after,
                                             size_t max, struct baton_schedules **ret_schedules);

/* BATON_NOT_FOUND: there is none of that name. */
BATON_API enum baton_err baton_schedule_get(struct baton_store *store, struct baton_str name,
                                            struct baton_schedules **ret_schedules);

/* Puts what is due by now, of every schedule; of one with more that is due than
 * BATON_SCHEDULE_TICKS_MAX only so many, in several transactions. Each tick has a source key of its
 * own, so that it is put once, whoever is at it, and whoever dies while he is.
 *
 * BATON_OK: *ret_count (may be NULL) batches were put; *ret_next (may be NULL) is when the next
 * tick is due, which is not in the future if there is more, or BATON_STORE_TIME_NEVER. An error of
 * one schedule, such as a full queue, keeps the others from nothing: it is tried again with the
 * next call, and the detail of the first one is returned with its code after all the others were
 * done. Any thread. */
BATON_API enum baton_err baton_schedule_tick(struct baton_store *store, size_t *ret_count,
                                             struct baton_store_time *ret_next);

BATON_END

#endif
