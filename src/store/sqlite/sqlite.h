/* A store in an SQLite file. */
#ifndef SQLITE_SQLITE_H
#define SQLITE_SQLITE_H

#include <pthread.h>

#include "base/arena.h"
#include "queue/fence.h"
#include "store/group.h"
#include "store/sqlite/books.h"
#include "store/sqlite/bulk.h"
#include "store/sqlite/db.h"
#include "store/sqlite/turn.h"
#include "store/store.h"

#define NEWS_MAX 64

/* Keys whose next guest gets its head when all is claimed: see guests.h. */
struct waiting_key {
	int64_t queue, key;
};

struct waiting_keys {
	bool on;
	struct waiting_key *list; /* the scratch's */
	size_t count, cap;
};

struct sqlite_store {
	struct baton_store base; /* first */
	char path[BATON_STORE_PATH_MAX + 1];
	struct group group;

	/* All of these belong to the leader of the group. */
	struct db db;
	struct books books;
	struct bulks bulks;
	struct turn turn;
	struct baton_store_time now; /* of the request that is being done */
	bool full; /* this commit survives a power failure, as one with new fences must */
	struct baton_store_news news[NEWS_MAX];
	size_t news_count;
	struct arena scratch; /* for the time of one request */
	struct waiting_keys waiting;
	uint64_t melted; /* how many jobs have left a row of several, or got a line, so far */
	bool freed;      /* a claim has ended in this transaction */
	uint64_t transactions;
	size_t remembered; /* completions, since a little was forgotten last */

	pthread_mutex_t read_mu;
	struct db read;       /* [read_mu] */
	uint64_t version;     /* [read_mu] */
	int64_t version_seen; /* [read_mu] */
	int64_t largest;      /* [read_mu] how long the file was when it was last found whole */
};

/* Does `run` in a transaction of the group. */
enum baton_err sqlite_write(struct sqlite_store *s, enum baton_err (*run)(void *store, void *args),
                            void *args);

/* The same, together with others of its kind. */
enum baton_err sqlite_write_kind(struct sqlite_store *s, enum request_kind kind,
                                 enum baton_err (*run)(void *store, void *args), void *args);

/* The same, before those that do not renew. */
enum baton_err sqlite_write_first(struct sqlite_store *s,
                                  enum baton_err (*run)(void *store, void *args), void *args);

/* The same as sqlite_write(), for what may hand out a fence. */
enum baton_err sqlite_write_fences(struct sqlite_store *s,
                                   enum baton_err (*run)(void *store, void *args), void *args);

/* Before others as well, and synced even in a relaxed store. */
enum baton_err sqlite_write_proof(struct sqlite_store *s,
                                  enum baton_err (*run)(void *store, void *args), void *args);

/* Around every use of `read`. BATON_STORAGE: the file is not where it was any more, and nothing has
 * begun. */
enum baton_err sqlite_read_begin(struct sqlite_store *s);
void sqlite_read_end(struct sqlite_store *s);

/* Something of the lane ("": none) became ready; told after the commit. */
void sqlite_tell(struct sqlite_store *s, const struct queue_row *q, struct baton_str lane,
                 uint32_t shard);

/* A part of a request that is undone alone when it fails. Between begin and end nothing else may
 * begin. */
enum baton_err sqlite_save_begin(struct sqlite_store *s, struct books_mark *mark);
enum baton_err sqlite_save_end(struct sqlite_store *s, const struct books_mark *mark,
                               enum baton_err e);

/* Forgets a little of what is no longer needed, as a part of another transaction. */
enum baton_err tidy_little(struct sqlite_store *s);

/* The operations, by file. */
enum baton_err sqlite_lease_claim(struct baton_store *store, const struct baton_lease_ask *asks,
                                  size_t count, struct baton_lease_answer *answers);
enum baton_err sqlite_lease_renew(struct baton_store *store, const struct baton_lease_proof *proofs,
                                  size_t count, struct baton_duration ttl, bool shorten,
                                  enum baton_err *answers);
enum baton_err sqlite_lease_release(struct baton_store *store,
                                    const struct baton_lease_proof *proofs, size_t count,
                                    enum baton_err *answers);
enum baton_err sqlite_lease_force(struct baton_store *store, const struct baton_str *subjects,
                                  size_t count, struct baton_lease_answer *answers);
enum baton_err sqlite_lease_read(struct baton_store *store, const struct baton_str *subjects,
                                 size_t count, struct lease_row *rows);
enum baton_err sqlite_lease_list(struct baton_store *store, struct baton_str prefix,
                                 struct baton_str after, struct baton_lease_entry *entries,
                                 size_t max, size_t *ret_count);
