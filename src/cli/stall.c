/* What a job that is ready waits for, as it is told. */
#include "stall.h"

#include <inttypes.h>

#include "wall.h"

static const char *const names[] = {
	[BATON_STALL_PULLER] = "puller",    [BATON_STALL_HOLDER] = "holder",
	[BATON_STALL_NO_RUNNER] = "nobody", [BATON_STALL_DETACHED] = "detached",
	[BATON_STALL_TRANSIT] = "transit",  [BATON_STALL_DEAD] = "dead",
	[BATON_STALL_SLOTS] = "slots",      [BATON_STALL_TURN] = "turn",
	[BATON_STALL_PAUSED] = "paused",
};

const char *stall_name(enum baton_stall stall)
{
	return names[stall];
}

static void runner(struct line *line, const struct baton_stalled *s)
{
	line_text(line, "runner ");
	line_shown(line, baton_str_z(s->runner.name));
}

static void tell_transit(struct line *line, const struct baton_stalled *s, bool owned)
{
	if (owned) {
		line_text(line, "is ready, but ");
		runner(line, s);
		line_print(line, " gives its shard %" PRIu32 " up", s->shard);
	} else {
		line_print(line, "is ready, but nobody has its shard %" PRIu32 " now: ", s->shard);
		runner(line, s);
		line_text(line, " serves its queue");
	}
}

static void tell_slots(struct line *line, const struct baton_stalled *s,
                       struct baton_store_time now)
{
	char ago[BATON_DURATION_TEXT];
	line_text(line, "is ready, but ");
	runner(line, s);
	line_print(line, " has all of its %" PRIu64 " slots in use, as it told %s ago", s->slots,
	           wall_span(baton_store_time_sub(now, s->told), ago));
}

static void tell_nobody(struct line *line, const struct baton_work_info *info)
{
	line_text(line, "is ready, but nobody works on its queue: 'baton work ");
	line_shown(line, info->queue);
	line_text(line, " -- COMMAND' does");
}

void stall_tell_paused(struct line *line, const struct baton_work_info *info)
{
	line_text(line, "is ready, but its queue is paused: 'baton queue resume ");
	line_shown(line, info->queue);
	line_text(line, "' goes on");
}

void stall_tell(struct line *line, const struct baton_work_info *info,
                const struct baton_stalled *s, struct baton_store_time now)
{
	switch (s->stall) {
	case BATON_STALL_PULLER:
		line_text(line, "is ready: nobody has asked for it yet");
		break;
	case BATON_STALL_HOLDER:
		line_text(line, "is ready: the holder of its lane has not asked for it yet");
		break;
	case BATON_STALL_NO_RUNNER:
		tell_nobody(line, info);
		break;
	case BATON_STALL_DETACHED:
		line_text(line, "is ready, but ");
		runner(line, s);
		line_text(line, " is ");
		line_shown(line, baton_str_z(s->runner.state));
		break;
	case BATON_STALL_TRANSIT:
		tell_transit(line, s, s->owned);
		break;
	case BATON_STALL_DEAD:
		line_text(line, "is ready, but ");
		runner(line, s);
		line_print(line, ", which has its shard %" PRIu32 ", is dead", s->shard);
		break;
	case BATON_STALL_SLOTS:
		tell_slots(line, s, now);
		break;
	case BATON_STALL_TURN:
		line_text(line, "is ready, and ");
		runner(line, s);
		line_print(line, ", which has its shard %" PRIu32 ", gets it next", s->shard);
		break;
	case BATON_STALL_PAUSED:
		stall_tell_paused(line, info);
		break;
	}
}

void stall_json(struct json *j, const struct baton_stalled *s)
{
	if (s)
		json_text(j, "stall", stall_name(s->stall));
	else
		json_null(j, "stall");
	if (s && s->known)
		json_text(j, "runner", s->runner.name);
	else
		json_null(j, "runner");
	if (s && s->known)
		json_number(j, "shard", s->shard);
	else
		json_null(j, "shard");
}
