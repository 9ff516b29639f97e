/* The right to be the one instance of a singleton, decided. */
#include "runner/seat.h"

#include "runner/worker.h"

#define DELAY_MS 20 /* until something that is in the way is looked for again */
#define RENEWALS 3  /* in a ttl */

static bool due(struct baton_mono at, struct baton_mono now)
{
	return at.ns <= now.ns;
}

static struct baton_mono earlier(struct baton_mono a, struct baton_mono b)
{
	return a.ns < b.ns ? a : b;
}

void seat_init(struct seat *s, struct baton_duration ttl, struct baton_duration margin,
               struct baton_duration every)
{
	*s = (struct seat){
		.ttl = ttl,
		.margin = margin,
		.every = every,
		.lead = SEAT_LEAVE,
		.closed = true,
	};
}

void seat_set(struct seat *s, enum seat_lead lead)
{
	s->lead = lead;
}

void seat_look(struct seat *s)
{
	if (!s->held)
		s->ask_at = (struct baton_mono){0};
}

struct baton_mono seat_deadline(const struct seat *s)
{
	return baton_mono_add(s->sent, (struct baton_duration){s->ttl.ns - s->margin.ns});
}

struct baton_mono seat_hard_stop(const struct seat *s)
{
	if (!s->held && !s->works)
		return BATON_MONO_NEVER;
	return baton_mono_add(s->sent, (struct baton_duration){s->ttl.ns - s->margin.ns / 2});
}

bool seat_is_leaving(const struct seat *s)
{
	return !s->works && (!s->held || s->lead == SEAT_LEAVE);
}

/* What was asked for without an answer may have been given: with nothing to do under it, it is
 * given back, or expires. */
static bool wants_release(const struct seat *s)
{
	return s->held && s->closed && seat_is_leaving(s);
}

static bool wants_claim(const struct seat *s)
{
	return !s->held && s->closed && !s->works && s->lead == SEAT_LEAD;
}

bool seat_ask(struct seat *s, struct baton_mono now, enum seat_kind *ret_kind)
{
	bool release = wants_release(s);
	if (s->asked || (!s->held && !wants_claim(s)))
		return false;
	/* A release need not wait for the time of the next renewal, unless it failed. */
	if (!due(s->ask_at, now) && !(release && s->kind != SEAT_RELEASE))
		return false;
	s->asked = true;
	s->kind = release ? SEAT_RELEASE : s->held ? SEAT_RENEW : SEAT_CLAIM;
	s->doubt = s->doubt || release;
	*ret_kind = s->kind;
	return true;
}

static void take(struct seat *s, struct baton_mono sent)
{
	s->held = true;
	s->doubt = false;
	s->sent = sent;
	s->ask_at = baton_mono_add(sent, (struct baton_duration){s->ttl.ns / RENEWALS});
}

static void lose(struct seat *s, struct baton_mono now)
{
	s->held = false;
	s->ask_at = baton_mono_add(now, s->every);
}

void seat_answered(struct seat *s, enum baton_err err, const struct baton_lease *lease,
                   struct baton_mono sent, struct baton_mono now)
{
	bool known = err == BATON_OK || err == BATON_YIELD || err == BATON_NOT_HELD;
	s->asked = false;
	if (!known) {
		s->ask_at = baton_mono_add(now, s->every);
	} else if (err == BATON_OK && s->kind != SEAT_RELEASE) {
		if (s->kind == SEAT_CLAIM)
			s->start_at = now;
		s->lease = *lease;
		take(s, sent);
	} else {
		lose(s, now);
	}
}

static bool may_start(const struct seat *s, struct baton_mono now)
{
	return !s->works && s->held && !s->doubt && s->lead == SEAT_LEAD &&
	       !due(seat_deadline(s), now);
}

enum seat_order seat_order(struct seat *s, struct baton_mono now)
{
	bool late = due(seat_deadline(s), now);
	if (s->works && !s->stops && (s->lead == SEAT_LEAVE || !s->held || late)) {
		s->stops = true;
		return SEAT_STOP;
	}
	if (may_start(s, now) && due(s->start_at, now))
		return SEAT_START;
	return SEAT_NOTHING;
}

void seat_began(struct seat *s, struct baton_mono now)
{
	s->works = true;
	s->stops = false;
	s->began_at = now;
}

void seat_delayed(struct seat *s, struct baton_mono now)
{
	s->start_at = baton_mono_add(now, baton_duration_ms(DELAY_MS));
}

/* What was told to stop did nothing wrong. */
void seat_ended(struct seat *s, struct baton_mono now)
{
	s->start_at = now;
	if (!s->stops) {
		s->pause = worker_pause(s->pause, baton_mono_sub(now, s->began_at));
		s->start_at = baton_mono_add(now, s->pause);
	}
	s->works = false;
	s->stops = false;
}

struct baton_mono seat_next(const struct seat *s, struct baton_mono now)
{
	struct baton_mono next = BATON_MONO_NEVER;
	const struct baton_mono at_once = {0};
	bool release = wants_release(s) && s->kind != SEAT_RELEASE;
	if (!s->asked && (s->held || wants_claim(s)))
		next = release ? at_once : s->ask_at;
	if (s->works && !s->stops)
		next = earlier(next, seat_deadline(s));
	if (may_start(s, now))
		next = earlier(next, s->start_at);
	return next;
}
