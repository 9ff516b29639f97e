/* The runners beside this one on the same host: which of them live, and a descriptor that tells at
 * once when one dies. */
#ifndef RUNNER_NEIGHBOURS_H
#define RUNNER_NEIGHBOURS_H

#include <stddef.h>
#include <stdint.h>

#include <baton/owner.h>
#include <baton/shard.h>
#include <baton/store.h>

#include "runner/core.h"

#define NEIGHBOURS_MAX 128

struct neighbour {
	uint64_t number;
	int32_t pid;
	int fd; /* of the process; -1: it is known to be dead */
};

struct neighbours {
	int epoll; /* readable when one has died; -1: not open */
	struct neighbour all[NEIGHBOURS_MAX];
	size_t count;
};

/* BATON_SYSTEM. neighbours_done() is fine all the same. */
enum baton_err neighbours_init(struct neighbours *n);
void neighbours_done(struct neighbours *n);

/* Watches those of `infos` that are on this host, and `self` is not, and no others. Those for whom
 * there is no room or descriptor are missed by looking around now and then. */
void neighbours_set(struct neighbours *n, const struct baton_owner *self,
                    const struct baton_runner_info *infos, size_t count);

/* How it stands with a runner of the store that this process has open. Any thread. */
enum core_fate neighbours_fate(const struct baton_store *store,
                               const struct baton_runner_info *info);

/* Whether one has died since the last time. */
bool neighbours_died(struct neighbours *n);

#endif
