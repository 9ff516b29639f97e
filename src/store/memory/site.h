/* Keys that count for each host, or each process, in a store in memory. */
#ifndef STORE_MEMORY_SITE_H
#define STORE_MEMORY_SITE_H

#include "store/memory/tx.h"
#include "store/uses.h"

/* Adds what is held of the queue's keys where that owner is, if that is where they count. */
enum baton_err memory_site_uses(struct tx *tx, const struct queue *queue,
                                const struct baton_owner *owner, struct key_uses *uses);

/* Whether no claim of that line may begin where that owner is, who has so much of the keys there:
 * of a line that counts where its shard is, and of no other. */
bool memory_site_is_full(const struct tx *tx, const struct lane *lane,
                         const struct baton_owner *owner, const struct key_uses *uses);

/* Of a line that counts where its shard is: when it may start again there; 0: now. */
struct baton_store_time memory_site_until(const struct tx *tx, const struct lane *lane);

/* Of a line that counts where its shard is: the id of the first that holds its key there, if no
 * more may. 0: there is room, or nobody has the shard. */
uint64_t memory_site_holder(const struct tx *tx, const struct lane *lane);

#endif
