/* Handlers that are commands, under a guardian. */
#include "runner/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include <baton/backend.h>
#include <baton/client.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fail.h"
#include "runner/beside.h"
#include "runner/payload.h"

#define GRACE_MS 5000
#define VARIABLES 8
#define VISIT_VARIABLES 8 /* of what serves a connection, at most */
#define VARIABLE_MAX (BATON_TRACE_MAX + 64)
#define LINES_MAX (UINT64_C(1) << 30)

enum baton_err commands_init(struct commands *c, const struct commands_options *options)
{
	*c = (struct commands){.o = *options};
	enum baton_err e = beside_life(options->beside, c->life);
	const struct wards_ask ask = {
		.life = c->life,
		.helper = options->handler->guardian,
		.lock = options->lock,
		.lock_at = options->lock_at,
		.awake = options->awake,
		.alloc = options->alloc,
	};
	return e == BATON_OK ? wards_open(&ask, &c->wards) : e;
}

void commands_done(struct commands *c)
{
	wards_close(c->wards);
	c->wards = NULL;
}

static bool is_raw(const struct commands *c, const struct baton_work_claim *claim)
{
	return !c->o.handler->json && claim->count == 1 && claim->batches[0].count == 1;
}

struct environment {
	char texts[VARIABLES][VARIABLE_MAX];
	char keys[sizeof "BATON_KEY=" + (size_t)BATON_KEYS_MAX * (BATON_NAME_MAX + 1)];
	char *env[VARIABLES + 2];
};

/* Several have a line each. */
static void keys_make(struct environment *e, const struct baton_work_claim *claim)
{
	char *at = stpcpy(e->keys, "BATON_KEY=");
	for (size_t i = 0; i < claim->key_count; i++) {
		if (i > 0)
			*at++ = '\n';
		memcpy(at, claim->keys[i].ptr, claim->keys[i].len);
		at += claim->keys[i].len;
	}
	*at = '\0';
}

static void environment_make(struct environment *e, const struct baton_work_claim *claim)
{
	const struct baton_work_batch *first = &claim->batches[0];
	snprintf(e->texts[0], VARIABLE_MAX, "BATON_QUEUE=%.*s", (int)claim->queue.len,
	         claim->queue.ptr);
	snprintf(e->texts[1], VARIABLE_MAX, "BATON_LANE=%.*s", (int)claim->lane.len,
	         claim->lane.len > 0 ? claim->lane.ptr : "");
	snprintf(e->texts[2], VARIABLE_MAX, "BATON_CLAIM=%s", claim->proof.id);
	snprintf(e->texts[3], VARIABLE_MAX, "BATON_FENCE=%" PRIu64, claim->fence.v);
	snprintf(e->texts[4], VARIABLE_MAX, "BATON_ATTEMPT=%" PRIu32, first->attempt);
	snprintf(e->texts[5], VARIABLE_MAX, "BATON_SEQ=%" PRIu64, first->seq);
	snprintf(e->texts[6], VARIABLE_MAX, "BATON_JOB=%s", first->id.text);
	snprintf(e->texts[7], VARIABLE_MAX, "BATON_JOBS=%zu", claim->count);
	for (size_t i = 0; i < VARIABLES; i++)
		e->env[i] = e->texts[i];
	keys_make(e, claim);
	e->env[VARIABLES] = e->keys;
	e->env[VARIABLES + 1] = NULL;
}

struct baton_duration commands_grace(const struct baton_handler *handler)
{
	return handler->grace.ns > 0 ? handler->grace : baton_duration_ms(GRACE_MS);
}

/* How long a run may take: until its timeout, or as long as it may hold its key. */
static struct baton_duration run_time(struct baton_duration timeout, struct baton_duration hold)
{
	bool holds = hold.ns > 0 && (timeout.ns == 0 || hold.ns < timeout.ns);
	return holds ? hold : timeout;
}

enum baton_err commands_start(struct commands *c, uint64_t run,
                              const struct baton_work_claim *claim)
{
	AUTO(buf_done) struct buf lines;
	struct environment environment = {.env = {NULL}};
	const struct baton_handler *h = c->o.handler;
	buf_init(&lines, c->o.alloc, LINES_MAX);
	struct baton_str input = claim->batches[0].payloads[0];
	if (!is_raw(c, claim)) {
		enum baton_err e = payload_lines(&lines, claim);
		if (e != BATON_OK)
			return e;
		input = buf_str(&lines);
	}
	environment_make(&environment, claim);
	const struct ward_spec spec = {
		.id = run,
		.argv = h->command,
		.env = environment.env,
		.input = &input,
		.inputs = 1,
		.channel = -1,
		.timeout = run_time(h->timeout, claim->hold),
		.grace = commands_grace(h),
		.output_max = BATON_RESULT_MAX,
	};
	return wards_start(c->wards, &spec);
}

