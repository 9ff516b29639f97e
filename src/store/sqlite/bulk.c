/* What the requests of one commit do to jobs that stand together in one row. */
#include "store/sqlite/bulk.h"

#include "base/check.h"
#include "base/digest.h"
#include "base/fail.h"
#include "base/mem.h"
#include "queue/rate.h"
#include "store/keys.h"
#include "store/refuse.h"
#include "store/sqlite/bulk_rows.h"
#include "store/sqlite/grant.h"
#include "store/sqlite/lanes.h"
#include "store/sqlite/lone.h"

void bulk_reset(struct bulks *b)
{
	b->put.q = NULL;
	b->give.q = NULL;
	b->end_count = 0;
}

/* Whether it is known what becomes of one with a key before it is known who else has that: it
 * waits. */
static bool key_suits(const struct queue_row *q, const struct batch_row *b)
{
	return line_is_keyed(batch_row_line(b)) && key_is_usual(&q->policy);
}

bool bulk_suits(const struct queue_row *q, const struct batch_row *b, const struct baton_batch *put)
{
	return (b->lane_len == 0 || key_suits(q, b)) && b->group_len == 0 && b->due.ms == 0 &&
	       !b->has_retry && !b->many && put->source.len == 0 && q->policy.keep.ns == 0 &&
	       put->payloads[0].len <= BULK_JOB_MAX;
}

/* As rows of their own. */
static enum baton_err write_few(struct sqlite_store *s, struct queue_row *q,
                                const struct bulk_put *p, uint64_t which)
{
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < p->row.count && e == BATON_OK; i++) {
		struct batch_row b;
		if (!(which >> i & 1))
			continue;
		bulk_batch_placed(&p->row, p->keys, i, q, &b);
		e = batch_store(&s->db, &b, &p->jobs[i], 1, s->base.alloc);
		if (e == BATON_OK)
			e = lane_enter(s, q, &b, false, NULL);
	}
	return e;
}

/* A runner that would be the first to claim from the queue waits for its shards. */
static void tell_all(struct sqlite_store *s, const struct queue_row *q, const struct bulk_put *p,
                     uint64_t which)
{
	for (size_t i = 0; i < p->row.count; i++) {
		struct batch_row b;
		if (p->hashes[i] == 0 || !(which >> i & 1))
			continue;
		bulk_batch_placed(&p->row, p->keys, i, q, &b);
		sqlite_tell(s, q, (struct baton_str){NULL, 0}, b.shard);
	}
}

/* A head for each run of jobs that are in the row. */
static enum baton_err write_heads(struct sqlite_store *s, const struct queue_row *q,
                                  const struct bulk_put *p, uint64_t which)
{
	struct batch_row b;
	enum baton_err e = BATON_OK;
	bulk_batch(&p->row, NULL, 0, &b);
	for (size_t i = 0; i < p->row.count && e == BATON_OK; i++) {
		struct bulk_head head = {head_pool(q, b.shard), batch_row_rank(&b),
		                         p->row.first + (int64_t)i, 0};
		if (!(which >> i & 1))
			continue;
		while (i + 1 < p->row.count && which >> (i + 1) & 1)
			i++;
		head.last = p->row.first + (int64_t)i;
		e = bulk_head_write(s, &head);
	}
	sqlite_tell(s, q, (struct baton_str){NULL, 0}, b.shard);
	return e;
}

static enum baton_err write_together(struct sqlite_store *s, const struct queue_row *q,
                                     const struct bulk_put *p, uint64_t which)
{
	enum baton_err e = bulk_store(s, p, which);
	if (e == BATON_OK)
		e = write_heads(s, q, p, which);
	if (e != BATON_OK || !p->row.keyed)
		return e;
	if (q->policy.mode == BATON_QUEUE_OPEN)
		tell_all(s, q, p, which);
	return bulk_keys_add(s, p, which);
}

/* Those whose key others have get rows of their own, and so do all if they are few. */
enum baton_err bulk_flush_put(struct sqlite_store *s)
{
	struct bulk_put *p = &s->bulks.put;
	struct queue_row *q = p->q;
	uint64_t which = 0;
	enum baton_err e = BATON_OK;
	if (!q)
		return BATON_OK;
	p->q = NULL;
	const uint64_t all = UINT64_MAX >> (BULK_MAX - p->row.count);
	if (p->row.count >= BULK_FEW) {
		which = all;
		e = p->row.keyed ? bulk_keys_sort(s, p, &which) : BATON_OK;
	}
	if (__builtin_popcountll(which) < BULK_FEW)
		which = 0;
	if (e == BATON_OK && which != 0)
		e = write_together(s, q, p, which);
	return e == BATON_OK && which != all ? write_few(s, q, p, all & ~which) : e;
}

