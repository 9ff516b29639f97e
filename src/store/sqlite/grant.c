/* Giving work to whoever claims it. */
#include "store/sqlite/grant.h"

#include <string.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/fail.h"
#include "queue/batch.h"
#include "queue/policy.h"
#include "store/keys.h"
#include "store/refuse.h"
#include "store/sqlite/class.h"
#include "store/sqlite/guests.h"
#include "store/sqlite/lone.h"
#include "store/sqlite/rates.h"
#include "store/sqlite/wishes.h"

#define SCAN_MAX BATON_JOIN_MAX /* of a line, for exact ids */
#define PAGE 32

static enum baton_err no_memory(void)
{
	return fail(BATON_NO_MEMORY, "no memory for claims");
}

bool pick_add(struct sqlite_store *s, struct pick *p, int64_t seq, bool tried)
{
	if (p->count == p->cap) {
		size_t cap = p->cap ? p->cap * 2 : 8;
		int64_t *seqs = arena_take(&s->scratch, cap, sizeof *seqs);
		bool *flags = arena_take(&s->scratch, cap, sizeof *flags);
		if (!seqs || !flags)
			return false;
		if (p->count > 0) {
			memcpy(seqs, p->seqs, p->count * sizeof *seqs);
			memcpy(flags, p->tried, p->count * sizeof *flags);
		}
		*p = (struct pick){seqs, flags, p->count, cap};
	}
	p->seqs[p->count] = seq;
	p->tried[p->count++] = tried;
	return true;
}

static enum baton_err payload_read(struct sqlite_store *s, struct arena *a, int64_t seq,
                                   struct batch_row *row, struct baton_work_batch *ret)
{
	struct query q = query_begin(&s->db, SQL_BATCH_READ);
	enum baton_err bad = BATON_OK;
	query_int(&q, seq);
	bool found = query_row(&q);
	if (found) {
		batch_row_read(&q, row);
		bad = payloads_unpack(a, column_str(&q, BATCH_PAYLOAD), row->many, &ret->payloads,
		                      &ret->count);
	}
	enum baton_err e = query_end(&q);
	if (e == BATON_OK && !found)
		e = fail(BATON_STORAGE,
		         "store %s is damaged: batch %lld is gone; baton check says more", s->path,
		         (long long)seq);
	return e == BATON_OK ? bad : e;
}

/* What the batches of a claim have in common. */
struct common {
	struct batch_row row; /* of the last one that was given      */
	uint64_t fence;       /* the highest that any of them had before */
};

/* One batch, as its claimant gets it. */
static enum baton_err batch_give(struct sqlite_store *s, struct arena *a, int64_t seq, bool tried,
                                 struct baton_work_batch *out, struct common *common)
{
	struct trouble t = {.attempts = 0};
	struct batch_row *row = &common->row;
	enum baton_err e = payload_read(s, a, seq, row, out);
	if (e == BATON_OK && tried)
		e = trouble_load(&s->db, seq, &t);
	if (e != BATON_OK)
		return e;
	if (!arena_copy(a, batch_row_group(row), &out->group))
		return no_memory();
	batch_id_print((uint64_t)row->id, &out->id);
	out->seq = (uint64_t)seq;
	out->cls = row->cls;
	out->delivery = row->delivery;
	out->slot = row->slot;
	out->priority = row->priority;
	out->attempt = t.attempts + 1;
	out->put_at = row->put_at;
	common->fence = t.fence > common->fence ? t.fence : common->fence;
	return BATON_OK;
}

/* For how long a claim that holds a key for so long is given. */
static struct baton_duration hold_ttl(const struct grant *g, const struct baton_work_claim *out)
{
	bool bound = g->ttl.ns == BATON_DURATION_FOREVER.ns;
	return out->hold.ns < g->ttl.ns && !bound ? out->hold : g->ttl;
}

/* The lines that a claim is in. */
struct places {
	int64_t lane;          /* 0: none                                                   */
	int64_t lone;          /* the hash of a key that nobody else wants; 0: none         */
	struct key_lines keys; /* of those that it holds beside its lane */
};

