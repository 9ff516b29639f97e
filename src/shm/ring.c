/* A ring of short entries in shared memory. */
#include "shm/ring.h"

enum ring_look ring_get(const struct ring *r, uint32_t capacity, struct ring_reader *reader,
                        struct ring_item *ret)
{
	for (;;) {
		uint64_t head = atomic_load(&r->head);
		uint64_t n = reader->next;
		if (head - n == 0 || head - n > UINT64_MAX / 2)
			return RING_NONE;
		if (head - n > capacity) {
			reader->lost += head - capacity - n;
			reader->next = head - capacity;
			continue;
		}
		const struct ring_entry *e = &r->entries[n & (capacity - 1)];
		uint64_t state = atomic_load_explicit(&e->state, memory_order_acquire);
		/* Numbers are counted round, so that the difference tells. */
		int32_t ahead = (int32_t)((uint32_t)(state >> 32) - (uint32_t)(n + 1));
		if (ahead < 0 || state == ring_writing(n))
			return RING_PENDING;
		struct ring_item item = {
			atomic_load_explicit(&e->a, memory_order_relaxed),
			atomic_load_explicit(&e->b, memory_order_relaxed),
			atomic_load_explicit(&e->c, memory_order_relaxed),
		};
		atomic_thread_fence(memory_order_acquire);
		bool whole = state == ring_written(n, item) &&
		             atomic_load_explicit(&e->state, memory_order_relaxed) == state;
		if (!whole) {
			ring_skip(reader);
			continue;
		}
		reader->next = n + 1;
		*ret = item;
		return RING_ITEM;
	}
}
