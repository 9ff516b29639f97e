/* What a transaction takes for granted by what this process remembers, and what it remembers of it
 * for the next ones. */
#include "store/postgres/deal.h"

#include <string.h>

#include "queue/policy.h"
#include "store/postgres/bulk.h"
#include "store/postgres/keyed.h"

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
void deal_guess(struct deal *t)
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
void deal_recall(struct deal *t)
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

/* Who else has the keys of what is put is not read, unless that is of consequence, or it is known
 * that somebody has. */
void deal_presume(struct deal *t)
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

enum baton_err deal_open_recalled(struct deal *t, struct baton_store_time now)
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

bool deal_expects_heads(struct deal *t)
{
	for (size_t i = 0; i < t->second.take_count; i++) {
		const struct want_heads *h = &t->second.takes[i];
		if (hints_heads(&t->s->hints, stripe_of(h->queue), h->pool))
			return true;
	}
	return false;
}

bool deal_recalls_claims(struct deal *t)
{
	const struct wants *w = &t->second;
	return !t->certain && !deal_has_first(t) && w->take_count == 1 && w->takes[0].pool == 0 &&
	       w->queues.count == 1 && w->subjects.count == 1 && !w->lane_ask && !w->runners &&
	       w->taken.count == 0 && !deal_expects_heads(t) &&
	       hints_recall(&t->s->hints, w->queues.list[0], 0, t->s->host->now(t->s->host).ns,
	                    &t->recall) &&
	       t->recall.is.policy.key_fair == BATON_KEY_FAIR_OFF &&
	       !policy_has_class(&t->recall.is.policy);
}

void deal_remember_heads(struct deal *t, bool any)
{
	for (size_t i = 0; i < t->second.take_count; i++) {
		const struct want_heads *h = &t->second.takes[i];
		hints_heads_found(&t->s->hints, stripe_of(h->queue), h->pool, any);
	}
}

/* The queues of claims that may be completed as they stand. */
void deal_remember_claims(struct deal *t)
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
void deal_remember_apart(struct deal *t)
{
	const struct queue *last = NULL;
	struct hint_claim claim = {.stripe = 0};
	for (const struct row *row = t->desk.m->claims.oldest; row; row = row->newer) {
		const struct claim *c = (const struct claim *)row;
		if (row->kept > 0 || !c->lane->first || (c->lane->first->row.kept & IN_BULK))
			continue;
		const struct queue *queue = c->lane->queue;
		if (queue != last)
			claim.stripe = stripe_of(queue->name);
		last = queue;
		claim.base = c->name.head;
		claim.queue = (uint32_t)queue->row.kept;
		hints_claimed_apart(&t->s->hints, &claim);
	}
}

/* What the queues are now, for the next who is about one of them. */
void deal_remember_queues(struct deal *t)
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
