/* What a broker tells about itself. */
#include "wire/admin.h"

#include "base/fail.h"
#include "wire/convert.h"
#include "wire/hello.h"

static Baton__Wire__Backend backend_out(const struct wire_backend *b)
{
	Baton__Wire__Backend pb = BATON__WIRE__BACKEND__INIT;
	pb.service = pack_data(b->service);
	pb.generation = b->generation;
	pb.pid = b->pid;
	pb.endpoint = pack_data(b->endpoint);
	pb.owner = pack_data(b->owner);
	pb.capabilities = b->capabilities;
	pb.pending = b->pending;
	pb.granted = b->granted;
	pb.failed = b->failed;
	pb.retry_after_ms = b->retry_after_ms;
	pb.current = b->current;
	pb.state = (uint32_t)b->state;
	pb.starts = b->starts;
	pb.commands = b->commands;
	return pb;
}

static bool backends_out(const struct wire_answer *a, struct arena *arena, Baton__Wire__Answer *pb)
{
	size_t n = a->backends_count;
	Baton__Wire__Backend *all = arena_take(arena, n + 1, sizeof *all);
	pb->backends = arena_take(arena, n + 1, sizeof(Baton__Wire__Backend *));
	if (!all || !pb->backends)
		return false;
	pb->n_backends = n;
	for (size_t i = 0; i < n; i++) {
		all[i] = backend_out(&a->backends[i]);
		pb->backends[i] = &all[i];
	}
	return true;
}

static bool counters_out(const struct wire_answer *a, struct arena *arena, Baton__Wire__Answer *pb)
{
	size_t n = a->counters_count;
	Baton__Wire__Counter *all = arena_take(arena, n + 1, sizeof *all);
	pb->counters = arena_take(arena, n + 1, sizeof(Baton__Wire__Counter *));
	if (!all || !pb->counters)
		return false;
	pb->n_counters = n;
	for (size_t i = 0; i < n; i++) {
		Baton__Wire__Counter init = BATON__WIRE__COUNTER__INIT;
		all[i] = init;
		all[i].name = pack_data(a->counters[i].name);
		all[i].value = a->counters[i].value;
		pb->counters[i] = &all[i];
	}
	return true;
}

static bool stored_out(const struct wire_answer *a, struct arena *arena, Baton__Wire__Answer *pb)
{
	Baton__Wire__Stored *all = arena_take(arena, a->stored_count + 1, sizeof *all);
	pb->stored = arena_take(arena, a->stored_count + 1, sizeof(Baton__Wire__Stored *));
	if (!all || !pb->stored)
		return false;
	pb->n_stored = a->stored_count;
	convert_stored_out(a->stored, a->stored_count, all, pb->stored);
	return true;
}

static enum baton_err answer_encode(const struct wire_answer *a, struct arena *arena,
                                    struct buf *out)
{
	Baton__Wire__Admin admin = BATON__WIRE__ADMIN__INIT;
	Baton__Wire__Answer pb = BATON__WIRE__ANSWER__INIT;
	if (a->backends_count > WIRE_BACKENDS_MAX || a->counters_count > WIRE_COUNTERS_MAX ||
	    a->stored_count > WIRE_STORED_MAX)
		return fail(BATON_FULL,
		            "%zu backends, %zu counters and %zu descriptors; %d, %d and %d are "
		            "allowed",
		            a->backends_count, a->counters_count, a->stored_count,
		            WIRE_BACKENDS_MAX, WIRE_COUNTERS_MAX, WIRE_STORED_MAX);
	pb.daemon_version = pack_data(a->daemon_version);
	pb.pid = a->pid;
	pb.latency_p50_ns = a->latency_p50_ns;
	pb.latency_p99_ns = a->latency_p99_ns;
	if (!backends_out(a, arena, &pb) || !counters_out(a, arena, &pb) ||
	    !stored_out(a, arena, &pb))
		return fail_memory(a->backends_count * sizeof(Baton__Wire__Backend), "an answer");
	admin.is_case = BATON__WIRE__ADMIN__IS_ANSWER;
	admin.answer = &pb;
	return pack(&admin.base, out);
}

enum baton_err wire_admin_encode(const struct wire_admin *message, struct arena *arena,
                                 struct buf *out)
{
	Baton__Wire__Admin admin = BATON__WIRE__ADMIN__INIT;
	Baton__Wire__Ask ask = BATON__WIRE__ASK__INIT;
	if (message->kind == WIRE_ANSWER)
		return answer_encode(&message->answer, arena, out);
	admin.is_case = BATON__WIRE__ADMIN__IS_ASK;
	admin.ask = &ask;
	return pack(&admin.base, out);
}

