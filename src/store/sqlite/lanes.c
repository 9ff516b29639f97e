/* Lanes, their lines, and where claims begin. */
#include "store/sqlite/lanes.h"

#include "base/fail.h"
#include "queue/policy.h"
#include "store/sqlite/class.h"
#include "store/sqlite/guests.h"
#include "store/sqlite/lone.h"
#include "store/sqlite/rates.h"
#include "store/sqlite/rivals.h"
#include "store/sqlite/sites.h"

static enum baton_err head_place(struct sqlite_store *s, const struct queue_row *q,
                                 const struct batch_row *b, int64_t lane, bool tried, int64_t place)
{
	enum baton_err e = bulk_put_back(s);
	if (e != BATON_OK)
		return e;
	struct query add = query_begin(&s->db, SQL_HEAD_ADD);
	query_int(&add, head_pool(q, b->shard));
	query_int(&add, batch_row_rank(b));
	query_int(&add, place);
	query_int(&add, b->seq);
	if (lane > 0)
		query_int(&add, lane);
	else
		query_null(&add);
	query_int(&add, tried);
	sqlite_tell(s, q, line_lane(batch_row_line(b)), b->shard);
	return query_run(&add);
}

enum baton_err head_add(struct sqlite_store *s, const struct queue_row *q,
                        const struct batch_row *b, int64_t lane, bool tried)
{
	return head_place(s, q, b, lane, tried, place_of(b->seq));
}

/* Where a head stands in a pool. */
struct spot {
	int64_t rank, place, seq;
};

static enum baton_err spot_clear(struct sqlite_store *s, const struct queue_row *q, uint32_t shard,
                                 const struct spot *at)
{
	int64_t here = head_pool(q, shard);
	int64_t there = here == pool_open(q) ? pool_shard(q, shard) : pool_open(q);
	enum baton_err e = RUN(&s->db, SQL_HEAD_DROP, here, at->rank, at->place, at->seq);
	if (e == BATON_OK && q->mixed)
		e = RUN(&s->db, SQL_HEAD_DROP, there, at->rank, at->place, at->seq);
	return e;
}

enum baton_err head_drop(struct sqlite_store *s, const struct queue_row *q, uint32_t shard,
                         int64_t rank, int64_t seq)
{
	return spot_clear(s, q, shard, &(struct spot){rank, place_of(seq), seq});
}

enum baton_err heads_mode(struct sqlite_store *s, struct queue_row *q, enum baton_queue_mode mode)
{
	bool was = q->policy.mode == BATON_QUEUE_RUNNER, will = mode == BATON_QUEUE_RUNNER;
	q->mixed = q->mixed || was != will;
	fence_reach_mode(&q->reach, q->policy.mode, mode);
	q->policy.mode = mode;
	return books_queue_write(&s->db, q);
}

#define GATHER_MAX 1000

/* A head in a pool of another mode. */
struct stray {
	int64_t pool, rank, place, seq, lane, tried, last;
};

static enum baton_err strays_list(struct sqlite_store *s, const struct queue_row *row,
                                  struct stray **ret, size_t *ret_count)
{
	bool runner = row->policy.mode == BATON_QUEUE_RUNNER;
	struct stray *list = arena_take(&s->scratch, GATHER_MAX, sizeof *list);
	size_t count = 0;
	if (!list)
		return fail_memory(GATHER_MAX * sizeof *list, "heads");
	struct query q = query_begin(&s->db, SQL_HEAD_STRAY);
	query_int(&q, runner ? pool_open(row) : pool_shard(row, 0));
	query_int(&q, runner ? pool_open(row) : pool_shard(row, row->policy.shards - 1));
	query_int(&q, GATHER_MAX);
	while (count < GATHER_MAX && query_row(&q))
		list[count++] =
			(struct stray){column_int(&q, 0), column_int(&q, 1), column_int(&q, 2),
		                       column_int(&q, 3), column_int(&q, 4), column_int(&q, 5),
		                       column_int(&q, 6)};
	*ret = list;
	*ret_count = count;
	return query_end(&q);
}

