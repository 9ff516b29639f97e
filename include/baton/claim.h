/* Claims between the processes of a host: hold or yield, or wait in line.
 *
 * A subject is held by at most one member of the fleet. Whoever is refused is told who holds it,
 * and has changed nothing. A holder that dies is replaced at once; one that is stuck, when its time
 * has run out, if it has a ttl. */
#ifndef BATON_CLAIM_H
#define BATON_CLAIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/api.h>
#include <baton/err.h>
#include <baton/fleet.h>
#include <baton/id.h>
#include <baton/str.h>
#include <baton/time.h>

BATON_BEGIN

#define BATON_SPACE_MAX 31  /* bytes of a subject's namespace               */
#define BATON_LABEL_MAX 480 /* bytes of its label and the owner's together  */

/* What can be claimed: a name in a namespace, any bytes, neither empty. ("ab", "c") and ("a", "bc")
 * are different. What it points to is borrowed. `seen` begins as zeros, remembers where the subject
 * was found last, and makes the next call with this struct faster; so one thread at a time uses
 * it. */
struct baton_subject {
	struct baton_str space;
	struct baton_str label;
	uint64_t seen[2];
};

/* A subject from two string literals, or any two struct baton_str. */
#define BATON_SUBJECT(space, label)                 \
	{                                           \
		BATON_STR(space), BATON_STR(label), \
		{                                   \
			0, 0                        \
		}                                   \
	}

/* What somebody holds: a plain record, which may be copied. Zeros: nothing. */
struct baton_claim {
	struct baton_fleet *fleet; /* must outlive it */
	baton_fence fence;
	uint32_t slot;
};

enum baton_claim_why {
	BATON_CLAIM_HELD = 1, /* the one who is described holds it                            */
	BATON_CLAIM_IN_LINE   /* nobody does, but the one who is described waits for it       */
};

/* Who has, or will have, a subject. */
struct baton_claim_holder {
	enum baton_claim_why why;
	bool own;                       /* it is held by the asking member itself             */
	int32_t pid;                    /* as that process counts pids                        */
	char owner[BATON_NAME_MAX + 1]; /* its label, terminated; "" when it has just left    */
	struct baton_id incarnation;
	baton_fence fence;         /* 0: in line                                         */
	struct baton_mono since;   /* on baton_clock_boot(), to a few ms; 0: not yet known */
	struct baton_mono expires; /* or BATON_MONO_NEVER                                */
};

/* Ends waits: zeros, shared by whoever waits and whoever may end it. */
struct baton_cancel {
	uint32_t word;
};

/* Makes every call that waits with it return BATON_CANCELLED, now and later. Any thread; also from
 * a signal handler. */
BATON_API void baton_cancel(struct baton_cancel *cancel);

/* What is asked for. */
struct baton_claim_ask {
	struct baton_subject *subject;
	struct baton_duration ttl; /* 0 or less: until released or dead; below 1 ms counts as 1 ms;
	                                too long to count: never expires                        */
	struct baton_mono until;   /* baton_claim_wait() only: on baton_clock_boot()          */
	struct baton_cancel *cancel; /* baton_claim_wait() only: may be NULL                    */
};

/* Makes one attempt. It yields also while a live waiter is first in line.
 *
 * BATON_OK:      *ret_claim is held, with a fence higher than all before it.
 * BATON_YIELD:   *ret_holder (may be NULL) says who comes first. `own`: this member holds it
 *                already; baton_claim_adopt() makes a claim of that.
 * BATON_INVALID: empty or too long; the detail states the lengths and the limits.
 * BATON_FULL:    as many subjects are held as the fleet has room for. Nobody was evicted.
 * BATON_BUSY:    a stopped process was in the way for 10 ms.
 * BATON_GONE:    the fleet's file was removed or replaced, or this is a forked child: join again.
 *                It takes some microseconds until that is known; a claim that is won meanwhile is
 *                lost, as baton_claim_check() says.
 * BATON_SYSTEM:  the mark of the fences could not be written.
 * Unless BATON_OK nothing has changed, and *ret_claim is untouched. Any thread. */
