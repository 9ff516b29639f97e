/* Who holds what in a store. */
#ifndef CLI_LEASES_H
#define CLI_LEASES_H

#include "holds.h"
#include "store.h"

/* Takes down who holds what of `filter` in the store, which is open. What stands before the first
 * slash of a lease's subject is its namespace; one without a slash, or with more before it than a
 * namespace can have, has none. Returns EX_OK, and *ret is freed by holds_done(); or another status
 * after one line on standard error. */
int leases_take(const struct store *store, const struct subject_filter *filter, struct holds *ret);

#endif
