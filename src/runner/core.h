/* What a runner does, decided: which shards it takes and gives, what it asks the store for, which
 * handlers start and stop.
 *
 * No clock, thread or call in here: whoever drives it brings the moment, asks what the store is to
 * be asked, and says what came back. The engine drives it with threads, and the simulator with a
 * clock and a network of its own. One request is under way at a time; beats go beside it. */
#ifndef RUNNER_CORE_H
#define RUNNER_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/alloc.h>
#include <baton/detach.h>
#include <baton/metrics.h>
#include <baton/queue.h>
#include <baton/shard.h>
#include <baton/time.h>
#include <baton/work.h>

#define CORE_QUEUES_MAX 64
#define CORE_WHY 320

/* A queue that is served. */
struct core_serve {
	struct baton_str queue; /* borrowed */
	uint32_t weight;        /* its share of the slots */
	uint32_t join;          /* batches in a claim */
};

struct core_options {
	const struct baton_alloc *alloc;
	struct baton_detach *detach;
	const struct core_serve *serves; /* borrowed */
	size_t serve_count;
	uint32_t slots;            /* handlers at once */
	uint64_t limit;            /* claims in all; 0: no limit */
	uint32_t weight;           /* 0: it takes no shards */
	struct baton_duration ttl; /* of the registration */
	struct baton_duration margin;
	struct baton_duration beat; /* between two beats; also between two looks around */
	struct baton_duration
		drain; /* how long handlers may go on in a shard that is to be given */
	struct baton_duration report; /* from one report of what it has done to the next; 0: none */
	bool beats_prove;             /* a beat is written where the work is */
	bool replace;                 /* whoever has the name is asked to leave */
};

/* What the store is to be asked. */
enum core_kind {
	CORE_REGISTER = 1,
	CORE_SURVEY,    /* who is there, and who has which shards */
	CORE_TAKE_OVER, /* `victim` */
	CORE_TAKE,      /* `shards` */
	CORE_GIVE,      /* `shards` */
	CORE_TICK,      /* `ends`, `shards`, `claims` */
	CORE_MORE,      /* `more` */
	CORE_SETTLE,    /* give back what is claimed and not in `proofs` */
	CORE_PROVE,     /* that the registration holds and the store can be written */
	CORE_TELL,      /* `text`, and `report`, which whoever does it fills in */
	CORE_WISH,      /* `wish`, of `victim`; or, without one, of this runner itself */
	CORE_LEAVE,
	CORE_PROBE /* anything that shows that the store works */
};

/* What it points to stays until the answer is given. */
struct core_request {
	enum core_kind kind;
	const struct baton_runner_info *victim;
	const struct baton_shard *shards;
	size_t shard_count;
	struct baton_shard_answer *answers; /* room for shard_count, for whoever does it */
	const struct baton_work_end *ends;
	size_t end_count;
	struct baton_work_ended *ended; /* room for end_count */
	uint32_t claims;
	const struct baton_more_ask *more;
	const struct baton_work_proof *proofs;
	size_t proof_count;
	char text[BATON_NAME_MAX + 1];
	struct baton_str report; /* NULL: none */
	enum baton_runner_wish wish;
};

/* How it stands with another runner. */
enum core_fate {
	CORE_LIVES = 1, /* or it cannot be known: it is lost when it is silent for its ttl */
	CORE_OWN,       /* it is of this process */
	CORE_DYING,     /* it is dead, but something that it has started lives, and is waited for */
	CORE_DEAD
};

/* A queue as it was seen. */
struct core_queue_seen {
	bool there;
	bool served; /* its work can be handed out by runners */
	bool paused;
	uint32_t shards;
	const struct baton_shard_answer *owners; /* of each shard */
};

/* What a survey found. */
struct core_survey {
	const struct baton_runner_info *runners; /* in the order of their numbers */
	const enum core_fate *fates;             /* of each */
	size_t runner_count;
	const struct core_queue_seen *queues; /* of each that is served, in that order */
	const struct baton_claim_id *cancels; /* claims of this runner that are to be stopped */
	size_t cancel_count;
};

struct core_answer {
	enum baton_err err;
	char why[CORE_WHY];               /* unless BATON_OK: one sentence */
	struct baton_mono sent;           /* a moment before it was asked */
	uint64_t number;                  /* REGISTER: of the registration */
	struct baton_runner_info other;   /* REGISTER, BATON_YIELD: who has the name */
	enum core_fate fate;              /* and how it stands with him */
	const struct core_survey *survey; /* SURVEY */
	struct baton_work_claims *claims; /* TICK, MORE: the core's from now on; or NULL */
};

/* How a handler ended. */
struct core_end {
	enum baton_work_how how;
	struct baton_str result;
	struct baton_str error;
	struct baton_duration delay;
	const struct baton_batch *emits;
	size_t emit_count;
	void (*drop)(void *hold); /* called once it was sent or is of no use; or NULL */
	void *hold;
};

enum core_order_kind {
	CORE_START = 1, /* a handler for `claim` */
	CORE_STOP,      /* it; it ends soon, or is killed */
	CORE_MORE_GIVEN /* `claim`, or NULL: nothing, to the handler that asked */
};