enum baton_err sqlite_queue_set(struct baton_store *store, struct baton_str name,
                                const struct baton_queue_policy *policy, uint32_t fields,
                                bool existing);
enum baton_err sqlite_queue_list(struct baton_store *store, struct baton_str after,
                                 struct baton_queue_info *infos, size_t max, size_t *ret_count);
enum baton_err sqlite_queue_get(struct baton_store *store, struct baton_str name,
                                struct baton_queue_info *ret_info);
enum baton_err sqlite_put(struct baton_store *store, const struct baton_batch *batches,
                          size_t count, struct baton_put *puts);
/* In the batch of the other request, which goes before it; NULL: alone. */
enum baton_err claim_after(struct sqlite_store *s, struct request *after,
                           const struct baton_work_ask *ask, struct baton_work_claims **ret_claims);
enum baton_err sqlite_claim(struct baton_store *store, const struct baton_work_ask *ask,
                            struct baton_work_claims **ret_claims);
enum baton_err sqlite_lane_claim(struct baton_store *store, const struct baton_lane_ask *ask,
                                 struct baton_work_claims **ret_claims);
enum baton_err sqlite_renew(struct baton_store *store, const struct baton_work_proof *proofs,
                            size_t count, struct baton_duration ttl,
                            struct baton_work_renewal *answers);
enum baton_err sqlite_next(struct baton_store *store, const struct baton_work_end *ends,
                           size_t count, struct baton_work_ended *answers,
                           const struct baton_work_ask *ask, struct baton_work_claims **ret_claims);
enum baton_err sqlite_end(struct baton_store *store, const struct baton_work_end *ends,
                          size_t count, struct baton_work_ended *answers);
enum baton_err sqlite_cancel(struct baton_store *store, const struct baton_batch_id *ids,
                             size_t count, enum baton_cancelled *answers);
enum baton_err sqlite_revive(struct baton_store *store, const struct baton_batch_id *ids,
                             size_t count, enum baton_err *answers);
enum baton_err sqlite_get(struct baton_store *store, const struct baton_batch_id *id,
                          struct baton_work_page **ret_page);
enum baton_err sqlite_list(struct baton_store *store, const struct baton_work_filter *filter,
                           struct baton_work_page **ret_page);
enum baton_err sqlite_next_due(struct baton_store *store, struct baton_str queue,
                               struct baton_store_time after, struct baton_store_time *ret);
enum baton_err sqlite_schedule_set(struct baton_store *store,
                                   const struct baton_schedule *schedule);
enum baton_err sqlite_schedule_remove(struct baton_store *store, struct baton_str name);
enum baton_err sqlite_schedule_list(struct baton_store *store, struct baton_str after,
                                    struct baton_str name, size_t max,
                                    struct schedules_parcel *page);
enum baton_err sqlite_schedule_step(struct baton_store *store, const struct schedule_step *step);
enum baton_err sqlite_runner_add(struct baton_store *store, struct runner_row *row,
                                 struct runner_row *ret_other);
enum baton_err sqlite_runner_remove(struct baton_store *store, uint64_t number,
                                    enum runner_end end);
enum baton_err sqlite_runner_settle(struct baton_store *store, uint64_t number,
                                    const struct baton_work_proof *known, size_t count);
enum baton_err sqlite_runner_next(struct baton_store *store, uint64_t after,
                                  struct runner_row *ret_row);
enum baton_err sqlite_runner_mark(struct baton_store *store, const struct runner_mark *mark);
enum baton_err sqlite_runner_cancels(struct baton_store *store, uint64_t number,
                                     struct baton_claim_id *ids, size_t max, size_t *ret_count);
enum baton_err sqlite_runner_report(struct baton_store *store, uint64_t number,
                                    struct runner_report *ret);
enum baton_err sqlite_shard_change(struct baton_store *store, const struct shard_change *change);
enum baton_err sqlite_shard_list(struct baton_store *store, struct baton_str queue, uint32_t first,
                                 struct baton_shard_answer *answers, size_t count);
enum baton_err sqlite_tick(struct baton_store *store, uint64_t runner,
                           const struct baton_tick *tick, struct baton_work_claims **ret_claims);
enum baton_err sqlite_more(struct baton_store *store, uint64_t runner,
                           const struct baton_more_ask *ask, struct baton_work_claims **ret_claims);
enum baton_err sqlite_backup(struct baton_store *store, const char *path,
                             const struct baton_store_progress *progress);
enum baton_err sqlite_check(struct baton_store *store,
                            void (*report)(void *arg, const char *sentence), void *arg,
                            uint64_t *ret_faults);
enum baton_err sqlite_tidy(struct baton_store *store, size_t max, size_t *ret_count);

#endif
