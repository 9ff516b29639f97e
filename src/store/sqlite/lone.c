/* Keys that one batch alone has. */
#include "store/sqlite/lone.h"

#include <endian.h>
#include <string.h>

#include "base/hash.h"
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

/* The batch that the row of the hash is about. *ret_found false: there is none, or it is of another
 * key. */
static enum baton_err find(struct sqlite_store *s, int64_t queue, struct baton_str line,
                           struct batch_row *ret, bool *ret_found)
{
	int64_t seq = 0;
	*ret_found = false;
	enum baton_err e = FIND(&s->db, SQL_LONE_FIND, &seq, lone_hash(queue, line));
	if (e != BATON_OK || seq == 0)
		return e;
	e = batch_need(&s->db, seq, ret);
	*ret_found =
		e == BATON_OK && ret->queue == queue && baton_str_equal(batch_row_line(ret), line);
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
	return e == BATON_OK ? lane_settle(s, q, lane) : e;
}

static enum baton_err melt(struct sqlite_store *s, struct queue_row *q, const struct batch_row *b)
{
	struct claim_row c;
	bool claimed;
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
	bool found;
	enum baton_err e = BATON_OK;
	*ret_taken = false;
	if (!tried && !line_takes_turns(batch_row_line(b), &q->policy) &&
	    !line_is_rated(batch_row_line(b), &q->policy))
		e = take(s, b, ret_taken);
	if (e != BATON_OK || *ret_taken)
		return e == BATON_OK ? head_add(s, q, b, 0, false) : e;
	e = find(s, b->queue, batch_row_line(b), &other, &found);
	return e == BATON_OK && found ? melt(s, q, &other) : e;
}

enum baton_err lone_find(struct sqlite_store *s, int64_t queue, struct baton_str line,
                         int64_t *ret_seq)
{
	struct batch_row b;
	bool found;
	enum baton_err e = find(s, queue, line, &b, &found);
	*ret_seq = e == BATON_OK && found ? b.seq : 0;
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
	bool found;
	enum baton_err e = find(s, q->id, line, &b, &found);
	return e == BATON_OK && found ? melt(s, q, &b) : e;
}

enum baton_err lone_melt_claim(struct sqlite_store *s, struct claim_row *c)
{
	struct batch_row b;
	if (c->lone == 0)
		return BATON_OK;
	enum baton_err e = batch_need(&s->db, c->seqs[0], &b);
	return e == BATON_OK ? melt_claimed(s, &b, c) : e;
}
