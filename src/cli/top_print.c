/* What baton top prints once. */
#include <inttypes.h>

#include "figures.h"
#include "job.h"
#include "json.h"
#include "line.h"
#include "queues.h"
#include "top.h"
#include "wall.h"

static void failures_print(struct top *t)
{
	struct line line = {.out = t->out};
	for (size_t i = 0; i < t->sight.failure_count; i++) {
		const struct sight_failure *f = &t->sight.failures[i];
		line_print(&line, "dead: job %s of ", f->id.text);
		line_shown(&line, baton_str_z(f->queue));
		if (f->lane[0])
			line_text(&line, ", lane ");
		line_shown(&line, baton_str_z(f->lane));
		line_print(&line, ", attempt %" PRIu32 ": ", f->attempt);
		line_shown(&line, (struct baton_str){f->error, f->error_len});
		line_end(&line);
	}
}

static void failures_json(struct top *t)
{
	for (size_t i = 0; i < t->sight.failure_count; i++) {
		const struct sight_failure *f = &t->sight.failures[i];
		struct json j = {.line = {.out = t->out}};
		json_open(&j, NULL);
		json_text(&j, "job", f->id.text);
		json_text(&j, "queue", f->queue);
		job_json_lane(&j, baton_str_z(f->lane));
		json_number(&j, "attempt", f->attempt);
		json_time(&j, "ended_at", f->at);
		json_bytes(&j, "error", (struct baton_str){f->error, f->error_len});
		json_close(&j);
		json_end(&j);
	}
}

static void hitches_print(struct top *t)
{
	char span[BATON_DURATION_TEXT];
	struct line line = {.out = t->out};
	for (size_t i = 0; i < t->sight.hitches.count; i++) {
		const struct hitch *h = &t->sight.hitches.all[i];
		bool works = h->owner[0] != '\0';
		line_text(&line, "key: ");
		line_shown(&line, baton_str_z(h->key));
		line_text(&line, " of ");
		line_shown(&line, baton_str_z(h->queue));
		line_print(&line, " holds up %s%zu: job %s has it, ",
		           t->sight.hitches.more ? "at least " : "", h->waiting, h->holder.text);
		line_text(&line, works ? "claimed by " : "and keeps it for its next attempt");
		line_shown(&line, baton_str_z(h->owner));
		if (works)
			line_print(&line, " %s ago",
			           wall_span(baton_store_time_sub(t->sight.now, h->since), span));
		line_end(&line);
	}
}

static void hitches_json(struct top *t)
{
	for (size_t i = 0; i < t->sight.hitches.count; i++) {
		const struct hitch *h = &t->sight.hitches.all[i];
		bool works = h->owner[0] != '\0';
		struct json j = {.line = {.out = t->out}};
		json_open(&j, NULL);
		job_json_keys(&j, &(struct baton_str){h->key, strlen(h->key)}, 1);
		json_text(&j, "queue", h->queue);
		json_number(&j, "waiting", h->waiting);
		json_text(&j, "holder", h->holder.text);
		if (works)
			json_text(&j, "owner", h->owner);
		else
			json_null(&j, "owner");
		json_time(&j, "claimed", works ? h->since : BATON_STORE_TIME_NEVER);
		json_time(&j, "due", works ? BATON_STORE_TIME_NEVER : h->since);
		json_close(&j);
		json_end(&j);
	}
}

static enum baton_err runners_tell(struct top *t)
{
	struct figures figures = {.all = NULL};
	enum baton_err e = figures_read(&figures, &t->sight.runners, t->store.handle);
	if (e == BATON_OK)
		runners_json(&t->sight.runners, &figures, t->out);
	figures_done(&figures);
	return e;
}

enum baton_err top_print(struct top *t)
{
	enum baton_err e;
	for (size_t i = 0; i < t->sight.queue_count; i++) {
		if (t->store.json)
			queue_json(t->out, &t->sight.queues[i].info);
		else
			queues_print(t->out, &t->sight.queues[i].info, 1, i == 0);
	}
	if (!t->store.json) {
		e = runners_print(&t->sight.runners, t->out);
		hitches_print(t);
		failures_print(t);
	} else {
		e = runners_tell(t);
		hitches_json(t);
		failures_json(t);
	}
	return e;
}
