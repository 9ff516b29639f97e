/* What broker and backend tell each other about a connection that changes hands. */
#ifndef WIRE_HANDOFF_H
#define WIRE_HANDOFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/err.h>
#include <baton/str.h>

#include "base/arena.h"
#include "base/buf.h"
#include "wire/envelope.h"
#include "wire/frame.h"
#include "wire/hello.h"
#include "wire/move.h"
#include "wire/stored.h"

/* The longest packet of a channel: an offer with the longest Hello, and what is around it. */
#define WIRE_PACKET_MAX (WIRE_HELLO_MAX + (16u << 10))

/* Who a client is, as the kernel says. */
struct wire_credentials {
	uint32_t pid;
	uint32_t uid;
	uint32_t gid;
};

struct wire_offer {
	struct baton_str token;
	struct baton_str service;
	uint64_t correlation;
	struct wire_hello hello;
	struct wire_credentials credentials;
	uint64_t deadline;       /* nanoseconds on the clock since boot */
	uint32_t word;           /* of the slate; 0: none */
	struct wire_trace trace; /* of the client; in the envelope of the offer */
};

struct wire_ack {
	struct baton_str token;
	bool accepted;
	struct baton_str detail;
	uint64_t correlation;
};

struct wire_grant {
	struct baton_str token;
	uint64_t correlation;
};

/* What a backend can do. */
enum {
	WIRE_TAKES_CONNECTIONS = 1 << 0, /* else its service is one to reconnect to */
	WIRE_IS_REPEATABLE = 1 << 1,     /* no Grant is waited for */
	WIRE_IS_ADOPTED = 1 << 2,        /* somebody else speaks for it */
	WIRE_IS_PLAIN = 1 << 3,          /* its endpoint knows nothing of this protocol */
	WIRE_IS_COMMAND = 1 << 4,        /* no backend: a command for each connection */
	WIRE_IS_FD3 = 1 << 5,            /* the same, as descriptor 3 */
	WIRE_ANSWERS_PROBES = 1 << 6,    /* on its channel */
	WIRE_TAKES_BY_SLATE = 1 << 7     /* and waits for no Grant */
};

struct wire_register {
	struct baton_str service;
	uint64_t generation;
	struct baton_str endpoint; /* empty: clients cannot reconnect */
	struct baton_str owner;
	uint64_t capabilities;
};

struct wire_registered {
	bool accepted;
	struct baton_str detail;
	uint64_t backend;
	struct baton_str daemon_version;
};

struct wire_welcome {
	uint64_t connection_id;
};

struct wire_probe {
	uint64_t correlation;
};

enum wire_keep_verb {
	WIRE_PUT = 1,
	WIRE_TAKE,
	WIRE_TAKEN, /* what was taken has arrived */
	WIRE_LIST
};

struct wire_keep {
	enum wire_keep_verb verb;
	struct baton_str name;
	uint64_t ttl_ms; /* 0: until it is taken */
	uint64_t correlation;
};

enum wire_kept_result {
	WIRE_KEPT_DONE = 1,
	WIRE_KEPT_NONE,
	WIRE_KEPT_THERE,
	WIRE_KEPT_FULL,
	WIRE_KEPT_WRONG,
	WIRE_KEPT_BUSY
};

struct wire_kept {
	enum wire_kept_result result;
	struct baton_str detail;
	uint64_t correlation;
	const struct wire_stored *stored; /* of WIRE_LIST */
	size_t stored_count;
};

enum wire_handoff_kind {
	WIRE_OFFER = 1,
	WIRE_ACK,
	WIRE_GRANT,
	WIRE_REGISTER,
	WIRE_REGISTERED,
	WIRE_WELCOME,
	WIRE_KEEP,
	WIRE_KEPT,
	WIRE_MOVE,

	/* Of the protocol WIRE_PROBE, with no payload: whether the other side lives, and that it
	 * does. */
	WIRE_PROBES,
	WIRE_PROBED
};

struct wire_handoff {
	enum wire_handoff_kind kind;
	union {
		struct wire_offer offer;
		struct wire_ack ack;
		struct wire_grant grant;
		struct wire_register registration;
		struct wire_registered registered;
		struct wire_welcome welcome;
		struct wire_keep keep;
		struct wire_kept kept;
		struct wire_move move;
		struct wire_probe probe;
	} is;
};

enum baton_err wire_handoff_encode(const struct wire_handoff *message, struct buf *out);

/* BATON_INVALID: it is none; a text is too long or no UTF-8; an offer has another handle than 0, no
 * Hello or a wrong one; a registration has a wrong service; a verb or a result is not known. Tokens
 * are of any length. BATON_NO_MEMORY. */
enum baton_err wire_handoff_decode(struct baton_str bytes, struct arena *arena,
                                   struct wire_handoff *ret);

#endif
