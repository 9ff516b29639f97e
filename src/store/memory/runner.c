/* The runners of a store in memory, and their shards. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/quote.h"
#include "store/memory/batch.h"
#include "store/memory/due.h"
#include "store/memory/lane.h"
#include "store/memory/lease.h"
#include "store/memory/ops.h"
#include "store/memory/put.h"
#include "store/memory/queue.h"
#include "store/memory/rate.h"
#include "store/memory/rival.h"
#include "store/memory/runner.h"

#define SHARD_TEXT (BATON_NAME_MAX + 16)

struct runner *memory_runner_find(const struct memory *m, uint64_t number)
{
	for (struct row *row = m->runners.oldest; row; row = row->newer) {
		struct runner *r = (struct runner *)row;
		if (!row->gone && r->put.number == number)
			return r;
	}
	return NULL;
}

static struct runner *runner_named(const struct memory *m, struct baton_str name)
{
	for (struct row *row = m->runners.oldest; row; row = row->newer) {
		struct runner *r = (struct runner *)row;
		if (!row->gone && baton_str_equal(baton_str_z(r->put.name), name))
			return r;
	}
	return NULL;
}

static struct runner_row row_of(const struct runner *r)
{
	struct runner_row row = r->put;
	row.wish = r->is.wish;
	memcpy(row.state, r->is.state, sizeof row.state);
	return row;
}

static bool slot_is_taken(const struct memory *m, uint32_t slot)
{
	for (struct row *row = m->runners.oldest; row; row = row->newer) {
		if (!row->gone && ((struct runner *)row)->put.slot == slot)
			return true;
	}
	return false;
}

static enum baton_err add(struct tx *tx, struct runner_row *row)
{
	row->slot = 0;
	while (row->slot < BEATS_MAX && slot_is_taken(tx->m, row->slot))
		row->slot++;
	if (row->slot == BEATS_MAX)
		return fail(BATON_FULL, "there are %d runners: no more can be registered",
		            BEATS_MAX);
	struct runner *r = (struct runner *)memory_tx_add(tx, &tx->m->runners, sizeof *r, 0);
	if (!r)
		return BATON_NO_MEMORY;
	row->number = ++tx->m->runner;
	row->since = tx->now;
	r->put = *row;
	r->is.wish = row->wish;
	memcpy(r->is.state, row->state, sizeof r->is.state);
	return BATON_OK;
}

enum baton_err memory_runner_add(struct baton_store *store, struct runner_row *row,
                                 struct runner_row *ret_other)
{
	struct tx tx;
	memory_tx_begin(&tx, store);
	const struct runner *other = runner_named(tx.m, baton_str_z(row->name));
	if (other)
		*ret_other = row_of(other);
	return memory_tx_end(&tx, other ? BATON_YIELD : add(&tx, row));
}

/* As if it had not been claimed. */
static enum baton_err abandon(struct tx *tx, struct claim *claim)
{
	enum baton_err e = BATON_OK;
	for (struct batch *b = claim->lane->first; b && e == BATON_OK; b = b->next) {
		if (b->is.claim == claim)
			e = b->is.cancel ? memory_batch_cancelled(tx, b)
			                 : memory_batch_event(tx, b, EVENT_ABANDON);
	}
	return e;
}

/* Which of its claims a runner gives back: all, or those in one shard of the queue, and none that
 * is known. */
struct giving {
	const struct queue *queue;
	uint32_t shard;
	const struct baton_work_proof *known;
	size_t known_count;
	enum runner_end end;
};

static bool is_given(const struct giving *g, const struct claim *claim)
{
	char name[CLAIM_NAME_TEXT];
	if (g->queue &&
	    (claim->lane->queue != g->queue || memory_lane_shard(claim->lane) != g->shard))
		return false;
	claim_name_print(&claim->name, name);
	return g->known_count == 0 || !store_is_known(g->known, g->known_count, name);
}

static enum baton_err give_back(struct tx *tx, const struct runner *r, const struct giving *g)
{
	enum baton_err e = BATON_OK;
	for (struct row *row = tx->m->claims.oldest; row && e == BATON_OK; row = row->newer) {
		struct claim *claim = (struct claim *)row;
		if (row->gone ||
		    !baton_id_equal(&claim->owner.incarnation, &r->put.owner.incarnation))
			continue;
		if (!is_given(g, claim))
			continue;
		e = g->end == RUNNER_TAKEN ? memory_claim_recover(tx, claim, "its runner was lost")
		                           : abandon(tx, claim);
	}
	return e;
}

enum baton_err memory_runner_settle(struct baton_store *store, uint64_t number,
                                    const struct baton_work_proof *known, size_t count)
{
	const struct giving giving = {.known = known, .known_count = count, .end = RUNNER_LEFT};
	struct tx tx;
	memory_tx_begin(&tx, store);
	const struct runner *r = memory_runner_find(tx.m, number);
	return memory_tx_end_ring(&tx, r ? give_back(&tx, r, &giving) : BATON_NOT_HELD);
}

