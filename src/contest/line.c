/* The line of those who wait for a subject. */
#include "contest/line.h"

#include "base/fail.h"
#include "contest/index.h"
#include "contest/pause.h"
#include "contest/roster.h"
#include "contest/step.h"

/* How many at the front learn that the subject can be had: the first takes it, and the others are
 * there if it does not. */
#define OFFERS 4

static struct waiter *waiter_at(const struct view *v, uint32_t plus_one)
{
	uint32_t i = plus_one - 1;
	return i < v->params[PARAM_WAITERS] ? &v->waiters[i] : NULL;
}

static uint32_t waiter_number(const struct view *v, const struct waiter *w)
{
	return (uint32_t)(w - v->waiters) + 1;
}

/* A walk along a line that may change meanwhile, and so may end early. */
struct walk {
	const struct view *view;
	struct waiter *at; /* NULL: the end */
	uint32_t slot, left;
};

static void walk_to(struct walk *k, uint32_t plus_one)
{
	struct waiter *w = plus_one != 0 && k->left-- > 0 ? waiter_at(k->view, plus_one) : NULL;
	k->at = w != NULL && atomic_load(&w->slot) == k->slot + 1 ? w : NULL;
}

static struct walk walk_begin(const struct view *v, uint32_t n)
{
	struct walk k = {.view = v, .slot = n, .left = v->params[PARAM_WAITERS]};
	walk_to(&k, atomic_load(&v->slots[n].line));
	return k;
}

static void walk_next(struct walk *k)
{
	walk_to(k, atomic_load(&k->at->next));
}

static bool waiter_lives(const struct view *v, const struct waiter *w)
{
	return atomic_load(&w->left) == 0 && !roster_is_dead(v, atomic_load(&w->owner));
}

static void waiter_wake(struct waiter *w)
{
	atomic_fetch_add(&w->bell, 1);
	pause_wake(&w->bell, 1, false);
}

/* When the subject was first seen free by somebody who cares, with the tenure it had then: what is
 * left from another tenure does not count. */
static int64_t offered_at(const struct slot *s, struct word w)
{
	int64_t offered = atomic_load(&s->offered);
	return (offered & 0xffff) == (int64_t)(word_tenure(w) & 0xffff) ? offered >> 16 : 0;
}

static void offered_set(struct slot *s, struct word w, int64_t now)
{
	atomic_store(&s->offered, (now / 1000) << 16 | (int64_t)(word_tenure(w) & 0xffff));
}

void line_offer(struct view *v, uint32_t n)
{
	if (atomic_load(&v->slots[n].line) == 0)
		return;
	struct word w = slot_load(&v->slots[n]);
	if (!word_is_held(w))
		offered_set(&v->slots[n], w, pause_now());
	int told = 0;
	for (struct walk k = walk_begin(v, n); k.at != NULL && told < OFFERS; walk_next(&k)) {
		if (!waiter_lives(v, k.at))
			continue;
		waiter_wake(k.at);
		told += atomic_load(&k.at->passed) == 0;
	}
}

bool line_admits(struct view *v, uint32_t n, struct word w, uint32_t waiter, int64_t now,
                 struct turn *ret)
{
	struct slot *s = &v->slots[n];
	int64_t offered = offered_at(s, w);
	*ret = (struct turn){.first = LINE_NONE, .again = INT64_MAX};
	for (struct walk k = walk_begin(v, n); k.at != NULL; walk_next(&k)) {
		uint32_t number = waiter_number(v, k.at) - 1;
		if (number == waiter)
			return true;
		if (!waiter_lives(v, k.at) || atomic_load(&k.at->passed) != 0)
			continue;
		if (offered == 0) {
			offered_set(s, w, now);
			offered = offered_at(s, w);
			waiter_wake(k.at);
		}
		if (now < offered * 1000 + PATIENCE_NS) {
			*ret = (struct turn){number, offered * 1000 + PATIENCE_NS};
			return false;
		}
		atomic_store(&k.at->passed, 1);
		/* It is the turn of the next one only now. */
		offered = 0;
	}
	/* Whoever stands in line and does not find itself there sees a line that changes. */
	if (waiter != LINE_NONE)
		ret->again = now + NS_PER_MS;
	return waiter == LINE_NONE;
}

