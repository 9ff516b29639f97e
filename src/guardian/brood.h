/* A command and all the processes that descend from it, as children of this one.
 *
 * This process is their subreaper: whoever loses his parent becomes its child. So they are all gone
 * when it has no child left, and none of them can escape by forking. The mechanics only; when to do
 * what is for others to decide. */
#ifndef GUARDIAN_BROOD_H
#define GUARDIAN_BROOD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include <baton/err.h>

struct brood_spec {
	char *const *argv;    /* found by PATH */
	char *const *envp;    /* all of the environment */
	int inherit;          /* a descriptor that it inherits besides those it would; or -1 */
	int32_t group;        /* the process group in which it runs */
	const sigset_t *mask; /* the signals that it finds blocked */
	bool chld_ignored;    /* it finds SIGCHLD ignored */
};

/* Begins as BROOD_NONE. */
struct brood {
	int32_t command; /* its pid until it is reaped; 0: none, or it has ended */
	int errors;      /* where its errno comes from if it cannot be executed; or -1 */
	int status;      /* of the command that has ended, as waitpid(2) tells it */
	int errnum;      /* why the command that has ended was never executed; or 0 */
};

#define BROOD_NONE ((struct brood){.errors = -1})

/* Makes this process the one that inherits what descends from it.
 * BATON_SYSTEM: the kernel does not allow it. */
enum baton_err brood_prepare(void);

/* Starts the command. It is killed when the calling thread of this process ends.
 * BATON_SYSTEM: there is no process or descriptor to be had. */
enum baton_err brood_start(struct brood *b, const struct brood_spec *spec);

/* What brood_reap() found. */
struct brood_news {
	bool ended; /* the command has, since the last time; b->status and b->errnum tell how */
	bool empty; /* no process lives that descends from this one */
};

/* Reaps whoever has ended, without waiting. */
struct brood_news brood_reap(struct brood *b);

/* Sends `sig` to the command, if it runs. */
void brood_signal(const struct brood *b, int sig);

/* Sends `sig` to the command and to everything that descends from it. What is forked meanwhile may
 * not get it; so whoever wants all of them dead says SIGKILL until there are none. */
void brood_signal_all(const struct brood *b, int sig);

/* Closes what it has open. Ends nobody. */
void brood_done(struct brood *b);

#endif
