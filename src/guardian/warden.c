/* The guardian of many commands.
 *
 * One loop in one thread, which never waits for the runner: it forks a nanny for each command, and
 * kills when the deadline is over or the runner has gone. What a command does otherwise is between
 * its nanny and the runner. A nanny that dies without having told the end leaves what it had to
 * this process, which kills all that is under no living nanny, and tells the end then. */
#include "guardian/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include <baton/alloc.h>
#include <baton/clock.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/process.h"
#include "guardian/brood.h"
#include "guardian/errand.h"
#include "guardian/nanny.h"
#include "guardian/tree.h"
#include "guardian/wards.h"

/* How long a nanny may take to end what it has. Somebody may have stopped it, or the runner reads
 * nothing. */
#define PATIENCE_MS 1000

/* How often it kills what was forked since, and tries again what needs memory: nobody tells. */
#define RETRY_MS 20

/* The least number of a descriptor that commands inherit: above those that scripts use. */
#define INHERITED_MIN 100

/* How often, and how often in a row, a runner that is past its deadline is seen to be stopped and
 * to have locked what others need, before it is killed. */
#define LOCKED_MS 100
#define LOCKED_TIMES 20

/* How often this process goes on that is stopped past its deadline. */
#define ALARM_NS 100000000

#define ROOM_FIRST 16
#define NS_PER_S INT64_C(1000000000)

/* A command. */
struct charge {
	uint64_t serial;
	int32_t nanny;              /* its pid until it is reaped; or 0: the end is ours to tell */
	bool doomed;                /* all of it is being killed */
	struct baton_mono patience; /* how long a nanny may take that is doomed */
	bool over;                  /* nothing lives of it: `report` is to be told */
	struct errand_report report;
};

struct warden {
	int keep[2];   /* the life file and the leash, which everybody inherits */
	int signals;   /* of the children; nannies use it too, for theirs */
	int timer;     /* of the deadline */
	timer_t alarm; /* the same, for a process that was stopped */
	int runner;    /* a pidfd; or -1 */
	int32_t runner_pid;
	unsigned locked;          /* how often in a row it was seen so */
	struct baton_mono looked; /* when that was */
	bool runner_gone;         /* and so there is nobody to tell anything */
	bool empty;               /* there is no child */
	bool full;                /* the runner does not read what it is told */
	bool short_of_memory;
	int64_t armed; /* what the timer is set to; INT64_MAX: it is not */
	const struct baton_clock *clock;
	const struct errand_page *page;
	struct charge *charges;
	size_t count;
	size_t room;
};

static int64_t deadline_of(const struct warden *w)
{
	/* Pairs with the exchange in wards_deadline(). */
	return atomic_load_explicit(&w->page->deadline, memory_order_acquire);
}

static bool is_late(const struct warden *w)
{
	struct baton_mono deadline = {deadline_of(w)};
	return !baton_mono_live(deadline, w->clock->now(w->clock));
}

/* Maps the page. Returns 0, or why not: an errno. */
static int map_page(struct warden *w)
{
	struct stat st;
	if (fstat(ERRAND_PAGE, &st) != 0)
		return errno;
	if (st.st_size < (off_t)sizeof *w->page)
		return EPROTO;
	const void *at = mmap(NULL, sizeof *w->page, PROT_READ, MAP_SHARED, ERRAND_PAGE, 0);
	if (at == MAP_FAILED)
		return errno;
	w->page = at;
	close(ERRAND_PAGE);
	if (w->page->magic != ERRAND_MAGIC)
		return EPROTO;
	w->clock = w->page->awake ? baton_clock_awake() : baton_clock_boot();
	return 0;
}

