/* Looks at every part of a fleet's table in which nobody changes anything. */
#ifndef CONTEST_TESTS_TABLE_H
#define CONTEST_TESTS_TABLE_H

#include "contest/layout.h"

/* Fails the test, saying what is wrong:
 *
 * - a place that is listed is found by the index exactly once, under the hash of its name;
 * - no entry of the index leads to a place that is not listed, or to none;
 * - a place that is not listed has no subject, and nobody has taken it;
 * - a line has only waiters of its place, and every waiter of a place stands in its line once;
 * - no fence is above the mark. */
void table_check(const struct view *v);

/* How many places of members are taken, and how many waiters' tickets. */
unsigned table_members(const struct view *v);
unsigned table_waiters(const struct view *v);

/* The word of the subject t/LABEL, or zeros if it has no place. */
struct word table_word(const struct view *v, const char *label);

#endif
