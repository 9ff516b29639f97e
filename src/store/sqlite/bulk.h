/* Jobs that stand together in one row.
 *
 * Jobs without a lane that are put in one commit, if there is nothing unusual about them, share a
 * row of `bulk`, which is written once and deleted once. One head stands for all of them that
 * nobody has claimed: claims take them in order, and move it. What is claimed is in a row of
 * `chunk`, one for the claims that one owner gets in one commit; what no head stands for and no
 * chunk has is done, or has left the row. Completions are remembered in rows of `reply`.
 *
 * That is all these rows can do. Whoever does anything else to one of them makes ordinary rows of
 * all that stand in the same row first: they are melted.
 *
 * A job with a key stands in such a row as long as it alone has its key, and whoever else becomes
 * ready with that key makes it leave the row first: it alone gets rows of its own, and the head
 * that stood for it is divided. That it is there is told by the roster, as long as its row is one
 * of the last, and later by `lone`.
 *
 * What requests of one commit do to them is gathered here, and written by bulk_flush(). Nothing is
 * to be read from the file in between, but by the functions below. */
#ifndef SQLITE_BULK_H
#define SQLITE_BULK_H

#include <baton/work.h>

#include "base/arena.h"
#include "queue/batch.h"
#include "store/sqlite/books.h"

#define BULK_MAX 64       /* jobs in a row                                       */
#define BULK_FEW 4        /* fewer have rows of their own                        */
#define BULK_JOB_MAX 2000 /* bytes of a payload: larger ones have rows of their own */
#define BULK_OPEN 8       /* chunks that completions are gathered for            */

/* What the `tried` of a head is for one that stands for a row of these. */
#define HEAD_BULK 2

struct sqlite_store;
struct batch_row;
struct claim_row;
struct grant;

/* One claim of one job. */
struct bulk_claim {
	uint64_t seq;
	uint64_t fence;
	struct baton_id token;
};

/* A row of `bulk`. */
struct bulk_row {
	int64_t first; /* the number of its first job; the others follow */
	int64_t queue;
	int64_t flags; /* of each, as a row of its own would have them */
	struct baton_store_time put_at;
	size_t count;
	bool keyed; /* some of them have keys */
};

/* Where a head of them stands: in `pool`, for the jobs from one number to another. */
struct bulk_head {
	int64_t pool, rank, seq, last;
};

/* A row of `chunk`. */
struct chunk {
	int64_t first; /* the number of the first job that was in it */
	int64_t bulk;  /* the row that they are from                 */
	int64_t queue, owner;
	struct baton_store_time claimed_at, expires_at;
	uint64_t granter;
	size_t count;
	struct bulk_claim claims[BULK_MAX];
};

/* Jobs that were put, and are in no row yet. */
struct bulk_put {
	struct queue_row *q; /* NULL: there are none */
	struct bulk_row row;
	struct baton_str jobs[BULK_MAX]; /* those who put them wait for the commit */
	struct baton_str keys[BULK_MAX]; /* the same; empty: it has none */
	int64_t hashes[BULK_MAX];        /* of the keys; 0: it has none */
};

/* The row that is being claimed from. Its head is not among the heads meanwhile. */
struct bulk_give {
	struct queue_row *q; /* NULL: there is none */
	int64_t pool;
	struct bulk_row row;
	size_t next, end;             /* the first that nobody has claimed; behind the last */
	const struct baton_str *jobs; /* in the arena */
	const struct baton_str *keys; /* the same; NULL: they have none */
	struct chunk chunk;           /* those that were, and are in no row yet; may be empty */
};

/* A chunk of which some are completed. */
struct bulk_end {
	struct chunk chunk;
	struct baton_store_time until; /* that is remembered */
	size_t count;
	struct bulk_claim done[BULK_MAX];
};

struct bulks {
	struct bulk_put put, saved; /* as it was at the savepoint */
	struct bulk_give give;
	struct arena arena; /* of `give` */
	struct bulk_end ends[BULK_OPEN];
	size_t end_count;
};

/* A commit begins anew: forgets what was gathered. */
void bulk_reset(struct bulks *b);

/* Writes what was gathered. */
enum baton_err bulk_flush(struct sqlite_store *s);

/* At a savepoint, and back to it. */
enum baton_err bulk_save(struct sqlite_store *s);
void bulk_back(struct sqlite_store *s);

