/* The policy of a queue. */
#ifndef QUEUE_POLICY_H
#define QUEUE_POLICY_H

#include <baton/policy.h>

/* What becomes of `policy` when these fields of `changes` are set, others staying as they are.
 * BATON_INVALID: something that is out of its limits, or a field that there is not; `policy` is as
 * it was. */
enum baton_err policy_change(struct baton_queue_policy *policy,
                             const struct baton_queue_policy *changes, uint32_t fields);

/* Whether each field is within its limits, which is so in every store. Whether they go with one
 * another is not asked: versions may differ in that. */
enum baton_err policy_limits(const struct baton_queue_policy *policy);

/* How long it can be seen that a job was skipped: as long as results are kept, or an hour. */
struct baton_duration policy_skipped_keep(const struct baton_queue_policy *policy);

/* What of it cannot be where work has both a lane and a key, as part of a sentence; NULL: none. */
const char *policy_against_guests(const struct baton_queue_policy *policy);

/* Whether its keys count for each host, or each process, and not in the cluster. */
bool policy_has_sites(const struct baton_queue_policy *policy);

/* The class of its keys, which other queues may have in common with it. */
bool policy_has_class(const struct baton_queue_policy *policy);
void policy_set_class(struct baton_queue_policy *policy, struct baton_str name);
bool policy_same_class(const struct baton_queue_policy *a, const struct baton_queue_policy *b);

/* What of it cannot be where keys are those of a class, as part of a sentence; NULL: none. */
const char *policy_against_class(const struct baton_queue_policy *policy);

/* Gives a queue of a class what all of its queues have in common. */
void policy_share(struct baton_queue_policy *to, const struct baton_queue_policy *from);

bool policy_equal(const struct baton_queue_policy *a, const struct baton_queue_policy *b);

#endif
