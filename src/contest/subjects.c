/* Which place a subject has. */
#include "contest/subjects.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/hash.h"
#include "contest/event.h"
#include "contest/index.h"
#include "contest/line.h"
#include "contest/lock.h"
#include "contest/mark.h"
#include "contest/name.h"
#include "contest/roster.h"
#include "contest/step.h"

/* How often a reader looks again before it asks for the lock. */
#define LOOKS 16

enum baton_err key_refuse(const struct baton_subject *s, size_t label_max)
{
	if (s->space.len == 0 || s->label.len == 0)
		return fail(BATON_INVALID,
		            "a subject needs a namespace and a label; its %s is empty",
		            s->space.len == 0 ? "namespace" : "label");
	if (s->space.len > BATON_SPACE_MAX)
		return fail(BATON_INVALID, "a namespace of %zu bytes is too long: %d are allowed",
		            s->space.len, BATON_SPACE_MAX);
	return fail(BATON_INVALID,
	            "a label of %zu bytes is too long beside an owner's of %zu: %d are allowed "
	            "together",
	            s->label.len, BATON_LABEL_MAX - label_max, BATON_LABEL_MAX);
}

struct key key_make(const struct view *v, const struct baton_subject *s)
{
	char bytes[1 + BATON_SPACE_MAX + BATON_LABEL_MAX];
	bytes[0] = (char)s->space.len;
	memcpy(bytes + 1, s->space.ptr, s->space.len);
	memcpy(bytes + 1 + s->space.len, s->label.ptr, s->label.len);
	return (struct key){
		.space = s->space,
		.label = s->label,
		.hash = hash_bytes(&v->control->seed, bytes, 1 + s->space.len + s->label.len),
		.lengths = (uint32_t)s->space.len << 16 | (uint32_t)s->label.len,
	};
}

static void words_write(_Atomic uint64_t *words, size_t count, struct baton_str text)
{
	size_t last = text_last(text);
	for (size_t at = 0; at < 8 * count; at += 8)
		atomic_store_explicit(&words[at / 8],
		                      at < last    ? load_8(text.ptr + at)
		                      : at == last ? text_end(text)
		                                   : 0,
		                      memory_order_relaxed);
}

bool subjects_name(const struct view *v, uint32_t n, uint64_t hash, struct name_text *text,
                   struct baton_subject *ret)
{
	const struct slot *slot = &v->slots[n];
	if (atomic_load_explicit(&slot->hash, memory_order_acquire) != hash)
		return false;
	uint32_t lengths = atomic_load_explicit(&slot->lengths, memory_order_relaxed);
	uint32_t space_len = lengths >> 16, label_len = lengths & 0xffff;
	if (space_len == 0 || space_len > BATON_SPACE_MAX || label_len == 0 ||
	    label_len > BATON_LABEL_MAX)
		return false;
	uint64_t words[SPACE_WORDS + LABEL_WORDS];
	for (size_t i = 0; i < SPACE_WORDS; i++)
		words[i] = atomic_load_explicit(&v->names[n].space[i], memory_order_relaxed);
	for (size_t i = 0; i < (label_len + 7) / 8; i++)
		words[SPACE_WORDS + i] =
			atomic_load_explicit(&v->names[n].label[i], memory_order_relaxed);
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&slot->listed, memory_order_relaxed) != 1 ||
	    atomic_load_explicit(&slot->hash, memory_order_relaxed) != hash)
		return false;
	memcpy(text->space, words, space_len);
	text->space[space_len] = '\0';
	memcpy(text->label, words + SPACE_WORDS, label_len);
	text->label[label_len] = '\0';
	*ret = (struct baton_subject){{text->space, space_len}, {text->label, label_len}, {0, 0}};
	return true;
}

/* Looks the key up in the index as it is at this moment. */
static uint32_t probe(const struct view *v, const struct key *key, struct word *ret_word)
{
	struct index_walk walk = index_begin(v, key->hash);
	struct baton_subject subject = {key->space, key->label, {0, 0}};
	uint32_t n;
	while (index_next(v, &walk, &n)) {
		const struct slot *slot = &v->slots[n];
		if (atomic_load_explicit(&slot->hash, memory_order_relaxed) != key->hash)
			continue;
		*ret_word = slot_load(slot);
		if (word_code(*ret_word) != WORD_VACANT &&
		    subjects_is(slot, &v->names[n], &subject))
			return n;
	}
	return SUBJECTS_NONE;
}

