/* Finds places of an array by a hash. */
#include "handoff/chains.h"

#include "base/check.h"
#include "base/fail.h"
#include "base/mem.h"

#define PLACES_MAX (1u << 20)

enum baton_err chains_init(struct chains *c, const struct baton_alloc *alloc, uint32_t places)
{
	CHECK(places > 0 && places <= PLACES_MAX);
	uint32_t heads = 1;
	while (heads < places)
		heads *= 2;
	*c = (struct chains){.alloc = alloc, .places = places, .heads_count = heads};
	c->heads = mem_new(alloc, heads, sizeof *c->heads);
	c->next = mem_new(alloc, places, sizeof *c->next);
	if (!c->heads || !c->next) {
		chains_done(c);
		return fail_memory(((size_t)heads + places) * sizeof *c->heads, "an index");
	}
	for (uint32_t i = 0; i < heads; i++)
		c->heads[i] = CHAINS_END;
	return BATON_OK;
}

void chains_done(struct chains *c)
{
	if (c->heads)
		mem_free(c->alloc, c->heads, c->heads_count, sizeof *c->heads);
	if (c->next)
		mem_free(c->alloc, c->next, c->places, sizeof *c->next);
	*c = (struct chains){.alloc = c->alloc};
}

static uint32_t *head_of(const struct chains *c, uint64_t hash)
{
	return &c->heads[hash & (c->heads_count - 1)];
}

void chains_add(struct chains *c, uint64_t hash, uint32_t place)
{
	uint32_t *head = head_of(c, hash);
	CHECK(place < c->places);
	c->next[place] = *head;
	*head = place;
}

void chains_remove(struct chains *c, uint64_t hash, uint32_t place)
{
	uint32_t *at = head_of(c, hash);
	while (*at != place) {
		CHECK(*at != CHAINS_END);
		at = &c->next[*at];
	}
	*at = c->next[place];
}

uint32_t chains_first(const struct chains *c, uint64_t hash)
{
	return *head_of(c, hash);
}

uint32_t chains_next(const struct chains *c, uint32_t place)
{
	return c->next[place];
}
