/* Rows that have several batches, and the claims on them. */
#include "store/postgres/bulk.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "store/memory/batch.h"
#include "store/memory/lane.h"
#include "store/postgres/keyed.h"

#define ALONE_BELOW 4    /* so few new batches have rows of their own, unless they have keys */
#define PAYLOAD_MAX 2000 /* a longer one does too                          */
#define BYTES_MAX 7000   /* of a row: it has to fit into a page            */
#define MEMBER_HEAD 5    /* bytes before a payload: its place and its length */
#define KEY_HEAD 8       /* bytes that a key takes beside its name, at most      */

static uint32_t length_at(const unsigned char *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
	       bytes[3];
}

static struct baton_batch put_of(int64_t rank, int64_t flags)
{
	return (struct baton_batch){
		.cls = flags & FLAG_COMMAND ? BATON_COMMAND : BATON_WORK,
		.delivery = flags & FLAG_AFTER_COMMIT ? BATON_AFTER_COMMIT : BATON_EARLIEST,
		.slot = flags & FLAG_JOIN ? BATON_JOIN : BATON_EXCLUSIVE,
		.priority = (uint32_t)(BATON_PRIORITY_MAX - rank),
	};
}

/* The batches of a row behind its mark. */
static enum baton_err members_load(struct desk *d, struct tx *tx, const PGresult *r, int row)
{
	const struct bulk_read *read = &d->bulks[d->bulk_count - 1];
	struct baton_batch put = put_of(read->rank, cell_int(r, row, 5));
	struct baton_str bytes = cell_str(r, row, 8), payload;
	struct keyed_names names;
	put.payloads = &payload;
	put.count = 1;
	enum baton_err e = keyed_read(r, row, 9, &names);
	while (e == BATON_OK && bytes.len >= MEMBER_HEAD) {
		const unsigned char *at = (const unsigned char *)bytes.ptr;
		uint64_t seq = read->first + at[0];
		payload = (struct baton_str){bytes.ptr + MEMBER_HEAD, length_at(at + 1)};
		if (payload.len > bytes.len - MEMBER_HEAD)
			return fail(BATON_STORAGE,
			            "the store is damaged: row %" PRIu64
			            " of several batches is cut off",
			            read->first);
		bytes.ptr += MEMBER_HEAD + payload.len;
		bytes.len -= MEMBER_HEAD + payload.len;
		e = keyed_next(&names, &put.lane);
		if (e != BATON_OK || seq <= read->mark)
			continue;
		struct batch *b = memory_batch_make(tx, read->queue, &put, seq, seq);
		if (!b)
			return BATON_NO_MEMORY;
		b->row.kept = IN_BULK | (d->bulk_count - 1);
		b->put_at.ms = cell_int(r, row, 6);
		b->is.state = BATON_BATCH_READY;
	}
	return e;
}

static enum baton_err bulk_load(struct desk *d, struct tx *tx, const PGresult *r, int row)
{
	struct queue *q = desk_queue_of(d, cell_int(r, row, 2));
	if (!q)
		return fail(BATON_STORAGE, "the store is damaged: batches have no queue");
	if (!desk_room(d, (void **)&d->bulks, d->bulk_count, &d->bulk_cap, sizeof *d->bulks))
		return BATON_NO_MEMORY;
	uint64_t mark = (uint64_t)cell_int(r, row, 7);
	d->bulks[d->bulk_count++] = (struct bulk_read){
		.first = (uint64_t)cell_int(r, row, 0),
		.queue = q,
		.pool = (int32_t)cell_int(r, row, 3),
		.rank = (int32_t)cell_int(r, row, 4),
		.mark = mark,
		.reached = mark,
	};
	return members_load(d, tx, r, row);
}

enum baton_err desk_bulks(struct desk *d, const PGresult *r)
{
	struct tx tx;
	enum baton_err e = BATON_OK;
	desk_load_begin(d, &tx);
	for (int i = 0; i < PQntuples(r) && e == BATON_OK; i++)
		e = bulk_load(d, &tx, r, i);
	return desk_load_end(d, &tx, e);
}

