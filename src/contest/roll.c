/* The highest fence of each subject, in the memory of this process. */
#include "contest/roll.h"

#include <stddef.h>
#include <string.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/mem.h"

#define SIZE_MIN 16u

enum baton_err roll_init(struct roll *r, uint32_t subjects, const struct baton_alloc *alloc)
{
	struct baton_id seed;
	enum baton_err e = baton_id_random(&seed);
	if (e != BATON_OK)
		return e;
	*r = (struct roll){.alloc = alloc, .seed = seed, .subjects = subjects};
	pthread_mutex_init(&r->mu, NULL);
	return BATON_OK;
}

void roll_done(struct roll *r)
{
	mem_free(r->alloc, r->table, r->size, sizeof *r->table);
	pthread_mutex_destroy(&r->mu);
}

/* The subject's entry, or the free one where it would be; there is always a free one. */
static struct roll_entry *entry_find(struct roll_entry *table, uint32_t size,
                                     const struct baton_id *subject)
{
	uint64_t at;
	memcpy(&at, subject->bytes, sizeof at);
	for (;; at++) {
		struct roll_entry *entry = &table[at & (size - 1)];
		if (entry->highest == 0 || baton_id_equal(&entry->subject, subject))
			return entry;
	}
}

/* Makes room for one more. */
static enum baton_err table_grow(struct roll *r)
{
	uint32_t size = r->size ? r->size * 2 : SIZE_MIN;
	struct roll_entry *table = mem_new(r->alloc, size, sizeof *table);
	if (!table)
		return fail_memory(size * sizeof *table, "the subjects that were admitted");
	for (uint32_t i = 0; i < r->size; i++)
		if (r->table[i].highest != 0)
			*entry_find(table, size, &r->table[i].subject) = r->table[i];
	mem_free(r->alloc, r->table, r->size, sizeof *r->table);
	r->table = table;
	r->size = size;
	return BATON_OK;
}

static enum baton_err entry_add(struct roll *r, const struct baton_id *subject, uint64_t fence)
{
	if (r->count >= r->subjects)
		return fail(BATON_FULL, "%u subjects have been admitted, as many as there can be",
		            r->count);
	if (2 * (r->count + 1) > r->size) {
		enum baton_err e = table_grow(r);
		if (e != BATON_OK)
			return e;
	}
	*entry_find(r->table, r->size, subject) = (struct roll_entry){*subject, fence};
	r->count++;
	return BATON_OK;
}

static enum baton_err admit_locked(struct roll *r, const struct baton_id *subject, uint64_t fence,
                                   uint64_t *ret_highest)
{
	struct roll_entry *entry = r->size ? entry_find(r->table, r->size, subject) : NULL;
	if (!entry || entry->highest == 0)
		return entry_add(r, subject, fence);
	if (fence < entry->highest) {
		*ret_highest = entry->highest;
		return BATON_STALE;
	}
	entry->highest = fence;
	return BATON_OK;
}

enum baton_err roll_admit(struct roll *r, struct baton_str subject, uint64_t fence,
                          uint64_t *ret_highest)
{
	struct baton_id id = hash_id(&r->seed, subject.ptr, subject.len);
	pthread_mutex_lock(&r->mu);
	enum baton_err e = admit_locked(r, &id, fence, ret_highest);
	pthread_mutex_unlock(&r->mu);
	return e;
}