/* Opens what the loop waits for. Returns 0, or why not: an errno. */
static int open_events(struct warden *w)
{
	sigset_t all, heard;
	sigfillset(&all);
	sigemptyset(&heard);
	sigaddset(&heard, SIGCHLD);
	sigaddset(&heard, NANNY_STOP);
	sigaddset(&heard, NANNY_KILL);
	sigaddset(&heard, NANNY_ALONE);
	if (sigprocmask(SIG_SETMASK, &all, NULL) != 0)
		return errno;
	w->signals = signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK);
	w->timer = timerfd_create(w->page->awake ? CLOCK_MONOTONIC : CLOCK_BOOTTIME,
	                          TFD_CLOEXEC | TFD_NONBLOCK);
	if (w->signals < 0 || w->timer < 0)
		return errno;
	return 0;
}

/* Whoever stops this process does so until it has something to end: the kernel lets it go on when
 * the deadline is over and when the runner has died. Returns 0, or why not: an errno. */
static int set_alarms(struct warden *w)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGCONT};
	clockid_t clock = w->page->awake ? CLOCK_MONOTONIC : CLOCK_BOOTTIME;
	if (timer_create(clock, &event, &w->alarm) != 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGCONT, 0, 0, 0) != 0)
		return errno;
	return 0;
}

/* Moves what commands inherit to numbers that are not in their way, and keeps all from them that is
 * not theirs. Returns 0, or why not: an errno. */
static int settle_fds(struct warden *w)
{
	for (int fd = ERRAND_SOCKET; fd < ERRAND_FDS; fd++) {
		if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
			return errno;
	}
	w->keep[0] = fcntl(ERRAND_LIFE, F_DUPFD_CLOEXEC, INHERITED_MIN);
	w->keep[1] = fcntl(ERRAND_LEASH, F_DUPFD_CLOEXEC, INHERITED_MIN);
	/* A limit below that number is not called one. */
	if (w->keep[0] < 0 || w->keep[1] < 0)
		return errno == EINVAL ? EMFILE : errno;
	close(ERRAND_LIFE);
	close(ERRAND_LEASH);
	return 0;
}

/* Another process that has the runner's end of the socket, because it was forked by the runner,
 * does not hide that the runner has died. */
static void watch_runner(struct warden *w)
{
	int32_t pid = getppid();
	w->runner_pid = pid;
	if (pid > 1 && process_open(pid, &w->runner) && getppid() == pid)
		return;
	fd_closep(&w->runner);
	w->runner = -1;
}

/* Becomes what a guardian is. Returns 0, or why not: an errno. */
static int settle(struct warden *w)
{
	watch_runner(w);
	int errnum = settle_fds(w);
	if (errnum == 0)
		errnum = map_page(w);
	if (errnum == 0)
		errnum = open_events(w);
	if (errnum == 0)
		errnum = set_alarms(w);
	if (errnum == 0 && brood_prepare() != BATON_OK)
		errnum = errno;
	return errnum;
}

static void tell(struct warden *w, struct charge *c)
{
	if (w->runner_gone || report_pass(ERRAND_SOCKET, &c->report, true) != ERRAND_NOT_NOW)
		*c = w->charges[--w->count];
	else
		w->full = true;
}

/* Tells what is to be told, as far as the runner reads it. */
static void tell_all(struct warden *w)
{
	w->full = false;
	for (size_t i = w->count; i-- > 0 && !w->full;) {
		if (w->charges[i].over)
			tell(w, &w->charges[i]);
	}
}

static void end_charge(struct charge *c, enum ward_how how, int code)
{
	c->over = true;
	c->report = (struct errand_report){
		.magic = ERRAND_MAGIC,
		.kind = ERRAND_ENDED,
		.serial = c->serial,
		.how = (int32_t)how,
		.code = code,
	};
}

static struct baton_mono now_awake(void)
{
	const struct baton_clock *clock = baton_clock_awake();
	return clock->now(clock);
}

/* Also one that was stopped hears it. */
static void rouse(int32_t nanny, int sig)
{
	kill(nanny, sig);
	kill(nanny, SIGCONT);
}

/* The nanny kills what it has, and so do we: whichever of us is killed meanwhile, the other goes
 * on. So nannies are not killed unless they do not come to an end. */
