/* The singletons that a runner offers: asks for their leases, starts and stops them. */
#ifndef RUNNER_SEATS_H
#define RUNNER_SEATS_H

#include <baton/runner.h>

#include "runner/duty.h"
#include "runner/settings.h"
#include "runner/ticker.h"
#include "runner/usher.h"
#include "runner/waiter.h"

struct seats_options {
	const struct baton_alloc *alloc;
	const struct settings *settings;
	struct baton_detach *detach;
	struct inbox *inbox;
};

/* All is [loop]. */
struct seats {
	struct seats_options o;
	const struct baton_clock *clock;
	struct ticker ticker;
	char beside[BESIDE_MAX + 1];
	struct baton_duty *duties;
	size_t count;
	struct usher usher;
	bool asking;
	size_t turn;                /* who is asked next whether he wants something */
	struct waiter waiter;       /* for commands that have news, and the next moment */
	struct baton_mono nudge_at; /* no earlier is the ticker told of news */
	bool news;                  /* it is to be told */
};

/* The waiter is readable when there is something to do. Zeros with a waiter that is not open are
 * fine for seats_done(). */
enum baton_err seats_init(struct seats *seats, const struct seats_options *options);

/* Ends all, and waits for a call that is under way. */
void seats_done(struct seats *seats);

/* Does what is to be done now, the runner being as `lead` says. */
void seats_act(struct seats *seats, enum seat_lead lead);

/* A schedule may have changed; somebody on this host has died. */
void seats_news(struct seats *seats);
void seats_look(struct seats *seats);

/* Whether nothing runs and nothing is held; `hurry`: or cannot be given back. */
bool seats_are_over(const struct seats *seats, bool hurry);

/* Whether a command runs. */
bool seats_have_command(const struct seats *seats);

#endif
