/* One transaction of some calls: its two parts, how it ends, and what is done when it fails. */
#include "store/postgres/deal.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "queue/policy.h"
#include "store/postgres/look.h"

#define TRIES 6
#define PLANNED_NS INT64_C(1000000000)
#define PLANNED_MAX 16 /* times as long */
#define TIDY_EVERY 64
#define TIDY_MAX 100
#define CALLS_MAX 64     /* in one transaction */
#define DRAWING 1000     /* transactions for which others are expected to draw numbers too */
#define KEEP_MIN_MS 3000 /* that a renewal may take, however short the ttl is */
#define TOOK_LONG 512    /* batches: who sleeps is asked for once these are written */
#define NUMBERS "BT001"
#define ADMITTED "BT004"
#define STALE "BT005"
#define TAKEN "BT006"
#define CLASSED "BT007" /* never the server's: a queue is of a class whose lock is not held */

static void keep_failure(struct request *r)
{
	if (r->err != BATON_OK)
		snprintf(r->detail, sizeof r->detail, "%s", baton_err_detail());
}

static enum baton_err gather_wants(struct deal *t)
{
	for (struct call *call = t->calls; call; call = call_next(call)) {
		if (call->want)
			call->want(&t->first, call->args);
		if (call->want_more)
			call->want_more(&t->second, call->args);
	}
	return t->first.memory && t->second.memory ? BATON_OK : fail_memory(1, "a transaction");
}

void deal_desk_close(struct deal *t)
{
	if (t->open)
		desk_close(&t->desk);
	t->open = false;
}

enum baton_err deal_keep_news(struct deal *t)
{
	size_t count = t->desk.news_count;
	if (count == 0)
		return BATON_OK;
	struct baton_store_news *all =
		arena_take(&t->first.arena, t->news_count + count, sizeof *all);
	if (!all)
		return fail_memory(count * sizeof *all, "news");
	if (t->news_count > 0)
		memcpy(all, t->news, t->news_count * sizeof *all);
	memcpy(all + t->news_count, t->desk.news, count * sizeof *all);
	t->news = all;
	t->news_count += count;
	return BATON_OK;
}

void deal_run(struct deal *t, bool more)
{
	for (struct call *call = t->calls; call; call = call_next(call)) {
		if (more ? !call->run_more || call->request.err != BATON_OK : !call->run)
			continue;
		call->request.err = more ? call->run_more(t->desk.store, call->args)
		                         : call->run(t->desk.store, call->args);
		keep_failure(&call->request);
		t->split = t->split || (more && call->run && call->request.err != BATON_OK);
	}
}

bool deal_has_first(const struct deal *t)
{
	for (struct call *call = t->calls; call; call = call_next(call)) {
		if (call->run)
			return true;
	}
	return false;
}

bool deal_has_success(const struct deal *t)
{
	for (struct call *call = t->calls; call; call = call_next(call)) {
		if (call->request.err == BATON_OK)
			return true;
	}
	return false;
}

void deal_clear(struct deal *t)
{
	t->written = (struct written){.told = -1};
	t->split = t->sleepers = false;
	t->xid = 0;
	t->news_count = 0;
	for (struct call *call = t->calls; call; call = call_next(call)) {
		call->request.err = BATON_OK;
		call->request.detail[0] = '\0';
	}
}

/* What is renewed has to be renewed again in time if it hangs: a statement gets a third of the
 * shortest ttl. */
static int64_t within_ms(const struct deal *t)
{
	int64_t least = 0;
	for (struct call *call = t->calls; call; call = call_next(call)) {
		int64_t third = call->ttl.ns / 3000000;
		third = third < KEEP_MIN_MS ? KEEP_MIN_MS : third;
		if (call->within_ms > 0 || call->ttl.ns == 0)
			third = call->within_ms;
		if (third > 0 && (least == 0 || third < least))
			least = third;
	}
	return least;
}

/* A plan that was made when a table was empty is a bad one once it is not: so plans are made anew,
 * after a second, and then half as often each time. */
static void plan_anew(struct deal *t)
{
	int64_t now_ns = t->s->host->now(t->s->host).ns;
	if (t->c->pooled || now_ns - t->c->planned_ns < PLANNED_NS * t->c->plans)
		return;
	t->c->planned_ns = now_ns;
	t->c->plans =
		t->c->plans < PLANNED_MAX ? (t->c->plans > 0 ? 2 * t->c->plans : 1) : PLANNED_MAX;
	conn_send(t->c, SQL_DISCARD, NULL);
}

