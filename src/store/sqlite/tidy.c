/* Forgetting what is no longer needed. */
#include <string.h>

#include "base/fail.h"
#include "store/sqlite/batches.h"
#include "store/sqlite/rates.h"

#define OWNER_KEPT_MS INT64_C(3600000)
#define LITTLE 100
#define TIDY_MAX 10000

struct tidy_args {
	size_t max, count;
};

/* Numbers that a query finds, at most `max`. */
static enum baton_err numbers(struct sqlite_store *s, enum sql sql, int64_t limit, size_t max,
                              int64_t **ret, size_t *ret_count)
{
	int64_t *list = arena_take(&s->scratch, max, sizeof *list);
	size_t count = 0;
	if (!list)
		return fail_memory(max * sizeof *list, "what is old");
	struct query q = query_begin(&s->db, sql);
	query_int(&q, limit);
	query_int(&q, (int64_t)max);
	while (count < max && query_row(&q))
		list[count++] = column_int(&q, 0);
	*ret = list;
	*ret_count = count;
	return query_end(&q);
}

/* Results that have been kept long enough, and the batches that they belong to. */
static enum baton_err tidy_done(struct sqlite_store *s, struct tidy_args *a)
{
	int64_t *seqs;
	size_t count = 0;
	enum baton_err e = numbers(s, SQL_DONE_OLD, s->now.ms, a->max - a->count, &seqs, &count);
	for (size_t i = 0; i < count && e == BATON_OK; i++) {
		e = RUN(&s->db, SQL_DONE_DROP, seqs[i]);
		if (e == BATON_OK)
			e = RUN(&s->db, SQL_TROUBLE_DROP, seqs[i]);
		if (e == BATON_OK)
			e = RUN(&s->db, SQL_BATCH_DROP, seqs[i]);
		a->count++;
	}
	return e;
}

static enum baton_err tidy_owners(struct sqlite_store *s, struct tidy_args *a)
{
	int64_t *ids;
	size_t count = 0;
	enum baton_err e = books_owners_write(&s->books, &s->db, s->now);
	if (e == BATON_OK)
		e = numbers(s, SQL_OWNER_OLD, s->now.ms - OWNER_KEPT_MS, a->max - a->count, &ids,
		            &count);
	s->books.asker_number = 0;
	for (size_t i = 0; i < count && e == BATON_OK; i++, a->count++)
		e = RUN(&s->db, SQL_OWNER_DROP, ids[i]);
	return e;
}

struct old_source {
	char hash[32];
	size_t len;
	int64_t id;
};

/* A source key is known as long as its batch is there: such a one is looked at again later. */
static enum baton_err tidy_source(struct sqlite_store *s, const struct old_source *old)
{
	int64_t seq;
	enum baton_err e = batch_seq_of(&s->db, old->id, &seq);
	if (e != BATON_OK)
		return e;
	struct query q = query_begin(&s->db, seq > 0 ? SQL_SOURCE_KEEP : SQL_SOURCE_DROP);
	if (seq > 0)
		query_int(&q, baton_store_time_add(s->now, baton_duration_s(3600)).ms);
	query_blob(&q, old->hash, old->len);
	return query_run(&q);
}

static enum baton_err tidy_sources(struct sqlite_store *s, struct tidy_args *a)
{
	size_t max = a->max - a->count, count = 0;
	struct old_source *list = arena_take(&s->scratch, max, sizeof *list);
	if (!list)
		return fail_memory(max * sizeof *list, "old source keys");
	struct query q = query_begin(&s->db, SQL_SOURCE_OLD);
	query_int(&q, s->now.ms);
	query_int(&q, (int64_t)max);
	while (count < max && query_row(&q)) {
		struct baton_str hash = column_str(&q, 0);
		list[count].len = hash.len < sizeof list->hash ? hash.len : sizeof list->hash;
		memcpy(list[count].hash, hash.ptr, list[count].len);
		list[count++].id = column_int(&q, 1);
	}
	enum baton_err e = query_end(&q);
	for (size_t i = 0; i < count && e == BATON_OK; i++, a->count++)
		e = tidy_source(s, &list[i]);
	return e;
}

struct old_claim {
	int64_t head, until;
};

/* These are in the order of their numbers, not of their times; so each call looks at the next few,
 * and begins anew after the last. */
