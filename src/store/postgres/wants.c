/* What a transaction has to have before it. */
#include "store/postgres/wants.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "base/number.h"
#include "queue/batch.h"
#include "queue/line.h"
#include "queue/rate.h"

void pg_wants_init(struct wants *w, const struct baton_alloc *alloc)
{
	*w = (struct wants){.memory = true};
	arena_init(&w->arena, alloc);
}

void pg_wants_done(struct wants *w)
{
	arena_done(&w->arena);
}

/* Room for one more in a list that is in the arena, which keeps the old ones too. */
static void *room(struct wants *w, void *list, size_t count, size_t *cap, size_t size)
{
	if (count < *cap)
		return list;
	size_t more = *cap > 0 ? *cap * 2 : 16;
	void *wider = arena_take(&w->arena, more, size);
	if (!wider) {
		w->memory = false;
		return NULL;
	}
	if (count > 0)
		memcpy(wider, list, count * size);
	*cap = more;
	return wider;
}

static void str_add(struct wants *w, struct strs *s, struct baton_str str)
{
	void *list = room(w, s->list, s->count, &s->cap, sizeof *s->list);
	if (!list)
		return;
	s->list = list;
	s->list[s->count++] = str;
}

static void num_add(struct wants *w, struct nums *n, uint64_t number)
{
	void *list = room(w, n->list, n->count, &n->cap, sizeof *n->list);
	if (!list)
		return;
	n->list = list;
	n->list[n->count++] = number;
}

static struct baton_str kept(struct wants *w, struct baton_str s)
{
	struct baton_str copy = {"", 0};
	if (!arena_copy(&w->arena, s, &copy))
		w->memory = false;
	return copy;
}

uint32_t stripe_of(struct baton_str name)
{
	uint8_t digest[DIGEST_SIZE];
	digest_bytes(name.ptr, name.len, digest);
	return STRIPES_OF_RUNNERS + (((uint32_t)digest[0] << 8 | digest[1]) & (STRIPES - 1));
}

uint64_t class_bit(struct baton_str name)
{
	uint8_t digest[DIGEST_SIZE];
	digest_bytes(name.ptr, name.len, digest);
	return UINT64_C(1) << (digest[0] & (CLASSES - 1));
}

void want_class(struct wants *w, struct baton_str name)
{
	str_add(w, &w->classes, name);
	if (name.len > 0)
		w->class_locks |= class_bit(name);
}

/* Those who ask for many of one queue ask for it in a row. */
static bool is_last(const struct strs *s, struct baton_str str)
{
	return s->count > 0 && baton_str_equal(s->list[s->count - 1], str);
}

void want_queue(struct wants *w, struct baton_str name)
{
	if (is_last(&w->queues, name))
		return;
	str_add(w, &w->queues, name);
	num_add(w, &w->stripes, stripe_of(name));
}

void want_lane(struct wants *w, struct baton_str queue, struct baton_str lane)
{
	want_queue(w, queue);
	if (lane.len == 0 || (is_last(&w->lanes, lane) && is_last(&w->lane_queues, queue)))
		return;
	str_add(w, &w->lane_queues, queue);
	str_add(w, &w->lanes, lane);
}

static bool begins_with(struct baton_str s, const char *prefix, size_t len)
{
	return s.len > len && memcmp(s.ptr, prefix, len) == 0;
}

/* Claims are counted under the leases of queues and lanes, so these are under the queue's lock. */
void want_subject(struct wants *w, struct baton_str subject)
{
	struct baton_str queue = {subject.ptr + 5, subject.len - 5};
	str_add(w, &w->subjects, subject);
	if (begins_with(subject, "pull/", 5)) {
		want_queue(w, queue);
		return;
	}
	const char *slash =
		begins_with(subject, "lane/", 5) ? memchr(queue.ptr, '/', queue.len) : NULL;
	if (!slash) {
		num_add(w, &w->stripes, stripe_of(subject));
		return;
	}
	struct baton_str lane = {slash + 1, (size_t)(queue.ptr + queue.len - slash - 1)};
	queue.len = (size_t)(slash - queue.ptr);
	if (queue.len <= BATON_NAME_MAX && lane.len <= BATON_NAME_MAX)
		want_lane(w, queue, lane);
}

