/* A store in the memory of one process: its rows. */
#ifndef STORE_MEMORY_MEMORY_H
#define STORE_MEMORY_MEMORY_H

#include <pthread.h>

#include "base/digest.h"
#include "queue/batch.h"
#include "queue/fence.h"
#include "queue/lease.h"
#include "store/memory/row.h"
#include "store/store.h"
#include "store/uses.h"

/* Whoever keeps the rows elsewhere, and has put only some of them here. */
struct keeper {
	/* Told of every row that a transaction has changed, before those that are gone leave. */
	void (*changed)(void *arg, struct row *row);
	void *arg;
};

struct memory {
	struct baton_store store;       /* first */
	struct baton_id seed;           /* [const] of the hashes                          */
	struct baton_store_time made;   /* [const] when the store was                     */
	const struct baton_alloc *rows; /* [const] what they are made of                 */
	pthread_mutex_t mu;
	uint64_t epoch; /* [mu] grows with every transaction and every mark in one       */
	uint64_t calls; /* [mu] how many transactions there were                         */
	uint64_t seq;   /* [mu] the last number that was given                           */
	uint64_t text;  /* [mu] how many texts there were                                */
	struct table queues, lanes, batches, claims, sources, answers, leases, texts; /* [mu] */
	struct table schedules, runners, reports, rates;                              /* [mu] */
	uint64_t runner;         /* [mu] the number of the last one that registered              */
	struct keeper keeper;    /* [const] zeros: the rows are here and nowhere else     */
	const uint64_t *numbers; /* [mu] NULL, or those that can be given, ascending      */
	size_t number_count;
	struct key_uses known; /* [mu] of a desk: what is held where its tick comes from */
};

/* Names are kept behind the row. */
struct queue {
	struct row row;
	struct memory *memory; /* whose it is */
	struct baton_str name;
	struct baton_str peers; /* on a desk: the other queues of its class, '/' between any two */
	uint64_t waiting;       /* for a key, on a desk: as it was read */

	struct {
		struct baton_queue_policy policy;
		uint64_t in[BATON_BATCH_GONE + 1]; /* how many are in each state        */
		uint64_t done, failed;             /* only grow                         */
		struct fence_reach reach;          /* of its claims                     */
		bool guests;                       /* it has had work with a lane and a key */
	} is;
};

struct batch;
struct lane;

/* That a batch which stands in a lane has the key of another line, too: it is a guest there. */
struct guest {
	struct batch *batch;
	struct lane *key;
	struct guest *prev, *next; /* of that key */
};

/* A line: of a lane, or of a key. Exists as long as it has batches, or, of a key, there are some
 * that have it beside a lane. One without a name has one batch. */
enum led {
	LED_UNKNOWN = 0,
	LED_RIGHT,
	LED_WRONG
};

struct lane {
	struct row row;
	struct queue *queue;
	struct baton_str name;      /* see queue/line.h         */
	struct batch *first, *last; /* by number, in all states */
	uint64_t unseen;            /* of a key, on a desk: so many more are ready than were read */
	uint64_t crowd;             /* of a key, on a desk: so many more are ready, guests or in
	                               other queues of its class */
	struct guest *guests;       /* of a key: those that stand in lanes, in all states */
	struct lane *with;          /* that leaves its table after it, or NULL            */
	uint64_t marked_in, marked; /* of a key: see memory_heads_mark()                  */
	uint64_t freed_in;          /* the last call in which a claim of it ended         */
	uint64_t held_by;           /* of a desk that looks: see memory_site_holder()     */
	struct baton_store_time held_until; /* and memory_site_until()                    */
	uint64_t taken_in;                  /* of a key: see memory_class_take()                  */
	enum led led; /* on a desk: whether its heads are written as they should be */

	struct {
		uint64_t turn;                 /* see line_place()                        */
		struct baton_store_time until; /* it has started as often as it may: as its
		                                  row in `rates` says; 0: it has not      */
	} is;
};

/* The last starts of a key whose queue counts them; see queue/rate.h. It stays when the line is
 * gone. One that changes is replaced by another one. */
