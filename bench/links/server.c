/* The server at the end of all ways: one loop that echoes. */
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <baton/backend.h>

#include "claims/arena.h"
#include "links/links.h"

#define EVENTS 256

struct server {
	int epoll, listener;
	struct baton_backend *backends[2];
};

static void watch(const struct server *s, int fd, uint64_t what)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = what};
	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
		err(1, "epoll_ctl");
}

static int listen_at(const char *folder)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof address.sun_path, "%s/direct", folder);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
	    listen(fd, 4096) != 0)
		err(1, "%s", address.sun_path);
	return fd;
}

static void echo(const struct server *s, int fd)
{
	char room[4 * LINKS_REQUEST];
	ssize_t n = recv(fd, room, sizeof room, MSG_DONTWAIT);
	if (n != 0 && (n < 0 || send(fd, room, (size_t)n, MSG_NOSIGNAL) == n))
		return;
	/* The broker may have a copy for a moment, which would keep it in epoll. */
	struct epoll_event event = {.events = 0};
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, fd, &event);
	close(fd);
}

/* The first request of a connection is looked for at once: it may be there already. */
static void add(const struct server *s, int fd)
{
	watch(s, fd, (uint64_t)fd);
	echo(s, fd);
}

static void backend_take(const struct server *s, struct baton_backend *backend)
{
	const struct baton_duration none = {0};
	struct baton_connection *connection;
	while (baton_backend_accept(backend, none, &connection) == BATON_OK) {
		add(s, baton_connection_take(connection));
		baton_connection_free(connection);
	}
}

static void listener_take(const struct server *s)
{
	struct sockaddr_un address;
	socklen_t len = sizeof address;
	int fd;
	while ((fd = accept4(s->listener, (struct sockaddr *)&address, &len, SOCK_CLOEXEC)) >= 0)
		add(s, fd);
}

/* Numbers of sources that are no descriptors of clients. */
#define SOURCE_BACKEND UINT64_MAX /* and one less for the second */
#define SOURCE_LISTENER (UINT64_MAX - 2)

static void take(const struct server *s, uint64_t what)
{
	if (what == SOURCE_LISTENER)
		listener_take(s);
	else if (what > SOURCE_LISTENER)
		backend_take(s, s->backends[SOURCE_BACKEND - what]);
	else
		echo(s, (int)what);
}

void server_run(void *folder)
{
	struct server s = {.epoll = epoll_create1(EPOLL_CLOEXEC)};
	struct epoll_event events[EVENTS];
	for (int i = 0; i < 2; i++) {
		const struct baton_backend_options options = {
			.folder = folder,
			.service = i == 0 ? BATON_STR("echo") : BATON_STR("again"),
			.repeatable = i == 1,
		};
		must(baton_backend_open(&options, &s.backends[i]));
		watch(&s, baton_backend_fd(s.backends[i]), SOURCE_BACKEND - (uint64_t)i);
	}
	/* Who finds that path finds the services too. */
	s.listener = listen_at(folder);
	watch(&s, s.listener, SOURCE_LISTENER);
	for (;;) {
		int n = epoll_wait(s.epoll, events, EVENTS, -1);
		for (int i = 0; i < n; i++)
			take(&s, events[i].data.u64);
	}
}
