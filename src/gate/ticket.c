/* A place in the lines of some keys. */
#include <baton/gate.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/fail.h"
#include "base/mem.h"
#include "gate/crowd.h"
#include "gate/state.h"
#include "gate/want.h"

static size_t ticket_bytes(size_t count)
{
	return sizeof(struct baton_gate_ticket) + count * sizeof(struct link);
}

static struct baton_gate_ticket *ticket_new(struct baton_gate *gate, const struct wants *w,
                                            const struct baton_wake *wake)
{
	struct baton_gate_ticket *t = mem_new(gate->alloc, ticket_bytes(w->ask->count), 1);
	if (!t)
		return NULL;
	t->gate = gate;
	t->mask = w->mask;
	t->run = w->ask->run;
	if (wake)
		t->wake = *wake;
	t->told = BATON_MONO_NEVER;
	atomic_init(&t->word, TICKET_WAITING);
	atomic_init(&t->refs, 1);
	t->count = w->ask->count;
	for (size_t i = 0; i < t->count; i++)
		t->links[i] =
			(struct link){.ticket = t, .shard = w->at[i].shard, .same = w->at[i].same};
	return t;
}

/* The first key whose line is full, or `count`. */
static size_t wants_full(const struct wants *w, const struct baton_gate *gate)
{
	size_t i = 0;
	for (; i < w->ask->count; i++) {
		uint32_t max = policy_of(gate, w->at[i].cls)->waiting_max;
		if (max > 0 && w->at[i].entry && entry_waiting(w->at[i].entry) >= max)
			break;
	}
	return i;
}

static void ticket_hold(struct baton_gate_ticket *t, const struct wants *w)
{
	for (size_t i = 0; i < t->count; i++)
		t->links[i].fence =
			entry_take(t->gate, w->at[i].shard, w->at[i].entry, &t->run, w->ask->now);
	atomic_store_explicit(&t->word, TICKET_HELD, memory_order_release);
}

static void ticket_queue(struct baton_gate_ticket *t, const struct wants *w)
{
	for (size_t i = 0; i < t->count; i++) {
		t->links[i].entry = w->at[i].entry;
		if (t->links[i].same == i)
			line_join(&t->links[i]);
	}
}

/* Under the locks: takes the keys, or queues for them. */
static enum baton_err ticket_enter(struct baton_gate_ticket *t, struct wants *w)
{
	bool admitted = wants_admitted(w, t->gate, NULL);
	size_t full = admitted ? t->count : wants_full(w, t->gate);
	if (full < t->count)
		return fail(BATON_FULL, "%u already wait for this key; waiting_max is %u",
		            (unsigned)entry_waiting(w->at[full].entry),
		            (unsigned)policy_of(t->gate, w->at[full].cls)->waiting_max);
	enum baton_err e = wants_reserve(w, t->gate, !admitted);
	if (e != BATON_OK)
		return e;
	if (admitted)
		ticket_hold(t, w);
	else
		ticket_queue(t, w);
	return BATON_OK;
}

enum baton_err baton_gate_enter(struct baton_gate *gate, const struct baton_gate_ask *ask,
                                const struct baton_wake *wake,
                                struct baton_gate_ticket **ret_ticket)
{
	struct wants w;
	enum baton_err e = wants_init(&w, gate, ask);
	if (e != BATON_OK)
		return e;
	struct baton_gate_ticket *t = ticket_new(gate, &w, wake);
	if (!t)
		return fail_memory(ticket_bytes(ask->count), "a ticket");
	struct effects fx = {.due = NULL};
	gate_lock(gate, w.mask);
	wants_find(&w, gate, &fx);
	e = ticket_enter(t, &w);
	gate_unlock(gate, w.mask);
	effects_run(&fx, ask->now);
	if (e != BATON_OK) {
		mem_free(gate->alloc, t, ticket_bytes(t->count), 1);
		return e;
	}
	atomic_fetch_add(&gate->tickets, 1);
	*ret_ticket = t;
	return BATON_OK;
}

static enum baton_err ticket_answer(const struct baton_gate_ticket *t, baton_fence *ret_fences)
{
	switch (ticket_state(t)) {
	case TICKET_WAITING:
		return BATON_YIELD;
	case TICKET_CANCELLED:
		return BATON_CANCELLED;
	case TICKET_HELD:
		break;
	}
	for (size_t i = 0; ret_fences && i < t->count; i++)
		ret_fences[i] = t->links[i].fence;
	return BATON_OK;
}

