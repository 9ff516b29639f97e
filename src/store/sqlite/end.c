/* Renewing claims in an SQLite file, and ending them. */
#include <string.h>

#include "base/digest.h"
#include "base/fail.h"
#include "queue/backoff.h"
#include "queue/batch.h"
#include "store/sqlite/claims.h"
#include "store/sqlite/fate.h"
#include "store/sqlite/lanes.h"
#include "store/sqlite/lone.h"
#include "store/sqlite/puts.h"

/* The claim that the proof is about, if it has a row of its own. */
static enum baton_err claim_proved(struct sqlite_store *s, const struct baton_work_proof *proof,
                                   struct claim_row *ret, bool *ret_found)
{
	struct claim_name name;
	*ret_found = false;
	if (!claim_name_parse(proof->id, &name))
		return BATON_OK;
	enum baton_err e = claim_load(s, &name, ret, ret_found);
	if (e != BATON_OK || !*ret_found)
		return e;
	*ret_found = digest_equal(ret->token.bytes, proof->token.bytes, sizeof ret->token.bytes);
	return BATON_OK;
}

/* The claim that the proof is about. *ret_found false: there is none any more, or never was. */
static enum baton_err claim_single(struct sqlite_store *s, const struct baton_work_proof *proof,
                                   struct claim_row *ret, bool *ret_found)
{
	bool melted = false;
	enum baton_err e = claim_proved(s, proof, ret, ret_found);
	if (e == BATON_OK && !*ret_found)
		e = bulk_melt_claim(s, proof, &melted);
	return e == BATON_OK && melted ? claim_proved(s, proof, ret, ret_found) : e;
}

/* Work that was offered because its claim had expired is offered no more. */
static enum baton_err take_back_offer(struct sqlite_store *s, struct queue_row *q,
                                      const struct claim_row *c)
{
	struct batch_row b;
	if (!c->offered)
		return BATON_OK;
	if (c->lane > 0) {
		enum baton_err settled = lane_settle(s, q, c->lane);
		return settled == BATON_OK ? lane_settle_keys(s, q, &c->keys) : settled;
	}
	enum baton_err e = batch_need(&s->db, c->seqs[0], &b);
	return e == BATON_OK ? head_drop(s, q, b.shard, batch_row_rank(&b), b.seq) : e;
}

struct renew_args {
	const struct baton_work_proof *proofs;
	size_t count;
	struct baton_duration ttl;
	struct baton_work_renewal *answers;
};

/* For no longer than a key is held, if it has one. */
static enum baton_err renew_for(struct sqlite_store *s, const struct queue_row *q,
                                const struct claim_row *c, struct baton_duration *ttl)
{
	struct batch_row b;
	enum baton_err e = batch_need(&s->db, c->seqs[0], &b);
	if (e == BATON_OK)
		*ttl = line_ttl(batch_row_key(&b), &q->policy, *ttl);
	return e;
}

static enum baton_err renew_one(struct sqlite_store *s, const struct baton_work_proof *proof,
                                struct baton_duration ttl, struct baton_work_renewal *answer)
{
	struct claim_row c;
	struct queue_row *q;
	bool found;
	*answer = (struct baton_work_renewal){.err = BATON_NOT_HELD};
	enum baton_err e = claim_single(s, proof, &c, &found);
	if (e != BATON_OK || !found)
		return e;
	e = books_queue_by_id(&s->books, &s->db, c.queue, &q);
	if (e == BATON_OK && q->policy.key_ttl.ns > 0)
		e = renew_for(s, q, &c, &ttl);
	if (e != BATON_OK)
		return e;
	struct baton_store_time until = lease_extended(c.expires_at, s->now, ttl, false);
	e = RUN(&s->db, SQL_CLAIM_RENEW, until.ms, c.head, (int64_t)c.fence);
	if (e == BATON_OK && c.offered && c.lane > 0)
		e = lane_offer(s, q, &c, false);
	if (e == BATON_OK)
		e = take_back_offer(s, q, &c);
	if (e == BATON_OK)
		e = claim_wants_cancel(&s->db, &c, &answer->cancel);
	answer->err = BATON_OK;
	answer->expires_at = until;
	return e;
}

static enum baton_err renew_run(void *store, void *args)
{
	const struct renew_args *a = args;
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < a->count && e == BATON_OK; i++)
		e = renew_one(store, &a->proofs[i], a->ttl, &a->answers[i]);
	return e;
}

