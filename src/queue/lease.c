/* Who gets a lease, and who keeps one. */
#include "queue/lease.h"

#include "base/digest.h"

static bool is_set(const struct baton_id *id)
{
	static const struct baton_id none;
	return !baton_id_equal(id, &none);
}

bool lease_is_live(const struct lease_row *row, struct baton_store_time now)
{
	return row->held && baton_store_time_live(row->expires_at, now);
}

enum lease_verdict lease_judge(const struct lease_row *row, const struct lease_request *request)
{
	if (!row || !lease_is_live(row, request->now))
		return LEASE_TAKE;
	if (!baton_id_equal(&row->owner.incarnation, &request->incarnation))
		return request->holder_is_dead ? LEASE_TAKE : LEASE_YIELD;
	bool again = is_set(&request->nonce) && baton_id_equal(&row->nonce, &request->nonce);
	return again || request->reentrant ? LEASE_EXTEND : LEASE_YIELD_OWN;
}

bool lease_is_proved(const struct lease_row *row, const struct lease_claimed *claimed)
{
	return row->held && row->fence == claimed->fence &&
	       baton_id_equal(&row->owner.incarnation, &claimed->incarnation) &&
	       digest_equal(row->token.bytes, claimed->token.bytes, sizeof row->token.bytes);
}

struct baton_store_time lease_extended(struct baton_store_time expires, struct baton_store_time now,
                                       struct baton_duration ttl, bool shorten)
{
	struct baton_store_time until = baton_store_time_add(now, ttl);
	return shorten || until.ms > expires.ms ? until : expires;
}
