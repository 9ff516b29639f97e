/* Claims between processes: one attempt, and everything that can be done with what it won. */
#include "contest/claims.h"

#include <stdatomic.h>
#include <string.h>

#include "base/fail.h"
#include "contest/attempt.h"
#include "contest/event.h"
#include "contest/line.h"
#include "contest/pause.h"
#include "contest/roster.h"
#include "contest/step.h"

#define TTL_MIN_NS NS_PER_MS

void claims_clock_look(struct baton_fleet *f)
{
	atomic_store_explicit(&f->asleep, now_on(CLOCK_BOOTTIME) - now_on(CLOCK_MONOTONIC),
	                      memory_order_relaxed);
}

uint64_t claims_expires(struct baton_duration ttl, int64_t now)
{
	if (ttl.ns <= 0)
		return 0;
	int64_t span = ttl.ns < TTL_MIN_NS ? TTL_MIN_NS : ttl.ns;
	int64_t at = baton_mono_add((struct baton_mono){now}, (struct baton_duration){span}).ns;
	return at == INT64_MAX ? 0 : at <= 0 ? 1 : (uint64_t)at;
}

void claims_describe(const struct view *v, uint32_t n, struct word w, uint32_t asker,
                     struct baton_claim_holder *ret)
{
	struct member_facts facts;
	uint64_t since = atomic_load_explicit(&v->slots[n].since, memory_order_relaxed);
	*ret = (struct baton_claim_holder){
		.why = BATON_CLAIM_HELD,
		.own = asker != 0 && word_code(w) == asker,
		.fence = {word_tenure(w)},
		.since = {since_of(since, w)},
		.expires =
			w.expires == 0 ? BATON_MONO_NEVER : (struct baton_mono){(int64_t)w.expires},
	};
	if (!roster_facts(v, word_code(w), &facts))
		return;
	ret->pid = facts.owner.pid;
	ret->incarnation = facts.owner.incarnation;
	memcpy(ret->owner, facts.owner.id, sizeof ret->owner);
}

/* Says that the member has the word `w` of place `n`, which is `s`, and notes since when: from the
 * clock if it was read anyway, else from one that is some milliseconds behind and costs a fraction.
 * Always BATON_OK, so that an attempt can end with it and has nothing to keep meanwhile. */
__attribute__((noinline)) static enum baton_err win(const struct baton_fleet *f, struct slot *s,
                                                    uint32_t n, struct word w, int64_t now)
{
	voice_say(&f->voice, BATON_EVENT_CLAIMED, w, s, n);
	if (now == NOW_UNREAD)
		now = now_on(CLOCK_MONOTONIC_COARSE) +
		      atomic_load_explicit(&f->asleep, memory_order_relaxed);
	atomic_store_explicit(&s->since, since_pack(now, w), memory_order_relaxed);
	STEP(TAKE_SAID);
	return BATON_OK;
}

/* Takes the word `w` of place `n`. False: somebody else was faster. */
static bool take(struct baton_fleet *f, uint32_t n, struct word w, struct word taken, int64_t now)
{
	struct slot *s = &f->view->slots[n];
	STEP(TAKE_SEEN);
	if (!slot_change(s, w, taken))
		return false;
	STEP(TAKE_WON);
	if (word_is_held(w))
		event_say(f->view, f->code,
		          roster_is_dead(f->view, word_code(w)) ? BATON_EVENT_DIED
		                                                : BATON_EVENT_EXPIRED,
		          w, n);
	return win(f, s, n, taken, now) == BATON_OK;
}

static enum baton_err place_find(struct attempt *a, struct key *key, uint32_t *ret_slot,
                                 struct word *ret_word)
{
	struct baton_fleet *f = a->fleet;
	*key = key_make(f->view, a->subject);
	enum baton_err e = subjects_find(f->view, key, ret_slot, ret_word);
	if (e == BATON_OK && *ret_slot != SUBJECTS_NONE) {
		a->subject->seen[0] = f->tag;
		a->subject->seen[1] = *ret_slot;
	}
	return e;
}

