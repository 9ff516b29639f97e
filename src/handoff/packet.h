/* Packets of a channel, with or without a descriptor, and whole messages on a stream. */
#ifndef HANDOFF_PACKET_H
#define HANDOFF_PACKET_H

#include <stddef.h>

#include <baton/alloc.h>
#include <baton/err.h>
#include <baton/str.h>

#include "base/arena.h"
#include "wire/envelope.h"
#include "wire/handoff.h"

/* What sending or receiving came to. */
enum packet_got {
	PACKET_DONE = 1,
	PACKET_NOT_NOW, /* there is nothing, or no room            */
	PACKET_HUNG_UP, /* the other side is gone                  */
	PACKET_STRANGE, /* what came is no packet of this protocol */
	PACKET_LOST,    /* it came without its descriptors      */
	PACKET_DENIED,  /* the system does not let it through      */
	PACKET_FAILED   /* no memory, no descriptors               */
};

/* Sends a message as one packet, with `fd` unless it is -1. Never waits. */
enum packet_got packet_send(int channel, const struct wire_handoff *message, int fd);

/* The same with several of them, PACKET_FDS_MAX at most. */
#define PACKET_FDS_MAX 64
enum packet_got packet_send_many(int channel, const struct wire_handoff *message, const int *fds,
                                 size_t count);

/* One packet that was received. */
struct packet {
	struct wire_handoff message; /* in the arena */
	int fd;                      /* -1: none; else the caller's */
};

struct packets {
	struct wire_handoff message; /* in the arena */
	int fds[PACKET_FDS_MAX];     /* the caller's */
	size_t fds_count;
};

/* Receives one packet into `room`, of WIRE_PACKET_MAX + 1 bytes. Never waits. Unless PACKET_DONE
 * there is no descriptor to be closed. PACKET_LOST: the message is there, but this process had no
 * room for what came with it. */
enum packet_got packet_receive(int channel, char *room, struct arena *arena, struct packet *ret);

/* The same with up to `max` descriptors, at most PACKET_FDS_MAX; with others it is
 * PACKET_STRANGE. */
enum packet_got packet_receive_many(int channel, char *room, struct arena *arena, size_t max,
                                    struct packets *ret);

/* Sends bytes, or a frame, on a stream. Never waits: it has to fit into what the kernel takes at
 * once. */
enum packet_got bytes_send(int fd, struct baton_str bytes);
enum packet_got frame_send(int fd, const struct wire_envelope *envelope);

#endif
