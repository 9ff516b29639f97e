/* Queues of an SQLite file that have their keys in common. */
#include "store/sqlite/class.h"

#include <string.h>

#include "queue/policy.h"
#include "queue/rate.h"
#include "store/refuse.h"
#include "store/sqlite/guests.h"
#include "store/sqlite/rates.h"
#include "store/sqlite/wishes.h"

enum baton_err class_lines(struct sqlite_store *s, const struct queue_row *q, int64_t lane,
                           struct class_lines *ret)
{
	ret->count = 0;
	if (!policy_has_class(&q->policy))
		return BATON_OK;
	struct query list = query_begin(&s->db, SQL_CLASS_LINES);
	query_int(&list, lane);
	query_text(&list, baton_str_z(q->policy.key_class));
	while (ret->count < BATON_QUEUE_CLASS_MAX && query_row(&list))
		ret->list[ret->count++] =
			(struct class_line){column_int(&list, 0), column_int(&list, 1)};
	return query_end(&list);
}

enum baton_err class_holds(struct db *db, const struct baton_queue_policy *policy, int64_t lane,
                           int64_t *ret)
{
	*ret = 0;
	if (!policy_has_class(policy))
		return BATON_OK;
	struct query sum = query_begin(db, SQL_CLASS_HOLDS);
	query_int(&sum, lane);
	query_text(&sum, baton_str_z(policy->key_class));
	if (query_row(&sum))
		*ret = column_int(&sum, 0);
	return query_end(&sum);
}

enum baton_err class_queues(struct db *db, const struct baton_queue_policy *policy, int64_t but,
                            struct class_queues *ret)
{
	ret->count = 0;
	if (!policy_has_class(policy))
		return BATON_OK;
	struct query list = query_begin(db, SQL_CLASS_QUEUES);
	/* What somebody asks for may have no end. */
	query_text(&list, (struct baton_str){policy->key_class,
	                                     strnlen(policy->key_class, sizeof policy->key_class)});
	query_int(&list, but);
	while (ret->count < BATON_QUEUE_CLASS_MAX && query_row(&list))
		ret->list[ret->count++] = column_int(&list, 0);
	return query_end(&list);
}

enum baton_err class_fence(struct sqlite_store *s, const struct queue_row *q, uint64_t *fence)
{
	struct class_queues others;
	struct queue_row *other;
	enum baton_err e = class_queues(&s->db, &q->policy, q->id, &others);
	*fence = fence_of_key(&q->reach, *fence);
	for (size_t i = 0; e == BATON_OK && i < others.count; i++) {
		e = books_queue_by_id(&s->books, &s->db, others.list[i], &other);
		if (e == BATON_OK)
			*fence = fence_of_key(&other->reach, *fence);
	}
	return e;
}

enum baton_err class_taken(struct sqlite_store *s, const struct queue_row *q,
                           const struct key_lines *keys)
{
	struct class_lines others;
	enum baton_err e = BATON_OK;
	for (size_t i = 0; policy_has_class(&q->policy) && i < keys->count && e == BATON_OK; i++) {
		e = guests_put_off(s, q->id, keys->list[i]);
		if (e == BATON_OK)
			e = class_lines(s, q, keys->list[i], &others);
		for (size_t k = 0; e == BATON_OK && k < others.count; k++)
			e = guests_put_off(s, others.list[k].queue, others.list[k].lane);
	}
	return e;
}

enum baton_err class_join(struct sqlite_store *s, const struct baton_queue_policy *changes,
                          uint32_t fields, struct baton_queue_policy *policy)
{
	struct class_queues others;
	struct queue_row *other;
	if (!(fields & BATON_POLICY_KEY_CLASS) || policy_same_class(policy, changes))
		return BATON_OK;
	enum baton_err e = class_queues(&s->db, changes, 0, &others);
	if (e != BATON_OK || others.count == 0)
		return e;
	if (others.count == BATON_QUEUE_CLASS_MAX)
		return refuse_class_full(changes);
	e = books_queue_by_id(&s->books, &s->db, others.list[0], &other);
	if (e == BATON_OK)
		policy_share(policy, &other->policy);
	return e;
}

static const char *against_guests(const struct queue_row *q, const struct baton_queue_policy *next)
{
	struct baton_queue_policy policy = q->policy;
	policy_share(&policy, next);
	return q->guests ? policy_against_guests(&policy) : NULL;
}

enum baton_err class_refuse(struct sqlite_store *s, const struct baton_queue_policy *next,
                            int64_t but)
{
	struct class_queues others;
	struct queue_row *other;
	enum baton_err e = class_queues(&s->db, next, but, &others);
	for (size_t i = 0; e == BATON_OK && i < others.count; i++) {
		e = books_queue_by_id(&s->books, &s->db, others.list[i], &other);
		if (e != BATON_OK)
			return e;
		const struct tally *t = &other->tally;
		const char *against = against_guests(other, next);
		if (against && t->ready + t->delayed + t->running + t->dead > 0)
			return refuse_for_guests(queue_row_name(other), against);
	}
	return e;
}

enum baton_err class_leave(struct sqlite_store *s, const struct queue_row *q,
                           const struct baton_queue_policy *next)
{
	struct class_queues others, joined;
	struct queue_row *other;
	if (policy_same_class(&q->policy, next))
		return BATON_OK;
	enum baton_err e = class_queues(&s->db, &q->policy, q->id, &others);
	if (e == BATON_OK)
		e = class_queues(&s->db, next, q->id, &joined);
	/* Its starts count for those whom it leaves, and not for those whom it joins. */
	if (e == BATON_OK && others.count > 0)
		e = RUN(&s->db, SQL_RATE_MOVE, others.list[0], q->id);
	else if (e == BATON_OK && joined.count > 0)
		e = RUN(&s->db, SQL_RATE_DROP_ALL, q->id);
	for (size_t i = 0; e == BATON_OK && i < others.count; i++) {
		e = books_queue_by_id(&s->books, &s->db, others.list[i], &other);
		if (e != BATON_OK)
			return e;
		fence_reach_leave(&other->reach, &q->reach);
		other->changed = true;
	}
	return e;
}

enum baton_err class_share(struct sqlite_store *s, const struct queue_row *q)
{
	struct class_queues others;
	struct queue_row *other;
	enum baton_err e = class_queues(&s->db, &q->policy, q->id, &others);
	for (size_t i = 0; e == BATON_OK && i < others.count; i++) {
		e = books_queue_by_id(&s->books, &s->db, others.list[i], &other);
		if (e != BATON_OK)
			return e;
		/* Also when the limit of one that joins is its own still, and that of the class is
		 * not. */
		bool other_limit = other->policy.key_limit != q->policy.key_limit;
		const struct baton_key_rate was = other->policy.key_rate;
		const uint32_t was_max = other->policy.key_waiting_max;
		if (against_guests(other, &q->policy)) {
			other->guests = false;
			fence_reach_apart(&other->reach);
			other->changed = true;
		}
		policy_share(&other->policy, &q->policy);
		e = books_queue_write(&s->db, other);
		if (e == BATON_OK)
			e = wishes_change(s, other, was_max);
		if (e == BATON_OK && !rate_equal(&was, &other->policy.key_rate))
			e = rates_change(s, other, &was);
		if (e == BATON_OK && other_limit)
			e = keys_settle(s, other);
	}
	return e;
}
