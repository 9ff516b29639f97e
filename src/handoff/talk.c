/* Talking on a stream with a deadline. */
#include "handoff/talk.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <baton/clock.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "handoff/site.h"

#define ROOM 512 /* what most frames fit into, and some of what follows */
#define HOST_MAX 255
#define PORT_MAX 5

int talk_patience_ms(struct baton_mono until)
{
	const struct baton_clock *clock = baton_clock_boot();
	int64_t left = baton_mono_sub(until, clock->now(clock)).ns;
	int64_t ms = left <= 0 ? 0 : (left - 1) / 1000000 + 1;
	return ms < 60000 ? (int)ms : 60000;
}

/* Waits for events on the descriptor; *ret are those that there are. BATON_TIMEOUT,
 * BATON_SYSTEM. */
static enum baton_err await_which(int fd, short events, struct baton_mono until, short *ret)
{
	struct pollfd p = {.fd = fd, .events = events};
	for (;;) {
		int ms = talk_patience_ms(until);
		int n = poll(&p, 1, ms);
		if (n > 0) {
			*ret = p.revents;
			return BATON_OK;
		}
		if (n < 0 && errno != EINTR)
			return fail_errno(errno, "cannot wait for a connection");
		if (n == 0 && ms == 0)
			return fail(BATON_TIMEOUT, "the other side takes too long");
	}
}

static enum baton_err await(int fd, short events, struct baton_mono until)
{
	short which;
	return await_which(fd, events, until, &which);
}

static enum baton_err stream_failed(int errnum)
{
	if (errnum == EPIPE || errnum == ECONNRESET)
		return fail(BATON_GONE, "the other side has closed the connection");
	return fail_errno(errnum, "a connection failed");
}

