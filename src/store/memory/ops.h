/* The operations of a store in memory; src/store/store.h has their contract. */
#ifndef STORE_MEMORY_OPS_H
#define STORE_MEMORY_OPS_H

#include "store/store.h"

enum baton_err memory_lease_claim(struct baton_store *store, const struct baton_lease_ask *asks,
                                  size_t count, struct baton_lease_answer *answers);
enum baton_err memory_lease_renew(struct baton_store *store, const struct baton_lease_proof *proofs,
                                  size_t count, struct baton_duration ttl, bool shorten,
                                  enum baton_err *answers);
enum baton_err memory_lease_release(struct baton_store *store,
                                    const struct baton_lease_proof *proofs, size_t count,
                                    enum baton_err *answers);
enum baton_err memory_lease_force(struct baton_store *store, const struct baton_str *subjects,
                                  size_t count, struct baton_lease_answer *answers);
enum baton_err memory_lease_read(struct baton_store *store, const struct baton_str *subjects,
                                 size_t count, struct lease_row *rows);
enum baton_err memory_lease_list(struct baton_store *store, struct baton_str prefix,
                                 struct baton_str after, struct baton_lease_entry *entries,
                                 size_t max, size_t *ret_count);
enum baton_err memory_queue_set(struct baton_store *store, struct baton_str name,
                                const struct baton_queue_policy *policy, uint32_t fields,
                                bool existing);
enum baton_err memory_queue_list(struct baton_store *store, struct baton_str after,
                                 struct baton_queue_info *infos, size_t max, size_t *ret_count);
enum baton_err memory_queue_get(struct baton_store *store, struct baton_str name,
                                struct baton_queue_info *ret_info);
enum baton_err memory_put(struct baton_store *store, const struct baton_batch *batches,
                          size_t count, struct baton_put *puts);
/* What time has done to all queues of classes. */
enum baton_err memory_classes_see(struct baton_store *store);

enum baton_err memory_claim(struct baton_store *store, const struct baton_work_ask *ask,
                            struct baton_work_claims **ret_claims);
enum baton_err memory_lane_claim(struct baton_store *store, const struct baton_lane_ask *ask,
                                 struct baton_work_claims **ret_claims);
enum baton_err memory_renew(struct baton_store *store, const struct baton_work_proof *proofs,
                            size_t count, struct baton_duration ttl,
                            struct baton_work_renewal *answers);
enum baton_err memory_end(struct baton_store *store, const struct baton_work_end *ends,
                          size_t count, struct baton_work_ended *answers);
enum baton_err memory_next(struct baton_store *store, const struct baton_work_end *ends,
                           size_t count, struct baton_work_ended *answers,
                           const struct baton_work_ask *ask, struct baton_work_claims **ret_claims);
enum baton_err memory_cancel(struct baton_store *store, const struct baton_batch_id *ids,
                             size_t count, enum baton_cancelled *answers);
enum baton_err memory_revive(struct baton_store *store, const struct baton_batch_id *ids,
                             size_t count, enum baton_err *answers);
enum baton_err memory_get(struct baton_store *store, const struct baton_batch_id *id,
                          struct baton_work_page **ret_page);
enum baton_err memory_list(struct baton_store *store, const struct baton_work_filter *filter,
                           struct baton_work_page **ret_page);
enum baton_err memory_next_due(struct baton_store *store, struct baton_str queue,
                               struct baton_store_time after, struct baton_store_time *ret);
enum baton_err memory_schedule_set(struct baton_store *store,
                                   const struct baton_schedule *schedule);
enum baton_err memory_schedule_remove(struct baton_store *store, struct baton_str name);
enum baton_err memory_schedule_list(struct baton_store *store, struct baton_str after,
                                    struct baton_str name, size_t max,
                                    struct schedules_parcel *page);
enum baton_err memory_schedule_step(struct baton_store *store, const struct schedule_step *step);
enum baton_err memory_runner_add(struct baton_store *store, struct runner_row *row,
                                 struct runner_row *ret_other);
enum baton_err memory_runner_remove(struct baton_store *store, uint64_t number,
                                    enum runner_end end);
enum baton_err memory_runner_settle(struct baton_store *store, uint64_t number,
                                    const struct baton_work_proof *known, size_t count);
enum baton_err memory_runner_next(struct baton_store *store, uint64_t after,
                                  struct runner_row *ret_row);
enum baton_err memory_runner_mark(struct baton_store *store, const struct runner_mark *mark);
enum baton_err memory_runner_cancels(struct baton_store *store, uint64_t number,
                                     struct baton_claim_id *ids, size_t max, size_t *ret_count);
enum baton_err memory_runner_report(struct baton_store *store, uint64_t number,
                                    struct runner_report *ret);
enum baton_err memory_shard_change(struct baton_store *store, const struct shard_change *change);
enum baton_err memory_shard_list(struct baton_store *store, struct baton_str queue, uint32_t first,
                                 struct baton_shard_answer *answers, size_t count);
enum baton_err memory_tick(struct baton_store *store, uint64_t runner,
                           const struct baton_tick *tick, struct baton_work_claims **ret_claims);
enum baton_err memory_more(struct baton_store *store, uint64_t runner,
                           const struct baton_more_ask *ask, struct baton_work_claims **ret_claims);

#endif
