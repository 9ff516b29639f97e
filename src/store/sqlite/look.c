/* Looking at the batches of an SQLite file. */
#include <string.h>

#include "base/fail.h"
#include "queue/batch.h"
#include "queue/place.h"
#include "queue/policy.h"
#include "store/keys.h"
#include "store/parcel.h"
#include "store/refuse.h"
#include "store/sqlite/claims.h"
#include "store/sqlite/class.h"
#include "store/sqlite/lanes.h"
#include "store/sqlite/rates.h"
#include "store/sqlite/runners.h"
#include "store/sqlite/sites.h"

#define LOOKED_MAX 100000 /* batches for one page */
#define ERROR_SHOWN 200   /* bytes of an error in a list */

static enum baton_err no_memory(void)
{
	return fail(BATON_NO_MEMORY, "no memory for a page of batches");
}

/* What is looked at, and where it goes. */
struct view {
	struct sqlite_store *s;
	struct db *db;
	struct arena *a;
	struct baton_store_time now;
	bool whole; /* with payloads, errors and reasons in full */
};

static enum baton_err batch_fill(const struct view *v, const struct batch_row *b,
                                 struct baton_work_info *info)
{
	batch_id_print((uint64_t)b->id, &info->batch.id);
	info->batch.seq = (uint64_t)b->seq;
	info->batch.cls = b->cls;
	info->batch.delivery = b->delivery;
	info->batch.slot = b->slot;
	info->batch.priority = b->priority;
	info->shard = b->shard;
	info->batch.put_at = b->put_at;
	if (!arena_copy(v->a, batch_row_group(b), &info->batch.group) ||
	    !arena_copy(v->a, line_lane(batch_row_line(b)), &info->lane))
		return no_memory();
	return keys_show(v->a, line_key(batch_row_key(b)), KEYS_OF(info));
}

static enum baton_err queue_fill(const struct view *v, int64_t id, struct queue_row *row,
                                 struct baton_work_info *info)
{
	struct query q = query_begin(v->db, SQL_QUEUE_READ_ID);
	query_int(&q, id);
	bool found = query_row(&q);
	if (found)
		queue_row_read(&q, row);
	enum baton_err e = query_end(&q);
	if (e == BATON_OK && !found)
		e = fail(BATON_STORAGE, "store %s is damaged: queue %lld is gone", v->s->path,
		         (long long)id);
	if (e == BATON_OK && !arena_copy(v->a, queue_row_name(row), &info->queue))
		e = no_memory();
	return e;
}

static enum baton_err trouble_fill(const struct view *v, int64_t seq, struct baton_work_info *info)
{
	struct trouble t;
	enum baton_err e = trouble_load(v->db, seq, &t);
	if (e != BATON_OK)
		return e;
	size_t len = t.error_len;
	if (!v->whole && len > ERROR_SHOWN) {
		len = ERROR_SHOWN;
		while (len > ERROR_SHOWN - 4 && ((unsigned char)t.error[len] & 0xc0) == 0x80)
			len--;
	}
	bool claimed = info->state == BATON_BATCH_CLAIMED;
	info->batch.attempt = t.attempts + (claimed || info->state == BATON_BATCH_DONE);
	info->cancel = claimed && t.cancel;
	if (info->cancel && t.rival > 0)
		batch_id_print((uint64_t)t.rival, &info->ahead);
	return arena_copy(v->a, (struct baton_str){t.error, len}, &info->error) ? BATON_OK
	                                                                        : no_memory();
}

static enum baton_err holder_fill(const struct view *v, const struct claim_name *claim,
                                  int64_t owner, struct baton_work_info *info)
{
	char name[CLAIM_NAME_TEXT];
	info->fence.v = claim->fence;
	claim_name_print(claim, name);
	if (!arena_copy(v->a, baton_str_z(name), &info->claim))
		return no_memory();
	return owner_load(v->db, owner, &info->owner);
}

