/* Handlers that are persistent workers. */
#include "runner/streams.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/fail.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "runner/commands.h"
#include "runner/lodging.h"
#include "runner/reply.h"
#include "store/store.h"

#define EVENTS_MAX 64
#define READS_MAX 64   /* of one worker at a time */
#define SHOWN_MAX 1024 /* bytes of progress in the log */

static uint32_t room(const struct streams *s)
{
	return s->o.processes * s->o.in_flight;
}

enum baton_err streams_init(struct streams *s, const struct streams_options *options)
{
	*s = (struct streams){.o = *options, .due = BATON_MONO_NEVER};
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
	arena_init(&s->arena, options->alloc);
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, wards_fd(s->o.wards), &event) != 0)
		return fail_errno(errno, "no descriptor to wait for workers");
	s->workers = mem_new(options->alloc, options->processes, sizeof *s->workers);
	s->all = mem_new(options->alloc, room(s), sizeof *s->all);
	if (!s->workers || !s->all)
		return fail_memory(room(s) * sizeof *s->all, "workers");
	for (uint32_t i = 0; i < options->processes; i++)
		worker_init(&s->workers[i], options->alloc);
	for (uint32_t i = 0; i < room(s); i++) {
		s->all[i].next = s->spare;
		s->spare = &s->all[i];
	}
	return lodging_init(s);
}

void streams_done(struct streams *s)
{
	if (!s->o.wards)
		return;
	for (uint32_t i = 0; i < s->o.processes && s->workers; i++)
		worker_shut(&s->workers[i]);
	lodging_done(s);
	arena_done(&s->arena);
	mem_free(s->o.alloc, s->workers, s->o.processes, sizeof *s->workers);
	mem_free(s->o.alloc, s->all, room(s), sizeof *s->all);
	fd_closep(&s->epoll);
	s->o.wards = NULL;
}

int streams_fd(const struct streams *s)
{
	return s->epoll;
}

struct baton_mono streams_due(const struct streams *s)
{
	return s->due;
}

/* Something has to be looked at then. */
void streams_note(struct streams *s, struct baton_mono at)
{
	if (at.ns < s->due.ns)
		s->due = at;
}

static struct baton_duration grace_of(const struct streams *s)
{
	return commands_grace(s->o.handler);
}

/* Ends of claims. */

static void end(struct streams *s, struct errands *list, struct errand *errand,
                const struct baton_work_end *how)
{
	uint64_t run = errand->run;
	errands_remove(list, errand);
	errand->next = s->spare;
	s->spare = errand;
	s->o.ended(s->o.arg, run, how);
}

static void end_as(struct streams *s, struct errands *list, struct errand *errand,
                   enum baton_work_how how, const char *error)
{
	const struct baton_work_end ended = {.how = how, .error = baton_str_z(error)};
	end(s, list, errand, &ended);
}

/* What a worker that has ended leaves behind. What it did not get goes to another one. */
static void end_left(struct streams *s, struct worker *w)
{
	char late[64], span[BATON_DURATION_TEXT];
	struct errand *errand;
	while ((errand = w->errands.first)) {
		const bool held =
			errand->claim->hold.ns > 0 && baton_mono_live(errand->last, errand->due);
		snprintf(late, sizeof late,
		         held ? "it held its key for %s" : "it took longer than %s",
		         baton_duration_print(held ? errand->claim->hold : s->o.handler->timeout,
		                              span));
		if (!errand->given) {
			errands_remove(&w->errands, errand);
			errands_add(&s->waiting, errand);
		} else if (errand->late) {
			end_as(s, &w->errands, errand, BATON_FAIL, late);
		} else if (w->blameless || (!s->lost && s->o.stopped(s->o.arg, errand->run))) {
			end_as(s, &w->errands, errand, BATON_ABANDON, "");
		} else {
			end_as(s, &w->errands, errand, BATON_FAIL, w->why);
		}
	}
}