enum baton_err bulk_add(struct sqlite_store *s, struct queue_row *q, const struct batch_row *b,
                        const struct baton_batch *put)
{
	struct bulk_put *p = &s->bulks.put;
	const int64_t flags = batch_flags(b);
	const bool keyed = b->lane_len > 0;
	enum baton_err e = BATON_OK;
	if (p->q && (p->q != q || p->row.flags != flags || p->row.put_at.ms != b->put_at.ms ||
	             p->row.count == BULK_MAX || p->row.first + (int64_t)p->row.count != b->seq))
		e = bulk_flush_put(s);
	if (!p->q) {
		p->q = q;
		p->row = (struct bulk_row){b->seq, q->id, flags, b->put_at, 0, false};
	}
	const size_t at = p->row.count++;
	p->jobs[at] = put->payloads[0];
	p->keys[at] = put->key;
	p->hashes[at] = keyed ? lone_hash(q->id, batch_row_line(b)) : 0;
	p->row.keyed = p->row.keyed || keyed;
	return e;
}

enum baton_err bulk_put_back(struct sqlite_store *s)
{
	struct bulk_give *g = &s->bulks.give;
	struct batch_row b;
	if (!g->q)
		return BATON_OK;
	enum baton_err e = g->chunk.count > 0 ? chunk_add(&s->db, &g->chunk) : BATON_OK;
	if (e == BATON_OK && g->next < g->end) {
		bulk_batch(&g->row, NULL, g->next, &b);
		const struct bulk_head head = {head_pool(g->q, b.shard), batch_row_rank(&b), b.seq,
		                               g->row.first + (int64_t)g->end - 1};
		e = bulk_head_write(s, &head);
	}
	g->q = NULL;
	return e;
}

bool bulk_gives(const struct sqlite_store *s, int64_t pool)
{
	const struct bulk_give *g = &s->bulks.give;
	return g->q && g->pool == pool && g->next < g->end;
}

enum baton_err bulk_open(struct sqlite_store *s, struct queue_row *q, const struct bulk_head *head)
{
	struct bulk_give *g = &s->bulks.give;
	enum baton_err e = bulk_put_back(s);
	if (e != BATON_OK)
		return e;
	arena_reset(&s->bulks.arena);
	e = bulk_load(&s->db, &s->bulks.arena, head->seq, &g->row, &g->jobs, &g->keys);
	if (e == BATON_OK)
		e = bulk_head_drop(&s->db, head);
	if (e != BATON_OK)
		return e;
	g->next = (size_t)(head->seq - g->row.first);
	g->end = bulk_has(&g->row, head->last) ? (size_t)(head->last - g->row.first) + 1
	                                       : g->row.count;
	g->chunk.count = 0;
	g->pool = head->pool;
	g->q = q;
	return BATON_OK;
}

/* The chunk of what is claimed now, by this asker. */
static enum baton_err chunk_begin(struct sqlite_store *s, const struct grant *g,
                                  struct bulk_give *give)
{
	struct chunk *c = &give->chunk;
	const struct baton_store_time until = baton_store_time_add(s->now, g->ttl);
	enum baton_err e = BATON_OK;
	if (c->count > 0 && c->owner == g->owner && c->claimed_at.ms == s->now.ms &&
	    c->expires_at.ms == until.ms && c->granter == g->base.granter)
		return BATON_OK;
	if (c->count > 0)
		e = chunk_add(&s->db, c);
	c->first = give->row.first + (int64_t)give->next;
	c->bulk = give->row.first;
	c->queue = give->row.queue;
	c->owner = g->owner;
	c->claimed_at = s->now;
	c->expires_at = until;
	c->granter = g->base.granter;
	c->count = 0;
	return e;
}

