/* Handlers that are functions of the embedder's. */
#include "runner/calls.h"

#include <inttypes.h>

#include "base/fail.h"
#include "base/mem.h"
#include "runner/ends.h"

enum baton_err calls_init(struct calls *calls, const struct calls_options *options)
{
	const struct baton_handler *handler = options->handler;
	*calls = (struct calls){
		.alloc = options->alloc,
		.inbox = options->inbox,
		.alarm = options->alarm,
		.call = handler->call,
		.cancel = handler->cancel,
		.arg = handler->arg,
		.clock = options->clock,
		.timeout = handler->timeout,
		.due = BATON_MONO_NEVER,
		.max = handler->on_loop ? 0 : options->slots,
	};
	pthread_mutex_init(&calls->mu, NULL);
	pthread_cond_init(&calls->changed, NULL);
	if (calls->max == 0)
		return BATON_OK;
	calls->threads = mem_new(calls->alloc, calls->max, sizeof *calls->threads);
	return calls->threads ? BATON_OK
	                      : fail_memory(calls->max * sizeof *calls->threads, "threads");
}

void calls_done(struct calls *calls)
{
	if (!calls->inbox)
		return;
	pthread_mutex_lock(&calls->mu);
	calls->quit = true;
	pthread_cond_broadcast(&calls->changed);
	pthread_mutex_unlock(&calls->mu);
	for (uint32_t i = 0; i < calls->count; i++)
		pthread_join(calls->threads[i], NULL);
	mem_free(calls->alloc, calls->threads, calls->max, sizeof *calls->threads);
	pthread_cond_destroy(&calls->changed);
	pthread_mutex_destroy(&calls->mu);
	calls->inbox = NULL;
}

/* Has one thread woken if a run waits, and nobody is on the way: whoever comes wakes the next. So
 * runs that end at once do not wake a thread each. */
static void call_one(struct calls *calls)
{
	if (!calls->first || calls->called || calls->idle == 0)
		return;
	calls->called = true;
	pthread_cond_signal(&calls->changed);
}

static struct baton_run *next(struct calls *calls)
{
	pthread_mutex_lock(&calls->mu);
	calls->idle++;
	while (!calls->first && !calls->quit) {
		pthread_cond_wait(&calls->changed, &calls->mu);
		calls->called = false;
	}
	struct baton_run *run = calls->first;
	if (run) {
		calls->first = run->next;
		calls->waiting--;
	}
	calls->idle--;
	call_one(calls);
	pthread_mutex_unlock(&calls->mu);
	return run;
}

static void *work(void *arg)
{
	struct calls *calls = arg;
	struct baton_run *run;
	while ((run = next(calls)))
		calls->call(calls->arg, run);
	return NULL;
}

/* One more thread, if all have something to do. Without one the others have to do. */
static enum baton_err grow(struct calls *calls)
{
	if (calls->count == calls->max)
		return BATON_OK;
	int errnum = pthread_create(&calls->threads[calls->count], NULL, work, calls);
	if (errnum == 0)
		calls->count++;
	return calls->count > 0 ? BATON_OK : fail_errno(errnum, "starting a thread for a handler");
}

/* The run is gone once the store has been told how it ended. */
static void drop(void *hold)
{
	struct baton_run *run = hold;
	if (run->kept.drop)
		run->kept.drop(run->kept.hold);
	mem_free(run->calls->alloc, run->progress, 1, sizeof *run->progress);
	mem_free(run->calls->alloc, run, 1, sizeof *run);
}

static void forget(struct baton_run *run)
{
	struct calls *calls = run->calls;
	pthread_mutex_lock(&calls->mu);
	if (run->sooner)
		run->sooner->later = run->later;
	else
		calls->all = run->later;
	if (run->later)
		run->later->sooner = run->sooner;
	pthread_mutex_unlock(&calls->mu);
}

enum baton_err baton_run_end(struct baton_run *run, const struct baton_work_end *end)
{
	struct inbox *inbox = run->calls->inbox;
	struct alarm *alarm = run->calls->alarm;
	enum baton_err e = end_copy(run->calls->alloc, end, &run->kept);
	run->end = (struct inbox_end){.run = run->id, .end = run->kept};
	run->end.end.drop = drop;
	run->end.end.hold = run;
	forget(run);
	alarm_leave(alarm);
	inbox_end(inbox, &run->end);
	return e;
}

static void remember(struct calls *calls, struct baton_run *run)
{
	pthread_mutex_lock(&calls->mu);
	run->later = calls->all;
	if (calls->all)
		calls->all->sooner = run;
	calls->all = run;
	pthread_mutex_unlock(&calls->mu);
}