static void visit_environment(struct environment *e, const struct baton_connection *c,
                              baton_fence fence)
{
	snprintf(e->texts[0], VARIABLE_MAX, "BATON_QUEUE=%.*s", (int)c->queue.len, c->queue.ptr);
	snprintf(e->texts[1], VARIABLE_MAX, "BATON_LANE=%.*s", (int)c->lane.len, c->lane.ptr);
	snprintf(e->texts[2], VARIABLE_MAX, "BATON_FENCE=%" PRIu64, fence.v);
	snprintf(e->texts[3], VARIABLE_MAX, "BATON_CONNECTION=%" PRIu64, c->id);
	snprintf(e->texts[4], VARIABLE_MAX, "BATON_CLIENT_PID=%" PRId32, c->pid);
	snprintf(e->texts[5], VARIABLE_MAX, "BATON_CLIENT_UID=%" PRIu32, c->uid);
	size_t count = VISIT_VARIABLES - 2;
	if (c->traceparent.len > 0)
		snprintf(e->texts[count++], VARIABLE_MAX, "TRACEPARENT=%.*s",
		         (int)c->traceparent.len, c->traceparent.ptr);
	if (c->tracestate.len > 0)
		snprintf(e->texts[count++], VARIABLE_MAX, "TRACESTATE=%.*s", (int)c->tracestate.len,
		         c->tracestate.ptr);
	for (size_t i = 0; i < count; i++)
		e->env[i] = e->texts[i];
	e->env[count] = NULL;
}

enum baton_err commands_serve(struct commands *c, uint64_t visit,
                              const struct baton_connection *connection, baton_fence fence)
{
	struct environment environment = {.env = {NULL}};
	visit_environment(&environment, connection, fence);
	const struct ward_spec spec = {
		.id = visit,
		.argv = c->o.handler->command,
		.env = environment.env,
		.channel = connection->fd,
		.grace = commands_grace(c->o.handler),
		.output_said = true,
	};
	return wards_start(c->wards, &spec);
}

void commands_stop(struct commands *c, uint64_t id)
{
	wards_stop(c->wards, id, false);
}

/* What a command's end means; `stopped`: this runner asked for it. Whoever kills a guardian may do
 * so each time: those that ran under it have failed, as with a runner that is killed. */
static enum baton_work_how how_of(const struct ward_news *news, bool stopped, bool lost)
{
	if (news->how == WARD_UNSTARTED && news->code == ECANCELED)
		return BATON_ABANDON;
	if (news->how == WARD_EXITED && news->code == EX_OK)
		return BATON_COMPLETE;
	if (news->how == WARD_EXITED && news->code == EX_DATAERR)
		return BATON_REJECT;
	return stopped && !news->timed_out && !lost ? BATON_ABANDON : BATON_FAIL;
}

void commands_why(const struct ward_news *news, const struct baton_handler *handler, char *text,
                  size_t max)
{
	char span[BATON_DURATION_TEXT];
	bool held = handler->timeout.ns == 0 || news->timeout.ns < handler->timeout.ns;
	if (news->timed_out)
		snprintf(text, max, held ? "it held its key for %s" : "it took longer than %s",
		         baton_duration_print(news->timeout, span));
	else if (news->how == WARD_UNSTARTED)
		snprintf(text, max, "'%.200s' cannot be executed: %s", handler->command[0],
		         strerror(news->code));
	else if (news->how == WARD_SIGNALED)
		snprintf(text, max, "it was ended by signal %d (%s)", news->code,
		         strsignal(news->code));
	else
		snprintf(text, max, "it ended with status %d", news->code);
}

static void said(const struct commands *c, const struct ward_news *news)
{
	if (c->o.said)
		c->o.said(c->o.arg, news->id, news->text);
}

bool commands_next(struct commands *c, struct commands_news *ret)
{
	struct ward_news news;
	while (wards_next(c->wards, &news)) {
		switch (news.kind) {
		case WARD_BEGUN:
			break;
		case WARD_SAID:
			said(c, &news);
			break;
		case WARD_GUARDIAN_LOST:
			c->lost = true;
			break;
		case WARD_ENDED:
			if (news.id & COMMANDS_VISIT) {
				c->o.left(c->o.arg, news.id);
				break;
			}
			*ret = (struct commands_news){
				.run = news.id,
				.end = {.result = news.text},
			};
			ret->end.how = how_of(&news, c->o.stopped(c->o.arg, news.id), c->lost);
			if (news.cut && ret->end.how == BATON_COMPLETE && c->o.cut)
				c->o.cut(c->o.arg, news.id);
			if (ret->end.how != BATON_COMPLETE) {
				ret->end.result = (struct baton_str){NULL, 0};
				commands_why(&news, c->o.handler, c->why, sizeof c->why);
				ret->end.error = baton_str_z(c->why);
			}
			return true;
		}
	}
	return false;
}
