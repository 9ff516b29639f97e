/* Who may go on: the decision about a key, and how its line moves.
 *
 * A ticket for one key moves under that key's lock. A ticket for several needs the locks of them
 * all, some of which come before the one that is held: it goes onto a list of due tickets, which is
 * worked off after the locks have been given up. Nobody passes it meanwhile, because whoever finds
 * a line goes to its end. Tickets join all their lines at once, so they stand in the same order
 * everywhere and never wait for one another in a circle. */
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "gate/crowd.h"
#include "gate/state.h"

#define ADMITTED ((enum baton_gate_why)0)

/* How an entry stands towards `run`, whose place in line is `link`, NULL for a newcomer. */
static enum baton_gate_why entry_why(const struct baton_gate *gate, struct entry *e,
                                     const struct baton_id *run, const struct link *link,
                                     struct baton_mono now)
{
	const struct baton_key_policy *policy = policy_of(gate, e->cls);
	if (crowd_find(&gate->seed, e, run))
		return ADMITTED;
	if (e->crowd && e->crowd->first && e->crowd->first != link)
		return BATON_GATE_IN_LINE;
	if (e->holders >= policy->limit)
		return BATON_GATE_HELD;
	if (baton_mono_live(crowd_opens(e, policy), now))
		return BATON_GATE_RATE;
	return ADMITTED;
}

/* When time alone may change that answer. Who is not the first in line will be, and is told then.
 *  */
static struct baton_mono entry_until(const struct baton_gate *gate, const struct entry *e,
                                     enum baton_gate_why why)
{
	switch (why) {
	case BATON_GATE_HELD:
		return crowd_soonest(e);
	case BATON_GATE_RATE:
		return crowd_opens(e, policy_of(gate, e->cls));
	case BATON_GATE_IN_LINE:
		break;
	}
	return BATON_MONO_NEVER;
}

static void yield_describe(const struct baton_gate *gate, const struct entry *e, size_t key,
                           enum baton_gate_why why, struct baton_gate_yield *y)
{
	y->key = key;
	y->why = why;
	y->holder = (struct baton_gate_holder){.expires = BATON_MONO_NEVER};
	if (why == BATON_GATE_IN_LINE)
		y->holder.run = e->crowd->first->ticket->run;
	else if (e->holders > 0)
		y->holder = e->first;
	y->holders = e->holders;
	y->limit = policy_of(gate, e->cls)->limit;
	y->waiting = entry_waiting(e);
	y->until = BATON_MONO_NEVER;
}

bool entry_refuses(const struct baton_gate *gate, struct entry *e, const struct asker *asker,
                   size_t key, struct baton_gate_yield *yield)
{
	enum baton_gate_why why = entry_why(gate, e, &asker->run, asker->link, asker->now);
	if (why == ADMITTED)
		return false;
	if (!yield->why)
		yield_describe(gate, e, key, why, yield);
	struct baton_mono until = entry_until(gate, e, why);
	if (until.ns < yield->until.ns)
		yield->until = until;
	return true;
}

void entry_watch(struct shard *s, struct entry *e)
{
	if (entry_timed(e))
		return;
	struct entry *head = s->timed ? s->timed : e;
	struct entry *tail = s->timed ? head->crowd->timed_prev : e;
	e->crowd->timed_prev = tail;
	e->crowd->timed_next = head;
	tail->crowd->timed_next = head->crowd->timed_prev = e;
	s->timed = head;
}

static void entry_unwatch(struct shard *s, struct entry *e)
{
	struct crowd *c = e->crowd;
	if (!c || !c->timed_next)
		return;
	if (s->timed == e)
		s->timed = c->timed_next == e ? NULL : c->timed_next;
	c->timed_prev->crowd->timed_next = c->timed_next;
	c->timed_next->crowd->timed_prev = c->timed_prev;
}

void entry_forget(struct baton_gate *gate, struct shard *s, struct entry *e)
{
	if (e->holders > 0 || (e->crowd && (e->crowd->waiting > 0 || e->crowd->starts_len > 0)))
		return;
	entry_unwatch(s, e);
	crowd_free(gate->alloc, e);
	table_remove(&s->table, e);
}