/* The place where a subject was last time, and one half of its word from before its name was looked
 * at: it is the subject's as long as that is the same. */
struct seen {
	struct slot *slot; /* NULL: it is not there */
	uint64_t who;
};

__attribute__((noinline)) static struct seen place_seen(const struct baton_fleet *f,
                                                        const struct baton_subject *subject)
{
	const struct view *v = f->view;
	uint64_t n = subject->seen[1];
	if (subject->seen[0] != f->tag || n >= v->params[PARAM_SUBJECTS] ||
	    !key_fits(subject, f->label_max))
		return (struct seen){NULL, 0};
	struct slot *s = &v->slots[n];
	uint64_t who = atomic_load_explicit(&s->who, memory_order_acquire);
	bool is_there = subjects_is(s, &v->names[n], subject);
	STEP(PLACE_SEEN);
	return (struct seen){is_there ? s : NULL, who};
}

/* The same with the whole word. */
static bool place_again(const struct attempt *a, uint32_t *ret_slot, struct word *ret_word)
{
	struct seen seen = place_seen(a->fleet, a->subject);
	if (seen.slot == NULL)
		return false;
	/* The name was read before the word is read again. */
	atomic_thread_fence(memory_order_acquire);
	struct word w = slot_load(seen.slot);
	if (w.who != seen.who || word_code(w) == WORD_VACANT)
		return false;
	*ret_slot = (uint32_t)a->subject->seen[1];
	*ret_word = w;
	return true;
}

int64_t attempt_now(struct attempt *a)
{
	if (a->now == NOW_UNREAD)
		a->now = pause_now();
	return a->now;
}

/* Somebody else went on meanwhile. */
static enum baton_err look_again(struct attempt *a)
{
	a->raced = true;
	return BATON_YIELD;
}

/* Takes or yields, as the word that was just seen allows. */
static enum baton_err decide(struct attempt *a, uint32_t n, struct word w)
{
	struct view *v = a->fleet->view;
	bool held = word_is_held(w);
	bool dead = held && roster_is_dead(v, word_code(w));
	if (held && !dead &&
	    (w.expires == 0 || !word_has_expired(w, word_moment(attempt_now(a))))) {
		a->own = word_code(w) == a->fleet->code;
		return BATON_YIELD;
	}
	if (atomic_load(&v->slots[n].line) != 0 &&
	    !line_admits(v, n, w, a->waiter, attempt_now(a), &a->turn))
		return BATON_YIELD;
	uint64_t expires = a->ttl.ns > 0 ? claims_expires(a->ttl, attempt_now(a)) : 0;
	struct word taken = word_taken(w, a->fleet->code, expires);
	enum baton_err e = subjects_afford(v, word_tenure(taken));
	if (e != BATON_OK)
		return e;
	if (!take(a->fleet, n, w, taken, a->now))
		return look_again(a);
	a->word = taken;
	return BATON_OK;
}

/* A subject without a place is free: whoever gives it one holds it. */
static enum baton_err settle(struct attempt *a, const struct key *key)
{
	struct baton_fleet *f = a->fleet;
	struct settler who = {
		.code = f->code,
		.expires = claims_expires(a->ttl, attempt_now(a)),
		.now = attempt_now(a),
	};
	enum baton_err e = subjects_settle(f->view, key, &who, &a->slot, &a->word);
	if (e != BATON_OK)
		return e == BATON_YIELD ? look_again(a) : e;
	a->subject->seen[0] = f->tag;
	a->subject->seen[1] = a->slot;
	STEP(TAKE_WON);
	return win(f, &f->view->slots[a->slot], a->slot, a->word, a->now);
}

