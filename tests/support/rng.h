/* Random numbers that a failing test can be given again. */
#ifndef SUPPORT_RNG_H
#define SUPPORT_RNG_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct rng {
	uint64_t state;
};

static inline struct rng rng_seed(uint64_t seed)
{
	struct rng r = {seed};
	return r;
}

/* Seeds from BATON_SEED, or else from the clock, and says from what. */
static inline struct rng rng_seed_from_env(void)
{
	const char *given = getenv("BATON_SEED");
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	uint64_t by_clock = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : by_clock;
	printf("# seed %" PRIu64 "\n", seed);
	fflush(stdout);
	return rng_seed(seed);
}

/* splitmix64 */
static inline uint64_t rng_next(struct rng *r)
{
	r->state += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t z = r->state;
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* 0 to n - 1; n is at least 1. As good as even for the small n of tests. */
static inline uint64_t rng_below(struct rng *r, uint64_t n)
{
	return rng_next(r) % n;
}

#endif
