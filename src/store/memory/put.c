/* Putting batches into a store in memory. */
#include "store/memory/put.h"

#include "queue/line.h"
#include "queue/policy.h"
#include "store/memory/batch.h"
#include "store/memory/lane.h"
#include "store/memory/ops.h"
#include "store/memory/pace.h"
#include "store/memory/queue.h"
#include "store/memory/rival.h"
#include "store/refuse.h"

static struct source *source_find(const struct memory *m, const uint8_t key[DIGEST_SIZE])
{
	struct row *row = memory_row_first(&m->sources, memory_hash(m, key, DIGEST_SIZE));
	for (; row; row = memory_row_next(row)) {
		struct source *source = (struct source *)row;
		if (digest_equal(source->key, key, DIGEST_SIZE))
			return source;
	}
	return NULL;
}

/* Whether the batch is there already: then *ret says so. BATON_CONFLICT: with other content. */
static enum baton_err look_up(const struct tx *tx, const struct baton_batch *put,
                              const struct source *source, struct baton_put *ret)
{
	uint8_t content[DIGEST_SIZE];
	const struct batch *b = source ? memory_batch_find(tx, source->is.id) : NULL;
	if (!source || (!b && !baton_store_time_live(source->is.until, tx->now)))
		return BATON_OK;
	batch_digest(put, content);
	if (!digest_equal(source->is.content, content, DIGEST_SIZE))
		return refuse_conflict(put, source->is.id);
	batch_id_print(source->is.id, &ret->id);
	ret->state = b ? batch_shown(b->is.state, b->is.by) : BATON_BATCH_GONE;
	ret->existing = true;
	return BATON_OK;
}

static enum baton_err remember(struct tx *tx, const struct queue *queue,
                               const struct baton_batch *put, uint64_t id)
{
	uint8_t key[DIGEST_SIZE];
	batch_source_digest(put, key);
	struct source *source = source_find(tx->m, key);
	if (!source) {
		uint64_t hash = memory_hash(tx->m, key, sizeof key);
		source = (struct source *)memory_tx_add(tx, &tx->m->sources, sizeof *source, hash);
	}
	if (!source || memory_tx_save(tx, &source->row) != BATON_OK)
		return BATON_NO_MEMORY;
	memcpy(source->key, key, sizeof key);
	batch_digest(put, source->is.content);
	source->is.id = id;
	source->is.until = baton_store_time_add(tx->now, queue->is.policy.dedupe);
	return BATON_OK;
}

static enum baton_err check_room(const struct queue *queue)
{
	uint64_t max = queue->is.policy.waiting_max;
	uint64_t waiting = memory_queue_waiting(queue);
	return max == 0 || waiting < max ? BATON_OK : refuse_full(queue->name, waiting, max);
}

/* Of each of its keys. What is delayed does not wait for them yet. */
static enum baton_err check_room_of_keys(const struct tx *tx, const struct queue *queue,
                                         const struct baton_batch *put)
{
	uint32_t max = queue->is.policy.key_waiting_max;
	struct baton_str rest = put->key, key;
	char text[LINE_NAME_MAX];
	while (max > 0 && keys_next(&rest, &key)) {
		if (memory_key_waiting(tx, queue, line_of_key(key, text)) >= max)
			return refuse_key_full(queue->name, key, max);
	}
	return BATON_OK;
}

/* Whether it may have both a lane and a key, or several, if it does. */
static enum baton_err check_guest(struct tx *tx, struct queue *queue, const struct baton_batch *put)
{
	if (!line_has_guest(put))
		return BATON_OK;
	const char *against = policy_against_guests(&queue->is.policy);
	if (against)
		return refuse_guest(queue->name, put, against);
	enum baton_err e = memory_tx_save(tx, &queue->row);
	if (e == BATON_OK)
		queue->is.guests = true;
	return e;
}

static enum baton_err add(struct tx *tx, struct queue *queue, const struct baton_batch *put,
                          struct baton_put *ret)
{
	struct baton_store_time available = batch_available(put, tx->now);
	bool ready = baton_store_time_ready(available, tx->now);
	enum baton_err e = check_room(queue);
	if (e == BATON_OK)
		e = check_guest(tx, queue, put);
	if (e == BATON_OK && ready)
		e = check_room_of_keys(tx, queue, put);
	if (e != BATON_OK)
		return e;
	struct batch *b = memory_batch_add(tx, queue, put);
	if (!b)
		return BATON_NO_MEMORY;
	b->is.due = available;
	e = memory_batch_event(tx, b, ready ? EVENT_PUT : EVENT_PUT_LATER);
	if (e == BATON_OK && ready)
		e = memory_pace_enter(tx, b);
	if (e == BATON_OK && ready)
		e = memory_rival_enter(tx, b);
	if (e == BATON_OK && put->source.len > 0)
		e = remember(tx, queue, put, b->id);
	batch_id_print(b->id, &ret->id);
	ret->state = batch_shown(b->is.state, b->is.by);
	return e;
}

static enum baton_err put_one(struct tx *tx, const struct baton_batch *batch, struct baton_put *ret)
{
	const struct baton_batch put = batch_filled(batch);
	struct queue *queue = memory_queue_make(tx, put.queue);
	uint8_t key[DIGEST_SIZE];
	*ret = (struct baton_put){.existing = false};
	if (!queue)
		return BATON_NO_MEMORY;
	enum baton_err e = batch_check_payloads(&put, queue->is.policy.payload_max);
	if (e == BATON_OK && put.source.len > 0) {
		batch_source_digest(&put, key);
		e = look_up(tx, &put, source_find(tx->m, key), ret);
	}
	return e == BATON_OK && !ret->existing ? add(tx, queue, &put, ret) : e;
}

enum baton_err memory_put_all(struct tx *tx, const struct baton_batch *batches, size_t count,
                              struct baton_put *puts)
{
	struct baton_put unseen;
	for (size_t i = 0; i < count; i++) {
		enum baton_err e = put_one(tx, &batches[i], puts ? &puts[i] : &unseen);
		if (e != BATON_OK)
			return count > 1 ? store_name_batch(e, i) : e;
	}
	return BATON_OK;
}

enum baton_err memory_put(struct baton_store *store, const struct baton_batch *batches,
                          size_t count, struct baton_put *puts)
{
	struct tx tx;
	memory_tx_begin(&tx, store);
	return memory_tx_end_ring(&tx, memory_put_all(&tx, batches, count, puts));
}