static enum baton_err claim_fill(const struct view *v, const struct batch_row *b,
                                 struct baton_work_info *info)
{
	struct claim_row c;
	bool found;
	enum baton_err e = claim_of_batch(v->db, v->a, b, &c, &found);
	if (e != BATON_OK || !found)
		return e;
	info->claimed_at = c.claimed_at;
	info->expires_at = c.expires_at;
	return holder_fill(v, &(struct claim_name){(uint64_t)c.head, c.fence}, c.owner, info);
}

static enum baton_err done_fill(const struct view *v, int64_t seq, struct baton_work_info *info)
{
	struct query q = query_begin(v->db, SQL_DONE_READ);
	bool memory = true;
	query_int(&q, seq);
	if (query_row(&q)) {
		info->ended_at.ms = column_int(&q, 0);
		if (!column_is_null(&q, 3))
			batch_id_print((uint64_t)column_int(&q, 3), &info->ahead);
		memory = !v->whole || arena_copy(v->a, column_str(&q, 2), &info->result);
	}
	enum baton_err e = query_end(&q);
	return e == BATON_OK && !memory ? no_memory() : e;
}

static enum baton_err state_fill(const struct view *v, const struct batch_row *b,
                                 struct baton_work_info *info)
{
	struct baton_store_time due = {0};
	enum baton_err e = batch_state(v->db, b, v->now, &info->state, &due);
	if (e != BATON_OK)
		return e;
	if (info->state == BATON_BATCH_DELAYED || info->state == BATON_BATCH_RETRY)
		info->due = due;
	if (info->state == BATON_BATCH_CLAIMED)
		return claim_fill(v, b, info);
	if (info->state == BATON_BATCH_DEAD)
		return FIND(v->db, SQL_DEAD_AT, &info->ended_at.ms, b->queue, b->seq);
	bool ended = info->state == BATON_BATCH_DONE || info->state == BATON_BATCH_SKIPPED;
	return ended ? done_fill(v, b->seq, info) : BATON_OK;
}

static enum baton_err info_fill(const struct view *v, const struct batch_row *b,
                                struct queue_row *row, struct baton_work_info *info)
{
	enum baton_err e = batch_fill(v, b, info);
	if (e == BATON_OK)
		e = queue_fill(v, b->queue, row, info);
	if (e == BATON_OK)
		e = state_fill(v, b, info);
	return e == BATON_OK ? trouble_fill(v, b->seq, info) : e;
}

/* The same for one that stands in a row with others. */
static enum baton_err bulk_fill(const struct view *v, const struct batch_row *b,
                                const struct bulk_job *job, struct queue_row *row,
                                struct baton_work_info *info)
{
	enum baton_err e = batch_fill(v, b, info);
	if (e == BATON_OK)
		e = queue_fill(v, b->queue, row, info);
	if (e == BATON_OK && info->key.len > 0)
		info->shard = place_of_lane(info->queue, info->key, row->policy.shards);
	info->state = job->claimed ? BATON_BATCH_CLAIMED : BATON_BATCH_READY;
	info->batch.attempt = job->claimed;
	if (e != BATON_OK || !job->claimed)
		return e;
	info->claimed_at = job->claimed_at;
	info->expires_at = job->expires_at;
	return holder_fill(v, &(struct claim_name){job->claim.seq, job->claim.fence}, job->owner,
	                   info);
}

/* What stands before a ready batch that has keys. */
struct before {
	int64_t full;  /* the line of the first key of which no more may be; 0: none          */
	int64_t until; /* the last of the times at which they may start again; 0: they may now */
	int64_t ahead; /* the first who comes before it; 0: nobody                             */
	size_t key;    /* which key `full`, or else `until`, is about                          */
};

