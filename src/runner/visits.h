/* Connections for lanes, each served for as long as the lane is this runner's: by a command of its
 * own, by a persistent worker, or by the embedder's functions. */
#ifndef RUNNER_VISITS_H
#define RUNNER_VISITS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <baton/backend.h>
#include <baton/log.h>
#include <baton/runner.h>

#include "runner/alarm.h"
#include "runner/commands.h"
#include "runner/core.h"
#include "runner/inbox.h"
#include "runner/streams.h"

struct visits_options {
	const struct baton_alloc *alloc;
	const struct baton_log *log;
	const struct baton_runner_connections *asked; /* borrowed; its `max` is not 0 */
	const struct baton_serve *serves;             /* borrowed */
	size_t serve_count;
	struct core *core;         /* decides */
	struct commands *commands; /* has the guardian, unless functions serve */
	struct streams *streams;   /* persistent workers serve; or NULL */
	struct alarm *alarm;       /* that is told of visits which functions serve */
	struct inbox *inbox;       /* is woken when a function has ended one */
};

struct baton_visit {
	struct visits *visits;               /* [const] */
	uint64_t id;                         /* [loop] 0: the place is free */
	uint32_t queue, shard;               /* [loop] */
	bool stopping;                       /* [loop] it was told */
	baton_fence fence;                   /* [const] while it lasts */
	struct baton_connection *connection; /* [const] while it lasts; NULL: a command has it */
	bool ended;                          /* [mu] a function has; the place is not free yet */
	struct baton_visit *next;            /* [mu] of those that have ended */
};

struct visits {
	struct visits_options o; /* [const] */
	struct baton_visit *all; /* [loop] NULL: there are none here */
	uint32_t count;          /* [loop] */
	uint32_t turn;           /* [loop] where a free place is looked for */
	uint32_t serial;         /* [loop] */
	pthread_mutex_t mu;
	struct baton_visit *left; /* [mu] those that have ended */
};

/* BATON_NO_MEMORY. visits_done() is fine all the same, also for a zeroed one. */
enum baton_err visits_init(struct visits *v, const struct visits_options *options);
void visits_done(struct visits *v);

/* Serves a connection, or closes it: its client asks again then who has the lane. */
void visits_take(struct visits *v, struct baton_connection *connection, struct baton_mono now);

/* Takes in that functions have ended some. */
void visits_hear(struct visits *v);

/* Tells those to stop whose lane is no longer this runner's. */
void visits_act(struct visits *v, struct baton_mono now);

/* Nothing serves that connection any more. */
void visits_ended(struct visits *v, uint64_t id);

#endif
