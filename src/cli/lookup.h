/* One job that a command looks at. */
#ifndef CLI_LOOKUP_H
#define CLI_LOOKUP_H

#include <baton.h>

#include "out.h"
#include "store.h"

/* Finds the job in the store, which is open. EX_OK: *ret_page has just that one, and is freed by
 * baton_work_page_free(). Else another status after one line on standard error: 1 if there is no
 * such job. */
int lookup(const struct store *store, const struct baton_batch_id *id,
           struct baton_work_page **ret_page);

/* The job that keeps that one from running, to be freed. NULL: there is none, or it is gone. */
struct baton_work_page *lookup_ahead(const struct store *store, const struct baton_work_info *info);

/* What the job waits for, if it is ready, or due by now, and nothing is in its way. False:
 * something is, or that could not be found out. */
bool lookup_stalled(const struct store *store, const struct baton_work_info *info,
                    struct baton_stalled *ret);

/* Says that there is no queue of that name, which ends with a NUL. Returns the exit status. */
int lookup_no_queue(struct baton_str queue);

#endif
