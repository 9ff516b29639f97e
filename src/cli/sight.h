/* How a store stands at one moment: its queues, its runners with their shards, keys that
 * hold others up, and what failed. */
#ifndef CLI_SIGHT_H
#define CLI_SIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton.h>

#include "hitches.h"
#include "runners.h"

#define SIGHT_FAILURES 50 /* of the latest that are shown */
#define SIGHT_ERROR 200

/* A queue, with how it has changed since the look before. */
struct sight_queue {
	struct baton_queue_info info;
	double done, failed; /* in a second; below 0: not known yet */
	uint64_t *owners;    /* the runner of each shard, 0: none; NULL: it has none for runners */
};

/* A job that is dead. */
struct sight_failure {
	struct baton_batch_id id;
	char queue[BATON_NAME_MAX + 1], lane[BATON_NAME_MAX + 1];
	char error[SIGHT_ERROR + 1];
	size_t error_len;
	uint32_t attempt;
	struct baton_store_time at; /* when it died */
};

/* Begins zeroed. */
struct sight {
	struct baton_mono taken;
	struct baton_store_time now; /* on the store's clock */
	struct sight_queue *queues;  /* by name */
	size_t queue_count, queue_cap;
	struct runners runners;
	struct sight_failure failures[SIGHT_FAILURES]; /* the latest first */
	size_t failure_count;
	bool more; /* some were not looked at */
	struct hitches hitches;
};

/* Looks. `before`: the look before, for what happens in a second; NULL: there was none.
 * BATON_NO_MEMORY, and errors of the store; sight_done() is fine all the same. */
enum baton_err sight_take(struct sight *s, struct baton_store *store, const struct sight *before);
void sight_done(struct sight *s);

#endif
