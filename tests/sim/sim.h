/* Runners, a store, a network and people on a clock that is not real; everything from one seed.
 *
 * The decisions are the product's own: the core and the carrier of runners, the state machine of
 * detachment, a store in memory. Made up are the time, the network, processes with their guardians
 * and handlers, and what people and faults do to them. No threads, no waiting. */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/clock.h>
#include <baton/detach.h>
#include <baton/shard.h>
#include <baton/store.h>
#include <baton/work.h>

#include "runner/carry.h"
#include "runner/core.h"
#include "sim/cover.h"
#include "sim/plan.h"
#include "support/rng.h"

#define SIM_MS INT64_C(1000000)
#define SIM_S (1000 * SIM_MS)
#define SIM_PROCS_MAX 96
#define SIM_HANDLERS_MAX 8 /* of one runner: its slots */
#define SIM_SHARDS_MAX 8   /* of one queue */
#define SIM_LANES 5        /* of one queue */
#define SIM_KEYS 3         /* of one queue */
#define SIM_STARTS 2       /* of a key in a window, where it has a rate */
#define SIM_JOIN_MAX 3
#define SIM_JOBS_MAX 1500
#define SIM_GRANTS_MAX 20000
#define SIM_NUMBERS_MAX 2000 /* registrations */
#define SIM_TEXT 240
#define SIM_EVENTS_MAX 8192

/* What happens next. Those of a process wait while it is frozen, and are void once it is dead. */
enum event_kind {
	EV_ACTION = 1, /* of the plan, by its place in it */
	EV_BOOT,       /* of a seat: its process starts */
	EV_HEAL,       /* no more faults */
	EV_LOOK,       /* whether all is done */
	EV_GUARD,      /* the guardian looks at the deadline */
	EV_BURY,       /* the guardian has noticed that its runner is dead */
	EV_HANDLER,    /* a handler ends by itself */
	EV_KILL,       /* a handler is dead */
	EV_HOLD,       /* a handler has had its key for as long as it may */
	EV_EXEC,       /* a request reaches the store */
	EV_BEAT_EXEC,  /* a beat reaches the store */
	EV_OF_PROCESS, /* from here on */
	EV_WAKE,       /* the loop has something to do */
	EV_REPLY,      /* to a request */
	EV_PULSE,      /* a beat is due */
	EV_BEAT_REPLY,
	EV_EAR,        /* the store has news */
	EV_START,      /* a handler, if the guardian still lets it */
	EV_CHECKPOINT, /* the loop hears that a handler wants more */
	EV_ENDED       /* the loop hears how a handler ended */
};

struct event {
	int64_t at; /* ns */
	uint64_t serial;
	enum event_kind kind;
	uint32_t who;
	uint64_t arg;
};

/* What becomes of a message between a runner and the store. */
enum call_fate {
	CALL_FINE = 1,
	CALL_LOST,  /* it never arrives */
	CALL_DEAF,  /* it is done, but no answer arrives */
	CALL_TWICE, /* it is done twice */
	CALL_BUSY,  /* the store has no time for it */
	CALL_ERROR  /* it cannot be sent at all */
};

struct call {
	bool on;
	bool done; /* the store has done it */
	uint64_t serial;
	enum call_fate fate;
	int64_t delay; /* of the answer */
	struct core_request request;
	struct core_answer answer;
	struct baton_mono sent;
};

struct beat {
	bool on;
	uint64_t serial;
	struct baton_runner *runner;
	enum call_fate fate;
	int64_t delay;
	enum baton_err err;
	struct baton_mono sent;
};

struct handler {
	bool waits; /* the guardian has not started it yet */
	bool on, dying;
	bool over; /* the loop is to hear of it */
	uint64_t serial;
	uint64_t run;
	uint32_t grant; /* its place in the ledger */
	int64_t hold;   /* for so long it may have its key; 0: there is no limit */
	enum baton_work_how how;
	bool deaf; /* it does not stop when it is told to */
	bool told;
	bool asks;  /* it waits for more, or to hear that there is none */
	bool ripe;  /* it would have ended meanwhile */
	bool hasty; /* it ends without waiting for that */
};