/* *ret_count: it became so many others. */
static enum baton_err stray_add(struct sqlite_store *s, struct queue_row *q,
                                const struct stray *stray, size_t *ret_count)
{
	struct batch_row b;
	const struct bulk_head head = {stray->pool, stray->rank, stray->seq, stray->last};
	*ret_count = 0;
	if (stray->tried == HEAD_BULK)
		return bulk_head_add(s, q, &head, ret_count);
	enum baton_err e = batch_need(&s->db, stray->seq, &b);
	if (e != BATON_OK)
		return e;
	return head_place(s, q, &b, stray->lane, stray->tried != 0, stray->place);
}

enum baton_err heads_gather(struct sqlite_store *s, struct queue_row *q)
{
	struct stray *list;
	size_t count = 0, i = 0, more = 0, all = 0;
	if (!q->mixed)
		return BATON_OK;
	enum baton_err e = strays_list(s, q, &list, &count);
	for (; i < count && e == BATON_OK && all < GATHER_MAX; i++, all += 1 + more) {
		more = 0;
		e = RUN(&s->db, SQL_HEAD_DROP, list[i].pool, list[i].rank, list[i].place,
		        list[i].seq);
		/* One that was divided is gone with the first of its parts. */
		if (e == BATON_OK && db_changes(&s->db) > 0)
			e = stray_add(s, q, &list[i], &more);
	}
	q->mixed = count == GATHER_MAX || i < count;
	q->changed = true;
	return e;
}

enum baton_err lane_find(struct sqlite_store *s, int64_t queue, struct baton_str name, int64_t *ret)
{
	struct query q = query_begin(&s->db, SQL_LANE_FIND);
	query_int(&q, queue);
	query_text(&q, name);
	*ret = query_row(&q) ? column_int(&q, 0) : 0;
	return query_end(&q);
}

enum baton_err lane_make(struct sqlite_store *s, const struct batch_row *b, int64_t *ret)
{
	const struct lane_new new = {b->queue, batch_row_line(b), b->shard};
	return lane_add(s, &new, ret);
}

enum baton_err lane_add(struct sqlite_store *s, const struct lane_new *new, int64_t *ret)
{
	struct query q = query_begin(&s->db, SQL_LANE_ADD);
	query_int(&q, s->books.lane + 1);
	query_int(&q, new->queue);
	query_text(&q, new->name);
	query_int(&q, new->shard);
	if (line_is_keyed(new->name))
		query_int(&q, 0);
	else
		query_null(&q);
	enum baton_err e = query_run(&q);
	if (e != BATON_OK)
		return e;
	*ret = ++s->books.lane;
	s->books.changed = true;
	return BATON_OK;
}

enum baton_err lane_read(struct db *db, int64_t lane, struct lane_row *ret)
{
	struct query q = query_begin(db, SQL_LANE_READ);
	query_int(&q, lane);
	bool found = query_row(&q);
	enum baton_err bad = BATON_OK;
	if (found) {
		*ret = (struct lane_row){
			.held = column_int(&q, 0),
			.head = column_int(&q, 1),
			.rank = column_int(&q, 2),
			.shard = (uint32_t)column_int(&q, 3),
			.keyed = !column_is_null(&q, 4),
			.holds = column_int(&q, 4),
			.turn = column_int(&q, 5),
			.place = column_int(&q, 6),
			.until = column_int(&q, 7),
			.asked = column_int(&q, 9),
			.guest = column_int(&q, 10),
		};
		bad = key_lines_read(&q, 8, 11, &ret->asks);
	}
	enum baton_err e = query_end(&q);
	if (e == BATON_OK && bad != BATON_OK)
		return bad;
	if (e == BATON_OK && !found)
		e = fail(BATON_STORAGE,
		         "store %s is damaged: lane %lld is gone; baton check says more", db->path,
		         (long long)lane);
	return e;
}

