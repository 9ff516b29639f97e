/* The rows of jobs that stand together, and how ordinary ones are made of them. */
#include "store/sqlite/bulk_rows.h"

#include <endian.h>
#include <string.h>

#include "base/digest.h"
#include "base/fail.h"
#include "base/mem.h"
#include "queue/place.h"
#include "store/parcel.h"
#include "store/sqlite/lanes.h"
#include "store/sqlite/lone.h"

/* How a claim is written: its number, its fence and its token. */
#define RECORD (sizeof(uint64_t) * 2 + sizeof(struct baton_id))

enum baton_err bulk_damaged(const struct db *db, int64_t seq)
{
	return fail(
		BATON_STORAGE,
		"store %s is damaged: the row that batch %lld is in cannot be read; baton check "
		"says more",
		db->path, (long long)seq);
}

void bulk_batch(const struct bulk_row *row, const struct baton_str *keys, size_t index,
                struct batch_row *ret)
{
	batch_flags_read(row->flags, ret);
	ret->seq = row->first + (int64_t)index;
	ret->id = ret->seq;
	ret->queue = row->queue;
	ret->put_at = row->put_at;
	ret->due.ms = 0;
	ret->has_retry = false;
	ret->lane_len = 0;
	ret->key_len = 0;
	ret->group_len = 0;
	if (keys && keys[index].len > 0 && keys[index].len <= BATON_NAME_MAX)
		ret->lane_len = line_of_key(keys[index], ret->lane).len;
}

void bulk_batch_placed(const struct bulk_row *row, const struct baton_str *keys, size_t index,
                       const struct queue_row *q, struct batch_row *ret)
{
	bulk_batch(row, keys, index, ret);
	if (ret->lane_len > 0)
		ret->shard =
			place_of_line(queue_row_name(q), batch_row_line(ret), q->policy.shards);
}

int64_t bulk_hash(const struct bulk_row *row, const struct baton_str *keys, size_t index)
{
	struct batch_row b;
	bulk_batch(row, keys, index, &b);
	return b.lane_len > 0 ? lone_hash(b.queue, batch_row_line(&b)) : 0;
}

/* The keys of those whose bits are set, as they are written. */
static enum baton_err keys_pack(struct sqlite_store *s, const struct bulk_put *p, uint64_t which,
                                struct baton_str *ret)
{
	struct baton_str list[BULK_MAX];
	*ret = (struct baton_str){NULL, 0};
	if (!p->row.keyed)
		return BATON_OK;
	for (size_t i = 0; i < p->row.count; i++) {
		bool has = p->hashes[i] != 0 && which >> i & 1;
		list[i] = has ? p->keys[i] : (struct baton_str){NULL, 0};
	}
	const size_t size = payloads_size(list, p->row.count);
	char *bytes = arena_take(&s->scratch, 1, size);
	if (!bytes)
		return fail_memory(size, "keys");
	payloads_pack(list, p->row.count, bytes);
	*ret = (struct baton_str){bytes, size};
	return BATON_OK;
}

static enum baton_err row_write(struct sqlite_store *s, const struct bulk_row *row,
                                struct baton_str jobs, struct baton_str keys)
{
	struct query q = query_begin(&s->db, SQL_BULK_ADD);
	query_int(&q, row->first);
	query_int(&q, row->queue);
	query_int(&q, row->flags);
	query_int(&q, row->put_at.ms);
	query_int(&q, (int64_t)row->count);
	query_blob(&q, jobs.ptr, jobs.len);
	query_blob(&q, keys.ptr, keys.len);
	return query_run(&q);
}

enum baton_err bulk_store(struct sqlite_store *s, const struct bulk_put *p, uint64_t which)
{
	struct baton_str jobs[BULK_MAX], keys;
	for (size_t i = 0; i < p->row.count; i++)
		jobs[i] = which >> i & 1 ? p->jobs[i] : (struct baton_str){NULL, 0};
	const size_t size = payloads_size(jobs, p->row.count);
	enum baton_err e = keys_pack(s, p, which, &keys);
	if (e != BATON_OK)
		return e;
	char *bytes = mem_new(s->base.alloc, 1, size);
	if (!bytes)
		return fail_memory(size, "jobs");
	payloads_pack(jobs, p->row.count, bytes);
	e = row_write(s, &p->row, (struct baton_str){bytes, size}, keys);
	mem_free(s->base.alloc, bytes, 1, size);
	return e;
}

