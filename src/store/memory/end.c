/* Renewing and ending claims of a store in memory. */
#include <stdlib.h>

#include "base/check.h"
#include "base/digest.h"
#include "base/utf8.h"
#include "queue/backoff.h"
#include "queue/line.h"
#include "store/memory/batch.h"
#include "store/memory/due.h"
#include "store/memory/lane.h"
#include "store/memory/ops.h"
#include "store/memory/put.h"
#include "store/memory/rival.h"

static struct claim *claim_proved(const struct tx *tx, const struct baton_work_proof *proof)
{
	struct claim_name name;
	if (!claim_name_parse(proof->id, &name))
		return NULL;
	struct row *row = memory_row_first(&tx->m->claims, memory_hash(tx->m, &name, sizeof name));
	for (; row; row = memory_row_next(row)) {
		struct claim *claim = (struct claim *)row;
		if (claim->name.head == name.head && claim->name.fence == name.fence &&
		    digest_equal(&claim->token, &proof->token, sizeof claim->token))
			return claim;
	}
	return NULL;
}

static enum baton_err renew_one(struct tx *tx, const struct baton_work_proof *proof,
                                struct baton_duration ttl, struct baton_work_renewal *answer)
{
	struct claim *claim = claim_proved(tx, proof);
	*answer = (struct baton_work_renewal){.err = claim ? BATON_OK : BATON_NOT_HELD};
	enum baton_err e = claim ? memory_tx_save(tx, &claim->row) : BATON_OK;
	if (!claim || e != BATON_OK)
		return e;
	const struct lane *key = memory_key_of_claim(claim);
	ttl = line_ttl(key->name, &key->queue->is.policy, ttl);
	claim->is.expires = lease_extended(claim->is.expires, tx->now, ttl, false);
	claim->is.offered = false;
	answer->expires_at = claim->is.expires;
	answer->cancel = memory_claim_is_stopping(claim);
	return BATON_OK;
}

enum baton_err memory_renew(struct baton_store *store, const struct baton_work_proof *proofs,
                            size_t count, struct baton_duration ttl,
                            struct baton_work_renewal *answers)
{
	struct tx tx;
	enum baton_err e = BATON_OK;
	memory_tx_begin(&tx, store);
	for (size_t i = 0; i < count && e == BATON_OK; i++)
		e = renew_one(&tx, &proofs[i], ttl, &answers[i]);
	return memory_tx_end(&tx, e);
}

/* One end in progress. */
struct ending {
	const struct baton_work_end *end;
	struct queue *queue;
	struct text *text;     /* the result, or the error */
	struct batch *first;   /* of those that have ended: the one with the lowest number */
	struct batch **behind; /* those that queue again behind the others; NULL: none do */
	size_t behind_count;
};

static enum baton_err complete(struct tx *tx, const struct ending *e, struct batch *b)
{
	struct baton_duration keep = e->queue->is.policy.keep;
	enum baton_err err = memory_batch_event(tx, b, keep.ns > 0 ? EVENT_KEEP : EVENT_COMPLETE);
	if (err == BATON_OK && keep.ns > 0)
		err = memory_text_set(tx, &b->is.result, e->text);
	if (err != BATON_OK)
		return err;
	e->queue->is.done++;
	b->is.by = 0; /* it was done before it gave way */
	b->is.ended_at = tx->now;
	b->is.until = baton_store_time_add(tx->now, keep);
	return BATON_OK;
}

static enum baton_err delay_of(const struct ending *e, const struct batch *b,
                               struct baton_duration *ret)
{
	const struct baton_retry *retry = memory_batch_retry(b);
	struct baton_id random;
	uint64_t bits;
	enum baton_err err = baton_id_random(&random);
	memcpy(&bits, random.bytes, sizeof bits);
	*ret = e->end->delay.ns > 0 ? e->end->delay : backoff_delay(retry, b->is.attempts, bits);
	return err;
}

static enum baton_err fail_batch(struct tx *tx, struct ending *e, struct batch *b)
{
	struct baton_duration delay;
	bool last = e->end->how == BATON_REJECT;
	enum baton_err err = memory_batch_fail(tx, b, e->text, EVENT_FAIL, last);
	if (err != BATON_OK || b->is.state != BATON_BATCH_RETRY)
		return err;
	err = delay_of(e, b, &delay);
	if (err != BATON_OK)
		return err;
	b->is.due = baton_store_time_add(tx->now, delay);
	if (e->behind)
		e->behind[e->behind_count++] = b;
	return BATON_OK;
}