enum baton_err talk_send(int fd, struct baton_str bytes, struct baton_mono until)
{
	while (bytes.len > 0) {
		ssize_t n = send(fd, bytes.ptr, bytes.len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n >= 0) {
			bytes.ptr += n;
			bytes.len -= (size_t)n;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return stream_failed(errno);
		enum baton_err e = await(fd, POLLOUT, until);
		if (e != BATON_OK)
			return e;
	}
	return BATON_OK;
}

/* Reads some of what the reader wants, and waits until there is something. */
static enum baton_err read_some(int fd, struct wire_reader *reader, struct baton_mono until)
{
	void *place;
	size_t want;
	enum baton_err e = wire_reader_want(reader, &place, &want);
	if (e != BATON_OK)
		return e;
	ssize_t n = recv(fd, place, want, MSG_DONTWAIT);
	if (n > 0)
		return wire_reader_took(reader, (size_t)n);
	if (n == 0)
		return stream_failed(EPIPE);
	if (errno == EINTR)
		return BATON_OK;
	return errno == EAGAIN ? await(fd, POLLIN, until) : stream_failed(errno);
}

/* Looks at what lies there, without taking it. The length of the body, if a whole frame is the
 * first of it; 0: that is not so, as whoever reads it finds. */
static uint32_t frame_look(int fd, uint32_t max, uint8_t room[ROOM], bool *ret_more)
{
	ssize_t n = recv(fd, room, ROOM, MSG_PEEK | MSG_DONTWAIT);
	if (n <= WIRE_FRAME_HEAD)
		return 0;
	size_t have = (size_t)n - WIRE_FRAME_HEAD;
	uint32_t len = wire_frame_len(room);
	*ret_more = len < have;
	return len <= max && len <= have ? len : 0;
}

/* A frame of any length, as it arrives. */
static enum baton_err frame_read(int fd, uint32_t max, struct baton_mono until, struct arena *arena,
                                 struct wire_envelope *ret)
{
	AUTO(wire_reader_done) struct wire_reader reader;
	enum baton_err e = BATON_OK;
	wire_reader_init(&reader, baton_alloc_libc(), max);
	while (e == BATON_OK && !wire_reader_whole(&reader))
		e = read_some(fd, &reader, until);
	return e == BATON_OK ? wire_envelope_decode(wire_reader_body(&reader), arena, ret) : e;
}

enum baton_err talk_receive(int fd, uint32_t max, struct baton_mono until, struct arena *arena,
                            struct wire_envelope *ret, bool *ret_more)
{
	uint8_t room[ROOM];
	bool more = false;
	/* An answer takes its time. */
	enum baton_err e = await(fd, POLLIN, until);
	if (e != BATON_OK)
		return e;
	uint32_t len = frame_look(fd, max, room, &more);
	if (ret_more)
		*ret_more = len > 0 && more;
	if (len == 0)
		return frame_read(fd, max, until, arena, ret);
	/* Nobody else reads, so it is still there. */
	ssize_t whole = (ssize_t)(WIRE_FRAME_HEAD + len);
	if (recv(fd, room, (size_t)whole, MSG_DONTWAIT) != whole)
		return fail_errno(errno, "a connection failed");
	const struct baton_str body = {(const char *)room + WIRE_FRAME_HEAD, len};
	return wire_envelope_decode(body, arena, ret);
}

enum baton_err talk_await(int fd, struct baton_mono until)
{
	char byte;
	for (;;) {
		short which;
		enum baton_err e = await_which(fd, POLLIN | POLLRDHUP, until, &which);
		/* As long as the other side has not closed, there is nothing else to be read. */
		if (e != BATON_OK || which == POLLIN)
			return e;
		ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
		if (n > 0)
			return BATON_OK;
		if (n == 0 || (errno != EAGAIN && errno != EINTR))
			return stream_failed(n == 0 ? EPIPE : errno);
	}
}

/* Takes tcp:HOST:PORT apart. */
static bool tcp_parse(struct baton_str endpoint, char host[HOST_MAX + 1], char port[PORT_MAX + 1])
{
	static const struct baton_str tcp = {"tcp:", 4};
	if (endpoint.len < tcp.len || memcmp(endpoint.ptr, tcp.ptr, tcp.len) != 0)
		return false;
	const char *begin = endpoint.ptr + tcp.len;
	size_t len = endpoint.len - tcp.len;
	const char *colon = memrchr(begin, ':', len);
	if (!colon || colon == begin || (size_t)(colon - begin) > HOST_MAX)
		return false;
	size_t port_len = len - (size_t)(colon - begin) - 1;
	if (port_len == 0 || port_len > PORT_MAX)
		return false;
	memcpy(host, begin, (size_t)(colon - begin));
	host[colon - begin] = '\0';
	memcpy(port, colon + 1, port_len);
	port[port_len] = '\0';
	return strspn(port, "0123456789") == port_len;
}

bool talk_is_endpoint(struct baton_str endpoint)
{
	char host[HOST_MAX + 1];
	char port[PORT_MAX + 1];
	if (endpoint.len > 0 && endpoint.ptr[0] == '/')
		return endpoint.len <= SITE_PATH_MAX;
	return tcp_parse(endpoint, host, port);
}

static enum baton_err address_connect(const struct addrinfo *a, struct baton_mono until,
                                      int *ret_fd)
{
	int error = 0;
	socklen_t len = sizeof error;
	AUTO(fd_closep)
	int fd =
		socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
	if (fd < 0)
		return fail_errno(errno, "no socket");
	if (connect(fd, a->ai_addr, a->ai_addrlen) != 0 && errno != EINPROGRESS)
		return fail_errno(errno, "cannot connect");
	enum baton_err e = await(fd, POLLOUT, until);
	if (e != BATON_OK)
		return e;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0 || error != 0)
		return fail_errno(error, "cannot connect");
	if (fcntl(fd, F_SETFL, 0) != 0)
		return fail_errno(errno, "cannot change a connection");
	*ret_fd = fd_take(&fd);
	return BATON_OK;
}

static enum baton_err tcp_connect(const char *host, const char *port, struct baton_mono until,
                                  int *ret_fd)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *all;
	int why = getaddrinfo(host, port, &hints, &all);
	if (why != 0)
		return fail(BATON_NOT_FOUND, "there is no '%s': %s", host, gai_strerror(why));
	enum baton_err e = BATON_SYSTEM;
	for (const struct addrinfo *a = all; a && e == BATON_SYSTEM; a = a->ai_next)
		e = address_connect(a, until, ret_fd);
	freeaddrinfo(all);
	return e;
}

enum baton_err talk_connect(struct baton_str endpoint, struct baton_mono until, int *ret_fd)
{
	char host[HOST_MAX + 1];
	char port[PORT_MAX + 1];
	char path[SITE_PATH_MAX + 1];
	if (!talk_is_endpoint(endpoint))
		return fail(BATON_INVALID, "an endpoint is the path of a socket or tcp:HOST:PORT");
	if (endpoint.ptr[0] != '/') {
		tcp_parse(endpoint, host, port);
		return tcp_connect(host, port, until, ret_fd);
	}
	memcpy(path, endpoint.ptr, endpoint.len);
	path[endpoint.len] = '\0';
	return site_connect(path, SOCK_STREAM, talk_patience_ms(until), ret_fd);
}
