/* Claims as they are made in a store in memory. */
#include "store/memory/take.h"

#include "base/fail.h"
#include "queue/line.h"
#include "queue/policy.h"
#include "store/keys.h"
#include "store/memory/batch.h"
#include "store/memory/class.h"
#include "store/memory/lane.h"
#include "store/memory/lease.h"
#include "store/memory/pace.h"
#include "store/memory/rate.h"

static struct candidate candidate_of(const struct batch *b)
{
	return (struct candidate){
		.seq = b->is.seq,
		.cls = b->put.cls,
		.delivery = b->put.delivery,
		.slot = b->put.slot,
		.group = b->put.group,
	};
}

/* With the names of its keys, in the memory of the transaction. */
static enum baton_err candidate_make(struct tx *tx, const struct batch *b, struct candidate *ret)
{
	char text[LINE_KEYS_MAX];
	struct baton_str name = memory_guest_name(b, text);
	*ret = candidate_of(b);
	if (b->key_count == 0)
		return BATON_OK;
	char *kept = memory_tx_take(tx, name.len, 1);
	if (!kept)
		return BATON_NO_MEMORY;
	memcpy(kept, name.ptr, name.len);
	ret->key = (struct baton_str){kept, name.len};
	return BATON_OK;
}

enum baton_err memory_take_ready(struct tx *tx, const struct lane *lane, struct ready *ret)
{
	size_t most = 0;
	bool keyed = line_is_keyed(lane->name);
	for (const struct batch *b = lane->first; b && (keyed || !b->is.blocks); b = b->next)
		most += b->is.state == BATON_BATCH_READY;
	*ret = (struct ready){
		.batches = memory_tx_take(tx, most, sizeof(struct batch *)),
		.candidates = memory_tx_take(tx, most, sizeof(struct candidate)),
	};
	if (!ret->batches || !ret->candidates)
		return BATON_NO_MEMORY;
	for (struct batch *b = lane->first; b && (keyed || !b->is.blocks); b = b->next) {
		if (b->is.state != BATON_BATCH_READY)
			continue;
		if (candidate_make(tx, b, &ret->candidates[ret->count]) != BATON_OK)
			return BATON_NO_MEMORY;
		ret->batches[ret->count++] = b;
	}
	return BATON_OK;
}

static enum baton_err show_payloads(struct arena *a, const struct batch *b,
                                    struct baton_work_batch *ret)
{
	struct baton_str *payloads = arena_take(a, b->put.count, sizeof *payloads);
	if (!payloads)
		return fail_memory(b->put.count * sizeof *payloads, "payloads");
	for (size_t i = 0; i < b->put.count; i++) {
		if (!arena_copy(a, b->put.payloads[i], &payloads[i]))
			return fail_memory(b->put.payloads[i].len, "a payload");
	}
	ret->payloads = payloads;
	ret->count = b->put.count;
	return BATON_OK;
}

/* An attempt that has not failed, or not yet, is not counted in the batch. */
static bool is_under_way(const struct batch *b)
{
	return b->is.state == BATON_BATCH_CLAIMED ||
	       (b->is.state == BATON_BATCH_DONE && b->is.by == 0);
}

enum baton_err memory_show_batch(struct arena *a, const struct batch *b, bool payloads,
                                 struct baton_work_batch *ret)
{
	*ret = (struct baton_work_batch){
		.seq = b->is.seq,
		.cls = b->put.cls,
		.delivery = b->put.delivery,
		.slot = b->put.slot,
		.priority = b->put.priority,
		.attempt = b->is.attempts + is_under_way(b),
		.put_at = b->put_at,
	};
	batch_id_print(b->id, &ret->id);
	if (!arena_copy(a, b->put.group, &ret->group))
		return fail_memory(b->put.group.len, "the name of a group");
	return payloads ? show_payloads(a, b, ret) : BATON_OK;
}

static uint64_t last_fence(struct batch *const *batches, size_t count)
{
	uint64_t last = 0;
	for (size_t i = 0; i < count; i++)
		last = batches[i]->is.fence > last ? batches[i]->is.fence : last;
	return last;
}

struct claim *memory_claim_add(struct tx *tx, const struct claim_name *name,
                               const struct batch *head)
{
	struct claim *claim = NULL;
	claim = (struct claim *)memory_tx_add(tx, &tx->m->claims,
	                                      sizeof *claim +
	                                              head->key_count * sizeof(struct lane *),
	                                      memory_hash(tx->m, name, sizeof *name));
	if (!claim)
		return NULL;
	claim->name = *name;
	claim->lane = head->lane;
	claim->keys = (struct lane **)(claim + 1);
	claim->key_count = head->key_count;
	for (size_t i = 0; i < head->key_count; i++)
		claim->keys[i] = head->keys[i].key;
	return claim;
}

