/* Threads that meet to have their wishes granted in one commit, in as few lines as it can be done:
 * those who come while somebody is at work are the next, and one of them grants what all wish. */
#ifndef BENCH_JOBS_MEETING_H
#define BENCH_JOBS_MEETING_H

#include <stdint.h>

struct guest {
	struct guest *next;
	uint32_t state; /* [atomic] */
};

struct meeting {
	struct guest *waiting; /* [atomic] the last who came, before him the others */
	uint32_t busy;         /* [atomic] somebody is at work */
	uint32_t done;         /* [atomic] a futex: how often they were let go */
};

/* Returns once `grant` has been called with a list that the guest is in. */
void meeting_come(struct meeting *m, struct guest *guest,
                  void (*grant)(void *arg, struct guest *list), void *arg);

#endif
