/* The shards of queues in runner mode, and the runners that own them.
 *
 * A runner registers, and beats. Whoever has seen its beat unchanged for its ttl, or knows that it
 * is dead, may take it over: its shards are free then, under higher fences, and what it had claimed
 * is ready again, with one attempt more. What it still sends is refused. */
#ifndef BATON_SHARD_H
#define BATON_SHARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/api.h>
#include <baton/err.h>
#include <baton/id.h>
#include <baton/owner.h>
#include <baton/store.h>
#include <baton/str.h>
#include <baton/time.h>
#include <baton/work.h>

BATON_BEGIN

#define BATON_RUNNERS_MAX 1024 /* at once in a store */
#define BATON_RUNNER_WEIGHT_MAX 1000
#define BATON_RUNNER_TTL_MIN_MS 1000
#define BATON_RUNNER_TTL_MAX_MS 3600000
#define BATON_RUNNER_QUEUES_MAX 4096 /* bytes of their names, with a '/' between any two */
#define BATON_RUNNER_LIFE_MAX 4000
#define BATON_RUNNER_REPORT_MAX (1 << 17) /* bytes */
#define BATON_SHARDS_MAX 4096             /* in one call */

/* A registration. */
struct baton_runner;

struct baton_runner_ask {
	struct baton_str name; /* stable, as other names                                       */
	uint32_t weight;       /* its share, to BATON_RUNNER_WEIGHT_MAX; 0: it takes no more    */
	struct baton_str endpoint; /* where connections for it go; may be empty                */
	struct baton_str labels;   /* as other names; may be empty                             */
	struct baton_duration ttl; /* 1 s to 1 h                                               */
	bool replace;              /* one of the same name is taken over, whatever it is at:
	                              baton_runner_stop() is for who waits for its handlers    */
	const struct baton_str *queues; /* those that it has handlers for: names of queues, to
	                                   BATON_RUNNER_QUEUES_MAX bytes                       */
	size_t queue_count;
	int32_t guardian;      /* the process that ends its handlers; 0: none                  */
	struct baton_str life; /* the path of the file that is locked as long as something of its
	                          handlers lives, to BATON_RUNNER_LIFE_MAX bytes; may be empty */
};

/* What an operator wants of a runner. The store only keeps it: the runner looks for it, and does
 * it. */
enum baton_runner_wish {
	BATON_WISH_WORK = 1, /* as every runner does that was just registered              */
	BATON_WISH_DRAIN,    /* finish what it has begun, take nothing new, have no shards */
	BATON_WISH_DETACH,   /* run nothing, until it is attached again                    */
	BATON_WISH_LEAVE     /* end: another one wants its name                            */
};

struct baton_runner_info {
	uint64_t number; /* of the registration: never given twice */
	char name[BATON_NAME_MAX + 1];
	char endpoint[BATON_NAME_MAX + 1];
	char labels[BATON_NAME_MAX + 1];
	char host[BATON_NAME_MAX + 1];            /* the name of its host                     */
	char queues[BATON_RUNNER_QUEUES_MAX + 1]; /* those that it serves, with '/' between   */
	char life[BATON_RUNNER_LIFE_MAX + 1];
	int32_t guardian;
	struct baton_owner owner;
	uint32_t weight;
	struct baton_duration ttl;
	struct baton_store_time since;
	uint64_t beat; /* changes as long as it lives */
	enum baton_runner_wish wish;
	char state[BATON_NAME_MAX + 1]; /* what it told last; "" at first */
};

/* Registers this process, under the store's owner with a new incarnation.
 *
 * BATON_OK:    *ret_runner is the caller's, ended by baton_runner_leave().
 * BATON_YIELD: one of that name is registered, and is not known to be dead, or has a life file:
 *              then its handlers may live although it is dead. *ret_other (may be NULL) is that
 *              one. Who knows that they do not takes it over, and registers again.
 * BATON_FULL:  there are BATON_RUNNERS_MAX. BATON_INVALID, BATON_STORAGE, BATON_NO_MEMORY.
 * Any thread. */
BATON_API enum baton_err baton_runner_register(struct baton_store *store,
                                               const struct baton_runner_ask *ask,
                                               struct baton_runner **ret_runner,
                                               struct baton_runner_info *ret_other);

/* Unregisters it: its shards are free, and what it has claimed goes back as if it had not been. The
 * handle stays, for baton_runner_free().
 *
 * BATON_NOT_HELD: it was taken over. BATON_STORAGE, BATON_BUSY, BATON_NO_MEMORY: it may be still
 * registered. Any thread. */
BATON_API enum baton_err baton_runner_unregister(struct baton_runner *runner);

/* Frees the handle; what is registered stays so. No call on it is under way. NULL is fine. */
BATON_API void baton_runner_free(struct baton_runner *runner);

