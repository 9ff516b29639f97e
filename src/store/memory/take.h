/* Claims as they are made in a store in memory. */
#ifndef STORE_MEMORY_TAKE_H
#define STORE_MEMORY_TAKE_H

#include "queue/select.h"
#include "store/memory/tx.h"
#include "store/parcel.h"

/* For whom, under which lease, and for how long. */
struct take {
	const struct baton_owner *owner;
	struct lease *granter; /* counts the claim */
	struct baton_duration ttl;
	struct claims_parcel *parcel;
	struct key_uses *uses; /* what is held where he is; NULL: that does not count */
};

/* The ready batches of a line as far as they can be claimed now, in order: of a lane, until a retry
 * that blocks. Returned in the memory of the transaction. */
struct ready {
	struct batch **batches;
	struct candidate *candidates; /* the same */
	size_t count;
};

enum baton_err memory_take_ready(struct tx *tx, const struct lane *lane, struct ready *ret);

/* A claim of that name, of the lane and the keys of `head`, and nothing else said of it. NULL: no
 * memory. */
struct claim *memory_claim_add(struct tx *tx, const struct claim_name *name,
                               const struct batch *head);

/* Claims the batches, which are ready, and writes into the next claim of the parcel. */
enum baton_err memory_take(struct tx *tx, const struct take *take, struct batch *const *batches,
                           size_t count);

#define MEMORY_ANY_SHARD UINT32_MAX

struct take_limits {
	size_t claims; /* at most so many      */
	size_t max;    /* batches in each      */
};

/* Claims from the free lanes of the queue, or of one of its shards, as long as there are any. What
 * is due in the queue was seen before: memory_due_see(). */
enum baton_err memory_take_lanes(struct tx *tx, struct queue *queue, uint32_t shard,
                                 struct take *take, const struct take_limits *limits);

/* A parcel with room for so many claims. NULL: no memory. */
struct claims_parcel *memory_take_parcel(const struct tx *tx, size_t claims);

/* Hands over the parcel after a transaction, if it succeeded and there is something in it. */
enum baton_err memory_take_give(enum baton_err e, struct claims_parcel *parcel,
                                struct baton_work_claims **ret_claims);

/* Ends the transaction of a claim, and hands over its parcel. */
enum baton_err memory_take_end(struct tx *tx, enum baton_err e, struct claims_parcel *parcel,
                               struct baton_work_claims **ret_claims);

/* A batch as others see it, in the memory of `a`. */
enum baton_err memory_show_batch(struct arena *a, const struct batch *b, bool payloads,
                                 struct baton_work_batch *ret);

#endif
