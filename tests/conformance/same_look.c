/* Compares what two stores show. */
#include <stdlib.h>

#include "same.h"

void same_differ(struct same *s, const char *format, ...)
{
	va_list args;
	if (s->why[0])
		return;
	va_start(args, format);
	vsnprintf(s->why, sizeof s->why, format, args);
	va_end(args);
}

void same_number(struct same *s, const char *what, long long a, long long b)
{
	if (a != b)
		same_differ(s, "%s: %lld and %lld", what, a, b);
}

void same_text(struct same *s, const char *what, struct baton_str a, struct baton_str b)
{
	if (!baton_str_equal(a, b))
		same_differ(s, "%s: \"%.*s\" and \"%.*s\"", what, (int)a.len, a.ptr, (int)b.len,
		            b.ptr);
}

bool same_has_key(const struct baton_str *keys, size_t count, struct baton_str key)
{
	for (size_t i = 0; i < count; i++) {
		if (baton_str_equal(keys[i], key))
			return true;
	}
	return false;
}

void same_keys(struct same *s, const struct baton_str *a, size_t a_count, const struct baton_str *b,
               size_t b_count)
{
	SAME(s, "keys", a_count, b_count);
	for (size_t i = 0; i < a_count && i < b_count; i++)
		same_text(s, "one of the keys", a[i], b[i]);
}

static void compare_batch(struct same *s, const struct baton_work_batch *a,
                          const struct baton_work_batch *b)
{
	same_text(s, "id", baton_str_z(a->id.text), baton_str_z(b->id.text));
	SAME(s, "seq", a->seq, b->seq);
	SAME(s, "class", a->cls, b->cls);
	SAME(s, "delivery", a->delivery, b->delivery);
	SAME(s, "slot", a->slot, b->slot);
	same_text(s, "group", a->group, b->group);
	SAME(s, "priority", a->priority, b->priority);
	SAME(s, "attempt", a->attempt, b->attempt);
	SAME(s, "put_at", a->put_at.ms, b->put_at.ms);
	SAME(s, "payloads", a->count, b->count);
	for (size_t i = 0; i < a->count && i < b->count; i++)
		same_text(s, "payload", a->payloads[i], b->payloads[i]);
}

static void compare_info(struct same *s, const struct baton_work_info *a,
                         const struct baton_work_info *b)
{
	char where[80];
	compare_batch(s, &a->batch, &b->batch);
	SAME(s, "state", a->state, b->state);
	SAME(s, "due", a->due.ms, b->due.ms);
	same_text(s, "queue", a->queue, b->queue);
	same_text(s, "lane", a->lane, b->lane);
	same_text(s, "key", a->key, b->key);
	same_keys(s, a->keys, a->key_count, b->keys, b->key_count);
	same_text(s, "the key it waits for", a->held, b->held);
	SAME(s, "shard", a->key_count > 1 ? a->shard : 0, a->key_count > 1 ? b->shard : 0);
	same_text(s, "error", a->error, b->error);
	same_text(s, "result", a->result, b->result);
	SAME(s, "ended_at", a->ended_at.ms, b->ended_at.ms);
	SAME(s, "a claim", a->claim.len > 0, b->claim.len > 0);
	same_text(s, "owner", baton_str_z(a->owner.id), baton_str_z(b->owner.id));
	SAME(s, "claimed_at", a->claimed_at.ms, b->claimed_at.ms);
	SAME(s, "expires_at", a->expires_at.ms, b->expires_at.ms);
	SAME(s, "cancel", a->cancel, b->cancel);
	SAME(s, "why", a->why, b->why);
	same_text(s, "ahead", baton_str_z(a->ahead.text), baton_str_z(b->ahead.text));
	if (!s->why[0])
		return;
	snprintf(where, sizeof where, " (of %s and %s)", a->batch.id.text, b->batch.id.text);
	strncat(s->why, where, sizeof s->why - strlen(s->why) - 1);
}