static enum baton_err give_back(struct tx *tx, const struct ending *e, struct batch *b)
{
	bool snooze = e->end->how == BATON_SNOOZE;
	enum batch_event event = snooze ? EVENT_SNOOZE : EVENT_ABANDON;
	if (b->is.cancel)
		return memory_batch_cancelled(tx, b);
	enum baton_err err = memory_batch_event(tx, b, event);
	if (err == BATON_OK && b->is.state == BATON_BATCH_DELAYED)
		b->is.due = baton_store_time_add(tx->now, e->end->delay);
	return err;
}

static enum baton_err end_batch(struct tx *tx, struct ending *e, struct batch *b)
{
	if (!e->first || b->is.seq < e->first->is.seq)
		e->first = b;
	switch (e->end->how) {
	case BATON_COMPLETE:
		return complete(tx, e, b);
	case BATON_FAIL:
	case BATON_REJECT:
		return fail_batch(tx, e, b);
	case BATON_ABANDON:
	case BATON_SNOOZE:
		return give_back(tx, e, b);
	}
	return BATON_OK;
}

static bool are_under(const struct tx *tx, const struct baton_work_end *end,
                      const struct claim *claim)
{
	for (size_t i = 0; i < end->count; i++) {
		const struct batch *b = memory_batch_named(tx, &end->ids[i]);
		if (!b || b->is.claim != claim)
			return false;
	}
	return true;
}

/* Those that are named, each once. */
static enum baton_err end_named(struct tx *tx, struct ending *e, const struct claim *claim)
{
	enum baton_err err = BATON_OK;
	for (size_t i = 0; i < e->end->count && err == BATON_OK; i++) {
		struct batch *b = memory_batch_named(tx, &e->end->ids[i]);
		if (b && b->is.claim == claim)
			err = end_batch(tx, e, b);
	}
	return err;
}

/* All of the claim's, or those that are named. BATON_NOT_HELD: one is not under the claim. */
static enum baton_err end_batches(struct tx *tx, struct ending *e, const struct claim *claim)
{
	enum baton_err err = BATON_OK;
	if (e->end->ids)
		return are_under(tx, e->end, claim) ? end_named(tx, e, claim) : BATON_NOT_HELD;
	for (struct batch *b = claim->lane->first; b && err == BATON_OK; b = b->next) {
		if (b->is.claim == claim)
			err = end_batch(tx, e, b);
	}
	return err;
}

static int by_seq(const void *a, const void *b)
{
	const struct batch *x = *(const struct batch *const *)a;
	const struct batch *y = *(const struct batch *const *)b;
	return (x->is.seq > y->is.seq) - (x->is.seq < y->is.seq);
}

/* In the order that they had. */
static void queue_behind(struct tx *tx, struct ending *e)
{
	if (e->behind_count > 0)
		qsort(e->behind, e->behind_count, sizeof(struct batch *), by_seq);
	for (size_t i = 0; i < e->behind_count; i++)
		memory_batch_last(tx, e->behind[i]);
}

static struct baton_str text_of(const struct baton_work_end *end)
{
	struct baton_str error = end->error;
	if (end->how == BATON_COMPLETE)
		return end->result;
	if (error.len > BATON_ERROR_MAX)
		error.len = utf8_cut(error.ptr, BATON_ERROR_MAX);
	return error;
}

static struct answer *answer_find(const struct tx *tx, const struct baton_work_proof *proof)
{
	struct claim_name name;
	if (!claim_name_parse(proof->id, &name))
		return NULL;
	struct row *row = memory_row_first(&tx->m->answers, memory_hash(tx->m, &name, sizeof name));
	for (; row; row = memory_row_next(row)) {
		struct answer *answer = (struct answer *)row;
		if (answer->name.head == name.head && answer->name.fence == name.fence &&
		    digest_equal(&answer->token, &proof->token, sizeof answer->token))
			return answer;
	}
	return NULL;
}

