/* A desk: a small part of the store in memory, on which the calls of one transaction are done.
 *
 * What they can depend on is read from the server, under locks that keep others from changing it;
 * the functions of `memory` do the calls; and what they have changed is written back. */
#ifndef POSTGRES_DESK_H
#define POSTGRES_DESK_H

#include "store/memory/memory.h"
#include "store/memory/tx.h"
#include "store/postgres/conn.h"
#include "store/postgres/wants.h"

/* A queue as it was read. */
struct read_queue {
	struct queue *row;
	struct baton_queue_policy policy;
	uint64_t in[BATON_BATCH_GONE + 1];
	uint64_t done, failed;
	struct fence_reach reach;
	bool guests;
	int64_t since_ms;  /* before that nothing was due, and no claim over */
	int64_t tended_ms; /* and now, as far as this transaction knows       */
	uint64_t counts;   /* the number of the row that has its counts; 0: none has */
	uint64_t version;  /* of the row that has its policy                         */
};

/* A lease as it was read. */
struct read_lease {
	struct lease *row;
	struct lease_row was;
	uint64_t counter, runner;
	bool first; /* its claims were not counted beside it yet */
};

/* A line that is not what it was. `left`: something of it is gone. */
struct touched {
	struct baton_str queue, lane;
	bool left;
};

/* Where the first head that can be claimed is far behind the number from which on they are looked
 * for. */
struct far {
	int32_t queue, pool, rank;
};

struct bulk_read;
struct chunk_read;

/* What claims of a desk are kept under; bulk.h has the rest. */
#define CLAIM_KEPT 1
#define CLAIM_OFFERED 2

/* What a batch is, in a row. */
enum {
	FLAG_COMMAND = 1,
	FLAG_AFTER_COMMIT = 2,
	FLAG_JOIN = 4,
	FLAG_MANY = 8
};

struct desk {
	struct baton_store *store; /* in memory */
	struct memory *m;          /* the same  */
	struct baton_alloc rows;   /* takes from the arena, and gives nothing back */
	struct baton_clock clock;  /* shows `now` */
	struct baton_store_time now;
	struct arena arena; /* [home] of who has lent it, and gets it back */
	struct arena *home;
	bool memory;   /* false: there was not enough */
	uint64_t last; /* the number that was the last before */
	uint64_t last_runner;
	bool expects; /* the next numbers are expected to follow; else they were drawn */
	struct read_queue *queues;
	size_t queue_count, queue_cap;
	struct read_lease *leases;
	size_t lease_count, lease_cap;
	struct touched *lanes;
	size_t lane_count, lane_cap;
	struct nums gone_batches, gone_heads, gone_fences, gone_runners;
	struct strs gone_schedules;
	struct baton_store_news *news;
	size_t news_count, news_cap;
	struct bulk_read *bulks; /* rows of several batches; see bulk.h */
	size_t bulk_count, bulk_cap;
	struct chunk_read *chunks;
	size_t chunk_count, chunk_cap;
	struct far *fars;
	size_t far_count, far_cap;
	size_t shared;                   /* so many new batches can stand in such rows */
	bool apart;                      /* new batches with keys do not */
	const struct baton_owner *asker; /* who claims, if keys count where he is, or NULL */
	bool around;   /* of each lane that can change, the first of its line was read, and one
	                  more than can leave it */
	int64_t dead;  /* so many rows that are gone were come across in lines then */
	bool presumes; /* nobody else has the keys of new batches: that is to be checked */
	bool recalled; /* the queue was not read, but remembered */
	bool melts;    /* claims were found that first have to stand in rows of their own */
};

/* An empty one, for calls on `of` at the moment `now`. Its memory is that of `home`, until it is
 * closed. */
enum baton_err desk_open(struct desk *d, const struct baton_store *of, struct baton_store_time now,
                         struct baton_store_time made, struct arena *home);
void desk_close(struct desk *d);

/* Put what an answer has on the desk. Queues come first, then batches, then their claims. */
enum baton_err desk_queues(struct desk *d, const PGresult *r);
enum baton_err desk_batches(struct desk *d, const PGresult *r);
enum baton_err desk_claims(struct desk *d, const PGresult *r);
enum baton_err desk_held(struct desk *d, const PGresult *r);    /* claims beside their batches */
enum baton_err desk_around(struct desk *d, const PGresult *r);  /* the same, and what was dead */
enum baton_err desk_waiting(struct desk *d, const PGresult *r); /* after the batches */
enum baton_err desk_site_holders(struct desk *d, const PGresult *r); /* as well */
enum baton_err desk_site_uses(struct desk *d, const PGresult *r);
enum baton_err desk_sources(struct desk *d, const PGresult *r);
enum baton_err desk_answers(struct desk *d, const PGresult *r);
enum baton_err desk_leases(struct desk *d, const PGresult *r);
enum baton_err desk_leases_at(struct desk *d, const PGresult *r, int column);
enum baton_err desk_held_off(struct desk *d, const PGresult *r); /* after the leases */
enum baton_err desk_runners(struct desk *d, const PGresult *r);
enum baton_err desk_schedules(struct desk *d, const PGresult *r);

/* Rows are put on the desk between these, and that is nobody's news. */
void desk_load_begin(struct desk *d, struct tx *tx);
enum baton_err desk_load_end(struct desk *d, struct tx *tx, enum baton_err e);
enum baton_err desk_load_done(struct desk *d, struct tx *tx, bool memory);

enum baton_err desk_far(struct desk *d, const PGresult *r);

/* Up to when the queues have been tended, after them. */
enum baton_err desk_tended(struct desk *d, const PGresult *r);

void desk_tended_at(const struct desk *d, int64_t queue, int64_t at_ms);

/* Something of the queue will be due, or over, then. */
void desk_until(const struct desk *d, const struct queue *q, struct baton_store_time at);

/* The starts of a line, which are in that column. */
struct rate_starts;
enum baton_err desk_starts(struct desk *d, struct tx *tx, const PGresult *r, int row, int column,
                           struct rate_starts *s);

/* A queue as it was read before: see struct recall. */
enum baton_err desk_recall(struct desk *d, struct baton_str name, uint32_t number,
                           const struct read_queue *read);

/* What will be read of it after this transaction. False: that is not known. */
bool desk_foresee(const struct desk *d, const struct read_queue *read, struct read_queue *ret);

/* The queue that was read with that number, or NULL. */
struct queue *desk_queue_of(const struct desk *d, int64_t id);
/* The batch with that id, or NULL. */
struct batch *desk_batch(const struct desk *d, uint64_t id);
bool desk_has_claim(const struct desk *d, const struct claim_name *name);
int32_t desk_flags(const struct baton_batch *put);

bool desk_counts_changed(const struct read_queue *read);

/* Sends what has changed. */
struct written {
	bool any;  /* something has */
	bool sure; /* it fails if it was done by what is not so any more */
	int told;  /* which answer has the number of the transaction; -1: none */
};
enum baton_err desk_write(struct desk *d, struct conn *c, struct written *ret);

/* Appends to a list that the desk's arena has. False: no memory. */
bool desk_room(struct desk *d, void **list, size_t count, size_t *cap, size_t size);

#endif
