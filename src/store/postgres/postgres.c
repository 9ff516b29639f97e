/* A store in a PostgreSQL database: opening it, and its transactions. */
#include "store/postgres/postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/fail.h"
#include "base/mem.h"
#include "queue/policy.h"
#include "store/memory/ops.h"
#include "store/memory/runner.h"
#include "store/postgres/address.h"
#include "store/postgres/bulk.h"
#include "store/postgres/keyed.h"
#include "store/postgres/look.h"
#include "store/postgres/schema.h"

#define TRIES 6
#define PLANNED_NS INT64_C(1000000000)
#define PLANNED_MAX 16 /* times as long */
#define PAGES 64
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

static struct baton_store_time server_wall(const struct baton_clock *clock)
{
	const struct pg_store *s =
		(const struct pg_store *)((const char *)clock - offsetof(struct pg_store, clock));
	return (struct baton_store_time){s->host->now(s->host).ns / 1000000 +
	                                 atomic_load(&s->ahead_ms)};
}

/* One transaction of some calls. */
struct deal {
	struct pg_store *s;
	struct conn *c;
	struct call *calls; /* linked by their requests */
	struct wants first, second;
	struct desk desk;
	bool open; /* the desk is */
	struct written written;
	bool split;    /* a call failed after a part of it was written */
	bool certain;  /* a guess was wrong: there are no more */
	bool taken;    /* others have keys that they were presumed not to have */
	bool apart;    /* what has a key gets a row of its own */
	bool recalled; /* the queue is that of `recall` */
	struct recall recall;
	uint64_t classes; /* whose locks are held */
	uint64_t lacking; /* those that turned out to be needed */
	bool sleepers;    /* elsewhere, when it was committed */
	int64_t xid;
	struct baton_store_news *news;
	size_t news_count;
};

static struct call *call_next(const struct call *call)
{
	return (struct call *)call->request.next;
}

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

static void desk_end(struct deal *t)
{
	if (t->open)
		desk_close(&t->desk);
	t->open = false;
}

/* News outlive the desk that they were made on. */
static enum baton_err keep_news(struct deal *t)
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

static void run_all(struct deal *t, bool more)
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

static bool has_first(const struct deal *t)
{
	for (struct call *call = t->calls; call; call = call_next(call)) {
		if (call->run)
			return true;
	}
	return false;
}

static bool has_second(const struct deal *t)
{
	for (struct call *call = t->calls; call; call = call_next(call)) {
		if (call->run_more && call->request.err == BATON_OK)
			return true;
	}
	return false;
}

/* Whether one of the calls came to something. */
static bool has_success(const struct deal *t)
{
	for (struct call *call = t->calls; call; call = call_next(call)) {
		if (call->request.err == BATON_OK)
			return true;
	}
	return false;
}

static enum baton_err rest_of_first(struct deal *t)
{
	struct loading l;
	if (!load_rest(&t->first, &t->desk))
		return t->first.memory ? BATON_OK : fail_memory(1, "a transaction");
	load_rest_send(t->c, &t->first, &t->desk, &l);
	enum baton_err e = conn_round(t->c);
	return e == BATON_OK ? load_rest_take(t->c, &l, &t->desk) : e;
}

static void deal_begin(struct deal *t)
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

static void guess_nothing(struct wants *w)
{
	w->guessed.count = w->guessed_stripes.count = 0;
	w->rest_heads.count = w->rest_fences.count = 0;
	w->apart = false;
}

/* Claims in rows with others. False: one is not known. */
static bool guess_together(struct hints *h, struct wants *w)
{
	struct hint_claim claim;
	for (size_t i = 0; i < w->bases.count; i++) {
		if (!hints_find(h, w->bases.list[i], &claim))
			return false;
		want_guess(w, claim.queue, claim.stripe);
	}
	return true;
}