/* Both, if the first can be done. NULL is fine. */
BATON_API void baton_runner_leave(struct baton_runner *runner);

/* Its number and its incarnation. */
BATON_API uint64_t baton_runner_number(const struct baton_runner *runner);
BATON_API const struct baton_owner *baton_runner_owner(const struct baton_runner *runner);

/* Says that it lives. Writes to memory that the processes of the host share, not to the disk.
 *
 * BATON_NOT_HELD: it was taken over. Any thread. */
BATON_API enum baton_err baton_runner_beat(struct baton_runner *runner);

/* Writes to where the store lasts, synced, and changes nothing that anybody sees: proves that this
 * can be written, and that the registration still holds. Goes before others of this process.
 *
 * BATON_NOT_HELD: it was taken over. BATON_STORAGE: it cannot be written. BATON_BUSY: somebody else
 * had it locked all the time. Any thread. */
BATON_API enum baton_err baton_runner_prove(struct baton_runner *runner);

/* Tells others what the runner is at, up to BATON_NAME_MAX bytes of UTF-8 without control
 * characters: "attached", "draining", "detached: manual detachment". Proves what
 * baton_runner_prove() does, and has its errors, and BATON_INVALID. Any thread. */
BATON_API enum baton_err baton_runner_tell(struct baton_runner *runner, struct baton_str state);

/* As that, and keeps a report, any text up to BATON_RUNNER_REPORT_MAX bytes of UTF-8 without NULs,
 * in the place of the one before. It is gone with the registration. Any thread. */
BATON_API enum baton_err baton_runner_report(struct baton_runner *runner, struct baton_str state,
                                             struct baton_str report);

/* What the runner of that number has reported last, and when. `text` has room for
 * BATON_RUNNER_REPORT_MAX bytes; *ret_report is what of it was used.
 *
 * BATON_NOT_FOUND: there is no such runner, or it has reported nothing yet. BATON_STORAGE.
 * Any thread. */
BATON_API enum baton_err baton_runner_reported(struct baton_store *store, uint64_t number,
                                               char *text, struct baton_str *ret_report,
                                               struct baton_store_time *ret_at);

/* Which of the runner's claims somebody wants cancelled, in whole or in part: who has such a one
 * ends its handler, and abandons it. At most `max`.
 *
 * BATON_OK: ids[0..*ret_count), in no order. BATON_STORAGE. Any thread. */
BATON_API enum baton_err baton_runner_cancels(struct baton_runner *runner,
                                              struct baton_claim_id *ids, size_t max,
                                              size_t *ret_count);

/* Asks the runner of that name for something. What is asked of it is forgotten when it leaves, or
 * is taken over: the next one of that name works.
 *
 * BATON_NOT_FOUND: there is none of that name. BATON_INVALID, BATON_STORAGE, BATON_BUSY.
 * Any thread. */
BATON_API enum baton_err baton_runner_wish(struct baton_store *store, struct baton_str name,
                                           enum baton_runner_wish wish);

/* Those whose number is above `after`, at most `max`. */
BATON_API enum baton_err baton_runner_list(struct baton_store *store, uint64_t after,
                                           struct baton_runner_info *infos, size_t max,
                                           size_t *ret_count);

/* Whether the queue is one of those that it has handlers for. Any thread. */
BATON_API bool baton_runner_serves(const struct baton_runner_info *info, struct baton_str queue);

/* Stops the runner that was seen so, if it has not beaten since: from now on it is refused all
 * that it asks for, and so ends its handlers. What it has stays its own until it leaves or is taken
 * over, so that nobody else begins before they have ended.
 *
 * BATON_NOT_HELD: it has beaten, or is not there any more. Any thread. */
BATON_API enum baton_err baton_runner_stop(struct baton_store *store,
                                           const struct baton_runner_info *seen);

/* Takes over the runner that was seen so, if it has not beaten since. It is the caller's business
 * to have seen that for its ttl, or to know that it is dead: baton_owner_is_dead(), and, if it has
 * a life file, nobody has a lock on that.
 *
 * BATON_NOT_HELD: it has beaten, or is not there any more. Any thread. */
BATON_API enum baton_err baton_runner_take_over(struct baton_store *store,
                                                const struct baton_runner_info *seen);

/* Gives back, as if it had not been, whatever the runner has claimed but these: a claim that was
 * made by a tick whose answer never came is found here.
 *
 * BATON_NOT_HELD: it was taken over. Any thread. */
BATON_API enum baton_err baton_runner_settle(struct baton_runner *runner,
                                             const struct baton_work_proof *known, size_t count);

/* One shard of a queue, and what a runner wants of it. */
struct baton_shard {
	struct baton_str queue;
	uint32_t number;
	uint32_t claims; /* baton_runner_tick(): at most so many of this shard                 */
	uint32_t max;    /* batches in each                                                    */
};

