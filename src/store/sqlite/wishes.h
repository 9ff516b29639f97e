/* Which keys ready batches want that stand in lanes, or have several: kept where a queue bounds how
 * many of a key may wait, so that those can be counted that are not the first of their lane. */
#ifndef SQLITE_WISHES_H
#define SQLITE_WISHES_H

#include "store/sqlite/batches.h"
#include "store/sqlite/sqlite.h"

/* A batch has become ready, or is so no more. */
enum baton_err wish_add(struct sqlite_store *s, const struct queue_row *q,
                        const struct batch_row *b);
enum baton_err wish_drop(struct sqlite_store *s, const struct queue_row *q,
                         const struct batch_row *b);

/* How many want the key of that line, as far as `most`. */
enum baton_err wish_count(struct sqlite_store *s, const struct queue_row *q, struct baton_str line,
                          int64_t most, int64_t *ret);

/* After the bound of a queue has changed, which had been `was`. */
enum baton_err wishes_change(struct sqlite_store *s, const struct queue_row *q, uint32_t was);

#endif
