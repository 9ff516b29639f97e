/* Whether the rows of a store in memory fit together. */
#ifndef STORE_MEMORY_CHECK_H
#define STORE_MEMORY_CHECK_H

#include "store/store.h"

enum baton_err memory_check(struct baton_store *store,
                            void (*report)(void *arg, const char *sentence), void *arg,
                            uint64_t *ret_faults);

#endif