enum baton_err lane_first(struct sqlite_store *s, int64_t lane, int64_t *ret_seq, bool *ret_tried)
{
	struct query q = query_begin(&s->db, SQL_LINE_FIRST);
	query_int(&q, lane);
	*ret_seq = 0;
	if (query_row(&q)) {
		*ret_seq = column_int(&q, 0);
		*ret_tried = column_int(&q, 1) != 0;
	}
	return query_end(&q);
}

/* Whether the first batch of the line can be claimed. */
static enum baton_err is_open(struct sqlite_store *s, int64_t lane, const struct lane_row *row,
                              int64_t first, bool tried, bool *ret)
{
	int64_t busy = 0;
	enum baton_err e = FIND(&s->db, SQL_CLAIM_BUSY, &busy, lane);
	*ret = e == BATON_OK && busy == 0 && row->held == 0;
	if (!*ret || !tried)
		return e;
	struct trouble t;
	e = trouble_load(&s->db, first, &t);
	*ret = e == BATON_OK && t.due.ms == 0;
	return e;
}

enum baton_err key_is_open(struct sqlite_store *s, const struct queue_row *q, int64_t lane,
                           const struct lane_row *row, bool *ret)
{
	int64_t others;
	enum baton_err e = class_holds(&s->db, &q->policy, lane, &others);
	*ret = e == BATON_OK && row->until == 0 &&
	       key_has_room(&q->policy, (uint64_t)(row->holds + others));
	if (policy_has_class(&q->policy) && guests_is_put_off(s, lane))
		*ret = false;
	return e;
}

enum baton_err head_move(struct sqlite_store *s, struct queue_row *q, int64_t lane,
                         const struct lane_row *row, const struct batch_row *b, bool tried)
{
	int64_t seq = b ? b->seq : 0, rank = b ? batch_row_rank(b) : 0, place = 0;
	enum baton_err e = BATON_OK;
	if (b)
		place = (int64_t)line_place(batch_row_line(b), &q->policy, (uint64_t)b->seq,
		                            (uint64_t)row->turn);
	bool same = seq == row->head && (!b || (rank == row->rank && place == row->place));
	if (same && !tried)
		return BATON_OK;
	if (row->head > 0)
		e = spot_clear(s, q, row->shard, &(struct spot){row->rank, row->place, row->head});
	if (e == BATON_OK && b)
		e = head_place(s, q, b, lane, tried, place);
	if (row->keyed || row->asks.count > 0)
		books_waiting(q, (row->head > 0) - (seq > 0));
	return e == BATON_OK && !same ? RUN(&s->db, SQL_LANE_HEAD, seq, rank, place, lane) : e;
}

/* The line of a key: its head is its own first, or that of the first lane that asks. */
static enum baton_err settle_key(struct sqlite_store *s, struct queue_row *q, int64_t lane,
                                 const struct lane_row *row)
{
	struct batch_row b;
	struct guest guest = {.seq = 0};
	int64_t first = 0, late = 0;
	bool tried = false, open = false;
	enum baton_err e = key_is_open(s, q, lane, row, &open);
	if (e == BATON_OK)
		e = lane_first(s, lane, &first, &tried);
	/* Others on the host of whoever had it may wait in other shards. */
	if (s->freed && policy_has_sites(&q->policy))
		sqlite_tell(s, q, (struct baton_str){NULL, 0}, row->shard);
	if (e == BATON_OK && q->guests)
		e = guest_first(s, lane, &guest);
	bool turn = open && guest.seq > 0 && (first == 0 || guest.seq < first);
	open = open && first > 0 && !turn;
	if (e == BATON_OK && turn)
		e = guest_is_first(s, q, lane, &guest, &turn);
	if (e == BATON_OK && q->guests) {
		/* A claim that was over may have kept others away from a key that nobody had the
		 * head of, since its turn was not there with all of its keys. */
		bool wait = guests_are_waiting(s, lane, row, turn ? &guest : NULL) ||
		            (open && row->head == 0 && guests_are_off(s, q));
		turn = turn && !wait;
		open = open && !wait;
		if (wait)
			e = guests_put_off(s, q->id, lane);
		if (e == BATON_OK)
			e = guest_move(s, q, lane, row, turn ? &guest : NULL);
	}
	if (e == BATON_OK && open)
		e = batch_need(&s->db, first, &b);
	if (e == BATON_OK)
		e = head_move(s, q, lane, row, open ? &b : NULL, tried);
	if (e != BATON_OK || first > 0 || row->holds > 0 || guest.seq > 0)
		return e;
	if (q->guests)
		e = FIND(&s->db, SQL_CLAIM_HAS_KEY, &late, lane);
	return e == BATON_OK && late == 0 ? RUN(&s->db, SQL_LANE_DROP, lane) : e;
}

