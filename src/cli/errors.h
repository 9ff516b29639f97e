/* Dead jobs, counted by their error. */
#ifndef CLI_ERRORS_H
#define CLI_ERRORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton.h>

#include "out.h"

#define ERRORS_MAX 10000 /* different ones; the rest is counted together */

/* One error of a queue. */
struct error_row {
	char *queue; /* and behind it the error */
	struct baton_str error;
	uint64_t count;
	struct baton_batch_id example; /* the last one that died of it */
	struct baton_store_time last;  /* when it did */
};

/* Begins zeroed. */
struct errors {
	struct error_row *rows;
	size_t count, cap;
	uint32_t *places; /* by hash: the place of a row plus one, 0: none */
	uint64_t others;  /* that there was no room for */
};

/* Counts a dead job. False: no memory. */
bool errors_add(struct errors *e, const struct baton_work_info *info);

/* The most frequent first: a table, or a line of JSON for each. */
void errors_print(struct errors *e, struct out *out);
void errors_json(struct errors *e, struct out *out);

void errors_done(struct errors *e);

#endif