/* Reads one row of SQL_BULK_COLUMNS. */
static void row_read(const struct query *q, struct bulk_row *ret)
{
	*ret = (struct bulk_row){
		column_int(q, 0),   column_int(q, 1),         column_int(q, 2),
		{column_int(q, 3)}, (size_t)column_int(q, 4), column_int(q, 5) > 0,
	};
}

bool bulk_has(const struct bulk_row *row, int64_t seq)
{
	return row->first > 0 && row->first < INT64_MAX - BULK_MAX && row->count <= BULK_MAX &&
	       seq >= row->first && seq < row->first + (int64_t)row->count;
}

enum baton_err bulk_find(struct db *db, int64_t seq, struct bulk_row *ret, bool *ret_found)
{
	struct query q = query_begin(db, SQL_BULK_FIND);
	query_int(&q, seq);
	*ret_found = query_row(&q);
	if (*ret_found) {
		row_read(&q, ret);
		*ret_found = bulk_has(ret, seq);
	}
	return query_end(&q);
}

enum baton_err bulk_load(struct db *db, struct arena *a, int64_t seq, struct bulk_row *ret,
                         const struct baton_str **ret_jobs, const struct baton_str **ret_keys)
{
	enum baton_err bad = BATON_OK;
	size_t count = 0, keys = 0;
	*ret_keys = NULL;
	struct query q = query_begin(db, SQL_BULK_READ);
	query_int(&q, seq);
	bool found = query_row(&q);
	if (found) {
		row_read(&q, ret);
		bad = payloads_unpack(a, column_str(&q, 6), true, ret_jobs, &count);
	}
	if (found && bad == BATON_OK && ret->keyed)
		bad = payloads_unpack(a, column_str(&q, 7), true, ret_keys, &keys);
	enum baton_err e = query_end(&q);
	if (e != BATON_OK || bad != BATON_OK)
		return e == BATON_OK ? bad : e;
	bool fits = found && bulk_has(ret, seq) && count == ret->count &&
	            (!ret->keyed || keys == count);
	return fits ? BATON_OK : bulk_damaged(db, seq);
}

enum baton_err bulk_load_keys(struct db *db, struct arena *a, int64_t first,
                              const struct baton_str **ret_keys, size_t *ret_count)
{
	enum baton_err bad = BATON_OK;
	*ret_keys = NULL;
	*ret_count = 0;
	struct query q = query_begin(db, SQL_BULK_KEYS);
	query_int(&q, first);
	if (query_row(&q))
		bad = payloads_unpack(a, column_str(&q, 0), true, ret_keys, ret_count);
	enum baton_err e = query_end(&q);
	if (e == BATON_OK && bad == BATON_OK && *ret_count > BULK_MAX)
		e = bulk_damaged(db, first);
	return e == BATON_OK ? bad : e;
}

enum baton_err bulk_head_write(struct sqlite_store *s, const struct bulk_head *head)
{
	struct query add = query_begin(&s->db, SQL_HEAD_ADD_BULK);
	query_int(&add, head->pool);
	query_int(&add, head->rank);
	query_int(&add, place_of(head->seq));
	query_int(&add, head->seq);
	query_int(&add, head->last);
	return query_run(&add);
}

enum baton_err bulk_head_drop(struct db *db, const struct bulk_head *head)
{
	return RUN(db, SQL_HEAD_DROP, head->pool, head->rank, place_of(head->seq), head->seq);
}

