/* A guardian and the commands under it, seen from the runner. */
#include "guardian/wards.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "base/mem.h"
#include "base/process.h"
#include "guardian/errand.h"
#include "guardian/latch.h"
#include "guardian/life.h"
#include "guardian/ward.h"

/* How long the guardian may take to say that it is there. */
#define READY_MS 30000

/* How much is looked at by one call of wards_next(). */
#define EVENTS_MAX 64
#define REPORTS_MAX 64

#define NS_PER_S INT64_C(1000000000)

/* A serial has the place of the command in its low bits. */
#define SERIAL_STEP ((uint64_t)WARDS_MAX)

/* What happens at a descriptor; beside it is the place of a command. */
enum source {
	SOURCE_SOCKET = 0,
	SOURCE_GUARDIAN, /* its pidfd */
	SOURCE_LEASH,
	SOURCE_BELL,
	SOURCE_OUT,
	SOURCE_ERR,
	SOURCES
};

struct wards {
	const struct baton_alloc *alloc; /* [const] */
	struct errand_page *page;        /* [const]; the deadline in it [atomic] */
	int wake;                        /* [const] */
	int timer;                       /* [const] */
	struct latch life;
	int32_t pid;
	bool reaped;
	int guardian; /* a pidfd */
	int socket;
	int leash;
	int bell; /* readable: something is in the list though nothing has happened */
	int epoll;
	bool lost; /* the guardian has died */
	bool lost_told;
	bool writes; /* the socket is waited for to be writable: something is queued */
	uint64_t serials;
	struct ward *wards[WARDS_MAX];
	size_t count;
	size_t used;        /* all above are empty */
	struct ward *first; /* of those who have news */
	struct ward *last;
	struct ward *retired; /* whose end was told in the last call */
};

static void ring(int bell)
{
	const uint64_t one = 1;
	(void)!write(bell, &one, sizeof one);
}

static void list(struct wards *w, struct ward *ward)
{
	if (ward->listed)
		return;
	ward->listed = true;
	ward->next = NULL;
	if (w->last)
		w->last->next = ward;
	else
		w->first = ward;
	w->last = ward;
}

static bool watch(struct wards *w, int fd, enum source source, size_t place)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = place * SOURCES + source};
	return epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* The memory that the guardian reads. */
