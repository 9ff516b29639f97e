/* baton holders: who holds what. */
#include <inttypes.h>
#include <sysexits.h>

#include "cluster.h"
#include "command.h"
#include "holds.h"
#include "leases.h"
#include "reading.h"
#include "table.h"
#include "where.h"

enum {
	OPTION_JSON = WHERE_NEXT,
	OPTION_CLUSTER,
	OPTION_STORE
};

struct request {
	struct where where;
	struct store store;
	struct subject_filter filter;
	bool cluster;
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

static void row_fill(struct row *r, const struct hold *h, struct baton_store_time now)
{
	bool dated = h->since.ms != BATON_STORE_TIME_NEVER.ms;
	bool ends = h->expires.ms != BATON_STORE_TIME_NEVER.ms;
	snprintf(r->pid, sizeof r->pid, "%" PRId32, h->pid);
	snprintf(r->fence, sizeof r->fence, "%" PRIu64, h->fence.v);
	const char *cells[COLUMNS] = {
		subject_show(h->space, h->label, r->subject),
		h->owner.len > 0 ? text_show(h->owner, "", r->owner) : "-",
		h->pid > 0 ? r->pid : "-",
		r->fence,
		dated ? wall_print(h->since, r->since) : "-",
		dated ? wall_span(baton_store_time_sub(now, h->since), r->held) : "-",
		wall_print(h->expires, r->expires),
		ends ? wall_span(baton_store_time_sub(h->expires, now), r->left) : "-",
	};
	for (size_t i = 0; i < COLUMNS; i++)
		r->cells[i] = cells[i];
}

static void print_table(struct out *out, const struct holds *holds, struct baton_store_time now)
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

static void print_json(struct out *out, const struct holds *holds, struct baton_store_time now)
{
	struct json json = {.line = {.out = out}};
	for (size_t i = 0; i < holds->count && out->errnum == 0; i++) {
		json_open(&json, NULL);
		hold_json(&json, holds->items[i], now);
		json_close(&json);
		json_end(&json);
	}
}

/* Ends with the list. */
static void print_holders(struct out *out, const struct request *request, struct holds *holds,
                          struct baton_store_time now)
{
	if (request->json)
		print_json(out, holds, now);
	else
		print_table(out, holds, now);
	if (request->where.verbose && holds->count == 0)
		complain("nobody holds anything%s",
		         request->filter.space.len > 0 ? " of that name" : "");
	holds_done(holds);
}

static int run_fleet(struct out *out, struct request *request)
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
	struct wall now = wall_now();
	struct holds holds;
	if (holds_take(watch, &now, &request->filter, &holds)) {
		print_holders(out, request, &holds, now.time);
	} else {
		complain("no memory for the list of holders");
		status = EX_OSERR;
	}
	baton_watch_close(watch);
	return status;
}

static int run_cluster(struct out *out, struct request *request)
{
	struct holds holds;
	request->store.verbose = request->where.verbose;
	int status = store_open(&request->store, STORE_EXISTING);
	if (status == EX_OK)
		status = leases_take(&request->store, &request->filter, &holds);
	if (status == EX_OK)
		print_holders(out, request, &holds, baton_store_now(request->store.handle));
	store_close(&request->store);
	return status;
}

static bool take(void *arg, int option, const char *value)
{
	struct request *r = arg;
	if (option == OPTION_JSON)
		r->json = true;
	else if (option == OPTION_CLUSTER)
		r->cluster = true;
	else if (option == OPTION_STORE)
		r->store.given = value;
	else
		return where_option(&r->where, option, value);
	return true;
}

int cmd_holders(struct out *out, int argc, char **argv)
{
	static const struct option options[] = {
		WHERE_OPTIONS,
		{"json", no_argument, NULL, OPTION_JSON},
		{"cluster", no_argument, NULL, OPTION_CLUSTER},
		{"store", required_argument, NULL, OPTION_STORE},
		{0},
	};
	struct request request = {.json = false};
	struct operands which = {.max = 1};
	const struct reading reading = {options, &which, take, &request};
	int status;
	if (!reading_do(&reading, out, argc, argv, &status))
		return status;
	if (!cluster_fits(request.cluster, &request.where, &request.store) ||
	    !subject_filter_parse(operand_at(&which, 0), &request.filter))
		return EX_USAGE;
	return request.cluster ? run_cluster(out, &request) : run_fleet(out, &request);
}
