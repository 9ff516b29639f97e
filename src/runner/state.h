/* What the core knows. Only the core's own files see it. */
#ifndef RUNNER_STATE_H
#define RUNNER_STATE_H

#include "runner/balance.h"
#include "runner/core.h"

/* A shard of a queue, as this runner sees it. */
enum shard_is {
	SHARD_NOT_MINE = 0,
	SHARD_WANTED, /* free at the last look, and to be taken */
	SHARD_MINE,
	SHARD_LEAVING, /* no new work from it, and it is given once nothing runs there */
	SHARD_DROPPED  /* the store may say that it is this runner's, but it is not used */
};

struct shard {
	enum shard_is is;
	uint32_t runs;           /* of it that the store does not know the end of */
	uint32_t visits;         /* connections that are served under it */
	baton_fence fence;       /* MINE */
	struct baton_mono drain; /* LEAVING: what still runs is stopped then */
};

struct served {
	const struct core_serve *serve;
	bool usable, paused;
	uint32_t count; /* of shards */
	struct shard *shards;
	uint64_t *owners; /* of each shard, when it was looked at last; 0: nobody */
	uint32_t turn;    /* the shard that comes first in the next tick */
	double pass;      /* up to when it has had its share; the earliest comes first */
	struct baton_queue_metrics metrics; /* but for its name and its shards */
};

enum run_is {
	RUN_NONE = 0,
	RUN_NEW, /* claimed; its handler is to be started */
	RUN_ON,
	RUN_STOPPING, /* its handler is told to stop */
	RUN_ENDED,    /* the store is to be told */
	RUN_SENT,     /* that is under way */
	RUN_EXTRA,    /* a claim that a run took while it was under way; ends with it */
	RUN_TIED      /* it has ended so, and is sent with that run */
};

#define CORE_EXTRAS_OF_RUN 31            /* claims that a run may take besides its own */
#define CORE_EXTRAS_MAX BATON_CLAIMS_MAX /* and all runs together */

struct run {
	enum run_is is;
	uint32_t serial;
	uint32_t block;
	uint32_t queue, shard;
	const struct baton_work_claim *claim;
	struct baton_mono begun; /* its handler, if it has */
	struct core_end end;     /* ENDED, SENT, TIED */
	bool extra;              /* it is, or was, an EXTRA */
	uint32_t more;           /* the next claim of the same run, its number plus one; 0: none */
	uint32_t extras;         /* how many it took */
	uint32_t wants;          /* so many batches at a checkpoint; 0: nothing */
	bool gives;              /* its handler is to be told what came of that */
	const struct baton_work_claim *given; /* then: that, or NULL */
};

/* What a tick gave, freed with its last claim. */
struct block {
	struct baton_work_claims *claims;
	uint32_t left;
};

/* Numbers of runs or blocks, first in, first out; what is in it may have changed meanwhile. */
struct fifo {
	uint32_t *numbers;
	uint32_t max, first, count;
};

struct runs {
	struct run *all;
	struct block *blocks;
	uint32_t max;
	uint32_t serial;
	uint32_t running;  /* NEW, ON, STOPPING */
	uint32_t unsent;   /* ENDED, SENT, TIED */
	uint32_t extras;   /* EXTRA, and those that were */
	uint32_t wanting;  /* runs that ask for more */
	uint32_t giving;   /* runs whose handlers are to be told */
	struct fifo spare; /* runs that are NONE */
	struct fifo spare_blocks;
	struct fifo fresh; /* NEW */
	struct fifo halts; /* STOPPING, and nobody was told yet */
	struct fifo over;  /* ENDED */
};

/* Another runner, and since when its beat has not changed. */
struct sight {
	uint64_t number, beat;
	struct baton_mono since;
};

struct core {
	struct core_options o;
	struct served served[CORE_QUEUES_MAX];
	double pass; /* how far they have come: that of the one that was served last */
	struct runs runs;

	struct sight *sights; /* in the order of their numbers */
	size_t sight_count;
	struct balance_member *members;
	uint32_t *takes, *gives;

	/* The registration. */
	uint64_t number;        /* 0: none */
	uint64_t lost;          /* the last that was refused: its row may be there; 0: none */
	struct baton_mono sent; /* just before its last successful renewal */
	uint32_t weight;        /* that it has now: 0 while it drains */
	bool detached;          /* the state as it was noticed */
	bool stale;             /* of registration or runs: they are from before a detachment */
	bool manual;            /* that was by hand: it stays registered */
	bool told;              /* the store knows what it is at */
	uint64_t reporting, reported;  /* core_events() at the report under way, and at the last */
	struct baton_mono report_at;   /* not before is there another one */
	struct baton_mono progress_at; /* not before is it reported that a run has come further */
	bool progressed;               /* one has, since the last report */
	bool heard;                    /* since it is stale it has looked what is wanted of it */
	enum baton_runner_wish want;   /* what it was asked for last */
	bool noted;                    /* the store knows that, for this registration */
	bool asked;                    /* a request is under way */
	uint32_t visits;               /* connections that are served */