static void doom(struct charge *c)
{
	if (c->doomed)
		return;
	c->doomed = true;
	c->patience = baton_mono_add(now_awake(), baton_duration_ms(PATIENCE_MS));
	if (c->nanny > 0)
		rouse(c->nanny, NANNY_KILL);
}

static void doom_all(struct warden *w)
{
	for (size_t i = 0; i < w->count; i++)
		doom(&w->charges[i]);
}

static bool has_doomed(const struct warden *w)
{
	for (size_t i = 0; i < w->count; i++) {
		if (w->charges[i].doomed && !w->charges[i].over)
			return true;
	}
	return false;
}

/* Looks after children, whenever something happens: their signals only wake. */
static void reap(struct warden *w)
{
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG | __WALL);
		if (pid < 0 && errno == EINTR)
			continue;
		w->empty = pid < 0;
		if (pid <= 0)
			return;
		size_t i = 0;
		while (i < w->count && w->charges[i].nanny != pid)
			i++;
		if (i == w->count)
			continue;
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
			w->charges[i] = w->charges[--w->count];
		} else {
			w->charges[i].nanny = 0;
			w->charges[i].doomed = true;
		}
	}
}

/* Nannies that live, by whether they are doomed. */
struct nannies {
	int32_t *all;
	const int32_t *spared;
	const int32_t *doomed;
	size_t spared_count;
	size_t doomed_count;
	size_t room;
};

static bool list_nannies(const struct warden *w, struct nannies *ret)
{
	size_t spared = 0, doomed = 0, room = w->count + 1;
	int32_t *all = mem_new(baton_alloc_libc(), room, sizeof *all);
	if (!all)
		return false;
	for (size_t i = 0; i < w->count; i++) {
		const struct charge *c = &w->charges[i];
		if (c->nanny > 0 && c->doomed)
			all[room - ++doomed] = c->nanny;
		else if (c->nanny > 0)
			all[spared++] = c->nanny;
	}
	*ret = (struct nannies){
		.all = all,
		.spared = all,
		.doomed = all + room - doomed,
		.spared_count = spared,
		.doomed_count = doomed,
		.room = room,
	};
	return true;
}

static void nannies_done(struct nannies *n)
{
	mem_free(baton_alloc_libc(), n->all, n->room, sizeof *n->all);
}

/* Kills whoever is under no nanny that is to live, and returns whether there was nobody without a
 * nanny. */
static bool sweep(const struct warden *w)
{
	AUTO(tree_done) struct tree tree = {.alloc = baton_alloc_libc()};
	AUTO(nannies_done) struct nannies nannies = {.room = 0};
	if (w->empty)
		return true;
	if (!list_nannies(w, &nannies) || tree_look(&tree) != BATON_OK)
		return false;
	tree_spare(&tree, nannies.spared, nannies.spared_count);
	tree_excuse(&tree, nannies.doomed, nannies.doomed_count);
	tree_signal(&tree, SIGKILL);
	tree_spare(&tree, nannies.doomed, nannies.doomed_count);
	return tree.count == 0;
}

/* Ends those who are doomed. */
static void execute(struct warden *w)
{
	if (!has_doomed(w) && !w->runner_gone)
		return;
	bool nobody = sweep(w);
	struct baton_mono now = now_awake();
	for (size_t i = 0; i < w->count; i++) {
		struct charge *c = &w->charges[i];
		if (c->nanny > 0 && c->doomed && !baton_mono_live(c->patience, now))
			kill(c->nanny, SIGKILL);
		if (nobody && c->nanny == 0 && !c->over)
			end_charge(c, WARD_SIGNALED, SIGKILL);
	}
}

