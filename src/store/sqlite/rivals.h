/* Those who have a key, or will, and who gives way to whom. */
#ifndef SQLITE_RIVALS_H
#define SQLITE_RIVALS_H

#include "store/sqlite/batches.h"
#include "store/sqlite/sqlite.h"

/* What the queue's policy says about a newcomer to a key that has a line; it is not in there yet.
 * *ret_stays false: it was skipped. */
enum baton_err rival_enter(struct sqlite_store *s, struct queue_row *q, const struct batch_row *b,
                           int64_t lane, bool *ret_stays);

#endif