/* A process: a runner with its guardian and its handlers. */
struct proc {
	struct world *w;
	uint32_t id, seat, host;
	bool alive, buried, stopping, manual, orphan;
	int64_t frozen; /* until then; 0: it is not */
	int64_t armed;  /* for so long it is frozen at the next start of a handler */
	int64_t drift;  /* of its clock: so many ns in a second */
	int64_t base;   /* what its clock showed in the beginning */
	struct baton_clock clock;
	struct rng rng;
	struct baton_detach detach;
	enum baton_attachment seen;
	struct core *core;
	struct carrier carrier;
	struct core_serve serves[PLAN_QUEUES];
	struct baton_str queues[PLAN_QUEUES];
	size_t serve_count;
	char name[16];
	struct call call;
	struct baton_runner *runner; /* that beats */
	struct beat beat;
	uint64_t number; /* under which the call under way was made; 0: none */
	uint32_t registrations;
	struct baton_mono proved; /* when the last renewal was sent that it was told to be fine */
	struct baton_mono guard;  /* when its handlers are killed, as the guardian knows */
	struct handler handlers[SIM_HANDLERS_MAX];
	uint64_t heard; /* of the store's changes */
	int64_t wake;   /* the earliest that is queued; 0: none */
	uint32_t spins; /* wakes in a row in which no time passed */
	int64_t woken;
	struct core_order order; /* the last */
};

/* The bit of a key, which is not 0. */
#define KEY_BIT(key) (UINT32_C(1) << (key))

/* Work that was put. */
struct job {
	struct baton_batch_id id;   /* "" until it is known */
	struct baton_batch_id name; /* as it was found in the store */
	uint32_t queue, lane;       /* lane 0: none */
	uint32_t key;               /* 0: none; of several the first */
	uint32_t keys;              /* all of them, a bit each: see KEY_BIT() */
	uint64_t order;             /* in which they were put */
	bool put;                   /* acknowledged, or emitted by what was completed */
	bool loose;                 /* it was delayed: others may overtake it */
	bool poison;                /* its handler kills the runner */
	bool cancel, removed;       /* somebody wants it cancelled; it was */
	bool done, dead;
	bool skipped; /* found so, before the clock was set or in the end */
	uint32_t tries;
	uint32_t emit; /* the job that it emits; 0: none */
	struct baton_batch batch;
	struct baton_str payload;
	struct baton_str list[SIM_KEYS]; /* of several keys */
	char text[16], source[16];
};

/* A claim that the store made. */
struct grant {
	char id[48];
	uint64_t number;                        /* of the registration */
	struct baton_store_time at;             /* when it was made    */
	uint64_t fence;                         /* of its shard */
	uint32_t queue, shard, lane, key, keys; /* as those of its jobs */
	uint32_t jobs[SIM_JOIN_MAX];
	uint32_t count;
	uint32_t of; /* the one that a run had when it took this, plus one; 0: it is the first */
	bool given;  /* the handler knows of it */
	bool ended;
	enum baton_work_how how; /* then */
};

struct world {
	const struct plan *plan;
	int64_t now;             /* ns */
	int64_t wall, wall_most; /* what the store's wall clock is off by */
	struct baton_clock clock;
	struct baton_store *store;
	struct cover *cover;
	bool trace, failed, healed, over;
	char text[SIM_TEXT]; /* what is wrong */
	const char *rule;    /* the same, without particulars */
	uint64_t digest;     /* of all that has happened */
	uint64_t steps;

	struct event events[SIM_EVENTS_MAX];
	size_t event_count;
	uint64_t serial;

