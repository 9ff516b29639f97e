/* The acknowledgements that are waited for, and until when. Pure: time is an argument. */
#ifndef HANDOFF_ACKS_H
#define HANDOFF_ACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/alloc.h>
#include <baton/err.h>
#include <baton/time.h>

#include "handoff/chains.h"
#include "handoff/token.h"
#include "handoff/tokens.h"

#define ACKS_TIMEOUT_MS 5000

struct ack_entry {
	struct token token;
	uint64_t backend;
	uint64_t tag; /* the caller's */
	struct baton_mono since;
	struct baton_mono deadline;
	uint64_t order;   /* of those with the same deadline the first comes first */
	uint32_t in_heap; /* where it is there; for free places the next of them   */
};

struct acks {
	const struct baton_alloc *alloc;
	struct tokens *tokens; /* where tokens are revoked; borrowed */
	int64_t timeout_ms;
	uint32_t max;
	struct ack_entry *entries;
	uint32_t *heap; /* places, the earliest deadline first */
	uint32_t count;
	uint32_t free;
	uint64_t orders;
	struct chains by_token;
};

/* A timeout of 0 becomes 1 ms, a max of 0 becomes 1. BATON_NO_MEMORY: nothing is taken. */
enum baton_err acks_init(struct acks *a, const struct baton_alloc *alloc, struct tokens *tokens,
                         int64_t timeout_ms, uint32_t max);

/* Wipes and frees. Fine for zeros. */
void acks_done(struct acks *a);

/* Waits for the backend's acknowledgement of the token from now on; again, if it did already. With
 * a deadline beyond what can be told it is over at once. BATON_FULL: too many. */
enum baton_err acks_register(struct acks *a, const struct token *token, uint64_t backend,
                             uint64_t tag, struct baton_mono now);

enum ack_verdict {
	ACK_IN_TIME = 1,
	ACK_NOT_PENDING, /* never, no longer, or not from this backend     */
	ACK_TOO_LATE     /* at the deadline or after it; it is over now too */
};

/* Ends the wait, unless ACK_NOT_PENDING, and revokes the token. *ret_took (may be NULL), never
 * negative, is set if ACK_IN_TIME. */
enum ack_verdict acks_acknowledge(struct acks *a, const struct token *token, uint64_t backend,
                                  struct baton_mono now, struct baton_duration *ret_took);

/* Ends the wait, if there is one, and revokes the token in any case. True: there was one, for
 * *ret_backend (may be NULL). */
bool acks_abandon(struct acks *a, const struct token *token, uint64_t *ret_backend);

/* One wait that has come to an end. */
struct ack_expired {
	struct token token;
	uint64_t backend;
	uint64_t tag;
};

/* Ends the earliest wait that is over at that moment, and revokes its token. False: there is none.
 * The caller goes on until then. */
bool acks_expire(struct acks *a, struct baton_mono now, struct ack_expired *ret);

/* The earliest deadline; BATON_MONO_NEVER. */
struct baton_mono acks_next(const struct acks *a);

#endif
