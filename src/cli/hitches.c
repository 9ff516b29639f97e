/* Keys that hold others up: what waits for one grows old at the front of what is ready, while the
 * rest of the queue passes. So the front is enough, however much there is behind it. */
#include "hitches.h"

#include <stdlib.h>
#include <string.h>

static void text_copy(char *to, size_t room, struct baton_str from)
{
	size_t len = from.len < room - 1 ? from.len : room - 1;
	if (len > 0)
		memcpy(to, from.ptr, len);
	to[len] = '\0';
}

/* The keys of one queue, as they are counted. */
struct tally {
	struct hitch *keys; /* room for as many as jobs are looked at */
	size_t count;
};

static void tally_key(struct tally *t, const struct baton_work_info *info, struct baton_str key)
{
	size_t i = 0;
	while (i < t->count && !baton_str_equal(baton_str_z(t->keys[i].key), key))
		i++;
	if (i == HITCH_JOBS_PER_QUEUE)
		return;
	struct hitch *hitch = &t->keys[i];
	if (i == t->count) {
		*hitch = (struct hitch){.first = info->batch.id, .several = info->key_count > 1};
		text_copy(hitch->queue, sizeof hitch->queue, info->queue);
		text_copy(hitch->key, sizeof hitch->key, key);
		t->count++;
	}
	hitch->waiting++;
}

static void tally_add(struct tally *t, const struct baton_work_info *info)
{
	for (size_t i = 0; i < info->key_count; i++)
		tally_key(t, info, info->keys[i]);
}

static int by_waiting(const void *a, const void *b)
{
	const struct hitch *x = a, *y = b;
	return (x->waiting < y->waiting) - (x->waiting > y->waiting);
}

static void holder_take(struct hitch *hitch, const struct baton_work_info *info)
{
	bool claimed = info->state == BATON_BATCH_CLAIMED;
	hitch->holder = info->batch.id;
	text_copy(hitch->owner, sizeof hitch->owner, baton_str_z(claimed ? info->owner.id : ""));
	hitch->since = claimed ? info->claimed_at : info->due;
}

/* Who holds it, as its first waiter says. False: that is gone, or waits for something else. */
static bool hold_told(struct baton_store *store, struct hitch *hitch)
{
	struct baton_work_page *page = NULL, *holder = NULL;
	bool held = baton_work_get(store, &hitch->first, &page) == BATON_OK &&
	            page->infos[0].why == BATON_WHY_KEY &&
	            baton_str_equal(page->infos[0].held, baton_str_z(hitch->key)) &&
	            baton_work_get(store, &page->infos[0].ahead, &holder) == BATON_OK;
	if (held)
		holder_take(hitch, &holder->infos[0]);
	baton_work_page_free(holder);
	baton_work_page_free(page);
	return held;
}

/* What runs in a queue, and what keeps its keys for its next attempt: read when it is needed. */
struct holders {
	struct baton_work_page *running, *retrying;
	bool read;
};

static void holders_done(struct holders *h)
{
	baton_work_page_free(h->running);
	baton_work_page_free(h->retrying);
}

static enum baton_err holders_read(struct holders *h, struct baton_store *store,
                                   const struct baton_queue_info *queue)
{
	struct baton_work_filter filter = {
		.queue = baton_str_z(queue->name),
		.state = BATON_BATCH_CLAIMED,
		.max = HITCH_JOBS_PER_QUEUE,
	};
	if (h->read)
		return BATON_OK;
	h->read = true;
	enum baton_err e = baton_work_list(store, &filter, &h->running);
	filter.state = BATON_BATCH_RETRY;
	if (e == BATON_OK && queue->policy.hold_on_retry == BATON_HOLD_KEEP)
		e = baton_work_list(store, &filter, &h->retrying);
	return e;
}

static bool has_key(const struct baton_work_info *info, const char *key)
{
	for (size_t i = 0; i < info->key_count; i++) {
		if (baton_str_equal(info->keys[i], baton_str_z(key)))
			return true;
	}
	return false;
}

/* How many of the page hold the key; the first of all is taken for its holder. */
static size_t hold_count(const struct baton_work_page *page, struct baton_store_time now,
                         size_t count, struct hitch *hitch)
{
	for (size_t i = 0; page && i < page->count; i++) {
		const struct baton_work_info *info = &page->infos[i];
		bool over = info->state == BATON_BATCH_CLAIMED &&
		            !baton_store_time_live(info->expires_at, now);
		if (over || !has_key(info, hitch->key))
			continue;
		if (count++ == 0)
			holder_take(hitch, info);
	}
	return count;
}

