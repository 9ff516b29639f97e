/* A guardian and the commands under it, seen from the runner. */
#include "guardian/wards.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "base/mem.h"
#include "guardian/errand.h"
#include "guardian/hire.h"
#include "guardian/latch.h"
#include "guardian/life.h"
#include "guardian/ward.h"

/* How much is looked at by one call of wards_next(). */
#define EVENTS_MAX 64
#define REPORTS_MAX 64

#define NS_PER_S INT64_C(1000000000)

/* How long it is from one round to the next: twice as long each time. */
#define ROUNDS_MIN_NS INT64_C(5000000)
#define ROUNDS_MAX_NS NS_PER_S

/* A serial has the place of the command in its low bits. */
#define SERIAL_STEP ((uint64_t)WARDS_MAX)

/* What happens at a descriptor; beside it is the place of a command. */
enum source {
	SOURCE_SOCKET = 0,
	SOURCE_GUARDIAN, /* its pidfd */
	SOURCE_LEASH,
	SOURCE_ROUNDS,
	SOURCE_BELL,
	SOURCE_OUT,
	SOURCE_ERR,
	SOURCES
};

struct wards {
	const struct baton_alloc *alloc; /* [const] */
	struct hired h;
	struct latch life;
	int rounds; /* a timer: what is left of a guardian that died is looked after again */
	int bell;   /* readable: something is in the list though nothing has happened */
	int epoll;
	bool lost; /* the guardian has died */
	bool lost_told;
	bool gone;                   /* nobody lives of all whom it had */
	struct baton_duration pause; /* until the next round */
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

static enum baton_err events_open(struct wards *w)
{
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	w->rounds = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	w->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->epoll < 0 || w->bell < 0 || w->rounds < 0 || !watch(w, w->bell, SOURCE_BELL, 0) ||
	    !watch(w, w->rounds, SOURCE_ROUNDS, 0) || !watch(w, w->h.socket, SOURCE_SOCKET, 0) ||
	    !watch(w, w->h.guardian, SOURCE_GUARDIAN, 0) || !watch(w, w->h.leash, SOURCE_LEASH, 0))
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
	w->h = HIRED_NONE;
	w->life.fd = w->epoll = w->bell = w->rounds = -1;
	enum baton_err e = life_take(&w->life, ask->life);
	if (e == BATON_OK)
		e = hire(&w->h, ask, w->life.fd);
	if (e == BATON_OK)
		e = events_open(w);
	if (e == BATON_OK)
		*ret = TAKE(w);
	return e;
}

static void close_fd(int *fd)
{
	fd_closep(fd);
	*fd = -1;
}

void wards_close(struct wards *w)
{
	if (!w)
		return;
	int errnum = errno;
	hired_end(&w->h);
	for (size_t i = 0; i < w->used; i++)
		ward_free(w->wards[i]);
	ward_free(w->retired);
	close_fd(&w->epoll);
	close_fd(&w->rounds);
	close_fd(&w->bell);
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

bool wards_are_gone(const struct wards *w)
{
	return w->gone;
}

int32_t wards_pid(const struct wards *w)
{
	return w->h.pid;
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
	(void)timerfd_settime(w->h.timer, TFD_TIMER_ABSTIME, &when, NULL);
}

void wards_deadline(struct wards *w, struct baton_mono hard_stop)
{
	/* It comes first: what the guardian starts by the word has a nanny that waits for it. */
	timer_set(w, hard_stop);
	/* Pairs with the load in the guardian, which looks again at whatever moment it had set its
	 * timer to: so it need not know of a later one now. */
	int64_t before =
		atomic_exchange_explicit(&w->h.page->deadline, hard_stop.ns, memory_order_acq_rel);
	if (hard_stop.ns >= before)
		return;
	ring(w->h.wake);
	hired_rouse(&w->h);
}

/* Lets the socket be waited for as long as something is queued. */
static void want_writable(struct wards *w, bool wanted)
{
	struct epoll_event event = {.events = EPOLLIN | (wanted ? EPOLLOUT : 0),
	                            .data.u64 = SOURCE_SOCKET};
	if (w->writes != wanted && epoll_ctl(w->epoll, EPOLL_CTL_MOD, w->h.socket, &event) == 0)
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
		if (order_pass(w->h.socket, &ward->order, ward->fds) == ERRAND_NOT_NOW)
			return false;
		ward->queued = false;
		order_close(ward->fds);
	}
	if (ward->kill_wanted || ward->stop_wanted) {
		if (order_pass(w->h.socket, &stop, NULL) == ERRAND_NOT_NOW)
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
	hired_rouse(&w->h);
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
		enum errand_got got = report_get(w->h.socket, &report);
		if (got == ERRAND_HUNG_UP)
			forget(w, w->h.socket);
		if (got == ERRAND_HUNG_UP || got == ERRAND_NOT_NOW)
			return false;
		if (got == ERRAND_DONE)
			hear_report(w, &report);
	}
	return true;
}

/* Nobody else would: nannies that were stopped go on, and what is under none is killed, again and
 * again until nobody is left. */
static void make_round(struct wards *w)
{
	uint64_t number;
	(void)!read(w->rounds, &number, sizeof number);
	if (!w->lost || w->gone)
		return;
	hired_rouse(&w->h);
	hired_kill_orphans(&w->h);
	w->pause.ns = w->pause.ns < ROUNDS_MAX_NS / 2 ? w->pause.ns * 2 : ROUNDS_MAX_NS;
	const struct itimerspec next = {
		.it_value = {.tv_sec = w->pause.ns / NS_PER_S, .tv_nsec = w->pause.ns % NS_PER_S}};
	(void)timerfd_settime(w->rounds, 0, &next, NULL);
}

/* Those that were not sent will never be. */
static void guardian_lost(struct wards *w)
{
	forget(w, w->h.guardian);
	hired_reap(&w->h);
	w->lost = true;
	w->pause.ns = ROUNDS_MIN_NS;
	want_writable(w, false);
	for (size_t i = 0; i < w->used; i++) {
		if (w->wards[i] && w->wards[i]->queued)
			end_as(w, w->wards[i], WARD_UNSTARTED, ECANCELED);
	}
	make_round(w);
}

/* It ends when nobody has it any more. */
static void hear_leash(struct wards *w)
{
	if (!hired_are_gone(&w->h))
		return;
	forget(w, w->h.leash);
	w->gone = true;
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
	case SOURCE_ROUNDS:
		make_round(w);
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
	return tell_next(w, ret);
}
