/* Runners of several hosts, and what they claim. */
#ifndef CONFORMANCE_SITES_H
#define CONFORMANCE_SITES_H

#include <baton/shard.h>

#include "store/store.h"
#include "world.h"

#define QUEUE "q"
#define SHARDS 4

/* The queue is made, with that scope and that limit of its keys. */
void scope_is(struct world *w, enum baton_key_scope scope, uint32_t limit);

/* A runner of this process on that host: what others see of it is its boot. */
struct baton_runner *enlist(struct world *w, const char *name, uint8_t host);

/* Shards [first, end) of the queue. */
void own(struct baton_runner *r, uint32_t first, uint32_t end);

struct baton_batch_id put_key(struct world *w, const char *key);

/* What a tick gives of all shards; NULL: nothing. */
const struct baton_work_claims *tick(struct world *w, struct baton_runner *r,
                                     const struct baton_work_claim *ended, enum baton_work_how how,
                                     uint32_t claims);
const struct baton_work_claims *take(struct world *w, struct baton_runner *r);

#endif