enum baton_err sqlite_renew(struct baton_store *store, const struct baton_work_proof *proofs,
                            size_t count, struct baton_duration ttl,
                            struct baton_work_renewal *answers)
{
	struct renew_args args = {proofs, count, ttl, answers};
	return sqlite_write_first((struct sqlite_store *)store, renew_run, &args);
}

/* The batches that an end is about. */
struct ending {
	int64_t *seqs; /* the scratch's */
	size_t count;
};

/* Marks the batch as one that ends. False: it is not under the claim. */
static bool mark_end(const struct claim_row *c, int64_t seq, bool *ends)
{
	size_t low = 0, high = c->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (c->seqs[middle] < seq)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == c->count || c->seqs[low] != seq)
		return false;
	ends[low] = true;
	return true;
}

/* Those batches of the claim that end: all, or the named ones, in order. *ret_known false: one is
 * not under it. */
static enum baton_err ending(struct sqlite_store *s, const struct claim_row *c,
                             const struct baton_work_end *end, struct ending *ret, bool *ret_known)
{
	bool *ends = arena_take(&s->scratch, c->count, sizeof *ends);
	ret->seqs = arena_take(&s->scratch, c->count, sizeof *ret->seqs);
	ret->count = 0;
	if (!ends || !ret->seqs)
		return fail_memory(c->count * sizeof *ret->seqs, "batches");
	*ret_known = true;
	for (size_t i = 0; end->ids && i < end->count && *ret_known; i++) {
		uint64_t id;
		int64_t seq = 0;
		bool named = batch_id_parse(&end->ids[i], &id);
		enum baton_err e = named ? batch_seq_of(&s->db, (int64_t)id, &seq) : BATON_OK;
		if (e != BATON_OK)
			return e;
		*ret_known = mark_end(c, seq, ends);
	}
	for (size_t i = 0; i < c->count; i++) {
		if (!end->ids || ends[i])
			ret->seqs[ret->count++] = c->seqs[i];
	}
	return BATON_OK;
}

/* When it is tried again. */
static enum baton_err retry_due(struct sqlite_store *s, const struct leaver *l,
                                const struct baton_work_end *end, struct baton_store_time *ret)
{
	struct baton_retry retry = batch_row_retry(&l->b, &l->q->policy);
	struct baton_id random;
	uint64_t bits;
	enum baton_err e = baton_id_random(&random);
	if (e != BATON_OK)
		return e;
	memcpy(&bits, random.bytes, sizeof bits);
	struct baton_duration delay =
		end->delay.ns > 0 ? end->delay : backoff_delay(&retry, l->t.attempts, bits);
	*ret = baton_store_time_add(s->now, delay);
	return BATON_OK;
}

/* Waits for its next attempt where its queue wants it to. */
static enum baton_err retry_later(struct sqlite_store *s, struct leaver *l,
                                  struct baton_store_time due)
{
	enum later_kind kind = LATER_RETRY;
	enum baton_err e = BATON_OK;
	switch (line_on_retry(batch_row_line(&l->b), &l->q->policy)) {
	case LINE_RETRY_KEEP:
		kind = LATER_BLOCK;
		break;
	case LINE_RETRY_BEHIND:
		e = leaver_behind(s, l);
		break;
	case LINE_RETRY_PASS:
		break;
	}
	if (e == BATON_OK)
		e = leaver_later(s, l, due, kind);
	for (size_t i = 0; i < l->keys.count && e == BATON_OK; i++) {
		if (guest_keeps_key(&l->q->policy))
			e = key_keep(s, l->keys.list[i], l->b.seq);
	}
	return e;
}

static enum baton_err end_failed(struct sqlite_store *s, struct leaver *l,
                                 const struct baton_work_end *end, struct baton_work_ended *answer)
{
	bool last = leaver_fail(l, end->error) || end->how == BATON_REJECT;
	answer->state = last ? BATON_BATCH_DEAD : BATON_BATCH_RETRY;
	if (last)
		return leaver_die(s, l);
	enum baton_err e = retry_due(s, l, end, &answer->due);
	return e == BATON_OK ? retry_later(s, l, answer->due) : e;
}

/* Back without a lane means among the heads; with one, its lane is settled later. */
static enum baton_err end_back(struct sqlite_store *s, struct leaver *l)
{
	enum baton_err e = leaver_back(s, l);
	return e == BATON_OK && l->lane == 0 ? head_add(s, l->q, &l->b, 0, true) : e;
}

