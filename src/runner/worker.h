/* A persistent worker as the runner sees it: a process that has claims, and a socket over which
 * both write lines. */
#ifndef RUNNER_WORKER_H
#define RUNNER_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/alloc.h>
#include <baton/err.h>
#include <baton/time.h>
#include <baton/work.h>

#include "base/buf.h"
#include "runner/progress.h"

#define WORKER_PAUSE_MIN_MS 100
#define WORKER_PAUSE_MAX_MS 30000
#define WORKER_HEALTHY_MS 60000

/* How long to wait before a worker is started again that lived for so long, after a pause of `last`
 * before it (0: none): 100 ms, and twice as long each time up to 30 s; anew after a minute of
 * life. */
struct baton_duration worker_pause(struct baton_duration last, struct baton_duration lived);

/* A claim in the hands of the workers. */
struct errand {
	struct errand *next;
	uint64_t run;
	const struct baton_work_claim *claim;
	bool given;             /* its line has been made: the worker may know of it */
	bool cancel;            /* the worker is to be told that it should stop */
	bool late;              /* its time was over */
	struct baton_mono due;  /* its time is over then                             */
	struct baton_mono last; /* and then at the latest, whatever the worker says */
	struct progress progress;
	bool asks;  /* the worker has asked for more, and has no answer yet */
	bool gives; /* that is to be made */
	const struct baton_work_claim *more; /* then: what there is, or NULL */
};

/* In the order in which they came. */
struct errands {
	struct errand *first, *last;
	uint32_t count;
};

void errands_add(struct errands *list, struct errand *errand);
void errands_remove(struct errands *list, struct errand *errand);

/* A connection in the hands of the workers. */
struct baton_connection;
struct stay {
	struct stay *next;
	uint64_t visit;                      /* its number with the runner */
	uint64_t number;                     /* and with the workers */
	struct baton_connection *connection; /* NULL: it was passed */
	baton_fence fence;
	bool given;            /* its line has been made: the worker may know of it */
	bool leave;            /* the worker is to be told that it should end */
	struct baton_mono due; /* its time is over then */
};

/* In the order in which they came. */
struct stays {
	struct stay *first, *last;
	uint32_t count;
};

void stays_add(struct stays *list, struct stay *stay);
void stays_remove(struct stays *list, struct stay *stay);

enum worker_is {
	WORKER_OFF = 0, /* there is no process */
	WORKER_ON,
	WORKER_LEAVING, /* it gets nothing more, and is to end by itself */
	WORKER_DOOMED   /* it has been killed; nothing that it says counts */
};

struct worker {
	enum worker_is is;
	int fd; /* or -1 */
	uint64_t ward;
	int32_t pid; /* 0: not known yet */
	struct errands errands;
	struct stays stays;
	uint32_t takes; /* connections at once, as it has said */
	bool heard;     /* it has said something */
	bool greeted;   /* it has said how many connections it takes */
	bool todo;      /* there are lines to be made */
	bool writes;    /* the socket is waited for to be writable */
	bool gone;      /* its end of the socket is closed */
	bool dismissed; /* the runner wants it to end */
	struct buf in;
	size_t read;    /* what is before it was given */
	size_t scanned; /* in what is before it there is no line feed, from `read` on */
	struct buf out;
	size_t written;
	struct stay *passing;      /* whose line is the last in `out`, and not begun yet; or NULL */
	size_t pass_at;            /* where that line begins */
	bool blameless;            /* the runner has ended it: what it had is given back */
	char why[320];             /* or why its claims fail; "": as it ended */
	struct baton_mono end_at;  /* then it is killed; or BATON_MONO_NEVER */
	struct baton_mono started; /* when it was, the last time */
	struct baton_duration pause;  /* before that */
	struct baton_mono not_before; /* when it may be started again */
};

/* A worker without a process. */
void worker_init(struct worker *w, const struct baton_alloc *alloc);

/* Closes the socket and forgets what was on the way. Fine twice. */
void worker_shut(struct worker *w);

/* Adds the line that gives a claim, or one that cancels it. Not BATON_OK: nothing was added, and
 * the detail says why. */
enum baton_err worker_give(struct worker *w, const struct baton_work_claim *claim);
enum baton_err worker_cancel(struct worker *w, const struct baton_work_claim *claim);

/* Adds the answer to who has asked for more: that, or NULL. Errors as above. */
enum baton_err worker_more(struct worker *w, const struct baton_work_claim *claim,
                           const struct baton_work_claim *more);

/* Adds the line that gives a connection, which goes with its first byte, or one that says that it
 * should end. Nothing more is added before it was passed. Errors as above. */
enum baton_err worker_pass(struct worker *w, struct stay *stay);
enum baton_err worker_send_away(struct worker *w, const struct stay *stay);

/* Whether so much waits to be written that no more lines should be made. */
bool worker_is_full(const struct worker *w);

/* Writes what can be written now. False: there is more. What was passed is closed here; if it
 * cannot be, its line is taken back, and the stay has its connection still, but is not `passing`
 * any more. */
bool worker_write(struct worker *w);

enum worker_got {
	WORKER_SOME = 1,
	WORKER_NOTHING, /* now */
	WORKER_END      /* ever again */
};

/* Reads a bounded part of what is there, after worker_line() has said that there is no more.
 * BATON_NO_MEMORY: so it is; else *ret says what came. */
enum baton_err worker_read(struct worker *w, enum worker_got *ret);

/* The next line that is there, without its line feed; good until worker_read(). */
bool worker_line(struct worker *w, struct baton_str *ret);

/* The bytes of a line that has no end yet. */
size_t worker_rest(const struct worker *w);

#endif
