/* Waiting in line for a subject. */
#include <limits.h>

#include "base/fail.h"
#include "contest/attempt.h"
#include "contest/line.h"
#include "contest/pause.h"
#include "contest/roster.h"
#include "contest/step.h"

/* How often to look at the own bell before going to sleep: a holder that is about to let go is not
 * worth two switches of the processor. */
#define SPINS 200

void baton_cancel(struct baton_cancel *cancel)
{
	__atomic_store_n(&cancel->word, 1, __ATOMIC_SEQ_CST);
	pause_wake(&cancel->word, INT_MAX, true);
}

static bool is_cancelled(const struct baton_cancel *cancel)
{
	return cancel != NULL && __atomic_load_n(&cancel->word, __ATOMIC_SEQ_CST) != 0;
}

/* What to sleep on so that the end of the member `code` is noticed: the kernel wakes somebody only
 * if the word says that somebody sleeps. */
static struct spot life_spot(const struct view *v, uint32_t code)
{
	struct member *m = view_member(v, code);
	if (m == NULL)
		return (struct spot){.word = NULL};
	uint32_t life = atomic_load(&m->life);
	while (!life_is_dead(life) && (life & FUTEX_WAITERS) == 0 &&
	       !atomic_compare_exchange_weak(&m->life, &life, life | FUTEX_WAITERS))
		;
	/* One that is dead by now will wake nobody, so there is nothing to sleep on. */
	uint32_t seen = life_is_dead(life) ? ~life : life | FUTEX_WAITERS;
	return (struct spot){.word = &m->life, .seen = seen};
}

/* The kernel wakes one of those who sleep on a dead member's life; that one wakes the others. */
static void death_tell(const struct view *v, uint32_t code)
{
	if (code != 0 && roster_is_dead(v, code))
		pause_wake(&view_member(v, code)->life, INT_MAX, false);
}

static void spin(const struct waiter *me, uint32_t bell)
{
	for (int i = 0; i < SPINS && atomic_load_explicit(&me->bell, memory_order_relaxed) == bell;
	     i++) {
#ifdef __x86_64__
		__builtin_ia32_pause();
#endif
	}
}

/* When the answer may be another without anybody's doing. */
static int64_t sleep_end(const struct attempt *a, const struct baton_claim_ask *ask)
{
	int64_t until = ask->until.ns < a->turn.again ? ask->until.ns : a->turn.again;
	uint64_t expires = word_is_held(a->word) ? a->word.expires : 0;
	return expires != 0 && expires < word_moment(until) ? (int64_t)expires : until;
}

/* Sleeps until the answer may be another: until the bell rings, or the holder or whoever stands in
 * front dies. */
static void sleep_in_line(const struct attempt *a, const struct baton_claim_ask *ask, uint32_t bell)
{
	const struct view *v = a->fleet->view;
	struct waiter *me = &v->waiters[a->waiter];
	uint32_t holder = word_is_held(a->word) ? word_code(a->word) : 0;
	uint32_t before = line_before(v, a->slot, a->waiter);
	spin(me, bell);
	if (atomic_load(&me->bell) != bell)
		return;
	const struct spot spots[] = {
		{.word = &me->bell, .seen = bell},
		life_spot(v, holder),
		life_spot(v, before != holder ? before : 0),
		{.word = ask->cancel, .seen = 0, .mine = true},
	};
	STEP(LINE_WAITING);
	if (!is_cancelled(ask->cancel))
		pause_until(spots, 4, sleep_end(a, ask), a->fleet->plain);
	death_tell(v, holder);
	death_tell(v, before);
}

static enum baton_err wait_in_line(struct attempt *a, const struct baton_claim_ask *ask)
{
	struct waiter *me = &a->fleet->view->waiters[a->waiter];
	for (;;) {
		uint32_t bell = atomic_load(&me->bell);
		atomic_store(&me->passed, 0);
		enum baton_err e = attempt_begin(a);
		if (e == BATON_OK)
			e = attempt_make(a);
		if (e != BATON_YIELD || a->own)
			return e;
		if (is_cancelled(ask->cancel))
			return BATON_CANCELLED;
		if (ask->until.ns <= pause_now())
			return BATON_TIMEOUT;
		sleep_in_line(a, ask, bell);
	}
}

/* Stands in line, waits and leaves it. BATON_YIELD, not to itself: begin again. */
static enum baton_err queue(struct attempt *a, const struct baton_claim_ask *ask)
{
	struct view *v = a->fleet->view;
	uint32_t n = a->slot;
	uint64_t hash = atomic_load(&v->slots[n].hash);
	enum baton_err e = line_enter(v, n, hash, a->fleet->code, &a->waiter);
	if (e != BATON_OK)
		return e;
	e = wait_in_line(a, ask);
	if (e == BATON_OK)
		STEP(LINE_WON);
	line_leave(v, n, hash, a->waiter);
	/* Whoever leaves may have been the one whose turn it was. */
	if (e != BATON_OK)
		line_offer(v, n);
	return e;
}

enum baton_err baton_claim_wait(struct baton_fleet *fleet, const struct baton_claim_ask *ask,
                                struct baton_claim *ret_claim,
                                struct baton_claim_holder *ret_holder)
{
	struct attempt a = {
		.fleet = fleet,
		.subject = ask->subject,
		.ttl = ask->ttl,
		.fixed_now = NOW_UNREAD,
	};
	enum baton_err e;
	do {
		a.waiter = LINE_NONE;
		e = attempt_begin(&a);
		if (e == BATON_OK)
			e = attempt_make(&a);
		if (e != BATON_YIELD || a.own)
			break;
		if (is_cancelled(ask->cancel))
			return BATON_CANCELLED;
		if (ask->until.ns <= pause_now()) {
			e = BATON_TIMEOUT;
			break;
		}
		e = queue(&a, ask);
	} while ((e == BATON_YIELD && !a.own) || (e == BATON_FULL && attempt_sweep(&a)));
	if (e == BATON_OK)
		attempt_claim(&a, ret_claim);
	else if ((e == BATON_YIELD || e == BATON_TIMEOUT) && ret_holder != NULL)
		attempt_describe(&a, ret_holder);
	return e;
}