static enum baton_err end_batch(struct sqlite_store *s, struct leaver *l,
                                const struct baton_work_end *end, struct baton_work_ended *answer)
{
	answer->state = BATON_BATCH_GONE;
	answer->due.ms = 0;
	if (end->how == BATON_COMPLETE) {
		l->q->tally.done++;
		if (l->q->policy.keep.ns == 0)
			return leaver_remove(s, l);
		answer->state = BATON_BATCH_DONE;
		return leaver_keep(s, l, end->result);
	}
	if (l->t.cancel) {
		answer->state = l->t.rival > 0 ? BATON_BATCH_SKIPPED : BATON_BATCH_GONE;
		return leaver_cancelled(s, l);
	}
	switch (end->how) {
	case BATON_FAIL:
	case BATON_REJECT:
		return end_failed(s, l, end, answer);
	case BATON_SNOOZE:
		answer->state = BATON_BATCH_DELAYED;
		answer->due = baton_store_time_add(s->now, end->delay);
		return leaver_later(s, l, answer->due, LATER_DELAY);
	case BATON_ABANDON:
		answer->state = BATON_BATCH_READY;
		return end_back(s, l);
	case BATON_COMPLETE:
		break;
	}
	return BATON_OK;
}

/* A claim that was completed whole is remembered, so that it can be said again. */
static enum baton_err remember(struct sqlite_store *s, const struct queue_row *row,
                               const struct claim_row *c, enum baton_batch_state state)
{
	s->remembered++;
	struct query q = query_begin(&s->db, SQL_FINISHED_ADD);
	query_int(&q, c->head);
	query_int(&q, (int64_t)c->fence);
	query_blob(&q, c->token.bytes, sizeof c->token.bytes);
	query_int(&q, state);
	query_int(&q, baton_store_time_add(s->now, row->policy.dedupe).ms);
	return query_run(&q);
}

static enum baton_err end_claim(struct sqlite_store *s, struct claim_row *c,
                                const struct baton_work_end *end, const struct ending *ending,
                                struct baton_work_ended *answer)
{
	struct queue_row *q;
	bool whole = ending->count == c->count;
	enum baton_err e = books_queue_by_id(&s->books, &s->db, c->queue, &q);
	if (e == BATON_OK)
		e = take_back_offer(s, q, c);
	/* The answer is about the first one. */
	for (size_t i = 0; i < ending->count && e == BATON_OK; i++) {
		struct leaver l;
		struct baton_work_ended other = *answer;
		e = leaver_load(s, q, c, ending->seqs[i], end->how != BATON_COMPLETE, &l);
		if (e == BATON_OK)
			e = end_batch(s, &l, end, i == 0 ? answer : &other);
	}
	if (e == BATON_OK)
		e = claim_shrink(s, c, ending->seqs, ending->count);
	if (e == BATON_OK && whole && end->how == BATON_COMPLETE)
		e = remember(s, q, c, answer->state);
	if (e == BATON_OK && c->lane > 0)
		e = lane_settle(s, q, c->lane);
	return e == BATON_OK ? lane_settle_keys(s, q, &c->keys) : e;
}

/* Who completes again is told what he was told before. */
static enum baton_err again(struct sqlite_store *s, const struct baton_work_end *end,
                            struct baton_work_ended *answer)
{
	struct claim_name name;
	bool known;
	if (end->how != BATON_COMPLETE || end->ids || !claim_name_parse(end->proof.id, &name))
		return BATON_OK;
	enum baton_err e = bulk_again(s, &end->proof, &known);
	if (e != BATON_OK || known) {
		answer->err = e;
		answer->state = BATON_BATCH_GONE;
		return e;
	}
	struct query q = query_begin(&s->db, SQL_FINISHED_READ);
	query_int(&q, (int64_t)name.head);
	query_int(&q, (int64_t)name.fence);
	if (query_row(&q)) {
		struct baton_id token;
		column_id(&q, 0, &token);
		struct baton_store_time until = {column_int(&q, 2)};
		if (digest_equal(token.bytes, end->proof.token.bytes, sizeof token.bytes) &&
		    baton_store_time_live(until, s->now)) {
			answer->err = BATON_OK;
			answer->state = (enum baton_batch_state)column_int(&q, 1);
		}
	}
	return query_end(&q);
}

