/* Runs a process and all that it forks call by call, and kills one of them, or does something else,
 * at a chosen call. */
#ifndef GUARDIAN_TRACER_H
#define GUARDIAN_TRACER_H

#include <stdbool.h>
#include <sys/types.h>

/* Who somebody is, by how he came to be. */
enum role {
	ROLE_PATRON = 1, /* the process itself */
	ROLE_GUARDIAN,   /* what it forks */
	ROLE_KEEPER,     /* a thread of that one */
	ROLE_NANNY,      /* what that one forks, if there are nannies */
	ROLE_COMMAND,    /* what the last of these forks */
	ROLE_OTHERS,     /* what descends from the command */
	ROLES
};

/* Instead of a call: when the first of ROLE_OTHERS begins to wait for a shared lock. */
#define CALL_SETTLED 0

struct tracer_plan {
	void (*body)(void *arg); /* what the process does; it exits afterwards */
	void *arg;
	bool nannies;   /* between the guardian and a command there is one */
	enum role role; /* who is killed ... */
	unsigned call;  /* ... before his call of this number, from 1; or CALL_SETTLED */

	/* Unless it was done before: the first of ROLE_OTHERS begins to wait for a shared lock. */
	void (*settled)(void *arg);

	void (*killed)(void *arg); /* he is dead, and all others run on */

	/* Done instead of killing him, while he is about to make that call; or NULL. */
	void (*strike)(void *arg);
};

struct tracer_end {
	bool killed;   /* or struck; false: he ended before he had made so many calls */
	bool outlived; /* the command ended well after that, though nothing had settled */
	int status;    /* of the process itself, as waitpid(2) tells it */
};

/* Carries it out, and returns when all of them have ended. */
struct tracer_end tracer_run(const struct tracer_plan *plan);

/* Whether this process may trace another. */
bool tracer_works(void);

#endif
