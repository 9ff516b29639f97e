/* What a process remembers of a store, to ask less of it. All of it may be wrong by now: whoever goes
 * by a hint finds that out from what is read under the locks, and then asks for everything. */
#ifndef POSTGRES_HINTS_H
#define POSTGRES_HINTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define HINTS_CLAIMS 1024
#define HINTS_POOLS 256

/* The queue of the claims whose heads are the same but for the rest of the division by BULK_MAX. */
struct hint_claim {
	uint64_t base;
	uint32_t queue, stripe; /* 0: none is known */
};

struct hints {
	pthread_mutex_t mu;
	struct hint_claim claims[HINTS_CLAIMS]; /* [mu] */
	uint8_t heads[HINTS_POOLS]; /* [mu] so often heads are looked for before it is asked
	                               whether there are any */
	uint32_t due;               /* [mu] so often time is seen to before it is asked for */
};

void hints_init(struct hints *h);
void hints_done(struct hints *h);

void hints_claimed(struct hints *h, const struct hint_claim *claim);

/* False: nothing is known of `base`. */
bool hints_find(struct hints *h, uint64_t base, struct hint_claim *ret);

/* Whether heads are to be looked for in the pool of a queue with that stripe, of which some were
 * found not long ago. */
bool hints_heads(struct hints *h, uint32_t stripe, uint32_t pool);
void hints_heads_found(struct hints *h, uint32_t stripe, uint32_t pool, bool any);

/* Whether something was due not long ago, and that something is. */
bool hints_due(struct hints *h);
void hints_due_found(struct hints *h);

#endif
