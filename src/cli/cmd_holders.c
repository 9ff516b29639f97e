/* baton holders: who holds what. */
#include <inttypes.h>
#include <sysexits.h>

#include "command.h"
#include "holds.h"
#include "options.h"
#include "table.h"
#include "where.h"

#define OPTION_JSON WHERE_NEXT

struct request {
	struct where where;
	struct subject_filter filter;
	bool json;
};

/* The cells of one row, and the room for their texts. */
struct row {
	char subject[SUBJECT_SHOWN];
	char owner[TEXT_SHOWN(BATON_NAME_MAX)];
	char pid[16];
	char fence[24];
	char since[WALL_TEXT];
	char held[BATON_DURATION_TEXT];
	char expires[WALL_TEXT];
	char left[BATON_DURATION_TEXT];
	const char *cells[TABLE_COLUMNS_MAX];
};

static const struct table_column columns[] = {
	{"SUBJECT", false}, {"OWNER", false}, {"PID", true},      {"FENCE", true},
	{"SINCE", false},   {"HELD", true},   {"EXPIRES", false}, {"LEFT", true},
};
#define COLUMNS (sizeof columns / sizeof columns[0])

static void row_fill(struct row *r, const struct hold *h, const struct wall *now)
{
	bool dated = h->since.ns > 0;
	bool ends = h->expires.ns != BATON_MONO_NEVER.ns;
	snprintf(r->pid, sizeof r->pid, "%" PRId32, h->pid);
	snprintf(r->fence, sizeof r->fence, "%" PRIu64, h->fence.v);
	const char *cells[COLUMNS] = {
		subject_show(h->space, h->label, r->subject),
		h->owner.len > 0 ? text_show(h->owner, "", r->owner) : "-",
		h->pid > 0 ? r->pid : "-",
		r->fence,
		dated ? wall_print(wall_at(now, h->since), r->since) : "-",
		dated ? wall_span(baton_mono_sub(now->boot, h->since), r->held) : "-",
		wall_print(wall_at(now, h->expires), r->expires),
		ends ? wall_span(baton_mono_sub(h->expires, now->boot), r->left) : "-",
	};
	for (size_t i = 0; i < COLUMNS; i++)
		r->cells[i] = cells[i];
}

static void print_table(struct out *out, const struct holds *holds, const struct wall *now)
{
	struct table table;
	struct row row;
	if (holds->count == 0)
		return;
	table_init(&table, out, columns, COLUMNS);
	for (size_t i = 0; i < holds->count; i++) {
		row_fill(&row, holds->items[i], now);
		table_measure(&table, row.cells);
	}
	table_titles(&table);
	for (size_t i = 0; i < holds->count && out->errnum == 0; i++) {
		row_fill(&row, holds->items[i], now);
		table_row(&table, row.cells);
	}
}

static void print_json(struct out *out, const struct holds *holds, const struct wall *now)
{
	struct json json = {.line = {.out = out}};
	for (size_t i = 0; i < holds->count && out->errnum == 0; i++) {
		json_open(&json, NULL);
		hold_json(&json, holds->items[i], now);
		json_close(&json);
		json_end(&json);
	}
}

static int print_holders(struct out *out, const struct request *request, struct baton_watch *watch)
{
	struct wall now = wall_now();
	struct holds holds;
	if (!holds_take(watch, now.boot, &request->filter, &holds)) {
		complain("no memory for the list of holders");
		return EX_OSERR;
	}
	if (request->json)
		print_json(out, &holds, &now);
	else
		print_table(out, &holds, &now);
	if (request->where.verbose && holds.count == 0)
		complain("nobody holds anything%s",
		         request->filter.space.len > 0 ? " of that name" : "");
	holds_done(&holds);
	return EX_OK;
}

static int run(struct out *out, struct request *request)
{
	struct baton_watch *watch = NULL;
	int status = where_find(&request->where);
	if (status == EX_OK)
		status = where_watch(&request->where, &watch);
	if (status != EX_OK)
		return status;
	if (!watch) {
		if (request->where.verbose)
			complain("there is no such fleet, so nobody holds anything");
		return EX_OK;
	}
	status = print_holders(out, request, watch);
	baton_watch_close(watch);
	return status;
}

int cmd_holders(struct out *out, int argc, char **argv)
{
	static const struct option options[] = {
		WHERE_OPTIONS,
		{"json", no_argument, NULL, OPTION_JSON},
		{0},
	};
	struct request request = {.json = false};
	struct operands which = {.max = 1};
	optind = 0;
	for (;;) {
		int option = option_mixed(argc, argv, options, &which);
		if (option == OPTION_END)
			break;
		if (option == OPTION_BAD)
			return EX_USAGE;
		if (option == 'h') {
			help_command(out, command_find(argv[0]));
			return EX_OK;
		}
		if (!where_option(&request.where, option, optarg))
			request.json = true;
	}
	if (!subject_filter_parse(operand_at(&which, 0), &request.filter))
		return EX_USAGE;
	return run(out, &request);
}
