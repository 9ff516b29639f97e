/* What a client is answered: its connection is handed over, or it is told where to reconnect. */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include <baton/version.h>

#include "base/cleanup.h"
#include "handoff/packet.h"
#include "handoff/state.h"

/* What most answers have room in. */
#define ROOM 512

enum baton_err routes_negotiated(struct baton_broker *b, const struct peer *peer,
                                 const struct route_news *news, struct buf *frame)
{
	char room[ROOM];
	AUTO(buf_done) struct buf payload;
	buf_init_in(&payload, b->alloc, WIRE_HELLO_MAX, room, sizeof room);
	const struct wire_reply reply = {
		.kind = WIRE_NEGOTIATED,
		.negotiated =
			{
				.protocol = WIRE_VERSION,
				.daemon_version = baton_str_z(BATON_VERSION),
				.backend_pipe = baton_str_z(news->endpoint),
				.capabilities = (news->handed ? WIRE_IS_HANDOFF : 0u) |
	                                        (news->plain ? WIRE_PLAIN_ENDPOINT : 0u),
				.token = news->token,
				.connection_id = peer->connection,
			},
	};
	enum baton_err e = wire_reply_encode(&reply, &payload);
	if (e != BATON_OK)
		return e;
	const struct wire_envelope envelope = {.kind = WIRE_RESPONSE,
	                                       .protocol = WIRE_HELLO,
	                                       .payload = buf_str(&payload)};
	e = wire_frame_encode(&envelope, frame);
	explicit_bzero(payload.data, payload.len);
	return e;
}

/* Tells the client where to reconnect and, with a token, that it may not have to. */
static bool negotiated(struct baton_broker *b, const struct peer *peer, const char *endpoint,
                       bool plain, const struct token *token)
{
	char room[ROOM];
	AUTO(buf_done) struct buf frame;
	const struct route_news news = {
		.endpoint = endpoint,
		.plain = plain,
		.handed = token != NULL,
		.token = token ? token_str(token) : (struct baton_str){NULL, 0},
	};
	buf_init_in(&frame, b->alloc, WIRE_HELLO_MAX, room, sizeof room);
	bool sent = routes_negotiated(b, peer, &news, &frame) == BATON_OK &&
	            bytes_send(peer->source.fd, buf_str(&frame)) == PACKET_DONE;
	explicit_bzero(frame.data, frame.len);
	return sent;
}

static bool is_plain(const struct channel *channel)
{
	return (channel->capabilities & WIRE_IS_PLAIN) != 0;
}

/* No handoff: the client reconnects, if it can. */
static void fall_back(struct baton_broker *b, struct peer *peer, const struct wire_hello *hello,
                      const struct channel *channel, enum fallback_reason reason)
{
	b->reasons[reason]++;
	if (channel->endpoint[0] == '\0' || (hello->capabilities & WIRE_CANNOT_RECONNECT)) {
		peers_refuse(b, peer,
		             reason == FALLBACK_FD_PRESSURE ? WIRE_FD_PRESSURE : WIRE_INTERNAL,
		             fallback_name(reason), baton_duration_ms(1000));
		return;
	}
	if (negotiated(b, peer, channel->endpoint, is_plain(channel), NULL))
		b->counts[COUNT_RECONNECTED]++;
	peers_end(b, peer);
}

static enum fallback_reason reason_against(struct baton_broker *b, const struct wire_hello *hello,
                                           const struct channel *channel)
{
	struct baton_duration retry_after;
	const struct fallback_facts facts = {
		.client_unsupported = !(hello->capabilities & WIRE_ACCEPTS_HANDOFF),
		.service_disabled =
			!(channel->capabilities & (WIRE_TAKES_CONNECTIONS | WIRE_IS_ADOPTED)),
		.fd_pressure =
			b->pressure.level != PRESSURE_NONE || b->passings_count == b->passings_max,
		.adopted_backend = (channel->capabilities & WIRE_IS_ADOPTED) != 0,
	};
	return fallback_decide(&facts, &channel->attempts, broker_now(b), &retry_after);
}