void want_take(struct wants *w, struct baton_str subject)
{
	want_subject(w, subject);
	str_add(w, &w->taken, subject);
}

void want_pull(struct wants *w, struct baton_str queue)
{
	char text[BATON_NAME_MAX + 8];
	int len = snprintf(text, sizeof text, "pull/%.*s", (int)queue.len, queue.ptr);
	want_queue(w, queue);
	str_add(w, &w->subjects, kept(w, (struct baton_str){text, (size_t)len}));
}

void want_line(struct wants *w, const struct baton_lane_ask *ask)
{
	char text[BATON_LEASE_SUBJECT_MAX + 1];
	want_queue(w, ask->queue);
	if (baton_lane_subject(ask->queue, ask->lane, text) == BATON_OK)
		str_add(w, &w->subjects, kept(w, baton_str_z(text)));
	w->lane_ask = ask;
}

void want_shard(struct wants *w, struct baton_str queue, uint32_t number)
{
	char text[BATON_NAME_MAX + 16];
	int len =
		snprintf(text, sizeof text, "\1%.*s\1%" PRIu32, (int)queue.len, queue.ptr, number);
	want_queue(w, queue);
	str_add(w, &w->subjects, kept(w, (struct baton_str){text, (size_t)len}));
}

/* Behind how many of the list the number stands; 0: it is not there. */
static size_t place_of(const struct nums *n, uint64_t number)
{
	size_t i = n->count;
	while (i > 0 && n->list[i - 1] != number)
		i--;
	return i;
}

static void want_chunk(struct wants *w, uint64_t head)
{
	const uint64_t base = head - head % BULK_MAX;
	size_t place = place_of(&w->bases, base);
	if (place == 0) {
		num_add(w, &w->bases, base);
		num_add(w, &w->lows, head);
		num_add(w, &w->highs, head);
		return;
	}
	if (place > w->highs.count)
		return; /* no memory */
	uint64_t *low = &w->lows.list[place - 1], *high = &w->highs.list[place - 1];
	*low = head < *low ? head : *low;
	*high = head > *high ? head : *high;
}

void want_claim(struct wants *w, const struct baton_work_proof *proof, bool whole)
{
	struct claim_name name;
	if (!claim_name_parse(proof->id, &name))
		return;
	num_add(w, &w->heads, name.head);
	num_add(w, &w->fences, name.fence);
	want_chunk(w, name.head);
	if (!whole)
		num_add(w, &w->melt, name.head);
}

void want_guess(struct wants *w, uint32_t queue, uint32_t stripe)
{
	if (place_of(&w->guessed, queue) > 0)
		return;
	num_add(w, &w->guessed, queue);
	num_add(w, &w->guessed_stripes, stripe);
}

void want_rest(struct wants *w, const struct claim_name *name)
{
	num_add(w, &w->rest_heads, name->head);
	num_add(w, &w->rest_fences, name->fence);
}

void want_batch(struct wants *w, const struct baton_batch_id *id)
{
	uint64_t number;
	if (!batch_id_parse(id, &number) || number > INT64_MAX)
		return;
	num_add(w, &w->ids, number);
	num_add(w, &w->melt, number);
}

void want_pass(struct wants *w, int64_t queue, struct baton_str line)
{
	char text[NUMBER_DIGITS + LINE_NAME_MAX];
	char *end = number_print((uint64_t)queue, text);
	memcpy(end, line.ptr, line.len);
	str_add(w, &w->full, kept(w, (struct baton_str){text, (size_t)(end - text) + line.len}));
}