/* In its own queue. */
static enum baton_err settle(struct sqlite_store *s, struct queue_row *q, int64_t lane)
{
	struct lane_row row;
	struct batch_row b = {.key_len = 0};
	int64_t first = 0;
	bool tried = false, open = false;
	enum baton_err e = lane_read(&s->db, lane, &row);
	if (e != BATON_OK || row.keyed)
		return e == BATON_OK ? settle_key(s, q, lane, &row) : e;
	e = lane_first(s, lane, &first, &tried);
	if (e == BATON_OK && first > 0)
		e = is_open(s, lane, &row, first, tried, &open);
	if (e == BATON_OK && open)
		e = batch_need(&s->db, first, &b);
	bool asks = open && b.key_len > 0;
	if (e == BATON_OK && q->guests)
		e = guest_ask(s, q, lane, &row, asks ? &b : NULL, tried);
	if (e == BATON_OK && open && !asks && guests_are_off(s, q) && row.head != b.seq) {
		open = false;
		e = guests_put_off(s, q->id, lane);
	}
	if (e == BATON_OK && !asks)
		e = head_move(s, q, lane, &row, open ? &b : NULL, tried);
	if (e == BATON_OK && first == 0 && row.held == 0)
		e = RUN(&s->db, SQL_LANE_DROP, lane);
	return e;
}

enum baton_err lane_settle(struct sqlite_store *s, struct queue_row *q, int64_t lane)
{
	struct class_lines others;
	struct queue_row *other;
	enum baton_err e = class_lines(s, q, lane, &others);
	if (e == BATON_OK)
		e = settle(s, q, lane);
	for (size_t i = 0; e == BATON_OK && i < others.count; i++) {
		e = books_queue_by_id(&s->books, &s->db, others.list[i].queue, &other);
		if (e == BATON_OK)
			e = settle(s, other, others.list[i].lane);
	}
	return e;
}

enum baton_err lane_settle_key(struct sqlite_store *s, struct queue_row *q, int64_t key)
{
	int64_t there = 0;
	enum baton_err e = key > 0 ? FIND(&s->db, SQL_LANE_HAS, &there, key) : BATON_OK;
	return e == BATON_OK && there > 0 ? lane_settle(s, q, key) : e;
}

enum baton_err lane_settle_own(struct sqlite_store *s, struct queue_row *q, int64_t lane)
{
	int64_t there = 0;
	enum baton_err e = FIND(&s->db, SQL_LANE_HAS, &there, lane);
	return e == BATON_OK && there > 0 ? settle(s, q, lane) : e;
}

enum baton_err lane_settle_keys(struct sqlite_store *s, struct queue_row *q,
                                const struct key_lines *keys)
{
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < keys->count && e == BATON_OK; i++)
		e = lane_settle_key(s, q, keys->list[i]);
	return e;
}

