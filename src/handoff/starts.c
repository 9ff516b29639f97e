/* How often a service may be started. */
#include "handoff/starts.h"

void starts_add(struct starts *s, struct baton_mono now)
{
	s->at[s->count++ % STARTS_MAX] = now;
}

struct baton_duration starts_wait(const struct starts *s, struct baton_mono now)
{
	if (s->count < STARTS_MAX)
		return (struct baton_duration){0};
	/* In a full ring the next place has the oldest. */
	struct baton_mono end =
		baton_mono_add(s->at[s->count % STARTS_MAX], baton_duration_ms(STARTS_WINDOW_MS));
	return baton_mono_live(end, now) ? baton_mono_sub(end, now) : (struct baton_duration){0};
}
