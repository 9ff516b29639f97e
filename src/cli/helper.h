/* Where the guardian's helper is, for a program that runs from where it was built, or was moved
 * together with what was installed. */
#ifndef CLI_HELPER_H
#define CLI_HELPER_H

#include <limits.h>

/* The helper that lies where it should beside this program, in `path`. NULL: there is none, or
 * BATON_GUARDIAN in the environment names one: then the library knows. */
const char *helper_beside(char path[PATH_MAX]);

#endif
