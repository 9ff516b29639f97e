/* The first part of a transaction: what puts, ends and renews. */
#include "store/postgres/deal.h"

#include "base/fail.h"
#include "store/postgres/bulk.h"
#include "store/postgres/keyed.h"

static enum baton_err rest_of_first(struct deal *t)
{
	struct loading l;
	if (!load_rest(&t->first, &t->desk))
		return t->first.memory ? BATON_OK : fail_memory(1, "a transaction");
	load_rest_send(t->c, &t->first, &t->desk, &l);
	enum baton_err e = conn_round(t->c);
	return e == BATON_OK ? load_rest_take(t->c, &l, &t->desk) : e;
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

static enum baton_err first_recall(struct deal *t)
{
	struct loading l;
	load_chunks(t->c, &t->first, &l);
	enum baton_err e = t->first.heads.count > 0 ? conn_round(t->c) : BATON_OK;
	if (e == BATON_OK)
		e = deal_open_recalled(t, baton_store_now(&t->s->base));
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
	deal_desk_close(t);
	t->certain = true;
	deal_begin(t);
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

/* The same, by what is read. */
static enum baton_err first_again(struct deal *t)
{
	/* What was sent is not written yet, or will not be. Who could not get the lock in time does
	 * not wait for it once more. */
	enum baton_err e = t->c->sent > 0 ? conn_round(t->c) : BATON_OK;
	if (e == BATON_BUSY)
		return e;
	conn_rollback(t->c);
	deal_desk_close(t);
	deal_clear(t);
	t->certain = true;
	e = conn_need(t->c);
	if (e != BATON_OK)
		return e;
	deal_begin(t);
	return deal_first(t);
}

enum baton_err deal_first(struct deal *t)
{
	if (!deal_has_first(t))
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
		e = deal_check_classes(t);
	if (e == BATON_OK && t->classes != 0 && !t->recalled)
		e = load_rivals(t->c, &t->first, &t->desk);
	if (e != BATON_OK)
		return e;
	deal_run(t, false);
	if (t->recalled && has_failure(t)) {
		/* It may be otherwise by now. */
		hints_unsure(&t->s->hints, &t->recall);
		return first_again(t);
	}
	e = deal_keep_news(t);
	t->desk.apart = t->apart;
	t->desk.presumes = t->first.key_lines.count > 0;
	t->desk.around = t->first.runner == 0 && !t->first.lane_ask;
	if (e == BATON_OK && deal_has_success(t))
		e = desk_write(&t->desk, t->c, &t->written);
	if (e == BATON_OK && t->recalled && !t->written.sure)
		e = first_again(t);
	return e;
}
