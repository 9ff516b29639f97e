/* The line of those who wait for a subject. Who comes next is a matter of manners: whatever goes
 * wrong here makes somebody wait longer, and never two of them hold. */
#ifndef CONTEST_LINE_H
#define CONTEST_LINE_H

#include "contest/layout.h"
#include "contest/subjects.h"

#define LINE_NONE UINT32_MAX

/* Stands at the end of the line for the subject in place `n`, which has that hash.
 *
 * BATON_OK: *ret_waiter is the caller's, until line_leave(). BATON_YIELD: the place has another
 * subject by now. BATON_FULL: too many wait. BATON_BUSY. */
enum baton_err line_enter(struct view *v, uint32_t n, uint64_t hash, uint32_t code,
                          uint32_t *ret_waiter);

/* Leaves it, be it the first or not. */
void line_leave(struct view *v, uint32_t n, uint64_t hash, uint32_t waiter);

/* What somebody who wants a place finds in its line. */
struct turn {
	uint32_t first; /* who comes first, or LINE_NONE                   */
	int64_t again;  /* when to ask again: that one has had his time by then */
};

/* Whether the line lets the waiter take place `n`, whose word `w` may be taken: nobody before it
 * lives, or whoever does was given 10 ms and did not use them. `waiter` LINE_NONE: somebody who
 * does not stand in line. */
bool line_admits(struct view *v, uint32_t n, struct word w, uint32_t waiter, int64_t now,
                 struct turn *ret);

/* The code of the member whose waiter stands directly before `waiter` and lives; 0: there is
 * none. */
uint32_t line_before(const struct view *v, uint32_t n, uint32_t waiter);

/* Whether somebody who lives waits for place `n`. */
bool line_is_waited_in(const struct view *v, uint32_t n);

/* Takes those who have left or are dead out of the line for place `n`, whose shard is locked.
 * Whether nobody is left. */
bool line_is_empty_locked(struct view *v, uint32_t n);

/* Tells the first few that place `n` can be had. */
void line_offer(struct view *v, uint32_t n);

/* Wakes every waiter of a member. */
void line_wake_all_of(struct view *v, uint32_t code);

/* Takes the waiters of a member that is gone out of their lines. BATON_BUSY: not all. */
enum baton_err line_sweep(struct view *v, uint32_t code);

/* Puts the lines of a locked shard in order after somebody died while he changed one. */
void line_repair(struct view *v, const struct shard *shard);

#endif
