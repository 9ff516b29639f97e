/* Clients, until they are answered. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "base/mem.h"
#include "handoff/packet.h"
#include "handoff/peek.h"
#include "handoff/state.h"
#include "wire/admin.h"
#include "wire/envelope.h"

void peers_end(struct baton_broker *b, struct peer *peer)
{
	if (b->fresh == peer)
		b->fresh = NULL;
	wire_reader_done(&peer->reader);
	buf_done(&peer->out);
	b->peers_count--;
	source_end(b, &peer->source);
}

static struct peer *peer_new(struct baton_broker *b, int fd)
{
	struct peer *peer = mem_new(b->alloc, 1, sizeof *peer);
	if (!peer) {
		close(fd);
		return NULL;
	}
	peer->source = (struct source){.kind = SOURCE_PEER, .fd = fd};
	peer->connection = ++b->connections;
	peer->until = baton_mono_add(broker_now(b), b->hello);
	links_init(&peer->source.links);
	wire_reader_init(&peer->reader, b->alloc, WIRE_HELLO_MAX);
	buf_init(&peer->out, b->alloc, WIRE_FRAME_MAX);
	b->counts[COUNT_CLIENTS]++;
	b->peers_count++;
	return peer;
}

void peers_add_plain(struct baton_broker *b, int fd, const struct listener *listener)
{
	struct peer *peer = peer_new(b, fd);
	if (!peer)
		return;
	b->counts[COUNT_PLAIN]++;
	peer->listener = listener;
	peer->who = (struct site_peer){0, UINT32_MAX, UINT32_MAX};
	bool asked = listener->names_count > 0;
	uint32_t events = asked ? EPOLLIN | EPOLLRDHUP | EPOLLET : 0;
	if (b->peers_count > b->clients_max || !source_watch(b, &peer->source, events)) {
		b->counts[COUNT_REFUSED]++;
		peers_end(b, peer);
		return;
	}
	links_append(&b->waiting, &peer->source.links);
	if (asked)
		return;
	peer->service = listener->others;
	routes_plain(b, peer);
}

bool peers_is_stranger(const struct baton_broker *b, const struct peer *peer)
{
	return !peer->listener && peer->who.uid != b->uid;
}

static void refusal_send(struct baton_broker *b, int fd, enum wire_code code, const char *reason,
                         struct baton_duration retry_after)
{
	AUTO(buf_done) struct buf payload;
	buf_init(&payload, b->alloc, WIRE_HELLO_MAX);
	const struct wire_reply reply = {
		.kind = WIRE_REFUSED,
		.refused =
			{
				.reason = baton_str_z(reason),
				.min_protocol = WIRE_VERSION,
				.max_protocol = WIRE_VERSION,
				.code = code,
				.retry_after_ms = (uint32_t)(retry_after.ns / 1000000),
			},
	};
	b->counts[COUNT_REFUSED]++;
	if (wire_reply_encode(&reply, &payload) != BATON_OK)
		return;
	const struct wire_envelope envelope = {.kind = WIRE_RESPONSE,
	                                       .protocol = WIRE_HELLO,
	                                       .payload = buf_str(&payload)};
	/* Who does not take it at once has no use for it. */
	frame_send(fd, &envelope);
}

void peers_refuse(struct baton_broker *b, struct peer *peer, enum wire_code code,
                  const char *reason, struct baton_duration retry_after)
{
	/* Who does not speak the protocol sees the end of the connection. */
	if (peer->listener)
		b->counts[COUNT_REFUSED]++;
	else
		refusal_send(b, peer->source.fd, code, reason, retry_after);
	peers_end(b, peer);
}

void peers_turn_away(struct baton_broker *b, int fd)
{
	b->counts[COUNT_CLIENTS]++;
	refusal_send(b, fd, WIRE_FD_PRESSURE, "the broker has no descriptors left",
	             baton_duration_ms(1000));
}

/* Sends as much of the answer as goes; the peer ends with it. */
static void answer_go_on(struct baton_broker *b, struct peer *peer)
{
	ssize_t n = send(peer->source.fd, peer->out.data + peer->out_sent,
	                 peer->out.len - peer->out_sent, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n > 0)
		peer->out_sent += (size_t)n;
	bool later = n < 0 && (errno == EAGAIN || errno == EINTR);
	if ((n <= 0 && !later) || peer->out_sent == peer->out.len)
		peers_end(b, peer);
}

