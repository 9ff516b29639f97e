/* The keys of one request. */
#include "gate/want.h"

#include "base/fail.h"
#include "base/hash.h"
#include "gate/crowd.h"

/* Spreads classes over the whole hash, so that one text in two classes lands in two places. */
#define CLASS_SPREAD UINT64_C(0x9e3779b97f4a7c15)

static enum baton_err want_init(struct want *w, struct baton_gate *gate,
                                const struct baton_gate_key *key, uint64_t *mask)
{
	if (key->text.len - 1 >= BATON_KEY_MAX || !key->text.ptr)
		return baton_str_make("key", key->text.ptr, key->text.len, BATON_KEY_MAX, &w->text);
	/* Pairs with the store in baton_gate_class_add(): a class that is seen has its policy. */
	unsigned classes = atomic_load_explicit(&gate->class_count, memory_order_acquire);
	if (key->cls.v >= classes)
		return fail(BATON_INVALID, "class %u is not known; this gate has classes 0 to %u",
		            (unsigned)key->cls.v, classes - 1);
	uint64_t hash = hash_bytes(&gate->seed, key->text.ptr, key->text.len);
	hash ^= key->cls.v * CLASS_SPREAD;
	w->text = key->text;
	w->shard = &gate->shards[hash >> 58];
	w->tag = (uint32_t)hash;
	w->cls = key->cls.v;
	*mask |= UINT64_C(1) << (hash >> 58);
	return BATON_OK;
}

static uint8_t want_same(const struct want *wants, uint8_t i)
{
	for (uint8_t j = 0; j < i; j++)
		if (wants[j].tag == wants[i].tag && wants[j].cls == wants[i].cls &&
		    baton_str_equal(wants[j].text, wants[i].text))
			return j;
	return i;
}

enum baton_err wants_init(struct wants *w, struct baton_gate *gate,
                          const struct baton_gate_ask *ask)
{
	if (ask->count < 1 || ask->count > BATON_GATE_KEYS_MAX)
		return fail(BATON_INVALID, "%zu keys are asked for; 1 to %d are allowed",
		            ask->count, BATON_GATE_KEYS_MAX);
	w->ask = ask;
	w->mask = 0;
	for (uint8_t i = 0; i < ask->count; i++) {
		enum baton_err e = want_init(&w->at[i], gate, &ask->keys[i], &w->mask);
		if (e != BATON_OK)
			return e;
		w->at[i].same = want_same(w->at, i);
	}
	return BATON_OK;
}

static struct entry *want_lookup(const struct want *w)
{
	return table_find(&w->shard->table, w->tag, w->cls, w->text);
}

/* How many entries a call that time concerns looks at: one more than it can add. */
#define SWEEP 2

/* Whether time has a say about this key, by its policy or by an earlier one. */
static bool want_timed(const struct want *w, const struct baton_gate *gate)
{
	return policy_timed(policy_of(gate, w->cls)) || (w->entry && entry_timed(w->entry));
}

void wants_find(struct wants *w, struct baton_gate *gate, struct effects *fx)
{
	bool timed = false;
	for (size_t i = 0; i < w->ask->count; i++) {
		w->at[i].entry = want_lookup(&w->at[i]);
		timed |= want_timed(&w->at[i], gate);
	}
	if (!timed)
		return;
	for (size_t i = 0; i < w->ask->count; i++) {
		struct want *one = &w->at[i];
		/* Looked up once more: passing time may have made it idle on behalf of another key.
		 *  */
		one->entry = want_lookup(one);
		if (one->entry)
			entry_settle(gate, one->shard, one->entry, w->ask->now, fx);
		shard_sweep(gate, one->shard, w->ask->now, SWEEP);
	}
	for (size_t i = 0; i < w->ask->count; i++)
		w->at[i].entry = want_lookup(&w->at[i]);
}

bool wants_admitted(const struct wants *w, const struct baton_gate *gate,
                    struct baton_gate_yield *ret_yield)
{
	struct asker asker = {w->ask->run, NULL, w->ask->now};
	struct baton_gate_yield yield;
	bool admitted = true;
	yield.why = 0;
	for (size_t i = 0; i < w->ask->count; i++)
		if (w->at[i].entry && entry_refuses(gate, w->at[i].entry, &asker, i, &yield))
			admitted = false;
	if (!admitted && ret_yield)
		*ret_yield = yield;
	return admitted;
}

static enum baton_err want_reserve(struct want *w, struct baton_gate *gate,
                                   const struct baton_id *run, bool line)
{
	if (!w->entry)
		w->entry = table_add(&w->shard->table, w->tag, w->cls, w->text);
	if (w->entry && !line && crowd_find(&gate->seed, w->entry, run))
		return BATON_OK;
	if (w->entry &&
	    crowd_reserve(gate->alloc, &gate->seed, w->entry, policy_of(gate, w->cls), line))
		return BATON_OK;
	return fail_memory(sizeof(struct entry), "a key");
}

enum baton_err wants_reserve(struct wants *w, struct baton_gate *gate, bool line)
{
	enum baton_err e = BATON_OK;
	size_t done = 0;
	while (e == BATON_OK && done < w->ask->count) {
		struct want *one = &w->at[done++];
		if (one->same == done - 1)
			e = want_reserve(one, gate, &w->ask->run, line);
		else
			one->entry = w->at[one->same].entry;
	}
	if (e == BATON_OK)
		return e;
	for (size_t i = 0; i < done; i++)
		if (w->at[i].entry && w->at[i].same == i)
			entry_forget(gate, w->at[i].shard, w->at[i].entry);
	return e;
}
