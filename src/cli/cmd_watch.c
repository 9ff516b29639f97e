/* baton watch: what happens in a fleet, as it happens. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sysexits.h>

#include "command.h"
#include "holds.h"
#include "reading.h"
#include "where.h"

#define OPTION_JSON WHERE_NEXT

/* How often it is looked whether somebody still reads. */
#define LOOK_S 1

struct view {
	struct out *out;
	struct baton_watch *watch;
	struct where where;
	struct subject_filter filter;
	bool json;
	struct json writer;
};

/* What a signal ends; here, because a handler has no other way to find it. */
static struct baton_cancel ended;

static void on_signal(int number)
{
	int kept = errno;
	(void)number;
	baton_cancel(&ended);
	errno = kept;
}

/* A signal that was ignored from the beginning, as under nohup(1), stays so. */
static void signals_take(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = on_signal};
	struct sigaction before;
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
	}
	action.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &action, NULL);
}

static bool is_ended(void)
{
	return __atomic_load_n(&ended.word, __ATOMIC_SEQ_CST) != 0;
}

/* Begins an event for programs: when and what. */
static struct json *event_open(struct view *v, struct baton_store_time time, const char *kind)
{
	json_open(&v->writer, NULL);
	json_time(&v->writer, "time", time);
	json_text(&v->writer, "event", kind);
	return &v->writer;
}

static void event_close(struct json *j)
{
	json_close(j);
	json_end(j);
}

/* Begins a line for people: when and what. */
static struct line *line_open(struct view *v, struct baton_store_time time, const char *kind)
{
	char text[WALL_TEXT];
	struct line *line = &v->writer.line;
	line_text(line, wall_print_ms(time, text));
	line_print(line, "  %-8s  ", kind);
	return line;
}

/* What an event or a hold says, for people. */
static void put_particulars(struct line *line, baton_fence fence, const char *subject,
                            const char *owner)
{
	line_print(line, "%15" PRIu64 "  ", fence.v);
	line_text(line, subject);
	line_text(line, "  ");
	line_text(line, owner);
	line_end(line);
}

static void tell_hold(struct view *v, const struct hold *hold, const struct wall *now)
{
	char subject[SUBJECT_SHOWN];
	char owner[OWNER_SHOWN];
	if (v->json) {
		struct json *j = event_open(v, now->time, "held");
		hold_json(j, hold, now->time);
		event_close(j);
		return;
	}
	put_particulars(line_open(v, now->time, "held"), hold->fence,
	                subject_show(hold->space, hold->label, subject),
	                owner_show(hold->owner, hold->pid, owner));
}

static void tell_event(struct view *v, const struct baton_event *event)
{
	struct baton_store_time time = wall_now().time;
	const char *kind = baton_event_name(event->kind);
	struct baton_str owner = baton_str_z(event->owner);
	char subject[SUBJECT_SHOWN];
	char shown[OWNER_SHOWN];
	if (!v->json) {
		put_particulars(line_open(v, time, kind), event->fence,
		                subject_show(event->space, event->label, subject),
		                owner_show(owner, event->pid, shown));
		return;
	}
	struct json *j = event_open(v, time, kind);
	json_bytes(j, "namespace", event->space);
	json_bytes(j, "label", event->label);
	json_number(j, "fence", event->fence.v);
	json_bytes(j, "owner", owner);
	pid_json(j, event->pid);
	event_close(j);
}

/* Tells a number: how many are held, or how many events were lost. */
static void tell_count(struct view *v, const char *kind, const char *what, uint64_t count)
{
	struct baton_store_time time = wall_now().time;
	if (v->json) {
		struct json *j = event_open(v, time, kind);
		json_number(j, what, count);
		event_close(j);
		return;
	}
	struct line *line = line_open(v, time, kind);
	line_print(line, "%15" PRIu64 "  %s", count, what);
	line_end(line);
}

/* Tells all who hold something now. */
static int tell_all(struct view *v)
{
	struct wall now = wall_now();
	struct holds holds;
	if (!holds_take(v->watch, &now, &v->filter, &holds)) {
		complain("no memory for the list of holders");
		return EX_OSERR;
	}
	for (size_t i = 0; i < holds.count && v->out->errnum == 0 && !is_ended(); i++)
		tell_hold(v, holds.items[i], &now);
	tell_count(v, "synced", "held", holds.count);
	holds_done(&holds);
	return EX_OK;
}

/* Whether nobody can read any more what would be written. */
static bool is_unread(const struct out *out)
{
	struct pollfd fd = {.fd = fileno(out->file)};
	return poll(&fd, 1, 0) > 0 && (fd.revents & (POLLERR | POLLHUP | POLLNVAL));
}

/* Tells what happens until it is over. */
static int follow(struct view *v)
{
	int status = tell_all(v);
	while (status == EX_OK && v->out->errnum == 0) {
		struct baton_mono until = baton_mono_add(wall_now().boot, baton_duration_s(LOOK_S));
		struct baton_event event;
		uint64_t lost;
		enum baton_err e = baton_watch_next(v->watch, until, &ended, &event, &lost);
		if (e == BATON_CANCELLED || is_ended())
			break;
		if (e == BATON_OK && subject_matches(&v->filter, event.space, event.label)) {
			tell_event(v, &event);
		} else if (e == BATON_FULL) {
			tell_count(v, "lost", "lost", lost);
			status = tell_all(v);
		} else if (e != BATON_OK && e != BATON_TIMEOUT) {
			return where_fail(&v->where, e);
		} else if (is_unread(v->out)) {
			break;
		}
	}
	/* Whoever stops reading, or asks it to end while it writes, has had enough of it. */
	if (v->out->errnum == EPIPE || (v->out->errnum == EINTR && is_ended()))
		v->out->errnum = 0;
	return status;
}

static int run(struct view *v)
{
	int status = where_find(&v->where);
	if (status == EX_OK)
		status = where_watch(&v->where, &v->watch);
	if (status != EX_OK)
		return status;
	if (!v->watch)
		return where_absent(&v->where);
	signals_take();
	status = follow(v);
	baton_watch_close(v->watch);
	return status;
}

static bool take(void *arg, int option, const char *value)
{
	struct view *view = arg;
	if (!where_option(&view->where, option, value))
		view->json = true;
	return true;
}

int cmd_watch(struct out *out, int argc, char **argv)
{
	static const struct option options[] = {
		WHERE_OPTIONS,
		{"json", no_argument, NULL, OPTION_JSON},
		{0},
	};
	struct view view = {.out = out, .writer = {.line = {.out = out}}};
	struct operands which = {.max = 1};
	const struct reading reading = {options, &which, take, &view};
	int status;
	if (!reading_do(&reading, out, argc, argv, &status))
		return status;
	if (!subject_filter_parse(operand_at(&which, 0), &view.filter))
		return EX_USAGE;
	return run(&view);
}
