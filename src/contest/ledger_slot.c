/* The place of one subject in a ledger. */
#include "contest/ledger_slot.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/hash.h"

#define SETTLES (UINT64_C(1) << 63)

static_assert(sizeof(struct ledger_slot) == 64, "part of the file format: eight in a sector");
static_assert(offsetof(struct ledger_slot, copies) == 16, "part of the file format");

static uint64_t check_of(struct slot_place at, const struct baton_id *subject, uint64_t mark)
{
	struct {
		struct baton_id subject;
		uint64_t index;
		uint64_t mark;
	} all = {*subject, at.index, mark};
	static_assert(sizeof all == 32, "no byte of it is undefined");
	return hash_bytes(at.seed, &all, sizeof all);
}

struct slot_copy slot_copy_make(struct slot_place at, const struct baton_id *subject,
                                uint64_t fence, bool settles)
{
	uint64_t mark = settles ? fence | SETTLES : fence;
	return (struct slot_copy){.mark = mark, .check = check_of(at, subject, mark)};
}

/* The fence of a copy that is whole, or 0. */
static uint64_t copy_fence(struct slot_place at, const struct ledger_slot *s, unsigned i)
{
	uint64_t fence = s->copies[i].mark & ~SETTLES;
	bool whole = s->copies[i].check == check_of(at, &s->subject, s->copies[i].mark);
	return whole && fence <= SLOT_FENCE_MAX ? fence : 0;
}

struct slot_view slot_look(struct slot_place at, const struct ledger_slot *s)
{
	static const struct ledger_slot zeros;
	if (memcmp(s, &zeros, sizeof zeros) == 0)
		return (struct slot_view){.kind = SLOT_FREE};
	uint64_t fences[2] = {copy_fence(at, s, 0), copy_fence(at, s, 1)};
	uint64_t highest = fences[0] > fences[1] ? fences[0] : fences[1];
	if (highest == 0)
		return (struct slot_view){.kind = SLOT_DAMAGED};
	/* Which copies settle the mark, and which is the mark itself, written before it. */
	bool settles[2];
	bool plain[2];
	for (unsigned i = 0; i < 2; i++) {
		settles[i] = fences[i] == highest && (s->copies[i].mark & SETTLES);
		plain[i] = fences[i] == highest && !(s->copies[i].mark & SETTLES);
	}
	struct slot_view view = {.kind = SLOT_USED, .highest = highest};
	view.settled = (settles[0] || settles[1]) && fences[0] == fences[1];
	if (view.settled)
		view.next = settles[0] ? 0 : 1;
	else if (plain[0] || plain[1])
		view.next = plain[0] ? 0 : 1;
	else
		view.next = settles[0] ? 1 : 0; /* of the two, the one that is damaged */
	return view;
}

bool slot_can_settle(const struct slot_view *view, uint64_t fence)
{
	return view->kind == SLOT_USED && !view->settled && view->highest == fence;
}
