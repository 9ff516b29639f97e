/* Looking at a fleet without being a member: what happens. */
#include "contest/watch.h"

#include <errno.h>
#include <string.h>

#include <baton/alloc.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "base/mem.h"
#include "contest/event.h"
#include "contest/home.h"
#include "contest/member.h"
#include "contest/pause.h"
#include "contest/roster.h"

const char *baton_event_name(enum baton_event_kind kind)
{
	switch (kind) {
	case BATON_EVENT_CLAIMED:
		return "claimed";
	case BATON_EVENT_RELEASED:
		return "released";
	case BATON_EVENT_EXPIRED:
		return "expired";
	case BATON_EVENT_DIED:
		return "died";
	case BATON_EVENT_FORCED:
		return "forced";
	}
	return "unknown";
}

void baton_watch_close(struct baton_watch *w)
{
	const struct baton_alloc *alloc = baton_alloc_libc();
	if (w == NULL)
		return;
	pump_stop(w);
	if (w->view != NULL) {
		mem_free(alloc, w->members, w->view->params[PARAM_MEMBERS], sizeof *w->members);
		mem_free(alloc, w->ended, w->view->params[PARAM_SUBJECTS], sizeof *w->ended);
	}
	segment_close(&w->own.segment);
	mem_free(alloc, w, 1, sizeof *w);
}

static void watch_closep(struct baton_watch **w)
{
	baton_watch_close(*w);
}

static enum baton_err watch_new(struct baton_watch **ret)
{
	struct baton_watch *w = mem_new(baton_alloc_libc(), 1, sizeof *w);
	if (w == NULL)
		return fail_memory(sizeof *w, "a watch");
	w->pump.fd = -1;
	*ret = w;
	return BATON_OK;
}

static enum baton_err watch_begin(struct baton_watch *w, struct view *view)
{
	const struct baton_alloc *alloc = baton_alloc_libc();
	uint32_t members = view->params[PARAM_MEMBERS];
	w->view = view;
	w->members = mem_new(alloc, members, sizeof *w->members);
	w->ended = mem_new(alloc, view->params[PARAM_SUBJECTS], sizeof *w->ended);
	if (w->members == NULL || w->ended == NULL)
		return fail_memory(members * sizeof *w->members, "a watch");
	for (uint32_t i = 0; i < members; i++) {
		w->members[i].reader.next = ring_now(view_lane(view, i));
		w->members[i].lived = !roster_is_dead(view, i + 1);
	}
	return BATON_OK;
}

enum baton_err baton_watch_open(const char *path, struct baton_watch **ret_watch)
{
	AUTO(watch_closep) struct baton_watch *w = NULL;
	struct segment_spec spec = layout_spec();
	struct home home;
	enum baton_err e = home_look(path, &home);
	if (e == BATON_OK)
		e = watch_new(&w);
	if (e != BATON_OK)
		return e;
	spec.path = home.path;
	spec.read_only = true;
	spec.writable = sizeof(struct bell) * BELLS;
	e = segment_open(&spec, &w->own.segment);
	if (e != BATON_OK)
		return e;
	view_init(&w->own);
	e = watch_begin(w, &w->own);
	if (e == BATON_OK)
		*ret_watch = TAKE(w);
	return e;
}

enum baton_err baton_watch_fleet(struct baton_fleet *fleet, struct baton_watch **ret_watch)
{
	AUTO(watch_closep) struct baton_watch *w = NULL;
	enum baton_err e = watch_new(&w);
	if (e == BATON_OK)
		e = watch_begin(w, fleet->view);
	if (e == BATON_OK)
		*ret_watch = TAKE(w);
	return e;
}

static uint64_t tenure_of(const struct heard *h)
{
	return word_tenure((struct word){h->who, 0});
}

/* Whether `a` comes before `b`, which was heard earlier: both are about one subject, and its tenure
 * is older, or it is the beginning of the same. */
static bool comes_before(const struct heard *a, const struct heard *b)
{
	if (a->hash != b->hash || a->slot != b->slot)
		return false;
	return tenure_of(a) < tenure_of(b) ||
	       (tenure_of(a) == tenure_of(b) && a->kind == BATON_EVENT_CLAIMED &&
	        b->kind != BATON_EVENT_CLAIMED);
}

/* Keeps what was heard in its order, in which there is room. */
static void hear(struct baton_watch *w, struct heard h)
{
	size_t at = w->heard_to++;
	w->heard[at] = h;
	for (size_t i = at; i > w->heard_from; i--) {
		if (!comes_before(&h, &w->heard[i - 1]))
			continue;
		memmove(&w->heard[i], &w->heard[i - 1], (at - i + 1) * sizeof h);
		w->heard[i - 1] = h;
		at = i - 1;
	}
}

static void hear_item(struct baton_watch *w, struct ring_item item)
{
	uint32_t slot = (uint32_t)item.b;
	uint32_t kind = (item.b >> 32) & 0xffff;
	if (slot >= w->view->params[PARAM_SUBJECTS] || kind < BATON_EVENT_CLAIMED ||
	    kind > BATON_EVENT_FORCED) {
		w->lost++;
		return;
	}
	struct heard h = {.who = item.a,
	                  .hash = item.c,
	                  .slot = slot,
	                  .kind = (enum baton_event_kind)kind,
	                  .version = (uint16_t)(item.b >> 48)};
	if (h.kind == BATON_EVENT_DIED && w->ended[slot] == tenure_of(&h))
		return;
	hear(w, h);
}

