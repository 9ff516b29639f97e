/* The witness of the demo: a process that sees only what handlers tell it, and answers them. */
#ifndef CLI_WITNESS_H
#define CLI_WITNESS_H

#include <stdbool.h>

#include "judge.h"

/* Where it is told things, in the current folder: lines, each written at once. */
#define WITNESS_INBOX "inbox"

/* A folder with a pipe for each lane, by number, on which it answers each line, after a
 * while: "PID STATUS". */
#define WITNESS_ANSWERS "answers"

/* Makes these. False: errno says why. */
bool witness_prepare(void);

/* Is the witness, for ever: whoever is at the other end of `socket` gets its opinion by
 * witness_ask(). Returns when that one is gone, or with errno when there is no witness. */
void witness_be(int socket);

/* Asks the witness what it thinks now. False: there is none any more. */
bool witness_ask(int socket, struct judge *ret);

/* Is a line of a runner's handlers to the witness, for ever: passes on what is written to the pipe
 * of that name. */
void witness_line(const char *name);

#endif
