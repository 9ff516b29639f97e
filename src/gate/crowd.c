/* The holders of an entry, and its starts inside the rate window. */
#include "gate/crowd.h"

#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"

/* Up to this many holders beside the first are searched one by one. */
#define INDEX_FROM 16u

static uint32_t grown(uint32_t cap, uint32_t need)
{
	uint32_t larger = cap + cap / 2;
	return larger > need ? larger : need;
}

static uint32_t index_home(const struct crowd *c, const struct baton_id *seed,
                           const struct baton_id *run)
{
	return (uint32_t)hash_bytes(seed, run->bytes, sizeof run->bytes) & (c->index_cap - 1);
}

/* Where `run` stands in the index, or the empty place where it would stand. */
static uint32_t index_find(const struct crowd *c, const struct baton_id *seed,
                           const struct baton_id *run)
{
	uint32_t at = index_home(c, seed, run);
	while (c->index[at] != 0 && !baton_id_equal(&c->more[c->index[at] - 1].run, run))
		at = (at + 1) & (c->index_cap - 1);
	return at;
}

static void index_remove(struct crowd *c, const struct baton_id *seed, const struct baton_id *run)
{
	uint32_t mask = c->index_cap - 1;
	uint32_t hole = index_find(c, seed, run);
	for (uint32_t at = (hole + 1) & mask; c->index[at] != 0; at = (at + 1) & mask) {
		uint32_t home = index_home(c, seed, &c->more[c->index[at] - 1].run);
		if (((at - home) & mask) < ((at - hole) & mask))
			continue;
		c->index[hole] = c->index[at];
		hole = at;
	}
	c->index[hole] = 0;
}

/* Makes the index large enough for `cap` holders, before they come. */
static bool index_reserve(const struct baton_alloc *alloc, const struct baton_id *seed,
                          struct crowd *c, uint32_t cap, uint32_t count)
{
	if (cap <= INDEX_FROM || cap <= c->index_cap / 2)
		return true;
	uint32_t index_cap = 4 * INDEX_FROM;
	while (index_cap / 2 < cap)
		index_cap *= 2;
	uint32_t *index = mem_new(alloc, index_cap, sizeof *index);
	if (!index)
		return false;
	mem_free(alloc, c->index, c->index_cap, sizeof *c->index);
	c->index = index;
	c->index_cap = index_cap;
	for (uint32_t i = 0; i < count; i++)
		c->index[index_find(c, seed, &c->more[i].run)] = i + 1;
	return true;
}

static bool more_reserve(const struct baton_alloc *alloc, const struct baton_id *seed,
                         struct entry *e, uint32_t need)
{
	struct crowd *c = e->crowd;
	if (need <= c->more_cap)
		return true;
	uint32_t cap = grown(c->more_cap, need);
	if (!index_reserve(alloc, seed, c, cap, e->holders > 1 ? e->holders - 1 : 0))
		return false;
	struct baton_gate_holder *more = mem_resize(alloc, c->more, c->more_cap, cap, sizeof *more);
	if (!more)
		return false;
	c->more = more;
	c->more_cap = cap;
	return true;
}

/* Grows the ring; what it holds is moved to the front of the new one. */
static bool starts_reserve(const struct baton_alloc *alloc, struct crowd *c, uint32_t need)
{
	if (need <= c->starts_cap)
		return true;
	uint32_t cap = grown(c->starts_cap, need);
	struct baton_mono *starts = mem_new(alloc, cap, sizeof *starts);
	if (!starts)
		return false;
	for (uint32_t i = 0; i < c->starts_len; i++)
		starts[i] = c->starts[(c->starts_at + i) % c->starts_cap];
	mem_free(alloc, c->starts, c->starts_cap, sizeof *c->starts);
	c->starts = starts;
	c->starts_cap = cap;
	c->starts_at = 0;
	return true;
}

bool crowd_reserve(const struct baton_alloc *alloc, const struct baton_id *seed, struct entry *e,
                   const struct baton_key_policy *policy, bool line)
{
	bool timed = policy->rate != 0 || policy->ttl.ns != 0;
	if (!e->crowd && e->holders == 0 && !timed && !line)
		return true;
	if (!e->crowd) {
		e->crowd = mem_new(alloc, 1, sizeof *e->crowd);
		if (!e->crowd)
			return false;
		e->crowd->soonest = e->holders ? e->first.expires : BATON_MONO_NEVER;
	}
	/* Those who wait are let in by others' releases, which cannot fail: their room is made
	 * here, for whatever the policy says by then. */
	uint32_t coming = e->crowd->waiting + 1;
	return more_reserve(alloc, seed, e, e->holders + coming - 1) &&
	       starts_reserve(alloc, e->crowd, e->crowd->starts_len + coming);
}