enum baton_err key_holder(struct db *db, struct arena *a, int64_t lane, int64_t *ret_seq)
{
	int64_t others[2] = {0, 0};
	enum baton_err e = claims_first(db, a, lane, true, ret_seq);
	if (e == BATON_OK)
		e = FIND(db, SQL_KEPT_FIRST, &others[0], lane);
	if (e == BATON_OK)
		e = claims_first_of_key(db, a, lane, &others[1]);
	for (size_t i = 0; i < 2; i++) {
		if (others[i] > 0 && (*ret_seq == 0 || others[i] < *ret_seq))
			*ret_seq = others[i];
	}
	return e;
}

enum baton_err key_waits(struct sqlite_store *s, const struct queue_row *q, struct baton_str line,
                         int64_t most, int64_t *ret)
{
	int64_t lane;
	if (policy_has_sites(&q->policy))
		return sites_wait(s, q, line, most, ret);
	enum baton_err e = lane_find(s, q->id, line, &lane);
	*ret = 0;
	if (e != BATON_OK || lane > 0)
		return e == BATON_OK ? FIND(&s->db, SQL_LINE_COUNT, ret, lane, most) : e;
	struct claim_row c;
	int64_t seq;
	bool claimed = true;
	e = bulk_key_leave(s, lone_hash(q->id, line));
	if (e == BATON_OK)
		e = lone_find(s, q->id, line, &seq);
	if (e == BATON_OK && seq > 0)
		e = claim_of_single(s, seq, &c, &claimed);
	*ret = !claimed;
	return e;
}

/* Puts a batch into its lane's line; `made`: that is new. */
static enum baton_err line_enter(struct sqlite_store *s, struct queue_row *q,
                                 const struct batch_row *b, int64_t lane, bool tried, bool made)
{
	enum baton_err e = RUN(&s->db, SQL_LINE_ADD, lane, b->seq, tried);
	if (e != BATON_OK)
		return e;
	/* What is put last changes nothing about who is first, if those before it are there. */
	bool keyed = line_is_keyed(batch_row_line(b));
	if (keyed)
		books_waiting(q, 1);
	if (!made && !keyed && b->seq == s->books.seq)
		return BATON_OK;
	return settle(s, q, lane);
}

enum baton_err lane_turn(struct sqlite_store *s, const struct queue_row *q, struct baton_str line,
                         int64_t lane)
{
	if (!line_takes_turns(line, &q->policy))
		return BATON_OK;
	s->books.seq++;
	s->books.changed = true;
	return RUN(&s->db, SQL_LANE_TURN, s->books.seq, lane);
}

static enum baton_err key_begin(struct sqlite_store *s, const struct queue_row *q,
                                const struct batch_row *b, int64_t *ret_lane)
{
	enum baton_err e = lane_make(s, b, ret_lane);
	return e == BATON_OK ? rates_begin(s, q, batch_row_line(b), *ret_lane) : e;
}

/* A batch is about to enter the line of its key, which `begins` with it. */
static enum baton_err key_turn(struct sqlite_store *s, const struct queue_row *q,
                               const struct batch_row *b, int64_t lane, bool begins)
{
	struct lane_row row;
	int64_t first = 0;
	bool tried;
	/* One that was put just now changes nothing, and there may be many of those. */
	if (b->seq == s->books.seq || !line_takes_turns(batch_row_line(b), &q->policy))
		return BATON_OK;
	enum baton_err e = lane_read(&s->db, lane, &row);
	if (e == BATON_OK)
		e = lane_first(s, lane, &first, &tried);
	if (e != BATON_OK)
		return e;
	const struct line_before line = {begins, (uint64_t)first, (uint64_t)row.turn};
	int64_t turn = (int64_t)line_turn(&line, (uint64_t)b->seq, (uint64_t)s->books.seq);
	return turn != row.turn ? RUN(&s->db, SQL_LANE_TURN, turn, lane) : BATON_OK;
}

