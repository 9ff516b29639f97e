/* The line that a batch stands in. */
#include "queue/line.h"

#include <string.h>

struct baton_str line_name(const struct baton_batch *b, char text[LINE_NAME_MAX])
{
	return b->key.len == 0 || b->lane.len > 0 ? b->lane : line_of_key(b->key, text);
}

struct baton_str line_of_key(struct baton_str key, char text[LINE_NAME_MAX])
{
	if (key.len == 0)
		return (struct baton_str){NULL, 0};
	text[0] = LINE_KEYED;
	memcpy(text + 1, key.ptr, key.len);
	return (struct baton_str){text, key.len + 1};
}

bool line_is_keyed(struct baton_str name)
{
	return name.len > 0 && name.ptr[0] == LINE_KEYED;
}

struct baton_str line_lane(struct baton_str name)
{
	return line_is_keyed(name) ? (struct baton_str){NULL, 0} : name;
}

struct baton_str line_key(struct baton_str name)
{
	return line_is_keyed(name) ? (struct baton_str){name.ptr + 1, name.len - 1}
	                           : (struct baton_str){NULL, 0};
}

bool key_has_room(const struct baton_queue_policy *policy, uint64_t holds)
{
	return holds < policy->key_limit;
}

bool key_is_usual(const struct baton_queue_policy *policy)
{
	return policy->on_conflict == BATON_CONFLICT_WAIT && policy->key_waiting_max == 0 &&
	       policy->key_ttl.ns == 0 && policy->key_fair == BATON_KEY_FAIR_OFF &&
	       policy->key_rate.starts == 0;
}

bool line_takes_turns(struct baton_str name, const struct baton_queue_policy *policy)
{
	return policy->key_fair == BATON_KEY_FAIR_ON && line_is_keyed(name);
}

uint64_t line_place(struct baton_str name, const struct baton_queue_policy *policy, uint64_t seq,
                    uint64_t turn)
{
	return line_takes_turns(name, policy) && turn > seq ? turn * 2 + 1 : seq * 2;
}

uint64_t line_turn(const struct line_before *line, uint64_t seq, uint64_t last)
{
	if (line->idle)
		return seq < last ? last : 0;
	return seq < line->first && line->turn < line->first ? line->first : line->turn;
}

struct baton_duration line_hold(struct baton_str name, const struct baton_queue_policy *policy)
{
	return line_is_keyed(name) ? policy->key_ttl : (struct baton_duration){0};
}

struct baton_duration line_ttl(struct baton_str name, const struct baton_queue_policy *policy,
                               struct baton_duration asked)
{
	struct baton_duration hold = line_hold(name, policy);
	bool bound = asked.ns == BATON_DURATION_FOREVER.ns;
	return hold.ns > 0 && hold.ns < asked.ns && !bound ? hold : asked;
}

enum key_conflict key_conflict(const struct baton_queue_policy *policy, uint64_t holds,
                               uint64_t waiting)
{
	bool full = holds + waiting >= policy->key_limit;
	bool waits = waiting > 0 && holds + waiting > policy->key_limit;
	switch (policy->on_conflict) {
	case BATON_CONFLICT_WAIT:
		break;
	case BATON_CONFLICT_SKIP:
		return full ? KEY_SKIPS_TO_HOLDER : KEY_NO_CONFLICT;
	case BATON_CONFLICT_LATEST:
		return waits ? KEY_SKIPS_WAITING : KEY_NO_CONFLICT;
	case BATON_CONFLICT_FIRST:
		return waits ? KEY_SKIPS_TO_WAITING : KEY_NO_CONFLICT;
	case BATON_CONFLICT_REPLACE:
		return full ? KEY_REPLACES : KEY_NO_CONFLICT;
	}
	return KEY_NO_CONFLICT;
}

enum line_retry line_on_retry(struct baton_str name, const struct baton_queue_policy *policy)
{
	if (name.len == 0)
		return LINE_RETRY_PASS;
	if (line_is_keyed(name))
		return policy->hold_on_retry == BATON_HOLD_KEEP ? LINE_RETRY_KEEP
		                                                : LINE_RETRY_BEHIND;
	return policy->on_retry == BATON_ON_RETRY_BLOCK ? LINE_RETRY_KEEP : LINE_RETRY_PASS;
}

bool guest_keeps_key(const struct baton_queue_policy *policy)
{
	return policy->hold_on_retry == BATON_HOLD_KEEP;
}

bool line_dead_holds(struct baton_str name, const struct baton_queue_policy *policy)
{
	return line_lane(name).len > 0 && policy->on_dead == BATON_ON_DEAD_HOLD;
}

const struct baton_retry *line_retry_policy(struct baton_str name,
                                            const struct baton_queue_policy *policy)
{
	return line_lane(name).len > 0 ? &policy->retry_lane : &policy->retry;
}
