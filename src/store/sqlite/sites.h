/* Keys that count for each host, or each process, in an SQLite file. */
#ifndef SQLITE_SITES_H
#define SQLITE_SITES_H

#include "store/sqlite/sqlite.h"
#include "store/uses.h"

/* Adds what is held of the queue's keys where that runner is, if that is where they count. */
enum baton_err sites_uses(struct sqlite_store *s, const struct queue_row *q, uint64_t runner,
                          struct key_uses *uses);

/* Whether that lane is the line of a key of which no more may be held, or started now, where that
 * owner is, who holds so much there. */
enum baton_err sites_are_full(struct sqlite_store *s, const struct queue_row *q, int64_t lane,
                              const struct baton_owner *owner, const struct key_uses *uses,
                              bool *ret);

/* Somewhere the key of the line may be started again: whoever waits for it is told. */
enum baton_err sites_tell(struct sqlite_store *s, const struct queue_row *q, struct baton_str line);

/* One more claim of that lane has begun there. */
enum baton_err sites_count(struct sqlite_store *s, const struct queue_row *q, int64_t lane,
                           struct key_uses *uses);

/* How many wait in the lines of that key in all shards, as far as `most`. */
enum baton_err sites_wait(struct sqlite_store *s, const struct queue_row *q, struct baton_str line,
                          int64_t most, int64_t *ret);

/* Where that runner is: the first that holds the key of the line, if no more may; 0: there is room.
 */
enum baton_err sites_holder(struct db *db, struct arena *a, const struct queue_row *q,
                            struct baton_str line, uint64_t runner, int64_t *ret_seq);

#endif
