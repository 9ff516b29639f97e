/* The queues of a store: named streams of work, each with one policy. */
#ifndef BATON_QUEUE_H
#define BATON_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/api.h>
#include <baton/err.h>
#include <baton/policy.h>
#include <baton/store.h>
#include <baton/str.h>
#include <baton/time.h>

BATON_BEGIN

struct baton_queue_counts {
	uint64_t ready;   /* batches that wait, in lanes that are busy too */
	uint64_t delayed; /* for their time or their next attempt           */
	uint64_t running; /* claimed                                        */
	uint64_t dead;

	/* How many of those that could be claimed otherwise are kept by their key: somebody has it,
	 * or it has started as often as it may, or it is not their turn. Where keys count on each
	 * host, or in each process, the first of a key in each shard is not among them. */
	uint64_t waiting_on_key;

	uint64_t done;   /* completed since the queue was made */
	uint64_t failed; /* attempts that failed since then    */

	/* The age of the first head of each priority, the highest of them; 0 without one. */
	struct baton_duration oldest;
};

struct baton_queue_info {
	char name[BATON_NAME_MAX + 1]; /* terminated */
	struct baton_queue_policy policy;
	struct baton_queue_counts counts;
};

/* Makes the queue, or changes its policy, all of it.
 *
 * BATON_INVALID: a bad name (as all names, and no '/'), or policy, or another number of shards than
 * it was made with. BATON_BUSY: another mode while something is claimed. Any thread. */
BATON_API enum baton_err baton_queue_set(struct baton_store *store, struct baton_str name,
                                         const struct baton_queue_policy *policy);

/* Makes the queue, or changes these fields of its policy, an or of enum baton_policy_field; the
 * others stay as they are, or are those of baton_queue_policy_default(). So of several who change
 * different fields at the same moment each gets what he asked for.
 *
 * Errors as above, also for what does not fit to the fields that stay. Any thread. */
BATON_API enum baton_err baton_queue_change(struct baton_store *store, struct baton_str name,
                                            const struct baton_queue_policy *policy,
                                            uint32_t fields);

/* Changes `paused` alone. BATON_NOT_FOUND: there is no such queue. Any thread. */
BATON_API enum baton_err baton_queue_pause(struct baton_store *store, struct baton_str name,
                                           bool paused);

/* BATON_NOT_FOUND: there is no such queue. */
BATON_API enum baton_err baton_queue_get(struct baton_store *store, struct baton_str name,
                                         struct baton_queue_info *ret_info);

/* Those whose name comes after `after` ("" at first) in the order of their bytes, at most `max`. */
BATON_API enum baton_err baton_queue_list(struct baton_store *store, struct baton_str after,
                                          struct baton_queue_info *infos, size_t max,
                                          size_t *ret_count);

/* What baton_store_news has as the `queue` of news about that queue, whether it is there or not:
 * what a process listens for that waits for its work. Any thread. */
BATON_API uint64_t baton_queue_hash(const struct baton_store *store, struct baton_str name);

BATON_END

#endif
