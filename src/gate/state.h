/* The gate itself, and the steps that its calls are made of. */
#ifndef GATE_STATE_H
#define GATE_STATE_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <baton/gate.h>

#include "gate/entry.h"
#include "gate/table.h"

#define SHARDS 64u

/* A part of the keys under one lock. Locks are taken in ascending order of shards. */
struct shard {
	pthread_mutex_t mu;
	struct table table; /* [mu] */
	uint64_t fence;     /* [mu] the last one given out: it grows along every key of the shard */
	struct entry
		*timed; /* [mu] one of the ring of timed entries; NULL: there is none         */
} __attribute__((aligned(128)));

struct baton_gate {
	struct shard shards[SHARDS];
	const struct baton_alloc *alloc; /* [const] */
	const struct baton_clock *clock; /* [const] */
	struct baton_id seed;            /* [const] */
	void *block;                     /* [const] what the allocator returned, before alignment */
	atomic_uint class_count;         /* [all shard locks] to change                           */
	atomic_uint tickets;             /* [atomic] how many there are                           */
	struct baton_key_policy classes[BATON_GATE_CLASSES_MAX]; /* [any shard lock] to read,
	                                                            [all] to change  */
};

static_assert(SHARDS == 64, "a set of shards is the bits of a uint64_t");

/* A place in the line of one key. */
struct link {
	struct link *prev;
	struct link *next;
	struct baton_gate_ticket *ticket; /* [const]                                        */
	struct shard *shard;              /* [const]                                        */
	struct entry *entry;              /* valid while waiting                            */
	baton_fence fence;                /* once held                                      */
	uint8_t same; /* [const] the first link with the same key; only that one is in line */
};

enum ticket_state {
	TICKET_WAITING = 1,
	TICKET_HELD,
	TICKET_CANCELLED
};

#define TICKET_STATE_MASK 3u

/* Its fields change only under the locks of all its shards, unless they say otherwise. */
struct baton_gate_ticket {
	struct baton_gate *gate; /* [const] */
	struct baton_id run;     /* [const] */
	struct baton_wake wake;  /* [const] */
	uint64_t mask;          /* [const] the set of its shards                                  */
	struct baton_mono told; /* when its holder will ask again by himself, as far as we know   */
	_Atomic uint32_t
		word; /* a futex: the state, and above it a count of changes; read freely */
	_Atomic uint32_t
		refs; /* [atomic] 1 for its owner, and 1 for each user and list; a futex         */
	atomic_bool due;   /* [atomic] it is in somebody's list of due tickets               */
	atomic_bool woken; /* [atomic] it is in somebody's list of woken ones                */
	struct baton_gate_ticket *due_next;   /* [whoever set due] */
	struct baton_gate_ticket *woken_next; /* [whoever set woken] */
	size_t count;                         /* [const] */
	struct link links[];
};

/* What a call leaves to be done once it has given up its locks. */
struct effects {
	struct baton_gate_ticket *due;   /* may go on, but need locks that were not held     */
	struct baton_gate_ticket *woken; /* should look again, in this order                 */
	struct baton_gate_ticket *woken_last;
};

static inline enum ticket_state ticket_state(const struct baton_gate_ticket *t)
{
	/* Pairs with ticket_change(): who sees the state sees the fences. */
	uint32_t word = atomic_load_explicit(&t->word, memory_order_acquire);
	return (enum ticket_state)(word & TICKET_STATE_MASK);
}

static inline const struct baton_key_policy *policy_of(const struct baton_gate *gate, uint16_t cls)
{
	return &gate->classes[cls];
}

static inline bool policy_timed(const struct baton_key_policy *p)
{
	return p->rate != 0 || p->ttl.ns != 0;
}

void gate_lock(struct baton_gate *gate, uint64_t mask);
void gate_unlock(struct baton_gate *gate, uint64_t mask);

/* One who asks for a key: his place in its line, NULL for a newcomer. */
struct asker {
	struct baton_id run;
	const struct link *link;
	struct baton_mono now;
};

/* The functions below are called with the locks of the shards concerned, except for the last one.
 *  */

/* Whether the entry, over which time has passed, refuses the asker. If so, `yield` (may be NULL)
 * gets the reason, unless it has one, and the earlier of the moments at which that may change. */
bool entry_refuses(const struct baton_gate *gate, struct entry *e, const struct asker *asker,
                   size_t key, struct baton_gate_yield *yield);

/* Takes the key for `run`, for whom there is room, or confirms that it has it. Returns the fence.
 *  */
baton_fence entry_take(struct baton_gate *gate, struct shard *s, struct entry *e,
                       const struct baton_id *run, struct baton_mono now);

/* Drops void holds and old starts. */
void entry_pass_time(struct baton_gate *gate, struct entry *e, struct baton_mono now);

/* Lets those go on who now may, and forgets the entry when nobody needs it any more. */
void entry_settle(struct baton_gate *gate, struct shard *s, struct entry *e, struct baton_mono now,
                  struct effects *fx);

/* Forgets the entry if nobody holds it, waits for it or needs to remember its starts. */
void entry_forget(struct baton_gate *gate, struct shard *s, struct entry *e);

/* Has the entry looked at as time passes. */
void entry_watch(struct shard *s, struct entry *e);

/* Looks at `few` entries that time may have made idle, so that they do not pile up. */
void shard_sweep(struct baton_gate *gate, struct shard *s, struct baton_mono now, uint32_t few);

/* Puts the link at the end of its entry's line, for which there is room. */
void line_join(struct link *l);

/* For a waiting ticket: lets it go on if it may. If not, *ret_yield says why. */
bool ticket_try(struct baton_gate_ticket *t, struct baton_mono now,
                struct baton_gate_yield *ret_yield, struct effects *fx);

/* For a waiting ticket: makes it leave as cancelled. */
void ticket_leave(struct baton_gate_ticket *t, struct baton_mono now, struct effects *fx);

/* Keeps the ticket from being freed, and no longer. Needs no lock. */
void ticket_ref(struct baton_gate_ticket *t);
void ticket_unref(struct baton_gate_ticket *t);

/* Does what a call has left to do once it has given up its locks; mostly nothing. */
void effects_work_off(struct effects *fx, struct baton_mono now);

static inline void effects_run(struct effects *fx, struct baton_mono now)
{
	if (fx->due || fx->woken)
		effects_work_off(fx, now);
}

#endif
