/* Queued work: what is asked for is checked here, and kept by the backend. */
#include <baton/work.h>

#include <inttypes.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "queue/batch.h"
#include "store/keys.h"
#include "store/store.h"

static enum baton_err check_count(const char *what, size_t count, size_t max)
{
	if (count <= max)
		return BATON_OK;
	return fail(BATON_INVALID, "%zu %s in one call: at most %zu are allowed", count, what, max);
}

/* With more than one, the detail says which. */
static enum baton_err check_batches(const struct baton_batch *batches, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		enum baton_err e = batch_check(&batches[i]);
		if (e != BATON_OK && count > 1)
			return store_name_batch(e, i);
		if (e != BATON_OK)
			return e;
	}
	return BATON_OK;
}

enum baton_err store_name_batch(enum baton_err e, size_t index)
{
	char detail[1024];
	size_t len = strnlen(baton_err_detail(), sizeof detail - 1);
	memcpy(detail, baton_err_detail(), len);
	detail[len] = '\0';
	return fail(e, "batch %zu: %s", index + 1, detail);
}

enum baton_err baton_work_put(struct baton_store *store, const struct baton_batch *batches,
                              size_t count, struct baton_put *puts)
{
	enum baton_err e = store_enter(store);
	if (e == BATON_OK)
		e = check_count("batches", count, BATON_PUT_MAX);
	if (e == BATON_OK)
		e = check_batches(batches, count);
	AUTO(arena_done) struct arena joined;
	arena_init(&joined, store->alloc);
	if (e == BATON_OK)
		e = keys_of_batches(&joined, &batches, count);
	return e == BATON_OK && count > 0 ? store->ops->put(store, batches, count, puts) : e;
}

static enum baton_err check_ask(const struct baton_work_ask *ask)
{
	enum baton_err e = batch_check_queue(ask->queue);
	if (e == BATON_OK)
		e = store_check_ttl(ask->ttl);
	if (e == BATON_OK)
		e = check_count("claims", ask->claims, BATON_CLAIMS_MAX);
	if (e == BATON_OK)
		e = check_count("batches", ask->max, BATON_JOIN_MAX);
	return e;
}

enum baton_err baton_work_claim(struct baton_store *store, const struct baton_work_ask *ask,
                                struct baton_work_claims **ret_claims)
{
	enum baton_err e = store_enter(store);
	if (e == BATON_OK)
		e = check_ask(ask);
	return e == BATON_OK ? store->ops->claim(store, ask, ret_claims) : e;
}

enum baton_err baton_lane_claim(struct baton_store *store, const struct baton_lane_ask *ask,
                                struct baton_work_claims **ret_claims)
{
	char subject[BATON_LEASE_SUBJECT_MAX + 1];
	enum baton_err e = store_enter(store);
	if (e == BATON_OK)
		e = baton_lane_subject(ask->queue, ask->lane, subject);
	if (e == BATON_OK)
		e = store_check_ttl(ask->ttl);
	if (e == BATON_OK)
		e = check_count("batches", ask->max, BATON_JOIN_MAX);
	if (e == BATON_OK)
		e = check_count("ids", ask->count, BATON_JOIN_MAX);
	if (e == BATON_OK && (unsigned)ask->at - 1 >= BATON_CHECKPOINT)
		e = fail(BATON_INVALID,
		         "the boundary is %d: %d (idle) and %d (checkpoint) are allowed",
		         (int)ask->at, BATON_IDLE, BATON_CHECKPOINT);
	return e == BATON_OK ? store->ops->lane_claim(store, ask, ret_claims) : e;
}

enum baton_err baton_work_renew(struct baton_store *store, const struct baton_work_proof *proofs,
                                size_t count, struct baton_duration ttl,
                                struct baton_work_renewal *answers)
{
	enum baton_err e = store_enter(store);
	if (e == BATON_OK)
		e = check_count("renewals", count, BATON_CLAIMS_MAX);
	if (e == BATON_OK)
		e = store_check_ttl(ttl);
	if (e != BATON_OK || count == 0)
		return e;
	return store->ops->renew(store, proofs, count, store_ttl(ttl), answers);
}

static enum baton_err check_delay(struct baton_duration delay)
{
	struct baton_duration max = baton_duration_ms(BATON_QUEUE_SPAN_MAX_MS);
	char is[BATON_DURATION_TEXT], limit[BATON_DURATION_TEXT];
	if (delay.ns >= 0 && delay.ns <= max.ns)
		return BATON_OK;
	return fail(BATON_INVALID, "delay is %s: 0 to %s are allowed",
	            baton_duration_print(delay, is), baton_duration_print(max, limit));
}

static enum baton_err check_end(const struct baton_work_end *end)
{
	bool completes = end->how == BATON_COMPLETE;
	if ((unsigned)end->how - 1 >= BATON_SNOOZE)
		return fail(BATON_INVALID, "an end of kind %d: %d to %d are allowed", (int)end->how,
		            BATON_COMPLETE, BATON_SNOOZE);
	if (!completes && (end->result.len > 0 || end->emit_count > 0))
		return fail(BATON_INVALID, "only what is completed has a result or emits work");
	if (end->result.len > BATON_RESULT_MAX)
		return fail(BATON_INVALID, "the result has %zu bytes: at most %u are allowed",
		            end->result.len, BATON_RESULT_MAX);
	if (end->ids && end->count == 0)
		return fail(BATON_INVALID, "the list of batches to end is empty");
	enum baton_err e = check_count("batches", end->count, BATON_JOIN_MAX);
	if (e == BATON_OK)
		e = check_count("emitted batches", end->emit_count, BATON_PUT_MAX);
	if (e == BATON_OK)
		e = check_batches(end->emits, end->emit_count);
	return e == BATON_OK ? check_delay(end->delay) : e;
}

