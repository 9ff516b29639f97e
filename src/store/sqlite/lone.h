/* Keys that one batch alone has: it goes the way of one without a lane.
 *
 * Such a key has a row in `lone`, with the hash of its queue and name, instead of a line. The batch
 * is ready, among the heads, or claimed. Whoever does anything else than claiming or completing it,
 * or puts another one of its key, makes a line first: it is melted. */
#ifndef SQLITE_LONE_H
#define SQLITE_LONE_H

#include "store/sqlite/batches.h"
#include "store/sqlite/claims.h"

/* Never 0. Two keys may have the same: then the second has a line. */
int64_t lone_hash(int64_t queue, struct baton_str line);

/* A batch of a key becomes ready. *ret_taken: it has its key alone. If not, since it was tried
 * before, or keys take turns or have a rate, or the key has a line, or there is one that has the
 * key or the hash, the one of its key has a line now if there is one. */
enum baton_err lone_enter(struct sqlite_store *s, struct queue_row *q, const struct batch_row *b,
                          bool tried, bool *ret_taken);

/* The number of the batch that alone has the key; 0: there is none. */
enum baton_err lone_find(struct sqlite_store *s, int64_t queue, struct baton_str line,
                         int64_t *ret_seq);

/* Makes a line for the batch if it has none: it, or its claim, is unusual from now on. Nothing
 * happens to others. */
enum baton_err lone_melt(struct sqlite_store *s, struct queue_row *q, const struct batch_row *b);
enum baton_err lone_melt_key(struct sqlite_store *s, struct queue_row *q, struct baton_str line);
enum baton_err lone_melt_claim(struct sqlite_store *s, struct claim_row *c);

#endif
