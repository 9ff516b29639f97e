/* The process that holds a subject and parents the command that runs meanwhile. */
#ifndef GUARDIAN_GUARDIAN_H
#define GUARDIAN_GUARDIAN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include <baton/guardian.h>

/* What the guardian has from the process that forked it. */
struct guardian_birth {
	const struct baton_guardian_ask *ask;
	int socket;           /* to the patron, in packets; its end is the patron's death */
	int32_t patron;       /* the pid of the patron */
	const sigset_t *mask; /* the signals that were blocked before */
	bool chld_ignored;    /* SIGCHLD was ignored before */
};

/* Is the guardian, in a process of its own with one thread, and at first in the patron's group,
 * from its beginning to its end. */
_Noreturn void guardian_live(const struct guardian_birth *birth);

#endif
