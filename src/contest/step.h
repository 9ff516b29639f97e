/* Where a test can stop or kill a process: between any two steps that others can tell apart.
 *
 * In the product a step is nothing. In the tests' own build of this module it calls the test. */
#ifndef CONTEST_STEP_H
#define CONTEST_STEP_H

#define STEP_TABLE(X)                                                                    \
	X(JOIN_LOCKED)     /* the roster is locked, nothing is written                */ \
	X(JOIN_WRITING)    /* a place is being described                              */ \
	X(JOIN_WRITTEN)    /* it is described; nobody lives there yet                 */ \
	X(JOIN_ALIVE)      /* the keeper lives; the roster is still locked            */ \
	X(SWEEP_BEGIN)     /* a dead member's claims are about to be freed            */ \
	X(SWEEP_FREED)     /* one of them is free; nobody was told                    */ \
	X(SWEEP_DONE)      /* all are free; the place is not                          */ \
	X(PLACE_TAKEN)     /* room for a subject is taken, and holds nothing          */ \
	X(EVICT_LOCKED)    /* a free subject's shard is locked                        */ \
	X(EVICT_VACATED)   /* its word says that there is nothing                     */ \
	X(EVICT_SHIFTING)  /* its entry in the index is being removed                 */ \
	X(EVICT_DONE)      /* it has gone; the shard is still locked                  */ \
	X(SETTLE_LOCKED)   /* a new subject's shard is locked                         */ \
	X(SETTLE_WRITING)  /* its name is being written                               */ \
	X(SETTLE_LISTED)   /* it says that it is listed; the index does not           */ \
	X(SETTLE_INDEXING) /* the index is being written                              */ \
	X(SETTLE_DONE)     /* it is in the index; the shard is still locked           */ \
	X(PLACE_SEEN)      /* a place has the name still; its word was seen before    */ \
	X(TAKE_SEEN)       /* the word may be taken                                   */ \
	X(TAKE_WON)        /* it was; nothing is said about it                        */ \
	X(TAKE_SAID)       /* since when and the event are written                    */ \
	X(RENEW_SEEN)      /* the word may be renewed                                 */ \
	X(RELEASE_SEEN)    /* the word may be freed                                   */ \
	X(RELEASE_FREED)   /* it was; nobody in line was told                         */ \
	X(RELEASE_OFFERED) /* the line was told; no event is written                  */ \
	X(FORCE_SEEN)      /* somebody else's word may be freed                       */ \
	X(FORCE_FREED)     /* it was                                                  */ \
	X(LINE_RESERVED)   /* a ticket is ours, and in no line                        */ \
	X(LINE_LOCKED)     /* the line is locked                                      */ \
	X(LINE_ENTERING)   /* our ticket says that we stand in it; it leads not to us */ \
	X(LINE_JOINED)     /* we stand in it; it is still locked                      */ \
	X(LINE_WAITING)    /* we stand in it and are about to sleep                   */ \
	X(LINE_WON)        /* we hold the subject and still stand in line             */ \
	X(LINE_LEAVING)    /* the line is locked to leave it                          */ \
	X(LINE_UNLINKED)   /* it leads no more to one whose ticket says he is in it   */ \
	X(LINE_LEFT)       /* we are out of it; it is still locked                    */ \
	X(LEAVE_FREED)     /* all that was held is free; we are still a member        */ \
	X(LEAVE_DEAD)      /* the keeper has ended; our place is not free             */

enum step {
#define STEP_ENTRY(name) STEP_##name,
	STEP_TABLE(STEP_ENTRY)
#undef STEP_ENTRY
	STEP_COUNT
};

#ifdef CONTEST_STEPS
void contest_step(enum step step);
#define STEP(name) contest_step(STEP_##name)
#else
#define STEP(name) ((void)0)
#endif

#endif