/* Kills it; what it had ends when nothing of it lives any more. */
static void doom(struct streams *s, struct worker *w)
{
	if (w->is == WORKER_DOOMED)
		return;
	w->is = WORKER_DOOMED;
	(void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, w->fd, NULL);
	wards_stop(s->o.wards, w->ward, true);
}

static void nonsense(struct streams *s, struct worker *w, const char *what)
{
	BATON_LOG(s->o.log, BATON_LOG_ERROR, "a worker wrote nonsense, and is ended",
	          baton_field_int("pid", w->pid), baton_field_str("why", baton_str_z(what)));
	snprintf(w->why, sizeof w->why, "the worker wrote nonsense: %s", what);
	doom(s, w);
}

/* Lines of workers. */

static struct errand *find(const struct worker *w, const char *claim)
{
	struct errand *errand = w->errands.first;
	while (errand && !(errand->given && strcmp(errand->claim->proof.id, claim) == 0))
		errand = errand->next;
	return errand;
}

/* It holds its key, if that has a limit, from now on. */
static void renew(struct streams *s, struct errand *errand, struct baton_mono now)
{
	const struct baton_duration hold = errand->claim->hold;
	if (hold.ns == 0 || errand->cancel)
		return;
	const struct baton_mono until = baton_mono_add(now, hold);
	errand->due = until.ns < errand->last.ns ? until : errand->last;
	streams_note(s, errand->due);
}

static void progress(struct streams *s, struct errand *errand, const struct reply *reply)
{
	struct baton_str text = reply->progress;
	progress_said(&errand->progress, text, reply->is_text);
	s->progressed = true;
	renew(s, errand, s->heard);
	if (text.len > SHOWN_MAX)
		text.len = utf8_cut(text.ptr, SHOWN_MAX);
	BATON_LOG(s->o.log, BATON_LOG_INFO, "progress",
	          baton_field_str("claim", baton_str_z(reply->claim)),
	          baton_field_str("progress", text));
}

static void answered(struct streams *s, struct worker *w, struct errand *errand,
                     const struct baton_work_end *how)
{
	if (store_check_ends(how, 1) != BATON_OK)
		end_as(s, &w->errands, errand, BATON_FAIL, baton_err_detail());
	else if (how->how == BATON_FAIL && s->o.stopped(s->o.arg, errand->run))
		end_as(s, &w->errands, errand, BATON_ABANDON, "");
	else
		end(s, &w->errands, errand, how);
}

/* One at a time: who ends a claim has read what there was more. */
static void checkpoint(struct streams *s, struct worker *w, struct errand *errand, uint32_t max)
{
	char error[REPLY_ERROR];
	if (!errand->asks) {
		errand->asks = true;
		s->o.more(s->o.arg, errand->run, max);
		return;
	}
	snprintf(error, sizeof error, "claim '%s' has a checkpoint that was not answered yet",
	         errand->claim->proof.id);
	nonsense(s, w, error);
}

static void take_reply(struct streams *s, struct worker *w, struct errand *errand,
                       const struct reply *reply)
{
	if (reply->is_progress)
		progress(s, errand, reply);
	else if (reply->checkpoint > 0 || errand->asks)
		checkpoint(s, w, errand, reply->checkpoint);
	else
		answered(s, w, errand, &reply->end);
}

static void take_line(struct streams *s, struct worker *w, struct baton_str line)
{
	struct reply reply;
	char error[REPLY_ERROR];
	arena_reset(&s->arena);
	if (line.len > REPLY_LINE_MAX) {
		nonsense(s, w, "a line of more than 64 MiB");
		return;
	}
	if (!reply_parse(line, &s->arena, &reply, error)) {
		nonsense(s, w, error);
		return;
	}
	w->heard = true;
	if (reply.about != REPLY_CLAIM) {
		if (!lodging_hear(s, w, &reply, error))
			nonsense(s, w, error);
		return;
	}
	struct errand *errand = find(w, reply.claim);
	if (!errand) {
		snprintf(error, sizeof error, "claim '%s' is not one that it has, or has still",
		         reply.claim);
		nonsense(s, w, error);
	} else {
		take_reply(s, w, errand, &reply);
	}
}

