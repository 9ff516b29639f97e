/* How a backend registers with the broker, and does so again with the next one. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "handoff/backend.h"
#include "handoff/talk.h"

#define AGAIN_MAX_MS 1000

/* Sends the registration and waits for the answer. */
static enum baton_err introduce(struct baton_backend *b, int channel)
{
	const struct baton_backend_options *o = &b->options;
	struct packet packet = {.fd = -1};
	struct pollfd p = {.fd = channel, .events = POLLIN};
	struct baton_mono until = baton_mono_add(backend_now(b), baton_duration_ms(BACKEND_ANSWER_MS));
	bool adopted = o->endpoint != NULL;
	const struct wire_handoff m = {
		.kind = WIRE_REGISTER,
		.is.registration =
			{
				.service = o->service,
				.generation = o->generation,
				.endpoint = baton_str_z(b->endpoint),
				.owner = o->owner,
				.capabilities =
					(o->reconnect_only || adopted ? 0u
	                                                              : WIRE_TAKES_CONNECTIONS) |
					(o->repeatable ? WIRE_IS_REPEATABLE : 0u) |
					(adopted ? WIRE_IS_ADOPTED | WIRE_IS_PLAIN : 0u) |
					WIRE_ANSWERS_PROBES | WIRE_TAKES_BY_SLATE,
			},
	};
	enum packet_got got = packet_send(channel, &m, -1);
	if (got == PACKET_DONE)
		got = PACKET_NOT_NOW;
	while (got == PACKET_NOT_NOW && talk_patience_ms(until) > 0) {
		poll(&p, 1, talk_patience_ms(until));
		arena_reset(&b->arena);
		got = packet_receive(channel, b->room, &b->arena, &packet);
	}
	AUTO(fd_closep) int slate = got == PACKET_DONE ? packet.fd : -1;
	if (got == PACKET_NOT_NOW)
		return fail(BATON_TIMEOUT, "the broker does not answer");
	if (got != PACKET_DONE || packet.message.kind != WIRE_REGISTERED)
		return fail(BATON_NOT_FOUND, "the broker does not want to talk");
	const struct wire_registered *r = &packet.message.is.registered;
	/* Without one it waits for Grants. */
	if (r->accepted && slate >= 0 && slate_map(&slate, &b->slate) == BATON_OK) {
		close(b->slate.fd);
		b->slate.fd = -1;
	}
	if (r->accepted)
		return BATON_OK;
	return fail(BATON_STALE, "the broker says: %.*s", (int)r->detail.len, r->detail.ptr);
}

enum baton_err enlist(struct baton_backend *b)
{
	AUTO(fd_closep) int channel = -1;
	char path[SITE_PATH_MAX + 1];
	site_path(&b->site, SITE_BACKENDS, path);
	enum baton_err e = site_check(&b->site, false);
	if (e == BATON_OK)
		e = site_connect(path, SOCK_SEQPACKET, BACKEND_ANSWER_MS, &channel);
	if (e == BATON_OK)
		e = introduce(b, channel);
	if (e == BATON_OK && !backend_watch(b, channel, &b->channel))
		e = fail_errno(errno, "cannot wait for the broker");
	if (e != BATON_OK) {
		slate_done(&b->slate);
		return e;
	}
	b->channel = fd_take(&channel);
	return BATON_OK;
}

void enlist_again(struct baton_backend *b)
{
	if (b->channel >= 0 || baton_mono_live(b->again, backend_now(b)))
		return;
	enum baton_err e = enlist(b);
	if (e == BATON_OK)
		return;
	b->refused = e == BATON_STALE;
	b->again_ms = b->again_ms * 2 < AGAIN_MAX_MS ? b->again_ms * 2 : AGAIN_MAX_MS;
	b->again = baton_mono_add(backend_now(b), baton_duration_ms(b->again_ms));
}
