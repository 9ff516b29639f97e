/* Connections in the hands of persistent workers: what streams.c asks for, and what it does in
 * turn. */
#ifndef RUNNER_LODGING_H
#define RUNNER_LODGING_H

#include "runner/reply.h"
#include "runner/streams.h"

/* How long one waits for a worker that takes it. A client that has reconnected goes elsewhere then.
 */
#define LODGING_WAIT_MS 5000

/* Room for as many as there may be. BATON_NO_MEMORY. */
enum baton_err lodging_init(struct streams *s);

/* Closes those that were not passed. */
void lodging_done(struct streams *s);

/* Gives those that wait to workers that have room, and starts some. */
void lodging_assign(struct streams *s, struct baton_mono now);

/* Makes lines for a worker, as far as it is of use. */
void lodging_fill(struct streams *s, struct worker *w);

/* After each worker_write(): what could not be passed ends. */
void lodging_written(struct streams *s, struct worker *w);

/* What a worker says about them. False: it is nonsense, and `error` has half a sentence. */
bool lodging_hear(struct streams *s, struct worker *w, const struct reply *reply,
                  char error[REPLY_ERROR]);

/* Whether one that the worker has should have ended by now; notes when others should. */
bool lodging_is_late(struct streams *s, struct worker *w, struct baton_mono now);

/* Turns those away for whom there was no worker in time. */
void lodging_check(struct streams *s, struct baton_mono now);

/* A worker has ended. What it was not given yet goes to another one. */
void lodging_left(struct streams *s, struct worker *w);

/* Of streams.c: something has to be looked at then; and starts a process. Not BATON_OK: there is
 * none now, and none for a while. */
void streams_note(struct streams *s, struct baton_mono at);
enum baton_err streams_begin(struct streams *s, struct worker *w, struct baton_mono now);

#endif