static void hand_over(struct baton_broker *b, struct peer *peer, const struct wire_hello *hello,
                      struct channel *channel)
{
	struct token token;
	const struct token_binding binding = {baton_str_z(channel->service->name),
	                                      channel->generation, peer->connection};
	enum fallback_reason reason = reason_against(b, hello, channel);
	if (reason == FALLBACK_NONE &&
	    tokens_issue(&b->tokens, &binding, broker_now(b), &token) != BATON_OK)
		reason = FALLBACK_FD_PRESSURE;
	if (reason != FALLBACK_NONE) {
		fall_back(b, peer, hello, channel, reason);
		return;
	}
	/* The client knows first, so that an end of the connection has a meaning for it. */
	if (negotiated(b, peer, channel->endpoint, is_plain(channel), &token))
		passings_offer(b, peer, channel, hello, &token);
	else
		tokens_revoke(&b->tokens, &token);
	token_wipe(&token);
	peers_end(b, peer);
}

/* Until when the client waits for an answer. */
static struct baton_mono deadline_of(const struct peer *peer)
{
	struct baton_mono deadline = BATON_MONO_NEVER;
	if (peer->trace.deadline > 0 && peer->trace.deadline < INT64_MAX)
		deadline.ns = (int64_t)peer->trace.deadline;
	return deadline;
}

/* Keeps a client until there is a backend of its service again, or its lane is found. */
static void keep(struct baton_broker *b, struct peer *peer, struct links *list)
{
	struct baton_mono deadline = deadline_of(peer);
	struct links *next = list;
	links_remove(&peer->source.links);
	peer->until = baton_mono_add(broker_now(b), b->park);
	if (deadline.ns < peer->until.ns)
		peer->until = deadline;
	/* The list is in the order in which they are to go. */
	while (next->prev != list &&
	       LINKS_OF(next->prev, struct peer, source.links)->until.ns > peer->until.ns)
		next = next->prev;
	links_append(next, &peer->source.links);
	/* One that could not be offered is no longer there. */
	if (!source_change(b, &peer->source, 0))
		peers_end(b, peer);
}

static void seek_lane(struct baton_broker *b, struct peer *peer, const struct wire_hello *hello)
{
	if (!b->locator)
		peers_refuse(b, peer, WIRE_SERVICE_UNKNOWN, "this broker has no store with lanes",
		             (struct baton_duration){0});
	else if (!locator_ask(b->locator, peer->connection, hello->queue, hello->lane))
		peers_refuse(b, peer, WIRE_RATE_LIMITED, "too many clients want to know of lanes",
		             baton_duration_ms(100));
	else
		keep(b, peer, &b->asking);
}

/* The owner has no backend here: the client goes there, if it can. */
static void send_away(struct baton_broker *b, struct peer *peer, const struct wire_hello *hello,
                      const char *endpoint)
{
	if (endpoint[0] == '\0' || (hello->capabilities & WIRE_CANNOT_RECONNECT)) {
		peers_refuse(b, peer, WIRE_LANE_ELSEWHERE, "the owner of the lane is elsewhere",
		             (struct baton_duration){0});
		return;
	}
	if (negotiated(b, peer, endpoint, false, NULL))
		b->counts[COUNT_RECONNECTED]++;
	peers_end(b, peer);
}

void routes_place(struct baton_broker *b, struct peer *peer, const struct wire_hello *hello,
                  const struct locator_answer *answer)
{
	const char *owner = answer->place.owner;
	struct channel *channel = answer->err == BATON_OK && owner[0] != '\0'
	                                  ? services_owned(b, owner, hello->service)
	                                  : NULL;
	if (channel)
		hand_over(b, peer, hello, channel);
	else if (answer->err == BATON_NOT_FOUND)
		peers_refuse(b, peer, WIRE_SERVICE_UNKNOWN, "there is no such queue",
		             (struct baton_duration){0});
	else if (answer->err != BATON_OK)
		peers_refuse(b, peer, WIRE_INTERNAL, "the store does not say where the lane is",
		             baton_duration_ms(1000));
	else if (owner[0] == '\0')
		peers_refuse(b, peer, WIRE_SERVICE_UNKNOWN, "nobody owns the lane now",
		             baton_duration_ms(200));
	else
		send_away(b, peer, hello, answer->place.endpoint);
}