/* Looks it up without a lock. False: the index changes too often, or somebody is in the middle. */
static bool probe_free(const struct view *v, const struct key *key, uint32_t *ret_slot,
                       struct word *ret_word)
{
	const struct shard *shard = index_shard(v, key->hash);
	for (int i = 0; i < LOOKS; i++) {
		uint32_t version = atomic_load_explicit(&shard->version, memory_order_acquire);
		if (version & 1)
			continue;
		*ret_slot = probe(v, key, ret_word);
		atomic_thread_fence(memory_order_acquire);
		if (atomic_load_explicit(&shard->version, memory_order_relaxed) == version)
			return true;
	}
	return false;
}

static enum baton_err shard_lock(struct view *v, uint64_t hash)
{
	struct shard *shard = index_shard(v, hash);
	bool orphaned;
	enum baton_err e = lock_take(v, &shard->lock, &orphaned);
	if (e == BATON_OK && (orphaned || (atomic_load(&shard->version) & 1))) {
		index_repair(v, shard);
		line_repair(v, shard);
	}
	return e;
}

void subjects_unlock(struct view *v, uint64_t hash)
{
	lock_give(&index_shard(v, hash)->lock);
}

enum baton_err subjects_lock(struct view *v, uint32_t n, uint64_t hash)
{
	enum baton_err e = shard_lock(v, hash);
	if (e != BATON_OK)
		return e;
	if (atomic_load(&v->slots[n].listed) == 1 && atomic_load(&v->slots[n].hash) == hash)
		return BATON_OK;
	subjects_unlock(v, hash);
	return BATON_YIELD;
}

enum baton_err subjects_find(struct view *v, const struct key *key, uint32_t *ret_slot,
                             struct word *ret_word)
{
	if (probe_free(v, key, ret_slot, ret_word))
		return BATON_OK;
	enum baton_err e = shard_lock(v, key->hash);
	if (e != BATON_OK)
		return e;
	*ret_slot = probe(v, key, ret_word);
	subjects_unlock(v, key->hash);
	return BATON_OK;
}

/* The fences of subjects that were removed from the shard are not above it. */
static uint64_t floor_of(const struct shard *shard)
{
	uint64_t floor = atomic_load(&shard->floor);
	return floor < WORD_TENURE_MAX ? floor : WORD_TENURE_MAX;
}

/* Looks up to where fences may be handed out. */
static void mark_look(struct view *v)
{
	uint64_t mark = atomic_load(&v->control->mark);
	atomic_store_explicit(&v->afforded, mark < TENURE_USABLE ? mark : TENURE_USABLE,
	                      memory_order_relaxed);
}

static enum baton_err mark_advance(struct view *v, uint64_t tenure)
{
	if (tenure - 1 >= TENURE_USABLE)
		return fail(BATON_FULL, "the fleet '%.200s' has no fences left above %llu",
		            v->segment.path, (unsigned long long)TENURE_USABLE);
	if (v->mark_path[0] != '\0') {
		uint64_t before;
		enum baton_err e =
			mark_raise(v->mark_path, v->mark_mode, tenure + MARK_BLOCK, &before);
		if (e != BATON_OK)
			return e;
	}
	raise_to(&v->control->mark, tenure + MARK_BLOCK);
	return BATON_OK;
}

enum baton_err subjects_afford(struct view *v, uint64_t tenure)
{
	if (subjects_affords(v, tenure))
		return BATON_OK;
	mark_look(v);
	enum baton_err e = subjects_affords(v, tenure) ? BATON_OK : mark_advance(v, tenure);
	mark_look(v);
	return e;
}

/* Takes a place that has no subject. From then on it is `code`'s, as if it held one there. */
static bool place_take(struct view *v, uint32_t n, uint32_t code, struct word *ret_word)
{
	struct slot *slot = &v->slots[n];
	struct word w = slot_load(slot);
	if (word_code(w) != WORD_VACANT || atomic_load(&slot->listed) != 0)
		return false;
	struct word taken = word_settled(w, 0, code, 0);
	if (!slot_change(slot, w, taken))
		return false;
	*ret_word = taken;
	STEP(PLACE_TAKEN);
	return true;
}

/* Removes a subject that nobody holds and nobody waits for, whose shard is locked. */
static bool evict_locked(struct view *v, uint32_t n, struct word w, uint32_t code)
{
	struct slot *slot = &v->slots[n];
	struct shard *shard = index_shard(v, atomic_load(&slot->hash));
	STEP(EVICT_LOCKED);
	if (!line_is_empty_locked(v, n) || !slot_change(slot, w, word_vacated(w)))
		return false;
	STEP(EVICT_VACATED);
	if (atomic_load(&shard->floor) < word_tenure(w))
		atomic_store(&shard->floor, word_tenure(w));
	if (word_is_held(w))
		event_say(v, code,
		          roster_is_dead(v, word_code(w)) ? BATON_EVENT_DIED : BATON_EVENT_EXPIRED,
		          w, n);
	index_remove(v, shard, n);
	atomic_store(&slot->listed, 0);
	STEP(EVICT_DONE);
	return true;
}