static enum baton_err key_enter(struct sqlite_store *s, struct queue_row *q,
                                const struct batch_row *b, bool tried, bool *ret_stays)
{
	int64_t lane = 0;
	bool alone;
	enum baton_err e = lone_enter(s, q, b, tried, &alone);
	if (e == BATON_OK && !alone)
		e = lane_find(s, q->id, batch_row_line(b), &lane);
	if (e != BATON_OK || alone)
		return e;
	bool made = lane == 0;
	if (made)
		e = key_begin(s, q, b, &lane);
	if (e == BATON_OK)
		e = key_turn(s, q, b, lane, made);
	const bool shared = policy_has_class(&q->policy);
	const bool conflicts = q->policy.on_conflict != BATON_CONFLICT_WAIT && (!made || shared);
	if (e == BATON_OK && conflicts)
		e = rival_enter(s, q, b, lane, ret_stays);
	if (e == BATON_OK && *ret_stays)
		e = line_enter(s, q, b, lane, tried, made);
	/* Whoever gave way, or was asked to, may be of another queue; and the line may be empty. */
	return e == BATON_OK && conflicts && shared ? lane_settle_key(s, q, lane) : e;
}

enum baton_err lane_enter(struct sqlite_store *s, struct queue_row *q, const struct batch_row *b,
                          bool tried, bool *ret_stays)
{
	int64_t lane;
	bool stays = true;
	if (ret_stays)
		*ret_stays = true;
	if (b->lane_len == 0)
		return head_add(s, q, b, 0, tried);
	if (line_is_keyed(batch_row_line(b)))
		return key_enter(s, q, b, tried, ret_stays ? ret_stays : &stays);
	enum baton_err e = lane_find(s, q->id, batch_row_line(b), &lane);
	bool made = e == BATON_OK && lane == 0;
	if (made)
		e = lane_make(s, b, &lane);
	return e == BATON_OK ? line_enter(s, q, b, lane, tried, made) : e;
}

enum baton_err lane_leave(struct sqlite_store *s, struct queue_row *q, const struct batch_row *b)
{
	int64_t lane;
	if (b->lane_len == 0)
		return head_drop(s, q, b->shard, batch_row_rank(b), b->seq);
	enum baton_err e = lane_find(s, q->id, batch_row_line(b), &lane);
	if (e == BATON_OK)
		e = RUN(&s->db, SQL_LINE_DROP, lane, b->seq);
	if (line_is_keyed(batch_row_line(b)))
		books_waiting(q, -1);
	return e == BATON_OK ? lane_settle(s, q, lane) : e;
}

enum baton_err lane_hold(struct sqlite_store *s, int64_t lane)
{
	return RUN(&s->db, SQL_LANE_HOLD, lane);
}

enum baton_err lane_holds(struct db *db, int64_t lane, int64_t *ret)
{
	struct lane_row row;
	enum baton_err e = lane_read(db, lane, &row);
	if (e == BATON_OK)
		*ret = row.holds;
	return e;
}

enum baton_err lane_held(struct db *db, int64_t lane, int64_t *ret_seq)
{
	struct lane_row row;
	enum baton_err e = lane_read(db, lane, &row);
	if (e == BATON_OK)
		*ret_seq = row.held;
	return e;
}

enum baton_err lane_gives(struct sqlite_store *s, const struct queue_row *q, int64_t lane,
                          bool busy, bool *ret)
{
	struct lane_row row;
	enum baton_err e = lane_read(&s->db, lane, &row);
	if (e != BATON_OK)
		return e;
	*ret = row.held == 0 && !busy;
	return row.keyed ? key_is_open(s, q, lane, &row, ret) : BATON_OK;
}