static enum baton_err claim_make(struct sqlite_store *s, struct grant *g, const struct pick *p,
                                 const struct places *at, struct baton_work_claim *out)
{
	struct claim_row c = {
		.lone = at->lone,
		.keys = at->keys,
		.head = p->seqs[0],
		.fence = out->fence.v,
		.owner = g->owner,
		.queue = g->q->id,
		.claimed_at = s->now,
		.expires_at =
			baton_store_time_add(s->now, out->hold.ns > 0 ? hold_ttl(g, out) : g->ttl),
		.granter = g->base.granter,
		.lane = at->lane,
		.seqs = p->seqs,
		.count = p->count,
	};
	for (size_t i = 0; i < p->count; i++)
		c.tried = c.tried || p->tried[i];
	enum baton_err e = baton_id_random(&c.token);
	if (e == BATON_OK)
		e = claim_add(s, &c);
	if (e != BATON_OK)
		return e;
	out->shard = g->shard;
	out->claimed_at = c.claimed_at;
	out->expires_at = c.expires_at;
	out->proof.token = c.token;
	claim_name_print(&(struct claim_name){(uint64_t)c.head, c.fence}, out->proof.id);
	g->q->tally.ready -= (int64_t)p->count;
	g->q->tally.running += (int64_t)p->count;
	g->q->changed = true;
	return BATON_OK;
}

enum baton_err grant_begin(struct sqlite_store *s, struct grant *g)
{
	if (g->parcel)
		return BATON_OK;
	g->parcel = claims_parcel_new(s->base.alloc);
	if (!g->parcel)
		return BATON_NO_MEMORY;
	g->claims = arena_take(&g->parcel->arena, g->max, sizeof *g->claims);
	if (!g->claims)
		return no_memory();
	return owner_number(s, g->asker, &g->owner);
}

/* All that a claim has, but for its name and its keys. */
static enum baton_err batches_give(struct sqlite_store *s, struct arena *a, const struct pick *p,
                                   struct baton_work_claim *out, struct common *common)
{
	struct baton_work_batch *batches = arena_take(a, p->count, sizeof *batches);
	enum baton_err e = batches ? BATON_OK : no_memory();
	for (size_t i = 0; i < p->count && e == BATON_OK; i++)
		e = batch_give(s, a, p->seqs[i], p->tried[i], &batches[i], common);
	out->batches = batches;
	out->count = p->count;
	return e;
}

/* Those of a claim have the same keys. */
static enum baton_err wishes_drop(struct sqlite_store *s, const struct queue_row *q,
                                  const struct pick *p, const struct batch_row *row)
{
	struct batch_row b = *row;
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < p->count && e == BATON_OK; i++) {
		b.seq = p->seqs[i];
		e = wish_drop(s, q, &b);
	}
	return e;
}

/* What a claim changes in its lane, and counts in the lines of its keys. */
static enum baton_err lane_start(struct sqlite_store *s, const struct grant *g,
                                 const struct pick *p, const struct batch_row *row, int64_t lane)
{
	struct queue_row *q = g->q;
	enum baton_err e = BATON_OK;
	bool keyed = line_is_keyed(batch_row_line(row));
	for (size_t i = 0; i < p->count && e == BATON_OK && keyed; i++)
		e = RUN(&s->db, SQL_LINE_DROP, lane, p->seqs[i]);
	if (keyed)
		books_waiting(q, -(int64_t)p->count);
	if (e == BATON_OK && row->key_len > 0)
		e = wishes_drop(s, q, p, row);
	if (e == BATON_OK)
		e = lane_turn(s, q, batch_row_line(row), lane);
	for (struct baton_str rest = batch_row_key(row), line;
	     e == BATON_OK && lines_next(&rest, &line);)
		e = rates_start(s, q, line, g->asker);
	return e;
}

