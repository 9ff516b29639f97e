/* What runners have done, in numbers. */
#include "figures.h"

#include <stdlib.h>

#include "out.h"

#define NS_PER_MS 1000000

static const char *const reasons[BATON_DETACH_WHYS + 1] = {
	[BATON_DETACH_STORAGE] = "storage",   [BATON_DETACH_STREAK] = "streak",
	[BATON_DETACH_EXPIRED] = "expired",   [BATON_DETACH_MANUAL] = "manual",
	[BATON_DETACH_GUARDIAN] = "guardian",
};

enum baton_err figures_read(struct figures *f, const struct runners *r, struct baton_store *store)
{
	f->all = calloc(r->count + 1, sizeof *f->all);
	f->told = calloc(r->count + 1, sizeof *f->told);
	if (!f->all || !f->told)
		return BATON_NO_MEMORY;
	for (size_t i = 0; i < r->count; i++) {
		enum baton_err e =
			baton_runner_metrics(store, r->infos[i].number, &f->all[i], &f->told[i]);
		if (e != BATON_OK && e != BATON_NOT_FOUND)
			return e;
	}
	return BATON_OK;
}

void figures_done(struct figures *f)
{
	free(f->all);
	free(f->told);
	*f = (struct figures){.all = NULL};
}

static void spans_json(const struct baton_queue_metrics *q, struct json *j)
{
	json_open_list(j, "spans");
	for (size_t i = 0; i < BATON_METRICS_SPANS; i++) {
		json_open(j, NULL);
		json_span(j, "to_ms", baton_metrics_span(i));
		json_number(j, "count", q->took[i]);
		json_close(j);
	}
	json_close_list(j);
}

static void queue_json(const struct baton_queue_metrics *q, struct json *j)
{
	json_open(j, NULL);
	json_text(j, "queue", q->queue);
	json_number(j, "shards", q->shards);
	json_number(j, "started", q->started);
	json_number(j, "completed", q->completed);
	json_number(j, "failed", q->failed);
	json_number(j, "rejected", q->rejected);
	json_number(j, "returned", q->returned);
	json_number(j, "refused", q->refused);
	json_number(j, "took_ms", q->took_ns / NS_PER_MS);
	spans_json(q, j);
	json_close(j);
}

static void detachments_json(const struct baton_runner_metrics *m, struct json *j)
{
	json_open(j, "detachments");
	for (size_t i = 1; i <= BATON_DETACH_WHYS; i++)
		json_number(j, reasons[i], m->detachments[i]);
	json_close(j);
}

void figures_json(const struct figures *f, size_t runner, struct json *j)
{
	const struct baton_runner_metrics *m = &f->all[runner];
	if (f->told[runner].ms == 0) {
		json_null(j, "metrics");
		return;
	}
	json_open(j, "metrics");
	json_time(j, "told", f->told[runner]);
	json_bool(j, "detached", m->detached > 0);
	detachments_json(m, j);
	json_number(j, "attachments", m->attachments);
	json_number(j, "fenced_writes", m->fenced);
	json_number(j, "takeovers", m->takeovers);
	json_number(j, "ticks", m->ticks);
	json_number(j, "slots", m->slots);
	json_number(j, "slots_used", m->running);
	json_number(j, "worker_starts", m->worker_starts);
	json_number(j, "worker_restarts", m->worker_restarts);
	json_number(j, "beat_age_ms", m->beat_age_ns / NS_PER_MS);
	json_open_list(j, "queues");
	for (size_t i = 0; i < m->queue_count; i++)
		queue_json(&m->queues[i], j);
	json_close_list(j);
	json_close(j);
}

static void write_out(void *arg, const char *text, size_t len)
{
	out_bytes(arg, text, len);
}

enum baton_err figures_expose(const struct figures *f, const struct runners *r,
                              struct baton_store_time now, struct out *out)
{
	struct baton_metrics_row *rows = calloc(r->count + 1, sizeof *rows);
	if (!rows)
		return BATON_NO_MEMORY;
	for (size_t i = 0; i < r->count; i++) {
		bool told = f->told[i].ms > 0;
		rows[i] = (struct baton_metrics_row){
			.runner = r->infos[i].name,
			.host = r->infos[i].host,
			.age = baton_store_time_sub(now, f->told[i]),
			.metrics = told ? &f->all[i] : NULL,
		};
	}
	baton_metrics_write(rows, r->count, write_out, out);
	free(rows);
	return BATON_OK;
}
