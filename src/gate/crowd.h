/* The holders of an entry, and its starts inside the rate window. */
#ifndef GATE_CROWD_H
#define GATE_CROWD_H

#include <stdbool.h>
#include <stdint.h>

#include <baton/alloc.h>
#include <baton/id.h>
#include <baton/key.h>
#include <baton/time.h>

#include "gate/entry.h"

/* Makes room for one more holder and start beside those who wait, and for one more waiter if `line`
 * is set. A lone holder of a class that time has no say in needs none, so nothing is allocated.
 * False: no memory, and nothing that counts has changed. */
bool crowd_reserve(const struct baton_alloc *alloc, const struct baton_id *seed, struct entry *e,
                   const struct baton_key_policy *policy, bool line);

/* Gives back room that a crowd which has become much smaller no longer needs. */
void crowd_shrink(const struct baton_alloc *alloc, const struct baton_id *seed, struct entry *e);

/* Frees what crowd_reserve() made. */
void crowd_free(const struct baton_alloc *alloc, struct entry *e);

/* The hold of `run`, or NULL. */
struct baton_gate_holder *crowd_find(const struct baton_id *seed, struct entry *e,
                                     const struct baton_id *run);

/* Adds a holder, for whom there is room. */
void crowd_add(const struct baton_id *seed, struct entry *e,
               const struct baton_gate_holder *holder);

/* Removes a holder that crowd_find() returned. */
void crowd_remove(const struct baton_id *seed, struct entry *e, struct baton_gate_holder *holder);

/* Moves the expiry of a hold that crowd_find() returned; never to an earlier moment. */
void crowd_renew(struct entry *e, struct baton_gate_holder *holder, struct baton_mono expires);

/* Removes the holders that are void at `now`, and looks at no others. */
void crowd_expire(const struct baton_id *seed, struct entry *e, struct baton_mono now);

/* Remembers a start, for which there is room. */
void crowd_start(struct entry *e, struct baton_mono now);

/* Forgets the starts that have left a window of that length at `now`. */
void crowd_prune(struct entry *e, struct baton_duration window, struct baton_mono now);

/* When the next start is allowed, after pruning; in the past if it is now. */
struct baton_mono crowd_opens(const struct entry *e, const struct baton_key_policy *policy);

/* The earliest moment at which a holder becomes void. */
struct baton_mono crowd_soonest(const struct entry *e);

#endif
