/* The client's side: asks the broker, and comes to a connection in one way or the other. */
#include <baton/client.h>

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <baton/clock.h>
#include <baton/version.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fail.h"
#include "handoff/site.h"
#include "handoff/talk.h"
#include "wire/envelope.h"
#include "wire/handoff.h"
#include "wire/hello.h"

#define HELLO_ROOM 512  /* what most Hellos fit into */
#define FIRST_ROOM 2048 /* the same, with what is sent behind them */
#define PAUSE_MIN_MS 5
#define PAUSE_MAX_MS 500
#define WELCOME_MS 5000 /* for a backend to take a client that has reconnected */

static_assert(BATON_TRACE_MAX == WIRE_TRACE_MAX, "what a client may send");

struct client {
	const struct baton_client_ask *ask;
	struct baton_mono until;
	struct site site;
	struct arena arena;
	struct buf hello; /* the frame and what is sent with it */
	char hello_room[FIRST_ROOM];
	struct wire_reply reply;
	bool reached; /* there was a broker */
	bool served;  /* the backend's first byte was seen behind the broker's last */
	struct baton_client_way way;
};

static void client_done(struct client *c)
{
	explicit_bzero(c->hello.data, c->hello.len);
	buf_done(&c->hello);
	arena_done(&c->arena);
}

static enum baton_err ask_check(const struct baton_client_ask *ask)
{
	bool lane = ask->queue.len > 0 && ask->lane.len > 0;
	struct baton_str version;
	if ((ask->queue.len > 0) != (ask->lane.len > 0) || ask->queue.len > BATON_NAME_MAX ||
	    ask->lane.len > BATON_NAME_MAX)
		return fail(BATON_INVALID,
		            "a lane is named by a queue and a lane, of up to %d "
		            "bytes each",
		            BATON_NAME_MAX);
	if (!wire_is_service(ask->service) && !(lane && ask->service.len == 0))
		return fail(BATON_INVALID, "a service has a name of 1 to %d of [a-z0-9-]",
		            WIRE_SERVICE_MAX);
	if (ask->first.len > BATON_CLIENT_FIRST_MAX)
		return fail(BATON_INVALID, "%zu bytes to begin with; %d are allowed",
		            ask->first.len, BATON_CLIENT_FIRST_MAX);
	if (ask->auth_token.len > WIRE_SECRET_MAX)
		return fail(BATON_INVALID, "an auth token of %zu bytes; %d are allowed",
		            ask->auth_token.len, WIRE_SECRET_MAX);
	if (!wire_is_trace(ask->traceparent) || !wire_is_trace(ask->tracestate))
		return fail(BATON_INVALID, "a trace is of up to %d printable characters of ASCII",
		            BATON_TRACE_MAX);
	if (ask->version.len > 0)
		return baton_str_name("version", ask->version.ptr, ask->version.len, BATON_NAME_MAX,
		                      &version);
	return BATON_OK;
}

/* Whether the backend's first byte is that of an answer. */
static bool is_answered(const struct baton_client_ask *ask)
{
	return ask->answered && ask->first.len > 0;
}

/* `here`: on this host, where the clock is the same. */
static enum baton_err hello_make(struct client *c, bool here)
{
	char room[HELLO_ROOM];
	AUTO(buf_done) struct buf payload;
	const struct wire_hello hello = {
		.min_protocol = WIRE_VERSION,
		.max_protocol = WIRE_VERSION,
		.service = c->ask->service,
		.wanted_version = c->ask->version,
		.client_version = baton_str_z(BATON_VERSION),
		.capabilities = (c->ask->no_handoff ? 0u : WIRE_ACCEPTS_HANDOFF) |
	                        (is_answered(c->ask) ? 0u : WIRE_WANTS_WELCOME),
		.auth_token = c->ask->auth_token,
		.connection_id = c->way.connection,
		.pid = (uint32_t)getpid(),
		.library_name = BATON_STR("libbaton"),
		.queue = c->ask->queue,
		.lane = c->ask->lane,
		.library_version = baton_str_z(BATON_VERSION),
	};
	buf_init_in(&payload, baton_alloc_libc(), WIRE_HELLO_MAX, room, sizeof room);
	wire_hello_encode(&hello, &payload);
	const struct wire_envelope envelope = {.kind = WIRE_REQUEST,
	                                       .protocol = WIRE_HELLO,
	                                       .payload = buf_str(&payload),
	                                       .trace = {here ? (uint64_t)c->until.ns : 0,
	                                                 c->ask->traceparent, c->ask->tracestate}};
	buf_reset(&c->hello);
	wire_frame_encode(&envelope, &c->hello);
	buf_append_str(&c->hello, c->ask->first);
	explicit_bzero(payload.data, payload.len);
	if (payload.err != BATON_OK || c->hello.err != BATON_OK)
		return fail_memory(payload.len + c->ask->first.len, "a Hello");
	return BATON_OK;
}

