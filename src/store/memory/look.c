/* Looking at what is in a store in memory. */
#include <stdlib.h>

#include "base/fail.h"
#include "base/utf8.h"
#include "queue/line.h"
#include "store/keys.h"
#include "store/memory/batch.h"
#include "store/memory/class.h"
#include "store/memory/lane.h"
#include "store/memory/ops.h"
#include "store/memory/site.h"
#include "store/memory/take.h"
#include "store/refuse.h"

#define ERROR_SHOWN 200
#define LOOKED_AT_MAX 100000

static enum baton_err copy(struct arena *a, struct baton_str s, struct baton_str *ret)
{
	return arena_copy(a, s, ret) ? BATON_OK : fail_memory(s.len, "a text");
}

static enum baton_err show_claim(struct arena *a, const struct batch *b,
                                 struct baton_work_info *ret)
{
	const struct claim *claim = b->is.claim;
	char name[CLAIM_NAME_TEXT];
	claim_name_print(&claim->name, name);
	ret->fence.v = claim->name.fence;
	ret->owner = claim->owner;
	ret->claimed_at = claim->claimed_at;
	ret->expires_at = claim->is.expires;
	ret->cancel = b->is.cancel;
	return copy(a, baton_str_z(name), &ret->claim);
}

static enum baton_err show_texts(struct arena *a, const struct batch *b, bool whole,
                                 struct baton_work_info *ret)
{
	struct baton_str error = b->is.error ? b->is.error->bytes : (struct baton_str){0};
	struct baton_str result = {0};
	if (whole && b->is.result)
		result = b->is.result->bytes;
	if (!whole && error.len > ERROR_SHOWN)
		error.len = utf8_cut(error.ptr, ERROR_SHOWN);
	enum baton_err e = copy(a, error, &ret->error);
	if (e == BATON_OK)
		e = copy(a, result, &ret->result);
	if (e == BATON_OK)
		e = copy(a, b->lane->queue->name, &ret->queue);
	if (e == BATON_OK)
		e = copy(a, line_lane(b->lane->name), &ret->lane);
	char text[LINE_KEYS_MAX];
	return e == BATON_OK ? keys_show(a, memory_keys(b, text), KEYS_OF(ret)) : e;
}

static bool waits(const struct batch *b)
{
	return b->is.state == BATON_BATCH_DELAYED || b->is.state == BATON_BATCH_RETRY;
}

static enum baton_err show(struct arena *a, const struct batch *b, bool whole,
                           struct baton_work_info *ret)
{
	memset(ret, 0, sizeof *ret);
	ret->shard = memory_lane_shard(b->lane);
	ret->state = batch_shown(b->is.state, b->is.by);
	if (b->is.by > 0)
		batch_id_print(b->is.by, &ret->ahead);
	if (waits(b))
		ret->due = b->is.due;
	if (b->is.state == BATON_BATCH_DEAD || b->is.state == BATON_BATCH_DONE)
		ret->ended_at = b->is.ended_at;
	enum baton_err e = memory_show_batch(a, b, whole, &ret->batch);
	if (e == BATON_OK)
		e = show_texts(a, b, whole, ret);
	return e == BATON_OK && b->is.claim ? show_claim(a, b, ret) : e;
}

/* Why a ready batch is not running. */
static enum baton_why why_waiting(const struct batch *b, struct line line,
                                  struct baton_batch_id *ahead)
{
	if (line.dead) {
		batch_id_print(line.dead->id, ahead);
		return BATON_WHY_LANE_HELD;
	}
	if (!line_is_keyed(b->lane->name) && (line.first != b || line.claimed)) {
		batch_id_print(line.first != b ? line.first->id : line.claimed->id, ahead);
		return BATON_WHY_BEHIND;
	}
	if (line.holder) {
		batch_id_print(line.holder->id, ahead);
		return BATON_WHY_KEY;
	}
	if (line.until.ms > 0)
		return BATON_WHY_RATE;
	if (line.first != b || line.ahead) {
		batch_id_print(line.first != b ? line.first->id : line.ahead->id, ahead);
		return BATON_WHY_BEHIND;
	}
	return b->lane->queue->is.policy.paused ? BATON_WHY_PAUSED : BATON_WHY_READY;
}

