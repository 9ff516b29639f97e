/* What baton top shows on a terminal: a section below the other, as many lines as there are. */
#include <inttypes.h>
#include <string.h>

#include "text.h"
#include "top.h"
#include "wall.h"

#define PAUSED " paused"
#define MAP_LINES 3 /* of the shards of one queue */
#define COLOURS 6

const char *top_cut(const char *name, size_t width, char *shown)
{
	text_show(baton_str_z(name), "", shown);
	size_t columns = 0;
	struct baton_str left = baton_str_z(shown);
	while (left.len > 0 && columns < width) {
		size_t len = text_first(left).len;
		left.ptr += len;
		left.len -= len;
		columns++;
	}
	if (left.len > 0)
		shown[left.ptr - shown] = '\0';
	return shown;
}

/* The name in so many columns, with spaces behind it. */
static void add_name(struct terminal *term, enum look look, const char *name, size_t width)
{
	char shown[TEXT_SHOWN(BATON_NAME_MAX)];
	top_cut(name[0] ? name : "-", width, shown);
	terminal_print(term, look, "%s%*s ", shown, (int)(width - text_width(shown)), "");
}

/* Sections. */

size_t top_queue_chosen(const struct top *t)
{
	for (size_t i = 0; i < t->sight.queue_count; i++) {
		if (strcmp(t->sight.queues[i].info.name, t->queue) == 0)
			return i;
	}
	return 0;
}

size_t top_failure_chosen(const struct top *t)
{
	for (size_t i = 0; i < t->sight.failure_count; i++) {
		if (strcmp(t->sight.failures[i].id.text, t->job.text) == 0)
			return i;
	}
	return 0;
}

/* The first that is shown of a list, so that the one that is chosen is. */
static size_t first_of(size_t chosen, unsigned lines)
{
	return lines > 0 && chosen >= lines ? chosen - lines + 1 : 0;
}

static void add_rate(struct terminal *term, int width, double rate)
{
	if (rate < 0)
		terminal_print(term, LOOK_PLAIN, " %*s", width, "-");
	else
		terminal_print(term, rate > 0 ? LOOK_PLAIN : LOOK_FAINT, " %*.1f", width, rate);
}

static void draw_queue(struct top *t, const struct sight_queue *q, bool chosen)
{
	struct terminal *term = &t->terminal;
	const struct baton_queue_counts *c = &q->info.counts;
	char oldest[BATON_DURATION_TEXT];
	size_t mark = q->info.policy.paused ? sizeof PAUSED - 1 : 0;
	terminal_add(term, LOOK_BOLD, chosen ? ">" : " ");
	add_name(term, chosen ? LOOK_BOLD : LOOK_PLAIN, q->info.name, TOP_NAME_WIDTH - mark);
	if (mark > 0)
		terminal_add(term, LOOK_WAITING, PAUSED);
	terminal_print(term, LOOK_PLAIN, "%7" PRIu64 " %6" PRIu64 " %7" PRIu64 " %7" PRIu64,
	               c->ready, c->waiting_on_key, c->delayed, c->running);
	terminal_print(term, c->dead > 0 ? LOOK_BAD : LOOK_PLAIN, " %5" PRIu64, c->dead);
	add_rate(term, 7, q->done);
	add_rate(term, 8, q->failed);
	terminal_print(term, LOOK_PLAIN, " %8s",
	               c->oldest.ns > 0 ? wall_span(c->oldest, oldest) : "-");
	terminal_line_end(term);
}

static void draw_queues(struct top *t)
{
	struct terminal *term = &t->terminal;
	size_t chosen = top_queue_chosen(t);
	unsigned lines = t->lines[SECTION_QUEUES];
	size_t first = first_of(chosen, lines);
	terminal_print(term, LOOK_FAINT, " %-*s %7s %6s %7s %7s %5s %7s %8s %8s", TOP_NAME_WIDTH,
	               "QUEUE", "READY", "ON-KEY", "DELAYED", "RUNNING", "DEAD", "DONE/S",
	               "FAILED/S", "OLDEST");
	terminal_line_end(term);
	for (size_t i = first; i < t->sight.queue_count && i < first + lines; i++)
		draw_queue(t, &t->sight.queues[i], t->panel == PANEL_QUEUES && i == chosen);
}

/* A letter and a colour for each runner, by its place in the list. */
static char letter_of(size_t place)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	if (place < sizeof letters - 1)
		return letters[place];
	return '+';
}

static uint32_t shards_of(const struct runners *r, size_t runner)
{
	uint32_t count = 0;
	for (size_t i = 0; i < r->share_count; i++)
		count += r->shares[i].runner == runner ? r->shares[i].count : 0;
	return count;
}

