/* Backends: who registers, and what they say. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <baton/version.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "base/mem.h"
#include "handoff/packet.h"
#include "handoff/state.h"

/* How many packets of one backend are read before others have their turn. */
#define TURN 64

/* Removes what dead backends have left in the broker's folder; a process that is about to end may
 * still listen there, and then it is tried again later. */
static void leftovers_sweep(struct baton_broker *b)
{
	for (size_t i = 0; i < b->leftovers_count;)
		if (site_sweep(b->leftovers[i]))
			memcpy(b->leftovers[i], b->leftovers[--b->leftovers_count],
			       sizeof b->leftovers[i]);
		else
			i++;
}

static void leftover_add(struct baton_broker *b, const struct channel *channel)
{
	size_t len = strlen(b->site.folder);
	if (strncmp(channel->endpoint, b->site.folder, len) != 0 || channel->endpoint[len] != '/' ||
	    strlen(channel->endpoint) > SITE_PATH_MAX || b->leftovers_count == LEFTOVERS_MAX)
		return;
	snprintf(b->leftovers[b->leftovers_count++], SITE_PATH_MAX + 1, "%.*s", SITE_PATH_MAX,
	         channel->endpoint);
}

void channels_add(struct baton_broker *b, int fd)
{
	leftovers_sweep(b);
	struct channel *c =
		b->channels_count < CHANNELS_MAX ? mem_new(b->alloc, 1, sizeof *c) : NULL;
	if (!c) {
		close(fd);
		return;
	}
	c->source = (struct source){.kind = SOURCE_CHANNEL, .fd = fd};
	c->until = baton_mono_add(broker_now(b), b->hello);
	links_init(&c->source.links);
	links_init(&c->of_service);
	b->channels_count++;
	if (site_peer(fd, &c->who) != BATON_OK || c->who.uid != b->uid ||
	    !source_watch(b, &c->source, EPOLLIN)) {
		channels_end(b, c, FALLBACK_ACK_TIMEOUT);
		return;
	}
	links_append(&b->waiting, &c->source.links);
}

void channels_end(struct baton_broker *b, struct channel *channel, enum fallback_reason reason)
{
	if (channel->source.fd < 0)
		return;
	if (channel->service) {
		passings_drop(b, channel, reason);
		stored_lost(b, channel);
		leftover_add(b, channel);
		BATON_LOG(b->log, BATON_LOG_INFO, "backend gone",
		          baton_field_str("service", baton_str_z(channel->service->name)),
		          baton_field_uint("generation", channel->generation),
		          baton_field_int("pid", channel->who.pid));
	}
	links_remove(&channel->of_service);
	slate_done(&channel->slate);
	b->channels_count--;
	source_end(b, &channel->source);
	if (channel->service)
		children_lost(b, channel->service, reason != FALLBACK_INTEGRITY_MISMATCH);
}

/* The texts were bounded when they were read. */
static enum baton_err channel_fill(struct baton_broker *b, struct channel *c,
                                   const struct wire_item *item)
{
	if (item->service.len == 0)
		return BATON_OK;
	enum baton_err e = services_make(b, item->service, &c->service);
	if (e != BATON_OK)
		return e;
	c->id = item->id;
	c->generation = item->generation;
	c->capabilities = item->capabilities;
	memcpy(c->endpoint, item->name.ptr, item->name.len);
	memcpy(c->owner, item->other.ptr, item->other.len);
	c->wrong = (unsigned)item->numbers[0];
	c->granted = item->numbers[1];
	c->failed = item->numbers[2];
	c->leaving = item->numbers[3] != 0;
	links_append(&c->service->channels, &c->of_service);
	return BATON_OK;
}

enum baton_err channels_adopt(struct baton_broker *b, const struct wire_item *item, int *fd)
{
	struct site_peer who;
	if (item->numbers_count != 4 || b->channels_count == CHANNELS_MAX)
		return fail(BATON_INVALID, "the broker sent a backend that is none");
	enum baton_err e = site_peer(*fd, &who);
	if (e == BATON_OK && who.uid != b->uid)
		e = fail(BATON_INVALID, "the broker sent a backend of the user %u",
		         (unsigned)who.uid);
	struct channel *c = e == BATON_OK ? mem_new(b->alloc, 1, sizeof *c) : NULL;
	if (!c)
		return e == BATON_OK ? fail_memory(sizeof *c, "a backend") : e;
	c->source = (struct source){.kind = SOURCE_CHANNEL, .fd = fd_take(fd)};
	c->until.ns = (int64_t)item->until;
	c->who = who;
	links_init(&c->source.links);
	links_init(&c->of_service);
	b->channels_count++;
	e = channel_fill(b, c, item);
	links_append(c->service ? &b->channels : &b->waiting, &c->source.links);
	if (e == BATON_OK && !source_watch(b, &c->source, EPOLLIN))
		e = fail_errno(errno, "cannot wait for a backend");
	return e;
}

static void answer(struct baton_broker *b, struct channel *c, bool accepted, const char *detail)
{
	const struct wire_handoff m = {
		.kind = WIRE_REGISTERED,
		.is.registered = {accepted, baton_str_z(detail), c->id, baton_str_z(BATON_VERSION)},
	};
	int slate = c->slate.words ? c->slate.fd : -1;
	if (packet_send(c->source.fd, &m, slate) != PACKET_DONE || !accepted)
		channels_end(b, c, FALLBACK_ACK_TIMEOUT);
}

