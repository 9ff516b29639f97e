/* The backend's side: a channel to the broker, an endpoint of its own, and the connections that
 * come by both. */
#include <baton/backend.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <baton/clock.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "base/mem.h"
#include "handoff/guest.h"
#include "handoff/packet.h"
#include "handoff/site.h"
#include "handoff/talk.h"

#define GUESTS_MAX 4096
#define ANSWER_MS 5000
#define HELLO_MS 30000
#define AGAIN_MIN_MS 20
#define AGAIN_MAX_MS 1000
#define REST_MS 100 /* of the endpoint, when there is no descriptor for who comes */
#define EVENTS 64

struct baton_backend {
	const struct baton_alloc *alloc;
	const struct baton_log *log;
	const struct baton_clock *clock;
	struct baton_backend_options options; /* its texts are below */
	struct site site;
	char service[WIRE_SERVICE_MAX + 1];
	char owner[BATON_NAME_MAX + 1];
	char endpoint[WIRE_ENDPOINT_MAX + 1];
	int epoll;
	int timer;
	int64_t armed; /* when it goes off; INT64_MAX: never */
	int channel;   /* -1: there is no broker */
	bool drained;  /* nothing is expected at the channel, in this call or the one before */
	bool busy;     /* there was something at the channel when it was last looked at      */
	int listener;  /* -1: somebody else is at the endpoint */
	struct baton_mono rested; /* until when nobody is accepted there; NEVER: they are */
	bool refused;             /* the broker did not want it again; to be told */
	struct baton_mono again;  /* when a broker is looked for */
	int again_ms;
	struct links offered; /* and not granted yet */
	struct links callers; /* clients that have reconnected, and say what they want */
	struct links ready;
	size_t guests;
	uint64_t questions; /* that were asked about what the broker keeps */
	struct arena arena;
	char room[WIRE_PACKET_MAX + 1];
};

static struct baton_mono now_of(const struct baton_backend *b)
{
	return b->clock->now(b->clock);
}

/* Adds a guest to a list, which is in the order in which their time is over. */
static void queue(struct links *list, struct guest *guest)
{
	struct links *next = list;
	while (next->prev != list &&
	       LINKS_OF(next->prev, struct guest, links)->until.ns > guest->until.ns)
		next = next->prev;
	links_append(next, &guest->links);
}

/* What epoll tells about: one of these, or a guest. */
static bool watch(struct baton_backend *b, int fd, void *what)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = what};
	return epoll_ctl(b->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* What is closed is taken out first: a process that is being started may have a copy for a moment,
 * which would keep it in epoll. */
static void unwatch(const struct baton_backend *b, int fd)
{
	struct epoll_event event = {.events = 0};
	epoll_ctl(b->epoll, EPOLL_CTL_DEL, fd, &event);
}

static void turn_away(struct baton_backend *b, struct guest *guest)
{
	b->guests--;
	if (!guest->connection.handed)
		unwatch(b, guest->connection.fd);
	guest_turn_away(guest);
}

/* The broker is gone, or cannot be trusted: nothing that was not granted is ours. */
static void channel_lose(struct baton_backend *b)
{
	if (b->channel < 0)
		return;
	unwatch(b, b->channel);
	close(b->channel);
	b->channel = -1;
	while (!links_empty(&b->offered))
		turn_away(b, LINKS_OF(b->offered.next, struct guest, links));
	b->again_ms = AGAIN_MIN_MS;
	b->again = baton_mono_add(now_of(b), baton_duration_ms(b->again_ms));
	BATON_LOG(b->log, BATON_LOG_WARN, "broker gone",
	          baton_field_str("service", baton_str_z(b->service)));
}

static void guest_is_ready(struct baton_backend *b, struct guest *guest)
{
	links_remove(&guest->links);
	links_append(&b->ready, &guest->links);
	if (!b->options.welcomes_later)
		guest_welcome(guest);
}

static bool is_wanted(const struct baton_backend *b, const struct guest *guest)
{
	return !b->options.wants || b->options.wants(&guest->connection, b->options.arg);
}

static enum packet_got ack_send(const struct baton_backend *b, const struct wire_offer *offer,
                                bool accepted)
{
	const struct wire_handoff ack = {
		.kind = WIRE_ACK,
		.is.ack = {offer->token, accepted, {NULL, 0}, offer->correlation},
	};
	return packet_send(b->channel, &ack, -1);
}

/* Answers an offer. False: there is nothing to be kept. */
static bool offer_answer(struct baton_backend *b, struct guest *guest,
                         const struct wire_offer *offer)
{
	bool wanted = b->guests <= GUESTS_MAX && is_wanted(b, guest);
	if (!baton_mono_live(guest->until, now_of(b)))
		return false;
	enum packet_got got = ack_send(b, offer, wanted);
	if (!wanted || got != PACKET_DONE)
		return false;
	held_next(&guest->state, b->options.repeatable ? HELD_ACCEPT_LAST : HELD_ACCEPT);
	if (guest->state == HELD_OWNED)
		guest_is_ready(b, guest);
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
		ack_send(b, offer, false);
		close(packet->fd);
		return;
	}
	b->guests++;
	guest->correlation = offer->correlation;
	guest->until.ns = offer->deadline < INT64_MAX ? (int64_t)offer->deadline : INT64_MAX;
	queue(&b->offered, guest);
	guest->connection.handed = true;
	bool known = token_parse(offer->token, &guest->token) == TOKEN_GOOD &&
	             guest_know(guest, &news) == BATON_OK;
	guest->connection.id = offer->correlation;
	if (!known || !offer_answer(b, guest, offer))
		turn_away(b, guest);
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
			channel_lose(b);
		else if (held_next(&guest->state, HELD_GRANT))
			guest_is_ready(b, guest);
		token_wipe(&token);
		return;
	}
}

