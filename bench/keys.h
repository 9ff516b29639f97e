/* The keys that all tables work on: realistic names of 12 to 40 bytes, in an order that says
 * nothing. */
#ifndef BENCH_KEYS_H
#define BENCH_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include "tables/table.h"

/* Visiting an array from its beginning to its end visits the keys in random order, so reading
 * the input costs every contestant the same and little. */
struct keys {
	size_t count;
	struct key *held;   /* `count` keys that the tables hold              */
	struct key *absent; /* `count` other keys                             */
	uint32_t *order;    /* the indices of `held` in another random order  */
};

/* Always the same keys for the same count. Ends the program when there is no memory. */
struct keys *keys_new(size_t count);
void keys_free(struct keys *k);

#endif
