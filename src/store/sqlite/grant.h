/* Giving work to whoever claims it. */
#ifndef SQLITE_GRANT_H
#define SQLITE_GRANT_H

#include "store/parcel.h"
#include "store/sqlite/claims.h"
#include "store/uses.h"

/* What one call gives. */
struct grant {
	struct queue_row *q;
	const struct baton_owner *asker;
	struct baton_duration ttl;
	struct fence_base base;
	size_t max, count;
	uint32_t shard;                  /* that it is given from, to a runner */
	int64_t owner;                   /* the asker's number, once something is given */
	struct claims_parcel *parcel;    /* as long as that */
	struct baton_work_claim *claims; /* the parcel's */
	struct key_uses *uses; /* what is held where the asker is; NULL: that does not count */
};

/* Before the first claim is given: who gets nothing has cost nothing. */
enum baton_err grant_begin(struct sqlite_store *s, struct grant *g);

/* Hands over what was given: *ret NULL if that is nothing. After it, or an error, grant_done(). */
void grant_close(struct grant *g, struct claims_parcel **ret);
void grant_done(struct grant *g);

/* The batches of one claim. */
struct pick {
	int64_t *seqs; /* the scratch's */
	bool *tried;
	size_t count, cap;
};

/* False: no memory. */
bool pick_add(struct sqlite_store *s, struct pick *p, int64_t seq, bool tried);

/* How the batches of a line are looked at. */
struct scan {
	enum baton_boundary at;
	bool more; /* for a run that is under way */
	size_t max;
	const uint64_t *wanted; /* NULL, or exactly these, in order */
	size_t wanted_count;
	bool pass;
};

/* Picks from the line of a lane what the scan asks for, maybe nothing. What is under `claims` is
 * left out. */
enum baton_err grant_pick(struct sqlite_store *s, int64_t lane, const struct claim_row *claims,
                          size_t claim_count, const struct scan *scan, struct pick *ret);

/* Gives the picked batches as one claim. */
enum baton_err grant_give(struct sqlite_store *s, struct grant *g, const struct pick *p,
                          int64_t lane);

/* Gives what begins in the pool, until there are `limit` claims in all, of `max` batches each. */
enum baton_err grant_heads(struct sqlite_store *s, struct grant *g, int64_t pool, size_t limit,
                           size_t max);

/* Whether something begins in the pool that the asker may have, with what is held where he is. */
enum baton_err grant_has_heads(struct sqlite_store *s, const struct grant *g, int64_t pool,
                               bool *ret);

/* The queue, if its work is handed out in that way, or in none so far. */
enum baton_err grant_queue(struct sqlite_store *s, struct baton_str name,
                           enum baton_queue_mode mode, struct queue_row **ret);

/* From now on it is handed out in that way. */
enum baton_err grant_mode(struct sqlite_store *s, struct queue_row *q, enum baton_queue_mode mode);

/* What the call answers: BATON_OK with the claims, or the error without. */
enum baton_err grant_answer(enum baton_err e, struct claims_parcel *parcel,
                            struct baton_work_claims **ret_claims);

#endif