enum baton_err memory_runner_cancels(struct baton_store *store, uint64_t number,
                                     struct baton_claim_id *ids, size_t max, size_t *ret_count)
{
	struct tx tx;
	size_t count = 0;
	memory_tx_begin(&tx, store);
	const struct runner *r = memory_runner_find(tx.m, number);
	for (struct row *row = tx.m->claims.oldest; r && row && count < max; row = row->newer) {
		const struct claim *claim = (struct claim *)row;
		if (baton_id_equal(&claim->owner.incarnation, &r->put.owner.incarnation) &&
		    memory_claim_is_stopping(claim))
			claim_name_print(&claim->name, ids[count++].text);
	}
	*ret_count = count;
	return memory_tx_end(&tx, BATON_OK);
}

static struct report *report_find(const struct memory *m, uint64_t runner)
{
	for (struct row *row = m->reports.oldest; row; row = row->newer) {
		struct report *r = (struct report *)row;
		if (!row->gone && r->runner == runner)
			return r;
	}
	return NULL;
}

static enum baton_err report_drop(struct tx *tx, uint64_t runner)
{
	struct report *old = report_find(tx->m, runner);
	return old ? memory_tx_delete(tx, &old->row) : BATON_OK;
}

static enum baton_err report_set(struct tx *tx, uint64_t runner, struct baton_str text)
{
	enum baton_err e = report_drop(tx, runner);
	if (e != BATON_OK)
		return e;
	struct report *r =
		(struct report *)memory_tx_add(tx, &tx->m->reports, sizeof *r + text.len, 0);
	if (!r)
		return BATON_NO_MEMORY;
	r->runner = runner;
	r->at = tx->now;
	r->len = text.len;
	memcpy(r->text, text.ptr, text.len);
	return BATON_OK;
}

enum baton_err memory_runner_report(struct baton_store *store, uint64_t number,
                                    struct runner_report *ret)
{
	struct tx tx;
	memory_tx_begin(&tx, store);
	const struct report *r = report_find(tx.m, number);
	if (r) {
		memcpy(ret->text, r->text, r->len);
		ret->len = r->len;
		ret->at = r->at;
	}
	return memory_tx_end(&tx, r ? BATON_OK : BATON_NOT_FOUND);
}

static enum baton_err shards_free(struct tx *tx, uint64_t runner)
{
	enum baton_err e = BATON_OK;
	for (struct row *row = tx->m->leases.oldest; row && e == BATON_OK; row = row->newer) {
		struct lease *shard = (struct lease *)row;
		if (shard->is.runner != runner)
			continue;
		e = memory_tx_save(tx, row);
		if (e == BATON_OK)
			shard->is.runner = 0;
	}
	return e;
}

enum baton_err memory_runner_remove(struct baton_store *store, uint64_t number, enum runner_end end)
{
	struct tx tx;
	memory_tx_begin(&tx, store);
	struct runner *r = memory_runner_find(tx.m, number);
	if (!r)
		return memory_tx_end(&tx, BATON_NOT_HELD);
	enum baton_err e = give_back(&tx, r, &(struct giving){.end = end});
	if (e == BATON_OK)
		e = shards_free(&tx, number);
	if (e == BATON_OK)
		e = report_drop(&tx, number);
	if (e == BATON_OK)
		e = memory_rate_forget(&tx, &r->put.owner);
	if (e == BATON_OK)
		e = memory_tx_delete(&tx, &r->row);
	return memory_tx_end_ring(&tx, e);
}

enum baton_err memory_runner_next(struct baton_store *store, uint64_t after,
                                  struct runner_row *ret_row)
{
	struct tx tx;
	const struct runner *best = NULL;
	memory_tx_begin(&tx, store);
	for (struct row *row = tx.m->runners.oldest; row; row = row->newer) {
		const struct runner *r = (struct runner *)row;
		if (r->put.number > after && (!best || r->put.number < best->put.number))
			best = r;
	}
	if (best)
		*ret_row = row_of(best);
	return memory_tx_end(&tx, best ? BATON_OK : BATON_NOT_FOUND);
}

enum baton_err memory_runner_mark(struct baton_store *store, const struct runner_mark *mark)
{
	struct tx tx;
	memory_tx_begin(&tx, store);
	struct runner *r = mark->number > 0 ? memory_runner_find(tx.m, mark->number)
	                                    : runner_named(tx.m, mark->name);
	enum baton_err e = r ? memory_tx_save(&tx, &r->row) : BATON_NOT_HELD;
	if (e == BATON_OK && mark->wish)
		r->is.wish = mark->wish;
	if (e == BATON_OK && mark->state)
		snprintf(r->is.state, sizeof r->is.state, "%s", mark->state);
	if (e == BATON_OK && mark->report.ptr)
		e = report_set(&tx, r->put.number, mark->report);
	return memory_tx_end(&tx, e);
}