enum baton_err grant_give(struct sqlite_store *s, struct grant *g, const struct pick *p,
                          int64_t lane)
{
	CHECK(s->full && p->count > 0 && g->count < g->max);
	enum baton_err e = grant_begin(s, g);
	if (e != BATON_OK)
		return e;
	struct arena *a = &g->parcel->arena;
	struct baton_work_claim *out = &g->claims[g->count];
	struct common common = {.fence = 0};
	e = batches_give(s, a, p, out, &common);
	if (e != BATON_OK)
		return e;
	const struct batch_row *row = &common.row;
	const struct baton_str key = batch_row_key(row);
	bool shared = policy_has_class(&g->q->policy) && line_is_keyed(key);
	if ((g->q->guests || shared) && line_is_keyed(key))
		e = class_fence(s, g->q, &common.fence);
	if (e != BATON_OK)
		return e;
	if (!fence_of_claim(&g->base, &g->q->reach, common.fence, &out->fence.v))
		return refuse_fence(queue_row_name(g->q));
	if (!arena_copy(a, queue_row_name(g->q), &out->queue) ||
	    !arena_copy(a, line_lane(batch_row_line(row)), &out->lane))
		return no_memory();
	e = keys_show(a, line_key(key), KEYS_OF(out));
	if (e != BATON_OK)
		return e;
	out->hold = line_hold(key, &g->q->policy);
	struct places at = {.lane = lane};
	if (lane == 0 && line_is_keyed(batch_row_line(row)))
		at.lone = lone_hash(g->q->id, key);
	if (row->key_len > 0)
		e = guest_lines(s, g->q, row, &at.keys);
	if (e == BATON_OK)
		e = claim_make(s, g, p, &at, out);
	if (e == BATON_OK && lane > 0)
		e = lane_start(s, g, p, row, lane);
	if (row->key_len == 0)
		at.keys = (struct key_lines){.list = {lane}, .count = 1};
	if (e == BATON_OK && shared)
		e = class_taken(s, g->q, &at.keys);
	if (e == BATON_OK)
		g->count++;
	return e;
}

/* Whether the batch waits for its next attempt, and all behind it with it. */
static enum baton_err is_blocked(struct sqlite_store *s, int64_t seq, bool tried, bool *ret)
{
	struct trouble t;
	*ret = false;
	if (!tried)
		return BATON_OK;
	enum baton_err e = trouble_load(&s->db, seq, &t);
	*ret = e == BATON_OK && t.due.ms > 0;
	return e;
}

static bool is_claimed(const struct claim_row *claims, size_t count, int64_t seq)
{
	for (size_t i = 0; i < count; i++) {
		if (claim_row_has(&claims[i], seq))
			return true;
	}
	return false;
}

/* The candidates of a lane: as many as the choice can depend on. */
struct candidates {
	struct candidate *items; /* the scratch's */
	bool *tried;
	size_t count, cap;
};

static bool candidates_add(struct sqlite_store *s, struct candidates *c, const struct batch_row *b,
                           bool tried)
{
	if (c->count == c->cap) {
		size_t cap = c->cap ? c->cap * 2 : 8;
		struct candidate *items = arena_take(&s->scratch, cap, sizeof *items);
		bool *flags = arena_take(&s->scratch, cap, sizeof *flags);
		if (!items || !flags)
			return false;
		if (c->count > 0) {
			memcpy(items, c->items, c->count * sizeof *items);
			memcpy(flags, c->tried, c->count * sizeof *flags);
		}
		*c = (struct candidates){items, flags, c->count, cap};
	}
	struct candidate *item = &c->items[c->count];
	*item = batch_row_candidate(b);
	if (!arena_copy(&s->scratch, item->group, &item->group) ||
	    !arena_copy(&s->scratch, item->key, &item->key))
		return false;
	c->tried[c->count++] = tried;
	return true;
}

/* Whether more candidates could change the choice. */
static bool is_enough(const struct candidates *c, const struct scan *scan)
{
	size_t n = c->count;
	if (n == 0)
		return false;
	if (scan->wanted)
		return n >= SCAN_MAX || c->items[n - 1].seq >= scan->wanted[scan->wanted_count - 1];
	return n >= scan->max || !select_joins(&c->items[0], &c->items[n - 1]) ||
	       c->items[0].slot == BATON_EXCLUSIVE;
}

/* The numbers of a line, a few at a time, because what they stand for is read in between. */
struct line_page {
	size_t max, count;
	int64_t seqs[PAGE];
	bool tried[PAGE];
};

static enum baton_err line_page(struct sqlite_store *s, int64_t lane, int64_t after,
                                struct line_page *p)
{
	struct query q = query_begin(&s->db, SQL_LINE_PAGE);
	p->count = 0;
	query_int(&q, lane);
	query_int(&q, after);
	query_int(&q, (int64_t)p->max);
	while (p->count < p->max && query_row(&q)) {
		p->seqs[p->count] = column_int(&q, 0);
		p->tried[p->count++] = column_int(&q, 1) != 0;
	}
	return query_end(&q);
}

/* Adds a batch of the line. *ret_end: it, and so all behind it, waits for its next attempt. */
static enum baton_err candidate_look(struct sqlite_store *s, int64_t seq, bool tried,
                                     struct candidates *c, bool *ret_end)
{
	struct batch_row b;
	enum baton_err e = is_blocked(s, seq, tried, ret_end);
	if (e != BATON_OK || *ret_end)
		return e;
	e = batch_need(&s->db, seq, &b);
	return e == BATON_OK && !candidates_add(s, c, &b, tried) ? no_memory() : e;
}

