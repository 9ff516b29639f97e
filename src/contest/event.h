/* What is told to those who watch: written to the ring of a member, and rung if somebody sleeps. */
#ifndef CONTEST_EVENT_H
#define CONTEST_EVENT_H

#include <baton/watch.h>

#include "contest/layout.h"
#include "contest/pause.h"

/* Wakes one of those who sleep on the bell, if there are any: bell_pass() wakes the next, so that
 * it costs the same however many they are. After something was written for them. */
static inline void bell_ring(struct bell *b)
{
	if (atomic_load(&b->armed) == 0 || atomic_exchange(&b->armed, 0) == 0)
		return;
	atomic_fetch_add(&b->count, 1);
	pause_wake(&b->count, 1, false);
}

/* Who has slept on the bell, when its count was `seen`, wakes the next if it was rung. */
static inline void bell_pass(const struct bell *b, uint32_t seen)
{
	if (atomic_load(&b->count) != seen)
		pause_wake(&b->count, 1, false);
}

/* An entry of a member's ring is: the word as it was held; the place, the kind, and the low half of
 * the version of the facts about whom it is about; the hash of the subject. */
static inline struct ring_item event_pack(enum baton_event_kind kind, struct word w, uint32_t slot,
                                          uint32_t version, uint64_t hash)
{
	uint64_t b = (uint64_t)(version & 0xffff) << 48 | (uint64_t)kind << 32 | slot;
	return (struct ring_item){w.who, b, hash};
}

/* Says on the ring of the member `lane`, a code, what happened to the tenure `w` of slot `n`. */
static inline void event_say(const struct view *v, uint32_t lane, enum baton_event_kind kind,
                             struct word w, uint32_t n)
{
	const struct member *of = view_member(v, word_code(w));
	uint32_t version = of ? atomic_load_explicit(&of->version, memory_order_relaxed) : 0;
	uint64_t hash = atomic_load_explicit(&v->slots[n].hash, memory_order_relaxed);
	ring_put(view_lane(v, lane - 1), v->params[PARAM_EVENTS],
	         event_pack(kind, w, n, version, hash));
	bell_ring(&v->bells[BELL_CLAIMS]);
}

#endif
