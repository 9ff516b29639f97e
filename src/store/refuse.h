/* What a store says when it refuses something: the same words in every backend. */
#ifndef STORE_REFUSE_H
#define STORE_REFUSE_H

#include <stdint.h>

#include <baton/batch.h>
#include <baton/policy.h>

/* Each leaves a sentence and returns the error in its name's comment. */

/* BATON_FULL: `waiting` are there, and `max` are allowed. */
enum baton_err refuse_full(struct baton_str queue, uint64_t waiting, uint64_t max);

/* BATON_FULL: so many of the key wait as are allowed. */
enum baton_err refuse_key_full(struct baton_str queue, struct baton_str key, uint32_t max);

/* BATON_CONFLICT: the source key is that of batch `id`. */
enum baton_err refuse_conflict(const struct baton_batch *batch, uint64_t id);

/* BATON_NOT_FOUND. */
enum baton_err refuse_queue(struct baton_str name);
enum baton_err refuse_batch(const struct baton_batch_id *id);
enum baton_err refuse_schedule(struct baton_str name);

/* BATON_BUSY: the queue's work is handed out in another way, or by somebody else. */
enum baton_err refuse_mode(struct baton_str queue, enum baton_queue_mode is,
                           enum baton_queue_mode asked);
enum baton_err refuse_puller(struct baton_str queue, const char *holder);

/* BATON_FULL: the fences of the subject, or of the queue's claims, have reached their end. */
enum baton_err refuse_fence(struct baton_str name);

/* Whether the policy of a queue that has `running` claimed may change so. BATON_INVALID: another
 * number of shards. BATON_BUSY: another mode while something is claimed, or another scope of keys
 * while there is work, `work` of it. */
struct queue_load {
	uint64_t running, work;
};
enum baton_err refuse_change(struct baton_str queue, const struct baton_queue_policy *old,
                             const struct baton_queue_policy *new, struct queue_load load);

/* BATON_INVALID: keys of the queue count where its runners are, so nobody else claims from it. */
enum baton_err refuse_scope(struct baton_str queue, const struct baton_queue_policy *policy);

/* Work with both a lane and a key, or several, cannot be in a queue where that is so; and the other
 * way round, for a queue that has work, and has had some of that. */
enum baton_err refuse_guest(struct baton_str queue, const struct baton_batch *b, const char *so);
enum baton_err refuse_for_guests(struct baton_str queue, const char *so);

/* The class of its keys changes, while `work` batches are there that are not dead. BATON_BUSY. */
enum baton_err refuse_class(struct baton_str queue, const struct baton_queue_policy *old,
                            const struct baton_queue_policy *new, uint64_t work);

/* Lanes that are handed out by the holders of their leases have no such class. BATON_INVALID. */
enum baton_err refuse_class_mode(struct baton_str queue, const struct baton_queue_policy *policy);

/* One queue more than a class may have. */
enum baton_err refuse_class_full(const struct baton_queue_policy *policy);

#endif
