/* What a fleet is like: its geometry, how full it is, and who is in it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "census.h"
#include "holds.h"
#include "json.h"
#include "table.h"
#include "text.h"

#define ROOM_FIRST 16

/* What is told to the visitor. */
struct counting {
	struct census census;
	bool failed;
};

static bool count(const struct baton_member *member, void *arg)
{
	struct counting *c = arg;
	struct census *census = &c->census;
	if (census->count == census->room) {
		size_t room = census->room ? 2 * census->room : ROOM_FIRST;
		struct baton_member *members = realloc(census->members, room * sizeof *members);
		c->failed = !members;
		if (!members)
			return false;
		census->members = members;
		census->room = room;
	}
	census->members[census->count++] = *member;
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct baton_member *one = a;
	const struct baton_member *other = b;
	int order = strcmp(one->owner, other->owner);
	return order != 0 ? order : (one->pid > other->pid) - (one->pid < other->pid);
}

bool census_take(struct baton_watch *watch, struct census *ret)
{
	struct counting c = {.census = {.path = baton_watch_path(watch), .now = wall_now()}};
	baton_watch_usage(watch, c.census.now.boot, &c.census.usage);
	baton_watch_members(watch, c.census.now.boot, count, &c);
	if (c.failed) {
		census_done(&c.census);
		return false;
	}
	if (c.census.count > 0)
		qsort(c.census.members, c.census.count, sizeof *c.census.members, compare);
	*ret = c.census;
	return true;
}

void census_done(struct census *census)
{
	free(census->members);
	*census = (struct census){.members = NULL};
}

/* The cells of one row, and the room for their texts. */
struct row {
	char owner[TEXT_SHOWN(BATON_NAME_MAX)];
	char numbers[3][16];
	char since[WALL_TEXT];
	char span[BATON_DURATION_TEXT];
	const char *cells[TABLE_COLUMNS_MAX];
};

static const struct table_column columns[] = {
	{"MEMBER", false}, {"PID", true},    {"HELD", true},
	{"WAITING", true}, {"SINCE", false}, {"FOR", true},
};
#define COLUMNS (sizeof columns / sizeof columns[0])

static void row_fill(struct row *r, const struct baton_member *m, const struct wall *now)
{
	snprintf(r->numbers[0], sizeof r->numbers[0], "%" PRId32, m->pid);
	snprintf(r->numbers[1], sizeof r->numbers[1], "%" PRIu32, m->held);
	snprintf(r->numbers[2], sizeof r->numbers[2], "%" PRIu32, m->waiting);
	const char *cells[COLUMNS] = {
		text_show(baton_str_z(m->owner), "", r->owner),
		r->numbers[0],
		r->numbers[1],
		r->numbers[2],
		wall_print(wall_at(now, m->since), r->since),
		wall_span(baton_mono_sub(now->boot, m->since), r->span),
	};
	memcpy(r->cells, cells, sizeof cells);
}

static void print_members(const struct census *census, struct out *out)
{
	struct table table;
	struct row row;
	if (census->count == 0)
		return;
	out_print(out, "\n");
	table_init(&table, out, columns, COLUMNS);
	for (size_t i = 0; i < census->count; i++) {
		row_fill(&row, &census->members[i], &census->now);
		table_measure(&table, row.cells);
	}
	table_titles(&table);
	for (size_t i = 0; i < census->count && out->errnum == 0; i++) {
		row_fill(&row, &census->members[i], &census->now);
		table_row(&table, row.cells);
	}
}

void census_print(const struct census *census, struct out *out)
{
	const struct baton_fleet_usage *u = &census->usage;
	char path[TEXT_SHOWN(BATON_FLEET_PATH_MAX)];
	char id[BATON_ID_TEXT];
	out_print(out, "fleet     %s\n", text_show(baton_str_z(census->path), "", path));
	out_print(out, "id        %s\n", baton_id_print(&u->id, id));
	out_print(out, "size      %" PRIu64 " bytes\n", u->bytes);
	out_print(out, "fences    up to %" PRIu64 "\n", u->mark.v);
	out_print(out, "members   %" PRIu32 " of %" PRIu32 "; %" PRIu32 " more have died\n",
	          u->members, u->limits.members, u->departed);
	out_print(out, "subjects  %" PRIu32 " held of %" PRIu32 "; %" PRIu32 " known\n",
	          u->subjects, u->limits.subjects, u->known);
	out_print(out, "waiters   %" PRIu32 " of %" PRIu32 "\n", u->waiters, u->limits.waiters);
	out_print(out, "events    %" PRIu32 " kept for each member\n", u->limits.events);
	out_print(out, "wakeups   %" PRIu32 " kept\n", u->limits.wakeups);
	print_members(census, out);
}

static void member_json(struct json *j, const struct baton_member *m, const struct wall *now)
{
	char id[BATON_ID_TEXT];
	json_open(j, NULL);
	json_text(j, "owner", m->owner);
	pid_json(j, m->pid);
	json_text(j, "incarnation", baton_id_print(&m->incarnation, id));
	json_number(j, "held", m->held);
	json_number(j, "waiting", m->waiting);
	json_time(j, "since", wall_at(now, m->since));
	json_close(j);
}

static void usage_json(struct json *j, const struct baton_fleet_usage *u)
{
	json_open(j, "limits");
	json_number(j, "members", u->limits.members);
	json_number(j, "subjects", u->limits.subjects);
	json_number(j, "waiters", u->limits.waiters);
	json_number(j, "events", u->limits.events);
	json_number(j, "wakeups", u->limits.wakeups);
	json_close(j);
	json_open(j, "usage");
	json_number(j, "members", u->members);
	json_number(j, "departed", u->departed);
	json_number(j, "subjects", u->subjects);
	json_number(j, "known", u->known);
	json_number(j, "waiters", u->waiters);
	json_close(j);
}

void census_json(const struct census *census, struct out *out)
{
	struct json j = {.line = {.out = out}};
	char id[BATON_ID_TEXT];
	json_open(&j, NULL);
	json_text(&j, "path", census->path);
	json_text(&j, "id", baton_id_print(&census->usage.id, id));
	json_number(&j, "bytes", census->usage.bytes);
	json_number(&j, "mark", census->usage.mark.v);
	usage_json(&j, &census->usage);
	json_open_list(&j, "members");
	for (size_t i = 0; i < census->count; i++)
		member_json(&j, &census->members[i], &census->now);
	json_close_list(&j);
	json_close(&j);
	json_end(&j);
}
