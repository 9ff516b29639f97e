/* What a runner was asked to be: its options, checked, and with the defaults filled in. */
#ifndef RUNNER_SETTINGS_H
#define RUNNER_SETTINGS_H

#include <baton/err.h>
#include <baton/runner.h>

#include "runner/core.h"

/* Points into itself, so it cannot be copied or moved. */
struct settings {
	struct baton_runner_options o; /* what it points to is borrowed */
	struct core_serve serves[BATON_RUNNER_SERVES_MAX];
	struct baton_str queues[BATON_RUNNER_SERVES_MAX]; /* their names */
	uint32_t processes; /* of persistent workers: o.slots has the claims of all of them */
};

/* BATON_INVALID: the detail says which option is not as it should be, and its limit. */
enum baton_err settings_make(struct settings *s, const struct baton_runner_options *given);

#endif
