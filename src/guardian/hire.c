/* The process that is the guardian of many commands, seen from the runner. */
#include "guardian/hire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <baton/clock.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "base/process.h"
#include "guardian/keepers.h"

/* How long the guardian may take to say that it is there. */
#define READY_MS 30000

/* How long all may take to end that are killed, and how often they are. */
#define END_MS 5000
#define RETRY_MS 20

/* The memory that the guardian reads. */
static int page_make(struct hired *h, const struct wards_ask *ask)
{
	int fd = memfd_create("baton-deadline", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, (off_t)sizeof *h->page) != 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW) != 0)
		return fd;
	void *at = mmap(NULL, sizeof *h->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return fd;
	h->page = at;
	h->page->magic = ERRAND_MAGIC;
	h->page->awake = ask->awake;
	h->page->lock_at = ask->lock_at;
	if (ask->lock && strlen(ask->lock) < sizeof h->page->lock)
		memcpy(h->page->lock, ask->lock, strlen(ask->lock));
	atomic_init(&h->page->deadline, INT64_MAX);
	return fd;
}

/* Moves a descriptor out of the way of those that the guardian gets. */
static void lift(int *fd)
{
	if (*fd < 0 || *fd >= ERRAND_FDS)
		return;
	int high = fcntl(*fd, F_DUPFD_CLOEXEC, ERRAND_FDS);
	close(*fd);
	*fd = high;
}

/* What the guardian gets, by its number there; those below ERRAND_SOCKET are not used. */
struct outfit {
	int fds[ERRAND_FDS];
};

static void outfit_done(struct outfit *o)
{
	for (int i = ERRAND_SOCKET; i < ERRAND_FDS; i++) {
		/* These are not only the guardian's. */
		if (i != ERRAND_LIFE && i != ERRAND_WAKE && i != ERRAND_TIMER)
			fd_closep(&o->fds[i]);
	}
}

static enum baton_err outfit_make(struct hired *h, const struct wards_ask *ask, int life,
                                  struct outfit *o)
{
	int ends[2];
	*o = (struct outfit){{-1, -1, -1, -1, -1, -1, -1, -1, -1}};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return fail_errno(errno, "no socket for the guardian");
	h->socket = ends[0];
	o->fds[ERRAND_SOCKET] = ends[1];
	if (pipe2(ends, O_CLOEXEC) != 0)
		return fail_errno(errno, "no pipe for the guardian");
	h->leash = ends[0];
	o->fds[ERRAND_LEASH] = ends[1];
	if (fcntl(h->leash, F_SETFL, O_NONBLOCK) != 0)
		return fail_errno(errno, "the pipe for the guardian cannot be read");
	o->fds[ERRAND_PAGE] = page_make(h, ask);
	if (!h->page)
		return fail_errno(errno, "no memory to share with the guardian");
	h->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	lift(&h->wake);
	o->fds[ERRAND_WAKE] = h->wake;
	h->timer = timerfd_create(ask->awake ? CLOCK_MONOTONIC : CLOCK_BOOTTIME,
	                          TFD_CLOEXEC | TFD_NONBLOCK);
	lift(&h->timer);
	o->fds[ERRAND_TIMER] = h->timer;
	o->fds[ERRAND_LIFE] = life;
	lift(&o->fds[ERRAND_SOCKET]);
	lift(&o->fds[ERRAND_LEASH]);
	lift(&o->fds[ERRAND_PAGE]);
	for (int i = ERRAND_SOCKET; i < ERRAND_FDS; i++) {
		if (o->fds[i] < ERRAND_FDS)
			return fail_errno(EMFILE, "no descriptor for the guardian");
	}
	return BATON_OK;
}

/* What the guardian has to say goes where the runner's words go, if they go anywhere. Returns 0, or
 * what went wrong: an errno. */
static int actions_fill(posix_spawn_file_actions_t *actions, const struct outfit *o)
{
	int errnum = 0;
	bool heard = fcntl(STDERR_FILENO, F_GETFD) >= 0;
	for (int i = 0; i < ERRAND_SOCKET && errnum == 0; i++) {
		if (i == STDERR_FILENO && heard)
			errnum = posix_spawn_file_actions_adddup2(actions, i, i);
		else
			errnum = posix_spawn_file_actions_addopen(actions, i, "/dev/null", O_RDWR,
			                                          0);
	}
	for (int i = ERRAND_SOCKET; i < ERRAND_FDS && errnum == 0; i++)
		errnum = posix_spawn_file_actions_adddup2(actions, o->fds[i], i);
	if (errnum == 0)
		errnum = posix_spawn_file_actions_addclosefrom_np(actions, ERRAND_FDS);
	return errnum;
}

static int attributes_fill(posix_spawnattr_t *attributes)
{
	sigset_t all, defaults;
	sigfillset(&all);
	sigfillset(&defaults);
	sigdelset(&defaults, SIGKILL);
	sigdelset(&defaults, SIGSTOP);
	/* What is sent to the runner's group is not for who has to clean up after it. */
	int errnum = posix_spawnattr_setpgroup(attributes, 0);
	if (errnum == 0)
		errnum = posix_spawnattr_setsigmask(attributes, &all);
	if (errnum == 0)
		errnum = posix_spawnattr_setsigdefault(attributes, &defaults);
	if (errnum == 0)
		errnum = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP |
		                                                      POSIX_SPAWN_SETSIGMASK |
		                                                      POSIX_SPAWN_SETSIGDEF);
	return errnum;
}

