/* Lanes whose first batch has a key. */
#include "store/sqlite/guests.h"

#include <string.h>

#include "base/fail.h"
#include "queue/place.h"
#include "store/sqlite/lone.h"
#include "store/sqlite/rates.h"

enum baton_err guest_first(struct sqlite_store *s, int64_t key, struct guest *ret)
{
	struct query q = query_begin(&s->db, SQL_GUEST_FIRST);
	query_int(&q, key);
	enum baton_err bad = BATON_OK;
	*ret = (struct guest){.seq = 0};
	if (query_row(&q)) {
		ret->seq = column_int(&q, 0);
		ret->lane = column_int(&q, 1);
		ret->tried = column_int(&q, 2) != 0;
		bad = key_lines_read(&q, 3, 4, &ret->keys);
	}
	enum baton_err e = query_end(&q);
	return e == BATON_OK ? bad : e;
}

/* Whether it is the first that asks for the key of that line, which is open. */
static enum baton_err is_first_of(struct sqlite_store *s, const struct queue_row *q, int64_t key,
                                  int64_t seq, bool *ret)
{
	struct lane_row row;
	struct guest guest = {.seq = 0};
	int64_t first = 0;
	bool tried;
	enum baton_err e = lane_read(&s->db, key, &row);
	bool open = false;
	if (e == BATON_OK)
		e = key_is_open(s, q, key, &row, &open);
	if (open)
		e = guest_first(s, key, &guest);
	if (e == BATON_OK && open)
		e = lane_first(s, key, &first, &tried);
	*ret = open && guest.seq == seq && (first == 0 || first > seq);
	return e;
}

enum baton_err guest_is_first(struct sqlite_store *s, const struct queue_row *q, int64_t key,
                              const struct guest *guest, bool *ret)
{
	enum baton_err e = BATON_OK;
	*ret = true;
	for (size_t i = 0; i < guest->keys.count && e == BATON_OK && *ret; i++) {
		if (guest->keys.list[i] != key)
			e = is_first_of(s, q, guest->keys.list[i], guest->seq, ret);
	}
	return e;
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

bool guests_is_put_off(const struct sqlite_store *s, int64_t key)
{
	return s->waiting.on && is_put_off(&s->waiting, key);
}

bool guests_are_off(const struct sqlite_store *s, const struct queue_row *q)
{
	return s->waiting.on && q->guests;
}

enum baton_err guests_put_off(struct sqlite_store *s, int64_t queue, int64_t key)
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
	w->list[w->count++] = (struct waiting_key){queue, key};
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
			e = lane_settle_own(s, q, w->key);
	}
	return e;
}

/* The lane has the head of its keys no more. If it asks for others now, those are settled by
 * whoever made it do so. */
static enum baton_err guest_lose(struct sqlite_store *s, struct queue_row *q, int64_t lane)
{
	struct lane_row row;
	enum baton_err e = lane_read(&s->db, lane, &row);
	if (e == BATON_OK)
		e = head_move(s, q, lane, &row, NULL, false);
	for (size_t i = 0; i < row.asks.count && e == BATON_OK; i++)
		e = RUN(&s->db, SQL_LANE_NO_GUEST, row.asks.list[i], lane);
	return e;
}

/* Another one of the keys of a lane that gets their head: who had it, does not any more. */
static enum baton_err key_yield(struct sqlite_store *s, struct queue_row *q, int64_t key,
                                int64_t lane)
{
	struct lane_row row;
	enum baton_err e = lane_read(&s->db, key, &row);
	if (e == BATON_OK && row.guest > 0 && row.guest != lane)
		e = guest_lose(s, q, row.guest);
	if (e == BATON_OK && row.head > 0)
		e = head_move(s, q, key, &row, NULL, false);
	return e == BATON_OK && row.guest != lane ? RUN(&s->db, SQL_LANE_GUEST, lane, key) : e;
}

/* Gives the lane the head of its keys. */
static enum baton_err guest_win(struct sqlite_store *s, struct queue_row *q, int64_t key,
                                const struct guest *guest)
{
	struct lane_row row;
	struct batch_row b;
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < guest->keys.count && e == BATON_OK; i++) {
		if (guest->keys.list[i] != key)
			e = key_yield(s, q, guest->keys.list[i], guest->lane);
	}
	if (e == BATON_OK)
		e = lane_read(&s->db, guest->lane, &row);
	if (e == BATON_OK)
		e = batch_need(&s->db, guest->seq, &b);
	return e == BATON_OK ? head_move(s, q, guest->lane, &row, &b, guest->tried) : e;
}

