/* What a store in memory forgets in time. */
#include "store/memory/forget.h"

#include "base/check.h"
#include "store/memory/batch.h"
#include "store/memory/rate.h"

static bool source_is_over(const struct memory *m, const struct source *source,
                           struct baton_store_time now)
{
	const struct tx tx = {.m = (struct memory *)m, .now = now};
	return !baton_store_time_live(source->is.until, now) &&
	       !memory_batch_find(&tx, source->is.id);
}

static bool is_over(const struct memory *m, const struct row *row, struct baton_store_time now)
{
	if (row->table == &m->sources)
		return source_is_over(m, (const struct source *)row, now);
	if (row->table == &m->answers)
		return !baton_store_time_live(((const struct answer *)row)->until, now);
	if (row->table == &m->rates)
		return memory_rate_is_over((const struct rate *)row, now);
	const struct batch *b = (const struct batch *)row;
	return b->is.state == BATON_BATCH_DONE && !baton_store_time_live(b->is.until, now);
}

/* The result of a batch is that of all batches that ended with it. */
static void forget(struct row *row, const struct memory *m)
{
	struct text *texts[2] = {NULL, NULL};
	if (row->table == &m->batches) {
		const struct batch *b = (struct batch *)row;
		CHECK(batch_next(b->is.state, EVENT_FORGET) == BATON_BATCH_GONE);
		b->lane->queue->is.in[b->is.state]--;
		texts[0] = b->is.error;
		texts[1] = b->is.result;
	}
	memory_row_drop(row);
	for (int i = 0; i < 2; i++) {
		if (texts[i] && --texts[i]->is.users == 0)
			memory_row_drop(&texts[i]->row);
	}
}

static size_t forget_in(struct memory *m, struct table *t, struct baton_store_time now, size_t max)
{
	size_t count = 0;
	for (size_t left = t->count; left > 0 && count < max; left--) {
		struct row *row = t->oldest;
		memory_table_turn(t);
		if (is_over(m, row, now)) {
			forget(row, m);
			count++;
		}
	}
	return count;
}

void memory_forget_some(struct memory *m, struct baton_store_time now)
{
	struct table *const tables[] = {&m->batches, &m->sources, &m->answers, &m->rates};
	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
		for (int n = 0; n < MEMORY_SOME && tables[i]->oldest; n++) {
			struct row *row = tables[i]->oldest;
			memory_table_turn(tables[i]);
			if (is_over(m, row, now))
				forget(row, m);
		}
	}
}

/* Whose window is over may start again, in queues that nobody claims from, too. */
static enum baton_err see_windows(struct baton_store *store)
{
	struct tx tx;
	memory_tx_begin(&tx, store);
	tx.spares = true;
	return memory_tx_end_ring(&tx, memory_rate_see_all(&tx));
}

enum baton_err memory_tidy(struct baton_store *store, size_t max, size_t *ret_count)
{
	struct memory *m = (struct memory *)store;
	struct baton_store_time now = baton_store_now(store);
	enum baton_err e = see_windows(store);
	if (e != BATON_OK)
		return e;
	pthread_mutex_lock(&m->mu);
	size_t count = forget_in(m, &m->batches, now, max);
	count += forget_in(m, &m->sources, now, max - count);
	count += forget_in(m, &m->answers, now, max - count);
	count += forget_in(m, &m->rates, now, max - count);
	pthread_mutex_unlock(&m->mu);
	*ret_count = count;
	return BATON_OK;
}
