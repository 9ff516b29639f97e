/* Claiming work of one lane whose lease the claimant holds. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "queue/batch.h"
#include "store/sqlite/fate.h"
#include "store/sqlite/grant.h"
#include "store/sqlite/lanes.h"
#include "store/sqlite/leases.h"

struct lane_args {
	const struct baton_lane_ask *ask;
	struct claims_parcel *parcel;
};

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

/* The numbers that the wanted batches have now, in order. *ret_known false: one is no batch, or is
 * named twice. */
static enum baton_err wanted_numbers(struct sqlite_store *s, const struct baton_lane_ask *ask,
                                     uint64_t **ret, bool *ret_known)
{
	uint64_t *seqs = arena_take(&s->scratch, ask->count, sizeof *seqs);
	*ret = seqs;
	*ret_known = true;
	if (!seqs)
		return fail_memory(ask->count * sizeof *seqs, "ids");
	for (size_t i = 0; i < ask->count && *ret_known; i++) {
		uint64_t id = 0;
		int64_t seq = 0;
		*ret_known = batch_id_parse(&ask->ids[i], &id);
		enum baton_err e = *ret_known ? batch_seq_of(&s->db, (int64_t)id, &seq) : BATON_OK;
		if (e != BATON_OK)
			return e;
		*ret_known = seq > 0;
		seqs[i] = (uint64_t)seq;
	}
	if (!*ret_known)
		return BATON_OK;
	qsort(seqs, ask->count, sizeof *seqs, compare);
	for (size_t i = 1; i < ask->count; i++)
		*ret_known = *ret_known && seqs[i] != seqs[i - 1];
	return BATON_OK;
}

/* Why the claim, which another lease gave, can be recovered; "": it cannot. */
static enum baton_err why_lost(struct sqlite_store *s, const struct claim_row *c,
                               struct baton_str *ret)
{
	struct baton_owner owner;
	*ret = BATON_STR("the claim expired");
	if (!baton_store_time_live(c->expires_at, s->now))
		return BATON_OK;
	enum baton_err e = owner_load(&s->db, c->owner, &owner);
	bool dead = e == BATON_OK && baton_owner_is_dead(&s->base.owner, &owner, BATON_REACH_HOST);
	*ret = dead ? BATON_STR("its owner died") : BATON_STR("");
	return e;
}

/* Looks at the lane's claims: those of earlier leases are ended, if they are lost. *ret_free false:
 * one is in the way. What is left are those of this lease. */
static enum baton_err clear_lane(struct sqlite_store *s, struct grant *g,
                                 const struct baton_lane_ask *ask, struct claim_row *claims,
                                 size_t *count, bool *ret_free)
{
	size_t own = 0;
	*ret_free = true;
	for (size_t i = 0; i < *count; i++) {
		struct baton_str why;
		if (claims[i].granter == g->base.granter) {
			claims[own++] = claims[i];
			continue;
		}
		enum baton_err e = why_lost(s, &claims[i], &why);
		if (e == BATON_OK && why.len > 0)
			e = claim_recover(s, g->q, &claims[i], why);
		if (e != BATON_OK)
			return e;
		*ret_free = *ret_free && why.len > 0;
	}
	*count = own;
	*ret_free = *ret_free && (own == 0 || ask->at == BATON_CHECKPOINT);
	return BATON_OK;
}

/* BATON_YIELD: exactly those that were asked for cannot be had. */
static enum baton_err choose(struct sqlite_store *s, const struct baton_lane_ask *ask, int64_t lane,
                             const struct claim_row *claims, size_t count, struct pick *ret)
{
	struct scan scan = {.at = ask->at, .max = ask->max, .pass = ask->pass};
	uint64_t *wanted = NULL;
	bool known = true;
	int64_t held = 0;
	enum baton_err e = lane_held(&s->db, lane, &held);
	if (e == BATON_OK && ask->ids)
		e = wanted_numbers(s, ask, &wanted, &known);
	if (e != BATON_OK)
		return e;
	if (ask->ids && (!known || held > 0 || ask->count == 0 || ask->count > ask->max))
		return BATON_YIELD;
	scan.wanted = wanted;
	scan.wanted_count = ask->count;
	if (held == 0)
		e = grant_pick(s, lane, claims, count, &scan, ret);
	return e == BATON_OK && ask->ids && ret->count == 0 ? BATON_YIELD : e;
}