static enum baton_err look_at_key(const struct view *v, const struct batch_row *b,
                                  const struct queue_row *row, struct baton_str line, size_t at,
                                  struct before *ret)
{
	struct query q = query_begin(v->db, SQL_LANE_LOOK);
	query_int(&q, b->queue);
	query_text(&q, line);
	if (!query_row(&q))
		return query_end(&q);
	int64_t own = column_int(&q, 2), guest = column_int(&q, 5), until = column_int(&q, 4);
	int64_t first = guest > 0 && (own == 0 || guest < own) ? guest : own;
	int64_t lane = column_int(&q, 0), holds = column_int(&q, 3), others = 0;
	enum baton_err e = query_end(&q);
	if (e == BATON_OK)
		e = class_holds(v->db, &row->policy, lane, &others);
	bool full = !key_has_room(&row->policy, (uint64_t)(holds + others));
	if (ret->full == 0 && (full || until > ret->until))
		ret->key = at;
	if (ret->full == 0 && full)
		ret->full = lane;
	ret->until = until > ret->until ? until : ret->until;
	if (first > 0 && first != b->seq && (ret->ahead == 0 || first < ret->ahead))
		ret->ahead = first;
	return e;
}

/* The first of all who hold the key of that line. */
static enum baton_err holder_of(const struct view *v, const struct baton_queue_policy *policy,
                                int64_t lane, int64_t *ret)
{
	int64_t others[BATON_QUEUE_CLASS_MAX];
	size_t count = 0;
	enum baton_err e = key_holder(v->db, v->a, lane, ret);
	if (e != BATON_OK || !policy_has_class(policy))
		return e;
	struct query q = query_begin(v->db, SQL_CLASS_LINES);
	query_int(&q, lane);
	query_text(&q, baton_str_z(policy->key_class));
	while (count < BATON_QUEUE_CLASS_MAX && query_row(&q))
		others[count++] = column_int(&q, 1);
	e = query_end(&q);
	for (size_t i = 0; i < count && e == BATON_OK; i++) {
		int64_t seq;
		e = key_holder(v->db, v->a, others[i], &seq);
		if (e == BATON_OK && seq > 0 && (*ret == 0 || seq < *ret))
			*ret = seq;
	}
	return e;
}

static enum baton_err why_with_key(const struct view *v, const struct batch_row *b,
                                   const struct queue_row *row, struct baton_work_info *info)
{
	struct before before = {.full = 0};
	struct baton_str rest = batch_row_key(b), line;
	struct batch_row other;
	enum baton_err e = BATON_OK;
	for (size_t i = 0; e == BATON_OK && lines_next(&rest, &line); i++)
		e = look_at_key(v, b, row, line, i, &before);
	if (e == BATON_OK && before.full > 0)
		e = holder_of(v, &row->policy, before.full, &before.ahead);
	if (e != BATON_OK)
		return e;
	if ((before.full > 0 || before.until > 0) && before.key < info->key_count)
		info->held = info->keys[before.key];
	if (before.full == 0 && before.until > 0) {
		info->why = BATON_WHY_RATE;
		info->due.ms = before.until;
		info->rate = row->policy.key_rate;
		return BATON_OK;
	}
	if (before.ahead == 0)
		return BATON_OK;
	info->why = before.full > 0 ? BATON_WHY_KEY : BATON_WHY_BEHIND;
	e = batch_need(v->db, before.ahead, &other);
	if (e == BATON_OK)
		batch_id_print((uint64_t)other.id, &info->ahead);
	return e;
}

/* What stands before a ready batch of a lane. */
static enum baton_err why_in_lane(const struct view *v, const struct batch_row *b,
                                  struct baton_work_info *info)
{
	struct query q = query_begin(v->db, SQL_LANE_LOOK);
	int64_t lane = 0, held = 0, ahead = b->seq;
	struct batch_row other;
	query_int(&q, b->queue);
	query_text(&q, batch_row_line(b));
	if (query_row(&q)) {
		lane = column_int(&q, 0);
		held = column_int(&q, 1);
		ahead = held > 0 ? held : column_int(&q, 2);
	}
	enum baton_err e = query_end(&q);
	if (e == BATON_OK && ahead == b->seq)
		e = claims_first(v->db, v->a, lane, false, &ahead);
	if (e != BATON_OK || ahead == 0)
		return e;
	info->why = held > 0 ? BATON_WHY_LANE_HELD : BATON_WHY_BEHIND;
	e = batch_need(v->db, ahead, &other);
	if (e == BATON_OK)
		batch_id_print((uint64_t)other.id, &info->ahead);
	return e;
}