/* What a client gets before the connection is a command's, which knows nothing of it. */
static enum baton_err preface(struct baton_broker *b, const struct peer *peer,
                              const struct wire_hello *hello, struct buf *out)
{
	AUTO(buf_done) struct buf payload;
	const struct route_news news = {.endpoint = "", .handed = true};
	const struct wire_handoff welcome = {.kind = WIRE_WELCOME,
	                                     .is.welcome = {peer->connection}};
	buf_init(&payload, b->alloc, WIRE_HELLO_MAX);
	enum baton_err e = routes_negotiated(b, peer, &news, out);
	if (e != BATON_OK || !(hello->capabilities & WIRE_WANTS_WELCOME))
		return e;
	e = wire_handoff_encode(&welcome, &payload);
	const struct wire_envelope envelope = {.kind = WIRE_EVENT,
	                                       .protocol = WIRE_HANDOFF,
	                                       .payload = buf_str(&payload)};
	return e == BATON_OK ? wire_frame_encode(&envelope, out) : e;
}

/* Runs a command for a connection that came to a listener. */
static void run_plain(struct baton_broker *b, struct peer *peer)
{
	if (children_run(b, peer->service, peer, (struct baton_str){NULL, 0}) == BATON_OK)
		peers_end(b, peer);
	else
		peers_refuse(b, peer, WIRE_SPAWN_FAILED, "", (struct baton_duration){0});
}

/* Offers the connection to one backend after the other, until one may have it. False: none has. */
static bool offer_plain(struct baton_broker *b, struct peer *peer)
{
	const struct wire_hello hello = {
		.min_protocol = WIRE_VERSION,
		.max_protocol = WIRE_VERSION,
		.service = baton_str_z(peer->service->name),
		.capabilities = WIRE_ACCEPTS_HANDOFF | WIRE_CANNOT_RECONNECT,
	};
	struct channel *channel = services_current(peer->service);
	bool offered = false;
	for (; channel && !offered; channel = services_older(peer->service, channel)) {
		struct token token;
		const struct token_binding binding = {baton_str_z(channel->service->name),
		                                      channel->generation, peer->connection};
		enum fallback_reason reason = reason_against(b, &hello, channel);
		if (reason == FALLBACK_NONE &&
		    tokens_issue(&b->tokens, &binding, broker_now(b), &token) != BATON_OK)
			reason = FALLBACK_FD_PRESSURE;
		if (reason != FALLBACK_NONE) {
			b->reasons[reason]++;
			continue;
		}
		offered = passings_offer(b, peer, channel, &hello, &token);
		token_wipe(&token);
	}
	return offered;
}

/* `limit` is the one that it has to wait for. */
static void refuse_for_now(struct baton_broker *b, struct peer *peer,
                           const struct baton_broker_rate *limit, struct baton_duration wait)
{
	const int64_t ms = wait.ns / 1000000 + 1;
	char window[BATON_DURATION_TEXT], next[BATON_DURATION_TEXT], reason[320];
	snprintf(reason, sizeof reason, "at most %u clients of %s may come in %s: the next in %s",
	         limit->count, limit == &b->rate ? "a user" : "the service",
	         baton_duration_print(limit->window, window),
	         baton_duration_print(baton_duration_ms(ms), next));
	b->counts[COUNT_LIMITED]++;
	peers_refuse(b, peer, WIRE_RATE_LIMITED, reason, baton_duration_ms(ms));
}

/* Whether there is room for one client more in the time that the limits are about; else it is told
 * when there is. It counts once, also if it has to wait for its service. */
static bool is_in_time(struct baton_broker *b, struct peer *peer, struct service *service)
{
	const struct definition *d = service ? service->definition : NULL;
	bool limited = b->rate.count > 0 && !peer->listener;
	struct baton_mono now = broker_now(b);
	struct baton_duration wait = {0}, other = {0};
	if (peer->counted || (!limited && !d))
		return true;
	struct quota_use *user = limited ? quota_user(&b->users, peer->who.uid, now) : NULL;
	if (limited)
		wait = user ? quota_wait(&b->rate, user, now) : b->rate.window;
	if (d)
		other = quota_wait(&d->rate, &service->use, now);
	if (wait.ns > 0 || other.ns > 0) {
		if (other.ns > wait.ns)
			refuse_for_now(b, peer, &d->rate, other);
		else
			refuse_for_now(b, peer, &b->rate, wait);
		return false;
	}
	if (user)
		quota_take(&b->rate, user, now);
	if (d)
		quota_take(&d->rate, &service->use, now);
	peer->counted = true;
	return true;
}

