/* A persistent worker as the runner sees it. */
#include "runner/worker.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>

#include <baton/backend.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/fail.h"
#include "runner/payload.h"
#include "runner/reply.h"

#define CHUNK 65536     /* is read at a time, and is enough to be written */
#define KEPT (1u << 20) /* bytes of a buffer that are kept for the next line */
#define LINE_OUT_MAX ((size_t)1 << 30)

struct baton_duration worker_pause(struct baton_duration last, struct baton_duration lived)
{
	const struct baton_duration min = baton_duration_ms(WORKER_PAUSE_MIN_MS);
	const struct baton_duration max = baton_duration_ms(WORKER_PAUSE_MAX_MS);
	if (last.ns < min.ns || lived.ns >= baton_duration_ms(WORKER_HEALTHY_MS).ns)
		return min;
	struct baton_duration twice = {last.ns < max.ns / 2 ? 2 * last.ns : max.ns};
	return twice;
}

void errands_add(struct errands *list, struct errand *errand)
{
	errand->next = NULL;
	if (list->last)
		list->last->next = errand;
	else
		list->first = errand;
	list->last = errand;
	list->count++;
}

void errands_remove(struct errands *list, struct errand *errand)
{
	struct errand *before = NULL;
	for (struct errand *at = list->first; at != errand; at = at->next)
		before = at;
	if (before)
		before->next = errand->next;
	else
		list->first = errand->next;
	if (list->last == errand)
		list->last = before;
	list->count--;
}

void stays_add(struct stays *list, struct stay *stay)
{
	stay->next = NULL;
	if (list->last)
		list->last->next = stay;
	else
		list->first = stay;
	list->last = stay;
	list->count++;
}

void stays_remove(struct stays *list, struct stay *stay)
{
	struct stay *before = NULL;
	for (struct stay *at = list->first; at != stay; at = at->next)
		before = at;
	if (before)
		before->next = stay->next;
	else
		list->first = stay->next;
	if (list->last == stay)
		list->last = before;
	list->count--;
}

void worker_init(struct worker *w, const struct baton_alloc *alloc)
{
	*w = (struct worker){.fd = -1, .end_at = BATON_MONO_NEVER, .not_before = {INT64_MIN}};
	buf_init(&w->in, alloc, REPLY_LINE_MAX + CHUNK);
	buf_init(&w->out, alloc, LINE_OUT_MAX);
}

static void empty(struct buf *b)
{
	if (b->cap > KEPT)
		buf_done(b);
	buf_reset(b);
}

void worker_shut(struct worker *w)
{
	fd_closep(&w->fd);
	w->fd = -1;
	buf_done(&w->in);
	buf_done(&w->out);
	buf_reset(&w->in);
	buf_reset(&w->out);
	w->read = w->scanned = w->written = 0;
	w->todo = w->writes = w->gone = false;
	w->passing = NULL;
}

/* What could not be added whole is not there. */
static enum baton_err added(struct worker *w, size_t before)
{
	enum baton_err e = w->out.err;
	if (e != BATON_OK) {
		w->out.len = before;
		w->out.err = BATON_OK;
	}
	return e;
}

enum baton_err worker_give(struct worker *w, const struct baton_work_claim *claim)
{
	size_t before = w->out.len;
	enum baton_err e = payload_claim(&w->out, claim);
	enum baton_err line = added(w, before);
	return e != BATON_OK ? e : line;
}

enum baton_err worker_cancel(struct worker *w, const struct baton_work_claim *claim)
{
	size_t before = w->out.len;
	buf_printf(&w->out, "{\"cancel\":\"%s\"}\n", claim->proof.id);
	return added(w, before);
}

enum baton_err worker_more(struct worker *w, const struct baton_work_claim *claim,
                           const struct baton_work_claim *more)
{
	size_t before = w->out.len;
	enum baton_err e = payload_more(&w->out, claim, more);
	enum baton_err line = added(w, before);
	return e != BATON_OK ? e : line;
}