enum baton_err bulk_head_add(struct sqlite_store *s, const struct queue_row *q,
                             const struct bulk_head *head, size_t *ret_count)
{
	struct bulk_row row;
	struct batch_row b;
	struct bulk_head moved = *head;
	bool found = false;
	*ret_count = 0;
	enum baton_err e = bulk_put_back(s);
	if (e == BATON_OK)
		e = bulk_find(&s->db, head->seq, &row, &found);
	if (e == BATON_OK && !found)
		e = bulk_damaged(&s->db, head->seq);
	if (e != BATON_OK)
		return e;
	bulk_batch(&row, NULL, (size_t)(head->seq - row.first), &b);
	moved.pool = head_pool(q, b.shard);
	/* An earlier version did not write it down, and its heads went to the end of their row. */
	if (moved.last == 0)
		moved.last = row.first + (int64_t)row.count - 1;
	sqlite_tell(s, q, (struct baton_str){NULL, 0}, b.shard);
	e = bulk_head_write(s, &moved);
	/* Keys give their jobs shards, each its own. */
	if (e != BATON_OK || !row.keyed || q->policy.mode != BATON_QUEUE_RUNNER)
		return e;
	*ret_count = row.count;
	return bulk_melt(s, head->seq);
}

enum baton_err bulk_head_find(struct db *db, const struct bulk_row *row, int64_t seq,
                              struct bulk_head *ret)
{
	struct batch_row b;
	const int64_t end = row->first + (int64_t)row->count - 1;
	bulk_batch(row, NULL, 0, &b);
	*ret = (struct bulk_head){.seq = 0};
	struct query q = query_begin(db, SQL_BULK_HEAD);
	query_int(&q, pool_of_queue(row->queue));
	query_int(&q, pool_of(row->queue, b.shard));
	query_int(&q, batch_row_rank(&b));
	query_int(&q, row->first);
	query_int(&q, end);
	query_int(&q, seq);
	/* They may be in two pools, when the mode of the queue has just changed. */
	while (query_row(&q)) {
		if (ret->seq == 0 || column_int(&q, 1) < ret->seq)
			*ret = (struct bulk_head){column_int(&q, 0), batch_row_rank(&b),
			                          column_int(&q, 1),
			                          column_is_null(&q, 2) ? end : column_int(&q, 2)};
	}
	enum baton_err e = query_end(&q);
	if (e == BATON_OK && ret->seq > 0 && (ret->last < ret->seq || ret->last > end))
		e = bulk_damaged(db, row->first);
	return e;
}

static uint64_t bits(int64_t from, int64_t to)
{
	return (UINT64_MAX >> (BULK_MAX - 1 - (to - from))) << from;
}

enum baton_err bulk_live(struct db *db, const struct bulk_row *row, uint64_t *ret)
{
	struct bulk_head head = {.last = row->first - 1};
	struct chunk c;
	int64_t before = row->first + (int64_t)row->count - 1;
	bool found = true;
	enum baton_err e = BATON_OK;
	*ret = 0;
	do {
		e = bulk_head_find(db, row, head.last + 1, &head);
		if (e == BATON_OK && head.seq > 0)
			*ret |= bits(head.seq - row->first, head.last - row->first);
	} while (e == BATON_OK && head.seq > 0 && bulk_has(row, head.last + 1));
	while (e == BATON_OK && found && bulk_has(row, before)) {
		e = chunk_load(db, before, &c, &found);
		found = found && e == BATON_OK && c.bulk == row->first;
		for (size_t i = 0; found && i < c.count; i++) {
			if (bulk_has(row, (int64_t)c.claims[i].seq))
				*ret |= UINT64_C(1) << (c.claims[i].seq - (uint64_t)row->first);
		}
		before = found ? c.first - 1 : before;
	}
	return e;
}

enum baton_err bulk_end_if_done(struct sqlite_store *s, int64_t first)
{
	struct bulk_row row;
	struct bulk_head head = {.seq = 0};
	int64_t chunk = 0;
	bool found;
	enum baton_err e = bulk_find(&s->db, first, &row, &found);
	if (e == BATON_OK && !found)
		e = bulk_damaged(&s->db, first);
	if (e == BATON_OK)
		e = FIND(&s->db, SQL_CHUNK_ANY, &chunk, first, first + (int64_t)row.count - 1);
	if (e == BATON_OK && chunk == 0)
		e = bulk_head_find(&s->db, &row, first, &head);
	if (e != BATON_OK || chunk > 0 || head.seq > 0)
		return e;
	e = row.keyed ? bulk_keys_end(s, &row) : BATON_OK;
	return e == BATON_OK ? RUN(&s->db, SQL_BULK_DROP, first) : e;
}

