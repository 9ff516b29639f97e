/* Looking at a store in a PostgreSQL database, and caring for it. */
#ifndef POSTGRES_LOOK_H
#define POSTGRES_LOOK_H

#include "store/store.h"

void postgres_close(struct baton_store *store);
enum baton_err pg_lease_read(struct baton_store *store, const struct baton_str *subjects,
                             size_t count, struct lease_row *rows);
enum baton_err pg_lease_list(struct baton_store *store, struct baton_str prefix,
                             struct baton_str after, struct baton_lease_entry *entries, size_t max,
                             size_t *ret_count);
enum baton_err pg_queue_list(struct baton_store *store, struct baton_str after,
                             struct baton_queue_info *infos, size_t max, size_t *ret_count);
enum baton_err pg_queue_get(struct baton_store *store, struct baton_str name,
                            struct baton_queue_info *ret_info);
enum baton_err pg_get(struct baton_store *store, const struct baton_batch_id *id,
                      struct baton_work_page **ret_page);
enum baton_err pg_list(struct baton_store *store, const struct baton_work_filter *filter,
                       struct baton_work_page **ret_page);
enum baton_err pg_next_due(struct baton_store *store, struct baton_str queue,
                           struct baton_store_time after, struct baton_store_time *ret);
enum baton_err pg_schedule_list(struct baton_store *store, struct baton_str after,
                                struct baton_str name, size_t max, struct schedules_parcel *page);
enum baton_err pg_runner_mark(struct baton_store *store, const struct runner_mark *mark);
enum baton_err pg_runner_cancels(struct baton_store *store, uint64_t number,
                                 struct baton_claim_id *ids, size_t max, size_t *ret_count);
enum baton_err pg_runner_report(struct baton_store *store, uint64_t number,
                                struct runner_report *ret);
enum baton_err pg_runner_next(struct baton_store *store, uint64_t after,
                              struct runner_row *ret_row);
enum baton_err pg_shard_list(struct baton_store *store, struct baton_str queue, uint32_t first,
                             struct baton_shard_answer *answers, size_t count);
enum baton_err pg_beat(struct baton_store *store, uint64_t number);
enum baton_err pg_beat_stop(struct baton_store *store, uint64_t number, uint64_t seen);
enum baton_err pg_backup(struct baton_store *store, const char *path,
                         const struct baton_store_progress *progress);
enum baton_err pg_check(struct baton_store *store, void (*report)(void *arg, const char *sentence),
                        void *arg, uint64_t *ret_faults);
enum baton_err pg_tidy(struct baton_store *store, size_t max, size_t *ret_count);

/* Leaves word that somebody sleeps, for those who commit. */
struct pg_store;
enum baton_err pg_mark(struct pg_store *s);
enum baton_err pg_version(struct baton_store *store, uint64_t *ret_version);

#endif