static void take_lines(struct streams *s, struct worker *w)
{
	struct baton_str line;
	while (w->is != WORKER_DOOMED && worker_line(w, &line))
		take_line(s, w, line);
	if (w->is != WORKER_DOOMED && worker_rest(w) > REPLY_LINE_MAX)
		nonsense(s, w, "a line of more than 64 MiB");
}

/* It has closed its end. It may be about to end; if it does not, it is of no use. */
static void hung_up(struct streams *s, struct worker *w, struct baton_mono now)
{
	(void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, w->fd, NULL);
	w->gone = true;
	if (worker_rest(w) > 0) {
		nonsense(s, w, "half a line at its end");
		return;
	}
	if (w->is == WORKER_ON) {
		w->is = WORKER_LEAVING;
		w->end_at = baton_mono_add(now, grace_of(s));
		streams_note(s, w->end_at);
	}
}

static void read_worker(struct streams *s, struct worker *w, struct baton_mono now)
{
	s->heard = now;
	enum worker_got got = WORKER_SOME;
	for (int i = 0; i < READS_MAX && got == WORKER_SOME; i++) {
		if (w->is == WORKER_DOOMED || w->gone)
			return;
		if (worker_read(w, &got) != BATON_OK)
			nonsense(s, w, baton_err_detail());
		take_lines(s, w);
		if (w->is != WORKER_DOOMED && got == WORKER_END)
			hung_up(s, w, now);
	}
}

/* Lines for workers. */

static void want_writable(struct streams *s, struct worker *w, bool wanted)
{
	struct epoll_event event = {.events = EPOLLIN | (wanted ? EPOLLOUT : 0), .data.ptr = w};
	if (w->writes != wanted && epoll_ctl(s->epoll, EPOLL_CTL_MOD, w->fd, &event) == 0)
		w->writes = wanted;
}

static void give(struct streams *s, struct worker *w, struct errand *errand, struct baton_mono now)
{
	if (worker_give(w, errand->claim) != BATON_OK) {
		end_as(s, &w->errands, errand, BATON_FAIL, baton_err_detail());
		return;
	}
	errand->given = true;
	const struct baton_duration timeout = s->o.handler->timeout;
	if (timeout.ns > 0)
		errand->last = errand->due = baton_mono_add(now, timeout);
	renew(s, errand, now);
	streams_note(s, errand->due);
}

/* The answer to a checkpoint. What cannot be told ends the worker, so that it is not completed. */
static void give_more(struct streams *s, struct worker *w, struct errand *errand)
{
	if (worker_more(w, errand->claim, errand->more) != BATON_OK)
		nonsense(s, w, baton_err_detail());
	errand->asks = errand->gives = false;
}

static void make_lines(struct streams *s, struct worker *w, struct errand *errand,
                       struct baton_mono now)
{
	bool cancel = errand->given && errand->cancel;
	errand->cancel = false;
	/* Without memory for a word it is not told; its time is over all the same. */
	if (cancel)
		(void)worker_cancel(w, errand->claim);
	if (errand->given && errand->gives)
		give_more(s, w, errand);
	else if (!errand->given)
		give(s, w, errand, now);
}

/* Makes the lines that are to be made, as far as it is of use. */
static void fill(struct streams *s, struct worker *w, struct baton_mono now)
{
	struct errand *next;
	w->todo = w->passing;
	if (w->passing)
		return;
	for (struct errand *errand = w->errands.first; errand; errand = next) {
		next = errand->next;
		if (errand->given && !errand->cancel && !errand->gives)
			continue;
		if (worker_is_full(w)) {
			w->todo = true;
			return;
		}
		make_lines(s, w, errand, now);
		if (w->is == WORKER_DOOMED)
			return;
	}
	lodging_fill(s, w);
}

