/* Lines: who of a lane, or of a key, is first, takes turns, waits, and how often it may start. */
#include <inttypes.h>

#include "base/fail.h"
#include "queue/line.h"
#include "queue/policy.h"
#include "queue/rate.h"
#include "store/memory/lane.h"
#include "store/memory/queue.h"
#include "store/memory/rate.h"
#include "store/memory/rival.h"
#include "store/memory/take.h"
#include "store/postgres/keyed.h"
#include "store/postgres/write.h"

#define DEAD_FEW 8 /* that are walked over in the line of a lane */

enum baton_err desk_starts(struct desk *d, struct tx *tx, const PGresult *r, int row, int column,
                           struct rate_starts *s)
{
	if (!s->queue || cell_is_null(r, row, column) || memory_rate_find(d->m, s->queue, s->name))
		return BATON_OK;
	s->count = cell_count(r, row, column);
	s->list = memory_tx_take(tx, s->count, sizeof *s->list);
	if (!s->list)
		return BATON_NO_MEMORY;
	for (size_t i = 0; i < s->count; i++)
		s->list[i].ms = cell_element(r, row, column, i);
	return memory_rate_set(tx, s);
}

/* Of its guests, or of those in its lines in all shards, only some are here. */
static enum baton_err crowd_load(struct desk *d, struct tx *tx, const struct rate_starts *s,
                                 uint64_t ready)
{
	struct queue *q = s->queue;
	struct lane *lane = q ? memory_lane_find(d->m, q->name, s->name) : NULL;
	if (!q || (!lane && ready == 0))
		return BATON_OK;
	if (!lane)
		lane = memory_lane_open(tx, q, s->name, 0);
	if (!lane)
		return BATON_NO_MEMORY;
	lane->crowd = 0;
	uint64_t here = policy_has_sites(&q->is.policy) ? memory_sites_waiting(tx, q, s->name)
	                                                : memory_guests_waiting(lane);
	lane->crowd = ready > here ? ready - here : 0;
	return BATON_OK;
}

enum baton_err desk_waiting(struct desk *d, const PGresult *r)
{
	struct tx tx;
	enum baton_err e = BATON_OK;
	desk_load_begin(d, &tx);
	for (int i = 0; i < PQntuples(r) && e == BATON_OK; i++) {
		struct rate_starts s = {.queue = desk_queue_of(d, cell_int(r, i, 0)),
		                        .name = cell_str(r, i, 1),
		                        .until = {cell_int(r, i, 3)}};
		const struct queue *q = s.queue;
		struct lane *lane = q ? memory_lane_find(d->m, q->name, s.name) : NULL;
		uint64_t here = 0;
		for (const struct batch *b = lane ? lane->first : NULL; b; b = b->next)
			here += b->is.state == BATON_BATCH_READY;
		if (lane && !cell_is_null(r, i, 2))
			lane->unseen = (uint64_t)cell_int(r, i, 2) - here;
		if (!cell_is_null(r, i, 5))
			e = crowd_load(d, &tx, &s, (uint64_t)cell_int(r, i, 5));
		if (e == BATON_OK)
			e = desk_starts(d, &tx, r, i, 4, &s);
	}
	return desk_load_end(d, &tx, e);
}

enum baton_err desk_site_holders(struct desk *d, const PGresult *r)
{
	for (int i = 0; i < PQntuples(r); i++) {
		const struct queue *q = desk_queue_of(d, cell_int(r, i, 0));
		struct lane *lane = q ? memory_lane_find(d->m, q->name, cell_str(r, i, 1)) : NULL;
		if (!lane)
			continue;
		lane->held_by = (uint64_t)cell_int(r, i, 2);
		lane->held_until.ms = cell_int(r, i, 3);
	}
	return BATON_OK;
}

enum baton_err desk_site_uses(struct desk *d, const PGresult *r)
{
	enum baton_err e = BATON_OK;
	d->m->known = (struct key_uses){.arena = &d->arena};
	for (int i = 0; i < PQntuples(r) && e == BATON_OK; i++) {
		const struct queue *q = desk_queue_of(d, cell_int(r, i, 0));
		if (q)
			e = uses_add(&d->m->known, q, cell_str(r, i, 1),
			             (uint64_t)cell_int(r, i, 2));
	}
	return e;
}

/* Whether a batch that was there before has done more than to be claimed. */
static bool has_moved(const struct batch *b)
{
	return b->row.noted && b->row.kept > 0 &&
	       (b->row.kept != b->is.seq || b->is.state != BATON_BATCH_CLAIMED);
}