/* A claim of a chunk, and its batch. */
static enum baton_err item_load(struct desk *d, struct tx *tx, const struct claim *model,
                                const struct baton_batch *put, size_t place)
{
	const struct chunk_read *chunk = &d->chunks[d->chunk_count - 1];
	struct claim_name name = {chunk->heads[place], chunk->fences[place]};
	struct batch *b = memory_batch_make(tx, model->lane->queue, put, name.head, name.head);
	struct claim *c = (struct claim *)memory_tx_add(tx, &d->m->claims, sizeof *c,
	                                                memory_hash(d->m, &name, sizeof name));
	if (!b || !c)
		return BATON_NO_MEMORY;
	b->row.kept = IN_BULK;
	b->put_at = model->claimed_at;
	b->is.state = BATON_BATCH_CLAIMED;
	b->is.fence = name.fence;
	b->is.claim = c;
	c->lane = b->lane;
	c->name = name;
	c->owner = model->owner;
	c->granter = model->granter;
	c->claimed_at = model->claimed_at;
	c->token = chunk->tokens[place];
	c->is.expires = model->is.expires;
	c->is.count = 1;
	c->row.kept = 1 | CLAIM_CHUNK | place << 3 | (uint64_t)(d->chunk_count - 1) << 16;
	return BATON_OK;
}

static bool chunk_read(struct desk *d, const PGresult *r, int row)
{
	size_t count = cell_count(r, row, 7);
	struct baton_str tokens = cell_str(r, row, 9);
	const struct baton_str places[] = {cell_str(r, row, 13), cell_str(r, row, 14)};
	if (count > BULK_MAX || cell_count(r, row, 8) != count ||
	    tokens.len != count * sizeof(struct baton_id) || places[0].len != PLACE_LEN ||
	    places[1].len != PLACE_LEN)
		return false;
	struct chunk_read *chunk = &d->chunks[d->chunk_count++];
	*chunk = (struct chunk_read){
		.first = (uint64_t)cell_int(r, row, 1),
		.id = (uint64_t)cell_int(r, row, 0),
		.count = (uint32_t)count,
	};
	memcpy(chunk->place, places[0].ptr, PLACE_LEN);
	memcpy(chunk->bulk_place, places[1].ptr, PLACE_LEN);
	for (size_t i = 0; i < count; i++) {
		chunk->heads[i] = (uint64_t)cell_element(r, row, 7, i);
		chunk->fences[i] = (uint64_t)cell_element(r, row, 8, i);
	}
	if (count > 0)
		memcpy(chunk->tokens, tokens.ptr, tokens.len);
	return true;
}

static enum baton_err chunk_load(struct desk *d, struct tx *tx, const PGresult *r, int row)
{
	struct claim model = {.granter = (uint64_t)cell_int(r, row, 4),
	                      .claimed_at = {cell_int(r, row, 5)},
	                      .is.expires = {cell_int(r, row, 6)}};
	struct lane lane = {.queue = desk_queue_of(d, cell_int(r, row, 2))};
	if (!lane.queue)
		return BATON_OK; /* of others, whose numbers are near */
	if (lane.queue->is.policy.keep.ns > 0) {
		d->melts = true; /* what is completed stays, in a row of its own */
		return BATON_OK;
	}
	if (!desk_room(d, (void **)&d->chunks, d->chunk_count, &d->chunk_cap, sizeof *d->chunks))
		return BATON_NO_MEMORY;
	if (baton_owner_parse(cell_str(r, row, 3), &model.owner) != BATON_OK ||
	    !chunk_read(d, r, row))
		return fail(BATON_STORAGE, "the store is damaged: claims cannot be read");
	const struct baton_batch put = put_of(cell_int(r, row, 10), cell_int(r, row, 11));
	enum baton_err e = BATON_OK;
	model.lane = &lane;
	for (size_t i = 0; i < d->chunks[d->chunk_count - 1].count && e == BATON_OK; i++)
		e = item_load(d, tx, &model, &put, i);
	return e;
}

enum baton_err desk_chunks(struct desk *d, const PGresult *r)
{
	struct tx tx;
	enum baton_err e = BATON_OK;
	desk_load_begin(d, &tx);
	for (int i = 0; i < PQntuples(r) && e == BATON_OK; i++)
		e = chunk_load(d, &tx, r, i);
	return desk_load_end(d, &tx, e);
}

/* Those that were put with a source key are found by it, and have rows of their own. */
static void mark_sourced(const struct desk *d)
{
	for (const struct row *row = d->m->sources.oldest; row; row = row->newer) {
		struct batch *b =
			row->noted ? desk_batch(d, ((const struct source *)row)->is.id) : NULL;
		if (b)
			b->sourced = true;
	}
}

