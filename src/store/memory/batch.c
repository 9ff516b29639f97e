/* The batches of a store in memory. */
#include "store/memory/batch.h"

#include "base/check.h"
#include "queue/line.h"
#include "queue/policy.h"
#include "store/memory/lane.h"

struct batch *memory_batch_find(const struct tx *tx, uint64_t id)
{
	struct row *row = memory_row_first(&tx->m->batches, memory_hash(tx->m, &id, sizeof id));
	struct batch *b = (struct batch *)row;
	while (b && b->id != id)
		b = (struct batch *)memory_row_next(&b->row);
	bool over = b && b->is.state == BATON_BATCH_DONE &&
	            !baton_store_time_live(b->is.until, tx->now);
	return over ? NULL : b;
}

struct batch *memory_batch_named(const struct tx *tx, const struct baton_batch_id *id)
{
	uint64_t number;
	return batch_id_parse(id, &number) ? memory_batch_find(tx, number) : NULL;
}

static size_t copies_size(const struct baton_batch *put)
{
	size_t size = put->group.len + put->count * sizeof(struct baton_str);
	size += line_has_guest(put) ? keys_count(put->key) * sizeof(struct guest) : 0;
	for (size_t i = 0; i < put->count; i++)
		size += put->payloads[i].len;
	return size;
}

static struct baton_str copy(char **to, struct baton_str s)
{
	struct baton_str made = {*to, s.len};
	if (s.len > 0)
		memcpy(*to, s.ptr, s.len);
	*to += s.len;
	return made;
}

/* Makes `b` own what it was put with: in the memory behind it. */
static void copy_put(struct batch *b, const struct baton_batch *put)
{
	b->keys = (struct guest *)(b + 1);
	struct baton_str *payloads = (struct baton_str *)(b->keys + b->key_count);
	char *text = (char *)(payloads + put->count);
	b->put = *put;
	b->put.queue = b->put.lane = b->put.key = b->put.source = (struct baton_str){0};
	b->put.group = copy(&text, put->group);
	for (size_t i = 0; i < put->count; i++)
		payloads[i] = copy(&text, put->payloads[i]);
	b->put.payloads = payloads;
}

/* The lines of its keys, that it is to be a guest of. They have to get it. False: no memory. */
static bool open_keys(struct tx *tx, struct queue *queue, const struct baton_batch *put,
                      struct lane *keys[BATON_KEYS_MAX], size_t *ret_count)
{
	struct baton_str rest = line_has_guest(put) ? put->key : (struct baton_str){NULL, 0};
	struct baton_str key;
	size_t count = 0;
	while (keys_next(&rest, &key)) {
		char text[LINE_NAME_MAX];
		CHECK(count < BATON_KEYS_MAX);
		keys[count] = memory_lane_open(tx, queue, line_of_key(key, text), 0);
		if (!keys[count++])
			return false;
	}
	*ret_count = count;
	return true;
}

struct batch *memory_batch_make(struct tx *tx, struct queue *queue, const struct baton_batch *put,
                                uint64_t id, uint64_t seq)
{
	struct memory *m = tx->m;
	char text[LINE_NAME_MAX];
	struct lane *keys[BATON_KEYS_MAX];
	size_t key_count;
	struct lane *lane =
		memory_lane_open(tx, queue, line_name(put, id, &queue->is.policy, text), id);
	if (!lane || !open_keys(tx, queue, put, keys, &key_count))
		return NULL;
	struct batch *b = NULL;
	b = (struct batch *)memory_tx_add(tx, &m->batches, sizeof *b + copies_size(put),
	                                  memory_hash(m, &id, sizeof id));
	if (!b)
		return NULL;
	b->key_count = key_count;
	copy_put(b, put);
	b->lane = lane;
	b->id = id;
	b->put_at = tx->now;
	b->is.seq = seq;
	b->is.state = BATON_BATCH_GONE;
	memory_lane_place(b);
	for (size_t i = 0; i < key_count; i++)
		memory_guest_add(b, i, keys[i]);
	return b;
}

struct batch *memory_batch_add(struct tx *tx, struct queue *queue, const struct baton_batch *put)
{
	uint64_t id = memory_next_number(tx->m);
	struct batch *b = memory_batch_make(tx, queue, put, id, id);
	if (b)
		tx->m->seq = id;
	return b;
}

