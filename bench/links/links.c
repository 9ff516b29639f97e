/* The ways from a client to a server that echoes. */
#include "links/links.h"

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <baton/broker.h>
#include <baton/client.h>

#include "claims/arena.h"
#include "claims/peer.h"

#define PATIENCE_MS 10000

/* What runs; one in a process, as a bench has one folder. */
static struct {
	char folder[PATH_MAX];
	struct peer broker, server;
	struct floor_peers bare;
	bool proxies[LINK_NGINX + 1], tried[LINK_NGINX + 1];
} site;

static void broker_run(void *arg)
{
	const struct baton_broker_options options = {.folder = arg};
	struct baton_broker *broker;
	must(baton_broker_open(&options, &broker));
	must(baton_broker_run(broker));
}

int links_open(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof address.sun_path)
		errx(1, "too long for a socket: %s", path);
	memcpy(address.sun_path, path, strlen(path));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		err(1, "socket");
	if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
		return fd;
	close(fd);
	return -1;
}

bool links_await(const char *path)
{
	for (int i = 0; i < PATIENCE_MS; i++) {
		int fd = links_open(path);
		if (fd >= 0) {
			close(fd);
			return true;
		}
		poll(NULL, 0, 1);
	}
	return false;
}

static void path_to(const char *name, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%.4000s/%s", site.folder, name);
}

static void begin(void)
{
	char path[PATH_MAX];
	arena_path(site.folder);
	if (mkdir(site.folder, 0700) != 0)
		err(1, "%s", site.folder);
	site.broker = peer_start(broker_run, site.folder);
	path_to("broker", path);
	if (!links_await(path))
		errx(1, "the broker does not start");
	site.server = peer_start(server_run, site.folder);
	path_to("direct", path);
	if (!links_await(path))
		errx(1, "the server does not start");
	site.bare = floor_start(site.folder);
}

bool links_ready(enum link_way way)
{
	if (site.folder[0] == '\0')
		begin();
	if (way != LINK_HAPROXY && way != LINK_NGINX)
		return true;
	if (!site.tried[way])
		site.proxies[way] = proxy_start(site.folder, way);
	site.tried[way] = true;
	return site.proxies[way];
}

pid_t links_broker(void)
{
	return site.broker.pid;
}

void links_gather(bool together)
{
	static cpu_set_t all;
	const pid_t everybody[] = {0, site.broker.pid, site.server.pid, site.bare.broker.pid,
	                           site.bare.server.pid};
	cpu_set_t one;
	if (CPU_COUNT(&all) == 0)
		sched_getaffinity(0, sizeof all, &all);
	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	for (size_t i = 0; i < sizeof everybody / sizeof *everybody; i++)
		if (sched_setaffinity(everybody[i], sizeof one, together ? &one : &all) != 0)
			err(1, "sched_setaffinity");
}

int links_silent(void)
{
	char path[PATH_MAX];
	path_to("broker", path);
	int fd = links_open(path);
	if (fd < 0)
		err(1, "%s", path);
	return fd;
}

static const char request[LINKS_REQUEST] = "a request of one kibibyte";

static void answer_await(int fd)
{
	char room[LINKS_REQUEST] = "";
	size_t got = 0;
	while (got < sizeof room) {
		ssize_t n = recv(fd, room + got, sizeof room - got, 0);
		if (n <= 0)
			errx(1, "a connection ended before its answer");
		got += (size_t)n;
	}
	if (memcmp(room, request, sizeof room) != 0)
		errx(1, "the answer is another one");
}

void links_echo(int fd)
{
	if (send(fd, request, sizeof request, MSG_NOSIGNAL) != (ssize_t)sizeof request)
		err(1, "a request cannot be sent");
	answer_await(fd);
}

void links_close(int fd)
{
	char room[64];
	shutdown(fd, SHUT_WR);
	while (recv(fd, room, sizeof room, 0) > 0)
		;
	close(fd);
}

static int broker_connect(enum link_way way)
{
	struct baton_client_ask ask = {
		.folder = site.folder,
		.service = way == LINK_REPEATABLE ? BATON_STR("again") : BATON_STR("echo"),
		.answered = way != LINK_WELCOMED,
		.no_handoff = way == LINK_RECONNECT,
	};
	int fd;
	if (way != LINK_HANDOFF)
		ask.first = (struct baton_str){request, sizeof request};
	must(baton_client_connect(&ask, &fd, NULL));
	if (way == LINK_HANDOFF)
		links_echo(fd);
	else
		answer_await(fd);
	return fd;
}

static int floor_connect(void)
{
	char path[PATH_MAX];
	path_to("floor", path);
	int fd = links_open(path);
	if (fd < 0)
		err(1, "%s", path);
	floor_ask(fd, (struct baton_str){request, sizeof request});
	answer_await(fd);
	return fd;
}

int links_connect(enum link_way way)
{
	char path[PATH_MAX];
	switch (way) {
	case LINK_FLOOR:
		return floor_connect();
	case LINK_DIRECT:
		path_to("direct", path);
		break;
	case LINK_HAPROXY:
		path_to("haproxy", path);
		break;
	case LINK_NGINX:
		path_to("nginx", path);
		break;
	case LINK_HANDOFF:
	case LINK_PIPELINED:
	case LINK_WELCOMED:
	case LINK_REPEATABLE:
	case LINK_RECONNECT:
		return broker_connect(way);
	}
	int fd = links_open(path);
	if (fd < 0)
		err(1, "%s", path);
	links_echo(fd);
	return fd;
}
