/* A subject that a guardian holds: the claim and what keeps it. */
#ifndef GUARDIAN_HOLD_H
#define GUARDIAN_HOLD_H

#include <stdbool.h>

#include <baton/claim.h>
#include <baton/err.h>
#include <baton/fleet.h>
#include <baton/str.h>
#include <baton/time.h>

struct hold_ask {
	const char *fleet; /* NULL: that of baton_fleet_default() */
	struct baton_str owner;
	struct baton_subject *subject;
	struct baton_duration ttl;
	struct baton_mono until; /* how long to wait for it, on baton_clock_boot() */
	bool wait;               /* false: one attempt */
};

/* Begins as zeros. */
struct hold {
	struct baton_fleet *fleet;
	struct baton_claim claim;
	struct baton_duration ttl;
	struct baton_mono since; /* when it was asked for, at the earliest */
	struct baton_mono next;  /* when to look after it again; never: it is not held */
};

/* Joins the fleet, unless it has, and claims the subject. A stopped process may be in the way for 2
 * seconds.
 *
 * Answers as baton_fleet_join() and baton_claim_wait(); *ret_holder as there. Unless BATON_OK
 * nothing is held, and hold_done() is fine all the same. */
enum baton_err hold_take(struct hold *h, const struct hold_ask *ask,
                         struct baton_claim_holder *ret_holder);

/* Renews it if it is time, and looks whether it is still held. To be called at h->next, which it
 * moves, or before. BATON_NOT_HELD: it is lost. */
enum baton_err hold_keep(struct hold *h, struct baton_mono now);

/* Gives it back; it can be taken once more. Once it is lost, nothing happens. */
void hold_release(struct hold *h);

/* Leaves the fleet. Fine for zeros, and twice. */
void hold_done(struct hold *h);

#endif