static void answer_begin(struct baton_broker *b, struct peer *peer)
{
	if (!source_change(b, &peer->source, EPOLLOUT)) {
		peers_end(b, peer);
		return;
	}
	links_remove(&peer->source.links);
	links_append(&b->writing, &peer->source.links);
	answer_go_on(b, peer);
}

static void probed(struct baton_broker *b, struct peer *peer, uint64_t id)
{
	const struct wire_envelope envelope = {.kind = WIRE_RESPONSE,
	                                       .protocol = WIRE_PROBE,
	                                       .request_id = id};
	if (wire_frame_encode(&envelope, &peer->out) == BATON_OK)
		answer_begin(b, peer);
	else
		peers_end(b, peer);
}

static void asked(struct baton_broker *b, struct peer *peer, const struct wire_envelope *ask)
{
	AUTO(buf_done) struct buf payload;
	struct wire_admin question;
	buf_init(&payload, b->alloc, WIRE_FRAME_MAX);
	if (wire_admin_decode(ask->payload, &b->arena, &question) != BATON_OK ||
	    question.kind != WIRE_ASK || report_encode(b, &payload) != BATON_OK) {
		peers_end(b, peer);
		return;
	}
	const struct wire_envelope envelope = {
		.kind = WIRE_RESPONSE,
		.protocol = WIRE_ADMIN,
		.payload = buf_str(&payload),
		.request_id = ask->request_id,
	};
	if (wire_frame_encode(&envelope, &peer->out) == BATON_OK)
		answer_begin(b, peer);
	else
		peers_end(b, peer);
}

static void nonsense(struct baton_broker *b, struct peer *peer)
{
	b->counts[COUNT_NONSENSE]++;
	BATON_LOG(b->log, BATON_LOG_DEBUG, "client speaks nonsense",
	          baton_field_int("pid", peer->who.pid),
	          baton_field_str("why", baton_str_z(baton_err_detail())));
	peers_end(b, peer);
}

/* Looks at the whole first frame of a client. */
static void frame_take(struct baton_broker *b, struct peer *peer)
{
	struct wire_envelope envelope;
	struct wire_hello hello;
	arena_reset(&b->arena);
	enum baton_err e =
		wire_envelope_decode(wire_reader_body(&peer->reader), &b->arena, &envelope);
	if (e != BATON_OK || envelope.kind != WIRE_REQUEST) {
		nonsense(b, peer);
		return;
	}
	if (envelope.protocol != WIRE_HELLO && peers_is_stranger(b, peer)) {
		peers_refuse(b, peer, WIRE_PEER_REJECTED, "this broker serves another user",
		             (struct baton_duration){0});
		return;
	}
	peer->trace = envelope.trace;
	switch (envelope.protocol) {
	case WIRE_HELLO:
		if (wire_hello_decode(envelope.payload, &b->arena, &hello) == BATON_OK)
			routes_take(b, peer, &hello);
		else
			nonsense(b, peer);
		break;
	case WIRE_ADMIN:
		asked(b, peer, &envelope);
		break;
	case WIRE_PROBE:
		probed(b, peer, envelope.request_id);
		break;
	case WIRE_HANDOFF:
		nonsense(b, peer);
		break;
	}
}

/* Reads what there is of the first frame, and never a byte more. */
static void frame_read(struct baton_broker *b, struct peer *peer)
{
	while (!wire_reader_whole(&peer->reader)) {
		void *place;
		size_t want;
		if (wire_reader_want(&peer->reader, &place, &want) != BATON_OK) {
			peers_end(b, peer);
			return;
		}
		ssize_t n = recv(peer->source.fd, place, want, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			peers_end(b, peer);
			return;
		}
		if (wire_reader_took(&peer->reader, (size_t)n) != BATON_OK) {
			nonsense(b, peer);
			return;
		}
	}
	frame_take(b, peer);
}

