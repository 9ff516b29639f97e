/* A lock between processes that outlives whoever holds it, and behind which nobody stands for long.
 * Nobody takes a second one but the roster's holder, who may take a shard's. */
#ifndef CONTEST_LOCK_H
#define CONTEST_LOCK_H

#include <stdbool.h>

#include <baton/err.h>

#include "contest/layout.h"

/* What the C library calls a mutex of this sort. */
int lock_kind(void);

/* In a segment that nobody else sees yet. */
enum baton_err lock_init(struct lock *l);

/* Takes it. *ret_orphaned: whoever had it died with it, so that what it guards has to be put in
 * order first.
 *
 * BATON_BUSY: whoever has it is stopped, and has had it for 10 ms. BATON_INVALID: it is damaged. */
enum baton_err lock_take(const struct view *v, struct lock *l, bool *ret_orphaned);

void lock_give(struct lock *l);

#endif
