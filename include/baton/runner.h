/* A runner: a process that executes the work of queues, with one owner per lane.
 *
 * Several share a store, on one host or many. Each owns some shards of the queues that it serves,
 * claims what is ready there, and has a handler for each claim. When it can no longer prove that it
 * owns what it works on, it detaches: it stops its handlers, and runs nothing until it owns shards
 * afresh.
 *
 * Handlers are commands under a guardian, a process beside the runner that ends them whatever
 * becomes of the runner, one for each claim or persistent ones; or functions of the caller's, on
 * threads of the runner's or on the caller's own loop.
 *
 * It may also offer singletons (<baton/singleton.h>), and to put what schedules have due. */
#ifndef BATON_RUNNER_H
#define BATON_RUNNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/api.h>
#include <baton/backend.h>
#include <baton/clock.h>
#include <baton/detach.h>
#include <baton/err.h>
#include <baton/log.h>
#include <baton/shard.h>
#include <baton/singleton.h>
#include <baton/store.h>
#include <baton/str.h>
#include <baton/time.h>
#include <baton/work.h>

BATON_BEGIN

#define BATON_RUNNER_SLOTS_MAX 4096 /* handlers at once */
#define BATON_RUNNER_SERVES_MAX 64  /* queues           */
#define BATON_RUNNER_BEAT_MS 1000
#define BATON_RUNNER_TTL_MS 30000 /* where all runners are on one host, and the dead are known */
#define BATON_RUNNER_MARGIN_MS 5000
#define BATON_RUNNER_TTL_FAR_MS 10000 /* where they are not */
#define BATON_RUNNER_MARGIN_FAR_MS 2000
#define BATON_RUNNER_DRAIN_MS 15000

/* A queue that is served. */
struct baton_serve {
	struct baton_str queue;
	uint32_t weight; /* its share of the slots, 1 to BATON_RUNNER_WEIGHT_MAX; 0: 1 */
	uint32_t join;   /* batches in a claim, to BATON_JOIN_MAX; 0: 1 */
};

/* One claim, for as long as its handler runs. */
struct baton_run;

/* The claim, with its payloads and its fence. Lives until the run ends. */
BATON_API const struct baton_work_claim *baton_run_claim(const struct baton_run *run);

/* Whether it should stop: the runner was detached, or is stopped, its shard goes elsewhere, it has
 * taken longer than the timeout, or somebody cancels or replaces what it works on. Cheap: one
 * atomic load. */
BATON_API bool baton_run_cancelled(const struct baton_run *run);

/* How long it may still take: until the timeout of the handler, or until the process is aborted or
 * somebody else may have the lane, whichever comes first. The latter moves away with every beat,
 * for as long as the runner can prove that the lane is its own. 0: its time is over. Cheap: reads
 * the clock. */
BATON_API struct baton_duration baton_run_left(const struct baton_run *run);

/* Takes what has come to the lane of the run meanwhile, and may join it: what is next there, and
 * was put to be joined, up to `max` batches. It is a claim of its own, *ret_claim, with a higher
 * fence, which goes with all effects from then on; NULL: there is nothing now. It lives as long as
 * the run does, and ends with it: how the run ends holds for all of it, in one transaction. What is
 * to run alone is not given, nor passed by. A run may do that up to 31 times with success.
 *
 * Waits for the answer of the store, on a thread of the runner's: BATON_INVALID with `on_loop`, or
 * beyond BATON_JOIN_MAX. BATON_BUSY: another thread asks for the same run. */
BATON_API enum baton_err baton_run_more(struct baton_run *run, uint32_t max,
                                        const struct baton_work_claim **ret_claim);

/* The same without waiting: `got` is called by the loop with what there is, or NULL, and returns
 * soon. Until then the run is not ended. Any thread. */
typedef void (*baton_run_got)(void *arg, struct baton_run *run,
                              const struct baton_work_claim *claim);
BATON_API enum baton_err baton_run_ask(struct baton_run *run, uint32_t max, baton_run_got got,
                                       void *arg);

/* Ends the run, now or later, by any thread, exactly once: `end` says how, its proof and ids are
 * not looked at. What it points to is copied. Afterwards `run` is gone.
 *
 * BATON_INVALID: beyond a limit; the run failed with that as its error. BATON_NO_MEMORY: so too. */
BATON_API enum baton_err baton_run_end(struct baton_run *run, const struct baton_work_end *end);

/* Called for each claim, on a thread of the runner's unless `on_loop` is said, as many at once as
 * there are slots. It ends the run, or has it ended later. */
typedef void (*baton_run_call)(void *arg, struct baton_run *run);

