/* What a client is answered: its connection is handed over, or it is told where to reconnect. */
#include <string.h>
#include <sys/epoll.h>

#include <baton/version.h>

#include "base/cleanup.h"
#include "handoff/packet.h"
#include "handoff/state.h"

/* Tells the client where to reconnect and, with a token, that it may not have to. */
static bool negotiated(struct baton_broker *b, const struct peer *peer, const char *endpoint,
                       bool plain, const struct token *token)
{
	AUTO(buf_done) struct buf payload;
	buf_init(&payload, b->alloc, WIRE_HELLO_MAX);
	const struct wire_reply reply = {
		.kind = WIRE_NEGOTIATED,
		.negotiated =
			{
				.protocol = WIRE_VERSION,
				.daemon_version = baton_str_z(BATON_VERSION),
				.backend_pipe = baton_str_z(endpoint),
				.capabilities = (token ? WIRE_IS_HANDOFF : 0u) |
	                                        (plain ? WIRE_PLAIN_ENDPOINT : 0u),
				.token = token ? token_str(token) : (struct baton_str){NULL, 0},
				.connection_id = peer->connection,
			},
	};
	if (wire_reply_encode(&reply, &payload) != BATON_OK)
		return false;
	const struct wire_envelope envelope = {.kind = WIRE_RESPONSE,
	                                       .protocol = WIRE_HELLO,
	                                       .payload = buf_str(&payload)};
	bool sent = frame_send(peer->source.fd, &envelope) == PACKET_DONE;
	explicit_bzero(payload.data, payload.len);
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

/* Keeps a client until there is a backend of its service again, or its lane is found. */
static void keep(struct baton_broker *b, struct peer *peer, struct links *list)
{
	links_remove(&peer->source.links);
	links_append(list, &peer->source.links);
	peer->until = baton_mono_add(broker_now(b), b->park);
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

void routes_take(struct baton_broker *b, struct peer *peer, const struct wire_hello *hello)
{
	const struct baton_duration never = {0};
	if (hello->min_protocol > WIRE_VERSION || hello->max_protocol < WIRE_VERSION) {
		peers_refuse(b, peer, WIRE_VERSION_UNSUPPORTED, "this broker speaks protocol 1",
		             never);
		return;
	}
	if (b->stopping) {
		peers_refuse(b, peer, WIRE_SHUTTING_DOWN, "the broker ends",
		             baton_duration_ms(1000));
		return;
	}
	if (hello->lane.len > 0) {
		seek_lane(b, peer, hello);
		return;
	}
	const struct service *service = services_find(b, hello->service);
	if (!service) {
		peers_refuse(b, peer, WIRE_SERVICE_UNKNOWN,
		             "there is no such service; 'baton services' has those there are",
		             never);
		return;
	}
	struct channel *channel = services_current(service);
	if (channel)
		hand_over(b, peer, hello, channel);
	else
		keep(b, peer, &b->parked);
}
