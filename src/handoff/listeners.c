/* Sockets of TCP for clients that know nothing of Baton. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "handoff/peek.h"
#include "handoff/state.h"

#define BACKLOG 4096

/* ADDRESS:PORT, or [ADDRESS]:PORT. */
static enum baton_err address_split(const char *text, char host[256], char port[16])
{
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;
	if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	} else if (len > 0 && memchr(text, ':', len)) {
		len = 0;
	}
	if (!colon || len == 0 || len > 255 || colon[1] == '\0' || strlen(colon + 1) > 5 ||
	    strspn(colon + 1, "0123456789") != strlen(colon + 1))
		return fail(BATON_INVALID,
		            "'%.80s' is no address to listen at: ADDRESS:PORT, or [ADDRESS]:PORT",
		            text);
	snprintf(host, 256, "%.*s", (int)len, text);
	snprintf(port, 16, "%s", colon + 1);
	return BATON_OK;
}

static bool socket_open(const struct addrinfo *a, int *ret_fd)
{
	static const int one = 1;
	AUTO(fd_closep)
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
	    (a->ai_family == AF_INET6 &&
	     setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one) != 0) ||
	    bind(fd, a->ai_addr, a->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0)
		return false;
	*ret_fd = fd_take(&fd);
	return true;
}

static enum baton_err address_listen(const char *text, int *ret_fd)
{
	char host[256];
	char port[16];
	struct addrinfo *found = NULL;
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
	                               .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	enum baton_err e = address_split(text, host, port);
	if (e != BATON_OK)
		return e;
	int why = getaddrinfo(host, port, &hints, &found);
	if (why != 0)
		return fail(BATON_INVALID, "'%.80s' is no address to listen at: %s", text,
		            gai_strerror(why));
	bool open = socket_open(found, ret_fd);
	why = errno;
	freeaddrinfo(found);
	if (!open && why == EADDRINUSE)
		return fail(BATON_BUSY, "somebody else listens at '%.80s'", text);
	return open ? BATON_OK : fail_errno(why, "cannot listen at '%.80s'", text);
}

/* Which port it is, if any was allowed. */
static void address_log(const struct baton_broker *b, const struct listener *l)
{
	struct sockaddr_storage address;
	socklen_t len = sizeof address;
	char host[NI_MAXHOST] = "";
	char port[NI_MAXSERV] = "";
	if (getsockname(l->source.fd, (struct sockaddr *)&address, &len) == 0)
		getnameinfo((struct sockaddr *)&address, len, host, sizeof host, port, sizeof port,
		            NI_NUMERICHOST | NI_NUMERICSERV);
	BATON_LOG(b->log, BATON_LOG_INFO, "listening",
	          baton_field_str("address", baton_str_z(host)),
	          baton_field_str("port", baton_str_z(port)));
}

struct listener *listeners_find(struct baton_broker *b, struct baton_str address)
{
	for (size_t i = 0; i < b->listeners_count; i++)
		if (baton_str_equal(baton_str_z(b->listeners[i].address), address))
			return &b->listeners[i];
	return NULL;
}

/* One that was taken over from another broker. */
static bool inherited_take(struct baton_broker *b, const char *address, int *ret_fd)
{
	for (size_t i = 0; i < b->inherited_count; i++) {
		if (b->inherited[i].fd < 0 || strcmp(b->inherited[i].address, address) != 0)
			continue;
		*ret_fd = fd_take(&b->inherited[i].fd);
		return true;
	}
	return false;
}

