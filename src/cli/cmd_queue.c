/* baton queue: shows and changes the queues of a store. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "command.h"
#include "json.h"
#include "name.h"
#include "policy.h"
#include "store.h"
#include "table.h"
#include "text.h"
#include "verb.h"
#include "wall.h"

#define PAGE 100
#define OPERANDS_MAX 1000

struct request {
	struct store store;
	struct out *out;
	const struct operands *operands; /* the first is the verb, the second the queue */
	struct baton_str queue;
	struct policy_change change;
};

/* The cells of one row, and the room for their texts. */
struct row {
	char name[TEXT_SHOWN(BATON_NAME_MAX)];
	char mode[24];
	char numbers[6][24];
	char oldest[BATON_DURATION_TEXT];
	const char *cells[TABLE_COLUMNS_MAX];
};

static const struct table_column columns[] = {
	{"QUEUE", false}, {"MODE", false}, {"READY", true},  {"DELAYED", true}, {"RUNNING", true},
	{"DEAD", true},   {"DONE", true},  {"FAILED", true}, {"OLDEST", true},
};
#define COLUMNS (sizeof columns / sizeof columns[0])

static void row_fill(struct row *r, const struct baton_queue_info *q)
{
	const uint64_t numbers[] = {q->counts.ready, q->counts.delayed, q->counts.running,
	                            q->counts.dead,  q->counts.done,    q->counts.failed};
	snprintf(r->mode, sizeof r->mode, "%s%s", policy_mode_name(q->policy.mode),
	         q->policy.paused ? ", paused" : "");
	r->cells[0] = text_show(baton_str_z(q->name), "", r->name);
	r->cells[1] = r->mode;
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		snprintf(r->numbers[i], sizeof r->numbers[i], "%" PRIu64, numbers[i]);
		r->cells[2 + i] = r->numbers[i];
	}
	r->cells[COLUMNS - 1] =
		q->counts.oldest.ns > 0 ? wall_span(q->counts.oldest, r->oldest) : "-";
}

static void print_table(struct out *out, const struct baton_queue_info *infos, size_t count,
                        bool titles)
{
	struct table table;
	struct row row;
	table_init(&table, out, columns, COLUMNS);
	for (size_t i = 0; i < count; i++) {
		row_fill(&row, &infos[i]);
		table_measure(&table, row.cells);
	}
	if (titles)
		table_titles(&table);
	for (size_t i = 0; i < count && out->errnum == 0; i++) {
		row_fill(&row, &infos[i]);
		table_row(&table, row.cells);
	}
}

static void print_json(struct out *out, const struct baton_queue_info *q)
{
	struct json json = {.line = {.out = out}};
	json_open(&json, NULL);
	json_text(&json, "queue", q->name);
	json_bool(&json, "paused", q->policy.paused);
	json_number(&json, "ready", q->counts.ready);
	json_number(&json, "delayed", q->counts.delayed);
	json_number(&json, "running", q->counts.running);
	json_number(&json, "dead", q->counts.dead);
	json_number(&json, "done", q->counts.done);
	json_number(&json, "failed", q->counts.failed);
	json_span(&json, "oldest_ms", q->counts.oldest);
	json_open(&json, "policy");
	policy_json(&json, &q->policy);
	json_close(&json);
	json_close(&json);
	json_end(&json);
}

static int list_into(struct request *r, struct baton_queue_info *infos)
{
	char after[BATON_NAME_MAX + 1] = "";
	size_t count;
	do {
		enum baton_err e =
			baton_queue_list(r->store.handle, baton_str_z(after), infos, PAGE, &count);
		if (e != BATON_OK)
			return store_fail(&r->store, e);
		for (size_t i = 0; r->store.json && i < count; i++)
			print_json(r->out, &infos[i]);
		if (!r->store.json && count > 0)
			print_table(r->out, infos, count, after[0] == '\0');
		if (count > 0)
			memcpy(after, infos[count - 1].name, sizeof after);
	} while (count == PAGE && r->out->errnum == 0);
	return EX_OK;
}

static int queue_list(void *request)
{
	struct request *r = request;
	struct baton_queue_info *infos = calloc(PAGE, sizeof *infos);
	if (!infos) {
		complain("no memory for the list of queues");
		return EX_OSERR;
	}
	int status = list_into(r, infos);
	free(infos);
	return status;
}

static int no_queue(const struct request *r)
{
	char shown[SHOWN_MAX];
	complain("there is no queue '%s'; 'baton queue list' has those there are",
	         show(r->queue.ptr, shown));
	return EXIT_FAILURE;
}

static int queue_show(void *request)
{
	struct request *r = request;
	struct line line = {.out = r->out};
	struct baton_queue_info info;
	enum baton_err e = baton_queue_get(r->store.handle, r->queue, &info);
	if (e == BATON_NOT_FOUND)
		return no_queue(r);
	if (e != BATON_OK)
		return store_fail(&r->store, e);
	if (r->store.json) {
		print_json(r->out, &info);
		return EX_OK;
	}
	print_table(r->out, &info, 1, true);
	line_end(&line);
	policy_print(&line, &info.policy);
	return EX_OK;
}

static int queue_set(void *request)
{
	struct request *r = request;
	enum baton_err e =
		baton_queue_change(r->store.handle, r->queue, &r->change.policy, r->change.fields);
	return e == BATON_OK ? EX_OK : store_fail(&r->store, e);
}

static int pause_or_resume(struct request *r, bool paused)
{
	enum baton_err e = baton_queue_pause(r->store.handle, r->queue, paused);
	if (e == BATON_NOT_FOUND)
		return no_queue(r);
	return e == BATON_OK ? EX_OK : store_fail(&r->store, e);
}

static int queue_pause(void *request)
{
	return pause_or_resume(request, true);
}

static int queue_resume(void *request)
{
	return pause_or_resume(request, false);
}

static const struct verb verbs[] = {
	{"list", STORE_EXISTING, 1, 1, "nothing else", queue_list},
	{"show", STORE_EXISTING, 2, 2, "the name of a queue", queue_show},
	{"set", STORE_MADE, 3, OPERANDS_MAX, "the name of a queue, and KEY=VALUE", queue_set},
	{"pause", STORE_EXISTING, 2, 2, "the name of a queue", queue_pause},
	{"resume", STORE_EXISTING, 2, 2, "the name of a queue", queue_resume},
};

/* What is given is checked before the store is made. */
static bool fits(struct request *r)
{
	if (r->operands->count > 1 && !name_queue(r->operands->texts[1], &r->queue))
		return false;
	for (size_t i = 2; i < r->operands->count; i++) {
		if (!policy_assign(&r->change, r->operands->texts[i]))
			return false;
	}
	return true;
}

static int run(struct request *r)
{
	const struct verbs known = {"queue", verbs, sizeof verbs / sizeof verbs[0]};
	const struct verb *verb = verb_choose(&known, r->operands);
	if (!verb || !fits(r))
		return EX_USAGE;
	int status = store_open(&r->store, verb->need);
	if (status == EX_OK)
		status = verb->run(r);
	store_close(&r->store);
	return status;
}

int cmd_queue(struct out *out, int argc, char **argv)
{
	struct operands operands = {.max = OPERANDS_MAX};
	struct request request = {.out = out, .operands = &operands};
	int status;
	if (!store_reading(&request.store, &operands, out, argc, argv, &status))
		return status;
	return run(&request);
}