static enum baton_err look(struct attempt *a)
{
	struct key key = {.hash = 0};
	uint32_t n = 0;
	struct word w = {0, 0};
	a->own = false;
	a->turn = (struct turn){.first = LINE_NONE, .again = INT64_MAX};
	a->now = a->fixed_now;
	if (!place_again(a, &n, &w)) {
		enum baton_err e = place_find(a, &key, &n, &w);
		if (e != BATON_OK)
			return e;
		if (n == SUBJECTS_NONE)
			return settle(a, &key);
	}
	a->slot = n;
	a->word = w;
	return decide(a, n, w);
}

enum baton_err attempt_begin(struct attempt *a)
{
	if (!member_is_here(a->fleet))
		return member_gone(a->fleet);
	return key_check(a->subject, a->fleet->label_max);
}

bool attempt_sweep(struct attempt *a)
{
	bool first = !a->swept;
	a->swept = true;
	return first && roster_sweep(a->fleet->view, &a->fleet->self);
}

enum baton_err attempt_make(struct attempt *a)
{
	for (int i = 0; i < ATTEMPT_LOOKS; i++) {
		a->raced = false;
		enum baton_err e = look(a);
		if (!a->raced && !(e == BATON_FULL && attempt_sweep(a)))
			return e;
	}
	return fail(BATON_BUSY, "others were faster %d times in the fleet '%.200s': try again",
	            ATTEMPT_LOOKS, a->fleet->view->segment.path);
}

void attempt_describe(const struct attempt *a, struct baton_claim_holder *ret)
{
	const struct view *v = a->fleet->view;
	if (a->turn.first == LINE_NONE) {
		claims_describe(v, a->slot, a->word, a->fleet->code, ret);
		return;
	}
	uint32_t code = atomic_load(&v->waiters[a->turn.first].owner);
	claims_describe(v, a->slot, word_make(0, code, 0), 0, ret);
	ret->why = BATON_CLAIM_IN_LINE;
	ret->since = (struct baton_mono){0};
}

void attempt_claim(const struct attempt *a, struct baton_claim *ret)
{
	*ret = (struct baton_claim){.fleet = a->fleet,
	                            .fence = {word_tenure(a->word)},
	                            .slot = a->slot};
}

__attribute__((cold)) static enum baton_err try_slowly(struct baton_fleet *fleet,
                                                       const struct baton_claim_ask *ask,
                                                       int64_t now, struct baton_claim *ret_claim,
                                                       struct baton_claim_holder *ret_holder)
{
	struct attempt a = {
		.fleet = fleet,
		.subject = ask->subject,
		.ttl = ask->ttl,
		.fixed_now = now,
		.waiter = LINE_NONE,
	};
	enum baton_err e = attempt_begin(&a);
	if (e == BATON_OK)
		e = attempt_make(&a);
	if (e == BATON_OK)
		attempt_claim(&a, ret_claim);
	else if (e == BATON_YIELD && ret_holder != NULL)
		attempt_describe(&a, ret_holder);
	return e;
}

/* The usual case without detours: the subject is where it was last time, free, and nobody waits for
 * it. Everything else is left to try_slowly(), before anything was done. */
static inline enum baton_err try_once(struct baton_fleet *f, const struct baton_claim_ask *ask,
                                      int64_t now, struct baton_claim *ret_claim,
                                      struct baton_claim_holder *ret_holder)
{
	struct seen seen = place_seen(f, ask->subject);
	struct slot *s = seen.slot;
	struct word w = {seen.who, 0};
	struct word taken = word_taken(w, f->code, 0);
	if (s == NULL || word_code(w) != WORD_FREE || atomic_load(&s->line) != 0 ||
	    ask->ttl.ns > 0 || !member_is_here(f) || !subjects_affords(f->view, word_tenure(taken)))
		return try_slowly(f, ask, now, ret_claim, ret_holder);
	STEP(TAKE_SEEN);
	if (!slot_change(s, w, taken))
		return try_slowly(f, ask, now, ret_claim, ret_holder);
	STEP(TAKE_WON);
	uint32_t n = (uint32_t)ask->subject->seen[1];
	*ret_claim = (struct baton_claim){.fleet = f, .fence = {word_tenure(taken)}, .slot = n};
	return win(f, s, n, taken, now);
}

