/* The witness of the demo. */
#include "witness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sysexits.h>
#include <unistd.h>

#include <baton.h>

#define NAME_ROOM 32
#define LINE_ROOM 128
#define INPUT_ROOM 8192
#define ANSWERS_MAX 256

/* So long is a handler busy before its effect, and so long is it not told that this was accepted:
 * some die in the one time and leave no effect, and some in the other, whose job is done again. */
#define ANSWER_NS INT64_C(140000000)
#define NS_PER_MS 1000000

/* What is to be told to a handler. */
struct answer {
	int64_t due_ns;
	uint32_t lane;
	int32_t pid;
	int status;
};

struct witness {
	struct judge judge;
	int inbox;
	int answers[JUDGE_LANES];
	int handlers[JUDGE_LANES]; /* pidfds of those that began last; -1: none */
	char input[INPUT_ROOM];
	size_t filled;
	struct answer queue[ANSWERS_MAX]; /* a ring, in the order in which they are due */
	size_t first, count;
};

static int64_t now_ns(void)
{
	const struct baton_clock *clock = baton_clock_awake();
	return clock->now(clock).ns;
}

static const char *answers_name(uint32_t lane, char name[NAME_ROOM])
{
	snprintf(name, NAME_ROOM, WITNESS_ANSWERS "/%u", lane);
	return name;
}

bool witness_prepare(void)
{
	char name[NAME_ROOM];
	bool made = mkfifo(WITNESS_INBOX, 0600) == 0 && mkdir(WITNESS_ANSWERS, 0700) == 0;
	for (uint32_t i = 0; made && i < JUDGE_LANES; i++)
		made = mkfifo(answers_name(i, name), 0600) == 0;
	return made;
}

/* For both directions, so that it never ends. */
static int pipe_open(const char *name, int flags)
{
	return open(name, O_RDWR | O_CLOEXEC | flags);
}

static bool open_all(struct witness *w)
{
	char name[NAME_ROOM];
	w->inbox = pipe_open(WITNESS_INBOX, O_NONBLOCK);
	bool opened = w->inbox >= 0;
	for (uint32_t i = 0; i < JUDGE_LANES; i++) {
		w->handlers[i] = -1;
		w->answers[i] = pipe_open(answers_name(i, name), O_NONBLOCK);
		opened = opened && w->answers[i] >= 0;
	}
	return opened;
}

static void answer_first(struct witness *w)
{
	char line[LINE_ROOM];
	const struct answer *a = &w->queue[w->first];
	int len = snprintf(line, sizeof line, "%d %d\n", a->pid, a->status);
	/* Nobody may be there any more. */
	if (write(w->answers[a->lane], line, (size_t)len) < 0)
		w->judge.strange++;
	w->first = (w->first + 1) % ANSWERS_MAX;
	w->count--;
}

static void answer_later(struct witness *w, const struct judge_record *r, bool taken)
{
	if (w->count == ANSWERS_MAX)
		answer_first(w);
	w->queue[(w->first + w->count++) % ANSWERS_MAX] = (struct answer){
		.due_ns = now_ns() + ANSWER_NS,
		.lane = r->lane,
		.pid = r->pid,
		.status = taken ? EX_OK : EX_TEMPFAIL,
	};
}

/* Whether the handler of the lane that began last lives, whoever is to wait for it. */
static bool lives(int handler)
{
	struct pollfd fd = {.fd = handler, .events = POLLIN};
	return handler >= 0 && poll(&fd, 1, 0) == 0;
}

static void begin(struct witness *w, const struct judge_record *r)
{
	int *handler = &w->handlers[r->lane];
	judge_begin(&w->judge, r, lives(*handler), now_ns());
	if (*handler >= 0)
		close(*handler);
	*handler = (int)syscall(SYS_pidfd_open, r->pid, 0);
	answer_later(w, r, true);
}

static void hear(struct witness *w, const char *line)
{
	struct judge_record r;
	if (!judge_read(line, &r))
		w->judge.strange++;
	else if (r.effect)
		answer_later(w, &r, judge_effect(&w->judge, &r));
	else
		begin(w, &r);
}

static void hear_all(struct witness *w)
{
	ssize_t n = read(w->inbox, w->input + w->filled, sizeof w->input - w->filled);
	if (n <= 0)
		return;
	w->filled += (size_t)n;
	char *from = w->input;
	char *end;
	while ((end = memchr(from, '\n', w->filled)) != NULL) {
		*end++ = '\0';
		hear(w, from);
		w->filled -= (size_t)(end - from);
		from = end;
	}
	memmove(w->input, from, w->filled);
	if (w->filled == sizeof w->input) {
		w->judge.strange++;
		w->filled = 0;
	}
}

static int wait_ms(const struct witness *w)
{
	if (w->count == 0)
		return -1;
	int64_t left = w->queue[w->first].due_ns - now_ns();
	return left <= 0 ? 0 : (int)(left / NS_PER_MS) + 1;
}

void witness_be(int socket)
{
	struct witness *w = calloc(1, sizeof *w);
	if (!w || !open_all(w)) {
		free(w);
		return;
	}
	for (;;) {
		char asked;
		struct pollfd fds[] = {
			{.fd = w->inbox, .events = POLLIN},
			{.fd = socket, .events = POLLIN},
		};
		poll(fds, 2, wait_ms(w));
		hear_all(w);
		while (w->count > 0 && w->queue[w->first].due_ns <= now_ns())
			answer_first(w);
		if (fds[1].revents == 0)
			continue;
		if (recv(socket, &asked, 1, 0) != 1 ||
		    send(socket, &w->judge, sizeof w->judge, MSG_NOSIGNAL) < 0)
			break;
	}
	free(w);
}

bool witness_ask(int socket, struct judge *ret)
{
	ssize_t n;
	if (send(socket, "?", 1, MSG_NOSIGNAL) != 1)
		return false;
	do
		n = recv(socket, ret, sizeof *ret, 0);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof *ret;
}

void witness_line(const char *name)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t len;
	int inbox = pipe_open(WITNESS_INBOX, 0);
	int fd = pipe_open(name, 0);
	FILE *from = fd >= 0 ? fdopen(fd, "r") : NULL;
	if (!from || inbox < 0)
		return;
	while ((len = getline(&line, &room, from)) > 0 && write(inbox, line, (size_t)len) == len)
		;
	free(line);
}
