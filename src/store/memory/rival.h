/* Those who have a key in a store in memory, or will, and who gives way to whom. */
#ifndef STORE_MEMORY_RIVAL_H
#define STORE_MEMORY_RIVAL_H

#include "store/memory/tx.h"

/* Whether it is ready, or can be taken because its claim has expired. */
bool memory_rival_waits(const struct batch *b, struct baton_store_time now);

/* The line of a key. */
struct rivals {
	uint64_t holds, waiting;
	struct batch *holder; /* the first that holds it, or NULL */
	struct batch *first;  /* that waits, or NULL              */
	struct batch *last;   /* that waits, or NULL              */
	uint64_t stopping;    /* of `holds`, claims that were asked to stop                  */
	struct batch *oldest; /* of all that hold it or wait, and were not asked to, or NULL */
};

/* Whether somebody wants some of it cancelled. */
bool memory_claim_is_stopping(const struct claim *claim);

/* All but `but`, which may be NULL. */
struct rivals memory_rivals(const struct lane *lane, const struct batch *but,
                            struct baton_store_time now);

/* How many others that have the key of that line are ready: in lanes, wherever they stand there, or
 * with several keys. */
uint64_t memory_guests_waiting(const struct lane *lane);

/* How many are ready that have the key of that line, with these; where a key has a line in each
 * shard, in all of them, and of a class in all of its queues. And the latter alone. */
uint64_t memory_key_waiting(const struct tx *tx, const struct queue *queue, struct baton_str line);
uint64_t memory_sites_waiting(const struct tx *tx, const struct queue *queue,
                              struct baton_str line);

/* A batch has just become ready: does to it, or to another of its key, what the queue's policy says
 * about conflicts. */
enum baton_err memory_rival_enter(struct tx *tx, struct batch *b);

#endif