void crowd_free(const struct baton_alloc *alloc, struct entry *e)
{
	struct crowd *c = e->crowd;
	if (!c)
		return;
	mem_free(alloc, c->more, c->more_cap, sizeof *c->more);
	mem_free(alloc, c->index, c->index_cap, sizeof *c->index);
	mem_free(alloc, c->starts, c->starts_cap, sizeof *c->starts);
	mem_free(alloc, c, 1, sizeof *c);
	e->crowd = NULL;
}

struct baton_gate_holder *crowd_find(const struct baton_id *seed, struct entry *e,
                                     const struct baton_id *run)
{
	if (e->holders == 0)
		return NULL;
	if (baton_id_equal(&e->first.run, run))
		return &e->first;
	struct crowd *c = e->crowd;
	if (e->holders > 1 && c->index) {
		uint32_t position = c->index[index_find(c, seed, run)];
		return position ? &c->more[position - 1] : NULL;
	}
	for (uint32_t i = 0; i + 1 < e->holders; i++)
		if (baton_id_equal(&c->more[i].run, run))
			return &c->more[i];
	return NULL;
}

void crowd_add(const struct baton_id *seed, struct entry *e, const struct baton_gate_holder *holder)
{
	struct crowd *c = e->crowd;
	if (c && holder->expires.ns < c->soonest.ns)
		c->soonest = holder->expires;
	if (e->holders++ == 0) {
		e->first = *holder;
		return;
	}
	uint32_t position = e->holders - 2;
	CHECK(c && position < c->more_cap);
	c->more[position] = *holder;
	if (c->index)
		c->index[index_find(c, seed, &holder->run)] = position + 1;
}

void crowd_remove(const struct baton_id *seed, struct entry *e, struct baton_gate_holder *holder)
{
	struct crowd *c = e->crowd;
	uint32_t last = e->holders - 2; /* position of the last of the rest, if there is a rest */
	if (e->holders > 1 && c->index) {
		if (holder != &e->first)
			index_remove(c, seed, &holder->run);
		if (holder != &c->more[last])
			index_remove(c, seed, &c->more[last].run);
	}
	if (e->holders > 1 && holder != &c->more[last]) {
		*holder = c->more[last];
		if (c->index && holder != &e->first)
			c->index[index_find(c, seed, &holder->run)] =
				(uint32_t)(holder - c->more) + 1;
	}
	e->holders--;
}

void crowd_expire(const struct baton_id *seed, struct entry *e, struct baton_mono now)
{
	if (baton_mono_live(crowd_soonest(e), now))
		return;
	struct baton_mono soonest = BATON_MONO_NEVER;
	for (uint32_t i = e->holders; i-- > 0;) {
		struct baton_gate_holder *h = i == 0 ? &e->first : &e->crowd->more[i - 1];
		if (!baton_mono_live(h->expires, now))
			crowd_remove(seed, e, h);
		else if (h->expires.ns < soonest.ns)
			soonest = h->expires;
	}
	if (e->crowd)
		e->crowd->soonest = soonest;
}

void crowd_start(struct entry *e, struct baton_mono now)
{
	struct crowd *c = e->crowd;
	CHECK(c->starts_len < c->starts_cap);
	/* Callers read the clock before they get here, so a moment may come late: the ring stays
	 * sorted. */
	if (c->starts_len > 0) {
		uint32_t last = (c->starts_at + c->starts_len - 1) % c->starts_cap;
		if (c->starts[last].ns > now.ns)
			now = c->starts[last];
	}
	c->starts[(c->starts_at + c->starts_len) % c->starts_cap] = now;
	c->starts_len++;
}

void crowd_prune(struct entry *e, struct baton_duration window, struct baton_mono now)
{
	struct crowd *c = e->crowd;
	while (c && c->starts_len > 0 &&
	       !baton_mono_live(baton_mono_add(c->starts[c->starts_at], window), now)) {
		c->starts_at = (c->starts_at + 1) % c->starts_cap;
		c->starts_len--;
	}
}

struct baton_mono crowd_opens(const struct entry *e, const struct baton_key_policy *policy)
{
	const struct crowd *c = e->crowd;
	if (policy->rate == 0 || !c || c->starts_len < policy->rate)
		return (struct baton_mono){INT64_MIN};
	uint32_t leaving = c->starts_at + (c->starts_len - policy->rate);
	return baton_mono_add(c->starts[leaving % c->starts_cap], policy->window);
}

struct baton_mono crowd_soonest(const struct entry *e)
{
	if (e->crowd)
		return e->crowd->soonest;
	return e->holders ? e->first.expires : BATON_MONO_NEVER;
}
