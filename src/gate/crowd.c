/* The holders of an entry, and its starts inside the rate window. */
#include "gate/crowd.h"

#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"

/* Up to this many holders beside the first are searched one by one. */
#define INDEX_FROM 16u

/* Room for so many is not worth giving back. */
#define SHRINK_FROM 64u

static uint32_t grown(uint32_t cap, uint32_t need)
{
	uint32_t larger = cap + cap / 2;
	return larger > need ? larger : need;
}

/* The holder with that position. */
static struct baton_gate_holder *holder_at(struct entry *e, uint32_t position)
{
	return position == 0 ? &e->first : &e->crowd->more[position - 1].holder;
}

static uint32_t position_of(const struct entry *e, const struct baton_gate_holder *holder)
{
	if (holder == &e->first)
		return 0;
	return (uint32_t)((const struct member *)(const void *)holder - e->crowd->more) + 1;
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
	while (c->index[at] != 0 && !baton_id_equal(&c->more[c->index[at] - 1].holder.run, run))
		at = (at + 1) & (c->index_cap - 1);
	return at;
}

static void index_remove(struct crowd *c, const struct baton_id *seed, const struct baton_id *run)
{
	uint32_t mask = c->index_cap - 1;
	uint32_t hole = index_find(c, seed, run);
	for (uint32_t at = (hole + 1) & mask; c->index[at] != 0; at = (at + 1) & mask) {
		uint32_t home = index_home(c, seed, &c->more[c->index[at] - 1].holder.run);
		if (((at - home) & mask) < ((at - hole) & mask))
			continue;
		c->index[hole] = c->index[at];
		hole = at;
	}
	c->index[hole] = 0;
}

/* An index that fits `cap` holders beside the first, of whom there are `count`; none for a few. */
static bool index_resize(const struct baton_alloc *alloc, const struct baton_id *seed,
                         struct crowd *c, uint32_t cap, uint32_t count)
{
	uint32_t index_cap = cap > INDEX_FROM ? 4 * INDEX_FROM : 0;
	while (index_cap / 2 < cap && index_cap != 0)
		index_cap *= 2;
	uint32_t *index = index_cap ? mem_new(alloc, index_cap, sizeof *index) : NULL;
	if (!index && index_cap != 0)
		return false;
	mem_free(alloc, c->index, c->index_cap, sizeof *c->index);
	c->index = index;
	c->index_cap = index_cap;
	for (uint32_t i = 0; index && i < count; i++)
		c->index[index_find(c, seed, &c->more[i].holder.run)] = i + 1;
	return true;
}

static bool more_resize(const struct baton_alloc *alloc, const struct baton_id *seed,
                        struct entry *e, uint32_t cap)
{
	struct crowd *c = e->crowd;
	if (!index_resize(alloc, seed, c, cap, e->holders > 1 ? e->holders - 1 : 0))
		return false;
	struct member *more = mem_resize(alloc, c->more, c->more_cap, cap, sizeof *more);
	if (!more)
		return false;
	c->more = more;
	c->more_cap = cap;
	return true;
}

/* Makes the ring larger or smaller; what it holds is moved to the front of the new one. */
static bool starts_resize(const struct baton_alloc *alloc, struct crowd *c, uint32_t cap)
{
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
	if (!e->crowd)
		e->crowd = mem_new(alloc, 1, sizeof *e->crowd);
	struct crowd *c = e->crowd;
	if (!c)
		return false;
	/* Those who wait are let in by others' releases, which cannot fail: their room is made
	 * here, for whatever the policy says by then. */
	uint32_t more = e->holders + c->waiting;
	uint32_t starts = c->starts_len + c->waiting + (line || policy->rate != 0 ? 1 : 0);
	if (more > c->more_cap && !more_resize(alloc, seed, e, grown(c->more_cap, more)))
		return false;
	return starts <= c->starts_cap || starts_resize(alloc, c, grown(c->starts_cap, starts));
}