/* Its key counts where its shard is. */
static enum baton_err why_in_site(const struct view *v, const struct batch_row *b,
                                  const struct queue_row *row, struct baton_work_info *info)
{
	struct shard_row shard;
	struct batch_row other;
	struct baton_owner owner;
	int64_t ahead = 0, until = 0;
	bool found = false;
	enum baton_err e = shard_load(v->db, b->queue, b->shard, &shard);
	if (e == BATON_OK && shard.runner > 0)
		e = sites_holder(v->db, v->a, row, batch_row_line(b), shard.runner, &ahead);
	if (e == BATON_OK && ahead == 0 && shard.runner > 0)
		e = runner_owner(v->db, shard.runner, &owner, &found);
	if (e == BATON_OK && found)
		e = rates_until(v->db, row, batch_row_line(b), &owner, &until);
	if (e != BATON_OK || (ahead == 0 && until == 0))
		return e;
	info->why = ahead > 0 ? BATON_WHY_KEY : BATON_WHY_RATE;
	if (info->key_count > 0)
		info->held = info->keys[0];
	if (ahead == 0) {
		info->due.ms = until;
		info->rate = row->policy.key_rate;
		return BATON_OK;
	}
	e = batch_need(v->db, ahead, &other);
	if (e == BATON_OK)
		batch_id_print((uint64_t)other.id, &info->ahead);
	return e;
}

static enum baton_err why_fill(const struct view *v, const struct batch_row *b,
                               const struct queue_row *row, struct baton_work_info *info)
{
	static const enum baton_why whys[] = {
		[BATON_BATCH_READY] = BATON_WHY_READY,
		[BATON_BATCH_DELAYED] = BATON_WHY_DELAYED,
		[BATON_BATCH_RETRY] = BATON_WHY_RETRY,
		[BATON_BATCH_CLAIMED] = BATON_WHY_NOTHING,
		[BATON_BATCH_DEAD] = BATON_WHY_DEAD,
		[BATON_BATCH_DONE] = BATON_WHY_DONE,
		[BATON_BATCH_SKIPPED] = BATON_WHY_SKIPPED,
	};
	info->why = whys[info->state];
	info->scope = row->policy.key_scope;
	if (info->why != BATON_WHY_READY)
		return BATON_OK;
	enum baton_err e = BATON_OK;
	if (line_lane(batch_row_line(b)).len > 0)
		e = why_in_lane(v, b, info);
	if (line_is_sited(batch_row_line(b), NULL))
		e = why_in_site(v, b, row, info);
	if (e == BATON_OK && info->why == BATON_WHY_READY && line_is_keyed(batch_row_key(b)))
		e = why_with_key(v, b, row, info);
	if (e == BATON_OK && info->why == BATON_WHY_READY && row->policy.paused)
		info->why = BATON_WHY_PAUSED;
	return e;
}

static enum baton_err payload_fill(const struct view *v, int64_t seq, struct baton_work_info *info)
{
	struct query q = query_begin(v->db, SQL_BATCH_READ);
	struct batch_row b;
	enum baton_err bad = BATON_OK;
	query_int(&q, seq);
	if (query_row(&q)) {
		batch_row_read(&q, &b);
		bad = payloads_unpack(v->a, column_str(&q, BATCH_PAYLOAD), b.many,
		                      &info->batch.payloads, &info->batch.count);
	}
	enum baton_err e = query_end(&q);
	return e == BATON_OK ? bad : e;
}

