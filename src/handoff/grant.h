/* Whose a connection is while it changes hands, as the broker and as the backend see it: two state
 * machines as tables. Pure. */
#ifndef HANDOFF_GRANT_H
#define HANDOFF_GRANT_H

#include <stdbool.h>

/* The broker's side. It has a copy of the descriptor until the Grant is sent, and then never
 * touches the connection again. */
enum passing_state {
	PASSING_OFFERED = 1, /* the offer is sent, the answer is waited for */
	PASSING_GRANTED,     /* it is the backend's */
	PASSING_REVOKED      /* it is shut down, and the client reconnects */
};

enum passing_event {
	PASSING_ACCEPTED = 1, /* acknowledged in time, and the Grant is sent */
	PASSING_REFUSED,      /* the backend does not want it */
	PASSING_TIMEOUT,      /* no acknowledgement at the deadline */
	PASSING_BROKEN /* the backend is dead or speaks nonsense, or the Grant cannot be sent */
};

/* False: that cannot happen any more, and nothing is to be done. */
bool passing_next(enum passing_state *state, enum passing_event event);

/* The backend's side. It reads and writes nothing before HELD_OWNED. */
enum held_state {
	HELD_OFFERED = 1, /* nothing is answered yet */
	HELD_ACCEPTED,    /* it has acknowledged, and waits for the Grant */
	HELD_OWNED,       /* it is its own */
	HELD_LOST         /* it is shut down unread, or given back */
};

enum held_event {
	HELD_ACCEPT = 1,  /* it wants it */
	HELD_ACCEPT_LAST, /* it wants it, and no Grant comes: it has taken it by its word, or the
	                     first request may be repeated */
	HELD_REFUSE,
	HELD_GRANT,    /* with the right token */
	HELD_DEADLINE, /* reached */
	HELD_CHANNEL   /* is lost, or what comes from it cannot be trusted */
};

/* False: that cannot happen in this state, and nothing changes. */
bool held_next(enum held_state *state, enum held_event event);

#endif
