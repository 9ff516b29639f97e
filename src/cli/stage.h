/* The folder of its own in which the demo is played, and which is gone afterwards. */
#ifndef CLI_STAGE_H
#define CLI_STAGE_H

#include <limits.h>

/* Makes the folder below $TMPDIR or /tmp. Returns EX_OK, and `path` is absolute; or another status
 * after one line on standard error. */
int stage_make(char path[PATH_MAX]);

/* Removes it with all that is in it. It may be gone already. */
void stage_remove(const char *path);

#endif
