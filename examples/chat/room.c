/* A process that has rooms: a runner of the queue "rooms", each of whose lanes is a room. Every
 * connection for a room comes to the one process that owns its lane, and so does every message.
 *
 *	example-chat-room NAME FOLDER
 *
 * A client says HELLO and the number of the last message it has seen, and gets all that came later:
 * NUMBER ID TEXT. It says SAY ID TEXT, which becomes a job of the lane; the ID makes it safe to say
 * it again. When its turn comes the message is written to FOLDER/ROOM, where the next owner of the
 * room finds it. Clients are cursors in that file. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <baton.h>

#define GUESTS 256
#define LINE 1024

struct guest {
	struct baton_visit *visit; /* NULL: the place is free */
	int fd;
	int log;   /* the room; -1: it has not said HELLO */
	off_t at;  /* what it was sent of that */
	bool full; /* it has to read first */
	char line[LINE];
	size_t len;
};

struct house {
	struct baton_store *store;
	struct baton_engine *engine;
	const char *folder;
	struct guest guests[GUESTS];
};

static struct baton_engine *to_stop;

static void on_signal(int number)
{
	(void)number;
	baton_engine_stop(to_stop, (struct baton_duration){0});
}

/* The messages of a room; what was said there stays when its owner dies. */
static int log_open(const struct house *h, struct baton_str lane)
{
	char path[4096];
	if (memchr(lane.ptr, '/', lane.len) || lane.ptr[0] == '.')
		return -1;
	snprintf(path, sizeof path, "%s/%.*s", h->folder, (int)lane.len, lane.ptr);
	return open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

/* Where the messages behind that number begin; *ret_last is the number of the last one. */
static off_t log_seek(int log, uint64_t number, uint64_t *ret_last)
{
	char line[LINE + 64];
	off_t at = 0, found = -1;
	ssize_t n;
	*ret_last = 0;
	while ((n = pread(log, line, sizeof line - 1, at)) > 0) {
		line[n] = '\0';
		*ret_last = strtoull(line, NULL, 10);
		if (found < 0 && *ret_last > number)
			found = at;
		at += (off_t)strcspn(line, "\n") + 1;
	}
	return found < 0 ? at : found;
}

static void guest_end(struct guest *g)
{
	struct baton_visit *visit = g->visit;
	if (g->log >= 0)
		close(g->log);
	*g = (struct guest){.log = -1};
	baton_visit_end(visit);
}

/* Sends what is new, as far as there is room; who does not read is not waited for. */
static void guest_send(struct guest *g)
{
	char room[4096];
	ssize_t n;
	g->full = false;
	while (g->log >= 0 && !g->full && (n = pread(g->log, room, sizeof room, g->at)) > 0) {
		ssize_t sent = send(g->fd, room, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent > 0)
			g->at += sent;
		else if (sent < 0 && errno == EAGAIN)
			g->full = true;
		else
			return; /* its end is read later */
	}
}

static void say(struct house *h, const struct guest *g, const char *text)
{
	struct baton_str lane = baton_visit_connection(g->visit)->lane;
	struct baton_str payload = baton_str_z(text);
	const struct baton_batch message = {
		.queue = BATON_STR("rooms"),
		.lane = lane,
		.source = {text, strcspn(text, " ")},
		.payloads = &payload,
		.count = 1,
	};
	struct baton_put answer;
	if (baton_work_put(h->store, &message, 1, &answer) != BATON_OK)
		warnx("%s", baton_err_detail());
}

/* False: it speaks nonsense. */
static bool guest_says(struct house *h, struct guest *g, const char *line)
{
	uint64_t last;
	if (g->log >= 0 && strncmp(line, "SAY ", 4) == 0 && strchr(line + 4, ' ')) {
		say(h, g, line + 4);
		return true;
	}
	if (g->log >= 0 || strncmp(line, "HELLO ", 6) != 0)
		return false;
	g->log = log_open(h, baton_visit_connection(g->visit)->lane);
	if (g->log < 0)
		return false;
	g->at = log_seek(g->log, strtoull(line + 6, NULL, 10), &last);
	guest_send(g);
	return true;
}

static void guest_read(struct house *h, struct guest *g)
{
	char *end;
	ssize_t n = recv(g->fd, g->line + g->len, sizeof g->line - g->len, MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return;
	g->len += n > 0 ? (size_t)n : 0;
	bool good = n > 0;
	while (good && (end = memchr(g->line, '\n', g->len))) {
		*end = '\0';
		good = guest_says(h, g, g->line);
		g->len -= (size_t)(end + 1 - g->line);
		memmove(g->line, end + 1, g->len);
	}
	if (!good || g->len == sizeof g->line)
		guest_end(g);
}

/* Somebody is here, whose lane is this process's. */
static void connected(void *arg, struct baton_visit *visit)
{
	struct house *h = arg;
	int i = 0;
	while (i < GUESTS && h->guests[i].visit)
		i++;
	if (i == GUESTS) {
		baton_visit_end(visit);
		return;
	}
	h->guests[i] =
		(struct guest){.visit = visit, .fd = baton_visit_connection(visit)->fd, .log = -1};
}

/* The room goes to another process: its guests find it there. */
static void leave(void *arg, struct baton_visit *visit)
{
	struct house *h = arg;
	for (int i = 0; i < GUESTS; i++)
		if (h->guests[i].visit == visit)
			guest_end(&h->guests[i]);
}

/* A message's turn. It may have been written by an owner that was killed before it could say so. */
static void write_down(void *arg, struct baton_run *run)
{
	struct house *h = arg;
	const struct baton_work_claim *claim = baton_run_claim(run);
	const struct baton_work_batch *message = &claim->batches[0];
	struct baton_work_end end = {.how = BATON_FAIL, .error = BATON_STR("not written")};
	uint64_t last;
	int log = log_open(h, claim->lane);
	if (log >= 0) {
		log_seek(log, 0, &last);
		if (last >= message->seq ||
		    dprintf(log, "%" PRIu64 " %.*s\n", message->seq, (int)message->payloads[0].len,
		            message->payloads[0].ptr) > 0)
			end = (struct baton_work_end){.how = BATON_COMPLETE};
		close(log);
	}
	for (int i = 0; i < GUESTS; i++)
		guest_send(&h->guests[i]);
	baton_run_end(run, &end);
}

static enum baton_err loop(struct house *h)
{
	struct pollfd fds[GUESTS + 1];
	enum baton_err e;
	while (baton_engine_step(h->engine, &e)) {
		for (int i = 0; i < GUESTS; i++)
			fds[i] = (struct pollfd){
				.fd = h->guests[i].visit ? h->guests[i].fd : -1,
				.events = (short)(POLLIN | (h->guests[i].full ? POLLOUT : 0)),
			};
		fds[GUESTS] = (struct pollfd){baton_engine_fd(h->engine), POLLIN, 0};
		if (poll(fds, GUESTS + 1, -1) < 0)
			continue;
		for (int i = 0; i < GUESTS; i++) {
			if (fds[i].revents & POLLOUT)
				guest_send(&h->guests[i]);
			if (fds[i].revents & ~POLLOUT)
				guest_read(h, &h->guests[i]);
		}
	}
	return e;
}

int main(int argc, char **argv)
{
	static struct house h;
	const char *store = getenv("BATON_STORE");
	struct baton_store_options where = {.where = baton_str_z(store ? store : "sqlite:chat.db")};
	struct baton_serve rooms = {.queue = BATON_STR("rooms")};
	struct sigaction stop = {.sa_handler = on_signal};
	if (argc != 3)
		errx(64, "usage: example-chat-room NAME FOLDER");
	struct baton_runner_options options = {
		.ask = {.name = baton_str_z(argv[1]), .weight = 1},
		.serves = &rooms,
		.serve_count = 1,
		.handler = {.call = write_down,
	                    .arg = &h,
	                    .overtime = BATON_OVERTIME_ABORT,
	                    .on_loop = true},
		.connections = {.wanted = true,
	                        .max = GUESTS,
	                        .connected = connected,
	                        .leave = leave,
	                        .arg = &h},
	};
	h.folder = argv[2];
	enum baton_err e = baton_store_open(&where, &h.store);
	options.store = h.store;
	if (e == BATON_OK)
		e = baton_engine_open(&options, &h.engine);
	if (e == BATON_OK) {
		to_stop = h.engine;
		sigaction(SIGTERM, &stop, NULL);
		e = loop(&h);
	}
	if (e != BATON_OK)
		warnx("%s", baton_err_detail());
	baton_engine_close(h.engine);
	baton_store_close(h.store);
	return e == BATON_OK ? 0 : 1;
}
