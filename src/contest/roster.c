/* The members of a fleet. */
#include "contest/roster.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/utf8.h"
#include "contest/event.h"
#include "contest/line.h"
#include "contest/lock.h"
#include "contest/pause.h"
#include "contest/step.h"

/* After so long a process that cannot be seen, in another pid namespace, has certainly ended when
 * its keeper has. */
#define UNSEEN_NS (10000 * NS_PER_MS)

/* A label as people read it, or "" where a damaged fleet has something else. */
static void label_clean(char *label)
{
	size_t len = strlen(label);
	for (size_t at = 0; at < len;) {
		uint32_t ch;
		size_t n = utf8_next(label + at, len - at, &ch);
		if (n == 0 || utf8_is_control(ch)) {
			label[0] = '\0';
			return;
		}
		at += n;
	}
}

bool roster_facts(const struct view *v, uint32_t code, struct member_facts *ret)
{
	const struct member *m = view_member(v, code);
	if (m == NULL)
		return false;
	uint64_t words[FACTS_WORDS];
	uint32_t version = atomic_load_explicit(&m->version, memory_order_acquire);
	for (size_t i = 0; i < FACTS_WORDS; i++)
		words[i] = atomic_load_explicit(&m->facts[i], memory_order_relaxed);
	atomic_thread_fence(memory_order_acquire);
	if ((version & 1) || atomic_load_explicit(&m->version, memory_order_relaxed) != version ||
	    atomic_load_explicit(&m->joined, memory_order_relaxed) == 0)
		return false;
	memcpy(ret, words, sizeof *ret);
	ret->owner.id[sizeof ret->owner.id - 1] = '\0';
	label_clean(ret->owner.id);
	return true;
}

static void facts_write(struct member *m, const struct member_facts *facts)
{
	uint64_t words[FACTS_WORDS] = {0};
	memcpy(words, facts, sizeof *facts);
	uint32_t version = atomic_load(&m->version) | 1;
	atomic_store(&m->version, version);
	STEP(JOIN_WRITING);
	atomic_thread_fence(memory_order_release);
	for (size_t i = 0; i < FACTS_WORDS; i++)
		atomic_store_explicit(&m->facts[i], words[i], memory_order_relaxed);
	atomic_store_explicit(&m->version, version + 1, memory_order_release);
}

/* Whether every thread of the process has ended, so that none of them can still be inside one last
 * change. The keeper's end alone does not say so. */
static bool is_gone(struct view *v, uint32_t code, const struct baton_owner *self)
{
	struct member *m = view_member(v, code);
	struct member_facts facts;
	if (!roster_facts(v, code, &facts))
		return atomic_load(&m->joined) == 0 || (atomic_load(&m->version) & 1);
	/* Of this very process, from before it called exec(): that ended all of its threads. */
	if (facts.owner.pid == self->pid && facts.owner.pid_ns == self->pid_ns &&
	    facts.owner.start == self->start && self->start != 0)
		return true;
	if (baton_owner_is_dead(self, &facts.owner, BATON_REACH_HOST))
		return true;
	if (facts.owner.pid_ns == self->pid_ns)
		return false;
	int64_t now = pause_now();
	int64_t since = atomic_load(&m->dead_since);
	if (since == 0)
		atomic_store(&m->dead_since, now);
	return since != 0 && now - since >= UNSEEN_NS;
}

/* Frees one claim of a dead member, or the room that it had taken for a new subject. */
static void sweep_slot(struct view *v, uint32_t n, uint32_t code)
{
	struct slot *s = &v->slots[n];
	struct word w = slot_load(s);
	while (word_code(w) == code) {
		bool listed = atomic_load(&s->listed) != 0;
		if (!slot_change(s, w, listed ? word_freed(w) : word_vacated(w))) {
			w = slot_load(s);
			continue;
		}
		STEP(SWEEP_FREED);
		if (!listed)
			return;
		event_say(v, code, BATON_EVENT_DIED, w, n);
		line_offer(v, n);
		return;
	}
}

/* Ends what a dead member has left behind, and frees its place. */
static enum baton_err sweep(struct view *v, uint32_t code)
{
	struct member *m = view_member(v, code);
	STEP(SWEEP_BEGIN);
	uint32_t fresh = view_fresh(v);
	for (uint32_t n = 0; n < fresh; n++) {
		if ((atomic_load_explicit(&v->slots[n].who, memory_order_relaxed) & 0xffff) == code)
			sweep_slot(v, n, code);
	}
	enum baton_err e = line_sweep(v, code);
	if (e != BATON_OK)
		return e;
	STEP(SWEEP_DONE);
	atomic_store(&m->dead_since, 0);
	atomic_store(&m->life, 0);
	atomic_store(&m->joined, 0);
	return BATON_OK;
}

static bool is_departed(const struct view *v, uint32_t code)
{
	const struct member *m = view_member(v, code);
	return m != NULL && atomic_load(&m->joined) != 0 && roster_is_dead(v, code);
}