/* One that stands in a row with others. BATON_NOT_FOUND: it does not. */
static enum baton_err get_bulk(const struct view *v, uint64_t number, struct baton_work_info *info)
{
	struct batch_row b;
	struct queue_row row;
	struct bulk_job job;
	struct baton_str *payload = arena_take(v->a, 1, sizeof *payload);
	if (!payload)
		return no_memory();
	enum baton_err e = bulk_look(v->db, (int64_t)number, &b, &job);
	if (e != BATON_OK || !job.found)
		return e == BATON_OK ? BATON_NOT_FOUND : e;
	e = bulk_fill(v, &b, &job, &row, info);
	if (e == BATON_OK)
		e = why_fill(v, &b, &row, info);
	if (e == BATON_OK)
		e = bulk_payload(v->db, v->a, b.seq, payload);
	info->batch.payloads = payload;
	info->batch.count = 1;
	return e;
}

static enum baton_err get_into(const struct view *v, uint64_t number, struct page_parcel *page)
{
	struct baton_work_info *info = arena_take(v->a, 1, sizeof *info);
	struct queue_row row = {.id = 0};
	struct batch_row b = {.lane_len = 0};
	int64_t seq;
	if (!info)
		return no_memory();
	page->pub = (struct baton_work_page){.infos = info, .count = 1};
	enum baton_err e = batch_seq_of(v->db, (int64_t)number, &seq);
	if (e == BATON_OK && seq == 0)
		return get_bulk(v, number, info);
	if (e == BATON_OK)
		e = batch_need(v->db, seq, &b);
	if (e == BATON_OK)
		e = info_fill(v, &b, &row, info);
	if (e == BATON_OK && info->state == BATON_BATCH_GONE)
		return BATON_NOT_FOUND;
	if (e == BATON_OK)
		e = why_fill(v, &b, &row, info);
	return e == BATON_OK ? payload_fill(v, seq, info) : e;
}

/* All that one look shows is of one moment. */
static enum baton_err read_begin(struct sqlite_store *s)
{
	enum baton_err e = sqlite_read_begin(s);
	if (e != BATON_OK)
		return e;
	e = db_begin(&s->read, SQL_BEGIN_READ);
	if (e != BATON_OK)
		sqlite_read_end(s);
	return e;
}

static void read_end(struct sqlite_store *s)
{
	db_rollback(&s->read);
	sqlite_read_end(s);
}

enum baton_err sqlite_get(struct baton_store *store, const struct baton_batch_id *id,
                          struct baton_work_page **ret_page)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	uint64_t number;
	if (!batch_id_parse(id, &number))
		return refuse_batch(id);
	struct page_parcel *page = page_parcel_new(store->alloc);
	if (!page)
		return BATON_NO_MEMORY;
	enum baton_err e = read_begin(s);
	if (e == BATON_OK) {
		struct view v = {s, &s->read, &page->arena, baton_store_now(store), true};
		e = get_into(&v, number, page);
		read_end(s);
	}
	if (e == BATON_NOT_FOUND)
		e = refuse_batch(id);
	if (e == BATON_OK)
		*ret_page = &page->pub;
	else
		baton_work_page_free(&page->pub);
	return e;
}

/* Whether a batch is one of those that are asked for, as far as its row tells. */
static bool may_match(const struct baton_work_filter *f, const struct batch_row *b, int64_t queue)
{
	return (queue == 0 || b->queue == queue) &&
	       (f->lane.len == 0 || baton_str_equal(f->lane, line_lane(batch_row_line(b))));
}

/* Those from which a page is taken, in the order of their numbers: as few as there are tables
 * for. */