/* Whether somebody holds it, as often as may be. One that has several keys names one of them only;
 * so the others are looked for at those who run. */
static bool hold_find(struct baton_store *store, const struct baton_queue_info *queue,
                      struct holders *h, struct hitch *hitch)
{
	if (hold_told(store, hitch))
		return true;
	if (!hitch->several || holders_read(h, store, queue) != BATON_OK)
		return false;
	struct baton_store_time now = baton_store_now(store);
	size_t count = hold_count(h->running, now, 0, hitch);
	return hold_count(h->retrying, now, count, hitch) >= queue->policy.key_limit;
}

/* Puts it in its place, if it is one of those with the most. */
static void keep(struct hitches *h, const struct hitch *hitch)
{
	size_t i = h->count;
	while (i > 0 && h->all[i - 1].waiting < hitch->waiting)
		i--;
	if (i == HITCHES_MAX)
		return;
	h->count += h->count < HITCHES_MAX;
	memmove(&h->all[i + 1], &h->all[i], (h->count - 1 - i) * sizeof h->all[0]);
	h->all[i] = *hitch;
}

static enum baton_err look_at_queue(struct hitches *h, struct baton_store *store,
                                    const struct baton_queue_info *queue, struct tally *t)
{
	const struct baton_work_filter filter = {
		.queue = baton_str_z(queue->name),
		.state = BATON_BATCH_READY,
		.max = HITCH_JOBS_PER_QUEUE,
	};
	struct baton_work_page *page = NULL;
	enum baton_err e = baton_work_list(store, &filter, &page);
	if (e != BATON_OK)
		return e;
	t->count = 0;
	for (size_t i = 0; i < page->count; i++)
		tally_add(t, &page->infos[i]);
	h->more = h->more || page->next > 0;
	baton_work_page_free(page);
	qsort(t->keys, t->count, sizeof t->keys[0], by_waiting);
	struct holders holders = {.read = false};
	for (size_t i = 0; i < t->count && i < HITCHES_MAX; i++) {
		if (hold_find(store, queue, &holders, &t->keys[i]))
			keep(h, &t->keys[i]);
	}
	holders_done(&holders);
	return BATON_OK;
}

/* Whether something of it can be held up by what runs, or waits for a retry. */
static bool may_wait(const struct baton_queue_info *q)
{
	bool shares = q->policy.key_class[0] != '\0'; /* what runs may be elsewhere */
	return q->counts.ready > 0 && (q->counts.running + q->counts.delayed > 0 || shares);
}

/* Of those that were not looked at yet, and may have something, the one with the most that is
 * ready; NULL: there is none. */
static const struct baton_queue_info *fullest(const struct baton_queue_info *const *queues,
                                              size_t count, const struct baton_queue_info *before)
{
	const struct baton_queue_info *found = NULL;
	bool passed = before == NULL;
	for (size_t i = 0; i < count; i++) {
		const struct baton_queue_info *q = queues[i];
		bool later = !before || q->counts.ready < before->counts.ready ||
		             (q->counts.ready == before->counts.ready && passed);
		passed = passed || q == before;
		if (q != before && later && may_wait(q) &&
		    (!found || q->counts.ready > found->counts.ready))
			found = q;
	}
	return found;
}

enum baton_err hitches_read(struct hitches *h, struct baton_store *store,
                            const struct baton_queue_info *const *queues, size_t count)
{
	const struct baton_queue_info *queue = fullest(queues, count, NULL);
	struct tally tally = {.count = 0};
	enum baton_err e = BATON_OK;
	if (!queue)
		return BATON_OK;
	tally.keys = calloc(HITCH_JOBS_PER_QUEUE, sizeof tally.keys[0]);
	if (!tally.keys)
		return BATON_NO_MEMORY;
	for (int i = 0; queue && i < HITCH_QUEUES && e == BATON_OK; i++) {
		e = look_at_queue(h, store, queue, &tally);
		queue = fullest(queues, count, queue);
	}
	h->more = h->more || queue != NULL;
	free(tally.keys);
	return e;
}
