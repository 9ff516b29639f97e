/* The lanes of a store in memory, and their lines: what is waiting or running in them, in order. */
#ifndef STORE_MEMORY_LANE_H
#define STORE_MEMORY_LANE_H

#include "store/memory/tx.h"

/* The lane that a new batch with that number goes to: the one of its line's name, or one of its
 * own. It has to get the batch. NULL: no memory. */
struct lane *memory_lane_open(struct tx *tx, struct queue *queue, struct baton_str name,
                              uint64_t id);

/* The lane of that name, or NULL. */
struct lane *memory_lane_find(const struct memory *m, struct baton_str queue,
                              struct baton_str name);

/* The hash of a line's name, for a table. */
uint64_t memory_lane_hash(const struct memory *m, struct baton_str queue, struct baton_str name);

/* Its shard: that of its lane's name or its key; without one, they take turns. */
uint32_t memory_lane_shard(const struct lane *lane);

/* Puts a batch at the place of its number. */
void memory_lane_place(struct batch *b);

/* For the table of batches. */
struct row *memory_lane_left(struct row *batch);
void memory_lane_restored(struct row *batch);

/* What the line of a lane is. */
struct line {
	struct batch *first;   /* NULL: nothing is in it. Of a key: that could be claimed        */
	struct batch *dead;    /* the first of those that hold the lane, or NULL                 */
	struct batch *claimed; /* the first that is, or NULL                                   */
	struct batch *offered; /* the first whose claim others may take, or NULL               */
	struct batch *holder;  /* the first that holds a key of which no more may be, or NULL  */
	struct baton_store_time until; /* the key has started as often as it may; 0: it has not */
	bool free; /* `first` can be claimed, after recovering the claims that are offered     */
};

/* Whether a batch is in the line: ready, claimed, or waiting for a retry that blocks its lane. */
bool memory_line_has(const struct batch *b);

struct line memory_line_look(const struct lane *lane, struct baton_store_time now);

/* Whether no other batch before it in its line is under its claim: so that each counts once. */
bool memory_claim_counts(const struct batch *b);

/* Whether somebody else may take the work of the claim. */
bool memory_claim_is_offered(const struct claim *claim, struct baton_store_time now);

#endif