/* A shard is a lease that nobody can name; who has it stands in its row. */
static struct baton_str shard_subject(struct baton_str queue, uint32_t number,
                                      char text[SHARD_TEXT])
{
	int len = snprintf(text, SHARD_TEXT, "\1%.*s\1%" PRIu32, (int)queue.len, queue.ptr, number);
	return (struct baton_str){text, (size_t)len};
}

struct lease *memory_shard_find(const struct memory *m, struct baton_str queue, uint32_t number)
{
	char text[SHARD_TEXT];
	return memory_lease_find(m, shard_subject(queue, number, text));
}

static enum baton_err check_number(const struct queue *queue, uint64_t number)
{
	char shown[QUOTE_TEXT];
	if (number < queue->is.policy.shards)
		return BATON_OK;
	return fail(BATON_INVALID, "queue %s has the shards 0 to %" PRIu32 ": there is no %" PRIu64,
	            quote(queue->name, shown), queue->is.policy.shards - 1, number);
}

enum baton_err memory_shard_queue(const struct tx *tx, const struct baton_shard *shard,
                                  struct queue **ret)
{
	enum baton_err e = memory_queue_enter(tx->m, shard->queue, BATON_QUEUE_RUNNER, ret);
	return e == BATON_OK ? check_number(*ret, shard->number) : e;
}

static enum baton_err check_shards(const struct tx *tx, const struct baton_shard *shards,
                                   size_t count)
{
	struct queue *queue;
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < count && e == BATON_OK; i++)
		e = memory_shard_queue(tx, &shards[i], &queue);
	return e;
}

struct baton_shard_answer memory_shard_answer(const struct lease *shard, uint64_t runner)
{
	uint64_t has = shard ? shard->is.runner : 0;
	enum baton_err e = has == 0 ? BATON_NOT_HELD : has == runner ? BATON_OK : BATON_YIELD;
	return (struct baton_shard_answer){.err = e,
	                                   .fence = {shard ? shard->is.row.fence : 0},
	                                   .runner = has};
}

static enum baton_err take_shard(struct tx *tx, struct queue *queue, struct lease *shard,
                                 uint64_t runner)
{
	enum baton_err e = memory_tx_save(tx, &shard->row);
	if (e == BATON_OK)
		e = memory_lease_raise(tx, shard);
	if (e == BATON_OK)
		shard->is.runner = runner;
	return e == BATON_OK ? memory_queue_use(tx, queue, BATON_QUEUE_RUNNER) : e;
}

static enum baton_err change_one(struct tx *tx, const struct runner *r,
                                 const struct shard_change *c, size_t i)
{
	char text[SHARD_TEXT];
	struct queue *queue;
	enum baton_err e = memory_shard_queue(tx, &c->shards[i], &queue);
	struct lease *shard =
		memory_lease_make(tx, shard_subject(c->shards[i].queue, c->shards[i].number, text));
	if (e != BATON_OK || !shard)
		return e == BATON_OK ? BATON_NO_MEMORY : e;
	if (c->take && shard->is.runner == 0)
		e = take_shard(tx, queue, shard, c->runner);
	c->answers[i] = memory_shard_answer(shard, c->runner);
	if (c->take || shard->is.runner != c->runner || e != BATON_OK)
		return e;
	e = give_back(tx, r,
	              &(struct giving){.queue = queue,
	                               .shard = c->shards[i].number,
	                               .end = RUNNER_LEFT});
	if (e == BATON_OK)
		e = memory_tx_save(tx, &shard->row);
	if (e == BATON_OK)
		shard->is.runner = 0;
	return e;
}

enum baton_err memory_shard_change(struct baton_store *store, const struct shard_change *c)
{
	struct tx tx;
	memory_tx_begin(&tx, store);
	const struct runner *r = memory_runner_find(tx.m, c->runner);
	enum baton_err e = r ? check_shards(&tx, c->shards, c->count) : BATON_NOT_HELD;
	for (size_t i = 0; i < c->count && e == BATON_OK; i++)
		e = change_one(&tx, r, c, i);
	return memory_tx_end_ring(&tx, e);
}

enum baton_err memory_shard_list(struct baton_store *store, struct baton_str queue, uint32_t first,
                                 struct baton_shard_answer *answers, size_t count)
{
	struct tx tx;
	char shown[QUOTE_TEXT];
	memory_tx_begin(&tx, store);
	const struct queue *q = memory_queue_find(tx.m, queue);
	enum baton_err e =
		q ? BATON_OK : fail(BATON_NOT_FOUND, "there is no queue %s", quote(queue, shown));
	if (e == BATON_OK && count > 0)
		e = check_number(q, (uint64_t)first + count - 1);
	for (size_t i = 0; i < count && e == BATON_OK; i++) {
		const struct lease *shard = memory_shard_find(tx.m, queue, first + (uint32_t)i);
		answers[i] = memory_shard_answer(shard, shard ? shard->is.runner : 0);
	}
	return memory_tx_end(&tx, e);
}
