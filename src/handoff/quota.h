/* How many clients there may be in a time. Pure. */
#ifndef HANDOFF_QUOTA_H
#define HANDOFF_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/broker.h>
#include <baton/time.h>

#define QUOTA_USERS_MAX 64

/* What was used of one. Begins as zeros. */
struct quota_use {
	struct baton_mono full; /* when all of it is there again */
};

/* How long one has to wait for the next: 0 if there is one. So many as the rate says may come at
 * once; they are there again one by one, evenly over its window. A count of 0 is no limit. */
struct baton_duration quota_wait(const struct baton_broker_rate *rate, const struct quota_use *use,
                                 struct baton_mono now);

/* Takes one that is there. */
void quota_take(const struct baton_broker_rate *rate, struct quota_use *use, struct baton_mono now);

/* The same for each user. Begins as zeros. */
struct quota_users {
	struct quota_user {
		uint32_t uid;
		struct quota_use use;
	} all[QUOTA_USERS_MAX];
	size_t count;
};

/* What that user has used. A new one gets the place of one who has all of it again, and so is as
 * good as new. NULL: there is no place. */
struct quota_use *quota_user(struct quota_users *users, uint32_t uid, struct baton_mono now);

#endif
