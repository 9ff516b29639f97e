/* The leases of a store in memory. */
#include "store/memory/lease.h"

#include <stdlib.h>

#include "store/memory/news.h"
#include "store/memory/ops.h"
#include "store/refuse.h"

struct lease *memory_lease_find(const struct memory *m, struct baton_str subject)
{
	struct row *row = memory_row_first(&m->leases, memory_hash(m, subject.ptr, subject.len));
	for (; row; row = memory_row_next(row)) {
		struct lease *lease = (struct lease *)row;
		if (baton_str_equal(lease->subject, subject))
			return lease;
	}
	return NULL;
}

struct lease *memory_lease_make(struct tx *tx, struct baton_str subject)
{
	struct lease *lease = memory_lease_find(tx->m, subject);
	if (lease)
		return lease;
	lease = (struct lease *)memory_tx_add(tx, &tx->m->leases, sizeof *lease + subject.len,
	                                      memory_hash(tx->m, subject.ptr, subject.len));
	if (!lease)
		return NULL;
	char *text = (char *)(lease + 1);
	memcpy(text, subject.ptr, subject.len);
	lease->subject = (struct baton_str){text, subject.len};
	return lease;
}

enum baton_err memory_lease_raise(struct tx *tx, struct lease *lease)
{
	enum fence_kind kind = fence_kind_of(lease->subject);
	const struct fence_base base = {lease->is.row.fence, lease->is.counter};
	uint64_t last = kind == FENCE_GRANTER ? fence_granter_last(&base) : base.granter;
	uint64_t next;
	if (!fence_next(kind, last, fence_floor(kind, tx->m->made), &next))
		return refuse_fence(lease->subject);
	lease->is.row.fence = next;
	lease->is.counter = 0;
	return BATON_OK;
}

enum baton_err memory_lease_count(struct lease *lease, struct fence_reach *reach, uint64_t last,
                                  uint64_t *ret_fence)
{
	struct fence_base base = {lease->is.row.fence, lease->is.counter};
	if (!fence_of_claim(&base, reach, last, ret_fence))
		return refuse_fence(lease->subject);
	lease->is.counter = base.counter;
	return BATON_OK;
}

static enum lease_verdict judge(const struct tx *tx, const struct lease *lease,
                                const struct baton_lease_ask *ask, const struct baton_owner *owner)
{
	const struct baton_owner *self = &tx->m->store.owner;
	struct lease_request request = {
		.incarnation = owner->incarnation,
		.nonce = ask->nonce,
		.reentrant = ask->reentrant,
		.now = tx->now,
	};
	if (!lease)
		return lease_judge(NULL, &request);
	request.holder_is_dead =
		lease_is_live(&lease->is.row, tx->now) &&
		baton_owner_is_dead(self, &lease->is.row.owner, tx->m->store.reach);
	enum lease_verdict verdict = lease_judge(&lease->is.row, &request);
	return verdict == LEASE_TAKE && lease->held_off ? LEASE_YIELD : verdict;
}

static enum baton_err give(struct tx *tx, const struct baton_lease_ask *ask,
                           const struct baton_owner *owner, struct baton_lease *ret)
{
	struct lease *lease = memory_lease_make(tx, ask->subject);
	struct baton_id token;
	if (!lease || memory_tx_save(tx, &lease->row) != BATON_OK)
		return BATON_NO_MEMORY;
	enum baton_err e = baton_id_random(&token);
	if (e == BATON_OK)
		e = memory_lease_raise(tx, lease);
	if (e != BATON_OK)
		return e;
	lease->is.row = (struct lease_row){
		.held = true,
		.owner = *owner,
		.token = token,
		.nonce = ask->nonce,
		.fence = lease->is.row.fence,
		.claimed_at = tx->now,
		.expires_at = baton_store_time_add(tx->now, store_ttl(ask->ttl)),
	};
	*ret = store_lease(&lease->is.row);
	return BATON_OK;
}