enum baton_err worker_pass(struct worker *w, struct stay *stay)
{
	size_t before = w->out.len;
	CHECK(!w->passing);
	enum baton_err e = payload_visit(&w->out, stay->connection, stay->fence, stay->number);
	enum baton_err line = added(w, before);
	if (e != BATON_OK || line != BATON_OK)
		return e != BATON_OK ? e : line;
	w->passing = stay;
	w->pass_at = before;
	return BATON_OK;
}

enum baton_err worker_send_away(struct worker *w, const struct stay *stay)
{
	size_t before = w->out.len;
	buf_printf(&w->out, "{\"leave\":%" PRIu64 "}\n", stay->number);
	return added(w, before);
}

bool worker_is_full(const struct worker *w)
{
	return w->out.len - w->written >= CHUNK;
}

/* A descriptor beside a message. */
union beside {
	struct cmsghdr align;
	char room[CMSG_SPACE(sizeof(int))];
};

static void put_beside(struct msghdr *message, union beside *beside, int fd)
{
	message->msg_control = beside->room;
	message->msg_controllen = sizeof beside->room;
	struct cmsghdr *c = CMSG_FIRSTHDR(message);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
}

/* The kernel has the connection, or will not take it: then the line, the last one, is no more. */
static void passed(struct worker *w, bool taken)
{
	if (taken) {
		baton_connection_free(w->passing->connection);
		w->passing->connection = NULL;
	} else {
		w->out.len = w->pass_at;
	}
	w->passing = NULL;
}

/* Sends some of what there is. A line that has a connection beside it begins a message of its own,
 * and ends it: whoever reads gets the connection together with bytes of this line, and of none
 * after it. */
static ssize_t send_some(struct worker *w)
{
	bool now = w->passing && w->written == w->pass_at;
	size_t end = w->passing && !now ? w->pass_at : w->out.len;
	union beside beside = {.room = {0}};
	struct iovec bytes = {w->out.data + w->written, end - w->written};
	struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
	if (now)
		put_beside(&message, &beside, w->passing->connection->fd);
	ssize_t n = sendmsg(w->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (now && n > 0)
		passed(w, true);
	if (!now || n >= 0 || errno == EINTR || errno == EAGAIN || errno == EPIPE ||
	    errno == ECONNRESET)
		return n;
	passed(w, false);
	return 0;
}

bool worker_write(struct worker *w)
{
	while (w->written < w->out.len && !w->gone) {
		ssize_t n = send_some(w);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return false;
		/* Who does not read will be seen to have gone by who reads from him. */
		w->written = n < 0 ? w->out.len : w->written + (size_t)n;
	}
	/* Nobody reads any more: the connection ends with the worker. */
	if (w->passing)
		passed(w, true);
	empty(&w->out);
	w->written = 0;
	return true;
}

/* Makes room for what comes: only the line that has no end is kept. */
static void move_up(struct worker *w)
{
	size_t rest = w->in.len - w->read;
	if (w->read > 0 && rest > 0)
		memmove(w->in.data, w->in.data + w->read, rest);
	w->in.len = rest;
	w->scanned -= w->read;
	w->read = 0;
	if (rest == 0) {
		empty(&w->in);
		w->scanned = 0;
	}
}

enum baton_err worker_read(struct worker *w, enum worker_got *ret)
{
	char bytes[CHUNK];
	ssize_t n;
	move_up(w);
	do
		n = recv(w->fd, bytes, sizeof bytes, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
		*ret = WORKER_NOTHING;
		return BATON_OK;
	}
	*ret = n > 0 ? WORKER_SOME : WORKER_END;
	return n > 0 ? buf_append(&w->in, bytes, (size_t)n) : BATON_OK;
}

bool worker_line(struct worker *w, struct baton_str *ret)
{
	const char *end = NULL;
	if (w->scanned < w->in.len)
		end = memchr(w->in.data + w->scanned, '\n', w->in.len - w->scanned);
	if (!end) {
		w->scanned = w->in.len;
		return false;
	}
	*ret = (struct baton_str){w->in.data + w->read, (size_t)(end - w->in.data) - w->read};
	w->read = w->scanned = (size_t)(end - w->in.data) + 1;
	return true;
}

size_t worker_rest(const struct worker *w)
{
	return w->in.len - w->read;
}