/* Failing to shrink only wastes memory. */
void crowd_shrink(const struct baton_alloc *alloc, const struct baton_id *seed, struct entry *e)
{
	struct crowd *c = e->crowd;
	if (!c)
		return;
	uint32_t more = e->holders + c->waiting;
	uint32_t starts = c->starts_len + c->waiting;
	if (c->more_cap > SHRINK_FROM && c->more_cap / 4 > more)
		(void)more_resize(alloc, seed, e, 2 * more + 1);
	if (c->starts_cap > SHRINK_FROM && c->starts_cap / 4 > starts)
		(void)starts_resize(alloc, c, 2 * starts + 1);
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
		return position ? holder_at(e, position) : NULL;
	}
	for (uint32_t i = 1; i < e->holders; i++)
		if (baton_id_equal(&holder_at(e, i)->run, run))
			return holder_at(e, i);
	return NULL;
}

static struct order *order_at(struct entry *e, uint32_t position)
{
	return position == 0 ? &e->crowd->first_order : &e->crowd->more[position - 1].order;
}

/* Where the neighbours of a place point to it from. */
static uint32_t *order_from_prev(struct entry *e, const struct order *o)
{
	return o->prev ? &order_at(e, o->prev - 1)->next : &e->crowd->soonest;
}

static uint32_t *order_from_next(struct entry *e, const struct order *o)
{
	return o->next ? &order_at(e, o->next - 1)->prev : &e->crowd->latest;
}

/* Whoever never expires is in no list. The others mostly come in order, so the place is near the
 * end. */
static void order_join(struct entry *e, uint32_t position)
{
	struct baton_mono expires = holder_at(e, position)->expires;
	if (expires.ns == BATON_MONO_NEVER.ns)
		return;
	uint32_t after = e->crowd->latest;
	while (after && holder_at(e, after - 1)->expires.ns > expires.ns)
		after = order_at(e, after - 1)->prev;
	struct order *o = order_at(e, position);
	o->prev = after;
	o->next = after ? order_at(e, after - 1)->next : e->crowd->soonest;
	*order_from_prev(e, o) = *order_from_next(e, o) = position + 1;
}

static void order_leave(struct entry *e, uint32_t position)
{
	if (holder_at(e, position)->expires.ns == BATON_MONO_NEVER.ns)
		return;
	const struct order *o = order_at(e, position);
	uint32_t *from_prev = order_from_prev(e, o);
	uint32_t *from_next = order_from_next(e, o);
	*from_prev = o->next;
	*from_next = o->prev;
}

void crowd_add(const struct baton_id *seed, struct entry *e, const struct baton_gate_holder *holder)
{
	struct crowd *c = e->crowd;
	uint32_t position = e->holders++;
	CHECK(position == 0 || (c && position <= c->more_cap));
	*holder_at(e, position) = *holder;
	if (position > 0 && c->index)
		c->index[index_find(c, seed, &holder->run)] = position;
	order_join(e, position);
}

void crowd_remove(const struct baton_id *seed, struct entry *e, struct baton_gate_holder *holder)
{
	struct crowd *c = e->crowd;
	uint32_t hole = position_of(e, holder);
	uint32_t last = e->holders - 1;
	order_leave(e, hole);
	if (hole > 0 && c->index)
		index_remove(c, seed, &holder->run);
	if (hole != last) {
		/* The last one moves into the hole. */
		struct baton_gate_holder *moved = holder_at(e, last);
		order_leave(e, last);
		if (c->index)
			index_remove(c, seed, &moved->run);
		*holder = *moved;
		if (hole > 0 && c->index)
			c->index[index_find(c, seed, &holder->run)] = hole;
		order_join(e, hole);
	}
	e->holders--;
}

void crowd_renew(struct entry *e, struct baton_gate_holder *holder, struct baton_mono expires)
{
	if (expires.ns <= holder->expires.ns)
		return;
	uint32_t position = position_of(e, holder);
	order_leave(e, position);
	holder->expires = expires;
	order_join(e, position);
}

void crowd_expire(const struct baton_id *seed, struct entry *e, struct baton_mono now)
{
	while (e->crowd && e->crowd->soonest) {
		struct baton_gate_holder *h = holder_at(e, e->crowd->soonest - 1);
		if (baton_mono_live(h->expires, now))
			return;
		crowd_remove(seed, e, h);
	}
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
	const struct crowd *c = e->crowd;
	if (!c || !c->soonest)
		return BATON_MONO_NEVER;
	return c->soonest == 1 ? e->first.expires : c->more[c->soonest - 2].holder.expires;
}
