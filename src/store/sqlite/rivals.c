/* Those who have a key, or will, and who gives way to whom. */
#include "store/sqlite/rivals.h"

#include "base/check.h"
#include "queue/policy.h"
#include "store/sqlite/claims.h"
#include "store/sqlite/class.h"
#include "store/sqlite/lanes.h"

/* A batch that is ready, and in no line, ends: it gives way to the other. */
static enum baton_err skip(struct sqlite_store *s, struct queue_row *q, int64_t seq, int64_t other)
{
	struct batch_row rival;
	enum baton_err e = batch_need(&s->db, other, &rival);
	if (e != BATON_OK)
		return e;
	CHECK(batch_next(BATON_BATCH_READY, EVENT_SKIP) == BATON_BATCH_DONE);
	q->tally.ready--;
	q->changed = true;
	struct baton_store_time until =
		baton_store_time_add(s->now, policy_skipped_keep(&q->policy));
	return RUN(&s->db, SQL_DONE_SKIP, seq, s->now.ms, until.ms, rival.id);
}

/* The line of a key in a queue. */
struct place {
	struct queue_row *q;
	int64_t lane;
};

/* All of them: that of the newcomer first, and then those of others of its class. */
struct places {
	struct place list[1 + BATON_QUEUE_CLASS_MAX];
	size_t count;
};

static enum baton_err places_find(struct sqlite_store *s, struct queue_row *q, int64_t lane,
                                  struct places *ret)
{
	struct class_lines others;
	*ret = (struct places){.list = {{q, lane}}, .count = 1};
	enum baton_err e = class_lines(s, q, lane, &others);
	for (size_t i = 0; i < others.count && e == BATON_OK; i++) {
		struct place *p = &ret->list[ret->count++];
		p->lane = others.list[i].lane;
		e = books_queue_by_id(&s->books, &s->db, others.list[i].queue, &p->q);
	}
	return e;
}

static int64_t lower(int64_t a, int64_t b)
{
	return a == 0 || (b > 0 && b < a) ? b : a;
}

/* Skips the newcomer for the first that holds the key, or the first of the lines. */
static enum baton_err skip_to_holder(struct sqlite_store *s, const struct places *p,
                                     const struct batch_row *b)
{
	int64_t holder = 0, first = 0, one = 0;
	bool tried;
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < p->count && e == BATON_OK; i++) {
		e = key_holder(&s->db, &s->scratch, p->list[i].lane, &one);
		holder = lower(holder, one);
		if (e == BATON_OK)
			e = lane_first(s, p->list[i].lane, &one, &tried);
		first = lower(first, one);
	}
	return e == BATON_OK ? skip(s, p->list[0].q, b->seq, holder > 0 ? holder : first) : e;
}

/* Skips the last of the lines for the newcomer, unless somebody had claimed it: its claim has
 * expired, but may still be renewed. */
static enum baton_err skip_last(struct sqlite_store *s, const struct place *at,
                                const struct batch_row *b, int64_t last)
{
	struct batch_row row;
	bool claimed = false;
	enum baton_err e = batch_need(&s->db, last, &row);
	if (e == BATON_OK)
		e = claim_has(&s->db, &row, &claimed);
	if (e != BATON_OK || claimed)
		return e;
	e = RUN(&s->db, SQL_LINE_DROP, at->lane, last);
	books_waiting(at->q, -1);
	return e == BATON_OK ? skip(s, at->q, last, b->seq) : e;
}

/* The oldest that has a key, or will, and was not asked to stop. */
struct oldest {
	int64_t seq;               /* 0: there is none       */
	const struct claim_row *c; /* that it is under, or NULL */
	bool kept;                 /* it waits for its next attempt */
	const struct place *at;
};

static void older(struct oldest *o, const struct oldest *other)
{
	if (other->seq > 0 && (o->seq == 0 || other->seq < o->seq))
		*o = *other;
}

/* The first of the line that is under none of the claims; 0: none. */
static enum baton_err first_unclaimed(struct sqlite_store *s, int64_t lane,
                                      const struct claim_row *claims, size_t count, int64_t *ret)
{
	enum baton_err e = BATON_OK;
	bool claimed = true;
	*ret = 0;
	while (e == BATON_OK && claimed) {
		e = FIND(&s->db, SQL_LINE_PAGE, ret, lane, *ret, 1);
		claimed = false;
		for (size_t i = 0; i<count && * ret> 0; i++)
			claimed = claimed || claim_row_has(&claims[i], *ret);
	}
	return e;
}

