/* baton where: which runner owns a lane. */
#include <inttypes.h>
#include <stdlib.h>
#include <sysexits.h>

#include "command.h"
#include "holds.h"
#include "json.h"
#include "lookup.h"
#include "name.h"
#include "store.h"
#include "text.h"

struct request {
	struct store store;
	struct baton_str queue, lane;
	struct baton_where where;
};

static void text_or_null(struct json *j, const char *key, const char *text)
{
	if (text)
		json_text(j, key, text);
	else
		json_null(j, key);
}

static void print_json(struct out *out, const struct request *r)
{
	const struct baton_where *w = &r->where;
	struct json j = {.line = {.out = out}};
	json_open(&j, NULL);
	json_bytes(&j, "queue", r->queue);
	json_bytes(&j, "lane", r->lane);
	json_number(&j, "shard", w->shard);
	json_number(&j, "fence", w->fence.v);
	text_or_null(&j, "runner", w->owned ? w->runner.name : NULL);
	text_or_null(&j, "host", w->owned ? w->runner.host : NULL);
	text_or_null(&j, "endpoint", w->owned ? w->runner.endpoint : NULL);
	pid_json(&j, w->owned ? w->runner.owner.pid : 0);
	json_close(&j);
	json_end(&j);
}

static void print_text(struct out *out, const char *what, const char *text)
{
	char shown[TEXT_SHOWN(BATON_NAME_MAX)];
	out_print(out, "%-8s  %s\n", what, text[0] ? text_show(baton_str_z(text), "", shown) : "-");
}

static void print(struct out *out, const struct baton_where *w)
{
	print_text(out, "runner", w->owned ? w->runner.name : "");
	print_text(out, "host", w->owned ? w->runner.host : "");
	print_text(out, "endpoint", w->owned ? w->runner.endpoint : "");
	out_print(out, "shard     %" PRIu32 "\n", w->shard);
	out_print(out, "fence     %" PRIu64 "\n", w->fence.v);
}

static int run(struct out *out, struct request *r)
{
	int status = store_open(&r->store, STORE_EXISTING);
	if (status != EX_OK)
		return status;
	enum baton_err e = baton_lane_where(r->store.handle, r->queue, r->lane, &r->where);
	if (e == BATON_NOT_FOUND)
		return lookup_no_queue(r->queue);
	if (e != BATON_OK)
		return store_fail(&r->store, e);
	if (r->store.json)
		print_json(out, r);
	else
		print(out, &r->where);
	return r->where.owned ? EX_OK : EXIT_FAILURE;
}

int cmd_where(struct out *out, int argc, char **argv)
{
	struct request request = {.queue = {NULL, 0}};
	struct operands operands = {.max = 2};
	int status;
	if (!store_reading(&request.store, &operands, out, argc, argv, &status))
		return status;
	if (!name_needed(&operands, 2, argv[0], "the names of a queue and of a lane") ||
	    !name_queue(operands.texts[0], &request.queue) ||
	    !name_other("lane's name", operands.texts[1], &request.lane))
		return EX_USAGE;
	status = run(out, &request);
	store_close(&request.store);
	return status;
}
