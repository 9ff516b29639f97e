/* What is told to those who watch: written to the ring of a member, and rung if somebody sleeps. */
#ifndef CONTEST_EVENT_H
#define CONTEST_EVENT_H

#include <baton/watch.h>

#include "contest/layout.h"

/* Wakes one of those who sleep on the bell, unless somebody else does. */
__attribute__((cold)) void bell_wake(struct bell *b);

/* Wakes one of those who sleep on the bell, if there are any: bell_pass() wakes the next, so that
 * it costs the same however many they are. After something was written for them. */
static inline void bell_ring(struct bell *b)
{
	if (atomic_load(&b->armed) != 0)
		bell_wake(b);
}

/* Who has slept on the bell, when its count was `seen`, wakes the next if it was rung. */
void bell_pass(const struct bell *b, uint32_t seen);

/* An entry of a member's ring is: the word as it was held; the place, the kind, and the low half of
 * the version of the facts about whom it is about; the hash of the subject. */
static inline struct ring_item event_pack(enum baton_event_kind kind, struct word w, uint32_t slot,
                                          uint32_t version, uint64_t hash)
{
	uint64_t b = (uint64_t)(version & 0xffff) << 48 | (uint64_t)kind << 32 | slot;
	return (struct ring_item){w.who, b, hash};
}

/* Where a member speaks: found once, because every claim needs it. */
struct voice {
	struct ring *ring;
	struct bell *bell;
	uint32_t capacity; /* of the ring                                                     */
	uint32_t version;  /* of the facts about the member, which stay while it is one       */
};

struct voice voice_of(const struct view *v, uint32_t code);

/* Says what a member did with the tenure `w` of slot `n`, which is `s`, that was its own. */
static inline void voice_say(const struct voice *voice, enum baton_event_kind kind, struct word w,
                             const struct slot *s, uint32_t n)
{
	uint64_t hash = atomic_load_explicit(&s->hash, memory_order_relaxed);
	ring_put(voice->ring, voice->capacity, event_pack(kind, w, n, voice->version, hash));
	bell_ring(voice->bell);
}

/* Says on the ring of the member `lane`, a code, what happened to anybody's tenure. */
void event_say(const struct view *v, uint32_t lane, enum baton_event_kind kind, struct word w,
               uint32_t n);

#endif