/* In the nanny: closes what is the guardian's. */
_Noreturn static void be_nanny(struct warden *w, const struct errand_order *order, int *fds,
                               int32_t guardian)
{
	close(w->timer);
	close(ERRAND_WAKE);
	fd_closep(&w->runner);
	struct nanny_birth birth = {
		.guardian = guardian,
		.socket = ERRAND_SOCKET,
		.signals = w->signals,
		.timer = ERRAND_TIMER,
		.keep = w->keep,
		.keep_count = sizeof w->keep / sizeof *w->keep,
		.order = order,
		.fds = fds,
	};
	nanny_live(&birth);
}

/* Room for a charge is there. */
static void start(struct warden *w, const struct errand_order *order, int *fds, bool complete)
{
	struct charge *c = &w->charges[w->count++];
	*c = (struct charge){.serial = order->serial};
	int32_t guardian = getpid();
	if (!complete) {
		end_charge(c, WARD_UNSTARTED, EMFILE);
		return;
	}
	if (is_late(w)) {
		end_charge(c, WARD_UNSTARTED, ECANCELED);
		return;
	}
	pid_t pid = fork();
	if (pid == 0)
		be_nanny(w, order, fds, guardian);
	if (pid < 0) {
		end_charge(c, WARD_UNSTARTED, errno);
		return;
	}
	c->nanny = pid;
	w->empty = false;
}

static void pass_on(struct warden *w, uint64_t serial, int sig)
{
	for (size_t i = 0; i < w->count; i++) {
		if (w->charges[i].serial == serial && w->charges[i].nanny > 0)
			rouse(w->charges[i].nanny, sig);
	}
}

static void runner_went(struct warden *w)
{
	w->runner_gone = true;
	doom_all(w);
}

static void obey(struct warden *w, const struct errand_order *order, int *fds, bool complete)
{
	switch ((enum order_kind)order->kind) {
	case ERRAND_START:
		start(w, order, fds, complete);
		break;
	case ERRAND_STOP:
		pass_on(w, order->serial, NANNY_STOP);
		break;
	case ERRAND_KILL:
		pass_on(w, order->serial, NANNY_KILL);
		break;
	}
}

static bool make_room(struct warden *w)
{
	if (w->count < w->room)
		return true;
	size_t room = w->room > 0 ? w->room * 2 : ROOM_FIRST;
	struct charge *charges =
		mem_resize(baton_alloc_libc(), w->charges, w->room, room, sizeof *charges);
	if (!charges)
		return false;
	w->charges = charges;
	w->room = room;
	return true;
}

/* Sets the timer to the deadline, unless it is over: then all who live are killed. */
static void mind_deadline(struct warden *w)
{
	int64_t deadline = deadline_of(w);
	if (is_late(w))
		doom_all(w);
	if (deadline == w->armed)
		return;
	struct itimerspec when = {.it_value.tv_sec = 0};
	if (deadline != INT64_MAX)
		when.it_value = (struct timespec){.tv_sec = deadline / NS_PER_S,
		                                  .tv_nsec = deadline % NS_PER_S};
	struct itimerspec again = when;
	again.it_interval.tv_nsec = ALARM_NS;
	if (timerfd_settime(w->timer, TFD_TIMER_ABSTIME, &when, NULL) == 0 &&
	    timer_settime(w->alarm, TIMER_ABSTIME, &again, NULL) == 0)
		w->armed = deadline;
}

/* Does what the runner wants; a few things at a time, because the deadline is not to wait. */
static void hear_runner(struct warden *w)
{
	struct errand_order order;
	int fds[ORDER_FDS];
	for (int i = 0; i < 16 && !w->runner_gone; i++) {
		w->short_of_memory = !make_room(w);
		if (w->short_of_memory)
			return;
		enum errand_got got = order_get(ERRAND_SOCKET, &order, fds);
		if (got == ERRAND_NOT_NOW)
			return;
		if (got == ERRAND_HUNG_UP)
			runner_went(w);
		/* What the runner has said before is known before anything starts. */
		mind_deadline(w);
		if (got != ERRAND_HUNG_UP && order.kind != 0)
			obey(w, &order, fds, got == ERRAND_DONE);
		order_close(fds);
	}
}