/* Whether the rows of a lane, as they will be, say of the right one that a claim can begin with it.
 * Nothing of it is gone, and what was read of it begins with the first, so that is known. */
static bool is_led_right(const struct desk *d, const struct lane *lane)
{
	const struct line line = memory_line_look(lane, d->now);
	if (lane->queue->is.guests)
		return false;
	for (const struct batch *b = lane->first; b; b = b->next) {
		bool is = b->row.noted ? write_is_head(d, b) : b->was_head;
		if (has_moved(b) || is != (line.free && line.first == b))
			return false;
	}
	return true;
}

static bool is_led(const struct desk *d, struct lane *lane)
{
	if (lane->led == LED_UNKNOWN)
		lane->led = is_led_right(d, lane) ? LED_RIGHT : LED_WRONG;
	return lane->led == LED_RIGHT;
}

/* Whether nothing is in the lane any more, and little is dead in it: else settle() sees to that. */
static bool is_empty(const struct desk *d, const struct touched *t)
{
	const struct queue *q = memory_queue_find(d->m, t->queue);
	return d->around && q && !q->is.guests && d->dead <= DEAD_FEW * (int64_t)d->lane_count;
}

/* Those with keys that nobody else has need no line, and some lanes are right as they are. */
static bool is_settled(const struct desk *d, const struct touched *t)
{
	if (line_is_keyed(t->lane) && d->shared == 0)
		return false;
	struct lane *lane = memory_lane_find(d->m, t->queue, t->lane);
	if (line_is_keyed(t->lane))
		return lane && keyed_stands_in_bulk(d, lane);
	if (!lane)
		return is_empty(d, t);
	return !t->left && is_led(d, lane);
}

void write_settle(struct writer *w)
{
	struct args a;
	writer_args(w, &a, 3);
	arg_array(&a, 0, ARG_TEXT);
	arg_array(&a, 1, ARG_TEXT);
	for (size_t i = 0; i < w->d->lane_count; i++) {
		if (is_settled(w->d, &w->d->lanes[i]))
			continue;
		add_str(&a, 0, w->d->lanes[i].queue);
		add_str(&a, 1, w->d->lanes[i].lane);
	}
	arg_int(&a, 2, (int64_t)w->d->m->batches.count);
	if (a.list[0].count > 0)
		writer_send(w, SQL_SETTLE, &a);
	args_done(&a);
}

void write_lows(struct writer *w)
{
	static const enum arg_type types[] = {ARG_INT4, ARG_INT4, ARG_INT4};
	struct args a;
	if (w->d->far_count == 0 || !w->any)
		return;
	writer_args(w, &a, 3);
	writer_arrays(&a, types);
	for (size_t i = 0; i < w->d->far_count; i++) {
		add_int(&a, 0, w->d->fars[i].queue);
		add_int(&a, 1, w->d->fars[i].pool);
		add_int(&a, 2, w->d->fars[i].rank);
	}
	writer_send(w, SQL_RAISE, &a);
}

static bool other_limit(const struct baton_queue_policy *a, const struct baton_queue_policy *b)
{
	return a->key_limit != b->key_limit || !rate_equal(&a->key_rate, &b->key_rate);
}

static bool other_turns(const struct baton_queue_policy *a, const struct baton_queue_policy *b)
{
	return a->key_fair != b->key_fair;
}

/* Where something about keys has changed. */
static void settle_all(struct writer *w, enum sql sql,
                       bool (*differs)(const struct baton_queue_policy *a,
                                       const struct baton_queue_policy *b))
{
	struct args a;
	writer_args(w, &a, 1);
	arg_array(&a, 0, ARG_TEXT);
	for (size_t i = 0; i < w->d->queue_count; i++) {
		const struct read_queue *read = &w->d->queues[i];
		if (differs(&read->policy, &read->row->is.policy))
			add_str(&a, 0, read->row->name);
	}
	if (a.list[0].count > 0)
		writer_send(w, sql, &a);
	args_done(&a);
}

/* The turns that lines have got. */
void write_paces(struct writer *w)
{
	static const enum arg_type types[] = {ARG_TEXT, ARG_TEXT, ARG_INT8};
	struct args a;
	writer_args(w, &a, 3);
	writer_arrays(&a, types);
	for (struct row *row = w->d->m->lanes.oldest; row; row = row->newer) {
		const struct lane *lane = (struct lane *)row;
		if (!row->noted || lane->is.turn == row->kept)
			continue;
		add_str(&a, 0, lane->queue->name);
		add_str(&a, 1, lane->name);
		add_int(&a, 2, (int64_t)lane->is.turn);
	}
	if (a.list[0].count > 0)
		writer_send(w, SQL_PACE_SET, &a);
	args_done(&a);
}

