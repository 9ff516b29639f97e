/* The processes of the demo: three runners with a line each to the witness, and the witness. None
 * of them outlives the process that started them, however that ends. */
#ifndef CLI_CREW_H
#define CLI_CREW_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define CREW_RUNNERS 3
#define CREW_QUEUE "demo"

extern const char *const crew_names[CREW_RUNNERS];

struct crew {
	char program[PATH_MAX]; /* of this process, and so of the runners */
	int socket;             /* to the witness; -1: none */
	pid_t witness;          /* 0: it does not run */
	pid_t lines[CREW_RUNNERS];
	pid_t runners[CREW_RUNNERS];
};

/* The status of a process that has ended because it lacked something. */
#define CREW_LACKS 71

/* Makes this process the parent of whatever its children leave behind. */
void crew_adopt(void);

/* Has this process get that signal when `parent`, which has forked it, ends. */
void crew_follow(pid_t parent, int signal);

/* Starts the witness and the lines, in the current folder. Not while there are threads. Returns
 * EX_OK, or another status after one line on standard error. crew_end() in any case. */
int crew_gather(struct crew *crew);

/* Starts a runner of the store that BATON_STORE names. As above. */
int crew_hire(struct crew *crew, size_t runner);

/* Kills a runner, which is not missed then. */
void crew_kill(struct crew *crew, size_t runner);

/* Stops a runner and its line: returns when the runner stands still. */
void crew_freeze(const struct crew *crew, size_t runner);

/* Lets both go on. */
void crew_thaw(const struct crew *crew, size_t runner);

/* Whether one of them has ended by itself: then `text` says who, and what it said last. */
bool crew_missed(const struct crew *crew, char *text, size_t room);

/* Kills those that there are. */
void crew_end(struct crew *crew);

/* Waits until this process has no children any more, also none that others left behind. */
void crew_await(void);

#endif
