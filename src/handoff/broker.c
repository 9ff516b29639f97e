/* The broker: one loop on epoll. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "base/mem.h"
#include "handoff/state.h"

#define EVENTS 256

bool source_watch(struct baton_broker *b, struct source *source, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = source};
	source->watched = epoll_ctl(b->epoll, EPOLL_CTL_ADD, source->fd, &event) == 0;
	return source->watched;
}

bool source_change(struct baton_broker *b, struct source *source, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = source};
	if (!source->watched)
		return source_watch(b, source, events);
	return epoll_ctl(b->epoll, EPOLL_CTL_MOD, source->fd, &event) == 0;
}

void source_ignore(struct baton_broker *b, struct source *source)
{
	struct epoll_event event = {.events = 0};
	if (source->watched)
		epoll_ctl(b->epoll, EPOLL_CTL_DEL, source->fd, &event);
	source->watched = false;
}

void source_end(struct baton_broker *b, struct source *source)
{
	if (source->fd >= 0) {
		/* A process that is being started may have a copy for a moment, which would keep it
		 * in epoll. */
		source_ignore(b, source);
		close(source->fd);
	}
	source->fd = -1;
	links_remove(&source->links);
	links_append(&b->dead, &source->links);
}

int source_turn(struct baton_broker *b, struct source *source, int turn)
{
	bool busy = source->round + 1 == b->rounds;
	source->round = b->rounds;
	return busy || b->crowded ? turn : 1;
}

static void dead_free(struct baton_broker *b)
{
	while (!links_empty(&b->dead)) {
		struct source *s = LINKS_OF(b->dead.next, struct source, links);
		links_remove(&s->links);
		if (s->kind == SOURCE_PEER)
			mem_free(b->alloc, LINKS_OF(s, struct peer, source), 1,
			         sizeof(struct peer));
		else if (s->kind == SOURCE_CHILD)
			mem_free(b->alloc, LINKS_OF(s, struct child, source), 1,
			         sizeof(struct child));
		else
			mem_free(b->alloc, LINKS_OF(s, struct channel, source), 1,
			         sizeof(struct channel));
	}
}

/* Opens one of the sockets at which others arrive, or takes that which was given. */
static enum baton_err door_open(struct baton_broker *b, struct source *door, const char *name,
                                int given)
{
	char path[SITE_PATH_MAX + 1];
	int type = door->kind == SOURCE_CLIENTS ? SOCK_STREAM : SOCK_SEQPACKET;
	site_path(&b->site, name, path);
	if (given <= 0)
		return site_listen(path, type, &door->fd);
	door->fd = given;
	door->lasting = true;
	return site_adopt(path, type, given);
}

static enum baton_err doors_open(struct baton_broker *b, const struct baton_broker_options *o)
{
	enum baton_err e = door_open(b, &b->clients, SITE_CLIENTS, o->clients_fd);
	if (e == BATON_OK)
		e = door_open(b, &b->backends, SITE_BACKENDS, o->backends_fd);
	if (e != BATON_OK)
		return e;
	if (!source_watch(b, &b->clients, EPOLLIN) || !source_watch(b, &b->backends, EPOLLIN))
		return fail_errno(errno, "cannot wait for clients");
	return BATON_OK;
}

/* Closes one of the sockets at which others arrive. */
static void door_close(struct baton_broker *b, struct source *door, const char *name)
{
	char path[SITE_PATH_MAX + 1];
	if (door->fd < 0)
		return;
	site_path(&b->site, name, path);
	if (!door->lasting)
		unlink(path);
	source_ignore(b, door);
	close(door->fd);
	door->fd = -1;
}

