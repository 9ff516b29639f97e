/* The handlers of a runner, whichever kind they are of: functions, commands, or commands that are
 * persistent workers. */
#ifndef RUNNER_HANDLERS_H
#define RUNNER_HANDLERS_H

#include "runner/beside.h"
#include "runner/calls.h"
#include "runner/commands.h"
#include "runner/settings.h"
#include "runner/streams.h"

enum handlers_kind {
	HANDLERS_CALLS = 1,
	HANDLERS_COMMANDS,
	HANDLERS_STREAMS
};

struct handlers_options {
	const struct baton_alloc *alloc;
	const struct settings *settings;
	struct inbox *inbox; /* where functions put how they ended */
	const struct baton_clock *clock;

	/* Whether that run was asked to stop; a line that its command says; that this has written
	 * more than is kept as its result; and, of commands, that it has ended, and how. What it
	 * gets lasts for the call, which calls nothing in here. */
	bool (*stopped)(void *arg, uint64_t run);
	void (*said)(void *arg, uint64_t run, struct baton_str line);
	void (*cut)(void *arg, uint64_t run);
	void (*more)(void *arg, uint64_t run, uint32_t max); /* it asks for more work */
	void (*ended)(void *arg, uint64_t run, const struct baton_work_end *end);
	void (*left)(void *arg, uint64_t visit); /* what has served a connection has ended */
	void *arg;
};

struct handlers {
	enum handlers_kind kind;
	struct handlers_options o; /* [const] */
	struct alarm alarm;        /* of the calls */
	struct calls calls;
	struct commands commands; /* has the guardian; that of the streams too */
	struct streams streams;
	uint64_t starts, restarts;   /* of workers, under guardians before this one */
	char beside[BESIDE_MAX + 1]; /* [const] the file beside which locks lie */
};

/* Begins zeroed. handlers_done() is fine after a failure.
 *
 * BATON_SYSTEM: the guardian cannot be started. BATON_NO_MEMORY, and others of wards_open(). */
enum baton_err handlers_init(struct handlers *h, const struct handlers_options *options);
void handlers_done(struct handlers *h);

/* Starts the handler of a run, which may end at once. */
void handlers_start(struct handlers *h, uint64_t run, const struct baton_work_claim *claim);

/* Asks that it stop; it ends then. */
void handlers_stop(struct handlers *h, uint64_t run, struct baton_mono now);

/* What came of it that the handler of the run has asked for more: a claim, or NULL. False: it has
 * ended, and does not get it. */
bool handlers_more(struct handlers *h, uint64_t run, const struct baton_work_claim *claim);

/* Readable when there is something to be heard; -1: there never is. */
int handlers_fd(const struct handlers *h);

/* Takes in what has happened. Never waits. */
void handlers_hear(struct handlers *h, struct baton_mono now);

/* Does what is due. To be called after each of the above, and at handlers_due() at the latest. */
void handlers_act(struct handlers *h, struct baton_mono now);
struct baton_mono handlers_due(const struct handlers *h);

/* Whether any has said how far it is since the last time; and what they have said last, a line for
 * each that there is room for. */
bool handlers_progressed(struct handlers *h);
void handlers_progress(struct handlers *h, struct buf *report);

/* The guardian, and the file that is locked while something of it lives; 0 and "": there is none.
 * And whether it has died, and what there was with it; and whether nothing of that lives. */
int32_t handlers_guardian(const struct handlers *h);
struct baton_str handlers_life(const struct handlers *h);
bool handlers_are_lost(const struct handlers *h);
bool handlers_are_gone(const struct handlers *h);

/* Persistent workers that were started, and in the place of others, so far. */
uint64_t handlers_starts(const struct handlers *h);
uint64_t handlers_restarts(const struct handlers *h);

/* Another guardian in its place, when no run is left. Errors as of handlers_init(). */
enum baton_err handlers_renew(struct handlers *h);

/* When commands are killed, or a process with functions is aborted, whatever its loop does. */
void handlers_deadline(struct handlers *h, struct baton_mono at);

/* There is no more to do: persistent workers may end by themselves. And how many have not yet. */
void handlers_leave(struct handlers *h);
uint32_t handlers_left(const struct handlers *h);

#endif
