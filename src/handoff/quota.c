/* How many clients there may be in a time. */
#include "handoff/quota.h"

/* How long it takes until one is there again. */
static int64_t each_ns(const struct baton_broker_rate *rate)
{
	return rate->window.ns / rate->count;
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

struct baton_duration quota_wait(const struct baton_broker_rate *rate, const struct quota_use *use,
                                 struct baton_mono now)
{
	if (rate->count == 0)
		return (struct baton_duration){0};
	int64_t used = later(use->full.ns - now.ns, 0);
	return (struct baton_duration){later(used + each_ns(rate) - rate->window.ns, 0)};
}

void quota_take(const struct baton_broker_rate *rate, struct quota_use *use, struct baton_mono now)
{
	if (rate->count > 0)
		use->full.ns = later(use->full.ns, now.ns) + each_ns(rate);
}

struct quota_use *quota_user(struct quota_users *users, uint32_t uid, struct baton_mono now)
{
	struct quota_user *place = NULL;
	for (size_t i = 0; i < users->count; i++) {
		struct quota_user *u = &users->all[i];
		if (u->uid == uid)
			return &u->use;
		if (!place && !baton_mono_live(u->use.full, now))
			place = u;
	}
	if (!place && users->count < QUOTA_USERS_MAX)
		place = &users->all[users->count++];
	if (!place)
		return NULL;
	*place = (struct quota_user){.uid = uid};
	return &place->use;
}