static bool can_share(const struct desk *d, const struct batch *b)
{
	const struct baton_batch *put = &b->put;
	return b->row.noted && b->row.kept == 0 &&
	       (b->lane->name.len == 0 || keyed_is_alone(d, b)) &&
	       b->is.state == BATON_BATCH_READY && put->count == 1 && put->group.len == 0 &&
	       put->retry.attempts == 0 && put->payloads[0].len <= PAYLOAD_MAX &&
	       b->is.seq == b->id && !b->sourced;
}

void bulk_count(struct desk *d)
{
	d->shared = 0;
	mark_sourced(d);
	for (struct row *row = d->m->batches.oldest; row; row = row->newer)
		d->shared += can_share(d, (struct batch *)row);
}

bool bulk_takes(const struct desk *d, const struct batch *b)
{
	return (d->shared >= ALONE_BELOW || b->lane->name.len > 0) && can_share(d, b);
}

/* Rows that are being filled: of every queue, pool and rank one at a time, so that each has all
 * numbers from its first to its last: a mark says for all of them up to which they are claimed. */
struct filling {
	struct queue *queue;
	int32_t pool, rank, flags;
	bool keyed; /* some of them have keys */
	size_t key_bytes;
	struct baton_str keys[BULK_MAX];
	uint64_t first, last, has;
	uint32_t n;
	int64_t put_at_ms;
	struct buf bytes;
};

struct fillings {
	struct bulk_writer *w;
	struct args args;
	struct filling *list;
	size_t count, cap;
	size_t keys; /* of all rows so far */
};

/* From where to where they are among those of all rows; 0: there are none. */
static void filling_keys(struct fillings *all, const struct filling *f)
{
	struct args *a = &all->args;
	add_int(a, 15, f->keyed ? (int64_t)all->keys + 1 : 0);
	all->keys += f->keyed ? f->n : 0;
	add_int(a, 16, f->keyed ? (int64_t)all->keys : 0);
	for (uint32_t i = 0; f->keyed && i < f->n; i++)
		add_optional(a, 17, f->keys[i]);
}

static void filling_flush(struct fillings *all, struct filling *f)
{
	struct args *a = &all->args;
	if (f->n == 0)
		return;
	add_int(a, 0, (int64_t)f->first);
	add_int(a, 1, (int64_t)f->last);
	add_int(a, 2, (int64_t)f->has);
	add_int(a, 3, f->put_at_ms);
	add_int(a, 4, (int64_t)f->queue->row.kept);
	add_str(a, 5, f->queue->name);
	add_int(a, 6, f->pool);
	add_int(a, 7, f->rank);
	add_int(a, 8, f->n);
	add_int(a, 9, f->flags);
	add_str(a, 14, buf_str(&f->bytes));
	if (f->bytes.err != BATON_OK)
		a->list[14].bytes.err = f->bytes.err;
	filling_keys(all, f);
	buf_reset(&f->bytes);
	f->key_bytes = 0;
	f->keyed = false;
	f->n = 0;
	f->has = 0;
}

static struct filling *filling_find(struct fillings *all, const struct batch *b)
{
	struct queue *q = b->lane->queue;
	bool runner = q->is.policy.mode == BATON_QUEUE_RUNNER;
	struct filling want = {
		.queue = q,
		.pool = runner ? (int32_t)memory_lane_shard(b->lane) + 1 : 0,
		.rank = (int32_t)(BATON_PRIORITY_MAX - b->put.priority),
	};
	for (size_t i = 0; i < all->count; i++) {
		struct filling *f = &all->list[i];
		if (f->queue == want.queue && f->pool == want.pool && f->rank == want.rank)
			return f;
	}
	if (!desk_room(all->w->d, (void **)&all->list, all->count, &all->cap, sizeof *all->list))
		return NULL;
	struct filling *f = &all->list[all->count++];
	*f = want;
	buf_init(&f->bytes, all->w->c->alloc, (size_t)1 << 16);
	return f;
}

