/* Whether this process may act on what it leases: attached, suspect or detached.
 *
 * A state machine alone, for whoever holds leases and renews them: it reads no clock, calls nobody
 * and starts nothing. Its caller tells what came of each renewal and probe, asks before each step
 * whether to go on, and stops everything when a call says that it has just become detached.
 *
 *	attached   go on
 *	suspect    a store call failed: start nothing new, let what runs go on, renew at once
 *	detached   the leases cannot be proven any more: stop everything, then probe
 *
 * Detaching wins every race: whoever would reattach loses against a detachment that comes between
 * his look and his step. From detached it leads back only through the recovery window: the first
 * healthy signal begins it, and a healthy signal at or after its end, with no unhealthy one since
 * it began, makes it attached. A healthy signal that is older than an unhealthy one says nothing.
 *
 * All moments are the caller's, from one clock. Everything here may be called from any thread
 * unless it says otherwise, and nothing allocates; but nothing except baton_detach_state() is for
 * signal handlers. */
#ifndef BATON_DETACH_H
#define BATON_DETACH_H

#include <stdbool.h>
#include <stdint.h>

#include <baton/api.h>
#include <baton/time.h>

BATON_BEGIN

enum baton_attachment {
	BATON_ATTACHED = 1,
	BATON_SUSPECT,
	BATON_DETACHED
};

/* Why it is detached, and what the reason says. */
enum baton_detach_why {
	BATON_DETACH_STORAGE = 1, /* "storage error: <text>"                                 */
	BATON_DETACH_STREAK,      /* "keep-alive failure streak: <n> consecutive failures"   */
	BATON_DETACH_EXPIRED,     /* "lease expired": its deadline passed, or it was refused */
	BATON_DETACH_MANUAL,      /* "manual detachment": it stays until baton_detach_attach() */
	BATON_DETACH_GUARDIAN     /* "guardian lost": nobody would end what runs in time     */
};

#define BATON_DETACH_WHYS BATON_DETACH_GUARDIAN /* how many there are */

#define BATON_DETACH_STREAK_DEFAULT 3
#define BATON_DETACH_RECOVERY_DEFAULT_MS 500

struct baton_detach_options {
	uint32_t streak; /* so many failures in a row detach; 0: BATON_DETACH_STREAK_DEFAULT      */
	struct baton_duration recovery; /* how long the recovery window is; 0, or less:
	                                   BATON_DETACH_RECOVERY_DEFAULT_MS                   */
};

/* Room for the reason, with the terminator. A longer one is cut, never inside of a character. */
#define BATON_DETACH_TEXT 256

/* The machine, in the caller's memory. What is in it is private; it cannot be copied or moved. */
struct baton_detach {
	uint64_t room[64];
};

/* How it stands, all parts of the same moment. */
struct baton_detach_info {
	enum baton_attachment state;
	uint32_t
		generation; /* 1 to begin with; one more with each transition to or from detached */
	uint32_t failures;  /* renewals that failed in a row; 0 while detached                    */
	bool manual;        /* detached, and baton_detach_attach() has to come first              */
	struct baton_mono
		since; /* of the last transition to or from detached; 0 before the first */
	enum baton_detach_why why; /* of the last detachment; 0 before the first                */
	char text
		[BATON_DETACH_TEXT]; /* its reason; "" before the first                           */
};

/* Begins attached, in generation 1. `options` may be NULL, and is copied. There is nothing to be
 * ended: the memory may go when no call is under way any more. Before all other calls. */
BATON_API void baton_detach_init(struct baton_detach *detach,
                                 const struct baton_detach_options *options);

/* Detaches. True only for the call that made the transition; a repeat replaces the reason, starts
 * the recovery window over and returns false. `text` is for BATON_DETACH_STORAGE: what the store
 * said, copied; NULL or "" reads "unknown". With BATON_DETACH_STREAK the reason names the streak of
 * the options. What began manual, or became so by a repeat, stays manual whatever the reason says
 * later. It is detached before anything is waited for. */
BATON_API bool baton_detach_make(struct baton_detach *detach, enum baton_detach_why why,
                                 const char *text, struct baton_mono now);

/* A store call failed because storage is unavailable: from attached to suspect. Otherwise nothing
 * changes. */
BATON_API void baton_detach_suspect(struct baton_detach *detach);

/* A renewal or a probe failed; to be told once per beat. From attached to suspect; when it is the
 * options' `streak`th in a row, detached, and true. While detached it starts the recovery window
 * over. */
BATON_API bool baton_detach_failed(struct baton_detach *detach, struct baton_mono now);

/* A renewal or a probe went well. From suspect to attached, and the streak is over. While detached,
 * unless manual: the first one begins the recovery window; from the second one on, at or after the
 * window's end, it becomes attached, in a new generation, and true is returned. */
BATON_API bool baton_detach_healthy(struct baton_detach *detach, struct baton_mono now);

/* Ends a manual detachment: it is detached still and recovers like any other, with a window that
 * begins after this. True: it was manual. Otherwise nothing changes. */
BATON_API bool baton_detach_attach(struct baton_detach *detach, struct baton_mono now);

/* How it stands now: one atomic load. What the caller did before it told the machine something can
 * be seen by whoever reads here what came of it. */
BATON_API enum baton_attachment baton_detach_state(const struct baton_detach *detach);

/* How it stands now, with the particulars. */
BATON_API void baton_detach_look(struct baton_detach *detach, struct baton_detach_info *ret);

BATON_END

#endif
