/* The second part of a transaction: what claims. */
#include "store/memory/runner.h"
#include "store/postgres/deal.h"

#include "base/fail.h"
#include "queue/policy.h"
#include "store/memory/ops.h"

#define PAGES 64

static bool has_second(const struct deal *t)
{
	for (struct call *call = t->calls; call; call = call_next(call)) {
		if (call->run_more && call->request.err == BATON_OK)
			return true;
	}
	return false;
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

/* Where time has done something that is seen to, and then everything is read anew. */
static enum baton_err second_load(struct deal *t, struct loading *l)
{
	enum baton_err e = BATON_OK;
	t->second.due = hints_due(&t->s->hints);
	for (bool again = true; again && e == BATON_OK;) {
		load_send(t->s, t->c, &t->second, false, l);
		if (t->second.take_count > 0 && deal_expects_heads(t))
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
		deal_remember_heads(t, page->any);
	return e;
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
	e = deal_open_recalled(t, load_now(t->s, t->c, l));
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
			e = deal_check_classes(t);
		if (e == BATON_OK)
			e = memory_classes_see(t->desk.store);
		if (e == BATON_OK)
			e = deal_keep_news(t);
		if (e == BATON_OK)
			e = desk_write(&t->desk, t->c, &t->written);
	}
	pg_wants_done(&over);
	deal_desk_close(t);
	return e;
}

enum baton_err deal_second(struct deal *t)
{
	struct loading l;
	struct page_end page = {.full = false};
	if (!has_second(t))
		return BATON_OK;
	deal_desk_close(t);
	bool is_as_it_was = false;
	enum baton_err e = class_part(t);
	t->written.told = -1;
	if (e == BATON_OK && deal_recalls_claims(t))
		e = second_recall(t, &l, &is_as_it_was);
	if (e == BATON_OK && !is_as_it_was)
		e = second_load(t, &l);
	t->open = t->open || e == BATON_OK;
	t->written.any = t->written.any || t->second.take_count > 0 || t->second.lane_ask;
	if (e == BATON_OK && !is_as_it_was)
		e = load_take(t->s, t->c, &l, &t->desk);
	if (e == BATON_OK)
		e = deal_check_classes(t);
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
	deal_run(t, true);
	e = deal_keep_news(t);
	if (e == BATON_OK && deal_has_success(t) && !t->split) {
		e = desk_write(&t->desk, t->c, &t->written);
		deal_remember_claims(t);
		deal_remember_apart(t);
	}
	return e;
}
