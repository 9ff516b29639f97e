/* How often the keys of a store in memory have started lately. */
#include "store/memory/rate.h"

#include "store/memory/class.h"
#include "store/memory/lane.h"

static struct rate *find_in(const struct memory *m, const struct queue *queue,
                            struct baton_str name)
{
	struct row *row = memory_row_first(&m->rates, memory_lane_hash(m, queue->name, name));
	for (; row; row = memory_row_next(row)) {
		struct rate *rate = (struct rate *)row;
		if (rate->queue == queue && baton_str_equal(rate->name, name))
			return rate;
	}
	return NULL;
}

struct rate *memory_rate_find(const struct memory *m, const struct queue *queue,
                              struct baton_str name)
{
	struct rate *rate = find_in(m, queue, name);
	const struct queue *other = memory_class_next(queue, NULL);
	for (; other && !rate; other = memory_class_next(queue, other))
		rate = find_in(m, other, name);
	return rate;
}

struct baton_store_time memory_rate_until(const struct memory *m, const struct lane *lane)
{
	const struct rate *rate = NULL;
	if (line_is_rated(lane->name, &lane->queue->is.policy))
		rate = memory_rate_find(m, lane->queue, lane->name);
	return rate ? rate->is.until : (struct baton_store_time){0};
}

struct baton_store_time memory_rate_until_at(const struct memory *m, const struct lane *lane,
                                             const struct baton_owner *owner)
{
	const struct baton_queue_policy *policy = &lane->queue->is.policy;
	const struct rate *rate = NULL;
	char text[RATE_NAME_MAX];
	if (line_is_sited(lane->name, NULL) && line_is_rated(lane->name, policy))
		rate = memory_rate_find(m, lane->queue, rate_name(lane->name, policy, owner, text));
	return rate ? rate->is.until : (struct baton_store_time){0};
}

/* If it counts in each place, it may start again in one: those are told who wait for the key,
 * wherever they are. */
static enum baton_err sites_wake(struct tx *tx, const struct queue *queue, struct baton_str name)
{
	enum baton_err e = BATON_OK;
	char text[LINE_NAME_MAX];
	const struct baton_str line = rate_line(name);
	if (line_is_keyed(name))
		return BATON_OK;
	for (uint32_t i = 0; i < queue->is.policy.shards && e == BATON_OK; i++) {
		struct lane *lane =
			memory_lane_find(tx->m, queue->name, line_in_shard(line, i, text));
		e = lane ? memory_tx_save(tx, &lane->row) : BATON_OK;
	}
	return e;
}

static enum baton_err lane_waits(struct tx *tx, const struct queue *queue, struct baton_str name,
                                 struct baton_store_time until)
{
	struct lane *lane = memory_lane_find(tx->m, queue->name, name);
	if (!lane || lane->is.until.ms == until.ms)
		return BATON_OK;
	enum baton_err e = memory_tx_save(tx, &lane->row);
	if (e == BATON_OK)
		lane->is.until = until;
	return e;
}

/* In all queues of a class. */
static enum baton_err lanes_wait(struct tx *tx, const struct queue *queue, struct baton_str name,
                                 struct baton_store_time until)
{
	enum baton_err e = lane_waits(tx, queue, name, until);
	const struct queue *other = memory_class_next(queue, NULL);
	for (; other && e == BATON_OK; other = memory_class_next(queue, other))
		e = lane_waits(tx, other, name, until);
	return e;
}

static enum baton_err rate_add(struct tx *tx, const struct rate_starts *s, uint64_t kept)
{
	size_t size = s->count * sizeof *s->list;
	uint64_t hash = memory_lane_hash(tx->m, s->queue->name, s->name);
	struct rate *rate = NULL;
	rate = (struct rate *)memory_tx_add(tx, &tx->m->rates, sizeof *rate + size + s->name.len,
	                                    hash);
	if (!rate)
		return BATON_NO_MEMORY;
	rate->row.kept = kept;
	rate->queue = s->queue;
	rate->starts = (struct baton_store_time *)(rate + 1);
	rate->count = s->count;
	rate->is.until = s->until;
	memcpy(rate->starts, s->list, size);
	char *text = (char *)(rate->starts + s->count);
	memcpy(text, s->name.ptr, s->name.len);
	rate->name = (struct baton_str){text, s->name.len};
	return BATON_OK;
}

enum baton_err memory_rate_set(struct tx *tx, const struct rate_starts *s)
{
	struct rate *old = memory_rate_find(tx->m, s->queue, s->name);
	uint64_t kept = old ? old->row.kept : 0;
	enum baton_err e = s->count > 0 ? rate_add(tx, s, kept) : BATON_OK;
	if (e == BATON_OK)
		e = lanes_wait(tx, s->queue, s->name, s->until);
	return e == BATON_OK && old ? memory_tx_delete(tx, &old->row) : e;
}

/* A copy of the starts, with room for `more`. */
static enum baton_err starts_of(struct tx *tx, const struct rate *rate, size_t more,
                                struct rate_starts *ret)
{
	size_t count = rate ? rate->count : 0;
	ret->list = memory_tx_take(tx, count + more, sizeof *ret->list);
	if (!ret->list)
		return BATON_NO_MEMORY;
	if (count > 0)
		memcpy(ret->list, rate->starts, count * sizeof *ret->list);
	ret->count = count;
	return BATON_OK;
}

