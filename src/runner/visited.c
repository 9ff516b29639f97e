/* What the core decides about connections for lanes. */
#include "base/check.h"
#include "queue/place.h"
#include "runner/state.h"

bool core_visit(struct core *c, uint32_t queue, struct baton_str lane, struct baton_mono now,
                uint32_t *ret_shard, baton_fence *ret_fence)
{
	const struct served *s = &c->served[queue];
	core_time(c, now);
	if (!core_is_attached(c, now) || c->stopping || !s->usable)
		return false;
	uint32_t number = place_of_lane(s->serve->queue, lane, s->count);
	struct shard *shard = &s->shards[number];
	if (shard->is != SHARD_MINE)
		return false;
	shard->visits++;
	c->visits++;
	*ret_shard = number;
	*ret_fence = shard->fence;
	return true;
}

bool core_visit_goes_on(const struct core *c, uint32_t queue, uint32_t shard)
{
	return !c->stopping && !c->stale && c->served[queue].shards[shard].is == SHARD_MINE;
}

void core_visit_ended(struct core *c, uint32_t queue, uint32_t shard)
{
	struct shard *s = &c->served[queue].shards[shard];
	CHECK(s->visits > 0 && c->visits > 0);
	s->visits--;
	c->visits--;
}
