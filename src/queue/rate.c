/* How often a key may be claimed from. */
#include "queue/rate.h"

#include <string.h>

#include "base/check.h"
#include "queue/line.h"

bool line_is_rated(struct baton_str name, const struct baton_queue_policy *policy)
{
	return policy->key_rate.starts > 0 && line_is_keyed(name);
}

struct baton_str rate_site(enum baton_key_scope scope, const struct baton_owner *owner,
                           char text[RATE_NAME_MAX])
{
	text[0] = LINE_SITED;
	return (struct baton_str){text, 1 + site_name(scope, owner, text + 1).len};
}

struct baton_str rate_name(struct baton_str line, const struct baton_queue_policy *policy,
                           const struct baton_owner *owner, char text[RATE_NAME_MAX])
{
	if (!line_is_sited(line, NULL))
		return line;
	struct baton_str name = rate_site(policy->key_scope, owner, text), key = line_counted(line);
	memcpy(text + name.len, key.ptr, key.len);
	return (struct baton_str){text, name.len + key.len};
}

struct baton_str rate_line(struct baton_str name)
{
	const char *key = name.len > 0 && name.ptr[0] == LINE_SITED
	                          ? memchr(name.ptr, LINE_KEYED, name.len)
	                          : name.ptr;
	CHECK(key);
	return (struct baton_str){key, name.len - (size_t)(key - name.ptr)};
}

size_t rate_look(const struct baton_key_rate *rate, struct baton_store_time *starts, size_t count,
                 struct baton_store_time now)
{
	size_t gone = count > rate->starts ? count - rate->starts : 0;
	while (gone < count &&
	       baton_store_time_ready(baton_store_time_add(starts[gone], rate->window), now))
		gone++;
	if (gone > 0)
		memmove(starts, starts + gone, (count - gone) * sizeof *starts);
	count -= gone;
	for (size_t i = count; i > 0 && starts[i - 1].ms > now.ms; i--)
		starts[i - 1] = now;
	return count;
}

size_t rate_start(const struct baton_key_rate *rate, struct baton_store_time *starts, size_t count,
                  struct baton_store_time now)
{
	count = rate_look(rate, starts, count, now);
	starts[count++] = now;
	return rate_look(rate, starts, count, now);
}

struct baton_store_time rate_until(const struct baton_key_rate *rate,
                                   const struct baton_store_time *starts, size_t count)
{
	if (rate->starts == 0 || count < rate->starts)
		return (struct baton_store_time){0};
	return baton_store_time_add(starts[count - rate->starts], rate->window);
}

struct baton_store_time rate_over(const struct baton_key_rate *rate,
                                  const struct baton_store_time *starts, size_t count)
{
	CHECK(count > 0);
	return baton_store_time_add(starts[count - 1], rate->window);
}

bool rate_is_ahead(const struct baton_key_rate *rate, struct baton_store_time until,
                   struct baton_store_time now)
{
	return until.ms > baton_store_time_add(now, rate->window).ms;
}