void memory_batch_last(struct tx *tx, struct batch *b)
{
	b->is.seq = tx->m->seq = memory_next_number(tx->m);
	memory_lane_place(b);
}

struct text *memory_text_new(struct tx *tx, struct baton_str bytes)
{
	struct text *text = NULL;
	text = (struct text *)memory_tx_add(tx, &tx->m->texts, sizeof *text + bytes.len,
	                                    ++tx->m->text);
	if (!text)
		return NULL;
	char *to = (char *)(text + 1);
	text->bytes = copy(&to, bytes);
	text->row.gone = true;
	return text;
}

enum baton_err memory_text_set(struct tx *tx, struct text **slot, struct text *text)
{
	struct text *old = *slot;
	enum baton_err e = text ? memory_tx_save(tx, &text->row) : BATON_OK;
	if (e == BATON_OK && old)
		e = memory_tx_save(tx, &old->row);
	if (e != BATON_OK)
		return e;
	if (text) {
		text->is.users++;
		text->row.gone = false;
	}
	if (old)
		old->row.gone = --old->is.users == 0;
	*slot = text;
	return BATON_OK;
}

static enum baton_err leave_claim(struct tx *tx, struct batch *b)
{
	struct claim *claim = b->is.claim;
	enum baton_err e = memory_tx_save(tx, &claim->row);
	if (e != BATON_OK)
		return e;
	b->is.fence = claim->name.fence;
	b->is.claim = NULL;
	b->is.cancel = false;
	if (--claim->is.count == 0) {
		claim->row.gone = true;
		claim->lane->freed_in = tx->m->calls;
	}
	return BATON_OK;
}

static enum baton_err drop_texts(struct tx *tx, struct batch *b)
{
	enum baton_err e = memory_text_set(tx, &b->is.error, NULL);
	return e == BATON_OK ? memory_text_set(tx, &b->is.result, NULL) : e;
}

enum baton_err memory_batch_event(struct tx *tx, struct batch *b, enum batch_event event)
{
	struct queue *queue = b->lane->queue;
	enum baton_batch_state next = batch_next(b->is.state, event);
	CHECK(next != 0);
	enum baton_err e = memory_tx_save(tx, &b->row);
	if (e == BATON_OK)
		e = memory_tx_save(tx, &queue->row);
	if (e == BATON_OK && b->is.state == BATON_BATCH_CLAIMED && next != BATON_BATCH_CLAIMED)
		e = leave_claim(tx, b);
	if (e == BATON_OK && next == BATON_BATCH_GONE)
		e = drop_texts(tx, b);
	if (e != BATON_OK)
		return e;
	if (b->is.state != BATON_BATCH_GONE)
		queue->is.in[b->is.state]--;
	queue->is.in[next] += next != BATON_BATCH_GONE;
	b->is.state = next;
	b->is.blocks = next == BATON_BATCH_RETRY &&
	               line_on_retry(b->lane->name, &queue->is.policy) == LINE_RETRY_KEEP;
	b->is.holds =
		(next == BATON_BATCH_DEAD && line_dead_holds(b->lane->name, &queue->is.policy)) ||
		(b->is.blocks && line_is_keyed(b->lane->name));
	b->is.keeps =
		b->key_count > 0 && next == BATON_BATCH_RETRY && guest_keeps_key(&queue->is.policy);
	b->row.gone = next == BATON_BATCH_GONE;
	return BATON_OK;
}

enum baton_err memory_batch_skip(struct tx *tx, struct batch *b, uint64_t by)
{
	enum baton_err e = memory_batch_event(tx, b, EVENT_SKIP);
	if (e != BATON_OK)
		return e;
	b->is.by = by;
	b->is.ended_at = tx->now;
	b->is.until =
		baton_store_time_add(tx->now, policy_skipped_keep(&b->lane->queue->is.policy));
	return BATON_OK;
}

enum baton_err memory_batch_cancelled(struct tx *tx, struct batch *b)
{
	return b->is.by > 0 ? memory_batch_skip(tx, b, b->is.by)
	                    : memory_batch_event(tx, b, EVENT_ABANDON_CANCELLED);
}
