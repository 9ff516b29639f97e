/* What the gate costs beside time: calls to the allocator, and memory. */
#ifndef BENCH_GATE_FACTS_H
#define BENCH_GATE_FACTS_H

#include "harness.h"
#include "tables/table.h"

/* Allocations of the gate per operation, and the heap that each kind takes for each of `keys`
 * keys. Returns how many facts there are, at most `max`. */
size_t gate_facts(const struct table_kind *const *kinds, size_t kind_count, size_t keys,
                  struct fact *ret, size_t max);

#endif