static size_t claims_pack(const struct bulk_claim *claims, size_t count,
                          char bytes[BULK_MAX * RECORD])
{
	char *at = bytes;
	for (size_t i = 0; i < count; i++, at += RECORD) {
		const uint64_t numbers[2] = {htole64(claims[i].seq), htole64(claims[i].fence)};
		memcpy(at, numbers, sizeof numbers);
		memcpy(at + sizeof numbers, claims[i].token.bytes, sizeof claims[i].token.bytes);
	}
	return count * RECORD;
}

static bool claims_unpack(struct baton_str bytes, struct bulk_claim claims[BULK_MAX],
                          size_t *ret_count)
{
	size_t count = bytes.len / RECORD;
	const char *at = bytes.ptr;
	if (bytes.len % RECORD != 0 || count == 0 || count > BULK_MAX)
		return false;
	for (size_t i = 0; i < count; i++, at += RECORD) {
		uint64_t numbers[2];
		memcpy(numbers, at, sizeof numbers);
		claims[i].seq = le64toh(numbers[0]);
		claims[i].fence = le64toh(numbers[1]);
		memcpy(claims[i].token.bytes, at + sizeof numbers, sizeof claims[i].token.bytes);
	}
	*ret_count = count;
	return true;
}

enum baton_err chunk_add(struct db *db, const struct chunk *c)
{
	static const struct baton_id salt;
	char bytes[BULK_MAX * RECORD];
	struct query q = query_begin(db, SQL_CHUNK_ADD);
	query_int(&q, c->first);
	query_int(&q, c->bulk);
	query_int(&q, c->queue);
	query_int(&q, c->owner);
	query_int(&q, c->claimed_at.ms);
	query_int(&q, c->expires_at.ms);
	query_int(&q, (int64_t)c->granter);
	query_blob(&q, salt.bytes, sizeof salt.bytes);
	query_blob(&q, bytes, claims_pack(c->claims, c->count, bytes));
	return query_run(&q);
}

/* What is left has the tokens that it was given, so a salt is no longer needed. */
enum baton_err chunk_shrink(struct db *db, const struct chunk *c)
{
	static const struct baton_id salt;
	char bytes[BULK_MAX * RECORD];
	struct query q = query_begin(db, SQL_CHUNK_REST);
	query_blob(&q, salt.bytes, sizeof salt.bytes);
	query_blob(&q, bytes, claims_pack(c->claims, c->count, bytes));
	query_int(&q, c->first);
	return query_run(&q);
}

/* Reads one row of SQL_CHUNK_COLUMNS. A copy of the store has other salts: nobody can prove that he
 * has a claim of the original. */
static enum baton_err chunk_read(const struct query *q, struct chunk *c)
{
	struct baton_id salt;
	c->first = column_int(q, 0);
	c->bulk = column_int(q, 1);
	c->queue = column_int(q, 2);
	c->owner = column_int(q, 3);
	c->claimed_at.ms = column_int(q, 4);
	c->expires_at.ms = column_int(q, 5);
	c->granter = (uint64_t)column_int(q, 6);
	column_id(q, 7, &salt);
	if (!claims_unpack(column_str(q, 8), c->claims, &c->count))
		return bulk_damaged(q->db, c->first);
	for (size_t i = 0; i < c->count; i++) {
		for (size_t k = 0; k < sizeof salt.bytes; k++)
			c->claims[i].token.bytes[k] ^= salt.bytes[k];
	}
	return BATON_OK;
}

static enum baton_err chunk_take(struct query *q, struct chunk *ret, bool *ret_found)
{
	enum baton_err bad = BATON_OK;
	*ret_found = query_row(q);
	if (*ret_found)
		bad = chunk_read(q, ret);
	enum baton_err e = query_end(q);
	return e == BATON_OK ? bad : e;
}