/* Reads what a member has said, as far as there is room. */
static void listen(struct baton_watch *w, uint32_t i, int64_t now)
{
	const struct view *v = w->view;
	struct watched *m = &w->members[i];
	struct ring_item item;
	while (w->heard_to < HEARD_MAX) {
		enum ring_look look =
			ring_get(view_lane(v, i), v->params[PARAM_EVENTS], &m->reader, &item);
		if (look == RING_PENDING && m->pending == 0)
			m->pending = now;
		if (look == RING_PENDING && now - m->pending >= PATIENCE_NS) {
			ring_skip(&m->reader);
			m->pending = 0;
			continue;
		}
		if (look != RING_ITEM)
			break;
		m->pending = 0;
		hear_item(w, item);
	}
	w->lost += m->reader.lost;
	m->reader.lost = 0;
}

/* What a dead member held and nobody has taken yet. False: there was not enough room for all of it.
 */
static bool mourn(struct baton_watch *w, uint32_t code)
{
	const struct view *v = w->view;
	uint32_t fresh = view_fresh(v);
	for (uint32_t n = 0; n < fresh; n++) {
		struct word word = slot_load(&v->slots[n]);
		if (word_code(word) != code || atomic_load(&v->slots[n].listed) == 0 ||
		    w->ended[n] == word_tenure(word))
			continue;
		if (w->heard_to == HEARD_MAX)
			return false;
		w->ended[n] = word_tenure(word);
		hear(w, (struct heard){
				.who = word.who,
				.hash = atomic_load(&v->slots[n].hash),
				.slot = n,
				.kind = BATON_EVENT_DIED,
				.version = (uint16_t)atomic_load(&v->members[code - 1].version),
			});
	}
	return true;
}

/* The kernel tells a member's death to those who wait for what it held. A watch, which waits for
 * nothing, looks whenever it looks at anything. */
static void look_at_lives(struct baton_watch *w)
{
	uint32_t used = view_members_used(w->view);
	for (uint32_t i = 0; i < used; i++) {
		bool lives = !roster_is_dead(w->view, i + 1);
		bool all_told = !w->members[i].lived || lives || mourn(w, i + 1);
		/* What there was no room for comes after what there was. */
		w->members[i].lived = lives || !all_told;
	}
}

static void gather(struct baton_watch *w, int64_t now)
{
	uint32_t used = view_members_used(w->view);
	w->heard_from = w->heard_to = 0;
	for (uint32_t i = 0; i < used; i++)
		listen(w, i, now);
	look_at_lives(w);
}

/* Tells the next of what was heard. False: its name is no longer known. */
static bool tell(struct baton_watch *w, struct baton_event *ret)
{
	const struct heard *h = &w->heard[w->heard_from++];
	const struct view *v = w->view;
	struct baton_subject subject;
	struct member_facts facts;
	uint32_t code = word_code((struct word){h->who, 0});
	if (!subjects_name(v, h->slot, h->hash, &w->text, &subject))
		return false;
	*ret = (struct baton_event){.kind = h->kind,
	                            .space = subject.space,
	                            .label = subject.label,
	                            .fence = {tenure_of(h)}};
	const struct member *m = view_member(v, code);
	if (m != NULL && (uint16_t)atomic_load(&m->version) == h->version &&
	    roster_facts(v, code, &facts)) {
		ret->pid = facts.owner.pid;
		memcpy(ret->owner, facts.owner.id, sizeof ret->owner);
	}
	return true;
}

static bool has_news(const struct baton_watch *w)
{
	uint32_t used = view_members_used(w->view);
	for (uint32_t i = 0; i < used; i++) {
		if (w->members[i].pending == 0 &&
		    ring_has_news(view_lane(w->view, i), &w->members[i].reader))
			return true;
	}
	return false;
}

static bool has_pending(const struct baton_watch *w)
{
	uint32_t used = view_members_used(w->view);
	for (uint32_t i = 0; i < used; i++) {
		if (w->members[i].pending != 0)
			return true;
	}
	return false;
}

static void doze(struct baton_watch *w, int64_t until, struct baton_cancel *cancel, int64_t now)
{
	struct bell *bell = &w->view->bells[BELL_CLAIMS];
	uint32_t seen = atomic_load(&bell->count);
	if (w->view->segment.writable)
		atomic_store(&bell->armed, 1);
	if (has_news(w))
		return;
	if (has_pending(w) && until > now + PATIENCE_NS)
		until = now + PATIENCE_NS;
	const struct spot spots[] = {
		{.word = &bell->count, .seen = seen},
		{.word = cancel, .seen = 0, .mine = true},
	};
	pause_until(spots, 2, until, false);
	bell_pass(bell, seen);
}

enum baton_err baton_watch_next(struct baton_watch *w, struct baton_mono until,
                                struct baton_cancel *cancel, struct baton_event *ret_event,
                                uint64_t *ret_lost)
{
	for (;;) {
		int64_t now = pause_now();
		if (w->heard_from == w->heard_to)
			gather(w, now);
		while (w->heard_from < w->heard_to) {
			if (tell(w, ret_event))
				return BATON_OK;
			w->lost++;
		}
		if (w->lost > 0) {
			*ret_lost = w->lost;
			w->lost = 0;
			return BATON_FULL;
		}
		if (!segment_is_current(&w->view->segment))
			return fail(BATON_GONE, "the fleet's file '%.200s' was removed or replaced",
			            w->view->segment.path);
		if (cancel != NULL && __atomic_load_n(&cancel->word, __ATOMIC_SEQ_CST) != 0)
			return BATON_CANCELLED;
		if (until.ns <= now)
			return BATON_TIMEOUT;
		doze(w, until.ns, cancel, now);
	}
}

const char *baton_watch_path(const struct baton_watch *w)
{
	return w->view->segment.path;
}
