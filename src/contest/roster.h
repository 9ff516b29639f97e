/* The members of a fleet: who they are, whether they live, and whose place may be used again. */
#ifndef CONTEST_ROSTER_H
#define CONTEST_ROSTER_H

#include <linux/futex.h>

#include "contest/keeper.h"
#include "contest/layout.h"

static inline bool life_is_dead(uint32_t life)
{
	return (life & FUTEX_TID_MASK) == 0;
}

/* Whether whoever had the code is dead, or its keeper is: its claims may be taken. */
static inline bool roster_is_dead(const struct view *v, uint32_t code)
{
	const struct member *m = view_member(v, code);
	return m != NULL && life_is_dead(atomic_load_explicit(&m->life, memory_order_acquire));
}

/* What is known about the member. False: there is none, or it changes just now. */
bool roster_facts(const struct view *v, uint32_t code, struct member_facts *ret);

/* Becomes a member that lives as long as `keeper`, which has been started; NULL: until
 * roster_leave(). Dead members whose processes are gone are swept out on the way.
 *
 * BATON_FULL, BATON_BUSY, BATON_SYSTEM. BATON_GONE: the fleet was closed by a reset. */
enum baton_err roster_join(struct view *v, const struct baton_owner *self, struct keeper *keeper,
                           uint32_t *ret_code);

/* Frees what dead members whose processes are gone have left behind, when there is no room for
 * something. False: a stopped process was in the way. */
bool roster_sweep(struct view *v, const struct baton_owner *self);

/* Ends the membership of this process, which holds nothing any more. */
void roster_leave(struct view *v, struct keeper *keeper, uint32_t code,
                  const struct baton_owner *self);

/* Closes the fleet for good and removes its file. BATON_YIELD: somebody lives in it. */
enum baton_err roster_close(struct view *v, const struct baton_owner *self);

#endif