static enum baton_err extend(struct tx *tx, struct lease *lease, struct baton_duration ttl,
                             bool shorten)
{
	struct lease_row *row = &lease->is.row;
	enum baton_err e = memory_tx_save(tx, &lease->row);
	if (e == BATON_OK)
		row->expires_at = lease_extended(row->expires_at, tx->now, ttl, shorten);
	return e;
}

static enum baton_err claim_one(struct tx *tx, const struct baton_lease_ask *ask,
                                struct baton_lease_answer *answer)
{
	const struct baton_owner *owner = store_asker(&tx->m->store, ask->owner);
	struct lease *lease = memory_lease_find(tx->m, ask->subject);
	enum baton_err e;
	*answer = (struct baton_lease_answer){.err = BATON_OK};
	switch (judge(tx, lease, ask, owner)) {
	case LEASE_TAKE:
		return give(tx, ask, owner, &answer->lease);
	case LEASE_EXTEND:
		e = extend(tx, lease, store_ttl(ask->ttl), false);
		answer->lease = store_lease(&lease->is.row);
		return e;
	case LEASE_YIELD:
	case LEASE_YIELD_OWN:
		answer->err = BATON_YIELD;
		answer->holder = store_holder(&lease->is.row, &owner->incarnation);
		break;
	}
	return BATON_OK;
}

enum baton_err memory_lease_claim(struct baton_store *store, const struct baton_lease_ask *asks,
                                  size_t count, struct baton_lease_answer *answers)
{
	struct tx tx;
	enum baton_err e = BATON_OK;
	memory_tx_begin(&tx, store);
	for (size_t i = 0; i < count && e == BATON_OK; i++)
		e = claim_one(&tx, &asks[i], &answers[i]);
	return memory_tx_end(&tx, e);
}

/* The subject, if the proof holds, or NULL. */
static struct lease *proved(const struct tx *tx, const struct baton_lease_proof *proof)
{
	struct lease *lease = memory_lease_find(tx->m, proof->subject);
	const struct lease_claimed claimed = {proof->lease->incarnation, proof->lease->token,
	                                      proof->lease->fence.v};
	return lease && lease_is_proved(&lease->is.row, &claimed) ? lease : NULL;
}

/* Tells the callers when theirs end, once nothing can fail any more. */
static void tell_ends(const struct tx *tx, const struct baton_lease_proof *proofs, size_t count,
                      const enum baton_err *answers)
{
	for (size_t i = 0; i < count; i++) {
		if (answers[i] == BATON_OK)
			proofs[i].lease->expires_at = proved(tx, &proofs[i])->is.row.expires_at;
	}
}

enum baton_err memory_lease_renew(struct baton_store *store, const struct baton_lease_proof *proofs,
                                  size_t count, struct baton_duration ttl, bool shorten,
                                  enum baton_err *answers)
{
	struct tx tx;
	enum baton_err e = BATON_OK;
	memory_tx_begin(&tx, store);
	for (size_t i = 0; i < count && e == BATON_OK; i++) {
		struct lease *lease = proved(&tx, &proofs[i]);
		bool live = lease && lease_is_live(&lease->is.row, tx.now);
		answers[i] = live ? BATON_OK : BATON_NOT_HELD;
		if (live)
			e = extend(&tx, lease, ttl, shorten);
	}
	if (e == BATON_OK)
		tell_ends(&tx, proofs, count, answers);
	return memory_tx_end(&tx, e);
}

/* Nobody holds it any more; the fence stays. */
static enum baton_err set_free(struct tx *tx, struct lease *lease)
{
	enum baton_err e = memory_tx_save(tx, &lease->row);
	if (e != BATON_OK)
		return e;
	lease->is.row = (struct lease_row){.fence = lease->is.row.fence};
	if (memory_news_of_subject(tx->m, lease->subject, &tx->news[tx->news_count]))
		tx->news_count++;
	return BATON_OK;
}

