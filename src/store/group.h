/* Merges what several threads want to write into one commit.
 *
 * There is no thread of its own. Requests that come while somebody is at work gather in a batch;
 * the first of them leads: when it is their turn he does all of them in one commit. */
#ifndef STORE_GROUP_H
#define STORE_GROUP_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/err.h>

/* Those of one kind can be done one after the other, whoever came first. */
enum request_kind {
	REQUEST_OTHER = 0,
	REQUEST_END,
	REQUEST_PUT,
	REQUEST_CLAIM
};

struct request {
	/* Does the work inside of the transaction. May be called again after a rollback. */
	enum baton_err (*run)(void *store, void *args);
	void *args;
	enum request_kind kind;
	bool first;            /* goes before the others: a renewal */
	bool fences;           /* may hand out a fence */
	struct request *after; /* NULL, or one that comes with it, and goes before it */
	struct request *next;
	uint32_t leads; /* [atomic] a futex, for the first of a batch: it is its turn */
	enum baton_err err;
	char detail[512]; /* of a failure, for the caller's thread */
};

#define GROUP_PLACES 16
#define GROUP_BATCHES 2 /* one that gathers and one that is being done */

/* Those of a batch who sleep, by the processor on which they came. */
struct berths {
	/* [atomic] futexes: the number of the last batch that was done. */
	uint32_t done[GROUP_PLACES];
	uint32_t sleepers[GROUP_PLACES]; /* [mu] */

	/* [atomic] 1: the first who is awake there has to wake the others. */
	uint32_t more[GROUP_PLACES];
};

struct group {
	pthread_mutex_t mu;
	struct request *head, **tail;        /* [mu] the batch that gathers */
	struct request *leader;              /* [mu] its first, which will do it */
	uint32_t size;                       /* [mu] how many callers there are in it */
	uint32_t number;                     /* [mu] of that batch */
	uint32_t previous;                   /* [mu] the size of the one before */
	bool leading;                        /* [mu] somebody is at work */
	struct berths berths[GROUP_BATCHES]; /* of the batches with such a number */

	uint32_t vain; /* [atomic] the last batch for which somebody waited awake in vain */

	/* [atomic] It is in vain to wait awake: who waits sleeps at once, up to the batch with that
	 * number; and for how many batches that was said last. */
	uint32_t crowded_until, crowded_for;

	/* Does all of them in one transaction and sets their err and detail. [const] */
	void (*commit)(void *store, struct request *list);
	void *store; /* [const] */
};

void group_init(struct group *g, void (*commit)(void *store, struct request *list), void *store);
void group_done(struct group *g);

/* Returns once the request was done: request->err; and the one that comes with it, which is in the
 * same batch. */
enum baton_err group_do(struct group *g, struct request *request);

#endif
