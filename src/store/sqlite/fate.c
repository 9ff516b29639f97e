/* What becomes of a batch that was claimed. */
#include "store/sqlite/fate.h"

#include "base/check.h"
#include "base/fail.h"
#include "queue/policy.h"
#include "store/sqlite/class.h"
#include "store/sqlite/guests.h"
#include "store/sqlite/lone.h"
#include "store/sqlite/rates.h"
#include "store/sqlite/wishes.h"

#define TEND_MAX 1000

static void expect(enum baton_batch_state from, enum batch_event event, enum baton_batch_state to)
{
	CHECK(batch_next(from, event) == to);
}

enum baton_err leaver_load(struct sqlite_store *s, struct queue_row *q, const struct claim_row *c,
                           int64_t seq, bool row, struct leaver *l)
{
	l->q = q;
	l->lane = c->lane;
	l->keys = c->keys;
	l->tried = c->tried;
	l->offered = c->offered;
	l->t.attempts = 0;
	l->t.due.ms = 0;
	l->t.cancel = false;
	l->t.rival = 0;
	l->t.error_len = 0;
	l->b.seq = seq;
	enum baton_err e = row ? batch_need(&s->db, seq, &l->b) : BATON_OK;
	if (e == BATON_OK && c->tried)
		e = trouble_load(&s->db, seq, &l->t);
	if (e != BATON_OK)
		return e;
	l->t.fence = c->fence;
	q->tally.running--;
	q->changed = true;
	return BATON_OK;
}

/* What is claimed is in the line of a key only if others may take it. */
static enum baton_err line_drop(struct sqlite_store *s, const struct leaver *l)
{
	struct lane_row row = {.keyed = false};
	enum baton_err e = l->lane > 0 ? RUN(&s->db, SQL_LINE_DROP, l->lane, l->b.seq) : BATON_OK;
	/* One that gets another number has left its line before. */
	if (e == BATON_OK && l->lane > 0 && l->offered && db_changes(&s->db) > 0)
		e = lane_read(&s->db, l->lane, &row);
	if (e == BATON_OK && row.keyed)
		books_waiting(l->q, -1);
	return e;
}

static enum baton_err line_try(struct sqlite_store *s, const struct leaver *l)
{
	if (l->lane == 0)
		return BATON_OK;
	if (line_is_keyed(batch_row_line(&l->b)) && !l->offered)
		books_waiting(l->q, 1);
	return RUN(&s->db, SQL_LINE_TRY, l->lane, l->b.seq);
}

enum baton_err leaver_remove(struct sqlite_store *s, struct leaver *l)
{
	enum baton_err e = line_drop(s, l);
	if (e == BATON_OK && l->tried)
		e = RUN(&s->db, SQL_TROUBLE_DROP, l->b.seq);
	return e == BATON_OK ? RUN(&s->db, SQL_BATCH_DROP, l->b.seq) : e;
}

enum baton_err leaver_cancelled(struct sqlite_store *s, struct leaver *l)
{
	if (l->t.rival == 0)
		return leaver_remove(s, l);
	expect(BATON_BATCH_CLAIMED, EVENT_SKIP, BATON_BATCH_DONE);
	int64_t until = baton_store_time_add(s->now, policy_skipped_keep(&l->q->policy)).ms;
	enum baton_err e = line_drop(s, l);
	if (e == BATON_OK)
		e = RUN(&s->db, SQL_DONE_SKIP, l->b.seq, s->now.ms, until, l->t.rival);
	l->t.cancel = false;
	l->t.rival = 0;
	l->t.due.ms = 0;
	return e == BATON_OK ? trouble_save(&s->db, l->b.seq, &l->t) : e;
}

enum baton_err leaver_keep(struct sqlite_store *s, struct leaver *l, struct baton_str result)
{
	expect(BATON_BATCH_CLAIMED, EVENT_KEEP, BATON_BATCH_DONE);
	struct query q = query_begin(&s->db, SQL_DONE_ADD);
	query_int(&q, l->b.seq);
	query_int(&q, s->now.ms);
	query_int(&q, baton_store_time_add(s->now, l->q->policy.keep).ms);
	query_blob(&q, result.ptr, result.len);
	enum baton_err e = query_run(&q);
	return e == BATON_OK ? line_drop(s, l) : e;
}

