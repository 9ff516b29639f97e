/* The queues of an SQLite file. */
#include <string.h>

#include "base/fail.h"
#include "base/quote.h"
#include "store/sqlite/lanes.h"
#include "store/sqlite/sqlite.h"

struct set_args {
	struct baton_str name;
	const struct baton_queue_policy *policy;
	bool only_paused;
};

static enum baton_err change(struct sqlite_store *s, struct queue_row *q,
                             const struct baton_queue_policy *p)
{
	char shown[QUOTE_TEXT];
	if (q->policy.shards != p->shards)
		return fail(BATON_INVALID,
		            "queue %s has %u shards, and keeps them: it cannot have %u",
		            quote(queue_row_name(q), shown), q->policy.shards, p->shards);
	if (q->policy.mode != p->mode && q->tally.running > 0)
		return fail(BATON_BUSY,
		            "queue %s has %lld jobs running: its mode can be changed when there are "
		            "none",
		            quote(queue_row_name(q), shown), (long long)q->tally.running);
	enum baton_queue_mode mode = q->policy.mode;
	q->policy = *p;
	q->policy.mode = mode;
	return heads_mode(s, q, p->mode);
}

static enum baton_err set_run(void *store, void *args)
{
	struct sqlite_store *s = store;
	const struct set_args *a = args;
	struct queue_row *q;
	char shown[QUOTE_TEXT];
	enum baton_err e = books_queue(&s->books, &s->db, a->name, &q);
	if (e != BATON_OK)
		return e;
	if (!q && a->only_paused)
		return fail(BATON_NOT_FOUND, "there is no queue %s", quote(a->name, shown));
	if (!q)
		return books_queue_make(&s->books, &s->db, a->name, a->policy, &q);
	struct baton_queue_policy policy = a->only_paused ? q->policy : *a->policy;
	policy.paused = a->policy->paused;
	if (q->policy.paused && !policy.paused)
		sqlite_tell(s, q, (struct baton_str){NULL, 0}, 0);
	return change(s, q, &policy);
}

enum baton_err sqlite_queue_set(struct baton_store *store, struct baton_str name,
                                const struct baton_queue_policy *policy, bool only_paused)
{
	struct set_args args = {name, policy, only_paused};
	return sqlite_write((struct sqlite_store *)store, set_run, &args);
}

static void info_make(const struct queue_row *q, struct baton_queue_info *ret)
{
	*ret = (struct baton_queue_info){
		.policy = q->policy,
		.counts =
			{
				.ready = (uint64_t)q->tally.ready,
				.delayed = (uint64_t)q->tally.delayed,
				.running = (uint64_t)q->tally.running,
				.dead = (uint64_t)q->tally.dead,
				.done = (uint64_t)q->tally.done,
				.failed = (uint64_t)q->tally.failed,
			},
	};
	memcpy(ret->name, q->name, q->len + 1);
}

/* The oldest of the heads in one pool: the first of each priority. */
static enum baton_err oldest_in(struct sqlite_store *s, int64_t pool, struct baton_duration *ret)
{
	struct baton_store_time now = baton_store_now(&s->base);
	enum baton_err e = BATON_OK;
	for (int64_t rank = 0; rank <= BATON_PRIORITY_MAX && e == BATON_OK; rank++) {
		struct batch_row b;
		int64_t seq;
		bool found = false;
		e = FIND(&s->read, SQL_HEAD_OLDEST, &seq, pool, rank);
		if (e == BATON_OK && seq > 0)
			e = batch_load(&s->read, seq, &b, &found);
		if (!found)
			continue;
		struct baton_duration age = baton_store_time_sub(now, b.put_at);
		ret->ns = age.ns > ret->ns ? age.ns : ret->ns;
	}
	return e;
}

static enum baton_err oldest(struct sqlite_store *s, const struct queue_row *q,
                             struct baton_duration *ret)
{
	bool sharded = q->mixed || q->policy.mode == BATON_QUEUE_RUNNER;
	enum baton_err e = oldest_in(s, pool_open(q), ret);
	for (uint32_t i = 0; sharded && i < q->policy.shards && e == BATON_OK; i++)
		e = oldest_in(s, pool_shard(q, i), ret);
	return e;
}

enum baton_err sqlite_queue_list(struct baton_store *store, struct baton_str after,
                                 struct baton_queue_info *infos, size_t max, size_t *ret_count)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	size_t count = 0;
	enum baton_err e = BATON_OK;
	pthread_mutex_lock(&s->read_mu);
	while (count < max && e == BATON_OK) {
		struct queue_row row;
		struct query q = query_begin(&s->read, SQL_QUEUE_LIST);
		query_text(&q, after);
		query_int(&q, 1);
		bool found = query_row(&q);
		if (found)
			queue_row_read(&q, &row);
		e = query_end(&q);
		if (!found || e != BATON_OK)
			break;
		info_make(&row, &infos[count]);
		infos[count].counts.oldest.ns = 0;
		e = oldest(s, &row, &infos[count].counts.oldest);
		after = baton_str_z(infos[count].name);
		count++;
	}
	pthread_mutex_unlock(&s->read_mu);
	if (e == BATON_OK)
		*ret_count = count;
	return e;
}

enum baton_err sqlite_queue_get(struct baton_store *store, struct baton_str name,
                                struct baton_queue_info *ret_info)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	struct queue_row row;
	struct baton_duration age = {0};
	char shown[QUOTE_TEXT];
	pthread_mutex_lock(&s->read_mu);
	struct query q = query_begin(&s->read, SQL_QUEUE_READ);
	query_text(&q, name);
	bool found = query_row(&q);
	if (found)
		queue_row_read(&q, &row);
	enum baton_err e = query_end(&q);
	if (e == BATON_OK && found)
		e = oldest(s, &row, &age);
	pthread_mutex_unlock(&s->read_mu);
	if (e != BATON_OK)
		return e;
	if (!found)
		return fail(BATON_NOT_FOUND, "there is no queue %s", quote(name, shown));
	info_make(&row, ret_info);
	ret_info->counts.oldest = age;
	return BATON_OK;
}
