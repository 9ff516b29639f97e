/* A subject that a guardian holds, as a claim or from a source, and what keeps it. */
#ifndef GUARDIAN_HOLD_H
#define GUARDIAN_HOLD_H

#include <stdbool.h>

#include <baton/claim.h>
#include <baton/err.h>
#include <baton/fleet.h>
#include <baton/guardian.h>
#include <baton/str.h>
#include <baton/time.h>

#include "guardian/renewer.h"

struct hold_ask {
	const struct baton_guardian_source *source; /* NULL: a claim in the fleet */
	const char *fleet;                          /* NULL: that of baton_fleet_default() */
	struct baton_str owner;
	struct baton_subject *subject;
	struct baton_duration ttl;
	struct baton_duration grace; /* from SIGTERM to SIGKILL */
	struct baton_mono until;     /* how long to wait for it, on baton_clock_boot() */
	bool wait;                   /* false: one attempt */
};

/* Begins as HOLD_NONE. */
struct hold {
	const struct baton_guardian_source *source;
	struct baton_fleet *fleet; /* without a source */
	struct baton_claim claim;  /* without a source */
	struct renewer renewer;    /* of what a source gave */
	const char *beside; /* the file beside which the latch lies; after a take, borrowed */
	baton_fence fence;
	struct baton_duration ttl;
	struct baton_duration grace;
	struct baton_mono since; /* when it was asked for, at the earliest */
	struct baton_mono next;  /* when to look after it again; never: it is not held */
	struct baton_mono
		limit; /* what runs under it is killed then; never: it has no such limit */
};

#define HOLD_NONE ((struct hold){.renewer = RENEWER_NONE, .limit = BATON_MONO_NEVER})

/* Joins the fleet, unless it has, and claims the subject; or takes it from the source. In a fleet a
 * stopped process may be in the way for 2 seconds.
 *
 * Answers as baton_fleet_join() and baton_claim_wait(), or as the source; *ret_holder as there.
 * Unless BATON_OK nothing is held, and hold_done() is fine all the same. */
enum baton_err hold_take(struct hold *h, const struct hold_ask *ask,
                         struct baton_claim_holder *ret_holder);

/* Renews it if it is time, and looks whether it is still held. To be called at h->next, which it
 * moves, or before. BATON_NOT_HELD: it is lost, or so near to its end without having been renewed
 * that what runs under it has to be ended; the error detail says why, or is empty. */
enum baton_err hold_keep(struct hold *h, struct baton_mono now);

/* Gives it back; it can be taken once more. Once it is lost, nothing happens. False: a source does
 * not answer, and it is not known. */
bool hold_release(struct hold *h);

/* Leaves the fleet. Fine for HOLD_NONE, and twice. */
void hold_done(struct hold *h);

#endif