static enum baton_err claim_lane(struct sqlite_store *s, struct grant *g,
                                 const struct baton_lane_ask *ask, int64_t lane,
                                 struct claims_parcel **ret)
{
	struct claim_row *claims;
	struct pick p = {.count = 0};
	size_t count;
	bool free = false;
	enum baton_err e = claims_of_lane(s, lane, &claims, &count);
	if (e == BATON_OK)
		e = clear_lane(s, g, ask, claims, &count, &free);
	enum baton_err chosen = free ? BATON_OK : BATON_YIELD;
	if (e == BATON_OK && free)
		chosen = choose(s, ask, lane, claims, count, &p);
	if (e == BATON_OK && chosen == BATON_OK && p.count > 0)
		e = grant_give(s, g, &p, lane);
	if (e == BATON_OK && g->count > 0)
		e = grant_mode(s, g->q, BATON_QUEUE_LANE);
	if (e == BATON_OK)
		e = lane_settle(s, g->q, lane);
	if (e == BATON_OK)
		grant_close(g, ret);
	return e == BATON_OK ? chosen : e;
}

/* The lease that the caller says he has. */
static enum baton_err check_lease(struct sqlite_store *s, const struct baton_lane_ask *ask,
                                  struct baton_str subject, struct stored_lease *ret)
{
	struct lease_claimed claimed = {ask->lease->incarnation, ask->lease->token,
	                                ask->lease->fence.v};
	bool found;
	enum baton_err e = lease_load(&s->db, subject, ret, &found);
	if (e != BATON_OK)
		return e;
	return found && lease_is_live(&ret->row, s->now) && lease_is_proved(&ret->row, &claimed)
	               ? BATON_OK
	               : BATON_NOT_HELD;
}

static enum baton_err lane_do(struct sqlite_store *s, struct lane_args *a)
{
	const struct baton_lane_ask *ask = a->ask;
	char subject[BATON_LEASE_SUBJECT_MAX + 1];
	struct stored_lease l;
	struct grant g = {.asker = &l.row.owner, .ttl = store_ttl(ask->ttl), .max = 1};
	int64_t lane = 0;
	enum baton_err e = baton_lane_subject(ask->queue, ask->lane, subject);
	if (e == BATON_OK)
		e = grant_queue(s, ask->queue, BATON_QUEUE_LANE, &g.q);
	if (e == BATON_OK)
		e = check_lease(s, ask, baton_str_z(subject), &l);
	if (e != BATON_OK || g.q->policy.paused || ask->max == 0)
		return e;
	g.base = (struct fence_base){l.row.fence, l.counter};
	e = queue_tend(s, g.q);
	if (e == BATON_OK)
		e = lane_find(s, g.q->id, ask->lane, &lane);
	if (e == BATON_OK && lane == 0)
		return ask->ids ? BATON_YIELD : BATON_OK;
	if (e == BATON_OK)
		e = claim_lane(s, &g, ask, lane, &a->parcel);
	if (e == BATON_OK && a->parcel)
		e = lease_count(&s->db, baton_str_z(subject), g.base.counter);
	grant_done(&g);
	return e;
}

/* Who yields may have seen that something is due, or have ended a claim that was lost; all of that
 * is undone. */
static enum baton_err lane_run(void *store, void *args)
{
	struct sqlite_store *s = store;
	struct lane_args *a = args;
	struct books_mark mark;
	if (a->parcel)
		baton_work_claims_free(&a->parcel->pub);
	a->parcel = NULL;
	enum baton_err e = sqlite_save_begin(s, &mark);
	return e == BATON_OK ? sqlite_save_end(s, &mark, lane_do(s, a)) : e;
}

enum baton_err sqlite_lane_claim(struct baton_store *store, const struct baton_lane_ask *ask,
                                 struct baton_work_claims **ret_claims)
{
	struct lane_args args = {ask, NULL};
	enum baton_err e = sqlite_write_fences((struct sqlite_store *)store, lane_run, &args);
	return grant_answer(e, args.parcel, ret_claims);
}