static enum baton_err give_to_thread(struct calls *calls, struct baton_run *run)
{
	pthread_mutex_lock(&calls->mu);
	bool more = calls->idle <= calls->waiting;
	pthread_mutex_unlock(&calls->mu);
	enum baton_err e = more ? grow(calls) : BATON_OK;
	if (e != BATON_OK)
		return e;
	remember(calls, run);
	pthread_mutex_lock(&calls->mu);
	if (calls->first)
		calls->last->next = run;
	else
		calls->first = run;
	calls->last = run;
	calls->waiting++;
	call_one(calls);
	pthread_mutex_unlock(&calls->mu);
	return BATON_OK;
}

static enum baton_err begin(struct calls *calls, struct baton_run *run)
{
	if (!alarm_enter(calls->alarm))
		return fail(BATON_GONE, "the time of its shard is over");
	if (calls->max == 0) {
		remember(calls, run);
		calls->call(calls->arg, run);
		return BATON_OK;
	}
	enum baton_err e = give_to_thread(calls, run);
	if (e != BATON_OK)
		alarm_leave(calls->alarm);
	return e;
}

/* When the time of a run that begins now, or says something, is over. */
static struct baton_mono due_of(const struct calls *calls, const struct baton_run *run)
{
	const struct baton_duration hold = run->claim->hold;
	struct baton_mono due = run->last;
	if (hold.ns > 0) {
		struct baton_mono until = baton_mono_add(calls->clock->now(calls->clock), hold);
		due = until.ns < due.ns ? until : due;
	}
	return due;
}

enum baton_err calls_start(struct calls *calls, uint64_t id, const struct baton_work_claim *claim)
{
	struct baton_run *run = mem_new(calls->alloc, 1, sizeof *run);
	if (!run)
		return fail_memory(sizeof *run, "a run");
	run->calls = calls;
	run->id = id;
	run->claim = claim;
	run->last = BATON_MONO_NEVER;
	if (calls->timeout.ns > 0)
		run->last = baton_mono_add(calls->clock->now(calls->clock), calls->timeout);
	run->due = due_of(calls, run);
	if (run->due.ns < calls->due.ns)
		calls->due = run->due;
	enum baton_err e = begin(calls, run);
	if (e != BATON_OK)
		mem_free(calls->alloc, run, 1, sizeof *run);
	return e;
}

/* The run is not freed before this loop has heard of its end. */
void calls_stop(struct calls *calls, uint64_t id)
{
	pthread_mutex_lock(&calls->mu);
	struct baton_run *run = calls->all;
	while (run && run->id != id)
		run = run->later;
	if (run)
		atomic_store_explicit(&run->cancelled, true, memory_order_relaxed);
	pthread_mutex_unlock(&calls->mu);
	if (run && calls->cancel)
		calls->cancel(calls->arg, run);
}

/* The run is not freed before this loop has heard of its end; it may have ended already. */
bool calls_more(struct calls *calls, uint64_t id, const struct baton_work_claim *claim)
{
	baton_run_got got = NULL;
	void *arg = NULL;
	pthread_mutex_lock(&calls->mu);
	struct baton_run *run = calls->all;
	while (run && run->id != id)
		run = run->later;
	if (run) {
		got = run->got;
		arg = run->got_arg;
		run->got = NULL;
	}
	pthread_mutex_unlock(&calls->mu);
	if (got)
		got(arg, run, claim);
	return got;
}

enum baton_err baton_run_ask(struct baton_run *run, uint32_t max, baton_run_got got, void *arg)
{
	struct calls *calls = run->calls;
	if (max == 0 || max > BATON_JOIN_MAX || !got)
		return fail(BATON_INVALID, "%" PRIu32 " jobs at once: 1 to %d are allowed", max,
		            BATON_JOIN_MAX);
	pthread_mutex_lock(&calls->mu);
	bool asks = run->got;
	if (!asks) {
		run->got = got;
		run->got_arg = arg;
	}
	pthread_mutex_unlock(&calls->mu);
	if (asks)
		return fail(BATON_BUSY, "the run has asked for more already, and has no answer");
	run->more.run = run->id;
	run->more.max = max;
	inbox_more(calls->inbox, &run->more);
	return BATON_OK;
}

/* Somebody who waits for more. */
struct waiting {
	struct calls *calls;
	pthread_cond_t changed;
	bool answered;                        /* [mu] */
	const struct baton_work_claim *claim; /* [mu] */
};

