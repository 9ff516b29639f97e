/* Who holds what, as it was at one moment, in order of their names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holds.h"

#define ROOM_FIRST 64

/* What is told to the visitor. */
struct taking {
	const struct subject_filter *filter;
	const struct wall *now;
	struct holds holds;
	bool failed;
};

static struct baton_str copy(char **end, struct baton_str s)
{
	char *at = *end;
	if (s.len > 0)
		memcpy(at, s.ptr, s.len);
	*end += s.len;
	return (struct baton_str){at, s.len};
}

static bool has_room(struct holds *holds)
{
	if (holds->count < holds->room)
		return true;
	size_t room = holds->room ? 2 * holds->room : ROOM_FIRST;
	struct hold **items = realloc(holds->items, room * sizeof(struct hold *));
	if (!items)
		return false;
	holds->items = items;
	holds->room = room;
	return true;
}

bool holds_add(struct holds *holds, const struct hold *hold)
{
	if (!has_room(holds))
		return false;
	struct hold *h = malloc(sizeof *h + hold->space.len + hold->label.len + hold->owner.len);
	if (!h)
		return false;
	char *end = h->text;
	*h = *hold;
	h->space = copy(&end, hold->space);
	h->label = copy(&end, hold->label);
	h->owner = copy(&end, hold->owner);
	holds->items[holds->count++] = h;
	return true;
}

static bool take(const struct baton_subject *subject, const struct baton_claim_holder *holder,
                 void *arg)
{
	struct taking *t = arg;
	if (!subject_matches(t->filter, subject->space, subject->label))
		return true;
	const struct hold hold = {
		.since = holder->since.ns > 0 ? wall_at(t->now, holder->since)
	                                      : BATON_STORE_TIME_NEVER,
		.expires = wall_at(t->now, holder->expires),
		.fence = holder->fence,
		.incarnation = holder->incarnation,
		.pid = holder->pid,
		.space = subject->space,
		.label = subject->label,
		.owner = baton_str_z(holder->owner),
	};
	t->failed = !holds_add(&t->holds, &hold);
	return !t->failed;
}

static int compare_bytes(struct baton_str a, struct baton_str b)
{
	size_t least = a.len < b.len ? a.len : b.len;
	int order = least > 0 ? memcmp(a.ptr, b.ptr, least) : 0;
	return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare(const void *a, const void *b)
{
	const struct hold *one = *(struct hold *const *)a;
	const struct hold *other = *(struct hold *const *)b;
	int order = compare_bytes(one->space, other->space);
	return order != 0 ? order : compare_bytes(one->label, other->label);
}

void holds_sort(struct holds *holds)
{
	if (holds->count > 0)
		qsort(holds->items, holds->count, sizeof(struct hold *), compare);
}

bool holds_take(struct baton_watch *watch, const struct wall *now,
                const struct subject_filter *filter, struct holds *ret)
{
	struct taking t = {.filter = filter, .now = now};
	baton_watch_each(watch, now->boot, take, &t);
	if (t.failed) {
		holds_done(&t.holds);
		return false;
	}
	holds_sort(&t.holds);
	*ret = t.holds;
	return true;
}

void holds_done(struct holds *holds)
{
	for (size_t i = 0; i < holds->count; i++)
		free(holds->items[i]);
	free(holds->items);
	*holds = (struct holds){.items = NULL};
}

void pid_json(struct json *j, int32_t pid)
{
	if (pid > 0)
		json_number(j, "pid", (uint64_t)pid);
	else
		json_null(j, "pid");
}

void hold_json(struct json *j, const struct hold *hold, struct baton_store_time now)
{
	char id[BATON_ID_TEXT];
	bool dated = hold->since.ms != BATON_STORE_TIME_NEVER.ms;
	json_bytes(j, "namespace", hold->space);
	json_bytes(j, "label", hold->label);
	json_number(j, "fence", hold->fence.v);
	json_bytes(j, "owner", hold->owner);
	pid_json(j, hold->pid);
	json_text(j, "incarnation", baton_id_print(&hold->incarnation, id));
	json_time(j, "since", hold->since);
	json_span(j, "held_ms",
	          dated ? baton_store_time_sub(now, hold->since) : BATON_DURATION_FOREVER);
	json_time(j, "expires", hold->expires);
	json_span(j, "left_ms", baton_store_time_sub(hold->expires, now));
}

const char *owner_show(struct baton_str owner, int32_t pid, char shown[OWNER_SHOWN])
{
	text_show(owner, "", shown);
	size_t used = strlen(shown);
	if (used == 0)
		snprintf(shown, OWNER_SHOWN, "somebody who has left");
	else
		snprintf(shown + used, OWNER_SHOWN - used, " (pid %d)", (int)pid);
	return shown;
}
