/* baton why: why a job, a lane or a queue stands still. */
#include <inttypes.h>
#include <stdlib.h>
#include <sysexits.h>

#include "command.h"
#include "job.h"
#include "lookup.h"
#include "name.h"
#include "reading.h"
#include "stall.h"
#include "wall.h"

enum {
	OPTION_QUEUE = STORE_NEXT,
	OPTION_LANE
};

struct request {
	struct store store;
	struct baton_batch_id id;
	struct baton_str queue, lane; /* empty: not said */
};

/* Why one job is not running. */
struct reason {
	struct baton_work_page *page, *other;
	const struct baton_work_info *info;  /* NULL: there is no such job any more */
	const struct baton_work_info *ahead; /* or NULL */
	struct baton_stalled stalled;
	bool stalls;
};

static void reason_take(struct reason *r, const struct store *store)
{
	r->info = &r->page->infos[0];
	r->other = lookup_ahead(store, r->info);
	r->ahead = r->other ? &r->other->infos[0] : NULL;
	r->stalls = lookup_stalled(store, r->info, &r->stalled);
}

static void reason_done(struct reason *r)
{
	baton_work_page_free(r->other);
	baton_work_page_free(r->page);
}

static void reason_tell(struct line *line, const struct request *r, const struct reason *why)
{
	job_why(line, why->info, why->ahead, why->stalls ? &why->stalled : NULL, r->store.handle);
}

static void reason_json(struct json *json, const char *name, const struct reason *why)
{
	const struct baton_work_info *info = why->info;
	if (!info) {
		json_null(json, name);
		return;
	}
	json_open(json, name);
	json_text(json, "id", info->batch.id.text);
	json_text(json, "why", job_why_name(info->why));
	json_time(json, "due", info->due.ms > 0 ? info->due : BATON_STORE_TIME_NEVER);
	job_json_keys(json, info->keys, info->key_count);
	if (info->held.len > 0)
		json_bytes(json, "key", info->held);
	else
		json_null(json, "key");
	job_json_ahead(json, info, why->ahead);
	stall_json(json, why->stalls ? &why->stalled : NULL);
	json_close(json);
}

static int why_job(struct out *out, const struct request *r)
{
	struct line line = {.out = out};
	struct json json = {.line = {.out = out}};
	struct reason why = {.page = NULL};
	int status = lookup(&r->store, &r->id, &why.page);
	if (status != EX_OK)
		return status;
	reason_take(&why, &r->store);
	if (r->store.json) {
		reason_json(&json, NULL, &why);
		json_end(&json);
	} else {
		reason_tell(&line, r, &why);
		line_end(&line);
	}
	reason_done(&why);
	return EX_OK;
}

/* The first job of that state, of the queue or the lane; BATON_NOT_FOUND: there is none among those
 * that a look comes past. */
static enum baton_err first_of(const struct request *r, enum baton_batch_state state,
                               struct baton_batch_id *ret)
{
	const struct baton_work_filter filter = {.queue = r->queue,
	                                         .lane = r->lane,
	                                         .state = state,
	                                         .max = 1};
	struct baton_work_page *page = NULL;
	enum baton_err e = baton_work_list(r->store.handle, &filter, &page);
	if (e == BATON_OK && page->count == 0)
		e = BATON_NOT_FOUND;
	if (e == BATON_OK)
		*ret = page->infos[0].batch.id;
	baton_work_page_free(page);
	return e;
}

/* The job that says most about why nothing goes on: of a lane what runs, else what is ready, else
 * what waits. Of a queue what is ready comes first, since others may run meanwhile. */
static enum baton_err find_first(const struct request *r, struct reason *why)
{
	static const enum baton_batch_state of_lane[] = {BATON_BATCH_CLAIMED, BATON_BATCH_READY,
	                                                 BATON_BATCH_RETRY, BATON_BATCH_DELAYED,
	                                                 BATON_BATCH_DEAD};
	static const enum baton_batch_state of_queue[] = {BATON_BATCH_READY, BATON_BATCH_RETRY,
	                                                  BATON_BATCH_DELAYED, BATON_BATCH_CLAIMED,
	                                                  BATON_BATCH_DEAD};
	const enum baton_batch_state *states = r->lane.len > 0 ? of_lane : of_queue;
	struct baton_batch_id id;
	enum baton_err e = BATON_NOT_FOUND;
	for (size_t i = 0; i < sizeof of_lane / sizeof of_lane[0] && e == BATON_NOT_FOUND; i++) {
		e = first_of(r, states[i], &id);
		if (e == BATON_OK)
			e = baton_work_get(r->store.handle, &id, &why->page);
	}
	if (e == BATON_OK)
		reason_take(why, &r->store);
	return e == BATON_NOT_FOUND ? BATON_OK : e;
}

