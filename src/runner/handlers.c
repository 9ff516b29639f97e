/* The handlers of a runner, whichever kind they are of. */
#include "runner/handlers.h"

#include "base/fail.h"
#include "store/store.h"

static const struct baton_handler *handler_of(const struct handlers *h)
{
	return &h->o.settings->o.handler;
}

static enum baton_err open_commands(struct handlers *h)
{
	const struct commands_options options = {
		.alloc = h->o.alloc,
		.handler = handler_of(h),
		.beside = h->beside,
		.lock = h->o.settings->o.store->lock_path,
		.lock_at = h->o.settings->o.store->lock_at,
		.awake = h->o.clock == baton_clock_awake(),
		.stopped = h->o.stopped,
		.said = h->o.said,
		.cut = h->o.cut,
		.left = h->o.left,
		.arg = h->o.arg,
	};
	return commands_init(&h->commands, &options);
}

static enum baton_err open_streams(struct handlers *h)
{
	const struct streams_options options = {
		.alloc = h->o.alloc,
		.handler = handler_of(h),
		.wards = h->commands.wards,
		.processes = h->o.settings->processes,
		.in_flight = handler_of(h)->in_flight,
		.visits =
			h->o.settings->o.connections.wanted ? h->o.settings->o.connections.max : 0,
		.log = h->o.settings->o.log,
		.stopped = h->o.stopped,
		.more = h->o.more,
		.ended = h->o.ended,
		.left = h->o.left,
		.arg = h->o.arg,
	};
	return streams_init(&h->streams, &options);
}

static enum baton_err open_guarded(struct handlers *h)
{
	enum baton_err e = open_commands(h);
	return e == BATON_OK && h->kind == HANDLERS_STREAMS ? open_streams(h) : e;
}

static enum baton_err open_calls(struct handlers *h)
{
	const struct calls_options options = {
		.alloc = h->o.alloc,
		.handler = handler_of(h),
		.inbox = h->o.inbox,
		.alarm = &h->alarm,
		.slots = h->o.settings->o.slots,
		.clock = h->o.clock,
	};
	bool armed = handler_of(h)->overtime == BATON_OVERTIME_ABORT;
	enum baton_err e = alarm_init(&h->alarm, h->o.clock, h->o.settings->o.log, armed);
	return e == BATON_OK ? calls_init(&h->calls, &options) : e;
}

enum baton_err handlers_init(struct handlers *h, const struct handlers_options *options)
{
	h->o = *options;
	const struct baton_handler *handler = handler_of(h);
	h->kind = !handler->command ? HANDLERS_CALLS
	          : handler->stream ? HANDLERS_STREAMS
	                            : HANDLERS_COMMANDS;
	if (h->kind == HANDLERS_CALLS)
		return open_calls(h);
	enum baton_err e = beside_find(options->settings->o.store, h->beside);
	return e == BATON_OK ? open_guarded(h) : e;
}

void handlers_done(struct handlers *h)
{
	calls_done(&h->calls);
	alarm_done(&h->alarm);
	streams_done(&h->streams);
	commands_done(&h->commands);
}

void handlers_start(struct handlers *h, uint64_t run, const struct baton_work_claim *claim)
{
	enum baton_err e = BATON_OK;
	switch (h->kind) {
	case HANDLERS_CALLS:
		e = calls_start(&h->calls, run, claim);
		break;
	case HANDLERS_COMMANDS:
		e = commands_start(&h->commands, run, claim);
		break;
	case HANDLERS_STREAMS:
		streams_start(&h->streams, run, claim);
		break;
	}
	if (e == BATON_OK)
		return;
	const struct baton_work_end end = {
		.how = e == BATON_GONE ? BATON_ABANDON : BATON_FAIL,
		.error = baton_str_z(baton_err_detail()),
	};
	h->o.ended(h->o.arg, run, &end);
}

void handlers_stop(struct handlers *h, uint64_t run, struct baton_mono now)
{
	switch (h->kind) {
	case HANDLERS_CALLS:
		calls_stop(&h->calls, run);
		break;
	case HANDLERS_COMMANDS:
		wards_stop(h->commands.wards, run, false);
		break;
	case HANDLERS_STREAMS:
		streams_stop(&h->streams, run, now);
		break;
	}
}

