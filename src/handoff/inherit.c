/* Takes the place of a broker that runs: gathers all that it hands over, makes a broker of it, and
 * only then says that it goes on from here. Whatever goes wrong before, the other one does. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "base/mem.h"
#include "handoff/packet.h"
#include "handoff/state.h"
#include "handoff/talk.h"

#define PATIENCE_MS 15000
#define ITEMS_MAX (1u << 20)

struct thing {
	struct wire_item item; /* in the arena */
	int fd;                /* -1: it has none, or it was taken */
};

struct heir {
	struct baton_broker *b;
	int channel;
	struct baton_mono until;
	struct arena arena;
	struct thing *things;
	size_t count;
	size_t room;
};

static void heir_done(struct heir *h)
{
	for (size_t i = 0; i < h->count; i++)
		fd_closep(&h->things[i].fd);
	mem_free(h->b->alloc, h->things, h->room, sizeof *h->things);
	arena_done(&h->arena);
	fd_closep(&h->channel);
}

static struct baton_mono moment(uint64_t ns)
{
	return (struct baton_mono){ns < INT64_MAX ? (int64_t)ns : INT64_MAX};
}

static enum baton_err step_send(const struct heir *h, enum wire_move_step step, uint64_t number)
{
	const struct wire_handoff m = {.kind = WIRE_MOVE,
	                               .is.move = {.step = step, .number = number}};
	if (packet_send(h->channel, &m, -1) == PACKET_DONE)
		return BATON_OK;
	return fail(BATON_GONE, "the broker goes on itself");
}

static enum baton_err room_make(struct heir *h)
{
	if (h->count < h->room)
		return BATON_OK;
	size_t room = h->room > 0 ? h->room * 2 : WIRE_MOVE_ITEMS_MAX;
	struct thing *more =
		room <= ITEMS_MAX ? mem_resize(h->b->alloc, h->things, h->room, room, sizeof *more)
				  : NULL;
	if (!more)
		return fail_memory(room * sizeof *more, "what a broker hands over");
	h->things = more;
	h->room = room;
	return BATON_OK;
}

/* The texts of a packet live until the next one. */
static enum baton_err item_copy(struct heir *h, const struct wire_item *item, struct wire_item *ret)
{
	struct arena *a = &h->arena;
	uint64_t *numbers = arena_take(a, item->numbers_count, sizeof *numbers);
	*ret = *item;
	if (!numbers || !arena_copy(a, item->service, &ret->service) ||
	    !arena_copy(a, item->name, &ret->name) || !arena_copy(a, item->other, &ret->other) ||
	    !arena_copy(a, item->bytes, &ret->bytes) || !arena_copy(a, item->token, &ret->token))
		return fail_memory(item->bytes.len, "what a broker hands over");
	if (item->numbers_count > 0)
		memcpy(numbers, item->numbers, item->numbers_count * sizeof *numbers);
	ret->numbers = numbers;
	return BATON_OK;
}

/* Takes the items of a portion; descriptors that are taken become -1. */
static enum baton_err portion_take(struct heir *h, struct packets *p)
{
	const struct wire_move *move = &p->message.is.move;
	size_t next = 0;
	for (size_t i = 0; i < move->items_count; i++) {
		const struct wire_item *item = &move->items[i];
		bool with = wire_item_has_fd(item->kind);
		if (with && next == p->fds_count)
			return fail(BATON_INVALID, "the broker sent too few descriptors");
		enum baton_err e = room_make(h);
		if (e == BATON_OK)
			e = item_copy(h, item, &h->things[h->count].item);
		if (e != BATON_OK)
			return e;
		h->things[h->count++].fd = with ? fd_take(&p->fds[next++]) : -1;
	}
	if (next < p->fds_count)
		return fail(BATON_INVALID, "the broker sent too many descriptors");
	return step_send(h, WIRE_MOVE_HAVE, move->number);
}

