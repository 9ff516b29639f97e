/* The queues of a store in memory. */
#ifndef STORE_MEMORY_QUEUE_H
#define STORE_MEMORY_QUEUE_H

#include "store/memory/tx.h"

/* The queue, or NULL. */
struct queue *memory_queue_find(const struct memory *m, struct baton_str name);

/* The queue; if there is none, a new one that nobody has said anything about. NULL: no memory. */
struct queue *memory_queue_make(struct tx *tx, struct baton_str name);

/* How many of its batches wait: for a claimant, for their time or for their next attempt. */
uint64_t memory_queue_waiting(const struct queue *queue);

/* The mode becomes `mode`, which it may be already. */
enum baton_err memory_queue_use(struct tx *tx, struct queue *queue, enum baton_queue_mode mode);

/* The queue, if that mode's way of claiming is open. BATON_BUSY: it is not. BATON_NOT_FOUND: there
 * is no such queue. */
enum baton_err memory_queue_enter(const struct memory *m, struct baton_str name,
                                  enum baton_queue_mode mode, struct queue **ret);

/* Whether it may have a policy that work with a lane and a key could not be under: it has had none
 * of that, or has no work any more. */
bool memory_queue_is_without_guests(const struct queue *queue);

#endif
