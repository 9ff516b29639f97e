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
enum baton_err key_refuse(const struct baton_subject *subject, size_t label_max);

/* Whether the lengths are allowed; `label_max` is what the member's own label leaves. */
static inline bool key_fits(const struct baton_subject *s, size_t label_max)
{
	return s->space.len - 1 < BATON_SPACE_MAX && s->label.len - 1 < label_max;
}

/* BATON_INVALID: they are not. */
static inline enum baton_err key_check(const struct baton_subject *s, size_t label_max)
{
	return key_fits(s, label_max) ? BATON_OK : key_refuse(s, label_max);
}

struct key key_make(const struct view *v, const struct baton_subject *subject);

/* Whether the place `slot` has that `name`, whose lengths are within their limits. What is read
 * counts only if the word has not changed since before. Whether it is listed is looked at first:
 * before a place says that it is, its new name is complete. */
static inline bool subjects_is(const struct slot *slot, const struct name *name,
                               const struct baton_subject *s)
{
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

/* Fences up to here are handed out. In a damaged fleet the mark may say anything, and the last
 * tenure of all may have been followed by 0. */
#define TENURE_USABLE (WORD_TENURE_MAX - MARK_BLOCK)

/* Whether the mark, as it was last seen, allows to hand out `tenure`. It only rises. */
static inline bool subjects_affords(const struct view *v, uint64_t tenure)
{
	return tenure - 1 < atomic_load_explicit(&v->afforded, memory_order_relaxed);
}

/* Sees to it that the mark does, and raises it if need be. BATON_SYSTEM, BATON_FULL and so on: it
 * could not be written. */
enum baton_err subjects_afford(struct view *v, uint64_t tenure);

#endif
