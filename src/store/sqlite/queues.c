/* The queues of an SQLite file. */
#include <string.h>

#include "queue/policy.h"
#include "store/refuse.h"
#include "store/sqlite/class.h"
#include "store/sqlite/lanes.h"
#include "store/sqlite/rates.h"
#include "store/sqlite/sqlite.h"
#include "store/sqlite/wishes.h"

struct set_args {
	struct baton_str name;
	const struct baton_queue_policy *policy;
	uint32_t fields;
	bool existing;
};

/* A policy that work with a lane and a key cannot be under: there has been none of that, or there
 * is no work any more. */
static enum baton_err leave_guests(struct queue_row *q, const struct baton_queue_policy *p)
{
	const struct tally *t = &q->tally;
	const char *against = q->guests ? policy_against_guests(p) : NULL;
	if (!against)
		return BATON_OK;
	if (t->ready + t->delayed + t->running + t->dead > 0)
		return refuse_for_guests(queue_row_name(q), against);
	q->guests = false;
	fence_reach_apart(&q->reach);
	q->changed = true;
	return BATON_OK;
}

static enum baton_err change(struct sqlite_store *s, struct queue_row *q,
                             const struct baton_queue_policy *p)
{
	const struct tally *t = &q->tally;
	const struct queue_load load = {.running = (uint64_t)t->running,
	                                .work = (uint64_t)(t->ready + t->delayed + t->running +
	                                                   t->dead)};
	enum baton_err e = refuse_change(queue_row_name(q), &q->policy, p, load);
	if (e == BATON_OK)
		e = refuse_class(queue_row_name(q), &q->policy, p,
		                 (uint64_t)(t->ready + t->delayed + t->running));
	if (e == BATON_OK)
		e = class_refuse(s, p, q->id);
	if (e == BATON_OK)
		e = leave_guests(q, p);
	if (e == BATON_OK)
		e = class_leave(s, q, p);
	if (e != BATON_OK)
		return e;
	if (q->policy.paused && !p->paused)
		sqlite_tell(s, q, (struct baton_str){NULL, 0}, 0);
	enum baton_queue_mode mode = q->policy.mode;
	bool other_turns = q->policy.key_fair != p->key_fair;
	const struct baton_key_rate was = q->policy.key_rate;
	uint32_t was_max = q->policy.key_waiting_max;
	bool other_rate = !rate_equal(&was, &p->key_rate);
	bool other_keys = q->policy.key_limit != p->key_limit || other_turns;
	bool now_held = q->policy.key_ttl.ns == 0 && p->key_ttl.ns > 0;
	q->policy = *p;
	q->policy.mode = mode;
	e = heads_mode(s, q, p->mode);
	if (e == BATON_OK && other_turns)
		e = RUN(&s->db, SQL_LANE_NO_TURNS, q->id);
	if (e == BATON_OK &&
	    ((other_turns && p->key_fair == BATON_KEY_FAIR_ON) || (other_rate && was.starts == 0)))
		e = keys_melt(s, q);
	if (e == BATON_OK)
		e = wishes_change(s, q, was_max);
	if (e == BATON_OK && now_held)
		e = bulk_melt_keys(s, q);
	if (e == BATON_OK && other_rate)
		e = rates_change(s, q, &was);
	if (e == BATON_OK)
		e = class_share(s, q);
	return e == BATON_OK && other_keys ? keys_settle(s, q) : e;
}

static enum baton_err set_run(void *store, void *args)
{
	struct sqlite_store *s = store;
	const struct set_args *a = args;
	struct queue_row *q;
	enum baton_err e = books_queue(&s->books, &s->db, a->name, &q);
	if (e != BATON_OK)
		return e;
	if (!q && a->existing)
		return refuse_queue(a->name);
	struct baton_queue_policy policy = q ? q->policy : baton_queue_policy_default();
	e = class_join(s, a->policy, a->fields, &policy);
	if (e == BATON_OK)
		e = policy_change(&policy, a->policy, a->fields);
	if (e != BATON_OK)
		return e;
	if (q)
		return change(s, q, &policy);
	e = class_refuse(s, &policy, 0);
	if (e != BATON_OK)
		return e;
	e = books_queue_make(&s->books, &s->db, a->name, &policy, &q);
	return e == BATON_OK ? class_share(s, q) : e;
}

enum baton_err sqlite_queue_set(struct baton_store *store, struct baton_str name,
                                const struct baton_queue_policy *policy, uint32_t fields,
                                bool existing)
{
	struct set_args args = {name, policy, fields, existing};
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
				.waiting_on_key = (uint64_t)q->tally.waiting,
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
		if (e == BATON_OK && seq > 0 && !found)
			e = bulk_put_at(&s->read, seq, &b.put_at, &found);
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
	enum baton_err e = sqlite_read_begin(s);
	if (e != BATON_OK)
		return e;
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
	sqlite_read_end(s);
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
	enum baton_err e = sqlite_read_begin(s);
	if (e != BATON_OK)
		return e;
	struct query q = query_begin(&s->read, SQL_QUEUE_READ);
	query_text(&q, name);
	bool found = query_row(&q);
	if (found)
		queue_row_read(&q, &row);
	e = query_end(&q);
	if (e == BATON_OK && found)
		e = oldest(s, &row, &age);
	sqlite_read_end(s);
	if (e != BATON_OK)
		return e;
	if (!found)
		return refuse_queue(name);
	info_make(&row, ret_info);
	ret_info->counts.oldest = age;
	return BATON_OK;
}
