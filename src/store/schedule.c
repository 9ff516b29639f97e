/* Schedules: when they tick is decided here; the backend keeps the records. */
#include <baton/schedule.h>

#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fail.h"
#include "base/mem.h"
#include "base/quote.h"
#include "base/zone_file.h"
#include "queue/batch.h"
#include "queue/cron.h"
#include "store/parcel.h"
#include "store/refuse.h"
#include "store/store.h"

#define TICKS 64 /* of one schedule in one transaction */
#define PAGE 100 /* of schedules */

/* An expression and its zone, ready to be asked. */
struct timetable {
	struct cron cron;
	struct zone zone;
	struct buf file; /* what the zone is a view of */
};

static void timetable_done(struct timetable *t)
{
	buf_done(&t->file);
}

static enum baton_err timetable_open(const struct baton_alloc *alloc, struct baton_str cron,
                                     struct baton_str zone, struct timetable *t)
{
	t->zone = ZONE_UTC;
	buf_init(&t->file, alloc, ZONE_FILE_MAX);
	enum baton_err e = cron_parse(cron, &t->cron);
	if (e != BATON_OK || zone.len == 0)
		return e;
	e = zone_file_read(ZONE_FILE_FOLDER, zone, &t->file);
	return e == BATON_OK ? zone_parse(buf_str(&t->file), &t->zone) : e;
}

static enum baton_missed missed_of(const struct baton_schedule *s)
{
	return s->missed ? s->missed : BATON_MISSED_ONCE;
}

static struct baton_batch batch_of(const struct baton_schedule *s)
{
	return (struct baton_batch){
		.queue = s->queue,
		.lane = s->lane,
		.priority = s->priority,
		.payloads = &s->payload,
		.count = 1,
	};
}

static enum baton_err check(const struct baton_schedule *s)
{
	struct baton_str name;
	struct baton_batch batch = batch_of(s);
	enum baton_err e = baton_str_name("schedule's name", s->name.ptr, s->name.len,
	                                  BATON_SCHEDULE_NAME_MAX, &name);
	if (e == BATON_OK && (unsigned)s->missed > BATON_MISSED_SKIP)
		e = fail(BATON_INVALID,
		         "missed is %d: %d (once), %d (all) and %d (skip) are allowed",
		         (int)s->missed, BATON_MISSED_ONCE, BATON_MISSED_ALL, BATON_MISSED_SKIP);
	return e == BATON_OK ? batch_check(&batch) : e;
}

enum baton_err baton_schedule_set(struct baton_store *store, const struct baton_schedule *schedule)
{
	AUTO(timetable_done) struct timetable t = {.file = {.data = NULL}};
	struct baton_schedule s = *schedule;
	enum baton_err e = store_enter(store);
	if (e == BATON_OK)
		e = check(schedule);
	if (e == BATON_OK)
		e = timetable_open(store->alloc, schedule->cron, schedule->zone, &t);
	if (e != BATON_OK)
		return e;
	s.missed = missed_of(schedule);
	s.last = baton_store_now(store);
	s.next = cron_next(&t.cron, &t.zone, s.last);
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

/* The batches of some ticks; `keys` has room for their source keys. */
static void batches_make(const struct baton_schedule *s, const struct baton_store_time *ticks,
                         size_t count, char keys[][BATON_NAME_MAX + 1], struct baton_batch *batches)
{
	for (size_t i = 0; i < count; i++) {
		int len = snprintf(keys[i], BATON_NAME_MAX + 1, "schedule %.*s %lld",
		                   (int)s->name.len, s->name.ptr, (long long)ticks[i].ms);
		batches[i] = batch_of(s);
		batches[i].source = (struct baton_str){keys[i], (size_t)len};
	}
}

/* Puts what is due of one schedule; *s is what the store knows about it then. */
static enum baton_err tick_one(struct baton_store *store, struct baton_schedule *s,
                               struct baton_store_time now, size_t *count)
{
	AUTO(timetable_done) struct timetable t = {.file = {.data = NULL}};
	struct baton_store_time ticks[TICKS];
	char keys[TICKS][BATON_NAME_MAX + 1];
	struct baton_batch batches[TICKS];
	enum baton_err e = timetable_open(store->alloc, s->cron, s->zone, &t);
	bool more = true;
	while (e == BATON_OK && more && baton_store_time_ready(s->next, now)) {
		struct cron_ask ask = {
			.policy = (enum cron_policy)missed_of(s),
			.grace = baton_duration_ms(BATON_SCHEDULE_GRACE_MS),
			.last = s->last,
			.now = now,
		};
		struct cron_due due = cron_missed(&t.cron, &t.zone, &ask, ticks, TICKS);
		struct schedule_step step = {
			.name = s->name,
			.from = s->last,
			.last = due.last,
			.next = cron_next(&t.cron, &t.zone, due.last),
			.batches = batches,
			.count = due.count,
		};
		batches_make(s, ticks, due.count, keys, batches);
		e = store->ops->schedule_step(store, &step);
		if (e == BATON_NOT_HELD)
			return BATON_OK; /* somebody else has done it */
		if (e == BATON_OK) {
			s->last = step.last;
			s->next = step.next;
			*count += due.count;
		}
		more = due.more;
	}
	return e;
}

/* The first error is told, after all the others had their turn. */
struct first_error {
	enum baton_err err;
	char detail[512];
};

static void note(struct first_error *first, const struct baton_schedule *s, enum baton_err e)
{
	char shown[QUOTE_TEXT];
	if (e == BATON_OK || first->err != BATON_OK)
		return;
	first->err = e;
	snprintf(first->detail, sizeof first->detail, "schedule %s: %.400s", quote(s->name, shown),
	         baton_err_detail());
}

enum baton_err baton_schedule_tick(struct baton_store *store, size_t *ret_count,
                                   struct baton_store_time *ret_next)
{
	struct baton_store_time now = baton_store_now(store), next = BATON_STORE_TIME_NEVER;
	struct first_error first = {.err = BATON_OK};
	struct baton_schedules *page = NULL;
	char after[BATON_NAME_MAX + 1] = "";
	size_t count = 0, seen = PAGE;
	while (seen == PAGE) {
		enum baton_err e = baton_schedule_list(store, baton_str_z(after), PAGE, &page);
		if (e != BATON_OK)
			return e;
		seen = page->count;
		for (size_t i = 0; i < seen; i++) {
			struct baton_schedule s = page->schedules[i];
			note(&first, &s, tick_one(store, &s, now, &count));
			next = s.next.ms < next.ms ? s.next : next;
			snprintf(after, sizeof after, "%.*s", (int)s.name.len, s.name.ptr);
		}
		baton_schedules_free(page);
	}
	if (ret_count)
		*ret_count = count;
	if (ret_next)
		*ret_next = next;
	return first.err == BATON_OK ? BATON_OK : fail(first.err, "%s", first.detail);
}
