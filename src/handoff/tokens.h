/* The tokens of connections that are on their way: issued once, accepted once. Pure: time and
 * randomness are arguments. */
#ifndef HANDOFF_TOKENS_H
#define HANDOFF_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/alloc.h>
#include <baton/err.h>
#include <baton/str.h>
#include <baton/time.h>

#include "handoff/chains.h"
#include "handoff/token.h"

#define TOKENS_TTL_MS 30000
#define TOKENS_MAX 1024
#define TOKENS_TRIES 16
#define TOKENS_SERVICE 64

struct tokens_policy {
	int64_t ttl_ms; /* each is raised to 1 */
	uint32_t max;
	uint32_t tries; /* when what was drawn is there already */
};

/* What a token is good for, and nothing else. */
struct token_binding {
	struct baton_str service; /* up to TOKENS_SERVICE bytes */
	uint64_t generation;      /* of the backend             */
	uint64_t connection;
};

struct token_entry {
	struct token token;
	char service[TOKENS_SERVICE];
	size_t service_len;
	uint64_t generation;
	uint64_t connection;
	struct baton_mono expires;
	uint32_t older; /* the age list; of free places only `newer` counts */
	uint32_t newer;
};

struct tokens {
	const struct baton_alloc *alloc;
	struct token_source source;
	struct tokens_policy policy;
	struct token_entry *entries;
	struct chains by_token;
	struct chains by_connection;
	uint32_t oldest;
	uint32_t newest;
	uint32_t free;
	size_t pending;
};

/* BATON_NO_MEMORY: nothing is taken. */
enum baton_err tokens_init(struct tokens *t, const struct baton_alloc *alloc,
                           struct tokens_policy policy, struct token_source source);

/* Wipes and frees. Fine for zeros. */
void tokens_done(struct tokens *t);

/* Makes a token for that connection, in place of any that it had.
 *
 * BATON_FULL: as many as can be are pending, or all that was drawn is there already.
 * BATON_SYSTEM: no randomness. Unless BATON_OK *ret is untouched. */
enum baton_err tokens_issue(struct tokens *t, const struct token_binding *binding,
                            struct baton_mono now, struct token *ret);

/* Takes one over that was issued elsewhere; the one that expires first comes first. BATON_FULL.
 * BATON_CONFLICT: the token, or one for that connection, is there. */
enum baton_err tokens_adopt(struct tokens *t, const struct token_binding *binding,
                            struct baton_mono expires, const struct token *token);

enum token_verdict {
	TOKEN_ACCEPTED = 1,
	TOKEN_NOT_PENDING, /* nothing is on its way that is so bound                       */
	TOKEN_EXPIRED,     /* it was, whatever the value; it is removed                    */
	TOKEN_MISMATCH     /* it is, with another token, which stays                       */
};

/* Accepts a token once. */
enum token_verdict tokens_consume(struct tokens *t, const struct token_binding *binding,
                                  const struct token *presented, struct baton_mono now);

/* Removes it; false: it was not there. */
bool tokens_revoke(struct tokens *t, const struct token *token);

/* Removes those that have expired; as many steps as there are of them. Returns how many. */
size_t tokens_sweep(struct tokens *t, struct baton_mono now);

#endif