/* Claims in rows of their own, which are looked for there at once. */
static bool guess_apart(struct hints *h, struct wants *w)
{
	struct hint_claim claim;
	for (size_t i = 0; i < w->heads.count; i++) {
		const struct claim_name name = {w->heads.list[i], w->fences.list[i]};
		if (!hints_find_apart(h, name.head, &claim))
			return false;
		want_guess(w, claim.queue, claim.stripe);
		want_rest(w, &name);
	}
	w->apart = w->heads.count > 0;
	return true;
}

/* Whose claims are completed this process knows, if it has made them. */
static void guess(struct deal *t)
{
	struct wants *w = &t->first;
	guess_nothing(w);
	if (t->certain || t->second.heads.count + t->second.ids.count > 0 ||
	    w->ids.count + w->melt.count + w->queues.count + w->keys.count + w->runner > 0)
		return;
	if (guess_together(&t->s->hints, w))
		return;
	guess_nothing(w);
	if (!guess_apart(&t->s->hints, w))
		guess_nothing(w);
}

/* Whether all it is about is one queue, of which this process knows what it is: those who put into
 * it what is ready at once, or complete claims. */
static void recall(struct deal *t)
{
	const struct wants *w = &t->first;
	const bool puts = w->queues.count == 1 && w->heads.count == 0;
	const bool ends = w->queues.count == 0 && w->guessed.count == 1 && !w->apart;
	t->recalled = !t->certain && (puts || ends) && t->second.queues.count == 0 &&
	              !t->second.runners && !w->runners && !w->timed && w->classes.count == 0 &&
	              w->lanes.count + w->keys.count + w->ids.count + w->melt.count +
	                              w->subjects.count + w->schedules.count ==
	                      0 &&
	              (ends || atomic_load(&t->s->drawing) == 0) &&
	              hints_recall(&t->s->hints, puts ? w->queues.list[0] : BATON_STR(""),
	                           ends ? (uint32_t)w->guessed.list[0] : 0,
	                           t->s->host->now(t->s->host).ns, &t->recall) &&
	              (w->guest_lines.count == 0 || t->recall.is.policy.key_waiting_max == 0) &&
	              (w->key_lines.count == 0 ||
	               keyed_are_usual(&t->recall.is.policy, t->recall.is.guests));
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

/* Who else has the keys of what is put is not read, unless that is of consequence, or it is known
 * that somebody has. */
static void presume(struct deal *t)
{
	struct wants *w = &t->first;
	bool read = t->taken || t->apart ||
	            w->heads.count + w->ids.count + w->keys.count + w->runner > 0;
	for (size_t i = 0; i < w->key_queues.count && !read; i++) {
		const struct baton_str *queue = &w->key_queues.list[i];
		if (i == 0 || !baton_str_equal(queue[0], queue[-1]))
			read = hints_strict(&t->s->hints, stripe_of(*queue));
	}
	if (read)
		want_key_lines(w);
}

static uint64_t classes_of(struct deal *t, const struct nums *stripes)
{
	uint64_t classes = 0;
	for (size_t i = 0; i < stripes->count; i++)
		classes |= hints_classes(&t->s->hints, (uint32_t)stripes->list[i]);
	return classes;
}

static void begin(struct deal *t)
{
	presume(t);
	guess(t);
	recall(t);
	conn_begin(t->c, within_ms(t));
	plan_anew(t);
	t->classes = t->lacking | t->first.class_locks | classes_of(t, &t->first.stripes) |
	             classes_of(t, &t->first.guessed_stripes) | classes_of(t, &t->second.stripes);
	load_lock(t->c, &t->first, &t->second, t->classes);
}

/* Which class a queue is of is known when it was read. If the lock of one is not held, everything
 * begins anew. */
static enum baton_err check_classes(struct deal *t)
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

static bool has_stripe(const struct nums *stripes, uint32_t stripe)
{
	for (size_t i = 0; i < stripes->count; i++) {
		if (stripes->list[i] == stripe)
			return true;
	}
	return false;
}

/* Whether all claims were found, and in queues whose locks are held. */
static bool is_guessed_right(struct deal *t)
{
	if (load_rest(&t->first, &t->desk) || !t->first.memory)
		return false;
	for (size_t i = 0; i < t->desk.queue_count; i++) {
		if (!has_stripe(&t->first.guessed_stripes, stripe_of(t->desk.queues[i].row->name)))
			return false;
	}
	return true;
}

/* Opens the desk with nothing but the queue that is remembered. */
static enum baton_err open_recalled(struct deal *t, struct baton_store_time now)
{
	t->open = true;
	enum baton_err e = desk_open(&t->desk, &t->s->base, now, t->recall.made, &t->c->spare);
	if (e == BATON_OK)
		e = desk_recall(&t->desk, baton_str_z(t->recall.name), t->recall.queue,
		                &t->recall.is);
	if (e != BATON_OK)
		return e;
	t->desk.m->runner = t->desk.last_runner = t->recall.last_runner;
	t->desk.m->seq = t->desk.last = t->recall.last;
	t->desk.expects = true;
	return BATON_OK;
}

static enum baton_err first_recall(struct deal *t)
{
	struct loading l;
	load_chunks(t->c, &t->first, &l);
	enum baton_err e = t->first.heads.count > 0 ? conn_round(t->c) : BATON_OK;
	if (e == BATON_OK)
		e = open_recalled(t, baton_store_now(&t->s->base));
	if (e != BATON_OK)
		return e;
	return t->first.heads.count > 0 ? desk_chunks(&t->desk, conn_answer(t->c, l.chunks)) : e;
}

static enum baton_err first_load(struct deal *t)
{
	struct loading l;
	if (t->recalled)
		return first_recall(t);
	load_send(t->s, t->c, &t->first, false, &l);
	enum baton_err e = conn_round(t->c);
	t->open = e == BATON_OK;
	return e == BATON_OK ? load_take(t->s, t->c, &l, &t->desk) : e;
}

/* Where keys are something unusual, it has to be known who has them. */
static enum baton_err lines_of_first(struct deal *t)
{
	struct loading l;
	bool strict = false, bounded = false;
	const bool keys = t->first.key_lines.count > 0, guests = t->first.guest_lines.count > 0;
	for (size_t i = 0; i < t->desk.queue_count && (keys || guests); i++) {
		const struct queue *q = t->desk.queues[i].row;
		bool unusual = !keyed_are_usual(&q->is.policy, q->is.guests);
		if (keys)
			hints_strict_found(&t->s->hints, stripe_of(q->name), unusual);
		strict = strict || (keys && unusual);
		bounded = bounded || (guests && q->is.policy.key_waiting_max > 0);
	}
	if (!strict && !bounded)
		return BATON_OK;
	if (strict)
		want_key_lines(&t->first);
	if (bounded)
		want_guest_lines(&t->first);
	load_lines(t->c, &t->first, &l);
	enum baton_err e = conn_round(t->c);
	return e == BATON_OK ? load_rest_take(t->c, &l, &t->desk) : e;
}

/* After a wrong guess everything begins anew, with locks that are asked for. */
static enum baton_err begin_again(struct deal *t)
{
	conn_rollback(t->c);
	desk_end(t);
	t->certain = true;
	begin(t);
	return first_load(t);
}

static bool has_failure(const struct deal *t)
{
	for (struct call *call = t->calls; call; call = call_next(call)) {
		if (call->request.err != BATON_OK)
			return true;
	}
	return false;
}

static enum baton_err first_part(struct deal *t);

/* The same, by what is read. */
static enum baton_err first_again(struct deal *t)
{
	/* What was sent is not written yet, or will not be. Who could not get the lock in time does
	 * not wait for it once more. */
	enum baton_err e = t->c->sent > 0 ? conn_round(t->c) : BATON_OK;
	if (e == BATON_BUSY)
		return e;
	conn_rollback(t->c);
	desk_end(t);
	deal_begin(t);
	t->certain = true;
	e = conn_need(t->c);
	if (e != BATON_OK)
		return e;
	begin(t);
	return first_part(t);
}

static enum baton_err first_part(struct deal *t)
{
	if (!has_first(t))
		return BATON_OK;
	enum baton_err e = first_load(t);
	/* What is remembered may be of a store that another has taken the place of since. */
	const bool strange = e == BATON_STORAGE && t->first.apart;
	if (strange || (e == BATON_OK && t->first.guessed.count > 0 && !is_guessed_right(t)))
		e = begin_again(t);
	if (e == BATON_OK)
		e = rest_of_first(t);
	if (e == BATON_OK && !t->recalled)
		e = lines_of_first(t);
	if (e == BATON_OK)
		e = check_classes(t);
	if (e != BATON_OK)
		return e;
	run_all(t, false);
	if (t->recalled && has_failure(t)) {
		/* It may be otherwise by now. */
		hints_unsure(&t->s->hints, &t->recall);
		return first_again(t);
	}
	e = keep_news(t);
	t->desk.apart = t->apart;
	t->desk.presumes = t->first.key_lines.count > 0;
	t->desk.around = t->first.runner == 0 && !t->first.lane_ask;
	if (e == BATON_OK && has_success(t))
		e = desk_write(&t->desk, t->c, &t->written);
	if (e == BATON_OK && t->recalled && !t->written.sure)
		e = first_again(t);
	return e;
}

static enum baton_err more_heads(struct deal *t, const struct page_end *after,
                                 struct page_end *page)
{
	struct loading l = load_nothing;
	load_heads(t->c, &t->second, after, &l);
	enum baton_err e = conn_round(t->c);
	return e == BATON_OK ? load_heads_take(t->c, &l, &t->desk, &t->second, page) : e;
}

/* What can be claimed has been claimed before: all of it may turn out to be dead. */
static bool are_all_claimed(const struct deal *t, const struct page_end *page)
{
	return page->full && t->second.take_count == 1 &&
	       t->desk.m->claims.count >= t->desk.m->batches.count;
}

/* Whether heads were found not long ago in one of the pools that are claimed from. */
static bool expects_heads(struct deal *t)
{
	for (size_t i = 0; i < t->second.take_count; i++) {
		const struct want_heads *h = &t->second.takes[i];
		if (hints_heads(&t->s->hints, stripe_of(h->queue), h->pool))
			return true;
	}
	return false;
}

static void remember_heads(struct deal *t, bool any)
{
	for (size_t i = 0; i < t->second.take_count; i++) {
		const struct want_heads *h = &t->second.takes[i];
		hints_heads_found(&t->s->hints, stripe_of(h->queue), h->pool, any);
	}
}

/* Where time has done something that is seen to, and then everything is read anew. */
static enum baton_err second_load(struct deal *t, struct loading *l)
{
	enum baton_err e = BATON_OK;
	t->second.due = hints_due(&t->s->hints);
	for (bool again = true; again && e == BATON_OK;) {
		load_send(t->s, t->c, &t->second, false, l);
		if (t->second.take_count > 0 && expects_heads(t))
			load_heads(t->c, &t->second, NULL, l);
		if (t->second.take_count > 0)
			load_bulks(t->c, &t->second, l);
		e = conn_round(t->c);
		again = e == BATON_OK && !t->second.due && load_is_due(t->c, l);
		t->second.due = t->second.due || again;
		if (again)
			hints_due_found(&t->s->hints);
	}
	return e;
}

/* Puts what can be claimed on the desk. */
static enum baton_err heads_load(struct deal *t, const struct loading *l, struct page_end *page)
{
	const bool asked = l->heads < 0, any = load_has_heads(t->c, l);
	enum baton_err e = load_heads_take(t->c, l, &t->desk, &t->second, page);
	if (e == BATON_OK && any)
		e = more_heads(t, NULL, page);
	if (e == BATON_OK && (!asked || any))
		remember_heads(t, page->any);
	return e;
}

/* The queues of claims that may be completed as they stand. */
static void remember_claims(struct deal *t)
{
	const struct queue *last = NULL;
	struct hint_claim claim = {.stripe = 0};
	for (size_t i = 0; i < t->desk.bulk_count; i++) {
		const struct bulk_read *read = &t->desk.bulks[i];
		if (read->reached == read->mark || read->queue->is.policy.keep.ns > 0)
			continue;
		if (read->queue != last)
			claim.stripe = stripe_of(read->queue->name);
		last = read->queue;
		claim.base = read->first - read->first % BULK_MAX;
		claim.queue = (uint32_t)last->row.kept;
		hints_claimed(&t->s->hints, &claim);
	}
}

/* And of those that have rows of their own. */
static void remember_apart(struct deal *t)
{
	const struct queue *last = NULL;
	struct hint_claim claim = {.stripe = 0};
	for (const struct row *row = t->desk.m->claims.oldest; row; row = row->newer) {
		const struct claim *c = (const struct claim *)row;
		if (row->kept > 0 || !c->lane->first || (c->lane->first->row.kept & IN_BULK))
			continue;
		if (c->lane->queue != last)
			claim.stripe = stripe_of(c->lane->queue->name);
		last = c->lane->queue;
		claim.base = c->name.head;
		claim.queue = (uint32_t)last->row.kept;
		hints_claimed_apart(&t->s->hints, &claim);
	}
}

/* Whether it is about claims of one queue alone, of which this process knows what it is. */
static bool recalls_claims(struct deal *t)
{
	const struct wants *w = &t->second;
	return !t->certain && !has_first(t) && w->take_count == 1 && w->takes[0].pool == 0 &&
	       w->queues.count == 1 && w->subjects.count == 1 && !w->lane_ask && !w->runners &&
	       w->taken.count == 0 && !expects_heads(t) &&
	       hints_recall(&t->s->hints, w->queues.list[0], 0, t->s->host->now(t->s->host).ns,
	                    &t->recall) &&
	       t->recall.is.policy.key_fair == BATON_KEY_FAIR_OFF &&
	       !policy_has_class(&t->recall.is.policy);
}

/* The queue is as it was: that is read under its lock, and so nothing has to be checked later.
 * *ret_is: false, if it is not, and nothing was done. */
static enum baton_err second_recall(struct deal *t, struct loading *l, bool *ret_is)
{
	load_claim_look(t->s, t->c, &t->second, t->recall.queue, l);
	enum baton_err e = conn_round(t->c);
	*ret_is = e == BATON_OK && load_is_as(t->c, l, &t->recall.is);
	if (e != BATON_OK)
		return e;
	if (!*ret_is) {
		hints_unsure(&t->s->hints, &t->recall);
		return BATON_OK;
	}
	hints_sure(&t->s->hints, &t->recall);
	e = open_recalled(t, load_now(t->s, t->c, l));
	t->desk.recalled = false;
	return e == BATON_OK ? load_claim_look_take(t->c, l, &t->desk) : e;
}

/* Whether keys of a queue that is claimed from count for each host, or each process. */
static bool has_sites(const struct deal *t)
{
	bool sites = false;
	for (size_t i = 0; i < t->desk.queue_count; i++)
		sites = sites || policy_has_sites(&t->desk.queues[i].row->is.policy);
	return sites && t->second.only > 0;
}

/* What is held where the runner is; the keys that are full there are passed over. */
static enum baton_err sites_load(struct deal *t)
{
	const struct key_uses *uses = &t->desk.m->known;
	const struct runner *runner = memory_runner_find(t->desk.m, t->second.only);
	if (!runner)
		return BATON_OK;
	t->desk.asker = &runner->put.owner;
	want_pass_rated(&t->second, t->desk.asker);
	int answer = load_sites(t->c, &t->second);
	enum baton_err e = conn_round(t->c);
	if (e == BATON_OK)
		e = desk_site_uses(&t->desk, conn_answer(t->c, answer));
	for (size_t i = 0; e == BATON_OK && i < uses->count; i++) {
		const struct queue *queue = uses->list[i].queue;
		if (uses->list[i].count >= queue->is.policy.key_limit)
			want_pass(&t->second, (int64_t)queue->row.kept, uses->list[i].line);
	}
	return e == BATON_OK && !t->second.memory ? fail_memory(1, "keys that are full") : e;
}

/* What time has done to queues of a class is seen to by whoever claims from any of them: it may
 * free keys. Claims of such keys that are over are ended. */
static enum baton_err class_part(struct deal *t)
{
	struct loading l;
	struct wants over;
	if (t->classes == 0)
		return BATON_OK;
	pg_wants_init(&over, t->s->base.alloc);
	enum baton_err e = load_over(t->s, t->c, &t->second, &over);
	if (e == BATON_OK && !over.memory)
		e = fail_memory(1, "a transaction");
	if (e == BATON_OK && over.rest_heads.count > 0) {
		load_send(t->s, t->c, &over, false, &l);
		e = conn_round(t->c);
		t->open = e == BATON_OK;
		if (e == BATON_OK)
			e = load_take(t->s, t->c, &l, &t->desk);
		if (e == BATON_OK)
			e = check_classes(t);
		if (e == BATON_OK)
			e = memory_classes_see(t->desk.store);
		if (e == BATON_OK)
			e = keep_news(t);
		if (e == BATON_OK)
			e = desk_write(&t->desk, t->c, &t->written);
	}
	pg_wants_done(&over);
	desk_end(t);
	return e;
}

static enum baton_err second_part(struct deal *t)
{
	struct loading l;
	struct page_end page = {.full = false};
	if (!has_second(t))
		return BATON_OK;
	desk_end(t);
	bool is_as_it_was = false;
	enum baton_err e = class_part(t);
	t->written.told = -1;
	if (e == BATON_OK && recalls_claims(t))
		e = second_recall(t, &l, &is_as_it_was);
	if (e == BATON_OK && !is_as_it_was)
		e = second_load(t, &l);
	t->open = t->open || e == BATON_OK;
	t->written.any = t->written.any || t->second.take_count > 0 || t->second.lane_ask;
	if (e == BATON_OK && !is_as_it_was)
		e = load_take(t->s, t->c, &l, &t->desk);
	if (e == BATON_OK)
		e = check_classes(t);
	t->second.full.count = t->second.sites.count = 0;
	if (e == BATON_OK && t->second.take_count > 0 && has_sites(t)) {
		/* What heads were read may be those that are passed over. */
		l.heads = -1;
		e = load_heads_take(t->c, &l, &t->desk, &t->second, &page);
		if (e == BATON_OK)
			e = sites_load(t);
		if (e == BATON_OK)
			e = more_heads(t, NULL, &page);
	} else if (e == BATON_OK && t->second.take_count > 0) {
		e = heads_load(t, &l, &page);
	}
	for (int i = 0; i < PAGES && e == BATON_OK && are_all_claimed(t, &page); i++)
		e = more_heads(t, &page, &page);
	if (e != BATON_OK)
		return e;
	run_all(t, true);
	e = keep_news(t);
	if (e == BATON_OK && has_success(t) && !t->split) {
		e = desk_write(&t->desk, t->c, &t->written);
		remember_claims(t);
		remember_apart(t);
	}
	return e;
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
	begin(t);
	e = first_part(t);
	if (e == BATON_OK)
		e = second_part(t);
	if (e != BATON_OK || t->split || !has_success(t))
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

/* What the queues are now, for the next who is about one of them. */
static void remember_queues(struct deal *t)
{
	const struct desk *d = &t->desk;
	if (t->open)
		hints_number(&t->s->hints, d->m->seq);
	for (size_t i = 0; t->open && i < d->queue_count; i++) {
		const struct read_queue *read = &d->queues[i];
		const struct baton_str name = read->row->name;
		struct recall r = {.queue = (uint32_t)read->row->row.kept,
		                   .at_ns = t->recalled ? t->recall.at_ns
		                                        : t->s->host->now(t->s->host).ns,
		                   .last = d->m->seq,
		                   .last_runner = d->last_runner,
		                   .made = d->m->made};
		if (!t->written.any)
			continue;
		if (name.len >= sizeof r.name || !desk_foresee(d, read, &r.is)) {
			hints_drop(&t->s->hints, name);
			continue;
		}
		memcpy(r.name, name.ptr, name.len);
		hints_remember(&t->s->hints, &r);
	}
}

static enum baton_err deal_do(struct deal *t)
{
	enum baton_err e = BATON_OK;
	for (int i = 0; i < TRIES; i++) {
		deal_begin(t);
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
			remember_queues(t);
			if (t->recalled)
				hints_sure(&t->s->hints, &t->recall);
		}
		bool again = e != BATON_OK && can_repeat(t->c, unknown);
		conn_rollback(t->c);
		desk_end(t);
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

static void commit(void *lineup, struct request *list)
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

static enum baton_err look(struct pg_store *s, const struct wants *w,
                           enum baton_err (*run)(struct baton_store *desk, void *args), void *args)
{
	struct conn *c = &s->read;
	struct desk d = {.memory = true};
	struct loading l;
	enum baton_err e = conn_need(c);
	if (e != BATON_OK)
		return e;
	conn_begin_look(c, atomic_load(&s->beat_ms));
	load_send(s, c, w, true, &l);
	e = conn_round(c);
	if (e == BATON_OK) {
		e = load_take(s, c, &l, &d);
		if (e == BATON_OK)
			e = load_class(c, &d);
		if (e == BATON_OK)
			e = run(d.store, args);
		desk_close(&d);
	}
	conn_rollback(c);
	return e;
}

enum baton_err pg_look(struct pg_store *s, void (*want)(struct wants *w, const void *args),
                       enum baton_err (*run)(struct baton_store *desk, void *args), void *args)
{
	struct wants w;
	pg_wants_init(&w, s->base.alloc);
	want(&w, args);
	enum baton_err e = w.memory ? BATON_OK : fail_memory(1, "a look");
	pthread_mutex_lock(&s->read_mu);
	if (e == BATON_OK)
		e = look(s, &w, run, args);
	pthread_mutex_unlock(&s->read_mu);
	pg_wants_done(&w);
	return e;
}

static void connect_init(struct pg_store *s, struct conn *c)
{
	conn_init(c, s->base.alloc, s->info, s->base.where);
	c->pooled = s->pooled;
	c->patience_ms = s->base.patience.ns / 1000000;
}

static void lineup_init(struct lineup *l, struct pg_store *s)
{
	group_init(&l->group, commit, l);
	l->store = s;
	connect_init(s, &l->conn);
	l->conn.arrived = pg_schema_arrive;
}

/* The connections of a forked child are its parent's, who goes on with them. */
static void lineup_done(struct lineup *l)
{
	if (!l->store)
		return;
	if (l->store->base.pid == getpid())
		conn_close(&l->conn);
	group_done(&l->group);
}

void postgres_close(struct baton_store *store)
{
	struct pg_store *s = (struct pg_store *)store;
	listener_done(s);
	lineup_done(&s->adds);
	lineup_done(&s->takes);
	lineup_done(&s->keeps);
	if (s->base.pid == getpid())
		conn_close(&s->read);
	pthread_mutex_destroy(&s->read_mu);
	hints_done(&s->hints);
	store_done(store);
	explicit_bzero(s->info, sizeof s->info);
	mem_free(s->base.alloc, s, 1, sizeof *s);
}

/* What of a connection string people are told: what cannot be a secret. */
static void show_option(char *text, size_t size, const PQconninfoOption *o)
{
	static const char *const shown[] = {"host",   "hostaddr", "port",
	                                    "dbname", "user",     "service"};
	size_t len = strlen(text);
	for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
		if (o->val && o->val[0] && strcmp(o->keyword, shown[i]) == 0)
			snprintf(text + len, size - len, "%s%s=%s", text[len - 1] == ':' ? "" : " ",
			         o->keyword, o->val);
	}
}

static enum baton_err show_where(struct pg_store *s)
{
	char *why = NULL;
	PQconninfoOption *options = PQconninfoParse(s->info, &why);
	PQfreemem(why); /* may have a part of the string, and so a secret */
	if (!options)
		return fail(
			BATON_INVALID,
			"the store's connection string cannot be read: it is like "
			"postgresql://USER@HOST/DATABASE or postgres:host=HOST dbname=DATABASE");
	snprintf(s->base.where, sizeof s->base.where, "postgres:");
	for (const PQconninfoOption *o = options; o->keyword; o++)
		show_option(s->base.where, sizeof s->base.where, o);
	PQconninfoFree(options);
	return BATON_OK;
}

/* Stores that were made from one copy have the same name, but not the same place. */
static enum baton_err read_key(struct pg_store *s)
{
	uint8_t digest[DIGEST_SIZE];
	char text[128];
	enum baton_err e = conn_ask(&s->read,
	                            "SELECT encode(name, 'hex') || split_part(place, '/', 1) FROM "
	                            "baton.state",
	                            text, sizeof text);
	if (e != BATON_OK)
		return e;
	digest_bytes(text, strlen(text), digest);
	memcpy(&s->listen_key, digest, sizeof s->listen_key);
	return BATON_OK;
}

/* Makes the tables if they are not there, and reads what never changes, on the connection that
 * looks are for later. */
static enum baton_err prepare(struct pg_store *s, bool existing)
{
	struct conn *c = &s->read;
	char text[64];
	connect_init(s, c);
	enum baton_err e = conn_connect(c, true);
	if (e == BATON_OK)
		e = conn_ask(c, "SHOW server_encoding", text, sizeof text);
	if (e == BATON_OK && strcmp(text, "UTF8") != 0)
		e = fail(BATON_INVALID, "the database of store %s is in %s: it has to be in UTF8",
		         s->base.where, text);
	int64_t now_ms = 0;
	if (e == BATON_OK)
		e = conn_number(c, "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint",
		                &now_ms);
	if (s->own_clock)
		now_ms = s->host->wall(s->host).ms;
	atomic_store(&s->ahead_ms, now_ms - s->host->now(s->host).ns / 1000000);
	if (e == BATON_OK)
		e = pg_schema_open(c, existing, now_ms);
	if (e == BATON_OK)
		e = conn_ask(c, "SELECT encode(name, 'hex') FROM baton.state", text, sizeof text);
	if (e == BATON_OK)
		e = baton_id_parse(baton_str_z(text), &s->base.name);
	if (e == BATON_OK)
		e = read_key(s);
	if (e == BATON_OK)
		e = conn_be_quick(c);
	c->arrived = pg_schema_arrive;
	return e;
}

static void pg_store_freep(struct pg_store **s)
{
	if (*s)
		postgres_close(&(*s)->base);
}

enum baton_err postgres_open(const struct baton_store *store, struct baton_str info, bool existing,
                             struct baton_store **ret_store)
{
	AUTO(pg_store_freep) struct pg_store *s = mem_new(store->alloc, 1, sizeof *s);
	if (!s)
		return fail_memory(sizeof *s, "a store");
	memcpy(&s->base, store, sizeof s->base);
	s->base.ops = &postgres_ops;
	pthread_mutex_init(&s->base.beats_mu, NULL);
	pthread_mutex_init(&s->read_mu, NULL);
	listener_init(&s->listener);
	hints_init(&s->hints);
	snprintf(s->info, sizeof s->info, "%.*s", (int)info.len, info.ptr);
	s->host = store->clock;
	s->own_clock = store->clock != baton_clock_awake();
	s->clock = *store->clock;
	if (!s->own_clock) {
		s->clock.wall = server_wall;
		s->base.clock = &s->clock;
	}
	enum baton_err e = address_split(s->info, &s->pooled);
	if (e == BATON_OK)
		e = show_where(s);
	if (e == BATON_OK)
		e = prepare(s, existing);
	if (e != BATON_OK)
		return e;
	lineup_init(&s->adds, s);
	lineup_init(&s->takes, s);
	lineup_init(&s->keeps, s);
	struct pg_store *made = TAKE(s);
	*ret_store = &made->base;
	return BATON_OK;
}
