/* The thread that ends the process when a function runs beyond its time. */
#include "runner/alarm.h"

#include <linux/futex.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fail.h"

static struct baton_mono now_of(const struct alarm *a)
{
	return a->clock->now(a->clock);
}

static void change(struct alarm *a)
{
	atomic_fetch_add(&a->word, 1);
	syscall(SYS_futex, &a->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Whether a record can be written without waiting for whoever reads the log. */
static bool is_writable(const struct baton_log *log)
{
	struct pollfd fd = {.fd = log ? log->fd : -1, .events = POLLOUT};
	return poll(&fd, 1, 0) == 1 && (fd.revents & POLLOUT) != 0;
}

static void ring(const struct alarm *a, uint32_t running)
{
	if (is_writable(a->log))
		BATON_LOG(a->log, BATON_LOG_ERROR,
		          "a handler runs beyond the time of its shard: the process is aborted",
		          baton_field_uint("running", running));
	abort();
}

/* All in one order, with alarm_enter(): if nothing was running when it was time, whoever comes
 * later sees that it is. */
static void *work(void *arg)
{
	struct alarm *a = arg;
	while (!atomic_load(&a->quit)) {
		uint32_t seen = atomic_load(&a->word);
		struct baton_mono at = {atomic_load(&a->at)};
		bool late = !baton_mono_live(at, now_of(a));
		uint32_t running = atomic_load(&a->running);
		if (late && running > 0)
			ring(a, running);
		if (!atomic_load(&a->quit))
			a->clock->wait(a->clock, (const uint32_t *)&a->word, seen,
			               late ? BATON_MONO_NEVER : at);
	}
	return NULL;
}

enum baton_err alarm_init(struct alarm *a, const struct baton_clock *clock,
                          const struct baton_log *log, bool armed)
{
	*a = (struct alarm){.clock = clock, .log = log};
	atomic_store(&a->at, BATON_MONO_NEVER.ns);
	int errnum = armed ? pthread_create(&a->thread, NULL, work, a) : 0;
	a->runs = armed && errnum == 0;
	return errnum == 0 ? BATON_OK : fail_errno(errnum, "starting a thread that watches time");
}

void alarm_done(struct alarm *a)
{
	if (!a->clock)
		return;
	atomic_store(&a->quit, true);
	change(a);
	if (a->runs)
		pthread_join(a->thread, NULL);
	a->clock = NULL;
}

void alarm_set(struct alarm *a, struct baton_mono at)
{
	if (atomic_exchange(&a->at, at.ns) != at.ns)
		change(a);
}

struct baton_mono alarm_at(const struct alarm *a)
{
	return (struct baton_mono){atomic_load(&a->at)};
}

bool alarm_enter(struct alarm *a)
{
	atomic_fetch_add(&a->running, 1);
	struct baton_mono at = {atomic_load(&a->at)};
	if (baton_mono_live(at, now_of(a)))
		return true;
	alarm_leave(a);
	return false;
}

void alarm_leave(struct alarm *a)
{
	atomic_fetch_sub(&a->running, 1);
}
