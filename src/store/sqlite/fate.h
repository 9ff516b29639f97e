/* What becomes of a batch that was claimed. */
#ifndef SQLITE_FATE_H
#define SQLITE_FATE_H

#include "store/sqlite/batches.h"
#include "store/sqlite/claims.h"

/* Why something stands in `later`. */
enum later_kind {
	LATER_DELAY = 0, /* outside of its line                                     */
	LATER_RETRY,     /* outside of its line, for its next attempt               */
	LATER_BLOCK      /* in its line, which waits for its next attempt; or, of a
	                    key, outside of it and holding the key                  */
};

/* One batch that leaves a claim. Its lane is settled by the caller, once all have left. */
struct leaver {
	struct queue_row *q;
	struct batch_row b;
	struct trouble t;
	int64_t lane;          /* 0: none */
	bool tried;            /* it has a row in `trouble` */
	bool offered;          /* others may take it        */
	struct key_lines keys; /* of those that it holds beside its lane */
};

/* Counts it as running no more, and loads its row, if `row`, and its troubles. Who is deleted needs
 * no row. */
enum baton_err leaver_load(struct sqlite_store *s, struct queue_row *q, const struct claim_row *c,
                           int64_t seq, bool row, struct leaver *ret);

/* Deletes it: completed, or cancelled. */
enum baton_err leaver_remove(struct sqlite_store *s, struct leaver *l);

/* One that was to be cancelled: deletes it, or keeps it as skipped. */
enum baton_err leaver_cancelled(struct sqlite_store *s, struct leaver *l);

/* Keeps it as done, with its result. */
enum baton_err leaver_keep(struct sqlite_store *s, struct leaver *l, struct baton_str result);

/* Back to its old place. */
enum baton_err leaver_back(struct sqlite_store *s, struct leaver *l);

/* Away until `due`. */
enum baton_err leaver_later(struct sqlite_store *s, struct leaver *l, struct baton_store_time due,
                            enum later_kind kind);

/* Gives it the next number, so that it comes back behind the others. */
enum baton_err leaver_behind(struct sqlite_store *s, struct leaver *l);

/* Among the dead. */
enum baton_err leaver_die(struct sqlite_store *s, struct leaver *l);

/* Counts a failed attempt. True: it was the last. */
bool leaver_fail(struct leaver *l, struct baton_str error);

/* Ends a claim whose owner has lost it: its batches have failed once more, and go back to their
 * places or among the dead. The lane is not settled, nor is there a head for one without a lane. */
enum baton_err claim_recover(struct sqlite_store *s, struct queue_row *q, struct claim_row *c,
                             struct baton_str why);

/* Ends a claim that was not offered, and makes its work ready again: as claim_recover(), or, if
 * `why` is empty, as if it had not been claimed. */
enum baton_err claim_return(struct sqlite_store *s, struct queue_row *q, struct claim_row *c,
                            struct baton_str why);

/* Makes ready what is due in the queue, and offers the work of claims that have expired: at most a
 * thousand of each. */
enum baton_err queue_tend(struct sqlite_store *s, struct queue_row *q);

/* Takes a batch that waits for its time out of `later`, and makes it ready. */
enum baton_err later_end(struct sqlite_store *s, struct queue_row *q, const struct batch_row *b,
                         struct baton_store_time due, enum later_kind kind);

#endif
