/* The schedules of a store in memory. */
#include <string.h>

#include "base/fail.h"
#include "store/memory/news.h"
#include "store/memory/ops.h"
#include "store/memory/put.h"
#include "store/memory/schedule.h"
#include "store/memory/tx.h"
#include "store/parcel.h"
#include "store/refuse.h"

static struct schedule *find(const struct memory *m, struct baton_str name)
{
	struct row *row = memory_row_first(&m->schedules, memory_hash(m, name.ptr, name.len));
	for (; row; row = memory_row_next(row)) {
		struct schedule *s = (struct schedule *)row;
		if (baton_str_equal(s->put.name, name))
			return s;
	}
	return NULL;
}

static struct baton_str keep(char **to, struct baton_str s)
{
	struct baton_str kept = {*to, s.len};
	if (s.len > 0)
		memcpy(*to, s.ptr, s.len);
	*to += s.len;
	return kept;
}

/* Its texts lie behind the row. */
struct schedule *memory_schedule_add(struct tx *tx, const struct baton_schedule *s)
{
	size_t size = s->name.len + s->cron.len + s->zone.len + s->queue.len + s->lane.len +
	              s->payload.len;
	struct schedule *new =
		(struct schedule *)memory_tx_add(tx, &tx->m->schedules, sizeof *new + size,
	                                         memory_hash(tx->m, s->name.ptr, s->name.len));
	if (!new)
		return NULL;
	char *text = (char *)(new + 1);
	new->put = *s;
	new->put.name = keep(&text, s->name);
	new->put.cron = keep(&text, s->cron);
	new->put.zone = keep(&text, s->zone);
	new->put.queue = keep(&text, s->queue);
	new->put.lane = keep(&text, s->lane);
	new->put.payload = keep(&text, s->payload);
	new->is.last = s->last;
	new->is.next = s->next;
	return new;
}

/* Whoever puts what is due has to look again. */
static enum baton_err tell(struct tx *tx, struct baton_str queue)
{
	tx->news = memory_tx_take(tx, 1, sizeof *tx->news);
	if (!tx->news)
		return BATON_NO_MEMORY;
	tx->news[tx->news_count++] = memory_news_of_queue(tx->m, queue);
	return BATON_OK;
}

enum baton_err memory_schedule_set(struct baton_store *store, const struct baton_schedule *schedule)
{
	struct tx tx;
	struct baton_schedule s = *schedule;
	memory_tx_begin(&tx, store);
	struct schedule *old = find(tx.m, s.name);
	if (old && baton_str_equal(old->put.cron, s.cron) &&
	    baton_str_equal(old->put.zone, s.zone)) {
		s.last = old->is.last;
		s.next = old->is.next;
	}
	enum baton_err e = old ? memory_tx_delete(&tx, &old->row) : BATON_OK;
	if (e == BATON_OK && !memory_schedule_add(&tx, &s))
		e = BATON_NO_MEMORY;
	return memory_tx_end(&tx, e == BATON_OK ? tell(&tx, s.queue) : e);
}

enum baton_err memory_schedule_remove(struct baton_store *store, struct baton_str name)
{
	struct tx tx;
	memory_tx_begin(&tx, store);
	struct schedule *s = find(tx.m, name);
	enum baton_err e = s ? memory_tx_delete(&tx, &s->row) : refuse_schedule(name);
	return memory_tx_end(&tx, e);
}

/* The first one after `after`. */
static const struct schedule *next_after(const struct memory *m, struct baton_str after)
{
	const struct schedule *best = NULL;
	for (struct row *row = m->schedules.oldest; row; row = row->newer) {
		const struct schedule *s = (const struct schedule *)row;
		if (!row->gone && memory_compare(s->put.name, after) > 0 &&
		    (!best || memory_compare(s->put.name, best->put.name) < 0))
			best = s;
	}
	return best;
}

enum baton_err memory_schedule_list(struct baton_store *store, struct baton_str after,
                                    struct baton_str name, size_t max,
                                    struct schedules_parcel *page)
{
	struct tx tx;
	bool memory = true;
	memory_tx_begin(&tx, store);
	const struct schedule *s = name.len > 0 ? find(tx.m, name) : next_after(tx.m, after);
	for (size_t i = 0; s && i < max && memory; i++) {
		struct baton_schedule copy = s->put;
		copy.last = s->is.last;
		copy.next = s->is.next;
		memory = schedules_parcel_add(page, &copy);
		s = name.len > 0 ? NULL : next_after(tx.m, s->put.name);
	}
	return memory_tx_end(&tx,
	                     memory ? BATON_OK : fail(BATON_NO_MEMORY, "no memory for schedules"));
}

enum baton_err memory_schedule_step(struct baton_store *store, const struct schedule_step *step)
{
	struct tx tx;
	memory_tx_begin(&tx, store);
	struct schedule *s = find(tx.m, step->name);
	if (!s || s->is.last.ms != step->from.ms)
		return memory_tx_end(&tx, BATON_NOT_HELD);
	enum baton_err e = memory_tx_save(&tx, &s->row);
	if (e == BATON_OK) {
		s->is.last = step->last;
		s->is.next = step->next;
		e = memory_put_all(&tx, step->batches, step->count, NULL);
	}
	if (step->count == 0)
		return memory_tx_end(&tx, e == BATON_OK ? tell(&tx, step->queue) : e);
	return memory_tx_end_ring(&tx, e);
}