/* A claim that has a row of its own, or gets one. */
static enum baton_err end_single(struct sqlite_store *s, const struct baton_work_end *end,
                                 struct baton_work_ended *answer)
{
	struct claim_row c;
	struct ending parts;
	bool found, known = false;
	enum baton_err e = claim_single(s, &end->proof, &c, &found);
	if (e == BATON_OK && !found)
		return again(s, end, answer);
	if (e == BATON_OK)
		e = ending(s, &c, end, &parts, &known);
	if (e != BATON_OK || !known)
		return e;
	answer->err = BATON_OK;
	if (end->how != BATON_COMPLETE)
		e = lone_melt_claim(s, &c);
	if (e == BATON_OK)
		e = end_claim(s, &c, end, &parts, answer);
	return e == BATON_OK ? put_all(s, end->emits, end->emit_count, NULL) : e;
}

/* Completes a claim of a job that stands together with others; *ret_done false: it is none. Those
 * that are known already are found without a look into the file. */
static enum baton_err end_together(struct sqlite_store *s, const struct baton_work_end *end,
                                   bool *ret_done)
{
	struct claim_name name;
	struct claim_row c;
	bool single = false;
	*ret_done = false;
	if (end->how != BATON_COMPLETE || end->ids || !claim_name_parse(end->proof.id, &name))
		return BATON_OK;
	enum baton_err e = bulk_complete(s, &end->proof, true, ret_done);
	if (e == BATON_OK && !*ret_done)
		e = claim_load(s, &name, &c, &single);
	if (e == BATON_OK && !*ret_done && !single)
		e = bulk_complete(s, &end->proof, false, ret_done);
	return e;
}

static enum baton_err end_one(struct sqlite_store *s, const struct baton_work_end *end,
                              struct baton_work_ended *answer)
{
	bool done;
	*answer = (struct baton_work_ended){.err = BATON_NOT_HELD};
	enum baton_err e = end_together(s, end, &done);
	if (e != BATON_OK || !done)
		return e == BATON_OK ? end_single(s, end, answer) : e;
	*answer = (struct baton_work_ended){.err = BATON_OK, .state = BATON_BATCH_GONE};
	return put_all(s, end->emits, end->emit_count, NULL);
}

/* What an end emits may be refused after some of it was put, so such an end is undone alone. */
static enum baton_err end_saved(struct sqlite_store *s, const struct baton_work_end *end,
                                struct baton_work_ended *answer)
{
	struct books_mark mark;
	if (end->emit_count == 0)
		return end_one(s, end, answer);
	enum baton_err e = sqlite_save_begin(s, &mark);
	if (e != BATON_OK)
		return e;
	e = sqlite_save_end(s, &mark, end_one(s, end, answer));
	if (e != BATON_INVALID && e != BATON_CONFLICT && e != BATON_FULL)
		return e;
	*answer = (struct baton_work_ended){.err = e};
	return BATON_OK;
}

struct end_args {
	const struct baton_work_end *ends;
	size_t count;
	struct baton_work_ended *answers;
};

enum baton_err end_all(struct sqlite_store *s, const struct baton_work_end *ends, size_t count,
                       struct baton_work_ended *answers)
{
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < count && e == BATON_OK; i++)
		e = store_end_is_void(ends, i, answers) ? BATON_OK
		                                        : end_saved(s, &ends[i], &answers[i]);
	return e;
}

static enum baton_err end_run(void *store, void *args)
{
	const struct end_args *a = args;
	return end_all(store, a->ends, a->count, a->answers);
}

enum baton_err sqlite_end(struct baton_store *store, const struct baton_work_end *ends,
                          size_t count, struct baton_work_ended *answers)
{
	struct end_args args = {ends, count, answers};
	return sqlite_write_kind((struct sqlite_store *)store, REQUEST_END, end_run, &args);
}

enum baton_err sqlite_next(struct baton_store *store, const struct baton_work_end *ends,
                           size_t count, struct baton_work_ended *answers,
                           const struct baton_work_ask *ask, struct baton_work_claims **ret_claims)
{
	struct end_args args = {ends, count, answers};
	struct request end = {.run = end_run, .args = &args, .kind = REQUEST_END};
	enum baton_err e = claim_after((struct sqlite_store *)store, &end, ask, ret_claims);
	if (end.err != BATON_OK)
		store_ends_fail(answers, count, end.err);
	return e;
}