static void write_worker(struct streams *s, struct worker *w, struct baton_mono now)
{
	bool all = true;
	while (all && w->is == WORKER_ON && (w->todo || w->written < w->out.len)) {
		fill(s, w, now);
		all = worker_write(w);
		lodging_written(s, w);
	}
	if (w->is == WORKER_ON)
		want_writable(s, w, !all);
}

/* Processes. */

/* There is no process any more, and none for a while. */
static void set_aside(struct worker *w, struct baton_mono now)
{
	w->is = WORKER_OFF;
	w->pause = worker_pause(w->pause, baton_mono_sub(now, w->started));
	w->not_before = baton_mono_add(now, w->pause);
	worker_shut(w);
}

/* What it gets is its descriptor 3. */
static enum baton_err launch(struct streams *s, struct worker *w)
{
	int ends[2];
	char visits[sizeof "BATON_VISITS=" + 10];
	char *env[] = {visits, NULL};
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = w};
	snprintf(visits, sizeof visits, "BATON_VISITS=%" PRIu32, s->o.visits);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return fail_errno(errno, "no socket for a worker");
	AUTO(fd_closep) int theirs = ends[1];
	const struct ward_spec spec = {
		.id = ++s->wards,
		.argv = s->o.handler->command,
		.env = s->o.visits > 0 ? env : NULL,
		.channel = theirs,
		.grace = grace_of(s),
		.output_said = true,
	};
	w->fd = ends[0];
	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, w->fd, &event) != 0)
		return fail_errno(errno, "what a worker writes cannot be waited for");
	w->ward = spec.id;
	return wards_start(s->o.wards, &spec);
}

enum baton_err streams_begin(struct streams *s, struct worker *w, struct baton_mono now)
{
	w->pid = 0;
	w->why[0] = '\0';
	w->blameless = w->dismissed = false;
	w->end_at = BATON_MONO_NEVER;
	bool again = w->started.ns != 0;
	w->started = now;
	enum baton_err e = launch(s, w);
	if (e == BATON_OK) {
		s->again += again;
		w->is = WORKER_ON;
		s->live++;
		return BATON_OK;
	}
	set_aside(w, now);
	return e;
}

/* For a claim, which otherwise fails. */
static bool start(struct streams *s, struct worker *w, struct baton_mono now)
{
	enum baton_err e = streams_begin(s, w, now);
	if (e == BATON_OK)
		return true;
	end_as(s, &s->waiting, s->waiting.first, e == BATON_GONE ? BATON_ABANDON : BATON_FAIL,
	       baton_err_detail());
	return false;
}

/* The one that has the least to do; NULL: none has room now, or may be started. */
static struct worker *choose(struct streams *s, struct baton_mono now)
{
	struct worker *best = NULL;
	for (uint32_t i = 0; i < s->o.processes; i++) {
		struct worker *w = &s->workers[i];
		bool off = w->is == WORKER_OFF;
		if (off && now.ns < w->not_before.ns)
			streams_note(s, w->not_before);
		else if ((off || w->is == WORKER_ON) && w->errands.count < s->o.in_flight &&
		         (!best || w->errands.count < best->errands.count ||
		          (w->errands.count == best->errands.count && best->is == WORKER_OFF &&
		           !off)))
			best = w;
	}
	return best;
}

static void assign(struct streams *s, struct baton_mono now)
{
	struct worker *w;
	while (s->waiting.first && (w = choose(s, now))) {
		if (w->is == WORKER_OFF && !start(s, w, now))
			continue;
		struct errand *errand = s->waiting.first;
		errands_remove(&s->waiting, errand);
		errands_add(&w->errands, errand);
		w->todo = true;
	}
}

