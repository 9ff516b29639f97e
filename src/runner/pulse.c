/* The thread that beats. */
#include "runner/pulse.h"

#include <linux/futex.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fail.h"

static void change(struct pulse *p)
{
	atomic_fetch_add_explicit(&p->word, 1, memory_order_release);
	syscall(SYS_futex, &p->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void beat(struct pulse *p, struct baton_runner *runner)
{
	struct inbox_beat b = {
		.number = baton_runner_number(runner),
		.sent = p->clock->now(p->clock),
	};
	b.err = baton_runner_beat(runner);
	if (b.err != BATON_OK)
		snprintf(b.why, sizeof b.why, "%s", baton_err_detail());
	inbox_beat(p->inbox, &b);
}

/* One beat, if there is somebody to beat for; but a runner whose loop takes nothing in for too long
 * does not live. False: it is over. */
static bool beat_once(struct pulse *p)
{
	pthread_mutex_lock(&p->mu);
	bool quit = p->quit;
	p->beating = quit ? NULL : p->runner;
	p->retired = false;
	pthread_mutex_unlock(&p->mu);
	struct baton_mono then = {p->clock->now(p->clock).ns - p->patience.ns};
	if (p->beating && inbox_is_heard(p->inbox, then))
		beat(p, p->beating);
	pthread_mutex_lock(&p->mu);
	if (p->retired)
		baton_runner_free(p->beating);
	p->beating = NULL;
	pthread_mutex_unlock(&p->mu);
	return !quit;
}

static void *work(void *arg)
{
	struct pulse *p = arg;
	uint32_t seen = atomic_load_explicit(&p->word, memory_order_acquire);
	while (beat_once(p)) {
		struct baton_mono now = p->clock->now(p->clock);
		struct baton_mono next = baton_mono_add(now, p->every);
		while (atomic_load_explicit(&p->word, memory_order_acquire) == seen &&
		       now.ns < next.ns) {
			p->clock->wait(p->clock, (const uint32_t *)&p->word, seen, next);
			now = p->clock->now(p->clock);
		}
		seen = atomic_load_explicit(&p->word, memory_order_acquire);
	}
	return NULL;
}

enum baton_err pulse_init(struct pulse *p, struct inbox *inbox, const struct baton_clock *clock,
                          struct baton_duration every, struct baton_duration patience)
{
	*p = (struct pulse){.inbox = inbox, .clock = clock, .every = every, .patience = patience};
	pthread_mutex_init(&p->mu, NULL);
	int errnum = pthread_create(&p->thread, NULL, work, p);
	if (errnum != 0)
		return fail_errno(errnum, "starting a thread that beats");
	p->runs = true;
	return BATON_OK;
}

void pulse_done(struct pulse *p)
{
	if (!p->inbox)
		return;
	pthread_mutex_lock(&p->mu);
	p->quit = true;
	pthread_mutex_unlock(&p->mu);
	change(p);
	if (p->runs)
		pthread_join(p->thread, NULL);
	pthread_mutex_destroy(&p->mu);
	p->inbox = NULL;
}

void pulse_begin(struct pulse *p, struct baton_runner *runner)
{
	pthread_mutex_lock(&p->mu);
	p->runner = runner;
	pthread_mutex_unlock(&p->mu);
	change(p);
}

void pulse_retire(struct pulse *p, struct baton_runner *runner)
{
	pthread_mutex_lock(&p->mu);
	if (p->runner == runner)
		p->runner = NULL;
	bool used = p->beating == runner;
	p->retired = p->retired || used;
	pthread_mutex_unlock(&p->mu);
	if (!used)
		baton_runner_free(runner);
}
