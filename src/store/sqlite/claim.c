/* Claiming work from an SQLite file. */
#include <string.h>

#include "base/fail.h"
#include "queue/policy.h"
#include "store/refuse.h"
#include "store/sqlite/fate.h"
#include "store/sqlite/grant.h"
#include "store/sqlite/guests.h"
#include "store/sqlite/leases.h"
#include "store/sqlite/sites.h"

#define PAGE 32

/* One of the places where claims begin. */
struct head {
	int64_t rank, place, seq, lane;
	bool tried;
	bool bulk;    /* it stands for jobs that stand together in a row */
	int64_t last; /* then: up to that number; 0: to the end of the row */
};

/* Ends a claim that was offered; but one that is live again, after the clock was set back, is
 * offered no more. */
static enum baton_err end_offered(struct sqlite_store *s, struct grant *g, struct claim_row *c,
                                  bool *ret_live)
{
	if (!baton_store_time_live(c->expires_at, s->now))
		return claim_recover(s, g->q, c, BATON_STR("the claim expired"));
	*ret_live = true;
	enum baton_err e = c->lane > 0 ? lane_offer(s, g->q, c, false) : BATON_OK;
	return e == BATON_OK
	               ? RUN(&s->db, SQL_CLAIM_RENEW, c->expires_at.ms, c->head, (int64_t)c->fence)
	               : e;
}

/* Claims that have expired are ended before their lane gives anything. */
static enum baton_err recover_expired(struct sqlite_store *s, struct grant *g, int64_t lane,
                                      bool *ret_live)
{
	struct claim_row *claims;
	size_t count;
	enum baton_err e = claims_offered(s, lane, &claims, &count);
	for (size_t i = 0; i < count && e == BATON_OK; i++)
		e = end_offered(s, g, &claims[i], ret_live);
	/* The lane comes first: what it asked for a key with may be gone. */
	if (e == BATON_OK && g->q->guests && count > 0)
		e = lane_settle(s, g->q, lane);
	for (size_t i = 0; i < count && e == BATON_OK; i++)
		e = lane_settle_keys(s, g->q, &claims[i].keys);
	return e;
}

/* The same for those of guests that had the key of that line. */
static enum baton_err recover_guests(struct sqlite_store *s, struct grant *g, int64_t key)
{
	struct claim_row *claims;
	size_t count;
	bool live;
	enum baton_err e = claims_late_of_key(s, key, &claims, &count);
	for (size_t i = 0; i < count && e == BATON_OK; i++) {
		e = end_offered(s, g, &claims[i], &live);
		if (e == BATON_OK)
			e = lane_settle(s, g->q, claims[i].lane);
	}
	return e;
}

/* The lane begins with a guest whose turn it was: whether it still is. */
static enum baton_err guest_turn(struct sqlite_store *s, struct grant *g, int64_t lane,
                                 const struct key_lines *keys, bool *ret)
{
	struct lane_row row = {.guest = 0};
	bool live;
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < keys->count && e == BATON_OK; i++) {
		e = recover_guests(s, g, keys->list[i]);
		if (e == BATON_OK)
			e = recover_expired(s, g, keys->list[i], &live);
		if (e == BATON_OK)
			e = lane_settle(s, g->q, keys->list[i]);
	}
	if (e == BATON_OK)
		e = lane_read(&s->db, keys->list[0], &row);
	*ret = e == BATON_OK && row.guest == lane;
	return e;
}

/* Where lanes have keys: whether it is the turn of the head's lane, after recovering what was lost
 * with the key. What has a key is claimed only if it was a head before. */
static enum baton_err is_turn(struct sqlite_store *s, struct grant *g, const struct head *h,
                              bool *ret)
{
	struct lane_row row = {.keyed = false};
	struct batch_row b = {.key_len = 0};
	struct guest guest = {.seq = 0};
	int64_t first = 0, there = 0;
	bool tried;
	enum baton_err e = FIND(&s->db, SQL_LANE_HAS, &there, h->lane);
	if (e == BATON_OK && there > 0)
		e = lane_read(&s->db, h->lane, &row);
	if (e == BATON_OK && there > 0 && row.keyed)
		e = recover_guests(s, g, h->lane);
	if (e == BATON_OK && there > 0)
		e = FIND(&s->db, SQL_LANE_HAS, &there, h->lane);
	*ret = false;
	if (e != BATON_OK || there == 0)
		return e;
	if (row.keyed)
		e = guest_first(s, h->lane, &guest);
	if (e == BATON_OK)
		e = lane_first(s, h->lane, &first, &tried);
	if (e == BATON_OK && first > 0)
		e = batch_need(&s->db, first, &b);
	*ret = row.keyed ? guest.seq == 0 || first < guest.seq : first == 0 || b.key_len == 0;
	bool asked = e == BATON_OK && !row.keyed && !*ret;
	return asked && first == h->seq && row.asked == first
	               ? guest_turn(s, g, h->lane, &row.asks, ret)
	               : e;
}

