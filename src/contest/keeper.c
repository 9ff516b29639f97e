/* The thread by whose end the others know that a process has ended. */
#include "contest/keeper.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "contest/event.h"
#include "contest/line.h"
#include "contest/pause.h"

#define STACK_SIZE ((size_t)256 * 1024)

/* How often to look at the file where the kernel does not tell about it. */
#define LOOK_MS 100

/* An empty list, which gets its one entry with the life word. */
static void list_register(struct keeper *k)
{
	k->list.list.next = &k->list.list;
	k->list.list_op_pending = NULL;
	syscall(SYS_set_robust_list, &k->list, sizeof k->list);
	atomic_store(&k->tid, (uint32_t)gettid());
	pause_wake(&k->tid, 1, true);
}

void keeper_hold(struct keeper *k, _Atomic uint32_t *life, uint32_t code)
{
	atomic_store(&k->life, life);
	k->list.futex_offset = (long)((intptr_t)life - (intptr_t)&k->entry);
	k->entry.next = &k->list.list;
	/* The kernel looks at the list when the thread has ended, from whatever processor. */
	__atomic_store_n(&k->list.list.next, &k->entry, __ATOMIC_SEQ_CST);
	atomic_store(&k->code, code);
	atomic_store(life, atomic_load(&k->tid));
}

static void life_drop(struct keeper *k)
{
	_Atomic uint32_t *life = atomic_load(&k->life);
	if (life == NULL)
		return;
	/* The word first: whoever is killed before the list is empty is dead all the same. */
	atomic_store(life, 0);
	__atomic_store_n(&k->list.list.next, &k->list.list, __ATOMIC_SEQ_CST);
	pause_wake(life, INT_MAX, false);
}

bool keeper_look(struct keeper *k)
{
	if (atomic_load_explicit(k->here, memory_order_relaxed) == HERE_GONE)
		return false;
	if (segment_is_current(&k->view->segment))
		return true;
	atomic_store(k->here, HERE_GONE);
	return false;
}

/* Everybody of this process who sleeps learns it now. */
static void gone_tell(struct keeper *k)
{
	line_wake_all_of(k->view, atomic_load(&k->code));
	for (uint32_t i = 0; i < BELLS; i++)
		bell_ring(&k->view->bells[i]);
}

static void notify_drain(int fd)
{
	char events[4096];
	if (fd >= 0)
		while (read(fd, events, sizeof events) > 0)
			;
}

static void *keep(void *arg)
{
	struct keeper *k = arg;
	list_register(k);
	struct pollfd fds[] = {
		{.fd = k->stop, .events = POLLIN},
		{.fd = k->notify, .events = POLLIN},
	};
	/* Not *here: another thread may have found that out, and left the telling to us. */
	bool told = false;
	while ((fds[0].revents & POLLIN) == 0) {
		if (!told && !keeper_look(k)) {
			gone_tell(k);
			told = true;
		}
		poll(fds, 2, k->notify < 0 && !told ? LOOK_MS : -1);
		notify_drain(k->notify);
	}
	life_drop(k);
	return NULL;
}

/* With all signals blocked: the thread inherits that, and handlers run in the threads that the
 * program has for them. */
static int thread_start(struct keeper *k)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int err = pthread_attr_init(&attr);
	if (err != 0)
		return err;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_attr_setstacksize(&attr, STACK_SIZE);
	if (err == 0)
		err = pthread_create(&k->thread, &attr, keep, k);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return err;
}

/* An unlinked file still has its mappings, so what is seen is that its count of links changes. */
static int notify_open(const struct view *v)
{
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (fd < 0)
		return -1;
	const char *path = v->segment.path;
	char folder[SEGMENT_PATH_MAX + 1];
	size_t len = (size_t)(strrchr(path, '/') - path);
	memcpy(folder, path, len);
	folder[len] = '\0';
	if (inotify_add_watch(fd, path, IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF) >= 0 &&
	    inotify_add_watch(fd, len > 0 ? folder : "/", IN_MOVE_SELF) >= 0)
		return fd;
	close(fd);
	return -1;
}

enum baton_err keeper_start(struct keeper *k, struct view *view, _Atomic uint32_t *here)
{
	*k = (struct keeper){.view = view, .here = here, .notify = -1};
	/* An earlier one may have found that its fleet was gone. */
	atomic_store(here, HERE_MEMBER);
	k->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (k->stop < 0)
		return fail_errno(errno, "an eventfd cannot be made");
	k->notify = notify_open(view);
	int err = thread_start(k);
	if (err != 0) {
		keeper_forget(k);
		return fail_errno(err, "a thread cannot be started");
	}
	while (atomic_load(&k->tid) == 0) {
		struct spot spot = {.word = &k->tid, .seen = 0, .mine = true};
		pause_until(&spot, 1, pause_now() + BACKSTOP_NS, true);
	}
	return BATON_OK;
}

void keeper_stop(struct keeper *k)
{
	if (k->stop < 0)
		return;
	eventfd_write(k->stop, 1);
	pthread_join(k->thread, NULL);
	keeper_forget(k);
}

void keeper_forget(struct keeper *k)
{
	fd_closep(&k->stop);
	fd_closep(&k->notify);
}
