/* Lanes, their lines, and where claims begin. */
#ifndef SQLITE_LANES_H
#define SQLITE_LANES_H

#include "store/sqlite/batches.h"
#include "store/sqlite/claims.h"
#include "store/sqlite/sqlite.h"

/* The number of a lane that is not empty; 0: there is none of that name. */
enum baton_err lane_find(struct sqlite_store *s, int64_t queue, struct baton_str name,
                         int64_t *ret);

/* Makes a lane for the batch, which is not put into it. */
enum baton_err lane_make(struct sqlite_store *s, const struct batch_row *b, int64_t *ret);

/* Makes a line of that name, in which nothing is. */
struct lane_new {
	int64_t queue;
	struct baton_str name;
	uint32_t shard;
};
enum baton_err lane_add(struct sqlite_store *s, const struct lane_new *new, int64_t *ret);

/* Puts a batch that is ready where it can be claimed: in the line of its lane, at the place that
 * its number gives it, or at the head of its own. `tried`: it has had trouble before. Of a key it
 * is a newcomer: it may end, and *ret_stays (may be NULL) is false, or another one ends for it. */
enum baton_err lane_enter(struct sqlite_store *s, struct queue_row *q, const struct batch_row *b,
                          bool tried, bool *ret_stays);

/* Takes a batch that is ready out again. */
enum baton_err lane_leave(struct sqlite_store *s, struct queue_row *q, const struct batch_row *b);

/* Finds out anew whether, and where, the lane can be claimed from, after something in it has
 * changed; a lane that has become empty is forgotten. Of a key of a class, in all its queues. */
enum baton_err lane_settle(struct sqlite_store *s, struct queue_row *q, int64_t lane);

/* The same for one that may be gone by now, as the line of a key after its lane was settled; 0:
 * none. */
enum baton_err lane_settle_key(struct sqlite_store *s, struct queue_row *q, int64_t key);
enum baton_err lane_settle_keys(struct sqlite_store *s, struct queue_row *q,
                                const struct key_lines *keys);

/* What a lane's row says. */
struct lane_row {
	int64_t held; /* the dead batch that holds it; 0: none */
	int64_t head; /* where claims begin; 0: nowhere         */
	int64_t rank;
	uint32_t shard;
	bool keyed;
	int64_t holds; /* of a key */
	int64_t turn;  /* of a key: see line_place() */
	int64_t place; /* of its head */
	int64_t until; /* of a key: it has started as often as it may; 0: it has not */
	int64_t asked; /* its first, which is a guest of the keys that it asks for; 0: none  */
	struct key_lines asks;
	int64_t guest; /* of a key: the lane that has its head; 0: none */
};

enum baton_err lane_read(struct db *db, int64_t lane, struct lane_row *ret);

/* Moves the lane's entry among the heads; `b` NULL: there is none. */
enum baton_err head_move(struct sqlite_store *s, struct queue_row *q, int64_t lane,
                         const struct lane_row *row, const struct batch_row *b, bool tried);

/* Whether a claim of the key may begin. */
enum baton_err key_is_open(struct sqlite_store *s, const struct queue_row *q, int64_t lane,
                           const struct lane_row *row, bool *ret);

/* Finds out anew whether the lane stands still because of a dead batch, and of which one. */
enum baton_err lane_hold(struct sqlite_store *s, int64_t lane);
enum baton_err lane_held(struct db *db, int64_t lane, int64_t *ret_seq);

/* How many hold the key whose line it is. */
enum baton_err lane_holds(struct db *db, int64_t lane, int64_t *ret);

/* The first of the line, and whether it has had trouble before. 0: it is empty. */
enum baton_err lane_first(struct sqlite_store *s, int64_t lane, int64_t *ret_seq, bool *ret_tried);

/* Whether a claim of the lane may begin now. `busy`: it has a live claim. */
enum baton_err lane_gives(struct sqlite_store *s, const struct queue_row *q, int64_t lane,
                          bool busy, bool *ret);

/* Where the next claim of the lane begins, and stands among others; *ret_seq 0: nowhere. */
enum baton_err lane_next(struct sqlite_store *s, int64_t lane, int64_t *ret_rank,
                         int64_t *ret_place, int64_t *ret_seq);

/* The line gets the next number for its turn, if those of its queue take turns. */
enum baton_err lane_turn(struct sqlite_store *s, const struct queue_row *q, struct baton_str line,
                         int64_t lane);

/* The work of a claim of the lane can be taken from now on, or no more. What is claimed is not in
 * the line of a key, and holds it. The lane is settled by the caller, here and below. */
enum baton_err lane_offer(struct sqlite_store *s, struct queue_row *q, const struct claim_row *c,
                          bool offer);

/* The first that holds a key: a claim that is live, or work that keeps it. 0: nobody does. */
enum baton_err key_holder(struct db *db, struct arena *a, int64_t lane, int64_t *ret_seq);

/* How many wait in the line of a key; at most `most` are counted. */
enum baton_err key_waits(struct sqlite_store *s, const struct queue_row *q, struct baton_str line,
                         int64_t most, int64_t *ret);

/* A batch keeps its key until its next attempt, and no more. */
enum baton_err key_keep(struct sqlite_store *s, int64_t lane, int64_t seq);
enum baton_err key_let_go(struct sqlite_store *s, int64_t lane, int64_t seq);

/* Settles the lines of all keys of the queue, whose limit, or whose order, has changed. */
enum baton_err keys_settle(struct sqlite_store *s, struct queue_row *q);

/* Makes a line for each key of the queue that one batch alone has. */
enum baton_err keys_melt(struct sqlite_store *s, struct queue_row *q);

/* Adds and drops what begins claims. A batch without a lane has 0 for it. */
enum baton_err head_add(struct sqlite_store *s, const struct queue_row *q,
                        const struct batch_row *b, int64_t lane, bool tried);
enum baton_err head_drop(struct sqlite_store *s, const struct queue_row *q, uint32_t shard,
                         int64_t rank, int64_t seq);

/* Where a head stands among those of its rank, unless it is that of a key which takes turns. In a
 * damaged file the numbers of jobs and queues may be anything, here and below. */
static inline int64_t place_of(int64_t seq)
{
	return (int64_t)((uint64_t)seq * 2);
}

/* Where the heads are that everybody may claim from, and those of one shard. */
static inline int64_t pool_of_queue(int64_t queue)
{
	return (int64_t)((uint64_t)queue << 13);
}

static inline int64_t pool_open(const struct queue_row *q)
{
	return pool_of_queue(q->id);
}

static inline int64_t pool_of(int64_t queue, uint32_t shard)
{
	return pool_of_queue(queue) | (shard + 1);
}

static inline int64_t pool_shard(const struct queue_row *q, uint32_t shard)
{
	return pool_of(q->id, shard);
}

/* Where a head is in the queue's mode. */
static inline int64_t head_pool(const struct queue_row *q, uint32_t shard)
{
	return q->policy.mode == BATON_QUEUE_RUNNER ? pool_shard(q, shard) : pool_open(q);
}

/* The queue's mode changes: its heads are moved to where the new one looks for them, a thousand
 * at a time, whenever something is claimed from it. */
enum baton_err heads_mode(struct sqlite_store *s, struct queue_row *q, enum baton_queue_mode mode);
enum baton_err heads_gather(struct sqlite_store *s, struct queue_row *q);

#endif