/* The job as its claimant gets it. */
static enum baton_err job_give(struct arena *a, const struct bulk_give *give,
                               struct baton_work_claim *out)
{
	struct batch_row b;
	struct baton_work_batch *batch = arena_take(a, 1, sizeof *batch);
	struct baton_str *job = arena_take(a, 1, sizeof *job);
	bulk_batch(&give->row, give->keys, give->next, &b);
	if (!batch || !job || !arena_copy(a, give->jobs[give->next], job) ||
	    !arena_copy(a, queue_row_name(give->q), &out->queue) ||
	    (b.lane_len > 0 &&
	     keys_show(a, line_key(batch_row_line(&b)), KEYS_OF(out)) != BATON_OK))
		return fail(BATON_NO_MEMORY, "no memory for claims");
	batch_id_print((uint64_t)b.id, &batch->id);
	batch->seq = (uint64_t)b.seq;
	batch->cls = b.cls;
	batch->delivery = b.delivery;
	batch->slot = b.slot;
	batch->priority = b.priority;
	batch->attempt = 1;
	batch->put_at = b.put_at;
	batch->payloads = job;
	batch->count = 1;
	out->batches = batch;
	out->count = 1;
	return BATON_OK;
}

static enum baton_err give_one(struct sqlite_store *s, struct grant *g, struct bulk_give *give)
{
	struct baton_work_claim *out = &g->claims[g->count];
	uint64_t last = 0;
	enum baton_err e = job_give(&g->parcel->arena, give, out);
	if (e == BATON_OK)
		e = chunk_begin(s, g, give);
	if (g->q->guests && out->key.len > 0)
		last = fence_of_key(&g->q->reach, last);
	if (e == BATON_OK && !fence_of_claim(&g->base, &g->q->reach, last, &out->fence.v))
		e = refuse_fence(queue_row_name(g->q));
	if (e == BATON_OK)
		e = baton_id_random(&out->proof.token);
	if (e == BATON_OK)
		e = books_owner(&s->books, &s->db, g->owner, 1, s->now);
	if (e != BATON_OK)
		return e;
	struct chunk *c = &give->chunk;
	const struct claim_name name = {(uint64_t)give->row.first + give->next, out->fence.v};
	c->claims[c->count++] = (struct bulk_claim){name.head, name.fence, out->proof.token};
	claim_name_print(&name, out->proof.id);
	out->shard = g->shard;
	out->claimed_at = c->claimed_at;
	out->expires_at = c->expires_at;
	g->q->tally.ready--;
	g->q->tally.running++;
	g->q->changed = true;
	give->next++;
	g->count++;
	return BATON_OK;
}

enum baton_err bulk_take(struct sqlite_store *s, struct grant *g, size_t limit)
{
	struct bulk_give *give = &s->bulks.give;
	CHECK(s->full && give->q == g->q);
	enum baton_err e = grant_begin(s, g);
	while (e == BATON_OK && g->count < limit && give->next < give->end)
		e = give_one(s, g, give);
	return e;
}

static struct bulk_claim *claim_in(struct bulk_claim *claims, size_t count,
                                   const struct claim_name *name)
{
	for (size_t i = 0; i < count; i++) {
		if (claims[i].seq == name->head && claims[i].fence == name->fence)
			return &claims[i];
	}
	return NULL;
}

static bool is_proved(const struct bulk_claim *c, const struct baton_work_proof *proof)
{
	return digest_equal(c->token.bytes, proof->token.bytes, sizeof c->token.bytes);
}

static enum baton_err flush_end(struct sqlite_store *s, struct bulk_end *end)
{
	if (end->count == 0)
		return BATON_OK;
	s->remembered++;
	for (size_t i = 0; i < end->count; i++)
		roster_strike(&s->books.roster, (int64_t)end->done[i].seq);
	enum baton_err e = reply_add(&s->db, end);
	if (e == BATON_OK && end->chunk.count > 0)
		return chunk_shrink(&s->db, &end->chunk);
	if (e == BATON_OK)
		e = RUN(&s->db, SQL_CHUNK_DROP, end->chunk.first);
	return e == BATON_OK ? bulk_end_if_done(s, end->chunk.bulk) : e;
}

static enum baton_err flush_ends(struct sqlite_store *s)
{
	struct bulks *b = &s->bulks;
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < b->end_count && e == BATON_OK; i++)
		e = flush_end(s, &b->ends[i]);
	b->end_count = 0;
	return e;
}