static void member_add(struct fillings *all, const struct batch *b)
{
	struct filling *f = filling_find(all, b);
	const struct baton_str payload = b->put.payloads[0];
	uint64_t seq = b->is.seq;
	if (!f)
		return;
	const size_t key_bytes = b->lane->name.len > 0 ? b->lane->name.len + KEY_HEAD : 0;
	const int32_t flags = desk_flags(&b->put);
	if (f->n > 0 &&
	    (f->first / BULK_MAX != seq / BULK_MAX || f->put_at_ms != b->put_at.ms ||
	     f->flags != flags ||
	     f->bytes.len + payload.len + MEMBER_HEAD + f->key_bytes + key_bytes > BYTES_MAX))
		filling_flush(all, f);
	if (f->n == 0) {
		f->first = seq;
		f->flags = flags;
		f->put_at_ms = b->put_at.ms;
	}
	const uint32_t len = (uint32_t)payload.len;
	const unsigned char head[MEMBER_HEAD] = {(unsigned char)(seq - f->first),
	                                         (unsigned char)(len >> 24),
	                                         (unsigned char)(len >> 16),
	                                         (unsigned char)(len >> 8), (unsigned char)len};
	buf_append(&f->bytes, head, sizeof head);
	buf_append_str(&f->bytes, payload);
	f->has |= UINT64_C(1) << (seq - f->first);
	f->last = seq;
	f->key_bytes += key_bytes;
	f->keyed = f->keyed || key_bytes > 0;
	f->keys[f->n++] = b->lane->name;
}

static void args_arrays(struct bulk_writer *w, struct args *a, const enum arg_type *types,
                        int count)
{
	args_init(a, w->c->alloc, count);
	for (int i = 0; i < count; i++)
		arg_array(a, i, types[i]);
}

/* Sends it, if it has anything. */
static void send_any(struct bulk_writer *w, enum sql sql, struct args *a)
{
	if (a->list[0].count == 0) {
		args_done(a);
		return;
	}
	conn_send(w->c, sql, a);
	w->any = true;
}

/* The marks that the rows need. */
static void add_marks(struct fillings *all)
{
	for (size_t i = 0; i < all->count; i++) {
		const struct filling *f = &all->list[i];
		add_int(&all->args, 10, (int64_t)f->queue->row.kept);
		add_str(&all->args, 11, f->queue->name);
		add_int(&all->args, 12, f->pool);
		add_int(&all->args, 13, f->rank);
	}
}

enum baton_err bulk_batches_write(struct bulk_writer *w)
{
	static const enum arg_type types[] = {ARG_INT8, ARG_INT8, ARG_INT8, ARG_INT8, ARG_INT4,
	                                      ARG_TEXT, ARG_INT4, ARG_INT2, ARG_INT2, ARG_INT2,
	                                      ARG_INT4, ARG_TEXT, ARG_INT4, ARG_INT2, ARG_BYTES,
	                                      ARG_INT4, ARG_INT4, ARG_TEXT};
	struct fillings all = {.w = w};
	if (w->d->shared == 0)
		return BATON_OK;
	args_arrays(w, &all.args, types, 18);
	for (struct row *row = w->d->m->batches.oldest; row; row = row->newer) {
		if (bulk_takes(w->d, (struct batch *)row))
			member_add(&all, (struct batch *)row);
	}
	for (size_t i = 0; i < all.count; i++) {
		filling_flush(&all, &all.list[i]);
		buf_done(&all.list[i].bytes);
	}
	add_marks(&all);
	send_any(w, SQL_BULK_ADD, &all.args);
	return w->d->memory ? BATON_OK : fail_memory(1, "a transaction");
}

/* Several claims, as they are written: the last three arguments of the rows say from where to where
 * their numbers are in two more, which have those of all rows, and what their tokens are. */
struct items {
	struct args *a;
	int at; /* the first of these arguments */
	size_t before, count;
	struct baton_id tokens[BULK_MAX];
};

static void items_add(struct items *i, uint64_t head, uint64_t fence, const struct baton_id *token)
{
	add_int(i->a, i->at + 3, (int64_t)head);
	add_int(i->a, i->at + 4, (int64_t)fence);
	i->tokens[i->count++] = *token;
}

static void items_flush(struct items *i)
{
	add_int(i->a, i->at, (int64_t)i->before + 1);
	add_int(i->a, i->at + 1, (int64_t)(i->before + i->count));
	add_str(i->a, i->at + 2,
	        (struct baton_str){(const char *)i->tokens, i->count * sizeof i->tokens[0]});
	i->before += i->count;
	i->count = 0;
}

static bool is_alike(const struct claim *a, const struct claim *b)
{
	return a && a->granter == b->granter && a->claimed_at.ms == b->claimed_at.ms &&
	       a->is.expires.ms == b->is.expires.ms &&
	       baton_id_equal(&a->owner.incarnation, &b->owner.incarnation);
}