static void answered(void *arg, struct baton_run *run, const struct baton_work_claim *claim)
{
	struct waiting *w = arg;
	(void)run;
	pthread_mutex_lock(&w->calls->mu);
	w->claim = claim;
	w->answered = true;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->calls->mu);
}

enum baton_err baton_run_more(struct baton_run *run, uint32_t max,
                              const struct baton_work_claim **ret_claim)
{
	struct calls *calls = run->calls;
	struct waiting w = {.calls = calls};
	if (calls->max == 0)
		return fail(BATON_INVALID, "a function that the loop calls cannot wait for it");
	pthread_cond_init(&w.changed, NULL);
	enum baton_err e = baton_run_ask(run, max, answered, &w);
	pthread_mutex_lock(&calls->mu);
	while (e == BATON_OK && !w.answered)
		pthread_cond_wait(&w.changed, &calls->mu);
	pthread_mutex_unlock(&calls->mu);
	pthread_cond_destroy(&w.changed);
	if (e == BATON_OK)
		*ret_claim = w.claim;
	return e;
}

/* Marks the next one that has taken too long; NULL: there is none, and calls->due is when the next
 * one will have. */
static struct baton_run *next_late(struct calls *calls, struct baton_mono now)
{
	struct baton_mono due = BATON_MONO_NEVER;
	pthread_mutex_lock(&calls->mu);
	struct baton_run *run = calls->all;
	for (; run; run = run->later) {
		if (run->late)
			continue;
		if (!baton_mono_live(run->due, now))
			break;
		due = run->due.ns < due.ns ? run->due : due;
	}
	if (run) {
		run->late = true;
		atomic_store_explicit(&run->cancelled, true, memory_order_relaxed);
	} else {
		calls->due = due;
	}
	pthread_mutex_unlock(&calls->mu);
	return run;
}

void calls_act(struct calls *calls, struct baton_mono now)
{
	struct baton_run *run;
	if (baton_mono_live(calls->due, now))
		return;
	while ((run = next_late(calls, now))) {
		if (calls->cancel)
			calls->cancel(calls->arg, run);
	}
}

bool calls_progressed(struct calls *calls)
{
	return atomic_exchange_explicit(&calls->progressed, false, memory_order_relaxed);
}

void calls_progress(struct calls *calls, struct buf *report)
{
	pthread_mutex_lock(&calls->mu);
	for (const struct baton_run *run = calls->all; run; run = run->later) {
		if (run->progress)
			progress_print(run->progress, run->claim->proof.id, report);
	}
	pthread_mutex_unlock(&calls->mu);
}

enum baton_err baton_run_progress(struct baton_run *run, int32_t percent, struct baton_str text)
{
	struct calls *calls = run->calls;
	if (percent < BATON_PROGRESS_UNSAID || percent > 100)
		return fail(BATON_INVALID,
		            "progress is %" PRId32 " percent: 0 to 100 is allowed, or -1", percent);
	if (!baton_str_is_utf8(text))
		return fail(BATON_INVALID, "the text of a progress is no UTF-8");
	pthread_mutex_lock(&calls->mu);
	if (!run->progress)
		run->progress = mem_new(calls->alloc, 1, sizeof *run->progress);
	bool kept = run->progress;
	if (kept) {
		progress_set(run->progress, percent, text);
		run->due = due_of(calls, run);
	}
	pthread_mutex_unlock(&calls->mu);
	if (!kept)
		return fail_memory(sizeof *run->progress, "the progress of a run");
	atomic_store_explicit(&calls->progressed, true, memory_order_relaxed);
	return BATON_OK;
}

struct baton_duration baton_run_left(const struct baton_run *run)
{
	const struct baton_clock *clock = run->calls->clock;
	struct baton_mono until = alarm_at(run->calls->alarm);
	pthread_mutex_lock(&run->calls->mu);
	if (run->due.ns < until.ns)
		until = run->due;
	pthread_mutex_unlock(&run->calls->mu);
	if (until.ns == BATON_MONO_NEVER.ns)
		return BATON_DURATION_FOREVER;
	struct baton_duration left = baton_mono_sub(until, clock->now(clock));
	return left.ns > 0 ? left : (struct baton_duration){0};
}

const struct baton_work_claim *baton_run_claim(const struct baton_run *run)
{
	return run->claim;
}

bool baton_run_cancelled(const struct baton_run *run)
{
	return atomic_load_explicit(&run->cancelled, memory_order_relaxed);
}
