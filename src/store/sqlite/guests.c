/* Lanes whose first batch has a key. */
#include "store/sqlite/guests.h"

#include <string.h>

#include "base/fail.h"
#include "queue/place.h"
#include "queue/rate.h"
#include "store/sqlite/lone.h"

enum baton_err guest_first(struct sqlite_store *s, int64_t key, struct guest *ret)
{
	struct query q = query_begin(&s->db, SQL_GUEST_FIRST);
	query_int(&q, key);
	*ret = (struct guest){.seq = 0};
	if (query_row(&q))
		*ret = (struct guest){column_int(&q, 0), column_int(&q, 1), column_int(&q, 2) != 0};
	return query_end(&q);
}

static bool is_put_off(const struct waiting_keys *w, int64_t key)
{
	for (size_t i = 0; i < w->count; i++) {
		if (w->list[i].key == key)
			return true;
	}
	return false;
}

bool guests_are_waiting(const struct sqlite_store *s, int64_t key, const struct lane_row *row,
                        const struct guest *guest)
{
	const struct waiting_keys *w = &s->waiting;
	if (!w->on || (guest && guest->lane == row->guest))
		return false;
	return guest || row->guest > 0 || is_put_off(w, key);
}

bool guests_are_off(const struct sqlite_store *s, const struct queue_row *q)
{
	return s->waiting.on && q->guests;
}

enum baton_err guests_put_off(struct sqlite_store *s, const struct queue_row *q, int64_t key)
{
	struct waiting_keys *w = &s->waiting;
	if (is_put_off(w, key))
		return BATON_OK;
	if (w->count == w->cap) {
		size_t cap = w->cap ? w->cap * 2 : 16;
		struct waiting_key *list = arena_take(&s->scratch, cap, sizeof *list);
		if (!list)
			return fail_memory(cap * sizeof *list, "keys");
		if (w->count > 0)
			memcpy(list, w->list, w->count * sizeof *list);
		w->list = list;
		w->cap = cap;
	}
	w->list[w->count++] = (struct waiting_key){q->id, key};
	return BATON_OK;
}

void guests_wait(struct sqlite_store *s)
{
	s->waiting = (struct waiting_keys){.on = true};
}

enum baton_err guests_go_on(struct sqlite_store *s, enum baton_err e)
{
	struct queue_row *q;
	s->waiting.on = false;
	for (size_t i = 0; i < s->waiting.count && e == BATON_OK; i++) {
		const struct waiting_key *w = &s->waiting.list[i];
		e = books_queue_by_id(&s->books, &s->db, w->queue, &q);
		if (e == BATON_OK)
			e = lane_settle_key(s, q, w->key);
	}
	return e;
}

/* Gives the lane of a guest its head, or takes it away. */
static enum baton_err head_of_guest(struct sqlite_store *s, struct queue_row *q, int64_t lane,
                                    const struct guest *guest)
{
	struct lane_row row;
	struct batch_row b;
	enum baton_err e = lane_read(&s->db, lane, &row);
	if (e == BATON_OK && guest)
		e = batch_need(&s->db, guest->seq, &b);
	return e == BATON_OK ? head_move(s, q, lane, &row, guest ? &b : NULL, guest && guest->tried)
	                     : e;
}

enum baton_err guest_move(struct sqlite_store *s, struct queue_row *q, int64_t key,
                          const struct lane_row *row, const struct guest *guest)
{
	int64_t lane = guest ? guest->lane : 0;
	enum baton_err e = BATON_OK;
	if (row->guest > 0 && row->guest != lane)
		e = head_of_guest(s, q, row->guest, NULL);
	if (e == BATON_OK && lane > 0)
		e = head_of_guest(s, q, lane, guest);
	return e == BATON_OK && lane != row->guest ? RUN(&s->db, SQL_LANE_GUEST, lane, key) : e;
}

/* The line of the key that the batch has beside its lane. One that a job alone has gets a line. */
static enum baton_err key_of(struct sqlite_store *s, struct queue_row *q, const struct batch_row *b,
                             int64_t *ret)
{
	const struct baton_str name = batch_row_guest(b);
	enum baton_err e = lane_find(s, q->id, name, ret);
	if (e != BATON_OK || *ret > 0)
		return e;
	e = lone_melt_key(s, q, name);
	if (e == BATON_OK)
		e = lane_find(s, q->id, name, ret);
	if (e != BATON_OK || *ret > 0)
		return e;
	const struct lane_new new = {q->id, name,
	                             place_of_line(queue_row_name(q), name, q->policy.shards)};
	e = lane_add(s, &new, ret);
	return e == BATON_OK && line_is_rated(name, &q->policy) ? RUN(&s->db, SQL_LANE_WAIT, *ret)
	                                                        : e;
}

/* Its head, if it had it, was that of the key. */
static enum baton_err ask_no_more(struct sqlite_store *s, struct queue_row *q, int64_t lane,
                                  struct lane_row *row)
{
	int64_t key = row->asks;
	enum baton_err e = RUN(&s->db, SQL_GUEST_DROP, key, row->asked);
	if (e == BATON_OK)
		e = RUN(&s->db, SQL_LANE_ASK, 0, 0, lane);
	row->asks = row->asked = row->head = 0;
	return e == BATON_OK ? lane_settle(s, q, key) : e;
}

enum baton_err guest_ask(struct sqlite_store *s, struct queue_row *q, int64_t lane,
                         struct lane_row *row, const struct batch_row *b, bool tried)
{
	int64_t key = 0;
	enum baton_err e = BATON_OK;
	if (b && row->asked == b->seq && !tried)
		return BATON_OK;
	if (row->asks > 0 && (!b || row->asked != b->seq))
		e = ask_no_more(s, q, lane, row);
	if (e != BATON_OK || !b)
		return e;
	if (row->asks == 0 && row->head > 0)
		e = head_move(s, q, lane, row, NULL, false);
	if (e == BATON_OK)
		e = key_of(s, q, b, &key);
	if (e == BATON_OK)
		e = RUN(&s->db, SQL_GUEST_ADD, key, b->seq, lane, tried);
	if (e == BATON_OK)
		e = RUN(&s->db, SQL_LANE_ASK, key, b->seq, lane);
	return e == BATON_OK ? lane_settle(s, q, key) : e;
}

enum baton_err guest_let_go(struct sqlite_store *s, const struct queue_row *q,
                            const struct batch_row *b, int64_t *ret_key)
{
	*ret_key = 0;
	if (b->key_len == 0)
		return BATON_OK;
	enum baton_err e = lane_find(s, q->id, batch_row_guest(b), ret_key);
	if (e == BATON_OK && *ret_key > 0)
		e = RUN(&s->db, SQL_KEPT_DROP, *ret_key, b->seq);
	bool kept = e == BATON_OK && *ret_key > 0 && db_changes(&s->db) > 0;
	return kept ? RUN(&s->db, SQL_LANE_COUNT, -1, *ret_key) : e;
}
