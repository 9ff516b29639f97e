/* The runners of a store at one moment, and the shards that they have. */
#ifndef CLI_RUNNERS_H
#define CLI_RUNNERS_H

#include <stddef.h>
#include <stdint.h>

#include <baton.h>

#include "out.h"

struct figures;

/* How many shards of a queue a runner has. */
struct runner_share {
	size_t runner; /* its place among the runners */
	uint32_t count;
	char queue[BATON_NAME_MAX + 1];
};

/* Begins zeroed. */
struct runners {
	struct baton_runner_info *infos; /* by number */
	size_t count, cap;
	struct runner_share *shares; /* by queue, then by runner */
	size_t share_count, share_cap;
};

/* Reads all of them. BATON_NO_MEMORY, and errors of the store. */
enum baton_err runners_read(struct runners *r, struct baton_store *store);
void runners_done(struct runners *r);

/* A table for people, with nothing if there are none; or a line of JSON for each.
 * BATON_NO_MEMORY: nothing was written. */
enum baton_err runners_print(const struct runners *r, struct out *out);
void runners_json(const struct runners *r, const struct figures *figures, struct out *out);

#endif
