/* What a backend has the broker keep. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "handoff/backend.h"
#include "handoff/talk.h"

/* Waits for the answer to a question; whatever else comes is dealt with. Its descriptor, or -1, is
 * the caller's. */
static enum baton_err answer_await(struct baton_backend *b, uint64_t correlation,
                                   struct packet *ret)
{
	struct baton_mono until = baton_mono_add(backend_now(b), baton_duration_ms(BACKEND_ANSWER_MS));
	while (b->channel >= 0) {
		struct pollfd p = {.fd = b->channel, .events = POLLIN};
		arena_reset(&b->arena);
		enum packet_got got = packet_receive(b->channel, b->room, &b->arena, ret);
		if (got == PACKET_DONE && ret->message.kind == WIRE_KEPT &&
		    ret->message.is.kept.correlation == correlation)
			return BATON_OK;
		if (got == PACKET_DONE) {
			offers_take(b, ret);
			/* It is a guest's, or closed. */
			ret->fd = -1;
			continue;
		}
		if (got != PACKET_NOT_NOW)
			offers_refuse(b, got, ret);
		else if (talk_patience_ms(until) == 0)
			break;
		else
			poll(&p, 1, talk_patience_ms(until));
	}
	if (b->channel < 0)
		return fail(BATON_NOT_FOUND, "the broker has gone");
	/* What it may still send could be taken for the answer to another question. */
	offers_lose(b);
	return fail(BATON_TIMEOUT, "the broker does not answer");
}

static enum baton_err result_of(const struct wire_kept *kept)
{
	static const enum baton_err errors[] = {
		[WIRE_KEPT_DONE] = BATON_OK,        [WIRE_KEPT_NONE] = BATON_NOT_FOUND,
		[WIRE_KEPT_THERE] = BATON_CONFLICT, [WIRE_KEPT_FULL] = BATON_FULL,
		[WIRE_KEPT_WRONG] = BATON_INVALID,  [WIRE_KEPT_BUSY] = BATON_BUSY,
	};
	if (kept->result == WIRE_KEPT_DONE)
		return BATON_OK;
	return fail(errors[kept->result], "the broker says: %.*s", (int)kept->detail.len,
	            kept->detail.ptr ? kept->detail.ptr : "");
}

/* Asks the broker about what it keeps. After BATON_OK what *ret points to is in the arena. */
static enum baton_err ask(struct baton_backend *b, struct wire_keep keep, int fd,
                          struct packet *ret)
{
	keep.correlation = ++b->questions;
	const struct wire_handoff m = {.kind = WIRE_KEEP, .is.keep = keep};
	if (keep.name.len > WIRE_STORED_NAME_MAX)
		return fail(BATON_INVALID, "a name of %zu bytes; %d are allowed", keep.name.len,
		            WIRE_STORED_NAME_MAX);
	if (b->channel < 0)
		return fail(BATON_NOT_FOUND, "there is no broker now");
	enum packet_got got = packet_send(b->channel, &m, fd);
	if (got == PACKET_NOT_NOW || got == PACKET_FAILED)
		return fail(BATON_TIMEOUT, "the broker does not listen");
	if (got != PACKET_DONE)
		return fail_errno(errno, "the broker cannot be asked");
	enum baton_err e = answer_await(b, keep.correlation, ret);
	/* Who came meanwhile is not at the channel any more. */
	if (links_empty(&b->ready))
		backend_timer_set(b);
	else
		backend_timer_at(b, 0);
	return e == BATON_OK ? result_of(&ret->message.is.kept) : e;
}

enum baton_err baton_backend_put(struct baton_backend *backend, struct baton_str name, int fd,
                                 struct baton_duration ttl)
{
	struct packet answer = {.fd = -1};
	if (ttl.ns <= 0)
		return fail(BATON_INVALID, "a descriptor cannot be kept for no time");
	const struct wire_keep keep = {
		.verb = WIRE_PUT,
		.name = name,
		.ttl_ms = ttl.ns == INT64_MAX ? 0 : (uint64_t)(ttl.ns - 1) / 1000000 + 1,
	};
	if (fd < 0)
		return fail(BATON_INVALID, "%d is no descriptor", fd);
	enum baton_err e = ask(backend, keep, fd, &answer);
	fd_closep(&answer.fd);
	return e;
}

enum baton_err baton_backend_take(struct baton_backend *backend, struct baton_str name, int *ret_fd)
{
	struct packet answer = {.fd = -1};
	const struct wire_keep keep = {.verb = WIRE_TAKE, .name = name};
	enum baton_err e = ask(backend, keep, -1, &answer);
	if (e == BATON_OK && answer.fd < 0) {
		offers_lose(backend);
		e = fail(BATON_NOT_FOUND, "the broker sent no descriptor");
	}
	if (e != BATON_OK) {
		fd_closep(&answer.fd);
		return e;
	}
	const struct wire_handoff m = {.kind = WIRE_KEEP,
	                               .is.keep = {.verb = WIRE_TAKEN, .name = name}};
	enum packet_got got = packet_send(backend->channel, &m, -1);
	/* If it does not hear of it, the channel ends, and it keeps a copy for the next. */
	if (got != PACKET_DONE)
		offers_lose(backend);
	if (got != PACKET_DONE && got != PACKET_HUNG_UP) {
		fd_closep(&answer.fd);
		return fail(BATON_TIMEOUT, "the broker cannot be told that it arrived");
	}
	*ret_fd = answer.fd;
	return BATON_OK;
}

enum baton_err baton_backend_list(struct baton_backend *backend, struct baton_stored *all,
                                  size_t *ret_count)
{
	struct packet answer = {.fd = -1};
	enum baton_err e = ask(backend, (struct wire_keep){.verb = WIRE_LIST}, -1, &answer);
	fd_closep(&answer.fd);
	if (e != BATON_OK)
		return e;
	const struct wire_kept *kept = &answer.message.is.kept;
	for (size_t i = 0; i < kept->stored_count; i++) {
		const struct wire_stored *s = &kept->stored[i];
		all[i] = (struct baton_stored){
			.left = s->left_ms == 0 ? BATON_DURATION_FOREVER
		                                : baton_duration_ms((int64_t)s->left_ms)};
		memcpy(all[i].name, s->name.ptr, s->name.len);
	}
	*ret_count = kept->stored_count;
	return BATON_OK;
}