static void probe_answer(struct baton_backend *b, const struct wire_probe *probe)
{
	const struct wire_handoff m = {.kind = WIRE_PROBED, .is.probe = *probe};
	if (packet_send(b->channel, &m, -1) != PACKET_DONE)
		channel_lose(b);
}

static void packet_take(struct baton_backend *b, const struct packet *packet)
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
		channel_lose(b);
}

/* What did not come whole: an offer for whose connection this process has no descriptor left is one
 * that it does not want. */
static void packet_refuse(struct baton_backend *b, enum packet_got got, const struct packet *packet)
{
	if (got == PACKET_LOST && packet->message.kind == WIRE_OFFER)
		ack_send(b, &packet->message.is.offer, false);
	else
		channel_lose(b);
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

/* False: there was nothing. */
static bool channel_read(struct baton_backend *b)
{
	int i = 0;
	for (; i < EVENTS && b->channel >= 0; i++) {
		struct packet packet;
		arena_reset(&b->arena);
		enum packet_got got = packet_receive(b->channel, b->room, &b->arena, &packet);
		b->drained = got == PACKET_NOT_NOW;
		if (b->drained)
			break;
		if (got == PACKET_DONE)
			packet_take(b, &packet);
		else
			packet_refuse(b, got, &packet);
		b->drained = got == PACKET_DONE && is_enough(b, packet.message.kind);
		if (b->drained) {
			i++;
			break;
		}
	}
	b->busy = i > 0;
	return i > 0;
}

/* Waits for the answer to a question; whatever else comes is dealt with. Its descriptor, or -1, is
 * the caller's. */
static enum baton_err answer_await(struct baton_backend *b, uint64_t correlation,
                                   struct packet *ret)
{
	struct baton_mono until = baton_mono_add(now_of(b), baton_duration_ms(ANSWER_MS));
	while (b->channel >= 0) {
		struct pollfd p = {.fd = b->channel, .events = POLLIN};
		arena_reset(&b->arena);
		enum packet_got got = packet_receive(b->channel, b->room, &b->arena, ret);
		if (got == PACKET_DONE && ret->message.kind == WIRE_KEPT &&
		    ret->message.is.kept.correlation == correlation)
			return BATON_OK;
		if (got == PACKET_DONE) {
			packet_take(b, ret);
			/* It is a guest's, or closed. */
			ret->fd = -1;
			continue;
		}
		if (got != PACKET_NOT_NOW)
			packet_refuse(b, got, ret);
		else if (talk_patience_ms(until) == 0)
			break;
		else
			poll(&p, 1, talk_patience_ms(until));
	}
	if (b->channel < 0)
		return fail(BATON_NOT_FOUND, "the broker has gone");
	/* What it may still send could be taken for the answer to another question. */
	channel_lose(b);
	return fail(BATON_TIMEOUT, "the broker does not answer");
}

static enum baton_err result_of(const struct wire_kept *kept)
{
	static const enum baton_err errors[] = {
		[WIRE_KEPT_DONE] = BATON_OK,        [WIRE_KEPT_NONE] = BATON_NOT_FOUND,
		[WIRE_KEPT_THERE] = BATON_CONFLICT, [WIRE_KEPT_FULL] = BATON_FULL,
		[WIRE_KEPT_WRONG] = BATON_INVALID,  [WIRE_KEPT_BUSY] = BATON_BUSY,
	};
	if (kept->result == WIRE_KEPT_DONE)
		return BATON_OK;
	return fail(errors[kept->result], "the broker says: %.*s", (int)kept->detail.len,
	            kept->detail.ptr ? kept->detail.ptr : "");
}

/* When the first of a list has no time left, or that moment before it. */
static int64_t earliest(const struct links *list, int64_t ns)
{
	if (links_empty(list))
		return ns;
	int64_t first = LINKS_OF(list->next, const struct guest, links)->until.ns;
	return first < ns ? first : ns;
}

static void timer_at(struct baton_backend *b, int64_t ns)
{
	struct itimerspec at = {.it_value = {0}};
	if (ns < INT64_MAX) {
		ns = ns > 0 ? ns : 1;
		at.it_value.tv_sec = ns / 1000000000;
		at.it_value.tv_nsec = ns % 1000000000;
	}
	timerfd_settime(b->timer, TFD_TIMER_ABSTIME, &at, NULL);
	b->armed = ns;
}

/* Has the descriptor of this backend become readable when something is due. */
static void timer_set(struct baton_backend *b)
{
	int64_t ns = earliest(&b->callers, earliest(&b->offered, INT64_MAX));
	if (b->channel < 0 && b->again.ns < ns)
		ns = b->again.ns;
	ns = b->rested.ns < ns ? b->rested.ns : ns;
	/* One that goes off too early is set again then: this is called for each connection. */
	if (ns < b->armed)
		timer_at(b, ns);
}

/* Asks the broker about what it keeps. After BATON_OK what *ret points to is in the arena. */
static enum baton_err ask(struct baton_backend *b, struct wire_keep keep, int fd,
                          struct packet *ret)
{
	keep.correlation = ++b->questions;
	const struct wire_handoff m = {.kind = WIRE_KEEP, .is.keep = keep};
	if (keep.name.len > WIRE_STORED_NAME_MAX)
		return fail(BATON_INVALID, "a name of %zu bytes; %d are allowed", keep.name.len,
		            WIRE_STORED_NAME_MAX);
	if (b->channel < 0)
		return fail(BATON_NOT_FOUND, "there is no broker now");
	enum packet_got got = packet_send(b->channel, &m, fd);
	if (got == PACKET_NOT_NOW || got == PACKET_FAILED)
		return fail(BATON_TIMEOUT, "the broker does not listen");
	if (got != PACKET_DONE)
		return fail_errno(errno, "the broker cannot be asked");
	enum baton_err e = answer_await(b, keep.correlation, ret);
	/* Who came meanwhile is not at the channel any more. */
	if (links_empty(&b->ready))
		timer_set(b);
	else
		timer_at(b, 0);
	return e == BATON_OK ? result_of(&ret->message.is.kept) : e;
}

enum baton_err baton_backend_put(struct baton_backend *backend, struct baton_str name, int fd,
                                 struct baton_duration ttl)
{
	struct packet answer = {.fd = -1};
	if (ttl.ns <= 0)
		return fail(BATON_INVALID, "a descriptor cannot be kept for no time");
	const struct wire_keep keep = {
		.verb = WIRE_PUT,
		.name = name,
		.ttl_ms = ttl.ns == INT64_MAX ? 0 : (uint64_t)(ttl.ns - 1) / 1000000 + 1,
	};
	if (fd < 0)
		return fail(BATON_INVALID, "%d is no descriptor", fd);
	enum baton_err e = ask(backend, keep, fd, &answer);
	fd_closep(&answer.fd);
	return e;
}

enum baton_err baton_backend_take(struct baton_backend *backend, struct baton_str name, int *ret_fd)
{
	struct packet answer = {.fd = -1};
	const struct wire_keep keep = {.verb = WIRE_TAKE, .name = name};
	enum baton_err e = ask(backend, keep, -1, &answer);
	if (e == BATON_OK && answer.fd < 0) {
		channel_lose(backend);
		e = fail(BATON_NOT_FOUND, "the broker sent no descriptor");
	}
	if (e != BATON_OK) {
		fd_closep(&answer.fd);
		return e;
	}
	const struct wire_handoff m = {.kind = WIRE_KEEP,
	                               .is.keep = {.verb = WIRE_TAKEN, .name = name}};
	enum packet_got got = packet_send(backend->channel, &m, -1);
	/* If it does not hear of it, the channel ends, and it keeps a copy for the next. */
	if (got != PACKET_DONE)
		channel_lose(backend);
	if (got != PACKET_DONE && got != PACKET_HUNG_UP) {
		fd_closep(&answer.fd);
		return fail(BATON_TIMEOUT, "the broker cannot be told that it arrived");
	}
	*ret_fd = answer.fd;
	return BATON_OK;
}

enum baton_err baton_backend_list(struct baton_backend *backend, struct baton_stored *all,
                                  size_t *ret_count)
{
	struct packet answer = {.fd = -1};
	enum baton_err e = ask(backend, (struct wire_keep){.verb = WIRE_LIST}, -1, &answer);
	fd_closep(&answer.fd);
	if (e != BATON_OK)
		return e;
	const struct wire_kept *kept = &answer.message.is.kept;
	for (size_t i = 0; i < kept->stored_count; i++) {
		const struct wire_stored *s = &kept->stored[i];
		all[i] = (struct baton_stored){
			.left = s->left_ms == 0 ? BATON_DURATION_FOREVER
		                                : baton_duration_ms((int64_t)s->left_ms)};
		memcpy(all[i].name, s->name.ptr, s->name.len);
	}
	*ret_count = kept->stored_count;
	return BATON_OK;
}

/* Sends the registration and waits for the answer. */
static enum baton_err introduce(struct baton_backend *b, int channel)
{
	const struct baton_backend_options *o = &b->options;
	struct packet packet = {.fd = -1};
	struct pollfd p = {.fd = channel, .events = POLLIN};
	struct baton_mono until = baton_mono_add(now_of(b), baton_duration_ms(ANSWER_MS));
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
					WIRE_ANSWERS_PROBES,
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
	if (got == PACKET_DONE && packet.fd >= 0)
		close(packet.fd);
	if (got == PACKET_NOT_NOW)
		return fail(BATON_TIMEOUT, "the broker does not answer");
	if (got != PACKET_DONE || packet.message.kind != WIRE_REGISTERED)
		return fail(BATON_NOT_FOUND, "the broker does not want to talk");
	const struct wire_registered *r = &packet.message.is.registered;
	if (r->accepted)
		return BATON_OK;
	return fail(BATON_STALE, "the broker says: %.*s", (int)r->detail.len, r->detail.ptr);
}

static enum baton_err enlist(struct baton_backend *b)
{
	AUTO(fd_closep) int channel = -1;
	char path[SITE_PATH_MAX + 1];
	site_path(&b->site, SITE_BACKENDS, path);
	enum baton_err e = site_check(&b->site, false);
	if (e == BATON_OK)
		e = site_connect(path, SOCK_SEQPACKET, ANSWER_MS, &channel);
	if (e == BATON_OK)
		e = introduce(b, channel);
	if (e == BATON_OK && !watch(b, channel, &b->channel))
		e = fail_errno(errno, "cannot wait for the broker");
	if (e != BATON_OK)
		return e;
	b->channel = fd_take(&channel);
	return BATON_OK;
}

/* Looks for a broker again, if it is time. */
static void enlist_again(struct baton_backend *b)
{
	if (b->channel >= 0 || baton_mono_live(b->again, now_of(b)))
		return;
	enum baton_err e = enlist(b);
	if (e == BATON_OK)
		return;
	b->refused = e == BATON_STALE;
	b->again_ms = b->again_ms * 2 < AGAIN_MAX_MS ? b->again_ms * 2 : AGAIN_MAX_MS;
	b->again = baton_mono_add(now_of(b), baton_duration_ms(b->again_ms));
}

static void caller_read(struct baton_backend *b, struct guest *guest)
{
	arena_reset(&b->arena);
	enum baton_err e = guest_read(guest, &b->arena);
	if (e == BATON_TIMEOUT)
		return;
	unwatch(b, guest->connection.fd);
	/* Who has given up is not served. */
	if (e == BATON_OK && baton_mono_live(guest->connection.deadline, now_of(b)) &&
	    is_wanted(b, guest))
		guest_is_ready(b, guest);
	else
		turn_away(b, guest);
}

static void caller_add(struct baton_backend *b, int fd)
{
	struct guest *guest;
	struct site_peer who;
	if (b->guests > GUESTS_MAX || site_peer(fd, &who) != BATON_OK ||
	    (who.uid != geteuid() && who.uid != 0) || guest_new(b->alloc, fd, &guest) != BATON_OK) {
		close(fd);
		return;
	}
	b->guests++;
	guest->until = baton_mono_add(now_of(b), baton_duration_ms(HELLO_MS));
	queue(&b->callers, guest);
	if (watch(b, fd, guest))
		caller_read(b, guest);
	else
		turn_away(b, guest);
}

/* Nobody can be accepted: the endpoint is left alone for a while, as epoll would tell about it all
 * the time. Who came waits there. */
static void listener_rest(struct baton_backend *b)
{
	unwatch(b, b->listener);
	b->rested = baton_mono_add(now_of(b), baton_duration_ms(REST_MS));
}

static void listener_wake(struct baton_backend *b)
{
	if (!baton_mono_live(b->rested, now_of(b)))
		b->rested = watch(b, b->listener, &b->listener)
		                    ? BATON_MONO_NEVER
		                    : baton_mono_add(now_of(b), baton_duration_ms(REST_MS));
}

static void listener_read(struct baton_backend *b)
{
	for (int i = 0; i < EVENTS; i++) {
		int fd = site_accept(b->listener);
		if (fd < 0 &&
		    (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
			listener_rest(b);
		if (fd < 0)
			return;
		caller_add(b, fd);
	}
}

/* Turns those of a list away who had time until now. */
static void late_end(struct baton_backend *b, struct links *list)
{
	struct baton_mono now = now_of(b);
	while (!links_empty(list) &&
	       !baton_mono_live((struct baton_mono){earliest(list, INT64_MAX)}, now))
		turn_away(b, LINKS_OF(list->next, struct guest, links));
}

static void event_take(struct baton_backend *b, void *what)
{
	if (what == &b->channel)
		channel_read(b);
	else if (what == &b->listener)
		listener_read(b);
	else if (what != &b->timer)
		caller_read(b, what);
	else
		timer_at(b, INT64_MAX);
}

/* What is too late, before anything else: a Grant that comes then is none. */
static void now_due(struct baton_backend *b)
{
	late_end(b, &b->offered);
	enlist_again(b);
	listener_wake(b);
}

/* Whether there was something at the channel, without asking epoll: who calls and does not wait was
 * mostly told so. */
static bool guess(struct baton_backend *b)
{
	if (b->drained)
		return false;
	now_due(b);
	return channel_read(b);
}

/* One look at everything, which waits that long at most. */
static enum baton_err turn(struct baton_backend *b, int wait_ms)
{
	struct epoll_event event;
	if (wait_ms > 0 || !guess(b)) {
		/* One at a time: what is done about one may end another. */
		int n = epoll_wait(b->epoll, &event, 1, wait_ms);
		if (n < 0 && errno != EINTR)
			return fail_errno(errno, "cannot wait for connections");
		now_due(b);
		b->busy = b->busy && n > 0;
		if (n > 0)
			event_take(b, event.data.ptr);
	}
	late_end(b, &b->callers);
	timer_set(b);
	return BATON_OK;
}

enum baton_err baton_backend_accept(struct baton_backend *backend, struct baton_duration wait,
                                    struct baton_connection **ret)
{
	struct baton_backend *b = backend;
	struct baton_mono until = baton_mono_add(now_of(b), wait);
	bool last = false;
	while (links_empty(&b->ready)) {
		if (b->refused) {
			b->refused = false;
			return fail(BATON_STALE, "a newer backend of '%s' is there", b->service);
		}
		if (last) {
			b->drained = false;
			return BATON_TIMEOUT;
		}
		int ms = talk_patience_ms(until);
		last = ms == 0;
		enum baton_err e = turn(b, ms);
		if (e != BATON_OK)
			return e;
	}
	struct guest *guest = LINKS_OF(b->ready.next, struct guest, links);
	links_remove(&guest->links);
	b->guests--;
	/* What was read already makes no descriptor readable; the timer does. */
	if (!links_empty(&b->ready) && b->armed > 1)
		timer_at(b, 0);
	*ret = &guest->connection;
	return BATON_OK;
}

int baton_backend_fd(const struct baton_backend *backend)
{
	return backend->epoll;
}

const char *baton_backend_endpoint(const struct baton_backend *backend)
{
	return backend->endpoint;
}

void baton_backend_close(struct baton_backend *backend)
{
	struct baton_backend *b = backend;
	if (!b)
		return;
	struct links *lists[] = {&b->offered, &b->callers, &b->ready};
	fd_closep(&b->channel);
	for (int i = 0; i < 3; i++)
		while (!links_empty(lists[i]))
			turn_away(b, LINKS_OF(lists[i]->next, struct guest, links));
	if (b->listener >= 0)
		unlink(b->endpoint);
	fd_closep(&b->listener);
	fd_closep(&b->timer);
	fd_closep(&b->epoll);
	arena_done(&b->arena);
	mem_free(b->alloc, b, 1, sizeof *b);
}

static void backend_closep(struct baton_backend **backend)
{
	baton_backend_close(*backend);
}

static enum baton_err options_check(const struct baton_backend_options *o)
{
	if (!wire_is_service(o->service))
		return fail(BATON_INVALID, "a service has a name of 1 to %d of [a-z0-9-]",
		            WIRE_SERVICE_MAX);
	if (o->owner.len > BATON_NAME_MAX)
		return fail(BATON_INVALID, "an owner's name of %zu bytes; %d are allowed",
		            o->owner.len, BATON_NAME_MAX);
	if (o->endpoint && !talk_is_endpoint(baton_str_z(o->endpoint)))
		return fail(BATON_INVALID,
		            "an endpoint is the path of a socket or tcp:HOST:PORT, not '%.80s'",
		            o->endpoint);
	return BATON_OK;
}

static void options_keep(struct baton_backend *b, const struct baton_backend_options *o)
{
	b->options = *o;
	b->log = o->log;
	memcpy(b->service, o->service.ptr, o->service.len);
	memcpy(b->owner, o->owner.ptr ? o->owner.ptr : "", o->owner.len);
	b->options.service = baton_str_z(b->service);
	b->options.owner = baton_str_z(b->owner);
	if (o->generation == 0)
		b->options.generation = (uint64_t)now_of(b).ns;
	if (o->endpoint) {
		memcpy(b->endpoint, o->endpoint, strlen(o->endpoint));
		b->options.endpoint = b->endpoint;
	}
}

/* An endpoint of its own beside the sockets of the broker. */
static enum baton_err endpoint_open(struct baton_backend *b)
{
	static const char digits[] = "0123456789abcdef";
	struct token name;
	struct token_source source = token_source_system();
	char text[17];
	char path[SITE_PATH_MAX + 1];
	enum baton_err e = source.draw(source.arg, &name);
	if (e != BATON_OK)
		return e;
	for (int i = 0; i < 16; i++)
		text[i] = digits[name.bytes[i] & 15];
	text[16] = '\0';
	site_path(&b->site, text, path);
	e = site_listen(path, SOCK_STREAM, &b->listener);
	if (e != BATON_OK)
		return e;
	memcpy(b->endpoint, path, sizeof path);
	if (!watch(b, b->listener, &b->listener))
		return fail_errno(errno, "cannot wait for clients");
	return BATON_OK;
}

enum baton_err baton_backend_open(const struct baton_backend_options *options,
                                  struct baton_backend **ret)
{
	const struct baton_alloc *alloc = options->alloc ? options->alloc : baton_alloc_libc();
	enum baton_err e = options_check(options);
	if (e != BATON_OK)
		return e;
	AUTO(backend_closep) struct baton_backend *b = mem_new(alloc, 1, sizeof *b);
	if (!b)
		return fail_memory(sizeof *b, "a backend");
	b->alloc = alloc;
	b->clock = baton_clock_boot();
	b->channel = b->listener = -1;
	b->rested = BATON_MONO_NEVER;
	links_init(&b->offered);
	links_init(&b->callers);
	links_init(&b->ready);
	arena_init(&b->arena, alloc);
	b->epoll = epoll_create1(EPOLL_CLOEXEC);
	b->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	b->armed = INT64_MAX;
	options_keep(b, options);
	if (b->epoll < 0 || b->timer < 0 || !watch(b, b->timer, &b->timer))
		return fail_errno(errno, "no descriptors for a backend");
	e = site_find(options->folder, &b->site);
	if (e == BATON_OK)
		e = site_check(&b->site, options->patient);
	if (e == BATON_OK && !options->endpoint)
		e = endpoint_open(b);
	if (e == BATON_OK && !options->patient)
		e = enlist(b);
	if (e != BATON_OK)
		return e;
	/* Who is patient looks for a broker as if he had lost one. */
	b->again_ms = AGAIN_MIN_MS;
	if (options->patient)
		timer_set(b);
	*ret = TAKE(b);
	return BATON_OK;
}
