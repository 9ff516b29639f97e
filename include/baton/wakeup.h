/* Wake-ups between the processes of a host: "lane X of queue Y has work".
 *
 * They say that it is worth looking, and nothing else: whoever missed some is told so and looks at
 * everything. */
#ifndef BATON_WAKEUP_H
#define BATON_WAKEUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/api.h>
#include <baton/claim.h>
#include <baton/err.h>
#include <baton/fleet.h>
#include <baton/time.h>

BATON_BEGIN

struct baton_wakeup {
	uint64_t queue; /* as publisher and waiter agree: a hash of the store's and queue's name */
	uint64_t lane;  /* the hash of the lane                                                  */
	uint32_t shard;
};

/* Every shard of a queue. */
#define BATON_WAKEUP_ANY_SHARD UINT32_MAX

#define BATON_WAKEUP_INTERESTS_MAX 4096

struct baton_wakeup_interest {
	uint64_t queue;
	uint32_t shard; /* or BATON_WAKEUP_ANY_SHARD */
};

/* Tells all whom it may concern. Costs a system call only where somebody sleeps.
 *
 * BATON_GONE: the fleet's file was removed or replaced, or this is a forked child. Any thread. */
BATON_API enum baton_err baton_wakeup_publish(struct baton_fleet *fleet,
                                              const struct baton_wakeup *wakeups, size_t count);

struct baton_listener;

/* Listens from now on to wake-ups for any of `interests`, which are copied.
 *
 * BATON_INVALID: none, or more than BATON_WAKEUP_INTERESTS_MAX. BATON_NO_MEMORY.
 * `fleet` must outlive it. Ended by baton_listener_close(). One thread at a time uses it. */
BATON_API enum baton_err baton_listener_open(struct baton_fleet *fleet,
                                             const struct baton_wakeup_interest *interests,
                                             size_t count, struct baton_listener **ret_listener);

/* NULL is fine. */
BATON_API void baton_listener_close(struct baton_listener *listener);

/* What a listener has heard. */
struct baton_wakeup_news {
	struct baton_wakeup *wakeups; /* the caller's, with room for `max` */
	size_t max;
	size_t count; /* how many of them are filled in, maybe none                         */
	bool missed;  /* some were lost before them, so that every interest is worth a look */
};

/* Waits for wake-ups until `until` on baton_clock_boot().
 *
 * BATON_OK: news->count and news->missed say what was heard.
 * BATON_TIMEOUT, BATON_CANCELLED: nothing was. BATON_GONE: as above.
 * *news is as it was unless BATON_OK. `cancel` may be NULL. */
BATON_API enum baton_err baton_listener_wait(struct baton_listener *listener,
                                             struct baton_mono until, struct baton_cancel *cancel,
                                             struct baton_wakeup_news *news);

BATON_END

#endif
