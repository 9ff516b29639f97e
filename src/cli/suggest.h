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

/* Keeps `name`, which is borrowed, if it is nearer than those before it and near enough. */
void suggestion_consider(struct suggestion *s, const char *name);

#endif
