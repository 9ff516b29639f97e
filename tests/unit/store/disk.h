/* A disk that may lose, when the power fails, what was written to it and not synced.
 *
 * It stands between SQLite and the files: nothing changes for those who use them, but the images
 * that a power failure could leave can be had at any time. That a file is there, or was deleted, is
 * never lost. For one thread. */
#ifndef STORE_DISK_H
#define STORE_DISK_H

#include <stdbool.h>

#include "support/rng.h"

/* What becomes of the writes that were not synced. */
enum disk_fate {
	DISK_LOST = 1, /* none of them is there                   */
	DISK_KEPT,     /* all are                                 */
	DISK_SOME,     /* each is, or is not                      */
	DISK_TORN      /* and one that is was written only in part */
};

/* Everything that SQLite opens from now on is on such a disk if its path begins with `path`; what
 * was known before is forgotten. The disk keeps the pointer. */
void disk_watch(const char *path);

/* Takes a picture before the `n`th write, sync, truncation or deletion from now (from 1). */
void disk_arm(unsigned n);

/* Whether it was taken since disk_arm(). */
bool disk_fired(void);

/* Writes what a power failure would leave now, or would have left when the picture was taken:
 * `path` becomes `to`, and likewise the files beside it. */
void disk_image(bool picture, enum disk_fate fate, struct rng *rng, const char *to);

/* The `n`th read, write, sync, truncation or look at a size from now (from 1) fails, once; 0: none
 * does. */
void disk_break(unsigned n);

/* Whether it has failed since disk_break(). */
bool disk_broke(void);

#endif
