/* Keys that count for each host, or each process, in an SQLite file. */
#include "store/sqlite/sites.h"

#include <string.h>

#include "queue/line.h"
#include "queue/policy.h"
#include "store/sqlite/claims.h"
#include "store/sqlite/rates.h"

enum baton_err sites_uses(struct sqlite_store *s, const struct queue_row *q, uint64_t runner,
                          struct key_uses *uses)
{
	enum baton_err bad = BATON_OK;
	if (!policy_has_sites(&q->policy))
		return BATON_OK;
	struct query read = query_begin(&s->db, SQL_SITE_USES);
	query_int(&read, (int64_t)runner);
	query_int(&read, q->policy.key_scope);
	query_int(&read, q->id);
	while (bad == BATON_OK && query_row(&read)) {
		struct baton_str line = column_str(&read, 0);
		if (line_is_sited(line, NULL))
			bad = uses_add(uses, q, line, (uint64_t)column_int(&read, 1));
	}
	enum baton_err e = query_end(&read);
	return e == BATON_OK ? bad : e;
}

enum baton_err sites_are_full(struct sqlite_store *s, const struct queue_row *q, int64_t lane,
                              const struct baton_owner *owner, const struct key_uses *uses,
                              bool *ret)
{
	struct query read = query_begin(&s->db, SQL_LANE_NAME);
	enum baton_err bad = BATON_OK;
	int64_t until = 0;
	query_int(&read, lane);
	*ret = false;
	if (query_row(&read)) {
		*ret = uses_are_full(uses, q, &q->policy, column_str(&read, 0));
		if (!*ret)
			bad = rates_until(&s->db, q, column_str(&read, 0), owner, &until);
	}
	*ret = *ret || until > 0;
	enum baton_err e = query_end(&read);
	return e == BATON_OK ? bad : e;
}

enum baton_err sites_count(struct sqlite_store *s, const struct queue_row *q, int64_t lane,
                           struct key_uses *uses)
{
	enum baton_err bad = BATON_OK;
	struct query read = query_begin(&s->db, SQL_LANE_NAME);
	query_int(&read, lane);
	if (query_row(&read) && line_is_sited(column_str(&read, 0), NULL))
		bad = uses_add(uses, q, column_str(&read, 0), 1);
	enum baton_err e = query_end(&read);
	return e == BATON_OK ? bad : e;
}

/* Between which names the lines of a key in all shards are. */
struct span {
	char from[LINE_NAME_MAX], to[LINE_NAME_MAX];
};

/* `span` is used until the query ends. */
static void query_span(struct query *q, struct baton_str key, struct span *span)
{
	memcpy(span->from, key.ptr, key.len);
	memcpy(span->to, key.ptr, key.len);
	span->from[key.len] = LINE_SITED;
	span->to[key.len] = LINE_SITED + 1;
	query_text(q, (struct baton_str){span->from, key.len + 1});
	query_text(q, (struct baton_str){span->to, key.len + 1});
}

enum baton_err sites_wait(struct sqlite_store *s, const struct queue_row *q, struct baton_str line,
                          int64_t most, int64_t *ret)
{
	struct span span;
	struct query read = query_begin(&s->db, SQL_LINES_COUNT);
	query_int(&read, q->id);
	query_span(&read, line, &span);
	query_int(&read, most);
	*ret = query_row(&read) ? column_int(&read, 0) : 0;
	return query_end(&read);
}

enum baton_err sites_tell(struct sqlite_store *s, const struct queue_row *q, struct baton_str line)
{
	struct span span;
	struct query read = query_begin(&s->db, SQL_LINES_SHARDS);
	query_int(&read, q->id);
	query_span(&read, line, &span);
	query_int(&read, NEWS_MAX);
	while (query_row(&read))
		sqlite_tell(s, q, line_lane(line), (uint32_t)column_int(&read, 0));
	return query_end(&read);
}

enum baton_err sites_holder(struct db *db, struct arena *a, const struct queue_row *q,
                            struct baton_str line, uint64_t runner, int64_t *ret_seq)
{
	struct span span;
	uint64_t count = 0;
	struct query read = query_begin(db, SQL_SITE_CLAIMS);
	query_int(&read, (int64_t)runner);
	query_int(&read, q->policy.key_scope);
	query_int(&read, q->id);
	query_span(&read, line_counted(line), &span);
	enum baton_err e = claims_first_of(read, a, ret_seq, &count);
	if (count < q->policy.key_limit)
		*ret_seq = 0;
	return e;
}
