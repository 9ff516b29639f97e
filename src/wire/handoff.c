/* What broker and backend tell each other. */
#include "wire/handoff.h"

#include "base/fail.h"
#include "wire/convert.h"

static enum baton_err offer_encode(const struct wire_offer *o, struct buf *out)
{
	Baton__Wire__Handoff pb = BATON__WIRE__HANDOFF__INIT;
	Baton__Wire__Offer offer = BATON__WIRE__OFFER__INIT;
	Baton__Wire__Credentials who = BATON__WIRE__CREDENTIALS__INIT;
	Baton__Wire__Hello hello;
	convert_hello_out(&o->hello, &hello);
	who.pid = o->credentials.pid;
	who.uid = o->credentials.uid;
	who.gid = o->credentials.gid;
	offer.token = pack_data(o->token);
	offer.service = pack_data(o->service);
	offer.correlation = o->correlation;
	offer.hello = &hello;
	offer.credentials = &who;
	offer.deadline = o->deadline;
	offer.word = o->word;
	pb.is_case = BATON__WIRE__HANDOFF__IS_OFFER;
	pb.offer = &offer;
	return pack(&pb.base, out);
}

static enum baton_err ack_encode(const struct wire_ack *a, struct buf *out)
{
	Baton__Wire__Handoff pb = BATON__WIRE__HANDOFF__INIT;
	Baton__Wire__Ack ack = BATON__WIRE__ACK__INIT;
	ack.token = pack_data(a->token);
	ack.accepted = a->accepted;
	ack.detail = pack_data(a->detail);
	ack.correlation = a->correlation;
	pb.is_case = BATON__WIRE__HANDOFF__IS_ACK;
	pb.ack = &ack;
	return pack(&pb.base, out);
}

static enum baton_err grant_encode(const struct wire_grant *g, struct buf *out)
{
	Baton__Wire__Handoff pb = BATON__WIRE__HANDOFF__INIT;
	Baton__Wire__Grant grant = BATON__WIRE__GRANT__INIT;
	grant.token = pack_data(g->token);
	grant.correlation = g->correlation;
	pb.is_case = BATON__WIRE__HANDOFF__IS_GRANT;
	pb.grant = &grant;
	return pack(&pb.base, out);
}

static enum baton_err register_encode(const struct wire_register *r, struct buf *out)
{
	Baton__Wire__Handoff pb = BATON__WIRE__HANDOFF__INIT;
	Baton__Wire__Register registration = BATON__WIRE__REGISTER__INIT;
	registration.service = pack_data(r->service);
	registration.generation = r->generation;
	registration.endpoint = pack_data(r->endpoint);
	registration.owner = pack_data(r->owner);
	registration.capabilities = r->capabilities;
	pb.is_case = BATON__WIRE__HANDOFF__IS_REGISTER;
	pb.register_ = &registration;
	return pack(&pb.base, out);
}

static enum baton_err registered_encode(const struct wire_registered *r, struct buf *out)
{
	Baton__Wire__Handoff pb = BATON__WIRE__HANDOFF__INIT;
	Baton__Wire__Registered registered = BATON__WIRE__REGISTERED__INIT;
	registered.accepted = r->accepted;
	registered.detail = pack_data(r->detail);
	registered.backend = r->backend;
	registered.daemon_version = pack_data(r->daemon_version);
	pb.is_case = BATON__WIRE__HANDOFF__IS_REGISTERED;
	pb.registered = &registered;
	return pack(&pb.base, out);
}

static enum baton_err welcome_encode(const struct wire_welcome *w, struct buf *out)
{
	Baton__Wire__Handoff pb = BATON__WIRE__HANDOFF__INIT;
	Baton__Wire__Welcome welcome = BATON__WIRE__WELCOME__INIT;
	welcome.connection_id = w->connection_id;
	pb.is_case = BATON__WIRE__HANDOFF__IS_WELCOME;
	pb.welcome = &welcome;
	return pack(&pb.base, out);
}

static enum baton_err keep_encode(const struct wire_keep *k, struct buf *out)
{
	Baton__Wire__Handoff pb = BATON__WIRE__HANDOFF__INIT;
	Baton__Wire__Keep keep = BATON__WIRE__KEEP__INIT;
	keep.verb = (uint32_t)k->verb;
	keep.name = pack_data(k->name);
	keep.ttl_ms = k->ttl_ms;
	keep.correlation = k->correlation;
	pb.is_case = BATON__WIRE__HANDOFF__IS_KEEP;
	pb.keep = &keep;
	return pack(&pb.base, out);
}

