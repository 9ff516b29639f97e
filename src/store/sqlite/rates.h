/* How often the keys of queues have started lately: what `rate` has. See queue/rate.h. */
#ifndef SQLITE_RATES_H
#define SQLITE_RATES_H

#include "queue/rate.h"
#include "store/sqlite/sqlite.h"

/* A claim is taken from the line, which the caller settles, for that owner. */
enum baton_err rates_start(struct sqlite_store *s, const struct queue_row *q, struct baton_str line,
                           const struct baton_owner *owner);

/* Of a line that counts where that owner is: when it may start again there; 0: now. */
enum baton_err rates_until(struct db *db, const struct queue_row *q, struct baton_str line,
                           const struct baton_owner *owner, int64_t *ret);

/* A runner is gone, and what it has started counts no more. */
enum baton_err rates_forget(struct sqlite_store *s, const struct baton_owner *owner);

/* A line was made, which the caller settles: it waits as the starts of its key say. */
enum baton_err rates_begin(struct sqlite_store *s, const struct queue_row *row,
                           struct baton_str line, int64_t lane);

/* What time does: keys may start again, and their lines are settled. *ret_all: all that may. */
enum baton_err rates_see(struct sqlite_store *s, struct queue_row *q, bool *ret_all);

/* The rate of the queue was another one, and has changed: so have its lines, which are settled. */
enum baton_err rates_change(struct sqlite_store *s, struct queue_row *q,
                            const struct baton_key_rate *was);

#endif
