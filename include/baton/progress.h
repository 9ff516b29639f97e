/* How far a job is that runs, as its handler says it.
 *
 * A runner tells the store the newest that its handlers have said, no more often than it beats, and
 * for all of them at once: what is said costs no write of its own. What was not told yet is lost
 * when the runner dies, and all of it is gone when the run ends. */
#ifndef BATON_PROGRESS_H
#define BATON_PROGRESS_H

#include <stdint.h>

#include <baton/api.h>
#include <baton/err.h>
#include <baton/runner.h>
#include <baton/store.h>
#include <baton/str.h>
#include <baton/time.h>
#include <baton/work.h>

BATON_BEGIN

#define BATON_PROGRESS_MAX 255     /* bytes of a text */
#define BATON_PROGRESS_UNSAID (-1) /* in the place of percent */

/* Says how far the run is, in place of what was said of it before: 0 to 100 percent, or
 * BATON_PROGRESS_UNSAID, and a text, which may be empty. What is beyond BATON_PROGRESS_MAX bytes of
 * it is left out, and control characters become blanks.
 *
 * Cheap: nothing is written. A runner with very many runs tells of as many as there is room for, a
 * few hundred.
 * BATON_INVALID: above 100 or below -1, or no UTF-8. BATON_NO_MEMORY. Any thread, before the run
 * ends. */
BATON_API enum baton_err baton_run_progress(struct baton_run *run, int32_t percent,
                                            struct baton_str text);

/* What was told last of a run. */
struct baton_progress {
	int32_t percent; /* or BATON_PROGRESS_UNSAID */
	char text[BATON_PROGRESS_MAX + 1];
	struct baton_store_time at; /* when the runner told it */
};

/* How far the batch is, as its runner has told it. `info` is what baton_work_get() has found.
 *
 * BATON_NOT_FOUND: nothing was told of it, or no runner has it. BATON_NO_MEMORY, BATON_STORAGE.
 * Any thread. */
BATON_API enum baton_err baton_progress_read(struct baton_store *store,
                                             const struct baton_work_info *info,
                                             struct baton_progress *ret);

BATON_END

#endif
