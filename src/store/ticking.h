/* Puts what schedules have due, for as long as the caller may. */
#ifndef STORE_TICKING_H
#define STORE_TICKING_H

#include <stdbool.h>

#include <baton/batch.h>
#include <baton/schedule.h>

/* What the store has as the next tick of a schedule that is paused: it never comes. */
#define SCHEDULE_PAUSED ((struct baton_store_time){INT64_MAX - 1})

/* Asked before every transaction. */
struct schedule_gate {
	bool (*open)(void *arg);
	void *arg;
};

/* As baton_schedule_tick(), until the gate (NULL: none) is closed. BATON_CANCELLED: it was when
 * something was due, and that is still to be put. */
enum baton_err schedule_tick_while(struct baton_store *store, const struct schedule_gate *gate,
                                   size_t *ret_count, struct baton_store_time *ret_next);

/* BATON_INVALID: no schedule can be like that; its cron and its zone are not looked at. */
enum baton_err schedule_check(const struct baton_schedule *schedule);

/* The batch of each tick, without its source key; and what becomes of those that are missed. */
struct baton_batch schedule_batch(const struct baton_schedule *schedule);
enum baton_missed schedule_missed(const struct baton_schedule *schedule);

#endif
