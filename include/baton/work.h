/* Queued work: put, claimed in the order of its lane, and ended.
 *
 * A batch is one or more payloads that are stored, claimed, completed and retried together. A lane
 * is an ordered mailbox of a queue; a batch without one is in a lane of its own. A claim is a run
 * of ready batches at the head of a lane. */
#ifndef BATON_WORK_H
#define BATON_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/api.h>
#include <baton/batch.h>
#include <baton/err.h>
#include <baton/id.h>
#include <baton/key.h>
#include <baton/lease.h>
#include <baton/store.h>
#include <baton/str.h>
#include <baton/time.h>

BATON_BEGIN

#define BATON_CLAIMS_MAX 1000 /* claims, or ends of claims, in one call */
#define BATON_LIST_MAX 1000   /* batches in a page                      */

/* What became of it. */
struct baton_put {
	struct baton_batch_id id;
	enum baton_batch_state state;
	bool existing; /* its source key was there, with the same content: nothing was put */
};

/* Puts all of them, or none. Queues that are not there are made.
 *
 * BATON_OK:       puts[0..count) say what became of each.
 * BATON_INVALID:  one is not as it should be; the detail says which, what, and the limit.
 * BATON_CONFLICT: a source key is there with other content; the detail says which one.
 * BATON_FULL:     the queue has as many waiting as its policy allows; the detail names it.
 * BATON_STORAGE, BATON_BUSY, BATON_NO_MEMORY: as for baton_store_open(). Any thread. */
BATON_API enum baton_err baton_work_put(struct baton_store *store,
                                        const struct baton_batch *batches, size_t count,
                                        struct baton_put *puts);

/* What names a claim, and proves that it was given: a plain record. */
struct baton_work_proof {
	char id[48]; /* text without blanks, terminated; stable for head and fence */
	struct baton_id token;
};

/* The name of a claim alone, as in baton_work_proof. */
struct baton_claim_id {
	char text[48];
};

/* A batch as its claimant gets it. What it points to belongs to its baton_work_claims. */
struct baton_work_batch {
	struct baton_batch_id id;
	uint64_t seq;
	enum baton_batch_class cls;
	enum baton_batch_delivery delivery;
	enum baton_batch_slot slot;
	struct baton_str group;
	uint32_t priority;
	uint32_t attempt; /* this one, counted from 1; while it is not claimed: the last, or 0 */
	struct baton_store_time put_at;
	const struct baton_str *payloads;
	size_t count;
};

struct baton_work_claim {
	struct baton_work_proof proof;
	baton_fence fence;
	struct baton_str queue;
	struct baton_str lane;        /* empty: none */
	struct baton_str key;         /* the first of its keys; empty: none */
	const struct baton_str *keys; /* all of them, in the order of their bytes */
	size_t key_count;
	uint32_t shard; /* of the queue, where a runner claimed it */
	struct baton_store_time claimed_at;
	struct baton_store_time expires_at; /* or BATON_STORE_TIME_NEVER */
	struct baton_duration hold; /* how long it holds its key without renewal; 0: no limit */
	const struct baton_work_batch *batches;
	size_t count;
};

/* What a call gave: one block, ended by baton_work_claims_free(). */
struct baton_work_claims {
	const struct baton_work_claim *claims;
	size_t count;
};

/* NULL is fine. */
BATON_API void baton_work_claims_free(struct baton_work_claims *claims);

struct baton_work_ask {
	struct baton_str queue;
	const struct baton_owner *owner; /* NULL: baton_store_owner()              */
	struct baton_duration ttl;       /* as for leases                          */
	uint32_t claims; /* at most so many, to BATON_CLAIMS_MAX                   */
	uint32_t max;    /* batches in each, to BATON_JOIN_MAX; 0: nothing is claimed */
};

/* Claims ready work of a queue in pull mode, from as many lanes as asked for: higher priorities
 * first, then what was put first. Work whose claim has expired is ready again, and counts one
 * attempt more, as does that of a lost owner everywhere.
 *
 * BATON_OK:        *ret_claims has what was given; NULL when there is nothing, and nothing changed.
 * BATON_NOT_FOUND: there is no such queue. BATON_BUSY: the queue's work is handed out in another
 *                  way, or by another process that holds the lease pull/QUEUE; the detail says how.
 * BATON_INVALID, BATON_STORAGE, BATON_NO_MEMORY. Any thread. */
BATON_API enum baton_err baton_work_claim(struct baton_store *store,
                                          const struct baton_work_ask *ask,
                                          struct baton_work_claims **ret_claims);