static enum baton_err backend_in(const Baton__Wire__Backend *pb, struct wire_backend *ret)
{
	ret->generation = pb->generation;
	ret->pid = pb->pid;
	ret->capabilities = pb->capabilities;
	ret->pending = pb->pending;
	ret->granted = pb->granted;
	ret->failed = pb->failed;
	ret->retry_after_ms = pb->retry_after_ms;
	ret->current = pb->current;
	ret->starts = pb->starts;
	ret->commands = pb->commands;
	if (pb->state > WIRE_SERVICE_GIVEN_UP)
		return fail(BATON_INVALID, "a service in a state %u that is not known", pb->state);
	ret->state = (enum wire_service_state)pb->state;
	enum baton_err e = pack_text("service", pb->service, WIRE_SERVICE_MAX, &ret->service);
	if (e == BATON_OK)
		e = pack_text("endpoint", pb->endpoint, WIRE_ENDPOINT_MAX, &ret->endpoint);
	return e == BATON_OK ? pack_text("owner", pb->owner, BATON_NAME_MAX, &ret->owner) : e;
}

static enum baton_err backends_in(const Baton__Wire__Answer *pb, struct arena *arena,
                                  struct wire_answer *ret)
{
	enum baton_err e = BATON_OK;
	if (pb->n_backends > WIRE_BACKENDS_MAX)
		return fail(BATON_INVALID, "%zu backends; %d are allowed", pb->n_backends,
		            WIRE_BACKENDS_MAX);
	struct wire_backend *backends = arena_take(arena, pb->n_backends + 1, sizeof *backends);
	if (!backends)
		return fail_memory(pb->n_backends * sizeof *backends, "backends");
	for (size_t i = 0; e == BATON_OK && i < pb->n_backends; i++)
		e = backend_in(pb->backends[i], &backends[i]);
	ret->backends = backends;
	ret->backends_count = pb->n_backends;
	return e;
}

static enum baton_err counters_in(const Baton__Wire__Answer *pb, struct arena *arena,
                                  struct wire_answer *ret)
{
	enum baton_err e = BATON_OK;
	if (pb->n_counters > WIRE_COUNTERS_MAX)
		return fail(BATON_INVALID, "%zu counters; %d are allowed", pb->n_counters,
		            WIRE_COUNTERS_MAX);
	struct wire_counter *counters = arena_take(arena, pb->n_counters + 1, sizeof *counters);
	if (!counters)
		return fail_memory(pb->n_counters * sizeof *counters, "counters");
	for (size_t i = 0; e == BATON_OK && i < pb->n_counters; i++) {
		counters[i].value = pb->counters[i]->value;
		e = pack_text("counter", pb->counters[i]->name, BATON_NAME_MAX, &counters[i].name);
	}
	ret->counters = counters;
	ret->counters_count = pb->n_counters;
	return e;
}

static enum baton_err answer_in(const Baton__Wire__Answer *pb, struct arena *arena,
                                struct wire_answer *ret)
{
	ret->pid = pb->pid;
	ret->latency_p50_ns = pb->latency_p50_ns;
	ret->latency_p99_ns = pb->latency_p99_ns;
	enum baton_err e = pack_text("daemon version", pb->daemon_version, BATON_NAME_MAX,
	                             &ret->daemon_version);
	if (e == BATON_OK)
		e = backends_in(pb, arena, ret);
	if (e == BATON_OK)
		e = counters_in(pb, arena, ret);
	ret->stored_count = pb->n_stored;
	return e == BATON_OK ? convert_stored_in(pb->stored, pb->n_stored, WIRE_STORED_MAX, arena,
	                                         &ret->stored)
	                     : e;
}

enum baton_err wire_admin_decode(struct baton_str bytes, struct arena *arena,
                                 struct wire_admin *ret)
{
	ProtobufCMessage *message;
	struct wire_admin got = {.kind = WIRE_ASK};
	enum baton_err e = unpack(&baton__wire__admin__descriptor, "message to a broker", bytes,
	                          arena, &message);
	if (e != BATON_OK)
		return e;
	const Baton__Wire__Admin *pb = (const Baton__Wire__Admin *)message;
	if (pb->is_case == BATON__WIRE__ADMIN__IS_ANSWER && pb->answer) {
		got.kind = WIRE_ANSWER;
		e = answer_in(pb->answer, arena, &got.answer);
	} else if (pb->is_case != BATON__WIRE__ADMIN__IS_ASK) {
		e = fail(BATON_INVALID, "a message to a broker of an unknown kind");
	}
	if (e == BATON_OK)
		*ret = got;
	return e;
}
