/* A ring of short entries in shared memory: many may write and many may read, nobody waits for
 * anybody, and whoever reads too slowly is told exactly how many entries were lost to it.
 *
 * What is written is advice. A writer that dies in the middle of an entry costs that one entry. One
 * that was stopped there for a whole round, and goes on, spoils what another has written meanwhile:
 * that counts as lost too. */
#ifndef SHM_RING_H
#define SHM_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ring_item {
	uint64_t a, b, c;
};

/* Entry number n is at n % capacity. `state` is n + 1, in the upper half, and below it 1 while it
 * is being written, and after that a sum of what was. */
struct ring_entry {
	_Atomic uint64_t state;
	_Atomic uint64_t a, b, c;
};

struct ring {
	_Alignas(64) _Atomic uint64_t head; /* how many entries were begun */
	_Alignas(64) struct ring_entry entries[];
};

/* How much room a ring of `capacity` entries takes; `capacity` is a power of 2. */
static inline uint64_t ring_size(uint32_t capacity)
{
	return sizeof(struct ring) + (uint64_t)capacity * sizeof(struct ring_entry);
}

static inline uint64_t ring_writing(uint64_t n)
{
	return (n + 1) << 32 | 1;
}

static inline uint64_t ring_written(uint64_t n, struct ring_item item)
{
	uint64_t sum = item.a + item.b + item.c;
	return (n + 1) << 32 | (uint32_t)((sum ^ sum >> 32) << 1);
}

/* Appends `item`. Any thread of any process. The count of what was begun rises first, as a full
 * barrier, so that somebody who says that he sleeps and then finds nothing new was seen by whoever
 * looks for sleepers after this. */
static inline void ring_put(struct ring *r, uint32_t capacity, struct ring_item item)
{
	uint64_t n = atomic_fetch_add(&r->head, 1);
	struct ring_entry *e = &r->entries[n & (capacity - 1)];
	atomic_store_explicit(&e->state, ring_writing(n), memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&e->a, item.a, memory_order_relaxed);
	atomic_store_explicit(&e->b, item.b, memory_order_relaxed);
	atomic_store_explicit(&e->c, item.c, memory_order_relaxed);
	atomic_store_explicit(&e->state, ring_written(n, item), memory_order_release);
}

enum ring_look {
	RING_ITEM = 1, /* *ret is the entry, and the reader has moved on                        */
	RING_NONE,     /* there is nothing new                                                  */
	RING_PENDING   /* somebody has begun the next entry and not finished it                 */
};

/* Where somebody reads. Begins with `next` from ring_now(). */
struct ring_reader {
	uint64_t next; /* the number of the next entry          */
	uint64_t lost; /* how many were lost; the caller resets */
};

static inline uint64_t ring_now(const struct ring *r)
{
	return atomic_load(&r->head);
}

/* Reads the next entry. Only one thread uses a reader. The ring may be mapped read-only, and hold
 * anything. */
enum ring_look ring_get(const struct ring *r, uint32_t capacity, struct ring_reader *reader,
                        struct ring_item *ret);

/* Whether ring_get() would say something else than RING_NONE. */
static inline bool ring_has_news(const struct ring *r, const struct ring_reader *reader)
{
	uint64_t ahead = ring_now(r) - reader->next;
	return ahead != 0 && ahead <= UINT64_MAX / 2;
}

/* Gives up on an entry that is pending. */
static inline void ring_skip(struct ring_reader *reader)
{
	reader->next++;
	reader->lost++;
}

#endif
