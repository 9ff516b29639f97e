/* What a queue's work is subject to: a plain record, and the limits of its fields. */
#ifndef BATON_POLICY_H
#define BATON_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include <baton/api.h>
#include <baton/err.h>
#include <baton/key.h>
#include <baton/str.h>
#include <baton/time.h>

BATON_BEGIN

#define BATON_QUEUE_SHARDS 16
#define BATON_QUEUE_SHARDS_MAX 4096
#define BATON_QUEUE_PAYLOAD_MAX (1u << 20)   /* bytes of one payload, when nothing is said */
#define BATON_QUEUE_PAYLOAD_LIMIT (1u << 26) /* the most that a queue can allow            */
#define BATON_QUEUE_ATTEMPTS 20
#define BATON_QUEUE_ATTEMPTS_LANE 5
#define BATON_QUEUE_ATTEMPTS_MAX 1000000
#define BATON_QUEUE_WAITING_MAX UINT64_C(1000000000000)
#define BATON_QUEUE_KEY_LIMIT_MAX 1000000
#define BATON_QUEUE_KEY_WAITING_MAX 10000
#define BATON_QUEUE_KEY_STARTS_MAX 1000 /* of one key within a window             */
#define BATON_QUEUE_CLASS_MAX 16        /* queues of one class of keys            */
#define BATON_QUEUE_SPAN_MAX_MS \
	INT64_C(31536000000) /* a year: the longest dedupe, keep and
                                                        window of a rate                       */

/* Who hands out a queue's work. */
enum baton_queue_mode {
	BATON_QUEUE_OPEN = 1, /* nobody has claimed from it yet                             */
	BATON_QUEUE_PULL,     /* whoever asks, through baton_work_claim()                   */
	BATON_QUEUE_LANE,     /* each lane is claimed from by the holder of its lease       */
	BATON_QUEUE_RUNNER    /* runners that own its shards                                */
};

enum baton_backoff {
	BATON_BACKOFF_EXPONENTIAL = 1, /* base, twice that, ... to cap; a random part of it */
	BATON_BACKOFF_FIXED,           /* base                                              */
	BATON_BACKOFF_NONE             /* at once                                           */
};

/* When work that failed is tried again. */
struct baton_retry {
	uint32_t attempts; /* in all, 1 to BATON_QUEUE_ATTEMPTS_MAX */
	enum baton_backoff backoff;
	struct baton_duration base; /* 1 ms to 1 day */
	struct baton_duration cap;  /* base to 1 day */
};

/* Whether every field is within its limits; without a backoff, base and cap do not matter.
 *
 * BATON_INVALID: one is not; the detail names the field, its value and its limits. */
BATON_API enum baton_err baton_retry_check(const struct baton_retry *retry);

/* What becomes of a lane whose head waits for its next attempt. */
enum baton_on_retry {
	BATON_ON_RETRY_BLOCK = 1, /* those behind it wait too */
	BATON_ON_RETRY_PASS       /* they overtake it         */
};

/* What becomes of a lane whose head has failed for good. */
enum baton_on_dead {
	BATON_ON_DEAD_CONTINUE = 1,
	BATON_ON_DEAD_HOLD /* it stands still until that one is revived or cancelled */
};

/* What becomes of a key while work that has it waits for its next attempt. */
enum baton_hold_on_retry {
	BATON_HOLD_KEEP = 1, /* it is kept: others wait too                                */
	BATON_HOLD_GIVE_UP   /* it is given up, and the work queues again behind the others */
};

/* What becomes of work whose key others have, as many as may, or are about to: those that are ready
 * come first. A job is looked at once, when it becomes ready; what waited before a change of this
 * is left alone. What gives way ends as skipped, and says for whom. */
enum baton_on_conflict {
	BATON_CONFLICT_WAIT = 1, /* it waits, in order                                     */
	BATON_CONFLICT_SKIP,     /* it is skipped                                          */
	BATON_CONFLICT_LATEST,   /* it waits, in place of the last that waited for the key */
	BATON_CONFLICT_FIRST,    /* it waits, unless another one does: then it is skipped  */
	BATON_CONFLICT_REPLACE   /* the oldest that has the key, or will, is skipped; one that
	                            runs is asked to stop first, as one that is cancelled   */
};

/* Which of several keys gives the next job. */
enum baton_key_fair {
	BATON_KEY_FAIR_OFF = 1, /* the one whose first job came first                        */
	BATON_KEY_FAIR_ON       /* they take turns: one that has given a job stands behind the
	                           others, whatever waits in it; priorities come first still    */
};

/* How often a key may be claimed from: at most `starts` times within any span as long as `window`.
 * A claim is a start, however many batches it has and however it ends. */
struct baton_key_rate {
	uint64_t starts;              /* to BATON_QUEUE_KEY_STARTS_MAX; 0: as often as may be   */
	struct baton_duration window; /* 1 ms to BATON_QUEUE_SPAN_MAX_MS; no matter without one */
};

/* A plain record. A queue that has had work with a lane and a key, or with several keys, is not in
 * lane mode, and has no other on_conflict than wait, and keys that do not take turns and count in
 * the cluster, until it is changed when it has no work; where that is otherwise such work is
 * refused. */
