/* Handlers that are persistent workers: processes under a guardian that get one claim after the
 * other, as lines of JSON over a socket, their descriptor 3.
 *
 * They are started when there is a claim that none has room for, and started again when they die,
 * with growing pauses. */
#ifndef RUNNER_STREAMS_H
#define RUNNER_STREAMS_H

#include <baton/log.h>
#include <baton/runner.h>

#include "base/arena.h"
#include "guardian/wards.h"
#include "runner/worker.h"

struct streams_options {
	const struct baton_alloc *alloc;
	const struct baton_handler *handler;
	struct wards *wards; /* borrowed; nobody else starts anything there */
	uint32_t processes;
	uint32_t in_flight; /* claims of each */
	uint32_t visits;    /* connections at once, of all together; 0: there never are any */
	const struct baton_log *log;

	/* Whether that run was asked to stop; and that it has ended, and how, which lasts for the
	 * call. No function of the streams is to be called then. */
	bool (*stopped)(void *arg, uint64_t run);
	void (*ended)(void *arg, uint64_t run, const struct baton_work_end *end);
	void (*more)(void *arg, uint64_t run, uint32_t max); /* it asks for more work */
	void (*left)(void *arg, uint64_t visit);             /* a connection is not served now */
	void *arg;
};

struct streams {
	struct streams_options o; /* [const] */
	int epoll;
	struct worker *workers;
	struct errand *all; /* as many as there may be claims */
	struct errand *spare;
	struct errands waiting; /* for a worker */
	struct stay *stays;     /* as many as there may be connections */
	struct stay *spare_stay;
	struct stays arriving;   /* for a worker that takes connections */
	uint64_t visits;         /* how many have come */
	bool complained;         /* that no worker takes connections */
	struct arena arena;      /* of the line that is read */
	uint64_t wards;          /* how many were started */
	uint64_t again;          /* of these in the place of one that has ended */
	uint32_t live;           /* processes */
	struct baton_mono due;   /* nothing has to be done because of the time before that */
	bool lost;               /* the guardian has died */
	struct baton_mono heard; /* when a worker was read last */
	bool progressed;         /* somebody has said how far he is */
};

/* streams_done() is fine after a failure, and for zeroed ones. */
enum baton_err streams_init(struct streams *s, const struct streams_options *options);

/* The wards end what still lives. */
void streams_done(struct streams *s);

/* Takes a claim, which the next streams_act() gives to a worker; and asks that a run be stopped. */
void streams_start(struct streams *s, uint64_t run, const struct baton_work_claim *claim);
void streams_stop(struct streams *s, uint64_t run, struct baton_mono now);

/* What came of it that a worker has asked for more: a claim, or NULL. The next streams_act() tells
 * it. False: it cannot be told any more. */
bool streams_more(struct streams *s, uint64_t run, const struct baton_work_claim *claim);

/* Takes a connection, which is the streams' from now on, and was not welcomed yet; the next
 * streams_act() gives it to a worker. And asks that it end. There are never more than `visits`. */
struct baton_connection;
void streams_visit(struct streams *s, uint64_t visit, struct baton_connection *connection,
                   baton_fence fence, struct baton_mono now);
void streams_send_away(struct streams *s, uint64_t visit, struct baton_mono now);

/* Readable when streams_hear() is to be called. */
int streams_fd(const struct streams *s);

/* Takes in what has happened to the workers, and what they say. Never waits. */
void streams_hear(struct streams *s, struct baton_mono now);

/* Does what is due: gives claims to workers, starts some, ends others. To be called after each of
 * the above, and at streams_due() at the latest. */
void streams_act(struct streams *s, struct baton_mono now);
struct baton_mono streams_due(const struct streams *s);

/* Whether any claim has come further since the last time; and how far each has, as it was said. */
bool streams_progressed(struct streams *s);
void streams_progress(const struct streams *s, struct buf *report);

/* There will be no more claims: lets the workers end by themselves. s->live have not yet. */
void streams_leave(struct streams *s);

#endif
