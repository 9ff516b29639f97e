/* The ticks of those who own shards in an SQLite file. */
#include "base/fail.h"
#include "queue/policy.h"
#include "queue/turns.h"
#include "store/sqlite/fate.h"
#include "store/sqlite/grant.h"
#include "store/sqlite/guests.h"
#include "store/sqlite/puts.h"
#include "store/sqlite/runners.h"
#include "store/sqlite/sites.h"

/* A shard that is asked for. */
struct asked {
	struct queue_row *q;
	struct holding *held; /* NULL: nothing can be claimed from it, or there is nothing */
	size_t left;          /* how many claims it may still give                         */
	bool tended;          /* what is due in its queue has been put where it is looked for */
};

struct tick_args {
	uint64_t runner;
	const struct baton_tick *tick;
	struct claims_parcel *parcel;
	struct asked *asked; /* the scratch's */
};

/* Shards of one queue often stand together. */
static enum baton_err find_queues(struct sqlite_store *s, struct tick_args *a)
{
	const struct baton_tick *t = a->tick;
	enum baton_err e = BATON_OK;
	a->asked = arena_take(&s->scratch, t->shard_count, sizeof *a->asked);
	if (!a->asked)
		return fail_memory(t->shard_count * sizeof *a->asked, "the shards of a tick");
	for (size_t i = 0; i < t->shard_count && e == BATON_OK; i++) {
		const struct baton_shard *shard = &t->shards[i];
		struct asked *asked = &a->asked[i];
		*asked = (struct asked){.left = shard->max > 0 ? shard->claims : 0};
		if (i > 0 && baton_str_equal(shard->queue, t->shards[i - 1].queue) &&
		    shard->number < asked[-1].q->policy.shards)
			asked->q = asked[-1].q;
		else
			e = shard_queue(s, shard, &asked->q);
	}
	return e;
}

/* What is due in the queue is seen to by whoever asks, once. */
static enum baton_err tend(struct sqlite_store *s, struct tick_args *a, size_t i)
{
	struct asked *asked = &a->asked[i];
	if (asked->left == 0 || asked->q->policy.paused)
		return BATON_OK;
	asked->tended = true;
	return i > 0 && asked[-1].q == asked->q && asked[-1].tended ? BATON_OK
	                                                            : queue_tend(s, asked->q);
}

/* Whose the shard is, and whether work of it is wanted. */
static enum baton_err look_at(struct sqlite_store *s, struct tick_args *a, size_t i)
{
	struct asked *asked = &a->asked[i];
	const struct baton_shard *shard = &a->tick->shards[i];
	struct shard_row row;
	asked->held = holdings_find(&s->books.holdings, asked->q->id, shard->number);
	if (!asked->held) {
		enum baton_err e = shard_load(&s->db, asked->q->id, shard->number, &row);
		if (e == BATON_OK)
			a->tick->owned[i] = shard_answer(&row, a->runner);
		return e == BATON_OK ? tend(s, a, i) : e;
	}
	a->tick->owned[i] = (struct baton_shard_answer){.err = BATON_OK,
	                                                .fence = {asked->held->fence},
	                                                .runner = a->runner};
	if (asked->left == 0 || asked->q->policy.paused)
		return BATON_OK;
	/* Who has a shard of an open queue is the first who claims from it. */
	if (asked->q->policy.mode == BATON_QUEUE_OPEN) {
		enum baton_err e = grant_mode(s, asked->q, BATON_QUEUE_RUNNER);
		if (e != BATON_OK)
			return e;
	}
	asked->held->wanted = true;
	return tend(s, a, i);
}

/* The first pool from this one on that has something. */
static enum baton_err pool_next(struct sqlite_store *s, int64_t from, int64_t *ret)
{
	struct query q = query_begin(&s->db, SQL_HEAD_NEXT);
	query_int(&q, from);
	*ret = query_row(&q) ? column_int(&q, 0) : INT64_MAX;
	return query_end(&q);
}

/* Finds those that have something: one look for each of them and one more, however many are asked
 * for, and no more than are asked for, however many have something. */
static enum baton_err find_ready(struct sqlite_store *s)
{
	struct holdings *h = &s->books.holdings;
	int64_t next = 0;
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < h->count && e == BATON_OK; i++) {
		struct holding *held = &h->items[i];
		int64_t pool = pool_of(held->queue, held->number);
		if (!held->wanted)
			continue;
		if (next < pool)
			e = pool_next(s, pool, &next);
		held->ready = next == pool;
	}
	return e;
}

static bool is_first_of_queue(const struct tick_args *a, size_t i)
{
	for (size_t k = i; k > 0; k--) {
		if (a->asked[k - 1].q == a->asked[i].q)
			return false;
	}
	return true;
}