struct baton_queue_policy {
	enum baton_queue_mode mode; /* changes only while nothing is claimed                    */
	uint32_t shards;            /* 1 to BATON_QUEUE_SHARDS_MAX; fixed when the queue is made */
	uint32_t payload_max;       /* bytes of one payload                                     */
	uint64_t waiting_max;       /* ready and delayed batches; 0: no bound                   */
	struct baton_retry retry;   /* for work without a lane                                  */
	struct baton_retry retry_lane; /* for work in a lane                                    */
	enum baton_on_retry on_retry;
	enum baton_on_dead on_dead;
	struct baton_duration dedupe; /* how long a source key is remembered                    */
	struct baton_duration keep;   /* how long results are kept; 0: not at all               */
	bool paused;                  /* nothing can be claimed                                 */
	uint32_t key_limit; /* claims of one key at a time, 1 to BATON_QUEUE_KEY_LIMIT_MAX; can
	                       be changed at any time                                            */
	enum baton_hold_on_retry hold_on_retry;
	enum baton_on_conflict on_conflict;
	uint32_t key_waiting_max; /* ready batches of one key, to BATON_QUEUE_KEY_WAITING_MAX; a put
	                             beyond it is refused; 0: no bound                       */
	enum baton_key_fair key_fair;   /* can be changed at any time                          */
	struct baton_key_rate key_rate; /* can be changed at any time: what was claimed before
	                                   counts as far as the former window reached          */
	struct baton_duration key_ttl;  /* how long a key is held without renewal, 1 ms to 1 day:
	                                   a claim of work with a key is given, and renewed, for
	                                   no longer, and a run of a runner that has said nothing
	                                   (<baton/progress.h>) for so long is ended; 0: as long
	                                   as the claim lives. For claims from then on         */
	enum baton_key_scope key_scope; /* where the claims of one key are counted, of which there
	                                   are at most key_limit: in each registration of a
	                                   runner, on each host from one boot of it to the next,
	                                   or everywhere. Changes only while the queue has no
	                                   work. Unless it is BATON_KEY_SCOPE_CLUSTER the mode is
	                                   runner, or open until a runner comes, hold_on_retry is
	                                   BATON_HOLD_GIVE_UP, and on_conflict is
	                                   BATON_CONFLICT_WAIT. key_rate is how often a key may be
	                                   claimed from in each of these places, and keys take
	                                   turns in each shard                                 */
	char key_class[BATON_NAME_MAX + 1]; /* "": none. Queues that name the same one have their
	                                       keys in common: see below                       */
};

/* Queues of one class count who holds a key together, wherever he is claimed: at most key_limit of
 * all of them hold it. key_limit, hold_on_retry, key_ttl, key_rate, key_waiting_max and on_conflict
 * are those of the class: a queue that joins gets them from those that are there, and a change of
 * one queue's is one of all. The starts of a key, who waits for it, and who has it or will, are
 * counted over all of them; who gives way may be in another queue. Each queue hands out its own
 * work in its own order, in which its keys may take turns (key_fair); between queues, whoever asks
 * first gets a key, so that one that is paused, or that nobody asks, is in nobody's way. At most
 * BATON_QUEUE_CLASS_MAX queues, and none in lane mode. A queue joins or leaves while it has no jobs
 * but dead ones; what its keys have started counts for those whom it leaves. */

/* Its fields, to be named together: BATON_POLICY_KEEP | BATON_POLICY_DEDUPE. */
enum baton_policy_field {
	BATON_POLICY_MODE = 1 << 0,
	BATON_POLICY_SHARDS = 1 << 1,
	BATON_POLICY_PAYLOAD_MAX = 1 << 2,
	BATON_POLICY_WAITING_MAX = 1 << 3,
	BATON_POLICY_ATTEMPTS = 1 << 4, /* this and the next three are those of `retry` */
	BATON_POLICY_BACKOFF = 1 << 5,
	BATON_POLICY_BASE = 1 << 6,
	BATON_POLICY_CAP = 1 << 7,
	BATON_POLICY_LANE_ATTEMPTS = 1 << 8, /* this and the next three those of `retry_lane` */
	BATON_POLICY_LANE_BACKOFF = 1 << 9,
	BATON_POLICY_LANE_BASE = 1 << 10,
	BATON_POLICY_LANE_CAP = 1 << 11,
	BATON_POLICY_ON_RETRY = 1 << 12,
	BATON_POLICY_ON_DEAD = 1 << 13,
	BATON_POLICY_DEDUPE = 1 << 14,
	BATON_POLICY_KEEP = 1 << 15,
	BATON_POLICY_KEY_LIMIT = 1 << 16,
	BATON_POLICY_HOLD_ON_RETRY = 1 << 17,
	BATON_POLICY_ON_CONFLICT = 1 << 18,
	BATON_POLICY_KEY_WAITING_MAX = 1 << 19,
	BATON_POLICY_KEY_FAIR = 1 << 20,
	BATON_POLICY_KEY_RATE = 1 << 21,
	BATON_POLICY_KEY_TTL = 1 << 22,
	BATON_POLICY_KEY_SCOPE = 1 << 23,
	BATON_POLICY_KEY_CLASS = 1 << 24,
	BATON_POLICY_PAUSED = 1 << 25,
	BATON_POLICY_ALL = (1 << 26) - 1
};

/* What a queue has that nobody has said anything about. */
BATON_API struct baton_queue_policy baton_queue_policy_default(void);

/* Whether every field is within its limits, and goes with the others.
 *
 * BATON_INVALID: one is not; the detail names the field, its value and its limits. */
BATON_API enum baton_err baton_queue_policy_check(const struct baton_queue_policy *policy);

BATON_END

#endif
