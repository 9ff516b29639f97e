/* How the keys of a store in memory take turns. */
#ifndef STORE_MEMORY_PACE_H
#define STORE_MEMORY_PACE_H

#include "store/memory/tx.h"

/* The keys of the queue begin, or cease, to take turns. */
enum baton_err memory_pace_reset(struct tx *tx, const struct queue *queue);

/* A batch has become ready, and is no rival of any other one yet: its line gets the turn that it
 * has with it. */
enum baton_err memory_pace_enter(struct tx *tx, const struct batch *b);

/* A claim is taken from the line of a key. */
enum baton_err memory_pace_claim(struct tx *tx, struct lane *lane);

/* Whether the first batch of one line stands before that of another. */
bool memory_pace_before(const struct batch *a, const struct batch *b);

#endif
