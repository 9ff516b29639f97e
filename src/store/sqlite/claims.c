/* Claims as they are stored. */
#include "store/sqlite/claims.h"

#include <endian.h>
#include <string.h>

#include "base/fail.h"

static enum baton_err damaged(const struct db *db, int64_t head)
{
	return fail(BATON_STORAGE,
	            "store %s is damaged: claim %lld cannot be read; baton check says more",
	            db->path, (long long)head);
}

/* Its batches: those that are listed, or its head alone. */
static enum baton_err seqs_read(const struct query *q, struct arena *a, struct claim_row *c)
{
	struct baton_str list = column_str(q, 11);
	bool single = column_is_null(q, 11);
	c->count = single ? 1 : list.len / sizeof(int64_t);
	if (!single && (c->count == 0 || list.len % sizeof(int64_t) != 0))
		return damaged(q->db, c->head);
	c->seqs = arena_take(a, c->count, sizeof *c->seqs);
	if (!c->seqs)
		return fail_memory(c->count * sizeof *c->seqs, "a claim");
	c->seqs[0] = c->head;
	for (size_t i = 0; i < c->count && !single; i++) {
		uint64_t little;
		memcpy(&little, list.ptr + i * sizeof little, sizeof little);
		c->seqs[i] = (int64_t)le64toh(little);
	}
	return BATON_OK;
}

enum baton_err key_lines_read(const struct query *q, int column, int others, struct key_lines *ret)
{
	const struct baton_str list = column_str(q, others);
	size_t count = list.len / sizeof(int64_t);
	ret->list[0] = column_int(q, column);
	ret->count = ret->list[0] > 0;
	if (count >= BATON_KEYS_MAX || list.len % sizeof(int64_t) != 0)
		return fail(BATON_STORAGE,
		            "store %s is damaged: a list of keys has %zu bytes; baton check says "
		            "more",
		            q->db->path, list.len);
	for (size_t i = 0; i < count; i++) {
		uint64_t little;
		memcpy(&little, list.ptr + i * sizeof little, sizeof little);
		ret->list[ret->count++] = (int64_t)le64toh(little);
	}
	return BATON_OK;
}

void key_lines_bind_others(struct query *q, const struct key_lines *keys,
                           uint64_t room[BATON_KEYS_MAX])
{
	if (keys->count < 2) {
		query_null(q);
		return;
	}
	for (size_t i = 1; i < keys->count; i++)
		room[i - 1] = htole64((uint64_t)keys->list[i]);
	query_blob(q, room, (keys->count - 1) * sizeof *room);
}

static enum baton_err row_read(const struct query *q, struct arena *a, struct claim_row *c)
{
	*c = (struct claim_row){
		.head = column_int(q, 0),
		.fence = (uint64_t)column_int(q, 1),
		.owner = column_int(q, 3),
		.queue = column_int(q, 4),
		.claimed_at = {column_int(q, 5)},
		.expires_at = {column_int(q, 6)},
		.offered = column_int(q, 7) != 0,
		.tried = column_int(q, 8) != 0,
		.granter = (uint64_t)column_int(q, 9),
		.lane = column_int(q, 10),
		.lone = column_int(q, 12),
	};
	column_id(q, 2, &c->token);
	enum baton_err e = key_lines_read(q, 13, 14, &c->keys);
	return e == BATON_OK ? seqs_read(q, a, c) : e;
}

static enum baton_err load(struct sqlite_store *s, struct query *q, struct claim_row *ret,
                           bool *ret_found)
{
	enum baton_err bad = BATON_OK;
	*ret_found = query_row(q);
	if (*ret_found)
		bad = row_read(q, &s->scratch, ret);
	enum baton_err e = query_end(q);
	return e == BATON_OK ? bad : e;
}

enum baton_err claim_load(struct sqlite_store *s, const struct claim_name *name,
                          struct claim_row *ret, bool *ret_found)
{
	struct query q = query_begin(&s->db, SQL_CLAIM_READ);
	query_int(&q, (int64_t)name->head);
	query_int(&q, (int64_t)name->fence);
	return load(s, &q, ret, ret_found);
}

enum baton_err claim_of_single(struct sqlite_store *s, int64_t seq, struct claim_row *ret,
                               bool *ret_found)
{
	struct query q = query_begin(&s->db, SQL_CLAIM_OF_SINGLE);
	query_int(&q, seq);
	return load(s, &q, ret, ret_found);
}

struct claim_rows {
	struct claim_row *rows; /* the scratch's */
	size_t count, cap;
};

