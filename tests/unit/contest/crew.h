/* Some agents in one fleet, and what has to be true of them when one has been killed. */
#ifndef CONTEST_TESTS_CREW_H
#define CONTEST_TESTS_CREW_H

#include "agent.h"
#include "contest/layout.h"

/* `v` is the victim, and `w` its other thread; `c`, `d` and `p` play with it, `a` and `b` check. */
#define CREW "abcdpv"
#define CREW_SIZE 6

struct crew {
	char folder[64];
	char path[96];
	struct view view;
	struct agent agents[CREW_SIZE];
	char labels[LABELS][LABEL_BYTES];
	uint64_t highest[LABELS]; /* fence that was ever seen */
	char line[CREW_SIZE + 1]; /* who waits, in this order, */
	unsigned waited;          /* for this label            */
	bool lenient;             /* answers may be any        */
	char about[160];          /* where we are              */
};

/* Makes a fleet in a new folder, in which `a` is a member. */
void crew_begin(struct crew *c);
void crew_end(struct crew *c);

struct agent *crew_agent(struct crew *c, char name);

/* Makes the agent do it and returns what it answered. */
struct answer crew_do(struct crew *c, char name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Plays a script of lines "WHO COMMAND", whose answer must be BATON_OK, or what stands after "=".
 * "kill" kills. "wait ... &" goes on when it waits in line; "WHO ." collects its answer then.
 * Returns the line at which the victim was stopped; NULL: it came to its end. */
const char *crew_play(struct crew *c, const char *script);

/* Lets the victim go on from where crew_play() returned, and plays the rest. From here on the
 * answers depend on what the others did meanwhile, and may be any. */
void crew_resume(struct crew *c, const char *line);

void crew_kill(struct crew *c, char name);

/* Looks at all that is known to be held, and remembers the fences. */
void crew_look(struct crew *c);

/* After the victim has died, and everybody else is alive: nobody is blocked, nobody holds what
 * another holds, fences rise, the table is in order, and all places can be had. */
void crew_check_dead(struct crew *c);

/* While the victim is stopped: everybody gets an answer, though it may be BATON_BUSY. */
void crew_check_stopped(struct crew *c);

#endif