/* How claims are handled: by a command or by a function. */
struct baton_handler {
	/* Executed for each claim, with a group of its own, and the payload on its standard input;
	 * several, or with `json`, as lines of JSON. NULL: none. It gets BATON_QUEUE, BATON_LANE,
	 * BATON_CLAIM, BATON_FENCE, BATON_ATTEMPT, BATON_SEQ and BATON_JOB in its environment. Its
	 * standard output is the result. Exit status 0 completes, 75 fails and is tried again, 65
	 * is dead at once, anything else fails. */
	char *const *command;
	bool json;
	struct baton_duration timeout; /* 0: none. A function cannot be ended: it is told to stop */
	struct baton_duration grace;   /* from SIGTERM to SIGKILL; 0: 5 s */

	/* The command is a persistent worker instead: it gets one claim after the other, and tells
	 * how each ended, in lines of JSON on its descriptor 3, a socket; docs/handlers.md has the
	 * words. When it dies it is started again. A claim that takes longer than the timeout ends
	 * its worker; one that is to stop is cancelled, and ends its worker after the grace. */
	bool stream;
	uint32_t in_flight; /* with `stream`: claims that a worker has at once; 0: 1 */

	const char *guardian; /* the helper; NULL: the installed one */

	baton_run_call call; /* without a command */
	void *arg;
	enum baton_overtime overtime; /* without a command; has to be said */

	/* Without a command; may be NULL. Called by the loop when a run should stop, besides what
	 * baton_run_cancelled() says; another thread may be about to end that run. Returns soon. */
	baton_run_call cancel;

	/* Without a command: `call` is called by the loop itself, in baton_engine_step() or
	 * baton_engine_run(), and there are no threads for it. It returns soon, and has the run
	 * ended later: a loop that is held up for longer than the runner may act on its own loses
	 * its shards, and with BATON_OVERTIME_ABORT the process. */
	bool on_loop;
};

#define BATON_RUNNER_CONNECTIONS 256 /* at once, unless it is said */
#define BATON_RUNNER_CONNECTIONS_MAX 65536

/* One connection for a lane, for as long as a function serves it. */
struct baton_visit;

/* Who it is, which lane it wants (<baton/backend.h>), and its descriptor, which stays the visit's.
 * Lives until the visit ends. */
BATON_API const struct baton_connection *baton_visit_connection(const struct baton_visit *visit);

/* That of its lane's shard. */
BATON_API baton_fence baton_visit_fence(const struct baton_visit *visit);

/* Closes the connection, which nothing of this process uses any more. By any thread, exactly once:
 * a second end aborts the process, or ends whoever has come since. Afterwards `visit` is gone. */
BATON_API void baton_visit_end(struct baton_visit *visit);

/* Called by the loop; returns soon. */
typedef void (*baton_visit_call)(void *arg, struct baton_visit *visit);

/* Connections for lanes. A client that asks a broker (<baton/client.h>) for a lane of a queue lands
 * on the runner that has its shard; this one serves those for the queues that it serves.
 *
 * If the handler is a command for each claim, it is executed for each connection too: it
 * has the connection as descriptor 3, and BATON_CONNECTION, BATON_QUEUE, BATON_LANE and
 * BATON_FENCE, that of the shard, in its environment, besides BATON_CLIENT_PID and
 * BATON_CLIENT_UID; what it writes goes to the log. When the lane goes elsewhere, or the runner is
 * detached, drains or is stopped, it gets SIGTERM, and after the handler's grace, or at the hard
 * stop, it is killed: the shard goes to nobody else before it has ended, with all that it started.
 *
 * A persistent worker gets connections on its descriptor 3, beside a line each, if it has said how
 * many it takes at once; docs/handlers.md has the words. It is told when one should end, and is
 * killed if that takes longer than the grace. A worker that ends, or is killed, ends with them. */
struct baton_runner_connections {
	bool wanted;
	const char *folder; /* of the broker, as <baton/broker.h> says; there need not be one yet */
	uint32_t max;       /* at once, to BATON_RUNNER_CONNECTIONS_MAX; 0:
	                       BATON_RUNNER_CONNECTIONS. With a command for each it is, with the
	                       slots, at most as many commands as a guardian has, 1,024. Who comes
	                       then is turned away */

	/* With a handler that is a function, these serve connections: somebody is here; and, once
	 * for each that has not ended yet, he has to be sent away, because the lane goes elsewhere
	 * or the runner does no longer own it. Whoever was ended before that call is not sent away;
	 * who ends some in other threads sees to it that none is ended during the call, or knows by
	 * himself which are there. He may be ended within these calls, or later: but the shard goes
	 * nowhere before that, and at the hard stop the process is aborted, unless the handler's
	 * overtime says that effects are fenced. */
	baton_visit_call connected, leave;
	void *arg;
};

