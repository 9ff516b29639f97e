/* baton top: how a store stands, all the time. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "command.h"
#include "reading.h"
#include "text.h"
#include "top.h"
#include "wall.h"

enum {
	OPTION_ONCE = STORE_NEXT,
	OPTION_INTERVAL
};

#define INTERVAL_MS 1000
#define INTERVAL_MIN_MS 100
#define INTERVAL_MAX_MS 3600000

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

static void choose(struct top *t, int step)
{
	bool queues = t->panel == PANEL_QUEUES;
	size_t count = queues ? t->sight.queue_count : t->sight.failure_count;
	size_t chosen = queues ? top_queue_chosen(t) : top_failure_chosen(t);
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
	const struct baton_queue_info *q = &t->sight.queues[top_queue_chosen(t)].info;
	char shown[TEXT_SHOWN(BATON_NAME_MAX)];
	enum baton_err e =
		baton_queue_pause(t->store.handle, baton_str_z(q->name), !q->policy.paused);
	top_cut(q->name, TOP_NAME_WIDTH, shown);
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
	t->job = t->sight.failures[top_failure_chosen(t)].id;
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
	t->looked = wall_now().boot;
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
	int64_t passed = (wall_now().boot.ns - t->looked.ns) / 1000000;
	return passed >= t->interval_ms ? 0 : t->interval_ms - (int)passed;
}

static int watch(struct top *t)
{
	if (!terminal_open(&t->terminal, t->out)) {
		complain("top needs a terminal; 'baton top --once' prints how things are");
		return EX_USAGE;
	}
	int key = KEY_NONE;
	look(t);
	while (key != 'q' && key != KEY_END) {
		if (left_ms(t) == 0)
			look(t);
		top_draw(t);
		key = terminal_key(&t->terminal, left_ms(t));
		if (key == KEY_NONE)
			continue;
		press(t, key);
		look(t);
	}
	terminal_close(&t->terminal);
	return EX_OK;
}

static int cannot(const struct top *t, enum baton_err e)
{
	if (e != BATON_NO_MEMORY)
		return store_fail(&t->store, e);
	complain("no memory for what there is");
	return EX_OSERR;
}

static int once(struct top *t)
{
	enum baton_err e = sight_take(&t->sight, t->store.handle, NULL);
	if (e == BATON_OK)
		e = top_print(t);
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
		status = top.once ? once(&top) : watch(&top);
	sight_done(&top.sight);
	store_close(&top.store);
	return status;
}