static struct query list_begin(const struct view *v, const struct baton_work_filter *f,
                               int64_t queue)
{
	static const enum sql lists[] = {
		[0] = SQL_BATCH_LIST,
		[BATON_BATCH_READY] = SQL_BATCH_LIST,
		[BATON_BATCH_DELAYED] = SQL_BATCH_LIST,
		[BATON_BATCH_RETRY] = SQL_BATCH_LIST_RETRY,
		[BATON_BATCH_CLAIMED] = SQL_BATCH_LIST_CLAIMED,
		[BATON_BATCH_DEAD] = SQL_BATCH_LIST_DEAD_ALL,
		[BATON_BATCH_DONE] = SQL_BATCH_LIST_DONE,
		[BATON_BATCH_SKIPPED] = SQL_BATCH_LIST_DONE,
	};
	bool dead = f->state == BATON_BATCH_DEAD && queue > 0;
	struct query q = query_begin(v->db, dead ? SQL_BATCH_LIST_DEAD : lists[f->state]);
	if (dead)
		query_int(&q, queue);
	query_int(&q, (int64_t)f->after);
	return q;
}

/* A page that is being filled. */
struct listing {
	const struct view *v;
	const struct baton_work_filter *f;
	int64_t queue;
	struct baton_work_info *infos;
	size_t count;
	uint64_t looked, next;
	bool more;

	/* The next of those that stand in rows with others. */
	struct batch_row b;
	struct bulk_job job;
};

/* Adds the batch if it is one of those that are asked for; `job` NULL: it has a row of its own. */
static enum baton_err listing_add(struct listing *l, const struct batch_row *b,
                                  const struct bulk_job *job)
{
	struct queue_row row;
	struct baton_work_info *info = &l->infos[l->count];
	l->more = l->count == l->f->max || l->looked++ == LOOKED_MAX;
	if (l->more)
		return BATON_OK;
	l->next = (uint64_t)b->seq;
	if (!may_match(l->f, b, l->queue))
		return BATON_OK;
	*info = (struct baton_work_info){.state = 0};
	enum baton_err e =
		job ? bulk_fill(l->v, b, job, &row, info) : info_fill(l->v, b, &row, info);
	l->count += l->f->state == 0 ? info->state != BATON_BATCH_GONE : info->state == l->f->state;
	return e;
}

/* Those that stand in rows with others and come before that number. */
static enum baton_err listing_bulks(struct listing *l, int64_t before)
{
	enum baton_err e = BATON_OK;
	while (e == BATON_OK && !l->more && l->job.found && l->b.seq < before) {
		e = listing_add(l, &l->b, &l->job);
		if (e == BATON_OK && !l->more)
			e = bulk_next(l->v->db, l->b.seq, l->f->state, &l->b, &l->job);
	}
	return e;
}

static enum baton_err list_into(const struct view *v, const struct baton_work_filter *f,
                                int64_t queue, struct page_parcel *page)
{
	struct listing l = {.v = v, .f = f, .queue = queue};
	enum baton_err bad = BATON_OK;
	l.infos = arena_take(v->a, f->max + 1, sizeof *l.infos);
	if (!l.infos)
		return no_memory();
	if (f->state == 0 || f->state == BATON_BATCH_READY || f->state == BATON_BATCH_CLAIMED)
		bad = bulk_next(v->db, (int64_t)f->after, f->state, &l.b, &l.job);
	struct query q = list_begin(v, f, queue);
	while (bad == BATON_OK && !l.more && query_row(&q)) {
		struct batch_row b;
		batch_row_read(&q, &b);
		bad = listing_bulks(&l, b.seq);
		if (bad == BATON_OK && !l.more)
			bad = listing_add(&l, &b, NULL);
	}
	enum baton_err e = query_end(&q);
	if (e == BATON_OK && bad == BATON_OK)
		e = listing_bulks(&l, INT64_MAX);
	page->pub = (struct baton_work_page){.infos = l.infos,
	                                     .count = l.count,
	                                     .next = l.more ? l.next : 0};
	return e == BATON_OK ? bad : e;
}

static enum baton_err queue_number(struct sqlite_store *s, struct baton_str name, int64_t *ret)
{
	struct query q = query_begin(&s->read, SQL_QUEUE_READ);
	query_text(&q, name);
	*ret = query_row(&q) ? column_int(&q, 0) : 0;
	return query_end(&q);
}