bool store_end_is_void(const struct baton_work_end *ends, size_t i,
                       struct baton_work_ended *answers)
{
	if (i == 0 || !ends[i].tied || answers[i - 1].err == BATON_OK)
		return false;
	answers[i] = (struct baton_work_ended){.err = answers[i - 1].err};
	return true;
}

enum baton_err store_check_ends(const struct baton_work_end *ends, size_t count)
{
	enum baton_err e = check_count("ends", count, BATON_CLAIMS_MAX);
	for (size_t i = 0; i < count && e == BATON_OK; i++)
		e = check_end(&ends[i]);
	return e;
}

enum baton_err baton_work_end(struct baton_store *store, const struct baton_work_end *ends,
                              size_t count, struct baton_work_ended *answers)
{
	enum baton_err e = store_enter(store);
	if (e == BATON_OK)
		e = store_check_ends(ends, count);
	AUTO(arena_done) struct arena joined;
	arena_init(&joined, store->alloc);
	if (e == BATON_OK)
		e = keys_of_ends(&joined, &ends, count);
	return e == BATON_OK && count > 0 ? store->ops->end(store, ends, count, answers) : e;
}

enum baton_err baton_work_next(struct baton_store *store, const struct baton_work_end *ends,
                               size_t count, struct baton_work_ended *answers,
                               const struct baton_work_ask *ask,
                               struct baton_work_claims **ret_claims)
{
	enum baton_err e = store_enter(store);
	if (e == BATON_OK)
		e = store_check_ends(ends, count);
	if (e == BATON_OK)
		e = check_ask(ask);
	AUTO(arena_done) struct arena joined;
	arena_init(&joined, store->alloc);
	if (e == BATON_OK)
		e = keys_of_ends(&joined, &ends, count);
	if (e != BATON_OK) {
		store_ends_fail(answers, count, e);
		return e;
	}
	return count > 0 ? store->ops->next(store, ends, count, answers, ask, ret_claims)
	                 : store->ops->claim(store, ask, ret_claims);
}

void store_ends_fail(struct baton_work_ended *answers, size_t count, enum baton_err e)
{
	for (size_t i = 0; i < count; i++)
		answers[i] = (struct baton_work_ended){.err = e};
}

enum baton_err baton_work_cancel(struct baton_store *store, const struct baton_batch_id *ids,
                                 size_t count, enum baton_cancelled *answers)
{
	enum baton_err e = store_enter(store);
	if (e == BATON_OK)
		e = check_count("batches", count, BATON_PUT_MAX);
	return e == BATON_OK && count > 0 ? store->ops->cancel(store, ids, count, answers) : e;
}

enum baton_err baton_work_revive(struct baton_store *store, const struct baton_batch_id *ids,
                                 size_t count, enum baton_err *answers)
{
	enum baton_err e = store_enter(store);
	if (e == BATON_OK)
		e = check_count("batches", count, BATON_PUT_MAX);
	return e == BATON_OK && count > 0 ? store->ops->revive(store, ids, count, answers) : e;
}

enum baton_err baton_work_get(struct baton_store *store, const struct baton_batch_id *id,
                              struct baton_work_page **ret_page)
{
	enum baton_err e = store_enter(store);
	return e == BATON_OK ? store->ops->get(store, id, ret_page) : e;
}

enum baton_err baton_work_list(struct baton_store *store, const struct baton_work_filter *filter,
                               struct baton_work_page **ret_page)
{
	enum baton_err e = store_enter(store);
	if (e == BATON_OK && filter->queue.len > 0)
		e = batch_check_queue(filter->queue);
	if (e == BATON_OK && (filter->max == 0 || filter->max > BATON_LIST_MAX))
		e = fail(BATON_INVALID, "a page of %zu batches: 1 to %d are allowed", filter->max,
		         BATON_LIST_MAX);
	if (e == BATON_OK &&
	    ((unsigned)filter->state > BATON_BATCH_SKIPPED || filter->state == BATON_BATCH_GONE))
		e = fail(BATON_INVALID, "batches of state %d: 0 to %d and %d are allowed",
		         (int)filter->state, BATON_BATCH_DONE, BATON_BATCH_SKIPPED);
	return e == BATON_OK ? store->ops->list(store, filter, ret_page) : e;
}

enum baton_err baton_work_next_due(struct baton_store *store, struct baton_str queue,
                                   struct baton_store_time *ret)
{
	enum baton_err e = store_enter(store);
	if (e == BATON_OK && queue.len > 0)
		e = batch_check_queue(queue);
	return e == BATON_OK ? store->ops->next_due(store, queue,
	                                            (struct baton_store_time){INT64_MIN}, ret)
	                     : e;
}
