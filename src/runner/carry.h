/* Carries what the core asks for to the store, and the answers back. One thread at a time. */
#ifndef RUNNER_CARRY_H
#define RUNNER_CARRY_H

#include <baton/clock.h>
#include <baton/shard.h>
#include <baton/store.h>

#include "runner/core.h"

struct carrier_options {
	const struct baton_alloc *alloc;
	const struct baton_clock *clock;
	struct baton_store *store;
	struct baton_runner_ask ask; /* what it points to is borrowed */
	const struct core_serve *serves;
	size_t serve_count;
	enum core_fate (*fate)(void *arg, const struct baton_runner_info *info);
	void (*began)(void *arg, struct baton_runner *runner);  /* it is registered; or NULL */
	void (*retire)(void *arg, struct baton_runner *runner); /* frees it; NULL: at once */
	void *arg;
};

/* More than that are told after the next look around. */
#define CARRY_CANCELS 1000

struct carrier {
	struct carrier_options o;
	struct baton_runner *runner; /* the registration; NULL: none */
	struct baton_runner_info *infos;
	enum core_fate *fates;
	struct core_queue_seen seen[CORE_QUEUES_MAX];
	struct baton_shard_answer *owners[CORE_QUEUES_MAX];
	uint32_t owner_count[CORE_QUEUES_MAX];
	struct core_survey survey;
	struct baton_claim_id cancels[CARRY_CANCELS];
};

/* BATON_NO_MEMORY: carrier_done() is fine all the same. */
enum baton_err carrier_init(struct carrier *carrier, const struct carrier_options *options);

/* Frees the registration as well, which stays in the store. */
void carrier_done(struct carrier *carrier);

/* Does it. The answer points to what is the carrier's until the next call. */
void carry_out(struct carrier *carrier, const struct core_request *request,
               struct core_answer *ret);

#endif
