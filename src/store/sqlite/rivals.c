/* Those who have a key, or will, and who gives way to whom. */
#include "store/sqlite/rivals.h"

#include "base/check.h"
#include "queue/policy.h"
#include "store/sqlite/claims.h"
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

/* Skips the newcomer for the first that holds the key, or the first of the line. */
static enum baton_err skip_to_holder(struct sqlite_store *s, struct queue_row *q,
                                     const struct batch_row *b, int64_t lane)
{
	int64_t other = 0;
	bool tried;
	enum baton_err e = key_holder(&s->db, &s->scratch, lane, &other);
	if (e == BATON_OK && other == 0)
		e = lane_first(s, lane, &other, &tried);
	return e == BATON_OK ? skip(s, q, b->seq, other) : e;
}

/* Skips the last of the line for the newcomer, unless somebody had claimed it: its claim has
 * expired, but may still be renewed. */
static enum baton_err skip_last(struct sqlite_store *s, struct queue_row *q,
                                const struct batch_row *b, int64_t lane, int64_t last)
{
	struct batch_row row;
	bool claimed = false;
	enum baton_err e = batch_need(&s->db, last, &row);
	if (e == BATON_OK)
		e = claim_has(&s->db, &row, &claimed);
	if (e != BATON_OK || claimed)
		return e;
	e = RUN(&s->db, SQL_LINE_DROP, lane, last);
	books_waiting(q, -1);
	return e == BATON_OK ? skip(s, q, last, b->seq) : e;
}

/* The oldest that has a key, or will, and was not asked to stop. */
struct oldest {
	int64_t seq;               /* 0: there is none       */
	const struct claim_row *c; /* that it is under, or NULL */
	bool kept;                 /* it waits for its next attempt */
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

/* *ret_stopping: how many claims that hold the key were asked to stop. */
static enum baton_err oldest_find(struct sqlite_store *s, int64_t lane, struct oldest *ret,
                                  uint64_t *ret_stopping)
{
	struct claim_row *claims;
	size_t count;
	struct oldest kept = {.kept = true}, ready = {.seq = 0};
	enum baton_err e = claims_of_lane(s, lane, &claims, &count);
	*ret = (struct oldest){.seq = 0};
	*ret_stopping = 0;
	for (size_t i = 0; i < count && e == BATON_OK; i++) {
		bool stopping = false;
		e = claim_wants_cancel(&s->db, &claims[i], &stopping);
		*ret_stopping += stopping && !claims[i].offered;
		if (!stopping)
			older(ret, &(struct oldest){.seq = claims[i].seqs[0], .c = &claims[i]});
	}
	if (e == BATON_OK)
		e = FIND(&s->db, SQL_KEPT_FIRST, &kept.seq, lane);
	if (e == BATON_OK)
		e = first_unclaimed(s, lane, claims, count, &ready.seq);
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
static enum baton_err skip_kept(struct sqlite_store *s, struct queue_row *q, int64_t lane,
                                int64_t seq, const struct batch_row *b)
{
	struct trouble t;
	enum baton_err e = trouble_load(&s->db, seq, &t);
	if (e == BATON_OK)
		e = RUN(&s->db, SQL_LATER_DROP, q->id, t.due.ms, seq);
	if (e == BATON_OK)
		e = key_let_go(s, lane, seq);
	t.due.ms = 0;
	if (e == BATON_OK)
		e = trouble_save(&s->db, seq, &t);
	q->tally.delayed--;
	q->tally.ready++; /* which skip() takes back */
	return e == BATON_OK ? skip(s, q, seq, b->seq) : e;
}

static enum baton_err replace(struct sqlite_store *s, struct queue_row *q,
                              const struct batch_row *b, int64_t lane, const struct oldest *old)
{
	if (old->seq == 0)
		return BATON_OK;
	if (old->c)
		return ask_to_stop(s, old->c, b);
	if (old->kept)
		return skip_kept(s, q, lane, old->seq, b);
	enum baton_err e = RUN(&s->db, SQL_LINE_DROP, lane, old->seq);
	books_waiting(q, -1);
	return e == BATON_OK ? skip(s, q, old->seq, b->seq) : e;
}

enum baton_err rival_enter(struct sqlite_store *s, struct queue_row *q, const struct batch_row *b,
                           int64_t lane, bool *ret_stays)
{
	struct oldest old = {.seq = 0};
	int64_t holds = 0, waiting = 0, last = 0;
	uint64_t stopping = 0;
	*ret_stays = true;
	enum baton_err e = lane_holds(&s->db, lane, &holds);
	if (e == BATON_OK && q->policy.on_conflict == BATON_CONFLICT_REPLACE)
		e = oldest_find(s, lane, &old, &stopping);
	if (e == BATON_OK)
		e = FIND(&s->db, SQL_LINE_COUNT, &waiting, lane, (int64_t)q->policy.key_limit + 1);
	if (e == BATON_OK)
		e = FIND(&s->db, SQL_LINE_LAST, &last, lane);
	if (e != BATON_OK)
		return e;
	switch (key_conflict(&q->policy, (uint64_t)holds - stopping, (uint64_t)waiting)) {
	case KEY_NO_CONFLICT:
		break;
	case KEY_SKIPS_TO_HOLDER:
		*ret_stays = false;
		return skip_to_holder(s, q, b, lane);
	case KEY_SKIPS_TO_WAITING:
		*ret_stays = false;
		return skip(s, q, b->seq, last);
	case KEY_SKIPS_WAITING:
		return skip_last(s, q, b, lane, last);
	case KEY_REPLACES:
		return replace(s, q, b, lane, &old);
	}
	return BATON_OK;
}