void entry_pass_time(struct baton_gate *gate, struct entry *e, struct baton_mono now)
{
	crowd_expire(&gate->seed, e, now);
	crowd_prune(e, policy_of(gate, e->cls)->window, now);
}

void shard_sweep(struct baton_gate *gate, struct shard *s, struct baton_mono now, uint32_t few)
{
	for (; few > 0 && s->timed; few--) {
		struct entry *e = s->timed;
		s->timed = e->crowd->timed_next;
		entry_pass_time(gate, e, now);
		entry_forget(gate, s, e);
	}
}

baton_fence entry_take(struct baton_gate *gate, struct shard *s, struct entry *e,
                       const struct baton_id *run, struct baton_mono now)
{
	const struct baton_key_policy *policy = policy_of(gate, e->cls);
	struct baton_mono expires =
		policy->ttl.ns ? baton_mono_add(now, policy->ttl) : BATON_MONO_NEVER;
	struct baton_gate_holder *held = crowd_find(&gate->seed, e, run);
	if (held) {
		crowd_renew(e, held, expires);
		return held->fence;
	}
	struct baton_gate_holder holder = {*run, {++s->fence}, now, expires};
	crowd_add(&gate->seed, e, &holder);
	if (policy_timed(policy))
		entry_watch(s, e);
	if (policy->rate)
		crowd_start(e, now);
	return holder.fence;
}

static void futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void ticket_ref(struct baton_gate_ticket *t)
{
	atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
}

/* Whoever frees the ticket waits for the lists to let go of it. He may be faster than the wake-up,
 * which then names an address that is somebody else's: waiters on futexes look again in any case.
 *  */
void ticket_unref(struct baton_gate_ticket *t)
{
	if (atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) == 2)
		futex_wake(&t->refs);
}

/* Puts a ticket for several keys on the list of due ones, unless it is on somebody's already: that
 * one looks at it later than now, because he clears the mark before he takes the locks. */
static void ticket_due(struct baton_gate_ticket *t, struct effects *fx)
{
	if (atomic_exchange_explicit(&t->due, true, memory_order_acq_rel))
		return;
	ticket_ref(t);
	t->due_next = fx->due;
	fx->due = t;
}

/* Changes the state, or only the count of changes, and has the ticket's thread and its hook told
 * that they should look again. As above: if it is on somebody's list, that one wakes them later
 * than now. Whoever sees a state in which nothing is waited for may free the ticket: from before
 * that moment on, the reference of the list keeps it. */
static void ticket_change(struct baton_gate_ticket *t, enum ticket_state state, struct effects *fx)
{
	uint32_t word = atomic_load_explicit(&t->word, memory_order_relaxed) & ~TICKET_STATE_MASK;
	word += TICKET_STATE_MASK + 1;
	ticket_ref(t);
	/* Pairs with ticket_state(). */
	atomic_store_explicit(&t->word, word | (uint32_t)state, memory_order_release);
	if (atomic_exchange_explicit(&t->woken, true, memory_order_acq_rel)) {
		ticket_unref(t);
		return;
	}
	t->woken_next = NULL;
	*(fx->woken ? &fx->woken_last->woken_next : &fx->woken) = t;
	fx->woken_last = t;
}

static bool ticket_look(struct baton_gate_ticket *t, struct baton_mono now, struct effects *fx);

void entry_settle(struct baton_gate *gate, struct shard *s, struct entry *e, struct baton_mono now,
                  struct effects *fx)
{
	entry_pass_time(gate, e, now);
	crowd_shrink(gate->alloc, &gate->seed, e);
	while (e->crowd && e->crowd->first) {
		struct baton_gate_ticket *t = e->crowd->first->ticket;
		if (t->count > 1) {
			ticket_due(t, fx);
			return;
		}
		if (!ticket_look(t, now, fx))
			return;
	}
	entry_forget(gate, s, e);
}

void line_join(struct link *l)
{
	struct crowd *c = l->entry->crowd;
	l->prev = c->last;
	l->next = NULL;
	*(c->last ? &c->last->next : &c->first) = l;
	c->last = l;
	c->waiting++;
}