/* Where lanes have keys, what is done to one may have taken the head of another. */
static enum baton_err is_head(struct sqlite_store *s, const struct head *h, bool *ret)
{
	int64_t rank, place, seq;
	enum baton_err e = lane_next(s, h->lane, &rank, &place, &seq);
	*ret = e == BATON_OK && seq == h->seq;
	return e;
}

/* Whether keys count where the asker is. */
static bool counts_here(const struct grant *g)
{
	return g->uses && policy_has_sites(&g->q->policy);
}

static enum baton_err take_from_lane(struct sqlite_store *s, struct grant *g, const struct head *h,
                                     size_t max)
{
	struct scan scan = {.at = BATON_IDLE, .max = max};
	struct pick p = {.count = 0};
	int64_t lane = h->lane;
	bool live = false, turn = true, gives = false, is = true;
	enum baton_err e = g->q->guests ? is_head(s, h, &is) : BATON_OK;
	if (e != BATON_OK || !is)
		return e;
	e = recover_expired(s, g, lane, &live);
	if (e == BATON_OK && g->q->guests)
		e = is_turn(s, g, h, &turn);
	if (e == BATON_OK && turn)
		e = lane_gives(s, g->q, lane, live, &gives);
	if (e == BATON_OK && gives)
		e = grant_pick(s, lane, NULL, 0, &scan, &p);
	if (e == BATON_OK && p.count > 0)
		e = grant_give(s, g, &p, lane);
	if (e == BATON_OK && p.count > 0 && counts_here(g))
		e = sites_count(s, g->q, lane, g->uses);
	if (e != BATON_OK)
		return e;
	return g->q->guests ? lane_settle_key(s, g->q, lane) : lane_settle(s, g->q, lane);
}

/* A batch without a lane whose claim has expired. *ret_over: it cannot be had, since that was its
 * last attempt, or somebody had cancelled it, or the claim is live again. */
static enum baton_err recover_single(struct sqlite_store *s, struct grant *g, int64_t seq,
                                     bool *ret_over)
{
	struct claim_row c;
	struct batch_row b;
	bool found, live = false;
	int64_t dead = 0;
	enum baton_err e = claim_of_single(s, seq, &c, &found);
	*ret_over = false;
	if (e != BATON_OK || !found)
		return e;
	e = end_offered(s, g, &c, &live);
	if (e == BATON_OK)
		e = batch_load(&s->db, seq, &b, &found);
	if (e == BATON_OK && found)
		e = FIND(&s->db, SQL_DEAD_HAS, &dead, g->q->id, seq);
	*ret_over = !found || dead > 0 || live;
	return e;
}

static enum baton_err take_single(struct sqlite_store *s, struct grant *g, int64_t pool,
                                  const struct head *h)
{
	struct pick p = {.count = 0};
	bool over = false;
	enum baton_err e = RUN(&s->db, SQL_HEAD_DROP, pool, h->rank, h->place, h->seq);
	if (e == BATON_OK && h->tried)
		e = recover_single(s, g, h->seq, &over);
	if (e != BATON_OK || over)
		return e;
	if (!pick_add(s, &p, h->seq, h->tried))
		return fail(BATON_NO_MEMORY, "no memory for a claim");
	return grant_give(s, g, &p, 0);
}

static enum baton_err heads_list(struct sqlite_store *s, int64_t pool, struct head *heads,
                                 size_t max, size_t *ret_count)
{
	struct query q = query_begin(&s->db, SQL_HEAD_LIST);
	size_t count = 0;
	query_int(&q, pool);
	query_int(&q, (int64_t)max);
	while (count < max && query_row(&q))
		heads[count++] =
			(struct head){column_int(&q, 0),      column_int(&q, 1),
		                      column_int(&q, 2),      column_int(&q, 3),
		                      column_int(&q, 4) != 0, column_int(&q, 4) == HEAD_BULK,
		                      column_int(&q, 5)};
	*ret_count = count;
	return query_end(&q);
}

/* Leaves out those of keys of which no more may be held where the asker is. */
static enum baton_err heads_pass(struct sqlite_store *s, const struct grant *g, struct head *heads,
                                 size_t *count)
{
	size_t left = 0;
	for (size_t i = 0; i < *count; i++) {
		bool full = false;
		enum baton_err e = heads[i].lane > 0 ? sites_are_full(s, g->q, heads[i].lane,
		                                                      g->asker, g->uses, &full)
		                                     : BATON_OK;
		if (e != BATON_OK)
			return e;
		if (!full)
			heads[left++] = heads[i];
	}
	*count = left;
	return BATON_OK;
}

