/* Hands all that a broker has to the one that takes its place. Nothing else is done meanwhile: no
 * channel is read and nobody is accepted, so nothing changes that was sent. Until the other one
 * says that it is ready this one can go on as if nothing had been; from then on it touches nothing.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fail.h"
#include "handoff/packet.h"
#include "handoff/state.h"
#include "handoff/talk.h"

#define UPGRADE_MIN_MS 2000
#define UPGRADE_MAX_MS 10000
#define PORTION_BYTES (48u << 10)
#define ITEM_BYTES 256
#define NUMBERS 8

struct mover {
	struct baton_broker *b;
	const struct channel *channel; /* to the new one */
	int64_t patience_ms;
	struct baton_mono until;
	struct arena arena; /* for the bytes of a portion */
	struct wire_item items[WIRE_MOVE_ITEMS_MAX];
	uint64_t numbers[WIRE_MOVE_ITEMS_MAX][NUMBERS];
	int fds[WIRE_MOVE_ITEMS_MAX];
	size_t items_count;
	size_t fds_count;
	size_t bytes;
	uint64_t number;
};

/* What the other one sends next. After its time it is told so first: what it sent before counts. */
static enum packet_got answer_next(struct mover *m, struct packet *ret)
{
	int fd = m->channel->source.fd;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	for (;;) {
		bool last = talk_patience_ms(m->until) == 0;
		if (last)
			shutdown(fd, SHUT_RD);
		arena_reset(&m->b->arena);
		enum packet_got got = packet_receive(fd, m->b->room, &m->b->arena, ret);
		/* Then the end is one that this side has made. */
		if (last && got == PACKET_HUNG_UP)
			return PACKET_NOT_NOW;
		if (got != PACKET_NOT_NOW || last)
			return got;
		poll(&p, 1, talk_patience_ms(m->until));
	}
}

static enum baton_err answer_await(struct mover *m, enum wire_move_step step, uint64_t number)
{
	struct packet packet = {.fd = -1};
	enum packet_got got = answer_next(m, &packet);
	if (got == PACKET_DONE && packet.fd < 0 && packet.message.kind == WIRE_MOVE &&
	    packet.message.is.move.step == step && packet.message.is.move.number == number)
		return BATON_OK;
	if (got == PACKET_DONE && packet.fd >= 0)
		close(packet.fd);
	if (got == PACKET_NOT_NOW)
		return fail(BATON_TIMEOUT, "the new broker takes longer than %lld ms",
		            (long long)m->patience_ms);
	return got == PACKET_HUNG_UP ? fail(BATON_GONE, "the new broker is gone")
	                             : fail(BATON_INVALID, "the new broker speaks nonsense");
}

static enum baton_err step_send(const struct mover *m, const struct wire_move *move, const int *fds,
                                size_t count)
{
	const struct wire_handoff message = {.kind = WIRE_MOVE, .is.move = *move};
	if (packet_send_many(m->channel->source.fd, &message, fds, count) == PACKET_DONE)
		return BATON_OK;
	return fail(BATON_GONE, "nothing can be sent to the new broker");
}

/* Sends what was gathered, and waits until it is there. */
static enum baton_err portion_send(struct mover *m)
{
	const struct wire_move move = {
		.step = WIRE_MOVE_PORTION,
		.number = ++m->number,
		.items = m->items,
		.items_count = m->items_count,
	};
	enum baton_err e = step_send(m, &move, m->fds, m->fds_count);
	if (e == BATON_OK)
		e = answer_await(m, WIRE_MOVE_HAVE, m->number);
	m->items_count = 0;
	m->fds_count = 0;
	m->bytes = 0;
	arena_reset(&m->arena);
	return e;
}

static size_t item_size(const struct wire_item *item)
{
	return item->bytes.len + item->name.len + item->other.len + ITEM_BYTES;
}

/* Sends what was gathered if an item of that size does not go with it. */
static enum baton_err room_make(struct mover *m, size_t size)
{
	bool full = m->items_count == WIRE_MOVE_ITEMS_MAX ||
	            (m->items_count > 0 && m->bytes + size > PORTION_BYTES);
	return full ? portion_send(m) : BATON_OK;
}