static void compare_get(struct same *s, const struct baton_batch_id *id)
{
	struct baton_work_page *page[SIDES] = {NULL, NULL};
	enum baton_err e[SIDES];
	for (int i = 0; i < SIDES; i++)
		e[i] = baton_work_get(s->w[i].store, id, &page[i]);
	SAME(s, "get", e[0], e[1]);
	if (page[0] && page[1])
		compare_info(s, page[0]->infos, page[1]->infos);
	for (int i = 0; i < SIDES; i++)
		baton_work_page_free(page[i]);
}

/* Whether there is nothing after that page: what was forgotten there may be gone for good in one
 * store, and not yet in another. */
static bool is_last(struct world *w, struct baton_work_filter f, uint64_t next)
{
	struct baton_work_page *page = NULL;
	bool empty = next == 0;
	f.after = next;
	if (!empty && baton_work_list(w->store, &f, &page) == BATON_OK)
		empty = page->count == 0 && page->next == 0;
	baton_work_page_free(page);
	return empty;
}

static void compare_next(struct same *s, const struct baton_work_filter *f, uint64_t a, uint64_t b)
{
	if (a != b && !(is_last(&s->w[0], *f, a) && is_last(&s->w[1], *f, b)))
		SAME(s, "next", a, b);
}

/* Every page of a few. */
static void compare_list(struct same *s, const struct baton_work_filter *filter)
{
	struct baton_work_filter f = *filter;
	do {
		struct baton_work_page *page[SIDES] = {NULL, NULL};
		for (int i = 0; i < SIDES; i++)
			SAME(s, "list", baton_work_list(s->w[i].store, &f, &page[i]), BATON_OK);
		f.after = 0;
		if (page[0] && page[1]) {
			SAME(s, "batches in the list", page[0]->count, page[1]->count);
			compare_next(s, &f, page[0]->next, page[1]->next);
			f.after = page[0]->next;
		}
		bool both = page[0] && page[1];
		for (size_t i = 0; !s->why[0] && both && i < page[0]->count; i++)
			compare_info(s, &page[0]->infos[i], &page[1]->infos[i]);
		for (int i = 0; i < SIDES; i++)
			baton_work_page_free(page[i]);
	} while (f.after != 0 && !s->why[0]);
}

/* What is in that state, in all queues and in one; it is all on one page. */
static void compare_state(struct same *s, enum baton_batch_state state)
{
	struct baton_work_filter f = {.state = state, .max = BATON_LIST_MAX};
	if (state == BATON_BATCH_GONE)
		return;
	compare_list(s, &f);
	f.queue = BATON_STR("a");
	compare_list(s, &f);
}

static void compare_counts(struct same *s, struct baton_str queue)
{
	struct baton_queue_info a, b;
	enum baton_err e = baton_queue_get(s->w[0].store, queue, &a);
	SAME(s, "queue", e, baton_queue_get(s->w[1].store, queue, &b));
	if (e != BATON_OK || s->why[0])
		return;
	SAME(s, "ready", a.counts.ready, b.counts.ready);
	SAME(s, "delayed", a.counts.delayed, b.counts.delayed);
	SAME(s, "running", a.counts.running, b.counts.running);
	SAME(s, "dead", a.counts.dead, b.counts.dead);
	SAME(s, "waiting on key", a.counts.waiting_on_key, b.counts.waiting_on_key);
	SAME(s, "done", a.counts.done, b.counts.done);
	SAME(s, "failed", a.counts.failed, b.counts.failed);
	SAME(s, "oldest", a.counts.oldest.ns, b.counts.oldest.ns);
	SAME(s, "mode", a.policy.mode, b.policy.mode);
	SAME(s, "paused", a.policy.paused, b.policy.paused);
}

static void compare_due(struct same *s, struct baton_str queue)
{
	struct baton_store_time a = {0}, b = {0};
	SAME(s, "next_due", baton_work_next_due(s->w[0].store, queue, &a),
	     baton_work_next_due(s->w[1].store, queue, &b));
	SAME(s, "next due", a.ms, b.ms);
}

