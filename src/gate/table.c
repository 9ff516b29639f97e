/* The entries of one shard. */
#include "gate/table.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"

#define CHUNK_ENTRIES 32u
#define SLOTS_MIN 16u

/* The block is larger than its entries, so that they can be aligned to their size. */
#define CHUNK_BYTES ((CHUNK_ENTRIES + 1) * sizeof(struct entry))

struct chunk {
	struct entry *entries; /* NULL: there is no such chunk      */
	void *block;           /* what the allocator returned       */
	uint32_t free;         /* while trimming: how many are free */
};

void table_init(struct table *t, const struct baton_alloc *alloc)
{
	memset(t, 0, sizeof *t);
	t->alloc = alloc;
}

static void text_free(struct table *t, struct entry *e)
{
	struct baton_str text = entry_text(e);
	if (text.len > ENTRY_TEXT_INLINE)
		mem_free(t->alloc, e->key.far, text.len, 1);
}

void table_done(struct table *t)
{
	uint32_t cursor = 0;
	for (struct entry *e; (e = table_next(t, &cursor));)
		text_free(t, e);
	for (uint32_t i = 0; i < t->chunk_top; i++)
		mem_free(t->alloc, t->chunks[i].block, CHUNK_BYTES, 1);
	mem_free(t->alloc, t->chunks, t->chunk_cap, sizeof *t->chunks);
	mem_free(t->alloc, t->slots, t->cap, sizeof *t->slots);
	table_init(t, t->alloc);
}

struct entry *table_find(const struct table *t, uint32_t tag, uint16_t cls, struct baton_str text)
{
	if (t->used == 0)
		return NULL;
	uint32_t mask = t->cap - 1;
	for (uint32_t at = tag & mask; t->slots[at].entry; at = (at + 1) & mask) {
		if (t->slots[at].tag != tag)
			continue;
		struct entry *e = t->slots[at].entry;
		if (e->cls == cls && baton_str_equal(entry_text(e), text))
			return e;
	}
	return NULL;
}

static void slot_put(struct slot *slots, uint32_t cap, struct slot s)
{
	uint32_t at = s.tag & (cap - 1);
	while (slots[at].entry)
		at = (at + 1) & (cap - 1);
	slots[at] = s;
}

static bool slots_resize(struct table *t, uint32_t cap)
{
	struct slot *slots = mem_new(t->alloc, cap, sizeof *slots);
	if (!slots)
		return false;
	for (uint32_t i = 0; i < t->cap; i++)
		if (t->slots[i].entry)
			slot_put(slots, cap, t->slots[i]);
	mem_free(t->alloc, t->slots, t->cap, sizeof *t->slots);
	t->slots = slots;
	t->cap = cap;
	return true;
}

/* Room for one more at a load of at most 0.7. */
static bool slots_grow(struct table *t)
{
	if (t->cap == 0)
		return slots_resize(t, SLOTS_MIN);
	if ((uint64_t)(t->used + 1) * 10 <= (uint64_t)t->cap * 7)
		return true;
	return t->cap <= UINT32_MAX / 2 && slots_resize(t, t->cap * 2);
}

/* Fills the hole by moving back whoever was pushed beyond it, so that no search ends too early. */
static void slots_close(struct table *t, uint32_t hole)
{
	uint32_t mask = t->cap - 1;
	for (uint32_t at = (hole + 1) & mask; t->slots[at].entry; at = (at + 1) & mask) {
		uint32_t home = t->slots[at].tag & mask;
		if (((at - home) & mask) < ((at - hole) & mask))
			continue;
		t->slots[hole] = t->slots[at];
		hole = at;
	}
	t->slots[hole].entry = NULL;
}

static void slots_remove(struct table *t, const struct entry *e)
{
	uint32_t at = e->tag & (t->cap - 1);
	while (t->slots[at].entry != e) {
		CHECK(t->slots[at].entry);
		at = (at + 1) & (t->cap - 1);
	}
	slots_close(t, at);
	t->used--;
	/* Failing to shrink only wastes memory. */
	if (t->cap > SLOTS_MIN && t->used < t->cap / 8)
		(void)slots_resize(t, t->cap / 2);
}

static void entry_free(struct table *t, struct entry *e)
{
	e->free_next = t->free;
	t->free = e;
	t->free_count++;
}

static bool chunks_resize(struct table *t, uint32_t cap)
{
	struct chunk *chunks =
		mem_resize(t->alloc, t->chunks, t->chunk_cap, cap, sizeof *t->chunks);
	if (!chunks)
		return false;
	if (cap > t->chunk_cap)
		memset(chunks + t->chunk_cap, 0, (cap - t->chunk_cap) * sizeof *chunks);
	t->chunks = chunks;
	t->chunk_cap = cap;
	return true;
}

