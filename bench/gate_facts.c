/* What the gate costs beside time. */
#include "gate_facts.h"

#include <err.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>

#include <baton/alloc.h>
#include <baton/gate.h>

#include "keys.h"

/* The longest key for which the gate promises not to allocate. */
#define LONG_KEY 55
#define LONG_KEYS 100000

/* An allocator that counts its calls. One thread. */
struct counter {
	struct baton_alloc alloc;
	uint64_t *calls;
};

static void *counter_resize(const struct baton_alloc *self, void *old, size_t old_size,
                            size_t new_size)
{
	++*((const struct counter *)self)->calls;
	return baton_alloc_libc()->resize(baton_alloc_libc(), old, old_size, new_size);
}

static void must(enum baton_err e)
{
	if (e != BATON_OK)
		errx(1, "gate: %s", baton_strerror(e));
}

/* One run and the key that it asks for. */
struct asker {
	struct baton_gate *gate;
	char text[LONG_KEY + 1];
	struct baton_gate_key key;
	struct baton_gate_ask ask;
};

static void asker_init(struct asker *a, struct baton_gate *gate)
{
	*a = (struct asker){.gate = gate};
	a->key = (struct baton_gate_key){{a->text, LONG_KEY}, BATON_GATE_CLASS_DEFAULT};
	a->ask = (struct baton_gate_ask){&a->key, 1, {{1}}, {1}};
}

static void acquire(struct asker *a, unsigned n)
{
	snprintf(a->text, sizeof a->text, "tenant/000123/conversation/%08u/attachments/preview", n);
	must(baton_gate_acquire(a->gate, &a->ask, NULL, NULL));
}

static void release(struct asker *a, unsigned n)
{
	snprintf(a->text, sizeof a->text, "tenant/000123/conversation/%08u/attachments/preview", n);
	must(baton_gate_release(a->gate, &a->ask));
}

/* Each held key is given back and taken again, and as many others come and go. */
static void stir(struct asker *a)
{
	for (unsigned i = 0; i < LONG_KEYS; i++) {
		release(a, i);
		acquire(a, i);
		acquire(a, LONG_KEYS + i);
		release(a, LONG_KEYS + i);
	}
}

static double allocations_per_op(void)
{
	uint64_t calls = 0;
	struct counter counter = {{counter_resize}, &calls};
	struct baton_gate_options options = {.alloc = &counter.alloc};
	struct baton_gate *gate;
	must(baton_gate_new(&options, &gate));
	struct asker a;
	asker_init(&a, gate);
	for (unsigned i = 0; i < LONG_KEYS; i++)
		acquire(&a, i);
	stir(&a);
	calls = 0;
	stir(&a);
	double each = (double)calls / (2.0 * LONG_KEYS);
	baton_gate_free(gate);
	return each;
}

static double heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();
	return (double)m.uordblks + (double)m.hblkhd;
}

static double bytes_per_key(const struct table_kind *kind, const struct keys *keys)
{
	struct caller who = {.owner = {{1}}};
	double before = heap_bytes();
	void *table = kind->make(keys->count, 1);
	if (kind->enter)
		kind->enter(table);
	for (size_t i = 0; i < keys->count; i++)
		kind->acquire(table, &keys->held[i], &who);
	double bytes = heap_bytes() - before;
	if (kind->leave)
		kind->leave(table);
	kind->unmake(table);
	return bytes / (double)keys->count;
}

size_t gate_facts(const struct table_kind *const *kinds, size_t kind_count, size_t keys,
                  struct fact *ret, size_t max)
{
	size_t n = 0;
	ret[n++] = (struct fact){
		.name = "gate, allocations per acquire+release, 55-byte keys",
		.unit = "calls",
		.value = allocations_per_op(),
		.at_most = 0,
	};
	struct keys *all = keys_new(keys);
	for (size_t i = 0; i < kind_count && n < max; i++)
		ret[n++] = (struct fact){
			.name = kinds[i]->name,
			.unit = "bytes of heap per live key",
			.value = bytes_per_key(kinds[i], all),
			.at_most = NAN,
		};
	keys_free(all);
	return n;
}