struct baton_shard_answer {
	enum baton_err err; /* BATON_OK: it is this runner's. BATON_YIELD: it is that of `runner`,
	                       and so not this one's. BATON_NOT_HELD: it is nobody's, and so not
	                       this one's                                                      */
	baton_fence fence;
	uint64_t runner;
};

/* Takes each shard that is nobody's, with a new fence; what it has already it keeps. The first to
 * take one makes the queue's mode BATON_QUEUE_RUNNER.
 *
 * BATON_NOT_HELD: the runner was taken over. BATON_NOT_FOUND: no such queue; BATON_INVALID: no such
 * shard; BATON_BUSY: the queue's work is handed out in another way. Nothing has changed then. */
BATON_API enum baton_err baton_shard_take(struct baton_runner *runner,
                                          const struct baton_shard *shards, size_t count,
                                          struct baton_shard_answer *answers);

/* Gives each back that it has. answers[i].err: BATON_OK, or BATON_NOT_HELD or BATON_YIELD: it did
 * not have it. What it has claimed of them goes back as if it had not been. */
BATON_API enum baton_err baton_shard_give(struct baton_runner *runner,
                                          const struct baton_shard *shards, size_t count,
                                          struct baton_shard_answer *answers);

/* Who has the shards of a queue: answers[0..count) are those from `first` on. BATON_INVALID: there
 * are not so many. BATON_NOT_FOUND: no such queue. */
BATON_API enum baton_err baton_shard_list(struct baton_store *store, struct baton_str queue,
                                          uint32_t first, struct baton_shard_answer *answers,
                                          size_t count);

/* Where a lane is. */
struct baton_where {
	uint32_t shard;                  /* of its queue                               */
	baton_fence fence;               /* the shard's last; 0: nobody ever had it    */
	bool owned;                      /* somebody has it now                        */
	struct baton_runner_info runner; /* who, if so                                 */
};

/* Which shard the lane belongs to, and who has that now.
 *
 * BATON_NOT_FOUND: no such queue. BATON_INVALID, BATON_STORAGE. Any thread. */
BATON_API enum baton_err baton_lane_where(struct baton_store *store, struct baton_str queue,
                                          struct baton_str lane, struct baton_where *ret);

/* What a runner does in one transaction. */
struct baton_tick {
	const struct baton_work_end *ends; /* claims that have ended, to BATON_CLAIMS_MAX */
	size_t end_count;
	struct baton_work_ended *ended;   /* room for the answers to them               */
	const struct baton_shard *shards; /* where it wants work from                 */
	size_t shard_count;
	struct baton_shard_answer *owned; /* room for the answers to them             */
	uint32_t claims; /* at most so many new ones in all, to BATON_CLAIMS_MAX; 0: as the shards
	                    say, and these to BATON_CLAIMS_MAX together                       */
};

/* Ends claims and makes new ones. A claim of a runner has no time limit: it lasts as long as its
 * registration and its shard are the runner's.
 *
 * Who asks for work of a shard that it has makes the mode of a queue that is BATON_QUEUE_OPEN again
 * BATON_QUEUE_RUNNER.
 *
 * If there is more to claim than is asked for, each shard gives as many as when they give one each
 * in turn, in the order of `shards`; in the answer those of a shard may stand together. A shard
 * that has nothing costs next to nothing.
 *
 * BATON_OK: the answers are filled in, and *ret_claims is what was given, or NULL.
 * BATON_NOT_HELD: the runner was taken over, and nothing has changed. Others as for
 * baton_work_claim(). Any thread. */
BATON_API enum baton_err baton_runner_tick(struct baton_runner *runner,
                                           const struct baton_tick *tick,
                                           struct baton_work_claims **ret_claims);

/* More work for a claim that is being handled. */
struct baton_more_ask {
	struct baton_str queue, lane; /* as the claim has them     */
	uint32_t shard;
	struct baton_work_proof proof; /* of the claim            */
	uint32_t max;                  /* batches, 1 to BATON_JOIN_MAX */
};

/* Claims what comes next in the lane of a claim that is being handled, for the same run: the first
 * batch that is ready there and those that join it, if it is work that joins, of delivery
 * `earliest`. What is to be alone, or waits for its next attempt, is not passed by. It is a claim
 * of its own, with a higher fence, and lasts as long as the first one may.
 *
 * BATON_OK: *ret_claims has that one claim; or NULL: there is nothing, or the claim is not the
 * runner's any more, or its queue is paused.
 * BATON_NOT_HELD: the runner was taken over. Others as for baton_runner_tick(). Any thread. */
BATON_API enum baton_err baton_runner_more(struct baton_runner *runner,
                                           const struct baton_more_ask *ask,
                                           struct baton_work_claims **ret_claims);

BATON_END

#endif
