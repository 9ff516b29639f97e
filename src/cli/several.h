/* The jobs that a command is given, one after the other. */
#ifndef CLI_SEVERAL_H
#define CLI_SEVERAL_H

#include <baton.h>

#include "options.h"
#include "out.h"
#include "store.h"

struct several {
	struct store store;
	struct baton_batch_id *ids;
	size_t count;
};

/* Reads the options and the ids of a command that takes ids and nothing else but --json and what
 * all commands about a store take. Returns EX_OK, and several_done() ends it, with ids == NULL if
 * help was wanted and has been written; or another status after one line on standard error. */
int several_parse(struct several *s, struct out *out, int argc, char **argv);

void several_done(struct several *s);

/* Writes what became of a job, as a line or as an object. */
void several_tell(const struct several *s, struct out *out, size_t index, const char *what);

#endif