static enum baton_err fds_open(struct baton_broker *b)
{
	struct rlimit limit = {.rlim_cur = 1024};
	getrlimit(RLIMIT_NOFILE, &limit);
	pressure_init(&b->pressure, limit.rlim_cur);
	b->epoll = epoll_create1(EPOLL_CLOEXEC);
	b->stop.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	b->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (b->epoll < 0 || b->stop.fd < 0 || b->reserve < 0)
		return fail_errno(errno, "no descriptors for a broker");
	if (!source_watch(b, &b->stop, EPOLLIN))
		return fail_errno(errno, "cannot wait for the end");
	return BATON_OK;
}

static void settings_take(struct baton_broker *b, const struct baton_broker_options *o)
{
	b->log = o->log;
	b->uid = geteuid();
	b->clock = baton_clock_boot();
	broker_tick(b);
	b->hello = o->hello.ns > 0 ? o->hello : baton_duration_ms(BATON_BROKER_HELLO_MS);
	b->park = o->park.ns > 0 ? o->park : baton_duration_ms(BATON_BROKER_PARK_MS);
	b->alive = o->alive;
	b->arg = o->arg;
	b->alive_every = o->alive_every;
	b->alive_at = o->alive && o->alive_every.ns > 0 ? broker_now(b) : BATON_MONO_NEVER;
	b->may_succeed = o->may_succeed;
	b->succeeded = o->succeeded;
	b->keep_safe = o->keep_safe;
	b->rate = o->rate;
	b->clients_max = o->clients_max > 0 ? o->clients_max : BATON_BROKER_CLIENTS_MAX;
}

static void door_init(struct source *door, enum source_kind kind)
{
	*door = (struct source){.kind = kind, .fd = -1};
	links_init(&door->links);
}

static void parts_init(struct baton_broker *b)
{
	door_init(&b->stop, SOURCE_STOP);
	door_init(&b->clients, SOURCE_CLIENTS);
	door_init(&b->backends, SOURCE_BACKENDS);
	door_init(&b->answers, SOURCE_LOCATOR);
	links_init(&b->waiting);
	links_init(&b->parked);
	links_init(&b->asking);
	links_init(&b->writing);
	links_init(&b->channels);
	links_init(&b->mains);
	links_init(&b->commands);
	links_init(&b->stored);
	b->stored_until = BATON_MONO_NEVER;
	links_init(&b->again);
	links_init(&b->by_word);
	links_init(&b->dead);
	b->lock = -1;
	b->epoll = -1;
	b->reserve = -1;
	arena_init(&b->arena, b->alloc);
	arena_init(&b->kept, b->alloc);
}

static enum baton_err lanes_open(struct baton_broker *b, const struct baton_broker_options *o)
{
	enum baton_err e = locator_open(b->alloc, o->where, o->arg, &b->locator);
	if (e != BATON_OK)
		return e;
	b->answers.fd = locator_fd(b->locator);
	if (!source_watch(b, &b->answers, EPOLLIN))
		return fail_errno(errno, "cannot wait for lanes");
	return BATON_OK;
}

/* The sockets of its own, or those of the broker before it. */
static enum baton_err place_take(struct baton_broker *b, const struct baton_broker_options *o)
{
	bool inherited = false;
	enum baton_err e = o->upgrade ? inherit(b, o, &inherited) : BATON_OK;
	if (e != BATON_OK || inherited)
		return e;
	e = site_lock(&b->site, &b->lock);
	if (e == BATON_OK)
		e = doors_open(b, o);
	if (e == BATON_OK)
		e = listeners_open(b, o->listeners, o->listeners_count);
	if (e == BATON_OK)
		safe_settle(b);
	return e;
}

/* What was given from before, and what is left to the next one. */
static enum baton_err legacy_take(struct baton_broker *b, const struct baton_broker_options *o)
{
	if (o->will.len > BATON_BROKER_WILL_MAX)
		return fail(BATON_INVALID, "a will of %zu bytes; %d are allowed", o->will.len,
		            BATON_BROKER_WILL_MAX);
	if (!arena_copy(&b->kept, o->will, &b->will) || safe_init(b, o) != BATON_OK)
		return fail_memory(o->will.len + o->safe_count * sizeof(int), "a broker");
	return BATON_OK;
}

