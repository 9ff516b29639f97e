/* Leases: what is asked for is checked here, and kept by the backend. */
#include <baton/lease.h>

#include <stdio.h>

#include "base/fail.h"
#include "base/mem.h"
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
	e = store->ops->lease_release(store, proofs, count, answers);
	if (e == BATON_OK)
		baton_store_poke(store);
	return e;
}

static enum baton_err check_subjects(struct baton_store *store, const struct baton_str *subjects,
                                     size_t count)
{
	enum baton_err e = check_begin(store, count);
	for (size_t i = 0; i < count && e == BATON_OK; i++)
		e = check_subject(subjects[i]);
	return e;
}

enum baton_err baton_lease_force(struct baton_store *store, const struct baton_str *subjects,
                                 size_t count, struct baton_lease_answer *answers)
{
	enum baton_err e = check_subjects(store, subjects, count);
	if (e != BATON_OK || count == 0)
		return e;
	e = store->ops->lease_force(store, subjects, count, answers);
	if (e == BATON_OK)
		baton_store_poke(store);
	return e;
}

/* BATON_NOT_HELD: nobody has it now. */
static enum baton_err read_live(struct baton_store *store, struct baton_str subject,
                                struct lease_row *row)
{
	enum baton_err e = store_enter(store);
	if (e == BATON_OK)
		e = check_subject(subject);
	if (e == BATON_OK)
		e = store->ops->lease_read(store, &subject, 1, row);
	if (e == BATON_OK && !lease_is_live(row, baton_store_now(store)))
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

enum baton_err baton_lease_inspect_many(struct baton_store *store, const struct baton_str *subjects,
                                        size_t count, struct baton_lease_answer *answers)
{
	enum baton_err e = check_subjects(store, subjects, count);
	if (e != BATON_OK || count == 0)
		return e;
	struct lease_row *rows = mem_new(store->alloc, count, sizeof *rows);
	if (!rows)
		return fail_memory(count * sizeof *rows, "leases");
	e = store->ops->lease_read(store, subjects, count, rows);
	const struct baton_store_time now = baton_store_now(store);
	for (size_t i = 0; i < count && e == BATON_OK; i++) {
		bool live = lease_is_live(&rows[i], now);
		answers[i] = (struct baton_lease_answer){.err = live ? BATON_OK : BATON_NOT_HELD};
		if (live)
			answers[i].holder = store_holder(&rows[i], &store->owner.incarnation);
	}
	mem_free(store->alloc, rows, count, sizeof *rows);
	return e;
}

/* The first that can be had; `count`: none can, and the next whose time is over is so in *ret_left
 * at the latest. */
static size_t first_free(struct baton_store *store, const struct lease_row *rows, size_t count,
                         struct baton_duration *ret_left)
{
	const struct baton_store_time now = baton_store_now(store);
	*ret_left = BATON_DURATION_FOREVER;
	for (size_t i = 0; i < count; i++) {
		if (!lease_is_live(&rows[i], now) ||
		    baton_owner_is_dead(&store->owner, &rows[i].owner, store->reach))
			return i;
		struct baton_duration left = baton_store_time_sub(rows[i].expires_at, now);
		*ret_left = left.ns < ret_left->ns ? left : *ret_left;
	}
	return count;
}

static enum baton_err wait_with(struct baton_store *store, const struct baton_str *subjects,
                                size_t count, const struct baton_store_wait *w,
                                struct lease_row *rows, size_t *ret_which)
{
	for (struct baton_duration poll = baton_duration_ms(STORE_POLL_MIN_MS);;) {
		struct baton_duration left;
		uint32_t bell = atomic_load(&store->bell);
		enum baton_err e = store->ops->lease_read(store, subjects, count, rows);
		if (e != BATON_OK)
			return e;
		if (w->cancel && __atomic_load_n(w->cancel, __ATOMIC_ACQUIRE) != 0)
			return BATON_CANCELLED;
		size_t which = first_free(store, rows, count, &left);
		if (which < count) {
			*ret_which = which;
			return BATON_OK;
		}
		const struct baton_mono now = store->clock->now(store->clock);
		if (w->until.ns <= now.ns)
			return BATON_TIMEOUT;
		left = left.ns < poll.ns ? left : poll;
		struct baton_mono until = baton_mono_add(now, left);
		until = until.ns < w->until.ns ? until : w->until;
		store->clock->wait(store->clock, (const uint32_t *)&store->bell, bell, until);
		if (poll.ns < baton_duration_ms(STORE_POLL_MAX_MS).ns)
			poll.ns *= 2;
	}
}

enum baton_err baton_lease_wait(struct baton_store *store, const struct baton_str *subjects,
                                size_t count, struct baton_mono until, const uint32_t *cancel,
                                size_t *ret_which)
{
	const struct baton_store_wait w = {.until = until, .cancel = cancel};
	enum baton_err e = check_subjects(store, subjects, count);
	if (e == BATON_OK && count == 0)
		e = fail(BATON_INVALID, "0 leases to wait for: 1 to %d are allowed",
		         BATON_LEASES_MAX);
	if (e != BATON_OK)
		return e;
	struct lease_row *rows = mem_new(store->alloc, count, sizeof *rows);
	if (!rows)
		return fail_memory(count * sizeof *rows, "leases");
	e = wait_with(store, subjects, count, &w, rows, ret_which);
	mem_free(store->alloc, rows, count, sizeof *rows);
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
