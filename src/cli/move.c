/* One move of the demonstration: what an actor does at the gate, and what came of it. */
#include <stddef.h>
#include <stdio.h>

#include <baton/clock.h>

#include "move.h"

#define PATIENCE_S 60

struct baton_mono move_now(void)
{
	const struct baton_clock *clock = baton_clock_awake();
	return clock->now(clock);
}

static struct baton_gate_ask ask(const struct move *m)
{
	return (struct baton_gate_ask){
		.keys = m->keys,
		.count = m->count,
		.run = m->run,
		.now = move_now(),
	};
}

/* The detail belongs to the thread that made the call, so it is kept for the one that tells. */
static void keep(struct move *m, enum baton_err answer)
{
	m->answer = answer;
	snprintf(m->detail, sizeof m->detail, "%s", baton_err_detail());
}

void move_acquire(void *move)
{
	struct move *m = move;
	struct baton_gate_ask a = ask(m);
	if (m->start)
		pthread_barrier_wait(m->start);
	keep(m, baton_gate_acquire(m->gate, &a, m->fences, &m->yield));
}

void move_enter(void *move)
{
	struct move *m = move;
	struct baton_gate_ask a = ask(m);
	enum baton_err e = baton_gate_enter(m->gate, &a, NULL, &m->ticket);
	if (e == BATON_OK)
		e = baton_gate_ticket_poll(m->ticket, a.now, m->fences, &m->yield);
	keep(m, e);
}

void move_wait(void *move)
{
	struct move *m = move;
	struct baton_mono until = baton_mono_add(move_now(), baton_duration_s(PATIENCE_S));
	if (m->ticket)
		keep(m, baton_gate_ticket_wait(m->ticket, until, m->fences));
	baton_gate_ticket_free(m->ticket);
	m->ticket = NULL;
}

void move_release(void *move)
{
	struct move *m = move;
	struct baton_gate_ask a = ask(m);
	keep(m, baton_gate_release(m->gate, &a));
}

void race_run(void *race)
{
	struct race *r = race;
	struct move *m = &r->move;
	for (unsigned i = 0; i < RACE_ROUNDS; i++) {
		move_acquire(m);
		/* Nobody gives the key back before both have asked. */
		pthread_barrier_wait(m->start);
		r->won[i] = m->answer == BATON_OK;
		if (r->won[i])
			move_release(m);
		if (m->answer != BATON_OK && m->answer != BATON_YIELD)
			r->failed++;
	}
}