/* One lane of a queue in lane mode, and the lease that the caller holds on it. */
struct baton_lane_ask {
	struct baton_str queue;
	struct baton_str lane;
	const struct baton_lease *lease; /* of the subject that baton_lane_subject() names      */
	struct baton_duration ttl;
	enum baton_boundary at;
	uint32_t max;
	const struct baton_batch_id *ids; /* NULL, or exactly these, all or nothing             */
	size_t count;
	bool pass; /* `ids` may pass by earlier work that has nothing to do with them            */
};

/* The subject of a lane's lease: "lane/QUEUE/LANE". BATON_INVALID: a bad name. */
BATON_API enum baton_err baton_lane_subject(struct baton_str queue, struct baton_str lane,
                                            char text[BATON_LEASE_SUBJECT_MAX + 1]);

/* Claims work of one lane. At a checkpoint the claims that the same lease gave before go on.
 *
 * BATON_OK:       as above, one claim or none. BATON_NOT_HELD: the lease is lost.
 * BATON_YIELD:    the lane has a claim that is still live under an earlier lease, or, when idle
 *                 work is asked for, under this one; or `ids` cannot be had. Any thread. */
BATON_API enum baton_err baton_lane_claim(struct baton_store *store,
                                          const struct baton_lane_ask *ask,
                                          struct baton_work_claims **ret_claims);

/* The answer to one renewal. */
struct baton_work_renewal {
	enum baton_err err; /* BATON_OK, or BATON_NOT_HELD: expired and taken, ended or cancelled */
	struct baton_store_time expires_at;
	bool cancel; /* somebody has asked that some of it be cancelled */
};

/* Makes each claim last until `ttl` from now, also one that has expired and that nobody took.
 *
 * BATON_OK: answers[0..count) say what became of each. Any thread. */
BATON_API enum baton_err baton_work_renew(struct baton_store *store,
                                          const struct baton_work_proof *proofs, size_t count,
                                          struct baton_duration ttl,
                                          struct baton_work_renewal *answers);

enum baton_work_how {
	BATON_COMPLETE = 1, /* done: deleted, or kept with its result                            */
	BATON_FAIL,         /* counts an attempt; tried again later, or dead after the last     */
	BATON_REJECT,       /* counts an attempt; dead at once                                   */
	BATON_ABANDON,      /* back to its old place, as if it had not been claimed              */
	BATON_SNOOZE        /* as that, and not before `delay` has passed                        */
};

/* How a claim, or a part of it, ends. */
struct baton_work_end {
	struct baton_work_proof proof;
	enum baton_work_how how;
	const struct baton_batch_id
		*ids; /* NULL: all of its batches; else these, and the rest goes on */
	size_t count;
	struct baton_str result; /* COMPLETE: kept if the queue keeps results                */
	const struct baton_batch *emits; /* COMPLETE: follow-up work, put in the same
	                                    transaction; ready at once, or with `delay` or `at` */
	size_t emit_count;
	struct baton_str error; /* FAIL, REJECT: why; the first BATON_ERROR_MAX bytes are kept */
	struct baton_duration delay; /* SNOOZE; FAIL: instead of the policy's, if not 0          */
	bool tied; /* it ends only if the one before it in the list has; else its answer is the
	              same as that one's, and nothing has changed                        */
};

struct baton_work_ended {
	enum baton_err err; /* BATON_OK, or BATON_NOT_HELD: superseded, and nothing has changed;
	                       BATON_CONFLICT, BATON_FULL, BATON_INVALID: of its emits, and nothing
	                       has changed */
	enum baton_batch_state state; /* of its first batch now; BATON_BATCH_GONE: deleted       */
	struct baton_store_time due;  /* FAIL, SNOOZE: when it is ready again                     */
};

/* Ends claims, each for itself, in one transaction. A claim that is completed again within the
 * queue's dedupe time gets the same answer again.
 *
 * BATON_OK: answers[0..count) say what became of each. BATON_INVALID: nothing has changed.
 * Any thread. */
BATON_API enum baton_err baton_work_end(struct baton_store *store,
                                        const struct baton_work_end *ends, size_t count,
                                        struct baton_work_ended *answers);

/* What somebody does between two jobs, in one commit: ends claims as baton_work_end() does, and
 * then claims as baton_work_claim() does.
 *
 * BATON_OK: as both say. Otherwise nothing is claimed, but what was to end may have ended:
 * answers[0..count) say what became of each, and the same failure if it could not be done. Any
 * thread. */
BATON_API enum baton_err baton_work_next(struct baton_store *store,
                                         const struct baton_work_end *ends, size_t count,
                                         struct baton_work_ended *answers,
                                         const struct baton_work_ask *ask,
                                         struct baton_work_claims **ret_claims);

enum baton_cancelled {
	BATON_CANCEL_REMOVED = 1,
	BATON_CANCEL_TOLD,   /* it is claimed: its holder is told at the next renewal, or asks with
	                        baton_runner_cancels(), and it does not come back when that claim
	                        ends                                                             */
	BATON_CANCEL_MISSING /* there is none                                                    */
};