static enum baton_err listener_open(struct baton_broker *b, const char *address,
                                    struct listener **ret)
{
	struct listener *l = listeners_find(b, baton_str_z(address));
	struct baton_str copy;
	if (l) {
		*ret = l;
		return BATON_OK;
	}
	if (b->listeners_count == LISTENERS_MAX)
		return fail(BATON_FULL, "more than %d addresses to listen at", LISTENERS_MAX);
	if (!arena_copy(&b->kept, baton_str_z(address), &copy))
		return fail_memory(strlen(address), "an address");
	l = &b->listeners[b->listeners_count];
	*l = (struct listener){.source = {.kind = SOURCE_LISTENER, .fd = -1}, .address = copy.ptr};
	links_init(&l->source.links);
	enum baton_err e = inherited_take(b, address, &l->source.fd) ||
	                                   safe_listener_take(b, address, &l->source.fd)
	                           ? BATON_OK
	                           : address_listen(address, &l->source.fd);
	if (e != BATON_OK)
		return e;
	b->listeners_count++;
	if (!source_watch(b, &l->source, EPOLLIN))
		return fail_errno(errno, "cannot wait for clients");
	address_log(b, l);
	safe_listener(b, l);
	*ret = l;
	return BATON_OK;
}

static enum baton_err name_add(struct baton_broker *b, struct listener *l, struct service *service,
                               const char *name)
{
	struct baton_str copy;
	char small[PEEK_NAME_MAX + 1];
	char request[PEEK_NAME_MAX + 64];
	/* What would never be seen is no name. */
	snprintf(request, sizeof request, "GET / HTTP/1.1\r\nHost: %.*s\r\n", PEEK_NAME_MAX, name);
	if (strlen(name) > PEEK_NAME_MAX || peek_name(baton_str_z(request), small) != PEEK_NAME ||
	    strlen(small) != strlen(name))
		return fail(BATON_INVALID, "'%.80s' is no name of a server", name);
	if (l->names_count == LISTENER_NAMES_MAX)
		return fail(BATON_FULL, "more than %d names at '%.80s'", LISTENER_NAMES_MAX,
		            l->address);
	if (!arena_copy(&b->kept, baton_str_z(small), &copy))
		return fail_memory(strlen(small), "a name");
	l->names[l->names_count++] = (struct listener_name){copy.ptr, service};
	return BATON_OK;
}

static enum baton_err listener_add(struct baton_broker *b, const struct baton_broker_listener *o)
{
	struct listener *l;
	struct service *service;
	if (!wire_is_service(o->service))
		return fail(BATON_INVALID, "a service has a name of 1 to %d of [a-z0-9-]",
		            WIRE_SERVICE_MAX);
	enum baton_err e = listener_open(b, o->address, &l);
	if (e == BATON_OK)
		e = services_make(b, o->service, &service);
	if (e != BATON_OK)
		return e;
	if (o->name)
		return name_add(b, l, service, o->name);
	if (l->others)
		return fail(BATON_INVALID, "there are two services at '%.80s'", o->address);
	l->others = service;
	return BATON_OK;
}

enum baton_err listeners_open(struct baton_broker *b, const struct baton_broker_listener *all,
                              size_t count)
{
	enum baton_err e = BATON_OK;
	b->listeners = arena_take(&b->kept, LISTENERS_MAX, sizeof *b->listeners);
	if (!b->listeners)
		return fail_memory(LISTENERS_MAX * sizeof *b->listeners, "listeners");
	for (size_t i = 0; i < count && e == BATON_OK; i++)
		e = listener_add(b, &all[i]);
	return e;
}

void listeners_close(struct baton_broker *b)
{
	for (size_t i = 0; i < b->listeners_count; i++) {
		struct source *s = &b->listeners[i].source;
		if (s->fd < 0)
			continue;
		source_ignore(b, s);
		close(s->fd);
		s->fd = -1;
	}
}

void listeners_pause(struct baton_broker *b, bool pause)
{
	for (size_t i = 0; i < b->listeners_count; i++)
		if (b->listeners[i].source.fd >= 0)
			source_change(b, &b->listeners[i].source, pause ? 0 : EPOLLIN);
}

struct service *listeners_service(const struct listener *l, const char *name)
{
	for (size_t i = 0; name && i < l->names_count; i++)
		if (strcmp(l->names[i].name, name) == 0)
			return l->names[i].service;
	return l->others;
}
