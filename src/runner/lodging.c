/* Connections in the hands of persistent workers. */
#include "runner/lodging.h"

#include <inttypes.h>
#include <stdio.h>

#include <baton/backend.h>

#include "base/check.h"
#include "base/fail.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "runner/commands.h"

enum baton_err lodging_init(struct streams *s)
{
	if (s->o.visits == 0)
		return BATON_OK;
	s->stays = mem_new(s->o.alloc, s->o.visits, sizeof *s->stays);
	if (!s->stays)
		return fail_memory(s->o.visits * sizeof *s->stays, "connections");
	for (uint32_t i = 0; i < s->o.visits; i++) {
		s->stays[i].next = s->spare_stay;
		s->spare_stay = &s->stays[i];
	}
	return BATON_OK;
}

void lodging_done(struct streams *s)
{
	for (uint32_t i = 0; s->stays && i < s->o.visits; i++)
		baton_connection_free(s->stays[i].connection);
	mem_free(s->o.alloc, s->stays, s->o.visits, sizeof *s->stays);
	s->stays = NULL;
}

/* Whoever has served it does no longer, or nobody has: then its client asks again. */
static void end(struct streams *s, struct stays *list, struct stay *stay)
{
	uint64_t visit = stay->visit;
	stays_remove(list, stay);
	baton_connection_free(stay->connection);
	stay->connection = NULL;
	stay->next = s->spare_stay;
	s->spare_stay = stay;
	s->o.left(s->o.arg, visit);
}

void streams_visit(struct streams *s, uint64_t visit, struct baton_connection *connection,
                   baton_fence fence, struct baton_mono now)
{
	struct stay *stay = s->spare_stay;
	CHECK(stay);
	s->spare_stay = stay->next;
	*stay = (struct stay){
		.visit = visit,
		.number = ++s->visits,
		.connection = connection,
		.fence = fence,
		.due = baton_mono_add(now, baton_duration_ms(LODGING_WAIT_MS)),
	};
	stays_add(&s->arriving, stay);
	streams_note(s, stay->due);
	/* Lines are UTF-8, and so are the names of lanes. */
	if (!utf8_is_valid(connection->lane.ptr, connection->lane.len))
		end(s, &s->arriving, stay);
}

/* Who takes one: has room, and the fewest. */
static struct worker *host_of(const struct streams *s)
{
	struct worker *best = NULL;
	for (uint32_t i = 0; i < s->o.processes; i++) {
		struct worker *w = &s->workers[i];
		if (w->is == WORKER_ON && w->stays.count < w->takes &&
		    (!best || w->stays.count < best->stays.count))
			best = w;
	}
	return best;
}

/* Whether some worker that was started a moment ago has not said yet whether it takes any; notes
 * until when that is waited for. */
static bool is_awaited(struct streams *s, struct baton_mono now)
{
	for (uint32_t i = 0; i < s->o.processes; i++) {
		const struct worker *w = &s->workers[i];
		struct baton_mono until =
			baton_mono_add(w->started, baton_duration_ms(LODGING_WAIT_MS));
		if (w->is == WORKER_ON && !w->heard && baton_mono_live(until, now)) {
			streams_note(s, until);
			return true;
		}
	}
	return false;
}

/* Whether all workers that have said it take none. */
static bool is_aloof(const struct streams *s)
{
	bool aloof = false;
	for (uint32_t i = 0; i < s->o.processes; i++) {
		const struct worker *w = &s->workers[i];
		if (w->is == WORKER_ON && w->greeted && w->takes > 0)
			return false;
		aloof = aloof || (w->is == WORKER_ON && w->greeted);
	}
	return aloof;
}

/* One that may be started now; NULL: none. */
static struct worker *idle_of(struct streams *s, struct baton_mono now)
{
	for (uint32_t i = 0; i < s->o.processes; i++) {
		struct worker *w = &s->workers[i];
		if (w->is != WORKER_OFF)
			continue;
		if (now.ns >= w->not_before.ns)
			return w;
		streams_note(s, w->not_before);
	}
	return NULL;
}

/* Says once that there is nobody for them. */
static void complain(struct streams *s, const struct stay *stay)
{
	if (!s->complained)
		BATON_LOG(s->o.log, BATON_LOG_WARN, "no worker takes connections",
		          baton_field_str("lane", stay->connection->lane));
	s->complained = true;
}

/* Without room for it: starts somebody, or waits for what those say who were started. */
static void make_room(struct streams *s, struct baton_mono now)
{
	if (is_awaited(s, now))
		return;
	bool aloof = is_aloof(s);
	struct worker *w = aloof ? NULL : idle_of(s, now);
	if (aloof) {
		complain(s, s->arriving.first);
		end(s, &s->arriving, s->arriving.first);
	} else if (w && streams_begin(s, w, now) != BATON_OK) {
		BATON_LOG(s->o.log, BATON_LOG_ERROR, "a worker cannot be started",
		          baton_field_str("why", baton_str_z(baton_err_detail())));
	}
}