static int page_make(struct wards *w, const struct wards_ask *ask)
{
	int fd = memfd_create("baton-deadline", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, (off_t)sizeof *w->page) != 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW) != 0)
		return fd;
	void *at = mmap(NULL, sizeof *w->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return fd;
	w->page = at;
	w->page->magic = ERRAND_MAGIC;
	w->page->awake = ask->awake;
	w->page->lock_at = ask->lock_at;
	if (ask->lock && strlen(ask->lock) < sizeof w->page->lock)
		memcpy(w->page->lock, ask->lock, strlen(ask->lock));
	atomic_init(&w->page->deadline, INT64_MAX);
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

static enum baton_err outfit_make(struct wards *w, const struct wards_ask *ask, struct outfit *o)
{
	int ends[2];
	*o = (struct outfit){{-1, -1, -1, -1, -1, -1, -1, -1, -1}};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return fail_errno(errno, "no socket for the guardian");
	w->socket = ends[0];
	o->fds[ERRAND_SOCKET] = ends[1];
	if (pipe2(ends, O_CLOEXEC) != 0)
		return fail_errno(errno, "no pipe for the guardian");
	w->leash = ends[0];
	o->fds[ERRAND_LEASH] = ends[1];
	if (fcntl(w->leash, F_SETFL, O_NONBLOCK) != 0)
		return fail_errno(errno, "the pipe for the guardian cannot be read");
	o->fds[ERRAND_PAGE] = page_make(w, ask);
	if (!w->page)
		return fail_errno(errno, "no memory to share with the guardian");
	w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	lift(&w->wake);
	o->fds[ERRAND_WAKE] = w->wake;
	w->timer = timerfd_create(ask->awake ? CLOCK_MONOTONIC : CLOCK_BOOTTIME,
	                          TFD_CLOEXEC | TFD_NONBLOCK);
	lift(&w->timer);
	o->fds[ERRAND_TIMER] = w->timer;
	o->fds[ERRAND_LIFE] = w->life.fd;
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
static enum baton_err await_ready(const struct wards *w, const char *helper)
{
	struct errand_report report = {.kind = 0};
	struct pollfd fd = {.fd = w->socket, .events = POLLIN};
	int n;
	do
		n = poll(&fd, 1, READY_MS);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return fail(BATON_SYSTEM, "the guardian '%.200s' says nothing for %d s", helper,
		            READY_MS / 1000);
	enum errand_got got = report_get(w->socket, &report);
	if (got == ERRAND_DONE && report.kind == ERRAND_READY)
		return BATON_OK;
	if (got == ERRAND_DONE && report.kind == ERRAND_REFUSED && report.code != EPROTO)
		return fail_errno(report.code, "the guardian '%.200s' cannot begin", helper);
	return fail(BATON_SYSTEM,
	            "'%.200s' is no guardian of this version; the library and what it finds there "
	            "must be of one build",
	            helper);
}

static enum baton_err guardian_start(struct wards *w, const struct wards_ask *ask)
{
	const char *helper = helper_of(ask);
	AUTO(outfit_done) struct outfit outfit;
	enum baton_err e = outfit_make(w, ask, &outfit);
	if (e != BATON_OK)
		return e;
	int errnum = spawn(helper, &outfit, &w->pid);
	if (errnum != 0)
		return fail_errno(errnum,
		                  "commands need a guardian, which BATON_GUARDIAN may name, "
		                  "and '%.200s' cannot be started",
		                  helper);
	if (!process_open(w->pid, &w->guardian))
		return fail_errno(errno, "the guardian cannot be watched");
	return BATON_OK;
}

static enum baton_err events_open(struct wards *w)
{
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	w->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->epoll < 0 || w->bell < 0 || !watch(w, w->bell, SOURCE_BELL, 0) ||
	    !watch(w, w->socket, SOURCE_SOCKET, 0) || !watch(w, w->guardian, SOURCE_GUARDIAN, 0) ||
	    !watch(w, w->leash, SOURCE_LEASH, 0))
		return fail_errno(errno, "no descriptor to wait for commands");
	return BATON_OK;
}

enum baton_err wards_open(const struct wards_ask *ask, struct wards **ret)
{
	const struct baton_alloc *alloc = ask->alloc ? ask->alloc : baton_alloc_libc();
	AUTO(wards_closep) struct wards *w = mem_new(alloc, 1, sizeof *w);
	if (!w)
		return fail_memory(sizeof *w, "commands");
	w->alloc = alloc;
	w->life.fd = w->wake = w->timer = w->guardian = w->socket = w->leash = -1;
	w->epoll = w->bell = -1;
	enum baton_err e = life_take(&w->life, ask->life);
	if (e == BATON_OK)
		e = guardian_start(w, ask);
	if (e == BATON_OK)
		e = await_ready(w, helper_of(ask));
	if (e == BATON_OK)
		e = events_open(w);
	if (e == BATON_OK)
		*ret = TAKE(w);
	else if (w->pid > 0)
		kill(w->pid, SIGKILL); /* it has nothing to look after, and may not listen */
	return e;
}

static void guardian_reap(struct wards *w)
{
	/* Whoever else waits for all children of this process may have been faster. */
	while (!w->reaped && w->pid > 0 && waitpid(w->pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	w->reaped = true;
}

/* Waits until all nannies have ended: they have the other end of the socket. */
static void nannies_await(const struct wards *w)
{
	struct errand_report report;
	struct pollfd fd = {.fd = w->socket, .events = POLLIN};
	for (;;) {
		enum errand_got got = report_get(w->socket, &report);
		if (got == ERRAND_HUNG_UP)
			return;
		if (got == ERRAND_NOT_NOW && poll(&fd, 1, -1) < 0 && errno != EINTR)
			return;
	}
}

static void close_fd(int *fd)
{
	fd_closep(fd);
	*fd = -1;
}

/* A guardian that was stopped goes on: it has something to do. So do nannies without one: they are
 * of its process group, and as long as one lives, which then has the other end of the socket, its
 * number is nobody else's. */
static void rouse(const struct wards *w)
{
	struct pollfd fds[] = {{.fd = w->guardian, .events = POLLIN}, {.fd = w->socket}};
	if (w->guardian < 0)
		return;
	(void)poll(fds, 2, 0);
	if (fds[0].revents == 0)
		(void)syscall(SYS_pidfd_send_signal, w->guardian, SIGCONT, NULL, 0);
	else if (fds[1].revents == 0)
		kill(-w->pid, SIGCONT);
}

void wards_close(struct wards *w)
{
	if (!w)
		return;
	int errnum = errno;
	/* Nobody reads any more: that is the end of all, and the other side tells when it is. */
	if (w->socket >= 0 && w->pid > 0) {
		shutdown(w->socket, SHUT_WR);
		rouse(w);
		nannies_await(w);
	}
	close_fd(&w->socket);
	guardian_reap(w);
	for (size_t i = 0; i < w->used; i++)
		ward_free(w->wards[i]);
	ward_free(w->retired);
	close_fd(&w->epoll);
	close_fd(&w->guardian);
	close_fd(&w->leash);
	close_fd(&w->bell);
	close_fd(&w->wake);
	close_fd(&w->timer);
	if (w->page)
		munmap(w->page, sizeof *w->page);
	latch_drop(&w->life);
	mem_free(w->alloc, w, 1, sizeof *w);
	errno = errnum;
}

void wards_closep(struct wards **w)
{
	wards_close(*w);
}

int wards_fd(const struct wards *w)
{
	return w->epoll;
}

int32_t wards_pid(const struct wards *w)
{
	return w->pid;
}

/* The one timer for all nannies. */
static void timer_set(const struct wards *w, struct baton_mono at)
{
	struct itimerspec when = {.it_value.tv_sec = 0};
	if (at.ns <= 0)
		when.it_value.tv_nsec = 1; /* zeros are for none */
	else if (at.ns != INT64_MAX)
		when.it_value =
			(struct timespec){.tv_sec = at.ns / NS_PER_S, .tv_nsec = at.ns % NS_PER_S};
	(void)timerfd_settime(w->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

void wards_deadline(struct wards *w, struct baton_mono hard_stop)
{
	/* It comes first: what the guardian starts by the word has a nanny that waits for it. */
	timer_set(w, hard_stop);
	/* Pairs with the load in the guardian, which looks again at whatever moment it had set its
	 * timer to: so it need not know of a later one now. */
	int64_t before =
		atomic_exchange_explicit(&w->page->deadline, hard_stop.ns, memory_order_acq_rel);
	if (hard_stop.ns >= before)
		return;
	ring(w->wake);
	rouse(w);
}

/* Lets the socket be waited for as long as something is queued. */
static void want_writable(struct wards *w, bool wanted)
{
	struct epoll_event event = {.events = EPOLLIN | (wanted ? EPOLLOUT : 0),
	                            .data.u64 = SOURCE_SOCKET};
	if (w->writes != wanted && epoll_ctl(w->epoll, EPOLL_CTL_MOD, w->socket, &event) == 0)
		w->writes = wanted;
}

static void end_as(struct wards *w, struct ward *ward, enum ward_how how, int code)
{
	struct errand_report end = {.how = (int32_t)how, .code = code, .pid = ward->end.pid};
	ward_end(ward, &end);
	list(w, ward);
}

/* Sends what was not sent. False: there is no room now. */
static bool flush_one(const struct wards *w, struct ward *ward)
{
	struct errand_order stop = {.magic = ERRAND_MAGIC,
	                            .kind = ward->kill_wanted ? ERRAND_KILL : ERRAND_STOP,
	                            .serial = ward->serial};
	if (ward->over)
		return true;
	if (ward->queued) {
		if (order_pass(w->socket, &ward->order, ward->fds) == ERRAND_NOT_NOW)
			return false;
		ward->queued = false;
		order_close(ward->fds);
	}
	if (ward->kill_wanted || ward->stop_wanted) {
		if (order_pass(w->socket, &stop, NULL) == ERRAND_NOT_NOW)
			return false;
		ward->kill_wanted = ward->stop_wanted = false;
	}
	return true;
}

static void flush_all(struct wards *w)
{
	bool room = true;
	for (size_t i = 0; i < w->used && room; i++) {
		if (w->wards[i])
			room = flush_one(w, w->wards[i]);
	}
	want_writable(w, !room);
}

static size_t free_place(const struct wards *w)
{
	size_t i = 0;
	while (i < w->used && w->wards[i])
		i++;
	return i;
}

enum baton_err wards_start(struct wards *w, const struct ward_spec *spec)
{
	if (w->lost)
		return fail(BATON_GONE, "the guardian of the commands has died");
	if (w->count == WARDS_MAX)
		return fail(BATON_FULL, "there are %d commands; no more are allowed", WARDS_MAX);
	size_t place = free_place(w);
	struct ward *ward;
	enum baton_err e = ward_new(w->alloc, spec, w->serials * SERIAL_STEP + place, &ward);
	if (e != BATON_OK)
		return e;
	if ((ward->out >= 0 && !watch(w, ward->out, SOURCE_OUT, place)) ||
	    !watch(w, ward->err, SOURCE_ERR, place)) {
		e = fail_errno(errno, "what a command writes cannot be waited for");
		ward_free(ward);
		return e;
	}
	w->serials++;
	w->wards[place] = ward;
	w->count++;
	if (place == w->used)
		w->used++;
	if (w->writes || !flush_one(w, ward))
		want_writable(w, true);
	return BATON_OK;
}

static void stop_one(struct wards *w, struct ward *ward, bool now)
{
	if (ward->over || w->lost)
		return;
	if (ward->queued) {
		end_as(w, ward, WARD_UNSTARTED, ECANCELED);
		ring(w->bell);
		return;
	}
	ward->kill_wanted = ward->kill_wanted || now;
	ward->stop_wanted = true;
	if (!flush_one(w, ward))
		want_writable(w, true);
	rouse(w);
}

void wards_stop(struct wards *w, uint64_t id, bool now)
{
	for (size_t i = 0; i < w->used; i++) {
		if (w->wards[i] && w->wards[i]->id == id)
			stop_one(w, w->wards[i], now);
	}
}

void wards_stop_all(struct wards *w, bool now)
{
	for (size_t i = 0; i < w->used; i++) {
		if (w->wards[i])
			stop_one(w, w->wards[i], now);
	}
}

static void hear_report(struct wards *w, const struct errand_report *report)
{
	size_t place = report->serial % SERIAL_STEP;
	struct ward *ward = place < w->used ? w->wards[place] : NULL;
	/* A nanny that was killed may have told the end that the guardian tells once more. */
	if (!ward || ward->serial != report->serial)
		return;
	if (report->kind == ERRAND_BEGUN) {
		ward->begun = true;
		ward->end.pid = report->pid;
		list(w, ward);
	} else if (report->kind == ERRAND_ENDED && report->how >= WARD_EXITED &&
	           report->how <= WARD_UNSTARTED) {
		struct errand_report end = *report;
		end.pid = ward->end.pid;
		ward_end(ward, &end);
		list(w, ward);
	}
}

static void forget(const struct wards *w, int fd)
{
	(void)epoll_ctl(w->epoll, EPOLL_CTL_DEL, fd, NULL);
}

/* Nobody lives, except who has closed all descriptors that he did not know. */
static void all_ended(struct wards *w)
{
	for (size_t i = 0; i < w->used; i++) {
		if (w->wards[i])
			end_as(w, w->wards[i], WARD_SIGNALED, SIGKILL);
	}
}

/* Returns whether there may be more. */
static bool hear_socket(struct wards *w)
{
	struct errand_report report;
	for (int i = 0; i < REPORTS_MAX; i++) {
		enum errand_got got = report_get(w->socket, &report);
		if (got == ERRAND_HUNG_UP)
			forget(w, w->socket);
		if (got == ERRAND_HUNG_UP || got == ERRAND_NOT_NOW)
			return false;
		if (got == ERRAND_DONE)
			hear_report(w, &report);
	}
	return true;
}

/* Those that were not sent will never be. */
static void guardian_lost(struct wards *w)
{
	forget(w, w->guardian);
	guardian_reap(w);
	w->lost = true;
	want_writable(w, false);
	for (size_t i = 0; i < w->used; i++) {
		if (w->wards[i] && w->wards[i]->queued)
			end_as(w, w->wards[i], WARD_UNSTARTED, ECANCELED);
	}
}

/* It ends when nobody has it any more. What a command writes there has no meaning. */
static void hear_leash(struct wards *w)
{
	char bytes[4096];
	if (read(w->leash, bytes, sizeof bytes) != 0)
		return;
	forget(w, w->leash);
	/* What was said before comes first; nobody says more. */
	while (hear_socket(w))
		;
	all_ended(w);
}

static void hear(struct wards *w, uint64_t data)
{
	struct ward *ward = w->wards[data / SOURCES];
	switch ((enum source)(data % SOURCES)) {
	case SOURCE_SOCKET:
		(void)hear_socket(w);
		if (w->writes && !w->lost)
			flush_all(w);
		break;
	case SOURCE_GUARDIAN:
		guardian_lost(w);
		break;
	case SOURCE_LEASH:
		hear_leash(w);
		break;
	case SOURCE_BELL: /* what it tells of is in the list */
		break;
	case SOURCE_OUT:
		if (ward)
			(void)ward_read_out(ward);
		break;
	case SOURCE_ERR:
		if (ward && !ward->over)
			(void)ward_read_err(ward);
		if (ward)
			list(w, ward);
		break;
	case SOURCES:
		break;
	}
}

/* The next thing that those tell who have news. */
static bool tell_next(struct wards *w, struct ward_news *ret)
{
	if (w->lost && !w->lost_told) {
		w->lost_told = true;
		*ret = (struct ward_news){.kind = WARD_GUARDIAN_LOST};
		return true;
	}
	while (w->first) {
		struct ward *ward = w->first;
		bool told = ward_next(ward, ret);
		if (told && ret->kind != WARD_ENDED)
			return true;
		w->first = ward->next;
		if (!w->first)
			w->last = NULL;
		ward->listed = false;
		if (!told)
			continue;
		w->wards[ward->serial % SERIAL_STEP] = NULL;
		w->count--;
		while (w->used > 0 && !w->wards[w->used - 1])
			w->used--;
		w->retired = ward;
		return true;
	}
	return false;
}

bool wards_next(struct wards *w, struct ward_news *ret)
{
	struct epoll_event events[EVENTS_MAX];
	uint64_t rung;
	ward_free(w->retired);
	w->retired = NULL;
	if (tell_next(w, ret))
		return true;
	(void)!read(w->bell, &rung, sizeof rung);
	int count = epoll_wait(w->epoll, events, EVENTS_MAX, 0);
	for (int i = 0; i < count; i++)
		hear(w, events[i].data.u64);
	/* Nobody else would. */
	if (w->lost && w->count > 0)
		rouse(w);
	return tell_next(w, ret);
}