static void sweep_all(struct view *v, const struct baton_owner *self)
{
	uint32_t used = view_members_used(v);
	for (uint32_t code = 1; code <= used; code++) {
		/* What a stopped process is in the way of is swept by the next one. */
		if (is_departed(v, code) && is_gone(v, code, self))
			(void)sweep(v, code);
	}
}

static uint32_t place_find(struct view *v)
{
	uint32_t used = view_members_used(v);
	for (uint32_t code = 1; code <= used; code++) {
		if (atomic_load(&view_member(v, code)->joined) == 0)
			return code;
	}
	if (used >= v->params[PARAM_MEMBERS])
		return 0;
	atomic_store(&v->control->members_used, used + 1);
	return used + 1;
}

/* Removes the file of a closed fleet, whose roster is locked: so of all who would one does, and
 * nobody removes the next fleet's. */
static enum baton_err file_remove(const struct view *v)
{
	if (segment_is_current(&v->segment) && unlink(v->segment.path) != 0)
		return fail_errno(errno, "'%.200s' cannot be removed", v->segment.path);
	return BATON_OK;
}

static enum baton_err join_locked(struct view *v, const struct baton_owner *self,
                                  struct keeper *keeper, uint32_t *ret_code)
{
	STEP(JOIN_LOCKED);
	if (atomic_load(&v->control->closed) != 0) {
		/* Whoever closed it may have died before it was removed. */
		enum baton_err e = file_remove(v);
		return e != BATON_OK ? e
		                     : fail(BATON_GONE, "the fleet '%.200s' was reset; join again",
		                            v->segment.path);
	}
	sweep_all(v, self);
	uint32_t code = place_find(v);
	if (code == 0)
		return fail(BATON_FULL, "the fleet '%.200s' has %u members, which is its limit",
		            v->segment.path, v->params[PARAM_MEMBERS]);
	struct member *m = view_member(v, code);
	struct member_facts facts = {.owner = *self, .since = pause_now()};
	atomic_store(&m->life, 0);
	atomic_store(&m->dead_since, 0);
	facts_write(m, &facts);
	atomic_store(&m->joined, 1);
	STEP(JOIN_WRITTEN);
	if (keeper != NULL)
		keeper_hold(keeper, &m->life, code);
	else
		atomic_store(&m->life, 1);
	STEP(JOIN_ALIVE);
	*ret_code = code;
	return BATON_OK;
}

bool roster_sweep(struct view *v, const struct baton_owner *self)
{
	bool orphaned;
	if (lock_take(v, &v->control->roster, &orphaned) != BATON_OK)
		return false;
	sweep_all(v, self);
	lock_give(&v->control->roster);
	return true;
}

enum baton_err roster_join(struct view *v, const struct baton_owner *self, struct keeper *keeper,
                           uint32_t *ret_code)
{
	/* Whoever died with the lock has left a place in a state that a sweep understands. */
	bool orphaned;
	enum baton_err e = lock_take(v, &v->control->roster, &orphaned);
	if (e != BATON_OK)
		return e;
	e = join_locked(v, self, keeper, ret_code);
	lock_give(&v->control->roster);
	return e;
}

void roster_leave(struct view *v, struct keeper *keeper, uint32_t code,
                  const struct baton_owner *self)
{
	struct member *m = view_member(v, code);
	struct member_facts facts;
	if (keeper != NULL)
		keeper_stop(keeper);
	else
		atomic_store(&m->life, 0);
	STEP(LEAVE_DEAD);
	/* Behind a stopped process it stays departed, and is swept by the next one who joins. */
	bool orphaned;
	if (lock_take(v, &v->control->roster, &orphaned) != BATON_OK)
		return;
	/* Another thread that joined meanwhile may have swept it, and somebody has it again. */
	if (roster_facts(v, code, &facts) &&
	    baton_id_equal(&facts.owner.incarnation, &self->incarnation) &&
	    line_sweep(v, code) == BATON_OK)
		atomic_store(&m->joined, 0);
	lock_give(&v->control->roster);
}

enum baton_err roster_close(struct view *v, const struct baton_owner *self)
{
	bool orphaned;
	enum baton_err e = lock_take(v, &v->control->roster, &orphaned);
	if (e != BATON_OK)
		return e;
	uint32_t used = view_members_used(v);
	uint32_t living = 0;
	struct member_facts facts = {.since = 0};
	for (uint32_t code = 1; code <= used; code++) {
		if (atomic_load(&view_member(v, code)->joined) == 0)
			continue;
		if (is_departed(v, code) && is_gone(v, code, self))
			continue;
		if (living++ == 0)
			roster_facts(v, code, &facts);
	}
	if (living == 0) {
		atomic_store(&v->control->closed, 1);
		e = file_remove(v);
		if (e != BATON_OK)
			atomic_store(&v->control->closed, 0);
	} else {
		e = fail(BATON_YIELD, "%u %s in the fleet '%.200s', such as %s (pid %d)", living,
		         living == 1 ? "member lives" : "members live", v->segment.path,
		         facts.owner.id, (int)facts.owner.pid);
	}
	lock_give(&v->control->roster);
	return e;
}
