/* A process that does to a fleet what it is told, and can be stopped at any step of it.
 *
 * It has two threads that are told separately and share one membership. Commands and answers are
 * lines; a thread that reaches its trap says so and waits, and may be killed there. */
#ifndef CONTEST_TESTS_AGENT_H
#define CONTEST_TESTS_AGENT_H

#include <baton/claim.h>

#include "contest/layout.h"
#include "contest/step.h"
#include "support/child.h"

/* A small fleet, so that places are evicted, entries shifted and members swept all the time. */
#define MEMBERS 6u
#define SUBJECTS 8u
#define WAITERS 8u

/* Subjects that all begin at the same entry of the index. */
#define LABELS 12u
#define LABEL_BYTES 16u

#define AGENT_THREADS 2

struct agent {
	char name;
	bool lives;
	struct child child;
	int channels[AGENT_THREADS]; /* the first is the child's */
};

enum heard {
	HEARD_ANSWER = 1, /* it has done what it was told        */
	HEARD_STOPPED,    /* it stands in its trap               */
	HEARD_IN_LINE     /* it waits in line, and will answer   */
};

struct answer {
	enum baton_err err;
	uint64_t fence;
	int pid; /* of the holder it had to yield to */
	char text[512];
};

/* Starts one for the fleet at `path`, which must outlive it. */
void agent_start(struct agent *a, char name, const char *path);

/* Tells the thread what to do:
 *
 *	join, leave                      become a member, end it
 *	try I, try I MS                  baton_claim_try() of label I, with a ttl
 *	steal I                          the same in two hours
 *	wait I MS                        baton_claim_wait() for so long
 *	renew I, check I, release I      the claim that it got there
 *	force I                          baton_claim_force()
 *	fill N                           hold N new subjects, and one more if N are not all
 *	crowd N                          be N members more, and not one more
 *	join2                            be one member more, and leave
 *	look N                           see N subjects held, as a watch
 *	trap STEP NTH                    stop there; from now on visits are counted anew
 *	visits                           answers how often each step was visited
 */
void agent_tell(const struct agent *a, int thread, const char *command);

/* Waits for the next thing that it says. Fails the test if it never comes. */
enum heard agent_hear(const struct agent *a, int thread, struct answer *ret);

/* Lets a thread go on from its trap. */
void agent_go_on(const struct agent *a, int thread);

/* Kills it, wherever it is, and returns once it has ended; it is left unreaped, as by a parent that
 * has not noticed yet. */
void agent_kill(struct agent *a);

/* Kills and reaps it. Fine for one that was never started. */
void agent_end(struct agent *a);

/* The labels of a fleet. */
void labels_find(const struct view *v, char labels[LABELS][LABEL_BYTES]);

const char *step_name(enum step step);

#endif