static enum baton_err rate_check(const struct baton_broker_rate *rate)
{
	if (rate->count > BATON_BROKER_RATE_MAX)
		return fail(BATON_INVALID, "a rate of %u clients; %d are allowed",
		            (unsigned)rate->count, BATON_BROKER_RATE_MAX);
	if (rate->count > 0 &&
	    (rate->window.ns < 1000000 || rate->window.ns > baton_duration_s(86400).ns))
		return fail(BATON_INVALID, "a rate in %lld ns; 1ms to 1d are allowed",
		            (long long)rate->window.ns);
	return BATON_OK;
}

static void broker_closep(struct baton_broker **broker)
{
	baton_broker_close(*broker);
}

enum baton_err baton_broker_open(const struct baton_broker_options *options,
                                 struct baton_broker **ret)
{
	const struct baton_alloc *alloc = options->alloc ? options->alloc : baton_alloc_libc();
	uint32_t pending =
		options->pending_max > 0 ? options->pending_max : BATON_BROKER_PENDING_MAX;
	if (pending > (1u << 20))
		return fail(BATON_INVALID, "%u connections at once; %u are allowed",
		            (unsigned)pending, 1u << 20);
	enum baton_err e = rate_check(&options->rate);
	if (e != BATON_OK)
		return e;
	AUTO(broker_closep) struct baton_broker *b = mem_new(alloc, 1, sizeof *b);
	if (!b)
		return fail_memory(sizeof *b, "a broker");
	b->alloc = alloc;
	parts_init(b);
	settings_take(b, options);
	int64_t ack_ms =
		options->ack.ns > 0 ? (options->ack.ns + 999999) / 1000000 : BATON_BROKER_ACK_MS;
	e = legacy_take(b, options);
	if (e == BATON_OK)
		e = site_find(options->folder, &b->site);
	if (e == BATON_OK)
		e = site_check(&b->site, true);
	if (e == BATON_OK)
		e = baton_id_random(&b->seed);
	if (e == BATON_OK && options->services)
		e = children_define(b, options->services);
	if (e == BATON_OK)
		e = passings_init(b, pending, ack_ms);
	if (e == BATON_OK)
		e = fds_open(b);
	if (e == BATON_OK && options->where)
		e = lanes_open(b, options);
	if (e == BATON_OK)
		e = place_take(b, options);
	safe_done(b);
	if (e != BATON_OK)
		return e;
	*ret = TAKE(b);
	return BATON_OK;
}

static void list_end(struct baton_broker *b, struct links *list)
{
	while (!links_empty(list)) {
		struct source *s = LINKS_OF(list->next, struct source, links);
		if (s->kind == SOURCE_PEER)
			peers_end(b, LINKS_OF(s, struct peer, source));
		else
			channels_end(b, LINKS_OF(s, struct channel, source), FALLBACK_ACK_TIMEOUT);
	}
}

void baton_broker_close(struct baton_broker *broker)
{
	struct baton_broker *b = broker;
	if (!b)
		return;
	if (b->lent)
		upgrade_forget(b);
	door_close(b, &b->clients, SITE_CLIENTS);
	door_close(b, &b->backends, SITE_BACKENDS);
	listeners_close(b);
	list_end(b, &b->waiting);
	locator_close(b->locator);
	list_end(b, &b->parked);
	list_end(b, &b->asking);
	list_end(b, &b->writing);
	list_end(b, &b->again);
	list_end(b, &b->channels);
	children_done(b);
	stored_done(b);
	dead_free(b);
	passings_done(b);
	services_done(b);
	arena_done(&b->arena);
	arena_done(&b->kept);
	fd_closep(&b->stop.fd);
	fd_closep(&b->reserve);
	fd_closep(&b->epoll);
	fd_closep(&b->lock);
	mem_free(b->alloc, b, 1, sizeof *b);
}

