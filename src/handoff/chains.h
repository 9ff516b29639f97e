/* Finds places of an array by a hash: for each hash a chain of places, without memory of their own
 * beyond what was taken at the start. */
#ifndef HANDOFF_CHAINS_H
#define HANDOFF_CHAINS_H

#include <stdint.h>

#include <baton/alloc.h>
#include <baton/err.h>

#define CHAINS_END UINT32_MAX

struct chains {
	const struct baton_alloc *alloc;
	uint32_t places;
	uint32_t heads_count; /* a power of two */
	uint32_t *heads;
	uint32_t *next; /* of each place */
};

/* For the places 0 to places - 1, 1 to 2^20 of them. BATON_NO_MEMORY. */
enum baton_err chains_init(struct chains *c, const struct baton_alloc *alloc, uint32_t places);

/* Fine for zeros. */
void chains_done(struct chains *c);

/* A place is in one chain at most. */
void chains_add(struct chains *c, uint64_t hash, uint32_t place);
void chains_remove(struct chains *c, uint64_t hash, uint32_t place);

/* The first place that may have the hash, and the one after it; CHAINS_END. Places with another
 * hash may be among them. */
uint32_t chains_first(const struct chains *c, uint64_t hash);
uint32_t chains_next(const struct chains *c, uint32_t place);

#endif