struct rate {
	struct row row;
	struct queue *queue;
	struct baton_str name; /* of the line */
	struct baton_store_time *starts;
	size_t count;

	struct {
		struct baton_store_time until; /* when it may start again; 0: now */
	} is;
};

/* A text that several batches share. */
struct text {
	struct row row;
	struct baton_str bytes;

	struct {
		uint64_t users;
	} is;
};

/* A free claim. */
struct claim {
	struct row row;
	struct lane *lane;
	struct lane **keys; /* that it holds, of guests: behind the row */
	size_t key_count;
	struct claim_name name;
	uint64_t granter; /* the fence under which it was given */
	struct baton_id token;
	struct baton_owner owner;
	struct baton_store_time claimed_at;

	struct {
		struct baton_store_time expires;
		bool offered;   /* expired, and seen to be */
		uint64_t count; /* of its batches          */
	} is;
};

struct batch {
	struct row row;
	struct batch *prev, *next; /* in its lane */
	struct lane *lane;
	struct guest *keys; /* that it has beside its lane: behind the row */
	size_t key_count;
	bool was_head; /* on a desk: a claim can begin with it */
	bool sourced;  /* on a desk: it was put with a source key in this transaction */
	uint64_t id;
	struct baton_batch put; /* as it was put, of the batch's own memory */
	struct baton_store_time put_at;

	struct {
		uint64_t seq;
		enum baton_batch_state state;
		uint32_t attempts;
		uint64_t fence;                   /* of its last claim; 0: none             */
		struct baton_store_time due;      /* delayed, retry                         */
		struct baton_store_time ended_at; /* dead, done                         */
		struct baton_store_time until;    /* done: how long that is kept           */
		struct claim *claim;              /* claimed                                */
		bool cancel;                      /* claimed, and asked to stop             */
		bool holds;  /* dead, and its lane stands still; retry, and it keeps its key */
		bool blocks; /* retry, and those behind it wait too                         */
		bool keeps;  /* retry, and it keeps the keys that it has beside its lane     */
		uint64_t by; /* done, and it was skipped, or claimed, and it is to be: the id of
		                whom it gives way to                                        */
		struct text *error;  /* of the last attempt, or NULL           */
		struct text *result; /* done, or NULL                          */
	} is;
};

/* What is remembered of a source key. */
struct source {
	struct row row;
	uint8_t key[DIGEST_SIZE];

	struct {
		uint8_t content[DIGEST_SIZE];
		uint64_t id;
		struct baton_store_time until;
	} is;
};

/* What is remembered of a claim that was completed. */
struct answer {
	struct row row;
	struct claim_name name;
	struct baton_id token;
	enum baton_batch_state state;
	struct baton_store_time until;
};

struct lease {
	struct row row;
	struct baton_str subject;
	bool held_off; /* nobody may take it now; of a desk's, see admit in docs/postgres.md */

	struct {
		struct lease_row row;
		uint64_t counter; /* of the claims under its fence */
		uint64_t runner;  /* of a shard: who has it; 0: nobody */
	} is;
};

/* What `put` points to is kept behind the row. */
struct schedule {
	struct row row;
	struct baton_schedule put;

	struct {
		struct baton_store_time last, next;
	} is;
};

struct runner {
	struct row row;
	struct runner_row put; /* as it was registered */

	struct {
		enum baton_runner_wish wish;
		char state[BATON_NAME_MAX + 1];
	} is;
};

/* What a runner has reported. */
struct report {
	struct row row;
	uint64_t runner;
	struct baton_store_time at;
	size_t len;
	char text[];
};

/* Rows are made of that from now on, and need not be given back. There are none yet. */
void memory_rows_from(struct memory *m, const struct baton_alloc *alloc);

/* The number that a batch gets next. */
uint64_t memory_next_number(const struct memory *m);

/* The hash of some bytes, for a table. */
uint64_t memory_hash(const struct memory *m, const void *bytes, size_t len);

/* Less than, equal to or more than 0, as the bytes of `a` come before, are, or come after `b`. */
int memory_compare(struct baton_str a, struct baton_str b);

#endif