BATON_API enum baton_err baton_claim_try(struct baton_fleet *fleet,
                                         const struct baton_claim_ask *ask,
                                         struct baton_claim *ret_claim,
                                         struct baton_claim_holder *ret_holder);

/* As above, at the moment `now`, whatever the clock says. */
BATON_API enum baton_err baton_claim_try_at(struct baton_fleet *fleet,
                                            const struct baton_claim_ask *ask,
                                            struct baton_mono now, struct baton_claim *ret_claim,
                                            struct baton_claim_holder *ret_holder);

/* Waits in line until the subject is held, ask->until is reached or ask->cancel is used. Lines move
 * in order of arrival; who is dead, or does not take his turn within 10 ms, is passed. A subject
 * that this member holds already is a yield at once, `own`.
 *
 * As baton_claim_try(), and: BATON_TIMEOUT, with *ret_holder as for a yield; BATON_CANCELLED.
 * BATON_FULL also: as many wait as the fleet has room for. Any thread. */
BATON_API enum baton_err baton_claim_wait(struct baton_fleet *fleet,
                                          const struct baton_claim_ask *ask,
                                          struct baton_claim *ret_claim,
                                          struct baton_claim_holder *ret_holder);

/* Makes a claim of what this member holds already: the same fence, no second tenure.
 *
 * BATON_NOT_HELD: it does not hold it. BATON_INVALID, BATON_BUSY, BATON_GONE: as above. */
BATON_API enum baton_err baton_claim_adopt(struct baton_fleet *fleet, struct baton_subject *subject,
                                           struct baton_claim *ret_claim);

/* Makes it last until `ttl` from now, if it would not last longer anyway; a ttl of 0: for good.
 *
 * BATON_NOT_HELD: it is lost: expired, forced or released, or the fleet is gone, or this is a
 * forked child. Any thread. */
BATON_API enum baton_err baton_claim_renew(const struct baton_claim *claim,
                                           struct baton_duration ttl);
BATON_API enum baton_err baton_claim_renew_at(const struct baton_claim *claim,
                                              struct baton_duration ttl, struct baton_mono now);

/* Whether it is still held, and for how long: *ret_left (may be NULL), BATON_DURATION_FOREVER
 * without a ttl. BATON_NOT_HELD as above, *ret_left is untouched. Any thread. */
BATON_API enum baton_err baton_claim_check(const struct baton_claim *claim,
                                           struct baton_duration *ret_left);
BATON_API enum baton_err baton_claim_check_at(const struct baton_claim *claim,
                                              struct baton_mono now,
                                              struct baton_duration *ret_left);

/* Gives it back, and lets the first in line have it. Touches nothing but this very claim: once it
 * is lost, or for the second time, it says BATON_NOT_HELD. Any thread. */
BATON_API enum baton_err baton_claim_release(const struct baton_claim *claim);

/* As baton_claim_release(), for a claim that goes out of scope; zeros are fine:
 *
 *	struct baton_claim claim __attribute__((cleanup(baton_claim_done))) = {NULL};
 */
BATON_API void baton_claim_done(struct baton_claim *claim);

/* Takes it away from whoever holds it, for an operator: the holder learns at its next check, and
 * whoever watches the fleet sees it.
 *
 * BATON_OK: *ret_holder (may be NULL) is who held it. BATON_NOT_HELD: nobody did.
 * BATON_INVALID, BATON_BUSY, BATON_GONE: as above. Any thread. */
BATON_API enum baton_err baton_claim_force(struct baton_fleet *fleet, struct baton_subject *subject,
                                           struct baton_claim_holder *ret_holder);

/* Who holds it at `now`. BATON_OK: *ret_holder is. BATON_NOT_HELD: nobody does. BATON_INVALID,
 * BATON_BUSY, BATON_GONE: as above. Any thread. */
BATON_API enum baton_err baton_claim_holder(struct baton_fleet *fleet,
                                            struct baton_subject *subject, struct baton_mono now,
                                            struct baton_claim_holder *ret_holder);

BATON_END

#endif