/* The chunk that has the claim: one that is known, or from the file unless `known`. */
static enum baton_err end_find(struct sqlite_store *s, const struct claim_name *name, bool known,
                               struct bulk_end **ret)
{
	struct bulks *b = &s->bulks;
	enum baton_err e = BATON_OK;
	bool found = false;
	*ret = NULL;
	for (size_t i = 0; i < b->end_count; i++) {
		if (claim_in(b->ends[i].chunk.claims, b->ends[i].chunk.count, name)) {
			*ret = &b->ends[i];
			return BATON_OK;
		}
	}
	if (known)
		return BATON_OK;
	if (b->end_count == BULK_OPEN)
		e = flush_ends(s);
	struct bulk_end *end = &b->ends[b->end_count];
	if (e == BATON_OK)
		e = chunk_load(&s->db, (int64_t)name->head, &end->chunk, &found);
	if (e != BATON_OK || !found)
		return e;
	/* One that is known is as it was before what was gathered. */
	for (size_t i = 0; i < b->end_count; i++) {
		if (b->ends[i].chunk.first == end->chunk.first)
			return BATON_OK;
	}
	if (!claim_in(end->chunk.claims, end->chunk.count, name))
		return BATON_OK;
	end->count = 0;
	b->end_count++;
	*ret = end;
	return BATON_OK;
}

enum baton_err bulk_complete(struct sqlite_store *s, const struct baton_work_proof *proof,
                             bool known, bool *ret_done)
{
	struct claim_name name;
	struct bulk_end *end;
	struct queue_row *q;
	*ret_done = false;
	if (!claim_name_parse(proof->id, &name))
		return BATON_OK;
	enum baton_err e = end_find(s, &name, known, &end);
	if (e != BATON_OK || !end)
		return e;
	struct chunk *c = &end->chunk;
	struct bulk_claim *claim = claim_in(c->claims, c->count, &name);
	if (!is_proved(claim, proof))
		return BATON_OK;
	e = books_queue_by_id(&s->books, &s->db, c->queue, &q);
	if (e != BATON_OK || q->policy.keep.ns > 0)
		return e;
	e = books_owner(&s->books, &s->db, c->owner, -1, s->now);
	if (e != BATON_OK)
		return e;
	end->done[end->count++] = *claim;
	*claim = c->claims[--c->count];
	end->until = baton_store_time_add(s->now, q->policy.dedupe);
	q->tally.running--;
	q->tally.done++;
	q->changed = true;
	*ret_done = true;
	return BATON_OK;
}

enum baton_err bulk_again(struct sqlite_store *s, const struct baton_work_proof *proof, bool *ret)
{
	struct bulks *b = &s->bulks;
	struct claim_name name;
	const struct bulk_claim *claim = NULL;
	*ret = false;
	if (!claim_name_parse(proof->id, &name))
		return BATON_OK;
	for (size_t i = 0; i < b->end_count && !claim; i++)
		claim = claim_in(b->ends[i].done, b->ends[i].count, &name);
	if (!claim)
		return reply_has(&s->db, &name, proof, s->now, ret);
	*ret = is_proved(claim, proof);
	return BATON_OK;
}

enum baton_err bulk_melt_claim(struct sqlite_store *s, const struct baton_work_proof *proof,
                               bool *ret_melted)
{
	struct claim_name name;
	struct bulk_end *end;
	*ret_melted = false;
	if (!claim_name_parse(proof->id, &name))
		return BATON_OK;
	enum baton_err e = end_find(s, &name, false, &end);
	if (e != BATON_OK || !end)
		return e;
	*ret_melted = is_proved(claim_in(end->chunk.claims, end->chunk.count, &name), proof);
	return *ret_melted ? bulk_melt(s, (int64_t)name.head) : BATON_OK;
}

enum baton_err bulk_settle(struct sqlite_store *s)
{
	enum baton_err e = bulk_put_back(s);
	return e == BATON_OK ? flush_ends(s) : e;
}

enum baton_err bulk_flush(struct sqlite_store *s)
{
	enum baton_err e = bulk_settle(s);
	return e == BATON_OK ? bulk_flush_put(s) : e;
}

enum baton_err bulk_save(struct sqlite_store *s)
{
	enum baton_err e = bulk_settle(s);
	s->bulks.saved = s->bulks.put;
	return e;
}

void bulk_back(struct sqlite_store *s)
{
	s->bulks.put = s->bulks.saved;
	s->bulks.give.q = NULL;
	s->bulks.end_count = 0;
}