enum baton_err baton_gate_ticket_poll(struct baton_gate_ticket *t, struct baton_mono now,
                                      baton_fence *ret_fences, struct baton_gate_yield *ret_yield)
{
	enum baton_err e = ticket_answer(t, ret_fences);
	if (e != BATON_YIELD)
		return e;
	struct effects fx = {.due = NULL};
	struct baton_gate_yield yield = {.key = 0};
	ticket_ref(t);
	gate_lock(t->gate, t->mask);
	if (ticket_state(t) == TICKET_WAITING)
		(void)ticket_try(t, now, &yield, &fx);
	e = ticket_answer(t, ret_fences);
	gate_unlock(t->gate, t->mask);
	effects_run(&fx, now);
	ticket_unref(t);
	if (e == BATON_YIELD && ret_yield)
		*ret_yield = yield;
	return e;
}

/* Leaves the line if it still waits, and says whether it did. The thread that waits may learn of
 * it, and free the ticket, before this is through. */
static bool ticket_give_up(struct baton_gate_ticket *t, struct baton_mono now)
{
	struct effects fx = {.due = NULL};
	ticket_ref(t);
	gate_lock(t->gate, t->mask);
	bool waiting = ticket_state(t) == TICKET_WAITING;
	if (waiting)
		ticket_leave(t, now, &fx);
	gate_unlock(t->gate, t->mask);
	effects_run(&fx, now);
	ticket_unref(t);
	return waiting;
}

static struct baton_mono gate_now(const struct baton_gate *gate)
{
	return gate->clock->now(gate->clock);
}

enum baton_err baton_gate_ticket_wait(struct baton_gate_ticket *t, struct baton_mono until,
                                      baton_fence *ret_fences)
{
	const struct baton_clock *clock = t->gate->clock;
	for (;;) {
		struct baton_gate_yield yield;
		struct baton_mono now = gate_now(t->gate);
		/* Read before asking, so that a change after the answer is not slept through. */
		uint32_t seen = atomic_load_explicit(&t->word, memory_order_acquire);
		enum baton_err e = baton_gate_ticket_poll(t, now, ret_fences, &yield);
		if (e != BATON_YIELD)
			return e;
		if (!baton_mono_live(until, now)) {
			if (ticket_give_up(t, now))
				return BATON_TIMEOUT;
			continue;
		}
		struct baton_mono next = yield.until.ns < until.ns ? yield.until : until;
		clock->wait(clock, (const uint32_t *)&t->word, seen, next);
	}
}

bool baton_gate_ticket_cancel(struct baton_gate_ticket *t)
{
	return ticket_state(t) == TICKET_WAITING && ticket_give_up(t, gate_now(t->gate));
}

/* Waits until no other thread has the ticket in its lists, and so is inside the hook or about to
 * be. */
static void ticket_drain(struct baton_gate_ticket *t)
{
	const struct baton_clock *clock = t->gate->clock;
	uint32_t refs;
	while ((refs = atomic_load_explicit(&t->refs, memory_order_acquire)) > 1)
		clock->wait(clock, (const uint32_t *)&t->refs, refs, BATON_MONO_NEVER);
}

void baton_gate_ticket_free(struct baton_gate_ticket *t)
{
	if (!t)
		return;
	(void)baton_gate_ticket_cancel(t);
	ticket_drain(t);
	atomic_fetch_sub(&t->gate->tickets, 1);
	mem_free(t->gate->alloc, t, ticket_bytes(t->count), 1);
}

static void ticket_freep(struct baton_gate_ticket **t)
{
	baton_gate_ticket_free(*t);
}

enum baton_err baton_gate_wait(struct baton_gate *gate, const struct baton_gate_ask *ask,
                               struct baton_mono until, baton_fence *ret_fences)
{
	/* Mostly there is nothing to wait for, and no ticket to be made. */
	enum baton_err e = baton_gate_acquire(gate, ask, ret_fences, NULL);
	if (e != BATON_YIELD)
		return e;
	AUTO(ticket_freep) struct baton_gate_ticket *t = NULL;
	e = baton_gate_enter(gate, ask, NULL, &t);
	if (e != BATON_OK)
		return e;
	CHECK(t);
	return baton_gate_ticket_wait(t, until, ret_fences);
}
