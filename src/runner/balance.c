/* Who should own how many shards of a queue, and what one runner does about it. */
#include "runner/balance.h"

#include <stdbool.h>

#include "base/check.h"

/* What is known and decided about every member, by its place in the list. */
struct tally {
	const struct balance_ask *ask;
	uint64_t weights; /* the sum of all                */
	uint32_t have[BATON_RUNNERS_MAX];
	uint32_t share[BATON_RUNNERS_MAX];
	uint32_t mine; /* shards that I own */
	uint32_t free; /* shards of nobody  */
};

/* The place of a member in the list; or the list's length. */
static size_t place_of(const struct balance_ask *ask, uint64_t number)
{
	size_t low = 0;
	size_t high = ask->count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (ask->members[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low < ask->count && ask->members[low].number == number ? low : ask->count;
}

static void tally_count(struct tally *t)
{
	const struct balance_ask *ask = t->ask;
	for (size_t i = 0; i < ask->count; i++) {
		CHECK(i == 0 || ask->members[i - 1].number < ask->members[i].number);
		t->weights += ask->members[i].weight;
	}
	for (uint32_t shard = 0; shard < ask->shards; shard++) {
		uint64_t owner = ask->owners[shard];
		t->free += owner == 0;
		t->mine += owner != 0 && owner == ask->me;
		size_t place = owner == 0 ? ask->count : place_of(ask, owner);
		if (place < ask->count)
			t->have[place]++;
	}
}

/* How much a member wants one shard more than its rounded share: by its remainder, and among equal
 * ones by whether it has that shard. Below 2 × the sum of the weights. */
static uint64_t wish(const struct tally *t, size_t i)
{
	uint64_t part = (uint64_t)t->ask->shards * t->ask->members[i].weight;
	return part % t->weights * 2 + (t->have[i] > part / t->weights);
}

/* The strongest wish that at least `count` members have, or a stronger one. */
static uint64_t wish_of_last(const struct tally *t, uint32_t count)
{
	uint64_t low = 0; /* all have it */
	uint64_t high = 2 * t->weights;
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;
		uint32_t have = 0;
		for (size_t i = 0; i < t->ask->count; i++)
			have += wish(t, i) >= middle;
		if (have >= count)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static void share_rests(struct tally *t, uint32_t rest)
{
	if (rest == 0)
		return;
	uint64_t last = wish_of_last(t, rest);
	for (size_t i = 0; i < t->ask->count; i++) {
		if (wish(t, i) <= last)
			continue;
		t->share[i]++;
		rest--;
	}
	for (size_t i = 0; rest > 0 && i < t->ask->count; i++) {
		if (wish(t, i) != last)
			continue;
		t->share[i]++;
		rest--;
	}
}

static void tally_share(struct tally *t)
{
	uint32_t rest = t->ask->shards;
	for (size_t i = 0; i < t->ask->count; i++) {
		uint64_t part = (uint64_t)t->ask->shards * t->ask->members[i].weight;
		t->share[i] = t->weights > 0 ? (uint32_t)(part / t->weights) : 0;
		rest -= t->share[i];
	}
	if (t->weights > 0)
		share_rests(t, rest);
}

static size_t give_up(const struct tally *t, uint32_t surplus, uint32_t *give)
{
	size_t n = 0;
	for (uint32_t shard = t->ask->shards; shard-- > 0 && n < surplus;)
		if (t->ask->owners[shard] == t->ask->me)
			give[n++] = shard;
	return n;
}

/* How many free shards those before me lack: they begin with these. */
static uint32_t lacked_before(const struct tally *t, size_t me)
{
	uint32_t lacked = 0;
	for (size_t i = 0; i < me; i++)
		if (t->share[i] > t->have[i])
			lacked += t->share[i] - t->have[i];
	return lacked;
}

static size_t take_free(const struct tally *t, size_t me, uint32_t *take)
{
	uint32_t lack = t->share[me] - t->have[me];
	uint32_t count = lack < t->free ? lack : t->free;
	if (count == 0)
		return 0;
	uint32_t first = lacked_before(t, me) % t->free;
	uint32_t turn = t->free - first; /* of the free shard that is looked at, counted from it */
	for (uint32_t shard = 0; shard < t->ask->shards; shard++) {
		if (t->ask->owners[shard] != 0)
			continue;
		if (turn % t->free < count)
			take[turn % t->free] = shard;
		turn++;
	}
	return count;
}

void balance_plan(const struct balance_ask *ask, uint32_t *take, size_t *ret_takes, uint32_t *give,
                  size_t *ret_gives)
{
	CHECK(ask->count <= BATON_RUNNERS_MAX && ask->shards <= BATON_QUEUE_SHARDS_MAX);
	CHECK(ask->me != 0);
	struct tally t = {.ask = ask};
	tally_count(&t);
	tally_share(&t);
	size_t me = place_of(ask, ask->me);
	uint32_t share = me < ask->count ? t.share[me] : 0;
	*ret_gives = t.mine > share ? give_up(&t, t.mine - share, give) : 0;
	*ret_takes = t.mine < share ? take_free(&t, me, take) : 0;
}
