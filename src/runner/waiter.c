/* What a loop waits for, as one descriptor. */
#include "runner/waiter.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/fail.h"

#define NS_PER_S 1000000000

enum baton_err waiter_init(struct waiter *w, bool awake)
{
	*w = (struct waiter){.fd = epoll_create1(EPOLL_CLOEXEC), .at = BATON_MONO_NEVER};
	w->timer = timerfd_create(awake ? CLOCK_MONOTONIC : CLOCK_BOOTTIME,
	                          TFD_CLOEXEC | TFD_NONBLOCK);
	if (w->fd < 0 || w->timer < 0)
		return fail_errno(errno, "no descriptor for the loop of a runner");
	return waiter_add(w, w->timer);
}

void waiter_done(struct waiter *w)
{
	fd_closep(&w->timer);
	fd_closep(&w->fd);
	w->timer = w->fd = -1;
}

enum baton_err waiter_add(struct waiter *w, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};
	if (fd < 0 || epoll_ctl(w->fd, EPOLL_CTL_ADD, fd, &event) == 0)
		return BATON_OK;
	return fail_errno(errno, "the loop of a runner cannot wait for a descriptor");
}

void waiter_leave_out(struct waiter *w, int fd)
{
	if (fd >= 0)
		(void)epoll_ctl(w->fd, EPOLL_CTL_DEL, fd, NULL);
}

/* A timer that has rung stays readable until it is set anew. */
void waiter_set(struct waiter *w, struct baton_mono at)
{
	struct itimerspec spec = {.it_value = {.tv_sec = 0}};
	if (at.ns == w->at.ns)
		return;
	w->at = at;
	if (at.ns != BATON_MONO_NEVER.ns) {
		int64_t ns = at.ns > 0 ? at.ns : 1; /* 0 would be never */
		spec.it_value = (struct timespec){ns / NS_PER_S, ns % NS_PER_S};
	}
	CHECK(timerfd_settime(w->timer, TFD_TIMER_ABSTIME, &spec, NULL) == 0);
}

void waiter_wait(const struct waiter *w)
{
	struct pollfd fd = {.fd = w->fd, .events = POLLIN};
	(void)poll(&fd, 1, -1);
}