static enum baton_err item_add(struct mover *m, const struct wire_item *item, int fd)
{
	size_t size = item_size(item);
	enum baton_err e = room_make(m, size);
	if (e != BATON_OK)
		return e;
	struct wire_item *place = &m->items[m->items_count];
	uint64_t *numbers = m->numbers[m->items_count++];
	*place = *item;
	if (item->numbers_count > 0)
		memcpy(numbers, item->numbers, item->numbers_count * sizeof *numbers);
	place->numbers = numbers;
	if (wire_item_has_fd(item->kind))
		m->fds[m->fds_count++] = fd;
	m->bytes += size;
	return BATON_OK;
}

static uint64_t moment(struct baton_mono at)
{
	return (uint64_t)at.ns;
}

static enum baton_err doors_move(struct mover *m)
{
	struct baton_broker *b = m->b;
	const struct wire_item lock = {.kind = WIRE_ITEM_LOCK};
	const struct wire_item clients = {.kind = WIRE_ITEM_CLIENTS, .id = b->clients.lasting};
	const struct wire_item backends = {.kind = WIRE_ITEM_BACKENDS, .id = b->backends.lasting};
	enum baton_err e = item_add(m, &lock, b->lock);
	if (e == BATON_OK)
		e = item_add(m, &clients, b->clients.fd);
	if (e == BATON_OK)
		e = item_add(m, &backends, b->backends.fd);
	for (size_t i = 0; i < b->listeners_count && e == BATON_OK; i++) {
		const struct listener *l = &b->listeners[i];
		const struct wire_item item = {.kind = WIRE_ITEM_LISTENER,
		                               .name = baton_str_z(l->address)};
		e = item_add(m, &item, l->source.fd);
	}
	return e;
}

static enum baton_err will_move(struct mover *m)
{
	const struct baton_broker *b = m->b;
	const uint64_t every = (uint64_t)b->alive_every.ns;
	const struct wire_item item = {.kind = WIRE_ITEM_WILL,
	                               .bytes = b->will,
	                               .numbers = &every,
	                               .numbers_count = 1};
	return b->will.len > 0 ? item_add(m, &item, -1) : BATON_OK;
}

static enum baton_err counter_move(struct mover *m, const char *name, uint64_t value)
{
	const struct wire_item item = {.kind = WIRE_ITEM_COUNTER,
	                               .name = baton_str_z(name),
	                               .id = value};
	return item_add(m, &item, -1);
}

static enum baton_err counters_move(struct mover *m)
{
	const struct baton_broker *b = m->b;
	const uint64_t ids[] = {b->connections, b->backend_ids};
	const struct wire_item item = {.kind = WIRE_ITEM_IDS, .numbers = ids, .numbers_count = 2};
	enum baton_err e = item_add(m, &item, -1);
	for (int i = 0; i < COUNTS && e == BATON_OK; i++)
		e = counter_move(m, report_count_name((enum count)i), b->counts[i]);
	for (int i = 1; i <= FALLBACK_REASONS && e == BATON_OK; i++)
		e = counter_move(m, fallback_name((enum fallback_reason)i), b->reasons[i]);
	for (size_t i = 0; i < b->leftovers_count && e == BATON_OK; i++) {
		const struct wire_item path = {.kind = WIRE_ITEM_LEFTOVER,
		                               .name = baton_str_z(b->leftovers[i])};
		e = item_add(m, &path, -1);
	}
	return e;
}

static enum baton_err service_move(struct mover *m, const struct service *s)
{
	const uint64_t numbers[2 + STARTS_MAX] = {moment(s->used), s->starts.count,
	                                          moment(s->starts.at[0]), moment(s->starts.at[1]),
	                                          moment(s->starts.at[2])};
	const struct wire_item item = {
		.kind = WIRE_ITEM_SERVICE,
		.service = baton_str_z(s->name),
		.numbers = numbers,
		.numbers_count = 2 + STARTS_MAX,
	};
	return item_add(m, &item, -1);
}

static enum baton_err services_move(struct mover *m)
{
	enum baton_err e = BATON_OK;
	for (int i = 0; i < SERVICE_BUCKETS && e == BATON_OK; i++)
		for (struct service *s = m->b->services[i]; s && e == BATON_OK; s = s->next)
			e = service_move(m, s);
	return e;
}

