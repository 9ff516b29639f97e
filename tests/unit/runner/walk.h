/* Every order in which a few calls on one machine can meet, one after the other. */
#ifndef RUNNER_WALK_H
#define RUNNER_WALK_H

#include <stdbool.h>
#include <stddef.h>

#define WALK_CALLS_MAX 4

/* One call that is under way. `started_after` has a bit for every call that had returned when this
 * one began. Calls of the same kind, next to each other, begin in order: which is which makes no
 * difference. */
struct walk_call {
	void (*run)(void *arg);
	void *arg;
	unsigned kind;
	unsigned started_after;
};

struct walk {
	struct walk_call calls[WALK_CALLS_MAX];
	size_t count;
	void (*begin)(void *arg); /* makes the world anew, before each schedule   */
	bool (*end)(void *arg);   /* looks at it afterwards; false: stop the walk */
	void *arg;
	bool blind; /* a wrong variant: who makes it attached does not see what came between */
};

/* Runs the calls in all orders of their steps. Returns how many orders there were, until and with
 * the one after which end() returned false. All calls blocked is the end of the program. */
unsigned long walk_all(struct walk *walk);

#endif