enum baton_err chunk_load(struct db *db, int64_t seq, struct chunk *ret, bool *ret_found)
{
	struct query q = query_begin(db, SQL_CHUNK_FIND);
	query_int(&q, seq);
	return chunk_take(&q, ret, ret_found);
}

enum baton_err reply_add(struct db *db, const struct bulk_end *end)
{
	char bytes[BULK_MAX * RECORD];
	uint64_t first = end->done[0].seq;
	for (size_t i = 1; i < end->count; i++)
		first = end->done[i].seq < first ? end->done[i].seq : first;
	struct query q = query_begin(db, SQL_REPLY_ADD);
	query_int(&q, (int64_t)first);
	query_int(&q, end->until.ms);
	query_blob(&q, bytes, claims_pack(end->done, end->count, bytes));
	return query_run(&q);
}

enum baton_err reply_has(struct db *db, const struct claim_name *name,
                         const struct baton_work_proof *proof, struct baton_store_time now,
                         bool *ret)
{
	struct bulk_claim claims[BULK_MAX];
	size_t count;
	*ret = false;
	struct query q = query_begin(db, SQL_REPLY_FIND);
	query_int(&q, (int64_t)name->head - BULK_MAX);
	query_int(&q, (int64_t)name->head);
	while (!*ret && query_row(&q)) {
		if (!baton_store_time_live((struct baton_store_time){column_int(&q, 0)}, now) ||
		    !claims_unpack(column_str(&q, 1), claims, &count))
			continue;
		for (size_t i = 0; i < count && !*ret; i++)
			*ret = claims[i].seq == name->head && claims[i].fence == name->fence &&
			       digest_equal(claims[i].token.bytes, proof->token.bytes,
			                    sizeof proof->token.bytes);
	}
	return query_end(&q);
}

/* Of a key, the hash that it alone has; 0: it has no key. */
static enum baton_err melt_key(struct sqlite_store *s, const struct batch_row *b, int64_t *ret_hash)
{
	*ret_hash = b->lane_len > 0 ? lone_hash(b->queue, batch_row_line(b)) : 0;
	return *ret_hash != 0 ? RUN(&s->db, SQL_LONE_SET, *ret_hash, b->seq) : BATON_OK;
}

enum baton_err bulk_melt_ready(struct sqlite_store *s, struct queue_row *q,
                               const struct batch_row *b, const struct baton_str *job)
{
	int64_t hash;
	enum baton_err e = batch_store(&s->db, b, job, 1, s->base.alloc);
	if (e == BATON_OK)
		e = melt_key(s, b, &hash);
	return e == BATON_OK ? head_add(s, q, b, 0, false) : e;
}

enum baton_err bulk_melt_claimed(struct sqlite_store *s, const struct chunk *c,
                                 const struct bulk_claim *claim, const struct batch_row *b,
                                 const struct baton_str *job)
{
	int64_t seq = b->seq;
	struct claim_row row = {
		.head = seq,
		.fence = claim->fence,
		.token = claim->token,
		.owner = c->owner,
		.queue = c->queue,
		.claimed_at = c->claimed_at,
		.expires_at = c->expires_at,
		.granter = c->granter,
		.seqs = &seq,
		.count = 1,
	};
	enum baton_err e = batch_store(&s->db, b, job, 1, s->base.alloc);
	if (e == BATON_OK)
		e = melt_key(s, b, &row.lone);
	return e == BATON_OK ? claim_write(s, &row) : e;
}

/* A row of jobs that are melted. */
struct melted {
	struct bulk_row row;
	const struct baton_str *jobs, *keys;
};

static enum baton_err melt_chunk(struct sqlite_store *s, const struct queue_row *q,
                                 const struct melted *m, const struct chunk *c)
{
	enum baton_err e = RUN(&s->db, SQL_CHUNK_DROP, c->first);
	for (size_t i = 0; i < c->count && e == BATON_OK; i++) {
		struct batch_row b;
		if (!bulk_has(&m->row, (int64_t)c->claims[i].seq))
			return bulk_damaged(&s->db, c->first);
		size_t index = (size_t)((int64_t)c->claims[i].seq - m->row.first);
		bulk_batch_placed(&m->row, m->keys, index, q, &b);
		e = bulk_melt_claimed(s, c, &c->claims[i], &b, &m->jobs[index]);
	}
	return e;
}