static enum baton_err kept_encode(const struct wire_kept *k, struct buf *out)
{
	Baton__Wire__Handoff pb = BATON__WIRE__HANDOFF__INIT;
	Baton__Wire__Kept kept = BATON__WIRE__KEPT__INIT;
	Baton__Wire__Stored all[WIRE_STORED_OF_SERVICE_MAX];
	Baton__Wire__Stored *places[WIRE_STORED_OF_SERVICE_MAX];
	if (k->stored_count > WIRE_STORED_OF_SERVICE_MAX)
		return fail(BATON_FULL, "%zu descriptors that are kept; %d are allowed",
		            k->stored_count, WIRE_STORED_OF_SERVICE_MAX);
	convert_stored_out(k->stored, k->stored_count, all, places);
	kept.result = (uint32_t)k->result;
	kept.detail = pack_data(k->detail);
	kept.correlation = k->correlation;
	kept.n_stored = k->stored_count;
	kept.stored = places;
	pb.is_case = BATON__WIRE__HANDOFF__IS_KEPT;
	pb.kept = &kept;
	return pack(&pb.base, out);
}

enum baton_err wire_handoff_encode(const struct wire_handoff *message, struct buf *out)
{
	switch (message->kind) {
	case WIRE_OFFER:
		return offer_encode(&message->is.offer, out);
	case WIRE_ACK:
		return ack_encode(&message->is.ack, out);
	case WIRE_GRANT:
		return grant_encode(&message->is.grant, out);
	case WIRE_REGISTER:
		return register_encode(&message->is.registration, out);
	case WIRE_REGISTERED:
		return registered_encode(&message->is.registered, out);
	case WIRE_WELCOME:
		return welcome_encode(&message->is.welcome, out);
	case WIRE_KEEP:
		return keep_encode(&message->is.keep, out);
	case WIRE_KEPT:
		return kept_encode(&message->is.kept, out);
	case WIRE_MOVE:
		return convert_move_encode(&message->is.move, out);
	case WIRE_PROBES:
	case WIRE_PROBED:
		break;
	}
	return fail(BATON_INVALID, "a message of the unknown kind %d", (int)message->kind);
}

static enum baton_err offer_in(const Baton__Wire__Offer *pb, struct wire_offer *ret)
{
	if (pb->handle != 0)
		return fail(BATON_INVALID, "an offer with the handle %u", (unsigned)pb->handle);
	if (!pb->hello || !pb->credentials)
		return fail(BATON_INVALID, "an offer that does not say who the client is");
	ret->correlation = pb->correlation;
	ret->deadline = pb->deadline;
	ret->word = pb->word;
	ret->credentials = (struct wire_credentials){pb->credentials->pid, pb->credentials->uid,
	                                             pb->credentials->gid};
	enum baton_err e = pack_bytes("a token", pb->token, WIRE_SECRET_MAX, &ret->token);
	if (e == BATON_OK)
		e = pack_text("service", pb->service, WIRE_SERVICE_MAX, &ret->service);
	return e == BATON_OK ? convert_hello_in(pb->hello, &ret->hello) : e;
}

static enum baton_err ack_in(const Baton__Wire__Ack *pb, struct wire_ack *ret)
{
	ret->accepted = pb->accepted;
	ret->correlation = pb->correlation;
	enum baton_err e = pack_bytes("a token", pb->token, WIRE_SECRET_MAX, &ret->token);
	return e == BATON_OK ? pack_text("detail", pb->detail, WIRE_DETAIL_MAX, &ret->detail) : e;
}

static enum baton_err grant_in(const Baton__Wire__Grant *pb, struct wire_grant *ret)
{
	ret->correlation = pb->correlation;
	return pack_bytes("a token", pb->token, WIRE_SECRET_MAX, &ret->token);
}

static enum baton_err register_in(const Baton__Wire__Register *pb, struct wire_register *ret)
{
	ret->generation = pb->generation;
	ret->capabilities = pb->capabilities;
	ret->service = pack_view(pb->service);
	if (!wire_is_service(ret->service))
		return fail(BATON_INVALID,
		            "a backend for a service whose name is not of 1 to %d of [a-z0-9-]",
		            WIRE_SERVICE_MAX);
	enum baton_err e = pack_text("endpoint", pb->endpoint, WIRE_ENDPOINT_MAX, &ret->endpoint);
	return e == BATON_OK ? pack_text("owner", pb->owner, BATON_NAME_MAX, &ret->owner) : e;
}