enum baton_err leaver_back(struct sqlite_store *s, struct leaver *l)
{
	expect(BATON_BATCH_CLAIMED, EVENT_ABANDON, BATON_BATCH_READY);
	l->t.due.ms = 0;
	l->q->tally.ready++;
	enum baton_err e = trouble_save(&s->db, l->b.seq, &l->t);
	if (e == BATON_OK)
		e = wish_add(s, l->q, &l->b);
	return e == BATON_OK ? line_try(s, l) : e;
}

enum baton_err leaver_later(struct sqlite_store *s, struct leaver *l, struct baton_store_time due,
                            enum later_kind kind)
{
	expect(BATON_BATCH_CLAIMED, kind == LATER_DELAY ? EVENT_SNOOZE : EVENT_FAIL,
	       kind == LATER_DELAY ? BATON_BATCH_DELAYED : BATON_BATCH_RETRY);
	l->t.due = due;
	l->q->tally.delayed++;
	l->q->tended_in = 0; /* it may be due at once */
	enum baton_err e = trouble_save(&s->db, l->b.seq, &l->t);
	if (e == BATON_OK)
		e = RUN(&s->db, SQL_LATER_ADD, l->q->id, due.ms, l->b.seq, kind);
	if (e != BATON_OK)
		return e;
	if (kind != LATER_BLOCK)
		return line_drop(s, l);
	if (!line_is_keyed(batch_row_line(&l->b)))
		return line_try(s, l);
	e = line_drop(s, l);
	return e == BATON_OK ? key_keep(s, l->lane, l->b.seq) : e;
}

enum baton_err leaver_behind(struct sqlite_store *s, struct leaver *l)
{
	int64_t seq = s->books.seq + 1;
	enum baton_err e = line_drop(s, l);
	if (e == BATON_OK)
		e = RUN(&s->db, SQL_TROUBLE_DROP, l->b.seq);
	if (e == BATON_OK)
		e = RUN(&s->db, SQL_BATCH_MOVE, seq, l->b.seq);
	if (e != BATON_OK)
		return e;
	l->b.seq = seq;
	s->books.seq = seq;
	s->books.changed = true;
	return BATON_OK;
}

enum baton_err leaver_die(struct sqlite_store *s, struct leaver *l)
{
	expect(BATON_BATCH_CLAIMED, EVENT_DIE, BATON_BATCH_DEAD);
	l->t.due.ms = 0;
	l->q->tally.dead++;
	enum baton_err e = trouble_save(&s->db, l->b.seq, &l->t);
	if (e == BATON_OK)
		e = RUN(&s->db, SQL_DEAD_ADD, l->q->id, l->b.seq, s->now.ms);
	if (e == BATON_OK)
		e = line_drop(s, l);
	if (e != BATON_OK || !line_dead_holds(batch_row_line(&l->b), &l->q->policy))
		return e;
	e = RUN(&s->db, SQL_DEAD_HOLD, l->lane, l->q->id, l->b.seq);
	return e == BATON_OK ? lane_hold(s, l->lane) : e;
}

bool leaver_fail(struct leaver *l, struct baton_str error)
{
	l->t.attempts++;
	l->q->tally.failed++;
	trouble_error(&l->t, error);
	return l->t.attempts >= batch_row_retry(&l->b, &l->q->policy).attempts;
}

enum baton_err claim_recover(struct sqlite_store *s, struct queue_row *q, struct claim_row *c,
                             struct baton_str why)
{
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < c->count && e == BATON_OK; i++) {
		struct leaver l;
		e = leaver_load(s, q, c, c->seqs[i], true, &l);
		if (e != BATON_OK)
			return e;
		l.tried = true;
		if (l.t.cancel)
			e = leaver_cancelled(s, &l);
		else if (why.len > 0 && leaver_fail(&l, why))
			e = leaver_die(s, &l);
		else
			e = leaver_back(s, &l);
	}
	return e == BATON_OK ? claim_drop(s, c) : e;
}

/* Among the heads, if it is still there and not dead. */
static enum baton_err single_back(struct sqlite_store *s, struct queue_row *q, int64_t seq)
{
	struct batch_row b;
	bool found;
	int64_t dead = 0;
	enum baton_err e = batch_load(&s->db, seq, &b, &found);
	if (e == BATON_OK && found)
		e = FIND(&s->db, SQL_DEAD_HAS, &dead, q->id, seq);
	return e == BATON_OK && found && dead == 0 ? head_add(s, q, &b, 0, true) : e;
}

