/* What lies where in a fleet's segment. Everything that is read from it may be anything: numbers
 * that lead somewhere are compared with the geometry before they are followed. */
#ifndef CONTEST_LAYOUT_H
#define CONTEST_LAYOUT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/claim.h>
#include <baton/err.h>
#include <baton/fleet.h>
#include <baton/id.h>
#include <baton/owner.h>

#include "contest/word.h"
#include "shm/ring.h"
#include "shm/segment.h"

#define NS_PER_MS INT64_C(1000000)

/* So many fences are handed out before the mark has to be raised again. */
#define MARK_BLOCK (UINT64_C(1) << 24)

/* How long anybody stands behind somebody who may be stopped. */
#define PATIENCE_NS (10 * NS_PER_MS)

/* How long a sleeper believes that it would have been woken. */
#define BACKSTOP_NS (100 * NS_PER_MS)

/* A process-shared robust mutex, and how often it was taken. */
struct lock {
	_Alignas(64) pthread_mutex_t mutex;
	_Atomic uint32_t turns;
};

/* Somebody who sleeps sets `armed` and waits on `count`; somebody who has something to say clears
 * `armed`, and only if it was set counts and wakes. Dead sleepers cost one wake and no more. */
struct bell {
	_Alignas(64) _Atomic uint32_t count;
	_Atomic uint32_t armed;
};

#define BELLS 64u
#define BELL_CLAIMS 0u /* events of claims; the others: wake-ups, by their hash */

struct control {
	/* Changes never, or only by hand. */
	_Alignas(64) struct baton_id seed; /* of the hashes of subjects           [const]     */
	_Atomic uint32_t closed;           /* reset: nobody joins any more        [roster]    */

	_Alignas(64) _Atomic uint64_t mark;  /* fences up to it may be handed out   [atomic]   */
	_Alignas(64) _Atomic uint32_t fresh; /* places that were ever used          [atomic]  */
	_Atomic uint32_t hand;               /* where to look for room next         [atomic]  */
	_Atomic uint32_t members_used;       /* members that ever were              [roster]  */
	struct lock roster;
};

/* Facts about a member, copied word by word between two looks at `version`. */
struct member_facts {
	struct baton_owner owner;
	int64_t since; /* on the boot clock */
};

#define FACTS_WORDS ((sizeof(struct member_facts) + 7) / 8)

/* A place for a process. `life` is the thread id of its keeper, which the kernel takes out when the
 * keeper ends, however that happens, and the kernel's bits of a robust futex. */
struct member {
	_Alignas(64) _Atomic uint32_t life;
	_Alignas(64) _Atomic uint32_t joined; /* 0: the place is free                [roster] */
	_Atomic uint32_t version;             /* of the facts, odd while they change [roster] */
	_Atomic int64_t dead_since;           /* when it was first found dead; 0     [roster] */
	_Atomic uint64_t facts[FACTS_WORDS];
};

/* A part of the index of subjects. */
struct shard {
	struct lock lock;
	_Alignas(64) _Atomic uint32_t version; /* odd while the index changes         [lock]  */
	_Atomic uint64_t floor;                /* of the fences of removed subjects   [lock]  */
};

/* An entry of the index: the upper half of the hash, and the number of the place plus one. 0: none.
 * A chain of entries ends at the first 0. */
typedef _Atomic uint64_t index_entry;

/* What changes about a subject. */
struct slot {
	_Alignas(64) union {
		struct {
			_Atomic uint64_t who;
			_Atomic uint64_t expires;
		};
		unsigned __int128 both;
	};
	_Atomic uint64_t since;   /* as since_pack() has it                         [atomic]   */
	_Atomic uint64_t hash;    /* of its name                                    [shard]    */
	_Atomic uint32_t lengths; /* of its space, in the upper half, and label     [shard]    */
	_Atomic uint32_t listed;  /* 1: the index leads here                        [shard]    */
	_Atomic uint32_t line;    /* the first waiter plus one; 0: nobody waits     [shard]    */
	_Atomic uint32_t tickets; /* how many have been given out                   [shard]    */
	_Atomic int64_t offered;  /* when it was first seen free with a line; 0     [atomic]   */
};

/* Its name, padded with zeros. */
#define SPACE_WORDS 4
#define LABEL_WORDS 60
struct name {
	_Alignas(64) _Atomic uint64_t space[SPACE_WORDS];
	_Atomic uint64_t label[LABEL_WORDS];
};

/* A thread that waits in line. */
struct waiter {
	_Alignas(64) _Atomic uint32_t owner; /* the code of its member; 0: free       [atomic] */
	_Atomic uint32_t bell;               /* counted up to wake it                 [atomic] */
	_Atomic uint32_t slot;               /* plus one; 0: in no line               [shard]  */
	_Atomic uint32_t next;               /* the next in line plus one; 0: last    [shard]  */
	_Atomic uint32_t passed;             /* it did not take its turn              [atomic] */
	_Atomic uint32_t left;               /* it has gone, and stands there still   [atomic] */
	_Atomic uint32_t ticket;             /* the order of arrival                  [shard]  */
};

enum layout_param {
	PARAM_MEMBERS,
	PARAM_SUBJECTS,
	PARAM_WAITERS,
	PARAM_EVENTS,
	PARAM_WAKEUPS,
	PARAM_COUNT
};

