/* A bare broker: the least that two processes have to do so that a connection changes hands as it
 * does with Baton: a Hello is read, its answer and an Offer with the descriptor are sent, the
 * server takes the connection by a word that both share, and an Ack follows when it has answered.
 * Messages of a fixed size, nothing is looked up or checked, every call waits, and one connection
 * is handed over at a time. */
#include <err.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "links/links.h"

/* As long as those of Baton in this bench, about. */
#define HELLO 80
#define NEGOTIATED 120
#define OFFER 220
#define ACK 60

enum {
	FREE,
	OFFERED,
	TAKEN
};

struct floor_side {
	int listener, channel;
	_Atomic int *word;
};

static void put(int fd, size_t len)
{
	char room[OFFER];
	memset(room, 'x', len);
	if (send(fd, room, len, MSG_NOSIGNAL) != (ssize_t)len)
		err(1, "send");
}

static void get(int fd, size_t len)
{
	char room[OFFER];
	if (recv(fd, room, len, MSG_WAITALL) != (ssize_t)len)
		err(1, "recv");
}

union beside {
	struct cmsghdr align;
	char room[CMSG_SPACE(sizeof(int))];
};

static void offer(int channel, int fd)
{
	char room[OFFER];
	union beside beside = {.room = {0}};
	struct iovec iov = {room, sizeof room};
	struct msghdr m = {.msg_iov = &iov,
	                   .msg_iovlen = 1,
	                   .msg_control = beside.room,
	                   .msg_controllen = sizeof beside.room};
	memset(room, 'x', sizeof room);
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
	if (sendmsg(channel, &m, MSG_NOSIGNAL) != (ssize_t)sizeof room)
		err(1, "sendmsg");
}

static int offered(int channel)
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
		get(fd, HELLO);
		put(fd, NEGOTIATED);
		atomic_store(f->word, OFFERED);
		offer(f->channel, fd);
		get(f->channel, ACK);
		atomic_store(f->word, FREE);
		close(fd);
	}
}

static void server_serve(int fd)
{
	char room[LINKS_REQUEST];
	if (recv(fd, room, sizeof room, MSG_WAITALL) != (ssize_t)sizeof room ||
	    send(fd, room, sizeof room, MSG_NOSIGNAL) != (ssize_t)sizeof room)
		err(1, "a request");
}

static void server_run_floor(void *arg)
{
	const struct floor_side *f = arg;
	for (;;) {
		int fd = offered(f->channel), was = OFFERED;
		if (!atomic_compare_exchange_strong(f->word, &was, TAKEN))
			errx(1, "an offer that is none");
		server_serve(fd);
		put(f->channel, ACK);
		close(fd);
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
	_Atomic int *word =
		mmap(NULL, sizeof *word, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (word == MAP_FAILED)
		err(1, "mmap");
	struct floor_side broker = {listener, ends[0], word}, server = {-1, ends[1], word};
	struct floor_peers peers = {peer_start(broker_run, &broker),
	                            peer_start(server_run_floor, &server)};
	close(listener);
	close(ends[0]);
	close(ends[1]);
	munmap((void *)word, sizeof *word);
	return peers;
}

void floor_ask(int fd, struct baton_str request)
{
	char room[HELLO + LINKS_REQUEST];
	memset(room, 'x', HELLO);
	memcpy(room + HELLO, request.ptr, request.len);
	if (send(fd, room, HELLO + request.len, MSG_NOSIGNAL) != (ssize_t)(HELLO + request.len))
		err(1, "send");
	get(fd, NEGOTIATED);
}
