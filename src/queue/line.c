/* The line that a batch stands in. */
#include "queue/line.h"

#include <string.h>

#include "base/number.h"
#include "queue/policy.h"

bool keys_are_several(struct baton_str key)
{
	return key.len > 0 && memchr(key.ptr, LINE_KEYED, key.len);
}

bool keys_next(struct baton_str *rest, struct baton_str *ret)
{
	if (rest->len == 0)
		return false;
	const char *end = memchr(rest->ptr, LINE_KEYED, rest->len);
	size_t len = end ? (size_t)(end - rest->ptr) : rest->len;
	size_t taken = end ? len + 1 : len;
	*ret = (struct baton_str){rest->ptr, len};
	*rest = (struct baton_str){rest->ptr + taken, rest->len - taken};
	return true;
}

size_t keys_count(struct baton_str key)
{
	struct baton_str one;
	size_t count = 0;
	while (keys_next(&key, &one))
		count++;
	return count;
}

static int compare(struct baton_str a, struct baton_str b)
{
	int order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
	return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

/* The first that comes after `last` (NULL: of all), or NULL. */
static const struct baton_str *key_after(const struct baton_batch *b, const struct baton_str *last)
{
	const struct baton_str *next = NULL;
	for (size_t i = 0; i < b->key_count; i++) {
		const struct baton_str *key = &b->keys[i];
		if ((!last || compare(*key, *last) > 0) && (!next || compare(*key, *next) < 0))
			next = key;
	}
	return next;
}

struct baton_str keys_join(const struct baton_batch *b, char text[LINE_KEYS_MAX])
{
	size_t len = 0;
	for (const struct baton_str *key = key_after(b, NULL); key; key = key_after(b, key)) {
		if (len > 0)
			text[len++] = LINE_KEYED;
		memcpy(text + len, key->ptr, key->len);
		len += key->len;
	}
	return b->key_count > 0 ? (struct baton_str){text, len} : b->key;
}

bool line_has_guest(const struct baton_batch *b)
{
	return keys_are_several(b->key) || (b->key.len > 0 && b->lane.len > 0);
}

struct baton_str line_in_shard(struct baton_str line, uint64_t shard, char text[LINE_NAME_MAX])
{
	memmove(text, line.ptr, line.len);
	text[line.len] = LINE_SITED;
	char *end = number_print(shard, text + line.len + 1);
	return (struct baton_str){text, (size_t)(end - text)};
}

struct baton_str line_name(const struct baton_batch *b, uint64_t id,
                           const struct baton_queue_policy *policy, char text[LINE_NAME_MAX])
{
	if (b->lane.len > 0 || b->key.len == 0)
		return b->lane;
	if (!keys_are_several(b->key)) {
		struct baton_str name = line_of_key(b->key, text);
		return policy_has_sites(policy) ? line_in_shard(name, id % policy->shards, text)
		                                : name;
	}
	text[0] = LINE_OWN;
	char *end = number_print(id, text + 1);
	return (struct baton_str){text, (size_t)(end - text)};
}

static struct baton_str marked(struct baton_str key, char *text)
{
	if (key.len == 0)
		return (struct baton_str){NULL, 0};
	text[0] = LINE_KEYED;
	memcpy(text + 1, key.ptr, key.len);
	return (struct baton_str){text, key.len + 1};
}

struct baton_str line_of_key(struct baton_str key, char text[LINE_NAME_MAX])
{
	return marked(key, text);
}

struct baton_str lines_of_keys(struct baton_str keys, char text[LINE_KEYS_MAX])
{
	return marked(keys, text);
}

bool lines_next(struct baton_str *rest, struct baton_str *ret)
{
	if (rest->len < 2)
		return false;
	const char *end = memchr(rest->ptr + 1, LINE_KEYED, rest->len - 1);
	size_t len = end ? (size_t)(end - rest->ptr) : rest->len;
	*ret = (struct baton_str){rest->ptr, len};
	*rest = (struct baton_str){rest->ptr + len, rest->len - len};
	return true;
}

bool line_is_keyed(struct baton_str name)
{
	return name.len > 0 && name.ptr[0] == LINE_KEYED;
}

static bool is_own(struct baton_str name)
{
	return name.len > 0 && name.ptr[0] == LINE_OWN;
}

struct baton_str line_lane(struct baton_str name)
{
	return line_is_keyed(name) || is_own(name) ? (struct baton_str){NULL, 0} : name;
}

static const char *site_mark(struct baton_str name)
{
	return line_is_keyed(name) ? memchr(name.ptr, LINE_SITED, name.len) : NULL;
}

bool line_is_sited(struct baton_str name, uint32_t *ret_shard)
{
	const char *mark = site_mark(name);
	uint32_t shard = 0;
	if (!mark)
		return false;
	for (const char *at = mark + 1; at < name.ptr + name.len; at++)
		shard = shard * 10 + (uint32_t)(*at - '0');
	if (ret_shard)
		*ret_shard = shard;
	return true;
}

struct baton_str line_counted(struct baton_str name)
{
	const char *mark = site_mark(name);
	return mark ? (struct baton_str){name.ptr, (size_t)(mark - name.ptr)} : name;
}

struct baton_str line_key(struct baton_str name)
{
	name = line_counted(name);
	return line_is_keyed(name) ? (struct baton_str){name.ptr + 1, name.len - 1}
	                           : (struct baton_str){NULL, 0};
}

bool key_has_room(const struct baton_queue_policy *policy, uint64_t holds)
{
	return policy_has_sites(policy) || holds < policy->key_limit;
}

bool key_is_usual(const struct baton_queue_policy *policy)
{
	return policy->on_conflict == BATON_CONFLICT_WAIT && policy->key_waiting_max == 0 &&
	       policy->key_ttl.ns == 0 && policy->key_fair == BATON_KEY_FAIR_OFF &&
	       policy->key_rate.starts == 0 && !policy_has_sites(policy) &&
	       !policy_has_class(policy);
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
	bool keeps = policy->hold_on_retry == BATON_HOLD_KEEP;
	if (name.len == 0)
		return LINE_RETRY_PASS;
	if (line_is_keyed(name))
		return keeps ? LINE_RETRY_KEEP : LINE_RETRY_BEHIND;
	if (is_own(name))
		return keeps ? LINE_RETRY_PASS : LINE_RETRY_BEHIND;
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