/* Whether the runner could be in the way of others. */
static bool may_lock(const struct warden *w)
{
	return w->page->lock[0] && !w->runner_gone && w->runner >= 0 && is_late(w);
}

/* Waits for nobody who does not read it. */
static void say_killed(const struct warden *w)
{
	char said[192];
	struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};
	int length = snprintf(said, sizeof said,
	                      "baton-guardian: the runner, process %d, is killed: it was stopped "
	                      "in the middle of a write, and kept everybody from the store beyond "
	                      "its time; start it again\n",
	                      w->runner_pid);
	if (poll(&fd, 1, 0) == 1 && (fd.revents & POLLOUT) != 0)
		(void)!write(STDERR_FILENO, said, (size_t)length);
}

/* A runner that was frozen in the middle of a write keeps everybody from writing, and has nothing
 * to lose any more: its work is others'. */
static void free_lock(struct warden *w)
{
	int32_t holder;
	bool locks = may_lock(w) && process_is_stopped(w->runner_pid) &&
	             process_of_lock(w->page->lock, w->page->lock_at, &holder) &&
	             holder == w->runner_pid;
	w->locked = locks ? w->locked + 1 : 0;
	w->looked = now_awake();
	if (w->locked < LOCKED_TIMES)
		return;
	(void)syscall(SYS_pidfd_send_signal, w->runner, SIGKILL, NULL, 0);
	say_killed(w);
	w->locked = 0;
}

static void drain(int fd, void *into, size_t size)
{
	while (read(fd, into, size) > 0)
		;
}

static void wait_for_something(struct warden *w)
{
	short telling = w->full ? POLLOUT : 0;
	struct pollfd fds[] = {
		{.fd = w->signals, .events = POLLIN},
		{.fd = w->timer, .events = POLLIN},
		{.fd = ERRAND_WAKE, .events = POLLIN},
		{.fd = w->runner_gone ? -1 : ERRAND_SOCKET, .events = (short)(POLLIN | telling)},
		{.fd = w->runner_gone ? -1 : w->runner, .events = POLLIN},
	};
	bool retries = w->runner_gone || w->short_of_memory || has_doomed(w);
	int patience = retries ? RETRY_MS : may_lock(w) ? LOCKED_MS : -1;
	if (w->short_of_memory)
		fds[3].fd = -1;
	(void)poll(fds, sizeof fds / sizeof *fds, patience);
	if (!baton_mono_live(baton_mono_add(w->looked, baton_duration_ms(LOCKED_MS)), now_awake()))
		free_lock(w);
	struct signalfd_siginfo info;
	uint64_t number;
	if (fds[0].revents)
		drain(w->signals, &info, sizeof info);
	if (fds[1].revents)
		drain(w->timer, &number, sizeof number);
	if (fds[2].revents)
		drain(ERRAND_WAKE, &number, sizeof number);
	if (fds[4].revents)
		runner_went(w);
}

static void watch_over(struct warden *w)
{
	while (!w->runner_gone || !w->empty) {
		mind_deadline(w);
		wait_for_something(w);
		mind_deadline(w);
		hear_runner(w);
		reap(w);
		execute(w);
		tell_all(w);
	}
}

int warden_live(void)
{
	struct warden w = {.signals = -1, .timer = -1, .runner = -1, .armed = INT64_MAX};
	int errnum = settle(&w);
	struct errand_report report = {
		.magic = ERRAND_MAGIC,
		.kind = errnum == 0 ? ERRAND_READY : ERRAND_REFUSED,
		.pid = getpid(),
		.code = errnum,
	};
	/* Whoever has started us by hand has no such socket. */
	if (report_pass(ERRAND_SOCKET, &report, true) != ERRAND_DONE || errnum != 0)
		return EX_USAGE;
	w.empty = true;
	watch_over(&w);
	return 0;
}
