/* Whether it is permission that a user lacks. */
#ifndef CLI_DENIED_H
#define CLI_DENIED_H

#include <stdbool.h>

/* Whether this user may not read and write the file, or, where there is none, may not make it in
 * its folder. */
bool denied(const char *path);

#endif
