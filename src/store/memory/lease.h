/* The leases of a store in memory. */
#ifndef STORE_MEMORY_LEASE_H
#define STORE_MEMORY_LEASE_H

#include "store/memory/tx.h"

/* What is known about the subject, or NULL. */
struct lease *memory_lease_find(const struct memory *m, struct baton_str subject);

/* The same; if nothing is known, a new one that nobody holds. NULL: no memory. */
struct lease *memory_lease_make(struct tx *tx, struct baton_str subject);

/* Gives the subject, whose row was saved, its next fence. BATON_FULL: there is none. */
enum baton_err memory_lease_raise(struct tx *tx, struct lease *lease);

/* Counts one more claim under the fence of the subject, whose row was saved, and that of the queue
 * whose `reach` it is. BATON_FULL: there are no more numbers. */
enum baton_err memory_lease_count(struct lease *lease, struct fence_reach *reach, uint64_t last,
                                  uint64_t *ret_fence);

#endif
