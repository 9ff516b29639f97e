/* How a connection begins: what a client asks for, and what it is answered. */
#ifndef WIRE_HELLO_H
#define WIRE_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/err.h>
#include <baton/str.h>

#include "base/arena.h"
#include "base/buf.h"

#define WIRE_SERVICE_MAX 64
#define WIRE_SECRET_MAX 4096
#define WIRE_ENDPOINT_MAX 1024
#define WIRE_DETAIL_MAX 1024
#define WIRE_WARNINGS_MAX 16

/* What a client can do. */
enum {
	WIRE_ACCEPTS_HANDOFF = 1 << 0,
	WIRE_CANNOT_RECONNECT = 1 << 1,
	WIRE_WANTS_WELCOME = 1 << 2
};

struct wire_hello {
	uint32_t min_protocol;
	uint32_t max_protocol;
	struct baton_str service; /* empty: that of a lane */
	struct baton_str wanted_version;
	struct baton_str client_version;
	uint64_t capabilities;
	struct baton_str auth_token;
	uint64_t request_id;
	uint64_t connection_id;
	uint32_t pid;
	struct baton_str library_name;
	struct baton_str library_version;
	uint32_t keepalive_secs;
	struct baton_str queue;
	struct baton_str lane;
};

/* Whether it is [a-z0-9-]{1,64}. */
bool wire_is_service(struct baton_str name);

enum baton_err wire_hello_encode(const struct wire_hello *hello, struct buf *out);

/* BATON_INVALID: it is none; texts are too long or no UTF-8; min_protocol is above max_protocol; it
 * names neither a service nor a queue with a lane. *ret is untouched. BATON_NO_MEMORY. */
enum baton_err wire_hello_decode(struct baton_str bytes, struct arena *arena,
                                 struct wire_hello *ret);

/* What Negotiated says about the connection. */
enum {
	WIRE_IS_HANDOFF = 1 << 0,    /* it is being handed over                            */
	WIRE_PLAIN_ENDPOINT = 1 << 1 /* who is at backend_pipe knows nothing of this protocol */
};

struct wire_negotiated {
	uint32_t protocol;
	struct baton_str daemon_version;
	struct baton_str backend_pipe;
	const struct baton_str *warnings;
	size_t warnings_count;
	uint64_t capabilities;
	uint32_t keepalive_secs;
	struct baton_str token;
	uint64_t connection_id;
};

enum wire_code {
	WIRE_CODE_NONE = 0,
	WIRE_VERSION_UNSUPPORTED = 1,
	WIRE_SERVICE_UNKNOWN = 2,
	WIRE_SPAWN_FAILED = 3,
	WIRE_RATE_LIMITED = 4,
	WIRE_SHUTTING_DOWN = 5,
	WIRE_PEER_REJECTED = 6,
	WIRE_INTERNAL = 7,
	WIRE_VERSION_BLOCKED = 8,
	WIRE_FD_PRESSURE = 9,
	WIRE_LANE_ELSEWHERE = 10
};

struct wire_refused {
	struct baton_str reason;
	uint32_t min_protocol;
	uint32_t max_protocol;
	enum wire_code code;
	struct baton_str details;
	uint32_t retry_after_ms;
};

enum wire_reply_kind {
	WIRE_NEGOTIATED = 1,
	WIRE_REFUSED
};

struct wire_reply {
	enum wire_reply_kind kind;
	struct wire_negotiated negotiated; /* of WIRE_NEGOTIATED */
	struct wire_refused refused;       /* of WIRE_REFUSED    */
};

enum baton_err wire_reply_encode(const struct wire_reply *reply, struct buf *out);

/* A code that is not known becomes WIRE_INTERNAL. Errors as above. */
enum baton_err wire_reply_decode(struct baton_str bytes, struct arena *arena,
                                 struct wire_reply *ret);

#endif
