/* A connection on its way into a backend. */
#include "handoff/guest.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fail.h"
#include "base/mem.h"
#include "handoff/packet.h"

enum baton_err guest_new(const struct baton_alloc *alloc, int fd, struct guest **ret)
{
	struct guest *g = mem_new(alloc, 1, sizeof *g);
	if (!g)
		return fail_memory(sizeof *g, "a connection");
	g->alloc = alloc;
	g->connection.fd = fd;
	g->state = HELD_OFFERED;
	arena_init(&g->arena, alloc);
	links_init(&g->links);
	wire_reader_init(&g->reader, alloc, WIRE_HELLO_MAX);
	*ret = g;
	return BATON_OK;
}

void guest_free(struct guest *guest)
{
	fd_closep(&guest->connection.fd);
	token_wipe(&guest->token);
	wire_reader_done(&guest->reader);
	arena_done(&guest->arena);
	mem_free(guest->alloc, guest, 1, sizeof *guest);
}

void guest_turn_away(struct guest *guest)
{
	links_remove(&guest->links);
	shutdown(guest->connection.fd, SHUT_RDWR);
	guest_free(guest);
}

void baton_connection_free(struct baton_connection *connection)
{
	if (connection)
		guest_free((struct guest *)connection);
}

void baton_connection_welcome(struct baton_connection *connection)
{
	guest_welcome((struct guest *)connection);
}

int baton_connection_take(struct baton_connection *connection)
{
	int fd = connection->fd;
	connection->fd = -1;
	return fd;
}

/* As arena_copy(); most of what a client may say it does not. */
static bool text_copy(struct arena *a, struct baton_str s, struct baton_str *ret)
{
	*ret = (struct baton_str){"", 0};
	return s.len == 0 || arena_copy(a, s, ret);
}

enum baton_err guest_know(struct guest *guest, const struct guest_news *news)
{
	struct baton_connection *c = &guest->connection;
	const struct wire_hello *hello = news->hello;
	struct arena *a = &guest->arena;
	uint64_t deadline = news->trace->deadline;
	if (!text_copy(a, news->service, &c->service) ||
	    !text_copy(a, hello->auth_token, &c->auth_token) ||
	    !text_copy(a, hello->queue, &c->queue) || !text_copy(a, hello->lane, &c->lane) ||
	    !text_copy(a, hello->client_version, &c->version) ||
	    !text_copy(a, news->trace->traceparent, &c->traceparent) ||
	    !text_copy(a, news->trace->tracestate, &c->tracestate))
		return fail_memory(news->service.len + hello->auth_token.len, "a connection");
	c->id = hello->connection_id;
	c->pid = news->who.pid;
	c->uid = news->who.uid;
	c->gid = news->who.gid;
	c->deadline.ns = deadline > 0 && deadline < INT64_MAX ? (int64_t)deadline : INT64_MAX;
	guest->wants_welcome = (hello->capabilities & WIRE_WANTS_WELCOME) != 0;
	return BATON_OK;
}

static enum baton_err hello_take(struct guest *guest, struct arena *arena)
{
	struct wire_envelope envelope;
	struct wire_hello hello;
	struct site_peer who = {.pid = 0};
	enum baton_err e = wire_envelope_decode(wire_reader_body(&guest->reader), arena, &envelope);
	if (e == BATON_OK && (envelope.protocol != WIRE_HELLO || envelope.kind != WIRE_REQUEST))
		e = fail(BATON_INVALID, "a client that does not begin with a Hello");
	if (e == BATON_OK)
		e = wire_hello_decode(envelope.payload, arena, &hello);
	if (e == BATON_OK)
		e = site_peer(guest->connection.fd, &who);
	const struct guest_news news = {&hello, hello.service, who, &envelope.trace};
	return e == BATON_OK ? guest_know(guest, &news) : e;
}

enum baton_err guest_read(struct guest *guest, struct arena *arena)
{
	while (!wire_reader_whole(&guest->reader)) {
		void *place;
		size_t want;
		enum baton_err e = wire_reader_want(&guest->reader, &place, &want);
		if (e != BATON_OK)
			return e;
		ssize_t n = recv(guest->connection.fd, place, want, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return BATON_TIMEOUT;
		if (n <= 0)
			return BATON_GONE;
		e = wire_reader_took(&guest->reader, (size_t)n);
		if (e != BATON_OK)
			return e;
	}
	return hello_take(guest, arena);
}

void guest_welcome(const struct guest *guest)
{
	const struct wire_handoff m = {.kind = WIRE_WELCOME, .is.welcome = {guest->connection.id}};
	if (!guest->wants_welcome)
		return;
	char room[64];
	AUTO(buf_done) struct buf payload;
	buf_init_in(&payload, guest->alloc, WIRE_HELLO_MAX, room, sizeof room);
	if (wire_handoff_encode(&m, &payload) != BATON_OK)
		return;
	const struct wire_envelope envelope = {.kind = WIRE_EVENT,
	                                       .protocol = WIRE_HANDOFF,
	                                       .payload = buf_str(&payload)};
	/* A client that is gone is found so by whoever gets the connection. */
	frame_send(guest->connection.fd, &envelope);
}
