/* A search through every state that a model can reach, breadth first, so that the way to the first
 * wrong one is among the shortest. */
#ifndef CONTEST_WALK_H
#define CONTEST_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WALK_SIZE_MAX 128 /* bytes of a state */
#define WALK_TEXT_MAX 256

/* A state is `size` bytes, each below 16; two are kept in one. An action is a number below
 * `actions`; each is tried in each state. */
struct walk_model {
	const void *arg;
	size_t size;
	unsigned actions;

	void (*init)(const void *arg, void *state);

	/* Changes *state by the action. false: it is not possible there, and *state is of no use.
	 * *wrong is set if the action itself broke a rule. */
	bool (*act)(const void *arg, void *state, unsigned action, const char **wrong);

	/* What is wrong with a state; NULL: nothing. */
	const char *(*judge)(const void *arg, const void *state);

	/* What the action was, and what came of it, in a line without its end. */
	void (*tell)(const void *arg, const void *before, unsigned action, const void *after,
	             char text[WALK_TEXT_MAX]);
};

struct walk;

/* Walks through at most states_max states, which must be enough for all of them. What is wrong is
 * the end of the walk. Ended by walk_free(). */
struct walk *walk_run(const struct walk_model *model, size_t states_max);
void walk_free(struct walk *walk);

/* How many different states it saw, by how many actions. */
size_t walk_states(const struct walk *walk);
size_t walk_moves(const struct walk *walk);

/* What was wrong, and after how many actions at the least; NULL: nothing in any state. */
const char *walk_wrong(const struct walk *walk);
size_t walk_length(const struct walk *walk);

/* Whether it ended because there was more than states_max. */
bool walk_was_cut(const struct walk *walk);

/* Prints the way to what was wrong as TAP comments, one action a line. */
void walk_print(const struct walk *walk);

#endif
