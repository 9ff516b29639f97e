/* Leases: what is asked for is checked here, and kept by the backend. */
#include <baton/lease.h>

#include <stdio.h>

#include "base/fail.h"
#include "queue/batch.h"
#include "store/store.h"

#define MS INT64_C(1000000)

enum baton_err store_check_ttl(struct baton_duration ttl)
{
	char is[BATON_DURATION_TEXT];
	if (ttl.ns >= 0 && ttl.ns <= baton_duration_ms(BATON_LEASE_TTL_MAX_MS).ns)
		return BATON_OK;
	return fail(BATON_INVALID, "ttl is %s: 1ms to 1d are allowed",
	            baton_duration_print(ttl, is));
}

struct baton_duration store_ttl(struct baton_duration ttl)
{
	if (ttl.ns == 0)
		return baton_duration_ms(BATON_LEASE_TTL_MS);
	return (struct baton_duration){(ttl.ns + MS - 1) / MS * MS};
}

const struct baton_owner *store_asker(const struct baton_store *store,
                                      const struct baton_owner *owner)
{
	return owner ? owner : &store->owner;
}

/* A lane's subject is longer than other names: two of them and what stands between. */
static enum baton_err check_subject(struct baton_str s)
{
	bool lane = s.len > 5 && memcmp(s.ptr, "lane/", 5) == 0;
	return baton_str_name("subject", s.ptr, s.len,
	                      lane ? BATON_LEASE_SUBJECT_MAX : BATON_NAME_MAX, &s);
}

static enum baton_err check_count(size_t count)
{
	if (count <= BATON_LEASES_MAX)
		return BATON_OK;
	return fail(BATON_INVALID, "%zu leases in one call: at most %d are allowed", count,
	            BATON_LEASES_MAX);
}

static enum baton_err check_begin(struct baton_store *store, size_t count)
{
	enum baton_err e = store_enter(store);
	return e == BATON_OK ? check_count(count) : e;
}

enum baton_err baton_lane_subject(struct baton_str queue, struct baton_str lane,
                                  char text[BATON_LEASE_SUBJECT_MAX + 1])
{
	enum baton_err e = batch_check_queue(queue);
	if (e == BATON_OK)
		e = baton_str_name("lane's name", lane.ptr, lane.len, BATON_NAME_MAX, &lane);
	if (e == BATON_OK)
		snprintf(text, BATON_LEASE_SUBJECT_MAX + 1, "lane/%.*s/%.*s", (int)queue.len,
		         queue.ptr, (int)lane.len, lane.ptr);
	return e;
}

enum baton_err baton_lease_claim(struct baton_store *store, const struct baton_lease_ask *asks,
                                 size_t count, struct baton_lease_answer *answers)
{
	enum baton_err e = check_begin(store, count);
	for (size_t i = 0; i < count && e == BATON_OK; i++) {
		e = check_subject(asks[i].subject);
		if (e == BATON_OK)
			e = store_check_ttl(asks[i].ttl);
	}
	if (e != BATON_OK || count == 0)
		return e;
	return store->ops->lease_claim(store, asks, count, answers);
}

static enum baton_err check_proofs(struct baton_store *store,
                                   const struct baton_lease_proof *proofs, size_t count)
{
	enum baton_err e = check_begin(store, count);
	for (size_t i = 0; i < count && e == BATON_OK; i++)
		e = check_subject(proofs[i].subject);
	return e;
}

enum baton_err baton_lease_renew(struct baton_store *store, const struct baton_lease_proof *proofs,
                                 size_t count, struct baton_duration ttl, bool shorten,
                                 enum baton_err *answers)
{
	enum baton_err e = check_proofs(store, proofs, count);
	if (e == BATON_OK)
		e = store_check_ttl(ttl);
	if (e != BATON_OK || count == 0)
		return e;
	return store->ops->lease_renew(store, proofs, count, store_ttl(ttl), shorten, answers);
}

enum baton_err baton_lease_release(struct baton_store *store,
                                   const struct baton_lease_proof *proofs, size_t count,
                                   enum baton_err *answers)
{
	enum baton_err e = check_proofs(store, proofs, count);
	if (e != BATON_OK || count == 0)
		return e;
	return store->ops->lease_release(store, proofs, count, answers);
}

enum baton_err baton_lease_force(struct baton_store *store, const struct baton_str *subjects,
                                 size_t count, struct baton_lease_answer *answers)
{
	enum baton_err e = check_begin(store, count);
	for (size_t i = 0; i < count && e == BATON_OK; i++)
		e = check_subject(subjects[i]);
	if (e != BATON_OK || count == 0)
		return e;
	return store->ops->lease_force(store, subjects, count, answers);
}

/* BATON_NOT_HELD: nobody has it now. */
static enum baton_err read_live(struct baton_store *store, struct baton_str subject,
                                struct lease_row *row)
{
	enum baton_err e = store_enter(store);
	if (e == BATON_OK)
		e = check_subject(subject);
	if (e == BATON_OK)
		e = store->ops->lease_read(store, subject, row);
	if (e == BATON_NOT_FOUND || (e == BATON_OK && !lease_is_live(row, baton_store_now(store))))
		return BATON_NOT_HELD;
	return e;
}

struct baton_lease_holder store_holder(const struct lease_row *row, const struct baton_id *asker)
{
	return (struct baton_lease_holder){
		.owner = row->owner,
		.fence = {row->fence},
		.claimed_at = row->claimed_at,
		.expires_at = row->expires_at,
		.own = baton_id_equal(&row->owner.incarnation, asker),
	};
}

struct baton_lease store_lease(const struct lease_row *row)
{
	return (struct baton_lease){
		.incarnation = row->owner.incarnation,
		.token = row->token,
		.fence = {row->fence},
		.claimed_at = row->claimed_at,
		.expires_at = row->expires_at,
	};
}

enum baton_err baton_lease_inspect(struct baton_store *store, struct baton_str subject,
                                   struct baton_lease_holder *ret_holder)
{
	struct lease_row row;
	enum baton_err e = read_live(store, subject, &row);
	if (e == BATON_OK && ret_holder)
		*ret_holder = store_holder(&row, &store->owner.incarnation);
	return e;
}

enum baton_err baton_lease_adopt(struct baton_store *store, struct baton_str subject,
                                 const struct baton_owner *owner, struct baton_lease *ret_lease)
{
	struct lease_row row;
	enum baton_err e = read_live(store, subject, &row);
	if (e != BATON_OK)
		return e;
	const struct baton_owner *asker = store_asker(store, owner);
	if (!baton_id_equal(&row.owner.incarnation, &asker->incarnation))
		return BATON_NOT_HELD;
	*ret_lease = store_lease(&row);
	return BATON_OK;
}

enum baton_err baton_lease_list(struct baton_store *store, struct baton_str prefix,
                                struct baton_str after, struct baton_lease_entry *entries,
                                size_t max, size_t *ret_count)
{
	enum baton_err e = store_enter(store);
	if (e == BATON_OK && prefix.len > 0)
		e = baton_str_name("prefix", prefix.ptr, prefix.len, BATON_LEASE_SUBJECT_MAX,
		                   &prefix);
	if (e == BATON_OK && after.len > 0)
		e = baton_str_name("last subject", after.ptr, after.len, BATON_LEASE_SUBJECT_MAX,
		                   &after);
	if (e != BATON_OK)
		return e;
	return store->ops->lease_list(store, prefix, after, entries, max, ret_count);
}
