/* The place of one subject in a ledger: what its bytes mean, and what may be written there next.
 *
 * A slot has its mark twice, so that a write that is torn when the power fails takes one of them at
 * most. The copies take turns. A new mark is written over the copy that is spare; once it is on the
 * disk, the other copy is written too, with a flag: it says that the mark is settled, and is itself
 * the spare one from then on. So there is always one copy on the disk that nobody writes to, and it
 * has the highest mark that was ever admitted. */
#ifndef CONTEST_LEDGER_SLOT_H
#define CONTEST_LEDGER_SLOT_H

#include <stdbool.h>
#include <stdint.h>

#include <baton/id.h>

#define SLOT_FENCE_MAX ((UINT64_C(1) << 53) - 1)

/* One of the two: a fence, maybe with the flag, and a hash by which it is known to be whole. */
struct slot_copy {
	uint64_t mark;
	uint64_t check;
};

/* Zeros: free. */
struct ledger_slot {
	struct baton_id subject; /* the hash of it */
	struct slot_copy copies[2];
	uint8_t unused[16];
};

/* Where a slot is: that is part of what makes it whole. */
struct slot_place {
	const struct baton_id *seed; /* the ledger's */
	uint64_t index;
};

enum slot_kind {
	SLOT_FREE = 1,
	SLOT_USED,
	SLOT_DAMAGED /* something is there, and no copy of it is whole */
};

struct slot_view {
	enum slot_kind kind;
	uint64_t highest; /* the mark; 0 unless used                                             */
	bool settled;     /* it is known to be on the disk                                       */
	unsigned next;    /* which copy is to be written next: settled, that with a higher mark;
	                     else, that with the same mark, to be brought to the disk            */
};

struct slot_view slot_look(struct slot_place at, const struct ledger_slot *s);

/* A copy of the mark `fence` for `subject`, to be written at `at`. */
struct slot_copy slot_copy_make(struct slot_place at, const struct baton_id *subject,
                                uint64_t fence, bool settles);

/* Whether the mark can be settled now that `fence` is on the disk: nobody has changed it since. */
bool slot_can_settle(const struct slot_view *view, uint64_t fence);

#endif
