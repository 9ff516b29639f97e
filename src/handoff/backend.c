/* The backend's side: a channel to the broker, an endpoint of its own, and the connections that
 * come by both. */
#include "handoff/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "base/mem.h"
#include "handoff/talk.h"

#define HELLO_MS 30000
#define REST_MS 100 /* of the endpoint, when there is no descriptor for who comes */

struct baton_mono backend_now(const struct baton_backend *b)
{
	return b->clock->now(b->clock);
}

void backend_queue(struct links *list, struct guest *guest)
{
	struct links *next = list;
	while (next->prev != list &&
	       LINKS_OF(next->prev, struct guest, links)->until.ns > guest->until.ns)
		next = next->prev;
	links_append(next, &guest->links);
}

bool backend_watch(struct baton_backend *b, int fd, void *what)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = what};
	return epoll_ctl(b->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* What is closed is taken out first: a process that is being started may have a copy for a moment,
 * which would keep it in epoll. */
void backend_unwatch(const struct baton_backend *b, int fd)
{
	struct epoll_event event = {.events = 0};
	epoll_ctl(b->epoll, EPOLL_CTL_DEL, fd, &event);
}

void backend_turn_away(struct baton_backend *b, struct guest *guest)
{
	b->guests--;
	if (!guest->connection.handed)
		backend_unwatch(b, guest->connection.fd);
	guest_turn_away(guest);
}

void backend_have(struct baton_backend *b, struct guest *guest)
{
	links_remove(&guest->links);
	links_append(&b->ready, &guest->links);
	if (!b->options.welcomes_later)
		guest_welcome(guest);
}

bool backend_wants(const struct baton_backend *b, const struct guest *guest)
{
	return !b->options.wants || b->options.wants(&guest->connection, b->options.arg);
}

/* When the first of a list has no time left, or that moment before it. */
static int64_t earliest(const struct links *list, int64_t ns)
{
	if (links_empty(list))
		return ns;
	int64_t first = LINKS_OF(list->next, const struct guest, links)->until.ns;
	return first < ns ? first : ns;
}

void backend_timer_at(struct baton_backend *b, int64_t ns)
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

void backend_timer_set(struct baton_backend *b)
{
	int64_t ns = earliest(&b->callers, earliest(&b->offered, INT64_MAX));
	if (b->channel < 0 && b->again.ns < ns)
		ns = b->again.ns;
	ns = b->rested.ns < ns ? b->rested.ns : ns;
	/* One that goes off too early is set again then: this is called for each connection. */
	if (ns < b->armed)
		backend_timer_at(b, ns);
}

static void caller_read(struct baton_backend *b, struct guest *guest)
{
	arena_reset(&b->arena);
	enum baton_err e = guest_read(guest, &b->arena);
	if (e == BATON_TIMEOUT)
		return;
	backend_unwatch(b, guest->connection.fd);
	/* Who has given up is not served. */
	if (e == BATON_OK && baton_mono_live(guest->connection.deadline, backend_now(b)) &&
	    backend_wants(b, guest))
		backend_have(b, guest);
	else
		backend_turn_away(b, guest);
}

static void caller_add(struct baton_backend *b, int fd)
{
	struct guest *guest;
	struct site_peer who;
	if (b->guests > BACKEND_GUESTS_MAX || site_peer(fd, &who) != BATON_OK ||
	    (who.uid != geteuid() && who.uid != 0) || guest_new(b->alloc, fd, &guest) != BATON_OK) {
		close(fd);
		return;
	}
	b->guests++;
	guest->until = baton_mono_add(backend_now(b), baton_duration_ms(HELLO_MS));
	backend_queue(&b->callers, guest);
	if (backend_watch(b, fd, guest))
		caller_read(b, guest);
	else
		backend_turn_away(b, guest);
}

/* Nobody can be accepted: the endpoint is left alone for a while, as epoll would tell about it all
 * the time. Who came waits there. */
static void listener_rest(struct baton_backend *b)
{
	backend_unwatch(b, b->listener);
	b->rested = baton_mono_add(backend_now(b), baton_duration_ms(REST_MS));
}

static void listener_wake(struct baton_backend *b)
{
	if (b->rested.ns != BATON_MONO_NEVER.ns && !baton_mono_live(b->rested, backend_now(b)))
		b->rested = backend_watch(b, b->listener, &b->listener)
		                    ? BATON_MONO_NEVER
		                    : baton_mono_add(backend_now(b), baton_duration_ms(REST_MS));
}

static void listener_read(struct baton_backend *b)
{
	for (int i = 0; i < BACKEND_EVENTS; i++) {
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
	if (links_empty(list))
		return;
	struct baton_mono now = backend_now(b);
	while (!baton_mono_live((struct baton_mono){earliest(list, INT64_MAX)}, now))
		backend_turn_away(b, LINKS_OF(list->next, struct guest, links));
}

static void event_take(struct baton_backend *b, void *what)
{
	if (what == &b->channel)
		offers_read(b);
	else if (what == &b->listener)
		listener_read(b);
	else if (what != &b->timer)
		caller_read(b, what);
	else
		backend_timer_at(b, INT64_MAX);
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
	return offers_read(b);
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
	backend_timer_set(b);
	return BATON_OK;
}

enum baton_err baton_backend_accept(struct baton_backend *backend, struct baton_duration wait,
                                    struct baton_connection **ret)
{
	struct baton_backend *b = backend;
	bool waits = wait.ns > 0, last = false;
	struct baton_mono until = waits ? baton_mono_add(backend_now(b), wait) : BATON_MONO_NEVER;
	offers_tell(b);
	while (links_empty(&b->ready)) {
		if (b->refused) {
			b->refused = false;
			return fail(BATON_STALE, "a newer backend of '%s' is there", b->service);
		}
		if (last) {
			b->drained = false;
			return BATON_TIMEOUT;
		}
		int ms = waits ? talk_patience_ms(until) : 0;
		last = ms == 0;
		/* Who has got something and asks for more has a loop that is told if there is. */
		if (!waits && b->drained)
			continue;
		enum baton_err e = turn(b, ms);
		if (e != BATON_OK)
			return e;
	}
	struct guest *guest = LINKS_OF(b->ready.next, struct guest, links);
	links_remove(&guest->links);
	b->guests--;
	/* What was read already makes no descriptor readable; the timer does. */
	if (!links_empty(&b->ready) && b->armed > 1)
		backend_timer_at(b, 0);
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
			backend_turn_away(b, LINKS_OF(lists[i]->next, struct guest, links));
	if (b->listener >= 0)
		unlink(b->endpoint);
	fd_closep(&b->listener);
	fd_closep(&b->timer);
	fd_closep(&b->epoll);
	slate_done(&b->slate);
	explicit_bzero(b->untold, sizeof b->untold);
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
		b->options.generation = (uint64_t)backend_now(b).ns;
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
	if (!backend_watch(b, b->listener, &b->listener))
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
	if (b->epoll < 0 || b->timer < 0 || !backend_watch(b, b->timer, &b->timer))
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
	b->again_ms = BACKEND_AGAIN_MIN_MS;
	if (options->patient)
		backend_timer_set(b);
	*ret = TAKE(b);
	return BATON_OK;
}
