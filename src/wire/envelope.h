/* What is around every message. */
#ifndef WIRE_ENVELOPE_H
#define WIRE_ENVELOPE_H

#include <stdbool.h>
#include <stdint.h>

#include <baton/err.h>
#include <baton/str.h>

#include "base/arena.h"
#include "base/buf.h"

#define WIRE_VERSION 1
#define WIRE_TRACE_MAX 512

enum wire_kind {
	WIRE_REQUEST = 0,
	WIRE_RESPONSE = 1,
	WIRE_EVENT = 2,
	WIRE_CANCEL = 3
};

enum wire_protocol {
	WIRE_HELLO = 0x0000,
	WIRE_HANDOFF = 0xD0FF,
	WIRE_ADMIN = 0xAD01,
	WIRE_PROBE = 0xB232
};

/* What goes along with a question. */
struct wire_trace {
	uint64_t deadline; /* nanoseconds on the clock since boot; 0: none */
	/* Printable characters of ASCII, up to WIRE_TRACE_MAX; may be empty. */
	struct baton_str traceparent;
	struct baton_str tracestate;
};

struct wire_envelope {
	enum wire_kind kind;
	enum wire_protocol protocol;
	struct baton_str payload;
	uint64_t request_id;
	struct wire_trace trace;
};

/* Whether that may be a traceparent or a tracestate. */
bool wire_is_trace(struct baton_str text);

/* Appends the envelope as it is in a packet, or as a frame of a stream. Errors are the buffer's,
 * and BATON_FULL for a body longer than WIRE_FRAME_MAX. */
enum baton_err wire_envelope_encode(const struct wire_envelope *envelope, struct buf *out);
enum baton_err wire_frame_encode(const struct wire_envelope *envelope, struct buf *out);

/* Reads one. What *ret points to is in the arena, here and in all decoders of this module.
 *
 * BATON_INVALID: it is none, or of a version, kind, protocol or encoding that is not known, or has
 * a trace that is none; *ret is untouched. BATON_NO_MEMORY. */
enum baton_err wire_envelope_decode(struct baton_str bytes, struct arena *arena,
                                    struct wire_envelope *ret);

#endif
