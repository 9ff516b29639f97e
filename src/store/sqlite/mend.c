/* What operators do to batches in an SQLite file: cancel them, bring them back. */
#include "queue/batch.h"
#include "store/sqlite/claims.h"
#include "store/sqlite/fate.h"
#include "store/sqlite/guests.h"
#include "store/sqlite/lone.h"
#include "store/sqlite/wishes.h"

/* A batch that somebody names. */
struct named {
	struct batch_row b;
	struct queue_row *q;
	enum baton_batch_state state; /* BATON_BATCH_GONE: there is none */
	struct baton_store_time due;
};

static enum baton_err named_load(struct sqlite_store *s, const struct baton_batch_id *id,
                                 struct named *ret)
{
	uint64_t number;
	int64_t seq = 0;
	ret->state = BATON_BATCH_GONE;
	if (!batch_id_parse(id, &number))
		return BATON_OK;
	enum baton_err e = bulk_melt(s, (int64_t)number);
	if (e == BATON_OK)
		e = batch_seq_of(&s->db, (int64_t)number, &seq);
	if (e != BATON_OK || seq == 0)
		return e;
	e = batch_need(&s->db, seq, &ret->b);
	if (e == BATON_OK)
		e = books_queue_by_id(&s->books, &s->db, ret->b.queue, &ret->q);
	if (e == BATON_OK)
		e = lone_melt(s, ret->q, &ret->b);
	if (e == BATON_OK)
		e = batch_state(&s->db, &ret->b, s->now, &ret->state, &ret->due);
	return e;
}

static enum baton_err delete_batch(struct sqlite_store *s, const struct named *n)
{
	enum baton_err e = RUN(&s->db, SQL_TROUBLE_DROP, n->b.seq);
	n->q->changed = true;
	return e == BATON_OK ? RUN(&s->db, SQL_BATCH_DROP, n->b.seq) : e;
}

/* The lane of a dead batch goes on, if no other one holds it. */
static enum baton_err let_go(struct sqlite_store *s, const struct named *n)
{
	int64_t lane;
	if (line_lane(batch_row_line(&n->b)).len == 0)
		return BATON_OK;
	enum baton_err e = lane_find(s, n->q->id, batch_row_line(&n->b), &lane);
	if (e != BATON_OK || lane == 0)
		return e;
	e = lane_hold(s, lane);
	return e == BATON_OK ? lane_settle(s, n->q, lane) : e;
}

static enum baton_err leave_dead(struct sqlite_store *s, const struct named *n)
{
	enum baton_err e = RUN(&s->db, SQL_DEAD_DROP, n->q->id, n->b.seq);
	n->q->tally.dead--;
	n->q->changed = true;
	return e == BATON_OK ? let_go(s, n) : e;
}

/* One that waits for its next attempt in its line leaves that too. */
static enum baton_err leave_later(struct sqlite_store *s, const struct named *n)
{
	int64_t lane = 0, kind;
	struct key_lines keys = {.count = 0};
	enum baton_err e = FIND(&s->db, SQL_LATER_HAS, &kind, n->q->id, n->due.ms, n->b.seq);
	if (e == BATON_OK)
		e = RUN(&s->db, SQL_LATER_DROP, n->q->id, n->due.ms, n->b.seq);
	n->q->tally.delayed--;
	if (e == BATON_OK)
		e = guest_let_go(s, n->q, &n->b, &keys);
	if (e != BATON_OK || kind != LATER_BLOCK)
		return e == BATON_OK ? lane_settle_keys(s, n->q, &keys) : e;
	e = lane_find(s, n->q->id, batch_row_line(&n->b), &lane);
	if (e == BATON_OK && line_is_keyed(batch_row_line(&n->b)))
		e = key_let_go(s, lane, n->b.seq);
	else if (e == BATON_OK)
		e = RUN(&s->db, SQL_LINE_DROP, lane, n->b.seq);
	if (e == BATON_OK)
		e = lane_settle(s, n->q, lane);
	return e == BATON_OK ? lane_settle_keys(s, n->q, &keys) : e;
}

/* Its holder is told. */
static enum baton_err ask_cancel(struct sqlite_store *s, const struct named *n)
{
	struct claim_row c;
	struct trouble t;
	bool found;
	enum baton_err e = claim_of_batch(&s->db, &s->scratch, &n->b, &c, &found);
	if (e == BATON_OK && found)
		e = RUN(&s->db, SQL_CLAIM_TRY, c.head, (int64_t)c.fence);
	if (e == BATON_OK)
		e = trouble_load(&s->db, n->b.seq, &t);
	t.cancel = true;
	return e == BATON_OK ? trouble_save(&s->db, n->b.seq, &t) : e;
}

