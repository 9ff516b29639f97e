/* The ways to have something alone on one host that are compared: the contest, what the kernel and
 * the C library offer, and the bare instruction. */
#ifndef BENCH_CLAIMS_LOCKS_H
#define BENCH_CLAIMS_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

/* Functions end the program when something goes wrong that should not. */
struct lock_kind {
	/* What the processes share, made before they are forked. */
	void *(*make)(void);
	void (*unmake)(void *made);

	/* What a process needs to use it, made in that process. */
	void *(*attach)(void *made);
	void (*detach)(void *handle);

	/* Waits until it is held. NULL: nobody can wait for this one. */
	void (*take)(void *handle);
	void (*give)(void *handle);

	/* Takes what is free and gives it back so many times. Returns how often that went well.
	 * NULL: the contest, of which game_pair has variants. */
	uint64_t (*pairs)(void *handle, uint64_t count);
};

extern const struct lock_kind lock_contest;
extern const struct lock_kind lock_flock;
extern const struct lock_kind lock_ofd;
extern const struct lock_kind lock_mutex;
extern const struct lock_kind lock_cas;

#endif