static void draw_runners(struct top *t)
{
	struct terminal *term = &t->terminal;
	const struct runners *r = &t->sight.runners;
	terminal_print(term, LOOK_FAINT, "   %-*s %6s %-*s %s", TOP_NAME_WIDTH, "RUNNER", "SHARDS",
	               TOP_NAME_WIDTH, "HOST", "STATE");
	terminal_line_end(term);
	for (size_t i = 0; i < r->count && i < t->lines[SECTION_RUNNERS]; i++) {
		const struct baton_runner_info *info = &r->infos[i];
		char mark[] = {' ', letter_of(i), ' ', '\0'};
		char state[TEXT_SHOWN(BATON_NAME_MAX)];
		bool well = strcmp(info->state, "attached") == 0;
		terminal_colour(term, 1 + (unsigned)(i % COLOURS), mark);
		add_name(term, LOOK_PLAIN, info->name, TOP_NAME_WIDTH);
		terminal_print(term, LOOK_PLAIN, "%6" PRIu32 " ", shards_of(r, i));
		add_name(term, LOOK_PLAIN, info->host, TOP_NAME_WIDTH);
		terminal_add(term, well ? LOOK_PLAIN : LOOK_BAD,
		             text_show(baton_str_z(info->state), "", state));
		terminal_line_end(term);
	}
}

/* How many lines the shards of a queue take. */
static unsigned map_lines(const struct top *t, const struct sight_queue *q)
{
	unsigned width = t->terminal.columns > TOP_NAME_WIDTH + 2
	                         ? t->terminal.columns - TOP_NAME_WIDTH - 2
	                         : 1;
	unsigned lines = (q->info.policy.shards + width - 1) / width;
	return !q->owners ? 0 : lines < MAP_LINES ? lines : MAP_LINES;
}

static size_t place_of(const struct runners *r, uint64_t number)
{
	size_t i = 0;
	while (i < r->count && r->infos[i].number != number)
		i++;
	return i;
}

static void draw_shard(struct top *t, uint64_t owner)
{
	const struct runners *r = &t->sight.runners;
	size_t place = place_of(r, owner);
	char mark[] = "-";
	if (place < r->count)
		mark[0] = letter_of(place);
	if (place < r->count)
		terminal_colour(&t->terminal, 1 + (unsigned)(place % COLOURS), mark);
	else
		terminal_add(&t->terminal, LOOK_BAD, mark);
}

/* Those that have no room are left out. Returns how many lines it took. */
static unsigned draw_map(struct top *t, const struct sight_queue *q, unsigned room)
{
	struct terminal *term = &t->terminal;
	unsigned lines = map_lines(t, q) < room ? map_lines(t, q) : room;
	uint32_t shard = 0;
	for (unsigned i = 0; i < lines; i++) {
		terminal_add(term, LOOK_PLAIN, " ");
		add_name(term, LOOK_PLAIN, i == 0 ? q->info.name : " ", TOP_NAME_WIDTH);
		while (shard < q->info.policy.shards && term->column < term->columns)
			draw_shard(t, q->owners[shard++]);
		terminal_line_end(term);
	}
	return lines;
}

static void draw_shards(struct top *t)
{
	struct terminal *term = &t->terminal;
	unsigned room = t->lines[SECTION_SHARDS];
	terminal_add(term, LOOK_FAINT, " SHARDS");
	terminal_line_end(term);
	for (size_t i = 0; i < t->sight.queue_count && room > 0; i++)
		room -= draw_map(t, &t->sight.queues[i], room);
}

static void draw_failure(struct top *t, const struct sight_failure *f, bool chosen)
{
	struct terminal *term = &t->terminal;
	char error[TEXT_SHOWN(SIGHT_ERROR)];
	struct baton_duration ago = {(wall_now().time.ms - f->at.ms) * 1000000};
	char span[BATON_DURATION_TEXT];
	terminal_add(term, LOOK_BOLD, chosen ? ">" : " ");
	terminal_print(term, chosen ? LOOK_BOLD : LOOK_PLAIN, "%-10s ", f->id.text);
	add_name(term, LOOK_PLAIN, f->queue, 12);
	add_name(term, LOOK_PLAIN, f->lane, 12);
	terminal_print(term, LOOK_PLAIN, "%7" PRIu32 " %9s  ", f->attempt, wall_span(ago, span));
	terminal_add(term, LOOK_BAD,
	             text_show((struct baton_str){f->error, f->error_len}, "", error));
	terminal_line_end(term);
}

static void draw_failures(struct top *t)
{
	struct terminal *term = &t->terminal;
	size_t chosen = top_failure_chosen(t);
	unsigned lines = t->lines[SECTION_FAILURES];
	size_t first = first_of(chosen, lines);
	terminal_print(term, LOOK_FAINT, " %-10s %-12s %-12s %7s %9s  %s", "DEAD", "QUEUE", "LANE",
	               "ATTEMPT", "AGO",
	               t->sight.more ? "ERROR (not all were looked at)" : "ERROR");
	terminal_line_end(term);
	for (size_t i = first; i < t->sight.failure_count && i < first + lines; i++)
		draw_failure(t, &t->sight.failures[i], t->panel == PANEL_FAILURES && i == chosen);
}

