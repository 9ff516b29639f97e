/* Fences. */
#include "queue/fence.h"

#define GRANTER_MAX ((UINT64_C(1) << (53 - FENCE_COUNTER_BITS)) - 1)

static bool begins_with(struct baton_str s, struct baton_str start)
{
	return s.len >= start.len && memcmp(s.ptr, start.ptr, start.len) == 0;
}

enum fence_kind fence_kind_of(struct baton_str subject)
{
	bool grants = begins_with(subject, BATON_STR("lane/")) ||
	              begins_with(subject, BATON_STR("pull/")) ||
	              begins_with(subject, BATON_STR("\1"));
	return grants ? FENCE_GRANTER : FENCE_PLAIN;
}

uint64_t fence_floor(enum fence_kind kind, struct baton_store_time now)
{
	uint64_t ms = now.ms > 0 ? (uint64_t)now.ms : 0;
	switch (kind) {
	case FENCE_GRANTER:
		return ms / 1000 < GRANTER_MAX / 2 ? ms / 1000 : GRANTER_MAX / 2;
	case FENCE_PLAIN:
		return ms < FENCE_MAX >> 11 ? ms << 10 : FENCE_MAX / 2;
	}
	return 0;
}

bool fence_next(enum fence_kind kind, uint64_t last, uint64_t floor, uint64_t *ret)
{
	uint64_t above = last > floor ? last : floor;
	if (above >= (kind == FENCE_GRANTER ? GRANTER_MAX : FENCE_MAX))
		return false;
	*ret = above + 1;
	return true;
}

uint64_t fence_granter_last(const struct fence_base *base)
{
	return base->granter + (base->counter >> FENCE_COUNTER_BITS);
}

static uint64_t higher(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void fence_reach_mode(struct fence_reach *reach, enum baton_queue_mode from,
                      enum baton_queue_mode to)
{
	/* Who is the first to claim from an open queue only says which mode it has. */
	if (from != to && from != BATON_QUEUE_OPEN)
		reach->floor = reach->top;
}

void fence_reach_apart(struct fence_reach *reach)
{
	reach->floor = reach->top;
}

void fence_reach_leave(struct fence_reach *to, const struct fence_reach *from)
{
	/* One more, since who reads the reach of both at once has to see that it is another. */
	if (to->top <= from->top && from->top > 0 && from->top < FENCE_MAX)
		to->top = from->top + 1;
}

uint64_t fence_of_key(const struct fence_reach *reach, uint64_t last)
{
	return higher(last, reach->top);
}

bool fence_of_claim(struct fence_base *base, struct fence_reach *reach, uint64_t last,
                    uint64_t *ret)
{
	uint64_t start = base->granter << FENCE_COUNTER_BITS;
	uint64_t above = higher(start + base->counter, higher(last, reach->floor));
	if (above >= FENCE_MAX)
		return false;
	*ret = above + 1;
	base->counter = *ret - start;
	reach->top = higher(reach->top, *ret);
	return true;
}