static enum baton_err candidates_load(struct sqlite_store *s, int64_t lane,
                                      const struct claim_row *claims, size_t claim_count,
                                      const struct scan *scan, struct candidates *c)
{
	struct line_page p = {.max = scan->max == 1 && !scan->wanted ? 1 : PAGE};
	int64_t after = 0;
	bool end = false;
	do {
		enum baton_err e = line_page(s, lane, after, &p);
		for (size_t i = 0; i < p.count && e == BATON_OK && !end; i++) {
			after = p.seqs[i];
			if (is_claimed(claims, claim_count, after))
				continue;
			e = candidate_look(s, after, p.tried[i], c, &end);
			end = end || is_enough(c, scan);
		}
		if (e != BATON_OK)
			return e;
	} while (p.count > 0 && !end);
	return BATON_OK;
}

/* Picks what the scan asks for, maybe nothing. */
static enum baton_err pick_from(struct sqlite_store *s, const struct candidates *c,
                                const struct scan *scan, struct pick *p)
{
	size_t n = 0;
	if (c->count == 0)
		return BATON_OK;
	if (scan->more)
		n = select_more(c->items, c->count, scan->max);
	else if (!scan->wanted)
		n = select_prefix(c->items, c->count, scan->at, scan->max);
	else if (select_exact(c->items, c->count, scan->wanted, scan->wanted_count, scan->at,
	                      scan->pass))
		n = c->count;
	size_t next = 0;
	for (size_t i = 0; i < n; i++) {
		if (scan->wanted &&
		    (next == scan->wanted_count || c->items[i].seq != scan->wanted[next]))
			continue;
		next++;
		if (!pick_add(s, p, (int64_t)c->items[i].seq, c->tried[i]))
			return no_memory();
	}
	return BATON_OK;
}

enum baton_err grant_pick(struct sqlite_store *s, int64_t lane, const struct claim_row *claims,
                          size_t claim_count, const struct scan *scan, struct pick *ret)
{
	struct candidates c = {.count = 0};
	*ret = (struct pick){.count = 0};
	enum baton_err e = candidates_load(s, lane, claims, claim_count, scan, &c);
	return e == BATON_OK ? pick_from(s, &c, scan, ret) : e;
}

enum baton_err grant_mode(struct sqlite_store *s, struct queue_row *q, enum baton_queue_mode mode)
{
	if (q->policy.mode == mode)
		return BATON_OK;
	return heads_mode(s, q, mode);
}

enum baton_err grant_queue(struct sqlite_store *s, struct baton_str name,
                           enum baton_queue_mode mode, struct queue_row **ret)
{
	enum baton_err e = books_queue(&s->books, &s->db, name, ret);
	if (e != BATON_OK)
		return e;
	if (!*ret)
		return refuse_queue(name);
	enum baton_queue_mode is = (*ret)->policy.mode;
	if (is != BATON_QUEUE_OPEN && is != mode)
		return refuse_mode(name, is, mode);
	if (mode != BATON_QUEUE_RUNNER && policy_has_sites(&(*ret)->policy))
		return refuse_scope(name, &(*ret)->policy);
	if (mode == BATON_QUEUE_LANE && policy_has_class(&(*ret)->policy))
		return refuse_class_mode(name, &(*ret)->policy);
	return mode == BATON_QUEUE_LANE && (*ret)->guests
	               ? refuse_for_guests(name, "the mode is lane")
	               : BATON_OK;
}

void grant_done(struct grant *g)
{
	if (g->parcel)
		baton_work_claims_free(&g->parcel->pub);
	g->parcel = NULL;
}

void grant_close(struct grant *g, struct claims_parcel **ret)
{
	if (g->count == 0)
		return;
	g->parcel->pub = (struct baton_work_claims){g->claims, g->count};
	*ret = TAKE(g->parcel);
}

enum baton_err grant_answer(enum baton_err e, struct claims_parcel *parcel,
                            struct baton_work_claims **ret_claims)
{
	if (e != BATON_OK && parcel)
		baton_work_claims_free(&parcel->pub);
	if (e == BATON_OK)
		*ret_claims = parcel ? &parcel->pub : NULL;
	return e;
}