/* A segment with its parts found. Pointers into it are computed once, from the geometry that was
 * compared with the size of the file. */
struct view {
	struct bell *bells;
	struct control *control;
	struct member *members;
	struct shard *shards;
	index_entry *index;
	struct slot *slots;
	struct name *names;
	struct waiter *waiters;
	char *lanes; /* a ring for each member */
	struct ring *wakeups;
	uint64_t lane_size;
	uint32_t params[PARAM_COUNT];
	uint32_t shard_count;  /* a power of 2 */
	uint32_t shard_places; /* entries of the index in each shard, a power of 2 */
	int lock_kind;         /* what the mutexes in it should be */

	_Atomic uint64_t afforded; /* fences up to it may be handed out, as last seen */

	/* Where the mark is kept; "": nowhere. Not in the segment, because whoever shares it could
	 * let others write where they should not. */
	const char *mark_path;
	mode_t mark_mode;

	struct segment segment;
};

/* How to find or make the segment: `path`, `mode`, `read_only` and `params` are still to be said;
 * `arg` of a new one is a struct fleet_seed. */
struct segment_spec layout_spec(void);

/* What a new segment begins with. */
struct fleet_seed {
	const char *mark_path; /* "": it is kept nowhere */
	mode_t mode;           /* of that file           */
};

/* Fills in the params of a new segment. BATON_INVALID: a limit is out of its range. */
enum baton_err layout_params(const struct baton_fleet_limits *limits,
                             uint32_t params[SEGMENT_PARAMS]);

/* Finds the parts of view->segment. */
void view_init(struct view *v);

/* Lets no fence begin below the mark on the disk. The fleet's own is ahead of it, but a fleet may
 * have been made by somebody who was stopped before he gave it its name, while others came and
 * went. For everybody who joins, before he claims. Errors as mark_raise(). */
enum baton_err view_floor(struct view *v);

/* Raises a number that others may raise too. */
static inline void raise_to(_Atomic uint64_t *number, uint64_t at_least)
{
	uint64_t before = atomic_load(number);
	while (before < at_least && !atomic_compare_exchange_weak(number, &before, at_least))
		;
}

static inline struct ring *view_lane(const struct view *v, uint32_t member)
{
	return (struct ring *)(void *)(v->lanes + (uint64_t)member * v->lane_size);
}

/* The member of a code, or NULL if there is no such place. */
static inline struct member *view_member(const struct view *v, uint32_t code)
{
	return code >= 1 && code <= v->params[PARAM_MEMBERS] ? &v->members[code - 1] : NULL;
}

static inline uint32_t view_limit(const struct view *v, enum layout_param p, uint32_t value)
{
	return value < v->params[p] ? value : v->params[p];
}

static inline uint32_t view_fresh(const struct view *v)
{
	return view_limit(v, PARAM_SUBJECTS, atomic_load(&v->control->fresh));
}

static inline uint32_t view_members_used(const struct view *v)
{
	return view_limit(v, PARAM_MEMBERS, atomic_load(&v->control->members_used));
}

/* The two halves may be read one after the other: as long as `who` is the same, both were there at
 * the same time, because it never comes again. */
static inline struct word slot_load(const struct slot *s)
{
	struct word w;
	uint64_t again = atomic_load_explicit(&s->who, memory_order_acquire);
	do {
		w.who = again;
		w.expires = atomic_load_explicit(&s->expires, memory_order_acquire);
		again = atomic_load_explicit(&s->who, memory_order_acquire);
	} while (again != w.who);
	return w;
}

/* The same for whoever only wants to change it: halves of two words are no word that ever was, so
 * that the change fails. */
static inline struct word slot_glance(const struct slot *s)
{
	uint64_t who = atomic_load_explicit(&s->who, memory_order_acquire);
	return (struct word){who, atomic_load_explicit(&s->expires, memory_order_relaxed)};
}

/* Since when a tenure lasts, on the boot clock in us, above the low 16 bits of the tenure. */
static inline uint64_t since_pack(int64_t now, struct word w)
{
	return word_moment(now) / 1000 << 16 | (word_tenure(w) & 0xffff);
}

/* In ns; 0: it is about another tenure. */
static inline int64_t since_of(uint64_t since, struct word w)
{
	bool of_this = (since & 0xffff) == (word_tenure(w) & 0xffff);
	return of_this ? (int64_t)(since >> 16) * 1000 : 0;
}

/* Changes the word from exactly `from`. A full barrier. The instruction itself where it is known,
 * because ThreadSanitizer replaces the compiler's by a lock of the process. */
static inline bool slot_change(struct slot *s, struct word from, struct word to)
{
#ifdef __x86_64__
	bool changed;
	__asm__ volatile("lock cmpxchg16b %1"
	                 : "=@ccz"(changed), "+m"(s->both), "+a"(from.who), "+d"(from.expires)
	                 : "b"(to.who), "c"(to.expires)
	                 : "memory");
	return changed;
#else
	unsigned __int128 before = (unsigned __int128)from.expires << 64 | from.who;
	unsigned __int128 after = (unsigned __int128)to.expires << 64 | to.who;
	return __sync_bool_compare_and_swap(&s->both, before, after);
#endif
}

#endif
