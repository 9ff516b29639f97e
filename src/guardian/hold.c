/* A subject that a guardian holds: the claim and what keeps it. */
#include "guardian/hold.h"

#include <time.h>

#include <baton/clock.h>

/* How long a stopped process may be in the way, and how long to do nothing between two attempts. */
#define BUSY_MS 2000
#define BUSY_PAUSE_NS 1000000

/* How long it takes at most until a loss is noticed. A claim without a ttl is lost only by force or
 * with the fleet's file; looking costs less than a microsecond. */
#define LOOK_MS 100

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

enum baton_err hold_take(struct hold *h, const struct hold_ask *ask,
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
	h->ttl = ask->ttl;
	h->since = h->next = now_boot();
	return BATON_OK;
}

enum baton_err hold_keep(struct hold *h, struct baton_mono now)
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

void hold_release(struct hold *h)
{
	baton_claim_done(&h->claim);
	h->claim = (struct baton_claim){.fleet = NULL};
	h->next = BATON_MONO_NEVER;
}

void hold_done(struct hold *h)
{
	baton_fleet_leave(h->fleet);
	h->fleet = NULL;
}
