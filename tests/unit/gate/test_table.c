/* The table of a shard against a plain list, also where hashes collide. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "gate/table.h"
#include "support/fault.h"
#include "support/harness.h"
#include "support/rng.h"
#include "support/soak.h"

#define KEYS 300

struct model {
	struct entry *entries[KEYS];
	unsigned count;
};

static struct baton_str key_text(unsigned i, char text[80])
{
	/* Every third key does not fit into its entry. */
	int len = snprintf(text, 80, "%0*u", i % 3 ? 20 : 70, i);
	return (struct baton_str){text, (size_t)len};
}

/* Tags from a small range, so that every search meets strangers and wraps around the end. */
static uint32_t key_tag(unsigned i, uint32_t spread)
{
	return UINT32_MAX - (i * 7919u) % spread;
}

static void compare(const struct table *t, const struct model *m, uint32_t spread)
{
	unsigned seen = 0;
	uint32_t cursor = 0;
	while (table_next(t, &cursor))
		seen++;
	assert_int_equal(seen, m->count);
	assert_int_equal(t->used, m->count);
	for (unsigned i = 0; i < KEYS; i++) {
		char text[80];
		struct entry *e = table_find(t, key_tag(i, spread), 3, key_text(i, text));
		assert_ptr_equal(e, m->entries[i]);
		assert_null(table_find(t, key_tag(i, spread), 4, key_text(i, text)));
	}
}

static void toggle(struct table *t, struct model *m, unsigned i, uint32_t spread)
{
	char text[80];
	if (m->entries[i]) {
		table_remove(t, m->entries[i]);
		m->entries[i] = NULL;
		m->count--;
		return;
	}
	m->entries[i] = table_add(t, key_tag(i, spread), 3, key_text(i, text));
	assert_non_null(m->entries[i]);
	assert_true(baton_str_equal(entry_text(m->entries[i]), key_text(i, text)));
	assert_int_equal((uintptr_t)m->entries[i] % sizeof(struct entry), 0);
	m->count++;
}

static void entries_are_found_where_they_were_put_until_removed(void **state)
{
	struct rng rng = rng_seed_from_env();
	static const uint32_t spreads[] = {1, 2, 16, 64, 1000, UINT32_MAX};
	(void)state;
	for (size_t s = 0; s < sizeof spreads / sizeof *spreads; s++) {
		struct fault fault;
		struct table table;
		struct model model = {.count = 0};
		fault_init(&fault);
		table_init(&table, &fault.alloc);
		for (unsigned step = 0; step < soak_scale(2000, 100000); step++) {
			toggle(&table, &model, (unsigned)rng_below(&rng, KEYS), spreads[s]);
			if (step % 16 == 0)
				compare(&table, &model, spreads[s]);
		}
		compare(&table, &model, spreads[s]);
		table_done(&table);
		fault_done(&fault);
	}
}

static void memory_follows_the_number_of_entries_down(void **state)
{
	struct fault fault;
	struct table table;
	struct model model = {.count = 0};
	(void)state;
	fault_init(&fault);
	table_init(&table, &fault.alloc);
	for (unsigned i = 0; i < KEYS; i++)
		toggle(&table, &model, i, UINT32_MAX);
	size_t full = fault_live_bytes(&fault);
	for (unsigned i = 0; i < KEYS; i++)
		toggle(&table, &model, i, UINT32_MAX);
	assert_true(fault_live_bytes(&fault) < full / 3);
	table_done(&table);
	fault_done(&fault);
}

static void adding_survives_every_failing_allocation(void **state)
{
	bool fired = true;
	(void)state;
	for (unsigned n = 1; fired; n++) {
		struct fault fault;
		struct table table;
		struct model model = {.count = 0};
		fault_init(&fault);
		table_init(&table, &fault.alloc);
		fault_arm(&fault, n);
		for (unsigned i = 0; i < 100; i++) {
			char text[80];
			model.entries[i] = table_add(&table, key_tag(i, 50), 3, key_text(i, text));
			model.count += model.entries[i] ? 1 : 0;
		}
		fired = fault_fired(&fault);
		assert_int_equal(model.count, fired ? 99 : 100);
		compare(&table, &model, 50);
		table_done(&table);
		fault_done(&fault);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_found_where_they_were_put_until_removed),
		cmocka_unit_test(memory_follows_the_number_of_entries_down),
		cmocka_unit_test(adding_survives_every_failing_allocation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