enum baton_err baton_claim_try(struct baton_fleet *fleet, const struct baton_claim_ask *ask,
                               struct baton_claim *ret_claim, struct baton_claim_holder *ret_holder)
{
	return try_once(fleet, ask, NOW_UNREAD, ret_claim, ret_holder);
}

enum baton_err baton_claim_try_at(struct baton_fleet *fleet, const struct baton_claim_ask *ask,
                                  struct baton_mono now, struct baton_claim *ret_claim,
                                  struct baton_claim_holder *ret_holder)
{
	return try_once(fleet, ask, now.ns, ret_claim, ret_holder);
}

/* The place and word of a subject that is looked for without wanting it. */
static enum baton_err find(struct baton_fleet *fleet, struct baton_subject *subject,
                           uint32_t *ret_slot, struct word *ret_word)
{
	struct attempt a = {.fleet = fleet, .subject = subject, .waiter = LINE_NONE};
	if (!member_is_here(fleet))
		return member_gone(fleet);
	/* Whatever somebody holds, beside however short a label of his own. */
	enum baton_err e = key_check(subject, BATON_LABEL_MAX);
	if (e != BATON_OK || place_again(&a, ret_slot, ret_word))
		return e;
	struct key key;
	e = place_find(&a, &key, ret_slot, ret_word);
	return e == BATON_OK && *ret_slot == SUBJECTS_NONE ? BATON_NOT_HELD : e;
}

enum baton_err baton_claim_adopt(struct baton_fleet *fleet, struct baton_subject *subject,
                                 struct baton_claim *ret_claim)
{
	uint32_t n = 0;
	struct word w = {0, 0};
	enum baton_err e = find(fleet, subject, &n, &w);
	if (e != BATON_OK)
		return e;
	if (word_code(w) != fleet->code || word_has_expired(w, word_moment(pause_now())))
		return BATON_NOT_HELD;
	*ret_claim = (struct baton_claim){.fleet = fleet, .fence = {word_tenure(w)}, .slot = n};
	return BATON_OK;
}

/* The place of a claim, or NULL if it is lost with the fleet. */
static struct slot *claim_slot(const struct baton_claim *claim)
{
	struct baton_fleet *f = claim->fleet;
	if (f == NULL || !member_is_here(f) || claim->slot >= f->view->params[PARAM_SUBJECTS])
		return NULL;
	return &f->view->slots[claim->slot];
}

enum baton_err baton_claim_renew_at(const struct baton_claim *claim, struct baton_duration ttl,
                                    struct baton_mono now)
{
	struct slot *s = claim_slot(claim);
	if (s == NULL || !member_is_current(claim->fleet))
		return BATON_NOT_HELD;
	for (;;) {
		struct word w = slot_load(s);
		if (!word_is_live(w, claim->fleet->code, claim->fence.v, word_moment(now.ns)))
			return BATON_NOT_HELD;
		struct word renewed = word_renewed(w, claims_expires(ttl, now.ns));
		STEP(RENEW_SEEN);
		if (slot_change(s, w, renewed))
			return BATON_OK;
	}
}

enum baton_err baton_claim_renew(const struct baton_claim *claim, struct baton_duration ttl)
{
	return baton_claim_renew_at(claim, ttl, (struct baton_mono){pause_now()});
}

enum baton_err baton_claim_check_at(const struct baton_claim *claim, struct baton_mono now,
                                    struct baton_duration *ret_left)
{
	struct slot *s = claim_slot(claim);
	if (s == NULL || !member_is_current(claim->fleet))
		return BATON_NOT_HELD;
	struct word w = slot_load(s);
	if (!word_is_live(w, claim->fleet->code, claim->fence.v, word_moment(now.ns)))
		return BATON_NOT_HELD;
	if (ret_left != NULL)
		*ret_left = w.expires == 0 ? BATON_DURATION_FOREVER
		                           : (struct baton_duration){(int64_t)w.expires - now.ns};
	return BATON_OK;
}

