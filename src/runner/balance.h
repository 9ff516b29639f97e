/* Who should own how many shards of a queue, and what one runner does about it. */
#ifndef RUNNER_BALANCE_H
#define RUNNER_BALANCE_H

#include <stddef.h>
#include <stdint.h>

#include <baton/policy.h>
#include <baton/shard.h>

/* A runner that serves the queue. */
struct balance_member {
	uint64_t number; /* not 0 */
	uint32_t weight; /* 0: it should own nothing; to BATON_RUNNER_WEIGHT_MAX */
};

/* What one runner sees of a queue. Others may see something older or newer. */
struct balance_ask {
	const struct balance_member *members; /* by number, each once               */
	size_t count;                         /* to BATON_RUNNERS_MAX               */
	uint64_t me;                          /* not among them: I serve it no more */
	const uint64_t *owners; /* of each shard; 0: nobody; also runners that are no members */
	uint32_t shards;        /* to BATON_QUEUE_SHARDS_MAX                                  */
};

/* Which shards I take, and which I give up; one of the two is empty. `take` and `give` each have
 * room for ask->shards; what is written has no number twice.
 *
 * Every member's share is shards × weight / sum of weights, rounded down, and one more for those
 * with the largest remainders, as many as it takes to give out all shards; among equal remainders
 * for those who have more than their rounded share already, then for the lower numbers. So all who
 * see the same compute the same shares, no more shards move than the shares demand, and what is
 * moved on the way to them changes none of them.
 *
 * Whoever has more gives the rest up, the highest first. Whoever has less takes free shards, up to
 * his share, in the order given here. Those who see the same begin at different ones, and do not
 * meet unless together they lack more than there are free. */
void balance_plan(const struct balance_ask *ask, uint32_t *take, size_t *ret_takes, uint32_t *give,
                  size_t *ret_gives);

#endif