enum baton_err guest_move(struct sqlite_store *s, struct queue_row *q, int64_t key,
                          const struct lane_row *row, const struct guest *guest)
{
	int64_t lane = guest ? guest->lane : 0;
	enum baton_err e = BATON_OK;
	if (row->guest > 0 && row->guest != lane)
		e = guest_lose(s, q, row->guest);
	if (e == BATON_OK && lane > 0)
		e = guest_win(s, q, key, guest);
	return e == BATON_OK && lane != row->guest ? RUN(&s->db, SQL_LANE_GUEST, lane, key) : e;
}

/* The line of a key that a batch has beside its lane. One that a job alone has gets a line. */
static enum baton_err key_of(struct sqlite_store *s, struct queue_row *q, struct baton_str name,
                             int64_t *ret)
{
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
	return e == BATON_OK ? rates_begin(s, q, name, *ret) : e;
}

/* Those of all that it has. */
static enum baton_err keys_of(struct sqlite_store *s, struct queue_row *q,
                              const struct batch_row *b, struct key_lines *ret)
{
	struct baton_str rest = batch_row_guest(b), name;
	enum baton_err e = BATON_OK;
	ret->count = 0;
	while (e == BATON_OK && ret->count < BATON_KEYS_MAX && lines_next(&rest, &name))
		e = key_of(s, q, name, &ret->list[ret->count++]);
	return e;
}

static enum baton_err write_asks(struct sqlite_store *s, int64_t lane, const struct key_lines *keys,
                                 int64_t asked)
{
	uint64_t room[BATON_KEYS_MAX];
	struct query q = query_begin(&s->db, SQL_LANE_ASK);
	query_int(&q, keys->count > 0 ? keys->list[0] : 0);
	query_int(&q, asked);
	key_lines_bind_others(&q, keys, room);
	query_int(&q, lane);
	return query_run(&q);
}

static enum baton_err settle_all(struct sqlite_store *s, struct queue_row *q,
                                 const struct key_lines *keys)
{
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < keys->count && e == BATON_OK; i++)
		e = lane_settle(s, q, keys->list[i]);
	return e;
}

/* Its head, if it had it, was that of the keys. */
static enum baton_err ask_no_more(struct sqlite_store *s, struct queue_row *q, int64_t lane,
                                  struct lane_row *row)
{
	const struct key_lines keys = row->asks;
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < keys.count && e == BATON_OK; i++)
		e = RUN(&s->db, SQL_GUEST_DROP, keys.list[i], row->asked);
	books_waiting(q, row->head > 0 ? 0 : -1);
	row->asks.count = 0;
	row->asked = row->head = 0;
	if (e == BATON_OK)
		e = write_asks(s, lane, &row->asks, 0);
	return e == BATON_OK ? settle_all(s, q, &keys) : e;
}

enum baton_err guest_ask(struct sqlite_store *s, struct queue_row *q, int64_t lane,
                         struct lane_row *row, const struct batch_row *b, bool tried)
{
	struct key_lines keys = {.count = 0};
	enum baton_err e = BATON_OK;
	if (b && row->asked == b->seq && !tried)
		return BATON_OK;
	if (row->asks.count > 0 && (!b || row->asked != b->seq))
		e = ask_no_more(s, q, lane, row);
	if (e != BATON_OK || !b)
		return e;
	if (row->asks.count == 0 && row->head > 0)
		e = head_move(s, q, lane, row, NULL, false);
	if (e == BATON_OK)
		e = keys_of(s, q, b, &keys);
	for (size_t i = 0; i < keys.count && e == BATON_OK; i++)
		e = RUN(&s->db, SQL_GUEST_ADD, keys.list[i], b->seq, lane, tried);
	if (row->asks.count == 0)
		books_waiting(q, 1);
	if (e == BATON_OK)
		e = write_asks(s, lane, &keys, b->seq);
	return e == BATON_OK ? settle_all(s, q, &keys) : e;
}

enum baton_err guest_lines(struct sqlite_store *s, const struct queue_row *q,
                           const struct batch_row *b, struct key_lines *ret)
{
	struct baton_str rest = batch_row_guest(b), name;
	enum baton_err e = BATON_OK;
	ret->count = 0;
	while (e == BATON_OK && ret->count < BATON_KEYS_MAX && lines_next(&rest, &name)) {
		int64_t key;
		e = lane_find(s, q->id, name, &key);
		if (e == BATON_OK && key > 0)
			ret->list[ret->count++] = key;
	}
	return e;
}

enum baton_err guest_let_go(struct sqlite_store *s, const struct queue_row *q,
                            const struct batch_row *b, struct key_lines *ret)
{
	enum baton_err e = guest_lines(s, q, b, ret);
	for (size_t i = 0; i < ret->count && e == BATON_OK; i++) {
		e = RUN(&s->db, SQL_KEPT_DROP, ret->list[i], b->seq);
		if (e == BATON_OK && db_changes(&s->db) > 0)
			e = RUN(&s->db, SQL_LANE_COUNT, -1, ret->list[i]);
	}
	return e;
}
