/* What a Hello is answered. */
#include "base/fail.h"
#include "wire/convert.h"

static enum baton_err negotiated_encode(const struct wire_negotiated *n, struct buf *out)
{
	Baton__Wire__Reply reply = BATON__WIRE__REPLY__INIT;
	Baton__Wire__Negotiated pb = BATON__WIRE__NEGOTIATED__INIT;
	ProtobufCBinaryData warnings[WIRE_WARNINGS_MAX];
	if (n->warnings_count > WIRE_WARNINGS_MAX)
		return fail(BATON_FULL, "%zu warnings; %d are allowed", n->warnings_count,
		            WIRE_WARNINGS_MAX);
	for (size_t i = 0; i < n->warnings_count; i++)
		warnings[i] = pack_data(n->warnings[i]);
	pb.protocol = n->protocol;
	pb.daemon_version = pack_data(n->daemon_version);
	pb.backend_pipe = pack_data(n->backend_pipe);
	pb.n_warnings = n->warnings_count;
	pb.warnings = warnings;
	pb.capabilities = n->capabilities;
	pb.keepalive_secs = n->keepalive_secs;
	pb.token = pack_data(n->token);
	pb.connection_id = n->connection_id;
	reply.is_case = BATON__WIRE__REPLY__IS_NEGOTIATED;
	reply.negotiated = &pb;
	return pack(&reply.base, out);
}

static enum baton_err refused_encode(const struct wire_refused *r, struct buf *out)
{
	Baton__Wire__Reply reply = BATON__WIRE__REPLY__INIT;
	Baton__Wire__Refused pb = BATON__WIRE__REFUSED__INIT;
	pb.reason = pack_data(r->reason);
	pb.min_protocol = r->min_protocol;
	pb.max_protocol = r->max_protocol;
	pb.code = (Baton__Wire__Code)r->code;
	pb.details = pack_data(r->details);
	pb.retry_after_ms = r->retry_after_ms;
	reply.is_case = BATON__WIRE__REPLY__IS_REFUSED;
	reply.refused = &pb;
	return pack(&reply.base, out);
}

enum baton_err wire_reply_encode(const struct wire_reply *reply, struct buf *out)
{
	return reply->kind == WIRE_NEGOTIATED ? negotiated_encode(&reply->negotiated, out)
	                                      : refused_encode(&reply->refused, out);
}

static enum baton_err warnings_in(const Baton__Wire__Negotiated *pb, struct arena *arena,
                                  struct wire_negotiated *ret)
{
	if (pb->n_warnings > WIRE_WARNINGS_MAX)
		return fail(BATON_INVALID, "%zu warnings; %d are allowed", pb->n_warnings,
		            WIRE_WARNINGS_MAX);
	struct baton_str *warnings = arena_take(arena, pb->n_warnings + 1, sizeof *warnings);
	if (!warnings)
		return fail_memory((pb->n_warnings + 1) * sizeof *warnings, "warnings");
	for (size_t i = 0; i < pb->n_warnings; i++) {
		enum baton_err e =
			pack_text("warning", pb->warnings[i], WIRE_DETAIL_MAX, &warnings[i]);
		if (e != BATON_OK)
			return e;
	}
	ret->warnings = warnings;
	ret->warnings_count = pb->n_warnings;
	return BATON_OK;
}

static enum baton_err negotiated_in(const Baton__Wire__Negotiated *pb, struct arena *arena,
                                    struct wire_negotiated *ret)
{
	struct wire_negotiated got = {
		.protocol = pb->protocol,
		.capabilities = pb->capabilities,
		.keepalive_secs = pb->keepalive_secs,
		.connection_id = pb->connection_id,
	};
	enum baton_err e = pack_text("daemon version", pb->daemon_version, BATON_NAME_MAX,
	                             &got.daemon_version);
	if (e == BATON_OK)
		e = pack_text("endpoint", pb->backend_pipe, WIRE_ENDPOINT_MAX, &got.backend_pipe);
	if (e == BATON_OK)
		e = pack_bytes("a token", pb->token, WIRE_SECRET_MAX, &got.token);
	if (e == BATON_OK)
		e = warnings_in(pb, arena, &got);
	if (e == BATON_OK)
		*ret = got;
	return e;
}

static enum baton_err refused_in(const Baton__Wire__Refused *pb, struct wire_refused *ret)
{
	bool known =
		pb->code > BATON__WIRE__CODE__NONE && pb->code <= BATON__WIRE__CODE__LANE_ELSEWHERE;
	struct wire_refused got = {
		.min_protocol = pb->min_protocol,
		.max_protocol = pb->max_protocol,
		.code = known ? (enum wire_code)pb->code : WIRE_INTERNAL,
		.retry_after_ms = pb->retry_after_ms,
	};
	enum baton_err e = pack_text("reason", pb->reason, WIRE_DETAIL_MAX, &got.reason);
	if (e == BATON_OK)
		e = pack_text("details", pb->details, WIRE_DETAIL_MAX, &got.details);
	if (e == BATON_OK)
		*ret = got;
	return e;
}

enum baton_err wire_reply_decode(struct baton_str bytes, struct arena *arena,
                                 struct wire_reply *ret)
{
	ProtobufCMessage *message;
	struct wire_reply got = {.kind = WIRE_NEGOTIATED};
	enum baton_err e = unpack(&baton__wire__reply__descriptor, "reply", bytes, arena, &message);
	if (e != BATON_OK)
		return e;
	const Baton__Wire__Reply *pb = (const Baton__Wire__Reply *)message;
	if (pb->is_case == BATON__WIRE__REPLY__IS_NEGOTIATED && pb->negotiated) {
		e = negotiated_in(pb->negotiated, arena, &got.negotiated);
	} else if (pb->is_case == BATON__WIRE__REPLY__IS_REFUSED && pb->refused) {
		got.kind = WIRE_REFUSED;
		e = refused_in(pb->refused, &got.refused);
	} else {
		e = fail(BATON_INVALID, "a reply that is neither Negotiated nor Refused");
	}
	if (e == BATON_OK)
		*ret = got;
	return e;
}