/* Which of its keys that is about. */
static struct baton_str held_key(const struct baton_work_info *info, const struct lane *key)
{
	for (size_t i = 0; key && i < info->key_count; i++) {
		if (baton_str_equal(info->keys[i], line_key(key->name)))
			return info->keys[i];
	}
	return (struct baton_str){"", 0};
}

static void explain(const struct tx *tx, const struct batch *b, struct baton_work_info *ret)
{
	struct line line = {.free = false};
	struct baton_store_time until;
	uint64_t site;
	ret->held = held_key(ret, NULL);
	ret->scope = b->lane->queue->is.policy.key_scope;
	switch (b->is.state) {
	case BATON_BATCH_READY:
		line = memory_line_look(b->lane, tx->now);
		ret->why = why_waiting(b, line, &ret->ahead);
		site = memory_site_holder(tx, b->lane);
		until = memory_site_until(tx, b->lane);
		if (site > 0) {
			ret->why = BATON_WHY_KEY;
			batch_id_print(site, &ret->ahead);
		} else if (until.ms > 0) {
			ret->why = BATON_WHY_RATE;
			ret->ahead.text[0] = '\0';
			line.until = until;
		}
		if (ret->why == BATON_WHY_KEY || ret->why == BATON_WHY_RATE)
			ret->held = held_key(ret, line.key);
		if (ret->why != BATON_WHY_RATE)
			break;
		ret->due = line.until;
		ret->rate = b->lane->queue->is.policy.key_rate;
		break;
	case BATON_BATCH_DELAYED:
		ret->why = BATON_WHY_DELAYED;
		break;
	case BATON_BATCH_RETRY:
		ret->why = BATON_WHY_RETRY;
		break;
	case BATON_BATCH_CLAIMED:
		ret->why = BATON_WHY_NOTHING;
		break;
	case BATON_BATCH_DEAD:
		ret->why = BATON_WHY_DEAD;
		break;
	case BATON_BATCH_DONE:
	case BATON_BATCH_GONE:
	case BATON_BATCH_SKIPPED:
		ret->why = b->is.by > 0 ? BATON_WHY_SKIPPED : BATON_WHY_DONE;
		break;
	}
}

static enum baton_err page_of_one(const struct tx *tx, const struct batch *b,
                                  struct page_parcel *page)
{
	struct baton_work_info *info = arena_take(&page->arena, 1, sizeof *info);
	if (!info)
		return fail_memory(sizeof *info, "a batch");
	page->pub.infos = info;
	page->pub.count = 1;
	enum baton_err e = show(&page->arena, b, true, info);
	explain(tx, b, info);
	return e;
}

/* Ends the transaction of a look: the caller gets the page. */
static enum baton_err hand_over(struct tx *tx, enum baton_err e, struct page_parcel *page,
                                struct baton_work_page **ret_page)
{
	e = memory_tx_end(tx, e);
	if (e == BATON_OK)
		*ret_page = &page->pub;
	else if (page)
		baton_work_page_free(&page->pub);
	return e;
}

enum baton_err memory_get(struct baton_store *store, const struct baton_batch_id *id,
                          struct baton_work_page **ret_page)
{
	struct tx tx;
	memory_tx_begin(&tx, store);
	const struct batch *b = memory_batch_named(&tx, id);
	if (!b)
		return memory_tx_end(&tx, refuse_batch(id));
	struct page_parcel *page = page_parcel_new(store->alloc);
	enum baton_err e = page ? page_of_one(&tx, b, page) : BATON_NO_MEMORY;
	return hand_over(&tx, e, page, ret_page);
}

static bool is_listed(const struct tx *tx, const struct batch *b, const struct baton_work_filter *f)
{
	return (f->queue.len == 0 || baton_str_equal(b->lane->queue->name, f->queue)) &&
	       (f->lane.len == 0 || baton_str_equal(line_lane(b->lane->name), f->lane)) &&
	       (f->state == 0 || batch_shown(b->is.state, b->is.by) == f->state) &&
	       memory_batch_find(tx, b->id) != NULL;
}

