/* baton show: all about one job. */
#include <inttypes.h>
#include <sysexits.h>

#include "command.h"
#include "job.h"
#include "lookup.h"
#include "name.h"
#include "reading.h"
#include "stall.h"
#include "wall.h"

#define OPTION_PAYLOAD STORE_NEXT

struct request {
	struct store store;
	struct baton_batch_id id;
	bool payload;
};

static void field(struct line *line, const char *name, struct baton_str value)
{
	line_print(line, "%-9s ", name);
	line_shown(line, value);
	line_end(line);
}

static void field_number(struct line *line, const char *name, uint64_t value)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRIu64, value);
	field(line, name, baton_str_z(text));
}

static void field_time(struct line *line, const char *name, struct baton_store_time t)
{
	char text[WALL_TEXT];
	if (t.ms > 0)
		field(line, name, baton_str_z(wall_print_ms(t, text)));
}

static void field_some(struct line *line, const char *name, struct baton_str value)
{
	if (value.len > 0)
		field(line, name, value);
}

static void print_kind(struct line *line, const struct baton_work_batch *b)
{
	if (b->cls == BATON_COMMAND)
		field(line, "class", BATON_STR("command"));
	if (b->delivery == BATON_AFTER_COMMIT)
		field(line, "delivery", BATON_STR("after commit"));
	if (b->slot == BATON_JOIN)
		field(line, "join", b->group.len > 0 ? b->group : BATON_STR("the default group"));
}

/* "50 %, nearly done (told at 2026-02-28 09:05:00)" */
static void print_progress(struct line *line, const struct baton_progress *p)
{
	char when[WALL_TEXT];
	line_print(line, "%-9s ", "progress");
	if (p->percent != BATON_PROGRESS_UNSAID)
		line_print(line, "%" PRId32 " %%", p->percent);
	if (p->percent != BATON_PROGRESS_UNSAID && p->text[0] != '\0')
		line_text(line, ", ");
	line_shown(line, baton_str_z(p->text));
	line_print(line, " (told at %s)", wall_print(p->at, when));
	line_end(line);
}

static void print_claim(struct line *line, const struct baton_work_info *info)
{
	if (info->state != BATON_BATCH_CLAIMED)
		return;
	field(line, "claim", info->claim);
	field_number(line, "fence", info->fence.v);
	field(line, "owner", baton_str_z(info->owner.id));
	field_time(line, "claimed", info->claimed_at);
	field_time(line, "expires", info->expires_at);
}

/* What is shown of a job. */
struct shown {
	const struct baton_work_info *info;
	const struct baton_work_info *ahead;   /* that keeps it, or NULL */
	const struct baton_progress *progress; /* or NULL */
	const struct baton_stalled *stalled;   /* what it waits for, or NULL */
};

static void field_keys(struct line *line, const struct baton_work_info *info)
{
	if (info->key_count < 2) {
		field_some(line, "key", info->key);
		return;
	}
	line_text(line, "keys      ");
	job_keys(line, info->keys, info->key_count);
	line_end(line);
}

static void print_text(struct out *out, const struct request *r, const struct shown *shown)
{
	const struct baton_work_info *info = shown->info;
	struct line line = {.out = out};
	field(&line, "id", baton_str_z(info->batch.id.text));
	field(&line, "queue", info->queue);
	field_some(&line, "lane", info->lane);
	field_keys(&line, info);
	field(&line, "state", baton_str_z(job_state_name(info->state)));
	line_text(&line, "why       ");
	job_why(&line, info, shown->ahead, shown->stalled, r->store.handle);
	line_end(&line);
	field_number(&line, "attempt", info->batch.attempt);
	field_number(&line, "priority", info->batch.priority);
	print_kind(&line, &info->batch);
	field_time(&line, "put", info->batch.put_at);
	field_time(&line, "due", info->due);
	print_claim(&line, info);
	if (shown->progress)
		print_progress(&line, shown->progress);
	field_time(&line, "ended", info->ended_at);
	field_some(&line, "error", info->error);
	field_some(&line, "result", info->result);
	for (size_t i = 0; i < info->batch.count; i++)
		field(&line, "payload", info->batch.payloads[i]);
}

static void progress_json(struct json *json, const struct baton_progress *p)
{
	if (!p) {
		json_null(json, "progress");
		return;
	}
	json_open(json, "progress");
	if (p->percent == BATON_PROGRESS_UNSAID)
		json_null(json, "percent");
	else
		json_number(json, "percent", (uint64_t)p->percent);
	json_text(json, "text", p->text);
	json_time(json, "told", p->at);
	json_close(json);
}

static void print_json(struct out *out, const struct shown *shown)
{
	const struct baton_work_info *info = shown->info;
	struct json json = {.line = {.out = out}};
	json_open(&json, NULL);
	job_json(&json, info);
	json_text(&json, "why", job_why_name(info->why));
	job_json_ahead(&json, info, shown->ahead);
	stall_json(&json, shown->stalled);
	progress_json(&json, shown->progress);
	if (info->result.len > 0)
		json_bytes(&json, "result", info->result);
	else
		json_null(&json, "result");
	job_json_payloads(&json, &info->batch);
	json_close(&json);
	json_end(&json);
}

static int run(struct out *out, struct request *r)
{
	struct baton_work_page *page = NULL;
	int status = store_open(&r->store, STORE_EXISTING);
	if (status == EX_OK)
		status = lookup(&r->store, &r->id, &page);
	if (status != EX_OK)
		return status;
	const struct baton_work_info *info = &page->infos[0];
	struct baton_work_page *other = lookup_ahead(&r->store, info);
	struct baton_progress progress;
	bool told = baton_progress_read(r->store.handle, info, &progress) == BATON_OK;
	struct baton_stalled stalled;
	bool stalls = lookup_stalled(&r->store, info, &stalled);
	const struct shown shown = {info, other ? &other->infos[0] : NULL, told ? &progress : NULL,
	                            stalls ? &stalled : NULL};
	if (r->store.json)
		print_json(out, &shown);
	else if (!r->payload)
		print_text(out, r, &shown);
	for (size_t i = 0; r->payload && i < info->batch.count; i++)
		out_bytes(out, info->batch.payloads[i].ptr, info->batch.payloads[i].len);
	baton_work_page_free(other);
	baton_work_page_free(page);
	return EX_OK;
}

static bool take(void *arg, int option, const char *value)
{
	struct request *r = arg;
	if (option == OPTION_PAYLOAD)
		r->payload = true;
	else
		return store_option(&r->store, option, value);
	return true;
}

int cmd_show(struct out *out, int argc, char **argv)
{
	static const struct option options[] = {
		STORE_OPTIONS,
		{"payload", no_argument, NULL, OPTION_PAYLOAD},
		{0},
	};
	struct request request = {.payload = false};
	struct operands operands = {.max = 1};
	const struct reading reading = {options, &operands, take, &request};
	int status;
	if (!reading_do(&reading, out, argc, argv, &status))
		return status;
	if (!name_needed(&operands, 1, argv[0], "the id of a job") ||
	    !name_job(operands.texts[0], &request.id))
		return EX_USAGE;
	if (request.payload && request.store.json) {
		complain("--payload and --json cannot be together");
		return EX_USAGE;
	}
	status = run(out, &request);
	store_close(&request.store);
	return status;
}
