/* Leases in an SQLite file. */
#include <string.h>

#include "base/check.h"
#include "base/fail.h"
#include "queue/place.h"
#include "store/refuse.h"
#include "store/sqlite/leases.h"
#include "store/sqlite/sqlite.h"

static enum baton_err owner_read(const struct query *q, int column, const struct db *db,
                                 struct baton_owner *ret)
{
	if (baton_owner_parse(column_str(q, column), ret) == BATON_OK)
		return BATON_OK;
	return fail(BATON_STORAGE, "store %s is damaged: it has an owner that cannot be read",
	            db->path);
}

static enum baton_err row_read(const struct query *q, struct stored_lease *ret)
{
	*ret = (struct stored_lease){
		.row =
			{
				.held = column_int(q, 0) != 0,
				.fence = (uint64_t)column_int(q, 4),
				.claimed_at = {column_int(q, 6)},
				.expires_at = {column_int(q, 7)},
			},
		.counter = (uint64_t)column_int(q, 5),
	};
	column_id(q, 2, &ret->row.token);
	column_id(q, 3, &ret->row.nonce);
	return owner_read(q, 1, q->db, &ret->row.owner);
}

enum baton_err lease_load(struct db *db, struct baton_str subject, struct stored_lease *ret,
                          bool *ret_found)
{
	struct query q = query_begin(db, SQL_LEASE_READ);
	query_text(&q, subject);
	enum baton_err damaged = BATON_OK;
	*ret_found = query_row(&q);
	if (*ret_found)
		damaged = row_read(&q, ret);
	return query_end_as(&q, damaged);
}

static enum baton_err lease_save(struct db *db, struct baton_str subject,
                                 const struct stored_lease *l)
{
	char owner[BATON_OWNER_TEXT];
	struct query q = query_begin(db, SQL_LEASE_WRITE);
	query_text(&q, subject);
	query_int(&q, l->row.held);
	query_text(&q, baton_str_z(baton_owner_print(&l->row.owner, owner)));
	query_blob(&q, l->row.token.bytes, sizeof l->row.token.bytes);
	query_blob(&q, l->row.nonce.bytes, sizeof l->row.nonce.bytes);
	query_int(&q, (int64_t)l->row.fence);
	query_int(&q, (int64_t)l->counter);
	query_int(&q, l->row.claimed_at.ms);
	query_int(&q, l->row.expires_at.ms);
	return query_run(&q);
}

enum baton_err lease_count(struct db *db, struct baton_str subject, uint64_t counter)
{
	struct query q = query_begin(db, SQL_LEASE_COUNT);
	query_int(&q, (int64_t)counter);
	query_text(&q, subject);
	return query_run(&q);
}

/* The last fence that was handed out for the subject, claims under it included. */
static enum baton_err last_fence(struct sqlite_store *s, struct baton_str subject,
                                 const struct stored_lease *l, uint64_t *ret)
{
	struct queue_row *q = NULL;
	struct fence_base base = {l ? l->row.fence : 0, l ? l->counter : 0};
	*ret = fence_kind_of(subject) == FENCE_GRANTER ? fence_granter_last(&base) : base.granter;
	if (subject.len <= 5 || memcmp(subject.ptr, "pull/", 5) != 0)
		return BATON_OK;
	struct baton_str name = {subject.ptr + 5, subject.len - 5};
	enum baton_err e = books_queue(&s->books, &s->db, name, &q);
	if (e != BATON_OK || !q)
		return e;
	if (fence_granter_last(&q->pulled) > *ret)
		*ret = fence_granter_last(&q->pulled);
	q->lapsed_in = 0; /* it is for somebody who takes the lease */
	return BATON_OK;
}

static enum baton_err take(struct sqlite_store *s, const struct baton_lease_ask *ask,
                           const struct stored_lease *old, struct stored_lease *ret)
{
	enum fence_kind kind = fence_kind_of(ask->subject);
	uint64_t floor = kind == FENCE_GRANTER ? s->books.granter_floor : s->books.plain_floor;
	uint64_t last, fence;
	struct baton_id token;
	enum baton_err e = last_fence(s, ask->subject, old, &last);
	if (e == BATON_OK)
		e = baton_id_random(&token);
	if (e != BATON_OK)
		return e;
	if (!fence_next(kind, last, floor, &fence))
		return refuse_fence(ask->subject);
	*ret = (struct stored_lease){
		.row =
			{
				.held = true,
				.owner = *store_asker(&s->base, ask->owner),
				.token = token,
				.nonce = ask->nonce,
				.fence = fence,
				.claimed_at = s->now,
				.expires_at = baton_store_time_add(s->now, store_ttl(ask->ttl)),
			},
	};
	CHECK(s->full);
	return lease_save(&s->db, ask->subject, ret);
}

static enum baton_err extend(struct sqlite_store *s, const struct baton_lease_ask *ask,
                             struct stored_lease *l)
{
	l->row.expires_at = lease_extended(l->row.expires_at, s->now, store_ttl(ask->ttl), false);
	return lease_save(&s->db, ask->subject, l);
}

