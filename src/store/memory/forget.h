/* What a store in memory forgets in time: source keys, answers and results. */
#ifndef STORE_MEMORY_FORGET_H
#define STORE_MEMORY_FORGET_H

#include "store/memory/memory.h"

#define MEMORY_SOME 2 /* rows of each table that are looked at along the way */

/* Looks at a few rows, others each time. The caller has the lock, and no transaction. */
void memory_forget_some(struct memory *m, struct baton_store_time now);

enum baton_err memory_tidy(struct baton_store *store, size_t max, size_t *ret_count);

#endif