static enum baton_err packet_await(struct heir *h, struct packets *ret)
{
	struct pollfd p = {.fd = h->channel, .events = POLLIN};
	enum packet_got got = PACKET_NOT_NOW;
	while (got == PACKET_NOT_NOW && talk_patience_ms(h->until) > 0) {
		poll(&p, 1, talk_patience_ms(h->until));
		arena_reset(&h->b->arena);
		got = packet_receive_many(h->channel, h->b->room, &h->b->arena, PACKET_FDS_MAX,
		                          ret);
	}
	if (got == PACKET_DONE && ret->message.kind == WIRE_MOVE)
		return BATON_OK;
	for (size_t i = 0; got == PACKET_DONE && i < ret->fds_count; i++)
		close(ret->fds[i]);
	if (got == PACKET_NOT_NOW)
		return fail(BATON_TIMEOUT, "the broker does not hand over what it has");
	return got == PACKET_HUNG_UP ? fail(BATON_GONE, "the broker goes on itself")
	                             : fail(BATON_INVALID, "the broker answered something else, or "
	                                                   "descriptors were lost");
}

/* Gathers all that is handed over. */
static enum baton_err gather(struct heir *h)
{
	enum baton_err e = step_send(h, WIRE_MOVE_ASK, WIRE_MOVE_FORMAT);
	bool over = false;
	while (e == BATON_OK && !over) {
		struct packets p = {.fds_count = 0};
		e = packet_await(h, &p);
		if (e != BATON_OK)
			return e;
		const struct wire_move *move = &p.message.is.move;
		over = move->step == WIRE_MOVE_END;
		if (move->step == WIRE_MOVE_PORTION)
			e = portion_take(h, &p);
		else if (move->step == WIRE_MOVE_REFUSED)
			e = fail(BATON_BUSY, "the broker says: %.*s", (int)move->detail.len,
			         move->detail.ptr ? move->detail.ptr : "");
		else if (!over)
			e = fail(BATON_INVALID, "the broker answered something else");
		for (size_t i = 0; i < p.fds_count; i++)
			fd_closep(&p.fds[i]);
	}
	return e;
}

static enum baton_err door_take(struct baton_broker *b, struct thing *t, struct source *door,
                                const char *name, int type)
{
	char path[SITE_PATH_MAX + 1];
	site_path(&b->site, name, path);
	if (door->fd >= 0)
		return fail(BATON_INVALID, "the broker sent a socket twice");
	enum baton_err e = site_adopt(path, type, t->fd);
	if (e != BATON_OK)
		return e;
	door->fd = fd_take(&t->fd);
	door->lasting = t->item.id == 1;
	if (!source_watch(b, door, EPOLLIN))
		return fail_errno(errno, "cannot wait for clients");
	return BATON_OK;
}

static enum baton_err listener_take(struct baton_broker *b, struct thing *t)
{
	int listens = 0;
	socklen_t len = sizeof listens;
	if (b->inherited_count == LISTENERS_MAX ||
	    getsockopt(t->fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) != 0 || listens != 1)
		return fail(BATON_INVALID, "the broker sent a socket at which nobody can arrive");
	b->inherited[b->inherited_count++] =
		(struct inherited){.address = t->item.name.ptr, .fd = fd_take(&t->fd)};
	return BATON_OK;
}

static enum baton_err service_take(struct baton_broker *b, const struct wire_item *item)
{
	struct service *s;
	if (item->numbers_count != 2 + STARTS_MAX || item->service.len == 0)
		return fail(BATON_INVALID, "the broker sent a service that is none");
	enum baton_err e = services_make(b, item->service, &s);
	if (e != BATON_OK)
		return e;
	s->used = moment(item->numbers[0]);
	s->starts.count = item->numbers[1];
	for (int i = 0; i < STARTS_MAX; i++)
		s->starts.at[i] = moment(item->numbers[2 + i]);
	return BATON_OK;
}

