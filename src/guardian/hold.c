/* A subject that a guardian holds, as a claim or from a source, and what keeps it. */
#include "guardian/hold.h"

#include <time.h>

#include <baton/clock.h>

#include "base/fail.h"

/* How long a stopped process may be in the way, and how long to do nothing between two attempts. */
#define BUSY_MS 2000
#define BUSY_PAUSE_NS 1000000

/* How long it takes at most until a loss is noticed. A claim without a ttl is lost only by force or
 * with the fleet's file; looking costs less than a microsecond. */
#define LOOK_MS 100

/* How much of the ttl is left when all that runs is killed, at most; and how much of it there is
 * for the time from SIGTERM to SIGKILL, at most. The first third is over when it is renewed; in
 * what is left a store that does not answer has its chance. */
#define MARGIN_MS 500
#define MARGIN_PART 20
#define DRIFT_PART 1000 /* two clocks may differ by that, even if one is being corrected */
#define GRACE_PART 4

/* How long to wait for a source to take back what it gave. */
#define RELEASE_MS 10000

static struct baton_mono now_boot(void)
{
	const struct baton_clock *clock = baton_clock_boot();
	return clock->now(clock);
}

/* Whether to ask again after a short pause: for so long from the first time that it was busy. */
static bool again(enum baton_err e, struct baton_mono *limit)
{
	if (e == BATON_BUSY && limit->ns == 0)
		*limit = baton_mono_add(now_boot(), baton_duration_ms(BUSY_MS));
	if (e != BATON_BUSY || !baton_mono_live(*limit, now_boot()))
		return false;
	struct timespec pause = {.tv_nsec = BUSY_PAUSE_NS};
	nanosleep(&pause, NULL);
	return true;
}

static enum baton_err join(struct hold *h, const struct hold_ask *ask)
{
	struct baton_fleet_options options = {.path = ask->fleet, .owner = ask->owner};
	struct baton_mono limit = {0};
	enum baton_err e;
	do
		e = baton_fleet_join(&options, &h->fleet);
	while (again(e, &limit));
	return e;
}

static enum baton_err take_claim(struct hold *h, const struct hold_ask *ask,
                                 struct baton_claim_holder *ret_holder)
{
	enum baton_err e = h->fleet ? BATON_OK : join(h, ask);
	if (e != BATON_OK)
		return e;
	struct baton_claim_ask claim = {
		.subject = ask->subject,
		.ttl = ask->ttl,
		.until = ask->until,
	};
	struct baton_mono limit = {0};
	do
		e = ask->wait ? baton_claim_wait(h->fleet, &claim, &h->claim, ret_holder)
		              : baton_claim_try(h->fleet, &claim, &h->claim, ret_holder);
	while (again(e, &limit));
	if (e != BATON_OK)
		return e;
	h->since = h->next = now_boot();
	h->limit = BATON_MONO_NEVER;
	h->fence = h->claim.fence;
	h->beside = ask->fleet;
	return BATON_OK;
}

static struct baton_duration shorter(struct baton_duration a, struct baton_duration b)
{
	return a.ns < b.ns ? a : b;
}

static struct baton_mono before(struct baton_mono t, struct baton_duration d)
{
	return baton_mono_add(t, (struct baton_duration){-d.ns});
}

/* When what runs under it has to be dead, if it was renewed by a request that was sent then. */
static struct baton_mono limit_of(const struct hold *h, struct baton_mono sent)
{
	struct baton_duration part = {h->ttl.ns / MARGIN_PART};
	struct baton_duration most = baton_duration_ms(MARGIN_MS);
	most.ns += h->ttl.ns / DRIFT_PART;
	return before(baton_mono_add(sent, h->ttl), shorter(part, most));
}

/* When the end has to begin so that all are dead at the limit. */
static struct baton_mono end_of(const struct hold *h)
{
	return before(h->limit, shorter(h->grace, (struct baton_duration){h->ttl.ns / GRACE_PART}));
}

static enum baton_err take_tenure(struct hold *h, const struct hold_ask *ask,
                                  struct baton_claim_holder *ret_holder)
{
	struct baton_guardian_tenure tenure = {.beside = NULL};
	/* Nothing runs now, so there is time for one that has not come back yet. */
	renewer_join(&h->renewer);
	fail_detail("%s", "");
	enum baton_err e = ask->source->take(ask->source->arg, ask->until, &tenure, ret_holder);
	if (e != BATON_OK)
		return e;
	e = renewer_start(&h->renewer, ask->source, h->ttl, tenure.sent);
	if (e != BATON_OK) {
		ask->source->release(ask->source->arg);
		return e;
	}
	h->since = tenure.sent;
	h->next = now_boot();
	h->limit = limit_of(h, tenure.sent);
	h->fence = tenure.fence;
	h->beside = tenure.beside;
	return BATON_OK;
}

enum baton_err hold_take(struct hold *h, const struct hold_ask *ask,
                         struct baton_claim_holder *ret_holder)
{
	h->source = ask->source;
	h->ttl = ask->ttl;
	h->grace = ask->grace;
	return h->source ? take_tenure(h, ask, ret_holder) : take_claim(h, ask, ret_holder);
}

static enum baton_err keep_claim(struct hold *h, struct baton_mono now)
{
	struct baton_duration pause = baton_duration_ms(LOOK_MS);
	enum baton_err e = baton_fleet_is_current(h->fleet) ? BATON_OK : BATON_NOT_HELD;
	if (e == BATON_OK && h->ttl.ns > 0) {
		if (h->ttl.ns / 3 < pause.ns)
			pause.ns = h->ttl.ns / 3 + 1;
		struct baton_duration left;
		e = baton_claim_check(&h->claim, &left);
		if (e == BATON_OK && left.ns <= h->ttl.ns - h->ttl.ns / 3)
			e = baton_claim_renew(&h->claim, h->ttl);
	} else if (e == BATON_OK) {
		e = baton_claim_check(&h->claim, NULL);
	}
	h->next = baton_mono_add(now, pause);
	return e;
}

/* The renewer keeps it; here is only what must happen in time whatever becomes of that. */
static enum baton_err keep_tenure(struct hold *h, struct baton_mono now)
{
	struct renewer_news news;
	renewer_look(&h->renewer, &news);
	h->limit = limit_of(h, news.sent);
	struct baton_mono end = end_of(h);
	enum baton_err e = news.lost ? BATON_NOT_HELD : BATON_OK;
	if (e == BATON_OK && !baton_mono_live(end, now))
		e = fail(BATON_NOT_HELD, "it could not be renewed in time%s%s",
		         news.why[0] ? ": " : "", news.why);
	h->next = baton_mono_add(now, baton_duration_ms(LOOK_MS));
	if (end.ns < h->next.ns)
		h->next = end;
	return e;
}

enum baton_err hold_keep(struct hold *h, struct baton_mono now)
{
	fail_detail("%s", "");
	return h->source ? keep_tenure(h, now) : keep_claim(h, now);
}

static bool release_tenure(struct hold *h)
{
	struct baton_mono until = baton_mono_add(now_boot(), baton_duration_ms(RELEASE_MS));
	return renewer_stop(&h->renewer, h->limit.ns < until.ns ? h->limit : until);
}

bool hold_release(struct hold *h)
{
	bool done = true;
	if (h->source)
		done = release_tenure(h);
	else
		baton_claim_done(&h->claim);
	h->claim = (struct baton_claim){.fleet = NULL};
	h->next = BATON_MONO_NEVER;
	return done;
}

void hold_done(struct hold *h)
{
	baton_fleet_leave(h->fleet);
	h->fleet = NULL;
}
