/* The runners beside this one on the same host. */
#include "runner/neighbours.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fail.h"
#include "guardian/wards.h"
#include "store/store.h"

enum baton_err neighbours_init(struct neighbours *n)
{
	*n = (struct neighbours){.epoll = epoll_create1(EPOLL_CLOEXEC)};
	return n->epoll >= 0 ? BATON_OK : fail_errno(errno, "watching other runners");
}

static void forget(struct neighbours *n, size_t i)
{
	if (n->all[i].fd >= 0)
		close(n->all[i].fd);
	n->all[i] = n->all[--n->count];
}

void neighbours_done(struct neighbours *n)
{
	while (n->count > 0)
		forget(n, n->count - 1);
	if (n->epoll >= 0)
		close(n->epoll);
	n->epoll = -1;
}

static void add(struct neighbours *n, uint64_t number, int32_t pid)
{
	for (size_t i = 0; i < n->count; i++) {
		if (n->all[i].number == number && n->all[i].pid == pid)
			return;
	}
	if (pid <= 0 || n->count == NEIGHBOURS_MAX)
		return;
	struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT};
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd >= 0 && epoll_ctl(n->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
		close(fd);
		fd = -1;
	}
	n->all[n->count++] = (struct neighbour){number, pid, fd};
}

static bool is_there(const struct baton_runner_info *infos, size_t count, uint64_t number)
{
	size_t i = 0;
	while (i < count && infos[i].number != number)
		i++;
	return i < count;
}

void neighbours_set(struct neighbours *n, const struct baton_owner *self,
                    const struct baton_runner_info *infos, size_t count)
{
	for (size_t i = n->count; i > 0; i--) {
		if (!is_there(infos, count, n->all[i - 1].number))
			forget(n, i - 1);
	}
	for (size_t i = 0; i < count; i++) {
		const struct baton_owner *o = &infos[i].owner;
		if (o->pid == 0 || o->pid_ns != self->pid_ns ||
		    !baton_id_equal(&o->boot, &self->boot) || o->pid == self->pid)
			continue;
		add(n, infos[i].number, o->pid);
		add(n, infos[i].number, infos[i].guardian);
	}
}

/* Whether both are of one process, under whatever registration. */
static bool is_own(const struct baton_owner *a, const struct baton_owner *b)
{
	return a->pid != 0 && a->pid == b->pid && a->start == b->start && a->pid_ns == b->pid_ns &&
	       baton_id_equal(&a->boot, &b->boot);
}

enum core_fate neighbours_fate(const struct baton_store *store,
                               const struct baton_runner_info *info)
{
	if (is_own(&store->owner, &info->owner))
		return CORE_OWN;
	if (!baton_owner_is_dead(&store->owner, &info->owner, store->reach))
		return CORE_LIVES;
	enum baton_err e = info->life[0] != '\0' ? wards_lives(info->life) : BATON_OK;
	if (e == BATON_OK)
		return CORE_DEAD;
	/* Who may not look cannot know. */
	return e == BATON_YIELD ? CORE_DYING : CORE_LIVES;
}

bool neighbours_died(struct neighbours *n)
{
	struct epoll_event event;
	bool died = false;
	while (epoll_wait(n->epoll, &event, 1, 0) > 0)
		died = true;
	return died;
}
