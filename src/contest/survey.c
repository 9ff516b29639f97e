/* Looking at a fleet without being a member: who is in it, and who holds what. */
#include <string.h>

#include "contest/claims.h"
#include "contest/roster.h"
#include "contest/watch.h"

/* Whether the place has a subject that is held at `now`. */
static bool is_held(const struct view *v, struct word w, int64_t now)
{
	return word_is_held(w) &&
	       !word_is_takeable(w, roster_is_dead(v, word_code(w)), word_moment(now));
}

/* What a place shows at one moment. False: nobody holds it, or it changes too often to tell. */
static bool show(const struct view *v, uint32_t n, int64_t now, struct name_text *text,
                 struct baton_subject *subject, struct baton_claim_holder *holder)
{
	const struct slot *slot = &v->slots[n];
	for (int i = 0; i < 1000; i++) {
		struct word w = slot_load(slot);
		if (!is_held(v, w, now))
			return false;
		bool named = subjects_name(v, n, atomic_load(&slot->hash), text, subject);
		claims_describe(v, n, w, 0, holder);
		if (named && atomic_load(&slot->who) == w.who)
			return true;
	}
	return false;
}

void baton_watch_each(struct baton_watch *w, struct baton_mono now,
                      bool (*visit)(const struct baton_subject *subject,
                                    const struct baton_claim_holder *holder, void *arg),
                      void *arg)
{
	struct name_text text;
	struct baton_subject subject;
	struct baton_claim_holder holder;
	uint32_t fresh = view_fresh(w->view);
	for (uint32_t n = 0; n < fresh; n++) {
		if (show(w->view, n, now.ns, &text, &subject, &holder) &&
		    !visit(&subject, &holder, arg))
			return;
	}
}

/* Counts what every member holds and waits for, in one walk over all of it. */
static void members_count(struct baton_watch *watch, int64_t now)
{
	const struct view *v = watch->view;
	uint32_t fresh = view_fresh(v);
	for (uint32_t i = 0; i < v->params[PARAM_MEMBERS]; i++)
		watch->members[i].held = watch->members[i].waiting = 0;
	for (uint32_t n = 0; n < fresh; n++) {
		struct word w = slot_load(&v->slots[n]);
		if (view_member(v, word_code(w)) != NULL && atomic_load(&v->slots[n].listed) != 0 &&
		    is_held(v, w, now))
			watch->members[word_code(w) - 1].held++;
	}
	for (uint32_t i = 0; i < v->params[PARAM_WAITERS]; i++) {
		uint32_t code = atomic_load(&v->waiters[i].owner);
		if (view_member(v, code) != NULL && atomic_load(&v->waiters[i].left) == 0)
			watch->members[code - 1].waiting++;
	}
}

void baton_watch_members(struct baton_watch *w, struct baton_mono now,
                         bool (*visit)(const struct baton_member *member, void *arg), void *arg)
{
	const struct view *v = w->view;
	struct member_facts facts;
	uint32_t used = view_members_used(v);
	members_count(w, now.ns);
	for (uint32_t code = 1; code <= used; code++) {
		if (roster_is_dead(v, code) || !roster_facts(v, code, &facts))
			continue;
		struct baton_member m = {.pid = facts.owner.pid,
		                         .incarnation = facts.owner.incarnation,
		                         .since = {facts.since}};
		m.held = w->members[code - 1].held;
		m.waiting = w->members[code - 1].waiting;
		memcpy(m.owner, facts.owner.id, sizeof m.owner);
		if (!visit(&m, arg))
			return;
	}
}

void baton_watch_usage(struct baton_watch *watch, struct baton_mono now,
                       struct baton_fleet_usage *ret)
{
	const struct view *v = watch->view;
	struct baton_fleet_usage u = {
		.limits = {.members = v->params[PARAM_MEMBERS],
	                   .subjects = v->params[PARAM_SUBJECTS],
	                   .waiters = v->params[PARAM_WAITERS],
	                   .events = v->params[PARAM_EVENTS],
	                   .wakeups = v->params[PARAM_WAKEUPS]},
		.bytes = v->segment.size,
		.mark = {atomic_load(&v->control->mark)},
		.id = v->segment.header->id,
	};
	uint32_t used = view_members_used(v), fresh = view_fresh(v);
	for (uint32_t code = 1; code <= used; code++) {
		if (atomic_load(&view_member(v, code)->joined) == 0)
			continue;
		if (roster_is_dead(v, code))
			u.departed++;
		else
			u.members++;
	}
	for (uint32_t n = 0; n < fresh; n++) {
		struct word w = slot_load(&v->slots[n]);
		u.known += atomic_load(&v->slots[n].listed) != 0;
		u.subjects += atomic_load(&v->slots[n].listed) != 0 && is_held(v, w, now.ns);
	}
	for (uint32_t i = 0; i < v->params[PARAM_WAITERS]; i++) {
		uint32_t owner = atomic_load(&v->waiters[i].owner);
		u.waiters += owner != 0 && atomic_load(&v->waiters[i].slot) != 0 &&
		             !roster_is_dead(v, owner) && atomic_load(&v->waiters[i].left) == 0;
	}
	*ret = u;
}