/* Waits for the backend's first frame, or the first byte of its answer: from then on the connection
 * is with it. */
static enum baton_err welcome_await(struct client *c, int fd, struct baton_mono until)
{
	struct wire_envelope envelope;
	struct wire_handoff m;
	if (is_answered(c->ask))
		return c->served ? BATON_OK : talk_await(fd, until);
	enum baton_err e = talk_receive(fd, WIRE_HELLO_MAX, until, &c->arena, &envelope, NULL);
	if (e == BATON_OK && envelope.protocol != WIRE_HANDOFF)
		e = fail(BATON_INVALID, "a backend did not begin with a Welcome");
	if (e == BATON_OK)
		e = wire_handoff_decode(envelope.payload, &c->arena, &m);
	if (e == BATON_OK && m.kind != WIRE_WELCOME)
		e = fail(BATON_INVALID, "a backend did not begin with a Welcome");
	return e;
}

/* Waits for a backend to which the client has reconnected. One that is stopped is not waited for
 * for ever, as another one may own the lane by now; but who has sent something that it may still
 * read does not go elsewhere. */
static enum baton_err caller_await(struct client *c, int fd)
{
	const struct baton_clock *clock = baton_clock_boot();
	struct baton_mono soon = baton_mono_add(clock->now(clock), baton_duration_ms(WELCOME_MS));
	bool patient = c->ask->first.len > 0 || soon.ns > c->until.ns;
	enum baton_err e = welcome_await(c, fd, patient ? c->until : soon);
	return e == BATON_TIMEOUT && !patient ? fail(BATON_GONE, "the backend does not answer") : e;
}

/* Connects to the backend's own endpoint. */
static enum baton_err reconnect(struct client *c, int *ret_fd)
{
	AUTO(fd_closep) int fd = -1;
	const struct wire_negotiated *n = &c->reply.negotiated;
	c->served = false;
	if (n->backend_pipe.len == 0)
		return fail(BATON_GONE, "the backend has no endpoint to reconnect to");
	enum baton_err e = talk_connect(n->backend_pipe, c->until, &fd);
	if (e == BATON_OK && (n->capabilities & WIRE_PLAIN_ENDPOINT)) {
		e = talk_send(fd, c->ask->first, c->until);
	} else if (e == BATON_OK) {
		c->way.connection = n->connection_id;
		e = hello_make(c, n->backend_pipe.ptr[0] == '/');
		if (e == BATON_OK)
			e = talk_send(fd, buf_str(&c->hello), c->until);
		if (e == BATON_OK)
			e = caller_await(c, fd);
	}
	if (e != BATON_OK)
		return e;
	c->way.handed = false;
	*ret_fd = fd_take(&fd);
	return BATON_OK;
}

/* What a refusal means, and in *ret_pause_ms after how long it is worth another try; 0: never. */
static enum baton_err refused(const struct wire_refused *r, int *ret_pause_ms)
{
	int reason_len = (int)r->reason.len;
	*ret_pause_ms = r->retry_after_ms < 60000 ? (int)r->retry_after_ms : 60000;
	switch (r->code) {
	case WIRE_SERVICE_UNKNOWN:
		return fail(BATON_NOT_FOUND, "the broker says: %.*s", reason_len, r->reason.ptr);
	case WIRE_VERSION_UNSUPPORTED:
	case WIRE_VERSION_BLOCKED:
	case WIRE_PEER_REJECTED:
	case WIRE_LANE_ELSEWHERE:
		*ret_pause_ms = 0;
		return fail(BATON_INVALID, "the broker says: %.*s", reason_len, r->reason.ptr);
	case WIRE_CODE_NONE:
	case WIRE_SPAWN_FAILED:
	case WIRE_RATE_LIMITED:
	case WIRE_SHUTTING_DOWN:
	case WIRE_INTERNAL:
	case WIRE_FD_PRESSURE:
		break;
	}
	*ret_pause_ms = *ret_pause_ms > 0 ? *ret_pause_ms : 1;
	return fail(BATON_BUSY, "the broker says: %.*s", reason_len, r->reason.ptr);
}

