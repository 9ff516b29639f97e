/* Leases: exclusive rights to named subjects, kept in the store.
 *
 * A subject is held by at most one owner. Whoever is refused is told who holds it, and has changed
 * nothing. A holder that is provably dead is replaced at once; any other when its time has run
 * out. */
#ifndef BATON_LEASE_H
#define BATON_LEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/api.h>
#include <baton/err.h>
#include <baton/id.h>
#include <baton/owner.h>
#include <baton/store.h>
#include <baton/str.h>
#include <baton/time.h>

BATON_BEGIN

#define BATON_LEASE_TTL_MIN_MS 1
#define BATON_LEASE_TTL_MAX_MS 86400000
#define BATON_LEASE_TTL_MS 30000 /* when nothing is said */

/* The longest subject: that of a lane, "lane/QUEUE/LANE". Others have at most BATON_NAME_MAX. */
#define BATON_LEASE_SUBJECT_MAX 517

/* What is asked for. */
struct baton_lease_ask {
	struct baton_str
		subject; /* 1 to BATON_NAME_MAX bytes of UTF-8 without control characters */
	const struct baton_owner *owner; /* NULL: baton_store_owner()                          */
	struct baton_duration ttl;       /* 0: 30 s; else 1 ms to 1 day, finer ones rounded up */
	struct baton_id nonce; /* zeros: none; the same one again gets the same answer again   */
	bool reentrant;        /* what this incarnation holds already is held and extended     */
};

/* What proves that somebody holds a subject: a plain record, which may be copied. */
struct baton_lease {
	struct baton_id incarnation;
	struct baton_id token;
	baton_fence fence;
	struct baton_store_time claimed_at;
	struct baton_store_time expires_at;
};

struct baton_lease_holder {
	struct baton_owner owner;
	baton_fence fence;
	struct baton_store_time claimed_at;
	struct baton_store_time expires_at;
	bool own; /* held by the asking incarnation itself */
};

/* The answer to one ask. */
struct baton_lease_answer {
	enum baton_err err; /* BATON_OK: `lease` is held. BATON_YIELD: `holder` has it.
	                       BATON_INVALID is that of the whole call                  */
	struct baton_lease lease;
	struct baton_lease_holder holder;
};

#define BATON_LEASES_MAX 10000 /* in one call */

/* Claims every subject on its own, in one transaction: some may be held and some yielded.
 *
 * BATON_OK: answers[0..count) say which. BATON_INVALID: a bad subject or ttl; the detail says
 * which. On any error nothing has changed, as <baton/store.h> says it, and the answers mean
 * nothing. Any thread. */
BATON_API enum baton_err baton_lease_claim(struct baton_store *store,
                                           const struct baton_lease_ask *asks, size_t count,
                                           struct baton_lease_answer *answers);

/* Makes a lease of what `owner` (NULL: the store's) holds already: the same fence and token.
 *
 * BATON_NOT_HELD: this incarnation does not hold it, or not any more. */
BATON_API enum baton_err baton_lease_adopt(struct baton_store *store, struct baton_str subject,
                                           const struct baton_owner *owner,
                                           struct baton_lease *ret_lease);

/* A subject and the proof that it is held. */
struct baton_lease_proof {
	struct baton_str subject;
	struct baton_lease *lease;
};

/* Makes each last until `ttl` from the store's now, if it would not last longer anyway; `shorten`:
 * also if it would.
 *
 * BATON_OK: answers[i] is BATON_OK, and proofs[i].lease->expires_at is new, or BATON_NOT_HELD: it
 * was lost. Any thread. */
BATON_API enum baton_err baton_lease_renew(struct baton_store *store,
                                           const struct baton_lease_proof *proofs, size_t count,
                                           struct baton_duration ttl, bool shorten,
                                           enum baton_err *answers);

/* Gives each back. answers[i]: BATON_OK, or BATON_NOT_HELD: nothing was changed. A lease that has
 * expired and that nobody took since can still be given back. Any thread. */
BATON_API enum baton_err baton_lease_release(struct baton_store *store,
                                             const struct baton_lease_proof *proofs, size_t count,
                                             enum baton_err *answers);

/* Who holds the subject. BATON_NOT_HELD: nobody; *ret_holder is untouched. Any thread. */
BATON_API enum baton_err baton_lease_inspect(struct baton_store *store, struct baton_str subject,
                                             struct baton_lease_holder *ret_holder);

/* Who holds each of them, at one moment. answers[i].err: BATON_OK: answers[i].holder, or
 * BATON_NOT_HELD: nobody; `lease` means nothing. BATON_INVALID: a bad subject. Any thread. */
BATON_API enum baton_err baton_lease_inspect_many(struct baton_store *store,
                                                  const struct baton_str *subjects, size_t count,
                                                  struct baton_lease_answer *answers);

/* Waits until one of the subjects can be had: it was given back or taken away, its time is over, or
 * who holds it is known to be dead. Whoever asks for it then may still find that somebody else was
 * quicker. What happens through this handle is noticed at once; others are by looking now and then,
 * 10 ms to 1 s apart. `until`: on the store's clock. `cancel`: NULL, or a word that ends the wait
 * once it is not 0; whoever sets it calls baton_store_poke().
 *
 * BATON_OK: *ret_which is the first of those that can be had. BATON_TIMEOUT. BATON_CANCELLED.
 * BATON_INVALID: no subject, or a bad one. BATON_STORAGE, BATON_NO_MEMORY. Any thread. */
BATON_API enum baton_err baton_lease_wait(struct baton_store *store,
                                          const struct baton_str *subjects, size_t count,
                                          struct baton_mono until, const uint32_t *cancel,
                                          size_t *ret_which);

/* Takes each away from whoever holds it; the next fence is higher. answers[i].err: BATON_OK, and
 * `holder` had it, or BATON_NOT_HELD. For operators. Any thread. */
BATON_API enum baton_err baton_lease_force(struct baton_store *store,
                                           const struct baton_str *subjects, size_t count,
                                           struct baton_lease_answer *answers);

/* One of those that are held, as baton_lease_list() shows it. */
struct baton_lease_entry {
	char subject[BATON_LEASE_SUBJECT_MAX + 1]; /* terminated */
	size_t len;
	struct baton_lease_holder holder;
};

/* Those held subjects that begin with `prefix` and come after `after` (both may be ""), in the
 * order of their bytes: as many as there are, at most `max`. BATON_OK: *ret_count of them. */
BATON_API enum baton_err baton_lease_list(struct baton_store *store, struct baton_str prefix,
                                          struct baton_str after, struct baton_lease_entry *entries,
                                          size_t max, size_t *ret_count);

BATON_END

#endif
