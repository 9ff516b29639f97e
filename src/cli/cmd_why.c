/* baton why: why a job is not running. */
#include <sysexits.h>

#include "command.h"
#include "job.h"
#include "lookup.h"
#include "name.h"

struct request {
	struct store store;
	struct baton_batch_id id;
};

static void print_json(struct out *out, const struct baton_work_info *info,
                       const struct baton_work_info *ahead)
{
	struct json json = {.line = {.out = out}};
	struct baton_store_time due = info->due;
	json_open(&json, NULL);
	json_text(&json, "id", info->batch.id.text);
	json_text(&json, "why", job_why_name(info->why));
	json_time(&json, "due", due.ms > 0 ? due : BATON_STORE_TIME_NEVER);
	job_json_key(&json, info->key);
	job_json_ahead(&json, info, ahead);
	json_close(&json);
	json_end(&json);
}

static int run(struct out *out, struct request *r)
{
	struct line line = {.out = out};
	struct baton_work_page *page = NULL;
	int status = store_open(&r->store, STORE_EXISTING);
	if (status == EX_OK)
		status = lookup(&r->store, &r->id, &page);
	if (status != EX_OK)
		return status;
	struct baton_work_page *other = lookup_ahead(&r->store, &page->infos[0]);
	const struct baton_work_info *ahead = other ? &other->infos[0] : NULL;
	if (r->store.json) {
		print_json(out, &page->infos[0], ahead);
	} else {
		job_why(&line, &page->infos[0], ahead, baton_store_now(r->store.handle));
		line_end(&line);
	}
	baton_work_page_free(other);
	baton_work_page_free(page);
	return EX_OK;
}

int cmd_why(struct out *out, int argc, char **argv)
{
	struct request request = {.id = {""}};
	struct operands operands = {.max = 1};
	int status;
	if (!store_reading(&request.store, &operands, out, argc, argv, &status))
		return status;
	if (!name_needed(&operands, 1, argv[0], "the id of a job") ||
	    !name_job(operands.texts[0], &request.id))
		return EX_USAGE;
	status = run(out, &request);
	store_close(&request.store);
	return status;
}