static void chunk_flush(const struct bulk_read *read, const struct claim *model,
                        struct items *items)
{
	char owner[BATON_OWNER_TEXT];
	struct args *a = items->a;
	if (items->count == 0)
		return;
	add_int(a, 0, (int64_t)read->first);
	add_int(a, 1, (int64_t)model->granter);
	add_int(a, 2, model->claimed_at.ms);
	add_int(a, 3, model->is.expires.ms);
	add_int(a, 4, (int64_t)read->queue->row.kept);
	add_str(a, 5, baton_str_z(baton_owner_print(&model->owner, owner)));
	items_flush(items);
}

/* The rows come in the order in which they were read, and so do the batches of each. */
static enum baton_err chunks_add(struct bulk_writer *w, struct items *items)
{
	const struct claim *model = NULL;
	struct bulk_read *of = NULL;
	for (struct row *row = w->d->m->batches.oldest; row; row = row->newer) {
		const struct batch *b = (struct batch *)row;
		if (!(row->kept & IN_BULK) || !b->row.noted || w->d->bulk_count == 0)
			continue;
		struct bulk_read *read = &w->d->bulks[row->kept & ~IN_BULK];
		if (b->is.state != BATON_BATCH_CLAIMED || !b->is.claim || !b->is.claim->row.noted)
			return fail(BATON_STORAGE, "batch %" PRIu64 " cannot stay where it is",
			            b->is.seq);
		if (read != of || !is_alike(model, b->is.claim)) {
			chunk_flush(of, model, items);
			of = read;
			model = b->is.claim;
		}
		items_add(items, b->is.claim->name.head, b->is.claim->name.fence,
		          &b->is.claim->token);
		read->reached = b->is.seq > read->reached ? b->is.seq : read->reached;
	}
	chunk_flush(of, model, items);
	return BATON_OK;
}

static bool has_same_mark(const struct bulk_read *a, const struct bulk_read *b)
{
	return a->queue == b->queue && a->pool == b->pool && a->rank == b->rank;
}

/* Nothing before the mark may be left: it would never be found again. */
static bool is_skipped(const struct desk *d, const struct batch *b)
{
	size_t place = b->row.kept & ~IN_BULK;
	if (b->is.state != BATON_BATCH_READY || place >= d->bulk_count)
		return false;
	const struct bulk_read *own = &d->bulks[place];
	for (size_t i = 0; i < d->bulk_count; i++) {
		const struct bulk_read *read = &d->bulks[i];
		if (has_same_mark(read, own) && read->reached > read->mark &&
		    read->reached > b->is.seq)
			return true;
	}
	return false;
}

static enum baton_err check_marks(const struct desk *d)
{
	for (struct row *row = d->m->batches.oldest; row; row = row->newer) {
		const struct batch *b = (struct batch *)row;
		if ((row->kept & IN_BULK) && is_skipped(d, b))
			return fail(BATON_STORAGE, "batch %" PRIu64 " would be passed over",
			            b->is.seq);
	}
	return BATON_OK;
}

static void mark_set_one(struct bulk_writer *w, const struct bulk_read *read)
{
	struct args a;
	args_init(&a, w->c->alloc, 5);
	arg_int(&a, 0, (int64_t)read->queue->row.kept);
	arg_int(&a, 1, read->pool);
	arg_int(&a, 2, read->rank);
	arg_int(&a, 3, (int64_t)read->mark);
	arg_int(&a, 4, (int64_t)read->reached);
	conn_send(w->c, SQL_MARK_SET_ONE, &a);
	w->any = true;
}

/* Several rows may have the same mark: the one in which the most was reached counts. (Those that
 * were written before version 12 may have numbers between each other's.) */
static bool is_farthest(const struct desk *d, const struct bulk_read *read)
{
	for (size_t i = 0; i < d->bulk_count; i++) {
		if (has_same_mark(&d->bulks[i], read) && d->bulks[i].reached > read->reached)
			return false;
	}
	return read->reached > read->mark;
}

static void marks_write(struct bulk_writer *w)
{
	static const enum arg_type types[] = {ARG_INT4, ARG_INT4, ARG_INT2, ARG_INT8, ARG_INT8};
	struct args a;
	const struct desk *d = w->d;
	const struct bulk_read *only = NULL;
	args_arrays(w, &a, types, 5);
	for (size_t i = 0; i < d->bulk_count; i++) {
		const struct bulk_read *read = &d->bulks[i];
		if (!is_farthest(d, read))
			continue;
		add_int(&a, 0, (int64_t)read->queue->row.kept);
		add_int(&a, 1, read->pool);
		add_int(&a, 2, read->rank);
		add_int(&a, 3, (int64_t)read->mark);
		add_int(&a, 4, (int64_t)read->reached);
		only = read;
	}
	if (a.list[0].count != 1) {
		send_any(w, SQL_MARK_SET, &a);
		return;
	}
	args_done(&a);
	mark_set_one(w, only);
}

