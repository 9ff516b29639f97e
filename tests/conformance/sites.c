/* Runners of several hosts, and what they claim. */
#include "sites.h"

#define TTL_S 10

void scope_is(struct world *w, enum baton_key_scope scope, uint32_t limit)
{
	struct baton_queue_policy p = policy(w, QUEUE);
	p.shards = SHARDS;
	p.key_scope = scope;
	p.key_limit = limit;
	p.hold_on_retry = BATON_HOLD_GIVE_UP;
	p.retry.backoff = BATON_BACKOFF_NONE;
	set_policy(w, QUEUE, &p);
}

/* A runner of this process on that host: what others see of it is its boot. */
struct baton_runner *enlist(struct world *w, const char *name, uint8_t host)
{
	struct baton_runner_ask ask = {.name = baton_str_z(name),
	                               .weight = 1,
	                               .ttl = baton_duration_s(TTL_S)};
	struct baton_runner *r = NULL;
	const uint8_t was = w->store->owner.boot.bytes[0];
	w->store->owner.boot.bytes[0] = (uint8_t)(was + host);
	assert_int_equal(baton_runner_register(w->store, &ask, &r, NULL), BATON_OK);
	w->store->owner.boot.bytes[0] = was;
	return r;
}

/* Shards [first, end) of the queue. */
void own(struct baton_runner *r, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++) {
		const struct baton_shard s = {BATON_STR(QUEUE), i, 1, 1};
		struct baton_shard_answer a;
		assert_int_equal(baton_shard_take(r, &s, 1, &a), BATON_OK);
		assert_int_equal(a.err, BATON_OK);
	}
}

struct baton_batch_id put_key(struct world *w, const char *key)
{
	struct baton_str payload = BATON_STR("x");
	struct baton_batch b = batch_of(QUEUE, NULL, &payload);
	b.key = baton_str_z(key);
	return put_batch(w, &b);
}

/* What a tick gives of all shards; NULL: nothing. */
const struct baton_work_claims *tick(struct world *w, struct baton_runner *r,
                                     const struct baton_work_claim *ended, enum baton_work_how how,
                                     uint32_t claims)
{
	struct baton_shard shards[SHARDS];
	struct baton_shard_answer a[SHARDS];
	struct baton_work_end end = {.how = how};
	struct baton_work_ended answer = {.err = BATON_OK};
	struct baton_work_claims *given = NULL;
	for (uint32_t i = 0; i < SHARDS; i++)
		shards[i] = (struct baton_shard){BATON_STR(QUEUE), i, claims, 1};
	if (ended)
		end.proof = ended->proof;
	const struct baton_tick t = {.ends = &end,
	                             .end_count = ended ? 1 : 0,
	                             .ended = &answer,
	                             .shards = shards,
	                             .shard_count = SHARDS,
	                             .owned = a,
	                             .claims = claims};
	assert_int_equal(baton_runner_tick(r, &t, &given), BATON_OK);
	assert_int_equal(answer.err, BATON_OK);
	if (given)
		keep_claims(w, given);
	return given;
}

const struct baton_work_claims *take(struct world *w, struct baton_runner *r)
{
	return tick(w, r, NULL, BATON_COMPLETE, 10);
}
