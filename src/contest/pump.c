/* A thread that turns a fleet's bell into a descriptor for an event loop. */
#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "contest/event.h"
#include "contest/pause.h"
#include "contest/roster.h"
#include "contest/watch.h"

/* A number that is another one after every event and every death. */
static uint64_t state_of(const struct view *v)
{
	uint32_t used = view_members_used(v);
	uint64_t state = 0;
	for (uint32_t i = 0; i < used; i++)
		state = state * UINT64_C(0x9e3779b97f4a7c15) + 2 * ring_now(view_lane(v, i)) +
		        roster_is_dead(v, i + 1);
	return state;
}

static void *pump(void *arg)
{
	struct baton_watch *w = arg;
	struct bell *bell = &w->view->bells[BELL_CLAIMS];
	uint64_t told = ~state_of(w->view);
	while (__atomic_load_n(&w->pump.stop.word, __ATOMIC_SEQ_CST) == 0) {
		uint32_t seen = atomic_load(&bell->count);
		if (w->view->segment.writable)
			atomic_store(&bell->armed, 1);
		uint64_t state = state_of(w->view);
		if (state != told || !segment_is_current(&w->view->segment)) {
			told = state;
			eventfd_write(w->pump.fd, 1);
		}
		const struct spot spots[] = {
			{.word = &bell->count, .seen = seen},
			{.word = &w->pump.stop, .seen = 0, .mine = true},
		};
		pause_until(spots, 2, INT64_MAX, false);
		bell_pass(bell, seen);
	}
	return NULL;
}

enum baton_err pump_start(struct baton_watch *w)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return fail_errno(errno, "an eventfd cannot be made");
	w->pump = (struct pump){.fd = fd};
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int err = pthread_create(&w->pump.thread, NULL, pump, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err == 0)
		return BATON_OK;
	fd_closep(&w->pump.fd);
	return fail_errno(err, "a thread cannot be started");
}

void pump_stop(struct baton_watch *w)
{
	if (w->pump.fd < 0)
		return;
	baton_cancel(&w->pump.stop);
	pthread_join(w->pump.thread, NULL);
	fd_closep(&w->pump.fd);
}

enum baton_err baton_watch_fd(struct baton_watch *w, int *ret_fd)
{
	enum baton_err e = w->pump.fd < 0 ? pump_start(w) : BATON_OK;
	if (e == BATON_OK)
		*ret_fd = w->pump.fd;
	return e;
}