/* That of one line, or *ret. *stopping: so many more claims that hold the key were asked to stop. */
static enum baton_err oldest_find(struct sqlite_store *s, const struct place *at,
                                  struct oldest *ret, uint64_t *stopping)
{
	struct claim_row *claims;
	size_t count;
	struct oldest kept = {.kept = true, .at = at}, ready = {.at = at};
	enum baton_err e = claims_of_lane(s, at->lane, &claims, &count);
	for (size_t i = 0; i < count && e == BATON_OK; i++) {
		bool stops = false;
		e = claim_wants_cancel(&s->db, &claims[i], &stops);
		*stopping += stops && !claims[i].offered;
		if (!stops)
			older(ret, &(struct oldest){.seq = claims[i].seqs[0], .c = &claims[i], .at = at});
	}
	if (e == BATON_OK)
		e = FIND(&s->db, SQL_KEPT_FIRST, &kept.seq, at->lane);
	if (e == BATON_OK)
		e = first_unclaimed(s, at->lane, claims, count, &ready.seq);
	older(ret, &kept);
	older(ret, &ready);
	return e;
}

/* Those of a claim are to stop, and are skipped then. */
static enum baton_err ask_to_stop(struct sqlite_store *s, const struct claim_row *c,
                                  const struct batch_row *b)
{
	enum baton_err e = RUN(&s->db, SQL_CLAIM_TRY, c->head, (int64_t)c->fence);
	for (size_t i = 0; i < c->count && e == BATON_OK; i++) {
		struct trouble t;
		e = trouble_load(&s->db, c->seqs[i], &t);
		t.cancel = true;
		t.rival = b->id;
		if (e == BATON_OK)
			e = trouble_save(&s->db, c->seqs[i], &t);
	}
	return e;
}

/* One that keeps the key until its next attempt comes to an end. */
static enum baton_err skip_kept(struct sqlite_store *s, const struct place *at, int64_t seq,
                                const struct batch_row *b)
{
	struct queue_row *q = at->q;
	struct trouble t;
	enum baton_err e = trouble_load(&s->db, seq, &t);
	if (e == BATON_OK)
		e = RUN(&s->db, SQL_LATER_DROP, q->id, t.due.ms, seq);
	if (e == BATON_OK)
		e = key_let_go(s, at->lane, seq);
	t.due.ms = 0;
	if (e == BATON_OK)
		e = trouble_save(&s->db, seq, &t);
	q->tally.delayed--;
	q->tally.ready++; /* which skip() takes back */
	return e == BATON_OK ? skip(s, q, seq, b->seq) : e;
}

static enum baton_err replace(struct sqlite_store *s, const struct batch_row *b,
                              const struct oldest *old)
{
	if (old->seq == 0)
		return BATON_OK;
	if (old->c)
		return ask_to_stop(s, old->c, b);
	if (old->kept)
		return skip_kept(s, old->at, old->seq, b);
	enum baton_err e = RUN(&s->db, SQL_LINE_DROP, old->at->lane, old->seq);
	books_waiting(old->at->q, -1);
	return e == BATON_OK ? skip(s, old->at->q, old->seq, b->seq) : e;
}

/* What is in the lines. */
struct rivals {
	int64_t holds, waiting, last;
	const struct place *last_at;
	struct oldest oldest; /* where it is replaced */
	uint64_t stopping;
};

static enum baton_err rivals_add(struct sqlite_store *s, const struct place *at,
                                 const struct baton_queue_policy *policy, struct rivals *r)
{
	int64_t holds = 0, waiting = 0, last = 0;
	enum baton_err e = lane_holds(&s->db, at->lane, &holds);
	if (e == BATON_OK && policy->on_conflict == BATON_CONFLICT_REPLACE)
		e = oldest_find(s, at, &r->oldest, &r->stopping);
	if (e == BATON_OK)
		e = FIND(&s->db, SQL_LINE_COUNT, &waiting, at->lane, (int64_t)policy->key_limit + 1);
	if (e == BATON_OK)
		e = FIND(&s->db, SQL_LINE_LAST, &last, at->lane);
	r->holds += holds;
	r->waiting += waiting;
	if (last > r->last) {
		r->last = last;
		r->last_at = at;
	}
	return e;
}

enum baton_err rival_enter(struct sqlite_store *s, struct queue_row *q, const struct batch_row *b,
                           int64_t lane, bool *ret_stays)
{
	struct places p;
	struct rivals r = {.holds = 0};
	*ret_stays = true;
	enum baton_err e = places_find(s, q, lane, &p);
	for (size_t i = 0; i < p.count && e == BATON_OK; i++)
		e = rivals_add(s, &p.list[i], &q->policy, &r);
	if (e != BATON_OK)
		return e;
	switch (key_conflict(&q->policy, (uint64_t)r.holds - r.stopping, (uint64_t)r.waiting)) {
	case KEY_NO_CONFLICT:
		break;
	case KEY_SKIPS_TO_HOLDER:
		*ret_stays = false;
		return skip_to_holder(s, &p, b);
	case KEY_SKIPS_TO_WAITING:
		*ret_stays = false;
		return skip(s, q, b->seq, r.last);
	case KEY_SKIPS_WAITING:
		return skip_last(s, r.last_at, b, r.last);
	case KEY_REPLACES:
		return replace(s, b, &r.oldest);
	}
	return BATON_OK;
}
