/* A thread that renews what a source gave. */
#include "guardian/renewer.h"

#include <stdio.h>
#include <time.h>

#include <baton/clock.h>

#include "base/fail.h"

/* How long it takes at most until a loss is noticed by who can ask its source. */
#define LOOK_MS 1000

/* The pause after a renewal that failed: a part of the ttl, and at most that. */
#define RETRY_PART 30
#define RETRY_MS 1000

/* How often whoever waits for the thread looks at a clock that goes on while the host sleeps. */
#define SLICE_MS 100

#define NS_PER_S INT64_C(1000000000)

static struct baton_mono now_boot(void)
{
	const struct baton_clock *clock = baton_clock_boot();
	return clock->now(clock);
}

static struct baton_duration shorter(struct baton_duration a, struct baton_duration b)
{
	return a.ns < b.ns ? a : b;
}

/* Waits until something has changed, or for so long, or for less. With the lock. */
static void wait_for(struct renewer *r, struct baton_duration d)
{
	struct timespec until;
	if (d.ns <= 0)
		return;
	clock_gettime(CLOCK_MONOTONIC, &until);
	int64_t ns = until.tv_nsec + d.ns % NS_PER_S;
	until.tv_sec += d.ns / NS_PER_S + ns / NS_PER_S;
	until.tv_nsec = ns % NS_PER_S;
	(void)pthread_cond_timedwait(&r->changed, &r->mu, &until);
}

static struct baton_duration until_due(const struct renewer *r, struct baton_mono now)
{
	struct baton_mono due =
		baton_mono_add(r->news.sent, (struct baton_duration){r->ttl.ns / 3});
	return baton_mono_sub(due, now);
}

/* Asks the source, without the lock. Returns how long to pause then. */
static struct baton_duration ask(struct renewer *r)
{
	const struct baton_guardian_source *source = r->source;
	struct baton_mono now = now_boot();
	bool due = until_due(r, now).ns <= 0;
	enum baton_err e = BATON_OK;
	pthread_mutex_unlock(&r->mu);
	fail_detail("%s", ""); /* a source need not say anything */
	if (due)
		e = source->renew(source->arg);
	else if (source->look)
		e = source->look(source->arg);
	pthread_mutex_lock(&r->mu);
	r->news.lost = e == BATON_NOT_HELD;
	if (due && e == BATON_OK) {
		r->news.sent = now;
		r->news.why[0] = '\0';
	} else if (due && e != BATON_NOT_HELD) {
		const char *detail = baton_err_detail();
		snprintf(r->news.why, sizeof r->news.why, "%s",
		         detail[0] ? detail : baton_strerror(e));
		return shorter((struct baton_duration){r->ttl.ns / RETRY_PART},
		               baton_duration_ms(RETRY_MS));
	}
	return shorter(until_due(r, now_boot()), baton_duration_ms(LOOK_MS));
}

static void *live(void *arg)
{
	struct renewer *r = arg;
	pthread_mutex_lock(&r->mu);
	struct baton_duration pause = shorter(until_due(r, now_boot()), baton_duration_ms(LOOK_MS));
	while (!r->stop) {
		wait_for(r, r->news.lost ? baton_duration_ms(LOOK_MS) : pause);
		if (!r->stop && !r->news.lost)
			pause = ask(r);
	}
	pthread_mutex_unlock(&r->mu);
	r->source->release(r->source->arg);
	pthread_mutex_lock(&r->mu);
	r->done = true;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->mu);
	return NULL;
}

enum baton_err renewer_start(struct renewer *r, const struct baton_guardian_source *source,
                             struct baton_duration ttl, struct baton_mono sent)
{
	r->source = source;
	r->ttl = ttl;
	r->stop = r->done = false;
	r->news = (struct renewer_news){.sent = sent};
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&r->changed, &attr);
	pthread_condattr_destroy(&attr);
	int errnum = pthread_create(&r->thread, NULL, live, r);
	r->runs = errnum == 0;
	if (r->runs)
		return BATON_OK;
	pthread_cond_destroy(&r->changed);
	return fail_errno(errnum, "no thread for the guardian");
}

void renewer_look(struct renewer *r, struct renewer_news *ret)
{
	pthread_mutex_lock(&r->mu);
	*ret = r->news;
	pthread_mutex_unlock(&r->mu);
}

bool renewer_stop(struct renewer *r, struct baton_mono until)
{
	if (!r->runs)
		return true;
	pthread_mutex_lock(&r->mu);
	r->stop = true;
	pthread_cond_broadcast(&r->changed);
	while (!r->done && baton_mono_live(until, now_boot()))
		wait_for(r,
		         shorter(baton_mono_sub(until, now_boot()), baton_duration_ms(SLICE_MS)));
	bool done = r->done;
	pthread_mutex_unlock(&r->mu);
	if (done)
		renewer_join(r);
	return done;
}

void renewer_join(struct renewer *r)
{
	if (!r->runs)
		return;
	pthread_join(r->thread, NULL);
	pthread_cond_destroy(&r->changed);
	r->runs = false;
}
