/* How far a run is, as its handler says it, and the lines of a report that tell it. */
#ifndef RUNNER_PROGRESS_H
#define RUNNER_PROGRESS_H

#include <stdbool.h>

#include <baton/progress.h>

#include "base/buf.h"

/* The newest that a handler has said. Zeroed: nothing. */
struct progress {
	bool said;
	int32_t percent; /* or BATON_PROGRESS_UNSAID */
	char text[BATON_PROGRESS_MAX + 1];
};

/* Takes a text as it may be shown: cut, and without control characters. It is UTF-8. */
void progress_set(struct progress *p, int32_t percent, struct baton_str text);

/* Takes what a persistent worker has said: a number is a percentage, and so is "percent" of an
 * object, which may have a "text"; anything else is the text. */
void progress_said(struct progress *p, struct baton_str value, bool is_string);

/* Appends the line that tells it of a claim, if there is room for it. */
void progress_print(const struct progress *p, const char *claim, struct buf *buf);

/* Finds the claim in a report, as if an enemy had written that. False: nothing is said of it. */
bool progress_find(struct baton_str report, struct baton_str claim, struct baton_progress *ret);

#endif