const char *baton_broker_folder(const struct baton_broker *broker)
{
	return broker->site.folder;
}

struct baton_str baton_broker_will(const struct baton_broker *broker)
{
	return broker->bequest;
}

void baton_broker_stop(struct baton_broker *broker)
{
	static const uint64_t one = 1;
	int keep = errno;
	/* It fails only if it was called before. */
	if (write(broker->stop.fd, &one, sizeof one) < 0)
		errno = keep;
	errno = keep;
}

static void turn_away_all(struct baton_broker *b, struct links *list)
{
	while (!links_empty(list))
		peers_refuse(b, LINKS_OF(list->next, struct peer, source.links), WIRE_SHUTTING_DOWN,
		             "the broker ends", baton_duration_ms(1000));
}

/* Who watches over it hears that it lives. */
static void life_show(struct baton_broker *b)
{
	if (!b->alive)
		return;
	b->alive(b->arg);
	if (b->alive_every.ns > 0)
		b->alive_at = baton_mono_add(broker_now(b), b->alive_every);
}

static void stop(struct baton_broker *b)
{
	b->stopping = true;
	life_show(b);
	source_ignore(b, &b->stop);
	door_close(b, &b->clients, SITE_CLIENTS);
	door_close(b, &b->backends, SITE_BACKENDS);
	listeners_close(b);
	turn_away_all(b, &b->parked);
	turn_away_all(b, &b->asking);
	for (struct links *l = b->waiting.next, *next; l != &b->waiting; l = next) {
		struct source *s = LINKS_OF(l, struct source, links);
		next = l->next;
		if (s->kind == SOURCE_PEER)
			peers_refuse(b, LINKS_OF(s, struct peer, source), WIRE_SHUTTING_DOWN,
			             "the broker ends", baton_duration_ms(1000));
	}
}

static struct baton_mono earlier(struct baton_mono a, struct baton_mono b)
{
	return a.ns < b.ns ? a : b;
}

/* Until when the first of a list has time. */
static struct baton_mono first_until(const struct links *list)
{
	if (links_empty(list))
		return BATON_MONO_NEVER;
	struct source *s = LINKS_OF(list->next, struct source, links);
	return s->kind == SOURCE_PEER ? LINKS_OF(s, struct peer, source)->until
	                              : LINKS_OF(s, struct channel, source)->until;
}

static int patience_ms(struct baton_broker *b)
{
	struct baton_mono until = earlier(first_until(&b->waiting), first_until(&b->parked));
	until = earlier(until, first_until(&b->writing));
	until = earlier(until, first_until(&b->asking));
	until = earlier(until, acks_next(&b->acks));
	until = earlier(until, passings_next(b));
	until = earlier(until, children_next(b));
	until = earlier(until, b->stored_until);
	until = earlier(until, b->alive_at);
	if (b->paused && !b->stopping)
		until = earlier(until, b->paused_until);
	if (until.ns == INT64_MAX)
		return -1;
	broker_tick(b);
	int64_t left = baton_mono_sub(until, broker_now(b)).ns;
	int64_t ms = left <= 0 ? 0 : (left - 1) / 1000000 + 1;
	return ms < 60000 ? (int)ms : 60000;
}

static void silent_end(struct baton_broker *b, struct links *list, struct baton_mono now)
{
	while (!links_empty(list) && !baton_mono_live(first_until(list), now)) {
		struct source *s = LINKS_OF(list->next, struct source, links);
		b->counts[COUNT_SILENT]++;
		if (s->kind == SOURCE_PEER)
			peers_end(b, LINKS_OF(s, struct peer, source));
		else
			channels_end(b, LINKS_OF(s, struct channel, source), FALLBACK_ACK_TIMEOUT);
	}
}

