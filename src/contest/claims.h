/* What claims need to know of time, and what a member that leaves gives back. */
#ifndef CONTEST_CLAIMS_H
#define CONTEST_CLAIMS_H

#include <baton/claim.h>

#include "contest/member.h"
#include "contest/subjects.h"

/* Learns how long the machine has slept, so that a cheap clock can tell the time. */
void claims_clock_look(struct baton_fleet *f);

/* Frees everything that the member holds. */
void claims_free_all(struct baton_fleet *f);

/* Whom `w`, the word of place `n`, is about. `asker`: a member's code, or 0. */
void claims_describe(const struct view *v, uint32_t n, struct word w, uint32_t asker,
                     struct baton_claim_holder *ret);

/* The moment at which a ttl that begins now ends, as words have it. */
uint64_t claims_expires(struct baton_duration ttl, int64_t now);

#endif
