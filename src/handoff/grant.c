/* Whose a connection is while it changes hands. An unset cell cannot happen. */
#include "handoff/grant.h"

bool passing_next(enum passing_state *state, enum passing_event event)
{
	static const enum passing_state next[PASSING_REVOKED + 1][PASSING_BROKEN + 1] = {
		[PASSING_OFFERED] =
			{
				[PASSING_ACCEPTED] = PASSING_GRANTED,
				[PASSING_REFUSED] = PASSING_REVOKED,
				[PASSING_TIMEOUT] = PASSING_REVOKED,
				[PASSING_BROKEN] = PASSING_REVOKED,
			},
	};
	enum passing_state then = next[*state][event];
	if (then == 0)
		return false;
	*state = then;
	return true;
}

bool held_next(enum held_state *state, enum held_event event)
{
	static const enum held_state next[HELD_LOST + 1][HELD_CHANNEL + 1] = {
		[HELD_OFFERED] =
			{
				[HELD_ACCEPT] = HELD_ACCEPTED,
				[HELD_ACCEPT_LAST] = HELD_OWNED,
				[HELD_REFUSE] = HELD_LOST,
				[HELD_DEADLINE] = HELD_LOST,
				[HELD_CHANNEL] = HELD_LOST,
			},
		[HELD_ACCEPTED] =
			{
				[HELD_GRANT] = HELD_OWNED,
				[HELD_DEADLINE] = HELD_LOST,
				[HELD_CHANNEL] = HELD_LOST,
			},
	};
	enum held_state then = next[*state][event];
	if (then == 0)
		return false;
	*state = then;
	return true;
}
