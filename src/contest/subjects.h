/* Which place a subject has. Looking it up takes no lock; giving it a place, and taking the place
 * of one that nobody holds, takes that of a part of the index. */
#ifndef CONTEST_SUBJECTS_H
#define CONTEST_SUBJECTS_H

#include "contest/layout.h"

#define SUBJECTS_NONE UINT32_MAX

/* A subject's name with its hash. */
struct key {
	struct baton_str space, label;
	uint64_t hash;
	uint32_t lengths;
};

/* BATON_INVALID: empty or too long; `owner` bytes are the member's own label. */
enum baton_err key_check(const struct baton_subject *subject, size_t owner);

struct key key_make(const struct view *v, const struct baton_subject *subject);

/* Whether the place has that name. What is read counts only if the word has not changed since
 * before. */
bool subjects_is(const struct view *v, uint32_t n, const struct baton_subject *subject);

/* The place of the subject and what its word was then, or SUBJECTS_NONE. It may have gone when this
 * returns: a change of the word fails then. BATON_BUSY. */
enum baton_err subjects_find(struct view *v, const struct key *key, uint32_t *ret_slot,
                             struct word *ret_word);

/* Gives the subject a place, held by `code` from the start until `expires`.
 *
 * BATON_OK: *ret_slot and *ret_word are the place and its word. BATON_YIELD: it has one by now.
 * BATON_FULL: every place is held. BATON_BUSY, BATON_SYSTEM. */
enum baton_err subjects_settle(struct view *v, const struct key *key, uint32_t code,
                               uint64_t expires, uint32_t *ret_slot, struct word *ret_word);

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

/* Raises the mark, if it has to be, so that `tenure` may be handed out. BATON_SYSTEM, BATON_FULL
 * and so on: it could not be written. */
enum baton_err subjects_afford(struct view *v, uint64_t tenure);

#endif