static int by_seq(const void *a, const void *b)
{
	const struct batch *x = *(const struct batch *const *)a;
	const struct batch *y = *(const struct batch *const *)b;
	return (x->is.seq > y->is.seq) - (x->is.seq < y->is.seq);
}

static enum baton_err fill(const struct tx *tx, const struct baton_work_filter *f,
                           const struct batch *const *batches, size_t count,
                           struct page_parcel *page)
{
	struct baton_work_info *infos = arena_take(&page->arena, f->max, sizeof *infos);
	enum baton_err e = infos ? BATON_OK : fail_memory(f->max * sizeof *infos, "a page");
	size_t i = 0, shown = 0;
	for (; i < count && i < LOOKED_AT_MAX && shown < f->max && e == BATON_OK; i++) {
		if (is_listed(tx, batches[i], f))
			e = show(&page->arena, batches[i], false, &infos[shown++]);
	}
	page->pub.infos = infos;
	page->pub.count = shown;
	page->pub.next = i < count ? batches[i - 1]->is.seq : 0;
	return e;
}

enum baton_err memory_list(struct baton_store *store, const struct baton_work_filter *filter,
                           struct baton_work_page **ret_page)
{
	struct tx tx;
	size_t count = 0;
	memory_tx_begin(&tx, store);
	const struct batch **batches =
		memory_tx_take(&tx, tx.m->batches.count, sizeof(const struct batch *));
	if (!batches)
		return memory_tx_end(&tx, BATON_NO_MEMORY);
	for (struct row *row = tx.m->batches.oldest; row; row = row->newer) {
		const struct batch *b = (struct batch *)row;
		if (b->is.seq > filter->after)
			batches[count++] = b;
	}
	qsort(batches, count, sizeof(const struct batch *), by_seq);
	struct page_parcel *page = page_parcel_new(store->alloc);
	enum baton_err e = page ? fill(&tx, filter, batches, count, page) : BATON_NO_MEMORY;
	return hand_over(&tx, e, page, ret_page);
}

static bool is_asked_for(const struct queue *queue, struct baton_str name)
{
	return !queue->is.policy.paused && (name.len == 0 || baton_str_equal(queue->name, name));
}

/* What time does to a queue is seen to by whoever claims from one of its class. */
static bool counts(const struct queue *queue, struct baton_str name)
{
	bool asked = is_asked_for(queue, name);
	const struct queue *other = memory_class_next(queue, NULL);
	for (; other && !asked; other = memory_class_next(queue, other))
		asked = is_asked_for(other, name);
	return asked;
}

/* The next after a moment. */
struct next {
	struct baton_store_time after, at;
	bool found;
};

/* What a runner has claimed lasts as long as it does. */
static void next_is(struct next *n, struct baton_store_time at)
{
	if (at.ms <= n->after.ms || at.ms == INT64_MAX)
		return;
	n->at = n->found && n->at.ms < at.ms ? n->at : at;
	n->found = true;
}

enum baton_err memory_next_due(struct baton_store *store, struct baton_str queue,
                               struct baton_store_time after, struct baton_store_time *ret)
{
	struct tx tx;
	struct next next = {.after = after};
	memory_tx_begin(&tx, store);
	for (struct row *row = tx.m->batches.oldest; row; row = row->newer) {
		const struct batch *b = (struct batch *)row;
		if (waits(b) && counts(b->lane->queue, queue))
			next_is(&next, b->is.due);
	}
	for (struct row *row = tx.m->claims.oldest; row; row = row->newer) {
		const struct claim *claim = (struct claim *)row;
		if (!claim->is.offered && counts(claim->lane->queue, queue))
			next_is(&next, claim->is.expires);
	}
	for (struct row *row = tx.m->rates.oldest; row; row = row->newer) {
		const struct rate *rate = (struct rate *)row;
		if (rate->is.until.ms > 0 && counts(rate->queue, queue))
			next_is(&next, rate->is.until);
	}
	if (next.found)
		*ret = next.at;
	return memory_tx_end(&tx, next.found ? BATON_OK : BATON_NOT_FOUND);
}