/* The first heads that may be had, at most `want` of them: a key that is full has one at most. How
 * many have started too often is not known, so that more of them are read until there are enough.
 */
static enum baton_err heads_find(struct sqlite_store *s, const struct grant *g, int64_t pool,
                                 struct head heads[PAGE], size_t want, size_t *ret_count)
{
	size_t full = counts_here(g) ? uses_full_count(g->uses, g->q, &g->q->policy) : 0;
	const bool rated = counts_here(g) && g->q->policy.key_rate.starts > 0;
	if (full == 0 && !rated)
		return heads_list(s, pool, heads, want, ret_count);
	for (size_t most = want + full;; most *= 2) {
		size_t found = 0;
		struct head *all = arena_take(&s->scratch, most, sizeof *all);
		if (!all)
			return fail_memory(most * sizeof *all, "heads");
		enum baton_err e = heads_list(s, pool, all, most, &found);
		const bool are_all = found < most;
		if (e == BATON_OK)
			e = heads_pass(s, g, all, &found);
		if (e == BATON_OK && found < want && rated && !are_all)
			continue;
		*ret_count = found < want ? found : want;
		memcpy(heads, all, *ret_count * sizeof *heads);
		return e;
	}
}

enum baton_err grant_has_heads(struct sqlite_store *s, const struct grant *g, int64_t pool,
                               bool *ret)
{
	struct head heads[PAGE];
	size_t count = 0;
	enum baton_err e = heads_find(s, g, pool, heads, 1, &count);
	*ret = count > 0;
	return e;
}

static bool comes_before(const struct head *a, const struct head *b)
{
	if (a->rank != b->rank)
		return a->rank < b->rank;
	return a->place < b->place || (a->place == b->place && a->seq < b->seq);
}

/* A key may give more than one claim: *next becomes where that one goes on, if it comes first. */
static enum baton_err look_again(struct sqlite_store *s, const struct grant *g, int64_t lane,
                                 struct head *next)
{
	struct head again = {.lane = lane};
	if (lane == 0 || g->q->policy.key_limit == 1)
		return BATON_OK;
	enum baton_err e = lane_next(s, lane, &again.rank, &again.place, &again.seq);
	if (e == BATON_OK && again.seq > 0 && comes_before(&again, next))
		*next = again;
	return e;
}

/* What is taken from a pool: until there are `limit` claims in all, of `max` batches each. */
struct taking {
	int64_t pool;
	size_t limit, max;
};

static enum baton_err take_head(struct sqlite_store *s, struct grant *g, const struct taking *t,
                                const struct head *h)
{
	if (h->lane > 0)
		return take_from_lane(s, g, h, t->max);
	if (!h->bulk)
		return take_single(s, g, t->pool, h);
	const struct bulk_head head = {t->pool, h->rank, h->seq, h->last};
	enum baton_err e = bulk_open(s, g->q, &head);
	return e == BATON_OK ? bulk_take(s, g, t->limit) : e;
}

/* One claim from each of the heads, in order, until another one comes before the rest, or some are
 * elsewhere: a lane may have asked for a key that one of them has. */
static enum baton_err take_heads(struct sqlite_store *s, struct grant *g, const struct taking *t,
                                 const struct head *heads, size_t count)
{
	struct head next = {.rank = INT64_MAX};
	const uint64_t melted = s->melted;
	for (size_t i = 0; i < count && g->count < t->limit && s->melted == melted &&
	                   !comes_before(&next, &heads[i]);
	     i++) {
		enum baton_err e = take_head(s, g, t, &heads[i]);
		if (e == BATON_OK)
			e = look_again(s, g, heads[i].lane, &next);
		if (e != BATON_OK)
			return e;
	}
	return BATON_OK;
}

enum baton_err grant_heads(struct sqlite_store *s, struct grant *g, int64_t pool, size_t limit,
                           size_t max)
{
	const struct taking taking = {pool, limit, max};
	struct head heads[PAGE], first = {.seq = 0};
	size_t given = 0;
	enum baton_err e = bulk_gives(s, pool) ? bulk_take(s, g, limit) : bulk_put_back(s);
	while (e == BATON_OK && g->count < limit) {
		size_t count, want = limit - g->count < PAGE ? limit - g->count : PAGE;
		e = heads_find(s, g, pool, heads, want, &count);
		if (e != BATON_OK || count == 0)
			return e;
		/* It was claimed, or is elsewhere now. */
		if (heads[0].seq == first.seq && heads[0].place == first.place && given == g->count)
			return fail(BATON_STORAGE,
			            "store %s is damaged: batch %lld is ready, and cannot be "
			            "claimed; baton check says more",
			            s->path, (long long)first.seq);
		first = heads[0];
		given = g->count;
		e = take_heads(s, g, &taking, heads, count);
	}
	return e;
}

