/* Jobs with keys that stand together in rows with others: see steps/12-together.sql. */
#ifndef POSTGRES_KEYED_H
#define POSTGRES_KEYED_H

#include "store/postgres/desk.h"

/* Whether work with keys may stand together in such a queue: it is known what becomes of it before
 * it is known who else has its key, and nobody in a lane wants it (`guests`). */
bool keyed_are_usual(const struct baton_queue_policy *policy, bool guests);

/* Whether a new batch has a key that nobody else on the desk has. */
bool keyed_is_alone(const struct desk *d, const struct batch *b);

/* Whether the line has one batch, which stands in a row with others, or will. */
bool keyed_stands_in_bulk(const struct desk *d, const struct lane *lane);

/* Sends a statement that fails (BT006) if others have one of these keys: those of new batches that
 * will stand in rows with others, or if that is presumed of all of them, those of all new ones.
 * False: there are none. */
bool keyed_check(const struct desk *d, struct conn *c);

/* Sends one that makes ordinary rows of those that such lines are in, if any are named. */
void keyed_thaw(struct conn *c, const struct strs *queues, const struct strs *lines);

/* And of all that have keys, in queues where they may not stand together any more. */
bool keyed_melt(const struct desk *d, struct conn *c);

/* The lines of a row's batches, as they were read, one after the other; "": it has none. */
struct keyed_names {
	struct baton_str rest;
	uint32_t left;
};
enum baton_err keyed_read(const PGresult *r, int row, int column, struct keyed_names *ret);
enum baton_err keyed_next(struct keyed_names *names, struct baton_str *ret);

#endif