static void counter_take(struct baton_broker *b, const struct wire_item *item)
{
	for (int i = 0; i < COUNTS; i++)
		if (baton_str_equal(item->name, baton_str_z(report_count_name((enum count)i))))
			b->counts[i] = item->id;
	for (int i = 1; i <= FALLBACK_REASONS; i++)
		if (baton_str_equal(item->name,
		                    baton_str_z(fallback_name((enum fallback_reason)i))))
			b->reasons[i] = item->id;
}

static enum baton_err ids_take(struct baton_broker *b, const struct wire_item *item)
{
	if (item->numbers_count != 2)
		return fail(BATON_INVALID, "the broker sent numbers that are none");
	b->connections = item->numbers[0];
	b->backend_ids = item->numbers[1];
	return BATON_OK;
}

static struct channel *channel_find(struct baton_broker *b, uint64_t id)
{
	for (struct links *l = b->channels.next; l != &b->channels; l = l->next) {
		struct channel *c = LINKS_OF(l, struct channel, source.links);
		if (c->id == id)
			return c;
	}
	return NULL;
}

static enum baton_err stored_take(struct baton_broker *b, struct thing *t)
{
	const struct wire_item *item = &t->item;
	struct service *service;
	if (item->service.len == 0)
		return fail(BATON_INVALID, "the broker sent a descriptor of no service");
	enum baton_err e = services_make(b, item->service, &service);
	if (e != BATON_OK)
		return e;
	if (stored_judge(b, service, item->name, t->fd) != WIRE_KEPT_DONE)
		return fail(BATON_INVALID, "the broker sent a descriptor that cannot be kept");
	struct stored s = {.service = service,
	                   .fd = t->fd,
	                   .until = moment(item->until),
	                   .taker = item->id > 0 ? channel_find(b, item->id) : NULL};
	memcpy(s.name, item->name.ptr, item->name.len);
	if (!stored_new(b, &s))
		return fail_memory(sizeof s, "a descriptor that is kept");
	t->fd = -1;
	return BATON_OK;
}

static enum baton_err slate_take_over(struct baton_broker *b, struct thing *t)
{
	struct channel *channel = channel_find(b, t->item.id);
	if (!channel || channel->slate.words)
		return fail(BATON_INVALID, "the broker sent a page that is shared with nobody");
	return slate_map(&t->fd, &channel->slate);
}

static enum baton_err leftover_take(struct baton_broker *b, const struct wire_item *item)
{
	if (item->name.len > SITE_PATH_MAX || b->leftovers_count == LEFTOVERS_MAX)
		return BATON_OK;
	memcpy(b->leftovers[b->leftovers_count], item->name.ptr, item->name.len);
	b->leftovers[b->leftovers_count++][item->name.len] = '\0';
	return BATON_OK;
}

static enum baton_err will_take(struct baton_broker *b, const struct wire_item *item)
{
	if (item->numbers_count != 1 || item->numbers[0] > INT64_MAX ||
	    item->bytes.len > BATON_BROKER_WILL_MAX)
		return fail(BATON_INVALID, "the broker sent a will that is none");
	if (!arena_copy(&b->kept, item->bytes, &b->bequest))
		return fail_memory(item->bytes.len, "a will");
	if (b->will.len == 0)
		b->will = b->bequest;
	if (b->alive && b->alive_every.ns == 0 && item->numbers[0] > 0) {
		b->alive_every = (struct baton_duration){(int64_t)item->numbers[0]};
		b->alive_at = baton_mono_add(broker_now(b), b->alive_every);
	}
	return BATON_OK;
}