bool handlers_more(struct handlers *h, uint64_t run, const struct baton_work_claim *claim)
{
	switch (h->kind) {
	case HANDLERS_CALLS:
		return calls_more(&h->calls, run, claim);
	case HANDLERS_COMMANDS:
		break;
	case HANDLERS_STREAMS:
		return streams_more(&h->streams, run, claim);
	}
	return false;
}

int handlers_fd(const struct handlers *h)
{
	switch (h->kind) {
	case HANDLERS_CALLS:
		return -1;
	case HANDLERS_COMMANDS:
		return wards_fd(h->commands.wards);
	case HANDLERS_STREAMS:
		return streams_fd(&h->streams);
	}
	return -1;
}

static void hear_commands(struct handlers *h)
{
	struct commands_news news;
	while (commands_next(&h->commands, &news))
		h->o.ended(h->o.arg, news.run, &news.end);
}

void handlers_hear(struct handlers *h, struct baton_mono now)
{
	switch (h->kind) {
	case HANDLERS_CALLS:
		break;
	case HANDLERS_COMMANDS:
		hear_commands(h);
		break;
	case HANDLERS_STREAMS:
		streams_hear(&h->streams, now);
		break;
	}
}

void handlers_act(struct handlers *h, struct baton_mono now)
{
	switch (h->kind) {
	case HANDLERS_CALLS:
		calls_act(&h->calls, now);
		break;
	case HANDLERS_COMMANDS:
		break;
	case HANDLERS_STREAMS:
		streams_act(&h->streams, now);
		break;
	}
}

struct baton_mono handlers_due(const struct handlers *h)
{
	switch (h->kind) {
	case HANDLERS_CALLS:
		return h->calls.due;
	case HANDLERS_COMMANDS:
		break;
	case HANDLERS_STREAMS:
		return streams_due(&h->streams);
	}
	return BATON_MONO_NEVER;
}

bool handlers_progressed(struct handlers *h)
{
	switch (h->kind) {
	case HANDLERS_CALLS:
		return calls_progressed(&h->calls);
	case HANDLERS_COMMANDS:
		break;
	case HANDLERS_STREAMS:
		return streams_progressed(&h->streams);
	}
	return false;
}

void handlers_progress(struct handlers *h, struct buf *report)
{
	switch (h->kind) {
	case HANDLERS_CALLS:
		calls_progress(&h->calls, report);
		break;
	case HANDLERS_COMMANDS:
		break;
	case HANDLERS_STREAMS:
		streams_progress(&h->streams, report);
		break;
	}
}

int32_t handlers_guardian(const struct handlers *h)
{
	return h->commands.wards ? wards_pid(h->commands.wards) : 0;
}

struct baton_str handlers_life(const struct handlers *h)
{
	return baton_str_z(h->commands.life);
}

bool handlers_are_lost(const struct handlers *h)
{
	return h->commands.lost || h->streams.lost;
}

bool handlers_are_gone(const struct handlers *h)
{
	return !h->commands.wards || wards_are_gone(h->commands.wards);
}

uint64_t handlers_starts(const struct handlers *h)
{
	return h->starts + h->streams.wards;
}

uint64_t handlers_restarts(const struct handlers *h)
{
	return h->restarts + h->streams.again;
}

enum baton_err handlers_renew(struct handlers *h)
{
	h->starts = handlers_starts(h);
	h->restarts = handlers_restarts(h);
	h->streams.wards = h->streams.again = 0;
	streams_done(&h->streams);
	commands_done(&h->commands);
	return open_guarded(h);
}

void handlers_deadline(struct handlers *h, struct baton_mono at)
{
	if (h->kind == HANDLERS_CALLS)
		alarm_set(&h->alarm, at);
	else if (h->commands.wards)
		wards_deadline(h->commands.wards, at);
}

void handlers_leave(struct handlers *h)
{
	if (h->kind == HANDLERS_STREAMS)
		streams_leave(&h->streams);
}

uint32_t handlers_left(const struct handlers *h)
{
	return h->kind == HANDLERS_STREAMS ? h->streams.live : 0;
}
