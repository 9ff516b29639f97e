/* The batches of a store in memory. */
#ifndef STORE_MEMORY_BATCH_H
#define STORE_MEMORY_BATCH_H

#include "queue/state.h"
#include "store/memory/tx.h"

/* The batch, or NULL: there is none, or its result has been kept long enough. */
struct batch *memory_batch_find(const struct tx *tx, uint64_t id);
struct batch *memory_batch_named(const struct tx *tx, const struct baton_batch_id *id);

/* A new one at the place of its number in its lane, of what was put, filled; its state is still to
 * be said. NULL: no memory. */
struct batch *memory_batch_make(struct tx *tx, struct queue *queue, const struct baton_batch *put,
                                uint64_t id, uint64_t seq);

/* As that, with the next number. */
struct batch *memory_batch_add(struct tx *tx, struct queue *queue, const struct baton_batch *put);

/* What happens to a batch. It is saved for further changes, and leaves its claim unless it was
 * claimed or cancelled. BATON_NO_MEMORY: nothing happened. */
enum baton_err memory_batch_event(struct tx *tx, struct batch *b, enum batch_event event);

/* It is skipped, for the one of that id. */
enum baton_err memory_batch_skip(struct tx *tx, struct batch *b, uint64_t by);

/* One that was to be cancelled leaves its claim: it is removed, or skipped. */
enum baton_err memory_batch_cancelled(struct tx *tx, struct batch *b);

/* Gives a batch, which is saved, the next number, so that it is the last of its lane. */
void memory_batch_last(struct tx *tx, struct batch *b);

/* A text that nobody uses yet. NULL: no memory. */
struct text *memory_text_new(struct tx *tx, struct baton_str bytes);

/* Makes `*slot`, which is in a row that was saved, `text` or NULL. */
enum baton_err memory_text_set(struct tx *tx, struct text **slot, struct text *text);

#endif
