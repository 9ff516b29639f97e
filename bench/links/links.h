/* The ways from a client to a server that echoes: direct, through a broker, through proxies. One
 * server is at the end of all of them; all sockets are unix sockets in one folder. */
#ifndef BENCH_LINKS_LINKS_H
#define BENCH_LINKS_LINKS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include <baton/str.h>

#include "claims/peer.h"

#define LINKS_REQUEST 1024 /* bytes, which are echoed */

enum link_way {
	LINK_DIRECT = 1,
	LINK_HANDOFF,    /* the request comes after the connection                  */
	LINK_PIPELINED,  /* it comes with the Hello, and its answer is waited for   */
	LINK_WELCOMED,   /* it comes with the Hello, and a Welcome is waited for    */
	LINK_REPEATABLE, /* so it does, to a service whose first request may be repeated */
	LINK_RECONNECT,  /* the broker says where to connect                        */
	LINK_HAPROXY,
	LINK_NGINX,
	LINK_FLOOR /* pipelined, by a bare broker */
};

/* Starts the broker, the server, and the proxy that the way leads through, unless they run already.
 * False: that proxy cannot be had, as a message has said. */
bool links_ready(enum link_way way);

/* A new connection, with the first request answered. */
int links_connect(enum link_way way);

/* Ends it, and waits until the server has done so: what it does about one connection is not counted
 * for the next. */
void links_close(int fd);

/* Has this process, the brokers and the servers run on one core, or where the kernel thinks best:
 * on one, nobody has to be woken on another that is idle. */
void links_gather(bool together);

/* A connection to the broker that says nothing. */
int links_silent(void);

/* One more request on it. */
void links_echo(int fd);

/* The broker's process. */
pid_t links_broker(void);

/* server.c: the server's process; listens at the path "direct" in the folder, and is the backend of
 * the services "echo" and "again". Never returns. */
void server_run(void *folder);

/* proxies.c: starts one that leads to that path from "haproxy" or "nginx" in the folder. False: it
 * is not installed, or does not start. */
bool proxy_start(const char *folder, enum link_way way);

/* floor.c: starts a bare broker at the path "floor" in the folder, and the server behind it; and
 * asks it for the server, with the request, whose answer comes next. */
struct floor_peers {
	struct peer broker, server;
};
struct floor_peers floor_start(const char *folder);
void floor_ask(int fd, struct baton_str request);

/* Waits until somebody listens there; false: nobody does for 10 seconds. */
bool links_await(const char *path);

/* A connection to that path; -1: nobody listens. */
int links_open(const char *path);

#endif