enum baton_err sqlite_list(struct baton_store *store, const struct baton_work_filter *f,
                           struct baton_work_page **ret_page)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	int64_t queue = 0;
	struct page_parcel *page = page_parcel_new(store->alloc);
	if (!page)
		return BATON_NO_MEMORY;
	enum baton_err e = read_begin(s);
	if (e == BATON_OK) {
		struct view v = {s, &s->read, &page->arena, baton_store_now(store), false};
		if (f->queue.len > 0)
			e = queue_number(s, f->queue, &queue);
		if (e == BATON_OK && (f->queue.len == 0 || queue > 0))
			e = list_into(&v, f, queue, page);
		read_end(s);
	}
	if (e == BATON_OK)
		*ret_page = &page->pub;
	else
		baton_work_page_free(&page->pub);
	return e;
}

/* The next after a moment; of nothing yet it is INT64_MAX. */
struct next {
	int64_t after, at;
};

static enum baton_err due_of(struct sqlite_store *s, int64_t queue, struct next *next)
{
	static const enum sql firsts[] = {SQL_LATER_FIRST, SQL_CLAIM_FIRST, SQL_CHUNK_FIRST,
	                                  SQL_RATE_FIRST};
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < sizeof firsts / sizeof firsts[0] && e == BATON_OK; i++) {
		struct query q = query_begin(&s->read, firsts[i]);
		query_int(&q, queue);
		query_int(&q, next->after);
		if (query_row(&q) && !column_is_null(&q, 0) && column_int(&q, 0) < next->at)
			next->at = column_int(&q, 0);
		e = query_end(&q);
	}
	return e;
}

/* Of a queue, and of the others of its class: whoever claims from it sees to those, too. */
static enum baton_err due_of_class(struct sqlite_store *s, const struct queue_row *row,
                                   struct next *next)
{
	struct class_queues others;
	enum baton_err e = class_queues(&s->read, &row->policy, row->id, &others);
	for (size_t i = 0; e == BATON_OK && i < others.count; i++)
		e = due_of(s, others.list[i], next);
	return e == BATON_OK ? due_of(s, row->id, next) : e;
}

static enum baton_err due_of_all(struct sqlite_store *s, struct next *next)
{
	struct baton_str after = {NULL, 0};
	struct queue_row row;
	enum baton_err e = BATON_OK;
	while (e == BATON_OK) {
		struct query q = query_begin(&s->read, SQL_QUEUE_LIST);
		query_text(&q, after);
		query_int(&q, 1);
		bool found = query_row(&q);
		if (found)
			queue_row_read(&q, &row);
		e = query_end(&q);
		if (!found || e != BATON_OK)
			break;
		if (!row.policy.paused)
			e = due_of_class(s, &row, next);
		after = queue_row_name(&row);
	}
	return e;
}

static enum baton_err due_of_named(struct sqlite_store *s, struct baton_str name, struct next *next)
{
	struct query q = query_begin(&s->read, SQL_QUEUE_READ);
	struct queue_row row = {.id = 0};
	query_text(&q, name);
	if (query_row(&q))
		queue_row_read(&q, &row);
	enum baton_err e = query_end(&q);
	if (e != BATON_OK || row.id == 0 || row.policy.paused)
		return e;
	return due_of_class(s, &row, next);
}

enum baton_err sqlite_next_due(struct baton_store *store, struct baton_str queue,
                               struct baton_store_time after, struct baton_store_time *ret)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	struct next next = {after.ms, INT64_MAX};
	enum baton_err e = sqlite_read_begin(s);
	if (e != BATON_OK)
		return e;
	e = queue.len > 0 ? due_of_named(s, queue, &next) : due_of_all(s, &next);
	sqlite_read_end(s);
	if (e == BATON_OK && next.at == INT64_MAX)
		return BATON_NOT_FOUND;
	if (e == BATON_OK)
		ret->ms = next.at;
	return e;
}
