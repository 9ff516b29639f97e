/* The play of the demo: what happens, when, and what came of it. */
#ifndef CLI_PLAY_H
#define CLI_PLAY_H

#include <signal.h>

#include "out.h"

/* Plays it in the current folder, of that path, until its end or until *stop is not 0, with
 * processes that live no longer than that. Returns EX_OK if all is well, EXIT_FAILURE if not, or
 * another status after one line on standard error. */
int play(struct out *out, const char *folder, const volatile sig_atomic_t *stop);

#endif