static struct worker *worker_of(struct streams *s, uint64_t ward)
{
	for (uint32_t i = 0; i < s->o.processes; i++) {
		if (s->workers[i].is != WORKER_OFF && s->workers[i].ward == ward)
			return &s->workers[i];
	}
	return NULL;
}

/* What it said before counts, as far as it was all of a line. */
static void ended(struct streams *s, struct worker *w, const struct ward_news *news,
                  struct baton_mono now)
{
	read_worker(s, w, now);
	bool expected = w->is == WORKER_DOOMED || w->dismissed;
	if (w->why[0] == '\0')
		commands_why(news, s->o.handler, w->why, sizeof w->why);
	end_left(s, w);
	lodging_left(s, w);
	set_aside(w, now);
	s->live--;
	if (!expected)
		BATON_LOG(s->o.log, BATON_LOG_WARN, "a worker has ended",
		          baton_field_int("pid", w->pid),
		          baton_field_str("how", baton_str_z(w->why)),
		          baton_field_duration("pause", w->pause));
}

static void say(const struct streams *s, const struct worker *w, struct baton_str line)
{
	BATON_LOG(s->o.log, BATON_LOG_INFO, "a worker says", baton_field_int("pid", w->pid),
	          baton_field_str("line", line));
}

static void hear_wards(struct streams *s, struct baton_mono now)
{
	struct ward_news news;
	while (wards_next(s->o.wards, &news)) {
		struct worker *w = worker_of(s, news.id);
		if (news.kind == WARD_GUARDIAN_LOST)
			s->lost = true;
		if (!w)
			continue;
		switch (news.kind) {
		case WARD_BEGUN:
			w->pid = news.pid;
			break;
		case WARD_SAID:
			say(s, w, news.text);
			break;
		case WARD_ENDED:
			ended(s, w, &news, now);
			break;
		case WARD_GUARDIAN_LOST:
			break;
		}
	}
}

void streams_hear(struct streams *s, struct baton_mono now)
{
	struct epoll_event events[EVENTS_MAX];
	int count = epoll_wait(s->epoll, events, EVENTS_MAX, 0);
	for (int i = 0; i < count; i++) {
		struct worker *w = events[i].data.ptr;
		if (!w)
			continue;
		if (events[i].events & ~(uint32_t)EPOLLOUT)
			read_worker(s, w, now);
		if (w->is == WORKER_ON && !w->gone)
			write_worker(s, w, now);
	}
	hear_wards(s, now);
}

/* Times. */

static void overdue(struct streams *s, struct worker *w, struct errand *errand)
{
	errand->late = !s->o.stopped(s->o.arg, errand->run);
	w->blameless = true;
	BATON_LOG(s->o.log, BATON_LOG_WARN, "a worker did not end a claim in time, and is ended",
	          baton_field_int("pid", w->pid),
	          baton_field_str("claim", baton_str_z(errand->claim->proof.id)));
	doom(s, w);
}

/* Whose time is over ends its worker, and so all that this one has. */
static void check_errands(struct streams *s, struct worker *w, struct baton_mono now)
{
	for (struct errand *errand = w->errands.first; errand; errand = errand->next) {
		if (baton_mono_live(errand->due, now))
			streams_note(s, errand->due);
		else
			overdue(s, w, errand);
	}
}

/* One that should leave is still here. */
static void overstayed(struct streams *s, struct worker *w)
{
	w->blameless = true;
	BATON_LOG(s->o.log, BATON_LOG_WARN,
	          "a worker did not end a connection in time, and is ended",
	          baton_field_int("pid", w->pid));
	doom(s, w);
}

static void useless(struct streams *s, struct worker *w)
{
	snprintf(w->why, sizeof w->why, "the worker closed its descriptor 3");
	BATON_LOG(s->o.log, BATON_LOG_WARN, "a worker closed its descriptor 3, and is ended",
	          baton_field_int("pid", w->pid));
	doom(s, w);
}

