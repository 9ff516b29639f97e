/* What is told to those who watch. */
#include "contest/event.h"

#include "contest/pause.h"

void bell_wake(struct bell *b)
{
	if (atomic_exchange(&b->armed, 0) == 0)
		return;
	atomic_fetch_add(&b->count, 1);
	pause_wake(&b->count, 1, false);
}

void bell_pass(const struct bell *b, uint32_t seen)
{
	if (atomic_load(&b->count) != seen)
		pause_wake(&b->count, 1, false);
}

struct voice voice_of(const struct view *v, uint32_t code)
{
	return (struct voice){
		.ring = view_lane(v, code - 1),
		.bell = &v->bells[BELL_CLAIMS],
		.capacity = v->params[PARAM_EVENTS],
		.version = atomic_load(&v->members[code - 1].version),
	};
}

void event_say(const struct view *v, uint32_t lane, enum baton_event_kind kind, struct word w,
               uint32_t n)
{
	const struct member *of = view_member(v, word_code(w));
	struct voice voice = voice_of(v, lane);
	voice.version = of != NULL ? atomic_load(&of->version) : 0;
	voice_say(&voice, kind, w, &v->slots[n], n);
}