static void compare_leases(struct same *s)
{
	static struct baton_lease_entry entries[SIDES][32];
	const struct baton_str none = {NULL, 0};
	size_t count[SIDES];
	for (int i = 0; i < SIDES; i++)
		SAME(s, "leases",
		     baton_lease_list(s->w[i].store, none, none, entries[i], 32, &count[i]),
		     BATON_OK);
	SAME(s, "leases that are held", count[0], count[1]);
	for (size_t i = 0; i < count[0] && !s->why[0]; i++) {
		const struct baton_lease_entry *a = &entries[0][i], *b = &entries[1][i];
		same_text(s, "subject", baton_str_z(a->subject), baton_str_z(b->subject));
		same_text(s, "holder", baton_str_z(a->holder.owner.id),
		          baton_str_z(b->holder.owner.id));
		SAME(s, "end of a lease", a->holder.expires_at.ms, b->holder.expires_at.ms);
	}
}

static void note_fault(void *arg, const char *sentence)
{
	struct same *s = arg;
	same_differ(s, "a store is not sound: %s", sentence);
}

static void compare_soundness(struct same *s)
{
	for (int i = 0; i < SIDES; i++) {
		uint64_t faults = 0;
		SAME(s, "check", baton_store_check(s->w[i].store, note_fault, s, &faults),
		     BATON_OK);
		SAME(s, "faults", (long long)faults, 0LL);
	}
}

/* Stores see that a window is over when somebody claims, or along the way. */
static void see_windows(struct same *s)
{
	for (int i = 0; i < SIDES; i++)
		SAME(s, "tidy", baton_store_tidy(s->w[i].store, 1000, NULL), BATON_OK);
}

/* Whether it is in that queue, or in one that has its keys in common with it. */
static bool is_of(struct same *s, int side, const struct baton_work_info *b,
                  const struct baton_queue_info *queue)
{
	struct baton_queue_info info;
	if (baton_str_equal(b->queue, baton_str_z(queue->name)))
		return true;
	return queue->policy.key_class[0] &&
	       baton_queue_get(s->w[side].store, b->queue, &info) == BATON_OK &&
	       strcmp(info.policy.key_class, queue->policy.key_class) == 0;
}

/* What keeps its key until its next attempt is not seen from here. */
static void check_key(struct same *s, int side, const struct baton_work_claim *c,
                      struct baton_str key)
{
	struct baton_work_filter f = {.state = BATON_BATCH_CLAIMED, .max = 500};
	struct baton_work_page *page = NULL;
	struct baton_queue_info info;
	struct baton_str seen[64];
	size_t holds = 0;
	if (baton_queue_get(s->w[side].store, c->queue, &info) != BATON_OK ||
	    baton_work_list(s->w[side].store, &f, &page) != BATON_OK)
		return;
	for (size_t i = 0; i < page->count && holds < 64; i++) {
		const struct baton_work_info *b = &page->infos[i];
		size_t j = 0;
		if (!is_of(s, side, b, &info) || !same_has_key(b->keys, b->key_count, key) ||
		    b->expires_at.ms <= baton_store_now(s->w[side].store).ms)
			continue;
		while (j < holds && !baton_str_equal(seen[j], b->claim))
			j++;
		if (j == holds)
			seen[holds++] = b->claim;
	}
	if (holds > info.policy.key_limit)
		same_differ(s, "%s: key %.*s is held %zu times", s->w[side].where, (int)key.len,
		            key.ptr, holds);
	baton_work_page_free(page);
}

void same_check_key(struct same *s, int side, const struct baton_work_claim *c)
{
	for (size_t i = 0; i < c->key_count; i++)
		check_key(s, side, c, c->keys[i]);
}

void same_compare_all(struct same *s)
{
	static const char *const queues[] = {"a", "b", "c", SAME_SHARDED, ""};
	const struct baton_work_filter all = {.max = 7};
	see_windows(s);
	compare_list(s, &all);
	s->looks++;
	compare_state(s, (enum baton_batch_state)(1 + s->looks % BATON_BATCH_SKIPPED));
	for (int i = 0; i < 5; i++) {
		if (queues[i][0])
			compare_counts(s, baton_str_z(queues[i]));
		compare_due(s, baton_str_z(queues[i]));
	}
	for (size_t i = s->id_count > 20 ? s->id_count - 20 : 0; i < s->id_count && !s->why[0]; i++)
		compare_get(s, &s->ids[i]);
	compare_leases(s);
	compare_soundness(s);
}