enum baton_err memory_rate_claim(struct tx *tx, struct lane *lane, const struct baton_owner *owner)
{
	const struct baton_queue_policy *policy = &lane->queue->is.policy;
	struct rate_starts s = {.queue = lane->queue};
	char text[RATE_NAME_MAX];
	if (!line_is_rated(lane->name, policy))
		return BATON_OK;
	s.name = rate_name(lane->name, policy, owner, text);
	enum baton_err e = starts_of(tx, memory_rate_find(tx->m, lane->queue, s.name), 1, &s);
	if (e != BATON_OK)
		return e;
	s.count = rate_start(&policy->key_rate, s.list, s.count, tx->now);
	s.until = rate_until(&policy->key_rate, s.list, s.count);
	return memory_rate_set(tx, &s);
}

/* Counts again what a key has started, of which only that counts which did so before, too. */
static enum baton_err look_again(struct tx *tx, const struct rate *rate,
                                 const struct baton_key_rate *was)
{
	const struct baton_key_rate *is = &rate->queue->is.policy.key_rate;
	struct rate_starts s = {.queue = rate->queue, .name = rate->name};
	enum baton_err e = starts_of(tx, rate, 0, &s);
	if (e != BATON_OK)
		return e;
	s.count = rate_look(was, s.list, s.count, tx->now);
	s.count = rate_look(is, s.list, s.count, tx->now);
	s.until = rate_until(is, s.list, s.count);
	e = memory_rate_set(tx, &s);
	return e == BATON_OK && s.until.ms == 0 ? sites_wake(tx, s.queue, s.name) : e;
}

static enum baton_err may_start(struct tx *tx, struct rate *rate)
{
	enum baton_err e = memory_tx_save(tx, &rate->row);
	if (e != BATON_OK)
		return e;
	rate->is.until.ms = 0;
	e = lanes_wait(tx, rate->queue, rate->name, rate->is.until);
	return e == BATON_OK ? sites_wake(tx, rate->queue, rate->name) : e;
}

enum baton_err memory_rate_see(struct tx *tx, const struct queue *queue)
{
	const struct baton_key_rate *is = &queue->is.policy.key_rate;
	enum baton_err e = BATON_OK;
	for (struct row *row = tx->m->rates.oldest; row && e == BATON_OK; row = row->newer) {
		struct rate *rate = (struct rate *)row;
		if (rate->queue != queue || row->gone || rate->is.until.ms == 0)
			continue;
		if (baton_store_time_ready(rate->is.until, tx->now))
			e = may_start(tx, rate);
		else if (rate_is_ahead(is, rate->is.until, tx->now))
			e = look_again(tx, rate, is);
	}
	return e;
}

static bool is_due(const struct rate *rate, struct baton_store_time now)
{
	return !rate->row.gone && rate->is.until.ms > 0 &&
	       baton_store_time_ready(rate->is.until, now);
}

enum baton_err memory_rate_see_some(struct tx *tx, size_t max)
{
	enum baton_err e = BATON_OK;
	for (struct row *row = tx->m->rates.oldest; row && max > 0 && e == BATON_OK; max--) {
		struct rate *rate = (struct rate *)row;
		row = row->newer;
		if (is_due(rate, tx->now))
			e = may_start(tx, rate);
	}
	return e;
}

enum baton_err memory_rate_see_all(struct tx *tx)
{
	enum baton_err e = BATON_OK;
	for (struct row *row = tx->m->rates.oldest; row && e == BATON_OK; row = row->newer) {
		const struct rate *rate = (struct rate *)row;
		if (is_due(rate, tx->now))
			e = memory_rate_see(tx, rate->queue);
	}
	return e;
}

enum baton_err memory_rate_change(struct tx *tx, struct queue *queue,
                                  const struct baton_key_rate *was)
{
	enum baton_err e = BATON_OK;
	const struct row *last = tx->m->rates.newest;
	for (struct row *row = tx->m->rates.oldest; row && e == BATON_OK; row = row->newer) {
		const struct rate *rate = (struct rate *)row;
		if (rate->queue == queue && !row->gone)
			e = look_again(tx, rate, was);
		if (row == last)
			break;
	}
	return e;
}

enum baton_err memory_rate_leave(struct tx *tx, const struct queue *queue, struct queue *heir)
{
	enum baton_err e = BATON_OK;
	const struct row *last = tx->m->rates.newest;
	for (struct row *row = tx->m->rates.oldest; row && e == BATON_OK; row = row->newer) {
		struct rate *rate = (struct rate *)row;
		const struct rate_starts s = {heir, rate->name, rate->starts, rate->count,
		                              rate->is.until};
		bool leaves = rate->queue == queue && !row->gone;
		if (leaves && heir)
			e = rate_add(tx, &s, 0);
		if (leaves && e == BATON_OK)
			e = memory_tx_delete(tx, row);
		if (row == last)
			break;
	}
	return e;
}

enum baton_err memory_rate_forget(struct tx *tx, const struct baton_owner *owner)
{
	enum baton_err e = BATON_OK;
	char text[RATE_NAME_MAX];
	const struct baton_str site = rate_site(BATON_KEY_SCOPE_PROCESS, owner, text);
	size_t left = RATES_FORGET_MAX;
	for (struct row *row = tx->m->rates.oldest; row && left > 0 && e == BATON_OK;
	     row = row->newer) {
		const struct baton_str name = ((struct rate *)row)->name;
		if (row->gone || name.len < site.len || memcmp(name.ptr, site.ptr, site.len) != 0)
			continue;
		e = memory_tx_delete(tx, row);
		left--;
	}
	return e;
}

bool memory_rate_is_over(const struct rate *rate, struct baton_store_time now)
{
	return rate->is.until.ms == 0 &&
	       baton_store_time_ready(rate_over(&rate->queue->is.policy.key_rate, rate->starts,
	                                        rate->count),
	                              now);
}
