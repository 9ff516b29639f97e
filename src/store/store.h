/* The contract that every backend keeps.
 *
 * The public functions check what they are given, and hand it to the backend's operation of the
 * same name. So a backend sees names, counts, spans and kinds that are within their limits; what
 * zeros stand for it gets from store_asker(), store_ttl() and batch_filled(). It loads what is
 * there, has the functions of `queue` decide, and writes what they decided, in one transaction. The
 * headers say what each operation does and answers; here is only what they do not say.
 *
 * On any result but BATON_OK nothing has been written, and the detail says why; but if the disk
 * fails in the middle of a sync nobody can know, the call answers BATON_STORAGE, and all of its
 * work may be found later. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <pthread.h>
#include <stdatomic.h>

#include <baton/lease.h>
#include <baton/queue.h>
#include <baton/schedule.h>
#include <baton/shard.h>
#include <baton/store.h>
#include <baton/work.h>

#include "queue/lease.h"
#include "store/beats.h"

/* How often whoever waits looks by himself: at first, and after a while. */
#define STORE_POLL_MIN_MS 10
#define STORE_POLL_MAX_MS 1000

struct schedules_parcel;

/* What is put of a schedule in one transaction; nothing, if it is only moved. */
struct schedule_step {
	struct baton_str name, queue;
	struct baton_store_time from, last, next;
	const struct baton_batch *batches;
	size_t count;
};

/* A registered runner. */
struct runner_row {
	uint64_t number; /* of the registration                                    */
	uint32_t slot;   /* where it beats                                         */
	char name[BATON_NAME_MAX + 1], endpoint[BATON_NAME_MAX + 1], labels[BATON_NAME_MAX + 1];
	char host[BATON_NAME_MAX + 1];
	char queues[BATON_RUNNER_QUEUES_MAX + 1]; /* with '/' between any two */
	char life[BATON_RUNNER_LIFE_MAX + 1];
	int32_t guardian;
	struct baton_owner owner;
	uint32_t weight;
	struct baton_duration ttl;
	struct baton_store_time since;
	enum baton_runner_wish wish;
	char state[BATON_NAME_MAX + 1];
	uint64_t beat; /* of a store in which runners beat; else 0 */
};

/* Why a runner is removed, and so what becomes of what it has claimed. */
enum runner_end {
	RUNNER_LEFT = 1, /* goes back as if it had not been          */
	RUNNER_TAKEN     /* goes back with one attempt more          */
};

/* What is written down about a runner that is registered. */
struct runner_mark {
	uint64_t number;             /* 0: that of the name */
	struct baton_str name;       /* empty: that of the number */
	enum baton_runner_wish wish; /* 0: stays as it is */
	const char *state;           /* NULL: stays as it is */
	struct baton_str report;     /* NULL: stays as it is */
};

/* What a runner has reported last. */
struct runner_report {
	char *text; /* room for BATON_RUNNER_REPORT_MAX bytes */
	size_t len;
	struct baton_store_time at;
};

/* Shards that a runner takes or gives back. */
struct shard_change {
	uint64_t runner;
	const struct baton_shard *shards;
	size_t count;
	bool take;
	struct baton_shard_answer *answers;
};

struct store_ops {
	void (*close)(struct baton_store *store);

	enum baton_err (*lease_claim)(struct baton_store *store, const struct baton_lease_ask *asks,
	                              size_t count, struct baton_lease_answer *answers);
	enum baton_err (*lease_renew)(struct baton_store *store,
	                              const struct baton_lease_proof *proofs, size_t count,
	                              struct baton_duration ttl, bool shorten,
	                              enum baton_err *answers);
	enum baton_err (*lease_release)(struct baton_store *store,
	                                const struct baton_lease_proof *proofs, size_t count,
	                                enum baton_err *answers);
	enum baton_err (*lease_force)(struct baton_store *store, const struct baton_str *subjects,
	                              size_t count, struct baton_lease_answer *answers);

	/* What the store knows about each subject, live or not, at one moment: rows[0..count). One
	 * that is not held may be one that it does not know. */
	enum baton_err (*lease_read)(struct baton_store *store, const struct baton_str *subjects,
	                             size_t count, struct lease_row *rows);
	enum baton_err (*lease_list)(struct baton_store *store, struct baton_str prefix,
	                             struct baton_str after, struct baton_lease_entry *entries,
	                             size_t max, size_t *ret_count);

	/* Changes these fields, which policy_change() checks. `existing`: BATON_NOT_FOUND for a
	 * queue that is not there; else it is made. */
	enum baton_err (*queue_set)(struct baton_store *store, struct baton_str name,
	                            const struct baton_queue_policy *policy, uint32_t fields,
	                            bool existing);
	enum baton_err (*queue_list)(struct baton_store *store, struct baton_str after,
	                             struct baton_queue_info *infos, size_t max, size_t *ret_count);
	enum baton_err (*queue_get)(struct baton_store *store, struct baton_str name,
	                            struct baton_queue_info *ret_info);

