/* What the writer has to know in every transaction, kept from one to the next: counters, and the
 * rows of queues. Written back once per transaction, whatever was done in it. */
#ifndef SQLITE_BOOKS_H
#define SQLITE_BOOKS_H

#include <baton/alloc.h>
#include <baton/owner.h>
#include <baton/queue.h>

#include "queue/fence.h"
#include "store/sqlite/db.h"
#include "store/sqlite/holdings.h"
#include "store/sqlite/roster.h"

/* How many batches of a queue are in which state. */
struct tally {
	int64_t ready, delayed, running, dead, done, failed;
	int64_t waiting; /* for a key: in the line of one, or asking for one, and not its head */
};

struct queue_row {
	int64_t id; /* 0: not in the file yet */
	char name[BATON_NAME_MAX + 1];
	size_t len;
	struct baton_queue_policy policy;
	struct fence_base pulled; /* where its pulled claims are counted */
	struct fence_reach reach; /* how far the fences of its claims have come */
	struct tally tally;
	bool mixed;   /* some heads are still where another mode had them */
	bool guests;  /* it has had work with a lane and a key */
	bool changed; /* the tally, or where claims are counted */

	/* In the transaction of that number nothing is due any more that was due at that moment. */
	uint32_t tended_in;
	struct baton_store_time tended_at;

	/* In the transaction of that number nobody has its lease, whose last fence that is. */
	uint32_t lapsed_in;
	uint64_t lapsed;
};

/* So many more wait for a key, or, below 0, no more. */
void books_waiting(struct queue_row *q, int64_t more);

/* By how much the number of an owner's claims has changed. */
struct owner_change {
	int64_t owner, claims;
};
#define BOOKS_OWNERS 16

struct books {
	const struct baton_alloc *alloc; /* [const] */
	bool loaded;
	int64_t version; /* of the file when they were loaded */
	int64_t seq, lane, swept;
	int64_t shards; /* how often they have changed hands */
	uint64_t granter_floor, plain_floor;
	bool changed; /* seq, lane, swept, shards or young */
	int64_t young
		[ROSTER_ROWS]; /* rows of jobs whose keys are not in `lone`; some may be gone */
	size_t young_count;
	struct roster roster;      /* of these */
	struct queue_row **queues; /* a block each, so that a row stays where it is */
	size_t count, cap;
	uint32_t turn; /* the number of the transaction */
	struct owner_change owners[BOOKS_OWNERS];
	size_t owner_count;
	struct baton_owner asker; /* the one whose number was asked for last */
	int64_t asker_number;     /* 0: none */
	struct holdings holdings; /* of the runner that ticked last */
};

void books_init(struct books *b, const struct baton_alloc *alloc);
void books_done(struct books *b);

/* At the beginning of a transaction: forgets what others have changed since. */
enum baton_err books_open(struct books *b, struct db *db);

/* The rows of jobs that the file names as those whose keys are not in `lone`. */
enum baton_err books_young(struct db *db, int64_t young[ROSTER_ROWS], size_t *ret_count);

/* Before its end, at the moment `now`: writes what has changed. */
enum baton_err books_write(struct books *b, struct db *db, struct baton_store_time now);

/* Writes how many claims owners have. */
enum baton_err books_owners_write(struct books *b, struct db *db, struct baton_store_time now);

/* An owner has so many claims more. */
enum baton_err books_owner(struct books *b, struct db *db, int64_t owner, int64_t claims,
                           struct baton_store_time now);

/* After a rollback. */
void books_forget(struct books *b);

/* The row of the queue. *ret NULL: there is none. A row is valid until the transaction ends. */
enum baton_err books_queue(struct books *b, struct db *db, struct baton_str name,
                           struct queue_row **ret);
enum baton_err books_queue_by_id(struct books *b, struct db *db, int64_t id,
                                 struct queue_row **ret);

/* Makes the queue, or gives it another policy. */
enum baton_err books_queue_make(struct books *b, struct db *db, struct baton_str name,
                                const struct baton_queue_policy *policy, struct queue_row **ret);
enum baton_err books_queue_write(struct db *db, const struct queue_row *q);

static inline struct baton_str queue_row_name(const struct queue_row *q)
{
	return (struct baton_str){q->name, q->len};
}

/* Reads one row of SQL_QUEUE_COLUMNS. BATON_INVALID, and of the second BATON_STORAGE, which names
 * the store: no queue can be like that. */
enum baton_err queue_row_try(const struct query *q, struct queue_row *ret);
enum baton_err queue_row_read(const struct query *q, struct queue_row *ret);

/* A shard gets another owner, or none. */
void books_shard(struct books *b);

/* A row of jobs whose keys are not in `lone` is there no more, or they are in it. */
void books_grown(struct books *b, int64_t first);

/* What the books said at a moment, to go back to. */
struct books_mark {
	int64_t seq, lane;
	int64_t young[ROSTER_ROWS];
	size_t young_count;
	size_t count;
	struct queue_row *rows; /* copies of the first `count` */
	struct owner_change owners[BOOKS_OWNERS];
	size_t owner_count;
};

enum baton_err books_mark(const struct books *b, struct books_mark *ret);
void books_back(struct books *b, const struct books_mark *mark);
void books_mark_done(const struct books *b, struct books_mark *mark);

#endif
