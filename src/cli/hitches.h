/* Keys that hold others up, as far as a look that is bounded finds them. */
#ifndef CLI_HITCHES_H
#define CLI_HITCHES_H

#include <stdbool.h>
#include <stddef.h>

#include <baton.h>

#define HITCHES_MAX 20 /* keys that are kept: those with the most waiting */
#define HITCH_QUEUES 4 /* that are looked at: those with the most that is ready */
#define HITCH_JOBS_PER_QUEUE BATON_LIST_MAX /* that are ready: what waits is at the front */

/* A key, and who holds it. */
struct hitch {
	char queue[BATON_NAME_MAX + 1], key[BATON_NAME_MAX + 1];
	size_t waiting;                 /* of those that were looked at */
	struct baton_batch_id first;    /* of those that wait */
	bool several;                   /* keys are what that has */
	struct baton_batch_id holder;   /* maybe one of several */
	char owner[BATON_NAME_MAX + 1]; /* who works on it; "": nobody, it waits for a retry */
	struct baton_store_time since;  /* it was claimed then, or is due then */
};

/* Begins zeroed. */
struct hitches {
	struct hitch all[HITCHES_MAX]; /* the most waiting first */
	size_t count;
	bool more; /* not all that is ready was looked at */
};

/* Looks at the queues, of which these are the counts: at what is ready, from the front on, no more
 * than HITCH_JOBS_PER_QUEUE of each. BATON_NO_MEMORY, and errors of the store. */
enum baton_err hitches_read(struct hitches *h, struct baton_store *store,
                            const struct baton_queue_info *const *queues, size_t count);

#endif
