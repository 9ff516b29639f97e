/* The sixteen bytes that say who holds a subject, and every change that they can go through.
 *
 * All changes are made by one compare-and-swap from exactly what was seen, so that of all who want
 * to change them at once one does, and the others look again. These functions decide; they do no
 * more than compute, and tests walk through all orders in which several processes can use them. */
#ifndef CONTEST_WORD_H
#define CONTEST_WORD_H

#include <stdbool.h>
#include <stdint.h>

/* `who`: the tenure, which is the fence, in the upper 48 bits, and below it the code of the member
 * that holds it. The tenure never goes back as long as the segment lives, and whoever takes a
 * subject raises it; so what was seen once never comes again. */
struct word {
	uint64_t who;
	uint64_t expires; /* on the boot clock, in ns; 0: never, and whenever nobody holds it */
};

#define WORD_FREE 0u        /* nobody holds it                              */
#define WORD_VACANT 0xffffu /* there is no subject here                     */
#define WORD_MEMBERS_MAX 65534u
#define WORD_TENURE_MAX ((UINT64_C(1) << 48) - 1)

static inline struct word word_make(uint64_t tenure, uint32_t code, uint64_t expires)
{
	return (struct word){tenure << 16 | code, expires};
}

static inline uint64_t word_tenure(struct word w)
{
	return w.who >> 16;
}

static inline uint32_t word_code(struct word w)
{
	return (uint32_t)(w.who & 0xffff);
}

/* Whether a member has it, or had it until its time ran out or it died. */
static inline bool word_is_held(struct word w)
{
	return word_code(w) != WORD_FREE && word_code(w) != WORD_VACANT;
}

/* A moment as words have it: there is none before the boot. */
static inline uint64_t word_moment(int64_t ns)
{
	return ns > 0 ? (uint64_t)ns : 0;
}

/* Live iff it expires after now: at exactly the deadline it is too late. */
static inline bool word_has_expired(struct word w, uint64_t now)
{
	return word_is_held(w) && w.expires != 0 && w.expires <= now;
}

/* Whether somebody who wants the subject may take it. `dead`: its member was dead when it was
 * looked at after `w` was. */
static inline bool word_is_takeable(struct word w, bool dead, uint64_t now)
{
	if (word_code(w) == WORD_VACANT)
		return false;
	return !word_is_held(w) || dead || word_has_expired(w, now);
}

/* As the member `code` holds it after taking it, with a new fence. */
static inline struct word word_taken(struct word w, uint32_t code, uint64_t expires)
{
	return word_make(word_tenure(w) + 1, code, expires);
}

/* Whether it is the tenure `fence` of the member `code`, be it live or not. */
static inline bool word_is_of(struct word w, uint32_t code, uint64_t fence)
{
	return word_code(w) == code && word_tenure(w) == fence;
}

/* Whether that tenure is live: only then may it be renewed. */
static inline bool word_is_live(struct word w, uint32_t code, uint64_t fence, uint64_t now)
{
	return word_is_of(w, code, fence) && !word_has_expired(w, now);
}

/* As it is after a renewal, which never shortens. */
static inline struct word word_renewed(struct word w, uint64_t expires)
{
	bool longer = w.expires != 0 && (expires == 0 || expires > w.expires);
	return longer ? (struct word){w.who, expires} : w;
}

/* As it is after a release, or after it was taken away: the tenure stays, for the next one to
 * raise. */
static inline struct word word_freed(struct word w)
{
	return word_make(word_tenure(w), WORD_FREE, 0);
}

/* As it is once the subject has been removed from its place. */
static inline struct word word_vacated(struct word w)
{
	return word_make(word_tenure(w), WORD_VACANT, 0);
}

/* As the member `code` has the place to put another subject there, whose fences have to be above
 * `floor`. */
static inline struct word word_settled(struct word w, uint64_t floor, uint32_t code,
                                       uint64_t expires)
{
	uint64_t last = word_tenure(w) > floor ? word_tenure(w) : floor;
	return word_make(last + 1, code, expires);
}

#endif