static int spawn(const char *helper, const struct outfit *o, int32_t *ret_pid)
{
	char name[] = "baton-guardian", option[] = "--beside-runner";
	char *argv[] = {name, option, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	pid_t pid;
	int errnum = posix_spawn_file_actions_init(&actions);
	if (errnum != 0)
		return errnum;
	errnum = posix_spawnattr_init(&attributes);
	if (errnum == 0) {
		errnum = actions_fill(&actions, o);
		if (errnum == 0)
			errnum = attributes_fill(&attributes);
		if (errnum == 0)
			errnum = posix_spawn(&pid, helper, &actions, &attributes, argv, environ);
		if (errnum == 0)
			*ret_pid = pid;
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&actions);
	return errnum;
}

static const char *helper_of(const struct wards_ask *ask)
{
	const char *named = ask->helper ? ask->helper : secure_getenv("BATON_GUARDIAN");
	return named ? named : BATON_GUARDIAN_HELPER;
}

/* Waits for the first word of the guardian. */
static enum baton_err await_ready(const struct hired *h, const char *helper)
{
	struct errand_report report = {.kind = 0};
	struct pollfd fd = {.fd = h->socket, .events = POLLIN};
	int n;
	do
		n = poll(&fd, 1, READY_MS);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return fail(BATON_SYSTEM, "the guardian '%.200s' says nothing for %d s", helper,
		            READY_MS / 1000);
	enum errand_got got = report_get(h->socket, &report);
	if (got == ERRAND_DONE && report.kind == ERRAND_READY)
		return BATON_OK;
	if (got == ERRAND_DONE && report.kind == ERRAND_REFUSED && report.code != EPROTO)
		return fail_errno(report.code, "the guardian '%.200s' cannot begin", helper);
	return fail(BATON_SYSTEM,
	            "'%.200s' is no guardian of this version; the library and what it finds there "
	            "must be of one build",
	            helper);
}

static enum baton_err guardian_start(struct hired *h, const struct wards_ask *ask, int life)
{
	const char *helper = helper_of(ask);
	AUTO(outfit_done) struct outfit outfit;
	enum baton_err e = outfit_make(h, ask, life, &outfit);
	if (e != BATON_OK)
		return e;
	int errnum = spawn(helper, &outfit, &h->pid);
	if (errnum != 0)
		return fail_errno(errnum,
		                  "commands need a guardian, which BATON_GUARDIAN may name, "
		                  "and '%.200s' cannot be started",
		                  helper);
	if (!process_open(h->pid, &h->guardian))
		return fail_errno(errno, "the guardian cannot be watched");
	return BATON_OK;
}
enum baton_err hire(struct hired *h, const struct wards_ask *ask, int life)
{
	enum baton_err e = guardian_start(h, ask, life);
	if (e == BATON_OK)
		e = await_ready(h, helper_of(ask));
	if (e != BATON_OK && h->pid > 0)
		kill(h->pid, SIGKILL); /* it has nothing to look after, and may not listen */
	return e;
}

static bool has_news(int fd, short also)
{
	struct pollfd one = {.fd = fd, .events = also};
	return poll(&one, 1, 0) == 1 && one.revents != 0;
}

bool hired_is_dead(const struct hired *h)
{
	return h->guardian < 0 || has_news(h->guardian, POLLIN);
}

/* Nannies have the other end of the socket, as the guardian has; and they are of its process group,
 * so as long as one lives, its number is nobody else's. */
static bool has_nannies(const struct hired *h)
{
	return !has_news(h->socket, 0);
}

void hired_rouse(const struct hired *h)
{
	if (h->guardian < 0)
		return;
	if (!hired_is_dead(h))
		(void)syscall(SYS_pidfd_send_signal, h->guardian, SIGCONT, NULL, 0);
	else if (has_nannies(h))
		kill(-h->pid, SIGCONT);
}

void hired_kill_orphans(const struct hired *h)
{
	if (hired_is_dead(h))
		keepers_kill(h->leash, has_nannies(h) ? h->pid : 0);
}

bool hired_are_gone(const struct hired *h)
{
	char bytes[4096];
	ssize_t n;
	do
		n = read(h->leash, bytes, sizeof bytes);
	while (n < 0 && errno == EINTR);
	return n == 0;
}

/* Nobody reads any more: that is the end of all. Nannies wait until they have told theirs. */
static void await_end(const struct hired *h)
{
	const struct baton_clock *clock = baton_clock_awake();
	struct baton_mono until = baton_mono_add(clock->now(clock), baton_duration_ms(END_MS));
	struct errand_report report;
	while (!hired_are_gone(h) && baton_mono_live(until, clock->now(clock))) {
		enum errand_got got = ERRAND_DONE;
		while (got == ERRAND_DONE || got == ERRAND_STRANGE)
			got = report_get(h->socket, &report);
		hired_rouse(h);
		hired_kill_orphans(h);
		struct pollfd fds[] = {
			{.fd = h->leash, .events = POLLIN},
			{.fd = got == ERRAND_HUNG_UP ? -1 : h->socket, .events = POLLIN},
		};
		(void)poll(fds, 2, RETRY_MS);
	}
}

void hired_reap(struct hired *h)
{
	/* Whoever else waits for all children of this process may have been faster. */
	while (!h->reaped && waitpid(h->pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	h->reaped = true;
}

static void close_fd(int *fd)
{
	fd_closep(fd);
	*fd = -1;
}

void hired_end(struct hired *h)
{
	if (h->socket >= 0 && h->pid > 0) {
		shutdown(h->socket, SHUT_WR);
		await_end(h);
	}
	close_fd(&h->socket);
	if (h->pid > 0 && hired_is_dead(h))
		hired_reap(h);
	close_fd(&h->guardian);
	close_fd(&h->leash);
	close_fd(&h->wake);
	close_fd(&h->timer);
	if (h->page)
		munmap(h->page, sizeof *h->page);
	h->page = NULL;
}
