/* The jobs that a command is about: those that it is given one after the other, or all that are as
 * its options say. */
#ifndef CLI_SEVERAL_H
#define CLI_SEVERAL_H

#include <baton.h>

#include "options.h"
#include "out.h"
#include "store.h"

struct several {
	struct store store;
	struct baton_work_filter filter; /* without a queue: the ids are given */
	const char *error;               /* a pattern for what went wrong; NULL: any */
	struct baton_batch_id *ids;
	size_t count;
};

/* How many of them one call to the store takes. */
#define SEVERAL_STEP BATON_PUT_MAX

/* Reads the options and the ids of a command that takes ids, or --queue and what else says which
 * jobs, those that are in the state `usual` (0: any) unless it is said. Returns EX_OK, and
 * several_done() ends it, with ids == NULL if help was wanted and has been written; or another
 * status after one line on standard error. */
int several_parse(struct several *s, enum baton_batch_state usual, struct out *out, int argc,
                  char **argv);

void several_done(struct several *s);

/* Writes what became of a job, as a line or as an object. */
void several_tell(const struct several *s, struct out *out, size_t index, const char *what);

#endif
