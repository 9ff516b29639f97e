/* Keys that one batch alone has. */
#include "store/sqlite/lone.h"

#include <endian.h>
#include <string.h>

#include "base/hash.h"
#include "queue/policy.h"
#include "queue/rate.h"
#include "store/sqlite/lanes.h"

/* Always the same, in a copy too. Who finds keys that collide gains nothing: they have lines. */
int64_t lone_hash(int64_t queue, struct baton_str line)
{
	static const struct baton_id seed;
	char text[sizeof(uint64_t) + LINE_NAME_MAX];
	const uint64_t number = htole64((uint64_t)queue);
	memcpy(text, &number, sizeof number);
	memcpy(text + sizeof number, line.ptr, line.len);
	int64_t hash = (int64_t)hash_bytes(&seed, text, sizeof number + line.len);
	return hash != 0 ? hash : 1;
}

/* What the row of a hash is about. */
enum found {
	FOUND_NONE = 1, /* there is none, or it is of another key */
	FOUND_DONE,     /* there was one, but that job is done    */
	FOUND_IT
};

/* The batch that the row of the hash is about; it leaves the row of jobs that it may stand in. */
static enum baton_err find(struct sqlite_store *s, int64_t queue, struct baton_str line,
                           struct batch_row *ret, enum found *ret_found)
{
	const int64_t hash = lone_hash(queue, line);
	int64_t seq = 0;
	*ret_found = FOUND_NONE;
	enum baton_err e = FIND(&s->db, SQL_LONE_FIND, &seq, hash);
	if (e != BATON_OK || seq == 0)
		return e;
	bool there, left = false;
	e = batch_load(&s->db, seq, ret, &there);
	if (e == BATON_OK && !there)
		e = bulk_leave(s, seq, &left);
	if (e == BATON_OK && !there && !left) {
		*ret_found = FOUND_DONE;
		return RUN(&s->db, SQL_LONE_END, hash, seq);
	}
	if (e == BATON_OK && left)
		e = batch_need(&s->db, seq, ret);
	if (e == BATON_OK && ret->queue == queue && baton_str_equal(batch_row_line(ret), line))
		*ret_found = FOUND_IT;
	return e;
}

static enum baton_err melt_claimed(struct sqlite_store *s, const struct batch_row *b,
                                   struct claim_row *c)
{
	enum baton_err e = lane_make(s, b, &c->lane);
	if (e == BATON_OK)
		e = RUN(&s->db, SQL_LONE_DROP, c->lone);
	if (e == BATON_OK)
		e = RUN(&s->db, SQL_CLAIM_MELT, c->lane, c->head, (int64_t)c->fence);
	c->lone = 0;
	return e == BATON_OK ? RUN(&s->db, SQL_LANE_COUNT, 1, c->lane) : e;
}

static enum baton_err melt_ready(struct sqlite_store *s, struct queue_row *q,
                                 const struct batch_row *b)
{
	int64_t lane;
	enum baton_err e = lane_make(s, b, &lane);
	if (e == BATON_OK)
		e = RUN(&s->db, SQL_LONE_DROP, lone_hash(b->queue, batch_row_line(b)));
	if (e == BATON_OK)
		e = head_drop(s, q, b->shard, batch_row_rank(b), b->seq);
	if (e == BATON_OK)
		e = RUN(&s->db, SQL_LINE_ADD, lane, b->seq, 0);
	books_waiting(q, 1);
	return e == BATON_OK ? lane_settle(s, q, lane) : e;
}

static enum baton_err melt(struct sqlite_store *s, struct queue_row *q, const struct batch_row *b)
{
	struct claim_row c;
	bool claimed;
	s->melted++;
	enum baton_err e = claim_of_single(s, b->seq, &c, &claimed);
	if (e != BATON_OK)
		return e;
	return claimed ? melt_claimed(s, b, &c) : melt_ready(s, q, b);
}

/* Unless its key has a line, or somebody else has the hash. */
static enum baton_err take(struct sqlite_store *s, const struct batch_row *b, bool *ret_taken)
{
	struct query add = query_begin(&s->db, SQL_LONE_ADD);
	query_int(&add, lone_hash(b->queue, batch_row_line(b)));
	query_int(&add, b->seq);
	query_int(&add, b->queue);
	query_text(&add, batch_row_line(b));
	enum baton_err e = query_run(&add);
	*ret_taken = e == BATON_OK && db_changes(&s->db) > 0;
	return e;
}

enum baton_err lone_enter(struct sqlite_store *s, struct queue_row *q, const struct batch_row *b,
                          bool tried, bool *ret_taken)
{
	struct batch_row other;
	const struct baton_str line = batch_row_line(b);
	const bool may = !tried && !line_takes_turns(line, &q->policy) &&
	                 !line_is_rated(line, &q->policy) && !line_is_sited(line, NULL) &&
	                 !policy_has_class(&q->policy);
	enum found found = FOUND_NONE;
	*ret_taken = false;
	enum baton_err e = bulk_key_leave(s, lone_hash(b->queue, line));
	if (e == BATON_OK && may)
		e = take(s, b, ret_taken);
	if (e == BATON_OK && !*ret_taken)
		e = find(s, b->queue, line, &other, &found);
	if (e == BATON_OK && found == FOUND_DONE && may)
		e = take(s, b, ret_taken);
	if (e == BATON_OK && found == FOUND_IT)
		e = melt(s, q, &other);
	return e == BATON_OK && *ret_taken ? head_add(s, q, b, 0, false) : e;
}

enum baton_err lone_find(struct sqlite_store *s, int64_t queue, struct baton_str line,
                         int64_t *ret_seq)
{
	struct batch_row b;
	enum found found;
	enum baton_err e = find(s, queue, line, &b, &found);
	*ret_seq = e == BATON_OK && found == FOUND_IT ? b.seq : 0;
	return e;
}

enum baton_err lone_melt(struct sqlite_store *s, struct queue_row *q, const struct batch_row *b)
{
	int64_t seq = 0;
	if (!line_is_keyed(batch_row_line(b)))
		return BATON_OK;
	enum baton_err e = lone_find(s, b->queue, batch_row_line(b), &seq);
	return e == BATON_OK && seq == b->seq ? melt(s, q, b) : e;
}

enum baton_err lone_melt_key(struct sqlite_store *s, struct queue_row *q, struct baton_str line)
{
	struct batch_row b;
	enum found found = FOUND_NONE;
	enum baton_err e = bulk_key_leave(s, lone_hash(q->id, line));
	if (e == BATON_OK)
		e = find(s, q->id, line, &b, &found);
	return e == BATON_OK && found == FOUND_IT ? melt(s, q, &b) : e;
}

enum baton_err lone_melt_claim(struct sqlite_store *s, struct claim_row *c)
{
	struct batch_row b;
	if (c->lone == 0)
		return BATON_OK;
	enum baton_err e = batch_need(&s->db, c->seqs[0], &b);
	return e == BATON_OK ? melt_claimed(s, &b, c) : e;
}