static enum baton_err claim_one(struct sqlite_store *s, const struct baton_lease_ask *ask,
                                struct baton_lease_answer *answer)
{
	struct stored_lease l = {.counter = 0};
	bool found;
	const struct baton_owner *asker = store_asker(&s->base, ask->owner);
	enum baton_err e = lease_load(&s->db, ask->subject, &l, &found);
	if (e != BATON_OK)
		return e;
	struct lease_request request = {
		.incarnation = asker->incarnation,
		.nonce = ask->nonce,
		.reentrant = ask->reentrant,
		.now = s->now,
	};
	enum lease_verdict verdict = lease_judge(found ? &l.row : NULL, &request);
	if (verdict == LEASE_YIELD) {
		request.holder_is_dead =
			baton_owner_is_dead(&s->base.owner, &l.row.owner, BATON_REACH_HOST);
		verdict = lease_judge(&l.row, &request);
	}
	*answer = (struct baton_lease_answer){.err = BATON_OK};
	if (verdict == LEASE_TAKE)
		e = take(s, ask, found ? &l : NULL, &l);
	else if (verdict == LEASE_EXTEND)
		e = extend(s, ask, &l);
	else
		answer->err = BATON_YIELD;
	answer->lease = answer->err == BATON_OK ? store_lease(&l.row) : answer->lease;
	if (answer->err == BATON_YIELD)
		answer->holder = store_holder(&l.row, &asker->incarnation);
	return e;
}

struct claim_args {
	const struct baton_lease_ask *asks;
	size_t count;
	struct baton_lease_answer *answers;
};

static enum baton_err claim_run(void *store, void *args)
{
	struct claim_args *a = args;
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < a->count && e == BATON_OK; i++)
		e = claim_one(store, &a->asks[i], &a->answers[i]);
	return e;
}

enum baton_err sqlite_lease_claim(struct baton_store *store, const struct baton_lease_ask *asks,
                                  size_t count, struct baton_lease_answer *answers)
{
	struct claim_args args = {asks, count, answers};
	return sqlite_write_fences((struct sqlite_store *)store, claim_run, &args);
}

struct proof_args {
	const struct baton_lease_proof *proofs;
	size_t count;
	struct baton_duration ttl;
	bool shorten;
	enum baton_err *answers;
};

/* Loads the lease that the proof is about. *ret_proved: it is still his. */
static enum baton_err load_proved(struct sqlite_store *s, const struct baton_lease_proof *p,
                                  struct stored_lease *ret, bool *ret_proved)
{
	struct lease_claimed claimed = {p->lease->incarnation, p->lease->token, p->lease->fence.v};
	bool found;
	enum baton_err e = lease_load(&s->db, p->subject, ret, &found);
	*ret_proved = e == BATON_OK && found && lease_is_proved(&ret->row, &claimed);
	return e;
}

static enum baton_err renew_one(struct sqlite_store *s, const struct proof_args *a, size_t i)
{
	const struct baton_lease_proof *p = &a->proofs[i];
	struct stored_lease l;
	bool proved;
	enum baton_err e = load_proved(s, p, &l, &proved);
	if (e != BATON_OK)
		return e;
	a->answers[i] = BATON_NOT_HELD;
	if (!proved || !lease_is_live(&l.row, s->now))
		return BATON_OK;
	l.row.expires_at = lease_extended(l.row.expires_at, s->now, a->ttl, a->shorten);
	e = lease_save(&s->db, p->subject, &l);
	a->answers[i] = BATON_OK;
	p->lease->expires_at = l.row.expires_at;
	return e;
}

static enum baton_err renew_run(void *store, void *args)
{
	const struct proof_args *a = args;
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < a->count && e == BATON_OK; i++)
		e = renew_one(store, a, i);
	return e;
}

enum baton_err sqlite_lease_renew(struct baton_store *store, const struct baton_lease_proof *proofs,
                                  size_t count, struct baton_duration ttl, bool shorten,
                                  enum baton_err *answers)
{
	struct proof_args args = {proofs, count, ttl, shorten, answers};
	return sqlite_write_first((struct sqlite_store *)store, renew_run, &args);
}

static bool begins_with(struct baton_str s, struct baton_str prefix)
{
	return s.len >= prefix.len && memcmp(s.ptr, prefix.ptr, prefix.len) == 0;
}

/* Whoever can claim work under the subject may do so now. */
static enum baton_err tell_subject(struct sqlite_store *s, struct baton_str subject)
{
	bool pull = begins_with(subject, BATON_STR("pull/"));
	struct baton_str queue = {subject.ptr + 5, subject.len - 5}, lane = {NULL, 0};
	struct queue_row *q;
	if (!pull && !begins_with(subject, BATON_STR("lane/")))
		return BATON_OK;
	const char *slash = pull ? NULL : memchr(queue.ptr, '/', queue.len);
	if (slash) {
		queue.len = (size_t)(slash - queue.ptr);
		lane = (struct baton_str){slash + 1, subject.len - 5 - queue.len - 1};
	}
	enum baton_err e = books_queue(&s->books, &s->db, queue, &q);
	if (e == BATON_OK && q && lane.len <= BATON_NAME_MAX)
		sqlite_tell(s, q, lane,
		            lane.len > 0 ? place_of_lane(queue, lane, q->policy.shards) : 0);
	return e;
}

