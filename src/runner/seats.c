/* The singletons that a runner offers. */
#include "runner/seats.h"

#include "base/fail.h"
#include "base/mem.h"
#include "store/store.h"

#define NUDGE_MS 1000 /* between two looks at schedules because of news, which may be any */

static const struct baton_runner_options *options_of(const struct seats *s)
{
	return &s->o.settings->o;
}

static struct baton_mono now_of(const struct seats *s)
{
	return s->clock->now(s->clock);
}

static bool has_commands(const struct baton_runner_options *o)
{
	for (size_t i = 0; i < o->singleton_count; i++) {
		if (o->singletons[i].command)
			return true;
	}
	return false;
}

static enum baton_err add(struct seats *s, const struct baton_singleton *what)
{
	const struct baton_runner_options *o = options_of(s);
	const struct duty_options options = {
		.alloc = s->o.alloc,
		.clock = s->clock,
		.log = o->log,
		.detach = s->o.detach,
		.inbox = s->o.inbox,
		.waiter = &s->waiter,
		.beside = s->beside,
		.lock = o->store->lock_path,
		.lock_at = o->store->lock_at,
		.store = o->store->name,
	};
	struct baton_duty *d = &s->duties[s->count++];
	enum baton_err e = duty_init(d, what, &options);
	seat_init(&d->seat, o->ask.ttl, o->margin, o->beat);
	return e;
}

static enum baton_err add_all(struct seats *s)
{
	const struct baton_runner_options *o = options_of(s);
	s->ticker = (struct ticker){.store = o->store, .log = o->log};
	const struct baton_singleton ticker = ticker_singleton(&s->ticker);
	enum baton_err e = o->schedules ? add(s, &ticker) : BATON_OK;
	for (size_t i = 0; i < o->singleton_count && e == BATON_OK; i++)
		e = add(s, &o->singletons[i]);
	return e;
}

static size_t count_of(const struct baton_runner_options *o)
{
	return o->singleton_count + (o->schedules ? 1 : 0);
}

enum baton_err seats_init(struct seats *s, const struct seats_options *options)
{
	*s = (struct seats){.o = *options, .clock = baton_clock_boot()};
	s->waiter.fd = s->waiter.timer = -1;
	const struct baton_runner_options *o = options_of(s);
	size_t count = count_of(o);
	if (count == 0)
		return BATON_OK;
	enum baton_err e = has_commands(o) ? beside_find(o->store, s->beside) : BATON_OK;
	if (e != BATON_OK)
		return e;
	e = waiter_init(&s->waiter, false);
	if (e != BATON_OK)
		return e;
	s->duties = mem_new(s->o.alloc, count, sizeof *s->duties);
	if (!s->duties)
		return fail_memory(count * sizeof *s->duties, "singletons");
	e = add_all(s);
	return e == BATON_OK ? usher_init(&s->usher, s->o.inbox, o->store, o->ask.name) : e;
}

void seats_done(struct seats *s)
{
	for (size_t i = 0; i < s->count; i++)
		duty_done(&s->duties[i]);
	usher_done(&s->usher);
	if (s->duties)
		mem_free(s->o.alloc, s->duties, count_of(options_of(s)), sizeof *s->duties);
	s->duties = NULL;
	s->count = 0;
	waiter_done(&s->waiter);
}

static void hear_usher(struct seats *s)
{
	struct usher_answer a;
	if (!s->asking || !usher_answered(&s->usher, &a))
		return;
	struct baton_duty *d = &s->duties[a.seat];
	bool held = d->seat.held;
	s->asking = false;
	/* The loop notices by itself that the store is away, or that it is not. */
	if (a.err == BATON_STORAGE)
		baton_detach_suspect(s->o.detach);
	seat_answered(&d->seat, a.err, &a.lease, a.sent, now_of(s));
	duty_deadline(d);
	if (d->seat.held && !held)
		BATON_LOG(options_of(s)->log, BATON_LOG_DEBUG, "a singleton is held",
		          baton_field_str("singleton", d->what.name),
		          baton_field_uint("fence", d->seat.lease.fence.v));
	if (held && !d->seat.held && d->seat.kind == SEAT_RENEW)
		BATON_LOG(options_of(s)->log, BATON_LOG_WARN, "a singleton is lost",
		          baton_field_str("singleton", d->what.name));
}

