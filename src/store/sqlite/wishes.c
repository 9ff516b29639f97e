/* Which keys ready batches want that stand in lanes, or have several. */
#include "store/sqlite/wishes.h"

#include "base/fail.h"
#include "queue/line.h"

static enum baton_err each(struct sqlite_store *s, const struct queue_row *q,
                           const struct batch_row *b, enum sql sql)
{
	struct baton_str rest = batch_row_guest(b), line;
	enum baton_err e = BATON_OK;
	if (q->policy.key_waiting_max == 0)
		return BATON_OK;
	while (e == BATON_OK && lines_next(&rest, &line)) {
		struct query query = query_begin(&s->db, sql);
		query_int(&query, q->id);
		query_text(&query, line);
		query_int(&query, b->seq);
		e = query_run(&query);
	}
	return e;
}

enum baton_err wish_add(struct sqlite_store *s, const struct queue_row *q,
                        const struct batch_row *b)
{
	return each(s, q, b, SQL_WISH_ADD);
}

enum baton_err wish_drop(struct sqlite_store *s, const struct queue_row *q,
                         const struct batch_row *b)
{
	return each(s, q, b, SQL_WISH_DROP);
}

enum baton_err wish_count(struct sqlite_store *s, const struct queue_row *q, struct baton_str line,
                          int64_t most, int64_t *ret)
{
	*ret = 0;
	if (!q->guests || most <= 0)
		return BATON_OK;
	struct query query = query_begin(&s->db, SQL_WISH_COUNT);
	query_int(&query, q->id);
	query_text(&query, line);
	query_int(&query, most);
	if (query_row(&query))
		*ret = column_int(&query, 0);
	return query_end(&query);
}

#define PAGE 1000

struct place {
	int64_t lane, seq;
};

static enum baton_err page_read(struct sqlite_store *s, const struct queue_row *q,
                                struct place after, struct place *list, size_t *ret_count)
{
	struct query query = query_begin(&s->db, SQL_LINE_OF_LANES);
	size_t count = 0;
	query_int(&query, q->id);
	query_int(&query, after.lane);
	query_int(&query, after.seq);
	query_int(&query, PAGE);
	while (count < PAGE && query_row(&query))
		list[count++] = (struct place){column_int(&query, 0), column_int(&query, 1)};
	*ret_count = count;
	return query_end(&query);
}

/* What waits in the line of a lane may be claimed, or wait for its next attempt. */
static enum baton_err add_ready(struct sqlite_store *s, const struct queue_row *q, int64_t seq)
{
	struct batch_row b;
	struct baton_store_time due;
	enum baton_batch_state state = BATON_BATCH_GONE;
	enum baton_err e = batch_need(&s->db, seq, &b);
	if (e == BATON_OK && b.key_len > 0)
		e = batch_state(&s->db, &b, s->now, &state, &due);
	return e == BATON_OK && state == BATON_BATCH_READY ? wish_add(s, q, &b) : e;
}

static enum baton_err add_all(struct sqlite_store *s, const struct queue_row *q)
{
	struct place after = {0, 0}, *list = arena_take(&s->scratch, PAGE, sizeof *list);
	size_t count;
	if (!list)
		return fail_memory(PAGE * sizeof *list, "wishes");
	do {
		enum baton_err e = page_read(s, q, after, list, &count);
		for (size_t i = 0; i < count && e == BATON_OK; i++)
			e = add_ready(s, q, list[i].seq);
		if (e != BATON_OK)
			return e;
		after = count > 0 ? list[count - 1] : after;
	} while (count == PAGE);
	return BATON_OK;
}

enum baton_err wishes_change(struct sqlite_store *s, const struct queue_row *q, uint32_t was)
{
	bool had = was > 0, has = q->policy.key_waiting_max > 0;
	if (!q->guests || had == has)
		return BATON_OK;
	return has ? add_all(s, q) : RUN(&s->db, SQL_WISH_DROP_ALL, q->id);
}
