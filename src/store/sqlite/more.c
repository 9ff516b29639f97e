/* More work of a lane for a run that is under way, in an SQLite file. */
#include "base/digest.h"
#include "store/sqlite/fate.h"
#include "store/sqlite/grant.h"
#include "store/sqlite/lanes.h"
#include "store/sqlite/runners.h"

struct more_args {
	uint64_t runner;
	const struct baton_more_ask *ask;
	struct claims_parcel *parcel;
};

/* Whether one of the lane's claims is that which runs. */
static bool is_proved(const struct claim_row *claims, size_t count,
                      const struct baton_more_ask *ask)
{
	struct claim_name name;
	if (!claim_name_parse(ask->proof.id, &name))
		return false;
	for (size_t i = 0; i < count; i++) {
		if ((uint64_t)claims[i].head == name.head && claims[i].fence == name.fence)
			return digest_equal(&claims[i].token, &ask->proof.token,
			                    sizeof claims[i].token);
	}
	return false;
}

static enum baton_err give_more(struct sqlite_store *s, struct grant *g, int64_t lane,
                                const struct baton_more_ask *ask)
{
	const struct scan scan = {.at = BATON_CHECKPOINT, .max = ask->max, .more = true};
	struct claim_row *claims;
	struct pick p = {.count = 0};
	size_t count;
	int64_t held = 0;
	enum baton_err e = claims_of_lane(s, lane, &claims, &count);
	if (e != BATON_OK || !is_proved(claims, count, ask))
		return e;
	e = lane_held(&s->db, lane, &held);
	if (e == BATON_OK && held == 0)
		e = grant_pick(s, lane, claims, count, &scan, &p);
	if (e == BATON_OK && p.count > 0)
		e = grant_give(s, g, &p, lane);
	if (e == BATON_OK && p.count > 0)
		e = RUN(&s->db, SQL_SHARD_COUNT, (int64_t)g->base.counter, g->q->id, ask->shard);
	return e == BATON_OK ? lane_settle(s, g->q, lane) : e;
}

static enum baton_err more_do(struct sqlite_store *s, struct grant *g, struct more_args *a)
{
	const struct baton_more_ask *ask = a->ask;
	struct shard_row row;
	int64_t lane = 0;
	if (g->q->policy.paused)
		return BATON_OK;
	enum baton_err e = queue_tend(s, g->q);
	if (e != BATON_OK)
		return e;
	e = shard_load(&s->db, g->q->id, ask->shard, &row);
	if (e != BATON_OK || row.runner != a->runner)
		return e;
	g->base = row.base;
	g->shard = ask->shard;
	e = lane_find(s, g->q->id, ask->lane, &lane);
	if (e == BATON_OK && lane > 0)
		e = give_more(s, g, lane, ask);
	if (e == BATON_OK)
		grant_close(g, &a->parcel);
	return e;
}

static enum baton_err more_run(void *store, void *args)
{
	struct sqlite_store *s = store;
	struct more_args *a = args;
	const struct baton_shard shard = {.queue = a->ask->queue, .number = a->ask->shard};
	struct baton_owner owner;
	struct grant g = {.asker = &owner, .ttl = BATON_DURATION_FOREVER, .max = 1};
	bool found;
	if (a->parcel)
		baton_work_claims_free(&a->parcel->pub);
	a->parcel = NULL;
	enum baton_err e = runner_owner(&s->db, a->runner, &owner, &found);
	if (e == BATON_OK && !found)
		return BATON_NOT_HELD;
	if (e == BATON_OK)
		e = shard_queue(s, &shard, &g.q);
	if (e == BATON_OK)
		e = more_do(s, &g, a);
	grant_done(&g);
	return e;
}

enum baton_err sqlite_more(struct baton_store *store, uint64_t runner,
                           const struct baton_more_ask *ask, struct baton_work_claims **ret_claims)
{
	struct more_args args = {.runner = runner, .ask = ask};
	enum baton_err e = sqlite_write_fences((struct sqlite_store *)store, more_run, &args);
	return grant_answer(e, args.parcel, ret_claims);
}