static enum baton_err cancel_one(struct sqlite_store *s, const struct baton_batch_id *id,
                                 enum baton_cancelled *answer)
{
	struct named n;
	enum baton_err e = named_load(s, id, &n);
	*answer = BATON_CANCEL_REMOVED;
	if (e != BATON_OK)
		return e;
	switch (n.state) {
	case BATON_BATCH_READY:
		n.q->tally.ready--;
		e = wish_drop(s, n.q, &n.b);
		if (e == BATON_OK)
			e = lane_leave(s, n.q, &n.b);
		break;
	case BATON_BATCH_DELAYED:
	case BATON_BATCH_RETRY:
		e = leave_later(s, &n);
		break;
	case BATON_BATCH_DEAD:
		e = leave_dead(s, &n);
		break;
	case BATON_BATCH_CLAIMED:
		*answer = BATON_CANCEL_TOLD;
		return ask_cancel(s, &n);
	case BATON_BATCH_DONE:
	case BATON_BATCH_SKIPPED:
	case BATON_BATCH_GONE:
		*answer = BATON_CANCEL_MISSING;
		return BATON_OK;
	}
	return e == BATON_OK ? delete_batch(s, &n) : e;
}

struct cancel_args {
	const struct baton_batch_id *ids;
	size_t count;
	enum baton_cancelled *answers;
};

static enum baton_err cancel_run(void *store, void *args)
{
	const struct cancel_args *a = args;
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < a->count && e == BATON_OK; i++)
		e = cancel_one(store, &a->ids[i], &a->answers[i]);
	return e;
}

enum baton_err sqlite_cancel(struct baton_store *store, const struct baton_batch_id *ids,
                             size_t count, enum baton_cancelled *answers)
{
	struct cancel_args args = {ids, count, answers};
	return sqlite_write((struct sqlite_store *)store, cancel_run, &args);
}

/* A dead batch goes to the end of its lane, as if it had just been put; but its next fence is
 * higher than its last. */
static enum baton_err revive_dead(struct sqlite_store *s, struct named *n)
{
	int64_t seq = s->books.seq + 1;
	struct trouble t;
	enum baton_err e = leave_dead(s, n);
	if (e == BATON_OK)
		e = trouble_load(&s->db, n->b.seq, &t);
	if (e == BATON_OK)
		e = RUN(&s->db, SQL_TROUBLE_DROP, n->b.seq);
	if (e == BATON_OK) {
		t.attempts = 0;
		t.error_len = 0;
		e = trouble_save(&s->db, seq, &t);
	}
	if (e == BATON_OK)
		e = RUN(&s->db, SQL_BATCH_MOVE, seq, n->b.seq);
	if (e != BATON_OK)
		return e;
	n->b.seq = seq;
	s->books.seq = seq;
	s->books.changed = true;
	n->q->tally.ready++;
	e = wish_add(s, n->q, &n->b);
	return e == BATON_OK ? lane_enter(s, n->q, &n->b, true, NULL) : e;
}

static enum baton_err revive_later(struct sqlite_store *s, struct named *n)
{
	int64_t kind;
	enum baton_err e = FIND(&s->db, SQL_LATER_HAS, &kind, n->q->id, n->due.ms, n->b.seq);
	return e == BATON_OK ? later_end(s, n->q, &n->b, n->due, (enum later_kind)kind) : e;
}

static enum baton_err revive_one(struct sqlite_store *s, const struct baton_batch_id *id,
                                 enum baton_err *answer)
{
	struct named n;
	enum baton_err e = named_load(s, id, &n);
	*answer = BATON_OK;
	if (e != BATON_OK)
		return e;
	switch (n.state) {
	case BATON_BATCH_DEAD:
		return revive_dead(s, &n);
	case BATON_BATCH_DELAYED:
	case BATON_BATCH_RETRY:
		return revive_later(s, &n);
	case BATON_BATCH_READY:
	case BATON_BATCH_CLAIMED:
	case BATON_BATCH_DONE:
	case BATON_BATCH_SKIPPED:
		*answer = BATON_INVALID;
		return BATON_OK;
	case BATON_BATCH_GONE:
		*answer = BATON_NOT_FOUND;
		return BATON_OK;
	}
	return BATON_OK;
}

struct revive_args {
	const struct baton_batch_id *ids;
	size_t count;
	enum baton_err *answers;
};

static enum baton_err revive_run(void *store, void *args)
{
	const struct revive_args *a = args;
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < a->count && e == BATON_OK; i++)
		e = revive_one(store, &a->ids[i], &a->answers[i]);
	return e;
}

enum baton_err sqlite_revive(struct baton_store *store, const struct baton_batch_id *ids,
                             size_t count, enum baton_err *answers)
{
	struct revive_args args = {ids, count, answers};
	return sqlite_write((struct sqlite_store *)store, revive_run, &args);
}