enum baton_err claim_return(struct sqlite_store *s, struct queue_row *q, struct claim_row *c,
                            struct baton_str why)
{
	enum baton_err e = lone_melt_claim(s, c);
	if (e == BATON_OK)
		e = claim_recover(s, q, c, why);
	if (e != BATON_OK)
		return e;
	e = c->lane > 0 ? lane_settle(s, q, c->lane) : single_back(s, q, c->seqs[0]);
	return e == BATON_OK ? lane_settle_keys(s, q, &c->keys) : e;
}

/* Numbers that a query finds, before what they stand for is changed. */
struct due {
	int64_t due, seq, kind;
};

static enum baton_err list_due(struct sqlite_store *s, const struct queue_row *row,
                               struct due **ret, size_t *ret_count)
{
	struct query q = query_begin(&s->db, SQL_LATER_DUE);
	struct due *list = NULL;
	size_t count = 0;
	bool memory = true;
	query_int(&q, row->id);
	query_int(&q, s->now.ms);
	query_int(&q, TEND_MAX);
	while (memory && query_row(&q)) {
		if (!list)
			list = arena_take(&s->scratch, TEND_MAX, sizeof *list);
		memory = list != NULL;
		if (memory)
			list[count++] = (struct due){column_int(&q, 0), column_int(&q, 1),
			                             column_int(&q, 2)};
	}
	*ret = list;
	*ret_count = count;
	enum baton_err e = query_end(&q);
	return e == BATON_OK && !memory ? fail_memory(TEND_MAX * sizeof *list, "what is due") : e;
}

enum baton_err later_end(struct sqlite_store *s, struct queue_row *q, const struct batch_row *b,
                         struct baton_store_time due, enum later_kind kind)
{
	struct trouble t;
	expect(kind == LATER_DELAY ? BATON_BATCH_DELAYED : BATON_BATCH_RETRY, EVENT_DUE,
	       BATON_BATCH_READY);
	enum baton_err e = RUN(&s->db, SQL_LATER_DROP, q->id, due.ms, b->seq);
	if (e == BATON_OK)
		e = trouble_load(&s->db, b->seq, &t);
	bool tried = e == BATON_OK && t.due.ms > 0;
	if (tried) {
		t.due.ms = 0;
		e = trouble_save(&s->db, b->seq, &t);
	}
	if (e != BATON_OK)
		return e;
	q->tally.delayed--;
	q->tally.ready++;
	q->changed = true;
	struct key_lines keys = {.count = 0};
	int64_t lane;
	e = wish_add(s, q, b);
	if (e == BATON_OK)
		e = guest_let_go(s, q, b, &keys);
	if (e == BATON_OK && kind != LATER_BLOCK) {
		e = lane_enter(s, q, b, tried, NULL);
		return e == BATON_OK ? lane_settle_keys(s, q, &keys) : e;
	}
	if (e == BATON_OK)
		e = lane_find(s, q->id, batch_row_line(b), &lane);
	if (e == BATON_OK && line_is_keyed(batch_row_line(b))) {
		e = key_let_go(s, lane, b->seq);
		if (e == BATON_OK)
			e = RUN(&s->db, SQL_LINE_TRY, lane, b->seq);
		books_waiting(q, 1);
	}
	if (e == BATON_OK)
		e = lane_settle(s, q, lane);
	return e == BATON_OK ? lane_settle_keys(s, q, &keys) : e;
}

/* Whether it still waits: one that keeps its key may have been replaced by one that was due before
 * it. */
static enum baton_err is_due_still(struct sqlite_store *s, const struct queue_row *q,
                                   const struct due *due, bool *ret)
{
	int64_t kind = due->kind;
	enum baton_err e = BATON_OK;
	if (due->kind == LATER_BLOCK) {
		kind = 0;
		e = FIND(&s->db, SQL_LATER_HAS, &kind, q->id, due->due, due->seq);
	}
	*ret = kind == due->kind;
	return e;
}

static enum baton_err promote(struct sqlite_store *s, struct queue_row *q, bool *ret_all)
{
	struct due *list;
	size_t count;
	enum baton_err e = list_due(s, q, &list, &count);
	*ret_all = count < TEND_MAX;
	for (size_t i = 0; i < count && e == BATON_OK; i++) {
		struct batch_row b;
		bool still;
		e = is_due_still(s, q, &list[i], &still);
		if (e != BATON_OK || !still)
			continue;
		e = batch_need(&s->db, list[i].seq, &b);
		if (e == BATON_OK)
			e = later_end(s, q, &b, (struct baton_store_time){list[i].due},
			              (enum later_kind)list[i].kind);
	}
	return e;
}

