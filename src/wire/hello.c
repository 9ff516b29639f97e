/* How a connection begins. */
#include "wire/hello.h"

#include "base/fail.h"
#include "wire/convert.h"

bool wire_is_service(struct baton_str name)
{
	if (name.len == 0 || name.len > WIRE_SERVICE_MAX)
		return false;
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];
		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'))
			return false;
	}
	return true;
}

void convert_hello_out(const struct wire_hello *hello, Baton__Wire__Hello *pb)
{
	Baton__Wire__Hello init = BATON__WIRE__HELLO__INIT;
	*pb = init;
	pb->min_protocol = hello->min_protocol;
	pb->max_protocol = hello->max_protocol;
	pb->service = pack_data(hello->service);
	pb->wanted_version = pack_data(hello->wanted_version);
	pb->client_version = pack_data(hello->client_version);
	pb->capabilities = hello->capabilities;
	pb->auth_token = pack_data(hello->auth_token);
	pb->request_id = hello->request_id;
	pb->connection_id = hello->connection_id;
	pb->pid = hello->pid;
	pb->library_name = pack_data(hello->library_name);
	pb->library_version = pack_data(hello->library_version);
	pb->keepalive_secs = hello->keepalive_secs;
	pb->queue = pack_data(hello->queue);
	pb->lane = pack_data(hello->lane);
}

enum baton_err wire_hello_encode(const struct wire_hello *hello, struct buf *out)
{
	Baton__Wire__Hello pb;
	convert_hello_out(hello, &pb);
	return pack(&pb.base, out);
}

/* Whether what it asks for can be asked for. */
static enum baton_err aim_check(const struct wire_hello *hello)
{
	if (hello->min_protocol > hello->max_protocol)
		return fail(BATON_INVALID, "a Hello for the protocols %u to %u",
		            (unsigned)hello->min_protocol, (unsigned)hello->max_protocol);
	if ((hello->queue.len > 0) != (hello->lane.len > 0))
		return fail(BATON_INVALID, "a Hello with a queue but no lane, or the reverse");
	if (hello->service.len > 0 && !wire_is_service(hello->service))
		return fail(BATON_INVALID,
		            "a Hello for a service whose name is not of 1 to %d of [a-z0-9-]",
		            WIRE_SERVICE_MAX);
	if (hello->service.len == 0 && hello->queue.len == 0)
		return fail(BATON_INVALID, "a Hello that names no service and no lane");
	return BATON_OK;
}

enum baton_err convert_hello_in(const Baton__Wire__Hello *pb, struct wire_hello *ret)
{
	struct wire_hello got = {
		.min_protocol = pb->min_protocol,
		.max_protocol = pb->max_protocol,
		.capabilities = pb->capabilities,
		.request_id = pb->request_id,
		.connection_id = pb->connection_id,
		.pid = pb->pid,
		.keepalive_secs = pb->keepalive_secs,
	};
	const struct {
		const char *what;
		ProtobufCBinaryData data;
		struct baton_str *ret;
	} texts[] = {
		{"service", pb->service, &got.service},
		{"wanted version", pb->wanted_version, &got.wanted_version},
		{"client version", pb->client_version, &got.client_version},
		{"library name", pb->library_name, &got.library_name},
		{"library version", pb->library_version, &got.library_version},
		{"queue", pb->queue, &got.queue},
		{"lane", pb->lane, &got.lane},
	};
	enum baton_err e =
		pack_bytes("an auth token", pb->auth_token, WIRE_SECRET_MAX, &got.auth_token);
	for (size_t i = 0; e == BATON_OK && i < sizeof texts / sizeof *texts; i++)
		e = pack_text(texts[i].what, texts[i].data, BATON_NAME_MAX, texts[i].ret);
	if (e == BATON_OK)
		e = aim_check(&got);
	if (e == BATON_OK)
		*ret = got;
	return e;
}

enum baton_err wire_hello_decode(struct baton_str bytes, struct arena *arena,
                                 struct wire_hello *ret)
{
	ProtobufCMessage *message;
	enum baton_err e = unpack(&baton__wire__hello__descriptor, "Hello", bytes, arena, &message);
	return e == BATON_OK ? convert_hello_in((const Baton__Wire__Hello *)message, ret) : e;
}
