/* A singleton of a runner: its seat, and its instance. */
#include "runner/duty.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "guardian/latch.h"

#define GRACE_MS 5000
#define COMMAND_ID 1
#define VARIABLE_MAX (BATON_NAME_MAX + 64)

enum baton_err duty_init(struct baton_duty *d, const struct baton_singleton *what,
                         const struct duty_options *options)
{
	*d = (struct baton_duty){.what = *what, .o = *options, .hard_stop = BATON_MONO_NEVER};
	snprintf(d->subject, sizeof d->subject, DUTY_SUBJECT "%.*s", (int)what->name.len,
	         what->name.ptr);
	if (what->command || what->overtime != BATON_OVERTIME_ABORT)
		return BATON_OK;
	return alarm_init(&d->alarm, options->clock, options->log, true);
}

void duty_done(struct baton_duty *d)
{
	duty_stop(d);
	if (d->threaded)
		pthread_join(d->thread, NULL);
	d->threaded = false;
	alarm_done(&d->alarm);
	duty_clear(d);
}

struct baton_duration duty_grace(const struct baton_singleton *what)
{
	return what->grace.ns > 0 ? what->grace : baton_duration_ms(GRACE_MS);
}

static enum baton_err wards_need(struct baton_duty *d)
{
	char life[BESIDE_MAX + 1];
	if (d->wards)
		return BATON_OK;
	enum baton_err e = beside_life(d->o.beside, life);
	const struct wards_ask ask = {
		.life = life,
		.helper = d->what.guardian,
		.lock = d->o.lock,
		.lock_at = d->o.lock_at,
		.awake = d->o.clock == baton_clock_awake(),
		.alloc = d->o.alloc,
	};
	if (e == BATON_OK)
		e = wards_open(&ask, &d->wards);
	if (e == BATON_OK)
		e = waiter_add(d->o.waiter, wards_fd(d->wards));
	d->lost = false;
	d->hard_stop = BATON_MONO_NEVER;
	return e;
}

/* One file for all who offer the singleton of that store on this host. */
static enum baton_err latch_need(const struct baton_duty *d, struct latch *latch)
{
	char id[BATON_ID_TEXT], label[BATON_ID_TEXT + BATON_NAME_MAX + 1];
	baton_id_print(&d->o.store, id);
	snprintf(label, sizeof label, "%s/%.*s", id, (int)d->what.name.len, d->what.name.ptr);
	const struct baton_subject subject = {
		.space = BATON_STR("singleton"),
		.label = baton_str_z(label),
	};
	enum baton_err e = latch_name(latch, d->o.beside, &subject);
	return e == BATON_OK ? latch_take(latch) : e;
}

static enum baton_err command_pass(struct baton_duty *d, const struct latch *latch)
{
	char name[VARIABLE_MAX], fence[VARIABLE_MAX];
	char *env[] = {name, fence, NULL};
	snprintf(name, sizeof name, "BATON_SINGLETON=%.*s", (int)d->what.name.len,
	         d->what.name.ptr);
	snprintf(fence, sizeof fence, "BATON_FENCE=%" PRIu64, d->fence.v);
	const struct ward_spec spec = {
		.id = COMMAND_ID,
		.argv = d->what.command,
		.env = env,
		.channel = latch->fd,
		.grace = duty_grace(&d->what),
		.output_said = true,
	};
	return wards_start(d->wards, &spec);
}

/* The latch goes to the command: this process, which may be stopped, does not keep it. */
static enum baton_err command_start(struct baton_duty *d)
{
	AUTO(latch_drop) struct latch latch = LATCH_NONE;
	enum baton_err e = wards_need(d);
	if (e != BATON_OK)
		return e;
	duty_deadline(d);
	e = latch_need(d, &latch);
	return e == BATON_OK ? command_pass(d, &latch) : e;
}

static void *work(void *arg)
{
	struct baton_duty *d = arg;
	bool armed = d->alarm.clock != NULL;
	if (!armed || alarm_enter(&d->alarm)) {
		d->what.call(d->what.arg, d);
		if (armed)
			alarm_leave(&d->alarm);
	}
	atomic_store_explicit(&d->ended, true, memory_order_release);
	inbox_wake(d->o.inbox);
	return NULL;
}

static enum baton_err function_start(struct baton_duty *d)
{
	atomic_store_explicit(&d->over, false, memory_order_relaxed);
	atomic_store_explicit(&d->ended, false, memory_order_relaxed);
	duty_deadline(d);
	int errnum = pthread_create(&d->thread, NULL, work, d);
	d->threaded = errnum == 0;
	return errnum == 0 ? BATON_OK : fail_errno(errnum, "starting a thread for a singleton");
}

enum baton_err duty_start(struct baton_duty *d)
{
	d->fence = d->seat.lease.fence;
	return d->what.command ? command_start(d) : function_start(d);
}

