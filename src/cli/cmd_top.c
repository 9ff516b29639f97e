/* baton top: how a store stands, all the time. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "command.h"
#include "figures.h"
#include "job.h"
#include "queues.h"
#include "reading.h"
#include "sight.h"
#include "store.h"
#include "table.h"
#include "terminal.h"
#include "text.h"
#include "wall.h"

enum {
	OPTION_ONCE = STORE_NEXT,
	OPTION_INTERVAL
};

#define INTERVAL_MS 1000
#define INTERVAL_MIN_MS 100
#define INTERVAL_MAX_MS 3600000
#define NAME_WIDTH 16
#define PAUSED " paused"
#define MAP_LINES 3 /* of the shards of one queue */
#define COLOURS 6
#define MESSAGE_ROOM 200

enum panel {
	PANEL_QUEUES = 0,
	PANEL_FAILURES,
	PANELS
};

enum section {
	SECTION_QUEUES = 0,
	SECTION_RUNNERS,
	SECTION_SHARDS,
	SECTION_FAILURES,
	SECTIONS
};

struct top {
	struct store store;
	struct out *out;
	bool once;
	int interval_ms;
	struct terminal terminal;
	struct sight sight;
	enum panel panel;
	char queue[BATON_NAME_MAX + 1]; /* that is chosen; "": none yet */
	struct baton_batch_id job;
	char asked;                 /* the key that waits for a yes; 0: none */
	char message[MESSAGE_ROOM]; /* what came of the last key */
	unsigned lines[SECTIONS];   /* that each section may have */
};

static const struct option options[] = {
	STORE_OPTIONS,
	{"once", no_argument, NULL, OPTION_ONCE},
	{"interval", required_argument, NULL, OPTION_INTERVAL},
	{0},
};

__attribute__((format(printf, 2, 3))) static void tell(struct top *t, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(t->message, sizeof t->message, format, args);
	va_end(args);
}

/* A name that takes no more than so many columns. */
static const char *cut(const char *name, size_t width, char *shown)
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
	cut(name[0] ? name : "-", width, shown);
	terminal_print(term, look, "%s%*s ", shown, (int)(width - text_width(shown)), "");
}

/* Sections. */

/* The place of what is chosen; the first if it is gone. */
static size_t queue_chosen(struct top *t)
{
	for (size_t i = 0; i < t->sight.queue_count; i++) {
		if (strcmp(t->sight.queues[i].info.name, t->queue) == 0)
			return i;
	}
	return 0;
}

static size_t failure_chosen(struct top *t)
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

static void add_rate(struct terminal *term, double rate)
{
	if (rate < 0)
		terminal_print(term, LOOK_PLAIN, " %8s", "-");
	else
		terminal_print(term, rate > 0 ? LOOK_PLAIN : LOOK_FAINT, " %8.1f", rate);
}

static void draw_queue(struct top *t, const struct sight_queue *q, bool chosen)
{
	struct terminal *term = &t->terminal;
	const struct baton_queue_counts *c = &q->info.counts;
	char oldest[BATON_DURATION_TEXT];
	size_t mark = q->info.policy.paused ? sizeof PAUSED - 1 : 0;
	terminal_add(term, LOOK_BOLD, chosen ? ">" : " ");
	add_name(term, chosen ? LOOK_BOLD : LOOK_PLAIN, q->info.name, NAME_WIDTH - mark);
	if (mark > 0)
		terminal_add(term, LOOK_WAITING, PAUSED);
	terminal_print(term, LOOK_PLAIN, "%8" PRIu64 " %8" PRIu64 " %7" PRIu64, c->ready,
	               c->delayed, c->running);
	terminal_print(term, c->dead > 0 ? LOOK_BAD : LOOK_PLAIN, " %6" PRIu64, c->dead);
	add_rate(term, q->done);
	add_rate(term, q->failed);
	terminal_print(term, LOOK_PLAIN, " %9s",
	               c->oldest.ns > 0 ? wall_span(c->oldest, oldest) : "-");
	terminal_line_end(term);
}

