/* What is around every message. */
#include "wire/envelope.h"

#include <string.h>

#include "base/fail.h"
#include "wire/frame.h"
#include "wire/pack.h"
#include "wire/wire.pb-c.h"

static Baton__Wire__Envelope envelope_of(const struct wire_envelope *e)
{
	Baton__Wire__Envelope pb = BATON__WIRE__ENVELOPE__INIT;
	pb.version = WIRE_VERSION;
	pb.kind = (Baton__Wire__Kind)e->kind;
	pb.protocol = e->protocol;
	pb.payload = pack_data(e->payload);
	pb.request_id = e->request_id;
	pb.deadline = e->trace.deadline;
	pb.traceparent = pack_data(e->trace.traceparent);
	pb.tracestate = pack_data(e->trace.tracestate);
	return pb;
}

enum baton_err wire_envelope_encode(const struct wire_envelope *envelope, struct buf *out)
{
	Baton__Wire__Envelope pb = envelope_of(envelope);
	return pack(&pb.base, out);
}

enum baton_err wire_frame_encode(const struct wire_envelope *envelope, struct buf *out)
{
	Baton__Wire__Envelope pb = envelope_of(envelope);
	uint8_t head[WIRE_FRAME_HEAD] = {0};
	size_t begin = out->len;
	buf_append(out, head, sizeof head);
	if (pack(&pb.base, out) != BATON_OK)
		return out->err;
	size_t len = out->len - begin - sizeof head;
	if (len > WIRE_FRAME_MAX) {
		out->len = begin;
		return fail(BATON_FULL, "a frame of %zu bytes; %u are allowed", len,
		            WIRE_FRAME_MAX);
	}
	wire_frame_head((uint32_t)len, head);
	memcpy(out->data + begin, head, sizeof head);
	return BATON_OK;
}

static bool is_known(uint32_t protocol)
{
	return protocol == WIRE_HELLO || protocol == WIRE_HANDOFF || protocol == WIRE_ADMIN ||
	       protocol == WIRE_PROBE;
}

static enum baton_err envelope_check(const Baton__Wire__Envelope *pb)
{
	if (pb->version != WIRE_VERSION)
		return fail(BATON_INVALID, "an envelope of version %u; this is version %d",
		            (unsigned)pb->version, WIRE_VERSION);
	if ((unsigned)pb->kind > WIRE_CANCEL)
		return fail(BATON_INVALID, "an envelope of the unknown kind %u",
		            (unsigned)pb->kind);
	if (!is_known(pb->protocol))
		return fail(BATON_INVALID, "an envelope of the unknown protocol %#x",
		            (unsigned)pb->protocol);
	if (pb->encoding != 0)
		return fail(BATON_INVALID, "a payload in the unknown encoding %u",
		            (unsigned)pb->encoding);
	return BATON_OK;
}

bool wire_is_trace(struct baton_str text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.ptr[i] < ' ' || text.ptr[i] > '~')
			return false;
	return text.len <= WIRE_TRACE_MAX;
}

static enum baton_err trace_in(const Baton__Wire__Envelope *pb, struct wire_trace *ret)
{
	*ret = (struct wire_trace){pb->deadline, pack_view(pb->traceparent),
	                           pack_view(pb->tracestate)};
	if (wire_is_trace(ret->traceparent) && wire_is_trace(ret->tracestate))
		return BATON_OK;
	return fail(BATON_INVALID, "a trace that is not of up to %d printable characters",
	            WIRE_TRACE_MAX);
}

enum baton_err wire_envelope_decode(struct baton_str bytes, struct arena *arena,
                                    struct wire_envelope *ret)
{
	ProtobufCMessage *message;
	enum baton_err e =
		unpack(&baton__wire__envelope__descriptor, "envelope", bytes, arena, &message);
	if (e != BATON_OK)
		return e;
	const Baton__Wire__Envelope *pb = (const Baton__Wire__Envelope *)message;
	struct wire_envelope got = {
		.payload = pack_view(pb->payload),
		.request_id = pb->request_id,
	};
	e = envelope_check(pb);
	if (e == BATON_OK)
		e = trace_in(pb, &got.trace);
	if (e != BATON_OK)
		return e;
	got.kind = (enum wire_kind)pb->kind;
	got.protocol = (enum wire_protocol)pb->protocol;
	*ret = got;
	return BATON_OK;
}