enum baton_err lane_next(struct sqlite_store *s, int64_t lane, int64_t *ret_rank,
                         int64_t *ret_place, int64_t *ret_seq)
{
	struct query q = query_begin(&s->db, SQL_LANE_READ);
	query_int(&q, lane);
	bool found = query_row(&q);
	*ret_seq = found ? column_int(&q, 1) : 0;
	*ret_rank = found ? column_int(&q, 2) : 0;
	*ret_place = found ? column_int(&q, 6) : 0;
	return query_end(&q);
}

enum baton_err lane_offer(struct sqlite_store *s, struct queue_row *q, const struct claim_row *c,
                          bool offer)
{
	struct lane_row row;
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < c->keys.count && e == BATON_OK; i++)
		e = RUN(&s->db, SQL_LANE_COUNT, offer ? -1 : 1, c->keys.list[i]);
	if (e != BATON_OK || c->keys.count > 0)
		return e;
	e = lane_read(&s->db, c->lane, &row);
	if (e != BATON_OK || !row.keyed)
		return e;
	for (size_t i = 0; i < c->count && e == BATON_OK; i++)
		e = RUN(&s->db, offer ? SQL_LINE_TRY : SQL_LINE_DROP, c->lane, c->seqs[i]);
	books_waiting(q, offer ? (int64_t)c->count : -(int64_t)c->count);
	return e == BATON_OK ? RUN(&s->db, SQL_LANE_COUNT, offer ? -1 : 1, c->lane) : e;
}

enum baton_err key_keep(struct sqlite_store *s, int64_t lane, int64_t seq)
{
	enum baton_err e = RUN(&s->db, SQL_KEPT_ADD, lane, seq);
	return e == BATON_OK ? RUN(&s->db, SQL_LANE_COUNT, 1, lane) : e;
}

enum baton_err key_let_go(struct sqlite_store *s, int64_t lane, int64_t seq)
{
	enum baton_err e = RUN(&s->db, SQL_KEPT_DROP, lane, seq);
	return e == BATON_OK ? RUN(&s->db, SQL_LANE_COUNT, -1, lane) : e;
}

#define KEYED_PAGE 1000

static enum baton_err keyed_page(struct sqlite_store *s, const struct queue_row *row, int64_t after,
                                 int64_t *lanes, size_t *ret_count)
{
	struct query q = query_begin(&s->db, SQL_LANE_KEYED);
	size_t count = 0;
	query_int(&q, after);
	query_int(&q, row->id);
	query_int(&q, KEYED_PAGE);
	while (count < KEYED_PAGE && query_row(&q))
		lanes[count++] = column_int(&q, 0);
	*ret_count = count;
	return query_end(&q);
}

enum baton_err keys_melt(struct sqlite_store *s, struct queue_row *q)
{
	struct batch_row b;
	int64_t hash = INT64_MIN, seq = 0;
	enum baton_err e = bulk_melt_keys(s, q);
	if (e != BATON_OK)
		return e;
	do {
		e = FIND(&s->db, SQL_LONE_NEXT, &seq, hash, q->id);
		if (e == BATON_OK && seq > 0)
			e = batch_need(&s->db, seq, &b);
		if (e == BATON_OK && seq > 0)
			e = lone_melt(s, q, &b);
		if (e == BATON_OK && seq > 0)
			hash = lone_hash(q->id, batch_row_line(&b));
	} while (e == BATON_OK && seq > 0);
	return e;
}

enum baton_err keys_settle(struct sqlite_store *s, struct queue_row *q)
{
	int64_t after = 0;
	size_t count;
	int64_t *lanes = arena_take(&s->scratch, KEYED_PAGE, sizeof *lanes);
	if (!lanes)
		return fail_memory(KEYED_PAGE * sizeof *lanes, "keys");
	do {
		enum baton_err e = keyed_page(s, q, after, lanes, &count);
		for (size_t i = 0; i < count && e == BATON_OK; i++)
			e = settle(s, q, lanes[i]);
		if (e != BATON_OK)
			return e;
		after = count > 0 ? lanes[count - 1] : after;
	} while (count == KEYED_PAGE);
	return BATON_OK;
}