void lodging_assign(struct streams *s, struct baton_mono now)
{
	struct stay *stay;
	while ((stay = s->arriving.first)) {
		struct worker *w = host_of(s);
		if (w) {
			stays_remove(&s->arriving, stay);
			stays_add(&w->stays, stay);
			w->todo = true;
			continue;
		}
		make_room(s, now);
		if (s->arriving.first == stay)
			return;
	}
}

/* It has arrived, as far as its client is concerned. */
static bool give(struct streams *s, struct worker *w, struct stay *stay)
{
	if (worker_pass(w, stay) != BATON_OK) {
		end(s, &w->stays, stay);
		return false;
	}
	baton_connection_welcome(stay->connection);
	stay->given = true;
	stay->due = BATON_MONO_NEVER;
	return true;
}

void lodging_fill(struct streams *s, struct worker *w)
{
	struct stay *next;
	for (struct stay *stay = w->stays.first; stay; stay = next) {
		next = stay->next;
		if (stay->given && !stay->leave)
			continue;
		/* Behind a line that passes one there is no other before it was sent. */
		if (w->passing || worker_is_full(w)) {
			w->todo = true;
			return;
		}
		/* Without memory for a word it is not told; its time is over all the same. */
		if (stay->given)
			(void)worker_send_away(w, stay);
		else
			(void)give(s, w, stay);
		stay->leave = false;
	}
}

void lodging_written(struct streams *s, struct worker *w)
{
	struct stay *next;
	if (w->passing)
		return;
	for (struct stay *stay = w->stays.first; stay; stay = next) {
		next = stay->next;
		if (!stay->given || !stay->connection)
			continue;
		BATON_LOG(s->o.log, BATON_LOG_ERROR, "a connection cannot be passed to a worker",
		          baton_field_int("pid", w->pid),
		          baton_field_str("lane", stay->connection->lane));
		end(s, &w->stays, stay);
	}
}

static bool greet(struct worker *w, uint32_t takes, char error[REPLY_ERROR])
{
	if (w->greeted) {
		snprintf(error, REPLY_ERROR, "it has said before how many connections it takes");
		return false;
	}
	w->greeted = true;
	w->takes = takes;
	return true;
}

bool lodging_hear(struct streams *s, struct worker *w, const struct reply *reply,
                  char error[REPLY_ERROR])
{
	if (s->o.visits == 0) {
		snprintf(error, REPLY_ERROR, "there are no connections here");
		return false;
	}
	if (reply->about == REPLY_VISITS)
		return greet(w, reply->visits, error);
	struct stay *stay = w->stays.first;
	while (stay && !(stay->given && !stay->connection && stay->number == reply->visit))
		stay = stay->next;
	if (!stay) {
		snprintf(error, REPLY_ERROR,
		         "connection %" PRIu64 " is not one that it has, or has still",
		         reply->visit);
		return false;
	}
	end(s, &w->stays, stay);
	return true;
}

bool lodging_is_late(struct streams *s, struct worker *w, struct baton_mono now)
{
	struct stay *next;
	for (struct stay *stay = w->stays.first; stay; stay = next) {
		next = stay->next;
		if (baton_mono_live(stay->due, now))
			streams_note(s, stay->due);
		else if (stay->given)
			return true;
		else
			end(s, &w->stays, stay);
	}
	return false;
}

void lodging_check(struct streams *s, struct baton_mono now)
{
	struct stay *next;
	for (struct stay *stay = s->arriving.first; stay; stay = next) {
		next = stay->next;
		if (baton_mono_live(stay->due, now)) {
			streams_note(s, stay->due);
			continue;
		}
		complain(s, stay);
		end(s, &s->arriving, stay);
	}
}

void lodging_left(struct streams *s, struct worker *w)
{
	struct stay *stay;
	while ((stay = w->stays.first)) {
		if (stay->given) {
			end(s, &w->stays, stay);
			continue;
		}
		stays_remove(&w->stays, stay);
		stays_add(&s->arriving, stay);
	}
	w->takes = 0;
	w->heard = w->greeted = false;
}

static struct stay *find(const struct stays *list, uint64_t visit)
{
	struct stay *stay = list->first;
	while (stay && stay->visit != visit)
		stay = stay->next;
	return stay;
}

/* The worker is told, and has a while to end it. */
static void send_away(struct streams *s, struct worker *w, struct stay *stay, struct baton_mono now)
{
	stay->leave = true;
	stay->due = baton_mono_add(now, commands_grace(s->o.handler));
	w->todo = true;
	streams_note(s, stay->due);
}

void streams_send_away(struct streams *s, uint64_t visit, struct baton_mono now)
{
	struct stay *stay = find(&s->arriving, visit);
	if (stay) {
		end(s, &s->arriving, stay);
		return;
	}
	for (uint32_t i = 0; i < s->o.processes; i++) {
		struct worker *w = &s->workers[i];
		stay = find(&w->stays, visit);
		if (stay && stay->given)
			send_away(s, w, stay, now);
		else if (stay)
			end(s, &w->stays, stay);
	}
}
