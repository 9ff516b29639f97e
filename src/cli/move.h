/* One move of the demonstration: what an actor does at the gate, and what came of it. */
#ifndef CLI_MOVE_H
#define CLI_MOVE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include <baton/gate.h>

#define MOVE_KEYS_MAX 2
#define MOVE_DETAIL 256

struct move {
	struct baton_gate *gate;
	struct baton_gate_key keys[MOVE_KEYS_MAX];
	size_t count;
	struct baton_id run;
	pthread_barrier_t *start; /* where it meets the others before it asks; NULL: nowhere */

	/* What came of it. */
	enum baton_err answer;
	baton_fence fences[MOVE_KEYS_MAX]; /* if BATON_OK                                     */
	struct baton_gate_yield yield;     /* if BATON_YIELD                                  */
	struct baton_gate_ticket *ticket;  /* from move_enter() to the end of move_wait()     */
	char detail[MOVE_DETAIL];          /* why, if the call failed                         */
};

/* This moment on the clock of the gate. */
struct baton_mono move_now(void);

/* Tasks for an actor, each with its move as the argument. */

/* Takes the keys, or yields. */
void move_acquire(void *move);

/* Takes a place in the line; `answer` is how it stands there. */
void move_enter(void *move);

/* Blocks until it has the keys, and leaves the line after far more time than that can take. */
void move_wait(void *move);

/* Gives the keys back. */
void move_release(void *move);

#define RACE_ROUNDS 2000

/* Two actors ask for the same key at the same moment, over and over. Each has his own race; both
 * share the barrier of their moves. */
struct race {
	struct move move;
	bool won[RACE_ROUNDS]; /* whether he got the key in that round                     */
	unsigned failed;       /* calls that were neither granted nor refused in good order */
};

/* A task with a struct race as its argument. */
void race_run(void *race);

#endif