/* The lease under which the queue's work is pulled: *ret_fence is its last fence, 0 without one.
 * BATON_BUSY: somebody else has it. */
static enum baton_err pull_lease(struct sqlite_store *s, struct queue_row *q,
                                 const struct baton_owner *asker, uint64_t *ret_fence)
{
	char subject[BATON_NAME_MAX + 8] = "pull/";
	struct stored_lease l;
	bool found;
	*ret_fence = q->lapsed;
	if (q->lapsed_in == s->books.turn)
		return BATON_OK;
	memcpy(subject + 5, q->name, q->len);
	enum baton_err e = lease_load(&s->db, (struct baton_str){subject, q->len + 5}, &l, &found);
	if (e != BATON_OK)
		return e;
	*ret_fence = found ? l.row.fence : 0;
	if (!found || !lease_is_live(&l.row, s->now)) {
		q->lapsed = *ret_fence;
		q->lapsed_in = s->books.turn;
		return BATON_OK;
	}
	if (!baton_id_equal(&l.row.owner.incarnation, &asker->incarnation) &&
	    !baton_owner_is_dead(&s->base.owner, &l.row.owner, BATON_REACH_HOST))
		return refuse_puller(queue_row_name(q), l.row.owner.id);
	return BATON_OK;
}

/* The fence under which the queue's pulled claims are counted, whose lease had `last`. */
static enum baton_err pull_base(const struct sqlite_store *s, const struct queue_row *q,
                                uint64_t last, struct fence_base *ret)
{
	/* In a copy the floor is above it: others may have gone on counting in the original. */
	*ret = q->pulled;
	if (ret->granter >= last && ret->granter > s->books.granter_floor)
		return BATON_OK;
	*ret = (struct fence_base){.granter = last};
	if (last <= s->books.granter_floor &&
	    !fence_next(FENCE_GRANTER, last, s->books.granter_floor, &ret->granter))
		return refuse_fence(queue_row_name(q));
	return BATON_OK;
}

struct claim_args {
	const struct baton_work_ask *ask;
	struct claims_parcel *parcel;
};

static enum baton_err pull(struct sqlite_store *s, const struct baton_work_ask *ask,
                           struct queue_row *q, uint64_t last, struct claims_parcel **ret)
{
	struct grant g = {
		.q = q,
		.asker = store_asker(&s->base, ask->owner),
		.ttl = store_ttl(ask->ttl),
		.max = ask->claims,
	};
	enum baton_err e = queue_tend(s, q);
	if (e == BATON_OK)
		e = pull_base(s, q, last, &g.base);
	guests_wait(s);
	if (e == BATON_OK)
		e = grant_heads(s, &g, pool_open(q), ask->claims, ask->max);
	e = guests_go_on(s, e);
	if (e == BATON_OK && g.count > 0)
		e = grant_mode(s, q, BATON_QUEUE_PULL);
	if (e == BATON_OK && g.count > 0) {
		q->pulled = g.base;
		q->changed = true;
		grant_close(&g, ret);
	}
	grant_done(&g);
	return e;
}

static enum baton_err claim_run(void *store, void *args)
{
	struct sqlite_store *s = store;
	struct claim_args *a = args;
	struct queue_row *q;
	uint64_t last;
	if (a->parcel)
		baton_work_claims_free(&a->parcel->pub);
	a->parcel = NULL;
	enum baton_err e = grant_queue(s, a->ask->queue, BATON_QUEUE_PULL, &q);
	if (e == BATON_OK)
		e = pull_lease(s, q, store_asker(&s->base, a->ask->owner), &last);
	if (e != BATON_OK || q->policy.paused || a->ask->claims == 0 || a->ask->max == 0)
		return e;
	return pull(s, a->ask, q, last, &a->parcel);
}

enum baton_err claim_after(struct sqlite_store *s, struct request *after,
                           const struct baton_work_ask *ask, struct baton_work_claims **ret_claims)
{
	struct claim_args args = {ask, NULL};
	struct request r = {.run = claim_run,
	                    .args = &args,
	                    .kind = REQUEST_CLAIM,
	                    .fences = true,
	                    .after = after};
	enum baton_err e = group_do(&s->group, &r);
	return grant_answer(e, args.parcel, ret_claims);
}

enum baton_err sqlite_claim(struct baton_store *store, const struct baton_work_ask *ask,
                            struct baton_work_claims **ret_claims)
{
	return claim_after((struct sqlite_store *)store, NULL, ask, ret_claims);
}
