/* What a runner was asked to be. */
#include "runner/settings.h"

#include <assert.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/fail.h"
#include "guardian/wards.h"
#include "runner/ticker.h"
#include "store/store.h"

#define SLOTS_PER_PROCESSOR 4

static_assert(BATON_RUNNER_SERVES_MAX <= CORE_QUEUES_MAX, "the core has room for all queues");

static enum baton_err check_serves(const struct baton_runner_options *o)
{
	size_t min = o->singleton_count > 0 || o->schedules ? 0 : 1;
	if (o->serve_count < min || o->serve_count > BATON_RUNNER_SERVES_MAX)
		return fail(BATON_INVALID, "%zu queues: 1 to %d are allowed", o->serve_count,
		            BATON_RUNNER_SERVES_MAX);
	for (size_t i = 0; i < o->serve_count; i++) {
		const struct baton_serve *s = &o->serves[i];
		if (s->weight > BATON_RUNNER_WEIGHT_MAX)
			return fail(BATON_INVALID,
			            "the weight of a queue is %" PRIu32 ": at most %d", s->weight,
			            BATON_RUNNER_WEIGHT_MAX);
		if (s->join > BATON_JOIN_MAX)
			return fail(BATON_INVALID,
			            "%" PRIu32 " jobs in one claim: at most %d are allowed",
			            s->join, BATON_JOIN_MAX);
		for (size_t k = 0; k < i; k++) {
			if (baton_str_equal(o->serves[k].queue, s->queue))
				return fail(BATON_INVALID, "queue '%.*s' is named twice",
				            (int)s->queue.len, s->queue.ptr);
		}
	}
	return BATON_OK;
}

static enum baton_err check_times(const struct baton_runner_options *o)
{
	char ttl[BATON_DURATION_TEXT], beat[BATON_DURATION_TEXT], margin[BATON_DURATION_TEXT];
	if (o->beat.ns > 0 && o->margin.ns > 0 && o->beat.ns <= INT64_MAX / 4 &&
	    o->ask.ttl.ns / 3 >= o->beat.ns && o->ask.ttl.ns - 3 * o->beat.ns >= o->margin.ns)
		return BATON_OK;
	return fail(
		BATON_INVALID,
		"ttl is %s: it has to be at least three beats of %s and a margin of %s, so make "
		"it longer, or those shorter",
		baton_duration_print(o->ask.ttl, ttl), baton_duration_print(o->beat, beat),
		baton_duration_print(o->margin, margin));
}

static enum baton_err check_singleton(const struct baton_singleton *s)
{
	struct baton_str name;
	enum baton_err e = baton_str_name("singleton's name", s->name.ptr, s->name.len,
	                                  BATON_SINGLETON_NAME_MAX, &name);
	if (e != BATON_OK)
		return e;
	if (baton_str_equal(s->name, BATON_STR(TICKER_NAME)))
		return fail(BATON_INVALID, "the singleton '" TICKER_NAME
		                           "' is the one that puts what schedules have due");
	if (s->command ? s->call != NULL || !s->command[0] : !s->call)
		return fail(BATON_INVALID, "a singleton is either a command or a function");
	if (!s->command && s->overtime != BATON_OVERTIME_ABORT &&
	    s->overtime != BATON_OVERTIME_FENCED)
		return fail(BATON_INVALID, "a function as singleton needs its overtime to be said");
	return BATON_OK;
}

static enum baton_err check_singletons(const struct baton_runner_options *o)
{
	if (o->singleton_count > BATON_SINGLETONS_MAX)
		return fail(BATON_INVALID, "%zu singletons: at most %d are allowed",
		            o->singleton_count, BATON_SINGLETONS_MAX);
	for (size_t i = 0; i < o->singleton_count; i++) {
		const struct baton_singleton *s = &o->singletons[i];
		enum baton_err e = check_singleton(s);
		if (e != BATON_OK)
			return e;
		for (size_t k = 0; k < i; k++) {
			if (baton_str_equal(o->singletons[k].name, s->name))
				return fail(BATON_INVALID, "singleton '%.*s' is named twice",
				            (int)s->name.len, s->name.ptr);
		}
	}
	return BATON_OK;
}

static enum baton_err check_handler(const struct baton_handler *h)
{
	if (h->command ? h->call != NULL || !h->command[0] : !h->call)
		return fail(BATON_INVALID, "a handler is either a command or a function");
	if (!h->command && h->overtime != BATON_OVERTIME_ABORT &&
	    h->overtime != BATON_OVERTIME_FENCED)
		return fail(BATON_INVALID, "a function as handler needs its overtime to be said");
	if (h->command && (h->on_loop || h->cancel))
		return fail(BATON_INVALID, "only functions are called on the loop, or to cancel");
	if (h->stream && (!h->command || h->json))
		return fail(BATON_INVALID, "a persistent worker is a command, without lines on its "
		                           "standard input");
	if (h->in_flight > 0 && !h->stream)
		return fail(BATON_INVALID, "only a persistent worker has several claims in flight");
	return BATON_OK;
}

