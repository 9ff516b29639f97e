/* What time does to a store in memory: delays end, claims expire. */
#ifndef STORE_MEMORY_DUE_H
#define STORE_MEMORY_DUE_H

#include "queue/state.h"
#include "store/memory/tx.h"

/* Makes what is due in the queue ready, and offers the work of its expired claims to others: the
 * first 1,000 of each. So in the other queues of its class, whose keys that may free; there, and in
 * it, expired claims of keys are ended at once. */
enum baton_err memory_due_see(struct tx *tx, struct queue *queue);

/* A batch that waited outside of its line is due, or revived: it becomes ready, and is looked at as
 * a newcomer to its key, unless it has kept that. */
enum baton_err memory_batch_ready(struct tx *tx, struct batch *b, enum batch_event event);

/* Takes the work of a claim back from an owner who lost it; `why` says how. */
enum baton_err memory_claim_recover(struct tx *tx, struct claim *claim, const char *why);

/* When the batch is tried again: its own, or that of its queue. */
const struct baton_retry *memory_batch_retry(const struct batch *b);

/* Counts an attempt of a batch that was claimed and failed for that reason. `last`: there is no
 * other, else it is told `event`. */
enum baton_err memory_batch_fail(struct tx *tx, struct batch *b, struct text *why,
                                 enum batch_event event, bool last);

#endif