static enum baton_err evict(struct view *v, uint32_t n, uint32_t code, int64_t now,
                            bool *ret_evicted)
{
	struct slot *slot = &v->slots[n];
	*ret_evicted = false;
	struct word w = slot_load(slot);
	uint64_t hash = atomic_load(&slot->hash);
	if (atomic_load(&slot->listed) == 0 || line_is_waited_in(v, n) ||
	    !word_is_takeable(w, roster_is_dead(v, word_code(w)), word_moment(now)))
		return BATON_OK;
	enum baton_err e = subjects_lock(v, n, hash);
	if (e != BATON_OK)
		return e == BATON_YIELD ? BATON_OK : e;
	*ret_evicted = evict_locked(v, n, w, code);
	subjects_unlock(v, hash);
	return BATON_OK;
}

/* Finds room: a place that was never used, or one round over all of them for one that nobody
 * holds. */
static enum baton_err place_find(struct view *v, const struct settler *who, uint32_t *ret_slot,
                                 struct word *ret_word)
{
	struct control *c = v->control;
	uint32_t places = v->params[PARAM_SUBJECTS];
	uint32_t fresh = atomic_load(&c->fresh);
	while (fresh < places) {
		if (!atomic_compare_exchange_weak(&c->fresh, &fresh, fresh + 1))
			continue;
		*ret_slot = fresh;
		if (place_take(v, fresh, who->code, ret_word))
			return BATON_OK;
		fresh = atomic_load(&c->fresh);
	}
	for (uint32_t i = 0; i < places; i++) {
		uint32_t n = atomic_fetch_add(&c->hand, 1) % places;
		bool evicted;
		enum baton_err e = evict(v, n, who->code, who->now, &evicted);
		if (e != BATON_OK)
			return e;
		*ret_slot = n;
		if (place_take(v, n, who->code, ret_word))
			return BATON_OK;
	}
	return fail(BATON_FULL,
	            "the fleet '%.200s' has %u subjects that are held or waited for, which is its "
	            "limit",
	            v->segment.path, places);
}

static void place_give(struct view *v, uint32_t n, struct word w)
{
	slot_change(&v->slots[n], w, word_vacated(w));
}

/* Puts the key into the place that was taken, whose shard is locked. */
static void settle_locked(struct view *v, const struct key *key, uint32_t n)
{
	struct slot *slot = &v->slots[n];
	STEP(SETTLE_WRITING);
	words_write(v->names[n].space, SPACE_WORDS, key->space);
	words_write(v->names[n].label, LABEL_WORDS, key->label);
	atomic_store(&slot->hash, key->hash);
	atomic_store(&slot->lengths, key->lengths);
	atomic_store(&slot->line, 0);
	atomic_store(&slot->offered, 0);
	atomic_store(&slot->listed, 1);
	STEP(SETTLE_LISTED);
	index_add(v, index_shard(v, key->hash), n);
	STEP(SETTLE_DONE);
}

enum baton_err subjects_settle(struct view *v, const struct key *key, const struct settler *who,
                               uint32_t *ret_slot, struct word *ret_word)
{
	struct shard *shard = index_shard(v, key->hash);
	uint32_t n;
	struct word w;
	enum baton_err e = place_find(v, who, &n, &w);
	if (e != BATON_OK)
		return e;
	/* Before the lock, because the mark may have to be written to a disk. */
	e = subjects_afford(v, word_tenure(word_settled(w, floor_of(shard), who->code, 0)));
	if (e == BATON_OK)
		e = shard_lock(v, key->hash);
	if (e != BATON_OK) {
		place_give(v, n, w);
		return e;
	}
	STEP(SETTLE_LOCKED);
	struct word other;
	struct word settled = word_settled(w, floor_of(shard), who->code, who->expires);
	bool fits = subjects_affords(v, word_tenure(settled)) && index_has_room(v, shard);
	if (probe(v, key, &other) != SUBJECTS_NONE || !fits ||
	    !slot_change(&v->slots[n], w, settled)) {
		subjects_unlock(v, key->hash);
		place_give(v, n, w);
		return BATON_YIELD;
	}
	settle_locked(v, key, n);
	subjects_unlock(v, key->hash);
	*ret_slot = n;
	*ret_word = settled;
	return BATON_OK;
}
