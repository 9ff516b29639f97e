/* The queues of a store, as they are shown. */
#include "queues.h"

#include <inttypes.h>
#include <stdio.h>

#include "json.h"
#include "policy.h"
#include "table.h"
#include "text.h"
#include "wall.h"

/* The cells of one row, and the room for their texts. */
struct row {
	char name[TEXT_SHOWN(BATON_NAME_MAX)];
	char mode[24];
	char numbers[7][24];
	char oldest[BATON_DURATION_TEXT];
	const char *cells[TABLE_COLUMNS_MAX];
};

static const struct table_column columns[] = {
	{"QUEUE", false},  {"MODE", false}, {"READY", true}, {"ON-KEY", true}, {"DELAYED", true},
	{"RUNNING", true}, {"DEAD", true},  {"DONE", true},  {"FAILED", true}, {"OLDEST", true},
};
#define COLUMNS (sizeof columns / sizeof columns[0])

static void row_fill(struct row *r, const struct baton_queue_info *q)
{
	const uint64_t numbers[] = {q->counts.ready,   q->counts.waiting_on_key, q->counts.delayed,
	                            q->counts.running, q->counts.dead,           q->counts.done,
	                            q->counts.failed};
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

void queues_print(struct out *out, const struct baton_queue_info *infos, size_t count, bool titles)
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

void queue_json(struct out *out, const struct baton_queue_info *q)
{
	struct json json = {.line = {.out = out}};
	json_open(&json, NULL);
	json_text(&json, "queue", q->name);
	json_bool(&json, "paused", q->policy.paused);
	json_number(&json, "ready", q->counts.ready);
	json_number(&json, "waiting_on_key", q->counts.waiting_on_key);
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