/* Reads, and has epoll tell if there is more to come. */
static void read_on(struct baton_broker *b, struct peer *peer)
{
	frame_read(b, peer);
	if (peer->source.fd >= 0 && !peer->source.watched &&
	    !source_watch(b, &peer->source, EPOLLIN))
		peers_end(b, peer);
}

/* What it wants may be there already: then it is never waited for. Or it comes in a moment: then
 * epoll need not know of it. */
static void first_read(struct baton_broker *b, struct peer *peer)
{
	links_append(&b->waiting, &peer->source.links);
	if (b->fresh) {
		read_on(b, peer);
		return;
	}
	frame_read(b, peer);
	if (peer->source.fd >= 0 && !peer->source.watched)
		b->fresh = peer;
}

void peers_add(struct baton_broker *b, int fd)
{
	struct peer *peer = peer_new(b, fd);
	if (!peer)
		return;
	bool known = site_peer(fd, &peer->who) == BATON_OK;
	if (!known || (peers_is_stranger(b, peer) && !b->strangers)) {
		peers_refuse(b, peer, WIRE_PEER_REJECTED, "this broker serves another user",
		             (struct baton_duration){0});
	} else if (b->peers_count > b->clients_max) {
		peers_refuse(b, peer, WIRE_RATE_LIMITED, "too many clients wait for an answer",
		             baton_duration_ms(100));
	} else {
		first_read(b, peer);
	}
}

/* Looks at what there is without taking it: whoever gets the connection finds all of it. */
static void plain_look(struct baton_broker *b, struct peer *peer, uint32_t events)
{
	char name[PEEK_NAME_MAX + 1];
	bool over = (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
	ssize_t n = recv(peer->source.fd, b->room, PEEK_MAX, MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR) && !over)
		return;
	if (n <= 0) {
		peers_end(b, peer);
		return;
	}
	enum peek_verdict verdict = peek_name((struct baton_str){b->room, (size_t)n}, name);
	if (verdict == PEEK_MORE && !over)
		return;
	peer->service =
		verdict == PEEK_MORE
			? NULL
			: listeners_service(peer->listener, verdict == PEEK_NAME ? name : NULL);
	if (peer->service)
		routes_plain(b, peer);
	else
		nonsense(b, peer);
}

void peers_event(struct baton_broker *b, struct peer *peer, uint32_t events)
{
	if (peer->listener && !peer->service)
		plain_look(b, peer, events);
	else if (peer->out.len > 0)
		answer_go_on(b, peer);
	else if (!peer->listener && !wire_reader_whole(&peer->reader))
		read_on(b, peer);
	else if (events & (EPOLLHUP | EPOLLERR))
		peers_end(b, peer);
}

/* What a peer said whose first frame is whole. */
static bool hello_again(struct baton_broker *b, struct peer *peer, struct wire_hello *ret)
{
	struct wire_envelope envelope;
	arena_reset(&b->arena);
	if (wire_envelope_decode(wire_reader_body(&peer->reader), &b->arena, &envelope) != BATON_OK)
		return false;
	peer->trace = envelope.trace;
	return wire_hello_decode(envelope.payload, &b->arena, ret) == BATON_OK;
}

bool peers_wait_for(const struct baton_broker *b, const struct service *service)
{
	for (struct links *l = b->parked.next; l != &b->parked; l = l->next)
		if (LINKS_OF(l, struct peer, source.links)->service == service)
			return true;
	return false;
}

void peers_disappoint(struct baton_broker *b, const struct service *service, const char *reason,
                      struct baton_duration retry_after)
{
	for (struct links *l = b->parked.next, *next; l != &b->parked; l = next) {
		struct peer *peer = LINKS_OF(l, struct peer, source.links);
		next = l->next;
		if (peer->service == service)
			peers_refuse(b, peer, WIRE_SPAWN_FAILED, reason, retry_after);
	}
}

/* Answers one that has waited. */
static void unpark(struct baton_broker *b, struct peer *peer)
{
	struct wire_hello hello;
	broker_tick(b);
	if (peer->listener)
		routes_plain(b, peer);
	else if (hello_again(b, peer, &hello))
		routes_take(b, peer, &hello);
	else
		peers_end(b, peer);
}