static enum baton_err channel_move(struct mover *m, const struct channel *c)
{
	const uint64_t numbers[] = {c->wrong, c->granted, c->failed, c->leaving};
	const struct wire_item item = {
		.kind = WIRE_ITEM_CHANNEL,
		.service = baton_str_z(c->service ? c->service->name : ""),
		.name = baton_str_z(c->endpoint),
		.other = baton_str_z(c->owner),
		.id = c->id,
		.generation = c->generation,
		.capabilities = c->capabilities,
		.until = moment(c->until),
		.numbers = numbers,
		.numbers_count = 4,
	};
	const struct wire_item slate = {.kind = WIRE_ITEM_SLATE, .id = c->id};
	if (c == m->channel)
		return BATON_OK;
	enum baton_err e = item_add(m, &item, c->source.fd);
	return e == BATON_OK && c->slate.words ? item_add(m, &slate, c->slate.fd) : e;
}

/* What was read of its first frame, as it came. */
static bool peer_bytes(struct mover *m, const struct peer *peer, struct baton_str *ret)
{
	const struct wire_reader *r = &peer->reader;
	char *bytes = arena_take(&m->arena, (size_t)r->head_len + r->have + 1, 1);
	if (!bytes)
		return false;
	memcpy(bytes, r->head, r->head_len);
	if (r->have > 0)
		memcpy(bytes + r->head_len, r->body, r->have);
	*ret = (struct baton_str){bytes, (size_t)r->head_len + r->have};
	return true;
}

static enum baton_err peer_move(struct mover *m, const struct peer *peer, bool again)
{
	struct wire_item item = {
		.kind = WIRE_ITEM_PEER,
		.service = baton_str_z(peer->listener && peer->service ? peer->service->name : ""),
		.name = baton_str_z(peer->listener ? peer->listener->address : ""),
		.id = peer->connection,
		.capabilities = again,
		.until = moment(peer->until),
	};
	/* Before its bytes are in the arena, which ends with a portion; item_add() finds room. */
	enum baton_err e =
		room_make(m, item_size(&item) + peer->reader.head_len + peer->reader.have);
	if (e != BATON_OK)
		return e;
	if (!peer_bytes(m, peer, &item.bytes))
		return fail_memory(peer->reader.have, "an upgrade");
	return item_add(m, &item, peer->source.fd);
}

static enum baton_err list_move(struct mover *m, const struct links *list, bool again)
{
	enum baton_err e = BATON_OK;
	for (struct links *l = list->next; l != list && e == BATON_OK; l = l->next) {
		struct source *s = LINKS_OF(l, struct source, links);
		e = s->kind == SOURCE_PEER ? peer_move(m, LINKS_OF(s, struct peer, source), again)
		                           : channel_move(m, LINKS_OF(s, struct channel, source));
	}
	return e;
}

static enum baton_err stored_move(struct mover *m)
{
	enum baton_err e = BATON_OK;
	const struct links *list = &m->b->stored;
	for (struct links *l = list->next; l != list && e == BATON_OK; l = l->next) {
		const struct stored *s = LINKS_OF(l, const struct stored, links);
		const struct wire_item item = {
			.kind = WIRE_ITEM_STORED,
			.service = baton_str_z(s->service->name),
			.name = baton_str_z(s->name),
			.id = s->taker ? s->taker->id : 0,
			.until = moment(s->until),
		};
		e = item_add(m, &item, s->fd);
	}
	return e;
}

static enum baton_err passings_move(struct mover *m)
{
	enum baton_err e = BATON_OK;
	for (uint32_t i = 0; i < m->b->passings_max && e == BATON_OK; i++) {
		const struct passing *p = &m->b->passings[i];
		if (p->state != PASSING_OFFERED)
			continue;
		const struct wire_item item = {
			.kind = WIRE_ITEM_PASSING,
			.token = token_str(&p->token),
			.id = p->connection,
			.generation = p->channel->id,
			.capabilities = p->word,
			.since = moment(p->since),
		};
		e = item_add(m, &item, p->fd);
	}
	return e;
}

static enum baton_err children_move(struct mover *m, const struct links *list)
{
	enum baton_err e = BATON_OK;
	for (struct links *l = list->next; l != list && e == BATON_OK; l = l->next) {
		const struct child *c = LINKS_OF(l, const struct child, source.links);
		const struct wire_item item = {
			.kind = WIRE_ITEM_CHILD,
			.service = baton_str_z(c->service->name),
			.id = (uint64_t)c->pid,
			.capabilities = (uint64_t)c->state,
			.until = moment(c->until),
		};
		e = item_add(m, &item, c->source.fd);
	}
	return e;
}