/* Room for one more. */
static enum baton_err rows_grow(struct sqlite_store *s, struct claim_rows *list)
{
	if (list->count < list->cap)
		return BATON_OK;
	size_t cap = list->cap ? list->cap * 2 : 4;
	struct claim_row *rows = arena_take(&s->scratch, cap, sizeof *rows);
	if (!rows)
		return fail_memory(cap * sizeof *rows, "claims");
	if (list->count > 0)
		memcpy(rows, list->rows, list->count * sizeof *rows);
	list->rows = rows;
	list->cap = cap;
	return BATON_OK;
}

static enum baton_err claims_list(struct sqlite_store *s, enum sql which, int64_t lane,
                                  struct claim_row **ret_rows, size_t *ret_count)
{
	struct claim_rows list = {.count = 0};
	enum baton_err bad = BATON_OK;
	struct query q = query_begin(&s->db, which);
	query_int(&q, lane);
	while (bad == BATON_OK && query_row(&q)) {
		bad = rows_grow(s, &list);
		if (bad == BATON_OK)
			bad = row_read(&q, &s->scratch, &list.rows[list.count++]);
	}
	enum baton_err e = query_end(&q);
	*ret_rows = list.rows;
	*ret_count = list.count;
	return e == BATON_OK ? bad : e;
}

enum baton_err claims_of_lane(struct sqlite_store *s, int64_t lane, struct claim_row **ret_rows,
                              size_t *ret_count)
{
	return claims_list(s, SQL_CLAIM_OF_LANE, lane, ret_rows, ret_count);
}

enum baton_err claims_offered(struct sqlite_store *s, int64_t lane, struct claim_row **ret_rows,
                              size_t *ret_count)
{
	return claims_list(s, SQL_CLAIM_OFFERED, lane, ret_rows, ret_count);
}

enum baton_err claims_late_of_key(struct sqlite_store *s, int64_t key, struct claim_row **ret_rows,
                                  size_t *ret_count)
{
	return claims_list(s, SQL_CLAIM_LATE_OF_KEY, key, ret_rows, ret_count);
}

bool claim_row_has(const struct claim_row *c, int64_t seq)
{
	for (size_t i = 0; i < c->count; i++) {
		if (c->seqs[i] == seq)
			return true;
	}
	return false;
}

static enum baton_err first_claimed(struct query q, struct arena *a, bool live, int64_t *ret_seq,
                                    uint64_t *ret_count)
{
	enum baton_err bad = BATON_OK;
	struct claim_row c;
	*ret_seq = 0;
	*ret_count = 0;
	while (bad == BATON_OK && query_row(&q)) {
		bad = row_read(&q, a, &c);
		if (bad != BATON_OK || (live && c.offered))
			continue;
		++*ret_count;
		if (*ret_seq == 0 || c.seqs[0] < *ret_seq)
			*ret_seq = c.seqs[0];
	}
	enum baton_err e = query_end(&q);
	return e == BATON_OK ? bad : e;
}

enum baton_err claims_first_of(struct query q, struct arena *a, int64_t *ret_seq,
                               uint64_t *ret_count)
{
	return first_claimed(q, a, true, ret_seq, ret_count);
}

enum baton_err claims_first(struct db *db, struct arena *a, int64_t lane, bool live,
                            int64_t *ret_seq)
{
	uint64_t count;
	struct query q = query_begin(db, SQL_CLAIM_OF_LANE);
	query_int(&q, lane);
	return first_claimed(q, a, live, ret_seq, &count);
}

enum baton_err claims_first_of_key(struct db *db, struct arena *a, int64_t key, int64_t *ret_seq)
{
	uint64_t count;
	struct query q = query_begin(db, SQL_CLAIM_OF_KEY);
	query_int(&q, key);
	return first_claimed(q, a, true, ret_seq, &count);
}

enum baton_err claim_wants_cancel(struct db *db, const struct claim_row *c, bool *ret)
{
	enum baton_err e = BATON_OK;
	*ret = false;
	for (size_t i = 0; i < c->count && c->tried && e == BATON_OK && !*ret; i++) {
		struct trouble t;
		e = trouble_load(db, c->seqs[i], &t);
		*ret = e == BATON_OK && t.cancel;
	}
	return e;
}

enum baton_err claims_to_cancel(struct db *db, uint64_t runner, struct baton_claim_id *ids,
                                size_t max, size_t *ret_count)
{
	struct arena a;
	enum baton_err bad = BATON_OK;
	size_t count = 0;
	arena_init(&a, baton_alloc_libc());
	struct query q = query_begin(db, SQL_CLAIM_CANCELS);
	query_int(&q, (int64_t)runner);
	while (bad == BATON_OK && count < max && query_row(&q)) {
		struct claim_row c;
		bool cancel = false;
		bad = row_read(&q, &a, &c);
		if (bad == BATON_OK)
			bad = claim_wants_cancel(db, &c, &cancel);
		if (bad == BATON_OK && cancel)
			claim_name_print(&(struct claim_name){(uint64_t)c.head, c.fence},
			                 ids[count++].text);
	}
	enum baton_err e = query_end(&q);
	arena_done(&a);
	*ret_count = count;
	return e == BATON_OK ? bad : e;
}

