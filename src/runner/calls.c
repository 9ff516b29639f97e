/* Handlers that are functions of the embedder's. */
#include "runner/calls.h"

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

enum baton_err calls_start(struct calls *calls, uint64_t id, const struct baton_work_claim *claim)
{
	struct baton_run *run = mem_new(calls->alloc, 1, sizeof *run);
	if (!run)
		return fail_memory(sizeof *run, "a run");
	run->calls = calls;
	run->id = id;
	run->claim = claim;
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

const struct baton_work_claim *baton_run_claim(const struct baton_run *run)
{
	return run->claim;
}

bool baton_run_cancelled(const struct baton_run *run)
{
	return atomic_load_explicit(&run->cancelled, memory_order_relaxed);
}