static void draw_queues(struct top *t)
{
	struct terminal *term = &t->terminal;
	size_t chosen = queue_chosen(t);
	unsigned lines = t->lines[SECTION_QUEUES];
	size_t first = first_of(chosen, lines);
	terminal_print(term, LOOK_FAINT, " %-*s %8s %8s %7s %6s %8s %8s %9s", NAME_WIDTH, "QUEUE",
	               "READY", "DELAYED", "RUNNING", "DEAD", "DONE/S", "FAILED/S", "OLDEST");
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
	terminal_print(term, LOOK_FAINT, "   %-*s %6s %-*s %s", NAME_WIDTH, "RUNNER", "SHARDS",
	               NAME_WIDTH, "HOST", "STATE");
	terminal_line_end(term);
	for (size_t i = 0; i < r->count && i < t->lines[SECTION_RUNNERS]; i++) {
		const struct baton_runner_info *info = &r->infos[i];
		char mark[] = {' ', letter_of(i), ' ', '\0'};
		char state[TEXT_SHOWN(BATON_NAME_MAX)];
		bool well = strcmp(info->state, "attached") == 0;
		terminal_colour(term, 1 + (unsigned)(i % COLOURS), mark);
		add_name(term, LOOK_PLAIN, info->name, NAME_WIDTH);
		terminal_print(term, LOOK_PLAIN, "%6" PRIu32 " ", shards_of(r, i));
		add_name(term, LOOK_PLAIN, info->host, NAME_WIDTH);
		terminal_add(term, well ? LOOK_PLAIN : LOOK_BAD,
		             text_show(baton_str_z(info->state), "", state));
		terminal_line_end(term);
	}
}

/* How many lines the shards of a queue take. */
static unsigned map_lines(const struct top *t, const struct sight_queue *q)
{
	unsigned width =
		t->terminal.columns > NAME_WIDTH + 2 ? t->terminal.columns - NAME_WIDTH - 2 : 1;
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
		add_name(term, LOOK_PLAIN, i == 0 ? q->info.name : " ", NAME_WIDTH);
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
	size_t chosen = failure_chosen(t);
	unsigned lines = t->lines[SECTION_FAILURES];
	size_t first = first_of(chosen, lines);
	terminal_print(term, LOOK_FAINT, " %-10s %-12s %-12s %7s %9s  %s", "DEAD", "QUEUE", "LANE",
	               "ATTEMPT", "AGO",
	               t->sight.more ? "ERROR (not all were looked at)" : "ERROR");
	terminal_line_end(term);
	for (size_t i = first; i < t->sight.failure_count && i < first + lines; i++)
		draw_failure(t, &t->sight.failures[i], t->panel == PANEL_FAILURES && i == chosen);
}

/* The picture. */

