/* Keys between the threads of a process: claim or yield, or wait in line.
 *
 * A key is held by at most `limit` runs at once. A run is named by its caller; asking again under
 * the same name for what it already holds gets the same answer as the first time, and is the same
 * hold: one release ends it. Whoever is refused is told who holds the key, and has changed nothing.
 *
 * A key that nobody holds and nobody waits for takes no memory. Where time has a say it passes
 * unnoticed until somebody asks: void holds, and the starts of a rate, are dropped by later calls
 * on keys with a rate or a ttl, each of which looks at a few. */
#ifndef BATON_GATE_H
#define BATON_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/alloc.h>
#include <baton/api.h>
#include <baton/clock.h>
#include <baton/err.h>
#include <baton/id.h>
#include <baton/key.h>
#include <baton/str.h>
#include <baton/time.h>
#include <baton/wake.h>

BATON_BEGIN

struct baton_gate;

/* Which policy a key follows, and part of its name: the same text in two classes is two keys. */
typedef struct {
	uint16_t v;
} baton_gate_class;

/* Every gate has this class: limit 1, no rate, no ttl, until it is changed. */
#define BATON_GATE_CLASS_DEFAULT ((baton_gate_class){0})

#define BATON_GATE_CLASSES_MAX 256
#define BATON_GATE_KEYS_MAX 16

struct baton_gate_key {
	struct baton_str text; /* 1 to BATON_KEY_MAX bytes, any bytes */
	baton_gate_class cls;
};

/* Who asks for which keys. Everything in it is borrowed for the time of the call. */
struct baton_gate_ask {
	const struct baton_gate_key *keys; /* taken all or none; one named twice counts once   */
	size_t count;                      /* 1 to BATON_GATE_KEYS_MAX                         */
	struct baton_id run;               /* the holder's name, and the nonce of the request  */
	struct baton_mono now;             /* on the gate's clock: by it rates and ttls are
	                                      counted, and it is shown as `since`              */
};

struct baton_gate_holder {
	struct baton_id run;
	baton_fence fence;
	struct baton_mono since;
	struct baton_mono expires; /* BATON_MONO_NEVER without a ttl */
};

enum baton_gate_why {
	BATON_GATE_HELD = 1, /* as many hold it as may; `holder` is one of them              */
	BATON_GATE_IN_LINE,  /* others wait for it; `holder` is the first, without a fence  */
	BATON_GATE_RATE      /* its window is full; `until` says when it opens              */
};

/* Why a run has to yield. */
struct baton_gate_yield {
	size_t key; /* index into ask.keys of the first key that refused */
	enum baton_gate_why why;
	struct baton_gate_holder holder;
	uint32_t holders;        /* how many hold that key now    */
	uint32_t limit;          /* how many may                  */
	uint32_t waiting;        /* how many wait in its line     */
	struct baton_mono until; /* when time alone may change the answer; or BATON_MONO_NEVER */
};

struct baton_gate_options {
	const struct baton_alloc *alloc; /* NULL: the C library's                               */
	const struct baton_clock *clock; /* NULL: baton_clock_awake(); used by blocking calls   */
};

/* Makes an empty gate. `options` may be NULL; what it points to must outlive the gate.
 *
 * BATON_NO_MEMORY, BATON_SYSTEM (no random source): *ret_gate is untouched. */
BATON_API enum baton_err baton_gate_new(const struct baton_gate_options *options,
                                        struct baton_gate **ret_gate);

/* Frees the gate and forgets its holds. No ticket of it may be left. NULL is fine. */
BATON_API void baton_gate_free(struct baton_gate *gate);

/* Adds a class with its own policy. A gate counts inside one process and decides nothing but who
 * may go on now, so scope must be BATON_KEY_SCOPE_PROCESS, on_conflict BATON_KEY_WAIT, and fair
 * off; on_retry is for the caller, who releases or does not.
 *
 * BATON_INVALID: the policy; the detail says which field. BATON_FULL: there are
 * BATON_GATE_CLASSES_MAX. *ret_class is untouched unless BATON_OK. Any thread. */
