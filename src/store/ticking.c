/* Puts what schedules have due. */
#include "store/ticking.h"

#include <assert.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "base/quote.h"
#include "store/store.h"
#include "store/timetable.h"

#define TICKS 64 /* of one schedule in one transaction */
#define STEPS 16 /* transactions of one schedule in one call */
#define PAGE 100 /* of schedules */

static_assert(TICKS * STEPS == BATON_SCHEDULE_TICKS_MAX, "that is what callers are told");

/* The batches of some ticks; `keys` has room for their source keys. */
static void batches_make(const struct baton_schedule *s, const struct baton_store_time *ticks,
                         size_t count, char keys[][BATON_NAME_MAX + 1], struct baton_batch *batches)
{
	for (size_t i = 0; i < count; i++) {
		int len = snprintf(keys[i], BATON_NAME_MAX + 1, "schedule %.*s %lld",
		                   (int)s->name.len, s->name.ptr, (long long)ticks[i].ms);
		batches[i] = schedule_batch(s);
		batches[i].source = (struct baton_str){keys[i], (size_t)len};
	}
}

/* What a call is at. */
struct round {
	const struct schedule_gate *gate;
	struct baton_store_time now;
	size_t count;
};

static bool gate_is_open(const struct schedule_gate *gate)
{
	return !gate || gate->open(gate->arg);
}

/* One round: what fits into a transaction. *ret_more: there is more that is due. */
static enum baton_err tick_some(struct baton_store *store, const struct timetable *t,
                                struct baton_schedule *s, struct round *round)
{
	struct baton_store_time ticks[TICKS];
	char keys[TICKS][BATON_NAME_MAX + 1];
	struct baton_batch batches[TICKS];
	const struct cron_ask ask = {
		.policy = (enum cron_policy)schedule_missed(s),
		.grace = baton_duration_ms(BATON_SCHEDULE_GRACE_MS),
		.last = s->last,
		.now = round->now,
	};
	struct cron_due due = cron_missed(&t->cron, &t->zone, &ask, ticks, TICKS);
	const struct schedule_step step = {
		.name = s->name,
		.queue = s->queue,
		.from = s->last,
		.last = due.last,
		.next = cron_next(&t->cron, &t->zone, due.last),
		.batches = batches,
		.count = due.count,
	};
	batches_make(s, ticks, due.count, keys, batches);
	if (!gate_is_open(round->gate))
		return BATON_CANCELLED;
	enum baton_err e = store->ops->schedule_step(store, &step);
	if (e != BATON_OK)
		return e;
	s->last = step.last;
	s->next = step.next;
	round->count += due.count;
	return BATON_OK;
}

/* Puts what is due of one schedule, in a bounded number of transactions; *s is what the store knows
 * about it then. */
static enum baton_err tick_one(struct baton_store *store, struct baton_schedule *s,
                               struct round *round)
{
	AUTO(timetable_done) struct timetable t = {.file = {.data = NULL}};
	if (!baton_store_time_ready(s->next, round->now))
		return BATON_OK;
	enum baton_err e = schedule_check(s);
	if (e != BATON_OK)
		return fail(BATON_STORAGE, "it is damaged: %s", baton_err_detail());
	e = timetable_open(store->alloc, s->cron, s->zone, &t);
	for (int i = 0; i < STEPS && e == BATON_OK; i++) {
		if (baton_store_time_ready(s->next, round->now))
			e = tick_some(store, &t, s, round);
	}
	return e == BATON_NOT_HELD ? BATON_OK : e; /* somebody else has done it */
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

enum baton_err schedule_tick_while(struct baton_store *store, const struct schedule_gate *gate,
                                   size_t *ret_count, struct baton_store_time *ret_next)
{
	struct round round = {.gate = gate, .now = baton_store_now(store)};
	struct baton_store_time next = BATON_STORE_TIME_NEVER;
	struct first_error first = {.err = BATON_OK};
	struct baton_schedules *page = NULL;
	char after[BATON_NAME_MAX + 1] = "";
	size_t seen = PAGE;
	while (seen == PAGE && gate_is_open(gate)) {
		enum baton_err e = baton_schedule_list(store, baton_str_z(after), PAGE, &page);
		if (e != BATON_OK)
			return e;
		seen = page->count;
		for (size_t i = 0; i < seen; i++) {
			struct baton_schedule s = page->schedules[i];
			note(&first, &s, tick_one(store, &s, &round));
			next = s.next.ms < next.ms ? s.next : next;
			snprintf(after, sizeof after, "%.*s", (int)s.name.len, s.name.ptr);
		}
		baton_schedules_free(page);
	}
	if (ret_count)
		*ret_count = round.count;
	if (ret_next)
		*ret_next = next;
	return first.err == BATON_OK ? BATON_OK : fail(first.err, "%s", first.detail);
}

enum baton_err baton_schedule_tick(struct baton_store *store, size_t *ret_count,
                                   struct baton_store_time *ret_next)
{
	return schedule_tick_while(store, NULL, ret_count, ret_next);
}