static enum baton_err melt_chunks(struct sqlite_store *s, const struct queue_row *q,
                                  const struct melted *m)
{
	const int64_t last = m->row.first + (int64_t)m->row.count - 1;
	enum baton_err e = BATON_OK;
	bool found = true;
	while (found && e == BATON_OK) {
		struct chunk c;
		e = chunk_load(&s->db, last, &c, &found);
		found = found && e == BATON_OK && c.bulk == m->row.first;
		if (found)
			e = melt_chunk(s, q, m, &c);
	}
	return e;
}

static enum baton_err melt_head(struct sqlite_store *s, struct queue_row *q, const struct melted *m,
                                const struct bulk_head *head)
{
	enum baton_err e = bulk_head_drop(&s->db, head);
	for (int64_t i = head->seq; i <= head->last && e == BATON_OK; i++) {
		struct batch_row b;
		bulk_batch_placed(&m->row, m->keys, (size_t)(i - m->row.first), q, &b);
		e = bulk_melt_ready(s, q, &b, &m->jobs[i - m->row.first]);
	}
	return e;
}

static enum baton_err melt_heads(struct sqlite_store *s, struct queue_row *q,
                                 const struct melted *m)
{
	struct bulk_head head;
	enum baton_err e;
	do {
		e = bulk_head_find(&s->db, &m->row, m->row.first, &head);
		if (e == BATON_OK && head.seq > 0)
			e = melt_head(s, q, m, &head);
	} while (e == BATON_OK && head.seq > 0);
	return e;
}

enum baton_err bulk_melt(struct sqlite_store *s, int64_t seq)
{
	struct melted m;
	struct queue_row *q;
	bool found = false;
	enum baton_err e = bulk_flush(s);
	if (e == BATON_OK)
		e = bulk_find(&s->db, seq, &m.row, &found);
	if (e != BATON_OK || !found)
		return e;
	e = bulk_load(&s->db, &s->scratch, seq, &m.row, &m.jobs, &m.keys);
	if (e == BATON_OK)
		e = books_queue_by_id(&s->books, &s->db, m.row.queue, &q);
	if (e == BATON_OK && m.row.keyed)
		e = bulk_keys_end(s, &m.row);
	if (e == BATON_OK)
		e = melt_chunks(s, q, &m);
	if (e == BATON_OK)
		e = melt_heads(s, q, &m);
	return e == BATON_OK ? RUN(&s->db, SQL_BULK_DROP, m.row.first) : e;
}

/* Numbers for a query, and what it leaves. */
struct melting {
	enum sql sql;
	int64_t numbers[2];
	size_t count;
	bool all; /* there are no more */
};

/* Melts the row of the first chunk that the query finds, and so on, at most `max` times. */
static enum baton_err melt_found(struct sqlite_store *s, struct melting *m, size_t max)
{
	enum baton_err e = BATON_OK;
	int64_t last = 0;
	m->all = false;
	for (size_t i = 0; i < max && e == BATON_OK && !m->all; i++) {
		int64_t first;
		e = find_number(&s->db, m->sql, m->numbers, m->count, &first);
		m->all = e == BATON_OK && first == 0;
		if (e == BATON_OK && first > 0 && first == last)
			e = bulk_damaged(&s->db, first);
		last = first;
		if (e == BATON_OK && first > 0)
			e = bulk_melt(s, first);
	}
	return e;
}

enum baton_err bulk_melt_owner(struct sqlite_store *s, int64_t owner)
{
	struct melting m = {.sql = SQL_CHUNK_OWNED, .numbers = {owner}, .count = 1};
	enum baton_err e = bulk_flush(s);
	return e == BATON_OK ? melt_found(s, &m, SIZE_MAX) : e;
}

