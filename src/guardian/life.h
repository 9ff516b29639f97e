/* The life file of a runner: it is locked as long as anybody lives of the runner, its guardian and
 * its commands. */
#ifndef GUARDIAN_LIFE_H
#define GUARDIAN_LIFE_H

#include <baton/err.h>

#include "guardian/latch.h"

/* Makes the file at the absolute path and locks it. Ended by latch_drop().
 *
 * BATON_YIELD: somebody lives who has it. BATON_BUSY: others looked at it all the time.
 * BATON_INVALID: the path is too long or not absolute. BATON_SYSTEM. */
enum baton_err life_take(struct latch *life, const char *path);

#endif
