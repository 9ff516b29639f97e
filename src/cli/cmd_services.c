/* baton services: the backends that have registered with a broker. */
#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>

#include "broker.h"
#include "command.h"
#include "json.h"
#include "reading.h"
#include "table.h"

static const struct option options[] = {
	BROKER_OPTIONS,
	{"json", no_argument, NULL, OPTION_BROKER_JSON},
	{0},
};

struct request {
	const char *folder;
	bool json;
};

static bool take(void *arg, int option, const char *value)
{
	struct request *r = arg;
	if (option == OPTION_BROKER)
		r->folder = value;
	else
		r->json = true;
	return true;
}

static const char *way_of(const struct baton_broker_backend *b)
{
	if (b->adopted)
		return "adopted";
	if (b->command)
		return b->fd3 ? "fd3" : "stdio";
	if (!b->takes)
		return "reconnect";
	return b->repeatable ? "repeatable" : "handoff";
}

static const char *state_of(const struct baton_broker_backend *b)
{
	switch (b->state) {
	case BATON_SERVICE_NOT_STARTED:
		break;
	case BATON_SERVICE_DOWN:
		return "down";
	case BATON_SERVICE_STARTING:
		return "starting";
	case BATON_SERVICE_UP:
		return "up";
	case BATON_SERVICE_GIVEN_UP:
		return "given up";
	}
	return "up";
}

static void show_json(struct out *out, const struct baton_broker_status *s)
{
	struct json j = {.line = {.out = out}};
	for (size_t i = 0; i < s->backends_count; i++) {
		const struct baton_broker_backend *b = &s->backends[i];
		json_open(&j, NULL);
		json_bytes(&j, "service", b->service);
		json_bool(&j, "current", b->current);
		json_number(&j, "pid", (uint64_t)b->pid);
		json_number(&j, "generation", b->generation);
		json_text(&j, "way", way_of(b));
		json_bytes(&j, "endpoint", b->endpoint);
		json_bytes(&j, "owner", b->owner);
		json_number(&j, "pending", b->pending);
		json_number(&j, "granted", b->granted);
		json_number(&j, "failed", b->failed);
		json_span(&j, "retry_after_ms", b->retry_after);
		json_text(&j, "state", state_of(b));
		json_number(&j, "starts", b->starts);
		json_number(&j, "commands", b->commands);
		json_close(&j);
		json_end(&j);
	}
}

#define COLUMNS 12

struct row {
	char texts[COLUMNS][BROKER_TEXT];
	const char *cells[COLUMNS];
};

static void row_fill(struct row *row, const struct baton_broker_backend *b)
{
	const uint64_t numbers[] = {b->generation, b->pending, b->granted, b->failed};
	broker_text(b->service, row->texts[0]);
	snprintf(row->texts[1], BROKER_TEXT, "%s", b->current ? "yes" : "no");
	snprintf(row->texts[2], BROKER_TEXT, "%" PRId32, b->pid);
	for (int i = 0; i < 4; i++)
		snprintf(row->texts[3 + i], BROKER_TEXT, "%" PRIu64, numbers[i]);
	snprintf(row->texts[7], BROKER_TEXT, "%s", way_of(b));
	snprintf(row->texts[8], BROKER_TEXT, "%s", state_of(b));
	snprintf(row->texts[9], BROKER_TEXT, "%" PRIu64, b->starts);
	snprintf(row->texts[10], BROKER_TEXT, "%" PRIu64, b->commands);
	broker_text(b->endpoint, row->texts[11]);
	for (int i = 0; i < COLUMNS; i++)
		row->cells[i] = row->texts[i];
}

static void show_table(struct out *out, const struct baton_broker_status *s)
{
	static const struct table_column columns[COLUMNS] = {
		{"SERVICE", false}, {"CURRENT", false}, {"PID", true},      {"GENERATION", true},
		{"PENDING", true},  {"GRANTED", true},  {"FAILED", true},   {"WAY", false},
		{"STATE", false},   {"STARTS", true},   {"COMMANDS", true}, {"ENDPOINT", false},
	};
	struct table t;
	struct row row;
	table_init(&t, out, columns, COLUMNS);
	for (size_t i = 0; i < s->backends_count; i++) {
		row_fill(&row, &s->backends[i]);
		table_measure(&t, row.cells);
	}
	table_titles(&t);
	for (size_t i = 0; i < s->backends_count; i++) {
		row_fill(&row, &s->backends[i]);
		table_row(&t, row.cells);
	}
}

int cmd_services(struct out *out, int argc, char **argv)
{
	struct request r = {.folder = NULL};
	struct operands none = {.max = 0};
	const struct reading reading = {options, &none, take, &r};
	struct baton_broker_status *s;
	int status;
	if (!reading_do(&reading, out, argc, argv, &status))
		return status;
	status = broker_look(r.folder, &s);
	if (status != EX_OK)
		return status;
	if (r.json)
		show_json(out, s);
	else
		show_table(out, s);
	baton_broker_status_free(s);
	return EX_OK;
}
