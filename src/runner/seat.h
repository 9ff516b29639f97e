/* The right to be the one instance of a singleton, decided: when its lease is asked for, renewed
 * and given back, and when the instance starts and stops.
 *
 * No clock, thread or call in here: whoever drives it brings the moment and says what came back.
 * One request of a seat is under way at a time. */
#ifndef RUNNER_SEAT_H
#define RUNNER_SEAT_H

#include <stdbool.h>

#include <baton/err.h>
#include <baton/lease.h>
#include <baton/time.h>

/* What the runner may do as a whole. */
enum seat_lead {
	SEAT_LEAVE = 1, /* it is detached, drains or ends: nothing may run    */
	SEAT_STAY,      /* it is suspect: what runs may go on, nothing starts */
	SEAT_LEAD       /* it is attached                                     */
};

/* What the store is to be asked. */
enum seat_kind {
	SEAT_CLAIM = 1,
	SEAT_RENEW,
	SEAT_RELEASE
};

enum seat_order {
	SEAT_NOTHING = 1,
	SEAT_START, /* an instance: then seat_began() or seat_delayed() is told */
	SEAT_STOP   /* it: it ends soon, or is killed at seat_hard_stop()       */
};

struct seat {
	struct baton_duration ttl, margin;
	struct baton_duration every; /* between two looks for a lease that somebody else has */

	enum seat_lead lead;
	bool held;                /* as far as is known */
	bool doubt;               /* it was to be given back, and perhaps it was */
	bool asked;               /* a request is under way */
	enum seat_kind kind;      /* of it */
	struct baton_lease lease; /* if it is held */
	struct baton_mono sent;   /* before the last claim or renewal that went well was sent */
	struct baton_mono ask_at;

	bool works;  /* an instance runs */
	bool stops;  /* it was told to stop */
	bool closed; /* nothing has to be cleared away before the lease is given back */
	struct baton_mono start_at, began_at;
	struct baton_duration pause; /* before the last start */
};

/* ttl >= 3 looks + margin, as with runners. */
void seat_init(struct seat *seat, struct baton_duration ttl, struct baton_duration margin,
               struct baton_duration every);

/* How it stands with the runner, from now on. */
void seat_set(struct seat *seat, enum seat_lead lead);

/* There may be nobody any more who has the lease: it is asked for at once. */
void seat_look(struct seat *seat);

/* What to ask the store for now; false: nothing. */
bool seat_ask(struct seat *seat, struct baton_mono now, enum seat_kind *ret_kind);

/* What came of it: it was sent at `sent`. Of a claim: BATON_OK with the lease, BATON_YIELD. Of the
 * others: BATON_OK, BATON_NOT_HELD. Of any: another error, and nobody knows what was done. */
void seat_answered(struct seat *seat, enum baton_err err, const struct baton_lease *lease,
                   struct baton_mono sent, struct baton_mono now);

/* What to do with the instance now. */
enum seat_order seat_order(struct seat *seat, struct baton_mono now);

/* It has begun; it cannot begin before a moment has passed; it has ended, with all that it has
 * started. */
void seat_began(struct seat *seat, struct baton_mono now);
void seat_delayed(struct seat *seat, struct baton_mono now);
void seat_ended(struct seat *seat, struct baton_mono now);

/* Whether nothing is to start before the lease is claimed anew, so that what is kept for instances
 * can be cleared away. */
bool seat_is_leaving(const struct seat *seat);

/* Until when it may act; when all of it has to be dead; and when it is to be asked next at the
 * latest. */
struct baton_mono seat_deadline(const struct seat *seat);
struct baton_mono seat_hard_stop(const struct seat *seat);
struct baton_mono seat_next(const struct seat *seat, struct baton_mono now);

#endif