/* Makes a chunk with the lowest number that is free, so that the array can shrink from its end. */
static bool chunk_new(struct table *t)
{
	uint32_t number = t->chunk_hint;
	while (number < t->chunk_cap && t->chunks[number].entries)
		number++;
	if (number >= UINT32_MAX / CHUNK_ENTRIES)
		return false;
	if (number == t->chunk_cap && !chunks_resize(t, t->chunk_cap + t->chunk_cap / 2 + 4))
		return false;
	char *block = mem_new(t->alloc, CHUNK_BYTES, 1);
	if (!block)
		return false;
	uintptr_t pad = -(uintptr_t)block % sizeof(struct entry);
	struct entry *entries = (struct entry *)(void *)(block + pad);
	t->chunks[number] = (struct chunk){entries, block, 0};
	t->chunk_hint = number + 1;
	t->trim_below = t->used / 2;
	if (t->chunk_top <= number)
		t->chunk_top = number + 1;
	for (uint32_t i = CHUNK_ENTRIES; i-- > 0;) {
		entries[i].chunk = number;
		entry_free(t, &entries[i]);
	}
	return true;
}

static void chunk_free(struct table *t, uint32_t number)
{
	mem_free(t->alloc, t->chunks[number].block, CHUNK_BYTES, 1);
	t->chunks[number] = (struct chunk){.entries = NULL};
	t->free_count -= CHUNK_ENTRIES;
	if (number < t->chunk_hint)
		t->chunk_hint = number;
}

/* Takes the entries of wholly free chunks out of the list of free ones. */
static void free_drop(struct table *t)
{
	struct entry **at = &t->free;
	while (*at) {
		if (t->chunks[(*at)->chunk].free == CHUNK_ENTRIES)
			*at = (*at)->free_next;
		else
			at = &(*at)->free_next;
	}
}

static void chunks_shrink(struct table *t)
{
	while (t->chunk_top > 0 && !t->chunks[t->chunk_top - 1].entries)
		t->chunk_top--;
	/* Failing to shrink only wastes memory. */
	if (t->chunk_top < t->chunk_cap / 4)
		(void)chunks_resize(t, t->chunk_top * 2);
}

/* Gives back the chunks in which nothing is left, except for one. It walks all free entries, but
 * comes only when the used ones have become half as many as they were, and those keep no more than
 * a chunk each: so it costs every entry a constant. */
static void table_trim(struct table *t)
{
	bool spared = false;
	for (uint32_t i = 0; i < t->chunk_top; i++)
		t->chunks[i].free = 0;
	for (const struct entry *e = t->free; e; e = e->free_next) {
		struct chunk *c = &t->chunks[e->chunk];
		c->free++;
	}
	for (uint32_t i = 0; i < t->chunk_top && !spared; i++) {
		spared = t->chunks[i].free == CHUNK_ENTRIES;
		t->chunks[i].free = spared ? 0 : t->chunks[i].free;
	}
	free_drop(t);
	for (uint32_t i = 0; i < t->chunk_top; i++)
		if (t->chunks[i].free == CHUNK_ENTRIES)
			chunk_free(t, i);
	chunks_shrink(t);
	t->trim_below = t->used / 2;
}

static bool text_set(struct table *t, struct entry *e, struct baton_str text)
{
	char *to = e->key.near.text;
	if (text.len > ENTRY_TEXT_INLINE) {
		to = mem_new(t->alloc, text.len, 1);
		if (!to)
			return false;
		e->key.far = to;
	}
	memcpy(to, text.ptr, text.len);
	e->key.near.len = (uint8_t)text.len;
	return true;
}

struct entry *table_add(struct table *t, uint32_t tag, uint16_t cls, struct baton_str text)
{
	if (!slots_grow(t) || (!t->free && !chunk_new(t)))
		return NULL;
	struct entry *e = t->free;
	if (!text_set(t, e, text))
		return NULL;
	t->free = e->free_next;
	t->free_count--;
	e->crowd = NULL;
	e->holders = 0;
	e->tag = tag;
	e->cls = cls;
	slot_put(t->slots, t->cap, (struct slot){e, tag});
	t->used++;
	return e;
}

void table_remove(struct table *t, struct entry *e)
{
	CHECK(!e->crowd);
	slots_remove(t, e);
	text_free(t, e);
	entry_free(t, e);
	if (t->used <= t->trim_below && t->free_count >= 2 * CHUNK_ENTRIES)
		table_trim(t);
}

struct entry *table_next(const struct table *t, uint32_t *cursor)
{
	while (*cursor < t->cap) {
		struct entry *e = t->slots[(*cursor)++].entry;
		if (e)
			return e;
	}
	return NULL;
}
