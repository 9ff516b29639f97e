/* How a run ended, copied so that it lasts until the store has been told. */
#ifndef RUNNER_ENDS_H
#define RUNNER_ENDS_H

#include <baton/alloc.h>
#include <baton/work.h>

#include "runner/core.h"

/* A copy of `end`, whose drop() frees it. It can always be had: if something is beyond a limit, or
 * memory is short, *ret says that the run failed for that reason.
 *
 * BATON_INVALID, BATON_NO_MEMORY: that is so. */
enum baton_err end_copy(const struct baton_alloc *alloc, const struct baton_work_end *end,
                        struct core_end *ret);

#endif