enum baton_err bulk_claims_write(struct bulk_writer *w)
{
	static const enum arg_type types[] = {ARG_INT8,  ARG_INT8, ARG_INT8, ARG_INT8,
	                                      ARG_INT4,  ARG_TEXT, ARG_INT4, ARG_INT4,
	                                      ARG_BYTES, ARG_INT8, ARG_INT8};
	struct args a;
	struct items items = {.a = &a, .at = 6};
	args_arrays(w, &a, types, 11);
	enum baton_err e = chunks_add(w, &items);
	if (e == BATON_OK)
		e = check_marks(w->d);
	if (e != BATON_OK) {
		args_done(&a);
		return e;
	}
	send_any(w, SQL_CHUNK_ADD, &a);
	marks_write(w);
	return BATON_OK;
}

/* What is left of a chunk. */
static void chunk_set(struct items *items, const struct chunk_read *chunk)
{
	add_int(items->a, 0, (int64_t)chunk->first);
	add_int(items->a, 1, (int64_t)chunk->id);
	for (uint32_t i = 0; i < chunk->count; i++) {
		if (!(chunk->gone >> i & 1))
			items_add(items, chunk->heads[i], chunk->fences[i], &chunk->tokens[i]);
	}
	items_flush(items);
}

static bool is_all_gone(const struct chunk_read *chunk)
{
	return chunk->gone ==
	       (chunk->count == BULK_MAX ? UINT64_MAX : (UINT64_C(1) << chunk->count) - 1);
}

void bulk_ends_write(struct bulk_writer *w)
{
	static const enum arg_type set_types[] = {ARG_INT8,  ARG_INT8, ARG_INT4, ARG_INT4,
	                                          ARG_BYTES, ARG_INT8, ARG_INT8};
	static const enum arg_type drop_types[] = {ARG_PLACE, ARG_PLACE, ARG_INT8};
	struct args set, drop;
	struct items items = {.a = &set, .at = 2};
	args_arrays(w, &set, set_types, 7);
	args_arrays(w, &drop, drop_types, 3);
	for (size_t i = 0; i < w->d->chunk_count; i++) {
		const struct chunk_read *chunk = &w->d->chunks[i];
		if (chunk->gone == 0)
			continue;
		if (!is_all_gone(chunk)) {
			chunk_set(&items, chunk);
			continue;
		}
		add_str(&drop, 0, (struct baton_str){chunk->place, PLACE_LEN});
		add_str(&drop, 1, (struct baton_str){chunk->bulk_place, PLACE_LEN});
		add_int(&drop, 2, (int64_t)chunk->first);
	}
	send_any(w, SQL_CHUNK_SET, &set);
	send_any(w, SQL_CHUNK_DROP, &drop);
}

static void reply_flush(const struct answer *model, struct items *items)
{
	struct args *a = items->a;
	if (items->count == 0)
		return;
	add_int(a, 0, (int64_t)(model->name.head - model->name.head % BULK_MAX));
	add_int(a, 1, model->until.ms);
	add_int(a, 2, model->state);
	items_flush(items);
}

enum baton_err bulk_answers_write(struct bulk_writer *w)
{
	static const enum arg_type types[] = {ARG_INT8, ARG_INT8,  ARG_INT2, ARG_INT4,
	                                      ARG_INT4, ARG_BYTES, ARG_INT8, ARG_INT8};
	struct args a;
	struct items items = {.a = &a, .at = 3};
	const struct answer *model = NULL;
	args_arrays(w, &a, types, 8);
	for (struct row *row = w->d->m->answers.oldest; row; row = row->newer) {
		const struct answer *x = (struct answer *)row;
		if (!row->noted)
			continue;
		bool alike = model && model->until.ms == x->until.ms && model->state == x->state &&
		             model->name.head / BULK_MAX == x->name.head / BULK_MAX &&
		             items.count < BULK_MAX;
		if (!alike)
			reply_flush(model, &items);
		model = alike ? model : x;
		items_add(&items, x->name.head, x->name.fence, &x->token);
	}
	reply_flush(model, &items);
	send_any(w, SQL_REPLY_ADD, &a);
	return BATON_OK;
}