	enum baton_err (*put)(struct baton_store *store, const struct baton_batch *batches,
	                      size_t count, struct baton_put *puts);
	enum baton_err (*claim)(struct baton_store *store, const struct baton_work_ask *ask,
	                        struct baton_work_claims **ret_claims);
	enum baton_err (*lane_claim)(struct baton_store *store, const struct baton_lane_ask *ask,
	                             struct baton_work_claims **ret_claims);
	enum baton_err (*renew)(struct baton_store *store, const struct baton_work_proof *proofs,
	                        size_t count, struct baton_duration ttl,
	                        struct baton_work_renewal *answers);
	enum baton_err (*end)(struct baton_store *store, const struct baton_work_end *ends,
	                      size_t count, struct baton_work_ended *answers);
	/* Both, in one commit. What could not be done for one of them fails both, or the claim. */
	enum baton_err (*next)(struct baton_store *store, const struct baton_work_end *ends,
	                       size_t count, struct baton_work_ended *answers,
	                       const struct baton_work_ask *ask,
	                       struct baton_work_claims **ret_claims);
	enum baton_err (*cancel)(struct baton_store *store, const struct baton_batch_id *ids,
	                         size_t count, enum baton_cancelled *answers);
	enum baton_err (*revive)(struct baton_store *store, const struct baton_batch_id *ids,
	                         size_t count, enum baton_err *answers);
	enum baton_err (*get)(struct baton_store *store, const struct baton_batch_id *id,
	                      struct baton_work_page **ret_page);
	enum baton_err (*list)(struct baton_store *store, const struct baton_work_filter *filter,
	                       struct baton_work_page **ret_page);
	/* The first time after that moment at which something is due. */
	enum baton_err (*next_due)(struct baton_store *store, struct baton_str queue,
	                           struct baton_store_time after, struct baton_store_time *ret);

	/* Keeps the record, with its last and next. One that is there with the same expression and
	 * zone keeps its own last and next. */
	enum baton_err (*schedule_set)(struct baton_store *store,
	                               const struct baton_schedule *schedule);
	enum baton_err (*schedule_remove)(struct baton_store *store, struct baton_str name);

	/* Those after `after`, or, if it is not empty, that of exactly `name`, into the page. */
	enum baton_err (*schedule_list)(struct baton_store *store, struct baton_str after,
	                                struct baton_str name, size_t max,
	                                struct schedules_parcel *page);

	/* Puts the batches of some ticks, and moves the schedule on. BATON_NOT_HELD: its last tick
	 * is not step->from any more, or it is gone, and nothing was put. */
	enum baton_err (*schedule_step)(struct baton_store *store,
	                                const struct schedule_step *step);

	/* Registers row, whose number, slot and since are set. BATON_YIELD: one of that name is
	 * there, *ret_other. */
	enum baton_err (*runner_add)(struct baton_store *store, struct runner_row *row,
	                             struct runner_row *ret_other);

	/* Removes it, its shards being free. BATON_NOT_HELD: it is not there. */
	enum baton_err (*runner_remove)(struct baton_store *store, uint64_t number,
	                                enum runner_end end);

	/* Gives back what it has claimed, but these. BATON_NOT_HELD: it is not there. */
	enum baton_err (*runner_settle)(struct baton_store *store, uint64_t number,
	                                const struct baton_work_proof *known, size_t count);

	/* The one with the least number above `after`. BATON_NOT_FOUND: there is none. */
	enum baton_err (*runner_next)(struct baton_store *store, uint64_t after,
	                              struct runner_row *ret_row);

	/* Writes, synced, even if the mark changes nothing. BATON_NOT_HELD: it is not there. */
	enum baton_err (*runner_mark)(struct baton_store *store, const struct runner_mark *mark);

	/* The runner's claims of which something is to be cancelled. */
	enum baton_err (*runner_cancels)(struct baton_store *store, uint64_t number,
	                                 struct baton_claim_id *ids, size_t max, size_t *ret_count);

	/* BATON_NOT_FOUND: there is no such runner, or it has reported nothing. */
	enum baton_err (*runner_report)(struct baton_store *store, uint64_t number,
	                                struct runner_report *ret);
	enum baton_err (*shard_change)(struct baton_store *store,
	                               const struct shard_change *change);
	enum baton_err (*shard_list)(struct baton_store *store, struct baton_str queue,
	                             uint32_t first, struct baton_shard_answer *answers,
	                             size_t count);
	enum baton_err (*tick)(struct baton_store *store, uint64_t runner,
	                       const struct baton_tick *tick,
	                       struct baton_work_claims **ret_claims);