/* Whether the claim holds keys of a class. Who claims those does not look at the claims of other
 * queues, so that one that has expired is ended at once. */
static enum baton_err is_of_class(struct sqlite_store *s, const struct queue_row *q,
                                  const struct claim_row *c, bool *ret)
{
	struct lane_row row;
	*ret = c->keys.count > 0;
	if (!policy_has_class(&q->policy) || c->lane == 0 || *ret) {
		*ret = *ret && policy_has_class(&q->policy);
		return BATON_OK;
	}
	enum baton_err e = lane_read(&s->db, c->lane, &row);
	*ret = e == BATON_OK && row.keyed;
	return e;
}

static enum baton_err offer_one(struct sqlite_store *s, struct queue_row *q,
                                const struct claim_name *name)
{
	struct claim_row c;
	struct batch_row b;
	bool found, shared = false;
	enum baton_err e = claim_load(s, name, &c, &found);
	if (e == BATON_OK && found)
		e = is_of_class(s, q, &c, &shared);
	if (e == BATON_OK && shared)
		return claim_return(s, q, &c, BATON_STR("the claim expired"));
	if (e == BATON_OK && found)
		e = lone_melt_claim(s, &c);
	if (e == BATON_OK)
		e = RUN(&s->db, SQL_CLAIM_OFFER, (int64_t)name->head, (int64_t)name->fence);
	if (e != BATON_OK || !found)
		return e;
	if (c.lane > 0) {
		e = lane_offer(s, q, &c, true);
		if (e == BATON_OK)
			e = lane_settle(s, q, c.lane);
		return e == BATON_OK ? lane_settle_keys(s, q, &c.keys) : e;
	}
	e = batch_need(&s->db, c.seqs[0], &b);
	return e == BATON_OK ? head_add(s, q, &b, 0, true) : e;
}

static enum baton_err offer(struct sqlite_store *s, struct queue_row *q, bool *ret_all)
{
	struct claim_name *names = NULL;
	size_t count = 0;
	bool memory = true;
	struct query list = query_begin(&s->db, SQL_CLAIM_EXPIRED);
	query_int(&list, q->id);
	query_int(&list, s->now.ms);
	query_int(&list, TEND_MAX);
	while (memory && query_row(&list)) {
		if (!names)
			names = arena_take(&s->scratch, TEND_MAX, sizeof *names);
		memory = names != NULL;
		if (memory)
			names[count++] = (struct claim_name){(uint64_t)column_int(&list, 0),
			                                     (uint64_t)column_int(&list, 1)};
	}
	*ret_all = count < TEND_MAX;
	enum baton_err e = query_end(&list);
	if (e == BATON_OK && !memory)
		return fail_memory(TEND_MAX * sizeof *names, "expired claims");
	for (size_t i = 0; i < count && e == BATON_OK; i++)
		e = offer_one(s, q, &names[i]);
	return e;
}

static enum baton_err tend(struct sqlite_store *s, struct queue_row *q)
{
	bool all_due = false, all_expired = false, all_free = true;
	if (q->tended_in == s->books.turn && q->tended_at.ms == s->now.ms && !q->mixed)
		return BATON_OK;
	bool all_melted = false;
	enum baton_err e = heads_gather(s, q);
	if (e == BATON_OK)
		e = promote(s, q, &all_due);
	if (e == BATON_OK && q->policy.key_rate.starts > 0)
		e = rates_see(s, q, &all_free);
	if (e == BATON_OK)
		e = bulk_melt_expired(s, q, TEND_MAX / BULK_MAX + 1, &all_melted);
	if (e == BATON_OK)
		e = offer(s, q, &all_expired);
	if (e == BATON_OK && all_due && all_free && all_expired && all_melted) {
		q->tended_in = s->books.turn;
		q->tended_at = s->now;
	}
	return e;
}

enum baton_err queue_tend(struct sqlite_store *s, struct queue_row *q)
{
	struct class_queues others;
	struct queue_row *other;
	enum baton_err e = class_queues(&s->db, &q->policy, q->id, &others);
	for (size_t i = 0; e == BATON_OK && i < others.count; i++) {
		e = books_queue_by_id(&s->books, &s->db, others.list[i], &other);
		if (e == BATON_OK)
			e = tend(s, other);
	}
	return e == BATON_OK ? tend(s, q) : e;
}
