/* One attempt to hold a subject, be it by somebody who asks once or by somebody who waits. */
#ifndef CONTEST_ATTEMPT_H
#define CONTEST_ATTEMPT_H

#include "contest/claims.h"
#include "contest/line.h"

/* The clock has not been read; it is read only where it decides something. */
#define NOW_UNREAD INT64_MIN

/* How often an attempt looks again because somebody else was faster. */
#define ATTEMPT_LOOKS 1000

struct attempt {
	struct baton_fleet *fleet;
	struct baton_subject *subject;
	struct baton_duration ttl;
	int64_t fixed_now; /* NOW_UNREAD: what the clock says */
	uint32_t waiter;   /* our ticket, or LINE_NONE        */
	bool swept;        /* room has been looked for        */

	/* What came of the last look. */
	uint32_t slot;    /* the place                                                        */
	struct word word; /* what was seen there, or what we made of it                       */
	int64_t now;      /* when that was, if the clock was read                             */
	bool own;         /* we hold it already                                               */
	bool raced;       /* somebody else was faster, so that it counts for nothing          */
	struct turn turn; /* if it could be had but for those in line                        */
};

int64_t attempt_now(struct attempt *a);

/* Whether an attempt can be made at all: BATON_GONE, BATON_INVALID. */
enum baton_err attempt_begin(struct attempt *a);

/* Looks for room among what the dead have left, once in an attempt. Whether to try again. */
bool attempt_sweep(struct attempt *a);

/* BATON_OK: a->slot and a->word are ours. BATON_YIELD: attempt_describe() tells to whom. */
enum baton_err attempt_make(struct attempt *a);

void attempt_describe(const struct attempt *a, struct baton_claim_holder *ret);
void attempt_claim(const struct attempt *a, struct baton_claim *ret);

#endif