struct core_order {
	enum core_order_kind kind;
	uint64_t run;
	const struct baton_work_claim *claim; /* until core_ended() for that run */
};

struct core_counts {
	uint64_t started, completed, failed, returned;
	uint64_t refused; /* ends under an old fence */
	uint64_t fenced;  /* writes that the store has refused, those ends among them */
	uint64_t ticks;
	uint64_t takeovers;
	uint64_t detached; /* how often */
	uint64_t detachments[BATON_DETACH_WHYS + 1];
	uint64_t attachments; /* after a detachment */
	uint64_t moved;       /* requests to take or give shards that were answered */
	uint64_t claimed;
	uint32_t running; /* now */
	uint32_t owned;   /* shards, now */
	uint32_t visits;  /* connections, now */
};

struct core;

/* BATON_NO_MEMORY. Options are as the caller has checked them. */
enum baton_err core_new(const struct core_options *options, struct core **ret_core);

/* NULL is fine. Nothing is under way and no handler runs. */
void core_free(struct core *core);

/* What to ask the store for now; false: nothing. Until core_answered() for it there is no other. */
bool core_ask(struct core *core, struct baton_mono now, struct core_request *ret);
void core_answered(struct core *core, struct baton_mono now, struct core_answer *answer);

/* A beat of the registration `number`, sent at `sent`, came to this. */
void core_beaten(struct core *core, uint64_t number, enum baton_err err, const char *why,
                 struct baton_mono sent, struct baton_mono now);

/* What to do with handlers now; false: nothing. */
bool core_order(struct core *core, struct baton_mono now, struct core_order *ret);

/* The handler of a run, which was started, has ended. */
void core_ended(struct core *core, uint64_t run, const struct core_end *end, struct baton_mono now);

/* Its handler asks for more work of its lane: at most so many batches. Unless it ends before, there
 * is one order for it. False: it has asked already, or is not there. */
bool core_more(struct core *core, uint64_t run, uint32_t max);

/* What the last order gave it does not reach its handler, which has ended: it goes back. */
void core_more_lost(struct core *core, uint64_t run);

/* Whether that run was told to stop. */
bool core_is_stopping(struct core *core, uint64_t run);

/* There may be work; who is there may have changed. */
void core_news(struct core *core);
void core_look_around(struct core *core);

/* A handler has said how far it is: that is reported soon. */
void core_progressed(struct core *core);

/* Notices what time has done. To be called at core_next() at the latest. */
void core_time(struct core *core, struct baton_mono now);
struct baton_mono core_next(const struct core *core);

/* Someone here wants it detached, or attached again. */
void core_detach(struct core *core, struct baton_mono now);
void core_attach(struct core *core, struct baton_mono now);

/* No new work. What runs may go on for `grace`, is stopped then, and all is given back. */
void core_stop(struct core *core, struct baton_duration grace, struct baton_mono now);

/* Whether it has nothing more to do. *ret_err is BATON_OK if it was stopped; or it cannot go on,
 * and core_why() says why: BATON_YIELD if its name is taken, BATON_NOT_HELD if somebody took its
 * place, BATON_TIMEOUT if the store does not answer, and a request is under way still,
 * BATON_STORAGE if it was stopped, and the store cannot be told. */
bool core_is_done(const struct core *core, enum baton_err *ret_err);
const char *core_why(const struct core *core);

/* Why the store could not be asked the last time; "": it could. */
const char *core_failure(const struct core *core);

/* What singletons may do here. */
enum core_lead {
	CORE_NOT_LEADING = 1, /* nothing: it is detached, drains or ends */
	CORE_STAYING,         /* go on, but not begin: it is suspect    */
	CORE_LEADING
};
enum core_lead core_leads(const struct core *core, struct baton_mono now);

/* Whether it has had as many claims as it may, and all have ended. */
bool core_is_spent(const struct core *core);

/* The claim of a run; NULL: it is not known. */
const struct baton_work_claim *core_claim(struct core *core, uint64_t run);

/* Whether nothing was there when it looked last in all of its shards, and nothing runs. */
bool core_is_idle(const struct core *core);

/* Whether a request is under way. */
bool core_is_asking(const struct core *core);

/* A connection for a lane of the queue with that number: whether it may be served here now. Then
 * its shard is kept until core_visit_ended() for it, and *ret_fence is the shard's. */
bool core_visit(struct core *core, uint32_t queue, struct baton_str lane, struct baton_mono now,
                uint32_t *ret_shard, baton_fence *ret_fence);

/* Whether one that has begun may go on; false: it is to be stopped, and ends soon. */
bool core_visit_goes_on(const struct core *core, uint32_t queue, uint32_t shard);

/* Nothing serves it any more. */
void core_visit_ended(struct core *core, uint32_t queue, uint32_t shard);

/* The registration, 0: none; and when what runs under it has to be dead at the latest. */
uint64_t core_number(const struct core *core);
struct baton_mono core_hard_stop(const struct core *core);

struct core_counts core_counts(const struct core *core);

/* What it has done, in numbers. What others know of is left as it is. */
void core_metrics(const struct core *core, struct baton_mono now, struct baton_runner_metrics *ret);

#endif
