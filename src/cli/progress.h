/* How far long work is, on standard error: a bar on a terminal that can clear its lines, and no
 * wider than that is; a line now and then elsewhere. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *unit; /* what is counted, such as "lines" */
	bool terminal;
	uint64_t told; /* the last step that was told */
};

struct progress progress_begin(const char *unit);

/* `count` units have been done; they are `done` of `all` (0: not known), in whatever that is
 * measured. */
void progress_step(struct progress *p, uint64_t count, uint64_t done, uint64_t all);

/* Clears the bar: at the end, and before anything else is written. */
void progress_clear(const struct progress *p);

#endif