static uint64_t classes_of(struct deal *t, const struct nums *stripes)
{
	uint64_t classes = 0;
	for (size_t i = 0; i < stripes->count; i++)
		classes |= hints_classes(&t->s->hints, (uint32_t)stripes->list[i]);
	return classes;
}

void deal_begin(struct deal *t)
{
	deal_presume(t);
	deal_guess(t);
	deal_recall(t);
	conn_begin(t->c, within_ms(t));
	plan_anew(t);
	t->classes = t->lacking | t->first.class_locks | classes_of(t, &t->first.stripes) |
	             classes_of(t, &t->first.guessed_stripes) | classes_of(t, &t->second.stripes);
	load_lock(t->c, &t->first, &t->second, t->classes);
}

enum baton_err deal_check_classes(struct deal *t)
{
	for (size_t i = 0; i < t->desk.queue_count; i++) {
		const struct queue *q = t->desk.queues[i].row;
		if (!policy_has_class(&q->is.policy))
			continue;
		uint64_t bit = class_bit(baton_str_z(q->is.policy.key_class));
		hints_class_found(&t->s->hints, stripe_of(q->name), bit);
		t->lacking |= bit & ~t->classes;
	}
	if ((t->lacking & ~t->classes) == 0)
		return BATON_OK;
	snprintf(t->c->state, sizeof t->c->state, "%s", CLASSED);
	return fail(BATON_BUSY, "a queue has become one of a class");
}

/* The number of the transaction is asked for, so that the server can be asked about it. */
static enum baton_err finish(struct deal *t)
{
	if (!t->written.any)
		return conn_commit(t->c);
	if (t->s->base.sync == BATON_STORE_RELAXED)
		conn_send(t->c, SQL_RELAX, NULL);
	/* Who has gone to sleep while much was written is seen only now. */
	const bool took_long = t->open && t->desk.m->batches.count > TOOK_LONG;
	const int told = took_long ? -1 : t->written.told;
	const int answer = told >= 0 ? told : conn_send(t->c, SQL_XID, NULL);
	conn_hurry(t->c);
	enum baton_err e = conn_commit(t->c);
	if (answer < t->c->read && PQntuples(conn_answer(t->c, answer)) == 1) {
		t->xid = cell_int(conn_answer(t->c, answer), 0, 0);
		t->sleepers = cell_bool(conn_answer(t->c, answer), 0, 1);
	}
	return e;
}

static enum baton_err attempt(struct deal *t)
{
	uint64_t connects = t->c->connects;
	enum baton_err e = conn_need(t->c);
	if (t->c->connects != connects)
		hints_forget(&t->s->hints);
	if (e != BATON_OK)
		return e;
	deal_begin(t);
	e = deal_first(t);
	if (e == BATON_OK)
		e = deal_second(t);
	if (e != BATON_OK || t->split || !deal_has_success(t))
		return e;
	return finish(t);
}

/* After the connection broke during COMMIT: what became of it? Another server, such as a standby
 * that has taken over, may have given the number of the transaction to somebody else's. */
static enum baton_err resolve(struct deal *t, enum baton_err e)
{
	char why[300], place[sizeof t->c->place];
	struct args a;
	snprintf(why, sizeof why, "%s", baton_err_detail());
	snprintf(place, sizeof place, "%s", t->c->place);
	if (conn_need(t->c) != BATON_OK || strcmp(place, t->c->place) != 0)
		return fail(e, "%s", why);
	conn_begin(t->c, within_ms(t));
	load_lock(t->c, &t->first, &t->second, t->classes); /* waits for the end of the other one */
	args_init(&a, t->c->alloc, 1);
	arg_int(&a, 0, t->xid);
	conn_send(t->c, SQL_XID_STATUS, &a);
	enum baton_err asked = conn_round(t->c);
	bool committed = false;
	if (asked == BATON_OK)
		committed = baton_str_equal(cell_str(conn_answer(t->c, t->c->read - 1), 0, 0),
		                            BATON_STR("committed"));
	conn_rollback(t->c);
	return committed ? BATON_OK : fail(e, "%s", why);
}

/* What may be done again: nothing of it is there. */
static bool can_repeat(const struct conn *c, bool unknown)
{
	return !unknown && (c->state[0] == '\0' || strcmp(c->state, NUMBERS) == 0 ||
	                    strcmp(c->state, ADMITTED) == 0 || strcmp(c->state, STALE) == 0 ||
	                    strcmp(c->state, TAKEN) == 0 || strcmp(c->state, CLASSED) == 0 ||
	                    strcmp(c->state, "40P01") == 0 || strcmp(c->state, "40001") == 0 ||
	                    strcmp(c->state, "57P01") == 0 || strcmp(c->state, IDLE_ENDED) == 0);
}

