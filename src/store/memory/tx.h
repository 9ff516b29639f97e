/* A transaction on a store in memory: it changes rows in place, and keeps what they were until it
 * is certain that nothing fails any more. */
#ifndef STORE_MEMORY_TX_H
#define STORE_MEMORY_TX_H

#include <baton/err.h>
#include <baton/store.h>

#include "base/arena.h"
#include "store/memory/memory.h"

struct entry;

#define TX_RANDOM_MAX 16

/* A moment of a transaction. */
struct mark {
	struct entry *last; /* the newest of the journal           */
	uint64_t seq;       /* the last number that was given then */
};

struct tx {
	struct memory *m;
	struct baton_store_time now;
	struct mark start;
	struct entry *last; /* the newest of the journal                  */
	struct arena arena; /* for what the transaction needs to remember */
	struct baton_store_news *news;
	size_t news_count;
	bool spares;                           /* what is old is not forgotten along the way */
	struct baton_id random[TX_RANDOM_MAX]; /* some that nobody has yet */
	size_t random_count, random_left;
};

/* Reads the clock and takes the store's lock. */
void memory_tx_begin(struct tx *tx, struct baton_store *store);

/* If `e` is BATON_OK what was changed stays, else nothing has changed. Gives the lock back, and
 * wakes whoever may find work in tx->news. Returns `e`. */
enum baton_err memory_tx_end(struct tx *tx, enum baton_err e);

/* As that, after finding out in which lanes something can be claimed that this one changed. */
enum baton_err memory_tx_end_ring(struct tx *tx, enum baton_err e);

/* Before each change of a row. BATON_NO_MEMORY: it must not be changed. */
enum baton_err memory_tx_save(struct tx *tx, struct row *row);

/* Saves a row that is then gone. */
enum baton_err memory_tx_delete(struct tx *tx, struct row *row);

/* A new row. NULL: no memory, and the detail says so. */
struct row *memory_tx_add(struct tx *tx, struct table *t, size_t size, uint64_t hash);

/* An id that nobody can guess. BATON_SYSTEM: there is none. */
enum baton_err memory_tx_random(struct tx *tx, struct baton_id *ret);

/* Marks a moment, and goes back to it. */
struct mark memory_tx_mark(struct tx *tx);
void memory_tx_undo(struct tx *tx, struct mark mark);

/* Memory until the end of the transaction. NULL: no memory, and the detail says so. */
void *memory_tx_take(struct tx *tx, size_t count, size_t size);

#endif