	/* Of one lane, for a claim that the runner has there. */
	enum baton_err (*more)(struct baton_store *store, uint64_t runner,
	                       const struct baton_more_ask *ask,
	                       struct baton_work_claims **ret_claims);

	/* How runners of many hosts beat. NULL, both: in memory that the processes of a host share.
	 * The second takes the runner's beat away, if it is as it was seen. BATON_NOT_HELD: the
	 * runner, or that beat, is not there any more. */
	enum baton_err (*beat)(struct baton_store *store, uint64_t number);
	enum baton_err (*beat_stop)(struct baton_store *store, uint64_t number, uint64_t seen);

	enum baton_err (*backup)(struct baton_store *store, const char *path,
	                         const struct baton_store_progress *progress);
	enum baton_err (*check)(struct baton_store *store,
	                        void (*report)(void *arg, const char *sentence), void *arg,
	                        uint64_t *ret_faults);
	enum baton_err (*tidy)(struct baton_store *store, size_t max, size_t *ret_count);

	/* A number that has changed when another process has committed something since it was read
	 * last. Cheap. */
	enum baton_err (*version)(struct baton_store *store, uint64_t *ret_version);

	/* Somebody is about to sleep. True: from now on whoever commits elsewhere wakes those who
	 * wait here; what was committed before has to be looked for once more. False: not, or not
	 * yet. NULL: never. That a wake-up is lost costs time, nothing else. */
	bool (*doze)(struct baton_store *store);
};

/* What all backends have; the first member of theirs. */
struct baton_store {
	const struct store_ops *ops;     /* [const] */
	const struct baton_alloc *alloc; /* [const] */
	const struct baton_clock *clock; /* [const] */
	struct baton_store_hook hook;    /* [const] */
	struct baton_owner owner;        /* [const] */
	struct baton_id name; /* [const] random; a backend that lasts gives the one it has kept */
	struct baton_duration patience;             /* [const] */
	enum baton_store_sync sync;                 /* [const] */
	enum baton_reach reach;                     /* [const] how far those are who share it */
	int32_t pid;                                /* [const] of the process that opened it */
	char where[BATON_STORE_PATH_MAX + 16];      /* [const] */
	char beats_path[BATON_STORE_PATH_MAX + 16]; /* [const] "": memory of this process */
	char lock_path[BATON_STORE_PATH_MAX + 16]; /* [const] whoever writes has this file's byte */
	int64_t lock_at;                           /* [const] locked; "": there is none such */
	pthread_mutex_t beats_mu;
	struct beats beats;    /* [beats_mu] until it is open, then [const] */
	_Atomic uint32_t bell; /* [atomic] counts what may have made something ready; a futex */
};

/* BATON_GONE in a forked child. */
enum baton_err store_enter(const struct baton_store *store);

/* What the zeros of an ask stand for. A ttl in whole milliseconds. */
const struct baton_owner *store_asker(const struct baton_store *store,
                                      const struct baton_owner *owner);
struct baton_duration store_ttl(struct baton_duration ttl);
enum baton_err store_check_ttl(struct baton_duration ttl);

/* A row as others see it, and as its holder does. */
struct baton_lease_holder store_holder(const struct lease_row *row, const struct baton_id *asker);
struct baton_lease store_lease(const struct lease_row *row);

/* Whether ends of claims are within their limits. */
enum baton_err store_check_ends(const struct baton_work_end *ends, size_t count);

/* That is the answer to all of them. */
void store_ends_fail(struct baton_work_ended *answers, size_t count, enum baton_err e);

/* Whether the end at `i` cannot be, because it is tied to one that was not: its answer is set. */
bool store_end_is_void(const struct baton_work_end *ends, size_t i,
                       struct baton_work_ended *answers);

/* How many claims a tick may make in all. */
size_t store_tick_claims(const struct baton_tick *tick);

/* Whether that claim is among them. */
bool store_is_known(const struct baton_work_proof *known, size_t count, const char *claim);

/* Ends what all backends have. */
void store_done(struct baton_store *store);

/* Puts in front of the detail which batch of a call it is about. Returns `e`. */
enum baton_err store_name_batch(enum baton_err e, size_t index);

/* The lane as news have it: 0 without one, else the same for all stores. */
uint64_t store_lane_hash(struct baton_str lane);

/* Wakes those who wait, after a commit that made something ready. */
void store_ring(struct baton_store *store, const struct baton_store_news *news, size_t count);

/* Each opens its backend; `store` has what all have but ops, and is copied. */
enum baton_err memory_open(const struct baton_store *store, struct baton_store **ret_store);
enum baton_err sqlite_open(const struct baton_store *store, const char *path, bool existing,
                           struct baton_store **ret_store);
enum baton_err postgres_open(const struct baton_store *store, struct baton_str info, bool existing,
                             struct baton_store **ret_store);

#endif