/* Asks the broker; on BATON_OK it has answered, and *ret_fd is the connection to it. */
static enum baton_err broker_ask(struct client *c, int *ret_fd)
{
	char path[SITE_PATH_MAX + 1];
	struct wire_envelope envelope = {.kind = WIRE_RESPONSE};
	AUTO(fd_closep) int fd = -1;
	site_path(&c->site, SITE_CLIENTS, path);
	c->way.connection = 0;
	/* What can be done before or after is not done between these calls: a Hello that is there
	 * when the broker accepts is read at once. */
	enum baton_err e = hello_make(c, true);
	if (e == BATON_OK)
		e = site_reach(path, SOCK_STREAM, c->site.uid, talk_patience_ms(c->until), &fd);
	if (e != BATON_OK)
		return e;
	c->reached = true;
	c->way.rounds++;
	e = talk_send(fd, buf_str(&c->hello), c->until);
	if (site_settle(fd) != BATON_OK)
		return BATON_SYSTEM;
	/* Even if it did not take all of it, it may have said why. */
	if (e == BATON_OK || e == BATON_GONE)
		e = talk_receive(fd, WIRE_HELLO_MAX, c->until, &c->arena, &envelope, &c->served);
	if (e == BATON_OK && envelope.protocol != WIRE_HELLO)
		e = fail(BATON_INVALID, "the broker answered something else");
	if (e == BATON_OK)
		e = wire_reply_decode(envelope.payload, &c->arena, &c->reply);
	if (e != BATON_OK)
		return e;
	*ret_fd = fd_take(&fd);
	return BATON_OK;
}

/* One way from the broker to a connection. *ret_pause_ms: as refused() says. */
static enum baton_err round_do(struct client *c, int *ret_fd, int *ret_pause_ms)
{
	AUTO(fd_closep) int fd = -1;
	arena_reset(&c->arena);
	*ret_pause_ms = 1;
	enum baton_err e = broker_ask(c, &fd);
	if (e != BATON_OK)
		return e;
	if (c->reply.kind == WIRE_REFUSED)
		return refused(&c->reply.refused, ret_pause_ms);
	if (c->reply.negotiated.capabilities & WIRE_IS_HANDOFF) {
		e = welcome_await(c, fd, c->until);
		if (e == BATON_OK) {
			c->way.handed = true;
			c->way.connection = c->reply.negotiated.connection_id;
			*ret_fd = fd_take(&fd);
		}
		/* An end of the connection means: reconnect. Whatever else came is no Welcome. */
		if (e == BATON_OK || e == BATON_TIMEOUT)
			return e;
	}
	fd_closep(&fd);
	fd = -1;
	return reconnect(c, ret_fd);
}

/* Whether it is worth another round. */
static bool is_passing(const struct client *c, enum baton_err e, int pause_ms)
{
	if (pause_ms == 0 || e == BATON_NO_MEMORY || e == BATON_TIMEOUT)
		return false;
	return c->reached;
}

static enum baton_err rounds_do(struct client *c, int *ret_fd)
{
	int pause = PAUSE_MIN_MS;
	for (;;) {
		int wanted;
		enum baton_err e = round_do(c, ret_fd, &wanted);
		if (e == BATON_OK || !is_passing(c, e, wanted))
			return e;
		char last[512];
		snprintf(last, sizeof last, "%s", baton_err_detail());
		int ms = wanted > pause ? wanted : pause;
		int left = talk_patience_ms(c->until);
		poll(NULL, 0, ms < left ? ms : left);
		if (talk_patience_ms(c->until) == 0)
			return fail(BATON_TIMEOUT, "no connection in time; in the end: %s", last);
		pause = pause * 2 < PAUSE_MAX_MS ? pause * 2 : PAUSE_MAX_MS;
	}
}

enum baton_err baton_client_connect(const struct baton_client_ask *ask, int *ret_fd,
                                    struct baton_client_way *ret_way)
{
	const struct baton_clock *clock = baton_clock_boot();
	struct baton_duration wait =
		ask->wait.ns > 0 ? ask->wait : baton_duration_ms(BATON_CLIENT_WAIT_MS);
	AUTO(client_done) struct client c;
	c.ask = ask;
	c.reached = c.served = false;
	c.way = (struct baton_client_way){.connection = 0};
	arena_init(&c.arena, baton_alloc_libc());
	buf_init_in(&c.hello, baton_alloc_libc(), WIRE_HELLO_MAX + BATON_CLIENT_FIRST_MAX,
	            c.hello_room, sizeof c.hello_room);
	c.until = baton_mono_add(clock->now(clock), wait);
	enum baton_err e = ask_check(ask);
	if (e == BATON_OK)
		e = site_find(ask->folder, &c.site);
	if (e == BATON_OK)
		e = site_check(&c.site, false);
	if (e == BATON_OK)
		e = rounds_do(&c, ret_fd);
	if (e == BATON_OK && ret_way)
		*ret_way = c.way;
	return e;
}