static void draw_hitch(struct top *t, const struct hitch *h)
{
	struct terminal *term = &t->terminal;
	struct baton_duration ago = baton_store_time_sub(t->sight.now, h->since);
	char span[BATON_DURATION_TEXT];
	bool works = h->owner[0] != '\0';
	if (!works)
		ago = baton_store_time_sub(h->since, t->sight.now);
	terminal_add(term, LOOK_PLAIN, " ");
	add_name(term, LOOK_BOLD, h->key, TOP_NAME_WIDTH);
	add_name(term, LOOK_PLAIN, h->queue, 12);
	terminal_print(term, LOOK_WAITING, "%7zu ", h->waiting);
	terminal_print(term, LOOK_PLAIN, "%-10s ", h->holder.text);
	add_name(term, LOOK_PLAIN, works ? h->owner : "retry in", 16);
	terminal_print(term, LOOK_PLAIN, "%9s", wall_span(ago, span));
	terminal_line_end(term);
}

static void draw_hitches(struct top *t)
{
	struct terminal *term = &t->terminal;
	const struct hitches *h = &t->sight.hitches;
	if (h->count == 0)
		return;
	terminal_print(term, LOOK_FAINT, " %-*s %-12s %7s %-10s %-16s %9s", TOP_NAME_WIDTH,
	               h->more ? "KEY (not all)" : "KEY", "QUEUE", "WAITING", "HELD BY", "OWNER",
	               "FOR");
	terminal_line_end(term);
	for (size_t i = 0; i < h->count && i < t->lines[SECTION_HITCHES]; i++)
		draw_hitch(t, &h->all[i]);
}

/* The picture. */

/* Shares out the lines that are there: everybody gets what it wants, in turns. */
static void lines_share(struct top *t)
{
	unsigned wanted[SECTIONS] = {0};
	/* The first two, the last, and a title each; keys have one only if there are some. */
	const unsigned fixed = 3 + SECTIONS - (t->sight.hitches.count == 0);
	unsigned left = t->terminal.rows > fixed ? t->terminal.rows - fixed : 0;
	wanted[SECTION_QUEUES] = (unsigned)t->sight.queue_count;
	wanted[SECTION_RUNNERS] = (unsigned)t->sight.runners.count;
	wanted[SECTION_HITCHES] = (unsigned)t->sight.hitches.count;
	wanted[SECTION_FAILURES] = (unsigned)t->sight.failure_count;
	for (size_t i = 0; i < t->sight.queue_count; i++)
		wanted[SECTION_SHARDS] += map_lines(t, &t->sight.queues[i]);
	memset(t->lines, 0, sizeof t->lines);
	for (bool given = true; given && left > 0;) {
		given = false;
		for (unsigned i = 0; i < SECTIONS && left > 0; i++) {
			if (t->lines[i] == wanted[i])
				continue;
			t->lines[i]++;
			left--;
			given = true;
		}
	}
}

static uint64_t dead_count(const struct sight *s)
{
	uint64_t count = 0;
	for (size_t i = 0; i < s->queue_count; i++)
		count += s->queues[i].info.counts.dead;
	return count;
}

static void draw_head(struct top *t)
{
	struct terminal *term = &t->terminal;
	char now[WALL_TEXT];
	uint64_t dead = dead_count(&t->sight);
	terminal_add(term, LOOK_BOLD, "baton top");
	terminal_print(term, LOOK_PLAIN, "  %s  %zu queues, %zu runners, ",
	               wall_print(wall_now().time, now), t->sight.queue_count,
	               t->sight.runners.count);
	terminal_print(term, dead > 0 ? LOOK_BAD : LOOK_PLAIN, "%" PRIu64 " dead", dead);
	terminal_line_end(term);
	terminal_line_end(term);
}

static void draw_foot(struct top *t)
{
	struct terminal *term = &t->terminal;
	const char *keys = t->panel == PANEL_QUEUES
	                           ? "q quit  Tab failures  Up/Down choose  p pause or resume"
	                           : "q quit  Tab queues  Up/Down choose  r retry  c cancel";
	terminal_go(term, term->rows - 1);
	if (t->message[0])
		terminal_add(term, LOOK_BOLD, t->message);
	else
		terminal_add(term, LOOK_FAINT, keys);
	terminal_line_end(term);
}

void top_draw(struct top *t)
{
	terminal_begin(&t->terminal);
	lines_share(t);
	draw_head(t);
	draw_queues(t);
	draw_runners(t);
	draw_shards(t);
	draw_hitches(t);
	draw_failures(t);
	draw_foot(t);
	terminal_show(&t->terminal);
}