/* Shares out the lines that are there: everybody gets what it wants, in turns. */
static void lines_share(struct top *t)
{
	unsigned wanted[SECTIONS] = {0};
	const unsigned fixed = 3 + SECTIONS; /* the first two, the last, and a title each */
	unsigned left = t->terminal.rows > fixed ? t->terminal.rows - fixed : 0;
	wanted[SECTION_QUEUES] = (unsigned)t->sight.queue_count;
	wanted[SECTION_RUNNERS] = (unsigned)t->sight.runners.count;
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

static void draw(struct top *t)
{
	terminal_begin(&t->terminal);
	lines_share(t);
	draw_head(t);
	draw_queues(t);
	draw_runners(t);
	draw_shards(t);
	draw_failures(t);
	draw_foot(t);
	terminal_show(&t->terminal);
}

/* Keys. */

static void choose(struct top *t, int step)
{
	bool queues = t->panel == PANEL_QUEUES;
	size_t count = queues ? t->sight.queue_count : t->sight.failure_count;
	size_t chosen = queues ? queue_chosen(t) : failure_chosen(t);
	if (count == 0)
		return;
	if (step < 0 ? chosen > 0 : chosen + 1 < count)
		chosen = step < 0 ? chosen - 1 : chosen + 1;
	if (queues)
		memcpy(t->queue, t->sight.queues[chosen].info.name, sizeof t->queue);
	else
		t->job = t->sight.failures[chosen].id;
}

static void pause_or_resume(struct top *t)
{
	if (t->panel != PANEL_QUEUES || t->sight.queue_count == 0)
		return;
	const struct baton_queue_info *q = &t->sight.queues[queue_chosen(t)].info;
	char shown[TEXT_SHOWN(BATON_NAME_MAX)];
	enum baton_err e =
		baton_queue_pause(t->store.handle, baton_str_z(q->name), !q->policy.paused);
	cut(q->name, NAME_WIDTH, shown);
	if (e == BATON_OK)
		tell(t, "%s is %s", shown, q->policy.paused ? "resumed" : "paused");
	else
		tell(t, "%s: %s", shown, baton_err_detail());
}

static void revive(struct top *t, const struct baton_batch_id *id)
{
	enum baton_err answer;
	enum baton_err e = baton_work_revive(t->store.handle, id, 1, &answer);
	if (e != BATON_OK)
		tell(t, "job %s: %s", id->text, baton_err_detail());
	else
		tell(t, "job %s is %s", id->text,
		     answer == BATON_OK ? "ready" : "not dead any more");
}

static void cancel(struct top *t, const struct baton_batch_id *id)
{
	enum baton_cancelled answer;
	enum baton_err e = baton_work_cancel(t->store.handle, id, 1, &answer);
	if (e != BATON_OK)
		tell(t, "job %s: %s", id->text, baton_err_detail());
	else
		tell(t, "job %s is %s", id->text,
		     answer == BATON_CANCEL_MISSING ? "not there any more" : "cancelled");
}

/* What cannot be taken back is asked for first. */
static void act(struct top *t, char key)
{
	if (t->panel != PANEL_FAILURES || t->sight.failure_count == 0)
		return;
	t->job = t->sight.failures[failure_chosen(t)].id;
	if (key == 'r') {
		revive(t, &t->job);
	} else {
		t->asked = key;
		tell(t, "cancel job %s, so that nothing of it is left? y or n", t->job.text);
	}
}

/* True: it was about what had been asked. */
static bool answer(struct top *t, int key)
{
	if (t->asked == 0)
		return false;
	t->asked = 0;
	t->message[0] = '\0';
	if (key == 'y')
		cancel(t, &t->job);
	return true;
}

static void press(struct top *t, int key)
{
	if (answer(t, key))
		return;
	t->message[0] = '\0';
	if (key == KEY_UP || key == 'k')
		choose(t, -1);
	else if (key == KEY_DOWN || key == 'j')
		choose(t, 1);
	else if (key == '\t')
		t->panel = (enum panel)((t->panel + 1) % PANELS);
	else if (key == 'p')
		pause_or_resume(t);
	else if (key == 'r' || key == 'c')
		act(t, (char)key);
}

/* Looks again; what it saw last stays if that fails, and the reason is shown. */
static void look(struct top *t)
{
	struct sight now = {.queues = NULL};
	enum baton_err e =
		sight_take(&now, t->store.handle, t->sight.taken.ns > 0 ? &t->sight : NULL);
	if (e != BATON_OK) {
		tell(t, "%s", e == BATON_NO_MEMORY ? "no memory" : baton_err_detail());
		sight_done(&now);
		return;
	}
	sight_done(&t->sight);
	t->sight = now;
}

static int left_ms(const struct top *t)
{
	int64_t passed = (wall_now().boot.ns - t->sight.taken.ns) / 1000000;
	return passed >= t->interval_ms ? 0 : t->interval_ms - (int)passed;
}

static int watch(struct top *t)
{
	if (!terminal_open(&t->terminal, t->out)) {
		complain("top needs a terminal; 'baton top --once' prints how things are");
		return EX_USAGE;
	}
	int key = KEY_NONE;
	while (key != 'q' && key != KEY_END) {
		if (left_ms(t) == 0)
			look(t);
		draw(t);
		key = terminal_key(&t->terminal, left_ms(t));
		if (key == KEY_NONE)
			continue;
		press(t, key);
		look(t);
	}
	terminal_close(&t->terminal);
	return EX_OK;
}

/* Once. */

static void failures_print(struct top *t)
{
	struct line line = {.out = t->out};
	for (size_t i = 0; i < t->sight.failure_count; i++) {
		const struct sight_failure *f = &t->sight.failures[i];
		line_print(&line, "dead: job %s of ", f->id.text);
		line_shown(&line, baton_str_z(f->queue));
		if (f->lane[0])
			line_text(&line, ", lane ");
		line_shown(&line, baton_str_z(f->lane));
		line_print(&line, ", attempt %" PRIu32 ": ", f->attempt);
		line_shown(&line, (struct baton_str){f->error, f->error_len});
		line_end(&line);
	}
}

static void failures_json(struct top *t)
{
	for (size_t i = 0; i < t->sight.failure_count; i++) {
		const struct sight_failure *f = &t->sight.failures[i];
		struct json j = {.line = {.out = t->out}};
		json_open(&j, NULL);
		json_text(&j, "job", f->id.text);
		json_text(&j, "queue", f->queue);
		job_json_lane(&j, baton_str_z(f->lane));
		json_number(&j, "attempt", f->attempt);
		json_time(&j, "ended_at", f->at);
		json_bytes(&j, "error", (struct baton_str){f->error, f->error_len});
		json_close(&j);
		json_end(&j);
	}
}

static int cannot(const struct top *t, enum baton_err e)
{
	if (e != BATON_NO_MEMORY)
		return store_fail(&t->store, e);
	complain("no memory for what there is");
	return EX_OSERR;
}

static enum baton_err runners_tell(struct top *t)
{
	struct figures figures = {.all = NULL};
	enum baton_err e = figures_read(&figures, &t->sight.runners, t->store.handle);
	if (e == BATON_OK)
		runners_json(&t->sight.runners, &figures, t->out);
	figures_done(&figures);
	return e;
}

static int print(struct top *t)
{
	enum baton_err e = sight_take(&t->sight, t->store.handle, NULL);
	if (e != BATON_OK)
		return cannot(t, e);
	for (size_t i = 0; i < t->sight.queue_count; i++) {
		if (t->store.json)
			queue_json(t->out, &t->sight.queues[i].info);
		else
			queues_print(t->out, &t->sight.queues[i].info, 1, i == 0);
	}
	if (!t->store.json) {
		e = runners_print(&t->sight.runners, t->out);
		failures_print(t);
	} else {
		e = runners_tell(t);
		failures_json(t);
	}
	return e == BATON_OK ? EX_OK : cannot(t, e);
}

static bool take(void *arg, int option, const char *value)
{
	struct top *t = arg;
	struct baton_duration d;
	if (option == OPTION_ONCE) {
		t->once = true;
		return true;
	}
	if (option != OPTION_INTERVAL)
		return store_option(&t->store, option, value);
	char shown[SHOWN_MAX];
	if (baton_duration_parse(baton_str_z(value), &d) != BATON_OK ||
	    d.ns < INTERVAL_MIN_MS * INT64_C(1000000) ||
	    d.ns > INTERVAL_MAX_MS * INT64_C(1000000)) {
		complain("--interval is '%s': a time from 100ms to 1h is needed",
		         show(value, shown));
		return false;
	}
	t->interval_ms = (int)(d.ns / 1000000);
	return true;
}

int cmd_top(struct out *out, int argc, char **argv)
{
	static struct top top; /* large */
	struct operands operands = {.max = 0};
	const struct reading reading = {options, &operands, take, &top};
	int status;
	top = (struct top){.out = out, .interval_ms = INTERVAL_MS};
	if (!reading_do(&reading, out, argc, argv, &status))
		return status;
	if (top.store.json && !top.once) {
		complain("--json is for --once");
		return EX_USAGE;
	}
	status = store_open(&top.store, STORE_EXISTING);
	if (status == EX_OK)
		status = top.once ? print(&top) : watch(&top);
	sight_done(&top.sight);
	store_close(&top.store);
	return status;
}
