/* Whatever a runner sees of a queue, its plan is one that it may follow: free shards to take, its
 * own to give up, none twice, and with all other plans of the same view no more than there are. */
#include "runner/balance.h"

#include <stdbool.h>

#include "fuzz/fuzz.h"

#define MEMBERS_MAX 16

/* The input: how many members, the weight of each, then the owner of each shard, of which some are
 * no members. */
static bool read_view(const uint8_t *data, size_t size, struct balance_ask *ask,
                      struct balance_member *members, uint64_t *owners)
{
	if (size == 0 || (size_t)data[0] % (MEMBERS_MAX + 1) >= size)
		return false;
	ask->count = data[0] % (MEMBERS_MAX + 1);
	for (size_t i = 0; i < ask->count; i++)
		members[i] = (struct balance_member){2 * i + 2, data[1 + i] % 8};
	for (size_t at = 1 + ask->count; at < size; at++)
		owners[ask->shards++] = data[at] % (2 * MEMBERS_MAX + 4);
	return true;
}

/* How many shards the runner has after it followed its plan; checks that it may. */
static size_t follow(const struct balance_ask *ask, bool *taken)
{
	uint32_t take[512];
	uint32_t give[512];
	bool given[512] = {false};
	size_t takes;
	size_t gives;
	balance_plan(ask, take, &takes, give, &gives);
	size_t have = 0;
	for (uint32_t s = 0; s < ask->shards; s++)
		have += ask->owners[s] == ask->me;
	CHECK(takes == 0 || gives == 0);
	bool mine[512] = {false};
	for (size_t i = 0; i < takes; i++) {
		CHECK(take[i] < ask->shards && ask->owners[take[i]] == 0 && !mine[take[i]]);
		mine[take[i]] = true;
		taken[take[i]] = true;
	}
	for (size_t i = 0; i < gives; i++) {
		CHECK(give[i] < ask->shards && ask->owners[give[i]] == ask->me && !given[give[i]]);
		given[give[i]] = true;
	}
	return have + takes - gives;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct balance_member members[MEMBERS_MAX];
	uint64_t owners[512];
	struct balance_ask ask = {.members = members, .owners = owners};
	if (size > sizeof owners / sizeof *owners || !read_view(data, size, &ask, members, owners))
		return 0;
	uint64_t weights = 0;
	for (size_t i = 0; i < ask.count; i++)
		weights += members[i].weight;
	bool taken[512] = {false};
	for (size_t i = 0; i < ask.count; i++) {
		ask.me = members[i].number;
		uint64_t part = (uint64_t)ask.shards * members[i].weight;
		CHECK(follow(&ask, taken) <= (weights == 0 ? 0 : (part + weights - 1) / weights));
	}
	for (uint32_t s = 0; s < ask.shards; s++)
		CHECK(owners[s] != 0 || weights == 0 || taken[s]);
	ask.me = 1;
	CHECK(follow(&ask, taken) == 0);
	return 0;
}