static enum baton_err deal_do(struct deal *t)
{
	enum baton_err e = BATON_OK;
	for (int i = 0; i < TRIES; i++) {
		deal_clear(t);
		t->c->state[0] = 'x';
		e = attempt(t);
		bool unknown = e != BATON_OK && t->c->committed && t->c->state[0] == '\0';
		if (e != BATON_OK && strcmp(t->c->state, NUMBERS) == 0)
			atomic_store(&t->s->drawing, DRAWING);
		if (e != BATON_OK && strcmp(t->c->state, ADMITTED) == 0)
			t->first.all_may_be = true;
		if (e != BATON_OK && strcmp(t->c->state, STALE) == 0) {
			t->certain = true;
			hints_unsure(&t->s->hints, &t->recall);
		}
		if (e != BATON_OK && strcmp(t->c->state, TAKEN) == 0)
			*(t->first.key_lines.count > 0 ? &t->taken : &t->apart) = true;
		if (e == BATON_OK && !t->split) {
			deal_remember_queues(t);
			if (t->recalled)
				hints_sure(&t->s->hints, &t->recall);
		}
		bool again = e != BATON_OK && can_repeat(t->c, unknown);
		conn_rollback(t->c);
		deal_desk_close(t);
		if (unknown && t->xid > 0)
			e = resolve(t, e);
		if (!again)
			break;
	}
	uint32_t drawing = atomic_load(&t->s->drawing);
	if (drawing > 0)
		atomic_store(&t->s->drawing, drawing - 1);
	return e;
}

static void fail_all(struct deal *t, enum baton_err e)
{
	for (struct call *call = t->calls; call; call = call_next(call)) {
		call->request.err = e;
		keep_failure(&call->request);
	}
}

/* Wakes those here, and those elsewhere if there are any. They ring for the next ones anew. */
static void ring(struct deal *t)
{
	char self[33];
	struct args a;
	store_ring(&t->s->base, t->news, t->news_count);
	if (!t->sleepers || t->news_count == 0)
		return;
	atomic_store(&t->s->listener.marked, false);
	args_init(&a, t->c->alloc, 1);
	arg_text(&a, 0, baton_str_z(baton_id_print(&t->s->base.owner.incarnation, self)));
	conn_send_away(t->c, SQL_WAKE, &a);
}

/* *ret_split: some failed half-way, so that each has to be done alone. */
static void deal(struct lineup *l, struct call *calls, bool *ret_split)
{
	struct deal t = {.s = l->store, .c = &l->conn, .calls = calls};
	pg_wants_init(&t.first, l->store->base.alloc);
	pg_wants_init(&t.second, l->store->base.alloc);
	enum baton_err e = gather_wants(&t);
	if (e == BATON_OK)
		e = deal_do(&t);
	if (e != BATON_OK)
		fail_all(&t, e);
	*ret_split = t.split || (e != BATON_OK && e != BATON_STORAGE && e != BATON_BUSY);
	if (e == BATON_OK && !t.split)
		ring(&t);
	pg_wants_done(&t.first);
	pg_wants_done(&t.second);
}

static void deal_each(struct lineup *l, struct request *list)
{
	bool split;
	for (struct request *r = list, *next; r; r = next) {
		next = r->next;
		r->next = NULL;
		deal(l, (struct call *)r, &split);
	}
}

/* Cuts the list after as many as one transaction takes. Returns the rest. */
static struct request *cut(struct request *list)
{
	bool alone = ((struct call *)list)->alone;
	for (int i = 1; list->next && i < CALLS_MAX && !alone; i++) {
		if (((struct call *)list->next)->alone)
			break;
		list = list->next;
	}
	struct request *rest = list->next;
	list->next = NULL;
	return rest;
}

/* Now and then a little of what is old is forgotten; that it cannot be is nobody's failure. */
static void tidy_little(struct lineup *l)
{
	size_t count;
	struct pg_store *s = l->store;
	if (l == &s->adds && ++s->commits % TIDY_EVERY == 0)
		pg_tidy(&s->base, TIDY_MAX, &count);
}

void deal_commit(void *lineup, struct request *list)
{
	tidy_little(lineup);
	while (list) {
		bool split;
		struct request *rest = cut(list);
		deal(lineup, (struct call *)list, &split);
		if (split && list->next)
			deal_each(lineup, list);
		list = rest;
	}
}

enum baton_err pg_do(struct lineup *lineup, struct call *call)
{
	return group_do(&lineup->group, &call->request);
}
