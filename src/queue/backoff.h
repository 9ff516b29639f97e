/* How long to wait before work that failed is tried again. */
#ifndef QUEUE_BACKOFF_H
#define QUEUE_BACKOFF_H

#include <stdint.h>

#include <baton/err.h>
#include <baton/time.h>

enum backoff_kind {
	BACKOFF_EXPONENTIAL = 1, /* between nothing and base * factor^(attempt - 1), at most cap */
	BACKOFF_FIXED,           /* always base                                                  */
	BACKOFF_NONE,            /* not at all                                                   */
};

#define BACKOFF_FACTOR_MAX 1000

struct backoff {
	enum backoff_kind kind;
	uint32_t factor; /* 1 to BACKOFF_FACTOR_MAX */
	struct baton_duration base;
	struct baton_duration cap;
};

/* Exponential: from 1 s, doubling, at most 1 h. */
#define BACKOFF_DEFAULT                                       \
	((struct backoff){                                    \
		.kind = BACKOFF_EXPONENTIAL,                  \
		.factor = 2,                                  \
		.base = {INT64_C(1000000000)},                \
		.cap = {INT64_C(3600) * INT64_C(1000000000)}, \
	})

/* BATON_INVALID: a kind that does not exist, or a number that its kind uses and that is outside of
 * its limits: a negative base or cap, a cap below the base, a factor. The detail says which. */
enum baton_err backoff_check(const struct backoff *b);

/* The delay after the attempt that failed, counted from 1. `b` has passed backoff_check(). `random`
 * is any 64 random bits: they choose evenly among all delays of an exponential backoff, both ends
 * included, so that those who failed together do not come back together. */
struct baton_duration backoff_delay(const struct backoff *b, uint32_t attempt, uint64_t random);

#endif