	struct proc *procs[SIM_PROCS_MAX];
	uint32_t proc_count;
	uint32_t seats[PLAN_SEATS_MAX]; /* the process of each, plus one; 0: none */
	bool retired[PLAN_SEATS_MAX];   /* it is not started again */

	/* What is known for certain. */
	struct job jobs[SIM_JOBS_MAX];
	uint32_t job_count;
	struct grant grants[SIM_GRANTS_MAX];
	uint32_t grant_count;
	uint32_t owners[SIM_NUMBERS_MAX]; /* the process of each registration, plus one */
	struct baton_shard_answer shards[PLAN_QUEUES][SIM_SHARDS_MAX];
	bool paused[PLAN_QUEUES];
	uint32_t passed[PLAN_QUEUES][SIM_KEYS + 1][SIM_KEYS + 1]; /* see judge_turns() */
	struct baton_store_time started[PLAN_QUEUES][SIM_KEYS + 1][SIM_STARTS]; /* the last first */
	bool set_back;                                                          /* the clock was */
	uint32_t counted; /* from this grant on their times are known to count */
	uint64_t orders;
	uint64_t changes; /* of the store, as its hook tells */

	/* Of looks at what is said of waiting work. */
	bool written, moved; /* to the store, since the last; and not only about work */
	uint64_t key_fences[PLAN_QUEUES][SIM_KEYS + 1]; /* of the last claim of each */
	bool stalls[PLAN_QUEUES][SIM_SHARDS_MAX];       /* was judged, since something was moved */
	struct baton_store_time due;                    /* what is next, as it told */
	uint64_t named;       /* the names of all up to this place are known */
	uint32_t grants_from; /* all before have ended */
	struct baton_runner *handles[SIM_NUMBERS_MAX];
	uint32_t handle_count;
};

/* One run. The world can be used again afterwards; begin with world_new(). */
struct world *world_new(void);
void world_free(struct world *w);
void world_run(struct world *w, const struct plan *plan, struct cover *cover, bool trace);

extern const char *const sim_queues[PLAN_QUEUES];
extern const uint32_t sim_shards[PLAN_QUEUES];
extern const uint32_t sim_key_limits[PLAN_QUEUES];