/* Whether a backend may have the service, or its part of it if it speaks for a runner; "" or why
 * not. */
static const char *objection(const struct service *service, struct baton_str owner,
                             uint64_t generation, char text[128])
{
	const struct channel *now = services_newest(service, owner);
	text[0] = '\0';
	if (now && now->generation >= generation)
		snprintf(text, 128, "%s of the service has generation %llu already",
		         now->generation == generation ? "another backend" : "a newer backend",
		         (unsigned long long)now->generation);
	return text;
}

static void registration(struct baton_broker *b, struct channel *c, const struct wire_register *r)
{
	char why[128];
	struct service *service;
	if (services_make(b, r->service, &service) != BATON_OK) {
		answer(b, c, false, baton_err_detail());
		return;
	}
	if (objection(service, r->owner, r->generation, why)[0] != '\0') {
		answer(b, c, false, why);
		return;
	}
	c->id = ++b->backend_ids;
	c->service = service;
	c->generation = r->generation;
	c->capabilities = r->capabilities;
	memcpy(c->endpoint, r->endpoint.ptr ? r->endpoint.ptr : "", r->endpoint.len);
	memcpy(c->owner, r->owner.ptr ? r->owner.ptr : "", r->owner.len);
	links_remove(&c->source.links);
	links_append(&b->channels, &c->source.links);
	links_append(&service->channels, &c->of_service);
	BATON_LOG(b->log, BATON_LOG_INFO, "backend registered",
	          baton_field_str("service", r->service),
	          baton_field_uint("generation", r->generation),
	          baton_field_str("endpoint", r->endpoint), baton_field_int("pid", c->who.pid));
	children_registered(b, c);
	/* Without one each connection is granted by a message. */
	if ((r->capabilities & WIRE_TAKES_BY_SLATE) && slate_new(&c->slate) != BATON_OK)
		BATON_LOG(b->log, BATON_LOG_WARN, "no slate",
		          baton_field_str("why", baton_str_z(baton_err_detail())));
	answer(b, c, true, "");
	if (c->source.fd >= 0)
		peers_unpark(b, service);
}

static void broken(struct baton_broker *b, struct channel *c, const char *why)
{
	b->counts[COUNT_BROKEN]++;
	BATON_LOG(b->log, BATON_LOG_WARN, "backend cut off", baton_field_int("pid", c->who.pid),
	          baton_field_str("why", baton_str_z(why)));
	channels_end(b, c, FALLBACK_INTEGRITY_MISMATCH);
}

static void packet_take(struct baton_broker *b, struct channel *c, const struct packet *packet)
{
	const struct wire_handoff *m = &packet->message;
	int fd = packet->fd;
	c->unanswered = 0;
	if (m->kind == WIRE_KEEP && c->service && (fd >= 0) == (m->is.keep.verb == WIRE_PUT)) {
		bool good = stored_ask(b, c, &m->is.keep, &fd);
		fd_closep(&fd);
		if (!good)
			broken(b, c, "it has got a descriptor that it was not sent");
	} else if (fd >= 0) {
		close(fd);
		broken(b, c, "it sent a descriptor");
	} else if (m->kind == WIRE_REGISTER && !c->service) {
		registration(b, c, &m->is.registration);
	} else if (m->kind == WIRE_MOVE && !c->service) {
		upgrade_give(b, c, &m->is.move);
	} else if (m->kind == WIRE_ACK && c->service) {
		passings_ack(b, c, &m->is.ack);
	} else if (m->kind == WIRE_PROBED && c->service) {
		/* That of the broker before this one may come late. */
		c->probe = c->probe == m->is.probe.correlation ? 0 : c->probe;
	} else {
		broken(b, c, "it sent a message that is not a backend's");
	}
}

/* This process has no room for the descriptor that came with the message. */
static void packet_lost(struct baton_broker *b, struct channel *c, const struct wire_handoff *m)
{
	if (m->kind == WIRE_KEEP && m->is.keep.verb == WIRE_PUT && c->service)
		stored_refuse(b, c, &m->is.keep);
	else
		broken(b, c, "it sent a descriptor");
}

void channels_event(struct baton_broker *b, struct channel *channel)
{
	int turn = source_turn(b, &channel->source, TURN);
	for (int i = 0; i < turn && channel->source.fd >= 0 && !b->lent; i++) {
		struct packet packet;
		if (i > 0)
			broker_tick(b);
		arena_reset(&b->arena);
		switch (packet_receive(channel->source.fd, b->room, &b->arena, &packet)) {
		case PACKET_DONE:
			packet_take(b, channel, &packet);
			break;
		case PACKET_NOT_NOW:
			return;
		case PACKET_LOST:
			packet_lost(b, channel, &packet.message);
			break;
		case PACKET_STRANGE:
			broken(b, channel, "it sent something that is no message");
			break;
		case PACKET_HUNG_UP:
		case PACKET_DENIED:
		case PACKET_FAILED:
			channels_end(b, channel, FALLBACK_ACK_TIMEOUT);
			break;
		}
	}
}
