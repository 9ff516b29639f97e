/* Which place a subject has. Looking it up takes no lock; giving it a place, and taking the place
 * of one that nobody holds, takes that of a part of the index. */
#ifndef CONTEST_SUBJECTS_H
#define CONTEST_SUBJECTS_H

#include "contest/layout.h"
#include "contest/name.h"

#define SUBJECTS_NONE UINT32_MAX

/* A subject's name with its hash. */
struct key {
	struct baton_str space, label;
	uint64_t hash;
	uint32_t lengths;
};

/* Says what is wrong with the lengths of a name: BATON_INVALID. */
enum baton_err key_refuse(const struct baton_subject *subject, size_t owner);

/* BATON_INVALID: empty or too long; `owner` bytes are the member's own label. */
static inline enum baton_err key_check(const struct baton_subject *s, size_t owner)
{
	bool fits =
		s->space.len - 1 < BATON_SPACE_MAX && s->label.len - 1 < BATON_LABEL_MAX - owner;
	return fits ? BATON_OK : key_refuse(s, owner);
}

struct key key_make(const struct view *v, const struct baton_subject *subject);

/* Whether the place has that name, whose lengths are within their limits. What is read counts only
 * if the word has not changed since before. Whether it is listed is looked at first: before a place
 * says that it is, its new name is complete. */
static inline bool subjects_is(const struct view *v, uint32_t n, const struct baton_subject *s)
{
	const struct slot *slot = &v->slots[n];
	const struct name *name = &v->names[n];
	uint32_t lengths = (uint32_t)s->space.len << 16 | (uint32_t)s->label.len;
	return atomic_load_explicit(&slot->listed, memory_order_acquire) == 1 &&
	       atomic_load_explicit(&slot->lengths, memory_order_relaxed) == lengths &&
	       words_are(name->space, s->space) && words_are(name->label, s->label);
}

/* The place of the subject and what its word was then, or SUBJECTS_NONE. It may have gone when this
 * returns: a change of the word fails then. BATON_BUSY. */
enum baton_err subjects_find(struct view *v, const struct key *key, uint32_t *ret_slot,
                             struct word *ret_word);

/* Who gives a subject a place, and so holds it from the start. */
struct settler {
	uint32_t code;
	uint64_t expires;
	int64_t now; /* by which others' claims have expired or not */
};

/* Gives the subject a place.
 *
 * BATON_OK: *ret_slot and *ret_word are the place and its word. BATON_YIELD: it has one by now.
 * BATON_FULL: every place is held. BATON_BUSY, BATON_SYSTEM. */
enum baton_err subjects_settle(struct view *v, const struct key *key, const struct settler *who,
                               uint32_t *ret_slot, struct word *ret_word);

/* Locks the part of the index that has the place, if the place has that hash still; and so the line
 * of those who wait for it. BATON_YIELD: it has another. */
enum baton_err subjects_lock(struct view *v, uint32_t n, uint64_t hash);
void subjects_unlock(struct view *v, uint64_t hash);

/* Room for a name. */
struct name_text {
	char space[BATON_SPACE_MAX + 1];
	char label[BATON_LABEL_MAX + 1];
};

/* Copies the name of a place whose subject has that hash to *text, into which *ret points. False:
 * the place has another subject by now, or none. */
bool subjects_name(const struct view *v, uint32_t n, uint64_t hash, struct name_text *text,
                   struct baton_subject *ret);

/* Raises the mark so that `tenure` may be handed out. BATON_SYSTEM, BATON_FULL and so on: it could
 * not be written. */
enum baton_err mark_advance(struct view *v, uint64_t tenure);

/* Fences up to here are handed out. In a damaged fleet the mark may say anything, and the last
 * tenure of all may have been followed by 0. */
#define TENURE_USABLE (WORD_TENURE_MAX - MARK_BLOCK)

static inline bool tenure_is_usable(uint64_t tenure)
{
	return tenure - 1 < TENURE_USABLE;
}

/* Whether the mark allows to hand out `tenure`. */
static inline bool subjects_affords(const struct view *v, uint64_t tenure)
{
	return tenure_is_usable(tenure) &&
	       tenure <= atomic_load_explicit(&v->control->mark, memory_order_acquire);
}

/* As mark_advance(), unless it has been raised already. */
static inline enum baton_err subjects_afford(struct view *v, uint64_t tenure)
{
	return subjects_affords(v, tenure) ? BATON_OK : mark_advance(v, tenure);
}

#endif