void want_pass_rated(struct wants *w, const struct baton_owner *owner)
{
	char text[RATE_NAME_MAX];
	for (int scope = BATON_KEY_SCOPE_PROCESS; scope <= BATON_KEY_SCOPE_HOST; scope++)
		str_add(w, &w->sites, kept(w, rate_site((enum baton_key_scope)scope, owner, text)));
}

static void guest_lines_add(struct wants *w, const struct baton_batch *b)
{
	struct baton_str rest = b->key, key;
	char text[LINE_NAME_MAX];
	while (keys_next(&rest, &key)) {
		str_add(w, &w->guest_queues, b->queue);
		str_add(w, &w->guest_lines, kept(w, line_of_key(key, text)));
	}
}

void want_puts(struct wants *w, const struct baton_batch *batches, size_t count)
{
	/* In which line of its key one will be is not known before it has its number. */
	const struct baton_queue_policy any = baton_queue_policy_default();
	for (size_t i = 0; i < count; i++) {
		const struct baton_batch b = batch_filled(&batches[i]);
		uint8_t key[DIGEST_SIZE];
		char text[LINE_NAME_MAX];
		struct baton_str line = line_name(&b, 0, &any, text);
		/* Nobody else is in a lane of its own. */
		if (b.lane.len == 0 && keys_are_several(b.key)) {
			want_queue(w, b.queue);
		} else if (line_is_keyed(line)) {
			want_queue(w, b.queue);
			str_add(w, &w->key_queues, b.queue);
			str_add(w, &w->key_lines, kept(w, line));
		} else {
			want_lane(w, b.queue, line);
		}
		if (line_has_guest(&b))
			guest_lines_add(w, &b);
		w->timed = w->timed || b.delay.ns > 0 || b.at.ms > 0;
		if (b.source.len > 0) {
			batch_source_digest(&b, key);
			str_add(w, &w->keys,
			        kept(w, (struct baton_str){(const char *)key, sizeof key}));
		}
	}
	w->numbers += count;
}

void want_key_lines(struct wants *w)
{
	for (size_t i = 0; i < w->key_lines.count && w->memory; i++)
		want_lane(w, w->key_queues.list[i], w->key_lines.list[i]);
	w->key_queues.count = w->key_lines.count = 0;
}

void want_guest_lines(struct wants *w)
{
	for (size_t i = 0; i < w->guest_lines.count && w->memory; i++)
		want_lane(w, w->guest_queues.list[i], w->guest_lines.list[i]);
	w->guest_queues.count = w->guest_lines.count = 0;
}

void want_ends(struct wants *w, const struct baton_work_end *ends, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		want_claim(w, &ends[i].proof, ends[i].how == BATON_COMPLETE && !ends[i].ids);
		want_puts(w, ends[i].emits, ends[i].emit_count);
	}
}

void want_schedule(struct wants *w, struct baton_str name)
{
	char text[BATON_NAME_MAX + 16];
	int len = snprintf(text, sizeof text, "\2%.*s", (int)name.len, name.ptr);
	str_add(w, &w->schedules, name);
	num_add(w, &w->stripes, stripe_of((struct baton_str){text, (size_t)len}));
}

void want_heads(struct wants *w, const struct want_heads *take)
{
	want_queue(w, take->queue);
	for (size_t i = 0; i < w->take_count; i++) {
		struct want_heads *h = &w->takes[i];
		if (h->pool != take->pool || !baton_str_equal(h->queue, take->queue))
			continue;
		h->few += take->few;
		h->max = h->max > take->max ? h->max : take->max;
		return;
	}
	void *list = room(w, w->takes, w->take_count, &w->take_cap, sizeof *w->takes);
	if (!list)
		return;
	w->takes = list;
	w->takes[w->take_count++] = *take;
}

void want_runner(struct wants *w, uint64_t number)
{
	w->only = w->runners && w->only != number ? 0 : number;
	w->runners = true;
	num_add(w, &w->stripes, number == 0 ? 0 : 1 + number % (STRIPES_OF_RUNNERS - 1));
}