void routes_plain(struct baton_broker *b, struct peer *peer)
{
	struct service *service = peer->service;
	struct baton_duration retry_after;
	if (!is_in_time(b, peer, service))
		return;
	service->used = broker_now(b);
	if (services_current(service)) {
		if (offer_plain(b, peer))
			peers_end(b, peer);
		else
			peers_refuse(b, peer, WIRE_INTERNAL, "", (struct baton_duration){0});
	} else if (children_have_room(service)) {
		run_plain(b, peer);
	} else if (children_want(b, service, &retry_after) == BATON_OK) {
		keep(b, peer, &b->parked);
	} else {
		peers_refuse(b, peer, WIRE_SPAWN_FAILED, "", retry_after);
	}
}

/* Runs a command for the connection, and leaves it alone from then on. */
static void run_command(struct baton_broker *b, struct peer *peer, const struct wire_hello *hello,
                        struct service *service)
{
	AUTO(buf_done) struct buf first;
	buf_init(&first, b->alloc, WIRE_HELLO_MAX);
	if (!(hello->capabilities & WIRE_ACCEPTS_HANDOFF)) {
		b->reasons[FALLBACK_CLIENT_UNSUPPORTED]++;
		peers_refuse(b, peer, WIRE_INTERNAL, fallback_name(FALLBACK_CLIENT_UNSUPPORTED),
		             (struct baton_duration){0});
		return;
	}
	enum baton_err e = preface(b, peer, hello, &first);
	if (e == BATON_OK)
		e = children_run(b, service, peer, buf_str(&first));
	if (e == BATON_OK)
		peers_end(b, peer);
	else
		peers_refuse(b, peer, WIRE_SPAWN_FAILED, baton_err_detail(),
		             baton_duration_ms(1000));
}

/* The service has no backend now. */
static void await_backend(struct baton_broker *b, struct peer *peer, const struct wire_hello *hello,
                          struct service *service)
{
	struct baton_duration retry_after = {0};
	if (children_have_room(service)) {
		run_command(b, peer, hello, service);
		return;
	}
	if (children_want(b, service, &retry_after) != BATON_OK) {
		peers_refuse(b, peer, WIRE_SPAWN_FAILED, baton_err_detail(), retry_after);
		return;
	}
	peer->service = service;
	keep(b, peer, &b->parked);
}

/* Whether the client may have that service; else it is told why not. */
static bool is_let_in(struct baton_broker *b, struct peer *peer, const struct wire_hello *hello,
                      const struct service *service)
{
	const struct baton_duration never = {0};
	const struct definition *d = service ? service->definition : NULL;
	if (peers_is_stranger(b, peer) && !(d && definition_allows(d, peer->who.uid))) {
		peers_refuse(b, peer, WIRE_PEER_REJECTED, "this broker serves another user", never);
		return false;
	}
	if (!service && hello->lane.len == 0) {
		peers_refuse(b, peer, WIRE_SERVICE_UNKNOWN,
		             "there is no such service; 'baton services' has those there are",
		             never);
		return false;
	}
	if (d && d->version[0] != '\0' && hello->wanted_version.len > 0 &&
	    !baton_str_equal(hello->wanted_version, baton_str_z(d->version))) {
		peers_refuse(b, peer, WIRE_VERSION_BLOCKED,
		             "the service has another version than the one that is wanted", never);
		return false;
	}
	return true;
}

void routes_take(struct baton_broker *b, struct peer *peer, const struct wire_hello *hello)
{
	if (hello->min_protocol > WIRE_VERSION || hello->max_protocol < WIRE_VERSION) {
		peers_refuse(b, peer, WIRE_VERSION_UNSUPPORTED, "this broker speaks protocol 1",
		             (struct baton_duration){0});
		return;
	}
	if (b->stopping) {
		peers_refuse(b, peer, WIRE_SHUTTING_DOWN, "the broker ends",
		             baton_duration_ms(1000));
		return;
	}
	if (!baton_mono_live(deadline_of(peer), broker_now(b))) {
		b->counts[COUNT_TOO_LATE]++;
		peers_refuse(b, peer, WIRE_INTERNAL, "the time for an answer is over",
		             (struct baton_duration){0});
		return;
	}
	struct service *service = hello->service.len > 0 ? services_find(b, hello->service) : NULL;
	if (!is_let_in(b, peer, hello, service) || !is_in_time(b, peer, service))
		return;
	if (hello->lane.len > 0) {
		seek_lane(b, peer, hello);
		return;
	}
	struct channel *channel = services_current(service);
	service->used = broker_now(b);
	if (channel)
		hand_over(b, peer, hello, channel);
	else
		await_backend(b, peer, hello, service);
}
