/* Memory that is given back all at once. */
#include "base/arena.h"

#include <stdint.h>
#include <string.h>

#include "base/mem.h"

#define CHUNK_MIN 4096
#define CHUNK_MAX (1u << 20)
#define ALIGN _Alignof(max_align_t)

struct arena_chunk {
	struct arena_chunk *next;
	size_t size; /* of the whole block */
	size_t used; /* of the block, its head included */
};

#define HEAD ((sizeof(struct arena_chunk) + ALIGN - 1) / ALIGN * ALIGN)

void arena_init(struct arena *a, const struct baton_alloc *alloc)
{
	*a = (struct arena){alloc, NULL};
}

void arena_done(struct arena *a)
{
	while (a->chunks) {
		struct arena_chunk *chunk = a->chunks;
		a->chunks = chunk->next;
		mem_free(a->alloc, chunk, 1, chunk->size);
	}
}

void arena_reset(struct arena *a)
{
	struct arena_chunk *kept = a->chunks;
	if (!kept || kept->size > CHUNK_MAX) {
		arena_done(a);
		return;
	}
	a->chunks = kept->next;
	arena_done(a);
	kept->next = NULL;
	kept->used = HEAD;
	a->chunks = kept;
}

static struct arena_chunk *chunk_add(struct arena *a, size_t want)
{
	size_t last = a->chunks ? a->chunks->size : CHUNK_MIN / 2;
	size_t size = last < SIZE_MAX / 4 ? last * 2 : last;
	size = size < CHUNK_MAX ? size : CHUNK_MAX;
	size = size > HEAD + want ? size : HEAD + want;
	struct arena_chunk *chunk = mem_resize(a->alloc, NULL, 0, size, 1);
	if (!chunk)
		return NULL;
	*chunk = (struct arena_chunk){a->chunks, size, HEAD};
	a->chunks = chunk;
	return chunk;
}

void *arena_take_raw(struct arena *a, size_t count, size_t size)
{
	size_t want;
	if (__builtin_mul_overflow(count, size, &want) || want > SIZE_MAX / 4)
		return NULL;
	want = (want + ALIGN - 1) / ALIGN * ALIGN;
	struct arena_chunk *chunk = a->chunks;
	if (!chunk || chunk->size - chunk->used < want)
		chunk = chunk_add(a, want);
	if (!chunk)
		return NULL;
	char *place = (char *)chunk + chunk->used;
	chunk->used += want;
	return place;
}

void *arena_take(struct arena *a, size_t count, size_t size)
{
	void *place = arena_take_raw(a, count, size);
	return place ? memset(place, 0, count * size) : NULL;
}

bool arena_copy(struct arena *a, struct baton_str s, struct baton_str *ret)
{
	char *place = arena_take(a, s.len + 1, 1);
	if (!place)
		return false;
	if (s.len > 0)
		memcpy(place, s.ptr, s.len);
	*ret = (struct baton_str){place, s.len};
	return true;
}
