/* The process that is the guardian of many commands, seen from the runner that has started it: how
 * it begins, how it is reached, and how it comes to its end with all that it looks after. */
#ifndef GUARDIAN_HIRE_H
#define GUARDIAN_HIRE_H

#include <stdbool.h>
#include <stdint.h>

#include <baton/err.h>

#include "guardian/errand.h"
#include "guardian/wards.h"

struct hired {
	struct errand_page *page; /* [const]; the deadline in it [atomic] */
	int wake;                 /* [const] */
	int timer;                /* [const] the nannies' */
	int32_t pid;
	bool reaped;
	int guardian; /* a pidfd */
	int socket;
	int leash; /* the end to read of a pipe of which all others have the other one */
};

#define HIRED_NONE \
	((struct hired){.wake = -1, .timer = -1, .guardian = -1, .socket = -1, .leash = -1})

/* Starts the guardian, which gets the open life file, and waits until it is there. *h begins as
 * HIRED_NONE, and is ended by hired_end() whatever this returns, which wards_open() says. */
enum baton_err hire(struct hired *h, const struct wards_ask *ask, int life);

/* A guardian that was stopped goes on: it has something to do. So do nannies without one. */
void hired_rouse(const struct hired *h);

/* Whether the guardian has died. */
bool hired_is_dead(const struct hired *h);

/* Waits for a guardian that has died. */
void hired_reap(struct hired *h);

/* Kills what lives of the commands of a guardian that has died, as far as no nanny does: those are
 * left to do it as long as there are any. Who forks meanwhile may escape: it is called again until
 * the leash tells that nobody is left. */
void hired_kill_orphans(const struct hired *h);

/* Whether nobody has the leash any more. What a command writes there has no meaning. */
bool hired_are_gone(const struct hired *h);

/* Kills what lives, waits until the guardian has ended, and so everything with it, and closes all.
 * What cannot be killed is not waited for longer than some seconds. */
void hired_end(struct hired *h);

#endif
