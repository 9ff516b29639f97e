/* What a client is answered: its connection is handed over, or it is told where to reconnect. */
#include <string.h>
#include <sys/epoll.h>

#include <baton/version.h>

#include "base/cleanup.h"
#include "handoff/packet.h"
#include "handoff/state.h"

/* Tells the client where to reconnect and, with a token, that it may not have to. */
static bool negotiated(struct baton_broker *b, const struct peer *peer,
                       const struct channel *channel, const struct token *token)
{
	AUTO(buf_done) struct buf payload;
	bool plain = (channel->capabilities & WIRE_IS_PLAIN) != 0;
	buf_init(&payload, b->alloc, WIRE_HELLO_MAX);
	const struct wire_reply reply = {
		.kind = WIRE_NEGOTIATED,
		.negotiated =
			{
				.protocol = WIRE_VERSION,
				.daemon_version = baton_str_z(BATON_VERSION),
				.backend_pipe = baton_str_z(channel->endpoint),
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
	if (negotiated(b, peer, channel, NULL))
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
	if (negotiated(b, peer, channel, &token))
		passings_offer(b, peer, channel, hello, &token);
	else
		tokens_revoke(&b->tokens, &token);
	token_wipe(&token);
	peers_end(b, peer);
}

/* Keeps a client whose service had a backend, until there is one again. */
static void park(struct baton_broker *b, struct peer *peer)
{
	links_remove(&peer->source.links);
	links_append(&b->parked, &peer->source.links);
	peer->until = baton_mono_add(broker_now(b), b->park);
	if (!source_change(b, &peer->source, EPOLLRDHUP))
		peers_end(b, peer);
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
	const struct service *service =
		hello->service.len > 0 ? services_find(b, hello->service) : NULL;
	if (!service) {
		peers_refuse(b, peer, WIRE_SERVICE_UNKNOWN, "there is no such service", never);
		return;
	}
	struct channel *channel = services_current(service);
	if (channel)
		hand_over(b, peer, hello, channel);
	else
		park(b, peer);
}
