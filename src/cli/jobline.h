/* A line of JSON that says what to put: an object with a payload, and what else a job can have. */
#ifndef CLI_JOBLINE_H
#define CLI_JOBLINE_H

#include <stdbool.h>
#include <stdint.h>

#include <baton.h>

#define JOBLINE_ERROR 256

struct jobline {
	struct baton_batch batch; /* its payloads are &payload */
	struct baton_str payload;
	struct baton_str keys[BATON_KEYS_MAX]; /* if `has_keys`, the batch's are these */
	bool has_keys;
	char *text;    /* what the batch points to, unless it is the template's */
	uint64_t line; /* its number in the file */
};

/* Reads a line into *ret, which begins as what `template` says. What it points to is the template's
 * or its own. False: `error` has a sentence that says what is wrong with the line; *ret is
 * untouched. Freed by jobline_done(). */
bool jobline_parse(struct baton_str line, const struct baton_batch *template, struct jobline *ret,
                   char error[JOBLINE_ERROR]);

void jobline_done(struct jobline *job);

/* How often a job may be tried: `attempts` in all, and otherwise as queues do it that nobody has
 * said anything about. */
struct baton_retry jobline_retry(uint32_t attempts, bool lane);

#endif
