/* A batch: one or more payloads that are stored, claimed, completed and retried together. */
#ifndef BATON_BATCH_H
#define BATON_BATCH_H

#include <stddef.h>
#include <stdint.h>

#include <baton/api.h>
#include <baton/err.h>
#include <baton/policy.h>
#include <baton/str.h>
#include <baton/time.h>

BATON_BEGIN

#define BATON_PUT_MAX 10000         /* batches in one put                             */
#define BATON_PAYLOADS_MAX 10000    /* payloads in one batch                          */
#define BATON_JOIN_MAX 10000        /* batches in one claim                           */
#define BATON_ERROR_MAX 4096        /* bytes of an error that are kept                */
#define BATON_RESULT_MAX (1u << 20) /* bytes of a result                           */
#define BATON_PRIORITY_MAX 9
#define BATON_KEYS_MAX 8 /* keys of one batch                              */

enum baton_batch_class {
	BATON_WORK = 1,
	BATON_COMMAND /* claimed alone, and never overtaken by work behind it */
};

enum baton_batch_delivery {
	BATON_EARLIEST = 1, /* also to who asks in the middle of a run */
	BATON_AFTER_COMMIT  /* only to an idle lane                    */
};

enum baton_batch_slot {
	BATON_EXCLUSIVE = 1, /* claimed alone                                                 */
	BATON_JOIN           /* claimed with those of the same delivery and group behind it   */
};

enum baton_batch_state {
	BATON_BATCH_READY = 1,
	BATON_BATCH_DELAYED, /* until its time                            */
	BATON_BATCH_RETRY,   /* waits for its next attempt                */
	BATON_BATCH_CLAIMED,
	BATON_BATCH_DEAD,   /* failed for good                              */
	BATON_BATCH_DONE,   /* completed, and its result is kept            */
	BATON_BATCH_GONE,   /* completed or cancelled; only its source key is known still */
	BATON_BATCH_SKIPPED /* gave way to another of its key, and is kept for a while  */
};

/* The name of a batch: short text without blanks, terminated. */
struct baton_batch_id {
	char text[24];
};

/* What is put. Zeros mean what is said; everything is borrowed for the time of the call. */
struct baton_batch {
	/* 1 to BATON_NAME_MAX bytes of UTF-8 without control characters and '/'. */
	struct baton_str queue;
	struct baton_str lane;              /* as that, '/' allowed; empty: none           */
	struct baton_str key;               /* as a lane: at most the queue's key_limit of
	                                       its work run at once, in whichever lanes;
	                                       both are not for every policy of a queue    */
	const struct baton_str *keys;       /* or several, of which it holds all or none while
	                                       it runs, as a key beside a lane; one that is
	                                       named twice counts once                     */
	size_t key_count;                   /* to BATON_KEYS_MAX; 0: only `key`, if that   */
	enum baton_batch_class cls;         /* 0: work                                     */
	enum baton_batch_delivery delivery; /* 0: earliest                                 */
	enum baton_batch_slot slot;         /* 0: exclusive                                */
	uint32_t priority;                  /* between the lanes of a queue, to
	                                       BATON_PRIORITY_MAX; higher first            */
	struct baton_str group;             /* of a join; empty: the default one           */
	struct baton_duration delay;        /* invisible for so long; at most a year       */
	struct baton_store_time at;         /* or until then; 0: not said                  */
	struct baton_str source;            /* makes the put safe to repeat; empty: none   */
	struct baton_retry retry;           /* zeros: the queue's                          */
	const struct baton_str *payloads;   /* any bytes, also empty ones                  */
	size_t count;                       /* 1 to BATON_PAYLOADS_MAX                     */
};

/* Where in a run somebody asks for work. */
enum baton_boundary {
	BATON_IDLE = 1,  /* nothing of the lane is running        */
	BATON_CHECKPOINT /* its owner is in the middle of a run   */
};

BATON_END

#endif
