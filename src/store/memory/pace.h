/* How the keys of a store in memory take turns. */
#ifndef STORE_MEMORY_PACE_H
#define STORE_MEMORY_PACE_H

#include "store/memory/tx.h"

/* A batch has become ready, and is no rival of any other one yet: if it is the only one of its key
 * its line begins. */
enum baton_err memory_pace_enter(struct tx *tx, const struct batch *b);

/* A claim is taken from the line of a key. */
enum baton_err memory_pace_claim(struct tx *tx, struct lane *lane);

/* Where a batch that is the first of its line stands among those of others. */
uint64_t memory_pace_place(const struct batch *b);

#endif