static enum baton_err reserve_news(struct tx *tx, size_t count)
{
	tx->news = memory_tx_take(tx, count, sizeof *tx->news);
	return tx->news ? BATON_OK : BATON_NO_MEMORY;
}

enum baton_err memory_lease_release(struct baton_store *store,
                                    const struct baton_lease_proof *proofs, size_t count,
                                    enum baton_err *answers)
{
	struct tx tx;
	memory_tx_begin(&tx, store);
	enum baton_err e = reserve_news(&tx, count);
	for (size_t i = 0; i < count && e == BATON_OK; i++) {
		struct lease *lease = proved(&tx, &proofs[i]);
		answers[i] = lease ? BATON_OK : BATON_NOT_HELD;
		if (lease)
			e = set_free(&tx, lease);
	}
	return memory_tx_end(&tx, e);
}

enum baton_err memory_lease_force(struct baton_store *store, const struct baton_str *subjects,
                                  size_t count, struct baton_lease_answer *answers)
{
	struct tx tx;
	memory_tx_begin(&tx, store);
	enum baton_err e = reserve_news(&tx, count);
	for (size_t i = 0; i < count && e == BATON_OK; i++) {
		struct lease *lease = memory_lease_find(tx.m, subjects[i]);
		answers[i] = (struct baton_lease_answer){.err = BATON_NOT_HELD};
		if (!lease || !lease_is_live(&lease->is.row, tx.now))
			continue;
		answers[i].err = BATON_OK;
		answers[i].holder = store_holder(&lease->is.row, &store->owner.incarnation);
		e = set_free(&tx, lease);
	}
	return memory_tx_end(&tx, e);
}

enum baton_err memory_lease_read(struct baton_store *store, const struct baton_str *subjects,
                                 size_t count, struct lease_row *rows)
{
	struct tx tx;
	memory_tx_begin(&tx, store);
	for (size_t i = 0; i < count; i++) {
		const struct lease *lease = memory_lease_find(tx.m, subjects[i]);
		rows[i] = lease ? lease->is.row : (struct lease_row){.held = false};
	}
	return memory_tx_end(&tx, BATON_OK);
}

static bool is_listed(const struct tx *tx, const struct lease *lease, struct baton_str prefix,
                      struct baton_str after)
{
	struct baton_str s = lease->subject;
	return lease_is_live(&lease->is.row, tx->now) && memory_compare(s, after) > 0 &&
	       s.len >= prefix.len &&
	       (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

static int by_subject(const void *a, const void *b)
{
	return memory_compare((*(const struct lease *const *)a)->subject,
	                      (*(const struct lease *const *)b)->subject);
}

static void describe(const struct tx *tx, const struct lease *lease, struct baton_lease_entry *ret)
{
	memset(ret, 0, sizeof *ret);
	memcpy(ret->subject, lease->subject.ptr, lease->subject.len);
	ret->len = lease->subject.len;
	ret->holder = store_holder(&lease->is.row, &tx->m->store.owner.incarnation);
}

enum baton_err memory_lease_list(struct baton_store *store, struct baton_str prefix,
                                 struct baton_str after, struct baton_lease_entry *entries,
                                 size_t max, size_t *ret_count)
{
	struct tx tx;
	size_t count = 0;
	memory_tx_begin(&tx, store);
	const struct lease **leases =
		memory_tx_take(&tx, tx.m->leases.count, sizeof(const struct lease *));
	if (!leases)
		return memory_tx_end(&tx, BATON_NO_MEMORY);
	for (struct row *row = tx.m->leases.oldest; row; row = row->newer) {
		const struct lease *lease = (struct lease *)row;
		if (is_listed(&tx, lease, prefix, after))
			leases[count++] = lease;
	}
	qsort(leases, count, sizeof(const struct lease *), by_subject);
	count = count < max ? count : max;
	for (size_t i = 0; i < count; i++)
		describe(&tx, leases[i], &entries[i]);
	*ret_count = count;
	return memory_tx_end(&tx, BATON_OK);
}
