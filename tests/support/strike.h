/* A process that is struck at a system call: killed there, or told that it failed. */
#ifndef SUPPORT_STRIKE_H
#define SUPPORT_STRIKE_H

#include <stdbool.h>
#include <stddef.h>

/* Runs body(arg) in a child, and kills it at the `n`th moment (from 1) at which it enters or leaves
 * a system call: before the call has done anything, or when it has done all. Returns 128 + SIGKILL
 * once it is dead; what body() returned if it ended before that; CHILD_SKIP if the system does not
 * allow tracing. */
int strike_kill(unsigned n, int (*body)(void *arg), void *arg);

/* Runs body(arg) in a child and writes down the numbers of its system calls, in order, up to `max`.
 * Returns how many there are. 0: the system does not allow tracing. */
size_t strike_trace(int (*body)(void *arg), void *arg, long *calls, size_t max);

/* Makes every call of the system call `number` fail with `errnum` from now on, in this thread and
 * its children, without doing anything. False: the system does not allow it. For use in a child. */
bool strike_deny(int number, int errnum);

#endif
