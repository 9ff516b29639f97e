/* The process between a guardian and one command, which inherits what the command leaves behind. */
#ifndef GUARDIAN_NANNY_H
#define GUARDIAN_NANNY_H

#include <stddef.h>
#include <stdint.h>

#include "guardian/errand.h"

/* Signals by which the guardian tells a nanny what to do, and the kernel that it has died: also one
 * that was stopped goes on then. */
#define NANNY_STOP SIGUSR1
#define NANNY_KILL SIGUSR2
#define NANNY_ALONE SIGCONT

/* What a nanny has from the guardian that forked it. */
struct nanny_birth {
	int32_t guardian; /* its pid */
	int socket;       /* to the runner */
	int signals;      /* where these, SIGCHLD and those above arrive */
	int timer;        /* readable when all has to be dead, whatever the guardian does */
	const int *keep;  /* descriptors that the command inherits with their numbers */
	size_t keep_count;
	const struct errand_order *order;
	int *fds; /* that came with it */
};

/* Is the nanny, in a process of its own, until nothing lives that descends from it and the runner
 * was told. All signals are blocked. Exits with 0 if it was told, or did not want to hear it. */
_Noreturn void nanny_live(const struct nanny_birth *birth);

#endif