/* Where everything begins: before anything that refers to it. */
static enum baton_err ground_take(struct baton_broker *b, struct thing *t)
{
	switch (t->item.kind) {
	case WIRE_ITEM_LOCK:
		if (b->lock >= 0)
			return fail(BATON_INVALID, "the broker sent a lock twice");
		b->lock = fd_take(&t->fd);
		return BATON_OK;
	case WIRE_ITEM_CLIENTS:
		return door_take(b, t, &b->clients, SITE_CLIENTS, SOCK_STREAM);
	case WIRE_ITEM_BACKENDS:
		return door_take(b, t, &b->backends, SITE_BACKENDS, SOCK_SEQPACKET);
	case WIRE_ITEM_LISTENER:
		return listener_take(b, t);
	case WIRE_ITEM_SERVICE:
	case WIRE_ITEM_COUNTER:
	case WIRE_ITEM_IDS:
	case WIRE_ITEM_CHANNEL:
	case WIRE_ITEM_STORED:
	case WIRE_ITEM_PASSING:
	case WIRE_ITEM_CHILD:
	case WIRE_ITEM_PEER:
	case WIRE_ITEM_LEFTOVER:
	case WIRE_ITEM_WILL:
	case WIRE_ITEM_SLATE:
		break;
	}
	return BATON_OK;
}

static enum baton_err rest_take(struct baton_broker *b, struct thing *t)
{
	switch (t->item.kind) {
	case WIRE_ITEM_SERVICE:
		return service_take(b, &t->item);
	case WIRE_ITEM_COUNTER:
		counter_take(b, &t->item);
		return BATON_OK;
	case WIRE_ITEM_IDS:
		return ids_take(b, &t->item);
	case WIRE_ITEM_CHANNEL:
		return channels_adopt(b, &t->item, &t->fd);
	case WIRE_ITEM_STORED:
		return stored_take(b, t);
	case WIRE_ITEM_PASSING:
		return passings_adopt(b, &t->item, channel_find(b, t->item.generation), &t->fd);
	case WIRE_ITEM_CHILD:
		return children_adopt(b, &t->item, &t->fd);
	case WIRE_ITEM_PEER:
		return peers_adopt(b, &t->item, &t->fd);
	case WIRE_ITEM_LEFTOVER:
		return leftover_take(b, &t->item);
	case WIRE_ITEM_WILL:
		return will_take(b, &t->item);
	case WIRE_ITEM_SLATE:
		return slate_take_over(b, t);
	case WIRE_ITEM_LOCK:
	case WIRE_ITEM_CLIENTS:
	case WIRE_ITEM_BACKENDS:
	case WIRE_ITEM_LISTENER:
		break;
	}
	return BATON_OK;
}

static enum baton_err settle(struct heir *h, const struct baton_broker_options *o)
{
	struct baton_broker *b = h->b;
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < h->count && e == BATON_OK; i++)
		e = ground_take(b, &h->things[i]);
	if (e == BATON_OK && (b->lock < 0 || b->clients.fd < 0 || b->backends.fd < 0))
		e = fail(BATON_INVALID, "the broker did not hand over its sockets");
	if (e == BATON_OK)
		e = listeners_open(b, o->listeners, o->listeners_count);
	for (size_t i = 0; i < b->inherited_count; i++)
		fd_closep(&b->inherited[i].fd);
	b->inherited_count = 0;
	for (size_t i = 0; i < h->count && e == BATON_OK; i++)
		e = rest_take(b, &h->things[i]);
	return e;
}

enum baton_err inherit(struct baton_broker *b, const struct baton_broker_options *o, bool *ret_done)
{
	char path[SITE_PATH_MAX + 1];
	broker_tick(b);
	AUTO(heir_done)
	struct heir h = {
		.b = b,
		.channel = -1,
		.until = baton_mono_add(broker_now(b), baton_duration_ms(PATIENCE_MS)),
	};
	arena_init(&h.arena, b->alloc);
	site_path(&b->site, SITE_BACKENDS, path);
	enum baton_err e = site_connect(path, SOCK_SEQPACKET, PATIENCE_MS, &h.channel);
	*ret_done = e == BATON_OK;
	if (e == BATON_NOT_FOUND)
		return BATON_OK;
	if (e != BATON_OK)
		return e;
	b->lent = true;
	e = gather(&h);
	if (e == BATON_OK)
		e = settle(&h, o);
	/* From here on this one is the broker. */
	if (e == BATON_OK)
		e = step_send(&h, WIRE_MOVE_READY, 0);
	if (e != BATON_OK)
		return e;
	b->lent = false;
	peers_again(b);
	return BATON_OK;
}