static void check_times(struct streams *s, struct baton_mono now)
{
	s->due = BATON_MONO_NEVER;
	lodging_check(s, now);
	for (uint32_t i = 0; i < s->o.processes; i++) {
		struct worker *w = &s->workers[i];
		if (w->is == WORKER_OFF || w->is == WORKER_DOOMED)
			continue;
		check_errands(s, w, now);
		if (w->is != WORKER_DOOMED && lodging_is_late(s, w, now))
			overstayed(s, w);
		if (baton_mono_live(w->end_at, now))
			streams_note(s, w->end_at);
		else if (w->is != WORKER_DOOMED)
			useless(s, w);
	}
}

void streams_act(struct streams *s, struct baton_mono now)
{
	if (!baton_mono_live(s->due, now))
		check_times(s, now);
	assign(s, now);
	lodging_assign(s, now);
	for (uint32_t i = 0; i < s->o.processes; i++) {
		if (s->workers[i].is == WORKER_ON && s->workers[i].todo && !s->workers[i].writes)
			write_worker(s, &s->workers[i], now);
	}
}

void streams_start(struct streams *s, uint64_t run, const struct baton_work_claim *claim)
{
	struct errand *errand = s->spare;
	CHECK(errand);
	s->spare = errand->next;
	*errand = (struct errand){.run = run,
	                          .claim = claim,
	                          .due = BATON_MONO_NEVER,
	                          .last = BATON_MONO_NEVER};
	errands_add(&s->waiting, errand);
}

static struct errand *find_run(const struct errands *list, uint64_t run)
{
	struct errand *errand = list->first;
	while (errand && errand->run != run)
		errand = errand->next;
	return errand;
}

static void stop_given(struct streams *s, struct worker *w, struct errand *errand,
                       struct baton_mono now)
{
	struct baton_mono at = baton_mono_add(now, grace_of(s));
	errand->cancel = true;
	w->todo = true;
	if (at.ns < errand->due.ns)
		errand->due = at;
	streams_note(s, errand->due);
}

void streams_stop(struct streams *s, uint64_t run, struct baton_mono now)
{
	struct errand *errand = find_run(&s->waiting, run);
	if (errand) {
		end_as(s, &s->waiting, errand, BATON_ABANDON, "");
		return;
	}
	for (uint32_t i = 0; i < s->o.processes; i++) {
		struct worker *w = &s->workers[i];
		errand = find_run(&w->errands, run);
		if (errand && !errand->given)
			end_as(s, &w->errands, errand, BATON_ABANDON, "");
		else if (errand)
			stop_given(s, w, errand, now);
	}
}

bool streams_more(struct streams *s, uint64_t run, const struct baton_work_claim *claim)
{
	for (uint32_t i = 0; i < s->o.processes; i++) {
		struct worker *w = &s->workers[i];
		struct errand *errand = find_run(&w->errands, run);
		if (!errand || !errand->asks || w->is != WORKER_ON)
			continue;
		errand->more = claim;
		errand->gives = true;
		w->todo = true;
		return true;
	}
	return false;
}

bool streams_progressed(struct streams *s)
{
	bool progressed = s->progressed;
	s->progressed = false;
	return progressed;
}

void streams_progress(const struct streams *s, struct buf *report)
{
	for (uint32_t i = 0; i < s->o.processes; i++) {
		const struct errand *errand = s->workers[i].errands.first;
		for (; errand; errand = errand->next)
			progress_print(&errand->progress, errand->claim->proof.id, report);
	}
}

void streams_leave(struct streams *s)
{
	for (uint32_t i = 0; i < s->o.processes; i++) {
		struct worker *w = &s->workers[i];
		if (w->is != WORKER_ON)
			continue;
		want_writable(s, w, false);
		w->is = WORKER_LEAVING;
		w->dismissed = true;
		shutdown(w->fd, SHUT_WR);
	}
}
