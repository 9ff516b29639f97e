/* How processes of the bench tell each other that there is work: through the ring of a fleet. */
#ifndef BENCH_JOBS_RING_H
#define BENCH_JOBS_RING_H

#include <baton/fleet.h>
#include <baton/store.h>

/* What a store calls after a commit; `fleet` is told. */
struct baton_store_hook ring_hook(struct baton_fleet *fleet);

/* Has the store poked, by a thread that never ends, whenever the fleet at that path hears of work
 * in the queue of the bench. */
void ring_listen(const char *fleet, struct baton_store *store);

#endif