void duty_nudge(struct baton_duty *d)
{
	atomic_fetch_add_explicit(&d->word, 1, memory_order_release);
	syscall(SYS_futex, &d->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void duty_stop(struct baton_duty *d)
{
	atomic_store_explicit(&d->over, true, memory_order_relaxed);
	duty_nudge(d);
	if (d->wards)
		wards_stop(d->wards, COMMAND_ID, false);
}

static void say(const struct baton_duty *d, const struct ward_news *news)
{
	BATON_LOG(d->o.log, BATON_LOG_INFO, "a singleton says",
	          baton_field_str("singleton", d->what.name), baton_field_str("line", news->text));
}

static void say_end(const struct baton_duty *d, const struct ward_news *news)
{
	char why[64];
	if (news->how == WARD_UNSTARTED)
		snprintf(why, sizeof why, "it cannot be executed: %.30s", strerror(news->code));
	else if (news->how == WARD_SIGNALED)
		snprintf(why, sizeof why, "signal %d", news->code);
	else
		snprintf(why, sizeof why, "status %d", news->code);
	BATON_LOG(d->o.log, BATON_LOG_INFO, "a singleton has ended",
	          baton_field_str("singleton", d->what.name),
	          baton_field_str("how", baton_str_z(why)));
}

static bool command_hear(struct baton_duty *d)
{
	struct ward_news news;
	bool ended = false;
	while (!ended && wards_next(d->wards, &news)) {
		switch (news.kind) {
		case WARD_BEGUN:
			break;
		case WARD_SAID:
			say(d, &news);
			break;
		case WARD_GUARDIAN_LOST:
			d->lost = true;
			break;
		case WARD_ENDED:
			say_end(d, &news);
			ended = true;
			break;
		}
	}
	if (d->lost && (ended || !d->seat.works))
		duty_clear(d);
	return ended;
}

bool duty_hear(struct baton_duty *d)
{
	if (d->wards)
		return command_hear(d);
	if (!d->threaded || !atomic_load_explicit(&d->ended, memory_order_acquire))
		return false;
	pthread_join(d->thread, NULL);
	d->threaded = false;
	return true;
}

void duty_clear(struct baton_duty *d)
{
	if (d->wards)
		waiter_leave_out(d->o.waiter, wards_fd(d->wards));
	wards_close(d->wards);
	d->wards = NULL;
}

void duty_deadline(struct baton_duty *d)
{
	struct baton_mono hard_stop = seat_hard_stop(&d->seat);
	atomic_store_explicit(&d->until, seat_deadline(&d->seat).ns, memory_order_relaxed);
	if (hard_stop.ns == d->hard_stop.ns)
		return;
	if (d->wards)
		wards_deadline(d->wards, hard_stop);
	if (d->alarm.clock)
		alarm_set(&d->alarm, hard_stop);
	d->hard_stop = hard_stop;
}

baton_fence baton_duty_fence(const struct baton_duty *d)
{
	return d->fence;
}

bool baton_duty_is_over(const struct baton_duty *d)
{
	const struct baton_mono until = {atomic_load_explicit(&d->until, memory_order_relaxed)};
	return atomic_load_explicit(&d->over, memory_order_relaxed) ||
	       !baton_mono_live(until, d->o.clock->now(d->o.clock));
}

bool duty_may_act(const struct baton_duty *d)
{
	return baton_detach_state(d->o.detach) == BATON_ATTACHED && !baton_duty_is_over(d);
}

void duty_suspect(struct baton_duty *d)
{
	baton_detach_suspect(d->o.detach);
	inbox_wake(d->o.inbox);
}

uint32_t duty_word(const struct baton_duty *d)
{
	return atomic_load_explicit(&d->word, memory_order_acquire);
}

void duty_wait(struct baton_duty *d, uint32_t seen, struct baton_duration most)
{
	struct baton_mono now = d->o.clock->now(d->o.clock);
	struct baton_mono until = baton_mono_add(now, most);
	while (duty_word(d) == seen && now.ns < until.ns) {
		d->o.clock->wait(d->o.clock, (const uint32_t *)&d->word, seen, until);
		now = d->o.clock->now(d->o.clock);
	}
}

/* Nobody wakes it when its time is over, unless the runner notices. */
bool baton_duty_rest(struct baton_duty *d, struct baton_duration duration)
{
	struct baton_mono now = d->o.clock->now(d->o.clock);
	struct baton_mono until = baton_mono_add(now, duration);
	while (!baton_duty_is_over(d) && now.ns < until.ns) {
		uint32_t seen = duty_word(d);
		int64_t end = atomic_load_explicit(&d->until, memory_order_relaxed);
		struct baton_mono wake = {end < until.ns ? end : until.ns};
		if (!baton_duty_is_over(d))
			d->o.clock->wait(d->o.clock, (const uint32_t *)&d->word, seen, wake);
		now = d->o.clock->now(d->o.clock);
	}
	return !baton_duty_is_over(d);
}