uint32_t line_before(const struct view *v, uint32_t n, uint32_t waiter)
{
	uint32_t code = 0;
	for (struct walk k = walk_begin(v, n); k.at != NULL; walk_next(&k)) {
		if (waiter_number(v, k.at) - 1 == waiter)
			return code;
		if (waiter_lives(v, k.at))
			code = atomic_load(&k.at->owner);
	}
	return 0;
}

static struct waiter *waiter_take(struct view *v, uint32_t code)
{
	uint32_t count = v->params[PARAM_WAITERS];
	uint32_t at = code * 61 % count;
	for (uint32_t i = 0; i < count; i++, at = (at + 1) % count) {
		uint32_t nobody = 0;
		struct waiter *w = &v->waiters[at];
		if (atomic_load_explicit(&w->owner, memory_order_relaxed) == 0 &&
		    atomic_compare_exchange_strong(&w->owner, &nobody, code))
			return w;
	}
	return NULL;
}

static void waiter_free(struct waiter *w)
{
	atomic_store(&w->slot, 0);
	atomic_store(&w->owner, 0);
}

/* Takes `w` out of a line that is locked; NULL: everybody who has left or is dead. Those who left
 * have nothing to do with their tickets any more; the dead are swept when they are gone. */
static void unlink_locked(struct view *v, uint32_t n, const struct waiter *w)
{
	_Atomic uint32_t *link = &v->slots[n].line;
	for (struct walk k = walk_begin(v, n); k.at != NULL;) {
		struct waiter *here = k.at;
		bool out = w != NULL ? here == w : !waiter_lives(v, here);
		walk_next(&k);
		if (!out) {
			link = &here->next;
			continue;
		}
		atomic_store(link, atomic_load(&here->next));
		STEP(LINE_UNLINKED);
		if (atomic_load(&here->left) != 0)
			waiter_free(here);
		else
			atomic_store(&here->slot, 0);
	}
}

static void append_locked(struct view *v, uint32_t n, struct waiter *w)
{
	struct slot *s = &v->slots[n];
	_Atomic uint32_t *link = &s->line;
	for (struct walk k = walk_begin(v, n); k.at != NULL; walk_next(&k))
		link = &k.at->next;
	atomic_store(&w->next, 0);
	atomic_store(&w->ticket, atomic_fetch_add(&s->tickets, 1));
	atomic_store(&w->slot, n + 1);
	STEP(LINE_ENTERING);
	atomic_store(link, waiter_number(v, w));
}

bool line_is_waited_in(const struct view *v, uint32_t n)
{
	for (struct walk k = walk_begin(v, n); k.at != NULL; walk_next(&k)) {
		if (waiter_lives(v, k.at))
			return true;
	}
	return false;
}

bool line_is_empty_locked(struct view *v, uint32_t n)
{
	unlink_locked(v, n, NULL);
	return atomic_load(&v->slots[n].line) == 0;
}

enum baton_err line_enter(struct view *v, uint32_t n, uint64_t hash, uint32_t code,
                          uint32_t *ret_waiter)
{
	struct waiter *w = waiter_take(v, code);
	if (w == NULL)
		return fail(BATON_FULL, "%u threads wait in the fleet '%.200s', which is its limit",
		            v->params[PARAM_WAITERS], v->segment.path);
	STEP(LINE_RESERVED);
	atomic_store(&w->passed, 0);
	atomic_store(&w->left, 0);
	atomic_store(&w->slot, 0);
	enum baton_err e = subjects_lock(v, n, hash);
	if (e != BATON_OK) {
		waiter_free(w);
		return e;
	}
	STEP(LINE_LOCKED);
	unlink_locked(v, n, NULL);
	append_locked(v, n, w);
	STEP(LINE_JOINED);
	subjects_unlock(v, hash);
	*ret_waiter = waiter_number(v, w) - 1;
	return BATON_OK;
}