enum baton_err bulk_melt_expired(struct sqlite_store *s, const struct queue_row *q, size_t max,
                                 bool *ret_all)
{
	struct melting m = {.sql = SQL_CHUNK_EXPIRED, .numbers = {q->id, s->now.ms}, .count = 2};
	enum baton_err e = melt_found(s, &m, max);
	*ret_all = m.all;
	return e;
}

static enum baton_err look_keyed(struct db *db, const struct bulk_row *row, size_t index,
                                 struct batch_row *ret)
{
	const struct baton_str *keys;
	size_t count;
	struct arena a;
	arena_init(&a, baton_alloc_libc());
	enum baton_err e = bulk_load_keys(db, &a, row->first, &keys, &count);
	if (e == BATON_OK && index >= count)
		e = bulk_damaged(db, row->first);
	if (e == BATON_OK)
		bulk_batch(row, keys, index, ret);
	arena_done(&a);
	return e;
}

enum baton_err bulk_look(struct db *db, int64_t seq, struct batch_row *ret, struct bulk_job *job)
{
	struct bulk_row row;
	struct bulk_head head;
	struct chunk c;
	bool found;
	*job = (struct bulk_job){.found = false};
	enum baton_err e = bulk_find(db, seq, &row, &found);
	if (e != BATON_OK || !found)
		return e;
	e = row.keyed ? look_keyed(db, &row, (size_t)(seq - row.first), ret) : BATON_OK;
	if (!row.keyed)
		bulk_batch(&row, NULL, (size_t)(seq - row.first), ret);
	if (e == BATON_OK)
		e = bulk_head_find(db, &row, seq, &head);
	job->found = e == BATON_OK && head.seq > 0 && seq >= head.seq;
	if (e != BATON_OK || job->found)
		return e;
	e = chunk_load(db, seq, &c, &found);
	for (size_t i = 0; e == BATON_OK && found && i < c.count && !job->found; i++) {
		if (c.claims[i].seq == (uint64_t)seq)
			*job = (struct bulk_job){true,        true,         c.owner,
			                         c.claims[i], c.claimed_at, c.expires_at};
	}
	return e;
}

/* The first row from that one on of which something may be in that state; 0: there is none. */
static enum baton_err bulk_with(struct db *db, int64_t first, enum baton_batch_state state,
                                int64_t *ret_first)
{
	*ret_first = first;
	return state == BATON_BATCH_CLAIMED ? FIND(db, SQL_BULK_CLAIMED, ret_first, first)
	                                    : BATON_OK;
}

enum baton_err bulk_next(struct db *db, int64_t after, enum baton_batch_state state,
                         struct batch_row *ret, struct bulk_job *job)
{
	struct bulk_row row;
	enum baton_err e = BATON_OK;
	*job = (struct bulk_job){.found = false};
	while (e == BATON_OK && !job->found) {
		int64_t first;
		bool found;
		e = bulk_find(db, after + 1, &row, &found);
		if (e == BATON_OK && found)
			first = row.first;
		else if (e == BATON_OK)
			e = FIND(db, SQL_BULK_NEXT, &first, after);
		if (e == BATON_OK && !found && first == after + 1)
			return bulk_damaged(db, first);
		if (e == BATON_OK && first > 0)
			e = bulk_with(db, first, state, &first);
		if (e != BATON_OK || first == 0)
			return e;
		if (first > after + 1)
			after = first - 1;
		else
			e = bulk_look(db, ++after, ret, job);
	}
	return e;
}

enum baton_err bulk_put_at(struct db *db, int64_t seq, struct baton_store_time *ret,
                           bool *ret_found)
{
	struct bulk_row row = {.put_at = {0}};
	enum baton_err e = bulk_find(db, seq, &row, ret_found);
	if (e == BATON_OK && *ret_found)
		*ret = row.put_at;
	return e;
}

enum baton_err bulk_payload(struct db *db, struct arena *a, int64_t seq, struct baton_str *ret)
{
	struct bulk_row row;
	const struct baton_str *jobs, *keys;
	enum baton_err e = bulk_load(db, a, seq, &row, &jobs, &keys);
	if (e == BATON_OK)
		*ret = jobs[seq - row.first];
	return e;
}
