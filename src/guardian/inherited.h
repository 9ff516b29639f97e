/* The descriptors that a process has from its parent, to be closed once they are of no use. */
#ifndef GUARDIAN_INHERITED_H
#define GUARDIAN_INHERITED_H

#include <stddef.h>

#include <baton/alloc.h>
#include <baton/err.h>

/* Begins as {.alloc = ...}. */
struct inherited {
	const struct baton_alloc *alloc;
	int *fds;
	size_t count;
	size_t room;
};

/* Writes down what is open now besides 0, 1, 2 and `except`.
 * BATON_SYSTEM: /proc cannot be read. BATON_NO_MEMORY. Nothing is written down unless BATON_OK. */
enum baton_err inherited_list(struct inherited *i, int except);

/* Closes them, lets 0, 1 and 2 lead nowhere, and leaves the folder that the process is in: whoever
 * waits for the other end of a pipe, or wants to unmount a file system, does not wait for us. */
void inherited_close(struct inherited *i);

#endif
