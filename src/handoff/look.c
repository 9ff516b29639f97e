/* Asks a broker about itself. */
#include <sys/socket.h>

#include <baton/broker.h>
#include <baton/clock.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "base/mem.h"
#include "handoff/site.h"
#include "handoff/talk.h"
#include "wire/admin.h"
#include "wire/handoff.h"
#include "wire/hello.h"

struct report {
	struct baton_broker_status status; /* the first, so that one leads to the other */
	struct arena arena;
};

void baton_broker_status_free(struct baton_broker_status *status)
{
	struct report *r = (struct report *)status;
	if (!r)
		return;
	arena_done(&r->arena);
	mem_free(baton_alloc_libc(), r, 1, sizeof *r);
}

static void report_freep(struct report **report)
{
	if (*report)
		baton_broker_status_free(&(*report)->status);
}

static enum baton_err question_send(int fd, struct arena *arena, struct baton_mono until)
{
	AUTO(buf_done) struct buf payload;
	AUTO(buf_done) struct buf frame;
	const struct wire_admin ask = {.kind = WIRE_ASK};
	buf_init(&payload, baton_alloc_libc(), WIRE_HELLO_MAX);
	buf_init(&frame, baton_alloc_libc(), WIRE_HELLO_MAX);
	enum baton_err e = wire_admin_encode(&ask, arena, &payload);
	const struct wire_envelope envelope = {.kind = WIRE_REQUEST,
	                                       .protocol = WIRE_ADMIN,
	                                       .payload = buf_str(&payload)};
	if (e == BATON_OK)
		e = wire_frame_encode(&envelope, &frame);
	return e == BATON_OK ? talk_send(fd, buf_str(&frame), until) : e;
}

/* What it means that the broker answered as it answers a Hello: it does not want to be asked. */
static enum baton_err refused(const struct wire_envelope *envelope, struct arena *arena)
{
	struct wire_reply reply = {.kind = WIRE_REFUSED};
	enum baton_err e = wire_reply_decode(envelope->payload, arena, &reply);
	if (e != BATON_OK)
		return e;
	if (reply.kind != WIRE_REFUSED)
		return fail(BATON_INVALID, "the broker answered something else");
	const struct wire_refused *r = &reply.refused;
	return fail(r->retry_after_ms > 0 ? BATON_BUSY : BATON_INVALID, "the broker says: %.*s",
	            (int)r->reason.len, r->reason.ptr);
}

static enum baton_err answer_receive(int fd, struct arena *arena, struct baton_mono until,
                                     struct wire_admin *ret)
{
	struct wire_envelope envelope;
	enum baton_err e = talk_receive(fd, WIRE_FRAME_MAX, until, arena, &envelope, NULL);
	if (e == BATON_GONE)
		return fail(BATON_NOT_FOUND, "the broker has ended");
	if (e == BATON_OK && envelope.protocol == WIRE_HELLO)
		return refused(&envelope, arena);
	if (e == BATON_OK && envelope.protocol != WIRE_ADMIN)
		return fail(BATON_INVALID, "the broker answered something else");
	if (e == BATON_OK)
		e = wire_admin_decode(envelope.payload, arena, ret);
	if (e == BATON_OK && ret->kind != WIRE_ANSWER)
		return fail(BATON_INVALID, "the broker answered something else");
	return e;
}

static struct baton_broker_backend backend_of(const struct wire_backend *w)
{
	return (struct baton_broker_backend){
		.service = w->service,
		.endpoint = w->endpoint,
		.owner = w->owner,
		.generation = w->generation,
		.pid = (int32_t)w->pid,
		.current = w->current,
		.takes = (w->capabilities & WIRE_TAKES_CONNECTIONS) != 0,
		.repeatable = (w->capabilities & WIRE_IS_REPEATABLE) != 0,
		.adopted = (w->capabilities & WIRE_IS_ADOPTED) != 0,
		.pending = w->pending,
		.granted = w->granted,
		.failed = w->failed,
		.retry_after = baton_duration_ms((int64_t)w->retry_after_ms),
		.command = (w->capabilities & WIRE_IS_COMMAND) != 0,
		.fd3 = (w->capabilities & WIRE_IS_FD3) != 0,
		.state = (enum baton_broker_service_state)w->state,
		.starts = w->starts,
		.commands = w->commands,
	};
}

static enum baton_err status_fill(struct report *r, const struct wire_answer *a)
{
	struct baton_broker_backend *backends =
		arena_take(&r->arena, a->backends_count + 1, sizeof *backends);
	struct baton_broker_counter *counters =
		arena_take(&r->arena, a->counters_count + 1, sizeof *counters);
	struct baton_broker_stored *stored =
		arena_take(&r->arena, a->stored_count + 1, sizeof *stored);
	if (!backends || !counters || !stored)
		return fail_memory(a->backends_count * sizeof *backends, "what a broker says");
	for (size_t i = 0; i < a->backends_count; i++)
		backends[i] = backend_of(&a->backends[i]);
	for (size_t i = 0; i < a->counters_count; i++)
		counters[i] =
			(struct baton_broker_counter){a->counters[i].name, a->counters[i].value};
	for (size_t i = 0; i < a->stored_count; i++)
		stored[i] = (struct baton_broker_stored){
			a->stored[i].service, a->stored[i].name,
			a->stored[i].left_ms == 0
				? BATON_DURATION_FOREVER
				: baton_duration_ms((int64_t)a->stored[i].left_ms)};
	r->status = (struct baton_broker_status){
		.version = a->daemon_version,
		.pid = (int32_t)a->pid,
		.backends = backends,
		.backends_count = a->backends_count,
		.counters = counters,
		.counters_count = a->counters_count,
		.stored = stored,
		.stored_count = a->stored_count,
		.latency_p50 = {(int64_t)a->latency_p50_ns},
		.latency_p99 = {(int64_t)a->latency_p99_ns},
	};
	return BATON_OK;
}

static enum baton_err look(const struct site *site, struct baton_mono until, struct report *r)
{
	AUTO(fd_closep) int fd = -1;
	char path[SITE_PATH_MAX + 1];
	struct wire_admin answer = {.kind = WIRE_ANSWER};
	site_path(site, SITE_CLIENTS, path);
	enum baton_err e = site_connect(path, SOCK_STREAM, talk_patience_ms(until), &fd);
	if (e == BATON_OK)
		e = question_send(fd, &r->arena, until);
	/* Even if it did not take the question, it may have said why. */
	if (e == BATON_OK || e == BATON_GONE)
		e = answer_receive(fd, &r->arena, until, &answer);
	return e == BATON_OK ? status_fill(r, &answer.answer) : e;
}

enum baton_err baton_broker_look(const char *folder, struct baton_duration wait,
                                 struct baton_broker_status **ret)
{
	const struct baton_clock *clock = baton_clock_boot();
	struct baton_mono until = baton_mono_add(clock->now(clock), wait);
	struct site site;
	AUTO(report_freep) struct report *r = mem_new(baton_alloc_libc(), 1, sizeof *r);
	if (!r)
		return fail_memory(sizeof *r, "what a broker says");
	arena_init(&r->arena, baton_alloc_libc());
	enum baton_err e = site_find(folder, &site);
	if (e == BATON_OK)
		e = site_check(&site, false);
	if (e == BATON_OK)
		e = look(&site, until, r);
	if (e != BATON_OK)
		return e;
	*ret = &TAKE(r)->status;
	return BATON_OK;
}