/* The one of a query's claims that has the batch. */
static enum baton_err pick(struct query *q, struct arena *a, int64_t seq, struct claim_row *ret,
                           bool *ret_found)
{
	enum baton_err bad = BATON_OK;
	*ret_found = false;
	while (bad == BATON_OK && !*ret_found && query_row(q)) {
		bad = row_read(q, a, ret);
		*ret_found = bad == BATON_OK && claim_row_has(ret, seq);
	}
	enum baton_err e = query_end(q);
	return e == BATON_OK ? bad : e;
}

enum baton_err claim_of_batch(struct db *db, struct arena *a, const struct batch_row *b,
                              struct claim_row *ret, bool *ret_found)
{
	int64_t lane = 0;
	*ret_found = false;
	/* A key may have many claims, mostly of one batch each. */
	if (line_is_keyed(batch_row_line(b))) {
		struct query single = query_begin(db, SQL_CLAIM_OF_SINGLE);
		query_int(&single, b->seq);
		enum baton_err e = pick(&single, a, b->seq, ret, ret_found);
		if (e != BATON_OK || *ret_found)
			return e;
	}
	if (b->lane_len > 0) {
		struct query find = query_begin(db, SQL_LANE_FIND);
		query_int(&find, b->queue);
		query_text(&find, batch_row_line(b));
		lane = query_row(&find) ? column_int(&find, 0) : 0;
		enum baton_err e = query_end(&find);
		if (e != BATON_OK || lane == 0)
			return e;
	}
	struct query q = query_begin(db, lane > 0 ? SQL_CLAIM_OF_LANE : SQL_CLAIM_OF_SINGLE);
	query_int(&q, lane > 0 ? lane : b->seq);
	return pick(&q, a, b->seq, ret, ret_found);
}

enum baton_err claim_has(struct db *db, const struct batch_row *b, bool *ret)
{
	struct arena a;
	struct claim_row c;
	arena_init(&a, baton_alloc_libc());
	enum baton_err e = claim_of_batch(db, &a, b, &c, ret);
	arena_done(&a);
	return e;
}

/* NULL for the head alone. */
static enum baton_err bind_seqs(struct sqlite_store *s, struct query *q, const struct claim_row *c)
{
	if (c->count == 1 && c->seqs[0] == c->head) {
		query_null(q);
		return BATON_OK;
	}
	uint64_t *list = arena_take(&s->scratch, c->count, sizeof *list);
	if (!list)
		return fail_memory(c->count * sizeof *list, "a claim");
	for (size_t i = 0; i < c->count; i++)
		list[i] = htole64((uint64_t)c->seqs[i]);
	query_blob(q, list, c->count * sizeof *list);
	return BATON_OK;
}

/* How many claims an owner has, so that it is known when it can be forgotten. */
static enum baton_err owner_count(struct sqlite_store *s, int64_t owner, int64_t change)
{
	return books_owner(&s->books, &s->db, owner, change, s->now);
}

enum baton_err claim_write(struct sqlite_store *s, const struct claim_row *c)
{
	struct query q = query_begin(&s->db, SQL_CLAIM_ADD);
	query_int(&q, c->head);
	query_int(&q, (int64_t)c->fence);
	query_blob(&q, c->token.bytes, sizeof c->token.bytes);
	query_int(&q, c->owner);
	query_int(&q, c->queue);
	query_int(&q, c->claimed_at.ms);
	query_int(&q, c->expires_at.ms);
	query_int(&q, c->offered);
	query_int(&q, c->tried);
	query_int(&q, (int64_t)c->granter);
	if (c->lane > 0)
		query_int(&q, c->lane);
	else
		query_null(&q);
	enum baton_err e = bind_seqs(s, &q, c);
	if (c->lone != 0)
		query_int(&q, c->lone);
	else
		query_null(&q);
	uint64_t room[BATON_KEYS_MAX];
	if (c->keys.count > 0)
		query_int(&q, c->keys.list[0]);
	else
		query_null(&q);
	key_lines_bind_others(&q, &c->keys, room);
	enum baton_err run = query_run(&q);
	return e == BATON_OK ? run : e;
}

