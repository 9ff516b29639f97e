/* What a broker tells about itself. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <baton/version.h>

#include "base/fail.h"
#include "handoff/state.h"
#include "wire/admin.h"

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a;
	int64_t y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static void latencies_fill(const struct baton_broker *b, struct wire_answer *a)
{
	int64_t sorted[LATENCIES];
	size_t n = b->latencies_count < LATENCIES ? (size_t)b->latencies_count : LATENCIES;
	if (n == 0)
		return;
	memcpy(sorted, b->latencies, n * sizeof *sorted);
	qsort(sorted, n, sizeof *sorted, by_value);
	a->latency_p50_ns = (uint64_t)sorted[n / 2];
	a->latency_p99_ns = (uint64_t)sorted[n * 99 / 100];
}

/* What the broker has to do with the service itself. */
static void service_fill(const struct baton_broker *b, const struct service *s,
                         struct wire_backend *w)
{
	struct baton_duration wait = starts_wait(&s->starts, broker_now(b));
	if (!s->definition)
		return;
	w->starts = s->starts.count;
	w->commands = s->commands;
	if (s->commands > 0 || services_current(s))
		w->state = WIRE_SERVICE_UP;
	else if (s->main)
		w->state = WIRE_SERVICE_STARTING;
	else
		w->state = wait.ns > 0 ? WIRE_SERVICE_GIVEN_UP : WIRE_SERVICE_DOWN;
	if (w->state == WIRE_SERVICE_GIVEN_UP)
		w->retry_after_ms = (uint64_t)((wait.ns + 999999) / 1000000);
}

/* A service that has no backend now. */
static struct wire_backend absent_of(const struct baton_broker *b, const struct service *s)
{
	struct wire_backend w = {
		.service = baton_str_z(s->name),
		.pid = s->main ? (uint32_t)s->main->pid : 0,
	};
	switch (s->definition->takes) {
	case TAKES_HANDOFF:
		w.capabilities = WIRE_TAKES_CONNECTIONS;
		break;
	case TAKES_FD3:
		w.capabilities = WIRE_IS_COMMAND | WIRE_IS_FD3;
		break;
	case TAKES_STDIO:
		w.capabilities = WIRE_IS_COMMAND;
		break;
	}
	service_fill(b, s, &w);
	return w;
}

static struct wire_backend backend_of(const struct baton_broker *b, const struct channel *c)
{
	struct baton_duration wait = fallback_wait(&c->attempts, broker_now(b));
	struct wire_backend w = {
		.service = baton_str_z(c->service->name),
		.generation = c->generation,
		.pid = (uint32_t)c->who.pid,
		.endpoint = baton_str_z(c->endpoint),
		.owner = baton_str_z(c->owner),
		.capabilities = c->capabilities,
		.pending = c->pending,
		.granted = c->granted,
		.failed = c->failed,
		.retry_after_ms = (uint64_t)((wait.ns + 999999) / 1000000),
		.current = services_current(c->service) == c,
	};
	service_fill(b, c->service, &w);
	return w;
}

static int by_service(const void *x, const void *y)
{
	const struct wire_backend *a = x;
	const struct wire_backend *b = y;
	size_t len = a->service.len < b->service.len ? a->service.len : b->service.len;
	int order = memcmp(a->service.ptr, b->service.ptr, len);
	if (order == 0)
		order = (a->service.len > b->service.len) - (a->service.len < b->service.len);
	if (order == 0)
		order = (a->generation < b->generation) - (a->generation > b->generation);
	return order;
}

static bool backends_fill(struct baton_broker *b, struct wire_answer *a)
{
	size_t max = b->channels_count + b->definitions_count;
	struct wire_backend *all = arena_take(&b->arena, max + 1, sizeof *all);
	size_t n = 0;
	if (!all)
		return false;
	for (struct links *l = b->channels.next; l != &b->channels; l = l->next)
		all[n++] = backend_of(b, LINKS_OF(l, struct channel, source.links));
	for (size_t i = 0; i < b->definitions_count; i++) {
		const struct service *s = services_find(b, baton_str_z(b->definitions[i].name));
		if (s && links_empty(&s->channels))
			all[n++] = absent_of(b, s);
	}
	qsort(all, n, sizeof *all, by_service);
	a->backends = all;
	a->backends_count = n;
	return true;
}

const char *report_count_name(enum count count)
{
	static const char *const names[COUNTS] = {
		[COUNT_STORED_ENDED] = "expired descriptors",
		[COUNT_CLIENTS] = "clients",
		[COUNT_PLAIN] = "plain clients",

		[COUNT_OFFERED] = "offered",
		[COUNT_GRANTED] = "granted",
		[COUNT_RECONNECTED] = "reconnected",
		[COUNT_REFUSED] = "refused",
		[COUNT_SILENT] = "silent",
		[COUNT_NONSENSE] = "nonsense",
		[COUNT_STRAY] = "stray acks",
		[COUNT_WRONG_TOKENS] = "wrong tokens",
		[COUNT_BROKEN] = "broken backends",
		[COUNT_STARTS] = "starts",
		[COUNT_FAILED] = "failed starts",
		[COUNT_COMMANDS] = "commands",
		[COUNT_HUNG] = "hung",
		[COUNT_LIMITED] = "rate limited",
		[COUNT_TOO_LATE] = "too late",
	};
	return names[count];
}

static bool counters_fill(struct baton_broker *b, struct wire_answer *a)
{
	size_t max = COUNTS + FALLBACK_REASONS + 3;
	struct wire_counter *all = arena_take(&b->arena, max, sizeof *all);
	size_t n = 0;
	if (!all)
		return false;
	all[n++] = (struct wire_counter){BATON_STR("waiting clients"), b->peers_count};
	all[n++] = (struct wire_counter){BATON_STR("pending"), b->passings_count};
	all[n++] = (struct wire_counter){BATON_STR("stored descriptors"), b->stored_count};
	for (int i = 0; i < COUNTS; i++)
		all[n++] = (struct wire_counter){baton_str_z(report_count_name((enum count)i)),
		                                 b->counts[i]};
	for (int i = 1; i <= FALLBACK_REASONS; i++)
		all[n++] =
			(struct wire_counter){baton_str_z(fallback_name((enum fallback_reason)i)),
		                              b->reasons[i]};
	a->counters = all;
	a->counters_count = n;
	return true;
}

static bool stored_fill(struct baton_broker *b, struct wire_answer *a)
{
	struct wire_stored *all = arena_take(&b->arena, b->stored_count + 1, sizeof *all);
	if (!all)
		return false;
	for (struct links *l = b->stored.next; l != &b->stored; l = l->next)
		all[a->stored_count++] = stored_view(b, LINKS_OF(l, struct stored, links));
	a->stored = all;
	return true;
}

enum baton_err report_encode(struct baton_broker *b, struct buf *out)
{
	struct wire_admin m = {
		.kind = WIRE_ANSWER,
		.answer = {.daemon_version = baton_str_z(BATON_VERSION), .pid = (uint32_t)getpid()},
	};
	latencies_fill(b, &m.answer);
	if (!backends_fill(b, &m.answer) || !counters_fill(b, &m.answer) ||
	    !stored_fill(b, &m.answer))
		return fail_memory(b->channels_count * sizeof(struct wire_backend), "a report");
	return wire_admin_encode(&m, &b->arena, out);
}
