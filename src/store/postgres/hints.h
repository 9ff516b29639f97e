/* What a process remembers of a store, to ask less of it. All of it may be wrong by now: whoever
 * goes by a hint finds that out from what is read under the locks, and then asks for everything. */
#ifndef POSTGRES_HINTS_H
#define POSTGRES_HINTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/postgres/desk.h"

#define HINTS_CLAIMS 1024
#define HINTS_POOLS 256
#define HINTS_QUEUES 16

/* The queue of the claims whose heads are the same but for the rest of the division by BULK_MAX;
 * or, of one that has a row of its own, of that with just this head. */
struct hint_claim {
	uint64_t base;
	uint32_t queue, stripe; /* 0: none is known */
};

/* A queue as it was when this process last read or wrote it. Whoever goes by it writes its counts
 * first, in a statement that fails if they, or the queue, are not those any more. */
struct recall {
	char name[BATON_NAME_MAX + 1]; /* "": none */
	uint32_t queue;
	uint32_t unsure; /* it was wrong: so often it is not gone by   */
	uint32_t often;  /* the same, after it is wrong the next time */
	int64_t at_ns;
	uint64_t last; /* the last number that was given */
	uint64_t last_runner;
	struct baton_store_time made;
	struct read_queue is;
};

struct hints {
	pthread_mutex_t mu;
	struct recall queues[HINTS_QUEUES];     /* [mu] */
	struct hint_claim claims[HINTS_CLAIMS]; /* [mu] */
	struct hint_claim apart[HINTS_CLAIMS];  /* [mu] those with rows of their own */
	uint8_t heads[HINTS_POOLS]; /* [mu] so often heads are looked for before it is asked
	                               whether there are any */
	bool strict[STRIPES + STRIPES_OF_RUNNERS];      /* [mu] keys are not as usual in a queue */
	uint64_t classes[STRIPES + STRIPES_OF_RUNNERS]; /* [mu] of queues, by class_bit() */
	uint64_t last;                                  /* [mu] the last number that was given */
	uint32_t due; /* [mu] so often time is seen to before it is asked for */
};

void hints_init(struct hints *h);
void hints_done(struct hints *h);

void hints_claimed(struct hints *h, const struct hint_claim *claim);

/* False: nothing is known of `base`. */
bool hints_find(struct hints *h, uint64_t base, struct hint_claim *ret);

/* The same of claims that have rows of their own. */
void hints_claimed_apart(struct hints *h, const struct hint_claim *claim);
bool hints_find_apart(struct hints *h, uint64_t head, struct hint_claim *ret);

/* The queue of that name, or with "" of that number. False: nothing is known, or it is too old. */
bool hints_recall(struct hints *h, struct baton_str name, uint32_t queue, int64_t now_ns,
                  struct recall *ret);
void hints_remember(struct hints *h, const struct recall *queue);

/* That number was given. */
void hints_number(struct hints *h, uint64_t number);

/* It is something else now. How often it was wrong is still known. */
void hints_drop(struct hints *h, struct baton_str name);

/* It was wrong: it is not gone by for some time, twice as long each time. And it was right: half as
 * long the next time. Somebody else who writes to the queue again and again is found out about by
 * an error in the server's log each time. */
void hints_unsure(struct hints *h, const struct recall *queue);
void hints_sure(struct hints *h, const struct recall *queue);

/* Another server may have answered since. */
void hints_forget(struct hints *h);

/* Whether heads are to be looked for in the pool of a queue with that stripe, of which some were
 * found not long ago. */
bool hints_heads(struct hints *h, uint32_t stripe, uint32_t pool);
void hints_heads_found(struct hints *h, uint32_t stripe, uint32_t pool, bool any);

/* Whether keys are something unusual in queues of that stripe. */
bool hints_strict(struct hints *h, uint32_t stripe);
void hints_strict_found(struct hints *h, uint32_t stripe, bool strict);

/* Of which classes queues of that stripe are, or were once. */
uint64_t hints_classes(struct hints *h, uint32_t stripe);
void hints_class_found(struct hints *h, uint32_t stripe, uint64_t bit);

/* Whether something was due not long ago, and that something is. */
bool hints_due(struct hints *h);
void hints_due_found(struct hints *h);

#endif