static void rate_add(struct args *a, const struct rate *rate, struct buf *text)
{
	const struct baton_key_rate *is = &rate->queue->is.policy.key_rate;
	const char *before = "{";
	buf_reset(text);
	for (size_t i = 0; i < rate->count; i++) {
		buf_printf(text, "%s%" PRId64, before, rate->starts[i].ms);
		before = ",";
	}
	add_str(a, 0, rate->queue->name);
	add_str(a, 1, rate->name);
	writer_add_time(a, 2, rate->is.until);
	add_int(a, 3, rate_over(is, rate->starts, rate->count).ms);
	if (buf_printf(text, "}") == BATON_OK)
		add_str(a, 4, buf_str(text));
	else
		a->list[4].bytes.err = text->err;
}

/* Those of keys of a class are in one of its queues: that which has claimed last. */
static void rates_gather(struct writer *w)
{
	struct args a;
	writer_args(w, &a, 2);
	arg_array(&a, 0, ARG_TEXT);
	arg_array(&a, 1, ARG_TEXT);
	for (struct row *row = w->d->m->rates.oldest; row; row = row->newer) {
		const struct rate *rate = (struct rate *)row;
		if (!row->noted || !policy_has_class(&rate->queue->is.policy))
			continue;
		add_str(&a, 0, rate->queue->name);
		add_str(&a, 1, rate->name);
	}
	if (a.list[0].count > 0)
		writer_send(w, SQL_RATE_GATHER, &a);
	args_done(&a);
}

/* The starts that keys have had, and how long they wait. */
enum baton_err write_rates(struct writer *w)
{
	static const enum arg_type types[] = {ARG_TEXT, ARG_TEXT, ARG_INT8, ARG_INT8, ARG_TEXT};
	struct args a;
	struct buf text;
	rates_gather(w);
	buf_init(&text, w->c->alloc, (size_t)1 << 20);
	writer_args(w, &a, 5);
	writer_arrays(&a, types);
	for (struct row *row = w->d->m->rates.oldest; row; row = row->newer) {
		const struct rate *rate = (struct rate *)row;
		if (!row->noted)
			continue;
		if (rate->is.until.ms > 0)
			desk_until(w->d, rate->queue, rate->is.until);
		rate_add(&a, rate, &text);
	}
	enum baton_err e = args_check(&a);
	if (e == BATON_OK && a.list[0].count > 0)
		writer_send(w, SQL_RATE_SET, &a);
	args_done(&a);
	buf_done(&text);
	return e;
}

/* What the rate of a queue is now changes what its keys may. */
void write_rates_settle(struct writer *w)
{
	struct args a;
	writer_args(w, &a, 3);
	arg_array(&a, 0, ARG_TEXT);
	arg_array(&a, 1, ARG_INT8);
	arg_int(&a, 2, w->d->now.ms);
	for (size_t i = 0; i < w->d->queue_count; i++) {
		const struct read_queue *read = &w->d->queues[i];
		const struct baton_key_rate *was = &read->policy.key_rate;
		if (rate_equal(was, &read->row->is.policy.key_rate))
			continue;
		add_str(&a, 0, read->row->name);
		add_int(&a, 1, baton_store_time_add((struct baton_store_time){0}, was->window).ms);
	}
	if (a.list[0].count > 0)
		writer_send(w, SQL_SETTLE_RATE, &a);
	args_done(&a);
}

static bool takes_turns(const struct desk *d, const struct touched *t)
{
	const struct queue *q = memory_queue_find(d->m, t->queue);
	return q && line_takes_turns(t->lane, &q->is.policy);
}

/* Those of keys that nobody may have any more. */
void write_paces_leave(struct writer *w)
{
	struct args a;
	writer_args(w, &a, 2);
	arg_array(&a, 0, ARG_TEXT);
	arg_array(&a, 1, ARG_TEXT);
	for (size_t i = 0; i < w->d->lane_count; i++) {
		if (!takes_turns(w->d, &w->d->lanes[i]))
			continue;
		add_str(&a, 0, w->d->lanes[i].queue);
		add_str(&a, 1, w->d->lanes[i].lane);
	}
	if (a.list[0].count > 0)
		writer_send(w, SQL_PACE_LEAVE, &a);
	args_done(&a);
}

void write_settle_all(struct writer *w)
{
	settle_all(w, SQL_SETTLE_LIMIT, other_limit);
	settle_all(w, SQL_SETTLE_FAIR, other_turns);
}
