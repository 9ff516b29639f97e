/* Schedules: when they tick is decided here; the backend keeps the records. */
#include <baton/schedule.h>

#include <baton/work.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "queue/batch.h"
#include "store/parcel.h"
#include "store/refuse.h"
#include "store/store.h"
#include "store/ticking.h"
#include "store/timetable.h"

#define ATTEMPTS 100 /* to change a schedule while it ticks */

enum baton_missed schedule_missed(const struct baton_schedule *s)
{
	return s->missed ? s->missed : BATON_MISSED_ONCE;
}

struct baton_batch schedule_batch(const struct baton_schedule *s)
{
	return (struct baton_batch){
		.queue = s->queue,
		.lane = s->lane,
		.priority = s->priority,
		.payloads = &s->payload,
		.count = 1,
	};
}

enum baton_err schedule_check(const struct baton_schedule *s)
{
	struct baton_str name;
	struct baton_batch batch = schedule_batch(s);
	enum baton_err e = baton_str_name("schedule's name", s->name.ptr, s->name.len,
	                                  BATON_SCHEDULE_NAME_MAX, &name);
	if (e == BATON_OK && (unsigned)s->missed > BATON_MISSED_SKIP)
		e = fail(BATON_INVALID,
		         "missed is %d: %d (once), %d (all) and %d (skip) are allowed",
		         (int)s->missed, BATON_MISSED_ONCE, BATON_MISSED_ALL, BATON_MISSED_SKIP);
	return e == BATON_OK ? batch_check(&batch) : e;
}

/* One that is paused stays so, whatever it becomes. */
static enum baton_err is_paused(struct baton_store *store, struct baton_str name, bool *ret)
{
	struct baton_schedules *found = NULL;
	enum baton_err e = baton_schedule_get(store, name, &found);
	*ret = e == BATON_OK && found->schedules[0].paused;
	baton_schedules_free(found);
	return e == BATON_NOT_FOUND ? BATON_OK : e;
}

enum baton_err baton_schedule_set(struct baton_store *store, const struct baton_schedule *schedule)
{
	AUTO(timetable_done) struct timetable t = {.file = {.data = NULL}};
	struct baton_schedule s = *schedule;
	enum baton_err e = store_enter(store);
	if (e == BATON_OK)
		e = schedule_check(schedule);
	if (e == BATON_OK)
		e = timetable_open(store->alloc, schedule->cron, schedule->zone, &t);
	if (e != BATON_OK)
		return e;
	e = is_paused(store, schedule->name, &s.paused);
	if (e != BATON_OK)
		return e;
	s.missed = schedule_missed(schedule);
	s.last = baton_store_now(store);
	s.next = s.paused ? SCHEDULE_PAUSED : cron_next(&t.cron, &t.zone, s.last);
	return store->ops->schedule_set(store, &s);
}

enum baton_err baton_schedule_ticks(struct baton_str cron, struct baton_str zone,
                                    struct baton_store_time after, struct baton_store_time *ticks,
                                    size_t max, size_t *ret_count)
{
	AUTO(timetable_done) struct timetable t = {.file = {.data = NULL}};
	enum baton_err e = timetable_open(baton_alloc_libc(), cron, zone, &t);
	if (e != BATON_OK)
		return e;
	size_t count = 0;
	while (count < max) {
		ticks[count] = cron_next(&t.cron, &t.zone, after);
		if (ticks[count].ms == BATON_STORE_TIME_NEVER.ms)
			break;
		after = ticks[count++];
	}
	*ret_count = count;
	return BATON_OK;
}

enum baton_err baton_schedule_remove(struct baton_store *store, struct baton_str name)
{
	enum baton_err e = store_enter(store);
	return e == BATON_OK ? store->ops->schedule_remove(store, name) : e;
}

enum baton_err baton_schedule_list(struct baton_store *store, struct baton_str after, size_t max,
                                   struct baton_schedules **ret_schedules)
{
	enum baton_err e = store_enter(store);
	if (e == BATON_OK && (max == 0 || max > BATON_SCHEDULES_MAX))
		e = fail(BATON_INVALID, "a page of %zu schedules: 1 to %d are allowed", max,
		         BATON_SCHEDULES_MAX);
	if (e != BATON_OK)
		return e;
	struct schedules_parcel *page = schedules_parcel_new(store->alloc);
	if (!page)
		return BATON_NO_MEMORY;
	e = store->ops->schedule_list(store, after, (struct baton_str){NULL, 0}, max, page);
	if (e == BATON_OK)
		*ret_schedules = &page->pub;
	else
		baton_schedules_free(&page->pub);
	return e;
}

enum baton_err baton_schedule_get(struct baton_store *store, struct baton_str name,
                                  struct baton_schedules **ret_schedules)
{
	enum baton_err e = store_enter(store);
	struct schedules_parcel *page = e == BATON_OK ? schedules_parcel_new(store->alloc) : NULL;
	if (!page)
		return e == BATON_OK ? BATON_NO_MEMORY : e;
	e = store->ops->schedule_list(store, (struct baton_str){NULL, 0}, name, 1, page);
	if (e == BATON_OK && page->pub.count == 0)
		e = refuse_schedule(name);
	if (e == BATON_OK)
		*ret_schedules = &page->pub;
	else
		baton_schedules_free(&page->pub);
	return e;
}

/* Moves it to a moment that nobody has seen it at, so that whoever is about to put a tick of it
 * finds that it has changed. */
static enum baton_err move(struct baton_store *store, const struct baton_schedule *s, bool paused)
{
	AUTO(timetable_done) struct timetable t = {.file = {.data = NULL}};
	struct baton_store_time now = baton_store_now(store);
	struct schedule_step step = {
		.name = s->name,
		.queue = s->queue,
		.from = s->last,
		.last = {s->last.ms + 1},
		.next = SCHEDULE_PAUSED,
	};
	if (!paused && now.ms > step.last.ms)
		step.last = now;
	enum baton_err e = timetable_open(store->alloc, s->cron, s->zone, &t);
	if (e == BATON_OK && !paused)
		step.next = cron_next(&t.cron, &t.zone, step.last);
	return e == BATON_OK ? store->ops->schedule_step(store, &step) : e;
}

/* BATON_NOT_HELD: it has changed since it was looked at. */
static enum baton_err pause_once(struct baton_store *store, struct baton_str name, bool paused)
{
	struct baton_schedules *found = NULL;
	enum baton_err e = baton_schedule_get(store, name, &found);
	if (e == BATON_OK && found->schedules[0].paused != paused)
		e = move(store, &found->schedules[0], paused);
	baton_schedules_free(found);
	return e;
}

enum baton_err baton_schedule_pause(struct baton_store *store, struct baton_str name, bool paused)
{
	enum baton_err e = BATON_NOT_HELD;
	for (int i = 0; i < ATTEMPTS && e == BATON_NOT_HELD; i++)
		e = pause_once(store, name, paused);
	return e == BATON_NOT_HELD ? fail(BATON_BUSY, "the schedule ticks all the time") : e;
}

enum baton_err baton_schedule_run(struct baton_store *store, struct baton_str name,
                                  struct baton_put *ret_put)
{
	struct baton_schedules *found = NULL;
	enum baton_err e = baton_schedule_get(store, name, &found);
	if (e == BATON_OK) {
		struct baton_batch batch = schedule_batch(&found->schedules[0]);
		e = baton_work_put(store, &batch, 1, ret_put);
	}
	baton_schedules_free(found);
	return e;
}
