/* Connections for lanes, each served by a command of its own for as long as the lane is this
 * runner's. */
#ifndef RUNNER_VISITS_H
#define RUNNER_VISITS_H

#include <stdbool.h>
#include <stdint.h>

#include <baton/backend.h>
#include <baton/log.h>
#include <baton/runner.h>

#include "runner/commands.h"
#include "runner/core.h"

struct visits_options {
	const struct baton_alloc *alloc;
	const struct baton_log *log;
	const struct baton_serve *serves; /* borrowed */
	size_t serve_count;
	uint32_t max;
	struct core *core;         /* decides */
	struct commands *commands; /* has the guardian */
};

struct visit {
	uint64_t id; /* 0: the place is free */
	uint32_t queue, shard;
	bool stopping; /* it was told */
};

/* All of it: [loop]. */
struct visits {
	struct visits_options o; /* [const] */
	struct visit *all;       /* NULL: there are none here */
	uint32_t count;
	uint32_t serial;
};

/* BATON_NO_MEMORY. visits_done() is fine all the same, also for a zeroed one. */
enum baton_err visits_init(struct visits *v, const struct visits_options *options);
void visits_done(struct visits *v);

/* Serves a connection, or closes it: its client asks again then who has the lane. */
void visits_take(struct visits *v, struct baton_connection *connection, struct baton_mono now);

/* Tells those to stop whose lane is no longer this runner's. */
void visits_act(struct visits *v);

/* Nothing serves that connection any more. */
void visits_ended(struct visits *v, uint64_t id);

#endif
