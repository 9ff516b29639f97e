/* A locked file that the processes of a command keep open, so that the next command can wait for
 * all of them, even if nobody who knew them lives.
 *
 * The file lies beside the fleet's or the store's, one for each subject. A lock of flock(2) belongs
 * to an open file that descends to children with its descriptor, and ends with the last process
 * that has it. */
#ifndef GUARDIAN_LATCH_H
#define GUARDIAN_LATCH_H

#include <stddef.h>
#include <stdint.h>

#include <baton/claim.h>
#include <baton/err.h>

#define LATCH_PATH_MAX 4095

/* Begins as LATCH_NONE. */
struct latch {
	int fd; /* the lock; -1: not held */
	char path[LATCH_PATH_MAX + 1];
};

#define LATCH_NONE ((struct latch){.fd = -1})

/* Names the latch of a subject beside the file at `beside`, that of a fleet or a store, and makes
 * the folder for it, which may be used by whoever may use the file.
 *
 * BATON_INVALID: the path is too long, or what is there is no folder of this user, of the file's
 * owner or of root. BATON_SYSTEM: it cannot be made. */
enum baton_err latch_name(struct latch *l, const char *beside, const struct baton_subject *subject);

/* Makes one attempt to take it.
 *
 * BATON_YIELD: a process of somebody else has it. BATON_SYSTEM: the file cannot be opened. */
enum baton_err latch_take(struct latch *l);

/* Gives it back, as far as it is this process's: others that have the descriptor keep it. The file
 * is removed if there are none. Fine when it is not held. */
void latch_drop(struct latch *l);

/* Writes down up to `max` processes that have it, of those that this user can look into. Returns
 * how many these are. */
size_t latch_keepers(const struct latch *l, int32_t *pids, size_t max);

#endif
