/* A walk over all holds, for display. */
#include <baton/gate.h>

#include <string.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "base/mem.h"
#include "gate/state.h"

/* The holds of one shard, copied so that nobody waits for the visitor. */
struct snapshot {
	const struct baton_alloc *alloc;
	struct baton_gate_hold *holds;
	size_t count;
	size_t cap;
	char *texts;
	size_t texts_len;
	size_t texts_cap;
};

static void snapshot_done(struct snapshot *s)
{
	mem_free(s->alloc, s->holds, s->cap, sizeof *s->holds);
	mem_free(s->alloc, s->texts, s->texts_cap, 1);
	*s = (struct snapshot){.alloc = s->alloc};
}

/* How much room the shard needs, in holds and in bytes of their keys. */
static void shard_measure(const struct shard *s, size_t *ret_holds, size_t *ret_bytes)
{
	uint32_t cursor = 0;
	*ret_holds = *ret_bytes = 0;
	for (struct entry *e; (e = table_next(&s->table, &cursor));) {
		*ret_holds += e->holders;
		*ret_bytes += e->holders ? entry_text(e).len : 0;
	}
}

static void snapshot_add(struct snapshot *snap, const struct entry *e, struct baton_mono now)
{
	struct baton_str text = entry_text(e);
	char *copy = snap->texts + snap->texts_len;
	memcpy(copy, text.ptr, text.len);
	snap->texts_len += text.len;
	for (uint32_t i = 0; i < e->holders; i++) {
		const struct baton_gate_holder *h =
			i == 0 ? &e->first : &e->crowd->more[i - 1].holder;
		bool forever = h->expires.ns == BATON_MONO_NEVER.ns;
		if (forever || baton_mono_live(h->expires, now))
			snap->holds[snap->count++] =
				(struct baton_gate_hold){.key = {{copy, text.len}, {e->cls}},
			                                 .holder = *h};
	}
}

/* Under the lock: copies the shard. */
static enum baton_err snapshot_take(struct snapshot *snap, const struct shard *s,
                                    struct baton_mono now)
{
	size_t holds;
	size_t bytes;
	shard_measure(s, &holds, &bytes);
	if (holds == 0)
		return BATON_OK;
	snap->holds = mem_new(snap->alloc, holds, sizeof *snap->holds);
	snap->cap = snap->holds ? holds : 0;
	snap->texts = mem_new(snap->alloc, bytes, 1);
	snap->texts_cap = snap->texts ? bytes : 0;
	if (!snap->holds || !snap->texts)
		return fail_memory(holds * sizeof *snap->holds + bytes, "a list of holds");
	uint32_t cursor = 0;
	for (struct entry *e; (e = table_next(&s->table, &cursor));)
		if (e->holders > 0)
			snapshot_add(snap, e, now);
	return BATON_OK;
}

enum baton_err baton_gate_each(struct baton_gate *gate, struct baton_mono now,
                               bool (*visit)(const struct baton_gate_hold *hold, void *arg),
                               void *arg)
{
	for (unsigned i = 0; i < SHARDS; i++) {
		AUTO(snapshot_done) struct snapshot snap = {.alloc = gate->alloc};
		gate_lock(gate, UINT64_C(1) << i);
		enum baton_err e = snapshot_take(&snap, &gate->shards[i], now);
		gate_unlock(gate, UINT64_C(1) << i);
		if (e != BATON_OK)
			return e;
		for (size_t h = 0; h < snap.count; h++)
			if (!visit(&snap.holds[h], arg))
				return BATON_OK;
	}
	return BATON_OK;
}