/* A line of the trace; the first sentence about what is wrong, which ends the run. */
void say(struct world *w, const struct proc *p, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void wrong(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void count(struct world *w, enum covered what);

void event_add(struct world *w, int64_t at, enum event_kind kind, uint32_t who, uint64_t arg);
bool event_next(struct world *w, struct event *ret);

/* Between low and high, both in ns. */
int64_t between(struct rng *rng, int64_t low, int64_t high);
bool chance(struct rng *rng, unsigned percent);

/* Processes. */
void proc_boot(struct world *w, uint32_t seat, bool replace);
void proc_event(struct proc *p, const struct event *e);
void proc_die(struct proc *p);
void proc_act(struct proc *p);
void proc_done(struct proc *p);
struct proc *proc_at(const struct world *w, uint32_t seat); /* NULL: none that is alive */
struct proc *proc_of(const struct world *w, uint64_t number);
struct baton_mono proc_now(const struct proc *p);
int64_t proc_when(const struct proc *p, struct baton_mono at); /* on the world's clock */
enum core_fate proc_fate(void *arg, const struct baton_runner_info *info);
void proc_began(void *arg, struct baton_runner *runner);
void proc_retire(void *arg, struct baton_runner *runner);

/* Messages. */
void link_ask(struct proc *p, const struct core_request *request);
void link_exec(struct proc *p, uint64_t serial);
void link_reply(struct proc *p, uint64_t serial);
void link_pulse(struct proc *p, uint64_t number);
void link_beat_exec(struct proc *p, uint64_t serial);
void link_beat_reply(struct proc *p, uint64_t serial);

/* Guardians and handlers. */
void ward_start(struct proc *p, const struct core_order *order);
void ward_started(struct proc *p, uint64_t serial);
void ward_stop(struct proc *p, uint64_t run);
void ward_checkpoint(struct proc *p, uint64_t serial);
void ward_more(struct proc *p, const struct core_order *order);
void ward_guard(struct proc *p);
void ward_bury(struct proc *p);
void ward_handler(struct proc *p, uint64_t serial);
void ward_kill(struct proc *p, uint64_t serial);
void ward_hold(struct proc *p, uint64_t serial);
void ward_ended(struct proc *p, uint64_t serial);
void ward_kill_all(struct proc *p, enum covered why);
void ward_deadline(struct proc *p, struct baton_mono at);
bool ward_is_empty(const struct proc *p);

/* What people and faults do. */
void act(struct world *w, const struct action *a);
void freeze(struct proc *p, int64_t span);
void heal(struct world *w);
void heal_again(struct world *w);

/* Checks. */
void judge_request(struct proc *p, const struct core_request *r);
void judge_answer(struct proc *p, const struct core_request *r, struct core_answer *a);
void judge_shards(struct world *w);
void judge_start(struct proc *p, const struct core_order *order);
void judge_running(struct proc *p, const struct handler *h);
void judge_look(struct world *w);
void judge_whys(struct world *w);

/* Of the grants from `first` on, which one tick gave. */
void judge_turns(struct world *w, uint32_t first);
bool sim_is_fair(const struct world *w, uint32_t queue);

/* How long a run may have a key of the queue; 0: there is no limit. */
struct baton_duration sim_key_ttl(const struct world *w, uint32_t queue);

/* The key of that name; 0: there is none. */
uint32_t sim_key(struct baton_str name);

/* Whether jobs of the queue may have a lane and a key, or several keys. */
bool sim_has_guests(const struct world *w, uint32_t queue);

/* Where the keys of the queue count; whether that is not the cluster; whether the keys of two
 * processes, NULL being one that is not known, count together; and how many claims of a key there
 * are where that one is. */
enum baton_key_scope sim_scope(const struct world *w, uint32_t queue);
bool sim_has_sites(const struct world *w, uint32_t queue);
bool sim_is_same_site(const struct world *w, uint32_t queue, const struct proc *a,
                      const struct proc *b);
uint32_t sim_holds(const struct world *w, uint32_t queue, uint32_t key, const struct proc *p);

/* While the process registers, the store takes it for one of its host. */
void sim_site_enter(struct proc *p, struct baton_owner *was);
void sim_site_leave(struct proc *p, const struct baton_owner *was);

/* Whether the queue has its keys in common with others, the first of which that is, or itself; and
 * how many may hold one of them. */
bool sim_is_classed(const struct world *w, uint32_t queue);
uint32_t sim_class(const struct world *w, uint32_t queue);
bool sim_waits_always(const struct world *w, uint32_t queue);
uint32_t sim_limit(const struct world *w, uint32_t queue);

/* How often a key of the queue may start; never more than SIM_STARTS times in a window. */
struct baton_key_rate sim_rate(const struct world *w, uint32_t queue);
void judge_rate_start(struct world *w, const struct grant *g, uint32_t key,
                      struct baton_store_time at);

/* How often the key was started where the registration of `g` is, or is thought to be, in the last
 * window; `g` itself does not count. */
uint64_t sim_starts(const struct world *w, const struct grant *g, uint32_t key,
                    struct baton_store_time now);

/* Whether a key of its queue has started so often by then, there or at all, that it may not now. */
bool judge_is_full(const struct world *w, const struct grant *g, uint32_t key,
                   struct baton_store_time now);
void judge_set_back(struct world *w);

/* Notes which jobs were skipped; before the clock is set, since that is kept for some time only. */
void find_skipped(struct world *w);
uint32_t job_new(struct world *w, struct rng *rng); /* SIM_JOBS_MAX: there is no room */
uint32_t judge_grant(const struct world *w, const char *id);

#endif