static enum baton_err tidy_finished(struct sqlite_store *s, struct tidy_args *a)
{
	size_t max = a->max - a->count, count = 0;
	struct old_claim *list = arena_take(&s->scratch, max, sizeof *list);
	if (!list)
		return fail_memory(max * sizeof *list, "old claims");
	struct query q = query_begin(&s->db, SQL_FINISHED_NEXT);
	query_int(&q, s->books.swept);
	query_int(&q, (int64_t)max);
	while (count < max && query_row(&q))
		list[count++] = (struct old_claim){column_int(&q, 0), column_int(&q, 1)};
	enum baton_err e = query_end(&q);
	for (size_t i = 0; i < count && e == BATON_OK; i++) {
		if (list[i].until > s->now.ms)
			continue;
		e = RUN(&s->db, SQL_FINISHED_DROP, list[i].head);
		a->count++;
	}
	int64_t swept = count < max ? INT64_MIN : list[count - 1].head;
	s->books.changed = s->books.changed || swept != s->books.swept;
	s->books.swept = swept;
	return e;
}

static enum baton_err tidy_replies(struct sqlite_store *s, struct tidy_args *a)
{
	int64_t *firsts;
	size_t count = 0;
	enum baton_err e = numbers(s, SQL_REPLY_OLD, s->now.ms, a->max - a->count, &firsts, &count);
	for (size_t i = 0; i < count && e == BATON_OK; i++, a->count++)
		e = RUN(&s->db, SQL_REPLY_DROP, firsts[i]);
	return e;
}

/* Whose window is over may start again, in queues that nobody claims from, too. */
static enum baton_err see_windows(struct sqlite_store *s, size_t max)
{
	int64_t *ids;
	size_t count = 0;
	enum baton_err e = numbers(s, SQL_RATE_QUEUES, s->now.ms, max, &ids, &count);
	for (size_t i = 0; i < count && e == BATON_OK; i++) {
		struct queue_row *q = NULL;
		bool all;
		e = books_queue_by_id(&s->books, &s->db, ids[i], &q);
		if (e == BATON_OK && q)
			e = rates_see(s, q, &all);
	}
	return e;
}

static enum baton_err tidy_rates(struct sqlite_store *s, struct tidy_args *a)
{
	int64_t *ids;
	size_t count = 0;
	enum baton_err e = see_windows(s, a->max - a->count);
	if (e == BATON_OK)
		e = numbers(s, SQL_RATE_OLD, s->now.ms, a->max - a->count, &ids, &count);
	for (size_t i = 0; i < count && e == BATON_OK; i++, a->count++)
		e = RUN(&s->db, SQL_RATE_DROP, ids[i]);
	return e;
}

static enum baton_err tidy_run(void *store, void *args)
{
	struct sqlite_store *s = store;
	struct tidy_args *a = args;
	a->count = 0;
	enum baton_err e = tidy_done(s, a);
	if (e == BATON_OK && a->count < a->max)
		e = tidy_sources(s, a);
	if (e == BATON_OK && a->count < a->max)
		e = tidy_owners(s, a);
	if (e == BATON_OK && a->count < a->max)
		e = tidy_replies(s, a);
	if (e == BATON_OK && a->count < a->max)
		e = tidy_rates(s, a);
	if (e == BATON_OK && a->count < a->max)
		e = tidy_finished(s, a);
	return e;
}

enum baton_err sqlite_tidy(struct baton_store *store, size_t max, size_t *ret_count)
{
	struct tidy_args args = {max < TIDY_MAX ? max : TIDY_MAX, 0};
	if (args.max == 0)
		return BATON_OK;
	enum baton_err e = sqlite_write((struct sqlite_store *)store, tidy_run, &args);
	if (e == BATON_OK)
		*ret_count = args.count;
	return e;
}

/* Each part has its own measure, so that none starves; what is remembered of completions is looked
 * through faster than it grows. */
enum baton_err tidy_little(struct sqlite_store *s)
{
	static enum baton_err (*const parts[])(struct sqlite_store *,
	                                       struct tidy_args *) = {tidy_done,   tidy_sources,
	                                                              tidy_owners, tidy_replies,
	                                                              tidy_rates,  tidy_finished};
	size_t max = LITTLE + 2 * s->remembered;
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < sizeof parts / sizeof *parts && e == BATON_OK; i++) {
		struct tidy_args args = {max < TIDY_MAX ? max : TIDY_MAX, 0};
		e = parts[i](s, &args);
	}
	s->remembered = 0;
	return e;
}
