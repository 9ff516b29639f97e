/* Assignments that a shell can read. */
#ifndef CLI_SHELL_H
#define CLI_SHELL_H

#include <baton.h>

#include "line.h"

/* Adds "export NAME='...'" and a line feed. A value with a NUL, which no shell can hold, becomes
 * "unset NAME". */
void shell_export(struct line *line, const char *name, struct baton_str value);

#endif