static enum baton_err claim_new(struct tx *tx, const struct take *take, const struct batch *head,
                                uint64_t last, struct claim **ret)
{
	struct claim_name name = {.head = head->is.seq};
	struct baton_id token;
	struct claim *claim = NULL;
	struct queue *queue = head->lane->queue;
	const struct lane *key = memory_key_of(head);
	if ((queue->is.guests || policy_has_class(&queue->is.policy)) && line_is_keyed(key->name))
		last = memory_class_fence(queue, last);
	enum baton_err e = memory_tx_save(tx, &take->granter->row);
	if (e == BATON_OK)
		e = memory_tx_save(tx, &queue->row);
	if (e == BATON_OK)
		e = memory_lease_count(take->granter, &queue->is.reach, last, &name.fence);
	if (e == BATON_OK)
		e = memory_tx_random(tx, &token);
	if (e != BATON_OK)
		return e;
	claim = memory_claim_add(tx, &name, head);
	if (!claim)
		return BATON_NO_MEMORY;
	claim->granter = take->granter->is.row.fence;
	claim->token = token;
	claim->owner = *take->owner;
	claim->claimed_at = tx->now;
	claim->is.expires =
		baton_store_time_add(tx->now, line_ttl(key->name, &queue->is.policy, take->ttl));
	*ret = claim;
	return BATON_OK;
}

static enum baton_err show_claim(struct arena *a, const struct claim *claim,
                                 struct baton_work_claim *ret)
{
	const struct lane *key = memory_key_of_claim(claim);
	char text[LINE_KEYS_MAX];
	*ret = (struct baton_work_claim){
		.proof.token = claim->token,
		.fence = {claim->name.fence},
		.shard = memory_claim_shard(claim->lane),
		.claimed_at = claim->claimed_at,
		.expires_at = claim->is.expires,
		.hold = line_hold(key->name, &key->queue->is.policy),
	};
	claim_name_print(&claim->name, ret->proof.id);
	if (!arena_copy(a, claim->lane->queue->name, &ret->queue) ||
	    !arena_copy(a, line_lane(claim->lane->name), &ret->lane))
		return fail_memory(claim->lane->name.len, "the name of a lane");
	return keys_show(a, memory_claim_keys(claim, text), KEYS_OF(ret));
}

static enum baton_err give(struct tx *tx, struct claim *claim, struct batch *b, struct arena *a,
                           struct baton_work_batch *ret)
{
	enum baton_err e = memory_batch_event(tx, b, EVENT_CLAIM);
	if (e != BATON_OK)
		return e;
	b->is.claim = claim;
	claim->is.count++;
	return memory_show_batch(a, b, true, ret);
}

/* That the claim has begun, for its key, or each of them. Guests do not take turns. */
static enum baton_err count_start(struct tx *tx, struct claim *claim)
{
	enum baton_err e = BATON_OK;
	if (claim->key_count == 0) {
		e = memory_pace_claim(tx, claim->lane);
		return e == BATON_OK ? memory_rate_claim(tx, claim->lane, &claim->owner) : e;
	}
	for (size_t i = 0; i < claim->key_count && e == BATON_OK; i++)
		e = memory_rate_claim(tx, claim->keys[i], &claim->owner);
	return e;
}

enum baton_err memory_take(struct tx *tx, const struct take *take, struct batch *const *batches,
                           size_t count)
{
	struct claims_parcel *parcel = take->parcel;
	struct arena *a = &parcel->arena;
	struct baton_work_claim shown;
	struct baton_work_batch *to = arena_take(a, count, sizeof *to);
	if (!to)
		return fail_memory(count * sizeof *to, "the batches of a claim");
	struct claim *claim;
	enum baton_err e = claim_new(tx, take, batches[0], last_fence(batches, count), &claim);
	if (e == BATON_OK)
		e = show_claim(a, claim, &shown);
	for (size_t i = 0; i < count && e == BATON_OK; i++)
		e = give(tx, claim, batches[i], a, &to[i]);
	if (e == BATON_OK)
		e = count_start(tx, claim);
	if (e != BATON_OK)
		return e;
	memory_class_take(tx, claim);
	shown.batches = to;
	shown.count = count;
	memcpy((struct baton_work_claim *)parcel->pub.claims + parcel->pub.count, &shown,
	       sizeof shown);
	parcel->pub.count++;
	return BATON_OK;
}

struct claims_parcel *memory_take_parcel(const struct tx *tx, size_t claims)
{
	struct claims_parcel *parcel = claims_parcel_new(tx->m->store.alloc);
	if (!parcel)
		return NULL;
	parcel->pub.claims = arena_take(&parcel->arena, claims, sizeof *parcel->pub.claims);
	if (parcel->pub.claims)
		return parcel;
	fail_memory(claims * sizeof *parcel->pub.claims, "claims");
	baton_work_claims_free(&parcel->pub);
	return NULL;
}

enum baton_err memory_take_give(enum baton_err e, struct claims_parcel *parcel,
                                struct baton_work_claims **ret_claims)
{
	bool given = e == BATON_OK && parcel && parcel->pub.count > 0;
	if (!given && parcel)
		baton_work_claims_free(&parcel->pub);
	if (e == BATON_OK)
		*ret_claims = given ? &parcel->pub : NULL;
	return e;
}

enum baton_err memory_take_end(struct tx *tx, enum baton_err e, struct claims_parcel *parcel,
                               struct baton_work_claims **ret_claims)
{
	return memory_take_give(memory_tx_end(tx, e), parcel, ret_claims);
}
