/* How often the keys of a store in memory have started lately. */
#ifndef STORE_MEMORY_RATE_H
#define STORE_MEMORY_RATE_H

#include "queue/rate.h"
#include "store/memory/tx.h"

/* When the line may be claimed from again, as far as the rate of its queue goes; 0: now. */
struct baton_store_time memory_rate_until(const struct memory *m, const struct lane *lane);

/* The same where that owner is, of a line that counts there. */
struct baton_store_time memory_rate_until_at(const struct memory *m, const struct lane *lane,
                                             const struct baton_owner *owner);

/* A claim is taken from the line of a key, for that owner. */
enum baton_err memory_rate_claim(struct tx *tx, struct lane *lane, const struct baton_owner *owner);

/* A runner is gone, and what it has started counts no more. */
enum baton_err memory_rate_forget(struct tx *tx, const struct baton_owner *owner);

/* What time does: keys may start again. */
enum baton_err memory_rate_see(struct tx *tx, const struct queue *queue);

/* The same in all queues in which a key may; and for the oldest `max` of the keys alone. */
enum baton_err memory_rate_see_all(struct tx *tx);
enum baton_err memory_rate_see_some(struct tx *tx, size_t max);

/* The rate of the queue has changed from `was`. */
enum baton_err memory_rate_change(struct tx *tx, struct queue *queue,
                                  const struct baton_key_rate *was);

/* The queue leaves its class, or joins one: what its keys have started is from now on with another
 * queue of the class that it leaves; NULL: there is none, and it is forgotten. */
enum baton_err memory_rate_leave(struct tx *tx, const struct queue *queue, struct queue *heir);

/* Whether it need not be kept any longer. */
bool memory_rate_is_over(const struct rate *rate, struct baton_store_time now);

/* The starts of a line. */
struct rate_starts {
	struct queue *queue;
	struct baton_str name;
	struct baton_store_time *list;
	size_t count;
	struct baton_store_time until;
};

/* Keeps these in the place of those that the line had; none: it has none any more. If the line is
 * there, it waits as they say. */
enum baton_err memory_rate_set(struct tx *tx, const struct rate_starts *starts);

/* Those that are kept, or NULL. Of a key of a class, in whichever queue they are: there is one row for
 * all of them. */
struct rate *memory_rate_find(const struct memory *m, const struct queue *queue,
                              struct baton_str name);

#endif