static enum baton_err check_slots(const struct baton_runner_options *o)
{
	const struct baton_handler *h = &o->handler;
	if (h->command && o->slots > WARDS_MAX)
		return fail(BATON_INVALID, "%" PRIu32 " %s at once: at most %d are allowed",
		            o->slots, h->stream ? "persistent workers" : "commands", WARDS_MAX);
	if (o->slots > BATON_RUNNER_SLOTS_MAX)
		return fail(BATON_INVALID, "%" PRIu32 " slots: at most %d are allowed", o->slots,
		            BATON_RUNNER_SLOTS_MAX);
	if (h->stream && h->in_flight > BATON_RUNNER_SLOTS_MAX / o->slots)
		return fail(BATON_INVALID,
		            "%" PRIu32 " workers with %" PRIu32
		            " claims each: at most %d claims are allowed",
		            o->slots, h->in_flight, BATON_RUNNER_SLOTS_MAX);
	return BATON_OK;
}

static enum baton_err check_connections(const struct baton_runner_options *o)
{
	if (!o->connections.wanted)
		return BATON_OK;
	bool functions = o->connections.connected && o->connections.leave;
	if (o->serve_count == 0)
		return fail(BATON_INVALID, "connections are for a runner with a queue");
	if (o->handler.command ? o->connections.connected || o->connections.leave : !functions)
		return fail(BATON_INVALID, "connections are served as the handler says: by a "
		                           "command, or by two functions");
	if (o->until_empty || o->claims > 0)
		return fail(BATON_INVALID,
		            "a runner that ends by itself has no connections for lanes");
	if (o->connections.max > BATON_RUNNER_CONNECTIONS_MAX)
		return fail(BATON_INVALID,
		            "%" PRIu32 " connections at once: at most %d are allowed",
		            o->connections.max, BATON_RUNNER_CONNECTIONS_MAX);
	if (!o->handler.command || o->handler.stream)
		return BATON_OK;
	if (o->connections.max > WARDS_MAX - o->slots || o->connections.max == 0)
		return fail(BATON_INVALID,
		            "%" PRIu32 " jobs and %" PRIu32
		            " connections at once: at most %d are allowed together",
		            o->slots, o->connections.max, WARDS_MAX);
	return BATON_OK;
}

static uint32_t slots_for(long processors, uint32_t max)
{
	if (processors < 1)
		return SLOTS_PER_PROCESSOR;
	return processors < max / SLOTS_PER_PROCESSOR ? SLOTS_PER_PROCESSOR * (uint32_t)processors
	                                              : max;
}

static void fill_in(struct settings *s)
{
	struct baton_runner_options *o = &s->o;
	bool far = o->store->reach == BATON_REACH_HOSTS;
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	if (o->slots == 0)
		o->slots = slots_for(processors,
		                     o->handler.command ? WARDS_MAX : BATON_RUNNER_SLOTS_MAX);
	bool each = o->handler.command && !o->handler.stream; /* has a command of its own */
	if (o->connections.wanted && o->connections.max == 0)
		o->connections.max = !each || o->slots + BATON_RUNNER_CONNECTIONS <= WARDS_MAX
		                             ? BATON_RUNNER_CONNECTIONS
		                             : WARDS_MAX - o->slots;
	if (o->handler.stream && o->handler.in_flight == 0)
		o->handler.in_flight = 1;
	if (o->beat.ns == 0)
		o->beat = baton_duration_ms(BATON_RUNNER_BEAT_MS);
	if (o->ask.ttl.ns == 0)
		o->ask.ttl = baton_duration_ms(far ? BATON_RUNNER_TTL_FAR_MS : BATON_RUNNER_TTL_MS);
	if (o->margin.ns == 0)
		o->margin = baton_duration_ms(far ? BATON_RUNNER_MARGIN_FAR_MS
		                                  : BATON_RUNNER_MARGIN_MS);
	if (o->drain.ns == 0)
		o->drain = baton_duration_ms(BATON_RUNNER_DRAIN_MS);
}

static void take_serves(struct settings *s)
{
	for (size_t i = 0; i < s->o.serve_count; i++) {
		const struct baton_serve *serve = &s->o.serves[i];
		s->serves[i] =
			(struct core_serve){serve->queue, serve->weight > 0 ? serve->weight : 1,
		                            serve->join > 0 ? serve->join : 1};
		s->queues[i] = serve->queue;
	}
	s->o.ask.queues = s->queues;
	s->o.ask.queue_count = s->o.serve_count;
}

enum baton_err settings_make(struct settings *s, const struct baton_runner_options *given)
{
	const struct baton_handler none = {.command = NULL};
	s->o = *given;
	enum baton_err e = check_serves(given);
	if (e == BATON_OK)
		e = check_singletons(given);
	if (e == BATON_OK && given->serve_count > 0)
		e = check_handler(&given->handler);
	if (e != BATON_OK)
		return e;
	/* Without a queue there is nothing to handle. */
	if (given->serve_count == 0) {
		s->o.handler = none;
		s->o.slots = 1;
	}
	fill_in(s);
	e = check_slots(&s->o);
	if (e == BATON_OK)
		e = check_connections(&s->o);
	if (e == BATON_OK)
		e = check_times(&s->o);
	if (e != BATON_OK)
		return e;
	take_serves(s);
	s->processes = s->o.slots;
	if (s->o.handler.stream)
		s->o.slots *= s->o.handler.in_flight;
	return BATON_OK;
}
