/* Putting batches into a store in memory and ending claims, as parts of something else. */
#ifndef STORE_MEMORY_PUT_H
#define STORE_MEMORY_PUT_H

#include "store/memory/tx.h"

/* All of them, in order; the first that cannot be put ends it, and the transaction is to be undone.
 * `puts` may be NULL. */
enum baton_err memory_put_all(struct tx *tx, const struct baton_batch *batches, size_t count,
                              struct baton_put *puts);

/* Each end for itself. */
enum baton_err memory_end_all(struct tx *tx, const struct baton_work_end *ends, size_t count,
                              struct baton_work_ended *answers);

#endif
