/* What a call hands over in one block: claims, or a page of batches. */
#ifndef STORE_PARCEL_H
#define STORE_PARCEL_H

#include <baton/schedule.h>
#include <baton/work.h>

#include "base/arena.h"

struct claims_parcel {
	struct baton_work_claims pub; /* first */
	struct arena arena;
};

struct page_parcel {
	struct baton_work_page pub; /* first */
	struct arena arena;
};

struct schedules_parcel {
	struct baton_schedules pub; /* first */
	struct arena arena;
	struct baton_schedule *items;
	size_t cap;
};

/* Copies the record behind the others. False: no memory. */
bool schedules_parcel_add(struct schedules_parcel *page, const struct baton_schedule *schedule);

/* Empty ones, of memory from `alloc`. NULL: no memory, and the detail says so. Ended as the public
 * part is. */
struct claims_parcel *claims_parcel_new(const struct baton_alloc *alloc);
struct page_parcel *page_parcel_new(const struct baton_alloc *alloc);
struct schedules_parcel *schedules_parcel_new(const struct baton_alloc *alloc);

/* Several payloads as one run of bytes: their number and lengths, each as four bytes, the lowest
 * first, and then the bytes of all. A single one stands for itself. */
size_t payloads_size(const struct baton_str *payloads, size_t count);
void payloads_pack(const struct baton_str *payloads, size_t count, char *bytes);

/* The payloads in `bytes`, which are copied into the arena. `many`: it was more than one.
 *
 * BATON_NO_MEMORY. BATON_STORAGE: the bytes are not of that form. */
enum baton_err payloads_unpack(struct arena *a, struct baton_str bytes, bool many,
                               const struct baton_str **ret_payloads, size_t *ret_count);

#endif