static void line_leave(struct link *l)
{
	struct crowd *c = l->entry->crowd;
	*(l->prev ? &l->prev->next : &c->first) = l->next;
	*(l->next ? &l->next->prev : &c->last) = l->prev;
	c->waiting--;
}

static bool ticket_admitted(struct baton_gate_ticket *t, struct baton_mono now,
                            struct baton_gate_yield *ret_yield)
{
	bool admitted = true;
	ret_yield->why = ADMITTED;
	for (size_t i = 0; i < t->count; i++) {
		struct asker asker = {t->run, &t->links[i], now};
		if (t->links[i].same != i)
			continue;
		entry_pass_time(t->gate, t->links[i].entry, now);
		if (entry_refuses(t->gate, t->links[i].entry, &asker, i, ret_yield))
			admitted = false;
	}
	return admitted;
}

static void ticket_grant(struct baton_gate_ticket *t, struct baton_mono now, struct effects *fx)
{
	for (size_t i = 0; i < t->count; i++) {
		struct link *l = &t->links[i];
		if (l->same == i) {
			line_leave(l);
			l->fence = entry_take(t->gate, l->shard, l->entry, &t->run, now);
		} else {
			l->fence = t->links[l->same].fence;
		}
	}
	ticket_change(t, TICKET_HELD, fx);
}

/* For the first in line: lets it go on, or sees to it that it looks again when time lets it. */
static bool ticket_look(struct baton_gate_ticket *t, struct baton_mono now, struct effects *fx)
{
	struct baton_gate_yield yield;
	if (ticket_admitted(t, now, &yield)) {
		ticket_grant(t, now, fx);
		return true;
	}
	if (yield.until.ns < t->told.ns) {
		t->told = yield.until;
		ticket_change(t, TICKET_WAITING, fx);
	}
	return false;
}

/* Moves the lines that a ticket has just left. */
static void ticket_settle(struct baton_gate_ticket *t, struct baton_mono now, struct effects *fx)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->links[i].same == i)
			entry_settle(t->gate, t->links[i].shard, t->links[i].entry, now, fx);
}

bool ticket_try(struct baton_gate_ticket *t, struct baton_mono now,
                struct baton_gate_yield *ret_yield, struct effects *fx)
{
	if (!ticket_admitted(t, now, ret_yield)) {
		t->told = ret_yield->until;
		return false;
	}
	ticket_grant(t, now, fx);
	ticket_settle(t, now, fx);
	return true;
}

void ticket_leave(struct baton_gate_ticket *t, struct baton_mono now, struct effects *fx)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->links[i].same == i)
			line_leave(&t->links[i]);
	ticket_change(t, TICKET_CANCELLED, fx);
	ticket_settle(t, now, fx);
}

static void due_run(struct baton_gate_ticket *t, struct baton_mono now, struct effects *fx)
{
	/* Cleared before the locks are taken: see ticket_due(). */
	(void)atomic_exchange_explicit(&t->due, false, memory_order_acq_rel);
	gate_lock(t->gate, t->mask);
	if (ticket_state(t) == TICKET_WAITING && ticket_look(t, now, fx))
		ticket_settle(t, now, fx);
	gate_unlock(t->gate, t->mask);
	ticket_unref(t);
}

static void woken_run(struct baton_gate_ticket *t)
{
	/* Cleared before they are woken: see ticket_change(). An exchange, so that what was changed
	 * before a mark that was found set is seen here. */
	(void)atomic_exchange_explicit(&t->woken, false, memory_order_acq_rel);
	futex_wake(&t->word);
	if (t->wake.call && ticket_state(t) != TICKET_CANCELLED)
		t->wake.call(t->wake.arg);
	ticket_unref(t);
}

void effects_work_off(struct effects *fx, struct baton_mono now)
{
	while (fx->due) {
		struct baton_gate_ticket *t = fx->due;
		fx->due = t->due_next;
		due_run(t, now, fx);
	}
	while (fx->woken) {
		struct baton_gate_ticket *t = fx->woken;
		fx->woken = t->woken_next;
		woken_run(t);
	}
}