BATON_API enum baton_err baton_gate_class_add(struct baton_gate *gate,
                                              const struct baton_key_policy *policy,
                                              baton_gate_class *ret_class);

/* Changes the policy of a class while it is in use. A higher limit lets waiters in at once; a lower
 * one ends nobody's hold. A new ttl is for new holds, and for the next renewal of those that have
 * one; where there is none any more, a renewal takes it off. `now` as in an ask. Errors as above,
 * and for an unknown class. Any thread; waits for calls in progress. */
BATON_API enum baton_err baton_gate_class_set(struct baton_gate *gate, baton_gate_class cls,
                                              const struct baton_key_policy *policy,
                                              struct baton_mono now);

/* Takes every key of `ask`, or none. One attempt; it yields too while others wait in line.
 *
 * BATON_OK:    the run holds them all. ret_fences (NULL, or room for ask->count) has their fences:
 *              a new, higher one for a key newly taken, the old one for a key that the run held
 *              already, whose ttl then counts anew.
 * BATON_YIELD: nothing has changed; *ret_yield (may be NULL) says which key refused, and why.
 * BATON_INVALID, BATON_NO_MEMORY: nothing has changed.
 * Out-parameters are untouched except as said. Any thread. In a class without a
 * rate or a ttl, no memory is allocated for a key of up to 55 bytes that nobody else uses, apart
 * from the table's own growth. */
BATON_API enum baton_err baton_gate_acquire(struct baton_gate *gate,
                                            const struct baton_gate_ask *ask,
                                            baton_fence *ret_fences,
                                            struct baton_gate_yield *ret_yield);

/* Gives back every key of `ask` that the run holds, and lets the first in line of each go on.
 *
 * BATON_OK: it held them all. BATON_NOT_HELD: some were free, void or held by others, and those are
 * as they were; the rest has been released. BATON_INVALID: nothing has changed. Any thread. */
BATON_API enum baton_err baton_gate_release(struct baton_gate *gate,
                                            const struct baton_gate_ask *ask);

/* Counts the ttl of every key of `ask` anew from ask->now; it never shortens.
 *
 * BATON_OK: the run holds them all. BATON_NOT_HELD: some are lost; the rest has been renewed.
 * BATON_INVALID: nothing has changed. Any thread. */
BATON_API enum baton_err baton_gate_renew(struct baton_gate *gate,
                                          const struct baton_gate_ask *ask);

/* Who holds the key.
 *
 * BATON_OK: *ret_holder (may be NULL) is one of its holders, the only one if the limit is 1.
 * BATON_NOT_HELD: nobody does. BATON_INVALID: a bad key. *ret_holder is untouched unless BATON_OK.
 * Any thread. */
BATON_API enum baton_err baton_gate_holder(struct baton_gate *gate,
                                           const struct baton_gate_key *key, struct baton_mono now,
                                           struct baton_gate_holder *ret_holder);

/* Whether anybody holds the key; false for a bad key. Any thread. */
BATON_API bool baton_gate_is_held(struct baton_gate *gate, const struct baton_gate_key *key,
                                  struct baton_mono now);

/* One hold, as baton_gate_each() shows it. */
struct baton_gate_hold {
	struct baton_gate_key key;
	struct baton_gate_holder holder;
};

/* Calls visit(hold, arg) for every hold until it returns false. A hold that exists from beginning
 * to end is shown exactly once; one that comes or goes meanwhile, once or not at all. No lock is
 * held during a visit, which may use the gate; `hold` is the visitor's until it returns. The order
 * means nothing.
 *
 * BATON_NO_MEMORY: the visits ended early. Any thread. */
BATON_API enum baton_err
baton_gate_each(struct baton_gate *gate, struct baton_mono now,
                bool (*visit)(const struct baton_gate_hold *hold, void *arg), void *arg);

