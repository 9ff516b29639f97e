/* A schedule as it is shown, to people and to programs. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "job.h"
#include "json.h"
#include "schedule.h"
#include "table.h"
#include "text.h"
#include "wall.h"

/* The cells of one row, and the room for their texts. */
struct row {
	char name[TEXT_SHOWN(BATON_NAME_MAX)];
	char cron[TEXT_SHOWN(BATON_CRON_MAX)];
	char zone[TEXT_SHOWN(BATON_NAME_MAX)];
	char queue[TEXT_SHOWN(BATON_NAME_MAX)];
	char lane[TEXT_SHOWN(BATON_NAME_MAX)];
	char next[WALL_TEXT];
	char left[BATON_DURATION_TEXT];
	const char *cells[TABLE_COLUMNS_MAX];
};

static const struct table_column columns[] = {
	{"SCHEDULE", false}, {"CRON", false}, {"ZONE", false}, {"QUEUE", false},
	{"LANE", false},     {"NEXT", false}, {"IN", true},
};
#define COLUMNS (sizeof columns / sizeof columns[0])

static const char *const missed_names[] = {
	[BATON_MISSED_ONCE] = "once",
	[BATON_MISSED_ALL] = "all",
	[BATON_MISSED_SKIP] = "skip",
};

const char *schedule_missed_name(enum baton_missed missed)
{
	bool known = missed >= BATON_MISSED_ONCE && missed <= BATON_MISSED_SKIP;
	return known ? missed_names[missed] : "?";
}

bool schedule_missed_parse(const char *text, enum baton_missed *ret)
{
	char shown[SHOWN_MAX];
	for (int i = BATON_MISSED_ONCE; i <= BATON_MISSED_SKIP; i++) {
		if (strcmp(missed_names[i], text) == 0) {
			*ret = (enum baton_missed)i;
			return true;
		}
	}
	complain("--missed is '%s': once, all and skip are allowed", show(text, shown));
	return false;
}

static struct baton_str zone_of(const struct baton_schedule *s)
{
	return s->zone.len > 0 ? s->zone : BATON_STR("UTC");
}

/* What is longer than it can be is cut; a store may be damaged. */
static const char *cell(struct baton_str s, size_t max, char *shown)
{
	if (s.len > max)
		s.len = max;
	return text_show(s, "", shown);
}

static void row_fill(struct row *r, const struct baton_schedule *s, struct baton_store_time now)
{
	bool ticks = s->next.ms != BATON_STORE_TIME_NEVER.ms;
	const char *cells[COLUMNS] = {
		cell(s->name, BATON_NAME_MAX, r->name),
		cell(s->cron, BATON_CRON_MAX, r->cron),
		cell(zone_of(s), BATON_NAME_MAX, r->zone),
		cell(s->queue, BATON_NAME_MAX, r->queue),
		s->lane.len > 0 ? cell(s->lane, BATON_NAME_MAX, r->lane) : "-",
		s->paused ? "paused" : wall_print(s->next, r->next),
		ticks ? wall_span(baton_store_time_sub(s->next, now), r->left) : "-",
	};
	for (size_t i = 0; i < COLUMNS; i++)
		r->cells[i] = cells[i];
}

void schedule_table(struct out *out, const struct baton_schedules *schedules,
                    struct baton_store_time now, bool titles)
{
	struct table table;
	struct row row;
	table_init(&table, out, columns, COLUMNS);
	for (size_t i = 0; i < schedules->count; i++) {
		row_fill(&row, &schedules->schedules[i], now);
		table_measure(&table, row.cells);
	}
	if (titles)
		table_titles(&table);
	for (size_t i = 0; i < schedules->count && out->errnum == 0; i++) {
		row_fill(&row, &schedules->schedules[i], now);
		table_row(&table, row.cells);
	}
}

static void field(struct line *line, const char *name, struct baton_str value)
{
	line_print(line, "%-9s ", name);
	line_shown(line, value);
	line_end(line);
}