/* Those who have waited for long enough are told why they waited. */
static void kept_end(struct baton_broker *b, struct links *list, enum wire_code code,
                     const char *reason, struct baton_mono now)
{
	while (!links_empty(list) && !baton_mono_live(first_until(list), now))
		peers_refuse(b, LINKS_OF(list->next, struct peer, source.links), code, reason,
		             baton_duration_ms(1000));
}

static void timers_run(struct baton_broker *b)
{
	struct baton_mono now = broker_now(b);
	passings_expire(b, now);
	silent_end(b, &b->waiting, now);
	silent_end(b, &b->writing, now);
	kept_end(b, &b->parked, WIRE_SERVICE_UNKNOWN, "the service has no backend now", now);
	kept_end(b, &b->asking, WIRE_INTERNAL, "the store does not say where the lane is", now);
	children_timers(b, now);
	stored_expire(b, now);
	if (!baton_mono_live(b->alive_at, now))
		life_show(b);
	if (b->paused && !baton_mono_live(b->paused_until, now) && !b->stopping) {
		pressure_resume(&b->pressure);
		doors_pause(b, false);
	}
}

static void event_take(struct baton_broker *b, const struct epoll_event *event)
{
	struct source *s = event->data.ptr;
	if (s->fd < 0)
		return;
	switch (s->kind) {
	case SOURCE_STOP:
		stop(b);
		break;
	case SOURCE_CLIENTS:
	case SOURCE_BACKENDS:
	case SOURCE_LISTENER:
		doors_event(b, s);
		break;
	case SOURCE_LOCATOR:
		peers_placed(b);
		break;
	case SOURCE_PEER:
		peers_event(b, LINKS_OF(s, struct peer, source), event->events);
		break;
	case SOURCE_CHANNEL:
		channels_event(b, LINKS_OF(s, struct channel, source));
		break;
	case SOURCE_CHILD:
		children_event(b, LINKS_OF(s, struct child, source));
		break;
	}
}

/* Waits for the client that has just come, and for everything else. True: it has said something,
 * and is answered before those who came after it; else epoll knows of it now. */
static bool fresh_await(struct baton_broker *b)
{
	struct peer *peer = b->fresh;
	struct pollfd p[] = {{.fd = b->epoll, .events = POLLIN},
	                     {.fd = peer->source.fd, .events = POLLIN}};
	int n = poll(p, 2, patience_ms(b));
	b->fresh = NULL;
	if (n > 0 && p[1].revents != 0)
		return true;
	if (!source_watch(b, &peer->source, EPOLLIN))
		peers_end(b, peer);
	return false;
}

/* As epoll_wait(2). */
static int events_await(struct baton_broker *b, struct epoll_event *events)
{
	struct peer *peer = b->fresh;
	if (!peer)
		return epoll_wait(b->epoll, events, EVENTS, patience_ms(b));
	if (!fresh_await(b))
		return epoll_wait(b->epoll, events, EVENTS, 0);
	events[0] = (struct epoll_event){.events = EPOLLIN, .data.ptr = &peer->source};
	return 1;
}

enum baton_err baton_broker_run(struct baton_broker *broker)
{
	struct baton_broker *b = broker;
	while (!b->lent && (!b->stopping || b->passings_count > 0)) {
		struct epoll_event events[EVENTS];
		bool one = b->fresh != NULL;
		int n = events_await(b, events);
		if (n < 0 && errno != EINTR)
			return fail_errno(errno, "cannot wait for events");
		b->rounds++;
		b->crowded = n == EVENTS;
		broker_tick(b);
		/* First what is too late, so that nothing late is taken for something in time. */
		timers_run(b);
		for (int i = 0; i < n && !b->lent; i++) {
			if (i > 0)
				broker_tick(b);
			event_take(b, &events[i]);
		}
		/* After them, if all were asked for: what is taken is mostly told. */
		if (n >= 0 && !one && !b->lent)
			passings_look(b, broker_now(b));
		dead_free(b);
	}
	return BATON_OK;
}
