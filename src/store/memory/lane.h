/* The lanes of a store in memory, and their lines: what is waiting or running in them, in order. */
#ifndef STORE_MEMORY_LANE_H
#define STORE_MEMORY_LANE_H

#include "queue/line.h"
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

/* The same for those who claim, and who wait: where nobody claims from shards, that of a key is
 * not looked for, which takes longer than all else that is done to a job in memory. */
uint32_t memory_claim_shard(const struct lane *lane);

/* Puts a batch at the place of its number. */
void memory_lane_place(struct batch *b);

/* Makes a batch a guest of the line of that key, which is its key number `at`. */
void memory_guest_add(struct batch *b, size_t at, struct lane *key);

/* For the table of batches, and that of lanes. */
struct row *memory_lane_left(struct row *batch);
void memory_lane_restored(struct row *batch);
struct row *memory_lane_gone(struct row *lane);

/* The line whose key a claim, or a batch, has: the first of them, or its own, if it is no guest. */
const struct lane *memory_key_of_claim(const struct claim *claim);
const struct lane *memory_key_of(const struct batch *b);

/* The names of the lines of keys that it has beside its lane, one after the other. */
struct baton_str memory_guest_name(const struct batch *b, char text[LINE_KEYS_MAX]);
struct baton_str memory_claim_guest(const struct claim *claim, char text[LINE_KEYS_MAX]);

/* Its keys, as stores tell them. */
struct baton_str memory_keys(const struct batch *b, char text[LINE_KEYS_MAX]);
struct baton_str memory_claim_keys(const struct claim *claim, char text[LINE_KEYS_MAX]);

/* What the line of a lane is. */
struct line {
	struct batch *first;   /* NULL: nothing is in it. Of a key: that could be claimed        */
	struct batch *dead;    /* the first of those that hold the lane, or NULL                 */
	struct batch *claimed; /* the first that is, or NULL                                   */
	struct batch *offered; /* the first whose claim others may take, or NULL               */
	struct batch *holder;  /* the first that holds a key of which no more may be, or NULL  */
	struct baton_store_time until; /* the key has started as often as it may; 0: it has not */
	const struct lane *key; /* whose `holder` or `until` that is                           */
	struct batch
		*ahead; /* of a lane: `first` waits for a key, and this comes before it, or NULL */
	bool free; /* `first` can be claimed, after recovering the claims that are offered     */
};

/* The first of a lane that could be claimed but for its key, which may be another's turn; that of a
 * key, a guest or not. NULL: there is none. */
struct batch *memory_line_first(const struct lane *lane, struct baton_store_time now);

/* Where a claim can begin: in the lane, unless its first is a guest; of a key, with whomever's turn
 * it is, who may stand in a lane. NULL: nowhere. */
struct batch *memory_head(const struct lane *lane, struct baton_store_time now);

/* Remembers which guests are heads, before something is claimed from the queue: those that become
 * heads by that are for the next call, as are those of a class whose key that call has claimed. */
void memory_heads_mark(const struct tx *tx, const struct queue *queue);
bool memory_head_is_marked(const struct tx *tx, const struct batch *b);

/* Whether a batch is in the line: ready, claimed, or waiting for a retry that blocks its lane. */
bool memory_line_has(const struct batch *b);

struct line memory_line_look(const struct lane *lane, struct baton_store_time now);

/* Whether no other batch before it in its line is under its claim: so that each counts once. */
bool memory_claim_counts(const struct batch *b);

/* Whether somebody else may take the work of the claim. */
bool memory_claim_is_offered(const struct claim *claim, struct baton_store_time now);

#endif