	/* Requests. */
	struct core_request request;
	struct baton_shard *shards;
	struct baton_shard_answer *answers;
	struct baton_work_end *ends;
	struct baton_work_ended *ended;
	uint32_t *end_runs;
	struct baton_work_proof *proofs;
	struct baton_runner_info victim;
	bool take_over;             /* `victim` is to be taken over */
	bool wish;                  /* `victim` is to be asked to leave */
	bool unsure;                /* it may be registered, but the answer was lost */
	bool doubt;                 /* it is not known what the last tick claimed */
	uint32_t singly;            /* so many ends are sent alone: one of them is not accepted */
	struct baton_more_ask more; /* of the run `more_run` */
	uint64_t more_run;
	uint32_t more_turn; /* where the next run is looked for that asks for more */
	uint32_t groups;    /* runs whose ends are in the request */
	bool mored;         /* the last request was one for more */
	bool hungry;        /* there may be work */
	bool leaving;       /* there are shards that are LEAVING */
	bool tried;         /* it was stopped, and the store cannot be told */
	bool looked;        /* the last request was a survey */
	bool empty;         /* the last tick asked in all shards, and found nothing */
	bool settled;       /* at the last look no shard was free or to be moved */
	struct baton_mono survey_at, prove_at, probe_at;
	struct baton_mono again_at;    /* after trouble: nothing is asked for before; 0: none */
	uint32_t trouble;              /* requests that failed, though the store can be written */
	struct baton_duration backoff; /* between probes */
	struct baton_mono counted_at;  /* when a failure counts again */

	bool stopping;
	struct baton_mono stop_at; /* what still runs then is stopped */
	bool done;
	enum baton_err result;
	char why[CORE_WHY]; /* unless that is BATON_OK */

	char failure[CORE_WHY]; /* of the last call that failed because of the store; "": none */

	struct core_counts counts;
};

/* BATON_NO_MEMORY: runs_done() is fine all the same. */
enum baton_err runs_init(struct runs *runs, const struct baton_alloc *alloc, uint32_t slots);
void runs_done(struct runs *runs, const struct baton_alloc *alloc);

/* The run with that id; NULL: there is none. */
struct run *run_find(struct core *c, uint64_t id);
uint64_t run_id(const struct core *c, const struct run *r);

/* New runs for what a tick gave; takes the claims over. NULL is fine. */
void runs_add(struct core *c, struct baton_work_claims *claims);

/* The next claim of the same run; NULL: there is none. */
struct run *run_next(struct core *c, const struct run *r);

/* The only claim that a run took while it was under way. */
struct run *run_extra(struct core *c, struct baton_work_claims *claims);

/* Checkpoints: whether there is something to be asked for, and what came of it; what a handler is
 * to be told; and that the run needs nothing more. */
bool more_ask(struct core *c);
void more_answered(struct core *c, struct core_answer *a);
bool more_order(struct core *c, struct core_order *ret);
void more_forget(struct core *c, struct run *r);

/* It is over: nothing of it is known any more. */
void run_drop(struct core *c, struct run *r);

/* Its handler has ended, or was never started. */
void run_end(struct core *c, struct run *r, const struct core_end *end);

/* Its end is to be sent once more. */
void run_again(struct core *c, struct run *r);

/* It is to be stopped; one that has not begun ends at once, as if it had not been. */
void run_stop(struct core *c, struct run *r);
void runs_stop(struct core *c);

/* Those that have not begun end, as if they had not been. */
void runs_stop_new(struct core *c);

/* The next that is to be started, told to stop, or sent; NULL: none. */
struct run *runs_fresh(struct core *c);
struct run *runs_halt(struct core *c);
struct run *runs_over(struct core *c);

/* Fills in the request; false: there is nothing to be asked now. */
bool ask_next(struct core *c, struct baton_mono now);

/* Takes in what was seen: who is lost, and which shards to take and give. `sent` is a moment before
 * anything of it was looked at. */
void survey_take_in(struct core *c, const struct core_survey *survey, struct baton_mono sent,
                    struct baton_mono now);

/* Whether what a runner had goes to others. One that is dead while something lives that it has
 * started has it for as long as that does, however long it was silent. */
bool survey_is_lost(enum core_fate fate, bool silent);

/* Whether somebody is about to be gone: what he has started lives, but not for long. */
bool survey_expects_death(const struct core *c, const struct core_survey *survey,
                          struct baton_mono sent, struct baton_mono now);

/* Whether that runner, the only one that is looked at, was silent for its ttl. */
bool survey_is_silent(struct core *c, const struct baton_runner_info *info, struct baton_mono sent,
                      struct baton_mono now);

/* Notices that it has been detached, or attached again. */
void core_notice(struct core *c, struct baton_mono now);

/* The registration is gone. */
void core_lost(struct core *c, struct baton_mono now);

/* A renewal, or a probe, failed or went well. */
void core_failed(struct core *c, enum baton_err err, const char *why, struct baton_mono now);
void core_renewed(struct core *c, struct baton_mono now);

/* How much has happened so far that a report tells of. */
uint64_t core_events(const struct core *c);

/* Its share as it is wanted now: 0 while it drains. */
uint32_t core_weight(const struct core *c);

/* Whether it may begin something now. */
bool core_is_attached(const struct core *c, struct baton_mono now);

/* Until when it may act under its registration. */
struct baton_mono core_deadline(const struct core *c);

/* Whether `now` is at `at` or later. */
static inline bool core_due(struct baton_mono at, struct baton_mono now)
{
	return at.ns <= now.ns;
}

#endif