static enum baton_err all_move(struct mover *m)
{
	struct baton_broker *b = m->b;
	const struct wire_move end = {.step = WIRE_MOVE_END};
	enum baton_err e = doors_move(m);
	if (e == BATON_OK)
		e = will_move(m);
	if (e == BATON_OK)
		e = counters_move(m);
	if (e == BATON_OK)
		e = services_move(m);
	if (e == BATON_OK)
		e = list_move(m, &b->channels, false);
	if (e == BATON_OK)
		e = stored_move(m);
	if (e == BATON_OK)
		e = passings_move(m);
	if (e == BATON_OK)
		e = children_move(m, &b->mains);
	if (e == BATON_OK)
		e = children_move(m, &b->commands);
	if (e == BATON_OK)
		e = list_move(m, &b->waiting, false);
	if (e == BATON_OK)
		e = list_move(m, &b->parked, true);
	if (e == BATON_OK)
		e = list_move(m, &b->asking, true);
	if (e == BATON_OK && m->items_count > 0)
		e = portion_send(m);
	if (e == BATON_OK)
		e = step_send(m, &end, NULL, 0);
	return e == BATON_OK ? answer_await(m, WIRE_MOVE_READY, 0) : e;
}

/* Whether it may be; else the other one is told why not. */
static enum baton_err ask_judge(const struct mover *m, const struct wire_move *ask)
{
	const struct baton_broker *b = m->b;
	bool given = b->clients.lasting || b->backends.lasting;
	const char *why = NULL;
	if (b->stopping)
		why = "this broker ends already";
	else if (ask->step != WIRE_MOVE_ASK || ask->number != WIRE_MOVE_FORMAT)
		why = "this broker is of another version, and has to be stopped and started";
	/* Who would take the end of this process for that of the service. */
	else if (b->may_succeed ? !b->may_succeed(b->arg, m->channel->who.pid, given) : given)
		why = "the service manager has the sockets: reload or restart it there";
	if (!why)
		return BATON_OK;
	const struct wire_move refused = {.step = WIRE_MOVE_REFUSED, .detail = baton_str_z(why)};
	step_send(m, &refused, NULL, 0);
	return fail(BATON_INVALID, "%s", why);
}

/* How long this one may stand still: backends acknowledge meanwhile, and wait for an answer. */
static int64_t patience_of(const struct baton_broker *b)
{
	int64_t ms = b->acks.timeout_ms / 2;
	ms = ms > UPGRADE_MIN_MS ? ms : UPGRADE_MIN_MS;
	return ms < UPGRADE_MAX_MS ? ms : UPGRADE_MAX_MS;
}

void upgrade_give(struct baton_broker *b, struct channel *channel, const struct wire_move *ask)
{
	struct baton_mono began = broker_now(b);
	struct mover m = {.b = b, .channel = channel, .patience_ms = patience_of(b)};
	m.until = baton_mono_add(began, baton_duration_ms(m.patience_ms));
	arena_init(&m.arena, b->alloc);
	enum baton_err e = ask_judge(&m, ask);
	if (e == BATON_OK)
		e = all_move(&m);
	arena_done(&m.arena);
	explicit_bzero(m.items, sizeof m.items);
	if (e == BATON_OK) {
		b->lent = true;
		BATON_LOG(b->log, BATON_LOG_INFO, "another broker goes on",
		          baton_field_int("pid", channel->who.pid));
		if (b->succeeded)
			b->succeeded(b->arg, channel->who.pid);
		return;
	}
	BATON_LOG(b->log, BATON_LOG_WARN, "upgrade failed, going on",
	          baton_field_int("pid", channel->who.pid),
	          baton_field_str("why", baton_str_z(baton_err_detail())));
	broker_tick(b);
	passings_delay(b, baton_mono_sub(broker_now(b), began));
	channels_end(b, channel, FALLBACK_ACK_TIMEOUT);
}

void upgrade_forget(struct baton_broker *b)
{
	struct links *lists[] = {&b->channels, &b->waiting};
	b->clients.lasting = true;
	b->backends.lasting = true;
	for (int i = 0; i < 2; i++)
		for (struct links *l = lists[i]->next; l != lists[i]; l = l->next) {
			struct source *s = LINKS_OF(l, struct source, links);
			if (s->kind != SOURCE_CHANNEL)
				continue;
			struct channel *c = LINKS_OF(s, struct channel, source);
			links_remove(&c->of_service);
			c->service = NULL;
			c->pending = 0;
		}
}