enum baton_err baton_claim_check(const struct baton_claim *claim, struct baton_duration *ret_left)
{
	return baton_claim_check_at(claim, (struct baton_mono){pause_now()}, ret_left);
}

/* Offers what was released to those in line before it is said. Always BATON_OK. */
__attribute__((cold)) static enum baton_err pass_on(struct baton_fleet *f, uint32_t n,
                                                    struct word w)
{
	line_offer(f->view, n);
	STEP(RELEASE_OFFERED);
	voice_say(&f->voice, BATON_EVENT_RELEASED, w, &f->view->slots[n], n);
	return BATON_OK;
}

enum baton_err baton_claim_release(const struct baton_claim *claim)
{
	struct slot *s = claim_slot(claim);
	if (s == NULL)
		return BATON_NOT_HELD;
	struct baton_fleet *f = claim->fleet;
	struct word w;
	do {
		w = slot_glance(s);
		if (!word_is_of(w, f->code, claim->fence.v))
			return BATON_NOT_HELD;
		STEP(RELEASE_SEEN);
	} while (!slot_change(s, w, word_freed(w)));
	STEP(RELEASE_FREED);
	if (atomic_load(&s->line) != 0)
		return pass_on(f, claim->slot, w);
	STEP(RELEASE_OFFERED);
	voice_say(&f->voice, BATON_EVENT_RELEASED, w, s, claim->slot);
	return BATON_OK;
}

void baton_claim_done(struct baton_claim *claim)
{
	if (claim->fleet != NULL)
		(void)baton_claim_release(claim);
	*claim = (struct baton_claim){.fleet = NULL};
}

void claims_free_all(struct baton_fleet *f)
{
	uint32_t fresh = view_fresh(f->view);
	for (uint32_t n = 0; n < fresh; n++) {
		struct word w = slot_load(&f->view->slots[n]);
		if (word_code(w) != f->code)
			continue;
		struct baton_claim claim = {.fleet = f, .fence = {word_tenure(w)}, .slot = n};
		(void)baton_claim_release(&claim);
	}
}

enum baton_err baton_claim_force(struct baton_fleet *fleet, struct baton_subject *subject,
                                 struct baton_claim_holder *ret_holder)
{
	struct view *v = fleet->view;
	struct baton_claim_holder holder;
	uint32_t n = 0;
	struct word w = {0, 0};
	do {
		enum baton_err e = find(fleet, subject, &n, &w);
		if (e != BATON_OK)
			return e;
		if (word_is_takeable(w, roster_is_dead(v, word_code(w)), word_moment(pause_now())))
			return BATON_NOT_HELD;
		claims_describe(v, n, w, fleet->code, &holder);
		STEP(FORCE_SEEN);
	} while (!slot_change(&v->slots[n], w, word_freed(w)));
	STEP(FORCE_FREED);
	line_offer(v, n);
	event_say(v, fleet->code, BATON_EVENT_FORCED, w, n);
	if (ret_holder != NULL)
		*ret_holder = holder;
	return BATON_OK;
}

enum baton_err baton_claim_holder(struct baton_fleet *fleet, struct baton_subject *subject,
                                  struct baton_mono now, struct baton_claim_holder *ret_holder)
{
	struct view *v = fleet->view;
	uint32_t n = 0;
	struct word w = {0, 0};
	enum baton_err e = find(fleet, subject, &n, &w);
	if (e != BATON_OK)
		return e;
	if (word_is_takeable(w, roster_is_dead(v, word_code(w)), word_moment(now.ns)))
		return BATON_NOT_HELD;
	claims_describe(v, n, w, fleet->code, ret_holder);
	return BATON_OK;
}
