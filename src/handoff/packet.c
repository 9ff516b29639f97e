/* Packets of a channel. */
#include "handoff/packet.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "wire/frame.h"

/* What most messages have room in. */
#define ROOM 512

static enum packet_got sent(ssize_t n)
{
	if (n >= 0)
		return PACKET_DONE;
	switch (errno) {
	case EAGAIN:
	case ENOBUFS:
	case ETOOMANYREFS:
		return PACKET_NOT_NOW;
	case EPERM:
	case EACCES:
		return PACKET_DENIED;
	case ENOMEM:
		return PACKET_FAILED;
	default:
		return PACKET_HUNG_UP;
	}
}

static enum packet_got send_bytes(int channel, struct baton_str bytes, const int *fds, size_t count)
{
	union {
		char room[CMSG_SPACE(PACKET_FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {(void *)bytes.ptr, bytes.len};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	if (count > 0) {
		m.msg_control = control.room;
		m.msg_controllen = CMSG_SPACE(count * sizeof *fds);
		memset(control.room, 0, m.msg_controllen);
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(count * sizeof *fds);
		memcpy(CMSG_DATA(c), fds, count * sizeof *fds);
	}
	ssize_t n;
	do
		n = sendmsg(channel, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return sent(n);
}

static uint64_t correlation_of(const struct wire_handoff *m)
{
	switch (m->kind) {
	case WIRE_OFFER:
		return m->is.offer.correlation;
	case WIRE_ACK:
		return m->is.ack.correlation;
	case WIRE_GRANT:
		return m->is.grant.correlation;
	case WIRE_KEEP:
		return m->is.keep.correlation;
	case WIRE_KEPT:
		return m->is.kept.correlation;
	case WIRE_PROBES:
	case WIRE_PROBED:
		return m->is.probe.correlation;
	case WIRE_REGISTER:
	case WIRE_REGISTERED:
	case WIRE_WELCOME:
	case WIRE_MOVE:
		break;
	}
	return 0;
}

static enum wire_kind kind_of(enum wire_handoff_kind kind)
{
	switch (kind) {
	case WIRE_OFFER:
	case WIRE_REGISTER:
	case WIRE_KEEP:
	case WIRE_PROBES:
		return WIRE_REQUEST;
	case WIRE_ACK:
	case WIRE_KEPT:
	case WIRE_REGISTERED:
	case WIRE_PROBED:
		return WIRE_RESPONSE;
	case WIRE_GRANT:
	case WIRE_WELCOME:
	case WIRE_MOVE:
		break;
	}
	return WIRE_EVENT;
}

enum packet_got packet_send(int channel, const struct wire_handoff *message, int fd)
{
	return packet_send_many(channel, message, &fd, fd >= 0 ? 1 : 0);
}

enum packet_got packet_send_many(int channel, const struct wire_handoff *message, const int *fds,
                                 size_t count)
{
	char rooms[2][ROOM];
	AUTO(buf_done) struct buf payload;
	AUTO(buf_done) struct buf packet;
	buf_init_in(&payload, baton_alloc_libc(), WIRE_PACKET_MAX, rooms[0], ROOM);
	buf_init_in(&packet, baton_alloc_libc(), WIRE_PACKET_MAX, rooms[1], ROOM);
	bool probe = message->kind == WIRE_PROBES || message->kind == WIRE_PROBED;
	if (!probe && wire_handoff_encode(message, &payload) != BATON_OK)
		return PACKET_FAILED;
	struct wire_envelope envelope = {
		.kind = kind_of(message->kind),
		.protocol = probe ? WIRE_PROBE : WIRE_HANDOFF,
		.payload = buf_str(&payload),
		.request_id = correlation_of(message),
	};
	if (message->kind == WIRE_OFFER)
		envelope.trace = message->is.offer.trace;
	if (wire_envelope_encode(&envelope, &packet) != BATON_OK)
		return PACKET_FAILED;
	enum packet_got got = send_bytes(channel, buf_str(&packet), fds, count);
	/* There may be a token in it. */
	if (payload.len > 0)
		explicit_bzero(payload.data, payload.len);
	explicit_bzero(packet.data, packet.len);
	return got;
}

/* Takes the descriptors of a message, up to `max`. PACKET_STRANGE: there are others. PACKET_LOST:
 * some did not get through. Then all are closed. */
static enum packet_got take_fds(struct msghdr *m, size_t max, int *fds, size_t *ret_count)
{
	size_t count = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n && count < PACKET_FDS_MAX; i++, count++)
			memcpy(&fds[count], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
	}
	*ret_count = count;
	if (count <= max && !(m->msg_flags & MSG_CTRUNC))
		return PACKET_DONE;
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
	*ret_count = 0;
	return count <= max ? PACKET_LOST : PACKET_STRANGE;
}

static ssize_t receive_bytes(int channel, struct msghdr *m)
{
	ssize_t n;
	/* A side that goes with something unread says so before what it sent can be read. */
	do
		n = recvmsg(channel, m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	return n;
}

static bool probe_decode(const struct wire_envelope *envelope, struct wire_handoff *ret)
{
	*ret = (struct wire_handoff){
		.kind = envelope->kind == WIRE_REQUEST ? WIRE_PROBES : WIRE_PROBED,
		.is.probe = {envelope->request_id},
	};
	return envelope->kind == kind_of(ret->kind) && envelope->payload.len == 0;
}

static bool decode(struct baton_str bytes, struct arena *arena, struct wire_handoff *ret)
{
	struct wire_envelope envelope;
	if (wire_envelope_decode(bytes, arena, &envelope) != BATON_OK)
		return false;
	if (envelope.protocol == WIRE_PROBE)
		return probe_decode(&envelope, ret);
	if (envelope.protocol != WIRE_HANDOFF ||
	    wire_handoff_decode(envelope.payload, arena, ret) != BATON_OK)
		return false;
	if (ret->kind == WIRE_OFFER)
		ret->is.offer.trace = envelope.trace;
	return envelope.kind == kind_of(ret->kind) && envelope.request_id == correlation_of(ret);
}

/* Room for the descriptors of a packet. */
struct room {
	int *fds;   /* PACKET_FDS_MAX of them               */
	size_t max; /* how many there may be                */
	size_t count;
};

static enum packet_got receive(int channel, char *bytes, struct arena *arena,
                               struct wire_handoff *ret, struct room *with)
{
	union {
		char room[CMSG_SPACE(PACKET_FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {bytes, WIRE_PACKET_MAX + 1};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	m.msg_control = control.room;
	m.msg_controllen = sizeof control.room;
	ssize_t n = receive_bytes(channel, &m);
	if (n < 0)
		return errno == EAGAIN ? PACKET_NOT_NOW : PACKET_HUNG_UP;
	enum packet_got got = take_fds(&m, with->max, with->fds, &with->count);
	if (n == 0 && with->count == 0 && got == PACKET_DONE)
		return PACKET_HUNG_UP;
	if (got != PACKET_STRANGE && n <= (ssize_t)WIRE_PACKET_MAX &&
	    decode((struct baton_str){bytes, (size_t)n}, arena, ret))
		return got;
	for (size_t i = 0; i < with->count; i++)
		close(with->fds[i]);
	with->count = 0;
	return PACKET_STRANGE;
}

enum packet_got packet_receive_many(int channel, char *room, struct arena *arena, size_t max,
                                    struct packets *ret)
{
	struct room with = {.fds = ret->fds, .max = max};
	enum packet_got got = receive(channel, room, arena, &ret->message, &with);
	ret->fds_count = with.count;
	return got;
}

enum packet_got packet_receive(int channel, char *room, struct arena *arena, struct packet *ret)
{
	int fds[PACKET_FDS_MAX];
	struct room with = {.fds = fds, .max = 1};
	enum packet_got got = receive(channel, room, arena, &ret->message, &with);
	if (got == PACKET_DONE || got == PACKET_LOST)
		ret->fd = with.count == 1 ? fds[0] : -1;
	return got;
}

enum packet_got bytes_send(int fd, struct baton_str bytes)
{
	ssize_t n;
	do
		n = send(fd, bytes.ptr, bytes.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n >= 0 && (size_t)n < bytes.len)
		return PACKET_NOT_NOW;
	return sent(n);
}

enum packet_got frame_send(int fd, const struct wire_envelope *envelope)
{
	char room[ROOM];
	AUTO(buf_done) struct buf frame;
	buf_init_in(&frame, baton_alloc_libc(), WIRE_FRAME_MAX, room, sizeof room);
	if (wire_frame_encode(envelope, &frame) != BATON_OK)
		return PACKET_FAILED;
	enum packet_got got = bytes_send(fd, buf_str(&frame));
	explicit_bzero(frame.data, frame.len);
	return got;
}