void line_leave(struct view *v, uint32_t n, uint64_t hash, uint32_t waiter)
{
	struct waiter *w = &v->waiters[waiter];
	enum baton_err e = subjects_lock(v, n, hash);
	if (e == BATON_YIELD) {
		waiter_free(w); /* the place has another subject, so it stands in no line */
		return;
	}
	if (e != BATON_OK) {
		/* Whoever locks the line next takes it out: nothing may be done with it after. */
		atomic_store(&w->left, 1);
		return;
	}
	STEP(LINE_LEAVING);
	unlink_locked(v, n, w);
	unlink_locked(v, n, NULL);
	waiter_free(w);
	STEP(LINE_LEFT);
	subjects_unlock(v, hash);
}

void line_wake_all_of(struct view *v, uint32_t code)
{
	for (uint32_t i = 0; i < v->params[PARAM_WAITERS]; i++) {
		if (atomic_load_explicit(&v->waiters[i].owner, memory_order_relaxed) == code)
			waiter_wake(&v->waiters[i]);
	}
}

/* A ticket that its owner gave up may be freed by others, and be somebody's again, until its line
 * is locked. */
static enum baton_err waiter_sweep(struct view *v, struct waiter *w, uint32_t code)
{
	uint32_t n = atomic_load(&w->slot) - 1;
	if (n >= v->params[PARAM_SUBJECTS]) {
		waiter_free(w);
		return BATON_OK;
	}
	uint64_t hash = atomic_load(&v->slots[n].hash);
	enum baton_err e = subjects_lock(v, n, hash);
	if (e != BATON_OK && e != BATON_YIELD)
		return e;
	if (e == BATON_OK)
		unlink_locked(v, n, atomic_load(&w->owner) == code ? w : NULL);
	if (atomic_load(&w->owner) == code)
		waiter_free(w);
	if (e == BATON_OK)
		subjects_unlock(v, hash);
	return BATON_OK;
}

enum baton_err line_sweep(struct view *v, uint32_t code)
{
	for (uint32_t i = 0; i < v->params[PARAM_WAITERS]; i++) {
		if (atomic_load_explicit(&v->waiters[i].owner, memory_order_relaxed) != code)
			continue;
		enum baton_err e = waiter_sweep(v, &v->waiters[i], code);
		if (e != BATON_OK)
			return e;
	}
	return BATON_OK;
}

/* Puts the waiter into its line by its ticket. */
static void insert_locked(struct view *v, uint32_t n, struct waiter *w)
{
	_Atomic uint32_t *link = &v->slots[n].line;
	uint32_t ticket = atomic_load(&w->ticket);
	for (struct walk k = walk_begin(v, n); k.at != NULL; walk_next(&k)) {
		if (k.at == w)
			return;
		/* Tickets are counted round, so that the difference tells. */
		if ((int32_t)(atomic_load(&k.at->ticket) - ticket) > 0)
			break;
		link = &k.at->next;
	}
	atomic_store(&w->next, atomic_load(link));
	atomic_store(link, waiter_number(v, w));
}

void line_repair(struct view *v, const struct shard *shard)
{
	uint32_t fresh = view_fresh(v);
	for (uint32_t n = 0; n < fresh; n++) {
		if (index_shard(v, atomic_load(&v->slots[n].hash)) == shard &&
		    atomic_load(&v->slots[n].listed) != 0)
			atomic_store(&v->slots[n].line, 0);
	}
	for (uint32_t i = 0; i < v->params[PARAM_WAITERS]; i++) {
		struct waiter *w = &v->waiters[i];
		uint32_t n = atomic_load(&w->slot) - 1;
		if (atomic_load(&w->owner) == 0 || n >= v->params[PARAM_SUBJECTS] ||
		    atomic_load(&v->slots[n].listed) == 0 ||
		    index_shard(v, atomic_load(&v->slots[n].hash)) != shard)
			continue;
		insert_locked(v, n, w);
	}
}