/* BATON_OK: answers[0..count) say what became of each. Any thread. */
BATON_API enum baton_err baton_work_cancel(struct baton_store *store,
                                           const struct baton_batch_id *ids, size_t count,
                                           enum baton_cancelled *answers);

/* Brings dead batches back, at the end of their lanes, with no attempts counted. What waits for its
 * next attempt becomes ready now.
 *
 * BATON_OK: answers[i] is BATON_OK, BATON_NOT_FOUND, or BATON_INVALID: not dead. Any thread. */
BATON_API enum baton_err baton_work_revive(struct baton_store *store,
                                           const struct baton_batch_id *ids, size_t count,
                                           enum baton_err *answers);

/* Why a batch is not running. */
enum baton_why {
	BATON_WHY_NOTHING = 1, /* it is: claimed                                       */
	BATON_WHY_READY,       /* nothing keeps it but a claimant                      */
	BATON_WHY_PAUSED,      /* its queue is                                         */
	BATON_WHY_DELAYED,     /* until `due`                                          */
	BATON_WHY_RETRY,       /* until `due`                                          */
	BATON_WHY_BEHIND,      /* `ahead` comes first in its lane, or of its key       */
	BATON_WHY_LANE_HELD,   /* `ahead`, which is dead, holds its lane               */
	BATON_WHY_KEY,         /* `ahead`, maybe with others, holds its key            */
	BATON_WHY_DEAD,
	BATON_WHY_DONE,
	BATON_WHY_SKIPPED, /* for `ahead`, which has its key, or had               */
	BATON_WHY_RATE     /* its key has started as often as it may, until `due`  */
};

/* All about one batch. What it points to belongs to its baton_work_page. */
struct baton_work_info {
	struct baton_work_batch batch; /* without payloads in a list */
	struct baton_str queue, lane;
	struct baton_str key;         /* the first of its keys; empty: none        */
	const struct baton_str *keys; /* all of them, in the order of their bytes  */
	size_t key_count;
	uint32_t shard; /* of its queue */
	enum baton_batch_state state;
	struct baton_store_time due;      /* delayed, retry, or BATON_WHY_RATE                 */
	struct baton_str error;           /* of the last attempt; in a list at most 200 bytes  */
	struct baton_str result;          /* done; not in a list                               */
	struct baton_store_time ended_at; /* dead, done                                        */
	struct baton_str claim;           /* claimed: its id                                   */
	baton_fence fence;                /* claimed                                           */
	struct baton_owner owner;         /* claimed                                           */
	struct baton_store_time claimed_at, expires_at; /* claimed                             */
	bool cancel;        /* claimed, and asked to stop                        */
	enum baton_why why; /* baton_work_get() only                             */
	struct baton_batch_id ahead;
	struct baton_key_rate rate; /* BATON_WHY_RATE: how often its key may start       */
	struct baton_str held;      /* BATON_WHY_KEY, BATON_WHY_RATE: which of its keys it is */
	enum baton_key_scope scope; /* BATON_WHY_KEY, BATON_WHY_RATE: where its key is counted */
};

/* What a call found: one block, ended by baton_work_page_free(). */
struct baton_work_page {
	const struct baton_work_info *infos;
	size_t count;
	uint64_t next; /* where to go on; 0: that was all */
};

/* NULL is fine. */
BATON_API void baton_work_page_free(struct baton_work_page *page);

/* One batch with its payloads. BATON_NOT_FOUND: there is none. Any thread. */
BATON_API enum baton_err baton_work_get(struct baton_store *store, const struct baton_batch_id *id,
                                        struct baton_work_page **ret_page);

struct baton_work_filter {
	struct baton_str queue;       /* empty: all                        */
	struct baton_str lane;        /* empty: all                        */
	enum baton_batch_state state; /* 0: all                            */
	uint64_t after;               /* 0: from the beginning; else `next` of the page before */
	size_t max;                   /* 1 to BATON_LIST_MAX               */
};

/* A page of batches in the order of their numbers. It looks at no more than 100,000, so a page may
 * be short, or empty, and still have a `next`. Any thread. */
BATON_API enum baton_err baton_work_list(struct baton_store *store,
                                         const struct baton_work_filter *filter,
                                         struct baton_work_page **ret_page);

/* When the next of what is delayed in the queue ("": in any) becomes ready, or a claim expires.
 * BATON_NOT_FOUND: nothing of that kind; *ret is untouched. Any thread. */
BATON_API enum baton_err baton_work_next_due(struct baton_store *store, struct baton_str queue,
                                             struct baton_store_time *ret);

BATON_END

#endif