/* Keeps what is answered, for whoever completes it again. */
static enum baton_err remember(struct tx *tx, const struct claim *claim, const struct ending *e)
{
	CHECK(e->first);
	struct answer *answer = NULL;
	uint64_t hash = memory_hash(tx->m, &claim->name, sizeof claim->name);
	answer = (struct answer *)memory_tx_add(tx, &tx->m->answers, sizeof *answer, hash);
	if (!answer)
		return BATON_NO_MEMORY;
	answer->name = claim->name;
	answer->token = claim->token;
	answer->state = e->first->is.state;
	answer->until = baton_store_time_add(tx->now, e->queue->is.policy.dedupe);
	return BATON_OK;
}

static enum baton_err end_claim(struct tx *tx, const struct baton_work_end *end,
                                struct claim *claim, struct baton_work_ended *answer)
{
	struct ending e = {.end = end,
	                   .queue = claim->lane->queue,
	                   .text = memory_text_new(tx, text_of(end))};
	bool behind = line_on_retry(claim->lane->name, &e.queue->is.policy) == LINE_RETRY_BEHIND;
	if (behind)
		e.behind = memory_tx_take(tx, claim->is.count, sizeof(struct batch *));
	if (!e.text || (behind && !e.behind))
		return BATON_NO_MEMORY;
	enum baton_err err = end_batches(tx, &e, claim);
	if (err == BATON_OK)
		queue_behind(tx, &e);
	CHECK(err != BATON_OK || e.first); /* a claim has batches, and so has a list of them */
	if (err == BATON_OK && end->emit_count > 0)
		err = memory_put_all(tx, end->emits, end->emit_count, NULL);
	if (err == BATON_OK && end->how == BATON_COMPLETE && claim->is.count == 0)
		err = remember(tx, claim, &e);
	if (err != BATON_OK)
		return err;
	answer->state = batch_shown(e.first->is.state, e.first->is.by);
	bool waits = answer->state == BATON_BATCH_DELAYED || answer->state == BATON_BATCH_RETRY;
	answer->due = waits ? e.first->is.due : (struct baton_store_time){0};
	return BATON_OK;
}

static enum baton_err end_missing(const struct tx *tx, const struct baton_work_end *end,
                                  struct baton_work_ended *answer)
{
	bool whole = end->how == BATON_COMPLETE && !end->ids;
	const struct answer *before = whole ? answer_find(tx, &end->proof) : NULL;
	if (!before || !baton_store_time_live(before->until, tx->now))
		return BATON_NOT_HELD;
	answer->state = before->state;
	return BATON_OK;
}

/* An end that is refused is undone, and the others go on. */
static enum baton_err end_one(struct tx *tx, const struct baton_work_end *end,
                              struct baton_work_ended *answer)
{
	struct claim *claim = claim_proved(tx, &end->proof);
	struct mark mark = memory_tx_mark(tx);
	*answer = (struct baton_work_ended){.err = BATON_OK};
	enum baton_err e = claim ? end_claim(tx, end, claim, answer) : end_missing(tx, end, answer);
	if (e == BATON_NO_MEMORY || e == BATON_SYSTEM)
		return e;
	if (e != BATON_OK)
		memory_tx_undo(tx, mark);
	answer->err = e;
	return BATON_OK;
}

enum baton_err memory_end_all(struct tx *tx, const struct baton_work_end *ends, size_t count,
                              struct baton_work_ended *answers)
{
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < count && e == BATON_OK; i++)
		e = store_end_is_void(ends, i, answers) ? BATON_OK
		                                        : end_one(tx, &ends[i], &answers[i]);
	return e;
}

enum baton_err memory_end(struct baton_store *store, const struct baton_work_end *ends,
                          size_t count, struct baton_work_ended *answers)
{
	struct tx tx;
	memory_tx_begin(&tx, store);
	return memory_tx_end_ring(&tx, memory_end_all(&tx, ends, count, answers));
}

enum baton_err memory_next(struct baton_store *store, const struct baton_work_end *ends,
                           size_t count, struct baton_work_ended *answers,
                           const struct baton_work_ask *ask, struct baton_work_claims **ret_claims)
{
	enum baton_err e = memory_end(store, ends, count, answers);
	if (e == BATON_OK)
		return memory_claim(store, ask, ret_claims);
	store_ends_fail(answers, count, e);
	return e;
}