void peers_unpark(struct baton_broker *b, const struct service *service)
{
	/* Each that is answered ends, and nobody else does. */
	for (struct links *l = b->parked.next, *next; l != &b->parked; l = next) {
		struct peer *peer = LINKS_OF(l, struct peer, source.links);
		next = l->next;
		if (peer->service != service)
			continue;
		if (!services_current(service) && !children_have_room(service))
			return;
		unpark(b, peer);
	}
}

/* What was read of its first frame is read once more. */
static enum baton_err bytes_again(struct peer *peer, struct baton_str bytes)
{
	while (bytes.len > 0) {
		void *place;
		size_t want;
		enum baton_err e = wire_reader_want(&peer->reader, &place, &want);
		if (e != BATON_OK)
			return e;
		size_t n = want < bytes.len ? want : bytes.len;
		if (n == 0)
			return fail(BATON_INVALID, "the broker sent more than a Hello");
		memcpy(place, bytes.ptr, n);
		bytes = (struct baton_str){bytes.ptr + n, bytes.len - n};
		e = wire_reader_took(&peer->reader, n);
		if (e != BATON_OK)
			return e;
	}
	return BATON_OK;
}

/* Who it is, where it came, and what it has said so far. */
static enum baton_err peer_fill(struct baton_broker *b, struct peer *peer,
                                const struct wire_item *item)
{
	peer->connection = item->id;
	peer->until.ns = (int64_t)item->until;
	if (item->name.len == 0) {
		enum baton_err e = site_peer(peer->source.fd, &peer->who);
		return e == BATON_OK ? bytes_again(peer, item->bytes) : e;
	}
	peer->who = (struct site_peer){0, UINT32_MAX, UINT32_MAX};
	peer->listener = listeners_find(b, item->name);
	if (peer->listener && item->service.len > 0)
		peer->service = services_find(b, item->service);
	return BATON_OK;
}

enum baton_err peers_adopt(struct baton_broker *b, const struct wire_item *item, int *fd)
{
	struct peer *peer = peer_new(b, fd_take(fd));
	bool again = item->capabilities != 0;
	if (!peer)
		return fail_memory(sizeof *peer, "a client");
	b->counts[COUNT_CLIENTS]--;
	peer->counted = again;
	links_append(again ? &b->again : &b->waiting, &peer->source.links);
	enum baton_err e = peer_fill(b, peer, item);
	if (e != BATON_OK)
		return e;
	bool plain = item->name.len > 0;
	/* This broker does not listen there any more. */
	if (plain && !peer->listener) {
		peers_end(b, peer);
		return BATON_OK;
	}
	if (again && !plain && !wire_reader_whole(&peer->reader))
		return fail(BATON_INVALID, "the broker sent a client that has not said enough");
	uint32_t events = again ? 0 : EPOLLIN;
	if (plain && !again)
		events |= EPOLLRDHUP | EPOLLET;
	return source_watch(b, &peer->source, events)
	               ? BATON_OK
	               : fail_errno(errno, "cannot wait for a client");
}

void peers_again(struct baton_broker *b)
{
	while (!links_empty(&b->again)) {
		struct peer *peer = LINKS_OF(b->again.next, struct peer, source.links);
		struct wire_hello hello;
		broker_tick(b);
		links_remove(&peer->source.links);
		links_append(&b->waiting, &peer->source.links);
		if (peer->listener && peer->service)
			routes_plain(b, peer);
		else if (wire_reader_whole(&peer->reader) && hello_again(b, peer, &hello))
			routes_take(b, peer, &hello);
		else
			peers_end(b, peer);
	}
}

static struct peer *asking_find(struct baton_broker *b, uint64_t connection)
{
	for (struct links *l = b->asking.next; l != &b->asking; l = l->next) {
		struct peer *peer = LINKS_OF(l, struct peer, source.links);
		if (peer->connection == connection)
			return peer;
	}
	return NULL;
}

void peers_placed(struct baton_broker *b)
{
	struct locator_answer answer;
	struct wire_hello hello;
	while (locator_next(b->locator, &answer)) {
		struct peer *peer = asking_find(b, answer.connection);
		if (!peer)
			continue;
		broker_tick(b);
		if (hello_again(b, peer, &hello))
			routes_place(b, peer, &hello, &answer);
		else
			peers_end(b, peer);
	}
}
