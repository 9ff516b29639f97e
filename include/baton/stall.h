/* What a batch that is ready waits for: who would have to claim it, and why that one does not.
 *
 * The store knows what is in the way of a batch (enum baton_why). That nothing is, and it does not
 * run all the same, is explained by who hands out the work of its queue. */
#ifndef BATON_STALL_H
#define BATON_STALL_H

#include <stdbool.h>
#include <stdint.h>

#include <baton/api.h>
#include <baton/err.h>
#include <baton/shard.h>
#include <baton/store.h>
#include <baton/time.h>
#include <baton/work.h>

BATON_BEGIN

enum baton_stall {
	BATON_STALL_PULLER = 1, /* somebody who claims it: its queue is in pull mode           */
	BATON_STALL_HOLDER,     /* the holder of its lane's lease: its queue is in lane mode   */
	BATON_STALL_NO_RUNNER,  /* no runner serves its queue                                   */
	BATON_STALL_DETACHED,   /* `runner` has its shard, or would, but is detached            */
	BATON_STALL_TRANSIT,    /* nobody has its shard now, or `runner` is giving it up        */
	BATON_STALL_DEAD,       /* `runner`, which has its shard, is dead, and not taken over yet */
	BATON_STALL_SLOTS,      /* `runner` has as many handlers as it may, as it told last     */
	BATON_STALL_TURN,       /* `runner` has its shard, and nothing is known to keep it      */
	BATON_STALL_PAUSED      /* its queue is paused                                          */
};

struct baton_stalled {
	enum baton_stall stall;
	uint32_t shard; /* of its queue */
	bool owned;     /* somebody has it: `runner` */
	bool known;     /* `runner` is somebody */
	struct baton_runner_info runner;
	uint64_t running, slots;      /* SLOTS: of the runner */
	struct baton_store_time told; /* SLOTS: when it told that */
};

/* What the batch waits for, if it is ready, or due by now: `info` is what baton_work_get() has
 * found, or a list.
 *
 * Some looks at the store, one after the other: what changes meanwhile may be seen in part.
 * BATON_NOT_FOUND: its queue is gone. BATON_NO_MEMORY, BATON_STORAGE. Any thread. */
BATON_API enum baton_err baton_stall_look(struct baton_store *store,
                                          const struct baton_work_info *info,
                                          struct baton_stalled *ret);

BATON_END

#endif
