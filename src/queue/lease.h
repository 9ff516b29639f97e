/* Who gets a lease, and who keeps one. */
#ifndef QUEUE_LEASE_H
#define QUEUE_LEASE_H

#include <stdbool.h>

#include <baton/id.h>
#include <baton/owner.h>
#include <baton/time.h>

/* What a store knows about a subject. */
struct lease_row {
	bool held; /* false: it was given back or taken away, and only the fence is left */
	struct baton_owner owner;
	struct baton_id token;
	struct baton_id nonce;
	uint64_t fence;
	struct baton_store_time claimed_at;
	struct baton_store_time expires_at;
};

/* Who asks, and when. */
struct lease_request {
	struct baton_id incarnation;
	struct baton_id nonce; /* zeros: none */
	bool reentrant;
	bool holder_is_dead; /* proved, for the one who asks */
	struct baton_store_time now;
};

enum lease_verdict {
	LEASE_TAKE = 1, /* with the next fence and a new token          */
	LEASE_EXTEND,   /* the same fence and token, a later end        */
	LEASE_YIELD,
	LEASE_YIELD_OWN /* to oneself                                   */
};

/* `row` NULL: the store does not know the subject. */
enum lease_verdict lease_judge(const struct lease_row *row, const struct lease_request *request);

/* Whether it is held and its time has not run out. */
bool lease_is_live(const struct lease_row *row, struct baton_store_time now);

/* What somebody says to prove that it is his. */
struct lease_claimed {
	struct baton_id incarnation;
	struct baton_id token;
	uint64_t fence;
};

/* Whether the row is still that one's. Takes the same time for every wrong token. */
bool lease_is_proved(const struct lease_row *row, const struct lease_claimed *claimed);

/* The end after a renewal at `now`: it never comes nearer unless `shorten`. */
struct baton_store_time lease_extended(struct baton_store_time expires, struct baton_store_time now,
                                       struct baton_duration ttl, bool shorten);

#endif