static enum baton_err registered_in(const Baton__Wire__Registered *pb, struct wire_registered *ret)
{
	ret->accepted = pb->accepted;
	ret->backend = pb->backend;
	enum baton_err e = pack_text("detail", pb->detail, WIRE_DETAIL_MAX, &ret->detail);
	return e == BATON_OK ? pack_text("daemon version", pb->daemon_version, BATON_NAME_MAX,
	                                 &ret->daemon_version)
	                     : e;
}

static enum baton_err keep_in(const Baton__Wire__Keep *pb, struct wire_keep *ret)
{
	if (pb->verb < WIRE_PUT || pb->verb > WIRE_LIST)
		return fail(BATON_INVALID, "the unknown verb %u about a descriptor",
		            (unsigned)pb->verb);
	ret->verb = (enum wire_keep_verb)pb->verb;
	ret->ttl_ms = pb->ttl_ms;
	ret->correlation = pb->correlation;
	return pack_text("name", pb->name, WIRE_STORED_NAME_MAX, &ret->name);
}

static enum baton_err kept_in(const Baton__Wire__Kept *pb, struct arena *arena,
                              struct wire_kept *ret)
{
	if (pb->result < WIRE_KEPT_DONE || pb->result > WIRE_KEPT_BUSY)
		return fail(BATON_INVALID, "the unknown result %u about a descriptor",
		            (unsigned)pb->result);
	ret->result = (enum wire_kept_result)pb->result;
	ret->correlation = pb->correlation;
	ret->stored_count = pb->n_stored;
	enum baton_err e = pack_text("detail", pb->detail, WIRE_DETAIL_MAX, &ret->detail);
	return e == BATON_OK ? convert_stored_in(pb->stored, pb->n_stored,
	                                         WIRE_STORED_OF_SERVICE_MAX, arena, &ret->stored)
	                     : e;
}

/* The union of all messages has NULL where a message of a known kind is missing. */
static enum baton_err handoff_in(const Baton__Wire__Handoff *pb, struct arena *arena,
                                 struct wire_handoff *ret)
{
	switch (pb->is_case) {
	case BATON__WIRE__HANDOFF__IS_OFFER:
		ret->kind = WIRE_OFFER;
		return offer_in(pb->offer, &ret->is.offer);
	case BATON__WIRE__HANDOFF__IS_ACK:
		ret->kind = WIRE_ACK;
		return ack_in(pb->ack, &ret->is.ack);
	case BATON__WIRE__HANDOFF__IS_GRANT:
		ret->kind = WIRE_GRANT;
		return grant_in(pb->grant, &ret->is.grant);
	case BATON__WIRE__HANDOFF__IS_REGISTER:
		ret->kind = WIRE_REGISTER;
		return register_in(pb->register_, &ret->is.registration);
	case BATON__WIRE__HANDOFF__IS_REGISTERED:
		ret->kind = WIRE_REGISTERED;
		return registered_in(pb->registered, &ret->is.registered);
	case BATON__WIRE__HANDOFF__IS_WELCOME:
		ret->kind = WIRE_WELCOME;
		ret->is.welcome.connection_id = pb->welcome->connection_id;
		return BATON_OK;
	case BATON__WIRE__HANDOFF__IS_KEEP:
		ret->kind = WIRE_KEEP;
		return keep_in(pb->keep, &ret->is.keep);
	case BATON__WIRE__HANDOFF__IS_KEPT:
		ret->kind = WIRE_KEPT;
		return kept_in(pb->kept, arena, &ret->is.kept);
	case BATON__WIRE__HANDOFF__IS_MOVE:
		ret->kind = WIRE_MOVE;
		return convert_move_in(pb->move, arena, &ret->is.move);
	case BATON__WIRE__HANDOFF__IS__NOT_SET:
	case _BATON__WIRE__HANDOFF__IS__CASE_IS_INT_SIZE:
		break;
	}
	return fail(BATON_INVALID, "a message about a handoff of an unknown kind");
}

enum baton_err wire_handoff_decode(struct baton_str bytes, struct arena *arena,
                                   struct wire_handoff *ret)
{
	ProtobufCMessage *message;
	struct wire_handoff got = {.kind = WIRE_WELCOME};
	enum baton_err e = unpack(&baton__wire__handoff__descriptor, "message about a handoff",
	                          bytes, arena, &message);
	if (e != BATON_OK)
		return e;
	const Baton__Wire__Handoff *pb = (const Baton__Wire__Handoff *)message;
	if (pb->is_case != BATON__WIRE__HANDOFF__IS__NOT_SET && !pb->offer)
		return fail(BATON_INVALID, "a message about a handoff without its content");
	e = handoff_in(pb, arena, &got);
	if (e == BATON_OK)
		*ret = got;
	return e;
}
