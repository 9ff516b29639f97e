/* The policy of a class of keys: the same record for threads, for a host and for the cluster. */
#ifndef BATON_KEY_H
#define BATON_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include <baton/api.h>
#include <baton/err.h>
#include <baton/time.h>

BATON_BEGIN

#define BATON_KEY_MAX 255
#define BATON_KEY_LIMIT_MAX 1000000
#define BATON_KEY_WAITING_MAX 1000000
#define BATON_KEY_RATE_MAX 1000000
#define BATON_KEY_TIME_MIN_MS 1
#define BATON_KEY_TIME_MAX_MS 86400000

/* Where the holders of one key are counted together. */
enum baton_key_scope {
	BATON_KEY_SCOPE_PROCESS = 1,
	BATON_KEY_SCOPE_HOST,
	BATON_KEY_SCOPE_CLUSTER
};

/* What becomes of work whose key is taken. */
enum baton_key_conflict {
	BATON_KEY_WAIT = 1, /* stays ready, in order                                           */
	BATON_KEY_SKIP,     /* the newcomer is dropped, visibly                                */
	BATON_KEY_REPLACE,  /* the running one is asked to stop, then the newcomer runs        */
	BATON_KEY_LATEST,   /* of those waiting only the newest is kept                        */
	BATON_KEY_FIRST     /* of those waiting only the oldest is kept                        */
};

/* What becomes of the key while its work waits for the next attempt. */
enum baton_key_retry {
	BATON_KEY_RETRY_KEEP = 1, /* the key stays held                                        */
	BATON_KEY_RETRY_GIVE_UP   /* the key is free; the work queues again behind the others  */
};

/* A plain record: it may be copied, compared field by field and stored. */
struct baton_key_policy {
	uint32_t limit;             /* holders at once, 1 to BATON_KEY_LIMIT_MAX           */
	enum baton_key_scope scope; /* where they are counted                              */
	enum baton_key_conflict
		on_conflict;           /* what becomes of the next one                        */
	uint32_t waiting_max;          /* waiting per key, to BATON_KEY_WAITING_MAX; 0: no bound */
	enum baton_key_retry on_retry; /* keep or give up                                     */
	uint32_t rate;                 /* starts per window, to BATON_KEY_RATE_MAX; 0: no rate */
	struct baton_duration window;  /* sliding, 1 ms to 1 day; 0 without a rate            */
	bool fair;                     /* round-robin by key instead of arrival               */
	struct baton_duration ttl;     /* a hold is void after that, 1 ms to 1 day; 0: never  */
};

/* One holder at a time, counted in the cluster; the next one waits. Everything else is off. */
BATON_API struct baton_key_policy baton_key_policy_default(void);

/* Whether every field is within its limits.
 *
 * BATON_INVALID: one is not; the detail names the field, its value and its limits. Any thread. */
BATON_API enum baton_err baton_key_policy_check(const struct baton_key_policy *policy);

BATON_END

#endif
