/* What comes to a backend from its broker: offers, Grants and probes. */
#include <string.h>
#include <unistd.h>

#include "handoff/backend.h"

static void untold_wipe(struct baton_backend *b)
{
	explicit_bzero(b->untold, b->untold_count * sizeof *b->untold);
	b->untold_count = 0;
}

/* Nothing that was not granted is ours. */
void offers_lose(struct baton_backend *b)
{
	if (b->channel < 0)
		return;
	backend_unwatch(b, b->channel);
	close(b->channel);
	b->channel = -1;
	untold_wipe(b);
	slate_done(&b->slate);
	while (!links_empty(&b->offered))
		backend_turn_away(b, LINKS_OF(b->offered.next, struct guest, links));
	b->again_ms = BACKEND_AGAIN_MIN_MS;
	b->again = baton_mono_add(backend_now(b), baton_duration_ms(b->again_ms));
	BATON_LOG(b->log, BATON_LOG_WARN, "broker gone",
	          baton_field_str("service", baton_str_z(b->service)));
}

static enum packet_got ack_send(const struct baton_backend *b, struct baton_str token,
                                uint64_t correlation, bool accepted)
{
	const struct wire_handoff ack = {
		.kind = WIRE_ACK,
		.is.ack = {token, accepted, {NULL, 0}, correlation},
	};
	return packet_send(b->channel, &ack, -1);
}

void offers_tell(struct baton_backend *b)
{
	for (size_t i = 0; i < b->untold_count; i++) {
		const struct untold *u = &b->untold[i];
		/* If it cannot be told now, the broker looks for itself. */
		if (b->channel >= 0 && slate_is_unseen(&b->slate, u->word, u->when))
			ack_send(b, token_str(&u->token), u->correlation, true);
	}
	untold_wipe(b);
}

/* Takes it by its word. False: the broker has taken it back. */
static bool offer_seize(struct baton_backend *b, struct guest *guest,
                        const struct wire_offer *offer, struct baton_mono now)
{
	if (!slate_take(&b->slate, offer->word, offer->correlation, now))
		return false;
	if (b->untold_count == BACKEND_UNTOLD_MAX)
		offers_tell(b);
	b->untold[b->untold_count++] =
		(struct untold){guest->token, offer->correlation, offer->word, now};
	held_next(&guest->state, HELD_ACCEPT_LAST);
	backend_have(b, guest);
	return true;
}

/* Answers an offer. False: there is nothing to be kept. */
static bool offer_answer(struct baton_backend *b, struct guest *guest,
                         const struct wire_offer *offer)
{
	bool wanted = b->guests <= BACKEND_GUESTS_MAX && backend_wants(b, guest);
	struct baton_mono now = backend_now(b);
	if (!baton_mono_live(guest->until, now))
		return false;
	if (wanted && offer->word > 0 && b->slate.words)
		return offer_seize(b, guest, offer, now);
	enum packet_got got = ack_send(b, offer->token, offer->correlation, wanted);
	if (!wanted || got != PACKET_DONE)
		return false;
	held_next(&guest->state, b->options.repeatable ? HELD_ACCEPT_LAST : HELD_ACCEPT);
	if (guest->state == HELD_OWNED)
		backend_have(b, guest);
	return true;
}

static void offer_take(struct baton_backend *b, const struct packet *packet)
{
	const struct wire_offer *offer = &packet->message.is.offer;
	const struct guest_news news = {
		.hello = &offer->hello,
		.service = offer->service,
		.who = {(int32_t)offer->credentials.pid, offer->credentials.uid,
	                offer->credentials.gid},
		.trace = &offer->trace,
	};
	struct guest *guest;
	if (guest_new(b->alloc, packet->fd, &guest) != BATON_OK) {
		ack_send(b, offer->token, offer->correlation, false);
		close(packet->fd);
		return;
	}
	b->guests++;
	guest->correlation = offer->correlation;
	guest->until.ns = offer->deadline < INT64_MAX ? (int64_t)offer->deadline : INT64_MAX;
	backend_queue(&b->offered, guest);
	guest->connection.handed = true;
	bool known = token_parse(offer->token, &guest->token) == TOKEN_GOOD &&
	             guest_know(guest, &news) == BATON_OK;
	guest->connection.id = offer->correlation;
	if (!known || !offer_answer(b, guest, offer))
		backend_turn_away(b, guest);
}

static void grant_take(struct baton_backend *b, const struct wire_grant *grant)
{
	struct token token;
	for (struct links *l = b->offered.next; l != &b->offered; l = l->next) {
		struct guest *guest = LINKS_OF(l, struct guest, links);
		if (guest->correlation != grant->correlation)
			continue;
		if (token_parse(grant->token, &token) != TOKEN_GOOD ||
		    !token_equal(&token, &guest->token))
			offers_lose(b);
		else if (held_next(&guest->state, HELD_GRANT))
			backend_have(b, guest);
		token_wipe(&token);
		return;
	}
}

static void probe_answer(struct baton_backend *b, const struct wire_probe *probe)
{
	const struct wire_handoff m = {.kind = WIRE_PROBED, .is.probe = *probe};
	if (packet_send(b->channel, &m, -1) != PACKET_DONE)
		offers_lose(b);
}

void offers_take(struct baton_backend *b, const struct packet *packet)
{
	const struct wire_handoff *m = &packet->message;
	if (m->kind == WIRE_OFFER && packet->fd >= 0) {
		offer_take(b, packet);
		return;
	}
	if (packet->fd >= 0)
		close(packet->fd);
	if (m->kind == WIRE_GRANT && packet->fd < 0)
		grant_take(b, &m->is.grant);
	else if (m->kind == WIRE_PROBES && packet->fd < 0)
		probe_answer(b, &m->is.probe);
	else
		offers_lose(b);
}

/* An offer for whose connection this process has no descriptor left is one
 * that it does not want. */
void offers_refuse(struct baton_backend *b, enum packet_got got, const struct packet *packet)
{
	const struct wire_offer *offer = &packet->message.is.offer;
	if (got == PACKET_LOST && packet->message.kind == WIRE_OFFER)
		ack_send(b, offer->token, offer->correlation, false);
	else
		offers_lose(b);
}

/* Whether what is left at the channel after such a message, if there is something, may be left to
 * the next call: epoll knows of it. A Grant that is due may not, as it would be too late for who
 * serves somebody for long; that of an offer which was just answered is not there yet. */
static bool is_enough(const struct baton_backend *b, enum wire_handoff_kind after)
{
	const struct links *offered = &b->offered;
	bool one = !links_empty(offered) && offered->next->next == offered;
	return links_empty(&b->ready) ? after == WIRE_OFFER && one && !b->busy
	                              : links_empty(offered);
}

bool offers_read(struct baton_backend *b)
{
	int i = 0;
	for (; i < BACKEND_EVENTS && b->channel >= 0; i++) {
		struct packet packet;
		arena_reset(&b->arena);
		enum packet_got got = packet_receive(b->channel, b->room, &b->arena, &packet);
		b->drained = got == PACKET_NOT_NOW;
		if (b->drained)
			break;
		if (got == PACKET_DONE)
			offers_take(b, &packet);
		else
			offers_refuse(b, got, &packet);
		b->drained = got == PACKET_DONE && is_enough(b, packet.message.kind);
		if (b->drained) {
			i++;
			break;
		}
	}
	b->busy = i > 0;
	return i > 0;
}
