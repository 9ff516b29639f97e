/* What somebody may have meant who mistyped a name. */
#ifndef CLI_SUGGEST_H
#define CLI_SUGGEST_H

#include <stddef.h>

/* The nearest of the names that were considered. Begins as {typed, NULL, 0}. */
struct suggestion {
	const char *typed;
	const char *nearest; /* NULL: none was near enough to be what was meant */
	size_t distance;     /* how far that is                                 */
};

/* How many letters have to be added, removed, replaced or swapped with their neighbour to turn one
 * word into the other. Words longer than 63 letters are as far from all others as can be. */
size_t word_distance(const char *a, const char *b);

/* Keeps `name`, which is borrowed, if it is nearer than those before it and near enough. */
void suggestion_consider(struct suggestion *s, const char *name);

#endif