/* Whether a batch that is put can stand in a row with others. */
bool bulk_suits(const struct queue_row *q, const struct batch_row *b,
                const struct baton_batch *put);

/* Such a one is put, with the next number. */
enum baton_err bulk_add(struct sqlite_store *s, struct queue_row *q, const struct batch_row *b,
                        const struct baton_batch *put);

/* Before something else becomes the head of a claim: the row that is being claimed from is put
 * back, so that it can be told which of them comes first. */
enum baton_err bulk_put_back(struct sqlite_store *s);

/* Whether the row that claims are taken from is of that pool, and has something. */
bool bulk_gives(const struct sqlite_store *s, int64_t pool);

/* Claims are taken from those that the head stands for. */
enum baton_err bulk_open(struct sqlite_store *s, struct queue_row *q, const struct bulk_head *head);

/* Gives of it, one job a claim, until there are `limit` claims in all. */
enum baton_err bulk_take(struct sqlite_store *s, struct grant *g, size_t limit);

/* Completes a claim. *ret_done false: it is none of these, or the queue keeps results; `known`: it
 * is looked for only among those that completions are being gathered for. */
enum baton_err bulk_complete(struct sqlite_store *s, const struct baton_work_proof *proof,
                             bool known, bool *ret_done);

/* Whether that claim is remembered as completed. */
enum baton_err bulk_again(struct sqlite_store *s, const struct baton_work_proof *proof, bool *ret);

/* Makes ordinary rows of those that stand in a row with the job of that number, if it does. */
enum baton_err bulk_melt(struct sqlite_store *s, int64_t seq);

/* The same, of those of that claim, if it is one; *ret_melted tells. */
enum baton_err bulk_melt_claim(struct sqlite_store *s, const struct baton_work_proof *proof,
                               bool *ret_melted);

/* The same, of all that are claimed by the owner without a time of their own, and of those of a
 * queue whose claims have expired, at most `max` rows; *ret_all: there are no more. */
enum baton_err bulk_melt_owner(struct sqlite_store *s, int64_t owner);
enum baton_err bulk_melt_expired(struct sqlite_store *s, const struct queue_row *q, size_t max,
                                 bool *ret_all);

/* The head of such a row, which is none now, is put where the mode of its queue looks for it; those
 * of a row with keys may get rows of their own. *ret_count: so many do. */
enum baton_err bulk_head_add(struct sqlite_store *s, const struct queue_row *q,
                             const struct bulk_head *head, size_t *ret_count);

/* Before another job of that line, or of another with that hash, becomes ready, or before it is
 * counted who waits for the key: the one that has it leaves its row. */
enum baton_err bulk_key_leave(struct sqlite_store *s, int64_t hash);

/* The job of that number leaves its row: it gets rows of its own, as one that alone has its key.
 * *ret_left false: it stands in none, or is done. */
enum baton_err bulk_leave(struct sqlite_store *s, int64_t seq, bool *ret_left);

/* Melts the rows of the queue that have keys. */
enum baton_err bulk_melt_keys(struct sqlite_store *s, const struct queue_row *q);

/* How many live jobs with keys that stand together are not as they should be. */
struct bulk_faults {
	int64_t lost;    /* they cannot be found by their keys */
	int64_t lined;   /* their key has a line               */
	int64_t doubled; /* somebody else is there who has it  */
};
enum baton_err bulk_keys_check(struct db *db, struct arena *a, struct bulk_faults *ret);

/* A job that stands in a row with others, for those who look. */
struct bulk_job {
	bool found; /* false: there is none, or it is done */
	bool claimed;
	int64_t owner;
	struct bulk_claim claim;
	struct baton_store_time claimed_at, expires_at;
};

/* The job of that number. */
enum baton_err bulk_look(struct db *db, int64_t seq, struct batch_row *ret, struct bulk_job *job);

/* The first one after that number. With BATON_BATCH_CLAIMED as `state`, rows of which nothing is
 * claimed are passed over. */
enum baton_err bulk_next(struct db *db, int64_t after, enum baton_batch_state state,
                         struct batch_row *ret, struct bulk_job *job);

/* Its payload. */
enum baton_err bulk_payload(struct db *db, struct arena *a, int64_t seq, struct baton_str *ret);

/* When the job of that number was put. *ret_found false: it is in no such row. */
enum baton_err bulk_put_at(struct db *db, int64_t seq, struct baton_store_time *ret,
                           bool *ret_found);

#endif
