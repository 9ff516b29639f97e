/* A key that somebody holds, waits for, or started too recently to forget. */
#ifndef GATE_ENTRY_H
#define GATE_ENTRY_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include <baton/gate.h>

#define ENTRY_TEXT_INLINE 55

struct entry;
struct link;

/* A place in the list of holders by expiry: the neighbours' positions + 1; 0: none. The first
 * holder has position 0, the others follow in the order in which they lie in memory. */
struct order {
	uint32_t prev;
	uint32_t next;
};

struct member {
	struct baton_gate_holder holder;
	struct order order;
};

/* What most keys never need: more than one holder, a line, a rate, a ttl. [shard lock] */
struct crowd {
	struct member *more;      /* the holders but the first, in no order                */
	uint32_t more_cap;        /* at least holders - 1 + waiting                        */
	uint32_t index_cap;       /* a power of two above more_cap; 0 while that is small  */
	uint32_t *index;          /* run -> position of one of `more`, by linear probing   */
	struct order first_order; /* of the entry's first holder                           */
	uint32_t soonest;         /* position + 1 of who expires first; 0: nobody does     */
	uint32_t latest;
	struct link *first; /* the line, in order of arrival                         */
	struct link *last;
	uint32_t waiting;          /* how many links the line has                           */
	uint32_t starts_cap;       /* at least starts_len + waiting                         */
	uint32_t starts_len;       /* starts that may still lie inside the window           */
	uint32_t starts_at;        /* where the oldest of them is in the ring               */
	struct baton_mono *starts; /* ring of moments, ascending                            */
	struct entry *timed_prev;  /* the shard's ring of entries that time may make idle   */
	struct entry *timed_next;  /* NULL: not in it                                       */
};

/* Two cache lines, so that taking a free key touches little else. [shard lock] */
struct entry {
	union {
		struct {
			char text[ENTRY_TEXT_INLINE];
			uint8_t len; /* of the key, wherever it is */
		} near;
		char *far;              /* the key, when len > ENTRY_TEXT_INLINE */
	} key;                          /* [const] */
	struct baton_gate_holder first; /* a holder, when holders > 0                   */
	union {
		struct crowd *crowd;     /* NULL: at most one holder, and that is all    */
		struct entry *free_next; /* while the entry is free                     */
	};
	uint32_t holders;
	uint32_t tag;   /* [const] the half of the hash by which the table is indexed    */
	uint32_t chunk; /* [const] the number of the chunk that it lies in               */
	uint16_t cls;   /* [const] */
	uint8_t unused[10];
};
static_assert(sizeof(struct entry) == 128, "two cache lines");

static inline struct baton_str entry_text(const struct entry *e)
{
	uint8_t len = e->key.near.len;
	struct baton_str s = {len > ENTRY_TEXT_INLINE ? e->key.far : e->key.near.text, len};
	return s;
}

static inline uint32_t entry_waiting(const struct entry *e)
{
	return e->crowd ? e->crowd->waiting : 0;
}

/* Whether the entry is looked at as time passes. */
static inline bool entry_timed(const struct entry *e)
{
	return e->crowd && e->crowd->timed_next;
}

#endif