static enum baton_err give_back(struct sqlite_store *s, struct baton_str subject,
                                struct stored_lease *l)
{
	l->row.held = false;
	enum baton_err e = lease_save(&s->db, subject, l);
	return e == BATON_OK ? tell_subject(s, subject) : e;
}

static enum baton_err release_run(void *store, void *args)
{
	struct sqlite_store *s = store;
	const struct proof_args *a = args;
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < a->count && e == BATON_OK; i++) {
		struct stored_lease l;
		bool proved;
		e = load_proved(s, &a->proofs[i], &l, &proved);
		if (e == BATON_OK && proved)
			e = give_back(s, a->proofs[i].subject, &l);
		a->answers[i] = proved ? BATON_OK : BATON_NOT_HELD;
	}
	return e;
}

enum baton_err sqlite_lease_release(struct baton_store *store,
                                    const struct baton_lease_proof *proofs, size_t count,
                                    enum baton_err *answers)
{
	struct proof_args args = {.proofs = proofs, .count = count, .answers = answers};
	return sqlite_write((struct sqlite_store *)store, release_run, &args);
}

struct force_args {
	const struct baton_str *subjects;
	size_t count;
	struct baton_lease_answer *answers;
};

static enum baton_err force_run(void *store, void *args)
{
	struct sqlite_store *s = store;
	const struct force_args *a = args;
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < a->count && e == BATON_OK; i++) {
		struct stored_lease l;
		bool found;
		e = lease_load(&s->db, a->subjects[i], &l, &found);
		a->answers[i] = (struct baton_lease_answer){.err = BATON_NOT_HELD};
		if (e != BATON_OK || !found || !lease_is_live(&l.row, s->now))
			continue;
		a->answers[i].err = BATON_OK;
		a->answers[i].holder = store_holder(&l.row, &s->base.owner.incarnation);
		e = give_back(s, a->subjects[i], &l);
	}
	return e;
}

enum baton_err sqlite_lease_force(struct baton_store *store, const struct baton_str *subjects,
                                  size_t count, struct baton_lease_answer *answers)
{
	struct force_args args = {subjects, count, answers};
	return sqlite_write((struct sqlite_store *)store, force_run, &args);
}

static enum baton_err read_rows(struct db *db, const struct baton_str *subjects, size_t count,
                                struct lease_row *rows)
{
	enum baton_err e = BATON_OK;
	for (size_t i = 0; i < count && e == BATON_OK; i++) {
		struct stored_lease l;
		bool found;
		e = lease_load(db, subjects[i], &l, &found);
		if (e == BATON_OK)
			rows[i] = found ? l.row : (struct lease_row){.held = false};
	}
	return e;
}

enum baton_err sqlite_lease_read(struct baton_store *store, const struct baton_str *subjects,
                                 size_t count, struct lease_row *rows)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	enum baton_err e = sqlite_read_begin(s);
	if (e != BATON_OK)
		return e;
	if (count > 1)
		e = db_begin(&s->read, SQL_BEGIN_READ);
	if (e == BATON_OK)
		e = read_rows(&s->read, subjects, count, rows);
	if (count > 1)
		db_rollback(&s->read);
	sqlite_read_end(s);
	return e;
}

static enum baton_err entry_read(const struct query *q, const struct sqlite_store *s,
                                 struct baton_lease_entry *entry)
{
	struct stored_lease l;
	struct baton_str subject = column_str(q, 8);
	enum baton_err e = row_read(q, &l);
	if (e != BATON_OK)
		return e;
	entry->len = subject.len < BATON_LEASE_SUBJECT_MAX ? subject.len : BATON_LEASE_SUBJECT_MAX;
	memcpy(entry->subject, subject.ptr, entry->len);
	entry->subject[entry->len] = '\0';
	entry->holder = store_holder(&l.row, &s->base.owner.incarnation);
	return BATON_OK;
}

enum baton_err sqlite_lease_list(struct baton_store *store, struct baton_str prefix,
                                 struct baton_str after, struct baton_lease_entry *entries,
                                 size_t max, size_t *ret_count)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	size_t count = 0;
	enum baton_err damaged = BATON_OK;
	enum baton_err e = sqlite_read_begin(s);
	if (e != BATON_OK)
		return e;
	struct query q = query_begin(&s->read, SQL_LEASE_LIST);
	query_text(&q, after);
	query_text(&q, prefix);
	query_int(&q, baton_store_now(store).ms);
	while (count < max && damaged == BATON_OK && query_row(&q)) {
		if (prefix.len > 0 && !begins_with(column_str(&q, 8), prefix))
			break;
		damaged = entry_read(&q, s, &entries[count++]);
	}
	e = query_end_as(&q, damaged);
	sqlite_read_end(s);
	if (e == BATON_OK)
		*ret_count = count;
	return e;
}