/* Each key that it holds is held once more, or once less; of a lane nothing is counted. */
static enum baton_err count_holds(struct sqlite_store *s, const struct claim_row *c, int64_t change)
{
	enum baton_err e = BATON_OK;
	if (c->keys.count == 0)
		return c->lane > 0 ? RUN(&s->db, SQL_LANE_COUNT, change, c->lane) : e;
	for (size_t i = 0; i < c->keys.count && e == BATON_OK; i++)
		e = RUN(&s->db, SQL_LANE_COUNT, change, c->keys.list[i]);
	return e;
}

/* The keys beside its first one, where they are found by key. */
static enum baton_err write_held(struct sqlite_store *s, const struct claim_row *c, enum sql how)
{
	enum baton_err e = BATON_OK;
	for (size_t i = 1; i < c->keys.count && e == BATON_OK; i++)
		e = RUN(&s->db, how, c->keys.list[i], c->head, (int64_t)c->fence);
	return e;
}

enum baton_err claim_add(struct sqlite_store *s, const struct claim_row *c)
{
	enum baton_err e = claim_write(s, c);
	if (e == BATON_OK)
		e = write_held(s, c, SQL_HELD_ADD);
	if (e == BATON_OK)
		e = count_holds(s, c, 1);
	return e == BATON_OK ? owner_count(s, c->owner, 1) : e;
}

enum baton_err claim_drop(struct sqlite_store *s, const struct claim_row *c)
{
	enum baton_err e = RUN(&s->db, SQL_CLAIM_DROP, c->head, (int64_t)c->fence);
	s->freed = true;
	if (e == BATON_OK)
		e = write_held(s, c, SQL_HELD_DROP);
	if (e == BATON_OK && !c->offered)
		e = count_holds(s, c, -1);
	if (e == BATON_OK && c->lone != 0)
		e = RUN(&s->db, SQL_LONE_DROP, c->lone);
	return e == BATON_OK ? owner_count(s, c->owner, -1) : e;
}

enum baton_err claim_shrink(struct sqlite_store *s, struct claim_row *c, const int64_t *gone,
                            size_t count)
{
	size_t left = 0, next = 0;
	for (size_t i = 0; i < c->count; i++) {
		if (next < count && gone[next] == c->seqs[i])
			next++;
		else
			c->seqs[left++] = c->seqs[i];
	}
	c->count = left;
	if (left == 0)
		return claim_drop(s, c);
	struct query q = query_begin(&s->db, SQL_CLAIM_REST);
	enum baton_err e = bind_seqs(s, &q, c);
	query_int(&q, c->head);
	query_int(&q, (int64_t)c->fence);
	enum baton_err run = query_run(&q);
	return e == BATON_OK ? run : e;
}

static bool owner_equal(const struct baton_owner *a, const struct baton_owner *b)
{
	return baton_id_equal(&a->incarnation, &b->incarnation) &&
	       baton_id_equal(&a->boot, &b->boot) && a->pid_ns == b->pid_ns &&
	       a->start == b->start && a->pid == b->pid && strcmp(a->id, b->id) == 0;
}

static enum baton_err owner_add(struct sqlite_store *s, struct baton_str text, int64_t *ret)
{
	struct query q = query_begin(&s->db, SQL_OWNER_ADD);
	query_text(&q, text);
	query_int(&q, s->now.ms);
	*ret = query_row(&q) ? column_int(&q, 0) : 0;
	return query_run(&q);
}

enum baton_err owner_number(struct sqlite_store *s, const struct baton_owner *owner, int64_t *ret)
{
	char text[BATON_OWNER_TEXT];
	*ret = s->books.asker_number;
	if (*ret > 0 && owner_equal(owner, &s->books.asker))
		return BATON_OK;
	struct baton_str str = baton_str_z(baton_owner_print(owner, text));
	struct query q = query_begin(&s->db, SQL_OWNER_FIND);
	query_text(&q, str);
	*ret = query_row(&q) ? column_int(&q, 0) : 0;
	enum baton_err e = query_end(&q);
	if (e == BATON_OK && *ret == 0)
		e = owner_add(s, str, ret);
	if (e == BATON_OK) {
		s->books.asker = *owner;
		s->books.asker_number = *ret;
	}
	return e;
}

enum baton_err owner_load(struct db *db, int64_t number, struct baton_owner *ret)
{
	struct query q = query_begin(db, SQL_OWNER_READ);
	query_int(&q, number);
	bool found = query_row(&q) && baton_owner_parse(column_str(&q, 0), ret) == BATON_OK;
	enum baton_err e = query_end(&q);
	if (e == BATON_OK && !found)
		e = fail(BATON_STORAGE, "store %s is damaged: owner %lld cannot be read", db->path,
		         (long long)number);
	return e;
}
