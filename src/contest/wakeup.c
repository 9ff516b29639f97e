/* Wake-ups between the processes of a host. */
#include <baton/wakeup.h>

#include <stdlib.h>
#include <string.h>

#include <baton/alloc.h>

#include "base/fail.h"
#include "base/mem.h"
#include "contest/event.h"
#include "contest/member.h"
#include "contest/pause.h"

struct baton_listener {
	struct baton_fleet *fleet;
	struct ring_reader reader;
	int64_t pending; /* since when the next wake-up is begun and not finished; 0: it is not */
	uint64_t bells;  /* those that concern it, a bit each */
	size_t count;
	struct baton_wakeup_interest interests[]; /* in order */
};

/* Which of the bells after the claims' rings for it. */
static uint32_t bell_of(uint64_t queue, uint32_t shard)
{
	uint64_t mixed = (queue ^ ((uint64_t)shard << 32 | shard)) * UINT64_C(0x9e3779b97f4a7c15);
	return 1 + (uint32_t)((mixed >> 32) % (BELLS - 1));
}

enum baton_err baton_wakeup_publish(struct baton_fleet *fleet, const struct baton_wakeup *wakeups,
                                    size_t count)
{
	const struct view *v = fleet->view;
	if (!member_is_here(fleet))
		return member_gone(fleet);
	uint64_t bells = 0;
	for (size_t i = 0; i < count; i++) {
		const struct baton_wakeup *w = &wakeups[i];
		ring_put(v->wakeups, v->params[PARAM_WAKEUPS],
		         (struct ring_item){w->queue, w->lane, w->shard});
		bells |= UINT64_C(1) << bell_of(w->queue, w->shard);
		bells |= UINT64_C(1) << bell_of(w->queue, BATON_WAKEUP_ANY_SHARD);
	}
	for (uint32_t i = 0; i < BELLS; i++) {
		if (bells >> i & 1)
			bell_ring(&v->bells[i]);
	}
	return BATON_OK;
}

static int interest_compare(const void *a, const void *b)
{
	const struct baton_wakeup_interest *x = a, *y = b;
	if (x->queue != y->queue)
		return x->queue < y->queue ? -1 : 1;
	return x->shard < y->shard ? -1 : x->shard > y->shard;
}

static size_t listener_size(size_t count)
{
	return sizeof(struct baton_listener) + count * sizeof(struct baton_wakeup_interest);
}

enum baton_err baton_listener_open(struct baton_fleet *fleet,
                                   const struct baton_wakeup_interest *interests, size_t count,
                                   struct baton_listener **ret_listener)
{
	if (count < 1 || count > BATON_WAKEUP_INTERESTS_MAX)
		return fail(BATON_INVALID,
		            "%zu interests cannot be listened for: 1 to %d are allowed", count,
		            BATON_WAKEUP_INTERESTS_MAX);
	if (!member_is_here(fleet))
		return member_gone(fleet);
	struct baton_listener *l = mem_new(baton_alloc_libc(), 1, listener_size(count));
	if (l == NULL)
		return fail_memory(listener_size(count), "a listener");
	l->fleet = fleet;
	l->count = count;
	memcpy(l->interests, interests, count * sizeof *interests);
	qsort(l->interests, count, sizeof *l->interests, interest_compare);
	for (size_t i = 0; i < count; i++)
		l->bells |= UINT64_C(1) << bell_of(interests[i].queue, interests[i].shard);
	l->reader.next = ring_now(fleet->view->wakeups);
	*ret_listener = l;
	return BATON_OK;
}

void baton_listener_close(struct baton_listener *l)
{
	if (l != NULL)
		mem_free(baton_alloc_libc(), l, 1, listener_size(l->count));
}

static bool is_wanted(const struct baton_listener *l, uint64_t queue, uint32_t shard)
{
	const struct baton_wakeup_interest one = {queue, shard};
	return bsearch(&one, l->interests, l->count, sizeof one, interest_compare) != NULL;
}

/* Reads what there is, as far as there is room. */
static void hear(struct baton_listener *l, struct baton_wakeup_news *news)
{
	const struct view *v = l->fleet->view;
	struct ring_item item;
	while (news->count < news->max) {
		enum ring_look look =
			ring_get(v->wakeups, v->params[PARAM_WAKEUPS], &l->reader, &item);
		if (look == RING_PENDING && l->pending == 0)
			l->pending = pause_now();
		if (look == RING_PENDING && pause_now() - l->pending >= PATIENCE_NS) {
			ring_skip(&l->reader);
			l->pending = 0;
			continue;
		}
		if (look != RING_ITEM)
			break;
		l->pending = 0;
		uint32_t shard = (uint32_t)item.c;
		if (is_wanted(l, item.a, shard) || is_wanted(l, item.a, BATON_WAKEUP_ANY_SHARD))
			news->wakeups[news->count++] = (struct baton_wakeup){.queue = item.a,
			                                                     .lane = item.b,
			                                                     .shard = shard};
	}
	news->missed = l->reader.lost > 0;
	l->reader.lost = 0;
}

static void doze(struct baton_listener *l, int64_t until, struct baton_cancel *cancel)
{
	const struct view *v = l->fleet->view;
	struct spot spots[BELLS + 1];
	uint32_t numbers[BELLS];
	size_t count = 0;
	for (uint32_t i = 0; i < BELLS; i++) {
		if ((l->bells >> i & 1) == 0)
			continue;
		uint32_t seen = atomic_load(&v->bells[i].count);
		numbers[count] = i;
		spots[count++] = (struct spot){.word = &v->bells[i].count, .seen = seen};
		atomic_store(&v->bells[i].armed, 1);
	}
	size_t rung = count;
	spots[count++] = (struct spot){.word = cancel, .seen = 0, .mine = true};
	if (l->pending == 0 && ring_has_news(v->wakeups, &l->reader))
		return;
	int64_t patience = pause_now() + PATIENCE_NS;
	if (l->pending != 0 && until > patience)
		until = patience;
	pause_until(spots, count, until, l->fleet->plain);
	for (size_t i = 0; i < rung; i++)
		bell_pass(&v->bells[numbers[i]], spots[i].seen);
}

enum baton_err baton_listener_wait(struct baton_listener *l, struct baton_mono until,
                                   struct baton_cancel *cancel, struct baton_wakeup_news *news)
{
	for (;;) {
		struct baton_wakeup_news heard = {.wakeups = news->wakeups, .max = news->max};
		if (!member_is_here(l->fleet))
			return member_gone(l->fleet);
		hear(l, &heard);
		if (heard.count > 0 || heard.missed) {
			*news = heard;
			return BATON_OK;
		}
		if (cancel != NULL && __atomic_load_n(&cancel->word, __ATOMIC_SEQ_CST) != 0)
			return BATON_CANCELLED;
		if (until.ns <= pause_now())
			return BATON_TIMEOUT;
		doze(l, until.ns, cancel);
	}
}