static void print_counts(struct line *line, const struct baton_queue_info *q)
{
	line_print(line, " has %" PRIu64 " ready, ", q->counts.ready);
	if (q->counts.waiting_on_key > 0)
		line_print(line, "%" PRIu64 " waiting for a key, ", q->counts.waiting_on_key);
	line_print(line, "%" PRIu64 " delayed, %" PRIu64 " running and %" PRIu64 " dead",
	           q->counts.delayed, q->counts.running, q->counts.dead);
	if (q->policy.paused)
		line_text(line, ", and is paused");
	line_end(line);
}

static void print_text(struct out *out, const struct request *r, const struct baton_queue_info *q,
                       const struct reason *why)
{
	struct line line = {.out = out};
	if (r->lane.len == 0) {
		line_text(&line, "queue ");
		line_shown(&line, r->queue);
		print_counts(&line, q);
	}
	if (why->info) {
		reason_tell(&line, r, why);
		line_end(&line);
	} else if (r->lane.len > 0) {
		line_text(&line, "lane ");
		line_shown(&line, r->lane);
		line_text(&line, " is empty");
		line_end(&line);
	}
}

static void print_json(struct out *out, const struct request *r, const struct baton_queue_info *q,
                       const struct reason *why)
{
	struct json json = {.line = {.out = out}};
	json_open(&json, NULL);
	json_bytes(&json, "queue", r->queue);
	job_json_lane(&json, r->lane);
	json_bool(&json, "paused", q->policy.paused);
	if (r->lane.len == 0) {
		json_number(&json, "ready", q->counts.ready);
		json_number(&json, "waiting_on_key", q->counts.waiting_on_key);
		json_number(&json, "delayed", q->counts.delayed);
		json_number(&json, "running", q->counts.running);
		json_number(&json, "dead", q->counts.dead);
	}
	reason_json(&json, "job", why);
	json_close(&json);
	json_end(&json);
}

static int why_queue(struct out *out, const struct request *r)
{
	struct baton_queue_info queue;
	struct reason why = {.page = NULL};
	enum baton_err e = baton_queue_get(r->store.handle, r->queue, &queue);
	if (e == BATON_NOT_FOUND)
		return lookup_no_queue(r->queue);
	if (e == BATON_OK)
		e = find_first(r, &why);
	if (e == BATON_OK && r->store.json)
		print_json(out, r, &queue, &why);
	else if (e == BATON_OK)
		print_text(out, r, &queue, &why);
	reason_done(&why);
	return e == BATON_OK ? EX_OK : store_fail(&r->store, e);
}

static bool take(void *arg, int option, const char *value)
{
	struct request *r = arg;
	if (option == OPTION_QUEUE)
		return name_queue(value, &r->queue);
	if (option == OPTION_LANE)
		return name_other("lane", value, &r->lane);
	return store_option(&r->store, option, value);
}

/* Whether what was said fits together, as one line on standard error has said otherwise. */
static bool is_clear(struct request *r, const struct operands *operands, const char *name)
{
	char shown[SHOWN_MAX];
	if (r->lane.len > 0 && r->queue.len == 0) {
		complain("--lane needs --queue");
		return false;
	}
	if (r->queue.len == 0)
		return name_needed(operands, 1, name, "the id of a job, or --queue") &&
		       name_job(operands->texts[0], &r->id);
	if (operands->count > 0)
		complain("--queue takes no id, and got '%s'", show(operands->texts[0], shown));
	return operands->count == 0;
}

int cmd_why(struct out *out, int argc, char **argv)
{
	static const struct option options[] = {
		STORE_OPTIONS,
		{"queue", required_argument, NULL, OPTION_QUEUE},
		{"lane", required_argument, NULL, OPTION_LANE},
		{0},
	};
	struct request request = {.id = {""}};
	struct operands operands = {.max = 1};
	const struct reading reading = {options, &operands, take, &request};
	int status;
	if (!reading_do(&reading, out, argc, argv, &status))
		return status;
	if (!is_clear(&request, &operands, argv[0]))
		return EX_USAGE;
	status = store_open(&request.store, STORE_EXISTING);
	if (status == EX_OK)
		status = request.queue.len > 0 ? why_queue(out, &request) : why_job(out, &request);
	store_close(&request.store);
	return status;
}
