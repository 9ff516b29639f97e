/* A bare broker: the least that two processes have to do so that a connection changes hands as it
 * does with Baton: a Hello is read, its answer and an Offer with the descriptor are sent, and an
 * Ack and a Grant follow. Messages of a fixed size, nothing is looked up or checked, every call
 * waits, and one connection is handed over at a time. */
#include <err.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "links/links.h"

/* As long as those of Baton in this bench, about. */
#define HELLO 80
#define NEGOTIATED 120
#define OFFER 220
#define ACK 60
#define GRANT 50
#define WELCOME 20

struct floor_side {
	int listener, channel;
};

static void put(int fd, size_t len, char what)
{
	char room[OFFER];
	memset(room, what, len);
	if (send(fd, room, len, MSG_NOSIGNAL) != (ssize_t)len)
		err(1, "send");
}

static char get(int fd, size_t len)
{
	char room[OFFER];
	if (recv(fd, room, len, MSG_WAITALL) != (ssize_t)len)
		err(1, "recv");
	return room[0];
}

union beside {
	struct cmsghdr align;
	char room[CMSG_SPACE(sizeof(int))];
};

static void offer(int channel, int fd, char what)
{
	char room[OFFER];
	union beside beside = {.room = {0}};
	struct iovec iov = {room, sizeof room};
	struct msghdr m = {.msg_iov = &iov,
	                   .msg_iovlen = 1,
	                   .msg_control = beside.room,
	                   .msg_controllen = sizeof beside.room};
	memset(room, what, sizeof room);
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
	if (sendmsg(channel, &m, MSG_NOSIGNAL) != (ssize_t)sizeof room)
		err(1, "sendmsg");
}

static int offered(int channel, char *ret_what)
{
	char room[OFFER];
	union beside beside;
	struct iovec iov = {room, sizeof room};
	struct msghdr m = {.msg_iov = &iov,
	                   .msg_iovlen = 1,
	                   .msg_control = beside.room,
	                   .msg_controllen = sizeof beside.room};
	int fd;
	if (recvmsg(channel, &m, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof room)
		err(1, "recvmsg");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
	*ret_what = room[0];
	return fd;
}

static void broker_run(void *arg)
{
	const struct floor_side *f = arg;
	for (;;) {
		struct sockaddr_un address;
		socklen_t len = sizeof address;
		int fd = accept4(f->listener, (struct sockaddr *)&address, &len, SOCK_CLOEXEC);
		if (fd < 0)
			err(1, "accept");
		char what = get(fd, HELLO);
		put(fd, NEGOTIATED, what);
		offer(f->channel, fd, what);
		get(f->channel, ACK);
		if (what == FLOOR_GRANTED)
			put(f->channel, GRANT, what);
		close(fd);
	}
}

static void server_serve(int fd)
{
	char room[LINKS_REQUEST];
	if (recv(fd, room, sizeof room, MSG_WAITALL) != (ssize_t)sizeof room ||
	    send(fd, room, sizeof room, MSG_NOSIGNAL) != (ssize_t)sizeof room)
		err(1, "a request");
	close(fd);
}

static void server_run_floor(void *arg)
{
	const struct floor_side *f = arg;
	for (;;) {
		char what;
		int fd = offered(f->channel, &what);
		put(f->channel, ACK, what);
		if (what == FLOOR_GRANTED)
			get(f->channel, GRANT);
		put(fd, WELCOME, what);
		server_serve(fd);
	}
}

struct floor_peers floor_start(const char *folder)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int ends[2];
	snprintf(address.sun_path, sizeof address.sun_path, "%s/floor", folder);
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
	    listen(listener, 4096) != 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		err(1, "%s", address.sun_path);
	struct floor_side broker = {listener, ends[0]}, server = {-1, ends[1]};
	struct floor_peers peers = {peer_start(broker_run, &broker),
	                            peer_start(server_run_floor, &server)};
	close(listener);
	close(ends[0]);
	close(ends[1]);
	return peers;
}

void floor_ask(int fd, char what, struct baton_str request)
{
	char room[HELLO + LINKS_REQUEST];
	memset(room, what, HELLO);
	memcpy(room + HELLO, request.ptr, request.len);
	if (send(fd, room, HELLO + request.len, MSG_NOSIGNAL) != (ssize_t)(HELLO + request.len))
		err(1, "send");
	get(fd, NEGOTIATED);
	get(fd, WELCOME);
}
