/* Fences: numbers that only ever grow for what they guard. All stay below 2^53. */
#ifndef QUEUE_FENCE_H
#define QUEUE_FENCE_H

#include <stdbool.h>
#include <stdint.h>

#include <baton/id.h>
#include <baton/policy.h>
#include <baton/str.h>
#include <baton/time.h>

#define FENCE_MAX ((UINT64_C(1) << 53) - 1)
#define FENCE_COUNTER_BITS 20

/* What a lease is a lease of decides how its fences are counted. */
enum fence_kind {
	FENCE_GRANTER = 1, /* of shards, lanes and pull queues: claims are counted under it, so it
	                      stays below 2^33                                                  */
	FENCE_PLAIN        /* of everything else                                                */
};

/* Subjects that begin with "lane/" or "pull/" are granters, and those that begin with a byte 1,
 * which no user can name: a store may keep its shards so. */
enum fence_kind fence_kind_of(struct baton_str subject);

/* The least fence that a store which was made, or came back from a copy, at `now` may hand out:
 * more than any that could have been handed out before. */
uint64_t fence_floor(enum fence_kind kind, struct baton_store_time now);

/* The fence that follows `last` (0: there was none) and is above `floor`. False: there is none. */
bool fence_next(enum fence_kind kind, uint64_t last, uint64_t floor, uint64_t *ret);

/* Where claims are counted: under the fence of whoever grants them. */
struct fence_base {
	uint64_t granter;
	uint64_t
		counter; /* of the last claim; 0: none so far. More than 2^20 run into what the next
	                     granters would have, which is why they are passed by */
};

/* The granter's last fence as fence_next() has to see it. */
uint64_t fence_granter_last(const struct fence_base *base);

/* How far the fences of a queue's claims have come. Each mode has granters of its own, which know
 * nothing of those of the others. */
struct fence_reach {
	uint64_t top;   /* the highest that a claim has had; 0: none so far       */
	uint64_t floor; /* what it was when the last mode ended: claims are above */
};

/* The queue's mode changes. Along each lane the fences of claims go on growing. */
void fence_reach_mode(struct fence_reach *reach, enum baton_queue_mode from,
                      enum baton_queue_mode to);

/* Claims of keys are not above those of all other shards any more: each goes on above what there
 * has been. */
void fence_reach_apart(struct fence_reach *reach);

/* `from` is not counted with `to` any more: what comes there is above what has been here. */
void fence_reach_leave(struct fence_reach *to, const struct fence_reach *from);

/* Counts one more claim: *ret is its fence, above those of all claims that were counted before,
 * above those that the queue's claims had in another mode, and above `last`, the highest that any
 * of its batches has had (0: none). False: there is none. */
bool fence_of_claim(struct fence_base *base, struct fence_reach *reach, uint64_t last,
                    uint64_t *ret);

/* `last` for a claim that holds a key of a queue that has had guests (line.h): such a key is
 * claimed under several granters, and fences grow along it too. */
uint64_t fence_of_key(const struct fence_reach *reach, uint64_t last);

#endif