/* A command cannot be started now for many reasons: it is tried again as if it had ended. */
static void start(struct seats *s, struct baton_duty *d)
{
	enum baton_err e = duty_start(d);
	d->seat.closed = d->wards == NULL;
	if (e == BATON_YIELD || e == BATON_BUSY) {
		seat_delayed(&d->seat, now_of(s));
		return;
	}
	seat_began(&d->seat, now_of(s));
	if (e == BATON_OK) {
		BATON_LOG(options_of(s)->log, d->what.command ? BATON_LOG_INFO : BATON_LOG_DEBUG,
		          "a singleton begins", baton_field_str("singleton", d->what.name),
		          baton_field_uint("fence", d->fence.v));
		return;
	}
	BATON_LOG(options_of(s)->log, BATON_LOG_ERROR, "a singleton cannot be started",
	          baton_field_str("singleton", d->what.name),
	          baton_field_str("error", baton_str_z(baton_err_detail())));
	seat_ended(&d->seat, now_of(s));
}

static void act_one(struct seats *s, struct baton_duty *d, enum seat_lead lead)
{
	enum seat_lead before = d->seat.lead;
	seat_set(&d->seat, lead);
	if (duty_hear(d))
		seat_ended(&d->seat, now_of(s));
	switch (seat_order(&d->seat, now_of(s))) {
	case SEAT_START:
		start(s, d);
		break;
	case SEAT_STOP:
		duty_stop(d);
		break;
	case SEAT_NOTHING:
		break;
	}
	if (seat_is_leaving(&d->seat))
		duty_clear(d);
	d->seat.closed = d->wards == NULL;
	duty_deadline(d);
	if (lead != before)
		duty_nudge(d);
}

static void ask(struct seats *s)
{
	struct usher_request request;
	for (size_t i = 0; i < s->count && !s->asking; i++) {
		size_t n = (s->turn + i) % s->count;
		struct baton_duty *d = &s->duties[n];
		if (!seat_ask(&d->seat, now_of(s), &request.kind))
			continue;
		request.seat = n;
		request.subject = baton_str_z(d->subject);
		request.ttl = d->seat.ttl;
		request.lease = d->seat.lease;
		usher_ask(&s->usher, &request);
		s->asking = true;
		s->turn = n + 1;
	}
}

/* The ticker, if there is one, is the first. */
static void tell_ticker(struct seats *s)
{
	if (!s->news || s->nudge_at.ns > now_of(s).ns)
		return;
	s->news = false;
	s->nudge_at = baton_mono_add(now_of(s), baton_duration_ms(NUDGE_MS));
	duty_nudge(&s->duties[0]);
}

static struct baton_mono earlier(struct baton_mono a, struct baton_mono b)
{
	return a.ns < b.ns ? a : b;
}

/* While a call is under way there is no other; its answer wakes the loop. */
static struct baton_mono next_of(const struct seats *s)
{
	struct baton_mono next = s->news ? s->nudge_at : BATON_MONO_NEVER;
	for (size_t i = 0; i < s->count; i++) {
		struct seat seat = s->duties[i].seat;
		seat.asked = seat.asked || s->asking;
		next = earlier(next, seat_next(&seat, now_of(s)));
	}
	return next;
}

void seats_act(struct seats *s, enum seat_lead lead)
{
	if (s->count == 0)
		return;
	hear_usher(s);
	for (size_t i = 0; i < s->count; i++)
		act_one(s, &s->duties[i], lead);
	ask(s);
	tell_ticker(s);
	waiter_set(&s->waiter, next_of(s));
}

void seats_news(struct seats *s)
{
	s->news = s->count > 0 && options_of(s)->schedules;
}

void seats_look(struct seats *s)
{
	for (size_t i = 0; i < s->count; i++)
		seat_look(&s->duties[i].seat);
}

bool seats_are_over(const struct seats *s, bool hurry)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct seat *seat = &s->duties[i].seat;
		bool held = seat->held &&
		            baton_mono_live(baton_mono_add(seat->sent, seat->ttl), now_of(s));
		if (seat->works || (!hurry && (held || seat->asked)))
			return false;
	}
	return true;
}

bool seats_have_command(const struct seats *s)
{
	size_t i = 0;
	while (i < s->count && !(s->duties[i].wards && s->duties[i].seat.works))
		i++;
	return i < s->count;
}
