/* A command and all the processes that descend from it, as children of this one.
 *
 * This process is their subreaper: whoever loses his parent becomes its child. So they are all gone
 * when it has no child left, and none of them can escape by forking. The mechanics only; when to do
 * what is for others to decide. */
#ifndef GUARDIAN_BROOD_H
#define GUARDIAN_BROOD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/err.h>

/* Room for what a command is told when it starts, with a NUL. */
#define BROOD_LATE 48

struct brood_spec {
	char *const *argv;    /* found by PATH */
	char *const *envp;    /* all of the environment */
	char *late;           /* a text in envp, of BROOD_LATE bytes, set at the start; or NULL */
	const sigset_t *mask; /* the signals that it finds blocked */
	bool chld_ignored;    /* it finds SIGCHLD ignored */

	/* What else it finds; zeros are fine. */
	const int *places; /* what is to be its descriptors 0, 1 and so on; -1: what is here. None
	                      * of these has a number below places_count */
	size_t places_count;
	const int *keep; /* descriptors that it inherits with their numbers */
	size_t keep_count;
	bool leads;   /* it is in a process group of its own */
	bool at_once; /* it starts without brood_start() */
};

/* Begins as BROOD_NONE. */
struct brood {
	int32_t command; /* its pid until it is reaped; 0: none, or it has ended */
	bool started;    /* it may have been executed */
	int socket;      /* to the command until it is executed; or -1 */
	int status;      /* of the command that has ended, as waitpid(2) tells it */
	int errnum;      /* why the command that has ended was never executed; or 0 */
};

#define BROOD_NONE ((struct brood){.socket = -1})

/* Makes this process the one that inherits what descends from it.
 * BATON_SYSTEM: the kernel does not allow it. */
enum baton_err brood_prepare(void);

/* Forks the process that is to be the command, in the process group of this one unless it leads
 * one, and with the signals blocked that are blocked here: these wait for the command, as it waits
 * for brood_start() unless it starts at once.
 * It is killed when the calling thread of this process ends. The spec is borrowed for the call.
 * BATON_SYSTEM: there is no process or descriptor to be had. */
enum baton_err brood_fork(struct brood *b, const struct brood_spec *spec);

/* Lets the command be executed. It inherits `inherit`, unless that is -1, under this number or a
 * higher one, and finds `late`, unless that is NULL, in its environment. Signals that stop
 * and came before are forgotten. Whatever goes wrong is the command's end. */
void brood_start(struct brood *b, int inherit, const char *late);

/* Whether the command has been executed, or has ended before it was and does not say why. Once
 * b->socket is readable it is known. */
bool brood_executed(const struct brood *b);

/* What brood_reap() found. */
struct brood_news {
	bool ended; /* the command has, since the last time; b->status and b->errnum tell how */
	bool empty; /* no process lives that descends from this one */
};

/* Reaps whoever has ended, without waiting. */
struct brood_news brood_reap(struct brood *b);

/* Sends `sig` to the command, if it runs. */
void brood_signal(const struct brood *b, int sig);

/* Sends `sig` to the process group that the command leads, as long as the command is not reaped. */
void brood_signal_group(const struct brood *b, int sig);

/* Sends `sig` to the command and to everything that descends from it. What is forked meanwhile may
 * not get it; so whoever wants all of them dead says SIGKILL until there are none. */
void brood_signal_all(const struct brood *b, int sig);

/* Ends a command that was forked and not started, and closes what is open. Ends nobody else. */
void brood_done(struct brood *b);

#endif