static void field_time(struct line *line, const char *name, struct baton_store_time t)
{
	char text[WALL_TEXT];
	field(line, name, baton_str_z(wall_print(t, text)));
}

void schedule_print(struct out *out, const struct baton_schedule *s,
                    const struct baton_store_time *ticks, size_t count)
{
	struct line line = {.out = out};
	char priority[24];
	snprintf(priority, sizeof priority, "%u", (unsigned)s->priority);
	field(&line, "schedule", s->name);
	field(&line, "cron", s->cron);
	field(&line, "zone", zone_of(s));
	field(&line, "missed", baton_str_z(schedule_missed_name(s->missed)));
	field(&line, "queue", s->queue);
	if (s->lane.len > 0)
		field(&line, "lane", s->lane);
	field(&line, "priority", baton_str_z(priority));
	field_time(&line, "last", s->last);
	if (count > 0 && s->next.ms < ticks[0].ms)
		field_time(&line, "due", s->next);
	if (s->paused)
		field(&line, "next", BATON_STR("paused"));
	else if (count == 0)
		field_time(&line, "next", BATON_STORE_TIME_NEVER);
	for (size_t i = 0; i < count && !s->paused; i++)
		field_time(&line, i == 0 ? "next" : "", ticks[i]);
	field(&line, "payload", s->payload);
}

void schedule_json(struct out *out, const struct baton_schedule *s,
                   const struct baton_store_time *ticks, size_t count)
{
	struct json json = {.line = {.out = out}};
	json_open(&json, NULL);
	json_bytes(&json, "schedule", s->name);
	json_bytes(&json, "cron", s->cron);
	json_bytes(&json, "zone", zone_of(s));
	json_text(&json, "missed", schedule_missed_name(s->missed));
	json_bytes(&json, "queue", s->queue);
	job_json_lane(&json, s->lane);
	json_number(&json, "priority", s->priority);
	json_time(&json, "last", s->last);
	json_time(&json, "next", s->next);
	json_bool(&json, "paused", s->paused);
	if (ticks) {
		json_open_list(&json, "ticks");
		for (size_t i = 0; i < count; i++)
			json_time(&json, NULL, ticks[i]);
		json_close_list(&json);
	}
	job_json_payload(&json, s->payload);
	json_close(&json);
	json_end(&json);
}

/* As the clocks of the zone show it, with how far they are from UTC, and what they are called. */
static void zone_print(struct baton_store_time t, char text[WALL_TEXT])
{
	time_t seconds = (time_t)(t.ms / 1000);
	struct tm parts;
	if (!localtime_r(&seconds, &parts) ||
	    strftime(text, WALL_TEXT, "%Y-%m-%d %H:%M:%S %z", &parts) == 0)
		baton_store_time_print(t, text);
}

static void next_json(struct out *out, const struct baton_schedule *s, struct baton_store_time t,
                      const char *text)
{
	struct json json = {.line = {.out = out}};
	json_open(&json, NULL);
	json_time(&json, "at", t);
	json_text(&json, "local", text);
	json_bytes(&json, "zone", zone_of(s));
	json_close(&json);
	json_end(&json);
}

void schedule_next_print(struct out *out, const struct baton_schedule *s,
                         const struct baton_store_time *ticks, size_t count, bool json)
{
	char zone[BATON_NAME_MAX + 2], shown[TEXT_SHOWN(BATON_NAME_MAX)], text[WALL_TEXT];
	struct baton_str name = zone_of(s);
	snprintf(zone, sizeof zone, ":%.*s", (int)name.len, name.ptr);
	setenv("TZ", zone, 1);
	tzset();
	for (size_t i = 0; i < count && out->errnum == 0; i++) {
		zone_print(ticks[i], text);
		if (json)
			next_json(out, s, ticks[i], text);
		else
			out_print(out, "%s  %s\n", text, cell(name, BATON_NAME_MAX, shown));
	}
}