struct baton_runner_options {
	struct baton_store *store;   /* borrowed */
	struct baton_runner_ask ask; /* ttl 0: the store's default; queues are those of `serves` */
	const struct baton_serve *serves;
	size_t serve_count;
	struct baton_handler handler;
	uint32_t slots;               /* handlers at once; 0: 4 for each processor. Of persistent
	                               * workers: processes, and each has `in_flight` claims */
	struct baton_duration beat;   /* 0: BATON_RUNNER_BEAT_MS */
	struct baton_duration margin; /* 0: the store's default; ttl >= 3 beats + margin */
	struct baton_duration drain;  /* 0: BATON_RUNNER_DRAIN_MS */
	uint64_t claims;              /* ends after so many; 0: never */
	bool until_empty;             /* ends when nothing is ready any more */
	const struct baton_log *log;  /* NULL: none; borrowed */
	struct baton_runner_connections connections;

	/* What it offers besides; with any of these there need not be a queue, and then there is no
	 * handler. Their leases have the ttl and the margin of the runner. A runner without weight,
	 * or that drains, offers nothing. */
	const struct baton_singleton *singletons;
	size_t singleton_count; /* to BATON_SINGLETONS_MAX */
	bool schedules;         /* to put what schedules have due: one runner of a store does */

	/* Called by the loop when it was detached, or attached again. May be NULL. */
	void (*changed)(void *arg, const struct baton_detach_info *info);
	void *arg;
};

/* How it stands. */
struct baton_runner_status {
	struct baton_detach_info detach;
	uint64_t number; /* of the registration; 0: none now */
	uint32_t running, slots, shards;
	uint32_t connections; /* that are served */
	uint64_t started, completed, failed, returned;
	uint64_t refused;  /* ends that came under an old fence */
	uint64_t detached; /* how often */
	uint64_t ticks, takeovers;
};

struct baton_engine;

/* Prepares a runner; nothing is registered yet.
 *
 * BATON_INVALID: a bad option; the detail says which, and its limit. BATON_SYSTEM: the guardian
 * cannot be started. BATON_NO_MEMORY.
 * What options point to is borrowed until the end. */
BATON_API enum baton_err baton_engine_open(const struct baton_runner_options *options,
                                           struct baton_engine **ret_engine);

/* Runs until it is stopped, or has done what it was to do.
 *
 * BATON_OK. BATON_YIELD: a runner of that name is there. BATON_NOT_HELD: another one has taken its
 * place. BATON_INVALID, BATON_FULL: it cannot be registered. BATON_SYSTEM: there is no guardian any
 * more. BATON_STORAGE: it was stopped, but the store cannot be told: others get what it had when
 * its time is over, at the latest. BATON_TIMEOUT: so too, as a call to the store has not returned,
 * and baton_engine_close() waits for that. BATON_BUSY: it was stopped, but a process of a handler
 * lives on though it was killed; others of the host get what it had when that has ended. The detail
 * says what. */
BATON_API enum baton_err baton_engine_run(struct baton_engine *engine);

/* Instead of baton_engine_run(), for who has a loop of his own: a descriptor that is readable when
 * there is something to do, for poll(2), select(2) or epoll(7), and what does it, which never
 * waits. At first, and then each time that the descriptor is readable, one thread at a time calls
 * baton_engine_step(), never from a function that it has called itself.
 *
 * False: it is over, and *ret_err, with the detail, is as baton_engine_run() says. True: it goes
 * on, and *ret_err is untouched. */
BATON_API int baton_engine_fd(const struct baton_engine *engine);
BATON_API bool baton_engine_step(struct baton_engine *engine, enum baton_err *ret_err);

/* Claims nothing more; what runs may go on for `grace`, the rest is given back, and then
 * baton_engine_run() returns. Any thread; also from a signal handler. */
BATON_API void baton_engine_stop(struct baton_engine *engine, struct baton_duration grace);

/* Detaches by hand, and attaches again. Any thread. */
BATON_API void baton_engine_detach(struct baton_engine *engine);
BATON_API void baton_engine_attach(struct baton_engine *engine);

/* Any thread. */
BATON_API void baton_engine_look(struct baton_engine *engine, struct baton_runner_status *ret);

/* Ends it; nothing runs. NULL is fine. */
BATON_API void baton_engine_close(struct baton_engine *engine);

BATON_END

#endif