/* A guard releases what was acquired when it goes out of scope:
 *
 *	if (baton_gate_acquire(gate, &ask, NULL, NULL) != BATON_OK)
 *		return;
 *	struct baton_gate_guard guard __attribute__((cleanup(baton_gate_guard_done))) =
 *		{gate, &ask};
 */
struct baton_gate_guard {
	struct baton_gate *gate;          /* NULL: nothing to release */
	const struct baton_gate_ask *ask; /* must outlive the guard   */
};

/* Releases, once. The time is read from the gate's clock. A guard of zeros is fine. */
BATON_API void baton_gate_guard_done(struct baton_gate_guard *guard);

/* A ticket is a place in the lines of its keys. Lines move in order of arrival: a run goes on when
 * it is the first in the line of every key that it does not hold yet, and all of them admit it. A
 * run that waits with two tickets for one key has the second one let in when its own turn comes,
 * which may be later than the first one's success would allow. */
struct baton_gate_ticket;

/* Asks for the keys, and queues where they cannot be had at once.
 *
 * BATON_OK: *ret_ticket is the caller's, ended by baton_gate_ticket_free(). Whether it has the keys
 * already, or how long it may take, is told by baton_gate_ticket_poll(), once to begin with.
 * As long as it waits, `wake` (may be NULL) is called when polling it would tell something new, at
 * the latest when it gets the keys. It is called by whatever thread changes that, the ticket's own
 * caller included, and maybe before this function returns; but not when the ticket is cancelled,
 * and never after baton_gate_ticket_free() has returned.
 * BATON_FULL: the line of a key has reached waiting_max, which the detail names.
 * BATON_INVALID, BATON_NO_MEMORY. Unless BATON_OK nothing has changed. Any thread. */
BATON_API enum baton_err baton_gate_enter(struct baton_gate *gate, const struct baton_gate_ask *ask,
                                          const struct baton_wake *wake,
                                          struct baton_gate_ticket **ret_ticket);

/* Looks how the ticket stands at `now`, and lets it go on if it may. For the one who waits: whoever
 * polls is the one who knows when to ask again.
 *
 * BATON_OK:        the run got the keys; ret_fences as in baton_gate_acquire().
 * BATON_YIELD:     it waits; *ret_yield (may be NULL) says for what. Time passing wakes nobody by
 *                  itself: at ret_yield->until, ask again.
 * BATON_CANCELLED: it was cancelled while it waited. */
BATON_API enum baton_err baton_gate_ticket_poll(struct baton_gate_ticket *ticket,
                                                struct baton_mono now, baton_fence *ret_fences,
                                                struct baton_gate_yield *ret_yield);

/* Blocks until the run holds the keys, the gate's clock reaches `until`, or somebody cancels.
 *
 * BATON_OK: it got them; ret_fences as in baton_gate_acquire().
 * BATON_TIMEOUT, BATON_CANCELLED: it has left the line without a trace. For the one who waits. */
BATON_API enum baton_err baton_gate_ticket_wait(struct baton_gate_ticket *ticket,
                                                struct baton_mono until, baton_fence *ret_fences);

/* Leaves the line. True: it was waiting, and a thread in baton_gate_ticket_wait() gets
 * BATON_CANCELLED. False: it holds the keys, or was cancelled before. Any thread. */
BATON_API bool baton_gate_ticket_cancel(struct baton_gate_ticket *ticket);

/* Leaves the line if it still waits, and frees the ticket. What it got stays held by the run until
 * baton_gate_release(). Waits for a call of its `wake` that is under way, so it must not be called
 * from there, and for a baton_gate_ticket_cancel() that has begun. NULL is fine. */
BATON_API void baton_gate_ticket_free(struct baton_gate_ticket *ticket);

/* baton_gate_enter(), baton_gate_ticket_wait() and baton_gate_ticket_free() in one, with their
 * answers. `until` is on the gate's clock; a moment that has passed does not wait at all. */
BATON_API enum baton_err baton_gate_wait(struct baton_gate *gate, const struct baton_gate_ask *ask,
                                         struct baton_mono until, baton_fence *ret_fences);

BATON_END

#endif