/* Where keys count for each host, or each process, a shard may have nothing for this one. */
static enum baton_err find_sites(struct sqlite_store *s, struct grant *g, struct tick_args *a)
{
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < a->tick->shard_count && e == BATON_OK; i++) {
		struct asked *asked = &a->asked[i];
		if (!policy_has_sites(&asked->q->policy))
			continue;
		if (is_first_of_queue(a, i))
			e = sites_uses(s, asked->q, a->runner, g->uses);
		g->q = asked->q;
		if (e == BATON_OK && asked->held && asked->held->ready)
			e = grant_has_heads(s, g, pool_of(asked->held->queue, asked->held->number),
			                    &asked->held->ready);
	}
	return e;
}

/* The next claims of one shard; one that has fewer than it may give is done. */
static enum baton_err give_from(struct sqlite_store *s, struct grant *g, struct asked *asked,
                                const struct baton_shard *shard, size_t each)
{
	struct holding *held = asked->held;
	size_t before = g->count, want = asked->left < each ? asked->left : each;
	enum baton_err e = BATON_OK;
	if (!held->counts) {
		struct shard_row row;
		e = shard_load(&s->db, held->queue, held->number, &row);
		held->base = row.base;
		held->counts = true;
	}
	g->q = asked->q;
	g->base = held->base;
	g->shard = held->number;
	if (e == BATON_OK)
		e = grant_heads(s, g, pool_of(held->queue, held->number), before + want,
		                shard->max);
	held->base = g->base;
	asked->left -= g->count - before;
	if (g->count - before < want)
		asked->left = 0;
	return e;
}

static size_t count_ready(const struct asked *asked, size_t count)
{
	size_t ready = 0;
	for (size_t i = 0; i < count; i++)
		ready += asked[i].held && asked[i].held->ready && asked[i].left > 0;
	return ready;
}

static enum baton_err give_all(struct sqlite_store *s, struct grant *g, struct tick_args *a)
{
	const struct baton_tick *t = a->tick;
	enum baton_err e = BATON_OK;
	size_t ready = count_ready(a->asked, t->shard_count);
	while (ready > 0 && g->count < g->max && e == BATON_OK) {
		size_t each = turns_each(g->max - g->count, ready);
		for (size_t i = 0; i < t->shard_count && g->count < g->max && e == BATON_OK; i++) {
			struct asked *asked = &a->asked[i];
			if (asked->held && asked->held->ready && asked->left > 0)
				e = give_from(s, g, asked, &t->shards[i], each);
		}
		ready = count_ready(a->asked, t->shard_count);
	}
	return e;
}

static enum baton_err write_counts(struct sqlite_store *s)
{
	const struct holdings *h = &s->books.holdings;
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < h->count && e == BATON_OK; i++) {
		const struct holding *held = &h->items[i];
		if (held->counts)
			e = RUN(&s->db, SQL_SHARD_COUNT, (int64_t)held->base.counter, held->queue,
			        held->number);
	}
	return e;
}

static enum baton_err tick_claims(struct sqlite_store *s, const struct baton_owner *owner,
                                  struct tick_args *a)
{
	struct key_uses uses = {.arena = &s->scratch};
	struct grant g = {.asker = owner,
	                  .uses = &uses,
	                  .ttl = BATON_DURATION_FOREVER,
	                  .max = store_tick_claims(a->tick)};
	enum baton_err e = holdings_load(&s->books.holdings, s->books.alloc, &s->db, a->runner,
	                                 s->books.shards);
	if (e == BATON_OK)
		e = bulk_flush(s);
	for (size_t i = 0; i < a->tick->shard_count && e == BATON_OK; i++)
		e = look_at(s, a, i);
	if (e == BATON_OK)
		e = find_ready(s);
	if (e == BATON_OK)
		e = find_sites(s, &g, a);
	guests_wait(s);
	if (e == BATON_OK)
		e = give_all(s, &g, a);
	e = guests_go_on(s, e);
	if (e == BATON_OK && g.count > 0)
		e = write_counts(s);
	if (e == BATON_OK)
		grant_close(&g, &a->parcel);
	grant_done(&g);
	return e;
}

static enum baton_err tick_run(void *store, void *args)
{
	struct sqlite_store *s = store;
	struct tick_args *a = args;
	struct baton_owner owner;
	bool found;
	if (a->parcel)
		baton_work_claims_free(&a->parcel->pub);
	a->parcel = NULL;
	enum baton_err e = runner_owner(&s->db, a->runner, &owner, &found);
	if (e == BATON_OK && !found)
		return BATON_NOT_HELD;
	if (e == BATON_OK)
		e = find_queues(s, a);
	if (e == BATON_OK)
		e = end_all(s, a->tick->ends, a->tick->end_count, a->tick->ended);
	return e == BATON_OK ? tick_claims(s, &owner, a) : e;
}

enum baton_err sqlite_tick(struct baton_store *store, uint64_t runner,
                           const struct baton_tick *tick, struct baton_work_claims **ret_claims)
{
	struct tick_args args = {.runner = runner, .tick = tick};
	enum baton_err e = sqlite_write_fences((struct sqlite_store *)store, tick_run, &args);
	return grant_answer(e, args.parcel, ret_claims);
}
